//! `meridian bench locality`: YCSB on `REGIONAL BY ROW` tables over three regions (CockroachDB's
//! multi-region paper, §7.2, Figure 4).
//!
//! YCSB-B with a locality of access: *unoptimized* looks for a row in all regions at once,
//! *default* in the client's own first, *rehoming* lets rows follow their updates, *baseline* is
//! told by every statement where a row is. YCSB-D: inserts whose region is *computed* from the key,
//! is the client's by *default*, or is told (*baseline*). Latencies are the machine's and the
//! injected distances'; what the verdict is about are counts.

use super::{CSV_HEAD, Claims, PARTS, Turn, plot, spread};
use crate::bench::cluster::{Running, Shape, with_cluster, write};
use crate::bench::latencies;
use crate::demo::REGIONS_DEFAULT;
use clap::Args as ClapArgs;
use meridian_base::Result;
use meridian_workload::ycsb::{Distribution, Mix, Operation, Reads, Table, Ycsb, YcsbConfig};
use meridian_workload::{Context, Locality, WallTimer};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// The session setting that turns locality-optimized search off.
const SEARCH: &str = "locality_optimized_partitioned_index_scan";
/// What latencies are shown of.
const SHARES: [f64; 3] = [0.5, 0.9, 0.99];

#[derive(ClapArgs)]
pub struct Args {
    /// Measured seconds of each side. The paper has ten minutes.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Clients in each region.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    clients: u32,
    /// Rows of each region for each client, whose own they are. Few, so that the time is enough for
    /// each to come home.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..))]
    rows_per_client: u64,
    /// Localities of access of YCSB-B, in percent.
    #[arg(long, value_delimiter = ',', default_value = "95,50", value_parser = clap::value_parser!(u8).range(..=100))]
    locality: Vec<u8>,
    /// Operations of each kind in each region whose round trips are counted, before clients work.
    #[arg(long, default_value_t = 5)]
    samples: u32,
    /// Where the figures are written.
    #[arg(long, default_value = "bench-locality.csv")]
    csv: PathBuf,
    /// A directory for plots and points of the distributions.
    #[arg(long)]
    plots: Option<PathBuf>,
}

/// One shape of the table, as the paper calls it.
#[derive(Clone, Copy)]
struct Side {
    name: &'static str,
    table: Table,
    is_near_first: bool,
}

const fn side(name: &'static str, table: Table) -> Side {
    Side { name, table, is_near_first: true }
}

const READERS: [Side; 4] = [
    Side { name: "unoptimized", table: Table::ByRow, is_near_first: false },
    side("default", Table::ByRow),
    side("rehoming", Table::Rehoming),
    side("baseline", Table::Partitioned),
];
const INSERTERS: [Side; 3] =
    [side("computed", Table::Computed), side("default", Table::ByRow), side("baseline", Table::Partitioned)];

pub async fn run(args: Args) -> Result<ExitCode> {
    with_cluster(Shape::of(REGIONS_DEFAULT), |running| Box::pin(async move { bench(&args, running).await })).await
}

