//! One clock for all hosts of a pod.
//!
//! The last timestamp that any host has drawn is a word of the header. So timestamps of all hosts
//! are in one order, in which a host that begins after another has drawn is above it. Rows 37 to 41
//! of the counterexamples are what goes wrong with a clock for each host.
//!
//! A draw is a load and a comparison, again until nobody was faster: [`Draw`] is these steps one by
//! one.

use crate::layout::header;
use crate::memory::Memory;
use crate::segment::Segment;
use meridian_base::{ClockWord, Timestamp};
use std::fmt;

/// A timestamp being drawn. See [`Draw::step`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Draw {
    above: Timestamp,
    seen: Option<u64>,
}

impl Draw {
    /// A timestamp above `above`, and not before the given physical time.
    pub fn new(above: Timestamp, physical_micros: u64) -> Draw {
        Draw { above: above.max(Timestamp::from_micros(physical_micros).prev()), seen: None }
    }

    /// The next step. Gives the timestamp when it is drawn: it is larger than all that were drawn
    /// from this segment before.
    pub fn step<M: Memory>(&mut self, segment: &Segment<M>) -> Option<Timestamp> {
        let Some(seen) = self.seen else {
            self.seen = Some(segment.memory().load(header::CLOCK));
            return None;
        };
        let next = seen.max(self.above.0) + 1;
        match segment.memory().compare_exchange(header::CLOCK, seen, next) {
            Ok(()) => Some(Timestamp(next)),
            Err(now) => {
                self.seen = Some(now);
                None
            }
        }
    }
}

/// The clock; the same functions as those of [`meridian_base::Clock`].
impl<M: Memory> Segment<M> {
    /// A timestamp greater than every one that any host has drawn or observed.
    pub fn tick(&self, physical_micros: u64) -> Timestamp {
        self.tick_above(Timestamp::MIN, physical_micros)
    }

    /// The same, above `above` as well.
    pub fn tick_above(&self, above: Timestamp, physical_micros: u64) -> Timestamp {
        let mut draw = Draw::new(above, physical_micros);
        loop {
            if let Some(at) = draw.step(self) {
                return at;
            }
        }
    }

    /// The current time, without drawing it: the next [`Segment::tick`] of any host is greater than
    /// every tick before, but may equal this. One step.
    pub fn now(&self, physical_micros: u64) -> Timestamp {
        Timestamp(self.memory().load(header::CLOCK)).max(Timestamp::from_micros(physical_micros))
    }

    /// The last timestamp that was drawn or observed. One step.
    pub fn last_drawn(&self) -> Timestamp {
        Timestamp(self.memory().load(header::CLOCK))
    }

    /// Moves the clock to at least `t`. One step.
    pub fn advance_to(&self, t: Timestamp) {
        self.memory().fetch_max(header::CLOCK, t.0);
    }
}

/// The word as [`meridian_base::Clock`] takes it.
pub struct SegmentClock<M>(pub Segment<M>);

impl<M> fmt::Debug for SegmentClock<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SegmentClock")
    }
}

impl<M: Memory + Send + Sync> ClockWord for SegmentClock<M> {
    fn load(&self) -> u64 {
        self.0.memory().load(header::CLOCK)
    }
    fn raise(&self, value: u64) {
        // Mostly it is there already, and a load leaves the line in other hosts' caches.
        if self.load() < value {
            self.0.memory().fetch_max(header::CLOCK, value);
        }
    }
    fn compare_exchange(&self, expected: u64, new: u64) -> Result<(), u64> {
        self.0.memory().compare_exchange(header::CLOCK, expected, new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::heap;

    #[test]
    fn two_hosts_draw_from_one_clock() {
        let segment = heap();
        let (mut a, mut b) = (Draw::new(Timestamp::MIN, 0), Draw::new(Timestamp::MIN, 0));
        assert_eq!((a.step(&segment), b.step(&segment)), (None, None));
        assert_eq!(a.step(&segment), Some(Timestamp(1)));
        assert_eq!(b.step(&segment), None, "another host was faster");
        assert_eq!(b.step(&segment), Some(Timestamp(2)));
    }

    #[test]
    fn a_draw_is_above_what_it_must_be_and_not_before_the_physical_time() {
        let segment = heap();
        assert_eq!(segment.tick_above(Timestamp(40), 0), Timestamp(41));
        assert_eq!(segment.tick(7), Timestamp::from_micros(7));
        assert_eq!(segment.tick(5), Timestamp::from_micros(7).next());
        segment.advance_to(Timestamp::from_micros(9));
        assert_eq!(segment.now(8), Timestamp::from_micros(9));
        assert_eq!(segment.now(10), Timestamp::from_micros(10));
    }
}
