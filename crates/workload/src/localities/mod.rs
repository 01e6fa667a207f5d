//! Tables that change where they live, in a database that changes its regions, while they are read
//! and written.
//!
//! One worker changes localities, regions, the primary one and what is survived, and stops, cancels
//! and resumes the jobs that do it; the others insert, change, move and delete rows that a unique
//! constraint and a foreign key hold together. Whatever is changed, and whoever dies meanwhile:
//!
//! * no row is lost, doubled or misplaced: every row is where its region says, once, with
//!   everything that was acknowledged of it;
//! * a tag belongs to one thing, a thing to an owner who is there, in every snapshot;
//! * every job ends, when all nodes are back.

mod changes;
mod judge;

use crate::client::Rows;
use crate::run::{Context, Progress, Verdict, Worker, Workload};
use crate::schema;
use crate::session::{Attempted, Session, Statements};
use crate::stats::StatsKey;
use async_trait::async_trait;
use judge::{Books, Snapshot, Told};
use meridian_base::Result;
use rand::Rng;
use rand::rngs::SmallRng;
use std::sync::Mutex;
use std::time::Duration;

/// The database it works in.
pub const DATABASE: &str = "places";
/// The tables whose locality changes.
const TABLES: [&str; 2] = ["owners", "things"];
const OWNERS: i64 = 6;
/// Things are inserted with one of the newest so many tags, so that clients want the same ones.
const TAGS: i64 = 3;

/// The shape of the workload.
#[derive(Clone, Debug)]
pub struct LocalitiesConfig {
    /// Pause between two changes.
    pub change_pause: Duration,
    /// Pause between two operations of a worker.
    pub think_time: Duration,
}

impl Default for LocalitiesConfig {
    fn default() -> LocalitiesConfig {
        LocalitiesConfig { change_pause: Duration::from_millis(200), think_time: Duration::from_millis(10) }
    }
}

/// The workload.
pub struct Localities {
    config: LocalitiesConfig,
    books: Mutex<Books>,
}

impl Localities {
    /// Tables that nobody has moved yet.
    pub fn new(config: LocalitiesConfig) -> Localities {
        Localities { config, books: Mutex::default() }
    }
    /// How many changes were acknowledged.
    pub fn changes(&self) -> u64 {
        self.books().changes
    }
    fn books(&self) -> std::sync::MutexGuard<'_, Books> {
        self.books.lock().expect("no panic while noting")
    }

    async fn operation(&self, regions: &[String], session: &mut Session, rng: &mut SmallRng) -> (&'static str, Attempted<()>) {
        match rng.random_range(0..20) {
            0..=6 => ("insert", self.insert(session, rng).await),
            7..=12 => ("count", self.count(session, rng).await),
            13..=14 => ("move", self.move_away(regions, session, rng).await),
            15 => ("delete", self.delete(session, rng).await),
            16 => ("change owners", self.change_owners(session, rng).await),
            17 => ("find", self.find(session, rng).await),
            _ => ("snapshot", self.look(session, rng).await),
        }
    }

    async fn insert(&self, session: &mut Session, rng: &mut SmallRng) -> Attempted<()> {
        let owner = rng.random_range(0..OWNERS);
        let (id, tag) = self.books().draw(TAGS, rng);
        let sql = "INSERT INTO things (id, owner_id, tag, amount) VALUES ($1, $2, $3, 0)";
        let inserted = session.single(rng, sql, &[id.into(), owner.into(), tag.into()]).await;
        self.books().inserted(id, owner, tag, Told::by(&inserted));
        // Somebody else has the tag, or nobody is the owner.
        expecting(&["23505", "23503"], inserted)
    }

    async fn count(&self, session: &mut Session, rng: &mut SmallRng) -> Attempted<()> {
        let Some(id) = self.books().any(rng) else { return Attempted::Committed(()) };
        let was_there = self.books().is_certainly_there(id);
        let counted = session.single(rng, "UPDATE things SET amount = amount + 1 WHERE id = $1", &[id.into()]).await;
        let mut books = self.books();
        match &counted {
            Attempted::Committed(Rows { affected: 0, .. }) => books.missed(id, was_there),
            _ => books.counted(id, Told::by(&counted)),
        }
        counted.map(drop)
    }

    /// Gives a thing another home, if things have homes of their own now and the region is one that
    /// takes any.
    async fn move_away(&self, regions: &[String], session: &mut Session, rng: &mut SmallRng) -> Attempted<()> {
        let Some(id) = self.books().any(rng) else { return Attempted::Committed(()) };
        let to = &regions[rng.random_range(0..regions.len())];
        let sql = format!("UPDATE things SET crdb_region = '{to}' WHERE id = $1");
        expecting(&["42703", "22P02", "55006"], session.single(rng, &sql, &[id.into()]).await)
    }

    async fn delete(&self, session: &mut Session, rng: &mut SmallRng) -> Attempted<()> {
        let Some(id) = self.books().any(rng) else { return Attempted::Committed(()) };
        // From now on nobody can count on it.
        self.books().deleted(id, Told::Maybe);
        let deleted = session.single(rng, "DELETE FROM things WHERE id = $1", &[id.into()]).await;
        self.books().deleted(id, Told::by(&deleted));
        deleted.map(drop)
    }

    /// An owner without things goes, and comes back.
    async fn change_owners(&self, session: &mut Session, rng: &mut SmallRng) -> Attempted<()> {
        let owner = rng.random_range(0..OWNERS);
        let (sql, expected) = match rng.random_bool(0.4) {
            true => ("DELETE FROM owners WHERE id = $1", "23503"),
            false => ("INSERT INTO owners (id, name) VALUES ($1, $1)", "23505"),
        };
        expecting(&[expected], session.single(rng, sql, &[owner.into()]).await)
    }

    /// A thing is found by its tag as it is by its id.
    async fn find(&self, session: &mut Session, rng: &mut SmallRng) -> Attempted<()> {
        let Some(id) = self.books().any(rng) else { return Attempted::Committed(()) };
        let found = session.transaction(rng, |s| Box::pin(find(s, id))).await;
        if let Attempted::Committed(Some(difference)) = &found {
            self.books().seen.push(difference.clone());
        }
        found.map(drop)
    }

    async fn look(&self, session: &mut Session, rng: &mut SmallRng) -> Attempted<()> {
        let seen = session.transaction(rng, |s| Box::pin(snapshot(s))).await;
        if let Attempted::Committed(snapshot) = &seen {
            let wrong = snapshot.contradictions();
            self.books().seen.extend(wrong.into_iter().map(|what| format!("a snapshot shows {what}")));
        }
        seen.map(drop)
    }
}

