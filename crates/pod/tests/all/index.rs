//! The list of tuples, step by step: two hosts link, find and remove, and host 1 may die between
//! any two steps. A tuple that is linked is found by every search that begins later, until it is
//! marked; no search meets a block that was given to another tuple.

use crate::explorer::{SCENARIOS_MAX, Sparse, System, differs, explore};
use bytes::Bytes;
use meridian_base::{ColumnMask, GroupId, NodeId, Timestamp};
use meridian_pod::{
    Body, Epochs, Find, Insert, Inserted, Layout, NewTuple, Node, PlantedBug, Purpose, Remove, Rules, Segment, Sizes, Slot, Walk,
    Walked,
};
use std::hash::{Hash, Hasher};

/// What a host is to do, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Task {
    /// Key, height.
    Insert(u8, u8),
    Remove(u8),
    Find(u8),
    Walk,
}

#[derive(Clone, Debug, Hash)]
enum Doing {
    Insert(u8, Insert, Node),
    Remove(u8, Remove, Node),
    /// Whether the key was there when the search began, and has been all the time.
    Find(u8, Find, Option<bool>),
    Walk(Walk, Vec<u8>, Vec<u8>),
}

#[derive(Clone, Debug)]
struct List {
    segment: Segment<Sparse>,
    rules: Rules,
    tasks: [Vec<Task>; 2],
    doing: [Option<(u64, Doing)>; 2],
    epochs: [Epochs; 2],
    /// Which keys are linked, and where.
    there: Vec<(u8, Node)>,
    /// Unlinked in this epoch; then they may be used again.
    retired: Vec<(u64, Node)>,
    blocks: u64,
    free: Vec<u64>,
    can_die: bool,
    is_dead: bool,
    wrong: Option<String>,
}

impl Hash for List {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.segment.memory().hash(state);
        (&self.tasks, &self.doing, &self.epochs, &self.there, &self.retired).hash(state);
        (&self.blocks, &self.free, self.is_dead, &self.wrong).hash(state);
    }
}

fn key(k: u8) -> Bytes {
    Bytes::from(vec![k])
}

impl List {
    /// The keys that are there at first, with their heights, and the tasks of both hosts.
    fn new(first: &[(u8, u8)], tasks: [&[Task]; 2], can_die: bool, rules: Rules) -> List {
        let memory = Sparse::new(Layout::new(Sizes::SMALL).unwrap().len());
        let purpose = Purpose { generation: 1, group: GroupId(2), term: 3 };
        let segment = Segment::create(memory, Sizes::SMALL, purpose).unwrap();
        for host in 0..2 {
            assert!(segment.join_as(host, NodeId(1 + u32::from(host))).unwrap());
        }
        let mut list = List {
            segment,
            rules,
            tasks: tasks.map(|tasks| tasks.iter().rev().copied().collect()),
            doing: [None, None],
            epochs: [Epochs::new(0), Epochs::new(1)],
            there: vec![],
            retired: vec![],
            blocks: 0,
            free: vec![],
            can_die,
            is_dead: false,
            wrong: None,
        };
        for (k, height) in first {
            let node = list.write(*k, *height);
            let mut insert = Insert::new(node, key(*k), *height);
            while insert.step(&list.segment).unwrap() != Inserted::Done {}
            list.there.push((*k, node));
        }
        list
    }

    fn write(&mut self, k: u8, height: u8) -> Node {
        let at = self.free.pop().unwrap_or_else(|| {
            self.blocks += 1;
            self.segment.layout().coherent() - 4 * 1024 + 256 * (self.blocks - 1)
        });
        let tuple = NewTuple {
            key: key(k),
            slot: Slot(0),
            newest: Timestamp::MIN,
            columns: ColumnMask::ALL,
            body: Body::Absent,
            written_at: 0,
            lock: None,
            pending: None,
        };
        tuple.write(&self.segment, at, height)
    }

    fn find(&self, k: u8) -> Option<Node> {
        self.there.iter().find(|(there, _)| *there == k).map(|(_, node)| *node)
    }

