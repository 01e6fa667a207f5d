//! `SHOW …`: what exists and what happens, as rows. Column names are CockroachDB's where it has the
//! statement.

mod jobs;
pub(crate) mod progress;
mod ranges;

use crate::catalog::ids::MONITOR;
use crate::catalog::names::{Name, Names};
use crate::catalog::relation::{SequenceRef, TableRef};
use crate::catalog::sequences::{self, Sequences};
use crate::catalog::system::{SystemContext, SystemTable, describe};
use crate::catalog::{Catalog, Descriptor, IndexState, is_implicit_primary, zones};
use crate::parse::{Kind, PartitionsOf, ShowObjects, ShowOf, ShowRegions};
use crate::rows::{PodHostRow, TransactionRow};
use crate::types::{ArrayValue, Datum, Type};
use meridian_base::{Error, Result};
use sqlparser::ast::{Ident, ObjectName};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A SHOW statement; single settings are the session's.
#[derive(Clone, Debug, PartialEq)]
pub enum Show {
    Databases,
    Schemas,
    /// Tables, views and sequences; of one schema, or of all.
    Tables {
        schema: Option<ObjectName>,
    },
    Columns {
        table: ObjectName,
    },
    Indexes {
        table: ObjectName,
    },
    Constraints {
        table: ObjectName,
    },
    CreateTable {
        table: ObjectName,
    },
    Sequences,
    /// `SHOW REGIONS`: regions of the cluster and which databases use them.
    Regions,
    RegionsFromCluster,
    /// `None`: the current database.
    RegionsFromDatabase {
        database: Option<ObjectName>,
    },
    RegionsFromAllDatabases,
    /// `SHOW LOCALITY`: this node's.
    Locality,
    LocalityFromTable {
        table: ObjectName,
    },
    /// The regions of a `REGIONAL BY ROW` table's rows.
    Partitions {
        of: PartitionsOf,
    },
    CreateDatabase {
        database: String,
    },
    /// `SHOW ENUMS`: the regions of the current database are the only one.
    Enums,
    /// `SHOW TYPES`.
    Types,
    /// `SHOW SURVIVAL GOAL`. `None`: of the current database.
    SurvivalGoal {
        database: Option<ObjectName>,
    },
    /// `SHOW ZONE CONFIGURATIONS`.
    Zones(ShowOf),
    /// `SHOW RANGES`.
    Ranges(ShowOf),
    /// `SHOW JOBS`, or one of them.
    Jobs(Option<u32>),
    /// `SHOW TRANSACTIONS`: those that are prepared.
    Transactions,
    /// `SHOW METRICS`: of this node.
    Metrics,
    /// `SHOW POD`: the hosts of the pods that this node is in.
    Pod,
    /// `SHOW ALL`.
    Settings,
}

/// Rows that are computed, not stored.
#[derive(Clone, Debug)]
pub enum Computed {
    System(&'static SystemTable),
    Show(Arc<Show>),
    /// The row that a sequence is as a relation.
    Sequence(SequenceRef),
}

impl Computed {
    pub fn name(&self) -> &'static str {
        match self {
            Computed::System(table) => table.name,
            Computed::Show(_) => "SHOW",
            Computed::Sequence(_) => "sequence",
        }
    }
    pub fn columns(&self) -> Cow<'static, [(&'static str, Type)]> {
        match self {
            Computed::System(table) => Cow::Borrowed(&table.columns),
            Computed::Show(show) => Cow::Owned(show.columns()),
            Computed::Sequence(_) => Cow::Borrowed(&sequences::COLUMNS),
        }
    }
    pub async fn rows(&self, context: &dyn SystemContext, sequences: &dyn Sequences) -> Result<Vec<Vec<Datum>>> {
        match self {
            Computed::System(table) => Ok((table.rows)(context)),
            Computed::Show(show) => show.rows(context).await,
            Computed::Sequence(sequence) => {
                let (last, is_called) = sequences.state(sequence, context.catalog()).await?;
                Ok(vec![vec![Datum::Int(last), Datum::Int(0), Datum::Bool(is_called)]])
            }
        }
    }
}

