//! Logical plans: relations over columns named by [`ColId`]s.

use super::table::{ForeignKeys, TablePlan};
use crate::catalog::relation::TableRef;
use crate::catalog::{FkAction, ForeignKey, Table};
use crate::env::Locking;
use crate::plan::expr::{ColId, Expr, SubqueryBody};
use crate::show::Computed;
use crate::types::functions::{Aggregate, SetFunction};
use meridian_base::DescriptorId;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A relation.
#[derive(Clone, Debug)]
pub(crate) enum Rel {
    Values {
        cols: Vec<ColId>,
        rows: Vec<Vec<Expr>>,
    },
    /// A table; the column of ordinal `o` is `base + o`. Behind them is one for the estimate of
    /// each escrow column ([`width`]).
    Table {
        table: TableRef,
        base: ColId,
        alias: String,
        locking: Locking,
        filters: Vec<Expr>,
    },
    /// The shares of a table's rows.
    Shares(Box<SharesOf>),
    /// A system table, or what `SHOW` tells.
    Computed {
        of: Computed,
        base: ColId,
    },
    Function {
        calls: Vec<(SetFunction, Vec<Expr>)>,
        cols: Vec<ColId>,
        ordinality: bool,
    },
    Filter {
        input: Box<Rel>,
        conds: Vec<Expr>,
    },
    /// The input's columns and some computed ones; `only`: just those.
    Project {
        input: Box<Rel>,
        exprs: Vec<(ColId, Expr)>,
    },
    Join {
        kind: JoinKind,
        left: Box<Rel>,
        right: Box<Rel>,
        on: Vec<Expr>,
    },
    Aggregate {
        input: Box<Rel>,
        keys: Vec<(ColId, Expr)>,
        aggs: Vec<(ColId, AggCall)>,
    },
    /// Over all columns of the input, or `ON` some expressions (the first row of each, in the
    /// input's order).
    Distinct {
        input: Box<Rel>,
        on: Option<Vec<Expr>>,
    },
    Sort {
        input: Box<Rel>,
        keys: Vec<SortKey>,
    },
    Limit {
        input: Box<Rel>,
        limit: Option<Expr>,
        offset: Option<Expr>,
    },
    /// Locks the rows of tables that the input's rows are made of, in the input's order.
    LockRows {
        input: Box<Rel>,
        of: Vec<LockedTable>,
        /// Whether there is a limit above: then no rows may be locked that it does not let through.
        is_limited: bool,
    },
    SetOp {
        op: SetOp,
        all: bool,
        left: Box<Rel>,
        right: Box<Rel>,
        cols: Vec<ColId>,
    },
    /// A common table expression, computed once.
    Cte {
        cte: Arc<Cte>,
        cols: Vec<ColId>,
    },
    /// The rows of the last round of a recursive one.
    WorkTable {
        id: u32,
        cols: Vec<ColId>,
    },
    Window {
        input: Box<Rel>,
        calls: Vec<(ColId, WindowCall)>,
    },
    /// Select-list set-returning functions: each input row times the rows of the calls.
    ProjectSet {
        input: Box<Rel>,
        calls: Vec<(ColId, SetFunction, Vec<Expr>)>,
    },
    Dml {
        dml: Arc<Dml>,
        cols: Vec<ColId>,
    },
    /// Common table expressions that change data run first, whether they are used or not.
    First {
        ctes: Vec<Rel>,
        input: Box<Rel>,
    },
}

/// What each site has of the numbers of a table's rows: `SHOW ESCROW`.
#[derive(Clone, Debug)]
pub(crate) struct SharesOf {
    /// The table's rows.
    pub(crate) input: Rel,
    pub(crate) table: TableRef,
    /// The column of ordinal `o` is `base + o`.
    pub(crate) base: ColId,
    /// The input's columns of the primary key; then the escrow column's name, the site's region,
    /// its part of the number, how far deltas of this site may take it down, and up.
    pub(crate) cols: Vec<ColId>,
}

