//! The physical clock of a node, made steady.
//!
//! The wall clock of a machine may be set: an hour ahead by a wrong time server, and back when the
//! error is noticed. A timestamp taken from a clock that is an hour ahead costs an hour. A primary
//! may have promised something up to that timestamp (its ceiling, its closed timestamp), and the
//! next primary has to wait until then, as does the same one after a restart. So a node never takes
//! the wall clock as it is. It compares it with monotonic time, which nobody can set:
//!
//! * *small differences*, up to `max_offset` between two looks, are followed: time servers do that,
//!   and the protocols allow for it;
//! * *a step forward* beyond that is never followed. The clock goes on by monotonic time, and
//!   [`SteadyClock::stepped`] says so; the node serves nothing from that moment and stops.
//!   (Following would be wrong if the new time is; going on serving would be wrong if the machine
//!   was suspended and the new time is right: others may have taken over meanwhile.)
//! * *a step back* is absorbed: the clock goes on at half its speed until the wall clock has caught
//!   up. The node goes on serving, since time still moves, in the right direction. If the other
//!   nodes' clocks were not set back as well, they are soon too far apart from this one, and it
//!   stops for that reason.
//!
//! An operator may move the clock ahead ([`SteadyClock::advance`]) when a wall clock that was ahead
//! has been set right while the node was down: it goes on where the node's promises end, and from
//! there at half speed, exactly as if the node had been running when the wall clock was set back.

use crate::limits::MAX_OFFSET_DEFAULT;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

/// The wall clock is compared with monotonic time at least this often, if it is read that often.
const LOOK_EVERY: i64 = 10_000;
/// A look that took longer than this was interrupted, and says nothing about the clock.
const LOOK_MAX: i64 = 1_000;
/// How often a look is repeated for that reason.
const LOOKS_MAX: usize = 8;
/// How far the wall clock may be behind before that is a step back and no jitter.
const JITTER: i64 = 5_000;
/// Between two looks the wall clock may gain one part in so many: twice what a time server makes a
/// clock gain.
const GAIN: i64 = 1_000;
/// While the wall clock is behind, this one goes slower by this factor.
const SLOWER: i64 = 2;

/// See the module. All times are microseconds.
#[derive(Debug)]
pub struct SteadyClock {
    /// The largest step forward that is followed.
    step_max: AtomicI64,
    /// What the clock shows less monotonic time.
    offset: AtomicI64,
    /// When that was compared with the wall clock, in monotonic time.
    looked: AtomicI64,
    /// The wall clock is behind; `offset` shrinks.
    is_slow: AtomicBool,
    /// How far the wall clock stepped forward; 0: it did not.
    stepped: AtomicI64,
    /// How far the wall clock is behind; 0 when it is not.
    behind: AtomicI64,
    /// Held while `offset` is changed.
    changing: Mutex<()>,
}

impl SteadyClock {
    /// A clock that shows the wall clock's time, and follows steps of up to [`MAX_OFFSET_DEFAULT`].
    pub fn new(wall_micros: u64, monotonic_micros: u64) -> SteadyClock {
        SteadyClock {
            step_max: AtomicI64::new(MAX_OFFSET_DEFAULT.as_micros() as i64),
            offset: AtomicI64::new(wall_micros as i64 - monotonic_micros as i64),
            looked: AtomicI64::new(monotonic_micros as i64),
            is_slow: AtomicBool::new(false),
            stepped: AtomicI64::new(0),
            behind: AtomicI64::new(0),
            changing: Mutex::new(()),
        }
    }

    /// Follows steps of up to `step_max` from now on.
    pub fn follow_steps_of(&self, step_max: Duration) {
        self.step_max.store(step_max.as_micros() as i64, Ordering::Relaxed);
    }

