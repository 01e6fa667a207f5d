//! What a workload's clients see, as a table that follows them: throughput and latencies per region
//! and operation, on the region's own rows and on other regions'.

use meridian_workload::Locality;
use meridian_workload::histogram::Histogram;
use meridian_workload::stats::{OperationStats, Stats, StatsKey};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use tokio::time::Instant;

/// A table shows what happened in this time.
const WINDOW: Duration = Duration::from_secs(10);

type Measured = BTreeMap<StatsKey, OperationStats>;

/// Collects what is measured, interval by interval.
pub struct Live {
    stats: Stats,
    /// In their order on the table.
    regions: Vec<String>,
    started: Instant,
    last: Instant,
    recent: VecDeque<(Duration, Measured)>,
    total: Measured,
}

impl Live {
    /// Of a run that begins now.
    pub fn new(stats: Stats, regions: Vec<String>) -> Live {
        let now = Instant::now();
        Live { stats, regions, started: now, last: now, recent: VecDeque::new(), total: Measured::new() }
    }

    /// Takes what was measured since the last call. To be called about once a second.
    pub fn tick(&mut self) {
        let now = Instant::now();
        let measured = self.stats.take();
        add(&mut self.total, &measured);
        self.recent.push_back((now - self.last, measured));
        self.last = now;
        while self.recent.len() > 1 && self.recent.iter().skip(1).map(|(time, _)| *time).sum::<Duration>() >= WINDOW {
            self.recent.pop_front();
        }
    }

    /// Begins anew: what was measured so far was for warming up.
    pub fn forget(&mut self) {
        self.tick();
        self.total.clear();
        self.recent.clear();
        self.started = self.last;
    }

    /// Everything since the beginning, up to the last tick, and the time that it took.
    pub fn whole(&self) -> (BTreeMap<StatsKey, OperationStats>, Duration) {
        (self.total.clone(), self.last - self.started)
    }

    /// Whether clients of every region have succeeded with something.
    pub fn has_all_regions(&self) -> bool {
        let has = |region: &String| self.total.iter().any(|(key, s)| key.region == *region && s.latency.count() > 0);
        self.regions.iter().all(has)
    }

    fn window(&self) -> (Duration, Measured) {
        let mut all = Measured::new();
        self.recent.iter().for_each(|(_, measured)| add(&mut all, measured));
        (self.recent.iter().map(|(time, _)| *time).sum(), all)
    }

    /// The last seconds.
    pub fn table(&self) -> String {
        let (time, measured) = self.window();
        let head = format!("after {:.0} s, the last {:.0} s", (self.last - self.started).as_secs_f64(), time.as_secs_f64());
        table(&head, &self.regions, &measured, time)
    }

    /// The whole run.
    pub fn summary(&self) -> String {
        let time = self.last - self.started;
        table(&format!("the whole run, {:.0} s", time.as_secs_f64()), &self.regions, &self.total, time)
    }

    /// The last seconds in a line per region, for logs.
    pub fn lines(&self) -> String {
        let (time, measured) = self.window();
        let width = self.regions.iter().map(String::len).max().unwrap_or(0);
        let after = (self.last - self.started).as_secs();
        let line = |region: &String| {
            let of = |locality| sum(&measured, |key| key.region == *region && key.locality == locality);
            let (own, other) = (of(Locality::Own), of(Locality::Other));
            let failed = own.failures + other.failures + own.unknown + other.unknown;
            format!(
                "{after:>4} s  {region:width$}  own rows {}  other rows {}  {failed} failed\n",
                cells(&own, time),
                cells(&other, time)
            )
        };
        self.regions.iter().map(line).collect()
    }
}

fn add(to: &mut Measured, from: &Measured) {
    for (key, stats) in from {
        merge(to.entry(key.clone()).or_default(), stats);
    }
}

fn merge(to: &mut OperationStats, from: &OperationStats) {
    to.latency.merge(&from.latency);
    to.retries += from.retries;
    to.failures += from.failures;
    to.unknown += from.unknown;
}

fn sum(measured: &Measured, which: impl Fn(&StatsKey) -> bool) -> OperationStats {
    let mut sum = OperationStats::default();
    measured.iter().filter(|(key, _)| which(key)).for_each(|(_, stats)| merge(&mut sum, stats));
    sum
}

