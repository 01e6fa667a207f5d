//! Changing a table's locality while it is read and written.
//!
//! | step | reads | inserts and updates | deletes |
//! | --- | --- | --- | --- |
//! | `DeleteOnly` | old homes | old | both |
//! | `WriteOnly`; rows are copied | old | both | both |
//! | `Leaving`: the homes are exchanged | new | both | both |
//! | done; what is left behind is deleted | new | new | new |
//!
//! Two adjacent steps may be in use at once (as with an index, F1's online schema change):
//! transactions that read the old homes and those that read the new ones write both while that may
//! be. The new homes hold indexes of their own ids, so a group that is an old and a new home keeps
//! the two apart. Uniqueness is checked in the homes that are read, and follows for the others.

use super::backfill::{after, bind, primary_ranges};
use super::{JobContext, changed, locking, may_try_again, options, pause, step, step_of};
use crate::catalog::{Catalog, ColumnState, Move, MoveState, Table};
use crate::env::{Environment, Scan, Transaction};
use meridian_base::{ColumnMask, DescriptorId, GroupId, KeyRange, Result, Write};

/// Rows per transaction: each is written with all its entries, perhaps in several regions.
const BATCH_ROWS: usize = 128;

/// Takes a table from where it is to its new homes. Gone on with after a crash, it copies again
/// what was copied: that does no harm.
pub(super) async fn run<E: Environment>(env: &E, table: DescriptorId, indexes: &[u32], context: &JobContext) -> Result<()> {
    step(env, context, table, |t| {
        if t.moving.as_ref().is_some_and(|m| m.state == MoveState::DeleteOnly) {
            set_state(t, MoveState::WriteOnly);
        }
    })
    .await?;
    let is_filling = |t: &Table| t.moving.as_ref().is_some_and(|m| m.state == MoveState::WriteOnly);
    if env.catalog().table_by_id(table).is_some_and(|t| is_filling(&t)) {
        copy(env, table, context).await?;
        step(env, context, table, exchange).await?;
    }
    finish(env, table, indexes, context).await
}

/// Whether a table's move is the one that gives its indexes these ids. A job that is taken back
/// after it was over meets others.
fn is_of(table: &Table, indexes: &[u32]) -> bool {
    table.moving.as_ref().is_some_and(|m| match m.state {
        MoveState::Leaving => table.indexes.iter().map(|i| &i.id).eq(indexes),
        MoveState::DeleteOnly | MoveState::WriteOnly => m.indexes == indexes,
    })
}

/// Whether the move has exchanged the homes: the change is made, and cannot be taken back any more.
pub(super) fn is_exchanged(catalog: &Catalog, table: DescriptorId, indexes: &[u32]) -> bool {
    let is_leaving = |t: &Table| t.moving.as_ref().is_some_and(|m| m.state == MoveState::Leaving);
    catalog.table_by_id(table).is_some_and(|t| is_of(&t, indexes) && is_leaving(&t))
}

pub(super) fn set_state(table: &mut Table, state: MoveState) {
    table.moving.iter_mut().for_each(|m| m.state = state);
}

/// From now on the new homes are read, and the old ones written with them.
pub(super) fn exchange(table: &mut Table) {
    let Some(m) = table.moving.take_if(|m| m.state == MoveState::WriteOnly) else { return };
    let left = Move {
        homes: std::mem::replace(&mut table.homes, m.homes),
        locality: std::mem::replace(&mut table.locality, m.locality),
        indexes: table.indexes.iter().map(|i| i.id).collect(),
        state: MoveState::Leaving,
    };
    table.indexes.iter_mut().zip(m.indexes).for_each(|(index, id)| index.id = id);
    table.moving = Some(left);
}

/// Forgets the homes that are not read.
async fn finish<E: Environment>(env: &E, table: DescriptorId, indexes: &[u32], context: &JobContext) -> Result<()> {
    step_of(env, context, 1, &|catalog| {
        let before = catalog.table_by_id(table).filter(|t| is_of(t, indexes))?;
        Some(changed(catalog, Table { moving: None, ..(*before).clone() }))
    })
    .await
}

/// Takes a move back; one that has exchanged the homes is brought to its end.
pub(super) async fn undo<E: Environment>(
    env: &E,
    table: DescriptorId,
    indexes: &[u32],
    added_column: Option<u32>,
    context: &JobContext,
) -> Result<()> {
    step_of(env, context, 0, &|catalog| {
        let before = catalog.table_by_id(table).filter(|t| is_of(t, indexes))?;
        let mut after = Table { moving: None, ..(*before).clone() };
        let is_exchanged = before.moving.as_ref().is_some_and(|m| m.state == MoveState::Leaving);
        if let Some(column) = added_column.filter(|_| !is_exchanged) {
            after.columns[column as usize].state = ColumnState::Dropped;
        }
        Some(changed(catalog, after))
    })
    .await
}

