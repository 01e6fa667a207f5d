//! `meridian bench convoy`: what global transactions do to local ones (S-DUR, §5.3 to 5.5), over a
//! simulated network.
//!
//! S-DUR as published, its remedies, and this database's protocol get the same arrivals over the
//! same distances, with none of them slowed by the machine this runs on: the figures are the same
//! everywhere for the same seed (`sim::convoy`).

use clap::Args as ClapArgs;
use meridian_base::{Error, Result};
use meridian_sim::convoy::{self, Config, Measured, Placement, System};
use meridian_workload::histogram::Histogram;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

#[derive(ClapArgs)]
pub struct Args {
    /// Shares of global transactions, in percent. Each system's first one is what its others are
    /// held against.
    #[arg(long, value_delimiter = ',', default_value = "0,1,10,50", value_parser = clap::value_parser!(u32).range(..=100))]
    shares: Vec<u32>,
    /// Transactions per second and partition; arrivals do not wait for answers.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    rate: u32,
    /// Simulated seconds.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,
    /// Thresholds of the reordering with one, in deliveries.
    #[arg(long, value_delimiter = ',', default_value = "20,160")]
    thresholds: Vec<u64>,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where the figures are written.
    #[arg(long, default_value = "bench-convoy.csv")]
    csv: PathBuf,
}

/// What the paper reports for its baseline: local p99 by that with 0 %, at 1, 10 and 50 % (§5.3).
const PAPER: [(Placement, &str); 2] = [(Placement::Zone, "16 x, 17 x, 18 x"), (Placement::Region, "1.07 x, 1.34 x, 1.27 x")];

pub fn run(args: &Args) -> Result<ExitCode> {
    say!(
        "Two partitions, at home in Ireland and Virginia; round trips 90 ms between them, 100 and 170 ms to Oregon; {} transactions \
         per second and partition, {} simulated seconds.\n\
         Each updates two rows of a million; a global one updates one here and one there.",
        args.rate,
        args.seconds
    );
    let mut systems = vec![System::InOrder, System::Delayed];
    systems.extend(args.thresholds.iter().map(|k| System::Threshold(*k)));
    systems.extend([System::Votes, System::Meridian]);
    let mut csv = String::from(
        "placement,system,global_percent,local,local_p50_micros,local_p99_micros,global,global_p50_micros,global_p99_micros,aborted,unfinished\n",
    );
    for (placement, paper) in PAPER {
        say!("\n{}", title(placement));
        say!("{}", head());
        // As in the paper: where every transaction crosses regions, holding one back only makes it
        // late.
        for system in systems.iter().filter(|s| placement == Placement::Zone || **s != System::Delayed) {
            let mut first: Option<Measured> = None;
            for share in &args.shares {
                let config = Config {
                    placement,
                    global_share: f64::from(*share) / 100.0,
                    rate: args.rate.into(),
                    time: Duration::from_secs(args.seconds.into()),
                    seed: args.seed,
                    ..Config::default()
                };
                let measured = convoy::run(*system, &config);
                say!("{}", line(*system, *share, &measured, first.as_ref()));
                csv += &csv_line(placement, *system, *share, &measured);
                first.get_or_insert(measured);
            }
        }
        say!("The paper's figures for S-DUR in order, local p99 with 1, 10 and 50 % by that with 0 %: {paper}.");
    }
    std::fs::write(&args.csv, csv).map_err(|e| Error::fatal(format!("cannot write {}: {e}", args.csv.display())))?;
    say!("\nThe figures are in {}.", args.csv.display());
    Ok(ExitCode::SUCCESS)
}

fn title(placement: Placement) -> &'static str {
    match placement {
        Placement::Zone => "ZONE (WAN 1): a majority of each partition's machines in its own region",
        Placement::Region => "REGION (WAN 2): each partition's machines in three regions",
    }
}

fn name(system: System) -> String {
    match system {
        System::InOrder => "S-DUR in order".to_string(),
        System::Delayed => "S-DUR delayed".to_string(),
        System::Threshold(k) => format!("S-DUR threshold {k}"),
        System::Votes => "S-DUR votes broadcast".to_string(),
        System::Meridian => "Meridian".to_string(),
    }
}

fn head() -> String {
    format!(
        "{:<24}{:>7}  {:>22}  {:>20}  {:>18}  {:>7}",
        "", "global", "local p50/p99 ms", "by the first share's", "global p50/p99 ms", "aborted"
    )
}

fn millis(latency: &Histogram) -> String {
    let of = |share| latency.quantile(share).map(|d| format!("{:.1}", d.as_secs_f64() * 1e3));
    of(0.5).zip(of(0.99)).map_or("-".to_string(), |(p50, p99)| format!("{p50}/{p99}"))
}

fn line(system: System, share: u32, measured: &Measured, first: Option<&Measured>) -> String {
    let ratio = |of: f64| {
        let seconds = |m: &Measured| m.local.quantile(of).map(|d| d.as_secs_f64());
        let ratio = seconds(measured).zip(first.and_then(seconds)).map(|(mine, first)| mine / first.max(1e-9));
        ratio.map_or("-".to_string(), |ratio| format!("{ratio:.2}"))
    };
    let ratios = if first.is_some() { format!("{} / {} x", ratio(0.5), ratio(0.99)) } else { String::new() };
    let unfinished = match measured.unfinished {
        0 => String::new(),
        count => format!("  {count} unfinished"),
    };
    format!(
        "{:<24}{share:>6}%  {:>22}  {ratios:>20}  {:>18}  {:>6.2}%{unfinished}",
        name(system),
        millis(&measured.local),
        millis(&measured.global),
        measured.aborted as f64 * 100.0 / measured.ended().max(1) as f64
    )
}

fn csv_line(placement: Placement, system: System, share: u32, measured: &Measured) -> String {
    let micros = |latency: &Histogram, of| latency.quantile(of).unwrap_or_default().as_micros();
    let placement = if placement == Placement::Zone { "zone" } else { "region" };
    let Measured { local, global, aborted, unfinished } = measured;
    let mut out = format!("{placement},{},{share}", name(system));
    for latency in [local, global] {
        let _ = write!(out, ",{},{},{}", latency.count(), micros(latency, 0.5), micros(latency, 0.99));
    }
    let _ = writeln!(out, ",{aborted},{unfinished}");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(local: u64, global: u64) -> Measured {
        let mut measured = Measured::default();
        (0..10).for_each(|_| measured.local.record(Duration::from_millis(local)));
        (0..5).for_each(|_| measured.global.record(Duration::from_millis(global)));
        measured
    }

    #[test]
    fn ratios_are_to_the_same_systems_first_share() {
        let (alone, mixed) = (measured(8, 100), measured(80, 110));
        assert!(!line(System::InOrder, 0, &alone, None).contains(" x"));
        let text = line(System::InOrder, 10, &mixed, Some(&alone));
        assert!(text.contains("80.0/80.0") && text.contains("10.00 / 10.00 x") && text.contains("110.0/110.0"), "{text}");
        let csv = csv_line(Placement::Zone, System::Threshold(20), 10, &mixed);
        assert_eq!(csv, "zone,S-DUR threshold 20,10,10,80000,80000,5,110000,110000,0,0\n");
    }
}
