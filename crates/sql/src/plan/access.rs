//! How to reach the rows of a table: which index, which part of it.

use super::estimate::{self, Known};
use super::rel::{Rel, width};
use crate::catalog::lookup::TableRef;
use crate::catalog::{Index, IndexState};
use crate::plan::expr::{Cmp, ColId, Expr, Meets};
use crate::types::{Datum, Type};
use std::collections::BTreeSet;

/// A part of an index, in logical expressions.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    /// Position in the table's indexes.
    pub(crate) index: usize,
    pub(crate) prefix: Vec<Part>,
    /// Instead of a prefix: what is looked at one after the other (`(a, b) IN ((1, 2), (3, 4))`, `a
    /// = 1 OR a > 5`).
    pub(crate) places: Vec<Place>,
    pub(crate) range: Option<Range>,
    /// Every column of a unique index is fixed: each key is one entry.
    pub(crate) is_point: bool,
    /// The conditions that the path alone answers, by position.
    pub(crate) consumed: Vec<usize>,
    /// How many rows it may give.
    pub(crate) rows: f64,
    /// How many ranges, or keys, are looked at.
    pub(crate) ranges: f64,
}

/// A part of an index beside others.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Of the first columns.
    pub(crate) values: Vec<Expr>,
    /// Of the column after them.
    pub(crate) range: Option<Range>,
}

/// The values of one index column.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    Eq(Expr),
    In(Vec<Expr>),
    /// The elements of an array.
    Any(Expr),
    Null,
}

/// Bounds on the column after the prefix.
#[derive(Clone, Debug, Default)]
pub(crate) struct Range {
    /// The value, and whether it is included.
    pub(crate) lower: Option<(Expr, bool)>,
    pub(crate) upper: Option<(Expr, bool)>,
    /// The pattern of a `LIKE`.
    pub(crate) like: Option<Expr>,
}

/// Rows of a table nobody has counted.
const TABLE_ROWS: f64 = 1000.0;

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
        let several = places(at, table, &own, filters, (one.prefix.len(), one.range.is_some()));
        for mut path in std::iter::once(one).chain(several) {
            path.consumed.extend(implied.iter().copied());
            path.rows = known.rows_of_path(base, &path).unwrap_or(path.rows);
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

fn path(index: &Index, at: usize, table: &TableRef, own: &std::ops::Range<ColId>, filters: &[Expr]) -> Path {
    let (mut prefix, mut consumed, mut range) = (Vec::new(), Vec::new(), None);
    let mut multiple = 1.0f64;
    for column in &index.columns {
        let id = own.start + column.ordinal;
        let ty = &table.columns[column.ordinal as usize].ty;
        match filters.iter().enumerate().find_map(|(i, f)| part(f, id, ty, own).map(|p| (i, p))) {
            Some((i, p)) => {
                multiple *= match &p {
                    Part::In(v) => v.len().max(1) as f64,
                    Part::Any(_) => 10.0,
                    _ => 1.0,
                };
                consumed.push(i);
                prefix.push(p);
            }
            None => {
                range = bounds(filters.iter().enumerate(), id, ty, own, &mut consumed);
                break;
            }
        }
    }
    let full = prefix.len() == index.columns.len();
    let has_null = prefix.iter().any(|p| matches!(p, Part::Null));
    let is_point = full && index.unique && !has_null;
    // A unique one leaves one.
    let mut rows = if is_point {
        multiple
    } else if prefix.is_empty() {
        TABLE_ROWS
    } else {
        rows_of_prefix(index, prefix.len()) * multiple
    };
    rows *= range.as_ref().map_or(1.0, part_of_range);
    Path { index: at, prefix, places: Vec::new(), range, is_point, consumed, rows, ranges: multiple }
}

impl Path {
    /// Whether no condition makes it shorter.
    pub(super) fn is_whole(&self) -> bool {
        self.prefix.is_empty() && self.places.is_empty() && self.range.is_none()
    }
    /// Whether all rows it gives have one of some values in the index's first column.
    pub(super) fn has_values(&self) -> bool {
        !self.prefix.is_empty() || !self.places.is_empty() && self.places.iter().all(|p| !p.values.is_empty())
    }
}

/// The paths to the places that an `OR` names, one for each `OR` whose sides all say more about the
/// index than the other conditions do (`known`: of how many columns these give the values, and
/// whether they bound the next one).
fn places<'t>(
    at: usize,
    table: &'t TableRef,
    own: &'t std::ops::Range<ColId>,
    filters: &'t [Expr],
    known: (usize, bool),
) -> impl Iterator<Item = Path> + 't {
    let ors = filters.iter().enumerate().filter_map(|(i, f)| Some((i, sides(f, PLACES_MAX)?)));
    ors.filter_map(move |(i, sides)| {
        let index = &table.indexes[at];
        let others = filters.iter().enumerate().filter(|(other, _)| *other != i);
        let (mut places, mut rows) = (Vec::with_capacity(sides.len()), 0.0);
        let mut is_answered = true;
        // The other conditions that every side's places answer.
        let mut answered: Option<BTreeSet<usize>> = None;
        for side in sides {
            let conditions = conjuncts(side);
            // The side's own conditions come first, and are counted from the end of the others.
            let own_ones = conditions.iter().enumerate().map(|(n, c)| (filters.len() + n, *c));
            let all = || own_ones.clone().chain(others.clone());
            let mut used = BTreeSet::new();
            let mut values = vec![Vec::new()];
            for column in &index.columns {
                let id = own.start + column.ordinal;
                let ty = &table.columns[column.ordinal as usize].ty;
                let several = |(n, c): (usize, &Expr)| match part(c, id, ty, own)? {
                    Part::Eq(value) => Some((n, vec![value])),
                    Part::In(list) if values.len() * list.len() <= LISTED_MAX => Some((n, list)),
                    _ => None,
                };
                let Some((n, list)) = all().find_map(several) else { break };
                used.insert(n);
                let with = |v: &Vec<Expr>, last: &Expr| v.iter().chain([last]).cloned().collect::<Vec<_>>();
                values = values.iter().flat_map(|v| list.iter().map(move |last| with(v, last))).collect();
            }
            let width = values.first().map_or(0, Vec::len);
            let range = index.columns.get(width).and_then(|column| {
                let mut bounding = Vec::new();
                let ty = &table.columns[column.ordinal as usize].ty;
                let range = bounds(all(), own.start + column.ordinal, ty, own, &mut bounding);
                used.extend(bounding);
                range
            });
            if (width, range.is_some()) <= known || places.len() + values.len() > PLACES_MAX {
                return None;
            }
            is_answered &= (0..conditions.len()).all(|n| used.contains(&(filters.len() + n)));
            used.retain(|n| *n < filters.len());
            answered = Some(answered.map_or_else(|| used.clone(), |all| &all & &used));
            let each = if width == index.columns.len() && index.unique { 1.0 } else { rows_of_prefix(index, width) };
            rows += values.len() as f64 * each * range.as_ref().map_or(1.0, part_of_range);
            places.extend(values.into_iter().map(|values| Place { values, range: range.clone() }));
        }
        let consumed = answered.into_iter().flatten().chain(is_answered.then_some(i)).collect();
        let is_point = index.unique && places.iter().all(|p| p.values.len() == index.columns.len());
        let ranges = places.len() as f64;
        Some(Path { index: at, prefix: Vec::new(), places, range: None, is_point, consumed, rows, ranges })
    })
}

