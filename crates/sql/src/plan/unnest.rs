//! Subqueries that only test a row become joins: `EXISTS` and `IN` one that keeps the left rows
//! with a partner, `NOT EXISTS` one that keeps those without.
//!
//! Only conditions that every row is tested by are changed (conjuncts of a `WHERE`, `ON` or
//! `HAVING`): there, NULL and false are the same, so that `IN` is the join over its equalities.
//! `> ALL` drops the rows with a partner for which the comparison is false or NULL; `NOT IN` does
//! so too. They, and other comparisons with `ANY`, become joins where equalities of the subquery's
//! own tie it to the outer row; else they are computed once, and looked into. Subqueries stay whose
//! rows depend on the outer row in another way than by conditions of their own `WHERE`, and those
//! of rows that are locked where they are read: a join reads, and would lock, rows before it knows
//! whether they match. (A [`Rel::LockRows`] above the join locks those that do.) And so do
//! those of which an index finds the rows that belong to the outer one: how many outer rows there
//! are is not known without statistics, and a join would read, and keep, all of a large table for a
//! few. With statistics they become joins too, which look up their partners, or not, as is cheaper.

use super::access;
use super::estimate::Known;
use super::join_order::Asked;
use super::rel::{JoinKind, Rel};
use crate::env::Locking;
use crate::plan::expr::{Cmp, ColId, Expr, Meets, Quantifier, SubqueryBody, SubqueryKind};
use std::collections::BTreeSet;

/// For fewer rows than these a subquery over several tables is run for each: it knows the row's
/// values then.
const ROWS_MIN: f64 = 50.0;
/// So many times fewer rows on the right side are looked up in the left one, instead of the other
/// way round.
const SMALLER: f64 = 4.0;

/// A relation and conditions on it, with as many of them as can be made joins.
pub(super) fn unnest(input: Rel, conds: Vec<Expr>, asked: Option<Asked>, known: &Known, locks_above: bool) -> (Rel, Vec<Expr>) {
    if !locks_above && is_locked(&input) {
        return (input, conds);
    }
    let mut flat = Vec::new();
    conds.into_iter().for_each(|c| c.conjuncts(&mut flat));
    let (mut rel, mut rest) = (input, Vec::new());
    let (tests, others): (Vec<_>, Vec<_>) = flat.into_iter().partition(|c| test(c).is_some());
    for c in tests {
        let cols: BTreeSet<ColId> = rel.cols().into_iter().collect();
        match test(&c).and_then(|t| partner(t, &cols)) {
            Some(p) if p.may_join(&rel, known) && (p.is_table || rows(&rel, &others, known) >= ROWS_MIN) => {
                rel = p.join(rel, &others, asked, known);
            }
            _ => rest.push(c),
        }
    }
    rest.splice(0..0, others);
    (rel, rest)
}

/// A subquery that can do no more than test rows.
struct Test<'e> {
    kind: JoinKind,
    body: &'e Rel,
    by: By<'e>,
}

