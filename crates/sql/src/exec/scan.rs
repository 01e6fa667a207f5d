//! Scans: from key parts to keys and ranges to rows.
//!
//! A table may have its rows in several groups. Single keys are looked for in the near one first
//! ([`get_anywhere`]); ranges are read there first too, and then in all the others together, a page
//! of each at a time. Where the order of the index is wanted, all groups are read side by side and
//! their entries merged: within an index their keys compare. Whoever locks all of the rows reads no
//! group first either.

use super::entries::{column_of, decode_key, split_entry};
use super::groups::{self, Groups, get_anywhere};
use super::op::{Frame, Op, Row, State, all_true, eval_all, eval_scalar, filter};
use super::sieve::{is_sieved, sieved_page, sifted};
use super::{BATCH, Runtime};
use crate::env::{Locking, OnLocked, Savepoint, Transaction};
use crate::plan::physical::{KeyPart, KeyRangeParts, Scalar, Scan};
use crate::types::keys::encode_key_column;
use crate::types::{ArrayValue, Datum, RowView, Type};
use bytes::Bytes;
use meridian_base::key::encode;
use meridian_base::{Error, GroupId, Key, KeyRange, Result};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Where a scan is.
pub(crate) struct ScanState {
    work: Work,
    page: usize,
}

pub(super) enum Work {
    /// Keys that have one row at most, in the order of the rows.
    Points { groups: Groups, keys: VecDeque<Key> },
    /// One for each group; the first `near` of them are read before the others.
    Ranges { cursors: Vec<Cursor>, near: usize },
}

/// A scan of one group.
pub(super) struct Cursor {
    pub(super) group: GroupId,
    /// What is left to read.
    pub(super) ranges: VecDeque<KeyRange>,
    /// Entries read and not yet handed on, where several groups are merged.
    ahead: VecDeque<(Key, Bytes)>,
}

/// An entry of an index and where it was.
pub(super) type Found = (GroupId, Key, Bytes);

/// How often a page is read again because others changed its rows while they were being locked.
pub(super) const RELOCKS_MAX: u32 = 100;
/// How many keys an `IN` list may multiply to.
const KEYS_MAX: usize = 100_000;

pub(crate) async fn next<T: Transaction>(
    op: &mut Op,
    s: &Scan,
    rt: &mut Runtime<'_, T>,
    want: usize,
) -> Result<Option<Vec<Row>>> {
    if matches!(op.state, State::New) {
        let work = work(s, &op.frame, rt, want).await?;
        op.state = State::Scan(ScanState { work, page: want.clamp(1, BATCH) });
    }
    let State::Scan(state) = &mut op.state else { return Ok(None) };
    loop {
        let rows = match &mut state.work {
            Work::Points { keys, .. } if keys.is_empty() => return Ok(None),
            Work::Points { groups, keys } => {
                let page: Vec<Key> = keys.drain(..keys.len().min(state.page)).collect();
                let since = rt.txn.savepoint();
                let rows = points(s, groups, &page, rt).await?;
                match s.index {
                    0 => {
                        let places = page.into_iter().flat_map(|key| groups.iter().map(move |group| (group, key.clone())));
                        let each = groups.iter().count().max(1);
                        matching(s, places, each, rows, since, &op.frame, rt).await?
                    }
                    _ => filter(rows.into_iter().flatten().collect(), &s.filter, &op.frame, rt).await?,
                }
            }
            Work::Ranges { cursors, .. } if locks_matching(s, cursors, rt) => {
                match locked_page(s, &mut cursors[0], state.page, want, &op.frame, rt).await? {
                    Some(rows) => rows,
                    None => return Ok(None),
                }
            }
            Work::Ranges { cursors, .. } if cursors.len() == 1 && is_sieved(s) => {
                match sieved_page(s, &mut cursors[0], state.page, &op.frame, rt).await? {
                    Some(rows) => rows,
                    None => return Ok(None),
                }
            }
            Work::Ranges { cursors, near } => {
                let since = rt.txn.savepoint();
                let found = match s.is_merged {
                    true => merged_page(s, cursors, state.page, rt).await?,
                    false => page(s, cursors, *near, state.page, rt).await?,
                };
                let Some(found) = found else { return Ok(None) };
                if is_sieved(s) {
                    let values: Vec<Bytes> = found.into_iter().map(|(_, _, value)| value).collect();
                    sifted(s, &values, &op.frame, rt).await?
                } else {
                    let places = if is_choosy(s) { primary_keys(s, &found)? } else { Vec::new() };
                    let rows = entries(s, found, s.locking, rt).await?;
                    matching(s, places.into_iter(), 1, rows, since, &op.frame, rt).await?
                }
            }
        };
        // What was wanted was not enough (a filter dropped it): ask for more at a time.
        state.page = (state.page * 2).min(4 * BATCH);
        if !rows.is_empty() {
            return Ok(Some(rows));
        }
        rt.pause().await?;
    }
}

