//! What statements declare to have read and written: certification rests on it.

use super::*;
use crate::catalog::Catalog;
use crate::catalog::names::Names;
use crate::catalog::relation::SequenceRef;
use crate::env::{Environment, TxnOptions};
use crate::parse::parse_one_statement;
use crate::plan::{PlanContext, prepare};
use crate::session::{Session, SessionOptions};
use crate::temporary::Temporary;
use crate::testing::{MemEnvironment, MemTransaction};
use crate::types::{EvalContext, RowView};
use futures::future::BoxFuture;
use memory::MemoryPool;
use meridian_base::{ColumnMask, SessionId, Target};
use std::sync::atomic::{AtomicU64, Ordering};

struct Collect(Vec<Row>);

impl RowSink for Collect {
    fn row(&mut self, row: &[Datum], _: &[Type]) -> Result<()> {
        self.0.push(row.to_vec());
        Ok(())
    }
    fn stored(&mut self, row: &RowView, fields: &[(u32, Type)]) -> Result<()> {
        self.0.push(fields.iter().map(|(o, t)| row.datum(*o as usize, t)).collect::<Result<_>>()?);
        Ok(())
    }
    fn is_full(&self) -> bool {
        false
    }
    fn drain(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

struct NoSequences;

impl crate::catalog::sequences::Sequences for NoSequences {
    fn nextval<'a>(&'a self, _: &'a SequenceRef, _: &'a Catalog) -> BoxFuture<'a, Result<i64>> {
        Box::pin(std::future::ready(Ok(7)))
    }
    fn setval<'a>(&'a self, _: &'a SequenceRef, _: &'a Catalog, value: i64, _: bool) -> BoxFuture<'a, Result<i64>> {
        Box::pin(std::future::ready(Ok(value)))
    }
    fn currval(&self, _: meridian_base::DescriptorId) -> Result<i64> {
        Ok(7)
    }
    fn lastval(&self) -> Result<(meridian_base::DescriptorId, i64)> {
        Ok((meridian_base::DescriptorId(7), 7))
    }
    fn state<'a>(&'a self, _: &'a SequenceRef, _: &'a Catalog) -> BoxFuture<'a, Result<(i64, bool)>> {
        Box::pin(std::future::ready(Ok((7, true))))
    }
}

struct NoSystem(Arc<crate::catalog::Catalog>, Names, Option<Arc<spills::Files>>, Ticking);

/// A clock that goes on by so many microseconds with every look at it.
#[derive(Default)]
struct Ticking {
    micros: AtomicU64,
    by: u64,
}

impl crate::catalog::system::SystemContext for NoSystem {
    fn catalog(&self) -> &Arc<crate::catalog::Catalog> {
        &self.0
    }
    fn names(&self) -> &Names {
        &self.1
    }
    fn node(&self) -> crate::env::NodeLocality {
        MemEnvironment::new(&["local"]).locality()
    }
    fn nodes(&self) -> Vec<crate::env::NodeLocality> {
        Vec::new()
    }
    fn now_micros(&self) -> u64 {
        self.3.micros.fetch_add(self.3.by, Ordering::Relaxed)
    }
    fn sessions(&self) -> Vec<crate::env::SessionRow> {
        Vec::new()
    }
    fn settings(&self) -> Vec<crate::catalog::system::Setting> {
        Vec::new()
    }
    fn groups(&self) -> BoxFuture<'_, Result<Vec<crate::env::GroupRow>>> {
        Box::pin(async { Ok(Vec::new()) })
    }
    fn transactions(&self) -> BoxFuture<'_, Result<Vec<crate::env::TransactionRow>>> {
        Box::pin(async { Ok(Vec::new()) })
    }
    fn metrics(&self) -> Vec<(String, u64)> {
        Vec::new()
    }
    fn temporary(&self) -> Option<Arc<dyn Temporary>> {
        self.2.as_ref().map(spills::Files::open)
    }
}

fn block_on<F: Future>(f: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(f)
}

/// A database after some statements.
async fn after(statements: &str) -> MemEnvironment {
    after_in(&["local"], statements).await
}

