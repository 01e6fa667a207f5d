//! `meridian bench multi-region`: SunStorm's microbenchmark (VLDB'25, §7.2) over a cluster of three
//! regions in this process, and the same with other protocols on the same engine, log and transport
//! (`node::txn::protocol`), in turn.
//!
//! A cell is a mix, a size of the hot set and a share of transactions over several regions. In each
//! of its rounds every side works for the same time with as many clients; ratios are of rounds.
//!
//! * [`sides`]: who is compared.
//! * [`run`]: one side's work.
//! * [`report`]: tables, budgets, CSV.
//! * [`plot`]: throughput as SVG.

mod plot;
mod report;
mod run;
mod sides;

use super::cluster::{Running, Shape, with_cluster, write};
use crate::demo::REGIONS_DEFAULT;
use clap::Args as ClapArgs;
use meridian_base::{Error, Result};
use meridian_workload::multi_region::{Homes, Mix};
use report::Compared;
use run::Bench;
use sides::Side;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

#[derive(ClapArgs)]
pub struct Args {
    /// Measured seconds per cell and side, over all rounds.
    #[arg(long, default_value_t = 10)]
    seconds: u32,
    /// Turns that each side takes in a cell.
    #[arg(long, default_value_t = 2)]
    rounds: u32,
    /// Clients in each region.
    #[arg(long, default_value_t = 8)]
    clients: u32,
    /// Shares of transactions over several regions, in percent.
    #[arg(long, value_delimiter = ',', default_value = "0,5,10,15,50")]
    shares: Vec<u32>,
    /// rmw, read-heavy, read-only.
    #[arg(long, value_delimiter = ',', default_value = "rmw,read-heavy,read-only", value_parser = mix)]
    mixes: Vec<Mix>,
    /// Hot rows per region.
    #[arg(long, value_delimiter = ',', default_value = "100000,1000")]
    hot: Vec<i64>,
    /// Hot rows per region for the table of what an abort teaches the next attempt.
    #[arg(long, value_delimiter = ',', default_value = "1000,30")]
    retry_hot: Vec<i64>,
    /// Rows per region. The paper has a million.
    #[arg(long, default_value_t = 200_000)]
    rows: i64,
    /// A few cells for a few seconds, to see that everything works.
    #[arg(long)]
    quick: bool,
    /// Check the counters after every turn. It takes longer than the turn.
    #[arg(long)]
    check: bool,
    /// Where every turn is written.
    #[arg(long, default_value = "bench-multi-region.csv")]
    csv: PathBuf,
    /// A directory for plots of the throughput.
    #[arg(long)]
    plots: Option<PathBuf>,
}

/// What a turn works on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cell {
    pub mix: Mix,
    pub hot: i64,
    /// In percent.
    pub share: u32,
}

fn mix(text: &str) -> std::result::Result<Mix, String> {
    [Mix::ReadModifyWrite, Mix::ReadHeavy, Mix::ReadOnly]
        .into_iter()
        .find(|m| name_of(*m) == text)
        .ok_or_else(|| format!("{text:?} is none of rmw, read-heavy and read-only"))
}

pub(super) fn name_of(mix: Mix) -> &'static str {
    match mix {
        Mix::ReadModifyWrite => "rmw",
        Mix::ReadHeavy => "read-heavy",
        Mix::ReadOnly => "read-only",
    }
}

pub async fn run(mut args: Args) -> Result<ExitCode> {
    if args.quick {
        args = Args {
            seconds: args.seconds.min(3),
            rounds: 1,
            clients: args.clients.min(2),
            shares: vec![0, 50],
            mixes: vec![Mix::ReadModifyWrite],
            hot: vec![1_000],
            retry_hot: vec![1_000],
            rows: args.rows.min(4_000),
            ..args
        };
    }
    if args.rounds == 0 || args.seconds == 0 || args.clients == 0 {
        return Err(Error::sql("22023", "a bench needs rounds, seconds and clients"));
    }
    if args.rows < 100
        || args.shares.iter().any(|share| *share > 100)
        || args.hot.iter().chain(&args.retry_hot).any(|hot| *hot < 1)
    {
        return Err(Error::sql("22023", "at least 100 rows, shares up to 100 percent, and a hot row"));
    }
    with_cluster(Shape::of(REGIONS_DEFAULT), |running| Box::pin(async move { bench(&args, running).await })).await
}

