//! Reading: point reads, scans, and «did anything change».
//!
//! Every read looks into the row table first, under its lock, and then into the spaces, without it.
//! That order makes the two together complete: what was applied before the read began is in the row
//! table, or was flushed before it was evicted and is then in the spaces by the time they are
//! looked at. (The other way round a version could slip from one to the other behind the reader's
//! back.)
//!
//! A scan goes in steps: a bounded piece of the row table is looked at, and what the spaces do not
//! have yet is copied out (references, not rows); then the spaces are read over the same stretch
//! and merged with it. Of an index that the row table has whole, a step shows its rows under the
//! table's lock, and that is all.

use crate::backend::{RawRange, Space, Spaces, View};
use crate::codec;
use crate::dead::KEYS_MIN;
use crate::group::{EVICT_CALLS_FILL, GroupStore, Inner};
use crate::spaces;
use crate::table::{Row, Slot, Table};
use crate::version::{ScanLimits, ScanPage, Version};
use bytes::Bytes;
use meridian_base::error::{Error, Result};
use meridian_base::key::{Key, KeyRange, Target};
use meridian_base::time::Timestamp;
use meridian_base::txn::ColumnMask;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// Rows of the row table looked at in one hold of its lock: as many as the page still wants, within
/// these bounds (the lower one because every step seeks in the spaces).
const STEP_ROWS_MIN: usize = 16;
const STEP_LOOKS_MAX: usize = 1_024;
/// Rows of it that are copied out, or shown.
const STEP_ROWS_MAX: usize = 256;
/// Values shown in one hold of the lock have no more bytes. One that has more by itself is copied
/// out.
const SHOWN_BYTES_MAX: usize = 64 << 10;
/// How many rows, and how many bytes of them, come along with one that is read from the spaces
/// while the cache has much room. They are mostly in the block that was read for it, and to find a
/// row there takes several times as long as to take one more. After a start, or after a load, the
/// rows in use are in memory many times sooner.
const BEHIND_ROWS: usize = 32;
const BEHIND_BYTES: usize = 16 << 10;
/// What they take in memory, at most.
const BEHIND_ROOM: usize = 2 * BEHIND_BYTES + BEHIND_ROWS * 256;
/// A page looks at this many keys for each row it may return, and at this many more, before it
/// gives a rest back: so that a scan over deleted rows yields too.
const LOOK_PER_ROW: usize = 4;
const LOOK_EXTRA: usize = 1_024;

impl GroupStore {
    /// The newest version at or below `at`, tombstones included. Below
    /// [`GroupStore::gc_threshold`]: an error (72000).
    pub fn get(&self, key: &[u8], at: Timestamp) -> Result<Option<Version>> {
        self.check_readable(at)?;
        let (spaces, epoch, is_here) = {
            let inner = self.inner.read();
            let row = inner.table.row(key);
            if let Some(row) = row {
                row.touch();
                if let Some(slot) = row.visible(at) {
                    return Ok(Some(slot.version()));
                }
            } else if inner.table.has_never_held(key) {
                return Ok(None);
            }
            (inner.spaces.clone(), inner.table.epoch, row.is_some())
        };
        let current = spaces::current(&*spaces, key)?;
        if let (false, Some(version)) = (is_here, &current) {
            // A damaged row among them raises the disk's alarm, and is no error of this read.
            let behind = match self.has_much_room(BEHIND_ROOM) {
                true => spaces::current_behind(&*spaces.view(), key, BEHIND_ROWS, BEHIND_BYTES).unwrap_or_default(),
                false => Vec::new(),
            };
            let mut inner = self.inner.write();
            inner.table.fill(key, version, epoch, &self.shared.totals);
            for (key, version) in &behind {
                inner.table.fill(key.as_bytes(), version, epoch, &self.shared.totals);
            }
            drop(inner);
            self.evict(EVICT_CALLS_FILL);
        }
        match current {
            Some(version) if version.at > at => {
                let version = spaces::history_at(&*spaces, &*spaces.view(), key, at)?;
                self.check_readable(at)?;
                Ok(version)
            }
            other => Ok(other),
        }
    }

