//! Random histories of transactions over three groups with skewed clocks, each with a replica that
//! lags behind, failovers and lost appends: the engines certify, reserve, decide and answer rounds;
//! the votes are counted here, by the one rule there is (all YES: the largest timestamp). Judged
//! like `serializability`: executed again in the order of the timestamps, over all groups.
//!
//! * T1: two transactions that conflict never share a timestamp.
//! * T2, T3, T6 as there. Acknowledged is a transaction over several groups as soon as its votes
//!   are known, however late its groups learn of it.

use crate::rng::Rng;
use crate::serializability::{COLUMNS, KEYS, Row, Seen, encode, key, keys_of, look, single};
use crate::store::Store;
use meridian_base::record::{Committed, Outcome, Payload, Prepared, Record, Reserved, SchemaGrant};
use meridian_base::{
    Clock, ColumnMask, CommitOutcome, CommitRequest, GroupId, Key, KeyRange, Ledger, LogPosition, Mutation, NodeId, ReadEntry,
    SchemaUse, SchemaVersion, Standing, Target, Timestamp, TxnId, Write,
};
use meridian_region::{
    Certified, Deciding, Engine, GroupState, Moment, PlantedBug, Preparation, ReadCheck, ReadGate, Rules, Turn, WaitFor,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

const MAX_OFFSET: Duration = Duration::from_millis(250);
const GROUPS: usize = 3;

type Checked = Result<(), String>;
/// Per group, key and column, the last commit timestamp that was acknowledged.
type Acknowledged = BTreeMap<(usize, Key, u32), Timestamp>;

/// Where a transaction reads.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    ReadWrite,
    /// One group, at the primary.
    ReadOnly,
    /// Several groups, checked by a round.
    Round,
    /// Several groups, at one closed timestamp of their replicas.
    Stale(Timestamp),
    /// Several groups, read when they are prepared.
    Reserving,
}

#[derive(Clone)]
struct Read {
    group: usize,
    entry: ReadEntry,
    seen: Seen,
    is_fresh: bool,
}

#[derive(Clone)]
struct Transaction {
    kind: Kind,
    home: usize,
    s: BTreeMap<usize, Timestamp>,
    reads: Vec<Read>,
    newest: Timestamp,
    acknowledged: Acknowledged,
    /// A read at the primary that has to wait.
    waits: Option<(Target, ColumnMask)>,
}

/// A transaction whose commit was sent.
struct Sent {
    transaction: Transaction,
    slices: BTreeMap<usize, CommitRequest>,
    /// `None` is a NO.
    votes: BTreeMap<usize, Option<Timestamp>>,
    committed: Option<Timestamp>,
}

/// A round on its way.
struct Asked {
    transaction: Transaction,
    t: Timestamp,
    missing: BTreeSet<usize>,
}

struct Group {
    id: GroupId,
    skew: i64,
    clock: Clock,
    state: GroupState,
    store: Store,
    engine: Engine,
    /// Certified, in the order of timestamps, not in a payload yet.
    pending: Vec<Record>,
    others: Vec<Record>,
    /// Their vote is on its way into the log; there is only one.
    voting: BTreeSet<TxnId>,
    appended: VecDeque<Payload>,
    log: Vec<Payload>,
    replica: (GroupState, Store),
}

struct World {
    rng: Rng,
    rules: Rules,
    now: u64,
    ids: u64,
    groups: Vec<Group>,
    open: Vec<Option<Transaction>>,
    sent: BTreeMap<TxnId, Sent>,
    rounds: Vec<Asked>,
    read_only: Vec<(Transaction, Option<Timestamp>)>,
    all: Vec<Store>,
    acknowledged: Acknowledged,
    seen: Counts,
}

/// What the test promises to try.
#[derive(Debug, Default)]
struct Counts {
    single: usize,
    several: usize,
    aborted: usize,
    rounds: usize,
    stale: usize,
    moved: usize,
    waited_for_outcome: usize,
    reserving: usize,
    claimed: usize,
}

fn schema() -> SchemaUse {
    SchemaUse { version: SchemaVersion(1), descriptors: vec![], ..SchemaUse::default() }
}

