//! SunStorm's microbenchmark (VLDB'25, §7.2), made checkable.
//!
//! Each region has a table of counters, a small hot set and a large cold one. A transaction
//! accesses eight rows, at least one of them in the client's region and exactly one of every
//! region's hot set that it touches. A given share of the transactions touches several regions; how
//! many follows a Zipfian distribution, and the rows are divided evenly among them. There are no
//! retries: an abort is a result, counted by its SQLSTATE and reason. Everything measured is kept
//! per number of regions ([`measure`]).
//!
//! The paper writes random bytes. Here every write adds one, so that the sum tells at the end what
//! was lost, made up, applied twice or applied in one region only ([`judge`]).
//!
//! * [`plan`]: which rows a transaction accesses, and how.
//! * [`judge`]: what the counters must say.
//! * [`measure`]: latencies and aborts.

mod judge;
mod measure;
mod plan;

pub use measure::{Abort, Measured};
pub use plan::{Mix, Route};

use crate::run::{Context, Progress, Verdict, Worker, Workload};
use crate::schema;
use crate::session::{Attempted, Mode, RetryPolicy, Session, Statements, is_outcome_unknown, is_retryable};
use crate::stats::{Locality, StatsKey};
use async_trait::async_trait;
use judge::{Row, Written};
use meridian_base::{Error, Result};
use plan::{Access, Planner, Step};
use rand::rngs::SmallRng;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The database it works in, if every region has its own rows at home.
pub const DATABASE: &str = "multi_region";
/// The database it works in, if all rows are at home in the first region.
pub const DATABASE_OF_ONE_HOME: &str = "single_primary";
/// Rows per INSERT of the load.
const LOAD_BATCH: i64 = 500;
const REST: Duration = Duration::from_millis(50);

/// Where the tables are at home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Homes {
    /// Each region's table in it.
    Each,
    /// All in the first region: a single primary.
    First,
}

impl Homes {
    /// The database with tables so.
    pub fn database(self) -> &'static str {
        match self {
            Homes::Each => DATABASE,
            Homes::First => DATABASE_OF_ONE_HOME,
        }
    }
}

/// The shape of the benchmark.
#[derive(Clone, Debug)]
pub struct MultiRegionConfig {
    /// The paper has a million.
    pub rows_per_region: i64,
    /// The paper's HOT: fewer rows, more conflicts.
    pub hot_rows_per_region: i64,
    pub rows_per_transaction: usize,
    pub mix: Mix,
    /// Share of transactions that touch several regions.
    pub several_regions_share: f64,
    /// The Zipfian distribution's exponent: the larger, the fewer regions.
    pub zipf_exponent: f64,
    /// How often a transaction is run again after an abort.
    pub retries_max: u32,
    /// Pause between two transactions of a worker.
    pub think_time: Duration,
    pub homes: Homes,
    /// Sends a transaction as one string of statements, each write as one that adds one: nothing of
    /// it has reached the client before it commits, so the server itself may repeat it.
    pub is_one_string: bool,
}

impl Default for MultiRegionConfig {
    fn default() -> MultiRegionConfig {
        MultiRegionConfig {
            rows_per_region: 10_000,
            hot_rows_per_region: 1_000,
            rows_per_transaction: 8,
            mix: Mix::ReadModifyWrite,
            several_regions_share: 0.1,
            zipf_exponent: 0.99,
            retries_max: 0,
            think_time: Duration::ZERO,
            homes: Homes::Each,
            is_one_string: false,
        }
    }
}

/// The workload.
pub struct MultiRegion {
    config: MultiRegionConfig,
    written: Mutex<Written>,
    measured: Mutex<BTreeMap<Route, Measured>>,
}

impl MultiRegion {
    /// Counters that no worker has used yet.
    pub fn new(config: MultiRegionConfig) -> MultiRegion {
        let rows = config.rows_per_transaction;
        assert!(rows > 0 && config.hot_rows_per_region > 0, "a transaction accesses a hot row");
        assert!(config.rows_per_region - config.hot_rows_per_region >= rows as i64, "enough cold rows for a transaction");
        MultiRegion { config, written: Mutex::default(), measured: Mutex::default() }
    }

    /// What was measured so far, by number of regions.
    pub fn measured(&self) -> BTreeMap<usize, Measured> {
        let mut by_regions: BTreeMap<usize, Measured> = BTreeMap::new();
        for (route, measured) in &*self.measured.lock().expect("no panic while measuring") {
            by_regions.entry(route.regions()).or_default().merge(measured);
        }
        by_regions
    }
    /// What was measured since the last call, by the regions touched: a warm-up is taken and
    /// dropped.
    pub fn take_measured(&self) -> BTreeMap<Route, Measured> {
        std::mem::take(&mut *self.measured.lock().expect("no panic while measuring"))
    }

