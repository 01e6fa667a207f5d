//! Scalar subqueries that aggregate the rows of the outer row become joins, and so do LATERAL ones,
//! and `EXISTS` inside of expressions: what they ask for is computed once for all groups, and
//! looked up.
//!
//! `(SELECT count(*) FROM b WHERE b.aid = a.id)` is the group of `a.id` in `b` grouped by `aid`. A
//! row without a group has 0 for a count, and NULL for the other aggregates. That is so where all
//! that ties the subquery to the outer row is equalities with columns of its own. `EXISTS` is
//! whether there is such a group.
//!
//! Groups that no outer row asks for are computed as well. So nothing in them may fail (the sum of
//! a `numeric` of 131,072 digits aside), and statistics have to say that enough outer rows ask. And
//! all groups are computed anew whenever the relation is: so it is not one that depends on rows
//! outside of it.

use super::access;
use super::estimate::{self, Known};
use super::rel::{AggCall, JoinKind, Rel};
use super::unnest::{has_path, is_locked, is_plain, is_plain_outside, pull, sides};
use crate::plan::expr::{Cmp, ColId, Expr, Subquery, SubqueryBody, SubqueryKind};
use crate::types::{Datum, Type};
use std::collections::BTreeSet;

/// For fewer outer rows than these the subquery runs for each.
const ROWS_MIN: f64 = 4.0;
/// How many rows are read and grouped in the time in which one row's are looked for in several
/// tables.
const LOOKUP: f64 = 25.0;
/// With more joins than these below it, a relation is joined with no more groups: each makes the
/// plan deeper, and none has to be joined.
const GROUPS_MAX: usize = 30;
/// The groups of more rows than these may not fit into a statement's memory.
const GROUPED_MAX: f64 = 3e6;

/// The rows whose subqueries are looked at.
#[derive(Clone, Copy)]
struct Asking<'a> {
    /// What else they are tested by.
    conds: &'a [Expr],
    /// How many of them are used, if not all.
    first: Option<f64>,
    /// The part of those that ask, after what comes first in an expression.
    part: f64,
    known: &'a Known,
    /// An operator above locks those that are to be locked.
    locks_above: bool,
}

impl Asking<'_> {
    /// Of the rows that ask, a part.
    fn of_part(self, part: f64) -> Self {
        Asking { part: self.part * part, ..self }
    }
}

/// A relation joined with the groups that expressions over its rows ask for. `conds`: what else its
/// rows are tested by; `first`: how many of the rows that pass are used, if not all; `locks_above`:
/// an operator above locks those that are to be locked.
pub(super) fn join<'e>(
    mut rel: Rel,
    exprs: impl IntoIterator<Item = &'e mut Expr>,
    conds: &[Expr],
    first: Option<f64>,
    known: &Known,
    locks_above: bool,
) -> Rel {
    for e in exprs {
        replace(e, &mut rel, Asking { conds, first, part: 1.0, known, locks_above });
    }
    rel
}

fn replace(e: &mut Expr, rel: &mut Rel, asking: Asking) {
    if let Expr::Subquery(s) = e
        && joined(rel) < GROUPS_MAX
        && let Some((groups, on, value)) = grouped(s, rel, asking)
    {
        let left = Box::new(std::mem::replace(rel, Rel::one_row()));
        *rel = Rel::Join { kind: JoinKind::Left, left, right: Box::new(groups), on };
        *e = value;
        return;
    }
    match e {
        // What is computed whatever the rest comes to.
        Expr::Call(_, args) | Expr::Row(_, args) | Expr::Array(_, args) => {
            args.iter_mut().for_each(|a| replace(a, rel, asking));
        }
        Expr::Compare(_, p) | Expr::Distinct(p) => {
            replace(&mut p.0, rel, asking);
            replace(&mut p.1, rel, asking);
        }
        Expr::Not(e) | Expr::IsNull(e) | Expr::IsBool(e, _) => replace(e, rel, asking),
        Expr::Cast(cast) => replace(&mut cast.expr, rel, asking),
        Expr::Coalesce(items) => items.iter_mut().take(1).for_each(|first| replace(first, rel, asking)),
        // What is computed for some rows.
        Expr::And(items) => in_turn(items, |passing| passing, rel, asking),
        Expr::Or(items) => in_turn(items, |passing| 1.0 - passing, rel, asking),
        Expr::Case(branches, otherwise) => {
            let mut asking = asking;
            for (when, then) in branches {
                let is_known = !when.has_subquery();
                let passing = asking.known.selectivity(std::slice::from_ref(when));
                replace(when, rel, asking);
                if is_known {
                    replace(then, rel, asking.of_part(passing));
                    asking = asking.of_part(1.0 - passing);
                } else {
                    replace(then, rel, asking);
                }
            }
            otherwise.iter_mut().for_each(|e| replace(e, rel, asking));
        }
        _ => {}
    }
}

