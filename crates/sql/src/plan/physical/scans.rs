//! The scans of a table: the cheapest of its paths, or one for each side of an `OR` that no single
//! path answers.

use super::super::access;
use super::super::estimate;
use super::super::node::{KeyPart, KeyRangeParts, Node, Numbers, PlacePlan, Regions, Scan};
use super::super::path::{self, Part, Path, Place, Range};
use super::super::rel::SetOp;
use super::super::table::TablePlan;
use super::{Built, Compiler, Wish, satisfied, satisfies};
use crate::catalog::relation::TableRef;
use crate::env::Locking;
use crate::plan::expr::{ColId, Expr, shift_slots};
use meridian_base::{ColumnMask, Error, Result};
use std::collections::BTreeSet;
use std::sync::Arc;

/// How many scans a table's rows are read by.
const UNITED_MAX: usize = 8;
/// The part of an index that is read at least to find rows that meet conditions which it does not
/// answer.
const FOUND_LATE: f64 = 0.1;
/// Several scans must cost less than this part of one.
const WORTH: f64 = 0.8;

/// From how many rows on several threads may read them.
const LARGE_ROWS: f64 = 65_536.0;

/// A table whose rows are wanted.
pub(super) struct TableScan<'t> {
    pub table: &'t TableRef,
    pub base: ColId,
    pub alias: &'t str,
    pub locking: Locking,
    /// The output: ordinals.
    pub columns: Vec<u32>,
    /// Escrow columns whose estimates are part of the output: places in the table's list.
    pub estimates: Vec<usize>,
}

