//! Many rows: order, bounds, deadlines, and a forecaster that does not return.

use crate::bad::{Act, Script};
use meridian_forecast::{Clock, Fallback, Forecast, Forecaster, HISTORY_MAX, Job, Kind, Limits, Season, Worker};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(5);
const LIMITS: Limits = Limits { queue: 3, rows: 4, deadline: DEADLINE };

fn worker(script: &Script) -> Worker {
    let (of_clock, of_maker) = (script.clone(), script.clone());
    let clock: Clock = Arc::new(move || of_clock.now());
    Worker::with(LIMITS, clock, move |_, _| of_maker.forecaster())
}

fn job(row: &str, epoch: u64, past: &[f64]) -> Job {
    Job { row: row.as_bytes().to_vec(), kind: Kind::Arima, season: Season::of(288), epoch, past: past.to_vec() }
}

fn by_forecaster(demand: f64) -> Option<Forecast> {
    Some(Forecast { demand: Some(demand), fallback: None })
}

fn by_walk(demand: f64, why: Fallback) -> Option<Forecast> {
    Some(Forecast { demand: Some(demand), fallback: Some(why) })
}

#[test]
fn a_job_is_done_once_for_an_epoch() {
    let script = Script::new([Act::AboveLast(1.0)]);
    let worker = worker(&script);
    assert!(!worker.run_next(), "there is no job");
    worker.put(job("a", 7, &[2.0, 3.0]));
    assert_eq!(worker.forecast(b"a", 7), None);
    assert!(worker.run_next());
    assert_eq!(worker.forecast(b"a", 7), by_forecaster(4.0));
    assert_eq!((worker.forecast(b"a", 6), worker.forecast(b"a", 8), worker.forecast(b"b", 7)), (None, None, None));
    worker.put(job("a", 7, &[2.0, 3.0]));
    worker.put(job("a", 6, &[2.0]));
    assert!(!worker.run_next());
    assert_eq!(worker.forecast(b"a", 7), by_forecaster(4.0));
    worker.put(job("a", 8, &[2.0, 3.0, 5.0]));
    assert_eq!((worker.forecast(b"a", 7), worker.forecast(b"a", 8)), (None, None), "the epoch is over");
    assert!(worker.run_next());
    assert_eq!(worker.forecast(b"a", 8), by_forecaster(6.0));
    let judged = worker.judgement(b"a", 8).expect("it is done");
    assert_eq!((judged.epochs, judged.forecaster, judged.random_walk), (1, 1.0, 2.0));
    assert_eq!((script.made(), script.asked()), (1, 2), "the forecaster of a row is kept");
}

#[test]
fn the_newest_job_of_a_row_is_done() {
    let script = Script::new([Act::AboveLast(1.0)]);
    let worker = worker(&script);
    for epoch in 1..=100 {
        worker.put(job("a", epoch, &[epoch as f64]));
    }
    worker.put(job("b", 1, &[1.0]));
    assert!(worker.run_next() && worker.run_next() && !worker.run_next());
    assert_eq!(worker.forecast(b"a", 100), by_forecaster(101.0));
    assert_eq!(worker.forecast(b"b", 1), by_forecaster(2.0), "a row with many jobs keeps no other one out");
}

#[test]
fn above_the_bound_of_the_queue_the_random_walk_answers_at_once() {
    let script = Script::new([Act::Say(9.0)]);
    let worker = worker(&script);
    for row in ["a", "b", "c", "d"] {
        worker.put(job(row, 1, &[2.0]));
    }
    assert_eq!(worker.forecast(b"d", 1), by_walk(2.0, Fallback::Overloaded));
    assert_eq!(worker.forecast(b"c", 1), None);
    worker.put(job("a", 2, &[2.0, 3.0]));
    while worker.run_next() {}
    assert_eq!(worker.forecast(b"a", 2), by_forecaster(9.0), "a row that waits already has its place");
    assert_eq!(worker.forecast(b"d", 1), by_walk(2.0, Fallback::Overloaded));
    worker.put(job("d", 2, &[2.0, 3.0]));
    assert!(worker.run_next());
    assert_eq!(worker.forecast(b"d", 2), by_forecaster(9.0));
}

