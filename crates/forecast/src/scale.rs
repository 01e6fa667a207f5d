//! The scale that forecasters compute on: the logarithm of demand.
//!
//! Demand has spikes, and is as noisy as it is large. On a plain scale a least-squares fit follows
//! the spikes of a few epochs; on a logarithmic one it describes the ordinary epoch, which is what
//! a mean absolute error is about. An offset keeps quiet epochs from becoming the spikes: ln 0
//! would be one.

use crate::forecaster::DEMAND_MAX;

/// The offset is the mean of the past, divided by this. Between 8 and 64 it makes little
/// difference.
const OFFSET_DIVISOR: f64 = 16.0;

/// A forecast is at most this many times the largest demand of the past: a small error of a
/// logarithm is a large one of the demand.
const GROWTH_MAX: f64 = 2.0;

/// From demand to a centred logarithm, and back.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    offset: f64,
    mean: f64,
}

impl Scale {
    /// The scale for a past. The offset is at least one token, so that no demand at all is no
    /// exception.
    pub fn of(past: &[f64]) -> Self {
        let count = past.len().max(1) as f64;
        let offset = (past.iter().map(|d| d / count).sum::<f64>() / OFFSET_DIVISOR).max(1.0);
        let mean = past.iter().map(|d| (d + offset).ln() / count).sum();
        Self { offset, mean }
    }

    /// The logarithm of a demand, less the mean of the past's.
    pub fn of_demand(self, demand: f64) -> f64 {
        (demand + self.offset).ln() - self.mean
    }

    /// The demand behind a centred logarithm: what comes of a forecast after `past`.
    pub fn to_demand(self, log: f64, past: &[f64]) -> f64 {
        let largest = past.iter().copied().fold(1.0, f64::max);
        // Of NaN, `clamp` makes NaN; `min` would make a number of it.
        ((log + self.mean).exp() - self.offset).clamp(0.0, DEMAND_MAX.min(GROWTH_MAX * largest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_demand_comes_back_from_its_logarithm() {
        for past in [vec![0.0, 0.0], vec![3.0, 900.0, 12.0], vec![DEMAND_MAX, 0.0], vec![i64::MAX as f64; 3]] {
            let scale = Scale::of(&past);
            for demand in &past {
                let back = scale.to_demand(scale.of_demand(*demand), &past);
                assert!((back - demand).abs() <= 1e-9 * demand.max(1.0), "{demand} became {back} with {scale:?}");
            }
        }
    }

    #[test]
    fn a_forecast_is_bounded_by_the_past() {
        let past = [5.0, 10.0];
        let scale = Scale::of(&past);
        assert_eq!(scale.to_demand(1e9, &past), 20.0);
        assert_eq!(scale.to_demand(-1e9, &past), 0.0);
        assert!(scale.to_demand(f64::NAN, &past).is_nan(), "what is no number stays none");
    }
}
