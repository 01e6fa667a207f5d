//! A database's regions: which there are, which is the primary one, what its data survives.
//!
//! What holds its rows are groups, and a group belongs to one database; so a change of regions is
//! one step that replaces the database and all its groups ([`with_groups`]). From then on their
//! primaries move the replicas, by themselves and online, to where placement wants them; a job
//! watches that, and the statement waits a while with it ([`Job::AwaitPlacement`]). No row is
//! rewritten: tables that live in the primary region have a group of their own that follows it.
//!
//! Only dropping a region takes two steps. It is marked first, so that nothing new is homed there;
//! when nothing is, it goes, and if something is, the mark goes ([`Job::DropRegion`]).
//!
//! Names, conditions and messages are CockroachDB's.

use super::Deriver;
use super::locality::new_group;
use super::refuse::refuse_in_change;
use crate::catalog::job::Job;
use crate::catalog::names::Names;
use crate::catalog::{Catalog, CatalogChange, Column, ColumnState, Database, Descriptor, GroupKind, Homes, Locality, Partition};
use crate::parse::{AlterDatabase, DataPlacement, NewRegions, Survive, parse_one_statement};
use crate::plan::{PlanContext, TablePlan, prepare};
use crate::types::{EvalContext, Type};
use meridian_base::{Error, GroupId, Result};
use meridian_placement::Survival;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Design: replication, groups and placement. Losing one of two regions loses a majority or leaves
/// a single copy.
const REGIONS_TO_SURVIVE_ONE: usize = 3;

