//! Every class of anomaly, planted under every promise: it is told, or it is listed here as left
//! open.

use super::*;
use crate::checkers::{balances, linearizability};

/// Classes that are left open for transactions that touch keys whose order is. Nothing else is left
/// open anywhere, and [`Kind::LostWrite`] least of all.
const LEFT_OPEN: [Kind; 5] = [Kind::G0RealTime, Kind::G1cRealTime, Kind::GSingleRealTime, Kind::G2ItemRealTime, Kind::G2RealTime];
/// Keys whose order is open under [`Promise::OrderOpen`], and keys far from them.
const OPEN: i64 = 1_000;
const CLOSED: i64 = 5_000;

fn append(key: i64, value: i64) -> Op {
    Op::Append { key, value }
}
fn read(key: i64, values: &[i64]) -> Op {
    Op::ReadList { key, values: values.to_vec() }
}
fn delete(key: i64, values: &[i64]) -> Op {
    Op::Delete { key, values: values.to_vec() }
}
fn range(from: i64, to: i64, lists: &[(i64, &[i64])]) -> Op {
    Op::ReadRange { from, to, lists: lists.iter().map(|(k, v)| (*k, v.to_vec())).collect() }
}
fn at(invoked: u64, completed: u64, ops: &[Op]) -> Record {
    Record { client: 0, invoked, completed: Some(completed), outcome: Outcome::Committed, ops: ops.to_vec() }
}
fn txn(ops: &[Op]) -> Record {
    at(0, 1_000, ops)
}

/// A history over keys from `b` on that shows this class; empty for classes that other checkers
/// find.
fn planted(kind: Kind, b: i64) -> Vec<Record> {
    match kind {
        Kind::G0 => vec![
            txn(&[append(b, 1), append(b + 1, 1)]),
            txn(&[append(b, 2), append(b + 1, 2)]),
            txn(&[read(b, &[1, 2])]),
            txn(&[read(b + 1, &[2, 1])]),
        ],
        Kind::G1a => vec![Record { outcome: Outcome::Aborted, ..txn(&[append(b, 1)]) }, txn(&[read(b, &[1])])],
        Kind::G1b => vec![txn(&[append(b, 1), append(b, 2)]), txn(&[read(b, &[1])]), txn(&[read(b, &[1, 2])])],
        Kind::G1c => vec![txn(&[append(b, 1), read(b + 1, &[1])]), txn(&[append(b + 1, 1), read(b, &[1])])],
        Kind::GSingle => {
            vec![txn(&[append(b, 1), append(b + 1, 1)]), txn(&[read(b, &[1]), read(b + 1, &[])]), txn(&[read(b + 1, &[1])])]
        }
        Kind::G2Item => vec![
            txn(&[read(b, &[]), append(b + 1, 1)]),
            txn(&[read(b + 1, &[]), append(b, 1)]),
            txn(&[read(b, &[1]), read(b + 1, &[1])]),
        ],
        Kind::G2 => vec![
            txn(&[range(b, b + 10, &[]), append(b + 11, 1)]),
            txn(&[range(b + 10, b + 20, &[]), append(b, 1)]),
            txn(&[range(b, b + 20, &[(b, &[1]), (b + 11, &[1])])]),
        ],
        Kind::G0RealTime => vec![at(0, 10, &[append(b, 1)]), at(20, 30, &[append(b, 2)]), at(0, 99, &[read(b, &[2, 1])])],
        Kind::G1cRealTime => vec![at(20, 30, &[append(b, 1)]), at(0, 10, &[read(b, &[1])])],
        Kind::GSingleRealTime => vec![at(0, 10, &[append(b, 1)]), at(20, 30, &[read(b, &[])]), at(40, 50, &[read(b, &[1])])],
        Kind::G2ItemRealTime => vec![
            at(0, 170, &[read(b, &[]), append(b + 1, 1)]),
            at(50, 150, &[append(b, 1)]),
            at(160, 200, &[append(b + 2, 1)]),
            at(20, 300, &[read(b + 1, &[]), read(b + 2, &[1])]),
            at(400, 410, &[read(b, &[1]), read(b + 1, &[1])]),
        ],
        Kind::G2RealTime => vec![
            at(0, 170, &[range(b, b + 10, &[]), append(b + 21, 1)]),
            at(50, 150, &[append(b, 1)]),
            at(160, 200, &[append(b + 30, 1)]),
            at(20, 300, &[range(b + 20, b + 25, &[]), read(b + 30, &[1])]),
            at(400, 410, &[read(b, &[1]), read(b + 21, &[1])]),
        ],
        Kind::Internal => vec![txn(&[append(b, 1), read(b, &[])])],
        Kind::IncompatibleOrder => {
            vec![txn(&[append(b, 1)]), txn(&[append(b, 2)]), txn(&[read(b, &[1])]), txn(&[read(b, &[2])])]
        }
        Kind::LostUpdate => vec![
            txn(&[append(b, 1)]),
            txn(&[read(b, &[1]), append(b, 2)]),
            txn(&[read(b, &[1]), append(b, 3)]),
            txn(&[read(b, &[1, 3])]),
        ],
        Kind::LostWrite => vec![at(0, 10, &[append(b, 1)]), at(20, 30, &[read(b, &[])])],
        Kind::Duplicate => vec![txn(&[append(b, 1)]), txn(&[read(b, &[1, 1])])],
        Kind::Garbage => vec![txn(&[read(b, &[5])])],
        Kind::NotLinearizable | Kind::Undecided | Kind::WrongSum => vec![],
    }
}

