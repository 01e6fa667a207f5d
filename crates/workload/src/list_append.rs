//! List-append: transactions of appends to lists and reads of lists, one by one and by range.
//!
//! An append leaves its whole past in the value (the list), so a reader sees which appends came before and in which order:
//! that is what lets a checker rebuild the dependencies between transactions from the outside. Ranges are read too, and new
//! keys appear inside them all the time, so phantoms have a chance to show.
//!
//! A row holds two lists in two columns, and each is a key of its own: two transactions may meet in one row without
//! touching the same column, which certification tells apart.
//!
//! A share of the transactions picks the region anew for every step, so one transaction reads and appends keys of several
//! regions; a range read is then often made in every region, one after the other, where only one snapshot over all of them
//! will do. Some of them only read, a range in every region, in a block that says so or in one statement: the database has ways of
//! its own for these. The history needs no regions: a key's number says which one it belongs to.
//!
//! Every attempt is a record of its own, with values never used before: the appends of an attempt that was refused must
//! never be seen by anybody.

use crate::client::{Rows, Value};
use crate::history::{Op, Outcome, Record};
use crate::run::{Context, Progress, Verdict, Worker, Workload};
use crate::schema;
use crate::session::{Attempted, Mode, RetryPolicy, Session, Statements};
use crate::stats::{Locality, StatsKey};
use async_trait::async_trait;
use meridian_base::{Error, Result};
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const DATABASE: &str = "lists";
/// Keys of one region in the history; a key of region `r` in the table is `r * KEYS_OF_REGION` higher in the history.
const KEYS_OF_REGION: i64 = 1_000_000;
/// Share of the transactions over several regions that only read.
const READING_SHARE: f64 = 0.25;
const REST: Duration = Duration::from_millis(50);

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
}

/// One planned operation, with keys as in the table.
#[derive(Clone, Copy, Debug)]
enum Step {
    Read { key: i64 },
    ReadRange { from: i64, to: i64 },
    Append { key: i64, value: i64, how: How },
}

/// Where a step goes.
#[derive(Debug, PartialEq, Eq)]
struct Home {
    schema: String,
    /// What a key of the table is higher by in the history.
    offset: i64,
}

impl Home {
    fn of(context: &Context, region: &str) -> Home {
        let regions = context.connector.regions();
        let index = regions.iter().position(|r| r == region).expect("a region of the cluster");
        Home { schema: schema::schema_of(region), offset: index as i64 * KEYS_OF_REGION }
    }
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

    /// A range in every region.
    fn plan_reads(&self, regions: &[&str], rng: &mut SmallRng) -> Vec<(usize, Step)> {
        let mut state = self.state.lock().expect("no panic while planning");
        regions.iter().enumerate().map(|(at, region)| (at, state.range(&self.config, region, rng))).collect()
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
        let only_reads = regions.len() > 1 && rng.random_bool(READING_SHARE);
        let steps: Arc<[(usize, Step)]> = match only_reads {
            true => self.plan_reads(regions, rng).into(),
            false => self.plan(regions, rng).into(),
        };
        let mode = if only_reads { Mode::ReadOnly } else { Mode::Usual };
        let homes: Arc<[Home]> = regions.iter().map(|region| Home::of(context, region)).collect();
        if only_reads && rng.random_bool(0.5) {
            return read_at_once(context, session, worker, &homes, &steps).await;
        }
        let done: Arc<Mutex<Vec<Op>>> = Arc::default();
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
        let mut ops = std::mem::take(&mut *done.lock().expect("no panic while noting"));
        if outcome != Outcome::Committed {
            // What a client reads in a transaction that does not commit is speculative and promises nothing.
            ops.retain(|op| matches!(op, Op::Append { .. }));
        }
        let completed = (outcome != Outcome::Unknown).then(|| context.timer.now_micros());
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
                Step::Append { key, value: self.take_value(config, region, key), how }
            }
        }
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

