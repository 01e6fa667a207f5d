//! One mode's turn: clients of all sites send their events when these are due, whether or not
//! earlier ones were answered.
//!
//! A latency begins when its event is due, so it contains what a client waits for a connection
//! (there are as many of a site as `--connections` says) and for everything that the server does.
//! Where the acquisition of a token is not answered yet when its release is due, the release is due
//! with that answer: no client can release what it may not have. Requests that no connection was
//! free for until the end count with the time that they have waited, and as unserved.

use super::demand::{Demand, Event, Held, What};
use super::faults::Plan;
use super::modes::{Answer, Client, Store};
use crate::bench::cluster::Running;
use futures::future::try_join_all;
use meridian_base::{Error, Result};
use meridian_workload::Context;
use meridian_workload::histogram::Histogram;
use meridian_workload::session::RetryPolicy;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// A counter's clients queue for its row: longer than it takes all connections to have their turn.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(60);
/// Requests that are on their way at the end are answered within this time.
const DRAIN: Duration = Duration::from_secs(120);
/// After a partition has ended all sites are heard of within this time.
const HEALING: Duration = Duration::from_secs(60);
/// From the first connection that is ready to the first event.
const LEAD: Duration = Duration::from_millis(300);
/// The granularity of timers here: an event that a connection waited for is not late by this much.
const TIMER: Duration = Duration::from_millis(2);

/// What came of the events of a site.
#[derive(Clone, Default)]
pub(super) struct Tally {
    /// Acquisitions and releases, from when they were due, whatever came of them.
    pub latency: Histogram,
    pub reads: Histogram,
    pub acquired: u64,
    pub released: u64,
    /// Of these two, those that were answered before the end.
    pub in_time: u64,
    /// The same, by tenths of the time.
    pub tenths: [u64; 10],
    pub rejected: u64,
    pub failed: u64,
    /// Acquisitions and releases that may have happened.
    pub unknown: [u64; 2],
    /// Releases of what was not acquired.
    pub not_sent: u64,
    pub unserved: u64,
    pub retries: u64,
    /// The first error of each code, with how many there were.
    pub errors: BTreeMap<String, (u64, String)>,
}

impl Tally {
    pub fn add(&mut self, other: &Tally) {
        self.latency.merge(&other.latency);
        self.reads.merge(&other.reads);
        let [acquired, released] = &mut self.unknown;
        let sums = [
            (&mut self.acquired, other.acquired),
            (&mut self.released, other.released),
            (&mut self.in_time, other.in_time),
            (&mut self.rejected, other.rejected),
            (&mut self.failed, other.failed),
            (acquired, other.unknown[0]),
            (released, other.unknown[1]),
            (&mut self.not_sent, other.not_sent),
            (&mut self.unserved, other.unserved),
            (&mut self.retries, other.retries),
        ];
        sums.into_iter().for_each(|(sum, more)| *sum += more);
        self.tenths.iter_mut().zip(other.tenths).for_each(|(sum, more)| *sum += more);
        for (code, (count, text)) in &other.errors {
            self.errors.entry(code.clone()).or_insert_with(|| (0, text.clone())).0 += count;
        }
    }

    fn note(&mut self, error: &Error) {
        self.errors.entry(error.sqlstate().to_string()).or_insert_with(|| (0, error.message().to_string())).0 += 1;
    }

    /// What the number may be at the end, from the least to the most.
    pub fn numbers(&self, at_start: i64) -> (i64, i64) {
        let number = at_start + self.acquired as i64 - self.released as i64;
        (number - self.unknown[1] as i64, number + self.unknown[0] as i64)
    }
}

/// What came of a turn.
pub(super) struct Turn {
    pub time: Duration,
    /// In the order of the sites.
    pub sites: Vec<Tally>,
    /// What the nodes counted meanwhile.
    pub counted: BTreeMap<String, u64>,
    /// How many times tokens were borrowed, where a mode does that.
    pub borrowed: Option<u64>,
    pub violations: Vec<String>,
}

impl Turn {
    pub fn sum(&self) -> Tally {
        let mut sum = Tally::default();
        self.sites.iter().for_each(|site| sum.add(site));
        sum
    }
    /// Requests that had their effect before the end, per second.
    pub fn throughput(&self) -> f64 {
        self.sum().in_time as f64 / self.time.as_secs_f64().max(1e-3)
    }
}

