//! Random histories of one group, with failovers, lost appends, re-sent commits, garbage collection
//! and skewed clocks, judged by the naive model: the transactions executed one after the other in
//! the order of their timestamps.
//!
//! * T2: every read of a committed transaction saw the newest version below its commit timestamp,
//!   column by column.
//! * T3: every read of a read-only transaction saw the newest version at or below its snapshot, and
//!   none appeared later.
//! * T4: a transaction commits once, and a commit that is sent again gets the same answer.
//! * T6: what was acknowledged before a transaction began is below its snapshot.

use crate::rng::Rng;
use crate::store::Store;
use bytes::Bytes;
use meridian_base::record::{Committed, Payload, Record, SchemaGrant};
use meridian_base::{
    Clock, ColumnMask, CommitOutcome, CommitRequest, GroupId, Key, KeyRange, LogPosition, NodeId, ReadEntry, SchemaUse,
    SchemaVersion, Target, Timestamp, TxnId, Write,
};
use meridian_region::{Certified, Engine, GroupState, Moment, PlantedBug, ReadGate, Rules, Versions};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

const MAX_OFFSET: Duration = Duration::from_millis(250);
pub const KEYS: u8 = 6;
pub const COLUMNS: u32 = 3;
const GROUP: GroupId = GroupId(2);

pub fn key(k: u8) -> Key {
    Key::new(&[k])
}
pub fn keys_of(target: &Target) -> Vec<Key> {
    (0..KEYS).map(key).filter(|k| target.contains(k.as_bytes())).collect()
}
pub fn single(column: u32) -> ColumnMask {
    ColumnMask(1 << column)
}

/// A row says who wrote each of its columns.
pub type Row = [TxnId; COLUMNS as usize];

pub fn encode(row: &Row) -> Bytes {
    row.iter().flat_map(|id| [id.hlc.0.to_le_bytes(), u64::from(id.gateway.0).to_le_bytes()]).flatten().collect()
}
fn decode(bytes: &[u8]) -> Row {
    let word = |i: usize| u64::from_le_bytes(bytes[i * 8..][..8].try_into().expect("eight bytes"));
    std::array::from_fn(|c| TxnId { hlc: Timestamp(word(2 * c)), gateway: NodeId(word(2 * c + 1) as u32) })
}

/// What a read saw: per key and column, who wrote it.
pub type Seen = Vec<(Key, u32, Option<TxnId>)>;

pub fn look(store: &Store, target: &Target, columns: ColumnMask, s: Timestamp) -> Seen {
    let mut seen = Vec::new();
    for k in keys_of(target) {
        let row = store.get(&k, s).and_then(|v| v.value.as_deref()).map(decode);
        let read = (0..COLUMNS).filter(|c| single(*c).intersects(columns));
        seen.extend(read.map(|c| (k.clone(), c, row.map(|row| row[c as usize]))));
    }
    seen
}

#[derive(Clone)]
struct Transaction {
    s: Timestamp,
    read_only: bool,
    entries: Vec<(ReadEntry, Seen)>,
    /// The newest version it read.
    newest: Timestamp,
    /// What was acknowledged when it began.
    acknowledged: Timestamp,
}

struct Sent {
    request: CommitRequest,
    transaction: Transaction,
    answer: Option<CommitOutcome>,
}

struct World {
    rng: Rng,
    rules: Rules,
    large_from: usize,
    now: u64,
    skew: i64,
    node: NodeId,
    clock: Clock,
    state: GroupState,
    store: Store,
    engine: Engine,
    /// Certified, not in a payload yet.
    pending: Vec<Committed>,
    /// In the log, not applied yet.
    appended: VecDeque<Payload>,
    open: Vec<Option<Transaction>>,
    sent: BTreeMap<TxnId, Sent>,
    read_only: Vec<Transaction>,
    committed: BTreeMap<TxnId, Timestamp>,
    /// Every version that ever was.
    all: Store,
    acknowledged: Timestamp,
    conflicts: usize,
}

type Checked = Result<(), String>;

/// From this seed on, who writes two keys is a large transaction.
const WITH_LARGE: u64 = 10_000;

