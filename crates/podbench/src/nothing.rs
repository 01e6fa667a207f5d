//! The side of shared nothing: every host is a group with an engine, rows and a log of its own.
//! Foreign rows are read by message; a transaction over several hosts is prepared at each, is
//! acknowledged when all votes are in their logs, and its outcome follows.

use crate::events::{Agenda, Meter};
use crate::load::{Transaction, home};
use crate::{Measured, Run};
use bytes::Bytes;
use meridian_base::record::{Committed, Payload, Prepared, Record, Reserved, SchemaGrant};
use meridian_base::{
    Clock, ColumnMask, CommitOutcome, CommitRequest, GlobalReads, GroupId, Key, LogPosition, Mutation, NodeId, ReadEntry,
    SchemaUse, Target, Timestamp, TxnId, Write,
};
use meridian_host::{MemoryRows, Rows};
use meridian_region::{Certified, Deciding, Engine, GroupState, Moment, NotReady, Preparation, ReadGate, Rules, Ticket, Turn};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const LOOKS: Duration = Duration::from_nanos(500);
/// Whoever waits for a clock looks again after this.
const TRIES: Duration = Duration::from_micros(20);
const BEGIN_MICROS: u64 = 10_000_000;
const FIRST: Timestamp = Timestamp(5);

/// A host.
struct Node {
    host: u8,
    clock: Clock,
    state: GroupState,
    engine: Engine,
    rows: MemoryRows,
    /// On their way into the log.
    records: Vec<Record>,
    /// The last timestamp among them.
    through: Timestamp,
    /// Messages that wait.
    waiting: Vec<(Ticket, Message)>,
    woken: BTreeSet<Ticket>,
}

#[derive(Clone, Debug)]
enum What {
    Read { s: Option<Timestamp>, keys: Vec<(Key, ColumnMask)> },
    Prepare(Box<CommitRequest>, Vec<GroupId>),
    Decide(Option<Timestamp>),
}

/// From a worker to another host.
#[derive(Clone, Debug)]
struct Message {
    id: TxnId,
    what: What,
    /// The sender's clock.
    now: Timestamp,
}

#[derive(Clone, Debug)]
enum Reply {
    /// Snapshot, values, the newest version among them. `None`: it begins again.
    Read(Option<(Timestamp, Vec<Option<Bytes>>, Timestamp)>),
    Vote(Option<Timestamp>),
}

#[derive(Debug)]
enum Event {
    Works(usize),
    Arrives(u8, Message),
    Handles(u8, Message),
    Replied(u8, TxnId, Reply, Timestamp),
    Receives(usize, u8, TxnId, Reply, Timestamp),
    Logs(u8),
    Applies(u8, Box<Payload>),
    Tries,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Asks for the rows of the next phase.
    Begin,
    /// Reads the own rows of this phase.
    ReadOwn,
    Commit,
    /// Prepares its own part.
    PrepareOwn,
    Applied,
}

struct Worker {
    host: u8,
    core: usize,
    id: TxnId,
    transaction: Option<Transaction>,
    phase: usize,
    step: Step,
    values: BTreeMap<Key, Option<Bytes>>,
    snapshots: BTreeMap<u8, Timestamp>,
    seen: Vec<(Key, ColumnMask, Timestamp)>,
    newest: Timestamp,
    /// Keys asked for, by host.
    asked: BTreeMap<u8, Vec<(Key, ColumnMask)>>,
    own: Vec<(Key, ColumnMask)>,
    /// Parts by host, while it is prepared; votes.
    parts: BTreeMap<u8, CommitRequest>,
    votes: BTreeMap<u8, Option<Timestamp>>,
    ticket: Option<Ticket>,
    is_scheduled: bool,
}

struct Side<'a> {
    run: &'a Run,
    is_tcp: bool,
    nodes: Vec<Node>,
    agenda: Agenda<Event>,
    meter: Meter,
    workers: Vec<Worker>,
    by_id: BTreeMap<TxnId, usize>,
    rng: SmallRng,
    number: u64,
    committed: u64,
    aborted: u64,
    added: u64,
    messages: u64,
    message_bytes: u64,
    log_bytes: u64,
}

