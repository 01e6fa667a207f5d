//! A group's primary as a participant of transactions over several groups: the protocol (crate
//! `commit`) joined to certification and the log's tables (crate `region`).
//!
//! ```text
//!  message ──▶ Participant ──Certify──▶ Engine::prepare ──▶ Prepared in the log ──applied──▶ vote to everybody
//!                   ▲  └──────Decide──▶ Engine::decide  ──▶ Outcome  in the log ──applied──▶ writes visible, reservations gone
//!                   └── applied records, messages, time
//! ```
//!
//! Both live behind the replica's lock for one term; what takes time goes through the
//! [`crate::replica::outbox`].

use crate::replica::asking::Deciders;
use crate::replica::outbox::Work;
use crate::replica::pod::Outlet;
use crate::replica::pod::slots::SlotSet;
use crate::replica::primary::Step;
use crate::replica::term::{Pending, Term};
use crate::replica::{Core, Replica};
use crate::transport::wire::{Found, Known, PreparedTransaction, Said};
use bytes::Bytes;
use meridian_base::record::{Payload, Record};
use meridian_base::{
    BallotMessage, CommitRequest, Conflict, ConflictReason, Error, Fresh, GroupId, Key, KeyRange, Ledger, Mutation, Peer,
    ReadEntry, Refusal, Result, SchemaUse, SchemaVersion, Standing, Target, Timestamp, TxnId, Vote, Write, limits,
};
use meridian_commit::Action;
use meridian_region::{Deciding, Preparation, Primary, ReadCheck, SchemaCheck, Turn};
use meridian_store::ScanLimits;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// How long an operator's decision may take to be in the log, and how often that is looked at.
const END_MAX: Duration = Duration::from_millis(1_500);
const END_POLL: Duration = Duration::from_millis(10);
/// Upper bound on one wait of an outcome for the clock or for the lease; its caller tries again.
const DECIDE_PATIENCE: Duration = Duration::from_secs(5);
/// Before it asks again.
const DECIDE_PAUSE: Duration = Duration::from_millis(10);

/// Reserving reads whose vote is not given yet; of more the oldest are told their vote alone, and
/// are run again.
const READING_MAX: usize = 1_024;
/// In builds with assertions, memory and log are compared after every step of the protocol while
/// there are no more transactions.
const LOOKED_AT_MAX: usize = 64;
/// Rows read at a time.
const PAGE_ROWS_MAX: usize = 1_024;

/// What came of certifying a slice.
enum SliceStep {
    Voted,
    /// It is not wanted any more.
    Over,
    /// What it read of GLOBAL rows is not known to hold for so long.
    RecheckGlobal,
}

/// What the log says, in words that travel.
fn said(standing: Standing) -> Said {
    match standing {
        Standing::Unknown | Standing::Forgotten => Said::Nothing,
        Standing::Prepared(vote) => Said::Yes(vote),
        Standing::Refused => Said::No,
        Standing::Decided { vote, at: Some(at) } => Said::Committed { vote, at },
        Standing::Decided { at: None, .. } => Said::Aborted,
    }
}

