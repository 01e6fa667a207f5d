//! The standard's random text and its non-uniform numbers (clauses 2.1.6, 4.3.2 and 4.3.3).

use super::scale::{DISTRICTS, Layout};
use rand::Rng;
use rand::rngs::SmallRng;

const SYLLABLES: [&str; 10] = ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
/// Last names, at full scale.
const LAST_NAMES: i64 = 1_000;
/// The constant with which names were loaded.
const C_LAST_OF_LOAD: i64 = 157;

/// A customer's last name from its number.
pub(super) fn last_name(number: i64) -> String {
    let syllable = |digit: i64| SYLLABLES[digit as usize % 10];
    [syllable(number / 100), syllable(number / 10 % 10), syllable(number % 10)].concat()
}

/// How many different last names there are: with few customers fewer, so that every name is
/// somebody's.
fn last_names(layout: &Layout) -> i64 {
    LAST_NAMES.min(layout.customers)
}

/// NURand (clause 2.1.6): some are drawn much more often than others.
fn non_uniform(a: i64, constant: i64, first: i64, last: i64, rng: &mut SmallRng) -> i64 {
    let drawn = rng.random_range(0..=a) | rng.random_range(first..=last);
    (drawn + constant) % (last - first + 1) + first
}

/// The constants of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Constants {
    last_name: i64,
    customer: i64,
    item: i64,
}

impl Constants {
    /// The same for every client of a run.
    pub fn of_run(seed: u64) -> Constants {
        let drawn = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        // The distance to the load's that clause 2.1.6.1 asks for: 65 to 119, without 96 and 112.
        let mut distance = 65 + (drawn >> 40) as i64 % 55;
        distance += i64::from(distance == 96 || distance == 112);
        Constants {
            last_name: (C_LAST_OF_LOAD + distance) % 256,
            customer: (drawn >> 20) as i64 % 1_024,
            item: (drawn & 0x1FFF) as i64,
        }
    }
    pub fn customer(&self, layout: &Layout, rng: &mut SmallRng) -> i64 {
        non_uniform(1_023, self.customer, 1, layout.customers, rng)
    }
    pub fn item(&self, layout: &Layout, rng: &mut SmallRng) -> i64 {
        non_uniform(8_191, self.item, 1, layout.items, rng)
    }
    pub fn last_name(&self, layout: &Layout, rng: &mut SmallRng) -> String {
        last_name(non_uniform(255, self.last_name, 0, last_names(layout) - 1, rng))
    }
}

/// The last name that a customer is loaded with: the first thousand have one each.
pub(super) fn last_name_of(layout: &Layout, customer: i64, rng: &mut SmallRng) -> String {
    let names = last_names(layout);
    last_name(if customer <= names { customer - 1 } else { non_uniform(255, C_LAST_OF_LOAD, 0, names - 1, rng) })
}

pub(super) fn district(rng: &mut SmallRng) -> i64 {
    rng.random_range(1..=DISTRICTS)
}

/// Letters and digits.
pub(super) fn text(length: std::ops::RangeInclusive<usize>, rng: &mut SmallRng) -> String {
    const SIGNS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let length = rng.random_range(length);
    (0..length).map(|_| char::from(SIGNS[rng.random_range(0..SIGNS.len())])).collect()
}

/// Digits.
pub(super) fn digits(length: usize, rng: &mut SmallRng) -> String {
    (0..length).map(|_| char::from(b'0' + rng.random_range(0..10u8))).collect()
}

/// Data of an item or of stock: one in ten says ORIGINAL.
pub(super) fn data(rng: &mut SmallRng) -> String {
    let mut data = text(26..=50, rng);
    if rng.random_bool(0.1) {
        let at = rng.random_range(0..=data.len() - 8);
        data.replace_range(at..at + 8, "ORIGINAL");
    }
    data
}

#[cfg(test)]
mod tests {
    use super::super::TpccConfig;
    use super::*;
    use rand::SeedableRng;
    use std::collections::BTreeSet;

    fn layout(scale: f64) -> Layout {
        Layout::new(&["a".to_string()], &TpccConfig { scale, ..TpccConfig::default() })
    }

    #[test]
    fn last_names_are_the_standards() {
        assert_eq!([last_name(0), last_name(371), last_name(999)], ["BARBARBAR", "PRICALLYOUGHT", "EINGEINGEING"]);
    }

    #[test]
    fn whoever_is_looked_up_is_there_at_any_scale() {
        for scale in [1.0, 0.01, 0.001] {
            let layout = layout(scale);
            let mut rng = SmallRng::seed_from_u64(3);
            let names: BTreeSet<String> = (1..=layout.customers).map(|c| last_name_of(&layout, c, &mut rng)).collect();
            for seed in 0..20 {
                let constants = Constants::of_run(seed);
                for _ in 0..200 {
                    assert!(names.contains(&constants.last_name(&layout, &mut rng)));
                    assert!((1..=layout.customers).contains(&constants.customer(&layout, &mut rng)));
                    assert!((1..=layout.items).contains(&constants.item(&layout, &mut rng)));
                }
            }
        }
    }

    #[test]
    fn numbers_are_not_uniform() {
        let layout = layout(1.0);
        let mut rng = SmallRng::seed_from_u64(3);
        let constants = Constants::of_run(1);
        let mut counts = vec![0u32; 3_000];
        (0..300_000).for_each(|_| counts[constants.customer(&layout, &mut rng) as usize - 1] += 1);
        counts.sort_unstable();
        let often: u32 = counts[2_700..].iter().sum();
        assert!(often > 60_000, "a tenth of the customers has {often} of 300000");
    }

    #[test]
    fn the_distance_between_the_constants_is_allowed() {
        for seed in 0..1_000 {
            let distance = (Constants::of_run(seed).last_name - C_LAST_OF_LOAD).rem_euclid(256);
            assert!((65..=119).contains(&distance) && distance != 96 && distance != 112, "{distance}");
        }
    }

    #[test]
    fn one_in_ten_is_original() {
        let mut rng = SmallRng::seed_from_u64(3);
        let all: Vec<String> = (0..2_000).map(|_| data(&mut rng)).collect();
        assert!(all.iter().all(|d| (26..=50).contains(&d.len())));
        let original = all.iter().filter(|d| d.contains("ORIGINAL")).count();
        assert!((120..280).contains(&original), "{original}");
    }
}
