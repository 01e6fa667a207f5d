//! A hash join whose right side has no room in memory.
//!
//! The rows of both sides are put in the order of their keys' hashes, through temporary files. Then
//! they are joined part by part. A part is a number of right rows that memory has room for, and the
//! left rows whose keys have the same hashes. If the plan rests on the order of
//! the left side, each left row has a number, and what it was joined to is put in the order of
//! these numbers, in the same way.

use super::{JoinState, Table, is_any_enough, join, take};
use crate::env::Transaction;
use crate::exec::eval::{Frame, Kept, Row, eval_all};
use crate::exec::sort::Way;
use crate::exec::spill::{Merge, Sorter, is_short};
use crate::exec::{BATCH, Runtime, size_of_row};
use crate::plan::node::{Node, Scalar};
use crate::plan::rel::JoinKind;
use crate::types::Datum;
use meridian_base::{Error, Result};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// The two sides in the order of their keys' hashes.
pub(super) struct Parts {
    right: Merge,
    left: Merge,
    /// The last hash of the present part; `None`: none has begun.
    last: Option<Datum>,
    /// What is accounted for the present part.
    bytes: usize,
    /// Joined rows with the number of their left row, if that gives the order.
    numbered: Option<Sorter>,
    /// All of them.
    ordered: Option<Merge>,
}

/// The right side while it comes, with the hashes of its keys.
pub(super) struct Right {
    sorter: Sorter,
}

fn hash_of(key: &[Datum]) -> Datum {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    Datum::Int(hasher.finish() as i64)
}

/// A side's way: by one number.
fn sorter<T: Transaction>(rt: &Runtime<'_, T>) -> Option<Sorter> {
    Sorter::on_disk(Arc::from([Way::PLAIN]), rt)
}

impl Right {
    /// `None`: memory is not short, or there are no temporary files.
    pub(super) fn begin<T: Transaction>(rt: &Runtime<'_, T>) -> Option<Right> {
        if is_short(rt) { sorter(rt).map(|sorter| Right { sorter }) } else { None }
    }

    /// The keys that were kept, and those for which there was no room.
    pub(super) async fn of_keys<T: Transaction>(kept: Vec<Row>, others: Sorter, rt: &mut Runtime<'_, T>) -> Result<Right> {
        let sorter = sorter(rt).ok_or_else(|| Error::internal("there was a temporary file, and is none"))?;
        let mut right = Right { sorter };
        for key in kept {
            rt.step().await?;
            let bytes = size_of_row(&key);
            right.push(&key.clone(), key, bytes, JoinKind::Semi, rt).await?;
        }
        let mut others = others.finish(rt).await?;
        while let Some(next) = others.pop(rt).await? {
            let bytes = rt.keep(std::slice::from_ref(&next.key))?;
            right.push(&next.key.clone(), next.key, bytes, JoinKind::Semi, rt).await?;
        }
        Ok(right)
    }

    /// Takes a row, for which `bytes` are accounted. A row whose key has a NULL has no partner.
    pub(super) async fn push<T: Transaction>(
        &mut self,
        key: &[Datum],
        row: Row,
        bytes: usize,
        kind: JoinKind,
        rt: &mut Runtime<'_, T>,
    ) -> Result<()> {
        if key.iter().any(Datum::is_null) && !kind.keeps_right() {
            rt.shared.memory -= bytes;
            return Ok(());
        }
        self.sorter.push(vec![hash_of(key)], row, bytes);
        self.sorter.trim(rt).await
    }

    /// The right side is complete: reads the left one.
    pub(super) async fn read_left<T: Transaction>(
        self,
        state: &mut JoinState,
        node: &Node,
        frame: &Frame,
        rt: &mut Runtime<'_, T>,
    ) -> Result<Parts> {
        let Node::HashJoin { kind, left_keys, keeps_order, .. } = node else { return Err(Error::internal("not a hash join")) };
        let right = self.sorter.finish(rt).await?;
        let none = || Error::internal("there was a temporary file, and is none");
        let mut sorter = sorter(rt).ok_or_else(none)?;
        let mut number = 0;
        while let Some(rows) = state.left.next(rt, usize::MAX).await? {
            for mut row in rows {
                rt.step().await?;
                let key = eval_all(left_keys, &row, frame, rt).await?;
                if key.iter().any(Datum::is_null) && kind.drops_left() {
                    continue;
                }
                if *keeps_order {
                    row.push(Datum::Int(number));
                    number += 1;
                }
                let bytes = rt.keep(std::slice::from_ref(&row))?;
                sorter.push(vec![hash_of(&key)], row, bytes);
            }
            sorter.trim(rt).await?;
        }
        let left = sorter.finish(rt).await?;
        let numbered = match keeps_order {
            true => Some(self::sorter(rt).ok_or_else(none)?),
            false => None,
        };
        Ok(Parts { right, left, last: None, bytes: 0, numbered, ordered: None })
    }
}

impl Parts {
    /// Bytes in temporary files.
    pub(super) fn bytes(&self) -> u64 {
        self.right.bytes() + self.left.bytes() + self.ordered.as_ref().map_or(0, Merge::bytes)
    }

