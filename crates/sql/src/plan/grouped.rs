//! Scalar subqueries that aggregate the rows of the outer row become joins, and so do LATERAL ones:
//! what they ask for is computed once for all groups, and looked up.
//!
//! `(SELECT count(*) FROM b WHERE b.aid = a.id)` is the group of `a.id` in `b` grouped by `aid`. A
//! row without a group has 0 for a count, and NULL for the other aggregates. That is so where all
//! that ties the subquery to the outer row is equalities with columns of its own.
//!
//! Groups that no outer row asks for are computed as well. So nothing in them may fail (the sum of
//! a `numeric` of 131,072 digits aside), each outer row has to ask, and statistics have to say that
//! there are enough of them. And all groups are computed anew whenever the relation is: so it is
//! not one that depends on rows outside of it.

use super::access;
use super::estimate::Known;
use super::rel::{AggCall, JoinKind, Rel};
use super::unnest::{has_path, is_locked, is_plain, pull, sides};
use crate::plan::expr::{Cmp, ColId, Expr, Subquery, SubqueryBody, SubqueryKind};
use crate::types::{Datum, Type};
use std::collections::BTreeSet;

/// For fewer outer rows than these the subquery runs for each.
const ROWS_MIN: f64 = 4.0;
/// How many rows are read and grouped in the time that one lookup by an index takes.
const LOOKUP: f64 = 25.0;
/// The groups of more rows than these may not fit into a statement's memory.
const GROUPED_MAX: f64 = 3e6;

/// The rows whose subqueries are looked at.
#[derive(Clone, Copy)]
struct Asking<'a> {
    /// What else they are tested by.
    conds: &'a [Expr],
    /// How many of them are used, if not all.
    first: Option<f64>,
    known: &'a Known,
}

/// A relation joined with the groups that expressions over its rows ask for. `conds`: what else its
/// rows are tested by; `first`: how many of the rows that pass are used, if not all.
pub(super) fn join<'e>(
    mut rel: Rel,
    exprs: impl IntoIterator<Item = &'e mut Expr>,
    conds: &[Expr],
    first: Option<f64>,
    known: &Known,
) -> Rel {
    for e in exprs {
        replace(e, &mut rel, Asking { conds, first, known });
    }
    rel
}

fn replace(e: &mut Expr, rel: &mut Rel, asking: Asking) {
    if let Expr::Subquery(s) = e
        && let Some((groups, on, value)) = grouped(s, rel, asking)
    {
        let left = Box::new(std::mem::replace(rel, Rel::one_row()));
        *rel = Rel::Join { kind: JoinKind::Left, left, right: Box::new(groups), on };
        *e = value;
        return;
    }
    // What is computed whatever the rest comes to.
    match e {
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
        _ => {}
    }
}

/// A relation joined with another one that depends on its rows (LATERAL). Aggregates of the rows
/// that belong to each row are computed for all, where that pays.
pub(super) fn lateral(left: Rel, right: Rel, on: Vec<Expr>, first: Option<f64>, known: &Known) -> Rel {
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
    let Some((groups, ties, mut values)) = groups(aggregate, values, &left, Asking { conds: &[], first, known }) else {
        return Rel::Join { kind: JoinKind::Inner, left: Box::new(left), right: Box::new(right), on };
    };
    let conds = values.split_off(ids.len());
    let own = left.cols().into_iter().map(|id| (id, Expr::Column(id)));
    let exprs = own.chain(ids.into_iter().zip(values)).collect();
    let joined = Rel::Join { kind: JoinKind::Left, left: Box::new(left), right: Box::new(groups), on: ties };
    Rel::Project { input: Box::new(joined.filtered(conds)), exprs }.filtered(of_body).filtered(on)
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
    let (SubqueryKind::Scalar, SubqueryBody::Logical(body)) = (&s.kind, &s.body) else { return None };
    let (aggregate, value) = match &**body {
        Rel::Project { input, exprs } if exprs.len() == 1 => (&**input, exprs[0].1.clone()),
        one => (one, Expr::Column(*one.cols().first()?)),
    };
    let (groups, on, mut values) = groups(aggregate, vec![value], outer, asking)?;
    Some((groups, on, values.pop()?))
}

