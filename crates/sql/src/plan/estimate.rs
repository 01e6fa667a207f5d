//! How many rows conditions leave, and what it takes to read them: for tables that have statistics.
//! Without them, plans follow rules that need none (`access`), and stay what they are.
//!
//! Estimates are PostgreSQL's: columns are independent of each other, every value of the side with
//! fewer distinct values has partners. Costs are microseconds of this engine's time on one core,
//! measured over tables of 10,000 to 1,000,000 rows, and the way to rows in other regions.

use super::path::{self, Part, Path, Place, Range};
use super::rel::{JoinKind, Rel};
use crate::catalog::descriptor::Index;
use crate::catalog::relation::TableRef;
use crate::plan::expr::{Cmp, ColId, Expr};
use crate::statistics::{ColumnStatistics, TableStatistics, key_of};
use crate::types::{Datum, Type};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Reading one row of a range, its filters included.
const ROW: f64 = 0.9;
/// Beginning to read a range.
pub(super) const SEEK: f64 = 6.0;
/// One row by its key, of many that are asked for together.
const LOOKUP: f64 = 4.0;
/// Running a plan again for another outer row.
pub(super) const AGAIN: f64 = 14.0;
const BUILD: f64 = 1.0;
/// The same where keys are all that is kept.
const BUILD_KEYS: f64 = 0.3;
const PROBE: f64 = 0.6;
/// Making a row of two.
const JOINED: f64 = 0.3;
/// A whole table counts as one of so many rows at least: what is read is certified, and others
/// write there. A table without statistics counts as one of as many.
const WHOLE_MIN: f64 = 1_000.0;
/// Reading a row that is going to be written: whoever writes one that was read in vain has to wait,
/// or one of both to begin again.
pub(super) const LOCKED: f64 = 20.0;
/// A comparison while sorting.
const COMPARED: f64 = 0.1;
/// A message to another region and back; the way to single rows is shared by a batch.
const FAR: f64 = 50_000.0;
const FAR_BATCH: f64 = 1_000.0;

/// What a condition leaves that nothing is known about.
const SOME: f64 = 0.3;
/// The part of the rows in a range with one bound, or with two, that are not known.
pub(super) const HALF_RANGE: f64 = 1.0 / 3.0;
const RANGE: f64 = 0.1;
/// The same, if both bounds get their values later (PostgreSQL's `DEFAULT_RANGE_INEQ_SEL`).
const LATER_RANGE: f64 = 0.005;
/// What each character that is looked for within texts leaves of them, and all of these.
const WITHIN_TEXT: f64 = 0.75;
const WITHIN_TEXT_MIN: f64 = 0.02;
/// How many values a column has that was not counted.
const DISTINCT: f64 = 200.0;

/// What is known about the tables of one statement.
#[derive(Default)]
pub(crate) struct Known {
    /// By the first of the columns that a table has in the statement.
    tables: BTreeMap<ColId, Table>,
    /// Columns of derived tables that are columns of others.
    renamed: BTreeMap<ColId, ColId>,
    /// The part of a column's values that the statement's bounds on it leave, or its value.
    bounded: BTreeMap<ColId, f64>,
    /// An estimate would be another one for another value of a parameter.
    is_of_values: Cell<bool>,
}

struct Table {
    table: TableRef,
    statistics: Arc<TableStatistics>,
    /// Its rows, or some of them, are in other regions.
    is_far: bool,
    /// Columns of which one value is in one region: that is taken for the gateway's own, if the
    /// value is the statement's.
    pins: Vec<u32>,
}

/// Of bounds on one side, how many say more than the first, which no one knows.
fn further(bounds: usize) -> i32 {
    i32::try_from(bounds.saturating_sub(1)).unwrap_or(i32::MAX)
}

