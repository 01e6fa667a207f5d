//! What a bank's tables must say, judged without a database.
//!
//! Accounts are numbered over all regions, so that a ledger row says by itself which two ledgers it
//! belongs in: its payer's and its payee's region's. A region's ledger explains the balances of its
//! own accounts; a transfer of which one region has the row and the other does not, or of which one
//! balance moved and the other did not, is found by that.

use crate::history::Outcome;
use crate::run::Verdict;
use std::collections::{BTreeMap, BTreeSet};

/// What every account begins with.
pub(super) const BALANCE_START: i64 = 1_000;
/// Account `n` of region `r` has the number `r * ACCOUNTS_OF_REGION + n`.
pub(super) const ACCOUNTS_OF_REGION: i64 = 1_000_000;

/// A row of a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Transfer {
    pub(super) id: i64,
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) amount: i64,
}

impl Transfer {
    /// The places (among the regions) of the ledgers that have it.
    pub(super) fn homes(&self) -> BTreeSet<usize> {
        [home(self.from), home(self.to)].into_iter().collect()
    }
}

/// The place of an account's region among the regions.
pub(super) fn home(account: i64) -> usize {
    usize::try_from(account / ACCOUNTS_OF_REGION).unwrap_or(usize::MAX)
}

/// The accounts of the region in one place.
pub(super) fn accounts_of(region: usize, count: i64) -> std::ops::Range<i64> {
    let first = region as i64 * ACCOUNTS_OF_REGION;
    first..first + count
}

/// The tables at the end.
#[derive(Clone, Debug, Default)]
pub(super) struct Books {
    pub(super) balances: BTreeMap<i64, i64>,
    /// The rows of each region's ledger.
    pub(super) ledgers: Vec<Vec<Transfer>>,
}

/// What is wrong with the balances of some regions' accounts that a transaction read, in a
/// sentence. Their sum is only constant if no money crosses the border around these regions.
pub(super) fn wrong_snapshot(
    regions: &[usize],
    accounts_per_region: i64,
    is_closed: bool,
    balances: &BTreeMap<i64, i64>,
) -> Option<String> {
    let expected = regions.iter().flat_map(|region| accounts_of(*region, accounts_per_region));
    if !expected.eq(balances.keys().copied()) {
        return Some(format!("has other accounts than it should: {balances:?}"));
    }
    let total = regions.len() as i64 * accounts_per_region * BALANCE_START;
    let sum: i64 = balances.values().sum();
    (is_closed && sum != total).then(|| format!("sums to {sum}, not {total}: {balances:?}"))
}

