//! Every rule that is left out is seen by the runs (`docs/design/pod.md`, «Planted bugs»).

use crate::clients::Kind;
use crate::runs::wrong;
use crate::simulation::Options;
use meridian_pod::{PlantedBug, Rules};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The first seed that shows it, and how.
fn found(bug: PlantedBug, seeds: u64) -> Option<(u64, Kind, String)> {
    for seed in 0..seeds {
        for kind in [Kind::Lists, Kind::Bank] {
            let hosts = 2 + (seed % 3) as u8;
            let options = Options { hosts, kills: (seed % 4) as u32, rules: Rules::without(bug), ..Options::new(kind) };
            // An assertion is a way of seeing it.
            let run = catch_unwind(AssertUnwindSafe(|| wrong(options, seed)));
            match run {
                Ok(None) => {}
                Ok(Some(what)) => return Some((seed, kind, what)),
                Err(_) => return Some((seed, kind, "an assertion".into())),
            }
        }
    }
    None
}

/// Bugs of memory that hardware does not keep coherent, of ranges and of leases are other tests'.
const SEEN_HERE: [PlantedBug; 20] = [
    PlantedBug::ClosedByClock,
    PlantedBug::SealedBeforeDrained,
    PlantedBug::LocksAfterDraw,
    PlantedBug::ValidatesBeforeDraw,
    PlantedBug::ReadsInFlight,
    PlantedBug::UnpublishedIsFree,
    PlantedBug::BlindTakesOver,
    PlantedBug::LoadsOnce,
    PlantedBug::RepairUndoesRing,
    PlantedBug::MovesInFlight,
    PlantedBug::MovesOutUnapplied,
    PlantedBug::OldVersionUnapplied,
    PlantedBug::SnapshotIgnoresAcked,
    PlantedBug::PlaceNotRechecked,
    PlantedBug::MovesOutUnlocked,
    PlantedBug::ReusesAtOnce,
    PlantedBug::TakesOverUnapplied,
    PlantedBug::TakesOverBehind,
    PlantedBug::GainsNothing,
    PlantedBug::SentAgainAtOnce,
];

#[test]
fn every_rule_that_is_left_out_is_missed() {
    let mut missed = Vec::new();
    for bug in SEEN_HERE {
        match found(bug, 2000) {
            Some((seed, kind, what)) => println!("{}: seed {seed}, {kind:?}: {what}", bug.name()),
            None => missed.push(bug.name()),
        }
    }
    assert!(missed.is_empty(), "not seen: {missed:?}");
}
