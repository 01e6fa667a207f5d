//! The order of inner joins, where the rows of all tables are counted: the cheapest of all, or of
//! those that give their first rows early, if a limit leaves the others unread.

use super::access;
use super::equals::{self, Member};
use super::estimate::{self, Known};
use super::rel::Rel;
use crate::plan::expr::{Cmp, ColId, Expr};
use std::collections::{BTreeMap, BTreeSet};

/// What a limit asks of the relation below it.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    /// How many rows.
    pub(super) first: f64,
    /// The column that they are ordered by in the first place, if by any.
    pub(super) order: Option<ColId>,
}

/// More leaves are joined in an order that is found step by step.
const ALL_ORDERS_MAX: usize = 8;
/// Rows that come early in theory may all come late: they have to be so much cheaper.
const WORTH: f64 = 0.5;

/// The leaves of a cluster of inner joins, and the conditions on them.
struct Cluster<'c> {
    leaves: Vec<&'c Rel>,
    /// Columns of different leaves that equal each other.
    classes: Vec<Class>,
    /// For pairs of leaves that several equalities tie: how many times as many rows these leave as
    /// if they had nothing to do with each other.
    pairs: Vec<(usize, f64)>,
    /// The other conditions.
    usable: Vec<&'c Expr>,
    /// The leaves that each condition is about.
    about: Vec<usize>,
    /// The part of the rows that each condition leaves.
    parts: Vec<f64>,
    /// The rows of each leaf, and what it takes to read them.
    alone: Vec<(f64, f64)>,
    known: &'c Known,
    /// By leaf, classes and conditions: what it takes to look up the partners of one row.
    lookups: BTreeMap<(usize, u64, u128), Option<access::Lookup>>,
}

/// Columns that equal each other.
struct Class {
    members: Vec<Member>,
    /// How many values each has. `None`: nobody knows.
    distinct: Vec<Option<f64>>,
    /// Those that have one value each, by conditions of their leaves' own.
    is_fixed: Vec<bool>,
}

impl Class {
    fn of(members: Vec<Member>, fixed: &BTreeSet<ColId>, known: &Known) -> Class {
        let distinct = members.iter().map(|(_, id)| known.distinct_left(*id)).collect();
        let is_fixed = members.iter().map(|(_, id)| fixed.contains(id)).collect();
        Class { members, distinct, is_fixed }
    }

    /// Of all combinations of rows of a set of leaves, the part in which the columns are equal:
    /// every value of a column has partners in those with more values.
    fn part(&self, set: usize) -> f64 {
        let within = || (0..self.members.len()).filter(|i| set & (1 << self.members[*i].0) != 0);
        let most =
            within().filter_map(|i| self.distinct[i]).fold(None, |most: Option<f64>, d| Some(most.map_or(d, |m| m.max(d))));
        let of = |i: usize| self.distinct[i].or(most).unwrap_or(UNKNOWN_DISTINCT);
        let (mut all, mut least, mut fixed): (f64, Option<f64>, bool) = (1.0, None, false);
        for i in within() {
            // All values that are fixed are the same one.
            if self.is_fixed[i] && std::mem::replace(&mut fixed, true) {
                continue;
            }
            all *= of(i);
            least = Some(least.map_or(of(i), |least| least.min(of(i))));
        }
        least.map_or(1.0, |least| least / all)
    }

    /// A member in a leaf, and one in a set of leaves.
    fn equality(&self, leaf: usize, set: usize) -> Option<Expr> {
        let (_, own) = self.members.iter().find(|(of, _)| *of == leaf)?;
        let (_, other) = self.members.iter().find(|(of, _)| set & (1 << of) != 0)?;
        Some(equals::equal(*other, *own))
    }
}

/// How many values two columns have that nothing is known about.
const UNKNOWN_DISTINCT: f64 = 100.0;
/// There is a bit for each class.
const CLASSES_MAX: usize = 64;

/// The order in which leaves are joined: each to what the ones before it come to.
pub(super) fn by_cost(leaves: &[Option<Rel>], conds: &[Expr], asked: Option<Asked>, known: &Known) -> Option<Vec<usize>> {
    let leaves: Vec<&Rel> = leaves.iter().map(|l| l.as_ref().expect("nothing is joined yet")).collect();
    let n = leaves.len();
    if n < 2 || n > usize::BITS as usize - 1 || conds.len() > 128 || !leaves.iter().all(|l| known.covers(l)) {
        return None;
    }
    let mut cluster = Cluster::new(leaves, conds, known)?;
    if n > ALL_ORDERS_MAX {
        return cluster.step_by_step();
    }
    let starts: Vec<Option<f64>> = cluster.alone.iter().map(|(_, cost)| Some(*cost)).collect();
    let (cost, order) = cluster.cheapest(&starts, 1.0)?;
    let early = asked.and_then(|asked| cluster.early(asked)).filter(|early| early.0 < cost * WORTH);
    Some(early.map_or(order, |early| early.1))
}

