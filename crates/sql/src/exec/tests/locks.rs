//! Which rows are locked, and what of what was read to find them is certified.

use super::*;
use crate::env::{Locking, Transaction};
use crate::plan::TablePlan;
use meridian_base::Key;

const LK: &str = "create table lk (id int primary key, v int, k int);
    insert into lk select g, (g * 7) % 40, g % 10 from generate_series(0, 39) as g;
    create table jobs (id int primary key, state text, priority int);
    insert into jobs select g, case when g <= 10 then 'done' else 'new' end, g % 7 from generate_series(1, 30) as g;";

fn plan_of(env: &MemEnvironment, table: &str) -> Arc<TablePlan> {
    let catalog = env.catalog();
    let (names, eval) = (Names::new("postgres", "root"), EvalContext { catalog: catalog.clone(), ..Default::default() });
    let name = crate::catalog::names::Name::bare(table);
    match catalog.relation(&names, &name).unwrap() {
        crate::catalog::relation::Relation::Table(t) => {
            TablePlan::new(&t, PlanContext { catalog: &catalog, names: &names, eval: &eval }).unwrap()
        }
        _ => panic!("{table} is no table"),
    }
}

fn key(env: &MemEnvironment, table: &str, id: i64) -> Key {
    let plan = plan_of(env, table);
    let mut row = vec![Datum::Null; plan.types.len()];
    row[0] = Datum::Int(id);
    plan.primary_key(&row).unwrap()
}

/// The ids of the rows of a table that are locked, in the order in which they were.
fn locked(env: &MemEnvironment, table: &str, txn: &MemTransaction) -> Vec<i64> {
    let ids: Vec<(i64, Key)> = (0..60).map(|id| (id, key(env, table, id))).collect();
    let id = |k: &Key| ids.iter().find(|(_, key)| key == k).map(|(id, _)| *id);
    txn.entries().iter().filter_map(|(_, key, _)| id(key)).collect()
}

fn ints(rows: &[Row]) -> Vec<i64> {
    let int = |row: &Row| match row[0] {
        Datum::Int(n) => n,
        _ => panic!("{row:?}"),
    };
    rows.iter().map(int).collect()
}

/// Runs a statement: its rows, the rows of `table` that it locks, and its transaction.
async fn take(env: &MemEnvironment, table: &str, text: &str) -> (Vec<i64>, Vec<i64>, MemTransaction) {
    let (affected, rows, txn) = run_in(env, text, &[], MEMORY_BYTES_MAX).await;
    affected.unwrap_or_else(|e| panic!("{text}: {e:?}"));
    let locked = locked(env, table, &txn);
    (ints(&rows), locked, txn)
}

async fn refusal(env: &MemEnvironment, text: &str) -> String {
    run_in(env, text, &[], MEMORY_BYTES_MAX).await.0.unwrap_err().sqlstate().to_string()
}

const JOB: &str = "select id from jobs where state = 'new' order by priority desc, id limit 1 for update skip locked";

#[test]
fn a_join_locks_the_rows_of_its_result() {
    block_on(async {
        let env = after(LK).await;
        let join = "select a.id from lk a join lk b on a.id = b.v where b.k = 4 and a.id < 30 order by a.id for update of a";
        let (rows, held, _) = take(&env, "lk", join).await;
        assert_eq!(rows, [8, 18, 28]);
        assert_eq!(held, rows);
        // All tables, the same row in several results, and the same row of the same table twice.
        let (rows, mut held, _) =
            take(&env, "lk", "select a.id from lk a, lk b where a.k = 1 and b.id in (1, 2) order by a.id for update").await;
        held.sort_unstable();
        assert_eq!((rows.len(), held), (8, vec![1, 2, 11, 21, 31]));
        // Whoever locks a table of two in one way and the other in another.
        let both = "select a.id from lk a join lk b on b.id = a.v where a.id = 3 for update of a for key share of b";
        let (_, held, txn) = take(&env, "lk", both).await;
        assert_eq!(held, [3, 21]);
        assert!(matches!(txn.entries(), [(_, _, Locking::Exclusive(_)), (_, _, Locking::KeyShared(_))]));
        // A lookup join, a subquery, a lateral one.
        let (rows, held, _) =
            take(&env, "lk", "select j.id from jobs j join lk on lk.id = j.id where j.priority = 3 for update of lk").await;
        assert_eq!(held, rows);
        let (_, held, _) =
            take(&env, "lk", "select d.id from (select id, v from lk where k = 3) d join jobs on jobs.id = d.v for update of d")
                .await;
        assert_eq!(held, [3, 13, 23]);
        let lateral = "select x.id from jobs j cross join lateral (select id from lk where lk.k = j.priority order by v limit 1 for update) x
            where j.id in (1, 2)";
        let (rows, held, _) = take(&env, "lk", lateral).await;
        assert_eq!((held.len(), held), (2, rows));
    });
}

