//! Where keys are, and what they hold at a snapshot.
//!
//! | the key | a read |
//! | --- | --- |
//! | own, at home | passes the engine's gate, then takes the row (under the host's lock) |
//! | own, shared | reads the words; the body from the own rows, if those have the newest version |
//! | foreign, shared | reads words and body |
//! | foreign, at home there | asks its owner to move it in; all keys of a request at once |
//!
//! A read-write transaction's snapshot is the clock; if a tuple is newer, it begins again. A
//! read-only one's is the newest timestamp that is applied here or acknowledged anywhere (P5), and
//! it reads a tuple's older version in the rows of its owner once these have the newest.

use crate::host::{Host, Known};
use crate::message::{Action, Answer, Message};
use crate::rows::Rows;
use crate::txn::{At, Seen, Txn, Wait};
use bytes::Bytes;
use meridian_base::{Key, Target, Timestamp, TxnId};
use meridian_pod::memory::Memory;
use meridian_pod::{BodyRead, Damaged, Find, Node, Read, Reading};
use meridian_region::{Moment, NotReady, ReadGate};
use std::collections::BTreeMap;

/// A tuple that is used this often says so to its owner.
const USES_BETWEEN_MARKS: u32 = 16;

impl<M: Memory + Clone + Send + Sync + 'static, R: Rows> Host<M, R> {
    pub(crate) fn step_read(&mut self, id: TxnId, txn: &mut Txn) -> Result<(), Damaged> {
        match std::mem::replace(&mut txn.at, At::Idle) {
            At::Locate(i) => self.locate(id, txn, i)?,
            At::Known(i, node, generation) => match node.generation(&self.segment) == generation {
                true => self.found(txn, i, node, generation),
                false => txn.at = self.search(txn, i),
            },
            At::Find(i, mut find) => match find.step(&self.segment)? {
                None => txn.at = At::Find(i, find),
                Some(found) => match found.next.filter(|_| found.is_equal) {
                    Some(node) => self.found(txn, i, node, node.generation(&self.segment)),
                    None => {
                        txn.missing.push(txn.wanted[i].0.clone());
                        txn.at = At::Locate(i + 1);
                    }
                },
            },
            At::Located if txn.is_committing => {
                for seen in &mut txn.seen {
                    seen.node = seen.node.or(txn.places.get(&seen.key).copied());
                }
                txn.at = At::Bodies;
            }
            At::Located => {
                self.choose_snapshot(txn);
                txn.at = At::Read(0);
            }
            At::Read(i) => self.read(txn, i),
            At::Words(i, node, mut read) => match read.step(&self.segment)? {
                Reading::More => txn.at = At::Words(i, node, read),
                Reading::Wait(claim) => {
                    txn.wait = Some(Wait::Claim(claim));
                    txn.at = At::Words(i, node, Read::new(node, txn.s.unwrap_or_default(), self.config.rules));
                }
                Reading::Gone => self.gone(txn, i),
                Reading::Newer(newest) if txn.is_read_only => txn.at = At::Old(i, newest),
                Reading::Newer(newest) => self.too_new(txn, newest),
                Reading::Version { newest, body } => {
                    let key = &txn.wanted[i].0;
                    let own = self.is_own(key).then(|| self.rows.get(key, newest)).flatten().filter(|own| own.at == newest);
                    match own {
                        Some(own) => self.has_read(txn, i, Some(node), own.value),
                        None => {
                            txn.at = At::Bytes(i, node, newest, BodyRead::new(self.config.host, node, body, self.config.rules))
                        }
                    }
                }
            },
            At::Bytes(i, node, newest, mut bytes) => match bytes.step(&self.segment)? {
                None => txn.at = At::Bytes(i, node, newest, bytes),
                Some(value) => self.has_read(txn, i, Some(node), value),
            },
            At::Old(i, newest) => self.read_old(id, txn, i, newest),
            other => unreachable!("{other:?} is no part of a read"),
        }
        Ok(())
    }

    /// The next key that is not here. For that, the tuple that is known.
    fn locate(&mut self, id: TxnId, txn: &mut Txn, i: usize) -> Result<(), Damaged> {
        let is_elsewhere = |(key, _): &(Key, _)| !self.is_own(key) && !txn.places.contains_key(key);
        let Some(i) = (i..txn.wanted.len()).find(|i| is_elsewhere(&txn.wanted[*i])) else {
            self.ask_for_missing(id, txn);
            return Ok(());
        };
        txn.at = match self.known.get(&txn.wanted[i].0) {
            Some(known) if !known.node.is_removed(&self.segment) => At::Known(i, known.node, known.generation),
            _ => self.search(txn, i),
        };
        Ok(())
    }

    fn search(&mut self, txn: &Txn, i: usize) -> At {
        let key = &txn.wanted[i].0;
        self.known.remove(key);
        At::Find(i, Find::new(Bytes::copy_from_slice(key.as_bytes())))
    }

    fn found(&mut self, txn: &mut Txn, i: usize, node: Node, generation: u32) {
        let key = txn.wanted[i].0.clone();
        let known = self.known.entry(key.clone()).or_insert(Known { node, generation, uses: 0 });
        if (known.node, known.generation) != (node, generation) {
            *known = Known { node, generation, uses: 0 };
        }
        if known.uses.is_multiple_of(USES_BETWEEN_MARKS) {
            node.use_again(&self.segment);
        }
        known.uses += 1;
        txn.places.insert(key, node);
        txn.at = At::Locate(i + 1);
    }

    fn ask_for_missing(&mut self, id: TxnId, txn: &mut Txn) {
        let mut by_owner: BTreeMap<u8, Vec<Key>> = BTreeMap::new();
        for key in std::mem::take(&mut txn.missing) {
            if self.config.inserts_shared && txn.is_committing {
                txn.new_keys.insert(key);
                continue;
            }
            let keys = by_owner.entry(self.owner(&key)).or_default();
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        if by_owner.is_empty() {
            txn.at = At::Located;
            return;
        }
        // A slot may have come here meanwhile.
        if by_owner.remove(&self.config.host).is_some() && by_owner.is_empty() {
            txn.at = At::Locate(0);
            return;
        }
        txn.wait = Some(Wait::Answers(by_owner.len()));
        txn.at = At::Locate(0);
        for (owner, keys) in by_owner {
            let ask = self.number_next();
            self.asks.insert(ask, id);
            txn.asked.insert(ask, (owner, keys.clone()));
            self.send(owner, Message::MoveIn { ask, keys });
        }
    }

    pub(crate) fn told_nodes(&mut self, ask: u64, nodes: Vec<Option<Node>>) -> Result<(), Damaged> {
        if nodes.iter().any(Option::is_none) {
            self.look_at_owners()?;
        }
        let Some(id) = self.asks.remove(&ask) else { return Ok(()) };
        let Some(txn) = self.txns.get_mut(&id) else { return Ok(()) };
        let Some((_, keys)) = txn.asked.remove(&ask) else { return Ok(()) };
        for (key, node) in keys.into_iter().zip(nodes) {
            let Some(node) = node else { continue };
            // The transaction began before the tuple can have left again.
            let generation = node.generation(&self.segment);
            self.known.insert(key.clone(), Known { node, generation, uses: 1 });
            txn.places.insert(key, node);
        }
        answered(txn);
        Ok(())
    }

    pub(crate) fn told_old(&mut self, ask: u64, value: Option<Option<Bytes>>) -> Result<(), Damaged> {
        if value.is_none() {
            self.look_at_owners()?;
        }
        let Some(id) = self.asks.remove(&ask) else { return Ok(()) };
        let Some(mut txn) = self.txns.remove(&id) else { return Ok(()) };
        if txn.asked.remove(&ask).is_some() {
            answered(&mut txn);
            if let (At::Old(i, _), Some(value)) = (&txn.at, value) {
                let i = *i;
                self.has_read(&mut txn, i, None, value);
            }
        }
        self.txns.insert(id, txn);
        Ok(())
    }

    /// Transactions that wait for an answer of a lost host ask the new owner.
    pub(crate) fn told_of_takeover(&mut self, host: u8) -> Result<(), Damaged> {
        self.look_at_owners()?;
        for txn in self.txns.values_mut() {
            let lost: Vec<u64> = txn.asked.iter().filter(|(_, (owner, _))| *owner == host).map(|(ask, _)| *ask).collect();
            for ask in lost {
                txn.asked.remove(&ask);
                self.asks.remove(&ask);
                answered(txn);
            }
        }
        self.jobs.retain(|_, job| job.asker() != Some(host) || job.has_lock());
        Ok(())
    }

    fn choose_snapshot(&mut self, txn: &mut Txn) {
        if txn.s.is_some() {
            return;
        }
        let acked = match self.config.rules.snapshots_cover_acked() {
            false => Timestamp::MIN,
            true => self.segment.acked(),
        };
        txn.s = Some(match txn.is_read_only {
            true => self.state.newest().max(acked),
            false => self.segment.last_drawn(),
        });
    }

    /// Under the host's lock: reads own keys that are at home, up to one that is not, or has to
    /// wait.
    fn read(&mut self, txn: &mut Txn, from: usize) {
        let s = txn.s.unwrap_or_default();
        for i in from..txn.wanted.len() {
            let (key, columns) = &txn.wanted[i];
            if txn.values[i].is_some() {
                continue;
            }
            let words = |node| At::Words(i, node, Read::new(node, s, self.config.rules));
            if !self.is_own(key) {
                txn.at = txn.places.get(key).map_or(At::Locate(0), |node| words(*node));
                return;
            }
            if let Some(node) = self.home.get(key) {
                txn.at = words(*node);
                return;
            }
            let target = Target::Key(key.clone());
            let moment = Moment { state: &self.state, versions: &self.rows, clock: &self.clock, physical_micros: self.physical };
            match self.engine.read_gate(&moment, &target, *columns, s) {
                ReadGate::Ready => {
                    let value = self.rows.get(key, s).and_then(|version| version.value);
                    self.has_read(txn, i, None, value);
                }
                ReadGate::Wait(ticket) | ReadGate::NotReady(NotReady::NeedLease(ticket)) => {
                    txn.wait = Some(Wait::Ticket(ticket));
                    txn.at = At::Read(i);
                    return;
                }
                ReadGate::MoveTo(to) => return self.too_new(txn, to),
                ReadGate::TooOld | ReadGate::NotReady(NotReady::NotPrimary) => return txn.is_over(Answer::Conflict),
            }
        }
        txn.at = At::Idle;
        let values = std::mem::take(&mut txn.values).into_iter().map(Option::unwrap_or_default).collect();
        self.actions.push(Action::Answer(txn.id, Answer::Read(s, values)));
    }

    /// The snapshot is too old: the transaction moves it while nothing is read, or ends.
    fn too_new(&mut self, txn: &mut Txn, newest: Timestamp) {
        if !txn.seen.is_empty() || txn.values.iter().any(Option::is_some) {
            txn.is_over(Answer::Conflict);
            return;
        }
        txn.s = Some(self.segment.last_drawn().max(newest));
        txn.at = At::Read(0);
    }

    fn has_read(&mut self, txn: &mut Txn, i: usize, node: Option<Node>, value: Option<Bytes>) {
        let (key, columns) = txn.wanted[i].clone();
        txn.seen.push(Seen { key, columns, until: txn.s.unwrap_or_default(), node });
        txn.values[i] = Some(value);
        txn.at = At::Read(i + 1);
    }

    /// The tuple has left: its owner may have it.
    fn gone(&mut self, txn: &mut Txn, i: usize) {
        let key = &txn.wanted[i].0;
        txn.places.remove(key);
        self.known.remove(key);
        txn.at = At::Locate(0);
    }

    /// A read-only transaction reads an older version than a tuple's.
    fn read_old(&mut self, id: TxnId, txn: &mut Txn, i: usize, newest: Timestamp) {
        let (key, s) = (txn.wanted[i].0.clone(), txn.s.unwrap_or_default());
        if self.is_own(&key) {
            if self.rows_have(&key, newest) || !self.config.rules.old_versions_are_applied() {
                let value = self.rows.get(&key, s).and_then(|version| version.value);
                self.has_read(txn, i, None, value);
            } else {
                txn.wait = Some(Wait::Poll);
                txn.at = At::Old(i, newest);
            }
            return;
        }
        let (ask, owner) = (self.number_next(), self.owner(&key));
        self.asks.insert(ask, id);
        txn.asked.insert(ask, (owner, vec![key.clone()]));
        (txn.wait, txn.at) = (Some(Wait::Answers(1)), At::Old(i, newest));
        self.send(owner, Message::ReadOld { ask, key, s, newest });
    }

    pub(crate) fn rows_have(&self, key: &Key, newest: Timestamp) -> bool {
        newest == Timestamp::MIN || self.rows.newest(key).is_some_and(|at| at >= newest)
    }
}

fn answered(txn: &mut Txn) {
    if let Some(Wait::Answers(missing)) = &mut txn.wait {
        *missing -= 1;
        if *missing == 0 {
            txn.wait = None;
        }
    }
}