impl Show {
    /// The statement as one of these, if it is.
    pub fn of(kind: &Kind) -> Option<Show> {
        let object = |path: &[String]| ObjectName::from(path.iter().map(|p| Ident::with_quote('"', p)).collect::<Vec<_>>());
        let database = |name: &Option<String>| name.as_ref().map(|n| object(std::slice::from_ref(n)));
        Some(match kind {
            Kind::ShowRegions(ShowRegions::All) => Show::Regions,
            Kind::ShowRegions(ShowRegions::AllDatabases) => Show::RegionsFromAllDatabases,
            Kind::ShowRegions(ShowRegions::Cluster) => Show::RegionsFromCluster,
            Kind::ShowRegions(ShowRegions::Database(name)) => Show::RegionsFromDatabase { database: database(name) },
            Kind::ShowLocality => Show::Locality,
            Kind::ShowTableLocality(table) => Show::LocalityFromTable { table: table.clone() },
            Kind::ShowPartitions(of) => Show::Partitions { of: of.clone() },
            Kind::ShowCreateDatabase(name) => Show::CreateDatabase { database: name.clone() },
            Kind::ShowCreateTable(table) => Show::CreateTable { table: table.clone() },
            Kind::ShowObjects(objects) => match objects {
                ShowObjects::Enums => Show::Enums,
                ShowObjects::Types => Show::Types,
                ShowObjects::SurvivalGoal(name) => Show::SurvivalGoal { database: database(name) },
                ShowObjects::Zones(of) => Show::Zones(of.clone()),
                ShowObjects::Databases => Show::Databases,
                ShowObjects::Schemas => Show::Schemas,
                ShowObjects::Tables => Show::Tables { schema: None },
                ShowObjects::Sequences => Show::Sequences,
                ShowObjects::Columns(table) => Show::Columns { table: object(table) },
                ShowObjects::Indexes(table) => Show::Indexes { table: object(table) },
                ShowObjects::Constraints(table) => Show::Constraints { table: object(table) },
                ShowObjects::Ranges(of) => Show::Ranges(of.clone()),
                ShowObjects::Jobs(only) => Show::Jobs(*only),
                ShowObjects::Transactions => Show::Transactions,
                ShowObjects::Metrics => Show::Metrics,
                ShowObjects::Pod => Show::Pod,
                ShowObjects::Settings => Show::Settings,
                ShowObjects::Sessions => return None,
            },
            _ => return None,
        })
    }

