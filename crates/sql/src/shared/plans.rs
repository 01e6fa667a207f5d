//! The plan cache: one per node, so that a statement is planned once however many sessions run it,
//! in whichever protocol.
//!
//! A key is a statement's text without its literals, the types of its parameters, and the *scope*:
//! everything else that decides what the text means (database, search path, user, time zone, date
//! order). An entry is good for exactly one version of the catalog ([`Catalog::seen`]): schema
//! changes are rare, and any of them may give a name another meaning. So are new statistics, which
//! may make another plan the cheapest.

use crate::catalog::Catalog;
use crate::catalog::names::Names;
use crate::plan::Prepared;
use crate::types::DateOrder;
use meridian_base::{DescriptorId, SchemaVersion};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many plans a node keeps. A plan is a few KiB.
const PLANS_MAX: usize = 2_000;
/// How many scopes. When there are more, the cache starts afresh.
const SCOPES_MAX: usize = 1_000;
/// Longer texts are one-offs.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// A plan, and the catalog version and the search path that it is good for.
#[derive(Clone)]
pub(crate) struct Plan {
    pub prepared: Arc<Prepared>,
    search_path: Arc<[String]>,
    /// Which role it was made for: what names mean depends on the schemas that it may use.
    role: DescriptorId,
    /// [`Catalog::seen`].
    seen: SchemaVersion,
    /// [`Catalog::counted`].
    counted: SchemaVersion,
    /// [`Catalog::is_private`]: it is good for once.
    is_private: bool,
}

impl Plan {
    pub fn new(prepared: Arc<Prepared>, catalog: &Catalog, names: &Names) -> Plan {
        let search_path = names.search_path[..].into();
        let Catalog { seen, counted, is_private, .. } = *catalog;
        Plan { prepared, search_path, role: names.role, seen, counted, is_private }
    }
    /// Whether it was made with this search path and this catalog, or one that no plan can tell
    /// from it.
    pub fn is_of(&self, catalog: &Catalog, names: &Names) -> bool {
        self.is_of_catalog(catalog) && self.role == names.role && self.search_path[..] == names.search_path[..]
    }
    fn is_of_catalog(&self, catalog: &Catalog) -> bool {
        self.seen == catalog.seen && self.counted == catalog.counted && !self.is_private && !catalog.is_private
    }
}

/// See the module's essay. Interned, because it is the same for all statements of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Scope(u64);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PlanKey {
    pub text: String,
    /// OIDs; 0 where the type is to be found out.
    pub types: Vec<u32>,
    pub scope: Scope,
}

#[derive(Default)]
pub(crate) struct PlanCache {
    entries: RwLock<Entries>,
    /// Counts uses; an entry's last one is its age.
    uses: AtomicU64,
}

#[derive(Default)]
struct Entries {
    plans: BTreeMap<PlanKey, Entry>,
    scopes: BTreeMap<ScopeKey, Scope>,
    scopes_given: u64,
}

struct Entry {
    plan: Plan,
    used: AtomicU64,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct ScopeKey {
    database: String,
    user: String,
    search_path: Vec<String>,
    zone: String,
    date_order: u8,
}

impl PlanCache {
    /// The scope of a session's statements; ask again when one of these changes.
    pub fn scope(&self, names: &Names, zone: &str, order: DateOrder) -> Scope {
        let key = ScopeKey {
            database: names.database.clone(),
            user: names.user.clone(),
            search_path: names.search_path.clone(),
            zone: zone.to_string(),
            date_order: order as u8,
        };
        let mut entries = self.entries.write();
        if let Some(scope) = entries.scopes.get(&key) {
            return *scope;
        }
        if entries.scopes.len() >= SCOPES_MAX {
            entries.scopes.clear();
            entries.plans.clear();
        }
        // Numbers are not reused: a session may still hold one of those forgotten.
        entries.scopes_given += 1;
        let scope = Scope(entries.scopes_given);
        entries.scopes.insert(key, scope);
        scope
    }
    /// The plan for a key, if it is good for this catalog.
    pub fn get(&self, key: &PlanKey, catalog: &Catalog) -> Option<Plan> {
        let entries = self.entries.read();
        let entry = entries.plans.get(key)?;
        entry.used.store(self.uses.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        entry.plan.is_of_catalog(catalog).then(|| entry.plan.clone())
    }
    /// Keeps a plan, if it may be kept.
    pub fn put(&self, key: PlanKey, plan: &Plan) {
        if !plan.prepared.cacheable || key.text.len() > TEXT_BYTES_MAX {
            return;
        }
        let used = AtomicU64::new(self.uses.fetch_add(1, Ordering::Relaxed));
        let mut entries = self.entries.write();
        if entries.plans.len() >= PLANS_MAX && !entries.plans.contains_key(&key) {
            entries.evict();
        }
        entries.plans.insert(key, Entry { plan: plan.clone(), used });
    }
}

impl Entries {
    /// Drops the quarter that was not used for longest.
    fn evict(&mut self) {
        let mut ages: Vec<u64> = self.plans.values().map(|e| e.used.load(Ordering::Relaxed)).collect();
        ages.sort_unstable();
        let limit = ages[ages.len() / 4];
        self.plans.retain(|_, e| e.used.load(Ordering::Relaxed) > limit);
    }
}
