//! Scans of a primary index that lock nothing: rows are tested where they are stored.
//!
//! Most rows of a large scan do not match. Of such a row only the columns that the conditions read
//! are decoded, and nothing of it is copied out of the store.

use super::entries::column_of;
use super::eval::{AtHand, Frame, Row, all_true};
use super::pace::STEPS;
use super::pages::Cursor;
use super::skip::Skip;
use super::{ExecContext, Runtime, TURN_MICROS};
use crate::env::{Locking, RowVisitor, Transaction, Visited};
use crate::plan::node::Scan;
use crate::types::{Datum, RowView, Type};
use bytes::Bytes;
use meridian_base::{Error, Result};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Whether the scan is one of those. Where a condition has to wait, what another one draws is drawn
/// once for a row.
pub(super) fn is_sieved(s: &Scan) -> bool {
    let waits = s.filter.iter().any(|condition| condition.pending);
    let draws = s.filter.iter().any(|condition| condition.expr.is_volatile());
    s.index == 0 && s.locking == Locking::None && !(waits && draws)
}

/// The rows of the next page that match, maybe none; `None` at the end.
pub(super) async fn sieved_page<T: Transaction>(
    s: &Scan,
    cursor: &mut Cursor,
    limit: usize,
    skip: &Skip,
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Option<Vec<Row>>> {
    let Some(range) = cursor.ranges.pop_front() else { return Ok(None) };
    rt.ctx.stay_home(std::iter::once(cursor.group), s.locking)?;
    let scan = crate::env::Scan { range, columns: s.mask, reverse: s.reverse, limit: Some(limit), locking: s.locking };
    let tested = tested(s);
    let (txn, mut sieve) = sieve(s, &tested, skip, frame, rt);
    let (rows, rest) = match txn.visit(cursor.group, scan, &mut sieve).await? {
        Visited::Seen(rest) => (sieve.found(skip).decided(s, frame, rt).await?, rest),
        Visited::Fetched(page) => {
            let values: Vec<Bytes> = page.rows.into_iter().map(|(_, value)| value).collect();
            (sifted(s, &values, skip, frame, rt).await?, page.rest)
        }
    };
    if let Some(rest) = rest {
        cursor.ranges.push_front(rest);
    }
    Ok(Some(rows))
}

/// The rows that match, of entries that were fetched.
pub(super) async fn sifted<T: Transaction>(
    s: &Scan,
    values: &[Bytes],
    skip: &Skip,
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Vec<Row>> {
    let tested = tested(s);
    let mut rows = Vec::new();
    for some in values.chunks(STEPS as usize) {
        rt.pause().await?;
        let (_, mut sieve) = sieve(s, &tested, skip, frame, rt);
        let _: ControlFlow<()> = some.iter().try_for_each(|value| sieve.test(value));
        rows.append(&mut sieve.found(skip).decided(s, frame, rt).await?);
    }
    Ok(rows)
}

/// A sieve, and the transaction beside it.
fn sieve<'a, T: Transaction>(
    s: &'a Scan,
    tested: &'a [usize],
    skip: &Skip,
    frame: &'a Frame,
    rt: &'a mut Runtime<'_, T>,
) -> (&'a mut T, Sieve<'a>) {
    let turn = Turn::new(rt.ctx);
    let (txn, at_hand) = rt.at_hand(frame);
    let scratch = vec![Datum::Null; s.columns.len()];
    (txn, Sieve { s, tested, at_hand, turn, scratch, skip: skip.left(), skipped: 0, found: Sifted::default() })
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

/// What a sieve has let through.
#[derive(Default)]
struct Sifted {
    /// Those that match, or may.
    rows: Vec<Row>,
    /// Which of the rows have conditions that need the executor, or fail.
    undecided: Vec<usize>,
    /// Why it ended behind them.
    error: Option<Error>,
}

impl Sifted {
    /// Leaves out those that turn out not to match now that there is time to find out.
    async fn decided<T: Transaction>(self, s: &Scan, frame: &Frame, rt: &mut Runtime<'_, T>) -> Result<Vec<Row>> {
        let mut undecided = self.undecided.into_iter().peekable();
        let mut rows = self.rows;
        if undecided.peek().is_some() {
            let all = std::mem::take(&mut rows);
            for (at, row) in all.into_iter().enumerate() {
                if undecided.next_if_eq(&at).is_none() || all_true(&s.filter, &row, frame, rt).await? {
                    rows.push(row);
                }
            }
        }
        self.error.map_or(Ok(rows), Err)
    }
}

/// The time that a page may take before the other sessions of the thread have theirs.
pub(super) struct Turn<'a> {
    ctx: &'a ExecContext<'a>,
    /// With the first step.
    began: Option<u64>,
    /// The last look at the clock, and the steps since then.
    looked: u64,
    steps: u32,
}

impl<'a> Turn<'a> {
    pub(super) fn new(ctx: &'a ExecContext<'a>) -> Turn<'a> {
        Turn { ctx, began: None, looked: 0, steps: 0 }
    }
    pub(super) fn restart(&mut self) {
        *self = Turn::new(self.ctx);
    }
    pub(super) fn is_over(&mut self) -> Result<bool> {
        let began = *self.began.get_or_insert_with(|| {
            self.looked = self.ctx.system.now_micros();
            self.looked
        });
        self.steps += 1;
        if self.steps < self.ctx.pace.steps() {
            return Ok(false);
        }
        self.ctx.interrupt.check()?;
        let now = self.ctx.system.now_micros();
        self.ctx.pace.took(std::mem::take(&mut self.steps), now.saturating_sub(self.looked));
        self.looked = now;
        Ok(now.checked_sub(began).is_none_or(|had| had >= TURN_MICROS))
    }
}

