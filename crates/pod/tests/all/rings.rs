//! Rings and feed, step by step: two hosts that draw, write, publish and promise, L that takes,
//! closes, publishes and seals, hosts that follow, and host 1 may die between any two steps.

use crate::explorer::{Found, Sparse, System, explore};
use bytes::Bytes;
use meridian_base::{GroupId, LogPosition, NodeId, Timestamp, TxnId};
use meridian_pod::{
    Draw, Entry, FeedReader, FeedRecord, FeedWriter, Item, Layout, Logged, Phase, PlantedBug, Purpose, Reference, RingWriter,
    Rings, Rules, Segment, Sizes,
};
use std::hash::{Hash, Hasher};

/// Two transactions of this many bytes fill a ring.
const BODY: usize = 200;
const SIZES: Sizes = Sizes { ring: 512, feed: 512, ..Sizes::SMALL };

/// What a host does under its lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Doing {
    /// It is not in the pod.
    Out,
    /// Its lock is free.
    Idle,
    Drawing(Draw),
    Drawn(Timestamp),
    /// A promise of the clock as it was loaded.
    Promising(Timestamp),
    Written,
    Dead,
}

#[derive(Clone, Debug, Hash)]
struct Host {
    doing: Doing,
    ring: Option<RingWriter>,
    reader: Option<FeedReader>,
    transactions: u8,
    promises: u8,
    /// What the feed told it last and it has not applied yet.
    applying: Vec<(Reference, u64)>,
    applied: Vec<Timestamp>,
}

#[derive(Clone, Debug)]
struct Pod {
    segment: Segment<Sparse>,
    rules: Rules,
    hosts: [Host; 2],
    rings: Rings,
    feed: FeedWriter,
    /// Taken, and not published in the feed: the entry that L is working on.
    taken: Vec<Item>,
    closed: Timestamp,
    /// In the order of the log.
    log: Vec<Timestamp>,
    /// Timestamps whose tail was stored, by host.
    published: [Vec<Timestamp>; 2],
    pending: [Option<Timestamp>; 2],
    can_die: bool,
    wrong: Option<String>,
}

impl Hash for Pod {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.segment.memory().hash(state);
        (&self.hosts, &self.rings, &self.feed, &self.taken, self.closed, &self.log).hash(state);
        (&self.published, &self.pending, &self.wrong).hash(state);
    }
}

/// Each byte tells whose transaction it is.
fn body(at: Timestamp) -> Bytes {
    vec![at.0 as u8; BODY].into()
}

impl Pod {
    /// Host 0 leads the log, and both push this many transactions and promises. Host 1 joins as one
    /// of the steps.
    fn new(transactions: [u8; 2], promises: [u8; 2], can_die: bool, rules: Rules) -> Pod {
        let memory = Sparse::new(Layout::new(SIZES).unwrap().len());
        let segment = Segment::create(memory, SIZES, Purpose { generation: 1, group: GroupId(2), term: 3 }).unwrap();
        let host = |n: usize| Host {
            doing: Doing::Out,
            ring: None,
            reader: None,
            transactions: transactions[n],
            promises: promises[n],
            applying: vec![],
            applied: vec![],
        };
        let mut pod = Pod {
            rings: Rings::new(&segment, rules),
            segment,
            rules,
            hosts: [host(0), host(1)],
            feed: FeedWriter::new(),
            taken: vec![],
            closed: Timestamp::MIN,
            log: vec![],
            published: [vec![], vec![]],
            pending: [None, None],
            can_die,
            wrong: None,
        };
        pod.join(0);
        pod.rings.admit(&pod.segment, 0).unwrap();
        pod
    }

    fn join(&mut self, n: u8) {
        assert!(self.segment.join_as(n, NodeId(1 + u32::from(n))).unwrap());
        let host = &mut self.hosts[usize::from(n)];
        host.ring = Some(RingWriter::new(&self.segment, n, self.rules));
        host.reader = Some(FeedReader::new(&self.segment, n));
        host.doing = Doing::Idle;
    }