async fn bench(args: &Args, running: &Running) -> Result<ExitCode> {
    say!(
        "Each region has {} rows (the paper: 1,000,000), so a hot set has at most {}; {} clients in each, closed loop, no retries; {} \
         rounds of {:.1} s for each side, in turn.",
        args.rows,
        args.rows / 2,
        args.clients,
        args.rounds,
        turn_of(args).as_secs_f64()
    );
    let bench = Bench { running, rows: args.rows, clients: args.clients, checks: args.check };
    for homes in [Homes::Each, Homes::First] {
        bench.load(homes).await?;
    }

    say!();
    sides::explain();
    let mut all = Vec::new();
    for mix in &args.mixes {
        for hot in &args.hot {
            let hot = (*hot).min(args.rows / 2);
            let first = all.len();
            for share in &args.shares {
                all.push(compare(args, &bench, Cell { mix: *mix, hot, share: *share }, &sides::BASELINES).await?);
                write(&args.csv, &report::csv(&all))?;
            }
            let title = format!("{}, {hot} hot rows per region", name_of(*mix));
            say!("\n{}", report::table(&title, &all[first..], &bench));
            if let Some(dir) = &args.plots {
                std::fs::create_dir_all(dir).map_err(|e| Error::fatal(format!("cannot make {}: {e}", dir.display())))?;
                let file = dir.join(format!("throughput-{}-{hot}.svg", name_of(*mix)));
                write(&file, &plot::throughput(&format!("Throughput: {title}"), &all[first..]))?;
            }
        }
    }
    say!("{}", report::budgets(&all, &bench));

    let contended = |hot: i64| Cell { mix: Mix::ReadModifyWrite, hot: hot.min(args.rows / 2), share: 50 };
    let hottest = contended(1_000);
    let orders = compare(args, &bench, hottest, &sides::ORDERS).await?;
    let title = format!("When the initiator's own participant prepares: rmw, {} hot rows per region", hottest.hot);
    say!("\n{}", report::table(&title, std::slice::from_ref(&orders), &bench));
    all.push(orders);
    for hot in &args.retry_hot {
        let retries = compare(args, &bench, contended(*hot), &sides::RETRIES).await?;
        say!("\n{}", report::retries(&retries));
        all.push(retries);
    }
    write(&args.csv, &report::csv(&all))?;
    say!("Every turn is in {}.", args.csv.display());
    Ok(ExitCode::SUCCESS)
}

fn turn_of(args: &Args) -> Duration {
    Duration::from_secs(args.seconds.into()) / args.rounds
}

/// All rounds of a cell; who is first changes from round to round.
async fn compare(args: &Args, bench: &Bench<'_>, cell: Cell, sides: &[Side]) -> Result<Compared> {
    let mut compared = Compared::new(cell, sides);
    for round in 0..args.rounds as usize {
        for turn in 0..sides.len() {
            let at = (turn + round) % sides.len();
            let seed = 1 + (u64::from(cell.share) << 8 | round as u64);
            let run = bench.turn(&sides[at], cell, turn_of(args), seed).await?;
            say!(
                "{}, {} hot, {} %, round {}: {}: {:.0} tx/s, {:.1} % aborted",
                name_of(cell.mix),
                cell.hot,
                cell.share,
                round + 1,
                sides[at].name,
                run.throughput(),
                run.abort_share() * 100.0
            );
            compared.sides[at].1.push(run);
        }
    }
    Ok(compared)
}
