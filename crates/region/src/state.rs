//! What a group's log determines: the same on every replica, whoever applied it, however often.
//!
//! The versions themselves are the store's. This is the rest: how far the log is applied, what the
//! group has promised (`closed`, the ceiling), which catalog version it is at, and what became of
//! recent transactions. It is flushed together with the store, at one log position, and travels in
//! snapshots, so a new primary finds here everything it must respect before it serves anything.
//!
//! The tables of transactions over several groups are here too ([`Ledger`]): prepared (with their
//! slices), refused, decided. What becomes visible follows the log as everything else does: the
//! writes of a prepared transaction are applied with its `Outcome` record ([`GroupState::effect`]),
//! by every replica at the same entry. How long a row of these tables is kept:
//!
//! * *prepared*: until its outcome;
//! * *committed*: until every participant has its outcome in the log and the id is at or below the
//!   watermark (`Settled`);
//! * *refused* and *aborted*: until the id is at or below the watermark. From then on the group
//!   answers «forgotten», which every participant takes for a NO. An abort has at least one NO
//!   behind it, and a NO is said for ever, so whoever still has to learn of the abort does without
//!   this group's row.

use crate::reservations::Reservations;
use crate::rules::Rules;
use meridian_base::record::{Committed, Lease, Outcome, Payload, Prepared, Record, SchemaGrant};
use meridian_base::{
    ColumnMask, Error, GroupId, Ledger, LogPosition, NodeId, Result, SchemaUse, Standing, Target, Timestamp, TxnId, envelope,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The version of the encoding of [`GroupState`]. A larger one is refused instead of guessed at.
const FORMAT: u8 = 2;

/// Built by applying the log's payloads in order; flushed with the store and part of every
/// snapshot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupState {
    applied: LogPosition,
    closed: Timestamp,
    watermark: Timestamp,
    newest: Timestamp,
    lease: Option<Lease>,
    grant: SchemaGrant,
    /// Invariant: every id is above `watermark`.
    outcomes: BTreeMap<TxnId, Timestamp>,
    prepared: BTreeMap<TxnId, Prepared>,
    /// What `prepared` holds; derived from it.
    reservations: Reservations,
    /// Invariant: every id is above `watermark`; in `aborted` too.
    refused: BTreeSet<TxnId>,
    /// With the vote.
    aborted: BTreeMap<TxnId, Timestamp>,
    unsettled: BTreeMap<TxnId, Unsettled>,
    /// The largest timestamp at which a transaction over several groups committed here.
    newest_outcome: Timestamp,
    rules: Rules,
}

/// A transaction over several groups that committed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Unsettled {
    vote: Timestamp,
    at: Timestamp,
    participants: Vec<GroupId>,
}

/// See [`GroupState::planned_with`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planned {
    Current,
    /// The gateway knows a newer version than this group.
    Ahead,
    /// A descriptor it used has changed since.
    Stale,
}

/// See [`GroupState::planned_with`].
pub(crate) fn planned(grant: &SchemaGrant, schema: &SchemaUse) -> Planned {
    if schema.version == grant.version {
        return Planned::Current;
    }
    if schema.version > grant.version {
        return Planned::Ahead;
    }
    let changed_since = |d| grant.changed.iter().any(|(changed, v)| *changed == d && *v > schema.version);
    match schema.version < grant.complete_from || schema.descriptors.iter().any(|d| changed_since(*d)) {
        true => Planned::Stale,
        false => Planned::Current,
    }
}

impl GroupState {
    /// An empty group's state, before its first log entry.
    pub fn new(rules: Rules) -> GroupState {
        GroupState { rules, ..GroupState::default() }
    }

    /// Applies one entry's payload. Idempotent: an entry at or below [`GroupState::applied`]
    /// changes nothing and gives `false`.
    pub fn apply(&mut self, position: LogPosition, payload: &Payload) -> bool {
        if position.index <= self.applied.index {
            return false;
        }
        self.applied = position;
        for record in &payload.records {
            match record {
                Record::Batch(txns) => txns.iter().for_each(|txn| self.apply_committed(txn)),
                Record::Lease(lease) => self.apply_lease(lease),
                Record::Schema(grant) => self.apply_grant(grant),
                Record::Prepared(prepared) => self.apply_prepared(prepared),
                Record::Refused(id) => self.apply_refused(*id),
                Record::Outcome(outcome) => self.apply_outcome(outcome),
                Record::Settled(ids) => ids.iter().for_each(|id| self.apply_settled(*id)),
                // Each replica does it by itself, sooner or later.
                Record::Build(_) => {}
                // Whole transactions are gathered from parts before.
                Record::Part(_) => {}
            }
        }
        self.closed = self.closed.max(payload.closed);
        self.raise_watermark(payload.watermark);
        true
    }