#[test]
fn a_limit_above_a_sort_locks_what_it_lets_through() {
    block_on(async {
        let env = after(LK).await;
        let (rows, held, _) = take(&env, "lk", "select id from lk where k = 2 order by v desc limit 2 for update").await;
        assert_eq!(held, rows);
        assert_eq!(rows.len(), 2);
        // Those of the offset as well.
        let (rows, held, _) = take(&env, "lk", "select id from lk where k = 2 order by v desc limit 1 offset 1 for update").await;
        assert_eq!((held.len(), held.last()), (2, rows.first()));
        let (rows, held, _) = take(&env, "lk", "select id from lk order by v desc limit 0 for update").await;
        assert_eq!((rows.len(), held.len()), (0, 0));
        let (rows, held, _) = take(&env, "lk", "select id from lk where k = 2 or v = 3 limit 1 for update").await;
        assert_eq!(held, rows);
        // What is drawn for each row is drawn once.
        let (rows, held, _) = take(&env, "lk", "select id from lk order by random() limit 3 for update skip locked").await;
        assert_eq!(held, rows);
        // Without a limit all that match are locked, where they are read.
        let (_, held, _) = take(&env, "lk", "select id from lk where k = 2 order by v desc for update").await;
        assert_eq!(held, [2, 12, 22, 32]);
    });
}

#[test]
fn workers_take_one_job_each() {
    block_on(async {
        let env = after(LK).await;
        let mut workers = Vec::new();
        for expected in [13, 20, 27, 12, 19] {
            let (rows, held, txn) = take(&env, "jobs", JOB).await;
            assert_eq!((rows, held), (vec![expected], vec![expected]));
            workers.push(txn);
        }
        // In the order of the key, behind jobs that are done.
        let by_id = "select id from jobs where state = 'new' order by id limit 2 for update skip locked";
        let (rows, held, fifth) = take(&env, "jobs", by_id).await;
        assert_eq!((&rows, &held), (&vec![11, 14], &vec![11, 14]));
        // Who would take a row that is held is told so, and others are not in the way.
        assert_eq!(refusal(&env, &JOB.replace("skip locked", "nowait")).await, "55P03");
        let free = "select id from jobs where state = 'new' and priority = 1 order by priority, id limit 1 for update nowait";
        let (rows, held, txn) = take(&env, "jobs", free).await;
        assert_eq!((rows, held), (vec![15], vec![15]));
        drop((txn, fifth));
        // A worker that fails gives its job back.
        workers.remove(1).rollback();
        let (rows, _, _) = take(&env, "jobs", JOB).await;
        assert_eq!(rows, [20]);
    });
}

