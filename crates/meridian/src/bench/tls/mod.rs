//! `meridian bench tls`: what security costs, each cost beside the same without it, in turn.
//!
//! * `tls`: point reads with TLS, by the same without; and beside a PostgreSQL with TLS.
//! * `login`: CPU of a login with a password over TLS, beside PostgreSQL's.
//! * `privileges`: point reads of a role that was granted them, by a superuser's.
//! * `silent`: how long a login takes while others have connected and say nothing.
//! * `nodes`: small transactions over three nodes with TLS between them, by three without.

mod contender;
mod nodes;
mod silent;

use crate::bench::cluster::write;
use crate::bench::node_process::NodeProcess;
use crate::bench::postgres::{More, Postgres, Programs};
use crate::bench::report::{self, Run, Spread};
use crate::bench::{child, postgres};
use clap::{Args as ClapArgs, ValueEnum};
use contender::Contender;
use meridian_base::{Error, Result};
use meridian_workload::client::Client;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// The role whose statements ask for privileges, and its password.
const ROLE: (&str, &str) = ("app", "a password of a bench");
const SETUP_LIMIT: Duration = Duration::from_secs(300);

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Subject {
    Tls,
    Login,
    Privileges,
    Silent,
    Nodes,
}

#[derive(ClapArgs)]
pub struct Args {
    /// Where postgres, initdb and pgbench are. Default: the PATH, then /usr/lib/postgresql.
    #[arg(long)]
    pg_bin: Option<PathBuf>,
    /// What is measured.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "tls,login,privileges,silent,nodes")]
    subjects: Vec<Subject>,
    /// Connections at a time.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    clients: u32,
    /// Measured runs per side of each subject.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    /// Seconds per run.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    seconds: u32,
    /// pgbench's scale: 100,000 accounts each.
    #[arg(long, default_value_t = 5)]
    scale: u32,
    /// Connections that say nothing.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    silent: u32,
    /// Where every run is written.
    #[arg(long, default_value = "bench-tls.csv")]
    csv: PathBuf,
}

pub async fn run(args: Args) -> Result<ExitCode> {
    // Dropping the bench ends what it started.
    tokio::select! {
        done = bench(&args) => done,
        () = crate::start::stop_signal() => Ok(ExitCode::FAILURE),
    }
}

/// What a bench has while it runs.
struct Bench<'a> {
    args: &'a Args,
    programs: Programs,
    scratch: tempfile::TempDir,
    csv: String,
    all_met: bool,
}