/// Whether rows may be locked that turn out not to match.
fn is_choosy(s: &Scan) -> bool {
    s.locking != Locking::None && !s.filter.is_empty()
}

/// Whether rows can be looked at first, and locked if they match: in one group, where its primary
/// is asked, by a condition that says the same twice. With `SKIP LOCKED` nothing may be read of
/// rows that are left out: they are locked, and let go if they do not match.
fn locks_matching<T: Transaction>(s: &Scan, cursors: &[Cursor], rt: &Runtime<'_, T>) -> bool {
    let [cursor] = cursors else { return false };
    is_choosy(s)
        && s.locking.if_busy() != Some(OnLocked::Skip)
        && cursor.ahead.is_empty()
        && rt.txn.takes_entries(cursor.group, s.locking)
        && !s.filter.iter().any(|f| f.expr.is_volatile())
}

/// The next matching rows of a group, locked. A page is read without locks; if rows match, they are
/// locked, and the page is read again: what was read before a wait would be out of date after it.
async fn locked_page<T: Transaction>(
    s: &Scan,
    cursor: &mut Cursor,
    page: usize,
    want: usize,
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Option<Vec<Row>>> {
    let Some(range) = cursor.ranges.pop_front() else { return Ok(None) };
    let group = cursor.group;
    rt.ctx.stay_home(std::iter::once(group), s.locking)?;
    let since = rt.txn.savepoint();
    let reads = rt.txn.reads_in(group);
    let mut held = BTreeSet::new();
    for _ in 0..RELOCKS_MAX {
        let scan = crate::env::Scan {
            range: range.clone(),
            columns: s.mask,
            reverse: s.reverse,
            limit: Some(page),
            locking: Locking::None,
        };
        let crate::env::ScanRows { rows: found, mut rest } = rt.txn.scan(group, scan).await?;
        let found: Vec<Found> = found.into_iter().map(|(key, value)| (group, key, value)).collect();
        let places: Vec<Key> = found.iter().map(|(_, key, _)| key.clone()).collect();
        let keys = primary_keys(s, &found)?;
        let rows = entries(s, found, Locking::None, rt).await?;
        let (mut matches, mut out) = (BTreeSet::new(), Vec::new());
        for ((place, (_, key)), row) in places.into_iter().zip(keys).zip(rows) {
            let Some(row) = row else { continue };
            if !all_true(&s.filter, &row, frame, rt).await? {
                continue;
            }
            matches.insert(key);
            out.push(row);
            if out.len() >= want.max(1) {
                // The rows behind it are not wanted yet.
                rest = Some(match s.reverse {
                    true => KeyRange::new(range.start.clone(), place),
                    false => KeyRange::new(place.successor(), range.end.clone()),
                });
                break;
            }
        }
        let missing: Vec<Key> = matches.difference(&held).cloned().collect();
        if missing.is_empty() {
            let others: Vec<Key> = held.difference(&matches).cloned().collect();
            rt.txn.leave_queues_of(group, &others, since);
            if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
                cursor.ranges.push_front(rest);
            }
            return Ok(Some(out));
        }
        rt.txn.forget_reads(group, reads..usize::MAX);
        rt.txn.get_many(group, &missing, s.mask, s.locking).await?;
        rt.txn.forget_reads(group, reads..usize::MAX);
        held.extend(missing);
        rt.pause().await?;
    }
    Err(Error::retry("could not serialize access: rows kept changing while they were being locked"))
}