impl Group {
    fn new(n: usize, skew: i64, rules: Rules) -> Group {
        let id = GroupId(2 + n as u32);
        let state = GroupState::new(rules);
        let engine = Engine::start(NodeId(1), id, &state, rules).with_index_limit(12);
        let grant = SchemaGrant { version: SchemaVersion(1), bound: Timestamp::MAX, seq: 1, ..SchemaGrant::default() };
        let first = Payload { records: vec![Record::Schema(grant)], ..Payload::default() };
        Group {
            id,
            skew,
            clock: Clock::new(MAX_OFFSET),
            replica: (state.clone(), Store::default()),
            state,
            store: Store::default(),
            engine,
            pending: Vec::new(),
            others: Vec::new(),
            voting: BTreeSet::new(),
            appended: VecDeque::from([first]),
            log: Vec::new(),
        }
    }

    fn refuse(&mut self, id: TxnId) {
        if self.voting.insert(id) {
            self.engine.give_up_claim(id, &mut Vec::new());
            self.others.push(Record::Refused(id));
        }
    }

    fn cut(&mut self, physical: u64) {
        let mut records: Vec<Record> = std::mem::take(&mut self.others);
        let mut batch = Vec::new();
        for record in std::mem::take(&mut self.pending) {
            match record {
                Record::Batch(txns) => batch.extend(txns),
                other => {
                    if let Record::Prepared(p) = &other {
                        self.engine.appended(p.at);
                    }
                    records.push(other);
                }
            }
        }
        if let Some(last) = batch.last() {
            self.engine.appended(last.at);
            records.push(Record::Batch(batch));
        }
        records.extend(self.engine.renew_lease(&self.state, &self.clock, physical).map(Record::Lease));
        let closed = self.engine.closed_target(&self.state, &self.clock, physical);
        let watermark = self.engine.watermark(&self.state, &self.clock, physical);
        self.appended.push_back(Payload { closed, watermark, records });
    }
}

/// What every replica does with a payload: the store first.
fn replay(state: &mut GroupState, store: &mut Store, payload: &Payload) -> Vec<Committed> {
    let mut visible = Vec::new();
    for record in &payload.records {
        match record {
            Record::Batch(txns) => visible.extend(txns.iter().cloned()),
            Record::Outcome(outcome) => visible.extend(state.effect(outcome)),
            _ => {}
        }
    }
    visible.iter().for_each(|txn| store.apply(txn));
    state.apply(LogPosition { index: state.applied().index + 1, term: 1 }, payload);
    visible
}

fn columns_of(mask: ColumnMask) -> impl Iterator<Item = u32> {
    (0..COLUMNS).filter(move |c| single(*c).intersects(mask))
}

impl Read {
    fn touched(&self) -> Vec<(usize, Key, u32)> {
        let columns = |k: Key| columns_of(self.entry.columns).map(move |c| (self.group, k.clone(), c));
        keys_of(&self.entry.target).into_iter().flat_map(columns).collect()
    }
}

impl World {
    fn new(seed: u64, rules: Rules) -> World {
        let mut rng = Rng::new(seed);
        let groups = (0..GROUPS).map(|n| Group::new(n, rng.below(200_000) as i64 - 100_000, rules)).collect();
        World {
            rng,
            rules,
            now: 10_000_000,
            ids: 0,
            groups,
            open: vec![None; 5],
            sent: BTreeMap::new(),
            rounds: Vec::new(),
            read_only: Vec::new(),
            all: vec![Store::default(); GROUPS],
            acknowledged: Acknowledged::new(),
            seen: Counts::default(),
        }
    }

    fn physical(&self, g: usize) -> u64 {
        self.now.saturating_add_signed(self.groups[g].skew)
    }
    fn group(&mut self) -> usize {
        self.rng.below(GROUPS as u64) as usize
    }

    fn begin(&mut self) -> Transaction {
        let kind = match self.rng.below(12) {
            0 => Kind::ReadOnly,
            10..=11 => Kind::Reserving,
            1..=2 => Kind::Round,
            3 => Kind::Stale(self.groups.iter().map(|g| g.replica.0.closed()).min().expect("groups")),
            _ => Kind::ReadWrite,
        };
        let home = self.group();
        let acknowledged = self.acknowledged.clone();
        Transaction { kind, home, s: BTreeMap::new(), reads: Vec::new(), newest: Timestamp::MIN, acknowledged, waits: None }
    }

