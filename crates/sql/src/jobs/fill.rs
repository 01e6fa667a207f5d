//! Adding columns whose values have to be written: those computed from their row, or whose default
//! is another in every row.
//!
//! | step | statements see it | inserts | updates | rows that were there |
//! | --- | --- | --- | --- | --- |
//! | `Filling`; the job writes rows | no | write it | give it a new value | may be without it |
//! | `Filled`; constraints are validated, indexes built | no | write it | keep it | have it |
//! | `Public` | yes | write it | keep it | have it |
//!
//! Two adjacent steps may be in use at once. When the job begins to write, every writer writes the
//! column, and what the job reads is certified: a row that has the column is left alone, and one
//! that has not gets its value in the transaction that read it. An update does not ask whether the
//! row had a value already, since nobody has seen it; that must have ended before anybody can,
//! hence `Filled`.
//!
//! A job that fails, or is cancelled, drops the column: rows that have it keep it, unreachable,
//! like those of any dropped column.

use super::rows::work_on;
use super::{JobContext, changed, last_step, step_of};
use crate::catalog::{ColumnState, Descriptor, Sequence, Table};
use crate::env::Environment;
use crate::exec::RowWork;
use meridian_base::{DescriptorId, Result};

/// Gives every row its values, and takes the columns to `Filled`.
pub(super) async fn run<E: Environment>(env: &E, table: DescriptorId, ordinals: &[u32], context: &JobContext) -> Result<()> {
    if let Some(source) = env.catalog().table_by_id(table) {
        work_on(env, &source, RowWork::Fill { ordinals }, context).await?;
    }
    last_step(env, context, table, |t| take(t, ordinals, ColumnState::Filling, ColumnState::Filled)).await
}

/// From now on statements see the columns.
pub(super) async fn show<E: Environment>(env: &E, table: DescriptorId, ordinals: &[u32], context: &JobContext) -> Result<()> {
    last_step(env, context, table, |t| take(t, ordinals, ColumnState::Filled, ColumnState::Public)).await
}

/// Drops columns that nobody has seen yet, with their sequences.
pub(super) async fn undo<E: Environment>(env: &E, table: DescriptorId, ordinals: &[u32], context: &JobContext) -> Result<()> {
    step_of(env, context, 0, &|catalog| {
        let mut after = (*catalog.table_by_id(table)?).clone();
        let is_left = |o: &u32| after.columns[*o as usize].state.is_being_added();
        let ordinals: Vec<u32> = ordinals.iter().copied().filter(is_left).collect();
        if ordinals.is_empty() {
            return None;
        }
        for ordinal in &ordinals {
            let column = &mut after.columns[*ordinal as usize];
            (column.state, column.default, column.generated) = (ColumnState::Dropped, None, None);
            (column.on_update, column.identity) = (None, None);
        }
        let is_owned = |s: &Sequence| s.owned_by.is_some_and(|(t, o)| t == table && ordinals.contains(&o));
        let sequences = catalog.descriptors.values().filter_map(|d| match &**d {
            Descriptor::Sequence(s) if is_owned(s) => Some(s.id),
            _ => None,
        });
        let mut change = changed(catalog, after);
        change.delete.extend(sequences);
        Some(change)
    })
    .await
}

