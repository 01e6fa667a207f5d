//! Clients of a simulated pod: what they do, and what they write down of it.

use bytes::{Buf, Bytes};
use meridian_base::record::Committed;
use meridian_base::{ColumnMask, Key, ReadEntry, Target, Timestamp, TxnId, Write};
use meridian_host::{Answer, Request};
use meridian_workload::history::{Op, Outcome, Record};
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::BTreeMap;

use crate::simulation::key;

/// What the rows mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A key is a list of numbers.
    Lists,
    /// A key is an account.
    Bank,
}

pub const BALANCE: i64 = 100;

impl Kind {
    pub fn first_rows(self, keys: u8) -> Committed {
        let row = |k| Write { key: key(k), value: Some(encode(&[BALANCE])), columns: ColumnMask::ALL };
        let writes = match self {
            Kind::Lists => vec![],
            Kind::Bank => (0..keys).map(row).collect(),
        };
        Committed { id: TxnId { hlc: Timestamp(1), ..TxnId::default() }, at: Timestamp(5), writes }
    }
}

fn encode(values: &[i64]) -> Bytes {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}
fn decode(mut bytes: Bytes) -> Vec<i64> {
    std::iter::from_fn(|| (!bytes.is_empty()).then(|| bytes.get_i64_le())).collect()
}

/// What a transaction is about to do.
#[derive(Clone, Debug)]
pub struct Plan {
    pub is_read_only: bool,
    /// Keys to be read, request by request.
    reads: Vec<Vec<u8>>,
    /// Values that are appended; or the amount that goes from the first key to the second.
    changes: Vec<(u8, i64)>,
}

impl Plan {
    pub fn random(kind: Kind, keys: u8, next_value: &mut i64, rng: &mut SmallRng) -> Plan {
        let is_read_only = rng.random_bool(0.35);
        let mut chosen: Vec<u8> = (0..keys).collect();
        for i in 0..chosen.len() {
            chosen.swap(i, rng.random_range(i..keys.into()));
        }
        let all_of_a_bank = kind == Kind::Bank && is_read_only;
        chosen.truncate(if all_of_a_bank { chosen.len() } else { rng.random_range(1..=3) });
        let mut changes = Vec::new();
        if kind == Kind::Bank && !is_read_only && chosen.len() > 1 {
            let amount = rng.random_range(1..20);
            changes = vec![(chosen[0], -amount), (chosen[1], amount)];
        }
        if kind == Kind::Lists && !is_read_only {
            for k in &chosen {
                if rng.random_bool(0.6) {
                    *next_value += 1;
                    changes.push((*k, *next_value));
                }
            }
        }
        let reads = match rng.random_bool(0.5) {
            true => vec![chosen],
            false => chosen.into_iter().map(|k| vec![k]).collect(),
        };
        Plan { is_read_only, reads, changes }
    }