    fn raise_watermark(&mut self, to: Timestamp) {
        self.watermark = self.watermark.max(to);
        while self.outcomes.first_key_value().is_some_and(|(id, _)| id.hlc <= self.watermark) {
            self.outcomes.pop_first();
        }
        while self.refused.first().is_some_and(|id| id.hlc <= self.watermark) {
            self.refused.pop_first();
        }
        while self.aborted.first_key_value().is_some_and(|(id, _)| id.hlc <= self.watermark) {
            self.aborted.pop_first();
        }
    }

    /// A transaction at this timestamp is in the log, and is nothing to this replica: it holds none
    /// of the keys, and nobody will ask it about the id. Comes before the entry is applied.
    pub fn passed(&mut self, at: Timestamp) {
        self.newest = self.newest.max(at);
    }

    /// Entries that are not payloads (membership, a term's first entry) only move the position.
    pub fn skip(&mut self, position: LogPosition) {
        if position.index > self.applied.index {
            self.applied = position;
        }
    }

    fn apply_committed(&mut self, txn: &Committed) {
        // The promise of `Payload::closed`. A planted bug may break it; the simulator's checkers
        // are to see that, not this line.
        assert!(
            txn.at > self.closed || !self.rules.are_all_kept(),
            "{} commits at {}, which was closed at {} before log entry {}",
            txn.id,
            txn.at,
            self.closed,
            self.applied
        );
        self.newest = self.newest.max(txn.at);
        if txn.id.hlc > self.watermark {
            self.outcomes.entry(txn.id).or_insert(txn.at);
        }
    }

    /// A vote never changes (T4): the first record of a transaction counts.
    fn apply_prepared(&mut self, prepared: &Prepared) {
        assert!(
            prepared.at > self.closed || !self.rules.are_all_kept(),
            "{} is prepared at {}, which was closed at {} before log entry {}",
            prepared.id,
            prepared.at,
            self.closed,
            self.applied
        );
        if self.has_voted(prepared.id) {
            return;
        }
        self.reservations.add(prepared.id, prepared.at, &prepared.reads, &prepared.writes);
        self.prepared.insert(prepared.id, prepared.clone());
    }

    fn apply_refused(&mut self, id: TxnId) {
        if !self.has_voted(id) {
            self.refused.insert(id);
        }
    }

    fn has_voted(&self, id: TxnId) -> bool {
        !matches!(self.standing(id), Standing::Unknown | Standing::Forgotten)
    }

    fn apply_outcome(&mut self, outcome: &Outcome) {
        let Some(prepared) = self.prepared.remove(&outcome.id) else { return };
        self.reservations.remove(outcome.id);
        let (id, vote) = (outcome.id, prepared.at);
        let Some(at) = outcome.at else {
            self.aborted.insert(id, vote);
            return;
        };
        assert!(at >= vote, "{id} commits at {at}, below this group's vote {vote}");
        self.newest = self.newest.max(at);
        self.newest_outcome = self.newest_outcome.max(at);
        self.unsettled.insert(id, Unsettled { vote, at, participants: prepared.participants });
    }

    fn apply_settled(&mut self, id: TxnId) {
        if id.hlc <= self.watermark {
            self.unsettled.remove(&id);
        }
    }

    /// Only who holds the lease may lower its ceiling (by giving it up). A successor's first record
    /// never does, however far behind its clock is: if it died at once, the next primary would
    /// start below what the first one used.
    fn apply_lease(&mut self, lease: &Lease) {
        let ceiling = match &self.lease {
            Some(last) if last.primary != lease.primary => last.ceiling.max(lease.ceiling),
            _ => lease.ceiling,
        };
        self.lease = Some(Lease { primary: lease.primary, ceiling });
    }

    fn apply_grant(&mut self, grant: &SchemaGrant) {
        if grant.seq > self.grant.seq || !self.rules.refuses_delayed_grants() {
            self.grant = grant.clone();
        }
    }

