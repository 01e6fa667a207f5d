//! Moves conditions down to where the rows come from, and orders inner joins.

use super::access;
use super::equals;
use super::estimate::Known;
use super::grouped;
use super::join_order::{self, Asked};
use super::postpone;
use super::rel::Dml;
use super::rel::{AggCall, Cte, JoinKind, Rel, SetOp, SortKey};
use super::united;
use crate::catalog::Column;
use crate::env::OnLocked;
use crate::plan::expr::{Cmp, ColId, Expr, SubqueryBody, SubqueryKind};
use crate::types::Datum;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// The same relation, cheaper.
pub(crate) fn optimize(rel: Rel, known: &Known) -> Rel {
    under(rel, Vec::new(), known)
}

/// The rows of a relation that meet conditions, which may be about other columns, too.
pub(super) fn under(rel: Rel, conds: Vec<Expr>, known: &Known) -> Rel {
    let mut uses = Uses {
        counts: BTreeMap::new(),
        pushed: RefCell::default(),
        locks_above: Cell::default(),
        is_repeated: Cell::default(),
        first: Cell::default(),
        asked: Cell::default(),
        stack: super::limits::mark(),
        known,
    };
    rel.visit(&mut |r| {
        if let Rel::Cte { cte, .. } = r {
            *uses.counts.entry(cte.id).or_insert(0usize) += 1;
        }
    });
    push(rel, conds, &uses)
}

/// How often each common table expression is used, and what else is known.
struct Uses<'k> {
    counts: BTreeMap<u32, usize>,
    /// What became of each.
    pushed: RefCell<BTreeMap<u32, Arc<Cte>>>,
    /// Rows that are to be locked are locked by an operator above.
    locks_above: Cell<bool>,
    /// What is looked at runs for each row of another relation.
    is_repeated: Cell<bool>,
    /// How many rows are used of what is looked at, if a limit above may leave the others unread.
    first: Cell<Option<f64>>,
    /// What a limit above asks of the relation that is looked at next: who looks at it takes it,
    /// and gives it on to where rows come from one by one.
    asked: Cell<Option<Asked>>,
    stack: usize,
    known: &'k Known,
}

impl Uses<'_> {
    /// A relation joined with the groups that expressions over its rows ask for.
    fn with_groups<'e>(&self, rel: Rel, exprs: impl IntoIterator<Item = &'e mut Expr>, conds: &[Expr]) -> Rel {
        grouped::join(rel, exprs, conds, self.first.get(), self.known, self.locks_above.get())
    }
}