/// How many columns a table has in a statement.
pub(crate) fn width(table: &Table) -> u32 {
    (table.columns.len() + table.escrow.len()) as u32
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JoinKind {
    Inner,
    Left,
    /// A left join whose sides are exchanged: of plans alone.
    Right,
    Full,
    /// The left rows that have a partner.
    Semi,
    /// The left rows that have none.
    Anti,
}

impl JoinKind {
    /// Whether its rows are left rows, without anything of the right side.
    pub(crate) fn is_test(self) -> bool {
        matches!(self, JoinKind::Semi | JoinKind::Anti)
    }
    /// Whether it has a row for each right row without a partner.
    pub(crate) fn keeps_right(self) -> bool {
        matches!(self, JoinKind::Right | JoinKind::Full)
    }
    /// Whether left rows without a partner are dropped.
    pub(crate) fn drops_left(self) -> bool {
        matches!(self, JoinKind::Inner | JoinKind::Right | JoinKind::Semi)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetOp {
    Union,
    Intersect,
    Except,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SortKey {
    pub(crate) expr: Expr,
    pub(crate) descending: bool,
    pub(crate) nulls_first: bool,
}

/// A call of an aggregate.
#[derive(Clone, Debug)]
pub(crate) struct AggCall {
    pub(crate) aggregate: Arc<Aggregate>,
    pub(crate) args: Vec<Expr>,
    pub(crate) distinct: bool,
    pub(crate) filter: Option<Expr>,
    pub(crate) order: Vec<SortKey>,
}

impl AggCall {
    /// Whether computing one of them once gives both their values.
    pub(crate) fn is_one_value_with(&self, other: &AggCall) -> bool {
        let function = |call: &AggCall| (call.aggregate.name, call.aggregate.args.clone(), call.aggregate.result.clone());
        let is_volatile = self.args.iter().chain(&self.filter).chain(self.order.iter().map(|k| &k.expr)).any(Expr::is_volatile);
        let same_key =
            |(a, b): (&SortKey, &SortKey)| a.descending == b.descending && a.nulls_first == b.nulls_first && a.expr == b.expr;
        !is_volatile
            && self.distinct == other.distinct
            && self.args == other.args
            && self.filter == other.filter
            && self.order.len() == other.order.len()
            && self.order.iter().zip(&other.order).all(same_key)
            && function(self) == function(other)
    }
}

#[derive(Clone, Debug)]
pub(crate) enum WindowFunction {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile,
    Lag,
    Lead,
    FirstValue,
    LastValue,
    NthValue,
    Aggregate(Arc<Aggregate>),
}

#[derive(Clone, Debug)]
pub(crate) struct WindowCall {
    pub(crate) function: WindowFunction,
    pub(crate) args: Vec<Expr>,
    pub(crate) filter: Option<Expr>,
    pub(crate) partition: Vec<Expr>,
    pub(crate) order: Vec<SortKey>,
    pub(crate) frame: Frame,
}

/// A window frame.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) rows: bool,
    pub(crate) start: Bound,
    pub(crate) end: Bound,
}

#[derive(Clone, Debug)]
pub(crate) enum Bound {
    UnboundedPreceding,
    Preceding(Expr),
    CurrentRow,
    Following(Expr),
    UnboundedFollowing,
}

/// See [`Rel::Cte`].
#[derive(Debug)]
pub(crate) struct Cte {
    /// Unique in the statement: names its rows in the memo.
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) body: Rel,
    /// The recursive term, if it is a recursive one; `UNION` without `ALL`.
    pub(crate) step: Option<(Rel, bool)>,
    /// `AS MATERIALIZED`.
    pub(crate) is_materialized: bool,
}

impl Rel {
    /// One row without columns.
    pub(crate) fn one_row() -> Rel {
        Rel::Values { cols: Vec::new(), rows: vec![Vec::new()] }
    }
    pub(crate) fn filtered(self, conds: Vec<Expr>) -> Rel {
        if conds.is_empty() { self } else { Rel::Filter { input: Box::new(self), conds } }
    }
    /// Its output columns, in order.
    pub(crate) fn cols(&self) -> Vec<ColId> {
        match self {
            Rel::Values { cols, .. }
            | Rel::Function { cols, .. }
            | Rel::SetOp { cols, .. }
            | Rel::Cte { cols, .. }
            | Rel::WorkTable { cols, .. }
            | Rel::Dml { cols, .. } => cols.clone(),
            Rel::Table { table, base, .. } => (*base..*base + width(table)).collect(),
            Rel::Shares(of) => of.cols.clone(),
            Rel::Computed { of, base } => (0..of.columns().len() as u32).map(|o| base + o).collect(),
            Rel::Filter { input, .. }
            | Rel::Distinct { input, .. }
            | Rel::Sort { input, .. }
            | Rel::Limit { input, .. }
            | Rel::LockRows { input, .. }
            | Rel::First { input, .. } => input.cols(),
            Rel::Project { exprs, .. } => exprs.iter().map(|(c, _)| *c).collect(),
            Rel::Join { kind, left, .. } if kind.is_test() => left.cols(),
            Rel::Join { left, right, .. } => left.cols().into_iter().chain(right.cols()).collect(),
            Rel::Aggregate { keys, aggs, .. } => keys.iter().map(|k| k.0).chain(aggs.iter().map(|a| a.0)).collect(),
            Rel::Window { input, calls } => input.cols().into_iter().chain(calls.iter().map(|c| c.0)).collect(),
            Rel::ProjectSet { input, calls } => input.cols().into_iter().chain(calls.iter().map(|c| c.0)).collect(),
        }
    }
    pub(crate) fn inputs(&self) -> Vec<&Rel> {
        match self {
            Rel::Filter { input, .. }
            | Rel::Project { input, .. }
            | Rel::Aggregate { input, .. }
            | Rel::Distinct { input, .. }
            | Rel::Sort { input, .. }
            | Rel::Limit { input, .. }
            | Rel::LockRows { input, .. }
            | Rel::Window { input, .. }
            | Rel::ProjectSet { input, .. } => vec![input],
            Rel::Join { left, right, .. } | Rel::SetOp { left, right, .. } => vec![left, right],
            Rel::Cte { cte, .. } => std::iter::once(&cte.body).chain(cte.step.as_ref().map(|s| &s.0)).collect(),
            Rel::Dml { dml, .. } => vec![&dml.input],
            Rel::Shares(of) => vec![&of.input],
            Rel::First { ctes, input } => ctes.iter().chain(std::iter::once(&**input)).collect(),
            _ => Vec::new(),
        }
    }
    pub(crate) fn inputs_mut(&mut self) -> Vec<&mut Rel> {
        match self {
            Rel::Filter { input, .. }
            | Rel::Project { input, .. }
            | Rel::Aggregate { input, .. }
            | Rel::Distinct { input, .. }
            | Rel::Sort { input, .. }
            | Rel::Limit { input, .. }
            | Rel::LockRows { input, .. }
            | Rel::Window { input, .. }
            | Rel::ProjectSet { input, .. } => vec![input],
            Rel::Join { left, right, .. } | Rel::SetOp { left, right, .. } => vec![left, right],
            Rel::Shares(of) => vec![&mut of.input],
            Rel::First { ctes, input } => ctes.iter_mut().chain(std::iter::once(&mut **input)).collect(),
            _ => Vec::new(),
        }
    }
    /// The expressions of this node itself.
    pub(crate) fn exprs(&self) -> Vec<&Expr> {
        match self {
            Rel::Values { rows, .. } => rows.iter().flatten().collect(),
            Rel::Table { filters, .. } => filters.iter().collect(),
            Rel::Function { calls, .. } => calls.iter().flat_map(|(_, a)| a).collect(),
            Rel::Filter { conds, .. } => conds.iter().collect(),
            Rel::Project { exprs, .. } => exprs.iter().map(|(_, e)| e).collect(),
            Rel::Join { on, .. } => on.iter().collect(),
            Rel::Aggregate { keys, aggs, .. } => {
                keys.iter().map(|(_, e)| e).chain(aggs.iter().flat_map(|(_, a)| a.exprs())).collect()
            }
            Rel::Distinct { on, .. } => on.iter().flatten().collect(),
            Rel::Sort { keys, .. } => keys.iter().map(|k| &k.expr).collect(),
            Rel::Limit { limit, offset, .. } => limit.iter().chain(offset).collect(),
            Rel::Window { calls, .. } => calls.iter().flat_map(|(_, c)| c.exprs()).collect(),
            Rel::ProjectSet { calls, .. } => calls.iter().flat_map(|(_, _, a)| a).collect(),
            Rel::Dml { dml, .. } => dml.exprs(),
            Rel::Computed { .. }
            | Rel::Shares(_)
            | Rel::LockRows { .. }
            | Rel::SetOp { .. }
            | Rel::Cte { .. }
            | Rel::WorkTable { .. }
            | Rel::First { .. } => Vec::new(),
        }
    }
    /// Changes every expression of the tree. Common table expressions and DML are shared and never
    /// depend on what is replaced.
    pub(crate) fn visit_exprs_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        self.each_expr_mut(f);
        for input in self.inputs_mut() {
            input.visit_exprs_mut(f);
        }
    }
    /// The same for the expressions of this node itself.
    pub(crate) fn each_expr_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        match self {
            Rel::Values { rows, .. } => rows.iter_mut().flatten().for_each(&mut *f),
            Rel::Table { filters, .. } => filters.iter_mut().for_each(&mut *f),
            Rel::Function { calls, .. } => calls.iter_mut().flat_map(|(_, a)| a).for_each(&mut *f),
            Rel::Filter { conds, .. } => conds.iter_mut().for_each(&mut *f),
            Rel::Project { exprs, .. } => exprs.iter_mut().for_each(|(_, e)| f(e)),
            Rel::Join { on, .. } => on.iter_mut().for_each(&mut *f),
            Rel::Aggregate { keys, aggs, .. } => {
                keys.iter_mut().for_each(|(_, e)| f(e));
                for (_, a) in aggs {
                    a.args.iter_mut().chain(a.filter.as_mut()).for_each(&mut *f);
                    a.order.iter_mut().for_each(|k| f(&mut k.expr));
                }
            }
            Rel::Distinct { on, .. } => on.iter_mut().flatten().for_each(&mut *f),
            Rel::Sort { keys, .. } => keys.iter_mut().for_each(|k| f(&mut k.expr)),
            Rel::Limit { limit, offset, .. } => limit.iter_mut().chain(offset).for_each(&mut *f),
            Rel::Window { calls, .. } => {
                for (_, c) in calls {
                    c.args.iter_mut().chain(c.filter.as_mut()).chain(&mut c.partition).for_each(&mut *f);
                    c.order.iter_mut().for_each(|k| f(&mut k.expr));
                    for bound in [&mut c.frame.start, &mut c.frame.end] {
                        if let Bound::Preceding(e) | Bound::Following(e) = bound {
                            f(e);
                        }
                    }
                }
            }
            Rel::ProjectSet { calls, .. } => calls.iter_mut().flat_map(|(_, _, a)| a).for_each(&mut *f),
            Rel::Computed { .. }
            | Rel::Shares(_)
            | Rel::LockRows { .. }
            | Rel::SetOp { .. }
            | Rel::Cte { .. }
            | Rel::WorkTable { .. }
            | Rel::Dml { .. }
            | Rel::First { .. } => {}
        }
    }
    /// Whether a column is one of a projection's that has its name from elsewhere: perhaps from
    /// outside, where it is all that a subquery gives.
    fn hands_on(&self, col: ColId) -> bool {
        let Rel::Project { exprs, .. } = self else { return false };
        exprs.iter().any(|(id, e)| *id == col && matches!(e, Expr::Column(from) if *from == col))
    }
    /// Columns it uses and does not make: what a correlated one takes from outside.
    pub(crate) fn free_columns(&self) -> Vec<ColId> {
        let (mut used, mut made) = (Vec::new(), BTreeSet::new());
        self.add_columns(&mut used, &mut made, &mut BTreeSet::new());
        used.retain(|c| !made.contains(c));
        used.sort_unstable();
        used.dedup();
        used
    }
    fn add_columns(&self, used: &mut Vec<ColId>, made: &mut BTreeSet<ColId>, ctes: &mut BTreeSet<u32>) {
        let below: BTreeSet<ColId> = self.inputs().into_iter().flat_map(Rel::cols).collect();
        made.extend(self.cols().into_iter().filter(|c| !below.contains(c) && !self.hands_on(*c)));
        if let Rel::Dml { dml, .. } = self {
            // The row that is written, and the one that was proposed.
            made.extend(dml.row_columns());
        }
        for e in self.exprs() {
            e.add_columns(used);
        }
        if self.is_first_of_cte(ctes) {
            for i in self.inputs() {
                i.add_columns(used, made, ctes);
            }
        }
    }
    /// Whether what is below has not been seen yet: a common table expression is below everything
    /// that names it, and those may name each other. `ctes` are those that were seen.
    pub(crate) fn is_first_of_cte(&self, ctes: &mut BTreeSet<u32>) -> bool {
        if let Rel::Cte { cte, .. } = self { ctes.insert(cte.id) } else { true }
    }
    /// Of a common table expression.
    pub(crate) fn cte_id(&self) -> Option<u32> {
        if let Rel::Cte { cte, .. } = self { Some(cte.id) } else { None }
    }
    /// Whether running it changes rows.
    pub(crate) fn changes(&self) -> bool {
        let mut changes = false;
        self.visit(&mut |r| changes |= matches!(r, Rel::Dml { .. }));
        changes
    }
    /// Calls `f` on this and everything below, subqueries in expressions included. What is inside
    /// of a common table expression is visited once.
    pub(crate) fn visit(&self, f: &mut dyn FnMut(&Rel)) {
        self.visit_but(&mut BTreeSet::new(), f);
    }
    /// The same, without what is inside of these common table expressions.
    pub(crate) fn visit_but(&self, ctes: &mut BTreeSet<u32>, f: &mut dyn FnMut(&Rel)) {
        f(self);
        for e in self.exprs() {
            subqueries_of(e, &mut |rel| rel.visit_but(ctes, f));
        }
        if self.is_first_of_cte(ctes) {
            for i in self.inputs() {
                i.visit_but(ctes, f);
            }
        }
    }
}

