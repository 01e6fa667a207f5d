//! YCSB (Cooper et al., SoCC'10) over regions, as CockroachDB's multi-region paper runs it (§7.1 to
//! 7.3).
//!
//! One table, `usertable`: a key and ten fields of a hundred letters. Clients read a row (*A*, *B*,
//! *D*), update a field (*A*, *B*) or insert a row (*D*), each as one statement. The table has the
//! shape that is asked for ([`Table`]): at home in one region, in every region a part of it,
//! `GLOBAL`, or a copy in each region. A share of the operations, the *locality of access*, is on
//! rows that were first written in the client's own region.
//!
//! What must hold at the end: every acknowledged insert is there once and nothing else, every field
//! has a value that somebody wrote there, and copies are alike ([`judge`]).
//!
//! * [`choose`]: which row.
//! * [`rows`]: keys and values.
//! * [`tables`]: the statements.
//! * [`count`]: the round trips of one operation.

mod choose;
mod count;
mod judge;
mod rows;
mod tables;

use crate::client::{Rows, Value};
use crate::run::{Context, Progress, Verdict, Worker, Workload, account, chance, until_answered};
use crate::schema;
use crate::session::{Attempted, Session};
use crate::stats::{Locality, StatsKey};
use async_trait::async_trait;
use choose::Chooser;
pub use choose::Distribution;
use judge::{Known, Row};
use meridian_base::Result;
use rand::Rng;
use rand::rngs::SmallRng;
use rows::{FIELDS, Key, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use tables::Statements;

/// The database's name.
pub const DATABASE: &str = "ycsb";
/// Rows per INSERT of the load: 100 KB.
const LOAD_BATCH: usize = 100;

/// What clients do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Reads and updates, half and half.
    A,
    /// Reads; one operation in twenty updates.
    B,
    /// Reads, of new rows above all; one operation in twenty inserts.
    D,
}

impl Mix {
    /// What the benchmark's core workloads use.
    pub fn distribution(self) -> Distribution {
        match self {
            Mix::A | Mix::B => Distribution::Zipfian,
            Mix::D => Distribution::Latest,
        }
    }
    fn draw(self, rng: &mut SmallRng) -> Operation {
        match self {
            Mix::A if rng.random_bool(0.5) => Operation::Update,
            Mix::B if rng.random_bool(0.05) => Operation::Update,
            Mix::D if rng.random_bool(0.05) => Operation::Insert,
            Mix::A | Mix::B | Mix::D => Operation::Read,
        }
    }
}

/// One statement on one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Read,
    Update,
    Insert,
}

impl Operation {
    /// As it is called in tables of results.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Read => "read",
            Operation::Update => "update",
            Operation::Insert => "insert",
        }
    }
}

/// Where rows live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// In the database's primary region.
    Regional,
    /// `GLOBAL`.
    Global,
    /// Each where it was first written: `REGIONAL BY ROW`.
    ByRow,
    /// Each where it was written last: the same, and rows follow updates.
    Rehoming,
    /// Each where its key says; nobody says so in a statement.
    Computed,
    /// Each where every statement says: tables that the application partitions.
    Partitioned,
    /// A copy in every region, all written together and each read in its own: what CockroachDB
    /// called duplicate indexes.
    Duplicates,
}

impl Table {
    /// All shapes.
    pub const ALL: [Table; 7] =
        [Table::Regional, Table::Global, Table::ByRow, Table::Rehoming, Table::Computed, Table::Partitioned, Table::Duplicates];
    /// A word for command lines and tables of results.
    pub fn name(self) -> &'static str {
        match self {
            Table::Regional => "regional",
            Table::Global => "global",
            Table::ByRow => "by_row",
            Table::Rehoming => "rehoming",
            Table::Computed => "computed",
            Table::Partitioned => "partitioned",
            Table::Duplicates => "duplicates",
        }
    }
}

