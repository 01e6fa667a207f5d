//! Bodies over memory that hardware does not keep coherent, step by step: two hosts write, abandon
//! and read bodies; their caches prefetch and write back at any time; host 1's process may die at
//! any step, and another machine may take its number.
//!
//! The words of tuples are coherent, and `words` explores their protocol; here a commit's steps on
//! them are one.

use crate::explorer::{Found, SCENARIOS_MAX, System, differs, explore};
use bytes::Bytes;
use meridian_base::{ColumnMask, GroupId, NodeId, Timestamp};
use meridian_pod::memory::{Incoherent, LINE, View};
use meridian_pod::{
    Body, BodyRead, BodyWrite, Commit, Epochs, Insert, Inserted, Layout, NewTuple, Node, Phase, Place, PlantedBug, Progress,
    Purpose, Read, Reading, Rules, Segment, SharedWrite, Sizes, Slot, clear_valid_bit,
};
use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

const SIZES: Sizes = Sizes { hosts: 2, ring: 512, feed: 512, descriptors: 2, chunk: 512, node_chunks: 1, body_chunks: 1 };

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Doing {
    Idle,
    /// The tuple is locked; the body goes into this block.
    Writes(usize, u8, Box<Commit>, BodyWrite),
    /// It may be published.
    Publishes(usize, u8, Box<Commit>),
    Reads(usize, u64, Timestamp, BodyRead),
    Dead,
}

/// What a host may do yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Budget {
    writes: u8,
    reads: u8,
    aborts: u8,
    deaths: u8,
    machines: u8,
}

#[derive(Clone, Debug)]
struct Device {
    device: Incoherent,
    rules: Rules,
    tuples: Vec<Node>,
    /// Bytes of each body.
    len: usize,
    budget: Budget,
    doing: [Doing; 2],
    epochs: [Epochs; 2],
    free: Vec<u8>,
    retired: Vec<(u64, u8)>,
    quarantine: Vec<u8>,
    wrong: Option<String>,
}

impl Hash for Device {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.device, self.budget, &self.doing, &self.epochs).hash(state);
        (&self.free, &self.retired, &self.quarantine, &self.wrong).hash(state);
    }
}

/// The body of a version.
fn bytes(version: Timestamp, len: usize) -> Bytes {
    vec![version.0 as u8; len].into()
}

impl Device {
    /// So many tuples, and one block more than that.
    fn new(tuples: u8, len: usize, budget: Budget, rules: Rules) -> Device {
        let layout = Layout::new(SIZES).unwrap();
        let mut device = Device {
            device: Incoherent::new(layout.len(), layout.coherent(), 2),
            rules,
            tuples: vec![],
            len,
            budget,
            doing: [Doing::Idle, Doing::Idle],
            epochs: [Epochs::new(0), Epochs::new(1)],
            free: vec![tuples],
            retired: vec![],
            quarantine: vec![],
            wrong: None,
        };
        device.on(0, |device, view| {
            let purpose = Purpose { generation: 1, group: GroupId(2), term: 3 };
            let segment = Segment::create(view, SIZES, purpose).unwrap();
            for host in 0..2 {
                assert!(segment.join_as(host, NodeId(1 + u32::from(host))).unwrap());
            }
            for block in 0..tuples {
                let version = segment.tick(0);
                let mut write = BodyWrite::new(device.block(block), bytes(version, len), Rules::ALL);
                assert_eq!(write.step(&segment), None);
                let tuple = NewTuple {
                    key: vec![block].into(),
                    slot: Slot(0),
                    newest: version,
                    columns: ColumnMask::ALL,
                    body: write.step(&segment).unwrap(),
                    written_at: 0,
                    lock: None,
                    pending: None,
                };
                let node = tuple.write(&segment, layout.coherent() - 512 + 128 * u64::from(block), 1);
                let mut insert = Insert::new(node, tuple.key, 1);
                while insert.step(&segment).unwrap() != Inserted::Done {}
                device.tuples.push(node);
            }
        });
        for block in 0..=tuples {
            device.lines(block).into_iter().for_each(|line| device.device.evict(0, line));
        }
        device
    }

