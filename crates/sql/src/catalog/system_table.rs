//! What a system table is, and what its rows are computed from.

use super::Catalog;
use super::authority::Authority;
use super::ids::READ_ALL_DATA;
use super::names::Names;
use crate::rows::{GroupRow, NodeLocality, PodHostRow, SessionRow, TransactionRow};
use crate::temporary::Temporary;
use crate::types::{Datum, Type};
use futures::future::BoxFuture;
use meridian_base::Result;
use std::sync::Arc;

/// What system tables and functions are computed from. Implemented by what a session runs a
/// statement with.
pub trait SystemContext: Send + Sync {
    fn catalog(&self) -> &Arc<Catalog>;
    fn names(&self) -> &Names;
    /// The newest catalog that the node knows: what was revoked counts at once.
    fn newest(&self) -> Arc<Catalog> {
        self.catalog().clone()
    }
    /// Where this node is.
    fn node(&self) -> NodeLocality;
    fn nodes(&self) -> Vec<NodeLocality>;
    /// [`crate::env::Environment::now_micros`].
    fn now_micros(&self) -> u64;
    fn sessions(&self) -> Vec<SessionRow>;
    /// Every setting: for `pg_settings`.
    fn settings(&self) -> Vec<Setting>;
    /// [`crate::env::Environment::groups`].
    fn groups(&self) -> BoxFuture<'_, Result<Vec<GroupRow>>>;
    /// [`crate::env::Environment::transactions`].
    fn transactions(&self) -> BoxFuture<'_, Result<Vec<TransactionRow>>>;
    /// [`crate::env::Environment::pods`].
    fn pods(&self) -> Result<Vec<PodHostRow>> {
        Ok(Vec::new())
    }
    /// [`crate::env::Environment::metrics`].
    fn metrics(&self) -> Vec<(String, u64)>;
    /// [`crate::env::Environment::compute`].
    fn compute(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'_, ()> {
        Box::pin(async move { work() })
    }
    /// [`crate::env::Environment::temporary`].
    fn temporary(&self) -> Option<Arc<dyn Temporary>> {
        None
    }
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

/// A table computed from the catalog. There is one of each name.
#[derive(Debug)]
pub struct SystemTable {
    pub oid: u32,
    pub schema: &'static str,
    pub name: &'static str,
    /// PostgreSQL has a view of that name, not a table.
    pub is_view: bool,
    pub columns: Vec<(&'static str, Type)>,
    /// By column: whether it is never NULL.
    pub not_null: Vec<bool>,
    /// All rows.
    pub rows: fn(&dyn SystemContext) -> Vec<Vec<Datum>>,
}

impl PartialEq for SystemTable {
    fn eq(&self, other: &SystemTable) -> bool {
        (self.schema, self.name) == (other.schema, other.name)
    }
}

impl Eq for SystemTable {}

/// Tables that tell what a password may be guessed with.
pub(super) const VERIFIERS: [&str; 2] = ["pg_authid", "pg_shadow"];

/// Tables that tell whom the cluster lets in, and how.
pub(super) const LOGIN_RULES: [&str; 2] = ["pg_hba_file_rules", "pg_ident_file_mappings"];

impl SystemTable {
    /// Whether not everybody may read it.
    pub fn is_secret(&self) -> bool {
        VERIFIERS.contains(&self.name) || LOGIN_RULES.contains(&self.name)
    }
    /// Whether somebody may read it. As in PostgreSQL, `pg_read_all_data` reads verifiers.
    pub fn is_shown_to(&self, who: &Authority) -> bool {
        match () {
            () if LOGIN_RULES.contains(&self.name) => who.is_superuser,
            () if VERIFIERS.contains(&self.name) => who.has(READ_ALL_DATA),
            () => true,
        }
    }
}