    /// The last entry applied.
    pub fn applied(&self) -> LogPosition {
        self.applied
    }
    /// No version will appear at or below this, except those of transactions prepared already.
    pub fn closed(&self) -> Timestamp {
        self.closed
    }
    /// The design's `F`: ids at or below it are settled and forgotten. A commit with such an id is
    /// answered 40003.
    pub fn watermark(&self) -> Timestamp {
        self.watermark
    }
    /// The largest commit timestamp applied.
    pub fn newest(&self) -> Timestamp {
        self.newest
    }
    /// The last lease in the log.
    pub fn lease(&self) -> Option<&Lease> {
        self.lease.as_ref()
    }
    /// The last lease's ceiling: nothing above it was ever issued, read or promised.
    pub fn ceiling(&self) -> Timestamp {
        self.lease.as_ref().map_or(Timestamp::MIN, |l| l.ceiling)
    }
    /// The newest schema grant accepted; version 0 with bound 0 before the first.
    pub fn grant(&self) -> &SchemaGrant {
        &self.grant
    }
    /// Whether a transaction planned with what this group is granted: the same version, or an older
    /// one none of whose used descriptors has changed.
    pub fn planned_with(&self, schema: &SchemaUse) -> Planned {
        planned(&self.grant, schema)
    }
    /// What became of a transaction, if it committed here and its id is above the watermark.
    pub fn outcome(&self, id: TxnId) -> Option<Timestamp> {
        self.outcomes.get(&id).copied()
    }
    /// What holds after every entry, whatever the log contains.
    pub fn invariant_tables(&self) {
        let first = [
            self.outcomes.first_key_value().map(|(id, _)| id),
            self.refused.first(),
            self.aborted.first_key_value().map(|(id, _)| id),
        ];
        for id in first.into_iter().flatten() {
            assert!(id.hlc > self.watermark, "{id} is remembered below the watermark {}", self.watermark);
        }
        assert_eq!(self.reservations.len(), self.prepared.len(), "prepared transactions, and no others, have reservations");
        for id in self.prepared.keys() {
            assert!(self.reservations.contains(*id), "{id} is prepared and holds nothing");
            assert!(!self.unsettled.contains_key(id) && !self.aborted.contains_key(id), "{id} is prepared and decided");
            assert!(!self.refused.contains(id), "{id} is prepared and refused");
        }
        for (id, unsettled) in &self.unsettled {
            assert!(!self.aborted.contains_key(id) && !self.refused.contains(id), "{id} is committed and refused");
            assert!(unsettled.at >= unsettled.vote, "{id} committed below its vote");
            assert!(unsettled.at <= self.newest_outcome, "{id} committed above the newest outcome");
        }
        assert!(self.newest_outcome <= self.newest, "an outcome is a version");
        self.reservations.invariant_indexes();
    }

    /// What holds after every entry of a log that primaries wrote: nothing was issued or promised
    /// above the lease's ceiling.
    pub fn invariant_ceiling(&self) {
        if !self.rules.are_all_kept() {
            return;
        }
        let Some(lease) = &self.lease else {
            assert!(self.newest == Timestamp::MIN && self.prepared.is_empty(), "a group without a lease has versions");
            return;
        };
        let ceiling = lease.ceiling;
        assert!(self.newest <= ceiling, "a version at {} above the ceiling {ceiling}", self.newest);
        assert!(self.closed <= ceiling, "{} is closed, above the ceiling {ceiling}", self.closed);
        for prepared in self.prepared.values() {
            assert!(prepared.at <= ceiling, "{} is prepared at {} above the ceiling {ceiling}", prepared.id, prepared.at);
        }
    }

    /// How many outcomes are remembered.
    pub fn outcomes_len(&self) -> usize {
        self.outcomes.len()
    }
}

// --- transactions over several groups

impl GroupState {
    /// What an `Outcome` record makes visible: the writes of the prepared transaction, at its
    /// commit timestamp. Asked *before* [`GroupState::apply`] of the record's payload, for the
    /// store. `None`: nothing, since it aborts, or is not prepared here (any more).
    pub fn effect(&self, outcome: &Outcome) -> Option<Committed> {
        let at = outcome.at?;
        let prepared = self.prepared.get(&outcome.id)?;
        Some(Committed { id: outcome.id, at, writes: prepared.writes.clone() })
    }

