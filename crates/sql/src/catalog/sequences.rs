//! Sequences: `nextval` and its relatives.
//!
//! The counter is one row of the sequence's group, at key `index id`. Drawing from it is a
//! transaction of its own, so that, as in PostgreSQL (manual 9.17), a value once drawn is never
//! drawn again, whatever becomes of the statement that drew it.

use super::Catalog;
use super::relation::SequenceRef;
use crate::types::Type;
use async_trait::async_trait;
use meridian_base::{DescriptorId, Result};

/// The columns of a sequence as a relation.
pub const COLUMNS: [(&str, Type); 3] = [("last_value", Type::Int8), ("log_cnt", Type::Int8), ("is_called", Type::Bool)];

/// What `nextval`, `currval`, `lastval` and `setval` are evaluated with. One per session.
#[async_trait]
pub trait Sequences: Send + Sync {
    /// `catalog`: where the sequence was found.
    async fn nextval(&self, sequence: &SequenceRef, catalog: &Catalog) -> Result<i64>;
    async fn setval(&self, sequence: &SequenceRef, catalog: &Catalog, value: i64, is_called: bool) -> Result<i64>;
    /// 55000 if `nextval` was not called in this session.
    fn currval(&self, sequence: DescriptorId) -> Result<i64>;
    /// The sequence, and its value.
    fn lastval(&self) -> Result<(DescriptorId, i64)>;
    /// The last number and whether it was drawn; if not, it is the next one. What other nodes have
    /// reserved counts as drawn, as PostgreSQL counts what its sessions cache.
    async fn state(&self, sequence: &SequenceRef, catalog: &Catalog) -> Result<(i64, bool)>;
}
