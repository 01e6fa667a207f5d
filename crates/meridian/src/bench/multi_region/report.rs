//! What was found, as tables, as the budgets that apply, and as CSV.

use super::run::{Bench, Run};
use super::sides::Side;
use super::{Cell, name_of};
use crate::bench::report::Spread;
use meridian_workload::histogram::Histogram;
use meridian_workload::multi_region::{Homes, Measured, Mix, Route};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::Duration;

/// The rounds of every side of a cell; ratios are to the first side.
#[derive(Clone)]
pub(super) struct Compared {
    pub cell: Cell,
    pub sides: Vec<(Side, Vec<Run>)>,
}

impl Compared {
    pub fn new(cell: Cell, sides: &[Side]) -> Compared {
        Compared { cell, sides: sides.iter().map(|side| (side.clone(), Vec::new())).collect() }
    }
    /// The first side's throughput over another's, round by round.
    fn ratio(&self, at: usize, throughput: impl Fn(&Run) -> f64) -> Spread {
        let rounds = self.sides[0].1.iter().zip(&self.sides[at].1);
        Spread::of(rounds.map(|(first, other)| throughput(first) / throughput(other).max(1e-9)))
    }
}

/// All rounds of a side together.
pub(super) fn sum(runs: &[Run]) -> Run {
    let mut sum = Run::default();
    runs.iter().for_each(|run| sum.merge(run));
    sum
}

fn in_words(Spread { median, min, max }: &Spread) -> String {
    format!("{median:.2} x ({min:.2} to {max:.2})")
}

fn millis(latency: &Histogram, share: f64) -> String {
    latency.quantile(share).map_or("-".to_string(), |d| format!("{:.0}", d.as_secs_f64() * 1e3))
}

/// The median latency of transactions over `regions` regions as a multiple of the round trip to the
/// farthest primary: the mean over the routes, each weighed by its commits. `minus` is the local
/// work that is not counted.
fn in_round_trips(run: &Run, side: &Side, regions: usize, bench: &Bench<'_>, minus: &dyn Fn(usize) -> Duration) -> Option<f64> {
    let (mut total, mut weight) = (0.0, 0.0);
    for (route, measured) in run.routes.iter().filter(|(route, _)| route.regions() == regions) {
        let farthest = bench.farthest(side.homes, route).as_secs_f64();
        let Some(p50) = measured.latency.quantile(0.5).filter(|_| farthest > 0.0) else { continue };
        let count = measured.committed() as f64;
        total += count * p50.saturating_sub(minus(route.own)).as_secs_f64() / farthest;
        weight += count;
    }
    (weight > 0.0).then(|| total / weight)
}

/// The middle of the counted round trips, and the most.
fn round_trips(trips: &BTreeMap<u32, u64>) -> String {
    let total: u64 = trips.values().sum();
    let mut seen = 0;
    let middle = trips.iter().find(|(_, count)| {
        seen += **count;
        seen * 2 >= total
    });
    match (middle, trips.last_key_value()) {
        (Some((middle, _)), Some((most, _))) => format!("{middle} ({most})"),
        _ => "-".to_string(),
    }
}

/// Latencies are of clients for whom regions matter: at the single primary they do not.
fn counts(side: &Side, route: &Route) -> bool {
    side.homes == Homes::Each || route.own != 0
}

/// A line per share and side, then why transactions were aborted.
pub(super) fn table(title: &str, all: &[Compared], bench: &Bench<'_>) -> String {
    let mut out = format!(
        "{title}\n{:>5}  {:<15}{:>7}{:>10}{:>9}  {:>11}  {:>21}  {:>21}  {:>8}  first side's tx/s by this one's (spread)\n\
         {:>5}  {:<15}{:>7}{:>10}{:>9}  {:>11}  {:>21}  {:>21}  {:>8}  in all, and in the slowest region\n",
        "share",
        "",
        "tx/s",
        "slowest",
        "aborted",
        "1 region",
        "2 regions",
        "3 regions",
        "round",
        "",
        "",
        "",
        "region's",
        "",
        "p50/p99 ms",
        "p50/p99 ms (p50/RTT)",
        "p50/p99 ms (p50/RTT)",
        "trips",
    );
    let mut causes = String::new();
    for compared in all {
        for at in 0..compared.sides.len() {
            out += &line(compared, at, bench);
            let (side, runs) = &compared.sides[at];
            let all = sum(runs).of(|_| true);
            let known = (all.committed() + all.aborted()).max(1) as f64;
            let who = format!("  {:>3}%  {:<15}", compared.cell.share, side.name);
            for (abort, count) in &all.aborts {
                let percent = *count as f64 * 100.0 / known;
                let _ = writeln!(causes, "{who} {percent:>5.1}% {} {}", abort.sqlstate, abort.reason);
            }
            if all.unknown > 0 {
                let _ = writeln!(causes, "{who} {} with unknown outcome", all.unknown);
            }
        }
    }
    if !causes.is_empty() {
        out += "  aborted because of\n";
        out += &causes;
    }
    out
}