/// The same in a cluster of several regions, the first one the gateway's.
async fn after_in(regions: &[&str], statements: &str) -> MemEnvironment {
    let env = MemEnvironment::new(regions);
    session(&env).query_text(statements).await.unwrap();
    env
}

fn session(env: &MemEnvironment) -> Session<MemEnvironment> {
    let options = SessionOptions { id: SessionId(1), user: "root".into(), database: "postgres".into(), ..Default::default() };
    Session::new(env.clone(), options, env.shared()).unwrap()
}

/// Runs one statement in a transaction of its own and hands both back.
async fn run_in(
    env: &MemEnvironment,
    text: &str,
    params: &[Datum],
    memory: usize,
) -> (Result<Affected>, Vec<Row>, MemTransaction) {
    run_with(env, text, params, memory, None, ExecOptions::default()).await
}

/// The same with temporary files.
async fn run_with(
    env: &MemEnvironment,
    text: &str,
    params: &[Datum],
    memory: usize,
    files: Option<Arc<spills::Files>>,
    options: ExecOptions,
) -> (Result<Affected>, Vec<Row>, MemTransaction) {
    run_on(env, text, params, memory, files, options, Machine::default()).await
}

/// What statements run on.
#[derive(Default)]
struct Machine {
    clock: Ticking,
    pool: Arc<MemoryPool>,
}

/// The same on a machine.
async fn run_on(
    env: &MemEnvironment,
    text: &str,
    params: &[Datum],
    memory: usize,
    files: Option<Arc<spills::Files>>,
    options: ExecOptions,
    machine: Machine,
) -> (Result<Affected>, Vec<Row>, MemTransaction) {
    let catalog = env.catalog();
    let (names, eval) = (Names::new("postgres", "root"), EvalContext { catalog: catalog.clone(), ..Default::default() });
    let context = PlanContext { catalog: &catalog, names: &names, eval: &eval };
    let prepared = Arc::new(prepare(&parse_one_statement(text).unwrap(), &context, &[]).unwrap());
    let mut txn = env.begin(TxnOptions {
        session: SessionId(1),
        read_only: false,
        schema: catalog.seen,
        schema_committed_at: catalog.seen_at,
        lock_timeout: None,
        deadlock_timeout: None,
        attempt: 0,
        as_of: None,
        is_held_back: false,
        is_block: false,
    });
    let system = NoSystem(catalog.clone(), names.clone(), files, machine.clock);
    let interrupt = Interrupt::default();
    let ctx = ExecContext {
        pace: Pace::default(),
        pool: &machine.pool,
        eval: &eval,
        catalog: &catalog,
        interrupt: &interrupt,
        sequences: &NoSequences,
        system: &system,
        memory_bytes_max: memory,
        options,
    };
    let mut sink = Collect(Vec::new());
    let affected = run(&prepared, params, &mut txn, &ctx, &mut sink).await;
    (affected, sink.0, txn)
}

const TABLE: &str = "create table t (id int primary key, a int, b text); create index t_a on t (a);
    insert into t select g, g % 10, 'x' || g from generate_series(1, 1000) as g;";

#[test]
fn a_point_read_reads_one_key_and_its_columns() {
    block_on(async {
        let env = after(TABLE).await;
        let (affected, rows, txn) = run_in(&env, "select b from t where id = $1", &[Datum::Int(5)], MEMORY_BYTES_MAX).await;
        assert_eq!((affected.unwrap().rows, rows), (1, vec![vec![Datum::Text("x5".into())]]));
        let [(_, Target::Key(_), columns)] = txn.reads() else { panic!("{:?}", txn.reads()) };
        // The key's own column is fixed by the key: only existence and `b` count.
        assert!(columns.intersects(ColumnMask::column(2)) && !columns.intersects(ColumnMask::column(1)));
    });
}

#[test]
fn a_limit_reads_only_as_far_as_it_needs() {
    block_on(async {
        let env = after(TABLE).await;
        let (_, rows, txn) = run_in(&env, "select id from t order by id limit 3", &[], MEMORY_BYTES_MAX).await;
        assert_eq!(rows.len(), 3);
        let (_, all, whole) = run_in(&env, "select id from t", &[], MEMORY_BYTES_MAX).await;
        assert_eq!(all.len(), 1000);
        let (Target::Range(some), Target::Range(first)) = (&txn.reads()[0].1, &whole.reads()[0].1) else { panic!() };
        assert_eq!(txn.reads().len(), 1);
        assert!(some.start == first.start && some.end < first.end);
    });
}

