//! How often a running statement looks at the clock.

use super::TURN_MICROS;
use std::sync::atomic::{AtomicU32, Ordering};

/// The most steps (expressions computed, rows moved) between two looks.
pub(crate) const STEPS: u32 = 64;

/// How many steps take about a turn, by what the last ones took: a function may take as long as
/// thousands of others.
#[derive(Debug)]
pub struct Pace(AtomicU32);

impl Default for Pace {
    fn default() -> Pace {
        // Until the first one was timed.
        Pace(AtomicU32::new(1))
    }
}

impl Pace {
    /// The number of steps between the last look at the clock and the next one.
    pub(crate) fn steps(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
    /// So many steps took so long, waits included: who waited looks sooner than he has to.
    pub(crate) fn took(&self, steps: u32, micros: u64) {
        let of_turn = u64::from(steps.max(1)) * TURN_MICROS / micros.max(1);
        self.0.store(of_turn.clamp(1, u64::from(STEPS)) as u32, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_steps_are_followed_by_fewer_and_fast_ones_by_more() {
        let pace = Pace::default();
        assert_eq!(pace.steps(), 1);
        pace.took(1, 2);
        assert_eq!(pace.steps(), STEPS);
        pace.took(STEPS, 64 * 600);
        assert_eq!(pace.steps(), 1, "one takes more than a turn");
        pace.took(1, 100);
        assert_eq!(pace.steps(), 5);
        pace.took(5, 5);
        assert_eq!(pace.steps(), STEPS);
        pace.took(0, 0);
        assert_eq!(pace.steps(), STEPS, "a clock that stands still");
    }
}
