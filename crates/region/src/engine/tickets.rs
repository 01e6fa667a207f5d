//! What waits in an engine, by its tickets.

use super::Engine;
use crate::waits::{Ticket, WaitFor};
use meridian_base::{Clock, Timestamp};

impl Engine {
    /// Wakes those who wait for the clock.
    pub fn tick(&mut self, clock: &Clock, physical_micros: u64, woken: &mut Vec<Ticket>) {
        self.waits.wake_clock(clock.now(physical_micros), woken);
    }
    /// When [`Engine::tick`] has something to do: once the clock is above this.
    pub fn next_tick(&self) -> Option<Timestamp> {
        self.waits.next_clock()
    }
    /// What a ticket waits for.
    pub fn waits_for(&self, ticket: Ticket) -> Option<WaitFor> {
        self.waits.what(ticket)
    }
    /// The waiter gave up.
    pub fn cancel(&mut self, ticket: Ticket) {
        self.waits.cancel(ticket);
    }
}
