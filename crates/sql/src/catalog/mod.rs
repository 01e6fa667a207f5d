//! The catalog: what exists, under which names, where it lives.
//!
//! A [`Catalog`] is one immutable version of everything. A schema change derives a
//! [`CatalogChange`] from it; the database below turns that into one step
//! (`Environment::change_catalog`) and every node into its next `Catalog`.

pub mod authority;
pub mod bootstrap;
pub mod constraint;
pub mod declared;
pub mod descriptor;
pub mod escrow;
pub mod escrow_tables;
pub mod expression;
pub mod hba;
pub mod ids;
pub mod job;
pub mod jobs;
pub mod login;
mod login_rules;
pub mod lookup;
pub mod names;
pub mod privileges;
mod reached;
pub mod relation;
pub mod roles;
pub mod sequences;
pub mod system;
mod system_table;
pub mod zones;

use crate::statistics::TableStatistics;
use crate::types::EvalContext;
pub use authority::Authority;
pub use constraint::{Check, FkAction, ForeignKey};
pub use descriptor::*;
pub use escrow::EscrowColumn;
pub use login::LoginRules;
use meridian_base::{DescriptorId, GroupId, SchemaVersion, Timestamp, envelope};
pub use reached::Reached;
pub use roles::Role;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, LazyLock};

/// One version of the catalog.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    pub version: SchemaVersion,
    /// The commit timestamp of the step that made this version.
    pub committed_at: Timestamp,
    /// The last version that transactions can tell from the one before: those after it changed only
    /// records of jobs. What is planned with this one is planned with that one, and groups know of
    /// no others.
    pub seen: SchemaVersion,
    /// The commit timestamp of the step that made that one.
    pub seen_at: Timestamp,
    /// Descriptors by id. Names are looked up through `by_name`.
    pub descriptors: BTreeMap<DescriptorId, Arc<Descriptor>>,
    /// (parent, name) → id: databases under 0, schemas under their database, tables, views,
    /// sequences and types under their schema.
    pub by_name: BTreeMap<(DescriptorId, String), DescriptorId>,
    /// The smallest id never used: descriptors, indexes, constraints and groups draw from one
    /// sequence.
    pub next_id: u32,
    /// The version that changed a descriptor last.
    pub changed_in: BTreeMap<DescriptorId, SchemaVersion>,
    /// What is known about the rows of tables.
    statistics: BTreeMap<DescriptorId, (DescriptorId, Option<Arc<TableStatistics>>)>,
    /// The version that changed any of that last: plans are made with it.
    pub counted: SchemaVersion,
    /// With changes of a transaction that has not committed and may never do: whatever is derived
    /// from it holds for the next statement of that transaction at most.
    pub is_private: bool,
}

/// A step: what to write, derived from one version.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CatalogChange {
    /// New or replaced descriptors.
    #[serde(with = "envelope::each")]
    pub put: Vec<Descriptor>,
    pub delete: Vec<DescriptorId>,
    pub next_id: u32,
}

impl CatalogChange {
    /// Whether applying it would change nothing.
    pub fn is_empty(&self) -> bool {
        self.put.is_empty() && self.delete.is_empty()
    }
    /// Whether transactions can tell its version from the one before: nobody plans with the record
    /// of a job, and no answer depends on statistics.
    pub fn is_seen(&self) -> bool {
        !self.delete.is_empty() || !self.put.iter().all(|d| matches!(d, Descriptor::Job(_) | Descriptor::Statistics(_)))
    }
    /// The groups that begin to leave with it.
    pub fn leaving(&self) -> Vec<GroupId> {
        let leaving = |d: &Descriptor| if let Descriptor::Leaving(group) = d { Some(group.id) } else { None };
        self.put.iter().filter_map(leaving).collect()
    }
    /// This change, then another one derived from its result: what a transaction block with several
    /// DDL statements commits.
    pub fn merge(&mut self, later: CatalogChange) {
        self.put.retain(|d| !later.delete.contains(&d.id()) && !later.put.iter().any(|l| l.id() == d.id()));
        self.delete.retain(|id| !later.put.iter().any(|l| l.id() == *id));
        self.put.extend(later.put);
        self.delete.extend(later.delete);
        self.next_id = self.next_id.max(later.next_id);
    }
}

/// Whether an index is the primary index of a table without a primary key: it exists for storage
/// only, over the hidden row id, and SQL does not see it.
pub fn is_implicit_primary(table: &Table, index: &Index) -> bool {
    let is_row_id = |c: &IndexColumn| table.columns[c.ordinal as usize].is_row_id();
    table.primary().id == index.id && index.columns.iter().all(is_row_id)
}

