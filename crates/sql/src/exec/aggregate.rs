//! Grouping: of all rows at once, or group by group where their rows come in order.

use super::coming::Coming;
use super::eval::{Frame, Row, all_true, at_once, eval_all, eval_scalar};
use super::op::Op;
use super::sort::{compare_keys, sort_by};
use super::spill::beyond::Beyond;
use super::spill::{Merge, Sorter};
use super::{BATCH, Runtime, batch};
use crate::env::Transaction;
use crate::plan::eval::bulk::Bulk;
use crate::plan::node::{AggPlan, Node, Scalar};
use crate::types::Datum;
use crate::types::functions::Accumulator;
use meridian_base::Result;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// One aggregate over one group.
struct Cell {
    state: Box<dyn Accumulator>,
    /// Arguments seen, for `DISTINCT`.
    seen: Bulk<BTreeSet<Row>>,
    /// Sort key and arguments, for `ORDER BY`: added at the end.
    waiting: Bulk<Vec<(Row, Row)>>,
    /// What is accounted for values that the state keeps.
    kept: usize,
}

impl Cell {
    fn add<T: Transaction>(&mut self, args: &[Datum], rt: &mut Runtime<'_, T>) -> Result<()> {
        self.state.add(rt.ctx.eval, args)?;
        let more = self.state.held().saturating_sub(self.kept);
        self.kept += more;
        if more > 0 { rt.hold(more) } else { Ok(()) }
    }
}

fn start(aggs: &[AggPlan]) -> Vec<Cell> {
    let cell = |a: &AggPlan| Cell { state: a.aggregate.start(), seen: Bulk::default(), waiting: Bulk::default(), kept: 0 };
    aggs.iter().map(cell).collect()
}

/// A row per group (keys, then results), in the order of the keys; and the rows of the groups for
/// which there was no room in memory.
pub(crate) struct Rows {
    pub(super) ready: Vec<Row>,
    pub(super) beyond: Option<Sorter>,
}

