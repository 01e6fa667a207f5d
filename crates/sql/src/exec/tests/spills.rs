//! Sorts that have no room in memory.

use super::*;
use crate::temporary::InMemory;
use std::sync::atomic::{AtomicU64, Ordering};

const MANY: &str = "create table many (id int primary key, a int, b text, c numeric, d text[]);
    insert into many select g, (g * 7919) % 101, 'x' || (g * 31) % 1000, nullif(g % 13, 0)::numeric / 4,
        array['y' || g, null] from generate_series(1, 20000) as g;";

/// Some orders: of ties, of what is computed, of NULLs, both ways.
const ORDERS: [&str; 6] = ["a", "a desc, b", "c nulls first, a", "c desc, upper(b), id desc", "d desc", "a % 3, (id, b) desc"];

/// Hands out files, and may damage what is read from them.
#[derive(Default)]
pub(super) struct Files {
    written: AtomicU64,
    is_damaged: bool,
}

impl Files {
    pub(super) fn open(self: &Arc<Files>) -> Arc<dyn Temporary> {
        Arc::new(Watched { file: InMemory::default(), of: self.clone() })
    }
    fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }
}

struct Watched {
    file: InMemory,
    of: Arc<Files>,
}

impl Temporary for Watched {
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.of.written.fetch_add(data.len() as u64, Ordering::Relaxed);
        self.file.write_at(offset, data)
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.file.read_at(offset, buf)?;
        if self.of.is_damaged && offset > 0 {
            buf[buf.len() / 2] ^= 1;
        }
        Ok(())
    }
}

/// Runs a query with so much memory, and with temporary files.
async fn spilling(env: &MemEnvironment, query: &str, memory: usize) -> (Vec<Row>, u64) {
    let files = Arc::new(Files::default());
    let (affected, rows, _) = run_with(env, query, &[], memory, Some(files.clone()), ExecOptions::default()).await;
    affected.unwrap_or_else(|e| panic!("{query}: {e}"));
    (rows, files.written())
}

#[test]
fn rows_that_have_no_room_are_sorted_through_a_file() {
    block_on(async {
        let env = after(MANY).await;
        for order in ORDERS {
            for limit in ["", "offset 1000 limit 14000"] {
                // Not among the columns: nothing but the sort gives the order.
                let query = format!("select b, c, d, id from (select * from many order by {order} offset 0) as m {limit}");
                let (whole, expected, _) = run_in(&env, &query, &[], MEMORY_BYTES_MAX).await;
                whole.unwrap();
                assert_eq!(run_in(&env, &query, &[], 1_500_000).await.0.unwrap_err().sqlstate(), "53200", "{order}");
                let (rows, written) = spilling(&env, &query, 1_500_000).await;
                assert!(rows == expected, "{order} {limit}");
                assert!(written > 1_000_000, "{order}");
            }
        }
    });
}

#[test]
fn first_rows_that_have_no_room_go_through_a_file() {
    block_on(async {
        let env = after(MANY).await;
        for order in ORDERS {
            let query = format!("select b, c, d, id from many order by {order} limit 1000 offset 12000");
            let (whole, expected, _) = run_in(&env, &query, &[], MEMORY_BYTES_MAX).await;
            whole.unwrap();
            let (rows, written) = spilling(&env, &query, 1_500_000).await;
            assert!(rows == expected && rows.len() == 1000, "{order}");
            assert!(written > 500_000, "{order}");
        }
    });
}

#[test]
fn a_temporary_file_has_a_limit_and_damage_is_found() {
    block_on(async {
        let env = after(MANY).await;
        let query = "select * from many order by b";
        let options = ExecOptions { temporary_bytes_max: Some(600 << 10), ..ExecOptions::default() };
        let (affected, _, _) = run_with(&env, query, &[], 1_500_000, Some(Arc::default()), options).await;
        let e = affected.unwrap_err();
        assert_eq!((e.sqlstate(), e.message()), ("53400", "temporary file size exceeds temp_file_limit (600kB)"));
        let damaged = Arc::new(Files { is_damaged: true, ..Files::default() });
        let (affected, _, _) = run_with(&env, query, &[], 1_500_000, Some(damaged), ExecOptions::default()).await;
        assert_eq!(affected.unwrap_err().sqlstate(), "XX001");
    });
}

