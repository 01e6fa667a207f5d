//! Window functions: over all rows at once, or over rows that come in the order of the window.

use super::super::node::{BoundPlan, Node, Scalar, WindowPlan};
use super::super::rel::{Bound, Rel, SortKey, WindowCall, WindowFunction};
use super::{Built, Compiler, Wish, is_wanted, satisfied, satisfies, with_columns};
use crate::plan::expr::{Cmp, ColId, Expr};
use crate::types::Datum;
use meridian_base::{Error, Result};
use std::collections::BTreeSet;
use std::sync::Arc;

/// How many of the first rows are used of a number that is not known.
const SOME_ROWS: f64 = 100.0;

impl Compiler<'_> {
    /// `conds`: the conditions above.
    pub(super) fn windows(
        &mut self,
        input: &Rel,
        calls: &[(ColId, WindowCall)],
        conds: &[Expr],
        need: &BTreeSet<ColId>,
        wish: Wish,
    ) -> Result<Built> {
        let mut calls: Vec<_> = calls.iter().filter(|(id, c)| is_wanted(*id, c.exprs(), need)).collect();
        if calls.is_empty() {
            return self.rel(input, need, wish);
        }
        let first = self.first.take();
        // The call whose result is bounded comes first.
        let bounded = calls.iter().enumerate().find_map(|(at, (id, call))| Some((at, bound(conds, *id, call)?)));
        if let Some((at, _)) = &bounded {
            calls.swap(0, *at);
        }
        let most = bounded.map(|(_, most)| self.scalar(&most, &[])).transpose()?;
        let used = calls.iter().flat_map(|(_, c)| c.exprs());
        let below = with_columns(need, used);
        let order = order_of(&calls);
        let first = order.as_deref().and_then(|order| first_of(&calls, order, most.as_ref(), first, wish));
        let order = order.as_deref();
        let cost = self.cost;
        let (mut b, mut plans, mut in_order) = self.rows_of_windows(input, &calls, &below, order, first)?;
        if first.is_some() && !in_order {
            self.cost = cost;
            (b, plans, in_order) = self.rows_of_windows(input, &calls, &below, order, None)?;
        }
        if !in_order && most.is_none() {
            return self.sorted_windows(b, &calls, plans);
        }
        let layout = b.layout.iter().copied().chain(calls.iter().map(|c| c.0)).collect();
        let (order, fixed) = if in_order { (b.order, b.fixed) } else { Default::default() };
        let most = most.filter(|_| ends_early(&plans, in_order));
        let node = Arc::new(Node::Window { input: b.node, calls: plans, in_order, most });
        Ok(Built { node, layout, order, fixed, rows: b.rows, is_counted: false })
    }

    /// Rows in the order of each window in turn, where that is enough for its calls; the others
    /// look at all rows at once.
    fn sorted_windows(&mut self, b: Built, calls: &[&(ColId, WindowCall)], plans: Vec<WindowPlan>) -> Result<Built> {
        let mut groups: Vec<(bool, Vec<(&(ColId, WindowCall), WindowPlan)>)> = Vec::new();
        for (call, plan) in calls.iter().copied().zip(plans) {
            let may_come = is_sortable(&call.1) && (!call.1.partition.is_empty() || plan.runs());
            let is_alike = |(sorted, group): &&mut (bool, Vec<(&(ColId, WindowCall), WindowPlan)>)| {
                let first = &group[0].0.1;
                *sorted == may_come && (!may_come || first.partition == call.1.partition && first.order == call.1.order)
            };
            match groups.iter_mut().find(is_alike) {
                Some((_, group)) => group.push((call, plan)),
                None => groups.push((may_come, vec![(call, plan)])),
            }
        }
        let mut node = b.node;
        let mut layout = b.layout.clone();
        // The order in which rows come.
        let mut order = b.order.clone();
        for (in_order, group) in groups {
            let (calls, plans): (Vec<_>, Vec<WindowPlan>) = group.into_iter().unzip();
            layout.extend(calls.iter().map(|c| c.0));
            if in_order {
                let of = &calls[0].1;
                let partition = of.partition.iter().map(|e| SortKey { expr: e.clone(), descending: false, nulls_first: false });
                let keys: Vec<SortKey> = partition.chain(of.order.iter().cloned()).collect();
                let of_column =
                    |k: &SortKey| if let Expr::Column(c) = k.expr { Some((c, k.descending, k.nulls_first)) } else { None };
                let wanted: Vec<_> = keys.iter().map_while(of_column).collect();
                if wanted.len() < keys.len() || !satisfies(Some(&wanted), &order, &b.fixed).0 {
                    order = wanted;
                    let keys = self.sort_keys(&keys, &b.layout)?;
                    node = Arc::new(Node::Sort { input: node, keys, sorted: 0, is_gradual: false, most: None });
                }
            } else {
                order.clear();
            }
            node = Arc::new(Node::Window { input: node, calls: plans, in_order, most: None });
        }
        Ok(Built { node, layout, order, fixed: b.fixed, rows: b.rows, is_counted: false })
    }

    /// The rows that calls are about, and whether they can be looked at as they come. `first`: how
    /// many of the first rows would then be used.
    fn rows_of_windows(
        &mut self,
        input: &Rel,
        calls: &[&(ColId, WindowCall)],
        need: &BTreeSet<ColId>,
        order: Wish,
        first: Option<f64>,
    ) -> Result<(Built, Vec<WindowPlan>, bool)> {
        self.first = first;
        let mut b = self.rel(input, need, order.filter(|order| !order.is_empty()))?;
        self.first = None;
        if let (Some(_), Some(order)) = (first, order) {
            b = self.sorted_in_part(b, order)?;
        }
        let plans: Vec<WindowPlan> = calls.iter().map(|(_, c)| self.window(c, &b.layout)).collect::<Result<_>>()?;
        let is_partitioned = calls.iter().any(|(_, c)| !c.partition.is_empty());
        let is_ordered = order.is_some_and(|order| satisfies(Some(order), &b.order, &b.fixed).0);
        let in_order = is_ordered && (is_partitioned || plans.iter().all(WindowPlan::runs));
        Ok((b, plans, in_order))
    }

    /// Rows that come in a part of an order, in all of it.
    fn sorted_in_part(&mut self, b: Built, order: &[(ColId, bool, bool)]) -> Result<Built> {
        let sorted = satisfied(order, &b.order, &b.fixed).len();
        let left: Vec<_> = order.iter().filter(|(c, _, _)| !b.fixed.contains(c)).copied().collect();
        if sorted == 0 || sorted == left.len() || !b.order.starts_with(&left[..sorted]) {
            return Ok(b);
        }
        let key = |(c, descending, nulls_first): &(ColId, bool, bool)| SortKey {
            expr: Expr::Column(*c),
            descending: *descending,
            nulls_first: *nulls_first,
        };
        let keys: Vec<SortKey> = left.iter().map(key).collect();
        let keys = self.sort_keys(&keys, &b.layout)?;
        let node = Node::Sort { input: b.node.clone(), keys, sorted, is_gradual: true, most: None };
        Ok(Built { node: Arc::new(node), order: left, ..b })
    }

    fn window(&mut self, w: &WindowCall, layout: &[ColId]) -> Result<WindowPlan> {
        let bound = |b: &Bound, c: &mut Self| {
            Ok::<_, Error>(match b {
                Bound::UnboundedPreceding => BoundPlan::UnboundedPreceding,
                Bound::Preceding(e) => BoundPlan::Preceding(c.scalar(e, layout)?),
                Bound::CurrentRow => BoundPlan::CurrentRow,
                Bound::Following(e) => BoundPlan::Following(c.scalar(e, layout)?),
                Bound::UnboundedFollowing => BoundPlan::UnboundedFollowing,
            })
        };
        Ok(WindowPlan {
            function: w.function.clone(),
            args: self.scalars(&w.args, layout)?,
            filter: w.filter.as_ref().map(|e| self.scalar(e, layout)).transpose()?,
            partition: self.scalars(&w.partition, layout)?,
            order: self.sort_keys(&w.order, layout)?,
            rows: w.frame.rows,
            start: bound(&w.frame.start, self)?,
            end: bound(&w.frame.end, self)?,
        })
    }
}

