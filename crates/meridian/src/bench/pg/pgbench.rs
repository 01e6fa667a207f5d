//! pgbench's scripts on both sides, and how long its loading takes.

use super::side::{Side, Sides, USER};
use super::{Args, csv_of, verdict, write};
use crate::bench::report::{self, Compared, Round, Run, Spread};
use meridian_base::{Error, Result};
use std::fmt::Write;
use std::process::Command;
use std::time::Duration;
use tokio::time::Instant;

const INIT_LIMIT: Duration = Duration::from_secs(600);
/// Beyond its own time a run may take this long to connect and to end.
const RUN_SLACK: Duration = Duration::from_secs(60);
/// Runs that nobody measures, so that caches and plans are warm.
const WARM_UP: Duration = Duration::from_secs(2);
/// Random reads before everything else: until most accounts have been read, it is the filling of
/// caches that would be measured.
const FILL_CACHES: Duration = Duration::from_secs(20);
/// How many times as long as PostgreSQL's loading may take.
const LOAD_BUDGET: f64 = 6.0;

/// All scripts over all protocols.
pub async fn scripts(args: &Args, sides: &Sides) -> Result<()> {
    say!("pgbench, {} clients, scale {}, {} rounds of {} s", args.clients, args.scale, args.rounds, args.seconds);
    for side in &sides.both {
        say!("{}: loaded in {:.1} s", side.name, init(sides, side, args.scale).await?.as_secs_f64());
    }
    for side in &sides.both {
        run_one(args, sides, side, "select-only", "prepared", FILL_CACHES).await?;
    }
    let mut all = Vec::new();
    for script in &args.scripts {
        for protocol in &args.protocols {
            let rounds = compare(args, sides, script, protocol).await?;
            all.push(Compared { script: script.clone(), protocol: protocol.clone(), rounds });
            write(&args.csv, &report::csv(&all))?;
        }
    }
    say_part!("\n{}", report::table(&all));
    say!("\nEvery run is in {}.", args.csv.display());
    Ok(())
}

/// How long `pgbench -i` takes, both sides in turn.
pub async fn load(args: &Args, sides: &Sides, scale: u32) -> Result<()> {
    say!("\npgbench -i -s {scale}, {} rounds", args.rounds);
    let mut rounds = Vec::new();
    let mut csv = String::from("scale,round,system,seconds,cpu_seconds\n");
    for round in 0..args.rounds {
        let mut took = [(Duration::ZERO, Duration::ZERO); 2];
        for (n, side) in sides.in_turn(round) {
            let before = side.cpu();
            let time = init(sides, side, scale).await?;
            took[n] = (time, side.cpu().saturating_sub(before));
        }
        let [(postgres, _), (meridian, _)] = took;
        say!("round {}: {:.1} and {:.1} s", round + 1, postgres.as_secs_f64(), meridian.as_secs_f64());
        for (side, (time, cpu)) in ["postgresql", "meridian"].iter().zip(took) {
            let _ = writeln!(csv, "{scale},{},{side},{:.2},{:.2}", round + 1, time.as_secs_f64(), cpu.as_secs_f64());
        }
        rounds.push(took);
        write(&csv_of(args, "load"), &csv)?;
    }
    let ratio_of = |of: fn(&(Duration, Duration)) -> Duration| {
        Spread::of(rounds.iter().map(|[p, m]| of(m).as_secs_f64() / of(p).as_secs_f64().max(1e-3)))
    };
    let (time, cpu) = (ratio_of(|(time, _)| *time), ratio_of(|(_, cpu)| *cpu));
    say!("time {}, CPU {} of PostgreSQL's", report::ratio(time), report::ratio(cpu));
    say!("{}", verdict(time.median <= LOAD_BUDGET, &format!("loading takes no more than {LOAD_BUDGET:.0} x PostgreSQL's time")));
    Ok(())
}

async fn init(sides: &Sides, side: &Side, scale: u32) -> Result<Duration> {
    let started = Instant::now();
    let mut init = pgbench(sides, side);
    init.args(["-i", "-q", "-s", &scale.to_string()]);
    sides.run(init, INIT_LIMIT).await?;
    Ok(started.elapsed())
}

/// All rounds of one script; which side is first changes from round to round.
async fn compare(args: &Args, sides: &Sides, script: &str, protocol: &str) -> Result<Vec<Round>> {
    for side in &sides.both {
        run_one(args, sides, side, script, protocol, WARM_UP).await?;
    }
    let time = Duration::from_secs(args.seconds.into());
    let mut rounds = Vec::new();
    for n in 0..args.rounds {
        let mut runs = [None, None];
        for (at, side) in sides.in_turn(n) {
            runs[at] = Some(run_one(args, sides, side, script, protocol, time).await?);
        }
        let [Some(postgres), Some(meridian)] = runs else { unreachable!("both had their turn") };
        say!(
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

async fn run_one(args: &Args, sides: &Sides, side: &Side, script: &str, protocol: &str, time: Duration) -> Result<Run> {
    let mut command = pgbench(sides, side);
    command.args(["-n", "-b", script, "-M", protocol, "--max-tries=10"]);
    command.args(["-c", &args.clients.to_string(), "-j", &args.clients.min(2).to_string(), "-T", &time.as_secs().to_string()]);
    let before = side.cpu();
    let text = sides.run(command, time + RUN_SLACK).await?;
    let cpu = side.cpu().saturating_sub(before);
    report::parse_pgbench(&text, cpu).ok_or_else(|| Error::internal("pgbench printed no summary").detail(text))
}

fn pgbench(sides: &Sides, side: &Side) -> Command {
    let mut command = sides.programs.command("pgbench");
    command.args(["-h", "127.0.0.1", "-p", &side.port.to_string(), "-U", USER, side.database]);
    command
}
