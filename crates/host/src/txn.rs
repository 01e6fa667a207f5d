//! A transaction at its host, and where it is.

use crate::message::{Answer, Request};
use bytes::Bytes;
use meridian_base::{ColumnMask, Key, Timestamp, TxnId, Write};
use meridian_pod::{Body, BodyRead, BodyWrite, Claim, Commit, Find, Insert, Node, Read, Refill};
use meridian_region::Ticket;
use std::collections::{BTreeMap, BTreeSet};

/// What was read of a key.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub key: Key,
    pub columns: ColumnMask,
    /// What was read was the newest version at or below this.
    pub until: Timestamp,
    /// It was read through this tuple; for an own key, it was shared then.
    pub node: Option<Node>,
}

/// Where a transaction is.
#[derive(Debug)]
pub(crate) enum At {
    /// Its client has the next word.
    Idle,
    /// Looks where the keys of the request are, from this one on.
    Locate(usize),
    /// A tuple that was found by an earlier transaction: whether it is the same one still.
    Known(usize, Node, u32),
    Find(usize, Find),
    /// All keys are here: reads them, or begins the commit.
    Located,
    /// Reads this key.
    Read(usize),
    Words(usize, Node, Read),
    Bytes(usize, Node, Timestamp, BodyRead),
    /// The version is older than the newest, which the own rows do not have yet.
    Old(usize, Timestamp),
    /// Makes the bodies of shared writes.
    Bodies,
    Refill(Key, Refill),
    Body(Key, BodyWrite),
    /// Without shared tuples: certifies, under the host's lock.
    Own,
    OwnWrite(Timestamp, Vec<Write>),
    OwnPublish,
    Commit(Box<Commit>),
    /// Makes the block of a new tuple.
    RefillNode(Key, Refill),
    /// Links a new tuple, which this write of the commit is about.
    Link(Box<Commit>, Key, Node, Insert),
    /// Has the shared locks: certifies the rest, under the host's lock.
    Certify(Box<Commit>),
    /// In the ring.
    InFlight,
    /// With the answer.
    Over(Option<Answer>),
}

impl At {
    pub fn is_reading(&self) -> bool {
        matches!(
            self,
            At::Locate(_)
                | At::Known(..)
                | At::Find(..)
                | At::Located
                | At::Read(_)
                | At::Words(..)
                | At::Bytes(..)
                | At::Old(..)
        )
    }
    /// Whether the next step is one under the host's lock.
    pub fn needs_lock(&self) -> bool {
        matches!(self, At::Read(_) | At::Own | At::OwnWrite(..) | At::OwnPublish | At::Certify(_))
    }
}

/// What comes before the next step.
#[derive(Debug)]
pub(crate) enum Wait {
    Ticket(Ticket),
    /// Another transaction, or a move, has a tuple's lock.
    Claim(Claim),
    /// So many answers of other hosts.
    Answers(usize),
    /// Its record is durable, and applied here.
    Durable,
    /// Something that no one tells of.
    Poll,
}

/// What follows when a commit has released what it held.
#[derive(Debug)]
pub(crate) enum Then {
    Answer(Answer),
    /// It begins again, after this.
    Again(Option<Wait>),
}

#[derive(Debug)]
pub(crate) struct Txn {
    pub id: TxnId,
    pub is_read_only: bool,
    /// Its operations began in this epoch.
    pub epoch: u64,
    pub s: Option<Timestamp>,
    pub seen: Vec<Seen>,
    /// Foreign keys whose tuples it knows.
    pub places: BTreeMap<Key, Node>,
    /// The keys of the request.
    pub wanted: Vec<(Key, ColumnMask)>,
    pub values: Vec<Option<Option<Bytes>>>,
    /// Foreign keys that are not shared.
    pub missing: Vec<Key>,
    /// Keys of a question, by its number.
    pub asked: BTreeMap<u64, (u8, Vec<Key>)>,
    pub writes: Vec<Write>,
    pub is_committing: bool,
    /// Keys that this transaction inserts, and the blocks and heights of their tuples.
    pub new_keys: BTreeSet<Key>,
    pub new_nodes: BTreeMap<Key, (u64, u8)>,
    /// Bodies that this transaction has written and not published.
    pub bodies: BTreeMap<Key, Body>,
    pub p: Timestamp,
    /// Its writes of keys that are not shared.
    pub own_part: Vec<Write>,
    pub then: Option<Then>,
    pub is_durable: bool,
    /// Tries that were in vain, for want of memory.
    pub tries: u32,
    pub at: At,
    pub wait: Option<Wait>,
}

impl Txn {
    pub fn new(id: TxnId, is_read_only: bool, epoch: u64) -> Txn {
        Txn {
            id,
            is_read_only,
            epoch,
            s: None,
            seen: Vec::new(),
            places: BTreeMap::new(),
            wanted: Vec::new(),
            values: Vec::new(),
            missing: Vec::new(),
            asked: BTreeMap::new(),
            writes: Vec::new(),
            is_committing: false,
            new_keys: BTreeSet::new(),
            new_nodes: BTreeMap::new(),
            bodies: BTreeMap::new(),
            p: Timestamp::MIN,
            own_part: Vec::new(),
            then: None,
            is_durable: false,
            tries: 0,
            at: At::Idle,
            wait: None,
        }
    }

    pub fn take(&mut self, request: Request) {
        self.at = At::Locate(0);
        self.missing.clear();
        match request {
            Request::Read(keys) => {
                self.values = vec![None; keys.len()];
                self.wanted = keys;
            }
            Request::Commit(writes) => self.commits(writes),
            Request::CommitAgain(reads, writes) => {
                let seen = reads.into_iter().map(|read| Seen {
                    key: read.target.start().clone(),
                    columns: read.columns,
                    until: read.until,
                    node: None,
                });
                self.seen = seen.collect();
                self.commits(writes);
                self.wanted.extend(self.seen.iter().map(|seen| (seen.key.clone(), seen.columns)));
            }
            Request::Abandon => self.at = At::Over(None),
        }
    }

    fn commits(&mut self, writes: Vec<Write>) {
        self.wanted = writes.iter().map(|write| (write.key.clone(), write.columns)).collect();
        (self.writes, self.is_committing) = (writes, true);
    }

    pub fn is_over(&mut self, answer: Answer) {
        self.at = At::Over(Some(answer));
    }
}