impl Catalog {
    /// The next version. Pure: every node computes the same one.
    pub fn apply(&self, change: &CatalogChange, version: SchemaVersion, committed_at: Timestamp) -> Catalog {
        let mut next = self.clone();
        next.version = version;
        next.committed_at = committed_at;
        next.is_private = false;
        if change.is_seen() {
            (next.seen, next.seen_at) = (version, committed_at);
        }
        next.next_id = self.next_id.max(change.next_id);
        for id in &change.delete {
            next.remove(*id, version);
        }
        for d in &change.put {
            next.put(d.clone(), version);
        }
        let is_found =
            |d: &Descriptor| d.name().is_none_or(|name| next.by_name.get(&(d.parent(), name.to_string())) == Some(&d.id()));
        debug_assert!(change.put.iter().all(is_found), "two descriptors of one name in {change:?}");
        if meridian_base::invariants::are_looked_at() {
            next.invariant_tables_have_their_groups();
            self.invariant_what_is_dead_stays_so(&next);
        }
        next
    }

    /// No table is in a group that does not exist, or that leaves; nor does it move there.
    fn invariant_tables_have_their_groups(&self) {
        for table in self.descriptors.values().filter_map(relation::TableRef::new) {
            let there = table.elsewhere();
            let sites = table.with_shares().flat_map(|e| e.sites.iter().copied());
            for group in table.groups().chain(there.iter().flat_map(Table::groups)).chain(sites) {
                assert!(self.group_by_id(group).is_some(), "table {} is in {group}, which is not there", table.name);
            }
        }
    }

    /// The same version with changes that one transaction makes: for everybody else it is as it
    /// was.
    pub fn with(&self, change: &CatalogChange) -> Catalog {
        let changed = self.apply(change, self.version, self.committed_at);
        Catalog { seen: self.seen, seen_at: self.seen_at, is_private: true, ..changed }
    }

    /// Builds a version from what is stored. `seen`: [`Catalog::seen`], and when.
    pub fn from_stored(
        descriptors: impl IntoIterator<Item = (Descriptor, SchemaVersion)>,
        next_id: u32,
        version: SchemaVersion,
        committed_at: Timestamp,
        (seen, seen_at): (SchemaVersion, Timestamp),
    ) -> Catalog {
        let mut catalog = Catalog { version, committed_at, seen, seen_at, next_id, ..Catalog::default() };
        for (d, changed_in) in descriptors {
            catalog.put(d, changed_in);
        }
        catalog
    }

    /// What is known about the rows of a table.
    pub fn statistics_of(&self, table: DescriptorId) -> Option<&Arc<TableStatistics>> {
        self.statistics.get(&table)?.1.as_ref()
    }
    /// The descriptor of a table's statistics.
    pub(crate) fn statistics_id(&self, table: DescriptorId) -> Option<DescriptorId> {
        self.statistics.get(&table).map(|(id, _)| *id)
    }

    pub(crate) fn put(&mut self, d: Descriptor, version: SchemaVersion) {
        let id = d.id();
        self.remove(id, version);
        if let Some(name) = d.name() {
            self.by_name.insert((d.parent(), name.to_string()), id);
        }
        if let Descriptor::Statistics(stored) = &d {
            self.statistics.insert(stored.table, (id, stored.read().map(Arc::new)));
            self.counted = self.counted.max(version);
        }
        self.descriptors.insert(id, Arc::new(d));
        self.changed_in.insert(id, version);
    }

    /// What another descriptor has taken over in the same step, such as its name, stays with that
    /// one.
    pub(crate) fn remove(&mut self, id: DescriptorId, version: SchemaVersion) {
        if let Some(old) = self.descriptors.remove(&id) {
            if let Some(name) = old.name()
                && let Entry::Occupied(named) = self.by_name.entry((old.parent(), name.to_string()))
                && *named.get() == id
            {
                named.remove();
            }
            if let Descriptor::Statistics(stored) = &*old
                && let Entry::Occupied(known) = self.statistics.entry(stored.table)
                && known.get().0 == id
            {
                known.remove();
            }
        }
        self.changed_in.insert(id, version);
    }
}

/// The catalog that a statement was planned with. (Without one, as in a constant's context: an
/// empty one.)
pub fn catalog_of(ctx: &EvalContext) -> &Catalog {
    static EMPTY: LazyLock<Catalog> = LazyLock::new(Catalog::default);
    let view: &dyn Any = &*ctx.catalog;
    view.downcast_ref().unwrap_or(&EMPTY)
}
