//! The entries of a new index as every replica computes them from its own rows.
//!
//! An entry must be the same wherever it is computed. So it comes from a stored row and from the
//! descriptors alone: a partial index, whose predicate a session's settings may change, is not
//! built so ([`is_built_by_replicas`]).

use super::Entry;
use crate::catalog::names::Names;
use crate::catalog::{Catalog, ColumnState, Index, Table};
use crate::plan::{PlanContext, TablePlan};
use crate::types::EvalContext;
use bytes::Bytes;
use meridian_base::{DescriptorId, Result};
use std::sync::Arc;

/// Computes entries of one index from rows of its table.
pub struct IndexEntries {
    plan: Arc<TablePlan>,
    /// The index, by position.
    at: usize,
    eval: EvalContext,
}

impl IndexEntries {
    /// `None` if the catalog has no such index.
    pub fn new(catalog: &Arc<Catalog>, table: DescriptorId, index: u32) -> Result<Option<IndexEntries>> {
        let Some(table) = catalog.table_by_id(table) else { return Ok(None) };
        let Some(at) = table.indexes.iter().position(|i| i.id == index) else { return Ok(None) };
        let database = catalog.schema_by_id(table.schema).and_then(|s| catalog.database_by_id(s.database));
        let names = Names::new(database.map_or("", |d| &d.name), "root");
        let eval = EvalContext { catalog: catalog.clone(), ..EvalContext::default() };
        let plan = TablePlan::new(&table, PlanContext { catalog, names: &names, eval: &eval })?;
        Ok(Some(IndexEntries { plan, at, eval }))
    }

    /// Whether two rows must not have the same entry.
    pub fn is_unique(&self) -> bool {
        self.plan.table().indexes[self.at].unique
    }

    /// The entry of a row, given as the primary index stores it.
    pub fn entry(&self, row: &Bytes) -> Result<Option<Entry>> {
        self.plan.entry_of_stored(self.at, row, &self.eval)
    }
}

/// Whether the replicas of a table's group may fill an index of it by themselves: the rows are all
/// in that group, nothing else is being done to all of them, and entries depend on them alone.
pub(crate) fn is_built_by_replicas(table: &Table, index: &Index) -> bool {
    let is_at_rest = table.moving.is_none() && table.columns.iter().all(|c| c.state != ColumnState::Filling);
    let has_shares = !table.escrow.is_empty() || !table.shadows.is_empty();
    table.groups().count() == 1 && is_at_rest && !has_shares && index.predicate.is_none()
}
