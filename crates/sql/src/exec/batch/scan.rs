//! A scan of which an operator takes all rows, in batches.

use super::ahead::{Ahead, Next};
use super::decode::Batch;
use super::kernel::{Given, Kernel};
use super::page::{Filler, Page};
use super::{Failed, ROWS_OF_TEST};
use crate::env::{Locking, Transaction, Visited};
use crate::exec::entries::column_of;
use crate::exec::eval::{Frame, Row, all_true};
use crate::exec::pace::STEPS;
use crate::exec::pages::{self, Found, Work};
use crate::exec::sieve::Turn;
use crate::exec::{BATCH, Runtime};
use crate::plan::node::{Node, Scalar, Scan};
use crate::types::RowView;
use meridian_base::Result;
use std::ops::Range;
use std::sync::Arc;

/// Rows of a batch, if kernels compute all of it. The first one has [`BATCH`].
const ROWS_MAX: usize = 1_024;
/// Rows of a batch, if some of it goes row by row: the clock is looked at behind each batch. A
/// batch has fewer rows when they take long ([`Pace`](crate::exec::Pace)).
const ROWS_MAX_BY_ROW: usize = STEPS as usize;
/// After so many batches in a row that kernels failed at, no more are tried.
const FAILED_MAX: usize = 4;

/// The scan that an operator's input is, if the two run in batches: rows of a primary index, read
/// without locks, and expressions that depend on nothing but the row. Sequences, subqueries and
/// volatile functions run row by row in the order of the rows.
pub(super) fn below<'n>(input: &'n Node, mut exprs: impl Iterator<Item = &'n Scalar>) -> Option<&'n Arc<Scan>> {
    let Node::Scan(s) = input else { return None };
    let is_stored = |ordinal: &u32| !s.table.escrow.iter().any(|e| e.ordinal == *ordinal);
    let is_plain = |e: &Scalar| !e.pending && !e.expr.is_volatile();
    let suits = s.index == 0
        && s.locking == Locking::None
        && !s.is_point
        && !s.is_merged
        && s.columns.iter().all(is_stored)
        && s.filter.iter().all(is_plain)
        && exprs.all(is_plain);
    suits.then_some(s)
}

/// Whether tests have asked for none.
pub(super) fn is_off() -> bool {
    ROWS_OF_TEST.get() == Some(0)
}

/// What an operator does with the rows that match.
pub(super) trait Sink<T: Transaction> {
    /// Its compiled expressions.
    type Program;
    fn program(&self, of: impl Fn(&Scalar) -> Kernel) -> Self::Program;
    /// Whether some of it goes row by row.
    fn has_rows(program: &Self::Program) -> bool;
    /// Takes the selected rows of a batch. `None`: a kernel failed, and nothing was taken.
    fn take_batch<'p>(
        &mut self,
        program: &'p Self::Program,
        batch: &Batch<'p>,
        of: &Scanning,
        rt: &mut Runtime<'_, T>,
    ) -> Result<Option<()>>;
    /// Takes the scan's output of one row.
    async fn take_row(&mut self, row: Row, of: &Scanning<'_>, rt: &mut Runtime<'_, T>) -> Result<()>;
    /// Between batches.
    async fn rest(&mut self, rt: &mut Runtime<'_, T>) -> Result<()>;
}

/// A scan that is being read.
pub(super) struct Scanning<'a> {
    pub(super) s: &'a Arc<Scan>,
    pub(super) frame: &'a Frame,
}

