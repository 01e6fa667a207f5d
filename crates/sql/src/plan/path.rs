//! Ways into a table: an index, and the part of it that conditions leave.

use super::rel::width;
use crate::catalog::Index;
use crate::catalog::relation::TableRef;
use crate::plan::expr::{Cmp, ColId, Expr, Meets};
use crate::types::{Datum, Type};
use std::collections::BTreeSet;

/// How many places of an index are looked at by themselves at most.
const PLACES_MAX: usize = 100_000;
/// How many places the `IN` lists of one side may multiply to.
const LISTED_MAX: usize = 1_000;

/// Of how many values at most a region is computed in vain, if they are of all regions.
const REGION_VALUES_MAX: usize = 64;

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

impl Part {
    /// How many values it may have.
    fn most(&self) -> f64 {
        match self {
            Part::In(list) => list.len().max(1) as f64,
            Part::Any(array) if array.as_const().is_none() => f64::INFINITY,
            Part::Any(array) => length(array).max(1.0),
            Part::Eq(_) | Part::Null => 1.0,
        }
    }
}

/// Bounds on the column after the prefix.
#[derive(Clone, Debug, Default)]
pub(crate) struct Range {
    /// Values, and whether they are included: all of these bounds count.
    pub(crate) lower: Vec<(Expr, bool)>,
    pub(crate) upper: Vec<(Expr, bool)>,
    /// How many of these only follow from an `OR` ([`implied`]).
    pub(crate) implied: usize,
    /// The pattern of a `LIKE`.
    pub(crate) like: Option<Expr>,
}

/// Rows of a table nobody has counted.
pub(super) const TABLE_ROWS: f64 = 1000.0;

/// Values of an array that is not known.
const LIST: f64 = 10.0;

/// How many values an array has.
pub(super) fn length(array: &Expr) -> f64 {
    match array.as_const() {
        None => LIST,
        Some(Datum::Array(array)) => array.items.len() as f64,
        Some(_) => 0.0,
    }
}

