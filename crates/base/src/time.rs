//! Hybrid logical clocks (HLC).
//!
//! A timestamp is 52 bits of microseconds since 1970 and 12 bits of a counter, in one integer:
//! comparing two timestamps is comparing two integers. 52 bits last until the year 2112; the
//! counter spills into the microseconds when it overflows, which only means that the clock runs
//! ahead of the physical one for a moment.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const LOGICAL_BITS: u32 = 12;

/// A hybrid-logical-clock value: the serial order of transactions, and the version of a row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// Before everything.
    pub const MIN: Timestamp = Timestamp(0);
    /// After everything.
    pub const MAX: Timestamp = Timestamp(u64::MAX);

    /// The first timestamp of a microsecond.
    pub const fn from_micros(micros: u64) -> Timestamp {
        Timestamp(micros << LOGICAL_BITS)
    }
    /// The physical part, in microseconds since 1970.
    pub const fn micros(self) -> u64 {
        self.0 >> LOGICAL_BITS
    }
    /// The logical part.
    pub const fn logical(self) -> u64 {
        self.0 & ((1 << LOGICAL_BITS) - 1)
    }
    /// The next larger timestamp.
    pub const fn next(self) -> Timestamp {
        Timestamp(self.0.saturating_add(1))
    }
    /// The next smaller timestamp; `MIN` stays `MIN`.
    pub const fn prev(self) -> Timestamp {
        Timestamp(self.0.saturating_sub(1))
    }
    /// Later by a duration.
    pub fn plus(self, d: Duration) -> Timestamp {
        Timestamp(self.0.saturating_add((d.as_micros() as u64) << LOGICAL_BITS))
    }
    /// Earlier by a duration, not below `MIN`.
    pub fn minus(self, d: Duration) -> Timestamp {
        Timestamp(self.0.saturating_sub((d.as_micros() as u64) << LOGICAL_BITS))
    }
    /// How much later this is than `earlier`; zero if it is not later.
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_micros(self.micros().saturating_sub(earlier.micros()))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}.{}", self.micros() / 1_000_000, self.micros() % 1_000_000, self.logical())
    }
}
impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A node's hybrid logical clock. It only moves forward.
///
/// The physical time is an argument and not read here, so the clock is pure and the caller can read
/// the time once per statement.
#[derive(Debug)]
pub struct Clock {
    last: Last,
    max_offset: Duration,
}

/// Where a clock keeps the last timestamp that was issued or observed.
#[derive(Debug)]
enum Last {
    Own(AtomicU64),
    Shared(Arc<dyn ClockWord>),
}

/// A word that several clocks share, in memory that several processes have: all timestamps of these
/// clocks are in one order. Operations are sequentially consistent.
pub trait ClockWord: fmt::Debug + Send + Sync {
    /// Reads it.
    fn load(&self) -> u64;
    /// Raises it to `value`, if it is below.
    fn raise(&self, value: u64);
    /// Writes it if it holds `expected`. The error is what it holds instead.
    fn compare_exchange(&self, expected: u64, new: u64) -> Result<(), u64>;
}

/// A peer's clock is so far ahead that following it would drag this node's clock along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockTooFarAhead {
    /// How far the peer is ahead of this node's physical clock.
    pub ahead_by: Duration,
}

impl Clock {
    /// A clock that refuses to follow peers more than `max_offset` ahead of the physical clock.
    pub fn new(max_offset: Duration) -> Clock {
        Clock { last: Last::Own(AtomicU64::new(0)), max_offset }
    }

    /// The same over a word that other clocks have, too.
    pub fn shared(word: Arc<dyn ClockWord>, max_offset: Duration) -> Clock {
        Clock { last: Last::Shared(word), max_offset }
    }

    /// Whether other clocks issue timestamps from the same word.
    pub fn is_shared(&self) -> bool {
        matches!(self.last, Last::Shared(_))
    }

    fn last(&self) -> u64 {
        match &self.last {
            Last::Own(last) => last.load(Ordering::Acquire),
            Last::Shared(word) => word.load(),
        }
    }

