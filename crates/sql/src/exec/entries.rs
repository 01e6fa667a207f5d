//! Rows and index entries as keys and bytes.
//!
//! ```text
//! primary    id | key columns                                   → the whole row (types::row)
//! secondary  id | columns [| primary key columns]               → u16 length | primary key | row of the stored columns
//! ```
//!
//! The primary key's columns end a secondary key unless the index is unique and none of its columns
//! is `NULL`: then the entry itself says that the value is taken.

use crate::catalog::catalog_of;
use crate::catalog::privileges::Privileges;
use crate::catalog::{Index, IndexState};
use crate::plan::TablePlan;
use crate::plan::eval::{Env, Memo, eval, finish, is_true};
use crate::types::keys::{decode_key_column, encode_key_column};
use crate::types::{Datum, EvalContext, RowView, Stored, Type, encode_row};
use bytes::{BufMut, Bytes, BytesMut};
use meridian_base::key::encode;
use meridian_base::{Error, GroupId, Key, Result, limits};
use std::collections::BTreeMap;

/// An entry of a secondary index, or a row of the primary one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub key: Key,
    pub value: Bytes,
}

impl TablePlan {
    /// The row's key in the primary index.
    pub fn primary_key(&self, row: &[Datum]) -> Result<Key> {
        let mut out = Vec::with_capacity(32);
        let index = self.table.primary();
        encode::index(&mut out, index.id);
        self.key_columns(index, row, &mut out)?;
        finished(out, &index.name)
    }
    /// The row as the primary index stores it.
    pub fn row_bytes(&self, row: &[Datum]) -> Bytes {
        if self.table.escrow.iter().all(|e| e.in_rows) {
            return encode_row(&self.types, row);
        }
        // Shares have the numbers.
        let mut stored = row.to_vec();
        let unstored = self.table.escrow.iter().filter(|e| !e.in_rows);
        unstored.for_each(|e| stored[e.ordinal as usize] = Datum::Null);
        encode_row(&self.types, &stored)
    }
    /// A row read from the primary index, by ordinal; columns added since have their missing
    /// values. The numbers of escrow columns are `NULL`, whatever rows say that were written before
    /// these had shares.
    pub fn decode_row(&self, bytes: Bytes) -> Result<Vec<Datum>> {
        let view = RowView::new(bytes)?;
        let mut row: Vec<Datum> = (0..self.types.len()).map(|o| self.column_of(&view, o)).collect::<Result<_>>()?;
        self.table.escrow.iter().for_each(|e| row[e.ordinal as usize] = Datum::Null);
        Ok(row)
    }
    /// The columns of a stored row that an index and the primary key have; others are `NULL`.
    fn decode_for(&self, index: &Index, view: &RowView) -> Result<Vec<Datum>> {
        let mut row = vec![Datum::Null; self.types.len()];
        let of_keys = index.columns.iter().chain(&self.table.primary().columns).map(|c| c.ordinal);
        for ordinal in of_keys.chain(index.stored.iter().copied()) {
            row[ordinal as usize] = self.column_of(view, ordinal as usize)?;
        }
        self.table.escrow.iter().for_each(|e| row[e.ordinal as usize] = Datum::Null);
        Ok(row)
    }
    fn column_of(&self, view: &RowView, ordinal: usize) -> Result<Datum> {
        column_of(view, ordinal, &self.types, &self.missing)
    }
    /// The entry of a row in a secondary index (by position); `None` if its predicate leaves the
    /// row out.
    pub fn index_entry(&self, index: usize, row: &[Datum], ctx: &EvalContext) -> Result<Option<Entry>> {
        if let Some(p) = &self.predicates[index] {
            let memo = Memo::default();
            if !is_true(&finish(eval(p, &Env { row, args: &[], params: &[], ctx, memo: &memo }))?) {
                return Ok(None);
            }
        }
        let i = &self.table.indexes[index];
        let mut key = Vec::with_capacity(48);
        encode::index(&mut key, i.id);
        self.key_columns(i, row, &mut key)?;
        if i.holds_rows {
            // It is to replace the primary index, so it looks like one.
            return Ok(Some(Entry { key: finished(key, &i.name)?, value: self.row_bytes(row) }));
        }
        let primary = self.primary_key(row)?;
        let has_null = i.columns.iter().any(|c| row[c.ordinal as usize].is_null());
        if !i.unique || has_null {
            self.key_columns(self.table.primary(), row, &mut key)?;
        }
        let stored = self.stored(i, row);
        let mut value = BytesMut::with_capacity(2 + primary.as_bytes().len() + stored.len());
        value.put_u16(primary.as_bytes().len() as u16);
        value.put_slice(primary.as_bytes());
        value.put_slice(&stored);
        Ok(Some(Entry { key: finished(key, &i.name)?, value: value.freeze() }))
    }
    /// The same of a row read from the primary index. An index that is to replace that one takes
    /// the stored bytes over, if they have all columns.
    pub fn entry_of_stored(&self, index: usize, stored: &Bytes, ctx: &EvalContext) -> Result<Option<Entry>> {
        let i = &self.table.indexes[index];
        let view = RowView::new(stored.clone())?;
        let is_whole = self.types.len().checked_sub(1).is_none_or(|last| !view.is_missing(last));
        if self.predicates[index].is_some() || (i.holds_rows && !is_whole) {
            return self.index_entry(index, &self.decode_row(stored.clone())?, ctx);
        }
        if !i.holds_rows {
            return self.index_entry(index, &self.decode_for(i, &view)?, ctx);
        }
        let mut key = Vec::with_capacity(48);
        encode::index(&mut key, i.id);
        for c in &i.columns {
            let o = c.ordinal as usize;
            encode_key_column(&mut key, &self.column_of(&view, o)?, &self.types[o], c.descending, c.nulls_first)?;
        }
        Ok(Some(Entry { key: finished(key, &i.name)?, value: stored.clone() }))
    }
    /// Everything that is stored of a row, by its place.
    pub(crate) fn all_entries(&self, row: &[Datum], ctx: &EvalContext) -> Result<BTreeMap<(GroupId, Key), Bytes>> {
        let group = self.group_of(row)?;
        let mut entries = BTreeMap::from([((group, self.primary_key(row)?), self.row_bytes(row))]);
        for index in self.secondary(true) {
            entries.extend(self.index_entry(index, row, ctx)?.map(|e| ((group, e.key), e.value)));
        }
        Ok(entries)
    }
    fn stored(&self, i: &Index, row: &[Datum]) -> Bytes {
        if i.stored.is_empty() {
            return Bytes::new();
        }
        let types: Vec<Type> = i.stored.iter().map(|o| self.types[*o as usize].clone()).collect();
        let values: Vec<Datum> = i.stored.iter().map(|o| row[*o as usize].clone()).collect();
        encode_row(&types, &values)
    }
    fn key_columns(&self, index: &Index, row: &[Datum], out: &mut Vec<u8>) -> Result<()> {
        for c in &index.columns {
            let o = c.ordinal as usize;
            encode_key_column(out, &row[o], &self.types[o], c.descending, c.nulls_first)?;
        }
        Ok(())
    }
    /// Whether a row makes a CHECK false.
    pub fn breaks_check(&self, name: &str, row: &[Datum], ctx: &EvalContext) -> Result<bool> {
        let Some((_, check)) = self.checks.iter().find(|(n, _)| n == name) else { return Ok(false) };
        let memo = Memo::default();
        let holds = finish(eval(check, &Env { row, args: &[], params: &[], ctx, memo: &memo }))?;
        Ok(matches!(holds, Datum::Bool(false)))
    }
    /// Secondary indexes that inserts reach, or with `deletes`, that deletes reach.
    pub(crate) fn secondary(&self, deletes: bool) -> impl Iterator<Item = usize> + '_ {
        let indexes = self.table.indexes.iter().enumerate().skip(1);
        indexes.filter(move |(_, i)| deletes || i.state != IndexState::DeleteOnly).map(|(at, _)| at)
    }
    /// «(1, x, null)»: the row in an error's detail, as PostgreSQL writes it.
    pub fn describe_row(&self, row: &[Datum], ctx: &EvalContext) -> String {
        let shown: Vec<String> = self.table.public_columns().map(|(o, c)| show(&row[o as usize], &c.ty, ctx)).collect();
        format!("({})", shown.join(", "))
    }
    /// «(a, b)=(1, 2)».
    pub fn describe_key(&self, columns: &[u32], values: &[Datum], ctx: &EvalContext) -> String {
        let names: Vec<&str> = columns.iter().map(|o| self.table.columns[*o as usize].name.as_str()).collect();
        let values: Vec<String> = columns.iter().zip(values).map(|(o, v)| show(v, &self.types[*o as usize], ctx)).collect();
        format!("({})=({})", names.join(", "), values.join(", "))
    }
    /// `Key (columns)=(values)`, or `Key` alone for those who may not read it.
    pub fn shown_key(&self, columns: &[u32], values: &[Datum], ctx: &EvalContext) -> String {
        match self.may_be_shown(ctx) {
            true => format!("Key {}", self.describe_key(columns, values, ctx)),
            false => "Key".into(),
        }
    }
    /// Whether the user may read the rows: what an error may show of them.
    pub fn may_be_shown(&self, ctx: &EvalContext) -> bool {
        let catalog = catalog_of(ctx);
        catalog.permits(&catalog.authority(ctx.role, &ctx.database), self.table.id, Privileges::SELECT)
    }
}

