//! Joins: by looking partners up, by reading the right side for each left row, or by hashing it.

use super::super::node::Node;
use super::super::rel::{JoinKind, Rel};
use super::super::unnest::{is_plain, sides};
use super::super::{access, estimate, optimize};
use super::{Built, Compiler, Wish, satisfied, satisfies, with_columns};
use crate::env::Locking;
use crate::plan::expr::{Cmp, ColId, Expr};
use meridian_base::Result;
use std::collections::BTreeSet;
use std::sync::Arc;

/// So many rows are kept without a thought.
const KEPT_ROWS: f64 = 10_000.0;

/// The sides of the equalities among a join's conditions, and the other conditions.
#[derive(Default)]
struct Keys {
    left: Vec<Expr>,
    right: Vec<Expr>,
    rest: Vec<Expr>,
}

/// Whether a left join adds nothing: nothing of its right side is used, and no left row has two
/// partners there.
fn adds_nothing(kind: JoinKind, right: &Rel, on: &[Expr], need: &BTreeSet<ColId>) -> bool {
    let Rel::Table { table, base, locking: Locking::None, filters, .. } = right else { return false };
    let cols: BTreeSet<ColId> = right.cols().into_iter().collect();
    let conds = on.iter().chain(filters);
    if kind != JoinKind::Left || !need.is_disjoint(&cols) || conds.clone().any(|c| c.is_volatile() || c.needs_executor()) {
        return false;
    }
    let column = |c: &Expr| match sides(c, &cols)? {
        (_, Expr::Column(id)) => Some(id - base),
        _ => None,
    };
    let tied: BTreeSet<u32> = conds.filter_map(column).collect();
    table.indexes.iter().any(|index| {
        let columns: Vec<u32> = index.columns.iter().map(|c| c.ordinal).collect();
        index.is_key(&columns) && columns.iter().all(|c| tied.contains(c))
    })
}

