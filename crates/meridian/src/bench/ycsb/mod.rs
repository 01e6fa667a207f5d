//! The benches of CockroachDB's multi-region paper that run YCSB.
//!
//! * [`locality`]: `REGIONAL BY ROW` (§7.2).
//! * [`global`]: `GLOBAL` and `REGIONAL` tables (§7.1 and 7.3).
//! * [`staleness`]: how old what a replica serves is.
//! * [`plot`]: latencies as cumulative distributions.

pub mod global;
pub mod locality;
mod plot;
mod staleness;

use super::cluster::{Running, over_regions};
use super::latencies::{self, Measured};
use crate::traffic::Traffic;
use meridian_base::Result;
use meridian_workload::histogram::Histogram;
use meridian_workload::ycsb::{DATABASE, Found, Ycsb};
use meridian_workload::{Context, Workload, schema};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

/// Nobody measures how connections are made and statements are planned.
const WARM_UP: Duration = Duration::from_secs(2);
/// A turn is cut into so many parts, to see what changes.
const PARTS: u32 = 5;
/// Acknowledgements may be on their way when the clients have ended.
const COOL_DOWN: Duration = Duration::from_millis(500);

/// What came of a turn.
struct Turn {
    time: Duration,
    measured: Measured,
    /// The same and what was not measured: before, and after it.
    everything: Measured,
    /// For each part, where reads have found rows that were first written elsewhere.
    found: Vec<Found>,
    /// Transactions that waited for another region, of all that there were.
    far: u64,
    violations: Vec<String>,
}

/// The database without tables of earlier turns, and rows for this one.
async fn set_up(running: &Running, work: &Ycsb, context: &Context) -> Result<()> {
    let drop = format!("DROP DATABASE IF EXISTS {DATABASE}");
    context.session(&running.regions[0], schema::DATABASE_DEFAULT).execute(&drop).await?;
    work.setup(context, &|_| {}).await
}

/// Lets clients work, and checks what they have left.
async fn turn(running: &Running, work: &Arc<Ycsb>, context: &Context, clients: u32, time: Duration) -> Result<Turn> {
    let far_before = far_transactions(running, context).await?;
    let dynamic: Arc<dyn Workload> = work.clone();
    let mut traffic = Traffic::start(&dynamic, context, clients);
    let live = traffic.live();
    running.work(&mut traffic, WARM_UP).await?;
    live.lock().tick();
    let mut everything = live.lock().whole().0;
    live.lock().forget();
    work.take_found();
    let mut found = Vec::new();
    for _ in 0..PARTS {
        running.work(&mut traffic, time / PARTS).await?;
        found.push(work.take_found());
    }
    live.lock().tick();
    let (measured, time) = live.lock().whole();
    traffic.stop().await?;
    for (key, stats) in live.lock().whole().0 {
        latencies::merge(everything.entry(key).or_default(), &stats);
    }
    tokio::time::sleep(COOL_DOWN).await;
    let far = far_transactions(running, context).await?.saturating_sub(far_before);
    let violations = work.check(context).await?.violations;
    violations.iter().for_each(|violation| say!("VIOLATED: {violation}"));
    Ok(Turn { time, measured, everything, found, far, violations })
}

/// Transactions that were committed after waiting for another region, since the nodes began.
async fn far_transactions(running: &Running, context: &Context) -> Result<u64> {
    Ok(over_regions(&running.metrics(context).await?))
}

/// The least and the most of some counts.
fn spread(counts: &[u32]) -> String {
    match (counts.iter().min(), counts.iter().max()) {
        (Some(least), Some(most)) if least == most => least.to_string(),
        (Some(least), Some(most)) => format!("{least} to {most}"),
        _ => "-".to_string(),
    }
}

/// Some quantiles in milliseconds, with slashes between them.
fn quantiles(latency: &Histogram, shares: &[f64]) -> String {
    let cells: Vec<String> = shares.iter().map(|share| latencies::millis(latency, *share)).collect();
    cells.join("/")
}

const CSV_HEAD: &str = "clients,operation,rows,seconds,count,failed,unknown,retries,p25_micros,p50_micros,p75_micros,p90_micros,p99_micros,max_micros";

/// A line for each key, behind a prefix that ends with a comma.
fn csv(prefix: &str, measured: &Measured, time: Duration) -> String {
    let mut out = String::new();
    for (key, stats) in measured {
        let rows = if key.locality == meridian_workload::Locality::Own { "own" } else { "other" };
        let _ = write!(
            out,
            "{prefix}{},{},{rows},{:.1},{},{},{},{}",
            key.region,
            key.operation,
            time.as_secs_f64(),
            stats.latency.count(),
            stats.failures,
            stats.unknown,
            stats.retries
        );
        for share in [0.25, 0.5, 0.75, 0.9, 0.99, 1.0] {
            let _ = write!(out, ",{}", stats.latency.quantile(share).unwrap_or_default().as_micros());
        }
        out.push('\n');
    }
    out
}

/// What a bench claims, and whether it was so.
#[derive(Default)]
struct Claims(Vec<(String, bool)>);

impl Claims {
    fn claim(&mut self, holds: bool, what: String) {
        self.0.push((what, holds));
    }
    fn hold(&self) -> bool {
        self.0.iter().all(|(_, holds)| *holds)
    }
    fn lines(&self) -> String {
        self.0.iter().map(|(what, holds)| format!("  {}  {what}\n", if *holds { "met   " } else { "MISSED" })).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_workload::Locality;
    use meridian_workload::stats::StatsKey;

    #[test]
    fn a_turn_is_written_with_its_quantiles() {
        let mut measured = Measured::new();
        let key = StatsKey { region: "us".into(), operation: "read", locality: Locality::Other };
        (1..=4).for_each(|n| measured.entry(key.clone()).or_default().latency.record(Duration::from_micros(n)));
        assert_eq!(csv("default,", &measured, Duration::from_secs(2)), "default,us,read,other,2.0,4,0,0,0,1,2,3,4,4,4\n");
        assert_eq!(CSV_HEAD.split(',').count() + 1, csv("x,", &measured, Duration::ZERO).split(',').count());
    }

    #[test]
    fn one_claim_that_fails_is_enough() {
        let mut claims = Claims::default();
        claims.claim(true, "a".into());
        assert!(claims.hold());
        claims.claim(false, "b".into());
        assert!(!claims.hold());
        assert_eq!(claims.lines(), "  met     a\n  MISSED  b\n");
        assert_eq!((spread(&[]), spread(&[1, 1]), spread(&[2, 0])), ("-".into(), "1".into(), "0 to 2".into()));
    }
}