pub(crate) async fn rows<T: Transaction>(
    input: &Arc<Node>,
    keys: &[Scalar],
    aggs: &[AggPlan],
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Rows> {
    if let Some((ready, beyond)) = batch::aggregate(input, keys, aggs, frame, rt).await? {
        return Ok(Rows { ready, beyond });
    }
    let mut groups: Bulk<BTreeMap<Row, Vec<Cell>>> = Bulk::default();
    let mut beyond = Beyond::new(keys.len());
    if keys.is_empty() {
        groups.insert(Vec::new(), start(aggs));
    }
    let mut op = Op::new(input, frame);
    while let Some(rows) = op.next(rt, BATCH).await? {
        for row in rows {
            rt.step().await?;
            let key = eval_all(keys, &row, frame, rt).await?;
            let cells = match groups.get_mut(&key) {
                Some(cells) => cells,
                None if beyond.takes_new(rt) => {
                    beyond.push(key, row, rt)?;
                    continue;
                }
                None => {
                    rt.keep(std::slice::from_ref(&key))?;
                    groups.entry(key).or_insert_with(|| start(aggs))
                }
            };
            take(aggs, cells, &row, frame, rt).await?;
        }
        beyond.trim(rt).await?;
    }
    let mut ready = Vec::with_capacity(groups.len());
    for (key, cells) in groups.take() {
        rt.step().await?;
        ready.push(finished(key, cells, aggs, rt).await?);
    }
    Ok(Rows { ready, beyond: beyond.into_sorter() })
}

/// Groups in the order of their keys: those that were held, and those of the rows that were not.
pub(crate) struct Merged {
    /// Complete.
    held: Bulk<VecDeque<Row>>,
    beyond: Merge,
}

impl Merged {
    pub(super) fn new(held: Vec<Row>, beyond: Merge) -> Merged {
        Merged { held: VecDeque::from(held).into(), beyond }
    }
    pub(super) fn bytes(&self) -> u64 {
        self.beyond.bytes()
    }
    /// The next groups, `want` at most and one at least; `None` at the end.
    pub(super) async fn next<T: Transaction>(
        &mut self,
        keys: usize,
        aggs: &[AggPlan],
        frame: &Frame,
        rt: &mut Runtime<'_, T>,
        want: usize,
    ) -> Result<Option<Vec<Row>>> {
        let mut out = Vec::new();
        while out.len() < want.clamp(1, BATCH) {
            let is_held = match (self.held.front(), self.beyond.key()) {
                (None, None) => break,
                (Some(held), Some(key)) => held[..keys] < key[..],
                (held, _) => held.is_some(),
            };
            if is_held {
                rt.step().await?;
                out.extend(self.held.pop_front());
                continue;
            }
            let Some(first) = self.beyond.pop(rt).await? else { break };
            let mut cells = start(aggs);
            take(aggs, &mut cells, &first.row, frame, rt).await?;
            while self.beyond.key() == Some(&first.key)
                && let Some(next) = self.beyond.pop(rt).await?
            {
                take(aggs, &mut cells, &next.row, frame, rt).await?;
            }
            out.push(finished(first.key, cells, aggs, rt).await?);
        }
        Ok((!out.is_empty()).then_some(out))
    }
}

/// Adds a row to its group.
async fn take<T: Transaction>(
    aggs: &[AggPlan],
    cells: &mut [Cell],
    row: &[Datum],
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<()> {
    for (a, cell) in aggs.iter().zip(cells) {
        if !add_at_once(a, cell, row, frame, rt)? {
            add(a, cell, row, frame, rt).await?;
        }
    }
    Ok(())
}

/// The row of a group that is complete.
async fn finished<T: Transaction>(key: Row, mut cells: Vec<Cell>, aggs: &[AggPlan], rt: &mut Runtime<'_, T>) -> Result<Row> {
    let mut row = key;
    for (a, cell) in aggs.iter().zip(&mut cells) {
        let mut waiting = std::mem::take(&mut cell.waiting).take();
        if !waiting.is_empty() {
            waiting = sort_by(waiting, |x, y| compare_keys(&x.0, &y.0, &a.order), rt).await?;
        }
        for (_, args) in waiting {
            rt.step().await?;
            cell.state.add(rt.ctx.eval, &args)?;
        }
        row.push(cell.state.finish(rt.ctx.eval)?);
    }
    Ok(row)
}

/// The same of a group behind which others come: what its aggregates kept of the values is free.
async fn closed<T: Transaction>(key: Row, cells: Vec<Cell>, aggs: &[AggPlan], rt: &mut Runtime<'_, T>) -> Result<Row> {
    let held: usize = cells.iter().map(|cell| cell.kept).sum();
    let row = finished(key, cells, aggs, rt).await?;
    rt.shared.memory = rt.shared.memory.saturating_sub(held);
    Ok(row)
}

/// Groups whose rows come one after the other.
pub(crate) struct InOrder {
    input: Coming,
    /// The group of the last row.
    open: Option<(Row, Vec<Cell>)>,
}

impl InOrder {
    pub(crate) fn new(input: Op) -> InOrder {
        InOrder { input: Coming::new(input), open: None }
    }
    /// The next groups that are complete, `want` at most and one at least; `None` at the end.
    pub(crate) async fn next<T: Transaction>(
        &mut self,
        keys: &[Scalar],
        aggs: &[AggPlan],
        frame: &Frame,
        rt: &mut Runtime<'_, T>,
        want: usize,
    ) -> Result<Option<Vec<Row>>> {
        let want = want.clamp(1, BATCH);
        let mut out = Vec::new();
        while out.len() < want {
            let Some(row) = self.input.next(rt).await? else {
                if let Some((key, cells)) = self.open.take() {
                    out.push(closed(key, cells, aggs, rt).await?);
                }
                break;
            };
            let key = eval_all(keys, &row, frame, rt).await?;
            let is_new = self.open.as_ref().is_none_or(|(open, _)| *open != key);
            if is_new && let Some((key, cells)) = self.open.replace((key, start(aggs))) {
                out.push(closed(key, cells, aggs, rt).await?);
            }
            if let Some((_, cells)) = &mut self.open {
                take(aggs, cells, &row, frame, rt).await?;
            }
        }
        Ok((!out.is_empty()).then_some(out))
    }
}

/// [`add`] for aggregates without particulars, whose argument is at hand; `false`: it was not
/// added.
fn add_at_once<T: Transaction>(
    a: &AggPlan,
    cell: &mut Cell,
    row: &[Datum],
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<bool> {
    if a.filter.is_some() || a.distinct || !a.order.is_empty() {
        return Ok(false);
    }
    match a.args.as_slice() {
        [] => cell.state.add(rt.ctx.eval, &[])?,
        [arg] => {
            let Some(value) = at_once(arg, row, frame, rt) else { return Ok(false) };
            cell.add(&[value], rt)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

async fn add<T: Transaction>(a: &AggPlan, cell: &mut Cell, row: &[Datum], frame: &Frame, rt: &mut Runtime<'_, T>) -> Result<()> {
    if !all_true(a.filter.as_slice(), row, frame, rt).await? {
        return Ok(());
    }
    let args = eval_all(&a.args, row, frame, rt).await?;
    if a.distinct {
        if cell.seen.contains(&args) {
            return Ok(());
        }
        rt.keep(std::slice::from_ref(&args))?;
        cell.seen.insert(args.clone());
    }
    if a.order.is_empty() {
        return cell.add(&args, rt);
    }
    let mut key = Vec::with_capacity(a.order.len());
    for k in &a.order {
        key.push(eval_scalar(&k.expr, row, frame, rt).await?);
    }
    rt.keep_key(&key, a.order.iter().map(|k| &k.expr))?;
    rt.keep(std::slice::from_ref(&args))?;
    cell.waiting.push((key, args));
    Ok(())
}