    /// Reads something; `false` if the transaction must start again.
    fn read(&mut self, txn: &mut Transaction) -> bool {
        let columns = match self.rng.one_in(2) {
            true => ColumnMask::ALL,
            false => ColumnMask(1 + self.rng.below((1 << COLUMNS) - 1)),
        };
        let first = self.rng.below(KEYS as u64) as u8;
        let target = match self.rng.one_in(4) {
            true => Target::Range(KeyRange::new(key(first), key(first + 1 + self.rng.below(3) as u8))),
            false => Target::Key(key(first)),
        };
        let g = if txn.kind == Kind::ReadOnly || txn.waits.is_some() || self.rng.one_in(2) { txn.home } else { self.group() };
        let (target, columns) = txn.waits.take().unwrap_or((target, columns));
        if txn.kind == Kind::Reserving {
            let entry = ReadEntry { target, columns, until: ReadEntry::AT_PREPARE };
            txn.reads.push(Read { group: g, entry, seen: Seen::new(), is_fresh: true });
            return true;
        }
        let is_fresh = txn.kind == Kind::ReadOnly || (g == txn.home && !matches!(txn.kind, Kind::Stale(_)));
        let (until, store) = match is_fresh {
            true => match self.read_fresh(g, txn, &target, columns) {
                Ok(Some(s)) => (s, &self.groups[g].store),
                Ok(None) => {
                    txn.waits = Some((target, columns));
                    return true;
                }
                Err(()) => return false,
            },
            false => {
                let (state, store) = &self.groups[g].replica;
                let s = if let Kind::Stale(s) = txn.kind { s } else { state.closed() };
                let until = state.replica_read(&target, columns, s);
                if matches!(txn.kind, Kind::Stale(_)) && until < s {
                    return true;
                }
                (until, store)
            }
        };
        let seen = look(store, &target, columns, until);
        let newest = keys_of(&target).iter().filter_map(|k| Some(store.get(k, until)?.at)).max();
        txn.newest = txn.newest.max(newest.unwrap_or_default());
        txn.reads.push(Read { group: g, entry: ReadEntry { target, columns, until }, seen, is_fresh });
        true
    }

    fn read_fresh(
        &mut self,
        g: usize,
        txn: &mut Transaction,
        target: &Target,
        columns: ColumnMask,
    ) -> Result<Option<Timestamp>, ()> {
        let physical = self.physical(g);
        let group = &mut self.groups[g];
        let mut s = *txn.s.entry(g).or_insert_with(|| match txn.kind {
            Kind::ReadOnly => group.engine.read_only_snapshot(&group.state, &schema()).at,
            // A gateway's clock may be behind what was acknowledged by then.
            _ => group.engine.fresh_snapshot(&group.state, Timestamp::from_micros(physical - 150_000), &group.clock, physical).at,
        });
        for _ in 0..3 {
            let moment = Moment { state: &group.state, versions: &group.store, clock: &group.clock, physical_micros: physical };
            match group.engine.read_gate(&moment, target, columns, s) {
                ReadGate::Ready => return Ok(Some(s)),
                ReadGate::MoveTo(to) => {
                    self.seen.moved += 1;
                    let here = |r: &&mut Read| r.group == g;
                    let entries: Vec<ReadEntry> = txn.reads.iter_mut().filter(here).map(|r| r.entry.clone()).collect();
                    if !group.engine.move_forward(&group.state, &group.store, &entries, to) {
                        return Err(());
                    }
                    txn.reads.iter_mut().filter(here).for_each(|r| r.entry.until = to);
                    txn.s.insert(g, to);
                    s = to;
                }
                ReadGate::Wait(_) | ReadGate::NotReady(_) => {
                    self.seen.waited_for_outcome += usize::from(group.state.prepared().len() > 0);
                    return Ok(None);
                }
                ReadGate::TooOld => return Err(()),
            }
        }
        Ok(None)
    }

