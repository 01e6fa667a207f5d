//! How to reach the rows of a relation: which of the paths into its tables, and what that costs.

use super::estimate::{self, Known};
use super::path::{Path, TABLE_ROWS, path, places, told};
use super::rel::{Rel, width};
use crate::catalog::IndexState;
use crate::catalog::relation::TableRef;
use crate::plan::expr::{ColId, Expr};
use crate::types::Datum;
use std::collections::BTreeSet;

/// The paths worth considering for a table under these conditions, the cheapest first. `outer`:
/// columns whose values are known when the path is taken.
pub(crate) fn paths(
    table: &TableRef,
    base: ColId,
    filters: &[Expr],
    predicates: &dyn Fn(usize) -> Option<Vec<Expr>>,
    known: &Known,
) -> Vec<Path> {
    let own = base..base + width(table);
    let mut out = Vec::new();
    for (at, index) in table.indexes.iter().enumerate() {
        if index.state != IndexState::Public || index.is_hidden {
            continue;
        }
        let mut implied = Vec::new();
        if index.predicate.is_some() {
            let Some(conds) = predicates(at) else { continue };
            let positions: Option<Vec<usize>> = conds.iter().map(|c| filters.iter().position(|f| f == c)).collect();
            let Some(positions) = positions else { continue };
            implied = positions;
        }
        let one = path(index, at, table, &own, filters);
        let several = places(at, table, &own, filters, (one.prefix.len(), told(one.range.as_ref())));
        for mut path in std::iter::once(one).chain(several) {
            path.consumed.extend(implied.iter().copied());
            path.rows = known.rows_of_path(base, &path).unwrap_or_else(|| uncounted_rows(&path));
            if index.predicate.is_some() {
                let conds: Vec<Expr> = implied.iter().map(|i| filters[*i].clone()).collect();
                path.rows *= known.rows_of(base).map_or(0.1, |_| known.selectivity(&conds));
            }
            out.push(path);
        }
    }
    out.sort_by(|a, b| a.rows.total_cmp(&b.rows).then(a.index.cmp(&b.index)));
    out
}

/// A guess at how many rows a path gives into a table whose rows are not counted. The table may be
/// large, so a path that conditions make shorter gives fewer rows than all of it, however many
/// values they name.
fn uncounted_rows(path: &Path) -> f64 {
    const NARROWED_PART: f64 = 0.9;
    if path.is_whole() { path.rows } else { path.rows.min(TABLE_ROWS * NARROWED_PART) }
}

/// A guess at how many rows a relation gives under conditions on its columns.
pub(crate) fn rows(rel: &Rel, conds: &[Expr], known: &Known) -> f64 {
    if known.covers(rel) {
        return counted_rows(rel, conds, known);
    }
    let rows = |rel: &Rel, conds: &[Expr]| rows(rel, conds, known);
    match rel {
        Rel::Table { table, base, filters, .. } => {
            let own = *base..*base + width(table);
            let usable = conds.iter().filter(|c| c.columns().iter().all(|id| own.contains(id)));
            let all: Vec<Expr> = filters.iter().chain(usable).cloned().collect();
            let best = paths(table, *base, &all, &|_| None, known).into_iter().next();
            best.map_or(TABLE_ROWS, |p| p.rows * 0.8f64.powi(all.len().saturating_sub(p.consumed.len()) as i32))
        }
        Rel::Filter { input, conds: more } => {
            let all: Vec<Expr> = conds.iter().chain(more).cloned().collect();
            rows(input, &all)
        }
        Rel::Join { kind, left, .. } if kind.is_test() => rows(left, conds) * 0.5,
        Rel::Join { left, right, on, .. } => {
            let (l, r) = (rows(left, conds), rows(right, conds));
            if on.is_empty() && conds.is_empty() { l * r } else { l.max(r) }
        }
        Rel::Project { input, .. } | Rel::Sort { input, .. } | Rel::Distinct { input, .. } => rows(input, &[]),
        Rel::Window { input, .. } | Rel::LockRows { input, .. } => rows(input, &[]),
        Rel::Limit { input, limit, .. } => match limit.as_ref().and_then(Expr::as_const) {
            Some(Datum::Int(n)) => rows(input, &[]).min(*n as f64),
            _ => rows(input, &[]).min(100.0),
        },
        Rel::Values { rows, .. } => rows.len() as f64,
        Rel::Aggregate { keys, .. } if keys.is_empty() => 1.0,
        Rel::Aggregate { input, .. } => rows(input, &[]) * 0.3,
        Rel::SetOp { left, right, .. } => rows(left, &[]) + rows(right, &[]),
        _ => 500.0,
    }
}

