//! Bank: transfers between accounts, within a region and from one region to another.
//!
//! What must hold, whatever fails meanwhile:
//!
//! * the balances add up to the same sum in every snapshot that a client reads, and at the end;
//! * every acknowledged transfer is in the ledger exactly once, every refused one is not, and one
//!   whose outcome nobody knows is there once or not at all;
//! * the balances are what the ledger says: nothing was applied twice, nothing without its ledger
//!   row, and nothing by half.
//!
//! Each region has its own `accounts` and `transfers` tables in the schema named after it; clients
//! mostly use their own region's. The ledger row is written in the same transaction as the two
//! balances, so a transfer is one atomic thing to look for. A transfer between regions writes its
//! row in both ledgers.
//!
//! As soon as money moves between regions, only a snapshot of all of them has a constant sum. Such
//! snapshots are read in every way there is: in one statement, in a block that only reads, in a
//! block that might write, in one that does, and as of a moment of the past.
//!
//! * [`work`]: the statements.
//! * [`books`]: what the tables must say.

mod books;
mod work;

use crate::history::{Op, Outcome, Record};
use crate::run::{Context, Progress, Verdict, Worker, Workload};
use crate::schema;
use crate::session::{Attempted, Session};
use crate::stats::{Locality, StatsKey};
use async_trait::async_trait;
use books::{ACCOUNTS_OF_REGION, BALANCE_START, Books, Transfer};
use meridian_base::{Error, Result};
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;
use work::{PAST_AFTER, Plan, Schemas, View};

/// The database it works in.
pub const DATABASE: &str = "bank";
/// Rows per INSERT of the load.
const LOAD_BATCH: usize = 100;
/// How long a worker rests after a failure, so that a dead region is not hammered.
const REST: Duration = Duration::from_millis(100);

/// The shape of a bank.
#[derive(Clone, Debug)]
pub struct BankConfig {
    /// Fewer accounts, more conflicts.
    pub accounts_per_region: i64,
    /// Share of operations that read all balances instead of moving money.
    pub snapshot_share: f64,
    /// Share of operations on another region's bank.
    pub other_region_share: f64,
    /// Share of operations on all regions' banks: transfers from one region to another, and
    /// snapshots of all of them.
    pub several_regions_share: f64,
    /// Transfers lock the two rows first (`FOR UPDATE`) with this probability.
    pub lock_share: f64,
    /// Pause between two operations of a worker.
    pub think_time: Duration,
}

impl Default for BankConfig {
    fn default() -> BankConfig {
        BankConfig {
            accounts_per_region: 20,
            snapshot_share: 0.2,
            other_region_share: 0.1,
            several_regions_share: 0.0,
            lock_share: 0.3,
            think_time: Duration::ZERO,
        }
    }
}

/// Share of the transfers between regions that also read all balances.
const AUDIT_SHARE: f64 = 0.2;

/// The workload.
pub struct Bank {
    config: BankConfig,
    /// What the workers know about their transfers, per id.
    transfers: Mutex<BTreeMap<i64, (Transfer, Outcome)>>,
    /// Snapshots whose sum was wrong, as sentences.
    wrong_snapshots: Mutex<Vec<String>>,
    /// When the accounts were there; nothing if another process loaded them.
    loaded_micros: OnceLock<u64>,
}

impl Bank {
    /// A bank that no worker has used yet.
    pub fn new(config: BankConfig) -> Bank {
        assert!(config.accounts_per_region >= 2, "a transfer needs two accounts");
        assert!(config.accounts_per_region <= ACCOUNTS_OF_REGION, "regions do not share numbers of accounts");
        Bank { config, transfers: Mutex::default(), wrong_snapshots: Mutex::default(), loaded_micros: OnceLock::new() }
    }

    /// How many transfers were acknowledged so far.
    pub fn acknowledged(&self) -> u64 {
        let transfers = self.transfers.lock().expect("no panic while counting");
        transfers.values().filter(|(_, outcome)| *outcome == Outcome::Committed).count() as u64
    }