async fn bench(args: &Args, running: &Running) -> Result<ExitCode> {
    say!(
        "{} clients in each region, uniform keys, nobody's rows another's: {} per client in each region. {} s for each side.\n\
         Round trips to other regions are those that EXPLAIN ANALYZE counts for single operations, the commit's included.",
        args.clients,
        args.rows_per_client,
        args.seconds
    );
    let bench = Bench { args, running };
    let mut claims = Claims::default();
    let mut csv = format!("mix,side,locality_percent,{CSV_HEAD}\n");
    let mut sound = true;
    for percent in &args.locality {
        say!("\nYCSB-B, {percent} % of the operations on rows first written in the client's region\n{}", head("update"));
        let mut lines = Vec::new();
        for side in READERS {
            let done = bench.side(side, Mix::B, *percent).await?;
            claim_reads(&mut claims, side, *percent, &done);
            csv += &done.show(side, Operation::Update, &format!("b,{},{percent},", side.name), &mut lines);
            sound &= done.turn.violations.is_empty();
        }
        bench.plot(&format!("ycsb-b-{percent}"), &lines)?;
    }
    say!(
        "The paper (Figure 4a): unoptimized 150 to 200 ms for everything; default local for what is local; rehoming local for everything."
    );

    say!("\nYCSB-D, all operations on rows of the client's region\n{}", head("insert"));
    let mut lines = Vec::new();
    for side in INSERTERS {
        let done = bench.side(side, Mix::D, 100).await?;
        claim_inserts(&mut claims, side, &done);
        csv += &done.show(side, Operation::Insert, &format!("d,{},100,", side.name), &mut lines);
        sound &= done.turn.violations.is_empty();
    }
    bench.plot("ycsb-d", &lines)?;
    say!("The paper (Figure 4b): inserts local with computed and baseline; with default the round trip to another region.");

    say!("\nWhat is counted\n{}", claims.lines());
    say!("Rows, values and acknowledged inserts are as clients know them: {}", if sound { "yes" } else { "NO" });
    write(&args.csv, &csv)?;
    say!("The figures are in {}.", args.csv.display());
    Ok(if sound && claims.hold() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Round trips of single operations.
#[derive(Default)]
struct Trips {
    read_own: Vec<u32>,
    read_other: Vec<u32>,
    write_own: Vec<u32>,
    write_other: Vec<u32>,
}

struct Done {
    turn: Turn,
    trips: Trips,
}

struct Bench<'a> {
    args: &'a Args,
    running: &'a Running,
}

impl Bench<'_> {
    fn context(&self, side: Side) -> Context {
        match side.is_near_first {
            true => self.running.context(1),
            false => {
                let connector = self.running.connector.with_setting(SEARCH, "off");
                Context::new(Arc::new(connector), Arc::new(WallTimer::start()), 1)
            }
        }
    }

    async fn side(&self, side: Side, mix: Mix, percent: u8) -> Result<Done> {
        let slots = self.args.clients * self.running.regions.len() as u32;
        let work = Arc::new(Ycsb::new(YcsbConfig {
            mix,
            table: side.table,
            distribution: Distribution::Uniform,
            reads: Reads::Latest,
            rows_per_region: self.args.rows_per_client * u64::from(slots),
            own_share: Some(f64::from(percent) / 100.0),
            disjoint: Some(slots),
        }));
        let context = self.context(side);
        super::set_up(self.running, &work, &context).await?;
        let mut trips = Trips::default();
        let write = if mix == Mix::D { Operation::Insert } else { Operation::Update };
        for region in &self.running.regions {
            let count = |operation, locality| work.count_round_trips(&context, region, operation, locality, self.args.samples);
            trips.read_own.extend(count(Operation::Read, Locality::Own).await?);
            trips.write_own.extend(count(write, Locality::Own).await?);
            if percent < 100 {
                trips.read_other.extend(count(Operation::Read, Locality::Other).await?);
                trips.write_other.extend(count(write, Locality::Other).await?);
            }
        }
        let time = Duration::from_secs(self.args.seconds.into());
        let turn = super::turn(self.running, &work, &context, self.args.clients, time).await?;
        Ok(Done { turn, trips })
    }

    fn plot(&self, name: &str, lines: &[plot::Line]) -> Result<()> {
        let Some(dir) = &self.args.plots else { return Ok(()) };
        let failed = |e| meridian_base::Error::fatal(format!("cannot make {}: {e}", dir.display()));
        std::fs::create_dir_all(dir).map_err(failed)?;
        write(&dir.join(format!("{name}.svg")), &plot::svg(name, lines))?;
        write(&dir.join(format!("{name}.csv")), &plot::csv(lines))
    }
}

fn head(write: &str) -> String {
    let cells = ["read, own", "read, other", &format!("{write}, own"), &format!("{write}, other")];
    let row = |first: &str, cells: [&str; 4]| {
        let cells: String = cells.iter().map(|c| format!("  {c:>26}")).collect();
        format!("{first:<13}{cells}")
    };
    format!("{}\n{}", row("", cells), row("", ["p50/p90/p99 ms [trips]"; 4]))
}

