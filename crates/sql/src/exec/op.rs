//! Operators: the state of a running plan.

use super::batch::Partners;
use super::compared::Compared;
use super::distinct::Distinct;
use super::eval::{Frame, Kept, Row, eval_all, eval_scalar, filter};
use super::first::{First, Sorted};
use super::gradual::Gradual;
use super::scan::ScanState;
use super::skip::Skip;
use super::sort::sort_key;
use super::spill::Merge;
use super::spill::list::{List, Listing, Place};
use super::{BATCH, BATCH_BYTES, Runtime, aggregate, batch, dml, join, lock_rows, numbers, sets, size, window};
use crate::env::Transaction;
use crate::plan::eval::bulk::Bulk;
use crate::plan::node::{Most, Node, Scalar, SortPlan};
use crate::plan::rel::SetOp;
use crate::types::Datum;
use crate::types::compare::Exact;
use futures::future::BoxFuture;
use meridian_base::{Error, Result};
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

/// A running operator.
pub(crate) struct Op {
    pub(crate) node: Arc<Node>,
    pub(crate) frame: Frame,
    pub(crate) state: State,
    /// Which of its first rows it may leave out.
    skip: Skip,
    /// Rows that none of these lets through have no partner above, and may be left out too.
    pub(super) partners: Vec<Arc<Partners>>,
}

pub(crate) enum State {
    New,
    /// Rows that are all there.
    Rows(Bulk<VecDeque<Row>>),
    /// Complete rows that other operators read too, and how many of them this one has read.
    Shared(Arc<Kept>, usize),
    Listed(Arc<List>, Place),
    Input(Box<Op>),
    /// Rows of the input that are not computed from yet.
    Project {
        input: Box<Op>,
        rows: VecDeque<Row>,
    },
    Scan(ScanState),
    Limit {
        input: Box<Op>,
        skip: Skip,
        left: u64,
    },
    Distinct(Box<Distinct>),
    /// And the key of the row before.
    DistinctOn {
        input: Box<Op>,
        last: Option<Row>,
    },
    Append {
        input: Box<Op>,
        then: Option<Box<Op>>,
    },
    Groups(Box<aggregate::InOrder>),
    Sort(Box<Gradual>),
    Merge(Box<Merge>),
    Merged(Box<aggregate::Merged>),
    Compared(Box<Compared>),
    Window(Box<window::in_order::InOrder>),
    Join(Box<join::JoinState>),
    Locks(Box<lock_rows::LockState>),
    Sets(Box<sets::SetState>),
    Done,
}

impl Op {
    pub(crate) fn new(node: &Arc<Node>, frame: &Frame) -> Op {
        Op { node: node.clone(), frame: frame.clone(), state: State::New, skip: Skip::default(), partners: Vec::new() }
    }
    pub(crate) fn child(&self, node: &Arc<Node>) -> Box<Op> {
        Box::new(Op::new(node, &self.frame))
    }