    /// One transaction.
    async fn attempt(
        &self,
        session: &mut Session,
        schemas: &Arc<[String]>,
        steps: &Arc<[Step]>,
        rng: &mut SmallRng,
    ) -> Attempted<()> {
        // A client that runs queries knows that it does; one that happens not to write this time
        // does not.
        if self.config.is_one_string {
            return self.attempt_as_one_string(session, schemas, steps).await;
        }
        let mode = if self.config.mix == Mix::ReadOnly { Mode::ReadOnly } else { Mode::Usual };
        session
            .transaction_in(mode, rng, |statements| {
                let (schemas, steps) = (schemas.clone(), steps.clone());
                Box::pin(async move {
                    for step in steps.iter() {
                        perform(statements, &schemas[step.region], step).await?;
                    }
                    Ok(())
                })
            })
            .await
    }

    async fn attempt_as_one_string(&self, session: &mut Session, schemas: &[String], steps: &[Step]) -> Attempted<()> {
        let mut sql = match self.config.mix {
            Mix::ReadOnly => "BEGIN READ ONLY; ".to_string(),
            _ => "BEGIN; ".to_string(),
        };
        for Step { region, id, access } in steps {
            let schema = &schemas[*region];
            sql += &match access {
                Access::Read => format!("SELECT value FROM {schema}.counters WHERE id = {id}; "),
                Access::Write | Access::ReadModifyWrite => {
                    format!("UPDATE {schema}.counters SET value = value + 1 WHERE id = {id}; ")
                }
            };
        }
        sql += "COMMIT";
        match session.execute(&sql).await {
            Ok(_) => Attempted::Committed(()),
            Err(error) if is_outcome_unknown(&error) => Attempted::Unknown(error, None),
            Err(error) => {
                // The block is left open by the statement that failed.
                let _ = session.execute("ROLLBACK").await;
                Attempted::Failed(error)
            }
        }
    }

    /// Keeps what the final check and the tables of results need.
    fn note(&self, route: Route, steps: &[Step], took: Duration, attempted: &Attempted<()>) {
        let rows = || steps.iter().filter(|step| step.access != Access::Read).map(|step| (step.region, step.id));
        match attempted {
            Attempted::Committed(()) => self.lock_written().acknowledge(rows()),
            Attempted::Unknown(..) => self.lock_written().doubt(rows()),
            Attempted::Failed(_) => {}
        }
        let mut measured = self.measured.lock().expect("no panic while measuring");
        measured.entry(route).or_default().note(took, attempted);
    }

    fn database(&self) -> &'static str {
        self.config.homes.database()
    }
    /// Where a region's table is at home.
    fn home<'r>(&self, regions: &'r [String], region: &'r str) -> &'r str {
        match self.config.homes {
            Homes::Each => region,
            Homes::First => &regions[0],
        }
    }

    fn lock_written(&self) -> std::sync::MutexGuard<'_, Written> {
        self.written.lock().expect("no panic while noting")
    }

    /// The counters that are not zero. A transaction over regions whose outcome nobody knows may
    /// still be on its way, so where there are such, all tables are read in one transaction; else
    /// each region's is enough.
    async fn counters(&self, context: &Context) -> Result<BTreeMap<Row, i64>> {
        let regions = context.connector.regions();
        let all: Vec<usize> = (0..regions.len()).collect();
        let parts: Vec<&[usize]> = match self.config.several_regions_share > 0.0 {
            true => vec![&all],
            false => all.chunks(1).collect(),
        };
        let schemas = schemas_of(&regions);
        let mut counters = BTreeMap::new();
        for part in parts {
            let mut session = context.session(&regions[part[0]], self.database());
            let mut read = crate::run::until_answered(context, &mut session, |statements| {
                let (schemas, part) = (schemas.clone(), part.to_vec());
                Box::pin(async move { read_counters(statements, &schemas, &part).await })
            })
            .await?;
            counters.append(&mut read);
        }
        Ok(counters)
    }
}

fn schemas_of(regions: &[String]) -> Arc<[String]> {
    regions.iter().map(|region| schema::schema_of(region)).collect()
}

async fn perform(statements: &mut Statements<'_>, schema: &str, step: &Step) -> Result<()> {
    let select = || format!("SELECT value FROM {schema}.counters WHERE id = $1");
    let updated = match step.access {
        Access::Read => return statements.query(&select(), &[step.id.into()]).await?.int(0, 0).map(drop),
        Access::Write => {
            let update = format!("UPDATE {schema}.counters SET value = value + 1 WHERE id = $1");
            statements.query(&update, &[step.id.into()]).await?
        }
        Access::ReadModifyWrite => {
            let value = statements.query(&select(), &[step.id.into()]).await?.int(0, 0)?;
            let update = format!("UPDATE {schema}.counters SET value = $2 WHERE id = $1");
            statements.query(&update, &[step.id.into(), (value + 1).into()]).await?
        }
    };
    match updated.affected {
        1 => Ok(()),
        rows => Err(Error::internal(format!("{schema}.counters has {rows} rows with id {}", step.id))),
    }
}