    /// What the clock shows now.
    pub fn read(&self, wall_micros: impl Fn() -> u64, monotonic_micros: impl Fn() -> u64) -> u64 {
        let (wall, now) = (wall_micros() as i64, monotonic_micros() as i64);
        let since = now - self.looked.load(Ordering::Relaxed);
        let difference = wall - (now + self.offset.load(Ordering::Relaxed));
        if !self.is_slow.load(Ordering::Acquire)
            && since < LOOK_EVERY
            && (-JITTER..=self.step_max.load(Ordering::Relaxed)).contains(&difference)
        {
            return wall as u64;
        }
        self.look(wall_micros, monotonic_micros)
    }

    /// Compares the two clocks.
    fn look(&self, wall_micros: impl Fn() -> u64, monotonic_micros: impl Fn() -> u64) -> u64 {
        let _changing = self.changing.lock();
        let offset = self.offset.load(Ordering::Relaxed);
        let look = || {
            let before = monotonic_micros() as i64;
            let wall = wall_micros() as i64;
            (before, wall, monotonic_micros() as i64)
        };
        let mut looks = (0..LOOKS_MAX).map(|_| look());
        let Some((_, wall, now)) = looks.find(|(before, _, after)| after - before <= LOOK_MAX) else {
            // A machine without time to spare: another look will tell.
            return (monotonic_micros() as i64 + offset) as u64;
        };
        let since = (now - self.looked.swap(now, Ordering::Relaxed)).max(0);
        let steady = now + offset;
        let difference = wall - steady;
        if difference > self.step_max.load(Ordering::Relaxed) + since / GAIN {
            self.stepped.fetch_max(difference, Ordering::AcqRel);
            return steady as u64;
        }
        if difference >= -(JITTER + since / GAIN) {
            self.offset.store(wall - now, Ordering::Relaxed);
            self.behind.store(0, Ordering::Relaxed);
            self.is_slow.store(false, Ordering::Release);
            return wall as u64;
        }
        // Only what passed since it became slow counts.
        let lost = if self.is_slow.swap(true, Ordering::AcqRel) { (since / SLOWER).min(-difference) } else { 0 };
        self.offset.store(offset - lost, Ordering::Relaxed);
        self.behind.store(-difference - lost, Ordering::Relaxed);
        (steady - lost) as u64
    }

    /// How far the wall clock stepped forward, if it ever did by more than is followed. Asked
    /// *after* a reading, it tells whether that reading may be relied on.
    pub fn stepped(&self) -> Option<Duration> {
        let by = self.stepped.load(Ordering::Acquire);
        (by > 0).then(|| Duration::from_micros(by as u64))
    }

    /// How far the wall clock is behind this one.
    pub fn behind(&self) -> Duration {
        Duration::from_micros(self.behind.load(Ordering::Relaxed) as u64)
    }

    /// Moves the clock ahead of the wall clock. From there it goes at half speed until the wall
    /// clock has caught up.
    pub fn advance(&self, by: Duration) {
        let _changing = self.changing.lock();
        self.offset.fetch_add(by.as_micros() as i64, Ordering::Relaxed);
        self.is_slow.store(true, Ordering::Release);
    }