    /// Prepared here, outcome not in the log, in the order of their ids.
    pub fn prepared(&self) -> impl ExactSizeIterator<Item = &Prepared> {
        self.prepared.values()
    }
    /// What those hold.
    pub(crate) fn reservations(&self) -> &Reservations {
        &self.reservations
    }
    /// Where a *replica* (no engine needed, none asked) may read a target for a read planned at
    /// `s`: `s` itself, or just below the first prepared writer that the read would have to wait
    /// for. Read the store there; the entry's `until` is the same. `s` is at or below a closed
    /// timestamp that this replica has applied the log up to.
    pub fn replica_read(&self, target: &Target, columns: ColumnMask, s: Timestamp) -> Timestamp {
        if !self.rules.replicas_await_prepared() {
            return s;
        }
        self.reservations.writer(target, columns, s).map_or(s, |(_, vote)| vote.prev())
    }
    /// The largest timestamp at which a transaction over several groups committed here.
    pub fn newest_outcome(&self) -> Timestamp {
        self.newest_outcome
    }
    /// How many refusals, aborts and unsettled commits are remembered.
    pub fn ballots_len(&self) -> usize {
        self.refused.len() + self.aborted.len() + self.unsettled.len()
    }
}

// --- what always holds

impl GroupState {
    /// Panics if the tables contradict each other.
    pub fn invariant(&self) {
        let ids = self.prepared.keys().chain(self.unsettled.keys()).chain(self.aborted.keys()).chain(&self.refused);
        let mut seen = BTreeSet::new();
        for id in ids {
            assert!(seen.insert(*id), "{id} stands in two of the tables");
        }
        let is_kept = |id: &TxnId| id.hlc > self.watermark;
        let kept = self.outcomes.keys().chain(self.aborted.keys()).chain(&self.refused);
        if let Some(id) = kept.into_iter().find(|id| !is_kept(id)) {
            panic!("{id} is kept below the watermark {}", self.watermark);
        }
        let (held, prepared) = (self.reservations.len(), self.prepared.len());
        assert!(held == prepared, "{prepared} transactions are prepared and {held} hold reservations");
    }
}

impl Ledger for GroupState {
    fn standing(&self, id: TxnId) -> Standing {
        if let Some(prepared) = self.prepared.get(&id) {
            Standing::Prepared(prepared.at)
        } else if let Some(unsettled) = self.unsettled.get(&id) {
            Standing::Decided { vote: unsettled.vote, at: Some(unsettled.at) }
        } else if let Some(vote) = self.aborted.get(&id) {
            Standing::Decided { vote: *vote, at: None }
        } else if self.refused.contains(&id) {
            Standing::Refused
        } else if id.hlc <= self.watermark {
            Standing::Forgotten
        } else {
            Standing::Unknown
        }
    }
    fn watermark(&self) -> Timestamp {
        self.watermark
    }
    fn participants(&self, id: TxnId) -> &[GroupId] {
        let prepared = self.prepared.get(&id).map(|p| &p.participants);
        prepared.or_else(|| self.unsettled.get(&id).map(|u| &u.participants)).map_or(&[], Vec::as_slice)
    }
    fn unsettled(&self) -> Vec<TxnId> {
        let mut ids: Vec<TxnId> = self.prepared.keys().chain(self.unsettled.keys()).copied().collect();
        ids.sort();
        ids
    }
}

/// The encoding, after the format byte. Outcomes are sorted and as differences: a busy group
/// remembers half a minute of them, and they are written at every flush.
#[derive(Serialize, Deserialize)]
struct Encoded {
    applied: LogPosition,
    closed: Timestamp,
    watermark: Timestamp,
    newest: Timestamp,
    lease: Option<Lease>,
    grant: SchemaGrant,
    /// The id's clock less the one before, the gateway, the commit timestamp less the id's clock.
    outcomes: Vec<(u64, NodeId, i64)>,
    prepared: Vec<Prepared>,
    refused: BTreeSet<TxnId>,
    aborted: BTreeMap<TxnId, Timestamp>,
    unsettled: BTreeMap<TxnId, Unsettled>,
    newest_outcome: Timestamp,
}

