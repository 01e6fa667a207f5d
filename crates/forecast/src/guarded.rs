//! One row's forecaster, and what happens when it is no good.
//!
//! | the forecaster | answer |
//! | --- | --- |
//! | has too little past | random walk, [`Fallback::TooLittleData`] |
//! | panics | random walk; it is made anew and rests |
//! | says NaN or an infinity | random walk; it is made anew and rests |
//! | is slower than allowed | random walk; it rests |
//! | says less than nothing | nothing |
//! | had a larger mean absolute error over the last day than the random walk | random walk; it goes on being asked, and is taken again when its error is the smaller one |
//!
//! One that rests is asked again after 1, 2, 4, … epochs, up to [`REST_MAX`]; a good answer begins
//! that anew. The error is judged over the epochs of the last day that it had an answer for.

use crate::forecaster::{DEMAND_MAX, Forecaster, HISTORY_MAX, Season, sanitize};
use crate::kind::Kind;
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// How long an answer may take by default, with the training before it.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// After how many epochs a forecaster that fails again and again is asked at the latest.
const REST_MAX: u64 = 64;

/// A forecaster is not called worse from fewer epochs than these (or a day, if that has fewer).
const JUDGED_MIN: usize = 12;

/// Why the random walk answers instead of the forecaster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fallback {
    /// The past is too short for it.
    TooLittleData,
    /// It panicked, now or so recently that it rests.
    Panicked,
    /// It said NaN or an infinity, now or so recently that it rests.
    NotFinite,
    /// It took too long, now or so recently that it rests.
    TooSlow,
    /// Its mean absolute error over the last day is larger than the random walk's.
    WorseThanRandomWalk,
    /// The worker did not come to it in time ([`Worker`](crate::Worker)).
    Overloaded,
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fallback::TooLittleData => "too little data",
            Fallback::Panicked => "panicked",
            Fallback::NotFinite => "not finite",
            Fallback::TooSlow => "too slow",
            Fallback::WorseThanRandomWalk => "worse than random walk",
            Fallback::Overloaded => "overloaded",
        })
    }
}

/// What is expected of the next epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forecast {
    /// Its demand in tokens, in `0.0..=DEMAND_MAX`. `None` if nothing is forecast: the kind is
    /// [`Kind::None`], or no epoch has ended yet.
    pub demand: Option<f64>,
    /// Why this is the random walk's and not the forecaster's. `None`: it is the forecaster's.
    pub fallback: Option<Fallback>,
}

impl Forecast {
    /// Where nothing is to be forecast.
    pub(crate) const NONE: Self = Self { demand: None, fallback: None };

    /// The random walk's, for this reason.
    pub(crate) fn random_walk(past: &[f64], why: Fallback) -> Self {
        Self { demand: past.last().copied().map(sanitize), fallback: Some(why) }
    }

    /// Whole tokens that are enough for the forecast.
    pub fn tokens(&self) -> Option<i128> {
        self.demand.map(|d| d.ceil() as i128)
    }
}

/// How good a forecaster was over the last day, beside the random walk in the same epochs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Judgement {
    /// Epochs that it gave an answer for.
    pub epochs: usize,
    /// Its mean absolute error in tokens; 0 without epochs.
    pub forecaster: f64,
    /// The random walk's.
    pub random_walk: f64,
}

/// The answers of both for one epoch, or their errors.
#[derive(Clone, Copy, Debug)]
struct Pair {
    forecaster: f64,
    random_walk: f64,
}

