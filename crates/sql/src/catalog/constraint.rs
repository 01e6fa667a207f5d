//! Constraints in a table's descriptor.

use meridian_base::DescriptorId;
use serde::{Deserialize, Serialize};

/// A CHECK of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    pub id: DescriptorId,
    pub name: String,
    /// SQL text.
    pub expression: String,
    pub validated: bool,
}

/// A foreign key of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForeignKey {
    pub id: DescriptorId,
    pub name: String,
    /// Ordinals here and there, in pairs.
    pub columns: Vec<u32>,
    pub parent: DescriptorId,
    pub parent_columns: Vec<u32>,
    pub on_delete: FkAction,
    pub on_update: FkAction,
    pub match_full: bool,
    pub validated: bool,
}

/// What becomes of rows whose parent is deleted, or gets another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FkAction {
    NoAction,
    Restrict,
    Cascade,
    SetNull,
    SetDefault,
}