/// What differs between a thing found by its id and by its tag.
async fn find(statements: &mut Statements<'_>, id: i64) -> Result<Option<String>> {
    let by_id = statements.query("SELECT tag, amount FROM things WHERE id = $1", &[id.into()]).await?;
    if by_id.rows.is_empty() {
        return Ok(None);
    }
    let (tag, amount) = (by_id.int(0, 0)?, by_id.int(0, 1)?);
    let by_tag = statements.query("SELECT id, amount FROM things WHERE tag = $1", &[tag.into()]).await?;
    let found: Result<Vec<(i64, i64)>> = (0..by_tag.rows.len()).map(|r| Ok((by_tag.int(r, 0)?, by_tag.int(r, 1)?))).collect();
    let found = found?;
    Ok((found != [(id, amount)]).then(|| format!("thing {id} with tag {tag} and amount {amount} is {found:?} by its tag")))
}

async fn snapshot(statements: &mut Statements<'_>) -> Result<Snapshot> {
    let owners = statements.query("SELECT id FROM owners", &[]).await?;
    let things = statements.query("SELECT id, owner_id, tag, amount FROM things", &[]).await?;
    let of_row = |r: usize| Ok((things.int(r, 0)?, things.int(r, 1)?, things.int(r, 2)?, things.int(r, 3)?));
    Ok(Snapshot {
        owners: (0..owners.rows.len()).map(|r| owners.int(r, 0)).collect::<Result<_>>()?,
        things: (0..things.rows.len()).map(of_row).collect::<Result<_>>()?,
    })
}

/// An error that the operation invites is an answer like any other.
fn expecting<T>(sqlstates: &[&str], attempted: Attempted<T>) -> Attempted<()> {
    match attempted {
        Attempted::Failed(error) if sqlstates.contains(&error.sqlstate()) => Attempted::Committed(()),
        other => other.map(drop),
    }
}

#[async_trait]
impl Workload for Localities {
    fn name(&self) -> &'static str {
        "localities"
    }

    async fn setup(&self, context: &Context, progress: &(dyn Fn(Progress) + Send + Sync)) -> Result<()> {
        schema::create_database(context, DATABASE).await?;
        let home = &context.connector.regions()[0];
        let mut session = context.session(home, DATABASE);
        let tables = [
            "CREATE TABLE owners (id INT8 PRIMARY KEY, name INT8 NOT NULL UNIQUE)".to_string(),
            "CREATE TABLE things (id INT8 PRIMARY KEY, owner_id INT8 NOT NULL REFERENCES owners (id), tag INT8 NOT NULL UNIQUE, \
             amount INT8 NOT NULL)"
                .to_string(),
        ];
        schema::run_block(&mut session, &tables).await?;
        let owners: Vec<String> = (0..OWNERS).map(|id| format!("({id}, {id})")).collect();
        schema::run(&mut session, &format!("INSERT INTO owners (id, name) VALUES {}", owners.join(", "))).await?;
        progress(Progress { rows_done: OWNERS as u64, rows_total: OWNERS as u64 });
        Ok(())
    }

    async fn worker(&self, context: &Context, worker: Worker) -> Result<()> {
        let mut rng = context.rng(u64::from(worker.id) + 1);
        let regions = context.connector.regions();
        let mut session = context.session(&worker.region, DATABASE);
        if worker.id == 0 {
            let (mut controls, mut control_rng) = (context.session(&worker.region, DATABASE), context.rng(0));
            let changes = self.change_all(context, &mut session, &mut rng);
            return futures::try_join!(changes, self.control_jobs(context, &mut controls, &mut control_rng)).map(drop);
        }
        let locality = crate::run::locality_of(&regions[0], &worker.region);
        while !context.stop.is_stopped() {
            let started = context.timer.now_micros();
            let (operation, attempted) = self.operation(&regions, &mut session, &mut rng).await;
            let key = StatsKey { region: worker.region.clone(), operation, locality };
            crate::run::account(context, &mut session, &key, started, &attempted).await?;
            tokio::time::sleep(self.config.think_time).await;
        }
        Ok(())
    }

    async fn check(&self, context: &Context) -> Result<Verdict> {
        let mut verdict = Verdict::default();
        let mut session = context.session(&context.connector.regions()[0], DATABASE);
        verdict.violations.extend(changes::until_all_jobs_end(context, &mut session).await);
        let found = crate::run::until_answered(context, &mut session, |s| Box::pin(snapshot(s))).await?;
        self.books().judge(&found, &mut verdict);
        let regions = context.connector.regions();
        for (table, ids) in [("owners", found.owners.clone()), ("things", found.things.iter().map(|t| t.0).collect())] {
            if let Some(by_region) = changes::ids_by_region(context, &mut session, table, &regions).await? {
                judge::check_homes(table, ids, by_region, &mut verdict);
            }
        }
        Ok(verdict)
    }
}
