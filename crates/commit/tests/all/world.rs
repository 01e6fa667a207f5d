//! A few groups and a few transactions: the real participants over the real tables, reservations
//! and clocks of crate `region`, and a network of which nothing is promised. The model explores it;
//! the state table's test drives it by hand.
//!
//! The network is the set of all messages ever sent. Any of them may be delivered at any time,
//! again and again, or never: so loss, repetition, delay and reordering need no events of their
//! own. A log entry is durable when an event says so; a crash keeps any prefix of what is not
//! durable yet.

use crate::store::Store;
use meridian_base::record::{Payload, Record, SchemaGrant};
use meridian_base::{
    BallotMessage, Clock, ColumnMask, CommitRequest, GroupId, Key, Ledger, LogPosition, NodeId, Peer, Prepare, ReadEntry,
    Refusal, SchemaUse, Standing, Target, Timestamp, TxnId, Vote, Write,
};
use meridian_commit::{Action, Participant, Rules};
use meridian_region::{Deciding, Engine, GroupState, Preparation, Turn};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;
use std::time::Duration;

/// How far clocks may be moved by a peer. The second group's is ahead by less, and in some
/// scenarios by more.
const MAX_OFFSET: Duration = Duration::from_millis(250);
/// When everything starts; ids are below it.
const START: u64 = 1_000_000_000;
/// Above every id.
pub const WATERMARK: Timestamp = Timestamp::from_micros(START - 1);

/// What a transaction does at a group.
#[derive(Clone, Debug)]
pub struct Slice {
    pub group: usize,
    pub reads: &'static [u8],
    pub writes: &'static [u8],
}

/// Whether a participant lets others certify first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    No,
    /// For a while.
    Back,
    /// Until all of them have voted YES.
    Last,
}

/// What is explored.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// By how much each group's clock is ahead, in microseconds.
    pub skews: &'static [u64],
    /// Each a list of slices.
    pub transactions: Vec<Vec<Slice>>,
    /// Changes of primary, at all groups together.
    pub crashes: u8,
    /// Whether the watermark may pass the ids, and acknowledgements count.
    pub watermark: bool,
    /// Whether time passes.
    pub timers: bool,
    /// Whether certification may take its time.
    pub waits: bool,
    /// Whether the gateway may ask to refuse.
    pub gateway_asks: bool,
    /// The first transaction's Prepare at the first group.
    pub hold: Hold,
    pub rules: Rules,
}

/// Which event. The numbers are of groups, of transactions and of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Deliver(usize),
    Certify(usize, usize),
    Durable(usize),
    /// The primary dies; so many of the entries on their way survive.
    Crash(usize, usize),
    Timer(usize),
    Watermark(usize),
    /// The clock passes what a decision waits for.
    ClockPasses(usize),
}

#[derive(Clone)]
pub struct Group {
    pub id: GroupId,
    physical: u64,
    /// For timers: every timer event is later than every timer.
    time: Timestamp,
    pub state: GroupState,
    pub store: Store,
    engine: Engine,
    /// A clock of the engine's own; it cannot be cloned.
    clock_at: Timestamp,
    pub participant: Participant,
    /// On their way into the log.
    pub pending: Vec<Record>,
    /// Decided, but the clock is not there.
    deciding: BTreeMap<TxnId, Option<Timestamp>>,
    crashes: u8,
    /// Everything that ever was in the log, about several groups.
    pub history: Vec<Record>,
    /// Every vote that ever left.
    pub said: BTreeMap<TxnId, BTreeSet<Said>>,
}

/// Messages, each once, over all of an exploration.
#[derive(Default)]
pub struct Messages {
    all: Vec<(Peer, BallotMessage)>,
}

impl Messages {
    fn number(&mut self, to: Peer, message: BallotMessage) -> usize {
        let wanted = (to, message);
        if let Some(i) = self.all.iter().position(|m| *m == wanted) {
            return i;
        }
        self.all.push(wanted);
        assert!(self.all.len() <= 128, "more messages than a set holds");
        self.all.len() - 1
    }
    pub fn get(&self, i: usize) -> &(Peer, BallotMessage) {
        &self.all[i]
    }
}