/// The groups and primary keys of the rows of index entries.
fn primary_keys(s: &Scan, found: &[Found]) -> Result<Vec<(GroupId, Key)>> {
    let primary = |(group, key, value): &Found| match s.index {
        0 => Ok((*group, key.clone())),
        _ => Ok((*group, split_entry(value)?.0)),
    };
    found.iter().map(primary).collect()
}

/// The rows that match; the others are let go if they were locked for this. `places`: where they
/// may be, so many for `each` row.
async fn matching<T: Transaction>(
    s: &Scan,
    places: impl Iterator<Item = (GroupId, Key)>,
    each: usize,
    rows: Vec<Option<Row>>,
    since: Savepoint,
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Vec<Row>> {
    if !is_choosy(s) {
        return filter(rows.into_iter().flatten().collect(), &s.filter, frame, rt).await;
    }
    let mut out = Vec::with_capacity(rows.len());
    let mut others: BTreeMap<GroupId, Vec<Key>> = BTreeMap::new();
    let mut places = places;
    for row in rows {
        let at: Vec<(GroupId, Key)> = places.by_ref().take(each).collect();
        match row {
            Some(row) if all_true(&s.filter, &row, frame, rt).await? => out.push(row),
            _ => at.into_iter().for_each(|(group, key)| others.entry(group).or_default().push(key)),
        }
    }
    others.into_iter().for_each(|(group, keys)| rt.txn.leave_queues_of(group, &keys, since));
    Ok(out)
}

/// A page of the near groups while they have any, then of all the others at once. `None` at the
/// end.
pub(super) async fn page<T: Transaction>(
    s: &Scan,
    cursors: &mut [Cursor],
    near: usize,
    limit: usize,
    rt: &mut Runtime<'_, T>,
) -> Result<Option<Vec<Found>>> {
    let open = |c: &Cursor| !c.ranges.is_empty();
    let some = match cursors[..near].iter().any(open) {
        true => &mut cursors[..near],
        false => &mut cursors[near..],
    };
    if !some.iter().any(open) {
        return Ok(None);
    }
    read(s, some, limit, rt).await?;
    if let [one] = some {
        let group = one.group;
        return Ok(Some(std::mem::take(&mut one.ahead).into_iter().map(|(k, v)| (group, k, v)).collect()));
    }
    let take = |c: &mut Cursor| std::mem::take(&mut c.ahead).into_iter().map(|(k, v)| (c.group, k, v)).collect::<Vec<_>>();
    Ok(Some(some.iter_mut().flat_map(take).collect()))
}

/// The next entries of all groups in the order of their keys.
async fn merged_page<T: Transaction>(
    s: &Scan,
    cursors: &mut [Cursor],
    limit: usize,
    rt: &mut Runtime<'_, T>,
) -> Result<Option<Vec<Found>>> {
    let mut out = Vec::new();
    while out.len() < limit {
        while cursors.iter().any(|c| c.ahead.is_empty() && !c.ranges.is_empty()) {
            if !out.is_empty() {
                return Ok(Some(out));
            }
            read(s, cursors, limit, rt).await?;
        }
        let heads = cursors.iter().enumerate().filter_map(|(at, c)| c.ahead.front().map(|(key, _)| (key, at)));
        let first = if s.reverse { heads.max().map(|h| h.1) } else { heads.min().map(|h| h.1) };
        let Some(at) = first else { break };
        let group = cursors[at].group;
        out.extend(cursors[at].ahead.pop_front().map(|(k, v)| (group, k, v)));
    }
    Ok((!out.is_empty()).then_some(out))
}

/// Reads a page ahead in every group that has something left to read and nothing ahead: one round
/// trip.
async fn read<T: Transaction>(s: &Scan, cursors: &mut [Cursor], limit: usize, rt: &mut Runtime<'_, T>) -> Result<()> {
    let locking = if s.index == 0 { s.locking } else { Locking::None };
    let (mut scans, mut of) = (Vec::with_capacity(cursors.len()), Vec::with_capacity(cursors.len()));
    for (at, c) in cursors.iter_mut().enumerate().filter(|(_, c)| c.ahead.is_empty()) {
        let Some(range) = c.ranges.pop_front() else { continue };
        let scan = crate::env::Scan { range, columns: s.mask, reverse: s.reverse, limit: Some(limit), locking };
        scans.push((c.group, scan));
        of.push(at);
    }
    rt.ctx.stay_home(scans.iter().map(|(group, _)| *group), s.locking)?;
    let pages = match scans.len() {
        1 => {
            let (group, scan) = scans.remove(0);
            vec![rt.txn.scan(group, scan).await?]
        }
        _ => rt.txn.scan_each(scans).await?,
    };
    for (at, page) in of.into_iter().zip(pages) {
        if let Some(rest) = page.rest {
            cursors[at].ranges.push_front(rest);
        }
        // Nothing was ahead here.
        cursors[at].ahead = page.rows.into();
    }
    Ok(())
}

/// Rows of point keys of the scan's index, in order; filters are not applied.
pub(crate) async fn points<T: Transaction>(
    s: &Scan,
    groups: &Groups,
    keys: &[Key],
    rt: &mut Runtime<'_, T>,
) -> Result<Vec<Option<Row>>> {
    let locking = if s.index == 0 { s.locking } else { Locking::None };
    let found = get_anywhere(rt.txn, rt.ctx, groups, keys, s.mask, locking).await?;
    let mut out: Vec<Option<Row>> = (0..found.len()).map(|_| None).collect();
    let (mut at, mut hits) = (Vec::new(), Vec::new());
    for (i, found) in found.into_iter().enumerate() {
        if let Some((group, value)) = found {
            at.push(i);
            hits.push((group, keys[i].clone(), value));
        }
    }
    for (i, row) in at.into_iter().zip(entries(s, hits, s.locking, rt).await?) {
        out[i] = row;
    }
    Ok(out)
}

/// Rows of index entries, in their order.
async fn entries<T: Transaction>(
    s: &Scan,
    found: Vec<Found>,
    locking: Locking,
    rt: &mut Runtime<'_, T>,
) -> Result<Vec<Option<Row>>> {
    if s.index == 0 {
        return found.into_iter().map(|(_, _, v)| primary_row(s, v).map(Some)).collect();
    }
    if s.is_covering {
        return found.into_iter().map(|(group, k, v)| covered_row(s, group, &k, &v).map(Some)).collect();
    }
    let mut rows: Vec<Option<Row>> = (0..found.len()).map(|_| None).collect();
    // A row is in the group of its entries.
    let mut wanted: BTreeMap<GroupId, (Vec<usize>, Vec<Key>)> = BTreeMap::new();
    for (i, (group, _, value)) in found.iter().enumerate() {
        let (at, keys) = wanted.entry(*group).or_default();
        at.push(i);
        keys.push(split_entry(value)?.0);
    }
    let mut places = Vec::with_capacity(wanted.len());
    let mut reads = Vec::with_capacity(wanted.len());
    for (group, (at, keys)) in wanted {
        places.push(at);
        reads.push((group, keys));
    }
    let values = match reads.as_slice() {
        [] => return Ok(rows),
        [(group, keys)] => match keys.as_slice() {
            [key] => vec![vec![rt.txn.get(*group, key, s.mask, locking).await?]],
            keys => vec![rt.txn.get_many(*group, keys, s.mask, locking).await?],
        },
        _ => rt.txn.get_each(reads, s.mask, locking).await?,
    };
    for (places, values) in places.into_iter().zip(values) {
        for (at, value) in places.into_iter().zip(values) {
            rows[at] = value.map(|v| primary_row(s, v)).transpose()?;
        }
    }
    Ok(rows)
}

fn primary_row(s: &Scan, value: Bytes) -> Result<Row> {
    if s.columns.is_empty() {
        return Ok(Vec::new());
    }
    let view = RowView::new(value)?;
    let mut row: Row = s.columns.iter().map(|o| column_of(&view, *o as usize, &s.types, &s.missing)).collect::<Result<_>>()?;
    // As `TablePlan::decode_row`.
    for e in &s.table.escrow {
        s.columns.iter().zip(&mut row).filter(|(o, _)| **o == e.ordinal).for_each(|(_, number)| *number = Datum::Null);
    }
    Ok(row)
}

/// From the entry alone: its key, its stored columns, the primary key in it.
fn covered_row(s: &Scan, group: GroupId, key: &Key, value: &Bytes) -> Result<Row> {
    let index = &s.table.indexes[s.index];
    let in_key = decode_key(key.as_bytes(), index, &s.types)?;
    let (primary, stored) = split_entry(value)?;
    let in_primary = decode_key(primary.as_bytes(), s.table.primary(), &s.types)?;
    let stored = if stored.is_empty() { None } else { Some(RowView::new(stored)?) };
    let column = |o: &u32| {
        if Some(*o) == s.table.region_column() {
            let region = s.table.region_of(group).ok_or_else(|| Error::internal("an entry is in a group of another table"))?;
            return Ok(Datum::text(region));
        }
        if let Some(at) = index.columns.iter().position(|c| c.ordinal == *o)
            && crate::types::keys::keeps_looks(&s.types[*o as usize])
        {
            return Ok(in_key[at].clone());
        }
        if let (Some(at), Some(view)) = (index.stored.iter().position(|x| x == o), &stored) {
            return view.datum(at, &s.types[*o as usize]);
        }
        let at = s.table.primary().columns.iter().position(|c| c.ordinal == *o);
        at.map(|at| in_primary[at].clone()).ok_or_else(|| Error::internal("an index does not cover what was planned"))
    };
    s.columns.iter().map(column).collect()
}

pub(super) async fn work<T: Transaction>(s: &Scan, frame: &Frame, rt: &mut Runtime<'_, T>, want: usize) -> Result<Work> {
    let mut groups = groups::of_scan(s, frame, rt).await?;
    let index = &s.table.indexes[s.index];
    let mut start = Vec::with_capacity(24);
    encode::index(&mut start, index.id);
    let mut prefixes = vec![start];
    for (part, column) in s.prefix.iter().zip(&index.columns) {
        let ty = &s.types[column.ordinal as usize];
        let values = part_values(part, frame, rt).await?;
        if prefixes.len().saturating_mul(values.len()) > KEYS_MAX {
            return Err(Error::sql("54000", "an IN list is too long").hint("Join with VALUES or unnest instead."));
        }
        let mut next = Vec::with_capacity(prefixes.len() * values.len());
        for prefix in &prefixes {
            for v in &values {
                let mut key = prefix.clone();
                encode_key_column(&mut key, v, ty, column.descending, column.nulls_first)?;
                next.push(key);
            }
        }
        prefixes = next;
    }
    let mut ranges = Vec::new();
    if s.places.is_empty() {
        let bounds = match &s.range {
            Some(r) => match range_values(r, frame, rt).await? {
                Some(b) => Some(b),
                None => return Ok(Work::Points { groups, keys: VecDeque::new() }),
            },
            None => None,
        };
        if !s.is_point {
            for prefix in &prefixes {
                ranges.push(range_in(s, prefix, s.prefix.len(), bounds.as_ref())?);
            }
        }
    } else if let Some(start) = prefixes.pop() {
        for place in &s.places {
            let values = eval_all(&place.values, &[], frame, rt).await?;
            // NULL equals nothing.
            if values.iter().any(Datum::is_null) {
                continue;
            }
            let bounds = match &place.range {
                Some(r) => match range_values(r, frame, rt).await? {
                    Some(b) => Some(b),
                    None => continue,
                },
                None => None,
            };
            let mut key = start.clone();
            for (v, column) in values.iter().zip(&index.columns) {
                let ty = &s.types[column.ordinal as usize];
                encode_key_column(&mut key, v, ty, column.descending, column.nulls_first)?;
            }
            match s.is_point {
                true => prefixes.push(key),
                false => ranges.push(range_in(s, &key, values.len(), bounds.as_ref())?),
            }
        }
    }
    if s.is_point {
        prefixes.sort_unstable();
        prefixes.dedup();
        let mut keys: VecDeque<Key> = prefixes.into_iter().map(|k| Key::new(&k)).collect();
        if s.reverse {
            keys.make_contiguous().reverse();
        }
        return Ok(Work::Points { groups, keys });
    }
    if s.locking != Locking::None && want >= BATCH {
        // All rows are wanted, and all statements lock them in one order of the groups.
        groups = groups.together();
    }
    let mut ranges: VecDeque<KeyRange> = in_order(ranges).into();
    if s.reverse {
        ranges.make_contiguous().reverse();
    }
    let near = usize::from(groups.near.is_some());
    let cursors = groups.iter().map(|group| Cursor { group, ranges: ranges.clone(), ahead: VecDeque::new() }).collect();
    Ok(Work::Ranges { cursors, near })
}

/// What begins with the values of so many columns, within bounds of the next one.
fn range_in(s: &Scan, prefix: &[u8], columns: usize, bounds: Option<&Bounds>) -> Result<KeyRange> {
    let Some(bounds) = bounds else { return Ok(KeyRange::prefix(prefix)) };
    let column = &s.table.indexes[s.index].columns[columns];
    bounds.within(prefix, &s.types[column.ordinal as usize], column.descending, column.nulls_first)
}

/// Ranges in the order of their keys; those that meet are one, so that no row is read twice.
fn in_order(mut ranges: Vec<KeyRange>) -> Vec<KeyRange> {
    ranges.retain(|r| !r.is_empty());
    ranges.sort_unstable_by(|a, b| a.start.cmp(&b.start));
    let mut out: Vec<KeyRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match out.last_mut() {
            Some(last) if range.start < last.end => last.end = range.end.max(last.end.clone()),
            _ => out.push(range),
        }
    }
    out
}