#[test]
fn rows_are_forgotten_above_their_bound() {
    let script = Script::new([Act::Say(9.0)]);
    let worker = worker(&script);
    for row in ["a", "b", "c", "d", "e"] {
        worker.put(job(row, 1, &[2.0]));
        assert!(worker.run_next());
    }
    assert_eq!((worker.forecast(b"a", 1), worker.forecast(b"b", 1)), (None, by_forecaster(9.0)));
    assert_eq!(script.made(), 5);
    worker.put(job("e", 2, &[2.0, 2.0]));
    worker.put(job("a", 2, &[2.0, 2.0]));
    assert!(worker.run_next() && worker.run_next());
    assert_eq!(script.made(), 6, "only the one that was forgotten is made anew");
}

/// A row that is forgotten while it waits, and asked about again, has two places in the queue.
#[test]
fn a_row_that_was_forgotten_while_it_waited_is_done_once() {
    let script = Script::new([Act::Say(9.0)]);
    let limits = Limits { queue: 10, rows: 1, deadline: DEADLINE };
    let (of_clock, of_maker) = (script.clone(), script.clone());
    let worker = Worker::with(limits, Arc::new(move || of_clock.now()), move |_, _| of_maker.forecaster());
    for row in ["a", "b", "a"] {
        worker.put(job(row, 1, &[2.0]));
    }
    while worker.run_next() {}
    assert_eq!((script.asked(), worker.forecast(b"a", 1)), (1, by_forecaster(9.0)));
}

#[test]
fn a_job_that_waits_past_its_deadline_is_answered_by_the_random_walk() {
    let script = Script::new([Act::Say(9.0)]);
    let worker = worker(&script);
    worker.put(job("a", 1, &[2.0]));
    script.pass(DEADLINE - Duration::from_millis(1));
    assert_eq!(worker.forecast(b"a", 1), None);
    script.pass(Duration::from_millis(1));
    assert_eq!(worker.forecast(b"a", 1), by_walk(2.0, Fallback::Overloaded));
    assert!(worker.run_next());
    assert_eq!(worker.forecast(b"a", 1), by_walk(2.0, Fallback::Overloaded), "an answer does not change");
    worker.put(job("a", 2, &[2.0, 3.0]));
    assert!(worker.run_next());
    assert_eq!(worker.forecast(b"a", 2), by_forecaster(9.0));
    assert_eq!(worker.judgement(b"a", 2).map(|j| j.epochs), Some(1), "the late one was judged");
}

#[test]
fn failures_are_told_and_another_row_goes_on() {
    let script = Script::new([Act::Panic, Act::Say(f64::NAN), Act::Take(2 * DEADLINE), Act::Say(9.0)]);
    let worker = worker(&script);
    for (row, why) in [("a", Fallback::Panicked), ("b", Fallback::NotFinite), ("c", Fallback::TooSlow)] {
        worker.put(job(row, 1, &[2.0]));
        assert!(worker.run_next());
        assert_eq!(worker.forecast(row.as_bytes(), 1), by_walk(2.0, why));
    }
    worker.put(job("d", 1, &[2.0]));
    assert!(worker.run_next());
    assert_eq!(worker.forecast(b"d", 1), by_forecaster(9.0));
}

#[test]
fn another_kind_begins_anew_and_none_is_not_asked() {
    let script = Script::new([Act::Say(9.0)]);
    let worker = worker(&script);
    worker.put(job("a", 1, &[2.0]));
    assert!(worker.run_next());
    worker.put(Job { kind: Kind::RandomWalk, ..job("a", 2, &[2.0, 3.0]) });
    assert!(worker.run_next());
    assert_eq!(script.made(), 2);
    worker.put(Job { kind: Kind::None, ..job("a", 3, &[2.0, 3.0, 4.0]) });
    assert!(!worker.run_next());
    assert_eq!(worker.forecast(b"a", 3), Some(Forecast { demand: None, fallback: None }));
}

