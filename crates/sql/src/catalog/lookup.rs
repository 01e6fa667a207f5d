//! Names to descriptors.
//!
//! A name is looked up as PostgreSQL does it (manual 5.9.3): a qualified name in its schema, an
//! unqualified one in every schema of `search_path` in turn, with `pg_catalog` first unless the
//! path says where it comes. A database in front of the schema must be the current one, except for
//! the statements that look at another database's regions.

use super::authority::denied;
use super::names::{Name, Names};
use super::privileges::Privileges;
use super::relation::{Relation, SequenceRef, TableRef, ViewRef};
use super::system;
use super::{Authority, Catalog, Database, Descriptor, ROOT, Schema};
use crate::parse::IndexName;
use crate::types::{CatalogView, Regions};
use meridian_base::{DescriptorId, Error, GroupId, Result};
use std::sync::Arc;

/// The schemas that somebody may use; `None`: all.
struct Reach(Option<Authority>);

impl Reach {
    fn has(&self, catalog: &Catalog, schema: DescriptorId) -> bool {
        self.0.as_ref().is_none_or(|who| catalog.permits(who, schema, Privileges::USAGE))
    }
}

impl Catalog {
    /// A database by name, or 3D000.
    pub fn database(&self, name: &str) -> Result<&Database> {
        self.find_database(name).ok_or_else(|| Error::sql("3D000", format!("database \"{name}\" does not exist")))
    }
    /// A database by name.
    pub fn find_database(&self, name: &str) -> Option<&Database> {
        match self.child(ROOT, name)? {
            Descriptor::Database(d) => Some(d),
            _ => None,
        }
    }
    /// All databases, by id.
    pub fn databases(&self) -> impl Iterator<Item = &Database> {
        self.descriptors.values().filter_map(|d| match &**d {
            Descriptor::Database(d) => Some(d),
            _ => None,
        })
    }
    /// A schema of the current database, or 3F000. System schemas have no descriptor and are not
    /// found here.
    pub fn schema(&self, names: &Names, name: &str) -> Result<&Schema> {
        let database = self.database(&names.database)?;
        self.find_schema(database.id, name).ok_or_else(|| Error::sql("3F000", format!("schema \"{name}\" does not exist")))
    }
    /// A schema by its database and name.
    pub fn find_schema(&self, database: DescriptorId, name: &str) -> Option<&Schema> {
        match self.child(database, name)? {
            Descriptor::Schema(s) => Some(s),
            _ => None,
        }
    }
    /// The schemas of a database, by id.
    pub fn schemas(&self, database: DescriptorId) -> impl Iterator<Item = &Schema> {
        self.descriptors.values().filter_map(move |d| match &**d {
            Descriptor::Schema(s) if s.database == database => Some(s),
            _ => None,
        })
    }
    /// The schema new objects go to: the first one of the path that exists (`current_schema`), or
    /// 3F000.
    pub fn creation_schema(&self, names: &Names) -> Result<&Schema> {
        let database = self.database(&names.database)?;
        let reach = self.reach(names);
        names
            .effective_path()
            .filter_map(|s| self.find_schema(database.id, s))
            .find(|s| reach.has(self, s.id))
            .ok_or_else(|| Error::sql("3F000", "no schema has been selected to create in"))
    }
    /// The schema that a `CREATE` puts a name into.
    pub fn schema_for_new(&self, names: &Names, name: &Name) -> Result<&Schema> {
        let Some(schema) = &name.schema else { return self.creation_schema(names) };
        self.check_database(names, name)?;
        if system::is_system_schema(schema) {
            return Err(Error::sql("42501", format!("permission denied to create \"{name}\""))
                .detail("System catalog modifications are currently disallowed."));
        }
        self.schema(names, schema)
    }
    fn check_database(&self, names: &Names, name: &Name) -> Result<()> {
        match &name.database {
            Some(database) if *database != names.database => {
                Err(Error::unsupported(format!("cross-database references are not implemented: \"{name}\"")))
            }
            _ => Ok(()),
        }
    }

