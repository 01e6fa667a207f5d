//! `meridian bench ddl`: how long schema changes take on the demonstration's nine nodes, from a
//! gateway in each region, and what they do to those who commit rows of their own region meanwhile.

use super::cluster::{Running, Shape, with_cluster, write};
use super::latencies::millis;
use crate::demo::REGIONS_DEFAULT;
use clap::Args as ClapArgs;
use meridian_base::{Error, Result};
use meridian_workload::histogram::Histogram;
use meridian_workload::{Client, Connector};
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::Instant;

const DATABASE: &str = "ddl";
/// The budget of a statement that is one step: a round trip that lowers the leases and a commit.
const STEP_MAX: Duration = Duration::from_secs(1);
const QUIET: Duration = Duration::from_secs(3);

#[derive(ClapArgs)]
pub struct Args {
    /// How often every statement is run from every region.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    /// Where the figures are written.
    #[arg(long, default_value = "bench-ddl.csv")]
    csv: PathBuf,
}

/// A statement or block, what it is called, and whether it is one step of the catalog.
struct Change {
    name: &'static str,
    sql: &'static [&'static str],
    is_one_step: bool,
}

/// In the order in which they can be run.
const CHANGES: [Change; 8] = [
    Change { name: "CREATE TABLE", sql: &["CREATE TABLE made (id INT8 PRIMARY KEY, v INT8)"], is_one_step: true },
    Change { name: "ALTER TABLE … ADD COLUMN", sql: &["ALTER TABLE used ADD COLUMN extra INT8"], is_one_step: true },
    Change { name: "ALTER TABLE … RENAME COLUMN", sql: &["ALTER TABLE used RENAME COLUMN extra TO more"], is_one_step: true },
    Change {
        name: "rows of all regions and ADD COLUMN",
        sql: &["BEGIN", "UPDATE used SET v = v + 1 WHERE id < 0", "ALTER TABLE used ADD COLUMN last INT8", "COMMIT"],
        is_one_step: true,
    },
    Change { name: "CREATE INDEX", sql: &["CREATE INDEX by_v ON used (v)"], is_one_step: false },
    Change { name: "DROP INDEX", sql: &["DROP INDEX by_v"], is_one_step: false },
    Change {
        name: "ALTER TABLE … DROP COLUMN",
        sql: &["ALTER TABLE used DROP COLUMN more, DROP COLUMN last"],
        is_one_step: false,
    },
    Change { name: "DROP TABLE", sql: &["DROP TABLE made"], is_one_step: false },
];

pub async fn run(args: Args) -> Result<ExitCode> {
    let shape = Shape { zones: 3, ..Shape::of(REGIONS_DEFAULT) };
    with_cluster(shape, |running| Box::pin(bench(args, running))).await
}

async fn bench(args: Args, running: &Running) -> Result<ExitCode> {
    prepare(running).await?;
    let quiet = commits_during(running, async { tokio::time::sleep(QUIET).await }).await?.0;
    let (busy, took) = commits_during(running, changes(running, args.rounds)).await?;
    let took = took?;
    let mut csv = "gateway,statement,ms\n".to_string();
    say!("\nmilliseconds, p50/longest of {}, by the region of the gateway\n{:<38}{}", args.rounds, "", heads(&running.regions));
    for (change, by_region) in CHANGES.iter().zip(&took) {
        let cells: String = by_region.iter().map(|h| format!("{:>24}", cell(h))).collect();
        say!("{:<38}{cells}", change.name);
        for (region, histogram) in running.regions.iter().zip(by_region) {
            for share in [0.5, 1.0] {
                let _ = writeln!(csv, "{region},{} p{},{}", change.name, share * 100.0, millis(histogram, share));
            }
        }
    }
    say!("\nCommits of rows of one's own region, milliseconds\n{:<38}{}", "", heads(&running.regions));
    for (name, commits) in [("p50/p99/longest, nothing else", &quiet), ("p50/p99/longest, schema changes", &busy)] {
        let each = |h: &Histogram| format!("{}/{}/{}", millis(h, 0.5), millis(h, 0.99), millis(h, 1.0));
        say!("{name:<38}{}", commits.iter().map(|h| format!("{:>24}", each(h))).collect::<String>());
        for (region, histogram) in running.regions.iter().zip(commits) {
            let _ = writeln!(csv, "{region},{name},{}", millis(histogram, 0.99));
        }
    }
    let mut steps = Histogram::new();
    CHANGES.iter().zip(&took).filter(|(c, _)| c.is_one_step).flat_map(|(_, h)| h).for_each(|h| steps.merge(h));
    let is_met = steps.quantile(0.5).is_some_and(|p50| p50 < STEP_MAX);
    say!(
        "\nStatements of one step: p50 {} ms, p99 {} ms; budget {} ms: {}",
        millis(&steps, 0.5),
        millis(&steps, 0.99),
        STEP_MAX.as_millis(),
        if is_met { "met" } else { "MISSED" }
    );
    write(&args.csv, &csv)?;
    say!("The figures are in {}.", args.csv.display());
    Ok(ExitCode::SUCCESS)
}

