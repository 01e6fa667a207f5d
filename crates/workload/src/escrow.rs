//! Escrow columns: counters that clients of all regions change at once, each by deltas, some
//! together with rows elsewhere, and that they read exactly.
//!
//! Some rows only take deltas, and every client's answer is accounted for. At the end, and at each
//! exact read:
//!
//! * a number is what it was at first, plus the deltas acknowledged before, plus some of those that
//!   were on their way or whose outcome is unknown;
//! * it is within its bounds;
//! * whoever was told that a delta would leave the bounds (23514) was told of a number that may
//!   have been so;
//! * a delta that came with a row of the journal did so or did not, both together.
//!
//! Other rows are set, deleted and inserted as well, and the bounds of them change. They have to be
//! within their bounds. Meanwhile the last region may come and go.

use crate::client::{Rows, Value};
use crate::run::{Context, Progress, Verdict, Worker, Workload};
use crate::schema;
use crate::session::{Attempted, Session};
use crate::stats::{Locality, StatsKey};
use async_trait::async_trait;
use meridian_base::Result;
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

/// How long tokens may be held after the last fault.
const REACH_MAX: Duration = Duration::from_secs(30);
/// From when on rounds that have not ended never will.
const ROUNDS_END_MAX: Duration = Duration::from_secs(120);

/// The database it works in.
pub const DATABASE: &str = "quotas";
/// Rows from here on are set, deleted and inserted as well.
const FIRST_WILD: i64 = 100;
/// So many deltas of unknown outcome are tried out one by one.
const UNKNOWN_TRIED: usize = 16;

/// The shape of the counters.
#[derive(Clone, Debug)]
pub struct EscrowConfig {
    /// Rows that only take deltas.
    pub rows: i64,
    /// Numbers stay from 0 to this.
    pub limit: i64,
    /// Deltas go up and down by at most this.
    pub delta_max: i64,
    /// Share of operations that are exact reads.
    pub read_share: f64,
    /// Share of deltas that come with a row of the journal, which may be in another group.
    pub journal_share: f64,
    /// Share of operations on the rows that are set as well.
    pub wild_share: f64,
    /// Share of deltas that come with a condition on the number, and tell what it is then.
    pub guarded_share: f64,
    /// Share of operations of the first worker that take the last region out of the database, or
    /// into it.
    pub regions_share: f64,
    /// Share of operations of the first worker that make the numbers an escrow column, or a plain
    /// one, or change the locality.
    pub splits_share: f64,
    /// Of forecasts, in seconds; `None`: the usual one.
    pub epoch: Option<u32>,
    /// Tokens are moved by `majority`, but for the time in which regions or the column change.
    pub by_majority: bool,
    /// Pause between two operations of a worker.
    pub think_time: Duration,
}

impl Default for EscrowConfig {
    fn default() -> EscrowConfig {
        EscrowConfig {
            rows: 2,
            limit: 100,
            delta_max: 5,
            read_share: 0.1,
            journal_share: 0.3,
            wild_share: 0.2,
            guarded_share: 0.1,
            regions_share: 0.0,
            splits_share: 0.0,
            epoch: None,
            by_majority: false,
            think_time: Duration::ZERO,
        }
    }
}

/// The workload.
pub struct Escrow {
    config: EscrowConfig,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: i64,
    events: Vec<Event>,
}

/// What a client did to a row that only takes deltas, and was told.
#[derive(Clone, Copy, Debug)]
struct Event {
    row: i64,
    invoked: u64,
    /// `u64::MAX`: nobody knows when, or whether.
    completed: u64,
    what: What,
    /// The row of the journal that came with it.
    entry: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Added(i64),
    /// The outcome is unknown.
    MayHaveAdded(i64),
    /// 23514.
    Outside(i64),
    Read(i64),
}

impl Escrow {
    /// Counters that nobody has changed yet.
    pub fn new(config: EscrowConfig) -> Escrow {
        assert!(config.rows > 0 && config.rows < FIRST_WILD && config.delta_max > 0);
        Escrow { config, state: Mutex::default() }
    }

