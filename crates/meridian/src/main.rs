//! The one binary: node, demonstration cluster, SQL shell, workloads, bench and simulator.

#![warn(clippy::print_stdout)]

#[macro_use]
mod say;

mod allocator;
mod bench;
mod cert;
mod client;
mod demo;
mod live;
mod log;
mod rotate;
mod shell;
#[cfg(feature = "lab")]
mod sim;
mod sql;
mod start;
mod status;
mod token;
mod traffic;
mod url;
mod workload;

use clap::{Parser, Subcommand};
use futures::future::BoxFuture;
use meridian_base::Result;
use meridian_server::background_scheduler;
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
    /// Found a cluster with the nodes that are up, when others of their --join lists stay away.
    Init(status::Asked),
    /// Run SQL: typed, piped, or from the command line.
    Sql(sql::Args),
    /// Run a workload against nodes, and check what must hold.
    Workload(workload::Args),
    /// Measure side by side: against PostgreSQL, and protocols against each other.
    #[command(subcommand)]
    Bench(bench::Command),
    /// Run whole clusters in the deterministic simulator.
    #[cfg(feature = "lab")]
    Sim(sim::Args),
    /// Look at a cluster's nodes.
    #[command(subcommand)]
    Node(status::Command),
    /// Make the tokens that new nodes join with.
    #[command(subcommand)]
    Token(token::Command),
    /// Make certificates, and look at them.
    #[command(subcommand)]
    Cert(cert::Command),
    /// Print the URL of a node of this machine, with the password of root.
    Url(url::Args),
    /// Look at what a cluster is doing.
    #[command(subcommand)]
    Debug(sql::Debug),
}

fn main() -> ExitCode {
    allocator::keep_freed_memory();
    let command = Cli::parse().command;
    let serves_clients = matches!(command, Command::Demo(_) | Command::Start(_));
    let command: BoxFuture<'static, Result<ExitCode>> = match command {
        // The simulator brings a runtime of its own for each of its machines.
        #[cfg(feature = "lab")]
        Command::Sim(args) => {
            end_with_the_pipe();
            return sim::run(&args);
        }
        Command::Demo(args) => Box::pin(demo::run(args)),
        Command::Start(args) => Box::pin(start::run(args)),
        Command::Init(asked) => Box::pin(status::init(asked)),
        Command::Sql(args) => Box::pin(sql::run(args)),
        Command::Workload(args) => Box::pin(workload::run(args)),
        Command::Bench(command) => Box::pin(bench::run(command)),
        Command::Node(command) => Box::pin(status::run(command)),
        Command::Cert(command) => Box::pin(cert::run(command)),
        Command::Url(args) => Box::pin(url::run(args)),
        Command::Token(command) => Box::pin(token::run(command)),
        Command::Debug(command) => Box::pin(sql::debug(command)),
    };
    let runtime = match background_scheduler(serves_clients) {
        Ok(runtime) => runtime,
        Err(e) => {
            eprintln!("meridian: cannot start: {e}");
            return ExitCode::FAILURE;
        }
    };
    let done = runtime.block_on(command);
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

/// Ends the process quietly when nobody reads its output any more, as `head` does. Not for what has
/// sockets: a lost connection would end it too.
#[cfg(feature = "lab")]
fn end_with_the_pipe() {
    // SAFETY: no thread runs yet, and the default action is no handler of ours.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}
