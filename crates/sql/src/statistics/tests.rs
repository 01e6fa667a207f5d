//! Statistics over sessions in memory.

use super::*;
use crate::session::{Session, SessionOptions};
use crate::testing::MemEnvironment;
use meridian_base::SessionId;

async fn session(env: &MemEnvironment) -> Session<MemEnvironment> {
    let options = SessionOptions { id: SessionId(1), user: "root".into(), database: "postgres".into(), ..Default::default() };
    Session::new(env.clone(), options, env.shared()).unwrap()
}

#[tokio::test]
async fn statistics_are_kept_with_their_table_and_go_with_it() {
    use crate::env::Environment;
    let env = MemEnvironment::new(&["us-east1"]);
    let mut s = session(&env).await;
    s.query_text("CREATE TABLE t (a INT8 PRIMARY KEY, b TEXT, c NUMERIC)").await.unwrap();
    s.query_text("INSERT INTO t SELECT i, CASE WHEN i % 4 > 0 THEN 'x' || i % 2 END, i / 10 FROM generate_series(1, 1000) i")
        .await
        .unwrap();
    let version = env.catalog().seen;
    s.query_text("ANALYZE t").await.unwrap();
    let catalog = env.catalog();
    assert_eq!(catalog.seen, version, "nobody waits for statistics");
    let table = catalog.descriptors.values().find_map(|d| match &**d {
        crate::catalog::Descriptor::Table(t) if t.name == "t" => Some(t.clone()),
        _ => None,
    });
    let table = table.unwrap();
    let found = catalog.statistics_of(table.id).unwrap();
    assert_eq!(found.rows, 1_000);
    assert_eq!(found.columns.iter().map(|c| c.distinct).collect::<Vec<_>>(), [1_000, 2, 101]);
    assert!((found.columns[1].nulls - 0.25).abs() < 0.001);
    assert_eq!(found.columns[1].common.len(), 2);
    // Columns by name: the others stay as they were.
    s.query_text("UPDATE t SET b = 'y' WHERE a <= 500").await.unwrap();
    s.query_text("DELETE FROM t WHERE a > 500").await.unwrap();
    s.query_text("ANALYZE t (b)").await.unwrap();
    let catalog = env.catalog();
    let found = catalog.statistics_of(table.id).unwrap();
    assert_eq!(found.columns.iter().map(|c| c.distinct).collect::<Vec<_>>(), [1_000, 1, 101]);
    assert_eq!(found.rows, 500);
    s.query_text("DROP TABLE t").await.unwrap();
    let catalog = env.catalog();
    assert!(catalog.statistics_of(table.id).is_none());
    assert!(!catalog.descriptors.values().any(|d| matches!(&**d, crate::catalog::Descriptor::Statistics(_))));
}

#[test]
fn what_cannot_be_read_is_no_statistics() {
    let known = TableStatistics { rows: 7, ..TableStatistics::default() };
    let stored = StoredStatistics::new(DescriptorId(9), DescriptorId(8), &known).unwrap();
    assert_eq!(stored.read(), Some(known));
    assert_eq!(StoredStatistics { format: 2, ..stored.clone() }.read(), None);
    for cut in 0..stored.body.len() {
        let _ = StoredStatistics { body: stored.body[..cut].to_vec(), ..stored.clone() }.read();
    }
}
