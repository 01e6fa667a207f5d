//! Physical plans, and how a logical plan becomes one.

mod dml;
mod escrow;
mod groups;
mod limits;
mod locks;
mod scans;
mod windows;

use super::access;
use super::estimate::{self, Known};
use super::node::*;
use super::optimize;
use super::rel::*;
use super::table::TablePlan;
use super::unnest::is_plain;
use crate::catalog::relation::TableRef;
use crate::env::Locking;
use crate::plan::expr::*;
use crate::types::Datum;
use meridian_base::{Error, Result};
use scans::TableScan;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A compiled relation.
struct Built {
    node: Arc<Node>,
    layout: Vec<ColId>,
    /// What its rows are ordered by, columns fixed to one value left out.
    order: Vec<(ColId, bool, bool)>,
    /// Columns that have one value in all rows.
    fixed: BTreeSet<ColId>,
    rows: f64,
    /// Whether that rests on statistics.
    is_counted: bool,
}

impl Built {
    fn plain(node: Node, layout: Vec<ColId>, rows: f64) -> Built {
        Built { node: Arc::new(node), layout, order: Vec::new(), fixed: BTreeSet::new(), rows, is_counted: false }
    }
}

/// What the parent would like the order to be.
type Wish<'w> = Option<&'w [(ColId, bool, bool)]>;

/// Compiles a statement's relation; its output is exactly `out`. Also what it costs, as far as
/// statistics tell (microseconds).
pub(crate) fn compile(
    rel: &Rel,
    out: &[ColId],
    known: &Known,
    tables: &mut dyn FnMut(&TableRef) -> Result<Arc<TablePlan>>,
) -> Result<(Arc<Node>, f64)> {
    let (stack, ctes) = (super::limits::mark(), RefCell::default());
    let mut c = Compiler {
        args: Vec::new(),
        tables,
        ctes: &ctes,
        written: None,
        blind: BTreeSet::new(),
        stack,
        known,
        first: None,
        cost: 0.0,
        is_trial: false,
    };
    let need: BTreeSet<ColId> = out.iter().copied().collect();
    let built = c.rel(rel, &need, None)?;
    Ok((c.exactly(built, out)?, c.cost))
}

struct Compiler<'c> {
    /// The columns in the frame.
    args: Vec<ColId>,
    tables: &'c mut dyn FnMut(&TableRef) -> Result<Arc<TablePlan>>,
    ctes: &'c RefCell<BTreeMap<u32, CompiledCte>>,
    /// The table whose rows are changed, by its first column: they are read whole.
    written: Option<ColId>,
    /// Escrow columns whose numbers nobody asks for, though they are read.
    blind: BTreeSet<ColId>,
    /// Where the stack was at the start.
    stack: usize,
    known: &'c Known,
    /// How many of the first rows are used, if it is known and no others have to be read for that.
    first: Option<f64>,
    /// Of what was compiled so far.
    cost: f64,
    /// Whether only the cost is asked for.
    is_trial: bool,
}

/// A common table expression, planned once however often it is named.
#[derive(Clone)]
struct CompiledCte {
    free: Vec<ColId>,
    body: Arc<Node>,
    step: Option<(Arc<Node>, bool)>,
    rows: f64,
}

