//! sysbench's OLTP scripts on both sides.

use super::side::{Side, Sides, USER, find_program};
use super::{Args, csv_of, write};
use crate::bench::report::{self, Compared, Round, Run};
use meridian_base::{Error, Result};
use meridian_workload::client::Client;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const DATABASE: &str = "sysbench";
const HINT: &str = "Install it with `apt-get install sysbench`, or put it into the PATH.";
const SCRIPTS: [&str; 6] =
    ["oltp_point_select", "oltp_read_only", "oltp_read_write", "oltp_write_only", "oltp_update_index", "oltp_insert"];
const TABLES: u32 = 4;
const ROWS: u32 = 25_000;
const PREPARE_LIMIT: Duration = Duration::from_secs(300);
const RUN_SLACK: Duration = Duration::from_secs(60);
const WARM_UP: Duration = Duration::from_secs(2);

/// Where sysbench is.
pub fn find() -> Result<PathBuf> {
    find_program("sysbench", [], HINT)
}

pub async fn run(args: &Args, sides: &Sides, program: &Path) -> Result<()> {
    say!("\nsysbench, {TABLES} tables of {ROWS} rows, {} threads, {} rounds of {} s", args.clients, args.rounds, args.seconds);
    for side in &sides.both {
        side.create_database(DATABASE).await?;
        let mut prepare = sysbench(args, side, program, SCRIPTS[0]);
        prepare.arg("prepare");
        sides.run(prepare, PREPARE_LIMIT).await?;
        side.connect(DATABASE).await?.execute("ANALYZE").await?;
    }
    let mut all = Vec::new();
    for script in SCRIPTS {
        for side in &sides.both {
            run_one(args, sides, side, program, script, WARM_UP).await?;
        }
        let mut rounds = Vec::new();
        for round in 0..args.rounds {
            let mut runs = [None, None];
            for (n, side) in sides.in_turn(round) {
                runs[n] = Some(run_one(args, sides, side, program, script, Duration::from_secs(args.seconds.into())).await?);
            }
            let [Some(postgres), Some(meridian)] = runs else { unreachable!("both had their turn") };
            rounds.push(Round { postgres, meridian });
        }
        let short = script.trim_start_matches("oltp_").to_string();
        all.push(Compared { script: short, protocol: "sysbench".into(), rounds });
        write(&csv_of(args, "sysbench"), &report::csv(&all))?;
    }
    say_part!("\n{}", report::table(&all));
    Ok(())
}

async fn run_one(args: &Args, sides: &Sides, side: &Side, program: &Path, script: &str, time: Duration) -> Result<Run> {
    let mut command = sysbench(args, side, program, script);
    command.arg(format!("--time={}", time.as_secs())).arg("run");
    let before = side.cpu();
    let text = sides.run(command, time + RUN_SLACK).await?;
    let cpu = side.cpu().saturating_sub(before);
    parse(&text, cpu).ok_or_else(|| Error::internal("sysbench printed no summary").detail(text))
}

fn sysbench(args: &Args, side: &Side, program: &Path, script: &str) -> Command {
    let mut command = Command::new(program);
    command.arg(script).args(["--db-driver=pgsql", "--pgsql-host=127.0.0.1", "--pgsql-password="]);
    command.arg(format!("--pgsql-port={}", side.port)).arg(format!("--pgsql-user={USER}"));
    command.arg(format!("--pgsql-db={DATABASE}")).arg(format!("--tables={TABLES}")).arg(format!("--table-size={ROWS}"));
    command.arg(format!("--threads={}", args.clients));
    command
}

/// Reads sysbench's summary. What it ignores is what a server refused so that it is repeated.
fn parse(text: &str, cpu: Duration) -> Option<Run> {
    let after = |name: &str| text.lines().find_map(|l| l.trim().strip_prefix(name)).map(str::trim);
    let count = |text: &str| text.split_whitespace().next()?.parse::<u64>().ok();
    let transactions = after("transactions:")?;
    let rate = transactions.split_once('(')?.1.split_whitespace().next()?.parse().ok()?;
    Some(Run { tps: rate, transactions: count(transactions)?, failed: count(after("ignored errors:")?)?, cpu })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// sysbench 1.0.20, oltp_read_write against PostgreSQL 15.
    const OUTPUT: &str = "\
SQL statistics:
    queries performed:
        read:                            55524
        write:                           15720
        other:                           8008
        total:                           79252
    transactions:                        3932   (1298.32 per sec.)
    queries:                             79252  (26168.41 per sec.)
    ignored errors:                      34     (11.23 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          3.0273s
    total number of events:              3932
";

    #[test]
    fn sysbench_is_understood() {
        let expected = Run { tps: 1_298.32, transactions: 3_932, failed: 34, cpu: Duration::from_secs(1) };
        assert_eq!(parse(OUTPUT, Duration::from_secs(1)), Some(expected));
        assert_eq!(parse("FATAL: Connection to database failed", Duration::ZERO), None);
    }
}