impl Compiler<'_> {
    /// The rows of a table that meet all conditions; among paths that cost the same, one with the
    /// wished order.
    pub(super) fn table(&mut self, of: &TableScan<'_>, filters: &[Expr], wish: Wish) -> Result<Built> {
        self.with_estimates(of, &Expr::in_turn(filters), |c, of, filters| match c.numbers(of, filters) {
            Some(asked) => c.with_numbers(of, filters, &asked, |c, of, filters| c.stored(of, filters, wish)),
            None => c.stored(of, filters, wish),
        })
    }

    /// The escrow columns whose numbers are asked for.
    fn numbers(&self, of: &TableScan<'_>, filters: &[Expr]) -> Option<Vec<u32>> {
        let in_filters = |o: u32| filters.iter().any(|f| f.columns().contains(&(of.base + o)));
        let is_read = |o: u32| of.columns.contains(&o) && !self.blind.contains(&(of.base + o));
        let asked: Vec<u32> = of.table.escrow.iter().map(|e| e.ordinal).filter(|o| is_read(*o) || in_filters(*o)).collect();
        (!asked.is_empty()).then_some(asked)
    }

    /// Rows as they are stored, with numbers in them; conditions on numbers are looked at then.
    fn with_numbers(
        &mut self,
        of: &TableScan<'_>,
        filters: &[Expr],
        asked: &[u32],
        stored: impl FnOnce(&mut Self, &TableScan<'_>, &[Expr]) -> Result<Built>,
    ) -> Result<Built> {
        let is_number = |f: &&Expr| f.columns().iter().any(|c| asked.iter().any(|o| of.base + o == *c));
        let (after, before): (Vec<&Expr>, Vec<&Expr>) = filters.iter().partition(is_number);
        let (after, before): (Vec<Expr>, Vec<Expr>) =
            (after.into_iter().cloned().collect(), before.into_iter().cloned().collect());
        let mut columns = of.columns.clone();
        columns.extend(of.table.primary().columns.iter().map(|c| c.ordinal));
        columns.extend(asked);
        columns.sort_unstable();
        columns.dedup();
        let inner = TableScan { columns: columns.clone(), estimates: Vec::new(), ..*of };
        let built = stored(self, &inner, &before)?;
        let filter = self.scalars(&after, &built.layout)?;
        let is_dense = matches!(&*built.node, Node::Scan(s) if s.index == 0 && !s.is_point);
        let types = (self.tables)(of.table)?.types.clone();
        let columns = built.layout.iter().map(|c| c - of.base).collect();
        let (table, ordinals) = (of.table.clone(), asked.to_vec());
        let numbers =
            Numbers { input: built.node.clone(), table, types, columns, ordinals, filter, is_dense, locking: of.locking };
        let rows = (built.rows * 0.3f64.powi(after.len().min(3) as i32)).max(access::FEW);
        Ok(Built { node: Arc::new(Node::Numbers(Box::new(numbers))), rows, ..built })
    }

    /// The same, without the numbers of escrow columns.
    fn stored(&mut self, of: &TableScan<'_>, filters: &[Expr], wish: Wish) -> Result<Built> {
        let plan = (self.tables)(of.table)?;
        let first = self.first.take();
        let (path, cost) = self.cheapest(of, &plan, filters, wish, first)?;
        match self.sides(of, &plan, filters, &path, wish, first) {
            Some((sides, united)) if united < cost * WORTH => self.unite(of, &plan, &sides),
            _ => {
                let order = ordering(of.table, of.base, &path);
                let part = wish.map(|wish| satisfied(wish, &order.0, &order.1));
                // Who needs the first rows alone is helped by a part of the order.
                let wish = if first.is_some() && part.as_ref().is_some_and(|p| !p.is_empty()) { part.as_deref() } else { wish };
                self.scan(of, &plan, filters, &path, wish, first.is_none())
            }
        }
    }

    /// The same by one scan, for a wish that only one scan can fulfil.
    pub(super) fn in_order(&mut self, of: &TableScan<'_>, filters: &[Expr], wish: &[(ColId, bool, bool)]) -> Result<Built> {
        let filters = &Expr::in_turn(filters)[..];
        match self.numbers(of, filters) {
            Some(asked) => self.with_numbers(of, filters, &asked, |c, of, filters| c.stored_in_order(of, filters, wish)),
            None => self.stored_in_order(of, filters, wish),
        }
    }

    fn stored_in_order(&mut self, of: &TableScan<'_>, filters: &[Expr], wish: &[(ColId, bool, bool)]) -> Result<Built> {
        let plan = (self.tables)(of.table)?;
        let first = self.first.take();
        let (path, _) = self.cheapest(of, &plan, filters, Some(wish), first)?;
        self.scan(of, &plan, filters, &path, Some(wish), first.is_none())
    }

    /// How many rows meet all conditions, if the table's are counted.
    fn expected(&self, base: ColId, filters: &[Expr]) -> Option<f64> {
        self.known.rows_of(base).map(|rows| (rows * self.known.selectivity(filters)).max(access::FEW))
    }

    /// The cheapest path, and what it costs. `first`: how many of the first rows are used.
    fn cheapest(
        &self,
        of: &TableScan<'_>,
        plan: &TablePlan,
        filters: &[Expr],
        wish: Wish,
        first: Option<f64>,
    ) -> Result<(Path, f64)> {
        let TableScan { table, base, .. } = *of;
        let predicate = |i: usize| {
            let mut e = plan.predicates[i].clone()?;
            shift_slots(&mut e, base);
            let mut conds = Vec::new();
            e.conjuncts(&mut conds);
            Some(conds)
        };
        let estimate = self.expected(base, filters);
        let cost = |p: &Path| {
            let is_covering = p.index == 0 || covers(table, p.index, &of.columns);
            let order = ordering(table, base, p);
            let is_ordered = satisfies(wish, &order.0, &order.1).0;
            if let (Some(rows), Some(read)) = (estimate, self.known.cost_of_path(base, p, is_covering)) {
                let read = if matches!(of.locking, Locking::None) { read } else { read + p.rows * estimate::LOCKED };
                // For an outer row that has no partner, all is read in vain.
                let others = filters.iter().enumerate().filter(|(i, _)| !p.consumed.contains(i)).map(|(_, c)| c);
                let in_vain = if first.is_some() { 1.0 - self.known.has_partner(base, others) } else { 0.0 };
                return match (is_ordered, wish, first) {
                    // It ends when there are enough of them.
                    (true, _, Some(first)) => read * (first / rows.max(1.0)).clamp(in_vain, 1.0),
                    (true, ..) => read,
                    (false, Some(wish), Some(first)) => {
                        // It ends with the last of the rows that are alike in a part of the order.
                        let part = satisfied(wish, &order.0, &order.1);
                        let alike = self.known.alike(part.iter().map(|(c, _, _)| *c), rows);
                        let read_of = if part.is_empty() { rows } else { (first + alike).min(rows) };
                        // Those that meet other conditions may come late.
                        let least = if p.consumed.len() < filters.len() { FOUND_LATE } else { 0.0 };
                        read * (read_of / rows.max(1.0)).clamp(in_vain.max(least), 1.0) + estimate::cost_of_sort(read_of)
                    }
                    (false, ..) => read + estimate::cost_of_sort(rows),
                };
            }
            // A sort reads everything before the first row comes out.
            p.rows * if is_covering { 1.0 } else { 2.0 } + if is_ordered { 0.0 } else { p.rows * 0.5 + 1.0 }
        };
        let candidates = access::paths(table, base, filters, &predicate, self.known).into_iter().map(|p| (cost(&p), p));
        let best = candidates.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.index.cmp(&b.1.index)));
        let (cost, path) = best.ok_or_else(|| Error::internal(format!("table \"{}\" has no readable index", table.name)))?;
        Ok((path, cost))
    }

    /// The conditions of the scans that together give the rows of an `OR` that a path does not
    /// answer, and what they cost. Each leaves out what one before it gives, so no row comes twice.
    fn sides(
        &self,
        of: &TableScan<'_>,
        plan: &TablePlan,
        filters: &[Expr],
        path: &Path,
        wish: Wish,
        first: Option<f64>,
    ) -> Option<(Vec<Vec<Expr>>, f64)> {
        let of_or = |at: usize| {
            let sides = path::sides(&filters[at], UNITED_MAX)?;
            if filters[at].is_volatile() || filters[at].needs_executor() {
                return None;
            }
            let others = || filters.iter().enumerate().filter(move |(other, _)| *other != at).map(|(_, f)| f.clone());
            let not_before = |n: usize| {
                let before = sides[..n].iter();
                before.map(|side| Expr::Not(Box::new(Expr::IsBool(Box::new(side.clone()), true))))
            };
            let each = |(n, side): (usize, &Expr)| -> Vec<Expr> {
                path::conjuncts(side).into_iter().cloned().chain(others()).chain(not_before(n)).collect()
            };
            let all: Vec<Vec<Expr>> = sides.iter().enumerate().map(each).collect();
            let first = first.filter(|_| wish.is_none());
            let costs = all.iter().map(|side| Some(self.cheapest(of, plan, side, None, first).ok()?.1));
            let read: f64 = costs.sum::<Option<f64>>()?;
            let sort = match (wish, self.expected(of.base, filters)) {
                (None, _) => 0.0,
                (Some(_), Some(rows)) => estimate::cost_of_sort(rows),
                (Some(_), None) => read * 0.5 + 1.0,
            };
            Some((all, read + sort))
        };
        (0..filters.len()).filter(|at| !path.consumed.contains(at)).filter_map(of_or).min_by(|a, b| a.1.total_cmp(&b.1))
    }

    fn unite(&mut self, of: &TableScan<'_>, plan: &TablePlan, sides: &[Vec<Expr>]) -> Result<Built> {
        let mut all: Option<Built> = None;
        for side in sides {
            let (path, _) = self.cheapest(of, plan, side, None, None)?;
            let next = self.scan(of, plan, side, &path, None, false)?;
            all = Some(match all {
                None => next,
                Some(before) => Built {
                    rows: before.rows + next.rows,
                    is_counted: before.is_counted && next.is_counted,
                    ..Built::plain(
                        Node::SetOp { op: SetOp::Union, all: true, left: before.node, right: next.node },
                        next.layout,
                        0.0,
                    )
                },
            });
        }
        all.ok_or_else(|| Error::internal("an OR has no sides"))
    }

    /// A scan by one path. `takes_all`: no limit leaves some of the rows unread.
    fn scan(
        &mut self,
        of: &TableScan<'_>,
        plan: &TablePlan,
        filters: &[Expr],
        path: &Path,
        wish: Wish,
        takes_all: bool,
    ) -> Result<Built> {
        let TableScan { table, base, alias, locking, ref columns, .. } = *of;
        let estimate = self.expected(base, filters);
        let (mut order, mut fixed) = ordering(table, base, path);
        let (_, reverse) = satisfies(wish, &order, &fixed);
        if reverse {
            order.iter_mut().for_each(|(_, d, n)| (*d, *n) = (!*d, !*n));
        }
        let regions = path::regions(table, base, filters, &|o| {
            let mut e = plan.generated.iter().find(|(g, _)| *g == o)?.1.clone();
            shift_slots(&mut e, base);
            Some(e)
        });
        let is_one = table.group_count() == 1 || regions.as_ref().is_some_and(|r| matches!(r.part, Part::Eq(_)));
        if is_one {
            fixed.extend(table.region_column().map(|o| base + o));
        }
        let is_ordered = |w: &[(ColId, bool, bool)]| w.iter().any(|(c, _, _)| !fixed.contains(c));
        let is_merged = !is_one && !path.is_point && wish.is_some_and(is_ordered) && satisfies(wish, &order, &fixed).0;
        if !is_one && !path.is_point && !is_merged {
            order.clear();
        }
        let writes = !matches!(locking, Locking::None);
        let mut mask = ColumnMask::EXISTENCE;
        let own = base..base + table.columns.len() as u32;
        let mut read: Vec<u32> = columns.clone();
        read.extend(filters.iter().flat_map(Expr::columns).filter(|c| own.contains(c)).map(|c| c - base));
        read.iter().for_each(|o| mask |= ColumnMask::column(*o));
        if (locking.is_to_write() || self.written == Some(base)) && columns.len() == table.columns.len() {
            // Who writes a row counts as reading all of it.
            mask = ColumnMask::ALL;
        }
        let layout: Vec<ColId> = columns.iter().map(|o| base + o).collect();
        let by_region = regions.as_ref().and_then(|r| r.consumed);
        let is_left = |i: &usize| !path.consumed.contains(i) && by_region != Some(*i);
        let remaining = filters.iter().enumerate().filter(|(i, _)| is_left(i)).map(|(_, f)| f.clone());
        let filter = self.scalars(&remaining.collect::<Vec<_>>(), &layout)?;
        let key_part = |p: &Part, c: &mut Self| {
            Ok::<_, Error>(match p {
                Part::Eq(e) => KeyPart::Eq(c.scalar(e, &[])?),
                Part::In(v) => KeyPart::In(c.scalars(v, &[])?),
                Part::Any(e) => KeyPart::Any(c.scalar(e, &[])?),
                Part::Null => KeyPart::Null,
            })
        };
        let prefix = path.prefix.iter().map(|p| key_part(p, self)).collect::<Result<_>>()?;
        let place = |p: &Place, c: &mut Self| {
            Ok::<_, Error>(PlacePlan { values: c.scalars(&p.values, &[])?, range: c.range(p.range.as_ref())? })
        };
        let places = path.places.iter().map(|p| place(p, self)).collect::<Result<_>>()?;
        let range = self.range(path.range.as_ref())?;
        let regions = match &regions {
            Some(r) => Some(Regions { part: key_part(&r.part, self)?, is_computed: r.consumed.is_none() }),
            None => None,
        };
        let is_covering = path.index == 0 || (!writes && covers(table, path.index, columns));
        let rows = match estimate {
            Some(rows) => rows.min(path.rows.max(access::FEW)),
            None => (path.rows * 0.5f64.powi(filter.len().min(3) as i32)).max(0.1),
        };
        self.cost += self.known.cost_of_path(base, path, is_covering).unwrap_or(0.0);
        let scan = Scan {
            table: table.clone(),
            alias: alias.to_string(),
            types: plan.types.clone(),
            missing: plan.missing.clone(),
            index: path.index,
            prefix,
            places,
            range,
            is_point: path.is_point,
            reverse,
            columns: columns.clone(),
            filter,
            mask,
            locking,
            is_covering,
            regions,
            is_merged,
            estimate: estimate.map(|_| rows),
            statistics: self.known.statistics_of(base).filter(|_| takes_all && path.rows >= LARGE_ROWS).cloned(),
        };
        Ok(Built { node: Arc::new(Node::Scan(Arc::new(scan))), layout, order, fixed, rows, is_counted: estimate.is_some() })
    }

    fn range(&mut self, range: Option<&Range>) -> Result<Option<KeyRangeParts>> {
        let Some(range) = range else { return Ok(None) };
        let mut side = |all: &[(Expr, bool)]| -> Result<Vec<_>> {
            all.iter().map(|(e, included)| Ok((self.scalar(e, &[])?, *included))).collect()
        };
        let (lower, upper) = (side(&range.lower)?, side(&range.upper)?);
        Ok(Some(KeyRangeParts { lower, upper, like: range.like.as_ref().map(|e| self.scalar(e, &[])).transpose()? }))
    }
}

