//! Large scans that several threads read: pieces of the range, ahead of the operator that takes
//! their rows, which gets them in order. The conditions are tested where the rows are read.
//!
//! The pieces come from the statistics of the table: the bounds of a column's values, and what lies
//! evenly between them. They need not be alike; a piece that is read is held in memory up to
//! [`PAGES_AHEAD`] pages.

use super::decode::Batch;
use super::kernel::{Given, Kernel};
use super::page::Page;
use super::partners::Partners;
use super::{Failed, ROWS_OF_TEST};
use crate::env::{SharedScan, Transaction};
use crate::exec::eval::{Frame, Row};
use crate::exec::memory::Taken;
use crate::exec::pace::STEPS;
use crate::exec::pages::Cursor;
use crate::exec::{BATCH, Runtime};
use crate::plan::eval::Memo;
use crate::plan::node::{Scalar, Scan};
use crate::types::{Datum, EvalContext};
use meridian_base::key::encode;
use meridian_base::{Error, GroupId, Key, KeyRange, Result, migration};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{Instant, timeout};

/// Rows of a page.
const ROWS: usize = 1_024;
/// A page ends with the row that takes it above so many bytes.
const BYTES: usize = 256 << 10;
/// Rows of a piece, if the statistics are right.
const ROWS_OF_PIECE: u64 = 16_384;
/// Pages of a piece that wait to be taken.
const PAGES_AHEAD: usize = 16;
/// Pieces that are read at once, at most.
const PIECES_MAX: usize = 8;
/// How long a slice of a page should take whose conditions go row by row.
const SLICE_MICROS: u128 = 1_000;
/// How long who waits for a page does not look whether the statement is interrupted.
const LOOK: Duration = Duration::from_millis(20);
/// Pieces into which a range is cut, at most.
const CUTS_MAX: usize = 4_096;

/// What all threads need to know.
struct Job {
    scan: Arc<Scan>,
    shared: Arc<dyn SharedScan>,
    /// The conditions, if they can be tested before their turn.
    filter: Option<Vec<Kernel>>,
    has_rows: bool,
    /// Which rows may have partners in joins above.
    partners: Vec<Arc<Partners>>,
    frame: Frame,
    params: Vec<Datum>,
    ctx: EvalContext,
    is_over: AtomicBool,
}

enum Step {
    Page(Page, meridian_base::Timestamp),
    /// Why it stopped, and what it has not read.
    Failed(Error, KeyRange),
    End,
}

/// The pages of a scan.
pub(in crate::exec) struct Ahead {
    job: Arc<Job>,
    group: GroupId,
    /// Pieces that nobody reads yet.
    left: VecDeque<KeyRange>,
    running: VecDeque<(KeyRange, Receiver<Step>)>,
    width: usize,
    /// What the pages may take of the node's memory for statements.
    _taken: Taken,
}

/// What comes next of a scan.
pub(super) enum Next {
    Page(Page),
    /// The rest has to be read in another way.
    Rest(VecDeque<KeyRange>),
    End,
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.job.is_over.store(true, Ordering::Relaxed);
    }
}

