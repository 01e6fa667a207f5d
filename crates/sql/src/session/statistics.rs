//! Statistics that are kept without being asked for.
//!
//! Every node counts the rows that its own sessions change, by table; when they are 500 and a tenth
//! of what the table had (fewer where the table had fewer than 500), it reads the table, with no
//! more than a twentieth of a core, and keeps what it finds if that is much different from before.
//! So the node whose clients write a table looks after it, which is near the table's home as a
//! rule. If several nodes write it in equal parts, each comes to that as many times later. What is
//! rolled back counts too: the reading tells.
//!
//! One small table without statistics has whole statements planned by rules. So a table that was
//! never read is read as soon as it rests, if it was changed or a join has asked for it.

use super::{Session, SessionOptions, Shared};
use crate::analyze::{self, Pace};
use crate::env::Environment;
use crate::plan::{PlanContext, TablePlan};
use crate::statistics::{ColumnStatistics, TableStatistics};
use crate::types::Type;
use meridian_base::{DescriptorId, Error, Result, SessionId};
use std::sync::Arc;
use std::time::Duration;

/// When the rows of a table are counted again.
#[derive(Clone, Copy, Debug)]
pub struct Attention {
    /// How often a node looks whether enough was changed.
    pub nap: Duration,
    /// So many changed rows are enough, and a tenth of the table's. For small tables PostgreSQL's
    /// `autovacuum_analyze_threshold`, which is 50, or as many as they have.
    pub changes_min: u64,
}

impl Default for Attention {
    fn default() -> Attention {
        Attention { nap: Duration::from_secs(10), changes_min: 500 }
    }
}

/// One step of the catalog keeps the statistics of at most this many tables of [`ROWS_FEW`] rows.
const KEPT_AT_ONCE: usize = 32;
const ROWS_FEW: u64 = 1_000;

/// Runs for as long as the node does.
pub async fn keep_up<E: Environment>(env: E, shared: Arc<Shared>, attention: Attention) {
    loop {
        tokio::time::sleep(attention.nap).await;
        let catalog = env.catalog();
        let mut due = shared.changes.take_due(&catalog, attention.changes_min);
        // Those that are read soon do not wait for those that take long.
        let rows = |(table, count): &(DescriptorId, u64)| catalog.statistics_of(*table).map_or(0, |s| s.rows).max(*count);
        due.sort_by_key(rows);
        let mut due = due.into_iter().peekable();
        let (mut found, mut counts) = (Vec::new(), Vec::new());
        while let Some((table, count)) = due.next() {
            match count_rows(&env, &shared, table).await {
                Ok(None) => {}
                Ok(Some(rows)) => {
                    found.push((table, rows));
                    counts.push((table, count));
                }
                Err(e) => not_yet(&shared, table, count, &e),
            }
            if found.len() < KEPT_AT_ONCE && due.peek().is_some_and(|next| rows(next) <= ROWS_FEW) {
                continue;
            }
            if let Err(e) = analyze::keep(&env, &std::mem::take(&mut found)).await {
                counts.iter().for_each(|(table, count)| not_yet(&shared, *table, *count, &e));
            }
            counts.clear();
        }
    }
}

fn not_yet(shared: &Shared, table: DescriptorId, count: u64, error: &Error) {
    tracing::info!(%error, table = table.0, "the rows of a table are not counted yet");
    shared.changes.put_back(table, count);
}

/// What a table has, unless it is hardly different from what it had.
async fn count_rows<E: Environment>(env: &E, shared: &Arc<Shared>, id: DescriptorId) -> Result<Option<TableStatistics>> {
    let catalog = env.catalog();
    let Some(table) = catalog.table_by_id(id) else { return Ok(None) };
    let database = catalog.schema_by_id(table.schema).and_then(|s| catalog.database_by_id(s.database));
    let Some(database) = database else { return Ok(None) };
    let options = SessionOptions {
        id: SessionId::default(),
        user: table.owner.clone(),
        database: database.name.clone(),
        application_name: "statistics".to_string(),
        ..SessionOptions::default()
    };
    let context = Session::new(env.clone(), options, shared.clone())?.job_context("");
    let plan = TablePlan::new(&table, PlanContext { catalog: &catalog, names: &context.names, eval: &context.eval })?;
    let before = catalog.statistics_of(id).cloned();
    let found = analyze::read(env, &plan, &analyze::ordinals(&table), context.session, Pace::Background).await?;
    // A table that is empty is about to be filled.
    let is_known = before.map_or(found.rows == 0, |before| is_like(&before, &found));
    if !is_known {
        tracing::debug!(table = id.0, rows = found.rows, "the rows of a table are counted");
    }
    Ok((!is_known).then_some(found))
}

