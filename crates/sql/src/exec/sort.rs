//! Sorting rows.

use super::eval::{Frame, Row, eval_scalar};
use super::{BATCH, Runtime};
use crate::env::Transaction;
use crate::plan::node::SortPlan;
use crate::types::Datum;
use meridian_base::Result;
use std::cmp::Ordering;

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

/// A stable sort; each key is computed once.
pub(crate) async fn sort<T: Transaction>(
    rows: Vec<Row>,
    keys: &[SortPlan],
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Vec<Row>> {
    let mut keyed = Vec::with_capacity(rows.len());
    for row in rows {
        keyed.push((sort_key(keys, &row, frame, rt).await?, row));
    }
    let sorted = sort_by(keyed, |a, b| compare_keys(&a.0, &b.0, keys), rt).await?;
    let mut rows = Vec::with_capacity(sorted.len());
    for (_, row) in sorted {
        rt.step().await?;
        rows.push(row);
    }
    Ok(rows)
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

/// So many are sorted at once.
const RUN: usize = 1024;

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
            loop {
                let from_a = match (a.peek(), b.peek()) {
                    (Some(x), Some(y)) => order(x, y).is_le(),
                    (Some(_), None) => true,
                    (None, Some(_)) => false,
                    (None, None) => break,
                };
                merged.extend(if from_a { a.next() } else { b.next() });
                rt.step().await?;
            }
            runs.push(merged);
        }
    }
    Ok(runs.pop().unwrap_or_default())
}

/// The first rows of what came so far, and up to as many others.
pub(super) struct First<'a> {
    pub(super) keys: &'a [SortPlan],
    most: usize,
    /// With their keys, in the order in which they came since they were sorted last.
    kept: Vec<(Row, Row)>,
    /// The key that rows must be below; `None`: too few have come.
    pub(super) bound: Option<Row>,
    /// What is accounted for `kept`.
    bytes: usize,
}

impl<'a> First<'a> {
    pub(super) fn new(keys: &'a [SortPlan], most: usize) -> First<'a> {
        First { keys, most, kept: Vec::new(), bound: None, bytes: 0 }
    }

    /// Takes a row with its key.
    pub(super) fn push<T: Transaction>(&mut self, key: Row, row: Row, rt: &mut Runtime<'_, T>) -> Result<()> {
        if self.bound.as_ref().is_none_or(|bound| compare_keys(&key, bound, self.keys).is_lt()) {
            self.bytes += rt.keep(std::slice::from_ref(&row))?;
            self.kept.push((key, row));
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
        self.kept = sort_by(std::mem::take(&mut self.kept), |a, b| compare_keys(&a.0, &b.0, keys), rt).await?;
        self.kept.truncate(self.most);
        rt.shared.memory -= std::mem::take(&mut self.bytes);
        for (_, row) in &self.kept {
            self.bytes += rt.keep(std::slice::from_ref(row))?;
        }
        self.bound = self.kept.last().filter(|_| self.kept.len() == self.most).map(|(key, _)| key.clone());
        Ok(())
    }

    pub(super) async fn finish<T: Transaction>(mut self, rt: &mut Runtime<'_, T>) -> Result<Vec<Row>> {
        self.cut(rt).await?;
        Ok(self.kept.into_iter().map(|(_, row)| row).collect())
    }
}
