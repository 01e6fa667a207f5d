//! A term of leadership: what a replica has while it leads its group, and at no other time; or, in
//! a pod, while it is a host beside the leader ([`crate::replica::pod`]).
//!
//! [`Replica`](crate::replica::Replica) makes a [`Term`] when its group's log has made it leader
//! and all earlier entries are applied, and drops it when the term ends. Dropping it tells
//! everybody who waits for something of this term (the channels close, and the waiters ask the next
//! primary), and takes back what the lock-free paths see ([`FastPath`]). A new term starts from the
//! log.

use crate::replica::pod::Outlet;
use crate::replica::pod::member::Member;
use crate::replica::pod::slots::SlotSet;
use crate::replica::term_rounds::TermRounds;
use bytes::Bytes;
use futures::FutureExt;
use meridian_base::parts::{self, Cutter};
use meridian_base::record::{Build, Committed, Payload, Prepared, Record};
use meridian_base::{Clock, Target, Timestamp, TxnId};
use meridian_commit::Participant;
use meridian_pod::Damaged;
use meridian_raft as raft;
use meridian_region::{Ended as EndedWait, Ending, Engine, GroupState, Place, Primary, Queues, Ticket};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::{oneshot, watch};

/// Batches handed to the log and not yet applied. The log gathers what comes while it syncs; with
/// fewer batches than that has room for, what came too late for one would wait for two.
const BATCHES_IN_FLIGHT_MAX: usize = 16;

/// See the module's essay.
pub(crate) struct Term {
    /// The log's number for this term.
    pub number: u64,
    pub engine: Engine,
    /// Where the engine draws timestamps: the group's, or that of all hosts of a pod.
    pub clock: Arc<Clock>,
    /// Where what is certified goes.
    pub outlet: Outlet,
    /// This group's part in transactions over several groups.
    pub participant: Participant,
    /// This site's part in rounds of `majority`.
    pub rounds: TermRounds,
    /// What reserving reads want to be told with this group's vote.
    pub reading: BTreeMap<TxnId, Vec<Target>>,
    pub queues: Queues,
    /// Certified, not yet handed to the log, in the order of their timestamps.
    pub pending: Vec<Pending>,
    /// Certified before what is pending: some of its parts are handed to the log.
    cutting: Option<Cutter>,
    /// Other records to log.
    pub records: Vec<Record>,
    batches_in_flight: usize,
    /// Payloads handed to the log in this term, and how many of them are applied.
    pub payloads: (u64, u64),
    /// What became of the last payloads handed to the log, in order; those applied are dropped from
    /// the front.
    proposals: VecDeque<raft::ProposeTicket>,
    /// This term's lease was given up: leadership is being handed over.
    gave_up: bool,
    /// Whom to tell that a transaction is applied.
    pub acks: BTreeMap<Timestamp, oneshot::Sender<()>>,
    pub wakers: BTreeMap<Ticket, oneshot::Sender<()>>,
    pub places: BTreeMap<Place, oneshot::Sender<Ending>>,
    /// Whom to tell that a schema grant is applied, by its number.
    pub grants: Vec<(u64, oneshot::Sender<Timestamp>)>,
    /// Whom to tell by which entry of the log a build is asked for.
    pub builds: Vec<(Build, oneshot::Sender<u64>)>,
    fast: Arc<FastPath>,
}

/// Why a term has ended.
#[derive(Debug)]
pub(crate) struct Ended(String);

impl Ended {
    pub fn because(why: impl Into<String>) -> Ended {
        Ended(why.into())
    }
}
impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl From<raft::ProposeError> for Ended {
    fn from(e: raft::ProposeError) -> Ended {
        Ended(e.to_string())
    }
}
impl From<Damaged> for Ended {
    fn from(e: Damaged) -> Ended {
        Ended(e.to_string())
    }
}

/// What certification has passed.
pub(crate) enum Pending {
    /// A transaction of this group alone.
    Committed(Committed),
    /// A slice of one over several groups.
    Prepared(Box<Prepared>),
}

impl Pending {
    fn committed(&self) -> Option<&Committed> {
        match self {
            Pending::Committed(txn) => Some(txn),
            Pending::Prepared(_) => None,
        }
    }

