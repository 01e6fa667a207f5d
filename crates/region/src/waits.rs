//! One primitive for every wait: a ticket, and what ends it. A wait ends when
//! something is durable or decided, or when the clock has come to a time.
//!
//! The engine never sleeps. It hands out a [`Ticket`]; when what it waits for has happened, the
//! ticket is in the list that the engine's event functions return, and the caller (which attached a
//! oneshot to it) tries again from the start. A wake is a hint and never a promise: the second try
//! may wait again.

use meridian_base::{Timestamp, TxnId};
use std::collections::BTreeMap;

/// One wait. Never reused within a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// What ends a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitFor {
    /// The in-flight transaction with this timestamp is applied.
    Applied(Timestamp),
    /// The outcome of this prepared transaction is applied.
    Outcome(TxnId),
    /// The clock has passed this.
    Clock(Timestamp),
    /// A newer schema grant is applied.
    Grant,
    /// A lease record of this primary is applied.
    Lease,
}

/// The tickets that are out.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    issued: u64,
    out: BTreeMap<Ticket, WaitFor>,
    by_cause: BTreeMap<(WaitFor, Ticket), ()>,
}

impl Waits {
    /// A new ticket.
    pub fn issue(&mut self, what: WaitFor) -> Ticket {
        self.issued += 1;
        let ticket = Ticket(self.issued);
        self.out.insert(ticket, what);
        self.by_cause.insert((what, ticket), ());
        ticket
    }
    /// What a ticket waits for, while it is out.
    pub fn what(&self, ticket: Ticket) -> Option<WaitFor> {
        self.out.get(&ticket).copied()
    }
    /// The waiter gave up.
    pub fn cancel(&mut self, ticket: Ticket) {
        if let Some(what) = self.out.remove(&ticket) {
            self.by_cause.remove(&(what, ticket));
        }
    }
    /// Ends every wait for exactly this.
    pub fn wake(&mut self, what: WaitFor, woken: &mut Vec<Ticket>) {
        self.wake_between(what, what, woken);
    }
    /// Ends every wait for the clock to pass a timestamp below `now`.
    pub fn wake_clock(&mut self, now: Timestamp, woken: &mut Vec<Ticket>) {
        if now > Timestamp::MIN {
            self.wake_between(WaitFor::Clock(Timestamp::MIN), WaitFor::Clock(now.prev()), woken);
        }
    }
    /// The earliest time that a ticket waits for.
    pub fn next_clock(&self) -> Option<Timestamp> {
        let from = (WaitFor::Clock(Timestamp::MIN), Ticket(0));
        match self.by_cause.range(from..).next() {
            Some(((WaitFor::Clock(t), _), ())) => Some(*t),
            _ => None,
        }
    }
    /// Ends all waits: the term is over.
    pub fn wake_all(&mut self) -> Vec<Ticket> {
        self.by_cause.clear();
        std::mem::take(&mut self.out).into_keys().collect()
    }
    /// How many tickets are out.
    pub fn len(&self) -> usize {
        self.out.len()
    }
    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    fn wake_between(&mut self, first: WaitFor, last: WaitFor, woken: &mut Vec<Ticket>) {
        while let Some(((what, ticket), ())) = self.by_cause.range((first, Ticket(0))..=(last, Ticket(u64::MAX))).next() {
            let (what, ticket) = (*what, *ticket);
            self.by_cause.remove(&(what, ticket));
            self.out.remove(&ticket);
            woken.push(ticket);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_ends_exactly_the_waits_for_its_cause() {
        let mut waits = Waits::default();
        let t = Timestamp;
        let a = waits.issue(WaitFor::Applied(t(5)));
        let b = waits.issue(WaitFor::Applied(t(6)));
        let c = waits.issue(WaitFor::Clock(t(5)));
        let d = waits.issue(WaitFor::Clock(t(9)));
        let e = waits.issue(WaitFor::Grant);
        let f = waits.issue(WaitFor::Applied(t(5)));
        let mut woken = Vec::new();
        waits.wake(WaitFor::Applied(t(5)), &mut woken);
        assert_eq!(woken, [a, f]);
        woken.clear();
        waits.wake_clock(t(5), &mut woken);
        assert_eq!(woken, [], "the clock must have passed it");
        waits.wake_clock(t(6), &mut woken);
        assert_eq!(woken, [c]);
        assert_eq!(waits.next_clock(), Some(t(9)));
        waits.cancel(d);
        assert_eq!(waits.next_clock(), None);
        waits.cancel(e);
        let g = waits.issue(WaitFor::Clock(Timestamp::MIN));
        woken.clear();
        waits.wake_clock(Timestamp::MIN, &mut woken);
        assert_eq!(woken, [], "nor has it passed the first timestamp");
        assert_eq!(waits.wake_all(), [b, g]);
        assert!(waits.is_empty());
        // Each ticket wakes once.
        waits.wake(WaitFor::Applied(t(6)), &mut woken);
        assert_eq!((&woken[..], waits.next_clock()), (&[][..], None));
    }
}
