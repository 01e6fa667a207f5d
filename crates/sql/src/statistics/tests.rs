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
    let stored = StoredStatistics::new(DescriptorId(9), DescriptorId(8), &known);
    assert_eq!(stored.read(), Some(known));
    assert_eq!(StoredStatistics { format: 2, ..stored.clone() }.read(), None);
    for cut in 0..stored.body.len() {
        let _ = StoredStatistics { body: stored.body[..cut].to_vec(), ..stored.clone() }.read();
    }
}

/// Random numbers, the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
    fn of<'a>(&mut self, these: &[&'a str]) -> &'a str {
        these[self.roll(these.len() as u64) as usize]
    }
}

const TABLES: [&str; 4] = ["ta", "tb", "tc", "td"];

fn condition(d: &mut Dice, alias: &str) -> String {
    let column = d.of(&["k", "x", "y"]);
    let (n, m) = (d.roll(12), d.roll(12));
    match d.roll(8) {
        0 => format!("{alias}.{column} = {n}"),
        1 => format!("{alias}.{column} < {n}"),
        2 => format!("{alias}.{column} BETWEEN {n} AND {m}"),
        3 => format!("{alias}.{column} IN ({n}, {m}, 3)"),
        4 => format!("{alias}.{column} IS NULL"),
        5 => format!("({alias}.x = {n} OR {alias}.y = {m})"),
        6 => format!("{alias}.s LIKE 's{n}%'"),
        _ => format!("{alias}.{column} <> {n}"),
    }
}

fn query(d: &mut Dice) -> String {
    let n = 1 + d.roll(4) as usize;
    let mut from = format!("{} r0", d.of(&TABLES));
    for i in 1..n {
        let (kind, table) = (d.of(&["JOIN", "JOIN", "LEFT JOIN"]), d.of(&TABLES));
        let (mine, other) = (d.of(&["k", "x", "y"]), d.of(&["k", "x", "y"]));
        let to = d.roll(i as u64);
        from += &format!(" {kind} {table} r{i} ON r{i}.{mine} = r{to}.{other}");
        if d.roll(3) == 0 {
            from += &format!(" AND {}", condition(d, &format!("r{i}")));
        }
    }
    let mut conds = Vec::new();
    for _ in 0..d.roll(3) {
        let i = d.roll(n as u64);
        conds.push(condition(d, &format!("r{i}")));
    }
    for _ in 0..d.roll(3) {
        let (i, table) = (d.roll(n as u64), d.of(&TABLES));
        let (mine, other) = (d.of(&["k", "x", "y"]), d.of(&["k", "x", "y"]));
        let more = if d.roll(2) == 0 { String::new() } else { format!(" AND {}", condition(d, "s")) };
        conds.push(match d.roll(4) {
            0 => format!("EXISTS (SELECT 1 FROM {table} s WHERE s.{mine} = r{i}.{other}{more})"),
            1 => format!("NOT EXISTS (SELECT 1 FROM {table} s WHERE s.{mine} = r{i}.{other}{more})"),
            2 => format!("r{i}.{other} IN (SELECT s.{mine} + 0 FROM {table} s WHERE s.k > 2{more})"),
            _ => format!("r{i}.{other} IN (SELECT DISTINCT s.{mine} FROM {table} s WHERE s.y = r{i}.y{more})"),
        });
    }
    let columns: Vec<String> = (0..n).map(|i| format!("r{i}.k")).collect();
    let filter = if conds.is_empty() { String::new() } else { format!(" WHERE {}", conds.join(" AND ")) };
    match d.roll(3) {
        0 => format!("SELECT count(*), sum(r0.k), min({0}), max({0}) FROM {from}{filter}", columns[n - 1]),
        1 => format!("SELECT r0.x, count(*) FROM {from}{filter} GROUP BY r0.x ORDER BY 1"),
        _ => format!("SELECT {0} FROM {from}{filter} ORDER BY {0} LIMIT {1}", columns.join(", "), 1 + d.roll(400)),
    }
}

/// A query as a prepared statement, and the values of its parameters: its numbers.
fn with_parameters(q: &str) -> (String, Vec<String>) {
    let (mut text, mut values) = (String::new(), Vec::new());
    let mut rest = q;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        text.push_str(&rest[..at]);
        let end = rest[at..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |n| at + n);
        if text.ends_with([' ', '(']) && !text.ends_with("BY ") && !text.ends_with("SELECT ") {
            values.push(rest[at..end].to_string());
            text += &format!("${}", values.len());
        } else {
            text.push_str(&rest[at..end]);
        }
        rest = &rest[end..];
    }
    (text + rest, values)
}