/// The same relation with conditions on its rows, each as far down as it may go.
fn push(rel: Rel, mut conds: Vec<Expr>, uses: &Uses) -> Rel {
    let asked = uses.asked.take();
    if super::limits::check(uses.stack).is_err() {
        // Too deep to go on; compiling it will say so.
        return rel.filtered(conds);
    }
    if conds.iter().any(is_never_true) && !rel.changes() {
        return no_rows(&rel);
    }
    match rel {
        Rel::Filter { input, conds: more } if more.iter().any(is_never_true) && !input.changes() => no_rows(&input),
        Rel::Filter { input, conds: more } => {
            let (input, more) = super::unnest::unnest(*input, more, asked, uses.known, uses.locks_above.get());
            // Those of the inside first: they may keep rows away at which the others fail.
            conds.splice(0..0, more);
            let cols = input.cols();
            let tests = conds.clone();
            let input = uses.with_groups(input, &mut conds, &tests);
            if input.cols() == cols {
                uses.asked.set(asked);
                return push(input, conds, uses);
            }
            let exprs = cols.into_iter().map(|c| (c, Expr::Column(c))).collect();
            push(Rel::Project { input: Box::new(input.filtered(conds)), exprs }, Vec::new(), uses)
        }
        Rel::Join { kind, left, right, on } if kind.is_test() => push_test(kind, (*left, *right), on, conds, asked, uses),
        Rel::Table { table, base, alias, locking, mut filters } => {
            filters.extend(conds.into_iter().map(|c| subqueries(c, uses)));
            Rel::Table { table, base, alias, locking, filters }
        }
        Rel::Join { kind: JoinKind::Inner, .. } => inner_cluster(rel, conds, asked, uses),
        Rel::Join { kind: JoinKind::Left, left, right, on } => push_left_join(left, right, on, conds, asked, uses),
        Rel::Join { kind: JoinKind::Full, left, right, on } => push_full_join(left, right, on, conds, uses),
        Rel::Join { kind, left, right, on } => {
            let on = on.into_iter().map(|c| subqueries(c, uses)).collect();
            let (left, right) = (Box::new(push(*left, Vec::new(), uses)), Box::new(push(*right, Vec::new(), uses)));
            above_of(Rel::Join { kind, left, right, on }, conds, uses)
        }
        Rel::Project { input, exprs } => {
            uses.asked.set(asked);
            push_project(*input, exprs, conds, uses.first.get(), uses)
        }
        Rel::Sort { input, keys } => push_sort(*input, keys, conds, asked, uses),
        Rel::LockRows { input, of, is_limited } => {
            // Workers that skip what others hold read as few rows as they can, from the start on.
            let skips = of.iter().any(|t| t.locking.if_busy() == Some(OnLocked::Skip));
            let before = uses.locks_above.replace(!skips);
            uses.asked.set(asked);
            let input = Box::new(push(*input, conds, uses));
            uses.locks_above.set(before);
            Rel::LockRows { input, of, is_limited }
        }
        Rel::Distinct { input, on: None } => {
            uses.asked.set(asked);
            Rel::Distinct { input: Box::new(push(*input, conds, uses)), on: None }
        }
        Rel::Aggregate { input, keys, aggs } => push_aggregate(*input, keys, aggs, conds, uses),
        Rel::Cte { cte, cols } => push_cte(cte, cols, conds, uses),
        Rel::Limit { input, limit, offset } => {
            let all = uses.first.get();
            let of_limit = access::first_rows(limit.as_ref(), offset.as_ref());
            let before = uses.first.replace(of_limit.map_or(all, |first| Some(all.unwrap_or(first).min(first))));
            let input = united::limit_sides(*input, limit.as_ref(), offset.as_ref());
            uses.asked.set(of_limit.map(|first| Asked { first, order: None }));
            let input = Box::new(postpone::select_list(push(input, Vec::new(), uses), true));
            uses.first.set(before);
            above_of(own_subqueries(Rel::Limit { input, limit, offset }, uses), conds, uses)
        }
        Rel::Distinct { input, on } => {
            let (own, lists) = (input.cols(), [on.as_deref().unwrap_or(&[])]);
            let (down, above): (Vec<_>, Vec<_>) = conds.into_iter().partition(|c| is_of_columns(c, &own, &lists));
            let input = Box::new(push(*input, down, uses));
            above_of(own_subqueries(Rel::Distinct { input, on }, uses), above, uses)
        }
        Rel::Window { input, calls } => {
            // A condition on what all windows are partitioned by drops whole partitions.
            let partitions: Vec<&[Expr]> = calls.iter().map(|(_, call)| &call.partition[..]).collect();
            let own = input.cols();
            let (down, above): (Vec<_>, Vec<_>) = conds.into_iter().partition(|c| is_of_columns(c, &own, &partitions));
            let before = uses.first.take();
            let input = Box::new(push(*input, down, uses));
            uses.first.set(before);
            above_of(own_subqueries(Rel::Window { input, calls }, uses), above, uses)
        }
        Rel::ProjectSet { input, calls } => {
            let input = Box::new(push(*input, Vec::new(), uses));
            above_of(own_subqueries(Rel::ProjectSet { input, calls }, uses), conds, uses)
        }
        Rel::SetOp { op, all, left, right, cols } => push_set_op(op, all, (*left, *right), cols, conds, uses),
        Rel::Shares(mut of) => {
            let keys: BTreeSet<ColId> = of.table.primary().columns.iter().map(|c| of.base + c.ordinal).collect();
            let is_of_row = |c: &Expr| !c.needs_executor() && !c.is_volatile() && c.columns().iter().all(|id| keys.contains(id));
            let (down, above): (Vec<_>, Vec<_>) = conds.into_iter().partition(is_of_row);
            of.input = push(of.input, down, uses);
            above_of(Rel::Shares(of), above, uses)
        }
        Rel::Values { cols, rows } => above_of(own_subqueries(Rel::Values { cols, rows }, uses), conds, uses),
        Rel::Dml { dml, cols } => push_dml(&dml, cols, conds, uses),
        Rel::First { ctes, input } => {
            let ctes = ctes.into_iter().map(|c| push(c, Vec::new(), uses)).collect();
            Rel::First { ctes, input: Box::new(push(*input, conds, uses)) }
        }
        other => above_of(own_subqueries(other, uses), conds, uses),
    }
}

/// A semi-join or an anti-join.
fn push_test(
    kind: JoinKind,
    (left, right): (Rel, Rel),
    on: Vec<Expr>,
    conds: Vec<Expr>,
    asked: Option<Asked>,
    uses: &Uses,
) -> Rel {
    let left_cols: BTreeSet<ColId> = left.cols().into_iter().collect();
    let (above, mut to_left): (Vec<_>, Vec<_>) = conds.into_iter().partition(Expr::is_volatile);
    // A row that fails what is said about it alone has no partner: it is not looked for.
    let right_cols: BTreeSet<ColId> = right.cols().into_iter().collect();
    let is_of_left = |c: &Expr| {
        let columns = c.columns();
        kind == JoinKind::Semi
            && !c.is_volatile()
            && columns.iter().any(|id| left_cols.contains(id))
            && !columns.iter().any(|id| right_cols.contains(id))
    };
    let (of_left, on): (Vec<_>, Vec<_>) = on.into_iter().partition(is_of_left);
    to_left.extend(of_left);
    let known: Vec<Expr> = on.iter().chain(&to_left).cloned().collect();
    // What is said about the right side alone decides which of its rows may be partners.
    let is_of_right = |c: &Expr| !c.columns().iter().any(|id| left_cols.contains(id)) && !c.is_volatile();
    let (mut to_right, on): (Vec<_>, Vec<_>) = on.into_iter().partition(is_of_right);
    to_right.extend(implied(&known, &computed_by(&right)).into_iter().filter(is_of_right));
    let on = on.into_iter().map(|c| subqueries(c, uses)).collect();
    uses.asked.set(asked);
    let (left, right) = (push(left, to_left, uses), push(right, to_right, uses));
    above_of(tested(kind, left, right, on, uses.known), above, uses)
}