    /// The bound on skew between clocks that this clock enforces.
    pub fn max_offset(&self) -> Duration {
        self.max_offset
    }

    /// A timestamp greater than every one this clock issued or observed.
    pub fn tick(&self, physical_micros: u64) -> Timestamp {
        let physical = Timestamp::from_micros(physical_micros).0;
        let mut last = self.last();
        loop {
            let next = physical.max(last + 1);
            let issued = match &self.last {
                Last::Own(own) => own.compare_exchange_weak(last, next, Ordering::AcqRel, Ordering::Relaxed).map(drop),
                Last::Shared(word) => word.compare_exchange(last, next),
            };
            match issued {
                Ok(()) => return Timestamp(next),
                Err(seen) => last = seen,
            }
        }
    }

    /// The current time, without issuing it: the next [`Clock::tick`] is greater than every `tick`
    /// before, but may equal this.
    pub fn now(&self, physical_micros: u64) -> Timestamp {
        Timestamp(Timestamp::from_micros(physical_micros).0.max(self.last()))
    }

    /// Moves the clock to at least `t`, unconditionally: for timestamps this node itself recorded
    /// or decided.
    pub fn advance_to(&self, t: Timestamp) {
        match &self.last {
            Last::Own(last) => {
                last.fetch_max(t.0, Ordering::AcqRel);
            }
            Last::Shared(word) => word.raise(t.0),
        }
    }

    /// Follows a peer's clock, unless that is more than `max_offset` ahead of this node's physical
    /// clock.
    pub fn observe(&self, peer: Timestamp, physical_micros: u64) -> Result<(), ClockTooFarAhead> {
        let bound = physical_micros + self.max_offset.as_micros() as u64;
        if peer.micros() > bound {
            return Err(ClockTooFarAhead { ahead_by: Duration::from_micros(peer.micros() - physical_micros) });
        }
        self.advance_to(peer);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_grow_even_when_physical_time_stands_still_or_goes_back() {
        let clock = Clock::new(Duration::from_millis(250));
        let a = clock.tick(1_000);
        let b = clock.tick(1_000);
        let c = clock.tick(10);
        assert!(a < b && b < c);
        assert_eq!(clock.tick(2_000), Timestamp::from_micros(2_000));
    }

    #[derive(Debug)]
    struct Word(AtomicU64);

    impl ClockWord for Word {
        fn load(&self) -> u64 {
            self.0.load(Ordering::SeqCst)
        }
        fn raise(&self, value: u64) {
            self.0.fetch_max(value, Ordering::SeqCst);
        }
        fn compare_exchange(&self, expected: u64, new: u64) -> Result<(), u64> {
            self.0.compare_exchange(expected, new, Ordering::SeqCst, Ordering::SeqCst).map(drop)
        }
    }

    #[test]
    fn clocks_over_one_word_issue_in_one_order() {
        let word = Arc::new(Word(AtomicU64::new(0)));
        let [a, b] = [(); 2].map(|()| Clock::shared(word.clone(), Duration::ZERO));
        let first = a.tick(1_000);
        assert_eq!(b.tick(900), first.next());
        a.advance_to(Timestamp::from_micros(2_000));
        assert_eq!(b.now(900), Timestamp::from_micros(2_000));
        assert!(b.is_shared() && !Clock::new(Duration::ZERO).is_shared());
    }

    #[test]
    fn a_peer_far_ahead_is_refused_and_leaves_the_clock_alone() {
        let clock = Clock::new(Duration::from_millis(250));
        clock.tick(1_000_000);
        assert!(clock.observe(Timestamp::from_micros(1_300_000), 1_000_000).is_err());
        assert_eq!(clock.now(1_000_000), Timestamp::from_micros(1_000_000));
        assert!(clock.observe(Timestamp::from_micros(1_200_000), 1_000_000).is_ok());
        assert!(clock.tick(1_000_000) > Timestamp::from_micros(1_200_000));
    }
}
