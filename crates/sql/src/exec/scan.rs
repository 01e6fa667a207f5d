//! Scans: from key parts to keys and ranges to rows.

use super::entries::{column_of, decode_key, split_entry};
use super::op::{Frame, Op, Row, State, eval_scalar, filter};
use super::{BATCH, Runtime};
use crate::env::{Locking, Transaction};
use crate::plan::physical::{KeyPart, KeyRangeParts, Scalar, Scan};
use crate::types::keys::encode_key_column;
use crate::types::{ArrayValue, Datum, RowView, Type};
use bytes::Bytes;
use meridian_base::key::encode;
use meridian_base::{Error, Key, KeyRange, Result};
use std::collections::VecDeque;

/// Where a scan is.
pub(crate) struct ScanState {
    spans: VecDeque<Span>,
    page: usize,
}

enum Span {
    Point(Key),
    Range(KeyRange),
}

/// How many keys an `IN` list may multiply to.
const KEYS_MAX: usize = 100_000;

pub(crate) async fn next<T: Transaction>(
    op: &mut Op,
    s: &Scan,
    rt: &mut Runtime<'_, T>,
    want: usize,
) -> Result<Option<Vec<Row>>> {
    if matches!(op.state, State::New) {
        let spans = spans(s, &op.frame, rt).await?;
        op.state = State::Scan(ScanState { spans, page: want.clamp(1, BATCH) });
    }
    let State::Scan(state) = &mut op.state else { return Ok(None) };
    while let Some(span) = state.spans.pop_front() {
        let rows = match span {
            Span::Point(first) => {
                let mut keys = vec![first];
                while keys.len() < state.page && matches!(state.spans.front(), Some(Span::Point(_))) {
                    if let Some(Span::Point(k)) = state.spans.pop_front() {
                        keys.push(k);
                    }
                }
                let found = points(s, &keys, rt).await?;
                found.into_iter().flatten().collect()
            }
            Span::Range(range) => {
                let limit = Some(state.page);
                let locking = if s.index == 0 { s.locking } else { Locking::None };
                let scan = crate::env::Scan { range, columns: s.mask, reverse: s.reverse, limit, locking };
                let page = rt.txn.scan(s.table.group, scan).await?;
                if let Some(rest) = page.rest {
                    state.spans.push_front(Span::Range(rest));
                }
                entries(s, page.rows, rt).await?
            }
        };
        // What was wanted was not enough (a filter dropped it): ask for more at a time.
        state.page = (state.page * 2).min(4 * BATCH);
        let rows = filter(rows, &s.filter, &op.frame, rt).await?;
        if !rows.is_empty() {
            return Ok(Some(rows));
        }
        rt.pause().await?;
    }
    Ok(None)
}

/// Rows of point keys of the scan's index, in order; filters are not applied.
pub(crate) async fn points<T: Transaction>(s: &Scan, keys: &[Key], rt: &mut Runtime<'_, T>) -> Result<Vec<Option<Row>>> {
    let locking = if s.index == 0 { s.locking } else { Locking::None };
    let found = match keys {
        [key] => vec![rt.txn.get(s.table.group, key, s.mask, locking).await?],
        keys => rt.txn.get_many(s.table.group, keys, s.mask, locking).await?,
    };
    if s.index == 0 {
        return found.into_iter().map(|v| v.map(|v| primary_row(s, v)).transpose()).collect();
    }
    let mut out: Vec<Option<Row>> = (0..found.len()).map(|_| None).collect();
    let (mut at, mut hits) = (Vec::new(), Vec::new());
    for (i, v) in found.into_iter().enumerate() {
        if let Some(v) = v {
            at.push(i);
            hits.push((keys[i].clone(), v));
        }
    }
    for (i, row) in at.into_iter().zip(entries_in_place(s, hits, rt).await?) {
        out[i] = row;
    }
    Ok(out)
}

/// Rows of index entries.
async fn entries<T: Transaction>(s: &Scan, found: Vec<(Key, Bytes)>, rt: &mut Runtime<'_, T>) -> Result<Vec<Row>> {
    Ok(entries_in_place(s, found, rt).await?.into_iter().flatten().collect())
}

async fn entries_in_place<T: Transaction>(
    s: &Scan,
    found: Vec<(Key, Bytes)>,
    rt: &mut Runtime<'_, T>,
) -> Result<Vec<Option<Row>>> {
    if s.index == 0 {
        return found.into_iter().map(|(_, v)| primary_row(s, v).map(Some)).collect();
    }
    if s.is_covering {
        return found.into_iter().map(|(k, v)| covered_row(s, &k, &v).map(Some)).collect();
    }
    let keys = found.iter().map(|(_, v)| Ok(split_entry(v)?.0)).collect::<Result<Vec<Key>>>()?;
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let rows = match keys.as_slice() {
        [key] => vec![rt.txn.get(s.table.group, key, s.mask, s.locking).await?],
        keys => rt.txn.get_many(s.table.group, keys, s.mask, s.locking).await?,
    };
    rows.into_iter().map(|v| v.map(|v| primary_row(s, v)).transpose()).collect()
}

fn primary_row(s: &Scan, value: Bytes) -> Result<Row> {
    if s.columns.is_empty() {
        return Ok(Vec::new());
    }
    let view = RowView::new(value)?;
    s.columns.iter().map(|o| column_of(&view, *o as usize, &s.types, &s.missing)).collect()
}

/// From the entry alone: its key, its stored columns, the primary key in it.
fn covered_row(s: &Scan, key: &Key, value: &Bytes) -> Result<Row> {
    let index = &s.table.indexes[s.index];
    let in_key = decode_key(key.as_bytes(), index, &s.types)?;
    let (primary, stored) = split_entry(value)?;
    let in_primary = decode_key(primary.as_bytes(), s.table.primary(), &s.types)?;
    let stored = if stored.is_empty() { None } else { Some(RowView::new(stored)?) };
    let column = |o: &u32| {
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

async fn spans<T: Transaction>(s: &Scan, frame: &Frame, rt: &mut Runtime<'_, T>) -> Result<VecDeque<Span>> {
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
    if prefixes.len() > 1 {
        prefixes.sort_unstable();
        prefixes.dedup();
    }
    if s.reverse {
        prefixes.reverse();
    }
    if s.is_point {
        return Ok(prefixes.into_iter().map(|k| Span::Point(Key::new(&k))).collect());
    }
    let mut out = VecDeque::with_capacity(prefixes.len());
    let bounds = match &s.range {
        Some(r) => match range_values(r, frame, rt).await? {
            Some(b) => Some(b),
            None => return Ok(out),
        },
        None => None,
    };
    for prefix in prefixes {
        let range = match &bounds {
            None => KeyRange::prefix(&prefix),
            Some(b) => {
                let column = &index.columns[s.prefix.len()];
                b.within(&prefix, &s.types[column.ordinal as usize], column.descending, column.nulls_first)?
            }
        };
        if !range.is_empty() {
            out.push_back(Span::Range(range));
        }
    }
    Ok(out)
}

/// The values of a part of a key; `NULL` equals nothing and is left out.
async fn part_values<T: Transaction>(part: &KeyPart, frame: &Frame, rt: &mut Runtime<'_, T>) -> Result<Vec<Datum>> {
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
