//! Rows that are alike, once.

use super::eval::Row;
use super::op::Op;
use super::spill::Merge;
use super::spill::beyond::Beyond;
use super::{BATCH, Runtime};
use crate::env::Transaction;
use crate::plan::eval::bulk::Bulk;
use meridian_base::Result;
use std::collections::HashSet;

/// Rows as they come, but for those that came before. What is new when memory is short comes at the
/// end.
pub(crate) struct Distinct {
    input: Op,
    /// The input is a part of the same node: what it takes is not told twice.
    is_part: bool,
    seen: Bulk<HashSet<Row>>,
    /// From the first row on.
    beyond: Option<Beyond>,
    /// The input has ended.
    rest: Option<Box<Merge>>,
}

impl Distinct {
    pub(super) fn new(input: Op) -> Distinct {
        Distinct { input, is_part: false, seen: Bulk::default(), beyond: None, rest: None }
    }

    /// Of rows that the same node makes.
    pub(super) fn of_part(input: Op) -> Distinct {
        Distinct { is_part: true, ..Distinct::new(input) }
    }

    /// Bytes in a temporary file.
    pub(super) fn bytes(&self) -> u64 {
        self.rest.as_ref().map_or(0, |rest| rest.bytes())
    }

    /// The next rows, at least one, or `None` at the end. About `want` rows will be used at most.
    pub(super) async fn next<T: Transaction>(&mut self, rt: &mut Runtime<'_, T>, want: usize) -> Result<Option<Vec<Row>>> {
        let mut ask = want;
        while self.rest.is_none() {
            let next = match self.is_part {
                true => self.input.step(rt, ask).await?,
                false => self.input.next(rt, ask).await?,
            };
            let Some(rows) = next else {
                let Some(beyond) = self.beyond.take().and_then(Beyond::into_sorter) else { return Ok(None) };
                self.rest = Some(Box::new(beyond.finish(rt).await?));
                break;
            };
            // Of rows that are alike all but one are dropped: more may have to be read.
            ask = ask.saturating_mul(2);
            let mut out = Vec::new();
            for row in rows {
                rt.step().await?;
                if self.seen.contains(&row) {
                    continue;
                }
                let beyond = self.beyond.get_or_insert_with(|| Beyond::new(row.len()));
                if beyond.takes_new(rt) {
                    beyond.push(row, Vec::new(), rt)?;
                    continue;
                }
                rt.keep(std::slice::from_ref(&row))?;
                self.seen.insert(row.clone());
                out.push(row);
            }
            if let Some(beyond) = &mut self.beyond {
                beyond.trim(rt).await?;
            }
            if !out.is_empty() {
                return Ok(Some(out));
            }
        }
        let Some(rest) = &mut self.rest else { return Ok(None) };
        let mut out = Vec::new();
        while out.len() < want.clamp(1, BATCH) {
            let Some(first) = rest.pop(rt).await? else { break };
            while rest.key() == Some(&first.key) {
                rest.pop(rt).await?;
            }
            out.push(first.key);
        }
        Ok((!out.is_empty()).then_some(out))
    }
}