/// Whether the entries of a secondary index hold these columns.
fn covers(table: &TableRef, index: usize, columns: &[u32]) -> bool {
    let i = &table.indexes[index];
    let exact = |o: u32| crate::types::keys::keeps_looks(&table.columns[o as usize].ty);
    let in_key = |o: u32| i.columns.iter().any(|c| c.ordinal == o) && exact(o);
    let in_primary = |o: u32| table.primary().columns.iter().any(|c| c.ordinal == o) && exact(o);
    // The group that an entry is in says the region.
    columns.iter().all(|o| in_key(*o) || i.stored.contains(o) || in_primary(*o) || table.region_column() == Some(*o))
}

/// The order a path gives, and the columns it fixes.
fn ordering(table: &TableRef, base: ColId, path: &Path) -> (Vec<(ColId, bool, bool)>, BTreeSet<ColId>) {
    let index = &table.indexes[path.index];
    let (mut order, mut fixed) = (Vec::new(), BTreeSet::new());
    for (i, c) in index.columns.iter().enumerate() {
        match path.prefix.get(i) {
            Some(Part::Eq(_) | Part::Null) => {
                fixed.insert(base + c.ordinal);
            }
            // Several values: their keys are visited in the order of the index.
            _ => order.push((base + c.ordinal, c.descending, c.nulls_first)),
        }
    }
    if path.index != 0 && !index.unique {
        let rest = table.primary().columns.iter().filter(|c| !index.columns.iter().any(|x| x.ordinal == c.ordinal));
        order.extend(rest.map(|c| (base + c.ordinal, c.descending, c.nulls_first)));
    }
    // A column that is never NULL is ordered the same whichever end its NULLs would be at.
    (order, fixed)
}
