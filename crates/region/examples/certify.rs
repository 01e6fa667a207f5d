//! Keys certified per second on one core, from certification to release, by key size and shape of
//! transaction.
//!
//! `cargo run --release -p meridian-region --example certify`. The budget is 1 M keys/s. A key
//! counts once if it is read, written, or both; the commit's release and the index's trimming are
//! part of the time.
//!
//! A second table is the time to certify one blind write, without its release, while prepared
//! transactions hold ranges between the keys that are written.

use bytes::Bytes;
use meridian_base::limits::CONFLICT_INDEX_ENTRIES_MAX;
use meridian_base::record::{Committed, Lease, Payload, Prepared, Record, Reserved, SchemaGrant};
use meridian_base::{
    Clock, ColumnMask, CommitRequest, GroupId, Key, KeyRange, LogPosition, Mutation, NodeId, ReadEntry, SchemaUse, Target,
    Timestamp, TxnId, Write,
};
use meridian_region::{Certified, Engine, GroupState, Preparation, Rules, Turn, Versions};
use std::time::Duration;

/// Every read is recent, as nearly all are: the store is not asked.
struct Unasked;
impl Versions for Unasked {
    fn newest(&self, _: &Key) -> Option<Timestamp> {
        None
    }
    fn changed_after(&self, _: &Target, _: ColumnMask, _: Timestamp) -> Option<(Key, Timestamp)> {
        None
    }
    fn newest_values(&self, _: &KeyRange) -> Vec<(Key, Bytes)> {
        Vec::new()
    }
    fn gc_threshold(&self) -> Timestamp {
        Timestamp::MIN
    }
}

#[derive(Clone, Copy)]
struct Shape {
    name: &'static str,
    key_bytes: usize,
    reads: usize,
    ranges: usize,
    writes: usize,
}

const KEYS: u64 = 1_000_000;
const BATCH: usize = 32;
const PHYSICAL_MICROS: u64 = 1_700_000_000_000_000;

fn key(bytes: usize, n: u64) -> Key {
    let mut key = vec![7u8; bytes];
    key[bytes - 8..].copy_from_slice(&n.to_be_bytes());
    Key::new(&key)
}

struct Bench {
    state: GroupState,
    engine: Engine,
    clock: Clock,
    index: u64,
    random: u64,
}

