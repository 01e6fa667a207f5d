//! What was acknowledged, and whether the tables agree with it.

use crate::run::Verdict;
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::{BTreeMap, BTreeSet};

/// Whether something happened, as far as a client was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Yes,
    No,
    Maybe,
}

/// What was asked of a thing.
#[derive(Clone, Copy, Debug)]
struct Thing {
    owner: i64,
    tag: i64,
    inserted: Told,
    deleted: Told,
    counted: i64,
    maybe_counted: i64,
}

/// What all clients know together.
#[derive(Debug, Default)]
pub(super) struct Books {
    next_id: i64,
    newest_tag: i64,
    things: BTreeMap<i64, Thing>,
    /// What was seen and cannot be, as sentences.
    pub seen: Vec<String>,
    pub changes: u64,
}

/// The tables at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot {
    pub owners: Vec<i64>,
    /// Id, owner, tag and amount.
    pub things: Vec<(i64, i64, i64, i64)>,
}

impl Books {
    /// An id of its own, and a tag that others may want too.
    pub fn draw(&mut self, tags: i64, rng: &mut SmallRng) -> (i64, i64) {
        self.next_id += 1;
        if rng.random_bool(0.6) {
            self.newest_tag += 1;
        }
        (self.next_id, self.newest_tag - rng.random_range(0..tags))
    }

    pub fn inserted(&mut self, id: i64, owner: i64, tag: i64, inserted: Told) {
        self.things.insert(id, Thing { owner, tag, inserted, deleted: Told::No, counted: 0, maybe_counted: 0 });
    }

    /// A thing that may be there.
    pub fn any(&self, rng: &mut SmallRng) -> Option<i64> {
        let known: Vec<i64> = self.things.iter().filter(|(_, t)| t.inserted != Told::No).map(|(id, _)| *id).collect();
        (!known.is_empty()).then(|| known[rng.random_range(0..known.len())])
    }

    pub fn is_certainly_there(&self, id: i64) -> bool {
        self.things.get(&id).is_some_and(|t| t.inserted == Told::Yes && t.deleted == Told::No)
    }

    pub fn counted(&mut self, id: i64, told: Told) {
        if let Some(thing) = self.things.get_mut(&id) {
            match told {
                Told::Yes => thing.counted += 1,
                Told::Maybe => thing.maybe_counted += 1,
                Told::No => {}
            }
        }
    }

    /// An update found no such thing.
    pub fn missed(&mut self, id: i64, was_there: bool) {
        if was_there && self.is_certainly_there(id) {
            self.seen.push(format!("an update did not find thing {id}, which was acknowledged before and never deleted"));
        }
    }

    pub fn deleted(&mut self, id: i64, told: Told) {
        if let Some(thing) = self.things.get_mut(&id)
            && thing.deleted != Told::Yes
        {
            // After any attempt whose outcome was not known at once, a failure of another one says
            // nothing.
            thing.deleted = if told == Told::Yes { Told::Yes } else { Told::Maybe };
        }
    }

    pub fn judge(&self, found: &Snapshot, verdict: &mut Verdict) {
        verdict.violations.extend(self.seen.iter().cloned());
        let wrong = found.contradictions();
        verdict.examined += found.things.len() as u64;
        verdict.violations.extend(wrong.into_iter().map(|what| format!("the tables have {what}")));
        let rows: BTreeMap<i64, (i64, i64, i64)> = found.things.iter().map(|(id, o, t, a)| (*id, (*o, *t, *a))).collect();
        for (id, thing) in &self.things {
            let row = rows.get(id);
            let is_certain = thing.inserted == Told::Yes && thing.deleted == Told::No;
            verdict.expect(row.is_some() || !is_certain, || format!("thing {id} was acknowledged and is lost"));
            verdict.expect(row.is_none() || thing.inserted != Told::No, || format!("thing {id} was refused, but is there"));
            verdict.expect(row.is_none() || thing.deleted != Told::Yes, || format!("thing {id} was deleted, but is there"));
            let Some((owner, tag, amount)) = row else { continue };
            verdict.expect((*owner, *tag) == (thing.owner, thing.tag), || {
                format!("thing {id} has owner {owner} and tag {tag}, not {} and {}", thing.owner, thing.tag)
            });
            let (least, most) = (thing.counted, thing.counted + thing.maybe_counted);
            verdict.expect((least..=most).contains(amount), || {
                format!("thing {id} was counted {least} to {most} times, and has {amount}")
            });
        }
        let unknown: Vec<&i64> = rows.keys().filter(|id| !self.things.contains_key(id)).collect();
        verdict.expect(unknown.is_empty(), || format!("things {unknown:?} were never inserted"));
    }
}

