//! The changes themselves, and what becomes of the jobs that make them.

use super::{DATABASE, Localities, TABLES};
use crate::run::Context;
use crate::schema::quoted;
use crate::session::{Attempted, Session};
use meridian_base::{Error, Result};
use rand::Rng;
use rand::rngs::SmallRng;
use std::time::Duration;

/// How long the jobs may take when nothing fails any more: longer than a job's own patience and a
/// schema lease together.
const JOBS_TRIES: u32 = 240;
const JOBS_PAUSE: Duration = Duration::from_secs(1);
/// What a client does to a job it does often enough to meet the short ones.
const CONTROL_PAUSE: Duration = Duration::from_millis(700);

impl Localities {
    /// Makes one change after the other. One that is refused, or whose outcome is unknown, is as
    /// good as another.
    pub(super) async fn change_all(&self, context: &Context, session: &mut Session, rng: &mut SmallRng) -> Result<()> {
        let regions = context.connector.regions();
        while !context.stop.is_stopped() {
            for sql in draw_change(&regions, rng) {
                match session.execute(&sql).await {
                    Ok(_) => self.books().changes += 1,
                    Err(e) => refuse_nonsense(&sql, &e)?,
                }
            }
            tokio::time::sleep(self.config.change_pause).await;
        }
        Ok(())
    }

    /// Cancels, pauses and resumes jobs now and then.
    pub(super) async fn control_jobs(&self, context: &Context, session: &mut Session, rng: &mut SmallRng) -> Result<()> {
        while !context.stop.is_stopped() {
            tokio::time::sleep(CONTROL_PAUSE).await;
            let Ok(jobs) = session.query("SHOW JOBS", &[]).await else { continue };
            for (row, job) in jobs.rows.iter().enumerate() {
                let verb = match job[4].as_text() {
                    Some("paused") => "RESUME",
                    Some("running") if rng.random_bool(0.1) => "CANCEL",
                    Some("running") if rng.random_bool(0.1) => "PAUSE",
                    _ => continue,
                };
                // A step that is no job yet has no number.
                let Ok(id) = jobs.int(row, 0) else { continue };
                let sql = format!("{verb} JOB {id}");
                if let Err(e) = session.execute(&sql).await {
                    refuse_nonsense(&sql, &e)?;
                }
            }
        }
        Ok(())
    }
}

/// Statements that change something, whether they are allowed now or not.
fn draw_change(regions: &[String], rng: &mut SmallRng) -> Vec<String> {
    let region = &regions[rng.random_range(0..regions.len())];
    let name = quoted(region);
    let table = TABLES[rng.random_range(0..TABLES.len())];
    match rng.random_range(0..20) {
        0..=10 => {
            let locality = match rng.random_range(0..6) {
                0 => "REGIONAL BY TABLE IN PRIMARY REGION".to_string(),
                1 => format!("REGIONAL BY TABLE IN {name}"),
                2 => "GLOBAL".to_string(),
                _ => "REGIONAL BY ROW".to_string(),
            };
            vec![format!("ALTER TABLE {table} SET LOCALITY {locality}")]
        }
        11..=12 => vec![format!("ALTER DATABASE {DATABASE} SET PRIMARY REGION {name}")],
        13 => vec![format!("ALTER DATABASE {DATABASE} DROP REGION {name}")],
        14 => {
            // Where rows had homes of their own in the region, they have to leave it first.
            let empty = TABLES.map(|table| {
                format!("UPDATE {table} SET crdb_region = default_to_database_primary_region('nowhere') WHERE crdb_region = '{region}'")
            });
            let drop = format!("ALTER DATABASE {DATABASE} DROP REGION {name}");
            empty.into_iter().chain([drop]).collect()
        }
        15..=17 => vec![format!("ALTER DATABASE {DATABASE} ADD REGION {name}")],
        18 => vec![format!("ALTER DATABASE {DATABASE} SURVIVE REGION FAILURE")],
        _ => vec![format!("ALTER DATABASE {DATABASE} SURVIVE ZONE FAILURE")],
    }
}

/// A change may be refused for what the schema is now, for what is down, or for what others do; not
/// for being no statement, and never because something in the database contradicts itself.
fn refuse_nonsense(sql: &str, error: &Error) -> Result<()> {
    match error.sqlstate() {
        "42601" | "0A000" | "XX000" | "XX001" => Err(error.clone().detail(format!("of {sql}"))),
        _ => Ok(()),
    }
}

/// Waits until no job is under way; one that hangs, as a sentence. A job that somebody paused is
/// resumed first.
pub(super) async fn until_all_jobs_end(context: &Context, session: &mut Session) -> Option<String> {
    let mut last = "SHOW JOBS was never answered".to_string();
    for _ in 0..JOBS_TRIES {
        match session.query("SHOW JOBS", &[]).await {
            Err(e) => context.stats.note_error(&e),
            Ok(jobs) => {
                let is_under_way = |job: &&Vec<_>| -> bool {
                    let state = &job[4];
                    ["running", "paused", "reverting"].iter().any(|s| crate::client::Value::as_text(state) == Some(s))
                };
                let under_way: Vec<String> = jobs
                    .rows
                    .iter()
                    .filter(is_under_way)
                    .map(|job| format!("job {} ({}) is {}: {}", job[0], job[2], job[4], job[5]))
                    .collect();
                if under_way.is_empty() {
                    return None;
                }
                for job in jobs.rows.iter().filter(|job| job[4].as_text() == Some("paused")) {
                    let _ = session.execute(&format!("RESUME JOB {}", job[0])).await;
                }
                last = under_way.join("; ");
            }
        }
        tokio::time::sleep(JOBS_PAUSE).await;
    }
    Some(format!("after {} s: {last}", JOBS_TRIES * JOBS_PAUSE.as_secs() as u32))
}

/// The ids of a table's rows as they are found region by region: each is looked for where its
/// region says, and nowhere else. `None` for a table whose rows have no homes of their own.
pub(super) async fn ids_by_region(
    context: &Context,
    session: &mut Session,
    table: &str,
    regions: &[String],
) -> Result<Option<Vec<i64>>> {
    let locality = crate::run::until_answered(context, session, |s| {
        let sql = format!("SHOW LOCALITY FROM TABLE {table}");
        Box::pin(async move { s.query(&sql, &[]).await })
    })
    .await?;
    // A database whose only region was dropped has no localities.
    if locality.rows.first().and_then(|row| row[1].as_text()) != Some("REGIONAL BY ROW") {
        return Ok(None);
    }
    let mut found = Vec::new();
    for region in regions {
        let rows = crate::run::until_answered(context, session, |s| {
            let sql = format!("SELECT id FROM {table} WHERE crdb_region = '{region}'");
            Box::pin(async move { s.query(&sql, &[]).await })
        })
        .await;
        let rows = match rows {
            // The database does not have the region any more, so no row does.
            Err(e) if e.sqlstate() == "22P02" => continue,
            rows => rows?,
        };
        for row in 0..rows.rows.len() {
            found.push(rows.int(row, 0)?);
        }
    }
    Ok(Some(found))
}

/// What an answer says of the change that was asked for.
impl super::Told {
    pub(super) fn by<T>(attempted: &Attempted<T>) -> super::Told {
        match attempted {
            Attempted::Committed(_) => super::Told::Yes,
            Attempted::Failed(_) => super::Told::No,
            Attempted::Unknown(..) => super::Told::Maybe,
        }
    }
}
