//! Histories of really serial executions, for the tests of the checkers.
//!
//! Transactions run one at a time against plain maps; around the moment at which each runs, its
//! client's window of real time is drawn, so that windows of different clients overlap as they do
//! in life.

use crate::{Op, Outcome, Record};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;

/// Appends, reads and range reads; some transactions abort, some outcomes are unknown.
pub fn list_append(seed: u64, clients: u32, count: usize) -> Vec<Record> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut lists: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    let mut next_value = 0;
    let mut steps = Vec::new();
    for _ in 0..count {
        let outcome = match rng.random_range(0..10) {
            0 => Outcome::Aborted,
            1 => Outcome::Unknown,
            _ => Outcome::Committed,
        };
        let happens = outcome == Outcome::Committed || (outcome == Outcome::Unknown && rng.random_bool(0.5));
        let before = lists.clone();
        let mut ops = Vec::new();
        for _ in 0..rng.random_range(1..5) {
            ops.push(list_op(&mut rng, &mut lists, &mut next_value));
        }
        if !happens {
            lists = before;
        }
        if outcome != Outcome::Committed {
            ops.retain(|op| matches!(op, Op::Append { .. }));
        }
        steps.push((outcome, ops));
    }
    steps.push((Outcome::Committed, vec![Op::ReadRange { from: 0, to: 100, lists }]));
    with_windows(&mut rng, clients, steps)
}

/// The same with keys that are deleted once and for ever, and with reads of moments that have
/// passed.
pub fn list_append_with_deaths(seed: u64, clients: u32, count: usize) -> Vec<Record> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut lists: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    let mut dead: Vec<i64> = Vec::new();
    let mut moments = vec![lists.clone()];
    let (mut next_value, mut next_key) = (0, 4);
    let mut steps = Vec::new();
    for _ in 0..count {
        if rng.random_bool(0.1) {
            let moment = &moments[rng.random_range(0..moments.len())];
            let read = Op::ReadRange { from: 0, to: next_key, lists: moment.clone() };
            steps.push((Outcome::Committed, vec![Op::Past, read]));
            continue;
        }
        let outcome = if rng.random_bool(0.1) { Outcome::Unknown } else { Outcome::Committed };
        let happens = outcome == Outcome::Committed || rng.random_bool(0.5);
        let before = (lists.clone(), dead.clone());
        let mut ops = Vec::new();
        for _ in 0..rng.random_range(1..5) {
            let key = rng.random_range(0..next_key);
            let values = lists.get(&key).cloned();
            match (rng.random_range(0..4), values) {
                (0, values) => ops.push(Op::ReadList { key, values: values.unwrap_or_default() }),
                (1, Some(values)) if values.len() > 2 => {
                    ops.push(Op::Delete { key, values });
                    lists.remove(&key);
                    dead.push(key);
                    next_key += 1;
                }
                (_, _) if !dead.contains(&key) => {
                    next_value += 1;
                    lists.entry(key).or_default().push(next_value);
                    ops.push(Op::Append { key, value: next_value });
                }
                _ => {}
            }
        }
        if !happens {
            (lists, dead) = before;
        }
        if outcome != Outcome::Committed {
            ops.retain(|op| matches!(op, Op::Append { .. } | Op::Delete { .. }));
        }
        moments.push(lists.clone());
        steps.push((outcome, ops));
    }
    steps.push((Outcome::Committed, vec![Op::ReadRange { from: 0, to: next_key, lists }]));
    with_windows(&mut rng, clients, steps)
}

fn list_op(rng: &mut SmallRng, lists: &mut BTreeMap<i64, Vec<i64>>, next_value: &mut i64) -> Op {
    let key = rng.random_range(0..8);
    match rng.random_range(0..4) {
        0 => Op::ReadList { key, values: lists.get(&key).cloned().unwrap_or_default() },
        1 => {
            let to = rng.random_range(key + 1..10);
            let found = lists.range(key..to).map(|(k, v)| (*k, v.clone())).collect();
            Op::ReadRange { from: key, to, lists: found }
        }
        _ => {
            *next_value += 1;
            lists.entry(key).or_default().push(*next_value);
            Op::Append { key, value: *next_value }
        }
    }
}

/// Reads, writes and compare-and-set of a few registers.
pub fn registers(seed: u64, clients: u32, count: usize) -> Vec<Record> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut registers: BTreeMap<i64, i64> = BTreeMap::new();
    let mut steps = Vec::new();
    for value in 0..count as i64 {
        let key = rng.random_range(0..2);
        let unknown = rng.random_bool(0.1);
        let happens = !unknown || rng.random_bool(0.5);
        let current = registers.get(&key).copied();
        let op = match rng.random_range(0..3) {
            0 => Op::Read { key, value: current },
            1 => {
                if happens {
                    registers.insert(key, value);
                }
                Op::Write { key, value }
            }
            _ => {
                let expected = if rng.random_bool(0.7) { current.unwrap_or(-1) } else { -2 };
                let swapped = current == Some(expected) && happens;
                if swapped {
                    registers.insert(key, value);
                }
                Op::CompareAndSet { key, expected, new: value, swapped: swapped && !unknown }
            }
        };
        steps.push((if unknown { Outcome::Unknown } else { Outcome::Committed }, vec![op]));
    }
    with_windows(&mut rng, clients, steps)
}

