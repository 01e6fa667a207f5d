//! From the parts of keys in a plan to values, keys and ranges of keys.

use super::Runtime;
use super::eval::{Frame, eval_scalar};
use crate::env::Transaction;
use crate::plan::node::{KeyPart, KeyRangeParts, Scalar, Scan};
use crate::types::keys::encode_key_column;
use crate::types::{ArrayValue, Datum, Type};
use meridian_base::key::encode;
use meridian_base::{Error, Key, KeyRange, Result};
use std::cmp::Ordering;

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

/// What begins with the values of so many columns, within bounds of the next one.
pub(super) fn range_in(s: &Scan, prefix: &[u8], columns: usize, bounds: Option<&Bounds>) -> Result<KeyRange> {
    let Some(bounds) = bounds else { return Ok(KeyRange::prefix(prefix)) };
    let column = &s.table.indexes[s.index].columns[columns];
    bounds.within(prefix, &s.types[column.ordinal as usize], column.descending, column.nulls_first)
}

/// Ranges in the order of their keys; those that meet are one, so that no row is read twice.
pub(super) fn in_order(mut ranges: Vec<KeyRange>) -> Vec<KeyRange> {
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

pub(super) struct Bounds {
    lower: Option<(Datum, bool)>,
    upper: Option<(Datum, bool)>,
    /// What every value starts with.
    starts: Option<String>,
}

/// `None`: a bound is `NULL`, nothing matches.
pub(super) async fn range_values<T: Transaction>(
    r: &KeyRangeParts,
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Option<Bounds>> {
    let mut bounds = Bounds { lower: None, upper: None, starts: None };
    let sides = [(&r.lower, &mut bounds.lower, Ordering::Greater), (&r.upper, &mut bounds.upper, Ordering::Less)];
    for (all, tightest, tighter) in sides {
        for (e, included) in all {
            let v = eval_scalar(e, &[], frame, rt).await?;
            if v.is_null() {
                return Ok(None);
            }
            let is_tighter = tightest.as_ref().is_none_or(|(found, _)| {
                let order = v.cmp(found);
                order == tighter || order == Ordering::Equal && !included
            });
            if is_tighter {
                *tightest = Some((v, *included));
            }
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