impl Compiler<'_> {
    /// For a plan with a frame of its own.
    fn inner(&mut self, args: Vec<ColId>) -> Compiler<'_> {
        let Compiler { tables, ctes, written, blind, stack, known, is_trial, .. } = self;
        let (written, stack, is_trial) = (*written, *stack, *is_trial);
        let (first, cost, blind) = (None, 0.0, blind.clone());
        Compiler { args, tables: &mut **tables, ctes, written, blind, stack, known, first, cost, is_trial }
    }
    fn cte(&mut self, cte: &Cte) -> Result<CompiledCte> {
        let known = self.ctes.borrow().get(&cte.id).cloned();
        if let Some(compiled) = known {
            return Ok(compiled);
        }
        let mut free = cte.body.free_columns();
        if let Some((step, _)) = &cte.step {
            free.extend(step.free_columns());
        }
        free.sort_unstable();
        free.dedup();
        let mut inner = self.inner(free.clone());
        let (body, rows) = inner.whole(&cte.body)?;
        let step = match &cte.step {
            Some((s, distinct)) => Some((inner.whole(s)?.0, *distinct)),
            None => None,
        };
        let compiled = CompiledCte { free, body, step, rows };
        self.ctes.borrow_mut().insert(cte.id, compiled.clone());
        Ok(compiled)
    }
    fn scalar(&mut self, e: &Expr, layout: &[ColId]) -> Result<Scalar> {
        let mut expr = e.clone();
        self.resolve(&mut expr, layout)?;
        let pending = expr.needs_executor();
        Ok(Scalar { expr, pending })
    }
    fn scalars(&mut self, list: &[Expr], layout: &[ColId]) -> Result<Vec<Scalar>> {
        list.iter().map(|e| self.scalar(e, layout)).collect()
    }
    fn resolve(&mut self, e: &mut Expr, layout: &[ColId]) -> Result<()> {
        match e {
            Expr::Column(c) => {
                *e = self.place(*c, layout)?;
                return Ok(());
            }
            Expr::Subquery(s) => {
                if let SubqueryBody::Logical(rel) = &s.body {
                    let plan = self.subplan(rel, layout, matches!(s.kind, SubqueryKind::Exists))?;
                    s.body = SubqueryBody::Physical(Arc::new(plan));
                }
            }
            _ => {}
        }
        e.children_mut().into_iter().try_for_each(|c| self.resolve(c, layout))?;
        if let Some(test) = OneOf::of(e) {
            *e = Expr::OneOf(Box::new(test));
        }
        Ok(())
    }
    fn place(&self, c: ColId, layout: &[ColId]) -> Result<Expr> {
        if let Some(at) = layout.iter().position(|l| *l == c) {
            return Ok(Expr::Slot(at as u32));
        }
        match self.args.iter().position(|a| *a == c) {
            Some(at) => Ok(Expr::Arg(at as u32)),
            None => Err(Error::internal("a column of the plan has no place")),
        }
    }
    /// A plan with its own frame.
    fn subplan(&mut self, rel: &Rel, layout: &[ColId], no_columns: bool) -> Result<SubPlan> {
        let free = rel.free_columns();
        let args = free.iter().map(|c| self.place(*c, layout)).collect::<Result<Vec<_>>>()?;
        let out = if no_columns { Vec::new() } else { rel.cols() };
        let mut inner = self.inner(free);
        let need = out.iter().copied().collect();
        let built = inner.rel(rel, &need, None)?;
        let node = inner.exactly(built, &out)?;
        self.cost += inner.cost;
        Ok(SubPlan { node, args })
    }
    /// Makes the output exactly these columns.
    fn exactly(&mut self, built: Built, out: &[ColId]) -> Result<Arc<Node>> {
        if built.layout == out {
            return Ok(built.node);
        }
        let exprs = out.iter().map(|c| self.scalar(&Expr::Column(*c), &built.layout)).collect::<Result<_>>()?;
        Ok(Arc::new(Node::Project { input: built.node, exprs }))
    }

    fn rel(&mut self, rel: &Rel, need: &BTreeSet<ColId>, wish: Wish) -> Result<Built> {
        super::limits::check(self.stack)?;
        let passes_on =
            matches!(rel, Rel::Table { .. } | Rel::Filter { .. } | Rel::Project { .. } | Rel::Sort { .. } | Rel::Limit { .. });
        let takes = matches!(
            rel,
            Rel::Join { .. } | Rel::Aggregate { .. } | Rel::Distinct { .. } | Rel::LockRows { .. } | Rel::Window { .. }
        );
        if !passes_on && !takes {
            self.first = None;
        }
        match rel {
            Rel::Values { cols, rows } => {
                let rows_out = rows.iter().map(|r| self.scalars(r, &[])).collect::<Result<Vec<_>>>()?;
                Ok(Built::plain(Node::Values(rows_out), cols.clone(), rows.len() as f64))
            }
            Rel::Table { table, base, alias, locking, filters } => {
                let need = with_columns(need, filters.iter());
                let own = *base..*base + table.columns.len() as u32;
                let columns: Vec<u32> = need.iter().filter(|c| own.contains(c)).map(|c| c - base).collect();
                let estimates = (0..table.escrow.len()).filter(|at| need.contains(&(own.end + *at as u32))).collect();
                let of = TableScan { table, base: *base, alias, locking: *locking, columns, estimates };
                self.table(&of, filters, wish)
            }
            Rel::Shares(of) => self.shares(of),
            Rel::Computed { of, base } => {
                let own = *base..*base + of.columns().len() as u32;
                let columns: Vec<usize> = need.iter().filter(|c| own.contains(c)).map(|c| (c - base) as usize).collect();
                let layout = columns.iter().map(|c| base + *c as u32).collect();
                Ok(Built::plain(Node::Computed { of: of.clone(), columns }, layout, 200.0))
            }
            Rel::Function { calls, cols, ordinality } => {
                let calls = calls.iter().map(|(f, a)| Ok((f.clone(), self.scalars(a, &[])?))).collect::<Result<_>>()?;
                Ok(Built::plain(Node::Function { calls, ordinality: *ordinality }, cols.clone(), 100.0))
            }
            Rel::Filter { input, conds } => {
                // So many groups meet a condition, as far as is known.
                if matches!(**input, Rel::Aggregate { .. }) {
                    self.first = self.first.map(|first| first / estimate::HALF_RANGE.powi(conds.len().min(3) as i32));
                }
                let need = with_columns(need, conds.iter());
                let b = match &**input {
                    Rel::Window { input, calls } => self.windows(input, calls, conds, &need, wish)?,
                    input => self.rel(input, &need, wish)?,
                };
                let conds_out = self.scalars(&Expr::in_turn(conds), &b.layout)?;
                let part = if b.is_counted { self.known.selectivity(conds) } else { 0.3f64.powi(conds.len().min(3) as i32) };
                let rows = b.rows * part;
                Ok(Built { node: Arc::new(Node::Filter { input: b.node.clone(), conds: conds_out }), rows: rows.max(1.0), ..b })
            }
            Rel::Project { input, exprs } => self.project(input, exprs, need, wish),
            Rel::Join { kind, left, right, on } => self.join(*kind, left, right, on, need, wish),
            Rel::Aggregate { input, keys, aggs } => self.aggregate(input, keys, aggs, need, wish),
            Rel::Distinct { input, on } => self.distinct(rel, input, on.as_deref(), wish),
            Rel::Sort { input, keys } => self.sort(input, keys, need),
            Rel::LockRows { input, of, is_limited } => self.lock_rows(input, of, *is_limited, need, wish),
            Rel::Limit { input, limit, offset } => self.limit(input, limit.as_ref(), offset.as_ref(), need),
            Rel::SetOp { op, all, left, right, cols } => {
                let (l, r) = (self.whole(left)?, self.whole(right)?);
                let rows = l.1 + r.1;
                Ok(Built::plain(Node::SetOp { op: *op, all: *all, left: l.0, right: r.0 }, cols.clone(), rows))
            }
            Rel::Cte { cte, cols } => {
                let CompiledCte { free, body, step, rows } = self.cte(cte)?;
                let args = free.iter().map(|c| self.scalar(&Expr::Column(*c), &[])).collect::<Result<_>>()?;
                Ok(Built::plain(Node::Cte { id: cte.id, name: cte.name.clone(), body, step, args }, cols.clone(), rows))
            }
            Rel::WorkTable { id, cols } => Ok(Built::plain(Node::WorkTable { id: *id }, cols.clone(), 10.0)),
            Rel::Window { input, calls } => self.windows(input, calls, &[], need, wish),
            Rel::ProjectSet { input, calls } => {
                let b = self.rel(input, &with_columns(need, calls.iter().flat_map(|c| &c.2)), None)?;
                let out = calls.iter().map(|(_, f, a)| Ok((f.clone(), self.scalars(a, &b.layout)?))).collect::<Result<_>>()?;
                let layout = b.layout.iter().copied().chain(calls.iter().map(|c| c.0)).collect();
                Ok(Built::plain(Node::ProjectSet { input: b.node, calls: out }, layout, b.rows * 10.0))
            }
            Rel::Dml { dml, cols } => self.dml(dml, cols),
            Rel::First { ctes, input } => {
                let before = ctes.iter().map(|c| Ok(self.whole(c)?.0)).collect::<Result<_>>()?;
                let b = self.rel(input, need, wish)?;
                Ok(Built { node: Arc::new(Node::First { before, input: b.node.clone() }), ..b })
            }
        }
    }

    fn distinct(&mut self, rel: &Rel, input: &Rel, on: Option<&[Expr]>, wish: Wish) -> Result<Built> {
        let cols = input.cols();
        let all: BTreeSet<ColId> = cols.iter().copied().collect();
        self.first = self.first.filter(|_| self.known.covers(input)).and_then(|first| {
            let rows = access::rows(input, &[], self.known);
            let kept = on.map_or_else(|| access::rows(rel, &[], self.known), |on| self.known.combinations(on.iter(), rows));
            let part = first / kept.max(1.0);
            (part < groups::PART_IN_ORDER).then_some(rows * part)
        });
        let b = self.rel(input, &with_columns(&all, on.into_iter().flatten()), wish)?;
        match on {
            None => {
                let (order, fixed, is_counted) = (b.order.clone(), b.fixed.clone(), b.is_counted);
                let rows = if is_counted { access::rows(rel, &[], self.known) } else { b.rows };
                let node = self.exactly(b, &cols)?;
                let node = Arc::new(Node::Distinct { input: node, on: None });
                Ok(Built { node, layout: cols, order, fixed, rows, is_counted })
            }
            Some(on) => {
                let is_one = on.iter().all(|e| matches!(e, Expr::Column(c) if b.fixed.contains(c)));
                let rows = if is_one { b.rows.min(1.0) } else { b.rows };
                let on = self.scalars(on, &b.layout)?;
                Ok(Built { node: Arc::new(Node::Distinct { input: b.node.clone(), on: Some(on) }), rows, ..b })
            }
        }
    }

    fn whole(&mut self, rel: &Rel) -> Result<(Arc<Node>, f64)> {
        let cols = rel.cols();
        let need = cols.iter().copied().collect();
        let b = self.rel(rel, &need, None)?;
        let rows = b.rows;
        Ok((self.exactly(b, &cols)?, rows))
    }

    fn project(&mut self, input: &Rel, exprs: &[(ColId, Expr)], need: &BTreeSet<ColId>, wish: Wish) -> Result<Built> {
        let kept: Vec<&(ColId, Expr)> = exprs.iter().filter(|(c, e)| need.contains(c) || e.is_volatile()).collect();
        let below = with_columns(&BTreeSet::new(), kept.iter().map(|k| &k.1));
        let renamed = |c: ColId| {
            exprs.iter().find(|(id, _)| *id == c).and_then(|(_, e)| if let Expr::Column(c) = e { Some(*c) } else { None })
        };
        let is_wished = wish.is_some();
        let wish: Option<Vec<_>> = wish.and_then(|w| w.iter().map(|(c, d, n)| renamed(*c).map(|c| (c, *d, *n))).collect());
        if is_wished && wish.is_none() {
            self.first = None;
        }
        let b = self.rel(input, &below, wish.as_deref())?;
        let upward = |c: ColId| kept.iter().find(|(_, e)| matches!(e, Expr::Column(x) if *x == c)).map(|k| k.0);
        let mut order = Vec::new();
        for (c, d, n) in &b.order {
            match upward(*c) {
                Some(c) => order.push((c, *d, *n)),
                None => break,
            }
        }
        let mut fixed: BTreeSet<ColId> = b.fixed.iter().filter_map(|c| upward(*c)).collect();
        fixed.extend(kept.iter().filter(|(_, e)| matches!(e, Expr::Const(_))).map(|k| k.0));
        let layout: Vec<ColId> = kept.iter().map(|k| k.0).collect();
        if layout == b.layout && kept.iter().all(|(c, e)| matches!(e, Expr::Column(x) if x == c)) {
            return Ok(Built { order, fixed, ..b });
        }
        let out = kept.iter().map(|(_, e)| self.scalar(e, &b.layout)).collect::<Result<_>>()?;
        let node = Arc::new(Node::Project { input: b.node, exprs: out });
        Ok(Built { node, layout, order, fixed, rows: b.rows, is_counted: b.is_counted })
    }

    fn sort(&mut self, input: &Rel, keys: &[SortKey], need: &BTreeSet<ColId>) -> Result<Built> {
        let need = with_columns(need, keys.iter().map(|k| &k.expr));
        let simple: Option<Vec<(ColId, bool, bool)>> = (keys.iter())
            .map(|k| if let Expr::Column(c) = k.expr { Some((c, k.descending, k.nulls_first)) } else { None })
            .collect();
        if simple.is_none() {
            self.first = None;
        }
        let is_partial = self.first.is_some();
        let b = self.rel(input, &need, simple.as_deref())?;
        let mut sorted = 0;
        if let Some(wanted) = simple {
            let left: Vec<_> = wanted.iter().filter(|(c, _, _)| !b.fixed.contains(c)).copied().collect();
            if b.order.starts_with(&left) {
                return Ok(b);
            }
            let in_order = leading(&left, &b.order);
            // Those that have one value are in order, too.
            sorted = wanted.iter().take_while(|k| b.fixed.contains(&k.0) || left[..in_order].contains(k)).count();
            sorted = if in_order == 0 { 0 } else { sorted };
        }
        let plans = self.sort_keys(keys, &b.layout)?;
        let order =
            keys.iter().map_while(|k| if let Expr::Column(c) = k.expr { Some((c, k.descending, k.nulls_first)) } else { None });
        let order = order.collect();
        let is_gradual = is_partial && sorted > 0;
        let node = Node::Sort { input: b.node.clone(), keys: plans, sorted, is_gradual, most: None };
        Ok(Built { node: Arc::new(node), order, ..b })
    }
    fn sort_keys(&mut self, keys: &[SortKey], layout: &[ColId]) -> Result<Vec<SortPlan>> {
        let key = |k: &SortKey, c: &mut Self| {
            Ok(SortPlan { expr: c.scalar(&k.expr, layout)?, descending: k.descending, nulls_first: k.nulls_first })
        };
        keys.iter().map(|k| key(k, self)).collect()
    }

    fn agg(&mut self, a: &AggCall, layout: &[ColId]) -> Result<AggPlan> {
        Ok(AggPlan {
            aggregate: a.aggregate.clone(),
            args: self.scalars(&a.args, layout)?,
            distinct: a.distinct,
            filter: a.filter.as_ref().map(|e| self.scalar(e, layout)).transpose()?,
            order: self.sort_keys(&a.order, layout)?,
        })
    }

    /// `min` and `max` of columns at the ends of indexes: the first row there is enough.
    fn ends(&mut self, input: &Rel, aggs: &[(ColId, AggCall)]) -> Result<Option<Built>> {
        let Rel::Table { table, base, alias, locking: Locking::None, filters } = input else { return Ok(None) };
        let mut all: Option<Built> = None;
        for (out, call) in aggs {
            let is_max = match call.aggregate.name {
                "min" => false,
                "max" => true,
                _ => return Ok(None),
            };
            let [Expr::Column(column)] = call.args.as_slice() else { return Ok(None) };
            let estimates = base + table.columns.len() as u32..base + width(table);
            if filters.iter().flat_map(Expr::columns).chain([*column]).any(|c| estimates.contains(&c)) {
                return Ok(None);
            }
            if call.filter.is_some() || !call.order.is_empty() {
                return Ok(None);
            }
            let mut filters = filters.clone();
            filters.push(Expr::Not(Box::new(Expr::IsNull(Box::new(Expr::Column(*column))))));
            let need = with_columns(&BTreeSet::from([*column]), filters.iter());
            let columns = need.iter().filter_map(|c| c.checked_sub(*base)).filter(|o| (*o as usize) < table.columns.len());
            let wish = [(*column, is_max, is_max)];
            let (columns, estimates) = (columns.collect(), Vec::new());
            let of = TableScan { table, base: *base, alias, locking: Locking::None, columns, estimates };
            self.first = Some(1.0);
            let b = self.in_order(&of, &filters, &wish)?;
            self.first = None;
            if !b.fixed.contains(column) && !b.order.starts_with(&wish) {
                return Ok(None);
            }
            let aggs = vec![self.agg(call, &b.layout)?];
            let one = Scalar { expr: Expr::Const(Datum::Int(1)), pending: false };
            let first = Node::Limit { input: b.node, limit: Some(one), offset: None };
            let found = Built::plain(
                Node::Aggregate { input: Arc::new(first), keys: Vec::new(), aggs, in_order: false },
                vec![*out],
                1.0,
            );
            all = Some(match all {
                None => found,
                Some(left) => {
                    let layout: Vec<ColId> = left.layout.iter().chain(&found.layout).copied().collect();
                    let node = Node::LoopJoin {
                        kind: JoinKind::Inner,
                        widths: (left.layout.len(), 1),
                        left: left.node,
                        right: found.node,
                        args: Vec::new(),
                        on: Vec::new(),
                        is_lookup: false,
                        estimate: None,
                    };
                    Built::plain(node, layout, 1.0)
                }
            });
        }
        Ok(all)
    }

    fn join(
        &mut self,
        kind: JoinKind,
        left: &Rel,
        right: &Rel,
        on: &[Expr],
        need: &BTreeSet<ColId>,
        wish: Wish,
    ) -> Result<Built> {
        let below = with_columns(need, on.iter());
        let free: BTreeSet<ColId> = right.free_columns().into_iter().collect();
        let mut left_need: BTreeSet<ColId> = below.clone();
        left_need.extend(&free);
        // How many left rows it takes, if only some of the first joined ones are used.
        let first = self.first.take().filter(|_| self.known.covers(left) && self.known.covers(right)).map(|first| {
            let join = Rel::Join { kind, left: Box::new(left.clone()), right: Box::new(right.clone()), on: on.to_vec() };
            let joined = access::rows(&join, &[], self.known) / access::rows(left, &[], self.known).max(access::FEW);
            first / joined.max(f64::MIN_POSITIVE)
        });
        self.first = first;
        let l = self.rel(left, &left_need, wish)?;
        self.first = None;
        let is_in_order = satisfies(wish, &l.order, &l.fixed).0;
        let used = match (first, wish) {
            (Some(first), _) if is_in_order => first.min(l.rows),
            // With the rows that are alike in the part of the order that they are in.
            (Some(first), Some(wish)) => match satisfied(wish, &l.order, &l.fixed) {
                part if part.is_empty() => l.rows,
                part => (first + self.known.alike(part.iter().map(|(c, _, _)| *c), l.rows)).min(l.rows),
            },
            _ => l.rows,
        };
        let left_cols: BTreeSet<ColId> = l.layout.iter().copied().collect();
        let is_lateral = free.iter().any(|c| left_cols.contains(c));
        let right_cols: BTreeSet<ColId> = right.cols().into_iter().collect();
        // A lookup: the join's conditions choose the path into the right table.
        if kind != JoinKind::Full
            && !is_lateral
            && let Rel::Table { table, base, alias, locking, filters } = right
        {
            let (usable, rest): (Vec<Expr>, Vec<Expr>) =
                on.iter().cloned().partition(|c| !c.needs_executor() && !c.is_volatile());
            let all: Vec<Expr> = filters.iter().chain(&usable).cloned().collect();
            if self.is_to_look_up((used, l.rows), right, kind, &usable) {
                let looked =
                    Rel::Table { table: table.clone(), base: *base, alias: alias.clone(), locking: *locking, filters: all };
                return self.loop_join(kind, l, &looked, &rest, &below, true);
            }
        }
        if is_lateral {
            return self.loop_join(kind, l, right, on, &below, false);
        }
        if let Some(each) = self.of_each(kind, used, first.is_some(), left, right, on)? {
            return self.loop_join(kind, l, &each, &[], &below, false);
        }
        let (mut left_keys, mut right_keys, mut residual) = (Vec::new(), Vec::new(), Vec::new());
        for c in on {
            if let Expr::Compare(Cmp::Eq, p) = c
                && !c.needs_executor()
            {
                let of = |e: &Expr, cols: &BTreeSet<ColId>| {
                    let used = e.columns();
                    !used.is_empty()
                        && used.iter().all(|u| cols.contains(u) || self.args.contains(u))
                        && used.iter().any(|u| cols.contains(u))
                };
                if of(&p.0, &left_cols) && of(&p.1, &right_cols) {
                    left_keys.push(p.0.clone());
                    right_keys.push(p.1.clone());
                    continue;
                }
                if of(&p.1, &left_cols) && of(&p.0, &right_cols) {
                    left_keys.push(p.1.clone());
                    right_keys.push(p.0.clone());
                    continue;
                }
            }
            residual.push(c.clone());
        }
        if left_keys.is_empty() {
            return self.loop_join(kind, l, right, on, &below, false);
        }
        let mut r = self.rel(right, &below, None)?;
        let mut l = l;
        let rows = self.joined_rows(kind, &l, &r, on);
        let is_counted = l.is_counted && r.is_counted;
        if is_counted {
            let (as_it_is, exchanged) = (estimate::cost_of_hash(used, r.rows), estimate::cost_of_hash(r.rows, l.rows));
            let is_ordered = is_in_order && wish.is_some_and(|w| !w.is_empty());
            let sort = if is_ordered { estimate::cost_of_sort(rows) } else { 0.0 };
            if kind == JoinKind::Inner && exchanged + sort < as_it_is {
                std::mem::swap(&mut l, &mut r);
                std::mem::swap(&mut left_keys, &mut right_keys);
            }
            self.cost += as_it_is.min(exchanged + sort) + estimate::cost_of_rows(rows);
        }
        let layout: Vec<ColId> = l.layout.iter().chain(&r.layout).copied().collect();
        let (order, fixed) = if kind == JoinKind::Full { Default::default() } else { (l.order, l.fixed) };
        let node = Node::HashJoin {
            estimate: is_counted.then_some(rows),
            kind,
            keeps_order: !order.is_empty(),
            left_keys: self.scalars(&left_keys, &l.layout)?,
            right_keys: self.scalars(&right_keys, &r.layout)?,
            on: self.scalars(&Expr::in_turn(&residual), &layout)?,
            widths: (l.layout.len(), r.layout.len()),
            left: l.node,
            right: r.node,
        };
        let layout = if kind.is_test() { l.layout } else { layout };
        Ok(Built { node: Arc::new(node), layout, order, fixed, rows, is_counted })
    }

    /// Whether the partners of each left row are looked up in the right table, by conditions that
    /// mention both. `used`: how many of the left rows are needed.
    fn is_to_look_up(&self, (used, left): (f64, f64), right: &Rel, kind: JoinKind, usable: &[Expr]) -> bool {
        let Rel::Table { table, base, filters, .. } = right else { return false };
        if let Some(rows) = self.known.rows_of(*base) {
            let Some(lookup) = access::lookup(right, usable, self.known) else { return false };
            // One partner is enough for who only asks whether there is one.
            let of_path = if kind.is_test() { lookup.cost_of_first() } else { lookup.cost };
            let looked_up = self.known.cost_of_lookups(used, &lookup.path, of_path);
            let right_rows = rows * self.known.selectivity(filters);
            let has_keys = usable.iter().any(|c| matches!(c, Expr::Compare(Cmp::Eq, _)));
            let joined = match (has_keys, kind) {
                (true, JoinKind::Inner) => estimate::cost_of_hash(used, right_rows).min(estimate::cost_of_hash(right_rows, left)),
                (true, kind) if kind.is_test() => estimate::cost_of_test(used, right_rows),
                (true, _) => estimate::cost_of_hash(used, right_rows),
                (false, _) => estimate::cost_of_loop(used, right_rows),
            };
            return looked_up < access::cost(right, self.known) + joined;
        }
        let all: Vec<Expr> = filters.iter().chain(usable).cloned().collect();
        let best = access::paths(table, *base, &all, &|_| None, self.known).into_iter().next();
        let alone = access::paths(table, *base, filters, &|_| None, self.known).first().map_or(1000.0, |p| p.rows);
        best.is_some_and(|p| p.rows < alone && left * (p.rows + 2.0) < alone + left)
    }

    /// The right side of a join as it is read for each left row, by the conditions of the join, if
    /// so few of these are `used` that this is less work than to read it as a whole. `is_part`:
    /// more of them are there.
    fn of_each(&mut self, kind: JoinKind, used: f64, is_part: bool, left: &Rel, right: &Rel, on: &[Expr]) -> Result<Option<Rel>> {
        let may_be = match kind {
            JoinKind::Semi | JoinKind::Anti => is_part,
            JoinKind::Inner | JoinKind::Left => self.known.covers(left) && self.known.covers(right),
            _ => false,
        };
        // A trial within a trial would double the work with every level.
        if !may_be || self.is_trial || on.is_empty() || on.iter().any(|c| c.needs_executor() || c.is_volatile()) {
            return Ok(None);
        }
        let rows = access::rows(right, &[], self.known);
        let joined = if kind.is_test() { estimate::cost_of_test(used, rows) } else { estimate::cost_of_hash(used, rows) };
        let of_all = access::cost(right, self.known) + joined;
        if used * estimate::AGAIN > of_all || !is_plain(right) {
            return Ok(None);
        }
        let each = optimize::under(right.clone(), on.to_vec(), self.known);
        let mut inner = self.inner(each.free_columns());
        inner.is_trial = true;
        let need = if kind.is_test() { BTreeSet::new() } else { right.cols().into_iter().collect() };
        inner.rel(&each, &need, None)?;
        let of_each = used * (estimate::AGAIN + inner.cost);
        Ok((of_each < of_all).then_some(each))
    }

    /// How many rows a join gives.
    fn joined_rows(&self, kind: JoinKind, l: &Built, r: &Built, on: &[Expr]) -> f64 {
        if !(l.is_counted && r.is_counted) {
            return if kind.is_test() { l.rows * 0.5 } else { l.rows.max(r.rows) };
        }
        if kind.is_test() {
            return access::tested(kind, l.rows, self.known.partnered(on, &r.layout.iter().copied().collect(), r.rows));
        }
        let fixed = l.fixed.union(&r.fixed).copied().collect();
        let rows = (l.rows * r.rows * self.known.selectivity(&estimate::telling(on.iter(), &fixed))).max(access::FEW);
        if kind == JoinKind::Inner { rows } else { rows.max(l.rows) }
    }

    fn loop_join(
        &mut self,
        kind: JoinKind,
        l: Built,
        right: &Rel,
        on: &[Expr],
        need: &BTreeSet<ColId>,
        is_lookup: bool,
    ) -> Result<Built> {
        let free: Vec<ColId> = right.free_columns();
        let is_correlated = free.iter().any(|c| l.layout.contains(c));
        let (args, r) = if is_correlated {
            let args = free.iter().map(|c| self.scalar(&Expr::Column(*c), &l.layout)).collect::<Result<Vec<_>>>()?;
            let mut inner = self.inner(free);
            let r = inner.rel(right, need, None)?;
            self.cost += l.rows * inner.cost;
            (args, r)
        } else {
            (Vec::new(), self.rel(right, need, None)?)
        };
        let layout: Vec<ColId> = l.layout.iter().chain(&r.layout).copied().collect();
        let rows = match (kind.is_test(), l.is_counted && r.is_counted) {
            (true, true) => access::tested(kind, l.rows, r.rows.min(1.0)),
            (true, false) => l.rows * 0.5,
            (false, true) if kind == JoinKind::Inner => (l.rows * r.rows * self.known.selectivity(on)).max(access::FEW),
            (false, true) => (l.rows * r.rows).max(l.rows),
            (false, false) => l.rows * r.rows.max(0.5),
        };
        let node = Node::LoopJoin {
            kind,
            args,
            on: self.scalars(&Expr::in_turn(on), &layout)?,
            widths: (l.layout.len(), r.layout.len()),
            left: l.node,
            right: r.node,
            is_lookup,
            estimate: (l.is_counted && r.is_counted).then_some(rows),
        };
        let (order, fixed) = if kind == JoinKind::Full { Default::default() } else { (l.order, l.fixed) };
        let (layout, is_counted) = (if kind.is_test() { l.layout } else { layout }, l.is_counted && r.is_counted);
        Ok(Built { node: Arc::new(node), layout, order, fixed, rows, is_counted })
    }
}

