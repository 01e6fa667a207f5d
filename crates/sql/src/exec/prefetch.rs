//! What inserts will look up, asked for in one round trip.
//!
//! Each new row is checked for uniqueness and for its parents, one lookup after another. That is nothing at a primary on this
//! node, and a round trip each at a distant one; so the transaction is told beforehand which keys are coming.

use super::Runtime;
use super::cascade::parent_key;
use super::op::Row;
use crate::env::Transaction;
use crate::plan::TablePlan;
use crate::plan::physical::DmlPlan;
use meridian_base::{ColumnMask, Key, Result};
use std::collections::BTreeMap;

/// Keys in one request.
const KEYS_MAX: usize = 2_048;

/// Announces the lookups of these rows' inserts, if that spares round trips. Rows whose keys cannot be computed yet are left to
/// the insert itself, with its errors.
pub(crate) async fn inserts<T: Transaction>(plan: &DmlPlan, rows: &[Row], rt: &mut Runtime<'_, T>) -> Result<()> {
    if !rt.txn.is_distant(plan.table.table.group) {
        return Ok(());
    }
    let mut keys = BTreeMap::new();
    for row in rows {
        own_keys(&plan.table, row, rt, &mut keys);
        for (fk, parent, index) in plan.keys.parents.get(&plan.table.table.id).into_iter().flatten() {
            if parent.table.group == plan.table.table.group
                && fk.columns.iter().all(|o| !row[*o as usize].is_null())
                && let Ok(key) = parent_key(parent, *index, fk, row)
            {
                keys.insert(key, ());
            }
        }
    }
    let keys: Vec<Key> = keys.into_keys().collect();
    for some in keys.chunks(KEYS_MAX) {
        rt.txn.prefetch(plan.table.table.group, some, ColumnMask::EXISTENCE).await?;
    }
    Ok(())
}

fn own_keys<T: Transaction>(table: &TablePlan, row: &Row, rt: &Runtime<'_, T>, keys: &mut BTreeMap<Key, ()>) {
    keys.extend(table.primary_key(row).ok().map(|key| (key, ())));
    for index in table.secondary(false) {
        if table.table.indexes[index].unique
            && let Ok(Some(entry)) = table.index_entry(index, row, rt.ctx.eval)
        {
            keys.insert(entry.key, ());
        }
    }
}