    /// The next rows, at least one, or `None` at the end. About `want` rows will be used at most.
    pub(crate) fn next<'a, 'r, T: Transaction>(
        &'a mut self,
        rt: &'a mut Runtime<'r, T>,
        want: usize,
    ) -> BoxFuture<'a, Result<Option<Vec<Row>>>> {
        if rt.shared.stats.is_none() {
            return self.step(rt, want);
        }
        Box::pin(async move {
            let (node, is_new) = (self.node.clone(), matches!(self.state, State::New));
            let start = rt.ctx.system.now_micros();
            let rows = self.step(rt, want).await;
            rt.note(&node, start, is_new, rows.as_ref().ok().and_then(Option::as_ref).map_or(0, Vec::len));
            rows
        })
    }

    /// A future for each kind of operator that may run for each row of another one: it is made by
    /// copying all the room that it has, and one for all kinds has the room of the largest.
    pub(super) fn step<'a, 'r, T: Transaction>(
        &'a mut self,
        rt: &'a mut Runtime<'r, T>,
        want: usize,
    ) -> BoxFuture<'a, Result<Option<Vec<Row>>>> {
        let node = self.node.clone();
        match &*node {
            Node::Scan(_) => Box::pin(async move { self.scan(&node, rt, want).await }),
            Node::Filter { .. } => Box::pin(async move { self.filter(&node, rt, want).await }),
            Node::Project { .. } => Box::pin(async move { self.project(&node, rt, want).await }),
            Node::Limit { .. } => Box::pin(async move { self.limit(&node, rt, want).await }),
            Node::Aggregate { .. } => Box::pin(async move { self.aggregate(&node, rt, want).await }),
            Node::Sort { .. } => Box::pin(async move { self.sort(&node, rt, want).await }),
            Node::WorkTable { .. } => Box::pin(async move { self.work_table(&node, rt).await }),
            Node::HashJoin { .. } | Node::LoopJoin { .. } => Box::pin(async move {
                rt.pause().await?;
                join::next(self, &node, rt, want).await
            }),
            _ => Box::pin(async move { self.others(&node, rt, want).await }),
        }
    }

    async fn scan<T: Transaction>(&mut self, node: &Arc<Node>, rt: &mut Runtime<'_, T>, want: usize) -> Result<Option<Vec<Row>>> {
        rt.pause().await?;
        let Node::Scan(s) = &**node else { return Ok(None) };
        if matches!(self.state, State::New) {
            self.state = State::Scan(ScanState::new((node, s), &self.partners, &self.frame, rt, want).await?);
        }
        let State::Scan(state) = &mut self.state else { return Ok(None) };
        state.next(s, &self.skip, &self.frame, rt, want).await
    }

    async fn filter<T: Transaction>(&mut self, node: &Node, rt: &mut Runtime<'_, T>, want: usize) -> Result<Option<Vec<Row>>> {
        rt.pause().await?;
        let Node::Filter { input, conds } = node else { return Ok(None) };
        let mut op = self.input(input);
        let r = loop {
            let Some(rows) = op.next(rt, want).await? else { break None };
            let kept = filter(rows, conds, &self.frame, rt).await?;
            if !kept.is_empty() {
                break Some(kept);
            }
        };
        self.state = State::Input(op);
        Ok(r)
    }

    async fn others<T: Transaction>(&mut self, node: &Node, rt: &mut Runtime<'_, T>, want: usize) -> Result<Option<Vec<Row>>> {
        rt.pause().await?;
        match node {
            Node::Numbers(numbers) => numbers::next(self, numbers, rt, want).await,
            Node::Estimates(estimates) => numbers::estimate::next(self, estimates, rt, want).await,
            Node::Shares(shares) => numbers::shares::next(self, shares, rt, want).await,
            Node::Function { .. } | Node::ProjectSet { .. } => sets::next(self, node, rt, want).await,
            Node::LockRows { input, plan } => lock_rows::next(self, input, plan, rt, want).await,
            Node::Distinct { input, on } => self.distinct(input, on.as_deref(), rt, want).await,
            Node::SetOp { op: SetOp::Union, all, left, right } => self.union(*all, left, right, rt, want).await,
            Node::SetOp { op, all, left, right } => {
                if matches!(self.state, State::New) {
                    let compared = Compared::open(*op, *all, (left, right), &self.frame, rt).await?;
                    rt.note_disk(&self.node, compared.bytes());
                    self.state = State::Compared(Box::new(compared));
                }
                let State::Compared(rows) = &mut self.state else { return Ok(None) };
                rows.next(*op, *all, rt, want).await
            }
            Node::Window { input, calls, in_order: true, most } => {
                if matches!(self.state, State::New) {
                    let (input, frame) = (*self.child(input), self.frame.clone());
                    let rows = window::in_order::InOrder::open(input, calls, most.as_ref(), &frame, rt).await?;
                    self.state = State::Window(Box::new(rows));
                }
                let State::Window(rows) = &mut self.state else { return Ok(None) };
                rows.next(calls, &self.frame, rt, want).await
            }
            _ => self.computed(node, rt).await,
        }
    }

    /// Computes a batch of rows: no more than are wanted, since others may fail. A batch of large
    /// values ends at [`BATCH_BYTES`]: its receiver has room for [`BATCH`] rows of the usual size.
    async fn project<T: Transaction>(&mut self, node: &Node, rt: &mut Runtime<'_, T>, want: usize) -> Result<Option<Vec<Row>>> {
        rt.pause().await?;
        let Node::Project { input, exprs } = node else { return Ok(None) };
        if matches!(self.state, State::New) {
            let mut input = self.child(input);
            // Nothing is drawn or waited for: no one notices what is not computed.
            if !exprs.iter().any(|e| e.pending || e.expr.is_volatile()) {
                input.skip = self.skip.clone();
            }
            self.state = State::Project { input, rows: VecDeque::new() };
        }
        let frame = self.frame.clone();
        let State::Project { input, rows } = &mut self.state else { return Ok(None) };
        let mut want = want;
        if rows.is_empty() {
            let before = self.skip.left();
            let Some(next) = input.next(rt, want).await? else { return Ok(None) };
            // Rows that were left out are among those that are wanted.
            want = want.saturating_sub((before - self.skip.left()) as usize);
            *rows = next.into();
        }
        let want = want.max(1);
        let (mut out, mut bytes) = (Vec::with_capacity(rows.len().min(want)), 0);
        while bytes < BATCH_BYTES
            && out.len() < want
            && let Some(row) = rows.pop_front()
        {
            let row = eval_all(exprs, &row, &frame, rt).await?;
            bytes += row.iter().map(size).sum::<usize>();
            out.push(row);
        }
        Ok(Some(out))
    }

    /// The only input, opened when first needed.
    pub(super) fn input(&mut self, node: &Arc<Node>) -> Box<Op> {
        match std::mem::replace(&mut self.state, State::Done) {
            State::Input(op) => op,
            _ => self.child(node),
        }
    }

    /// Keeps it for the next rows.
    pub(super) fn keep(&mut self, input: Box<Op>) {
        self.state = State::Input(input);
    }

    /// Operators that compute everything first.
    async fn computed<T: Transaction>(&mut self, node: &Node, rt: &mut Runtime<'_, T>) -> Result<Option<Vec<Row>>> {
        if matches!(self.state, State::New) {
            self.state = match node {
                Node::Cte { id, body, step, args, .. } => {
                    let args = eval_all(args, &[], &self.frame, rt).await?;
                    State::Listed(self.cte(*id, body, step.as_ref(), args, rt).await?, Place::default())
                }
                _ => State::Rows(VecDeque::from(self.all_rows(node, rt).await?).into()),
            };
        }
        match &mut self.state {
            State::Listed(rows, place) => rows.next(place, rt).await,
            _ => Ok(self.ready()),
        }
    }

    /// A common table expression, computed once per statement and frame.
    async fn cte<T: Transaction>(
        &self,
        id: u32,
        body: &Arc<Node>,
        step: Option<&(Arc<Node>, bool)>,
        args: Row,
        rt: &mut Runtime<'_, T>,
    ) -> Result<Arc<List>> {
        let key = (id, Exact(args));
        if let Some(rows) = rt.shared.ctes.get(&key) {
            return Ok(rows.clone());
        }
        let frame: Frame = key.1.0.clone().into();
        let before = rt.shared.memory;
        let rows = match step {
            None => {
                let mut rows = Listing::new();
                let mut op = Op::new(body, &frame);
                while let Some(next) = op.next(rt, usize::MAX).await? {
                    rows.extend(next, rt).await?;
                }
                rows
            }
            Some((step, distinct)) => recursive(id, body, step, *distinct, &frame, rt).await?,
        };
        let rows = Arc::new(rows.finish());
        rt.note_disk(&self.node, rows.bytes());
        rt.shared.lasting += rt.shared.memory.saturating_sub(before);
        rt.shared.memory = before;
        rt.shared.ctes.insert(key, rows.clone());
        Ok(rows)
    }

    /// A batch of the rows that are there.
    fn ready(&mut self) -> Option<Vec<Row>> {
        let next: Vec<Row> = match &mut self.state {
            State::Rows(rows) => {
                let take = rows.len().min(BATCH);
                rows.drain(..take).collect()
            }
            State::Shared(rows, read) => {
                let from = *read;
                *read = rows.len().min(from + BATCH);
                rows[from..*read].to_vec()
            }
            _ => Vec::new(),
        };
        (!next.is_empty()).then_some(next)
    }

    async fn aggregate<T: Transaction>(&mut self, node: &Node, rt: &mut Runtime<'_, T>, want: usize) -> Result<Option<Vec<Row>>> {
        rt.pause().await?;
        let Node::Aggregate { input, keys, aggs, in_order } = node else { return Ok(None) };
        if *in_order {
            if matches!(self.state, State::New) {
                self.state = State::Groups(Box::new(aggregate::InOrder::new(*self.child(input))));
            }
            let State::Groups(groups) = &mut self.state else { return Ok(None) };
            return groups.next(keys, aggs, &self.frame, rt, want).await;
        }
        if matches!(self.state, State::New) {
            let aggregate::Rows { ready, beyond } = aggregate::rows(input, keys, aggs, &self.frame, rt).await?;
            self.state = match beyond {
                None => State::Rows(VecDeque::from(ready).into()),
                Some(beyond) => {
                    let merged = aggregate::Merged::new(ready, beyond.finish(rt).await?);
                    rt.note_disk(&self.node, merged.bytes());
                    State::Merged(Box::new(merged))
                }
            };
        }
        match &mut self.state {
            State::Merged(groups) => groups.next(keys.len(), aggs, &self.frame, rt, want).await,
            _ => Ok(self.ready()),
        }
    }

    async fn sort<T: Transaction>(&mut self, node: &Node, rt: &mut Runtime<'_, T>, want: usize) -> Result<Option<Vec<Row>>> {
        rt.pause().await?;
        let Node::Sort { input, keys, sorted, is_gradual, most } = node else { return Ok(None) };
        if *is_gradual && most.is_none() {
            if matches!(self.state, State::New) {
                self.state = State::Sort(Box::new(Gradual::new(*self.child(input))));
            }
            let State::Sort(rows) = &mut self.state else { return Ok(None) };
            return rows.next(keys, *sorted, &self.frame, rt, want).await;
        }
        if matches!(self.state, State::New) {
            let most = match most {
                Some(most) => most.count(&self.frame, rt).await?,
                None => None,
            };
            let sorted = match most {
                Some(most) if *sorted > 0 => first_of_sorted(input, keys, *sorted, most, &self.frame, rt).await?,
                most => first_of(input, keys, most.unwrap_or(usize::MAX), &self.frame, rt).await?,
            };
            self.state = match sorted {
                Sorted::Rows(rows) => State::Rows(VecDeque::from(rows).into()),
                Sorted::Merge(merge) => {
                    rt.note_disk(&self.node, merge.bytes());
                    State::Merge(merge)
                }
            };
        }
        match &mut self.state {
            State::Merge(merge) => merge.next(rt, want).await,
            _ => Ok(self.ready()),
        }
    }

    /// What the step before of a recursive query has found.
    async fn work_table<T: Transaction>(&mut self, node: &Node, rt: &mut Runtime<'_, T>) -> Result<Option<Vec<Row>>> {
        rt.pause().await?;
        let Node::WorkTable { id } = node else { return Ok(None) };
        if matches!(self.state, State::New) {
            self.state = State::Shared(rt.shared.work_tables.get(id).cloned().unwrap_or_default(), 0);
        }
        Ok(self.ready())
    }

    async fn all_rows<T: Transaction>(&mut self, node: &Node, rt: &mut Runtime<'_, T>) -> Result<Vec<Row>> {
        let frame = self.frame.clone();
        match node {
            Node::Values(rows) => {
                let mut out = Vec::with_capacity(rows.len());
                for r in rows {
                    out.push(eval_all(r, &[], &frame, rt).await?);
                }
                Ok(out)
            }
            Node::Computed { of, columns } => {
                let rows = of.rows(rt.ctx.system, rt.ctx.sequences).await?;
                Ok(rows.into_iter().map(|r| columns.iter().map(|c| r[*c].clone()).collect()).collect())
            }
            Node::Window { input, calls, most, .. } => window::rows(input, calls, most.as_ref(), &frame, rt).await,
            Node::First { before, input } => {
                for b in before {
                    collect(b, &frame, rt).await?;
                }
                collect(input, &frame, rt).await
            }
            Node::Dml(plan) => dml::rows(plan, &frame, rt).await,
            _ => Err(Error::internal("an operator cannot be run")),
        }
    }

    async fn limit<T: Transaction>(&mut self, node: &Node, rt: &mut Runtime<'_, T>, want: usize) -> Result<Option<Vec<Row>>> {
        rt.pause().await?;
        let Node::Limit { input, limit, offset } = node else { return Ok(None) };
        let (limit, offset) = (limit.as_ref(), offset.as_ref());
        if matches!(self.state, State::New) {
            let frame = self.frame.clone();
            let skip = row_count(offset, "OFFSET", "2201X", &frame, rt).await?.unwrap_or(0);
            let left = row_count(limit, "LIMIT", "2201W", &frame, rt).await?.unwrap_or(u64::MAX);
            let (mut input, skip) = (self.child(input), Skip::new(skip));
            input.skip = skip.clone();
            self.state = State::Limit { input, skip, left };
        }
        let State::Limit { input, skip, left } = &mut self.state else { return Ok(None) };
        while *left > 0 {
            let need = usize::try_from(left.saturating_add(skip.left())).unwrap_or(usize::MAX);
            let Some(mut rows) = input.next(rt, need.min(want.saturating_add(skip.left() as usize))).await? else { break };
            rows.drain(..skip.take(rows.len()));
            rows.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= rows.len() as u64;
            if !rows.is_empty() {
                return Ok(Some(rows));
            }
        }
        Ok(None)
    }

    async fn distinct<T: Transaction>(
        &mut self,
        input: &Arc<Node>,
        on: Option<&[Scalar]>,
        rt: &mut Runtime<'_, T>,
        want: usize,
    ) -> Result<Option<Vec<Row>>> {
        if matches!(self.state, State::New) {
            self.state = match on {
                Some(_) => State::DistinctOn { input: self.child(input), last: None },
                None => State::Distinct(Box::new(Distinct::new(*self.child(input)))),
            };
        }
        let frame = self.frame.clone();
        let State::DistinctOn { input, last } = &mut self.state else { return self.distinct_rows(rt, want).await };
        let on = on.unwrap_or_default();
        let mut ask = want;
        loop {
            let Some(rows) = input.next(rt, ask).await? else { return Ok(None) };
            // Of rows that are alike all but one are dropped: more may have to be read.
            ask = ask.saturating_mul(2);
            let mut out = Vec::new();
            for row in rows {
                rt.step().await?;
                // Sorted by these: equal keys are neighbours.
                let key = eval_all(on, &row, &frame, rt).await?;
                if last.as_ref() != Some(&key) {
                    *last = Some(key);
                    out.push(row);
                }
            }
            if !out.is_empty() {
                return Ok(Some(out));
            }
        }
    }

    async fn distinct_rows<T: Transaction>(&mut self, rt: &mut Runtime<'_, T>, want: usize) -> Result<Option<Vec<Row>>> {
        let State::Distinct(rows) = &mut self.state else { return Ok(None) };
        let before = rows.bytes();
        let next = rows.next(rt, want).await?;
        let written = rows.bytes() - before;
        rt.note_disk(&self.node, written);
        Ok(next)
    }

    /// The rows of one input, then those of the other; without `all` each of them once.
    async fn union<T: Transaction>(
        &mut self,
        all: bool,
        left: &Arc<Node>,
        right: &Arc<Node>,
        rt: &mut Runtime<'_, T>,
        want: usize,
    ) -> Result<Option<Vec<Row>>> {
        if matches!(self.state, State::New) {
            let both = State::Append { input: self.child(left), then: Some(self.child(right)) };
            self.state = match all {
                true => both,
                false => {
                    let mut input = self.child(&self.node);
                    input.state = both;
                    State::Distinct(Box::new(Distinct::of_part(*input)))
                }
            };
        }
        let State::Append { input, then } = &mut self.state else { return self.distinct_rows(rt, want).await };
        loop {
            if let Some(rows) = input.next(rt, want).await? {
                return Ok(Some(rows));
            }
            let Some(next) = then.take() else { return Ok(None) };
            *input = next;
        }
    }
}

