//! List-append: transactions of appends to lists and reads of lists, one by one and by range.
//!
//! An append leaves its whole past in the value (the list), so a reader sees which appends came
//! before and in which order: that is what lets a checker rebuild the dependencies between
//! transactions from the outside. Ranges are read too, and new keys appear inside them all the
//! time, so phantoms have a chance to show.
//!
//! A row holds two lists in two columns, and each is a key of its own: two transactions may meet in
//! one row without touching the same column, which certification tells apart.
//!
//! A share of the transactions picks the region anew for every step, so one transaction reads and
//! appends keys of several regions; a range read is then often made in every region, one after the
//! other, where only one snapshot over all of them will do. Some of them only read, a range in
//! every region, in a block that says so or in one statement: the database has ways of its own for
//! these. The history needs no regions: a key's number says which one it belongs to.
//!
//! Every attempt is a record of its own, with values never used before: the appends of an attempt
//! that was refused must never be seen by anybody. So are appends behind a savepoint that are
//! rolled back: they are a record that aborted.
//!
//! [`Extras`] send more of the same through other parts of the database: rows that are deleted,
//! once and for ever; rows found by a secondary index; one table REGIONAL BY ROW, whose rows move,
//! in the place of a table for each region; blocks that only read, now or in the past; schema
//! changes, and regions that leave the database, meanwhile. What a reader may see is the same in
//! every case.

mod statements;

use crate::history::{Op, Outcome, Record};
use crate::run::{Context, Progress, Verdict, Worker, Workload};
use crate::schema;
use crate::session::{Attempted, Mode, RetryPolicy, Session};
use crate::stats::{Locality, StatsKey};
use async_trait::async_trait;
use meridian_base::{Error, Result};
use rand::Rng;
use rand::rngs::SmallRng;
use statements::{Done, Home, perform, read_at_once, read_range};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const DATABASE: &str = "lists";
/// Keys of one region in the history; a key of region `r` in the table is `r * KEYS_OF_REGION`
/// higher in the history.
const KEYS_OF_REGION: i64 = 1_000_000;
/// Share of the transactions over several regions that only read.
const READING_SHARE: f64 = 0.25;
const REST: Duration = Duration::from_millis(50);
/// Rows that are deleted at some time are every so many of a region's.
const MORTAL_ROWS: i64 = 4;
/// The schema of the table over all regions.
const EVERYWHERE: &str = "everywhere";

/// The keys in the history that belong to one of the regions.
pub fn keys_of_region(index: usize) -> std::ops::Range<i64> {
    let first = index as i64 * KEYS_OF_REGION;
    first..first + KEYS_OF_REGION
}

/// What else transactions and tables are made of.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extras {
    /// Some rows are deleted. Not where a table is GLOBAL.
    pub deletes: bool,
    /// Rows are found by a secondary index too.
    pub by_index: bool,
    /// One table REGIONAL BY ROW, whose rows move, in the place of a table for each region.
    pub by_row: bool,
    /// Share of appends that are made behind a savepoint; half of them are taken back.
    pub savepoint_share: f64,
    /// Share of transactions over one region that only read.
    pub reading_share: f64,
    /// Share of transactions that read the past.
    pub past_share: f64,
    /// Share of the first worker's turns in which it changes the schema instead.
    pub schema_share: f64,
}

/// The shape of the lists.
#[derive(Clone, Debug)]
pub struct ListAppendConfig {
    /// Keys in use at a time, per region.
    pub keys_active: usize,
    /// After as many appends a key is left alone and a fresh one takes its place.
    pub appends_per_key: u32,
    /// Most operations in one transaction.
    pub operations_max: usize,
    pub other_region_share: f64,
    /// Share of transactions whose steps are spread over the regions.
    pub several_regions_share: f64,
    /// What stands for the last region is a GLOBAL table, if there are several.
    pub has_global: bool,
    /// Pause between two transactions of a worker.
    pub think_time: Duration,
    /// Some transactions stay open for up to this long between two of their statements.
    pub pause_max: Duration,
    pub extras: Extras,
}