impl Compiler<'_> {
    pub(super) fn join(
        &mut self,
        kind: JoinKind,
        left: &Rel,
        right: &Rel,
        on: &[Expr],
        need: &BTreeSet<ColId>,
        wish: Wish,
    ) -> Result<Built> {
        if adds_nothing(kind, right, on, need) {
            return self.rel(left, need, wish);
        }
        let below = with_columns(need, on.iter());
        if let Some(each) = self.of_each_exchanged(kind, left, right, on)? {
            let l = self.rel(right, &below, None)?;
            return self.loop_join(kind, l, &each, &[], &below, false);
        }
        if wish.is_none_or(<[_]>::is_empty) && self.keeps_less_exchanged(kind, left, right, on) {
            let l = self.rel(right, &below, None)?;
            return self.loop_join(kind, l, left, on, &below, false);
        }
        let free: BTreeSet<ColId> = right.free_columns().into_iter().collect();
        let mut left_need: BTreeSet<ColId> = below.clone();
        left_need.extend(&free);
        // How many left rows it takes, if only some of the first joined ones are used.
        let first = self.first.take().filter(|_| self.known.covers(left) && self.known.covers(right)).map(|first| {
            let join = Rel::Join { kind, left: Box::new(left.clone()), right: Box::new(right.clone()), on: on.to_vec() };
            let joined = access::rows(&join, &[], self.known) / access::rows(left, &[], self.known).max(access::FEW);
            first / joined.max(f64::MIN_POSITIVE)
        });
        self.first = first;
        let l = self.rel(left, &left_need, wish)?;
        self.first = None;
        let is_in_order = satisfies(wish, &l.order, &l.fixed).0;
        let used = match (first, wish) {
            (Some(first), _) if is_in_order => first.min(l.rows),
            // With the rows that are alike in the part of the order that they are in.
            (Some(first), Some(wish)) => match satisfied(wish, &l.order, &l.fixed) {
                part if part.is_empty() => l.rows,
                part => (first + self.known.alike(part.iter().map(|(c, _, _)| *c), l.rows)).min(l.rows),
            },
            _ => l.rows,
        };
        let left_cols: BTreeSet<ColId> = l.layout.iter().copied().collect();
        let is_lateral = free.iter().any(|c| left_cols.contains(c));
        let right_cols: BTreeSet<ColId> = right.cols().into_iter().collect();
        // A lookup: the join's conditions choose the path into the right table.
        if kind != JoinKind::Full
            && !is_lateral
            && let Rel::Table { table, base, alias, locking, filters } = right
        {
            let (usable, rest): (Vec<Expr>, Vec<Expr>) =
                on.iter().cloned().partition(|c| !c.needs_executor() && !c.is_volatile());
            let all: Vec<Expr> = filters.iter().chain(&usable).cloned().collect();
            if self.is_to_look_up((used, l.rows, self.has_one_row(left)), right, kind, &usable) {
                let looked =
                    Rel::Table { table: table.clone(), base: *base, alias: alias.clone(), locking: *locking, filters: all };
                return self.loop_join(kind, l, &looked, &rest, &below, true);
            }
        }
        if is_lateral {
            return self.loop_join(kind, l, right, on, &below, false);
        }
        if let Some(each) = self.of_each(kind, used, first.is_some(), left, right, on)? {
            return self.loop_join(kind, l, &each, &[], &below, false);
        }
        let Keys { left: mut left_keys, right: mut right_keys, rest: residual } = self.keys(on, &left_cols, &right_cols);
        if left_keys.is_empty() {
            return self.loop_join(kind, l, right, on, &below, false);
        }
        let mut r = self.rel(right, &below, None)?;
        let (mut l, mut kind) = (l, kind);
        let rows = self.joined_rows(kind, &l, &r, on);
        let is_counted = l.is_counted && r.is_counted;
        if is_counted {
            let (as_it_is, exchanged) = (estimate::cost_of_hash(used, r.rows), estimate::cost_of_hash(r.rows, l.rows));
            let is_ordered = is_in_order && wish.is_some_and(|w| !w.is_empty());
            let sort = if is_ordered { estimate::cost_of_sort(rows) } else { 0.0 };
            let other = match kind {
                JoinKind::Inner => Some(JoinKind::Inner),
                JoinKind::Left => Some(JoinKind::Right),
                _ => None,
            };
            if let Some(other) = other.filter(|_| exchanged + sort < as_it_is) {
                kind = other;
                std::mem::swap(&mut l, &mut r);
                std::mem::swap(&mut left_keys, &mut right_keys);
            }
            self.cost += as_it_is.min(exchanged + sort) + estimate::cost_of_rows(rows);
        }
        let layout: Vec<ColId> = l.layout.iter().chain(&r.layout).copied().collect();
        let (mut order, fixed) = match kind {
            JoinKind::Full => Default::default(),
            JoinKind::Right => (Vec::new(), r.fixed),
            _ => (l.order, l.fixed),
        };
        // To keep it takes another sort where memory is short: only for who asks for it.
        if wish.is_none() {
            order.clear();
        }
        let node = Node::HashJoin {
            estimate: is_counted.then_some(rows),
            kind,
            keeps_order: !order.is_empty(),
            left_keys: self.scalars(&left_keys, &l.layout)?,
            right_keys: self.scalars(&right_keys, &r.layout)?,
            on: self.scalars(&Expr::in_turn(&residual), &layout)?,
            widths: (l.layout.len(), r.layout.len()),
            left: l.node,
            right: r.node,
        };
        let layout = if kind.is_test() { l.layout } else { layout };
        Ok(Built { node: Arc::new(node), layout, order, fixed, rows, is_counted })
    }

    /// Whether a relation has no more than one row, whatever the estimates say.
    fn has_one_row(&self, rel: &Rel) -> bool {
        match rel {
            Rel::Table { table, base, filters, .. } => {
                let paths = access::paths(table, *base, filters, &|_| None, self.known);
                paths.first().is_some_and(|path| path.is_point && path.ranges <= 1.0)
            }
            Rel::Project { input, .. } | Rel::Filter { input, .. } => self.has_one_row(input),
            Rel::Aggregate { keys, .. } => keys.is_empty(),
            _ => false,
        }
    }
    fn has_keys(&self, on: &[Expr], left: &Rel, right: &Rel) -> bool {
        let cols = |rel: &Rel| rel.cols().into_iter().collect();
        !self.keys(on, &cols(left), &cols(right)).left.is_empty()
    }

    /// The equalities of a join's conditions that can be hashed.
    fn keys(&self, on: &[Expr], left_cols: &BTreeSet<ColId>, right_cols: &BTreeSet<ColId>) -> Keys {
        let of = |e: &Expr, cols: &BTreeSet<ColId>| {
            let used = e.columns();
            !used.is_empty()
                && used.iter().all(|u| cols.contains(u) || self.args.contains(u))
                && used.iter().any(|u| cols.contains(u))
        };
        let mut keys = Keys::default();
        for c in on {
            let (left, right) = match c {
                Expr::Compare(Cmp::Eq, p) if !c.needs_executor() && of(&p.0, left_cols) && of(&p.1, right_cols) => (&p.0, &p.1),
                Expr::Compare(Cmp::Eq, p) if !c.needs_executor() && of(&p.1, left_cols) && of(&p.0, right_cols) => (&p.1, &p.0),
                _ => {
                    keys.rest.push(c.clone());
                    continue;
                }
            };
            keys.left.push(left.clone());
            keys.right.push(right.clone());
        }
        keys
    }

    /// Whether the partners of each left row are looked up in the right table, by conditions that
    /// mention both. `used`: how many of the left rows are needed.
    /// `is_one`: there is no more than one left row.
    fn is_to_look_up(&self, (used, left, is_one): (f64, f64, bool), right: &Rel, kind: JoinKind, usable: &[Expr]) -> bool {
        let Rel::Table { table, base, filters, .. } = right else { return false };
        if let Some(rows) = self.known.rows_of(*base) {
            let Some(lookup) = access::lookup(right, usable, self.known) else { return false };
            // One partner is enough for who only asks whether there is one.
            let of_path = if kind.is_test() { lookup.cost_of_first() } else { lookup.cost };
            let ready_for = if lookup.path.is_point || used < left || is_one { used } else { used.max(estimate::READY_FOR) };
            let looked_up = self.known.cost_of_lookups(ready_for, &lookup.path, of_path);
            let right_rows = rows * self.known.selectivity(filters);
            let has_keys = usable.iter().any(|c| matches!(c, Expr::Compare(Cmp::Eq, _)));
            let joined = match (has_keys, kind) {
                (true, JoinKind::Inner) => estimate::cost_of_hash(used, right_rows).min(estimate::cost_of_hash(right_rows, left)),
                (true, kind) if kind.is_test() => estimate::cost_of_test(used, right_rows),
                (true, _) => estimate::cost_of_hash(used, right_rows),
                (false, _) => estimate::cost_of_loop(used, right_rows),
            };
            return looked_up < access::cost(right, self.known) + joined;
        }
        let all: Vec<Expr> = filters.iter().chain(usable).cloned().collect();
        let best = access::paths(table, *base, &all, &|_| None, self.known).into_iter().next();
        let alone = access::paths(table, *base, filters, &|_| None, self.known).first().map_or(1000.0, |p| p.rows);
        best.is_some_and(|p| p.rows < alone && left * (p.rows + 2.0) < alone + left)
    }

    /// The right side of a join as it is read for each left row, by the conditions of the join, if
    /// so few of these are `used` that this is less work than to read it as a whole. `is_part`:
    /// more of them are there.
    fn of_each(&mut self, kind: JoinKind, used: f64, is_part: bool, left: &Rel, right: &Rel, on: &[Expr]) -> Result<Option<Rel>> {
        let may_be = match kind {
            JoinKind::Semi | JoinKind::Anti => is_part,
            JoinKind::Inner | JoinKind::Left => self.known.covers(left) && self.known.covers(right),
            _ => false,
        };
        // A trial within a trial would double the work with every level.
        if !may_be || self.is_trial || on.is_empty() || on.iter().any(|c| c.needs_executor() || c.is_volatile()) {
            return Ok(None);
        }
        let rows = access::rows(right, &[], self.known);
        let joined = match kind.is_test() {
            true => estimate::cost_of_test(used, rows),
            false if self.has_keys(on, left, right) => estimate::cost_of_hash(used, rows),
            false => estimate::cost_of_loop(used, rows),
        };
        let of_all = access::cost(right, self.known) + joined;
        let used = if is_part || self.has_one_row(left) { used } else { used.max(estimate::READY_FOR) };
        if used * estimate::AGAIN > of_all || !is_plain(right) {
            return Ok(None);
        }
        let each = optimize::under(right.clone(), on.to_vec(), self.known);
        let mut inner = self.inner(each.free_columns());
        inner.is_trial = true;
        let need = if kind.is_test() { BTreeSet::new() } else { right.cols().into_iter().collect() };
        inner.rel(&each, &need, None)?;
        let of_each = used * (estimate::AGAIN + inner.cost);
        Ok((of_each < of_all).then_some(each))
    }

    /// The left side of an inner join as it is read for each right row, where the join has no
    /// equalities and there are fewer right rows than left ones.
    fn of_each_exchanged(&mut self, kind: JoinKind, left: &Rel, right: &Rel, on: &[Expr]) -> Result<Option<Rel>> {
        let may_be = kind == JoinKind::Inner && self.first.is_none() && !on.is_empty();
        if !may_be || !self.known.covers(left) || !self.known.covers(right) || self.has_keys(on, left, right) {
            return Ok(None);
        }
        let is_of_left = |c: &ColId| left.cols().contains(c);
        let (rows, of_left) = (access::rows(right, &[], self.known), access::rows(left, &[], self.known));
        if rows >= of_left || right.free_columns().iter().any(is_of_left) {
            return Ok(None);
        }
        self.of_each(kind, rows, false, right, left, on)
    }

    /// Whether all pairs of rows are joined, and there are many more on the right side, which is
    /// kept, than on the left one.
    fn keeps_less_exchanged(&self, kind: JoinKind, left: &Rel, right: &Rel, on: &[Expr]) -> bool {
        if kind != JoinKind::Inner || self.first.is_some() || !on.is_empty() || !self.known.covers(right) {
            return false;
        }
        let (of_left, of_right) = (access::rows(left, &[], self.known), access::rows(right, &[], self.known));
        let left_cols: BTreeSet<ColId> = left.cols().into_iter().collect();
        of_right > KEPT_ROWS.max(2.0 * of_left) && left_cols.is_disjoint(&right.free_columns().into_iter().collect())
    }

    /// How many rows a join gives.
    fn joined_rows(&self, kind: JoinKind, l: &Built, r: &Built, on: &[Expr]) -> f64 {
        if !(l.is_counted && r.is_counted) {
            return if kind.is_test() { l.rows * 0.5 } else { l.rows.max(r.rows) };
        }
        if kind.is_test() {
            return access::tested(kind, l.rows, self.known.partnered(on, &r.layout.iter().copied().collect(), r.rows));
        }
        let fixed = l.fixed.union(&r.fixed).copied().collect();
        let rows = (l.rows * r.rows * self.known.selectivity(&estimate::telling(on.iter(), &fixed))).max(access::FEW);
        if kind == JoinKind::Inner { rows } else { rows.max(l.rows) }
    }

    fn loop_join(
        &mut self,
        kind: JoinKind,
        l: Built,
        right: &Rel,
        on: &[Expr],
        need: &BTreeSet<ColId>,
        is_lookup: bool,
    ) -> Result<Built> {
        let free: Vec<ColId> = right.free_columns();
        let is_correlated = free.iter().any(|c| l.layout.contains(c));
        let (args, r) = if is_correlated {
            let args = free.iter().map(|c| self.scalar(&Expr::Column(*c), &l.layout)).collect::<Result<Vec<_>>>()?;
            let mut inner = self.inner(free);
            let r = inner.rel(right, need, None)?;
            self.cost += l.rows * inner.cost;
            (args, r)
        } else {
            (Vec::new(), self.rel(right, need, None)?)
        };
        let layout: Vec<ColId> = l.layout.iter().chain(&r.layout).copied().collect();
        let rows = match (kind.is_test(), l.is_counted && r.is_counted) {
            (true, true) => access::tested(kind, l.rows, r.rows.min(1.0)),
            (true, false) => l.rows * 0.5,
            (false, true) if kind == JoinKind::Inner => (l.rows * r.rows * self.known.selectivity(on)).max(access::FEW),
            (false, true) => (l.rows * r.rows).max(l.rows),
            (false, false) => l.rows * r.rows.max(0.5),
        };
        let node = Node::LoopJoin {
            kind,
            args,
            on: self.scalars(&Expr::in_turn(on), &layout)?,
            widths: (l.layout.len(), r.layout.len()),
            left: l.node,
            right: r.node,
            is_lookup,
            estimate: (l.is_counted && r.is_counted).then_some(rows),
        };
        let (order, fixed) = if kind == JoinKind::Full { Default::default() } else { (l.order, l.fixed) };
        let (layout, is_counted) = (if kind.is_test() { l.layout } else { layout }, l.is_counted && r.is_counted);
        Ok(Built { node: Arc::new(node), layout, order, fixed, rows, is_counted })
    }
}