#[derive(Clone)]
pub struct World {
    /// Shared with the states before; each with its fingerprint.
    pub groups: Vec<(Rc<Group>, u128)>,
    /// Which messages have been sent.
    sent: u128,
}

/// A vote, without its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Said {
    Yes(Timestamp),
    No,
    Forgotten,
}

pub fn txn(n: usize) -> TxnId {
    // Young when everything starts.
    TxnId { hlc: Timestamp::from_micros(START - 1_000 + n as u64), gateway: NodeId(9) }
}
pub fn group_id(n: usize) -> GroupId {
    GroupId(2 + n as u32)
}
pub fn key(k: u8) -> Key {
    Key::new(&[k])
}

impl Group {
    pub fn new(n: usize, scenario: &Scenario) -> Group {
        let id = group_id(n);
        let rules = meridian_region::Rules::ALL;
        let mut state = GroupState::new(rules);
        let grant = SchemaGrant { bound: Timestamp::MAX, seq: 1, ..SchemaGrant::default() };
        state.apply(LogPosition { index: 1, term: 1 }, &Payload { records: vec![Record::Schema(grant)], ..Payload::default() });
        let mut group = Group {
            id,
            physical: START + scenario.skews[n],
            time: Timestamp::from_micros(START),
            engine: Engine::start(NodeId(1), id, &state, rules),
            clock_at: Timestamp::MIN,
            participant: Participant::start(id, &state, Timestamp::from_micros(START), scenario.rules),
            state,
            store: Store::default(),
            pending: Vec::new(),
            deciding: BTreeMap::new(),
            crashes: 0,
            history: Vec::new(),
            said: BTreeMap::new(),
        };
        group.serve();
        group
    }

    fn with_clock<T>(&mut self, f: impl FnOnce(&mut Group, &Clock) -> T) -> T {
        let clock = Clock::new(MAX_OFFSET);
        clock.advance_to(self.clock_at);
        let result = f(self, &clock);
        self.clock_at = clock.now(0);
        result
    }

    /// The lease of a new term.
    fn serve(&mut self) {
        self.physical += self.engine.start_wait(self.physical).as_micros() as u64;
        let lease = self.with_clock(|g, clock| g.engine.renew_lease(&g.state, clock, g.physical));
        let payload = Payload { records: lease.map(Record::Lease).into_iter().collect(), ..self.payload() };
        self.apply(&payload);
    }

    fn payload(&self) -> Payload {
        Payload { closed: self.state.closed(), watermark: self.state.watermark(), records: Vec::new() }
    }

    /// A payload is in the log: what every replica does, and the primary.
    fn apply(&mut self, payload: &Payload) {
        for record in &payload.records {
            if let Record::Outcome(outcome) = record
                && let Some(committed) = self.state.effect(outcome)
            {
                self.store.apply(&committed);
            }
            if !matches!(record, Record::Lease(_)) {
                self.history.push(record.clone());
            }
        }
        let position = LogPosition { index: self.state.applied().index + 1, term: 1 };
        self.state.apply(position, payload);
        self.engine.applied(&self.state, payload, &mut Vec::new());
    }

    /// A new primary, with what the log has. Its state comes from an encoded snapshot.
    pub fn fail_over(&mut self, survivors: usize, rules: Rules) {
        let pending = std::mem::take(&mut self.pending);
        for record in pending.into_iter().take(survivors) {
            let payload = Payload { records: vec![record], ..self.payload() };
            self.apply(&payload);
        }
        let none = meridian_region::Rules::ALL;
        self.state = GroupState::decode(&self.state.encode(), none).expect("what was encoded");
        self.deciding.clear();
        self.engine = Engine::start(NodeId(1), self.id, &self.state, none);
        self.participant = Participant::start(self.id, &self.state, self.time, rules);
        self.serve();
    }

    fn fingerprint(&self) -> u128 {
        let half = |salt: u64| {
            let mut hasher = DefaultHasher::new();
            salt.hash(&mut hasher);
            self.hash_into(&mut hasher);
            u128::from(hasher.finish())
        };
        half(1) << 64 | half(2)
    }

