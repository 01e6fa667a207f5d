//! A forecaster that does as it is told.

use meridian_forecast::Forecaster;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// What a forecaster does when it is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Act {
    Say(f64),
    SayNothing,
    /// The demand of the last epoch, and so much more.
    AboveLast(f64),
    Panic,
    PanicInTraining,
    /// Takes this long, and then says 1.
    Take(Duration),
}

#[derive(Debug, Default)]
struct Inner {
    /// What comes next. The last act is repeated.
    acts: VecDeque<Act>,
    now: Duration,
    made: usize,
    trainings: usize,
    asked: usize,
    longest_past: usize,
    interval: u64,
}

/// A script for forecasters, the clock they take time of, and what they were asked.
#[derive(Clone, Debug)]
pub struct Script {
    inner: Arc<Mutex<Inner>>,
}

impl Script {
    pub fn new(acts: impl IntoIterator<Item = Act>) -> Self {
        let inner = Inner { acts: acts.into_iter().collect(), interval: 1, ..Inner::default() };
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    pub fn go_on_with(&self, act: Act) {
        self.inner.lock().acts = VecDeque::from([act]);
    }

    /// Epochs from training to training.
    pub fn with_interval(self, interval: u64) -> Self {
        self.inner.lock().interval = interval;
        self
    }

    pub fn forecaster(&self) -> Option<Box<dyn Forecaster>> {
        self.inner.lock().made += 1;
        Some(Box::new(self.clone()))
    }

    pub fn now(&self) -> Duration {
        self.inner.lock().now
    }

    pub fn pass(&self, time: Duration) {
        self.inner.lock().now += time;
    }

    pub fn made(&self) -> usize {
        self.inner.lock().made
    }

    pub fn trainings(&self) -> usize {
        self.inner.lock().trainings
    }

    pub fn asked(&self) -> usize {
        self.inner.lock().asked
    }

    pub fn longest_past(&self) -> usize {
        self.inner.lock().longest_past
    }
}

impl Forecaster for Script {
    fn train(&mut self, _past: &[f64]) {
        let mut inner = self.inner.lock();
        inner.trainings += 1;
        let panics = inner.acts.front() == Some(&Act::PanicInTraining);
        if panics && inner.acts.len() > 1 {
            inner.acts.pop_front();
        }
        drop(inner);
        assert!(!panics, "planted: a training that panics");
    }

    fn forecast(&mut self, past: &[f64]) -> Option<f64> {
        let mut inner = self.inner.lock();
        inner.asked += 1;
        inner.longest_past = inner.longest_past.max(past.len());
        let act = inner.acts.front().copied().expect("a script has an act");
        if inner.acts.len() > 1 {
            inner.acts.pop_front();
        }
        match act {
            Act::Say(demand) => Some(demand),
            Act::SayNothing => None,
            Act::AboveLast(more) => past.last().map(|last| last + more),
            Act::Take(time) => {
                inner.now += time;
                Some(1.0)
            }
            Act::Panic | Act::PanicInTraining => {
                drop(inner);
                panic!("planted: a forecast that panics")
            }
        }
    }

    fn training_interval(&self) -> u64 {
        self.inner.lock().interval
    }
}