/// Whether what a window is made of may be computed twice for a row: to sort it, and to tell it
/// from the next one.
fn is_sortable(call: &WindowCall) -> bool {
    let mut keys = call.partition.iter().chain(call.order.iter().map(|k| &k.expr));
    keys.all(|e| !e.is_volatile() && !e.needs_executor())
}

/// Whether a bound on the first result leaves out rows: they may matter to other calls.
fn ends_early(calls: &[WindowPlan], in_order: bool) -> bool {
    let [call] = calls else { return in_order && calls.iter().all(|call| call.partition.is_empty()) };
    match call.function {
        WindowFunction::RowNumber => true,
        WindowFunction::Rank => !in_order || call.partition.is_empty(),
        _ => in_order && call.partition.is_empty(),
    }
}

/// The number that a condition says the result of a call is at most.
fn bound(conds: &[Expr], id: ColId, call: &WindowCall) -> Option<Expr> {
    if !matches!(call.function, WindowFunction::RowNumber | WindowFunction::Rank | WindowFunction::DenseRank) {
        return None;
    }
    let is_call = |e: &Expr| matches!(e, Expr::Column(c) if *c == id);
    let is_known = |e: &Expr| e.columns().is_empty() && !e.is_volatile() && !e.needs_executor();
    conds.iter().find_map(|c| {
        let Expr::Compare(cmp, p) = c else { return None };
        let (cmp, most) = match &**p {
            (call, most) if is_call(call) && is_known(most) => (*cmp, most),
            (most, call) if is_call(call) && is_known(most) => (cmp.flip(), most),
            _ => return None,
        };
        matches!(cmp, Cmp::Lt | Cmp::Le | Cmp::Eq).then(|| most.clone())
    })
}