    /// The next joined rows.
    pub(super) async fn next<T: Transaction>(
        &mut self,
        state: &mut JoinState,
        node: &Node,
        frame: &Frame,
        rt: &mut Runtime<'_, T>,
        want: usize,
    ) -> Result<Option<Vec<Row>>> {
        if let Some(mut numbered) = self.numbered.take() {
            self.join_all(&mut numbered, state, node, frame, rt).await?;
            self.ordered = Some(numbered.finish(rt).await?);
        }
        if let Some(ordered) = &mut self.ordered {
            return ordered.next(rt, want).await;
        }
        loop {
            join(state, node, frame, rt, want.clamp(1, BATCH)).await?;
            if !state.out.is_empty() {
                return Ok(Some(state.out.drain(..).collect()));
            }
            let mut rows = Vec::new();
            while rows.len() < BATCH
                && let Some(row) = self.next_left(rt).await?
            {
                rows.push(row);
            }
            if !rows.is_empty() {
                take(state, node, rows, frame, rt).await?;
            } else if !state.left_done {
                // Those of the right side that found no partner come next.
                state.left_done = true;
            } else if !self.begin_part(state, node, frame, rt).await? {
                return Ok(None);
            }
        }
    }

    /// Joins everything, row by row. (A full join has no order.)
    async fn join_all<T: Transaction>(
        &mut self,
        numbered: &mut Sorter,
        state: &mut JoinState,
        node: &Node,
        frame: &Frame,
        rt: &mut Runtime<'_, T>,
    ) -> Result<()> {
        while self.begin_part(state, node, frame, rt).await? {
            while let Some(mut row) = self.next_left(rt).await? {
                let number = row.pop().unwrap_or(Datum::Null);
                take(state, node, vec![row], frame, rt).await?;
                join(state, node, frame, rt, usize::MAX).await?;
                hand_on(state, number, numbered, rt)?;
                numbered.trim(rt).await?;
            }
        }
        Ok(())
    }

    /// The next left row of the present part.
    async fn next_left<T: Transaction>(&mut self, rt: &mut Runtime<'_, T>) -> Result<Option<Row>> {
        match (self.left.key(), &self.last) {
            (Some(key), Some(last)) if key[0] <= *last => Ok(self.left.pop(rt).await?.map(|next| next.row)),
            _ => Ok(None),
        }
    }

    /// Takes the next rows of the right side; `false`: all parts are done.
    async fn begin_part<T: Transaction>(
        &mut self,
        state: &mut JoinState,
        node: &Node,
        frame: &Frame,
        rt: &mut Runtime<'_, T>,
    ) -> Result<bool> {
        let Node::HashJoin { right_keys, .. } = node else { return Err(Error::internal("not a hash join")) };
        if self.last.is_some() && self.left.key().is_none() && self.right.key().is_none() {
            return Ok(false);
        }
        (state.right, state.table) = (None, Table::default());
        rt.shared.memory -= std::mem::take(&mut self.bytes);
        let mut rows = Kept::default();
        let mut last = None;
        while let Some(key) = self.right.key() {
            if self.bytes > rt.piece() && last.as_ref() != Some(&key[0]) {
                break;
            }
            let Some(mut next) = self.right.pop(rt).await? else { break };
            last = next.key.pop();
            self.bytes += self.add(&mut rows, next.row, state, node, right_keys, frame, rt).await?;
        }
        // What is left of the left side has no partner.
        self.last = match self.right.key() {
            Some(_) => last,
            None => Some(Datum::Int(i64::MAX)),
        };
        state.matched = vec![false; rows.len()];
        (state.right, state.asked, state.left_done) = (Some(Arc::new(rows)), 0, false);
        Ok(true)
    }

    /// Adds a row of the right side to the present part; what it takes.
    #[expect(clippy::too_many_arguments, reason = "what a join is run with, and where the row goes")]
    async fn add<T: Transaction>(
        &self,
        rows: &mut Kept,
        row: Row,
        state: &mut JoinState,
        node: &Node,
        keys: &[Scalar],
        frame: &Frame,
        rt: &mut Runtime<'_, T>,
    ) -> Result<usize> {
        let mut bytes = rt.keep(std::slice::from_ref(&row))?;
        if is_any_enough(node) {
            // The row is its key.
            if state.table.first(&row).is_none() {
                state.table.add(Some(row));
            }
            return Ok(bytes);
        }
        let key = eval_all(keys, &row, frame, rt).await?;
        bytes += rt.keep_key(&key, keys)?;
        state.table.add((!key.iter().any(Datum::is_null)).then_some(key));
        rows.push(row);
        Ok(bytes)
    }
}

/// Joined rows get their number.
fn hand_on<T: Transaction>(state: &mut JoinState, number: Datum, to: &mut Sorter, rt: &mut Runtime<'_, T>) -> Result<()> {
    for row in state.out.drain(..) {
        let bytes = rt.keep(std::slice::from_ref(&row))?;
        to.push(vec![number.clone()], row, bytes);
    }
    Ok(())
}
