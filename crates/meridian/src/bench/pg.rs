//! `meridian bench pg`: pgbench's scripts on both sides, in turn.

use super::child::{self, Server};
use super::postgres::{Postgres, Programs};
use super::report::{self, Compared, Round, Run};
use clap::Args as ClapArgs;
use meridian_server::node::base::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;
use tokio::time::Instant;

const START_PATIENCE: Duration = Duration::from_secs(60);
const INIT_LIMIT: Duration = Duration::from_secs(600);
/// Beyond its own time a run may take this long to connect and to end.
const RUN_SLACK: Duration = Duration::from_secs(60);
/// Runs that nobody measures, so that caches and plans are warm.
const WARM_UP: Duration = Duration::from_secs(2);
/// Random reads before everything else: until most accounts have been read, it is the filling of caches that would be measured.
const FILL_CACHES: Duration = Duration::from_secs(20);
/// The databases of the two sides.
const DATABASES: [&str; 2] = ["postgres", "defaultdb"];

#[derive(ClapArgs)]
pub struct Args {
    /// Where postgres, initdb and pgbench are. Default: the PATH, then /usr/lib/postgresql.
    #[arg(long)]
    pg_bin: Option<PathBuf>,
    /// Connections at a time.
    #[arg(long, default_value_t = 8)]
    clients: u32,
    /// pgbench's built-in scripts.
    #[arg(long, value_delimiter = ',', default_value = "select-only,simple-update,tpcb-like")]
    scripts: Vec<String>,
    /// How statements are sent.
    #[arg(long, value_delimiter = ',', default_value = "prepared,extended,simple")]
    protocols: Vec<String>,
    /// Measured runs per side, script and protocol.
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Seconds per run.
    #[arg(long, default_value_t = 5)]
    seconds: u32,
    /// pgbench's scale: 100,000 accounts each.
    #[arg(long, default_value_t = 10)]
    scale: u32,
    /// Where every run is written.
    #[arg(long, default_value = "bench-pg.csv")]
    csv: PathBuf,
}

pub async fn run(args: Args) -> Result<ExitCode> {
    if args.rounds == 0 || args.seconds == 0 || args.clients == 0 {
        return Err(Error::sql("22023", "a bench needs rounds, seconds and clients"));
    }
    // Dropping the bench ends what it started.
    tokio::select! {
        done = bench(&args) => done,
        () = crate::start::stop_signal() => Ok(ExitCode::FAILURE),
    }
}

/// One of the two sides.
struct Side {
    name: &'static str,
    port: u16,
    database: &'static str,
    /// The first process of the server.
    pid: u32,
}

async fn bench(args: &Args) -> Result<ExitCode> {
    let programs = Programs::find(args.pg_bin.as_deref())?;
    let scratch = tempfile::Builder::new().prefix("meridian-bench-").tempdir();
    let scratch = scratch.map_err(|e| Error::fatal(format!("no temporary directory: {e}")))?;
    let postgres = Postgres::start(&programs, scratch.path()).await?;
    let (node, node_port) = start_node(scratch.path()).await?;
    let sides = [
        Side { name: "PostgreSQL", port: postgres.port, database: DATABASES[0], pid: postgres.pid() },
        Side { name: "Meridian", port: node_port, database: DATABASES[1], pid: node.pid() },
    ];
    println!(
        "PostgreSQL of {} and a node of this program, both with every commit synced to disk; pgbench, {} clients, scale {}, {} rounds \
         of {} s, in turn",
        programs.bin().display(),
        args.clients,
        args.scale,
        args.rounds,
        args.seconds
    );
    if cfg!(debug_assertions) {
        println!("This program was built without optimization (use --release): its ratios say nothing.");
    }
    for side in &sides {
        let started = Instant::now();
        let mut init = pgbench(&programs, side);
        init.args(["-i", "-q", "-s", &args.scale.to_string()]);
        child::run(init, scratch.path(), INIT_LIMIT).await?;
        println!("{}: loaded in {:.1} s", side.name, started.elapsed().as_secs_f64());
    }
    for side in &sides {
        run_one(args, &programs, side, "select-only", "prepared", FILL_CACHES, scratch.path()).await?;
    }
    let mut all = Vec::new();
    for script in &args.scripts {
        for protocol in &args.protocols {
            let rounds = compare(args, &programs, &sides, script, protocol, scratch.path()).await?;
            all.push(Compared { script: script.clone(), protocol: protocol.clone(), rounds });
            write_csv(&args.csv, &all)?;
        }
    }
    print!("\n{}", report::table(&all));
    println!("\nEvery run is in {}.", args.csv.display());
    Ok(ExitCode::SUCCESS)
}