#[test]
fn the_past_of_a_job_is_bounded_and_may_be_empty() {
    let script = Script::new([Act::Say(9.0)]);
    let worker = worker(&script);
    worker.put(job("a", 1, &vec![1.0; 3 * HISTORY_MAX]));
    worker.put(job("b", 1, &[]));
    assert!(worker.run_next() && worker.run_next());
    assert_eq!(script.longest_past(), HISTORY_MAX);
    assert_eq!(worker.forecast(b"b", 1), Some(Forecast { demand: None, fallback: Some(Fallback::TooLittleData) }));
}

/// Says when it begins, and does not return before it is told to.
struct Stuck {
    began: Sender<()>,
    go_on: Arc<Mutex<Receiver<()>>>,
}

impl Forecaster for Stuck {
    fn train(&mut self, _past: &[f64]) {}

    fn forecast(&mut self, _past: &[f64]) -> Option<f64> {
        self.began.send(()).expect("the test goes on");
        self.go_on.lock().recv().expect("the test goes on");
        Some(1.0)
    }
}

#[test]
fn a_forecaster_that_does_not_return_blocks_no_caller() {
    let time = Script::new([Act::Say(0.0)]);
    let ((began, has_begun), (let_go, go_on)) = (channel(), channel());
    let (of_clock, go_on) = (time.clone(), Arc::new(Mutex::new(go_on)));
    let make = move |kind, _| -> Option<Box<dyn Forecaster>> {
        match kind {
            Kind::Lstm => Some(Box::new(Stuck { began: began.clone(), go_on: go_on.clone() })),
            _ => Some(Box::new(meridian_forecast::RandomWalk)),
        }
    };
    let worker = Worker::with(LIMITS, Arc::new(move || of_clock.now()), make);
    let running = worker.start().expect("a thread");
    worker.put(Job { kind: Kind::Lstm, ..job("stuck", 1, &[2.0]) });
    has_begun.recv().expect("the thread does the job");
    worker.put(job("other", 1, &[3.0]));
    assert_eq!((worker.forecast(b"stuck", 1), worker.forecast(b"other", 1)), (None, None));
    time.pass(2 * DEADLINE);
    assert_eq!(worker.forecast(b"stuck", 1), by_walk(2.0, Fallback::TooSlow));
    assert_eq!(worker.forecast(b"other", 1), by_walk(3.0, Fallback::Overloaded));
    worker.put(job("other", 2, &[3.0, 5.0]));
    let_go.send(()).expect("the forecaster waits");
    let other = until(|| worker.forecast(b"other", 2));
    assert_eq!(other, Forecast { demand: Some(5.0), fallback: None });
    assert_eq!(worker.forecast(b"stuck", 1), by_walk(2.0, Fallback::TooSlow), "an answer does not change");
    // The thread is not waited for.
    worker.put(Job { kind: Kind::Lstm, ..job("stuck again", 1, &[2.0]) });
    has_begun.recv().expect("the thread does the job");
    drop(running);
    let_go.send(()).expect("the forecaster waits");
    until(|| worker.forecast(b"stuck again", 1));
}

#[test]
fn a_thread_ends_and_another_one_goes_on() {
    let script = Script::new([Act::Say(2.0)]);
    let worker = worker(&script);
    for epoch in 1..20 {
        let running = worker.start().expect("a thread");
        worker.put(job("a", epoch, &[2.0]));
        assert_eq!(Some(until(|| worker.forecast(b"a", epoch))), by_forecaster(2.0));
        drop(running);
    }
}

/// What `look` finds, sooner or later.
fn until<T>(look: impl Fn() -> Option<T>) -> T {
    loop {
        if let Some(found) = look() {
            return found;
        }
        std::thread::yield_now();
    }
}
