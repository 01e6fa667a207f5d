//! A tuple leaves shared memory (`docs/design/pod.md`).
//!
//! ```text
//!  caller (the owner) takes its host's lock
//!  step   list the tuple in the descriptor, lock it (P14)
//!  step   load newest                                  → Check: does the owner's store have it? (P15)
//!  step   mark it dead; remove it from the list        → Out: retire the node and its body
//! ```
//!
//! Nothing is copied: the log has brought every version to the owner's store. The way in has no
//! steps of its own: the owner writes a [`crate::NewTuple`] into a block that nobody sees and links
//! it with an [`crate::Insert`], under its host's lock, after it has looked that nothing on the key
//! is in flight (P12) or reserved (P13).

use crate::descriptor::Place;
use crate::error::Damaged;
use crate::index::Remove;
use crate::memory::Memory;
use crate::rules::Rules;
use crate::segment::Segment;
use crate::tuple::{BODY, Body, BodyWord, Claim, Kind, LOCK, Lock, NEWEST, Node};
use meridian_base::Timestamp;

/// What a step has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moved {
    /// The next step.
    More,
    /// Locked: call [`MoveOut::go`] with whether the owner's store has this version.
    Check(Timestamp),
    /// It stays where it is.
    Stays,
    /// It is out: node and body may be retired.
    Out(Node, Body),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum At {
    Begin,
    Look,
    Take(Lock),
    Newest,
    Check(Timestamp),
    Kill,
    Body,
    Remove(Body, Remove),
    End(Option<Body>),
    Wake(Option<Body>),
    Unlock,
    Over,
}

/// A tuple on its way out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MoveOut {
    rules: Rules,
    claim: Claim,
    node: Node,
    at: At,
}

impl MoveOut {
    /// Of this tuple, with a free descriptor of its owner.
    pub fn new(host: u8, descriptor: u16, node: Node, rules: Rules) -> MoveOut {
        let claim = Claim { host, descriptor, incarnation: 0 };
        MoveOut { rules, claim, node, at: At::Begin }
    }

    /// Whether it goes: the owner's store has the version that [`Moved::Check`] told (P15).
    ///
    /// # Panics
    ///
    /// If that is not what it waits for.
    pub fn go(&mut self, goes: bool) {
        assert!(matches!(self.at, At::Check(_)), "it is not to be checked");
        self.at = if goes { At::Kill } else { At::Unlock };
    }

    /// The next step.
    ///
    /// # Errors
    ///
    /// If shared memory holds what no host writes.
    pub fn step<M: Memory>(&mut self, segment: &Segment<M>) -> Result<Moved, Damaged> {
        let place = Place::new(segment, self.claim.host, self.claim.descriptor);
        let locked = |kind| Lock { kind, claim: self.claim }.word();
        match &mut self.at {
            At::Begin => {
                self.claim = place.begin(segment, None);
                place.list(segment, 0, self.node);
                self.at = At::Look;
            }
            At::Look => {
                let lock = self.node.lock(segment)?;
                self.at = match lock.kind {
                    Kind::Free => At::Take(lock),
                    _ if !self.rules.locks_to_move_out() => At::Newest,
                    _ => At::End(None),
                };
            }
            At::Take(_) if !self.rules.locks_to_move_out() => self.at = At::Newest,
            At::Take(seen) => {
                let taken = segment.memory().compare_exchange(self.node.0 + LOCK, seen.word(), locked(Kind::Moving));
                self.at = if taken.is_ok() { At::Newest } else { At::End(None) };
            }
            At::Newest => self.at = At::Check(Timestamp(self.node.load(segment, NEWEST))),
            At::Check(newest) => return Ok(Moved::Check(*newest)),
            At::Kill => {
                self.node.store(segment, LOCK, locked(Kind::Dead));
                self.at = At::Body;
            }
            At::Body => {
                let body = BodyWord::from_word(segment, self.node.load(segment, BODY))?.body;
                self.at = At::Remove(body, Remove::new(self.node));
            }
            At::Remove(body, remove) => {
                if remove.step(segment)? {
                    self.at = At::End(Some(*body));
                }
            }
            At::Unlock => {
                self.node.store(segment, LOCK, locked(Kind::Free));
                self.at = At::End(None);
            }
            At::End(body) => {
                let body = *body;
                place.end(segment, self.claim.incarnation);
                self.at = At::Wake(body);
            }
            At::Wake(body) => {
                let answer = body.map_or(Moved::Stays, |body| Moved::Out(self.node, body));
                place.wake(segment);
                self.at = At::Over;
                return Ok(answer);
            }
            At::Over => return Ok(Moved::Stays),
        }
        Ok(Moved::More)
    }
}
