//! `SHOW ZONE CONFIGURATION`: where replicas belong, in CockroachDB's words. It is derived from
//! regions, survival goals and localities; nobody configures it.

use super::names::{Name, Names};
use super::{Catalog, Database, Group, GroupKind, Table};
use crate::parse::ShowOf;
use crate::parse::ast::{Ident, ObjectName};
use crate::types::functions::text::quote_ident as quote;
use meridian_base::{GroupId, Result};
use meridian_placement::Survival;
use std::collections::BTreeMap;
use std::fmt::Write;

/// What holds for a database or a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// `DATABASE movr`, `TABLE movr.public.users`.
    pub target: String,
    replicas: usize,
    voters: usize,
    /// How many replicas each region has at least.
    regions: BTreeMap<String, usize>,
    /// How many voters regions have at least.
    voting: BTreeMap<String, usize>,
    /// Where primaries are wished for, best first.
    primaries: Vec<String>,
    /// The rows of GLOBAL tables: read at present time in every region.
    is_global: bool,
}

/// The configurations that a SHOW is about, databases by name, each before its tables.
pub fn configurations(catalog: &Catalog, names: &Names, of: &ShowOf) -> Result<Vec<Zone>> {
    match of {
        ShowOf::Cluster => {
            let mut databases: Vec<&Database> = catalog.databases().collect();
            databases.sort_by_key(|d| &d.name);
            Ok(databases.into_iter().flat_map(|d| of_database(catalog, d)).collect())
        }
        ShowOf::Database(name) => {
            let database = catalog.database(name.as_ref().unwrap_or(&names.database))?;
            Ok(vec![Zone::of_database(database)])
        }
        ShowOf::Table(path) => {
            let name = ObjectName::from(path.iter().map(|p| Ident::with_quote('"', p)).collect::<Vec<_>>());
            let table = catalog.table(names, &Name::from_ast(&name)?)?;
            Ok(of_table(catalog, &table).into_iter().collect())
        }
    }
}

/// The database's own, and those of its tables that differ.
fn of_database(catalog: &Catalog, database: &Database) -> Vec<Zone> {
    let mut zones = vec![Zone::of_database(database)];
    for schema in catalog.schemas(database.id) {
        let tables = catalog.descriptors.values().filter(|d| d.parent() == schema.id);
        let tables = tables.filter_map(|d| catalog.table_by_id(d.id()));
        let of_tables = tables.flat_map(|t| of_table(catalog, &t));
        zones.extend(of_tables.filter(|z| !z.says_the_same_as(&zones[0])).collect::<Vec<_>>());
    }
    zones
}

/// What holds for a table, or for each partition of one.
fn of_table(catalog: &Catalog, table: &Table) -> Vec<Zone> {
    let Some(schema) = catalog.schema_by_id(table.schema) else { return Vec::new() };
    let Some(database) = catalog.database_by_id(schema.database) else { return Vec::new() };
    let name = format!("TABLE {}.{}.{}", quote(&database.name), quote(&schema.name), quote(&table.name));
    let zone = |group: GroupId| {
        let target = match table.region_of(group) {
            Some(region) => format!("PARTITION \"{}\" OF {name}", region.replace('"', "\"\"")),
            None => name.clone(),
        };
        Some(Zone::of_group(target, catalog.group_by_id(group)?))
    };
    table.groups().filter_map(zone).collect()
}

impl Zone {
    /// What holds for whatever lives in the primary region.
    fn of_database(database: &Database) -> Zone {
        let target = format!("DATABASE {}", quote(&database.name));
        let (home, secondary) = (&database.primary_region, database.secondary_region.as_ref());
        Zone::new(target, home, &database.regions, database.survival, secondary)
    }
    fn of_group(target: String, group: &Group) -> Zone {
        let zone = Zone::new(target, &group.home, &group.regions, group.placed_as(), group.secondary.as_ref());
        Zone { is_global: group.kind == GroupKind::Global, ..zone }
    }

    /// The table of `placement`, read in the other direction.
    fn new(target: String, home: &str, regions: &[String], survival: Survival, secondary: Option<&String>) -> Zone {
        let secondary = secondary.filter(|s| *s != home);
        let others = regions.iter().filter(|r| *r != home).count();
        let (voters, at_home) = if survival == Survival::Region { (5, 2) } else { (3, 3) };
        let replicas = match survival {
            Survival::Zone => voters + others,
            Survival::Restricted => voters,
            // Two at home, two or one elsewhere; a region without a voter listens.
            Survival::Region => voters.max(at_home + others),
        };
        let mut voting = BTreeMap::from([(home.to_string(), at_home)]);
        if survival == Survival::Region {
            voting.extend(secondary.map(|s| (s.clone(), 2)));
        }
        let mut least = voting.clone();
        if survival != Survival::Restricted {
            for region in regions {
                least.entry(region.clone()).or_insert(1);
            }
        }
        let primaries = std::iter::once(home.to_string()).chain(secondary.cloned()).collect();
        Zone { target, replicas, voters, regions: least, voting, primaries, is_global: false }
    }

    fn says_the_same_as(&self, other: &Zone) -> bool {
        Zone { target: String::new(), ..self.clone() } == Zone { target: String::new(), ..other.clone() }
    }

    /// As the statement that would configure it.
    pub fn sql(&self) -> String {
        let list = |map: &BTreeMap<String, usize>| {
            let items: Vec<String> = map.iter().map(|(region, n)| format!("+region={region}: {n}")).collect();
            items.join(", ")
        };
        let preferences: Vec<String> = self.primaries.iter().map(|r| format!("[+region={r}]")).collect();
        let mut sql = format!("ALTER {} CONFIGURE ZONE USING", self.target);
        if self.is_global {
            sql.push_str("\n\tglobal_reads = true,");
        }
        let _ = write!(sql, "\n\tnum_replicas = {},\n\tnum_voters = {},", self.replicas, self.voters);
        let _ = write!(sql, "\n\tconstraints = '{{{}}}',", list(&self.regions));
        let _ = write!(sql, "\n\tvoter_constraints = '{{{}}}',", list(&self.voting));
        let _ = write!(sql, "\n\tlease_preferences = '[{}]'", preferences.join(", "));
        sql
    }
}