impl Known {
    pub(crate) fn insert(&mut self, base: ColId, table: TableRef, statistics: Arc<TableStatistics>, is_far: bool) {
        let pins = if is_far { pins(&table) } else { Vec::new() };
        self.tables.insert(base, Table { table, statistics, is_far, pins });
    }
    /// Finds out which columns of the statement are others, unchanged.
    pub(crate) fn follow(&mut self, rel: &Rel) {
        if self.tables.is_empty() {
            return;
        }
        let renamed = &mut self.renamed;
        let mut note = |to: ColId, from: &Expr| {
            if let Expr::Column(from) = from
                && *from < to
            {
                renamed.insert(to, *from);
            }
        };
        rel.visit(&mut |r| match r {
            Rel::Project { exprs, .. } => exprs.iter().for_each(|(to, e)| note(*to, e)),
            Rel::Aggregate { keys, .. } => keys.iter().for_each(|(to, e)| note(*to, e)),
            Rel::Cte { cte, cols } => {
                cols.iter().zip(cte.body.cols()).for_each(|(to, from)| note(*to, &Expr::Column(from)));
            }
            _ => {}
        });
        self.bounded = self.bounds_in(rel);
    }
    /// See [`Known::bounded`].
    fn bounds_in(&self, rel: &Rel) -> BTreeMap<ColId, f64> {
        let mut ranges: BTreeMap<ColId, Range> = BTreeMap::new();
        let mut fixed = Vec::new();
        rel.visit(&mut |r| {
            let conds: &[Expr] = match r {
                Rel::Filter { conds, .. } => conds,
                Rel::Table { filters, .. } => filters,
                Rel::Join { kind: JoinKind::Inner, on, .. } => on,
                _ => &[],
            };
            for (id, is_lower, value) in conds.iter().filter_map(bound) {
                let range = ranges.entry(self.origin(id)).or_default();
                let side = if is_lower { &mut range.lower } else { &mut range.upper };
                side.push((value.clone(), true));
            }
            fixed.extend(conds.iter().filter_map(one_value).map(|id| self.origin(id)));
        });
        let of_range = ranges.into_iter().map(|(id, range)| (id, self.within(id, &range)));
        let of_value = fixed.into_iter().filter_map(|id| Some((id, 1.0 / self.distinct(id)?)));
        of_range.chain(of_value).collect()
    }
    pub(crate) fn is_of_values(&self) -> bool {
        self.is_of_values.get()
    }
    /// The column that one is, unchanged.
    pub(super) fn origin(&self, mut column: ColId) -> ColId {
        // To smaller numbers, so that it ends.
        while let Some(from) = self.renamed.get(&column) {
            column = *from;
        }
        column
    }
    fn at(&self, column: ColId) -> Option<(&Table, u32)> {
        let column = self.origin(column);
        let (base, table) = self.tables.range(..=column).next_back()?;
        let ordinal = column - base;
        ((ordinal as usize) < table.table.columns.len()).then_some((table, ordinal))
    }
    /// The rows of the table whose first column this is.
    pub(crate) fn rows_of(&self, base: ColId) -> Option<f64> {
        self.tables.get(&base).map(|t| (t.statistics.rows as f64).max(1.0))
    }
    pub(crate) fn statistics_of(&self, base: ColId) -> Option<&Arc<TableStatistics>> {
        self.tables.get(&base).map(|t| &t.statistics)
    }
    /// Whether the rows of everything in a relation are counted.
    pub(crate) fn covers(&self, rel: &Rel) -> bool {
        // Without any, everything is as it would be if there were no statistics.
        !self.tables.is_empty() && self.has_all(rel)
    }
    fn has_all(&self, rel: &Rel) -> bool {
        match rel {
            Rel::Table { base, .. } => self.tables.contains_key(base),
            Rel::Values { .. } => true,
            Rel::Cte { .. } | Rel::WorkTable { .. } | Rel::Computed { .. } | Rel::Function { .. } | Rel::Dml { .. } => false,
            other => other.inputs().into_iter().all(|input| self.has_all(input)),
        }
    }

    /// The primary key of the table that a column is one of, unless it is part of it: where that is
    /// one value, so is the column. Columns of derived tables have none.
    pub(crate) fn key_before(&self, id: ColId) -> Option<Vec<ColId>> {
        let (base, Table { table, .. }) = self.tables.range(..=id).next_back()?;
        let key: Vec<ColId> = table.primary().columns.iter().map(|c| base + c.ordinal).collect();
        (id - base < table.columns.len() as u32 && !key.contains(&id)).then_some(key)
    }

