//! Sequences: `nextval` and its relatives.
//!
//! The counter is one row of the sequence's group, at key `index id`. Drawing from it is a
//! transaction of its own, so that, as in PostgreSQL (manual 9.17), a value once drawn is never
//! drawn again, whatever becomes of the statement that drew it.

use super::Catalog;
use super::relation::SequenceRef;
use crate::types::Type;
use futures::future::BoxFuture;
use meridian_base::{DescriptorId, Result};

/// The columns of a sequence as a relation.
pub const COLUMNS: [(&str, Type); 3] = [("last_value", Type::Int8), ("log_cnt", Type::Int8), ("is_called", Type::Bool)];

/// What `nextval`, `currval`, `lastval` and `setval` are evaluated with. One per session.
pub trait Sequences: Send + Sync {
    /// `catalog`: where the sequence was found.
    fn nextval<'a>(&'a self, sequence: &'a SequenceRef, catalog: &'a Catalog) -> BoxFuture<'a, Result<i64>>;
    fn setval<'a>(
        &'a self,
        sequence: &'a SequenceRef,
        catalog: &'a Catalog,
        value: i64,
        is_called: bool,
    ) -> BoxFuture<'a, Result<i64>>;
    /// 55000 if `nextval` was not called in this session.
    fn currval(&self, sequence: DescriptorId) -> Result<i64>;
    /// The sequence, and its value.
    fn lastval(&self) -> Result<(DescriptorId, i64)>;
    /// The last number and whether it was drawn; if not, it is the next one. What other nodes have
    /// reserved counts as drawn, as PostgreSQL counts what its sessions cache.
    fn state<'a>(&'a self, sequence: &'a SequenceRef, catalog: &'a Catalog) -> BoxFuture<'a, Result<(i64, bool)>>;
}
