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

#[test]
fn windows_and_with_queries_that_have_no_room_go_through_a_file() {
    block_on(async {
        let env = after(MANY).await;
        for query in [
            "select id, d, sum(a) over (partition by b order by id), rank() over (order by c, id) from many",
            "select id, d, count(*) over (partition by a % 7, b), lag(b) over (order by a, id) from many",
            "with m as materialized (select * from many) select x.id, y.d from m as x join m as y on x.id = y.id + 1",
            "with m as materialized (select * from many) select id, d, (select max(a) from m as y where y.id = x.id % 3) from m as x
                where id < 40",
            "with recursive r (n, s) as (select 1, repeat('x', 100) union all select n + 1, s from r where n < 10000)
                select n, s from r",
        ] {
            let (whole, mut expected, _) = run_in(&env, query, &[], MEMORY_BYTES_MAX).await;
            whole.unwrap();
            let (mut rows, written) = spilling(&env, query, 1_500_000).await;
            expected.sort();
            rows.sort();
            assert!(rows == expected && rows.len() > 30, "{query}");
            assert!(written > 500_000, "{query}");
        }
    });
}

#[test]
fn statements_write_earlier_while_others_hold_much() {
    block_on(async {
        let env = after(MANY).await;
        let query = "select * from many order by b, id";
        let (whole, expected, _) = run_in(&env, query, &[], MEMORY_BYTES_MAX).await;
        whole.unwrap();
        let pool = Arc::new(MemoryPool::of(32 << 20));
        let run = async |query: &str| {
            let (files, machine) = (Arc::new(Files::default()), Machine { pool: pool.clone(), ..Machine::default() });
            let (options, memory) = (ExecOptions::default(), MEMORY_BYTES_MAX);
            let (affected, rows, _) = run_on(&env, query, &[], memory, Some(files.clone()), options, machine).await;
            (affected, rows, files.written())
        };
        let (affected, rows, written) = run(query).await;
        affected.unwrap();
        assert!(rows == expected && written == 0, "there is room");
        let mut others = Taken::default();
        others.cover(26 << 20, &pool).unwrap();
        let (affected, rows, written) = run(query).await;
        affected.unwrap();
        assert!(rows == expected && written > 1_000_000, "{written}");
        // Where there are no files it fails, and the others keep what they have.
        let query = "select * from (select many.* from many, generate_series(1, 6)) as m order by b, id";
        let machine = Machine { pool: pool.clone(), ..Machine::default() };
        let (affected, _, _) = run_on(&env, query, &[], MEMORY_BYTES_MAX, None, ExecOptions::default(), machine).await;
        let error = affected.unwrap_err();
        assert_eq!((error.sqlstate(), error.message()), ("53200", "out of memory"));
        assert_eq!(pool.taken(), 25 << 20);
        drop(others);
        run(query).await.0.unwrap();
        assert_eq!(pool.taken(), 0);
    });
}
