//! What clients know of the rows, and what the table must look like then, judged without a
//! database.

use super::rows::{FIELDS, Key, Write};
use crate::run::Verdict;
use crate::session::Attempted;
use std::collections::{BTreeMap, BTreeSet};

/// Examples of a violation that are shown.
const EXAMPLES: usize = 5;

/// The numbers of a region's rows.
#[derive(Default)]
pub(super) struct Numbers {
    /// Lower ones were there when the run began, so many of them.
    first: u64,
    present: u64,
    next: u64,
    /// Lower ones' inserts have ended, one way or another.
    dense: u64,
    ended: BTreeSet<u64>,
    acknowledged: BTreeSet<u64>,
    doubtful: BTreeSet<u64>,
}

impl Numbers {
    /// The numbers to read: those of inserts that are under way are not among them.
    pub fn readable(&self) -> u64 {
        self.dense
    }
    /// A row that nobody has inserted yet.
    pub fn begin(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }
    fn end(&mut self, number: u64, attempted: &Attempted<()>) {
        match attempted {
            Attempted::Committed(()) => self.acknowledged.insert(number),
            Attempted::Unknown(..) => self.doubtful.insert(number),
            Attempted::Failed(_) => false,
        };
        self.ended.insert(number);
        while self.ended.remove(&self.dense) {
            self.dense += 1;
        }
    }
    /// Whether whoever begins to read now finds this row.
    fn is_there(&self, number: u64) -> bool {
        (number < self.first && self.present == self.first) || self.acknowledged.contains(&number)
    }
}

/// What clients know.
#[derive(Default)]
pub(super) struct Known {
    run: u64,
    /// Of each client, the number of its last write.
    writes: BTreeMap<u32, u64>,
    /// Writes that had no effect.
    undone: BTreeSet<(u32, u64)>,
    pub numbers: Vec<Numbers>,
    /// Fresh reads that did not find a row, and the first of them.
    missing: Option<(Key, u64)>,
}

/// A row as it is.
pub(super) type Row = (Key, Vec<String>);

impl Known {
    /// When a run begins, with these rows.
    pub fn begin(regions: usize, rows: &[Row]) -> Known {
        let mut known = Known { numbers: (0..regions).map(|_| Numbers::default()).collect(), ..Known::default() };
        for (key, fields) in rows {
            if let Some(numbers) = known.numbers.get_mut(key.region) {
                numbers.present += 1;
                numbers.first = numbers.first.max(key.number + 1);
            }
            let runs = fields.iter().enumerate().filter_map(|(field, value)| Write::of(value, *key, field));
            known.run = runs.map(|w| w.run).fold(known.run, u64::max);
        }
        known.run += 1;
        for numbers in &mut known.numbers {
            (numbers.next, numbers.dense) = (numbers.first, numbers.first);
        }
        known
    }
    /// The next write of a client.
    pub fn write(&mut self, client: u32) -> Write {
        let number = self.writes.entry(client).or_default();
        *number += 1;
        Write { run: self.run, client, number: *number }
    }
    /// What came of a write; `inserted`: of a row that it was to add.
    pub fn wrote(&mut self, write: Write, inserted: Option<Key>, attempted: &Attempted<()>) {
        if matches!(attempted, Attempted::Failed(_)) {
            self.undone.insert((write.client, write.number));
        }
        if let Some(key) = inserted {
            self.numbers[key.region].end(key.number, attempted);
        }
    }
    /// Whether a read that begins now has to find a row.
    pub fn is_there(&self, key: Key) -> bool {
        self.numbers[key.region].is_there(key.number)
    }
    /// A read did not find a row that was there.
    pub fn missed(&mut self, key: Key) {
        self.missing.get_or_insert((key, 0)).1 += 1;
    }
    fn made(&self, write: Write) -> bool {
        match write.run.cmp(&self.run) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Greater => false,
            std::cmp::Ordering::Equal => {
                self.writes.get(&write.client).is_some_and(|last| write.number <= *last)
                    && !self.undone.contains(&(write.client, write.number))
            }
        }
    }
}

/// Judges one copy of the table.
pub(super) fn judge(rows: &[Row], known: &Known, verdict: &mut Verdict) {
    if let Some((key, count)) = known.missing {
        verdict.expect(false, || format!("{count} reads did not find a row that was there, the first one {key}"));
    }
    let keys: BTreeSet<Key> = rows.iter().map(|(key, _)| *key).collect();
    verdict.expect(keys.len() == rows.len(), || format!("{} rows have {} keys", rows.len(), keys.len()));
    for (region, numbers) in known.numbers.iter().enumerate() {
        let of_region = |number: &u64| Key { region, number: *number };
        let old = keys.iter().filter(|k| k.region == region && k.number < numbers.first).count() as u64;
        verdict.expect(old == numbers.present, || {
            format!("of {} rows that keys begin with {} for, {old} are left", numbers.present, Key::prefix(region))
        });
        verdict.examined += numbers.acknowledged.len() as u64;
        let lost: Vec<String> =
            numbers.acknowledged.iter().map(of_region).filter(|k| !keys.contains(k)).map(|k| k.to_string()).collect();
        verdict.expect(lost.is_empty(), || format!("{} acknowledged inserts are lost: {}", lost.len(), some(&lost)));
    }
    let uninvited = |k: &&Key| {
        let numbers = known.numbers.get(k.region);
        !numbers.is_some_and(|n| k.number < n.first || n.acknowledged.contains(&k.number) || n.doubtful.contains(&k.number))
    };
    let extra: Vec<String> = keys.iter().filter(uninvited).map(|k| k.to_string()).collect();
    verdict.expect(extra.is_empty(), || format!("{} rows were inserted by nobody: {}", extra.len(), some(&extra)));
    let mut odd = Vec::new();
    for (key, fields) in rows {
        verdict.examined += FIELDS as u64;
        for (field, value) in fields.iter().enumerate() {
            if !Write::of(value, *key, field).is_some_and(|write| known.made(write)) {
                odd.push(format!("field{field} of {key} is {value}"));
            }
        }
    }
    verdict.expect(odd.is_empty(), || format!("{} values were written by nobody: {}", odd.len(), some(&odd)));
}