/// A semi-join or an anti-join. What it says of the first of several joined relations it says
/// before these are joined, unless they leave out rows themselves.
fn tested(kind: JoinKind, left: Rel, right: Rel, on: Vec<Expr>, known: &Known) -> Rel {
    let sunk = match &left {
        Rel::Join { kind: JoinKind::Inner, left: first, on: own, .. } => {
            let (all, of_first) = (left.cols(), first.cols());
            let is_lateral = right.free_columns().iter().any(|id| all.contains(id) && !of_first.contains(id));
            let leaves_fewer = || known.covers(&left) && access::rows(first, &[], known) <= access::rows(&left, &[], known);
            (!is_lateral && leaves_fewer()).then(|| about_first(&on, own, &all, &of_first)).flatten()
        }
        _ => None,
    };
    match (left, sunk) {
        (Rel::Join { kind: of_left, left: first, right: second, on: own }, Some(on)) => {
            let left = Box::new(tested(kind, *first, right, on, known));
            Rel::Join { kind: of_left, left, right: second, on: own }
        }
        (left, _) => Rel::Join { kind, left: Box::new(left), right: Box::new(right), on },
    }
}

/// Conditions on rows of an inner join, said of its first side alone: of a column of the other
/// side, what is said of the one that equals it. `None`: they say more.
fn about_first(on: &[Expr], own: &[Expr], all: &[ColId], of_first: &[ColId]) -> Option<Vec<Expr>> {
    let is_other = |id: &ColId| all.contains(id) && !of_first.contains(id);
    let same = |id: ColId| {
        own.iter().filter_map(equals::equality).find_map(|(a, b)| match (a, b) {
            (a, b) if b == id && of_first.contains(&a) => Some(a),
            (a, b) if a == id && of_first.contains(&b) => Some(b),
            _ => None,
        })
    };
    let said = |c: &Expr| match equals::equality(c) {
        _ if c.is_volatile() => None,
        _ if !c.columns().iter().any(is_other) => Some(c.clone()),
        Some((a, b)) if is_other(&a) => Some(equals::equal(same(a)?, b)),
        Some((a, b)) => Some(equals::equal(a, same(b)?)),
        None => None,
    };
    let on: Vec<Expr> = on.iter().map(said).collect::<Option<_>>()?;
    on.iter().flat_map(Expr::columns).any(|id| of_first.contains(&id)).then_some(on)
}

/// A left join, which becomes an inner one if a condition drops all rows without a partner, and an
/// anti-join if one drops all rows with one.
fn push_left_join(left: Box<Rel>, right: Box<Rel>, on: Vec<Expr>, conds: Vec<Expr>, asked: Option<Asked>, uses: &Uses) -> Rel {
    let left_cols: BTreeSet<ColId> = left.cols().into_iter().collect();
    let right_cols: BTreeSet<ColId> = right.cols().into_iter().collect();
    let (above, to_left): (Vec<_>, Vec<_>) =
        conds.into_iter().partition(|c| c.columns().iter().any(|id| right_cols.contains(id)) || c.is_volatile());
    // What is said about the right side alone decides which of its rows may match.
    let (to_right, on): (Vec<_>, Vec<_>) =
        on.into_iter().partition(|c| !c.columns().iter().any(|id| left_cols.contains(id)) && !c.is_volatile());
    // A condition above that no NULL-extended row can pass makes the join an inner one.
    if above.iter().any(|c| rejects_nulls(c, &right_cols)) {
        let mut conds = above;
        conds.extend(to_left);
        conds.extend(to_right);
        return inner_cluster(Rel::Join { kind: JoinKind::Inner, left, right, on }, conds, asked, uses);
    }
    let says_lone =
        |c: &Expr| matches!(c, Expr::IsNull(e) if matches!(**e, Expr::Column(id) if is_set(id, &right, &on, &to_right)));
    // Who locks rows of the right side is told that it may have none.
    if above.iter().any(says_lone)
        && !right.changes()
        && !super::unnest::is_locked(&right)
        && !right.free_columns().iter().any(|id| left_cols.contains(id))
    {
        let above = above.into_iter().filter(|c| !says_lone(c)).collect();
        let on = on.into_iter().chain(to_right).collect();
        let lone = push_test(JoinKind::Anti, (*left, *right), on, to_left, asked, uses);
        let of_left = left_cols.into_iter().map(|id| (id, Expr::Column(id)));
        let exprs = of_left.chain(right_cols.into_iter().map(|id| (id, Expr::NULL))).collect();
        return above_of(Rel::Project { input: Box::new(lone), exprs }, above, uses);
    }
    // A value that the left side has is the only one that a partner can have.
    let known: Vec<Expr> = on.iter().chain(&to_left).cloned().collect();
    let of_right = |c: &Expr| c.columns().iter().any(|id| right_cols.contains(id));
    let to_right = to_right.into_iter().chain(implied(&known, &computed_by(&right)).into_iter().filter(of_right)).collect();
    let on: Vec<Expr> = on.into_iter().map(|c| subqueries(c, uses)).collect();
    uses.asked.set(asked);
    let (left, right) = (push(*left, to_left, uses), push(*right, to_right, uses));
    let is_lateral = right.free_columns().iter().any(|id| left_cols.contains(id));
    let joined = match is_lateral {
        // Every row has a partner, unless one is chosen.
        true if on.is_empty() && grouped::is_one_row(&right) => {
            grouped::lateral(JoinKind::Inner, left, right, on, uses.first.get(), uses.known)
        }
        true => grouped::lateral(JoinKind::Left, left, right, on, uses.first.get(), uses.known),
        false => Rel::Join { kind: JoinKind::Left, left: Box::new(left), right: Box::new(right), on },
    };
    above_of(joined, above, uses)
}