impl Done {
    /// Prints the side's line, adds its distributions, and returns its CSV.
    fn show(&self, side: Side, write: Operation, prefix: &str, lines: &mut Vec<plot::Line>) -> String {
        let mut line = format!("{:<13}", side.name);
        let kinds = [
            (Operation::Read, Locality::Own, &self.trips.read_own),
            (Operation::Read, Locality::Other, &self.trips.read_other),
            (write, Locality::Own, &self.trips.write_own),
            (write, Locality::Other, &self.trips.write_other),
        ];
        for (operation, locality, trips) in kinds {
            let of = |key: &meridian_workload::StatsKey| key.operation == operation.name() && key.locality == locality;
            let latency = latencies::sum(&self.turn.measured, of).latency;
            line += &format!("  {:>26}", format!("{} [{}]", super::quantiles(&latency, &SHARES), spread(trips)));
            let rows = if locality == Locality::Own { "own" } else { "other" };
            lines.push(plot::Line { name: format!("{} {} {rows}", side.name, operation.name()), latency });
        }
        say!("{line}");
        let home = self.at_home();
        if side.table == Table::Rehoming && home.iter().any(Option::is_some) {
            let shares: Vec<String> = home.iter().map(|s| s.map_or("-".to_string(), |s| format!("{:.0} %", s * 100.0))).collect();
            say!(
                "{:<13}  reads of rows first written elsewhere that found them at home, by fifths of the time: {}",
                "",
                shares.join(", ")
            );
        }
        super::csv(prefix, &self.turn.measured, self.turn.time)
    }

    /// For each part of the turn, the share of reads of others' rows that found them in the
    /// client's region.
    fn at_home(&self) -> [Option<f64>; PARTS as usize] {
        std::array::from_fn(|at| {
            let found = self.turn.found.get(at)?;
            let all = found.here + found.elsewhere;
            (all > 0).then(|| found.here as f64 / all as f64)
        })
    }

    /// Operations on rows first written elsewhere, whatever came of them.
    fn others(&self) -> u64 {
        let stats = latencies::sum(&self.turn.everything, |key| key.locality == Locality::Other);
        stats.latency.count() + stats.failures + stats.unknown
    }
}

fn all_are(counts: &[u32], expected: u32) -> bool {
    !counts.is_empty() && counts.iter().all(|count| *count == expected)
}

fn most_are(counts: &[u32], expected: u32) -> bool {
    counts.iter().filter(|count| **count == expected).count() * 2 > counts.len()
}

fn claim_reads(claims: &mut Claims, side: Side, percent: u8, done: &Done) {
    let Side { name, .. } = side;
    let (trips, others) = (&done.trips, done.others());
    let own: Vec<u32> = trips.read_own.iter().chain(&trips.write_own).copied().collect();
    let other: Vec<u32> = trips.read_other.iter().chain(&trips.write_other).copied().collect();
    if !side.is_near_first {
        claims.claim(
            all_are(&own, 1),
            format!("{name}, {percent} %: an operation on a row of its own region takes {} round trips", spread(&own)),
        );
        return;
    }
    claims.claim(
        all_are(&own, 0),
        format!("{name}, {percent} %: an operation on a row of its own region takes {} round trips", spread(&own)),
    );
    // A read of a replica that has not heard of the row's last change is repeated at the primary:
    // two, now and then. Rows that follow updates change all the time.
    if percent < 100 && side.table != Table::Rehoming {
        claims
            .claim(most_are(&other, 1), format!("{name}, {percent} %: one on a row of another region takes {}", spread(&other)));
    }
    let far = done.turn.far;
    claims.claim(
        far <= others,
        format!("{name}, {percent} %: {far} transactions waited for another region, {others} were on others' rows"),
    );
    if side.table == Table::Rehoming && percent < 100 {
        let here: u64 = done.turn.found.iter().map(|found| found.here).sum();
        let all: u64 = done.turn.found.iter().map(|found| found.here + found.elsewhere).sum();
        let text = format!("{name}, {percent} %: {here} of {all} reads of others' rows found them at home");
        claims.claim(here > 0, text);
        claims.claim(
            far < others,
            format!("{name}, {percent} %: {} operations on others' rows waited for no region", others.saturating_sub(far)),
        );
    }
}

fn claim_inserts(claims: &mut Claims, side: Side, done: &Done) {
    let (name, inserts, far) = (side.name, &done.trips.write_own, done.turn.far);
    let expected = u32::from(side.table == Table::ByRow);
    claims.claim(
        all_are(inserts, expected),
        format!("{name}: an insert takes {} round trips, {expected} expected", spread(inserts)),
    );
    claims.claim(all_are(&done.trips.read_own, 0), format!("{name}: a read takes {}", spread(&done.trips.read_own)));
    if expected == 0 {
        claims.claim(far == 0, format!("{name}: {far} transactions waited for another region"));
    }
}