/// Whether an acquisition of a site has come to something.
mod token {
    /// Not yet.
    pub const PENDING: u8 = 0;
    /// The same, and its release is due.
    pub const WANTED_BACK: u8 = 1;
    pub const HELD: u8 = 2;
    pub const NOT_HELD: u8 = 3;
}

/// The events of a site, and how far its clients are.
struct Queue {
    events: Vec<Event>,
    tokens: Vec<AtomicU8>,
    next: Mutex<usize>,
    start: Instant,
    time: Duration,
    /// When its clients are gone.
    gone: Option<Duration>,
}

impl Queue {
    fn end(&self) -> Instant {
        self.start + self.gone.unwrap_or(self.time)
    }

    /// Waits until the next event is due, and returns its position and when its latency begins.
    /// `None`: there is none, or the time is over.
    async fn take(&self) -> Option<(usize, Instant)> {
        let mut next = self.next.lock().await;
        let event = self.events.get(*next)?;
        let due = self.start + event.at;
        tokio::time::sleep_until(due.min(self.end())).await;
        let now = Instant::now();
        if now >= self.end() {
            return None;
        }
        *next += 1;
        Some((*next - 1, if now - due <= TIMER { now } else { due }))
    }

    /// What nobody came to.
    async fn count_unserved(&self, tally: &mut Tally) {
        let next = *self.next.lock().await;
        let end = self.gone.unwrap_or(self.time);
        for event in self.events[next..].iter().take_while(|event| event.at < end) {
            match event.what {
                What::Release(Held::Since(of)) if self.tokens[of].load(Ordering::Acquire) != token::HELD => tally.not_sent += 1,
                What::Acquire | What::Release(_) => {
                    tally.unserved += 1;
                    tally.latency.record(end - event.at);
                }
                What::Read => tally.reads.record(end - event.at),
            }
        }
    }
}

struct Worker {
    queue: Arc<Queue>,
    client: Client,
    tally: Tally,
}

impl Worker {
    async fn work(mut self) -> Tally {
        while let Some((at, due)) = self.queue.take().await {
            match self.queue.events[at].what {
                What::Read => self.read(due).await,
                What::Acquire => self.acquire(at, due).await,
                What::Release(Held::Before) => self.release(due).await,
                What::Release(Held::Since(of)) => {
                    let is = &self.queue.tokens[of];
                    match is.compare_exchange(token::PENDING, token::WANTED_BACK, Ordering::AcqRel, Ordering::Acquire) {
                        // Whoever gets the answer goes on.
                        Ok(_) => {}
                        Err(token::HELD) => self.release(due).await,
                        Err(_) => self.tally.not_sent += 1,
                    }
                }
            }
        }
        self.tally.retries = self.client.take_retries().into();
        self.tally
    }

    async fn acquire(&mut self, at: usize, due: Instant) {
        let answer = self.client.acquire().await;
        let is_held = self.account(&answer, 0, due);
        let is = if is_held { token::HELD } else { token::NOT_HELD };
        match self.queue.tokens[at].swap(is, Ordering::AcqRel) {
            token::WANTED_BACK if is_held => self.release(Instant::now()).await,
            token::WANTED_BACK => self.tally.not_sent += 1,
            _ => {}
        }
    }

    async fn release(&mut self, due: Instant) {
        let answer = self.client.release().await;
        self.account(&answer, 1, due);
    }

    async fn read(&mut self, due: Instant) {
        match self.client.read().await {
            Answer::Done => {}
            Answer::Refused => self.tally.note(&Error::internal("a read was refused")),
            Answer::Failed(e) | Answer::Unknown(e) => self.tally.note(&e),
        }
        self.tally.reads.record(due.elapsed());
    }

    /// Of an acquisition (0) or a release (1). Whether it had its effect.
    fn account(&mut self, answer: &Answer, what: usize, due: Instant) -> bool {
        let tally = &mut self.tally;
        tally.latency.record(due.elapsed());
        match answer {
            Answer::Done => {
                *(if what == 0 { &mut tally.acquired } else { &mut tally.released }) += 1;
                let (now, queue) = (Instant::now(), &self.queue);
                if now <= queue.end() {
                    let tenth = (now - queue.start).as_secs_f64() / queue.time.as_secs_f64().max(1e-3) * 10.0;
                    tally.tenths[(tenth as usize).min(9)] += 1;
                    tally.in_time += 1;
                }
                return true;
            }
            Answer::Refused => tally.rejected += 1,
            Answer::Failed(e) => {
                tally.failed += 1;
                tally.note(e);
            }
            Answer::Unknown(e) => {
                tally.unknown[what] += 1;
                tally.note(e);
            }
        }
        false
    }
}

