//! The side of pods.

use crate::events::{Agenda, Meter};
use crate::load::{Transaction, slot_of};
use crate::memory::{Counted, Operations};
use crate::{Measured, Run};
use bytes::Bytes;
use meridian_base::record::{Committed, Payload, Record};
use meridian_base::{GroupId, Key, LogPosition, NodeId, Timestamp, TxnId};
use meridian_host::{Action, Answer, Config, Host, MemoryRows, Message, Request, Rows, Task};
use meridian_pod::{Layout, Purpose, Rules, Segment, Sizes, Slot};
use meridian_region::GroupState;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

type Shared = Arc<Counted>;

const GROUP: GroupId = GroupId(2);
/// Who has nothing to do looks again after this.
const LOOKS: Duration = Duration::from_nanos(500);
const TIDIES: Duration = Duration::from_micros(50);
const PROMISES: Duration = Duration::from_micros(100);
/// Of the rows before the load.
const FIRST: Timestamp = Timestamp(5);
const BEGIN_MICROS: u64 = 10_000_000;

#[derive(Debug)]
enum Event {
    /// A worker begins a transaction, sends the next request, or goes on after a wait.
    Works(usize),
    Arrives(u8, u8, Message),
    Handles(u8, u8, Message),
    Follows(u8),
    Leads,
    Tidies(u8),
    Promises(u8),
    Durable(u64),
}

#[derive(Debug)]
enum Doing {
    /// Its next request is to be sent.
    Next,
    Waits,
}

struct Worker {
    host: u8,
    core: usize,
    id: TxnId,
    transaction: Option<Transaction>,
    phase: usize,
    values: BTreeMap<Key, Option<Bytes>>,
    request: Option<Request>,
    doing: Doing,
    is_scheduled: bool,
}

struct Side<'a> {
    run: &'a Run,
    hosts: Vec<Host<Shared, MemoryRows>>,
    memory: Shared,
    agenda: Agenda<Event>,
    meter: Meter,
    workers: Vec<Worker>,
    by_id: BTreeMap<TxnId, usize>,
    rng: SmallRng,
    number: u64,
    committed: u64,
    aborted: u64,
    added: u64,
    log_bytes: u64,
    /// What looks at nothing have done.
    idle: Operations,
    leader: u8,
    lead_core: usize,
}

