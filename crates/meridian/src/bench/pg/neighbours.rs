//! What point reads of some clients take while another client runs heavy statements.
//!
//! The readers send at a steady rate, whether they were answered or not: a read that waits behind
//! others began when it was due. Both sides have more readers than this machine has cores, so that
//! some share a thread with the heavy client's session.

use super::side::{Side, Sides};
use super::{Args, csv_of, verdict, write};
use crate::bench::latencies;
use crate::client::PgClient;
use meridian_base::{Error, Result};
use meridian_workload::client::Client;
use meridian_workload::histogram::Histogram;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};

mod heavy;

use heavy::{HEAVY, Heavy};

const DATABASE: &str = "neighbours";
const READERS: usize = 4;
/// Between two reads of one reader.
const EVERY: Duration = Duration::from_millis(5);
const POINTS: i64 = 100_000;
const TIMEOUT: Duration = Duration::from_secs(5);
/// A statement that is not over so long after its timeout cannot be interrupted.
const OVERRUN: Duration = Duration::from_secs(30);
/// What the point reads' p99 may be beside anything.
const BUDGET: Duration = Duration::from_millis(20);
/// How many rows a transaction writes while tables are filled.
const PART: i64 = 10_000;

/// What came of one heavy statement on one side.
#[derive(Default)]
struct Found {
    reads: Histogram,
    /// Executions that ended, and the longest.
    done: u64,
    longest: Duration,
    /// SQLSTATE → how many executions ended so.
    errors: BTreeMap<String, u64>,
}

pub async fn run(args: &Args, sides: &Sides) -> Result<()> {
    let seconds = Duration::from_secs(args.seconds.into());
    say!(
        "\n{READERS} clients read by key every {} ms for {} s; another one runs a statement again and again, with a statement_timeout of {} s",
        EVERY.as_millis(),
        args.seconds,
        TIMEOUT.as_secs()
    );
    for side in &sides.both {
        set_up(side).await?;
    }
    say!("{HEAD}");
    let mut csv = String::from("statement,system,reads,p50_micros,p99_micros,max_micros,executions,longest_millis,errors\n");
    let mut missed = Vec::new();
    for (n, heavy) in HEAVY.iter().enumerate() {
        let mut found = [Found::default(), Found::default()];
        for (at, side) in sides.in_turn(n as u32) {
            let named = |e: Error| e.context(format!("{}: {}", side.name, heavy.name));
            found[at] = beside(side, heavy, seconds).await.map_err(named)?;
        }
        say!("{}", line(heavy, &found));
        for (system, found) in ["postgresql", "meridian"].iter().zip(&found) {
            let micros = |share| found.reads.quantile(share).unwrap_or_default().as_micros();
            let errors: Vec<String> = found.errors.iter().map(|(state, n)| format!("{state}: {n}")).collect();
            let _ = writeln!(
                csv,
                "\"{}\",{system},{},{},{},{},{},{},{}",
                heavy.name,
                found.reads.count(),
                micros(0.5),
                micros(0.99),
                found.reads.max().as_micros(),
                found.done,
                found.longest.as_millis(),
                errors.join(" ")
            );
        }
        write(&csv_of(args, "neighbours"), &csv)?;
        if found[1].reads.quantile(0.99).unwrap_or_default() > BUDGET {
            missed.push(heavy.name);
        }
    }
    let what = format!("p99 of point reads beside any statement is {} ms or less", BUDGET.as_millis());
    say!("{}", verdict(missed.is_empty(), &what));
    if !missed.is_empty() {
        say!("          longer beside: {}", missed.join("; "));
    }
    Ok(())
}

async fn set_up(side: &Side) -> Result<()> {
    side.create_database(DATABASE).await?;
    let mut client = side.connect(DATABASE).await?;
    for table in heavy::TABLES {
        client.execute(table).await?;
    }
    for (sql, rows) in heavy::ROWS {
        for first in (1..=rows).step_by(PART as usize) {
            let last = (first + PART - 1).min(rows);
            client.execute(&sql.replace("$first", &first.to_string()).replace("$last", &last.to_string())).await?;
        }
    }
    client.execute("ANALYZE").await.map(drop)
}

/// Reads for some time beside one statement.
async fn beside(side: &Side, heavy: &Heavy, time: Duration) -> Result<Found> {
    let mut found = Found::default();
    let mut client = side.connect(DATABASE).await?;
    client.execute(&format!("SET statement_timeout = '{}s'", TIMEOUT.as_secs())).await?;
    let mut readers = JoinSet::new();
    for n in 0..READERS {
        let reader = side.connect(DATABASE).await?;
        readers.spawn(read(reader, n as i64, time));
    }
    let statements = heavy.statements();
    let until = Instant::now() + time;
    let mut next = statements.iter().cycle();
    while Instant::now() < until {
        let Some(sql) = next.next() else {
            tokio::time::sleep_until(until).await;
            break;
        };
        let started = Instant::now();
        match tokio::time::timeout(TIMEOUT + OVERRUN, client.execute(sql)).await {
            Ok(Ok(_)) => found.done += 1,
            Ok(Err(e)) => *found.errors.entry(e.sqlstate().to_string()).or_default() += 1,
            Err(_) => return Err(Error::fatal(format!("not over {} s after its statement_timeout", OVERRUN.as_secs()))),
        }
        found.longest = found.longest.max(started.elapsed());
    }
    while let Some(reads) = readers.join_next().await {
        let reads = reads.map_err(|e| Error::internal(format!("a reader ended: {e}")))??;
        found.reads.merge(&reads);
    }
    for sql in heavy.after {
        client.execute(sql).await?;
    }
    Ok(found)
}

/// One reader.
async fn read(mut client: PgClient, n: i64, time: Duration) -> Result<Histogram> {
    const SQL: &str = "SELECT v FROM points WHERE id = $1";
    let mut key = n;
    // Prepared before it counts.
    client.query(SQL, &[1.into()]).await?;
    let mut reads = Histogram::new();
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let until = Instant::now() + time;
    loop {
        let due = ticks.tick().await;
        if due > until {
            return Ok(reads);
        }
        key = (key * 7919 + 104_729) % POINTS;
        let rows = client.query(SQL, &[(key + 1).into()]).await?;
        rows.int(0, 0)?;
        reads.record(due.elapsed());
    }
}

const HEAD: &str = concat!(
    "                                PostgreSQL                                Meridian\n",
    "beside                              p50     p99  max ms (runs/longest)        p50     p99  max ms (runs/longest)"
);

fn line(heavy: &Heavy, found: &[Found; 2]) -> String {
    let cells = |found: &Found| {
        let max = latencies::millis(&found.reads, 1.0);
        let mut told = format!("{}/{:.1}s", found.done, found.longest.as_secs_f64());
        found.errors.iter().for_each(|(state, n)| _ = write!(told, " {state}x{n}"));
        format!("{:>7}{:>8}{max:>8}  ({told})", latencies::millis(&found.reads, 0.5), latencies::millis(&found.reads, 0.99))
    };
    format!("{:<32}{:<42}{}", heavy.name, cells(&found[0]), cells(&found[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_of_both_sides() {
        let mut found = [Found::default(), Found::default()];
        found[0].reads.record(Duration::from_millis(1));
        found[1].reads.record(Duration::from_millis(40));
        found[1].errors.insert("57014".into(), 2);
        let text = line(&HEAVY[1], &found);
        assert!(text.contains("40") && text.contains("57014x2"), "{text}");
    }
}