    fn hash_into(&self, hasher: &mut DefaultHasher) {
        let tables = (self.state.unsettled(), self.state.ballots_len(), self.state.watermark());
        (self.physical, self.clock_at, self.crashes, &self.participant, &self.deciding, tables, &self.said).hash(hasher);
        for record in self.history.iter().chain([&Record::Refused(TxnId::default())]).chain(&self.pending) {
            match record {
                Record::Prepared(p) => (1, p.id, p.at).hash(hasher),
                Record::Refused(id) => (2, id).hash(hasher),
                Record::Outcome(o) => (3, o.id, o.at).hash(hasher),
                Record::Settled(ids) => (4, ids).hash(hasher),
                _ => 5.hash(hasher),
            }
        }
    }
}

impl World {
    pub fn new(scenario: &Scenario, messages: &mut Messages) -> World {
        let groups = (0..scenario.skews.len()).map(|n| Group::new(n, scenario));
        let groups = groups.map(|g| (g.fingerprint(), g)).map(|(f, g)| (Rc::new(g), f)).collect();
        let mut world = World { groups, sent: 0 };
        for (n, slices) in scenario.transactions.iter().enumerate() {
            for slice in slices {
                let prepare = prepare(n, slices, slice, if n == 0 && slice.group == 0 { scenario.hold } else { Hold::No });
                world.send(Peer::Group(group_id(slice.group)), BallotMessage::Prepare(Box::new(prepare)), messages);
                if scenario.gateway_asks {
                    let message = BallotMessage::VoteRequest { id: txn(n), from: Peer::Gateway(txn(n).gateway) };
                    world.send(Peer::Group(group_id(slice.group)), message, messages);
                }
            }
        }
        world
    }

    pub fn fingerprint(&self) -> u128 {
        let groups = self
            .groups
            .iter()
            .fold(0, |sum: u128, (_, f)| sum.rotate_left(17).wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(*f));
        groups ^ self.sent.wrapping_mul(0xD6E8_FEB8_6659_FD93_A5A5_A5A5_1234_5677)
    }

    /// Whatever may happen next.
    pub fn events(&self, scenario: &Scenario, messages: &Messages) -> Vec<Event> {
        let mut events = Vec::new();
        let crashes: u8 = self.groups.iter().map(|(g, _)| g.crashes).sum();
        for (n, (group, _)) in self.groups.iter().enumerate() {
            if !group.pending.is_empty() {
                events.push(Event::Durable(n));
            }
            let certifying = (0..scenario.transactions.len()).filter(|t| group.participant.certifying(txn(*t)).is_some());
            events.extend(certifying.map(|t| Event::Certify(n, t)));
            if crashes < scenario.crashes {
                events.extend((0..=group.pending.len()).map(|survivors| Event::Crash(n, survivors)));
            }
            if scenario.timers && group.participant.next_tick().is_some() {
                events.push(Event::Timer(n));
            }
            if scenario.watermark && group.state.watermark() < WATERMARK {
                events.push(Event::Watermark(n));
            }
            if !group.deciding.is_empty() {
                events.push(Event::ClockPasses(n));
            }
        }
        events.extend(self.sent_to_groups(messages).map(Event::Deliver));
        events
    }

    fn sent_to_groups<'a>(&'a self, messages: &'a Messages) -> impl Iterator<Item = usize> + 'a {
        (0..messages.all.len()).filter(|i| self.sent & (1 << i) != 0)
    }

