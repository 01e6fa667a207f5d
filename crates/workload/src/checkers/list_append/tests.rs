//! Every class of anomaly planted, and serial histories that must pass.

use super::*;
use crate::checkers::generate;
use proptest::prelude::*;

fn check(records: &[Record]) -> Vec<Anomaly> {
    super::check(records, &Promise::Strict)
}
fn append(key: i64, value: i64) -> Op {
    Op::Append { key, value }
}
fn read(key: i64, values: &[i64]) -> Op {
    Op::ReadList { key, values: values.to_vec() }
}
fn range(from: i64, to: i64, lists: &[(i64, &[i64])]) -> Op {
    Op::ReadRange { from, to, lists: lists.iter().map(|(k, v)| (*k, v.to_vec())).collect() }
}

/// A committed transaction that overlaps all others.
fn txn(ops: &[Op]) -> Record {
    at(0, 1_000, ops)
}
fn at(invoked: u64, completed: u64, ops: &[Op]) -> Record {
    Record { client: 0, invoked, completed: Some(completed), outcome: Outcome::Committed, ops: ops.to_vec() }
}
fn aborted(ops: &[Op]) -> Record {
    Record { outcome: Outcome::Aborted, ..txn(ops) }
}
fn unknown(invoked: u64, ops: &[Op]) -> Record {
    Record { outcome: Outcome::Unknown, completed: None, ..at(invoked, 0, ops) }
}

fn kinds(records: &[Record]) -> BTreeSet<Kind> {
    check(records).into_iter().map(|a| a.kind).collect()
}
fn only(kind: Kind) -> BTreeSet<Kind> {
    BTreeSet::from([kind])
}

#[test]
fn g0_two_writers_interleave() {
    let history = [
        txn(&[append(1, 1), append(2, 1)]),
        txn(&[append(1, 2), append(2, 2)]),
        txn(&[read(1, &[1, 2])]),
        txn(&[read(2, &[2, 1])]),
    ];
    assert!(kinds(&history).contains(&Kind::G0), "{:?}", check(&history));
}

#[test]
fn g1a_a_value_of_an_aborted_transaction_is_read() {
    assert_eq!(kinds(&[aborted(&[append(1, 1)]), txn(&[read(1, &[1])])]), only(Kind::G1a));
}

#[test]
fn g1b_an_intermediate_value_is_read() {
    let history = [txn(&[append(1, 1), append(1, 2)]), txn(&[read(1, &[1])]), txn(&[read(1, &[1, 2])])];
    assert!(kinds(&history).contains(&Kind::G1b));
}

#[test]
fn g1c_two_transactions_read_each_other() {
    let history = [txn(&[append(1, 1), read(2, &[1])]), txn(&[append(2, 1), read(1, &[1])])];
    assert_eq!(kinds(&history), only(Kind::G1c));
}

#[test]
fn g_single_a_reader_sees_half_of_a_transaction() {
    let history = [txn(&[append(1, 1), append(2, 1)]), txn(&[read(1, &[1]), read(2, &[])]), txn(&[read(2, &[1])])];
    assert_eq!(kinds(&history), only(Kind::GSingle));
}

#[test]
fn g2_item_write_skew() {
    let history = [txn(&[read(1, &[]), append(2, 1)]), txn(&[read(2, &[]), append(1, 1)]), txn(&[read(1, &[1]), read(2, &[1])])];
    assert_eq!(kinds(&history), only(Kind::G2Item));
}

#[test]
fn g2_two_predicates_miss_each_others_rows() {
    let history = [
        txn(&[range(0, 10, &[]), append(11, 1)]),
        txn(&[range(10, 20, &[]), append(1, 1)]),
        txn(&[range(0, 20, &[(1, &[1]), (11, &[1])])]),
    ];
    assert_eq!(kinds(&history), only(Kind::G2));
}

#[test]
fn g2_one_phantom_is_enough() {
    let history = [
        txn(&[range(0, 10, &[]), append(11, 1)]),
        txn(&[read(11, &[]), append(1, 1)]),
        txn(&[range(0, 20, &[(1, &[1]), (11, &[1])])]),
    ];
    assert_eq!(kinds(&history), only(Kind::G2));
}

#[test]
fn g0_real_time_a_write_lands_before_an_older_one() {
    let history = [at(0, 10, &[append(1, 1)]), at(20, 30, &[append(1, 2)]), at(0, 99, &[read(1, &[2, 1])])];
    assert_eq!(kinds(&history), only(Kind::G0RealTime));
}

#[test]
fn g1c_real_time_a_read_sees_the_future() {
    let history = [at(20, 30, &[append(1, 1)]), at(0, 10, &[read(1, &[1])])];
    assert_eq!(kinds(&history), only(Kind::G1cRealTime));
}

#[test]
fn g_single_real_time_a_stale_read() {
    let history = [at(0, 10, &[append(1, 1)]), at(20, 30, &[read(1, &[])]), at(40, 50, &[read(1, &[1])])];
    assert_eq!(kinds(&history), only(Kind::GSingleRealTime));
}

#[test]
fn g_single_real_time_a_stale_range() {
    let history = [at(0, 10, &[append(1, 1)]), at(20, 30, &[range(0, 5, &[])]), at(40, 50, &[read(1, &[1])])];
    assert_eq!(kinds(&history), only(Kind::GSingleRealTime));
}

