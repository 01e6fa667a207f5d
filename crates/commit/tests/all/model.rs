//! Every history of small systems, explored exhaustively, with changes of primary at every moment
//! and a network that does what it likes (see `world`). In every state:
//!
//! * T4: a group that said YES at a timestamp never says another, nor NO; its log has one vote and
//!   one outcome.
//! * T5: outcomes are equal at all participants, follow from the votes, and have the effects of the
//!   slices at that timestamp.
//! * T1, T2: of the transactions that commit, no two that conflict share a timestamp, and each
//!   one's reads hold at its own.
//!
//! And from every state, if everything that may be lost is lost and nothing after that, every
//! transaction ends and everything is forgotten.

use crate::world::{Event, Hold, Messages, Said, Scenario, Slice, World, key, txn};
use meridian_base::record::{Outcome, Record};
use meridian_base::{Standing, Timestamp};
use meridian_commit::{PlantedBug, Rules};
use std::collections::{BTreeMap, BTreeSet, HashSet};

type Checked = Result<(), String>;

/// More than any scenario has: a test that grows without bound ends.
const STATES_MAX: usize = 400_000;
/// States from which the way to rest is tried: one in so many.
const REST_ONE_IN: usize = 32;

fn outcomes(world: &World, scenario: &Scenario, t: usize) -> Vec<Option<Outcome>> {
    let of = |n: usize| {
        world.groups[n].0.history.iter().find_map(|r| match r {
            Record::Outcome(o) if o.id == txn(t) => Some(*o),
            _ => None,
        })
    };
    scenario.transactions[t].iter().map(|s| of(s.group)).collect()
}

/// T4.
fn invariant_votes_never_change(world: &World, scenario: &Scenario) -> Checked {
    for (group, _) in &world.groups {
        for (id, said) in &group.said {
            let yes = said.iter().filter(|s| matches!(s, Said::Yes(_))).count();
            if yes > 1 || (yes == 1 && said.contains(&Said::No)) {
                return Err(format!("{} says {said:?} about {id}", group.id));
            }
        }
        for t in 0..scenario.transactions.len() {
            let is_vote = |r: &&Record| match r {
                Record::Prepared(p) => p.id == txn(t),
                Record::Refused(id) => *id == txn(t),
                _ => false,
            };
            let is_outcome = |r: &&Record| matches!(r, Record::Outcome(o) if o.id == txn(t));
            let (votes, outcomes) =
                (group.history.iter().filter(is_vote).count(), group.history.iter().filter(is_outcome).count());
            if votes > 1 || outcomes > votes {
                return Err(format!("{} has {votes} votes and {outcomes} outcomes of {}", group.id, txn(t)));
            }
        }
    }
    Ok(())
}

/// T5. Gives the commit timestamp of those that have committed anywhere, the gateway included.
fn invariant_one_outcome(world: &World, scenario: &Scenario) -> Result<BTreeMap<usize, Timestamp>, String> {
    let mut committed = BTreeMap::new();
    for (t, slices) in scenario.transactions.iter().enumerate() {
        let votes: Option<Vec<Timestamp>> = slices
            .iter()
            .map(|s| {
                let said = world.groups[s.group].0.said.get(&txn(t))?;
                said.iter().find_map(|s| if let Said::Yes(at) = s { Some(*at) } else { None })
            })
            .collect();
        // Whoever has all votes may act on them, and the gateway does.
        let acknowledged = votes.and_then(|votes| votes.into_iter().max());
        let outcomes = outcomes(world, scenario, t);
        let known: BTreeSet<Option<Timestamp>> = outcomes.iter().flatten().map(|o| o.at).chain(acknowledged.map(Some)).collect();
        if known.len() > 1 {
            return Err(format!("{} ends as {known:?}", txn(t)));
        }
        let Some(at) = known.into_iter().next().flatten() else { continue };
        committed.insert(t, at);
        for (slice, outcome) in slices.iter().zip(outcomes) {
            let group = &world.groups[slice.group].0;
            let is_prepared = group.history.iter().any(|r| matches!(r, Record::Prepared(p) if p.id == txn(t)));
            if !is_prepared {
                return Err(format!("{} committed and is not in the log of {}", txn(t), group.id));
            }
            let is_visible = |k: &u8| group.store.versions(&key(*k)).iter().filter(|v| v.0 == at).count() == 1;
            if outcome.is_some() != slice.writes.iter().all(is_visible) && !slice.writes.is_empty() {
                return Err(format!("{} is not applied at {} as its outcome says", txn(t), group.id));
            }
            if matches!(group.standing(t), Standing::Forgotten | Standing::Unknown | Standing::Refused)
                && outcomes_missing(world, scenario, t)
            {
                return Err(format!("{} has forgotten {}, which is not decided everywhere", group.id, txn(t)));
            }
        }
    }
    Ok(committed)
}

