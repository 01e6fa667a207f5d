//! A histogram of durations with logarithmic buckets.
//!
//! Every power of two is cut into 32 equal parts, so a percentile is off by at most about 3 %, over
//! the whole range from one microsecond to hours, in 8 KiB. Two histograms add up bucket by bucket,
//! so each worker fills its own.

use std::time::Duration;

const PART_BITS: u32 = 5;
const PARTS: usize = 1 << PART_BITS;
/// Largest exponent: 2^36 µs is about 19 hours; what is longer counts as that.
const EXPONENT_MAX: u32 = 36;
const BUCKETS: usize = PARTS * (EXPONENT_MAX - PART_BITS + 2) as usize;

/// Counts of durations.
#[derive(Clone, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum_micros: u64,
    max_micros: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram::new()
    }
}

impl Histogram {
    /// An empty one.
    pub fn new() -> Histogram {
        Histogram { counts: vec![0; BUCKETS], count: 0, sum_micros: 0, max_micros: 0 }
    }
    /// Counts one duration.
    pub fn record(&mut self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.counts[bucket_of(micros)] += 1;
        self.count += 1;
        self.sum_micros = self.sum_micros.saturating_add(micros);
        self.max_micros = self.max_micros.max(micros);
    }
    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.count
    }
    /// The duration that a share (`0.0..=1.0`) of the counted ones do not exceed, rounded up to its
    /// bucket's end. `None` when nothing was counted.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        if self.count == 0 {
            return None;
        }
        let rank = ((share.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, n) in self.counts.iter().enumerate() {
            seen += n;
            if seen >= rank {
                return Some(Duration::from_micros(end_of(bucket).min(self.max_micros)));
            }
        }
        Some(self.max())
    }
    /// The longest one.
    pub fn max(&self) -> Duration {
        Duration::from_micros(self.max_micros)
    }
    /// The arithmetic mean; zero when nothing was counted.
    pub fn mean(&self) -> Duration {
        Duration::from_micros(self.sum_micros.checked_div(self.count).unwrap_or(0))
    }
    /// Adds another histogram's counts.
    pub fn merge(&mut self, other: &Histogram) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum_micros = self.sum_micros.saturating_add(other.sum_micros);
        self.max_micros = self.max_micros.max(other.max_micros);
    }
}

fn bucket_of(micros: u64) -> usize {
    let micros = micros.min((1 << (EXPONENT_MAX + 1)) - 1);
    if micros < PARTS as u64 {
        return micros as usize;
    }
    let exponent = 63 - micros.leading_zeros();
    let part = (micros >> (exponent - PART_BITS)) as usize - PARTS;
    PARTS * (exponent - PART_BITS + 1) as usize + part
}

/// The largest value of a bucket.
fn end_of(bucket: usize) -> u64 {
    if bucket < PARTS {
        return bucket as u64;
    }
    let exponent = (bucket / PARTS) as u32 + PART_BITS - 1;
    let part = (bucket % PARTS) as u64;
    ((PARTS as u64 + part + 1) << (exponent - PART_BITS)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_of_one_to_thousand_are_near_the_exact_ones() {
        let mut h = Histogram::new();
        for i in 1..=1000 {
            h.record(Duration::from_micros(i));
        }
        for (share, exact) in [(0.5, 500.0), (0.9, 900.0), (0.99, 990.0), (1.0, 1000.0)] {
            let got = h.quantile(share).expect("not empty").as_micros() as f64;
            assert!(got >= exact && got <= exact * 1.04, "p{share}: {got}");
        }
        assert_eq!(h.count(), 1000);
        assert_eq!(h.mean(), Duration::from_micros(500));
    }

    #[test]
    fn an_empty_one_has_no_quantile() {
        assert_eq!(Histogram::new().quantile(0.5), None);
    }

    proptest! {
        #[test]
        fn a_value_lies_in_its_bucket(micros in 0u64..1 << 37) {
            let bucket = bucket_of(micros);
            prop_assert!(micros <= end_of(bucket));
            prop_assert!(bucket == 0 || micros > end_of(bucket - 1));
        }

        #[test]
        fn merging_equals_recording_everything_in_one(
            a in proptest::collection::vec(0u64..u64::MAX, 0..50),
            b in proptest::collection::vec(0u64..1 << 20, 0..50),
        ) {
            let fill = |values: &[u64]| {
                let mut h = Histogram::new();
                values.iter().for_each(|v| h.record(Duration::from_micros(*v)));
                h
            };
            let mut merged = fill(&a);
            merged.merge(&fill(&b));
            let both: Vec<u64> = a.iter().chain(&b).copied().collect();
            prop_assert!(merged == fill(&both));
        }
    }
}