/// How many joins there are above the left side of all.
fn joined(rel: &Rel) -> usize {
    std::iter::successors(Some(rel), |rel| match rel {
        Rel::Join { left, .. } => Some(left),
        _ => None,
    })
    .count()
}

/// Each item is computed for the rows that the items before leave open. `left`: how many those are,
/// by the part that meets an item.
fn in_turn(items: &mut [Expr], left: impl Fn(f64) -> f64, rel: &mut Rel, mut asking: Asking) {
    for item in items {
        // The part of the rows that a subquery lets pass has no estimate: all count as left.
        let is_known = !item.has_subquery();
        let passing = asking.known.selectivity(std::slice::from_ref(item));
        replace(item, rel, asking);
        asking = if is_known { asking.of_part(left(passing)) } else { asking };
    }
}

/// A relation joined with another one that depends on its rows (LATERAL), by an inner or a left
/// join. Aggregates of the rows that belong to each row are computed for all, where that pays.
pub(super) fn lateral(kind: JoinKind, left: Rel, right: Rel, on: Vec<Expr>, first: Option<f64>, known: &Known) -> Rel {
    let (body, of_body) = below_filters(&right);
    let (aggregate, of_aggregate, exprs) = match body {
        Rel::Project { input, exprs } => {
            let (aggregate, conds) = below_filters(input);
            (aggregate, conds, exprs.clone())
        }
        one => (one, Vec::new(), one.cols().into_iter().map(|id| (id, Expr::Column(id))).collect()),
    };
    let (ids, mut values): (Vec<ColId>, Vec<Expr>) = exprs.into_iter().unzip();
    values.extend(of_aggregate);
    // They become parts of values.
    let is_left = kind == JoinKind::Left;
    let may_be = !is_left || !of_body.iter().chain(&on).any(|c| c.needs_executor() || c.is_volatile());
    let asking = Asking { conds: &[], first, part: 1.0, known, locks_above: false };
    let groups = may_be.then(|| groups(aggregate, values, &left, asking)).flatten();
    let Some((groups, ties, mut values)) = groups else {
        return Rel::Join { kind, left: Box::new(left), right: Box::new(right), on };
    };
    let mut conds = values.split_off(ids.len());
    let own: Vec<_> = left.cols().into_iter().map(|id| (id, Expr::Column(id))).collect();
    let joined = Rel::Join { kind: JoinKind::Left, left: Box::new(left), right: Box::new(groups), on: ties };
    if !is_left {
        let exprs = own.into_iter().chain(ids.into_iter().zip(values)).collect();
        return Rel::Project { input: Box::new(joined.filtered(conds)), exprs }.filtered(of_body).filtered(on);
    }
    // A row whose group is dropped stays, with NULLs.
    let of_values = |id: ColId| ids.iter().position(|own| *own == id).map(|at| values[at].clone());
    conds.extend(of_body.into_iter().chain(on).map(|mut c| {
        c.substitute(&of_values);
        c
    }));
    let is_kept = (!conds.is_empty()).then_some(Expr::And(conds));
    let exprs = ids.iter().zip(&values).map(|(id, value)| {
        let value = match &is_kept {
            Some(kept) => Expr::Case(vec![(kept.clone(), value.clone())], None),
            None => value.clone(),
        };
        (*id, value)
    });
    let exprs = own.into_iter().chain(exprs).collect();
    Rel::Project { input: Box::new(joined), exprs }
}

/// Whether a relation has one row, whatever there is below it.
pub(super) fn is_one_row(rel: &Rel) -> bool {
    match rel {
        Rel::Project { input, .. } => is_one_row(input),
        Rel::Aggregate { keys, .. } => keys.is_empty(),
        _ => false,
    }
}

/// What is below a relation's filters, and their conditions.
fn below_filters(mut rel: &Rel) -> (&Rel, Vec<Expr>) {
    let mut conds = Vec::new();
    while let Rel::Filter { input, conds: more } = rel {
        conds.extend(more.iter().cloned());
        rel = input;
    }
    (rel, conds)
}

