//! The command line: `--seed N [--trace]` replays one seed, `--seeds N [--minutes M]` runs many.

use super::many::{self, Campaign};
use super::options::{Bug, Options, WorkloadKind};
use super::run::run_seed;
use std::time::Duration;

/// What `--help` says.
pub const HELP: &str = "\
Runs whole clusters in the deterministic simulator and judges what their clients saw.

  --seed N         run one seed; a failing one replays exactly
  --seeds N        run N seeds, each in a process of its own
  --first N        the first of them (default 1)
  --minutes M      begin no run after M minutes
  --jobs N         runs at a time (default 2)
  --workload NAME  bank, escrow, list-append, registers, inserts, queue, foreign, localities, schema-steps, movr,
                   multi-region or tpcc
                   (default: drawn)
  --shape RxZ      regions and zones, as in 3x3 (default: drawn)
  --small-region   the last region has one zone, whose rows have one voter
  --duration S     simulated seconds of work (default: drawn)
  --calm           nothing fails
  --beyond         GLOBAL tables, and a clock that is farther off than nodes assume: their order in real time is not judged
  --bug NAME       plant a bug, to see it caught
  --provoke NAME   the same run as with --bug, without the bug
  --trace          print every event (with --seed)
  --log FILTER     print what nodes log, as in info or meridian_raft=debug (with --seed)
  --history FILE   write what the clients saw, as lines of JSON (with --seed)
  --json           print the report as a line of JSON (with --seed)";

struct Parsed {
    seed: Option<u64>,
    seeds: u64,
    first: u64,
    minutes: Option<u64>,
    jobs: usize,
    json: bool,
    log: Option<String>,
    options: Options,
}

/// Runs the command. `prefix` are the arguments with which the current executable gets here, for
/// child processes. Returns the exit status: 0 if everything passed, 1 if not, 2 for wrong
/// arguments.
pub fn main(args: &[String], prefix: &[String]) -> u8 {
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        println!("{HELP}");
        return 0;
    }
    match parse(args) {
        Ok(parsed) => match parsed.seed {
            Some(seed) => one(seed, &parsed),
            None => several(parsed, prefix),
        },
        Err(error) => {
            eprintln!("{error}\n\n{HELP}");
            2
        }
    }
}

fn one(seed: u64, parsed: &Parsed) -> u8 {
    if let Some(filter) = &parsed.log {
        // The time of the machine that runs the simulation says nothing; the events of --trace have
        // the simulated one.
        let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).without_time();
        log.init();
    }
    let report = run_seed(seed, &parsed.options);
    match parsed.json {
        true => println!("{}", serde_json::to_string(&report).expect("a report is plain data")),
        false => println!("{report}"),
    }
    u8::from(!report.is_ok())
}

fn several(parsed: Parsed, prefix: &[String]) -> u8 {
    let campaign = Campaign {
        first_seed: parsed.first,
        seeds: parsed.seeds,
        minutes: parsed.minutes,
        jobs: parsed.jobs,
        program: None,
        prefix: prefix.to_vec(),
        options: parsed.options,
    };
    let outcome = many::run(&campaign, |report| {
        if !report.is_ok() {
            println!("{report}");
        }
    });
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => {
            eprintln!("cannot run seeds in processes of their own: {error}");
            return 2;
        }
    };
    let failed: Vec<String> = outcome.reports.iter().filter(|r| !r.is_ok()).map(|r| r.seed.to_string()).collect();
    let operations: u64 = outcome.reports.iter().map(|r| r.succeeded).sum();
    println!("{} seeds, {} failed, {operations} operations", outcome.reports.len(), failed.len());
    for (what, count) in &outcome.coverage {
        println!("  {count:>8}  {what}");
    }
    if !failed.is_empty() {
        println!("failed: {}; replay one with --seed", failed.join(", "));
    }
    if !outcome.missing.is_empty() {
        println!("promised, but never happened: {}", outcome.missing.join(", "));
    }
    u8::from(!outcome.is_ok())
}

fn parse(args: &[String]) -> Result<Parsed, String> {
    let mut parsed =
        Parsed { seed: None, seeds: 1, first: 1, minutes: None, jobs: 2, json: false, log: None, options: Options::default() };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--seed" => parsed.seed = Some(number(value()?)?),
            "--seeds" => parsed.seeds = number(value()?)?,
            "--first" => parsed.first = number(value()?)?,
            "--minutes" => parsed.minutes = Some(number(value()?)?),
            "--jobs" => parsed.jobs = number::<usize>(value()?)?.max(1),
            "--workload" => {
                let name = value()?;
                parsed.options.workload = Some(WorkloadKind::from_name(name).ok_or(format!("no workload {name}"))?);
            }
            "--shape" => parsed.options.shape = Some(shape(value()?)?),
            "--duration" => parsed.options.duration = Some(Duration::from_secs(number(value()?)?)),
            "--bug" => parsed.options.bug = Some(bug(value()?)?),
            "--provoke" => parsed.options.provoke = Some(bug(value()?)?),
            "--calm" => parsed.options.calm = true,
            "--small-region" => parsed.options.small_region = true,
            "--beyond" => parsed.options.beyond = true,
            "--trace" => parsed.options.trace = true,
            "--history" => parsed.options.history = Some(value()?.clone()),
            "--log" => parsed.log = Some(value()?.clone()),
            "--json" => parsed.json = true,
            other => return Err(format!("unknown argument {other}")),
        }
    }
    Ok(parsed)
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{text} is not a number that fits here"))
}

fn bug(name: &str) -> Result<Bug, String> {
    Bug::from_name(name).ok_or_else(|| format!("no bug {name}"))
}

fn shape(text: &str) -> Result<(usize, usize), String> {
    let parts = text.split_once('x').and_then(|(r, z)| Some((r.parse().ok()?, z.parse().ok()?)));
    match parts {
        Some((regions @ 1..=3, zones @ 1..=5)) => Ok((regions, zones)),
        _ => Err(format!("{text} is not a shape: 1 to 3 regions and 1 to 5 zones, as in 3x3")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(text: &str) -> Vec<String> {
        text.split_whitespace().map(String::from).collect()
    }

    #[test]
    fn options_survive_the_way_to_a_child_process() {
        let parsed = parse(&args(
            "--workload queue --shape 2x3 --duration 7 --bug read-in-flight --provoke vote-before-durable --calm --small-region",
        ))
        .expect("valid");
        let again = parse(&parsed.options.to_args()).expect("valid");
        assert_eq!(format!("{:?}", parsed.options), format!("{:?}", again.options));
    }

    #[test]
    fn wrong_arguments_are_refused() {
        for wrong in ["--seed", "--seed x", "--shape 4x4", "--shape 0x1", "--workload cake", "--bug none", "--cake"] {
            assert!(parse(&args(wrong)).is_err(), "{wrong}");
        }
    }
}
