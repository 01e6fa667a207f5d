//! go-tpc's TPC-C, unmodified, at each side's default isolation: READ COMMITTED there, strict
//! serializability here.

use super::side::{Side, Sides, USER, find_program};
use super::{Args, csv_of, verdict, write};
use crate::bench::report::{self, Spread};
use meridian_base::{Error, Result};
use meridian_workload::client::Client;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tokio::time::Instant;

const DATABASE: &str = "tpcc";
const HINT: &str = "Install it with `go install github.com/pingcap/go-tpc/cmd/go-tpc@v1.0.12` (older ones know no PostgreSQL), or put it into the PATH.";
/// For each warehouse.
const PREPARE_LIMIT: Duration = Duration::from_secs(120);
/// For each warehouse.
const CHECK_LIMIT: Duration = Duration::from_secs(120);
const RUN_SLACK: Duration = Duration::from_secs(60);
const WARM_UP: Duration = Duration::from_secs(3);
const BUDGET: f64 = 0.5;
/// Of all transactions.
const ERROR_BUDGET: f64 = 0.02;

/// Where go-tpc is.
pub fn find() -> Result<PathBuf> {
    let go = Command::new("go").args(["env", "GOPATH"]).output().ok().filter(|out| out.status.success());
    let path = go.and_then(|out| String::from_utf8(out.stdout).ok());
    let bin = path.map(|path| Path::new(path.trim()).join("bin"));
    find_program("go-tpc", bin, HINT)
}

/// What one run of go-tpc came to.
#[derive(Clone, Debug, PartialEq)]
struct Summary {
    tpm_c: f64,
    new_orders: u64,
    /// Of every kind.
    transactions: u64,
    failed: u64,
    /// Which kinds failed, and how often.
    failures: Vec<(String, u64)>,
}

impl Summary {
    fn error_share(&self) -> f64 {
        self.failed as f64 / (self.failed + self.transactions).max(1) as f64
    }
}

/// A run, and the CPU time that its server used meanwhile.
#[derive(Clone, Debug)]
struct Run {
    summary: Summary,
    cpu: Duration,
}

impl Run {
    /// CPU time per committed transaction.
    fn cpu_micros(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.summary.transactions.max(1) as f64
    }
}

/// All rounds; whether what `--check` looked at was consistent.
pub async fn run(args: &Args, sides: &Sides, program: &Path) -> Result<bool> {
    say!(
        "\ngo-tpc's TPC-C, {} warehouses, {} threads, {} rounds of {} s",
        args.warehouses,
        args.clients,
        args.rounds,
        args.seconds
    );
    for side in &sides.both {
        let took = prepare(args, sides, side, program).await?;
        say!("{}: prepared in {:.1} s", side.name, took.as_secs_f64());
    }
    for side in &sides.both {
        run_one(args, sides, side, program, WARM_UP).await?;
    }
    let time = Duration::from_secs(args.seconds.into());
    let mut csv = String::from("round,system,tpm_c,transactions,failed,cpu_micros_per_transaction\n");
    let mut rounds = Vec::new();
    for round in 0..args.rounds {
        let mut runs = [None, None];
        for (n, side) in sides.in_turn(round) {
            runs[n] = Some(run_one(args, sides, side, program, time).await?);
        }
        let [Some(postgres), Some(meridian)] = runs else { unreachable!("both had their turn") };
        let ratio = meridian.summary.tpm_c / postgres.summary.tpm_c.max(1e-9);
        say!("round {}: {:.0} and {:.0} tpmC, {ratio:.2} x", round + 1, postgres.summary.tpm_c, meridian.summary.tpm_c);
        for (system, run) in [("postgresql", &postgres), ("meridian", &meridian)] {
            let Summary { tpm_c, transactions, failed, .. } = run.summary;
            let _ = writeln!(csv, "{},{system},{tpm_c:.1},{transactions},{failed},{:.1}", round + 1, run.cpu_micros());
        }
        write(&csv_of(args, "tpcc"), &csv)?;
        rounds.push([postgres, meridian]);
    }
    say_part!("\n{}", table(&rounds));
    let mut consistent = true;
    if args.check {
        for side in &sides.both {
            consistent &= check(args, sides, side, program).await?;
        }
    }
    Ok(consistent)
}