    fn column(&self, id: ColId) -> Option<(&ColumnStatistics, &Type)> {
        let (table, ordinal) = self.at(id)?;
        let ty = &table.table.columns[ordinal as usize].ty;
        table.statistics.column(ordinal, ty).map(|c| (c, ty))
    }
    /// How many values a column has.
    pub(super) fn distinct(&self, id: ColId) -> Option<f64> {
        match self.column(id) {
            Some((c, _)) => Some((c.distinct as f64).max(1.0)),
            None => self.at(id).map(|(t, _)| DISTINCT.min(t.statistics.rows as f64).max(1.0)),
        }
    }
    /// How many of them the statement's bounds on the column leave. Of two columns that are equal,
    /// each with bounds, the values that are left to one are left to the other as well.
    pub(super) fn distinct_left(&self, id: ColId) -> Option<f64> {
        let part = self.bounded.get(&self.origin(id)).copied().unwrap_or(1.0);
        self.distinct(id).map(|distinct| (distinct * part).max(1.0))
    }
    /// How many combinations of values expressions have, in so many rows.
    pub(crate) fn combinations<'e>(&self, exprs: impl Iterator<Item = &'e Expr>, rows: f64) -> f64 {
        let of = |e: &Expr| match e {
            Expr::Const(_) => 1.0,
            Expr::Column(c) => self.distinct(*c).unwrap_or(rows * SOME),
            _ => rows * SOME,
        };
        exprs.map(of).product::<f64>().min(rows).max(1.0)
    }

    /// How many of `rows` rows may have the same values in all of these columns. The commonest
    /// value of each column limits that.
    pub(crate) fn alike(&self, columns: impl Iterator<Item = ColId>, rows: f64) -> f64 {
        let most = |id: ColId| match self.column(id) {
            Some((c, _)) => c.common.first().map_or(0.0, |(_, part)| f64::from(*part)).max(f64::from(c.nulls)),
            None => 0.0,
        };
        let part = columns.map(|id| most(id).max(1.0 / self.distinct(id).unwrap_or(DISTINCT))).fold(1.0, f64::min);
        rows * part
    }

    /// The part of the rows that have a value in a column.
    fn equal(&self, id: ColId, value: &Expr) -> f64 {
        let Some((column, ty)) = self.column(id) else { return 1.0 / self.distinct(id).unwrap_or(DISTINCT) };
        match value.as_const() {
            Some(Datum::Null) => 0.0,
            Some(value) => key_of(value, ty).map_or(column.equal_to_any(), |key| column.equal(&key)),
            None => {
                self.depends(value, column);
                column.equal_to_any()
            }
        }
    }
    /// How many values a column is compared with by `= ANY`.
    fn length(&self, id: ColId, list: &Expr) -> f64 {
        if let Some((column, _)) = self.column(id) {
            self.depends(list, column);
        }
        path::length(list)
    }
    fn depends(&self, value: &Expr, column: &ColumnStatistics) {
        if column.knows_values() && value.any(&|e| matches!(e, Expr::Param(_))) {
            self.is_of_values.set(true);
        }
    }
    fn nulls(&self, id: ColId) -> f64 {
        self.column(id).map_or(0.01, |(c, _)| f64::from(c.nulls))
    }
    /// The part of the rows between bounds.
    fn within(&self, id: ColId, range: &Range) -> f64 {
        let valued = 1.0 - self.nulls(id);
        let is_bounded = !range.lower.is_empty() || !range.upper.is_empty();
        let Some((column, ty)) = self.column(id) else {
            let further = further(range.lower.len()) + further(range.upper.len());
            let part = if range.lower.is_empty() || range.upper.is_empty() { HALF_RANGE } else { RANGE };
            return part * HALF_RANGE.powi(further);
        };
        let place = |bound: &(Expr, bool)| match bound.0.as_const() {
            Some(value) if !value.is_null() && column.knows_values() => {
                key_of(value, ty).ok().map(|key| (column.below(&key, ty), column.equal(&key)))
            }
            _ => {
                self.depends(&bound.0, column);
                None
            }
        };
        if is_bounded {
            // Where a bound is among the values: `None` if that is not known.
            let from = |(at, equal): (f64, f64), included: bool| if included { at } else { at + equal };
            let to = |(at, equal): (f64, f64), included: bool| if included { at + equal } else { at };
            let lower: Vec<Option<f64>> = range.lower.iter().map(|b| place(b).map(|at| from(at, b.1))).collect();
            let upper: Vec<Option<f64>> = range.upper.iter().map(|b| place(b).map(|at| to(at, b.1))).collect();
            let unknown = |bounds: &[Option<f64>]| bounds.iter().filter(|b| b.is_none()).count();
            let (of_lower, of_upper) = (unknown(&lower), unknown(&upper));
            let part = match (of_lower > 0, of_upper > 0) {
                (true, true) => LATER_RANGE,
                (true, _) | (_, true) => RANGE.max(HALF_RANGE / 2.0),
                (false, false) => 1.0,
            };
            let part = part * HALF_RANGE.powi(further(of_lower) + further(of_upper));
            let from = lower.into_iter().flatten().fold(0.0, f64::max);
            let to = upper.into_iter().flatten().fold(valued, f64::min);
            // A range is never known to be quite empty.
            return (part * (to - from)).clamp(column.equal_to_any().min(0.001), 1.0);
        }
        match &range.like {
            None => valued,
            Some(pattern) => match pattern.as_const() {
                Some(Datum::Text(text)) => {
                    let plain: String = text.as_str().chars().take_while(|c| !matches!(c, '%' | '_' | '\\')).collect();
                    if plain.is_empty() {
                        let told = text.as_str().chars().filter(|c| !matches!(c, '%' | '_')).count();
                        let told = i32::try_from(told).unwrap_or(i32::MAX);
                        return valued * (SOME * WITHIN_TEXT.powi(told)).max(WITHIN_TEXT_MIN);
                    }
                    let Ok(mut low) = key_of(&Datum::text(plain), ty) else { return valued * RANGE };
                    // Without the end of the text: what begins with it.
                    low.truncate(low.len().saturating_sub(2));
                    let mut high = low.clone();
                    high.push(0xFF);
                    (column.below(&high, ty) - column.below(&low, ty)).clamp(column.equal_to_any().min(0.001), 1.0)
                }
                _ => {
                    self.depends(pattern, column);
                    valued * RANGE
                }
            },
        }
    }

    /// The part of the rows that meets all of some conditions.
    pub(crate) fn selectivity(&self, conds: &[Expr]) -> f64 {
        // Bounds of one column belong together, and equalities of two tables' columns.
        let mut ranges: BTreeMap<ColId, Range> = BTreeMap::new();
        let mut pairs: BTreeMap<(ColId, ColId), Vec<(ColId, ColId)>> = BTreeMap::new();
        let mut part = 1.0;
        for c in conds {
            match bound(c) {
                Some((id, is_lower, value)) if self.at(id).is_some() => {
                    let range = ranges.entry(id).or_default();
                    let side = if is_lower { &mut range.lower } else { &mut range.upper };
                    side.push((value.clone(), true));
                }
                _ => match self.pair(c) {
                    Some((tables, columns)) => pairs.entry(tables).or_default().push(columns),
                    None => part *= self.of_one(c),
                },
            }
        }
        let part = pairs.values().fold(part, |part, columns| part * self.of_pair(columns));
        ranges.iter().fold(part, |part, (id, range)| part * self.within(*id, range))
    }
    /// The first columns of two tables that a condition says a column of each of equals the
    /// other's, and these, the table with the smaller number first.
    fn pair(&self, c: &Expr) -> Option<((ColId, ColId), (ColId, ColId))> {
        let Expr::Compare(Cmp::Eq, p) = c else { return None };
        let (Expr::Column(a), Expr::Column(b)) = (bare(&p.0), bare(&p.1)) else { return None };
        let (a, b) = (self.origin(*a), self.origin(*b));
        let base = |id: ColId| self.at(id).map(|(_, ordinal)| id - ordinal);
        let (of_a, of_b) = (base(a)?, base(b)?);
        match of_a.cmp(&of_b) {
            std::cmp::Ordering::Less => Some(((of_a, of_b), (a, b))),
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater => Some(((of_b, of_a), (b, a))),
        }
    }
    /// The part of all pairs of rows of two tables that are alike in these columns. As PostgreSQL
    /// has it for one column. Of several, a table has no more combinations of values than rows; and
    /// those of a unique index are one row each.
    fn of_pair(&self, columns: &[(ColId, ColId)]) -> f64 {
        let alone: f64 = columns.iter().map(|(a, b)| self.of_equal_columns(*a, *b)).product();
        if columns.len() == 1 {
            return alone;
        }
        // Of each side: what its keys say, and what its combinations of values do.
        let of_side = |side: Vec<ColId>| {
            let (table, _) = self.at(*side.first()?)?;
            let rows = (table.statistics.rows as f64).max(1.0);
            let ordinals: Vec<u32> = side.iter().map(|id| self.at(*id).map(|(_, ordinal)| ordinal)).collect::<Option<_>>()?;
            let of_key = |index: &Index| {
                let has = |ordinal: u32| index.columns.iter().any(|c| c.ordinal == ordinal);
                let is_covered = index.columns.iter().all(|c| ordinals.contains(&c.ordinal));
                let others = columns.iter().zip(&ordinals).filter(|(_, ordinal)| !has(**ordinal));
                let others: f64 = others.map(|((a, b), _)| self.of_equal_columns(*a, *b)).product();
                (index.unique && is_covered).then_some(others / rows)
            };
            let of_keys = table.table.indexes.iter().filter_map(of_key).max_by(f64::total_cmp);
            let combinations = side.iter().filter_map(|id| self.distinct(*id)).product::<f64>().min(rows).max(1.0);
            Some((of_keys, 1.0 / combinations))
        };
        let sides = [columns.iter().map(|c| c.0).collect(), columns.iter().map(|c| c.1).collect()];
        let sides: Vec<(Option<f64>, f64)> = sides.into_iter().filter_map(of_side).collect();
        let of_keys = sides.iter().filter_map(|side| side.0).min_by(f64::total_cmp);
        let told = of_keys.or_else(|| sides.iter().map(|side| side.1).min_by(f64::total_cmp));
        told.map_or(alone, |told| alone.max(told))
    }
    fn of_equal_columns(&self, a: ColId, b: ColId) -> f64 {
        match (self.distinct_left(a), self.distinct_left(b)) {
            (Some(a), Some(b)) => 1.0 / a.max(b),
            (Some(d), None) | (None, Some(d)) => 1.0 / d,
            (None, None) => 0.01,
        }
    }
    fn of_one(&self, c: &Expr) -> f64 {
        let part = match c {
            Expr::Const(Datum::Bool(true)) => 1.0,
            Expr::Const(_) => 0.0,
            Expr::Compare(Cmp::Eq, p) => match (bare(&p.0), bare(&p.1)) {
                (Expr::Column(a), Expr::Column(b)) => self.of_equal_columns(*a, *b),
                (Expr::Column(id), value) | (value, Expr::Column(id)) if self.at(*id).is_some() => self.equal(*id, value),
                _ => 0.01,
            },
            Expr::Compare(Cmp::Ne, p) => match &**p {
                (Expr::Column(id), value) | (value, Expr::Column(id)) if self.at(*id).is_some() => {
                    1.0 - self.nulls(*id) - self.equal(*id, value)
                }
                _ => 0.9,
            },
            Expr::Compare(..) => HALF_RANGE,
            Expr::And(all) => self.selectivity(all),
            Expr::Or(any) => 1.0 - any.iter().map(|e| 1.0 - self.of_one(e)).product::<f64>(),
            Expr::Not(e) => 1.0 - self.of_one(e),
            Expr::IsNull(e) => match &**e {
                Expr::Column(id) => self.nulls(*id),
                _ => 0.01,
            },
            Expr::In(e, list) => match bare(e) {
                Expr::Column(id) => list.iter().map(|value| self.equal(*id, value)).sum::<f64>(),
                _ => SOME,
            },
            Expr::Quantified(q) if !q.all => match bare(&q.left) {
                Expr::Column(id) => {
                    self.length(*id, &q.array) * self.column(*id).map_or(1.0 / DISTINCT, |(c, _)| c.equal_to_any())
                }
                _ => SOME,
            },
            Expr::Column(id) => self.equal(*id, &Expr::TRUE),
            Expr::Call(f, args) if f.name == "~~" && args.len() == 2 => match &args[0] {
                Expr::Column(id) => self.within(*id, &Range { like: Some(args[1].clone()), ..Range::default() }),
                _ => RANGE,
            },
            Expr::Subquery(_) => 0.5,
            _ => SOME,
        };
        part.clamp(0.0, 1.0)
    }

    /// The part of so many left rows that have a partner among so many right ones.
    pub(crate) fn partnered(&self, on: &[Expr], right_cols: &BTreeSet<ColId>, right: f64) -> f64 {
        let mut part = 1.0f64;
        let mut is_equal = false;
        for c in on {
            let Expr::Compare(Cmp::Eq, p) = c else { continue };
            let (Expr::Column(a), Expr::Column(b)) = (bare(&p.0), bare(&p.1)) else { continue };
            let (l, r) = if right_cols.contains(a) { (b, a) } else { (a, b) };
            if let (Some(l), Some(r)) = (self.distinct_left(*l), self.distinct_left(*r)) {
                is_equal = true;
                part = part.min((r.min(right) / l).min(1.0));
            }
        }
        if is_equal { part } else { 0.5 }
    }

    /// The part of the outer rows that have a partner in this table, by conditions on its columns.
    pub(super) fn has_partner<'c>(&self, base: ColId, conds: impl Iterator<Item = &'c Expr>) -> f64 {
        let columns = self.tables.get(&base).map_or(0, |t| t.table.columns.len() as ColId);
        let is_own = |id: ColId| (base..base + columns).contains(&id);
        let of_one = |c: &Expr| {
            let Expr::Compare(Cmp::Eq, p) = c else { return None };
            let (Expr::Column(a), Expr::Column(b)) = (bare(&p.0), bare(&p.1)) else { return None };
            let (own, outer) = if is_own(*b) { (*b, *a) } else { (*a, *b) };
            if !is_own(own) || is_own(outer) {
                return None;
            }
            Some((self.distinct_left(own)? / self.distinct_left(outer)?).min(1.0))
        };
        conds.filter_map(of_one).fold(1.0, f64::min)
    }

    /// The rows that a part of an index has. `None`: its table is not counted.
    pub(super) fn rows_of_path(&self, base: ColId, path: &Path) -> Option<f64> {
        let table = self.tables.get(&base)?;
        let rows = (table.statistics.rows as f64).max(1.0);
        let index = &table.table.indexes[path.index];
        let column = |at: usize| base + index.columns[at].ordinal;
        let of_part = |(at, part): (usize, &Part)| match part {
            Part::Eq(value) => self.equal(column(at), value),
            Part::In(list) => list.iter().map(|value| self.equal(column(at), value)).sum::<f64>().min(1.0),
            Part::Any(list) => {
                let one = self.column(column(at)).map_or(1.0 / DISTINCT, |(c, _)| c.equal_to_any());
                (self.length(column(at), list) * one).min(1.0)
            }
            Part::Null => self.nulls(column(at)),
        };
        if !path.places.is_empty() {
            let of_place = |place: &Place| -> f64 {
                let equal: f64 = place.values.iter().enumerate().map(|(at, value)| self.equal(column(at), value)).product();
                equal * place.range.as_ref().map_or(1.0, |range| self.within(column(place.values.len()), range))
            };
            let part: f64 = path.places.iter().map(of_place).sum();
            let most = if path.is_point { path.places.len() as f64 } else { rows };
            return Some((rows * part.min(1.0)).min(most));
        }
        let mut part: f64 = path.prefix.iter().enumerate().map(of_part).product();
        if let Some(range) = &path.range {
            part *= self.within(column(path.prefix.len()), range);
        }
        let most = if path.is_point { path.rows } else { rows };
        Some((rows * part).min(most))
    }

    /// What it takes to read a part of an index. `is_covering`: its entries are all that is needed.
    /// `None`: its table is not counted.
    pub(super) fn cost_of_path(&self, base: ColId, path: &Path, is_covering: bool) -> Option<f64> {
        let table = self.tables.get(&base)?;
        let columns = &table.table.indexes[path.index].columns;
        let is_known = |part: &Part| matches!(part, Part::Eq(value) if value.columns().is_empty());
        let fixed = path.prefix.iter().zip(columns).filter(|(part, _)| is_known(part));
        let is_far = table.is_far && !fixed.into_iter().any(|(_, column)| table.pins.contains(&column.ordinal));
        if path.is_point {
            // A secondary index's entries lead to the rows.
            let steps = if path.index == 0 || is_covering { 1.0 } else { 2.0 };
            let far = if is_far { FAR / FAR_BATCH } else { 0.0 };
            return Some(path.ranges.max(1.0) * steps * (LOOKUP + far));
        }
        let each = if path.index == 0 || is_covering { ROW } else { ROW + LOOKUP };
        let rows = if path.is_whole() { path.rows.max(WHOLE_MIN) } else { path.rows };
        // Page after page.
        let far = if is_far { FAR * (1.0 + (rows / FAR_BATCH).floor()) } else { 0.0 };
        Some(path.ranges.max(1.0) * SEEK + far + rows * each)
    }

    /// What it takes to look up the partners of so many rows, one after the other.
    pub(super) fn cost_of_lookups(&self, outer: f64, path: &Path, of_path: f64) -> f64 {
        if path.is_point { outer * of_path } else { outer * (AGAIN + of_path) }
    }
}