/// One side of a cell.
fn line(compared: &Compared, at: usize, bench: &Bench<'_>) -> String {
    let (side, runs) = &compared.sides[at];
    let run = sum(runs);
    let least = |run: &Run| run.throughput_least(bench.running.regions.len());
    let latencies = |regions: usize| {
        let latency = run.of(|route| route.regions() == regions && counts(side, route)).latency;
        let trips = in_round_trips(&run, side, regions, bench, &|_| Duration::ZERO);
        let trips = trips.filter(|_| regions > 1).map_or(String::new(), |r| format!(" ({r:.2})"));
        format!("{}/{}{trips}", millis(&latency, 0.5), millis(&latency, 0.99))
    };
    let ratio = |throughput: &dyn Fn(&Run) -> f64| in_words(&compared.ratio(at, throughput));
    let ratios = match at {
        0 => String::new(),
        _ => format!("{}, {}", ratio(&Run::throughput), ratio(&least)),
    };
    let line = format!(
        "{:>4}%  {:<15}{:>7.0}{:>10.1}{:>8.1}%  {:>11}  {:>21}  {:>21}  {:>8}  {ratios}",
        compared.cell.share,
        side.name,
        run.throughput(),
        least(&run),
        run.abort_share() * 100.0,
        latencies(1),
        latencies(2),
        latencies(3),
        round_trips(&run.tally.round_trips)
    );
    format!("{}\n", line.trim_end())
}

/// What each attempt of a repeated transaction over regions came to.
pub(super) fn retries(compared: &Compared) -> String {
    let mut out = format!(
        "What an abort teaches the next attempt: rmw, {} hot rows, {} %, repeated by the server; transactions that touch other regions\n\
         {:<38}{:>7}  {:>26}  {:>14}\n{:<38}{:>7}  {:>8}{:>9}{:>9}  {:>14}\n",
        compared.cell.hot,
        compared.cell.share,
        "",
        "tx/s",
        "aborted in attempt",
        "attempts",
        "",
        "",
        "1st",
        "2nd",
        "later",
        "per commit"
    );
    for (side, runs) in &compared.sides {
        let run = sum(runs);
        let share = |from: u32, to: u32| {
            let some = run.tally.attempts.range(from..=to).map(|(_, a)| *a);
            let (committed, aborted) = some.fold((0, 0), |(c, a), x| (c + x.committed, a + x.aborted));
            let total = committed + aborted;
            if total == 0 { "-".to_string() } else { format!("{:.1}%", aborted as f64 * 100.0 / total as f64) }
        };
        let committed: u64 = run.tally.attempts.values().map(|a| a.committed).sum();
        let attempts: u64 = run.tally.attempts.values().map(|a| a.committed + a.aborted).sum();
        let _ = writeln!(
            out,
            "{:<38}{:>7.0}  {:>8}{:>9}{:>9}  {:>14.3}",
            side.name,
            run.throughput(),
            share(0, 0),
            share(1, 1),
            share(2, u32::MAX),
            attempts as f64 / committed.max(1) as f64
        );
    }
    out
}

/// The budgets of the design that this measures, for the first side of every cell that writes.
pub(super) fn budgets(all: &[Compared], bench: &Bench<'_>) -> String {
    let mut out = String::from("Budgets (design: performance), Meridian's side\n");
    let mut trips: BTreeMap<u32, u64> = BTreeMap::new();
    let several = |c: &&Compared| c.cell.mix != Mix::ReadOnly && c.cell.share > 0;
    for compared in all.iter().filter(several) {
        sum(&compared.sides[0].1).tally.round_trips.iter().for_each(|(n, count)| *trips.entry(*n).or_default() += count);
    }
    let (total, one) = (trips.values().sum::<u64>(), trips.get(&1).copied().unwrap_or(0));
    let _ = writeln!(
        out,
        "  one cross-region round trip: {one} of {total} transactions over regions, of the mixes that write; by count {trips:?}"
    );
    for compared in all.iter().filter(several) {
        let (side, runs) = &compared.sides[0];
        let run = sum(runs);
        let local = |own: usize| {
            let alone = run.routes.iter().find(|(route, _)| route.own == own && route.regions() == 1);
            alone.and_then(|(_, m)| m.latency.quantile(0.5)).unwrap_or_default()
        };
        let of = |regions| in_round_trips(&run, side, regions, bench, &local).map_or("-".to_string(), |r| format!("{r:.2}"));
        let _ = writeln!(
            out,
            "  (p50 - local p50) / RTT, at most 1.05: {}, {} hot, {} %: 2 regions {}, 3 regions {}",
            name_of(compared.cell.mix),
            compared.cell.hot,
            compared.cell.share,
            of(2),
            of(3)
        );
    }
    for compared in all.iter().filter(|c| c.cell.share > 0) {
        let is_alone = |c: &&Compared| c.cell == Cell { share: 0, ..compared.cell };
        let Some(alone) = all.iter().find(is_alone) else { continue };
        // Of each round, like all ratios: a round in which the machine was busy with something else
        // is one of several.
        let p99 = |run: &Run| run.of(|route| route.regions() == 1).latency.quantile(0.99).unwrap_or_default().as_secs_f64();
        let ratio = |at: usize| {
            let rounds = compared.sides[at].1.iter().zip(&alone.sides[at].1);
            Spread::of(rounds.map(|(run, alone)| p99(run) / p99(alone).max(1e-6)))
        };
        let ratios: Vec<String> = (0..compared.sides.len())
            .filter(|at| compared.sides[*at].0.homes == Homes::Each)
            .map(|at| format!("{} {}", compared.sides[at].0.name, in_words(&ratio(at))))
            .collect();
        let _ = writeln!(
            out,
            "  local p99 with {} % by that with 0 %, at most 1.5: {}, {} hot: {}",
            compared.cell.share,
            name_of(compared.cell.mix),
            compared.cell.hot,
            ratios.join(", ")
        );
    }
    out
}

