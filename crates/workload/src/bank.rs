//! Bank: transfers between accounts, in one region's table per transaction.
//!
//! What must hold, whatever fails meanwhile:
//!
//! * the balances add up to the same sum in every snapshot that a client reads, and at the end;
//! * every acknowledged transfer is in the ledger exactly once, every refused one is not, and one whose outcome nobody knows
//!   is there once or not at all;
//! * the balances are what the ledger says: nothing was applied twice, and nothing without its ledger row.
//!
//! Each region has its own `accounts` and `transfers` tables in the schema named after it; clients mostly use their own
//! region's. The ledger row is written in the same transaction as the two balances, so a transfer is one atomic thing to
//! look for.

use crate::client::Value;
use crate::history::{Op, Outcome, Record};
use crate::run::{Context, Progress, Verdict, Worker, Workload};
use crate::schema;
use crate::session::{Attempted, Session, Statements};
use crate::stats::StatsKey;
use async_trait::async_trait;
use meridian_base::{Error, Result};
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

/// The database it works in.
pub const DATABASE: &str = "bank";
const BALANCE_START: i64 = 1_000;
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
            lock_share: 0.3,
            think_time: Duration::ZERO,
        }
    }
}

/// The workload.
pub struct Bank {
    config: BankConfig,
    /// What the workers know about their transfers, per region and id.
    transfers: Mutex<BTreeMap<(String, i64), (Transfer, Outcome)>>,
    /// Snapshots whose sum was wrong, as sentences.
    wrong_snapshots: Mutex<Vec<String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Transfer {
    id: i64,
    from: i64,
    to: i64,
    amount: i64,
}

impl Bank {
    /// A bank that no worker has used yet.
    pub fn new(config: BankConfig) -> Bank {
        assert!(config.accounts_per_region >= 2, "a transfer needs two accounts");
        Bank { config, transfers: Mutex::default(), wrong_snapshots: Mutex::default() }
    }

    /// How many transfers were acknowledged so far.
    pub fn acknowledged(&self) -> u64 {
        let transfers = self.transfers.lock().expect("no panic while counting");
        transfers.values().filter(|(_, outcome)| *outcome == Outcome::Committed).count() as u64
    }

    fn sum(&self) -> i64 {
        self.config.accounts_per_region * BALANCE_START
    }

    async fn transfer(&self, context: &Context, session: &mut Session, region: &str, rng: &mut SmallRng, id: i64) -> Ended {
        let accounts = self.config.accounts_per_region;
        let from = rng.random_range(0..accounts);
        let to = (from + rng.random_range(1..accounts)) % accounts;
        let transfer = Transfer { id, from, to, amount: rng.random_range(1..=10) };
        let lock = rng.random_bool(self.config.lock_share);
        let schema = schema::schema_of(region);
        let invoked = context.timer.now_micros();
        let attempted = session
            .transaction(rng, |statements| {
                let schema = schema.clone();
                Box::pin(async move { move_money(statements, &schema, transfer, lock).await })
            })
            .await;
        let ended = Ended::of(&attempted);
        self.note(region, transfer, ended.outcome());
        context.history.push(Record {
            client: (id >> 32) as u32,
            invoked,
            completed: ended.completed(context),
            outcome: ended.outcome(),
            ops: vec![Op::Transfer { id, from, to, amount: transfer.amount }],
        });
        ended
    }

