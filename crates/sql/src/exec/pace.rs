//! How often a running statement looks at the clock.

use super::TURN_MICROS;
use std::sync::atomic::{AtomicU32, Ordering};

/// The most steps (expressions computed, rows moved) between two looks.
pub(crate) const STEPS: u32 = 64;

/// So many looks in a row have to show quick steps before there is one more between two. A
/// statement whose quick steps surround slow ones (a page of rows is read, then a function takes
/// long for each) would forget at every page what a slow one costs.
const QUICK_LOOKS: u32 = 16;
/// How many steps there are between the first looks.
const FIRST: u32 = 4;

/// How many steps take about a turn, by what the last ones took: a function may take as long as
/// thousands of others. It falls at once, and rises by one at a time.
#[derive(Debug)]
pub struct Pace {
    steps: AtomicU32,
    /// Looks in a row that showed quick steps.
    quick: AtomicU32,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { steps: AtomicU32::new(FIRST), quick: AtomicU32::new(0) }
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
        self.quick.store(quick % QUICK_LOOKS, Ordering::Relaxed);
        self.steps.store(of_turn.min(now + quick / QUICK_LOOKS), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(pace: &Pace, micros_of_step: u64) -> u32 {
        let steps = pace.steps();
        pace.took(steps, u64::from(steps) * micros_of_step);
        steps
    }

    #[test]
    fn slow_steps_are_followed_by_fewer_and_fast_ones_by_more() {
        let pace = Pace::default();
        look(&pace, 250);
        assert_eq!(pace.steps(), 2);
        look(&pace, 600);
        assert_eq!(pace.steps(), 1, "one takes more than a turn");
        let looked = (0..QUICK_LOOKS * STEPS).map(|_| look(&pace, 1)).max();
        assert_eq!(looked, Some(STEPS));
        assert_eq!(pace.steps(), STEPS);
        pace.took(0, 0);
        assert_eq!(pace.steps(), STEPS, "a clock that stands still");
    }

    #[test]
    fn a_page_of_quick_steps_does_not_make_slow_ones_forgotten() {
        let pace = Pace::default();
        for _page in 0..5 {
            let mut quick = 0;
            while quick < 1_024 {
                quick += look(&pace, 0);
            }
            assert!((2..=12).contains(&pace.steps()), "{}", pace.steps());
            look(&pace, 900);
            assert_eq!(pace.steps(), 1);
        }
    }
}
