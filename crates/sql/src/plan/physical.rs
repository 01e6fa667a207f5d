//! Physical plans, and how a logical plan becomes one.

mod dml;
mod escrow;
mod groups;
mod joins;
mod limits;
mod locks;
mod scans;
mod windows;

use super::access;
use super::estimate::{self, Known};
use super::node::*;
use super::rel::*;
use super::table::TablePlan;
use super::unnest;
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
        Ok(SubPlan { node, args, is_plain: unnest::is_plain(rel) })
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
