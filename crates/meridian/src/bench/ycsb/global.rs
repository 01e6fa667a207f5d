//! `meridian bench global`: YCSB-A over the five regions of CockroachDB's multi-region paper (§7.1
//! and 7.3, Figures 3 and 5).
//!
//! Sides: a `GLOBAL` table, a table at home in the first region whose *latest* state is read, the
//! same with *stale* reads (bounded staleness), and *duplicates*: a table in each region, all
//! written by one transaction and each read by its own region's clients, in place of the paper's
//! indexes pinned to regions. `GLOBAL` is measured with several bounds on clocks.
//!
//! In the *uncontended* part nobody's rows are another's; in the *contended* one all clients draw
//! from one Zipf distribution, as in the paper. Budgets are of the first part; in the second what
//! is waited for is bounded by the clocks' bound.

use super::{CSV_HEAD, Claims, Turn, plot, quantiles, spread, staleness};
use crate::bench::cluster::{Running, Shape, with_cluster, write};
use crate::bench::latencies;
use clap::Args as ClapArgs;
use meridian_base::{Error, Result};
use meridian_node::Place;
use meridian_workload::histogram::Histogram;
use meridian_workload::ycsb::{Distribution, Mix, Operation, Reads, Table, Ycsb, YcsbConfig};
use meridian_workload::{Locality, StatsKey};
use parking_lot::Mutex;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// The regions of Table 1; the first one is primary.
const REGIONS: &str = "us-east1,us-west1,europe-west2,asia-northeast1,australia-southeast1";
/// Of the design: a read at a replica beside the client, and how old what it serves is besides the
/// way there.
const READ_BUDGET: Duration = Duration::from_millis(3);
const STALENESS_BUDGET: Duration = Duration::from_millis(100);
/// A box of the paper's Figure 3, and its tail.
const SHARES: [f64; 4] = [0.25, 0.5, 0.75, 0.99];
/// Rows that were loaded are in every replica's past.
const SETTLE: Duration = Duration::from_secs(2);

#[derive(ClapArgs)]
pub struct Args {
    /// Measured seconds of each side and part. The paper has 50,000 operations of each client.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Clients in each region. The paper has ten.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    clients: u32,
    /// Rows for each region. The paper has 100,000 in all.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(100..))]
    rows: u64,
    /// Bounds on the differences of clocks, in milliseconds. Other sides than GLOBAL run with the
    /// first.
    #[arg(long, value_delimiter = ',', default_value = "250,50,10", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    max_offset: Vec<u64>,
    /// Reads in each region whose round trips are counted.
    #[arg(long, default_value_t = 5)]
    samples: u32,
    /// Where the figures are written.
    #[arg(long, default_value = "bench-global.csv")]
    csv: PathBuf,
    /// A directory for plots and points of the distributions.
    #[arg(long)]
    plots: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq)]
struct Side {
    name: &'static str,
    table: Table,
    reads: Reads,
}

const GLOBAL: Side = Side { name: "GLOBAL", table: Table::Global, reads: Reads::Latest };
const OTHERS: [Side; 3] = [
    Side { name: "REGIONAL latest", table: Table::Regional, reads: Reads::Latest },
    Side { name: "REGIONAL stale", table: Table::Regional, reads: Reads::Bounded },
    Side { name: "duplicates", table: Table::Duplicates, reads: Reads::Latest },
];

/// What all clusters have found.
struct Report {
    claims: Claims,
    csv: String,
    reads: Vec<plot::Line>,
    writes: Vec<plot::Line>,
    sound: bool,
}

pub async fn run(args: Args) -> Result<ExitCode> {
    let args = Arc::new(args);
    let csv = format!("side,max_offset_ms,part,{CSV_HEAD}\n");
    let report = Report { claims: Claims::default(), csv, reads: Vec::new(), writes: Vec::new(), sound: true };
    let report = Arc::new(Mutex::new(report));
    for (at, offset) in args.max_offset.iter().enumerate() {
        let shape = Shape { max_offset: Duration::from_millis(*offset), ..Shape::of(REGIONS) };
        say!(
            "\nmax_offset {offset} ms, {} clients in each region, {} rows, {} s for each line",
            args.clients,
            args.rows * 5,
            args.seconds
        );
        let (args, report) = (args.clone(), report.clone());
        let (offset, is_first) = (*offset, at == 0);
        let code = with_cluster(shape, |running| {
            Box::pin(async move {
                let bench = Bench { args: &args, running, offset: Duration::from_millis(offset), report: &report };
                bench.run(is_first).await.map(|()| ExitCode::SUCCESS)
            })
        });
        if code.await? != ExitCode::SUCCESS {
            return Ok(ExitCode::FAILURE);
        }
    }
    let report = report.lock();
    report.finish(&args)
}