    /// A table, view, sequence, index or system table, or 42P01 (3F000 if its schema does not
    /// exist).
    pub fn relation(&self, names: &Names, name: &Name) -> Result<Relation> {
        if let Some(found) = self.find_relation(names, name)? {
            return Ok(found);
        }
        // PostgreSQL says «relation» even if the schema is missing; only CREATE and ALTER report
        // 3F000.
        Err(Error::sql("42P01", format!("relation \"{name}\" does not exist")))
    }
    /// The same; `None` if there is no such relation.
    pub fn find_relation(&self, names: &Names, name: &Name) -> Result<Option<Relation>> {
        self.find_within(names, name, &self.reach(names))
    }
    /// The same for a name that its user did not choose, such as those in a view: whether somebody
    /// may use the schema is not asked.
    pub fn find_relation_unchecked(&self, names: &Names, name: &Name) -> Result<Option<Relation>> {
        self.find_within(names, name, &Reach(None))
    }
    fn find_within(&self, names: &Names, name: &Name, reach: &Reach) -> Result<Option<Relation>> {
        self.check_database(names, name)?;
        let database = self.database(&names.database)?.id;
        let is_in_reach = |schema: &str| self.find_schema(database, schema).is_none_or(|s| reach.has(self, s.id));
        Ok(match &name.schema {
            Some(schema) if !is_in_reach(schema) => return Err(denied("schema", schema)),
            Some(schema) => self.relation_in(database, schema, &name.name),
            None => {
                let mut path = names.effective_path().filter(|schema| is_in_reach(schema));
                path.find_map(|schema| self.relation_in(database, schema, &name.name))
            }
        })
    }
    /// Which schemas a session may use.
    fn reach(&self, names: &Names) -> Reach {
        let is_superuser = self.role_by_id(names.role).is_some_and(|r| r.is_superuser);
        Reach((!is_superuser).then(|| self.authority_of(names)))
    }
    fn relation_in(&self, database: DescriptorId, schema: &str, name: &str) -> Option<Relation> {
        if system::is_system_schema(schema) {
            return system::table(schema, name).map(Relation::System);
        }
        let schema = self.find_schema(database, schema)?.id;
        match self.by_name.get(&(schema, name.to_string())).and_then(|id| self.descriptors.get(id)) {
            Some(d) => self.relation_of(d),
            None => self.index_in(schema, name).map(|(t, id)| Relation::Index(t, id)),
        }
    }
    fn relation_of(&self, d: &Arc<Descriptor>) -> Option<Relation> {
        (TableRef::new(d).map(Relation::Table))
            .or_else(|| ViewRef::new(d).map(Relation::View))
            .or_else(|| SequenceRef::new(d).map(Relation::Sequence))
    }
    /// An index by its schema and name. Indexes share the namespace of tables but have no
    /// descriptor of their own.
    pub fn index_in(&self, schema: DescriptorId, name: &str) -> Option<(TableRef, u32)> {
        self.descriptors.values().find_map(|d| match &**d {
            Descriptor::Table(t) if t.schema == schema => {
                let index = t.indexes.iter().find(|i| i.name == name && !super::is_implicit_primary(t, i))?;
                Some((TableRef::new(d).expect("a table"), index.id))
            }
            _ => None,
        })
    }
    /// Whether a table, view, sequence or index of that name exists in a schema.
    pub fn is_relation_name_taken(&self, schema: DescriptorId, name: &str) -> bool {
        self.by_name.contains_key(&(schema, name.to_string())) || self.index_in(schema, name).is_some()
    }