/// Copies every row to the new homes.
pub(super) async fn copy<E: Environment>(env: &E, table: DescriptorId, context: &JobContext) -> Result<()> {
    let Some(source) = env.catalog().table_by_id(table) else { return Ok(()) };
    let mut todo = primary_ranges(&source);
    let (mut batch, mut attempt) = (BATCH_ROWS, 0);
    while let Some((group, range)) = todo.last().cloned() {
        match page(env, &source, (group, range), batch, attempt, context).await {
            Ok(next) => {
                todo.pop();
                todo.extend(next.map(|rest| (group, rest)));
                attempt = 0;
                batch = (batch * 2).min(BATCH_ROWS);
            }
            // Another transaction changed one of the rows: a smaller batch has better odds.
            Err(e) if may_try_again(&e, attempt) => {
                attempt += 1;
                batch = (batch / 2).max(1);
                pause(env, attempt).await;
            }
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Copies one page of rows in one transaction. Returns what is left of the range.
async fn page<E: Environment>(
    env: &E,
    source: &Table,
    (group, range): (GroupId, KeyRange),
    batch: usize,
    attempt: u32,
    context: &JobContext,
) -> Result<Option<KeyRange>> {
    let catalog = context.catalog(env)?;
    // Another process may have ended the move while this one slept, and somebody may have begun the
    // next move. Then the range is of homes that no statement writes to any more.
    let is_copied =
        |t: &Table| t.primary().id == source.primary().id && t.moving.as_ref().is_some_and(|m| m.state == MoveState::WriteOnly);
    let Some(plan) = bind(env, source.id, context)?.filter(|plan| is_copied(plan.table())) else { return Ok(None) };
    let Some(mirror) = plan.mirror() else { return Ok(None) };
    let mut txn = env.begin(options(&catalog, context.session, false, attempt));
    txn.uses(&[source.id]);
    let scan = Scan { range, columns: ColumnMask::ALL, reverse: false, limit: Some(batch), locking: locking(attempt) };
    let found = txn.scan(group, scan.clone()).await?;
    for (_, bytes) in &found.rows {
        let row = plan.decode_row(bytes.clone())?;
        for ((group, key), value) in mirror.all_entries(&row, &context.eval)? {
            txn.write(group, Write { key, value: Some(value), columns: ColumnMask::ALL })?;
        }
    }
    let rest = found.rest.or_else(|| after(&scan.range, &found.rows, batch));
    if txn.has_writes() {
        txn.commit().await?;
    } else {
        txn.rollback();
    }
    Ok(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::names::Names;
    use crate::env::Locking;
    use crate::session::{Session, SessionOptions};
    use crate::testing::MemEnvironment;
    use crate::types::EvalContext;
    use meridian_base::{Key, SessionId};
    use std::collections::BTreeMap;

    type Stored = BTreeMap<(GroupId, Key), bytes::Bytes>;

    async fn session(env: &MemEnvironment, database: &str) -> Session<MemEnvironment> {
        let options = SessionOptions { id: SessionId(1), user: "root".into(), database: database.into(), ..Default::default() };
        Session::new(env.clone(), options, env.shared()).unwrap()
    }

    /// What is stored of a table in the homes that it has here.
    async fn stored(env: &MemEnvironment, table: &Table) -> Stored {
        let mut out = Stored::new();
        let mut txn = env.begin(options(&env.catalog(), SessionId(1), true, 0));
        for index in &table.indexes {
            for group in table.groups() {
                let mut prefix = Vec::new();
                meridian_base::key::encode::index(&mut prefix, index.id);
                let range = KeyRange::prefix(&prefix);
                let scan = Scan { range, columns: ColumnMask::ALL, reverse: false, limit: None, locking: Locking::None };
                out.extend(txn.scan(group, scan).await.unwrap().rows.into_iter().map(|(k, v)| ((group, k), v)));
            }
        }
        out
    }

    /// What should be stored there, by the rows that are read.
    async fn expected(env: &MemEnvironment, id: DescriptorId, context: &JobContext) -> Stored {
        let plan = bind(env, id, context).unwrap().unwrap();
        let mut out = Stored::new();
        for ((_, key), value) in stored(env, plan.table()).await {
            if key.as_bytes().starts_with(&plan.table().primary().id.to_be_bytes()) {
                let row = plan.decode_row(value).unwrap();
                out.extend(plan.mirror().unwrap().all_entries(&row, &context.eval).unwrap());
            }
        }
        out
    }

    /// Statements between the steps, as other sessions would run them while a move is under way.
    #[tokio::test]
    async fn whoever_writes_between_two_steps_writes_for_both() {
        let env = MemEnvironment::new(&["eu", "us", "asia"]);
        let create = "create database d primary region \"eu\" regions \"us\", \"asia\"";
        session(&env, "postgres").await.query_text(create).await.unwrap();
        let mut s = session(&env, "d").await;
        let text = "create table t (id int primary key, a int unique, r crdb_internal_region not null default 'us');
            create index on t (a) include (r);
            insert into t select g, g, (array['eu', 'us', 'asia'])[g % 3 + 1]::crdb_internal_region from generate_series(1, 300) g;";
        s.query_text(text).await.unwrap();
        let names = Names::new("d", "root");
        let table = |env: &MemEnvironment| env.catalog().table(&names, &crate::catalog::names::Name::bare("t")).unwrap();
        let id = table(&env).id;
        let catalog = env.catalog();
        let eval = EvalContext { catalog: catalog.clone(), database: "d".into(), ..EvalContext::default() };
        let context = JobContext { names: names.clone(), eval, ..s.job_context("") };
        // As SET LOCALITY REGIONAL BY ROW AS r derives it.
        let us = catalog.table(&names, &crate::catalog::names::Name::bare("t")).unwrap();
        let statement = crate::parse::parse_one_statement("alter table t set locality regional by row as r").unwrap();
        let (nodes, private) = (env.nodes(), Default::default());
        let ddl = crate::ddl::DdlContext {
            names: &names,
            gateway_region: "eu",
            nodes: &nodes,
            private: &private,
            jobs: &[],
            eval: &context.eval,
        };
        let change = crate::ddl::derive(&statement, &catalog, &ddl).unwrap().change;
        env.change_catalog(catalog.version, change).await.unwrap();
        assert_eq!(table(&env).homes, us.homes, "nothing is read elsewhere yet");

        // A job that is taken back when it has been over for long leaves the table's next move
        // alone.
        undo(&env, id, &[table(&env).primary().id], None, &context).await.unwrap();
        assert!(table(&env).moving.is_some());

        s.query_text("insert into t values (1001, 1001, 'asia'); delete from t where id = 7").await.unwrap();
        assert!(stored(&env, &table(&env).elsewhere().unwrap()).await.is_empty(), "deletes only");
        step(&env, &context, id, |t| set_state(t, MoveState::WriteOnly)).await.unwrap();
        let changes = "insert into t values (1002, 1002, 'asia'); delete from t where id in (8, 1001);
            update t set a = -a where id between 10 and 20; update t set r = 'us' where id between 15 and 25";
        s.query_text(changes).await.unwrap();
        copy(&env, id, &context).await.unwrap();
        s.query_text("update t set a = 5000, r = 'asia' where id = 30; delete from t where id = 31").await.unwrap();
        let is = stored(&env, &table(&env).elsewhere().unwrap()).await;
        assert_eq!(is, expected(&env, id, &context).await);
        assert_eq!(is.len(), 298 * 3);

        step(&env, &context, id, exchange).await.unwrap();
        assert_eq!(table(&env).group_count(), 3);
        s.query_text("update t set r = 'eu' where id = 32; insert into t values (1003, 31, 'us'); delete from t where id = 33")
            .await
            .unwrap();
        let left = table(&env).elsewhere().unwrap();
        assert_eq!(left.homes, us.homes);
        assert_eq!(stored(&env, &left).await, expected(&env, id, &context).await, "whoever still reads there misses nothing");
        assert_eq!(s.query_text("insert into t values (1004, 5000, 'us')").await.unwrap_err().sqlstate(), "23505");

        let ids: Vec<u32> = table(&env).indexes.iter().map(|i| i.id).collect();
        finish(&env, id, &ids, &context).await.unwrap();
        assert_eq!(table(&env).moving, None);
        let answer = s.query_text("select count(*), count(distinct a) from t").await.unwrap();
        assert_eq!(answer[0].rows, [[Some("298".to_string()), Some("298".to_string())]]);
    }
    /// The statement itself: nobody can reach what is left behind.
    #[tokio::test]
    async fn what_is_left_behind_is_forgotten() {
        let env = MemEnvironment::new(&["eu", "us"]);
        let create = "create database d primary region \"eu\" regions \"us\"";
        session(&env, "postgres").await.query_text(create).await.unwrap();
        let mut s = session(&env, "d").await;
        s.query_text("create table t (id int primary key); insert into t select generate_series(1, 10)").await.unwrap();
        s.query_text("alter table t set locality regional by row").await.unwrap();
        assert!(env.catalog().jobs().all(|job| job.state.has_ended()));
        assert_eq!(env.key_count(), 10);
        let names = Names::new("d", "root");
        let table = env.catalog().table(&names, &crate::catalog::names::Name::bare("t")).unwrap();
        assert_eq!(stored(&env, &table).await.len(), 10);
    }
}
