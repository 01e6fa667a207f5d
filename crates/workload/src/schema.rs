//! Setting up databases and tables in a way that can be repeated.
//!
//! A node may die between doing a statement and saying so. Every step here is therefore run again
//! until it succeeds or until the database says that its result is already there.

use crate::client::Connector;
use crate::run::Context;
use crate::session::{Session, is_outcome_unknown, is_retryable};
use meridian_base::{Error, ErrorKind, Result};
use std::time::Duration;
use tokio::time::Instant;

/// The database that exists on every cluster, to create others from.
pub const DATABASE_DEFAULT: &str = "postgres";
/// How often one step of a setup is tried; with the pause between, more than two elections.
const TRIES_MAX: u32 = 60;
const PAUSE: Duration = Duration::from_millis(500);
/// How long a node of another region may take to hear of what was just created, and how often it is
/// asked.
const HEARSAY_MAX: Duration = Duration::from_secs(5);
const HEARSAY_PAUSE: Duration = Duration::from_millis(50);

/// A name in double quotes.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The schema that holds a region's tables: the region's name with `_` for `-`, so that it needs no
/// quotes in a shell.
pub fn schema_of(region: &str) -> String {
    region.replace(|c: char| !c.is_ascii_alphanumeric(), "_")
}

/// The clause that homes a table, or nothing where the database knows no regions.
pub fn locality(connector: &dyn Connector, region: &str) -> String {
    match connector.knows_regions() {
        true => format!(" LOCALITY REGIONAL BY TABLE IN {}", quoted(region)),
        false => String::new(),
    }
}

/// The same for a GLOBAL table.
pub fn global(connector: &dyn Connector) -> String {
    if connector.knows_regions() { " LOCALITY GLOBAL".to_string() } else { String::new() }
}

/// Creates a database over all regions of the cluster, the first one primary, unless it exists.
pub async fn create_database(context: &Context, name: &str) -> Result<()> {
    let survive = if context.connector.survives_region() { " SURVIVE REGION FAILURE" } else { "" };
    create(context, name, survive).await
}

/// The same, and what it survives: `ZONE` or `REGION`.
pub async fn create_database_surviving(context: &Context, name: &str, goal: &str) -> Result<()> {
    create(context, name, &format!(" SURVIVE {goal} FAILURE")).await
}

async fn create(context: &Context, name: &str, survive: &str) -> Result<()> {
    let regions = context.connector.regions();
    let mut sql = format!("CREATE DATABASE {name}");
    if context.connector.knows_regions() {
        sql += &format!(" PRIMARY REGION {}", quoted(&regions[0]));
        if regions.len() > 1 {
            let others: Vec<String> = regions[1..].iter().map(|r| quoted(r)).collect();
            sql += &format!(" REGIONS {}", others.join(", "));
        }
        sql += survive;
    }
    run(&mut context.session(&regions[0], DATABASE_DEFAULT), &sql).await
}

/// Runs statements that may be run again, each until it has taken effect.
pub async fn run_all(session: &mut Session, statements: &[String]) -> Result<()> {
    for sql in statements {
        run(session, sql).await?;
    }
    Ok(())
}

/// Runs statements that create things as one transaction, until it has taken effect. In a database
/// over several regions a schema change waits for every region, so many at once take as long as
/// one.
pub async fn run_block(session: &mut Session, statements: &[String]) -> Result<()> {
    let mut tries = 0;
    loop {
        let Err(error) = attempt_block(session, statements).await else { return Ok(()) };
        // Nothing is undone on a connection that is gone; anywhere else a failed block has to be
        // left.
        let _ = session.execute("ROLLBACK").await;
        // All of it was created at once, so if a part is there, so is the rest.
        if is_there_already(&error) {
            return Ok(());
        }
        tries += 1;
        if !is_passing(&error) || tries == TRIES_MAX {
            return Err(error);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn attempt_block(session: &mut Session, statements: &[String]) -> Result<()> {
    session.execute("BEGIN").await?;
    for sql in statements {
        session.execute(sql).await?;
    }
    session.execute("COMMIT").await.map(drop)
}

/// 42P04, 42P06, 42P07, 42710: the database, schema, table, object exists. 23505: so does the row.
fn is_there_already(error: &Error) -> bool {
    matches!(error.sqlstate(), "42P04" | "42P06" | "42P07" | "42710" | "23505")
}

/// Whether another try may succeed.
fn is_passing(error: &Error) -> bool {
    let is_to_come = matches!(error.sqlstate(), "57P03" | "53100");
    is_retryable(error) || is_outcome_unknown(error) || is_to_come || error.kind() == ErrorKind::Unavailable
}

/// Runs one statement until it has taken effect; «it exists already» and «the row is already there»
/// count as that. A node of another region may not have heard yet of the database, schema or table
/// that the statement names.
pub async fn run(session: &mut Session, sql: &str) -> Result<()> {
    let mut tries = 0;
    let begun = Instant::now();
    loop {
        let error = match session.execute(sql).await {
            Ok(_) => return Ok(()),
            Err(error) => error,
        };
        if is_there_already(&error) {
            return Ok(());
        }
        // 3D000, 3F000, 42P01, 42602: no such database, schema, table, region.
        if matches!(error.sqlstate(), "3D000" | "3F000" | "42P01" | "42602") && begun.elapsed() < HEARSAY_MAX {
            tokio::time::sleep(HEARSAY_PAUSE).await;
            continue;
        }
        tries += 1;
        if !is_passing(&error) || tries == TRIES_MAX {
            return Err(error);
        }
        tokio::time::sleep(PAUSE).await;
    }
}