fn subqueries_of(e: &Expr, f: &mut dyn FnMut(&Rel)) {
    if let Expr::Subquery(s) = e
        && let SubqueryBody::Logical(rel) = &s.body
    {
        f(rel);
    }
    for c in e.children() {
        subqueries_of(c, f);
    }
}

impl AggCall {
    pub(crate) fn exprs(&self) -> Vec<&Expr> {
        self.args.iter().chain(&self.filter).chain(self.order.iter().map(|k| &k.expr)).collect()
    }
}

impl WindowCall {
    pub(crate) fn exprs(&self) -> Vec<&Expr> {
        let bounds = [&self.frame.start, &self.frame.end].into_iter().filter_map(|b| match b {
            Bound::Preceding(e) | Bound::Following(e) => Some(e),
            _ => None,
        });
        self.args
            .iter()
            .chain(&self.filter)
            .chain(&self.partition)
            .chain(self.order.iter().map(|k| &k.expr))
            .chain(bounds)
            .collect()
    }
}

/// A bound data-modifying statement.
#[derive(Clone, Debug)]
pub(crate) struct Dml {
    pub(crate) table: Arc<TablePlan>,
    pub(crate) keys: Arc<ForeignKeys>,
    /// Insert: one column per target. Update, delete: the target's columns, then those of
    /// `FROM`/`USING`.
    pub(crate) input: Rel,
    pub(crate) kind: DmlKind,
    /// The target's columns in `returning` are `base + ordinal`.
    pub(crate) base: ColId,
    pub(crate) returning: Vec<(ColId, Expr)>,
}