impl World {
    fn new(seed: u64, rules: Rules) -> World {
        let state = GroupState::new(rules);
        let large_from = if seed < WITH_LARGE { usize::MAX } else { 1 };
        let engine = Engine::start(NodeId(1), GROUP, &state, rules).with_index_limit(12).with_large_from(large_from);
        let mut world = World {
            rng: Rng::new(seed),
            rules,
            large_from,
            now: 10_000_000,
            skew: 0,
            node: NodeId(1),
            clock: Clock::new(MAX_OFFSET),
            state,
            store: Store::default(),
            engine,
            pending: Vec::new(),
            appended: VecDeque::new(),
            open: vec![None; 4],
            sent: BTreeMap::new(),
            read_only: Vec::new(),
            committed: BTreeMap::new(),
            all: Store::default(),
            acknowledged: Timestamp::MIN,
            conflicts: 0,
        };
        let grant = SchemaGrant { version: SchemaVersion(1), bound: Timestamp::MAX, seq: 1, ..SchemaGrant::default() };
        world.appended.push_back(Payload { records: vec![Record::Schema(grant)], ..Payload::default() });
        world
    }

    fn physical(&self) -> u64 {
        self.now.saturating_add_signed(self.skew)
    }
    fn schema() -> SchemaUse {
        SchemaUse { version: SchemaVersion(1), descriptors: vec![], ..SchemaUse::default() }
    }

    fn begin(&mut self) -> Transaction {
        // Gateways' clocks are skewed too.
        let behind = self.rng.below(200_000);
        let gateway_now = Timestamp::from_micros(self.now - behind);
        let read_only = self.rng.one_in(3);
        let snapshot = match read_only && self.rng.one_in(2) {
            true => self.engine.read_only_snapshot(&self.state, &World::schema()),
            false => self.engine.fresh_snapshot(&self.state, gateway_now, &self.clock, self.physical()),
        };
        Transaction { s: snapshot.at, read_only, entries: Vec::new(), newest: Timestamp::MIN, acknowledged: self.acknowledged }
    }

    fn read(&mut self, transaction: &mut Transaction) {
        let columns = match self.rng.one_in(3) {
            true => ColumnMask::ALL,
            false => ColumnMask(1 + self.rng.below((1 << COLUMNS) - 1)),
        };
        let first = self.rng.below(KEYS as u64) as u8;
        let target = match self.rng.one_in(3) {
            true => Target::Range(KeyRange::new(key(first), key(first + 1 + self.rng.below(4) as u8))),
            false => Target::Key(key(first)),
        };
        let s = transaction.s;
        let physical_micros = self.physical();
        let moment = Moment { state: &self.state, versions: &self.store, clock: &self.clock, physical_micros };
        let gate = self.engine.read_gate(&moment, &target, columns, s);
        if gate == ReadGate::Ready {
            let seen = look(&self.store, &target, columns, s);
            let newest = keys_of(&target).iter().filter_map(|k| Some(self.store.get(k, s)?.at)).max();
            transaction.newest = transaction.newest.max(newest.unwrap_or_default());
            transaction.entries.push((ReadEntry { target, columns, until: s }, seen));
        }
    }

    fn commit(&mut self, transaction: Transaction) -> Checked {
        if transaction.read_only {
            self.read_only.push(transaction);
            return Ok(());
        }
        let id = TxnId { hlc: self.clock.tick(self.physical()), gateway: NodeId(7) };
        let mut writes = BTreeMap::new();
        for _ in 0..1 + self.rng.below(2) {
            let k = key(self.rng.below(KEYS as u64) as u8);
            writes.insert(k.clone(), self.write(&transaction, id, k));
        }
        let min_commit = transaction.newest;
        let reads = transaction.entries.iter().map(|(entry, _)| entry.clone()).collect();
        let writes = writes.into_values().map(Write::into).collect();
        let request = CommitRequest { id, reads, writes, min_commit, schema: World::schema(), global: Default::default() };
        self.sent.insert(id, Sent { request, transaction, answer: None });
        self.send(id)
    }

    /// Who has read the whole row may change a part of it; who has not, claims all of it
    /// (counterexample 29).
    fn write(&mut self, transaction: &Transaction, id: TxnId, k: Key) -> Write {
        let whole = transaction.entries.iter().find(|(e, _)| e.columns == ColumnMask::ALL && e.target.contains(k.as_bytes()));
        let row: Option<Vec<TxnId>> =
            whole.and_then(|(_, seen)| seen.iter().filter(|(key, ..)| *key == k).map(|(.., writer)| *writer).collect());
        if self.rng.one_in(4) {
            return Write { key: k, value: None, columns: ColumnMask::ALL };
        }
        match row.map(|row| Row::try_from(row).expect("every column")) {
            Some(mut row) => {
                let columns = ColumnMask(1 + self.rng.below((1 << COLUMNS) - 1));
                (0..COLUMNS).filter(|c| single(*c).intersects(columns)).for_each(|c| row[c as usize] = id);
                Write { key: k, value: Some(encode(&row)), columns }
            }
            None => Write { key: k, value: Some(encode(&[id; COLUMNS as usize])), columns: ColumnMask::ALL },
        }
    }