/// Takes columns from one state to the next. Those that were dropped meanwhile stay so.
fn take(table: &mut Table, ordinals: &[u32], from: ColumnState, to: ColumnState) {
    for ordinal in ordinals {
        let column = &mut table.columns[*ordinal as usize];
        if column.state == from {
            column.state = to;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::job::Job;
    use crate::catalog::names::Names;
    use crate::jobs::{Step, commit, step};
    use crate::session::{Session, SessionOptions};
    use crate::testing::MemEnvironment;
    use meridian_base::SessionId;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    async fn session(env: &MemEnvironment, id: u64) -> Session<MemEnvironment> {
        let options =
            SessionOptions { id: SessionId(id), user: "root".into(), database: "postgres".into(), ..Default::default() };
        Session::new(env.clone(), options, env.shared()).unwrap()
    }

    fn table(env: &MemEnvironment) -> Table {
        let names = Names::new("postgres", "root");
        (*env.catalog().table(&names, &crate::catalog::names::Name::bare("t")).unwrap()).clone()
    }

    async fn rows(s: &mut Session<MemEnvironment>, sql: &str) -> Vec<Vec<String>> {
        let answer = s.query_text(sql).await.unwrap_or_else(|e| panic!("{sql}: {e}")).pop().unwrap();
        answer.rows.into_iter().map(|row| row.into_iter().map(|v| v.unwrap_or_else(|| "∅".into())).collect()).collect()
    }

    /// Statements between the steps, as other sessions would run them.
    #[tokio::test]
    async fn whoever_writes_between_two_steps_leaves_no_row_without_its_value() {
        let env = MemEnvironment::new(&["eu"]);
        let mut s = session(&env, 1).await;
        let text = "create table p (id int primary key); insert into p select generate_series(1, 100);
            create table t (id int primary key, a int, p int references p on update cascade on delete set null);
            insert into t select g, g, g % 10 + 1 from generate_series(1, 600) as s(g); create sequence o start with 100000";
        s.query_text(text).await.unwrap();
        let context = s.job_context("");
        let add = "alter table t add column g int generated always as (a * 2) stored,
            add column u uuid default gen_random_uuid(), add column n serial,
            add column o int default nextval('o') on update nextval('o') + 900000";
        let statement = crate::parse::parse_one_statement(add).unwrap();
        let (catalog, nodes, private) = (env.catalog(), env.nodes(), Default::default());
        let ddl = crate::ddl::DdlContext {
            names: &context.names,
            gateway_region: "eu",
            nodes: &nodes,
            private: &private,
            jobs: &[],
            eval: &context.eval.with_catalog(catalog.clone()),
        };
        let derived = crate::ddl::derive(&statement, &catalog, &ddl).unwrap();
        let first = Step { base: catalog, change: derived.change, jobs: Vec::new(), is_one_of_many: false };
        commit(&env, first, None, &context).await.unwrap();
        let ordinals: Vec<u32> = (3..7).collect();
        let context = context.now(&env.catalog());
        let ids = |state| table(&env).columns.iter().filter(|c| c.state == state).count();
        assert_eq!(ids(ColumnState::Filling), 4);
        assert!(matches!(&derived.jobs[..], [Job::FillColumns { .. }, Job::ShowColumns { ordinals: o, .. }] if *o == ordinals));

        let write = "insert into t (id, a) values (1001, 7), (1002, 8); update t set a = -a where id between 10 and 20;
            delete from t where id = 30; update p set id = 500 where id = 5; delete from p where id = 6;
            insert into t (id, a) values (11, 1) on conflict (id) do update set a = 5";
        s.query_text(write).await.unwrap();
        assert_eq!(rows(&mut s, "select * from t where id = 1001").await, [["1001", "7", "∅"]]);
        let id = table(&env).id;
        // Its last step is lost with the node that was to make it: another one finds every row
        // filled.
        for _ in 0..2 {
            run(&env, id, &ordinals, &context).await.unwrap();
            assert_eq!(ids(ColumnState::Filled), 4);
            step(&env, &context, id, |t| take(t, &ordinals, ColumnState::Filled, ColumnState::Filling)).await.unwrap();
            s.query_text("update t set a = a + 1 where id between 40 and 50").await.unwrap();
        }
        s.query_text("insert into t (id, a) values (1003, 9)").await.unwrap();
        run(&env, id, &ordinals, &context).await.unwrap();
        s.query_text("update t set a = a + 1 where id between 60 and 70; insert into t (id, a) values (1004, 9)").await.unwrap();

        // Some still write as before when others can see it: what they have seen stays.
        step(&env, &context, id, |t| take(t, &ordinals, ColumnState::Filled, ColumnState::Public)).await.unwrap();
        let seen = rows(&mut s, "select u, n from t where id = 80").await;
        s.query_text("update t set u = null, n = -5 where id = 81").await.unwrap();
        step(&env, &context, id, |t| take(t, &ordinals, ColumnState::Public, ColumnState::Filled)).await.unwrap();
        s.query_text("update t set a = 1 where id between 80 and 81; update p set id = 600 where id = 1").await.unwrap();
        step(&env, &context, id, |t| take(t, &ordinals, ColumnState::Filled, ColumnState::Public)).await.unwrap();
        assert_eq!(rows(&mut s, "select u, n from t where id = 80").await, seen);
        assert_eq!(rows(&mut s, "select u, n, g from t where id = 81").await, [["∅", "-5", "2"]]);
        s.query_text("delete from t where id = 81").await.unwrap();

        let found = "select count(*), count(distinct u), count(distinct n), count(distinct o), sum(g - 2 * a) from t";
        assert_eq!(rows(&mut s, found).await, [["602", "602", "602", "602", "0"]]);
        // Rows that were updated have what ON UPDATE says, the others their default.
        assert_eq!(rows(&mut s, "select count(*) from t where o > 900000 and id in (12, 45, 65, 80)").await, [["4"]]);
        assert_eq!(rows(&mut s, "select count(*) from t where o > 900000 and id in (22, 1001, 1004, 33)").await, [["0"]]);
        assert_eq!(rows(&mut s, "select count(*) from t where p = 500").await, [["60"]]);
    }

    /// Sessions that write all the time, and rows that one of them has read.
    #[tokio::test]
    async fn writers_and_the_job_agree_about_every_row() {
        let env = MemEnvironment::new(&["eu"]);
        let mut s = session(&env, 1).await;
        s.query_text(
            "create table t (id int primary key, a int); insert into t select g, 0 from generate_series(0, 1999) as s(g)",
        )
        .await
        .unwrap();
        let (stop, writes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let writer = |n: u64| {
            let (env, stop, writes) = (env.clone(), stop.clone(), writes.clone());
            async move {
                let mut s = session(&env, 10 + n).await;
                let mut at = n * 7;
                while !stop.load(Ordering::Relaxed) {
                    at = (at * 31 + 17) % 2_000;
                    let sql = match at % 5 {
                        0 => format!("delete from t where id = {at}; insert into t (id, a) values ({at}, {n})"),
                        1 => format!("begin; select a from t where id = {at}; update t set a = a + 1 where id = {at}; commit"),
                        _ => format!("update t set a = a + 1 where id = {at}"),
                    };
                    match s.query_text(&sql).await {
                        Ok(_) => writes.fetch_add(1, Ordering::Relaxed),
                        Err(e) => {
                            assert!(["40001", "23505"].contains(&e.sqlstate()), "{sql}: {e}");
                            s.query_text("rollback").await.map(|_| 0).unwrap_or(0)
                        }
                    };
                    tokio::task::yield_now().await;
                }
            }
        };
        let writers: Vec<_> = (0..4).map(|n| tokio::spawn(writer(n))).collect();
        while writes.load(Ordering::Relaxed) < 20 {
            tokio::task::yield_now().await;
        }
        let before = writes.load(Ordering::Relaxed);
        let add = "alter table t add column g int generated always as (a * 2) stored not null, add column n serial unique";
        s.query_text(add).await.unwrap();
        assert!(writes.load(Ordering::Relaxed) > before, "nobody wrote meanwhile");
        let seen = rows(&mut s, "select id, n from t order by id").await;
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        stop.store(true, Ordering::Relaxed);
        for writer in writers {
            writer.await.unwrap();
        }
        let found = rows(&mut s, "select count(distinct n), count(n), sum(abs(g - 2 * a)) from t").await;
        assert_eq!(found, [["2000", "2000", "0"]]);
        // Only rows that were inserted again have another number.
        let now = rows(&mut s, "select id, n from t order by id").await;
        assert!(seen.iter().zip(&now).all(|(a, b)| a == b || a[0].parse::<u64>().unwrap() % 5 == 0));
    }
}