/// Which moment is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// The present.
    Latest,
    /// The newest that the nearest replica has, ten seconds old at most.
    Bounded,
    /// `follower_read_timestamp()`.
    Follower,
}

impl Reads {
    fn clause(self) -> &'static str {
        match self {
            Reads::Latest => "",
            Reads::Bounded => " AS OF SYSTEM TIME with_max_staleness('10s')",
            Reads::Follower => " AS OF SYSTEM TIME follower_read_timestamp()",
        }
    }
}

/// The shape of the workload.
#[derive(Clone, Debug)]
pub struct YcsbConfig {
    pub mix: Mix,
    pub table: Table,
    pub distribution: Distribution,
    pub reads: Reads,
    pub rows_per_region: u64,
    /// The share of operations on rows that were first written in the client's region; `None`: all
    /// rows are everybody's.
    pub own_share: Option<f64>,
    /// So many clients share no row with each other; `None`: all do. Inserts are nobody's but their
    /// client's anyway.
    pub disjoint: Option<u32>,
}

impl Default for YcsbConfig {
    fn default() -> YcsbConfig {
        YcsbConfig {
            mix: Mix::B,
            table: Table::ByRow,
            distribution: Mix::B.distribution(),
            reads: Reads::Latest,
            rows_per_region: 1_000,
            own_share: Some(0.95),
            disjoint: None,
        }
    }
}

/// Where reads of rows that were first written elsewhere have found them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// In the client's region.
    pub here: u64,
    pub elsewhere: u64,
}

/// The workload.
pub struct Ycsb {
    config: YcsbConfig,
    known: Mutex<Known>,
    found_here: AtomicU64,
    found_elsewhere: AtomicU64,
}

/// One client at work.
struct Client<'y> {
    ycsb: &'y Ycsb,
    id: u32,
    region: String,
    /// The region's place in the list.
    own: usize,
    statements: Statements,
    session: Session,
    rng: SmallRng,
}

impl Ycsb {
    /// Of this shape.
    pub fn new(config: YcsbConfig) -> Ycsb {
        assert!(config.rows_per_region > 0, "there is something to read");
        let slots = u64::from(config.disjoint.unwrap_or(1));
        assert!(slots > 0 && config.rows_per_region >= slots, "every client has a row");
        Ycsb { config, known: Mutex::default(), found_here: AtomicU64::new(0), found_elsewhere: AtomicU64::new(0) }
    }

    /// Where reads have found rows since the last call.
    pub fn take_found(&self) -> Found {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        Found { here: take(&self.found_here), elsewhere: take(&self.found_elsewhere) }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().expect("no panic while noting")
    }

    fn statements(&self, context: &Context, region: &str) -> Statements {
        Statements::new(self.config.table, &context.connector.regions(), region, context.connector.knows_regions())
    }