#[test]
fn a_statement_that_has_used_much_goes_on_elsewhere() {
    let scheduler = |name: &str| {
        let mut one = tokio::runtime::Builder::new_multi_thread();
        one.worker_threads(1).thread_name(name).thread_stack_size(16 << 20).enable_time().build().unwrap()
    };
    let (brief, long) = (scheduler("brief"), scheduler("long"));
    for (micros_of_look, expected) in [(0, "brief"), (TURN_MICROS / 100, "brief"), (TURN_MICROS, "long")] {
        let (tell, told) = std::sync::mpsc::channel();
        meridian_base::migration::spawn([brief.handle().clone(), long.handle().clone()], async move {
            let env = after(TABLE).await;
            let clock = Ticking { by: micros_of_look, ..Ticking::default() };
            let machine = Machine { clock, ..Machine::default() };
            let (text, options) = ("select b from t where a < 5", ExecOptions::default());
            let (_, rows, _) = run_on(&env, text, &[], MEMORY_BYTES_MAX, None, options, machine).await;
            assert_eq!(rows.len(), 500);
            tell.send(std::thread::current().name().map(str::to_string)).unwrap();
        });
        let ended = told.recv_timeout(std::time::Duration::from_secs(20)).expect("it ends");
        assert_eq!(ended.as_deref(), Some(expected), "{micros_of_look}");
    }
}

#[test]
fn an_update_of_one_amount_leaves_the_others_alone() {
    block_on(async {
        let env = after(
            "create table w (id int primary key, tax numeric(4,4), ytd numeric(12,2), rate float8);
             insert into w values (1, 0.1250, 300000.00, 1.5)",
        )
        .await;
        for (update, ordinals) in [
            ("update w set ytd = ytd + 1.00", vec![2]),
            ("update w set rate = rate * 2", vec![3]),
            ("update w set tax = 0.125, ytd = 1", vec![2]),
        ] {
            let (_, _, txn) = run_in(&env, update, &[], MEMORY_BYTES_MAX).await;
            let mut expected = ColumnMask::NONE;
            ordinals.iter().for_each(|o| expected |= ColumnMask::column(*o));
            let writes: Vec<ColumnMask> = txn.writes().iter().map(|(_, w)| w.columns).collect();
            assert_eq!(writes, [expected], "{update}");
        }
    });
}

#[test]
fn an_update_reads_the_row_and_writes_only_what_changed() {
    block_on(async {
        let env = after(TABLE).await;
        let (affected, _, txn) = run_in(&env, "update t set b = 'y' where id = 5", &[], MEMORY_BYTES_MAX).await;
        assert_eq!(affected.unwrap().rows, 1);
        assert_eq!(txn.reads()[0].2, ColumnMask::ALL);
        let writes: Vec<ColumnMask> = txn.writes().iter().map(|(_, w)| w.columns).collect();
        assert_eq!(writes, [ColumnMask::column(2)], "the index on a has nothing to do");
        let (_, _, txn) = run_in(&env, "update t set a = 3 where id = 5", &[], MEMORY_BYTES_MAX).await;
        let writes: Vec<(ColumnMask, bool)> = txn.writes().iter().map(|(_, w)| (w.columns, w.value.is_some())).collect();
        let moved = [(ColumnMask::column(1), true), (ColumnMask::EXISTENCE, false), (ColumnMask::EXISTENCE, true)];
        assert_eq!(writes, moved, "the row, the old entry, the new one");
        let (_, _, txn) = run_in(&env, "update t set a = a where id = 5", &[], MEMORY_BYTES_MAX).await;
        assert!(txn.writes().is_empty());
    });
}

