//! A group's primary and a replica, as a node joins them: `region::Engine` and
//! `commit::Participant` over a state that the log builds. Rows have no values: a version is its
//! timestamp.

use super::load::Request;
use super::network::Micros;
use bytes::Bytes;
use meridian_base::record::{Committed, Payload, Record, SchemaGrant};
use meridian_base::{
    BallotMessage, Clock, ColumnMask, CommitOutcome, CommitRequest, GroupId, Key, KeyRange, LogPosition, NodeId, Peer, ReadEntry,
    Refusal, SchemaUse, Target, Timestamp, TxnId, Write,
};
use meridian_commit::{self as commit, Action, Participant};
use meridian_region::Rules;
use meridian_region::{Certified, Deciding, Engine, GroupState, Moment, NotReady, Preparation, ReadGate, Ticket, Turn, Versions};
use std::collections::BTreeMap;
use std::time::Duration;

/// What the clocks show when a run begins.
const START: Micros = 1_000_000_000;
const MAX_OFFSET: Duration = Duration::from_millis(250);
/// An idle group says so often how far it is closed.
const CLOSED_INTERVAL: Micros = 50_000;

pub(super) fn group_of(partition: usize) -> GroupId {
    GroupId(2 + partition as u32)
}
pub(super) fn node_of(partition: usize) -> NodeId {
    NodeId(1 + partition as u32)
}
/// The reverse of [`group_of`] and [`node_of`].
pub(super) fn partition_of(peer: Peer) -> usize {
    match peer {
        Peer::Group(group) => group.0 as usize - 2,
        Peer::Gateway(node) => node.0 as usize - 1,
    }
}

fn key(row: u32) -> Key {
    Key::new(&row.to_be_bytes())
}
pub(super) fn read_entry(row: u32, until: Timestamp) -> ReadEntry {
    ReadEntry { target: Target::Key(key(row)), columns: ColumnMask::ALL, until }
}
pub(super) fn write(row: u32) -> Write {
    Write { key: key(row), value: Some(Bytes::from_static(b"1")), columns: ColumnMask::ALL }
}

/// The newest version of every row that was written.
#[derive(Default)]
struct Store {
    newest: BTreeMap<Key, Timestamp>,
}

impl Store {
    fn apply(&mut self, transaction: &Committed) {
        for write in &transaction.writes {
            let newest = self.newest.entry(write.key.clone()).or_default();
            *newest = transaction.at.max(*newest);
        }
    }
}

impl Versions for Store {
    fn newest(&self, key: &Key) -> Option<Timestamp> {
        self.newest.get(key).copied()
    }
    fn changed_after(&self, target: &Target, _: ColumnMask, after: Timestamp) -> Option<(Key, Timestamp)> {
        if let Target::Key(key) = target {
            return self.newest(key).filter(|at| *at > after).map(|at| (key.clone(), at));
        }
        let mut changed = self.newest.iter().filter(|(key, at)| target.contains(key.as_bytes()) && **at > after);
        changed.next().map(|(key, at)| (key.clone(), *at))
    }
    fn newest_values(&self, _: &KeyRange) -> Vec<(Key, Bytes)> {
        Vec::new()
    }
    fn gc_threshold(&self) -> Timestamp {
        Timestamp::MIN
    }
}

/// What the log builds, on the primary and on every replica.
pub(super) struct Applied {
    state: GroupState,
    store: Store,
}

impl Applied {
    pub fn new() -> Applied {
        let mut applied = Applied { state: GroupState::new(Rules::ALL), store: Store::default() };
        let grant = SchemaGrant { bound: Timestamp::MAX, seq: 1, ..SchemaGrant::default() };
        applied.apply(&Payload { records: vec![Record::Schema(grant)], ..Payload::default() });
        applied
    }

