//! What comes into a host and what goes out of it.

use crate::committing::decode;
use bytes::Bytes;
use meridian_base::record::{Payload, Record};
use meridian_base::{ColumnMask, Key, ReadEntry, Timestamp, TxnId, Write};
use meridian_pod::{Damaged, Node};

/// What a client of this host asks for. A transaction has one request at a time.
#[derive(Clone, Debug)]
pub enum Request {
    /// The newest versions of these keys at the transaction's snapshot.
    Read(Vec<(Key, ColumnMask)>),
    /// Certifies what was read and makes these writes, of one key each.
    Commit(Vec<Write>),
    /// The same for a transaction that another host, which is gone, was asked to commit: what it
    /// has read is told again.
    CommitAgain(Vec<ReadEntry>, Vec<Write>),
    /// Ends it without a trace.
    Abandon,
}

/// What a client is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The snapshot, and the values in the order in which they were asked for; `None`: there is no
    /// such row.
    Read(Timestamp, Vec<Option<Bytes>>),
    /// Everything is durable and seen by everybody.
    Committed(Timestamp),
    /// It had no effect and is over. The client may try again under another id.
    Conflict,
}

/// From one host to another. Hosts that are not of the pod any more get none.
#[derive(Clone, Debug)]
pub enum Message {
    /// Move these keys in. `ask` is the asker's number of the question.
    MoveIn { ask: u64, keys: Vec<Key> },
    /// The tuples; `None`: the key has another owner.
    MovedIn { ask: u64, nodes: Vec<Option<Node>> },
    /// A version of a shared tuple at `s`, older than its newest one.
    ReadOld { ask: u64, key: Key, s: Timestamp, newest: Timestamp },
    /// Its value; the outer `None`: the key has another owner.
    OldRead { ask: u64, value: Option<Option<Bytes>> },
    /// L has taken over the slots of a host that is gone.
    TakenOver { host: u8 },
}

impl Message {
    /// Its bytes on the way, about.
    pub fn bytes(&self) -> usize {
        match self {
            Message::MoveIn { keys, .. } => 9 + keys.iter().map(|key| 2 + key.as_bytes().len()).sum::<usize>(),
            Message::MovedIn { nodes, .. } => 9 + 8 * nodes.len(),
            Message::ReadOld { key, .. } => 27 + key.as_bytes().len(),
            Message::OldRead { value, .. } => 10 + value.iter().flatten().map(Bytes::len).sum::<usize>(),
            Message::TakenOver { .. } => 2,
        }
    }
}

/// What a host wants done.
#[derive(Clone, Debug)]
pub enum Action {
    Answer(TxnId, Answer),
    Send(u8, Message),
    /// L: append this entry to the group's log, and say when it is durable
    /// ([`crate::Host::durable`]), in order.
    Append(u64, LogEntry),
}

/// An entry of the log, as L makes it: its transactions are copies of what was in the rings.
#[derive(Clone, Debug)]
pub struct LogEntry {
    pub closed: Timestamp,
    pub watermark: Timestamp,
    pub control: Vec<Record>,
    pub transactions: Vec<Bytes>,
}

impl LogEntry {
    /// Its bytes, about.
    pub fn len(&self) -> usize {
        17 + self.transactions.iter().map(Bytes::len).sum::<usize>()
    }
    /// Whether it only closes timestamps.
    pub fn is_empty(&self) -> bool {
        self.control.is_empty() && self.transactions.is_empty()
    }
    /// What it means.
    ///
    /// # Errors
    ///
    /// If a transaction is malformed.
    pub fn payload(&self) -> Result<Payload, Damaged> {
        let mut records = self.control.clone();
        for body in &self.transactions {
            records.push(Record::Batch(vec![decode(body.clone())?]));
        }
        Ok(Payload { closed: self.closed, watermark: self.watermark, records })
    }
}
