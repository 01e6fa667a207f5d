//! Inserts into a shared range, step by step: one transaction reads a range and writes another key,
//! the other reads that key and inserts into the range. Only one of them may commit, whichever
//! steps come first. Host 1 may die at any step, and is repaired.

use crate::explorer::{SCENARIOS_MAX, Sparse, System, differs, explore};
use bytes::Bytes;
use meridian_base::{ColumnMask, GroupId, NodeId, Timestamp, TxnId};
use meridian_pod::{
    Body, Commit, Draw, Entry, Insert, Inserted, Layout, Logged, NewTuple, Node, PlantedBug, Progress, Purpose, Read, Reading,
    Remove, Repair, Repaired, RingWriter, Rings, Rules, Segment, SharedRange, SharedRead, SharedWrite, Sizes, Slot, Walk, Walked,
};
use std::hash::{Hash, Hasher};

/// There from the beginning; key 2 is not.
const THERE: [u8; 3] = [1, 3, 7];

fn key(k: u8) -> Bytes {
    Bytes::from(vec![k])
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Stage {
    New,
    /// Of the range's reader: a tuple it has met is being read.
    Walk(Walk, Option<Read>),
    /// Of the other: key 7.
    Read(Read),
    Commit(Box<Commit>),
    Link(Box<Commit>, usize, Insert),
    Draw(Box<Commit>, Draw),
    Committed,
    Failed,
    Dead,
}

#[derive(Clone, Debug)]
struct Pod {
    segment: Segment<Sparse>,
    rules: Rules,
    rings: Rings,
    writers: [RingWriter; 2],
    nodes: Vec<Node>,
    stage: [Stage; 2],
    s: [Timestamp; 2],
    /// It has read key 2 (host 0), or key 7 (host 1), as the other wrote it.
    saw: [bool; 2],
    can_die: bool,
    repair: Option<Repair>,
}

impl Hash for Pod {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.segment.memory().hash(state);
        (&self.rings, &self.writers, &self.stage, &self.s, &self.saw, &self.repair).hash(state);
    }
}

fn tuple(k: u8) -> NewTuple {
    NewTuple {
        key: key(k),
        slot: Slot(0),
        newest: Timestamp::MIN,
        columns: ColumnMask::ALL,
        body: Body::Absent,
        written_at: 0,
        lock: None,
        pending: None,
    }
}

impl Pod {
    fn new(can_die: bool, rules: Rules) -> Pod {
        let memory = Sparse::new(Layout::new(Sizes::SMALL).unwrap().len());
        let purpose = Purpose { generation: 1, group: GroupId(2), term: 3 };
        let segment = Segment::create(memory, Sizes::SMALL, purpose).unwrap();
        let mut rings = Rings::new(&segment, rules);
        let writers = [0, 1].map(|host| {
            assert!(segment.join_as(host, NodeId(1 + u32::from(host))).unwrap());
            assert!(rings.admit(&segment, host).unwrap());
            RingWriter::new(&segment, host, rules)
        });
        let mut pod = Pod {
            segment,
            rules,
            rings,
            writers,
            nodes: vec![],
            stage: [Stage::New, Stage::New],
            s: [Timestamp::MIN; 2],
            saw: [false; 2],
            can_die,
            repair: None,
        };
        for (i, k) in THERE.into_iter().enumerate() {
            let node = tuple(k).write(&pod.segment, pod.block(i), 1);
            let mut insert = Insert::new(node, key(k), 1);
            while insert.step(&pod.segment).unwrap() != Inserted::Done {}
            pod.nodes.push(node);
        }
        pod
    }

    fn block(&self, i: usize) -> u64 {
        self.segment.layout().coherent() - 4 * 1024 + 128 * i as u64
    }

    fn write(&self, host: usize) -> SharedWrite {
        let node = if host == 0 { self.nodes[2] } else { self.segment.node_at(self.block(3)).unwrap() };
        SharedWrite { node, body: Body::Absent, columns: ColumnMask::ALL, is_new: host == 1 }
    }