impl Default for ListAppendConfig {
    fn default() -> ListAppendConfig {
        ListAppendConfig {
            keys_active: 6,
            appends_per_key: 24,
            operations_max: 4,
            other_region_share: 0.1,
            several_regions_share: 0.0,
            has_global: false,
            think_time: Duration::ZERO,
            pause_max: Duration::ZERO,
            extras: Extras::default(),
        }
    }
}

/// The workload.
pub struct ListAppend {
    config: ListAppendConfig,
    state: Mutex<State>,
}

/// Which keys are in use, and the next unused value.
#[derive(Default)]
struct State {
    keys: BTreeMap<String, Vec<(i64, u32)>>,
    next_key: BTreeMap<String, i64>,
    next_value: i64,
    /// Rows of keys that are deleted at some time, as far as somebody has inserted them or is
    /// trying to: once.
    born: BTreeSet<(String, i64)>,
}

/// One planned operation, with keys as in the table.
#[derive(Clone, Copy, Debug)]
enum Step {
    Read {
        key: i64,
    },
    ReadRange {
        from: i64,
        to: i64,
    },
    Append {
        key: i64,
        value: i64,
        how: How,
        savepoint: Option<Fate>,
    },
    /// Of both lists of a row.
    Delete {
        row: i64,
    },
    /// A row goes to another region.
    Move {
        row: i64,
        to: usize,
    },
    /// A row in a table that comes and goes.
    Scratch {
        id: i64,
    },
}

/// What becomes of what was done behind a savepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Kept,
    TakenBack,
}

/// The statements that an append is made of: each takes another way through the database.
#[derive(Clone, Copy, Debug)]
enum How {
    /// Reads the list, then writes the longer one.
    ReadThenWrite,
    /// The same, reading with a lock.
    LockThenWrite,
    /// `UPDATE … SET v = v || …`, and INSERT where there was no row.
    Concatenate,
    /// `INSERT … ON CONFLICT DO UPDATE`.
    Upsert,
    /// INSERT, of a row that nobody else inserts.
    Birth,
    /// UPDATE of a row that may not be there yet, or not any more, and then nothing happens.
    IfThere,
}

impl ListAppend {
    /// Lists that no worker has used yet.
    pub fn new(config: ListAppendConfig) -> ListAppend {
        assert!(config.keys_active > 0 && config.operations_max > 0 && config.appends_per_key > 0);
        ListAppend { config, state: Mutex::default() }
    }

    /// The steps of one transaction, each in one of `regions` (its place among them).
    fn plan(&self, regions: &[&str], rng: &mut SmallRng) -> Vec<(usize, Step)> {
        let mut state = self.state.lock().expect("no panic while planning");
        let count = rng.random_range(1..=self.config.operations_max);
        let mut steps = Vec::with_capacity(count);
        for _ in 0..count {
            let at = if regions.len() > 1 { rng.random_range(0..regions.len()) } else { 0 };
            let step = state.step(&self.config, regions[at], rng);
            if matches!(step, Step::ReadRange { .. }) && regions.len() > 1 && rng.random_bool(0.5) {
                for (other, region) in regions.iter().enumerate().filter(|(other, _)| *other != at) {
                    steps.push((other, state.range(&self.config, region, rng)));
                }
            }
            steps.push((at, step));
        }
        steps
    }

    /// A transaction that did not commit inserted no row: another one may.
    fn unborn(&self, regions: &[&str], steps: &[(usize, Step)]) {
        let mut state = self.state.lock().expect("no panic while planning");
        for (at, step) in steps {
            if let Step::Append { key, how: How::Birth, .. } = step {
                state.born.remove(&(regions[*at].to_string(), key / 2));
            }
        }
    }

    /// A range in every region.
    fn plan_reads(&self, regions: &[&str], rng: &mut SmallRng) -> Vec<(usize, Step)> {
        let mut state = self.state.lock().expect("no panic while planning");
        regions.iter().enumerate().map(|(at, region)| (at, state.range(&self.config, region, rng))).collect()
    }