    fn first_value(&self) -> i64 {
        self.config.limit / 2
    }

    fn note(&self, event: Event) {
        self.state.lock().expect("no panic while noting").events.push(event);
    }

    fn draw_entry(&self) -> i64 {
        let mut state = self.state.lock().expect("no panic while drawing");
        state.next += 1;
        state.next
    }

    fn draw_delta(&self, rng: &mut SmallRng) -> i64 {
        let size = rng.random_range(1..=self.config.delta_max);
        if rng.random_bool(0.5) { size } else { -size }
    }

    async fn add(&self, context: &Context, session: &mut Session, rng: &mut SmallRng, region: &str) -> Attempted<()> {
        let (row, delta) = (rng.random_range(1..=self.config.rows), self.draw_delta(rng));
        let journals = rng.random_bool(self.config.journal_share);
        let entry = self.draw_entry();
        let invoked = context.timer.now_micros();
        let update = "UPDATE quotas SET used = used + $1 WHERE id = $2";
        let params: [Value; 2] = [delta.into(), row.into()];
        let attempted = match journals {
            false => session.single(rng, update, &params).await.map(one_row),
            true => {
                let insert = "INSERT INTO journal (id, quota, delta, place) VALUES ($1, $2, $3, $4)";
                let line: [Value; 4] = [entry.into(), row.into(), delta.into(), region.into()];
                session
                    .transaction(rng, |statements| {
                        let (params, line) = (params.clone(), line.clone());
                        Box::pin(async move {
                            let changed = statements.query(update, &params).await?;
                            statements.query(insert, &line).await?;
                            Ok(changed)
                        })
                    })
                    .await
                    .map(one_row)
            }
        };
        let completed = context.timer.now_micros();
        let event = |completed, what| Event { row, invoked, completed, what, entry: journals.then_some(entry) };
        match &attempted {
            Attempted::Committed(()) => self.note(event(completed, What::Added(delta))),
            Attempted::Unknown(..) => self.note(event(u64::MAX, What::MayHaveAdded(delta))),
            Attempted::Failed(e) if e.sqlstate() == "23514" => self.note(event(completed, What::Outside(delta))),
            Attempted::Failed(_) => {}
        }
        attempted
    }

    /// A delta that looks at the number, and is told the new one.
    async fn add_guarded(&self, context: &Context, session: &mut Session, rng: &mut SmallRng) -> Attempted<()> {
        let (row, delta) = (rng.random_range(1..=self.config.rows), self.draw_delta(rng));
        let invoked = context.timer.now_micros();
        let update = "UPDATE quotas SET used = used + $1 WHERE id = $2 AND used + $1 BETWEEN 0 AND most RETURNING used";
        let attempted = session.single(rng, update, &[delta.into(), row.into()]).await;
        let completed = context.timer.now_micros();
        let event = |completed, what| Event { row, invoked, completed, what, entry: None };
        match &attempted {
            Attempted::Committed(rows) if rows.rows.is_empty() => self.note(event(completed, What::Outside(delta))),
            Attempted::Committed(rows) => match rows.int(0, 0) {
                Ok(value) => {
                    self.note(event(completed, What::Added(delta)));
                    self.note(event(completed, What::Read(value)));
                }
                Err(e) => return Attempted::Failed(e),
            },
            Attempted::Unknown(..) => self.note(event(u64::MAX, What::MayHaveAdded(delta))),
            Attempted::Failed(_) => {}
        }
        attempted.map(|_| ())
    }

    /// Takes the last region out of the database, or into it again.
    async fn change_regions(&self, context: &Context, session: &mut Session, rng: &mut SmallRng) -> Result<()> {
        let regions = context.connector.regions();
        let Some(last) = regions.last().filter(|_| regions.len() > 1) else { return Ok(()) };
        let (verb, noted) = match rng.random_bool(0.5) {
            true => ("ADD", "region added under shares"),
            false => ("DROP", "region dropped under shares"),
        };
        let sql = format!("ALTER DATABASE {DATABASE} {verb} REGION {}", schema::quoted(last));
        self.change_sites(context, session, &sql, noted).await
    }