/// The same where all tables are counted.
fn counted_rows(rel: &Rel, conds: &[Expr], known: &Known) -> f64 {
    let is_of = |rel: &Rel, c: &Expr| {
        let cols = rel.cols();
        c.columns().iter().all(|id| cols.contains(id))
    };
    match rel {
        Rel::Table { base, filters, .. } => {
            let all: Vec<Expr> = filters.iter().chain(conds.iter().filter(|c| is_of(rel, c))).cloned().collect();
            (known.rows_of(*base).unwrap_or(TABLE_ROWS) * known.selectivity(&all)).max(FEW)
        }
        Rel::Filter { input, conds: more } => {
            let all: Vec<Expr> = conds.iter().chain(more).cloned().collect();
            let (down, above): (Vec<Expr>, Vec<Expr>) = all.into_iter().partition(|c| is_of(input, c));
            counted_rows(input, &down, known) * known.selectivity(&above)
        }
        Rel::Join { kind, left, right, on } => {
            let of_left: Vec<Expr> = conds.iter().filter(|c| is_of(left, c)).cloned().collect();
            let of_right: Vec<Expr> = conds.iter().filter(|c| is_of(right, c)).cloned().collect();
            let l = counted_rows(left, &of_left, known);
            let r = counted_rows(right, &of_right, known);
            if kind.is_test() {
                return tested(*kind, l, known.partnered(on, &right.cols().into_iter().collect(), r));
            }
            let rows = l * r * known.selectivity(&estimate::telling(on.iter(), &estimate::fixed([&**left, right].into_iter())));
            if *kind == super::rel::JoinKind::Inner { rows.max(FEW) } else { rows.max(l) }
        }
        Rel::Aggregate { keys, .. } if keys.is_empty() => 1.0,
        Rel::Aggregate { input, keys, .. } => {
            let rows = counted_rows(input, &[], known);
            known.combinations(keys.iter().map(|(_, e)| e), rows)
        }
        Rel::Distinct { input, .. } => {
            let rows = counted_rows(input, conds, known);
            match &**input {
                Rel::Project { exprs, .. } => known.combinations(exprs.iter().map(|(_, e)| e), rows),
                _ => rows,
            }
        }
        Rel::Limit { input, limit, .. } => match limit.as_ref().and_then(Expr::as_const) {
            Some(Datum::Int(n)) => counted_rows(input, &[], known).min(*n as f64),
            _ => counted_rows(input, &[], known).min(100.0),
        },
        Rel::Values { rows, .. } => rows.len() as f64,
        Rel::SetOp { left, right, .. } => counted_rows(left, &[], known) + counted_rows(right, &[], known),
        Rel::ProjectSet { input, .. } => counted_rows(input, &[], known) * 10.0,
        other => other.inputs().first().map_or(1.0, |input| counted_rows(input, &[], known)),
    }
}

/// How many of the left rows a test lets through, if such a part of them has partners.
pub(super) fn tested(kind: super::rel::JoinKind, left: f64, partnered: f64) -> f64 {
    let part = if kind == super::rel::JoinKind::Anti { 1.0 - partnered } else { partnered };
    (left * part).max(FEW)
}

/// What it takes to read a relation whose tables are counted.
pub(super) fn cost(rel: &Rel, known: &Known) -> f64 {
    match rel {
        Rel::Table { table, base, filters, .. } => {
            let paths = paths(table, *base, filters, &|_| None, known);
            let costs = paths.iter().filter_map(|p| known.cost_of_path(*base, p, false));
            costs.min_by(f64::total_cmp).unwrap_or(TABLE_ROWS)
        }
        other => {
            let inputs: f64 = other.inputs().into_iter().map(|input| cost(input, known)).sum();
            inputs + estimate::cost_of_rows(rows(other, &[], known))
        }
    }
}