    /// The result's columns, known without running it.
    pub fn columns(&self) -> Vec<(&'static str, Type)> {
        let texts = |names: &[&'static str]| names.iter().map(|n| (*n, Type::Text)).collect::<Vec<_>>();
        let text_array = || Type::Array(Box::new(Type::Text));
        match self {
            Show::Locality => texts(&["locality"]),
            Show::CreateTable { .. } => texts(&["table_name", "create_statement"]),
            Show::RegionsFromCluster => vec![("region", Type::Text), ("zones", text_array())],
            Show::Regions => vec![
                ("region", Type::Text),
                ("zones", text_array()),
                ("database_names", text_array()),
                ("primary_region_of", text_array()),
            ],
            Show::RegionsFromDatabase { .. } => {
                vec![
                    ("database", Type::Text),
                    ("region", Type::Text),
                    ("primary", Type::Bool),
                    ("secondary", Type::Bool),
                    ("zones", text_array()),
                ]
            }
            Show::RegionsFromAllDatabases => {
                vec![
                    ("database_name", Type::Text),
                    ("regions", text_array()),
                    ("primary_region", Type::Text),
                    ("secondary_region", Type::Text),
                ]
            }
            Show::SurvivalGoal { .. } => texts(&["database", "survival_goal"]),
            Show::Zones(_) => texts(&["target", "raw_config_sql"]),
            Show::Databases => vec![
                ("database_name", Type::Text),
                ("owner", Type::Text),
                ("primary_region", Type::Text),
                ("regions", text_array()),
                ("survival_goal", Type::Text),
            ],
            Show::Schemas => texts(&["schema_name", "owner"]),
            Show::Tables { .. } => texts(&["schema_name", "table_name", "type", "owner", "locality"]),
            Show::Sequences => texts(&["sequence_schema", "sequence_name"]),
            Show::Columns { .. } => vec![
                ("column_name", Type::Text),
                ("data_type", Type::Text),
                ("is_nullable", Type::Bool),
                ("column_default", Type::Text),
                ("generation_expression", Type::Text),
                ("indices", text_array()),
                ("is_hidden", Type::Bool),
            ],
            Show::Indexes { .. } => vec![
                ("table_name", Type::Text),
                ("index_name", Type::Text),
                ("non_unique", Type::Bool),
                ("seq_in_index", Type::Int8),
                ("column_name", Type::Text),
                ("direction", Type::Text),
                ("storing", Type::Bool),
                ("implicit", Type::Bool),
                ("visible", Type::Bool),
            ],
            Show::Constraints { .. } => vec![
                ("table_name", Type::Text),
                ("constraint_name", Type::Text),
                ("constraint_type", Type::Text),
                ("details", Type::Text),
                ("validated", Type::Bool),
            ],
            Show::LocalityFromTable { .. } => texts(&["table_name", "locality"]),
            Show::Ranges(_) => ranges::columns(),
            Show::Jobs(_) => jobs::columns(),
            Show::Transactions => texts(&["transaction", "gateway", "group", "age", "participants", "waits_for", "why"]),
            Show::Metrics => vec![("name", Type::Text), ("value", Type::Int8)],
            Show::Pod => vec![
                ("pod", Type::Text),
                ("group", Type::Text),
                ("generation", Type::Int8),
                ("host", Type::Int4),
                ("node", Type::Int8),
                ("leads", Type::Bool),
                ("state", Type::Text),
                ("slots", Type::Int4),
                ("asked_for", Type::Int4),
                ("ring_bytes", Type::Int8),
            ],
            Show::Settings => texts(&["name", "setting", "description"]),
            Show::CreateDatabase { .. } => texts(&["database_name", "create_statement"]),
            Show::Enums => vec![("schema", Type::Text), ("name", Type::Text), ("values", text_array()), ("owner", Type::Text)],
            Show::Types => texts(&["schema", "name", "owner"]),
            Show::Partitions { .. } => texts(&["table_name", "partition_name", "column_names", "index_name", "partition_value"]),
        }
    }

    /// The result.
    pub async fn rows(&self, context: &dyn SystemContext) -> Result<Vec<Vec<Datum>>> {
        let catalog = context.catalog();
        let names = context.names();
        match self {
            Show::Locality => Ok(vec![vec![text(context.locality())]]),
            Show::CreateTable { table } => show_create(catalog, names, table),
            Show::Regions | Show::RegionsFromCluster | Show::RegionsFromDatabase { .. } | Show::RegionsFromAllDatabases => {
                self.regions(context)
            }
            Show::Databases => Ok(databases(catalog)),
            Show::Schemas => schemas(catalog, names),
            Show::SurvivalGoal { database } => {
                let database = database_of(catalog, names, database.as_ref())?;
                let goal = if database.is_multi_region { text(database.survival.as_str()) } else { Datum::Null };
                Ok(vec![vec![text(&database.name), goal]])
            }
            Show::Zones(of) => Ok(zones::configurations(catalog, names, of)?
                .into_iter()
                .map(|zone| vec![text(&zone.target), text(zone.sql())])
                .collect()),
            Show::Tables { schema } => tables(catalog, names, schema.as_ref()),
            Show::Sequences => sequences(catalog, names),
            Show::Columns { table } => Ok(table_columns(catalog, names, &named(catalog, names, table)?)),
            Show::Indexes { table } => Ok(indexes(&named(catalog, names, table)?)),
            Show::Constraints { table } => Ok(constraints(catalog, names, &named(catalog, names, table)?)),
            Show::Partitions { of } => partitions_of(catalog, names, of),
            Show::CreateDatabase { database } => {
                let database = catalog.database(database)?;
                Ok(vec![vec![text(&database.name), text(describe::create_database(database))]])
            }
            Show::Enums => {
                let row = |d: &crate::catalog::Database| {
                    vec![text("public"), text(Type::Region.name()), texts(&d.regions), text(catalog.role_name(d.access.owner()))]
                };
                Ok(with_regions(catalog, names)?.into_iter().map(row).collect())
            }
            Show::Types => {
                let row = |d: &crate::catalog::Database| {
                    vec![text("public"), text(Type::Region.name()), text(catalog.role_name(d.access.owner()))]
                };
                Ok(with_regions(catalog, names)?.into_iter().map(row).collect())
            }
            Show::Ranges(of) => ranges::rows(context, of).await,
            Show::Jobs(only) => jobs::rows(context, *only).await,
            Show::Transactions | Show::Metrics | Show::Pod if !monitors(context) => {
                Err(Error::sql("42501", "permission denied to see what the cluster does")
                    .detail("Only superusers and members of the role \"pg_monitor\" may see that."))
            }
            Show::Transactions => Ok(context.transactions().await?.into_iter().map(transaction).collect()),
            Show::Metrics => {
                Ok(context.metrics().into_iter().map(|(name, value)| vec![text(name), Datum::Int(value as i64)]).collect())
            }
            Show::Pod => Ok(context.pods()?.into_iter().map(host_of_pod).collect()),
            Show::Settings => {
                let row = |s: crate::catalog::system::Setting| vec![text(s.name), text(s.value), text(s.description)];
                Ok(context.settings().into_iter().map(row).collect())
            }
            Show::LocalityFromTable { table } => {
                let table = named(catalog, names, table)?;
                Ok(vec![vec![text(&table.name), describe::locality(catalog, &table).map_or(Datum::Null, text)]])
            }
        }
    }

    fn regions(&self, context: &dyn SystemContext) -> Result<Vec<Vec<Datum>>> {
        let (catalog, zones) = (context.catalog(), zones_of_regions(context));
        let zones_of = |region: &str| texts(zones.get(region).into_iter().flatten());
        Ok(match self {
            Show::RegionsFromCluster => zones.keys().map(|r| vec![text(r), zones_of(r)]).collect(),
            Show::Regions => {
                let with = |wanted: &dyn Fn(&crate::catalog::Database) -> bool| {
                    texts(catalog.databases().filter(|d| d.is_multi_region && wanted(d)).map(|d| d.name.clone()))
                };
                let row =
                    |r: &String| vec![text(r), zones_of(r), with(&|d| d.regions.contains(r)), with(&|d| d.primary_region == *r)];
                zones.keys().map(row).collect()
            }
            Show::RegionsFromDatabase { database } => {
                let database = database_of(catalog, context.names(), database.as_ref())?;
                // A database without PRIMARY REGION has no regions to speak of.
                let mut regions = if database.is_multi_region { database.regions.clone() } else { Vec::new() };
                regions.sort_by_key(|r| (*r != database.primary_region, r.clone()));
                let row = |r: String| {
                    let is_secondary = database.secondary_region.as_ref() == Some(&r);
                    let (primary, secondary) = (Datum::Bool(r == database.primary_region), Datum::Bool(is_secondary));
                    vec![text(&database.name), text(&r), primary, secondary, zones_of(&r)]
                };
                regions.into_iter().map(row).collect()
            }
            _ => catalog
                .databases()
                .map(|d| {
                    let primary = if d.is_multi_region { text(&d.primary_region) } else { Datum::Null };
                    let secondary = d.secondary_region.as_ref().map_or(Datum::Null, text);
                    vec![text(&d.name), texts(d.regions.iter().filter(|_| d.is_multi_region)), primary, secondary]
                })
                .collect(),
        })
    }
}

fn host_of_pod(host: PodHostRow) -> Vec<Datum> {
    vec![
        text(host.pod),
        text(host.group),
        Datum::Int(host.generation as i64),
        Datum::Int(i64::from(host.host)),
        Datum::Int(i64::from(host.node.0)),
        Datum::Bool(host.leads),
        text(host.state),
        Datum::Int(i64::from(host.slots)),
        Datum::Int(i64::from(host.asked_for)),
        Datum::Int(host.ring_bytes as i64),
    ]
}

fn transaction(t: TransactionRow) -> Vec<Datum> {
    let age = format!("{:.3} s", t.age_micros as f64 / 1e6);
    let list = |of: Vec<String>| text(of.join(", "));
    let why = text(t.why.join("; "));
    vec![text(t.id), text(t.gateway.to_string()), text(t.group), text(age), list(t.participants), list(t.waits_for), why]
}

fn text(s: impl AsRef<str>) -> Datum {
    Datum::Text(s.as_ref().into())
}
fn texts<S: AsRef<str>>(items: impl IntoIterator<Item = S>) -> Datum {
    let items: Vec<Datum> = items.into_iter().map(text).collect();
    let dims = if items.is_empty() { Vec::new() } else { vec![(items.len(), 1)] };
    Datum::Array(Arc::new(ArrayValue { element: Type::Text, dims, items }))
}

/// The database of a SHOW, or the current one.
fn database_of<'c>(catalog: &'c Catalog, names: &Names, name: Option<&ObjectName>) -> Result<&'c crate::catalog::Database> {
    let name = name.map(Name::from_ast).transpose()?.map(|n| n.name);
    catalog.database(name.as_deref().unwrap_or(&names.database))
}

