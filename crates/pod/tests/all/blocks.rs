//! Blocks, step by step: two hosts take chunks, allocate, retire each other's blocks and give them
//! back; host 1 may die at any step, and host 0 takes its chunks when nothing is in them any more.
//! No block is given out while it is in use.

use crate::explorer::{SCENARIOS_MAX, Sparse, System, differs, explore};
use meridian_base::{GroupId, NodeId};
use meridian_pod::{Allocator, Area, Epochs, Layout, Orphans, Phase, Purpose, Refill, Rules, Segment, Sizes, lines_of};
use std::hash::{Hash, Hasher};

/// Two chunks of two blocks.
const SIZES: Sizes = Sizes { ring: 512, feed: 512, descriptors: 1, chunk: 512, node_chunks: 1, body_chunks: 2, hosts: 2 };
const LINES: u16 = 4;

#[derive(Clone, Debug)]
struct Blocks {
    segment: Segment<Sparse>,
    hosts: [Allocator; 2],
    refills: [Option<Refill>; 2],
    epochs: [Epochs; 2],
    allocations: [u8; 2],
    retirements: u8,
    /// Who has allocated it. What a dead host had is nobody's.
    used: Vec<(u64, usize)>,
    is_dead: bool,
    orphans: Option<Orphans>,
    /// Chunks that were freed.
    freed: u8,
    wrong: Option<String>,
}

impl Hash for Blocks {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.segment.memory().hash(state);
        (&self.hosts, &self.refills, &self.allocations, self.retirements, &self.used).hash(state);
        (self.is_dead, &self.orphans, self.freed, &self.wrong).hash(state);
    }
}

impl Blocks {
    fn new(allocations: [u8; 2], retirements: u8) -> Blocks {
        let memory = Sparse::new(Layout::new(SIZES).unwrap().len());
        let purpose = Purpose { generation: 1, group: GroupId(2), term: 3 };
        let segment = Segment::create(memory, SIZES, purpose).unwrap();
        for host in 0..2 {
            assert!(segment.join_as(host, NodeId(1 + u32::from(host))).unwrap());
        }
        Blocks {
            segment,
            hosts: [0, 1].map(|host| Allocator::new(host, Rules::ALL)),
            refills: [None, None],
            epochs: [Epochs::new(0), Epochs::new(1)],
            allocations,
            retirements,
            used: vec![],
            is_dead: false,
            orphans: None,
            freed: 0,
            wrong: None,
        }
    }

    fn allocate(&mut self, host: usize) {
        match self.hosts[host].allocate(Area::Bodies, LINES) {
            None => self.refills[host] = Some(Refill::new(&self.segment, &self.hosts[host], Area::Bodies, LINES)),
            Some(at) => {
                self.allocations[host] -= 1;
                if let Some((_, by)) = self.used.iter().find(|(used, _)| *used == at) {
                    self.wrong = Some(format!("host {host} gets {at:#x}, which host {by} uses"));
                }
                self.used.push((at, host));
            }
        }
    }

    fn refill(&mut self, host: usize) {
        let mut refill = self.refills[host].take().unwrap();
        match refill.step(&self.segment, &mut self.hosts[host]).unwrap() {
            None => self.refills[host] = Some(refill),
            Some(true) => {}
            // No chunk is left: it allocates nothing more.
            Some(false) => self.allocations[host] = 0,
        }
    }

    fn sweep(&mut self) {
        let mut orphans = self.orphans.clone().unwrap_or_else(|| Orphans::new(1, Rules::ALL));
        // No tuple is in the list: what the dead host used is of use to nobody.
        orphans.begin();
        orphans.end(&self.segment).unwrap();
        self.used.retain(|(_, host)| *host == 0);
        if orphans.free_one(&self.segment, true).unwrap().is_some() {
            self.freed += 1;
        }
        self.orphans = Some(orphans);
    }
}

impl System for Blocks {
    fn next(&self) -> Vec<(String, Blocks)> {
        let mut out = Vec::new();
        let mut step = |what: String, change: &dyn Fn(&mut Blocks)| {
            let mut next = self.clone();
            change(&mut next);
            out.push((what, next));
        };
        for host in (0..2).filter(|host| *host == 0 || !self.is_dead) {
            if self.refills[host].is_some() {
                step(format!("host {host} looks for more"), &|next| next.refill(host));
            } else if self.allocations[host] > 0 {
                step(format!("host {host} allocates"), &|next| next.allocate(host));
            }
            let others = self.used.iter().position(|(_, by)| *by != host && !self.is_dead);
            if let Some(i) = others.filter(|_| self.retirements > 0) {
                step(format!("host {host} retires {:#x}", self.used[i].0), &|next| {
                    next.retirements -= 1;
                    let (at, _) = next.used.remove(i);
                    next.hosts[host].retire(&next.segment, at).unwrap();
                });
            }
            step(format!("host {host} reclaims"), &|next| {
                next.hosts[host].reclaim(&next.segment).unwrap();
            });
        }
        step("epoch".into(), &|next| {
            if next.segment.epoch() < 3 {
                (0..2).filter(|host| *host == 0 || !next.is_dead).for_each(|host| next.epochs[host].announce(&next.segment));
                next.segment.advance_epoch().unwrap();
            }
        });
        if !self.is_dead {
            step("host 1 dies".into(), &|next| {
                next.is_dead = true;
                let state = next.segment.host(1).unwrap();
                assert!(next.segment.change_phase(1, state, Phase::Fenced));
            });
        } else if self.freed < 2 {
            step("host 0 looks at the dead host's chunks".into(), &Blocks::sweep);
        }
        out.retain(|(_, next)| differs(self, next));
        out
    }

    fn wrong(&self) -> Option<String> {
        self.wrong.clone()
    }
}

#[test]
fn no_block_is_given_out_while_it_is_used() {
    assert_eq!(lines_of(64 * 4), LINES);
    for (allocations, retirements) in [([2, 2], 0), ([3, 1], 1), ([1, 2], 1)].into_iter().take(SCENARIOS_MAX) {
        let found = explore(Blocks::new(allocations, retirements), 1_500_000);
        println!("{allocations:?}, {retirements}: {} states, {} ends", found.states, found.ends);
        found.is_right(500);
    }
}