/// How the partners of one row are looked up.
pub(super) struct Lookup {
    pub(super) path: Path,
    pub(super) cost: f64,
    /// The part of the rows on the path that meet the other conditions too.
    left: f64,
}

impl Lookup {
    /// What it takes to find the first row that meets all conditions: how many others come before
    /// it, those say that the path does not answer. Where there is none, all are read.
    pub(super) fn cost_of_first(&self) -> f64 {
        let rows = self.path.rows.max(1.0);
        let read = (1.0 / self.left.max(f64::MIN_POSITIVE)).clamp(1.0, rows);
        (self.cost / rows * read + estimate::SEEK).min(self.cost)
    }
}

/// The cheapest way to look up the rows of a table by conditions that have values for each row of
/// others. `None`: they make none shorter.
pub(super) fn lookup(rel: &Rel, conds: &[Expr], known: &Known) -> Option<Lookup> {
    let Rel::Table { table, base, filters, .. } = rel else { return None };
    let usable = conds.iter().filter(|c| !c.needs_executor() && !c.is_volatile());
    let all: Vec<Expr> = filters.iter().chain(usable).cloned().collect();
    let uses_conds = |p: &Path| p.consumed.iter().any(|i| *i >= filters.len());
    let found = paths(table, *base, &all, &|_| None, known).into_iter().filter(uses_conds);
    let found = found.filter_map(|path| Some((known.cost_of_path(*base, &path, false)?, path)));
    let (cost, path) = found.min_by(|a, b| a.0.total_cmp(&b.0))?;
    let others = all.iter().enumerate().filter(|(i, _)| !path.consumed.contains(i));
    let others: Vec<Expr> = others.map(|(_, c)| c.clone()).collect();
    Some(Lookup { path, cost, left: known.selectivity(&others) })
}

/// Of a limit that is not known.
const FIRST_ROWS: f64 = 100.0;

/// How many rows a limit takes of what is below it. `None`: it may take all.
pub(super) fn first_rows(limit: Option<&Expr>, offset: Option<&Expr>) -> Option<f64> {
    let count = |e: &Expr| match e.as_const() {
        Some(Datum::Int(n)) => Some(*n as f64),
        Some(_) => None,
        None => Some(FIRST_ROWS),
    };
    let skipped = offset.map_or(Some(0.0), |e| count(e).or(Some(0.0)));
    count(limit?).zip(skipped).map(|(limit, skipped)| limit + skipped)
}

/// No estimate is below it: one that is nothing makes everything above it free.
pub(super) const FEW: f64 = 0.01;

/// A guess at how few rows a relation gives once columns are known: what the order of inner joins
/// follows.
pub(crate) fn promise(rel: &Rel, conds: &[Expr], have: &BTreeSet<ColId>, known: &Known) -> u64 {
    match rel {
        Rel::Table { table, base, filters, .. } => {
            let cols = rel.cols();
            let usable = conds.iter().filter(|c| {
                let used = c.columns();
                used.iter().any(|u| have.contains(u)) && used.iter().all(|u| have.contains(u) || cols.contains(u))
            });
            let all: Vec<Expr> = filters.iter().chain(usable.clone()).cloned().collect();
            let rows = paths(table, *base, &all, &|_| None, known).first().map_or(TABLE_ROWS, |p| p.rows);
            let filtered = rows * 0.8f64.powi(filters.len() as i32);
            // A join without any condition multiplies.
            let cross = !have.is_empty() && usable.count() == 0;
            (filtered * 10.0) as u64 + if cross { 1_000_000 } else { 0 }
        }
        Rel::Filter { input, .. } | Rel::Sort { input, .. } | Rel::Distinct { input, .. } | Rel::LockRows { input, .. } => {
            promise(input, conds, have, known)
        }
        Rel::Project { input, .. } => promise(input, &[], have, known).min(500_000),
        Rel::Values { rows, .. } => rows.len() as u64 * 10,
        Rel::Limit { .. } => 100,
        Rel::Aggregate { keys, .. } if keys.is_empty() => 10,
        _ => 5_000,
    }
}
