//! How many rows the sessions of this node have changed, by table.

use crate::catalog::Catalog;
use meridian_base::DescriptorId;
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// As PostgreSQL's `autovacuum_analyze_scale_factor`, a tenth.
const CHANGES_PART: u64 = 10;
/// Changes of more tables than that are not counted.
const TABLES_MAX: usize = 10_000;

/// The rows that sessions of this node have changed since their tables were read.
#[derive(Default)]
pub(crate) struct Changes(Mutex<BTreeMap<DescriptorId, u64>>);

impl Changes {
    pub(crate) fn add(&self, table: DescriptorId, rows: u64) {
        if rows == 0 {
            return;
        }
        let mut changes = self.0.lock();
        if changes.len() < TABLES_MAX || changes.contains_key(&table) {
            let count = changes.entry(table).or_default();
            *count = count.saturating_add(rows);
        }
    }
    /// The tables of which enough was changed, and that they are going to be read.
    pub(crate) fn take_due(&self, catalog: &Catalog, changes_min: u64) -> Vec<(DescriptorId, u64)> {
        let mut changes = self.0.lock();
        changes.retain(|table, _| catalog.table_by_id(*table).is_some());
        let is_due = |(table, count): (&DescriptorId, &u64)| {
            let rows = catalog.statistics_of(*table).map_or(0, |s| s.rows);
            (*count >= changes_min + rows / CHANGES_PART).then_some((*table, *count))
        };
        let due: Vec<_> = changes.iter().filter_map(is_due).collect();
        changes.retain(|table, _| !due.iter().any(|(d, _)| d == table));
        due
    }
}