fn outcomes_missing(world: &World, scenario: &Scenario, t: usize) -> bool {
    outcomes(world, scenario, t).iter().any(Option::is_none)
}

/// T1 and T2. Every transaction has read what was there in the beginning.
fn invariant_serializable(committed: &BTreeMap<usize, Timestamp>, scenario: &Scenario) -> Checked {
    for (a, at_a) in committed {
        for (b, at_b) in committed.iter().filter(|(b, _)| *b != a) {
            let meet =
                |x: &Slice, y: &Slice| x.group == y.group && x.writes.iter().any(|k| y.writes.contains(k) || y.reads.contains(k));
            let overwrites = |x: &Slice, y: &Slice| x.group == y.group && x.writes.iter().any(|k| y.reads.contains(k));
            let (of_a, of_b) = (&scenario.transactions[*a], &scenario.transactions[*b]);
            if at_a == at_b && of_a.iter().any(|x| of_b.iter().any(|y| meet(x, y))) {
                return Err(format!("{} and {} conflict and share {at_a}", txn(*a), txn(*b)));
            }
            if at_a < at_b && of_a.iter().any(|x| of_b.iter().any(|y| overwrites(x, y))) {
                return Err(format!("{} at {at_b} did not see what {} wrote at {at_a}", txn(*b), txn(*a)));
            }
        }
    }
    Ok(())
}

fn judge(world: &World, scenario: &Scenario) -> Checked {
    invariant_votes_never_change(world, scenario)?;
    let committed = invariant_one_outcome(world, scenario)?;
    invariant_serializable(&committed, scenario)
}

/// What an exploration has seen.
#[derive(Debug, Default)]
struct Explored {
    states: usize,
    committed: usize,
    aborted: usize,
    rests: usize,
}

/// All states that are reachable, or the first wrong one with the way to it.
fn explore(scenario: &Scenario, states_max: usize) -> Result<Explored, String> {
    let mut messages = Messages::default();
    let first = World::new(scenario, &mut messages);
    let mut seen = HashSet::from([first.fingerprint()]);
    let mut explored = Explored::default();
    let mut path: Vec<Event> = Vec::new();
    // Depth first: (the state, what may follow, how much of that is done).
    let events = first.events(scenario, &messages);
    let mut stack = vec![(first, events, 0)];
    while let Some((world, events, next)) = stack.last_mut() {
        let Some(event) = events.get(*next).copied() else {
            stack.pop();
            path.pop();
            continue;
        };
        *next += 1;
        let mut world = world.clone();
        world.step(event, scenario, &mut messages);
        if !seen.insert(world.fingerprint()) {
            continue;
        }
        path.push(event);
        let wrong = |e: String, messages: &Messages| {
            let steps: Vec<String> = path.iter().map(|e| describe(*e, messages)).collect();
            format!("{e}, by\n  {}", steps.join("\n  "))
        };
        judge(&world, scenario).map_err(|e| wrong(e, &messages))?;
        explored.states += 1;
        for t in 0..scenario.transactions.len() {
            let outcomes = outcomes(&world, scenario, t);
            explored.committed += usize::from(outcomes.iter().flatten().any(|o| o.at.is_some()));
            explored.aborted += usize::from(outcomes.iter().flatten().any(|o| o.at.is_none()));
        }
        if explored.states % REST_ONE_IN == 0 {
            let mut resting = world.clone();
            let rest = resting.come_to_rest(scenario, &mut messages).and_then(|()| judge(&resting, scenario));
            rest.map_err(|e| wrong(format!("at rest: {e}"), &messages))?;
            explored.rests += 1;
        }
        assert!(explored.states < states_max, "more than {states_max} states");
        let events = world.events(scenario, &messages);
        stack.push((world, events, 0));
    }
    Ok(explored)
}