fn group(host: u8) -> GroupId {
    GroupId(2 + u32::from(host))
}

/// What came of asking an engine.
enum Came<T> {
    Of(T),
    Wait(Ticket),
    Again,
}

impl Node {
    fn new(run: &Run, host: u8) -> Node {
        let mut rows = MemoryRows::default();
        rows.apply(&Committed { id: TxnId::default(), at: FIRST, writes: run.load.rows(host) });
        let clock = Clock::new(Duration::from_millis(250));
        let mut state = GroupState::new(Rules::ALL);
        let grant = SchemaGrant { bound: Timestamp::MAX, seq: 1, ..SchemaGrant::default() };
        state.apply(LogPosition { index: 1, term: 0 }, &Payload { records: vec![Record::Schema(grant)], ..Payload::default() });
        let engine = Engine::start(NodeId(1), group(host), &state, Rules::ALL);
        let (records, waiting, woken) = (Vec::new(), Vec::new(), BTreeSet::new());
        Node { host, clock, state, engine, rows, records, through: Timestamp::MIN, waiting, woken }
    }

    fn read(
        &mut self,
        s: &mut Option<Timestamp>,
        keys: &[(Key, ColumnMask)],
        physical: u64,
    ) -> Came<(Timestamp, Vec<Option<Bytes>>, Timestamp)> {
        let is_first = s.is_none();
        let mut at = *s.get_or_insert_with(|| {
            let now = self.clock.now(physical);
            self.engine.fresh_snapshot(&self.state, now, &self.clock, physical).at
        });
        let mut i = 0;
        while let Some((key, columns)) = keys.get(i) {
            let target = Target::Key(key.clone());
            let moment = Moment { state: &self.state, versions: &self.rows, clock: &self.clock, physical_micros: physical };
            match self.engine.read_gate(&moment, &target, *columns, at) {
                ReadGate::Ready => i += 1,
                ReadGate::Wait(ticket) | ReadGate::NotReady(NotReady::NeedLease(ticket)) => {
                    *s = Some(at).filter(|_| !is_first);
                    return Came::Wait(ticket);
                }
                // Nothing was read yet.
                ReadGate::MoveTo(to) if is_first => (at, i) = (to, 0),
                ReadGate::MoveTo(_) | ReadGate::TooOld | ReadGate::NotReady(NotReady::NotPrimary) => return Came::Again,
            }
        }
        *s = Some(at);
        let versions: Vec<_> = keys.iter().map(|(key, _)| self.rows.get(key, at)).collect();
        let newest = versions.iter().flatten().map(|version| version.at).max().unwrap_or_default();
        Came::Of((at, versions.into_iter().map(|version| version.and_then(|version| version.value)).collect(), newest))
    }

    fn certify(&mut self, request: &CommitRequest, physical: u64) -> Came<()> {
        match self.engine.certify(&self.state, &self.rows, request, &self.clock, physical) {
            Certified::Append { at, writes } => {
                self.records.push(Record::Batch(vec![Committed { id: request.id, at, writes }]));
                self.through = at;
                Came::Of(())
            }
            Certified::Wait(ticket) | Certified::NotReady(NotReady::NeedLease(ticket)) => Came::Wait(ticket),
            Certified::Done(CommitOutcome::Committed(_)) => unreachable!("every transaction writes"),
            _ => Came::Again,
        }
    }

    /// Its vote comes when the record is applied.
    fn prepare(&mut self, request: &CommitRequest, participants: &[GroupId], physical: u64) -> Option<Ticket> {
        match self.engine.prepare(&self.state, &self.rows, request, Turn::Early, &self.clock, physical) {
            Preparation::Append { at, writes } => {
                let reads = request.reads.iter().map(|read| Reserved { target: read.target.clone(), columns: read.columns });
                let prepared =
                    Prepared { id: request.id, at, participants: participants.to_vec(), reads: reads.collect(), writes };
                self.records.push(Record::Prepared(Box::new(prepared)));
                self.through = at;
                None
            }
            Preparation::Wait(ticket) | Preparation::NotReady(NotReady::NeedLease(ticket)) => Some(ticket),
            _ => {
                self.records.push(Record::Refused(request.id));
                let mut woken = Vec::new();
                self.engine.give_up_claim(request.id, &mut woken);
                self.woken.extend(woken);
                None
            }
        }
    }