/// Whether a column of a join's right side is never NULL in a row that is a partner.
fn is_set(id: ColId, right: &Rel, on: &[Expr], to_right: &[Expr]) -> bool {
    let alone = BTreeSet::from([id]);
    let rejects = || on.iter().chain(to_right).any(|c| rejects_nulls(c, &alone));
    column_of(id, right).is_some_and(|column| column.not_null || rejects())
}

/// The column of a table that a relation's column is. (A row that is computed `IS NULL` where its
/// fields are.)
fn column_of(id: ColId, rel: &Rel) -> Option<&Column> {
    match rel {
        Rel::Table { table, base, .. } => table.columns.get(id.checked_sub(*base)? as usize),
        Rel::Filter { input, .. } => column_of(id, input),
        Rel::Project { input, exprs } => match exprs.iter().find(|(c, _)| *c == id)?.1 {
            Expr::Column(from) => column_of(from, input),
            _ => None,
        },
        _ => None,
    }
}

/// A full join, or what conditions above make of it.
fn push_full_join(left: Box<Rel>, right: Box<Rel>, on: Vec<Expr>, conds: Vec<Expr>, uses: &Uses) -> Rel {
    // Conditions above that no row without one of the sides can pass.
    let of = |side: &Rel| -> BTreeSet<ColId> { side.cols().into_iter().collect() };
    let (left_cols, right_cols) = (of(&left), of(&right));
    let needs = |cols: &BTreeSet<ColId>| conds.iter().any(|c| rejects_nulls(c, cols));
    let (kind, left, right) = match (needs(&left_cols), needs(&right_cols)) {
        (true, true) => (JoinKind::Inner, left, right),
        (true, false) => (JoinKind::Left, left, right),
        (false, true) => (JoinKind::Left, right, left),
        (false, false) => {
            let (of_left, of_right) = conds.iter().filter_map(|c| of_both(c, &on, &left_cols)).unzip();
            let on = on.into_iter().map(|c| subqueries(c, uses)).collect();
            let (left, right) = (Box::new(push(*left, of_left, uses)), Box::new(push(*right, of_right, uses)));
            return above_of(Rel::Join { kind: JoinKind::Full, left, right, on }, conds, uses);
        }
    };
    push(Rel::Join { kind, left, right, on }, conds, uses)
}

/// What a condition on the column that `FULL JOIN … USING` makes of two says of each of them, the
/// left side's first: they are equal, or one of them is all there is.
fn of_both(cond: &Expr, on: &[Expr], left: &BTreeSet<ColId>) -> Option<(Expr, Expr)> {
    let Expr::Compare(cmp, p) = cond else { return None };
    let is_known = |e: &Expr| e.columns().is_empty() && !e.is_volatile() && !e.needs_executor();
    let (columns, is_first) = match &**p {
        (Expr::Coalesce(columns), value) if is_known(value) => (columns, true),
        (value, Expr::Coalesce(columns)) if is_known(value) => (columns, false),
        _ => return None,
    };
    let [a @ Expr::Column(of_a), b @ Expr::Column(_)] = &columns[..] else { return None };
    let is_key = |c: &Expr| matches!(c, Expr::Compare(Cmp::Eq, p) if (&p.0, &p.1) == (a, b) || (&p.0, &p.1) == (b, a));
    if !on.iter().any(is_key) {
        return None;
    }
    let of = |column: &Expr| match is_first {
        true => Expr::compare(*cmp, column.clone(), p.1.clone()),
        false => Expr::compare(*cmp, p.0.clone(), column.clone()),
    };
    Some(if left.contains(of_a) { (of(a), of(b)) } else { (of(b), of(a)) })
}

/// A sort. Which rows are the first is known when all have been read, unless an index has them in
/// that order.
fn push_sort(input: Rel, keys: Vec<SortKey>, conds: Vec<Expr>, asked: Option<Asked>, uses: &Uses) -> Rel {
    let asks = |(id, e): &(ColId, Expr)| e.has_subquery() && keys.iter().any(|k| k.expr.columns().contains(id));
    let is_of_subquery = matches!(&input, Rel::Project { exprs, .. } if exprs.iter().any(asks));
    let in_order = match keys.first() {
        Some(SortKey { expr: Expr::Column(id), .. }) if is_in_index(*id, &input) => Some(*id),
        _ => None,
    };
    let before = uses.first.get();
    let used = before.filter(|_| in_order.is_some());
    uses.asked.set(asked.filter(|_| in_order.is_some()).map(|asked| Asked { order: in_order, ..asked }));
    let input = match input {
        Rel::Project { input, exprs } => {
            // What no key needs is computed for the rows that are left.
            uses.first.set(if is_of_subquery { None } else { before });
            push_project(*input, exprs, conds, used, uses)
        }
        other => {
            uses.first.set(used);
            push(other, conds, uses)
        }
    };
    uses.first.set(before);
    postpone::select_list(own_subqueries(Rel::Sort { input: Box::new(input), keys }, uses), false)
}