fn ms(latency: Duration) -> String {
    format!("{:.1} ms", latency.as_secs_f64() * 1e3)
}

impl Report {
    fn finish(&self, args: &Args) -> Result<ExitCode> {
        say!(
            "The paper: GLOBAL reads below 3 ms from anywhere, writes 500 to 600 ms with 250 ms and 250 with 10 ms; REGIONAL below 3 ms beside the \
             primary, 100 to 200 ms elsewhere; stale reads below 3 ms (p99 below 5); duplicates: reads below 3 ms up to the 90th percentile, writes \
             200 to 500 ms, tails of seconds.\n\nBudgets\n{}",
            self.claims.lines()
        );
        say!("Rows and values are as clients know them: {}", if self.sound { "yes" } else { "NO" });
        write(&args.csv, &self.csv)?;
        if let Some(dir) = &args.plots {
            std::fs::create_dir_all(dir).map_err(|e| Error::fatal(format!("cannot make {}: {e}", dir.display())))?;
            for (name, lines) in [("global-reads", &self.reads), ("global-writes", &self.writes)] {
                write(&dir.join(format!("{name}.svg")), &plot::svg(name, lines))?;
                write(&dir.join(format!("{name}.csv")), &plot::csv(lines))?;
            }
        }
        say!("The figures are in {}.", args.csv.display());
        // A budget that is missed is a figure, not a mistake.
        Ok(if self.sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

struct Bench<'a> {
    args: &'a Args,
    running: &'a Running,
    offset: Duration,
    report: &'a Mutex<Report>,
}

impl Bench<'_> {
    async fn run(&self, is_first: bool) -> Result<()> {
        say!(
            "{:<17}{:<13}{:>26}{:>26}{:>26}{:>26}  trips of reads",
            "p25/50/75/99 ms",
            "",
            "reads, primary region",
            "reads, elsewhere",
            "writes, primary region",
            "writes, elsewhere"
        );
        self.side(GLOBAL).await?;
        if is_first {
            for side in OTHERS {
                self.side(side).await?;
            }
            self.staleness().await?;
        }
        Ok(())
    }

    async fn side(&self, side: Side) -> Result<()> {
        let clients = self.args.clients * self.running.regions.len() as u32;
        let config = |distribution, disjoint: Option<u32>| YcsbConfig {
            mix: Mix::A,
            table: side.table,
            distribution,
            reads: side.reads,
            rows_per_region: self.args.rows,
            // Where a row's key was made is of no account here.
            own_share: disjoint.map(|_| 0.5),
            disjoint,
        };
        for (part, config) in
            [("uncontended", config(Distribution::Uniform, Some(clients))), ("contended", config(Distribution::Zipfian, None))]
        {
            let work = Arc::new(Ycsb::new(config));
            let context = self.running.context(1);
            super::set_up(self.running, &work, &context).await?;
            tokio::time::sleep(SETTLE).await;
            let trips = self.read_trips(&work, &context).await?;
            let time = Duration::from_secs(self.args.seconds.into());
            let turn = super::turn(self.running, &work, &context, self.args.clients, time).await?;
            self.show(side, part, &turn, &trips);
        }
        Ok(())
    }

    /// Those of reads, from every region.
    async fn read_trips(&self, work: &Ycsb, context: &meridian_workload::Context) -> Result<Vec<u32>> {
        let mut trips = Vec::new();
        for region in &self.running.regions {
            for locality in [Locality::Own, Locality::Other] {
                trips.extend(work.count_round_trips(context, region, Operation::Read, locality, self.args.samples).await?);
            }
        }
        Ok(trips)
    }

    fn show(&self, side: Side, part: &str, turn: &Turn, trips: &[u32]) {
        let primary = &self.running.regions[0];
        let latency = |operation: Operation, at_primary: Option<bool>| -> Histogram {
            let of =
                |key: &StatsKey| key.operation == operation.name() && at_primary.is_none_or(|at| (key.region == *primary) == at);
            latencies::sum(&turn.measured, of).latency
        };
        let cell = |operation, at_primary| format!("{:>26}", quantiles(&latency(operation, Some(at_primary)), &SHARES));
        say!(
            "{:<17}{part:<13}{}{}{}{}  {}",
            side.name,
            cell(Operation::Read, true),
            cell(Operation::Read, false),
            cell(Operation::Update, true),
            cell(Operation::Update, false),
            spread(trips)
        );
        let offset = self.offset.as_millis();
        let name = if side == GLOBAL { format!("GLOBAL {offset} ms") } else { side.name.to_string() };
        let mut report = self.report.lock();
        report.sound &= turn.violations.is_empty();
        report.csv += &super::csv(&format!("{},{offset},{part},", side.name), &turn.measured, turn.time);
        let lines = |operation| plot::Line { name: format!("{name}, {part}"), latency: latency(operation, None) };
        report.reads.push(lines(Operation::Read));
        report.writes.push(lines(Operation::Update));
        self.claim(&mut report.claims, side, part, trips, &latency(Operation::Read, None));
        if side == GLOBAL {
            for region in &self.running.regions {
                let of = |key: &StatsKey| key.operation == Operation::Update.name() && key.region == *region;
                self.claim_writes(&mut report.claims, part, region, &latencies::sum(&turn.measured, of).latency);
            }
        }
    }

    fn claim(&self, claims: &mut Claims, side: Side, part: &str, trips: &[u32], reads: &Histogram) {
        let name = format!("{} with {} ms, {part}", side.name, self.offset.as_millis());
        let p99 = reads.quantile(0.99).unwrap_or_default();
        if side.reads == Reads::Latest && side != GLOBAL {
            return;
        }
        claims.claim(
            !trips.is_empty() && trips.iter().all(|n| *n == 0),
            format!("{name}: a read takes {} round trips, 0 allowed", spread(trips)),
        );
        let bound = if part == "contended" && side == GLOBAL { READ_BUDGET + self.offset } else { READ_BUDGET };
        claims.claim(p99 <= bound, format!("{name}: p99 of reads {}, at most {}", ms(p99), ms(bound)));
    }

    /// A writer waits until its timestamp has passed, which the primary draws a lead ahead when it
    /// has the transaction.
    fn claim_writes(&self, claims: &mut Claims, part: &str, region: &str, writes: &Histogram) {
        let p50 = writes.quantile(0.5).unwrap_or_default();
        let bound = self.lead() + self.offset + self.way_from_primary(region);
        let offset = self.offset.as_millis();
        claims.claim(
            p50 <= bound,
            format!(
                "GLOBAL with {offset} ms, {part}: p50 of writes in {region} {}, at most the lead, max_offset and the way to the primary, {}",
                ms(p50),
                ms(bound)
            ),
        );
    }

    fn way_from_primary(&self, region: &str) -> Duration {
        let place = |region: &str| Place { region: region.to_string(), zone: "a".to_string() };
        self.running.distances.round_trip(&place(&self.running.regions[0]), &place(region)) / 2
    }
    /// About what GLOBAL timestamps are ahead by: `max_offset`, the way to the farthest replica,
    /// and a tenth of a second for the interval of promises and for what is not measured.
    fn lead(&self) -> Duration {
        self.offset + self.farthest() + Duration::from_millis(100)
    }
    /// The longest way from the primary region.
    fn farthest(&self) -> Duration {
        self.running.regions.iter().map(|r| self.way_from_primary(r)).max().unwrap_or_default()
    }

    async fn staleness(&self) -> Result<()> {
        let time = Duration::from_secs(self.args.seconds.into());
        let ages = staleness::measure(self.running, &self.running.context(2), time).await?;
        say!(
            "Age of what bounded-staleness reads get, p50/p99 ms (the row is written every few milliseconds in the primary region)"
        );
        for (region, age) in self.running.regions.iter().zip(&ages) {
            let way = self.way_from_primary(region);
            let p50 = age.quantile(0.5).unwrap_or_default();
            say!("  {region:<22}{:>12}   one-way delay {:.1} ms", quantiles(age, &[0.5, 0.99]), way.as_secs_f64() * 1e3);
            let (old, most) = (p50.as_secs_f64() * 1e3, (way + STALENESS_BUDGET).as_secs_f64() * 1e3);
            let holds = age.count() > 0 && p50 <= way + STALENESS_BUDGET;
            self.report.lock().claims.claim(holds, format!("staleness in {region}: p50 {old:.0} ms, at most {most:.0}"));
        }
        Ok(())
    }
}