/// What makes one of its rows a partner, beside its own conditions.
enum By<'e> {
    Existence,
    Equalities(&'e [Expr]),
    /// A comparison with its value, and what the comparison has to be.
    Comparison(&'e Expr, Cmp, fn(Expr) -> Expr),
}

fn is_true(c: Expr) -> Expr {
    c
}

fn is_not_true(c: Expr) -> Expr {
    Expr::Not(Box::new(Expr::IsBool(Box::new(c), true)))
}

fn is_false(c: Expr) -> Expr {
    Expr::IsBool(Box::new(c), false)
}

fn is_not_false(c: Expr) -> Expr {
    Expr::Not(Box::new(is_false(c)))
}

fn test(c: &Expr) -> Option<Test<'_>> {
    let (e, holds) = match c {
        Expr::Not(e) => (&**e, false),
        e => (e, true),
    };
    let Expr::Subquery(subquery) = e else { return None };
    let SubqueryBody::Logical(body) = &subquery.body else { return None };
    let (kind, by) = match &subquery.kind {
        SubqueryKind::Exists => (if holds { JoinKind::Semi } else { JoinKind::Anti }, By::Existence),
        SubqueryKind::Quantified { left, meets, quantifier } => {
            if left.iter().any(|e| e.is_volatile() || e.needs_executor()) {
                return None;
            }
            match (meets, quantifier, holds, &left[..]) {
                (meets, Quantifier::Any, true, left) if are_equalities(meets) => (JoinKind::Semi, By::Equalities(left)),
                (Meets::Compare(cmp), quantifier, holds, [left]) => {
                    let (kind, has_to_be): (_, fn(Expr) -> Expr) = match (quantifier, holds) {
                        (Quantifier::Any, true) => (JoinKind::Semi, is_true),
                        (Quantifier::Any, false) => (JoinKind::Anti, is_not_false),
                        (Quantifier::All, true) => (JoinKind::Anti, is_not_true),
                        (Quantifier::All, false) => (JoinKind::Semi, is_false),
                        (Quantifier::Sole, _) => return None,
                    };
                    (kind, By::Comparison(left, *cmp, has_to_be))
                }
                _ => return None,
            }
        }
        SubqueryKind::Scalar | SubqueryKind::Array(_) => return None,
    };
    Some(Test { kind, body, by })
}

fn are_equalities(meets: &Meets) -> bool {
    let is_equality = |m: &Meets| matches!(m, Meets::Compare(Cmp::Eq));
    match meets {
        Meets::Row(row) => row.cmp == Cmp::Eq && row.equal.iter().all(is_equality),
        one => is_equality(one),
    }
}

/// The other side of a join.
struct Partner {
    kind: JoinKind,
    rel: Rel,
    /// Sides of equalities: over the left rows, over these.
    equal: Vec<(Expr, Expr)>,
    on: Vec<Expr>,
    is_table: bool,
}

fn partner(Test { kind, body, by }: Test, outer: &BTreeSet<ColId>) -> Option<Partner> {
    if !is_plain_outside(body) {
        return None;
    }
    let (rel, mut on) = pull(body.clone(), outer, matches!(by, By::Existence))?;
    let mut values = body.cols().into_iter().map(Expr::Column);
    let mut equal = Vec::new();
    match by {
        By::Existence => {}
        By::Equalities(left) => equal.extend(left.iter().cloned().zip(values)),
        By::Comparison(left, cmp, has_to_be) => {
            let right: BTreeSet<ColId> = rel.cols().into_iter().collect();
            if !on.iter().any(|c| sides(c, &right).is_some()) {
                return None;
            }
            on.push(has_to_be(Expr::compare(cmp, left.clone(), values.next()?)));
        }
    }
    // Without conditions on both sides it is computed once, as it is.
    if equal.is_empty() && on.is_empty() {
        return None;
    }
    let is_table = matches!(below(&rel), Rel::Table { .. });
    Some(Partner { kind, rel, equal, on, is_table })
}

