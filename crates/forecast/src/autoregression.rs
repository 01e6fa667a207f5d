//! An autoregression with day lags, fitted by least squares: the kind `arima`.
//!
//! The logarithm of demand is a linear function of the last two hours' (of five-minute epochs) and
//! of five epochs around the same time yesterday. In the terms of ARIMA models it has a regular and
//! a seasonal autoregressive part, and neither differences nor moving averages: ARIMA(24, 0, 0)
//! with seasonal lags. Moving averages were tried and brought nothing on the paper's workload; a
//! library's ARIMA(2, 1, 2) was worse than this (`docs/design/forecasters.md`).

use crate::forecaster::{Forecaster, Season};
use crate::scale::Scale;

/// The last epochs that it looks at, if there is past enough to learn from them.
pub(crate) const RECENT: usize = 24;
/// Epochs before and after the same time of the last season that it looks at, too.
const AROUND: usize = 2;
/// Fewer recent epochs, for a short past.
const RECENT_OF_SHORT_PAST: [usize; 2] = [6, 1];
/// Epochs to learn from for each parameter; fewer would be learned by heart.
const EPOCHS_PER_PARAMETER: usize = 5;
/// How much larger parameters cost, relative to the variance: it makes the fit unique where the
/// past is constant or repeats itself exactly.
const RIDGE: f64 = 1e-3;
/// A fit of a whole past takes about a millisecond, and parameters change slowly: with a fit every
/// epoch the error on the paper's workload was the same.
const INTERVAL: u64 = 12;

/// The fitted parameters.
#[derive(Clone, Debug)]
struct Fit {
    scale: Scale,
    /// How many epochs back each parameter looks, ascending.
    lags: Vec<usize>,
    /// One for each lag.
    weights: Vec<f64>,
}

/// Demand as a linear function of past demand, on a logarithmic scale.
#[derive(Clone, Debug)]
pub struct Autoregression {
    season: Season,
    fit: Option<Fit>,
}

impl Autoregression {
    /// One that has learned nothing yet.
    pub fn new(season: Season) -> Self {
        Self { season, fit: None }
    }
}

impl Forecaster for Autoregression {
    fn train(&mut self, past: &[f64]) {
        self.fit = lags(self.season, past.len()).map(|lags| {
            let scale = Scale::of(past);
            let logs: Vec<f64> = past.iter().map(|d| scale.of_demand(*d)).collect();
            let weights = least_squares(&logs, &lags);
            Fit { scale, lags, weights }
        });
    }

    fn forecast(&mut self, past: &[f64]) -> Option<f64> {
        let fit = self.fit.as_ref()?;
        let log_at = |lag: &usize| past.len().checked_sub(*lag).map(|at| fit.scale.of_demand(past[at]));
        let terms = fit.lags.iter().zip(&fit.weights).map(|(lag, weight)| Some(weight * log_at(lag)?));
        Some(fit.scale.to_demand(terms.sum::<Option<f64>>()?, past))
    }

    fn training_interval(&self) -> u64 {
        INTERVAL
    }
}

/// The lags that a past of this length is enough for. `None`: it is enough for none.
pub(crate) fn lags(season: Season, past: usize) -> Option<Vec<usize>> {
    let day = season.epochs();
    let seasonal = (day.saturating_sub(AROUND).max(1)..=day.saturating_add(AROUND)).filter(|_| day > AROUND);
    let with_season: Vec<usize> = (1..=RECENT).chain(seasonal.filter(|lag| *lag > RECENT)).collect();
    let without = RECENT_OF_SHORT_PAST.iter().map(|recent| (1..=*recent).collect());
    let is_enough = |lags: &Vec<usize>| {
        let longest = lags.last().copied().unwrap_or(0);
        past.saturating_sub(longest) >= EPOCHS_PER_PARAMETER * lags.len()
    };
    [with_season, (1..=RECENT).collect()].into_iter().chain(without).find(is_enough)
}

/// The weights that say each value best from those before it, by the squares of the errors.
pub(crate) fn least_squares(values: &[f64], lags: &[usize]) -> Vec<f64> {
    let (count, longest) = (lags.len(), lags.iter().copied().max().unwrap_or(0));
    let mut products = vec![vec![0.0; count]; count];
    let mut sides = vec![0.0; count];
    let mut terms = vec![0.0; count];
    for at in longest..values.len() {
        for (term, lag) in terms.iter_mut().zip(lags) {
            *term = values[at - lag];
        }
        for row in 0..count {
            for column in 0..=row {
                products[row][column] += terms[row] * terms[column];
            }
            sides[row] += terms[row] * values[at];
        }
    }
    for (row, of_row) in products.iter_mut().enumerate() {
        of_row[row] += RIDGE * of_row[row] + f64::EPSILON;
    }
    solve(products, sides)
}

