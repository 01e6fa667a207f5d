//! Whole Meridian clusters in the simulator: the fixed seeds of `cargo test`.

use meridian_commit::PlantedBug as BallotBug;
use meridian_region::PlantedBug;
use meridian_sim::campaign::many::{self, Campaign, Outcome};
use meridian_sim::campaign::options::{Bug, Options, WorkloadKind};
use meridian_sim::campaign::report::Report;
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

/// A read of several keys whose snapshot moved in the middle; a transaction that read at its
/// primary, and then at a replica behind it; a machine that slept and read GLOBAL rows at the time
/// that it found; a commit that an earlier attempt had made, and a later one said to be refused; a
/// group that waited for a new voter that was gone for good; a job that slept through the end of
/// its move, and copied what was left into the next one.
#[test]
fn seeds_that_failed_pass() {
    let answers = [30_000_082, 30_001_692, 30_006_106, 100_001_752, 100_002_127, 130_000_279, 170_000_550];
    let members = [210_004_269, 235_001_577, 235_003_988];
    let jobs = [264_100_322];
    for seed in answers.into_iter().chain(members).chain(jobs) {
        let outcome = run(&campaign(seed, 1, Options::default()));
        assert!(outcome.reports.iter().all(Report::is_ok), "{}", outcome.reports[0]);
    }
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

/// How many seeds may pass before one shows a planted bug, and how many simulated seconds if these
/// are more seeds. Which seed does changes whenever messages do.
const SEEDS_MAX: u64 = 120;
const SECONDS_MAX: u64 = 1_200;

/// A planted bug and where to look for it: from the first seed on, this many at a time, some must
/// show it, by an answer that is wrong or an assertion that fails. Without the bug all of those
/// that were run together must pass.
struct Caught {
    workload: WorkloadKind,
    shape: (usize, usize),
    seconds: u64,
    first_seed: u64,
    seeds: u64,
}

fn caught(workload: WorkloadKind, shape: (usize, usize), first_seed: u64, seeds: u64) -> Caught {
    Caught { workload, shape, seconds: 10, first_seed, seeds }
}

impl Caught {
    fn after(self, seconds: u64) -> Caught {
        Caught { seconds, ..self }
    }

    fn shows(&self, bug: impl Into<Bug>) {
        let bug = bug.into();
        let options = |planted| Options {
            workload: Some(self.workload),
            shape: Some(self.shape),
            duration: Some(Duration::from_secs(self.seconds)),
            bug: planted,
            provoke: Some(bug),
            ..Options::default()
        };
        let shown = (self.first_seed..self.first_seed + SEEDS_MAX.max(SECONDS_MAX / self.seconds))
            .step_by(self.seeds as usize)
            .find(|first| run(&campaign(*first, self.seeds, options(Some(bug)))).reports.iter().any(Report::shows_wrong));
        let first_seed = shown.unwrap_or_else(|| panic!("{} was not caught", bug.name()));
        let without = run(&campaign(first_seed, self.seeds, options(None)));
        let failed: Vec<String> = without.reports.iter().filter(|r| !r.is_ok()).map(|r| r.to_string()).collect();
        assert!(failed.is_empty(), "without the bug: {}", failed.join("\n"));
    }
}

/// Counterexample 84.
#[test]
fn deltas_that_ignore_what_is_in_flight_are_caught() {
    caught(WorkloadKind::Escrow, (3, 1), 1, 4).shows(PlantedBug::EscrowIgnoresInFlight);
}

/// Counterexample 85.
#[test]
fn a_new_primary_that_ignores_prepared_deltas_is_caught() {
    caught(WorkloadKind::Escrow, (3, 3), 1, 4).shows(PlantedBug::EscrowIgnoresPrepared);
}

/// Counterexample 87.
#[test]
fn a_site_that_gives_what_it_has_not_is_caught() {
    caught(WorkloadKind::Escrow, (3, 1), 5, 4).shows(PlantedBug::EscrowTrustsOffer);
}

/// Counterexample 95.
#[test]
fn shares_computed_from_what_is_applied_are_caught() {
    caught(WorkloadKind::Escrow, (3, 1), 1, 2).shows(PlantedBug::EscrowFromApplied);
}

/// Counterexample 18.
#[test]
fn reading_in_flight_writes_is_caught() {
    caught(WorkloadKind::ListAppend, (1, 3), 1, 2).shows(PlantedBug::ReadInFlight);
}

/// Counterexample 6.
#[test]
fn a_commit_that_is_not_idempotent_is_caught() {
    caught(WorkloadKind::ListAppend, (1, 3), 5, 4).shows(PlantedBug::CommitNotIdempotent);
}

/// Counterexample 7.
#[test]
fn a_successor_that_starts_below_its_predecessors_ceiling_is_caught() {
    caught(WorkloadKind::ListAppend, (1, 3), 15, 1).after(20).shows(PlantedBug::SuccessorIgnoresCeiling);
}

/// Counterexample 28.
#[test]
fn comparing_only_the_newest_mask_is_caught() {
    caught(WorkloadKind::ListAppend, (1, 3), 2, 2).shows(PlantedBug::NewestMaskOnly);
}

#[test]
fn phantoms_of_uncertified_ranges_are_caught() {
    caught(WorkloadKind::ListAppend, (1, 3), 1, 2).shows(PlantedBug::SkipRangeCheck);
}

#[test]
fn a_large_transaction_that_nobody_waits_for_is_caught() {
    caught(WorkloadKind::ListAppend, (1, 3), 1, 2).after(6).shows(PlantedBug::LargeTouchesNothing);
}

#[test]
fn a_promise_made_amid_the_parts_of_a_transaction_is_caught() {
    caught(WorkloadKind::Bank, (3, 1), 4, 1).after(6).shows(PlantedBug::PartClosesEarly);
}

/// Counterexample 19.
#[test]
fn a_schema_lease_without_its_version_is_caught() {
    caught(WorkloadKind::SchemaSteps, (1, 3), 2, 1).shows(PlantedBug::SchemaLeaseByBoundOnly);
}

#[test]
fn a_read_that_looks_at_the_schema_once_is_caught() {
    caught(WorkloadKind::SchemaSteps, (1, 3), 4, 1).after(8).shows(PlantedBug::SchemaReadOnce);
}

/// Counterexample 20.
#[test]
fn a_snapshot_that_stays_behind_what_was_acknowledged_is_caught() {
    caught(WorkloadKind::ListAppend, (3, 1), 1, 3).shows(PlantedBug::SnapshotDoesNotMove);
}

/// Counterexample 11.
#[test]
fn certifying_below_the_garbage_threshold_is_caught() {
    caught(WorkloadKind::Foreign, (1, 3), 1, 1).shows(PlantedBug::CertifyBelowGc);
}

/// Counterexample 1.
#[test]
fn a_replica_that_reads_past_what_is_prepared_is_caught() {
    caught(WorkloadKind::ListAppend, (3, 1), 3, 2).after(8).shows(PlantedBug::ReplicaReadSkipsPrepared);
}

/// Counterexample 8.
#[test]
fn a_round_that_looks_only_at_what_is_committed_is_caught() {
    caught(WorkloadKind::Bank, (3, 1), 124, 1).shows(PlantedBug::RoundIgnoresWriters);
}

/// Counterexample 21.
#[test]
fn reads_over_regions_without_a_round_are_caught() {
    caught(WorkloadKind::ListAppend, (3, 1), 8, 2).after(6).shows(PlantedBug::RoundLeftOut);
}

/// Counterexample 16.
#[test]
fn an_error_of_an_old_replica_is_caught() {
    caught(WorkloadKind::Inserts, (3, 1), 1, 1).after(3).shows(PlantedBug::ErrorNotConfirmed);
}

#[test]
fn reservations_that_end_too_early_are_caught() {
    caught(WorkloadKind::ListAppend, (3, 1), 1, 2).after(8).shows(PlantedBug::DropReservationEarly);
}

#[test]
fn a_reserving_read_that_holds_nothing_is_caught() {
    caught(WorkloadKind::ListAppend, (3, 1), 31, 2).shows(PlantedBug::ReservingReadHoldsNothing);
}

/// Counterexample 3.
#[test]
fn an_outcome_that_no_vote_decides_is_caught() {
    caught(WorkloadKind::Bank, (3, 1), 1, 2).shows(BallotBug::DecideByBound);
}

/// Counterexample 4.
#[test]
fn an_outcome_acknowledged_before_it_is_durable_is_caught() {
    caught(WorkloadKind::Bank, (2, 1), 36, 1).after(42).shows(BallotBug::AckBeforeDurable);
}

/// Counterexample 12.
#[test]
fn a_vote_that_is_not_logged_is_caught() {
    // What it leaves undecided blocks its rows: after a few seconds nothing more can be seen.
    caught(WorkloadKind::ListAppend, (3, 1), 1_112, 1).after(3).shows(BallotBug::UnloggedReadOnlyVote);
}

#[test]
fn a_vote_sent_before_it_is_durable_is_caught() {
    caught(WorkloadKind::Bank, (3, 1), 1, 2).shows(BallotBug::VoteBeforeDurable);
}

#[test]
fn an_outcome_forgotten_before_everybody_has_it_is_caught() {
    caught(WorkloadKind::Bank, (2, 1), 8, 1).after(42).shows(BallotBug::ForgetBeforeAcks);
}

/// Counterexample 2.
#[test]
fn reservations_that_end_before_a_future_commit_are_caught() {
    caught(WorkloadKind::Foreign, (3, 1), 100, 1).shows(PlantedBug::ReleaseBeforeClock);
}

/// Counterexample 25.
#[test]
fn global_rows_that_are_not_looked_at_again_are_caught() {
    caught(WorkloadKind::ListAppend, (3, 1), 106, 1).after(15).shows(PlantedBug::GlobalReadsNotRechecked);
}

#[test]
fn reading_global_rows_without_uncertainty_is_caught() {
    caught(WorkloadKind::Registers, (3, 1), 100, 2).shows(PlantedBug::UncertaintySkipped);
}

/// As with a lead that is too short, if nobody waited for the promise.
#[test]
fn reading_global_rows_where_they_are_not_final_is_caught() {
    caught(WorkloadKind::Registers, (3, 1), 101, 1).shows(PlantedBug::GlobalReadsNotClosed);
}

#[test]
fn telling_global_rows_before_their_time_is_caught() {
    caught(WorkloadKind::Registers, (3, 1), 103, 1).shows(PlantedBug::ReaderDoesNotWait);
}

#[test]
fn acknowledging_a_global_write_before_its_time_is_caught() {
    caught(WorkloadKind::Registers, (3, 1), 101, 1).shows(PlantedBug::WriterDoesNotWait);
}
