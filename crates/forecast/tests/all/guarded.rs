//! One row: each way to fail, the random walk in its stead, and the way back.

use crate::bad::{Act, Script};
use meridian_forecast::{DEMAND_MAX, Fallback, Forecast, Guarded, HISTORY_MAX, Kind, PATIENCE, Season};
use std::time::Duration;

fn guarded(script: &Script, season: usize) -> Guarded {
    let of_maker = script.clone();
    Guarded::with(move || of_maker.forecaster(), Season::of(season), PATIENCE)
}

/// What is forecast after an epoch of this demand.
fn after(guarded: &mut Guarded, script: &Script, demand: f64) -> Forecast {
    guarded.observe(demand);
    guarded.forecast(&|| script.now())
}

fn by_forecaster(demand: f64) -> Forecast {
    Forecast { demand: Some(demand), fallback: None }
}

fn by_walk(demand: f64, why: Fallback) -> Forecast {
    Forecast { demand: Some(demand), fallback: Some(why) }
}

#[test]
fn a_good_forecaster_is_listened_to_and_asked_once_an_epoch() {
    let script = Script::new([Act::Say(7.0)]);
    let mut row = guarded(&script, 288);
    assert_eq!(row.forecast(&|| script.now()), Forecast { demand: None, fallback: Some(Fallback::TooLittleData) });
    assert_eq!(after(&mut row, &script, 3.0), by_forecaster(7.0));
    for _ in 0..5 {
        assert_eq!(row.forecast(&|| script.now()), by_forecaster(7.0));
    }
    assert_eq!((script.made(), script.trainings(), script.asked()), (1, 1, 1));
    after(&mut row, &script, 3.0);
    assert_eq!((script.made(), script.trainings(), script.asked()), (1, 2, 2));
}

#[test]
fn trainings_are_as_far_apart_as_the_forecaster_wants() {
    let script = Script::new([Act::Say(7.0)]).with_interval(4);
    let mut row = guarded(&script, 288);
    for _ in 0..9 {
        after(&mut row, &script, 7.0);
    }
    assert_eq!((script.trainings(), script.asked()), (3, 9));
}

#[test]
fn a_panic_is_caught_and_a_new_forecaster_is_taken_after_a_rest() {
    for panic in [Act::Panic, Act::PanicInTraining] {
        let script = Script::new([panic, panic, Act::Say(4.0)]);
        let mut row = guarded(&script, 288);
        assert_eq!(after(&mut row, &script, 3.0), by_walk(3.0, Fallback::Panicked));
        // One epoch of rest, then two.
        assert_eq!(after(&mut row, &script, 5.0), by_walk(5.0, Fallback::Panicked));
        assert_eq!(script.made(), 2, "it was made anew");
        let tried = script.trainings();
        assert_eq!(after(&mut row, &script, 6.0), by_walk(6.0, Fallback::Panicked));
        assert_eq!(script.trainings(), tried, "it rests");
        assert_eq!(after(&mut row, &script, 6.0), by_forecaster(4.0));
        assert_eq!(script.made(), 3);
    }
}

#[test]
fn the_rest_of_one_that_always_fails_is_bounded() {
    let script = Script::new([Act::Panic]);
    let mut row = guarded(&script, 288);
    for _ in 0..1_000 {
        assert_eq!(after(&mut row, &script, 3.0), by_walk(3.0, Fallback::Panicked));
    }
    // 1 + 2 + … + 32 epochs of rest, then 64 each time.
    assert_eq!(script.made(), 7 + (1_000 - 64) / 64);
    script.go_on_with(Act::Say(9.0));
    let back = (0..64).find(|_| after(&mut row, &script, 3.0) == by_forecaster(9.0));
    assert!(back.is_some(), "it comes back");
    script.go_on_with(Act::Panic);
    after(&mut row, &script, 3.0);
    script.go_on_with(Act::Say(9.0));
    assert_eq!(after(&mut row, &script, 3.0), by_forecaster(9.0), "rests begin with one epoch again");
}

#[test]
fn what_is_no_number_of_tokens_is_not_forecast() {
    for nonsense in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let script = Script::new([Act::Say(nonsense), Act::Say(2.0)]);
        let mut row = guarded(&script, 288);
        assert_eq!(after(&mut row, &script, 3.0), by_walk(3.0, Fallback::NotFinite));
        assert_eq!(after(&mut row, &script, 3.0), by_forecaster(2.0));
        assert_eq!(script.made(), 2, "what said {nonsense} is not asked again");
    }
    let script = Script::new([Act::Say(-5.0), Act::Say(f64::MAX)]);
    let mut row = guarded(&script, 288);
    assert_eq!(after(&mut row, &script, 3.0), by_forecaster(0.0));
    assert_eq!(after(&mut row, &script, 3.0), by_forecaster(DEMAND_MAX));
}

