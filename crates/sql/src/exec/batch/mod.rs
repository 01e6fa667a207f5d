//! Aggregation over a scan in batches of typed columns.
//!
//! Rows are copied out of the store as they are ([`page`]), column after column is decoded from
//! their bytes ([`decode`]), first those of the conditions, the others for the rows that match.
//! Expressions are computed by kernels ([`kernel`]), and what none computes row by row. Rows find
//! their groups in one hash table ([`groups`]), and a loop for each aggregate adds their values
//! ([`states`]).
//!
//! A kernel that fails says nothing: its batch is done again row by row with
//! [`crate::plan::eval::eval`], so that the error raised is that of the first row that has one.

mod arithmetic;
mod column;
mod decode;
mod groups;
mod kernel;
mod page;
mod states;
#[cfg(test)]
mod tests;

use super::entries::column_of;
use super::eval::{Frame, Row, all_true, eval_all};
use super::pages::{self, Found, Work};
use super::sieve::Turn;
use super::sort::sort_by;
use super::{BATCH, Runtime, STEPS};
use crate::env::{Locking, Transaction, Visited};
use crate::plan::node::{AggPlan, Node, Scalar, Scan};
use crate::types::{Datum, RowView};
use column::Held;
use decode::Batch;
use groups::{Groups, hash_of, hashes_of};
use kernel::{Given, Kernel};
use meridian_base::{Error, Result};
use page::{Filler, Page};
use states::{Refused, States};
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

/// Rows of a batch, if kernels compute all of it. The first one has [`BATCH`].
const ROWS_MAX: usize = 1_024;
/// Rows of a batch, if some of it goes row by row: nobody looks at the clock in between.
const ROWS_MAX_BY_ROW: usize = STEPS as usize;
/// After so many batches in a row that kernels failed at, no more are tried.
const FAILED_MAX: usize = 4;

thread_local! {
    static ROWS_OF_TEST: Cell<Option<usize>> = const { Cell::new(None) };
}

/// For tests: runs statements of this thread in batches of so many rows, or without batches (0).
pub(crate) fn use_batches_of(rows: Option<usize>) {
    ROWS_OF_TEST.set(rows);
}

/// A kernel failed, or has no way to compute something.
#[derive(Debug)]
struct Failed;

impl From<Error> for Failed {
    fn from(_: Error) -> Failed {
        Failed
    }
}

/// The scan below an aggregation, if the two run in batches: rows of a primary index, read without
/// locks, and expressions that depend on nothing but the row. Sequences, subqueries and volatile
/// functions run row by row in the order of the rows.
pub(super) fn scan_below<'n>(input: &'n Node, keys: &[Scalar], aggs: &[AggPlan]) -> Option<&'n Scan> {
    let Node::Scan(s) = input else { return None };
    let is_stored = |ordinal: &u32| !s.table.escrow.iter().any(|e| e.ordinal == *ordinal);
    let is_plain = |e: &Scalar| !e.pending && !e.expr.is_volatile();
    let of_aggs = aggs.iter().flat_map(|a| a.args.iter().chain(&a.filter));
    let suits = s.index == 0
        && s.locking == Locking::None
        && !s.is_point
        && !s.is_merged
        && s.columns.iter().all(is_stored)
        && aggs.iter().all(|a| !a.distinct && a.order.is_empty())
        && s.filter.iter().chain(keys).chain(of_aggs).all(is_plain);
    suits.then_some(s)
}