/// A line per side, and whether the budgets were met.
fn table(rounds: &[[Run; 2]]) -> String {
    let median = |of: &dyn Fn(&[Run; 2]) -> f64| Spread::of(rounds.iter().map(of)).median;
    let mut out = format!("{:<12}{:>10}{:>9}{:>11}\n", "", "tpmC", "failed", "CPU µs/tx");
    for (n, name) in ["PostgreSQL", "Meridian"].iter().enumerate() {
        let _ = writeln!(
            out,
            "{name:<12}{:>10.0}{:>8.2}%{:>11.0}{}",
            median(&|r| r[n].summary.tpm_c),
            median(&|r| r[n].summary.error_share()) * 100.0,
            median(&|r| r[n].cpu_micros()),
            failures(rounds.iter().map(|r| &r[n].summary))
        );
    }
    let throughput = Spread::of(rounds.iter().map(|[p, m]| m.summary.tpm_c / p.summary.tpm_c.max(1e-9)));
    let cpu = Spread::of(rounds.iter().map(|[p, m]| m.cpu_micros() / p.cpu_micros().max(1e-9)));
    let errors = Spread::of(rounds.iter().map(|r| r[1].summary.error_share()));
    let _ = writeln!(out, "throughput {}, CPU per transaction {}", report::ratio(throughput), report::ratio(cpu));
    let _ = writeln!(
        out,
        "{}",
        verdict(throughput.median >= BUDGET, &format!("TPC-C at {BUDGET} x PostgreSQL's throughput or more"))
    );
    let _ = writeln!(
        out,
        "{}",
        verdict(errors.median < ERROR_BUDGET, &format!("fewer than {:.0} % of its transactions fail", ERROR_BUDGET * 100.0))
    );
    out
}

/// Which kinds of transactions failed, in all rounds.
fn failures<'a>(summaries: impl Iterator<Item = &'a Summary>) -> String {
    let mut sum = std::collections::BTreeMap::<&str, u64>::new();
    for (kind, count) in summaries.flat_map(|s| &s.failures) {
        *sum.entry(kind).or_default() += count;
    }
    let all: Vec<String> = sum.into_iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    if all.is_empty() { String::new() } else { format!("  failed: {}", all.join(", ")) }
}

async fn prepare(args: &Args, sides: &Sides, side: &Side, program: &Path) -> Result<Duration> {
    side.create_database(DATABASE).await?;
    let mut command = go_tpc(args, side, program);
    // Its check comes with --check: without statistics PostgreSQL takes hours for it.
    command.args(["prepare", "--no-check", "--retry-count", "0"]);
    let started = Instant::now();
    sides.run(command, PREPARE_LIMIT * args.warehouses).await?;
    let took = started.elapsed();
    side.connect(DATABASE).await?.execute("ANALYZE").await?;
    Ok(took)
}

async fn run_one(args: &Args, sides: &Sides, side: &Side, program: &Path, time: Duration) -> Result<Run> {
    let mut command = go_tpc(args, side, program);
    // Without --ignore-error, a thread ends with its first error.
    command.args(["run", "--ignore-error", "--silence", "--time", &format!("{}s", time.as_secs())]);
    let before = side.cpu();
    let text = sides.run(command, time + RUN_SLACK).await?;
    let cpu = side.cpu().saturating_sub(before);
    let summary = parse(&text).ok_or_else(|| Error::internal("go-tpc printed no summary").detail(text))?;
    Ok(Run { summary, cpu })
}

/// Whether go-tpc finds the standard's conditions satisfied. One that takes too long is said so.
async fn check(args: &Args, sides: &Sides, side: &Side, program: &Path) -> Result<bool> {
    let mut command = go_tpc(args, side, program);
    command.arg("check");
    let limit = CHECK_LIMIT * args.warehouses;
    let started = Instant::now();
    match sides.run(command, limit).await {
        Ok(text) => {
            let violated: Vec<&str> = text.lines().filter(|line| line.contains("failed")).collect();
            let found = if violated.is_empty() { "consistent".to_string() } else { violated.join("\n") };
            say!("{}: {found} ({:.1} s)", side.name, started.elapsed().as_secs_f64());
            Ok(violated.is_empty())
        }
        Err(e) => {
            say!("{}: not known to be consistent: {e}", side.name);
            Ok(false)
        }
    }
}

fn go_tpc(args: &Args, side: &Side, program: &Path) -> Command {
    let mut command = Command::new(program);
    command.args([
        "tpcc",
        "-d",
        "postgres",
        "-H",
        "127.0.0.1",
        "-P",
        &side.port.to_string(),
        "-U",
        USER,
        "-p",
        "",
        "-D",
        DATABASE,
    ]);
    command.args(["--conn-params", "sslmode=disable", "--warehouses", &args.warehouses.to_string()]);
    command.args(["-T", &args.clients.to_string()]);
    command
}