impl Snapshot {
    /// What can be at no moment.
    pub fn contradictions(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let owners: BTreeSet<i64> = self.owners.iter().copied().collect();
        wrong.extend(doubled(self.owners.iter().copied()).map(|ids| format!("owners more than once: {ids:?}")));
        wrong.extend(doubled(self.things.iter().map(|t| t.0)).map(|ids| format!("things more than once: {ids:?}")));
        wrong.extend(doubled(self.things.iter().map(|t| t.2)).map(|tags| format!("tags more than once: {tags:?}")));
        let orphans: Vec<i64> = self.things.iter().filter(|t| !owners.contains(&t.1)).map(|t| t.0).collect();
        if !orphans.is_empty() {
            wrong.push(format!("things without their owners: {orphans:?}"));
        }
        wrong
    }
}

/// What is there more than once, if anything is.
fn doubled(values: impl Iterator<Item = i64>) -> Option<BTreeSet<i64>> {
    let mut known = BTreeSet::new();
    let again: BTreeSet<i64> = values.filter(|value| !known.insert(*value)).collect();
    (!again.is_empty()).then_some(again)
}

/// Every row is found where its region says, once.
pub(super) fn check_homes(table: &str, all: Vec<i64>, by_region: Vec<i64>, verdict: &mut Verdict) {
    let twice = doubled(by_region.iter().copied());
    verdict.expect(twice.is_none(), || format!("rows of {table} are in several regions: {twice:?}"));
    let (all, found): (BTreeSet<i64>, BTreeSet<i64>) = (all.into_iter().collect(), by_region.into_iter().collect());
    let misplaced: Vec<&i64> = all.symmetric_difference(&found).collect();
    verdict.expect(misplaced.is_empty(), || format!("rows of {table} are not where their region says: {misplaced:?}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn books() -> Books {
        let mut books = Books::default();
        books.inserted(1, 0, 10, Told::Yes);
        books.inserted(2, 0, 11, Told::Maybe);
        books.inserted(3, 0, 12, Told::No);
        books.counted(1, Told::Yes);
        books.counted(1, Told::Maybe);
        books
    }

    fn violations(books: &Books, things: &[(i64, i64, i64, i64)]) -> usize {
        let mut verdict = Verdict::default();
        books.judge(&Snapshot { owners: vec![0, 1], things: things.to_vec() }, &mut verdict);
        verdict.violations.len()
    }

    #[test]
    fn what_may_be_passes() {
        let mut books = books();
        assert_eq!(violations(&books, &[(1, 0, 10, 1)]), 0);
        assert_eq!(violations(&books, &[(1, 0, 10, 2), (2, 0, 11, 0)]), 0);
        books.deleted(1, Told::Maybe);
        assert_eq!(violations(&books, &[]), 0);
    }

    #[test]
    fn lost_doubled_wrong_and_undead_rows_are_found() {
        let mut books = books();
        assert_eq!(violations(&books, &[]), 1, "lost");
        assert_eq!(violations(&books, &[(1, 0, 10, 0)]), 1, "a count is lost");
        assert_eq!(violations(&books, &[(1, 0, 10, 3)]), 1, "a count too many");
        assert_eq!(violations(&books, &[(1, 0, 10, 1), (3, 0, 12, 0)]), 1, "refused");
        assert_eq!(violations(&books, &[(1, 0, 10, 1), (1, 0, 10, 1)]), 2, "twice, and its tag");
        assert_eq!(violations(&books, &[(1, 5, 10, 1)]), 2, "another owner, who is not there");
        assert_eq!(violations(&books, &[(1, 0, 10, 1), (9, 0, 19, 0)]), 1, "out of nowhere");
        books.missed(1, true);
        assert_eq!(violations(&books, &[(1, 0, 10, 1)]), 1, "missed by an update");
        books.deleted(2, Told::Yes);
        assert_eq!(violations(&books, &[(1, 0, 10, 1), (2, 0, 11, 0)]), 2, "and deleted");
    }

    #[test]
    fn a_row_in_another_group_than_its_regions_is_found() {
        let found = |all: &[i64], by_region: &[i64]| {
            let mut verdict = Verdict::default();
            check_homes("things", all.to_vec(), by_region.to_vec(), &mut verdict);
            verdict.violations.len()
        };
        assert_eq!((found(&[1, 2], &[2, 1]), found(&[1, 2], &[1]), found(&[1], &[1, 1])), (0, 1, 1));
    }
}
