//! Databases and schemas.

use super::Deriver;
use crate::catalog::job::Job;
use crate::catalog::names::Name;
use crate::catalog::privileges::Access;
use crate::catalog::system;
use crate::catalog::{Database, Descriptor, Group, Schema, bootstrap};
use crate::parse::fold;
use crate::parse::{AlterDatabase, NewRegions, RoleSpec};
use meridian_base::{DescriptorId, Error, GroupId, Result};
use meridian_placement::Survival;
use sqlparser::ast::{AlterSchema, AlterSchemaOperation, ObjectName, SchemaName};

impl Deriver<'_> {
    pub(super) fn create_database(
        &mut self,
        name: &str,
        owner: Option<&str>,
        regions: &NewRegions,
        if_not_exists: bool,
    ) -> Result<()> {
        if self.catalog.find_database(name).is_some() {
            let message = format!("database \"{name}\" already exists");
            if !if_not_exists {
                return Err(Error::sql("42P04", message));
            }
            self.notice("42P04", format!("{message}, skipping"));
            return Ok(());
        }
        if !self.who.is_superuser && !self.catalog.role_by_id(self.who.role).is_some_and(|r| r.creates_databases) {
            return Err(Error::sql("42501", "permission denied to create database"));
        }
        let owner = owner.map(|o| RoleSpec::Name(o.to_string()));
        let owner = self.new_owner(owner.as_ref())?;
        let (id, schema) = (self.new_descriptor_id(), self.new_descriptor_id());
        let new = Database {
            id,
            name: name.to_string(),
            primary_region: self.context.gateway_region.to_string(),
            is_multi_region: false,
            regions: vec![self.context.gateway_region.to_string()],
            secondary_region: None,
            dropping: Vec::new(),
            survival: Survival::Zone,
            owner: self.catalog.role_name(owner),
            comment: None,
            access: Access::of(owner),
        };
        let database = self.with_new_regions(new, regions)?;
        self.put(database);
        self.put(bootstrap::public_schema(schema, id));
        Ok(())
    }

    pub(super) fn alter_database(&mut self, name: &str, action: &AlterDatabase) -> Result<()> {
        let mut database = self.catalog.database(name)?.clone();
        self.must_own(database.id)?;
        match action {
            AlterDatabase::Rename(new) => {
                if database.name == self.names().database {
                    return Err(Error::unsupported("current database cannot be renamed"));
                }
                if self.catalog.find_database(new).is_some() {
                    return Err(Error::sql("42P04", format!("database \"{new}\" already exists")));
                }
                if !self.who.is_superuser && !self.catalog.role_by_id(self.who.role).is_some_and(|r| r.creates_databases) {
                    return Err(Error::sql("42501", "permission denied to rename database"));
                }
                database.name = new.clone();
            }
            AlterDatabase::Owner(role) => {
                let role = self.named_role(&RoleSpec::of(role))?;
                return self.give_to(database.id, role);
            }
            AlterDatabase::ConnectionLimit => return Ok(()),
            AlterDatabase::Set { .. } => {
                return Err(Error::unsupported("settings of a database are not supported yet")
                    .hint("SET changes a setting for the session."));
            }
            regions => return self.alter_regions(database, regions),
        }
        self.put(database);
        Ok(())
    }

    pub(super) fn drop_database(&mut self, name: &ObjectName, if_exists: bool) -> Result<()> {
        let name = Name::from_ast(name)?.name;
        let Some(database) = self.catalog.find_database(&name) else {
            let message = format!("database \"{name}\" does not exist");
            if !if_exists {
                return Err(Error::sql("3D000", message));
            }
            self.notice("00000", format!("{message}, skipping"));
            return Ok(());
        };
        let id = database.id;
        self.must_own(id)?;
        if name == self.names().database {
            return Err(Error::sql("55006", "cannot drop the currently open database"));
        }
        let schemas: Vec<DescriptorId> = self.catalog.schemas(id).map(|s| s.id).collect();
        for schema in schemas {
            self.drop_schema_contents(schema)?;
            self.delete(schema);
        }
        let groups: Vec<Group> = self.catalog.groups_of(id).cloned().collect();
        let ids: Vec<GroupId> = groups.iter().map(|g| g.id).collect();
        groups.into_iter().for_each(|group| self.put(Descriptor::Leaving(group)));
        self.jobs.push(Job::RemoveGroups { groups: ids });
        self.delete(id);
        Ok(())
    }

    pub(super) fn create_schema(&mut self, name: &SchemaName, if_not_exists: bool) -> Result<()> {
        let (name, owner) = match name {
            SchemaName::Simple(name) => (Name::from_ast(name)?, None),
            SchemaName::UnnamedAuthorization(role) => (Name::bare(&fold(role)), Some(fold(role))),
            SchemaName::NamedAuthorization(name, role) => (Name::from_ast(name)?, Some(fold(role))),
        };
        let database = self.catalog.database(name.schema.as_deref().unwrap_or(&self.names().database))?.id;
        let owner = owner.map(|o| self.named_role(&RoleSpec::of(&o))).transpose()?;
        self.may_create_schema(database)?;
        if let Some(owner) = owner {
            self.must_be_member(owner)?;
        }
        let owner = owner.unwrap_or(self.who.role);
        let name = name.name;
        if name.starts_with("pg_") {
            return Err(Error::sql("42939", format!("unacceptable schema name \"{name}\""))
                .detail("The prefix \"pg_\" is reserved for system schemas."));
        }
        if self.catalog.find_schema(database, &name).is_some() || system::is_system_schema(&name) {
            let message = format!("schema \"{name}\" already exists");
            if !if_not_exists {
                return Err(Error::sql("42P06", message));
            }
            self.notice("42P06", format!("{message}, skipping"));
            return Ok(());
        }
        let id = self.new_descriptor_id();
        let schema = Schema::new(id, database, &name, &self.catalog.role_name(owner), Access::of(owner));
        self.put(schema);
        Ok(())
    }

    pub(super) fn alter_schema(&mut self, alter: &AlterSchema) -> Result<()> {
        let name = Name::from_ast(&alter.name)?.name;
        let mut schema = match self.catalog.schema(self.names(), &name) {
            Ok(schema) => schema.clone(),
            Err(_) if alter.if_exists => {
                self.notice("00000", format!("schema \"{name}\" does not exist, skipping"));
                return Ok(());
            }
            Err(e) => return Err(e),
        };
        self.must_own(schema.id)?;
        for operation in &alter.operations {
            match operation {
                AlterSchemaOperation::Rename { name } => {
                    let new = Name::from_ast(name)?.name;
                    if self.catalog.find_schema(schema.database, &new).is_some() || system::is_system_schema(&new) {
                        return Err(Error::sql("42P06", format!("schema \"{new}\" already exists")));
                    }
                    self.may_create_schema(schema.database)?;
                    self.refuse_if_views_name(&schema)?;
                    schema.name = new;
                }
                AlterSchemaOperation::OwnerTo { owner } => {
                    let owner = self.owner(owner)?;
                    return self.give_to(schema.id, owner);
                }
                _ => return Err(Error::unsupported("this form of ALTER SCHEMA is not supported")),
            }
        }
        self.put(schema);
        Ok(())
    }

    /// 0A000 if the text of a view names a schema: it would mean another one, or none.
    fn refuse_if_views_name(&self, schema: &Schema) -> Result<()> {
        let inside = self.catalog.descriptors.values().filter(|d| d.parent() == schema.id);
        let used = inside.filter_map(|d| Some((d, self.views_over(d.id()).into_iter().next()?))).next();
        let Some((d, (_, view))) = used else { return Ok(()) };
        Err(Error::unsupported("renaming a schema whose relations views use is not supported yet").detail(format!(
            "View \"{view}\" uses \"{}.{}\".",
            schema.name,
            d.name().unwrap_or_default()
        )))
    }

    pub(super) fn drop_schema(&mut self, name: &ObjectName, if_exists: bool, cascade: bool) -> Result<()> {
        let name = Name::from_ast(name)?.name;
        if system::is_system_schema(&name) {
            return Err(Error::sql("2BP01", format!("cannot drop schema {name} because it is required by the database system")));
        }
        let schema = match self.catalog.schema(self.names(), &name) {
            Ok(schema) => schema.id,
            Err(_) if if_exists => {
                self.notice("00000", format!("schema \"{name}\" does not exist, skipping"));
                return Ok(());
            }
            Err(e) => return Err(e),
        };
        self.must_own(schema)?;
        self.drop_schema_by_id(schema, cascade)
    }
    pub(super) fn drop_schema_by_id(&mut self, schema: DescriptorId, cascade: bool) -> Result<()> {
        let name = self.catalog.schema_by_id(schema).map(|s| s.name.clone()).unwrap_or_default();
        let contents: Vec<String> = self
            .catalog
            .descriptors
            .values()
            .filter(|d| d.parent() == schema)
            .map(|d| format!("{} {} depends on schema {name}", kind(d), d.name().unwrap_or_default()))
            .collect();
        if !contents.is_empty() && !cascade {
            return Err(Error::sql("2BP01", format!("cannot drop schema {name} because other objects depend on it"))
                .detail(contents.join("\n"))
                .hint("Use DROP ... CASCADE to drop the dependent objects too."));
        }
        // One notice for all of them, as in PostgreSQL.
        let dropped = |d: &Descriptor| match d {
            Descriptor::Sequence(s) => s.owned_by.is_none(),
            _ => true,
        };
        let contents = self.catalog.descriptors.values().filter(|d| d.parent() == schema && dropped(d));
        let contents: Vec<String> = contents.map(|d| self.described(d)).collect();
        let told = self.notices.len();
        self.drop_schema_contents(schema)?;
        self.notices.truncate(told);
        match &contents[..] {
            [] => {}
            [one] => self.notice("00000", format!("drop cascades to {one}")),
            many => self.notice("00000", format!("drop cascades to {} other objects", many.len())),
        }
        self.delete(schema);
        Ok(())
    }

    fn drop_schema_contents(&mut self, schema: DescriptorId) -> Result<()> {
        // Dropping one object may take others along, so look again each time.
        loop {
            let next = self.catalog.descriptors.values().find(|d| d.parent() == schema).cloned();
            match next.as_deref() {
                Some(Descriptor::Table(t)) => self.drop_table_by_id(t.id, true)?,
                Some(Descriptor::View(v)) => self.drop_view_by_id(v.id, true)?,
                Some(Descriptor::Sequence(s)) => self.drop_sequence_by_id(s.id, true)?,
                Some(_) => return Err(Error::internal("a schema contains only relations")),
                None => return Ok(()),
            }
        }
    }
}

/// What messages call a descriptor.
pub(super) fn kind(d: &Descriptor) -> &'static str {
    match d {
        Descriptor::Database(_) => "database",
        Descriptor::Schema(_) => "schema",
        Descriptor::Table(_) => "table",
        Descriptor::View(_) => "view",
        Descriptor::Sequence(_) => "sequence",
        Descriptor::Group(_) | Descriptor::Leaving(_) => "group",
        Descriptor::Job(_) => "job",
        Descriptor::Statistics(_) => "statistics",
        Descriptor::Role(_) => "role",
        Descriptor::LoginRules(_) => "rules of login",
    }
}
