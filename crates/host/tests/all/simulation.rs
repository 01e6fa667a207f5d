//! A pod in one thread: any host's next step, any message, any progress of the log comes next, as a
//! seed says. Hosts die between any two steps, are repaired, and come back.

use crate::clients::{Client, Kind, Plan};
use meridian_base::record::{Lease, Payload, Record};
use meridian_base::{GroupId, Key, LogPosition, NodeId, TxnId};
use meridian_host::{Action, Answer, Config, Host, MemoryRows, Message, Request, Rows, Task};
use meridian_pod::memory::Heap;
use meridian_pod::{FeedReader, Layout, Purpose, Rules, Segment, Sizes, Slot};
use meridian_region::GroupState;
use meridian_workload::history::Record as Seen;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

type Shared = Arc<Heap>;
pub type SimHost = Host<Shared, MemoryRows>;

/// What a run is like.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub kind: Kind,
    pub hosts: u8,
    pub keys: u8,
    pub clients: usize,
    pub transactions: usize,
    /// Hosts die, one after the other.
    pub kills: u32,
    pub rules: Rules,
}

impl Options {
    pub fn new(kind: Kind) -> Options {
        Options { kind, hosts: 3, keys: 5, clients: 6, transactions: 60, kills: 2, rules: Rules::ALL }
    }
}

/// Every key has a slot of its own.
fn slot_of(key: &Key) -> Slot {
    Slot(u16::from(key.as_bytes()[0]))
}

pub fn key(k: u8) -> Key {
    Key::new(&[k])
}

pub struct Pod {
    pub options: Options,
    rng: SmallRng,
    segment: Segment<Shared>,
    pub hosts: Vec<Option<SimHost>>,
    /// By sender and receiver: what is under way, in order.
    network: BTreeMap<(u8, u8), VecDeque<Message>>,
    pub log: Vec<Payload>,
    durable: usize,
    pub clients: Vec<Client>,
    ids: BTreeMap<TxnId, usize>,
    pub history: Vec<Seen>,
    /// Counts everything that happens.
    now: u64,
    next_value: i64,
    begun: usize,
    kills: u32,
    /// Joined, and waits for rows.
    joining: Vec<(u8, u64)>,
    /// Is slow to apply.
    slow: Option<u8>,
    draining: bool,
    pub moved_out: u64,
}

const GROUP: GroupId = GroupId(2);
/// Physical time does not matter to a pod: it passes slowly.
const STEPS_PER_MICROSECOND: u64 = 40;
const BEGIN_MICROS: u64 = 10_000_000;

impl Pod {
    pub fn new(options: Options, seed: u64) -> Pod {
        let sizes =
            Sizes { hosts: options.hosts, ring: 4096, feed: 4096, descriptors: 5, chunk: 1024, node_chunks: 14, body_chunks: 40 };
        let memory = Arc::new(Heap::new(Layout::new(sizes).unwrap().len()));
        let segment = Segment::create(memory, sizes, Purpose { generation: 1, group: GROUP, term: 1 }).unwrap();
        let mut rows = MemoryRows::default();
        let mut state = GroupState::new(Default::default());
        // The rows that were there before, and a lease of an earlier term that is over.
        let first = options.kind.first_rows(options.keys);
        let lease = Record::Lease(Lease { primary: NodeId(99), ceiling: meridian_base::Timestamp(10) });
        let payload = Payload { records: vec![lease, Record::Batch(vec![first.clone()])], ..Payload::default() };
        state.apply(LogPosition { index: 1, term: 0 }, &payload);
        rows.apply(&first);
        let leader = Host::lead(config(&options, 0), segment.clone(), state, rows).unwrap();
        let mut pod = Pod {
            options,
            rng: SmallRng::seed_from_u64(seed),
            segment,
            hosts: (0..options.hosts).map(|_| None).collect(),
            network: BTreeMap::new(),
            log: vec![payload],
            durable: 1,
            clients: Vec::new(),
            ids: BTreeMap::new(),
            history: Vec::new(),
            now: 0,
            next_value: 0,
            begun: 0,
            kills: options.kills,
            joining: Vec::new(),
            slow: None,
            draining: false,
            moved_out: 0,
        };
        pod.hosts[0] = Some(leader);
        pod.slow = pod.rng.random_bool(0.4).then(|| pod.rng.random_range(0..options.hosts));
        pod.start();
        pod
    }

