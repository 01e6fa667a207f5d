//! Which row an operation touches: YCSB's choosers (Cooper et al., SoCC'10, §5.1).
//!
//! *Zipfian* is Gray's generator («Quickly Generating Billion-Record Synthetic Databases»,
//! SIGMOD'94) with θ = 0.99. Scrambled, as YCSB has it, it is drawn over ten billion items and
//! hashed, so that the popular rows lie anywhere and stay popular when rows are added. *Latest*
//! draws the distance from the newest row.

use rand::Rng;
use rand::rngs::SmallRng;

const THETA: f64 = 0.99;
/// What the scrambled one is drawn over, and its zeta, which would take minutes to add up: both are
/// YCSB's constants.
const SCRAMBLED_ITEMS: u64 = 10_000_000_000;
const SCRAMBLED_ZETA: f64 = 26.469_028_201_783_02;

/// Which rows are popular.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// None.
    Uniform,
    /// A few, anywhere.
    Zipfian,
    /// The newest.
    Latest,
}

/// One client's choices.
pub(super) struct Chooser {
    distribution: Distribution,
    scrambled: Zipfian,
    latest: Zipfian,
}

impl Chooser {
    pub fn new(distribution: Distribution) -> Chooser {
        Chooser { distribution, scrambled: Zipfian::with_zeta(SCRAMBLED_ITEMS, SCRAMBLED_ZETA), latest: Zipfian::new() }
    }

    /// One of `0..items`, of which the last is the newest.
    pub fn choose(&mut self, items: u64, rng: &mut SmallRng) -> u64 {
        assert!(items > 0, "there is something to choose from");
        match self.distribution {
            Distribution::Uniform => rng.random_range(0..items),
            Distribution::Zipfian => fnv_hash(self.scrambled.draw(rng)) % items,
            Distribution::Latest => {
                self.latest.grow(items);
                items - 1 - self.latest.draw(rng).min(items - 1)
            }
        }
    }
}

/// Ranks from 0 on, each drawn with a probability of 1 / (rank + 1)^θ.
struct Zipfian {
    items: u64,
    /// The sum of 1 / i^θ for i from 1 to `items`.
    zeta: f64,
    eta: f64,
}

impl Zipfian {
    /// Over nothing yet.
    fn new() -> Zipfian {
        Zipfian { items: 0, zeta: 0.0, eta: 0.0 }
    }
    fn with_zeta(items: u64, zeta: f64) -> Zipfian {
        let zeta_2 = 1.0 + 0.5f64.powf(THETA);
        let eta = (1.0 - (2.0 / items as f64).powf(1.0 - THETA)) / (1.0 - zeta_2 / zeta);
        Zipfian { items, zeta, eta }
    }
    /// Items never become fewer; what is added to the sum is what is new.
    fn grow(&mut self, items: u64) {
        if items > self.items {
            let more: f64 = (self.items + 1..=items).map(|i| (i as f64).powf(-THETA)).sum();
            *self = Zipfian::with_zeta(items, self.zeta + more);
        }
    }
    fn draw(&self, rng: &mut SmallRng) -> u64 {
        let u: f64 = rng.random();
        let mass = u * self.zeta;
        if mass < 1.0 {
            return 0;
        }
        // With two items nothing is left; the formula below would divide by zero.
        if mass < 1.0 + 0.5f64.powf(THETA) || self.items <= 2 {
            return 1;
        }
        let rank = self.items as f64 * (self.eta * u - self.eta + 1.0).powf(1.0 / (1.0 - THETA));
        (rank as u64).min(self.items - 1)
    }
}

/// FNV-1a over the eight bytes, as YCSB hashes numbers of rows.
fn fnv_hash(number: u64) -> u64 {
    let hash = number
        .to_le_bytes()
        .iter()
        .fold(0xCBF2_9CE4_8422_2325u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3));
    // YCSB's is Java's `abs` of it.
    (hash as i64).unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    const DRAWS: usize = 200_000;

    fn counts(distribution: Distribution, items: u64) -> Vec<usize> {
        let (mut chooser, mut rng) = (Chooser::new(distribution), SmallRng::seed_from_u64(1));
        let mut counts = vec![0; items as usize];
        (0..DRAWS).for_each(|_| counts[chooser.choose(items, &mut rng) as usize] += 1);
        counts
    }

    /// The expected share of a rank.
    fn share(rank: u64, items: u64) -> f64 {
        let zeta: f64 = (1..=items).map(|i| (i as f64).powf(-THETA)).sum();
        (rank as f64 + 1.0).powf(-THETA) / zeta
    }

    #[test]
    fn the_newest_rows_are_read_as_often_as_zipf_says() {
        let counts = counts(Distribution::Latest, 1_000);
        for rank in [0, 1] {
            let (got, expected) = (counts[999 - rank] as f64 / DRAWS as f64, share(rank as u64, 1_000));
            assert!((got / expected - 1.0).abs() < 0.05, "rank {rank}: {got} instead of {expected}");
        }
        // Beyond the first two the generator is an approximation.
        let newest: usize = counts[900..].iter().sum();
        let expected: f64 = (0..100).map(|rank| share(rank, 1_000)).sum();
        assert!((newest as f64 / DRAWS as f64 / expected - 1.0).abs() < 0.05, "{newest} of {DRAWS}");
        assert!(counts.iter().all(|n| *n < DRAWS / 5));
    }

    #[test]
    fn scrambled_rows_are_popular_anywhere() {
        let counts = counts(Distribution::Zipfian, 1_000);
        let most = (0..1_000).max_by_key(|at| counts[*at]).expect("rows");
        assert_eq!(most as u64, fnv_hash(0) % 1_000);
        let got = counts[most] as f64 / DRAWS as f64;
        // The first of ten billion, and its part of what falls on every row.
        assert!(got > 1.0 / SCRAMBLED_ZETA && got < 1.0 / SCRAMBLED_ZETA + 0.01, "{got}");
        let nobody = counts.iter().filter(|n| **n == 0).count();
        assert_eq!(nobody, 0, "the tail reaches every row");
    }

    #[test]
    fn uniform_is_uniform() {
        let counts = counts(Distribution::Uniform, 100);
        assert!(counts.iter().all(|n| (1_700..2_300).contains(n)), "{counts:?}");
    }

    #[test]
    fn few_items_are_enough() {
        for distribution in [Distribution::Uniform, Distribution::Zipfian, Distribution::Latest] {
            for items in 1..5 {
                let counts = counts(distribution, items);
                assert_eq!(counts.iter().sum::<usize>(), DRAWS, "{distribution:?} of {items}");
            }
        }
    }

    #[test]
    fn what_is_added_counts_as_if_it_had_been_there() {
        let mut grown = Zipfian::new();
        [10, 500, 400, 1_000].into_iter().for_each(|items| grown.grow(items));
        let mut at_once = Zipfian::new();
        at_once.grow(1_000);
        assert_eq!(grown.items, 1_000);
        assert!((grown.zeta - at_once.zeta).abs() < 1e-9 && (grown.eta - at_once.eta).abs() < 1e-9);
    }
}
