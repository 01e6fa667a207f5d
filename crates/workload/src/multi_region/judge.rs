//! What the counters must say, judged without a database.
//!
//! Every write adds one. So a counter has grown by at least as many as were acknowledged to it and
//! at most as many more as clients are in doubt about, and the sums are bounded in the same way. A
//! transaction in doubt happened everywhere or nowhere: where a counter shows that all its doubtful
//! writes happened, or that none did, it speaks for each of their transactions, and no two counters
//! may disagree about one.

use crate::run::Verdict;
use std::collections::{BTreeMap, BTreeSet};

/// A region's place among the cluster's, and the id in its table.
pub(super) type Row = (usize, i64);

/// What the clients know of their writes.
#[derive(Default)]
pub(super) struct Written {
    /// The counters that were not zero when the work began.
    before: BTreeMap<Row, i64>,
    acknowledged: BTreeMap<Row, i64>,
    /// The rows of each transaction whose outcome nobody knows.
    doubtful: Vec<Vec<Row>>,
}

impl Written {
    pub(super) fn begin_with(&mut self, counters: BTreeMap<Row, i64>) {
        self.before = counters;
    }
    pub(super) fn acknowledge(&mut self, rows: impl Iterator<Item = Row>) {
        rows.for_each(|row| *self.acknowledged.entry(row).or_default() += 1);
    }
    pub(super) fn doubt(&mut self, rows: impl Iterator<Item = Row>) {
        let rows: Vec<Row> = rows.collect();
        if !rows.is_empty() {
            self.doubtful.push(rows);
        }
    }
}

/// Judges the counters that are not zero.
pub(super) fn judge(regions: &[String], written: &Written, counters: &BTreeMap<Row, i64>, verdict: &mut Verdict) {
    let mut doubts: BTreeMap<Row, i64> = BTreeMap::new();
    written.doubtful.iter().flatten().for_each(|row| *doubts.entry(*row).or_default() += 1);
    let least = |row: &Row| written.acknowledged.get(row).copied().unwrap_or(0);
    let doubts_of = |row: &Row| doubts.get(row).copied().unwrap_or(0);
    let in_map = |counters: &BTreeMap<Row, i64>, row: &Row| counters.get(row).copied().unwrap_or(0);
    let value = |row: &Row| in_map(counters, row) - in_map(&written.before, row);
    let name = |(region, id): &Row| format!("row {id} of {}", regions[*region]);

    let sum = counters.values().sum::<i64>() - written.before.values().sum::<i64>();
    let acknowledged: i64 = written.acknowledged.values().sum();
    let most = acknowledged + doubts.values().sum::<i64>();
    verdict.expect((acknowledged..=most).contains(&sum), || {
        format!(
            "the counters grew by {sum}; {acknowledged} increments were acknowledged, and {} are in doubt",
            most - acknowledged
        )
    });
    let known = written.acknowledged.keys().chain(doubts.keys());
    let rows: BTreeSet<Row> = known.chain(counters.keys()).chain(written.before.keys()).copied().collect();
    for row in &rows {
        let (value, least, doubts) = (value(row), least(row), doubts_of(row));
        verdict.expect((least..=least + doubts).contains(&value), || {
            format!("{} grew by {value}; {least} increments were acknowledged, and {doubts} are in doubt", name(row))
        });
    }
    for (index, transaction) in written.doubtful.iter().enumerate() {
        let happened = transaction.iter().find(|row| value(row) == least(row) + doubts_of(row));
        let did_not = transaction.iter().find(|row| value(row) == least(row));
        let is_half = happened.zip(did_not);
        verdict.expect(is_half.is_none(), || {
            let (there, missing) = is_half.map_or_else(Default::default, |(a, b)| (name(a), name(b)));
            format!("doubtful transaction {index} happened by half: {there} shows it, {missing} does not")
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Row = (0, 7);
    const B: Row = (1, 7);
    const C: Row = (1, 8);

    /// Two acknowledged transactions (A and B; A), one in doubt (B and C), one in doubt (A and C).
    fn violations(counters: &[(Row, i64)]) -> Vec<String> {
        let mut written = Written::default();
        written.acknowledge([A, B].into_iter());
        written.acknowledge([A].into_iter());
        written.doubt([B, C].into_iter());
        written.doubt([A, C].into_iter());
        let mut verdict = Verdict::default();
        judge(&["a".to_string(), "b".to_string()], &written, &counters.iter().copied().collect(), &mut verdict);
        assert!(verdict.examined > 0);
        verdict.violations
    }

    #[test]
    fn every_way_in_which_the_doubts_may_have_ended_passes() {
        for counters in [[(A, 2), (B, 1), (C, 0)], [(A, 2), (B, 2), (C, 1)], [(A, 3), (B, 1), (C, 1)], [(A, 3), (B, 2), (C, 2)]] {
            assert_eq!(violations(&counters), Vec::<String>::new(), "{counters:?}");
        }
    }

    #[test]
    fn a_lost_increment_is_found_though_a_doubt_fills_the_sum() {
        let lost = violations(&[(A, 1), (B, 2), (C, 1)]);
        assert_eq!(lost.len(), 1, "{lost:?}");
        assert!(lost[0].starts_with("row 7 of a grew by 1; 2 increments were acknowledged"), "{lost:?}");
    }

    #[test]
    fn lost_and_invented_increments_are_found_in_the_sum() {
        assert!(violations(&[(A, 2)])[0].starts_with("the counters grew by 2; 3 increments"), "all of B lost");
        assert!(violations(&[(A, 9), (B, 2), (C, 2)])[0].starts_with("the counters grew by 13"), "applied again and again");
        let invented = violations(&[(A, 2), (B, 1), ((0, 1), 1)]);
        assert_eq!(invented, ["row 1 of a grew by 1; 0 increments were acknowledged, and 0 are in doubt"]);
    }

    #[test]
    fn only_growth_counts_where_others_worked_before() {
        let judged = |counters: &[(Row, i64)]| {
            let mut written = Written::default();
            written.begin_with(BTreeMap::from([(A, 5), (B, 1)]));
            written.acknowledge([A].into_iter());
            let mut verdict = Verdict::default();
            judge(&["a".to_string(), "b".to_string()], &written, &counters.iter().copied().collect(), &mut verdict);
            verdict.violations
        };
        assert_eq!(judged(&[(A, 6), (B, 1)]), Vec::<String>::new());
        assert_eq!(judged(&[(A, 5), (B, 1)]).len(), 2, "lost: in the row and in the sum");
        assert_eq!(judged(&[(A, 6)]).len(), 2, "what was there before is gone");
    }

    #[test]
    fn a_doubtful_transaction_that_happened_in_one_region_only_is_found() {
        // B has the first one's increment; C has none of anybody's.
        let half = violations(&[(A, 2), (B, 2), (C, 0)]);
        assert_eq!(half, ["doubtful transaction 0 happened by half: row 7 of b shows it, row 8 of b does not"]);
        // A has the second one's, C none.
        let half = violations(&[(A, 3), (B, 1), (C, 0)]);
        assert_eq!(half, ["doubtful transaction 1 happened by half: row 7 of a shows it, row 8 of b does not"]);
    }
}
