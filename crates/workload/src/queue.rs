//! A queue in SQL: items between a head and a tail, put and taken in one transaction each.
//!
//! The position an item got or was taken from is returned to the client, so the order is visible
//! from the outside, and it has to agree with real time: what was put after another put was
//! acknowledged lies behind it, and so with taking. Every item is taken at most once; nothing that
//! was acknowledged is lost; nothing is taken that was never put.

use crate::run::{Context, Progress, Verdict, Worker, Workload};
use crate::schema;
use crate::session::{Attempted, Statements};
use crate::stats::StatsKey;
use async_trait::async_trait;
use meridian_base::Result;
use rand::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

/// The database it works in.
pub const DATABASE: &str = "queue";

/// The shape of the queue.
#[derive(Clone, Debug)]
pub struct QueueConfig {
    /// Share of operations that put rather than take.
    pub put_share: f64,
    /// Share of operations that lock the ends before reading them.
    pub lock_share: f64,
    /// Pause between two operations of a worker.
    pub think_time: Duration,
}

impl Default for QueueConfig {
    fn default() -> QueueConfig {
        QueueConfig { put_share: 0.55, lock_share: 0.5, think_time: Duration::ZERO }
    }
}

/// The workload.
pub struct Queue {
    config: QueueConfig,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next_item: i64,
    events: Vec<Event>,
    unknown_puts: BTreeSet<i64>,
    unknown_takes: u64,
}

/// An acknowledged put or take.
#[derive(Clone, Copy, Debug)]
struct Event {
    put: bool,
    item: i64,
    position: i64,
    invoked: u64,
    completed: u64,
}

impl Queue {
    /// A queue that nobody has used yet.
    pub fn new(config: QueueConfig) -> Queue {
        Queue { config, state: Mutex::default() }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no panic while noting")
    }
}

async fn put(statements: &mut Statements<'_>, item: i64, lock: bool) -> Result<i64> {
    let suffix = if lock { " FOR UPDATE" } else { "" };
    let tail = statements.query(&format!("SELECT tail FROM ends WHERE id = 1{suffix}"), &[]).await?.int(0, 0)?;
    statements.query("INSERT INTO items (position, item) VALUES ($1, $2)", &[tail.into(), item.into()]).await?;
    statements.query("UPDATE ends SET tail = $1 WHERE id = 1", &[(tail + 1).into()]).await?;
    Ok(tail)
}

/// The item and the position it was taken from; `None` when the queue is empty.
async fn take(statements: &mut Statements<'_>, lock: bool) -> Result<Option<(i64, i64)>> {
    let suffix = if lock { " FOR UPDATE" } else { "" };
    let ends = statements.query(&format!("SELECT head, tail FROM ends WHERE id = 1{suffix}"), &[]).await?;
    let (head, tail) = (ends.int(0, 0)?, ends.int(0, 1)?);
    if head == tail {
        return Ok(None);
    }
    let taken = statements.query("DELETE FROM items WHERE position = $1 RETURNING item", &[head.into()]).await?;
    statements.query("UPDATE ends SET head = $1 WHERE id = 1", &[(head + 1).into()]).await?;
    Ok(Some((taken.int(0, 0)?, head)))
}

/// Judges what clients were told against what is left (position → item).
fn judge(state: &State, left: &BTreeMap<i64, i64>, verdict: &mut Verdict) {
    for put in [true, false] {
        let word = if put { "put" } else { "taken" };
        let mut events: Vec<&Event> = state.events.iter().filter(|e| e.put == put).collect();
        events.sort_by_key(|e| e.position);
        let mut positions = BTreeSet::new();
        let mut items = BTreeSet::new();
        // Sorted by position, nobody may have been done before somebody further ahead was begun.
        let mut latest_start: Option<&Event> = None;
        for event in events {
            verdict.expect(positions.insert(event.position), || format!("position {} was {word} twice", event.position));
            verdict.expect(items.insert(event.item), || format!("item {} was {word} twice", event.item));
            if let Some(ahead) = latest_start {
                verdict.expect(event.completed >= ahead.invoked, || {
                    format!("item {} was {word} behind item {}, which was begun only after it was done", event.item, ahead.item)
                });
            }
            if latest_start.is_none_or(|ahead| ahead.invoked < event.invoked) {
                latest_start = Some(event);
            }
        }
    }
    let put: BTreeMap<i64, i64> = state.events.iter().filter(|e| e.put).map(|e| (e.item, e.position)).collect();
    let taken: BTreeMap<i64, i64> = state.events.iter().filter(|e| !e.put).map(|e| (e.item, e.position)).collect();
    let items_left: BTreeMap<i64, i64> = left.iter().map(|(position, item)| (*item, *position)).collect();
    for (item, position) in taken.iter().chain(&items_left) {
        let known = put.contains_key(item) || state.unknown_puts.contains(item);
        verdict.expect(known, || format!("item {item} came from nowhere"));
        let at = put.get(item).unwrap_or(position);
        verdict.expect(at == position, || format!("item {item} was put at {at} and found at {position}"));
    }
    for item in taken.keys() {
        verdict.expect(!items_left.contains_key(item), || format!("item {item} was taken and is still there"));
    }
    let gone = put.keys().filter(|item| !taken.contains_key(item) && !items_left.contains_key(item)).count() as u64;
    verdict.expect(gone <= state.unknown_takes, || {
        format!("{gone} acknowledged items are gone, but only {} takes are unaccounted for", state.unknown_takes)
    });
}