impl Partner {
    /// Whether an index finds what belongs to one left row, by conditions that mention it.
    fn is_looked_up(&self) -> bool {
        let equal = self.equal.iter().map(|(l, r)| Expr::compare(Cmp::Eq, l.clone(), r.clone()));
        let conds: Vec<Expr> = self.on.iter().cloned().chain(equal).collect();
        !self.on.is_empty() && has_path(below(&self.rel), &conds)
    }
    /// Whether a join may be better than the subquery for each row. Where all rows are counted, it
    /// may look its partners up as well.
    fn may_join(&self, left: &Rel, known: &Known) -> bool {
        !self.is_looked_up() || (known.covers(left) && known.covers(&self.rel))
    }
    fn join(self, left: Rel, conds: &[Expr], asked: Option<Asked>, known: &Known) -> Rel {
        let Partner { kind, rel, equal, mut on, .. } = self;
        let same = |(l, r): &(Expr, Expr)| Expr::compare(Cmp::Eq, l.clone(), r.clone());
        // What an EXISTS says of both sides, if that is equalities alone, is what an IN says.
        let mut equal = equal;
        let right: BTreeSet<ColId> = rel.cols().into_iter().collect();
        if let Some(more) = on.iter().map(|c| sides(c, &right)).collect::<Option<Vec<_>>>() {
            equal.extend(more);
            on.clear();
        }
        let columns: Option<Vec<ColId>> =
            equal.iter().map(|(_, r)| if let Expr::Column(c) = r { Some(*c) } else { None }).collect();
        if let (JoinKind::Semi, true, Some(columns)) = (kind, on.is_empty(), columns)
            && rows(&rel, &[], known) * SMALLER < left_rows(asked, &left, conds, &equal, &rel, known)
            && has_path(&left, &equal.iter().map(same).collect::<Vec<_>>())
        {
            // Each value once: then no left row has two partners.
            let cols = left.cols();
            let exprs = columns.iter().map(|c| (*c, Expr::Column(*c))).collect();
            let values = Rel::Distinct { input: Box::new(Rel::Project { input: Box::new(rel), exprs }), on: None };
            let on = equal.iter().map(same).collect();
            let join = Rel::Join { kind: JoinKind::Inner, left: Box::new(values), right: Box::new(left), on };
            return Rel::Project { input: Box::new(join), exprs: cols.into_iter().map(|c| (c, Expr::Column(c))).collect() };
        }
        on.extend(equal.iter().map(same));
        if known.covers(&rel) {
            // Nothing of its rows is seen: what is below can be looked up.
            let (rel, on) = bare(rel, on);
            return Rel::Join { kind, left: Box::new(left), right: Box::new(rel), on };
        }
        Rel::Join { kind, left: Box::new(left), right: Box::new(rel), on }
    }
}

/// How many left rows a semi-join reads: no more than are asked for, if their order is at hand.
fn left_rows(asked: Option<Asked>, left: &Rel, conds: &[Expr], equal: &[(Expr, Expr)], right: &Rel, known: &Known) -> f64 {
    let all = rows(left, conds, known);
    match asked {
        Some(asked) if known.covers(left) && known.covers(right) => {
            let on: Vec<Expr> = equal.iter().map(|(l, r)| Expr::compare(Cmp::Eq, l.clone(), r.clone())).collect();
            let part = known.partnered(&on, &right.cols().into_iter().collect(), rows(right, &[], known));
            all.min(asked.first / part.max(f64::MIN_POSITIVE))
        }
        _ => all,
    }
}

/// The sides of an equality of something with a column on the right.
pub(super) fn sides(c: &Expr, right: &BTreeSet<ColId>) -> Option<(Expr, Expr)> {
    let Expr::Compare(Cmp::Eq, p) = c else { return None };
    let is_right = |e: &Expr| matches!(e, Expr::Column(id) if right.contains(id));
    let is_left = |e: &Expr| !e.columns().iter().any(|id| right.contains(id));
    match (&p.0, &p.1) {
        (l, r) if is_left(l) && is_right(r) => Some((l.clone(), r.clone())),
        (r, l) if is_left(l) && is_right(r) => Some((l.clone(), r.clone())),
        _ => None,
    }
}

/// A relation without what is computed from its rows, and without which of them are equal;
/// conditions on it over what is below.
fn bare(rel: Rel, mut on: Vec<Expr>) -> (Rel, Vec<Expr>) {
    match rel {
        Rel::Project { input, exprs } if !exprs.iter().any(|(_, e)| e.needs_executor() || e.is_volatile()) => {
            let of = |id: ColId| exprs.iter().find(|(c, _)| *c == id).map(|(_, e)| e.clone());
            on.iter_mut().for_each(|c| c.substitute(&of));
            bare(*input, on)
        }
        Rel::Distinct { input, on: None } | Rel::Sort { input, .. } => bare(*input, on),
        other => (other, on),
    }
}

