//! `INTERSECT` and `EXCEPT`.

use super::eval::{Frame, Kept, Row};
use super::op::Op;
use super::sort::Way;
use super::spill::{Merge, Sorter, is_short};
use super::{BATCH, Runtime, size_of_row};
use crate::env::Transaction;
use crate::plan::eval::bulk::Bulk;
use crate::plan::node::Node;
use crate::plan::rel::SetOp;
use crate::types::Datum;
use meridian_base::Result;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

/// The rows of one side that are, or are not, on the other one.
pub(crate) enum Compared {
    /// All of them.
    Rows(Bulk<VecDeque<Row>>),
    /// Those of both sides in the order of their values, as keys of rows that say of which side
    /// they are; and what is left to be given of one value.
    Merge(Box<Merge>, VecDeque<Row>),
}

/// The rows of both sides while they come.
#[derive(Default)]
struct Sides {
    left: Kept,
    right: Kept,
    /// Has the rows, if there is no room for them: those of the left side come first.
    sorter: Option<Sorter>,
}

impl Sides {
    async fn read<T: Transaction>(
        &mut self,
        node: &Arc<Node>,
        is_left: bool,
        frame: &Frame,
        rt: &mut Runtime<'_, T>,
    ) -> Result<()> {
        let mut op = Op::new(node, frame);
        while let Some(rows) = op.next(rt, usize::MAX).await? {
            for row in rows {
                rt.step().await?;
                let bytes = rt.keep(std::slice::from_ref(&row))?;
                match &mut self.sorter {
                    Some(sorter) => sorter.push(row, vec![Datum::Bool(is_left)], bytes),
                    None if is_left => self.left.push(row),
                    None => self.right.push(row),
                }
            }
            match &mut self.sorter {
                Some(sorter) => sorter.trim(rt).await?,
                None => self.give_way(rt).await?,
            }
        }
        Ok(())
    }

    /// Rows go through a file from now on, if memory is short.
    async fn give_way<T: Transaction>(&mut self, rt: &mut Runtime<'_, T>) -> Result<()> {
        let width = self.left.first().or(self.right.first()).map_or(0, Vec::len);
        if !is_short(rt) || width == 0 {
            return Ok(());
        }
        let Some(mut sorter) = Sorter::on_disk(vec![Way::PLAIN; width].into(), rt) else { return Ok(()) };
        for (rows, is_left) in [(&mut self.left, true), (&mut self.right, false)] {
            for row in std::mem::take(rows).take() {
                rt.step().await?;
                let bytes = size_of_row(&row);
                sorter.push(row, vec![Datum::Bool(is_left)], bytes);
            }
            sorter.trim(rt).await?;
        }
        self.sorter = Some(sorter);
        Ok(())
    }
}

impl Compared {
    pub(super) async fn open<T: Transaction>(
        op: SetOp,
        all: bool,
        (left, right): (&Arc<Node>, &Arc<Node>),
        frame: &Frame,
        rt: &mut Runtime<'_, T>,
    ) -> Result<Compared> {
        let mut sides = Sides::default();
        sides.read(left, true, frame, rt).await?;
        sides.read(right, false, frame, rt).await?;
        let Sides { left, right, sorter } = sides;
        Ok(match sorter {
            Some(sorter) => Compared::Merge(Box::new(sorter.finish(rt).await?), VecDeque::new()),
            None => Compared::Rows(VecDeque::from(in_memory(op, all, left.take(), right.take(), rt).await?).into()),
        })
    }

    /// Bytes in a temporary file.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Compared::Rows(_) => 0,
            Compared::Merge(merge, _) => merge.bytes(),
        }
    }

    /// The next rows, `want` at most and one at least; `None` at the end.
    pub(super) async fn next<T: Transaction>(
        &mut self,
        op: SetOp,
        all: bool,
        rt: &mut Runtime<'_, T>,
        want: usize,
    ) -> Result<Option<Vec<Row>>> {
        let want = want.clamp(1, BATCH);
        let (merge, ready) = match self {
            Compared::Rows(rows) => {
                let take = rows.len().min(want);
                return Ok((take > 0).then(|| rows.drain(..take).collect()));
            }
            Compared::Merge(merge, ready) => (merge, ready),
        };
        while ready.len() < want {
            let Some(first) = merge.pop(rt).await? else { break };
            let mut counts = [0_usize; 2];
            let is_left = |row: &Row| row.first() == Some(&Datum::Bool(true));
            counts[usize::from(is_left(&first.row))] += 1;
            while merge.key() == Some(&first.key)
                && let Some(next) = merge.pop(rt).await?
            {
                counts[usize::from(is_left(&next.row))] += 1;
            }
            let [right, left] = counts;
            let times = match (op, all) {
                (SetOp::Intersect, true) => left.min(right),
                (SetOp::Intersect, false) => left.min(right).min(1),
                (_, true) => left.saturating_sub(right),
                (_, false) => usize::from(left > 0 && right == 0),
            };
            ready.extend(std::iter::repeat_n(first.key, times));
        }
        let take = ready.len().min(want);
        Ok((take > 0).then(|| ready.drain(..take).collect()))
    }
}

async fn in_memory<T: Transaction>(op: SetOp, all: bool, l: Vec<Row>, r: Vec<Row>, rt: &mut Runtime<'_, T>) -> Result<Vec<Row>> {
    let mut out = Kept::default();
    let mut seen: Bulk<HashSet<Row>> = Bulk::default();
    let mut right: Bulk<HashMap<Row, usize>> = Bulk::default();
    for row in r {
        rt.step().await?;
        *right.entry(row).or_default() += 1;
    }
    for row in l {
        rt.step().await?;
        let is_there = match (right.get_mut(&row), all) {
            (Some(count), true) if *count > 0 => {
                *count -= 1;
                true
            }
            (count, false) => count.is_some(),
            _ => false,
        };
        if is_there == (op == SetOp::Intersect) && (all || seen.insert(row.clone())) {
            out.push(row);
        }
    }
    Ok(out.take())
}
