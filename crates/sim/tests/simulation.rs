//! Whole Meridian clusters in the simulator: the fixed seeds of `cargo test`.

use meridian_sim::campaign::many::{self, Campaign, Outcome};
use meridian_sim::campaign::options::Options;
use std::path::PathBuf;
use std::time::Duration;

fn campaign(first_seed: u64, seeds: u64, options: Options) -> Campaign {
    Campaign {
        first_seed,
        seeds,
        minutes: None,
        jobs: 2,
        program: Some(PathBuf::from(env!("CARGO_BIN_EXE_meridian-sim"))),
        prefix: Vec::new(),
        options,
    }
}

fn run(campaign: &Campaign) -> Outcome {
    many::run(campaign, |_| ()).expect("processes can be started")
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let options = Options { duration: Some(Duration::from_secs(5)), ..Options::default() };
    let mut once = run(&campaign(1, 4, options.clone()));
    let mut again = run(&campaign(1, 4, options));
    for outcome in [&mut once, &mut again] {
        outcome.reports.sort_by_key(|report| report.seed);
    }
    assert_eq!(once.reports, again.reports);
    assert!(once.reports.iter().map(|report| report.events).sum::<u64>() > 4_000, "something happened");
}

#[test]
fn fixed_seeds_pass() {
    let outcome = run(&campaign(100, 12, Options { duration: Some(Duration::from_secs(8)), ..Options::default() }));
    let failed: Vec<String> = outcome.reports.iter().filter(|r| !r.is_ok()).map(|r| r.to_string()).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
