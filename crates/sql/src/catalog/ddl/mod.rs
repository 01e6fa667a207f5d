//! DDL: a statement and a catalog to a change and the work that follows it.
//!
//! [`derive`] is pure. What it returns is one [`CatalogChange`], to be committed as one step, and the [`Job`]s that bring the
//! database to where the statement promised it: building an index, validating a constraint, deleting what nobody can reach
//! any more. A new index starts as `DeleteOnly` and a new constraint as not validated; the jobs take the further steps
//! (`super::jobs`). In a table nobody else can see yet ([`DdlContext::private`]) everything is finished at once.

use super::lookup::Names;
use super::{Catalog, CatalogChange};
use crate::env::NodeLocality;
use sqlparser::ast::Statement;
use meridian_base::{DescriptorId, Error, GroupId, Result};
use std::collections::BTreeSet;

/// What a statement means besides its text and the catalog.
#[derive(Clone, Debug)]
pub struct DdlContext<'a> {
    pub names: &'a Names,
    /// Where a database without `PRIMARY REGION` lives.
    pub gateway_region: &'a str,
    /// What region names are checked against.
    pub nodes: &'a [NodeLocality],
    /// Tables created or truncated in the open transaction block: they are empty to everybody, so indexes and constraints on them need no
    /// job.
    pub private: &'a BTreeSet<DescriptorId>,
}

/// What a DDL statement does.
#[derive(Clone, Debug, Default)]
pub struct Ddl {
    /// The command tag.
    pub tag: &'static str,
    pub notices: Vec<Notice>,
    /// Empty if there is nothing to do (`IF NOT EXISTS`).
    pub change: CatalogChange,
    /// In order; each starts when the one before is done.
    pub jobs: Vec<Job>,
    /// Tables that nobody else sees until the change commits: created or truncated by it.
    pub private: Vec<DescriptorId>,
}

/// A NOTICE for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub sqlstate: &'static str,
    pub message: String,
}

/// Work after a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Job {
    /// Takes an index from `DeleteOnly` over `WriteOnly` and its backfill to `Public`. Fails with 23505 and removes it.
    BuildIndex { table: DescriptorId, index: u32 },
    /// The same for a primary key, which then replaces the table's primary index.
    BuildPrimary { table: DescriptorId, index: u32 },
    /// Looks for a row that breaks a CHECK; marks it validated, or fails with 23514 and removes it.
    ValidateCheck { table: DescriptorId, check: DescriptorId },
    /// The same for a check `column IS NOT NULL`, which then becomes the column's NOT NULL (23502).
    ValidateNotNull { table: DescriptorId, check: DescriptorId, ordinal: u32, added_column: bool },
    /// Looks for a row without its parent; marks the constraint validated, or fails with 23503 and removes it.
    ValidateForeignKey { table: DescriptorId, constraint: DescriptorId },
    /// Deletes the data of indexes that nobody can use any more.
    Discard { group: GroupId, indexes: Vec<u32> },
}

/// Whether a statement is one that [`derive`] handles.
pub fn is_ddl(statement: &Statement) -> bool {
    let _ = statement;
    false
}

/// Derives a statement's change and jobs. The errors are the statement's.
pub fn derive(statement: &Statement, catalog: &Catalog, context: &DdlContext) -> Result<Ddl> {
    let _ = (statement, catalog, context);
    Err(Error::unsupported("this statement is not supported yet"))
}
