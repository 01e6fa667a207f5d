//! How many rows the sessions of this node have changed, by table.

use crate::catalog::Catalog;
use meridian_base::DescriptorId;
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// As PostgreSQL's `autovacuum_analyze_scale_factor`, a tenth.
const CHANGES_PART: u64 = 10;
/// As PostgreSQL's `autovacuum_analyze_threshold`.
const CHANGES_MIN: u64 = 50;
/// Changes of more tables than that are not counted.
const TABLES_MAX: usize = 10_000;

/// The rows that sessions of this node have changed since their tables were read.
#[derive(Default)]
pub(crate) struct Changes(Mutex<BTreeMap<DescriptorId, Count>>);

#[derive(Default)]
struct Count {
    rows: u64,
    /// The value of `rows` at the last [`Changes::take_due`]; `None` before the first.
    before: Option<u64>,
}

impl Changes {
    pub(crate) fn add(&self, table: DescriptorId, rows: u64) {
        if rows > 0 {
            self.note(table, rows);
        }
    }
    fn note(&self, table: DescriptorId, rows: u64) {
        let mut changes = self.0.lock();
        if changes.len() < TABLES_MAX || changes.contains_key(&table) {
            let count = changes.entry(table).or_default();
            count.rows = count.rows.saturating_add(rows);
        }
    }
    /// A statement was planned that would have used the statistics of these tables. Those that have
    /// none are counted as soon as they rest.
    pub(crate) fn ask(&self, catalog: &Catalog, tables: &[DescriptorId]) {
        let is_missing = |id: &&DescriptorId| catalog.statistics_of(**id).is_none() && catalog.table_by_id(**id).is_some();
        tables.iter().filter(is_missing).for_each(|id| self.note(*id, 0));
    }
    /// A table that was due could not be read.
    pub(crate) fn put_back(&self, table: DescriptorId, rows: u64) {
        self.note(table, rows);
    }
    /// The tables of which enough was changed, and that they are going to be read: `changes_min`
    /// rows and a tenth, or fewer where the table had fewer. One that was never read is due, too,
    /// if no row of it was changed since the last call.
    pub(crate) fn take_due(&self, catalog: &Catalog, changes_min: u64) -> Vec<(DescriptorId, u64)> {
        let mut due = Vec::new();
        self.0.lock().retain(|table, count| {
            if catalog.table_by_id(*table).is_none() {
                return false;
            }
            let rows = catalog.statistics_of(*table).map(|s| s.rows);
            let rests = rows.is_none() && count.before == Some(count.rows);
            count.before = Some(count.rows);
            let rows = rows.unwrap_or(0);
            let is_due = rests || count.rows >= rows.clamp(CHANGES_MIN.min(changes_min), changes_min) + rows / CHANGES_PART;
            if is_due {
                due.push((*table, count.rows));
            }
            !is_due
        });
        due
    }
}