/// A forecaster of one row with its past.
///
/// Memory: [`HISTORY_MAX`] values, two errors for each epoch of a day (at most as many), and the
/// forecaster.
pub struct Guarded {
    make: Box<dyn Fn() -> Option<Box<dyn Forecaster>> + Send>,
    /// None before its first use, and after it failed.
    forecaster: Option<Box<dyn Forecaster>>,
    season: Season,
    patience: Duration,
    past: VecDeque<f64>,
    /// The last epoch of the past. Epochs are counted from anywhere.
    epoch: u64,
    /// When the forecaster was trained. None: never, as it is now.
    trained: Option<u64>,
    /// Of the last day, oldest first. None: the forecaster had no answer for that epoch.
    errors: VecDeque<Option<Pair>>,
    /// The answers for the epoch that has not ended yet.
    open: Option<Pair>,
    /// What was said after `epoch`.
    said: Option<Forecast>,
    /// Failures since the last good answer, and why the last one was.
    failures: u32,
    failure: Fallback,
    /// The first epoch after which it is asked again.
    rests_until: u64,
}

impl Guarded {
    /// One of a kind that this crate has.
    pub fn new(kind: Kind, season: Season, patience: Duration) -> Self {
        Self::with(move || kind.forecaster(season), season, patience)
    }

    /// One of any forecaster. `make` makes one that has learned nothing: at first, and after a
    /// failure. Where it makes none, nothing is forecast.
    pub fn with(make: impl Fn() -> Option<Box<dyn Forecaster>> + Send + 'static, season: Season, patience: Duration) -> Self {
        Self {
            make: Box::new(make),
            forecaster: None,
            season,
            patience,
            past: VecDeque::with_capacity(HISTORY_MAX),
            epoch: 0,
            trained: None,
            errors: VecDeque::with_capacity(season.remembered()),
            open: None,
            said: None,
            failures: 0,
            failure: Fallback::TooLittleData,
            rests_until: 0,
        }
    }

    /// An epoch has ended, and this was its demand. What is no number, or below zero, counts as
    /// none.
    pub fn observe(&mut self, demand: f64) {
        let demand = sanitize(demand);
        let error = |said: f64| (said - demand).abs();
        let open = self.open.take();
        self.remember(open.map(|o| Pair { forecaster: error(o.forecaster), random_walk: error(o.random_walk) }));
        push_bounded(&mut self.past, demand, HISTORY_MAX);
        self.epoch = self.epoch.saturating_add(1);
        self.said = None;
    }

    /// Takes over the demand of the epochs up to `epoch`; `past` is oldest first. What is known
    /// already is not observed again. After a gap the past begins anew, and the forecaster and its
    /// judgement stay. An epoch before the last one changes nothing.
    pub fn catch_up(&mut self, epoch: u64, past: &[f64]) {
        let past = &past[past.len().saturating_sub(HISTORY_MAX)..];
        let Some(missing) = epoch.checked_sub(self.epoch) else { return };
        let unknown = missing.saturating_sub(past.len() as u64);
        let new = if self.past.is_empty() || unknown > 0 {
            self.past.clear();
            self.open = None;
            for _ in 0..unknown.min(self.season.remembered() as u64) {
                self.remember(None);
            }
            past
        } else {
            &past[past.len() - missing as usize..]
        };
        for demand in new {
            self.observe(*demand);
        }
        if missing > 0 {
            self.said = None;
        }
        self.epoch = epoch;
    }

    fn remember(&mut self, errors: Option<Pair>) {
        push_bounded(&mut self.errors, errors, self.season.remembered());
    }

    /// What is expected of the next epoch. The forecaster is asked once after each epoch; further
    /// calls repeat the answer. `clock` is any clock that does not go backwards: it says how long
    /// the forecaster takes.
    pub fn forecast(&mut self, clock: &dyn Fn() -> Duration) -> Forecast {
        if let Some(said) = self.said {
            return said;
        }
        let said = self.ask(clock);
        assert!(said.demand.is_none_or(|d| (0.0..=DEMAND_MAX).contains(&d)), "a forecast is a number of tokens: {said:?}");
        self.said = Some(said);
        said
    }