impl Replica {
    pub(super) fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.physical())
    }

    /// A message for this group's primary.
    pub(crate) fn ballot(&self, message: BallotMessage) -> Result<()> {
        let mut core = self.core.lock();
        let (state, Term { participant, reading, .. }) = self.leading(&mut core)?;
        if let BallotMessage::Prepare(prepare) = &message
            && prepare.slice.is_reserving()
        {
            if reading.len() >= READING_MAX {
                reading.pop_first();
            }
            reading.insert(prepare.id(), prepare.slice.reads.iter().map(|e| e.target.clone()).collect());
        }
        let mut actions = Vec::new();
        participant.receive(state, message, self.now(), &mut actions);
        self.act(&mut core, actions);
        Ok(())
    }

    /// Whether anything is prepared here.
    pub(crate) fn has_prepared(&self) -> bool {
        self.core.lock().state.prepared().len() > 0
    }

    /// What the log says of a transaction, and the votes that have come. `None`: this is not the
    /// primary, or it knows nothing.
    pub(crate) fn known(&self, id: TxnId) -> Option<Known> {
        let core = self.core.lock();
        let participant = &core.term.as_ref()?.participant;
        let said = said(core.state.standing(id));
        let participants = core.state.participants(id).to_vec();
        Some(Known { group: self.id, said, participants, votes: participant.votes(id), is_old: id.hlc <= core.state.watermark() })
    }

    /// See [`meridian_commit::Participant::end_in_doubt`]. What it has ended as, when that is in
    /// the log: not as the operator says if something else has ended it.
    pub(crate) async fn end_in_doubt(&self, id: TxnId, at: Option<Timestamp>) -> Result<Said> {
        self.check_lease()?;
        {
            let mut core = self.core.lock();
            let (state, term) = self.leading(&mut core)?;
            if let Standing::Prepared(vote) = state.standing(id)
                && at.is_some_and(|at| at < vote)
            {
                return Err(Error::sql(
                    "55000",
                    format!("{id} cannot commit at {}: this group has voted {vote}", at.unwrap_or_default()),
                ));
            }
            let word = if at.is_some() { "commit" } else { "abort" };
            tracing::warn!("{}: {id}, which is in doubt, is ended on request: {word}", self.id);
            let mut actions = Vec::new();
            term.participant.end_in_doubt(state, id, at, &mut actions);
            self.act(&mut core, actions);
        }
        let deadline = Instant::now() + END_MAX;
        loop {
            match said(self.core.lock().state.standing(id)) {
                Said::Yes(_) if Instant::now() < deadline => {}
                Said::Yes(_) => return Err(Error::unavailable("the log has not taken it yet")),
                ended => return Ok(ended),
            }
            tokio::time::sleep(END_POLL).await;
        }
    }

    /// What is prepared here, and what it waits for.
    pub(crate) fn transactions(&self) -> Vec<PreparedTransaction> {
        let core = self.core.lock();
        let Some(Term { participant, .. }) = core.term.as_ref().filter(|term| !term.is_beside_leader()) else {
            return Vec::new();
        };
        let prepared = core.state.prepared().map(|p| PreparedTransaction {
            id: p.id,
            group: self.id,
            age_micros: self.now().since(p.id.hlc).as_micros() as u64,
            participants: p.participants.clone(),
            waits_for: participant.waits_for(&core.state, p.id),
            stage: participant.stage(p.id).to_string(),
        });
        prepared.collect()
    }

    /// The version of the catalog that this primary certifies with, and the groups that anything
    /// names which it certified with an earlier one and that is not over: both of one moment.
    /// `catalog`: the version as of now, for the catalog's own group, which is granted nothing: its
    /// steps are certified against its rows.
    pub(crate) fn names(&self, catalog: SchemaVersion) -> (SchemaVersion, Vec<GroupId>) {
        let core = self.core.lock();
        let Some(Term { participant, .. }) = &core.term else { return (SchemaVersion::default(), Vec::new()) };
        let version = if self.id == GroupId::CATALOG { catalog } else { core.state.grant().version };
        (version, participant.names(&core.state).into_iter().collect())
    }

    /// See `Groups::remembered`.
    pub(crate) fn remembered(&self) -> [usize; 3] {
        let state = &self.core.lock().state;
        [state.prepared().len(), state.ballots_len(), state.outcomes_len()]
    }

    /// What the protocol wants done.
    pub(crate) fn act(&self, core: &mut Core, actions: Vec<Action>) {
        let Core { state, term: Some(term), .. } = &mut *core else { return };
        if cfg!(debug_assertions) && term.participant.len() <= LOOKED_AT_MAX {
            term.participant.invariant(state);
            state.invariant();
        }
        for action in actions {
            let work = match action {
                Action::Log(Record::Prepared(prepared)) => {
                    // Between the transactions certified before and after it.
                    term.pending.push(Pending::Prepared(prepared));
                    continue;
                }
                Action::Log(record) => {
                    if let Record::Refused(id) = &record {
                        let mut woken = Vec::new();
                        term.engine.give_up_claim(*id, &mut woken);
                        term.wake(woken);
                    }
                    term.records.push(record);
                    continue;
                }
                Action::Send { to, message } => self.send(term, to, message),
                Action::Certify(id) => Work::Certify { group: self.id, id },
                Action::Decide { id, at } => Work::Decide { group: self.id, id, at },
            };
            self.common.outbox.put(work);
        }
        self.pump(core);
        self.ticker.notify_one();
    }

    /// A vote to the gateway of a reserving read goes with what was read.
    fn send(&self, term: &mut Term, to: Peer, message: BallotMessage) -> Work {
        if let (Peer::Gateway(node), BallotMessage::Vote { id, vote, .. }) = (to, &message)
            && let Some(targets) = term.reading.remove(id)
            && let Vote::Yes(at) = vote
        {
            return Work::TellReserved { group: self.id, node, id: *id, at: *at, targets };
        }
        Work::Send { to, message }
    }

    /// What a reserving read that has this group's vote at `at` reads. Nothing at or below `at`
    /// changes any more, so it does not matter when this is asked, or in which term.
    pub(crate) async fn read_reserved(&self, at: Timestamp, targets: &[Target]) -> Result<Found> {
        let mut rows: BTreeMap<Key, Bytes> = BTreeMap::new();
        let mut bytes = 0;
        for target in targets {
            let mut left = Some(match target {
                Target::Key(key) => KeyRange::new(key.clone(), key.successor()),
                Target::Range(range) => range.clone(),
            });
            while let Some(range) = left.take() {
                let page = self.store.scan(&range, at, false, ScanLimits { rows: PAGE_ROWS_MAX, ..ScanLimits::default() })?;
                for (key, version) in page.rows {
                    let Some(value) = version.value else { continue };
                    let size = key.as_bytes().len() + value.len();
                    bytes += if rows.insert(key, value).is_none() { size } else { 0 };
                }
                if bytes > limits::RESERVED_BYTES_MAX {
                    return Ok(Found::TooLarge);
                }
                left = page.rest;
                tokio::task::yield_now().await;
            }
        }
        Ok(Found::Rows(rows.into_iter().collect()))
    }

    /// Time passes for the protocol.
    pub(crate) fn tick_participant(&self, core: &mut Core) {
        let now = self.now();
        let Core { state, term: Some(Term { participant, .. }), .. } = &mut *core else { return };
        if participant.next_tick().is_none_or(|due| due > now) {
            return;
        }
        let mut actions = Vec::new();
        participant.tick(state, now, &mut actions);
        self.act(core, actions);
    }

    /// When the protocol next has something to do.
    pub(crate) fn participant_due(&self) -> Option<Duration> {
        let due = self.core.lock().term.as_ref().filter(|term| !term.is_beside_leader())?.participant.next_tick()?;
        Some(due.since(self.now()))
    }

    /// A payload is applied: votes that are durable now may leave.
    pub(crate) fn participant_applied(&self, core: &mut Core, payload: &Payload) {
        let now = self.now();
        let Core { state, term: Some(Term { participant, .. }), .. } = &mut *core else { return };
        let mut actions = Vec::new();
        participant.applied(state, payload, now, &mut actions);
        if !actions.is_empty() {
            self.act(core, actions);
        }
    }

    /// A slice that is to be certified, if it has read GLOBAL rows.
    pub(crate) fn slice_with_global_reads(&self, id: TxnId) -> Option<CommitRequest> {
        let core = self.core.lock();
        let slice = core.term.as_ref()?.participant.certifying(id)?;
        (!slice.global.entries.is_empty()).then(|| slice.clone())
    }

    /// Certifies a slice, whose reads of GLOBAL rows hold so long, and votes. `false`: they have to
    /// be looked at again.
    pub(crate) async fn certify_slice(&self, id: TxnId, hold_until: Timestamp, patience: Duration) -> bool {
        let certifying = self.until_ready(patience, |core| self.try_certify(core, id, hold_until)).await;
        match certifying {
            Ok(SliceStep::Voted | SliceStep::Over) => {}
            Ok(SliceStep::RecheckGlobal) => return false,
            Err(e) => {
                tracing::debug!("{}: {id} is refused: {e}", self.id);
                let mut core = self.core.lock();
                let reason = ConflictReason::ReservedByPrepared;
                let conflict = core
                    .term
                    .as_ref()
                    .and_then(|term| term.participant.certifying(id))
                    .map(|slice| Conflict { key: slice.writes.first().map_or(Key::MIN, |w| w.key.clone()), reason });
                self.certified(&mut core, id, Err(Refusal { conflict, fresh: Vec::new() }));
            }
        }
        true
    }

    /// Votes NO.
    pub(crate) fn refuse_slice(&self, id: TxnId, refusal: Refusal) {
        self.certified(&mut self.core.lock(), id, Err(refusal));
    }

    fn certified(&self, core: &mut Core, id: TxnId, result: std::result::Result<(Timestamp, Vec<Write>), Refusal>) {
        let Some(term) = &mut core.term else { return };
        let mut actions = Vec::new();
        term.participant.certified(id, result, &mut actions);
        self.act(core, actions);
    }

    fn try_certify(&self, core: &mut Core, id: TxnId, hold_until: Timestamp) -> Result<Step<SliceStep>> {
        let (_, Term { participant, .. }) = self.leading(core)?;
        let slots = self.slots(|| participant.certifying(id).map_or(SlotSet::NONE, SlotSet::of_request));
        if let Some(slots) = self.lacking(core, slots)? {
            return Ok(Step::Slots(slots));
        }
        let (_, Term { participant, queues, .. }) = self.leading(core)?;
        let has_queued = participant.has_queued(id);
        let turn = if participant.is_late(id) { Turn::Late } else { Turn::Early };
        let Some(slice) = participant.certifying_mut(id) else { return Ok(Step::Ready(SliceStep::Over)) };
        slice.global.hold_until = hold_until;
        let is_taken = |w: &Mutation| queues.is_held_exclusively(&w.key);
        if let Some(write) = slice.writes.iter().find(|w| !has_queued && is_taken(w)) {
            let conflict = Conflict { key: write.key.clone(), reason: ConflictReason::Locked };
            self.certified(core, id, Err(Refusal { conflict: Some(conflict), fresh: Vec::new() }));
            return Ok(Step::Ready(SliceStep::Voted));
        }
        let preparation = self.ask_term(core, |Deciders { engine, participant, .. }, now| {
            participant.certifying(id).map(|slice| Primary::prepare(engine, now, slice, turn))
        })?;
        match preparation.unwrap_or(Preparation::Known) {
            Preparation::Append { at, writes } => {
                // Read-only transactions may not pass it by any more.
                self.fast.unsettle();
                if let (Some(slots), Some(Term { outlet: Outlet::Led(leader), .. })) = (slots, &mut core.term) {
                    leader.reserve(id, slots);
                }
                self.certified(core, id, Ok((at, writes)));
                Ok(Step::Ready(SliceStep::Voted))
            }
            Preparation::Refuse(refused) => {
                let fresh = self.fresh(&refused.stale)?;
                self.certified(core, id, Err(Refusal { conflict: Some(refused.conflict), fresh }));
                Ok(Step::Ready(SliceStep::Voted))
            }
            Preparation::Known => Ok(Step::Ready(SliceStep::Over)),
            Preparation::RecheckGlobal => Ok(Step::Ready(SliceStep::RecheckGlobal)),
            Preparation::Wait(ticket) => self.wait(core, ticket),
            Preparation::NotReady(why) => self.not_ready(core, why),
        }
    }

    /// The newest versions of what failed certification.
    pub(crate) fn fresh(&self, stale: &[(Key, Timestamp)]) -> Result<Vec<Fresh>> {
        let mut fresh = Vec::with_capacity(stale.len());
        for (key, until) in stale {
            let found = self.store.get(key.as_bytes(), *until)?;
            let version = found.as_ref().map_or(Timestamp::MIN, |v| v.at);
            fresh.push(Fresh { key: key.clone(), value: found.and_then(|v| v.value), version, until: *until });
        }
        Ok(fresh)
    }

    /// All votes are known: logs the outcome, once the clock may be at its timestamp.
    pub(crate) async fn decide(&self, id: TxnId, at: Option<Timestamp>) {
        loop {
            let decided = self.until_ready(DECIDE_PATIENCE, |core| {
                self.leading(core)?;
                match self.ask(core, |primary, now| primary.decide(now, id, at))? {
                    Deciding::Log(outcome) => {
                        self.leading(core)?.1.records.push(Record::Outcome(outcome));
                        self.pump(core);
                        Ok(Step::Ready(()))
                    }
                    Deciding::Known => Ok(Step::Ready(())),
                    Deciding::Wait(ticket) => self.wait(core, ticket),
                    Deciding::NotReady(why) => self.not_ready(core, why),
                }
            });
            match decided.await {
                Ok(()) => return,
                // A primary of another term decides by the same votes.
                Err(_) if self.core.lock().term.is_none() => return,
                Err(e) => {
                    tracing::debug!("{}: the outcome of {id} waits: {e}", self.id);
                    // A primary without a lease says so at once.
                    tokio::time::sleep(DECIDE_PAUSE).await;
                }
            }
        }
    }

    /// Part of a read-only round over several groups: whether everything is still the newest, with
    /// nobody about to change it.
    pub async fn check(
        &self,
        entries: &[ReadEntry],
        schema: &SchemaUse,
        at: Timestamp,
    ) -> Result<std::result::Result<(), (Conflict, Vec<Fresh>)>> {
        let slots = self.slots(|| SlotSet::of_targets(entries.iter().map(|entry| &entry.target)));
        let checked = self
            .until_ready(crate::replica::primary::WAIT_MAX, |core| {
                self.leading(core)?;
                if let Some(slots) = self.lacking(core, slots)? {
                    return Ok(Step::Slots(slots));
                }
                match self.ask(core, |primary, now| primary.check(now, entries, at))? {
                    ReadCheck::Passed => {}
                    ReadCheck::Wait(ticket) => return self.wait(core, ticket),
                    ReadCheck::NotReady(why) => return self.not_ready(core, why),
                    ReadCheck::Refuse(refused) => return Ok(Step::Ready(Err((refused.conflict, self.fresh(&refused.stale)?)))),
                }
                match self.ask(core, |primary, now| primary.schema(now, schema, at))? {
                    SchemaCheck::Passed => Ok(Step::Ready(Ok(()))),
                    SchemaCheck::Wait(ticket) => self.wait(core, ticket),
                    SchemaCheck::Changed(conflict) => Ok(Step::Ready(Err((conflict, Vec::new())))),
                }
            })
            .await?;
        self.check_lease()?;
        Ok(checked)
    }
}