#[derive(Clone, Debug)]
pub(crate) enum DmlKind {
    /// Ordinals of the input's columns.
    Insert {
        targets: Vec<u32>,
        conflict: Option<Conflict>,
        /// No region is given, and the table says whose it is.
        infers: bool,
    },
    /// Over the input's columns.
    Update {
        set: Vec<(u32, Expr)>,
        /// Escrow columns, and what is added to each.
        deltas: Vec<(u32, Expr)>,
    },
    Delete,
}

/// `ON CONFLICT`.
#[derive(Clone, Debug)]
pub(crate) struct Conflict {
    /// Positions of the indexes that decide; all unique ones if empty.
    pub(crate) arbiters: Vec<usize>,
    pub(crate) update: Option<ConflictUpdate>,
}

/// Expressions over the existing row (`base + ordinal`) and the proposed one (`excluded +
/// ordinal`).
#[derive(Clone, Debug)]
pub(crate) struct ConflictUpdate {
    pub(crate) excluded: ColId,
    pub(crate) set: Vec<(u32, Expr)>,
    /// Escrow columns, and what is added to each.
    pub(crate) deltas: Vec<(u32, Expr)>,
    pub(crate) filter: Option<Expr>,
}

impl Dml {
    /// Its table, and those that foreign keys make it change with it.
    pub(crate) fn changes(&self) -> BTreeSet<DescriptorId> {
        let mut changed = BTreeSet::from([self.table.table.id]);
        let action = |fk: &ForeignKey| match self.kind {
            DmlKind::Insert { .. } | DmlKind::Update { .. } => fk.on_update,
            DmlKind::Delete => fk.on_delete,
        };
        let acts = |fk: &ForeignKey| !matches!(action(fk), FkAction::NoAction | FkAction::Restrict);
        let children = self.keys.children.values().flatten().filter(|(_, fk)| acts(fk));
        changed.extend(children.map(|(child, _)| child.table.id));
        changed
    }
    /// The columns that stand for the written row and, in `ON CONFLICT DO UPDATE`, for the proposed
    /// one.
    pub(crate) fn row_columns(&self) -> Vec<ColId> {
        let width = self.table.types.len() as u32;
        let mut cols: Vec<ColId> = (self.base..self.base + width).collect();
        if let DmlKind::Insert { conflict: Some(Conflict { update: Some(u), .. }), .. } = &self.kind {
            cols.extend(u.excluded..u.excluded + width);
        }
        cols
    }
    pub(crate) fn exprs(&self) -> Vec<&Expr> {
        let kind: Vec<&Expr> = match &self.kind {
            DmlKind::Insert { conflict: Some(Conflict { update: Some(u), .. }), .. } => {
                u.set.iter().chain(&u.deltas).map(|s| &s.1).chain(&u.filter).collect()
            }
            DmlKind::Update { set, deltas } => set.iter().chain(deltas).map(|s| &s.1).collect(),
            _ => Vec::new(),
        };
        kind.into_iter().chain(self.returning.iter().map(|r| &r.1)).collect()
    }
    pub(crate) fn exprs_mut(&mut self) -> Vec<&mut Expr> {
        let kind: Vec<&mut Expr> = match &mut self.kind {
            DmlKind::Insert { conflict: Some(Conflict { update: Some(u), .. }), .. } => {
                u.set.iter_mut().chain(&mut u.deltas).map(|s| &mut s.1).chain(&mut u.filter).collect()
            }
            DmlKind::Update { set, deltas } => set.iter_mut().chain(deltas).map(|s| &mut s.1).collect(),
            _ => Vec::new(),
        };
        kind.into_iter().chain(self.returning.iter_mut().map(|r| &mut r.1)).collect()
    }
}

/// A table whose rows are locked.
#[derive(Clone, Debug)]
pub(crate) struct LockedTable {
    pub(crate) table: TableRef,
    pub(crate) base: ColId,
    pub(crate) alias: String,
    pub(crate) locking: Locking,
}

impl LockedTable {
    /// The columns that tell where a row is.
    pub(crate) fn places(&self) -> BTreeSet<ColId> {
        let key = self.table.primary().columns.iter().map(|c| c.ordinal);
        key.chain(self.table.region_column()).map(|o| self.base + o).collect()
    }
}
