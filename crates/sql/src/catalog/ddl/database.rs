//! Databases, their regions, and schemas.

use super::Deriver;
use crate::catalog::lookup::{Name, fold};
use crate::catalog::{Database, Descriptor, Schema, bootstrap, system};
use crate::parse::{AlterDatabase, Survive};
use meridian_base::{DescriptorId, Error, Result};
use meridian_placement::Survival;
use sqlparser::ast::{AlterSchema, AlterSchemaOperation, ObjectName, SchemaName};
use std::collections::BTreeSet;

/// `CREATE DATABASE` without its conditions.
pub(super) struct NewDatabase<'s> {
    pub name: &'s str,
    pub owner: Option<&'s str>,
    pub primary_region: Option<&'s str>,
    pub regions: &'s [String],
}

impl Deriver<'_> {
    pub(super) fn create_database(&mut self, new: NewDatabase, if_not_exists: bool, survive: Option<Survive>) -> Result<()> {
        if self.catalog.find_database(new.name).is_some() {
            let message = format!("database \"{}\" already exists", new.name);
            if !if_not_exists {
                return Err(Error::sql("42P04", message));
            }
            self.notice("42P04", format!("{message}, skipping"));
            return Ok(());
        }
        let (primary_region, regions) = self.regions_of(&new)?;
        let survival = match survive {
            Some(_) if new.primary_region.is_none() => {
                return Err(Error::sql("42P12", "PRIMARY REGION must be specified if SURVIVE is specified"));
            }
            Some(Survive::RegionFailure) => {
                check_survives_region(&regions)?;
                Survival::Region
            }
            Some(Survive::ZoneFailure) | None => Survival::Zone,
        };
        let owner = new.owner.map_or_else(|| Ok(self.names().user.clone()), |o| self.role(o))?;
        let (id, schema) = (self.new_descriptor_id(), self.new_descriptor_id());
        self.put(Database {
            id,
            name: new.name.to_string(),
            primary_region,
            is_multi_region: new.primary_region.is_some(),
            regions,
            survival,
            owner,
            comment: None,
        });
        self.put(bootstrap::public_schema(schema, id));
        Ok(())
    }

    /// The primary region and all regions, sorted, each one live.
    fn regions_of(&self, new: &NewDatabase) -> Result<(String, Vec<String>)> {
        let Some(primary) = new.primary_region else {
            return match new.regions {
                [] => Ok((self.context.gateway_region.to_string(), vec![self.context.gateway_region.to_string()])),
                _ => Err(Error::sql("42P12", "PRIMARY REGION must be specified if REGIONS are specified")),
            };
        };
        let mut regions = BTreeSet::from([primary.to_string()]);
        self.check_region(primary)?;
        let mut named = BTreeSet::new();
        for region in new.regions {
            self.check_region(region)?;
            if !named.insert(region) {
                return Err(Error::sql("42602", format!("region \"{region}\" defined multiple times")));
            }
            regions.insert(region.clone());
        }
        Ok((primary.to_string(), regions.into_iter().collect()))
    }

    /// 42602 if no live node is in the region, as CockroachDB has it.
    fn check_region(&self, region: &str) -> Result<()> {
        let live: BTreeSet<&str> = self.context.nodes.iter().filter(|n| n.is_live).map(|n| n.region.as_str()).collect();
        if live.contains(region) {
            return Ok(());
        }
        let valid = live.into_iter().collect::<Vec<_>>().join(", ");
        Err(Error::sql("42602", format!("region \"{region}\" does not exist")).hint(format!("valid regions: {valid}")))
    }

    pub(super) fn alter_database(&mut self, name: &str, action: &AlterDatabase) -> Result<()> {
        let mut database = self.catalog.database(name)?.clone();
        match action {
            AlterDatabase::Rename(new) => {
                if database.name == self.names().database {
                    return Err(Error::unsupported("current database cannot be renamed"));
                }
                if self.catalog.find_database(new).is_some() {
                    return Err(Error::sql("42P04", format!("database \"{new}\" already exists")));
                }
                database.name = new.clone();
            }
            AlterDatabase::Owner(role) => database.owner = self.role(role)?,
            AlterDatabase::AddRegion { region, if_not_exists } => {
                self.check_region(region)?;
                self.check_multi_region(&database)?;
                if database.regions.contains(region) {
                    let message = format!("region \"{region}\" already added to database");
                    if !if_not_exists {
                        return Err(Error::sql("42710", message));
                    }
                    self.notice("42710", format!("{message}, skipping"));
                    return Ok(());
                }
                self.check_regions_free(&database)?;
                database.regions.push(region.clone());
                database.regions.sort();
            }
            AlterDatabase::DropRegion { region, if_exists } => {
                self.check_multi_region(&database)?;
                if !database.regions.contains(region) {
                    let message = format!("region \"{region}\" has not been added to database \"{name}\"");
                    if !if_exists {
                        return Err(Error::sql("42704", message));
                    }
                    self.notice("42704", format!("{message}, skipping"));
                    return Ok(());
                }
                if *region == database.primary_region {
                    return Err(Error::sql("42P12", format!("cannot drop region \"{region}\""))
                        .detail("It is the primary region of the database.")
                        .hint("ALTER DATABASE … SET PRIMARY REGION designates another one."));
                }
                self.check_regions_free(&database)?;
                database.regions.retain(|r| r != region);
            }
            AlterDatabase::SetPrimaryRegion(region) => {
                self.check_region(region)?;
                if database.is_multi_region && !database.regions.contains(region) {
                    return Err(Error::sql("42602", format!("region \"{region}\" has not been added to the database"))
                        .hint("ALTER DATABASE … ADD REGION adds it."));
                }
                self.check_regions_free(&database)?;
                if !database.is_multi_region {
                    database.regions = vec![region.clone()];
                }
                database.primary_region = region.clone();
                database.is_multi_region = true;
            }
            AlterDatabase::Survive(goal) => {
                self.check_multi_region(&database)?;
                self.check_regions_free(&database)?;
                database.survival = match goal {
                    Survive::ZoneFailure => Survival::Zone,
                    Survive::RegionFailure => {
                        check_survives_region(&database.regions)?;
                        Survival::Region
                    }
                };
            }
            AlterDatabase::Set { .. } => {
                return Err(Error::unsupported("settings of a database are not supported yet")
                    .hint("SET changes a setting for the session."));
            }
        }
        self.put(database);
        Ok(())
    }

    fn check_multi_region(&self, database: &Database) -> Result<()> {
        if database.is_multi_region {
            return Ok(());
        }
        Err(Error::sql("42P12", format!("database \"{}\" has no primary region", database.name))
            .hint("ALTER DATABASE … SET PRIMARY REGION makes it a multi-region database."))
    }

    /// Changing the regions of a database that has data moves replicas, which needs a job that does not exist yet.
    fn check_regions_free(&self, database: &Database) -> Result<()> {
        let has_data = self.catalog.descriptors.values().any(|d| {
            matches!(&**d, Descriptor::Table(_) | Descriptor::Sequence(_))
                && self.catalog.schema_by_id(d.parent()).is_some_and(|s| s.database == database.id)
        });
        if has_data {
            return Err(Error::unsupported("changing the regions of a database that has tables is not supported yet")
                .hint("Name all regions when creating the database, or change them before creating tables."));
        }
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
        if name == self.names().database {
            return Err(Error::sql("55006", "cannot drop the currently open database"));
        }
        let id = database.id;
        let schemas: Vec<DescriptorId> = self.catalog.schemas(id).map(|s| s.id).collect();
        for schema in schemas {
            self.drop_schema_contents(schema)?;
            self.delete(schema);
        }
        self.delete(id);
        Ok(())
    }

    pub(super) fn create_schema(&mut self, name: &SchemaName, if_not_exists: bool) -> Result<()> {
        let (name, owner) = match name {
            SchemaName::Simple(name) => (Name::from_ast(name)?, None),
            SchemaName::UnnamedAuthorization(role) => (Name::bare(&fold(role)), Some(fold(role))),
            SchemaName::NamedAuthorization(name, role) => (Name::from_ast(name)?, Some(fold(role))),
        };
        let owner = owner.map_or_else(|| Ok(self.names().user.clone()), |o| self.role(&o))?;
        let database = self.catalog.database(name.schema.as_deref().unwrap_or(&self.names().database))?.id;
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
        self.put(Schema { id, database, name, owner, comment: None });
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
        for operation in &alter.operations {
            match operation {
                AlterSchemaOperation::Rename { name } => {
                    let new = Name::from_ast(name)?.name;
                    if self.catalog.find_schema(schema.database, &new).is_some() || system::is_system_schema(&new) {
                        return Err(Error::sql("42P06", format!("schema \"{new}\" already exists")));
                    }
                    schema.name = new;
                }
                AlterSchemaOperation::OwnerTo { owner } => schema.owner = self.owner(owner)?,
                _ => return Err(Error::unsupported("this form of ALTER SCHEMA is not supported")),
            }
        }
        self.put(schema);
        Ok(())
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
        self.drop_schema_contents(schema)?;
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
        Descriptor::Group(_) => "group",
    }
}

/// Losing one of two regions loses a majority or leaves a single copy.
fn check_survives_region(regions: &[String]) -> Result<()> {
    if regions.len() >= REGIONS_TO_SURVIVE_ONE {
        return Ok(());
    }
    Err(Error::sql("42P12", "at least 3 regions are required for surviving a region failure")
        .detail(format!("The database has {}: {}.", regions.len(), regions.join(", ")))
        .hint("ALTER DATABASE … ADD REGION adds one."))
}

/// Design: replication, groups and placement.
const REGIONS_TO_SURVIVE_ONE: usize = 3;