    /// Makes the numbers an escrow column, or a plain one, or takes the rows elsewhere.
    async fn change_column(&self, context: &Context, session: &mut Session, rng: &mut SmallRng) -> Result<()> {
        let (action, noted) = match rng.random_range(0..6) {
            0 | 1 => ("ALTER COLUMN used SET ESCROW", "column split under load"),
            2 => ("ALTER COLUMN used DROP ESCROW", "column joined under load"),
            3 => ("SET LOCALITY GLOBAL", "shares stay where rows move"),
            4 => ("SET LOCALITY REGIONAL BY TABLE", "shares stay where rows move"),
            _ => ("SET LOCALITY REGIONAL BY ROW", "shares stay where rows move"),
        };
        self.change_sites(context, session, &format!("ALTER TABLE quotas {action}"), noted).await
    }

    /// Changes what rounds of `majority` rest on: they end before, and begin again afterwards.
    async fn change_sites(&self, context: &Context, session: &mut Session, sql: &str, noted: &'static str) -> Result<()> {
        if !self.config.by_majority {
            return self.change_schema(context, session, sql, noted).await;
        }
        let set = |protocol: &str| format!("ALTER TABLE quotas ALTER COLUMN used SET (escrow.protocol = '{protocol}')");
        match session.execute(&set("any")).await {
            // The column is a plain one at the moment.
            Err(e) if e.sqlstate() == "42809" => {}
            Err(_) => return Ok(()),
            Ok(_) => context.stats.note("rounds ended under load"),
        }
        let changed = self.change_schema(context, session, sql, noted).await;
        // Unless that fails, too.
        let _ = session.execute(&set("majority")).await;
        changed
    }

    async fn change_schema(&self, context: &Context, session: &mut Session, sql: &str, noted: &'static str) -> Result<()> {
        match session.execute(sql).await {
            Ok(_) => context.stats.note(noted),
            Err(e) if matches!(e.sqlstate(), "42601" | "0A000" | "XX000" | "XX001") => return Err(e.detail(format!("of {sql}"))),
            Err(_) => {}
        }
        Ok(())
    }

    async fn read(&self, context: &Context, session: &mut Session, rng: &mut SmallRng) -> Attempted<()> {
        let row = rng.random_range(1..=self.config.rows);
        let invoked = context.timer.now_micros();
        let attempted = session.single(rng, "SELECT used FROM quotas WHERE id = $1", &[row.into()]).await;
        let completed = context.timer.now_micros();
        if let Attempted::Committed(rows) = &attempted {
            match rows.int(0, 0) {
                Ok(value) => self.note(Event { row, invoked, completed, what: What::Read(value), entry: None }),
                Err(e) => return Attempted::Failed(e),
            }
        }
        attempted.map(|_| ())
    }

    async fn go_wild(&self, session: &mut Session, rng: &mut SmallRng) -> Attempted<()> {
        let row = FIRST_WILD + rng.random_range(0..2);
        let value = rng.random_range(0..=self.config.limit);
        let (sql, params): (&str, Vec<Value>) = match rng.random_range(0..8) {
            0 => ("DELETE FROM quotas WHERE id = $1", vec![row.into()]),
            1 => ("INSERT INTO quotas (id, used) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING", vec![row.into(), value.into()]),
            2 => ("UPDATE quotas SET used = $1 WHERE id = $2", vec![value.into(), row.into()]),
            3 => ("UPDATE quotas SET most = $1 WHERE id = $2", vec![(2 * value).into(), row.into()]),
            4 => (
                "UPDATE quotas SET most = most + $1, used = used + $1 WHERE id = $2",
                vec![self.draw_delta(rng).into(), row.into()],
            ),
            _ => ("UPDATE quotas SET used = used + $1 WHERE id = $2", vec![self.draw_delta(rng).into(), row.into()]),
        };
        session.single(rng, sql, &params).await.map(|_| ())
    }