/// The sides of an `OR`, if there are not too many of them.
pub(super) fn sides(e: &Expr, most: usize) -> Option<&[Expr]> {
    match e {
        Expr::Or(sides) if sides.len() <= most => Some(sides),
        _ => None,
    }
}

/// What must hold for an expression to hold: the parts of an `AND`, however deep.
pub(super) fn conjuncts(e: &Expr) -> Vec<&Expr> {
    match e {
        Expr::And(all) => all.iter().flat_map(conjuncts).collect(),
        one => vec![one],
    }
}

/// How many places of an index are looked at by themselves at most.
const PLACES_MAX: usize = 100_000;
/// How many places the `IN` lists of one side may multiply to.
const LISTED_MAX: usize = 1_000;

/// What a range leaves of the rows.
fn part_of_range(range: &Range) -> f64 {
    match (range.lower.is_some(), range.upper.is_some(), range.like.is_some()) {
        (true, true, _) | (_, _, true) => 0.1,
        (false, false, _) => 0.9,
        _ => 0.3,
    }
}

/// Each fixed column of a key leaves a tenth.
fn rows_of_prefix(index: &Index, columns: usize) -> f64 {
    let unique_floor: f64 = if index.unique { 0.2 } else { 0.05 };
    (TABLE_ROWS * unique_floor.max(0.1f64.powi(columns as i32))).max(2.0)
}

/// The regions whose rows may satisfy the conditions.
pub(crate) struct RegionsPart {
    pub(crate) part: Part,
    /// The condition on the region column itself, which needs no other test then.
    pub(crate) consumed: Option<usize>,
}

/// What the conditions say about the regions of a `REGIONAL BY ROW` table's rows. `computed`: the
/// expression of a generated column, over the table's columns.
pub(crate) fn regions(
    table: &TableRef,
    base: ColId,
    filters: &[Expr],
    computed: &dyn Fn(u32) -> Option<Expr>,
) -> Option<RegionsPart> {
    let own = base..base + width(table);
    let ordinal = table.region_column()?;
    let found = filters.iter().enumerate().find_map(|(i, f)| part(f, base + ordinal, &Type::Region, &own).map(|p| (i, p)));
    if let Some((i, part)) = found {
        return Some(RegionsPart { part, consumed: Some(i) });
    }
    let e = computed(ordinal)?;
    // One expression for each combination of the columns' values.
    let mut each = vec![e.clone()];
    for column in e.columns() {
        let ty = &table.columns[column.checked_sub(base)? as usize].ty;
        if !crate::types::keys::is_exact(ty) {
            return None;
        }
        let values = filters.iter().find_map(|f| match part(f, column, ty, &own) {
            Some(Part::Eq(value)) => Some(vec![value]),
            Some(Part::In(values)) if values.len() * each.len() <= REGION_VALUES_MAX => Some(values),
            _ => None,
        })?;
        let with = |e: &Expr, value: &Expr| {
            let mut e = e.clone();
            e.substitute(&|c| (c == column).then(|| value.clone()));
            e
        };
        each = each.iter().flat_map(|e| values.iter().map(move |v| with(e, v))).collect();
    }
    let part = match each.len() {
        1 => Part::Eq(each.swap_remove(0)),
        _ => Part::In(each),
    };
    Some(RegionsPart { part, consumed: None })
}