    /// L's lease is logged; the other hosts join, and the slots are shared out.
    fn start(&mut self) {
        for task in [Task::Propose, Task::Publish, Task::Publish, Task::Follow, Task::Follow] {
            self.step(0, task);
            self.durable = self.log.len();
            let durable = self.durable as u64;
            self.leader().durable(durable);
        }
        assert!(self.leader().state().lease().is_some_and(|lease| lease.primary == NodeId(1)));
        for host in 1..self.options.hosts {
            assert!(self.segment.join_as(host, NodeId(1 + u32::from(host))).unwrap());
            self.join(host);
        }
        for k in 0..self.options.keys {
            let host = self.rng.random_range(0..self.options.hosts);
            self.leader().assign(slot_of(&key(k)), host).unwrap();
        }
        for host in self.hosts.iter_mut().flatten() {
            host.assigned().unwrap();
        }
        self.clients =
            (0..self.options.clients).map(|number| Client::new(number as u32, number as u8 % self.options.hosts)).collect();
    }

    pub fn leader(&mut self) -> &mut SimHost {
        self.hosts[0].as_mut().expect("L lives")
    }

    fn join(&mut self, host: u8) {
        let leader = self.leader();
        let (state, rows) = (leader.state().clone(), leader.rows().clone());
        let joined = Host::join(config(&self.options, host), self.segment.clone(), state, rows).unwrap();
        assert!(self.leader().admit(host).unwrap());
        self.hosts[usize::from(host)] = Some(joined);
    }

    fn physical(&self) -> u64 {
        BEGIN_MICROS + self.now / STEPS_PER_MICROSECOND
    }

    fn step(&mut self, host: u8, task: Task) {
        let physical = self.physical();
        let Some(at) = self.hosts[usize::from(host)].as_mut() else { return };
        at.step(task, physical).unwrap();
        for action in at.take_actions() {
            match action {
                Action::Answer(id, answer) => self.answered(id, answer),
                Action::Send(to, _) if self.hosts[usize::from(to)].is_none() => {}
                Action::Send(to, message) => self.network.entry((host, to)).or_default().push_back(message),
                Action::Append(index, entry) => {
                    assert_eq!(index as usize, self.log.len() + 1, "the log has no gaps");
                    self.log.push(entry.payload().unwrap());
                }
            }
        }
    }

    /// Something happens.
    fn happens(&mut self) {
        self.now += 1;
        match self.rng.random_range(0..100) {
            0..70 => {
                let host = self.rng.random_range(0..self.options.hosts);
                let Some(at) = &self.hosts[usize::from(host)] else { return };
                let tasks = at.tasks();
                let works = |task: &&Task| matches!(task, Task::Transaction(_) | Task::Job(_) | Task::TakeOver(..));
                let busy: Vec<Task> = tasks.iter().filter(works).copied().collect();
                let from = if !busy.is_empty() && self.rng.random_bool(0.7) { &busy } else { &tasks };
                let task = from[self.rng.random_range(0..from.len())];
                if task == Task::Follow && self.slow == Some(host) && self.rng.random_bool(0.9) {
                    return;
                }
                self.step(host, task);
            }
            70..80 => {
                let pairs: Vec<(u8, u8)> =
                    self.network.iter().filter(|(_, queue)| !queue.is_empty()).map(|(pair, _)| *pair).collect();
                if !pairs.is_empty() {
                    let (from, to) = pairs[self.rng.random_range(0..pairs.len())];
                    let message = self.network.get_mut(&(from, to)).and_then(VecDeque::pop_front).unwrap();
                    if let Some(host) = self.hosts[usize::from(to)].as_mut() {
                        host.handle(from, message).unwrap();
                    }
                }
            }
            80..85 => {
                if self.durable < self.log.len() {
                    self.durable = self.rng.random_range(self.durable + 1..=self.log.len());
                    let durable = self.durable as u64;
                    self.leader().durable(durable);
                }
            }
            85..97 => {
                let client = self.rng.random_range(0..self.clients.len());
                self.client_acts(client);
            }
            97 => {
                let host = self.rng.random_range(0..self.options.hosts);
                let k = self.rng.random_range(0..self.options.keys);
                if let Some(host) = self.hosts[usize::from(host)].as_mut()
                    && host.begin_move_out(&key(k))
                {
                    self.moved_out += 1;
                }
            }
            98 if self.kills > 0 && self.begun > 5 && self.rng.random_bool(0.05) => {
                let host = self.rng.random_range(1..self.options.hosts);
                if self.hosts[usize::from(host)].is_some() {
                    self.kill(host);
                }
            }
            _ => self.return_of_a_host(),
        }
    }