    fn at(&self) -> Timestamp {
        match self {
            Pending::Committed(txn) => txn.at,
            Pending::Prepared(prepared) => prepared.at,
        }
    }
}

/// What a replica's leadership looks like without its lock: what a read-only transaction checks,
/// and whether this is a primary at all. A term that ends takes it back.
pub(crate) struct FastPath {
    /// [`Engine::settled_through`], or 0.
    pub settled: AtomicU64,
    pub ceiling: AtomicU64,
    pub grant_version: AtomicU64,
    pub grant_bound: AtomicU64,
    /// An engine is here, its lease record is applied and it has not given it up.
    serving: AtomicBool,
    /// Another replica leads, and this one certifies and reads beside it.
    host: AtomicBool,
    /// Follows `serving`.
    watched: watch::Sender<bool>,
    /// It leads, and its clock is so far behind what was promised that it will not serve for long
    /// (see [`crate::membership::clocks`]).
    pub leads_behind: AtomicBool,
}

impl Default for FastPath {
    fn default() -> FastPath {
        FastPath {
            settled: AtomicU64::new(0),
            ceiling: AtomicU64::new(0),
            grant_version: AtomicU64::new(0),
            grant_bound: AtomicU64::new(0),
            serving: AtomicBool::new(false),
            host: AtomicBool::new(false),
            watched: watch::Sender::new(false),
            leads_behind: AtomicBool::new(false),
        }
    }
}

impl FastPath {
    pub fn is_serving(&self) -> bool {
        self.serving.load(Ordering::Acquire)
    }

    /// Whether this replica is a host of a pod that another one leads.
    pub fn is_beside_leader(&self) -> bool {
        self.host.load(Ordering::Acquire)
    }

    pub fn watch_serving(&self) -> watch::Receiver<bool> {
        self.watched.subscribe()
    }

    fn set_serving(&self, serving: bool) {
        if self.serving.swap(serving, Ordering::AcqRel) != serving {
            self.watched.send_replace(serving);
        }
    }

    /// Nothing in flight may be passed by without the lock from here on.
    pub fn unsettle(&self) {
        self.settled.store(0, Ordering::Release);
    }

    /// Publishes the schema grant that the state holds.
    pub fn publish_grant(&self, state: &GroupState) {
        let grant = state.grant();
        self.grant_version.store(grant.version.0, Ordering::Release);
        self.grant_bound.store(grant.bound.0, Ordering::Release);
    }
}

impl Term {
    pub fn new(
        number: u64,
        (engine, clock): (Engine, Arc<Clock>),
        outlet: Outlet,
        participant: Participant,
        rounds: TermRounds,
        fast: Arc<FastPath>,
    ) -> Term {
        assert!(number > 0, "the log counts its terms from 1 on");
        fast.host.store(matches!(outlet, Outlet::Ring(_)), Ordering::Release);
        Term {
            number,
            engine,
            clock,
            outlet,
            participant,
            rounds,
            reading: BTreeMap::new(),
            queues: Queues::default(),
            pending: Vec::new(),
            cutting: None,
            records: Vec::new(),
            batches_in_flight: 0,
            payloads: (0, 0),
            proposals: VecDeque::new(),
            gave_up: false,
            acks: BTreeMap::new(),
            wakers: BTreeMap::new(),
            places: BTreeMap::new(),
            grants: Vec::new(),
            builds: Vec::new(),
            fast,
        }
    }

    /// Whether another replica leads.
    pub fn is_beside_leader(&self) -> bool {
        matches!(self.outlet, Outlet::Ring(_))
    }

    /// Whether this host of a pod has not all of the slots: others may write there.
    pub fn lacks(&self, slots: &SlotSet) -> bool {
        self.outlet.member().is_some_and(|member| !member.has_all(slots))
    }

    /// A lowered bound of the schema lease is obeyed from the next step on.
    pub fn look_at_schema_bound(&mut self, state: &GroupState) {
        if let Outlet::Ring(host) = &self.outlet {
            let (number, bound) = host.line.segment.grant();
            self.engine.lower_schema_bound(state, number, bound);
        }
    }

