//! Schema changes under load, judged by real time.
//!
//! One worker drops a column and adds it again, creates and drops an index, and so on; the others
//! use the column and the index all the while. A schema change that was acknowledged holds for
//! everything that begins later:
//!
//! * a statement that names the column succeeds only if at some moment while it ran the column may
//!   have been there, and fails with 42703 only if at some moment it may not have been;
//! * what was inserted is found by way of an index as surely as by reading the whole table, however
//!   the index came to be.
//!
//! Nobody else changes the schema, so «it exists already» is a lie unless an attempt before it
//! ended without an answer.
//!
//! The column comes and goes in transactions that also change a row of another table, which says
//! whether it is there: nobody may find one without the other.

use crate::client::Value;
use crate::run::{Context, Progress, Verdict, Worker, Workload};
use crate::schema;
use crate::session::{Attempted, Session, Statements, is_outcome_unknown, is_retryable};
use crate::stats::StatsKey;
use async_trait::async_trait;
use meridian_base::Result;
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

const DATABASE: &str = "steps";
/// Values of the indexed column.
const GROUPS: i64 = 5;
/// One row says whether the column is there.
const PRESENT: &str = "SELECT extra FROM present WHERE id = 1";
const INSERT: &str = "INSERT INTO stock (id, grp) VALUES ($1, $2)";

/// The shape of the workload.
#[derive(Clone, Debug)]
pub struct SchemaStepsConfig {
    /// Pause between two schema changes.
    pub change_pause: Duration,
    /// Pause between two operations of a worker.
    pub think_time: Duration,
    /// Some transactions stay open for up to this long before they commit.
    pub pause_max: Duration,
}

impl Default for SchemaStepsConfig {
    fn default() -> SchemaStepsConfig {
        SchemaStepsConfig { change_pause: Duration::from_millis(200), think_time: Duration::ZERO, pause_max: Duration::ZERO }
    }
}

/// The workload.
pub struct SchemaSteps {
    config: SchemaStepsConfig,
    next_id: AtomicI64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// When the column began to be there or not, as far as the one who changes it knows:
    /// `Some(known)` from the acknowledgement of a change on, `None` from the sending of one on.
    column: Vec<(u64, Option<bool>)>,
    uses: Vec<Use>,
    /// What the index did not show although the table did, and columns without their row, as
    /// sentences.
    missing: Vec<String>,
    inserted: BTreeSet<i64>,
    refused: BTreeSet<i64>,
    changes: u64,
}

/// A statement that named the column, and whether it was told that there is no such column.
#[derive(Clone, Copy, Debug)]
struct Use {
    invoked: u64,
    completed: u64,
    found_column: bool,
}

impl State {
    /// Whether the column's presence over a stretch of time was certainly this.
    fn certainly(&self, present: bool, from: u64, to: u64) -> bool {
        let after = self.column.partition_point(|(time, _)| *time < from);
        let at_start = after.checked_sub(1).map(|i| self.column[i].1);
        let during = self.column[after..].iter().take_while(|(time, _)| *time <= to).map(|(_, known)| *known);
        at_start.into_iter().chain(during).all(|known| known == Some(present)) && at_start.is_some()
    }

    fn judge(&self, rows: &BTreeMap<i64, i64>, verdict: &mut Verdict) {
        for used in &self.uses {
            let impossible = self.certainly(!used.found_column, used.invoked, used.completed);
            let what = if used.found_column { "used a column that had been dropped" } else { "missed a column that is there" };
            verdict.expect(!impossible, || format!("a statement from {} to {} µs {what}", used.invoked, used.completed));
        }
        verdict.violations.extend(self.missing.iter().cloned());
        for id in &self.inserted {
            verdict.expect(rows.contains_key(id), || format!("row {id} was acknowledged and is lost"));
        }
        for id in &self.refused {
            verdict.expect(!rows.contains_key(id), || format!("row {id} was refused, but is there"));
        }
    }
}

