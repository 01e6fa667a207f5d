//! Localities: which groups a table's rows live in, and the column that says which one
//! (CockroachDB's multi-region paper, §2.3).
//!
//! A `REGIONAL BY ROW` table has a partition in the group of each of its database's regions. The
//! column that names a row's region is one of the table's own (`AS column`, or a declared
//! `crdb_region`), or a hidden one that new rows fill with the region of the gateway they come
//! through. A `GLOBAL` table lives in a group of its database's own for such tables.

use super::Deriver;
use super::refuse::refuse_in_change;
use crate::catalog::job::Job;
use crate::catalog::{
    self, Column, ColumnState, Database, Descriptor, Group, GroupKind, Homes, IndexState, Move, MoveState, Partition, Table,
};
use crate::catalog::{REGION_COLUMN, REGION_DEFAULT, being_dropped};
use crate::parse::Locality;
use crate::parse::fold;
use crate::types::Type;
use meridian_base::{DescriptorId, Error, GroupId, Result};
use sqlparser::ast::{Expr, ObjectName, SqlOption, Value};

impl Deriver<'_> {
    /// The group for rows that name a region of a database as their home: shared by all its tables
    /// (docs/design/differences.md).
    pub(super) fn group_for(&mut self, database: &Database, home: &str) -> GroupId {
        self.group_of(database, home, GroupKind::Home)
    }
    /// The group for what lives in the primary region of a database, wherever that is.
    pub(super) fn primary_group(&mut self, database: &Database) -> GroupId {
        self.group_of(database, &database.primary_region, GroupKind::Primary)
    }
    /// The group of a database's GLOBAL tables.
    fn global_group(&mut self, database: &Database) -> GroupId {
        self.group_of(database, &database.primary_region, GroupKind::Global)
    }
    pub(super) fn is_global(&self, group: GroupId) -> bool {
        let descriptor = self.catalog.descriptors.get(&DescriptorId(group.0));
        descriptor.is_some_and(|d| matches!(&**d, Descriptor::Group(g) if g.kind == GroupKind::Global))
    }
    fn group_of(&mut self, database: &Database, home: &str, kind: GroupKind) -> GroupId {
        let found = self.catalog.groups_of(database.id).find(|g| g.home == home && g.kind == kind).map(|g| g.id);
        found.unwrap_or_else(|| {
            let id = GroupId(self.new_id());
            self.put(Descriptor::Group(new_group(id, database, home, kind)));
            id
        })
    }

    /// The groups that a locality means in a database.
    pub(super) fn homes(&mut self, database: &Database, locality: Option<&Locality>) -> Result<Homes> {
        check_allowed(database, locality)?;
        Ok(match locality {
            None | Some(Locality::RegionalByTable(None)) => Homes::One(self.primary_group(database)),
            Some(Locality::RegionalByTable(Some(region))) => Homes::One(self.group_for(database, region)),
            Some(Locality::Global) => Homes::One(self.global_group(database)),
            Some(Locality::RegionalByRow(_)) => {
                let partition = |region: &String| Partition {
                    region: region.clone(),
                    group: self.group_for(database, region),
                    is_closing: database.dropping.contains(region),
                };
                Homes::ByRow(database.regions.iter().map(partition).collect())
            }
        })
    }

    /// The locality as the descriptor has it. A `REGIONAL BY ROW` table gets its region column if
    /// it has none.
    pub(super) fn settled_locality(&mut self, table: &mut Table, locality: Option<&Locality>) -> Result<catalog::Locality> {
        Ok(match locality {
            None | Some(Locality::RegionalByTable(None)) => catalog::Locality::RegionalByTable,
            Some(Locality::RegionalByTable(Some(region))) => catalog::Locality::RegionalByTableIn(region.clone()),
            Some(Locality::Global) => catalog::Locality::Global,
            Some(Locality::RegionalByRow(name)) => {
                let rehomes = self.context.eval.system.setting("enable_auto_rehoming").as_deref() == Some("on");
                let column = region_column(table, name.as_deref(), rehomes)?;
                table.columns[column as usize].not_null = true;
                catalog::Locality::RegionalByRow { column }
            }
        })
    }

    /// `ALTER TABLE … SET LOCALITY`.
    pub(super) fn set_locality(&mut self, name: &ObjectName, if_exists: bool, locality: &Locality) -> Result<()> {
        let Some(table) = self.table_if_exists(name, if_exists)? else { return Ok(()) };
        self.must_own(table.id)?;
        let database = self.database_of(table.schema)?;
        let mut table = (*table).clone();
        refuse_in_change(&table)?;
        super::columns::refuse_filling(&table)?;
        let homes = self.homes(&database, Some(locality))?;
        let columns = table.columns.len();
        let was_not_null: Vec<bool> = table.columns.iter().map(|c| c.not_null).collect();
        let settled = self.settled_locality(&mut table, Some(locality))?;
        if self.is_private(table.id) || (homes == table.homes && settled == table.locality) || is_renamed(&table, &homes) {
            (table.locality, table.homes) = (settled, homes);
        } else {
            if let catalog::Locality::RegionalByRow { column } = settled
                && was_not_null.get(column as usize) == Some(&false)
            {
                let name = &table.columns[column as usize].name;
                return Err(Error::sql("42P16", format!("column \"{name}\" in REGIONAL BY ROW AS must be NOT NULL"))
                    .hint("ALTER TABLE … ALTER COLUMN … SET NOT NULL."));
            }
            // What drops a region knows the homes that tables have, and not those that they are
            // moved to.
            if let Some(region) = database.dropping.first() {
                return Err(being_dropped(region));
            }
            if let Some(index) = table.indexes.iter().find(|i| i.state != IndexState::Public) {
                return Err(Error::sql("55000", format!("index \"{}\" of table \"{}\" is being built", index.name, table.name))
                    .hint("Change the locality when it is done."));
            }
            // The job that moves them goes through the rows where they are.
            if let Some(column) = table.escrow.iter().find(|column| column.before.is_some()) {
                let name = &table.columns[column.ordinal as usize].name;
                return Err(Error::sql("55006", format!("the bounds of column \"{name}\" are being changed"))
                    .table(&table.name)
                    .hint("SHOW JOBS shows the statement that does it."));
            }
            // Rows that are there already are the primary region's.
            let added_column = (table.columns.len() > columns).then_some(columns as u32);
            if let Some(column) = added_column {
                table.columns[column as usize].missing = Some(database.primary_region.clone());
            }
            let indexes: Vec<u32> = table.indexes.iter().map(|_| self.new_id()).collect();
            let state = MoveState::DeleteOnly;
            table.moving = Some(Move { homes, locality: settled, indexes: indexes.clone(), state });
            self.jobs.push(Job::Move { table: table.id, indexes, added_column });
        }
        let id = table.id;
        self.put(table);
        self.check_expressions(id)
    }
}