/// The columns that the region of a row is computed from, if it is one.
fn pins(table: &TableRef) -> Vec<u32> {
    let Some(region) = table.region_column() else { return Vec::new() };
    let Some(text) = &table.columns[region as usize].generated else { return vec![region] };
    let words: Vec<&str> = text.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
    let of_text = table.live_columns().filter(|(_, c)| words.contains(&c.name.as_str())).map(|(o, _)| o);
    let from: Vec<u32> = of_text.collect();
    // Of several, each alone says too little.
    if from.len() == 1 { vec![region, from[0]] } else { vec![region] }
}

/// So many left rows count at least where each costs a reading of the right side: a smaller
/// estimate may be far too small, while a hash table in its place costs little more than one
/// reading.
pub(super) const READY_FOR: f64 = 3.0;

/// What it takes to join by a hash table of the right side.
pub(super) fn cost_of_hash(left: f64, right: f64) -> f64 {
    right * BUILD + left * PROBE
}

/// The same where the join only asks which left rows have partners.
pub(super) fn cost_of_test(left: f64, right: f64) -> f64 {
    right * BUILD_KEYS + left * PROBE
}

/// What it takes to compare all rows with all.
pub(super) fn cost_of_loop(left: f64, right: f64) -> f64 {
    right * ROW + left * right.max(1.0) * JOINED
}