fn kinds(records: &[Record], promise: &Promise) -> BTreeSet<Kind> {
    check(records, promise).into_iter().map(|a| a.kind).collect()
}

#[test]
fn every_class_is_told_under_every_promise_or_listed_as_left_open() {
    let open = Promise::OrderOpen { keys: OPEN..OPEN + 100 };
    for kind in Kind::ALL.into_iter().filter(|kind| !planted(*kind, 0).is_empty()) {
        for (promise, keys) in [(&Promise::Strict, OPEN), (&Promise::Strict, CLOSED), (&open, CLOSED), (&open, OPEN)] {
            let history = planted(kind, keys);
            let may_be_open = *promise == open && keys == OPEN && LEFT_OPEN.contains(&kind);
            let found = kinds(&history, promise);
            assert_eq!(found.contains(&kind), !may_be_open, "{kind} at {keys} under {promise:?}: {found:?}");
        }
    }
}

/// What other checkers find is not for any promise to leave open: they know none.
#[test]
fn classes_of_other_checkers_are_told() {
    let op = |invoked: u64, op: Op| at(invoked, invoked + 1, &[op]);
    let stale = [op(0, Op::Write { key: 1, value: 1 }), op(10, Op::Read { key: 1, value: None })];
    assert!(linearizability::check(&stale).iter().any(|a| a.kind == Kind::NotLinearizable));
    let wrong = [op(0, Op::ReadBalances { balances: BTreeMap::from([(1, 5)]) })];
    assert!(balances::check(&wrong, 6).iter().any(|a| a.kind == Kind::WrongSum));
    let others: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| planted(*kind, 0).is_empty()).collect();
    assert_eq!(others, [Kind::NotLinearizable, Kind::Undecided, Kind::WrongSum]);
}

#[test]
fn a_lost_write_is_told_beside_the_cycle_that_may_be_left_open() {
    let history = planted(Kind::LostWrite, OPEN);
    let open = Promise::OrderOpen { keys: OPEN..OPEN + 1 };
    assert_eq!(kinds(&history, &Promise::Strict), BTreeSet::from([Kind::LostWrite, Kind::GSingleRealTime]));
    assert_eq!(kinds(&history, &open), BTreeSet::from([Kind::LostWrite]));
}

/// One transaction of the first cycle touches an open key; the second cycle has none that does, and
/// is told.
#[test]
fn a_cycle_that_is_left_open_hides_no_other() {
    let mut history = planted(Kind::GSingleRealTime, OPEN);
    history.extend(planted(Kind::GSingleRealTime, CLOSED));
    let open = Promise::OrderOpen { keys: OPEN..OPEN + 1 };
    let found = check(&history, &open);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].records.iter().all(|record| *record >= 3), "{found:?}");
}

/// Dependencies over open keys say nothing about time, those over other keys do, whoever made them.
#[test]
fn an_order_that_other_keys_tell_is_judged_through_a_transaction_that_is_left_open() {
    let history = [
        // Appended second, read first: the one in between touches an open key.
        at(50, 60, &[append(CLOSED, 1)]),
        at(0, 100, &[read(CLOSED, &[1]), append(CLOSED + 1, 1), read(OPEN, &[])]),
        at(10, 40, &[read(CLOSED + 1, &[1])]),
    ];
    let open = Promise::OrderOpen { keys: OPEN..OPEN + 1 };
    assert_eq!(kinds(&history, &open), BTreeSet::from([Kind::G1cRealTime]));
}

