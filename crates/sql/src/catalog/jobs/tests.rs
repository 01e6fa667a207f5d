//! Jobs that are gone on with, paused, resumed, cancelled and taken back, on the in-memory environment.

use super::*;
use crate::session::{Session, SessionOptions};
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
        let ddl =
            DdlContext { names: &context.names, gateway_region: "us-east1", nodes: &nodes, private: &none, eval: &context.eval };
        let Ddl { mut change, jobs, .. } = crate::catalog::ddl::derive(&statement, &catalog, &ddl).expect("a schema change");
        let id = DescriptorId(change.next_id);
        change.next_id += 1;
        let record = context.record(&self.env, &catalog, id, jobs).expect("a record");
        record::add(&mut change, &catalog, JobRecord { node, state, ..record });
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
    assert_eq!((job.fraction(), job.ended.is_some()), (1.0, true));
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

#[tokio::test]
async fn what_is_dropped_is_deleted_by_a_job_that_may_end_elsewhere() {
    let mut b = Bench::new().await;
    let before = b.env.key_count();
    let id = b.begin("drop table t", DEAD, JobState::Running).await;
    assert_eq!(b.env.key_count(), before);
    assert_eq!(b.ended(id).await.state, JobState::Succeeded);
    assert_eq!(b.env.key_count(), 0);
    b.run("create table t (a int8)").await;
}
