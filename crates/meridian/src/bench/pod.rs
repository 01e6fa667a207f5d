//! `meridian bench pod`: a pod, shared nothing with two-phase commit over TCP and over rings, and
//! everything in shared memory, under TPC-C's NewOrder and Payment and under YCSB (PASHA, §4).
//!
//! Counts and simulated time do not depend on how busy this machine is, but for averages of CPU
//! times; the sides run in turns (crate `podbench`).

use clap::Args as ClapArgs;
use meridian_base::{Error, Result};
use meridian_podbench::{Load, Measured, Prices, Run, Side};
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

#[derive(ClapArgs)]
pub struct Args {
    /// Hosts, each with a warehouse, or with a part of YCSB's rows.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u8).range(2..=15))]
    hosts: u8,
    /// Workers of a host; each waits for its transaction.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=16))]
    workers: u8,
    /// Shares of TPC-C's transactions that touch another warehouse, in percent: NewOrder/Payment.
    #[arg(long, value_delimiter = ',', default_value = "0/0,10/15,20/30,40/60,60/90", value_parser = pair)]
    tpcc: Vec<(u32, u32)>,
    /// Shares of YCSB's transactions that touch another host's rows, in percent.
    #[arg(long, value_delimiter = ',', default_value = "0,20,50,100", value_parser = clap::value_parser!(u32).range(0..=100))]
    ycsb: Vec<u32>,
    /// Transactions that are measured, by side and load.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(100..=1_000_000))]
    transactions: u64,
    /// Transactions before that.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(100..=1_000_000))]
    warm_up: u64,
    /// Runs of each, in turns.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=20))]
    rounds: u32,
    /// Microseconds until an entry of a log is durable.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=100_000))]
    log: u64,
    /// A message's microseconds on its way over TCP.
    #[arg(long, default_value_t = 29, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    tcp: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where the figures are written.
    #[arg(long, default_value = "bench-pod.csv")]
    csv: PathBuf,
}

fn pair(text: &str) -> std::result::Result<(u32, u32), String> {
    let percent = |part: &str| part.parse().ok().filter(|percent| *percent <= 100);
    let parts = text.split_once('/').and_then(|(new_orders, payments)| Some((percent(new_orders)?, percent(payments)?)));
    parts.ok_or_else(|| format!("{text} is not two numbers up to 100, as in 10/15"))
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let prices = Prices { log: Duration::from_micros(args.log), tcp: Duration::from_micros(args.tcp), ..Prices::DEFAULT };
    say!(
        "{} hosts, {} workers each, {} transactions by side after {}, {} rounds; medians. A line of shared memory takes {} ns, a \
         message {} µs over TCP and {} µs over a ring, an entry of the log {} µs.",
        args.hosts,
        args.workers,
        args.transactions,
        args.warm_up,
        args.rounds,
        prices.line.as_nanos(),
        prices.tcp.as_micros(),
        prices.ring.as_micros(),
        prices.log.as_micros()
    );
    say!("\n{}", head());
    let mut csv = String::from(
        "load,side,round,committed,aborted,nanos,messages,message_bytes,words,transfers,flushes,invalidations,lines,moved_in,moved_out,log_bytes,cpu_nanos\n",
    );
    let tpcc = args.tpcc.iter().map(|(new_orders, payments)| Load::Tpcc { new_orders: *new_orders, payments: *payments });
    for load in tpcc.chain(args.ycsb.iter().map(|cross| Load::Ycsb { cross: *cross })) {
        let mut rounds: Vec<Vec<Measured>> = vec![Vec::new(); Side::ALL.len()];
        for round in 0..args.rounds {
            for (of, side) in Side::ALL.into_iter().enumerate() {
                let run = Run {
                    load,
                    hosts: args.hosts,
                    workers: args.workers,
                    warm_up: args.warm_up,
                    transactions: args.transactions,
                    seed: args.seed + u64::from(round),
                    prices,
                };
                let measured = meridian_podbench::run(side, &run);
                csv += &csv_line(load, side, round, &measured);
                rounds[of].push(measured);
            }
        }
        for (of, side) in Side::ALL.into_iter().enumerate() {
            say!("{}", line(load, side, &rounds[of], &rounds[0]));
        }
    }
    std::fs::write(&args.csv, csv).map_err(|e| Error::fatal(format!("cannot write {}: {e}", args.csv.display())))?;
    say!("\nEvery run is in {}.", args.csv.display());
    Ok(ExitCode::SUCCESS)
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

fn head() -> String {
    format!(
        "{:15} {:11} {:>9} {:>7} {:>7} {:>7} {:>7} {:>6} {:>6} {:>6} {:>6} {:>6} {:>7} {:>6}",
        "", "", "tx/s", "pod by", "CPU", "pod by", "", "mess-", "", "trans-", "", "", "moves", "log"
    ) + &format!(
        "\n{:15} {:11} {:>9} {:>7} {:>7} {:>7} {:>7} {:>6} {:>6} {:>6} {:>6} {:>6} {:>7} {:>6}",
        "load", "side", "simulated", "this", "µs/tx", "this", "aborted", "ages", "words", "fers", "flush", "lines", "in", "bytes"
    )
}

fn line(load: Load, side: Side, rounds: &[Measured], pod: &[Measured]) -> String {
    let of = |what: &dyn Fn(&Measured) -> f64| median(rounds.iter().map(what).collect());
    // Ratios are those of a round, in which the sides ran one after the other.
    let by = |what: &dyn Fn(&Measured) -> f64| median(pod.iter().zip(rounds).map(|(pod, side)| what(pod) / what(side)).collect());
    let mut text = String::new();
    let _ = write!(
        text,
        "{:15} {:11} {:9.0} {:6.2}x {:7.1} {:6.2}x {:7.3} {:6.2} {:6.0} {:6.1} {:6.1} {:6.0} {:7.3} {:6.0}",
        load.name(),
        side.name(),
        of(&Measured::rate),
        by(&Measured::rate),
        of(&Measured::cpu_micros),
        by(&Measured::cpu_micros),
        of(&|m| m.each(m.aborted)),
        of(&|m| m.each(m.messages)),
        of(&|m| m.each(m.operations.words)),
        of(&|m| m.each(m.operations.transfers)),
        of(&|m| m.each(m.operations.flushes)),
        of(&|m| m.each(m.operations.lines)),
        of(&|m| m.each(m.moved_in)),
        of(&|m| m.each(m.log_bytes)),
    );
    text
}

fn csv_line(load: Load, side: Side, round: u32, m: &Measured) -> String {
    let operations = m.operations;
    format!(
        "{},{},{round},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
        load.name(),
        side.name().replace(',', ""),
        m.committed,
        m.aborted,
        m.time.as_nanos(),
        m.messages,
        m.message_bytes,
        operations.words,
        operations.transfers,
        operations.flushes,
        operations.invalidations,
        operations.lines,
        m.moved_in,
        m.moved_out,
        m.log_bytes,
        m.cpu.as_nanos(),
    )
}