/// What nobody has counted: plans of every kind come of it.
fn made_up(d: &mut Dice, table: &crate::catalog::relation::TableRef) -> TableStatistics {
    let rows = 10u64.pow(d.roll(7) as u32);
    let column = |(ordinal, c): (u32, &crate::catalog::Column)| {
        let distinct = 1 + d.roll(rows);
        let mut values: Vec<Vec<u8>> =
            (0..d.roll(5)).flat_map(|n| key_of(&crate::types::Datum::Int(n as i64 * 3), &c.ty)).collect();
        if c.ty == Type::Text {
            values.clear();
        }
        let common = values.iter().take(1).map(|v| (v.clone(), 0.3)).collect();
        ColumnStatistics { ordinal, type_oid: c.ty.oid(), nulls: 0.1, width: 8.0, distinct, common, bounds: values }
    };
    TableStatistics { at: Timestamp::default(), rows, columns: table.live_columns().map(column).collect() }
}

#[tokio::test]
async fn no_answer_depends_on_statistics() {
    use crate::env::Environment;
    let env = MemEnvironment::new(&["us-east1"]);
    let mut s = session(&env).await;
    for (i, table) in TABLES.iter().enumerate() {
        s.query_text(&format!("CREATE TABLE {table} (k INT8 PRIMARY KEY, x INT8, y INT8, s TEXT, INDEX (x), INDEX (y, x))"))
            .await
            .unwrap();
        let rows = [40, 13, 90, 1][i];
        let insert = format!(
            "INSERT INTO {table} SELECT i, NULLIF(i * 7 % 11, 4), NULLIF(i * {} % 5, 0), 's' || i % 13 FROM generate_series(1, {rows}) i",
            i + 2
        );
        s.query_text(&insert).await.unwrap();
    }
    let mut dice = Dice(20);
    let queries: Vec<String> = (0..400).map(|_| query(&mut dice)).collect();
    let mut answers = Vec::new();
    for q in &queries {
        answers.push(s.query_text(q).await.unwrap_or_else(|e| panic!("{q}: {e}"))[0].rows.clone());
    }
    let mut plans = std::collections::BTreeSet::new();
    let prepared: Vec<(String, Vec<String>)> = queries.iter().map(|q| with_parameters(q)).collect();
    for (n, (text, _)) in prepared.iter().enumerate() {
        s.query_text(&format!("PREPARE q{n} AS {text}")).await.unwrap_or_else(|e| panic!("{text}: {e}"));
    }
    for round in 0..6 {
        let catalog = env.catalog();
        for table in catalog.descriptors.values().filter_map(crate::catalog::relation::TableRef::new) {
            match round {
                0 => drop(s.query_text("ANALYZE").await.unwrap()),
                _ => crate::analyze::keep(&env, &[(table.id, made_up(&mut dice, &table))]).await.unwrap(),
            }
        }
        for (n, (q, before)) in queries.iter().zip(&answers).enumerate() {
            let now = s.query_text(q).await.unwrap_or_else(|e| panic!("{q}: {e}"))[0].rows.clone();
            assert_eq!(*before, now, "{q}");
            let values = &prepared[n].1;
            let list = if values.is_empty() { String::new() } else { format!("({})", values.join(", ")) };
            let now = s.query_text(&format!("EXECUTE q{n}{list}")).await.unwrap_or_else(|e| panic!("{q}: {e}"))[0].rows.clone();
            assert_eq!(*before, now, "{} of {list}", prepared[n].0);
            let plan = &s.query_text(&format!("EXPLAIN {q}")).await.unwrap()[0].rows;
            plans.insert(
                plan.iter()
                    .flatten()
                    .flatten()
                    .filter_map(|l| l.split("->").nth(1)?.split("  (").next().map(str::trim).map(String::from))
                    .filter(|l| l.contains("Join"))
                    .collect::<Vec<_>>(),
            );
        }
    }
    assert!(plans.len() > 30, "they are planned in {} ways only", plans.len());
}

/// Keys of small numbers are short, and those of negative ones the other way round: a number lies
/// between two others where its value does, and so it does around zero.
#[test]
fn numbers_lie_between_others_by_their_value() {
    use crate::types::numeric::Numeric;
    let column = |key: &dyn Fn(i64) -> Vec<u8>| ColumnStatistics {
        bounds: (-10..=10).map(|n| key(n * 10_000)).collect(),
        distinct: 200_000,
        ..ColumnStatistics::default()
    };
    let integer = |n: i64| key_of(&Datum::Int(n), &Type::Int4).unwrap();
    let float = |n: i64| key_of(&Datum::Float(n as f64), &Type::Float8).unwrap();
    let numeric = |n: i64| key_of(&Datum::Numeric(Numeric::from(n)), &Type::Numeric(None)).unwrap();
    let kinds: [(Type, &dyn Fn(i64) -> Vec<u8>); 3] =
        [(Type::Int4, &integer), (Type::Float8, &float), (Type::Numeric(None), &numeric)];
    for (ty, key) in kinds {
        let column = column(key);
        for (low, high) in [(-100_000, 100_000), (30, 348), (-400, -1), (-7_000, 7_000), (1, 2), (50_030, 50_348)] {
            let part = column.below(&key(high), &ty) - column.below(&key(low), &ty);
            let expected = (high - low) as f64 / 200_000.0;
            assert!((part - expected).abs() < 1e-9, "{ty:?} from {low} to {high}: {part}, expected {expected}");
        }
    }
}