/// Ranges of several regions, read by one statement outside a block.
async fn read_at_once(
    context: &Context,
    session: &mut Session,
    worker: &Worker,
    homes: &[Home],
    steps: &[(usize, Step)],
) -> Tried {
    let ranges = steps.iter().filter_map(|(at, step)| match step {
        Step::ReadRange { from, to } => Some((*at, *from, *to)),
        _ => None,
    });
    let ranges: Vec<(usize, i64, i64)> = ranges.collect();
    let part = |(at, from, to): &(usize, i64, i64)| {
        let (first, end) = (from / 2, (to + 1) / 2);
        format!("SELECT {at} AS region, k, v, w FROM {}.lists WHERE k >= {first} AND k < {end}", homes[*at].schema)
    };
    let sql = ranges.iter().map(part).collect::<Vec<_>>().join(" UNION ALL ");
    let invoked = context.timer.now_micros();
    let read = session.query(&sql, &[]).await.and_then(|rows| {
        let mut ops = Vec::new();
        for (at, from, to) in &ranges {
            ops.push(Op::ReadRange {
                from: from + homes[*at].offset,
                to: to + homes[*at].offset,
                lists: lists_of(&rows, Some(*at as i64), *from, *to, homes[*at].offset)?,
            });
        }
        Ok(ops)
    });
    match read {
        Ok(ops) => {
            let completed = Some(context.timer.now_micros());
            context.history.push(Record { client: worker.id, invoked, completed, outcome: Outcome::Committed, ops });
            Tried::Committed
        }
        // It had no effect, whatever became of it.
        Err(error) => Tried::Failed(error),
    }
}

/// The lists in rows of (k, v, w), or of (region, k, v, w) those of one region.
fn lists_of(rows: &Rows, region: Option<i64>, from: i64, to: i64, offset: i64) -> Result<BTreeMap<i64, Vec<i64>>> {
    let mut lists = BTreeMap::new();
    let first_column = usize::from(region.is_some());
    for (index, row) in rows.rows.iter().enumerate() {
        if region.is_some() && region != Some(rows.int(index, 0)?) {
            continue;
        }
        let first = rows.int(index, first_column)? * 2;
        for (key, list) in [(first, &row[first_column + 1]), (first + 1, &row[first_column + 2])] {
            if (from..to).contains(&key) {
                lists.insert(key + offset, parse_list(list)?);
            }
        }
    }
    Ok(lists)
}

/// Runs one step and notes what it did. An append is noted before it is sent: it may have happened even if it fails.
async fn perform(statements: &mut Statements<'_>, home: &Home, step: Step, done: &Arc<Mutex<Vec<Op>>>) -> Result<()> {
    let Home { schema, offset } = home;
    let note = |op: Op| done.lock().expect("no panic while noting").push(op);
    match step {
        Step::Read { key } => {
            let values = read_list(statements, schema, key, false).await?.unwrap_or_default();
            note(Op::ReadList { key: key + offset, values });
        }
        Step::ReadRange { from, to } => {
            let lists = read_range(statements, home, from, to).await?;
            note(Op::ReadRange { from: from + offset, to: to + offset, lists });
        }
        Step::Append { key, value, how: how @ (How::ReadThenWrite | How::LockThenWrite) } => {
            let list = read_list(statements, schema, key, matches!(how, How::LockThenWrite)).await?;
            let missing = list.is_none();
            let mut values = list.unwrap_or_default();
            note(Op::ReadList { key: key + offset, values: values.clone() });
            note(Op::Append { key: key + offset, value });
            values.push(value);
            let (row, column) = place_of(key);
            let sql = match missing {
                true => format!("INSERT INTO {schema}.lists (k, {column}) VALUES ($1, $2)"),
                false => format!("UPDATE {schema}.lists SET {column} = $2 WHERE k = $1"),
            };
            statements.query(&sql, &[row.into(), format_list(&values).into()]).await?;
        }
        Step::Append { key, value, how: How::Concatenate } => {
            note(Op::Append { key: key + offset, value });
            let (row, column) = place_of(key);
            let params: [Value; 2] = [row.into(), value.to_string().into()];
            let update = format!("UPDATE {schema}.lists SET {column} = COALESCE({column} || ',', '') || $2 WHERE k = $1");
            if statements.query(&update, &params).await?.affected == 0 {
                let insert = format!("INSERT INTO {schema}.lists (k, {column}) VALUES ($1, $2)");
                statements.query(&insert, &params).await?;
            }
        }
        Step::Append { key, value, how: How::Upsert } => {
            note(Op::Append { key: key + offset, value });
            let (row, column) = place_of(key);
            let sql = format!(
                "INSERT INTO {schema}.lists (k, {column}) VALUES ($1, $2) \
                 ON CONFLICT (k) DO UPDATE SET {column} = COALESCE(lists.{column} || ',', '') || excluded.{column}"
            );
            statements.query(&sql, &[row.into(), value.to_string().into()]).await?;
        }
    }
    Ok(())
}