pub(super) fn path(index: &Index, at: usize, table: &TableRef, own: &std::ops::Range<ColId>, filters: &[Expr]) -> Path {
    let (mut prefix, mut consumed, mut range) = (Vec::new(), Vec::new(), None);
    let (mut multiple, mut most) = (1.0f64, 1.0f64);
    for column in &index.columns {
        let id = own.start + column.ordinal;
        let ty = &table.columns[column.ordinal as usize].ty;
        // Lists multiply, and an array may have any length.
        let fits = |p: &Part| most <= 1.0 || p.most() <= 1.0 || most * p.most() <= LISTED_MAX as f64;
        let found = filters.iter().enumerate().find_map(|(i, f)| Some((i, part(f, id, ty, own).filter(fits)?)));
        match found {
            Some((i, p)) => {
                most *= p.most();
                multiple *= match &p {
                    Part::In(v) => v.len().max(1) as f64,
                    Part::Any(list) => length(list),
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
    /// How many of the index's first columns have one value each in all rows it gives.
    pub(super) fn fixed(&self) -> usize {
        self.prefix.iter().take_while(|p| matches!(p, Part::Eq(_) | Part::Null)).count()
    }
    /// Whether all rows it gives have one of some values in the index's first column.
    pub(super) fn has_values(&self) -> bool {
        !self.prefix.is_empty() || !self.places.is_empty() && self.places.iter().all(|p| !p.values.is_empty())
    }
}

/// The paths to the places that an `OR` names, one for each `OR` whose sides all say more about the
/// index than the other conditions do (`known`: of how many columns these give the values, and how
/// much they say of the next one).
pub(super) fn places<'t>(
    at: usize,
    table: &'t TableRef,
    own: &'t std::ops::Range<ColId>,
    filters: &'t [Expr],
    known: (usize, usize),
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
            if (width, told(range.as_ref())) <= known || places.len() + values.len() > PLACES_MAX {
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

/// How much the conditions themselves say of a range.
pub(super) fn told(range: Option<&Range>) -> usize {
    range.map_or(0, |range| 1 + range.lower.len() + range.upper.len() - range.implied)
}

/// What a range leaves of the rows.
fn part_of_range(range: &Range) -> f64 {
    match (!range.lower.is_empty(), !range.upper.is_empty(), range.like.is_some()) {
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
    if matches!(ty, Type::Char(_)) {
        return part_of_char(f, id, own);
    }
    match f {
        Expr::Compare(Cmp::Eq, p) if is_col(&p.0) && is_outer(&p.1, own) => Some(Part::Eq(p.1.clone())),
        Expr::Compare(Cmp::Eq, p) if is_col(&p.1) && is_outer(&p.0, own) => Some(Part::Eq(p.0.clone())),
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
        // `a IS NOT DISTINCT FROM 1`.
        Expr::Not(e) => match &**e {
            Expr::Distinct(p) => {
                let is_value = |e: &Expr| e.as_const().is_some_and(|value| !value.is_null());
                let value = [(&p.0, &p.1), (&p.1, &p.0)].into_iter().find(|(l, r)| is_col(l) && is_value(r));
                value.map(|(_, value)| Part::Eq(value.clone()))
            }
            _ => None,
        },
        Expr::Column(c) if *c == id && *ty == Type::Bool => Some(Part::Eq(Expr::TRUE)),
        _ => None,
    }
}

/// The same of a `char(n)`, whose keys are without the blanks at the end: it is compared with what
/// has none as well.
fn part_of_char(f: &Expr, id: ColId, own: &std::ops::Range<ColId>) -> Option<Part> {
    let is_own = |e: &Expr| matches!(e, Expr::Column(c) if *c == id);
    let is_col = |e: &Expr| e.without_blanks().is_some_and(is_own);
    let is_bare = |d: &Datum| matches!(d, Datum::Null) || matches!(d, Datum::Text(t) if !t.as_str().ends_with(' '));
    let is_value = |e: &Expr| is_outer(e, own) && (e.without_blanks().is_some() || e.as_const().is_some_and(is_bare));
    match f {
        Expr::Compare(Cmp::Eq, p) if is_col(&p.0) && is_value(&p.1) => Some(Part::Eq(p.1.clone())),
        Expr::Compare(Cmp::Eq, p) if is_col(&p.1) && is_value(&p.0) => Some(Part::Eq(p.0.clone())),
        Expr::In(l, list) if is_col(l) && list.iter().all(is_value) => Some(Part::In(list.clone())),
        Expr::Quantified(q)
            if is_col(&q.left) && !q.all && matches!(q.meets, Meets::Compare(Cmp::Eq)) && is_outer(&q.array, own) =>
        {
            let is_bare = match &q.array {
                Expr::Const(Datum::Array(a)) => a.items.iter().all(is_bare),
                Expr::Cast(c) => c.from.element().is_some_and(|of| matches!(of, Type::Char(_))),
                _ => false,
            };
            is_bare.then(|| Part::Any(q.array.clone()))
        }
        Expr::Or(items) => {
            let each = items.iter().map(|i| match part_of_char(i, id, own) {
                Some(Part::Eq(e)) => Some(vec![e]),
                Some(Part::In(v)) => Some(v),
                _ => None,
            });
            Some(Part::In(each.collect::<Option<Vec<_>>>()?.concat()))
        }
        Expr::IsNull(e) if is_own(e) => Some(Part::Null),
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
                side.push((value.clone(), included));
                consumed.push(i);
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
            Expr::Or(sides) => {
                for (bounds, which) in [(&mut range.lower, [Cmp::Gt, Cmp::Ge]), (&mut range.upper, [Cmp::Lt, Cmp::Le])] {
                    let bound = implied(sides, id, which, own);
                    range.implied += usize::from(bound.is_some());
                    bounds.extend(bound);
                }
            }
            // A range without bounds leaves the NULLs out.
            Expr::Not(e) if matches!(&**e, Expr::IsNull(e) if is_col(e)) => {
                is_there = true;
                consumed.push(i);
            }
            _ => {}
        }
    }
    let any = !range.lower.is_empty() || !range.upper.is_empty();
    if any {
        range.like = None;
    }
    (any || is_there || range.like.is_some()).then_some(range)
}

/// A bound on a column that all sides of an `OR` have, as each of `(a, b) < (1, 2)` and `a < 1 OR a
/// = 1 AND b < 2` implies `a <= 1`. `which`: the comparisons without and with the value itself.
fn implied(sides: &[Expr], id: ColId, which: [Cmp; 2], own: &std::ops::Range<ColId>) -> Option<(Expr, bool)> {
    let is_col = |e: &Expr| matches!(e, Expr::Column(c) if *c == id);
    let bound = |e: &'_ Expr| -> Option<(Expr, bool)> {
        let Expr::Compare(cmp, p) = e else { return None };
        let (cmp, value) = match () {
            _ if is_col(&p.0) && is_outer(&p.1, own) => (*cmp, &p.1),
            _ if is_col(&p.1) && is_outer(&p.0, own) => (cmp.flip(), &p.0),
            _ => return None,
        };
        (cmp == Cmp::Eq || which.contains(&cmp)).then(|| (value.clone(), cmp != which[0]))
    };
    let of_side = |side: &Expr| conjuncts(side).into_iter().filter_map(bound).collect::<Vec<_>>();
    let (first, rest) = sides.split_first()?;
    let mut common = of_side(first);
    for side in rest {
        if common.is_empty() {
            return None;
        }
        let others = of_side(side);
        common.retain_mut(|(value, is_included)| {
            let mut same = others.iter().filter(|(other, _)| other == value).peekable();
            let is_there = same.peek().is_some();
            // Of several bounds at one value the narrower counts.
            *is_included |= is_there && same.all(|(_, included)| *included);
            is_there
        });
    }
    common.into_iter().next()
}
