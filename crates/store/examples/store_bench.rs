//! Times point reads, short scans, applying and flushing, in memory and on disk:
//! `cargo run --release -p meridian-store --example store_bench [rows]`.
//!
//! Both ways of flushing (files written directly, batches through the journal) are timed in the
//! same run, one after the other.

use bytes::Bytes;
use meridian_base::id::{GroupId, LogPosition, NodeId, TxnId};
use meridian_base::key::{Key, KeyRange, Target};
use meridian_base::record::Committed;
use meridian_base::time::Timestamp;
use meridian_base::txn::{ColumnMask, Write};
use meridian_store::{Backend, GroupStore, MemoryDisk, Options, ScanLimits, Store};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

const READS: u64 = 200_000;
const SCANS: u64 = 5_000;

/// Microseconds per call.
#[allow(clippy::disallowed_methods)] // A bench measures real time.
fn time(what: &str, calls: u64, mut call: impl FnMut(u64)) {
    let start = Instant::now();
    (0..calls).for_each(&mut call);
    println!("  {what:<44} {:>9.3} us", start.elapsed().as_secs_f64() * 1e6 / calls as f64);
}

fn key(i: u64) -> Key {
    Key::new(&[&[0, 0, 0, 1], &i.to_be_bytes()[..]].concat())
}

/// Rows in an order that is not the keys'.
fn shuffled(n: u64, rows: u64) -> u64 {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15) % rows
}

fn apply(group: &GroupStore, n: u64, rows: u64) {
    let value = Some(Bytes::from(vec![n as u8; 100]));
    let writes = vec![Write { key: key(shuffled(n, rows)), value, columns: ColumnMask::ALL }];
    let txn = Committed { id: TxnId { hlc: Timestamp(n), gateway: NodeId(1) }, at: Timestamp(n), writes };
    group.apply(LogPosition { index: n, term: 1 }, &[txn]).expect("applying");
}

fn run(name: &str, backend: Backend, options: Options, rows: u64) {
    println!("{name}, {rows} rows of 100 bytes");
    let store = Store::open(backend, options).expect("opening");
    let group: Arc<GroupStore> = store.group(GroupId(1)).expect("a group");
    time("apply a row", rows, |n| apply(&group, n + 1, rows));
    let now = group.applied_ts();
    let read = |n| drop(group.get(key(shuffled(n + 1, rows)).as_bytes(), now).expect("a read"));
    time("get, in the row table", READS, read);
    group.cut(Bytes::new());
    time("flush of all rows", 1, |_| assert!(group.flush_step().expect("a flush")));
    for n in 0..rows / 10 {
        apply(&group, rows + n + 1, rows);
    }
    group.cut(Bytes::new());
    time("flush of a tenth of the rows, replaced", 1, |_| assert!(group.flush_step().expect("a flush")));
    let now = group.applied_ts();
    time("get", READS, |n| drop(group.get(key(shuffled(n + 1, rows)).as_bytes(), now).expect("a read")));
    let limits = ScanLimits { rows: 50, bytes: 1 << 20 };
    time("scan of 50", SCANS, |n| {
        let range = KeyRange::new(key(shuffled(n, rows)), key(u64::MAX));
        drop(group.scan(&range, now, false, limits).expect("a scan"));
    });
    time("visit of 10,000", SCANS / 100, |n| {
        let (range, limits) = (KeyRange::new(key(n * 997 % rows), key(u64::MAX)), ScanLimits { rows: 10_000, bytes: 1 << 30 });
        let mut bytes = 0;
        let rest = group.visit(&range, now, false, limits, true, &mut |_, _, value| {
            bytes += value.len();
            ControlFlow::Continue(())
        });
        assert!(rest.is_ok() && bytes > 0);
    });
    time("changed_after, nothing changed", READS, |n| {
        let target = Target::Range(KeyRange::new(key(shuffled(n, rows)), key(u64::MAX)));
        assert!(group.changed_after(&target, ColumnMask::ALL, now).expect("an answer").is_none());
    });
}

fn main() {
    let rows = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(200_000);
    let cached = Options { cache_bytes_max: 1 << 30, ..Options::default() };
    run("memory, all cached", Backend::Memory(MemoryDisk::new()), cached.clone(), rows);
    for (name, ingest_rows_min, cache_bytes_max) in [
        ("disk, flushed as files, all cached", 1, 1 << 30),
        ("disk, flushed as files, nothing cached", 1, 0),
        ("disk, flushed as batches, nothing cached", usize::MAX, 0),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options { ingest_rows_min, cache_bytes_max, ..Options::default() };
        run(name, Backend::Fjall { path: folder.path().to_owned() }, options, rows);
    }
}
