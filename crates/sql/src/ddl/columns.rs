//! Columns that a statement names.

use crate::catalog::{Column, Table};
use crate::types::Type;
use meridian_base::{Error, Result};

/// A column by its name, hidden or not, with its ordinal.
pub(super) fn named_column<'t>(table: &'t Table, name: &str) -> Result<(u32, &'t Column)> {
    refuse_being_added(table, name)?;
    table
        .column(name)
        .ok_or_else(|| Error::sql("42703", format!("column \"{name}\" of relation \"{}\" does not exist", table.name)))
}

/// 55000 for the name of a column that is being added, which nobody sees yet.
pub(super) fn refuse_being_added(table: &Table, name: &str) -> Result<()> {
    match table.columns.iter().find(|c| c.name == name && c.state.is_being_added()) {
        Some(column) => Err(being_added(table, column)),
        None => Ok(()),
    }
}

/// 55000 for a table with a column whose values are being written into its rows.
pub(super) fn refuse_filling(table: &Table) -> Result<()> {
    match table.columns.iter().find(|c| c.state.is_being_added()) {
        Some(column) => Err(being_added(table, column)),
        None => Ok(()),
    }
}

fn being_added(table: &Table, column: &Column) -> Error {
    Error::sql("55000", format!("column \"{}\" of relation \"{}\" is being added", column.name, table.name))
        .hint("Try again when that is done: SHOW JOBS tells how far it is.")
}

/// Ordinals of columns by name; each may be named once.
pub(super) fn resolve_names(table: &Table, names: &[String]) -> Result<Vec<u32>> {
    let mut ordinals = Vec::with_capacity(names.len());
    for name in names {
        refuse_being_added(table, name)?;
        let (ordinal, _) =
            table.column(name).ok_or_else(|| Error::sql("42703", format!("column \"{name}\" named in key does not exist")))?;
        if ordinals.contains(&ordinal) {
            return Err(Error::sql("42701", format!("column \"{name}\" appears twice in a key")));
        }
        ordinals.push(ordinal);
    }
    Ok(ordinals)
}

/// 42704 if values of a type have no order of keys.
pub(super) fn check_indexable(ty: &Type) -> Result<()> {
    let element = ty.element().unwrap_or(ty);
    if matches!(element, Type::Json | Type::Jsonb) {
        return Err(Error::sql(
            "42704",
            format!("data type {} has no default operator class for access method \"btree\"", ty.name()),
        ));
    }
    Ok(())
}