    /// Reads all balances, in one statement or in two inside one transaction, and checks their sum.
    async fn snapshot(
        &self,
        context: &Context,
        session: &mut Session,
        region: &str,
        rng: &mut SmallRng,
        worker: &Worker,
    ) -> Ended {
        let schema = schema::schema_of(region);
        let half = rng.random_bool(0.5).then_some(self.config.accounts_per_region / 2);
        let invoked = context.timer.now_micros();
        let attempted = session
            .transaction(rng, |statements| {
                let schema = schema.clone();
                Box::pin(async move { read_balances(statements, &schema, half).await })
            })
            .await;
        let ended = Ended::of(&attempted);
        if let Attempted::Committed(balances) = attempted {
            let sum: i64 = balances.values().sum();
            if sum != self.sum() || balances.len() as i64 != self.config.accounts_per_region {
                let mut wrong = self.wrong_snapshots.lock().expect("no panic while noting");
                wrong.push(format!("a snapshot of {region} at {invoked} µs sums to {sum}, not {}: {balances:?}", self.sum()));
            }
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

    fn note(&self, region: &str, transfer: Transfer, outcome: Outcome) {
        let mut transfers = self.transfers.lock().expect("no panic while noting");
        transfers.insert((region.to_string(), transfer.id), (transfer, outcome));
    }

    async fn check_region(&self, context: &Context, region: &str, verdict: &mut Verdict) -> Result<()> {
        let schema = schema::schema_of(region);
        let mut session = context.session(region, DATABASE);
        let (balances, ledger) = final_state(context, &mut session, &schema).await?;

        let sum: i64 = balances.values().sum();
        verdict.expect(sum == self.sum(), || format!("{region}: the balances sum to {sum}, not {}", self.sum()));

        let known = self.transfers.lock().expect("no panic while checking");
        let mut seen = BTreeSet::new();
        let mut expected: BTreeMap<i64, i64> = (0..self.config.accounts_per_region).map(|a| (a, BALANCE_START)).collect();
        for row in &ledger {
            *expected.entry(row.from).or_default() -= row.amount;
            *expected.entry(row.to).or_default() += row.amount;
            verdict.expect(seen.insert(row.id), || format!("{region}: transfer {} is in the ledger twice", row.id));
            match known.get(&(region.to_string(), row.id)) {
                None => verdict.violations.push(format!("{region}: nobody made transfer {}", row.id)),
                Some((made, outcome)) => {
                    verdict.expect(made == row, || format!("{region}: transfer {row:?} was made as {made:?}"));
                    let refused = *outcome == Outcome::Aborted;
                    verdict.expect(!refused, || format!("{region}: transfer {} was refused, but is there", row.id));
                }
            }
        }
        for ((_, id), (_, outcome)) in known.iter().filter(|((r, _), _)| r == region) {
            let lost = *outcome == Outcome::Committed && !seen.contains(id);
            verdict.expect(!lost, || format!("{region}: transfer {id} was acknowledged and is lost"));
        }
        verdict.expect(balances == expected, || {
            let off: Vec<_> = expected.iter().filter(|(a, b)| balances.get(a) != Some(b)).map(|(a, _)| a).collect();
            format!("{region}: the balances of accounts {off:?} are not what the ledger says")
        });
        Ok(())
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

async fn move_money(statements: &mut Statements<'_>, schema: &str, transfer: Transfer, lock: bool) -> Result<()> {
    let suffix = if lock { " FOR UPDATE" } else { "" };
    let select = format!("SELECT balance FROM {schema}.accounts WHERE id = $1{suffix}");
    let update = format!("UPDATE {schema}.accounts SET balance = $2 WHERE id = $1");
    let from = statements.query(&select, &[transfer.from.into()]).await?.int(0, 0)?;
    let to = statements.query(&select, &[transfer.to.into()]).await?.int(0, 0)?;
    statements.query(&update, &[transfer.from.into(), (from - transfer.amount).into()]).await?;
    statements.query(&update, &[transfer.to.into(), (to + transfer.amount).into()]).await?;
    let insert = format!("INSERT INTO {schema}.transfers (id, from_id, to_id, amount) VALUES ($1, $2, $3, $4)");
    let params: [Value; 4] = [transfer.id.into(), transfer.from.into(), transfer.to.into(), transfer.amount.into()];
    statements.query(&insert, &params).await?;
    Ok(())
}

async fn read_balances(statements: &mut Statements<'_>, schema: &str, half: Option<i64>) -> Result<BTreeMap<i64, i64>> {
    let filters = match half {
        Some(half) => vec![format!(" WHERE id < {half}"), format!(" WHERE id >= {half}")],
        None => vec![String::new()],
    };
    let mut balances = BTreeMap::new();
    for filter in filters {
        let rows = statements.query(&format!("SELECT id, balance FROM {schema}.accounts{filter}"), &[]).await?;
        for row in 0..rows.rows.len() {
            balances.insert(rows.int(row, 0)?, rows.int(row, 1)?);
        }
    }
    Ok(balances)
}

/// Balances and ledger in one transaction, tried until the cluster answers.
async fn final_state(context: &Context, session: &mut Session, schema: &str) -> Result<(BTreeMap<i64, i64>, Vec<Transfer>)> {
    crate::run::until_answered(context, session, |statements| {
        let schema = schema.to_string();
        Box::pin(async move {
            let balances = read_balances(statements, &schema, None).await?;
            let sql = format!("SELECT id, from_id, to_id, amount FROM {schema}.transfers ORDER BY id");
            let rows = statements.query(&sql, &[]).await?;
            let ledger = (0..rows.rows.len()).map(|r| {
                Ok(Transfer { id: rows.int(r, 0)?, from: rows.int(r, 1)?, to: rows.int(r, 2)?, amount: rows.int(r, 3)? })
            });
            Ok((balances, ledger.collect::<Result<Vec<Transfer>>>()?))
        })
    })
    .await
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
        for region in &regions {
            let mut session = context.session(region, DATABASE);
            let schema = schema::schema_of(region);
            let ids: Vec<i64> = (0..self.config.accounts_per_region).collect();
            for batch in ids.chunks(LOAD_BATCH) {
                let values: Vec<String> = batch.iter().map(|id| format!("({id}, {BALANCE_START})")).collect();
                let sql = format!("INSERT INTO {schema}.accounts (id, balance) VALUES {}", values.join(", "));
                schema::run(&mut session, &sql).await?;
                rows_done += batch.len() as u64;
                progress(Progress { rows_done, rows_total });
            }
        }
        Ok(())
    }

    async fn worker(&self, context: &Context, worker: Worker) -> Result<()> {
        let mut rng = context.rng(u64::from(worker.id) + 1);
        let mut session = context.session(&worker.region, DATABASE);
        let regions = context.connector.regions();
        // Unique over workers, so that the ledger's primary key tells a transfer that was applied twice.
        let mut id = i64::from(worker.id) << 32;
        while !context.stop.is_stopped() {
            let (region, locality) = crate::run::pick_region(&regions, &worker.region, self.config.other_region_share, &mut rng);
            let started = context.timer.now_micros();
            let (operation, ended) = if rng.random_bool(self.config.snapshot_share) {
                ("snapshot", self.snapshot(context, &mut session, region, &mut rng, &worker).await)
            } else {
                id += 1;
                ("transfer", self.transfer(context, &mut session, region, &mut rng, id).await)
            };
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
        for region in context.connector.regions() {
            self.check_region(context, &region, &mut verdict).await?;
        }
        Ok(verdict)
    }
}
