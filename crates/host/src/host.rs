//! A host: what it knows, and which of its steps may come next.

use crate::leading::Leader;
use crate::message::{Action, Answer, Message, Request};
use crate::moving::Job;
use crate::rows::Rows;
use crate::txn::{At, Txn, Wait};
use meridian_base::record::SchemaGrant;
use meridian_base::{Clock, GroupId, Key, NodeId, Timestamp, TxnId};
use meridian_pod::memory::Memory;
use meridian_pod::{
    Allocator, Body, Damaged, Epochs, FeedReader, Hold, Node, RingWriter, Rules, SLOTS, Segment, SegmentClock, Slot,
};
use meridian_region::{self as region, Engine, GroupState, Ticket};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Which work of a host has its next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Task {
    /// A transaction of one of its clients.
    Transaction(TxnId),
    /// Work on a tuple that it owns: one moves in or out, or an old version is asked for.
    Job(u64),
    /// Applies what the feed has.
    Follow,
    /// Says how far it is, and gets blocks and space back.
    Tidy,
    /// Says through its ring that nothing at or below the clock will follow.
    Promise,
    /// L takes what is in a host's ring.
    Take(u8),
    /// L makes an entry of the log of what it has taken.
    Propose,
    /// L tells everybody what is durable.
    Publish,
    /// L repairs a descriptor of a host that is gone, or does the next thing that follows from
    /// that.
    TakeOver(u8, u16),
}

/// What does not change while a host is in a pod.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    pub group: GroupId,
    pub node: NodeId,
    /// Its line in the segment.
    pub host: u8,
    /// The slot of a key; all hosts have the same function.
    pub slot_of: fn(&Key) -> Slot,
    /// It applies everything, as a voter does; else its slots only.
    pub holds_all: bool,
    /// Shared tuples of its own slots from which on it moves some out.
    pub tuples_max: usize,
    /// Keys of other hosts that are nowhere become shared tuples by who inserts them. Only where
    /// their owners certify nothing themselves: those do not learn of it.
    pub inserts_shared: bool,
    /// How far nodes' clocks may be apart.
    pub max_offset: Duration,
    pub rules: Rules,
}

/// A foreign tuple, as it was found last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub node: Node,
    pub generation: u32,
    /// How often it was found here.
    pub uses: u32,
}

/// One host of a pod. See the crate's essay.
#[derive(Debug)]
pub struct Host<M, R> {
    pub(crate) config: Config,
    pub(crate) segment: Segment<M>,
    pub(crate) clock: Clock,
    pub(crate) state: GroupState,
    pub(crate) engine: Engine,
    pub(crate) rows: R,
    pub(crate) ring: RingWriter,
    pub(crate) feed: FeedReader,
    pub(crate) epochs: Epochs,
    pub(crate) allocator: Allocator,
    /// Free ones. The first is for moves out.
    pub(crate) descriptors: Vec<u16>,
    pub(crate) has_move_descriptor: bool,
    /// The task that holds the host's lock.
    pub(crate) lock: Option<Task>,
    /// Own keys that are shared.
    pub(crate) home: HashMap<Key, Node>,
    /// The same in the order in which they are asked to move out.
    pub(crate) hand: VecDeque<Key>,
    pub(crate) known: HashMap<Key, Known>,
    /// The owners of slots, as they were seen last. Its own ones are certain.
    pub(crate) owners: Vec<u8>,
    pub(crate) txns: BTreeMap<TxnId, Txn>,
    pub(crate) jobs: BTreeMap<u64, Job>,
    pub(crate) next_number: u64,
    /// Who asked what.
    pub(crate) asks: BTreeMap<u64, TxnId>,
    pub(crate) woken: BTreeSet<Ticket>,
    pub(crate) actions: Vec<Action>,
    pub(crate) tidying: u8,
    /// A record of the feed is applied, and not passed.
    pub(crate) is_applied: bool,
    /// Something was not possible for want of blocks.
    pub(crate) wants_memory: bool,
    /// Microseconds.
    pub(crate) physical: u64,
    pub(crate) leader: Option<Leader>,
    /// Tuples that were moved in and out here, and messages sent.
    pub(crate) counts: Counts,
}