#[test]
fn a_worker_is_not_refused_because_others_finish() {
    block_on(async {
        let env = after(LK).await;
        let finish = "update jobs set state = 'done' where id = ";
        let (rows, _, first) = take(&env, "jobs", JOB).await;
        // Others take, finish and bring jobs meanwhile.
        let (others, _, second) = take(&env, "jobs", JOB).await;
        second.rollback();
        let (_, _, txn) = run_in(&env, &format!("{finish}{} returning id", others[0]), &[], MEMORY_BYTES_MAX).await;
        txn.commit().await.unwrap();
        let (_, _, txn) = run_in(&env, "insert into jobs values (50, 'new', 6) returning id", &[], MEMORY_BYTES_MAX).await;
        txn.commit().await.unwrap();
        assert_eq!(first.reads().len(), 1, "{:?}", first.reads());
        first.commit().await.unwrap();
        // What it has taken itself counts.
        let (again, _, third) = take(&env, "jobs", JOB).await;
        assert_eq!(again, rows);
        let (_, _, txn) = run_in(&env, &format!("{finish}{} returning id", again[0]), &[], MEMORY_BYTES_MAX).await;
        txn.commit().await.unwrap();
        assert!(third.commit().await.unwrap_err().is_retry());
        // So does what it has read of tables that it skips nothing of, and all of it if it waits.
        for text in [
            "select j.id from jobs j join lk on lk.id = j.id where j.state = 'new' and lk.k = 1 order by j.id limit 1 for update of j skip locked",
            "select j.id from jobs j where j.state = 'new' and exists (select 1 from lk where k = 1) order by j.priority limit 1
                for update skip locked",
        ] {
            let (_, _, fourth) = take(&env, "jobs", text).await;
            let (_, _, txn) = run_in(&env, "update lk set k = k + 1 where k = 1 returning id", &[], MEMORY_BYTES_MAX).await;
            txn.commit().await.unwrap();
            assert!(fourth.commit().await.unwrap_err().is_retry(), "{text}");
            let (_, _, txn) = run_in(&env, "update lk set k = 1 where id % 10 = 1 returning id", &[], MEMORY_BYTES_MAX).await;
            txn.commit().await.unwrap();
        }
        let (_, _, fifth) = take(&env, "jobs", &JOB.replace(" skip locked", "")).await;
        let (_, _, txn) = run_in(&env, "insert into jobs values (51, 'new', 9) returning id", &[], MEMORY_BYTES_MAX).await;
        txn.commit().await.unwrap();
        assert!(fifth.commit().await.unwrap_err().is_retry());
    });
}

/// Fetches from an open statement what a cursor or a portal asks for.
#[test]
fn what_is_fetched_is_locked() {
    block_on(async {
        let env = after(LK).await;
        let catalog = env.catalog();
        let (names, eval) = (Names::new("postgres", "root"), EvalContext { catalog: catalog.clone(), ..Default::default() });
        let context = PlanContext { catalog: &catalog, names: &names, eval: &eval };
        let system = NoSystem(catalog.clone(), names.clone(), None, Ticking::default());
        let interrupt = Interrupt::default();
        let ctx = ExecContext {
            pace: Pace::default(),
            pool: &Arc::default(),
            eval: &eval,
            catalog: &catalog,
            interrupt: &interrupt,
            sequences: &NoSequences,
            system: &system,
            memory_bytes_max: MEMORY_BYTES_MAX,
            options: ExecOptions::default(),
        };
        let join = "select a.id from lk a join lk b on a.id = b.v where b.k = 4 order by a.id for update of a";
        let sort = "select id from lk where k = 8 order by id + v limit 4 for update";
        let skip = "select id from lk where k = 8 order by id + v limit 4 for update skip locked";
        for text in [join, sort, skip] {
            let prepared = Arc::new(prepare(&parse_one_statement(text).unwrap(), &context, &[]).unwrap());
            let mut txn = run_in(&env, "select 1", &[], MEMORY_BYTES_MAX).await.2;
            let mut execution = Execution::new(prepared, Vec::new());
            let mut sink = Collect(Vec::new());
            for fetched in 1..=4 {
                execution.fetch(&mut txn, &ctx, Some(1), &mut sink).await.unwrap();
                assert_eq!((sink.0.len(), locked(&env, "lk", &txn)), (fetched, ints(&sink.0)), "{text}");
            }
            assert!(matches!(execution.fetch(&mut txn, &ctx, Some(1), &mut sink).await.unwrap(), Fetched::Done(_)));
        }
    });
}