    /// One change of the schema. It may be refused for what the schema is now, or for what is down.
    async fn change_schema(
        &self,
        context: &Context,
        session: &mut Session,
        regions: &[String],
        rng: &mut SmallRng,
    ) -> Result<()> {
        let region = &regions[rng.random_range(0..regions.len())];
        let Home { schema, .. } = Home::of(context, region, self.config.extras);
        let place = match self.config.extras.by_row {
            true => String::new(),
            false => schema::locality(&*context.connector, region),
        };
        let changes = match rng.random_range(0..10) {
            0 => vec![format!("CREATE INDEX lists_more ON {schema}.lists (v)")],
            1 => vec![format!("DROP INDEX {schema}.lists_more")],
            2 => vec![format!("ALTER TABLE {schema}.lists ADD COLUMN extra INT8 DEFAULT 7")],
            3 => vec![format!("ALTER TABLE {schema}.lists DROP COLUMN extra")],
            4..=5 => vec![format!("CREATE TABLE {schema}.scratch (id INT8 PRIMARY KEY){place}")],
            6 => vec![format!("DROP TABLE {schema}.scratch")],
            // The first region is the primary one.
            _ if self.config.extras.by_row && regions.len() > 1 => {
                let region = &regions[rng.random_range(1..regions.len())];
                let name = schema::quoted(region);
                match rng.random_bool(0.5) {
                    true => vec![format!("ALTER DATABASE {DATABASE} ADD REGION {name}")],
                    false => vec![
                        format!("UPDATE {schema}.lists SET crdb_region = '{}' WHERE crdb_region = '{region}'", regions[0]),
                        format!("ALTER DATABASE {DATABASE} DROP REGION {name}"),
                    ],
                }
            }
            _ => vec![format!("DROP TABLE {schema}.scratch")],
        };
        for sql in changes {
            match session.execute(&sql).await {
                Ok(_) => context.stats.note(match () {
                    () if sql.contains("DROP REGION") => "region dropped under load",
                    () if sql.starts_with("DROP TABLE") => "table dropped under load",
                    () if sql.starts_with("UPDATE") => "rows moved to another region",
                    () => "schema changed under load",
                }),
                Err(e) if matches!(e.sqlstate(), "42601" | "0A000" | "XX000" | "XX001") => {
                    return Err(e.detail(format!("of {sql}")));
                }
                Err(_) => tokio::time::sleep(REST).await,
            }
        }
        Ok(())
    }

    /// The regions that a worker's next transaction picks from, and under what it is counted.
    fn choose<'r>(&self, regions: &'r [String], worker: &'r Worker, rng: &mut SmallRng) -> (StatsKey, Vec<&'r str>) {
        let region = worker.region.clone();
        if regions.len() > 1 && crate::run::chance(self.config.several_regions_share, rng) {
            let key = StatsKey { region, operation: "transaction over regions", locality: Locality::Other };
            return (key, regions.iter().map(String::as_str).collect());
        }
        let (home, locality) = crate::run::pick_region(regions, &worker.region, self.config.other_region_share, rng);
        (StatsKey { region, operation: "transaction", locality }, vec![home])
    }

    async fn attempt(
        &self,
        context: &Context,
        session: &mut Session,
        worker: &Worker,
        regions: &[&str],
        rng: &mut SmallRng,
    ) -> Tried {
        let extras = self.config.extras;
        let is_past = crate::run::chance(extras.past_share, rng);
        let only_reads = match regions.len() {
            1 => is_past || crate::run::chance(extras.reading_share, rng),
            _ => is_past || rng.random_bool(READING_SHARE),
        };
        let steps: Arc<[(usize, Step)]> = match only_reads {
            true => self.plan_reads(regions, rng).into(),
            false => self.plan(regions, rng).into(),
        };
        let mode = match (only_reads, is_past) {
            (_, true) => Mode::Past,
            (true, _) => Mode::ReadOnly,
            (false, _) => Mode::Usual,
        };
        let homes: Arc<[Home]> = regions.iter().map(|region| Home::of(context, region, extras)).collect();
        if only_reads && !is_past && rng.random_bool(0.5) {
            return read_at_once(context, session, worker, &homes, &steps).await;
        }
        let done: Arc<Done> = Arc::default();
        let mut pause = crate::run::draw_pause(self.config.pause_max, rng);
        let pause_before = rng.random_range(0..steps.len());
        let invoked = context.timer.now_micros();
        let attempted = session
            .transaction_in(mode, rng, |statements| {
                let (steps, homes, done) = (steps.clone(), homes.clone(), done.clone());
                // Only once: a transaction that is too slow must not be so again.
                let pause = std::mem::take(&mut pause);
                Box::pin(async move {
                    for (index, (at, step)) in steps.iter().enumerate() {
                        if index == pause_before && !pause.is_zero() {
                            tokio::time::sleep(pause).await;
                        }
                        perform(statements, &homes[*at], *step, &done).await?;
                    }
                    Ok(())
                })
            })
            .await;
        let (outcome, tried) = match attempted {
            Attempted::Committed(()) => (Outcome::Committed, Tried::Committed),
            Attempted::Failed(error) => (Outcome::Aborted, Tried::Failed(error)),
            Attempted::Unknown(..) => (Outcome::Unknown, Tried::Unknown),
        };
        let mut ops = done.take();
        if outcome != Outcome::Committed {
            // What a client reads in a transaction that does not commit is speculative and promises
            // nothing.
            ops.retain(|op| matches!(op, Op::Append { .. } | Op::Delete { .. }));
        }
        if is_past {
            ops.insert(0, Op::Past);
        }
        if outcome == Outcome::Aborted {
            self.unborn(regions, &steps);
        }
        let completed = (outcome != Outcome::Unknown).then(|| context.timer.now_micros());
        let taken_back = done.take_taken_back();
        if !taken_back.is_empty() {
            // Whatever became of the transaction.
            let completed = Some(context.timer.now_micros());
            context.history.push(Record { client: worker.id, invoked, completed, outcome: Outcome::Aborted, ops: taken_back });
        }
        context.history.push(Record { client: worker.id, invoked, completed, outcome, ops });
        tried
    }
}