    fn decide(&mut self, id: TxnId, at: Option<Timestamp>, physical: u64) -> Option<Ticket> {
        match self.engine.decide(&self.state, id, at, &self.clock, physical) {
            Deciding::Log(outcome) => self.records.push(Record::Outcome(outcome)),
            Deciding::Wait(ticket) => return Some(ticket),
            Deciding::Known | Deciding::NotReady(_) => {}
        }
        None
    }

    fn apply(&mut self, payload: &Payload) {
        for record in &payload.records {
            match record {
                Record::Batch(txns) => txns.iter().for_each(|txn| self.rows.apply(txn)),
                Record::Outcome(outcome) => {
                    if let Some(txn) = self.state.effect(outcome) {
                        self.rows.apply(&txn);
                    }
                }
                _ => {}
            }
        }
        let position = LogPosition { index: self.state.applied().index + 1, term: 1 };
        self.state.apply(position, payload);
        let mut woken = Vec::new();
        self.engine.applied(&self.state, payload, &mut woken);
        self.woken.extend(woken);
    }
}

impl Worker {
    fn request(&self, state: &GroupState, host: u8, writes: &[Write]) -> CommitRequest {
        let seen = self.seen.iter().filter(|(key, ..)| home(key) == host);
        let reads =
            seen.map(|(key, columns, until)| ReadEntry { target: Target::Key(key.clone()), columns: *columns, until: *until });
        let writes = writes.iter().filter(|write| home(&write.key) == host).cloned().map(Mutation::from);
        CommitRequest {
            id: self.id,
            reads: reads.collect(),
            writes: writes.collect(),
            min_commit: self.newest,
            schema: SchemaUse { version: state.grant().version, ..SchemaUse::default() },
            global: GlobalReads::default(),
        }
    }
}