impl Deriver<'_> {
    /// A new database with the regions it was created with.
    pub(super) fn with_new_regions(&self, mut database: Database, new: &NewRegions) -> Result<Database> {
        let Some(primary) = &new.primary else {
            let without = [
                (!new.others.is_empty(), "REGIONS are"),
                (new.survive.is_some(), "SURVIVE is"),
                (new.placement.is_some(), "PLACEMENT is"),
                (new.secondary.is_some(), "SECONDARY REGION is"),
            ];
            return match without.iter().find(|(said, _)| *said) {
                Some((_, what)) => Err(Error::sql("42P12", format!("PRIMARY REGION must be specified if {what} specified"))),
                None => Ok(database),
            };
        };
        self.check_region(primary)?;
        let mut named = BTreeSet::new();
        for region in &new.others {
            self.check_region(region)?;
            if !named.insert(region.clone()) {
                return Err(Error::sql("42602", format!("region \"{region}\" defined multiple times")));
            }
        }
        named.insert(primary.clone());
        database.primary_region = primary.clone();
        database.is_multi_region = true;
        database.regions = named.into_iter().collect();
        if let Some(placement) = new.placement {
            restrict(&mut database, placement)?;
        }
        if let Some(goal) = new.survive {
            survive(&mut database, goal)?;
        }
        if let Some(secondary) = &new.secondary {
            set_secondary(&mut database, secondary)?;
        }
        Ok(database)
    }

    pub(super) fn alter_regions(&mut self, mut database: Database, action: &AlterDatabase) -> Result<()> {
        let id = database.id;
        if let Some(region) = database.dropping.first() {
            return Err(Error::sql("55006", format!("region \"{region}\" of database \"{}\" is being dropped", database.name))
                .hint("SHOW JOBS shows the statement that does it; try again when it is done."));
        }
        for table in self.catalog.tables_of(id) {
            refuse_in_change(&table)?;
        }
        match action {
            AlterDatabase::AddRegion { region, if_not_exists } => {
                if !self.add_region(&mut database, region, *if_not_exists)? {
                    return Ok(());
                }
            }
            AlterDatabase::DropRegion { region, if_exists } => return self.drop_region(database, region, *if_exists),
            AlterDatabase::SetPrimaryRegion(region) => self.set_primary(&mut database, region)?,
            AlterDatabase::SetSecondaryRegion(region) => {
                check_has_regions(&database, "a secondary region")?;
                set_secondary(&mut database, region)?;
            }
            AlterDatabase::DropSecondaryRegion { if_exists } => {
                if database.secondary_region.take().is_none() {
                    let message = format!("database \"{}\" doesn't have a secondary region defined", database.name);
                    if !if_exists {
                        return Err(Error::sql("42P12", message));
                    }
                    self.notice("42P12", format!("{message}, skipping"));
                    return Ok(());
                }
            }
            AlterDatabase::Survive(goal) => {
                check_has_regions(&database, "a survival goal")?;
                survive(&mut database, *goal)?;
            }
            AlterDatabase::Placement(placement) => {
                check_has_regions(&database, "a placement policy")?;
                restrict(&mut database, *placement)?;
            }
            AlterDatabase::Rename(_) | AlterDatabase::Owner(_) | AlterDatabase::ConnectionLimit | AlterDatabase::Set { .. } => {
                return Err(Error::internal("not about regions"));
            }
        }
        self.put_with_groups(database);
        self.jobs.push(Job::AwaitPlacement { database: id });
        Ok(())
    }

    fn put_with_groups(&mut self, database: Database) {
        let change = with_groups(&self.catalog, database, self.change.next_id);
        self.change.next_id = change.next_id;
        let leaving = change.leaving();
        change.put.into_iter().for_each(|d| self.put(d));
        if !leaving.is_empty() {
            self.jobs.push(Job::RemoveGroups { groups: leaving });
        }
    }

    /// Whether there is anything to do.
    fn add_region(&mut self, database: &mut Database, region: &str, if_not_exists: bool) -> Result<bool> {
        if !database.is_multi_region {
            let (name, hint) = (&database.name, "you must add a PRIMARY REGION first using ALTER DATABASE");
            return Err(Error::sql("42P12", format!("cannot add region \"{region}\" to database \"{name}\""))
                .detail("The database has no primary region.")
                .hint(format!("{hint} {name} PRIMARY REGION \"{region}\"")));
        }
        if database.regions.iter().any(|r| r == region) {
            let message = format!("region \"{region}\" already added to database");
            if !if_not_exists {
                return Err(Error::sql("42710", message));
            }
            self.notice("42710", format!("{message}, skipping"));
            return Ok(false);
        }
        self.check_region(region)?;
        database.regions.push(region.to_string());
        database.regions.sort();
        Ok(true)
    }

    fn set_primary(&mut self, database: &mut Database, region: &str) -> Result<()> {
        if database.is_multi_region && !database.regions.iter().any(|r| r == region) {
            return Err(not_added(database, region).hint(format!(
                "you must add the region to the database before setting it as primary region, using ALTER DATABASE {} ADD REGION \"{region}\"",
                database.name
            )));
        }
        self.check_region(region)?;
        if !database.is_multi_region {
            database.regions = vec![region.to_string()];
            database.is_multi_region = true;
        }
        if database.secondary_region.as_deref() == Some(region) {
            return Err(Error::sql("42P12", format!("region \"{region}\" is currently the secondary region")).hint(format!(
                "you must drop the secondary region first using ALTER DATABASE {} DROP SECONDARY REGION",
                database.name
            )));
        }
        database.primary_region = region.to_string();
        Ok(())
    }

    fn drop_region(&mut self, mut database: Database, region: &str, if_exists: bool) -> Result<()> {
        let name = &database.name;
        if !database.is_multi_region || !database.regions.iter().any(|r| r == region) {
            let (state, message) = match database.is_multi_region {
                true => ("42704", format!("region \"{region}\" has not been added to database \"{name}\"")),
                false => ("42P12", "database has no regions to drop".to_string()),
            };
            if !if_exists {
                return Err(Error::sql(state, message));
            }
            self.notice(state, format!("{message}, skipping"));
            return Ok(());
        }
        let refused = |hint: String| Err(Error::sql("42P12", format!("cannot drop region \"{region}\"")).hint(hint));
        if database.primary_region == region && database.regions.len() > 1 {
            return refused(format!(
                "You must designate another region as the primary region using ALTER DATABASE {name} PRIMARY REGION <region name> or remove all other regions before attempting to drop region \"{region}\""
            ));
        }
        if database.secondary_region.as_deref() == Some(region) {
            return refused(format!(
                "You must designate another region as the secondary region using ALTER DATABASE {name} SECONDARY REGION <region name> or remove the secondary region using ALTER DATABASE {name} DROP SECONDARY REGION"
            ));
        }
        if database.survival == Survival::Region {
            check_survives_region(database.regions.len() - 1, name)?;
        }
        self.check_nothing_is_homed_in(&database, region)?;
        if database.primary_region == region {
            // The last one: the database has no regions from then on, and its data stays where it
            // is.
            self.check_no_column_is_a_region(&database, region)?;
            database.is_multi_region = false;
            database.survival = Survival::Zone;
            self.put_with_groups(database);
            return Ok(());
        }
        self.check_nothing_names(&database, region)?;
        database.dropping.push(region.to_string());
        let id = database.id;
        self.put_with_groups(database);
        self.jobs.push(Job::DropRegion { database: id, region: region.to_string() });
        self.jobs.push(Job::AwaitPlacement { database: id });
        Ok(())
    }

    /// 2BP01 if a table names the region as its home. Rows that do are looked for by the job.
    fn check_nothing_is_homed_in(&self, database: &Database, region: &str) -> Result<()> {
        let is_here = |schema| self.catalog.schema_by_id(schema).is_some_and(|s| s.database == database.id);
        for d in self.catalog.descriptors.values() {
            if let Descriptor::Table(t) = &**d
                && t.locality == Locality::RegionalByTableIn(region.to_string())
                && is_here(t.schema)
            {
                let message =
                    format!("could not remove enum value \"{region}\" as it is the home region for table \"{}\"", t.name);
                return Err(Error::sql("2BP01", message).table(t.name.clone()).hint(format!(
                    "Move the table with ALTER TABLE {} SET LOCALITY, or drop it, before dropping the region.",
                    t.name
                )));
            }
        }
        Ok(())
    }

    /// 2BP01 if an expression of a table or a view needs the region: without it the table could be
    /// neither read nor written.
    fn check_nothing_names(&self, database: &Database, region: &str) -> Result<()> {
        let mut without = database.clone();
        without.regions.retain(|r| r != region);
        let mut catalog = self.catalog.clone();
        let version = catalog.version;
        catalog.put(Descriptor::Database(without), version);
        let catalog = Arc::new(catalog);
        let names = Names { database: database.name.clone(), ..self.names().clone() };
        let eval = EvalContext { catalog: catalog.clone(), database: (&*database.name).into(), ..self.context.eval.clone() };
        let context = PlanContext { catalog: &catalog, names: &names, eval: &eval };
        let is_lost = |e: &Error| e.sqlstate() == "22P02";
        let used = |kind: &str, by: &str| {
            let message = format!("could not remove enum value \"{region}\" as it is being used by {kind} \"{by}\"");
            Error::sql("2BP01", message).hint("Change the expressions that name the region before dropping it.")
        };
        for table in self.catalog.tables_of(database.id) {
            let of_regions = table.columns.iter().filter(|c| c.state != ColumnState::Dropped && c.ty == Type::Region);
            let texts = of_regions.flat_map(|c| [&c.default, &c.generated, &c.on_update]).flatten();
            for text in texts {
                if crate::catalog::expression::has_literal(text, region)? {
                    return Err(used("an expression of table", &table.name).table(table.name.clone()));
                }
            }
            if TablePlan::new(&table, context).is_err_and(|e| is_lost(&e)) {
                return Err(used("an expression of table", &table.name).table(table.name.clone()));
            }
        }
        for d in self.catalog.descriptors.values() {
            if let Descriptor::View(view) = &**d
                && self.catalog.schema_by_id(view.schema).is_some_and(|s| s.database == database.id)
                && prepare(&parse_one_statement(&view.query)?, &context, &[]).is_err_and(|e| is_lost(&e))
            {
                return Err(used("view", &view.name));
            }
        }
        Ok(())
    }

    /// 2BP01 if a table has a column of regions: where there are none, it could be neither read nor
    /// written.
    fn check_no_column_is_a_region(&self, database: &Database, region: &str) -> Result<()> {
        for table in self.catalog.tables_of(database.id) {
            let is_region =
                |c: &&Column| c.state != ColumnState::Dropped && (c.ty == Type::Region || c.ty == Type::Region.array_of());
            if let Some(column) = table.columns.iter().find(is_region) {
                let message = format!(
                    "cannot drop region \"{region}\" because column \"{}\" of table \"{}\" has regions as values",
                    column.name, table.name
                );
                return Err(Error::sql("2BP01", message)
                    .table(table.name.clone())
                    .column(column.name.clone())
                    .hint("Change the table's locality if it is REGIONAL BY ROW, and drop the column."));
            }
        }
        Ok(())
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
}