    /// Sends a commit, perhaps again.
    fn send(&mut self, id: TxnId) -> Checked {
        let physical = self.physical();
        let sent = self.sent.get_mut(&id).expect("a known transaction");
        let answer = match self.engine.certify(&self.state, &self.store, &sent.request, &self.clock, physical) {
            Certified::Append { at, writes } => {
                if let Some(CommitOutcome::Conflict(_)) = sent.answer {
                    return Err(format!("{id} was refused and is certified now"));
                }
                self.pending.push(Committed { id, at, writes });
                return Ok(());
            }
            Certified::Refuse(_) => return Err(format!("{id} has no delta")),
            Certified::Wait(_) | Certified::RecheckGlobal | Certified::NotReady(_) => return Ok(()),
            Certified::Done(answer) => answer,
        };
        match (&sent.answer, &answer) {
            (Some(CommitOutcome::Committed(a)), CommitOutcome::Committed(b)) if a != b => Err(format!("{id} at {a} and {b}")),
            (Some(CommitOutcome::Committed(a)), CommitOutcome::Conflict(_)) => Err(format!("{id} at {a}, then refused")),
            _ => {
                self.conflicts += usize::from(matches!(answer, CommitOutcome::Conflict(_)));
                if let CommitOutcome::Committed(at) = answer {
                    self.acknowledged = self.acknowledged.max(at);
                }
                sent.answer = Some(answer);
                Ok(())
            }
        }
    }

    fn cut(&mut self) {
        let batch = std::mem::take(&mut self.pending);
        if let Some(last) = batch.last() {
            self.engine.appended(last.at);
        }
        let physical = self.physical();
        let lease = self.engine.renew_lease(&self.state, &self.clock, physical);
        let closed = self.engine.closed_target(&self.state, &self.clock, physical);
        let watermark = self.engine.watermark(&self.state, &self.clock, physical);
        let records = lease.map(Record::Lease).into_iter().chain((!batch.is_empty()).then_some(Record::Batch(batch)));
        self.appended.push_back(Payload { closed, watermark, records: records.collect() });
    }

    fn apply(&mut self, acknowledge: bool) -> Checked {
        let Some(payload) = self.appended.pop_front() else { return Ok(()) };
        let position = LogPosition { index: self.state.applied().index + 1, term: 1 };
        for record in &payload.records {
            let Record::Batch(txns) = record else { continue };
            for txn in txns {
                self.store.apply(txn);
                self.all.apply(txn);
                if let Some(first) = self.committed.insert(txn.id, txn.at) {
                    return Err(format!("{} commits at {first} and at {}", txn.id, txn.at));
                }
                if acknowledge {
                    self.acknowledged = self.acknowledged.max(txn.at);
                    self.sent.get_mut(&txn.id).expect("a known transaction").answer = Some(CommitOutcome::Committed(txn.at));
                }
            }
        }
        self.state.apply(position, &payload);
        self.engine.applied(&self.state, &payload, &mut Vec::new());
        Ok(())
    }

    fn fail_over(&mut self) -> Checked {
        self.engine.lost();
        self.pending.clear();
        let durable = self.rng.below(self.appended.len() as u64 + 1) as usize;
        self.appended.truncate(durable);
        self.node = NodeId(1 + self.node.0 % 3);
        // The new primary applies what it has before it starts; nobody was told.
        while !self.appended.is_empty() {
            self.apply(false)?;
        }
        self.skew = self.rng.below(240_000) as i64 - 120_000;
        self.clock = Clock::new(MAX_OFFSET);
        let bytes = self.state.encode();
        self.state = GroupState::decode(&bytes, self.rules).map_err(|e| e.to_string())?;
        self.engine =
            Engine::start(self.node, GROUP, &self.state, self.rules).with_index_limit(12).with_large_from(self.large_from);
        if !self.rng.one_in(3) {
            self.now += self.engine.start_wait(self.physical()).as_micros() as u64;
        }
        Ok(())
    }

