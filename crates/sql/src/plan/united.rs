//! A limit over a `UNION ALL` is one over each of its sides, too: no side gives more rows than that
//! to the result, whichever they are.

use super::rel::{Rel, SetOp, SortKey};
use super::unnest::is_locked;
use crate::plan::expr::{ColId, Expr};
use crate::types::Datum;
use std::collections::BTreeMap;

/// What is below a limit: of the sides of a `UNION ALL`, the first rows.
pub(super) fn limit_sides(input: Rel, limit: Option<&Expr>, offset: Option<&Expr>) -> Rel {
    match most(limit, offset) {
        Some(most) => first_of(input, &most),
        None => input,
    }
}

/// How many of the first rows a limit and an offset need, if that is known before any row is read.
fn most(limit: Option<&Expr>, offset: Option<&Expr>) -> Option<Expr> {
    match (limit?, offset) {
        (limit @ (Expr::Const(Datum::Int(_)) | Expr::Param(_)), None) => Some(limit.clone()),
        (Expr::Const(Datum::Int(limit)), Some(Expr::Const(Datum::Int(offset)))) if *limit >= 0 && *offset >= 0 => {
            Some(Expr::Const(Datum::Int(limit.saturating_add(*offset))))
        }
        _ => None,
    }
}

fn first_of(rel: Rel, most: &Expr) -> Rel {
    match rel {
        Rel::Sort { input, keys } if is_united(&input) && keys.iter().all(|k| is_plain(&k.expr)) => {
            Rel::Sort { input: Box::new(sides(*input, &keys, most)), keys }
        }
        // A derived table or a view.
        Rel::Sort { input, keys } => match *input {
            Rel::Project { input, exprs }
                if is_united(&input) && exprs.iter().map(|(_, e)| e).chain(keys.iter().map(|k| &k.expr)).all(is_plain) =>
            {
                let computed: BTreeMap<ColId, &Expr> = exprs.iter().map(|(id, e)| (*id, e)).collect();
                let keys = over(&keys, |id| computed.get(&id).map(|e| (*e).clone()));
                let sorted = Rel::Sort { input: Box::new(sides(*input, &keys, most)), keys };
                Rel::Project { input: Box::new(sorted), exprs }
            }
            other => Rel::Sort { input: Box::new(other), keys },
        },
        Rel::Project { input, exprs } if exprs.iter().all(|(_, e)| is_plain(e)) => {
            Rel::Project { input: Box::new(first_of(*input, most)), exprs }
        }
        united if is_united(&united) => sides(united, &[], most),
        other => other,
    }
}

fn is_plain(e: &Expr) -> bool {
    !e.is_volatile() && !e.needs_executor()
}

/// Whether it is a `UNION ALL` that does nothing but give rows.
fn is_united(rel: &Rel) -> bool {
    let is_alike = |rel: &Rel| {
        let mut is_plain = true;
        rel.visit(&mut |r| is_plain &= !r.exprs().into_iter().any(Expr::is_volatile));
        is_plain
    };
    matches!(rel, Rel::SetOp { op: SetOp::Union, all: true, .. }) && !rel.changes() && !is_locked(rel) && is_alike(rel)
}

/// Keys whose columns are given by other expressions.
fn over(keys: &[SortKey], given: impl Fn(ColId) -> Option<Expr>) -> Vec<SortKey> {
    let of_key = |key: &SortKey| {
        let mut key = key.clone();
        key.expr.substitute(&given);
        key
    };
    keys.iter().map(of_key).collect()
}

/// The first rows of each side, in the order of keys if there are any.
fn sides(united: Rel, keys: &[SortKey], most: &Expr) -> Rel {
    let Rel::SetOp { op, all, left, right, cols } = united else { return united };
    let side = |rel: Rel| {
        let own: BTreeMap<ColId, ColId> = cols.iter().copied().zip(rel.cols()).collect();
        let keys = over(keys, |id| own.get(&id).map(|id| Expr::Column(*id)));
        let rel = if keys.is_empty() { rel } else { Rel::Sort { input: Box::new(rel), keys } };
        Box::new(Rel::Limit { input: Box::new(rel), limit: Some(most.clone()), offset: None })
    };
    Rel::SetOp { op, all, left: side(*left), right: side(*right), cols }
}
