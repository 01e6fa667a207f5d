//! Unique inserts: every name is wanted by all clients at about the same time, and one of them gets
//! it.
//!
//! Half of the names are fought over by primary key, half by a secondary unique index. At the end:
//!
//! * whoever was told «inserted» owns the name; nobody else does;
//! * whoever was told «taken» (23505) was told the truth: somebody has the name;
//! * a name never has two owners;
//! * whoever gave a name back that nobody else wants, and was told so, may take it again at once,
//!   from any region: «taken» would rest on what an old replica shows.

use crate::client::Value;
use crate::run::{Context, Progress, Verdict, Worker, Workload};
use crate::schema;
use crate::session::{Attempted, Session};
use crate::stats::{Locality, StatsKey};
use async_trait::async_trait;
use meridian_base::Result;
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

/// The database it works in.
pub const DATABASE: &str = "names";
const REST: Duration = Duration::from_millis(50);
/// Share of what clients of other regions do that is giving a name back and taking it again.
const TAKE_AGAIN_SHARE: f64 = 0.2;

/// The shape of the contest.
#[derive(Clone, Debug)]
pub struct InsertsConfig {
    /// How far clients may be apart: a client tries a name among the newest so many.
    pub window: i64,
    /// Pause between two operations of a worker.
    pub think_time: Duration,
}

impl Default for InsertsConfig {
    fn default() -> InsertsConfig {
        InsertsConfig { window: 3, think_time: Duration::ZERO }
    }
}

/// The workload.
pub struct Inserts {
    config: InsertsConfig,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    newest: i64,
    next_owner: i64,
    /// Per name: what each attempt's owner was told.
    attempts: BTreeMap<i64, Vec<(i64, Told)>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Inserted,
    Taken,
    /// «Taken», of a name that nobody had.
    TakenFromNobody,
    Refused,
    Nothing,
}

impl Inserts {
    /// A contest that nobody has entered yet.
    pub fn new(config: InsertsConfig) -> Inserts {
        assert!(config.window > 0);
        Inserts { config, state: Mutex::default() }
    }

    fn draw(&self, rng: &mut impl Rng) -> (i64, i64) {
        let mut state = self.state.lock().expect("no panic while drawing");
        if rng.random_bool(0.4) {
            state.newest += 1;
        }
        state.next_owner += 1;
        let name = (state.newest - rng.random_range(0..self.config.window)).max(0);
        (name, state.next_owner)
    }

    /// An owner, and a name that nobody else will ask for.
    fn draw_own(&self) -> (i64, i64) {
        let mut state = self.state.lock().expect("no panic while drawing");
        state.next_owner += 1;
        (-state.next_owner, state.next_owner)
    }

    /// Takes a name of its own and gives it back, both in the region where the tables are, and
    /// takes it again from elsewhere.
    async fn take_again(&self, at_home: &mut Session, elsewhere: &mut Session, rng: &mut SmallRng) -> Attempted<()> {
        let (name, owner) = self.draw_own();
        let table = table_of(name);
        let insert = format!("INSERT INTO {table} (name, owner) VALUES ($1, $2)");
        let row: [Value; 2] = [name.into(), owner.into()];
        let delete = format!("DELETE FROM {table} WHERE name = $1");
        for (sql, params) in [(&insert, &row[..]), (&delete, &row[..1])] {
            let attempted = at_home.single(rng, sql, params).await.map(|_| ());
            if !matches!(attempted, Attempted::Committed(())) {
                self.note(name, owner, Told::Nothing);
                return attempted;
            }
        }
        let attempted = elsewhere.single(rng, &insert, &row).await.map(|_| ());
        let told = match &attempted {
            Attempted::Committed(()) => Told::Inserted,
            Attempted::Failed(error) if error.sqlstate() == "23505" => Told::TakenFromNobody,
            Attempted::Failed(_) => Told::Refused,
            Attempted::Unknown(..) => Told::Nothing,
        };
        self.note(name, owner, told);
        attempted
    }

    fn note(&self, name: i64, owner: i64, told: Told) {
        let mut state = self.state.lock().expect("no panic while noting");
        state.attempts.entry(name).or_default().push((owner, told));
    }

    fn judge(&self, owners: &BTreeMap<i64, Vec<i64>>, verdict: &mut Verdict) {
        let state = self.state.lock().expect("no panic while judging");
        for (name, attempts) in &state.attempts {
            let of_name = owners.get(name).map(Vec::as_slice).unwrap_or_default();
            verdict.expect(of_name.len() <= 1, || format!("name {name} has {} owners: {of_name:?}", of_name.len()));
            for (owner, told) in attempts {
                let owns = of_name.contains(owner);
                match told {
                    Told::Inserted => {
                        verdict.expect(owns, || format!("name {name}: {owner} was told «inserted», but {of_name:?} has it"))
                    }
                    Told::Taken => {
                        verdict.expect(!of_name.is_empty(), || format!("name {name}: {owner} was told «taken» by nobody"));
                        verdict.expect(!owns, || format!("name {name}: {owner} was told «taken», but has it"));
                    }
                    Told::TakenFromNobody => verdict.expect(false, || {
                        format!("name {name}: {owner} was told «taken» after it had given it back, and nobody else wants it")
                    }),
                    Told::Refused => verdict.expect(!owns, || format!("name {name}: {owner} was refused, but has it")),
                    Told::Nothing => {}
                }
            }
        }
        for name in owners.keys() {
            verdict.expect(state.attempts.contains_key(name), || format!("nobody asked for name {name}"));
        }
    }
}

