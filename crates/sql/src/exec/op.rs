//! Operators: the state of a running plan.

use super::{BATCH, BATCH_BYTES, Runtime, aggregate, dml, join, lock_rows, scan, sets, size, window};
use crate::catalog::privileges::Privileges;
use crate::catalog::roles::denied;
use crate::env::Transaction;
use crate::plan::eval::bulk::Bulk;
use crate::plan::eval::{Env, Members, Memo, Missing, Rows, Stop, eval, holds, is_true};
use crate::plan::expr::{Expr, Quantifier, SequenceOp, Subquery, SubqueryBody, SubqueryKind};
use crate::plan::physical::{Most, Node, Scalar, SortPlan};
use crate::plan::rel::SetOp;
use crate::types::compare::Exact;
use crate::types::{Datum, EvalContext};
use futures::future::BoxFuture;
use meridian_base::{Error, Result};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

pub(crate) use crate::plan::eval::{Kept, Row};
/// The values a correlated plan was started with.
pub(crate) type Frame = Arc<[Datum]>;

/// A running operator.
pub(crate) struct Op {
    pub(crate) node: Arc<Node>,
    pub(crate) frame: Frame,
    pub(crate) state: State,
}

pub(crate) enum State {
    New,
    /// Rows that are all there.
    Rows(Bulk<VecDeque<Row>>),
    /// Complete rows that other operators read too, and how many of them this one has read.
    Shared(Arc<Kept>, usize),
    Input(Box<Op>),
    /// Rows of the input that are not computed from yet.
    Project {
        input: Box<Op>,
        rows: VecDeque<Row>,
    },
    Scan(scan::ScanState),
    Limit {
        input: Box<Op>,
        skip: u64,
        left: u64,
    },
    Distinct {
        input: Box<Op>,
        seen: Bulk<BTreeSet<Row>>,
        last: Option<Row>,
    },
    Join(Box<join::JoinState>),
    Locks(Box<lock_rows::LockState>),
    Sets(Box<sets::SetState>),
    Done,
}

impl Op {
    pub(crate) fn new(node: &Arc<Node>, frame: &Frame) -> Op {
        Op { node: node.clone(), frame: frame.clone(), state: State::New }
    }
    pub(crate) fn child(&self, node: &Arc<Node>) -> Box<Op> {
        Box::new(Op::new(node, &self.frame))
    }