impl Ahead {
    /// If several threads may read what a cursor has left, and it is worth it. The cursor has
    /// nothing left then.
    pub(in crate::exec) async fn of<T: Transaction>(
        s: &Arc<Scan>,
        cursors: &mut [Cursor],
        partners: &[Arc<Partners>],
        frame: &Frame,
        rt: &mut Runtime<'_, T>,
    ) -> Result<Option<Ahead>> {
        let [cursor] = cursors else { return Ok(None) };
        let is_test = matches!(ROWS_OF_TEST.get(), Some(rows) if (1..BATCH).contains(&rows));
        if s.index != 0 || s.reverse || s.is_merged || !cursor.ahead.is_empty() || (s.statistics.is_none() && !is_test) {
            return Ok(None);
        }
        let pieces: VecDeque<KeyRange> = cursor.ranges.iter().flat_map(|range| pieces(s, range)).collect();
        if pieces.len() < 2 && !is_test {
            return Ok(None);
        }
        // It competes with nobody's short statements from here on.
        migration::computes_long();
        tokio::task::yield_now().await;
        let width = if is_test { 2 } else { threads().min(PIECES_MAX).min(pieces.len()) };
        let bytes = width * PAGES_AHEAD * BYTES;
        if width < 2 || (bytes > rt.most() / 4 && !is_test) {
            return Ok(None);
        }
        let mut taken = Taken::default();
        if taken.cover(bytes, rt.ctx.pool).is_err() {
            return Ok(None);
        }
        rt.ctx.stay_home(std::iter::once(cursor.group), s.locking)?;
        let (Some(first), Some(last)) = (pieces.front(), pieces.back()) else { return Ok(None) };
        let whole = KeyRange::new(first.start.clone(), last.end.clone());
        let scan = crate::env::Scan { range: whole, columns: s.mask, reverse: false, limit: None, locking: s.locking };
        let Some(shared) = rt.txn.share_scan(cursor.group, scan).await? else { return Ok(None) };
        cursor.ranges.clear();
        let is_pure = |f: &Scalar| !f.pending && !f.expr.is_volatile() && !f.expr.needs_executor();
        let filter: Option<Vec<Kernel>> =
            s.filter.iter().all(is_pure).then(|| s.filter.iter().map(|f| Kernel::of(&f.expr, frame, rt.params)).collect());
        let job = Job {
            scan: s.clone(),
            shared,
            has_rows: filter.iter().flatten().any(Kernel::has_rows),
            filter,
            partners: partners.to_vec(),
            frame: frame.clone(),
            params: rt.params.to_vec(),
            ctx: rt.ctx.eval.clone(),
            is_over: AtomicBool::new(false),
        };
        let (group, running) = (cursor.group, VecDeque::new());
        Ok(Some(Ahead { job: Arc::new(job), group, left: pieces, running, width, _taken: taken }))
    }

    /// How many pieces are read at once, if that was worth it.
    pub(in crate::exec) fn width(&self) -> Option<usize> {
        self.job.scan.statistics.as_ref().map(|_| self.width)
    }

    /// The next page, maybe an empty one.
    pub(super) async fn next<T: Transaction>(&mut self, rt: &mut Runtime<'_, T>) -> Result<Next> {
        loop {
            while self.running.len() < self.width
                && let Some(piece) = self.left.pop_front()
            {
                let (send, receive) = channel(PAGES_AHEAD);
                tokio::spawn(read(self.job.clone(), piece.clone(), send));
                self.running.push_back((piece, receive));
            }
            let Some((_, first)) = self.running.front_mut() else { return Ok(Next::End) };
            // A page of conditions that take long is not waited for by who is interrupted.
            let step = loop {
                rt.ctx.interrupt.check()?;
                if let Ok(step) = timeout(LOOK, first.recv()).await {
                    break step;
                }
            };
            match step {
                Some(Step::Page(page, newest)) => {
                    rt.txn.has_seen(self.group, newest);
                    return Ok(Next::Page(page));
                }
                Some(Step::End) => {
                    self.running.pop_front();
                }
                Some(Step::Failed(error, rest)) if error.is_unavailable() => {
                    self.running.pop_front();
                    let mut ranges = VecDeque::from([rest]);
                    ranges.extend(self.running.drain(..).map(|(piece, _)| piece));
                    ranges.extend(self.left.drain(..));
                    return Ok(Next::Rest(ranges));
                }
                Some(Step::Failed(error, _)) => return Err(error),
                None => return Err(Error::internal("a part of a scan was lost")),
            }
        }
    }