/// What a host has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub moved_in: u64,
    pub moved_out: u64,
    pub messages: u64,
    pub message_bytes: u64,
}

impl<M: Memory + Clone + Send + Sync + 'static, R: Rows> Host<M, R> {
    /// L, with everything that the log has had so far. It owns all slots of the new segment.
    ///
    /// # Errors
    ///
    /// If the segment is damaged, or has had a host.
    pub fn lead(config: Config, segment: Segment<M>, state: GroupState, rows: R) -> Result<Self, Damaged> {
        let joined = segment.join_as(config.host, config.node)?;
        assert!(joined, "L is the first in a new segment");
        let clock = clock_of(&segment, &config);
        let mut engine = Engine::start(config.node, config.group, &state, region::Rules::ALL);
        engine.lead_pod(&state, &clock);
        let mut host = Host::with(config, segment, clock, state, rows, engine);
        let mut leader = Leader::new(&host.segment, host.state.applied(), host.config.rules);
        for slot in Slot::all() {
            let free = host.segment.holder(slot)?;
            host.segment.change_holder(slot, free, Hold::Owned, host.config.host);
        }
        leader.admit(&host.segment, host.config.host)?;
        leader.grant(SchemaGrant { bound: Timestamp::MAX, seq: host.state.grant().seq + 1, ..host.state.grant().clone() });
        host.leader = Some(leader);
        host.look_at_owners()?;
        Ok(host)
    }

    /// A host that has joined as `config.host` ([`Segment::join_as`]), with a state and rows that
    /// hold at least what the feed said before that, and the leader's lease. It draws no timestamp
    /// before L has admitted it ([`Host::admit`]).
    ///
    /// # Errors
    ///
    /// If the segment is damaged.
    pub fn join(config: Config, segment: Segment<M>, state: GroupState, rows: R) -> Result<Self, Damaged> {
        let clock = clock_of(&segment, &config);
        let engine = Engine::start(config.node, config.group, &state, region::Rules::ALL).join_pod(&state, &clock);
        let mut host = Host::with(config, segment, clock, state, rows, engine);
        // Answers to an earlier user of the line are not taken for its own.
        host.next_number = u64::from(host.segment.host(config.host)?.epoch) << 40;
        host.look_at_owners()?;
        Ok(host)
    }

    fn with(config: Config, segment: Segment<M>, clock: Clock, state: GroupState, rows: R, engine: Engine) -> Self {
        let Config { host, rules, .. } = config;
        Host {
            ring: RingWriter::new(&segment, host, rules),
            feed: FeedReader::new(&segment, host),
            epochs: Epochs::new(host),
            allocator: Allocator::new(host, rules),
            descriptors: (1..segment.layout().sizes().descriptors as u16).rev().collect(),
            has_move_descriptor: true,
            lock: None,
            home: HashMap::new(),
            hand: VecDeque::new(),
            known: HashMap::new(),
            owners: vec![u8::MAX; SLOTS.into()],
            txns: BTreeMap::new(),
            jobs: BTreeMap::new(),
            next_number: 0,
            asks: BTreeMap::new(),
            woken: BTreeSet::new(),
            actions: Vec::new(),
            tidying: 0,
            is_applied: false,
            wants_memory: false,
            physical: 0,
            leader: None,
            counts: Counts::default(),
            config,
            segment,
            clock,
            state,
            engine,
            rows,
        }
    }

    /// Its line in the segment.
    pub fn number(&self) -> u8 {
        self.config.host
    }
    /// What the log has determined so far, as far as it is applied here.
    pub fn state(&self) -> &GroupState {
        &self.state
    }
    /// What lies before this position of the feed is applied.
    pub fn followed(&self) -> u64 {
        self.feed.position()
    }
    /// The rows that it holds.
    pub fn rows(&self) -> &R {
        &self.rows
    }
    /// The pod's memory.
    pub fn segment(&self) -> &Segment<M> {
        &self.segment
    }
    /// Learns where these tuples are, as if transactions had used them: for measurements of what
    /// comes after that.
    ///
    /// # Errors
    ///
    /// If the segment is damaged.
    pub fn learn<'k>(&mut self, keys: impl IntoIterator<Item = &'k Key>) -> Result<(), Damaged> {
        let epoch = self.epochs.enter(&self.segment);
        for key in keys {
            if let Some(node) = self.segment.find(&key.as_bytes().to_vec().into())? {
                let generation = node.generation(&self.segment);
                self.known.insert(key.clone(), Known { node, generation, uses: 1 });
            }
        }
        self.epochs.leave(epoch);
        Ok(())
    }
    /// What it has done so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }
    /// How far the log is: applied here; if it leads, handed to the log, and told to all.
    pub fn progress(&self) -> [u64; 3] {
        let leader = self.leader.as_ref().map_or((0, 0), |leader| (leader.last, leader.published));
        [self.feed.position(), leader.0, leader.1]
    }
    /// Own keys that are shared now.
    pub fn shared(&self) -> usize {
        self.home.len()
    }
    /// What its transactions and jobs are doing, for who wonders why nothing happens.
    pub fn waiting(&self) -> Vec<String> {
        let txns = self.txns.values().map(|txn| format!("{}: {:?}, {:?}", txn.id, txn.at, txn.wait));
        let lock = self.lock.map(|task| format!("the lock is with {task:?}"));
        txns.chain(self.jobs.values().map(|job| format!("{job:?}"))).chain(lock).collect()
    }
    /// What it wants done since this was last asked.
    pub fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }
    /// Whether it serves no client and moves nothing.
    pub fn is_idle(&self) -> bool {
        self.txns.is_empty() && self.jobs.is_empty()
    }

    pub(crate) fn slot(&self, key: &Key) -> Slot {
        (self.config.slot_of)(key)
    }
    pub(crate) fn owner(&self, key: &Key) -> u8 {
        self.owners[usize::from(self.slot(key).0)]
    }
    pub(crate) fn is_own(&self, key: &Key) -> bool {
        self.owner(key) == self.config.host
    }
    pub(crate) fn number_next(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }
    pub(crate) fn send(&mut self, to: u8, message: Message) {
        self.counts.messages += 1;
        self.counts.message_bytes += message.bytes() as u64;
        self.actions.push(Action::Send(to, message));
    }

    /// Who owns which slots. The host itself, L after a death, and an owner's answer say when it
    /// may have changed.
    pub(crate) fn look_at_owners(&mut self) -> Result<(), Damaged> {
        for slot in Slot::all() {
            self.owners[usize::from(slot.0)] = self.segment.holder(slot)?.host;
        }
        Ok(())
    }

    /// A slot's new owner, before anything is asked of the host: L gives its slots to hosts that
    /// begin together with it.
    ///
    /// # Errors
    ///
    /// If the segment is damaged.
    pub fn assign(&mut self, slot: Slot, host: u8) -> Result<(), Damaged> {
        let held = self.segment.holder(slot)?;
        self.segment.change_holder(slot, held, Hold::Owned, host);
        Ok(())
    }

    /// Looks who owns what, after [`Host::assign`].
    ///
    /// # Errors
    ///
    /// If the segment is damaged.
    pub fn assigned(&mut self) -> Result<(), Damaged> {
        self.look_at_owners()
    }

    /// A client begins a transaction.
    pub fn begin(&mut self, id: TxnId, is_read_only: bool) {
        let epoch = self.epochs.enter(&self.segment);
        self.txns.insert(id, Txn::new(id, is_read_only, epoch));
    }

    /// A client asks for something; the transaction has begun, and has been answered before.
    ///
    /// # Panics
    ///
    /// If it is not there, or waits for an answer.
    pub fn request(&mut self, id: TxnId, request: Request) {
        let txn = self.txns.get_mut(&id).expect("a transaction begins first");
        assert!(matches!(txn.at, At::Idle), "one request at a time");
        txn.take(request);
    }

    /// A message from another host.
    ///
    /// # Errors
    ///
    /// If the segment is damaged.
    pub fn handle(&mut self, from: u8, message: Message) -> Result<(), Damaged> {
        match message {
            Message::MoveIn { ask, keys } => self.asked_to_move_in(from, ask, keys),
            Message::ReadOld { ask, key, s, newest } => self.asked_for_old(from, ask, key, s, newest),
            Message::MovedIn { ask, nodes } => self.told_nodes(ask, nodes)?,
            Message::OldRead { ask, value } => self.told_old(ask, value)?,
            Message::TakenOver { host } => self.told_of_takeover(host)?,
        }
        Ok(())
    }

    /// The tasks that have a step to do now. A task that polls is always among them.
    pub fn tasks(&self) -> Vec<Task> {
        let mut tasks = Vec::new();
        for (id, txn) in &self.txns {
            let task = Task::Transaction(*id);
            if self.may_step(txn) && (!txn.at.needs_lock() || self.may_lock(task)) {
                tasks.push(task);
            }
        }
        for (number, job) in &self.jobs {
            let task = Task::Job(*number);
            if job.ticket().is_none_or(|ticket| self.woken.contains(&ticket)) && (!job.needs_lock() || self.may_lock(task)) {
                tasks.push(task);
            }
        }
        if self.lock.is_none() {
            tasks.extend([Task::Follow, Task::Promise]);
        }
        tasks.push(Task::Tidy);
        if let Some(leader) = &self.leader {
            leader.tasks(&self.segment, &mut tasks);
        }
        tasks
    }

    /// Whether a transaction has a step to do: a worker that runs it asks before it waits.
    pub fn can_step(&self, id: TxnId) -> bool {
        let task = Task::Transaction(id);
        self.txns.get(&id).is_some_and(|txn| self.may_step(txn) && (!txn.at.needs_lock() || self.may_lock(task)))
    }

    /// Whether it only looks again whether something has ended.
    pub fn polls(&self, id: TxnId) -> bool {
        self.txns.get(&id).is_some_and(|txn| matches!(txn.wait, Some(Wait::Claim(_) | Wait::Poll)))
    }

    fn may_step(&self, txn: &Txn) -> bool {
        match &txn.wait {
            Some(Wait::Ticket(ticket)) => self.woken.contains(ticket),
            Some(Wait::Answers(_)) => false,
            Some(Wait::Durable) => txn.is_durable,
            Some(Wait::Claim(_) | Wait::Poll) => true,
            None => !matches!(txn.at, At::Idle),
        }
    }
    pub(crate) fn may_lock(&self, task: Task) -> bool {
        self.lock.is_none() || self.lock == Some(task)
    }

    /// Does the next step of a task: one operation on shared memory, or work on what is its own.
    /// `physical_micros` is the host's physical clock.
    ///
    /// # Errors
    ///
    /// If shared memory holds what no host writes: the generation is over.
    pub fn step(&mut self, task: Task, physical_micros: u64) -> Result<(), Damaged> {
        self.physical = physical_micros;
        match task {
            Task::Transaction(id) => self.step_transaction(id),
            Task::Job(number) => self.step_job(number),
            Task::Follow => self.follow(),
            Task::Tidy => self.tidy(),
            Task::Promise => self.promise(),
            Task::Take(host) => self.take(host),
            Task::Propose => self.propose(),
            Task::Publish => self.publish(),
            Task::TakeOver(host, part) => self.take_over(host, part),
        }
    }

    /// Runs a transaction's steps back to back until it ends or has to wait.
    ///
    /// # Errors
    ///
    /// As [`Host::step`].
    pub fn run(&mut self, id: TxnId, physical_micros: u64) -> Result<(), Damaged> {
        self.physical = physical_micros;
        let task = Task::Transaction(id);
        let Some(mut txn) = self.txns.remove(&id) else { return Ok(()) };
        while self.may_step(&txn) && (!txn.at.needs_lock() || self.may_lock(task)) {
            let polled = matches!(txn.wait, Some(Wait::Claim(_) | Wait::Poll));
            self.step_of(id, &mut txn)?;
            if matches!(txn.at, At::Over(_)) || polled && matches!(txn.wait, Some(Wait::Claim(_) | Wait::Poll)) {
                break;
            }
        }
        self.put_back(id, txn)
    }

    /// Steps of all jobs back to back, until they are done, or wait.
    ///
    /// # Errors
    ///
    /// As [`Host::step`].
    pub fn run_jobs(&mut self, physical_micros: u64) -> Result<(), Damaged> {
        self.physical = physical_micros;
        let numbers: Vec<u64> = self.jobs.keys().copied().collect();
        for number in numbers {
            while let Some(job) = self.jobs.get(&number) {
                let waits = job.ticket().is_some_and(|ticket| !self.woken.contains(&ticket));
                if waits || job.needs_lock() && !self.may_lock(Task::Job(number)) {
                    break;
                }
                let polls = matches!(job, Job::Old { .. });
                self.step_job(number)?;
                if polls {
                    break;
                }
            }
        }
        Ok(())
    }

    /// The housekeeping of [`Task::Tidy`], all of it at once.
    ///
    /// # Errors
    ///
    /// As [`Host::step`].
    pub fn tidy_up(&mut self) -> Result<(), Damaged> {
        for _ in 0..5 {
            self.tidy()?;
        }
        while self.allocator.reclaim(&self.segment)? {}
        Ok(())
    }

    fn step_transaction(&mut self, id: TxnId) -> Result<(), Damaged> {
        let Some(mut txn) = self.txns.remove(&id) else { return Ok(()) };
        self.step_of(id, &mut txn)?;
        self.put_back(id, txn)
    }

    fn step_of(&mut self, id: TxnId, txn: &mut Txn) -> Result<(), Damaged> {
        match txn.wait.take() {
            Some(Wait::Claim(claim)) if !self.segment.has_ended(claim)? => txn.wait = Some(Wait::Claim(claim)),
            Some(Wait::Claim(_)) => {}
            Some(wait @ Wait::Answers(_)) => txn.wait = Some(wait),
            Some(Wait::Ticket(ticket)) => {
                self.woken.remove(&ticket);
                self.advance(id, txn)?;
            }
            Some(Wait::Poll | Wait::Durable) | None => self.advance(id, txn)?,
        }
        Ok(())
    }

    fn put_back(&mut self, id: TxnId, mut txn: Txn) -> Result<(), Damaged> {
        if let At::Over(answer) = &mut txn.at {
            let answer = answer.take();
            self.end(id, txn, answer)?;
        } else {
            self.txns.insert(id, txn);
        }
        Ok(())
    }

    fn advance(&mut self, id: TxnId, txn: &mut Txn) -> Result<(), Damaged> {
        if matches!(txn.at, At::Over(_)) {
            return Ok(());
        }
        if txn.at.is_reading() { self.step_read(id, txn) } else { self.step_commit(id, txn) }
    }

    fn end(&mut self, id: TxnId, txn: Txn, answer: Option<Answer>) -> Result<(), Damaged> {
        self.epochs.leave(txn.epoch);
        let bodies = txn.bodies.values().filter_map(|body| match body {
            Body::At(at) => Some(*at),
            Body::Absent => None,
        });
        for at in bodies.chain(txn.new_nodes.values().map(|(at, _)| *at)) {
            self.allocator.give_back(&self.segment, at);
        }
        self.asks.retain(|_, asker| *asker != id);
        if let Some(answer) = answer {
            self.actions.push(Action::Answer(id, answer));
        }
        Ok(())
    }

    /// Releases the host's lock.
    pub(crate) fn unlock(&mut self) {
        self.lock = None;
    }
}

fn clock_of<M: Memory + Clone + Send + Sync + 'static>(segment: &Segment<M>, config: &Config) -> Clock {
    Clock::shared(Arc::new(SegmentClock(segment.clone())), config.max_offset)
}