/// The number of a `LIMIT` or `OFFSET`, if there is one.
async fn row_count<T: Transaction>(
    count: Option<&Scalar>,
    what: &str,
    code: &str,
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Option<u64>> {
    let Some(count) = count else { return Ok(None) };
    match eval_scalar(count, &[], frame, rt).await? {
        Datum::Null => Ok(None),
        Datum::Int(n) if n >= 0 => Ok(Some(n as u64)),
        _ => Err(Error::sql(code, format!("{what} must not be negative"))),
    }
}

impl Most {
    /// How many rows they are; all, if nothing says so.
    async fn count<T: Transaction>(&self, frame: &Frame, rt: &mut Runtime<'_, T>) -> Result<Option<usize>> {
        let skip = row_count(self.offset.as_ref(), "OFFSET", "2201X", frame, rt).await?.unwrap_or(0);
        let Some(limit) = row_count(Some(&self.limit), "LIMIT", "2201W", frame, rt).await? else { return Ok(None) };
        Ok(usize::try_from(limit.saturating_add(skip)).ok())
    }
}

/// All rows of a plan.
pub(crate) async fn collect<T: Transaction>(node: &Arc<Node>, frame: &Frame, rt: &mut Runtime<'_, T>) -> Result<Vec<Row>> {
    let mut op = Op::new(node, frame);
    let mut out = Kept::default();
    while let Some(rows) = op.next(rt, usize::MAX).await? {
        rt.keep(&rows)?;
        out.extend(rows);
    }
    Ok(out.take())
}

/// The first `most` rows of an order; of those with equal keys, the ones that come first.
async fn first_of<T: Transaction>(
    input: &Arc<Node>,
    keys: &[SortPlan],
    most: usize,
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Sorted> {
    if let Some(rows) = batch::first_rows(input, keys, most, frame, rt).await? {
        return Ok(rows);
    }
    let mut first = First::new(keys, most);
    let mut op = Op::new(input, frame);
    while let Some(rows) = op.next(rt, usize::MAX).await? {
        for row in rows {
            let key = sort_key(keys, &row, frame, rt).await?;
            first.push(key, row, rt)?;
        }
        first.trim(rt).await?;
    }
    first.finish(rt).await
}

/// The same, of rows that are in order by the first `sorted` keys: those behind the ones that are
/// alike in these keys are left unread.
async fn first_of_sorted<T: Transaction>(
    input: &Arc<Node>,
    keys: &[SortPlan],
    sorted: usize,
    most: usize,
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Sorted> {
    let mut first = First::new(keys, most);
    let mut op = Op::new(input, frame);
    let (mut seen, mut want, mut before) = (0, most.max(BATCH), None::<Row>);
    'input: while let Some(rows) = op.next(rt, want).await? {
        for row in rows {
            let key = sort_key(keys, &row, frame, rt).await?;
            let is_next = before.as_ref().is_some_and(|before| before[..] != key[..sorted]);
            if is_next && seen >= most {
                break 'input;
            }
            if is_next || before.is_none() {
                before = Some(key[..sorted].to_vec());
            }
            seen += 1;
            first.push(key, row, rt)?;
        }
        first.trim(rt).await?;
        want = want.saturating_mul(2);
    }
    first.finish(rt).await
}

/// All rows of a recursive common table expression. `distinct`: each once.
async fn recursive<T: Transaction>(
    id: u32,
    body: &Arc<Node>,
    step: &Arc<Node>,
    distinct: bool,
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Listing> {
    let mut all = Listing::new();
    let mut seen: Bulk<HashSet<Row>> = Bulk::default();
    // Each round works on the rows that the one before it added.
    let mut held = rt.shared.memory;
    let mut work = Kept::from(collect(body, frame, rt).await?);
    if distinct {
        work = unseen(work, &mut seen, rt).await?;
    }
    while !work.is_empty() {
        rt.pause().await?;
        let of_work = rt.shared.memory.saturating_sub(held);
        all.extend(copies(&work, rt).await?.take(), rt).await?;
        held = rt.shared.memory;
        let outer = rt.shared.work_tables.insert(id, Arc::new(work));
        let next = collect(step, frame, rt).await;
        match outer {
            Some(w) => rt.shared.work_tables.insert(id, w),
            None => rt.shared.work_tables.remove(&id),
        };
        work = Kept::from(next?);
        if !distinct {
            // The rows that the round was about. Those that were seen stay.
            rt.shared.memory = rt.shared.memory.saturating_sub(of_work);
            held = held.saturating_sub(of_work);
        }
        // Subqueries over the work table must not answer for the next round.
        rt.shared.forget_subqueries();
        if distinct {
            work = unseen(work, &mut seen, rt).await?;
        }
    }
    Ok(all)
}

/// The rows that were not seen before.
async fn unseen<T: Transaction>(rows: Kept, seen: &mut HashSet<Row>, rt: &mut Runtime<'_, T>) -> Result<Kept> {
    let mut out = Kept::default();
    for row in rows.take() {
        rt.step().await?;
        if seen.insert(row.clone()) {
            out.push(row);
        }
    }
    Ok(out)
}

async fn copies<T: Transaction>(rows: &[Row], rt: &mut Runtime<'_, T>) -> Result<Kept> {
    let mut out = Kept::from(Vec::with_capacity(rows.len()));
    for row in rows {
        rt.step().await?;
        out.push(row.clone());
    }
    Ok(out)
}