    fn client(&self, context: &Context, id: u32, region: &str) -> Client<'_> {
        Client {
            ycsb: self,
            id,
            region: region.to_string(),
            own: context.connector.regions().iter().position(|r| r == region).expect("a region of the cluster"),
            statements: self.statements(context, region),
            session: context.session(region, DATABASE),
            rng: context.rng(u64::from(id) + 1),
        }
    }

    /// Whose row it is, seen from a region.
    fn locality(&self, key: Key, own: usize) -> Locality {
        let home = match self.config.table {
            Table::Regional | Table::Global => 0,
            Table::Duplicates => own,
            Table::ByRow | Table::Rehoming | Table::Computed | Table::Partitioned => key.region,
        };
        if home == own { Locality::Own } else { Locality::Other }
    }

    /// A row of a region; of those that are the client's.
    fn row_of(&self, region: usize, client: u32, chooser: &mut Chooser, rng: &mut SmallRng) -> Key {
        let rows = self.lock().numbers[region].readable();
        let number = match self.config.disjoint.map(u64::from) {
            None => chooser.choose(rows, rng),
            Some(slots) => chooser.choose(rows / slots, rng) * slots + u64::from(client) % slots,
        };
        Key { region, number }
    }

    fn row(&self, own: usize, client: u32, chooser: &mut Chooser, rng: &mut SmallRng) -> Key {
        let regions = self.lock().numbers.len();
        match self.config.own_share {
            Some(share) => {
                let is_own = regions == 1 || !chance(1.0 - share, rng);
                let region = if is_own { own } else { (own + rng.random_range(1..regions)) % regions };
                self.row_of(region, client, chooser, rng)
            }
            // The newest of all regions have no order.
            None if self.config.distribution == Distribution::Latest => {
                self.row_of(rng.random_range(0..regions), client, chooser, rng)
            }
            None => {
                let (all, regions) = (self.config.rows_per_region * regions as u64, regions as u64);
                let at = chooser.choose(all, rng);
                Key { region: (at % regions) as usize, number: at / regions }
            }
        }
    }

    async fn load(&self, context: &Context, at: usize, done: &(dyn Fn(u64) + Send + Sync)) -> Result<()> {
        let region = &context.connector.regions()[at];
        let statements = self.statements(context, region);
        let mut session = context.session(region, DATABASE);
        let keys: Vec<Key> = (0..self.config.rows_per_region).map(|number| Key { region: at, number }).collect();
        for batch in keys.chunks(LOAD_BATCH) {
            let row = |key: &Key| {
                let fields: Vec<String> = (0..FIELDS).map(|f| format!("'{}'", Write::LOAD.value(*key, f))).collect();
                (*key, format!("'{key}', {}", fields.join(", ")))
            };
            let rows: Vec<(Key, String)> = batch.iter().map(row).collect();
            for sql in statements.load(&rows) {
                schema::run(&mut session, &sql).await?;
            }
            done(batch.len() as u64);
        }
        Ok(())
    }

    /// All rows of one copy.
    async fn read_all(&self, context: &Context, copy: usize) -> Result<Vec<Row>> {
        let region = &context.connector.regions()[0];
        let sql = self.statements(context, region).read_all(copy);
        let mut session = context.session(region, DATABASE);
        let rows = until_answered(context, &mut session, |statements| {
            let sql = sql.clone();
            Box::pin(async move { statements.query(&sql, &[]).await })
        })
        .await?;
        (0..rows.rows.len()).map(|row| read_row(&rows, row)).collect()
    }
}

fn read_row(rows: &Rows, row: usize) -> Result<Row> {
    let text = rows.text(row, 0)?;
    let key = Key::parse(text).ok_or_else(|| meridian_base::Error::internal(format!("not a key of this workload: {text}")))?;
    let fields = (0..FIELDS).map(|field| rows.text(row, field + 2).map(str::to_string)).collect::<Result<_>>()?;
    Ok((key, fields))
}