    fn kill(&mut self, host: u8) {
        self.kills -= 1;
        self.hosts[usize::from(host)] = None;
        self.network.retain(|(_, to), _| *to != host);
        self.leader().is_gone(host).unwrap();
        let sent_at_once = !self.options.rules.sends_again_when_over();
        for number in 0..self.clients.len() {
            if self.clients[number].host == host {
                let again = self.rng.random_bool(0.7);
                let ended = self.clients[number].host_died(self.options.kind, again, self.now);
                self.history.extend(ended);
                // L has the slots in the end.
                self.clients[number].host = 0;
                self.clients[number].waits_for = Some(host).filter(|_| !sent_at_once);
            }
        }
    }

    fn return_of_a_host(&mut self) {
        if let Some((host, position)) = self.joining.first().copied() {
            if self.leader().followed() >= position {
                self.joining.remove(0);
                self.join(host);
            }
            return;
        }
        let host = self.rng.random_range(0..self.options.hosts);
        if self.hosts[usize::from(host)].is_none() && self.leader().has_released(host) && self.rng.random_bool(0.1) {
            if !self.segment.join_as(host, NodeId(1 + u32::from(host))).unwrap() {
                return;
            }
            let position = FeedReader::new(&self.segment, host).position();
            self.joining.push((host, position));
        }
    }

    fn client_acts(&mut self, number: usize) {
        let client = &mut self.clients[number];
        if let Some(gone) = client.waits_for {
            if !self.hosts[0].as_ref().is_some_and(|leader| leader.has_taken_over(gone)) {
                return;
            }
            self.clients[number].waits_for = None;
        }
        let client = &mut self.clients[number];
        let Some(host) = self.hosts[usize::from(client.host)].as_mut() else {
            client.host = 0;
            return;
        };
        let id = match client.id {
            Some(id) => id,
            None if self.begun >= self.options.transactions || self.draining => return,
            None => {
                // From time to time, somewhere else.
                if self.rng.random_bool(0.2) {
                    client.host = self.rng.random_range(0..self.options.hosts);
                    return;
                }
                self.begun += 1;
                let plan = Plan::random(self.options.kind, self.options.keys, &mut self.next_value, &mut self.rng);
                let id = TxnId { hlc: meridian_base::Timestamp(1000 + self.now), gateway: NodeId(1 + number as u32) };
                host.begin(id, plan.is_read_only);
                client.begin(id, plan, self.now);
                self.ids.insert(id, number);
                id
            }
        };
        let client = &mut self.clients[number];
        if let Some(request) = client.next_request(self.options.kind) {
            if matches!(request, Request::CommitAgain(..)) {
                host.begin(id, false);
            }
            host.request(id, request);
        }
        self.note_ended(number);
    }

    fn answered(&mut self, id: TxnId, answer: Answer) {
        let number = self.ids[&id];
        self.clients[number].answered(self.options.kind, answer, self.now);
        self.note_ended(number);
    }