#[test]
fn an_answer_that_took_too_long_is_not_used() {
    let minute = Duration::from_secs(60);
    let script = Script::new([Act::Take(minute), Act::Take(minute), Act::Take(PATIENCE)]);
    let mut row = guarded(&script, 288);
    for asked in [1, 2, 2] {
        assert_eq!(after(&mut row, &script, 3.0), by_walk(3.0, Fallback::TooSlow));
        assert_eq!(script.asked(), asked);
    }
    assert_eq!(after(&mut row, &script, 3.0), by_forecaster(1.0));
    assert_eq!(script.made(), 1, "it keeps what it has learned");
}

#[test]
fn one_that_says_nothing_is_trained_until_it_does() {
    let acts = [Act::SayNothing, Act::SayNothing, Act::Say(8.0), Act::Say(8.0), Act::SayNothing, Act::Say(8.0)];
    let script = Script::new(acts).with_interval(100);
    let mut row = guarded(&script, 288);
    assert_eq!(after(&mut row, &script, 3.0), by_walk(3.0, Fallback::TooLittleData));
    assert_eq!(after(&mut row, &script, 4.0), by_walk(4.0, Fallback::TooLittleData));
    assert_eq!(after(&mut row, &script, 5.0), by_forecaster(8.0));
    assert_eq!(after(&mut row, &script, 5.0), by_forecaster(8.0));
    assert_eq!(script.trainings(), 3);
    assert_eq!(after(&mut row, &script, 6.0), by_walk(6.0, Fallback::TooLittleData));
    assert_eq!(after(&mut row, &script, 7.0), by_forecaster(8.0));
    assert_eq!(script.trainings(), 4);
}

#[test]
fn one_that_is_worse_over_a_day_is_left_and_taken_again() {
    const DAY: usize = 24;
    let script = Script::new([Act::AboveLast(50.0)]);
    let mut row = guarded(&script, DAY);
    let demand = |at: usize| if at.is_multiple_of(2) { 100.0 } else { 110.0 };
    let said: Vec<Forecast> = (0..DAY).map(|at| after(&mut row, &script, demand(at))).collect();
    assert!(said[..12].iter().all(|s| s.fallback.is_none()), "a few epochs are no evidence: {said:?}");
    assert_eq!(said[12], by_walk(100.0, Fallback::WorseThanRandomWalk));
    // The random walk is off by 10 in each epoch, the forecaster by 40 and 60.
    let judged = row.judgement();
    assert_eq!((judged.epochs, judged.random_walk), (DAY - 1, 10.0));
    assert!((40.0..=60.0).contains(&judged.forecaster), "{judged:?}");
    // It hits from here on. The bad epochs leave the window one by one.
    let mut came_back = None;
    for at in DAY..3 * DAY {
        script.go_on_with(Act::Say(demand(at + 1)));
        let said = after(&mut row, &script, demand(at));
        match said.fallback {
            None => came_back = came_back.or(Some(at)),
            Some(why) => assert_eq!((why, came_back), (Fallback::WorseThanRandomWalk, None)),
        }
    }
    let came_back = came_back.expect("it is better again");
    assert!((DAY + 1..=2 * DAY).contains(&came_back), "at {came_back}");
    assert_eq!(row.judgement().forecaster, 0.0, "what is older than a day is forgotten");
    assert_eq!(script.asked(), 3 * DAY, "it was asked all the time");
}

#[test]
fn a_day_of_few_epochs_is_enough_to_judge() {
    let script = Script::new([Act::AboveLast(50.0)]);
    let mut row = guarded(&script, 2);
    let said: Vec<Option<Fallback>> = (0..4).map(|_| after(&mut row, &script, 5.0).fallback).collect();
    assert_eq!(said, [None, None, Some(Fallback::WorseThanRandomWalk), Some(Fallback::WorseThanRandomWalk)]);
}

