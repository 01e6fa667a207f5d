//! L's duties for the other hosts: it copies rings into the log and the log into the feed, admits
//! hosts, and takes over from lost ones.
//!
//! ```text
//!  take       what lies before a ring's tail
//!  propose    an entry of the log with all that was taken; what it closes (P2)
//!             the caller's log makes it durable
//!  publish    acked (P3); then the feed
//! ```

use crate::host::{Host, Task};
use crate::message::{Action, LogEntry};
use crate::rows::Rows;
use crate::takeover::TakeOver;
use meridian_base::record::{Payload, Record, SchemaGrant};
use meridian_base::{LogPosition, Timestamp};
use meridian_pod::memory::Memory;
use meridian_pod::{Damaged, Entry, FeedRecord, FeedWriter, Item, NoRoom, Place, Reference, Rings, Rules, Segment};
use std::collections::{BTreeMap, VecDeque};

/// Bytes that L takes from a ring at a time, about.
const TAKEN_AT_ONCE: u64 = 1 << 16;

/// What an entry of the log is made of.
#[derive(Debug)]
struct Proposal {
    log: LogPosition,
    closed: Timestamp,
    entries: Vec<(Place, Entry)>,
    control: Vec<Record>,
}

/// L's part of a host.
#[derive(Debug)]
pub(crate) struct Leader {
    pub rings: Rings,
    feed: FeedWriter,
    term: u64,
    /// The last entry that was handed to the log.
    pub last: u64,
    taken: Vec<(Place, Entry)>,
    /// Taken from these, and they are not told yet.
    untold: Vec<u8>,
    closed: Timestamp,
    control: Vec<Record>,
    proposals: VecDeque<Proposal>,
    /// Durable in the log.
    durable: u64,
    /// In the feed.
    pub published: u64,
    /// The first proposal is in `acked`, and not in the feed.
    is_acked: bool,
    /// By host: the entry of the log with the last that was taken from its ring, and where that
    /// ends; the same for what is durable.
    pub last_of: BTreeMap<u8, u64>,
    pub durable_of: BTreeMap<u8, u64>,
    pub gone: BTreeMap<u8, TakeOver>,
}

impl Leader {
    pub fn new<M: Memory>(segment: &Segment<M>, applied: LogPosition, rules: Rules) -> Leader {
        Leader {
            rings: Rings::new(segment, rules),
            feed: FeedWriter::new(),
            term: segment.purpose().term,
            last: applied.index,
            taken: Vec::new(),
            untold: Vec::new(),
            closed: Timestamp::MIN,
            control: Vec::new(),
            proposals: VecDeque::new(),
            durable: applied.index,
            published: applied.index,
            is_acked: false,
            last_of: BTreeMap::new(),
            durable_of: BTreeMap::new(),
            gone: BTreeMap::new(),
        }
    }

    pub fn admit<M: Memory>(&mut self, segment: &Segment<M>, host: u8) -> Result<bool, Damaged> {
        self.rings.admit(segment, host)
    }

    /// The entry of the log that has, or will have, the last of what was taken from a host.
    pub fn last_with(&self, host: u8) -> u64 {
        match self.taken.iter().any(|(place, entry)| place.host == host && entry.logged().is_some()) {
            true => self.last + 1,
            false => self.last_of.get(&host).copied().unwrap_or(0),
        }
    }

    pub fn grant(&mut self, grant: SchemaGrant) {
        self.control.push(Record::Schema(grant));
    }

    pub fn tasks<M: Memory>(&self, segment: &Segment<M>, tasks: &mut Vec<Task>) {
        tasks.extend((0..segment.hosts()).map(Task::Take));
        tasks.extend([Task::Propose, Task::Publish]);
        for (host, gone) in &self.gone {
            tasks.extend(gone.parts().map(|part| Task::TakeOver(*host, part)));
        }
    }
}