/// Lines for every turn: all of it, each number of regions touched, and the clients of each region
/// (from 1).
pub(super) fn csv(all: &[Compared]) -> String {
    let mut out = String::from(
        "mix,hot,share_percent,side,round,regions,clients,seconds,committed,aborted,unknown,p50_micros,p99_micros,round_trips\n",
    );
    for compared in all {
        let Cell { mix, hot, share } = compared.cell;
        for (side, runs) in &compared.sides {
            for (round, run) in runs.iter().enumerate() {
                let trips: Vec<String> = run.tally.round_trips.iter().map(|(n, count)| format!("{n}:{count}")).collect();
                let head = format!("{},{hot},{share},{},{}", name_of(mix), side.name, round + 1);
                let mut line = |regions: &str, clients: &str, measured: &Measured, trips: &str| {
                    let micros = |share| measured.latency.quantile(share).unwrap_or_default().as_micros();
                    let _ = writeln!(
                        out,
                        "{head},{regions},{clients},{:.2},{},{},{},{},{},{trips}",
                        run.time.as_secs_f64(),
                        measured.committed(),
                        measured.aborted(),
                        measured.unknown,
                        micros(0.5),
                        micros(0.99),
                    );
                };
                line("all", "all", &run.of(|_| true), &trips.join(" "));
                let counts: BTreeSet<usize> = run.routes.keys().map(Route::regions).collect();
                for regions in counts {
                    line(&regions.to_string(), "all", &run.of(|route| route.regions() == regions), "");
                }
                let owns: BTreeSet<usize> = run.routes.keys().map(|route| route.own).collect();
                for own in owns {
                    line("all", &(own + 1).to_string(), &run.of(|route| route.own == own), "");
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::sides::{BASELINES, RETRIES};
    use super::*;
    use meridian_node::{Attempts, Tally};

    fn run(commits: u64, millis: u64) -> Run {
        let mut measured = Measured::default();
        (0..commits).for_each(|_| measured.latency.record(Duration::from_millis(millis)));
        let attempts = BTreeMap::from([(0, Attempts { committed: 3, aborted: 1 }), (1, Attempts { committed: 1, aborted: 0 })]);
        let tally = Tally { round_trips: BTreeMap::from([(1, 2), (7, 1)]), attempts };
        Run { time: Duration::from_secs(1), routes: BTreeMap::from([(Route { own: 0, others: vec![1] }, measured)]), tally }
    }

    #[test]
    fn ratios_are_of_rounds_and_each_turn_has_its_lines() {
        let cell = Cell { mix: Mix::ReadModifyWrite, hot: 10, share: 50 };
        let mut compared = Compared::new(cell, &BASELINES[..2]);
        compared.sides[0].1 = vec![run(100, 90), run(300, 90)];
        compared.sides[1].1 = vec![run(50, 400), run(100, 400)];
        assert_eq!(compared.ratio(1, Run::throughput), Spread { median: 2.5, min: 2.0, max: 3.0 });
        let csv = csv(&[compared]);
        assert_eq!(csv.lines().count(), 1 + 4 * 3, "{csv}");
        assert!(csv.contains("rmw,10,50,coordinator,2,all,all,1.00,100,0,0,"), "{csv}");
    }

    #[test]
    fn the_middle_and_the_most_round_trips_are_told() {
        assert_eq!(round_trips(&BTreeMap::from([(1, 5), (4, 5), (9, 1)])), "4 (9)");
        assert_eq!(round_trips(&BTreeMap::new()), "-");
    }

    #[test]
    fn attempts_are_told_apart() {
        let cell = Cell { mix: Mix::ReadModifyWrite, hot: 10, share: 50 };
        let mut compared = Compared::new(cell, &RETRIES[..1]);
        compared.sides[0].1 = vec![run(4, 90)];
        let text = retries(&compared);
        assert!(text.contains("25.0%     0.0%        -           1.250"), "{text}");
    }
}
