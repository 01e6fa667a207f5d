//! What of a select list is computed above its sort, as in PostgreSQL.
//!
//! * Columns, under whatever names: what is sorted is then what is read.
//! * Volatile functions: a sequence is drawn from in the order of the result.
//! * With a limit, subqueries: they are computed for the rows that are left.
//!
//! What else is computed may fail, and fails for rows beyond a limit, too.

use super::rel::{Rel, SortKey};
use crate::plan::expr::{ColId, Expr};
use std::collections::BTreeSet;

/// A sort with what is above it. `is_limited`: no more than its first rows are used.
pub(super) fn select_list(rel: Rel, is_limited: bool) -> Rel {
    match rel {
        Rel::Sort { input, keys } => match *input {
            Rel::Project { input, exprs } => above_sort(*input, exprs, keys, is_limited),
            other => sort(other, keys),
        },
        other => other,
    }
}

/// Whether nothing is left to compute.
fn is_ready(e: &Expr) -> bool {
    matches!(e, Expr::Column(_) | Expr::Const(_) | Expr::Param(_))
}

fn above_sort(input: Rel, exprs: Vec<(ColId, Expr)>, mut keys: Vec<SortKey>, is_limited: bool) -> Rel {
    let sorted: BTreeSet<ColId> = keys.iter().flat_map(|k| k.expr.columns()).collect();
    let is_late = |e: &Expr| e.is_volatile() || e.needs_executor();
    let is_above = |(id, e): &&(ColId, Expr)| match sorted.contains(id) {
        // It is computed once more for the rows that are left.
        true => is_ready(e) || is_limited && !is_late(e),
        false => is_ready(e) || is_late(e),
    };
    let (above, below): (Vec<_>, Vec<_>) = exprs.iter().partition(is_above);
    let is_postponed = |(_, e): &&(ColId, Expr)| e.is_volatile() || is_limited && e.needs_executor();
    if !below.is_empty() && !above.iter().any(is_postponed) {
        return sort(Rel::Project { input: Box::new(input), exprs }, keys);
    }
    for k in &mut keys {
        k.expr.substitute(&|id| above.iter().find(|(c, _)| *c == id).map(|(_, e)| e.clone()));
    }
    keys.retain(|k| !matches!(k.expr, Expr::Const(_) | Expr::Param(_)));
    let stays: BTreeSet<ColId> = below.iter().map(|(id, _)| *id).collect();
    let input = match below.is_empty() {
        true => input,
        false => {
            let own: BTreeSet<ColId> = input.cols().into_iter().collect();
            let used = above.iter().flat_map(|(_, e)| e.columns()).chain(keys.iter().flat_map(|k| k.expr.columns()));
            let handed: BTreeSet<ColId> = used.filter(|c| own.contains(c)).collect();
            let handed = handed.into_iter().map(|c| (c, Expr::Column(c)));
            let below = below.into_iter().cloned().chain(handed).collect();
            Rel::Project { input: Box::new(input), exprs: below }
        }
    };
    let exprs = exprs.iter().map(|(id, e)| (*id, if stays.contains(id) { Expr::Column(*id) } else { e.clone() })).collect();
    Rel::Project { input: Box::new(sort(input, keys)), exprs }
}

fn sort(input: Rel, keys: Vec<SortKey>) -> Rel {
    if keys.is_empty() { input } else { Rel::Sort { input: Box::new(input), keys } }
}