#[async_trait]
impl Workload for Inserts {
    fn name(&self) -> &'static str {
        "inserts"
    }

    async fn setup(&self, context: &Context, progress: &(dyn Fn(Progress) + Send + Sync)) -> Result<()> {
        schema::create_database(context, DATABASE).await?;
        let home = &context.connector.regions()[0];
        let locality = schema::locality(&*context.connector, home);
        let tables = [
            format!("CREATE TABLE by_key (name INT8 PRIMARY KEY, owner INT8 NOT NULL){locality}"),
            format!("CREATE TABLE by_index (owner INT8 PRIMARY KEY, name INT8 NOT NULL UNIQUE){locality}"),
        ];
        schema::run_all(&mut context.session(home, DATABASE), &tables).await?;
        progress(Progress { rows_done: 1, rows_total: 1 });
        Ok(())
    }

    async fn worker(&self, context: &Context, worker: Worker) -> Result<()> {
        let mut rng = context.rng(u64::from(worker.id) + 1);
        let mut session = context.session(&worker.region, DATABASE);
        let home = &context.connector.regions()[0];
        let locality = crate::run::locality_of(home, &worker.region);
        let mut at_home = context.session(home, DATABASE);
        while !context.stop.is_stopped() {
            if locality == Locality::Other && rng.random_bool(TAKE_AGAIN_SHARE) {
                let started = context.timer.now_micros();
                let attempted = self.take_again(&mut at_home, &mut session, &mut rng).await;
                let retries = at_home.take_retries() + session.take_retries();
                let key = StatsKey { region: worker.region.clone(), operation: "take again", locality };
                match attempted {
                    Attempted::Committed(()) => {
                        context.stats.success(&key, Duration::from_micros(context.timer.now_micros() - started), retries);
                    }
                    Attempted::Failed(error) => {
                        context.stats.failure(&key, retries);
                        crate::run::rest_after(&error, REST).await?;
                    }
                    Attempted::Unknown(..) => {
                        context.stats.unknown(&key, retries);
                        tokio::time::sleep(REST).await;
                    }
                }
                continue;
            }
            let (name, owner) = self.draw(&mut rng);
            let table = table_of(name);
            let started = context.timer.now_micros();
            let sql = format!("INSERT INTO {table} (name, owner) VALUES ($1, $2)");
            let params: [Value; 2] = [name.into(), owner.into()];
            let attempted = session.single(&mut rng, &sql, &params).await;
            let retries = session.take_retries();
            let key = StatsKey { region: worker.region.clone(), operation: "insert", locality };
            match attempted {
                Attempted::Committed(_) => {
                    self.note(name, owner, Told::Inserted);
                    context.stats.success(&key, Duration::from_micros(context.timer.now_micros() - started), retries);
                }
                Attempted::Failed(error) if error.sqlstate() == "23505" => {
                    self.note(name, owner, Told::Taken);
                    context.stats.success(&key, Duration::from_micros(context.timer.now_micros() - started), retries);
                }
                Attempted::Failed(error) => {
                    self.note(name, owner, Told::Refused);
                    context.stats.failure(&key, retries);
                    crate::run::rest_after(&error, REST).await?;
                }
                Attempted::Unknown(..) => {
                    self.note(name, owner, Told::Nothing);
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
        let mut session = context.session(&context.connector.regions()[0], DATABASE);
        let mut owners: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        for table in ["by_key", "by_index"] {
            let rows = crate::run::until_answered(context, &mut session, |statements| {
                let sql = format!("SELECT name, owner FROM {table}");
                Box::pin(async move { statements.query(&sql, &[]).await })
            })
            .await?;
            for row in 0..rows.rows.len() {
                owners.entry(rows.int(row, 0)?).or_default().push(rows.int(row, 1)?);
            }
        }
        let mut verdict = Verdict::default();
        self.judge(&owners, &mut verdict);
        Ok(verdict)
    }
}

fn table_of(name: i64) -> &'static str {
    if name % 2 == 0 { "by_key" } else { "by_index" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(attempts: &[(i64, i64, Told)], owners: &[(i64, i64)]) -> Vec<String> {
        let contest = Inserts::new(InsertsConfig::default());
        attempts.iter().for_each(|(name, owner, told)| contest.note(*name, *owner, *told));
        let mut by_name: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        owners.iter().for_each(|(name, owner)| by_name.entry(*name).or_default().push(*owner));
        let mut verdict = Verdict::default();
        contest.judge(&by_name, &mut verdict);
        verdict.violations
    }

    #[test]
    fn a_fair_contest_passes() {
        let attempts = [(1, 10, Told::Inserted), (1, 11, Told::Taken), (2, 12, Told::Nothing), (3, 13, Told::Refused)];
        assert_eq!(judged(&attempts, &[(1, 10), (2, 12)]), Vec::<String>::new());
        assert_eq!(judged(&attempts, &[(1, 10)]), Vec::<String>::new());
    }

    #[test]
    fn every_way_to_cheat_is_found() {
        let told = |told| vec![(1, 10, told)];
        assert_eq!(judged(&told(Told::Inserted), &[]).len(), 1, "lost");
        assert_eq!(judged(&told(Told::Inserted), &[(1, 10), (1, 11)]).len(), 1, "two owners");
        assert_eq!(judged(&told(Told::Taken), &[]).len(), 1, "false duplicate");
        assert_eq!(judged(&told(Told::Taken), &[(1, 10)]).len(), 1, "duplicate of itself");
        assert_eq!(judged(&told(Told::TakenFromNobody), &[]).len(), 1, "an old duplicate");
        assert_eq!(judged(&told(Told::Refused), &[(1, 10)]).len(), 1, "refused, but there");
        assert_eq!(judged(&[], &[(1, 10)]).len(), 1, "from nowhere");
    }
}
