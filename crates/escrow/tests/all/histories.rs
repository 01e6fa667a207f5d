//! Random histories of a row: rounds, deltas, numbers that are set, failures. At every step:
//!
//! * E3: no site is overdrawn, and what it offers is there.
//! * At most one value is chosen in an instance of an incarnation, and a site applies only what was
//!   chosen, once.
//!
//! When faults have ended, every round ends and no token is held; then grants sum up as in the
//! beginning (E2), every part of every decision is applied, and the number was within its bounds at
//! every timestamp (E15).

use crate::world::{Checked, Counts, World};
use meridian_escrow::majority::{PlantedBug, Rules};

/// Ballots that the sites begin after faults have ended. A ballot without a rival ends its round.
const ENDING_ATTEMPTS: usize = 60;
/// Messages that it takes; sites that answer each other for ever send more.
const ENDING_MESSAGES: usize = 20_000;

/// What may happen in a history.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub sites: usize,
    /// How many of the sites are added on the way: with a renewal of the row, or without one.
    pub grows: usize,
    pub grows_in_place: bool,
    pub steps: usize,
    /// SET, DELETE, INSERT and renewals.
    pub changes: bool,
    /// SET and DELETE do not wait for offers.
    pub sets_over_offers: bool,
    /// Checks that only a correct protocol passes at every step; else only those of what follows.
    pub is_strict: bool,
    /// Until the end.
    pub faults: bool,
    pub rules: Rules,
}

pub fn plan(sites: usize) -> Plan {
    Plan {
        sites,
        grows: 0,
        grows_in_place: false,
        steps: 70,
        changes: false,
        sets_over_offers: false,
        is_strict: true,
        faults: true,
        rules: Rules::ALL,
    }
}

/// One history.
pub fn history(world: &mut World) -> Checked {
    for step in 0..world.plan.steps {
        if world.plan.grows_in_place && step * 2 == world.plan.steps {
            world.grow();
        }
        world.step()?;
    }
    world.plan.faults = false;
    // A minority may stay away for long: the others end their rounds without it.
    let is_minority = world.nodes.iter().filter(|node| node.is_down).count() * 2 < world.nodes.len();
    if is_minority && world.plan.grows == 0 {
        world.learn_outcomes()?;
        settle(world)?;
    }
    world.nodes.iter_mut().for_each(|node| node.is_down = false);
    world.learn_outcomes()?;
    settle(world)?;
    world.check_tokens()?;
    world.check_applied()?;
    world.check_history()
}

/// Every site that is there gets out of its round.
fn settle(world: &mut World) -> Checked {
    let mut messages = 0;
    for _ in 0..ENDING_ATTEMPTS {
        // Messages arrive, and leaders send again what is not answered.
        for _ in 0..3 {
            while !world.net.is_empty() {
                let at = world.random.below(world.net.len());
                let (to, from, message) = world.net.swap_remove(at);
                world.deliver(to, from, &message)?;
                messages += 1;
                if messages > ENDING_MESSAGES {
                    return Err("messages do not end".into());
                }
            }
            (0..world.nodes.len()).for_each(|n| world.poke(n));
        }
        let out: Vec<usize> = (0..world.nodes.len()).filter(|n| !world.nodes[*n].is_down && world.nodes[*n].is_out()).collect();
        if out.is_empty() {
            return Ok(());
        }
        let at = world.random.below(out.len());
        world.begin(out[at])?;
    }
    Err("a round does not end".into())
}

/// Histories from a seed on; what is wrong with the first one that fails.
pub fn run(plan: Plan, first: u64, count: u64) -> Result<Counts, (u64, String)> {
    let mut all = Counts::default();
    for seed in first..first + count {
        let mut world = World::new(plan, seed);
        history(&mut world).map_err(|wrong| (seed, wrong))?;
        let Counts { decided, applied, ballots, deltas, changes, caught_up } = world.counts;
        all.decided += decided;
        all.applied += applied;
        all.ballots += ballots;
        all.deltas += deltas;
        all.changes += changes;
        all.caught_up += caught_up;
    }
    Ok(all)
}

/// The events of a history that fails, to find out why.
fn explain(plan: Plan, seed: u64) -> String {
    let mut world = World::new(plan, seed);
    world.trace = Some(Vec::new());
    let ended = history(&mut world);
    format!("{}\n{ended:?}, seed {seed} of {plan:?}", world.trace.unwrap_or_default().join("\n"))
}

fn all_hold(plan: Plan, count: u64) {
    let counts = run(plan, 1, count).unwrap_or_else(|(seed, _)| panic!("{}", explain(plan, seed)));
    println!("{count} histories of {} sites: {counts:?}", plan.sites);
    // Else the histories show nothing.
    assert!(counts.decided > count / 2 && counts.applied > count && counts.caught_up > count / 20, "{counts:?}");
    assert!(!plan.changes || counts.changes > count / 20, "{counts:?}");
}

#[test]
fn three_sites() {
    all_hold(plan(3), 30_000);
}

#[test]
fn five_sites() {
    all_hold(Plan { steps: 120, ..plan(5) }, 15_000);
}

#[test]
fn four_sites_where_half_is_no_majority() {
    all_hold(Plan { steps: 90, ..plan(4) }, 10_000);
}

#[test]
fn numbers_that_are_set_and_rows_that_come_and_go() {
    all_hold(Plan { changes: true, steps: 120, ..plan(3) }, 25_000);
}

#[test]
fn a_site_is_added_with_a_new_incarnation() {
    all_hold(Plan { changes: true, grows: 1, steps: 120, ..plan(4) }, 10_000);
    all_hold(Plan { changes: true, grows: 2, steps: 120, ..plan(5) }, 5_000);
}

/// A majority of the old sites and one of the new ones need not have a site in common: both decide
/// the same instance.
#[test]
fn sites_are_not_added_to_an_incarnation_that_has_begun() {
    let plan = Plan { grows: 2, grows_in_place: true, steps: 120, ..plan(5) };
    let (_, wrong) = run(plan, 1, 20_000).expect_err("two majorities decide");
    assert!(wrong.contains("two values are chosen"), "{wrong}");
}

/// SET and DELETE write every share anew, so what is under way for the old ones does not matter.
#[test]
fn set_and_delete_need_not_wait_for_offers() {
    all_hold(Plan { changes: true, sets_over_offers: true, steps: 120, ..plan(3) }, 10_000);
}

#[test]
fn a_bug_is_told_with_its_history() {
    let plan = Plan { rules: Rules::without(PlantedBug::GivesUp), ..plan(3) };
    let (seed, wrong) = run(plan, 1, 10_000).expect_err("the bug shows");
    assert!(explain(plan, seed).contains(&wrong));
}