#[test]
fn g2_item_real_time_skew_closed_by_time() {
    // 0 misses 1's append and 2 misses 3's, while 1 was over before 2 began and 3 before 0.
    let history = [
        at(50, 60, &[read(1, &[])]),
        at(0, 100, &[append(1, 1)]),
        at(200, 210, &[read(2, &[])]),
        at(0, 40, &[append(2, 1)]),
        at(300, 310, &[read(1, &[1]), read(2, &[1])]),
    ];
    // Time alone makes 2's read stale too, so the single cycle is found first, and the double one
    // beside it.
    assert!(kinds(&history).contains(&Kind::GSingleRealTime));
    let skew = [
        at(0, 170, &[read(1, &[]), append(2, 1)]),
        at(50, 150, &[append(1, 1)]),
        at(160, 200, &[append(3, 1)]),
        at(20, 300, &[read(2, &[]), read(3, &[1])]),
        at(400, 410, &[read(1, &[1]), read(2, &[1])]),
    ];
    assert_eq!(kinds(&skew), only(Kind::G2ItemRealTime), "{:?}", check(&skew));
}

#[test]
fn g2_real_time_phantoms_closed_by_time() {
    let history = [
        at(0, 170, &[range(0, 10, &[]), append(21, 1)]),
        at(50, 150, &[append(1, 1)]),
        at(160, 200, &[append(30, 1)]),
        at(20, 300, &[range(20, 25, &[]), read(30, &[1])]),
        at(400, 410, &[read(1, &[1]), read(21, &[1])]),
    ];
    assert_eq!(kinds(&history), only(Kind::G2RealTime), "{:?}", check(&history));
}

#[test]
fn internal_a_transaction_misses_its_own_append_or_reads_two_pasts() {
    assert_eq!(kinds(&[txn(&[append(1, 1), read(1, &[])])]), only(Kind::Internal));
    let history = [txn(&[append(1, 1)]), txn(&[read(1, &[]), read(1, &[1])])];
    assert!(kinds(&history).contains(&Kind::Internal));
}

#[test]
fn incompatible_order_a_key_forks() {
    let history = [txn(&[append(1, 1)]), txn(&[append(1, 2)]), txn(&[read(1, &[1])]), txn(&[read(1, &[2])])];
    assert!(kinds(&history).contains(&Kind::IncompatibleOrder));
}

#[test]
fn lost_update_two_appends_to_one_version() {
    let history = [
        txn(&[append(1, 1)]),
        txn(&[read(1, &[1]), append(1, 2)]),
        txn(&[read(1, &[1]), append(1, 3)]),
        txn(&[read(1, &[1, 3])]),
    ];
    assert!(kinds(&history).contains(&Kind::LostUpdate));
    assert!(kinds(&history).contains(&Kind::GSingle), "it is a cycle as well: {:?}", check(&history));
}

#[test]
fn lost_write_an_acknowledged_append_is_gone() {
    let history = [at(0, 10, &[append(1, 1)]), at(20, 30, &[read(1, &[])])];
    assert_eq!(kinds(&history), BTreeSet::from([Kind::LostWrite, Kind::GSingleRealTime]));
    let by_range = [at(0, 10, &[append(1, 1)]), at(20, 30, &[range(0, 9, &[])])];
    assert!(kinds(&by_range).contains(&Kind::LostWrite));
}

#[test]
fn duplicate_an_append_is_applied_twice() {
    assert!(kinds(&[txn(&[append(1, 1)]), txn(&[read(1, &[1, 1])])]).contains(&Kind::Duplicate));
}

#[test]
fn garbage_a_value_from_nowhere() {
    assert!(kinds(&[txn(&[read(1, &[5])])]).contains(&Kind::Garbage));
}

#[test]
fn an_unknown_outcome_may_go_either_way_but_not_both() {
    let seen = [unknown(0, &[append(1, 1)]), at(10, 20, &[read(1, &[1])])];
    assert!(check(&seen).is_empty());
    let unseen = [unknown(0, &[append(1, 1)]), at(10, 20, &[read(1, &[])])];
    assert!(check(&unseen).is_empty());
    let late = [unknown(0, &[append(1, 1)]), at(10, 20, &[read(1, &[])]), at(30, 40, &[read(1, &[1])])];
    assert!(check(&late).is_empty(), "it took effect in between");
    let half =
        [unknown(0, &[append(1, 1), append(2, 1)]), at(10, 20, &[read(1, &[1]), read(2, &[])]), at(30, 40, &[read(2, &[1])])];
    assert_eq!(kinds(&half), only(Kind::GSingle));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_serial_execution_passes(seed in any::<u64>(), clients in 1u32..8, count in 1usize..150) {
        let history = generate::list_append(seed, clients, count);
        prop_assert_eq!(check(&history), vec![]);
    }

    #[test]
    fn a_serial_execution_with_deletes_and_reads_of_the_past_passes(seed in any::<u64>(), clients in 1u32..8, count in 1usize..150) {
        let history = generate::list_append_with_deaths(seed, clients, count);
        prop_assert_eq!(check(&history), vec![]);
    }

    #[test]
    fn hiding_an_acknowledged_append_from_a_later_read_is_found(seed in any::<u64>()) {
        let mut history = generate::list_append(seed, 4, 80);
        if generate::make_one_read_stale(&mut history, seed) {
            prop_assert!(!check(&history).is_empty());
        }
    }

    #[test]
    fn swapping_two_acknowledged_appends_in_every_list_is_found(seed in any::<u64>()) {
        let mut history = generate::list_append(seed, 4, 80);
        if generate::swap_two_appends(&mut history) {
            prop_assert!(!check(&history).is_empty());
        }
    }
}