/// Gives each step a client and a window around its moment; a client's windows do not overlap.
fn with_windows(rng: &mut SmallRng, clients: u32, steps: Vec<(Outcome, Vec<Op>)>) -> Vec<Record> {
    const SPACING: u64 = 100;
    let mut records: Vec<Record> = Vec::new();
    // Per client: the moment and the record of its last step, whose window is not closed yet.
    let mut last: BTreeMap<u32, (u64, usize)> = BTreeMap::new();
    let mut free: BTreeMap<u32, u64> = BTreeMap::new();
    for (index, (outcome, ops)) in steps.into_iter().enumerate() {
        let moment = (index as u64 + 1) * SPACING;
        let client = rng.random_range(0..clients);
        if let Some((before, record)) = last.insert(client, (moment, index)) {
            // The window before ends somewhere between its moment and this one; this one starts
            // after that.
            let end = rng.random_range(before + 1..moment - 1);
            close(&mut records[record], end);
            free.insert(client, end + 1);
        }
        let invoked = rng.random_range(*free.get(&client).unwrap_or(&0)..moment);
        records.push(Record { client, invoked, completed: None, outcome, ops });
    }
    for (moment, record) in last.into_values() {
        let end = moment + rng.random_range(1..1_000);
        close(&mut records[record], end);
    }
    records
}

fn close(record: &mut Record, end: u64) {
    if record.outcome != Outcome::Unknown {
        record.completed = Some(end);
    }
}

/// Cuts the last value off a list that a committed transaction read, where the append had been
/// acknowledged before that transaction began. Whether there was such a read.
pub fn make_one_read_stale(records: &mut [Record], seed: u64) -> bool {
    let acknowledged: BTreeMap<(i64, i64), u64> = records
        .iter()
        .filter(|r| r.outcome == Outcome::Committed)
        .flat_map(|r| r.ops.iter().map(move |op| (op, r.completed)))
        .filter_map(|(op, completed)| match op {
            Op::Append { key, value } => completed.map(|c| ((*key, *value), c)),
            _ => None,
        })
        .collect();
    let mut rng = SmallRng::seed_from_u64(seed);
    let start = rng.random_range(0..records.len());
    let order = (start..records.len()).chain(0..start);
    for index in order {
        let record = &mut records[index];
        if record.outcome != Outcome::Committed {
            continue;
        }
        for op in &mut record.ops {
            if let Op::ReadList { key, values } = op
                && let Some(value) = values.last()
                && acknowledged.get(&(*key, *value)).is_some_and(|completed| *completed < record.invoked)
            {
                values.pop();
                return true;
            }
        }
    }
    false
}

/// Swaps two neighbouring values in every list of a key, where the first append had been
/// acknowledged before the second began. Whether there were such two.
pub fn swap_two_appends(records: &mut [Record]) -> bool {
    let mut window: BTreeMap<(i64, i64), (u64, u64)> = BTreeMap::new();
    for record in records.iter().filter(|r| r.outcome == Outcome::Committed) {
        for op in &record.ops {
            if let (Op::Append { key, value }, Some(completed)) = (op, record.completed) {
                window.insert((*key, *value), (record.invoked, completed));
            }
        }
    }
    let Some(Op::ReadRange { lists, .. }) = records.last().and_then(|r| r.ops.last()).cloned() else { return false };
    let in_order = |key: i64, pair: &[i64]| match (window.get(&(key, pair[0])), window.get(&(key, pair[1]))) {
        (Some((_, completed)), Some((invoked, _))) => completed < invoked,
        _ => false,
    };
    let found = lists.iter().find_map(|(key, list)| Some((*key, list.windows(2).find(|pair| in_order(*key, pair))?.to_vec())));
    let Some((key, pair)) = found else { return false };
    let swap = |list: &mut Vec<i64>| {
        if let Some(at) = list.windows(2).position(|w| w == pair) {
            list.swap(at, at + 1);
        }
    };
    for record in records {
        for op in &mut record.ops {
            match op {
                Op::ReadList { key: k, values } if *k == key => swap(values),
                Op::ReadRange { lists, .. } => lists.get_mut(&key).into_iter().for_each(swap),
                _ => {}
            }
        }
    }
    true
}
