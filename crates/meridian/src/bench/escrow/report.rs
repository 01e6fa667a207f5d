//! What the bench found: a table for each bound, and a line of CSV for each turn and site.

use super::modes::Mode;
use super::oracle::Outcome;
use super::run::{Tally, Turn};
use crate::bench::cluster::over_regions;
use crate::bench::latencies::millis;
use crate::bench::report::Spread;
use meridian_workload::histogram::Histogram;
use std::fmt::Write;
use std::time::Duration;

const SHARES: [f64; 4] = [0.5, 0.9, 0.95, 0.99];

/// All turns of the modes with one bound.
pub(super) struct Compared {
    pub limit: i64,
    pub oracle: Outcome,
    pub modes: Vec<(Mode, Vec<Turn>)>,
}

impl Compared {
    /// Of each turn of a mode, its successes by those of the oracle.
    fn of_oracle(&self, turns: &[Turn]) -> Option<Spread> {
        spread(turns.iter().map(|turn| turn.sum().in_time as f64 / self.oracle.done.max(1) as f64))
    }

    /// Of each round, the escrow column's successes by the mode's.
    fn of_escrow(&self, turns: &[Turn]) -> Option<Spread> {
        let (_, escrow) = self.modes.iter().find(|(mode, _)| *mode == Mode::Escrow)?;
        let ratio = |(mine, theirs): (&Turn, &Turn)| mine.sum().in_time as f64 / theirs.sum().in_time.max(1) as f64;
        spread(escrow.iter().zip(turns).map(ratio))
    }

    /// A line for each mode: medians over the rounds, sums of what went wrong.
    pub fn table(&self) -> String {
        let mut out = format!(
            "{:<18}{:>8}{:>18}{:>22}{:>10}{:>8}{:>10}{:>10}  {:<24}{:>8}\n",
            "",
            "per s",
            "by the oracle's",
            "escrow by this one",
            "rejected",
            "errors",
            "in doubt",
            "unserved",
            "p50/p90/p95/p99 ms",
            "retries"
        );
        for (mode, turns) in &self.modes {
            let per_second = spread(turns.iter().map(Turn::throughput)).map_or(0.0, |s| s.median);
            let sum = sum(turns);
            let by_escrow = if *mode == Mode::Escrow { None } else { self.of_escrow(turns) };
            let _ = write!(
                out,
                "{:<18}{per_second:>8.1}{:>18}{:>22}{:>10}{:>8}{:>10}{:>10}  {:<24}{:>8}",
                mode.name(),
                cell(self.of_oracle(turns), 3),
                cell(by_escrow, 2),
                sum.rejected,
                sum.failed,
                sum.unknown[0] + sum.unknown[1],
                sum.unserved,
                quantiles(&sum.latency),
                sum.retries
            );
            out.push('\n');
        }
        out
    }
}

fn sum(turns: &[Turn]) -> Tally {
    let mut sum = Tally::default();
    turns.iter().for_each(|turn| sum.add(&turn.sum()));
    sum
}

fn spread(values: impl Iterator<Item = f64>) -> Option<Spread> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| Spread::of(values))
}

fn cell(spread: Option<Spread>, digits: usize) -> String {
    match spread {
        None => "-".to_string(),
        Some(Spread { median, min, max }) if min == max => format!("{median:.digits$}"),
        Some(Spread { median, min, max }) => format!("{median:.digits$} ({min:.digits$}-{max:.digits$})"),
    }
}

fn quantiles(latency: &Histogram) -> String {
    SHARES.map(|share| millis(latency, share)).join("/")
}

/// What a turn gave, in a line or more.
pub(super) fn turn(mode: Mode, round: u32, turn: &Turn, oracle: &Outcome) -> String {
    let sum = turn.sum();
    let mut out = format!(
        "{}, round {round}: {} acquired, {} released, {} rejected, {} not sent, {} unserved, {} failed; {:.1}/s, {:.3} of the oracle's; \
         p50/p90/p95/p99 {} ms\n",
        mode.name(),
        sum.acquired,
        sum.released,
        sum.rejected,
        sum.not_sent,
        sum.unserved,
        sum.failed,
        turn.throughput(),
        sum.in_time as f64 / oracle.done.max(1) as f64,
        quantiles(&sum.latency)
    );
    let tenths: Vec<String> = sum.tenths.iter().map(u64::to_string).collect();
    let _ = writeln!(out, "  successes by tenths of the time: {}", tenths.join(" "));
    if sum.reads.count() > 0 {
        let _ = writeln!(out, "  {} exact reads, p50/p90/p95/p99 {} ms", sum.reads.count(), quantiles(&sum.reads));
    }
    if let Some(borrowed) = turn.borrowed {
        let _ = writeln!(out, "  tokens borrowed {borrowed} times");
    }
    let _ = writeln!(
        out,
        "  transactions with round trips to other regions (rounds of redistribution are not counted): {}",
        over_regions(&turn.counted)
    );
    let is_told = |name: &str| name.starts_with("escrow.") || name.starts_with("primary.waits.");
    for (name, count) in turn.counted.iter().filter(|(name, count)| is_told(name) && **count > 0) {
        let _ = writeln!(out, "  {name}: {count}");
    }
    for (code, (count, first)) in &sum.errors {
        let _ = writeln!(out, "  {count} x {code}: {first}");
    }
    for violation in &turn.violations {
        let _ = writeln!(out, "  VIOLATED: {violation}");
    }
    out.trim_end().to_string()
}

