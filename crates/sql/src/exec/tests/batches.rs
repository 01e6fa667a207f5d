//! Aggregations and first rows in batches answer and read what they do row by row.

use super::*;
use crate::testing::with_batches_of;
use meridian_base::{GroupId, KeyRange};

const ITEMS: &str =
    "create table items (id int primary key, a int, b int8, n numeric(12,2), m numeric, f float8, s text, d date, ok bool);
    insert into items select g, case when g % 7 = 0 then null else g % 10 end, g * 1000003,
        (g % 100) / 8.0, case g % 5 when 0 then g / 3.0 when 1 then null else g end,
        g / 4.0, case when g % 11 = 0 then null else 'text ' || g % 6 end, date '2020-01-01' + g % 40, g % 3 = 0
        from generate_series(1, 1500) as g;
    alter table items add column late int default 5;
    insert into items (id, a, b, m, f, s, late) values (5000, 2147483647, 9223372036854775807, 'NaN', 'infinity', '', 9),
        (5001, 1, 0, 1e40, -0.0, 'text 1', null), (5002, null, null, null, 'NaN', null, 7);";

const QUERIES: &[&str] = &[
    "select count(*) from items",
    "select count(*), count(a), sum(a), avg(a), min(a), max(a) from items where id > 5",
    "select count(*) from items where a = 3 and b > 1000 or s = 'text 1'",
    "select a, count(*), sum(b), avg(n), sum(n * (1 - n)), max(s), min(d) from items group by a",
    "select s, a % 3, sum(m), avg(m), min(m), max(m), count(m) from items where id < 5000 group by 1, 2 order by 1, 2",
    "select m, count(*) from items group by m",
    "select f, count(*) from items where id > 1400 group by f",
    "select sum(f), avg(f), min(f), max(f) from items where id < 5000",
    "select sum(f) from items",
    "select ok, bool_and(a > 0), bool_or(a > 8), every(a is null) from items group by ok",
    "select d, string_agg(s, ',' order by id) from items where id < 200 group by d",
    "select d, string_agg(s, ',') , array_agg(a) from items where id < 200 group by d",
    "select stddev(a), variance(n), count(distinct a) from items",
    "select stddev(a), variance(n) from items",
    "select count(*) filter (where a > 4), sum(a) filter (where ok), sum(n) filter (where s like '%3') from items",
    "select late, count(*), sum(late) from items group by late having count(*) > 0 order by late desc",
    "select sum(a + 1) from items where id < 5000",
    "select sum(a + 1) from items",
    "select sum(b + b) from items",
    "select sum(b) from items",
    "select sum(10 / (a - 3)) from items",
    "select sum(10 / (a - 3)) from items where a <> 3",
    "select count(*) from items where a <> 3 and 10 / (a - 3) > 1",
    "select count(*) from items where a = 3 or 10 / (a - 3) > 1",
    "select count(*) from items where 10 / (a - 3) > 1",
    "select sum(case when a = 3 then 0 else 10 / (a - 3) end) from items",
    "select sum(f * 1e308) from items where id < 5000",
    "select sum(n * m) from items where id <> 5000",
    "select sum(m * m), sum(m - n) from items",
    "select count(*) from items where m > n and m < 100.5 and n between 1 and 5.25",
    "select count(*) from items where s in ('text 1', 'text 2') and a in (1, 2, null)",
    "select count(*) from items where s not in ('text 1', 'text 2')",
    "select count(*) from items where a in (1, 2, 3, 4, 5, 6, 7, 8, 9, 0)",
    "select count(*) from items where d > date '2020-01-20' and upper(s) like 'TEXT%'",
    "select count(*) from items where id > (select min(id) + 10 from items)",
    "select count(*) from items where id > null",
    "select sum(x) from (select a * 2 as x from items where ok) as i",
    "select max(id), sum(random() * 0) from items",
    "select a, sum(n) from items where id between 100 and 400 group by a limit 3",
    "select (a, s), count(*) from items where id < 60 group by 1",
    "select a from items group by a",
    "select id, a from items order by a limit 7",
    "select id, a from items order by a desc limit 7",
    "select id, a from items order by a nulls first limit 250",
    "select id, a from items order by a desc nulls last limit 250",
    "select * from items order by s desc nulls last, f limit 12 offset 5",
    "select id from items order by ok, a desc, d, id desc limit 40",
    "select a from items where ok and n > 3 order by d desc, s limit 20",
    "select id, m from items order by m desc limit 5",
    "select id, m from items order by m limit 1490",
    "select id, f from items order by f desc limit 5",
    "select id, b from items order by -b limit 3",
    "select id from items order by n * (1 - n), b limit 4",
    "select id, s from items order by upper(s), late desc limit 4",
    "select id from items order by 10 / (a - 3) limit 3",
    "select id from items where a <> 3 order by 10 / (a - 3) limit 3",
    "select id from items where 10 / (a - 3) > 1 order by id desc limit 3",
    "select id, late from items order by late desc nulls last, id desc limit 3",
    "select id from items order by a, id limit 5000",
    "select id from items order by a limit 0",
    "select id from items order by a limit null offset 1490",
    "select id from items where id > null order by a limit 3",
    "select id from items order by random() * 0, a limit 3",
    "select max(id) from (select id from items order by a desc limit 200) as i",
    "select id, a from items order by a",
    "select late, id as x, id as y from items order by s desc, f, id offset 1400",
    "select s, id from items order by m desc nulls last, id limit (select 7)",
    "select id from items order by a, id limit 5 offset (select max(a) from items where id < 5000)",
    "select id, (select max(i.a) from items as i where i.s = items.s) from items order by b desc, id limit 3",
    "select random() * 0, upper(s), id from items order by b, id limit 3",
    "select upper(s), id from items order by upper(s), id limit 3 offset 700",
    "select 10 / (a - 3), id from items order by id limit 1",
    "select 10 / (a - 3), (select 1) from items order by 1",
    "select 10 / (a - 3), (select 1), id from items where a <> 3 order by 1, 3 limit 3",
    "select count(*) from items where exists (select 1 from items as i where i.a = items.late)",
    "select id from items where not exists (select 1 from items as i where i.n = items.m and i.ok) order by id",
    "select id from items where not exists (select 1 from items as i where i.s = items.s and i.f > items.b)",
    "select id from items where (a, s) in (select late, s from items where id > 100) order by id desc",
    "select count(*) from items where exists (select 1 from items as i where 10 / (i.a - 3) = items.a)",
    "select count(*) from items where not exists (select 1 from items as i where i.id > null and i.a = items.a)",
    "select 7 as seven, s from items order by seven, s desc nulls first, id limit 4",
];

