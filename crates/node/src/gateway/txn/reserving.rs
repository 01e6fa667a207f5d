//! Reserving reads: a read-only statement over several groups on data so hot that a round keeps
//! failing.
//!
//! ```text
//! attempt 1   reads at replicas ──▶ round fails
//! attempt 2   reads at replicas, with what the round told ──▶ round fails; what was read is noted ([`Script`])
//! attempt 3   the same keys and ranges are prepared everywhere, read under the reservation, and the values come with the votes;
//!             all YES at `c`: they hold at `c`. The statement runs over these values, and there is nothing left to confirm
//! ```
//!
//! A statement that reads where its values lead it (a lookup by what it has found, a `LIMIT`) may
//! ask for something that was not reserved. That is read as usual and noted, and the next attempt
//! reserves it too.

use super::Txn;
use super::ballot::Counted;
use crate::gateway::txn::lately::Lately;
use crate::local::metrics::Counter;
use crate::transport::wire::Found;
use bytes::Bytes;
use meridian_base::{
    ColumnMask, CommitRequest, Conflict, ConflictReason, Error, GroupId, Key, KeyRange, ReadEntry, Result, Target, Timestamp,
    limits,
};
use meridian_commit::Verdict;
use meridian_sql::env::{Scan, ScanRows, TxnOptions};
use std::collections::BTreeMap;

/// Attempts that came before the first one that reserves.
const RESERVING_FROM: u32 = 2;
/// Sessions that are remembered.
const SCRIPTS_MAX: usize = 1_024;
/// Rows in one page.
const PAGE_ROWS_MAX: usize = 1_024;

/// What was read in one group: by columns, stretches of keys that are in order and do not touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Footprint(BTreeMap<u64, Vec<KeyRange>>);

/// What a statement read, by group.
pub(super) type Script = BTreeMap<GroupId, Footprint>;

/// What the sessions of this gateway read in their last attempts.
#[derive(Default)]
pub(crate) struct Scripts(Lately<Script, SCRIPTS_MAX>);

/// What is reserved at one group, and its rows at the commit timestamp.
type Rows = (Footprint, BTreeMap<Key, Bytes>);

/// The values that a reserving read found.
pub(super) struct Reserved {
    groups: BTreeMap<GroupId, Rows>,
    /// The commit timestamp, at which they hold.
    pub at: Timestamp,
}

impl Footprint {
    fn extend<'a>(&mut self, entries: impl IntoIterator<Item = &'a ReadEntry>) {
        for entry in entries {
            let range = match &entry.target {
                Target::Key(key) => KeyRange::new(key.clone(), key.successor()),
                Target::Range(range) => range.clone(),
            };
            let columns = entry.columns | ColumnMask::EXISTENCE;
            self.0.entry(columns.0).or_default().push(range);
        }
        self.0.values_mut().for_each(join);
    }

    /// As a slice to prepare.
    fn entries(&self) -> Vec<ReadEntry> {
        let target = |range: &KeyRange| match range.start.successor() == range.end {
            true => Target::Key(range.start.clone()),
            false => Target::Range(range.clone()),
        };
        let all = self.0.iter().flat_map(|(columns, ranges)| ranges.iter().map(|range| (*columns, range)));
        let entry =
            |(columns, range)| ReadEntry { target: target(range), columns: ColumnMask(columns), until: ReadEntry::AT_PREPARE };
        all.map(entry).collect()
    }

    fn len(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    /// The stretch in which at least these columns were read, and which the test accepts.
    fn stretch(&self, columns: ColumnMask, fits: impl Fn(&KeyRange) -> bool) -> Option<&KeyRange> {
        let wanted = columns | ColumnMask::EXISTENCE;
        let mut enough = self.0.iter().filter(|(read, _)| ColumnMask(**read) & wanted == wanted);
        enough.find_map(|(_, ranges)| ranges.iter().find(|range| fits(range)))
    }
}

/// Sorts ranges and joins those that touch.
fn join(ranges: &mut Vec<KeyRange>) {
    ranges.sort_by(|a, b| a.start.cmp(&b.start));
    let mut joined: Vec<KeyRange> = Vec::with_capacity(ranges.len());
    for range in ranges.drain(..).filter(|r| !r.is_empty()) {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => {
                if last.end < range.end {
                    last.end = range.end;
                }
            }
            _ => joined.push(range),
        }
    }
    *ranges = joined;
}