/// A row per group: keys, then results. `None`: this does not run in batches.
pub(super) async fn rows<T: Transaction>(
    input: &Arc<Node>,
    keys: &[Scalar],
    aggs: &[AggPlan],
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Option<Vec<Row>>> {
    let Some(s) = scan_below(input, keys, aggs) else { return Ok(None) };
    if ROWS_OF_TEST.get() == Some(0) {
        return Ok(None);
    }
    let work = Aggregation { s, keys, aggs, frame };
    let program = work.program(rt.params);
    let mut grouped = Grouped { groups: Groups::default(), states: aggs.iter().map(|a| States::of(&a.aggregate)).collect() };
    if keys.is_empty() {
        grouped.add(aggs, 0, Vec::new());
    }
    let start = rt.shared.stats.is_some().then(|| rt.ctx.system.now_micros());
    let Work::Ranges { mut cursors, near } = pages::work(s, frame, rt, BATCH).await? else {
        // A bound is NULL.
        start.into_iter().for_each(|start| rt.note(input, start, true, 0));
        return work.finish(grouped, rt).await.map(Some);
    };
    let mut page = Page::default();
    let (mut limit, mut failed, mut selected) = (BATCH.min(program.rows_max), 0, 0);
    loop {
        page.clear();
        if !work.read(&mut page, &mut cursors, near, limit, rt).await? {
            break;
        }
        limit = (limit * 4).min(program.rows_max);
        for first in (0..page.rows).step_by(program.rows_max) {
            let rows = first..page.rows.min(first + program.rows_max);
            let computed = match failed < FAILED_MAX {
                true => work.batch(&program, &page, rows.clone(), &mut grouped, rt)?,
                false => None,
            };
            let (fails, some) = match computed {
                Some(some) => (0, some),
                None => (failed + 1, work.row_by_row(&page, rows, &mut grouped, rt).await?),
            };
            (failed, selected) = (fails, selected + some);
            rt.pause().await?;
        }
    }
    start.into_iter().for_each(|start| rt.note(input, start, true, selected));
    work.finish(grouped, rt).await.map(Some)
}

/// An aggregation over a scan.
struct Aggregation<'a> {
    s: &'a Scan,
    keys: &'a [Scalar],
    aggs: &'a [AggPlan],
    frame: &'a Frame,
}

/// Its compiled expressions.
struct Program {
    filter: Vec<Kernel>,
    keys: Vec<Kernel>,
    /// The condition and the arguments of each aggregate.
    aggs: Vec<(Option<Kernel>, Vec<Kernel>)>,
    rows_max: usize,
}

/// Its groups so far.
struct Grouped {
    groups: Groups,
    /// Of each aggregate.
    states: Vec<States>,
}

impl Grouped {
    fn add(&mut self, aggs: &[AggPlan], hash: u64, key: Row) -> u32 {
        self.states.iter_mut().zip(aggs).for_each(|(states, a)| states.start(&a.aggregate));
        self.groups.add(hash, key)
    }
}

