//! The primary's side of the schema lease. The catalog's side is [`crate::schema_lease`].

use super::{Engine, Phase, SchemaCheck};
use crate::state::{GroupState, Planned, planned};
use crate::waits::WaitFor;
use meridian_base::record::SchemaGrant;
use meridian_base::{Conflict, ConflictReason, GroupId, Key, SchemaUse, Timestamp};

impl Engine {
    /// The catalog's own group has no lease on itself: there, descriptor reads are certified like
    /// any others.
    pub(super) fn leased(&self) -> bool {
        self.group != GroupId::CATALOG
    }

    /// Certification of the schema's version: the same one, or an older one none of whose used
    /// descriptors has changed.
    pub(super) fn planned_with(&self, state: &GroupState, schema: &SchemaUse) -> Planned {
        match !self.leased() || schema.is_certified_by_catalog || !self.rules.certifies_schema_version() {
            true => Planned::Current,
            false => state.planned_with(schema),
        }
    }

    /// The latest timestamp for which the schema's version is granted. A lowered one is obeyed
    /// before it is durable: it must not be overtaken.
    pub(super) fn schema_bound(&self, state: &GroupState) -> Timestamp {
        // The catalog's own group has no lease on itself.
        match &self.grant_asked {
            _ if !self.leased() => Timestamp::MAX,
            Some(asked) => asked.bound.min(state.grant().bound),
            None => state.grant().bound.min(self.lowered_bound()),
        }
    }

    /// Who used the present version commits and reads at or above the step that made it
    /// (counterexample 31).
    pub(super) fn schema_above(&self, state: &GroupState, schema: &SchemaUse) -> Timestamp {
        match self.leased() && schema.version == state.grant().version && self.rules.commits_above_schema_step() {
            true => state.grant().committed_at,
            false => Timestamp::MIN,
        }
    }

    /// Whether a read at `s` was planned with the right schema. Checked again after `s` has moved.
    pub fn check_read(&mut self, state: &GroupState, schema: &SchemaUse, s: Timestamp) -> SchemaCheck {
        let changed = || SchemaCheck::Changed(Conflict { key: Key::MIN, reason: ConflictReason::SchemaChanged });
        match self.planned_with(state, schema) {
            Planned::Ahead => return SchemaCheck::Wait(self.waits.issue(WaitFor::Grant)),
            Planned::Stale if self.is_of_lease_before(schema, s) => return SchemaCheck::Passed,
            Planned::Stale => return changed(),
            Planned::Current => {}
        }
        if s > self.schema_bound(state) {
            return SchemaCheck::Wait(self.waits.issue(WaitFor::Grant));
        }
        if s < self.schema_above(state, schema) {
            return changed();
        }
        SchemaCheck::Passed
    }

    /// Whether a read was planned with the version before the present one, and is under its lease.
    fn is_of_lease_before(&self, schema: &SchemaUse, s: Timestamp) -> bool {
        let is_of = |before: &SchemaGrant| {
            let starts = if schema.version == before.version { before.committed_at } else { Timestamp::MIN };
            planned(before, schema) == Planned::Current && starts <= s && s <= before.bound
        };
        self.lease_before.as_ref().is_some_and(is_of)
    }

    /// Up to where reads may still be planned with the version before the present one. The catalog
    /// gets no answer to its grant as long as they may: it takes the answer as a sign that the
    /// version before is used nowhere.
    pub fn lease_before(&self) -> Option<Timestamp> {
        self.lease_before.as_ref().map(|before| before.bound)
    }

    /// No read is planned with the version before the present one from now on.
    pub fn end_lease_before(&mut self) {
        self.lease_before = None;
    }

    /// A grant from the catalog. A lowering (a bound below the present one) is obeyed at once. The
    /// bound logged may be above the one asked for, since it is never below a timestamp issued, a
    /// read served, or a closed timestamp promised; it is never above what the catalog knows to be
    /// granted. Gives the record to log, whose `seq` and `bound` are the answer to the catalog once
    /// it is applied; `None` if nothing is to be logged: the grant is in the log
    /// ([`GroupState::grant`] has its `seq`: answer with its bound), on its way there, or outdated.
    pub fn grant(&mut self, state: &GroupState, grant: &SchemaGrant) -> Option<SchemaGrant> {
        let newest = self.grant_asked.as_ref().map_or(0, |asked| asked.seq).max(state.grant().seq);
        let stale = grant.seq <= newest && self.rules.refuses_delayed_grants();
        if self.phase != Phase::Serving || stale {
            return None;
        }
        let used = self.floor.max(state.closed()).min(self.schema_bound(state));
        // Hosts of a pod answer for themselves.
        if grant.version > state.grant().version && self.pod.is_none() {
            self.lease_before = Some(SchemaGrant { bound: self.schema_bound(state), ..state.grant().clone() });
        }
        let grant = SchemaGrant { bound: grant.bound.max(used), ..grant.clone() };
        self.grant_asked = Some(grant.clone());
        Some(grant)
    }
}
