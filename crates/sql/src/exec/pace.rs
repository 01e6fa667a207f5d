//! How often a running statement looks at the clock.

use super::TURN_MICROS;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The most steps (expressions computed, rows moved) between two looks.
pub(crate) const STEPS: u32 = 64;

/// After slow steps, this many looks in a row have to show quick ones before there are more steps
/// between two. A statement whose quick steps surround slow ones (a page of rows is read, then a
/// function takes long for each) would forget at every page what a slow one costs.
const QUICK_LOOKS: u32 = 32;

/// How many steps take about a turn, by what the last ones took: a function may take as long as
/// thousands of others. It falls at once, and rises by one at a time; until something was slow, at
/// once as well.
#[derive(Debug)]
pub struct Pace {
    steps: AtomicU32,
    /// Looks in a row that showed quick steps.
    quick: AtomicU32,
    was_slow: AtomicBool,
}

impl Default for Pace {
    fn default() -> Pace {
        // Until the first one was timed.
        Pace { steps: AtomicU32::new(1), quick: AtomicU32::new(0), was_slow: AtomicBool::new(false) }
    }
}

impl Pace {
    /// The number of steps between the last look at the clock and the next one.
    pub(crate) fn steps(&self) -> u32 {
        self.steps.load(Ordering::Relaxed)
    }
    /// So many steps took so long, waits included: who waited looks sooner than he has to.
    pub(crate) fn took(&self, steps: u32, micros: u64) {
        let of_turn = u64::from(steps.max(1)) * TURN_MICROS / micros.max(1);
        let (of_turn, now) = (of_turn.clamp(1, u64::from(STEPS)) as u32, self.steps());
        let quick = if of_turn > now { self.quick.load(Ordering::Relaxed) + 1 } else { 0 };
        let next = if of_turn < now {
            self.was_slow.store(true, Ordering::Relaxed);
            of_turn
        } else if !self.was_slow.load(Ordering::Relaxed) {
            of_turn
        } else {
            now + quick / QUICK_LOOKS
        };
        self.quick.store(quick % QUICK_LOOKS, Ordering::Relaxed);
        self.steps.store(next, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_steps_are_followed_by_fewer_and_fast_ones_by_more() {
        let pace = Pace::default();
        assert_eq!(pace.steps(), 1);
        pace.took(1, 100);
        assert_eq!(pace.steps(), 5);
        pace.took(5, 5);
        assert_eq!(pace.steps(), STEPS);
        pace.took(0, 0);
        assert_eq!(pace.steps(), STEPS, "a clock that stands still");
        pace.took(STEPS, 64 * 600);
        assert_eq!(pace.steps(), 1, "one takes more than a turn");
    }

    #[test]
    fn a_page_of_quick_steps_does_not_make_slow_ones_forgotten() {
        let pace = Pace::default();
        pace.took(1, 1);
        pace.took(STEPS, 64 * 900);
        for _page in 0..5 {
            let mut quick = 0;
            while quick < 1_024 {
                let steps = pace.steps();
                pace.took(steps, 1);
                quick += steps;
            }
            assert!((2..=9).contains(&pace.steps()), "{}", pace.steps());
            let steps = pace.steps();
            pace.took(steps, u64::from(steps) * 900);
            assert_eq!(pace.steps(), 1);
        }
        (0..STEPS * QUICK_LOOKS).for_each(|_| pace.took(pace.steps(), 1));
        assert_eq!(pace.steps(), STEPS);
    }
}
