//! Who is compared: one number that all sites change, kept in several ways on the same engine.
//!
//! | mode | what there is | stands for |
//! | --- | --- | --- |
//! | `escrow` | an escrow column with a bound | Samya |
//! | `unbounded` | an escrow column without one | Samya without constraints (§5.5) |
//! | `no-redistribution` | a pool for each site, an escrow column of one region | Samya without redistribution (§5.5) |
//! | `demarcation` | the same, and a site that is short takes from one other at a time | Demarcation/Escrow (§5.3) |
//! | `zone` | a plain column, its row in the first region | a counter beside its clients |
//! | `region` | the same, each change replicated to other regions | MultiPaxSys (§5.3) |
//!
//! A pool holds its site's free tokens. The pools of a site are in a database of its region alone,
//! so nothing redistributes them, and a delta of a pool is an escrow delta like that of `escrow`.
//! Statements do not reach over databases, so who borrows takes tokens from a pool and adds them to
//! another one in two statements, as the demarcation protocol does: a crash between them loses
//! tokens, which is why Samya's evaluation has no failures for it.

use clap::ValueEnum;
use meridian_base::{Error, Result};
use meridian_workload::client::Value;
use meridian_workload::session::{Attempted, Session};
use meridian_workload::{Context, schema};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// After all other sites had nothing, a site does not ask them again for this long: as long as a
/// fruitless round keeps an escrow column from the next one.
const FRUITLESS_PAUSE: Duration = Duration::from_secs(1);
/// A row that is never there: to make connections and plan statements.
const NO_ROW: i64 = -1;

/// See the module's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Mode {
    /// An escrow column.
    Escrow,
    /// An escrow column without a bound.
    Unbounded,
    /// A part of the bound for each site.
    NoRedistribution,
    /// The same, and a site that is short takes from one other site at a time.
    Demarcation,
    /// A plain column that survives the loss of a zone.
    Zone,
    /// A plain column that survives the loss of a region.
    Region,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Escrow,
    Counter,
    Pools,
}

impl Mode {
    pub fn name(self) -> &'static str {
        match self {
            Mode::Escrow => "escrow",
            Mode::Unbounded => "unbounded",
            Mode::NoRedistribution => "no-redistribution",
            Mode::Demarcation => "demarcation",
            Mode::Zone => "zone",
            Mode::Region => "region",
        }
    }
    fn kind(self) -> Kind {
        match self {
            Mode::Escrow | Mode::Unbounded => Kind::Escrow,
            Mode::NoRedistribution | Mode::Demarcation => Kind::Pools,
            Mode::Zone | Mode::Region => Kind::Counter,
        }
    }
    pub fn is_bounded(self) -> bool {
        self != Mode::Unbounded
    }
    /// Whether one statement reads the number.
    pub fn is_readable(self) -> bool {
        self.kind() != Kind::Pools
    }
}

/// What came of a request.
#[derive(Debug)]
pub(super) enum Answer {
    Done,
    /// It would have left the bounds: 23514, or a condition that was false.
    Refused,
    /// It had no effect.
    Failed(Error),
    /// It may have happened.
    Unknown(Error),
}

/// How tables are made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Making<'a> {
    /// SQL for the escrow columns of all sites; `{table}` in it is the table's name.
    pub extra: &'a [String],
    /// Databases over all regions keep no replicas for stale reads.
    pub is_restricted: bool,
}

/// A mode's tables for one bound.
pub(super) struct Store {
    pub mode: Mode,
    pub limit: i64,
    /// By their regions' names.
    sites: Vec<String>,
    table: String,
}