    fn commit(&mut self, txn: Transaction) {
        match txn.kind {
            Kind::ReadOnly => return self.read_only.push((txn, None)),
            Kind::Stale(s) => {
                self.seen.stale += txn.reads.len();
                return self.read_only.push((txn, Some(s)));
            }
            Kind::Round => {
                let gateway_now = Timestamp::from_micros(self.physical(txn.home));
                let t = gateway_now.max(txn.newest);
                let missing = txn.reads.iter().map(|r| r.group).collect();
                return self.rounds.push(Asked { transaction: txn, t, missing });
            }
            // One group alone is an ordinary read-only transaction.
            Kind::Reserving if txn.reads.iter().map(|r| r.group).collect::<BTreeSet<_>>().len() < 2 => return,
            Kind::ReadWrite | Kind::Reserving => {}
        }
        self.ids += 1;
        let id = TxnId { hlc: Timestamp(Timestamp::from_micros(self.now).0 + self.ids), gateway: NodeId(7) };
        let mut writes: BTreeMap<usize, BTreeMap<Key, Write>> = BTreeMap::new();
        let writes_max = if txn.kind == Kind::Reserving { 0 } else { 1 + self.rng.below(2) };
        for _ in 0..writes_max {
            let (g, k) = (self.group(), key(self.rng.below(KEYS as u64) as u8));
            let write = self.write(&txn, id, g, k.clone());
            writes.entry(g).or_default().insert(k, write);
        }
        let participants: BTreeSet<usize> = txn.reads.iter().map(|r| r.group).chain(writes.keys().copied()).collect();
        let slice = |g: &usize| {
            let reads = txn.reads.iter().filter(|r| r.group == *g).map(|r| r.entry.clone()).collect();
            let writes = writes.get(g).map(|w| w.values().cloned().map(Write::into).collect()).unwrap_or_default();
            (*g, CommitRequest { id, reads, writes, min_commit: txn.newest, schema: schema(), global: Default::default() })
        };
        let slices = participants.iter().map(slice).collect();
        self.sent.insert(id, Sent { transaction: txn, slices, votes: BTreeMap::new(), committed: None });
    }

