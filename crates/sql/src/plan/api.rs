//! What a session gives to bind a statement, and what it keeps of it.

use crate::catalog::Catalog;
use crate::catalog::names::Names;
use crate::catalog::privileges::Privileges;
use crate::catalog::system::SystemTable;
use crate::types::{EvalContext, Type};
use meridian_base::{DescriptorId, GroupId, SchemaVersion};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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

/// A privilege that a statement needs, asked for whenever it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    pub on: NeedOn,
    pub privileges: Privileges,
    /// The view whose owner needs it, as what a view reads; `None`: whoever runs the statement.
    pub by: Option<DescriptorId>,
}

/// What a [`Need`] is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NeedOn {
    Object(DescriptorId),
    /// A system table that not everybody may read.
    Secrets(&'static SystemTable),
}

/// Remembers that the needs of a plan were met: a role and a version of the catalog.
#[derive(Debug, Default)]
pub(crate) struct Permit(AtomicU64);

impl Permit {
    const VERSION_BITS: u32 = 40;
    /// `None`: the numbers are too large to be remembered.
    fn pack(role: DescriptorId, seen: SchemaVersion) -> Option<u64> {
        let fits = role.0 < 1 << (64 - Permit::VERSION_BITS) && seen.0 < 1 << Permit::VERSION_BITS && role.0 > 0;
        fits.then(|| u64::from(role.0) << Permit::VERSION_BITS | seen.0)
    }
    pub fn is_of(&self, role: DescriptorId, seen: SchemaVersion) -> bool {
        Permit::pack(role, seen).is_some_and(|packed| self.0.load(Ordering::Relaxed) == packed)
    }
    /// Whether it was remembered for anybody.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
    pub fn remember(&self, role: DescriptorId, seen: SchemaVersion) {
        if let Some(packed) = Permit::pack(role, seen) {
            self.0.store(packed, Ordering::Relaxed);
        }
    }
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
    /// What its user has to be allowed; see [`Need`].
    pub needs: Vec<Need>,
    /// For whom, and by which catalog, that was found to be so.
    pub(crate) permit: Permit,
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
    /// It has arrays among its parameters: long ones are looked up in another way than short ones.
    pub is_of_lists: bool,
    pub(crate) plan: super::Plan,
}

impl Prepared {
    /// Whether statistics of several tables matter to its plan.
    pub(crate) fn has_choices(&self) -> bool {
        matches!(self.plan, super::Plan::General(_)) && self.descriptors.len() > 1
    }
    /// Whether it is an `INSERT` of rows that are new and stay untold: without `ON CONFLICT` and
    /// `RETURNING`.
    pub(crate) fn is_plain_insert(&self) -> bool {
        use super::node::{DmlPlan, DmlPlanKind, Node};
        let super::Plan::General(node) = &self.plan else { return false };
        let is_plain = |dml: &DmlPlan| {
            matches!(dml.kind, DmlPlanKind::Insert { conflict: None, infers: false, .. }) && dml.returning.is_empty()
        };
        matches!(&**node, Node::Dml(dml) if is_plain(dml))
    }
    /// Whether rows come back.
    pub fn returns_rows(&self) -> bool {
        !self.columns.is_empty() || matches!(self.tag, Tag::Select)
    }
}