/// Whether a column is one of a table's, and in an index of it.
fn is_in_index(id: ColId, rel: &Rel) -> bool {
    match rel {
        Rel::Table { table, base, .. } => {
            let ordinal = id.checked_sub(*base).filter(|o| (*o as usize) < table.columns.len());
            ordinal.is_some_and(|o| table.indexes.iter().any(|i| i.columns.iter().any(|c| c.ordinal == o)))
        }
        Rel::Project { input, exprs } => match exprs.iter().find(|(c, _)| *c == id) {
            Some((_, Expr::Column(from))) => is_in_index(*from, input),
            _ => false,
        },
        Rel::Filter { input, .. } | Rel::LockRows { input, .. } | Rel::Distinct { input, on: None } => is_in_index(id, input),
        Rel::Join { left, right, .. } => is_in_index(id, left) || is_in_index(id, right),
        _ => false,
    }
}

/// Conditions on what is projected become conditions on what it is computed from. `used`: how many
/// rows of that are used ([`Uses::first`]).
fn push_project(input: Rel, mut exprs: Vec<(ColId, Expr)>, conds: Vec<Expr>, used: Option<f64>, uses: &Uses) -> Rel {
    // A condition on what is computed, as one on what that is computed from.
    let below = |exprs: &[(ColId, Expr)], c: &Expr| {
        let plain = |id: ColId| exprs.iter().find(|(c, _)| *c == id).map(|(_, e)| e);
        let is_plain = |id: &ColId| plain(*id).is_none_or(|e| !e.is_volatile() && !e.needs_executor());
        let mut below = (!c.needs_executor() && c.columns().iter().all(is_plain)).then(|| c.clone())?;
        below.substitute(&|id| plain(id).cloned());
        Some(below)
    };
    let tests: Vec<Expr> = conds.iter().filter_map(|c| below(&exprs, c)).collect();
    let input = uses.with_groups(input, exprs.iter_mut().map(|(_, e)| e), &tests);
    let (mut down, mut above) = (Vec::new(), Vec::new());
    for c in conds {
        match below(&exprs, &c) {
            Some(below) => down.push(below),
            None => above.push(c),
        }
    }
    let before = uses.first.replace(used);
    let input = Box::new(push(input, down, uses));
    uses.first.set(before);
    let exprs = exprs.into_iter().map(|(c, e)| (c, subqueries(e, uses))).collect();
    above_of(Rel::Project { input, exprs }, above, uses)
}

/// A condition on keys alone drops whole groups: it may drop their rows first.
fn push_aggregate(
    input: Rel,
    mut keys: Vec<(ColId, Expr)>,
    mut aggs: Vec<(ColId, AggCall)>,
    conds: Vec<Expr>,
    uses: &Uses,
) -> Rel {
    // It reads all rows, whatever is above.
    let before = uses.first.take();
    let asked = keys.iter_mut().map(|(_, e)| e).chain(aggs.iter_mut().flat_map(|(_, call)| &mut call.args));
    let input = uses.with_groups(input, asked, &conds);
    let key = |id: ColId| keys.iter().find(|(c, _)| *c == id).map(|(_, e)| e);
    let on_keys = |c: &Expr| {
        !keys.is_empty() && !c.needs_executor() && !c.is_volatile() && !aggs.iter().any(|(a, _)| c.columns().contains(a))
    };
    let (down, above): (Vec<_>, Vec<_>) = conds.into_iter().partition(on_keys);
    let down = down.into_iter().map(|mut c| {
        c.substitute(&|id| key(id).cloned());
        c
    });
    let input = Box::new(push(input, down.collect(), uses));
    uses.first.set(before);
    above_of(own_subqueries(Rel::Aggregate { input, keys, aggs }, uses), above, uses)
}

/// A common table expression is optimized once, wherever it is used.
fn push_cte(cte: Arc<Cte>, cols: Vec<ColId>, conds: Vec<Expr>, uses: &Uses) -> Rel {
    let is_kept = cte.is_materialized && uses.is_repeated.get() || !super::unnest::is_plain(&cte.body);
    if uses.counts.get(&cte.id) == Some(&1) && cte.step.is_none() && !is_kept {
        // Used once: as if it were written in place. (It may be computed several times there, for
        // each row of another relation.)
        let from = cte.body.cols();
        let exprs = cols.into_iter().zip(from).map(|(c, f)| (c, Expr::Column(f))).collect();
        return push(Rel::Project { input: Box::new(cte.body.clone()), exprs }, conds, uses);
    }
    let known = uses.pushed.borrow().get(&cte.id).cloned();
    let cte = known.unwrap_or_else(|| {
        let body = push(cte.body.clone(), Vec::new(), uses);
        let step = cte.step.clone().map(|(r, d)| (push(r, Vec::new(), uses), d));
        let pushed = Arc::new(Cte { id: cte.id, name: cte.name.clone(), body, step, is_materialized: cte.is_materialized });
        uses.pushed.borrow_mut().insert(cte.id, pushed.clone());
        pushed
    });
    above_of(Rel::Cte { cte, cols }, conds, uses)
}