    /// Whether something has happened.
    fn step(&mut self, host: usize) -> bool {
        let s = self.s[host];
        match self.stage[host].clone() {
            Stage::New => {
                self.s[host] = self.segment.last_drawn();
                self.stage[host] = match host {
                    0 => Stage::Walk(Walk::new(key(0), key(5)), None),
                    _ => Stage::Read(Read::new(self.nodes[2], self.s[1], self.rules)),
                };
            }
            Stage::Walk(mut walk, None) => match walk.step(&self.segment).unwrap() {
                Walked::More => self.stage[0] = Stage::Walk(walk, None),
                Walked::Tuple(node) => self.stage[0] = Stage::Walk(walk, Some(Read::new(node, s, self.rules))),
                Walked::Over => {
                    let range = SharedRange { begin: key(0), end: key(5), until: s, columns: ColumnMask::ALL };
                    let commit = Commit::new(0, vec![0], vec![self.write(0)], vec![], self.rules);
                    self.stage[0] = Stage::Commit(Box::new(commit.with_ranges(vec![range])));
                }
            },
            Stage::Walk(walk, Some(mut read)) => match read.step(&self.segment).unwrap() {
                Reading::More => self.stage[0] = Stage::Walk(walk, Some(read)),
                // Begins to read this tuple again, as a server does after it has waited.
                Reading::Wait(_) => return false,
                Reading::Newer(_) | Reading::Gone => self.stage[0] = Stage::Failed,
                Reading::Version { newest, .. } => {
                    self.saw[0] |= newest != Timestamp::MIN;
                    self.stage[0] = Stage::Walk(walk, None);
                }
            },
            Stage::Read(mut read) => match read.step(&self.segment).unwrap() {
                Reading::More => self.stage[1] = Stage::Read(read),
                Reading::Wait(_) => {
                    self.stage[1] = Stage::Read(Read::new(self.nodes[2], s, self.rules));
                }
                Reading::Newer(_) | Reading::Gone => self.stage[1] = Stage::Failed,
                Reading::Version { newest, .. } => {
                    self.saw[1] = newest != Timestamp::MIN;
                    let read = SharedRead { node: self.nodes[2], until: s, columns: ColumnMask::ALL };
                    let commit = Commit::new(1, vec![0], vec![self.write(1)], vec![read], self.rules);
                    self.stage[1] = Stage::Commit(Box::new(commit));
                }
            },
            Stage::Link(mut commit, i, mut insert) => {
                self.stage[host] = match insert.step(&self.segment).unwrap() {
                    Inserted::More => Stage::Link(commit, i, insert),
                    Inserted::Exists(node) => {
                        commit.linked(Some(node));
                        Stage::Commit(commit)
                    }
                    Inserted::Linked | Inserted::Done => {
                        commit.linked(None);
                        Stage::Commit(commit)
                    }
                };
            }
            Stage::Draw(mut commit, mut draw) => {
                self.stage[host] = match draw.step(&self.segment) {
                    None => Stage::Draw(commit, draw),
                    Some(p) => {
                        commit.drawn(p);
                        Stage::Commit(commit)
                    }
                };
            }
            Stage::Commit(commit) => return self.commit(host, commit),
            Stage::Committed | Stage::Failed | Stage::Dead => return false,
        }
        true
    }