/// The table of a SHOW.
fn named(catalog: &Catalog, names: &Names, name: &ObjectName) -> Result<TableRef> {
    catalog.table(names, &Name::from_ast(name)?)
}

fn show_create(catalog: &Catalog, names: &Names, name: &ObjectName) -> Result<Vec<Vec<Datum>>> {
    let table = named(catalog, names, name)?;
    Ok(vec![vec![text(&table.name), text(describe::create_table(catalog, names, &table))]])
}

/// The zones of every region that has a live node.
fn zones_of_regions(context: &dyn SystemContext) -> BTreeMap<String, Vec<String>> {
    let mut zones: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for node in context.nodes().into_iter().filter(|n| n.is_live) {
        let of_region = zones.entry(node.region).or_default();
        if !of_region.contains(&node.zone) {
            of_region.push(node.zone);
            of_region.sort();
        }
    }
    zones
}

fn databases(catalog: &Catalog) -> Vec<Vec<Datum>> {
    let row = |d: &crate::catalog::Database| {
        let if_regions = |value: Datum| if d.is_multi_region { value } else { Datum::Null };
        vec![
            text(&d.name),
            text(catalog.role_name(d.access.owner())),
            if_regions(text(&d.primary_region)),
            texts(d.regions.iter().filter(|_| d.is_multi_region)),
            if_regions(text(d.survival.as_str())),
        ]
    };
    let mut rows: Vec<(&str, Vec<Datum>)> = catalog.databases().map(|d| (d.name.as_str(), row(d))).collect();
    rows.sort_by_key(|(name, _)| *name);
    rows.into_iter().map(|(_, row)| row).collect()
}