fn table(head: &str, regions: &[String], measured: &Measured, time: Duration) -> String {
    let mut out = format!(
        "{head:<28}{:^34}  {:^34}\n{:<28}{}  {}  failed\n",
        "own region's rows", "other regions' rows", "", HEADS, HEADS,
    );
    for region in regions {
        let mut operations: Vec<&'static str> = measured.keys().filter(|k| k.region == *region).map(|k| k.operation).collect();
        operations.dedup();
        out += &row(region, measured, time, |key| key.region == *region);
        for operation in operations {
            out += &row(&format!("  {operation}"), measured, time, |key| key.region == *region && key.operation == operation);
        }
    }
    out
}

const HEADS: &str = "    per s     p50     p90     p99";

fn row(name: &str, measured: &Measured, time: Duration, which: impl Fn(&StatsKey) -> bool) -> String {
    let of = |locality| sum(measured, |key| which(key) && key.locality == locality);
    let (own, other) = (of(Locality::Own), of(Locality::Other));
    let failed = own.failures + other.failures + own.unknown + other.unknown;
    let failed = if failed == 0 { String::new() } else { failed.to_string() };
    format!("{name:<28}{}  {}  {failed:>6}", cells(&own, time), cells(&other, time)).trim_end().to_string() + "\n"
}

/// Throughput and percentiles (milliseconds).
fn cells(stats: &OperationStats, time: Duration) -> String {
    let rate = stats.latency.count() as f64 / time.as_secs_f64().max(1e-3);
    let [p50, p90, p99] = [0.5, 0.9, 0.99].map(|share| millis(&stats.latency, share));
    match stats.latency.count() {
        0 => format!("{:>9}{:>8}{:>8}{:>8}", "-", "", "", ""),
        _ => format!("{rate:>9.1}{p50:>8}{p90:>8}{p99:>8}"),
    }
}

fn millis(latency: &Histogram, share: f64) -> String {
    let millis = latency.quantile(share).unwrap_or_default().as_secs_f64() * 1000.0;
    if millis < 100.0 { format!("{millis:.1}") } else { format!("{millis:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_and_other_rows_stand_side_by_side() {
        let mut measured = Measured::new();
        let mut note = |region: &str, locality, millis: u64, failures| {
            let key = StatsKey { region: region.into(), operation: "ride", locality };
            let stats: &mut OperationStats = measured.entry(key).or_default();
            stats.latency.record(Duration::from_millis(millis));
            stats.failures += failures;
        };
        note("us", Locality::Own, 2, 0);
        note("us", Locality::Other, 150, 1);
        note("eu", Locality::Own, 3, 0);
        let text = table("now", &["us".into(), "eu".into()], &measured, Duration::from_secs(2));
        let expected = "\
now                                 own region's rows                  other regions' rows        
                                per s     p50     p90     p99      per s     p50     p90     p99  failed
us                                0.5     2.0     2.0     2.0        0.5     150     150     150       1
  ride                            0.5     2.0     2.0     2.0        0.5     150     150     150       1
eu                                0.5     3.0     3.0     3.0          -
  ride                            0.5     3.0     3.0     3.0          -
";
        let trimmed = |text: &str| text.lines().map(|l| l.trim_end().to_string()).collect::<Vec<_>>();
        assert_eq!(trimmed(&text), trimmed(expected), "\n{text}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_table_forgets_what_is_long_ago_and_a_summary_does_not() {
        let stats = Stats::new();
        let mut live = Live::new(stats.clone(), vec!["us".into()]);
        let key = StatsKey { region: "us".into(), operation: "ride", locality: Locality::Own };
        assert!(!live.has_all_regions());
        for _ in 0..30 {
            stats.success(&key, Duration::from_millis(1), 0);
            tokio::time::advance(Duration::from_secs(1)).await;
            live.tick();
        }
        let count = |measured: &Measured| measured[&key].latency.count();
        assert!(live.has_all_regions());
        assert_eq!((count(&live.window().1), count(&live.total)), (10, 30));
        assert_eq!(live.window().0, Duration::from_secs(10));
    }
}