impl Client<'_> {
    async fn read(&mut self, key: Key) -> Attempted<()> {
        let reads = self.ycsb.config.reads;
        let is_there = reads == Reads::Latest && self.ycsb.lock().is_there(key);
        let sql = self.statements.read(key, reads.clause());
        let attempted = self.session.single(&mut self.rng, &sql, &[key.to_string().into()]).await;
        if let Attempted::Committed(rows) = &attempted {
            match rows.rows.first() {
                Some(row) if key.region != self.own && self.statements.has_regions() => {
                    let is_here = row[0].as_text() == Some(&self.region);
                    let counter = if is_here { &self.ycsb.found_here } else { &self.ycsb.found_elsewhere };
                    counter.fetch_add(1, Ordering::Relaxed);
                }
                None if is_there => self.ycsb.lock().missed(key),
                _ => {}
            }
        }
        attempted.map(drop)
    }

    async fn update(&mut self, key: Key) -> Attempted<()> {
        let field = self.rng.random_range(0..FIELDS);
        let write = self.ycsb.lock().write(self.id);
        let params: Vec<Value> = vec![key.to_string().into(), write.value(key, field).into()];
        let statements: Vec<String> = self.statements.update(key, field).collect();
        let attempted = self.write(statements, params).await;
        self.ycsb.lock().wrote(write, None, &attempted);
        attempted
    }

    async fn insert(&mut self, key: Key) -> Attempted<()> {
        let write = self.ycsb.lock().write(self.id);
        let fields = (0..FIELDS).map(|field| Value::from(write.value(key, field)));
        let params: Vec<Value> = std::iter::once(Value::from(key.to_string())).chain(fields).collect();
        let statements: Vec<String> = self.statements.insert(key).collect();
        let attempted = self.write(statements, params).await;
        self.ycsb.lock().wrote(write, Some(key), &attempted);
        attempted
    }

    /// One statement, or those for all copies as one transaction.
    async fn write(&mut self, statements: Vec<String>, params: Vec<Value>) -> Attempted<()> {
        if let [sql] = statements.as_slice() {
            return self.session.single(&mut self.rng, sql, &params).await.map(drop);
        }
        self.session
            .transaction(&mut self.rng, |transaction| {
                let (statements, params) = (statements.clone(), params.clone());
                Box::pin(async move {
                    for sql in &statements {
                        transaction.query(sql, &params).await?;
                    }
                    Ok(())
                })
            })
            .await
    }

    /// A row that nobody has inserted yet; its insert has to follow.
    fn new_row(&self) -> Key {
        Key { region: self.own, number: self.ycsb.lock().numbers[self.own].begin() }
    }
}

#[async_trait]
impl Workload for Ycsb {
    fn name(&self) -> &'static str {
        "ycsb"
    }

    async fn setup(&self, context: &Context, progress: &(dyn Fn(Progress) + Send + Sync)) -> Result<()> {
        schema::create_database(context, DATABASE).await?;
        let regions = context.connector.regions();
        let create = self.statements(context, &regions[0]).create();
        schema::run_block(&mut context.session(&regions[0], DATABASE), &create).await?;
        let rows_total = self.config.rows_per_region * regions.len() as u64;
        let rows_done = AtomicU64::new(0);
        let done = |rows: u64| {
            let rows_done = rows_done.fetch_add(rows, Ordering::Relaxed) + rows;
            progress(Progress { rows_done, rows_total });
        };
        futures::future::try_join_all((0..regions.len()).map(|at| self.load(context, at, &done))).await?;
        // What others have left there is not judged by what this run does.
        let rows = self.read_all(context, 0).await?;
        *self.lock() = Known::begin(regions.len(), &rows);
        Ok(())
    }

    async fn worker(&self, context: &Context, worker: Worker) -> Result<()> {
        let mut client = self.client(context, worker.id, &worker.region);
        let mut chooser = Chooser::new(self.config.distribution);
        while !context.stop.is_stopped() {
            let operation = self.config.mix.draw(&mut client.rng);
            let key = match operation {
                Operation::Insert => client.new_row(),
                Operation::Read | Operation::Update => self.row(client.own, client.id, &mut chooser, &mut client.rng),
            };
            let started = context.timer.now_micros();
            let attempted = match operation {
                Operation::Read => client.read(key).await,
                Operation::Update => client.update(key).await,
                Operation::Insert => client.insert(key).await,
            };
            let locality = self.locality(key, client.own);
            let key = StatsKey { region: client.region.clone(), operation: operation.name(), locality };
            account(context, &mut client.session, &key, started, &attempted).await?;
        }
        Ok(())
    }

    async fn check(&self, context: &Context) -> Result<Verdict> {
        let mut verdict = Verdict::default();
        let first = self.read_all(context, 0).await?;
        judge::judge(&first, &self.lock(), &mut verdict);
        for copy in 1..self.statements(context, &context.connector.regions()[0]).copies() {
            judge::judge_copy(&first, &self.read_all(context, copy).await?, &mut verdict);
        }
        Ok(verdict)
    }
}