impl Reserved {
    /// A key's value; `None` if it is not reserved.
    fn key(&self, group: GroupId, key: &Key, columns: ColumnMask) -> Option<Option<Bytes>> {
        let (footprint, rows) = self.groups.get(&group)?;
        footprint.stretch(columns, |range| range.contains(key.as_bytes()))?;
        Some(rows.get(key).cloned())
    }

    /// A page of a scan, up to where it is reserved; `None` if its beginning is not.
    fn page(&self, group: GroupId, scan: &Scan) -> Option<ScanRows> {
        let (footprint, rows) = self.groups.get(&group)?;
        let (start, end) = (&scan.range.start, &scan.range.end);
        let stretch = match scan.reverse {
            false => footprint.stretch(scan.columns, |r| r.start <= *start && *start < r.end)?,
            true => footprint.stretch(scan.columns, |r| r.start < *end && *end <= r.end)?,
        };
        let inside = start.max(&stretch.start).clone()..end.min(&stretch.end).clone();
        let (reserved_from, reserved_to) = (inside.start.clone(), inside.end.clone());
        let found = rows.range(inside).map(|(k, v)| (k.clone(), v.clone()));
        let rows_max = scan.limit.unwrap_or(PAGE_ROWS_MAX).clamp(1, PAGE_ROWS_MAX);
        let page: Vec<(Key, Bytes)> = match scan.reverse {
            false => found.take(rows_max).collect(),
            true => found.rev().take(rows_max).collect(),
        };
        let last = page.last().filter(|_| page.len() == rows_max).map(|(key, _)| key.clone());
        let rest = match (scan.reverse, last) {
            (false, Some(last)) => KeyRange::new(last.successor(), end.clone()),
            (false, None) => KeyRange::new(reserved_to, end.clone()),
            (true, Some(last)) => KeyRange::new(start.clone(), last),
            (true, None) => KeyRange::new(start.clone(), reserved_from),
        };
        Some(ScanRows { rows: page, rest: (!rest.is_empty()).then_some(rest) })
    }
}

/// Whether a transaction reserves what earlier attempts have read.
pub(super) fn may_reserve(options: &TxnOptions, protocol: super::Protocol) -> bool {
    let is_whole = options.read_only && options.is_held_back;
    is_whole && options.attempt >= RESERVING_FROM && protocol.reserves()
}

fn too_large(what: String) -> Error {
    Error::sql("53200", "a query over several regions reads too much of what changes all the time")
        .detail(what)
        .hint("Read less at a time, or try again when fewer of these rows are being written.")
}

impl Txn {
    /// A round has failed: the next attempt may want to know what this one read.
    pub(super) fn note_script(&self) {
        let next = TxnOptions { attempt: self.options.attempt + 1, ..self.options.clone() };
        if !may_reserve(&next, self.protocol) {
            return;
        }
        let mut script: Script = match &self.reserved {
            Some(reserved) => reserved.groups.iter().map(|(group, (footprint, _))| (*group, footprint.clone())).collect(),
            None => Script::new(),
        };
        for part in self.parts.iter().filter(|p| !p.view.entries.is_empty() && !p.is_global) {
            script.entry(part.group).or_default().extend(&part.view.entries);
        }
        // One group's primary reads at one snapshot, and needs no reservation, unless that has to
        // be the moment of GLOBAL rows as well.
        let has_global = self.parts.iter().any(|p| p.is_global && !p.view.entries.is_empty());
        if script.len() > usize::from(!has_global) {
            self.gateway.scripts.0.keep(self.options.session, script);
        }
    }