/// Whether plans would hardly be others: all kept ones are made again for new statistics.
fn is_like(before: &TableStatistics, now: &TableStatistics) -> bool {
    let near = |a: u64, b: u64| a.abs_diff(b) * 10 <= a.max(b);
    let part = |c: &ColumnStatistics, value: &[u8]| c.common.iter().find(|(v, _)| v == value).map_or(0.0, |(_, part)| *part);
    let column = |(a, b): (&ColumnStatistics, &ColumnStatistics)| {
        let common = a.common.iter().chain(&b.common).all(|(v, _)| (part(a, v) - part(b, v)).abs() < 0.02);
        let ends = |c: &ColumnStatistics| c.bounds.first().cloned().zip(c.bounds.last().cloned());
        // Values that come in order leave the histogram at its end.
        let are_within = match (ends(a), ends(b)) {
            (Some(_), Some((low, high))) => {
                let ty = Type::from_oid(a.type_oid).unwrap_or(Type::Text);
                let within = |c: &ColumnStatistics| c.below(&high, &ty) - c.below(&low, &ty);
                (within(a) - within(b)).abs() < 0.1
            }
            (a, b) => a.is_some() == b.is_some(),
        };
        a.ordinal == b.ordinal
            && a.type_oid == b.type_oid
            && (a.nulls - b.nulls).abs() < 0.02
            && near(a.distinct, b.distinct)
            && common
            && are_within
    };
    near(before.rows, now.rows)
        && before.columns.len() == now.columns.len()
        && before.columns.iter().zip(&now.columns).all(column)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::MemEnvironment;

    #[tokio::test(start_paused = true)]
    async fn tables_that_change_much_are_counted_by_themselves() {
        let env = MemEnvironment::new(&["us-east1"]);
        let options = SessionOptions { id: SessionId(1), user: "root".into(), database: "postgres".into(), ..Default::default() };
        let mut s = Session::new(env.clone(), options, env.shared()).unwrap();
        let job = tokio::spawn(keep_up(env.clone(), env.shared(), Attention::default()));
        s.query_text("CREATE TABLE t (a INT8 PRIMARY KEY, b INT8)").await.unwrap();
        let rows = || {
            let catalog = env.catalog();
            let table = catalog.descriptors.keys().find_map(|id| catalog.table_by_id(*id)).unwrap();
            catalog.statistics_of(table.id).map(|s| s.rows)
        };
        s.query_text("INSERT INTO t SELECT i, i % 7 FROM generate_series(1, 400) i").await.unwrap();
        tokio::time::sleep(Attention::default().nap * 3).await;
        assert_eq!(rows(), Some(400));
        s.query_text("INSERT INTO t SELECT i, i % 7 FROM generate_series(401, 600) i").await.unwrap();
        tokio::time::sleep(Attention::default().nap * 3).await;
        assert_eq!(rows(), Some(400), "too few changes");
        s.query_text("INSERT INTO t SELECT i, i % 7 FROM generate_series(601, 900) i").await.unwrap();
        tokio::time::sleep(Attention::default().nap * 3).await;
        assert_eq!(rows(), Some(900));
        let counted = env.catalog().counted;
        // As many rows of the same kind: the plans that are kept stay.
        s.query_text("UPDATE t SET b = b").await.unwrap();
        tokio::time::sleep(Attention::default().nap * 3).await;
        assert_eq!(env.catalog().counted, counted);
        s.query_text("UPDATE t SET b = 1").await.unwrap();
        tokio::time::sleep(Attention::default().nap * 3).await;
        assert!(env.catalog().counted > counted, "the values are others");
        job.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn small_tables_are_counted_when_they_rest() {
        let env = MemEnvironment::new(&["us-east1"]);
        let options = SessionOptions { id: SessionId(1), user: "root".into(), database: "postgres".into(), ..Default::default() };
        let mut s = Session::new(env.clone(), options.clone(), env.shared()).unwrap();
        let nap = Attention::default().nap;
        let job = tokio::spawn(keep_up(env.clone(), env.shared(), Attention::default()));
        s.query_text("CREATE TABLE t (a INT8 PRIMARY KEY); CREATE TABLE u (a INT8 PRIMARY KEY)").await.unwrap();
        let rows = |name: &str| {
            let catalog = env.catalog();
            let table = catalog.descriptors.keys().find_map(|id| catalog.table_by_id(*id).filter(|t| t.name == name)).unwrap();
            catalog.statistics_of(table.id).map(|s| s.rows)
        };
        tokio::time::sleep(nap / 2).await;
        for i in 1..=3 {
            s.query_text(&format!("INSERT INTO t VALUES ({i})")).await.unwrap();
            tokio::time::sleep(nap).await;
            assert_eq!(rows("t"), None, "it grows");
        }
        tokio::time::sleep(nap).await;
        assert_eq!((rows("t"), rows("u")), (Some(3), None));
        // Filled on another node, or before this one started.
        let elsewhere = Arc::new(Shared::default());
        let mut other = Session::new(env.clone(), options, elsewhere).unwrap();
        other.query_text("INSERT INTO u VALUES (1), (2)").await.unwrap();
        s.query_text("SELECT * FROM u WHERE a = 1").await.unwrap();
        tokio::time::sleep(nap * 3).await;
        assert_eq!(rows("u"), None, "a point needs no costs");
        s.query_text("SELECT count(*) FROM t JOIN u USING (a)").await.unwrap();
        tokio::time::sleep(nap * 3).await;
        assert_eq!(rows("u"), Some(2));
        job.abort();
    }
}