/// Lets all sites work on a row of their own, and checks the number that they leave.
pub(super) async fn turn(
    running: &Running,
    store: &Store,
    demand: &Demand,
    id: i64,
    connections: u32,
    time: Duration,
    plan: &Plan,
) -> Result<Turn> {
    let mut context = running.context(id as u64);
    context.retry = RetryPolicy { statement_timeout: STATEMENT_TIMEOUT, ..context.retry };
    store.begin(id, &demand.held, &context).await?;
    let lenders: Vec<_> = (0..demand.sites.len()).map(|site| store.lender(site, id, &context)).collect();
    let mut clients = Vec::new();
    for (site, lender) in lenders.iter().enumerate() {
        for n in 0..u64::from(connections) {
            clients.push((site, store.client(site, id, (site as u64) << 32 | n, &context, lender.clone())));
        }
    }
    try_join_all(clients.iter_mut().map(|(_, client)| client.warm_up())).await?;
    let before = running.metrics(&context).await?;
    let start = Instant::now() + LEAD;
    let queue = |(site, events): (usize, &Vec<Event>)| {
        let tokens = events.iter().map(|_| AtomicU8::new(token::PENDING)).collect();
        Arc::new(Queue { events: events.clone(), tokens, next: Mutex::new(0), start, time, gone: plan.gone(site) })
    };
    let queues: Vec<Arc<Queue>> = demand.sites.iter().enumerate().map(queue).collect();
    let mut workers = JoinSet::new();
    for (site, client) in clients {
        let worker = Worker { queue: queues[site].clone(), client, tally: Tally::default() };
        workers.spawn(async move { (site, worker.work().await) });
    }
    let mut sites = vec![Tally::default(); queues.len()];
    tokio::select! {
        ended = tokio::time::timeout(LEAD + time + DRAIN, join(workers, &mut sites)) => {
            ended.map_err(|_| Error::unavailable("clients wait for answers long after the end"))??;
        }
        e = running.cluster.failed() => return Err(e),
        () = plan.run(start, &running.regions, &running.sides) => {}
    }
    for (queue, tally) in queues.iter().zip(&mut sites) {
        queue.count_unserved(tally).await;
    }
    let mut counted = running.metrics(&context).await?;
    counted.iter_mut().for_each(|(name, count)| *count = count.saturating_sub(before.get(name).copied().unwrap_or(0)));
    let mut borrowed = None;
    for lender in lenders.iter().flatten() {
        borrowed = Some(borrowed.unwrap_or(0) + lender.lock().await.brought);
    }
    let mut turn = Turn { time, sites, counted, borrowed, violations: Vec::new() };
    turn.violations = violations(store, &turn.sum(), demand.in_use(), id, &context).await?;
    Ok(turn)
}

async fn join(mut workers: JoinSet<(usize, Tally)>, sites: &mut [Tally]) -> Result<()> {
    while let Some(ended) = workers.join_next().await {
        let (site, tally) = ended.map_err(|e| Error::internal(format!("a client panicked: {e}")))?;
        sites[site].add(&tally);
    }
    Ok(())
}

/// What is wrong with the number at the end, and with what clients were told.
async fn violations(store: &Store, sum: &Tally, at_start: i64, id: i64, context: &Context) -> Result<Vec<String>> {
    let deadline = Instant::now() + HEALING;
    let number = loop {
        match store.number(id, context).await {
            // Sites that were apart have not heard of each other yet.
            Err(e) if e.sqlstate() == "57P03" && Instant::now() < deadline => tokio::time::sleep(HEALING / 60).await,
            number => break number?,
        }
    };
    let mut found = context.history.untrue();
    let limit = store.mode.is_bounded().then_some(store.limit);
    found.extend(wrong_number(number, sum.numbers(at_start), limit));
    Ok(found)
}