impl Bench {
    fn new() -> Bench {
        let state = GroupState::new(Rules::ALL);
        let engine = Engine::start(NodeId(1), GroupId(2), &state, Rules::ALL);
        let mut bench = Bench { state, engine, clock: Clock::new(Duration::from_millis(250)), index: 0, random: 1 };
        let clock = &bench.clock;
        bench.engine.renew_lease(&bench.state, clock, PHYSICAL_MICROS).expect("the first lease");
        let lease = Lease { primary: NodeId(1), ceiling: Timestamp::MAX };
        let grant = SchemaGrant { bound: Timestamp::MAX, seq: 1, ..SchemaGrant::default() };
        bench.apply(vec![Record::Lease(lease), Record::Schema(grant)]);
        bench
    }
    fn apply(&mut self, records: Vec<Record>) {
        self.index += 1;
        // The watermark follows closely: the outcome table is not what is measured.
        let payload = Payload { records, watermark: self.state.newest(), ..Payload::default() };
        self.state.apply(LogPosition { index: self.index, term: 1 }, &payload);
        self.engine.applied(&self.state, &payload, &mut Vec::new());
    }
    fn random_key(&mut self) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % KEYS
    }

    fn request(&mut self, shape: Shape) -> CommitRequest {
        let until = self.clock.now(PHYSICAL_MICROS);
        let mut reads = Vec::new();
        let mut writes = Vec::new();
        for i in 0..shape.reads.max(shape.writes) {
            let key = key(shape.key_bytes, self.random_key());
            if i < shape.reads {
                reads.push(ReadEntry { target: Target::Key(key.clone()), columns: ColumnMask::ALL, until });
            }
            if i < shape.writes {
                writes.push(Write { key, value: Some(Bytes::new()), columns: ColumnMask::ALL }.into());
            }
        }
        for _ in 0..shape.ranges {
            let start = self.random_key();
            let range = KeyRange::new(key(shape.key_bytes, start), key(shape.key_bytes, start + 1_000));
            reads.push(ReadEntry { target: Target::Range(range), columns: ColumnMask::ALL, until });
        }
        self.request_of(reads, writes)
    }
    fn request_of(&mut self, reads: Vec<ReadEntry>, writes: Vec<Mutation>) -> CommitRequest {
        let id = TxnId { hlc: self.clock.tick(PHYSICAL_MICROS), gateway: NodeId(9) };
        CommitRequest { id, reads, writes, min_commit: Timestamp::MIN, schema: SchemaUse::default(), global: Default::default() }
    }

    /// So many transactions are prepared, each of which has read a range between two keys that
    /// follow each other.
    fn hold_ranges(&mut self, count: u64, key_bytes: usize) {
        for n in 0..count {
            let before = n * (KEYS / count);
            let between = KeyRange::new(key(key_bytes, before).successor(), key(key_bytes, before + 1));
            let (target, columns) = (Target::Range(between), ColumnMask::ALL);
            let until = self.clock.now(PHYSICAL_MICROS);
            let request = self.request_of(vec![ReadEntry { target: target.clone(), columns, until }], Vec::new());
            let answer = self.engine.prepare(&self.state, &Unasked, &request, Turn::Early, &self.clock, PHYSICAL_MICROS);
            let Preparation::Append { at, writes } = answer else { panic!("nothing is in the way: {answer:?}") };
            let participants = vec![GroupId(2), GroupId(3)];
            let reads = vec![Reserved { target, columns }];
            let prepared = Prepared { id: request.id, at, participants, reads, writes };
            self.apply(vec![Record::Prepared(Box::new(prepared))]);
        }
    }

    /// One batch: certified, then released.
    #[allow(clippy::disallowed_methods)] // a measurement, not the engine
    fn batch(&mut self, shape: Shape) -> Measured {
        let requests: Vec<CommitRequest> = (0..BATCH).map(|_| self.request(shape)).collect();
        let started = std::time::Instant::now();
        let mut batch = Vec::with_capacity(BATCH);
        let mut keys = 0;
        for request in requests {
            let answer = self.engine.certify(&self.state, &Unasked, &request, &self.clock, PHYSICAL_MICROS);
            // A few touch each other and wait; they count for nothing.
            if let Certified::Append { at, writes } = answer {
                keys += shape.reads.max(shape.writes) + shape.ranges;
                batch.push(Committed { id: request.id, at, writes });
            }
        }
        let certified = started.elapsed();
        self.apply(vec![Record::Batch(batch)]);
        Measured { keys, certified, released: started.elapsed() }
    }
}

/// What a batch took.
struct Measured {
    /// How many were certified.
    keys: usize,
    /// Until the last of its transactions was certified.
    certified: Duration,
    /// Until all were released.
    released: Duration,
}

/// The median batch by this figure: a batch takes some 30 µs, so that the few in which the machine
/// did something else do not count.
fn median(mut bench: Bench, shape: Shape, figure: impl Fn(&Measured) -> f64) -> f64 {
    let mut warm = 0;
    while warm < 2 * CONFLICT_INDEX_ENTRIES_MAX {
        warm += bench.batch(shape).keys;
    }
    let mut figures: Vec<f64> = (0..20_000 / shape.reads.max(shape.writes)).map(|_| figure(&bench.batch(shape))).collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn main() {
    println!("{:<34} {:>9} {:>14}", "transaction", "key bytes", "M keys/s");
    for key_bytes in [12, 32, 64] {
        for shape in [
            Shape { name: "1 key read and written", key_bytes, reads: 1, ranges: 0, writes: 1 },
            Shape { name: "10 keys read and written", key_bytes, reads: 10, ranges: 0, writes: 10 },
            Shape { name: "10 keys read, 2 of them written", key_bytes, reads: 10, ranges: 0, writes: 2 },
            Shape { name: "1 range read, 2 keys written", key_bytes, reads: 0, ranges: 1, writes: 2 },
        ] {
            let rate = median(Bench::new(), shape, |batch| batch.keys as f64 / batch.released.as_secs_f64());
            println!("{:<34} {:>9} {:>14.2}", shape.name, key_bytes, rate / 1e6);
        }
    }
    println!("\n{:<34} {:>9} {:>14}", "transaction", "held", "ns to certify");
    let shape = Shape { name: "1 key written", key_bytes: 12, reads: 0, ranges: 0, writes: 1 };
    for held in [0, 1_000] {
        let mut bench = Bench::new();
        bench.hold_ranges(held, shape.key_bytes);
        let nanos = median(bench, shape, |batch| batch.certified.as_nanos() as f64 / BATCH as f64);
        println!("{:<34} {:>9} {:>14.0}", shape.name, held, nanos);
    }
}
