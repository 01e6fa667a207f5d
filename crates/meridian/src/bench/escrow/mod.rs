//! `meridian bench escrow`: one number that the clients of all regions change, with a bound (Samya,
//! ICDE 2021, §5).
//!
//! Five sites with Table 5's round trips; the demand for virtual machines of one region, shifted by
//! each site's time of day and compressed from five minutes to five seconds, as open-loop arrivals;
//! an oracle that says which bound makes 0, 1 or 5 % of the requests infeasible; and an escrow
//! column beside what else could hold the number, in turn, on the same nodes and the same events.
//!
//! * [`sites`]: regions, distances, times of day.
//! * [`series`]: demand by five minutes.
//! * [`demand`]: its events.
//! * [`oracle`]: the bound.
//! * [`modes`]: who is compared.
//! * [`faults`]: crashes and partitions.
//! * [`run`]: a turn.
//! * [`report`]: tables and CSV.

mod demand;
mod faults;
mod modes;
mod oracle;
mod report;
mod run;
mod series;
mod sites;

use super::cluster::{Running, Shape, with_cluster, write};
use clap::Args as ClapArgs;
use demand::{Demand, Load};
use faults::{Fault, Plan};
use meridian_base::{Error, Result};
use modes::{Making, Mode, Store};
use report::Compared;
use series::{Bin, HOUR};
use sites::Site;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// The events are of the series' last hours (§5.1.2), unless told otherwise.
const LAST_HOURS: usize = 60;

#[derive(ClapArgs)]
pub struct Args {
    /// What keeps the number.
    #[arg(
        long = "mode",
        value_enum,
        value_delimiter = ',',
        default_value = "escrow,unbounded,no-redistribution,demarcation,zone,region"
    )]
    modes: Vec<Mode>,
    /// The share of requests that are infeasible with the bound, in percent, as in 0,1,5: the bound
    /// is the least one with which a counter without delays rejects no more of them.
    #[arg(long, value_delimiter = ',', default_value = "0", value_parser = clap::value_parser!(u8).range(..=100))]
    infeasible: Vec<u8>,
    /// The bound itself, instead of one that follows from a share; at least what is in use at the
    /// start.
    #[arg(long)]
    limit: Option<i64>,
    /// The demand of one region: a CSV file with the columns t_seconds, creations, deletions and
    /// in_use, a line every 300 s. Default: one that is made up.
    #[arg(long, value_name = "FILE")]
    series: Option<PathBuf>,
    /// The hour of the series with which UTC begins. Default: where the sites' demand rises most,
    /// in the last 60.
    #[arg(long, value_name = "HOUR")]
    start: Option<f64>,
    /// Seconds of each turn.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// How many seconds the 300 of a line of the series take.
    #[arg(long, default_value_t = 5.0)]
    compress: f64,
    /// The share of the series' events, and of what is in use, that is kept.
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Exact reads in percent of all requests, in addition to the changes.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(..=95))]
    reads: u8,
    /// Sites, each a region with a node: the paper's five, and from the sixth on further ones at
    /// the same places, 1 ms from those that are there, whose demand is that of a day later.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(2..=20))]
    sites: u8,
    /// Connections of each site's clients: so many requests at once.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=512))]
    connections: u32,
    /// What goes wrong in each turn (§5.4). Successes are told by tenths of the time.
    #[arg(long, value_enum)]
    fault: Option<Fault>,
    /// Turns of each mode.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// SQL for the tables of the modes `escrow` and `unbounded` before they are used, such as an
    /// ALTER TABLE; `{table}` stands for the table's name.
    #[arg(long, value_name = "SQL")]
    prepare: Vec<String>,
    /// Make databases over all regions with PLACEMENT RESTRICTED, except that of `region`: no
    /// replicas for stale reads in other regions. The pools of `no-redistribution` and
    /// `demarcation` never have any, and on one machine they all share its cores and its disk.
    #[arg(long)]
    restricted: bool,
    /// All random choices follow from it.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where every turn is written.
    #[arg(long, default_value = "bench-escrow.csv")]
    csv: PathBuf,
}

pub async fn run(args: Args) -> Result<ExitCode> {
    let wrong = |why: &str| Err(Error::sql("22023", why.to_string()));
    if args.reads > 0 && !args.modes.iter().all(|mode| mode.is_readable()) {
        return wrong("--reads needs modes whose number is read by one statement: no-redistribution and demarcation are not");
    }
    if !(args.compress > 0.0 && args.compress <= 300.0 && args.scale > 0.0 && args.scale <= 1.0) {
        return wrong("--compress is above 0 and at most 300, --scale above 0 and at most 1");
    }
    let series = args.series.as_deref().map_or_else(|| Ok(series::synthetic()), series::load)?;
    let sites = sites::sites(args.sites.into());
    let shape = Shape {
        regions: sites.iter().map(|site| site.name.clone()).collect(),
        round_trips: sites::round_trips(&sites),
        ..Shape::of("")
    };
    with_cluster(shape, |running| Box::pin(async move { bench(&args, &series, &sites, running).await })).await
}

