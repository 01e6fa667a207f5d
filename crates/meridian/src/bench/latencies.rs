//! What a workload's clients measured, operation by operation: latencies, attempts that were
//! aborted, and what failed.

use meridian_workload::Locality;
use meridian_workload::histogram::Histogram;
use meridian_workload::stats::{OperationStats, StatsKey};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

pub type Measured = BTreeMap<StatsKey, OperationStats>;

/// Adds up.
pub fn merge(to: &mut OperationStats, from: &OperationStats) {
    to.latency.merge(&from.latency);
    to.retries += from.retries;
    to.failures += from.failures;
    to.unknown += from.unknown;
}

/// The sum of what satisfies a condition.
pub fn sum(measured: &Measured, which: impl Fn(&StatsKey) -> bool) -> OperationStats {
    let mut sum = OperationStats::default();
    measured.iter().filter(|(key, _)| which(key)).for_each(|(_, stats)| merge(&mut sum, stats));
    sum
}

/// The share of attempts that were aborted and made again, or given up.
pub fn abort_share(stats: &OperationStats) -> f64 {
    let aborted = stats.retries + stats.failures;
    aborted as f64 / (aborted + stats.latency.count()).max(1) as f64
}

/// A latency in milliseconds, or a dash.
pub fn millis(latency: &Histogram, share: f64) -> String {
    latency.quantile(share).map_or("-".to_string(), |d| match d.as_secs_f64() * 1e3 {
        short if short < 10.0 => format!("{short:.1}"),
        long => format!("{long:.0}"),
    })
}

/// A line for each operation of each region, its own rows beside those of other regions.
pub fn table(regions: &[String], operations: &[&'static str], measured: &Measured, time: Duration) -> String {
    let mut out = format!(
        "{:<20}{:<15}{:^34}  {:^34}\n{:<20}{:<15}{HEADS}  {HEADS}  failed  in doubt\n",
        "clients in", "", "rows of its own region only", "other regions' rows too", "", ""
    );
    for region in regions {
        for operation in operations {
            let of =
                |locality| sum(measured, |key| key.region == *region && key.operation == *operation && key.locality == locality);
            let (own, other) = (of(Locality::Own), of(Locality::Other));
            let (failed, unknown) = (own.failures + other.failures, own.unknown + other.unknown);
            let line =
                format!("{region:<20}{operation:<15}{}  {}  {failed:>6}  {unknown:>8}", cells(&own, time), cells(&other, time));
            let _ = writeln!(out, "{line}");
        }
    }
    out
}

const HEADS: &str = "  per s     p50     p99   aborted ";

fn cells(stats: &OperationStats, time: Duration) -> String {
    if stats.latency.count() == 0 {
        return format!("{:>7}{:27}", "-", "");
    }
    let rate = stats.latency.count() as f64 / time.as_secs_f64().max(1e-3);
    let (p50, p99) = (millis(&stats.latency, 0.5), millis(&stats.latency, 0.99));
    format!("{rate:>7.1}{p50:>8}{p99:>8}{:>9.1}% ", abort_share(stats) * 100.0)
}

/// The head of what [`csv`] writes behind a prefix.
pub const CSV_HEAD: &str = "region,operation,locality,seconds,committed,aborted_attempts,failed,unknown,p50_micros,p99_micros";

/// A line per key; the prefix ends with a comma or is empty.
pub fn csv(prefix: &str, measured: &Measured, time: Duration) -> String {
    let mut out = String::new();
    for (key, stats) in measured {
        let locality = if key.locality == Locality::Own { "own" } else { "other" };
        let micros = |share| stats.latency.quantile(share).unwrap_or_default().as_micros();
        let _ = writeln!(
            out,
            "{prefix}{},{},{locality},{:.1},{},{},{},{},{},{}",
            key.region,
            key.operation,
            time.as_secs_f64(),
            stats.latency.count(),
            stats.retries,
            stats.failures,
            stats.unknown,
            micros(0.5),
            micros(0.99)
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_listed_by_region_and_locality() {
        let mut measured = Measured::new();
        let key = |locality| StatsKey { region: "us".into(), operation: "payment", locality };
        let own = measured.entry(key(Locality::Own)).or_default();
        (0..3).for_each(|_| own.latency.record(Duration::from_millis(4)));
        own.retries = 1;
        measured.entry(key(Locality::Other)).or_default().latency.record(Duration::from_millis(200));
        let text = table(&["us".into()], &["payment", "delivery"], &measured, Duration::from_secs(2));
        assert!(
            text.contains("us                  payment            1.5     4.0     4.0     25.0%       0.5     200"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 4, "{text}");
        let csv = csv("calm,", &measured, Duration::from_secs(2));
        assert!(csv.contains("calm,us,payment,own,2.0,3,1,0,0,4000,4000\n"), "{csv}");
        assert_eq!(abort_share(&sum(&measured, |k| k.locality == Locality::Own)), 0.25);
    }
}