fn wrong_number(number: i64, (least, most): (i64, i64), limit: Option<i64>) -> Option<String> {
    if !(least..=most).contains(&number) {
        return Some(format!("the number is {number}, and clients know of {least} to {most}"));
    }
    limit.filter(|limit| !(0..=*limit).contains(&number)).map(|limit| format!("the number is {number}, not from 0 to {limit}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(events: &[(u64, What)], next: usize) -> Queue {
        Queue {
            events: events.iter().map(|(at, what)| Event { at: Duration::from_secs(*at), what: *what }).collect(),
            tokens: events.iter().map(|_| AtomicU8::new(token::PENDING)).collect(),
            next: Mutex::new(next),
            start: Instant::now(),
            time: Duration::from_secs(10),
            gone: None,
        }
    }

    const FOUR: [(u64, What); 4] = [
        (1, What::Acquire),
        (4, What::Release(Held::Before)),
        (5, What::Release(Held::Since(0))),
        (6, What::Release(Held::Before)),
    ];

    #[tokio::test(start_paused = true)]
    async fn events_are_taken_when_they_are_due_and_never_after_the_end() {
        let queue = queue(&FOUR, 0);
        let begun = queue.start;
        assert_eq!(queue.take().await.map(|(at, due)| (at, (due - begun).as_secs())), Some((0, 1)));
        // All connections are busy for a while: the next event is late, and its latency knows.
        tokio::time::advance(Duration::from_secs(6)).await;
        assert_eq!(queue.take().await.map(|(at, due)| (at, (due - begun).as_secs())), Some((1, 4)));
        tokio::time::advance(Duration::from_secs(4)).await;
        assert_eq!(queue.take().await, None);
        assert_eq!(*queue.next.lock().await, 2);
    }

    #[tokio::test]
    async fn what_was_not_served_counts_with_the_time_that_it_has_waited() {
        let mut tally = Tally::default();
        (0..98).for_each(|_| tally.latency.record(Duration::from_millis(1)));
        let queue = queue(&FOUR, 1);
        queue.count_unserved(&mut tally).await;
        assert_eq!((tally.unserved, tally.not_sent, tally.latency.count()), (2, 1, 100));
        // Quantiles are the ends of buckets.
        let near = |share, exact: Duration| {
            let found = tally.latency.quantile(share).expect("counted");
            assert!((exact..exact.mul_f64(1.04)).contains(&found), "{share}: {found:?}");
        };
        near(0.98, Duration::from_millis(1));
        near(0.99, Duration::from_secs(4));
        queue.tokens[0].store(token::HELD, Ordering::Release);
        let mut tally = Tally::default();
        queue.count_unserved(&mut tally).await;
        assert_eq!((tally.unserved, tally.not_sent), (3, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn clients_of_a_crashed_site_send_nothing_more() {
        let queue = Queue { gone: Some(Duration::from_secs(2)), ..queue(&FOUR, 0) };
        assert!(queue.take().await.is_some());
        assert_eq!(queue.take().await, None);
        let mut tally = Tally::default();
        queue.count_unserved(&mut tally).await;
        assert_eq!((tally.unserved, tally.latency.count()), (0, 0), "nobody was there to ask");
    }

    #[test]
    fn a_number_that_no_history_explains_is_found() {
        let tally = Tally { acquired: 5, released: 3, unknown: [1, 2], ..Tally::default() };
        assert_eq!(tally.numbers(10), (10, 13));
        assert_eq!(wrong_number(12, tally.numbers(10), Some(12)), None);
        assert!(wrong_number(14, tally.numbers(10), None).is_some_and(|why| why.contains("10 to 13")));
        assert!(wrong_number(9, tally.numbers(10), None).is_some());
        assert!(wrong_number(12, tally.numbers(10), Some(11)).is_some_and(|why| why.contains("0 to 11")));
        let exact = Tally { unknown: [0, 0], ..tally };
        assert!(wrong_number(13, exact.numbers(10), None).is_some());
    }

    #[test]
    fn tallies_add_up() {
        let error = |text: &str| Error::sql("40001", text.to_string());
        let (mut a, mut b) =
            (Tally { acquired: 1, ..Tally::default() }, Tally { acquired: 2, unknown: [0, 4], ..Tally::default() });
        a.note(&error("first"));
        b.note(&error("second"));
        b.latency.record(Duration::from_millis(1));
        a.add(&b);
        assert_eq!((a.acquired, a.unknown, a.latency.count()), (3, [0, 4], 1));
        assert_eq!(a.errors["40001"], (2, "first".to_string()));
    }
}