/// Conditions go to both sides.
fn push_set_op(op: SetOp, all: bool, (left, right): (Rel, Rel), cols: Vec<ColId>, conds: Vec<Expr>, uses: &Uses) -> Rel {
    let may_go = |c: &Expr| op != SetOp::Except && !c.needs_executor() && !c.is_volatile();
    let (down, above): (Vec<_>, Vec<_>) = conds.into_iter().partition(may_go);
    let side = |rel: Rel| {
        let of: BTreeMap<ColId, ColId> = cols.iter().copied().zip(rel.cols()).collect();
        let conds = down.iter().cloned().map(|mut c| {
            c.substitute(&|id| of.get(&id).map(|id| Expr::Column(*id)));
            c
        });
        let conds = conds.collect();
        Box::new(push(rel, conds, uses))
    };
    let (left, right) = (side(left), side(right));
    above_of(Rel::SetOp { op, all, left, right, cols }, above, uses)
}

/// The rows that a statement changes are found; conditions are on what it returns.
fn push_dml(dml: &Dml, cols: Vec<ColId>, conds: Vec<Expr>, uses: &Uses) -> Rel {
    let mut dml = dml.clone();
    dml.input = push(dml.input, Vec::new(), uses);
    for e in dml.exprs_mut() {
        let expr = std::mem::replace(e, Expr::NULL);
        *e = subqueries(expr, uses);
    }
    above_of(Rel::Dml { dml: Arc::new(dml), cols }, conds, uses)
}

/// Whether a condition is about columns of a relation that are in each of these lists, and perhaps
/// about an outer row: of rows that are alike in one of the lists it keeps all or none.
fn is_of_columns(c: &Expr, own: &[ColId], lists: &[&[Expr]]) -> bool {
    let is_in = |list: &&[Expr], id: &ColId| list.iter().any(|e| matches!(e, Expr::Column(c) if c == id));
    let mut columns = c.columns();
    columns.retain(|id| own.contains(id));
    !columns.is_empty()
        && !c.needs_executor()
        && !c.is_volatile()
        && columns.iter().all(|id| lists.iter().all(|list| is_in(list, id)))
}

/// Optimizes the bodies of the subqueries in a node's own expressions.
fn own_subqueries(mut rel: Rel, uses: &Uses) -> Rel {
    rel.each_expr_mut(&mut |e| *e = subqueries(std::mem::replace(e, Expr::NULL), uses));
    rel
}

fn above_of(rel: Rel, conds: Vec<Expr>, uses: &Uses) -> Rel {
    rel.filtered(conds.into_iter().map(|c| subqueries(c, uses)).collect())
}

/// Optimizes the bodies of an expression's subqueries.
fn subqueries(mut e: Expr, uses: &Uses) -> Expr {
    if let Expr::Subquery(s) = &mut e
        && let SubqueryBody::Logical(rel) = &mut s.body
    {
        let before = uses.locks_above.replace(false);
        // It runs for each row that asks, or for its first row.
        let is_correlated = !rel.free_columns().is_empty();
        let is_partial = matches!(s.kind, SubqueryKind::Exists) || is_correlated;
        let first = uses.first.replace(is_partial.then_some(0.0));
        let was_repeated = uses.is_repeated.replace(uses.is_repeated.get() || is_correlated);
        *rel = Arc::new(push((**rel).clone(), Vec::new(), uses));
        uses.is_repeated.set(was_repeated);
        uses.first.set(first);
        uses.locks_above.set(before);
    }
    for c in e.children_mut() {
        let child = std::mem::replace(c, Expr::NULL);
        *c = subqueries(child, uses);
    }
    e
}

/// Whether no row can pass a condition, whatever it is.
fn is_never_true(c: &Expr) -> bool {
    match c {
        Expr::Const(value) => !matches!(value, Datum::Bool(true)),
        Expr::And(all) => all.iter().any(is_never_true),
        _ => false,
    }
}

/// What a condition that is never true leaves of a relation.
fn no_rows(rel: &Rel) -> Rel {
    Rel::Values { cols: rel.cols(), rows: Vec::new() }
}

/// Whether a condition is never true when all these columns are `NULL`.
fn rejects_nulls(c: &Expr, cols: &BTreeSet<ColId>) -> bool {
    match c {
        Expr::In(e, _) | Expr::IsBool(e, _) => is_null_with(e, cols),
        Expr::Not(e) => match &**e {
            Expr::IsNull(e) => is_null_with(e, cols),
            e => is_null_with(e, cols),
        },
        Expr::Or(any) => !any.is_empty() && any.iter().all(|c| rejects_nulls(c, cols)),
        Expr::And(all) => all.iter().any(|c| rejects_nulls(c, cols)),
        e => is_null_with(e, cols),
    }
}

/// Whether an expression is NULL when all these columns are.
fn is_null_with(e: &Expr, cols: &BTreeSet<ColId>) -> bool {
    match e {
        Expr::Column(id) => cols.contains(id),
        Expr::Compare(_, p) => is_null_with(&p.0, cols) || is_null_with(&p.1, cols),
        Expr::Cast(cast) => is_null_with(&cast.expr, cols),
        Expr::Call(f, args) => f.strict && args.iter().any(|a| is_null_with(a, cols)),
        _ => false,
    }
}

/// Of more relations than these, each is joined that a condition connects with those before it,
/// as they were written: to score each of them at each step would take seconds.
const LEAVES_SCORED: usize = 40;

