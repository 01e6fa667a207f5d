//! What the log's leader does for the other hosts of its pod.
//!
//! It copies what is in their rings into its payloads, closes no more than they have promised,
//! echoes its lease to them, admits those that join, and takes the slots of those that are gone:
//!
//! ```text
//!  the process has ended ──▶ fence ─┐
//!  the host leaves by itself ───────┴▶ its ring is empty ──▶ seal ──▶ what was in it is applied here
//!                                                             ──▶ its slots are L's ──▶ its line is free
//! ```
//!
//! L's own transactions need no ring: they go to the log as without a pod.

use crate::replica::pod::member::Member;
use crate::replica::pod::slots::SlotSet;
use meridian_base::record::{Committed, Payload, Record};
use meridian_base::{Error, NodeId, Result, Timestamp, TxnId};
use meridian_pod::{Damaged, Entry, Hold, HostState, Phase, Rings, Segment, SharedMemory};
use meridian_region::{Engine, GroupState, Queues};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// Its number among the hosts.
pub(crate) const LEADER: u8 = 0;
/// Bytes that are taken from one ring at a time.
const TAKE_MAX: u64 = 1 << 20;
/// A host that has not moved its heartbeat for so long is looked at: has its process ended?
const SILENT: Duration = Duration::from_millis(200);
/// A process that is there and silent for so long is ended. Its lease is long over.
const HUNG: Duration = Duration::from_secs(6);

/// What L has seen of a host.
#[derive(Clone, Copy, Debug)]
struct Watched {
    epoch: u32,
    heartbeat: u64,
    /// When it last moved.
    moved: Instant,
    /// Sealed: the payload with the last of its ring has this number.
    last_payload: Option<u64>,
}

/// A host that may have ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Silent {
    pub host: u8,
    pub state: HostState,
    pub is_hung: bool,
}

/// See the module's essay.
pub(crate) struct Leader {
    pub member: Member,
    rings: Rings,
    /// Taken from rings, for the next payload: by host, each in the order of its timestamps.
    taken: Vec<Vec<Committed>>,
    /// What transactions over several groups hold.
    reserved: BTreeMap<TxnId, SlotSet>,
    watched: Vec<Option<Watched>>,
    /// Leadership is being handed over: nobody is admitted.
    pub is_closing: bool,
}

impl Leader {
    /// Of a new segment, in which L is host [`LEADER`] and has all slots.
    pub fn new(segment: Segment<SharedMemory>, node: NodeId, state: &GroupState) -> Result<Leader> {
        let damaged = |e: Damaged| Error::unavailable(e.to_string());
        let hosts = usize::from(segment.hosts());
        if !segment.join_as(LEADER, node).map_err(damaged)? {
            return Err(Error::unavailable("the first host of a new segment is there already"));
        }
        let joined = segment.host(LEADER).map_err(damaged)?;
        segment.change_phase(LEADER, joined, Phase::Live);
        let rings = Rings::new(&segment, meridian_pod::Rules::ALL);
        let mut member = Member::new(segment, LEADER);
        member.take(|_, hold| hold == Hold::Free).map_err(damaged)?;
        let reserved = state.prepared().map(|prepared| (prepared.id, SlotSet::of_prepared(prepared))).collect();
        Ok(Leader { member, rings, taken: Vec::new(), reserved, watched: vec![None; hosts], is_closing: false })
    }

    /// A slice is prepared: its slots stay.
    pub fn reserve(&mut self, id: TxnId, slots: SlotSet) {
        self.reserved.insert(id, slots);
    }

    /// It has its outcome.
    pub fn release(&mut self, id: TxnId) {
        self.reserved.remove(&id);
    }

    /// Copies what is in the rings. Whether there is something for the log.
    pub fn take(&mut self) -> Result<bool, Damaged> {
        let segment = self.member.segment.clone();
        for host in 1..segment.hosts() {
            if !segment.host(host)?.may_push() {
                continue;
            }
            let mut txns = Vec::new();
            for (_, entry) in self.rings.take(&segment, host, TAKE_MAX)? {
                if let Entry::Transaction(logged) = entry {
                    let payload = Payload::decode(logged.body).map_err(|e| Damaged(e.message().to_string()))?;
                    for record in payload.records {
                        let Record::Batch(batch) = record else { return Err(Damaged("a record of another kind".into())) };
                        txns.extend(batch);
                    }
                }
            }
            if !txns.is_empty() {
                self.taken.push(txns);
            }
            self.rings.taken(&segment, host);
        }
        Ok(!self.taken.is_empty())
    }

    pub fn has_taken(&self) -> bool {
        !self.taken.is_empty()
    }

