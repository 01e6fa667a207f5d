//! Secondary indexes: `CREATE INDEX`, `ALTER INDEX`, `DROP INDEX`.

use super::columns::check_indexable;
use super::refuse::wrong_kind;
use super::{Deriver, free_name};
use crate::catalog::names::Name;
use crate::catalog::relation::Relation;
use crate::catalog::{Index, IndexColumn, IndexState, Table, is_implicit_primary};
use crate::parse::fold;
use crate::parse::{AlterIndex, IndexName, NewIndex};
use crate::types::Type;
use meridian_base::{DescriptorId, Error, Result};
use sqlparser::ast::{self, CreateIndex, Expr, Ident, IndexType, OrderBySort};

impl Deriver<'_> {
    pub(super) fn create_index(&mut self, new: &NewIndex) -> Result<()> {
        let create = &new.create;
        refuse_unsupported(create)?;
        self.index_parameters(&create.with)?;
        let table = self.own_table(&create.table_name)?;
        self.may_create_in(table.schema)?;
        let mut table = (*table).clone();
        let columns = self.key_of(&table, create)?;
        let stored = stored_columns(&table, &columns, &create.include)?;
        let name = match &create.name {
            Some(name) => {
                let name = Name::from_ast(name)?;
                if name.schema.is_some() {
                    return Err(Error::sql("42601", "an index is in the schema of its table: its name cannot be qualified"));
                }
                name.name
            }
            None => self.free_index_name(&table, &columns),
        };
        if self.catalog.is_relation_name_taken(table.schema, &name) {
            let message = format!("relation \"{name}\" already exists");
            if !create.if_not_exists {
                return Err(Error::sql("42P07", message));
            }
            self.notice("42P07", format!("{message}, skipping"));
            return Ok(());
        }
        let index = Index {
            id: self.new_id(),
            name,
            columns,
            unique: create.unique,
            stored,
            holds_rows: false,
            is_constraint: false,
            predicate: None,
            is_hidden: !new.is_visible,
            state: IndexState::Public,
            comment: None,
        };
        self.attach_index(&mut table, index)?;
        self.put(table);
        Ok(())
    }

    /// Storage parameters of an index describe pages, which do not exist here.
    fn index_parameters(&mut self, options: &[Expr]) -> Result<()> {
        for option in options {
            let (name, value) = match option {
                Expr::BinaryOp { left, op: ast::BinaryOperator::Eq, right } => (left.to_string(), right.to_string()),
                other => (other.to_string(), String::new()),
            };
            if !matches!(name.to_ascii_lowercase().as_str(), "fillfactor" | "deduplicate_items") {
                return Err(Error::sql("22023", format!("unrecognized parameter \"{name}\"")));
            }
            self.ignore_parameter(&name, &value);
        }
        Ok(())
    }

    fn key_of(&self, table: &Table, create: &CreateIndex) -> Result<Vec<IndexColumn>> {
        let mut columns = Vec::with_capacity(create.columns.len());
        for part in &create.columns {
            let name = match &part.column.expr {
                Expr::Identifier(name) => fold(name),
                _ => {
                    return Err(Error::unsupported("indexes on expressions are not supported yet")
                        .hint("Add a column GENERATED ALWAYS AS (…) STORED and index that."));
                }
            };
            super::columns::refuse_being_added(table, &name)?;
            let (ordinal, column) =
                table.column(&name).ok_or_else(|| Error::sql("42703", format!("column \"{name}\" does not exist")))?;
            check_indexable(&column.ty)?;
            if let Some(class) = &part.operator_class {
                check_operator_class(&Name::from_ast(class)?.name, &column.ty)?;
            }
            let descending = match &part.column.options.sort {
                None | Some(OrderBySort::Asc) => false,
                Some(OrderBySort::Desc) => true,
                Some(OrderBySort::Using(_)) => {
                    return Err(Error::sql("42601", "an index column cannot be ordered USING an operator"));
                }
            };
            let nulls_first = part.column.options.nulls_first.unwrap_or(descending);
            columns.push(IndexColumn { ordinal, descending, nulls_first });
        }
        Ok(columns)
    }

    /// `table_column_…_idx`.
    fn free_index_name(&self, table: &Table, columns: &[IndexColumn]) -> String {
        let names: Vec<&str> = columns.iter().map(|c| table.columns[c.ordinal as usize].name.as_str()).collect();
        let taken = |n: &str| self.catalog.is_relation_name_taken(table.schema, n);
        free_name(&table.name, &names.join("_"), "idx", taken)
    }

    pub(super) fn alter_index(&mut self, index: &IndexName, if_exists: bool, action: &AlterIndex) -> Result<()> {
        let Some((table, id)) = self.index_if_exists(index, "relation", if_exists)? else { return Ok(()) };
        self.must_own_index(table, id)?;
        let is_visible = match action {
            AlterIndex::Rename(new) => {
                self.may_create_in(self.table_by_id(table)?.schema)?;
                return self.rename_index(table, id, new);
            }
            AlterIndex::SetVisible(is_visible) => *is_visible,
        };
        let mut table = self.table_by_id(table)?;
        if table.primary().id == id && !is_visible {
            return Err(Error::unsupported("a primary index cannot be made not visible").detail("It holds the rows."));
        }
        table.indexes.iter_mut().filter(|i| i.id == id).for_each(|i| i.is_hidden = !is_visible);
        self.put(table);
        Ok(())
    }
    /// Renames an index, and with it the constraint that made it.
    pub(super) fn rename_index(&mut self, table: DescriptorId, id: u32, new: &str) -> Result<()> {
        let mut table = self.table_by_id(table)?;
        if self.catalog.is_relation_name_taken(table.schema, new) {
            return Err(Error::sql("42P07", format!("relation \"{new}\" already exists")));
        }
        let new = crate::parse::truncate(new.to_string());
        table.indexes.iter_mut().filter(|i| i.id == id).for_each(|i| i.name = new.clone());
        self.put(table);
        Ok(())
    }
    /// `kind`: what it is called if there is none.
    fn index_if_exists(&mut self, index: &IndexName, kind: &str, if_exists: bool) -> Result<Option<(DescriptorId, u32)>> {
        let name = &index.name;
        if let Some(table) = &index.table {
            let Some(table) = self.table_if_exists(table, if_exists)? else { return Ok(None) };
            let name = Name::from_ast(name)?;
            if name.schema.is_some() {
                return Err(Error::sql("42601", "an index is in the schema of its table: its name cannot be qualified"));
            }
            let name = name.name;
            return match index_named(&table, &name) {
                Some(index) => Ok(Some((table.id, index.id))),
                None if if_exists => {
                    self.notice("00000", format!("index \"{name}\" of table \"{}\" does not exist, skipping", table.name));
                    Ok(None)
                }
                None => Err(Error::sql("42704", format!("index \"{name}\" of table \"{}\" does not exist", table.name))),
            };
        }
        match self.relation_if_exists(name, kind, if_exists)? {
            None => Ok(None),
            Some(Relation::Index(table, id)) => Ok(Some((table.id, id))),
            Some(other) => Err(wrong_kind(name, &other, "index")),
        }
    }

    pub(super) fn drop_index(&mut self, index: &IndexName, if_exists: bool, cascade: bool) -> Result<()> {
        let Some((table, id)) = self.index_if_exists(index, "index", if_exists)? else { return Ok(()) };
        self.may_drop_index(table, id)?;
        let table = self.table_by_id(table)?;
        if let Some(index) = table.indexes.iter().find(|i| i.id == id && i.is_constraint) {
            let what = format!("constraint {} on table {}", index.name, table.name);
            return Err(Error::sql("2BP01", format!("cannot drop index {} because {what} requires it", index.name))
                .hint(format!("You can drop {what} instead.")));
        }
        self.remove_index(table, id, cascade)
    }

    /// Takes an index out of a table, and the foreign keys that need it with it.
    pub(super) fn remove_index(&mut self, mut table: Table, id: u32, cascade: bool) -> Result<()> {
        super::refuse::refuse_in_change(&table)?;
        let Some(at) = table.indexes.iter().position(|i| i.id == id) else { return Ok(()) };
        let index = table.indexes.remove(at);
        let children = self.orphaned_references(&table, &index)?;
        if !cascade {
            let what = if index.is_constraint { "constraint" } else { "index" };
            let described =
                children.iter().map(|(child, _, fk)| format!("constraint {fk} on table {child} depends on index {}", index.name));
            super::refuse::refuse_dependents(&format!("{what} {} on table {}", index.name, table.name), described.collect())?;
        }
        for (_, (child, constraint), _) in &children {
            super::constraint::forget_reference(&mut table, *child, *constraint);
            if *child == table.id {
                table.foreign_keys.retain(|f| f.id != *constraint);
            } else {
                self.drop_foreign_key_of(*child, *constraint)?;
            }
        }
        self.put(table);
        Ok(())
    }

    /// Foreign keys that point at the columns of a removed unique index and have no other one:
    /// (child's name, reference, constraint's name).
    fn orphaned_references(&self, table: &Table, removed: &Index) -> Result<Vec<(String, (DescriptorId, DescriptorId), String)>> {
        let mut orphans = Vec::new();
        for (child_id, constraint) in &table.referenced_by {
            let child = if *child_id == table.id { table.clone() } else { self.table_by_id(*child_id)? };
            let Some(fk) = child.foreign_keys.iter().find(|f| f.id == *constraint) else { continue };
            if removed.will_be_key(&fk.parent_columns) && !table.indexes.iter().any(|i| i.is_key(&fk.parent_columns)) {
                orphans.push((child.name.clone(), (*child_id, *constraint), fk.name.clone()));
            }
        }
        Ok(orphans)
    }
}