/// Deletes: serial ones pass, and each thing that can go wrong with one is told.
#[test]
fn a_key_that_is_deleted_stays_so() {
    let strict = |records: &[Record]| kinds(records, &Promise::Strict);
    let life = |rest: &[Record]| {
        let mut history = vec![at(0, 10, &[append(1, 1)]), at(20, 30, &[append(1, 2)]), at(40, 50, &[delete(1, &[1, 2])])];
        history.extend_from_slice(rest);
        history
    };
    assert_eq!(strict(&life(&[at(60, 70, &[read(1, &[])]), at(60, 70, &[range(0, 9, &[])])])), BTreeSet::new());
    assert!(strict(&life(&[at(60, 70, &[read(1, &[1, 2])])])).contains(&Kind::LostWrite), "the delete was lost");
    assert!(strict(&life(&[at(60, 70, &[read(1, &[1])])])).contains(&Kind::LostWrite), "and part of the list");
    assert!(strict(&life(&[at(45, 70, &[append(1, 3)]), at(80, 90, &[read(1, &[1, 2, 3])])])).contains(&Kind::IncompatibleOrder));
    assert!(strict(&life(&[at(60, 70, &[delete(1, &[1, 2])])])).contains(&Kind::LostUpdate), "deleted twice");
    assert!(strict(&life(&[at(35, 38, &[read(1, &[])])])).contains(&Kind::GSingleRealTime), "missed before it was deleted");
    let lost = [at(0, 10, &[append(1, 1)]), at(20, 30, &[append(1, 2)]), at(40, 50, &[delete(1, &[1])])];
    assert!(strict(&lost).contains(&Kind::LostWrite), "an append was gone before the row was: {:?}", strict(&lost));
    assert_eq!(strict(&[at(0, 9, &[append(1, 1), delete(1, &[1]), read(1, &[1])])]), BTreeSet::from([Kind::Internal]));
}

#[test]
fn a_delete_that_may_have_happened_explains_what_is_gone() {
    let unknown = |ops: &[Op]| Record { outcome: Outcome::Unknown, completed: None, ..at(20, 0, ops) };
    let gone = [at(0, 10, &[append(1, 1)]), unknown(&[delete(1, &[1])]), at(60, 70, &[read(1, &[])])];
    assert_eq!(kinds(&gone, &Promise::Strict), BTreeSet::new());
    let there = [at(0, 10, &[append(1, 1)]), unknown(&[delete(1, &[1])]), at(60, 70, &[read(1, &[1])])];
    assert_eq!(kinds(&there, &Promise::Strict), BTreeSet::new());
    let back = [gone[0].clone(), gone[1].clone(), gone[2].clone(), at(80, 90, &[read(1, &[1])])];
    assert!(!kinds(&back, &Promise::Strict).is_empty(), "gone, and back");
    let half = [
        at(0, 10, &[append(1, 1)]),
        unknown(&[delete(1, &[1]), append(2, 1)]),
        at(60, 70, &[read(1, &[]), read(2, &[])]),
        at(80, 90, &[read(2, &[1])]),
    ];
    assert!(kinds(&half, &Promise::Strict).contains(&Kind::GSingle), "half of it");
}

#[test]
fn what_is_read_of_the_past_is_one_moment_and_may_be_an_old_one() {
    let past = |invoked: u64, ops: &[Op]| at(invoked, invoked + 1, &[&[Op::Past], ops].concat());
    let two = at(0, 10, &[append(1, 1), append(2, 1)]);
    let end = at(90, 99, &[read(1, &[1]), read(2, &[1])]);
    let shown = |ops: &[Op]| kinds(&[two.clone(), past(50, ops), end.clone()], &Promise::Strict);
    assert_eq!(shown(&[read(1, &[]), read(2, &[])]), BTreeSet::new());
    assert_eq!(shown(&[read(1, &[1]), read(2, &[1])]), BTreeSet::new());
    assert_eq!(shown(&[read(1, &[1]), range(2, 3, &[])]), BTreeSet::from([Kind::GSingle]), "half of a transaction");
    // What it saw has happened for everybody who begins later.
    let later = [at(0, 99, &[append(1, 1)]), past(50, &[read(1, &[1])]), at(60, 70, &[read(1, &[])])];
    assert_eq!(kinds(&later, &Promise::Strict), BTreeSet::from([Kind::GSingleRealTime]));
    // Two regions' clocks differ, and nothing connects what happened in them.
    let regions = |third: Record| [at(0, 10, &[append(1, 1)]), at(20, 30, &[append(2, 1)]), third, end.clone()];
    let ops = [read(1, &[]), read(2, &[1])];
    assert_eq!(kinds(&regions(past(50, &ops)), &Promise::Strict), BTreeSet::new());
    assert_eq!(kinds(&regions(at(15, 50, &ops)), &Promise::Strict), BTreeSet::from([Kind::GSingleRealTime]));
    // Unless the second one saw the first.
    let [first, _, third, end] = regions(past(50, &ops));
    let connected = [first, at(20, 30, &[read(1, &[1]), append(2, 1)]), third, end];
    assert_eq!(kinds(&connected, &Promise::Strict), BTreeSet::from([Kind::GSingle]));
}