    /// The newest version, tombstones included.
    pub fn newest(&self, key: &[u8]) -> Result<Option<Version>> {
        self.get(key, Timestamp::MAX)
    }

    /// As [`GroupStore::get`] for several keys, with answers in their order. Keys that lie close to
    /// each other, or where nothing is, cost one walk through the spaces together.
    pub fn get_many(&self, keys: &[Key], at: Timestamp) -> Result<Vec<Option<Version>>> {
        self.check_readable(at)?;
        loop {
            let mut found = vec![None; keys.len()];
            // Places of keys that the row table does not answer for.
            let mut missing: Vec<usize> = Vec::new();
            let mut before: Option<(Arc<dyn Spaces>, u64)> = None;
            let mut is_replaced = false;
            for (chunk, first) in keys.chunks(STEP_ROWS_MAX).zip((0_usize..).step_by(STEP_ROWS_MAX)) {
                let inner = self.inner.read();
                // A snapshot was installed meanwhile: an answer must not mix the old content with
                // the new one.
                is_replaced |= before.as_ref().is_some_and(|(spaces, _)| !Arc::ptr_eq(spaces, &inner.spaces));
                before.get_or_insert_with(|| (inner.spaces.clone(), inner.table.epoch));
                let is_gap = inner.table.is_gap(chunk);
                for (key, place) in chunk.iter().zip(first..) {
                    let row = if is_gap { None } else { inner.table.row(key.as_bytes()).inspect(|row| row.touch()) };
                    match row.and_then(|row| row.visible(at)) {
                        Some(slot) => found[place] = Some(slot.version()),
                        None if row.is_none() && inner.table.has_never_held(key.as_bytes()) => {}
                        None => missing.push(place),
                    }
                }
            }
            if is_replaced {
                continue;
            }
            let Some((spaces, epoch)) = before.filter(|_| !missing.is_empty()) else { return Ok(found) };
            missing.sort_by(|a, b| keys[*a].cmp(&keys[*b]));
            self.read_spaces(&*spaces, epoch, keys, &missing, at, &mut found)?;
            self.check_readable(at)?;
            return Ok(found);
        }
    }

    /// What the row table does not answer for; `missing` is in the order of the keys.
    fn read_spaces(
        &self,
        spaces: &dyn Spaces,
        epoch: u64,
        keys: &[Key],
        missing: &[usize],
        at: Timestamp,
        found: &mut [Option<Version>],
    ) -> Result<()> {
        let view = spaces.view();
        let sorted: Vec<&[u8]> = missing.iter().map(|place| keys[*place].as_bytes()).collect();
        let there = spaces::current_of_many(spaces, &*view, &sorted)?;
        let read: Vec<(usize, Version)> = there.into_iter().map(|(at, version)| (missing[at], version)).collect();
        for read in read.chunks(STEP_ROWS_MIN) {
            let mut inner = self.inner.write();
            for (place, version) in read {
                inner.table.fill(keys[*place].as_bytes(), version, epoch, &self.shared.totals);
            }
            drop(inner);
            self.evict(EVICT_CALLS_FILL);
        }
        for (place, version) in read {
            found[place] = spaces::visible(spaces, &*view, keys[place].as_bytes(), Some(version), at)?;
        }
        Ok(())
    }

    /// Before reading, and again after a look into `history`: what was there may have been
    /// collected meanwhile.
    pub(crate) fn check_readable(&self, at: Timestamp) -> Result<()> {
        let threshold = self.gc_threshold();
        if at >= threshold {
            return Ok(());
        }
        Err(Error::sql("72000", "snapshot too old")
            .detail(format!("the read is as of {at}, and versions before {threshold} may be gone"))
            .hint("Read at a newer timestamp: versions that were replaced are kept for open transactions, and for as long as the option --gc-ttl of the nodes says."))
    }

