//! Scans: from keys and ranges ([`pages`](super::pages)) to rows.
//!
//! A table may have its rows in several groups. Single keys are looked for in the near one first
//! ([`get_anywhere`]).

use super::batch::{Ahead, Partners};
use super::entries::{column_of, decode_key, split_entry};
use super::eval::{Frame, Row, all_true, filter};
use super::groups::{Groups, get_anywhere};
use super::pages::{Cursor, Found, Work, merged_page, page, work};
use super::sieve::{is_sieved, sieved_page, sifted};
use super::skip::Skip;
use super::{BATCH, Runtime};
use crate::env::{Locking, OnLocked, Savepoint, Transaction};
use crate::plan::node::{Node, Scan};
use crate::types::{Datum, RowView};
use bytes::Bytes;
use meridian_base::{Error, GroupId, Key, KeyRange, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Where a scan is.
pub(crate) struct ScanState {
    work: Work,
    page: usize,
    /// Several threads read it.
    ahead: Option<Box<Ahead>>,
}

/// How often a page is read again because others changed its rows while they were being locked.
pub(super) const RELOCKS_MAX: u32 = 100;
impl ScanState {
    /// At the begin of a scan, of which about `want` rows will be used.
    pub(super) async fn new<T: Transaction>(
        (node, s): (&Arc<Node>, &Arc<Scan>),
        partners: &[Arc<Partners>],
        frame: &Frame,
        rt: &mut Runtime<'_, T>,
        want: usize,
    ) -> Result<ScanState> {
        let mut work = work(s, frame, rt, want).await?;
        let ahead = match &mut work {
            Work::Ranges { cursors, .. } if want >= BATCH && is_sieved(s) => Ahead::of(s, cursors, partners, frame, rt).await?,
            _ => None,
        };
        ahead.iter().filter_map(Ahead::width).for_each(|pieces| rt.note_pieces(node, pieces));
        Ok(ScanState { work, page: want.clamp(1, BATCH), ahead: ahead.map(Box::new) })
    }

    /// See [`Op::next`](super::op::Op::next).
    pub(super) async fn next<T: Transaction>(
        &mut self,
        s: &Scan,
        skip: &Skip,
        frame: &Frame,
        rt: &mut Runtime<'_, T>,
        want: usize,
    ) -> Result<Option<Vec<Row>>> {
        loop {
            let rows = match &mut self.work {
                Work::Ranges { cursors, .. } if let Some(ahead) = &mut self.ahead => match ahead.rows(&mut cursors[0], rt).await?
                {
                    Some((mut rows, is_filtered)) => {
                        if !is_filtered {
                            rows = filter(rows, &s.filter, frame, rt).await?;
                        }
                        rows.drain(..skip.take(rows.len()));
                        rows
                    }
                    None => {
                        self.ahead = None;
                        continue;
                    }
                },
                Work::Points { keys, .. } if keys.is_empty() => return Ok(None),
                Work::Points { groups, keys } => {
                    let page: Vec<Key> = keys.drain(..keys.len().min(self.page)).collect();
                    let since = rt.txn.savepoint();
                    let rows = points(s, groups, &page, rt).await?;
                    match s.index {
                        0 => {
                            let places = page.into_iter().flat_map(|key| groups.iter().map(move |group| (group, key.clone())));
                            let each = groups.iter().count().max(1);
                            matching(s, places, each, rows, since, frame, rt).await?
                        }
                        _ => filter(rows.into_iter().flatten().collect(), &s.filter, frame, rt).await?,
                    }
                }
                Work::Ranges { cursors, .. } if locks_matching(s, cursors, rt) => {
                    match locked_page(s, &mut cursors[0], self.page, want, frame, rt).await? {
                        Some(rows) => rows,
                        None => return Ok(None),
                    }
                }
                Work::Ranges { cursors, .. } if cursors.len() == 1 && is_sieved(s) => {
                    match sieved_page(s, &mut cursors[0], self.page, skip, frame, rt).await? {
                        Some(rows) => rows,
                        None => return Ok(None),
                    }
                }
                Work::Ranges { cursors, near } => {
                    let since = rt.txn.savepoint();
                    let found = match s.is_merged {
                        true => merged_page(s, cursors, self.page, rt).await?,
                        false => page(s, cursors, *near, self.page, rt).await?,
                    };
                    let Some(mut found) = found else { return Ok(None) };
                    if s.filter.is_empty() && s.locking == Locking::None {
                        found.drain(..skip.take(found.len()));
                    }
                    if is_sieved(s) {
                        let values: Vec<Bytes> = found.into_iter().map(|(_, _, value)| value).collect();
                        sifted(s, &values, skip, frame, rt).await?
                    } else {
                        let places = if is_choosy(s) { primary_keys(s, &found)? } else { Vec::new() };
                        let rows = entries(s, found, s.locking, rt).await?;
                        matching(s, places.into_iter(), 1, rows, since, frame, rt).await?
                    }
                }
            };
            // What was wanted was not enough (a filter dropped it): ask for more at a time.
            self.page = (self.page * 2).min(4 * BATCH);
            if !rows.is_empty() {
                return Ok(Some(rows));
            }
            rt.pause().await?;
        }
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
/// locked. If one of them is another one by then, the page is read again: what was read before a
/// wait would be out of date after it.
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
        let scanned = rt.txn.reads_in(group);
        let found: Vec<Found> = found.into_iter().map(|(key, value)| (group, key, value)).collect();
        // Of the primary index: what is compared with the row once it is locked.
        let places: Vec<(Key, Bytes)> = found.iter().map(|(_, key, value)| (key.clone(), value.clone())).collect();
        let keys = primary_keys(s, &found)?;
        let rows = entries(s, found, Locking::None, rt).await?;
        let (mut matches, mut values, mut out) = (Vec::new(), Vec::new(), Vec::new());
        for (((place, value), (_, key)), row) in places.into_iter().zip(keys).zip(rows) {
            let Some(row) = row else { continue };
            if !all_true(&s.filter, &row, frame, rt).await? {
                continue;
            }
            matches.push(key);
            values.push(Some(value));
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
        let missing: Vec<Key> = matches.iter().filter(|key| !held.contains(*key)).cloned().collect();
        let mut is_locked = missing.is_empty();
        if !is_locked {
            let now = rt.txn.get_many(group, &missing, s.mask, s.locking).await?;
            is_locked = s.index == 0 && held.is_empty() && now == values;
            // What was read of the page still holds, and says as much as these reads.
            rt.txn.forget_reads(group, if is_locked { scanned } else { reads }..usize::MAX);
        }
        if is_locked {
            if !held.is_empty() {
                let matches: BTreeSet<Key> = matches.into_iter().collect();
                let others: Vec<Key> = held.difference(&matches).cloned().collect();
                rt.txn.leave_queues_of(group, &others, since);
            }
            if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
                cursor.ranges.push_front(rest);
            }
            return Ok(Some(out));
        }
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
