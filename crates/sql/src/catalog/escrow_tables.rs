//! Tables with escrow columns.

use super::escrow::EscrowColumn;
use super::expression::{Facts, parse_expression, resolve_columns};
use super::relation::TableRef;
use super::{Catalog, Database, Table};
use meridian_base::{DescriptorId, GroupId, Result};

impl Catalog {
    /// The escrow column whose index has this number.
    pub fn escrow_of(&self, index: u32) -> Option<(DescriptorId, EscrowColumn)> {
        self.tables_with_escrow().find_map(|table| Some((table.id, table.escrow.iter().find(|c| c.index == index)?.clone())))
    }

    /// All tables with escrow columns.
    pub fn tables_with_escrow(&self) -> impl Iterator<Item = TableRef> {
        self.descriptors.values().filter_map(TableRef::new).filter(|table| !table.escrow.is_empty())
    }
}

/// The sites among these whose region is being dropped. What follows the primary region stays with
/// it.
pub fn closing(catalog: &Catalog, database: &Database, sites: &[GroupId]) -> Vec<GroupId> {
    let closes = |site: &&GroupId| {
        let group = catalog.group_by_id(**site).filter(|group| !group.kind.follows_primary());
        group.is_some_and(|group| database.dropping.contains(&group.home))
    };
    sites.iter().filter(closes).copied().collect()
}

impl Table {
    /// The columns that have shares, whether these are read or not.
    pub fn with_shares(&self) -> impl Iterator<Item = &EscrowColumn> {
        self.escrow.iter().chain(self.shadows.iter().map(|shadow| &shadow.column))
    }
    /// A column that becomes an escrow column, or ceases to be one.
    pub fn splitting(&self) -> Option<u32> {
        let mut in_rows = self.escrow.iter().filter(|column| column.in_rows).map(|column| column.ordinal);
        in_rows.next().or_else(|| self.shadows.first().map(|shadow| shadow.column.ordinal))
    }
    pub fn escrow_column(&self, ordinal: u32) -> Option<&EscrowColumn> {
        self.escrow.iter().find(|e| e.ordinal == ordinal)
    }
}

/// Whether an expression over a table's rows uses a column.
pub fn uses_column(table: &Table, expression: &str, ordinal: u32) -> Result<bool> {
    let facts = Facts::of(&parse_expression(expression)?);
    Ok(resolve_columns(&facts, &table.columns, &table.name)?.contains(&ordinal))
}