impl<'c> Cluster<'c> {
    fn new(leaves: Vec<&'c Rel>, conds: &'c [Expr], known: &'c Known) -> Option<Cluster<'c>> {
        let sets: Vec<BTreeSet<ColId>> = leaves.iter().map(|l| l.cols().into_iter().collect()).collect();
        let leaf_of = |id: ColId| sets.iter().position(|set| set.contains(&id));
        let of_classes = equals::classes(conds, leaf_of);
        if of_classes.len() > CLASSES_MAX {
            return None;
        }
        let says = |c: &Expr| {
            let (a, b) = equals::equality(c)?;
            of_classes.iter().find(|class| [a, b].iter().all(|id| class.iter().any(|member| member.1 == *id)))
        };
        let usable: Vec<&Expr> = conds.iter().filter(|c| !c.is_volatile() && says(c).is_none()).collect();
        let about = |c: &Expr| {
            let cols = c.columns();
            (0..leaves.len()).filter(|i| cols.iter().any(|id| sets[*i].contains(id))).fold(0, |mask, i| mask | 1 << i)
        };
        let about = usable.iter().map(|c| about(c)).collect();
        let fixed = estimate::fixed(leaves.iter().copied());
        let part = |c: &Expr| known.selectivity(&estimate::telling(std::iter::once(c), &fixed));
        let parts = usable.iter().map(|c| part(c)).collect();
        let alone = leaves.iter().map(|l| (access::rows(l, &[], known), access::cost(l, known))).collect();
        let classes: Vec<Class> = of_classes.into_iter().map(|members| Class::of(members, &fixed, known)).collect();
        let mut pairs = Vec::new();
        for (a, b) in (0..leaves.len()).flat_map(|b| (0..b).map(move |a| (a, b))) {
            let tied: Vec<Expr> = classes.iter().filter_map(|class| class.equality(b, 1 << a)).collect();
            let tied = estimate::telling(tied.iter(), &fixed);
            if tied.len() > 1 {
                let alone: f64 = tied.iter().map(|c| known.selectivity(std::slice::from_ref(c))).product();
                pairs.push((1 << a | 1 << b, known.selectivity(&tied) / alone.max(f64::MIN_POSITIVE)));
            }
        }
        Some(Cluster { leaves, classes, pairs, usable, about, parts, alone, known, lookups: BTreeMap::new() })
    }

    fn len(&self) -> usize {
        self.leaves.len()
    }
    fn all(&self) -> usize {
        (1 << self.len()) - 1
    }

    /// How many rows a set of leaves comes to.
    fn rows_of(&self, set: usize) -> f64 {
        let leaves: f64 = (0..self.len()).filter(|i| set & (1 << i) != 0).map(|i| self.alone[i].0).product();
        let conds: f64 = (0..self.about.len()).filter(|c| self.about[*c] & !set == 0).map(|c| self.parts[c]).product();
        let equal: f64 = self.classes.iter().map(|class| class.part(set)).product();
        let pairs: f64 = self.pairs.iter().filter(|(pair, _)| pair & !set == 0).map(|(_, times)| times).product();
        (leaves * conds * equal * pairs).max(access::FEW)
    }

    /// What it takes to join one more leaf to a set. `part`: of the joined rows, how many are used.
    fn cost_of(&mut self, set: usize, leaf: usize, part: f64) -> f64 {
        let joined = set | 1 << leaf;
        let of_step: Vec<usize> = (0..self.about.len())
            .filter(|c| self.about[*c] & !joined == 0 && self.about[*c] & (1 << leaf) != 0 && self.about[*c] & set != 0)
            .collect();
        let (all, (right, scan)) = (self.rows_of(set), self.alone[leaf]);
        let left = all * part;
        let equal: Vec<Option<Expr>> = self.classes.iter().map(|class| class.equality(leaf, set)).collect();
        let has_keys =
            equal.iter().any(Option::is_some) || of_step.iter().any(|c| matches!(self.usable[*c], Expr::Compare(Cmp::Eq, _)));
        let whole = match has_keys {
            true => scan + estimate::cost_of_hash(left, right).min(estimate::cost_of_hash(right, all)),
            false => scan + estimate::cost_of_loop(left, right),
        };
        let tied = equal.iter().enumerate().filter(|(_, c)| c.is_some()).fold(0u64, |mask, (class, _)| mask | 1 << class);
        let key = (leaf, tied, of_step.iter().fold(0u128, |mask, c| mask | 1 << c));
        let lookup = self.lookups.entry(key).or_insert_with(|| {
            let conds: Vec<Expr> = equal.into_iter().flatten().chain(of_step.iter().map(|c| self.usable[*c].clone())).collect();
            access::lookup(self.leaves[leaf], &conds, self.known)
        });
        let step = lookup.as_ref().map_or(whole, |l| self.known.cost_of_lookups(left, &l.path, l.cost).min(whole));
        step + estimate::cost_of_rows(self.rows_of(joined) * part)
    }

    /// The cheapest next leaf, again and again.
    fn step_by_step(&mut self) -> Option<Vec<usize>> {
        let n = self.len();
        let first = (0..n).min_by(|a, b| self.alone[*a].0.total_cmp(&self.alone[*b].0).then(a.cmp(b)))?;
        let (mut order, mut set) = (vec![first], 1usize << first);
        while order.len() < n {
            let left: Vec<(f64, usize)> =
                (0..n).filter(|i| set & (1 << i) == 0).map(|i| (self.cost_of(set, i, 1.0), i)).collect();
            let (_, next) = left.into_iter().min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)))?;
            order.push(next);
            set |= 1 << next;
        }
        Some(order)
    }

    /// The cheapest of all orders, and its cost. `starts`: what it takes to read each leaf, if it
    /// may be the first; `part`: of the joined rows, how many are used.
    fn cheapest(&mut self, starts: &[Option<f64>], part: f64) -> Option<(f64, Vec<usize>)> {
        let n = self.len();
        // By set of leaves: the cheapest way to join them, and the leaf that comes last.
        let mut best: Vec<Option<(f64, usize)>> = vec![None; 1 << n];
        for (i, cost) in starts.iter().enumerate() {
            best[1 << i] = cost.map(|cost| (cost, i));
        }
        for set in 1..1usize << n {
            let Some((before, _)) = best[set] else { continue };
            for leaf in (0..n).filter(|i| set & (1 << i) == 0) {
                let cost = before + self.cost_of(set, leaf, part);
                let place = &mut best[set | 1 << leaf];
                // Of equals, the order in which they are named: it may be the one asked for.
                if place.is_none_or(|(known, _)| cost < known * 0.999) {
                    *place = Some((cost, leaf));
                }
            }
        }
        let (cost, _) = best[self.all()]?;
        let (mut order, mut set) = (Vec::with_capacity(n), self.all());
        while let Some((_, last)) = best.get(set).copied().flatten() {
            order.push(last);
            set &= !(1 << last);
        }
        order.reverse();
        (order.len() == n).then_some((cost, order))
    }

    /// The cheapest order that begins with rows in the order that is asked for, and its cost up to
    /// the last row that is used.
    fn early(&mut self, asked: Asked) -> Option<(f64, Vec<usize>)> {
        let joined = self.rows_of(self.all());
        if asked.first >= joined {
            return None;
        }
        let part = asked.first / joined;
        let read = |leaf: usize| match asked.order {
            Some(column) => in_order(self.leaves[leaf], column, self.known),
            None => Some(self.alone[leaf].1),
        };
        let starts: Vec<Option<f64>> = (0..self.len()).map(|leaf| Some(read(leaf)? * part)).collect();
        self.cheapest(&starts, part)
    }
}

/// What it takes to read all rows of a table by an index in the order of a column.
fn in_order(rel: &Rel, column: ColId, known: &Known) -> Option<f64> {
    let Rel::Table { table, base, filters, .. } = rel else { return None };
    let ordinal = known.origin(column).checked_sub(*base)?;
    let costs = access::paths(table, *base, filters, &|_| None, known).into_iter().filter_map(|path| {
        let next = table.indexes[path.index].columns.get(path.fixed())?;
        known.cost_of_path(*base, &path, false).filter(|_| next.ordinal == ordinal && path.places.is_empty())
    });
    costs.min_by(f64::total_cmp)
}
