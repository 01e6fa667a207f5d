//! Loads of any size into a table without rows.
//!
//! What a transaction writes is in memory until it commits, so there is a bound on it
//! ([`limits::LARGE_TXN_BYTES_MAX`]). A load that is the first statement of its transaction may go
//! over it, if the table has no rows. `COPY` goes on from where it is; an `INSERT` begins again
//! when it has met the bound.
//!
//! 1. The table gets new indexes, as by `TRUNCATE`, which nobody else knows before the commit. What
//!    was written so far goes there, and what follows too, in transactions that commit ahead
//!    ([`super::ddl`]).
//! 2. At the end the transaction reads that the table's indexes are still empty. That is certified
//!    with the step that puts the new ones in their place, at one timestamp. Who has inserted a row
//!    meanwhile makes the load fail (40001).
//!
//! A load that fails leaves rows under ids that are never used again, which every node removes.
//!
//! [`limits::LARGE_TXN_BYTES_MAX`]: meridian_base::limits::LARGE_TXN_BYTES_MAX

use super::ddl::DdlBlock;
use super::run::{Fetching, interruptible};
use super::{Formats, Output, Session};
use crate::catalog::relation::TableRef;
use crate::catalog::{IndexState, Table};
use crate::env::{Environment, Locking, Scan, Transaction};
use crate::exec::Affected;
use crate::parse::{Statement, parse_one_statement};
use crate::plan::Prepared;
use crate::types::Datum;
use meridian_base::{ColumnMask, Error, GroupId, Key, KeyRange, Result, Write};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A table that is being loaded, as everybody else knows it.
pub(super) struct Loaded(TableRef);