    /// One page of the rows of a range as of `at`, from the start or, if `reverse`, from the end.
    pub fn scan(&self, range: &KeyRange, at: Timestamp, reverse: bool, limits: ScanLimits) -> Result<ScanPage> {
        let mut rows = Vec::new();
        let mut take = |key: &dyn AsRef<[u8]>, seen: Seen| {
            rows.push((Key::new(key.as_ref()), seen.version()?));
            Ok(ControlFlow::Continue(()))
        };
        let page = PageBuilder { counts_keys: true, ..PageBuilder::new(range, reverse, limits, true, &mut take) };
        let rest = self.page(at, page)?;
        Ok(ScanPage { rows, rest })
    }

    /// As [`GroupStore::scan`], without copies: `visit` gets the key, the timestamp and the value
    /// of each row. `Break` ends the page after that row. With `is_brief`, `visit` is called under
    /// the row table's lock: it must take about a microsecond. A key is read from memory when
    /// `visit` looks at it. The limits count the bytes of values alone.
    pub fn visit(
        &self,
        range: &KeyRange,
        at: Timestamp,
        reverse: bool,
        limits: ScanLimits,
        is_brief: bool,
        visit: &mut dyn FnMut(&dyn AsRef<[u8]>, Timestamp, &[u8]) -> ControlFlow<()>,
    ) -> Result<Option<KeyRange>> {
        let mut take = |key: &dyn AsRef<[u8]>, seen: Seen| Ok(visit(key, seen.at(), seen.value()));
        let page = PageBuilder::new(range, reverse, limits, is_brief, &mut take);
        self.page(at, page)
    }

    /// Fills a page; what is left of the range.
    fn page(&self, at: Timestamp, mut page: PageBuilder) -> Result<Option<KeyRange>> {
        self.check_readable(at)?;
        let mut spaces: Option<Arc<dyn Spaces>> = None;
        while !page.is_done() {
            let (step, of) = {
                let inner = self.inner.read();
                // A snapshot was installed meanwhile: a page must not mix the old content with the
                // new one, so it ends here.
                if !Arc::ptr_eq(spaces.get_or_insert_with(|| inner.spaces.clone()), &inner.spaces) {
                    break;
                }
                page.note_dead(&inner.table, at);
                if page.pass_dead(&inner.table, at) || page.is_brief && page.show(&inner.table, at)? {
                    continue;
                }
                // The spaces have all versions of a clean row, as if it had been evicted.
                let what =
                    |row: &Row, is_whole: bool| (is_whole || !row.is_clean()).then(|| row.visible(at).map(|slot| slot.version()));
                (Step::of(&inner, &page.left, page.reverse, page.rows_wanted(), at, what), inner.spaces.clone())
            };
            scan_step(&*of, step, at, &mut page)?;
        }
        if page.has_passed_dead() {
            let inner = self.inner.read();
            if spaces.is_some_and(|spaces| Arc::ptr_eq(&spaces, &inner.spaces)) {
                page.note_dead(&inner.table, at);
            }
        }
        self.check_readable(at)?;
        Ok((!page.left.is_empty()).then_some(page.left))
    }

    /// A version above `after` that changed any of `columns` in the target, if there is one. Exact:
    /// every version counts, not only each key's newest (counterexample 28), and tombstones do.
    /// Below [`GroupStore::gc_threshold`]: an error (72000).
    pub fn changed_after(&self, target: &Target, columns: ColumnMask, after: Timestamp) -> Result<Option<(Key, Timestamp)>> {
        self.changed_between(target, columns, after, Timestamp::MAX)
    }

    /// The same by versions at or below `through`.
    pub fn changed_between(
        &self,
        target: &Target,
        columns: ColumnMask,
        after: Timestamp,
        through: Timestamp,
    ) -> Result<Option<(Key, Timestamp)>> {
        self.check_readable(after)?;
        let asked = Change { columns, after, through };
        let found = match target {
            Target::Key(key) => self.key_changed(key, asked)?.map(|at| (key.clone(), at)),
            Target::Range(range) => self.range_changed(range, asked)?,
        };
        self.check_readable(after)?;
        Ok(found)
    }