impl Side<'_> {
    fn service_core(&self, host: u8) -> usize {
        self.workers.len() + usize::from(host) * 2
    }
    fn background_core(&self, host: u8) -> usize {
        self.service_core(host) + 1
    }
    fn physical(&self) -> u64 {
        BEGIN_MICROS + self.agenda.now() / 1000
    }

    /// Work of a host, measured.
    fn works(&mut self, host: u8, kind: &'static str, work: impl FnOnce(&mut Host<Shared, MemoryRows>, u64)) {
        let physical = self.physical();
        self.memory.acts(host);
        let before = self.memory.operations();
        let (at, memory, prices) = (&mut self.hosts[usize::from(host)], &self.memory, &self.run.prices);
        self.meter.measure_with(kind, || {
            work(at, physical);
            let operations = memory.operations().since(before);
            ((), prices.memory(operations), operations)
        });
    }

    /// What the host wants done; then whoever can go on does.
    fn after(&mut self, host: u8) {
        for action in self.hosts[usize::from(host)].take_actions() {
            match action {
                Action::Answer(id, answer) => self.answered(id, answer),
                Action::Send(to, message) => {
                    let half = self.run.prices.ring_cpu_polled / 2;
                    self.agenda.after(half + self.run.prices.ring, Event::Arrives(host, to, message));
                }
                Action::Append(index, entry) => {
                    self.log_bytes += entry.len() as u64;
                    self.agenda.after(self.run.prices.log, Event::Durable(index));
                }
            }
        }
        for number in 0..self.workers.len() {
            let worker = &mut self.workers[number];
            if worker.host != host || worker.is_scheduled || !matches!(worker.doing, Doing::Waits) {
                continue;
            }
            let at = &self.hosts[usize::from(host)];
            if at.can_step(worker.id) {
                worker.is_scheduled = true;
                let takes = self.meter.expected("goes on");
                match at.polls(worker.id) {
                    true => self.agenda.after(LOOKS * 2 + takes, Event::Works(number)),
                    false => self.agenda.on(worker.core, takes, Event::Works(number)),
                }
            }
        }
    }

    fn schedule(&mut self, number: usize, kind: &'static str) {
        let worker = &mut self.workers[number];
        worker.is_scheduled = true;
        self.agenda.on(worker.core, self.meter.expected(kind), Event::Works(number));
    }

    fn begins(&mut self, number: usize) {
        self.number += 1;
        let worker = &mut self.workers[number];
        let again = worker.transaction.take();
        let next = || self.run.load.next(worker.host, self.run.hosts, self.number, &mut self.rng);
        worker.transaction = Some(again.unwrap_or_else(next));
        worker.id = TxnId { hlc: Timestamp(1000 + self.number), gateway: NodeId(1 + u32::from(worker.host)) };
        worker.phase = 0;
        worker.values.clear();
        self.by_id.insert(worker.id, number);
        self.next_request(number, true);
    }

    fn next_request(&mut self, number: usize, is_first: bool) {
        let worker = &mut self.workers[number];
        let transaction = worker.transaction.as_ref().expect("it has one");
        let (request, kind) = match transaction.phases.get(worker.phase) {
            Some(phase) => (Request::Read(phase.clone()), if is_first { "begins" } else { "reads" }),
            None => (Request::Commit(transaction.writes(&worker.values)), "commits"),
        };
        (worker.request, worker.doing) = (Some(request), Doing::Next);
        self.schedule(number, kind);
    }

    fn answered(&mut self, id: TxnId, answer: Answer) {
        let Some(number) = self.by_id.get(&id).copied() else { return };
        let worker = &mut self.workers[number];
        match answer {
            Answer::Read(_, values) => {
                let transaction = worker.transaction.as_ref().expect("it has one");
                let keys = transaction.phases[worker.phase].iter().map(|(key, _)| key.clone());
                worker.values.extend(keys.zip(values));
                worker.phase += 1;
                self.next_request(number, false);
            }
            Answer::Committed(_) => {
                self.committed += 1;
                self.added += worker.transaction.take().expect("it has one").added();
                self.by_id.remove(&id);
                self.begins(number);
            }
            Answer::Conflict => {
                self.aborted += 1;
                self.by_id.remove(&id);
                self.begins(number);
            }
        }
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Works(number) => {
                let worker = &mut self.workers[number];
                worker.is_scheduled = false;
                let (host, id) = (worker.host, worker.id);
                let (request, is_first) = (worker.request.take(), worker.phase == 0);
                worker.doing = Doing::Waits;
                let kind = match &request {
                    None => "goes on",
                    Some(Request::Read(_)) if is_first => "begins",
                    Some(Request::Read(_)) => "reads",
                    Some(_) => "commits",
                };
                self.works(host, kind, |host, physical| {
                    if let Some(request) = request {
                        if is_first {
                            host.begin(id, false);
                        }
                        host.request(id, request);
                    }
                    host.run(id, physical).expect("shared memory is whole");
                });
                self.after(host);
            }
            Event::Arrives(from, to, message) => {
                let takes = self.meter.expected("handles") + self.run.prices.ring_cpu_polled / 2;
                self.agenda.on(self.service_core(to), takes, Event::Handles(from, to, message));
            }
            Event::Handles(from, to, message) => {
                self.works(to, "handles", |host, physical| {
                    host.handle(from, message).expect("shared memory is whole");
                    host.run_jobs(physical).expect("shared memory is whole");
                });
                self.after(to);
            }
            Event::Follows(host) => self.background(host, "follows", Event::Follows(host), |host, physical| {
                loop {
                    let before = host.progress();
                    host.step(Task::Follow, physical).expect("shared memory is whole");
                    host.step(Task::Follow, physical).expect("shared memory is whole");
                    if host.progress() == before {
                        break;
                    }
                }
                host.run_jobs(physical).expect("shared memory is whole");
            }),
            Event::Leads => self.background(self.leader, "leads", Event::Leads, |host, physical| {
                for other in 0..host.segment().hosts() {
                    host.step(Task::Take(other), physical).expect("shared memory is whole");
                    host.step(Task::Take(other), physical).expect("shared memory is whole");
                }
                for task in [Task::Propose, Task::Publish, Task::Publish] {
                    host.step(task, physical).expect("shared memory is whole");
                }
            }),
            Event::Durable(index) => {
                let leader = usize::from(self.leader);
                self.hosts[leader].durable(index);
            }
            Event::Tidies(host) => {
                self.works(host, "tidies", |host, _| host.tidy_up().expect("shared memory is whole"));
                self.after(host);
                self.agenda.after(TIDIES, Event::Tidies(host));
            }
            Event::Promises(host) => {
                self.works(host, "promises", |host, physical| {
                    host.step(Task::Promise, physical).expect("shared memory is whole");
                });
                self.agenda.after(PROMISES, Event::Promises(host));
            }
        }
    }

    /// Work that looks whether there is any, again and again.
    fn background(&mut self, host: u8, kind: &'static str, again: Event, work: impl FnOnce(&mut Host<Shared, MemoryRows>, u64)) {
        let before = (self.hosts[usize::from(host)].progress(), self.memory.operations());
        let (physical, at) = (self.physical(), usize::from(host));
        self.memory.acts(host);
        // The bench measures the machine it runs on.
        #[allow(clippy::disallowed_methods)]
        let begin = std::time::Instant::now();
        work(&mut self.hosts[at], physical);
        let cpu = begin.elapsed().as_nanos() as f64;
        let operations = self.memory.operations().since(before.1);
        if self.hosts[at].progress() == before.0 {
            // A machine would not look at nothing for long.
            self.idle = self.idle.and(operations);
            self.agenda.after(LOOKS, again);
            return;
        }
        self.meter.add(kind, cpu, self.run.prices.memory(operations), operations);
        self.after(host);
        let core = if kind == "leads" { self.lead_core } else { self.background_core(host) };
        self.agenda.on(core, self.meter.expected(kind), again);
    }
}