impl Scanning<'_> {
    /// Reads all of it. `input`: its node.
    pub(super) async fn run<T: Transaction, S: Sink<T>>(
        &self,
        input: &Arc<Node>,
        sink: &mut S,
        rt: &mut Runtime<'_, T>,
    ) -> Result<()> {
        let of = |e: &Scalar| Kernel::of(&e.expr, self.frame, rt.params);
        let (filter, program) = (self.s.filter.iter().map(of).collect::<Vec<_>>(), sink.program(of));
        let has_rows = filter.iter().any(Kernel::has_rows) || S::has_rows(&program);
        let rows_max = if has_rows { ROWS_MAX_BY_ROW } else { ROWS_MAX };
        let rows_max = ROWS_OF_TEST.get().map_or(rows_max, |rows| rows.min(rows_max));
        let start = rt.shared.stats.is_some().then(|| rt.ctx.system.now_micros());
        let (mut limit, mut failed, mut selected) = (BATCH.min(rows_max), 0, 0);
        // Otherwise a bound is NULL, and no row matches.
        if let Work::Ranges { mut cursors, near } = pages::work(self.s, self.frame, rt, BATCH).await? {
            let mut page = Page::default();
            let mut ahead = Ahead::of(self.s, &mut cursors, &[], self.frame, rt).await?;
            ahead.iter().filter_map(Ahead::width).for_each(|pieces| rt.note_pieces(input, pieces));
            while self.next(&mut page, &mut ahead, (&mut cursors, near), limit, rt).await? {
                limit = (limit * 4).min(rows_max);
                let mut first = 0;
                while first < page.rows {
                    let most = if has_rows { rows_max.min(rt.ctx.pace.steps() as usize) } else { rows_max };
                    let rows = first..page.rows.min(first + most);
                    first = rows.end;
                    rt.shared.steps += if has_rows { rows.len() as u32 } else { 0 };
                    let taken = match failed < FAILED_MAX {
                        true => self.batch(&filter, &program, &page, rows.clone(), sink, rt)?,
                        false => None,
                    };
                    let (fails, some) = match taken {
                        Some(some) => (0, some),
                        None => (failed + 1, self.row_by_row(&page, rows, sink, rt).await?),
                    };
                    (failed, selected) = (fails, selected + some);
                    rt.pause().await?;
                    sink.rest(rt).await?;
                }
            }
        }
        start.into_iter().for_each(|start| rt.note(input, start, true, selected));
        Ok(())
    }

    pub(super) fn given<'g, T>(&'g self, rt: &'g Runtime<'_, T>) -> Given<'g> {
        Given { args: self.frame, params: rt.params, ctx: rt.ctx.eval, memo: &rt.shared.memo }
    }

    /// The next page, maybe an empty one; `false` at the end.
    async fn next<T: Transaction>(
        &self,
        page: &mut Page,
        ahead: &mut Option<Ahead>,
        (cursors, near): (&mut [pages::Cursor], usize),
        limit: usize,
        rt: &mut Runtime<'_, T>,
    ) -> Result<bool> {
        if let Some(pages) = ahead {
            match pages.next(rt).await? {
                Next::Page(next) => {
                    *page = next;
                    return Ok(true);
                }
                Next::End => return Ok(false),
                Next::Rest(ranges) => {
                    cursors.iter_mut().for_each(|c| c.ranges.clone_from(&ranges));
                    *ahead = None;
                }
            }
        }
        page.clear();
        self.read(page, cursors, near, limit, rt).await
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
        let turn = Turn::new(rt.ctx);
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

    /// How many of some rows match; the sink has them. `None`: a kernel failed, and it has none.
    fn batch<'p, T: Transaction, S: Sink<T>>(
        &self,
        filter: &'p [Kernel],
        program: &'p S::Program,
        page: &'p Page,
        rows: Range<usize>,
        sink: &mut S,
        rt: &mut Runtime<'_, T>,
    ) -> Result<Option<usize>>
    where
        Self: 'p,
    {
        let Ok(mut batch) = Batch::new(self.s, page, rows) else { return Ok(None) };
        if !page.is_filtered && batch.select(filter, self.given(rt)).is_err() {
            return Ok(None);
        }
        if batch.selected.is_empty() {
            return Ok(Some(0));
        }
        let taken = sink.take_batch(program, &batch, self, rt)?;
        Ok(taken.map(|()| batch.selected.len()))
    }

    /// The same as [`Scanning::batch`], one row after the other.
    async fn row_by_row<T: Transaction, S: Sink<T>>(
        &self,
        page: &Page,
        rows: Range<usize>,
        sink: &mut S,
        rt: &mut Runtime<'_, T>,
    ) -> Result<usize> {
        let Scanning { s, frame } = self;
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
            if page.is_filtered || all_true(&s.filter, &row, frame, rt).await? {
                selected += 1;
                sink.take_row(row, self, rt).await?;
            }
        }
        Ok(selected)
    }
}

impl Kernel {
    /// The rows of these at which it is true.
    pub(super) fn narrow<'p>(&'p self, batch: &Batch<'p>, selected: &[u32], given: Given) -> Result<Vec<u32>, Failed> {
        let column = self.compute(batch, selected, given)?;
        Ok(selected.iter().copied().filter(|row| column.truth(*row as usize) == Some(true)).collect())
    }
}

impl<'p> Batch<'p> {
    /// Leaves the rows selected that match all conditions.
    pub(super) fn select(&mut self, filter: &'p [Kernel], given: Given) -> Result<(), Failed> {
        for condition in filter {
            if self.selected.is_empty() {
                break;
            }
            self.selected = condition.narrow(self, &self.selected, given)?;
        }
        Ok(())
    }

    /// A row of the scan's output.
    pub(super) fn row(&self, at: usize) -> Result<Row> {
        let Scan { columns, types, missing, .. } = self.scan;
        columns.iter().map(|ordinal| column_of(&self.views[at], *ordinal as usize, types, missing)).collect()
    }
}