/// The groups that a subquery asks for, how they are joined, and its value over the two.
fn grouped(s: &Subquery, outer: &Rel, asking: Asking) -> Option<(Rel, Vec<Expr>, Expr)> {
    let SubqueryBody::Logical(body) = &s.body else { return None };
    match s.kind {
        SubqueryKind::Exists => return exists(body, outer, asking),
        SubqueryKind::Scalar => {}
        _ => return None,
    }
    let (aggregate, value) = match &**body {
        Rel::Project { input, exprs } if exprs.len() == 1 => (&**input, exprs[0].1.clone()),
        one => (one, Expr::Column(*one.cols().first()?)),
    };
    let (groups, on, mut values) = groups(aggregate, vec![value], outer, asking)?;
    Some((groups, on, values.pop()?))
}

/// The values that tie an `EXISTS` to outer rows, how they are joined, and whether a row has some.
fn exists(body: &Rel, outer: &Rel, asking: Asking) -> Option<(Rel, Vec<Expr>, Expr)> {
    let cols = columns_for(outer, asking).filter(|_| is_plain_outside(body))?;
    let (inner, ties) = pull(body.clone(), &cols, true)?;
    let ties = ties_of(&inner, &ties, outer, true, asking).filter(|_| has_safe_rows(&inner))?;
    let by: BTreeSet<ColId> = ties.iter().flat_map(|(_, r)| r.columns()).collect();
    // Nothing equals NULL.
    let is_there = Expr::Not(Box::new(Expr::IsNull(Box::new(Expr::Column(*by.first()?)))));
    let exprs = by.into_iter().map(|c| (c, Expr::Column(c))).collect();
    let values = Rel::Distinct { input: Box::new(Rel::Project { input: Box::new(inner), exprs }), on: None };
    Some((values, equalities(ties), is_there))
}

/// The columns of outer rows that may be joined with what their subqueries ask for.
fn columns_for(outer: &Rel, asking: Asking) -> Option<BTreeSet<ColId>> {
    let cols: BTreeSet<ColId> = outer.cols().into_iter().collect();
    let is_own = |e: &Expr| e.columns().iter().all(|c| cols.contains(c));
    let may_be = (asking.locks_above || !is_locked(outer)) && outer.free_columns().is_empty() && asking.conds.iter().all(is_own);
    may_be.then_some(cols)
}

/// The equalities that tie the rows of a subquery to outer rows, if nothing else does and grouping
/// them pays.
fn ties_of(inner: &Rel, ties: &[Expr], outer: &Rel, is_test: bool, asking: Asking) -> Option<Vec<(Expr, Expr)>> {
    let own: BTreeSet<ColId> = inner.cols().into_iter().collect();
    let ties = ties.iter().map(|c| sides(c, &own)).collect::<Option<Vec<_>>>()?;
    let are_all = inner.free_columns().is_empty() && !ties.is_empty() && ties.iter().all(|(l, _)| is_safe(l));
    (are_all && pays(outer, inner, &ties, is_test, asking)).then_some(ties)
}

fn equalities(ties: Vec<(Expr, Expr)>) -> Vec<Expr> {
    ties.into_iter().map(|(l, r)| Expr::compare(Cmp::Eq, l, r)).collect()
}

/// The groups of an aggregate of the rows of each outer row, how they are joined, and what values
/// over its columns are over the two.
fn groups(aggregate: &Rel, values: Vec<Expr>, outer: &Rel, asking: Asking) -> Option<(Rel, Vec<Expr>, Vec<Expr>)> {
    let Rel::Aggregate { input, keys, aggs } = aggregate else { return None };
    let is_kept = |value: &Expr| value.is_volatile() || value.needs_executor();
    if !keys.is_empty() || values.iter().any(is_kept) || !is_plain_outside(aggregate) || !has_safe_rows(input) {
        return None;
    }
    let cols = columns_for(outer, asking)?;
    let (inner, ties) = pull((**input).clone(), &cols, false)?;
    let is_outer = |e: &Expr| e.columns().iter().any(|c| cols.contains(c));
    let never_fails = |(_, call): &(ColId, AggCall)| {
        let args = &call.aggregate.args;
        let is_exact = args.iter().all(|t| matches!(t, Type::Int2 | Type::Int4 | Type::Int8 | Type::Numeric(_)));
        let never_overflows = match call.aggregate.name {
            "count" | "min" | "max" | "bool_and" | "bool_or" | "every" => true,
            "sum" | "avg" => is_exact,
            _ => false,
        };
        never_overflows && call.exprs().into_iter().all(|e| !is_outer(e) && is_safe(e))
    };
    if !aggs.iter().all(never_fails) || aggs.iter().any(|(id, _)| cols.contains(id)) {
        return None;
    }
    let ties = ties_of(&inner, &ties, outer, false, asking)?;
    let by: BTreeSet<ColId> = ties.iter().flat_map(|(_, r)| r.columns()).collect();
    let keys = by.into_iter().map(|c| (c, Expr::Column(c))).collect();
    let on = equalities(ties);
    // A row without a group has counted none.
    let counts: BTreeSet<ColId> = aggs.iter().filter(|(_, call)| call.aggregate.name == "count").map(|(id, _)| *id).collect();
    let of_none = |id: ColId| counts.contains(&id).then(|| Expr::Coalesce(vec![Expr::Column(id), Expr::Const(Datum::Int(0))]));
    let mut values = values;
    values.iter_mut().for_each(|value| value.substitute(&of_none));
    Some((Rel::Aggregate { input: Box::new(inner), keys, aggs: aggs.clone() }, on, values))
}