    fn host_steps(&self, n: u8, out: &mut Vec<(String, Pod)>) {
        let i = usize::from(n);
        let host = &self.hosts[i];
        let mut step = |what: String, change: &dyn Fn(&mut Pod)| {
            let mut next = self.clone();
            next.segment.memory().operations();
            change(&mut next);
            out.push((format!("host {n} {what}"), next));
        };
        match &host.doing {
            Doing::Out => step("joins".into(), &|pod| pod.join(n)),
            Doing::Idle => {
                let may_draw = self.segment.may_draw(n, self.rules).unwrap();
                if may_draw && host.transactions > 0 {
                    step("takes its lock".into(), &|pod| {
                        pod.hosts[i].transactions -= 1;
                        pod.hosts[i].doing = Doing::Drawing(Draw::new(Timestamp::MIN, 0));
                    });
                }
                if may_draw && host.promises > 0 {
                    step("loads the clock".into(), &|pod| {
                        pod.hosts[i].promises -= 1;
                        pod.hosts[i].doing = Doing::Promising(pod.segment.last_drawn());
                    });
                }
            }
            Doing::Drawing(_) => step("draws".into(), &|pod| {
                let Doing::Drawing(draw) = &mut pod.hosts[i].doing else { unreachable!() };
                if let Some(at) = draw.step(&pod.segment) {
                    pod.hosts[i].doing = Doing::Drawn(at);
                }
                assert_eq!(pod.segment.memory().operations(), 1);
            }),
            Doing::Drawn(at) | Doing::Promising(at) => {
                let (is_promise, at) = (matches!(host.doing, Doing::Promising(_)), *at);
                let entry = match is_promise {
                    true => Entry::Promise(at),
                    false => {
                        let id = TxnId { hlc: at, gateway: NodeId(n.into()) };
                        Entry::Transaction(Logged { id, at, slots: vec![], body: body(at) })
                    }
                };
                let mut ring = host.ring.clone().unwrap();
                if is_promise && ring.last() > at {
                    step("has promised as much".into(), &|pod| pod.hosts[i].doing = Doing::Idle);
                } else if ring.write(&self.segment.clone(), &entry).is_ok() {
                    step(format!("writes {entry:?}").chars().take(40).collect(), &|pod| {
                        pod.hosts[i].ring.as_mut().unwrap().write(&pod.segment, &entry).unwrap();
                        assert_eq!(pod.segment.memory().operations(), 0, "only its own block");
                        pod.pending[i] = (!is_promise).then_some(at);
                        pod.hosts[i].doing = Doing::Written;
                    });
                }
            }
            Doing::Written => step("stores its tail".into(), &|pod| {
                pod.hosts[i].ring.as_mut().unwrap().publish(&pod.segment);
                assert_eq!(pod.segment.memory().operations(), 1);
                let pending = pod.pending[i].take();
                pod.published[i].extend(pending);
                pod.hosts[i].doing = Doing::Idle;
            }),
            Doing::Dead => return,
        }
        if let Some(ring) = &host.ring {
            let mut reclaimed = ring.clone();
            reclaimed.reclaim(&self.segment).unwrap();
            if reclaimed != *ring {
                step("looks for room".into(), &|pod| {
                    pod.hosts[i].ring.as_mut().unwrap().reclaim(&pod.segment).unwrap();
                });
            }
        }
        if !host.applying.is_empty() {
            step("applies".into(), &|pod| pod.apply(i));
        } else if host.reader.as_ref().is_some_and(|reader| reader.clone().next(&self.segment).unwrap().is_some()) {
            step("reads the feed".into(), &|pod| pod.read_feed(i));
        }
        if n == 1 && self.can_die && host.doing != Doing::Out {
            step("dies".into(), &|pod| pod.hosts[1] = Host { doing: Doing::Dead, applying: vec![], ..pod.hosts[1].clone() });
        }
    }

    fn read_feed(&mut self, i: usize) {
        let Some((record, end)) = self.hosts[i].reader.as_mut().unwrap().next(&self.segment).unwrap() else { return };
        for item in record.items {
            let Item::Entry(reference) = item else { continue };
            if usize::from(reference.place.host) == i {
                self.hosts[i].ring.as_mut().unwrap().fed(reference.place, end);
            }
            self.hosts[i].applying.push((reference, end));
        }
        if self.hosts[i].applying.is_empty() {
            self.hosts[i].reader.as_ref().unwrap().passed(&self.segment);
        }
    }

    fn apply(&mut self, i: usize) {
        let (reference, _) = self.hosts[i].applying.remove(0);
        match self.segment.entry(reference.place) {
            Ok(Entry::Transaction(logged)) if logged.body == body(logged.at) => self.hosts[i].applied.push(logged.at),
            other => self.wrong = Some(format!("host {i} applies {other:?} at {:?}", reference.place)),
        }
        if self.hosts[i].applying.is_empty() {
            self.hosts[i].reader.as_ref().unwrap().passed(&self.segment);
        }
    }

