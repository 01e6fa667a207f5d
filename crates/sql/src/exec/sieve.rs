//! Scans of a primary index that lock nothing: rows are tested where they are stored.
//!
//! Most rows of a large scan do not match. Of such a row only the columns that the conditions read are decoded, and
//! nothing of it is copied out of the store.

use super::entries::column_of;
use super::op::{AtHand, Frame, Row, all_true};
use super::scan::Cursor;
use super::{Interrupt, Runtime, STEPS, TURN_MICROS};
use crate::catalog::system::SystemContext;
use crate::env::{Locking, RowVisitor, Transaction};
use crate::plan::physical::Scan;
use crate::types::{Datum, RowView};
use meridian_base::{Error, Result};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Whether the scan is one of those.
pub(super) fn is_sieved(s: &Scan) -> bool {
    s.index == 0 && s.locking == Locking::None
}

/// The rows of the next page that match, maybe none; `None` at the end.
pub(super) async fn sieved_page<T: Transaction>(
    s: &Scan,
    cursor: &mut Cursor,
    limit: usize,
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Option<Vec<Row>>> {
    let Some(range) = cursor.ranges.pop_front() else { return Ok(None) };
    rt.ctx.stay_home(std::iter::once(cursor.group), s.locking)?;
    let scan = crate::env::Scan { range, columns: s.mask, reverse: s.reverse, limit: Some(limit), locking: s.locking };
    let (system, interrupt) = (rt.ctx.system, rt.ctx.interrupt);
    let (txn, at_hand) = rt.at_hand(frame);
    let mut sieve = Sieve {
        s,
        tested: tested(s),
        at_hand,
        turn: Turn { system, interrupt, began: system.now_micros(), steps: 0 },
        scratch: vec![Datum::Null; s.columns.len()],
        rows: Vec::new(),
        undecided: Vec::new(),
        error: None,
    };
    let rest = txn.visit(cursor.group, scan, &mut sieve).await?;
    let Sieve { rows, undecided, error, .. } = sieve;
    if let Some(rest) = rest {
        cursor.ranges.push_front(rest);
    }
    let rows = decided(s, rows, undecided, frame, rt).await?;
    match error {
        Some(e) => Err(e),
        None => Ok(Some(rows)),
    }
}

/// The places of the output that the conditions read.
fn tested(s: &Scan) -> Vec<usize> {
    let slots = s.filter.iter().map(|f| f.expr.slots_with_subqueries()).collect::<Option<Vec<_>>>();
    match slots {
        Some(slots) => slots.into_iter().flatten().map(|slot| slot as usize).collect::<BTreeSet<_>>().into_iter().collect(),
        // A subquery that is planned when it runs may read any.
        None => (0..s.columns.len()).collect(),
    }
}

/// Leaves out of the rows those that turn out not to match now that there is time to find out.
async fn decided<T: Transaction>(
    s: &Scan,
    rows: Vec<Row>,
    undecided: Vec<usize>,
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Vec<Row>> {
    if undecided.is_empty() {
        return Ok(rows);
    }
    let mut undecided = undecided.into_iter().peekable();
    let mut out = Vec::with_capacity(rows.len());
    for (at, row) in rows.into_iter().enumerate() {
        if undecided.next_if_eq(&at).is_none() || all_true(&s.filter, &row, frame, rt).await? {
            out.push(row);
        }
    }
    Ok(out)
}

/// The time that a page may take before the other sessions of the thread have theirs.
struct Turn<'a> {
    system: &'a dyn SystemContext,
    interrupt: &'a Interrupt,
    began: u64,
    steps: u32,
}

impl Turn<'_> {
    fn is_over(&mut self) -> Result<bool> {
        self.steps += 1;
        if self.steps % STEPS != 0 {
            return Ok(false);
        }
        self.interrupt.check()?;
        Ok(self.system.now_micros().checked_sub(self.began).is_none_or(|had| had >= TURN_MICROS))
    }
}

struct Sieve<'a> {
    s: &'a Scan,
    /// The places of a row that are decoded before it is tested.
    tested: Vec<usize>,
    at_hand: AtHand<'a>,
    turn: Turn<'a>,
    /// What is decoded of the row that is being tested.
    scratch: Row,
    /// Those that match, or may.
    rows: Vec<Row>,
    /// Which of the rows have conditions that need the executor, or fail.
    undecided: Vec<usize>,
    error: Option<Error>,
}

impl Sieve<'_> {
    fn take(&mut self, value: &[u8]) -> Result<()> {
        let s = self.s;
        if s.columns.is_empty() && s.filter.is_empty() {
            self.rows.push(Vec::new());
            return Ok(());
        }
        let view = RowView::new(value)?;
        let column = |at: usize| column_of(&view, s.columns[at] as usize, &s.types, &s.missing);
        for at in &self.tested {
            self.scratch[*at] = column(*at)?;
        }
        match self.at_hand.hold(&s.filter, &self.scratch) {
            Some(true) => {}
            Some(false) => return Ok(()),
            None => self.undecided.push(self.rows.len()),
        }
        let mut tested = self.tested.iter().copied().peekable();
        let mut row = Vec::with_capacity(s.columns.len());
        for at in 0..s.columns.len() {
            row.push(match tested.next_if_eq(&at) {
                Some(_) => std::mem::replace(&mut self.scratch[at], Datum::Null),
                None => column(at)?,
            });
        }
        self.rows.push(row);
        Ok(())
    }
}

impl RowVisitor for Sieve<'_> {
    fn row(&mut self, _: &[u8], value: &[u8]) -> ControlFlow<()> {
        match self.take(value).and_then(|()| self.turn.is_over()) {
            Ok(false) => ControlFlow::Continue(()),
            Ok(true) => ControlFlow::Break(()),
            Err(e) => {
                self.error = Some(e);
                ControlFlow::Break(())
            }
        }
    }
    fn is_brief(&self) -> bool {
        self.s.filter.iter().all(|condition| condition.expr.is_brief())
    }
    fn restart(&mut self) {
        self.rows.clear();
        self.undecided.clear();
        self.error = None;
    }
}
