//! The commit at a host (`docs/design/pod.md`).
//!
//! ```text
//!  bodies     of the shared tuples that it writes, flushed
//!  shared     locks them (`pod::Commit`)
//!  host lock  looks where the own keys are now (P6), certifies them, draws
//!             publishes the timestamp, validates the shared reads (P8)
//!             writes the record, stores the ring's tail: decided
//!  no lock    until the log has it and it is applied here
//!  shared     newest, body, release; the client is answered
//! ```
//!
//! A transaction that has touched no shared tuple does the middle part alone. A transaction
//! that waits for another one in flight at its host releases its shared locks first.

use crate::host::{Host, Task};
use crate::message::Answer;
use crate::rows::Rows;
use crate::txn::{At, Then, Txn, Wait};
use bytes::Bytes;
use meridian_base::record::{Committed, Payload, Record};
use meridian_base::{
    ColumnMask, CommitOutcome, CommitRequest, GlobalReads, Key, Mutation, ReadEntry, SchemaUse, Target, Timestamp, TxnId, Write,
};
use meridian_pod::memory::Memory;
use meridian_pod::{
    Area, Body, BodyWrite, Commit, Damaged, Entry, Insert, Inserted, Logged, NewTuple, NoRoom, Node, PLACES_MAX, Progress,
    Refill, SharedRead, SharedWrite, Slot, body_bytes, lines_of, node_bytes,
};
use meridian_region::{Certified, NotReady, Ticket};
use std::collections::BTreeSet;

/// How often a transaction looks for memory before it gives up what it keeps from being used again.
const TRIES_MAX: u32 = 64;

/// What came of certifying the own part.
enum Part {
    Drawn(Timestamp, Vec<Write>),
    Wait(Ticket),
    Over(Answer),
}