/// A group that a database needs.
pub(super) fn new_group(id: GroupId, database: &Database, home: &str, kind: GroupKind) -> Group {
    Group {
        id,
        database: database.id,
        home: home.to_string(),
        kind,
        regions: database.regions.clone(),
        survival: database.survival,
        secondary: database.secondary_region.clone(),
        initial_voters: Vec::new(),
    }
}

/// Whether only the words change: `IN PRIMARY REGION` and `IN` that region.
fn is_renamed(table: &Table, homes: &Homes) -> bool {
    matches!((&table.homes, homes), (Homes::One(here), Homes::One(there)) if here == there)
}

/// 42P16 in a database without regions, 42602 for a region that is not one of its own.
fn check_allowed(database: &Database, locality: Option<&Locality>) -> Result<()> {
    let Some(locality) = locality else { return Ok(()) };
    if !database.is_multi_region {
        return Err(Error::sql("42P16", "cannot set LOCALITY on a table in a database that is not multi-region enabled")
            .hint("CREATE DATABASE … PRIMARY REGION makes a multi-region database."));
    }
    match locality {
        Locality::RegionalByTable(Some(region)) if database.dropping.contains(region) => Err(being_dropped(region)),
        Locality::RegionalByTable(Some(region)) if !database.regions.contains(region) => {
            Err(Error::sql("42602", format!("region \"{region}\" has not been added to database \"{}\"", database.name))
                .hint(format!("valid regions: {}", database.regions.join(", "))))
        }
        _ => Ok(()),
    }
}

