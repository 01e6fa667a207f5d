//! Jobs that are gone on with, paused, resumed, cancelled and taken back, on the in-memory
//! environment.

use super::*;
use crate::catalog::MoveState;
use crate::session::{Session, SessionOptions, adopt};
use crate::testing::MemEnvironment;
use meridian_base::NodeId;

/// No node of the environment: whoever runs there is dead.
const DEAD: NodeId = NodeId(99);

struct Bench {
    env: MemEnvironment,
    session: Session<MemEnvironment>,
}

impl Bench {
    /// A table with a thousand rows, `b` unique but for one pair.
    async fn new() -> Bench {
        let env = MemEnvironment::new(&["us-east1", "europe-west1"]);
        let options =
            SessionOptions { id: SessionId(1), user: "root".into(), database: "postgres".into(), ..SessionOptions::default() };
        let session = Session::new(env.clone(), options, env.shared()).expect("a session");
        let mut bench = Bench { env, session };
        bench.run("create table t (a int8 primary key, b int8, c int8)").await;
        bench.run("insert into t select g, g, g % 999 from generate_series(1, 1000) as s(g)").await;
        bench
    }
    async fn run(&mut self, sql: &str) -> Vec<Vec<Option<String>>> {
        self.try_run(sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"))
    }
    async fn try_run(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>> {
        Ok(self.session.query_text(sql).await?.pop().map(|r| r.rows).unwrap_or_default())
    }
    /// Takes the first step of a statement and leaves its job to `node`.
    async fn begin(&self, sql: &str, node: NodeId, state: JobState) -> DescriptorId {
        let statement = crate::parse::parse(sql).expect("a statement").remove(0);
        let catalog = self.env.catalog();
        let context = self.session.job_context(sql);
        let nodes = self.env.nodes();
        let none = BTreeSet::new();
        let ddl = DdlContext {
            names: &context.names,
            gateway_region: "us-east1",
            nodes: &nodes,
            private: &none,
            jobs: &[],
            eval: &context.eval,
        };
        let Ddl { mut change, jobs, .. } = crate::ddl::derive(&statement, &catalog, &ddl).expect("a schema change");
        let id = DescriptorId(change.next_id);
        change.next_id += 1;
        let record = context.record(&self.env, &catalog, id, jobs).expect("a record");
        crate::catalog::jobs::add(&mut change, &catalog, JobRecord { node, state, ..record });
        self.env.change_catalog(catalog.version, change).await.expect("nobody else changes anything");
        id
    }
    fn job(&self, id: DescriptorId) -> JobRecord {
        self.env.catalog().job(id).expect("a job that is known").clone()
    }
    async fn ended(&self, id: DescriptorId) -> JobRecord {
        let adopting = tokio::spawn(adopt(self.env.clone(), self.env.shared()));
        for _ in 0..10_000 {
            if self.job(id).state.has_ended() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        adopting.abort();
        self.job(id)
    }
    fn index(&self, name: &str) -> Option<IndexState> {
        let catalog = self.env.catalog();
        let table = catalog.descriptors.values().find_map(|d| match &**d {
            Descriptor::Table(t) if t.name == "t" => Some(t.clone()),
            _ => None,
        })?;
        table.indexes.iter().find(|i| i.name == name).map(|i| i.state)
    }
    /// How many rows an index gives: what it holds is what a scan of the table finds.
    async fn count_by(&mut self, column: &str) -> String {
        let rows = self.run(&format!("select count(*) from t where {column} >= 0")).await;
        rows[0][0].clone().expect("a count")
    }
}

#[tokio::test]
async fn a_statement_leaves_the_record_of_its_job() {
    let mut b = Bench::new().await;
    b.run("create unique index by_b on t (b)").await;
    let job = b.env.catalog().jobs().last().expect("a job").clone();
    assert_eq!((job.state, job.statement.as_str()), (JobState::Succeeded, "create unique index by_b on t (b)"));
    assert_eq!((crate::show::progress::fraction(&b.env.catalog(), &job, &[]), job.ended.is_some()), (1.0, true));
    assert_eq!(b.index("by_b"), Some(IndexState::Public));

    let e = b.try_run("create unique index by_c on t (c)").await.expect_err("c is not unique");
    assert_eq!(e.sqlstate(), "23505");
    let job = b.env.catalog().jobs().last().expect("a job").clone();
    assert_eq!((job.state, job.error.map(|e| e.sqlstate().to_string())), (JobState::Failed, Some("23505".into())));
    assert_eq!(b.index("by_c"), None);
    let shown = b.run("show jobs").await;
    let states: Vec<_> = shown.iter().map(|row| row[4].clone().expect("a state")).collect();
    assert_eq!(states[states.len() - 2..], ["succeeded", "failed"]);
}

#[tokio::test]
async fn the_jobs_of_a_dead_node_are_gone_on_with_or_taken_back() {
    let mut b = Bench::new().await;
    let good = b.begin("create unique index by_b on t (b)", DEAD, JobState::Running).await;
    assert_eq!(b.ended(good).await.state, JobState::Succeeded);
    assert_eq!(b.index("by_b"), Some(IndexState::Public));
    assert_eq!(b.count_by("b").await, "1000");
    let bad = b.begin("create unique index by_c on t (c)", DEAD, JobState::Running).await;
    assert_eq!(b.ended(bad).await.state, JobState::Failed);
    assert_eq!(b.index("by_c"), None);
    // One that was being taken back is taken back.
    let reverting = b.begin("create index again on t (b)", DEAD, JobState::Reverting).await;
    assert_eq!(b.ended(reverting).await.state, JobState::Failed);
    assert_eq!(b.index("again"), None);
    let check = b.begin("alter table t add constraint positive check (a > 0)", DEAD, JobState::Running).await;
    assert_eq!(b.ended(check).await.state, JobState::Succeeded);
    assert_eq!(b.try_run("insert into t values (-1, -1, -1)").await.expect_err("negative").sqlstate(), "23514");
}

#[tokio::test]
async fn the_job_of_a_live_node_is_left_to_it() {
    let b = Bench::new().await;
    let theirs = b.begin("create index by_b on t (b)", NodeId(2), JobState::Running).await;
    let adopting = tokio::spawn(adopt(b.env.clone(), b.env.shared()));
    tokio::time::sleep(Duration::from_secs(5)).await;
    adopting.abort();
    assert_eq!((b.job(theirs).state, b.job(theirs).node), (JobState::Running, NodeId(2)));
    assert_eq!(b.index("by_b"), Some(IndexState::DeleteOnly));
}

#[tokio::test]
async fn jobs_are_paused_resumed_and_cancelled() {
    let mut b = Bench::new().await;
    let id = b.begin("create index by_b on t (b)", NodeId(2), JobState::Running).await;
    b.run(&format!("pause job {}", id.0)).await;
    assert_eq!(b.job(id).state, JobState::Paused);
    b.run(&format!("resume job {}", id.0)).await;
    assert_eq!(b.ended(id).await.state, JobState::Succeeded);
    assert_eq!(b.index("by_b"), Some(IndexState::Public));
    let refused = b.try_run(&format!("cancel job {}", id.0)).await.expect_err("it has ended");
    assert_eq!(
        (refused.sqlstate(), refused.message()),
        ("55000", format!("job {} is succeeded and cannot be canceled", id.0).as_str())
    );

    let id = b.begin("create index by_c on t (c)", NodeId(2), JobState::Paused).await;
    b.run(&format!("cancel job {}", id.0)).await;
    let job = b.ended(id).await;
    assert_eq!(
        (job.state, job.error.map(|e| e.message().to_string())),
        (JobState::Canceled, Some("job canceled by user".into()))
    );
    assert_eq!(b.index("by_c"), None);
    assert_eq!(b.try_run("resume job 4000000").await.expect_err("none").sqlstate(), "42704");
}

/// Once the new homes are read there is nothing to take back: canceled, the old ones would be left
/// as they are.
#[tokio::test]
async fn a_move_is_not_cancelled_when_the_new_homes_are_read() {
    let mut b = Bench::new().await;
    b.run("alter database postgres set primary region \"us-east1\"").await;
    b.run("alter database postgres add region \"europe-west1\"").await;
    let id = b.begin("alter table t set locality regional by table in \"europe-west1\"", NodeId(2), JobState::Running).await;
    b.run(&format!("pause job {}", id.0)).await;
    let Job::Move { table, .. } = b.job(id).tasks[0] else { panic!("a move") };
    // As its node has come.
    let context = b.session.job_context("");
    step(&b.env, &context, table, |t| move_table::set_state(t, MoveState::WriteOnly)).await.expect("a step");
    move_table::copy(&b.env, table, &context).await.expect("copied");
    step(&b.env, &context, table, move_table::exchange).await.expect("a step");

    let refused = b.try_run(&format!("cancel job {}", id.0)).await.expect_err("it is made");
    assert_eq!((refused.sqlstate(), b.job(id).state), ("55000", JobState::Paused));
    b.run("insert into t values (2001, 2001, 0)").await;
    b.run(&format!("resume job {}", id.0)).await;
    assert_eq!(b.ended(id).await.state, JobState::Succeeded);
    assert_eq!(b.count_by("b").await, "1001");
    let locality = b.run("show locality from table t").await;
    assert!(locality[0][1].as_deref().is_some_and(|l| l.contains("europe-west1")), "{locality:?}");
}

/// A statement that fails has added nothing, whoever saw its columns for a moment.
#[tokio::test]
async fn columns_go_with_the_constraints_that_fail() {
    let mut b = Bench::new().await;
    for (add, sqlstate) in [
        ("add column g int unique default 1", "23505"),
        ("add column h int default 5 check (h > 9)", "23514"),
        ("add column i int8 default 5000 references t (a)", "23503"),
        ("add column m int default 3, add constraint mm check (m > 5)", "23514"),
    ] {
        let add = format!("alter table t {add}");
        assert_eq!(b.try_run(&add).await.expect_err("refused").sqlstate(), sqlstate, "{add}");
        assert_eq!(b.run("select * from t where a = 7").await[0].len(), 3, "{add}");
    }
    b.run("alter table t add column g int default 1 check (g < 9), add column h int unique").await;
    assert_eq!(b.run("select g, h from t where a = 7").await, [[Some("1".to_string()), None]]);
    assert_eq!(b.try_run("update t set g = 10").await.expect_err("checked").sqlstate(), "23514");
}

#[tokio::test]
async fn a_node_that_lost_its_job_changes_nothing_any_more() {
    let b = Bench::new().await;
    let id = b.begin("create index by_b on t (b)", NodeId(2), JobState::Running).await;
    let context = JobContext { job: Some((id, JobState::Running)), ..b.session.job_context("") };
    let task = b.job(id).tasks[0].clone();
    assert!(run_one(&b.env, &task, &context).await.is_err());
    assert!(undo(&b.env, &task, &context).await.is_err());
    assert_eq!(b.index("by_b"), Some(IndexState::DeleteOnly));
}

/// What of the columns that a statement adds is there: (state of each, whether its sequence is).
fn added(b: &Bench) -> (Vec<ColumnState>, bool) {
    let catalog = b.env.catalog();
    let table = catalog.descriptors.values().find_map(|d| match &**d {
        Descriptor::Table(t) if t.name == "t" => Some(t.clone()),
        _ => None,
    });
    let states = table.expect("the table").columns.iter().skip(3).map(|c| c.state).collect();
    (states, catalog.descriptors.values().any(|d| matches!(&**d, Descriptor::Sequence(_))))
}

const ADD_COLUMNS: &str = "alter table t add column n serial unique, add column twice int8 generated always as (b * 2) stored \
     not null check (twice > 0)";

#[tokio::test]
async fn columns_are_added_whatever_step_their_node_dies_in() {
    let tasks = Bench::new().await.begin_and_look(ADD_COLUMNS).await;
    let names: Vec<&str> = tasks.iter().map(|t| t.split_once(' ').expect("a name").0).collect();
    assert_eq!(names, ["FillColumns", "BuildIndex", "ValidateCheck", "ShowColumns"]);
    for done in 0..=tasks.len() {
        let mut b = Bench::new().await;
        let me = b.env.locality().node;
        let id = b.begin(ADD_COLUMNS, me, JobState::Running).await;
        let context = JobContext { job: Some((id, JobState::Running)), ..b.session.job_context("") };
        for at in 0..done {
            let task = b.job(id).tasks[at].clone();
            run_one(&b.env, &task, &context.now(&b.env.catalog())).await.expect("a task");
            let row = 10_000 + at;
            b.run(&format!("insert into t values ({row}, {row}, 0); update t set b = b + 1 where a = {}", at + 1)).await;
        }
        // Dead, and taken for dead: whoever goes on does so alone.
        if done < tasks.len() {
            put_record(&b.env, id, |job| Some(JobRecord { node: DEAD, ..job.clone() })).await.expect("a step");
        }
        assert_eq!(b.ended(id).await.state, JobState::Succeeded, "after {done} tasks");
        assert_eq!(added(&b), (vec![ColumnState::Public; 2], true));
        let wrong = "select count(*) from t where twice is distinct from b * 2 or n is null";
        assert_eq!(b.run(wrong).await, [[Some("0".to_string())]], "after {done} tasks");
        let whole = b.run("select count(distinct n) = count(*), count(*) from t").await;
        assert_eq!(whole, [[Some("t".to_string()), Some((1_000 + done).to_string())]], "after {done} tasks");
    }
}

#[tokio::test]
async fn columns_that_cannot_be_added_go_with_their_sequences() {
    let mut b = Bench::new().await;
    let add = "alter table t add column n serial, add column q int8 generated always as (1000 / (b - 700)) stored";
    for (node, state) in [(DEAD, JobState::Running), (DEAD, JobState::Reverting)] {
        let id = b.begin(add, node, state).await;
        assert_eq!(b.ended(id).await.state, JobState::Failed);
        let (states, has_sequence) = added(&b);
        assert!(states.iter().all(|s| *s == ColumnState::Dropped) && !has_sequence, "{states:?} {has_sequence}");
    }
    assert_eq!(b.try_run(add).await.expect_err("a division by zero").sqlstate(), "22012");
    b.run("insert into t values (2001, 700, 700)").await;
    assert_eq!(b.run("select * from t where a = 700").await.len(), 1);
    assert_eq!(b.run("select * from t where a = 700").await[0].len(), 3);
    let add = "alter table t add column n serial, add column u int8 generated always as (c) stored unique";
    assert_eq!(b.try_run(add).await.expect_err("a duplicate").sqlstate(), "23505");
    assert!(added(&b).0.iter().all(|s| *s == ColumnState::Dropped) && !added(&b).1);
    // None of it is in the way of the next.
    b.run("alter table t add column n serial").await;
    assert_eq!(b.run("select count(distinct n) from t").await, [[Some("1001".to_string())]]);
}

#[tokio::test]
async fn the_adding_of_columns_is_paused_resumed_and_cancelled() {
    let mut b = Bench::new().await;
    let id = b.begin(ADD_COLUMNS, NodeId(2), JobState::Running).await;
    b.run(&format!("pause job {}", id.0)).await;
    b.run("insert into t values (2001, 2001, 0); update t set b = 5000 where a = 7; delete from t where a = 8").await;
    assert_eq!(b.try_run("select n from t").await.expect_err("nobody sees it").sqlstate(), "42703");
    let shown = b.run("show jobs").await;
    assert_eq!(shown.last().expect("a job")[4].as_deref(), Some("paused"));
    b.run(&format!("resume job {}", id.0)).await;
    assert_eq!(b.ended(id).await.state, JobState::Succeeded);
    let found = b.run("select count(*), count(distinct n), sum(twice - b * 2) from t").await;
    assert_eq!(found, [["1000", "1000", "0"].map(|v| Some(v.to_string()))]);

    let add = "alter table t add column other serial";
    let id = b.begin(add, NodeId(2), JobState::Paused).await;
    b.run("insert into t (a, b) values (3001, 3001)").await;
    b.run(&format!("cancel job {}", id.0)).await;
    assert_eq!(b.ended(id).await.state, JobState::Canceled);
    assert_eq!(added(&b).0[2..], [ColumnState::Dropped]);
    b.run(add).await;
    assert_eq!(b.run("select count(distinct other) from t").await, [[Some("1001".to_string())]]);
}

impl Bench {
    /// The tasks of a statement.
    async fn begin_and_look(&self, sql: &str) -> Vec<String> {
        let id = self.begin(sql, NodeId(2), JobState::Paused).await;
        self.job(id).tasks.iter().map(|task| format!("{task:?}")).collect()
    }
}

/// A table whose number becomes an escrow column and ceases to be one, and one with the same rows
/// whose number stays plain.
struct Twins {
    bench: Bench,
    round: i64,
}

impl Twins {
    async fn new() -> Twins {
        let mut bench = Bench::new().await;
        for name in ["split", "plain"] {
            bench
                .run(&format!("create table {name} (k int8 primary key, used int8 not null, most int8 not null, note text)"))
                .await;
            bench.run(&format!("alter table {name} add constraint within_{name} check (used >= 0 and used <= most)")).await;
            bench
                .run(&format!("insert into {name} select g, g % 7, 100, 'as it was' from generate_series(1, 1500) as s(g)"))
                .await;
        }
        Twins { bench, round: 0 }
    }

    /// The same changes of both.
    async fn change(&mut self) {
        self.round += 1;
        let n = self.round;
        for name in ["split", "plain"] {
            for sql in [
                format!("insert into {name} values ({}, {n}, 50, 'new')", 2_000 + n),
                format!("update {name} set used = used + 1 where k % 11 = {n} % 11"),
                format!("update {name} set used = 9 where k % 13 = {n} % 13"),
                format!("update {name} set note = 'round {n}' where k % 17 = {n} % 17"),
                format!("update {name} set most = most + {n} where k % 19 = {n} % 19"),
                format!("update {name} set k = k + 10000 where k % 23 = {n} % 23 and k < 2000"),
                format!("delete from {name} where k % 29 = {n} % 29"),
                format!(
                    "insert into {name} values ({0}, {0}, 50, 'again') on conflict (k) do update set used = {name}.used + 2",
                    n
                ),
            ] {
                self.bench.run(&sql).await;
            }
            let e = self.bench.try_run(&format!("update {name} set used = most + 1 where k = {}", 2_000 + n)).await;
            assert_eq!(e.expect_err("outside").sqlstate(), "23514");
        }
        self.are_alike().await;
    }

    async fn are_alike(&mut self) {
        let [split, plain] = ["split", "plain"].map(|name| format!("select k, used, most, note from {name} order by k"));
        assert_eq!(self.bench.run(&split).await, self.bench.run(&plain).await);
    }

    fn table(&self) -> Table {
        let catalog = self.bench.env.catalog();
        let found = catalog.descriptors.values().find_map(|d| match &**d {
            Descriptor::Table(t) if t.name == "split" => Some(t.clone()),
            _ => None,
        });
        found.expect("a table")
    }

    async fn alter(&mut self, change: impl Fn(&mut Table)) {
        let mut table = self.table();
        change(&mut table);
        let catalog = self.bench.env.catalog();
        self.bench.env.change_catalog(catalog.version, changed(&catalog, table)).await.expect("nobody else changes anything");
    }

    fn states(&self) -> (usize, usize) {
        let table = self.table();
        (table.escrow.len(), table.shadows.len())
    }

    async fn go_on(&mut self, job: DescriptorId) -> JobState {
        self.bench.run(&format!("pause job {}", job.0)).await;
        self.bench.run(&format!("resume job {}", job.0)).await;
        self.bench.ended(job).await.state
    }
}

const ON: &str = "alter table split alter column used set escrow";
const OFF: &str = "alter table split alter column used drop escrow";

#[tokio::test]
async fn rows_change_while_a_column_is_split_and_joined() {
    let mut t = Twins::new().await;
    let on = t.bench.begin(ON, NodeId(2), JobState::Running).await;
    t.change().await;
    t.alter(|t| t.shadows[0].is_written = true).await;
    t.change().await;
    t.change().await;
    assert_eq!((t.states(), t.go_on(on).await, t.states()), ((0, 1), JobState::Succeeded, (1, 0)));
    t.change().await;
    // As it is just before it is an escrow column, and just after it was one.
    t.alter(|t| t.escrow[0].in_rows = true).await;
    t.change().await;
    t.alter(|t| t.escrow[0].in_rows = false).await;
    t.change().await;
    let off = t.bench.begin(OFF, NodeId(2), JobState::Running).await;
    t.change().await;
    assert_eq!((t.go_on(off).await, t.states()), (JobState::Succeeded, (0, 0)));
    t.change().await;
    // What the rows said before has no part in it.
    t.bench.run(ON).await;
    t.change().await;
}

#[tokio::test]
async fn a_split_and_a_join_are_taken_back() {
    let mut t = Twins::new().await;
    let on = t.bench.begin(ON, DEAD, JobState::Reverting).await;
    t.change().await;
    t.alter(|t| t.shadows[0].is_written = true).await;
    t.change().await;
    assert_eq!((t.bench.ended(on).await.state, t.states()), (JobState::Failed, (0, 0)));
    t.change().await;
    t.bench.run(ON).await;
    t.change().await;
    let off = t.bench.begin(OFF, DEAD, JobState::Reverting).await;
    t.change().await;
    assert_eq!((t.bench.ended(off).await.state, t.states()), (JobState::Failed, (1, 0)));
    t.change().await;
}