#[test]
fn writers_of_different_rows_do_not_conflict_and_of_one_row_do() {
    block_on(async {
        let env = after(TABLE).await;
        let (_, _, one) = run_in(&env, "update t set b = 'y' where id = 5", &[], MEMORY_BYTES_MAX).await;
        let (_, _, two) = run_in(&env, "update t set b = 'z' where id = 6", &[], MEMORY_BYTES_MAX).await;
        let (_, _, same) = run_in(&env, "update t set a = 1 where id = 5", &[], MEMORY_BYTES_MAX).await;
        let (_, _, other_column) = run_in(&env, "select a from t where id = 5", &[], MEMORY_BYTES_MAX).await;
        one.commit().await.unwrap();
        two.commit().await.unwrap();
        assert!(same.commit().await.unwrap_err().is_retry());
        other_column.commit().await.unwrap();
    });
}

#[test]
fn an_absent_key_is_read_before_it_is_inserted() {
    block_on(async {
        let env = after(TABLE).await;
        let (_, _, one) = run_in(&env, "insert into t values (2000, 1, 'p')", &[], MEMORY_BYTES_MAX).await;
        let (_, _, two) = run_in(&env, "insert into t values (2000, 2, 'q')", &[], MEMORY_BYTES_MAX).await;
        one.commit().await.unwrap();
        assert!(two.commit().await.unwrap_err().is_retry());
        let (again, _, _) = run_in(&env, "insert into t values (2000, 2, 'q')", &[], MEMORY_BYTES_MAX).await;
        assert_eq!(again.unwrap_err().sqlstate(), "23505");
    });
}

#[test]
fn what_is_kept_in_memory_is_bounded() {
    block_on(async {
        let env = after(TABLE).await;
        let (sorted, _, _) = run_in(&env, "select * from t order by b", &[], 10_000).await;
        assert_eq!(sorted.unwrap_err().sqlstate(), "53200");
        let (streamed, rows, _) = run_in(&env, "select * from t order by id", &[], 10_000).await;
        assert_eq!((streamed.unwrap().rows, rows.len()), (1000, 1000));
    });
}

#[test]
fn what_the_parser_lets_through_fits_the_stack() {
    // On a stack as small as a worker's.
    let run = |text: String| {
        let start: String = text.chars().take(60).collect();
        let task = move || {
            block_on(async {
                let env = after("create table t (id int primary key)").await;
                let options =
                    SessionOptions { id: SessionId(1), user: "root".into(), database: "postgres".into(), ..Default::default() };
                let mut session = Session::new(env.clone(), options, env.shared()).unwrap();
                session.query_text(&text).await.map(|_| ()).map_err(|e| (e.sqlstate().to_string(), start, e))
            })
        };
        #[allow(clippy::disallowed_methods)] // a test of stack depth needs a stack of known size
        std::thread::Builder::new().stack_size(2 << 20).spawn(task).unwrap().join().unwrap()
    };
    let fits =
        |r: Result<(), (String, String, Error)>| assert!(r.is_ok() || matches!(&r, Err((s, _, _)) if s == "54001"), "{r:?}");
    for n in [20, 60, 100, 150, 400, 2_000] {
        fits(run(format!("select 1{}", "+1".repeat(n))));
        fits(run(format!("select id{} from t", "+id".repeat(n))));
        fits(run(format!("select {}id{} from t", "(".repeat(n), ")".repeat(n))));
        fits(run(format!("select {}id{} from t", "abs(".repeat(n), ")".repeat(n))));
        fits(run(format!("select {}1{}", "(select ".repeat(n), ")".repeat(n))));
        fits(run(format!("select * from {}t{}", "(select * from ".repeat(n), ") as x".repeat(n))));
        fits(run(format!("select 1{}", " union select 1".repeat(n))));
        fits(run(format!("select * from t where false{}", " or id = 1".repeat(n))));
        fits(run(format!("select {}1{}", "case when true then ".repeat(n), " end".repeat(n))));
        fits(run(format!("select not{} true", " not".repeat(n))));
        fits(run(format!(
            "select * from t as x0{}",
            (1..n.min(40)).map(|i| format!(" join t as x{i} using (id)")).collect::<String>()
        )));
    }
}

mod batches;
mod estimates;
mod locks;
mod spills;

mod properties {
    use super::*;
    use proptest::prelude::*;

