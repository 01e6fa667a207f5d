//! `INSERT`, `UPDATE`, `DELETE`: from new values to writes.
//!
//! What is written says exactly what changed: an insert or a delete changes existence, an update
//! the columns whose values differ, and an update reads the whole row (it writes the whole row).
//! Secondary entries whose key stays are rewritten only if what they store changed.
//!
//! A row and its entries go to the group of its region. Unique values are unique over all groups of
//! a table, so where a value does not tell the region, every group is asked for it.
//!
//! Order within a statement: rows are computed and written one after another, each checked for `NOT
//! NULL`, `CHECK` and uniqueness against the transaction's own view; foreign keys are checked when
//! all rows are written, so that rows of one statement may refer to each other.

use super::Runtime;
use super::cascade;
use super::escrow;
use super::op::{Frame, Row, all_true, collect, eval_all, eval_scalar};
use super::{infer, prefetch};
use crate::catalog::{ColumnState, Table};
use crate::env::{Locking, OnLocked, Transaction};
use crate::plan::TablePlan;
use crate::plan::eval::{Env, Memo, eval, finish};
use crate::plan::physical::{ConflictPlan, DmlPlan, DmlPlanKind, Scalar, UpsertPlan};
use crate::types::{Datum, EvalContext};
use bytes::Bytes;
use meridian_base::{ColumnMask, Error, GroupId, Key, Result, Write};
use std::collections::{BTreeMap, BTreeSet};

/// What a statement did to its table, for the foreign keys: rows before and after.
#[derive(Default)]
pub(crate) struct Changes {
    pub(crate) inserted: Vec<Row>,
    pub(crate) updated: Vec<(Row, Row)>,
    pub(crate) deleted: Vec<Row>,
    /// Where the rows are that `INSERT … ON CONFLICT DO UPDATE` has put or changed: none is changed
    /// twice.
    touched: BTreeSet<(GroupId, Key)>,
    /// The rows that it has locked beforehand, and their absence, by primary key.
    locked: BTreeMap<(GroupId, Key), Option<Bytes>>,
}

impl Changes {
    /// A row as it was when it was locked; `None` if it was not, or has changed since.
    fn locked(&self, place: &(GroupId, Key)) -> Option<&Option<Bytes>> {
        if self.touched.contains(place) { None } else { self.locked.get(place) }
    }
}

/// Runs the statement; returns the rows of `RETURNING`.
pub(crate) async fn rows<T: Transaction>(plan: &DmlPlan, frame: &Frame, rt: &mut Runtime<'_, T>) -> Result<Vec<Row>> {
    if let DmlPlanKind::Update { deltas, is_blind: true, .. } = &plan.kind {
        rt.shared.changed = add_blindly(plan, deltas, frame, rt).await?;
        return Ok(Vec::new());
    }
    let input = collect(&plan.input, frame, rt).await?;
    let mut changes = Changes::default();
    let mut out = Vec::new();
    let mut changed = 0;
    let mut seen = BTreeSet::new();
    if let DmlPlanKind::Insert { targets, conflict: None, random, infers: false } = &plan.kind
        && plan.returning.is_empty()
    {
        let new: Vec<Row> = input.into_iter().map(|source| new_row(&plan.table, targets, source)).collect();
        if plan.table.table.groups().any(|group| rt.txn.is_distant(group)) {
            prefetch::inserts(plan, &new, random, rt).await?;
        }
        let count = new.len() as u64;
        insert_all(plan, new, random, &mut changes, rt).await?;
        cascade::check(&plan.table, &plan.keys, changes, rt).await?;
        rt.shared.changed = count;
        return Ok(out);
    }
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
    // Subqueries see the tables as they were before the statement: all of them are asked before the
    // first write.
    let looks_first = plan.asks_tables();
    let mut resolved = Vec::new();
    let width = plan.table.types.len();
    for mut source in input {
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
            changes.inserted.push(new);
        }
        Change::Update { old, new, deltas, is_upsert } => {
            if is_upsert {
                changes.refuse_second(&(table.group_of(&old)?, table.primary_key(&old)?))?;
            }
            let adds_first = !deltas.is_empty() && escrow::adds_first(table, &old, &new)?;
            if adds_first {
                escrow::add_all(table, &table.primary_key(&new)?, &deltas, rt).await?;
            }
            write_changes(table, &old, &before_deltas(&old, &new, &deltas), rt).await?;
            if !adds_first {
                escrow::add_all(table, &table.primary_key(&new)?, &deltas, rt).await?;
            }
            if is_upsert {
                changes.touched.insert((table.group_of(&new)?, table.primary_key(&new)?));
            }
            changes.updated.push((old, new));
        }
        Change::Delete { old } => {
            delete(table, &old, rt)?;
            changes.deleted.push(old);
        }
    }
    Ok(())
}