    /// A transfer within a region, or between two.
    fn plan(&self, from_region: usize, to_region: usize, rng: &mut SmallRng, id: i64) -> Plan {
        let accounts = self.config.accounts_per_region;
        let first = |region| books::accounts_of(region, accounts).start;
        let (from, crosses) = (rng.random_range(0..accounts), from_region != to_region);
        let to = match crosses {
            true => rng.random_range(0..accounts),
            false => (from + rng.random_range(1..accounts)) % accounts,
        };
        let (from, to) = (first(from_region) + from, first(to_region) + to);
        let transfer = Transfer { id, from, to, amount: rng.random_range(1..=10) };
        let lock = rng.random_bool(self.config.lock_share);
        Plan { transfer, lock, audit: crosses && rng.random_bool(AUDIT_SHARE) }
    }

    async fn transfer(
        &self,
        context: &Context,
        session: &mut Session,
        schemas: &Schemas,
        rng: &mut SmallRng,
        plan: Plan,
    ) -> Ended {
        let Transfer { id, from, to, amount } = plan.transfer;
        let invoked = context.timer.now_micros();
        let attempted = session
            .transaction(rng, |statements| {
                let schemas = schemas.clone();
                Box::pin(async move { work::transfer(statements, &schemas, plan).await })
            })
            .await;
        let ended = Ended::of(&attempted);
        self.transfers.lock().expect("no panic while noting").insert(id, (plan.transfer, ended.outcome()));
        let mut ops = vec![Op::Transfer { id, from, to, amount }];
        if let Attempted::Committed(Some(balances)) = attempted {
            let all: Vec<usize> = (0..schemas.len()).collect();
            self.judge_snapshot(&all, &balances, || format!("what transfer {id} read at {invoked} µs"));
            ops.insert(0, Op::ReadBalances { balances });
        }
        let completed = ended.completed(context);
        context.history.push(Record { client: (id >> 32) as u32, invoked, completed, outcome: ended.outcome(), ops });
        ended
    }

    /// Reads all balances of a region, in one statement or in two inside one transaction.
    async fn snapshot(
        &self,
        context: &Context,
        session: &mut Session,
        (region, schemas): (usize, &Schemas),
        rng: &mut SmallRng,
        worker: &Worker,
    ) -> Ended {
        let half = books::accounts_of(region, self.config.accounts_per_region / 2).end;
        let split = rng.random_bool(0.5).then_some(half);
        let invoked = context.timer.now_micros();
        let attempted = session
            .transaction(rng, |statements| {
                let schemas = schemas.clone();
                Box::pin(async move { work::balances(statements, schemas.at(region), split).await })
            })
            .await;
        self.saw(context, worker, &[region], invoked, attempted)
    }

    /// Reads the balances of all regions.
    async fn snapshot_of_all(
        &self,
        context: &Context,
        session: &mut Session,
        schemas: &Schemas,
        rng: &mut SmallRng,
        worker: &Worker,
    ) -> Ended {
        let is_old = |loaded: &u64| context.timer.now_micros().saturating_sub(*loaded) > PAST_AFTER.as_micros() as u64;
        let view = View::draw(rng, self.loaded_micros.get().is_some_and(is_old));
        let invoked = context.timer.now_micros();
        let attempted = match view {
            View::Block(mode) => {
                session
                    .transaction_in(mode, rng, |statements| {
                        let schemas = schemas.clone();
                        Box::pin(async move { work::all_balances(statements, &schemas).await })
                    })
                    .await
            }
            View::Statement => work::single_view(session, rng, work::all_balances_sql(schemas)).await,
            View::Past(at) => {
                let sql = format!("{} AS OF SYSTEM TIME {at}", work::all_balances_sql(schemas));
                work::single_view(session, rng, sql).await
            }
        };
        let all: Vec<usize> = (0..schemas.len()).collect();
        if let (View::Past(at), Attempted::Committed(balances)) = (view, &attempted) {
            // The history's order in real time is not what it promises.
            self.judge_snapshot(&all, balances, || format!("a snapshot as of {at} at {invoked} µs"));
            return Ended::of(&attempted);
        }
        self.saw(context, worker, &all, invoked, attempted)
    }