    /// How good the forecaster was over the last day, whether it was listened to or not.
    pub fn judgement(&self) -> Judgement {
        let mut sum = Judgement::default();
        for errors in self.errors.iter().flatten() {
            sum.epochs += 1;
            sum.forecaster += errors.forecaster;
            sum.random_walk += errors.random_walk;
        }
        let epochs = sum.epochs.max(1) as f64;
        Judgement { epochs: sum.epochs, forecaster: sum.forecaster / epochs, random_walk: sum.random_walk / epochs }
    }

    fn ask(&mut self, clock: &dyn Fn() -> Duration) -> Forecast {
        let Some(random_walk) = self.past.back().copied() else {
            return Forecast { fallback: Some(Fallback::TooLittleData), ..Forecast::NONE };
        };
        let attempt = if self.epoch < self.rests_until { Err(self.failure) } else { self.attempt(clock) };
        let fallback = match attempt {
            Ok(None) => return Forecast::NONE,
            Ok(Some(said)) => {
                self.open = Some(Pair { forecaster: said, random_walk });
                if !self.is_worse() {
                    return Forecast { demand: Some(said), fallback: None };
                }
                Fallback::WorseThanRandomWalk
            }
            Err(why) => why,
        };
        Forecast { demand: Some(random_walk), fallback: Some(fallback) }
    }

    fn is_worse(&self) -> bool {
        let judged = self.judgement();
        judged.epochs >= JUDGED_MIN.min(self.season.remembered()) && judged.forecaster > judged.random_walk
    }

    /// The forecaster's own answer; `None` if there is no forecaster.
    fn attempt(&mut self, clock: &dyn Fn() -> Duration) -> Result<Option<f64>, Fallback> {
        let began = clock();
        let (make, held, trained, epoch) = (&self.make, self.forecaster.take(), self.trained, self.epoch);
        let past = &*self.past.make_contiguous();
        let run = catch_unwind(AssertUnwindSafe(move || {
            let mut forecaster = match held {
                Some(held) => held,
                None => make()?,
            };
            let is_due = trained.is_none_or(|at| epoch.saturating_sub(at) >= forecaster.training_interval());
            if is_due {
                forecaster.train(past);
            }
            let said = forecaster.forecast(past);
            Some((forecaster, is_due, said))
        }));
        let took = clock().saturating_sub(began);
        let Ok(run) = run else {
            return Err(self.fail(Fallback::Panicked));
        };
        let Some((forecaster, was_trained, said)) = run else { return Ok(None) };
        if said.is_some_and(|s| !s.is_finite()) {
            return Err(self.fail(Fallback::NotFinite));
        }
        // What says nothing is trained again: the past has grown then, or is another one.
        if was_trained || said.is_none() {
            self.trained = said.map(|_| self.epoch);
        }
        self.forecaster = Some(forecaster);
        if took > self.patience {
            return Err(self.rest(Fallback::TooSlow));
        }
        self.failures = 0;
        said.map(|s| Some(s.clamp(0.0, DEMAND_MAX))).ok_or(Fallback::TooLittleData)
    }

    /// A failure that the forecaster as it is does not get over: it is made anew.
    fn fail(&mut self, why: Fallback) -> Fallback {
        self.forecaster = None;
        self.trained = None;
        self.rest(why)
    }

    fn rest(&mut self, why: Fallback) -> Fallback {
        let rest = 1u64.checked_shl(self.failures).unwrap_or(REST_MAX).min(REST_MAX);
        self.rests_until = self.epoch.saturating_add(rest);
        self.failures = self.failures.saturating_add(1);
        self.failure = why;
        why
    }
}

/// Puts a value at the end, where the first one goes if there are `max`. The ring never grows
/// beyond its first capacity.
fn push_bounded<T>(ring: &mut VecDeque<T>, value: T, max: usize) {
    if ring.len() >= max {
        ring.pop_front();
    }
    ring.push_back(value);
}

impl fmt::Debug for Guarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let judged = self.judgement();
        f.debug_struct("Guarded").field("epoch", &self.epoch).field("said", &self.said).field("judged", &judged).finish()
    }
}