    fn block(&self, block: u8) -> u64 {
        let lines = (self.len as u64 + 8).div_ceil(LINE);
        Layout::new(SIZES).unwrap().len() - SIZES.chunk + u64::from(block) * lines * LINE
    }
    fn block_of(&self, body: Body) -> u8 {
        let Body::At(at) = body else { unreachable!("all versions have a body") };
        (0..8).find(|block| self.block(*block) == at).unwrap()
    }
    fn lines(&self, block: u8) -> Vec<u64> {
        (self.block(block)..self.block(block + 1)).step_by(LINE as usize).collect()
    }

    /// Runs something with what a host sees of the device.
    fn on<T>(&mut self, host: usize, run: impl FnOnce(&mut Device, View) -> T) -> T {
        let empty = Incoherent::new(LINE, LINE, 0);
        let device = Rc::new(RefCell::new(std::mem::replace(&mut self.device, empty)));
        let result = run(self, View::new(device.clone(), host));
        self.device = Rc::into_inner(device).expect("the view is gone").into_inner();
        result
    }
    fn with<T>(&mut self, host: usize, run: impl FnOnce(&mut Device, &Segment<View>) -> T) -> T {
        self.on(host, |device, view| run(device, &Segment::open(view).unwrap()))
    }

    /// Locks a tuple and begins to write its next version. Whether it was free.
    fn begin_write(&mut self, host: usize, tuple: usize) -> bool {
        self.budget.writes -= 1;
        let block = self.free.remove(0);
        let (at, len) = (self.block(block), self.len);
        self.with(host, |device, segment| {
            let write = SharedWrite { node: device.tuples[tuple], body: Body::At(at), columns: ColumnMask::ALL, is_new: false };
            let mut commit = Commit::new(host as u8, vec![tuple as u16], vec![write], vec![], device.rules);
            loop {
                match commit.step(segment).unwrap() {
                    Progress::More => {}
                    Progress::Certify => break,
                    _ => return false,
                }
            }
            let version = segment.tick(0);
            commit.drawn(version);
            let write = BodyWrite::new(at, bytes(version, len), device.rules);
            device.doing[host] = Doing::Writes(tuple, block, Box::new(commit), write);
            true
        })
    }

    fn publish(&mut self, host: usize, tuple: usize, mut commit: Box<Commit>) {
        self.with(host, |device, segment| {
            let mut read = Read::new(device.tuples[tuple], Timestamp::MAX, Rules::without(PlantedBug::ReadsInFlight));
            let before = loop {
                if let Reading::Version { body, .. } = read.step(segment).unwrap() {
                    break device.block_of(body.body);
                }
            };
            loop {
                match commit.step(segment).unwrap() {
                    Progress::More => {}
                    Progress::Valid => commit.written(Place { host: host as u8, begin: 0, end: 0 }),
                    Progress::Push => commit.pushed(),
                    Progress::InFlight => commit.durable(),
                    Progress::Finished => break,
                    other => unreachable!("{other:?}"),
                }
            }
            device.retired.push((segment.epoch(), before));
            device.doing[host] = Doing::Idle;
        });
    }

    fn abandon(&mut self, host: usize, block: u8, mut commit: Box<Commit>, write: BodyWrite) {
        self.budget.aborts -= 1;
        self.with(host, |device, segment| {
            write.abandon(segment);
            while commit.step(segment).unwrap() != Progress::Valid {}
            commit.give_up();
            while commit.step(segment).unwrap() != Progress::GivenUp {}
            device.free.push(block);
            device.doing[host] = Doing::Idle;
        });
    }

    fn begin_read(&mut self, host: usize, tuple: usize) -> bool {
        self.budget.reads -= 1;
        self.with(host, |device, segment| {
            let epoch = device.epochs[host].enter(segment);
            let mut read = Read::new(device.tuples[tuple], Timestamp::MAX, device.rules);
            loop {
                match read.step(segment).unwrap() {
                    Reading::More => {}
                    Reading::Version { newest, body } => {
                        let read = BodyRead::new(host as u8, device.tuples[tuple], body, device.rules);
                        device.doing[host] = Doing::Reads(tuple, epoch, newest, read);
                        return true;
                    }
                    _ => return false,
                }
            }
        })
    }