impl Args {
    fn load(&self, series: &[Bin], sites: &[Site]) -> Load {
        let (time, bin) = (Duration::from_secs(self.seconds.into()), Duration::from_secs_f64(self.compress));
        let rising = || demand::rising_start(series, sites, LAST_HOURS * HOUR, time, bin);
        Load {
            start: self.start.map_or_else(rising, |hour| (hour.max(0.0) * HOUR as f64) as usize % series.len()),
            time,
            bin,
            scale: self.scale,
            reads: f64::from(self.reads) / 100.0,
            seed: self.seed,
        }
    }
}

async fn bench(args: &Args, series: &[Bin], sites: &[Site], running: &Running) -> Result<ExitCode> {
    let load = args.load(series, sites);
    let demand = Demand::new(series, sites, &load);
    introduce(args, &load, &demand);
    let bench = Bench { args, running, demand: &demand, time: load.time };
    let mut csv = format!("{}\n", report::CSV_HEAD);
    let mut next_row = 1;
    let mut sound = true;
    let targets = if args.limit.is_some() { vec![None] } else { args.infeasible.iter().copied().map(Some).collect() };
    for target in targets {
        let limit = match (args.limit, target) {
            (Some(limit), _) if limit < demand.in_use() => {
                return Err(Error::sql("22023", format!("--limit is below the {} in use at the start", demand.in_use())));
            }
            (Some(limit), _) => limit,
            (None, percent) => oracle::limit_for(&demand, f64::from(percent.unwrap_or(0)) / 100.0),
        };
        let compared = bench.compare(limit, target, &mut next_row, &mut csv).await?;
        write(&args.csv, &csv)?;
        say!("\n{}", head(&compared, &demand));
        say!("{}", compared.table());
        sound &= compared.modes.iter().flat_map(|(_, turns)| turns).all(|turn| turn.violations.is_empty());
    }
    say!("Numbers at the end are what acknowledged changes add up to: {}", if sound { "yes" } else { "NO" });
    say!("Every turn is in {}.", args.csv.display());
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn introduce(args: &Args, load: &Load, demand: &Demand) {
    let source = match &args.series {
        Some(path) => format!("the series {}", path.display()),
        None => "a series that is made up, with days and weeks (--series takes a real one)".to_string(),
    };
    let count: usize = demand.sites.iter().map(Vec::len).sum();
    say!(
        "\nDemand: {source}, from hour {:.1} on, each site at its time of day; {} of its events, 300 s in {} s.\n\
         {count} requests in {} s ({:.0}/s) from {} sites, {} % of them reads; {} tokens in use at the start.\n\
         Arrivals are open-loop: latencies begin when a request is due. Of what was not served until the end they are what it had \
         waited by then. A success by the oracle's is one that was answered before the end.",
        load.start as f64 / HOUR as f64,
        args.scale,
        args.compress,
        args.seconds,
        count as f64 / load.time.as_secs_f64(),
        demand.sites.len(),
        args.reads,
        demand.in_use()
    );
}

fn head(compared: &Compared, demand: &Demand) -> String {
    let Compared { limit, oracle, .. } = compared;
    format!(
        "Bound {limit}, {} of it free at the start. The oracle, a counter without delays: {} successes, {} rejected ({:.2} % infeasible), \
         at most {} in use.",
        limit - demand.in_use(),
        oracle.done,
        oracle.rejected,
        oracle.infeasible() * 100.0,
        oracle.peak
    )
}

struct Bench<'a> {
    args: &'a Args,
    running: &'a Running,
    demand: &'a Demand,
    time: Duration,
}

impl Bench<'_> {
    /// All rounds of all modes with one bound; who is first changes from round to round.
    async fn compare(&self, limit: i64, target: Option<u8>, next_row: &mut i64, csv: &mut String) -> Result<Compared> {
        let oracle = oracle::run(self.demand, limit);
        let mut stores = Vec::new();
        for mode in &self.args.modes {
            let context = self.running.context(self.args.seed);
            let making = Making { extra: &self.args.prepare, is_restricted: self.args.restricted };
            stores.push(Store::create(*mode, limit, &context, making).await?);
        }
        let target = target.map_or(String::new(), |percent| percent.to_string());
        let prefix = format!("{target},{limit},{},{},", oracle.done, oracle.rejected);
        let mut compared = Compared { limit, oracle, modes: self.args.modes.iter().map(|mode| (*mode, Vec::new())).collect() };
        for round in 0..self.args.rounds {
            for turn in 0..stores.len() {
                let at = (turn + round as usize) % stores.len();
                let (store, mode) = (&stores[at], self.args.modes[at]);
                let plan = Plan::new(self.args.fault, self.demand.sites.len(), self.time);
                let turn =
                    run::turn(self.running, store, self.demand, *next_row, self.args.connections, self.time, &plan).await?;
                *next_row += 1;
                say!("{}", report::turn(mode, round + 1, &turn, &compared.oracle));
                *csv += &report::csv(&prefix, mode, round + 1, &turn, &self.running.regions);
                compared.modes[at].1.push(turn);
            }
        }
        Ok(compared)
    }
}