fn write_csv(path: &Path, all: &[Compared]) -> Result<()> {
    std::fs::write(path, report::csv(all)).map_err(|e| Error::fatal(format!("cannot write {}: {e}", path.display())))
}

/// All rounds of one script; which side is first changes from round to round.
async fn compare(
    args: &Args,
    programs: &Programs,
    sides: &[Side; 2],
    script: &str,
    protocol: &str,
    scratch: &Path,
) -> Result<Vec<Round>> {
    for side in sides {
        run_one(args, programs, side, script, protocol, WARM_UP, scratch).await?;
    }
    let time = Duration::from_secs(args.seconds.into());
    let mut rounds = Vec::new();
    for n in 0..args.rounds {
        let [a, b] = if n % 2 == 0 { [&sides[0], &sides[1]] } else { [&sides[1], &sides[0]] };
        let first = run_one(args, programs, a, script, protocol, time, scratch).await?;
        let second = run_one(args, programs, b, script, protocol, time, scratch).await?;
        let (postgres, meridian) = if n % 2 == 0 { (first, second) } else { (second, first) };
        println!(
            "{script}, {protocol}, round {}: {:.0} and {:.0} tx/s, {:.2} x",
            n + 1,
            postgres.tps,
            meridian.tps,
            meridian.tps / postgres.tps
        );
        rounds.push(Round { postgres, meridian });
    }
    Ok(rounds)
}

async fn run_one(
    args: &Args,
    programs: &Programs,
    side: &Side,
    script: &str,
    protocol: &str,
    time: Duration,
    scratch: &Path,
) -> Result<Run> {
    let mut command = pgbench(programs, side);
    command.args(["-n", "-b", script, "-M", protocol, "--max-tries=10"]);
    command.args(["-c", &args.clients.to_string(), "-j", &args.clients.min(2).to_string(), "-T", &time.as_secs().to_string()]);
    let before = child::cpu_time(side.pid);
    let text = child::run(command, scratch, time + RUN_SLACK).await?;
    let cpu = child::cpu_time(side.pid).saturating_sub(before);
    report::parse_pgbench(&text, cpu).ok_or_else(|| Error::internal("pgbench printed no summary").detail(text))
}

fn pgbench(programs: &Programs, side: &Side) -> Command {
    let mut command = programs.command("pgbench");
    command.args(["-h", "127.0.0.1", "-p", &side.port.to_string(), "-U", "root", side.database]);
    command
}

/// A node as a process of its own, and its port for clients.
async fn start_node(scratch: &Path) -> Result<(Server, u16)> {
    let program = std::env::current_exe().map_err(|e| Error::fatal(format!("cannot find this program: {e}")))?;
    let mut command = Command::new(program);
    command.arg("start").arg("--data-dir").arg(scratch.join("node"));
    command.args(["--listen", "127.0.0.1:0", "--sql-listen", "127.0.0.1:0"]);
    let log = scratch.join("node.log");
    let mut server = Server::start("the node", command, &log)?;
    let deadline = Instant::now() + START_PATIENCE;
    loop {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let url = text.lines().find_map(|l| l.strip_prefix("clients")).map(str::trim);
        if let Some(url) = url {
            return Ok((server, crate::shell::target::Target::parse(url)?.port));
        }
        server.check(&log)?;
        if Instant::now() > deadline {
            return Err(Error::fatal("the node does not serve").detail(child::tail(&log)));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