    fn step(&mut self) -> Checked {
        let who = self.rng.below(self.open.len() as u64) as usize;
        match self.rng.below(100) {
            0..10 => self.now += self.rng.below(20_000),
            10..45 => {
                let mut transaction = self.open[who].take().unwrap_or_else(|| self.begin());
                self.read(&mut transaction);
                self.open[who] = Some(transaction);
            }
            45..65 => {
                let transaction = self.open[who].take().unwrap_or_else(|| self.begin());
                self.commit(transaction)?;
            }
            65..70 => {
                // A reply was lost, or the network repeats itself.
                let back = self.rng.below(6) as usize;
                if let Some(id) = self.sent.keys().rev().nth(back).copied() {
                    self.send(id)?;
                }
            }
            70..82 => self.cut(),
            82..96 => self.apply(true)?,
            96 | 97 => {
                let behind = Duration::from_millis(self.rng.below(300));
                self.store.collect(self.state.closed().minus(behind));
            }
            98 if self.rng.one_in(3) => self.fail_over()?,
            _ => {}
        }
        Ok(())
    }

    /// Executes the history in the order of its timestamps.
    fn judge(&self) -> Checked {
        for (id, at) in &self.committed {
            let transaction = &self.sent[id].transaction;
            if *at <= transaction.acknowledged {
                return Err(format!("{id} commits at {at} after {} was acknowledged", transaction.acknowledged));
            }
            self.judge_reads(transaction, at.prev(), &format!("{id}, committed at {at}"))?;
        }
        for transaction in &self.read_only {
            if !transaction.entries.is_empty() && transaction.s < transaction.acknowledged {
                return Err(format!("a read at {} misses what was acknowledged at {}", transaction.s, transaction.acknowledged));
            }
            self.judge_reads(transaction, transaction.s, &format!("a read-only transaction at {}", transaction.s))?;
        }
        Ok(())
    }

    fn judge_reads(&self, transaction: &Transaction, through: Timestamp, who: &str) -> Checked {
        for (entry, seen) in &transaction.entries {
            let should = look(&self.all, &entry.target, entry.columns, through);
            if let Some((saw, should)) = seen.iter().zip(&should).find(|(a, b)| a != b) {
                return Err(format!("{who}, saw {saw:?} at {} and not {should:?}", entry.until));
            }
        }
        Ok(())
    }
}

fn run(seed: u64, rules: Rules) -> Result<World, String> {
    let mut world = World::new(seed, rules);
    for _ in 0..1_500 {
        world.step()?;
    }
    world.judge()?;
    Ok(world)
}

#[test]
fn every_history_is_serial_in_the_order_of_its_timestamps() {
    let (mut committed, mut read_only, mut conflicts) = (0, 0, 0);
    for seed in (0..400).chain(WITH_LARGE..WITH_LARGE + 100) {
        let world = run(seed, Rules::ALL).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        committed += world.committed.len();
        read_only += world.read_only.iter().filter(|t| !t.entries.is_empty()).count();
        conflicts += world.conflicts;
        assert!(seed >= WITH_LARGE || world.store.gc_threshold() > Timestamp::MIN);
    }
    // What the test promises to try.
    assert!(
        committed > 20_000 && read_only > 5_000 && conflicts > 5_000,
        "{committed} committed, {read_only} read-only, {conflicts} in conflict"
    );
}

#[test]
fn planted_bugs_of_certification_are_found() {
    let of_other_tests = [
        PlantedBug::SchemaLeaseByBoundOnly,
        PlantedBug::SchemaRegrantByDelayedMessage,
        PlantedBug::SchemaReadOnce,
        PlantedBug::StepNotTiedToGrants,
        PlantedBug::ReplicaReadSkipsPrepared,
        PlantedBug::RoundIgnoresWriters,
        PlantedBug::DropReservationEarly,
        PlantedBug::ErrorNotConfirmed,
        PlantedBug::RoundLeftOut,
        PlantedBug::ReservingReadHoldsNothing,
        PlantedBug::ReleaseBeforeClock,
        PlantedBug::GlobalReadsHoldToCommit,
        PlantedBug::GlobalReadsNotRechecked,
        PlantedBug::UncertaintySkipped,
        PlantedBug::GlobalReadsNotClosed,
        PlantedBug::ReaderDoesNotWait,
        PlantedBug::WriterDoesNotWait,
        PlantedBug::GlobalReadsHoldToClosed,
        PlantedBug::CommitBelowSchemaStep,
        PlantedBug::BuildNotClosed,
        PlantedBug::BuildSkipsPrepared,
        PlantedBug::BuildHoldsNothing,
        PlantedBug::PartClosesEarly,
    ];
    let of_this_test = |bug: &PlantedBug| !bug.is_of_shares() && !of_other_tests.contains(bug);
    for bug in PlantedBug::ALL.into_iter().filter(of_this_test) {
        let found = (0..2_000).chain(WITH_LARGE..WITH_LARGE + 500).any(|seed| run(seed, Rules::without(bug)).is_err());
        assert!(found, "{} was not found", bug.name());
    }
}