enum Tried {
    Committed,
    Failed(Error),
    Unknown,
}

impl State {
    fn step(&mut self, config: &ListAppendConfig, region: &str, rng: &mut SmallRng) -> Step {
        self.fill(config, region);
        let keys = &self.keys[region];
        let (key, _) = keys[rng.random_range(0..keys.len())];
        if let Some(step) = self.extra_step(config, region, key, rng) {
            return step;
        }
        match rng.random_range(0..10) {
            0..=2 => Step::Read { key },
            3..=4 => self.range(config, region, rng),
            kind => {
                let how = match kind {
                    5..=6 => How::ReadThenWrite,
                    7 => How::LockThenWrite,
                    8 => How::Concatenate,
                    _ => How::Upsert,
                };
                let savepoint = draw_savepoint(config, rng);
                Step::Append { key, value: self.take_value(config, region, key), how, savepoint }
            }
        }
    }

    /// A step that only transactions with extras have; and every write to a row that is deleted at
    /// some time is such a one.
    fn extra_step(&mut self, config: &ListAppendConfig, region: &str, key: i64, rng: &mut SmallRng) -> Option<Step> {
        let extras = config.extras;
        let is_mortal = extras.deletes && key / 2 % MORTAL_ROWS == MORTAL_ROWS - 1;
        if extras.by_row && rng.random_bool(0.1) {
            return Some(Step::Move { row: key / 2, to: rng.random_range(0..usize::MAX) });
        }
        if extras.schema_share > 0.0 && rng.random_bool(0.1) {
            self.next_value += 1;
            return Some(Step::Scratch { id: self.next_value });
        }
        if !is_mortal {
            return None;
        }
        if rng.random_bool(0.5) {
            return Some(Step::Read { key });
        }
        let place = (region.to_string(), key / 2);
        let is_born = self.born.contains(&place);
        if is_born && rng.random_bool(0.2) {
            return Some(Step::Delete { row: key / 2 });
        }
        let how = if is_born { How::IfThere } else { How::Birth };
        // A row that is taken back is never there: another one may insert it.
        let savepoint = if is_born { draw_savepoint(config, rng) } else { None };
        self.born.insert(place);
        Some(Step::Append { key, value: self.take_value(config, region, key), how, savepoint })
    }

