//! Wait queues for hot rows. Advice only: losing them loses nothing but speed.

use meridian_base::{Key, NodeId, SessionId, Timestamp};

/// Whom an entry is leased to. It vanishes with the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    pub gateway: NodeId,
    pub session: SessionId,
}

/// What an entry excludes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Everybody else: `UPDATE`, `DELETE`, `FOR UPDATE`.
    Exclusive,
    /// Exclusive entries only: `FOR SHARE`, escrow deltas.
    Shared,
}

/// What to do if the key is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfBusy {
    /// Queue up, at most until this (`lock_timeout`).
    Wait { until: Timestamp },
    /// `NOWAIT` and `SKIP LOCKED`: answer [`Enqueued::Busy`] at once. Which of the two it is, is the caller's matter.
    Refuse,
}

/// A place in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place(pub u64);

/// The answer to [`Queues::acquire`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enqueued {
    /// The key is the owner's, now or already.
    Granted,
    /// Wait for an [`Ended`] with this place.
    Wait(Place),
    /// Somebody else has it and the caller did not want to wait.
    Busy,
    /// Waiting would close a cycle and this owner is the youngest in it: 40P01.
    Deadlock,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Granted,
    /// Another owner's wait closed a cycle and this one is the youngest in it: 40P01.
    Deadlock,
    /// `lock_timeout`: 55P03.
    TimedOut,
}

/// A wait that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    pub place: Place,
    pub owner: Owner,
    pub how: Ending,
}

/// The queues of a primary, one per key that somebody holds.
#[derive(Debug, Default)]
pub struct Queues {}

impl Queues {
    /// Takes the key for the owner, or queues up for it. `began` is the transaction's age: the youngest of a cycle aborts.
    /// Asking again for what one has is granted; asking to turn a shared entry into an exclusive one waits at the head.
    /// The waits that a deadlock ended are added to `ended`.
    pub fn acquire(
        &mut self,
        owner: Owner,
        began: Timestamp,
        key: &Key,
        mode: Mode,
        if_busy: IfBusy,
        ended: &mut Vec<Ended>,
    ) -> Enqueued {
        let _ = (owner, began, key, mode, if_busy, ended);
        todo!()
    }
    /// Gives up one key; whoever is next gets it.
    pub fn release(&mut self, owner: Owner, key: &Key, ended: &mut Vec<Ended>) {
        let _ = (owner, key, ended);
        todo!()
    }
    /// The transaction or the session is over: gives up everything it holds and waits for.
    pub fn release_all(&mut self, owner: Owner, ended: &mut Vec<Ended>) {
        let _ = (owner, ended);
        todo!()
    }
    /// The gateway is gone, and all its sessions.
    pub fn gateway_lost(&mut self, gateway: NodeId, ended: &mut Vec<Ended>) {
        let _ = (gateway, ended);
        todo!()
    }
    /// Stops waiting: statement cancelled. What the owner holds stays.
    pub fn cancel(&mut self, place: Place, ended: &mut Vec<Ended>) {
        let _ = (place, ended);
        todo!()
    }
    /// Ends the waits whose time is up.
    pub fn expire(&mut self, now: Timestamp, ended: &mut Vec<Ended>) {
        let _ = (now, ended);
        todo!()
    }
    /// When [`Queues::expire`] has something to do.
    pub fn next_expiry(&self) -> Option<Timestamp> {
        todo!()
    }
}