#[test]
fn explain_says_how_much_of_a_sort_was_on_disk() {
    block_on(async {
        let env = after(MANY).await;
        let query = "explain analyze select * from many order by b";
        let (rows, _) = spilling(&env, query, 1_500_000).await;
        let lines: Vec<String> = rows.iter().map(|row| format!("{:?}", row[0])).collect();
        assert!(lines.iter().any(|line| line.contains("Disk: ") && line.contains(" kB")), "{lines:?}");
        let (_, rows, _) = run_in(&env, query, &[], MEMORY_BYTES_MAX).await;
        assert!(rows.iter().all(|row| !format!("{:?}", row[0]).contains("Disk")));
    });
}

/// Statements over more groups or more different rows than there is room for.
const GROUPS: [&str; 12] = [
    "select id, count(*), sum(a), max(b) from many group by id",
    "select b, count(*), min(id), sum(c) from many group by b",
    "select id % 15000 as k, count(*) filter (where a > 50), max(b), sum(c) from many group by k",
    "select b, c, count(distinct a) from many group by b, c",
    "select (id, b), count(*) from many as m group by 1",
    "select distinct b, a, c from many",
    "select id, d from many union select id + 3000, array['y' || id, null] from many",
    "select a, b from many intersect select a, b from many where id % 3 = 0",
    "select a % 7, c from many intersect all select a % 7, c from many where id < 3000",
    "select b, c from many except select b, c from many where id % 2 = 0",
    "select a, c from many except all select a, c from many where id % 5 > 1",
    "select distinct id % 4000, c from (select * from many union all select * from many) as m",
];

#[test]
fn groups_that_have_no_room_go_through_a_file() {
    block_on(async {
        let env = after(MANY).await;
        for query in GROUPS {
            for batch in [None, Some(0), Some(3)] {
                batch::use_batches_of(batch);
                let (whole, mut expected, _) = run_in(&env, query, &[], MEMORY_BYTES_MAX).await;
                whole.unwrap();
                let (mut rows, written) = spilling(&env, query, 1_500_000).await;
                batch::use_batches_of(None);
                assert!(written > 10_000, "{query}");
                // A DISTINCT says nothing of the order, and gives what it held first.
                if !query.contains("group by") {
                    expected.sort();
                    rows.sort();
                }
                assert!(rows == expected, "{query}, batches of {batch:?}");
            }
        }
    });
}

#[test]
fn a_union_gives_its_first_rows_at_once() {
    block_on(async {
        let env = after(MANY).await;
        for query in
            ["select id from many union all select id / 0 from many limit 5", "select 1 union select id / 0 from many limit 1"]
        {
            let (affected, rows, _) = run_in(&env, query, &[], MEMORY_BYTES_MAX).await;
            affected.unwrap();
            assert!(!rows.is_empty(), "{query}");
        }
    });
}

/// Joins of a right side that has no room, of each kind, with keys that are NULL, with other
/// conditions, and in an order that the left side gives.
const JOINS: [&str; 10] = [
    "select x.id, y.id, y.b from many as x join many as y on x.id = y.id + 1",
    "select x.id, y.d from many as x join many as y on x.b = y.b and x.a < y.a",
    "select x.id, y.id, y.c from many as x left join many as y on x.c = y.id and y.a > 30",
    "select x.b, y.id from many as x right join many as y on x.c * 400 = y.id",
    "select x.id, y.id from (select * from many where id % 3 = 0) as x full join many as y on x.c * 4 = y.c * 4 + y.id - 1",
    "select id from many where id + 3 in (select id from many where b like 'x%')",
    "select id from many as x where exists (select 1 from many as y where y.b = x.b and y.a < x.a)",
    "select id from many as x where not exists (select 1 from many as y where y.id = x.id + 7)",
    "select x.id, y.b from many as x join many as y on x.b = y.b order by x.id",
    "select x.id, y.b from many as x left join many as y on y.id = x.a * 60 order by x.id limit 14000",
];

#[test]
fn joins_that_have_no_room_go_through_files() {
    block_on(async {
        let env = after(MANY).await;
        for query in JOINS {
            for batch in [None, Some(0)] {
                batch::use_batches_of(batch);
                let (whole, mut expected, _) = run_in(&env, query, &[], MEMORY_BYTES_MAX).await;
                whole.unwrap();
                let (mut rows, written) = spilling(&env, query, 2_000_000).await;
                batch::use_batches_of(None);
                assert!(written > 10_000, "{query}");
                if !query.contains("order by") {
                    expected.sort();
                    rows.sort();
                }
                assert!(rows == expected, "{query}, batches of {batch:?}");
            }
        }
    });
}