/// Judges that a copy is as the first one.
pub(super) fn judge_copy(first: &[Row], other: &[Row], verdict: &mut Verdict) {
    let sorted = |rows: &[Row]| rows.iter().cloned().collect::<BTreeSet<Row>>();
    let (first, other) = (sorted(first), sorted(other));
    let differ: Vec<String> = first.symmetric_difference(&other).map(|(key, _)| key.to_string()).collect();
    verdict.expect(differ.is_empty(), || format!("copies differ in {}", some(&differ)));
}

fn some(all: &[String]) -> String {
    all[..all.len().min(EXAMPLES)].join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_base::Error;

    fn row(region: usize, number: u64, write: Write) -> Row {
        let key = Key { region, number };
        (key, (0..FIELDS).map(|field| write.value(key, field)).collect())
    }

    /// Two regions of two rows; one update, one insert that was acknowledged, one that failed and
    /// one in doubt.
    fn run() -> (Vec<Row>, Known) {
        let mut rows: Vec<Row> = (0..4).map(|n| row(n % 2, n as u64 / 2, Write::LOAD)).collect();
        let mut known = Known::begin(2, &rows);
        let update = known.write(7);
        known.wrote(update, None, &Attempted::Committed(()));
        rows[0].1[3] = update.value(rows[0].0, 3);
        for attempted in [
            Attempted::Committed(()),
            Attempted::Failed(Error::retry("no")),
            Attempted::Unknown(Error::unknown_outcome("who knows"), None),
        ] {
            let key = Key { region: 1, number: known.numbers[1].begin() };
            let write = known.write(8);
            known.wrote(write, Some(key), &attempted);
        }
        rows.push(row(1, 2, Write { run: 1, client: 8, number: 1 }));
        (rows, known)
    }

    fn violations(change: impl FnOnce(&mut Vec<Row>)) -> Vec<String> {
        let (mut rows, known) = run();
        change(&mut rows);
        let mut verdict = Verdict::default();
        judge(&rows, &known, &mut verdict);
        assert!(verdict.examined >= 40);
        verdict.violations
    }

    #[test]
    fn what_was_acknowledged_and_what_is_in_doubt_may_be_there() {
        assert_eq!(violations(|_| {}), Vec::<String>::new());
        assert_eq!(violations(|rows| rows.push(row(1, 4, Write { run: 1, client: 8, number: 3 }))), Vec::<String>::new());
    }

    #[test]
    fn what_is_lost_made_up_or_undone_is_found() {
        type Damage = fn(&mut Vec<Row>);
        let damages: [(Damage, &str); 7] = [
            (|rows| rows.truncate(4), "acknowledged inserts are lost: user010000000002"),
            (|rows| drop(rows.remove(1)), "1 are left"),
            (|rows| rows.push(row(1, 3, Write { run: 1, client: 8, number: 2 })), "inserted by nobody: user010000000003"),
            (|rows| rows.push(rows[0].clone()), "6 rows have 5 keys"),
            (|rows| rows[1].1[0] = rows[1].1[1].clone(), "field0 of user010000000000"),
            (|rows| rows[1].1[0] = Write { run: 1, client: 7, number: 2 }.value(rows[1].0, 0), "written by nobody"),
            (|rows| rows[1].1[0] = Write { run: 1, client: 8, number: 2 }.value(rows[1].0, 0), "written by nobody"),
        ];
        for (damage, expected) in damages {
            let found = violations(damage);
            assert!(found.iter().any(|v| v.contains(expected)), "{expected}: {found:?}");
        }
    }

    #[test]
    fn rows_are_readable_when_their_insert_and_all_before_have_ended() {
        let mut numbers = Numbers { first: 1, present: 1, next: 1, dense: 1, ..Numbers::default() };
        let (a, b) = (numbers.begin(), numbers.begin());
        numbers.end(b, &Attempted::Committed(()));
        assert_eq!(numbers.readable(), 1);
        numbers.end(a, &Attempted::Failed(Error::retry("no")));
        assert_eq!(numbers.readable(), 3);
        assert!(numbers.is_there(0) && !numbers.is_there(a) && numbers.is_there(b));
    }

    #[test]
    fn copies_are_compared_and_reads_that_find_nothing_are_told() {
        let (rows, mut known) = run();
        let mut verdict = Verdict::default();
        judge_copy(&rows, &rows.iter().rev().cloned().collect::<Vec<_>>(), &mut verdict);
        assert!(verdict.is_ok());
        judge_copy(&rows, &rows[1..], &mut verdict);
        assert!(verdict.violations[0].contains("user000000000000"), "{verdict:?}");
        known.missed(Key { region: 0, number: 1 });
        let mut verdict = Verdict::default();
        judge(&rows, &known, &mut verdict);
        assert!(verdict.violations[0].starts_with("1 reads did not find"), "{verdict:?}");
    }

    #[test]
    fn a_second_run_accepts_what_the_first_one_wrote() {
        let (rows, _) = run();
        let known = Known::begin(2, &rows);
        let mut verdict = Verdict::default();
        judge(&rows, &known, &mut verdict);
        assert!(verdict.is_ok(), "{verdict:?}");
        assert_eq!(known.numbers[1].readable(), 3);
    }
}