    fn range(&mut self, config: &ListAppendConfig, region: &str, rng: &mut SmallRng) -> Step {
        self.fill(config, region);
        let keys = &self.keys[region];
        let least = keys.iter().map(|(k, _)| *k).min().expect("filled");
        let most = keys.iter().map(|(k, _)| *k).max().expect("filled");
        // Beyond the newest key, so that the next one to be inserted is a phantom of this range.
        let from = rng.random_range(least..=most);
        Step::ReadRange { from, to: rng.random_range(from + 1..=most + 3) }
    }

    fn fill(&mut self, config: &ListAppendConfig, region: &str) {
        let keys = self.keys.entry(region.to_string()).or_default();
        let next = self.next_key.entry(region.to_string()).or_default();
        while keys.len() < config.keys_active {
            keys.push((*next, 0));
            *next += 1;
        }
    }

    fn take_value(&mut self, config: &ListAppendConfig, region: &str, key: i64) -> i64 {
        let keys = self.keys.get_mut(region).expect("filled");
        let slot = keys.iter().position(|(k, _)| *k == key).expect("a key in use");
        keys[slot].1 += 1;
        if keys[slot].1 == config.appends_per_key {
            keys.remove(slot);
        }
        self.next_value += 1;
        self.next_value
    }
}

fn draw_savepoint(config: &ListAppendConfig, rng: &mut SmallRng) -> Option<Fate> {
    crate::run::chance(config.extras.savepoint_share, rng).then(|| match rng.random_bool(0.5) {
        true => Fate::Kept,
        false => Fate::TakenBack,
    })
}

/// No such database, schema, table, column, index or cluster: there was none then.
fn is_of_another_time(error: &Error) -> bool {
    matches!(error.sqlstate(), "22023" | "3D000" | "3F000" | "42P01" | "42703" | "42704")
}