    fn leader_steps(&self, out: &mut Vec<(String, Pod)>) {
        let mut step = |what: String, change: &dyn Fn(&mut Pod)| {
            let mut next = self.clone();
            change(&mut next);
            out.push((format!("L {what}"), next));
        };
        let phase = self.segment.host(1).unwrap().phase;
        if phase == Phase::Joining && self.hosts[1].doing != Doing::Dead {
            step("admits host 1".into(), &|pod| assert!(pod.rings.admit(&pod.segment, 1).unwrap()));
        }
        if self.hosts[1].doing == Doing::Dead && phase != Phase::Sealed {
            if phase != Phase::Fenced {
                step("fences host 1".into(), &|pod| pod.rings.fence(&pod.segment, 1).unwrap());
            }
            let mut sealed = self.clone();
            if sealed.rings.seal(&sealed.segment, 1).unwrap() {
                step("seals host 1's ring".into(), &|pod| assert!(pod.rings.seal(&pod.segment, 1).unwrap()));
            }
        }
        for n in 0..2 {
            let mut taken = self.rings.clone();
            if self.taken.is_empty() && !taken.take(&self.segment, n, 1).unwrap().is_empty() {
                step(format!("takes from host {n}'s ring"), &|pod| pod.take(n));
            }
        }
        if !self.taken.is_empty() {
            let mut room = self.feed.clone();
            room.reclaim(&self.segment).unwrap();
            step("publishes".into(), &|pod| pod.publish());
        }
    }

    fn take(&mut self, n: u8) {
        let entries = self.rings.take(&self.segment, n, 1).unwrap();
        self.rings.taken(&self.segment, n);
        self.rings.durable(&self.segment, entries.iter().map(|(_, entry)| entry));
        for (place, entry) in entries {
            if let Some(logged) = entry.logged() {
                if logged.at <= self.closed {
                    self.wrong = Some(format!("{} appears at or below closed {}", logged.at.0, self.closed.0));
                }
                self.log.push(logged.at);
                let reference = Reference { place, id: logged.id, at: logged.at, slots: vec![] };
                self.taken.push(Item::Entry(reference));
            }
        }
        self.closed = self.closed.max(self.rings.closed(&self.segment));
    }

    fn publish(&mut self) {
        let log = LogPosition { index: self.log.len() as u64, term: 3 };
        let items = std::mem::take(&mut self.taken);
        let record = FeedRecord { log, closed: self.closed, watermark: Timestamp::MIN, items };
        self.feed.reclaim(&self.segment).unwrap();
        self.feed.publish(&self.segment, &record).expect("the feed is larger than what a test publishes");
    }
}

impl System for Pod {
    fn next(&self) -> Vec<(String, Pod)> {
        let mut out = Vec::new();
        self.host_steps(0, &mut out);
        self.host_steps(1, &mut out);
        self.leader_steps(&mut out);
        out
    }

    fn wrong(&self) -> Option<String> {
        if self.wrong.is_some() {
            return self.wrong.clone();
        }
        if self.hosts[0].applied != self.log[..self.hosts[0].applied.len()] {
            return Some("host 0 does not apply in the order of the log".into());
        }
        let ended = self.segment.host(1).unwrap().phase == Phase::Sealed;
        let of_host_1 = |at: &&Timestamp| self.published[1].contains(at);
        if ended && self.log.iter().filter(of_host_1).count() != self.published[1].len() {
            return Some("sealed before all was taken that was published".into());
        }
        let unpublished = self.log.iter().find(|at| !self.published.iter().flatten().any(|published| published == *at));
        unpublished.map(|at| format!("{} is in the log and was never published", at.0))
    }
}

fn explored(transactions: [u8; 2], promises: [u8; 2], can_die: bool, rules: Rules) -> Found {
    explore(Pod::new(transactions, promises, can_die, rules), 3_000_000)
}

#[test]
fn closed_and_order_hold_in_every_order_of_steps() {
    explored([1, 1], [1, 1], false, Rules::ALL).is_right(1_000);
}

#[test]
fn a_host_may_die_at_any_step() {
    explored([1, 1], [0, 1], true, Rules::ALL).is_right(1_000);
}

#[test]
fn a_ring_that_is_full_waits_for_the_slowest_host() {
    explored([3, 0], [0, 0], false, Rules::ALL).is_right(500);
}

#[test]
#[cfg_attr(miri, ignore = "a planted bug is found by every order of steps, which takes too long")]
fn planted_bugs_are_found() {
    let plant = |bug, transactions, promises, can_die, what: &str| {
        explored(transactions, promises, can_die, Rules::without(bug)).is_wrong(what);
    };
    plant(PlantedBug::ClosedByClock, [1, 1], [0, 0], false, "at or below closed");
    plant(PlantedBug::SealedBeforeDrained, [1, 1], [0, 0], true, "sealed before");
    plant(PlantedBug::SpaceOfTaken, [3, 0], [0, 0], false, "applies Err");
    plant(PlantedBug::DrawsBeforeAdmitted, [1, 1], [1, 0], false, "at or below closed");
}