struct Sieve<'a> {
    s: &'a Scan,
    /// The places of a row that are decoded before it is tested.
    tested: &'a [usize],
    at_hand: AtHand<'a>,
    turn: Turn<'a>,
    /// What is decoded of the row that is being tested.
    scratch: Row,
    /// How many rows that match need not be handed on.
    skip: u64,
    /// How many of them there were.
    skipped: u64,
    found: Sifted,
}

impl Sieve<'_> {
    fn found(self, skip: &Skip) -> Sifted {
        skip.pass(self.skipped);
        self.found
    }
    /// Whether a row that matches is one of those that need not be handed on.
    fn skips(&mut self) -> bool {
        // Behind one that may not match it is not known which row is the last of them.
        let skips = self.skipped < self.skip && self.found.rows.is_empty();
        self.skipped += u64::from(skips);
        skips
    }
    /// Takes a row; breaks off if it fails.
    fn test(&mut self, value: &[u8]) -> ControlFlow<()> {
        match self.take(value) {
            Ok(()) => ControlFlow::Continue(()),
            Err(e) => {
                self.found.error = Some(e);
                ControlFlow::Break(())
            }
        }
    }
    fn take(&mut self, value: &[u8]) -> Result<()> {
        let s = self.s;
        if s.filter.is_empty() && self.skips() {
            return Ok(());
        }
        if s.columns.is_empty() && s.filter.is_empty() {
            self.found.rows.push(Vec::new());
            return Ok(());
        }
        let view = RowView::new(value)?;
        let column = |at: usize| column_of(&view, s.columns[at] as usize, &s.types, &s.missing);
        for at in self.tested {
            self.scratch[*at] = column(*at)?;
        }
        match self.at_hand.hold(&s.filter, &self.scratch) {
            Some(true) if !s.filter.is_empty() && self.skips() => return Ok(()),
            Some(true) => {}
            Some(false) => return Ok(()),
            None => self.found.undecided.push(self.found.rows.len()),
        }
        let mut tested = self.tested.iter().copied().peekable();
        let mut row = Vec::with_capacity(s.columns.len());
        for at in 0..s.columns.len() {
            row.push(match tested.next_if_eq(&at) {
                Some(_) => std::mem::replace(&mut self.scratch[at], Datum::Null),
                None => column(at)?,
            });
        }
        self.found.rows.push(row);
        Ok(())
    }
}

impl RowVisitor for Sieve<'_> {
    fn row(&mut self, _: &dyn AsRef<[u8]>, value: &[u8]) -> ControlFlow<()> {
        self.test(value)?;
        match self.turn.is_over() {
            Ok(false) => ControlFlow::Continue(()),
            Ok(true) => ControlFlow::Break(()),
            Err(e) => {
                self.found.error = Some(e);
                ControlFlow::Break(())
            }
        }
    }
    fn is_brief(&self) -> bool {
        let is_light = |o: &u32| !matches!(self.s.types[*o as usize], Type::Jsonb | Type::Array(_) | Type::Record);
        self.s.filter.iter().all(|condition| condition.expr.is_brief()) && self.s.columns.iter().all(is_light)
    }
    fn restart(&mut self) {
        self.found = Sifted::default();
        self.skipped = 0;
        self.turn.restart();
    }
}