/// The groups of an aggregate of the rows of each outer row, how they are joined, and what values
/// over its columns are over the two.
fn groups(aggregate: &Rel, values: Vec<Expr>, outer: &Rel, asking: Asking) -> Option<(Rel, Vec<Expr>, Vec<Expr>)> {
    let Rel::Aggregate { input, keys, aggs } = aggregate else { return None };
    let is_kept = |value: &Expr| value.is_volatile() || value.needs_executor();
    if !keys.is_empty() || values.iter().any(is_kept) || is_locked(outer) || !is_plain(aggregate) {
        return None;
    }
    let cols: BTreeSet<ColId> = outer.cols().into_iter().collect();
    let is_own = |e: &Expr| e.columns().iter().all(|c| cols.contains(c));
    if !outer.free_columns().is_empty() || !asking.conds.iter().all(is_own) || !has_safe_rows(input) {
        return None;
    }
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
    if !aggs.iter().all(never_fails) || !inner.free_columns().is_empty() || aggs.iter().any(|(id, _)| cols.contains(id)) {
        return None;
    }
    let own: BTreeSet<ColId> = inner.cols().into_iter().collect();
    let ties = ties.iter().map(|c| sides(c, &own)).collect::<Option<Vec<_>>>()?;
    if ties.is_empty() || !ties.iter().all(|(l, _)| is_safe(l)) || !pays(outer, &inner, &ties, asking) {
        return None;
    }
    let by: BTreeSet<ColId> = ties.iter().flat_map(|(_, r)| r.columns()).collect();
    let keys = by.into_iter().map(|c| (c, Expr::Column(c))).collect();
    let on = ties.into_iter().map(|(l, r)| Expr::compare(Cmp::Eq, l, r)).collect();
    // A row without a group has counted none.
    let counts: BTreeSet<ColId> = aggs.iter().filter(|(_, call)| call.aggregate.name == "count").map(|(id, _)| *id).collect();
    let of_none = |id: ColId| counts.contains(&id).then(|| Expr::Coalesce(vec![Expr::Column(id), Expr::Const(Datum::Int(0))]));
    let mut values = values;
    values.iter_mut().for_each(|value| value.substitute(&of_none));
    Some((Rel::Aggregate { input: Box::new(inner), keys, aggs: aggs.clone() }, on, values))
}

/// Whether to group all rows is less work than to look for each outer row's.
fn pays(outer: &Rel, inner: &Rel, ties: &[(Expr, Expr)], asking: Asking) -> bool {
    let Asking { conds, first, known } = asking;
    if !known.covers(outer) || !known.covers(inner) {
        return false;
    }
    let equal: Vec<Expr> = ties.iter().map(|(l, r)| Expr::compare(Cmp::Eq, l.clone(), r.clone())).collect();
    let (asking, tests): (Vec<Expr>, Vec<Expr>) = conds.iter().cloned().partition(Expr::has_subquery);
    let (all, grouped) = (access::rows(outer, &tests, known), access::rows(inner, &[], known));
    let asked = first.map_or(all, |first| all.min(first / known.selectivity(&asking).max(f64::MIN_POSITIVE)));
    let table = super::unnest::below(inner);
    let is_looked_up = !matches!(table, Rel::Table { .. }) || has_path(table, &equal);
    asked >= ROWS_MIN && grouped <= GROUPED_MAX && (!is_looked_up || asked * LOOKUP > access::rows(table, &[], known))
}

/// Whether a relation is of tables, and no condition on its rows can fail.
fn has_safe_rows(rel: &Rel) -> bool {
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