#[async_trait]
impl Workload for ListAppend {
    fn name(&self) -> &'static str {
        "list-append"
    }

    async fn setup(&self, context: &Context, progress: &(dyn Fn(Progress) + Send + Sync)) -> Result<()> {
        schema::create_database(context, DATABASE).await?;
        let regions = context.connector.regions();
        let extras = self.config.extras;
        let tag = if extras.by_index { ", tag INT8" } else { "" };
        let columns = format!("(k INT8 PRIMARY KEY, v TEXT, w TEXT{tag})");
        for (done, region) in regions.iter().enumerate() {
            if extras.by_row && done > 0 {
                break;
            }
            let schema = if extras.by_row { EVERYWHERE.to_string() } else { schema::schema_of(region) };
            let is_last = regions.len() > 1 && regions.last() == Some(region);
            let home = match self.config.has_global && is_last {
                _ if extras.by_row => " LOCALITY REGIONAL BY ROW".to_string(),
                true => schema::global(&*context.connector),
                false => schema::locality(&*context.connector, region),
            };
            let mut tables = vec![format!("CREATE SCHEMA {schema}"), format!("CREATE TABLE {schema}.lists {columns}{home}")];
            if extras.by_index {
                tables.push(format!("CREATE INDEX lists_tag ON {schema}.lists (tag)"));
            }
            schema::run_all(&mut context.session(region, DATABASE), &tables).await?;
            progress(Progress { rows_done: done as u64 + 1, rows_total: regions.len() as u64 });
        }
        Ok(())
    }

    async fn worker(&self, context: &Context, worker: Worker) -> Result<()> {
        let mut rng = context.rng(u64::from(worker.id) + 1);
        let once = RetryPolicy { retries_max: 0, ..context.retry };
        let mut session = Session::new(context, &worker.region, DATABASE, once);
        let regions = context.connector.regions();
        while !context.stop.is_stopped() {
            if worker.id == 0 && crate::run::chance(self.config.extras.schema_share, &mut rng) {
                self.change_schema(context, &mut session, &regions, &mut rng).await?;
                continue;
            }
            let (key, among) = self.choose(&regions, &worker, &mut rng);
            let started = context.timer.now_micros();
            match self.attempt(context, &mut session, &worker, &among, &mut rng).await {
                Tried::Committed => {
                    let took = Duration::from_micros(context.timer.now_micros() - started);
                    context.stats.success(&key, took, 0);
                }
                // Two transactions may both insert a key's first row; the second learns of the
                // first by this error. A moment of the past may lie before the tables were made.
                Tried::Failed(error)
                    if crate::session::is_retryable(&error)
                        || error.sqlstate() == "23505"
                        || (self.config.extras.past_share > 0.0 && is_of_another_time(&error)) =>
                {
                    context.stats.failure(&key, 1);
                    tokio::time::sleep(Duration::from_millis(rng.random_range(1..5))).await;
                }
                Tried::Failed(error) => {
                    context.stats.failure(&key, 0);
                    crate::run::rest_after(&error, REST).await?;
                }
                Tried::Unknown => {
                    context.stats.unknown(&key, 0);
                    tokio::time::sleep(REST).await;
                }
            }
            if !self.config.think_time.is_zero() {
                tokio::time::sleep(self.config.think_time).await;
            }
        }
        Ok(())
    }

    /// Reads everything once more and records it, so that the checker sees which appends lasted.
    async fn check(&self, context: &Context) -> Result<Verdict> {
        let mut verdict = Verdict::default();
        for region in context.connector.regions() {
            let home = Arc::new(Home::of(context, &region, self.config.extras));
            let mut session = context.session(&region, DATABASE);
            let invoked = context.timer.now_micros();
            let lists = crate::run::until_answered(context, &mut session, |statements| {
                let home = home.clone();
                Box::pin(async move { read_range(statements, &home, 0, KEYS_OF_REGION).await })
            })
            .await?;
            verdict.examined += lists.len() as u64;
            context.history.push(Record {
                client: u32::MAX,
                invoked,
                completed: Some(context.timer.now_micros()),
                outcome: Outcome::Committed,
                ops: vec![Op::ReadRange { from: home.offset, to: home.offset + KEYS_OF_REGION, lists }],
            });
        }
        Ok(verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn no_value_is_planned_twice_and_keys_are_retired() {
        let workload = ListAppend::new(ListAppendConfig { appends_per_key: 3, ..ListAppendConfig::default() });
        let mut rng = SmallRng::seed_from_u64(7);
        let mut values = BTreeSet::new();
        let mut appends: BTreeMap<i64, u32> = BTreeMap::new();
        for _ in 0..500 {
            for (_, step) in workload.plan(&["r"], &mut rng) {
                if let Step::Append { key, value, .. } = step {
                    assert!(values.insert(value), "value {value} twice");
                    *appends.entry(key).or_default() += 1;
                }
            }
        }
        assert!(appends.len() > 100, "keys are replaced");
        assert!(appends.values().all(|n| *n <= 3));
    }

    #[test]
    fn a_plan_over_regions_reads_ranges_of_all_and_appends_in_each() {
        let workload = ListAppend::new(ListAppendConfig::default());
        let mut rng = SmallRng::seed_from_u64(7);
        let (mut spread, mut all_ranges) = (0, 0);
        let mut appended = BTreeSet::new();
        for _ in 0..500 {
            let steps = workload.plan(&["a", "b", "c"], &mut rng);
            let regions = |steps: &[&(usize, Step)]| steps.iter().map(|(at, _)| *at).collect::<BTreeSet<_>>().len();
            spread += usize::from(regions(&steps.iter().collect::<Vec<_>>()) > 1);
            let ranges: Vec<_> = steps.iter().filter(|(_, step)| matches!(step, Step::ReadRange { .. })).collect();
            all_ranges += usize::from(regions(&ranges) == 3);
            appended.extend(steps.iter().filter(|(_, step)| matches!(step, Step::Append { .. })).map(|(at, _)| *at));
        }
        assert!(spread > 250, "{spread} of 500 transactions touch several regions");
        assert!(all_ranges > 50, "{all_ranges} of 500 transactions read ranges of all regions");
        assert_eq!(appended, BTreeSet::from([0, 1, 2]));
    }

    #[test]
    fn a_share_of_0_draws_what_it_drew_before() {
        let (mut one, mut other) = (SmallRng::seed_from_u64(3), SmallRng::seed_from_u64(3));
        assert!(!crate::run::chance(0.0, &mut one));
        assert_eq!(one.random::<u64>(), other.random::<u64>());
    }
}
