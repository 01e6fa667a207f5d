//! The rows of an operator one by one, for operators that may need only a few of them.

use super::eval::Row;
use super::op::Op;
use super::{BATCH, Runtime};
use crate::env::Transaction;
use meridian_base::Result;
use std::collections::VecDeque;

/// How many rows are asked for at first; then twice as many each time.
const ROWS_FIRST: usize = 64;

/// The rows of an operator that are still to come.
pub(super) struct Coming {
    op: Op,
    /// Rows that were given, and not handed on.
    rows: VecDeque<Row>,
    /// How many rows are asked for next; none at the end.
    ask: Option<usize>,
}

impl Coming {
    pub(super) fn new(op: Op) -> Coming {
        Coming { op, rows: VecDeque::new(), ask: Some(ROWS_FIRST) }
    }

    /// The next row; `None` at the end.
    pub(super) async fn next<T: Transaction>(&mut self, rt: &mut Runtime<'_, T>) -> Result<Option<Row>> {
        loop {
            if let Some(row) = self.rows.pop_front() {
                rt.step().await?;
                return Ok(Some(row));
            }
            let Some(ask) = self.ask else { return Ok(None) };
            let rows = self.op.next(rt, ask).await?;
            self.ask = rows.is_some().then_some((ask * 2).min(BATCH));
            self.rows = rows.unwrap_or_default().into();
        }
    }

    /// No further row is asked for.
    pub(super) fn end(&mut self) {
        self.ask = None;
        self.rows.clear();
    }
}