impl Aggregation<'_> {
    fn program(&self, params: &[Datum]) -> Program {
        let of = |e: &Scalar| Kernel::of(&e.expr, self.frame, params);
        let all = |list: &[Scalar]| list.iter().map(of).collect::<Vec<_>>();
        let aggs: Vec<_> = self.aggs.iter().map(|a| (a.filter.as_ref().map(of), all(&a.args))).collect();
        let (filter, keys) = (all(&self.s.filter), all(self.keys));
        let of_aggs = aggs.iter().flat_map(|(filter, args)| filter.iter().chain(args));
        let has_rows = filter.iter().chain(&keys).chain(of_aggs).any(Kernel::has_rows);
        let rows_max = if has_rows { ROWS_MAX_BY_ROW } else { ROWS_MAX };
        let rows_max = ROWS_OF_TEST.get().map_or(rows_max, |rows| rows.min(rows_max));
        Program { filter, keys, aggs, rows_max }
    }

    fn given<'g, T>(&'g self, rt: &'g Runtime<'_, T>) -> Given<'g> {
        Given { args: self.frame, params: rt.params, ctx: rt.ctx.eval, memo: &rt.shared.memo }
    }

    /// Fills the page with the next rows, maybe none; `false` at the end.
    async fn read<T: Transaction>(
        &self,
        page: &mut Page,
        cursors: &mut [pages::Cursor],
        near: usize,
        limit: usize,
        rt: &mut Runtime<'_, T>,
    ) -> Result<bool> {
        let s = self.s;
        let keeps_bytes = !s.columns.is_empty();
        let [cursor] = cursors else {
            let Some(found) = pages::page(s, cursors, near, limit, rt).await? else { return Ok(false) };
            found.iter().for_each(|(_, _, value): &Found| page.push(value, keeps_bytes));
            return Ok(true);
        };
        let Some(range) = cursor.ranges.pop_front() else { return Ok(false) };
        rt.ctx.stay_home(std::iter::once(cursor.group), s.locking)?;
        let scan = crate::env::Scan { range, columns: s.mask, reverse: s.reverse, limit: Some(limit), locking: s.locking };
        let turn = Turn::new(rt.ctx.system, rt.ctx.interrupt);
        let mut filler = Filler { page, keeps_bytes, turn, error: None };
        let visited = rt.txn.visit(cursor.group, scan, &mut filler).await?;
        filler.error.map_or(Ok(()), Err)?;
        let rest = match visited {
            Visited::Seen(rest) => rest,
            Visited::Fetched(found) => {
                found.rows.iter().for_each(|(_, value)| page.push(value, keeps_bytes));
                found.rest
            }
        };
        if let Some(rest) = rest {
            cursor.ranges.push_front(rest);
        }
        Ok(true)
    }

    /// Adds the rows that match to their groups; how many they are. `None`: a kernel failed, and
    /// nothing was added.
    fn batch<T: Transaction>(
        &self,
        program: &Program,
        page: &Page,
        rows: Range<usize>,
        grouped: &mut Grouped,
        rt: &mut Runtime<'_, T>,
    ) -> Result<Option<usize>> {
        let Ok(mut batch) = Batch::new(self.s, page, rows) else { return Ok(None) };
        if batch.select(&program.filter, self.given(rt)).is_err() {
            return Ok(None);
        }
        if batch.selected.is_empty() {
            return Ok(Some(0));
        }
        let Ok((keys, args)) = program.compute(&batch, self.given(rt)) else { return Ok(None) };
        let of_rows = self.groups_of(&keys, &batch, grouped, rt)?;
        // Of what the aggregates refuse, the first row's error is raised.
        let mut refused: Option<Refused> = None;
        for (states, (selected, args)) in grouped.states.iter_mut().zip(&args) {
            let selected = selected.as_deref().unwrap_or(&batch.selected);
            if let Err((row, e)) = states.add_all(&of_rows, selected, args, rt.ctx.eval)
                && refused.as_ref().is_none_or(|(first, _)| row < *first)
            {
                refused = Some((row, e));
            }
        }
        match refused {
            Some((_, e)) => Err(e),
            None => Ok(Some(batch.selected.len())),
        }
    }

    /// The number of each selected row's group.
    fn groups_of<T: Transaction>(
        &self,
        keys: &[Held<'_, '_>],
        batch: &Batch<'_>,
        grouped: &mut Grouped,
        rt: &mut Runtime<'_, T>,
    ) -> Result<Vec<u32>> {
        let mut of_rows = vec![0; batch.rows];
        if keys.is_empty() {
            return Ok(of_rows);
        }
        let hashes = hashes_of(keys, &batch.selected, batch.rows);
        for row in &batch.selected {
            let row = *row as usize;
            let is = |of_group: &[Datum]| keys.iter().zip(of_group).all(|(key, value)| key.compare(row, value).is_eq());
            of_rows[row] = match grouped.groups.find(hashes[row], is) {
                Some(group) => group,
                None => {
                    let key: Row = keys.iter().map(|key| key.datum(row)).collect();
                    rt.keep(std::slice::from_ref(&key))?;
                    grouped.add(self.aggs, hashes[row], key)
                }
            };
        }
        Ok(of_rows)
    }

    /// The same as [`Aggregation::batch`], one row after the other.
    async fn row_by_row<T: Transaction>(
        &self,
        page: &Page,
        rows: Range<usize>,
        grouped: &mut Grouped,
        rt: &mut Runtime<'_, T>,
    ) -> Result<usize> {
        let Aggregation { s, frame, .. } = self;
        let mut selected = 0;
        for at in rows {
            rt.step().await?;
            let row: Row = match s.columns.is_empty() {
                true => Vec::new(),
                false => {
                    let view = RowView::new(page.row(at))?;
                    s.columns.iter().map(|o| column_of(&view, *o as usize, &s.types, &s.missing)).collect::<Result<_>>()?
                }
            };
            if !all_true(&s.filter, &row, frame, rt).await? {
                continue;
            }
            selected += 1;
            let key = eval_all(self.keys, &row, frame, rt).await?;
            let hash = hash_of(&key);
            let group = match grouped.groups.find(hash, |of_group| of_group == key.as_slice()) {
                Some(group) => group,
                None => {
                    rt.keep(std::slice::from_ref(&key))?;
                    grouped.add(self.aggs, hash, key)
                }
            };
            for (a, states) in self.aggs.iter().zip(&mut grouped.states) {
                if all_true(a.filter.as_slice(), &row, frame, rt).await? {
                    let args = eval_all(&a.args, &row, frame, rt).await?;
                    states.add(group, &args, rt.ctx.eval)?;
                }
            }
        }
        Ok(selected)
    }

    /// The groups in the order of their keys.
    async fn finish<T: Transaction>(&self, grouped: Grouped, rt: &mut Runtime<'_, T>) -> Result<Vec<Row>> {
        let Grouped { mut groups, states } = grouped;
        let numbers: Vec<usize> = (0..groups.keys.len()).collect();
        let keys = &groups.keys;
        let numbers = match numbers.len() {
            1 => numbers,
            _ => sort_by(numbers, |a, b| keys[*a].cmp(&keys[*b]), rt).await?,
        };
        let mut out = Vec::with_capacity(numbers.len());
        for group in numbers {
            rt.step().await?;
            let mut row = std::mem::take(&mut groups.keys[group]);
            for (a, states) in self.aggs.iter().zip(&states) {
                row.push(states.finish(group, &a.aggregate, rt.ctx.eval)?);
            }
            out.push(row);
        }
        Ok(out)
    }
}