    fn key_changed(&self, key: &Key, asked: Change) -> Result<Option<Timestamp>> {
        let (spaces, below) = {
            let inner = self.inner.read();
            if inner.table.newest_in_index(key.as_bytes()) <= asked.after {
                return Ok(None);
            }
            let below = match inner.table.row(key.as_bytes()) {
                Some(row) => match asked.of_row(row) {
                    RowChange::At(at) => return Ok(Some(at)),
                    RowChange::No => return Ok(None),
                    RowChange::Below(at) => at,
                },
                None if inner.table.whole_from(key.as_bytes()) <= asked.after => return Ok(None),
                None => Timestamp::MAX,
            };
            (inner.spaces.clone(), below)
        };
        let newest = spaces::current(&*spaces, key.as_bytes())?;
        asked.of_spaces(&*spaces, &*spaces.view(), key.as_bytes(), newest, below)
    }

    fn range_changed(&self, range: &KeyRange, asked: Change) -> Result<Option<(Key, Timestamp)>> {
        let mut left = range.clone();
        while !left.is_empty() {
            if newest_in_range(&self.inner.read(), &left) <= asked.after {
                return Ok(None);
            }
            let (step, spaces) = {
                let inner = self.inner.read();
                (
                    Step::of(&inner, &left, false, STEP_ROWS_MAX, asked.after, |row, _| Some(asked.of_row(row))),
                    inner.spaces.clone(),
                )
            };
            let reached = step.covered.end.clone();
            if let Some(found) = changed_step(&*spaces, step, asked)? {
                return Ok(Some(found));
            }
            left.start = reached;
        }
        Ok(None)
    }
}

fn bounds(range: &KeyRange) -> RawRange<'_> {
    (Bound::Included(range.start.as_bytes()), Bound::Excluded(range.end.as_bytes()))
}

/// The index that a range lies in.
fn in_one_index(range: &KeyRange) -> Option<&[u8]> {
    let index = range.start.as_bytes().get(..4)?;
    let ends_there = || Key::new(index).prefix_end().is_some_and(|end| range.end <= end);
    (range.end.as_bytes().starts_with(index) || ends_there()).then_some(index)
}

/// Whether the row table alone has every row of the range that a reader at `from` or later can see.
fn is_whole(table: &Table, range: &KeyRange, from: Timestamp) -> bool {
    let whole_from = in_one_index(range).map_or(Timestamp::MAX, |index| table.whole_from(index));
    // A reader at the end of time sees no less than others.
    whole_from < Timestamp::MAX && whole_from <= from
}

/// The newest version that any key of a range may have: by its index, if it lies in one.
fn newest_in_range(inner: &Inner, range: &KeyRange) -> Timestamp {
    in_one_index(range).map_or(inner.table.newest, |index| inner.table.newest_in_index(index))
}

/// A stretch of a range, and what the row table has of it, in the order of the scan.
struct Step<T> {
    covered: KeyRange,
    rows: Vec<(Key, T)>,
    /// Keys of the stretch that are not among the rows have nothing to see.
    is_whole: bool,
}

/// What the row table has of a key.
trait Held {
    /// The spaces may have more of it that matters.
    fn is_in_part(&self) -> bool;
}

/// For a scan: the version that it sees; `None` if that is older than everything here.
impl Held for Option<Version> {
    fn is_in_part(&self) -> bool {
        self.is_none()
    }
}

impl Held for RowChange {
    fn is_in_part(&self) -> bool {
        matches!(self, RowChange::Below(_))
    }
}

impl<T: Held> Step<T> {
    /// Copies out what the row table has of the start (or the end) of a range. `from`: what was
    /// gone by then does not matter. `what` is asked whether a row is copied, given whether the row
    /// table has the range whole.
    fn of(
        inner: &Inner,
        range: &KeyRange,
        reverse: bool,
        rows_wanted: usize,
        from: Timestamp,
        what: impl Fn(&Row, bool) -> Option<T>,
    ) -> Step<T> {
        let is_whole = is_whole(&inner.table, range, from);
        let looks_max = rows_wanted.clamp(STEP_ROWS_MIN, STEP_LOOKS_MAX);
        let (low, high) = bounds(range);
        let mut rows = Vec::new();
        let mut covered = range.clone();
        for ((key, row), looks) in inner.table.range(low, high, reverse).zip(1..) {
            rows.extend(what(row, is_whole).map(|what| (key.clone(), what)));
            if looks == looks_max || rows.len() == STEP_ROWS_MAX {
                match reverse {
                    true => covered.start = key.clone(),
                    false => covered.end = key.successor(),
                }
                break;
            }
        }
        Step { covered, rows, is_whole }
    }

