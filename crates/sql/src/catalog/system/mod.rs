//! System tables: `pg_catalog` and `information_schema`.
//!
//! Each is a name, its columns and a function from the catalog to rows; they touch no group. Column
//! names and types are PostgreSQL 15's ([`columns`]), which is what psql, drivers and tools read;
//! tables about things that do not exist here (triggers, policies, publications, …) are there and
//! empty.
//!
//! Objects have the oid «descriptor id + 16384», which never changes; what PostgreSQL itself brings
//! keeps PostgreSQL's oids. Only the current database's objects are shown, as in PostgreSQL.

mod cluster;
mod columns;
mod constraints;
pub mod describe;
pub mod functions;
mod information_schema;
mod listings;
mod login;
mod privileges;
mod relations;
mod rows;
mod types;

#[cfg(test)]
mod tests;

pub use crate::catalog::ids::{from_oid, oid};
pub use crate::catalog::system_table::{Setting, SystemContext, SystemTable};
use crate::types::functions::registry::Registry;
pub use crate::types::functions::text::{needs_quotes, quote_ident as quote};
use crate::types::{Datum, Type};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// All operators and functions: those over values, and those that read the catalog.
pub static FUNCTIONS: LazyLock<Registry> = LazyLock::new(|| {
    let mut all = Registry::of_values();
    functions::register(&mut all);
    all
});

const PG_CATALOG: &str = "pg_catalog";
const INFORMATION_SCHEMA: &str = "information_schema";
const PG_CATALOG_OID: u32 = 11;
/// PostgreSQL gives it none that is fixed.
const INFORMATION_SCHEMA_OID: u32 = 13000;

/// The oid of a system table's schema.
fn namespace(table: &SystemTable) -> u32 {
    if table.schema == PG_CATALOG { PG_CATALOG_OID } else { INFORMATION_SCHEMA_OID }
}

/// Whether a schema is the system's.
pub fn is_system_schema(name: &str) -> bool {
    matches!(name, PG_CATALOG | INFORMATION_SCHEMA)
}

/// A system table by its schema and name.
pub fn table(schema: &str, name: &str) -> Option<&'static SystemTable> {
    TABLES.values().find(|t| t.name == name && t.schema == schema)
}

/// A system table by its oid.
pub fn table_by_oid(oid: u32) -> Option<&'static SystemTable> {
    TABLES.values().find(|t| t.oid == oid)
}

/// All system tables, by schema and name.
pub fn tables() -> impl Iterator<Item = &'static SystemTable> {
    TABLES.values()
}

static TABLES: LazyLock<BTreeMap<(&'static str, &'static str), SystemTable>> = LazyLock::new(|| {
    let mut tables = BTreeMap::new();
    // PostgreSQL numbers what has no fixed oid from 12000 on.
    let mut next_oid = 12_000;
    for (head, columns) in split_tables(columns::TABLES) {
        let mut words = head.split(' ');
        let (Some(name), Some(oid), Some(kind)) = (words.next(), words.next(), words.next()) else { continue };
        let (schema, name) = name.split_once('.').expect("a qualified name");
        let mut oid: u32 = oid.parse().expect("an oid");
        if oid == 0 {
            oid = next_oid;
            next_oid += 1;
        }
        let mut list = Vec::new();
        let mut not_null = Vec::new();
        for column in columns {
            let (column, ty) = column.split_once(' ').expect("a column has a type");
            not_null.push(ty.ends_with('!'));
            list.push((column, column_type(ty.trim_end_matches('!'))));
        }
        let rows = filler(schema, name);
        tables.insert((schema, name), SystemTable { oid, schema, name, is_view: kind == "v", columns: list, not_null, rows });
    }
    tables
});

/// The head and the columns of every table.
fn split_tables(text: &'static str) -> Vec<(&'static str, Vec<&'static str>)> {
    let mut tables: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        let columns = match line.strip_prefix(' ') {
            Some(more) => more,
            None => match line.split_once(':') {
                Some((head, columns)) => {
                    tables.push((head, Vec::new()));
                    columns
                }
                None => continue,
            },
        };
        if let Some((_, list)) = tables.last_mut() {
            list.extend(columns.split(',').map(str::trim).filter(|c| !c.is_empty()));
        }
    }
    tables
}

fn column_type(name: &str) -> Type {
    match name {
        "char" => Type::InternalChar,
        "char[]" => Type::Array(Box::new(Type::InternalChar)),
        other => Type::from_name(other).unwrap_or_else(|| panic!("{other} is no type")),
    }
}