/// What a statement answers, as text, and what it read: ranges that meet are one.
async fn told(env: &MemEnvironment, query: &str, rows: usize) -> (String, Vec<(GroupId, KeyRange, ColumnMask)>) {
    let (affected, rows, txn) = with_batches_of(rows, run_in(env, query, &[], MEMORY_BYTES_MAX)).await;
    let mut reads: Vec<(GroupId, KeyRange, ColumnMask)> = Vec::new();
    for (group, target, columns) in txn.reads() {
        let Target::Range(range) = target else { continue };
        match reads.last_mut() {
            Some((g, last, c)) if g == group && c == columns && last.end == range.start => last.end = range.end.clone(),
            _ => reads.push((*group, range.clone(), *columns)),
        }
    }
    let answer = match affected {
        Ok(_) => format!("{rows:?}"),
        Err(e) => format!("{} {}", e.sqlstate(), e.message()),
    };
    (answer, reads)
}

#[test]
fn batches_of_any_size_answer_and_read_what_rows_do() {
    block_on(async {
        let env = after(ITEMS).await;
        let mut errors = 0;
        for query in QUERIES {
            let by_row = told(&env, query, 0).await;
            errors += usize::from(by_row.0.starts_with("22"));
            for rows in [1, 3, 100, 1024] {
                let (answer, reads) = told(&env, query, rows).await;
                assert_eq!(answer, by_row.0, "{query} in batches of {rows}");
                if by_row.0.starts_with('[') {
                    assert_eq!(reads, by_row.1, "{query} in batches of {rows}");
                }
            }
        }
        assert!(errors > 4, "errors are among the answers: {errors}");
    });
}

#[test]
fn own_writes_are_seen_by_batches() {
    block_on(async {
        let env = after(ITEMS).await;
        let mut session = session(&env);
        session.query_text("begin; delete from items where id <= 1490; update items set a = 100 where id = 1491").await.unwrap();
        let told = session.query_text("select count(*), max(a) from items where id < 3000; rollback").await.unwrap();
        assert_eq!(told[0].rows, [[Some("10".to_string()), Some("100".to_string())]]);
    });
}

