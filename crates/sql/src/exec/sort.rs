//! Sorting rows.

use super::eval::{Frame, Row, eval_scalar};
use super::{BATCH, Runtime};
use crate::env::Transaction;
use crate::plan::node::SortPlan;
use crate::types::Datum;
use meridian_base::Result;
use std::cmp::Ordering;
use std::iter::Peekable;
use std::vec::IntoIter;

/// Compares two key values in one order.
pub(crate) fn compare(a: &Datum, b: &Datum, descending: bool, nulls_first: bool) -> Ordering {
    match (a.is_null(), b.is_null()) {
        (true, true) => Ordering::Equal,
        (true, false) => {
            if nulls_first {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        }
        (false, true) => {
            if nulls_first {
                Ordering::Greater
            } else {
                Ordering::Less
            }
        }
        _ if descending => b.cmp(a),
        _ => a.cmp(b),
    }
}

pub(crate) fn compare_keys(a: &[Datum], b: &[Datum], keys: &[SortPlan]) -> Ordering {
    let each = a.iter().zip(b).zip(keys).map(|((a, b), k)| compare(a, b, k.descending, k.nulls_first));
    each.fold(Ordering::Equal, Ordering::then)
}

/// A row with its key in an order.
pub(super) struct Keyed {
    /// Of the first value of the key: it is not above that of a row behind this one.
    head: u64,
    pub(super) key: Row,
    pub(super) row: Row,
}

impl Keyed {
    pub(super) fn new(key: Row, row: Row, keys: &[SortPlan]) -> Keyed {
        let head = key.first().zip(keys.first()).map_or(0, |(value, k)| head(value, k.descending, k.nulls_first));
        Keyed { head, key, row }
    }

    pub(super) fn compare(&self, other: &Keyed, keys: &[SortPlan]) -> Ordering {
        self.head.cmp(&other.head).then_with(|| compare_keys(&self.key, &other.key, keys))
    }
}

/// A number by which most values of one type can be told apart without a look at them: of a value
/// that [`compare`] has first it is not above the other's.
fn head(value: &Datum, descending: bool, nulls_first: bool) -> u64 {
    let signed = |n: i64| (n as u64) ^ (1 << 63);
    let ascending = match value {
        Datum::Null => return if nulls_first { 0 } else { u64::MAX },
        Datum::Bool(b) => u64::from(*b),
        Datum::Int(n) | Datum::Time(n) | Datum::Timestamp(n) => signed(*n),
        Datum::Date(n) => signed(i64::from(*n)),
        Datum::Text(t) => first_bytes(t.as_bytes()),
        Datum::Bytea(b) => first_bytes(b),
        Datum::Uuid(u) => first_bytes(&u[..]),
        // All alike.
        _ => 0,
    };
    if descending { !ascending } else { ascending }
}

fn first_bytes(bytes: &[u8]) -> u64 {
    let mut first = [0; 8];
    let n = bytes.len().min(8);
    first[..n].copy_from_slice(&bytes[..n]);
    u64::from_be_bytes(first)
}

pub(super) async fn sort_key<T: Transaction>(
    keys: &[SortPlan],
    row: &[Datum],
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Row> {
    let mut key = Vec::with_capacity(keys.len());
    for k in keys {
        key.push(eval_scalar(&k.expr, row, frame, rt).await?);
    }
    Ok(key)
}

/// So many are sorted or merged at once.
const RUN: usize = 4 * BATCH;

/// A stable sort that gives the thread away between its slices: runs are sorted, then merged two by
/// two.
pub(crate) async fn sort_by<T: Transaction, I>(
    items: Vec<I>,
    order: impl Fn(&I, &I) -> Ordering,
    rt: &mut Runtime<'_, T>,
) -> Result<Vec<I>> {
    let mut runs: Vec<Vec<I>> = Vec::new();
    let mut items = items.into_iter();
    loop {
        let mut run: Vec<I> = items.by_ref().take(RUN).collect();
        if run.is_empty() {
            break;
        }
        run.sort_by(&order);
        runs.push(run);
        rt.pause().await?;
    }
    // Neighbours, so that what was first stays first among equals.
    while runs.len() > 1 {
        let mut pairs = std::mem::take(&mut runs).into_iter();
        while let Some(a) = pairs.next() {
            let Some(b) = pairs.next() else {
                runs.push(a);
                break;
            };
            let mut merged = Vec::with_capacity(a.len() + b.len());
            let (mut a, mut b) = (a.into_iter().peekable(), b.into_iter().peekable());
            while merge(&mut a, &mut b, &mut merged, &order) {
                rt.pause().await?;
            }
            runs.push(merged);
        }
    }
    Ok(runs.pop().unwrap_or_default())
}

/// Takes the next of two runs, at most [`RUN`] of them; whether there may be more.
fn merge<I>(
    a: &mut Peekable<IntoIter<I>>,
    b: &mut Peekable<IntoIter<I>>,
    merged: &mut Vec<I>,
    order: impl Fn(&I, &I) -> Ordering,
) -> bool {
    for _ in 0..RUN {
        let from_a = match (a.peek(), b.peek()) {
            (Some(x), Some(y)) => order(x, y).is_le(),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => return false,
        };
        merged.extend(if from_a { a.next() } else { b.next() });
    }
    true
}

/// The first rows of what came so far, and up to as many others.
pub(super) struct First<'a> {
    pub(super) keys: &'a [SortPlan],
    most: usize,
    /// In the order in which they came since they were sorted last.
    kept: Vec<Keyed>,
    /// The key that rows must be below; `None`: too few have come.
    pub(super) bound: Option<Row>,
    /// What is accounted for the rows and for the keys of `kept`.
    row_bytes: usize,
    key_bytes: usize,
}

impl<'a> First<'a> {
    pub(super) fn new(keys: &'a [SortPlan], most: usize) -> First<'a> {
        First { keys, most, kept: Vec::new(), bound: None, row_bytes: 0, key_bytes: 0 }
    }

    /// Takes a row with its key.
    pub(super) fn push<T: Transaction>(&mut self, key: Row, row: Row, rt: &mut Runtime<'_, T>) -> Result<()> {
        if self.bound.as_ref().is_none_or(|bound| compare_keys(&key, bound, self.keys).is_lt()) {
            let key_bytes = rt.keep_key(&key, self.keys.iter().map(|k| &k.expr))?;
            self.key_bytes += key_bytes;
            self.row_bytes += rt.keep(std::slice::from_ref(&row))?;
            self.kept.push(Keyed::new(key, row, self.keys));
        }
        Ok(())
    }

    /// Lets go of rows that are not among the first, if there are many.
    pub(super) async fn trim<T: Transaction>(&mut self, rt: &mut Runtime<'_, T>) -> Result<()> {
        if self.kept.len() >= self.most.saturating_mul(2).max(self.most.saturating_add(BATCH / 2)) {
            self.cut(rt).await?;
        }
        Ok(())
    }

    async fn cut<T: Transaction>(&mut self, rt: &mut Runtime<'_, T>) -> Result<()> {
        let keys = self.keys;
        self.kept = sort_by(std::mem::take(&mut self.kept), |a, b| a.compare(b, keys), rt).await?;
        let beyond = self.kept.len() > self.most;
        self.kept.truncate(self.most);
        if beyond {
            rt.shared.memory -= std::mem::take(&mut self.row_bytes) + std::mem::take(&mut self.key_bytes);
            for kept in &self.kept {
                rt.step().await?;
                self.key_bytes += rt.keep_key(&kept.key, keys.iter().map(|k| &k.expr))?;
                self.row_bytes += rt.keep(std::slice::from_ref(&kept.row))?;
            }
        }
        self.bound = self.kept.last().filter(|_| self.kept.len() == self.most).map(|kept| kept.key.clone());
        Ok(())
    }

    pub(super) async fn finish<T: Transaction>(mut self, rt: &mut Runtime<'_, T>) -> Result<Vec<Row>> {
        self.cut(rt).await?;
        let mut rows = Vec::with_capacity(self.kept.len());
        for kept in self.kept {
            rt.step().await?;
            rows.push(kept.row);
        }
        rt.shared.memory -= self.key_bytes;
        Ok(rows)
    }
}