pub(super) fn cost_of_rows(rows: f64) -> f64 {
    rows * JOINED
}

pub(super) fn cost_of_sort(rows: f64) -> f64 {
    rows * rows.max(2.0).log2() * COMPARED
}

/// A `char(n)`, where blanks at its end do not count.
fn bare(e: &Expr) -> &Expr {
    e.without_blanks().unwrap_or(e)
}

/// The column of an equality with a value that no other column says.
fn one_value(c: &Expr) -> Option<ColId> {
    let Expr::Compare(Cmp::Eq, p) = c else { return None };
    match (bare(&p.0), bare(&p.1)) {
        (Expr::Column(id), value) | (value, Expr::Column(id)) if value.columns().is_empty() => Some(*id),
        _ => None,
    }
}

/// A bound on a column.
fn bound(c: &Expr) -> Option<(ColId, bool, &Expr)> {
    let Expr::Compare(cmp, p) = c else { return None };
    let (id, cmp, value) = match &**p {
        (Expr::Column(_), Expr::Column(_)) => return None,
        (Expr::Column(id), value) => (*id, *cmp, value),
        (value, Expr::Column(id)) => (*id, cmp.flip(), value),
        _ => return None,
    };
    match cmp {
        Cmp::Gt | Cmp::Ge => Some((id, true, value)),
        Cmp::Lt | Cmp::Le => Some((id, false, value)),
        _ => None,
    }
}