/// Whether an index of a table finds the rows that meet conditions.
pub(super) fn has_path(rel: &Rel, conds: &[Expr]) -> bool {
    let Rel::Table { table, base, .. } = rel else { return false };
    // By rules, as the order of paths without statistics.
    access::paths(table, *base, conds, &|_| None, &Known::default()).first().is_some_and(super::path::Path::has_values)
}

fn rows(rel: &Rel, conds: &[Expr], known: &Known) -> f64 {
    access::rows(rel, conds, known)
}

/// A relation without the conditions that mention `outer` columns, and those. `None`: it depends on
/// them in another way.
pub(super) fn pull(rel: Rel, outer: &BTreeSet<ColId>, is_exists: bool) -> Option<(Rel, Vec<Expr>)> {
    let is_outer = |e: &Expr| e.columns().iter().any(|c| outer.contains(c));
    if !rel.free_columns().iter().any(|c| outer.contains(c)) {
        return Some((rel, Vec::new()));
    }
    let split = |conds: Vec<Expr>| {
        let mut flat = Vec::new();
        conds.into_iter().for_each(|c| c.conjuncts(&mut flat));
        let (of_both, own): (Vec<_>, Vec<_>) = flat.into_iter().partition(is_outer);
        (!of_both.iter().any(Expr::needs_executor)).then_some((of_both, own))
    };
    match rel {
        // Whether there is a row does not depend on what is computed from it.
        Rel::Project { input, .. } if is_exists => pull(*input, outer, is_exists),
        Rel::Project { input, mut exprs } if !exprs.iter().any(|(_, e)| is_outer(e)) => {
            let (input, conds) = pull(*input, outer, is_exists)?;
            let below = input.cols();
            let used: BTreeSet<ColId> = conds.iter().flat_map(Expr::columns).filter(|c| below.contains(c)).collect();
            for c in used {
                if !exprs.iter().any(|(id, _)| *id == c) {
                    exprs.push((c, Expr::Column(c)));
                }
            }
            Some((Rel::Project { input: Box::new(input), exprs }, conds))
        }
        Rel::Filter { input, conds } => {
            // The conditions see what is computed below.
            let (input, mut pulled) = pull(*input, outer, false)?;
            let (of_both, own) = split(conds)?;
            pulled.extend(of_both);
            Some((input.filtered(own), pulled))
        }
        // Its conditions have been pushed already.
        Rel::Table { table, base, alias, locking, filters } => {
            let (of_both, own) = split(filters)?;
            Some((Rel::Table { table, base, alias, locking, filters: own }, of_both))
        }
        Rel::Sort { input, .. } | Rel::Distinct { input, on: None } => pull(*input, outer, is_exists),
        _ => None,
    }
}

pub(super) fn below(rel: &Rel) -> &Rel {
    match rel {
        Rel::Filter { input, .. } | Rel::Project { input, .. } => below(input),
        other => other,
    }
}

/// Whether it may be computed at any time, and any number of times.
pub(super) fn is_plain(rel: &Rel) -> bool {
    is_plain_but(rel, &mut BTreeSet::new())
}

/// The same, but for what is computed once wherever it stands: common table expressions that are
/// not plain themselves.
pub(super) fn is_plain_outside(rel: &Rel) -> bool {
    let mut ctes = BTreeSet::new();
    rel.visit(&mut |r| ctes.extend(r.cte_id()));
    is_plain_but(rel, &mut ctes)
}

fn is_plain_but(rel: &Rel, ctes: &mut BTreeSet<u32>) -> bool {
    let mut is_plain = true;
    rel.visit_but(ctes, &mut |r| {
        is_plain &= !matches!(r, Rel::Dml { .. } | Rel::First { .. });
        is_plain &= !r.exprs().iter().any(|e| e.is_volatile());
        is_plain &= !matches!(r, Rel::Table { locking, .. } if *locking != Locking::None);
    });
    is_plain
}

pub(super) fn is_locked(rel: &Rel) -> bool {
    let mut is_locked = false;
    rel.visit(&mut |r| is_locked |= matches!(r, Rel::Table { locking, .. } if *locking != Locking::None));
    is_locked
}