/// `all_shared`: every row that is inserted stays there.
fn sizes(run: &Run, all_shared: bool) -> Sizes {
    let hosts = run.hosts + u8::from(all_shared);
    // A quarter of a mebibyte each; a transaction inserts 7 rows on average.
    let inserted = if all_shared { ((run.warm_up + run.transactions) / 200) as u32 } else { 0 };
    let (node_chunks, body_chunks) = (96 + inserted, 320 + inserted);
    Sizes { hosts, ring: 1 << 20, feed: 1 << 20, descriptors: 64, chunk: 1 << 18, node_chunks, body_chunks }
}

/// Runs a load on a pod; `all_shared`: all rows are another host's, which has no workers.
pub fn run(run: &Run, all_shared: bool) -> Measured {
    let hosts = run.hosts + u8::from(all_shared);
    let layout = Layout::new(sizes(run, all_shared)).expect("these sizes are possible");
    let memory = Arc::new(Counted::new(layout.len(), layout.coherent()));
    let purpose = Purpose { generation: 1, group: GROUP, term: 1 };
    let segment = Segment::create(memory.clone(), sizes(run, all_shared), purpose).expect("these sizes are possible");
    let leader = if all_shared { run.hosts } else { 0 };
    let mut side = Side {
        run,
        hosts: start(run, &segment, hosts, leader),
        memory,
        agenda: Agenda::new(usize::from(run.hosts) * usize::from(run.workers) + usize::from(hosts) * 2 + 1),
        meter: Meter::default(),
        workers: Vec::new(),
        by_id: BTreeMap::new(),
        rng: SmallRng::seed_from_u64(run.seed),
        number: 0,
        committed: 0,
        aborted: 0,
        added: 0,
        log_bytes: 0,
        idle: Operations::default(),
        leader,
        lead_core: 0,
    };
    for host in 0..run.hosts {
        for _ in 0..run.workers {
            let (core, id, values) = (side.workers.len(), TxnId::default(), BTreeMap::new());
            let (transaction, request, doing) = (None, None, Doing::Next);
            side.workers.push(Worker { host, core, id, transaction, phase: 0, values, request, doing, is_scheduled: false });
        }
    }
    side.lead_core = side.service_core(hosts);
    (0..side.workers.len()).for_each(|number| side.begins(number));
    for host in 0..hosts {
        side.happens(Event::Follows(host));
        side.happens(Event::Tidies(host));
        side.happens(Event::Promises(host));
    }
    side.happens(Event::Leads);
    side.until(run.warm_up);
    let begin = side.counts();
    let (time, operations, idle) = (side.agenda.now(), side.memory.operations(), side.idle);
    let (committed, aborted, log_bytes) = (side.committed, side.aborted, side.log_bytes);
    side.meter.begin();
    side.until(run.warm_up + run.transactions);
    let counts = side.counts();
    let mut measured = Measured {
        committed: side.committed - committed,
        aborted: side.aborted - aborted,
        time: Duration::from_nanos(side.agenda.now() - time),
        messages: counts[0] - begin[0],
        message_bytes: counts[1] - begin[1],
        log_bytes: side.log_bytes - log_bytes,
        operations: side.memory.operations().since(operations).since(side.idle.since(idle)),
        moved_in: counts[2] - begin[2],
        moved_out: counts[3] - begin[3],
        ..Measured::default()
    };
    let messages = run.prices.ring_cpu.as_nanos() as f64 * measured.messages as f64;
    measured.cpu = Duration::from_nanos((side.meter.cpu + messages) as u64);
    measured.kinds = crate::kinds(&side.meter);
    side.check();
    measured
}