    fn step(&mut self, host: usize) {
        let len = self.len;
        match self.doing[host].clone() {
            Doing::Idle | Doing::Dead => {}
            Doing::Writes(tuple, block, commit, mut write) => self.with(host, |device, segment| {
                device.doing[host] = match write.step(segment) {
                    None => Doing::Writes(tuple, block, commit, write),
                    Some(_) => Doing::Publishes(tuple, block, commit),
                };
            }),
            Doing::Publishes(tuple, _, commit) => self.publish(host, tuple, commit),
            Doing::Reads(tuple, epoch, version, mut read) => self.with(host, |device, segment| match read.step(segment) {
                Ok(None) => device.doing[host] = Doing::Reads(tuple, epoch, version, read),
                Ok(Some(body)) if body.as_ref() == Some(&bytes(version, len)) => {
                    device.epochs[host].leave(epoch);
                    device.doing[host] = Doing::Idle;
                }
                other => device.wrong = Some(format!("host {host} reads {other:?} for version {}", version.0)),
            }),
        }
    }

    fn reclaim(&mut self) {
        let (epoch, block) = self.retired[0];
        let dead = self.doing[1] == Doing::Dead;
        self.with(0, |device, segment| {
            let state = segment.host(1).unwrap();
            if dead {
                segment.change_phase(1, state, Phase::Fenced);
            }
            (0..2).filter(|host| *host == 0 || !dead).for_each(|host| device.epochs[host].announce(segment));
            segment.advance_epoch().unwrap();
            if segment.may_reuse(epoch, device.rules).unwrap() {
                device.retired.remove(0);
                device.free.push(block);
            }
        });
    }

    fn die(&mut self) {
        self.budget.deaths -= 1;
        if let Doing::Writes(_, block, commit, _) | Doing::Publishes(_, block, commit) = self.doing[1].clone() {
            let mut commit = commit;
            // Repair frees the tuple; `words` does it step by step.
            self.with(0, |_, segment| {
                while commit.step(segment).unwrap() != Progress::Valid {}
                commit.give_up();
                while commit.step(segment).unwrap() != Progress::GivenUp {}
            });
            match self.rules.quarantines() {
                false => self.free.push(block),
                true => self.quarantine.push(block),
            }
        }
        self.doing[1] = Doing::Dead;
    }

    fn replace_machine(&mut self) {
        self.budget.machines -= 1;
        let stale: Vec<u64> = (0..=self.tuples.len() as u8).flat_map(|block| self.lines(block)).collect();
        self.device.replace_machine(1, &stale);
        self.with(0, |device, segment| {
            for node in device.tuples.clone() {
                clear_valid_bit(segment, node, 1, device.rules).unwrap();
            }
            let state = segment.host(1).unwrap();
            if state.phase == Phase::Fenced {
                segment.change_phase(1, state, Phase::Free);
                assert!(segment.join_as(1, NodeId(9)).unwrap());
            }
        });
        self.epochs[1] = Epochs::new(1);
        self.doing[1] = Doing::Idle;
    }
}

