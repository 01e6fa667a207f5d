//! Registers: single-statement reads, writes and compare-and-set, each a transaction of its own,
//! for the checker of linearizability.

use crate::client::Value;
use crate::history::{Op, Outcome, Record};
use crate::run::{Context, Progress, Verdict, Worker, Workload};
use crate::schema;
use crate::session::{Attempted, Session};
use crate::stats::StatsKey;
use async_trait::async_trait;
use meridian_base::Result;
use rand::Rng;
use rand::rngs::SmallRng;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

const DATABASE: &str = "registers";
const KEYS_OF_REGION: i64 = 1_000_000;
const REST: Duration = Duration::from_millis(50);

/// The shape of the registers.
#[derive(Clone, Debug)]
pub struct RegistersConfig {
    pub keys_per_region: i64,
    pub other_region_share: f64,
    /// The registers are rows of GLOBAL tables.
    pub is_global: bool,
    /// Pause between two operations of a worker.
    pub think_time: Duration,
}

impl Default for RegistersConfig {
    fn default() -> RegistersConfig {
        RegistersConfig { keys_per_region: 3, other_region_share: 0.3, is_global: false, think_time: Duration::ZERO }
    }
}

/// The workload.
pub struct Registers {
    config: RegistersConfig,
    /// Values written are never written again, so that a read says which write it saw.
    next_value: AtomicI64,
}

impl Registers {
    /// Registers that no worker has used yet.
    pub fn new(config: RegistersConfig) -> Registers {
        assert!(config.keys_per_region > 0);
        Registers { config, next_value: AtomicI64::new(1) }
    }

    async fn operation(
        &self,
        session: &mut Session,
        schema: &str,
        key: i64,
        last_seen: Option<i64>,
        rng: &mut SmallRng,
    ) -> (Op, Attempted<()>) {
        let draw = rng.random_range(0..10);
        let new = self.next_value.fetch_add(1, Ordering::Relaxed);
        match (draw, last_seen) {
            (0..=4, _) => {
                let sql = format!("SELECT v FROM {schema}.registers WHERE k = $1");
                let read = session.single(rng, &sql, &[key.into()]).await;
                let value = match &read {
                    Attempted::Committed(rows) => rows.rows.first().and_then(|r| r[0].as_int()),
                    _ => None,
                };
                (Op::Read { key, value }, read.map(|_| ()))
            }
            (5..=7, Some(expected)) => {
                let sql = format!("UPDATE {schema}.registers SET v = $3 WHERE k = $1 AND v = $2");
                let params: [Value; 3] = [key.into(), expected.into(), new.into()];
                let tried = session.single(rng, &sql, &params).await;
                let swapped = matches!(&tried, Attempted::Committed(rows) if rows.affected == 1);
                (Op::CompareAndSet { key, expected, new, swapped }, tried.map(|_| ()))
            }
            _ => {
                let sql =
                    format!("INSERT INTO {schema}.registers (k, v) VALUES ($1, $2) ON CONFLICT (k) DO UPDATE SET v = excluded.v");
                (Op::Write { key, value: new }, session.single(rng, &sql, &[key.into(), new.into()]).await.map(|_| ()))
            }
        }
    }
}

/// The same operation with its key as the history knows it, which is unique over regions.
fn in_history(op: Op, offset: i64) -> Op {
    match op {
        Op::Read { key, value } => Op::Read { key: key + offset, value },
        Op::Write { key, value } => Op::Write { key: key + offset, value },
        Op::CompareAndSet { key, expected, new, swapped } => Op::CompareAndSet { key: key + offset, expected, new, swapped },
        other => other,
    }
}