fn show(d: &Datum, ty: &Type, ctx: &EvalContext) -> String {
    const MAX: usize = 64;
    if d.is_null() {
        return "null".into();
    }
    let text = d.to_text(ty, ctx);
    match text.char_indices().nth(MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

fn finished(key: Vec<u8>, index: &str) -> Result<Key> {
    if key.len() > limits::KEY_BYTES_MAX {
        let message = format!("index row size {} exceeds maximum {} for index \"{index}\"", key.len(), limits::KEY_BYTES_MAX);
        return Err(Error::sql("54000", message).hint("Values larger than that cannot be indexed."));
    }
    Ok(Key::new(&key))
}

pub(crate) fn column_of<B: Stored>(view: &RowView<B>, ordinal: usize, types: &[Type], missing: &[Datum]) -> Result<Datum> {
    if view.is_missing(ordinal) { Ok(missing[ordinal].clone()) } else { view.datum(ordinal, &types[ordinal]) }
}

/// The primary key in the value of a secondary entry, and the stored columns after it.
pub fn split_entry(value: &Bytes) -> Result<(Key, Bytes)> {
    let damaged = || Error::internal("an index entry is damaged");
    let length = u16::from_be_bytes(value.get(..2).and_then(|b| b.try_into().ok()).ok_or_else(damaged)?) as usize;
    let key = value.get(2..2 + length).ok_or_else(damaged)?;
    Ok((Key::new(key), value.slice(2 + length..)))
}

/// The columns of a key, after its index id.
pub(crate) fn decode_key(key: &[u8], index: &Index, types: &[Type]) -> Result<Vec<Datum>> {
    let mut input = key.get(4..).ok_or_else(|| Error::internal("an index key is damaged"))?;
    let column =
        |c: &crate::catalog::IndexColumn| decode_key_column(&mut input, &types[c.ordinal as usize], c.descending, c.nulls_first);
    index.columns.iter().map(column).collect()
}