/// Whether to group all rows is less work than to look for each outer row's. `is_test`: one row is
/// enough.
fn pays(outer: &Rel, inner: &Rel, ties: &[(Expr, Expr)], is_test: bool, asking: Asking) -> bool {
    let Asking { conds, first, part, known, .. } = asking;
    // All of its rows are there, and would be looked through for each.
    if is_computed_once(super::unnest::below(inner)) {
        return true;
    }
    if !known.covers(outer) || !known.covers(inner) {
        return false;
    }
    let equal: Vec<Expr> = ties.iter().map(|(l, r)| Expr::compare(Cmp::Eq, l.clone(), r.clone())).collect();
    let (asking, tests): (Vec<Expr>, Vec<Expr>) = conds.iter().cloned().partition(Expr::has_subquery);
    let (all, grouped) = (access::rows(outer, &tests, known), access::rows(inner, &[], known));
    let asked = first.map_or(all, |first| all.min(first / known.selectivity(&asking).max(f64::MIN_POSITIVE)));
    let table = super::unnest::below(inner);
    let asked = asked * part;
    if asked < ROWS_MIN || grouped > GROUPED_MAX {
        return false;
    }
    if !matches!(table, Rel::Table { .. }) {
        return asked * LOOKUP > access::rows(table, &[], known);
    }
    // Without an index that finds them, all rows are read for each.
    let Some(lookup) = access::lookup(table, &equal, known).filter(|_| has_path(table, &equal)) else { return true };
    let each = if is_test { lookup.cost_of_first() } else { lookup.cost };
    let whole = access::cost(inner, known) + estimate::cost_of_hash(asked, grouped);
    known.cost_of_lookups(asked, &lookup.path, each) > whole
}

/// Whether a relation is a common table expression that is computed as a whole, whatever is asked
/// of it. Any other may still be written in its place.
fn is_computed_once(rel: &Rel) -> bool {
    matches!(rel, Rel::Cte { cte, .. } if cte.step.is_some() || cte.is_materialized || !is_plain(&cte.body))
}

/// Whether a relation is of tables and common table expressions, and no condition on its rows can
/// fail.
fn has_safe_rows(rel: &Rel) -> bool {
    if is_computed_once(rel) {
        return true;
    }
    let is_of_tables = matches!(rel, Rel::Table { .. } | Rel::Filter { .. } | Rel::Project { .. } | Rel::Join { .. });
    is_of_tables && rel.exprs().into_iter().all(is_safe) && rel.inputs().into_iter().all(has_safe_rows)
}

/// Whether an expression has a value for every row.
fn is_safe(e: &Expr) -> bool {
    let is_int = |t: &Type| matches!(t, Type::Int2 | Type::Int4 | Type::Int8);
    let is_text = |t: &Type| matches!(t, Type::Text | Type::Varchar(_) | Type::Char(_) | Type::Name);
    let is_one = match e {
        Expr::Const(_)
        | Expr::Param(_)
        | Expr::Column(_)
        | Expr::Compare(..)
        | Expr::And(_)
        | Expr::Or(_)
        | Expr::Not(_)
        | Expr::IsNull(_)
        | Expr::IsBool(..)
        | Expr::Distinct(_)
        | Expr::Case(..)
        | Expr::Coalesce(_)
        | Expr::In(..) => true,
        Expr::Cast(cast) => match &cast.to {
            Type::Int8 | Type::Numeric(None) => is_int(&cast.from),
            Type::Text => is_text(&cast.from),
            _ => false,
        },
        _ => false,
    };
    is_one && e.children().into_iter().all(is_safe)
}