    /// What was taken, for a payload.
    pub fn drain(&mut self) -> impl Iterator<Item = Record> + '_ {
        self.taken.drain(..).map(Record::Batch)
    }

    /// What a payload may close that holds all that was taken: `own` is what L itself may.
    pub fn closed(&self, own: Timestamp) -> Timestamp {
        match self.rings.closed(&self.member.segment) {
            Timestamp::MIN => own,
            others => own.min(others),
        }
    }

    /// Whether all hosts have acknowledged a schema grant.
    pub fn grant_is_seen(&self, number: u64) -> bool {
        self.rings.grant_is_seen(number)
    }

    /// Whether no other host draws timestamps or serves.
    pub fn is_alone(&self) -> Result<bool, Damaged> {
        let segment = &self.member.segment;
        for host in 1..segment.hosts() {
            if matches!(segment.host(host)?.phase, Phase::Joining | Phase::Live | Phase::Leaving | Phase::Fenced) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// How many hosts serve, L included.
    pub fn live(&self) -> usize {
        let is_live = |host: u8| self.member.segment.host(host).is_ok_and(|state| state.phase == Phase::Live);
        (0..self.member.segment.hosts()).filter(|host| is_live(*host)).count()
    }

    /// Looks after the other hosts. `left`: microseconds of L's lease. `sent` and `applied` count
    /// payloads. Gives those that may have ended.
    pub fn tend(
        &mut self,
        state: &GroupState,
        engine: &mut Engine,
        locks: (&Queues, Timestamp),
        left: impl Fn() -> u32,
        (sent, applied): (u64, u64),
    ) -> Result<Vec<Silent>, Damaged> {
        let mut silent = Vec::new();
        let segment = self.member.segment.clone();
        for host in 1..segment.hosts() {
            let now = segment.host(host)?;
            let place = usize::from(host);
            if now.phase == Phase::Free {
                self.watched[place] = None;
                continue;
            }
            let heartbeat = segment.heartbeat(host);
            let watched = self.watched[place].get_or_insert(Watched {
                epoch: now.epoch,
                heartbeat,
                moved: Instant::now(),
                last_payload: None,
            });
            if watched.epoch != now.epoch || watched.heartbeat != heartbeat {
                let last_payload = watched.last_payload.filter(|_| watched.epoch == now.epoch);
                *watched = Watched { epoch: now.epoch, heartbeat, moved: Instant::now(), last_payload };
            }
            let silence = watched.moved.elapsed();
            match now.phase {
                Phase::Joining | Phase::Live if silence >= SILENT => {
                    silent.push(Silent { host, state: now, is_hung: silence >= HUNG });
                }
                _ => {}
            }
            match now.phase {
                Phase::Joining if !self.is_closing => {
                    // It serves when it has applied as much as L has.
                    segment.raise_given(state.applied().index);
                    self.rings.admit(&segment, host)?;
                }
                Phase::Leaving | Phase::Fenced if self.rings.seal(&segment, host)? => {
                    watched.last_payload = Some(sent + u64::from(!self.taken.is_empty()));
                }
                // What was given to it, its last owner had applied, perhaps before L.
                Phase::Sealed
                    if watched.last_payload.is_some_and(|last| applied >= last) && segment.given() <= state.applied().index =>
                {
                    let taken = self.member.take(|of, _| of == host)?;
                    engine.gained(state);
                    self.rings.release(&segment, host)?;
                    tracing::info!("host {host} of node {} is gone: {taken} slots are the leader's", now.node);
                }
                _ => {}
            }
            if matches!(now.phase, Phase::Joining | Phase::Live) && !self.is_closing {
                let nonce = segment.nonce(host);
                segment.echo(host, nonce, left());
            }
        }
        self.take_stray(state, engine)?;
        let Leader { member, reserved, .. } = self;
        member.exchange(state, engine, locks, |slot| reserved.values().any(|slots| slots.contains(slot)))?;
        Ok(silent)
    }

    /// Takes slots that were given to a host which was gone by then, and has not taken them.
    fn take_stray(&mut self, state: &GroupState, engine: &mut Engine) -> Result<(), Damaged> {
        let segment = self.member.segment.clone();
        let mut is_gone = Vec::with_capacity(segment.hosts().into());
        for host in 0..segment.hosts() {
            is_gone.push(segment.host(host)?.phase == Phase::Free);
        }
        let is_stray = |of: u8, hold: Hold| hold == Hold::Leaving && is_gone[usize::from(of)];
        // What its last owner had applied is perhaps not yet applied here.
        if is_gone.contains(&true) && segment.given() <= state.applied().index && self.member.take(is_stray)? > 0 {
            engine.gained(state);
        }
        Ok(())
    }

    /// The process of a silent host has ended.
    pub fn fence(&mut self, silent: Silent) -> Result<(), Damaged> {
        let now = self.member.segment.host(silent.host)?;
        if (now.epoch, now.node) == (silent.state.epoch, silent.state.node) {
            self.rings.fence(&self.member.segment, silent.host)?;
        }
        Ok(())
    }
}

impl Drop for Leader {
    /// The generation is over with the term.
    fn drop(&mut self) {
        self.member.segment.end();
    }
}