async fn read_counters(statements: &mut Statements<'_>, schemas: &[String], regions: &[usize]) -> Result<BTreeMap<Row, i64>> {
    let mut counters = BTreeMap::new();
    for region in regions {
        let sql = format!("SELECT id, value FROM {}.counters WHERE value <> 0", schemas[*region]);
        let rows = statements.query(&sql, &[]).await?;
        for row in 0..rows.rows.len() {
            counters.insert((*region, rows.int(row, 0)?), rows.int(row, 1)?);
        }
    }
    Ok(counters)
}

/// Names for the live table, whose keys are words.
fn operation_name(regions: usize) -> &'static str {
    match regions {
        1 => "1 region",
        2 => "2 regions",
        3 => "3 regions",
        4 => "4 regions",
        5 => "5 regions",
        _ => "more regions",
    }
}

#[async_trait]
impl Workload for MultiRegion {
    fn name(&self) -> &'static str {
        "multi-region"
    }

    async fn setup(&self, context: &Context, progress: &(dyn Fn(Progress) + Send + Sync)) -> Result<()> {
        schema::create_database(context, self.database()).await?;
        let regions = context.connector.regions();
        let of_region = |region: &String| {
            let (schema, home) = (schema::schema_of(region), schema::locality(&*context.connector, self.home(&regions, region)));
            let table = format!("CREATE TABLE {schema}.counters (id INT8 PRIMARY KEY, value INT8 NOT NULL){home}");
            [format!("CREATE SCHEMA {schema}"), table]
        };
        let tables: Vec<String> = regions.iter().flat_map(of_region).collect();
        schema::run_block(&mut context.session(&regions[0], self.database()), &tables).await?;

        let rows_total = regions.len() as u64 * self.config.rows_per_region as u64;
        let rows_done = AtomicU64::new(0);
        let loads = regions.iter().map(|region| {
            let (rows_done, regions) = (&rows_done, &regions);
            async move {
                let schema = schema::schema_of(region);
                let mut session = context.session(self.home(regions, region), self.database());
                for first in (0..self.config.rows_per_region).step_by(LOAD_BATCH as usize) {
                    let ids = first..(first + LOAD_BATCH).min(self.config.rows_per_region);
                    let count = (ids.end - ids.start) as u64;
                    let values: Vec<String> = ids.map(|id| format!("({id}, 0)")).collect();
                    let insert = format!("INSERT INTO {schema}.counters (id, value) VALUES {}", values.join(", "));
                    schema::run(&mut session, &insert).await?;
                    let rows_done = rows_done.fetch_add(count, Ordering::Relaxed) + count;
                    progress(Progress { rows_done, rows_total });
                }
                Ok(())
            }
        });
        futures::future::try_join_all(loads).await.map(drop)?;
        // A bench loads once and runs many shapes over the same rows; each judges its own work.
        let counters = self.counters(context).await?;
        self.lock_written().begin_with(counters);
        Ok(())
    }

    async fn worker(&self, context: &Context, worker: Worker) -> Result<()> {
        let mut rng = context.rng(u64::from(worker.id) + 1);
        let policy = RetryPolicy { retries_max: self.config.retries_max, ..context.retry };
        let mut session = Session::new(context, &worker.region, self.database(), policy);
        let regions = context.connector.regions();
        let schemas = schemas_of(&regions);
        let own = regions.iter().position(|r| *r == worker.region).expect("a region of the cluster");
        let planner = Planner::new(&self.config, own, regions.len());
        while !context.stop.is_stopped() {
            let steps: Arc<[Step]> = planner.plan(&mut rng).into();
            let started = context.timer.now_micros();
            let attempted = self.attempt(&mut session, &schemas, &steps, &mut rng).await;
            let took = Duration::from_micros(context.timer.now_micros() - started);
            let route = plan::route_of(own, &steps);
            let count = route.regions();
            self.note(route, &steps, took, &attempted);
            let locality = if count == 1 { Locality::Own } else { Locality::Other };
            let key = StatsKey { region: worker.region.clone(), operation: operation_name(count), locality };
            let retries = session.take_retries();
            match &attempted {
                Attempted::Committed(()) => context.stats.success(&key, took, retries),
                // The loop is closed and the next transaction another one: waiting would only hide
                // the aborts.
                Attempted::Failed(error) if is_retryable(error) => context.stats.failure(&key, retries),
                Attempted::Failed(error) => {
                    context.stats.note_error(error);
                    context.stats.failure(&key, retries);
                    crate::run::rest_after(error, REST).await?;
                }
                Attempted::Unknown(..) => {
                    context.stats.unknown(&key, retries);
                    tokio::time::sleep(REST).await;
                }
            }
            if !self.config.think_time.is_zero() {
                tokio::time::sleep(self.config.think_time).await;
            }
        }
        Ok(())
    }

    async fn check(&self, context: &Context) -> Result<Verdict> {
        let counters = self.counters(context).await?;
        let mut verdict = Verdict::default();
        judge::judge(&context.connector.regions(), &self.lock_written(), &counters, &mut verdict);
        Ok(verdict)
    }
}