    const PIECES: &[&str] = &[
        "select",
        "from t",
        "where",
        "(",
        ")",
        ",",
        "*",
        "+",
        "-",
        "=",
        "<",
        "'x'",
        "$1",
        "1",
        "1.5",
        "a",
        "b",
        "id",
        "t.id",
        "::int",
        "::text",
        "and",
        "or",
        "not",
        "in (1, 2)",
        "is null",
        "null",
        "case when a = 1 then 2 end",
        "insert into t values (1, 2, 'x')",
        "update t set a =",
        "delete from t",
        "join t as u on true",
        "left join t as v using (id)",
        "group by a",
        "order by 1",
        "limit 1",
        "count(*)",
        "max(a)",
        "exists (select 1)",
        "array[1, 2]",
        "[1]",
        "any",
        "between 1 and 2",
        "with x as (select 1)",
        "returning *",
        "union all select 1",
        "having true",
        "distinct",
        "over (order by a)",
        "row_number()",
        "generate_series(1, 2)",
        "coalesce(a, 1)",
        "nextval('s')",
        "lateral",
        "values (1)",
        "like 'x%'",
        "|| 'y'",
        "/ 0",
        "on conflict do nothing",
        "t",
        "sum(b)",
        "for update",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn no_statement_panics(texts in prop::collection::vec(prop::collection::vec(prop::sample::select(PIECES), 1..12), 1..20)) {
            block_on(async {
                let env = after("create table t (id int primary key, a int, b text); insert into t values (1, 2, 'x')").await;
                let options = SessionOptions { id: SessionId(1), user: "root".into(), database: "postgres".into(), ..Default::default() };
                let mut session = Session::new(env.clone(), options, env.shared()).unwrap();
                for pieces in texts {
                    let _ = session.query_text(&pieces.join(" ")).await;
                    let _ = session.query_text(&format!("select {}", pieces.join(" "))).await;
                    let _ = session.query_text(&format!("select {} from t", pieces.join(" "))).await;
                    let _ = session.query_text(&format!("select * from t where {}", pieces.join(" "))).await;
                }
            });
        }
    }
}

#[test]
fn only_the_regions_that_may_have_what_is_looked_for_are_read() {
    block_on(async {
        let statements = "alter database postgres set primary region \"local\"; alter database postgres add region \"far\";
            create table t (id int primary key, a int unique, b int) locality regional by row;
            insert into t (id, a, b, crdb_region) values (1, 1, 1, 'local'), (2, 2, 2, 'far'), (3, 3, 3, 'local')";
        let env = after_in(&["local", "far"], statements).await;
        let table = env.catalog().table(&Names::new("postgres", "root"), &crate::catalog::names::Name::bare("t")).unwrap();
        let (local, far) = (table.group_in("local").unwrap(), table.group_in("far").unwrap());
        let cases: [(&str, u64, &[meridian_base::GroupId]); 12] = [
            ("select * from t where id = 1", 1, &[local]),
            ("select * from t where id = 2", 1, &[local, far]),
            ("select * from t where id in (1, 3)", 2, &[local]),
            ("select * from t where id = 2 and crdb_region = 'far'", 1, &[far]),
            ("select * from t where id = 2 and crdb_region = 'local'", 0, &[local]),
            ("select b from t where a = 3", 1, &[local]),
            ("select id from t limit 2", 2, &[local]),
            ("select id from t limit 3", 3, &[local, far]),
            ("select id from t order by id limit 1", 1, &[local, far]),
            ("select t.id from generate_series(1, 1) as g join t on t.id = g", 1, &[local]),
            ("update t set b = 4 where id = 1", 1, &[local]),
            // The values must not be taken anywhere.
            ("insert into t (id, a) values (4, 4)", 1, &[local, far]),
        ];
        for (text, rows, groups) in cases {
            let (affected, _, txn) = run_in(&env, text, &[], MEMORY_BYTES_MAX).await;
            assert_eq!(affected.unwrap_or_else(|e| panic!("{text}: {e:?}")).rows, rows, "{text}");
            let mut read: Vec<meridian_base::GroupId> = txn.reads().iter().map(|r| r.0).collect();
            read.sort();
            read.dedup();
            let mut expected = groups.to_vec();
            expected.sort();
            assert_eq!(read, expected, "{text}");
            assert!(txn.writes().iter().all(|(group, _)| *group == local), "{text}");
        }
    });
}
