//! What a session gives to bind a statement, and what it keeps of it.

use crate::catalog::Catalog;
use crate::catalog::lookup::Names;
use crate::types::{EvalContext, Type};
use meridian_base::{DescriptorId, GroupId};
use std::sync::Arc;

/// How names are found and constants are folded.
#[derive(Clone, Copy)]
pub struct PlanContext<'a> {
    pub catalog: &'a Arc<Catalog>,
    pub names: &'a Names,
    /// For folding immutable functions and reading literals (time zone, `DateStyle`).
    pub eval: &'a EvalContext,
}

/// A column of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputColumn {
    pub name: String,
    pub ty: Type,
    /// The table column it shows unchanged, if it is one: the descriptor and the ordinal.
    pub origin: Option<(DescriptorId, u32)>,
}

/// The command tag's first word, and how many rows it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    Select,
    Insert,
    Update,
    Delete,
    Merge,
    Explain,
}

/// A statement, bound and planned. Immutable; cacheable while none of its descriptors changed and
/// the search path is the same.
pub struct Prepared {
    /// Types of `$1`, `$2`, ….
    pub params: Vec<Type>,
    /// Empty if it returns no rows.
    pub columns: Vec<OutputColumn>,
    pub tag: Tag,
    /// Every descriptor it used, sorted.
    pub descriptors: Vec<DescriptorId>,
    /// The groups it may touch, sorted; empty if it reads system tables or nothing.
    pub groups: Vec<GroupId>,
    /// Neither writes nor locks rows, nor draws from sequences.
    pub read_only: bool,
    /// The table whose rows it changes, the first one if there are several.
    pub changes: Option<DescriptorId>,
    /// Whether a `Prepared` may be used for other literals, or again at all: false if it folded
    /// something that may change.
    pub cacheable: bool,
    /// It is dear, and another plan may be the best one for other values of its parameters.
    pub is_of_values: bool,
    pub(crate) plan: super::Plan,
}

impl Prepared {
    /// Whether rows come back.
    pub fn returns_rows(&self) -> bool {
        !self.columns.is_empty() || matches!(self.tag, Tag::Select)
    }
}