#[test]
fn explain_says_what_runs_in_batches_and_counts_its_rows() {
    block_on(async {
        let env = after(ITEMS).await;
        let explained = |query: &'static str| {
            let env = &env;
            async move {
                let (_, rows, _) = run_in(env, query, &[], MEMORY_BYTES_MAX).await;
                rows.into_iter().map(|row| row[0].to_text(&Type::Text, &EvalContext::default())).collect::<Vec<_>>()
            }
        };
        let lines = explained("explain select a, sum(n) from items where ok group by a").await;
        assert_eq!(lines[0], "Group in batches");
        let lines = explained("explain select count(distinct a) from items").await;
        assert_eq!(lines[0], "Aggregate");
        let lines = explained("explain select sum(random()) from items").await;
        assert_eq!(lines[0], "Aggregate");
        let lines = explained("explain select id, a from items order by a limit 3").await;
        assert_eq!(lines[1].trim(), "->  Sort in batches", "{lines:?}");
        let lines = explained("explain select s, id from items order by a").await;
        assert_eq!(lines[0].trim(), "Sort in batches", "{lines:?}");
        let lines = explained("explain select upper(s), id from items order by a").await;
        assert!(lines.iter().all(|line| !line.contains("batches")), "{lines:?}");
        let lines = explained("explain analyze select count(*) from items where ok").await;
        assert!(lines[0].starts_with("Aggregate in batches  (actual") && lines[0].ends_with("rows=1 loops=1)"), "{lines:?}");
        assert!(lines[1].contains("Seq Scan on items") && lines[1].ends_with("rows=500 loops=1)"), "{lines:?}");
    });
}

#[test]
fn first_rows_are_accounted_for_while_they_are_held() {
    block_on(async {
        let env = after(ITEMS).await;
        let (affected, _, _) = run_in(&env, "select * from items order by a limit 400", &[], 50_000).await;
        assert_eq!(affected.unwrap_err().sqlstate(), "53200");
        let (affected, _, _) = run_in(&env, "select * from items order by a limit 4", &[], 300_000).await;
        affected.unwrap();
    });
}

#[test]
fn computed_keys_are_accounted_for() {
    block_on(async {
        let env = after(ITEMS).await;
        for query in [
            "select count(*) from (select id from items order by repeat('x' || id, 200) offset 1) as i",
            "select id from items order by repeat('x' || id, 200) limit 1400",
            "select id, random() from items order by repeat('x' || id, 200)",
            "select array_agg(id order by repeat('x' || id, 200)) from items",
            "select row_number() over (order by repeat('x' || id, 200)) from items",
            "select count(*) over (partition by repeat('x' || id, 200)) from items",
            "select 1 from items as x join items as y on repeat('x' || x.id, 200) = repeat('x' || y.id, 200)",
        ] {
            for rows in [0, 1024] {
                let (affected, _, _) = with_batches_of(rows, run_in(&env, query, &[], 700_000)).await;
                assert_eq!(affected.unwrap_err().sqlstate(), "53200", "{query}");
                with_batches_of(rows, run_in(&env, query, &[], 5_000_000)).await.0.unwrap();
            }
        }
        for query in [
            "select count(*) from (select id from items order by -id, id + 1, id + 2, id + 3, id + 4, id + 5, id + 6 offset 1) as i",
            "select row_number() over (order by -id, id + 1, id + 2, id + 3, id + 4, id + 5, id + 6) from items",
            "select count(*) from (select jsonb_build_array(repeat('x', 500), id) as j from items order by j offset 1) as i",
            "select count(*) from (select (repeat('7', 900) || id)::numeric as n from items order by n offset 1) as i",
        ] {
            let (affected, _, _) = run_in(&env, query, &[], 300_000).await;
            assert_eq!(affected.unwrap_err().sqlstate(), "53200", "{query}");
            run_in(&env, query, &[], 5_000_000).await.0.unwrap();
        }
        // Those of rows that are let go do not count.
        let (affected, _, _) = run_in(&env, "select id from items order by repeat('x' || id, 200) limit 4", &[], 900_000).await;
        affected.unwrap();
    });
}

#[test]
fn what_aggregates_gather_is_accounted_for() {
    block_on(async {
        let env = after(ITEMS).await;
        for of in ["array_agg(v)", "string_agg(v, ',')", "json_agg(v)", "jsonb_object_agg(id, v)"] {
            // In one group, in a few, and in groups that are done one after the other.
            for groups in ["", "group by id % 3", "group by id order by id limit 1400"] {
                let query =
                    format!("select length({of}::text) from (select id, repeat('x' || id, 50) as v from items) as i {groups}");
                for rows in [0, 1024] {
                    with_batches_of(rows, run_in(&env, &query, &[], 5_000_000)).await.0.unwrap();
                    let (affected, _, _) = with_batches_of(rows, run_in(&env, &query, &[], 60_000)).await;
                    assert_eq!(affected.unwrap_err().sqlstate(), "53200", "{query}");
                }
            }
        }
    });
}

#[test]
fn groups_are_accounted_for() {
    block_on(async {
        let env = after(ITEMS).await;
        let (affected, _, _) = run_in(&env, "select id, count(*) from items group by id", &[], 50_000).await;
        assert_eq!(affected.unwrap_err().sqlstate(), "53200");
    });
}