impl Changes {
    /// 21000 if the statement has inserted or updated this row already.
    fn refuse_second(&self, row: &(GroupId, Key)) -> Result<()> {
        match self.touched.contains(row) {
            true => Err(Error::sql("21000", "ON CONFLICT DO UPDATE command cannot affect row a second time")
                .hint("Ensure that no rows proposed for insertion within the same command have duplicate constrained values.")),
            false => Ok(()),
        }
    }
}

/// Inserts rows of values for the parameters of a plan of [`crate::plan::prepare_insert`].
pub(crate) async fn insert_params<T: Transaction>(plan: &DmlPlan, rows: Vec<Row>, rt: &mut Runtime<'_, T>) -> Result<u64> {
    use crate::plan::physical::Node;
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
        if insert_together(plan, &mut rows, random, rt).await? {
            changes.inserted.append(&mut rows);
        }
        for row in rows {
            rt.pause().await?;
            insert(plan, row, random, changes, rt).await?;
        }
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

/// Where the row that has this row's values in a unique index would be in the row's own group.
/// `None` if it meets no other row there.
fn place(table: &TablePlan, index: usize, row: &[Datum], ctx: &EvalContext) -> Result<Option<(GroupId, Key)>> {
    let key = match index {
        0 => table.primary_key(row)?,
        // NULLs are distinct: such entries end with the primary key and never meet another.
        _ if table.table.indexes[index].columns.iter().any(|c| row[c.ordinal as usize].is_null()) => return Ok(None),
        _ => match table.index_entry(index, row, ctx)? {
            Some(entry) => entry.key,
            None => return Ok(None),
        },
    };
    Ok(Some((table.group_of(row)?, key)))
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
    let crate::plan::physical::Node::Scan(scan) = &*plan.input else { return Err(Error::internal("not a point")) };
    let Some(primary) = super::scan::point_key(scan, &[], frame, rt).await? else { return Ok(0) };
    let mut values = Vec::with_capacity(deltas.len());
    for (ordinal, delta) in deltas {
        values.push((*ordinal, eval_scalar(delta, &[], frame, rt).await?));
    }
    Ok(u64::from(escrow::add_all(&plan.table, &primary, &values, rt).await?))
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

fn null_value(table: &TablePlan, ordinal: u32, row: &[Datum], ctx: &EvalContext) -> Error {
    failing_row(table.null_in(ordinal), table, row, ctx)
}

/// Says which row it is, to those who may read it.
fn failing_row(e: Error, table: &TablePlan, row: &[Datum], ctx: &EvalContext) -> Error {
    match table.may_be_shown(ctx) {
        true => e.detail(format!("Failing row contains {}.", table.describe_row(row, ctx))),
        false => e,
    }
}

/// Generated columns, `NOT NULL`, `CHECK`.
pub(crate) fn complete(table: &TablePlan, row: &mut Row, ctx: &EvalContext) -> Result<()> {
    let memo = Memo::default();
    for (o, e) in &table.generated {
        row[*o as usize] = finish(eval(e, &Env { row, args: &[], params: &[], ctx, memo: &memo }))?;
    }
    for (o, c) in table.table.written_columns() {
        // A number that nobody has read is none; who inserts or sets one looks at it.
        if c.not_null && row[o as usize].is_null() && !escrow::is_number(table, o) {
            return Err(null_value(table, o, row, ctx));
        }
    }
    for (name, e) in &table.checks {
        let holds = finish(eval(e, &Env { row, args: &[], params: &[], ctx, memo: &memo }))?;
        if matches!(holds, Datum::Bool(false)) {
            let message = format!("new row for relation \"{}\" violates check constraint \"{name}\"", table.table.name);
            let e = Error::sql("23514", message).table(&table.table.name).constraint(name);
            return Err(failing_row(e, table, row, ctx));
        }
    }
    Ok(())
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

/// Where another row with the same values in a unique index could be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// In the row's own group only: its values tell the region, or nobody else can have them.
    Own,
    /// In every group of the table.
    All,
}

/// See [`Reach`]; `random`: columns that this row fills with fresh random UUIDs.
pub(crate) fn reach(table: &TablePlan, index: usize, random: &[u32]) -> Reach {
    let is_random = table.table.indexes[index].columns.iter().any(|c| random.contains(&c.ordinal));
    if is_random || !table.is_scattered(index) { Reach::Own } else { Reach::All }
}

/// The group and the primary key of the row that has this row's values in a unique index, if there
/// is one. What other groups are asked for is asked for together, and their absence is in the read
/// set, which the commit certifies with the rest.
async fn taken<T: Transaction>(
    table: &TablePlan,
    index: usize,
    row: &[Datum],
    reach: Reach,
    locking: Locking,
    changes: &Changes,
    rt: &mut Runtime<'_, T>,
) -> Result<Option<(GroupId, Key)>> {
    let Some(place) = place(table, index, row, rt.ctx.eval)? else { return Ok(None) };
    if index == 0
        && let Some(row) = changes.locked(&place)
    {
        return Ok(row.is_some().then_some(place));
    }
    let (own, key) = place;
    let found = match reach {
        Reach::Own => rt.txn.get(own, &key, ColumnMask::EXISTENCE, locking).await?.map(|value| (own, value)),
        Reach::All => {
            rt.ctx.stay_home(table.table.groups(), locking)?;
            let groups: Vec<GroupId> = table.table.groups().collect();
            let reads = groups.iter().map(|group| (*group, vec![key.clone()])).collect();
            let values = rt.txn.get_each(reads, ColumnMask::EXISTENCE, locking).await?;
            groups.into_iter().zip(values).find_map(|(group, mut values)| values.pop().flatten().map(|value| (group, value)))
        }
    };
    Ok(match found {
        None => None,
        Some((group, _)) if index == 0 => Some((group, key)),
        Some((group, value)) => Some((group, super::split_entry(&value)?.0)),
    })
}

fn duplicate(table: &TablePlan, index: usize, row: &[Datum], ctx: &EvalContext) -> Error {
    let i = &table.table.indexes[index];
    let columns: Vec<u32> = i.columns.iter().map(|c| c.ordinal).collect();
    let values: Row = columns.iter().map(|o| row[*o as usize].clone()).collect();
    let e = Error::sql("23505", format!("duplicate key value violates unique constraint \"{}\"", i.name))
        .table(&table.table.name)
        .constraint(&i.name);
    match table.may_be_shown(ctx) {
        true => e.detail(format!("Key {} already exists.", table.describe_key(&columns, &values, ctx))),
        false => e,
    }
}

/// Writes a row that was found absent, and its entries.
fn put_new<T: Transaction>(table: &TablePlan, row: &[Datum], rt: &mut Runtime<'_, T>) -> Result<()> {
    let group = table.open_group_of(row)?;
    put(group, table.primary_key(row)?, Some(table.row_bytes(row)), ColumnMask::EXISTENCE, rt)?;
    escrow::begin(table, row, rt)?;
    escrow::split::shadow(table, None, Some(row), rt)?;
    for index in table.secondary(false) {
        if let Some(e) = table.index_entry(index, row, rt.ctx.eval)? {
            put(group, e.key, Some(e.value), ColumnMask::EXISTENCE, rt)?;
        }
    }
    mirror(table, None, Some(row), rt)
}

fn put<T: Transaction>(
    group: GroupId,
    key: Key,
    value: Option<Bytes>,
    columns: ColumnMask,
    rt: &mut Runtime<'_, T>,
) -> Result<()> {
    rt.ctx.write_at_home(group)?;
    rt.txn.write(group, Write { key, value, columns })
}

/// Changes a row that was read whole. With another region it moves: out of one group, into another.
pub(crate) async fn update<T: Transaction>(
    table: &TablePlan,
    old: &[Datum],
    new: &mut Row,
    rt: &mut Runtime<'_, T>,
) -> Result<()> {
    revise(table, old, new, rt).await?;
    write_changes(table, old, new, rt).await
}

/// The columns of a changed row that follow from others, and the constraints on it alone.
async fn revise<T: Transaction>(table: &TablePlan, old: &[Datum], new: &mut Row, rt: &mut Runtime<'_, T>) -> Result<()> {
    for f in &table.filling {
        new[f.ordinal as usize] = eval_scalar(&f.updated, old, &Frame::from([]), rt).await?;
    }
    complete(table, new, rt.ctx.eval)
}

/// Gives a row that was read whole the values of the columns that are being added to its table. It
/// may break constraints that are not validated: what it had before is not looked at.
pub(crate) async fn fill<T: Transaction>(table: &TablePlan, old: &[Datum], rt: &mut Runtime<'_, T>) -> Result<()> {
    let mut new = old.to_vec();
    for f in &table.filling {
        new[f.ordinal as usize] = eval_scalar(&f.stored, old, &Frame::from([]), rt).await?;
    }
    let column = |o: u32| &table.table.columns[o as usize];
    let memo = Memo::default();
    for (o, e) in table.generated.iter().filter(|(o, _)| column(*o).state == ColumnState::Filling) {
        new[*o as usize] = finish(eval(e, &Env { row: &new, args: &[], params: &[], ctx: rt.ctx.eval, memo: &memo }))?;
    }
    for (o, c) in table.table.written_columns().filter(|(_, c)| c.state == ColumnState::Filling) {
        if c.not_null && new[o as usize].is_null() {
            return Err(contains_nulls(&table.table, o));
        }
    }
    write_changes(table, old, &new, rt).await
}

/// 23502 for a column of rows that are there already.
pub(crate) fn contains_nulls(table: &Table, ordinal: u32) -> Error {
    let (table, column) = (&table.name, &table.columns[ordinal as usize].name);
    let message = format!("column \"{column}\" of relation \"{table}\" contains null values");
    Error::sql("23502", message).table(table.clone()).column(column.clone())
}

/// Writes what differs between two versions of a row.
async fn write_changes<T: Transaction>(table: &TablePlan, old: &[Datum], new: &[Datum], rt: &mut Runtime<'_, T>) -> Result<()> {
    let mut mask = ColumnMask::NONE;
    let differs = |o: usize| !old[o].is_identical(&new[o]);
    for o in 0..new.len() {
        if differs(o) {
            mask |= ColumnMask::column(o as u32);
        }
    }
    if mask.is_empty() {
        return Ok(());
    }
    let from = table.group_of(old)?;
    let to = if table.group_of(new)? == from { from } else { table.open_group_of(new)? };
    let (old_key, new_key) = (table.primary_key(old)?, table.primary_key(new)?);
    escrow::split::shadow(table, Some(old), Some(new), rt)?;
    let mut stored = std::borrow::Cow::Borrowed(new);
    if table.table.escrow.iter().any(|column| column.in_rows) {
        escrow::complete_stored(table, old, stored.to_mut(), rt).await?;
    }
    if old_key == new_key {
        escrow::change(table, old, new, rt).await?;
    } else if !table.table.escrow.is_empty() {
        let mut complete = new.to_vec();
        escrow::complete(table, old, &mut complete, rt).await?;
        escrow::end(table, old, rt)?;
        escrow::begin(table, &complete, rt)?;
    }
    if old_key == new_key && from == to {
        if is_stored(table, mask, old, new) {
            put(to, old_key, Some(table.row_bytes(&stored)), mask, rt)?;
        }
    } else {
        let is_same = old_key == new_key;
        put(from, old_key, None, ColumnMask::EXISTENCE, rt)?;
        // A row that only moves takes its own values along.
        if !is_same && taken(table, 0, new, reach(table, 0, &[]), Locking::None, &Changes::default(), rt).await?.is_some() {
            return Err(duplicate(table, 0, new, rt.ctx.eval));
        }
        put(to, new_key, Some(table.row_bytes(&stored)), ColumnMask::EXISTENCE, rt)?;
    }
    for index in table.secondary(true) {
        update_entry(table, index, (from, old), (to, new), mask, rt).await?;
    }
    mirror(table, Some(old), Some(new), rt)
}

/// Whether the stored row differs: the numbers of escrow columns are not in it.
fn is_stored(table: &TablePlan, mask: ColumnMask, old: &[Datum], new: &[Datum]) -> bool {
    let differs = |o: usize| !old[o].is_identical(&new[o]) && !escrow::is_only_in_shares(table, o as u32);
    table.table.escrow.is_empty() && !mask.is_empty() || (0..new.len()).any(differs)
}

/// Changes a row's entry in a secondary index.
async fn update_entry<T: Transaction>(
    table: &TablePlan,
    index: usize,
    (from, old): (GroupId, &[Datum]),
    (to, new): (GroupId, &[Datum]),
    mask: ColumnMask,
    rt: &mut Runtime<'_, T>,
) -> Result<()> {
    let before = table.index_entry(index, old, rt.ctx.eval)?;
    let inserts = table.table.indexes[index].state != crate::catalog::IndexState::DeleteOnly;
    let after = if inserts { table.index_entry(index, new, rt.ctx.eval)? } else { None };
    let moves = from != to;
    if before == after && !moves {
        return Ok(());
    }
    let same_key = matches!((&before, &after), (Some(b), Some(a)) if a.key == b.key);
    if let Some(b) = before
        && (moves || !same_key)
    {
        put(from, b.key, None, ColumnMask::EXISTENCE, rt)?;
    }
    let Some(a) = after else { return Ok(()) };
    if same_key {
        return put(to, a.key, Some(a.value), if moves { ColumnMask::EXISTENCE } else { mask }, rt);
    }
    if table.table.indexes[index].unique
        && taken(table, index, new, reach(table, index, &[]), Locking::None, &Changes::default(), rt).await?.is_some()
    {
        return Err(duplicate(table, index, new, rt.ctx.eval));
    }
    put(to, a.key, Some(a.value), ColumnMask::EXISTENCE, rt)
}

/// Deletes a row that was read whole.
pub(crate) fn delete<T: Transaction>(table: &TablePlan, old: &[Datum], rt: &mut Runtime<'_, T>) -> Result<()> {
    let group = table.group_of(old)?;
    put(group, table.primary_key(old)?, None, ColumnMask::EXISTENCE, rt)?;
    escrow::end(table, old, rt)?;
    escrow::split::shadow(table, Some(old), None, rt)?;
    for index in table.secondary(true) {
        if let Some(e) = table.index_entry(index, old, rt.ctx.eval)? {
            put(group, e.key, None, ColumnMask::EXISTENCE, rt)?;
        }
    }
    mirror(table, Some(old), None, rt)
}

/// Writes a change of a row in the table's other homes too, while its locality changes. Nothing is
/// read there: what the change rests on was read where the table is read.
fn mirror<T: Transaction>(
    table: &TablePlan,
    old: Option<&[Datum]>,
    new: Option<&[Datum]>,
    rt: &mut Runtime<'_, T>,
) -> Result<()> {
    let Some(m) = &table.mirror else { return Ok(()) };
    let after = match new {
        Some(row) if m.inserts => m.plan.all_entries(row, rt.ctx.eval)?,
        _ => Default::default(),
    };
    let before = old.map(|row| m.plan.all_entries(row, rt.ctx.eval)).transpose()?.unwrap_or_default();
    for ((group, key), _) in before.into_iter().filter(|(place, _)| !after.contains_key(place)) {
        rt.txn.write(group, Write { key, value: None, columns: ColumnMask::EXISTENCE })?;
    }
    for ((group, key), value) in after {
        rt.txn.write(group, Write { key, value: Some(value), columns: ColumnMask::EXISTENCE })?;
    }
    Ok(())
}