#[async_trait]
impl Workload for Queue {
    fn name(&self) -> &'static str {
        "queue"
    }

    async fn setup(&self, context: &Context, progress: &(dyn Fn(Progress) + Send + Sync)) -> Result<()> {
        schema::create_database(context, DATABASE).await?;
        let home = &context.connector.regions()[0];
        let locality = schema::locality(&*context.connector, home);
        let statements = [
            format!("CREATE TABLE ends (id INT8 PRIMARY KEY, head INT8 NOT NULL, tail INT8 NOT NULL){locality}"),
            format!("CREATE TABLE items (position INT8 PRIMARY KEY, item INT8 NOT NULL){locality}"),
            "INSERT INTO ends (id, head, tail) VALUES (1, 0, 0)".to_string(),
        ];
        schema::run_all(&mut context.session(home, DATABASE), &statements).await?;
        progress(Progress { rows_done: 1, rows_total: 1 });
        Ok(())
    }

    async fn worker(&self, context: &Context, worker: Worker) -> Result<()> {
        let mut rng = context.rng(u64::from(worker.id) + 1);
        let mut session = context.session(&worker.region, DATABASE);
        let locality = crate::run::locality_of(&context.connector.regions()[0], &worker.region);
        while !context.stop.is_stopped() {
            let lock = rng.random_bool(self.config.lock_share);
            let invoked = context.timer.now_micros();
            let now = || context.timer.now_micros();
            if rng.random_bool(self.config.put_share) {
                let item = {
                    let mut state = self.lock();
                    state.next_item += 1;
                    state.next_item
                };
                let attempted = session.transaction(&mut rng, |s| Box::pin(put(s, item, lock))).await;
                match &attempted {
                    Attempted::Committed(position) => {
                        let event = Event { put: true, item, position: *position, invoked, completed: now() };
                        self.lock().events.push(event);
                    }
                    Attempted::Unknown(..) => {
                        self.lock().unknown_puts.insert(item);
                    }
                    Attempted::Failed(_) => {}
                }
                let key = StatsKey { region: worker.region.clone(), operation: "put", locality };
                crate::run::account(context, &mut session, &key, invoked, &attempted).await?;
            } else {
                let attempted = session.transaction(&mut rng, |s| Box::pin(take(s, lock))).await;
                match &attempted {
                    Attempted::Committed(Some((item, position))) => {
                        let event = Event { put: false, item: *item, position: *position, invoked, completed: now() };
                        self.lock().events.push(event);
                    }
                    Attempted::Unknown(..) => self.lock().unknown_takes += 1,
                    Attempted::Committed(None) | Attempted::Failed(_) => {}
                }
                let key = StatsKey { region: worker.region.clone(), operation: "take", locality };
                crate::run::account(context, &mut session, &key, invoked, &attempted).await?;
            }
            if !self.config.think_time.is_zero() {
                tokio::time::sleep(self.config.think_time).await;
            }
        }
        Ok(())
    }

    async fn check(&self, context: &Context) -> Result<Verdict> {
        let mut session = context.session(&context.connector.regions()[0], DATABASE);
        let rows = crate::run::until_answered(context, &mut session, |statements| {
            Box::pin(async move { statements.query("SELECT position, item FROM items", &[]).await })
        })
        .await?;
        let left: Result<BTreeMap<i64, i64>> = (0..rows.rows.len()).map(|r| Ok((rows.int(r, 0)?, rows.int(r, 1)?))).collect();
        let mut verdict = Verdict::default();
        judge(&self.lock(), &left?, &mut verdict);
        Ok(verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(put: bool, item: i64, position: i64, invoked: u64, completed: u64) -> Event {
        Event { put, item, position, invoked, completed }
    }

    fn violations(events: Vec<Event>, left: &[(i64, i64)]) -> Vec<String> {
        let state = State { events, ..State::default() };
        let mut verdict = Verdict::default();
        judge(&state, &left.iter().copied().collect(), &mut verdict);
        verdict.violations
    }

    #[test]
    fn a_queue_in_order_passes() {
        let events =
            vec![event(true, 1, 0, 0, 10), event(true, 2, 1, 5, 20), event(true, 3, 2, 4, 30), event(false, 1, 0, 15, 25)];
        assert_eq!(violations(events, &[(1, 2), (2, 3)]), Vec::<String>::new());
    }

    #[test]
    fn every_disorder_is_found() {
        let put = |item, position, invoked| event(true, item, position, invoked, invoked + 5);
        let take = |item, position, invoked| event(false, item, position, invoked, invoked + 5);
        assert_eq!(violations(vec![put(1, 1, 0), put(2, 0, 10)], &[(1, 1), (0, 2)]).len(), 1, "real time of puts");
        let taken = vec![put(1, 0, 0), put(2, 1, 10), take(2, 1, 20), take(1, 0, 30)];
        assert_eq!(violations(taken, &[]).len(), 1, "real time of takes");
        assert!(!violations(vec![put(1, 0, 0), take(1, 0, 10), take(1, 0, 12)], &[]).is_empty(), "taken twice");
        assert!(!violations(vec![put(1, 0, 0), put(2, 0, 2)], &[(0, 2)]).is_empty(), "position twice");
        assert_eq!(violations(vec![put(1, 0, 0)], &[]).len(), 1, "lost");
        assert_eq!(violations(vec![take(1, 0, 0)], &[]).len(), 1, "from nowhere");
        assert_eq!(violations(vec![put(1, 0, 0), take(1, 0, 9)], &[(0, 1)]).len(), 1, "taken and still there");
        assert_eq!(violations(vec![put(1, 0, 0)], &[(5, 1)]).len(), 1, "moved");
    }
}
