//! What a host does that does not lead: it pushes what it certifies into its ring, and serves for
//! as long as L has echoed.

use crate::replica::pod::member::Member;
use bytes::Bytes;
use meridian_base::record::{Committed, Payload, Record};
use meridian_base::{Clock, NodeId, Timestamp};
use meridian_pod::{Damaged, Entry, HostLease, Logged, NoRoom, Phase, Place, RingWriter, Rules, Segment, SharedMemory};
use meridian_region::{Engine, GroupState, Queues};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// An idle host promises this often that nothing at or below its clock will follow.
const PROMISE_INTERVAL: Duration = Duration::from_millis(20);
/// A lease is asked for this often.
const ASK_INTERVAL: Duration = Duration::from_millis(10);

/// A host's line in a segment, from joining on. It leaves the pod when this is dropped.
pub(crate) struct Line {
    pub segment: Segment<SharedMemory>,
    pub host: u8,
    pub lease: HostLease,
    heartbeat: u64,
    asked: Instant,
}

impl Line {
    /// Joins. What a process of this node that has ended has left in the segment is closed: this
    /// process has the node's place, so that one will not write again.
    pub fn join(segment: &Segment<SharedMemory>, node: NodeId, random: u64) -> Result<Option<Line>, Damaged> {
        for host in 0..segment.hosts() {
            let state = segment.host(host)?;
            if state.node == node && matches!(state.phase, Phase::Joining | Phase::Live | Phase::Leaving) {
                segment.change_phase(host, state, Phase::Fenced);
            }
        }
        // The first line is L's, who takes it when it can.
        let mut line = None;
        for host in 1..segment.hosts() {
            if segment.join_as(host, node)? {
                line = Some(host);
                break;
            }
        }
        let Some(host) = line else { return Ok(None) };
        let lease = HostLease::new(host, random as u32, Rules::ALL);
        Ok(Some(Line { segment: segment.clone(), host, lease, heartbeat: random >> 32, asked: Instant::now() }))
    }

    pub fn phase(&self) -> Result<Phase, Damaged> {
        Ok(self.segment.host(self.host)?.phase)
    }

    /// The host lives, and asks for its lease. `now`: microseconds of a clock that nobody sets.
    pub fn beat(&mut self, now: u64) {
        self.heartbeat = self.heartbeat.wrapping_add(1);
        self.segment.beat(self.host, self.heartbeat);
        if self.asked.elapsed() >= ASK_INTERVAL {
            self.asked = Instant::now();
            self.lease.ask(&self.segment, now);
        }
        self.lease.look(&self.segment, now);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // Nothing is pushed any more. What was pushed will be in the log.
        while let Ok(state) = self.segment.host(self.host) {
            let is_there = matches!(state.phase, Phase::Joining | Phase::Live);
            if !is_there || self.segment.change_phase(self.host, state, Phase::Leaving) {
                break;
            }
        }
    }
}

/// See the module's essay.
pub(crate) struct Host {
    pub member: Member,
    pub line: Line,
    ring: RingWriter,
    /// What was pushed and is not applied.
    pushed: BTreeMap<Timestamp, Place>,
    promised: Instant,
    /// The last schema grant that was acknowledged.
    acknowledged: u64,
}

impl Host {
    /// Of a host that L has admitted.
    pub fn new(line: Line) -> Result<Host, Damaged> {
        let mut ring = RingWriter::new(&line.segment, line.host, Rules::ALL);
        ring.reclaim(&line.segment)?;
        let member = Member::new(line.segment.clone(), line.host);
        Ok(Host { member, line, ring, pushed: BTreeMap::new(), promised: Instant::now(), acknowledged: 0 })
    }

    /// Pushes what is certified, as far as there is room, in order. Gives how many.
    pub fn push<'a>(&mut self, engine: &mut Engine, pending: impl Iterator<Item = &'a Committed>) -> Result<usize, Damaged> {
        let mut pushed = 0;
        for txn in pending {
            let entry = Entry::Transaction(Logged { id: txn.id, at: txn.at, slots: Vec::new(), body: body(txn) });
            let mut written = self.ring.write(&self.line.segment, &entry);
            if written == Err(NoRoom::Now) {
                self.ring.reclaim(&self.line.segment)?;
                written = self.ring.write(&self.line.segment, &entry);
            }
            match written {
                Ok(place) => {
                    self.pushed.insert(txn.at, place);
                    engine.appended(txn.at);
                    pushed += 1;
                }
                Err(NoRoom::Now) => break,
                Err(NoRoom::Ever) => return Err(Damaged(format!("{} is larger than the ring", txn.id))),
            }
        }
        if pushed > 0 {
            self.ring.publish(&self.line.segment);
            self.promised = Instant::now();
        }
        Ok(pushed)
    }

    /// A transaction of this host is applied here.
    pub fn applied(&mut self, at: Timestamp) {
        if let Some(place) = self.pushed.remove(&at) {
            // There is no feed that others would read it by: L has copied it.
            self.ring.fed(place, 0);
        }
    }

    /// What time alone makes happen. `is_idle`: nothing certified waits for room.
    pub fn tick(
        &mut self,
        state: &GroupState,
        engine: &mut Engine,
        queues: &Queues,
        clock: &Clock,
        (physical, now): (u64, u64),
        is_idle: bool,
    ) -> Result<(), Damaged> {
        self.line.beat(now);
        let (number, bound) = self.line.segment.grant();
        engine.lower_schema_bound(state, number, bound);
        if number > self.acknowledged && self.say(&Entry::GrantSeen(number))? {
            self.acknowledged = number;
        }
        if is_idle && self.promised.elapsed() >= PROMISE_INTERVAL {
            // Draws, so that nothing at or below it follows from a host that draws later.
            let at = clock.tick(physical);
            engine.used_by_others(at);
            if self.say(&Entry::Promise(at))? {
                self.promised = Instant::now();
            }
        }
        self.member.exchange(state, engine, (queues, clock.now(physical)), |_| false)
    }

    fn say(&mut self, entry: &Entry) -> Result<bool, Damaged> {
        self.ring.reclaim(&self.line.segment)?;
        match self.ring.push(&self.line.segment, entry) {
            Ok(_) => Ok(true),
            Err(NoRoom::Now) => Ok(false),
            Err(NoRoom::Ever) => Err(Damaged("a ring without room for a promise".into())),
        }
    }
}

/// As the log has it.
fn body(txn: &Committed) -> Bytes {
    let records = vec![Record::Batch(vec![txn.clone()])];
    Payload { closed: Timestamp::MIN, watermark: Timestamp::MIN, records }.encode()
}