/// The values of a part of a key; `NULL` equals nothing and is left out.
pub(crate) async fn part_values<T: Transaction>(part: &KeyPart, frame: &Frame, rt: &mut Runtime<'_, T>) -> Result<Vec<Datum>> {
    let mut values = match part {
        KeyPart::Null => return Ok(vec![Datum::Null]),
        KeyPart::Eq(e) => vec![eval_scalar(e, &[], frame, rt).await?],
        KeyPart::In(list) => {
            let mut v = Vec::with_capacity(list.len());
            for e in list {
                v.push(eval_scalar(e, &[], frame, rt).await?);
            }
            v
        }
        KeyPart::Any(e) => match eval_scalar(e, &[], frame, rt).await? {
            Datum::Array(a) => {
                let ArrayValue { items, .. } = &*a;
                items.clone()
            }
            _ => Vec::new(),
        },
    };
    values.retain(|v| !v.is_null());
    Ok(values)
}

/// Key of the point an all-equal, one-valued path means; `None` if a part is `NULL`.
pub(crate) async fn point_key<T: Transaction>(
    s: &Scan,
    row: &[Datum],
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Option<Key>> {
    let index = &s.table.indexes[s.index];
    let mut key = Vec::with_capacity(32);
    encode::index(&mut key, index.id);
    for (part, column) in s.prefix.iter().zip(&index.columns) {
        let KeyPart::Eq(e) = part else { return Err(Error::internal("a point has one value per column")) };
        let v = eval_scalar(e, row, frame, rt).await?;
        if v.is_null() {
            return Ok(None);
        }
        encode_key_column(&mut key, &v, &s.types[column.ordinal as usize], column.descending, column.nulls_first)?;
    }
    Ok(Some(Key::new(&key)))
}

struct Bounds {
    lower: Option<(Datum, bool)>,
    upper: Option<(Datum, bool)>,
    /// What every value starts with.
    starts: Option<String>,
}

/// `None`: a bound is `NULL`, nothing matches.
async fn range_values<T: Transaction>(r: &KeyRangeParts, frame: &Frame, rt: &mut Runtime<'_, T>) -> Result<Option<Bounds>> {
    let mut bounds = Bounds { lower: None, upper: None, starts: None };
    for (from, to) in [(&r.lower, &mut bounds.lower), (&r.upper, &mut bounds.upper)] {
        if let Some((e, included)) = from {
            let v = eval_scalar(e, &[], frame, rt).await?;
            if v.is_null() {
                return Ok(None);
            }
            *to = Some((v, *included));
        }
    }
    if let Some(e) = &r.like {
        match like_value(e, frame, rt).await? {
            Some(p) => bounds.starts = Some(p),
            None => return Ok(None),
        }
    }
    Ok(Some(bounds))
}

async fn like_value<T: Transaction>(e: &Scalar, frame: &Frame, rt: &mut Runtime<'_, T>) -> Result<Option<String>> {
    match eval_scalar(e, &[], frame, rt).await? {
        Datum::Text(t) => Ok(Some(literal_prefix(t.as_str()))),
        _ => Ok(None),
    }
}

/// What a `LIKE` pattern starts with, before its first wildcard.
fn literal_prefix(pattern: &str) -> String {
    let mut out = String::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '%' | '_' => break,
            '\\' => match chars.next() {
                Some(c) => out.push(c),
                None => break,
            },
            c => out.push(c),
        }
    }
    out
}