    /// When nothing fails any more, each region can take a number to both its bounds: no token is
    /// held, and no round is without an end. What clients do not know the outcome of may still
    /// come.
    async fn reach_all_tokens(&self, context: &Context) -> Result<()> {
        let mut rng = context.rng(0);
        for row in 1..=self.config.rows {
            for region in context.connector.regions() {
                let mut session = context.session(&region, DATABASE);
                let began = context.timer.now_micros();
                while self.reach_bounds(context, &mut session, &mut rng, row).await?.is_some() {
                    let took = Duration::from_micros(context.timer.now_micros().saturating_sub(began));
                    if took > REACH_MAX {
                        // Known to happen: docs/limitations.md.
                        context.stats.note("tokens not reached in time");
                        return Ok(());
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
        context.stats.note("all tokens reached");
        Ok(())
    }

    /// When nothing fails any more, all rounds can be ended.
    async fn end_rounds(&self, context: &Context, verdict: &mut Verdict) {
        let mut session = context.session(&context.connector.regions()[0], DATABASE);
        let began = context.timer.now_micros();
        loop {
            match session.execute("ALTER TABLE quotas ALTER COLUMN used SET (escrow.protocol = 'any')").await {
                Ok(_) => return context.stats.note("rounds ended"),
                // The column is a plain one by now.
                Err(e) if e.sqlstate() == "42809" => return,
                Err(e) => {
                    let took = Duration::from_micros(context.timer.now_micros().saturating_sub(began));
                    if took > ROUNDS_END_MAX {
                        return verdict.expect(false, || format!("rounds of 'majority' do not end: {e}"));
                    }
                }
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Takes a number up, down, and to where it was. The error is why not.
    async fn reach_bounds(
        &self,
        context: &Context,
        session: &mut Session,
        rng: &mut SmallRng,
        row: i64,
    ) -> Result<Option<meridian_base::Error>> {
        let rows = crate::run::until_answered(context, session, |statements| {
            Box::pin(async move { statements.query("SELECT used FROM quotas WHERE id = $1", &[row.into()]).await })
        })
        .await?;
        let value = rows.int(0, 0)?;
        for delta in [self.config.limit - value, -self.config.limit, value] {
            let invoked = context.timer.now_micros();
            let update = "UPDATE quotas SET used = used + $1 WHERE id = $2";
            let attempted = session.single(rng, update, &[delta.into(), row.into()]).await;
            let event = |completed, what| Event { row, invoked, completed, what, entry: None };
            let completed = context.timer.now_micros();
            match attempted {
                Attempted::Committed(_) => self.note(event(completed, What::Added(delta))),
                Attempted::Failed(e) => {
                    if e.sqlstate() == "23514" {
                        self.note(event(completed, What::Outside(delta)));
                    }
                    return Ok(Some(e));
                }
                Attempted::Unknown(e, ..) => {
                    self.note(event(u64::MAX, What::MayHaveAdded(delta)));
                    return Ok(Some(e));
                }
            }
        }
        Ok(None)
    }

    /// `numbers`, with their upper bounds, and `journal`: what there is at the end.
    fn judge(&self, numbers: &BTreeMap<i64, (i64, i64)>, journal: &BTreeSet<i64>, verdict: &mut Verdict) {
        let state = self.state.lock().expect("no panic while judging");
        for (row, (value, most)) in numbers {
            verdict.expect((0..=*most).contains(value), || format!("row {row} is {value} at the end, and at most {most}"));
        }
        for row in 1..=self.config.rows {
            let events: Vec<Event> = state.events.iter().filter(|e| e.row == row).copied().collect();
            let Some((last, _)) = numbers.get(&row) else {
                verdict.expect(false, || format!("row {row} is gone"));
                continue;
            };
            let end = Event { row, invoked: u64::MAX - 1, completed: u64::MAX, what: What::Read(*last), entry: None };
            for event in events.iter().chain([&end]) {
                self.judge_event(event, &events, verdict);
            }
            let (mut sure, mut unknown) = (0, Vec::new());
            for event in &events {
                let is_there = event.entry.map(|entry| journal.contains(&entry));
                match (event.what, is_there) {
                    (What::Added(delta), Some(false)) => {
                        verdict
                            .expect(false, || format!("row {row}: {delta} was acknowledged, and its entry is gone: {event:?}"));
                    }
                    (What::Added(delta), _) | (What::MayHaveAdded(delta), Some(true)) => sure += delta,
                    (What::MayHaveAdded(_), Some(false)) => {}
                    (What::MayHaveAdded(delta), None) => unknown.push(delta),
                    (What::Outside(delta), entry) => {
                        verdict.expect(entry != Some(true), || format!("row {row}: {delta} was refused, and its entry is there"));
                    }
                    (What::Read(_), _) => {}
                }
            }
            if unknown.len() <= UNKNOWN_TRIED {
                let rest = last - self.first_value() - sure;
                verdict.expect(is_sum_of_some(&unknown, rest), || {
                    format!("row {row} is {last}: {rest} more than what was acknowledged, and unknown are {unknown:?}")
                });
            }
        }
    }

    /// Between what the number was at some moment of the event.
    fn judge_event(&self, event: &Event, all: &[Event], verdict: &mut Verdict) {
        let (mut least, mut most) = (self.first_value(), self.first_value());
        for other in all {
            let (delta, is_before) = match other.what {
                What::Added(delta) => (delta, other.completed < event.invoked),
                What::MayHaveAdded(delta) => (delta, false),
                What::Outside(_) | What::Read(_) => continue,
            };
            if is_before {
                (least, most) = (least + delta, most + delta);
            } else if other.invoked <= event.completed {
                (least, most) = (least + delta.min(0), most + delta.max(0));
            }
        }
        let (row, limit) = (event.row, self.config.limit);
        match event.what {
            What::Read(value) => {
                verdict.expect((0..=limit).contains(&value), || format!("row {row} was read as {value}, outside its bounds"));
                verdict.expect((least..=most).contains(&value), || {
                    format!("row {row} was read as {value}, and was between {least} and {most}: {event:?}")
                });
            }
            What::Outside(delta) => verdict.expect(least + delta < 0 || most + delta > limit, || {
                format!("row {row}: {delta} was refused, and the number was between {least} and {most}: {event:?}")
            }),
            What::Added(_) | What::MayHaveAdded(_) => {}
        }
    }
}

/// Whether some of the numbers, each used at most once, have this sum.
fn is_sum_of_some(numbers: &[i64], sum: i64) -> bool {
    match numbers.split_first() {
        None => sum == 0,
        Some((first, rest)) => is_sum_of_some(rest, sum) || is_sum_of_some(rest, sum - first),
    }
}

/// A delta changes the one row that is there.
fn one_row(rows: Rows) {
    assert_eq!(rows.affected, 1, "a row that is never deleted was not found");
}

#[async_trait]
impl Workload for Escrow {
    fn name(&self) -> &'static str {
        "escrow"
    }

    async fn setup(&self, context: &Context, progress: &(dyn Fn(Progress) + Send + Sync)) -> Result<()> {
        schema::create_database(context, DATABASE).await?;
        let home = &context.connector.regions()[0];
        let limit = self.config.limit;
        let by_row = if context.connector.knows_regions() { " LOCALITY REGIONAL BY ROW AS place" } else { "" };
        let place = if context.connector.knows_regions() { "crdb_internal_region" } else { "TEXT" };
        let first = self.first_value();
        let rows: Vec<String> = (1..=self.config.rows).map(|row| format!("({row}, {first})")).collect();
        let statements = [
            format!(
                "CREATE TABLE quotas (id INT8 PRIMARY KEY, used INT8 NOT NULL DEFAULT 0 ESCROW CHECK (used BETWEEN 0 AND most), most INT8 NOT NULL DEFAULT {limit})"
            ),
            format!(
                "CREATE TABLE journal (id INT8 PRIMARY KEY, quota INT8 NOT NULL, delta INT8 NOT NULL, place {place} NOT NULL){by_row}"
            ),
            format!("INSERT INTO quotas (id, used) VALUES {} ON CONFLICT (id) DO NOTHING", rows.join(", ")),
        ];
        let mut session = context.session(home, DATABASE);
        schema::run_all(&mut session, &statements).await?;
        if let Some(epoch) = self.config.epoch {
            let set = format!("ALTER TABLE quotas ALTER COLUMN used SET (escrow.epoch = '{epoch} seconds')");
            schema::run_all(&mut session, &[set]).await?;
        }
        if self.config.by_majority {
            let set = "ALTER TABLE quotas ALTER COLUMN used SET (escrow.protocol = 'majority')".to_string();
            schema::run_all(&mut session, &[set]).await?;
        }
        progress(Progress { rows_done: 1, rows_total: 1 });
        Ok(())
    }

    async fn worker(&self, context: &Context, worker: Worker) -> Result<()> {
        let mut rng = context.rng(u64::from(worker.id) + 1);
        let mut session = context.session(&worker.region, DATABASE);
        // No row is homed in the last region, so that it may go.
        let regions = context.connector.regions();
        let place = if regions.last() == Some(&worker.region) { &regions[0] } else { &worker.region };
        while !context.stop.is_stopped() {
            if worker.id == 0 && crate::run::chance(self.config.regions_share, &mut rng) {
                self.change_regions(context, &mut session, &mut rng).await?;
            }
            if worker.id == 0 && crate::run::chance(self.config.splits_share, &mut rng) {
                self.change_column(context, &mut session, &mut rng).await?;
            }
            let started = context.timer.now_micros();
            let (operation, attempted) = match rng.random::<f64>() {
                x if x < self.config.read_share => ("exact read", self.read(context, &mut session, &mut rng).await),
                x if x < self.config.read_share + self.config.wild_share => ("set", self.go_wild(&mut session, &mut rng).await),
                _ if crate::run::chance(self.config.guarded_share, &mut rng) => {
                    ("guarded delta", self.add_guarded(context, &mut session, &mut rng).await)
                }
                _ => ("delta", self.add(context, &mut session, &mut rng, place).await),
            };
            let key = StatsKey { region: worker.region.clone(), operation, locality: Locality::Own };
            let attempted = match attempted {
                // An answer.
                Attempted::Failed(e) if e.sqlstate() == "23514" => Attempted::Committed(()),
                other => other,
            };
            crate::run::account(context, &mut session, &key, started, &attempted).await?;
            if !self.config.think_time.is_zero() {
                tokio::time::sleep(self.config.think_time).await;
            }
        }
        Ok(())
    }

    async fn check(&self, context: &Context) -> Result<Verdict> {
        let mut verdict = Verdict::default();
        if self.config.by_majority {
            self.reach_all_tokens(context).await?;
            self.end_rounds(context, &mut verdict).await;
        }
        let mut session = context.session(&context.connector.regions()[0], DATABASE);
        let rows = crate::run::until_answered(context, &mut session, |statements| {
            Box::pin(async move { statements.query("SELECT id, used, most FROM quotas", &[]).await })
        })
        .await?;
        let mut numbers = BTreeMap::new();
        for row in 0..rows.rows.len() {
            numbers.insert(rows.int(row, 0)?, (rows.int(row, 1)?, rows.int(row, 2)?));
        }
        let rows = crate::run::until_answered(context, &mut session, |statements| {
            Box::pin(async move { statements.query("SELECT id FROM journal", &[]).await })
        })
        .await?;
        let journal: BTreeSet<i64> = (0..rows.rows.len()).map(|row| rows.int(row, 0)).collect::<Result<_>>()?;
        self.judge(&numbers, &journal, &mut verdict);
        Ok(verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(events: &[(u64, u64, What)], last: i64) -> Vec<String> {
        let counters = Escrow::new(EscrowConfig { rows: 1, limit: 10, ..EscrowConfig::default() });
        events.iter().for_each(|(invoked, completed, what)| {
            counters.note(Event { row: 1, invoked: *invoked, completed: *completed, what: *what, entry: None });
        });
        let mut verdict = Verdict::default();
        counters.judge(&BTreeMap::from([(1, (last, 10))]), &BTreeSet::new(), &mut verdict);
        verdict.violations
    }

    /// With the entry 7 of the journal, which is there or not.
    fn judged_with_entry(what: What, last: i64, is_there: bool) -> usize {
        let counters = Escrow::new(EscrowConfig { rows: 1, limit: 10, ..EscrowConfig::default() });
        let completed = if matches!(what, What::MayHaveAdded(_)) { u64::MAX } else { 2 };
        counters.note(Event { row: 1, invoked: 1, completed, what, entry: Some(7) });
        let mut verdict = Verdict::default();
        counters.judge(&BTreeMap::from([(1, (last, 10))]), &is_there.then_some(7).into_iter().collect(), &mut verdict);
        verdict.violations.len()
    }

    #[test]
    fn what_may_have_been_passes() {
        let events = [
            (1, 2, What::Added(3)),
            (3, 4, What::Read(8)),
            (5, 9, What::Added(-2)),
            (6, 7, What::Read(8)),
            (6, 8, What::Read(6)),
            (10, 11, What::Outside(5)),
            (12, u64::MAX, What::MayHaveAdded(1)),
            (13, 14, What::Read(6)),
            (15, 16, What::Read(7)),
        ];
        assert_eq!(judged(&events, 7), Vec::<String>::new());
        assert_eq!(judged(&events[..8], 6), Vec::<String>::new());
    }

    #[test]
    fn every_wrong_number_is_found() {
        assert!(!judged(&[(1, 2, What::Added(3))], 5).is_empty(), "an acknowledged delta is lost");
        assert!(!judged(&[(1, 2, What::Added(3))], 11).is_empty(), "a delta counts twice, and the bound is left");
        assert!(!judged(&[(1, 2, What::Added(3)), (3, 4, What::Read(5))], 8).is_empty(), "an old number is read");
        assert!(!judged(&[(1, 2, What::Read(8)), (3, 4, What::Added(3))], 8).is_empty(), "a number of the future is read");
        assert!(!judged(&[(1, 2, What::Outside(3))], 5).is_empty(), "a delta is refused that fits");
        assert!(!judged(&[(1, u64::MAX, What::MayHaveAdded(3))], 6).is_empty(), "a part of a delta");
        assert_eq!(judged_with_entry(What::MayHaveAdded(3), 8, true), 0);
        assert_eq!(judged_with_entry(What::MayHaveAdded(3), 5, false), 0);
        assert_eq!(judged_with_entry(What::MayHaveAdded(3), 5, true), 1, "an entry without its delta");
        assert_eq!(judged_with_entry(What::MayHaveAdded(3), 8, false), 1, "a delta without its entry");
        assert_eq!(judged_with_entry(What::Added(3), 8, false), 2, "an acknowledged entry is lost");
        assert_eq!(judged_with_entry(What::Outside(8), 5, true), 1, "an entry of a refused delta");
        let counters = Escrow::new(EscrowConfig { rows: 1, limit: 10, ..EscrowConfig::default() });
        let mut verdict = Verdict::default();
        counters.judge(&BTreeMap::from([(1, (5, 10)), (FIRST_WILD, (11, 10))]), &BTreeSet::new(), &mut verdict);
        counters.judge(&BTreeMap::new(), &BTreeSet::new(), &mut verdict);
        assert_eq!(verdict.violations.len(), 2, "{:?}", verdict.violations);
    }
}
