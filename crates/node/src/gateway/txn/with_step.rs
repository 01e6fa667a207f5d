//! A transaction that commits together with a step of a schema change.
//!
//! The catalog's coordinator takes the gateway's place: the transaction's slices go to it with the
//! step, and when no group may commit with the old schema any more it holds the ballot, with the
//! catalog as one more participant, which votes last. So nobody can see the rows without the schema
//! or the schema without the rows, and no descriptor is in doubt because of a participant that
//! cannot be reached.

use super::Txn;
use super::commit::unknown_outcome;
use crate::transport::wire::Slice;
use meridian_base::{CommitRequest, Error, GroupId, Refusal, Result, SchemaUse, Timestamp, TxnId};
use meridian_sql::catalog::Catalog;

impl Txn {
    /// What it did, group by group, under a step that is derived from `base`. GLOBAL groups that
    /// were only read take part like any others.
    pub(crate) fn slices_for_step(&mut self, base: &Catalog) -> Result<Vec<Slice>> {
        if let Some(e) = &self.failed {
            return Err(e.clone());
        }
        // From here on the catalog answers for the schema.
        let is_changed = |d| base.changed_in.get(d).is_some_and(|v| *v > self.schema.version);
        if self.schema.version > base.version || self.schema.descriptors.iter().any(is_changed) {
            let e = Error::retry("could not serialize access: the schema was changed by another transaction");
            return Err(self.note_failure(e));
        }
        let is_late = self.protocol.is_late(self.attempts);
        let takes_part = self.parts.iter().filter(|p| !p.writes.is_empty() || !p.view.entries.is_empty());
        let slice = |part: &super::Part| Slice {
            group: part.group,
            request: CommitRequest {
                id: TxnId::default(),
                reads: part.reads(),
                writes: part.writes.values().cloned().collect(),
                min_commit: self.newest.max(self.options.schema_committed_at),
                schema: SchemaUse { is_certified_by_catalog: true, ..SchemaUse::default() },
                global: Default::default(),
            },
            has_queued: is_late || part.has_queued(),
        };
        Ok(takes_part.map(slice).collect())
    }

    /// It has committed.
    pub(crate) fn committed_with_step(&mut self, slices: &[Slice], at: Timestamp) {
        for slice in slices {
            self.learn_own(slice.group, &slice.request.writes, at);
        }
        self.count(true);
        self.gateway.refusals.forget(self.options.session);
    }

    /// These groups refused it. The error.
    pub(crate) fn refused_by(&mut self, refusals: Vec<(GroupId, Refusal)>) -> Error {
        self.count(false);
        self.why_refused(refusals)
    }

    /// What became of it is unknown.
    pub(crate) fn lost_with_step(&mut self) -> Error {
        self.count(false);
        unknown_outcome("not every participant could be reached")
    }
}