    /// The next rows, at least one, or `None` at the end. About `want` rows will be used at most.
    pub(crate) fn next<'a, 'r: 'a, T: Transaction + 'a>(
        &'a mut self,
        rt: &'a mut Runtime<'r, T>,
        want: usize,
    ) -> BoxFuture<'a, Result<Option<Vec<Row>>>> {
        Box::pin(async move {
            if rt.shared.stats.is_none() {
                return self.step(rt, want).await;
            }
            let (node, is_new) = (self.node.clone(), matches!(self.state, State::New));
            let start = rt.ctx.system.now_micros();
            let rows = self.step(rt, want).await;
            rt.note(&node, start, is_new, rows.as_ref().ok().and_then(Option::as_ref).map_or(0, Vec::len));
            rows
        })
    }

    async fn step<T: Transaction>(&mut self, rt: &mut Runtime<'_, T>, want: usize) -> Result<Option<Vec<Row>>> {
        rt.pause().await?;
        let node = self.node.clone();
        match &*node {
            Node::Scan(s) => scan::next(self, s, rt, want).await,
            Node::Filter { input, conds } => {
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
            Node::Numbers(numbers) => super::escrow::next(self, numbers, rt, want).await,
            Node::Estimates(estimates) => super::escrow::estimate::next(self, estimates, rt, want).await,
            Node::Shares(shares) => super::escrow::shares::next(self, shares, rt, want).await,
            Node::Project { input, exprs } => self.project(input, exprs, rt, want).await,
            Node::Limit { input, limit, offset } => self.limit(input, limit.as_ref(), offset.as_ref(), rt, want).await,
            Node::HashJoin { .. } | Node::LoopJoin { .. } => join::next(self, &node, rt, want).await,
            Node::Function { .. } | Node::ProjectSet { .. } => sets::next(self, &node, rt, want).await,
            Node::LockRows { input, plan } => lock_rows::next(self, input, plan, rt, want).await,
            Node::Distinct { input, on } => self.distinct(input, on.as_deref(), rt, want).await,
            _ => self.computed(&node, rt).await,
        }
    }

    /// Computes a batch of rows. A batch of large values ends at [`BATCH_BYTES`]: its receiver has
    /// room for [`BATCH`] rows of the usual size.
    async fn project<T: Transaction>(
        &mut self,
        input: &Arc<Node>,
        exprs: &[Scalar],
        rt: &mut Runtime<'_, T>,
        want: usize,
    ) -> Result<Option<Vec<Row>>> {
        if matches!(self.state, State::New) {
            self.state = State::Project { input: self.child(input), rows: VecDeque::new() };
        }
        let frame = self.frame.clone();
        let State::Project { input, rows } = &mut self.state else { return Ok(None) };
        if rows.is_empty() {
            let Some(next) = input.next(rt, want).await? else { return Ok(None) };
            *rows = next.into();
        }
        let (mut out, mut bytes) = (Vec::with_capacity(rows.len()), 0);
        while bytes < BATCH_BYTES
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
                    State::Shared(cte(*id, body, step.as_ref(), args, rt).await?, 0)
                }
                Node::WorkTable { id } => State::Shared(rt.shared.work_tables.get(id).cloned().unwrap_or_default(), 0),
                _ => State::Rows(VecDeque::from(self.all_rows(node, rt).await?).into()),
            };
        }
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
        Ok((!next.is_empty()).then_some(next))
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
            Node::Sort { input, keys, most } => {
                if let Some(most) = most
                    && let Some(most) = most.count(&frame, rt).await?
                {
                    return first_of(input, keys, most, &frame, rt).await;
                }
                let rows = collect(input, &frame, rt).await?;
                sort(rows, keys, &frame, rt).await
            }
            Node::Aggregate { input, keys, aggs } => aggregate::rows(input, keys, aggs, &frame, rt).await,
            Node::Window { input, calls } => window::rows(input, calls, &frame, rt).await,
            Node::SetOp { op, all, left, right } => {
                let l = Kept::from(collect(left, &frame, rt).await?);
                let r = collect(right, &frame, rt).await?;
                set_operation(*op, *all, l.take(), r, rt).await
            }
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

    async fn limit<T: Transaction>(
        &mut self,
        input: &Arc<Node>,
        limit: Option<&Scalar>,
        offset: Option<&Scalar>,
        rt: &mut Runtime<'_, T>,
        want: usize,
    ) -> Result<Option<Vec<Row>>> {
        if matches!(self.state, State::New) {
            let frame = self.frame.clone();
            let left = row_count(limit, "LIMIT", "2201W", &frame, rt).await?.unwrap_or(u64::MAX);
            let skip = row_count(offset, "OFFSET", "2201X", &frame, rt).await?.unwrap_or(0);
            self.state = State::Limit { input: self.child(input), skip, left };
        }
        let State::Limit { input, skip, left } = &mut self.state else { return Ok(None) };
        while *left > 0 {
            let need = usize::try_from(left.saturating_add(*skip)).unwrap_or(usize::MAX);
            let Some(mut rows) = input.next(rt, need.min(want.saturating_add(*skip as usize))).await? else { break };
            let dropped = (*skip).min(rows.len() as u64);
            *skip -= dropped;
            rows.drain(..dropped as usize);
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
            self.state = State::Distinct { input: self.child(input), seen: Bulk::default(), last: None };
        }
        let frame = self.frame.clone();
        let State::Distinct { input, seen, last } = &mut self.state else { return Ok(None) };
        loop {
            let Some(rows) = input.next(rt, want).await? else { return Ok(None) };
            let mut out = Vec::new();
            for row in rows {
                rt.step().await?;
                match on {
                    // Sorted by these: equal keys are neighbours.
                    Some(on) => {
                        let key = eval_all(on, &row, &frame, rt).await?;
                        if last.as_ref() != Some(&key) {
                            *last = Some(key);
                            out.push(row);
                        }
                    }
                    None => {
                        if !seen.contains(&row) {
                            rt.keep(std::slice::from_ref(&row))?;
                            seen.insert(row.clone());
                            out.push(row);
                        }
                    }
                }
            }
            if !out.is_empty() {
                return Ok(Some(out));
            }
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
        let Some(limit) = row_count(Some(&self.limit), "LIMIT", "2201W", frame, rt).await? else { return Ok(None) };
        let skip = row_count(self.offset.as_ref(), "OFFSET", "2201X", frame, rt).await?.unwrap_or(0);
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

pub(crate) async fn filter<T: Transaction>(
    rows: Vec<Row>,
    conds: &[Scalar],
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Vec<Row>> {
    if conds.is_empty() {
        return Ok(rows);
    }
    let mut out = Vec::with_capacity(rows.len());
    for row in rows {
        if all_true(conds, &row, frame, rt).await? {
            out.push(row);
        }
    }
    Ok(out)
}

/// Whether all conditions hold.
pub(crate) async fn all_true<T: Transaction>(
    conds: &[Scalar],
    row: &[Datum],
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<bool> {
    rt.step().await?;
    if let Some(hold) = rt.at_hand(frame).1.hold(conds, row) {
        return Ok(hold);
    }
    for c in conds {
        if !is_true(&eval_scalar(c, row, frame, rt).await?) {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(crate) async fn eval_all<T: Transaction>(
    exprs: &[Scalar],
    row: &[Datum],
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Row> {
    rt.step().await?;
    let mut out = Vec::with_capacity(exprs.len());
    for e in exprs {
        out.push(match at_once(e, row, frame, rt) {
            Some(value) => value,
            None => eval_scalar(e, row, frame, rt).await?,
        });
    }
    Ok(out)
}

/// The value of an expression that needs nothing from the executor, or nothing that is not there
/// yet. Errors are left to [`eval_scalar`].
pub(crate) fn at_once<T: Transaction>(e: &Scalar, row: &[Datum], frame: &Frame, rt: &mut Runtime<'_, T>) -> Option<Datum> {
    rt.at_hand(frame).1.value(e, row)
}

/// What expressions over rows are computed with, as far as it is there.
pub(crate) struct AtHand<'a> {
    frame: &'a Frame,
    params: &'a [Datum],
    ctx: &'a EvalContext,
    memo: &'a mut Memo,
}

impl AtHand<'_> {
    #[inline]
    fn value(&mut self, e: &Scalar, row: &[Datum]) -> Option<Datum> {
        self.at_once(e, row, eval)
    }
    #[inline]
    fn at_once<V>(&mut self, e: &Scalar, row: &[Datum], of: impl FnOnce(&Expr, &Env) -> Result<V, Stop>) -> Option<V> {
        let found = of(&e.expr, &Env { row, args: self.frame, params: self.params, ctx: self.ctx, memo: self.memo });
        // What was drawn for it is of this row: who asks again draws again.
        if e.pending {
            self.memo.draws.clear();
        }
        found.ok()
    }
    /// Whether all conditions are true; `None`: [`all_true`] has to say.
    pub(crate) fn hold(&mut self, conds: &[Scalar], row: &[Datum]) -> Option<bool> {
        for c in conds {
            if !self.at_once(c, row, holds)? {
                return Some(false);
            }
        }
        Some(true)
    }
}

impl<T: Transaction> Runtime<'_, T> {
    /// The transaction, and beside it what is at hand.
    pub(crate) fn at_hand<'a>(&'a mut self, frame: &'a Frame) -> (&'a mut T, AtHand<'a>) {
        (self.txn, AtHand { frame, params: self.params, ctx: self.ctx.eval, memo: &mut self.shared.memo })
    }
}

/// Evaluates, finding what the expression is missing until it has everything.
pub(crate) async fn eval_scalar<T: Transaction>(
    e: &Scalar,
    row: &[Datum],
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Datum> {
    rt.step().await?;
    loop {
        let env = Env { row, args: frame, params: rt.params, ctx: rt.ctx.eval, memo: &rt.shared.memo };
        let missing = match eval(&e.expr, &env) {
            Ok(d) => {
                if e.pending {
                    rt.shared.memo.draws.clear();
                }
                rt.shared.memo.settle();
                return Ok(d);
            }
            Err(Stop::Error(e)) => {
                rt.shared.memo.draws.clear();
                rt.shared.memo.settle();
                return Err(e);
            }
            Err(Stop::Missing(m)) => m,
        };
        match missing {
            Missing::Subquery { subquery, args } => {
                // What was drawn and computed for this evaluation survives the detour.
                let memo = &mut rt.shared.memo;
                let (draws, values) = (std::mem::take(&mut memo.draws), std::mem::take(&mut memo.values));
                run_subquery(&subquery, args, rt).await?;
                (rt.shared.memo.draws, rt.shared.memo.values) = (draws, values);
            }
            Missing::Members(array) => {
                let list = array.clone();
                let members = rt.aside(move || Arc::new(Members::of_items(&list))).await?;
                rt.shared.memo.know(&array, members);
            }
            // Computed again, its arguments would be others.
            Missing::Value { .. } if e.expr.is_volatile() => rt.shared.memo.computes_aside = false,
            Missing::Value { work, args } => {
                let (again, given, ctx) = (work.clone(), args.clone(), rt.ctx.eval.clone());
                match rt.aside(move || again.run(given, &ctx)).await? {
                    Ok(value) => rt.shared.memo.values.push((work, Exact(args), value)),
                    Err(e) => {
                        rt.shared.memo.draws.clear();
                        rt.shared.memo.settle();
                        return Err(e);
                    }
                }
            }
            Missing::Sequence { slot, op, target, args, is_identity } => {
                let drawn = draw(op, target, &args, is_identity, rt).await?;
                rt.shared.memo.draws.insert(slot, drawn);
            }
        }
    }
}

/// How many results of correlated subqueries are kept.
const MEMO_MAX: usize = 10_000;

async fn run_subquery<T: Transaction>(s: &Subquery, args: Vec<Datum>, rt: &mut Runtime<'_, T>) -> Result<()> {
    let SubqueryBody::Physical(plan) = &s.body else { return Err(Error::internal("a subquery was not planned")) };
    let frame: Frame = args.clone().into();
    let enough = match s.kind {
        SubqueryKind::Exists => 1,
        SubqueryKind::Scalar | SubqueryKind::Quantified { quantifier: Quantifier::Sole, .. } => 2,
        _ => usize::MAX,
    };
    let mut op = Op::new(&plan.node, &frame);
    let mut rows = Kept::default();
    let (before, mut bytes) = (rt.shared.memory, 0);
    while rows.len() < enough {
        match op.next(rt, enough - rows.len()).await? {
            Some(more) => {
                bytes += rt.keep(&more)?;
                rows.extend(more);
            }
            None => break,
        }
    }
    drop(op);
    // What its operators held is gone.
    rt.shared.memory = before;
    let rows = Arc::new(Rows::new(rows));
    if rows.rows.len() > 4 * BATCH {
        let (made, kind) = (rows.clone(), s.kind.clone());
        rt.aside(move || made.prepare(&kind)).await?;
    }
    if rt.shared.memo.size >= MEMO_MAX {
        rt.shared.forget_subqueries();
    }
    rt.shared.lasting += bytes;
    let memo = &mut rt.shared.memo;
    memo.size += 1;
    memo.bytes += bytes;
    memo.subqueries.insert((s.slot, Exact(args)), rows);
    Ok(())
}

async fn draw<T: Transaction>(
    op: SequenceOp,
    target: Option<meridian_base::DescriptorId>,
    args: &[Datum],
    is_identity: bool,
    rt: &mut Runtime<'_, T>,
) -> Result<i64> {
    let sequences = rt.ctx.sequences;
    if op == SequenceOp::Last {
        let (sequence, value) = sequences.lastval()?;
        may_draw(op, sequence, rt)?;
        return Ok(value);
    }
    let found = target.and_then(|id| rt.ctx.catalog.sequence_by_id(id));
    let sequence = found.ok_or_else(|| Error::sql("42809", "this is not a sequence"))?;
    if !is_identity {
        may_draw(op, sequence.id, rt)?;
    }
    match (op, args) {
        (SequenceOp::Next, _) => sequences.nextval(&sequence, rt.ctx.catalog).await,
        (SequenceOp::Current, _) => sequences.currval(sequence.id),
        (_, [Datum::Int(value), rest @ ..]) => {
            let is_called = !matches!(rest.first(), Some(Datum::Bool(false)));
            sequences.setval(&sequence, rt.ctx.catalog, *value, is_called).await
        }
        _ => Err(Error::internal("setval without a value")),
    }
}

/// 42501 unless the user may do this to a sequence, by the statement's catalog and by the newest
/// one.
fn may_draw<T: Transaction>(op: SequenceOp, sequence: meridian_base::DescriptorId, rt: &Runtime<'_, T>) -> Result<()> {
    let any_of = match op {
        SequenceOp::Next => Privileges::USAGE.with(Privileges::UPDATE),
        SequenceOp::Set => Privileges::UPDATE,
        SequenceOp::Current | SequenceOp::Last => Privileges::USAGE.with(Privileges::SELECT),
    };
    let eval = rt.ctx.eval;
    let newest = rt.ctx.system.newest();
    let is_newest = newest.seen == rt.ctx.catalog.seen || rt.ctx.catalog.is_private;
    let catalogs = [Some(rt.ctx.catalog), Some(&newest).filter(|_| !is_newest)];
    for catalog in catalogs.into_iter().flatten() {
        if catalog.role_by_id(eval.role).is_some_and(|r| r.is_superuser) {
            continue;
        }
        let who = catalog.authority(eval.role, &eval.database);
        let Some((kind, access)) = catalog.access(sequence) else { continue };
        if catalog.held(&who, kind, access).and(any_of).is_empty() {
            let name = catalog.sequence_by_id(sequence).map(|s| s.name.clone()).unwrap_or_default();
            return Err(denied("sequence", &name));
        }
    }
    Ok(())
}

/// Compares two key values in one order.
pub(crate) fn compare(a: &Datum, b: &Datum, descending: bool, nulls_first: bool) -> Ordering {
    match (a.is_null(), b.is_null()) {
        (true, true) => Ordering::Equal,
        (true, false) => {
            if nulls_first {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        }
        (false, true) => {
            if nulls_first {
                Ordering::Greater
            } else {
                Ordering::Less
            }
        }
        _ if descending => b.cmp(a),
        _ => a.cmp(b),
    }
}

pub(crate) fn compare_keys(a: &[Datum], b: &[Datum], keys: &[SortPlan]) -> Ordering {
    let each = a.iter().zip(b).zip(keys).map(|((a, b), k)| compare(a, b, k.descending, k.nulls_first));
    each.fold(Ordering::Equal, Ordering::then)
}

/// A stable sort; each key is computed once.
pub(crate) async fn sort<T: Transaction>(
    rows: Vec<Row>,
    keys: &[SortPlan],
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Vec<Row>> {
    let mut keyed = Vec::with_capacity(rows.len());
    for row in rows {
        keyed.push((sort_key(keys, &row, frame, rt).await?, row));
    }
    let sorted = sort_by(keyed, |a, b| compare_keys(&a.0, &b.0, keys), rt).await?;
    let mut rows = Vec::with_capacity(sorted.len());
    for (_, row) in sorted {
        rt.step().await?;
        rows.push(row);
    }
    Ok(rows)
}

async fn sort_key<T: Transaction>(keys: &[SortPlan], row: &[Datum], frame: &Frame, rt: &mut Runtime<'_, T>) -> Result<Row> {
    let mut key = Vec::with_capacity(keys.len());
    for k in keys {
        key.push(eval_scalar(&k.expr, row, frame, rt).await?);
    }
    Ok(key)
}

/// The first `most` rows of the order. Twice as many are held.
async fn first_of<T: Transaction>(
    input: &Arc<Node>,
    keys: &[SortPlan],
    most: usize,
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Vec<Row>> {
    let enough = most.saturating_mul(2).max(most.saturating_add(4 * BATCH));
    let mut kept: Vec<(Row, Row)> = Vec::new();
    let order = |a: &(Row, Row), b: &(Row, Row)| compare_keys(&a.0, &b.0, keys);
    let mut op = Op::new(input, frame);
    // What is accounted for them.
    let mut bytes = 0;
    while let Some(rows) = op.next(rt, usize::MAX).await? {
        for row in rows {
            let key = sort_key(keys, &row, frame, rt).await?;
            bytes += rt.keep(std::slice::from_ref(&row))?;
            kept.push((key, row));
        }
        if kept.len() >= enough {
            kept = sort_by(kept, order, rt).await?;
            kept.truncate(most);
            rt.shared.memory -= std::mem::take(&mut bytes);
            for (_, row) in &kept {
                bytes += rt.keep(std::slice::from_ref(row))?;
            }
        }
    }
    let mut kept = sort_by(kept, order, rt).await?;
    kept.truncate(most);
    Ok(kept.into_iter().map(|(_, row)| row).collect())
}

/// So many are sorted at once.
const RUN: usize = 1024;

/// A stable sort that gives the thread away between its slices: runs are sorted, then merged two by
/// two.
pub(crate) async fn sort_by<T: Transaction, I>(
    items: Vec<I>,
    order: impl Fn(&I, &I) -> Ordering,
    rt: &mut Runtime<'_, T>,
) -> Result<Vec<I>> {
    let mut runs: Vec<Vec<I>> = Vec::new();
    let mut items = items.into_iter();
    loop {
        let mut run: Vec<I> = items.by_ref().take(RUN).collect();
        if run.is_empty() {
            break;
        }
        run.sort_by(&order);
        runs.push(run);
        rt.pause().await?;
    }
    // Neighbours, so that what was first stays first among equals.
    while runs.len() > 1 {
        let mut pairs = std::mem::take(&mut runs).into_iter();
        while let Some(a) = pairs.next() {
            let Some(b) = pairs.next() else {
                runs.push(a);
                break;
            };
            let mut merged = Vec::with_capacity(a.len() + b.len());
            let (mut a, mut b) = (a.into_iter().peekable(), b.into_iter().peekable());
            loop {
                let from_a = match (a.peek(), b.peek()) {
                    (Some(x), Some(y)) => order(x, y).is_le(),
                    (Some(_), None) => true,
                    (None, Some(_)) => false,
                    (None, None) => break,
                };
                merged.extend(if from_a { a.next() } else { b.next() });
                rt.step().await?;
            }
            runs.push(merged);
        }
    }
    Ok(runs.pop().unwrap_or_default())
}

async fn set_operation<T: Transaction>(
    op: SetOp,
    all: bool,
    l: Vec<Row>,
    r: Vec<Row>,
    rt: &mut Runtime<'_, T>,
) -> Result<Vec<Row>> {
    let mut out = Kept::default();
    let mut seen: Bulk<BTreeSet<Row>> = Bulk::default();
    if op == SetOp::Union {
        if all {
            let mut out = l;
            out.extend(r);
            return Ok(out);
        }
        for row in l.into_iter().chain(r) {
            rt.step().await?;
            if seen.insert(row.clone()) {
                out.push(row);
            }
        }
        return Ok(out.take());
    }
    let mut right: Bulk<BTreeMap<Row, usize>> = Bulk::default();
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

/// A common table expression, computed once per statement and frame.
async fn cte<T: Transaction>(
    id: u32,
    body: &Arc<Node>,
    step: Option<&(Arc<Node>, bool)>,
    args: Row,
    rt: &mut Runtime<'_, T>,
) -> Result<Arc<Kept>> {
    let key = (id, Exact(args));
    if let Some(rows) = rt.shared.ctes.get(&key) {
        return Ok(rows.clone());
    }
    let frame: Frame = key.1.0.clone().into();
    let before = rt.shared.memory;
    let mut rows = Kept::from(collect(body, &frame, rt).await?);
    if let Some((step, distinct)) = step {
        let mut seen: Bulk<BTreeSet<Row>> = Bulk::default();
        if *distinct {
            rows = unseen(rows, &mut seen, rt).await?;
        }
        // Each round works on the rows that the one before it added.
        let mut work = copies(&rows, rt).await?;
        while !work.is_empty() {
            rt.pause().await?;
            let outer = rt.shared.work_tables.insert(id, Arc::new(work));
            let next = collect(step, &frame, rt).await;
            match outer {
                Some(w) => rt.shared.work_tables.insert(id, w),
                None => rt.shared.work_tables.remove(&id),
            };
            work = Kept::from(next?);
            // Subqueries over the work table must not answer for the next round.
            rt.shared.forget_subqueries();
            if *distinct {
                work = unseen(work, &mut seen, rt).await?;
            }
            rt.keep(&work)?;
            rows.extend(copies(&work, rt).await?.take());
        }
    }
    let rows = Arc::new(rows);
    rt.shared.lasting += rt.shared.memory.saturating_sub(before);
    rt.shared.memory = before;
    rt.shared.ctes.insert(key, rows.clone());
    Ok(rows)
}

/// The rows that were not seen before.
async fn unseen<T: Transaction>(rows: Kept, seen: &mut BTreeSet<Row>, rt: &mut Runtime<'_, T>) -> Result<Kept> {
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