/// The row and the column of a key's list.
fn place_of(key: i64) -> (i64, &'static str) {
    (key / 2, if key % 2 == 0 { "v" } else { "w" })
}

/// A key's list; `None` if its row is missing.
async fn read_list(statements: &mut Statements<'_>, schema: &str, key: i64, lock: bool) -> Result<Option<Vec<i64>>> {
    let suffix = if lock { " FOR UPDATE" } else { "" };
    let (row, column) = place_of(key);
    let sql = format!("SELECT {column} FROM {schema}.lists WHERE k = $1{suffix}");
    let rows = statements.query(&sql, &[row.into()]).await?;
    rows.rows.first().map(|row| parse_list(&row[0])).transpose()
}

/// The lists of the keys of a range whose rows are there.
async fn read_range(statements: &mut Statements<'_>, home: &Home, from: i64, to: i64) -> Result<BTreeMap<i64, Vec<i64>>> {
    let Home { schema, offset } = home;
    let sql = format!("SELECT k, v, w FROM {schema}.lists WHERE k >= $1 AND k < $2");
    let params: [Value; 2] = [(from / 2).into(), ((to + 1) / 2).into()];
    let rows = statements.query(&sql, &params).await?;
    lists_of(&rows, None, from, to, *offset)
}

fn format_list(values: &[i64]) -> String {
    values.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
}

/// A column of lists: NULL is the empty one.
fn parse_list(value: &Value) -> Result<Vec<i64>> {
    let wrong = || Error::internal("a list that nobody wrote").detail(value.to_string());
    match value {
        Value::Null => Ok(Vec::new()),
        // A list of one looks like a number to drivers that guess.
        Value::Int(only) => Ok(vec![*only]),
        Value::Text(text) => text.split(',').map(|part| part.parse().map_err(|_| wrong())).collect(),
        _ => Err(wrong()),
    }
}

#[async_trait]
impl Workload for ListAppend {
    fn name(&self) -> &'static str {
        "list-append"
    }

    async fn setup(&self, context: &Context, progress: &(dyn Fn(Progress) + Send + Sync)) -> Result<()> {
        schema::create_database(context, DATABASE).await?;
        let regions = context.connector.regions();
        for (done, region) in regions.iter().enumerate() {
            let schema = schema::schema_of(region);
            let is_last = regions.len() > 1 && regions.last() == Some(region);
            let home = match self.config.has_global && is_last {
                true => schema::global(&*context.connector),
                false => schema::locality(&*context.connector, region),
            };
            let tables = [
                format!("CREATE SCHEMA {schema}"),
                format!("CREATE TABLE {schema}.lists (k INT8 PRIMARY KEY, v TEXT, w TEXT){home}"),
            ];
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
            let (key, among) = self.choose(&regions, &worker, &mut rng);
            let started = context.timer.now_micros();
            match self.attempt(context, &mut session, &worker, &among, &mut rng).await {
                Tried::Committed => {
                    let took = Duration::from_micros(context.timer.now_micros() - started);
                    context.stats.success(&key, took, 0);
                }
                // Two transactions may both insert a key's first row; the second learns of the first by this error.
                Tried::Failed(error) if crate::session::is_retryable(&error) || error.sqlstate() == "23505" => {
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
            let home = Arc::new(Home::of(context, &region));
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
    use std::collections::BTreeSet;

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

    #[test]
    fn lists_are_parsed_as_they_were_formatted() {
        assert_eq!(parse_list(&format_list(&[3, 1, 2]).into()).expect("a list"), vec![3, 1, 2]);
        assert_eq!(parse_list(&Value::Null).expect("no list"), Vec::<i64>::new());
        assert!(parse_list(&"1,,2".into()).is_err());
    }
}