    /// Before the first read: reads and reserves what the attempt before has read, if one has noted
    /// that.
    pub(super) async fn reserve(&mut self) -> Result<()> {
        self.reserves_reads = false;
        let Some(script) = self.gateway.scripts.0.take(self.options.session) else { return Ok(()) };
        let targets: usize = script.values().map(Footprint::len).sum();
        if targets > limits::RESERVED_TARGETS_MAX {
            return Err(too_large(format!("{targets} keys and ranges; the limit is {}.", limits::RESERVED_TARGETS_MAX)));
        }
        script.iter().try_for_each(|(group, _)| self.gateway.shared.check_reach(*group))?;
        self.gateway.shared.groups.common.metrics.add(Counter::ReservingReads);
        let id = self.new_id();
        let slice = |footprint: &Footprint| CommitRequest {
            id,
            reads: footprint.entries(),
            writes: Vec::new(),
            min_commit: self.options.schema_committed_at,
            schema: self.schema.clone(),
            global: Default::default(),
        };
        let slices = script.iter().map(|(group, footprint)| (*group, slice(footprint))).collect();
        let prepares = self.prepares(slices);
        let counted = self.vote_on(id, prepares).await;
        match self.values(counted, &script) {
            Ok(reserved) => {
                self.reserved = Some(Box::new(reserved));
                Ok(())
            }
            Err(e) => {
                self.gateway.shared.groups.common.metrics.add(Counter::ReservingReadsRefused);
                if e.is_retry() {
                    self.gateway.scripts.0.keep(self.options.session, script);
                }
                Err(self.note_failure(e))
            }
        }
    }

    /// The values that came with the votes.
    fn values(&self, counted: Counted, script: &Script) -> Result<Reserved> {
        let Counted { verdict, mut found, .. } = counted;
        let at = match verdict {
            Verdict::Committed(at) => at,
            Verdict::Aborted(refusals) => {
                let refused = refusals.into_iter().next().map(|(group, refusal)| {
                    let unknown = Conflict { key: Key::MIN, reason: ConflictReason::ReservedByPrepared };
                    self.refused(group, (refusal.conflict.unwrap_or(unknown), refusal.fresh))
                });
                return Err(refused.unwrap_or_else(|| Error::retry("could not serialize access: a participant refused")));
            }
            Verdict::Unknown => return Err(Error::retry("could not serialize access: not every region answered")),
        };
        let mut values = BTreeMap::new();
        for (group, footprint) in script {
            match found.remove(group) {
                Some(Found::Rows(rows)) => values.insert(*group, (footprint.clone(), rows.into_iter().collect())),
                Some(Found::TooLarge) => {
                    return Err(too_large(format!("More than {} MiB in one region.", limits::RESERVED_BYTES_MAX >> 20)));
                }
                // A vote that was asked for again, or by a primary that does not know what was
                // wanted.
                None => return Err(Error::retry("could not serialize access: the values that were reserved are lost")),
            };
        }
        Ok(Reserved { groups: values, at })
    }

    pub(super) fn reserved_key(&self, group: GroupId, key: &Key, columns: ColumnMask) -> Option<Option<Bytes>> {
        self.reserved.as_ref()?.key(group, key, columns)
    }

    pub(super) fn reserved_keys(&self, group: GroupId, keys: &[Key], columns: ColumnMask) -> Option<Vec<Option<Bytes>>> {
        let reserved = self.reserved.as_ref()?;
        keys.iter().map(|key| reserved.key(group, key, columns)).collect()
    }

    pub(super) fn reserved_page(&self, group: GroupId, scan: &Scan) -> Option<ScanRows> {
        self.reserved.as_ref()?.page(group, scan)
    }