/// The change that gives a database these regions, its groups the homes, regions and goals that
/// follow, its `REGIONAL BY ROW` tables a partition in each region, and its escrow columns a site.
/// That it is one step is enough: a transaction with the version before commits below it, and a
/// read at or above it knows all partitions and sites.
pub(crate) fn with_groups(catalog: &Catalog, database: Database, next_id: u32) -> CatalogChange {
    let mut change = CatalogChange { next_id, ..CatalogChange::default() };
    let mut homes: BTreeMap<String, GroupId> = BTreeMap::new();
    for before in catalog.groups_of(database.id) {
        let mut group = before.clone();
        let follows = group.kind.follows_primary();
        if !follows && !database.regions.contains(&group.home) {
            change.put.push(Descriptor::Leaving(group));
            continue;
        }
        group.regions = database.regions.clone();
        group.survival = database.survival;
        group.secondary = database.secondary_region.clone();
        match follows {
            true => group.home = database.primary_region.clone(),
            false => drop(homes.insert(group.home.clone(), group.id)),
        }
        if group != *before {
            change.put.push(Descriptor::Group(group));
        }
    }
    let mut home_of = |region: &str, change: &mut CatalogChange| {
        *homes.entry(region.to_string()).or_insert_with(|| {
            let id = GroupId(change.next_id);
            change.next_id += 1;
            change.put.push(Descriptor::Group(new_group(id, &database, region, GroupKind::Home)));
            id
        })
    };
    let mut tables = Vec::new();
    for before in catalog.tables_of(database.id) {
        let mut table = (*before).clone();
        if let Homes::ByRow(partitions) = &mut table.homes {
            *partitions = Vec::with_capacity(database.regions.len());
            for region in &database.regions {
                let group = home_of(region, &mut change);
                partitions.push(Partition { region: region.clone(), group, is_closing: database.dropping.contains(region) });
            }
        }
        for column in &mut table.escrow {
            let home = |site: &GroupId| match catalog.group_by_id(*site)? {
                group if group.kind.follows_primary() => Some(database.primary_region.clone()),
                group => Some(group.home.clone()),
            };
            column.sites.retain(|site| home(site).is_some_and(|home| database.regions.contains(&home)));
            let missing = database.regions.iter().filter(|r| !column.sites.iter().any(|site| home(site).as_ref() == Some(r)));
            let missing: Vec<GroupId> = missing.map(|region| home_of(region, &mut change)).collect();
            column.sites.extend(missing);
            column.closing = crate::catalog::escrow_tables::closing(catalog, &database, &column.sites);
        }
        if table != *before {
            tables.push(Descriptor::Table(table));
        }
    }
    change.put.extend(tables);
    change.put.push(Descriptor::Database(database));
    change
}