async fn bench(args: &Args) -> Result<ExitCode> {
    let programs = Programs::find(args.pg_bin.as_deref())?;
    let scratch = tempfile::Builder::new().prefix("meridian-bench-").tempdir();
    let scratch = scratch.map_err(|e| Error::fatal(format!("no temporary directory: {e}")))?;
    let csv = String::from("subject,round,side,tps,transactions,failed,cpu_micros_per_transaction\n");
    let mut bench = Bench { args, programs, scratch, csv, all_met: true };
    if cfg!(debug_assertions) {
        say!("This program was built without optimization (use --release): its ratios say nothing.");
    }
    let wants = |subject| args.subjects.contains(&subject);
    if args.subjects.iter().any(|s| *s != Subject::Nodes) {
        bench.one_node(wants).await?;
    }
    if wants(Subject::Nodes) {
        nodes::run(&mut bench).await?;
    }
    say!("\nEvery run is in {}.", args.csv.display());
    Ok(if bench.all_met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Bench<'_> {
    /// What takes one node, and a PostgreSQL with the same certificate.
    async fn one_node(&mut self, wants: impl Fn(Subject) -> bool) -> Result<()> {
        let scratch = self.scratch.path().to_path_buf();
        let node = NodeProcess::start(&scratch, "node", &[]).await?;
        let postgres = postgres_with_tls(&self.programs, &scratch, &node.data.join("certs")).await?;
        let rules = format!("ALTER SYSTEM SET hba_rules = 'local all all peer\n{HBA}host all all 127.0.0.1/32 trust\n'");
        node.as_root("postgres").await?.execute(&rules).await?;
        let ours = Contender::new("Meridian", node.port, "defaultdb", node.pid());
        let theirs = Contender::new("PostgreSQL", postgres.port, "postgres", postgres.pid());
        for side in [&ours, &theirs] {
            self.run_program(side.command(&self.programs, "pgbench", &["-i", "-q", "-s", &self.args.scale.to_string()])).await?;
            let grants = "GRANT SELECT, INSERT, UPDATE ON pgbench_accounts, pgbench_tellers, pgbench_branches, pgbench_history";
            let text = format!("CREATE ROLE {} LOGIN PASSWORD '{}'; {grants} TO {}", ROLE.0, ROLE.1, ROLE.0);
            self.run_program(side.command(&self.programs, "psql", &["-X", "-q", "-v", "ON_ERROR_STOP=1", "-c", &text])).await?;
        }
        let reads = ["-b", "select-only", "-M", "prepared"];
        if wants(Subject::Tls) {
            let ratio = self.compare("tls", &ours.tls("require"), &ours, &reads).await?.throughput();
            self.verdict(ratio.median >= 0.85, "with TLS, by without", ratio, "≥ 0.85 x");
            let sides = (ours.tls("require"), theirs.tls("require"));
            let ratio = self.compare("tls_postgresql", &sides.0, &sides.1, &reads).await?.throughput();
            self.verdict(ratio.median >= 1.0, "with TLS, by PostgreSQL's", ratio, "≥ 1.00 x");
        }
        if wants(Subject::Privileges) {
            let ratio = self.compare("privileges", &ours.role(ROLE.0), &ours, &reads).await?.throughput();
            self.verdict(ratio.median >= 0.98, "of a role with grants, by a superuser's", ratio, "≥ 0.98 x");
        }
        if wants(Subject::Login) {
            let script = scratch.join("login.sql");
            std::fs::write(&script, "SELECT 1;\n").map_err(|e| Error::fatal(format!("cannot write a script: {e}")))?;
            let file = script.to_string_lossy().into_owned();
            let with_password = |side: &Contender| side.role(ROLE.0).password(ROLE.1).tls("require");
            let sides = (with_password(&ours), with_password(&theirs));
            let ratio = self.compare("login", &sides.0, &sides.1, &["-C", "-f", &file]).await?.cpu();
            self.verdict(ratio.median <= 1.2, "CPU of a login, by PostgreSQL's", ratio, "≤ 1.20 x");
        }
        if wants(Subject::Silent) {
            silent::run(self, &ours.role(ROLE.0).password(ROLE.1).tls("require")).await?;
        }
        Ok(())
    }

    /// Runs pgbench on both in turn.
    async fn compare(&mut self, subject: &str, a: &Contender, b: &Contender, script: &[&str]) -> Result<Rounds> {
        say!("\n{subject}: {}, and {}", a.described(), b.described());
        let time = Duration::from_secs(self.args.seconds.into());
        let mut rounds = Vec::new();
        for side in [a, b] {
            self.pgbench(side, script, Duration::from_secs(2)).await?;
        }
        for n in 0..self.args.rounds {
            let mut runs = [None, None];
            let mut turns = [(0, a), (1, b)];
            if n % 2 == 1 {
                turns.reverse();
            }
            for (at, side) in turns {
                let run = self.pgbench(side, script, time).await?;
                let (name, cpu) = (side.described(), run.cpu_micros());
                let _ =
                    writeln!(self.csv, "{subject},{},{name},{:.1},{},{},{cpu:.1}", n + 1, run.tps, run.transactions, run.failed);
                runs[at] = Some(run);
            }
            let [Some(a), Some(b)] = runs else { unreachable!("both had their turn") };
            say!(
                "round {}: {:.0} and {:.0} tx/s, {:.0} and {:.0} µs of CPU each",
                n + 1,
                a.tps,
                b.tps,
                a.cpu_micros(),
                b.cpu_micros()
            );
            rounds.push((a, b));
        }
        write(&self.args.csv, &self.csv)?;
        Ok(Rounds(rounds))
    }

    async fn pgbench(&self, side: &Contender, script: &[&str], time: Duration) -> Result<Run> {
        let clients = self.args.clients.to_string();
        let threads = self.args.clients.min(2).to_string();
        let mut command = side.command(&self.programs, "pgbench", &["-n", "-c", &clients, "-j", &threads]);
        command.args(["-T", &time.as_secs().to_string(), "--max-tries=10"]).args(script);
        let before = side.cpu();
        let text = child::run(command, self.scratch.path(), time + Duration::from_secs(60)).await?;
        let cpu = side.cpu().saturating_sub(before);
        report::parse_pgbench(&text, cpu).ok_or_else(|| Error::internal("pgbench printed no summary").detail(text))
    }

    async fn run_program(&self, command: std::process::Command) -> Result<String> {
        child::run(command, self.scratch.path(), SETUP_LIMIT).await
    }

    /// Whether a budget was met, in a line.
    fn verdict(&mut self, is_met: bool, what: &str, ratio: Spread, budget: &str) {
        self.all_met &= is_met;
        say!("  {}  {what}: {} (budget: {budget})", if is_met { "met   " } else { "MISSED" }, report::ratio(ratio));
    }
}

/// Rules in front of those that trust: the role gives its password when it uses TLS.
const HBA: &str = "hostssl all app all scram-sha-256\n";

/// A PostgreSQL with a node's certificate.
async fn postgres_with_tls(programs: &Programs, scratch: &Path, certs: &Path) -> Result<Postgres> {
    let more = More {
        settings: ["ssl=on", "ssl_cert_file=server.crt", "ssl_key_file=server.key"].map(String::from).into(),
        hba: HBA.into(),
        files: vec![("server.crt", certs.join("node.crt")), ("server.key", certs.join("node.key"))],
    };
    postgres::Postgres::start_with(programs, scratch, more).await
}

/// Runs of two sides, round by round.
struct Rounds(Vec<(Run, Run)>);

impl Rounds {
    /// Above one: the first is faster.
    fn throughput(&self) -> Spread {
        Spread::of(self.0.iter().map(|(a, b)| a.tps / b.tps.max(1e-9)))
    }
    /// Below one: the first needs less CPU time for a transaction.
    fn cpu(&self) -> Spread {
        Spread::of(self.0.iter().map(|(a, b)| a.cpu_micros() / b.cpu_micros().max(1e-9)))
    }
}