    fn write(&mut self, txn: &Transaction, id: TxnId, g: usize, k: Key) -> Write {
        let whole = |r: &&Read| r.group == g && r.entry.columns == ColumnMask::ALL && r.entry.target.contains(k.as_bytes());
        let row: Option<Vec<TxnId>> = txn
            .reads
            .iter()
            .find(whole)
            .and_then(|r| r.seen.iter().filter(|(key, ..)| *key == k).map(|(.., writer)| *writer).collect());
        if self.rng.one_in(5) {
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

    /// A commit or a Prepare arrives, for the first time or again.
    fn deliver(&mut self, id: TxnId) -> Checked {
        let physical: Vec<u64> = (0..GROUPS).map(|g| self.physical(g)).collect();
        let give_up = self.rng.one_in(12);
        let sent = self.sent.get_mut(&id).expect("a known transaction");
        let is_single = sent.slices.len() == 1;
        for (g, request) in &sent.slices {
            let group = &mut self.groups[*g];
            if is_single {
                match group.engine.certify(&group.state, &group.store, request, &group.clock, physical[*g]) {
                    Certified::Append { at, writes } => {
                        let txn = Committed { id, at, writes };
                        group.pending.push(Record::Batch(vec![txn]));
                    }
                    Certified::Done(CommitOutcome::Committed(at)) if sent.committed.is_some_and(|before| before != at) => {
                        return Err(format!("{id} at {at} and {:?}", sent.committed));
                    }
                    Certified::Done(CommitOutcome::Committed(at)) if request.writes.is_empty() => sent.committed = Some(at),
                    _ => {}
                }
                continue;
            }
            if group.state.standing(id) != Standing::Unknown || group.voting.contains(&id) {
                continue;
            }
            let turn = if id.hlc.0.is_multiple_of(2) { Turn::Early } else { Turn::Late };
            match group.engine.prepare(&group.state, &group.store, request, turn, &group.clock, physical[*g]) {
                Preparation::Append { at, writes } => {
                    group.voting.insert(id);
                    let reserved = |e: &ReadEntry| Reserved { target: e.target.clone(), columns: e.columns };
                    group.pending.push(Record::Prepared(Box::new(Prepared {
                        id,
                        at,
                        participants: sent.slices.keys().map(|g| GroupId(2 + *g as u32)).collect(),
                        reads: request.reads.iter().map(reserved).collect(),
                        writes,
                    })));
                }
                Preparation::Refuse(_) => group.refuse(id),
                Preparation::Wait(_) if give_up => group.refuse(id),
                Preparation::Wait(_) if request.is_reserving() => self.seen.claimed += 1,
                Preparation::Wait(_) | Preparation::Known | Preparation::RecheckGlobal | Preparation::NotReady(_) => {}
            }
            // The next group hears of it later.
            if self.rng.one_in(4) {
                break;
            }
        }
        Ok(())
    }

    fn apply(&mut self, g: usize, is_heard: bool) {
        let Some(payload) = self.groups[g].appended.pop_front() else { return };
        let group = &mut self.groups[g];
        let visible = replay(&mut group.state, &mut group.store, &payload);
        group.engine.applied(&group.state, &payload, &mut Vec::new());
        group.log.push(payload.clone());
        visible.iter().for_each(|txn| self.all[g].apply(txn));
        for record in &payload.records {
            match record {
                Record::Prepared(p) => self.vote(g, p.id, Some(p.at)),
                Record::Refused(id) => self.vote(g, *id, None),
                Record::Batch(txns) => {
                    for txn in txns {
                        self.committed(txn.id, txn.at, is_heard);
                        self.seen.single += 1;
                    }
                }
                _ => {}
            }
        }
    }

    fn vote(&mut self, g: usize, id: TxnId, vote: Option<Timestamp>) {
        let sent = self.sent.get_mut(&id).expect("a known transaction");
        sent.votes.insert(g, vote);
        if let (Kind::Reserving, Some(at)) = (sent.transaction.kind, vote) {
            // The values travel with the vote: now, or when it is asked for again, from what the
            // store has then.
            for read in sent.transaction.reads.iter_mut().filter(|r| r.group == g) {
                read.seen = look(&self.groups[g].store, &read.entry.target, read.entry.columns, at);
            }
        }
        let at: Option<Vec<Timestamp>> = sent.slices.keys().map(|g| sent.votes.get(g).copied().flatten()).collect();
        if let Some(at) = at.and_then(|votes| votes.into_iter().max()) {
            self.committed(id, at, true);
            self.seen.several += 1;
            self.seen.reserving += usize::from(self.sent[&id].transaction.kind == Kind::Reserving);
        }
        self.seen.aborted += usize::from(vote.is_none());
    }

    fn committed(&mut self, id: TxnId, at: Timestamp, is_heard: bool) {
        let sent = self.sent.get_mut(&id).expect("a known transaction");
        sent.committed = Some(at);
        if is_heard {
            for (g, request) in &sent.slices {
                for write in &request.writes {
                    for column in columns_of(write.columns) {
                        let last = self.acknowledged.entry((*g, write.key.clone(), column)).or_default();
                        *last = at.max(*last);
                    }
                }
            }
        }
    }

    /// The votes have reached the group: of every transaction, or of some.
    fn decide(&mut self, g: usize, all: bool) {
        let physical = self.physical(g);
        let group = &mut self.groups[g];
        let prepared: Vec<TxnId> = group.state.prepared().map(|p| p.id).collect();
        for id in prepared {
            let sent = &self.sent[&id];
            let is_aborted = sent.votes.values().any(Option::is_none);
            if (sent.committed.is_some() || is_aborted) && (all || self.rng.one_in(2)) {
                let answer = group.engine.decide(&group.state, id, sent.committed, &group.clock, physical);
                if let Deciding::Log(outcome) = answer {
                    group.others.push(Record::Outcome(outcome));
                }
            }
        }
    }

    fn round(&mut self) {
        if self.rounds.is_empty() {
            return;
        }
        let i = self.rng.below(self.rounds.len() as u64) as usize;
        let Some(g) = self.rounds[i].missing.first().copied() else {
            let asked = self.rounds.swap_remove(i);
            self.seen.rounds += usize::from(!asked.transaction.reads.is_empty());
            return self.read_only.push((asked.transaction, Some(asked.t)));
        };
        let physical = self.physical(g);
        let (group, asked) = (&mut self.groups[g], &mut self.rounds[i]);
        let here = asked.transaction.reads.iter().filter(|r| r.group == g);
        let entries: Vec<ReadEntry> = here.map(|r| r.entry.clone()).collect();
        match group.engine.read_round(&group.state, &group.store, &entries, asked.t, &group.clock, physical) {
            ReadCheck::Passed => {
                asked.missing.pop_first();
            }
            ReadCheck::Wait(_) | ReadCheck::NotReady(_) => {}
            ReadCheck::Refuse(_) => {
                self.rounds.swap_remove(i);
            }
        }
    }

    fn fail_over(&mut self, g: usize) {
        let keep = self.rng.below(self.groups[g].appended.len() as u64 + 1) as usize;
        self.groups[g].appended.truncate(keep);
        while !self.groups[g].appended.is_empty() {
            self.apply(g, false);
        }
        let group = &mut self.groups[g];
        group.pending.clear();
        group.others.clear();
        group.voting.clear();
        group.state = GroupState::decode(&group.state.encode(), self.rules).expect("what was encoded");
        group.clock = Clock::new(MAX_OFFSET);
        group.skew = self.rng.below(200_000) as i64 - 100_000;
        group.engine = Engine::start(NodeId(1), group.id, &group.state, self.rules).with_index_limit(12);
        // What was open there has lost its primary.
        self.open.iter_mut().for_each(|slot| *slot = slot.take().filter(|t| t.home != g));
        self.now += self.rng.below(2_500_000);
    }

    fn step(&mut self) -> Checked {
        self.now += self.rng.below(8_000);
        let slot = self.rng.below(self.open.len() as u64) as usize;
        let g = self.group();
        match self.rng.below(46) {
            0..=5 => {
                if self.open[slot].is_none() {
                    self.open[slot] = Some(self.begin());
                }
            }
            6..=11 => {
                if let Some(mut txn) = self.open[slot].take()
                    && self.read(&mut txn)
                {
                    self.open[slot] = Some(txn);
                }
            }
            12..=15 => {
                if let Some(txn) = self.open[slot].take() {
                    self.commit(txn);
                }
            }
            16..=21 => {
                let recent: Vec<TxnId> = self.sent.keys().rev().take(6).copied().collect();
                if !recent.is_empty() {
                    let id = recent[self.rng.below(recent.len() as u64) as usize];
                    self.deliver(id)?;
                }
            }
            22..=24 => self.round(),
            25..=29 => {
                let physical = self.physical(g);
                self.groups[g].cut(physical);
            }
            30..=36 => self.apply(g, true),
            37..=41 => self.decide(g, false),
            42 => {
                if self.rng.one_in(20) {
                    self.fail_over(g);
                }
            }
            _ => {
                let entries = 1 + self.rng.below(6) as usize;
                let group = &mut self.groups[g];
                let (state, store) = &mut group.replica;
                for payload in group.log.iter().skip(state.applied().index as usize).take(entries) {
                    replay(state, store, payload);
                }
            }
        }
        Ok(())
    }

    /// No faults any more: every vote is given, every outcome logged.
    fn settle(&mut self) -> Checked {
        for round in 0..20 {
            let open: Vec<TxnId> = self.sent.iter().filter(|(_, s)| s.slices.len() > 1).map(|(id, _)| *id).collect();
            for id in open {
                let has_prepared = self.groups.iter().any(|g| matches!(g.state.standing(id), Standing::Prepared(_)));
                let sent = &self.sent[&id];
                let may_end = has_prepared || sent.transaction.kind == Kind::Reserving;
                let missing: Vec<usize> = sent.slices.keys().copied().filter(|g| !sent.votes.contains_key(g)).collect();
                for g in missing {
                    match self.groups[g].state.standing(id) {
                        Standing::Unknown if may_end => self.groups[g].refuse(id),
                        // What was on its way into the log is there by then.
                        Standing::Forgotten if round > 1 => self.vote(g, id, None),
                        _ => {}
                    }
                }
            }
            for g in 0..GROUPS {
                self.now += 100_000;
                self.decide(g, true);
                let physical = self.physical(g);
                self.groups[g].cut(physical);
                while !self.groups[g].appended.is_empty() {
                    self.apply(g, true);
                }
            }
        }
        for group in &self.groups {
            if let Some(p) = group.state.prepared().next() {
                return Err(format!("{} is prepared for ever at {}: {:?}", p.id, group.id, self.sent[&p.id].votes));
            }
            if group.engine.held_len() > 0 {
                return Err(format!("{} holds reservations of what has ended", group.id));
            }
        }
        Ok(())
    }

    fn judge(&self) -> Checked {
        for (id, sent) in &self.sent {
            let Some(at) = sent.committed else { continue };
            let txn = &sent.transaction;
            self.judge_reads(txn, at.prev(), &format!("{id}, committed at {at}"))?;
            for read in &txn.reads {
                self.judge_order(txn, read.touched(), at, *id)?;
                let shares = |k: &Key| self.all[read.group].get(k, at).is_some_and(|v| v.at == at);
                let own = |k: &Key| sent.slices[&read.group].writes.iter().any(|w| w.key == *k);
                let hit = |k: &Key| {
                    let masks = self.all[read.group].get(k, at).map_or(ColumnMask::NONE, |v| v.columns);
                    shares(k) && !own(k) && masks.intersects(read.entry.columns)
                };
                if keys_of(&read.entry.target).iter().any(hit) {
                    return Err(format!("{id} shares {at} with a transaction that writes what it read"));
                }
            }
            for (g, slice) in &sent.slices {
                // Who writes a row replaces all of it.
                let touched = slice.writes.iter().flat_map(|w| (0..COLUMNS).map(|c| (*g, w.key.clone(), c)));
                self.judge_order(txn, touched.collect(), at, *id)?;
                let wrote = |w: &Mutation| {
                    self.all[*g].get(&w.key, at).is_some_and(|v| v.at == at && v.value.as_ref() == w.change.value())
                };
                if !slice.writes.iter().all(wrote) {
                    return Err(format!("{id} at {at} is not what {} has", self.groups[*g].id));
                }
            }
        }
        for (txn, at) in &self.read_only {
            let Some(s) = at.or(txn.s.values().next().copied()) else { continue };
            self.judge_reads(txn, s, &format!("a {:?} transaction at {s}", txn.kind))?;
            if !matches!(txn.kind, Kind::Stale(_)) {
                for read in &txn.reads {
                    self.judge_order(txn, read.touched(), s.next(), TxnId::default())?;
                }
            }
        }
        Ok(())
    }

    /// T6, where they conflict directly.
    fn judge_order(&self, txn: &Transaction, touched: Vec<(usize, Key, u32)>, at: Timestamp, id: TxnId) -> Checked {
        for place in touched {
            if let Some(before) = txn.acknowledged.get(&place).filter(|before| **before >= at) {
                return Err(format!(
                    "{id} ({:?}) is at {at}, but {place:?} was acknowledged at {before} before it began",
                    txn.kind
                ));
            }
        }
        Ok(())
    }

    fn judge_reads(&self, txn: &Transaction, through: Timestamp, who: &str) -> Checked {
        for read in &txn.reads {
            let should = look(&self.all[read.group], &read.entry.target, read.entry.columns, through);
            if let Some((saw, should)) = read.seen.iter().zip(&should).find(|(a, b)| a != b) {
                let how = if read.is_fresh { "primary" } else { "replica" };
                return Err(format!("{who}, saw {saw:?} at {} ({how} of {}) and not {should:?}", read.entry.until, read.group));
            }
        }
        Ok(())
    }
}

fn run(seed: u64, rules: Rules) -> Result<World, String> {
    let mut world = World::new(seed, rules);
    for _ in 0..2_000 {
        world.step()?;
    }
    world.settle()?;
    world.judge()?;
    Ok(world)
}

#[test]
fn histories_over_several_groups_are_serial_in_the_order_of_their_timestamps() {
    let mut total = Counts::default();
    for seed in 0..300 {
        let world = run(seed, Rules::ALL).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let Counts { single, several, aborted, rounds, stale, moved, waited_for_outcome, reserving, claimed } = world.seen;
        total.single += single;
        total.several += several;
        total.aborted += aborted;
        total.rounds += rounds;
        total.stale += stale;
        total.moved += moved;
        total.waited_for_outcome += waited_for_outcome;
        total.reserving += reserving;
        total.claimed += claimed;
    }
    assert!(total.single > 2_000 && total.several > 2_000 && total.aborted > 2_000, "{total:?}");
    assert!(total.rounds > 1_000 && total.stale > 500 && total.moved > 10 && total.waited_for_outcome > 1_000, "{total:?}");
    assert!(total.reserving > 500 && total.claimed > 500, "{total:?}");
}

#[test]
fn planted_bugs_of_reservations_are_found() {
    let rules = [
        PlantedBug::ReplicaReadSkipsPrepared,
        PlantedBug::RoundIgnoresWriters,
        PlantedBug::DropReservationEarly,
        PlantedBug::SnapshotDoesNotMove,
        PlantedBug::SkipRangeCheck,
        PlantedBug::ReservingReadHoldsNothing,
    ];
    for bug in rules {
        let found = (0..1_000).any(|seed| run(seed, Rules::without(bug)).is_err());
        assert!(found, "{} was not found", bug.name());
    }
}

/// A group that serves, and what makes requests for it.
fn serving() -> (World, u64, impl Fn(u64, Option<Target>, Option<u8>) -> CommitRequest) {
    let mut world = World::new(1, Rules::ALL);
    for _ in 0..3 {
        // The lease, and the schema's grant.
        let physical = world.physical(0);
        world.groups[0].cut(physical);
        world.apply(0, true);
        world.now += 1_000;
    }
    let physical = world.physical(0);
    let first = Timestamp::from_micros(world.now).0;
    let request = move |n: u64, read: Option<Target>, written: Option<u8>| {
        let id = TxnId { hlc: Timestamp(first + n), gateway: NodeId(7) };
        let entry = |target| ReadEntry { target, columns: ColumnMask::ALL, until: ReadEntry::AT_PREPARE };
        let write = |k| Write { key: key(k), value: Some(encode(&[id; COLUMNS as usize])), columns: ColumnMask::ALL };
        let (reads, writes) = (read.map(entry).into_iter().collect(), written.map(|k| write(k).into()).into_iter().collect());
        CommitRequest { id, reads, writes, min_commit: Timestamp::MIN, schema: schema(), global: Default::default() }
    };
    (world, physical, request)
}

/// A prepared writer, a reserving read that waits for it, and whoever comes after that.
#[test]
fn a_reserving_read_that_waits_keeps_new_writers_away() {
    let (mut world, physical, request) = serving();
    let Group { engine, state, store, clock, .. } = &mut world.groups[0];
    let (writer, reader) = (request(1, None, Some(1)), request(2, Some(Target::Range(KeyRange::new(key(0), key(3)))), None));
    assert!(matches!(engine.prepare(state, store, &writer, Turn::Late, clock, physical), Preparation::Append { .. }));
    assert!(matches!(engine.prepare(state, store, &reader, Turn::Late, clock, physical), Preparation::Wait(_)), "for the writer");
    let Certified::Wait(ticket) = engine.certify(state, store, &request(3, None, Some(2)), clock, physical) else {
        panic!("a writer of this group alone waits for the reader");
    };
    assert!(matches!(
        engine.prepare(state, store, &request(4, None, Some(2)), Turn::Late, clock, physical),
        Preparation::Refuse(_)
    ));
    assert!(
        matches!(engine.certify(state, store, &request(5, None, Some(3)), clock, physical), Certified::Append { .. }),
        "elsewhere"
    );
    let mut woken = Vec::new();
    engine.give_up_claim(reader.id, &mut woken);
    assert_eq!(woken, [ticket]);
    assert!(matches!(engine.certify(state, store, &request(3, None, Some(2)), clock, physical), Certified::Append { .. }));
}

/// Who was refused before is not refused again for somebody who was not, and is by its like.
#[test]
fn a_late_prepare_waits_for_an_early_one_and_never_the_other_way_round() {
    let (mut world, physical, request) = serving();
    let Group { engine, state, store, clock, .. } = &mut world.groups[0];
    let prepare = |engine: &mut Engine, n, turn| engine.prepare(state, store, &request(n, None, Some(1)), turn, clock, physical);
    assert!(matches!(prepare(engine, 1, Turn::Early), Preparation::Append { .. }));
    assert!(matches!(prepare(engine, 2, Turn::Early), Preparation::Refuse(_)));
    let Preparation::Wait(ticket) = prepare(engine, 3, Turn::Late) else { panic!("it waits for the first one's outcome") };
    let first = request(1, None, Some(1)).id;
    assert_eq!(engine.waits_for(ticket), Some(WaitFor::Outcome(first)));
    let mut woken = Vec::new();
    let aborted = Payload { records: vec![Record::Outcome(Outcome { id: first, at: None })], ..Payload::default() };
    engine.applied(state, &aborted, &mut woken);
    assert_eq!(woken, [ticket]);
    assert!(matches!(prepare(engine, 3, Turn::Late), Preparation::Append { .. }));
    assert!(matches!(prepare(engine, 4, Turn::Late), Preparation::Refuse(_)), "late ones wait for nobody of their own");
    assert!(matches!(prepare(engine, 5, Turn::Early), Preparation::Refuse(_)));
}