    /// Merges the row table's rows with `current` over the stretch. `visit` sees every key once, in
    /// order, with what the row table has and, if that is not all, with `current`'s raw value, and
    /// may break off.
    fn merge(
        self,
        spaces: &dyn Spaces,
        view: &dyn View,
        reverse: bool,
        visit: &mut dyn FnMut(&[u8], Option<T>, Option<&[u8]>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        if self.is_whole {
            for (key, row) in self.rows {
                let key = key.as_bytes();
                let raw = if row.is_in_part() { spaces.get(Space::Current, key)? } else { None };
                if visit(key, Some(row), raw.as_deref())?.is_break() {
                    return Ok(());
                }
            }
            return Ok(());
        }
        let mut rows = self.rows.into_iter().peekable();
        let mut outcome = Ok(ControlFlow::Continue(()));
        view.scan(Space::Current, bounds(&self.covered), reverse, &mut |key, raw| {
            let before = |row: &(Key, T)| if reverse { row.0.as_bytes() > key } else { row.0.as_bytes() < key };
            while let Some((row_key, row)) = rows.next_if(before) {
                outcome = visit(row_key.as_bytes(), Some(row), None);
                if !matches!(outcome, Ok(ControlFlow::Continue(()))) {
                    return ControlFlow::Break(());
                }
            }
            let row = rows.next_if(|row| row.0.as_bytes() == key).map(|(_, row)| row);
            outcome = visit(key, row, Some(raw));
            if matches!(outcome, Ok(ControlFlow::Continue(()))) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        if outcome?.is_break() {
            return Ok(());
        }
        for (key, row) in rows {
            if visit(key.as_bytes(), Some(row), None)?.is_break() {
                return Ok(());
            }
        }
        Ok(())
    }
}

fn decode_current(spaces: &dyn Spaces, raw: &[u8]) -> Result<Version> {
    codec::current(Bytes::copy_from_slice(raw)).ok_or_else(|| spaces.malformed())
}

/// A row as a page meets it.
enum Seen<'a> {
    /// Of the row table, under its lock.
    Slot(&'a Slot),
    /// A copy, of the row table or of the spaces.
    Held(Version),
    /// Of `current`: its entry, and what that says.
    Entry { at: Timestamp, value: &'a [u8], raw: &'a [u8], spaces: &'a dyn Spaces },
}

impl Seen<'_> {
    fn at(&self) -> Timestamp {
        match self {
            Seen::Slot(slot) => slot.at,
            Seen::Held(version) => version.at,
            Seen::Entry { at, .. } => *at,
        }
    }
    /// Not of a tombstone.
    fn value(&self) -> &[u8] {
        match self {
            Seen::Slot(slot) => slot.value.as_deref().unwrap_or_default(),
            Seen::Held(version) => version.value.as_deref().unwrap_or_default(),
            Seen::Entry { value, .. } => value,
        }
    }
    fn version(self) -> Result<Version> {
        match self {
            Seen::Slot(slot) => Ok(slot.version()),
            Seen::Held(version) => Ok(version),
            Seen::Entry { raw, spaces, .. } => decode_current(spaces, raw),
        }
    }
}

/// What a page does with a row; it may break off behind it.
type Take<'a> = &'a mut dyn FnMut(&dyn AsRef<[u8]>, Seen<'_>) -> Result<ControlFlow<()>>;

fn scan_step(spaces: &dyn Spaces, step: Step<Option<Version>>, at: Timestamp, page: &mut PageBuilder) -> Result<()> {
    let view = spaces.view();
    let covered = step.covered.clone();
    let reverse = page.reverse;
    step.merge(spaces, &*view, reverse, &mut |key, held, raw| {
        let is_held = held.is_some();
        let version = match (held.flatten(), raw) {
            (Some(version), _) => Some(version),
            (None, None) => None,
            (None, Some(raw)) => match codec::current_row(raw) {
                Some((written, value)) if !is_held && written <= at => {
                    return page.take(&key, Some(Seen::Entry { at: written, value, raw, spaces }));
                }
                _ => spaces::visible(spaces, &*view, key, Some(decode_current(spaces, raw)?), at)?,
            },
        };
        page.take(&key, version.filter(|version| version.value.is_some()).map(Seen::Held))
    })?;
    if !page.full {
        page.covered(&covered);
    }
    Ok(())
}

struct PageBuilder<'a> {
    take: Take<'a>,
    /// Bytes of keys count in the limits.
    counts_keys: bool,
    /// `take` may be called under the row table's lock.
    is_brief: bool,
    rows: usize,
    left: KeyRange,
    reverse: bool,
    limits: ScanLimits,
    bytes: usize,
    looks_left: usize,
    full: bool,
    /// Keys without rows that it has begun with, since these were noted.
    dead: usize,
    began: Key,
    /// Whether it has met a row, and the first one, if there are keys without rows to be noted.
    has_met: bool,
    first: Option<Key>,
}

impl<'a> PageBuilder<'a> {
    fn new(range: &KeyRange, reverse: bool, limits: ScanLimits, is_brief: bool, take: Take<'a>) -> PageBuilder<'a> {
        PageBuilder {
            take,
            counts_keys: false,
            is_brief,
            rows: 0,
            left: range.clone(),
            reverse,
            limits,
            bytes: 0,
            looks_left: limits.rows.saturating_mul(LOOK_PER_ROW).saturating_add(LOOK_EXTRA),
            full: false,
            dead: 0,
            began: range.start.clone(),
            has_met: false,
            first: None,
        }
    }
    /// Whether it has met so many keys without rows that it pays to note them.
    fn has_passed_dead(&self) -> bool {
        self.dead >= KEYS_MIN && !self.reverse
    }
    /// Notes the stretch without rows that it began with, unless a version newer than `at` may be
    /// in it.
    fn note_dead(&mut self, table: &Table, at: Timestamp) {
        let newest = table.newest_in_index(self.began.as_bytes());
        if !self.has_passed_dead() || newest > at {
            return;
        }
        let end = self.first.as_ref().unwrap_or(&self.left.start);
        if in_one_index(&KeyRange::new(self.began.clone(), end.clone())).is_some() {
            table.dead.note(&self.began, end, newest);
        }
        self.dead = 0;
    }
    /// Goes on behind a stretch without rows.
    fn pass_dead(&mut self, table: &Table, at: Timestamp) -> bool {
        if self.reverse {
            return false;
        }
        let Some(end) = table.dead.end_of(self.left.start.as_bytes(), at) else { return false };
        self.left.start = end.min(self.left.end.clone());
        true
    }
    fn rows_wanted(&self) -> usize {
        self.limits.rows.saturating_sub(self.rows)
    }
    fn is_done(&self) -> bool {
        self.full || self.left.is_empty()
    }
    /// Takes what comes next of the row table, under its lock, if that has the range whole and the
    /// next key in full.
    fn show(&mut self, table: &Table, at: Timestamp) -> Result<bool> {
        let left = self.left.clone();
        if !is_whole(table, &left, at) {
            return Ok(false);
        }
        let (low, high) = bounds(&left);
        let mut bytes = 0;
        for (shown, (key, row)) in table.range(low, high, self.reverse).enumerate() {
            let slot = row.visible(at);
            bytes += slot.and_then(|slot| slot.value.as_ref()).map_or(0, Bytes::len);
            let Some(slot) = slot.filter(|_| shown < STEP_ROWS_MAX && bytes <= SHOWN_BYTES_MAX) else {
                match self.reverse {
                    true => self.left.end = key.successor(),
                    false => self.left.start = key.clone(),
                }
                return Ok(shown > 0);
            };
            if self.take(key, slot.value.is_some().then_some(Seen::Slot(slot)))?.is_break() {
                return Ok(true);
            }
        }
        self.covered(&left);
        Ok(true)
    }
    /// Takes the next key, and its row, if it has one. Breaks when the page is full; what is left
    /// then begins after this key.
    fn take(&mut self, key: &dyn AsRef<[u8]>, row: Option<Seen<'_>>) -> Result<ControlFlow<()>> {
        self.looks_left -= 1;
        if row.is_none() && !self.has_met {
            self.dead += 1;
        }
        if let Some(row) = row {
            if !std::mem::replace(&mut self.has_met, true) && self.has_passed_dead() {
                self.first = Some(Key::new(key.as_ref()));
            }
            self.rows += 1;
            self.bytes += row.value().len() + if self.counts_keys { key.as_ref().len() } else { 0 };
            self.full = (self.take)(key, row)?.is_break();
        }
        self.full |= self.looks_left == 0 || self.rows >= self.limits.rows || self.bytes >= self.limits.bytes;
        if !self.full {
            return Ok(ControlFlow::Continue(()));
        }
        let key = Key::new(key.as_ref());
        match self.reverse {
            true => self.left.end = key,
            false => self.left.start = key.successor(),
        }
        Ok(ControlFlow::Break(()))
    }
    fn covered(&mut self, covered: &KeyRange) {
        if self.reverse {
            self.left.end = covered.start.clone();
        } else {
            self.left.start = covered.end.clone();
        }
    }
}

/// What [`GroupStore::changed_between`] asks.
#[derive(Clone, Copy)]
struct Change {
    columns: ColumnMask,
    after: Timestamp,
    through: Timestamp,
}

/// What the row table answers.
enum RowChange {
    At(Timestamp),
    No,
    /// Not by versions at or above this one; the spaces may have older ones that are still above
    /// `after`.
    Below(Timestamp),
}

impl Change {
    fn is_by(self, at: Timestamp, columns: ColumnMask) -> bool {
        at > self.after && at <= self.through && columns.intersects(self.columns)
    }
    fn of_row(self, row: &Row) -> RowChange {
        match row.slots().find(|slot| self.is_by(slot.at, slot.columns)) {
            Some(slot) => RowChange::At(slot.at),
            None if row.oldest().at <= self.after => RowChange::No,
            None => RowChange::Below(row.oldest().at),
        }
    }
    /// By a version in the spaces below `below`, given the newest one there.
    fn of_spaces(
        self,
        spaces: &dyn Spaces,
        view: &dyn View,
        key: &[u8],
        newest: Option<Version>,
        below: Timestamp,
    ) -> Result<Option<Timestamp>> {
        let versions = spaces::between(spaces, view, key, newest, self.after, below)?;
        Ok(versions.iter().find(|v| self.is_by(v.at, v.columns)).map(|v| v.at))
    }
}

fn changed_step(spaces: &dyn Spaces, step: Step<RowChange>, asked: Change) -> Result<Option<(Key, Timestamp)>> {
    let view = spaces.view();
    let mut found = None;
    step.merge(spaces, &*view, false, &mut |key, row, raw| {
        let changed = match (row, raw) {
            (Some(RowChange::At(at)), _) => Some(at),
            (Some(RowChange::No), _) | (Some(RowChange::Below(_)), None) | (None, None) => None,
            (row, Some(raw)) => {
                // Most entries end here, with eight bytes looked at.
                if codec::current_at(raw).is_some_and(|at| at <= asked.after) {
                    return Ok(ControlFlow::Continue(()));
                }
                let below = match row {
                    Some(RowChange::Below(at)) => at,
                    _ => Timestamp::MAX,
                };
                asked.of_spaces(spaces, &*view, key, Some(decode_current(spaces, raw)?), below)?
            }
        };
        found = changed.map(|at| (Key::new(key), at));
        Ok(if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(found)
}