/// The first relation whose columns, with those that are there, a condition needs.
fn connected(pending: &[Expr], leaf_of: &HashMap<ColId, usize>, have: &BTreeSet<ColId>) -> Option<usize> {
    let of = |c: &Expr| {
        let (there, missing): (Vec<ColId>, Vec<ColId>) = c.columns().into_iter().partition(|id| have.contains(id));
        let at = leaf_of.get(missing.first().filter(|_| !there.is_empty())?)?;
        missing.iter().all(|id| leaf_of.get(id) == Some(at)).then_some(*at)
    };
    pending.iter().filter_map(of).min()
}

/// A cluster of inner joins: its leaves in a good order, each condition as early as its columns are
/// there.
fn inner_cluster(rel: Rel, above: Vec<Expr>, asked: Option<Asked>, uses: &Uses) -> Rel {
    let (mut leaves, mut conds) = (Vec::new(), Vec::new());
    flatten(rel, &mut leaves, &mut conds);
    conds.extend(above);
    let mut conds = conds.into_iter().flat_map(|c| {
        let mut v = Vec::new();
        c.conjuncts(&mut v);
        v
    });
    let mut pending: Vec<Expr> = conds.by_ref().collect();
    without_outer_joins(&mut leaves, &mut pending);
    if pending.iter().any(is_never_true) && !leaves.iter().any(Rel::changes) {
        return Rel::Values { cols: leaves.iter().flat_map(Rel::cols).collect(), rows: Vec::new() };
    }
    let computed: Vec<ColId> = leaves.iter().flat_map(computed_by).collect();
    pending.extend(implied(&pending, &computed));
    let sets: Vec<BTreeSet<ColId>> = leaves.iter().map(|l| l.cols().into_iter().collect()).collect();
    if sets.len() > 1 && !super::limits::is_abandoned() {
        let said: Vec<Expr> = pending.iter().flat_map(|c| sets.iter().filter_map(|own| said_of(c, own))).collect();
        pending.extend(said);
    }
    let all: BTreeSet<ColId> = sets.iter().flatten().copied().collect();
    // What each leaf takes from its siblings (LATERAL).
    let lateral: Vec<BTreeSet<ColId>> =
        leaves.iter().map(|l| l.free_columns().into_iter().filter(|c| all.contains(c)).collect()).collect();
    let has_lateral = lateral.iter().any(|l| !l.is_empty());
    let mut own: Vec<Vec<Expr>> = vec![Vec::new(); leaves.len()];
    pending.retain(|c| {
        let cols: Vec<ColId> = c.columns().into_iter().filter(|id| all.contains(id)).collect();
        let Some(at) = sets.iter().position(|s| cols.iter().all(|id| s.contains(id))) else { return true };
        if cols.is_empty() || c.is_volatile() {
            return true;
        }
        own[at].push(c.clone());
        false
    });
    let mut left: Vec<Option<Rel>> = leaves.into_iter().zip(own).map(|(leaf, conds)| Some(push(leaf, conds, uses))).collect();
    let mut have: BTreeSet<ColId> = BTreeSet::new();
    let classes = equals::classes(&pending, |id| sets.iter().position(|set| set.contains(&id)));
    let mut linked = equals::Linked::new(&classes);
    let leaf_of = match left.len() > LEAVES_SCORED {
        true => sets.iter().enumerate().flat_map(|(at, set)| set.iter().map(move |id| (*id, at))).collect(),
        false => HashMap::new(),
    };
    let mut result: Option<Rel> = None;
    let order = if has_lateral { None } else { join_order::by_cost(&left, &pending, asked, uses.known) };
    for step in 0..left.len() {
        if super::limits::is_abandoned() {
            break;
        }
        let candidates = (0..left.len()).filter(|i| left[*i].is_some() && lateral[*i].is_subset(&have));
        let score = |i: usize| {
            let rel = left[i].as_ref().expect("still to be joined");
            access::promise(rel, &pending, &have, uses.known)
        };
        let next = if let Some(order) = &order {
            Some(order[step])
        } else if has_lateral {
            candidates.min()
        } else if left.len() > LEAVES_SCORED {
            connected(&pending, &leaf_of, &have).or_else(|| left.iter().position(Option::is_some))
        } else {
            candidates.min_by_key(|i| (score(*i), *i))
        };
        let Some(next) = next.or_else(|| left.iter().position(Option::is_some)) else { break };
        let right = left[next].take().expect("chosen among those left");
        have.extend(&sets[next]);
        let (on, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut pending)
            .into_iter()
            .partition(|c| !c.is_volatile() && c.columns().iter().all(|id| !all.contains(id) || have.contains(id)));
        pending = rest;
        let on = linked.join(on, next, |leaf| leaf != next && left[leaf].is_none());
        let on: Vec<Expr> = on.into_iter().map(|c| subqueries(c, uses)).collect();
        result = Some(match result {
            None => right.filtered(on),
            Some(left) if !lateral[next].is_empty() => {
                grouped::lateral(JoinKind::Inner, left, right, on, uses.first.get(), uses.known)
            }
            Some(left) => Rel::Join { kind: JoinKind::Inner, left: Box::new(left), right: Box::new(right), on },
        });
    }
    above_of(result.unwrap_or_else(Rel::one_row), pending, uses)
}