    pub fn everything(_: Kind, keys: u8, is_read_only: bool) -> Plan {
        Plan { is_read_only, reads: vec![(0..keys).collect()], changes: vec![] }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Doing {
    Nothing,
    /// The next request is to be sent.
    Next,
    Waits,
    /// To be sent again, elsewhere.
    Again,
}

pub struct Client {
    number: u32,
    pub host: u8,
    /// Another host takes over from this one first.
    pub waits_for: Option<u8>,
    pub id: Option<TxnId>,
    plan: Plan,
    doing: Doing,
    s: Timestamp,
    values: BTreeMap<u8, Vec<i64>>,
    is_commit_sent: bool,
    invoked: u64,
    answered_at: u64,
    ended: Option<Record>,
}

impl Client {
    pub fn new(number: u32, host: u8) -> Client {
        Client {
            number,
            host,
            waits_for: None,
            id: None,
            plan: Plan { is_read_only: true, reads: vec![], changes: vec![] },
            doing: Doing::Nothing,
            s: Timestamp::MIN,
            values: BTreeMap::new(),
            is_commit_sent: false,
            invoked: 0,
            answered_at: 0,
            ended: None,
        }
    }

    pub fn begin(&mut self, id: TxnId, plan: Plan, now: u64) {
        (self.id, self.plan, self.doing, self.invoked) = (Some(id), plan, Doing::Next, now);
        self.values.clear();
        self.is_commit_sent = false;
    }

    fn writes(&self, kind: Kind) -> Vec<Write> {
        let changed = |(k, value): &(u8, i64)| {
            let mut values = self.values[k].clone();
            match kind {
                Kind::Lists => values.push(*value),
                Kind::Bank => values[0] += value,
            }
            Write { key: key(*k), value: Some(encode(&values)), columns: ColumnMask::ALL }
        };
        self.plan.changes.iter().map(changed).collect()
    }

    pub fn next_request(&mut self, kind: Kind) -> Option<Request> {
        let again = self.doing == Doing::Again;
        if !again && self.doing != Doing::Next {
            return None;
        }
        self.doing = Doing::Waits;
        if again {
            let read = |k: &u8| ReadEntry { target: Target::Key(key(*k)), columns: ColumnMask::ALL, until: self.s };
            return Some(Request::CommitAgain(self.values.keys().map(read).collect(), self.writes(kind)));
        }
        if let Some(keys) = self.plan.reads.iter().find(|keys| keys.iter().any(|k| !self.values.contains_key(k))) {
            return Some(Request::Read(keys.iter().map(|k| (key(*k), ColumnMask::ALL)).collect::<Vec<(Key, ColumnMask)>>()));
        }
        if self.plan.is_read_only {
            // Its reads are the answer.
            self.ends(kind, Outcome::Committed, self.answered_at);
            return Some(Request::Abandon);
        }
        self.is_commit_sent = true;
        Some(Request::Commit(self.writes(kind)))
    }

    pub fn answered(&mut self, kind: Kind, answer: Answer, now: u64) {
        self.answered_at = now;
        match answer {
            Answer::Read(s, values) => {
                self.s = s;
                let keys = self.plan.reads.iter().find(|keys| keys.iter().any(|k| !self.values.contains_key(k)));
                let keys = keys.expect("it was asked for").clone();
                for (k, value) in keys.into_iter().zip(values) {
                    self.values.insert(k, value.map(decode).unwrap_or_default());
                }
                self.doing = Doing::Next;
            }
            Answer::Committed(_) => self.ends(kind, Outcome::Committed, now),
            Answer::Conflict => self.ends(kind, Outcome::Aborted, now),
        }
    }

    fn ends(&mut self, kind: Kind, outcome: Outcome, now: u64) {
        let completed = (outcome != Outcome::Unknown).then_some(now);
        let mut ops = Vec::new();
        match kind {
            Kind::Lists => {
                for (k, values) in &self.values {
                    ops.push(Op::ReadList { key: (*k).into(), values: values.clone() });
                }
                for (k, value) in &self.plan.changes {
                    ops.push(Op::Append { key: (*k).into(), value: *value });
                }
            }
            Kind::Bank => {
                let balances = self.values.iter().map(|(k, values)| (i64::from(*k), values[0]));
                ops.push(Op::ReadBalances { balances: balances.collect() });
            }
        }
        self.ended = Some(Record { client: self.number, invoked: self.invoked, completed, outcome, ops });
        (self.id, self.doing) = (None, Doing::Nothing);
    }

    pub fn take_ended(&mut self) -> Option<Record> {
        self.ended.take()
    }

    /// The host is gone. A commit that was sent may have happened: it is sent `again`, or nobody
    /// will know.
    pub fn host_died(&mut self, kind: Kind, again: bool, now: u64) -> Option<Record> {
        self.id?;
        match (self.is_commit_sent, again) {
            (false, _) => self.ends(kind, Outcome::Aborted, now),
            (true, false) => self.ends(kind, Outcome::Unknown, now),
            (true, true) => self.doing = Doing::Again,
        }
        self.take_ended()
    }
}