    /// The rows of the next page, of which the scan's conditions may be left to test. `None`: what
    /// is left has to be read in another way, which the cursor says.
    pub(in crate::exec) async fn rows<T: Transaction>(
        &mut self,
        cursor: &mut Cursor,
        rt: &mut Runtime<'_, T>,
    ) -> Result<Option<(Vec<Row>, bool)>> {
        match self.next(rt).await? {
            Next::Page(page) => {
                let scan = &self.job.scan;
                let rows: Result<Vec<Row>> = match Batch::new(scan, &page, 0..page.rows) {
                    Ok(batch) => (0..page.rows).map(|at| batch.row(at)).collect(),
                    Err(Failed) => Err(Error::internal("a stored row is damaged")),
                };
                Ok(Some((rows?, page.is_filtered)))
            }
            Next::Rest(ranges) => {
                cursor.ranges = ranges;
                Ok(None)
            }
            Next::End => Ok(None),
        }
    }
}

/// On how many threads tasks of this one run.
fn threads() -> usize {
    let here = Handle::current();
    if here.runtime_flavor() == RuntimeFlavor::MultiThread { here.metrics().num_workers() } else { 1 }
}

/// Reads a piece.
async fn read(job: Arc<Job>, mut range: KeyRange, send: Sender<Step>) {
    let rows = ROWS_OF_TEST.get().map_or(ROWS, |rows| rows.clamp(1, ROWS));
    loop {
        let mut page = Page::default();
        let keeps_bytes = !job.scan.columns.is_empty();
        let mut take = |value: &[u8]| {
            page.push(value, keeps_bytes);
            if page.is_full(BYTES) { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
        };
        let step = match job.shared.page(&range, rows, &mut take) {
            Ok(shown) => {
                let page = job.filtered(page).await;
                if send.send(Step::Page(page, shown.newest)).await.is_err() {
                    return;
                }
                match shown.rest {
                    Some(rest) => {
                        range = rest;
                        None
                    }
                    None => Some(Step::End),
                }
            }
            Err(error) => Some(Step::Failed(error, range.clone())),
        };
        if let Some(step) = step {
            drop(send.send(step).await);
            return;
        }
        tokio::task::yield_now().await;
        if job.is_over.load(Ordering::Relaxed) {
            return;
        }
    }
}

impl Job {
    /// The rows of a page that meet the conditions; all of them, if that cannot be told here.
    async fn filtered(&self, page: Page) -> Page {
        let Some(filter) = self.filter.as_ref() else { return page };
        if filter.is_empty() && self.partners.is_empty() {
            return page.said_to_match(true);
        }
        let mut out = Page::default().said_to_match(true);
        let (mut first, mut most) = (0, if self.has_rows { STEPS as usize } else { ROWS });
        while first < page.rows {
            let began = Instant::now();
            let rows = first..page.rows.min(first + most);
            first = rows.end;
            if self.select(filter, &page, rows, &mut out).is_err() {
                return page;
            }
            if self.has_rows && first < page.rows {
                let slow = began.elapsed().as_micros() > SLICE_MICROS;
                most = if slow { (most / 2).max(1) } else { (most * 2).min(STEPS as usize) };
                if slow {
                    tokio::task::yield_now().await;
                }
                if self.is_over.load(Ordering::Relaxed) {
                    return out;
                }
            }
        }
        out
    }

    fn select(&self, filter: &[Kernel], page: &Page, rows: std::ops::Range<usize>, out: &mut Page) -> Result<(), Failed> {
        let memo = Memo::default();
        let given = Given { args: &self.frame, params: &self.params, ctx: &self.ctx, memo: &memo };
        let first = rows.start;
        let mut batch = Batch::new(&self.scan, page, rows)?;
        batch.select(filter, given)?;
        self.partners.iter().try_for_each(|partners| partners.narrow(&mut batch))?;
        for at in &batch.selected {
            match self.scan.columns.is_empty() {
                true => out.push(&[], false),
                false => out.push(page.row(first + *at as usize), true),
            }
        }
        Ok(())
    }
}

/// A range in pieces of about [`ROWS_OF_PIECE`] rows.
fn pieces(s: &Scan, range: &KeyRange) -> Vec<KeyRange> {
    let cuts = s.statistics.as_ref().map(|statistics| {
        let index = &s.table.indexes[s.index];
        let mut start = Vec::with_capacity(16);
        encode::index(&mut start, index.id);
        let first = index.columns.first().filter(|c| !c.descending);
        let column = first.and_then(|c| statistics.column(c.ordinal, &s.types[c.ordinal as usize]));
        let bounds = column.map_or(&[][..], |column| &column.bounds);
        let wanted = usize::try_from(statistics.rows / ROWS_OF_PIECE).unwrap_or(CUTS_MAX).min(CUTS_MAX);
        cuts(bounds, wanted).into_iter().map(|cut| Key::new(&[&start[..], &cut].concat())).collect::<Vec<_>>()
    });
    let mut out = Vec::new();
    let mut left = range.clone();
    for cut in cuts.into_iter().flatten() {
        if cut > left.start && cut < left.end {
            out.push(KeyRange::new(left.start.clone(), cut.clone()));
            left.start = cut;
        }
    }
    out.push(left);
    out
}

/// About so many keys between the first bound and the last one, in order: those among the bounds,
/// and others evenly between two of them.
fn cuts(bounds: &[Vec<u8>], wanted: usize) -> Vec<Vec<u8>> {
    let mut out: Vec<Vec<u8>> = Vec::new();
    let gaps = bounds.len().saturating_sub(1).max(1);
    let (each, every) = (wanted.div_ceil(gaps), gaps.div_ceil(wanted.max(1)));
    for (low, high) in bounds.iter().step_by(every).zip(bounds.iter().step_by(every).skip(1)) {
        out.push(low.clone());
        out.extend((1..each).map(|at| between(low, high, at, each)));
    }
    out.sort_unstable();
    out.dedup();
    out
}

/// The key that is so many of `all` equal steps above `low`, on the way to `high`: by the bytes
/// behind what the two have in common.
fn between(low: &[u8], high: &[u8], at: usize, all: usize) -> Vec<u8> {
    let common = low.iter().zip(high).take_while(|(a, b)| a == b).count();
    let number = |key: &[u8]| {
        let mut bytes = [0; 8];
        let tail = &key[common..];
        let n = tail.len().min(8);
        bytes[..n].copy_from_slice(&tail[..n]);
        u128::from(u64::from_be_bytes(bytes))
    };
    let (from, to) = (number(low), number(high));
    let place = from + to.saturating_sub(from) * at as u128 / all as u128;
    let mut key = low[..common].to_vec();
    key.extend_from_slice(&u64::try_from(place).unwrap_or(u64::MAX).to_be_bytes());
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_lie_evenly_between_bounds() {
        let bounds: Vec<Vec<u8>> = [0_u64, 100, 1_000].iter().map(|n| n.to_be_bytes().to_vec()).collect();
        let numbers = |wanted| -> Vec<u64> {
            cuts(&bounds, wanted).iter().map(|key| u64::from_be_bytes(key[..8].try_into().expect("eight bytes"))).collect()
        };
        assert_eq!(numbers(0), [0]);
        assert_eq!(numbers(2), [0, 100]);
        let four: Vec<u64> = cuts(&bounds, 4).iter().map(|key| place(key)).collect();
        assert_eq!(four, [0, 50, 100, 550]);
        assert_eq!(cuts(&[], 4), Vec::<Vec<u8>>::new());
    }

    /// A key of fewer bytes than eight, or of more, as a number of eight.
    fn place(key: &[u8]) -> u64 {
        let mut bytes = [0; 8];
        let n = key.len().min(8);
        bytes[..n].copy_from_slice(&key[..n]);
        u64::from_be_bytes(bytes)
    }
}