fn describe(event: Event, messages: &Messages) -> String {
    match event {
        Event::Deliver(i) => format!("deliver {:?}", messages.get(i)),
        other => format!("{other:?}"),
    }
}

const fn slice(group: usize, reads: &'static [u8], writes: &'static [u8]) -> Slice {
    Slice { group, reads, writes }
}

/// One transaction that reads and writes at one group and reads at the other: everything may happen
/// to it.
fn one() -> Scenario {
    Scenario {
        skews: &[0, 100_000],
        transactions: vec![vec![slice(0, &[1], &[1]), slice(1, &[2], &[])]],
        crashes: 2,
        watermark: true,
        timers: true,
        waits: true,
        gateway_asks: true,
        hold: Hold::Back,
        rules: Rules::ALL,
    }
}

/// Write skew: each reads what the other writes.
fn two() -> Scenario {
    Scenario {
        transactions: vec![vec![slice(0, &[1], &[]), slice(1, &[], &[2])], vec![slice(0, &[], &[1]), slice(1, &[2], &[])]],
        watermark: false,
        waits: false,
        gateway_asks: false,
        hold: Hold::No,
        ..one()
    }
}

/// Two blind writes of the same rows, in opposite orders of arrival.
fn same_rows() -> Scenario {
    let slices = || vec![slice(0, &[], &[1]), slice(1, &[], &[2])];
    Scenario { transactions: vec![slices(), slices()], ..two() }
}

/// The second group's clock is so far ahead that the first one's is not moved there: its outcomes
/// wait.
fn far_ahead() -> Scenario {
    Scenario { skews: &[0, 1_000_000], ..one() }
}

fn three_groups() -> Scenario {
    Scenario {
        skews: &[0, 100_000, 50_000],
        transactions: vec![vec![slice(0, &[1], &[1]), slice(1, &[2], &[]), slice(2, &[], &[3])]],
        crashes: 1,
        watermark: false,
        waits: false,
        gateway_asks: false,
        hold: Hold::No,
        ..one()
    }
}

/// A chain over three groups: each reads what the next one writes.
fn three_groups_two() -> Scenario {
    Scenario {
        transactions: vec![
            vec![slice(0, &[1], &[]), slice(1, &[], &[2])],
            vec![slice(1, &[2], &[]), slice(2, &[], &[3]), slice(0, &[], &[1])],
        ],
        timers: false,
        ..three_groups()
    }
}

/// Explores all of it, and wants to have seen outcomes of both kinds.
fn holds(scenario: &Scenario) {
    let explored = explore(scenario, STATES_MAX).unwrap_or_else(|e| panic!("{e}"));
    assert!(explored.committed > 1_000 && explored.aborted > 100 && explored.rests > 100, "{explored:?}");
}

#[test]
fn one_transaction_over_two_groups_whatever_happens() {
    holds(&one());
}

/// Such as one that changes the schema: the catalog votes when the others have.
#[test]
fn one_transaction_with_a_participant_that_votes_last() {
    holds(&Scenario { hold: Hold::Last, ..one() });
    holds(&Scenario { hold: Hold::Last, ..three_groups() });
}

#[test]
fn one_transaction_whose_timestamp_is_in_the_future_of_a_group() {
    holds(&Scenario { crashes: 1, ..far_ahead() });
}

#[test]
fn two_transactions_that_each_read_what_the_other_writes() {
    holds(&Scenario { crashes: 1, ..two() });
    holds(&Scenario { timers: false, ..two() });
}

#[test]
fn two_transactions_that_write_the_same_rows() {
    holds(&Scenario { crashes: 1, timers: false, ..same_rows() });
}

#[test]
fn one_transaction_over_three_groups() {
    holds(&three_groups());
}

#[test]
fn two_transactions_over_three_groups() {
    holds(&three_groups_two());
}

#[test]
fn every_planted_bug_is_found() {
    // The bound of a wait is not about safety: `states` has a test for it.
    for bug in PlantedBug::ALL.into_iter().filter(|b| *b != PlantedBug::WaitWithoutBound) {
        let found = explore(&Scenario { rules: Rules::without(bug), ..one() }, STATES_MAX);
        assert!(found.is_err(), "{} was not found", bug.name());
    }
}