impl Store {
    /// Creates databases and the tables in them.
    pub async fn create(mode: Mode, limit: i64, context: &Context, making: Making<'_>) -> Result<Store> {
        let table = format!("{}_{limit}", mode.name().replace('-', "_"));
        let store = Store { mode, limit, sites: context.connector.regions(), table };
        for (at, site) in store.sites.iter().enumerate().filter(|(at, _)| *at == 0 || mode.kind() == Kind::Pools) {
            let database = store.database(at);
            match mode.kind() {
                Kind::Pools => {
                    let sql = format!("CREATE DATABASE {database} PRIMARY REGION {}", schema::quoted(site));
                    schema::run(&mut context.session(site, schema::DATABASE_DEFAULT), &sql).await?;
                }
                Kind::Escrow | Kind::Counter => {
                    let goal = if mode == Mode::Region { "REGION" } else { "ZONE" };
                    schema::create_database_surviving(context, &database, goal).await?;
                    if making.is_restricted && mode != Mode::Region {
                        let sql = format!("ALTER DATABASE {database} PLACEMENT RESTRICTED");
                        schema::run(&mut context.session(site, schema::DATABASE_DEFAULT), &sql).await?;
                    }
                }
            }
            schema::run(&mut context.session(site, &database), &store.table_sql()).await?;
            if mode.kind() == Kind::Escrow {
                let extra: Vec<String> = making.extra.iter().map(|sql| sql.replace("{table}", &store.table)).collect();
                schema::run_all(&mut context.session(site, &database), &extra).await?;
            }
        }
        Ok(store)
    }

    fn database(&self, site: usize) -> String {
        match self.mode.kind() {
            Kind::Escrow => "bench_escrow".to_string(),
            Kind::Counter => format!("bench_counter_{}", self.mode.name()),
            Kind::Pools => format!("bench_pool_{site}"),
        }
    }

    fn table_sql(&self) -> String {
        let (table, limit) = (&self.table, self.limit);
        let column = match self.mode {
            Mode::Escrow => format!("used INT8 NOT NULL DEFAULT 0 ESCROW CHECK (used BETWEEN 0 AND {limit})"),
            Mode::Unbounded => "used INT8 NOT NULL DEFAULT 0 ESCROW".to_string(),
            Mode::NoRedistribution | Mode::Demarcation => "free INT8 NOT NULL ESCROW CHECK (free >= 0)".to_string(),
            Mode::Zone | Mode::Region => "used INT8 NOT NULL DEFAULT 0".to_string(),
        };
        format!("CREATE TABLE {table} (id INT8 PRIMARY KEY, {column})")
    }

    /// A row of its own for a turn: each site holds so many tokens, and what is left of the bound
    /// is divided evenly where sites have tokens of their own, as in the paper (§5.2).
    pub async fn begin(&self, id: i64, held: &[i64], context: &Context) -> Result<()> {
        let table = &self.table;
        let in_use: i64 = held.iter().sum();
        for (at, site) in self.sites.iter().enumerate() {
            let mut session = context.session(site, &self.database(at));
            let value = match self.mode.kind() {
                Kind::Escrow => 0,
                Kind::Counter => in_use,
                Kind::Pools => equal_part(self.limit - in_use, self.sites.len(), at),
            };
            if at == 0 || self.mode.kind() == Kind::Pools {
                schema::run(&mut session, &format!("INSERT INTO {table} VALUES ({id}, {value})")).await?;
            }
            if self.mode.kind() == Kind::Escrow {
                self.change(at, id, held[at], context).await?;
            }
        }
        if self.mode == Mode::Escrow {
            // A site that takes tokens and gives them back keeps them free.
            let part = |at| equal_part(self.limit - in_use, self.sites.len(), at);
            for at in 0..self.sites.len() {
                self.change(at, id, part(at), context).await?;
            }
            for at in 0..self.sites.len() {
                self.change(at, id, -part(at), context).await?;
            }
        }
        Ok(())
    }

    /// Changes an escrow column at a site.
    async fn change(&self, site: usize, id: i64, by: i64, context: &Context) -> Result<()> {
        let name = &self.sites[site];
        let sql = format!("UPDATE {} SET used = used + $1 WHERE id = $2", self.table);
        let mut session = context.session(name, &self.database(site));
        match session.single(&mut context.rng(site as u64), &sql, &[by.into(), id.into()]).await {
            Attempted::Committed(rows) if rows.affected == 1 => Ok(()),
            Attempted::Committed(_) => Err(Error::internal(format!("{name} does not find the row"))),
            Attempted::Failed(e) | Attempted::Unknown(e, _) => Err(e),
        }
    }

