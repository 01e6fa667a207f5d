//! Own keys become shared tuples and come home again.
//!
//! *In*: asked by message, under the host's lock, the owner looks that nothing on the key is in
//! flight (P12) or reserved (P13), copies what its rows have, and links the tuple; an absent key
//! becomes an absent tuple. *Out*: over the budget, or for want of memory, a tuple that was not
//! used since it was last looked at is locked (P14) and leaves if the own rows have its newest
//! version (P15).

use crate::host::{Host, Task};
use crate::message::Message;
use crate::rows::Rows;
use bytes::Bytes;
use meridian_base::{ColumnMask, Key, Timestamp};
use meridian_pod::memory::Memory;
use meridian_pod::{
    Area, Body, BodyWrite, Damaged, Insert, Inserted, MoveOut, Moved, NewTuple, Node, Refill, body_bytes, height_of, lines_of,
    node_bytes,
};
use meridian_region::Ticket;

/// Work on tuples that this host owns.
#[derive(Debug)]
pub(crate) enum Job {
    In(Box<In>),
    Out(Box<Out>),
    Old { from: u8, ask: u64, key: Key, s: Timestamp, newest: Timestamp },
}

impl Job {
    pub fn ticket(&self) -> Option<Ticket> {
        match self {
            Job::In(job) => job.ticket,
            Job::Out(_) | Job::Old { .. } => None,
        }
    }
    pub fn needs_lock(&self) -> bool {
        match self {
            Job::In(job) => matches!(job.at, InAt::Look),
            Job::Out(_) => true,
            Job::Old { .. } => false,
        }
    }
    pub fn has_lock(&self) -> bool {
        match self {
            Job::In(job) => job.epoch.is_some(),
            Job::Out(job) => job.epoch.is_some(),
            Job::Old { .. } => false,
        }
    }
    pub fn asker(&self) -> Option<u8> {
        match self {
            Job::In(job) => Some(job.from),
            Job::Out(_) => None,
            Job::Old { from, .. } => Some(*from),
        }
    }
}

#[derive(Debug)]
pub(crate) struct In {
    from: u8,
    ask: u64,
    keys: Vec<Key>,
    nodes: Vec<Option<Node>>,
    ticket: Option<Ticket>,
    /// While it has the host's lock, for the key after those in `nodes`.
    epoch: Option<u64>,
    tuple: Option<NewTuple>,
    at: InAt,
}

#[derive(Debug)]
enum InAt {
    Look,
    /// The body of this many lines, for these bytes.
    Body(Bytes),
    RefillBody(Bytes, Refill),
    Write(BodyWrite),
    Node(u8),
    RefillNode(u8, Refill),
    Insert(Node, Insert),
}

#[derive(Debug)]
pub(crate) struct Out {
    key: Key,
    node: Node,
    newest: Timestamp,
    machine: MoveOut,
    epoch: Option<u64>,
}