impl SchemaSteps {
    /// Steps that nobody has made yet.
    pub fn new(config: SchemaStepsConfig) -> SchemaSteps {
        SchemaSteps { config, next_id: AtomicI64::new(1), state: Mutex::default() }
    }
    /// How many schema changes were acknowledged.
    pub fn changes(&self) -> u64 {
        self.lock().changes
    }
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no panic while noting")
    }

    /// One schema change, tried until it is acknowledged or the run ends. While it is tried,
    /// nothing is known.
    async fn change(&self, context: &Context, session: &mut Session, rng: &mut SmallRng, sql: &str, column: Option<bool>) {
        if column.is_some() {
            self.lock().column.push((context.timer.now_micros(), None));
        }
        let mut is_in_doubt = false;
        while !context.stop.is_stopped() {
            let result = match column {
                None => session.execute(sql).await.map(|_| ()),
                Some(is_there) => change_both(session, rng, sql, is_there).await,
            };
            let done = match result {
                Ok(()) => true,
                // 42701 and 42P07 exist already, 42703 and 42704 are gone: by an attempt of which
                // nobody could say what became of it.
                Err(error) if matches!(error.sqlstate(), "42701" | "42703" | "42704" | "42P07") => {
                    if !is_in_doubt {
                        let now = context.timer.now_micros();
                        self.lock().missing.push(format!("at {now} µs, {sql}: {error}, although nobody else does that"));
                    }
                    true
                }
                Err(error) => {
                    // What an index needs after its first step may be left half done.
                    is_in_doubt |= is_outcome_unknown(&error) || (column.is_none() && !is_retryable(&error));
                    false
                }
            };
            if done {
                let mut state = self.lock();
                state.changes += 1;
                if column.is_some() {
                    state.column.push((context.timer.now_micros(), column));
                }
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn change_all(&self, context: &Context, mut session: Session, mut rng: SmallRng) -> Result<()> {
        self.lock().column.push((context.timer.now_micros(), Some(true)));
        while !context.stop.is_stopped() {
            for (sql, column) in [
                ("CREATE INDEX stock_group ON stock (grp)", None),
                ("ALTER TABLE stock DROP COLUMN extra", Some(false)),
                ("ALTER TABLE stock ADD COLUMN extra INT8", Some(true)),
                ("DROP INDEX stock_group", None),
            ] {
                self.change(context, &mut session, &mut rng, sql, column).await;
                tokio::time::sleep(self.config.change_pause).await;
            }
        }
        Ok(())
    }
}

/// A schema change and the row that tells of it, in one transaction; the row first or last.
async fn change_both(session: &mut Session, rng: &mut SmallRng, sql: &str, is_there: bool) -> Result<()> {
    let row = format!("UPDATE present SET extra = {} WHERE id = 1", u8::from(is_there));
    let both = match rng.random_bool(0.5) {
        true => [row, sql.to_string()],
        false => [sql.to_string(), row],
    };
    let changed = session.transaction(rng, |s| {
        let both = both.clone();
        Box::pin(async move {
            for sql in &both {
                s.execute(sql).await?;
            }
            Ok(())
        })
    });
    match changed.await {
        Attempted::Committed(()) => Ok(()),
        Attempted::Failed(error) | Attempted::Unknown(error, _) => Err(error),
    }
}

/// Uses the column in a transaction that also asks whether it is there. What the row says.
async fn use_column(statements: &mut Statements<'_>, id: i64) -> Result<bool> {
    let said = statements.query(PRESENT, &[]).await?;
    statements.query("UPDATE stock SET extra = $1 WHERE id = $1", &[id.into()]).await?;
    Ok(said.int(0, 0)? == 1)
}

/// A transaction that is open while the schema changes around it.
async fn insert_slowly(statements: &mut Statements<'_>, id: i64, group: i64, pause: Duration) -> Result<()> {
    statements.query(INSERT, &[id.into(), group.into()]).await?;
    tokio::time::sleep(pause).await;
    Ok(())
}

/// The ids of one group, by its value (which an index may serve) and by reading everything.
async fn compare(statements: &mut Statements<'_>, group: i64) -> Result<(BTreeSet<i64>, BTreeSet<i64>)> {
    let found = statements.query("SELECT id FROM stock WHERE grp = $1", &[group.into()]).await?;
    let all = statements.query("SELECT id, grp FROM stock", &[]).await?;
    let by_value = (0..found.rows.len()).map(|r| found.int(r, 0)).collect::<Result<_>>()?;
    let mut by_scan = BTreeSet::new();
    for row in 0..all.rows.len() {
        if all.int(row, 1)? == group {
            by_scan.insert(all.int(row, 0)?);
        }
    }
    Ok((by_value, by_scan))
}

#[async_trait]
impl Workload for SchemaSteps {
    fn name(&self) -> &'static str {
        "schema-steps"
    }

    async fn setup(&self, context: &Context, progress: &(dyn Fn(Progress) + Send + Sync)) -> Result<()> {
        schema::create_database(context, DATABASE).await?;
        let home = &context.connector.regions()[0];
        let locality = schema::locality(&*context.connector, home);
        let table = format!("CREATE TABLE stock (id INT8 PRIMARY KEY, grp INT8 NOT NULL, extra INT8){locality}");
        let present = format!("CREATE TABLE present (id INT8 PRIMARY KEY, extra INT8 NOT NULL){locality}");
        let mut session = context.session(home, DATABASE);
        for sql in [table.as_str(), present.as_str(), "INSERT INTO present VALUES (1, 1) ON CONFLICT DO NOTHING"] {
            schema::run(&mut session, sql).await?;
        }
        progress(Progress { rows_done: 1, rows_total: 1 });
        Ok(())
    }

    async fn worker(&self, context: &Context, worker: Worker) -> Result<()> {
        let mut rng = context.rng(u64::from(worker.id) + 1);
        let mut session = context.session(&worker.region, DATABASE);
        if worker.id == 0 {
            return self.change_all(context, session, rng).await;
        }
        let locality = crate::run::locality_of(&context.connector.regions()[0], &worker.region);
        while !context.stop.is_stopped() {
            let invoked = context.timer.now_micros();
            let group = rng.random_range(0..GROUPS);
            let (operation, attempted) = match rng.random_range(0..10) {
                0..=3 => {
                    let id = self.next_id.fetch_add(1, Ordering::Relaxed);
                    let mut pause = crate::run::draw_pause(self.config.pause_max, &mut rng);
                    let inserted = match pause.is_zero() {
                        true => session.single(&mut rng, INSERT, &[id.into(), group.into()]).await.map(|_| ()),
                        false => {
                            session
                                .transaction(&mut rng, |s| Box::pin(insert_slowly(s, id, group, std::mem::take(&mut pause))))
                                .await
                        }
                    };
                    match &inserted {
                        Attempted::Committed(_) => _ = self.lock().inserted.insert(id),
                        Attempted::Failed(_) => _ = self.lock().refused.insert(id),
                        Attempted::Unknown(..) => {}
                    }
                    ("insert", inserted)
                }
                4..=7 => {
                    let id = rng.random_range(0..=self.next_id.load(Ordering::Relaxed));
                    let params: [Value; 2] = [id.into(), group.into()];
                    let used = session.single(&mut rng, "UPDATE stock SET extra = $2 WHERE id = $1", &params).await;
                    let found_column = match &used {
                        Attempted::Committed(_) => Some(true),
                        Attempted::Failed(error) if error.sqlstate() == "42703" => Some(false),
                        _ => None,
                    };
                    if let Some(found_column) = found_column {
                        let completed = context.timer.now_micros();
                        self.lock().uses.push(Use { invoked, completed, found_column });
                    }
                    let used = if found_column.is_some() { Attempted::Committed(()) } else { used.map(|_| ()) };
                    ("use column", used)
                }
                8 => {
                    let id = rng.random_range(0..=self.next_id.load(Ordering::Relaxed));
                    let used = session.transaction(&mut rng, |s| Box::pin(use_column(s, id))).await;
                    if let Attempted::Committed(false) = used {
                        self.lock().missing.push(format!("at {invoked} µs, a column was there and its row said it was not"));
                    }
                    let is_gone = matches!(&used, Attempted::Failed(error) if error.sqlstate() == "42703");
                    ("use column that is said to be there", if is_gone { Attempted::Committed(()) } else { used.map(|_| ()) })
                }
                _ => {
                    let compared = session.transaction(&mut rng, |s| Box::pin(compare(s, group))).await;
                    if let Attempted::Committed((by_value, by_scan)) = &compared
                        && by_value != by_scan
                    {
                        let differ: Vec<&i64> = by_value.symmetric_difference(by_scan).collect();
                        let what = format!("at {invoked} µs, rows of group {group} differ by index and by table: {differ:?}");
                        self.lock().missing.push(what);
                    }
                    ("compare", compared.map(|_| ()))
                }
            };
            let key = StatsKey { region: worker.region.clone(), operation, locality };
            crate::run::account(context, &mut session, &key, invoked, &attempted).await?;
            if !self.config.think_time.is_zero() {
                tokio::time::sleep(self.config.think_time).await;
            }
        }
        Ok(())
    }

    async fn check(&self, context: &Context) -> Result<Verdict> {
        let mut session = context.session(&context.connector.regions()[0], DATABASE);
        let rows = crate::run::until_answered(context, &mut session, |statements| {
            Box::pin(async move { statements.query("SELECT id, grp FROM stock", &[]).await })
        })
        .await?;
        let rows: Result<BTreeMap<i64, i64>> = (0..rows.rows.len()).map(|r| Ok((rows.int(r, 0)?, rows.int(r, 1)?))).collect();
        let columns = "SELECT p.extra, (SELECT count(*) FROM information_schema.columns WHERE table_name = 'stock' AND column_name = 'extra') FROM present p";
        // The last change may be committing now. Of a system table a statement sees the schema that
        // it was planned with, of rows what is there a moment later.
        let mut tries = if self.lock().column.last().is_some_and(|(_, known)| known.is_none()) { 10 } else { 1 };
        let (said, is_there) = loop {
            let present = crate::run::until_answered(context, &mut session, |statements| {
                Box::pin(async move { statements.query(columns, &[]).await })
            })
            .await?;
            let (said, is_there) = (present.int(0, 0)? == 1, present.int(0, 1)? == 1);
            tries -= 1;
            if said == is_there || tries == 0 {
                break (said, is_there);
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        };
        let mut verdict = Verdict::default();
        verdict.expect(said == is_there, || format!("the column is there: {is_there}; its row says {said}"));
        self.lock().judge(&rows?, &mut verdict);
        Ok(verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violations(uses: &[(u64, u64, bool)]) -> usize {
        // There until 100, in doubt until 200, gone until 300, in doubt until 400, there again.
        let column = vec![(0, Some(true)), (100, None), (200, Some(false)), (300, None), (400, Some(true))];
        let uses = uses.iter().map(|(invoked, completed, found_column)| Use {
            invoked: *invoked,
            completed: *completed,
            found_column: *found_column,
        });
        let state = State { column, uses: uses.collect(), ..State::default() };
        let mut verdict = Verdict::default();
        state.judge(&BTreeMap::new(), &mut verdict);
        verdict.violations.len()
    }

    #[test]
    fn a_statement_sees_the_column_as_it_may_have_been_while_it_ran() {
        assert_eq!(violations(&[(10, 20, true), (210, 290, false), (410, 420, true)]), 0);
        assert_eq!(violations(&[(90, 110, false), (90, 110, true), (190, 210, true), (290, 310, true)]), 0);
        assert_eq!(violations(&[(90, 500, true), (90, 500, false)]), 0);
    }

    #[test]
    fn using_a_dropped_column_or_missing_a_present_one_is_found() {
        assert_eq!(violations(&[(210, 290, true)]), 1);
        assert_eq!(violations(&[(10, 20, false)]), 1);
        assert_eq!(violations(&[(410, 900, false)]), 1);
    }

    #[test]
    fn lost_and_undead_rows_are_found() {
        let state = State { inserted: BTreeSet::from([1, 2]), refused: BTreeSet::from([3, 4]), ..State::default() };
        let mut verdict = Verdict::default();
        state.judge(&BTreeMap::from([(1, 0), (3, 0)]), &mut verdict);
        assert_eq!(verdict.violations.len(), 2);
    }
}
