//! `INSERT`, `UPDATE`, `DELETE`: from new values to rows, which [`write`](super::write) writes.
//!
//! Order within a statement: rows are computed and written one after another, each checked for `NOT
//! NULL`, `CHECK` and uniqueness against the transaction's own view; foreign keys are checked when
//! all rows are written, so that rows of one statement may refer to each other.

use super::Runtime;
use super::ahead::{self, Ahead};
use super::cascade;
use super::escrow;
use super::eval::{Frame, Kept, Row, all_true, eval_all, eval_scalar};
use super::key_parts::point_key;
use super::op::Op;
use super::spill::is_short;
use super::spill::list::{List, Listing, Place};
use super::write::{
    Changes, Reach, complete, delete, duplicate, null_value, place, put_new, reach, revise, taken, write_changes,
};
use super::{infer, prefetch};
use crate::env::{Locking, OnLocked, Transaction};
use crate::plan::TablePlan;
use crate::plan::node::{ConflictPlan, DmlPlan, DmlPlanKind, Node, Scalar, UpsertPlan};
use crate::types::Datum;
use meridian_base::{ColumnMask, Error, GroupId, Key, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Runs the statement; returns the rows of `RETURNING`.
pub(crate) async fn rows<T: Transaction>(plan: &DmlPlan, frame: &Frame, rt: &mut Runtime<'_, T>) -> Result<Vec<Row>> {
    if let DmlPlanKind::Update { deltas, is_blind: true, .. } = &plan.kind {
        rt.shared.changed = add_blindly(plan, deltas, frame, rt).await?;
        return Ok(Vec::new());
    }
    let mut input = Input::read(&plan.input, frame, rt).await?;
    let mut changes = Changes { forgets: !cascade::concerns(&plan.table, &plan.keys), ..Changes::default() };
    let mut out = Vec::new();
    let mut changed = 0;
    let mut seen = BTreeSet::new();
    if let DmlPlanKind::Insert { targets, conflict: None, random, infers: false } = &plan.kind
        && plan.returning.is_empty()
    {
        let mut ahead = (rt.ctx.options.loads == Some(plan.table.table.id)).then(Ahead::default);
        while let Some(rows) = input.next(rt).await? {
            let new: Vec<Row> = rows.into_iter().map(|source| new_row(&plan.table, targets, source)).collect();
            if let Some(ahead) = &mut ahead {
                changed += new.len() as u64;
                insert_ahead(plan, new, random, ahead, rt).await?;
                continue;
            }
            changed += new.len() as u64;
            insert_all(plan, new, random, &mut changes, rt).await?;
        }
        if let Some(ahead) = ahead {
            ahead.end().await?;
        }
        cascade::check(&plan.table, &plan.keys, changes, rt).await?;
        rt.shared.changed = changed;
        return Ok(out);
    }
    // Subqueries see the tables as they were before the statement: all of them are asked before the
    // first write.
    let looks_first = plan.asks_tables();
    let mut resolved = Vec::new();
    let width = plan.table.types.len();
    while let Some(mut source) = input.next_row(plan, &mut changes, frame, rt).await? {
        rt.pause().await?;
        let change = match &plan.kind {
            DmlPlanKind::Insert { targets, conflict, random, infers } => {
                let mut row = new_row(&plan.table, targets, source);
                if *infers {
                    infer::region(plan, &mut row, rt).await?;
                }
                source = Vec::new();
                resolve(plan, row, conflict.as_ref(), random, &changes, frame, rt).await?
            }
            // A row that joins with several others is changed once.
            _ if !seen.insert(plan.table.primary_key(&source[..width])?) => continue,
            DmlPlanKind::Update { set, deltas, .. } => {
                let mut new = assign(&plan.table, set, &source, &source[..width], frame, rt).await?;
                let deltas = deltas_of(&plan.table, deltas, &source, &mut new, frame, rt).await?;
                revise(&plan.table, &source[..width], &mut new, rt).await?;
                Some(Change::Update { old: source[..width].to_vec(), new, deltas, is_upsert: false })
            }
            DmlPlanKind::Delete => Some(Change::Delete { old: source[..width].to_vec() }),
        };
        let Some(change) = change else { continue };
        let mut told = None;
        if looks_first && !plan.returning.is_empty() {
            told = Some(returned(plan, &change, &source, frame, rt).await?);
        }
        if looks_first {
            resolved.push((change, told));
            continue;
        }
        changed += 1;
        if !plan.returning.is_empty() {
            let shown = change.clone();
            apply(plan, change, &mut changes, rt).await?;
            out.push(returned(plan, &shown, &source, frame, rt).await?);
        } else {
            apply(plan, change, &mut changes, rt).await?;
        }
    }
    for (change, told) in resolved {
        rt.pause().await?;
        let change = match (change, &plan.kind) {
            // An earlier row of the statement may have taken its place.
            (Change::Insert { new }, DmlPlanKind::Insert { conflict, random, .. }) => {
                resolve(plan, new, conflict.as_ref(), random, &changes, frame, rt).await?
            }
            (change, _) => Some(change),
        };
        let Some(change) = change else { continue };
        changed += 1;
        apply(plan, change, &mut changes, rt).await?;
        out.extend(told);
    }
    cascade::check(&plan.table, &plan.keys, changes, rt).await?;
    // The statement's own change comes last, after those of its WITH clause.
    rt.shared.changed = changed;
    Ok(out)
}

/// What a statement has read, all of it, before it writes.
struct Input {
    /// All rows if there is room for them, otherwise some.
    rows: std::vec::IntoIter<Row>,
    /// The others.
    list: Option<(List, Place)>,
    is_ahead: bool,
}

impl Input {
    async fn read<T: Transaction>(node: &Arc<Node>, frame: &Frame, rt: &mut Runtime<'_, T>) -> Result<Input> {
        let mut op = Op::new(node, frame);
        let (mut kept, mut bytes) = (Kept::default(), 0);
        let mut listing: Option<Listing> = None;
        while let Some(rows) = op.next(rt, usize::MAX).await? {
            if let Some(listing) = &mut listing {
                listing.extend(rows, rt).await?;
                continue;
            }
            bytes += rt.keep(&rows)?;
            kept.extend(rows);
            if is_short(rt) {
                rt.shared.memory -= bytes;
                let mut more = Listing::new();
                more.extend(std::mem::take(&mut kept).take(), rt).await?;
                listing = Some(more);
            }
        }
        let list = listing.map(|listing| (listing.finish(), Place::default()));
        Ok(Input { rows: kept.take().into_iter(), list, is_ahead: false })
    }

    /// The next rows, many at once.
    async fn next<T: Transaction>(&mut self, rt: &mut Runtime<'_, T>) -> Result<Option<Vec<Row>>> {
        if self.rows.len() > 0 {
            return Ok(Some(std::mem::take(&mut self.rows).collect()));
        }
        match &mut self.list {
            Some((list, place)) => list.next(place, rt).await,
            None => Ok(None),
        }
    }

    /// The next row. What the change of some rows needs of other nodes is asked for before the
    /// first of them.
    async fn next_row<T: Transaction>(
        &mut self,
        plan: &DmlPlan,
        changes: &mut Changes,
        frame: &Frame,
        rt: &mut Runtime<'_, T>,
    ) -> Result<Option<Row>> {
        if self.rows.len() == 0
            && let Some((list, place)) = &mut self.list
        {
            self.rows = list.next(place, rt).await?.unwrap_or_default().into_iter();
            self.is_ahead = false;
        }
        if !self.is_ahead {
            look_ahead(plan, self.rows.as_slice(), changes, frame, rt).await?;
            self.is_ahead = true;
        }
        Ok(self.rows.next())
    }
}

/// Asks for what the rows' changes need of other nodes, for many rows at once.
async fn look_ahead<T: Transaction>(
    plan: &DmlPlan,
    input: &[Row],
    changes: &mut Changes,
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<()> {
    if let DmlPlanKind::Insert { targets, random, conflict, .. } = &plan.kind {
        let is_distant = plan.table.table.groups().any(|group| rt.txn.is_distant(group));
        let locks = conflict.as_ref().is_some_and(|c| c.update.is_some())
            && plan.table.table.groups().any(|group| rt.txn.locks_elsewhere(group));
        if is_distant || locks {
            let coming: Vec<Row> = input.iter().map(|source| new_row(&plan.table, targets, source.clone())).collect();
            if let Some(keys) = prefetch::rows_to_lock(plan, &coming, rt) {
                changes.locked = prefetch::lock(keys, rt).await?;
            }
            if is_distant {
                prefetch::inserts(plan, &coming, random, rt).await?;
            }
        }
    }
    if let DmlPlanKind::Update { deltas, .. } = &plan.kind
        && input.len() > 1
        && escrow::may_bring(&plan.table)
    {
        for some in input.chunks(escrow::AHEAD) {
            let mut ahead = Vec::with_capacity(some.len());
            for source in some {
                let mut row = source[..plan.table.types.len()].to_vec();
                let deltas = deltas_of(&plan.table, deltas, source, &mut row, frame, rt).await?;
                ahead.push((plan.table.primary_key(&row)?, deltas));
            }
            escrow::bring_ahead(&plan.table, &ahead, rt).await?;
            rt.pause().await?;
        }
    }
    Ok(())
}

/// What a statement does to one row.
#[derive(Clone)]
enum Change {
    Insert {
        new: Row,
    },
    Update {
        old: Row,
        new: Row,
        /// Of escrow columns. Where the number was read, the new row has what it is then.
        deltas: Vec<(u32, Datum)>,
        /// `ON CONFLICT DO UPDATE` does it.
        is_upsert: bool,
    },
    Delete {
        old: Row,
    },
}

/// A row of `RETURNING`. What was joined to the row that changes is in `source`.
async fn returned<T: Transaction>(
    plan: &DmlPlan,
    change: &Change,
    source: &[Datum],
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Row> {
    let (Change::Insert { new: row } | Change::Update { new: row, .. } | Change::Delete { old: row }) = change;
    match source.get(plan.table.types.len()..) {
        Some(joined) if !joined.is_empty() => {
            let all: Row = row.iter().chain(joined).cloned().collect();
            eval_all(&plan.returning, &all, frame, rt).await
        }
        _ => eval_all(&plan.returning, row, frame, rt).await,
    }
}

/// Writes a change.
async fn apply<T: Transaction>(plan: &DmlPlan, change: Change, changes: &mut Changes, rt: &mut Runtime<'_, T>) -> Result<()> {
    let table = &plan.table;
    let updates = matches!(&plan.kind, DmlPlanKind::Insert { conflict: Some(c), .. } if c.update.is_some());
    match change {
        Change::Insert { new } => {
            put_new(table, &new, rt)?;
            if updates {
                changes.touched.insert((table.group_of(&new)?, table.primary_key(&new)?));
            }
            if !changes.forgets {
                changes.inserted.push(new);
            }
        }
        Change::Update { old, new, deltas, is_upsert } => {
            if is_upsert {
                changes.refuse_second(&(table.group_of(&old)?, table.primary_key(&old)?))?;
            }
            let adds_first = !deltas.is_empty() && escrow::adds_first(table, &old, &new)?;
            if adds_first {
                escrow::add_all(table, &table.primary_key(&new)?, &deltas, true, rt).await?;
            }
            write_changes(table, &old, &before_deltas(&old, &new, &deltas), rt).await?;
            if !adds_first {
                escrow::add_all(table, &table.primary_key(&new)?, &deltas, true, rt).await?;
            }
            if is_upsert {
                changes.touched.insert((table.group_of(&new)?, table.primary_key(&new)?));
            }
            if !changes.forgets {
                changes.updated.push((old, new));
            }
        }
        Change::Delete { old } => {
            delete(table, &old, rt)?;
            if !changes.forgets {
                changes.deleted.push(old);
            }
        }
    }
    Ok(())
}

/// Inserts rows of values for the parameters of a plan of [`crate::plan::prepare_insert`].
pub(crate) async fn insert_params<T: Transaction>(plan: &DmlPlan, rows: Vec<Row>, rt: &mut Runtime<'_, T>) -> Result<u64> {
    let DmlPlanKind::Insert { targets, conflict: None, random, infers } = &plan.kind else {
        return Err(Error::internal("not a plain INSERT"));
    };
    let Node::Values(values) = &*plan.input else { return Err(Error::internal("not an INSERT of parameters")) };
    let [template] = values.as_slice() else { return Err(Error::internal("not an INSERT of one row")) };
    let frame: Frame = std::sync::Arc::from([]);
    let mut changes = Changes::default();
    let count = rows.len() as u64;
    let mut new = Vec::with_capacity(rows.len());
    for params in rows {
        rt.step().await?;
        let mut inner = Runtime { txn: &mut *rt.txn, ctx: rt.ctx, params: &params, shared: &mut *rt.shared };
        let values = eval_all(template, &[], &frame, &mut inner).await?;
        let mut row = new_row(&plan.table, targets, values);
        if *infers {
            infer::region(plan, &mut row, &mut inner).await?;
        }
        new.push(row);
    }
    insert_all(plan, new, random, &mut changes, rt).await?;
    cascade::check(&plan.table, &plan.keys, changes, rt).await?;
    Ok(count)
}

/// Rows whose places are looked up at once.
const TOGETHER_MAX: usize = 1_024;

/// Inserts rows without `ON CONFLICT` and without `RETURNING`.
async fn insert_all<T: Transaction>(
    plan: &DmlPlan,
    mut rows: Vec<Row>,
    random: &[u32],
    changes: &mut Changes,
    rt: &mut Runtime<'_, T>,
) -> Result<()> {
    while !rows.is_empty() {
        let rest = rows.split_off(rows.len().min(TOGETHER_MAX));
        prefetch::inserts(plan, &rows, random, rt).await?;
        if insert_together(plan, &mut rows, random, rt).await? {
            match changes.forgets {
                true => rows.clear(),
                false => changes.inserted.append(&mut rows),
            }
        }
        for row in rows {
            rt.pause().await?;
            insert(plan, row, random, changes, rt).await?;
        }
        rows = rest;
    }
    Ok(())
}

/// The same in transactions that commit ahead of the statement's own.
async fn insert_ahead<T: Transaction>(
    plan: &DmlPlan,
    mut rows: Vec<Row>,
    random: &[u32],
    ahead: &mut Ahead,
    rt: &mut Runtime<'_, T>,
) -> Result<()> {
    while !rows.is_empty() {
        let rest = rows.split_off(rows.len().min(ahead::ROWS));
        let mut txn = rt.txn.beside();
        let mut inner = Runtime { txn: &mut txn, ctx: rt.ctx, params: rt.params, shared: &mut *rt.shared };
        let mut changes = Changes::default();
        insert_all(plan, rows, random, &mut changes, &mut inner).await?;
        cascade::check(&plan.table, &plan.keys, changes, &mut inner).await?;
        ahead.commit(txn).await?;
        rows = rest;
    }
    Ok(())
}

/// Looks up the places of all rows at once, and writes the rows if all places are free. `false`:
/// something speaks against it, and nothing was written. Inserting the rows one by one then tells
/// what, with the error of the first row that has one.
async fn insert_together<T: Transaction>(
    plan: &DmlPlan,
    rows: &mut [Row],
    random: &[u32],
    rt: &mut Runtime<'_, T>,
) -> Result<bool> {
    let table = &plan.table;
    let unique = std::iter::once(0).chain(table.secondary(false)).filter(|index| table.table.indexes[*index].unique);
    let unique: Vec<usize> = unique.collect();
    let asks_elsewhere = |index: &usize| reach(table, *index, random) == Reach::All;
    if rows.len() < 2 || unique.iter().any(asks_elsewhere) || table.table.groups().any(|group| rt.txn.is_distant(group)) {
        return Ok(false);
    }
    let mut places: BTreeMap<GroupId, Vec<Key>> = BTreeMap::new();
    for row in &mut *rows {
        rt.step().await?;
        if complete(table, row, rt.ctx.eval).is_err() || escrow::require(table, row).is_err() {
            return Ok(false);
        }
        for index in &unique {
            match place(table, *index, row, rt.ctx.eval) {
                Ok(Some((group, key))) => places.entry(group).or_default().push(key),
                Ok(None) => {}
                Err(_) => return Ok(false),
            }
        }
    }
    for (group, mut keys) in places {
        keys.sort_unstable();
        if keys.windows(2).any(|pair| pair[0] == pair[1]) {
            return Ok(false);
        }
        for keys in keys.chunks(TOGETHER_MAX) {
            let found = rt.txn.get_many(group, keys, ColumnMask::EXISTENCE, Locking::None).await?;
            if found.iter().any(Option::is_some) {
                return Ok(false);
            }
            rt.pause().await?;
        }
    }
    for row in &*rows {
        rt.step().await?;
        put_new(table, row, rt)?;
    }
    Ok(true)
}

fn new_row(table: &TablePlan, targets: &[u32], values: Row) -> Row {
    if values.len() == table.types.len() && targets.iter().copied().eq(0..values.len() as u32) {
        return values;
    }
    let mut row = vec![Datum::Null; table.types.len()];
    for (o, v) in targets.iter().zip(values) {
        row[*o as usize] = v;
    }
    row
}

/// What is added to the escrow columns of a row that was read. Where the number was read too, the
/// new row gets what it is then.
async fn deltas_of<T: Transaction>(
    table: &TablePlan,
    deltas: &[(u32, Scalar)],
    source: &[Datum],
    new: &mut [Datum],
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Vec<(u32, Datum)>> {
    let mut all = Vec::with_capacity(deltas.len());
    for (ordinal, delta) in deltas {
        let delta = eval_scalar(delta, source, frame, rt).await?;
        escrow::show(table, *ordinal, &mut new[*ordinal as usize], &delta)?;
        all.push((*ordinal, delta));
    }
    Ok(all)
}

/// The new row as it is without its deltas: these are no values that are set.
fn before_deltas(old: &[Datum], new: &[Datum], deltas: &[(u32, Datum)]) -> Row {
    let mut row = new.to_vec();
    deltas.iter().for_each(|(ordinal, _)| row[*ordinal as usize] = old[*ordinal as usize].clone());
    row
}

/// Adds to the escrow columns of the row with this key, without a look at it.
async fn add_blindly<T: Transaction>(
    plan: &DmlPlan,
    deltas: &[(u32, Scalar)],
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<u64> {
    let crate::plan::node::Node::Scan(scan) = &*plan.input else { return Err(Error::internal("not a point")) };
    let Some(primary) = point_key(scan, &[], frame, rt).await? else { return Ok(0) };
    let mut values = Vec::with_capacity(deltas.len());
    for (ordinal, delta) in deltas {
        values.push((*ordinal, eval_scalar(delta, &[], frame, rt).await?));
    }
    Ok(u64::from(escrow::add_all(&plan.table, &primary, &values, false, rt).await?))
}

async fn assign<T: Transaction>(
    table: &TablePlan,
    set: &[(u32, Scalar)],
    source: &[Datum],
    old: &[Datum],
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Row> {
    let mut new = old.to_vec();
    for (o, e) in set {
        new[*o as usize] = eval_scalar(e, source, frame, rt).await?;
        if new[*o as usize].is_null() && escrow::is_number(table, *o) {
            return Err(null_value(table, *o, &new, rt.ctx.eval));
        }
    }
    Ok(new)
}

/// Inserts a row without `ON CONFLICT`.
pub(crate) async fn insert_plain<T: Transaction>(
    plan: &DmlPlan,
    row: Row,
    random: &[u32],
    changes: &mut Changes,
    rt: &mut Runtime<'_, T>,
) -> Result<()> {
    prefetch::inserts(plan, std::slice::from_ref(&row), random, rt).await?;
    insert(plan, row, random, changes, rt).await
}

/// Inserts a row without `ON CONFLICT` and without `RETURNING`.
async fn insert<T: Transaction>(
    plan: &DmlPlan,
    row: Row,
    random: &[u32],
    changes: &mut Changes,
    rt: &mut Runtime<'_, T>,
) -> Result<()> {
    let frame: Frame = std::sync::Arc::from([]);
    match resolve(plan, row, None, random, changes, &frame, rt).await? {
        Some(change) => apply(plan, change, changes, rt).await,
        None => Ok(()),
    }
}

/// What becomes of a row to be inserted: it is, or what `ON CONFLICT` says. `None`: nothing.
async fn resolve<T: Transaction>(
    plan: &DmlPlan,
    mut row: Row,
    conflict: Option<&ConflictPlan>,
    random: &[u32],
    changes: &Changes,
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Option<Change>> {
    let table = &plan.table;
    complete(table, &mut row, rt.ctx.eval)?;
    escrow::require(table, &row).map_err(|ordinal| null_value(table, ordinal, &row, rt.ctx.eval))?;
    let arbiter_of = |index: usize| conflict.filter(|c| c.arbiters.is_empty() || c.arbiters.contains(&index));
    let unique = std::iter::once(0).chain(table.secondary(false)).filter(|index| table.table.indexes[*index].unique);
    let mut unique: Vec<usize> = unique.collect();
    if conflict.is_some() {
        // Who conflicts there and elsewhere is resolved as said.
        unique.sort_by_key(|index| arbiter_of(*index).is_none());
    }
    for index in unique {
        let arbiter = arbiter_of(index);
        let locking =
            if arbiter.is_some_and(|c| c.update.is_some()) { Locking::Exclusive(OnLocked::Wait) } else { Locking::None };
        let reach = reach(table, index, random);
        let Some(existing) = taken(table, index, &row, reach, locking, changes, rt).await? else { continue };
        let Some(c) = arbiter else { return Err(duplicate(table, index, &row, rt.ctx.eval)) };
        let Some(update) = &c.update else { return Ok(None) };
        return upsert(table, existing, row, update, changes, frame, rt).await;
    }
    Ok(Some(Change::Insert { new: row }))
}

async fn upsert<T: Transaction>(
    table: &TablePlan,
    (group, existing): (GroupId, Key),
    proposed: Row,
    update: &UpsertPlan,
    changes: &Changes,
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Option<Change>> {
    let place = (group, existing);
    let bytes = match changes.locked(&place) {
        Some(row) => row.clone(),
        None => rt.txn.get(group, &place.1, ColumnMask::ALL, Locking::Exclusive(OnLocked::Wait)).await?,
    };
    let Some(bytes) = bytes else { return Err(Error::internal("an index entry has no row")) };
    let mut old = table.decode_row(bytes)?;
    changes.refuse_second(&place)?;
    escrow::read(table, &update.numbers, &place.1, &mut old, rt).await?;
    let both: Row = old.iter().cloned().chain(proposed).collect();
    if !all_true(update.filter.as_slice(), &both, frame, rt).await? {
        return Ok(None);
    }
    let mut new = assign(table, &update.set, &both, &old, frame, rt).await?;
    let deltas = deltas_of(table, &update.deltas, &both, &mut new, frame, rt).await?;
    revise(table, &old, &mut new, rt).await?;
    Ok(Some(Change::Update { old, new, deltas, is_upsert: true }))
}
