//! What L does with the descriptors of a dead host (`docs/design/pod.md`).
//!
//! The host is fenced, so its ring's tail is final. A transaction whose record lies before the tail
//! is decided: L finishes its tuples when the record is durable. Any other never was: L frees its
//! tuples at once. A tuple that the host was taking out stays; one that was dead already goes.
//!
//! L may die during the repair as well: then the pod ends, and nothing is left to repair.

use crate::commit::Finish;
use crate::descriptor::{PLACES_MAX, Place};
use crate::error::Damaged;
use crate::layout::host;
use crate::memory::Memory;
use crate::rules::Rules;
use crate::segment::Segment;
use crate::tuple::{Claim, Kind, LOCK, Lock, Node, PENDING};
use meridian_base::{ColumnMask, Timestamp};

/// What a step of a repair has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Repaired {
    /// The next step.
    More,
    /// The record at this position of the dead host's ring, at this timestamp, has to become
    /// durable; then [`Repair::durable`].
    Wait { position: u64, p: Timestamp },
    /// The tuple is dead: unlink it, and go on.
    Unlink(Node),
    /// The descriptor is free.
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum At {
    State,
    Ring,
    Tail(u64),
    P(u64),
    Wait(u64),
    Next,
    Look(Node),
    Clear(Node),
    Finish(Node, Finish),
    Unlock(Node),
    More,
    End,
    Wake,
}

/// The repair of one descriptor of a dead host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Repair {
    rules: Rules,
    claim: Claim,
    number: u16,
    index: usize,
    /// The timestamp, if its record is decided.
    decided: Option<Timestamp>,
    at: At,
}

impl Repair {
    /// Of this descriptor of a fenced host.
    pub fn new(host: u8, descriptor: u16, rules: Rules) -> Repair {
        let claim = Claim { host, descriptor, incarnation: 0 };
        Repair { rules, claim, number: descriptor, index: 0, decided: None, at: At::State }
    }

    /// The record that [`Repaired::Wait`] names is durable.
    ///
    /// # Panics
    ///
    /// If it does not wait.
    pub fn durable(&mut self) {
        assert!(matches!(self.at, At::Wait(_)), "it waits for no record");
        self.at = At::Next;
    }

    /// The next step.
    ///
    /// # Errors
    ///
    /// If shared memory holds what no host writes.
    pub fn step<M: Memory>(&mut self, segment: &Segment<M>) -> Result<Repaired, Damaged> {
        let first = Place::new(segment, self.claim.host, self.claim.descriptor);
        let place = Place::new(segment, self.claim.host, self.number);
        match self.at {
            At::State => match first.in_use(segment) {
                None => return Ok(Repaired::Done),
                Some(incarnation) => {
                    self.claim.incarnation = incarnation;
                    self.at = At::Ring;
                }
            },
            At::Ring => self.at = first.ring(segment).map_or(At::Next, At::Tail),
            At::Tail(position) => {
                let tail = segment.memory().load(segment.layout().host(self.claim.host) + host::RING_TAIL);
                let is_decided = position < tail && self.rules.repair_keeps_ring();
                self.at = if is_decided { At::P(position) } else { At::Next };
            }
            At::P(position) => {
                let p = first.p(segment).ok_or_else(|| Damaged("a record in a ring without a timestamp".into()))?;
                self.decided = Some(p);
                self.at = At::Wait(position);
            }
            At::Wait(position) => {
                let p = self.decided.unwrap_or_default();
                return Ok(Repaired::Wait { position, p });
            }
            At::Next if self.index == PLACES_MAX => self.at = At::More,
            At::Next => {
                self.at = place.listed(segment, self.index)?.map_or(At::More, At::Look);
                self.index += 1;
            }
            At::Look(node) => {
                // A new tuple is listed before its block is written: then any word may be there.
                let word = node.load(segment, LOCK);
                let is = |kind| word == Lock { kind, claim: self.claim }.word();
                self.at = match () {
                    () if is(Kind::Transaction) => self.decided.map_or(At::Clear(node), |p| At::Finish(node, Finish::new(p))),
                    () if is(Kind::Moving) => At::Unlock(node),
                    () if is(Kind::Dead) => {
                        self.at = At::Next;
                        return Ok(Repaired::Unlink(node));
                    }
                    () => At::Next,
                };
            }
            At::Clear(node) => {
                node.store(segment, PENDING, 0);
                self.at = At::Unlock(node);
            }
            At::Finish(node, mut finish) => {
                // Which columns it changed is in its record; here all may have changed.
                let is_over = finish.step(segment, node, ColumnMask::ALL, None, self.rules)?;
                self.at = if is_over { At::Unlock(node) } else { At::Finish(node, finish) };
            }
            At::Unlock(node) => {
                node.store(segment, LOCK, Lock { kind: Kind::Free, claim: self.claim }.word());
                self.at = At::Next;
            }
            At::More => match place.more(segment)? {
                None => self.at = At::End,
                Some(more) => {
                    self.number = more.number();
                    (self.index, self.at) = (0, At::Next);
                }
            },
            At::End => {
                first.end(segment, self.claim.incarnation);
                self.at = At::Wake;
            }
            At::Wake => {
                first.wake(segment);
                self.at = At::State;
            }
        }
        Ok(Repaired::More)
    }
}