fn not_added(database: &Database, region: &str) -> Error {
    Error::sql("42602", format!("region \"{region}\" has not been added to database \"{}\"", database.name))
}

fn check_has_regions(database: &Database, what: &str) -> Result<()> {
    if database.is_multi_region {
        return Ok(());
    }
    Err(Error::sql("42602", format!("database must have associated regions before {what} can be set")).hint(format!(
        "you must first add a primary region to the database using ALTER DATABASE {} PRIMARY REGION <region_name>",
        database.name
    )))
}

fn survive(database: &mut Database, goal: Survive) -> Result<()> {
    match goal {
        Survive::ZoneFailure if database.survival == Survival::Restricted => {}
        Survive::ZoneFailure => database.survival = Survival::Zone,
        Survive::RegionFailure => {
            if database.survival == Survival::Restricted {
                return Err(restricted_and_region());
            }
            check_survives_region(database.regions.len(), &database.name)?;
            database.survival = Survival::Region;
        }
    }
    Ok(())
}

fn restrict(database: &mut Database, placement: DataPlacement) -> Result<()> {
    database.survival = match (placement, database.survival) {
        (DataPlacement::Restricted, Survival::Region) => return Err(restricted_and_region()),
        (DataPlacement::Restricted, _) => Survival::Restricted,
        (DataPlacement::Default, Survival::Restricted) => Survival::Zone,
        (DataPlacement::Default, other) => other,
    };
    Ok(())
}

fn restricted_and_region() -> Error {
    Error::sql("22023", "a region-survivable database cannot also have a restricted placement policy")
        .detail("Surviving the loss of a region takes copies outside the home region, and RESTRICTED forbids them.")
}

fn set_secondary(database: &mut Database, region: &str) -> Result<()> {
    if !database.regions.iter().any(|r| r == region) {
        return Err(not_added(database, region).hint(format!(
            "you must add the region to the database before setting it as secondary region, using ALTER DATABASE {} ADD REGION \"{region}\"",
            database.name
        )));
    }
    if database.primary_region == region {
        return Err(Error::sql("42P12", "the secondary region cannot be the same as the current primary region"));
    }
    database.secondary_region = Some(region.to_string());
    Ok(())
}

fn check_survives_region(regions: usize, database: &str) -> Result<()> {
    if regions >= REGIONS_TO_SURVIVE_ONE {
        return Ok(());
    }
    Err(Error::sql("22023", "at least 3 regions are required for surviving a region failure").hint(format!(
        "you must add additional regions to the database using ALTER DATABASE {database} ADD REGION <region_name>, or change the survivability goal"
    )))
}