    fn note_ended(&mut self, number: usize) {
        if let Some(seen) = self.clients[number].take_ended() {
            self.history.push(seen);
        }
    }

    /// Until all transactions have ended; then everybody reads everything.
    ///
    /// # Errors
    ///
    /// If that does not come to an end.
    pub fn run(&mut self) -> Result<(), String> {
        self.until("the load", |pod| pod.begun >= pod.options.transactions && pod.is_quiet())?;
        // Nothing is taken over any more.
        self.kills = 0;
        self.until("a takeover", |pod| {
            let dead: Vec<u8> = (1..pod.options.hosts).filter(|host| pod.hosts[usize::from(*host)].is_none()).collect();
            pod.joining.is_empty() && dead.iter().all(|host| pod.leader().has_released(*host))
        })?;
        self.draining = true;
        for host in 0..self.options.hosts {
            if self.hosts[usize::from(host)].is_none() {
                continue;
            }
            for is_read_only in [true, false] {
                let number = self.clients.len();
                let mut client = Client::new(number as u32, host);
                let id = TxnId { hlc: meridian_base::Timestamp(1000 + self.now), gateway: NodeId(1000 + number as u32) };
                let plan = Plan::everything(self.options.kind, self.options.keys, is_read_only);
                self.hosts[usize::from(host)].as_mut().unwrap().begin(id, is_read_only);
                client.begin(id, plan, self.now);
                self.ids.insert(id, number);
                self.clients.push(client);
                self.until("the last reads", Pod::is_quiet)?;
            }
        }
        self.until("the log", |pod| {
            pod.durable == pod.log.len() && pod.hosts.iter().flatten().all(|host| host.state().newest() >= newest(&pod.log))
        })
    }

    fn is_quiet(&mut self) -> bool {
        self.clients.iter().all(|client| client.id.is_none())
    }

    fn until(&mut self, what: &str, is_over: impl Fn(&mut Pod) -> bool) -> Result<(), String> {
        for _ in 0..400_000 {
            if is_over(self) {
                return Ok(());
            }
            self.happens();
        }
        let waiting: Vec<String> = self.hosts.iter().flatten().map(|host| format!("{:?}", host.waiting())).collect();
        Err(format!("{what} does not end: {waiting:#?}"))
    }

    /// What the log says of every key, and what the hosts say of it.
    ///
    /// # Errors
    ///
    /// If these are not the same.
    pub fn compare(&self) -> Result<(), String> {
        let mut rows = MemoryRows::default();
        let mut ids = BTreeMap::new();
        for record in self.log.iter().flat_map(|payload| &payload.records) {
            let Record::Batch(txns) = record else { continue };
            for txn in txns {
                rows.apply(txn);
                if let Some(before) = ids.insert(txn.id, txn.at) {
                    return Err(format!("{} is in the log at {before} and at {}", txn.id, txn.at));
                }
            }
        }
        for host in self.hosts.iter().flatten() {
            for k in 0..self.options.keys {
                let (here, log) =
                    (host.rows().get(&key(k), meridian_base::Timestamp::MAX), rows.get(&key(k), meridian_base::Timestamp::MAX));
                if here != log {
                    return Err(format!("host {} has {here:?} of {k}, the log {log:?}", host.number()));
                }
            }
        }
        Ok(())
    }
}

fn newest(log: &[Payload]) -> meridian_base::Timestamp {
    let records = log.iter().flat_map(|payload| &payload.records);
    let batches = records.filter_map(|record| match record {
        Record::Batch(txns) => txns.iter().map(|txn| txn.at).max(),
        _ => None,
    });
    batches.max().unwrap_or_default()
}

fn config(options: &Options, host: u8) -> Config {
    Config {
        group: GROUP,
        node: NodeId(1 + u32::from(host)),
        host,
        slot_of,
        holds_all: true,
        tuples_max: 3,
        inserts_shared: false,
        max_offset: Duration::from_millis(250),
        rules: options.rules,
    }
}