/// The columns that have one value in all rows, by conditions of tables.
pub(super) fn fixed<'r>(rels: impl Iterator<Item = &'r Rel>) -> BTreeSet<ColId> {
    let mut out = BTreeSet::new();
    for rel in rels {
        let conds = match rel {
            Rel::Table { filters, .. } => filters,
            Rel::Filter { conds, .. } => conds,
            _ => continue,
        };
        for c in conds {
            if let Expr::Compare(Cmp::Eq, p) = c {
                match &**p {
                    (Expr::Column(_), Expr::Column(_)) => {}
                    (Expr::Column(id), _) | (_, Expr::Column(id)) => {
                        out.insert(*id);
                    }
                    _ => {}
                }
            }
        }
    }
    out
}

/// Conditions without those that compare two columns of one value each: these leave everything.
pub(super) fn telling<'c>(conds: impl Iterator<Item = &'c Expr>, fixed: &BTreeSet<ColId>) -> Vec<Expr> {
    let is_told = |c: &&Expr| match c {
        Expr::Compare(Cmp::Eq, p) => match &**p {
            (Expr::Column(a), Expr::Column(b)) => !(fixed.contains(a) && fixed.contains(b)),
            _ => true,
        },
        _ => true,
    };
    conds.filter(is_told).cloned().collect()
}