    fn begin(&mut self, host: usize, task: Task) {
        let epoch = self.epochs[host].enter(&self.segment);
        let doing = match task {
            Task::Insert(k, height) => {
                let node = self.write(k, height);
                Doing::Insert(k, Insert::new(node, key(k), height), node)
            }
            Task::Remove(k) => match self.find(k) {
                None => return self.epochs[host].leave(epoch),
                Some(node) => Doing::Remove(k, Remove::new(node), node),
            },
            Task::Find(k) => Doing::Find(k, Find::new(key(k)), Some(self.find(k).is_some())),
            Task::Walk => {
                let there = self.there.iter().map(|(k, _)| *k).collect();
                Doing::Walk(Walk::new(key(0), key(9)), vec![], there)
            }
        };
        self.doing[host] = Some((epoch, doing));
    }

    /// The set of linked keys changed: what searches in progress must find is not certain any more.
    fn changes(&mut self, k: u8) {
        for (_, doing) in self.doing.iter_mut().flatten() {
            match doing {
                Doing::Find(of, _, must) if *of == k => *must = None,
                Doing::Walk(_, _, must) => must.retain(|of| *of != k),
                _ => {}
            }
        }
    }

    fn step(&mut self, host: usize) {
        let (epoch, mut doing) = self.doing[host].take().unwrap();
        // Whether a removal's mark is set is seen from outside by the node's first word.
        let is_over = match &mut doing {
            Doing::Insert(k, insert, node) => match insert.step(&self.segment).unwrap() {
                Inserted::More => false,
                Inserted::Linked => {
                    if self.find(*k).is_some() {
                        self.wrong = Some(format!("key {k} is there twice"));
                    }
                    self.there.push((*k, *node));
                    self.changes(*k);
                    false
                }
                Inserted::Exists(_) | Inserted::Done => true,
            },
            Doing::Remove(k, remove, node) => {
                let is_out = remove.step(&self.segment).unwrap();
                let is_marked = self.is_marked(*node);
                if is_marked && self.find(*k) == Some(*node) {
                    self.there.retain(|(_, there)| there != node);
                    self.changes(*k);
                }
                if is_out {
                    self.retired.push((self.segment.epoch(), *node));
                }
                is_out
            }
            Doing::Find(k, find, must) => match find.step(&self.segment).unwrap() {
                None => false,
                Some(found) => {
                    if must.is_some_and(|must| must != found.is_equal) {
                        self.wrong = Some(format!("a search for key {k} says {}", found.is_equal));
                    }
                    true
                }
            },
            Doing::Walk(walk, met, must) => match walk.step(&self.segment).unwrap() {
                Walked::More => false,
                Walked::Tuple(node) => {
                    met.push(node.key(&self.segment).unwrap()[0]);
                    if !met.is_sorted_by(|a, b| a < b) {
                        self.wrong = Some(format!("a walk meets {met:?}"));
                    }
                    false
                }
                Walked::Over => {
                    if let Some(k) = must.iter().find(|k| !met.contains(k)) {
                        self.wrong = Some(format!("a walk does not meet key {k}"));
                    }
                    true
                }
            },
        };
        match is_over {
            true => self.epochs[host].leave(epoch),
            false => self.doing[host] = Some((epoch, doing)),
        }
    }

    fn is_marked(&self, node: Node) -> bool {
        node.is_removed(&self.segment)
    }
}

