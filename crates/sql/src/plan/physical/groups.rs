//! Groups: of all rows at once, or one by one where few of them are asked for and an index has
//! their rows next to each other.

use super::super::access;
use super::super::node::Node;
use super::super::rel::{AggCall, JoinKind, Rel};
use super::{Built, Compiler, Wish, is_wanted, with_columns};
use crate::plan::expr::{Cmp, ColId, Expr};
use meridian_base::Result;
use std::collections::BTreeSet;

/// What part of the rows may be read in order, group by group. All of them at once, in batches,
/// take a tenth of the time.
pub(super) const PART_IN_ORDER: f64 = 0.1;

/// An order of the input that has the rows of a group next to each other.
struct InOrder {
    wish: Vec<(ColId, bool, bool)>,
    /// How many rows the groups have that are asked for.
    rows: f64,
}

impl Compiler<'_> {
    pub(super) fn aggregate(
        &mut self,
        input: &Rel,
        keys: &[(ColId, Expr)],
        aggs: &[(ColId, AggCall)],
        need: &BTreeSet<ColId>,
        wish: Wish,
    ) -> Result<Built> {
        let first = self.first.take();
        if keys.is_empty()
            && let Some(built) = self.ends(input, aggs)?
        {
            return Ok(built);
        }
        let is_used = |(id, a): &&(ColId, AggCall)| keys.is_empty() || is_wanted(*id, a.exprs(), need);
        let aggs: Vec<_> = aggs.iter().filter(is_used).collect();
        let used = keys.iter().map(|k| &k.1).chain(aggs.iter().flat_map(|(_, a)| a.exprs()));
        let below = with_columns(&BTreeSet::new(), used);
        let (b, order) = self.rows_of_groups(input, keys, &below, first.and_then(|n| self.in_order_of(input, keys, wish, n)))?;
        let keys_out = keys.iter().map(|k| self.scalar(&k.1, &b.layout)).collect::<Result<_>>()?;
        let aggs_out = aggs.iter().map(|(_, a)| self.agg(a, &b.layout)).collect::<Result<_>>()?;
        let layout = keys.iter().map(|k| k.0).chain(aggs.iter().map(|a| a.0)).collect();
        let rows = match keys.is_empty() {
            true => 1.0,
            false if b.is_counted => {
                let is_fixed = |e: &Expr| matches!(e, Expr::Column(c) if b.fixed.contains(c));
                self.known.combinations(keys.iter().map(|(_, e)| e).filter(|e| !is_fixed(e)), b.rows)
            }
            false => b.rows * 0.3,
        };
        let node = Node::Aggregate { input: b.node, keys: keys_out, aggs: aggs_out, in_order: order.is_some() };
        Ok(Built { is_counted: b.is_counted, order: order.unwrap_or_default(), ..Built::plain(node, layout, rows) })
    }

    /// The rows to be grouped, and the order of the groups if the rows of each come one after the
    /// other.
    fn rows_of_groups(
        &mut self,
        input: &Rel,
        keys: &[(ColId, Expr)],
        need: &BTreeSet<ColId>,
        in_order: Option<InOrder>,
    ) -> Result<(Built, Option<Vec<(ColId, bool, bool)>>)> {
        if let Some(InOrder { wish, rows }) = in_order {
            let cost = self.cost;
            self.first = Some(rows);
            let b = self.rel(input, need, Some(&wish))?;
            self.first = None;
            if let Some(order) = self.order_of_groups(input, keys, &b) {
                return Ok((b, Some(order)));
            }
            self.cost = cost;
        }
        Ok((self.rel(input, need, None)?, None))
    }

    /// The order in which the first groups would be complete after few rows.
    fn in_order_of(&self, input: &Rel, keys: &[(ColId, Expr)], wish: Wish, first: f64) -> Option<InOrder> {
        let columns: Vec<(ColId, ColId)> = keys
            .iter()
            .map(|(id, e)| if let Expr::Column(c) = e { Some((*id, *c)) } else { None })
            .collect::<Option<_>>()
            .filter(|c: &Vec<_>| !c.is_empty())?;
        if !self.known.covers(input) {
            return None;
        }
        let below = |id: ColId| columns.iter().find(|(key, _)| *key == id).map(|(_, c)| *c);
        let wished = wish.unwrap_or_default();
        let mut out: Vec<_> = wished.iter().map_while(|(id, d, n)| below(*id).map(|c| (c, *d, *n))).collect();
        if !wished.is_empty() && out.is_empty() {
            return None;
        }
        let held: Vec<Expr> = out.iter().map(|(c, _, _)| Expr::Column(*c)).collect();
        let (descending, nulls_first) = out.first().map_or((false, false), |(_, d, n)| (*d, *n));
        let mut placed = self.with_followers(input, keys, out.iter().map(|(c, _, _)| *c).collect());
        for (_, c) in &columns {
            if !placed.contains(c) {
                out.push((*c, descending, nulls_first));
                placed.insert(*c);
                placed = self.with_followers(input, keys, placed);
            }
        }
        let rows = access::rows(input, &[], self.known);
        let groups = self.known.combinations(keys.iter().map(|(_, e)| e), rows);
        // What is left of the order is sorted among the groups that are alike in what is there.
        let is_held = held.len() == wished.len();
        let alike = if is_held { 0.0 } else { groups / self.known.combinations(held.iter(), rows) };
        let read = (first + alike + 1.0) * rows / groups;
        (read < rows * PART_IN_ORDER).then_some(InOrder { wish: out, rows: read })
    }

    /// The order of the groups, if the rows of each come one after the other.
    fn order_of_groups(&self, rel: &Rel, keys: &[(ColId, Expr)], input: &Built) -> Option<Vec<(ColId, bool, bool)>> {
        let key_of = |c: ColId| keys.iter().find(|(_, e)| matches!(e, Expr::Column(x) if *x == c)).map(|k| k.0);
        let mut order = Vec::new();
        let mut placed = input.fixed.clone();
        for (c, descending, nulls_first) in &input.order {
            let Some(key) = key_of(*c) else { break };
            order.push((key, *descending, *nulls_first));
            placed.insert(*c);
        }
        let placed = self.with_followers(rel, keys, placed);
        let is_placed = |(_, e): &(ColId, Expr)| matches!(e, Expr::Column(c) if placed.contains(c));
        keys.iter().all(is_placed).then_some(order)
    }

    /// The columns that have one value where `given` have one each: columns of tables whose primary
    /// key is among them, and what an inner join says is equal to one of them.
    fn with_followers(&self, input: &Rel, keys: &[(ColId, Expr)], mut given: BTreeSet<ColId>) -> BTreeSet<ColId> {
        let mut equal = Vec::new();
        equalities(input, &mut equal);
        let mut asked: BTreeSet<ColId> = keys.iter().flat_map(|(_, e)| e.columns()).collect();
        asked.extend(equal.iter().flat_map(|(a, b)| [*a, *b]));
        loop {
            let follows = |c: &ColId| {
                let is_of_key = || self.known.key_before(*c).is_some_and(|key| key.iter().all(|c| given.contains(c)));
                let other = |(a, b): &(ColId, ColId)| (a == c && given.contains(b)) || (b == c && given.contains(a));
                !given.contains(c) && (is_of_key() || equal.iter().any(other))
            };
            let more: Vec<ColId> = asked.iter().copied().filter(follows).collect();
            if more.is_empty() {
                return given;
            }
            given.extend(more);
        }
    }
}

/// Pairs of columns that are equal in every row of a relation.
fn equalities(rel: &Rel, out: &mut Vec<(ColId, ColId)>) {
    let mut note = |conds: &[Expr]| {
        for c in conds {
            if let Expr::Compare(Cmp::Eq, sides) = c
                && let (Expr::Column(a), Expr::Column(b)) = (&sides.0, &sides.1)
            {
                out.push((*a, *b));
            }
        }
    };
    match rel {
        Rel::Filter { input, conds } => {
            note(conds);
            equalities(input, out);
        }
        Rel::Join { kind: JoinKind::Inner, left, right, on } => {
            note(on);
            equalities(left, out);
            equalities(right, out);
        }
        Rel::Join { kind: JoinKind::Left | JoinKind::Semi | JoinKind::Anti, left, .. } => equalities(left, out),
        _ => {}
    }
}