impl System for Device {
    fn next(&self) -> Vec<(String, Device)> {
        let mut out = Vec::new();
        let mut step = |what: String, change: &dyn Fn(&mut Device) -> bool| {
            let mut next = self.clone();
            if change(&mut next) {
                out.push((what, next));
            }
        };
        for host in 0..2 {
            // A cache does what it wants, that of a machine whose process died as well.
            for line in (0..=self.tuples.len() as u8).flat_map(|block| self.lines(block)) {
                step(format!("host {host} prefetches {line:#x}"), &|next| {
                    next.device.fetch(host, line);
                    true
                });
                step(format!("host {host} evicts {line:#x}"), &|next| {
                    next.device.evict(host, line);
                    true
                });
            }
            match &self.doing[host] {
                Doing::Idle => {
                    for tuple in 0..self.tuples.len() {
                        if self.budget.writes > 0 && !self.free.is_empty() {
                            step(format!("host {host} locks tuple {tuple}"), &|next| next.begin_write(host, tuple));
                        }
                        if self.budget.reads > 0 {
                            step(format!("host {host} reads tuple {tuple}'s words"), &|next| next.begin_read(host, tuple));
                        }
                    }
                }
                Doing::Dead => {}
                doing => step(format!("host {host} {doing:?}").chars().take(60).collect(), &|next| {
                    next.step(host);
                    true
                }),
            }
            if let Doing::Writes(_, block, commit, write) = &self.doing[host]
                && self.budget.aborts > 0
            {
                step(format!("host {host} abandons block {block}"), &|next| {
                    next.abandon(host, *block, commit.clone(), write.clone());
                    true
                });
            }
        }
        if !self.retired.is_empty() {
            step("epoch".into(), &|next| {
                next.reclaim();
                true
            });
        }
        match self.doing[1] {
            Doing::Dead => {
                if let Some(block) = self.quarantine.first().copied() {
                    step("the dead host's machine has flushed its cache".into(), &|next| {
                        next.lines(block).into_iter().for_each(|line| next.device.evict(1, line));
                        next.quarantine.remove(0);
                        next.free.push(block);
                        true
                    });
                } else if self.budget.machines > 0 {
                    step("another machine joins".into(), &|next| {
                        next.replace_machine();
                        true
                    });
                }
            }
            Doing::Idle => {}
            _ if self.budget.deaths > 0 => step("host 1 dies".into(), &|next| {
                next.die();
                true
            }),
            _ => {}
        }
        out.retain(|(_, next)| differs(self, next));
        out
    }

    fn wrong(&self) -> Option<String> {
        self.wrong.clone()
    }
}

const NONE: Budget = Budget { writes: 0, reads: 0, aborts: 0, deaths: 0, machines: 0 };

/// Tuples, bytes of a body, and what may happen.
fn scenarios() -> Vec<(u8, usize, Budget)> {
    vec![
        (1, 1, Budget { writes: 2, reads: 2, ..NONE }),
        (1, 1, Budget { writes: 3, reads: 1, aborts: 1, ..NONE }),
        (1, 1, Budget { writes: 3, reads: 1, deaths: 1, ..NONE }),
        (1, 1, Budget { writes: 1, reads: 2, deaths: 1, machines: 1, ..NONE }),
        (1, 60, Budget { writes: 1, reads: 1, ..NONE }),
    ]
}

fn run(scenario: &(u8, usize, Budget), rules: Rules) -> Found {
    explore(Device::new(scenario.0, scenario.1, scenario.2, rules), 2_000_000)
}

#[test]
fn no_reader_gets_other_bytes_than_its_versions() {
    for scenario in scenarios().into_iter().take(SCENARIOS_MAX) {
        let found = run(&scenario, Rules::ALL);
        println!("{scenario:?}: {} states", found.states);
        if let Some((what, steps)) = found.wrong {
            panic!("{what}:\n  {}", steps.join("\n  "));
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "a planted bug is found by every order of steps, which takes too long")]
fn every_planted_bug_is_found() {
    let all = [
        PlantedBug::PublishesUnflushed,
        PlantedBug::NeverInvalidates,
        PlantedBug::KeepsValidBits,
        PlantedBug::MarksBlindly,
        PlantedBug::ReusesAtOnce,
        PlantedBug::FreesUnflushed,
        PlantedBug::NoQuarantine,
        PlantedBug::DeadBitsStay,
    ];
    let mut missed = vec![];
    for bug in all {
        let wrong = scenarios().into_iter().find_map(|scenario| run(&scenario, Rules::without(bug)).wrong);
        match wrong {
            Some((what, steps)) => println!("{}: {what}, {} steps", bug.name(), steps.len()),
            None => missed.push(bug),
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}
