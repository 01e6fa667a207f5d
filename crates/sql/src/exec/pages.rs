//! Where a scan reads, and its next page of entries.
//!
//! Ranges of several groups are read in the near group first and then in all the others together, a
//! page of each at a time. Where the order of the index is wanted, all groups are read side by side
//! and their entries merged: within an index their keys compare. A scan that locks all of its rows
//! reads no group first either.

use super::eval::{Frame, eval_all};
use super::groups::{self, Groups};
use super::key_parts::{in_order, part_values, range_in, range_values};
use super::{BATCH, Runtime};
use crate::env::{Locking, Transaction};
use crate::plan::node::Scan;
use crate::types::Datum;
use crate::types::keys::encode_key_column;
use bytes::Bytes;
use meridian_base::key::encode;
use meridian_base::{Error, GroupId, Key, KeyRange, Result};
use std::collections::VecDeque;

/// How many keys an `IN` list may multiply to.
const KEYS_MAX: usize = 100_000;

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
    pub(super) ahead: VecDeque<(Key, Bytes)>,
}

/// An entry of an index and where it was.
pub(super) type Found = (GroupId, Key, Bytes);

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
pub(super) async fn merged_page<T: Transaction>(
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