    // --- what goes to the log

    /// Whether there is something for the log, and not too much on its way already.
    pub fn may_send(&self) -> bool {
        let has_taken = matches!(&self.outlet, Outlet::Led(leader) if leader.has_taken());
        let has_something = self.has_certified() || !self.records.is_empty() || has_taken;
        self.batches_in_flight < BATCHES_IN_FLIGHT_MAX && has_something
    }

    /// Whether something certified waits to be handed to the log.
    pub fn has_certified(&self) -> bool {
        !self.pending.is_empty() || self.cutting.is_some()
    }

    /// Hands the next of what is pending to the log, unless enough batches are on their way
    /// already. A transaction with more than `part_bytes` goes there in parts. An error ends the
    /// term.
    pub fn pump(&mut self, state: &GroupState, physical: u64, part_bytes: usize, log: &raft::Group) -> Result<(), Ended> {
        if !self.may_send() {
            return Ok(());
        }
        if self.outlet.member().is_some_and(Member::is_lost) {
            // So may be what was drawn from its clock, and what was taken.
            return Err(Ended::because("the memory of the pod is gone"));
        }
        if let Outlet::Ring(host) = &mut self.outlet {
            assert!(self.records.is_empty(), "a host logs nothing but what it certifies");
            let certified = self.pending.iter().filter_map(Pending::committed);
            let pushed = host.push(&mut self.engine, certified)?;
            self.pending.drain(..pushed);
            return Ok(());
        }
        let mut records = std::mem::take(&mut self.records);
        self.take_certified(part_bytes, &mut records);
        // What others certify does not come between the parts of a transaction.
        if let Outlet::Led(leader) = &mut self.outlet
            && self.pending.is_empty()
            && self.cutting.is_none()
        {
            records.extend(leader.drain());
        }
        let payload = self.payload(state, physical, records);
        self.proposals.push_back(log.propose(payload)?);
        self.batches_in_flight += 1;
        self.payloads.0 += 1;
        Ok(self.check_proposals()?)
    }

    /// What the next entry holds of what is pending: a part of a large transaction, or everything
    /// before the next such.
    fn take_certified(&mut self, part_bytes: usize, records: &mut Vec<Record>) {
        if self.cutting.is_none()
            && let Some(Pending::Committed(txn)) = self.pending.first()
            && parts::is_large(txn, part_bytes)
            && let Pending::Committed(txn) = self.pending.remove(0)
        {
            self.cutting = Some(Cutter::new(txn));
        }
        if let Some(cutting) = &mut self.cutting {
            let part = cutting.cut(part_bytes);
            match part.is_last {
                true => self.engine.appended(part.at),
                false => self.engine.appended_part(part.at),
            }
            if part.is_last {
                self.cutting = None;
            }
            records.push(Record::Part(part));
            return;
        }
        let is_large = |p: &Pending| p.committed().is_some_and(|txn| parts::is_large(txn, part_bytes));
        let taken = self.pending.iter().position(is_large).unwrap_or(self.pending.len());
        if let Some(last) = self.pending[..taken].last() {
            self.engine.appended(last.at());
        }
        let mut batch = Vec::new();
        for p in self.pending.drain(..taken) {
            match p {
                Pending::Committed(txn) => batch.push(txn),
                Pending::Prepared(prepared) => {
                    if !batch.is_empty() {
                        records.push(Record::Batch(std::mem::take(&mut batch)));
                    }
                    records.push(Record::Prepared(prepared));
                }
            }
        }
        if !batch.is_empty() {
            records.push(Record::Batch(batch));
        }
    }

    /// A payload that was taken and then dropped (the log's protocol may lose its leadership for a
    /// moment and get it back in the same term) ends the term: what it carried, a lease or
    /// certified transactions, would be waited for in vain, and later payloads must not overtake
    /// it. The error says that there is such a payload.
    pub fn check_proposals(&mut self) -> Result<(), raft::ProposeError> {
        let mut dropped = None;
        // Those before it may be without an answer still: they are told when they have been
        // applied.
        self.proposals.retain_mut(|ticket| match ticket.now_or_never() {
            None => true,
            Some(Ok(_)) => false,
            Some(Err(e)) => {
                dropped = Some(e);
                false
            }
        });
        dropped.map_or(Ok(()), Err)
    }

