//! `meridian bench pg`: a PostgreSQL and a node, under the same clients, in turn.
//!
//! * [`pgbench`]: pgbench's scripts, and its loading.
//! * [`tpcc`] runs go-tpc.
//! * [`sysbench`].
//! * [`queries`]: joins, subqueries and sorts, with equal answers.
//! * [`tpch`]: TPC-H, with equal answers.
//! * [`neighbours`]: point reads beside heavy statements.

mod neighbours;
mod pgbench;
mod queries;
mod side;
mod sysbench;
mod tpcc;
mod tpch;

use super::postgres::Programs;
use clap::Args as ClapArgs;
use meridian_base::{Error, Result};
use side::Sides;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(ClapArgs)]
pub struct Args {
    /// Where postgres, initdb and pgbench are. Default: the PATH, then /usr/lib/postgresql.
    #[arg(long)]
    pg_bin: Option<PathBuf>,
    /// Connections at a time.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    clients: u32,
    /// pgbench's built-in scripts.
    #[arg(long, value_delimiter = ',', default_value = "select-only,simple-update,tpcb-like")]
    scripts: Vec<String>,
    /// How statements are sent.
    #[arg(long, value_delimiter = ',', default_value = "prepared,extended,simple")]
    protocols: Vec<String>,
    /// Measured runs per side of each subject.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    /// Seconds per run.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    seconds: u32,
    /// pgbench's scale: 100,000 accounts each.
    #[arg(long, default_value_t = 10)]
    scale: u32,
    /// Instead of the scripts: go-tpc's TPC-C, unmodified.
    #[arg(long)]
    tpcc: bool,
    /// Warehouses of TPC-C.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    warehouses: u32,
    /// Ends TPC-C with go-tpc's check of the standard's conditions on both sides. PostgreSQL takes
    /// minutes for it.
    #[arg(long, requires = "tpcc")]
    check: bool,
    /// Instead of the scripts: sysbench's OLTP scripts.
    #[arg(long)]
    sysbench: bool,
    /// Instead of the scripts: joins, subqueries, sorts and groups, whose answers are compared too.
    #[arg(long)]
    joins: bool,
    /// Instead of the scripts: the 22 statements of TPC-H at a scale, whose answers are compared
    /// too.
    #[arg(long, value_name = "SCALE", num_args = 0..=1, default_missing_value = "1", value_parser = clap::value_parser!(u32).range(1..=100))]
    tpch: Option<u32>,
    /// Instead of the scripts: how long `pgbench -i` takes at a scale.
    #[arg(long, value_name = "SCALE", num_args = 0..=1, default_missing_value = "50")]
    load: Option<u32>,
    /// Instead of the scripts: point reads of some clients while another one runs heavy statements.
    #[arg(long)]
    neighbours: bool,
    /// Where every run is written. Other subjects than the scripts have files beside it, with their
    /// names.
    #[arg(long, default_value = "bench-pg.csv")]
    csv: PathBuf,
}

pub async fn run(args: Args) -> Result<ExitCode> {
    // Dropping the bench ends what it started.
    tokio::select! {
        done = bench(&args) => done,
        () = crate::start::stop_signal() => Ok(ExitCode::FAILURE),
    }
}

async fn bench(args: &Args) -> Result<ExitCode> {
    let programs = Programs::find(args.pg_bin.as_deref())?;
    // What is missing is said before anything takes time.
    let go_tpc = if args.tpcc { Some(tpcc::find()?) } else { None };
    let sysbench = if args.sysbench { Some(sysbench::find()?) } else { None };
    let sides = Sides::start(programs).await?;
    let bin = sides.programs.bin().display();
    say!("PostgreSQL of {bin} and a node of this program, both with every commit synced to disk, in turn");
    if cfg!(debug_assertions) {
        say!("This program was built without optimization (use --release): its ratios say nothing.");
    }
    let others = args.tpcc || args.sysbench || args.joins || args.tpch.is_some() || args.load.is_some() || args.neighbours;
    let mut right = true;
    if !others {
        pgbench::scripts(args, &sides).await?;
    }
    if args.joins {
        right &= queries::run(args, &sides).await?;
    }
    if let Some(scale) = args.tpch {
        right &= tpch::run(args, &sides, scale).await?;
    }
    if let Some(program) = &go_tpc {
        right &= tpcc::run(args, &sides, program).await?;
    }
    if let Some(program) = &sysbench {
        sysbench::run(args, &sides, program).await?;
    }
    if args.neighbours {
        neighbours::run(args, &sides).await?;
    }
    if let Some(scale) = args.load {
        pgbench::load(args, &sides, scale).await?;
    }
    Ok(if right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The file of a subject: beside that of the scripts.
fn csv_of(args: &Args, subject: &str) -> PathBuf {
    let stem = args.csv.file_stem().unwrap_or_default().to_string_lossy();
    args.csv.with_file_name(format!("{stem}-{subject}.csv"))
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(|e| Error::fatal(format!("cannot write {}: {e}", path.display())))
}

/// Whether a budget was met, in a line.
fn verdict(met: bool, what: &str) -> String {
    format!("  {}  {what}", if met { "met   " } else { "MISSED" })
}