    pub fn apply(&mut self, payload: &Payload) {
        for record in &payload.records {
            match record {
                Record::Batch(transactions) => transactions.iter().for_each(|t| self.store.apply(t)),
                Record::Outcome(outcome) => {
                    if let Some(committed) = self.state.effect(outcome) {
                        self.store.apply(&committed);
                    }
                }
                _ => {}
            }
        }
        let position = LogPosition { index: self.state.applied().index + 1, term: 1 };
        self.state.apply(position, payload);
    }

    /// What a replica answers: up to when its answer is known to be current, and the version.
    pub fn read(&self, row: u32) -> (Timestamp, Timestamp) {
        let target = Target::Key(key(row));
        let until = self.state.replica_read(&target, ColumnMask::ALL, self.state.closed());
        (until, self.store.newest(&key(row)).unwrap_or_default().min(until))
    }
}

/// A transaction on its way through its gateway, which is the primary of its home.
pub(super) struct Execution {
    pub request: Request,
    /// Of rows at home.
    pub entries: Vec<ReadEntry>,
    snapshot: Option<Timestamp>,
    /// What a replica of the other partition answered.
    pub elsewhere: Option<(Timestamp, Timestamp)>,
}

impl Execution {
    pub fn new(request: Request, elsewhere: Option<(Timestamp, Timestamp)>) -> Execution {
        Execution { request, entries: Vec::new(), snapshot: None, elsewhere }
    }
}

/// What waits for a ticket.
enum Work {
    Execute(Execution),
    Commit { number: u64, commit: CommitRequest },
    Certify(TxnId),
    Decide { id: TxnId, at: Option<Timestamp> },
}

/// What a primary wants of others.
pub(super) enum Out {
    Send {
        to: Peer,
        message: BallotMessage,
    },
    /// Everything is read, and the other partition is to be asked too.
    Ballot(Execution),
    Answer {
        number: u64,
        commit: bool,
    },
}

/// See the module.
pub(super) struct Primary {
    partition: usize,
    applied: Applied,
    engine: Engine,
    participant: Participant,
    clock: Clock,
    now: Micros,
    /// On their way into the log.
    batch: Vec<Committed>,
    records: Vec<Record>,
    last_cut: Micros,
    waiting: BTreeMap<Ticket, Work>,
    /// Local transactions in the log; their clients wait.
    open: BTreeMap<TxnId, u64>,
}

impl Primary {
    pub fn new(partition: usize) -> Primary {
        let applied = Applied::new();
        let group = group_of(partition);
        let now = Timestamp::from_micros(START);
        let mut primary = Primary {
            partition,
            engine: Engine::start(node_of(partition), group, &applied.state, Rules::ALL),
            participant: Participant::start(group, &applied.state, now, commit::Rules::ALL),
            applied,
            clock: Clock::new(MAX_OFFSET),
            now: 0,
            batch: Vec::new(),
            records: Vec::new(),
            last_cut: 0,
            waiting: BTreeMap::new(),
            open: BTreeMap::new(),
        };
        let lease = primary.engine.renew_lease(&primary.applied.state, &primary.clock, START);
        let payload = Payload { records: lease.map(Record::Lease).into_iter().collect(), ..Payload::default() };
        primary.applied.apply(&payload);
        primary.engine.applied(&primary.applied.state, &payload, &mut Vec::new());
        primary
    }

    /// What time it is for everything that follows.
    pub fn set_time(&mut self, now: Micros) {
        self.now = START + now;
    }
    fn timestamp(&self) -> Timestamp {
        Timestamp::from_micros(self.now)
    }
    /// What a message says the time is.
    pub fn clock_reads(&self) -> Timestamp {
        self.clock.now(self.now)
    }
    pub fn draw_id(&mut self) -> TxnId {
        TxnId { hlc: self.clock.tick(self.now), gateway: node_of(self.partition) }
    }

    fn park(&mut self, ticket: Ticket, work: Work) {
        self.waiting.insert(ticket, work);
    }