/// Judges the tables by what the clients know of their transfers.
pub(super) fn judge(
    regions: &[String],
    accounts_per_region: i64,
    known: &BTreeMap<i64, (Transfer, Outcome)>,
    books: &Books,
    verdict: &mut Verdict,
) {
    let all: Vec<usize> = (0..regions.len()).collect();
    let wrong = wrong_snapshot(&all, accounts_per_region, true, &books.balances);
    verdict.expect(wrong.is_none(), || format!("the final state {}", wrong.unwrap_or_default()));

    let accounts = all.iter().flat_map(|region| accounts_of(*region, accounts_per_region));
    let mut expected: BTreeMap<i64, i64> = accounts.map(|account| (account, BALANCE_START)).collect();
    let mut found: BTreeMap<i64, BTreeSet<usize>> = BTreeMap::new();
    for (at, (region, ledger)) in regions.iter().zip(&books.ledgers).enumerate() {
        for row in ledger {
            if home(row.from) == at {
                *expected.entry(row.from).or_default() -= row.amount;
            }
            if home(row.to) == at {
                *expected.entry(row.to).or_default() += row.amount;
            }
            let is_new = found.entry(row.id).or_default().insert(at);
            verdict.expect(is_new, || format!("{region}: transfer {} is in the ledger twice", row.id));
            match known.get(&row.id) {
                None => verdict.violations.push(format!("{region}: nobody made transfer {}", row.id)),
                Some((made, outcome)) => {
                    verdict.expect(made == row, || format!("{region}: transfer {row:?} was made as {made:?}"));
                    let refused = *outcome == Outcome::Aborted;
                    verdict.expect(!refused, || format!("{region}: transfer {} was refused, but is there", row.id));
                }
            }
        }
    }
    let names = |places: &BTreeSet<usize>| places.iter().map(|at| regions[*at].as_str()).collect::<Vec<_>>().join(", ");
    for (id, (transfer, outcome)) in known {
        let homes = transfer.homes();
        match found.get(id) {
            None => {
                let lost = *outcome == Outcome::Committed;
                verdict.expect(!lost, || format!("transfer {id} of {} was acknowledged and is lost", names(&homes)));
            }
            Some(places) => verdict.expect(*places == homes, || {
                format!("transfer {id} is in the ledger of {}, not of {}", names(places), names(&homes))
            }),
        }
    }
    verdict.expect(books.balances == expected, || {
        let off = expected.iter().filter(|(account, balance)| books.balances.get(account) != Some(balance));
        format!("the balances of accounts {:?} are not what the ledgers say", off.map(|(account, _)| account).collect::<Vec<_>>())
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const B: i64 = ACCOUNTS_OF_REGION;

    fn transfer(id: i64, from: i64, to: i64) -> Transfer {
        Transfer { id, from, to, amount: 5 }
    }

    /// Two regions with two accounts each; transfer 1 within the first, 2 between them, 3 the other
    /// way and unknown.
    fn healthy() -> (BTreeMap<i64, (Transfer, Outcome)>, Books) {
        let (one, two, three) = (transfer(1, 0, 1), transfer(2, 0, B), transfer(3, B + 1, 1));
        let known = [(one, Outcome::Committed), (two, Outcome::Committed), (three, Outcome::Unknown)];
        let books = Books {
            balances: BTreeMap::from([(0, 990), (1, 1_010), (B, 1_005), (B + 1, 995)]),
            ledgers: vec![vec![one, two, three], vec![two, three]],
        };
        (known.into_iter().map(|(t, outcome)| (t.id, (t, outcome))).collect(), books)
    }

    fn violations(change: impl FnOnce(&mut BTreeMap<i64, (Transfer, Outcome)>, &mut Books)) -> Vec<String> {
        let (mut known, mut books) = healthy();
        change(&mut known, &mut books);
        let mut verdict = Verdict::default();
        judge(&["a".to_string(), "b".to_string()], 2, &known, &books, &mut verdict);
        verdict.violations
    }

    fn add(books: &mut Books, account: i64, amount: i64) {
        *books.balances.get_mut(&account).expect("an account") += amount;
    }

    #[test]
    fn whole_transfers_pass_whether_the_unknown_one_happened_or_not() {
        assert_eq!(violations(|_, _| ()), Vec::<String>::new());
        let without = violations(|_, books| {
            books.ledgers.iter_mut().for_each(|ledger| ledger.retain(|row| row.id != 3));
            add(books, B + 1, 5);
            add(books, 1, -5);
        });
        assert_eq!(without, Vec::<String>::new());
    }

    #[test]
    fn a_debit_without_its_credit_is_found() {
        let only_here = violations(|_, books| {
            books.ledgers[1].retain(|row| row.id != 2);
            add(books, B, -5);
        });
        assert!(only_here.iter().any(|v| v.contains("transfer 2 is in the ledger of a, not of a, b")), "{only_here:?}");
        let unknown = violations(|_, books| {
            books.ledgers[0].retain(|row| row.id != 3);
            add(books, 1, -5);
        });
        assert!(unknown.iter().any(|v| v.contains("transfer 3 is in the ledger of b, not of a, b")), "{unknown:?}");
        let balance_only = violations(|_, books| add(books, B, -5));
        assert!(balance_only.iter().any(|v| v.contains(&format!("accounts [{B}]"))), "{balance_only:?}");
    }

    #[test]
    fn lost_refused_doubled_changed_and_invented_transfers_are_found() {
        let lost = violations(|_, books| {
            books.ledgers.iter_mut().for_each(|ledger| ledger.retain(|row| row.id != 2));
            add(books, 0, 5);
            add(books, B, -5);
        });
        assert_eq!(lost, ["transfer 2 of a, b was acknowledged and is lost"]);
        let refused = violations(|known, _| known.get_mut(&3).expect("made").1 = Outcome::Aborted);
        assert_eq!(refused.len(), 2, "in both ledgers: {refused:?}");
        let doubled = violations(|_, books| books.ledgers[1].push(transfer(2, 0, B)));
        assert!(doubled.iter().any(|v| v.contains("b: transfer 2 is in the ledger twice")), "{doubled:?}");
        let applied_twice = violations(|_, books| {
            add(books, 0, -5);
            add(books, B, 5);
        });
        assert_eq!(applied_twice.len(), 1, "the sum is right, the accounts are not: {applied_twice:?}");
        let changed = violations(|_, books| books.ledgers[1][0].amount = 6);
        assert!(changed.iter().any(|v| v.contains("was made as")), "{changed:?}");
        let invented = violations(|known, _| _ = known.remove(&1));
        assert_eq!(invented, ["a: nobody made transfer 1"]);
        let elsewhere = violations(|_, books| books.ledgers[1].push(transfer(1, 0, 1)));
        assert_eq!(elsewhere, ["transfer 1 is in the ledger of a, b, not of a"]);
    }

    #[test]
    fn a_snapshot_must_have_all_accounts_and_the_constant_sum() {
        let snapshot = |balances: &[(i64, i64)]| balances.iter().copied().collect::<BTreeMap<i64, i64>>();
        let all = snapshot(&[(0, 990), (1, 1_010), (B, 1_005), (B + 1, 995)]);
        assert_eq!(wrong_snapshot(&[0, 1], 2, true, &all), None);
        let half = snapshot(&[(0, 990), (1, 1_010), (B, 1_000), (B + 1, 995)]);
        assert!(wrong_snapshot(&[0, 1], 2, true, &half).is_some_and(|wrong| wrong.contains("3995, not 4000")));
        let missing = snapshot(&[(0, 2_000), (1, 1_000), (B, 1_000)]);
        assert!(wrong_snapshot(&[0, 1], 2, true, &missing).is_some());
        let one = snapshot(&[(B, 1_005), (B + 1, 990)]);
        assert_eq!(wrong_snapshot(&[1], 2, false, &one), None, "money may have left");
        assert!(wrong_snapshot(&[1], 2, true, &one).is_some());
    }
}
