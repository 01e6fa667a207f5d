//! A host is gone: L repairs what it has left half done, and takes its slots.
//!
//! ```text
//!  fence                          its ring's tail is final
//!  repair of each descriptor      frees, or finishes when the record is durable
//!  seal                           its ring is drained
//!  take over (P19)                when the last of it, and all that the host can have applied, is
//!                                 applied here: raises the indexes (P20),
//!                                 learns which keys are shared, takes the slots, tells everybody
//!  release                        another host may have its line
//! ```

use crate::host::{Host, Task};
use crate::message::Message;
use crate::rows::Rows;
use bytes::Bytes;
use meridian_base::Key;
use meridian_pod::memory::Memory;
use meridian_pod::{
    Damaged, Hold, Orphans, Phase, Remove, Repair, Repaired, Rules, Segment, Slot, Walk, Walked, clear_valid_bit,
};

/// Behind every key.
const END: [u8; 16] = [0xff; 16];

/// What follows the repairs.
const REST: u16 = u16::MAX;

#[derive(Debug)]
enum Repairing {
    Steps(Box<Repair>),
    Unlink(Box<Repair>, Remove),
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Seal,
    /// The slots are taken when this entry of the log is applied.
    Take(u64),
    Release,
    /// Blocks of its chunks come back.
    Sweep,
    Over,
}

/// The end of a host.
#[derive(Debug)]
pub(crate) struct TakeOver {
    repairs: Vec<Repairing>,
    stage: Stage,
    orphans: Orphans,
}

impl TakeOver {
    fn new<M: Memory>(segment: &Segment<M>, host: u8, rules: Rules) -> TakeOver {
        let descriptors = 0..segment.layout().sizes().descriptors as u16;
        TakeOver {
            repairs: descriptors.map(|number| Repairing::Steps(Box::new(Repair::new(host, number, rules)))).collect(),
            stage: Stage::Seal,
            orphans: Orphans::new(host, rules),
        }
    }

    pub fn parts(&self) -> impl Iterator<Item = u16> {
        let open = self.repairs.iter().enumerate().filter(|(_, repair)| !matches!(repair, Repairing::Done));
        open.map(|(number, _)| number as u16).chain((self.stage != Stage::Over).then_some(REST))
    }
    fn is_repaired(&self) -> bool {
        self.repairs.iter().all(|repair| matches!(repair, Repairing::Done))
    }
    pub fn has_taken_over(&self) -> bool {
        !matches!(self.stage, Stage::Seal | Stage::Take(_))
    }
    pub fn has_released(&self) -> bool {
        matches!(self.stage, Stage::Sweep | Stage::Over)
    }
}