/// The order of the one window that all calls have, its partitions first.
fn order_of(calls: &[&(ColId, WindowCall)]) -> Option<Vec<(ColId, bool, bool)>> {
    let order = |call: &WindowCall| {
        let partition = call.partition.iter().map(|e| if let Expr::Column(c) = e { Some((*c, false, false)) } else { None });
        let keys = call.order.iter();
        let keys = keys.map(|k| if let Expr::Column(c) = k.expr { Some((c, k.descending, k.nulls_first)) } else { None });
        Some((call.partition.len(), partition.chain(keys).collect::<Option<Vec<_>>>()?))
    };
    let (partition, first) = order(&calls.first()?.1)?;
    let is_same = |(_, call): &&(ColId, WindowCall)| order(call).is_some_and(|(p, o)| p == partition && o == first);
    calls.iter().copied().all(|call| is_same(&call)).then_some(first)
}

/// How many of the first rows are enough, if they come in the window's order.
fn first_of(
    calls: &[&(ColId, WindowCall)],
    order: &[(ColId, bool, bool)],
    most: Option<&Scalar>,
    first: Option<f64>,
    wish: Wish,
) -> Option<f64> {
    let is_partitioned = calls.iter().any(|(_, c)| !c.partition.is_empty());
    let of_condition = most.filter(|_| !is_partitioned).map(|most| match most.expr.as_const() {
        Some(Datum::Int(n)) => *n as f64,
        _ => SOME_ROWS,
    });
    let of_limit = first.filter(|_| wish.is_none_or(|wish| order.starts_with(wish)));
    let rows = of_condition.into_iter().chain(of_limit).min_by(f64::total_cmp)?;
    Some(rows + 1.0)
}