impl GroupState {
    /// For the store's flush and for snapshots.
    pub fn encode(&self) -> Vec<u8> {
        let mut last = 0;
        let outcomes = self.outcomes.iter().map(|(id, at)| {
            let step = id.hlc.0 - last;
            last = id.hlc.0;
            (step, id.gateway, at.0.wrapping_sub(id.hlc.0) as i64)
        });
        let encoded = Encoded {
            applied: self.applied,
            closed: self.closed,
            watermark: self.watermark,
            newest: self.newest,
            lease: self.lease.clone(),
            grant: self.grant.clone(),
            outcomes: outcomes.collect(),
            prepared: self.prepared.values().cloned().collect(),
            refused: self.refused.clone(),
            aborted: self.aborted.clone(),
            unsettled: self.unsettled.clone(),
            newest_outcome: self.newest_outcome,
        };
        envelope::append(vec![FORMAT], &encoded)
    }

    /// Reads what [`GroupState::encode`] wrote. Malformed bytes are an error, never a panic.
    pub fn decode(bytes: &[u8], rules: Rules) -> Result<GroupState> {
        let malformed = || Error::fatal("malformed group state");
        let (format, body) = bytes.split_first().ok_or_else(malformed)?;
        if *format > FORMAT {
            return Err(Error::fatal(format!("group state format {format} is newer than this program's ({FORMAT})"))
                .hint("Start the version of meridian that wrote this data directory, or a newer one."));
        }
        if *format < FORMAT {
            return Err(malformed());
        }
        let encoded: Encoded = envelope::decode(body).map_err(|_| malformed())?;
        let mut last = 0u64;
        let mut outcomes = BTreeMap::new();
        for (step, gateway, after) in encoded.outcomes {
            last = last.checked_add(step).ok_or_else(malformed)?;
            outcomes.insert(TxnId { hlc: Timestamp(last), gateway }, Timestamp(last.wrapping_add(after as u64)));
        }
        let mut reservations = Reservations::default();
        let mut prepared = BTreeMap::new();
        for p in encoded.prepared {
            reservations.add(p.id, p.at, &p.reads, &p.writes);
            prepared.insert(p.id, p);
        }
        Ok(GroupState {
            applied: encoded.applied,
            closed: encoded.closed,
            watermark: encoded.watermark,
            newest: encoded.newest,
            lease: encoded.lease,
            grant: encoded.grant,
            outcomes,
            prepared,
            reservations,
            refused: encoded.refused,
            aborted: encoded.aborted,
            unsettled: encoded.unsettled,
            newest_outcome: encoded.newest_outcome,
            rules,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::PlantedBug;
    use meridian_base::record::Reserved;
    use meridian_base::{DescriptorId, Key, SchemaVersion, Write};
    use proptest::prelude::*;

    fn at(index: u64) -> LogPosition {
        LogPosition { index, term: 1 }
    }
    fn id(hlc: u64, gateway: u32) -> TxnId {
        TxnId { hlc: Timestamp(hlc), gateway: NodeId(gateway) }
    }

    /// A record about a transaction over several groups; few ids, so that they meet.
    fn ballot(what: u8, of: u64, now: u64) -> Option<Record> {
        let id = id(100 + of, 3);
        let write = Write { key: Key::new(&[of as u8]), value: None, columns: ColumnMask::ALL };
        let read = Reserved { target: Target::Key(Key::new(b"r")), columns: ColumnMask::ALL };
        let participants = vec![GroupId(2), GroupId(3)];
        Some(match what {
            0 | 1 => {
                let prepared = Prepared { id, at: Timestamp(now), participants, reads: vec![read], writes: vec![write] };
                Record::Prepared(Box::new(prepared))
            }
            2 => Record::Refused(id),
            3 => Record::Outcome(Outcome { id, at: Some(Timestamp(now)) }),
            4 => Record::Outcome(Outcome { id, at: None }),
            5 => Record::Settled(vec![id]),
            _ => return None,
        })
    }

    prop_compose! {
        fn payloads()(
            entries in prop::collection::vec((1..50u64, 1..3u32, 0..3u64, 1..4u32, 0..60u64, 0..5u64, 0..8u8, 0..4u64), 1..40),
        ) -> Vec<Payload> {
            let mut now = 0;
            entries.into_iter().map(|(hlc, gateway, f, primary, ceiling, seq, what, of)| {
                now += 2;
                let mut records = vec![
                    Record::Batch(vec![Committed { id: id(hlc, gateway), at: Timestamp(now), writes: vec![] }]),
                    Record::Lease(Lease { primary: NodeId(primary), ceiling: Timestamp(ceiling) }),
                    Record::Schema(SchemaGrant { seq, version: SchemaVersion(now), ..SchemaGrant::default() }),
                ];
                records.extend(ballot(what, of, now));
                // Sometimes past the ids of the ballots.
                let watermark = if f == 2 { Timestamp(100 + of) } else { Timestamp(now.saturating_sub(f * 10)) };
                Payload { closed: Timestamp(now), watermark, records }
            }).collect()
        }
    }

    proptest! {
        /// A node flushed at some entry, replays from an earlier one, and ends where all others do.
        #[test]
        fn replay_from_anywhere_gives_the_same_state(payloads in payloads(), flushed: prop::sample::Index, from: prop::sample::Index) {
            let log: Vec<_> = (1..).map(at).zip(&payloads).collect();
            let mut straight = GroupState::default();
            let mut flushed_state = Vec::new();
            let flushed = flushed.index(log.len());
            for (i, (position, payload)) in log.iter().enumerate() {
                prop_assert!(straight.apply(*position, payload));
                straight.invariant();
                straight.invariant_tables();
                if i == flushed { flushed_state = straight.encode(); }
            }
            let mut replayed = GroupState::decode(&flushed_state, Rules::ALL).unwrap();
            for (position, payload) in &log[from.index(flushed + 1)..] {
                replayed.apply(*position, payload);
            }
            prop_assert_eq!(&replayed, &straight);
            prop_assert!(straight.outcomes.keys().all(|id| id.hlc > straight.watermark));
            prop_assert!(straight.refused.iter().chain(straight.aborted.keys()).all(|id| id.hlc > straight.watermark));
            prop_assert_eq!(straight.reservations.len(), straight.prepared.len());
            let open = straight.unsettled();
            prop_assert_eq!(open.len(), straight.prepared.len() + straight.unsettled.len());
            prop_assert!(open.is_sorted(), "in the order of their ids");
            prop_assert!(open.iter().all(|id| straight.participants(*id).len() == 2));
        }
        /// T4: what the log says about a transaction only moves forward.
        #[test]
        fn votes_and_outcomes_do_not_change(payloads in payloads()) {
            let mut state = GroupState::default();
            let mut before: BTreeMap<TxnId, Standing> = BTreeMap::new();
            for (position, payload) in (1..).map(at).zip(&payloads) {
                state.apply(position, payload);
                for of in 0..4 {
                    let (id, standing) = (id(100 + of, 3), state.standing(id(100 + of, 3)));
                    let is_next = match (before.get(&id).copied().unwrap_or(Standing::Unknown), standing) {
                        (a, b) if a == b => true,
                        (Standing::Unknown, Standing::Prepared(_) | Standing::Refused | Standing::Forgotten) => true,
                        (Standing::Prepared(a), Standing::Decided { vote, .. }) => a == vote,
                        // An abort and the watermark that passes it may be in one entry.
                        (Standing::Prepared(_) | Standing::Refused | Standing::Decided { .. }, Standing::Forgotten) => true,
                        // The engine never logs a vote for such an id; the log's first record would
                        // count.
                        (Standing::Forgotten, Standing::Prepared(_)) => true,
                        _ => false,
                    };
                    prop_assert!(is_next, "{:?} then {standing:?}", before.get(&id));
                    before.insert(id, standing);
                }
            }
        }
        #[test]
        fn no_bytes_panic_the_decoder(mut bytes: Vec<u8>, header: bool) {
            if header && !bytes.is_empty() { bytes[0] = FORMAT; }
            let _ = GroupState::decode(&bytes, Rules::ALL);
        }
        #[test]
        fn a_damaged_state_never_panics(payloads in payloads(), place: prop::sample::Index, with: u8, cut: prop::sample::Index) {
            let mut state = GroupState::default();
            for (position, payload) in (1..).map(at).zip(&payloads) { state.apply(position, payload); }
            let mut bytes = state.encode();
            let i = place.index(bytes.len());
            bytes[i] ^= with;
            bytes.truncate(cut.index(bytes.len()) + 1);
            let _ = GroupState::decode(&bytes, Rules::ALL);
        }
    }

    #[test]
    fn a_newer_format_is_refused_by_name() {
        let mut bytes = GroupState::default().encode();
        bytes[0] = FORMAT + 1;
        assert!(GroupState::decode(&bytes, Rules::ALL).unwrap_err().message().contains("newer"));
    }

    #[test]
    fn an_older_format_and_bytes_too_few_are_not_taken_for_a_state() {
        let bytes = GroupState::default().encode();
        let older = [&[FORMAT - 1], &bytes[1..]].concat();
        let shorter = bytes[..bytes.len() - 1].to_vec();
        for bytes in [older, shorter] {
            assert_eq!(GroupState::decode(&bytes, Rules::ALL).unwrap_err().message(), "malformed group state");
        }
        // What a later program has added is left out.
        let longer = [&bytes[..], &[1]].concat();
        assert_eq!(GroupState::decode(&longer, Rules::ALL).unwrap(), GroupState::default());
    }

    #[test]
    fn an_entry_without_a_payload_moves_the_position_and_nothing_else() {
        let mut state = GroupState::default();
        state.apply(at(1), &Payload { closed: Timestamp(5), ..Payload::default() });
        let before = GroupState { applied: at(2), ..state.clone() };
        state.skip(at(2));
        assert_eq!(state, before);
    }

    /// A transaction over several groups commits where the latest of the votes is, so outcomes come
    /// in any order of timestamps, and an engine starts above all of them.
    #[test]
    fn the_newest_version_is_the_latest_one_in_whatever_order_they_come() {
        let mut state = GroupState::default();
        let prepare = |of, vote| ballot(0, of, vote).expect("a record");
        let decide = |of, at| ballot(3, of, at).expect("a record");
        let alone = |hlc, at| Record::Batch(vec![Committed { id: id(hlc, 3), at: Timestamp(at), writes: vec![] }]);
        let script = [
            (vec![prepare(0, 10), prepare(1, 20)], (0, 0)),
            (vec![decide(1, 90)], (90, 90)),
            (vec![decide(0, 40)], (90, 90)),
            (vec![alone(50, 60)], (90, 90)),
            (vec![alone(51, 95)], (95, 90)),
        ];
        for (index, (records, (newest, newest_outcome))) in (1..).zip(script) {
            state.apply(at(index), &Payload { records, ..Payload::default() });
            assert_eq!((state.newest().0, state.newest_outcome().0), (newest, newest_outcome), "after entry {index}");
            state.invariant_tables();
        }
    }

    /// Certification of the schema: a version is good for its own changes, for every descriptor
    /// that has not changed since, and for nothing that the grant does not tell of.
    #[test]
    fn a_transaction_of_an_older_version_counts_if_none_of_its_descriptors_has_changed_since() {
        let mut state = GroupState::default();
        let changed = vec![(DescriptorId(7), SchemaVersion(3)), (DescriptorId(8), SchemaVersion(5))];
        let grant =
            SchemaGrant { seq: 1, version: SchemaVersion(5), complete_from: SchemaVersion(2), changed, ..SchemaGrant::default() };
        state.apply(at(1), &Payload { records: vec![Record::Schema(grant)], ..Payload::default() });
        for (version, descriptor, planned) in [
            (6, 9, Planned::Ahead),
            (5, 8, Planned::Current),
            (4, 8, Planned::Stale),
            (4, 7, Planned::Current),
            (3, 7, Planned::Current),
            (2, 7, Planned::Stale),
            (2, 9, Planned::Current),
            (1, 9, Planned::Stale),
        ] {
            let descriptors = vec![DescriptorId(descriptor)];
            let schema = SchemaUse { version: SchemaVersion(version), descriptors, ..SchemaUse::default() };
            assert_eq!(state.planned_with(&schema), planned, "version {version}, descriptor {descriptor}");
        }
    }

    #[test]
    fn a_successor_never_lowers_the_ceiling_but_its_owner_does() {
        let mut state = GroupState::default();
        let lease = |primary, ceiling| Payload {
            records: vec![Record::Lease(Lease { primary: NodeId(primary), ceiling: Timestamp(ceiling) })],
            ..Payload::default()
        };
        assert_eq!(state.lease(), None);
        state.apply(at(1), &lease(1, 200));
        state.apply(at(2), &lease(2, 146));
        assert_eq!(state.ceiling(), Timestamp(200));
        assert_eq!(state.lease().map(|lease| lease.primary), Some(NodeId(2)));
        state.apply(at(3), &lease(2, 150));
        assert_eq!(state.ceiling(), Timestamp(150), "given up");
    }

    /// Primaries never write a smaller one; a replica does not rely on that.
    #[test]
    fn what_is_promised_stays_promised() {
        let mut state = GroupState::default();
        let payload = |closed, watermark| Payload { closed: Timestamp(closed), watermark: Timestamp(watermark), records: vec![] };
        for (index, (given, kept)) in [((50, 20), (50, 20)), ((40, 30), (50, 30)), ((60, 10), (60, 30))].into_iter().enumerate() {
            assert!(state.apply(at(index as u64 + 1), &payload(given.0, given.1)));
            assert_eq!((state.closed(), state.watermark()), (Timestamp(kept.0), Timestamp(kept.1)));
        }
        assert!(!state.apply(at(3), &payload(99, 99)), "an entry counts once");
        assert_eq!(state.applied(), at(3));
        state.skip(at(2));
        assert_eq!(state.applied(), at(3), "nor does one that says nothing");
    }

    /// Of the ids 100 to 103, with a watermark that is set beside, below and above them: which are
    /// remembered, and as what.
    #[test]
    fn an_id_at_the_watermark_is_forgotten() {
        let prepared = |of| ballot(0, of, 200 + of).expect("a record");
        let (settled, ids) =
            (Record::Settled((0..4).map(|of| id(100 + of, 3)).collect()), [0, 1, 2, 3].map(|of| id(100 + of, 3)));
        for (watermark, remembered) in [(99, 4), (100, 3), (101, 2), (102, 1), (103, 0)] {
            let (mut committed, mut refused, mut aborted, mut single) = Default::default();
            let states: [&mut GroupState; 4] = [&mut committed, &mut refused, &mut aborted, &mut single];
            for (what, state) in states.into_iter().enumerate() {
                let records = (0..4).flat_map(|of| match what {
                    0 => vec![prepared(of), Record::Outcome(Outcome { id: ids[of as usize], at: Some(Timestamp(300 + of)) })],
                    1 => vec![Record::Refused(ids[of as usize])],
                    2 => vec![prepared(of), Record::Outcome(Outcome { id: ids[of as usize], at: None })],
                    _ => {
                        let committed = Committed { id: ids[of as usize], at: Timestamp(200 + of), writes: vec![] };
                        vec![Record::Batch(vec![committed])]
                    }
                });
                state.apply(at(1), &Payload { records: records.collect(), ..Payload::default() });
                // All participants know by then; before the watermark has passed, that ends
                // nothing.
                state.apply(at(2), &Payload { records: vec![settled.clone()], ..Payload::default() });
                state.apply(at(3), &Payload { watermark: Timestamp(watermark), ..Payload::default() });
                state.invariant_tables();
            }
            let count = |state: &GroupState, is: fn(Standing) -> bool| ids.iter().filter(|id| is(state.standing(**id))).count();
            assert_eq!(count(&refused, |s| s == Standing::Refused), remembered, "refused, {watermark}");
            assert_eq!(count(&aborted, |s| matches!(s, Standing::Decided { at: None, .. })), remembered, "aborted, {watermark}");
            assert_eq!(
                ids.iter().filter(|id| single.outcome(**id).is_some()).count(),
                remembered,
                "committed alone, {watermark}"
            );
            assert_eq!(count(&single, |s| s == Standing::Forgotten), 4 - remembered, "forgotten, {watermark}");
            // A group that has not heard of a commit yet asks for it: it is kept until all have,
            // and the watermark has passed.
            assert_eq!(count(&committed, |s| matches!(s, Standing::Decided { at: Some(_), .. })), 4, "committed, {watermark}");
            committed.apply(at(4), &Payload { records: vec![settled.clone()], ..Payload::default() });
            assert_eq!(committed.unsettled().len(), remembered, "settled, {watermark}");
        }
    }

    #[test]
    fn a_grant_with_a_smaller_number_is_ignored() {
        let grant = |seq, version| Payload {
            records: vec![Record::Schema(SchemaGrant { seq, version: SchemaVersion(version), ..SchemaGrant::default() })],
            ..Payload::default()
        };
        for bug in [false, true] {
            let rules = if bug { Rules::without(PlantedBug::SchemaRegrantByDelayedMessage) } else { Rules::ALL };
            let mut state = GroupState::new(rules);
            state.apply(at(1), &grant(2, 7));
            state.apply(at(2), &grant(1, 6));
            assert_eq!(state.grant().version, SchemaVersion(if bug { 6 } else { 7 }), "counterexample 19");
            state.apply(at(3), &grant(2, 8));
            assert_eq!(state.grant().version, SchemaVersion(if bug { 8 } else { 7 }), "the first with a number counts");
        }
    }
}
