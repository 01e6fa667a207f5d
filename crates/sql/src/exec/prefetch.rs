//! What inserts will look up, asked for in one round trip.
//!
//! Each new row is checked for uniqueness and for its parents, one lookup after another. That is
//! nothing at a primary on this node, and a round trip each at a distant one; so the transaction is
//! told beforehand which keys are coming.

use super::Runtime;
use super::eval::Row;
use super::parents::{parent_groups, parent_key};
use super::write::{Reach, complete, reach};
use crate::env::{Locking, OnLocked, Transaction};
use crate::plan::TablePlan;
use crate::plan::node::{DmlPlan, DmlPlanKind};
use bytes::Bytes;
use meridian_base::{ColumnMask, GroupId, Key, Result};
use std::collections::{BTreeMap, BTreeSet};

/// Keys in one request.
const KEYS_MAX: usize = 2_048;

/// Announces the lookups of these rows' inserts, if that spares round trips. Rows whose keys cannot
/// be computed yet are left to the insert itself, with its errors.
pub(crate) async fn inserts<T: Transaction>(plan: &DmlPlan, rows: &[Row], random: &[u32], rt: &mut Runtime<'_, T>) -> Result<()> {
    let parents = plan.keys.parents.get(&plan.table.table.id).map_or(&[][..], Vec::as_slice);
    let mut tables = parents.iter().map(|(_, parent, _)| parent).chain([&plan.table]);
    if !tables.any(|t| t.table.groups().any(|group| rt.txn.is_distant(group))) {
        return Ok(());
    }
    let mut keys = Keys::new();
    for row in rows {
        // A row whose region is not computed yet belongs nowhere yet.
        let mut row = row.clone();
        if complete(&plan.table, &mut row, rt.ctx.eval).is_err() {
            continue;
        }
        own_keys(&plan.table, &row, random, rt, &mut keys);
        for (fk, parent, index) in parents {
            if fk.columns.iter().all(|o| !row[*o as usize].is_null())
                && let Ok(key) = parent_key(parent, *index, fk, &row)
            {
                let groups = parent_groups(parent, fk, &row, rt.ctx.eval);
                if let Some(near) = groups.near {
                    keys.entry(near).or_default().insert(key);
                }
            }
        }
    }
    let distant = keys.into_iter().filter(|(group, _)| rt.txn.is_distant(*group));
    let reads: Vec<_> = distant.map(|(group, keys)| (group, keys.into_iter().collect())).collect();
    if reads.is_empty() {
        return Ok(());
    }
    rt.txn.prefetch_each(reads, ColumnMask::EXISTENCE).await
}

/// The primary keys of rows that `INSERT … ON CONFLICT DO UPDATE` will lock one by one, if each of
/// them is in one place only and that is not on this node.
pub(super) fn rows_to_lock<T: Transaction>(plan: &DmlPlan, rows: &[Row], rt: &Runtime<'_, T>) -> Option<Keys> {
    let DmlPlanKind::Insert { conflict: Some(conflict), random, infers: false, .. } = &plan.kind else { return None };
    let is_by_key = conflict.arbiters.is_empty() || conflict.arbiters.contains(&0);
    if conflict.update.is_none() || !is_by_key || reach(&plan.table, 0, random) != Reach::Own {
        return None;
    }
    let mut keys = Keys::new();
    for row in rows {
        let mut row = row.clone();
        if complete(&plan.table, &mut row, rt.ctx.eval).is_ok()
            && let (Ok(group), Ok(key)) = (plan.table.group_of(&row), plan.table.primary_key(&row))
        {
            keys.entry(group).or_default().insert(key);
        }
    }
    keys.retain(|group, _| rt.txn.locks_elsewhere(*group));
    Some(keys)
}

/// Locks rows and reads them, in the order of their keys, so that two statements do not wait for
/// each other.
pub(super) async fn lock<T: Transaction>(keys: Keys, rt: &mut Runtime<'_, T>) -> Result<BTreeMap<(GroupId, Key), Option<Bytes>>> {
    let mut locked = BTreeMap::new();
    for (group, keys) in keys {
        rt.ctx.write_at_home(group)?;
        let keys: Vec<Key> = keys.into_iter().collect();
        for some in keys.chunks(KEYS_MAX) {
            let rows = rt.txn.get_many(group, some, ColumnMask::ALL, Locking::Exclusive(OnLocked::Wait)).await?;
            locked.extend(some.iter().map(|key| (group, key.clone())).zip(rows));
        }
    }
    Ok(locked)
}

pub(super) type Keys = BTreeMap<GroupId, BTreeSet<Key>>;

fn own_keys<T: Transaction>(table: &TablePlan, row: &Row, random: &[u32], rt: &Runtime<'_, T>, keys: &mut Keys) {
    let Ok(own) = table.group_of(row) else { return };
    let mut add = |index: usize, key: Key| match reach(table, index, random) {
        Reach::Own => {
            keys.entry(own).or_default().insert(key);
        }
        Reach::All => {
            for group in table.table.groups() {
                keys.entry(group).or_default().insert(key.clone());
            }
        }
    };
    if let Ok(key) = table.primary_key(row) {
        add(0, key);
    }
    for index in table.secondary(false) {
        if table.table.indexes[index].unique
            && let Ok(Some(entry)) = table.index_entry(index, row, rt.ctx.eval)
        {
            add(index, entry.key);
        }
    }
}