    /// A table by name, or 42P01, or 42809 if it is something else.
    pub fn table(&self, names: &Names, name: &Name) -> Result<TableRef> {
        match self.relation(names, name)? {
            Relation::Table(t) => Ok(t),
            Relation::System(t) => Err(Error::sql("42501", format!("permission denied: \"{}\" is a system catalog", t.name))),
            _ => Err(Error::sql("42809", format!("\"{name}\" is not a table"))),
        }
    }
    /// An index by name: its table and its id; or 42P01 or 42704, or 42809 if it is something else.
    pub fn index(&self, names: &Names, index: &IndexName) -> Result<(TableRef, u32)> {
        let name = Name::from_ast(&index.name)?;
        let Some(table) = &index.table else {
            return match self.relation(names, &name)? {
                Relation::Index(table, id) => Ok((table, id)),
                _ => Err(Error::sql("42809", format!("\"{name}\" is not an index"))),
            };
        };
        let table = self.table(names, &Name::from_ast(table)?)?;
        let found = table.indexes.iter().find(|i| i.name == name.name && !super::is_implicit_primary(&table, i)).map(|i| i.id);
        match found {
            Some(id) => Ok((table, id)),
            None => {
                let message = format!("index \"{}\" for table \"{}\" does not exist", name.name, table.name);
                Err(Error::sql("42704", message))
            }
        }
    }
    /// A sequence by name, or 42P01, or 42809 if it is something else.
    pub fn sequence(&self, names: &Names, name: &Name) -> Result<SequenceRef> {
        match self.relation(names, name)? {
            Relation::Sequence(s) => Ok(s),
            _ => Err(Error::sql("42809", format!("\"{name}\" is not a sequence"))),
        }
    }

    /// A table by id.
    pub fn table_by_id(&self, id: DescriptorId) -> Option<TableRef> {
        self.descriptors.get(&id).and_then(TableRef::new)
    }
    /// A sequence by id.
    pub fn sequence_by_id(&self, id: DescriptorId) -> Option<SequenceRef> {
        self.descriptors.get(&id).and_then(SequenceRef::new)
    }
    /// A schema by id.
    pub fn schema_by_id(&self, id: DescriptorId) -> Option<&Schema> {
        match &**self.descriptors.get(&id)? {
            Descriptor::Schema(s) => Some(s),
            _ => None,
        }
    }
    /// A database by id.
    pub fn group_by_id(&self, id: GroupId) -> Option<&super::Group> {
        match self.descriptors.get(&DescriptorId(id.0)).map(|d| &**d) {
            Some(Descriptor::Group(g)) => Some(g),
            _ => None,
        }
    }
    /// The groups of a database, in the order of their ids.
    pub fn groups_of(&self, database: DescriptorId) -> impl Iterator<Item = &super::Group> {
        self.descriptors.values().filter_map(move |d| match &**d {
            Descriptor::Group(g) if g.database == database => Some(g),
            _ => None,
        })
    }
    /// The tables that have rows in a group.
    pub fn tables_in(&self, group: GroupId) -> impl Iterator<Item = TableRef> {
        self.descriptors.values().filter_map(TableRef::new).filter(move |t| t.groups().any(|g| g == group))
    }
    /// The tables of a database.
    pub fn tables_of(&self, database: DescriptorId) -> impl Iterator<Item = TableRef> {
        let is_in = move |t: &TableRef| self.schema_by_id(t.schema).is_some_and(|s| s.database == database);
        self.descriptors.values().filter_map(TableRef::new).filter(is_in)
    }
    pub fn database_by_id(&self, id: DescriptorId) -> Option<&Database> {
        match &**self.descriptors.get(&id)? {
            Descriptor::Database(d) => Some(d),
            _ => None,
        }
    }
    fn child(&self, parent: DescriptorId, name: &str) -> Option<&Descriptor> {
        self.descriptors.get(self.by_name.get(&(parent, name.to_string()))?).map(|d| &**d)
    }
}

impl CatalogView for Catalog {
    fn regions(&self, database: &str) -> Option<Regions<'_>> {
        let database = self.find_database(database).filter(|d| d.is_multi_region)?;
        Some(Regions { primary: &database.primary_region, all: &database.regions, dropping: &database.dropping })
    }
    fn has_schema(&self, database: &str, schema: &str) -> bool {
        let database = self.find_database(database).map(|d| d.id);
        system::is_system_schema(schema) || database.is_some_and(|d| self.find_schema(d, schema).is_some())
    }
}