    fn commit(&mut self, host: usize, mut commit: Box<Commit>) -> bool {
        self.stage[host] = match commit.step(&self.segment).unwrap() {
            Progress::More => Stage::Commit(commit),
            Progress::Busy(_) | Progress::Gone(_) | Progress::Conflict(_) | Progress::GivenUp => Stage::Failed,
            Progress::Link(i, claim) => {
                let tuple = NewTuple { lock: Some(claim), pending: Some(Body::Absent), ..tuple(2) };
                let node = tuple.write(&self.segment, self.block(3), 1);
                Stage::Link(commit, i, Insert::new(node, key(2), 1))
            }
            Progress::Certify => Stage::Draw(commit, Draw::new(Timestamp::MIN, 0)),
            Progress::Valid => {
                let at = commit.p().unwrap();
                let id = TxnId { hlc: Timestamp(host as u64), gateway: NodeId(1) };
                let entry = Entry::Transaction(Logged { id, at, slots: vec![], body: Bytes::new() });
                commit.written(self.writers[host].write(&self.segment, &entry).unwrap());
                Stage::Commit(commit)
            }
            Progress::Push => {
                self.writers[host].publish(&self.segment);
                commit.pushed();
                Stage::Commit(commit)
            }
            Progress::InFlight => {
                commit.durable();
                Stage::Commit(commit)
            }
            Progress::Finished => Stage::Committed,
        };
        true
    }

    fn repair(&mut self) -> bool {
        let Some(mut repair) = self.repair.clone() else { return false };
        match repair.step(&self.segment).unwrap() {
            Repaired::More | Repaired::Done => {}
            Repaired::Wait { .. } => {
                // The log has it as soon as L takes it.
                repair.durable();
                self.stage[1] = Stage::Committed;
            }
            Repaired::Unlink(node) => {
                let mut remove = Remove::new(node);
                while !remove.step(&self.segment).unwrap() {}
            }
        }
        self.repair = Some(repair);
        true
    }
}

impl System for Pod {
    fn next(&self) -> Vec<(String, Pod)> {
        let mut out = Vec::new();
        for host in 0..2 {
            let mut next = self.clone();
            if next.step(host) {
                out.push((format!("host {host}: {:?}", self.stage[host]).chars().take(100).collect(), next));
            }
        }
        let mut next = self.clone();
        if next.repair() {
            out.push(("repair".into(), next));
        }
        if self.can_die && self.repair.is_none() && !matches!(self.stage[1], Stage::Committed | Stage::Failed) {
            let mut next = self.clone();
            next.stage[1] = Stage::Dead;
            next.rings.fence(&next.segment, 1).unwrap();
            next.repair = Some(Repair::new(1, 0, self.rules));
            out.push(("host 1 dies".into(), next));
        }
        out.retain(|(_, next)| differs(self, next));
        out
    }

    fn wrong(&self) -> Option<String> {
        let both = self.stage.iter().all(|stage| *stage == Stage::Committed);
        (both && !self.saw[0] && !self.saw[1]).then(|| "neither has seen the other, and both committed".into())
    }

    fn wrong_end(&self) -> Option<String> {
        let is_over = |stage: &Stage| matches!(stage, Stage::Committed | Stage::Failed | Stage::Dead);
        let waits = matches!(self.stage[0], Stage::Walk(_, Some(_)));
        if !self.stage.iter().all(is_over) && !waits {
            return Some(format!("stuck: {:?}", self.stage));
        }
        let found = self.segment.find(&key(2)).unwrap();
        (self.stage[1] == Stage::Committed && found.is_none()).then(|| "the insert is lost".into())
    }
}

#[test]
fn a_range_and_an_insert_see_each_other() {
    for can_die in [false, true].into_iter().take(SCENARIOS_MAX) {
        let found = explore(Pod::new(can_die, Rules::ALL), 1_000_000);
        println!("{can_die}: {} states, {} ends", found.states, found.ends);
        found.is_right(500);
    }
}

/// Row 63.
#[test]
#[cfg_attr(miri, ignore = "a planted bug is found by every order of steps, which takes too long")]
fn a_node_that_is_linked_late_is_a_phantom() {
    let found = explore(Pod::new(false, Rules::without(PlantedBug::LinksLate)), 1_000_000);
    found.is_wrong("neither has seen the other");
}