    /// How many tokens are in use.
    pub async fn number(&self, id: i64, context: &Context) -> Result<i64> {
        let mut sum = 0;
        for (at, site) in self.sites.iter().enumerate().filter(|(at, _)| *at == 0 || self.mode.kind() == Kind::Pools) {
            let mut session = context.session(site, &self.database(at));
            let sql = format!("SELECT {} FROM {} WHERE id = $1", self.column(), self.table);
            match session.single(&mut context.rng(at as u64), &sql, &[id.into()]).await {
                Attempted::Committed(rows) => sum += rows.int(0, 0)?,
                Attempted::Failed(e) | Attempted::Unknown(e, _) => return Err(e),
            }
        }
        Ok(if self.mode.kind() == Kind::Pools { self.limit - sum } else { sum })
    }

    fn column(&self) -> &'static str {
        if self.mode.kind() == Kind::Pools { "free" } else { "used" }
    }

    /// What the clients of a site borrow with, if the mode has that.
    pub fn lender(&self, site: usize, id: i64, context: &Context) -> Option<Arc<Mutex<Lender>>> {
        (self.mode == Mode::Demarcation).then(|| {
            let session = |at| context.session(&self.sites[site], &self.database(at));
            Arc::new(Mutex::new(Lender {
                id,
                site,
                sessions: (0..self.sites.len()).map(session).collect(),
                context: context.clone(),
                next: site,
                resting: None,
                brought: 0,
                look: format!("SELECT free FROM {} WHERE id = $1", self.table),
                add: format!("UPDATE {} SET free = free + $1 WHERE id = $2", self.table),
            }))
        })
    }

    /// A client of a site.
    pub fn client(&self, site: usize, id: i64, number: u64, context: &Context, lender: Option<Arc<Mutex<Lender>>>) -> Client {
        let (table, id) = (&self.table, Value::from(id));
        let (acquire, release) = match self.mode.kind() {
            Kind::Escrow => ("SET used = used + 1 WHERE id = $1", "SET used = used - 1 WHERE id = $1"),
            Kind::Counter => ("SET used = used + 1 WHERE id = $1 AND used < $2", "SET used = used - 1 WHERE id = $1"),
            Kind::Pools => ("SET free = free - 1 WHERE id = $1", "SET free = free + 1 WHERE id = $1"),
        };
        let acquire_params = match self.mode.kind() {
            Kind::Counter => vec![id.clone(), self.limit.into()],
            Kind::Escrow | Kind::Pools => vec![id.clone()],
        };
        Client {
            session: context.session(&self.sites[site], &self.database(site)),
            context: context.clone(),
            number,
            acquire: (format!("UPDATE {table} {acquire}"), acquire_params),
            release: (format!("UPDATE {table} {release}"), vec![id.clone()]),
            read: (format!("SELECT {} FROM {table} WHERE id = $1", self.column()), vec![id]),
            is_conditional: self.mode.kind() == Kind::Counter,
            lender,
        }
    }
}

/// The part of one of several that share tokens equally; the first ones get one more.
fn equal_part(tokens: i64, count: usize, at: usize) -> i64 {
    let count = count as i64;
    tokens / count + i64::from((at as i64) < tokens % count)
}

type Statement = (String, Vec<Value>);

/// A client of a site, with a connection of its own.
pub(super) struct Client {
    session: Session,
    context: Context,
    number: u64,
    acquire: Statement,
    release: Statement,
    read: Statement,
    /// No row changed means that the bound is reached.
    is_conditional: bool,
    lender: Option<Arc<Mutex<Lender>>>,
}

impl Client {
    /// Connects, and has the statements planned.
    pub async fn warm_up(&mut self) -> Result<()> {
        for (sql, params) in [&self.acquire, &self.release] {
            let params: Vec<Value> = std::iter::once(NO_ROW.into()).chain(params[1..].iter().cloned()).collect();
            let attempted = self.session.single(&mut self.context.rng(self.number), sql, &params).await;
            if let Attempted::Failed(e) | Attempted::Unknown(e, _) = attempted {
                return Err(e);
            }
        }
        Ok(())
    }