impl Side<'_> {
    fn physical(&self) -> u64 {
        BEGIN_MICROS + self.agenda.now() / 1000
    }
    fn service_core(&self, host: u8) -> usize {
        self.workers.len() + usize::from(host) * 2
    }
    fn half(&self) -> Duration {
        (if self.is_tcp { self.run.prices.tcp_cpu } else { self.run.prices.ring_cpu_polled }) / 2
    }
    fn delay(&self) -> Duration {
        if self.is_tcp { self.run.prices.tcp } else { self.run.prices.ring }
    }

    fn send(&mut self, from: u8, to: u8, id: TxnId, what: What) {
        let now = self.nodes[usize::from(from)].clock.now(self.physical());
        self.messages += 1;
        self.message_bytes += match &what {
            What::Read { keys, .. } => 30 + keys.iter().map(|(key, _)| 10 + key.as_bytes().len()).sum::<usize>(),
            What::Prepare(request, _) => 60 + request.bytes() + request.reads.len() * 40,
            What::Decide(_) => 30,
        } as u64;
        self.agenda.after(self.half() + self.delay(), Event::Arrives(to, Message { id, what, now }));
    }

    fn reply(&mut self, from: u8, id: TxnId, reply: Reply) {
        let now = self.nodes[usize::from(from)].clock.now(self.physical());
        self.messages += 1;
        self.message_bytes += match &reply {
            Reply::Read(Some((_, values, _))) => 30 + values.iter().flatten().map(Bytes::len).sum::<usize>(),
            _ => 30,
        } as u64;
        self.agenda.delays(self.service_core(from), self.half());
        self.agenda.after(self.half() + self.delay(), Event::Replied(from, id, reply, now));
    }

    fn schedule(&mut self, number: usize, kind: &'static str) {
        let worker = &mut self.workers[number];
        if !worker.is_scheduled {
            worker.is_scheduled = true;
            worker.ticket = None;
            self.agenda.on(worker.core, self.meter.expected(kind), Event::Works(number));
        }
    }

    fn begins(&mut self, number: usize) {
        self.number += 1;
        let worker = &mut self.workers[number];
        let again = worker.transaction.take();
        let next = || self.run.load.next(worker.host, self.run.hosts, self.number, &mut self.rng);
        worker.transaction = Some(again.unwrap_or_else(next));
        worker.id = TxnId { hlc: Timestamp(1000 + self.number), gateway: NodeId(1 + u32::from(worker.host)) };
        (worker.phase, worker.step, worker.newest) = (0, Step::Begin, Timestamp::MIN);
        worker.values.clear();
        worker.snapshots.clear();
        worker.seen.clear();
        worker.asked.clear();
        worker.own.clear();
        worker.parts.clear();
        worker.votes.clear();
        self.by_id.insert(worker.id, number);
        self.schedule(number, "begins");
    }

    fn ends(&mut self, number: usize, has_committed: bool) {
        let worker = &mut self.workers[number];
        self.by_id.remove(&worker.id);
        if has_committed {
            self.committed += 1;
            self.added += worker.transaction.take().expect("it has one").added();
        } else {
            self.aborted += 1;
        }
        self.begins(number);
    }

    fn works(&mut self, number: usize) {
        let physical = self.physical();
        self.workers[number].is_scheduled = false;
        let step = self.workers[number].step;
        let kind = match step {
            Step::Begin | Step::ReadOwn => "begins",
            Step::Commit | Step::PrepareOwn | Step::Applied => "commits",
        };
        let host = self.workers[number].host;
        match step {
            Step::Begin => {
                let worker = &mut self.workers[number];
                let transaction = worker.transaction.as_ref().expect("it has one");
                for (key, columns) in &transaction.phases[worker.phase] {
                    let of = match home(key) == host {
                        true => &mut worker.own,
                        false => worker.asked.entry(home(key)).or_default(),
                    };
                    of.push((key.clone(), *columns));
                }
                worker.step = Step::ReadOwn;
                let (id, asked) = (worker.id, worker.asked.clone());
                for (to, keys) in asked {
                    let s = self.workers[number].snapshots.get(&to).copied();
                    self.send(host, to, id, What::Read { s, keys });
                }
                self.read_own(number, kind, physical);
            }
            Step::ReadOwn => self.read_own(number, kind, physical),
            Step::Commit => {
                let worker = &mut self.workers[number];
                let transaction = worker.transaction.as_ref().expect("it has one");
                let writes = transaction.writes(&worker.values);
                let hosts: BTreeSet<u8> =
                    worker.seen.iter().map(|(key, ..)| home(key)).chain(writes.iter().map(|write| home(&write.key))).collect();
                let state = &self.nodes[usize::from(host)].state;
                let parts = || (hosts.iter().map(|of| (*of, worker.request(state, *of, &writes))).collect(), 0.0);
                worker.parts = self.meter.measure("asks", parts);
                if hosts.len() > 1 {
                    worker.step = Step::PrepareOwn;
                    let id = worker.id;
                    let participants: Vec<GroupId> = hosts.iter().map(|of| group(*of)).collect();
                    for to in hosts.into_iter().filter(|to| *to != host) {
                        let part = Box::new(self.workers[number].parts[&to].clone());
                        self.send(host, to, id, What::Prepare(part, participants.clone()));
                    }
                    self.prepare_own(number, kind, physical);
                    return;
                }
                let (node, part) = (&mut self.nodes[usize::from(host)], &worker.parts[&host]);
                match self.meter.measure(kind, || (node.certify(part, physical), 0.0)) {
                    Came::Of(()) => worker.step = Step::Applied,
                    Came::Wait(ticket) => worker.ticket = Some(ticket),
                    Came::Again => self.ends(number, false),
                }
            }
            Step::PrepareOwn => self.prepare_own(number, kind, physical),
            Step::Applied => {}
        }
    }

    fn read_own(&mut self, number: usize, kind: &'static str, physical: u64) {
        let worker = &mut self.workers[number];
        let node = &mut self.nodes[usize::from(worker.host)];
        if !worker.own.is_empty() {
            let mut s = worker.snapshots.get(&worker.host).copied();
            let own = worker.own.clone();
            match self.meter.measure(kind, || (node.read(&mut s, &own, physical), 0.0)) {
                Came::Of((s, values, newest)) => {
                    worker.own.clear();
                    self.has_read(number, self.workers[number].host, s, own, values, newest);
                }
                Came::Wait(ticket) => {
                    worker.ticket = Some(ticket);
                    return;
                }
                Came::Again => return self.ends(number, false),
            }
        }
        self.next_phase(number);
    }

    fn has_read(
        &mut self,
        number: usize,
        from: u8,
        s: Timestamp,
        keys: Vec<(Key, ColumnMask)>,
        values: Vec<Option<Bytes>>,
        newest: Timestamp,
    ) {
        let worker = &mut self.workers[number];
        worker.snapshots.insert(from, s);
        worker.newest = worker.newest.max(newest);
        for ((key, columns), value) in keys.into_iter().zip(values) {
            worker.seen.push((key.clone(), columns, s));
            worker.values.insert(key, value);
        }
    }

    fn next_phase(&mut self, number: usize) {
        let worker = &mut self.workers[number];
        if !worker.asked.is_empty() || !worker.own.is_empty() || worker.step != Step::ReadOwn {
            return;
        }
        worker.phase += 1;
        let is_last = worker.phase == worker.transaction.as_ref().expect("it has one").phases.len();
        worker.step = if is_last { Step::Commit } else { Step::Begin };
        self.schedule(number, if is_last { "commits" } else { "begins" });
    }

    fn prepare_own(&mut self, number: usize, kind: &'static str, physical: u64) {
        let worker = &mut self.workers[number];
        let host = worker.host;
        let Some(part) = worker.parts.get(&host) else {
            worker.step = Step::Applied;
            return;
        };
        let participants: Vec<GroupId> = worker.parts.keys().map(|of| group(*of)).collect();
        let node = &mut self.nodes[usize::from(host)];
        match self.meter.measure(kind, || (node.prepare(part, &participants, physical), 0.0)) {
            Some(ticket) => worker.ticket = Some(ticket),
            None => worker.step = Step::Applied,
        }
    }

    fn voted(&mut self, number: usize, host: u8, vote: Option<Timestamp>) {
        let worker = &mut self.workers[number];
        worker.votes.insert(host, vote);
        if worker.votes.len() < worker.parts.len() {
            return;
        }
        let votes: Option<Vec<Timestamp>> = worker.votes.values().copied().collect();
        let at = votes.and_then(|votes| votes.into_iter().max());
        let (id, own) = (worker.id, worker.host);
        let parts: Vec<u8> = worker.votes.iter().filter(|(_, vote)| vote.is_some()).map(|(host, _)| *host).collect();
        let physical = self.physical();
        for to in parts {
            if to != own {
                self.send(own, to, id, What::Decide(at));
                continue;
            }
            let node = &mut self.nodes[usize::from(own)];
            if let Some(at) = at {
                node.clock.advance_to(at);
            }
            if let Some(ticket) = self.meter.measure("decides", || (node.decide(id, at, physical), 0.0)) {
                node.waiting.push((ticket, Message { id, what: What::Decide(at), now: Timestamp::MIN }));
            }
        }
        self.ends(number, at.is_some());
    }

    fn handles(&mut self, host: u8, message: Message) {
        let physical = self.physical();
        let Message { id, what, now } = message.clone();
        let node = &mut self.nodes[usize::from(host)];
        node.clock.advance_to(now);
        if let What::Decide(Some(at)) = &what {
            node.clock.advance_to(*at);
        }
        let mut reply = None;
        let waits = self.meter.measure("handles", || {
            let waits = match &what {
                What::Read { s, keys } => {
                    let mut s = *s;
                    match node.read(&mut s, keys, physical) {
                        Came::Of(read) => {
                            reply = Some(Reply::Read(Some(read)));
                            None
                        }
                        Came::Again => {
                            reply = Some(Reply::Read(None));
                            None
                        }
                        Came::Wait(ticket) => Some(ticket),
                    }
                }
                What::Prepare(request, participants) => node.prepare(request, participants, physical),
                What::Decide(at) => node.decide(id, *at, physical),
            };
            (waits, 0.0)
        });
        if let Some(ticket) = waits {
            node.waiting.push((ticket, message));
        }
        if let Some(reply) = reply {
            self.reply(host, id, reply);
        }
    }

    /// Makes an entry of the log of what there is.
    fn logs(&mut self, host: u8) {
        let physical = self.physical();
        let node = &mut self.nodes[usize::from(host)];
        let lease = node.engine.renew_lease(&node.state, &node.clock, physical);
        node.records.extend(lease.map(Record::Lease));
        if node.records.is_empty() {
            self.agenda.after(LOOKS, Event::Logs(host));
            return;
        }
        let (payload, bytes) = self.meter.measure("logs", || {
            node.engine.appended(node.through);
            let records = std::mem::take(&mut node.records);
            let payload = Payload { closed: node.state.closed(), watermark: node.state.watermark(), records };
            let bytes = payload.encode().len();
            ((payload, bytes), 0.0)
        });
        self.log_bytes += bytes as u64;
        let takes = self.meter.expected("logs") + self.meter.expected("applies");
        let core = self.service_core(host) + 1;
        // The log's delay is none of the core's time.
        self.agenda.delays(core, takes);
        self.agenda.after(takes + self.run.prices.log, Event::Applies(host, Box::new(payload)));
        self.agenda.after(takes, Event::Logs(host));
    }

    fn applies(&mut self, host: u8, payload: &Payload) {
        let node = &mut self.nodes[usize::from(host)];
        self.meter.measure("applies", || (node.apply(payload), 0.0));
        for record in &payload.records {
            let (id, vote) = match record {
                Record::Batch(txns) => {
                    for txn in txns {
                        if let Some(number) = self.by_id.get(&txn.id).copied() {
                            self.ends(number, true);
                        }
                    }
                    continue;
                }
                Record::Prepared(prepared) => (prepared.id, Some(prepared.at)),
                Record::Refused(id) => (*id, None),
                _ => continue,
            };
            match id.gateway.0 == 1 + u32::from(host) {
                true => {
                    if let Some(number) = self.by_id.get(&id).copied() {
                        self.voted(number, host, vote);
                    }
                }
                false => self.reply(host, id, Reply::Vote(vote)),
            }
        }
        self.wakes(host, false);
    }

    /// Whoever waits for something that has happened goes on; or everybody tries.
    fn wakes(&mut self, host: u8, all: bool) {
        let node = &mut self.nodes[usize::from(host)];
        let woken = std::mem::take(&mut node.woken);
        let (go_on, wait): (Vec<_>, Vec<_>) =
            std::mem::take(&mut node.waiting).into_iter().partition(|(ticket, _)| all || woken.contains(ticket));
        node.waiting = wait;
        for (_, message) in go_on {
            let takes = self.meter.expected("handles");
            self.agenda.on(self.service_core(host), takes, Event::Handles(host, message));
        }
        for number in 0..self.workers.len() {
            let worker = &self.workers[number];
            if worker.host == host && worker.ticket.is_some_and(|ticket| all || woken.contains(&ticket)) {
                self.schedule(number, "commits");
            }
        }
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Works(number) => self.works(number),
            Event::Arrives(to, message) => {
                let takes = self.meter.expected("handles") + self.half();
                self.agenda.on(self.service_core(to), takes, Event::Handles(to, message));
            }
            Event::Handles(host, message) => self.handles(host, message),
            Event::Replied(from, id, reply, now) => {
                if let Some(number) = self.by_id.get(&id).copied() {
                    let core = self.workers[number].core;
                    self.agenda.on(core, self.half(), Event::Receives(number, from, id, reply, now));
                }
            }
            Event::Receives(number, from, id, reply, now) => {
                let worker = &mut self.workers[number];
                if worker.id != id {
                    return;
                }
                self.nodes[usize::from(worker.host)].clock.advance_to(now);
                match reply {
                    Reply::Read(None) => self.ends(number, false),
                    Reply::Read(Some((s, values, newest))) => {
                        let keys = worker.asked.remove(&from).expect("it was asked");
                        self.has_read(number, from, s, keys, values, newest);
                        self.next_phase(number);
                    }
                    Reply::Vote(vote) => self.voted(number, from, vote),
                }
            }
            Event::Logs(host) => self.logs(host),
            Event::Applies(host, payload) => self.applies(host, &payload),
            Event::Tries => {
                (0..self.run.hosts).for_each(|host| self.wakes(host, true));
                self.agenda.after(TRIES, Event::Tries);
            }
        }
    }

    fn until(&mut self, committed: u64) {
        while self.committed < committed {
            let event = self.agenda.pop().expect("hosts look for work all the time");
            self.happens(event);
        }
    }

    /// The rows are what the transactions have made of them.
    fn check(&self) {
        let (mut sum, mut first) = (0, 0);
        for node in &self.nodes {
            first += self.run.load.rows(node.host).len() as u64;
            sum +=
                node.rows.keys().filter(|key| self.run.load.is_changed(key)).map(|key| number_in(&node.rows, key)).sum::<u64>();
        }
        let in_flight: u64 = self.workers.iter().filter_map(|worker| Some(worker.transaction.as_ref()?.added())).sum();
        // Outcomes of acknowledged transactions may not be applied yet: one a worker at most, and
        // those before it.
        let late = in_flight * 20;
        let added = sum - first;
        assert!(
            added + late >= self.added && added <= self.added + in_flight,
            "{added} was added, by transactions that have added {}",
            self.added
        );
    }
}