impl<M: Memory + Clone + Send + Sync + 'static, R: Rows> Host<M, R> {
    /// L: the caller knows that this host will never write again.
    ///
    /// # Errors
    ///
    /// If the segment is damaged.
    ///
    /// # Panics
    ///
    /// If this host does not lead.
    pub fn is_gone(&mut self, host: u8) -> Result<(), Damaged> {
        let leader = self.leader.as_mut().expect("only L is told");
        leader.rings.fence(&self.segment, host)?;
        leader.gone.insert(host, TakeOver::new(&self.segment, host, self.config.rules));
        self.jobs.retain(|_, job| job.asker() != Some(host) || job.has_lock());
        Ok(())
    }

    /// L: whether a host that was gone has no line, and no slots, any more.
    pub fn has_released(&self, host: u8) -> bool {
        self.leader.as_ref().and_then(|leader| leader.gone.get(&host)).is_none_or(TakeOver::has_released)
    }

    /// L: whether it has the slots of a host that was gone, and has applied all that it pushed.
    pub fn has_taken_over(&self, host: u8) -> bool {
        self.leader.as_ref().and_then(|leader| leader.gone.get(&host)).is_none_or(TakeOver::has_taken_over)
    }

    pub(crate) fn take_over(&mut self, host: u8, part: u16) -> Result<(), Damaged> {
        let leader = self.leader.as_mut().expect("only L takes over");
        let durable = leader.durable_of.get(&host).copied().unwrap_or(0);
        let Some(mut gone) = leader.gone.remove(&host) else { return Ok(()) };
        match part {
            REST => self.step_rest(host, &mut gone)?,
            part => {
                let repairing = &mut gone.repairs[usize::from(part)];
                *repairing = self.step_repair(std::mem::replace(repairing, Repairing::Done), durable)?;
            }
        }
        self.leader.as_mut().expect("it was there").gone.insert(host, gone);
        Ok(())
    }

    fn step_repair(&mut self, repairing: Repairing, durable: u64) -> Result<Repairing, Damaged> {
        Ok(match repairing {
            Repairing::Steps(mut repair) => match repair.step(&self.segment)? {
                Repaired::More => Repairing::Steps(repair),
                Repaired::Done => Repairing::Done,
                Repaired::Unlink(node) => Repairing::Unlink(repair, Remove::new(node)),
                Repaired::Wait { position, .. } => {
                    if position < durable {
                        repair.durable();
                    }
                    Repairing::Steps(repair)
                }
            },
            Repairing::Unlink(repair, mut remove) => match remove.step(&self.segment)? {
                true => Repairing::Steps(repair),
                false => Repairing::Unlink(repair, remove),
            },
            Repairing::Done => Repairing::Done,
        })
    }

    fn step_rest(&mut self, host: u8, gone: &mut TakeOver) -> Result<(), Damaged> {
        let leader = self.leader.as_mut().expect("only L takes over");
        match gone.stage {
            Stage::Seal => {
                if leader.rings.seal(&self.segment, host)? {
                    // It may have applied more than this host, and let tuples go home for that.
                    let published = match self.config.rules.takes_over_caught_up() {
                        false => 0,
                        true => leader.published,
                    };
                    gone.stage = Stage::Take(leader.last_with(host).max(published));
                }
            }
            Stage::Take(index) => {
                let is_applied = self.state.applied().index >= index || !self.config.rules.takes_over_applied();
                if gone.is_repaired() && is_applied && self.may_lock(Task::TakeOver(host, REST)) {
                    self.take_slots(host)?;
                    gone.stage = Stage::Release;
                }
            }
            Stage::Release => {
                let rules = self.config.rules;
                self.walk(|segment, node| clear_valid_bit(segment, node, host, rules))?;
                let leader = self.leader.as_mut().expect("only L takes over");
                leader.rings.release(&self.segment, host)?;
                gone.stage = Stage::Sweep;
            }
            Stage::Sweep => {
                gone.orphans.begin();
                let orphans = &mut gone.orphans;
                self.walk(|segment, node| orphans.meets(segment, node))?;
                gone.orphans.end(&self.segment)?;
                gone.stage = Stage::Over;
            }
            Stage::Over => {}
        }
        Ok(())
    }

    /// Visits all shared tuples.
    fn walk(&mut self, mut visit: impl FnMut(&Segment<M>, meridian_pod::Node) -> Result<(), Damaged>) -> Result<(), Damaged> {
        let epoch = self.epochs.enter(&self.segment);
        let mut walk = Walk::new(Bytes::new(), Bytes::from_static(&END));
        loop {
            match walk.step(&self.segment)? {
                Walked::More => {}
                Walked::Tuple(node) => visit(&self.segment, node)?,
                Walked::Over => break,
            }
        }
        self.epochs.leave(epoch);
        Ok(())
    }

    /// Under the host's lock: what the dead host owned is L's.
    fn take_slots(&mut self, host: u8) -> Result<(), Damaged> {
        if self.config.rules.gains_unknown_past() {
            self.engine.gained(&self.state);
        }
        let slots: Vec<bool> = (0..self.owners.len()).map(|slot| self.owners[slot] == host).collect();
        let mut shared = Vec::new();
        self.walk(|segment, node| {
            if slots[usize::from(node.slot(segment)?.0)] {
                shared.push((node.key(segment)?, node));
            }
            Ok(())
        })?;
        for (key, node) in shared {
            let key = Key::new(&key);
            self.hand.push_back(key.clone());
            self.home.insert(key, node);
        }
        for slot in Slot::all().filter(|slot| slots[usize::from(slot.0)]) {
            let held = self.segment.holder(slot)?;
            self.segment.change_holder(slot, held, Hold::Owned, self.config.host);
            self.owners[usize::from(slot.0)] = self.config.host;
        }
        self.told_of_takeover(host)?;
        for other in 0..self.segment.hosts() {
            let is_there = self.segment.host(other)?.phase == Phase::Live;
            if other != self.config.host && other != host && is_there {
                self.send(other, Message::TakenOver { host });
            }
        }
        Ok(())
    }
}