    /// Takes one token.
    pub async fn acquire(&mut self) -> Answer {
        let mut seen = 0;
        loop {
            let answer = self.run(self.acquire.clone()).await;
            let (Answer::Refused, Some(lender)) = (&answer, &self.lender) else { return answer };
            let mut lender = lender.lock().await;
            if lender.brought == seen {
                match lender.borrow().await {
                    Ok(true) => {}
                    Ok(false) => return answer,
                    Err(e) => return Answer::Failed(e),
                }
            }
            // Those of others, which were brought while this one waited, may be gone again.
            seen = lender.brought;
        }
    }

    /// Gives one back.
    pub async fn release(&mut self) -> Answer {
        self.run(self.release.clone()).await
    }

    /// Reads the exact number.
    pub async fn read(&mut self) -> Answer {
        self.run(self.read.clone()).await
    }

    /// How many times statements were run again, since the last call.
    pub fn take_retries(&mut self) -> u32 {
        self.session.take_retries()
    }

    async fn run(&mut self, (sql, params): Statement) -> Answer {
        match self.session.single(&mut self.context.rng(self.number), &sql, &params).await {
            Attempted::Committed(rows) if rows.affected == 1 => Answer::Done,
            Attempted::Committed(_) if self.is_conditional => Answer::Refused,
            Attempted::Committed(_) => Answer::Failed(Error::internal("the row was not found")),
            Attempted::Failed(e) if e.sqlstate() == "23514" => Answer::Refused,
            Attempted::Failed(e) => Answer::Failed(e),
            Attempted::Unknown(e, _) => Answer::Unknown(e),
        }
    }
}

/// How a site borrows: it asks the others in turn, one at a time, and takes half of what the first
/// one has that has any. One borrows for all clients of the site.
pub(super) struct Lender {
    id: i64,
    site: usize,
    /// From this site to the pools of all.
    sessions: Vec<Session>,
    context: Context,
    /// Who was asked last.
    next: usize,
    /// Until when nobody is asked.
    resting: Option<Instant>,
    /// How many times tokens were brought.
    pub brought: u64,
    look: String,
    add: String,
}

impl Lender {
    async fn borrow(&mut self) -> Result<bool> {
        if self.resting.is_some_and(|until| Instant::now() < until) {
            return Ok(false);
        }
        for _ in 0..self.sessions.len() {
            self.next = (self.next + 1) % self.sessions.len();
            if self.next == self.site {
                continue;
            }
            let tokens = (self.look(self.next).await? + 1) / 2;
            if tokens > 0 && self.add(self.next, -tokens).await? {
                if !self.add(self.site, tokens).await? {
                    return Err(Error::internal("a pool refuses tokens"));
                }
                self.brought += 1;
                self.resting = None;
                return Ok(true);
            }
        }
        self.resting = Some(Instant::now() + FRUITLESS_PAUSE);
        Ok(false)
    }

    async fn look(&mut self, site: usize) -> Result<i64> {
        let mut rng = self.context.rng(site as u64);
        match self.sessions[site].single(&mut rng, &self.look, &[self.id.into()]).await {
            Attempted::Committed(rows) => rows.int(0, 0),
            Attempted::Failed(e) | Attempted::Unknown(e, _) => Err(e),
        }
    }

    /// `false`: there are fewer by now.
    async fn add(&mut self, site: usize, tokens: i64) -> Result<bool> {
        let mut rng = self.context.rng(site as u64);
        match self.sessions[site].single(&mut rng, &self.add, &[tokens.into(), self.id.into()]).await {
            Attempted::Committed(rows) if rows.affected == 1 => Ok(true),
            Attempted::Committed(_) => Err(Error::internal("a pool was not found")),
            Attempted::Failed(e) if e.sqlstate() == "23514" => Ok(false),
            Attempted::Failed(e) | Attempted::Unknown(e, _) => Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_parts_are_the_whole() {
        let parts = |tokens| (0..5).map(|at| equal_part(tokens, 5, at)).collect::<Vec<_>>();
        assert_eq!(parts(12), [3, 3, 2, 2, 2]);
        assert_eq!(parts(0), [0; 5]);
    }

    #[test]
    fn every_mode_is_called_as_on_the_command_line() {
        for mode in Mode::value_variants() {
            assert_eq!(mode.to_possible_value().map(|v| v.get_name().to_string()).as_deref(), Some(mode.name()));
        }
    }
}