fn schemas(catalog: &Catalog, names: &Names) -> Result<Vec<Vec<Datum>>> {
    let database = catalog.database(&names.database)?.id;
    let mut all: Vec<(String, Datum)> =
        catalog.schemas(database).map(|s| (s.name.clone(), text(catalog.role_name(s.access().owner())))).collect();
    all.extend(["information_schema", "pg_catalog"].map(|s| (s.to_string(), Datum::Null)));
    all.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(all.into_iter().map(|(name, owner)| vec![text(name), owner]).collect())
}

/// The relations of the current database: (schema, descriptor), by schema and name.
fn relations<'c>(catalog: &'c Catalog, names: &Names) -> Result<Vec<(&'c str, &'c Descriptor)>> {
    let database = catalog.database(&names.database)?.id;
    let mut all: Vec<(&str, &Descriptor)> = Vec::new();
    for d in catalog.descriptors.values() {
        if let Some(schema) = catalog.schema_by_id(d.parent()).filter(|s| s.database == database) {
            all.push((&schema.name, &**d));
        }
    }
    all.sort_by_key(|(schema, d)| (*schema, d.name()));
    Ok(all)
}

fn tables(catalog: &Catalog, names: &Names, only: Option<&ObjectName>) -> Result<Vec<Vec<Datum>>> {
    let only = only.map(Name::from_ast).transpose()?.map(|n| n.name);
    if let Some(schema) = &only {
        catalog.schema(names, schema)?;
    }
    let row = |(schema, d): (&str, &Descriptor)| {
        let (kind, owner, locality) = match d {
            Descriptor::Table(t) => ("table", &t.access, describe::locality(catalog, t)),
            Descriptor::View(v) => ("view", &v.access, None),
            Descriptor::Sequence(s) => ("sequence", &s.access, None),
            _ => return None,
        };
        let name = text(d.name().unwrap_or_default());
        Some(vec![text(schema), name, text(kind), text(catalog.role_name(owner.owner())), locality.map_or(Datum::Null, text)])
    };
    let shown = |(schema, _): &(&str, &Descriptor)| only.as_deref().is_none_or(|o| o == *schema);
    Ok(relations(catalog, names)?.into_iter().filter(shown).filter_map(row).collect())
}

fn sequences(catalog: &Catalog, names: &Names) -> Result<Vec<Vec<Datum>>> {
    let only = |(schema, d): (&str, &Descriptor)| match d {
        Descriptor::Sequence(s) => Some(vec![text(schema), text(&s.name)]),
        _ => None,
    };
    Ok(relations(catalog, names)?.into_iter().filter_map(only).collect())
}

fn table_columns(catalog: &Catalog, names: &Names, table: &TableRef) -> Vec<Vec<Datum>> {
    let show = |e: &Option<String>| e.as_ref().map_or(Datum::Null, |e| text(describe::expression(catalog, names, e)));
    let row = |(ordinal, c): (u32, &crate::catalog::Column)| {
        let uses = |i: &&crate::catalog::Index| {
            i.holds_rows || i.columns.iter().any(|k| k.ordinal == ordinal) || i.stored.contains(&ordinal)
        };
        vec![
            text(&c.name),
            text(c.ty.name()),
            Datum::Bool(!c.not_null),
            show(&c.default),
            show(&c.generated),
            texts(table.indexes.iter().filter(uses).map(|i| i.name.clone())),
            Datum::Bool(c.is_hidden),
        ]
    };
    table.live_columns().map(row).collect()
}