    /// At the end of a statement that ran over reserved values: they have held at the commit
    /// timestamp, unless it read more.
    pub(super) fn confirm_reserved(&mut self) -> Result<()> {
        if self.parts.iter().all(|p| p.view.entries.is_empty() || p.is_global) {
            // GLOBAL rows were read `max_offset` above the time at which the values hold; none may
            // be of after it.
            let reserved_at = self.reserved.as_ref().map_or(Timestamp::MAX, |r| r.at);
            return match self.global.newest <= reserved_at {
                true => Ok(()),
                false => Err(self.note_failure(Error::retry("could not serialize access: concurrent write to a GLOBAL table"))),
            };
        }
        self.gateway.shared.groups.common.metrics.add(Counter::ReservingReadsMissed);
        self.note_script();
        let e = Error::retry("could not serialize access: the query has read something that was not reserved");
        Err(self.note_failure(e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_base::Timestamp;
    use meridian_sql::env::Locking;
    use proptest::prelude::*;

    const GROUP: GroupId = GroupId(7);

    fn key(b: u8) -> Key {
        Key::new(&[b])
    }
    fn reserved(rows: Rows) -> Reserved {
        Reserved { groups: BTreeMap::from([(GROUP, rows)]), at: Timestamp(9) }
    }
    fn entry(from: u8, to: Option<u8>, columns: u64) -> ReadEntry {
        let target = to.map_or(Target::Key(key(from)), |to| Target::Range(KeyRange::new(key(from), key(to))));
        ReadEntry { target, columns: ColumnMask(columns), until: Timestamp(5) }
    }
    fn footprint(entries: &[(u8, Option<u8>, u64)]) -> Footprint {
        let mut footprint = Footprint::default();
        footprint.extend(&entries.iter().map(|(from, to, columns)| entry(*from, *to, *columns)).collect::<Vec<_>>());
        footprint
    }
    fn scan(from: u8, to: u8, reverse: bool, limit: Option<usize>) -> Scan {
        let range = KeyRange::new(key(from), key(to));
        Scan { range, columns: ColumnMask(2), reverse, limit, locking: Locking::None }
    }

    #[test]
    fn pages_that_touch_are_reserved_as_one_range_and_keys_as_keys() {
        let footprint = footprint(&[(1, Some(4), 2), (4, Some(9), 2), (20, None, 2), (2, Some(3), 2), (1, None, 8)]);
        let at_prepare = |mut e: ReadEntry| {
            e.until = ReadEntry::AT_PREPARE;
            e.columns |= ColumnMask::EXISTENCE;
            e
        };
        let expected = [entry(1, Some(9), 2), entry(20, None, 2), entry(1, None, 8)].map(at_prepare);
        assert_eq!((footprint.entries(), footprint.len()), (expected.to_vec(), 3));
    }

    #[test]
    fn what_was_not_read_is_not_reserved() {
        let reserved = reserved((footprint(&[(1, Some(9), 2)]), BTreeMap::new()));
        assert_eq!(reserved.key(GROUP, &key(8), ColumnMask(2)), Some(None), "there is no such row");
        assert_eq!(reserved.key(GROUP, &key(9), ColumnMask(2)), None);
        assert_eq!(reserved.key(GROUP, &key(8), ColumnMask(4)), None, "another column");
        assert_eq!(reserved.key(GroupId(8), &key(8), ColumnMask(2)), None);
        assert!(reserved.page(GROUP, &scan(0, 5, false, None)).is_none(), "its beginning is not reserved");
        assert!(reserved.page(GROUP, &scan(5, 10, true, None)).is_none());
    }

    proptest! {
        /// Page by page, forwards or backwards, a scan finds what is reserved and in its range, and
        /// stops where nothing is reserved.
        #[test]
        fn pages_give_the_rows_of_the_reserved_stretch(
            stored in prop::collection::btree_set(0u8..40, 0..30),
            (from, to) in (0u8..40, 0u8..40), (low, high) in (0u8..40, 0u8..40),
            limit in prop::option::of(1usize..6), reverse: bool,
        ) {
            let rows: BTreeMap<Key, Bytes> = stored.iter().filter(|b| (low..high).contains(*b))
                .map(|b| (key(*b), Bytes::from(vec![*b]))).collect();
            let reserved = reserved((footprint(&[(low, Some(high), 2)]), rows));
            let first = if reverse { (low < to && to <= high).then_some(()) } else { (low <= from && from < high).then_some(()) };
            let mut left = (from < to).then(|| scan(from, to, reverse, limit));
            let mut got = Vec::new();
            let mut missed = None;
            while let Some(next) = left.take() {
                match reserved.page(GROUP, &next) {
                    Some(page) => {
                        got.extend(page.rows.into_iter().map(|(k, _)| k.as_bytes()[0]));
                        left = page.rest.map(|range| Scan { range, ..next });
                    }
                    None => missed = Some(next.range),
                }
            }
            if from < to {
                prop_assert_eq!(missed.is_some(), first.is_none() || from < low || to > high);
                let mut expected: Vec<u8> = match first {
                    Some(()) => stored.into_iter().filter(|b| (from.max(low)..to.min(high)).contains(b)).collect(),
                    None => Vec::new(),
                };
                if reverse { expected.reverse(); }
                prop_assert_eq!(got, expected);
            }
        }
    }
}