    fn payload(&mut self, state: &GroupState, physical: u64, mut records: Vec<Record>) -> Bytes {
        records.extend(self.engine.renew_lease(state, &self.clock, physical).map(Record::Lease));
        let closed = self.closed(state, physical);
        let watermark = self.engine.watermark(state, &self.clock, physical);
        Payload { closed, watermark, records }.encode()
    }

    /// What this replica's engine does for transactions.
    pub fn primary(&mut self) -> &mut dyn Primary {
        &mut self.engine
    }

    /// What may be closed by a payload that holds all that is pending, and was taken from rings.
    pub fn closed(&mut self, state: &GroupState, physical: u64) -> Timestamp {
        let own = self.engine.promise(state, &self.clock, physical);
        match &self.outlet {
            Outlet::Led(leader) => leader.closed(own).max(state.closed()),
            Outlet::Log | Outlet::Ring(_) => own,
        }
    }

    /// Gives the lease up: hands to the log what is certified, and gives the payload that ends the
    /// lease after it.
    pub fn give_up(&mut self, state: &GroupState, physical: u64, part_bytes: usize, log: &raft::Group) -> Result<Bytes, Ended> {
        self.gave_up = true;
        self.fast.set_serving(false);
        let lease = self.engine.give_up_lease(&self.clock, physical);
        loop {
            // However many are on their way.
            self.batches_in_flight = 0;
            self.pump(state, physical, part_bytes, log)?;
            if self.is_beside_leader() || !self.has_certified() {
                break;
            }
        }
        Ok(self.payload(state, physical, vec![Record::Lease(lease)]))
    }

    // --- what comes from the log

    /// The lease of this term is applied up to a ceiling.
    pub fn lease_applied(&self, state: &GroupState, ceiling: Timestamp) {
        if !self.gave_up {
            self.fast.ceiling.store(ceiling.0, Ordering::Release);
            self.fast.publish_grant(state);
            self.fast.set_serving(true);
        }
    }

    /// A payload of some term is applied.
    pub fn payload_applied(&mut self, term: u64) {
        if term == self.number {
            self.batches_in_flight = self.batches_in_flight.saturating_sub(1);
            self.payloads.1 += 1;
        }
    }

    // --- who waits

    pub fn wake(&mut self, woken: Vec<Ticket>) {
        for ticket in woken {
            if let Some(waker) = self.wakers.remove(&ticket) {
                let _ = waker.send(());
            }
        }
    }

    pub fn end_waits(&mut self, ended: Vec<EndedWait>) {
        for e in ended {
            if let Some(waiting) = self.places.remove(&e.place) {
                let _ = waiting.send(e.how);
            }
        }
    }

    /// Everything certified is applied, and nothing else is on its way.
    pub fn is_idle(&self) -> bool {
        let has_taken = matches!(&self.outlet, Outlet::Led(leader) if leader.has_taken());
        self.batches_in_flight == 0 && !self.has_certified() && self.records.is_empty() && !has_taken
    }

    /// What holds between the parts of a term.
    pub fn invariant(&self, state: &GroupState) {
        self.engine.invariant_engine(state);
        self.queues.invariant_lines();
        let in_flight: BTreeSet<Timestamp> = self.engine.in_flight().map(|(_, at)| at).collect();
        assert!(self.acks.keys().all(|at| in_flight.contains(at)), "a session waits for what is not in flight");
        assert!(self.pending.is_sorted_by_key(Pending::at), "the log gets timestamps in their order");
        let first = self.pending.first().map_or(Timestamp::MAX, Pending::at);
        assert!(self.cutting.as_ref().is_none_or(|cutting| cutting.at() < first), "what is being cut was certified before");
    }
}

impl Drop for Term {
    fn drop(&mut self) {
        self.fast.set_serving(false);
        self.fast.host.store(false, Ordering::Release);
        self.fast.leads_behind.store(false, Ordering::Release);
        self.fast.unsettle();
    }
}