/// A statement that may have to be planned again.
pub(super) enum Again<'a> {
    /// Its text has all values; its plan may have them as parameters.
    Literally(&'a str),
    /// It is run with parameters.
    WithParams(&'a Arc<Statement>),
}

/// Whether rows of the table rest on no other table's, and all of it is in its rows.
fn stands_alone(table: &Table) -> bool {
    table.foreign_keys.iter().all(|key| key.parent == table.id)
        && table.escrow.is_empty()
        && table.shadows.is_empty()
        && table.moving.is_none()
        && table.indexes.iter().all(|index| index.state == IndexState::Public)
        && table.indexes.iter().skip(1).all(|index| !index.holds_rows)
}

/// Whether there is a row. The whole table is read then, or what comes before the row.
async fn has_rows<T: Transaction>(table: &Table, txn: &mut T) -> Result<bool> {
    let range = KeyRange::prefix(&table.indexes[0].id.to_be_bytes());
    for group in table.groups() {
        let scan =
            Scan { range: range.clone(), columns: ColumnMask::EXISTENCE, reverse: false, limit: Some(1), locking: Locking::None };
        let mut left = Some(scan);
        while let Some(scan) = left.take() {
            let page = txn.scan(group, scan.clone()).await?;
            if !page.rows.is_empty() {
                return Ok(true);
            }
            left = page.rest.map(|range| Scan { range, ..scan });
        }
    }
    Ok(false)
}

/// Writes of rows and entries, under the ids that the indexes have now.
fn moved(writes: Vec<(GroupId, Write)>, from: &Table, to: &Table) -> impl Iterator<Item = (GroupId, Write)> + use<> {
    let ids = from.indexes.iter().zip(&to.indexes).map(|(from, to)| (from.id.to_be_bytes(), to.id.to_be_bytes()));
    let ids: BTreeMap<[u8; 4], [u8; 4]> = ids.collect();
    writes.into_iter().map(move |(group, write)| {
        let (index, rest) = write.key.as_bytes().split_first_chunk().expect("a key begins with the id of its index");
        let key = Key::new(&[&ids[index][..], rest].concat());
        (group, Write { key, ..write })
    })
}

impl<E: Environment> Session<E> {
    /// Whether the open transaction has done nothing yet, so that a load may be all that it does
    /// until the load is over.
    pub(super) fn may_load(&self) -> bool {
        self.block.as_ref().is_none_or(|b| b.statements == 0 && b.ddl.is_none() && b.savepoints.is_empty() && b.past.is_none())
    }
    /// Gives the table that a statement loads new indexes. `None`: it has rows, or it is one with
    /// which that cannot be done, and nothing is different.
    pub(super) async fn begin_load(&mut self, table: &TableRef, statement: &Statement) -> Result<Option<Loaded>> {
        let catalog = self.catalog();
        if !stands_alone(table) {
            return Ok(None);
        }
        let mut txn = self.transaction_of_its_own(&catalog);
        if interruptible(&self.cancel, has_rows(table, &mut txn)).await? {
            return Ok(None);
        }
        let Ok(changes) = self.renew_indexes(DdlBlock::new(catalog), table.id, statement) else { return Ok(None) };
        let block = self.block.as_mut().expect("an open transaction");
        block.catalog = Some(changes.catalog.clone());
        block.ddl = Some(changes);
        Ok(Some(Loaded(table.clone())))
    }
    /// Takes out what the open transaction has written: as it belongs into the new indexes.
    pub(super) fn take_loaded(&mut self, loaded: &Loaded) -> Result<impl Iterator<Item = (GroupId, Write)> + use<E>> {
        let is_as_before = |table: &TableRef| table.columns == loaded.0.columns && table.indexes.len() == loaded.0.indexes.len();
        let table = self.catalog().table_by_id(loaded.0.id).filter(is_as_before).ok_or_else(|| {
            Error::sql("40001", "another transaction changed the schema").hint("The transaction might succeed if retried.")
        })?;
        let txn = self.block.as_mut().and_then(|b| b.txn.take());
        let writes = txn.map(|mut txn| txn.take_writes()).unwrap_or_default();
        Ok(moved(writes, &loaded.0, &table))
    }
    /// Runs an `INSERT` again that wrote too much, as a load. This error, if that cannot be done.
    pub(super) async fn insert_as_load(
        &mut self,
        error: Error,
        again: Again<'_>,
        prepared: &Prepared,
        params: &[Datum],
        out: &mut dyn Output,
    ) -> Result<Affected> {
        let (Some(table), true) = (prepared.changes, prepared.is_plain_insert()) else { return Err(error) };
        let block = self.block.as_mut().expect("an open transaction");
        if block.explicit || block.statements > 1 || block.ddl.is_some() {
            return Err(error);
        }
        if let Some(txn) = block.txn.take() {
            txn.rollback();
        }
        (block.statements, block.has_touched_rows, block.catalog) = (0, false, None);
        let Some(table) = self.catalog().table_by_id(table) else { return Err(error) };
        let (statement, types, params) = match again {
            Again::Literally(text) => (Arc::new(parse_one_statement(text)?), Vec::new(), Vec::new()),
            Again::WithParams(statement) => {
                (statement.clone(), prepared.params.iter().cloned().map(Some).collect(), params.to_vec())
            }
        };
        let Some(loaded) = self.begin_load(&table, &statement).await? else { return Err(error) };
        let mut catalog = self.catalog();
        let mut prepared = Arc::new(self.prepare(&statement, &catalog, &types)?);
        if !self.admit(&prepared).await? {
            catalog = self.catalog();
            prepared = Arc::new(self.prepare(&statement, &catalog, &types)?);
        }
        let now = self.env.now_micros();
        let block = self.block(now);
        block.loads = Some(table.id);
        let fetch = Fetching { prepared: &prepared, max_rows: None, formats: &Formats::AllText, read_only: false, now };
        let affected = self.run_plan(fetch, &params, out).await?;
        self.block(now).loads = None;
        self.end_load(&loaded).await?;
        Ok(affected)
    }
    /// All rows are loaded: from now on the transaction is one that has read that the table had
    /// none.
    pub(super) async fn end_load(&mut self, loaded: &Loaded) -> Result<()> {
        let block = self.block.as_mut().expect("an open transaction");
        // If it is not mixed, it has read system tables at most.
        if !std::mem::replace(&mut block.is_mixed, true)
            && let Some(txn) = block.txn.take()
        {
            txn.rollback();
        }
        let cancel = self.cancel.clone();
        let block = self.begun(false, false);
        block.has_touched_rows = true;
        let txn = block.txn.as_mut().expect("a transaction below");
        txn.uses(&[loaded.0.id]);
        match interruptible(&cancel, has_rows(&loaded.0, txn)).await? {
            false => Ok(()),
            true => Err(Error::sql("40001", "could not serialize access due to concurrent update")
                .detail(format!("Rows were inserted into \"{}\", which was empty when the load began.", loaded.0.name))
                .hint("The transaction might succeed if retried.")),
        }
    }
}