    fn go_on(&mut self, woken: Vec<Ticket>, out: &mut Vec<Out>) {
        for ticket in woken {
            match self.waiting.remove(&ticket) {
                Some(Work::Execute(execution)) => self.execute(execution, out),
                Some(Work::Commit { number, commit }) => self.commit(number, commit, out),
                Some(Work::Certify(id)) => self.certify(id, out),
                Some(Work::Decide { id, at }) => self.decide(id, at),
                None => {}
            }
        }
    }
}

// --- transactions of clients

impl Primary {
    /// Reads the rows at home, and then commits or asks the other partition too.
    pub fn execute(&mut self, mut execution: Execution, out: &mut Vec<Out>) {
        let rows: Vec<u32> = execution.request.rows_in(self.partition).skip(execution.entries.len()).collect();
        for row in rows {
            let Applied { state, store } = &self.applied;
            let first = || self.engine.fresh_snapshot(state, self.clock.now(self.now), &self.clock, self.now).at;
            let s = *execution.snapshot.get_or_insert_with(first);
            let entry = read_entry(row, s);
            let moment = Moment { state, versions: store, clock: &self.clock, physical_micros: self.now };
            match self.engine.read_gate(&moment, &entry.target, entry.columns, s) {
                ReadGate::Ready => execution.entries.push(entry),
                ReadGate::Wait(ticket) | ReadGate::NotReady(NotReady::NeedLease(ticket)) => {
                    return self.park(ticket, Work::Execute(execution));
                }
                ReadGate::MoveTo(to) => {
                    let again = Execution { entries: Vec::new(), snapshot: Some(to), ..execution };
                    return self.execute(again, out);
                }
                ReadGate::TooOld | ReadGate::NotReady(NotReady::NotPrimary) => {
                    return out.push(Out::Answer { number: execution.request.number, commit: false });
                }
            }
        }
        if execution.request.is_global() {
            return out.push(Out::Ballot(execution));
        }
        let commit = CommitRequest {
            id: self.draw_id(),
            writes: execution.request.rows_in(self.partition).map(|row| write(row).into()).collect(),
            reads: execution.entries,
            min_commit: Timestamp::MIN,
            schema: SchemaUse::default(),
            global: Default::default(),
        };
        self.commit(execution.request.number, commit, out);
    }

    fn commit(&mut self, number: u64, commit: CommitRequest, out: &mut Vec<Out>) {
        let Applied { state, store } = &self.applied;
        match self.engine.certify(state, store, &commit, &self.clock, self.now) {
            Certified::Append { at, writes } => {
                self.open.insert(commit.id, number);
                self.batch.push(Committed { id: commit.id, at, writes });
            }
            Certified::Wait(ticket) | Certified::NotReady(NotReady::NeedLease(ticket)) => {
                self.park(ticket, Work::Commit { number, commit });
            }
            Certified::Done(outcome) => {
                let commit = matches!(outcome, CommitOutcome::Committed(_));
                out.push(Out::Answer { number, commit });
            }
            Certified::Refuse(_) | Certified::RecheckGlobal | Certified::NotReady(NotReady::NotPrimary) => {
                out.push(Out::Answer { number, commit: false });
            }
        }
    }
}

// --- transactions over both partitions

impl Primary {
    /// A message has come, with what its sender's clock showed.
    pub fn receive(&mut self, message: BallotMessage, sent_at: Timestamp, out: &mut Vec<Out>) {
        self.observe(sent_at);
        let mut actions = Vec::new();
        self.participant.receive(&self.applied.state, message, self.timestamp(), &mut actions);
        self.act(actions, out);
    }

    /// Clocks are one here, so a peer's is never too far ahead.
    pub fn observe(&mut self, peer: Timestamp) {
        self.clock.observe(peer, self.now).expect("one clock drives all machines");
    }

    fn act(&mut self, actions: Vec<Action>, out: &mut Vec<Out>) {
        for action in actions {
            match action {
                Action::Send { to, message } => out.push(Out::Send { to, message }),
                Action::Log(record) => self.records.push(record),
                Action::Certify(id) => self.certify(id, out),
                Action::Decide { id, at } => self.decide(id, at),
            }
        }
    }

