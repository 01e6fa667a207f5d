//! `DROP` of tables, views and sequences, and `TRUNCATE`. What is dropped leaves keys behind, which
//! a job deletes when nobody can reach them any more.

use super::Deriver;
use super::constraint::forget_reference;
use super::refuse::{refuse_dependents, wrong_kind};
use crate::catalog::escrow::EscrowProtocol;
use crate::catalog::names::Name;
use crate::catalog::privileges::Privileges;
use crate::catalog::relation::{Relation, TableRef};
use crate::catalog::system;
use crate::catalog::{Descriptor, ForeignKey, Sequence, Table};
use meridian_base::{DescriptorId, Error, Result};
use sqlparser::ast::{CascadeOption, ObjectName, Truncate, TruncateIdentityOption};

impl Deriver<'_> {
    /// The relation of a DROP or ALTER; `None` after the notice of IF EXISTS.
    pub(super) fn relation_if_exists(&mut self, name: &ObjectName, kind: &str, if_exists: bool) -> Result<Option<Relation>> {
        let name = Name::from_ast(name)?;
        let found = self.catalog.find_relation(self.names(), &name)?;
        if found.is_none() {
            let mut has_schema = true;
            if let Some(schema) = &name.schema
                && !system::is_system_schema(schema)
                && let Err(e) = self.catalog.schema(self.names(), schema)
            {
                if !if_exists {
                    return Err(e);
                }
                has_schema = false;
            }
            let message = match &name.schema {
                Some(schema) if !has_schema => format!("schema \"{schema}\" does not exist"),
                _ => format!("{kind} \"{name}\" does not exist"),
            };
            if !if_exists {
                // To PostgreSQL an index is no relation when it is dropped.
                let code = if kind == "index" { "42704" } else { "42P01" };
                return Err(Error::sql(code, message));
            }
            self.notice("00000", format!("{message}, skipping"));
        }
        Ok(found)
    }
    /// A relation is dropped with what it depends on.
    pub(super) fn cascades_to(&mut self, relation: DescriptorId) {
        let dropped = self.catalog.descriptors.get(&relation).map(|d| self.described(d)).unwrap_or_default();
        self.notice("00000", format!("drop cascades to {dropped}"));
    }
    /// The table of an ALTER TABLE; PostgreSQL calls it a relation there.
    pub(super) fn table_if_exists(&mut self, name: &ObjectName, if_exists: bool) -> Result<Option<TableRef>> {
        match self.relation_if_exists(name, "relation", if_exists)? {
            None => Ok(None),
            Some(Relation::Table(t)) => Ok(Some(t)),
            Some(other) => Err(wrong_kind(name, &other, "table")),
        }
    }

    pub(super) fn drop_table(&mut self, name: &ObjectName, if_exists: bool, cascade: bool) -> Result<()> {
        match self.relation_if_exists(name, "table", if_exists)? {
            None => Ok(()),
            Some(Relation::Table(t)) => {
                self.may_drop(&Relation::Table(t.clone()))?;
                self.drop_table_by_id(t.id, cascade)
            }
            Some(other) => Err(wrong_kind(name, &other, "table")),
        }
    }

    /// Tables that are dropped together do not keep each other: the foreign keys between them go
    /// first.
    pub(super) fn untie(&mut self, names: &[ObjectName]) -> Result<()> {
        let mut tables = Vec::new();
        for name in names {
            if let Some(Relation::Table(t)) = self.catalog.find_relation(self.names(), &Name::from_ast(name)?)? {
                tables.push(t.id);
            }
        }
        for id in &tables {
            let mut table = self.table_by_id(*id)?;
            let is_between = |fk: &ForeignKey| fk.parent != *id && tables.contains(&fk.parent);
            for fk in table.foreign_keys.iter().filter(|fk| is_between(fk)) {
                self.detach(&table, fk)?;
            }
            if table.foreign_keys.iter().any(is_between) {
                table.foreign_keys.retain(|fk| !is_between(fk));
                self.put(table);
            }
        }
        Ok(())
    }

    pub(super) fn drop_table_by_id(&mut self, id: DescriptorId, cascade: bool) -> Result<()> {
        let table = self.table_by_id(id)?;
        let children: Vec<(DescriptorId, DescriptorId)> = table.referenced_by.iter().copied().filter(|(t, _)| *t != id).collect();
        let views = self.views_over(id);
        if !cascade {
            let mut dependents = Vec::new();
            for (child, constraint) in &children {
                let child = self.table_by_id(*child)?;
                if let Some(fk) = child.foreign_keys.iter().find(|f| f.id == *constraint) {
                    dependents.push(format!("constraint {} on table {} depends on table {}", fk.name, child.name, table.name));
                }
            }
            dependents.extend(views.iter().map(|(_, view)| format!("view {view} depends on table {}", table.name)));
            refuse_dependents(&format!("table {}", table.name), dependents)?;
        }
        for (view, _) in views {
            if self.catalog.descriptors.contains_key(&view) {
                self.cascades_to(view);
                self.drop_view_by_id(view, true)?;
            }
        }
        for (child, constraint) in children {
            self.drop_foreign_key_of(child, constraint)?;
        }
        for fk in &table.foreign_keys {
            self.detach(&table, fk)?;
        }
        for sequence in self.sequences_of(id, None) {
            self.drop_sequence_by_id(sequence.id, true)?;
        }
        self.delete(id);
        Ok(())
    }

    /// Drops a foreign key because its parent goes.
    pub(super) fn drop_foreign_key_of(&mut self, child: DescriptorId, constraint: DescriptorId) -> Result<()> {
        let mut child = self.table_by_id(child)?;
        if let Some(at) = child.foreign_keys.iter().position(|f| f.id == constraint) {
            let fk = child.foreign_keys.remove(at);
            let table = self.catalog.descriptors.get(&child.id).map(|d| self.described(d)).unwrap_or_default();
            self.notice("00000", format!("drop cascades to constraint {} on {table}", fk.name));
            self.put(child);
        }
        Ok(())
    }
    /// Removes a foreign key's mark at its parent.
    pub(super) fn detach(&mut self, table: &Table, fk: &ForeignKey) -> Result<()> {
        if fk.parent != table.id
            && let Some(parent) = self.catalog.table_by_id(fk.parent)
        {
            let mut parent = (*parent).clone();
            forget_reference(&mut parent, table.id, fk.id);
            self.put(parent);
        }
        Ok(())
    }
    /// Sequences that belong to a table, or to one of its columns.
    pub(super) fn sequences_of(&self, table: DescriptorId, ordinal: Option<u32>) -> Vec<Sequence> {
        let owned = |s: &Sequence| s.owned_by.is_some_and(|(t, o)| t == table && ordinal.is_none_or(|wanted| wanted == o));
        let sequences = self.catalog.descriptors.values().filter_map(|d| match &**d {
            Descriptor::Sequence(s) if owned(s) => Some(s.clone()),
            _ => None,
        });
        sequences.collect()
    }
    /// Views that use a relation directly: (id, name).
    pub(super) fn views_over(&self, id: DescriptorId) -> Vec<(DescriptorId, String)> {
        let views = self.catalog.descriptors.values().filter_map(|d| match &**d {
            Descriptor::View(v) if v.depends_on.contains(&id) => Some((v.id, v.name.clone())),
            _ => None,
        });
        views.collect()
    }

    pub(super) fn drop_view(&mut self, name: &ObjectName, if_exists: bool, cascade: bool) -> Result<()> {
        match self.relation_if_exists(name, "view", if_exists)? {
            None => Ok(()),
            Some(Relation::View(v)) => {
                self.may_drop(&Relation::View(v.clone()))?;
                self.drop_view_by_id(v.id, cascade)
            }
            Some(other) => Err(wrong_kind(name, &other, "view")),
        }
    }
    pub(super) fn drop_view_by_id(&mut self, id: DescriptorId, cascade: bool) -> Result<()> {
        let name = self.catalog.descriptors.get(&id).and_then(|d| d.name()).unwrap_or_default().to_string();
        let over = self.views_over(id);
        if !cascade {
            refuse_dependents(
                &format!("view {name}"),
                over.iter().map(|(_, v)| format!("view {v} depends on view {name}")).collect(),
            )?;
        }
        for (view, _) in over {
            self.cascades_to(view);
            self.drop_view_by_id(view, true)?;
        }
        self.delete(id);
        Ok(())
    }

    pub(super) fn drop_sequence(&mut self, name: &ObjectName, if_exists: bool, cascade: bool) -> Result<()> {
        match self.relation_if_exists(name, "sequence", if_exists)? {
            None => Ok(()),
            Some(Relation::Sequence(s)) => {
                self.may_drop(&Relation::Sequence(s.clone()))?;
                self.drop_sequence_by_id(s.id, cascade)
            }
            Some(other) => Err(wrong_kind(name, &other, "sequence")),
        }
    }
    /// Drops a sequence; the defaults that draw from it go first.
    pub(super) fn drop_sequence_by_id(&mut self, id: DescriptorId, cascade: bool) -> Result<()> {
        let sequence = self.catalog.sequence_by_id(id).ok_or_else(|| Error::internal("a sequence of this statement is gone"))?;
        let users = self.columns_drawing_from(id);
        if !cascade {
            if let Some(identity) = users.iter().find(|u| u.is_identity) {
                let what = format!("column {} of table {}", identity.column, identity.table_name);
                return Err(Error::sql("2BP01", format!("cannot drop sequence {} because {what} requires it", sequence.name))
                    .hint(format!("You can drop {what} instead.")));
            }
            let describe = |u: &User| {
                format!("default value for column {} of table {} depends on sequence {}", u.column, u.table_name, sequence.name)
            };
            refuse_dependents(&format!("sequence {}", sequence.name), users.iter().map(describe).collect())?;
        }
        for user in users {
            let mut table = self.table_by_id(user.table)?;
            let column = &mut table.columns[user.ordinal as usize];
            column.default = None;
            column.identity = None;
            self.put(table);
        }
        self.delete(id);
        Ok(())
    }
    fn columns_drawing_from(&self, id: DescriptorId) -> Vec<User> {
        let mark = crate::catalog::expression::pin_mark(system::oid(id));
        let mut users = Vec::new();
        for d in self.catalog.descriptors.values() {
            let Descriptor::Table(t) = &**d else { continue };
            for (ordinal, c) in t.written_columns() {
                let is_identity = c.identity.as_ref().is_some_and(|i| i.sequence == id);
                if is_identity || c.default.as_ref().is_some_and(|d| d.contains(&mark)) {
                    users.push(User { table: t.id, table_name: t.name.clone(), ordinal, column: c.name.clone(), is_identity });
                }
            }
        }
        users
    }

    pub(super) fn truncate(&mut self, truncate: &Truncate) -> Result<()> {
        if truncate.partitions.is_some() || truncate.on_cluster.is_some() {
            return Err(Error::unsupported("this form of TRUNCATE is not supported"));
        }
        let mut tables: Vec<DescriptorId> = Vec::new();
        for target in &truncate.table_names {
            let Some(table) = self.table_if_exists(&target.name, truncate.if_exists)? else { continue };
            self.catalog.check(&self.who, table.id, Privileges::TRUNCATE)?;
            if !tables.contains(&table.id) {
                tables.push(table.id);
            }
        }
        let is_cascade = truncate.cascade == Some(CascadeOption::Cascade);
        let mut at = 0;
        while let Some(id) = tables.get(at).copied() {
            at += 1;
            let table = self.table_by_id(id)?;
            for (child, _) in &table.referenced_by {
                if tables.contains(child) {
                    continue;
                }
                let name = self.table_by_id(*child)?.name;
                if !is_cascade {
                    return Err(Error::unsupported("cannot truncate a table referenced in a foreign key constraint")
                        .detail(format!("Table \"{name}\" references \"{}\".", table.name))
                        .hint(format!("Truncate table \"{name}\" at the same time, or use TRUNCATE ... CASCADE.")));
                }
                self.notice("00000", format!("truncate cascades to table \"{name}\""));
                self.catalog.check(&self.who, *child, Privileges::TRUNCATE)?;
                tables.push(*child);
            }
        }
        for id in tables {
            self.truncate_table(id, truncate.identity == Some(TruncateIdentityOption::Restart))?;
        }
        Ok(())
    }

    /// Gives a table new, empty indexes: its rows vanish at once, and rows written to it by this
    /// transaction block can be seen by nobody else before it commits.
    pub(super) fn truncate_table(&mut self, id: DescriptorId, restart_identity: bool) -> Result<()> {
        // What was known of the rows that are gone says nothing of those to come.
        if let Some(statistics) = self.catalog.statistics_id(id) {
            self.delete(statistics);
        }
        let mut table = self.table_by_id(id)?;
        super::refuse::refuse_in_change(&table)?;
        // An index that was being built is complete now; its job finds it gone.
        for index in &mut table.indexes {
            index.id = self.new_id();
            index.state = crate::catalog::IndexState::Public;
        }
        for column in &mut table.escrow {
            // There is no row whose bounds would have to be moved.
            (column.index, column.before) = (self.new_id(), None);
            // Nor one that has had a round.
            column.protocol = match column.protocol() {
                EscrowProtocol::Any => None,
                EscrowProtocol::Majority => Some(EscrowProtocol::Majority),
            };
        }
        if let Some(at) = table.indexes.iter().skip(1).position(|i| i.holds_rows) {
            super::constraint::replace_primary(&mut table, at + 1);
        }
        self.put(table);
        self.private.push(id);
        if restart_identity {
            for mut sequence in self.sequences_of(id, None) {
                self.must_own(sequence.id)?;
                sequence.index_id = self.new_id();
                self.put(sequence);
            }
        }
        Ok(())
    }
}

/// A column whose default draws from a sequence.
struct User {
    table: DescriptorId,
    table_name: String,
    ordinal: u32,
    column: String,
    is_identity: bool,
}