/// Whether a call has to be made: something above reads its value, or it does more than compute it.
fn is_wanted(id: ColId, exprs: Vec<&Expr>, need: &BTreeSet<ColId>) -> bool {
    need.contains(&id) || exprs.into_iter().any(Expr::is_volatile)
}

fn with_columns<'e>(need: &BTreeSet<ColId>, exprs: impl Iterator<Item = &'e Expr>) -> BTreeSet<ColId> {
    let mut out = need.clone();
    for e in exprs {
        out.extend(e.columns());
    }
    out
}

/// How many of the first parts of two orders are the same.
fn leading(a: &[(ColId, bool, bool)], b: &[(ColId, bool, bool)]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// The part of a wish, columns fixed to one value left out, that an order satisfies forwards or
/// backwards.
fn satisfied(wish: &[(ColId, bool, bool)], order: &[(ColId, bool, bool)], fixed: &BTreeSet<ColId>) -> Vec<(ColId, bool, bool)> {
    let mut wanted: Vec<_> = wish.iter().filter(|(c, _, _)| !fixed.contains(c)).copied().collect();
    let reversed: Vec<_> = order.iter().map(|(c, d, n)| (*c, !d, !n)).collect();
    wanted.truncate(leading(&wanted, order).max(leading(&wanted, &reversed)));
    wanted
}

/// Whether an order satisfies a wish, forwards or (second value) backwards. No wish is satisfied.
fn satisfies(wish: Wish, order: &[(ColId, bool, bool)], fixed: &BTreeSet<ColId>) -> (bool, bool) {
    let Some(wish) = wish else { return (true, false) };
    let wanted: Vec<_> = wish.iter().filter(|(c, _, _)| !fixed.contains(c)).copied().collect();
    if order.starts_with(&wanted) {
        return (true, false);
    }
    let reversed: Vec<_> = order.iter().map(|(c, d, n)| (*c, !d, !n)).collect();
    if reversed.starts_with(&wanted) { (true, true) } else { (false, false) }
}