    fn certify(&mut self, id: TxnId, out: &mut Vec<Out>) {
        let Some(request) = self.participant.certifying(id).cloned() else { return };
        let Applied { state, store } = &self.applied;
        let answer = match self.engine.prepare(state, store, &request, Turn::Late, &self.clock, self.now) {
            Preparation::Append { at, writes } => Ok((at, writes)),
            Preparation::Refuse(refused) => Err(Refusal { conflict: Some(refused.conflict), fresh: Vec::new() }),
            Preparation::Wait(ticket) | Preparation::NotReady(NotReady::NeedLease(ticket)) => {
                return self.park(ticket, Work::Certify(id));
            }
            Preparation::Known | Preparation::RecheckGlobal | Preparation::NotReady(NotReady::NotPrimary) => return,
        };
        let mut actions = Vec::new();
        self.participant.certified(id, answer, &mut actions);
        self.act(actions, out);
    }

    fn decide(&mut self, id: TxnId, at: Option<Timestamp>) {
        match self.engine.decide(&self.applied.state, id, at, &self.clock, self.now) {
            Deciding::Log(outcome) => self.records.push(Record::Outcome(outcome)),
            Deciding::Wait(ticket) | Deciding::NotReady(NotReady::NeedLease(ticket)) => {
                self.park(ticket, Work::Decide { id, at });
            }
            Deciding::Known | Deciding::NotReady(NotReady::NotPrimary) => {}
        }
    }
}

// --- the log

impl Primary {
    /// What is to be proposed now.
    pub fn cut(&mut self) -> Option<Payload> {
        let is_idle = self.batch.is_empty() && self.records.is_empty();
        if is_idle && self.now < self.last_cut + CLOSED_INTERVAL {
            return None;
        }
        self.last_cut = self.now;
        let mut records = Vec::new();
        let batch = std::mem::take(&mut self.batch);
        let mut newest = batch.last().map_or(Timestamp::MIN, |t| t.at);
        if !batch.is_empty() {
            records.push(Record::Batch(batch));
        }
        records.append(&mut self.records);
        for record in &records {
            if let Record::Prepared(prepared) = record {
                newest = newest.max(prepared.at);
            }
        }
        self.engine.appended(newest);
        let closed = self.engine.closed_target(&self.applied.state, &self.clock, self.now);
        let watermark = self.engine.watermark(&self.applied.state, &self.clock, self.now);
        Some(Payload { closed, watermark, records })
    }

    /// A payload is durable.
    pub fn durable(&mut self, payload: &Payload, out: &mut Vec<Out>) {
        self.applied.apply(payload);
        let (mut woken, mut actions) = (Vec::new(), Vec::new());
        self.engine.applied(&self.applied.state, payload, &mut woken);
        self.participant.applied(&self.applied.state, payload, self.timestamp(), &mut actions);
        for record in &payload.records {
            let Record::Batch(transactions) = record else { continue };
            for transaction in transactions {
                if let Some(number) = self.open.remove(&transaction.id) {
                    out.push(Out::Answer { number, commit: true });
                }
            }
        }
        self.act(actions, out);
        self.go_on(woken, out);
    }

    /// Leases, timers, and what waits for the clock.
    pub fn tick(&mut self, out: &mut Vec<Out>) {
        let lease = self.engine.renew_lease(&self.applied.state, &self.clock, self.now);
        self.records.extend(lease.map(Record::Lease));
        let (mut woken, mut actions) = (Vec::new(), Vec::new());
        self.engine.tick(&self.clock, self.now, &mut woken);
        if self.participant.next_tick().is_some_and(|due| due <= self.timestamp()) {
            self.participant.tick(&self.applied.state, self.timestamp(), &mut actions);
        }
        self.act(actions, out);
        self.go_on(woken, out);
    }
}