#[async_trait]
impl Workload for Registers {
    fn name(&self) -> &'static str {
        "registers"
    }

    async fn setup(&self, context: &Context, progress: &(dyn Fn(Progress) + Send + Sync)) -> Result<()> {
        schema::create_database(context, DATABASE).await?;
        let regions = context.connector.regions();
        for (done, region) in regions.iter().enumerate() {
            let schema = schema::schema_of(region);
            let home = match self.config.is_global {
                true => schema::global(&*context.connector),
                false => schema::locality(&*context.connector, region),
            };
            let tables = [
                format!("CREATE SCHEMA {schema}"),
                format!("CREATE TABLE {schema}.registers (k INT8 PRIMARY KEY, v INT8 NOT NULL){home}"),
            ];
            schema::run_all(&mut context.session(region, DATABASE), &tables).await?;
            progress(Progress { rows_done: done as u64 + 1, rows_total: regions.len() as u64 });
        }
        Ok(())
    }

    async fn worker(&self, context: &Context, worker: Worker) -> Result<()> {
        let mut rng = context.rng(u64::from(worker.id) + 1);
        let mut session = context.session(&worker.region, DATABASE);
        let regions = context.connector.regions();
        let mut last_seen = None;
        while !context.stop.is_stopped() {
            let (region, locality) = crate::run::pick_region(&regions, &worker.region, self.config.other_region_share, &mut rng);
            let offset = regions.iter().position(|r| r == region).expect("picked from it") as i64 * KEYS_OF_REGION;
            let key = rng.random_range(0..self.config.keys_per_region);
            let invoked = context.timer.now_micros();
            let expected = last_seen.filter(|(k, _)| *k == key + offset).map(|(_, v)| v);
            let (op, attempted) = self.operation(&mut session, &schema::schema_of(region), key, expected, &mut rng).await;
            let now = context.timer.now_micros();
            if let Op::Read { key, value: Some(value) } = &op {
                last_seen = Some((key + offset, *value));
            }
            let stats_key = StatsKey { region: worker.region.clone(), operation: operation_name(&op), locality };
            let retries = session.take_retries();
            let (outcome, completed) = match &attempted {
                Attempted::Committed(()) => (Outcome::Committed, Some(now)),
                Attempted::Failed(_) => (Outcome::Aborted, Some(now)),
                Attempted::Unknown(..) => (Outcome::Unknown, None),
            };
            let op = in_history(op, offset);
            context.history.push(Record { client: worker.id, invoked, completed, outcome, ops: vec![op] });
            match attempted {
                Attempted::Committed(()) => {
                    context.stats.success(&stats_key, Duration::from_micros(now - invoked), retries);
                }
                Attempted::Failed(error) => {
                    context.stats.failure(&stats_key, retries);
                    crate::run::rest_after(&error, REST).await?;
                }
                Attempted::Unknown(..) => {
                    context.stats.unknown(&stats_key, retries);
                    tokio::time::sleep(REST).await;
                }
            }
            if !self.config.think_time.is_zero() {
                tokio::time::sleep(self.config.think_time).await;
            }
        }
        Ok(())
    }

    /// Records a last read of every register; the history is the checker's to judge.
    async fn check(&self, context: &Context) -> Result<Verdict> {
        let mut verdict = Verdict::default();
        for (index, region) in context.connector.regions().iter().enumerate() {
            let schema = schema::schema_of(region);
            let mut session = context.session(region, DATABASE);
            let invoked = context.timer.now_micros();
            let rows = crate::run::until_answered(context, &mut session, |statements| {
                let sql = format!("SELECT k, v FROM {schema}.registers");
                Box::pin(async move { statements.query(&sql, &[]).await })
            })
            .await?;
            let completed = Some(context.timer.now_micros());
            for row in 0..rows.rows.len() {
                let (key, value) = (rows.int(row, 0)? + index as i64 * KEYS_OF_REGION, Some(rows.int(row, 1)?));
                let ops = vec![Op::Read { key, value }];
                context.history.push(Record { client: u32::MAX, invoked, completed, outcome: Outcome::Committed, ops });
                verdict.examined += 1;
            }
        }
        Ok(verdict)
    }
}

fn operation_name(op: &Op) -> &'static str {
    match op {
        Op::Read { .. } => "read",
        Op::Write { .. } => "write",
        _ => "compare and set",
    }
}