    pub fn step(&mut self, event: Event, scenario: &Scenario, messages: &mut Messages) {
        let n = match event {
            Event::Deliver(i) => match messages.get(i).0 {
                Peer::Group(to) => to.0 as usize - 2,
                Peer::Gateway(_) => return,
            },
            Event::Certify(n, _) | Event::Durable(n) | Event::Crash(n, _) | Event::Timer(n) => n,
            Event::Watermark(n) | Event::ClockPasses(n) => n,
        };
        let group = Rc::make_mut(&mut self.groups[n].0);
        let mut out = Vec::new();
        match event {
            Event::Deliver(i) => group.receive(messages.get(i).1.clone(), &mut out),
            Event::Certify(_, t) => group.certify(txn(t), &mut out),
            Event::Durable(_) => group.durable(&mut out),
            Event::Crash(_, survivors) => {
                group.crashes += 1;
                group.fail_over(survivors, scenario.rules);
            }
            Event::Timer(_) => group.timer(&mut out),
            Event::Watermark(_) => group.watermark(&mut out),
            Event::ClockPasses(_) => group.clock_passes(),
        }
        let mut sent = Vec::new();
        while !out.is_empty() {
            for action in std::mem::take(&mut out) {
                match action {
                    Action::Send { to, message } => {
                        group.say(&message);
                        sent.push((to, message));
                    }
                    Action::Log(record) => group.pending.push(record),
                    Action::Certify(id) if !scenario.waits => group.certify(id, &mut out),
                    Action::Certify(_) => {}
                    Action::Decide { id, at } => group.decide(id, at),
                }
            }
        }
        let group = &self.groups[n].0;
        group.participant.invariant(&group.state);
        group.state.invariant();
        self.groups[n].1 = self.groups[n].0.fingerprint();
        for (to, message) in sent {
            let is_ack = matches!(message, BallotMessage::OutcomeAck { .. });
            if scenario.watermark || !is_ack {
                self.send(to, message, messages);
            }
        }
    }

    fn send(&mut self, to: Peer, message: BallotMessage, messages: &mut Messages) {
        if matches!(to, Peer::Group(_)) {
            self.sent |= 1 << messages.number(to, message);
        }
    }

    /// Everything is lost that may be, and then nothing any more: everybody must come to an end.
    pub fn come_to_rest(&mut self, scenario: &Scenario, messages: &mut Messages) -> Result<(), String> {
        let scenario = &Scenario { watermark: true, ..scenario.clone() };
        self.sent = 0;
        for n in 0..self.groups.len() {
            self.step(Event::Crash(n, 0), scenario, messages);
        }
        for round in 0..12 {
            for n in 0..self.groups.len() {
                self.step(Event::Timer(n), scenario, messages);
                if round > 6 {
                    self.step(Event::Watermark(n), scenario, messages);
                }
            }
            for _ in 0..8 {
                let delivered: Vec<usize> = self.sent_to_groups(messages).collect();
                self.sent = 0;
                delivered.into_iter().for_each(|i| self.step(Event::Deliver(i), scenario, messages));
                for n in 0..self.groups.len() {
                    for t in 0..scenario.transactions.len() {
                        self.step(Event::Certify(n, t), scenario, messages);
                    }
                    self.step(Event::ClockPasses(n), scenario, messages);
                    while !self.groups[n].0.pending.is_empty() {
                        self.step(Event::Durable(n), scenario, messages);
                    }
                }
            }
        }
        for (group, _) in &self.groups {
            if group.state.prepared().len() > 0 {
                return Err(format!("{} is still prepared at {}", group.state.prepared().next().expect("one").id, group.id));
            }
            if group.state.ballots_len() > 0 || !group.participant.is_empty() || group.engine.held_len() > 0 {
                return Err(format!("{} has not forgotten: {:?}", group.id, group.participant));
            }
        }
        Ok(())
    }
}

impl Group {
    pub fn receive(&mut self, message: BallotMessage, out: &mut Vec<Action>) {
        self.participant.receive(&self.state, message, self.time, out);
    }

    /// Does what it is to do, with a log that is durable at once; gives what is to be delivered.
    pub fn go_on(&mut self, out: &mut Vec<Action>, messages: &mut Vec<(usize, BallotMessage)>) {
        while !out.is_empty() || !self.pending.is_empty() {
            for action in std::mem::take(out) {
                match action {
                    Action::Send { to: Peer::Group(to), message } => messages.push((to.0 as usize - 2, message)),
                    Action::Send { .. } => {}
                    Action::Log(record) => self.pending.push(record),
                    Action::Certify(id) => self.certify(id, out),
                    Action::Decide { id, at } => self.decide(id, at),
                }
            }
            if !self.pending.is_empty() {
                self.durable(out);
            }
        }
    }