    /// Judges and records what a snapshot showed. What was read in a transaction that did not
    /// commit promises nothing.
    fn saw(
        &self,
        context: &Context,
        worker: &Worker,
        regions: &[usize],
        invoked: u64,
        attempted: Attempted<BTreeMap<i64, i64>>,
    ) -> Ended {
        let ended = Ended::of(&attempted);
        if let Attempted::Committed(balances) = attempted {
            self.judge_snapshot(regions, &balances, || format!("a snapshot of regions {regions:?} at {invoked} µs"));
            context.history.push(Record {
                client: worker.id,
                invoked,
                completed: ended.completed(context),
                outcome: Outcome::Committed,
                ops: vec![Op::ReadBalances { balances }],
            });
        }
        ended
    }

    fn judge_snapshot(&self, regions: &[usize], balances: &BTreeMap<i64, i64>, what: impl FnOnce() -> String) {
        let is_closed = regions.len() > 1 || self.config.several_regions_share == 0.0;
        if let Some(wrong) = books::wrong_snapshot(regions, self.config.accounts_per_region, is_closed, balances) {
            self.wrong_snapshots.lock().expect("no panic while noting").push(format!("{} {wrong}", what()));
        }
    }

    /// Balances and ledgers of all regions. A transfer between regions whose outcome nobody knows
    /// may still be on its way, so where there are such, all tables are read in one transaction;
    /// else each region's is enough.
    async fn books(&self, context: &Context, regions: &[String]) -> Result<Books> {
        let all: Vec<usize> = (0..regions.len()).collect();
        let parts: Vec<&[usize]> = match self.config.several_regions_share > 0.0 {
            true => vec![&all],
            false => all.chunks(1).collect(),
        };
        let schemas = Schemas::of(regions);
        let mut books = Books::default();
        for part in parts {
            let mut session = context.session(&regions[part[0]], DATABASE);
            let mut read = crate::run::until_answered(context, &mut session, |statements| {
                let (schemas, part) = (schemas.clone(), part.to_vec());
                Box::pin(async move { work::books(statements, &schemas, &part).await })
            })
            .await?;
            books.balances.append(&mut read.balances);
            books.ledgers.append(&mut read.ledgers);
        }
        Ok(books)
    }

    /// One operation of a worker: under what it is counted, and how it ended.
    async fn operation(
        &self,
        context: &Context,
        session: &mut Session,
        schemas: &Schemas,
        worker: &Worker,
        rng: &mut SmallRng,
        next_id: &mut i64,
    ) -> (&'static str, Locality, Ended) {
        let regions = context.connector.regions();
        let (region, locality) = crate::run::pick_region(&regions, &worker.region, self.config.other_region_share, rng);
        let from = regions.iter().position(|r| r == region).expect("picked from it");
        let several = regions.len() > 1 && crate::run::chance(self.config.several_regions_share, rng);
        if rng.random_bool(self.config.snapshot_share) {
            return match several {
                true => {
                    let ended = self.snapshot_of_all(context, session, schemas, rng, worker).await;
                    ("snapshot of all regions", Locality::Other, ended)
                }
                false => ("snapshot", locality, self.snapshot(context, session, (from, schemas), rng, worker).await),
            };
        }
        *next_id += 1;
        let (operation, locality, plan) = match several {
            true => {
                let other = (from + rng.random_range(1..regions.len())) % regions.len();
                let (from, to) = if rng.random_bool(0.5) { (from, other) } else { (other, from) };
                ("transfer between regions", Locality::Other, self.plan(from, to, rng, *next_id))
            }
            false => ("transfer", locality, self.plan(from, from, rng, *next_id)),
        };
        (operation, locality, self.transfer(context, session, schemas, rng, plan).await)
    }
}

/// How an operation ended, without its value.
enum Ended {
    Committed,
    Failed(Error),
    Unknown,
}

