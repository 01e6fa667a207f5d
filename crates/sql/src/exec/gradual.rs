//! Sorting rows that come in order by the first of some keys, as they come.

use super::coming::Coming;
use super::eval::{Frame, Row};
use super::op::Op;
use super::sort::{Keyed, sort_by, sort_key};
use super::{BATCH, Runtime};
use crate::env::Transaction;
use crate::plan::eval::bulk::Bulk;
use crate::plan::node::SortPlan;
use meridian_base::Result;
use std::collections::VecDeque;

/// Rows that come in order by the first of some keys: those that are alike in these are sorted by
/// the others.
pub(crate) struct Gradual {
    input: Coming,
    /// Those that are alike in the first keys; more may come.
    open: Bulk<Vec<Keyed>>,
    /// What is accounted for them.
    bytes: usize,
    /// Rows in their order.
    ready: Bulk<VecDeque<Row>>,
}

impl Gradual {
    pub(super) fn new(input: Op) -> Gradual {
        Gradual { input: Coming::new(input), open: Bulk::default(), bytes: 0, ready: Bulk::default() }
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
            let Some(row) = self.input.next(rt).await? else {
                if self.open.is_empty() {
                    break;
                }
                self.close(keys, rt).await?;
                continue;
            };
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
        let open = std::mem::take(&mut self.open).take();
        for kept in sort_by(open, |a, b| a.compare(b, keys), rt).await? {
            rt.step().await?;
            self.ready.push_back(kept.row);
        }
        rt.shared.memory = rt.shared.memory.saturating_sub(std::mem::take(&mut self.bytes));
        Ok(())
    }
}