fn number_in(rows: &MemoryRows, key: &Key) -> u64 {
    let value = rows.get(key, Timestamp::MAX).and_then(|version| version.value).expect("the row is there");
    u64::from_le_bytes(value[..8].try_into().expect("eight bytes"))
}

/// Runs a load on hosts that share nothing.
pub fn run(run: &Run, is_tcp: bool) -> Measured {
    let mut side = Side {
        run,
        is_tcp,
        nodes: (0..run.hosts).map(|host| Node::new(run, host)).collect(),
        agenda: Agenda::new(usize::from(run.hosts) * usize::from(run.workers + 2)),
        meter: Meter::default(),
        workers: Vec::new(),
        by_id: BTreeMap::new(),
        rng: SmallRng::seed_from_u64(run.seed),
        number: 0,
        committed: 0,
        aborted: 0,
        added: 0,
        messages: 0,
        message_bytes: 0,
        log_bytes: 0,
    };
    for host in 0..run.hosts {
        for _ in 0..run.workers {
            side.workers.push(Worker {
                host,
                core: side.workers.len(),
                id: TxnId::default(),
                transaction: None,
                phase: 0,
                step: Step::Begin,
                values: BTreeMap::new(),
                snapshots: BTreeMap::new(),
                seen: Vec::new(),
                newest: Timestamp::MIN,
                asked: BTreeMap::new(),
                own: Vec::new(),
                parts: BTreeMap::new(),
                votes: BTreeMap::new(),
                ticket: None,
                is_scheduled: false,
            });
        }
    }
    (0..run.hosts).for_each(|host| side.happens(Event::Logs(host)));
    (0..side.workers.len()).for_each(|number| side.begins(number));
    side.happens(Event::Tries);
    side.until(run.warm_up);
    let time = side.agenda.now();
    let before = (side.committed, side.aborted, side.messages, side.message_bytes, side.log_bytes);
    side.meter.begin();
    side.until(run.warm_up + run.transactions);
    let mut measured = Measured {
        committed: side.committed - before.0,
        aborted: side.aborted - before.1,
        time: Duration::from_nanos(side.agenda.now() - time),
        messages: side.messages - before.2,
        message_bytes: side.message_bytes - before.3,
        log_bytes: side.log_bytes - before.4,
        ..Measured::default()
    };
    let price = if is_tcp { run.prices.tcp_cpu } else { run.prices.ring_cpu };
    measured.cpu = Duration::from_nanos((side.meter.cpu + price.as_nanos() as f64 * measured.messages as f64) as u64);
    measured.kinds = crate::kinds(&side.meter);
    side.check();
    measured
}