impl Bounds {
    fn within(&self, prefix: &[u8], ty: &Type, descending: bool, nulls_first: bool) -> Result<KeyRange> {
        let whole = KeyRange::prefix(prefix);
        let encoded = |v: &Datum| {
            let mut key = prefix.to_vec();
            encode_key_column(&mut key, v, ty, descending, nulls_first).map(|()| Key::new(&key))
        };
        if let Some(starts) = &self.starts {
            if starts.is_empty() {
                return Ok(whole);
            }
            // The encoding of a text ends with two bytes that a longer text does not have.
            let key = encoded(&Datum::Text(starts.as_str().into()))?;
            let open = &key.as_bytes()[..key.as_bytes().len() - 2];
            return Ok(KeyRange::prefix(open));
        }
        let after = |k: &Key| k.prefix_end().unwrap_or_else(|| whole.end.clone());
        let (mut start, mut end) = (whole.start.clone(), whole.end.clone());
        // A descending column has its largest values first.
        let (first, last) = if descending { (&self.upper, &self.lower) } else { (&self.lower, &self.upper) };
        if let Some((v, included)) = first {
            let key = encoded(v)?;
            start = if *included { key } else { after(&key) };
        }
        if let Some((v, included)) = last {
            let key = encoded(v)?;
            end = if *included { after(&key) } else { key };
        }
        // A side without a bound stops before the NULLs, which no comparison lets in.
        let null = encoded(&Datum::Null)?;
        if first.is_none() && nulls_first {
            start = after(&null);
        }
        if last.is_none() && !nulls_first {
            end = null;
        }
        Ok(KeyRange::new(start, end))
    }
}