/// Reads go-tpc's plain summary: a line per kind of transaction, failed ones by themselves, and
/// tpmC.
fn parse(text: &str) -> Option<Summary> {
    let mut summary = Summary { tpm_c: 0.0, new_orders: 0, transactions: 0, failed: 0, failures: Vec::new() };
    let mut kinds = 0;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("[Summary] ") {
            let (kind, rest) = rest.split_once(" - ")?;
            let count: u64 = rest.split_once("Count: ")?.1.split(',').next()?.trim().parse().ok()?;
            kinds += 1;
            match kind.strip_suffix("_ERR") {
                Some(kind) => {
                    summary.failed += count;
                    summary.failures.push((kind.to_string(), count));
                }
                None => summary.transactions += count,
            }
            if kind == "NEW_ORDER" {
                summary.new_orders = count;
            }
        } else if let Some(rest) = line.strip_prefix("tpmC: ") {
            summary.tpm_c = rest.split(',').next()?.trim().parse().ok()?;
        }
    }
    (kinds > 0).then_some(summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// go-tpc 1.0.12 against PostgreSQL 15 at SERIALIZABLE.
    const OUTPUT: &str = "\
2026/11/25 01:33:32 maxprocs: Leaving GOMAXPROCS=2: CPU quota undefined
[Current] NEW_ORDER - Takes(s): 2.9, Count: 608, TPM: 12586.4, Sum(ms): 11277.8, Avg(ms): 18.6, 50th(ms): 14.7, 90th(ms): 37.7, 95th(ms): 46.1, 99th(ms): 71.3, 99.9th(ms): 104.9, Max(ms): 104.9
Finished
[Summary] DELIVERY - Takes(s): 2.7, Count: 52, TPM: 1136.5, Sum(ms): 1395.2, Avg(ms): 26.8, 50th(ms): 26.2, 90th(ms): 48.2, 95th(ms): 52.4, 99th(ms): 56.6, 99.9th(ms): 71.3, Max(ms): 71.3
[Summary] DELIVERY_ERR - Takes(s): 2.7, Count: 44, TPM: 961.6, Sum(ms): 861.7, Avg(ms): 19.5, 50th(ms): 15.2, 90th(ms): 44.0, 95th(ms): 44.0, 99th(ms): 67.1, 99.9th(ms): 67.1, Max(ms): 67.1
[Summary] NEW_ORDER - Takes(s): 2.9, Count: 441, TPM: 9147.5, Sum(ms): 5496.9, Avg(ms): 12.4, 50th(ms): 10.5, 90th(ms): 26.2, 95th(ms): 33.6, 99th(ms): 48.2, 99.9th(ms): 56.6, Max(ms): 56.6
[Summary] NEW_ORDER_ERR - Takes(s): 2.9, Count: 747, TPM: 15494.6, Sum(ms): 6258.0, Avg(ms): 8.4, 50th(ms): 6.3, 90th(ms): 17.8, 95th(ms): 23.1, 99th(ms): 33.6, 99.9th(ms): 88.1, Max(ms): 96.5
[Summary] ORDER_STATUS - Takes(s): 2.8, Count: 102, TPM: 2160.1, Sum(ms): 305.3, Avg(ms): 3.0, 50th(ms): 2.1, 90th(ms): 6.8, 95th(ms): 8.9, 99th(ms): 13.1, 99.9th(ms): 27.3, Max(ms): 27.3
tpmC: 9147.0, tpmTotal: 20960.1, efficiency: 71127.4%
";

    #[test]
    fn go_tpc_is_understood() {
        let summary = parse(OUTPUT).expect("a summary");
        assert_eq!((summary.tpm_c, summary.new_orders), (9_147.0, 441));
        assert_eq!((summary.transactions, summary.failed), (52 + 441 + 102, 44 + 747));
        assert_eq!(summary.failures, [("DELIVERY".to_string(), 44), ("NEW_ORDER".to_string(), 747)]);
        assert!((summary.error_share() - 791.0 / 1_386.0).abs() < 1e-9);
        assert_eq!(parse("panic: failed to connect to database when loading data\n"), None);
    }

    #[test]
    fn budgets_are_judged_by_medians() {
        let run = |tpm_c, failed| Run {
            summary: Summary { tpm_c, new_orders: 100, transactions: 1_000, failed, failures: vec![("PAYMENT".into(), failed)] },
            cpu: Duration::from_millis(100),
        };
        let rounds = [[run(1_000.0, 0), run(600.0, 5)], [run(1_000.0, 0), run(400.0, 500)], [run(1_000.0, 0), run(700.0, 10)]];
        let text = table(&rounds);
        assert!(text.contains("throughput 0.60 x (0.40 to 0.70), CPU per transaction 1.00 x"), "{text}");
        assert_eq!((text.matches("met   ").count(), text.matches("MISSED").count()), (2, 0), "{text}");
        assert!(text.contains("failed: PAYMENT 515"), "{text}");
        assert!(table(&rounds[1..2]).contains("MISSED  TPC-C at 0.5 x"));
    }
}