pub(super) const CSV_HEAD: &str = "infeasible_percent,limit,oracle_done,oracle_rejected,mode,round,site,seconds,acquired,released,in_time,\
rejected,failed,unknown,not_sent,unserved,retries,borrowed,waited_for_regions,p50_micros,p90_micros,p95_micros,p99_micros,reads,\
read_p50_micros,read_p99_micros,tenths";

/// A line for all sites together and one for each, behind a prefix that ends with a comma. What is
/// counted for all together alone is empty in the others.
pub(super) fn csv(prefix: &str, mode: Mode, round: u32, turn: &Turn, sites: &[String]) -> String {
    let mut out = String::new();
    let all = [("all", turn.sum())];
    let each = sites.iter().map(String::as_str).zip(turn.sites.iter().cloned());
    for (name, t) in all.into_iter().chain(each) {
        let whole = |count: Option<u64>| count.filter(|_| name == "all").map_or(String::new(), |count| count.to_string());
        let _ = write!(
            out,
            "{prefix}{},{round},{name},{:.1},{},{},{},{},{},{},{},{},{},{},{}",
            mode.name(),
            turn.time.as_secs_f64(),
            t.acquired,
            t.released,
            t.in_time,
            t.rejected,
            t.failed,
            t.unknown[0] + t.unknown[1],
            t.not_sent,
            t.unserved,
            t.retries,
            whole(turn.borrowed),
            whole(Some(over_regions(&turn.counted)))
        );
        let micros = |latency: &Histogram, share| latency.quantile(share).map_or(Duration::ZERO, |d| d).as_micros();
        SHARES.iter().for_each(|share| out += &format!(",{}", micros(&t.latency, *share)));
        let tenths: Vec<String> = t.tenths.iter().map(u64::to_string).collect();
        let reads = (micros(&t.reads, 0.5), micros(&t.reads, 0.99));
        let _ = writeln!(out, ",{},{},{},{}", t.reads.count(), reads.0, reads.1, tenths.join(" "));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn turn_of(in_time: u64) -> Turn {
        let mut tally = Tally { acquired: in_time, in_time, rejected: 2, ..Tally::default() };
        (1..=100).for_each(|n| tally.latency.record(Duration::from_millis(n)));
        let counted = [
            ("escrow.something", 3),
            ("escrow.nothing", 0),
            ("txn.regions.committed.retried.round_trips_0", 5),
            ("txn.regions.committed.retried.round_trips_2", 7),
        ];
        let counted = counted.iter().map(|(name, count)| (name.to_string(), *count)).collect::<BTreeMap<_, _>>();
        Turn { time: Duration::from_secs(10), sites: vec![tally], counted, borrowed: Some(4), violations: Vec::new() }
    }

    #[test]
    fn ratios_are_of_rounds() {
        let compared = Compared {
            limit: 9,
            oracle: Outcome { done: 1_000, ..Outcome::default() },
            modes: vec![
                (Mode::Escrow, vec![turn_of(900), turn_of(800)]),
                (Mode::Region, vec![turn_of(90), turn_of(40)]),
                (Mode::Zone, Vec::new()),
            ],
        };
        let table = compared.table();
        let line = |name: &str| table.lines().find(|l| l.starts_with(name)).unwrap_or_default().to_string();
        assert!(line("escrow").contains("85.0") && line("escrow").contains("0.850 (0.800-0.900)"), "{table}");
        assert!(line("region").contains("15.00 (10.00-20.00)") && line("region").contains(" 4 "), "{table}");
        assert!(line("zone").contains("0.0"), "{table}");
    }

    #[test]
    fn latencies_are_told_as_percentiles() {
        let text = turn(Mode::Demarcation, 1, &turn_of(500), &Outcome { done: 1_000, ..Outcome::default() });
        for part in ["0.500 of the oracle's", "borrowed 4 times", "are not counted): 7", "escrow.something: 3"] {
            assert!(text.contains(part), "{part:?} is missing in {text}");
        }
        assert!(!text.contains("escrow.nothing") && !text.contains("VIOLATED"), "{text}");
        // The buckets of a histogram are 3 % wide at most.
        let latency = turn_of(1).sum().latency;
        for (share, exact) in SHARES.iter().zip([50.0, 90.0, 95.0, 99.0]) {
            let got = latency.quantile(*share).expect("counted").as_secs_f64() * 1e3;
            assert!(got >= exact && got <= exact * 1.04, "p{share}: {got}");
        }
    }

    #[test]
    fn a_turn_is_a_line_for_all_sites_and_one_for_each() {
        let csv = csv("0,9,1000,0,", Mode::Escrow, 2, &turn_of(500), &["a".to_string()]);
        let lines: Vec<&str> = csv.lines().collect();
        assert!(lines[0].starts_with("0,9,1000,0,escrow,2,all,10.0,500,0,500,2,"), "{csv}");
        assert!(lines[1].starts_with("0,9,1000,0,escrow,2,a,10.0,500,"), "{csv}");
        assert!(lines.iter().all(|line| line.split(',').count() == CSV_HEAD.split(',').count()), "{csv}");
        assert!(lines[0].contains(",4,7,") && lines[1].contains(",,,"), "{csv}");
    }
}