/// What each side of an `OR` says of one relation's columns: its rows can be chosen by that before
/// they are joined. Of this relation alone, the `OR` says it by itself.
fn said_of(c: &Expr, own: &BTreeSet<ColId>) -> Option<Expr> {
    let Expr::Or(sides) = c else { return None };
    let is_own = |e: &Expr| {
        let columns = e.columns();
        !columns.is_empty() && columns.iter().all(|id| own.contains(id)) && !e.is_volatile() && !e.needs_executor()
    };
    let of_side = |side: &Expr| {
        let mut all = Vec::new();
        side.clone().conjuncts(&mut all);
        all.retain(|e| is_own(e));
        (!all.is_empty()).then_some(Expr::And(all))
    };
    if is_own(c) {
        return None;
    }
    sides.iter().map(of_side).collect::<Option<Vec<_>>>().map(Expr::Or)
}

/// What follows from columns that equal each other: if one of them has a value, or one of some
/// values, so have the others. Bounds follow as well for the columns that are `computed`: groups
/// that nobody asks for need not be. (Of the columns of tables, an index finds what is asked for,
/// and the rows that pass would be counted as if both bounds left some out.)
fn implied(conds: &[Expr], computed: &[ColId]) -> Vec<Expr> {
    let mut classes: Vec<BTreeSet<ColId>> = Vec::new();
    for c in conds {
        let Expr::Compare(Cmp::Eq, p) = c else { continue };
        let (Expr::Column(a), Expr::Column(b)) = &**p else { continue };
        let (mut joined, others): (Vec<_>, Vec<_>) = classes.into_iter().partition(|s| s.contains(a) || s.contains(b));
        let mut one: BTreeSet<ColId> = joined.drain(..).flatten().collect();
        one.extend([a, b]);
        classes = others;
        classes.push(one);
    }
    let mut out: Vec<Expr> = Vec::new();
    let mut known: HashSet<Expr> = if classes.is_empty() { HashSet::new() } else { conds.iter().cloned().collect() };
    for class in &classes {
        for c in conds {
            let told = valued(c).map(|column| (column, false)).or_else(|| bounded(c).map(|column| (column, true)));
            let Some((column, is_bound)) = told.filter(|(column, _)| class.contains(column)) else { continue };
            for other in class.iter().filter(|other| **other != column && (!is_bound || computed.contains(other))) {
                let mut same = c.clone();
                same.substitute(&|id| (id == column).then_some(Expr::Column(*other)));
                if known.insert(same.clone()) {
                    out.push(same);
                }
            }
        }
    }
    out
}

/// The column of a condition that says that it has a value, or one of some values, which are known
/// before any row is read.
fn valued(c: &Expr) -> Option<ColId> {
    match c {
        Expr::Compare(Cmp::Eq, p) => match &**p {
            (Expr::Column(column), value) | (value, Expr::Column(column)) if is_known(value) => Some(*column),
            _ => None,
        },
        Expr::In(e, list) if list.iter().all(is_known) => match **e {
            Expr::Column(column) => Some(column),
            _ => None,
        },
        _ => None,
    }
}

/// The columns of a relation that are computed from those of tables.
fn computed_by(rel: &Rel) -> Vec<ColId> {
    if matches!(super::unnest::below(rel), Rel::Table { .. }) { Vec::new() } else { rel.cols() }
}

/// The column of a condition that bounds it by a value which is known before any row is read.
fn bounded(c: &Expr) -> Option<ColId> {
    let Expr::Compare(Cmp::Lt | Cmp::Le | Cmp::Gt | Cmp::Ge, p) = c else { return None };
    match &**p {
        (Expr::Column(column), value) | (value, Expr::Column(column)) if is_known(value) => Some(*column),
        _ => None,
    }
}

/// Whether a value is known before any row is read.
fn is_known(e: &Expr) -> bool {
    e.columns().is_empty() && !e.is_volatile() && !e.needs_executor()
}

/// Left joins among the leaves of which a condition drops all rows without a partner are inner
/// ones, and what they say of their own left sides may do the same there.
fn without_outer_joins(leaves: &mut Vec<Rel>, conds: &mut Vec<Expr>) {
    let is_inner = |leaf: &Rel, conds: &[Expr]| match leaf {
        Rel::Join { kind: JoinKind::Left, right, .. } => {
            let cols: BTreeSet<ColId> = right.cols().into_iter().collect();
            conds.iter().any(|c| !c.is_volatile() && rejects_nulls(c, &cols))
        }
        _ => false,
    };
    while let Some(at) = leaves.iter().position(|leaf| is_inner(leaf, conds)) {
        let Rel::Join { left, right, on, .. } = leaves.remove(at) else { return };
        let (mut found, mut said) = (Vec::new(), Vec::new());
        flatten(Rel::Join { kind: JoinKind::Inner, left, right, on }, &mut found, &mut said);
        leaves.splice(at..at, found);
        said.into_iter().for_each(|c| c.conjuncts(conds));
    }
}

fn flatten(rel: Rel, leaves: &mut Vec<Rel>, conds: &mut Vec<Expr>) {
    match rel {
        Rel::Join { kind: JoinKind::Inner, left, right, on } => {
            flatten(*left, leaves, conds);
            flatten(*right, leaves, conds);
            conds.extend(on);
        }
        Rel::Filter { input, conds: more } if matches!(*input, Rel::Join { kind: JoinKind::Inner, .. }) => {
            flatten(*input, leaves, conds);
            conds.extend(more);
        }
        Rel::Values { cols, rows } if cols.is_empty() && rows.len() == 1 && !leaves.is_empty() => {}
        leaf => leaves.push(leaf),
    }
}
