//! System tables: `pg_catalog` and `information_schema`.
//!
//! Each is a name, its columns and a function from the catalog to rows; they touch no group. Column names and types are
//! PostgreSQL 15's.

use super::lookup::Names;
use super::Catalog;
use crate::env::{NodeLocality, SessionRow};
use crate::types::{Datum, Type};
use meridian_base::DescriptorId;
use std::sync::Arc;

/// What system tables and functions are computed from. Implemented by what a session runs a statement with.
pub trait SystemContext: Send + Sync {
    fn catalog(&self) -> &Arc<Catalog>;
    fn names(&self) -> &Names;
    /// Where this node is.
    fn node(&self) -> NodeLocality;
    fn nodes(&self) -> Vec<NodeLocality>;
    fn sessions(&self) -> Vec<SessionRow>;
    /// Every setting: for `pg_settings`.
    fn settings(&self) -> Vec<Setting>;
    /// This node's locality as it was given at start.
    fn locality(&self) -> String {
        let node = self.node();
        format!("region={},zone={}", node.region, node.zone)
    }
}

/// A row of `pg_settings`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    pub name: String,
    pub value: String,
    pub description: String,
}

/// A table computed from the catalog.
#[derive(Debug)]
pub struct SystemTable {
    pub oid: u32,
    pub schema: &'static str,
    pub name: &'static str,
    pub columns: Vec<(&'static str, Type)>,
    /// All rows.
    pub rows: fn(&dyn SystemContext) -> Vec<Vec<Datum>>,
}

/// The oid of something the catalog holds. Below 16384 are PostgreSQL's own.
pub fn oid(id: DescriptorId) -> u32 {
    16384 + id.0
}

/// The reverse of [`oid`].
pub fn from_oid(oid: u32) -> Option<DescriptorId> {
    oid.checked_sub(16384).map(DescriptorId)
}

/// Whether a schema is the system's.
pub fn is_system_schema(name: &str) -> bool {
    matches!(name, "pg_catalog" | "information_schema")
}

/// A system table by its schema and name.
pub fn table(schema: &str, name: &str) -> Option<&'static SystemTable> {
    let _ = (schema, name);
    None
}

/// Whether an identifier must be quoted to mean itself: PostgreSQL's `quote_identifier`.
pub fn needs_quotes(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit();
    let starts_well = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    !starts_well || !name.chars().all(plain) || is_reserved(name)
}

/// Words that cannot be column names without quotes (PostgreSQL manual, appendix C).
fn is_reserved(word: &str) -> bool {
    const WORDS: &[&str] = &[
        "all", "analyse", "analyze", "and", "any", "array", "as", "asc", "asymmetric", "authorization", "between", "bigint",
        "binary", "bit", "boolean", "both", "case", "cast", "char", "character", "check", "coalesce", "collate", "collation",
        "column", "concurrently", "constraint", "create", "cross", "current_catalog", "current_date", "current_role",
        "current_schema", "current_time", "current_timestamp", "current_user", "dec", "decimal", "default", "deferrable", "desc",
        "distinct", "do", "else", "end", "except", "exists", "extract", "false", "fetch", "float", "for", "foreign", "freeze",
        "from", "full", "grant", "greatest", "group", "grouping", "having", "ilike", "in", "initially", "inner", "inout", "int",
        "integer", "intersect", "interval", "into", "is", "isnull", "join", "lateral", "leading", "least", "left", "like",
        "limit", "localtime", "localtimestamp", "national", "natural", "nchar", "none", "normalize", "not", "notnull", "null",
        "nullif", "numeric", "offset", "on", "only", "or", "order", "out", "outer", "overlaps", "overlay", "placing", "position",
        "precision", "primary", "real", "references", "returning", "right", "row", "select", "session_user", "setof", "similar",
        "smallint", "some", "substring", "symmetric", "table", "tablesample", "then", "time", "timestamp", "to", "trailing",
        "treat", "trim", "true", "union", "unique", "user", "using", "values", "varchar", "variadic", "verbose", "when", "where",
        "window", "with", "xmlattributes", "xmlconcat", "xmlelement", "xmlexists", "xmlforest", "xmlnamespaces", "xmlparse",
        "xmlpi", "xmlroot", "xmlserialize", "xmltable",
    ];
    WORDS.binary_search(&word).is_ok()
}

/// An identifier as SQL text.
pub fn quote(name: &str) -> String {
    if needs_quotes(name) { format!("\"{}\"", name.replace('"', "\"\"")) } else { name.to_string() }
}
