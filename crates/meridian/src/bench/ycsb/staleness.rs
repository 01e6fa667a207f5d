//! How old what replicas serve is: somebody writes the time all the while, and readers in every
//! region look how long ago it was.

use crate::bench::cluster::Running;
use futures::FutureExt;
use meridian_base::{Error, Result};
use meridian_workload::histogram::Histogram;
use meridian_workload::session::is_retryable;
use meridian_workload::ycsb::DATABASE;
use meridian_workload::{Context, schema};
use std::time::Duration;

/// Between two writes, and between two reads.
const PAUSE: Duration = Duration::from_millis(3);
/// Readers are told of the table, and of its first row.
const SETTLE: Duration = Duration::from_secs(1);

/// The age of what a bounded-staleness read gets, for each region. It includes the time between two
/// writes, a few milliseconds.
pub(super) async fn measure(running: &Running, context: &Context, time: Duration) -> Result<Vec<Histogram>> {
    let mut session = context.session(&running.regions[0], DATABASE);
    let create =
        "CREATE TABLE IF NOT EXISTS beat (id INT8 PRIMARY KEY, at INT8 NOT NULL) LOCALITY REGIONAL BY TABLE IN PRIMARY REGION";
    schema::run(&mut session, create).await?;
    schema::run(&mut session, "INSERT INTO beat VALUES (1, 0)").await?;
    let writer = async {
        loop {
            let now = i64::try_from(context.timer.now_micros()).unwrap_or(i64::MAX);
            match session.query("UPDATE beat SET at = $1 WHERE id = 1", &[now.into()]).await {
                Err(e) if !is_retryable(&e) => return e,
                _ => tokio::time::sleep(PAUSE).await,
            }
        }
    };
    tokio::select! {
        e = writer => Err(e),
        e = running.cluster.failed() => Err(e),
        ages = read_all(running, context, time) => ages,
    }
}

async fn read_all(running: &Running, context: &Context, time: Duration) -> Result<Vec<Histogram>> {
    tokio::time::sleep(SETTLE).await;
    let readers = running.regions.iter().map(|region| read(context, region, time).boxed());
    futures::future::try_join_all(readers).await
}

async fn read(context: &Context, region: &str, time: Duration) -> Result<Histogram> {
    let mut session = context.session(region, DATABASE);
    let mut ages = Histogram::new();
    let end = context.timer.now_micros() + time.as_micros() as u64;
    while context.timer.now_micros() < end {
        let sql = "SELECT at FROM beat AS OF SYSTEM TIME with_max_staleness('10s') WHERE id = 1";
        let rows = session.query(sql, &[]).await?;
        let now = context.timer.now_micros();
        let written = u64::try_from(rows.int(0, 0)?).map_err(|_| Error::internal("a time before the run"))?;
        if written > 0 {
            ages.record(Duration::from_micros(now.saturating_sub(written)));
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(ages)
}