impl<M: Memory + Clone + Send + Sync + 'static, R: Rows> Host<M, R> {
    pub(crate) fn step_commit(&mut self, id: TxnId, txn: &mut Txn) -> Result<(), Damaged> {
        match std::mem::replace(&mut txn.at, At::Idle) {
            At::Bodies => self.make_bodies(txn),
            At::Refill(key, refill) => self.refill(txn, refill, |refill| At::Refill(key, refill))?,
            At::Body(key, mut write) => match write.step(&self.segment) {
                None => txn.at = At::Body(key, write),
                Some(body) => {
                    txn.bodies.insert(key, body);
                    txn.at = At::Bodies;
                }
            },
            At::Own => self.certify_own(id, txn),
            At::OwnWrite(at, writes) => self.write_own(id, txn, at, writes)?,
            At::OwnPublish => {
                self.ring.publish(&self.segment);
                self.engine.appended(txn.p);
                self.unlock();
                (txn.at, txn.wait) = (At::InFlight, Some(Wait::Durable));
            }
            At::InFlight => txn.is_over(Answer::Committed(txn.p)),
            At::Commit(commit) => self.step_shared(id, txn, commit)?,
            At::RefillNode(key, refill) => self.refill(txn, refill, |refill| At::RefillNode(key, refill))?,
            At::Link(mut commit, key, node, mut insert) => match insert.step(&self.segment)? {
                Inserted::More | Inserted::Linked => txn.at = At::Link(commit, key, node, insert),
                Inserted::Done => {
                    // Whatever becomes of the commit, the tuple is there now.
                    txn.new_keys.remove(&key);
                    txn.new_nodes.remove(&key);
                    txn.places.insert(key, node);
                    commit.linked(None);
                    txn.at = At::Commit(commit);
                }
                Inserted::Exists(there) => {
                    if let Some((at, _)) = txn.new_nodes.remove(&key) {
                        self.allocator.give_back(&self.segment, at);
                    }
                    txn.new_keys.remove(&key);
                    txn.places.insert(key, there);
                    commit.linked(Some(there));
                    txn.at = At::Commit(commit);
                }
            },
            At::Certify(commit) => self.certify_shared(id, txn, commit),
            other => unreachable!("{other:?} is no part of a commit"),
        }
        Ok(())
    }

    fn place(&self, txn: &Txn, key: &Key) -> Option<Node> {
        if self.is_own(key) { self.home.get(key).copied() } else { txn.places.get(key).copied() }
    }

    /// Whether it writes or has read a tuple that is shared now.
    fn is_shared(&self, txn: &Txn) -> bool {
        let is = |key: &Key| !self.is_own(key) || self.home.contains_key(key);
        txn.writes.iter().any(|write| is(&write.key)) || txn.seen.iter().any(|seen| is(&seen.key))
    }

    /// Looks for blocks; without any, tries again later, a few times.
    fn refill(&mut self, txn: &mut Txn, mut refill: Refill, more: impl FnOnce(Refill) -> At) -> Result<(), Damaged> {
        match refill.step(&self.segment, &mut self.allocator)? {
            None => txn.at = more(refill),
            Some(true) => txn.at = At::Bodies,
            Some(false) => {
                self.wants_memory = true;
                txn.tries += 1;
                (txn.at, txn.wait) = (At::Bodies, Some(Wait::Poll));
                if txn.tries > TRIES_MAX {
                    txn.is_over(Answer::Conflict);
                }
            }
        }
        Ok(())
    }

    /// The block of a tuple that will be new.
    fn make_node(&mut self, txn: &mut Txn, key: Key) -> At {
        let height = self.height(txn.id.hlc.0, txn.new_nodes.len());
        let lines = lines_of(node_bytes(key.as_bytes().len(), height));
        match self.allocator.allocate(Area::Nodes, lines) {
            None => At::RefillNode(key, Refill::new(&self.segment, &self.allocator, Area::Nodes, lines)),
            Some(at) => {
                txn.new_nodes.insert(key, (at, height));
                At::Bodies
            }
        }
    }

    /// The next body that is missing; then the commit begins.
    fn make_bodies(&mut self, txn: &mut Txn) {
        for write in &txn.writes {
            let key = &write.key;
            let is_new = txn.new_keys.contains(key);
            if self.place(txn, key).is_none() && !is_new {
                if self.is_own(key) {
                    continue;
                }
                txn.at = At::Locate(0);
                return;
            }
            if is_new && !txn.new_nodes.contains_key(key) {
                let key = key.clone();
                txn.at = self.make_node(txn, key);
                return;
            }
            if txn.bodies.contains_key(key) {
                continue;
            }
            let Some(value) = &write.value else {
                txn.bodies.insert(key.clone(), Body::Absent);
                continue;
            };
            let lines = lines_of(body_bytes(value.len()));
            txn.at = match self.allocator.allocate(Area::Bodies, lines) {
                Some(at) => At::Body(key.clone(), BodyWrite::new(at, value.clone(), self.config.rules)),
                None => At::Refill(key.clone(), Refill::new(&self.segment, &self.allocator, Area::Bodies, lines)),
            };
            return;
        }
        if !self.is_shared(txn) {
            txn.at = At::Own;
            return;
        }
        let needed = txn.writes.len().div_ceil(PLACES_MAX).max(1);
        if self.descriptors.len() < needed {
            (txn.at, txn.wait) = (At::Bodies, Some(Wait::Poll));
            return;
        }
        let descriptors = self.descriptors.split_off(self.descriptors.len() - needed);
        let shared = |write: &Write| {
            let new = txn.new_nodes.get(&write.key).and_then(|(at, _)| self.segment.node_at(*at).ok());
            let node = self.place(txn, &write.key).or(new)?;
            Some(SharedWrite { node, body: txn.bodies[&write.key], columns: write.columns, is_new: new == Some(node) })
        };
        let writes = txn.writes.iter().filter_map(shared).collect();
        let foreign = txn.seen.iter().filter(|seen| !self.is_own(&seen.key));
        let reads = foreign.filter_map(|seen| Some(SharedRead { node: seen.node?, until: seen.until, columns: seen.columns }));
        txn.at = At::Commit(Box::new(Commit::new(self.config.host, descriptors, writes, reads.collect(), self.config.rules)));
    }

    /// Under the host's lock: certifies, and draws.
    fn certify_part(&mut self, id: TxnId, reads: Vec<ReadEntry>, writes: Vec<Mutation>) -> Part {
        if let Some(at) = self.state.outcome(id) {
            return Part::Over(Answer::Committed(at));
        }
        let schema = SchemaUse { version: self.state.grant().version, ..SchemaUse::default() };
        let global = GlobalReads::default();
        let request = CommitRequest { id, reads, writes, min_commit: Timestamp::MIN, schema, global };
        match self.engine.certify_part(&self.state, &self.rows, &request, &self.clock, self.physical) {
            Certified::Append { at, writes } => Part::Drawn(at, writes),
            Certified::Done(CommitOutcome::Committed(at)) => Part::Drawn(at, Vec::new()),
            Certified::Wait(ticket) | Certified::NotReady(NotReady::NeedLease(ticket)) => Part::Wait(ticket),
            Certified::Done(_) | Certified::Refuse(_) | Certified::RecheckGlobal | Certified::NotReady(NotReady::NotPrimary) => {
                Part::Over(Answer::Conflict)
            }
        }
    }

    fn certify_own(&mut self, id: TxnId, txn: &mut Txn) {
        if self.is_shared(txn) && self.config.rules.rechecks_places() {
            txn.at = At::Bodies;
            return;
        }
        let reads = txn.seen.iter().map(read_entry).collect();
        let writes = txn.writes.iter().cloned().map(Mutation::from).collect();
        match self.certify_part(id, reads, writes) {
            Part::Drawn(at, _) if txn.writes.is_empty() => txn.is_over(Answer::Committed(at)),
            Part::Drawn(at, writes) => {
                self.lock = Some(Task::Transaction(id));
                txn.p = at;
                txn.at = At::OwnWrite(at, writes);
            }
            Part::Wait(ticket) => (txn.at, txn.wait) = (At::Own, Some(Wait::Ticket(ticket))),
            Part::Over(answer) => txn.is_over(answer),
        }
    }

    fn entry(&self, id: TxnId, txn: &mut Txn) -> Entry {
        let slots: BTreeSet<Slot> = txn.writes.iter().map(|write| self.slot(&write.key)).collect();
        let committed = Committed { id, at: txn.p, writes: std::mem::take(&mut txn.writes) };
        let body;
        (body, txn.writes) = encode(committed);
        Entry::Transaction(Logged { id, at: txn.p, slots: slots.into_iter().collect(), body })
    }

    fn write_own(&mut self, id: TxnId, txn: &mut Txn, at: Timestamp, writes: Vec<Write>) -> Result<(), Damaged> {
        let entry = self.entry(id, txn);
        match self.ring.write(&self.segment, &entry) {
            Ok(_) => {
                self.engine.push(id, at, &writes);
                txn.at = At::OwnPublish;
            }
            Err(NoRoom::Now) => {
                self.unlock();
                self.ring.reclaim(&self.segment)?;
                (txn.at, txn.wait) = (At::Own, Some(Wait::Poll));
            }
            Err(NoRoom::Ever) => {
                self.unlock();
                txn.is_over(Answer::Conflict);
            }
        }
        Ok(())
    }

    fn step_shared(&mut self, id: TxnId, txn: &mut Txn, mut commit: Box<Commit>) -> Result<(), Damaged> {
        if std::mem::take(&mut txn.is_durable) {
            commit.durable();
        }
        match commit.step(&self.segment)? {
            Progress::More => txn.at = At::Commit(commit),
            Progress::Certify => txn.at = At::Certify(commit),
            Progress::Busy(claim) => {
                self.is_released(id, &commit);
                (txn.at, txn.wait) = (At::Bodies, Some(Wait::Claim(claim)));
            }
            Progress::Gone(node) => {
                self.is_released(id, &commit);
                txn.places.retain(|_, place| *place != node);
                txn.at = At::Locate(0);
            }
            Progress::Link(i, claim) => {
                let write = commit.writes()[i];
                let of = |(_, (at, _)): &(&Key, &(u64, u8))| *at == write.node.place();
                let (key, (at, height)) = txn.new_nodes.iter().find(of).expect("it has made the block");
                let tuple = NewTuple {
                    key: Bytes::copy_from_slice(key.as_bytes()),
                    slot: self.slot(key),
                    newest: Timestamp::MIN,
                    columns: ColumnMask::ALL,
                    body: Body::Absent,
                    written_at: self.config.host,
                    lock: Some(claim),
                    pending: Some(write.body),
                };
                let node = tuple.write(&self.segment, *at, *height);
                let insert = Insert::new(node, tuple.key, *height);
                txn.at = At::Link(commit, key.clone(), node, insert);
            }
            Progress::Valid if txn.writes.is_empty() => {
                self.give_up(txn, commit, Then::Answer(Answer::Committed(txn.p)));
            }
            Progress::Valid => {
                let entry = self.entry(id, txn);
                match self.ring.write(&self.segment, &entry) {
                    Ok(place) => {
                        commit.written(place);
                        if !txn.own_part.is_empty() {
                            self.engine.push(id, txn.p, &txn.own_part);
                        }
                        txn.at = At::Commit(commit);
                    }
                    Err(NoRoom::Now) => {
                        self.ring.reclaim(&self.segment)?;
                        self.give_up(txn, commit, Then::Again(Some(Wait::Poll)));
                    }
                    Err(NoRoom::Ever) => self.give_up(txn, commit, Then::Answer(Answer::Conflict)),
                }
            }
            Progress::Push => {
                self.ring.publish(&self.segment);
                commit.pushed();
                self.engine.appended(txn.p);
                self.unlock();
                txn.at = At::Commit(commit);
            }
            Progress::InFlight => (txn.at, txn.wait) = (At::Commit(commit), Some(Wait::Durable)),
            Progress::Conflict(_) => {
                self.is_released(id, &commit);
                txn.is_over(Answer::Conflict);
            }
            Progress::GivenUp => {
                self.is_released(id, &commit);
                match txn.then.take() {
                    Some(Then::Answer(answer)) => txn.is_over(answer),
                    Some(Then::Again(wait)) => (txn.at, txn.wait) = (At::Bodies, wait),
                    None => unreachable!("who gives up knows why"),
                }
            }
            Progress::Finished => {
                self.is_released(id, &commit);
                let published: BTreeSet<Body> = commit.writes().iter().map(|write| write.body).collect();
                txn.bodies.retain(|_, body| !published.contains(body));
                for body in commit.replaced() {
                    if let Body::At(at) = body {
                        self.allocator.retire(&self.segment, *at)?;
                    }
                }
                txn.is_over(Answer::Committed(txn.p));
            }
        }
        Ok(())
    }

    fn give_up(&mut self, txn: &mut Txn, mut commit: Box<Commit>, then: Then) {
        commit.give_up();
        txn.then = Some(then);
        txn.at = At::Commit(commit);
    }

    /// A commit has no locks any more: its descriptors are free, and the host's lock, if it had it.
    fn is_released(&mut self, id: TxnId, commit: &Commit) {
        self.descriptors.extend(commit.descriptors());
        if self.lock == Some(Task::Transaction(id)) {
            self.unlock();
        }
    }

    /// Under the host's lock, which it keeps if it passes.
    fn certify_shared(&mut self, id: TxnId, txn: &mut Txn, mut commit: Box<Commit>) {
        let rechecks = self.config.rules.rechecks_places();
        let mut writes = Vec::new();
        for write in txn.writes.iter().filter(|write| self.is_own(&write.key)) {
            match self.home.get(&write.key) {
                Some(node) if commit.writes().iter().any(|locked| locked.node == *node) => {}
                // It has become shared: it is locked like the others before the draw.
                Some(_) if rechecks => return self.give_up(txn, commit, Then::Again(None)),
                _ => writes.push(Mutation::from(write.clone())),
            }
        }
        let mut reads = Vec::new();
        for seen in txn.seen.iter().filter(|seen| self.is_own(&seen.key)) {
            let node = if rechecks { self.home.get(&seen.key).copied() } else { seen.node };
            match node {
                Some(node) => commit.also_read(SharedRead { node, until: seen.until, columns: seen.columns }),
                None => reads.push(read_entry(seen)),
            }
        }
        match self.certify_part(id, reads, writes) {
            Part::Drawn(at, writes) => {
                self.lock = Some(Task::Transaction(id));
                (txn.p, txn.own_part) = (at, writes);
                commit.drawn(at);
                txn.at = At::Commit(commit);
            }
            Part::Wait(ticket) => self.give_up(txn, commit, Then::Again(Some(Wait::Ticket(ticket)))),
            Part::Over(answer) => self.give_up(txn, commit, Then::Answer(answer)),
        }
    }
}

fn read_entry(seen: &crate::txn::Seen) -> ReadEntry {
    ReadEntry { target: Target::Key(seen.key.clone()), columns: seen.columns, until: seen.until }
}

/// A transaction as its ring and the log have it; and its writes again.
fn encode(txn: Committed) -> (Bytes, Vec<Write>) {
    let records = vec![Record::Batch(vec![txn])];
    let mut payload = Payload { closed: Timestamp::MIN, watermark: Timestamp::MIN, records };
    let bytes = payload.encode();
    match payload.records.pop() {
        Some(Record::Batch(mut txns)) => (bytes, txns.pop().map(|txn| txn.writes).unwrap_or_default()),
        _ => unreachable!("it is a batch"),
    }
}

/// The reverse.
pub(crate) fn decode(body: Bytes) -> Result<Committed, Damaged> {
    let payload = Payload::decode(body).map_err(|error| Damaged(format!("a record of a ring: {error}")))?;
    match payload.records.into_iter().next() {
        Some(Record::Batch(mut txns)) if txns.len() == 1 => Ok(txns.remove(0)),
        other => Err(Damaged(format!("a record of a ring holds {other:?}"))),
    }
}
