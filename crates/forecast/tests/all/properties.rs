//! Whatever the past: a forecast is a number of tokens.

use meridian_forecast::{DEMAND_MAX, Guarded, HISTORY_MAX, Kind, PATIENCE, Season};
use proptest::prelude::*;
use std::time::Duration;

fn demand() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => (0..2_000u32).prop_map(f64::from),
        2 => Just(0.0),
        1 => any::<i64>().prop_map(|tokens| tokens as f64),
        1 => Just(i64::MAX as f64),
        1 => any::<f64>(),
    ]
}

/// Values, some of them for many epochs.
fn past() -> impl Strategy<Value = Vec<f64>> {
    let run = (demand(), prop_oneof![Just(1usize), 1..200usize]).prop_map(|(value, epochs)| vec![value; epochs]);
    prop::collection::vec(run, 0..40).prop_map(|runs| runs.concat())
}

fn season() -> impl Strategy<Value = usize> {
    prop_oneof![Just(1usize), 2..40usize, Just(288), Just(HISTORY_MAX), Just(usize::MAX)]
}

/// Kinds that are quick enough for many cases.
fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::RandomWalk), Just(Kind::Arima)]
}

proptest! {
    #[test]
    fn a_forecast_is_a_number_of_tokens(kind in kind(), season in season(), past in past(), later in past()) {
        let mut row = Guarded::new(kind, Season::of(season), PATIENCE);
        row.catch_up(past.len() as u64, &past);
        for next in later.iter().take(30) {
            let said = row.forecast(&|| Duration::ZERO);
            prop_assert!(said.demand.is_none_or(|d| d.is_finite() && (0.0..=DEMAND_MAX).contains(&d)), "{:?}", said);
            row.observe(*next);
        }
        let said = row.forecast(&|| Duration::ZERO);
        prop_assert_eq!(said.demand.is_none(), past.is_empty() && later.is_empty());
        prop_assert!(said.demand.is_none_or(|d| d.is_finite() && (0.0..=DEMAND_MAX).contains(&d)), "{:?}", said);
    }

    /// A forecaster by itself, on what it may be told, says a number: the guard is not needed.
    #[test]
    fn a_regression_says_numbers(
        season in season(),
        past in prop::collection::vec(prop_oneof![0.0..2_000.0, Just(0.0), Just(DEMAND_MAX), 0.0..1e19], 1..700)
    ) {
        let mut forecaster = Kind::Arima.forecaster(Season::of(season)).expect("it is always built");
        forecaster.train(&past);
        let largest = past.iter().copied().fold(1.0, f64::max);
        if let Some(said) = forecaster.forecast(&past) {
            prop_assert!(said.is_finite() && (0.0..=2.0 * largest).contains(&said), "{}", said);
        }
    }
}

#[cfg(feature = "lstm")]
proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn a_network_says_numbers(season in season(), past in past()) {
        let mut row = Guarded::new(Kind::Lstm, Season::of(season), PATIENCE);
        row.catch_up(past.len() as u64, &past);
        let said = row.forecast(&|| Duration::ZERO);
        prop_assert!(said.demand.is_none_or(|d| d.is_finite() && d >= 0.0), "{:?}", said);
        prop_assert!(said.fallback.is_none_or(|f| f == meridian_forecast::Fallback::TooLittleData), "{:?}", said);
    }
}