impl System for List {
    fn next(&self) -> Vec<(String, List)> {
        let mut out = Vec::new();
        for host in 0..2 {
            if host == 1 && self.is_dead {
                continue;
            }
            let mut next = self.clone();
            if let Some((_, doing)) = &self.doing[host] {
                next.step(host);
                out.push((format!("host {host} {doing:?}"), next));
            } else if let Some(task) = next.tasks[host].pop() {
                next.begin(host, task);
                out.push((format!("host {host} begins {task:?}"), next));
            }
        }
        // A retired block comes back: every host says how far it is, and the epoch goes on.
        if let Some((epoch, node)) = self.retired.first().copied() {
            let mut next = self.clone();
            for host in (0..2).filter(|host| *host == 0 || !self.is_dead) {
                next.epochs[host].announce(&next.segment);
            }
            if self.is_dead {
                let state = next.segment.host(1).unwrap();
                next.segment.change_phase(1, state, meridian_pod::Phase::Fenced);
            }
            next.segment.advance_epoch().unwrap();
            if next.segment.may_reuse(epoch, self.rules).unwrap() {
                next.retired.remove(0);
                next.free.push(node.place());
            }
            out.push(("epoch".into(), next));
        }
        if self.can_die && !self.is_dead && self.doing[1].is_some() {
            let mut next = self.clone();
            next.is_dead = true;
            next.doing[1] = None;
            out.push(("host 1 dies".into(), next));
        }
        out.retain(|(_, next)| differs(self, next));
        out
    }

    fn wrong(&self) -> Option<String> {
        self.wrong.clone()
    }

    fn wrong_end(&self) -> Option<String> {
        let mut met: Vec<u8> = Vec::new();
        let mut walk = Walk::new(key(0), key(9));
        loop {
            match walk.step(&self.segment).unwrap() {
                Walked::More => {}
                Walked::Over => break,
                Walked::Tuple(node) => met.push(node.key(&self.segment).unwrap()[0]),
            }
        }
        let mut there: Vec<u8> = self.there.iter().map(|(k, _)| *k).collect();
        there.sort_unstable();
        if met != there {
            return Some(format!("{there:?} are linked, and a walk meets {met:?}"));
        }
        let lost = there.iter().find(|k| self.segment.find(&key(**k)).unwrap() != self.find(**k));
        lost.map(|k| format!("a search does not find key {k}"))
    }
}

const SCENARIOS: &[(&str, &[(u8, u8)], [&[Task]; 2])] = &[
    ("side by side", &[(1, 1), (5, 1)], [&[Task::Insert(2, 1)], &[Task::Insert(3, 1)]]),
    ("the same key", &[(1, 1)], [&[Task::Insert(2, 1)], &[Task::Insert(2, 1)]]),
    ("behind what goes", &[(1, 1), (2, 1), (3, 1)], [&[Task::Insert(4, 1)], &[Task::Remove(3)]]),
    ("two that go", &[(1, 1), (2, 1), (3, 1)], [&[Task::Remove(2)], &[Task::Remove(3)]]),
    ("a walk", &[(1, 1), (2, 1), (3, 1)], [&[Task::Walk], &[Task::Remove(2), Task::Insert(2, 1)]]),
    ("an old hint", &[(1, 2), (2, 2), (4, 1)], [&[Task::Find(4)], &[Task::Remove(2), Task::Insert(5, 2)]]),
    ("hints at a time", &[(1, 2), (5, 2)], [&[Task::Insert(2, 2)], &[Task::Insert(3, 2)]]),
];

#[test]
fn the_list_is_whole_in_every_order_and_after_a_death_at_any_step() {
    for (name, first, tasks) in SCENARIOS.iter().take(SCENARIOS_MAX) {
        for can_die in [false, true].into_iter().take(SCENARIOS_MAX) {
            let found = explore(List::new(first, *tasks, can_die, Rules::ALL), 1_000_000);
            println!("{name}, {can_die}: {} states, {} ends", found.states, found.ends);
            found.is_right(50);
        }
    }
}

/// Row 69, C5.
#[test]
#[cfg_attr(miri, ignore = "a planted bug is found by every order of steps, which takes too long")]
fn a_block_that_is_used_again_at_once_is_found() {
    let rules = Rules::without(PlantedBug::ReusesAtOnce);
    let found = SCENARIOS.iter().find_map(|(name, first, tasks)| {
        let wrong = explore(List::new(first, *tasks, false, rules), 1_000_000).wrong;
        wrong.map(|(what, _)| format!("{name}: {what}"))
    });
    println!("{}", found.expect("a walk or a search goes astray"));
}