    /// The first record on its way is in the log.
    pub fn durable(&mut self, out: &mut Vec<Action>) {
        let payload = Payload { records: vec![self.pending.remove(0)], ..self.payload() };
        self.apply(&payload);
        self.participant.applied(&self.state, &payload, self.time, out);
    }

    /// So much time passes that every timer is due.
    pub fn timer(&mut self, out: &mut Vec<Action>) {
        self.time = self.time.plus(Duration::from_secs(3_600));
        self.participant.tick(&self.state, self.time, out);
    }

    /// The watermark passes every id.
    pub fn watermark(&mut self, out: &mut Vec<Action>) {
        self.watermark_to(WATERMARK, out);
    }
    pub fn watermark_to(&mut self, watermark: Timestamp, out: &mut Vec<Action>) {
        let payload = Payload { watermark, ..self.payload() };
        self.apply(&payload);
        self.participant.applied(&self.state, &payload, self.time, out);
    }

    fn say(&mut self, message: &BallotMessage) {
        if let BallotMessage::Vote { id, vote, .. } = message {
            let said = match vote {
                Vote::Yes(at) => Said::Yes(*at),
                Vote::No(_) => Said::No,
                Vote::Forgotten => Said::Forgotten,
            };
            self.said.entry(*id).or_default().insert(said);
        }
    }

    pub fn certify(&mut self, id: TxnId, out: &mut Vec<Action>) {
        let Some(request) = self.participant.certifying(id).cloned() else { return };
        let answer = self.with_clock(|g, clock| g.engine.prepare(&g.state, &g.store, &request, Turn::Late, clock, g.physical));
        let answer = match answer {
            Preparation::Append { at, writes } => Ok((at, writes)),
            Preparation::Refuse(refused) => Err(Refusal { conflict: Some(refused.conflict), fresh: Vec::new() }),
            Preparation::Wait(_) | Preparation::NotReady(_) | Preparation::Known | Preparation::RecheckGlobal => return,
        };
        self.participant.certified(id, answer, out);
    }

    pub fn decide(&mut self, id: TxnId, at: Option<Timestamp>) {
        match self.with_clock(|g, clock| g.engine.decide(&g.state, id, at, clock, g.physical)) {
            Deciding::Log(outcome) => self.pending.push(Record::Outcome(outcome)),
            Deciding::Wait(_) | Deciding::NotReady(_) => {
                self.deciding.insert(id, at);
            }
            Deciding::Known => {}
        }
    }

    fn clock_passes(&mut self) {
        let latest = self.deciding.values().copied().max().flatten();
        self.physical = self.physical.max(latest.map_or(0, Timestamp::micros) + 1);
        let lease = self.with_clock(|g, clock| g.engine.renew_lease(&g.state, clock, g.physical));
        if let Some(lease) = lease {
            let payload = Payload { records: vec![Record::Lease(lease)], ..self.payload() };
            self.apply(&payload);
        }
        for (id, at) in std::mem::take(&mut self.deciding) {
            self.decide(id, at);
        }
    }

    /// What the log says, for the state table.
    pub fn standing(&self, t: usize) -> Standing {
        self.state.standing(txn(t))
    }
}

pub fn prepare(n: usize, slices: &[Slice], slice: &Slice, hold: Hold) -> Prepare {
    let read = |k: &u8| ReadEntry { target: Target::Key(key(*k)), columns: ColumnMask::ALL, until: Timestamp(1) };
    let value = bytes::Bytes::from(vec![n as u8]);
    let write = |k: &u8| Write { key: key(*k), value: Some(value.clone()), columns: ColumnMask::ALL };
    let slice_of = CommitRequest {
        id: txn(n),
        reads: slice.reads.iter().map(read).collect(),
        writes: slice.writes.iter().map(|w| write(w).into()).collect(),
        min_commit: Timestamp::MIN,
        schema: SchemaUse::default(),
        global: Default::default(),
    };
    let mut participants: Vec<GroupId> = slices.iter().map(|s| group_id(s.group)).collect();
    participants.sort();
    let delay = if hold == Hold::No { Duration::ZERO } else { Duration::from_millis(50) };
    Prepare { participants, slice: slice_of, hold: delay, has_queued: true, is_late: true, is_last: hold == Hold::Last }
}