fn stored_columns(table: &Table, key: &[IndexColumn], include: &[Ident]) -> Result<Vec<u32>> {
    let names: Vec<String> = include.iter().map(fold).collect();
    let stored = super::columns::resolve_names(table, &names)?;
    // Storing a key column again would be harmless and useless.
    Ok(stored.into_iter().filter(|o| !key.iter().any(|k| k.ordinal == *o)).collect())
}

fn refuse_unsupported(create: &CreateIndex) -> Result<()> {
    match &create.using {
        None | Some(IndexType::BTree) => {}
        Some(other) => {
            return Err(Error::unsupported(format!("index method {} is not supported", other.to_string().to_lowercase())));
        }
    }
    if create.predicate.is_some() {
        return Err(Error::unsupported("partial indexes are not supported yet"));
    }
    if create.nulls_distinct == Some(false) {
        return Err(Error::unsupported("NULLS NOT DISTINCT is not supported yet"));
    }
    if !create.index_options.is_empty() || !create.alter_options.is_empty() {
        return Err(Error::unsupported("these index options are not supported"));
    }
    Ok(())
}

/// The operator classes of B-trees that order a type as it is ordered here (PostgreSQL manual,
/// 11.10). Text is ordered by its bytes: those of patterns are the same order.
fn check_operator_class(class: &str, ty: &Type) -> Result<()> {
    let of_pattern = class.strip_suffix("_pattern_ops").filter(|of| matches!(*of, "text" | "varchar" | "bpchar"));
    let of = of_pattern.or_else(|| class.strip_suffix("_ops")).unwrap_or_default();
    let accepts = match of {
        "text" | "varchar" => matches!(ty, Type::Text | Type::Varchar(_)),
        "array" => ty.element().is_some(),
        of => ty.internal_name() == of,
    };
    if accepts {
        return Ok(());
    }
    let is_known = of == "array" || Type::all().iter().any(|t| check_indexable(t).is_ok() && t.internal_name() == of);
    Err(match is_known {
        true => Error::sql("42804", format!("operator class \"{class}\" does not accept data type {}", ty.name())),
        false => Error::sql("42704", format!("operator class \"{class}\" does not exist for access method \"btree\"")),
    })
}

/// An index of a table by its name, implicit ones left out.
pub(super) fn index_named<'t>(table: &'t Table, name: &str) -> Option<&'t Index> {
    table.indexes.iter().find(|i| i.name == name && !is_implicit_primary(table, i))
}