impl Ended {
    fn of<T>(attempted: &Attempted<T>) -> Ended {
        match attempted {
            Attempted::Committed(_) => Ended::Committed,
            Attempted::Failed(error) => Ended::Failed(error.clone()),
            Attempted::Unknown(..) => Ended::Unknown,
        }
    }
    fn outcome(&self) -> Outcome {
        match self {
            Ended::Committed => Outcome::Committed,
            Ended::Failed(_) => Outcome::Aborted,
            Ended::Unknown => Outcome::Unknown,
        }
    }
    fn completed(&self, context: &Context) -> Option<u64> {
        match self {
            Ended::Unknown => None,
            _ => Some(context.timer.now_micros()),
        }
    }
}

#[async_trait]
impl Workload for Bank {
    fn name(&self) -> &'static str {
        "bank"
    }

    async fn setup(&self, context: &Context, progress: &(dyn Fn(Progress) + Send + Sync)) -> Result<()> {
        schema::create_database(context, DATABASE).await?;
        let regions = context.connector.regions();
        let tables: Vec<String> = regions
            .iter()
            .flat_map(|region| {
                let schema = schema::schema_of(region);
                let home = schema::locality(&*context.connector, region);
                [
                    format!("CREATE SCHEMA {schema}"),
                    format!("CREATE TABLE {schema}.accounts (id INT8 PRIMARY KEY, balance INT8 NOT NULL){home}"),
                    format!(
                        "CREATE TABLE {schema}.transfers (id INT8 PRIMARY KEY, from_id INT8 NOT NULL, to_id INT8 NOT NULL, \
                         amount INT8 NOT NULL){home}"
                    ),
                ]
            })
            .collect();
        schema::run_block(&mut context.session(&regions[0], DATABASE), &tables).await?;
        let rows_total = regions.len() as u64 * self.config.accounts_per_region as u64;
        let mut rows_done = 0;
        for (at, region) in regions.iter().enumerate() {
            let mut session = context.session(region, DATABASE);
            let schema = schema::schema_of(region);
            let ids: Vec<i64> = books::accounts_of(at, self.config.accounts_per_region).collect();
            for batch in ids.chunks(LOAD_BATCH) {
                let values: Vec<String> = batch.iter().map(|id| format!("({id}, {BALANCE_START})")).collect();
                let sql = format!("INSERT INTO {schema}.accounts (id, balance) VALUES {}", values.join(", "));
                schema::run(&mut session, &sql).await?;
                rows_done += batch.len() as u64;
                progress(Progress { rows_done, rows_total });
            }
        }
        let _ = self.loaded_micros.set(context.timer.now_micros());
        Ok(())
    }

    async fn worker(&self, context: &Context, worker: Worker) -> Result<()> {
        let mut rng = context.rng(u64::from(worker.id) + 1);
        let mut session = context.session(&worker.region, DATABASE);
        let schemas = Schemas::of(&context.connector.regions());
        // Unique over workers, so that the ledger's primary key tells a transfer that was applied
        // twice.
        let mut id = i64::from(worker.id) << 32;
        while !context.stop.is_stopped() {
            let started = context.timer.now_micros();
            let (operation, locality, ended) = self.operation(context, &mut session, &schemas, &worker, &mut rng, &mut id).await;
            let key = StatsKey { region: worker.region.clone(), operation, locality };
            let retries = session.take_retries();
            match ended {
                Ended::Committed => {
                    let took = Duration::from_micros(context.timer.now_micros() - started);
                    context.stats.success(&key, took, retries);
                }
                Ended::Failed(error) => {
                    context.stats.failure(&key, retries);
                    crate::run::rest_after(&error, REST).await?;
                }
                Ended::Unknown => {
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
        let mut verdict = Verdict::default();
        verdict.violations.append(&mut self.wrong_snapshots.lock().expect("no panic while noting"));
        let regions = context.connector.regions();
        let books = self.books(context, &regions).await?;
        let known = self.transfers.lock().expect("no panic while checking");
        books::judge(&regions, self.config.accounts_per_region, &known, &books, &mut verdict);
        Ok(verdict)
    }
}