/// Solves `matrix · x = sides` for a symmetric, positive definite matrix, of which the lower
/// triangle is given (Cholesky's decomposition).
fn solve(mut matrix: Vec<Vec<f64>>, mut sides: Vec<f64>) -> Vec<f64> {
    let count = sides.len();
    for row in 0..count {
        for column in 0..=row {
            let below: f64 = (0..column).map(|k| matrix[row][k] * matrix[column][k]).sum();
            let rest = matrix[row][column] - below;
            matrix[row][column] = if row == column { rest.sqrt() } else { rest / matrix[column][column] };
        }
    }
    for row in 0..count {
        let below: f64 = (0..row).map(|k| matrix[row][k] * sides[k]).sum();
        sides[row] = (sides[row] - below) / matrix[row][row];
    }
    for row in (0..count).rev() {
        let above: f64 = (row + 1..count).map(|k| matrix[k][row] * sides[k]).sum();
        sides[row] = (sides[row] - above) / matrix[row][row];
    }
    sides
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forecaster::{DEMAND_MAX, HISTORY_MAX};

    fn next(season: usize, past: &[f64]) -> Option<f64> {
        let mut forecaster = Autoregression::new(Season::of(season));
        forecaster.train(past);
        forecaster.forecast(past)
    }

    #[test]
    fn equations_are_solved() {
        let x = solve(vec![vec![4.0, 0.0, 0.0], vec![2.0, 5.0, 0.0], vec![0.5, 1.0, 3.0]], vec![9.5, 15.0, 11.5]);
        for (got, expected) in x.iter().zip([1.0, 2.0, 3.0]) {
            assert!((got - expected).abs() < 1e-9, "{x:?}");
        }
    }

    #[test]
    fn a_decay_is_found() {
        let mut values = vec![1.0];
        for at in 0..200 {
            let kick = if at % 17 == 0 { 1.0 } else { 0.0 };
            values.push(0.6 * values[at] + kick);
        }
        let weights = least_squares(&values, &[1]);
        assert!((weights[0] - 0.6).abs() < 0.1, "{weights:?}");
    }

    /// A pattern of a day that the last hours alone do not show.
    #[test]
    fn yesterday_is_used() {
        let spike_at = [7, 19, 58, 61, 90];
        let past: Vec<f64> = (0..8 * 96).map(|at| if spike_at.contains(&(at % 96)) { 500.0 } else { 20.0 }).collect();
        for at in spike_at {
            let upto = 7 * 96 + at;
            let forecast = next(96, &past[..upto]).expect("a week is enough");
            assert!((400.0..=600.0).contains(&forecast), "before the spike at {at}: {forecast}");
            let quiet = next(96, &past[..upto + 1]).expect("a week is enough");
            assert!(quiet < 60.0 || spike_at.contains(&(at + 1)), "after the spike at {at}: {quiet}");
        }
    }

    #[test]
    fn a_short_past_has_fewer_lags() {
        assert_eq!(lags(Season::of(288), 5), None);
        assert_eq!(lags(Season::of(288), 6), Some(vec![1]));
        assert_eq!(lags(Season::of(288), 36), Some((1..=6).collect()));
        assert_eq!(lags(Season::of(288), 144), Some((1..=24).collect()));
        let all = lags(Season::of(288), HISTORY_MAX).expect("this is enough");
        assert_eq!(all[24..], [286, 287, 288, 289, 290]);
        // A season of hours is among the recent epochs, one of seconds is not remembered.
        assert_eq!(lags(Season::of(24), HISTORY_MAX), Some((1..=26).collect()));
        assert_eq!(lags(Season::of(86_400), HISTORY_MAX), Some((1..=24).collect()));
        assert_eq!(lags(Season::of(usize::MAX), HISTORY_MAX), Some((1..=24).collect()));
    }

    #[test]
    fn nothing_is_said_from_nothing_and_a_constant_stays() {
        assert_eq!(next(288, &[]), None);
        assert_eq!(next(288, &[1.0; 5]), None);
        for constant in [0.0, 1.0, 250.0, i64::MAX as f64, DEMAND_MAX] {
            for length in [6, 100, 500, HISTORY_MAX] {
                let forecast = next(288, &vec![constant; length]).expect("there is past enough");
                assert!((forecast - constant).abs() <= 1e-6 * constant.max(1.0), "{constant} × {length}: {forecast}");
            }
        }
    }

    #[test]
    fn a_past_shorter_than_the_one_of_the_training_gives_nothing() {
        let mut forecaster = Autoregression::new(Season::of(288));
        forecaster.train(&[3.0; 500]);
        assert_eq!(forecaster.forecast(&[3.0; 100]), None);
        assert!(forecaster.forecast(&[3.0; 290]).is_some());
    }
}