fn heads(regions: &[String]) -> String {
    regions.iter().map(|r| format!("{r:>24}")).collect()
}

fn cell(took: &Histogram) -> String {
    format!("{}/{}", millis(took, 0.5), millis(took, 1.0))
}

async fn connect(running: &Running, region: &str) -> Result<Box<dyn Client>> {
    running.connector.connect(region, DATABASE).await
}

async fn prepare(running: &Running) -> Result<()> {
    let quoted: Vec<String> = running.regions.iter().map(|r| format!("\"{r}\"")).collect();
    let mut client = running.connector.connect(&running.regions[0], "defaultdb").await?;
    client
        .execute(&format!("CREATE DATABASE {DATABASE} PRIMARY REGION {} REGIONS {}", quoted[0], quoted[1..].join(", ")))
        .await?;
    let mut client = connect(running, &running.regions[0]).await?;
    client.execute("CREATE TABLE used (id INT8 PRIMARY KEY, v INT8 NOT NULL) LOCALITY REGIONAL BY ROW").await?;
    for (n, region) in running.regions.iter().enumerate() {
        // A row that its region's client changes, and one that nobody does but a schema change.
        let n = n as i64 + 1;
        client
            .execute(&format!("INSERT INTO used (crdb_region, id, v) VALUES ('{region}', {n}, 0), ('{region}', -{n}, 0)"))
            .await?;
    }
    Ok(())
}

/// What commits of rows of their own region take clients of every region while something happens;
/// in the order of the regions.
async fn commits_during<T>(running: &Running, happens: impl Future<Output = T>) -> Result<(Vec<Histogram>, T)> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut clients = tokio::task::JoinSet::new();
    for (n, region) in running.regions.iter().enumerate() {
        let mut client = connect(running, region).await?;
        let (stop, update) = (stop.clone(), format!("UPDATE used SET v = v + 1 WHERE id = {}", n + 1));
        clients.spawn(async move {
            let mut took = Histogram::new();
            while !stop.load(Ordering::Relaxed) {
                let start = Instant::now();
                client.execute(&update).await?;
                took.record(start.elapsed());
            }
            Ok::<_, Error>((n, took))
        });
    }
    let what = tokio::select! {
        what = happens => what,
        e = running.cluster.failed() => return Err(e),
    };
    stop.store(true, Ordering::Relaxed);
    let mut commits = Vec::new();
    while let Some(ended) = clients.join_next().await {
        commits.push(ended.map_err(|e| Error::internal(format!("a client panicked: {e}")))??);
    }
    commits.sort_by_key(|(n, _)| *n);
    Ok((commits.into_iter().map(|(_, took)| took).collect(), what))
}

/// How long each change takes, by region. Nobody waits for what the change before it left to do,
/// such as deleting rows.
async fn changes(running: &Running, rounds: u32) -> Result<Vec<Vec<Histogram>>> {
    let mut took: Vec<Vec<Histogram>> =
        CHANGES.iter().map(|_| running.regions.iter().map(|_| Histogram::new()).collect()).collect();
    for _ in 0..rounds {
        for (at, region) in running.regions.iter().enumerate() {
            let mut client = connect(running, region).await?;
            for (change, took) in CHANGES.iter().zip(&mut took) {
                let start = Instant::now();
                for sql in change.sql {
                    client.execute(sql).await?;
                }
                took[at].record(start.elapsed());
            }
        }
    }
    Ok(took)
}