impl<M: Memory + Clone + Send + Sync + 'static, R: Rows> Host<M, R> {
    pub(crate) fn asked_to_move_in(&mut self, from: u8, ask: u64, keys: Vec<Key>) {
        let number = self.number_next();
        let (nodes, at) = (Vec::new(), InAt::Look);
        self.jobs.insert(number, Job::In(Box::new(In { from, ask, keys, nodes, ticket: None, epoch: None, tuple: None, at })));
    }

    pub(crate) fn asked_for_old(&mut self, from: u8, ask: u64, key: Key, s: Timestamp, newest: Timestamp) {
        let number = self.number_next();
        self.jobs.insert(number, Job::Old { from, ask, key, s, newest });
    }

    pub(crate) fn step_job(&mut self, number: u64) -> Result<(), Damaged> {
        let Some(job) = self.jobs.remove(&number) else { return Ok(()) };
        let goes_on = match job {
            Job::In(mut job) => self.step_in(number, &mut job)?.then_some(Job::In(job)),
            Job::Out(mut job) => self.step_out(number, &mut job)?.then_some(Job::Out(job)),
            Job::Old { from, ask, key, s, newest } => {
                let has = self.rows_have(&key, newest) || !self.config.rules.old_versions_are_applied();
                if !self.is_own(&key) {
                    self.send(from, Message::OldRead { ask, value: None });
                    None
                } else if has {
                    let value = self.rows.get(&key, s).and_then(|version| version.value);
                    self.send(from, Message::OldRead { ask, value: Some(value) });
                    None
                } else {
                    Some(Job::Old { from, ask, key, s, newest })
                }
            }
        };
        if let Some(job) = goes_on {
            self.jobs.insert(number, job);
        }
        Ok(())
    }

    /// Whether it goes on.
    fn step_in(&mut self, number: u64, job: &mut In) -> Result<bool, Damaged> {
        if let Some(ticket) = job.ticket.take() {
            self.woken.remove(&ticket);
        }
        job.at = match std::mem::replace(&mut job.at, InAt::Look) {
            InAt::Look => {
                let Some(key) = job.keys.get(job.nodes.len()).cloned() else {
                    let nodes = std::mem::take(&mut job.nodes);
                    self.send(job.from, Message::MovedIn { ask: job.ask, nodes });
                    return Ok(false);
                };
                self.look(number, job, &key)
            }
            InAt::Body(value) => {
                let lines = lines_of(body_bytes(value.len()));
                match self.allocator.allocate(Area::Bodies, lines) {
                    Some(at) => InAt::Write(BodyWrite::new(at, value, self.config.rules)),
                    None => InAt::RefillBody(value, Refill::new(&self.segment, &self.allocator, Area::Bodies, lines)),
                }
            }
            InAt::RefillBody(value, mut refill) => match refill.step(&self.segment, &mut self.allocator)? {
                None => InAt::RefillBody(value, refill),
                Some(true) => InAt::Body(value),
                Some(false) => self.no_memory(job),
            },
            InAt::Write(mut write) => match write.step(&self.segment) {
                None => InAt::Write(write),
                Some(body) => {
                    job.tuple.as_mut().expect("the tuple is begun").body = body;
                    InAt::Node(self.height(number, job.nodes.len()))
                }
            },
            InAt::Node(height) => {
                let tuple = job.tuple.as_ref().expect("the tuple is begun");
                let lines = lines_of(node_bytes(tuple.key.len(), height));
                match self.allocator.allocate(Area::Nodes, lines) {
                    Some(at) => {
                        let node = tuple.write(&self.segment, at, height);
                        InAt::Insert(node, Insert::new(node, tuple.key.clone(), height))
                    }
                    None => InAt::RefillNode(height, Refill::new(&self.segment, &self.allocator, Area::Nodes, lines)),
                }
            }
            InAt::RefillNode(height, mut refill) => match refill.step(&self.segment, &mut self.allocator)? {
                None => InAt::RefillNode(height, refill),
                Some(true) => InAt::Node(height),
                Some(false) => self.no_memory(job),
            },
            InAt::Insert(node, mut insert) => match insert.step(&self.segment)? {
                Inserted::More => InAt::Insert(node, insert),
                Inserted::Linked => {
                    let key = job.keys[job.nodes.len()].clone();
                    self.home.insert(key.clone(), node);
                    self.hand.push_back(key);
                    self.counts.moved_in += 1;
                    InAt::Insert(node, insert)
                }
                Inserted::Done => {
                    job.nodes.push(Some(node));
                    self.is_in(job)
                }
                Inserted::Exists(there) => return Err(Damaged(format!("{there:?} is shared and not known to its owner"))),
            },
        };
        Ok(true)
    }

    fn look(&mut self, number: u64, job: &mut In, key: &Key) -> InAt {
        if !self.is_own(key) {
            job.nodes.push(None);
        } else if let Some(node) = self.home.get(key) {
            job.nodes.push(Some(*node));
        } else {
            match self.engine.may_be_shared(key) {
                Err(ticket) if self.config.rules.moves_in_at_rest() => job.ticket = Some(ticket),
                _ => {
                    self.lock = Some(Task::Job(number));
                    job.epoch = Some(self.epochs.enter(&self.segment));
                    let version = self.rows.get(key, Timestamp::MAX);
                    job.tuple = Some(NewTuple {
                        key: Bytes::copy_from_slice(key.as_bytes()),
                        slot: self.slot(key),
                        newest: version.as_ref().map_or(Timestamp::MIN, |version| version.at),
                        columns: version.as_ref().map_or(ColumnMask::ALL, |version| version.columns),
                        body: Body::Absent,
                        written_at: self.config.host,
                        lock: None,
                        pending: None,
                    });
                    return match version.and_then(|version| version.value) {
                        Some(value) => InAt::Body(value),
                        None => InAt::Node(self.height(number, job.nodes.len())),
                    };
                }
            }
        }
        InAt::Look
    }

    pub(crate) fn height(&self, number: u64, of: usize) -> u8 {
        // Mixed, so that heights are spread as random ones are.
        let mixed = (number << 16 | of as u64 | u64::from(self.config.host) << 56).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        height_of((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 7)
    }

    fn is_in(&mut self, job: &mut In) -> InAt {
        if let Some(epoch) = job.epoch.take() {
            self.epochs.leave(epoch);
        }
        job.tuple = None;
        self.unlock();
        InAt::Look
    }

    /// Something has to move out first.
    fn no_memory(&mut self, job: &mut In) -> InAt {
        if let Some(NewTuple { body: Body::At(at), .. }) = &job.tuple {
            self.allocator.give_back(&self.segment, *at);
        }
        self.wants_memory = true;
        self.is_in(job)
    }

    /// Looks at one more tuple, if there are too many.
    pub(crate) fn look_for_outs(&mut self) {
        let is_over = self.wants_memory || self.home.len() > self.config.tuples_max;
        if !is_over || !self.has_move_descriptor {
            return;
        }
        let Some(key) = self.hand.pop_front() else { return };
        let Some(node) = self.home.get(&key).copied() else { return };
        if node.take_chance(&self.segment) {
            self.hand.push_back(key);
            return;
        }
        self.wants_memory = false;
        self.begin_move_out(&key);
    }

    /// Starts to move an own key out of shared memory, unless it is locked. Returns whether it has
    /// started.
    pub fn begin_move_out(&mut self, key: &Key) -> bool {
        let Some(node) = self.home.get(key).copied().filter(|_| self.has_move_descriptor) else { return false };
        self.has_move_descriptor = false;
        let number = self.number_next();
        let machine = MoveOut::new(self.config.host, 0, node, self.config.rules);
        self.jobs
            .insert(number, Job::Out(Box::new(Out { key: key.clone(), node, newest: Timestamp::MIN, machine, epoch: None })));
        true
    }

    fn step_out(&mut self, number: u64, job: &mut Out) -> Result<bool, Damaged> {
        if job.epoch.is_none() {
            self.lock = Some(Task::Job(number));
            job.epoch = Some(self.epochs.enter(&self.segment));
        }
        match job.machine.step(&self.segment)? {
            Moved::More => return Ok(true),
            Moved::Check(newest) => {
                job.newest = newest;
                job.machine.go(self.rows_have(&job.key, newest) || !self.config.rules.moves_out_applied());
                return Ok(true);
            }
            Moved::Stays => self.hand.push_back(job.key.clone()),
            Moved::Out(_, body) => {
                self.allocator.retire(&self.segment, job.node.place())?;
                if let Body::At(at) = body {
                    self.allocator.retire(&self.segment, at)?;
                }
                self.home.remove(&job.key);
                if job.newest != Timestamp::MIN {
                    self.engine.came_home(&job.key, job.newest);
                }
                self.counts.moved_out += 1;
            }
        }
        if let Some(epoch) = job.epoch.take() {
            self.epochs.leave(epoch);
        }
        self.has_move_descriptor = true;
        self.unlock();
        Ok(false)
    }
}