fn filler(schema: &str, name: &str) -> fn(&dyn SystemContext) -> Vec<Vec<Datum>> {
    match (schema, name) {
        (PG_CATALOG, "pg_class") => relations::pg_class,
        (PG_CATALOG, "pg_attribute") => relations::pg_attribute,
        (PG_CATALOG, "pg_attrdef") => relations::pg_attrdef,
        (PG_CATALOG, "pg_index") => relations::pg_index,
        (PG_CATALOG, "pg_sequence") => relations::pg_sequence,
        (PG_CATALOG, "pg_depend") => relations::pg_depend,
        (PG_CATALOG, "pg_description") => relations::pg_description,
        (PG_CATALOG, "pg_rewrite") => relations::pg_rewrite,
        (PG_CATALOG, "pg_constraint") => constraints::pg_constraint,
        (PG_CATALOG, "pg_type") => types::pg_type,
        (PG_CATALOG, "pg_enum") => types::pg_enum,
        (PG_CATALOG, "pg_proc") => types::pg_proc,
        (PG_CATALOG, "pg_am") => types::pg_am,
        (PG_CATALOG, "pg_opclass") => types::pg_opclass,
        (PG_CATALOG, "pg_collation") => types::pg_collation,
        (PG_CATALOG, "pg_language") => types::pg_language,
        (PG_CATALOG, "pg_database") => cluster::pg_database,
        (PG_CATALOG, "pg_namespace") => cluster::pg_namespace,
        (PG_CATALOG, "pg_roles") => cluster::pg_roles,
        (PG_CATALOG, "pg_authid") => cluster::pg_authid,
        (PG_CATALOG, "pg_auth_members") => cluster::pg_auth_members,
        (PG_CATALOG, "pg_group") => cluster::pg_group,
        (PG_CATALOG, "pg_user") => cluster::pg_user,
        (PG_CATALOG, "pg_shadow") => cluster::pg_shadow,
        (PG_CATALOG, "pg_tablespace") => cluster::pg_tablespace,
        (PG_CATALOG, "pg_settings") => cluster::pg_settings,
        (PG_CATALOG, "pg_stat_activity") => cluster::pg_stat_activity,
        (PG_CATALOG, "pg_shdescription") => cluster::pg_shdescription,
        (PG_CATALOG, "pg_hba_file_rules") => login::pg_hba_file_rules,
        (PG_CATALOG, "pg_ident_file_mappings") => login::pg_ident_file_mappings,
        (PG_CATALOG, "pg_stat_ssl") => login::pg_stat_ssl,
        (PG_CATALOG, "pg_stats") => listings::pg_stats,
        (PG_CATALOG, "pg_tables") => listings::pg_tables,
        (PG_CATALOG, "pg_indexes") => listings::pg_indexes,
        (PG_CATALOG, "pg_views") => listings::pg_views,
        (PG_CATALOG, "pg_sequences") => listings::pg_sequences,
        (INFORMATION_SCHEMA, "tables") => information_schema::tables,
        (INFORMATION_SCHEMA, "columns") => information_schema::columns,
        (INFORMATION_SCHEMA, "schemata") => information_schema::schemata,
        (INFORMATION_SCHEMA, "table_constraints") => information_schema::table_constraints,
        (INFORMATION_SCHEMA, "key_column_usage") => information_schema::key_column_usage,
        (INFORMATION_SCHEMA, "constraint_column_usage") => information_schema::constraint_column_usage,
        (INFORMATION_SCHEMA, "referential_constraints") => information_schema::referential_constraints,
        (INFORMATION_SCHEMA, "check_constraints") => information_schema::check_constraints,
        (INFORMATION_SCHEMA, "sequences") => information_schema::sequences,
        (INFORMATION_SCHEMA, "views") => information_schema::views,
        (INFORMATION_SCHEMA, "information_schema_catalog_name") => information_schema::catalog_name,
        (INFORMATION_SCHEMA, "enabled_roles") => privileges::enabled_roles,
        (INFORMATION_SCHEMA, "applicable_roles") => privileges::applicable_roles,
        (INFORMATION_SCHEMA, "administrable_role_authorizations") => privileges::administrable_role_authorizations,
        (INFORMATION_SCHEMA, "table_privileges") => privileges::table_privileges,
        (INFORMATION_SCHEMA, "role_table_grants") => privileges::role_table_grants,
        _ => |_| Vec::new(),
    }
}