/// The rows that an aggregate's own condition selects (all, if it has none), and its arguments.
type Args<'a, 'p> = (Option<Vec<u32>>, Vec<Held<'a, 'p>>);

impl Program {
    /// Keys and arguments for the selected rows.
    fn compute<'a, 'p>(&'p self, batch: &'a Batch<'p>, given: Given) -> Result<(Vec<Held<'a, 'p>>, Vec<Args<'a, 'p>>), Failed> {
        let all = |kernels: &'p [Kernel], selected: &[u32]| {
            kernels.iter().map(|kernel| kernel.compute(batch, selected, given)).collect::<Result<Vec<_>, Failed>>()
        };
        let keys = all(&self.keys, &batch.selected)?;
        let mut args = Vec::with_capacity(self.aggs.len());
        for (filter, kernels) in &self.aggs {
            let some = filter.as_ref().map(|filter| filter.narrow(batch, &batch.selected, given)).transpose()?;
            let computed = all(kernels, some.as_deref().unwrap_or(&batch.selected))?;
            args.push((some, computed));
        }
        Ok((keys, args))
    }
}

impl Kernel {
    /// The rows of these at which it is true.
    fn narrow<'p>(&'p self, batch: &Batch<'p>, selected: &[u32], given: Given) -> Result<Vec<u32>, Failed> {
        let column = self.compute(batch, selected, given)?;
        Ok(selected.iter().copied().filter(|row| column.truth(*row as usize) == Some(true)).collect())
    }
}

impl<'p> Batch<'p> {
    /// Leaves the rows selected that match all conditions.
    fn select(&mut self, filter: &'p [Kernel], given: Given) -> Result<(), Failed> {
        for condition in filter {
            if self.selected.is_empty() {
                break;
            }
            self.selected = condition.narrow(self, &self.selected, given)?;
        }
        Ok(())
    }
}
