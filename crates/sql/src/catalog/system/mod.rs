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