/// Of how many values at most a region is computed in vain, if they are of all regions.
const REGION_VALUES_MAX: usize = 64;

/// Whether an expression's value is known before the table is read.
fn is_outer(e: &Expr, own: &std::ops::Range<ColId>) -> bool {
    !e.is_volatile() && !e.columns().iter().any(|c| own.contains(c))
}

fn is_keyable(ty: &Type) -> bool {
    !matches!(ty, Type::Json | Type::Jsonb | Type::Record)
}

fn part(f: &Expr, id: ColId, ty: &Type, own: &std::ops::Range<ColId>) -> Option<Part> {
    if !is_keyable(ty) {
        return None;
    }
    let is_col = |e: &Expr| matches!(e, Expr::Column(c) if *c == id);
    match f {
        Expr::Compare(Cmp::Eq, p) if is_col(&p.0) && is_outer(&p.1, own) => Some(Part::Eq(p.1.clone())),
        Expr::Compare(Cmp::Eq, p) if is_col(&p.1) && is_outer(&p.0, own) => Some(Part::Eq(p.0.clone())),
        // Blank-padded text has an equality of its own; its keys are without the blanks.
        Expr::Call(f, args)
            if f.name == "=" && matches!((ty, f.args.as_slice()), (Type::Char(_), [Type::Char(_), Type::Char(_)])) =>
        {
            match args.as_slice() {
                [a, b] if is_col(a) && is_outer(b, own) => Some(Part::Eq(b.clone())),
                [a, b] if is_col(b) && is_outer(a, own) => Some(Part::Eq(a.clone())),
                _ => None,
            }
        }
        Expr::In(l, list) if is_col(l) && list.iter().all(|e| is_outer(e, own)) => Some(Part::In(list.clone())),
        Expr::Quantified(q)
            if is_col(&q.left) && !q.all && matches!(q.meets, Meets::Compare(Cmp::Eq)) && is_outer(&q.array, own) =>
        {
            Some(Part::Any(q.array.clone()))
        }
        // `a = 1 OR a = 2`.
        Expr::Or(items) => {
            let each = items.iter().map(|i| match part(i, id, ty, own) {
                Some(Part::Eq(e)) => Some(vec![e]),
                Some(Part::In(v)) => Some(v),
                _ => None,
            });
            Some(Part::In(each.collect::<Option<Vec<_>>>()?.concat()))
        }
        Expr::IsNull(e) if is_col(e) => Some(Part::Null),
        Expr::Column(c) if *c == id && *ty == Type::Bool => Some(Part::Eq(Expr::TRUE)),
        _ => None,
    }
}

/// The bounds on a column that some conditions give; `consumed`: the numbers of those that need no
/// other test then.
fn bounds<'f>(
    filters: impl Iterator<Item = (usize, &'f Expr)>,
    id: ColId,
    ty: &Type,
    own: &std::ops::Range<ColId>,
    consumed: &mut Vec<usize>,
) -> Option<Range> {
    if !is_keyable(ty) {
        return None;
    }
    let is_col = |e: &Expr| matches!(e, Expr::Column(c) if *c == id);
    let (mut range, mut is_there) = (Range::default(), false);
    for (i, f) in filters {
        match f {
            Expr::Compare(cmp, p) => {
                let (cmp, value) = match () {
                    _ if is_col(&p.0) && is_outer(&p.1, own) => (*cmp, &p.1),
                    _ if is_col(&p.1) && is_outer(&p.0, own) => (cmp.flip(), &p.0),
                    _ => continue,
                };
                let (side, included) = match cmp {
                    Cmp::Gt | Cmp::Ge => (&mut range.lower, cmp == Cmp::Ge),
                    Cmp::Lt | Cmp::Le => (&mut range.upper, cmp == Cmp::Le),
                    _ => continue,
                };
                if side.is_none() {
                    *side = Some((value.clone(), included));
                    consumed.push(i);
                }
            }
            Expr::Call(f, args)
                if f.name == "~~"
                    && args.len() == 2
                    && is_col(&args[0])
                    && is_outer(&args[1], own)
                    && matches!(ty, Type::Text | Type::Varchar(_)) =>
            {
                range.like = Some(args[1].clone());
            }
            // A range without bounds leaves the NULLs out.
            Expr::Not(e) if matches!(&**e, Expr::IsNull(e) if is_col(e)) => {
                is_there = true;
                consumed.push(i);
            }
            _ => {}
        }
    }
    let any = range.lower.is_some() || range.upper.is_some();
    if any {
        range.like = None;
    }
    (any || is_there || range.like.is_some()).then_some(range)
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