impl Side<'_> {
    fn until(&mut self, committed: u64) {
        while self.committed < committed {
            let event = self.agenda.pop().expect("hosts look for work all the time");
            self.happens(event);
        }
    }

    /// Messages and their bytes, moves in and out.
    fn counts(&self) -> [u64; 4] {
        let counts = self.hosts.iter().map(Host::counts);
        counts.fold([0; 4], |sum, host| {
            [sum[0] + host.messages, sum[1] + host.message_bytes, sum[2] + host.moved_in, sum[3] + host.moved_out]
        })
    }

    /// The rows are what the transactions have made of them.
    fn check(&mut self) {
        // What was acknowledged is in the feed.
        let physical = self.physical();
        let mut sum = 0;
        for host in &mut self.hosts {
            loop {
                let before = host.progress();
                for _ in 0..2 {
                    host.step(Task::Follow, physical).expect("shared memory is whole");
                }
                if host.progress() == before {
                    break;
                }
            }
            let rows = host.rows();
            sum += rows.keys().filter(|key| self.run.load.is_changed(key)).map(|key| number_in(rows, key)).sum::<u64>();
        }
        let first: u64 = (0..self.run.hosts).map(|host| self.run.load.rows(host).len() as u64).sum();
        let in_flight: u64 = self.workers.iter().filter_map(|worker| Some(worker.transaction.as_ref()?.added())).sum();
        let added = sum - first;
        assert!(
            (self.added..=self.added + in_flight).contains(&added),
            "{added} was added, by transactions that have added {} and may have added {in_flight} more",
            self.added
        );
    }
}

fn number_in(rows: &MemoryRows, key: &Key) -> u64 {
    let value = rows.get(key, Timestamp::MAX).and_then(|version| version.value).expect("the row is there");
    u64::from_le_bytes(value[..8].try_into().expect("eight bytes"))
}

fn start(run: &Run, segment: &Segment<Shared>, hosts: u8, leader: u8) -> Vec<Host<Shared, MemoryRows>> {
    let rows_of = |host: u8| {
        let mut rows = MemoryRows::default();
        // L owns everything, or what is its own.
        let owned = (0..run.hosts).filter(|of| if leader == 0 { *of == host } else { host == leader });
        for of in owned {
            rows.apply(&Committed { id: TxnId::default(), at: FIRST, writes: run.load.rows(of) });
        }
        rows
    };
    let mut state = GroupState::new(Default::default());
    let first = Committed { id: TxnId::default(), at: FIRST, writes: Vec::new() };
    state.apply(LogPosition { index: 1, term: 0 }, &Payload { records: vec![Record::Batch(vec![first])], ..Payload::default() });
    let config = |host: u8| Config {
        group: GROUP,
        node: NodeId(1 + u32::from(host)),
        host,
        slot_of,
        // As the other sides, it has no replicas.
        holds_all: false,
        tuples_max: 200_000,
        inserts_shared: leader != 0,
        max_offset: Duration::from_millis(250),
        rules: Rules::ALL,
    };
    let mut first = Host::lead(config(leader), segment.clone(), state, rows_of(leader)).expect("shared memory is whole");
    // Its lease comes first.
    for task in [Task::Propose, Task::Publish, Task::Publish, Task::Follow, Task::Follow] {
        first.step(task, BEGIN_MICROS).expect("shared memory is whole");
        first.take_actions();
        first.durable(2);
    }
    let mut all: Vec<Option<_>> = (0..hosts).map(|_| None).collect();
    for host in (0..hosts).filter(|host| *host != leader) {
        assert!(segment.join_as(host, NodeId(1 + u32::from(host))).expect("shared memory is whole"));
        let joined = Host::join(config(host), segment.clone(), first.state().clone(), rows_of(host));
        assert!(first.admit(host).expect("shared memory is whole"));
        first.assign(Slot(host.into()), host).expect("shared memory is whole");
        all[usize::from(host)] = Some(joined.expect("shared memory is whole"));
    }
    // In «all shared» nobody but L owns anything.
    if leader != 0 {
        for host in 0..run.hosts {
            first.assign(Slot(host.into()), leader).expect("shared memory is whole");
        }
    }
    all[usize::from(leader)] = Some(first);
    let mut all: Vec<Host<Shared, MemoryRows>> = all.into_iter().flatten().collect();
    all.iter_mut().for_each(|host| host.assigned().expect("shared memory is whole"));
    share(run, &mut all, leader);
    all
}

/// What other hosts touch is shared, and they know where; nothing else, unless L owns it all.
fn share(run: &Run, hosts: &mut [Host<Shared, MemoryRows>], leader: u8) {
    for of in 0..run.hosts {
        let keys = match leader {
            0 => run.load.foreign_rows(of),
            _ => run.load.rows(of).into_iter().map(|write| write.key).collect(),
        };
        let owner = if leader == 0 { of } else { leader };
        for keys in keys.chunks(64) {
            let message = Message::MoveIn { ask: 0, keys: keys.to_vec() };
            let at = &mut hosts[usize::from(owner)];
            at.handle(owner, message).expect("shared memory is whole");
            at.run_jobs(BEGIN_MICROS).expect("shared memory is whole");
            at.take_actions();
        }
        for host in hosts.iter_mut().filter(|host| host.number() != owner) {
            host.learn(&keys).expect("shared memory is whole");
        }
    }
}
