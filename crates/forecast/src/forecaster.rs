//! What a forecaster is, and the simplest one.

use std::time::Duration;

/// Epochs of the past that a forecaster sees at most: eight days of five minutes. A longer past was
/// no better on the paper's workload (`docs/design/forecasters.md`), and each row remembers it.
pub const HISTORY_MAX: usize = 8 * 288;

/// The largest demand; larger ones count as this. It is the largest number of tokens (128 bits),
/// and its square is far from the end of `f64`.
pub const DEMAND_MAX: f64 = i128::MAX as f64;

/// Says the demand of the next epoch from that of past ones.
///
/// `past` is oldest first, without gaps, at most [`HISTORY_MAX`] long; every value is in
/// `0.0..=DEMAND_MAX`. It ends at the epoch that has just ended. An implementation may panic, or
/// answer anything: [`Guarded`](crate::Guarded) sees to that. It must be deterministic, or a
/// simulation is not; and it must return, since a thread cannot be stopped from outside.
pub trait Forecaster: Send {
    /// Learns its parameters from the past. This is the slow part, and comes at most once in
    /// [`Forecaster::training_interval`] epochs.
    fn train(&mut self, past: &[f64]);

    /// The demand of the epoch after `past`. `None`: there is too little past to say anything.
    fn forecast(&mut self, past: &[f64]) -> Option<f64>;

    /// Epochs from one training to the next, from 1 on.
    fn training_interval(&self) -> u64 {
        1
    }
}

/// The next epoch is as the last one (the paper's baseline).
#[derive(Clone, Copy, Debug, Default)]
pub struct RandomWalk;

impl Forecaster for RandomWalk {
    fn train(&mut self, _past: &[f64]) {}

    fn forecast(&mut self, past: &[f64]) -> Option<f64> {
        past.last().copied()
    }
}

/// After how many epochs demand repeats itself: a day, for most workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Season {
    epochs: usize,
}

impl Season {
    /// A season of so many epochs, from 1 on.
    pub fn of(epochs: usize) -> Self {
        Self { epochs: epochs.max(1) }
    }

    /// A day of epochs of this length. An epoch of no length counts as one of a second.
    pub fn day(epoch: Duration) -> Self {
        const DAY_MILLIS: u128 = 24 * 60 * 60 * 1000;
        let epoch = if epoch.is_zero() { 1000 } else { epoch.as_millis().max(1) };
        Self::of((DAY_MILLIS / epoch) as usize)
    }

    /// Its length in epochs.
    pub fn epochs(self) -> usize {
        self.epochs
    }

    /// The part of it that is remembered.
    pub(crate) fn remembered(self) -> usize {
        self.epochs.min(HISTORY_MAX)
    }
}

/// What a forecaster may be told: a demand in `0.0..=DEMAND_MAX`. What is no number is none.
pub(crate) fn sanitize(demand: f64) -> f64 {
    if demand.is_nan() { 0.0 } else { demand.clamp(0.0, DEMAND_MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_has_as_many_epochs_as_fit() {
        assert_eq!(Season::day(Duration::from_secs(300)).epochs(), 288);
        assert_eq!(Season::day(Duration::from_secs(5)).epochs(), 17_280);
        assert_eq!(Season::day(Duration::from_secs(5)).remembered(), HISTORY_MAX);
        assert_eq!(Season::day(Duration::from_secs(100_000)).epochs(), 1, "an epoch longer than a day");
        assert_eq!(Season::day(Duration::ZERO).epochs(), 86_400);
        assert_eq!(Season::of(0).epochs(), 1);
    }

    #[test]
    fn a_random_walk_stays_where_it_is() {
        assert_eq!(RandomWalk.forecast(&[]), None);
        assert_eq!(RandomWalk.forecast(&[1.0, 7.0]), Some(7.0));
    }

    #[test]
    fn a_demand_is_a_number_of_tokens() {
        assert_eq!(sanitize(f64::NAN), 0.0);
        assert_eq!(sanitize(-1.0), 0.0);
        assert_eq!(sanitize(f64::INFINITY), DEMAND_MAX);
        assert_eq!(sanitize(2.5), 2.5);
    }
}