impl<M: Memory + Clone + Send + Sync + 'static, R: Rows> Host<M, R> {
    fn leader(&mut self) -> &mut Leader {
        self.leader.as_mut().expect("only L is asked")
    }

    /// Whether it leads the log.
    pub fn leads(&self) -> bool {
        self.leader.is_some()
    }

    /// L: a host that has joined has its slots' rows. Whether it may draw timestamps now.
    ///
    /// # Errors
    ///
    /// If the segment is damaged.
    pub fn admit(&mut self, host: u8) -> Result<bool, Damaged> {
        let segment = self.segment.clone();
        self.leader().admit(&segment, host)
    }

    /// L: entries of the log up to this one are durable.
    pub fn durable(&mut self, index: u64) {
        let leader = self.leader();
        leader.durable = leader.durable.max(index);
    }

    pub(crate) fn take(&mut self, host: u8) -> Result<(), Damaged> {
        let segment = self.segment.clone();
        let leader = self.leader();
        if let Some(place) = leader.untold.iter().position(|untold| *untold == host) {
            leader.untold.swap_remove(place);
            leader.rings.taken(&segment, host);
            return Ok(());
        }
        let entries = leader.rings.take(&segment, host, TAKEN_AT_ONCE)?;
        if entries.is_empty() {
            return Ok(());
        }
        leader.untold.push(host);
        leader.taken.extend(entries);
        Ok(())
    }

    /// Hands the next entry to the log, if there is anything to say.
    pub(crate) fn propose(&mut self) -> Result<(), Damaged> {
        let lease = self.engine.renew_lease(&self.state, &self.clock, self.physical);
        let (segment, watermark) = (self.segment.clone(), self.state.watermark());
        let leader = self.leader();
        leader.control.extend(lease.map(Record::Lease));
        // A promise that closes nothing new is nothing to say.
        let closed = leader.rings.closed(&segment);
        let has_records = !leader.control.is_empty() || leader.taken.iter().any(|(_, entry)| entry.logged().is_some());
        if !has_records && closed <= leader.closed {
            return Ok(());
        }
        leader.last += 1;
        leader.closed = leader.closed.max(closed);
        let log = LogPosition { index: leader.last, term: leader.term };
        let entries = std::mem::take(&mut leader.taken);
        let control = std::mem::take(&mut leader.control);
        let mut transactions = Vec::new();
        for (place, entry) in &entries {
            if let Some(logged) = entry.logged() {
                transactions.push(logged.body.clone());
                leader.last_of.insert(place.host, log.index);
            }
        }
        let entry = LogEntry { closed: leader.closed, watermark, control: control.clone(), transactions };
        leader.proposals.push_back(Proposal { log, closed: leader.closed, entries, control });
        self.actions.push(Action::Append(log.index, entry));
        Ok(())
    }

    /// The first proposal that is durable: `acked`, then the feed.
    pub(crate) fn publish(&mut self) -> Result<(), Damaged> {
        let (segment, watermark) = (self.segment.clone(), self.state.watermark());
        let leader = self.leader();
        let Some(proposal) = leader.proposals.front().filter(|proposal| proposal.log.index <= leader.durable) else {
            return Ok(());
        };
        if !leader.is_acked {
            leader.rings.durable(&segment, proposal.entries.iter().map(|(_, entry)| entry));
            leader.is_acked = true;
            return Ok(());
        }
        let mut items = Vec::new();
        if !proposal.control.is_empty() {
            let control = Payload { records: proposal.control.clone(), ..Payload::default() };
            items.push(Item::Control(control.encode()));
        }
        for (place, entry) in &proposal.entries {
            if let Some(logged) = entry.logged() {
                let slots = logged.slots.clone();
                items.push(Item::Entry(Reference { place: *place, id: logged.id, at: logged.at, slots }));
            }
        }
        let record = FeedRecord { log: proposal.log, closed: proposal.closed, watermark, items };
        match leader.feed.publish(&segment, &record) {
            Ok(_) => {
                let proposal = leader.proposals.pop_front().expect("it was the first");
                leader.is_acked = false;
                leader.published = proposal.log.index;
                for (place, _) in &proposal.entries {
                    leader.durable_of.insert(place.host, place.end);
                }
                Ok(())
            }
            Err(NoRoom::Now) => leader.feed.reclaim(&segment),
            Err(NoRoom::Ever) => Err(Damaged("an entry of the log is larger than the feed".into())),
        }
    }
}