    /// What a clock that showed `steady` when the wall clock showed `wall` shows now, if it was
    /// never stopped: where a process goes on that was restarted meanwhile.
    pub fn continued(wall: u64, steady: u64, wall_now: u64) -> u64 {
        match wall_now.checked_sub(wall) {
            Some(passed) => wall_now.max(steady + passed / SLOWER as u64),
            // Set back again: that is for the operator to look at.
            None => wall_now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const HOUR: u64 = 3_600_000_000;

    /// A machine: its wall clock is the monotonic one and an error.
    struct Machine {
        now: Cell<u64>,
        error: Cell<i64>,
        clock: SteadyClock,
    }

    impl Machine {
        fn new() -> Machine {
            let wall = 10 * HOUR;
            Machine { now: Cell::new(0), error: Cell::new(wall as i64), clock: SteadyClock::new(wall, 0) }
        }
        fn wall(&self) -> u64 {
            self.now.get().saturating_add_signed(self.error.get())
        }
        fn read(&self) -> u64 {
            self.clock.read(|| self.wall(), || self.now.get())
        }
        /// Time passes, and the clock is read as often as a node reads it.
        fn pass(&self, duration: Duration) {
            let end = self.now.get() + duration.as_micros() as u64;
            while self.now.get() < end {
                self.now.set((self.now.get() + 25_000).min(end));
                self.read();
            }
        }
        fn set(&self, by: i64) {
            self.error.set(self.error.get() + by);
        }
    }

    #[test]
    fn small_steps_and_drift_are_followed() {
        let m = Machine::new();
        for by in [200_000, -3_000, 249_000] {
            m.pass(Duration::from_secs(1));
            m.set(by);
            assert_eq!(m.read(), m.wall());
        }
        for _ in 0..1_000 {
            m.set(100);
            m.pass(Duration::from_millis(100));
        }
        assert_eq!(m.read(), m.wall());
        // Long unread, it has drifted far.
        m.now.set(m.now.get() + HOUR);
        m.set(1_800_000);
        assert_eq!(m.read(), m.wall());
        assert_eq!(m.clock.stepped(), None);
    }

    #[test]
    fn a_step_forward_is_never_shown() {
        let m = Machine::new();
        m.pass(Duration::from_secs(1));
        let before = m.wall();
        m.set(HOUR as i64);
        assert_eq!(m.read(), before);
        assert_eq!(m.clock.stepped(), Some(Duration::from_micros(HOUR)));
        m.pass(Duration::from_secs(10));
        assert_eq!(m.read(), before + 10_000_000);
        m.set(-(HOUR as i64));
        assert_eq!(m.read(), m.wall());
        assert!(m.clock.stepped().is_some(), "it is not forgotten");
    }

    #[test]
    fn a_step_back_is_absorbed_at_half_speed() {
        let m = Machine::new();
        m.pass(Duration::from_secs(1));
        let before = m.read();
        m.set(-10_000_000);
        assert_eq!(m.read(), before);
        m.pass(Duration::from_secs(10));
        let after = m.read() - before;
        assert!((4_900_000..=5_100_000).contains(&after), "{after}");
        assert!((4_900_000..=5_100_000).contains(&(m.clock.behind().as_micros() as u64)));
        m.pass(Duration::from_secs(11));
        assert_eq!(m.read(), m.wall());
        assert_eq!((m.clock.behind(), m.clock.stepped()), (Duration::ZERO, None));
    }

    #[test]
    fn what_an_operator_moves_ahead_comes_back_and_survives_restarts() {
        let m = Machine::new();
        m.clock.advance(Duration::from_micros(HOUR));
        let (wall, began) = (m.wall(), m.read());
        assert_eq!(began, wall + HOUR);
        m.pass(Duration::from_secs(600));
        let after = m.read();
        assert!((299_000_000..=301_000_000).contains(&(after - began)), "{}", after - began);
        assert!(SteadyClock::continued(wall, began, m.wall()).abs_diff(after) < 1_000_000);
        m.pass(Duration::from_secs(2 * 3_600));
        assert_eq!(m.read(), m.wall());
        assert_eq!(SteadyClock::continued(wall, began, m.wall()), m.wall());
        assert_eq!(SteadyClock::continued(wall, began, wall - 1), wall - 1);
    }

    #[test]
    fn an_interrupted_look_is_no_step() {
        let m = Machine::new();
        m.pass(Duration::from_secs(1));
        // Between the two readings the thread waits for its turn.
        let wall_then_wait = || {
            let wall = m.wall();
            m.now.set(m.now.get() + 400_000);
            wall
        };
        m.clock.read(wall_then_wait, || m.now.get());
        assert_eq!(m.clock.stepped(), None);
        let wait_then_wall = || {
            m.now.set(m.now.get() + 400_000);
            m.wall()
        };
        m.clock.read(wait_then_wall, || m.now.get());
        assert_eq!(m.clock.stepped(), None);
        assert_eq!(m.read(), m.wall());
    }
}
