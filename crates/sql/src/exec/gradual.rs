//! Sorting rows that come in order by the first of some keys, as they come.

use super::eval::{Frame, Row};
use super::op::Op;
use super::sort::{Keyed, sort_by, sort_key};
use super::{BATCH, Runtime};
use crate::env::Transaction;
use crate::plan::node::SortPlan;
use meridian_base::Result;
use std::collections::VecDeque;

/// How many rows are asked for at first: a few may be enough.
const ROWS_FIRST: usize = 64;

/// Rows that come in order by the first of some keys: those that are alike in these are sorted by
/// the others as they come.
pub(crate) struct Gradual {
    input: Op,
    /// How many rows are asked for next; none at the end.
    ask: Option<usize>,
    /// Rows that were not looked at.
    rows: VecDeque<Row>,
    /// Those that are alike in the first keys; more may come.
    open: Vec<Keyed>,
    /// What is accounted for them.
    bytes: usize,
    /// Rows in their order.
    ready: VecDeque<Row>,
}

impl Gradual {
    pub(super) fn new(input: Op) -> Gradual {
        let (rows, open, ready) = Default::default();
        Gradual { input, ask: Some(ROWS_FIRST), rows, open, bytes: 0, ready }
    }

    /// The next rows, `want` at most and one at least; `None` at the end. `sorted`: by how many
    /// keys they come in order.
    pub(super) async fn next<T: Transaction>(
        &mut self,
        keys: &[SortPlan],
        sorted: usize,
        frame: &Frame,
        rt: &mut Runtime<'_, T>,
        want: usize,
    ) -> Result<Option<Vec<Row>>> {
        let want = want.clamp(1, BATCH);
        while self.ready.len() < want {
            let Some(row) = self.rows.pop_front() else {
                let Some(ask) = self.ask else { break };
                let rows = self.input.next(rt, ask).await?;
                self.ask = rows.is_some().then_some((ask * 2).min(BATCH));
                self.rows = rows.unwrap_or_default().into();
                if self.ask.is_none() {
                    self.close(keys, rt).await?;
                }
                continue;
            };
            rt.step().await?;
            let key = sort_key(keys, &row, frame, rt).await?;
            if self.open.last().is_some_and(|last| last.key[..sorted] != key[..sorted]) {
                self.close(keys, rt).await?;
            }
            self.bytes += rt.keep(std::slice::from_ref(&row))?;
            self.bytes += rt.keep_key(&key, keys.iter().map(|k| &k.expr))?;
            self.open.push(Keyed::new(key, row, keys));
        }
        let take = self.ready.len().min(want);
        Ok((take > 0).then(|| self.ready.drain(..take).collect()))
    }

    async fn close<T: Transaction>(&mut self, keys: &[SortPlan], rt: &mut Runtime<'_, T>) -> Result<()> {
        let open = sort_by(std::mem::take(&mut self.open), |a, b| a.compare(b, keys), rt).await?;
        self.ready.extend(open.into_iter().map(|kept| kept.row));
        rt.shared.memory = rt.shared.memory.saturating_sub(std::mem::take(&mut self.bytes));
        Ok(())
    }
}