fn indexes(table: &TableRef) -> Vec<Vec<Datum>> {
    let mut rows = Vec::new();
    for i in &table.indexes {
        let keys = i.columns.iter().map(|c| (c.ordinal, if c.descending { "DESC" } else { "ASC" }, false));
        let is_key = |o: &u32| i.columns.iter().any(|c| c.ordinal == *o);
        let whole: Vec<u32> = table.public_columns().map(|(o, _)| o).filter(|o| i.holds_rows && !is_key(o)).collect();
        let stored = i.stored.iter().copied().chain(whole).map(|o| (o, "N/A", true));
        for (at, (ordinal, direction, storing)) in keys.chain(stored).enumerate() {
            rows.push(vec![
                text(&table.name),
                text(&i.name),
                Datum::Bool(!i.unique),
                Datum::Int(at as i64 + 1),
                text(&table.columns[ordinal as usize].name),
                text(direction),
                Datum::Bool(storing),
                Datum::Bool(is_implicit_primary(table, i)),
                Datum::Bool(i.state == IndexState::Public && !i.is_hidden),
            ]);
        }
    }
    rows
}

/// The current database, if it has regions, and so a type of their names.
fn with_regions<'c>(catalog: &'c Catalog, names: &Names) -> Result<Option<&'c crate::catalog::Database>> {
    let database = catalog.database(&names.database)?;
    Ok(Some(database).filter(|d| d.is_multi_region))
}

fn partitions_of(catalog: &Catalog, names: &Names, of: &PartitionsOf) -> Result<Vec<Vec<Datum>>> {
    match of {
        PartitionsOf::Table(table) => Ok(partitions(&named(catalog, names, table)?)),
        PartitionsOf::Index(table, index) => {
            let table = named(catalog, names, table)?;
            if !table.indexes.iter().any(|i| i.name == *index) {
                return Err(Error::sql("42704", format!("index \"{index}\" does not exist")));
            }
            let name = text(index);
            Ok(partitions(&table).into_iter().filter(|row| row[3] == name).collect())
        }
        PartitionsOf::Database(name) => {
            let database = catalog.database(name.as_ref().unwrap_or(&names.database))?;
            Ok(catalog.tables_of(database.id).flat_map(|table| partitions(&table)).collect())
        }
    }
}

/// One row for each region and index: all indexes are partitioned like the table.
fn partitions(table: &TableRef) -> Vec<Vec<Datum>> {
    let (crate::catalog::Homes::ByRow(partitions), Some(column)) = (&table.homes, table.region_column()) else {
        return Vec::new();
    };
    let column = &table.columns[column as usize].name;
    let row = |p: &crate::catalog::Partition, i: &crate::catalog::Index| {
        vec![text(&table.name), text(&p.region), text(column), text(&i.name), text(format!("('{}')", p.region))]
    };
    partitions.iter().flat_map(|p| table.indexes.iter().map(move |i| row(p, i))).collect()
}

fn constraints(catalog: &Catalog, names: &Names, table: &TableRef) -> Vec<Vec<Datum>> {
    let mut rows = Vec::new();
    let mut push = |name: &str, kind: &str, details: String, validated: bool| {
        rows.push(vec![text(&table.name), text(name), text(kind), text(details), Datum::Bool(validated)]);
    };
    for i in table.indexes.iter().filter(|i| i.is_constraint && !is_implicit_primary(table, i)) {
        let kind = if i.holds_rows { "PRIMARY KEY" } else { "UNIQUE" };
        push(&i.name, kind, describe::index_constraint(table, i), i.state == IndexState::Public);
    }
    for c in &table.checks {
        push(&c.name, "CHECK", describe::check(&c.expression, c.validated), c.validated);
    }
    for f in &table.foreign_keys {
        push(&f.name, "FOREIGN KEY", describe::foreign_key(catalog, names, table, f), f.validated);
    }
    rows
}

/// Whether the user sees what the cluster does for others.
fn monitors(context: &dyn SystemContext) -> bool {
    context.newest().authority_of(context.names()).has(MONITOR)
}
