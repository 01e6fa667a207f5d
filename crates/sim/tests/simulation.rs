//! Whole Meridian clusters in the simulator: the fixed seeds of `cargo test`.

use meridian_node::PlantedBug;
use meridian_sim::campaign::many::{self, Campaign, Outcome};
use meridian_sim::campaign::options::{Options, WorkloadKind};
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

/// Consistency conditions 1 to 4 of TPC-C, through whatever the seeds do to the cluster.
#[test]
fn warehouses_of_several_regions_stay_consistent() {
    let options = Options {
        workload: Some(WorkloadKind::Tpcc),
        shape: Some((3, 1)),
        duration: Some(Duration::from_secs(8)),
        ..Options::default()
    };
    let outcome = run(&campaign(1, 4, options));
    let failed: Vec<String> = outcome.reports.iter().filter(|r| !r.is_ok()).map(|r| r.to_string()).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Some seed of a few must show the bug, and the same seeds without it must pass.
fn is_caught(bug: PlantedBug, workload: WorkloadKind, shape: (usize, usize), first_seed: u64, seeds: u64) {
    let options = |planted| Options {
        workload: Some(workload),
        shape: Some(shape),
        duration: Some(Duration::from_secs(10)),
        bug: planted,
        provoke: Some(bug),
        ..Options::default()
    };
    let with = run(&campaign(first_seed, seeds, options(Some(bug))));
    assert!(with.reports.iter().any(|report| !report.is_ok()), "{} was not caught", bug.name());
    let without = run(&campaign(first_seed, seeds, options(None)));
    let failed: Vec<String> = without.reports.iter().filter(|r| !r.is_ok()).map(|r| r.to_string()).collect();
    assert!(failed.is_empty(), "without the bug: {}", failed.join("\n"));
}

/// Counterexample 18.
#[test]
fn reading_in_flight_writes_is_caught() {
    is_caught(PlantedBug::ReadInFlight, WorkloadKind::ListAppend, (1, 3), 1, 2);
}

/// Counterexample 6.
#[test]
fn a_commit_that_is_not_idempotent_is_caught() {
    is_caught(PlantedBug::CommitNotIdempotent, WorkloadKind::ListAppend, (1, 3), 5, 4);
}

/// Counterexample 28.
#[test]
fn comparing_only_the_newest_mask_is_caught() {
    is_caught(PlantedBug::NewestMaskOnly, WorkloadKind::ListAppend, (1, 3), 2, 2);
}

#[test]
fn phantoms_of_uncertified_ranges_are_caught() {
    is_caught(PlantedBug::SkipRangeCheck, WorkloadKind::ListAppend, (1, 3), 1, 2);
}

/// Counterexample 19.
#[test]
fn a_schema_lease_without_its_version_is_caught() {
    is_caught(PlantedBug::SchemaLeaseByBoundOnly, WorkloadKind::SchemaSteps, (1, 3), 5, 1);
}

/// Counterexample 20.
#[test]
fn a_snapshot_that_stays_behind_what_was_acknowledged_is_caught() {
    is_caught(PlantedBug::SnapshotDoesNotMove, WorkloadKind::ListAppend, (3, 1), 1, 3);
}

/// Counterexample 11.
#[test]
fn certifying_below_the_garbage_threshold_is_caught() {
    is_caught(PlantedBug::CertifyBelowGc, WorkloadKind::Foreign, (1, 3), 48, 2);
}