#[test]
fn the_past_is_bounded() {
    let script = Script::new([Act::Say(1.0)]);
    let mut row = guarded(&script, usize::MAX);
    for _ in 0..HISTORY_MAX + 100 {
        after(&mut row, &script, 1.0);
    }
    assert_eq!(script.longest_past(), HISTORY_MAX);
    assert_eq!(row.judgement().epochs, HISTORY_MAX);
    row.catch_up(1_000_000, &vec![1.0; 3 * HISTORY_MAX]);
    row.forecast(&|| script.now());
    assert_eq!(script.longest_past(), HISTORY_MAX);
}

#[test]
fn what_is_known_is_not_observed_again() {
    let script = Script::new([Act::AboveLast(1.0)]);
    let mut row = guarded(&script, 288);
    row.catch_up(100, &[1.0, 2.0, 3.0]);
    assert_eq!(row.forecast(&|| script.now()), by_forecaster(4.0));
    row.catch_up(100, &[1.0, 2.0, 3.0]);
    row.catch_up(99, &[1.0, 2.0]);
    assert_eq!(row.forecast(&|| script.now()), by_forecaster(4.0));
    assert_eq!(script.asked(), 1);
    row.catch_up(101, &[2.0, 3.0, 6.0]);
    assert_eq!(row.judgement().epochs, 1);
    assert_eq!((row.judgement().forecaster, row.judgement().random_walk), (2.0, 3.0));
    assert_eq!(row.forecast(&|| script.now()), by_forecaster(7.0));
    // Two epochs later, nobody had asked after the first one: only one more is judged.
    row.catch_up(103, &[6.0, 8.0, 9.0]);
    assert_eq!((row.judgement().epochs, row.forecast(&|| script.now())), (2, by_forecaster(10.0)));
    assert_eq!(script.longest_past(), 6);
    // A gap: what was said before it is not judged, what was judged stays.
    row.catch_up(200, &[20.0, 30.0]);
    assert_eq!((row.judgement().epochs, row.forecast(&|| script.now())), (2, by_forecaster(31.0)));
    row.catch_up(1_000, &[5.0]);
    assert_eq!((row.judgement().epochs, row.forecast(&|| script.now())), (0, by_forecaster(6.0)));
    row.catch_up(2_000, &[]);
    assert_eq!(row.forecast(&|| script.now()), Forecast { demand: None, fallback: Some(Fallback::TooLittleData) });
}

#[test]
fn none_forecasts_nothing() {
    let mut row = Guarded::new(Kind::None, Season::of(288), PATIENCE);
    for demand in [1.0, 2.0, 3.0] {
        row.observe(demand);
        let said = row.forecast(&|| Duration::ZERO);
        assert_eq!((said, said.tokens()), (Forecast { demand: None, fallback: None }, None));
    }
}

#[test]
fn a_random_walk_is_never_worse_than_itself() {
    let mut row = Guarded::new(Kind::RandomWalk, Season::of(4), PATIENCE);
    for at in 0..100 {
        row.observe(f64::from(at * 31 % 17));
        assert_eq!(row.forecast(&|| Duration::ZERO), by_forecaster(f64::from(at * 31 % 17)));
    }
}

#[test]
fn tokens_are_whole_and_enough() {
    for (demand, tokens) in [(0.0, 0), (0.1, 1), (2.0, 2), (7.5, 8), (DEMAND_MAX, i128::MAX)] {
        assert_eq!(by_forecaster(demand).tokens(), Some(tokens));
    }
}

/// Each kind on a day's wave with noise: none is called worse than the random walk, and all but the
/// random walk are better.
#[test]
fn kinds_are_better_than_the_random_walk_where_there_is_a_pattern() {
    const DAY: usize = 96;
    let noise = |at: usize| (at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58;
    let demand = |at: usize| 200.0 + 150.0 * (at as f64 / DAY as f64 * std::f64::consts::TAU).sin() + noise(at) as f64;
    for kind in [Kind::Arima, Kind::Lstm].into_iter().filter(|k| k.is_built()) {
        let mut row = Guarded::new(kind, Season::of(DAY), PATIENCE);
        row.catch_up(500, &(0..500).map(demand).collect::<Vec<_>>());
        for at in 500..500 + DAY {
            let said = row.forecast(&|| Duration::ZERO);
            assert_eq!(said.fallback, None, "{kind} at {at}");
            row.observe(demand(at));
        }
        let judged = row.judgement();
        assert_eq!(judged.epochs, DAY);
        assert!(judged.forecaster < 0.9 * judged.random_walk, "{kind}: {judged:?}");
    }
}
