//! The one binary: node, demonstration cluster, SQL shell, workloads, bench and simulator.

mod client;
mod demo;
mod live;
mod shell;
mod sql;
mod start;
mod status;
mod traffic;
mod workload;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Meridian: a geo-distributed SQL database that speaks PostgreSQL's protocol.
#[derive(Parser)]
#[command(name = "meridian", version, about, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a whole cluster of several regions in this process, with movr on it, and a shell.
    Demo(demo::Args),
    /// Start a node: alone, or as a member of a cluster.
    Start(start::Args),
    /// Run SQL: typed, piped, or from the command line.
    Sql(sql::Args),
    /// Run a workload against nodes, and check what must hold.
    Workload(workload::Args),
    /// Look at a cluster's nodes.
    #[command(subcommand)]
    Node(status::Command),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => {
            eprintln!("meridian: cannot start: {e}");
            return ExitCode::FAILURE;
        }
    };
    let done = runtime.block_on(async {
        match cli.command {
            Command::Demo(args) => demo::run(args).await,
            Command::Workload(args) => workload::run(args).await,
            Command::Start(args) => start::run(args).await,
            Command::Sql(args) => sql::run(args).await,
            Command::Node(command) => status::run(command).await,
        }
    });
    // Threads that wait for the disk or for timers do not hold the process back.
    runtime.shutdown_background();
    match done {
        Ok(code) => code,
        Err(e) => {
            eprintln!("meridian: {}", e.message());
            if let Some(detail) = e.get_detail() {
                eprintln!("  {detail}");
            }
            if let Some(hint) = e.get_hint() {
                eprintln!("  hint: {hint}");
            }
            ExitCode::FAILURE
        }
    }
}

/// Logs go to standard error; `MERIDIAN_LOG` sets the level (`error`, `warn`, `info`, `debug`, or per module).
pub(crate) fn log_to_stderr(default: &str) {
    let filter = tracing_subscriber::EnvFilter::try_from_env("MERIDIAN_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(format!("{default},openraft=off,fjall=warn,lsm_tree=warn")));
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false).try_init();
}