/// The column of `AS`, or `crdb_region`, which is added if it is not there: with
/// `enable_auto_rehoming`, one that follows updates.
fn region_column(table: &mut Table, named: Option<&str>, rehomes: bool) -> Result<u32> {
    let name = named.unwrap_or(REGION_COLUMN);
    let Some((ordinal, column)) = table.column(name) else {
        if named.is_some() {
            return Err(Error::sql("42703", format!("column \"{name}\" in REGIONAL BY ROW AS does not exist")));
        }
        table.columns.push(Column {
            name: REGION_COLUMN.into(),
            ty: Type::Region,
            not_null: true,
            default: Some(REGION_DEFAULT.into()),
            generated: None,
            on_update: rehomes.then(|| "rehome_row()".to_string()),
            identity: None,
            missing: None,
            is_hidden: true,
            state: ColumnState::Public,
            comment: None,
        });
        return Ok(table.columns.len() as u32 - 1);
    };
    if column.ty != Type::Region {
        return Err(Error::sql(
            "42P16",
            format!("cannot use column \"{name}\" which has type {} in REGIONAL BY ROW", column.ty.name()),
        )
        .detail("REGIONAL BY ROW must reference a column of type crdb_internal_region."));
    }
    Ok(ordinal)
}

/// The storage parameter that names the foreign key to infer regions by.
pub(super) const INFERENCE: &str = "infer_rbr_region_col_using_constraint";

/// Sets, or with an empty name takes back, the foreign key whose parents tell the regions of new
/// rows.
pub(super) fn set_inference(table: &mut Table, options: &[SqlOption]) -> Result<()> {
    for option in options {
        let SqlOption::KeyValue { key, value } = option else { continue };
        if fold(key) != INFERENCE {
            continue;
        }
        let name = match value {
            Expr::Value(v) => match &v.value {
                Value::SingleQuotedString(name) => name.clone(),
                _ => return Err(Error::sql("22023", format!("invalid value for \"{INFERENCE}\": {value}"))),
            },
            Expr::Identifier(name) => fold(name),
            _ => return Err(Error::sql("22023", format!("invalid value for \"{INFERENCE}\": {value}"))),
        };
        table.infers_region_by = if name.is_empty() { None } else { Some(inferring(table, &name)?) };
    }
    Ok(())
}

fn inferring(table: &Table, name: &str) -> Result<DescriptorId> {
    let Some(region) = table.region_column() else {
        return Err(Error::sql("42P16", format!("{INFERENCE} can only be set on REGIONAL BY ROW tables")));
    };
    let fk = table.foreign_keys.iter().find(|f| f.name == name).ok_or_else(|| {
        Error::sql("42704", format!("foreign key constraint \"{name}\" of relation \"{}\" does not exist", table.name))
    })?;
    if !fk.columns.contains(&region) || fk.columns.len() < 2 {
        let column = &table.columns[region as usize].name;
        return Err(Error::sql(
            "42P16",
            format!("foreign key constraint \"{name}\" does not include the region column \"{column}\""),
        )
        .hint("Regions are inferred by a key over the region column and others."));
    }
    Ok(fk.id)
}

/// 42P10 for a change that would leave the rows of a table without a home.
pub(super) fn refuse_region_column(table: &Table, ordinal: u32, what: &str) -> Result<()> {
    if table.region_column() != Some(ordinal) {
        return Ok(());
    }
    let name = &table.columns[ordinal as usize].name;
    Err(Error::sql(
        "42P10",
        format!("cannot {what} column \"{name}\" as it is used to store the region in a REGIONAL BY ROW table"),
    )
    .hint("Change the table's locality first."))
}
