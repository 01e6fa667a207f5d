//! Each planted bug is found by the random histories.

use crate::histories::{Plan, plan, run};
use meridian_escrow::majority::{PlantedBug, Rules};

const HISTORIES: u64 = 20_000;

/// What is wrong when a rule is left out.
fn found(bug: PlantedBug) -> String {
    let rules = Rules::without(bug);
    let plans = [Plan { steps: 90, ..plan(3) }, Plan { steps: 120, ..plan(5) }, Plan { steps: 120, changes: true, ..plan(3) }];
    let found = plans.into_iter().find_map(|plan| {
        let plan = Plan { rules, is_strict: false, ..plan };
        run(plan, 1, HISTORIES).err().map(|(seed, wrong)| format!("{} sites, history {seed}: {wrong}", plan.sites))
    });
    found.unwrap_or_else(|| panic!("{} is not found", bug.name()))
}

#[test]
fn every_planted_bug_is_found() {
    for bug in PlantedBug::ALL {
        println!("{}: {}", bug.name(), found(bug));
    }
}
