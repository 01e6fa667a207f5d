//! Golden scripts: commands to one group and what it answers, in plain text (`golden/*.txt`, whose
//! names say what they show). `UPDATE_GOLDEN=1 cargo test -p meridian-region` rewrites them; the
//! difference is then reviewed.
//!
//! Times are milliseconds; `100+3` is the third timestamp after the first of millisecond 100. Keys
//! are letters.
//!
//! ```text
//! > clock 100              the node's physical clock shows this
//! > primary 1              node 1 becomes primary of a new term
//! > primary 1 of the catalog            the same, of the catalog's own group
//! > lease                  logs and applies a lease, if one is due
//! > grant 3 until 900 changed 7@3      the catalog's next grant: version 3, bound 900, descriptor 7 changed in version 3
//! > grant 3 until 900 later                the same, and its record is still on its way into the log
//! > grant 3 until 900 at 150            the same, of a version that was made at 150
//! > snapshot T1            where T1 reads, if it stays in this group and writes nothing
//! > grant 3 until 900 again              the last one comes once more
//! > begin T1 [v3 uses 7]   a transaction, planned with a schema version and descriptors
//! > at T1 150              where it reads was chosen elsewhere
//! > read T1 a | a..c       a fresh read
//! > write T1 a=x | a=      a value, or a tombstone
//! > above T1 150           it has read a version at 150 in another group
//! > global T1 until 400    it has read GLOBAL rows, which are known to hold until 400
//! > commit T1              sends it (again)
//! > begin T1 by catalog    the catalog's own group certifies what it read of the schema
//! > reserve T1 a           a read that takes place when it is prepared
//! > forward T1 to 100+3    moves what it has read forward
//! > prepare T1 [early]     the same as a slice of a transaction over several groups; a YES is durable at once
//! > prepare T1 later       the same, and its record has not been handed to the log
//! > decide T1 at 150       the other groups' votes have come; or: abort
//! > decide T1 at 150 twice the votes are counted again before the outcome is in the log
//! > replica a              where a replica that has applied everything may read, at its closed timestamp
//! > append                 hands what is certified to the log
//! > apply                  the log's next entry is durable and applied
//! > give up T1             it does not wait any more
//! > next tick              when the clock wakes somebody
//! > collect 150            the store forgets what no read at 150 or later needs
//! > lose                   the term ends; what was not applied is lost
//! > closed | watermark     what the next record would carry
//! > resign                 gives the lease up, and logs and applies that
//! > restart                the group's state is written down and read back, as by a flush and a restart, or a snapshot
//! > resume                 the same primary begins again in the same term
//! > remember 4             so many recent writes are kept in memory
//! > round T1 at 150        a round of a read-only transaction over several groups, of what T1 has read
//! > may serve              whether an answer may still leave
//! > idle                   the same right after a promise, for a group in which nothing happens
//! > settled                where a read-only transaction reads without waiting
//! ```

use crate::store::Store;
use bytes::Bytes;
use meridian_base::record::{Committed, Outcome, Payload, Prepared, Record, Reserved, SchemaGrant};
use meridian_base::{
    Clock, ColumnMask, CommitOutcome, CommitRequest, DescriptorId, GlobalReads, GroupId, Key, KeyRange, LogPosition, NodeId,
    ReadEntry, SchemaUse, SchemaVersion, Target, Timestamp, TxnId, Write,
};
use meridian_region::{
    Certified, Deciding, Engine, GroupState, Moment, NotReady, Preparation, ReadCheck, ReadGate, Rules, SchemaCheck, Snapshot,
    Ticket, Turn, WaitFor,
};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

struct Txn {
    s: Option<Timestamp>,
    request: CommitRequest,
}

struct Script {
    physical: u64,
    clock: Clock,
    state: GroupState,
    store: Store,
    node: NodeId,
    group: GroupId,
    engine: Option<Engine>,
    txns: BTreeMap<String, Txn>,
    /// Who waits, so that a wake can be told by name.
    waiting: BTreeMap<Ticket, String>,
    pending: Vec<Committed>,
    appended: VecDeque<Payload>,
    seq: u64,
    out: String,
}

pub fn show(t: Timestamp) -> String {
    let (millis, rest) = (t.micros() / 1_000, t.0 - Timestamp::from_micros(t.micros() / 1_000 * 1_000).0);
    if rest == 0 { format!("{millis}") } else { format!("{millis}+{rest}") }
}
pub fn timestamp(text: &str) -> Timestamp {
    let (millis_text, rest) = text.split_once('+').unwrap_or((text, "0"));
    Timestamp(Timestamp::from_micros(millis(millis_text) * 1_000).0 + rest.parse::<u64>().expect("a number"))
}
pub fn millis(text: &str) -> u64 {
    text.parse().expect("milliseconds")
}
fn name(key: &Key) -> &str {
    std::str::from_utf8(key.as_bytes()).expect("keys are letters")
}
fn target(text: &str) -> Target {
    match text.split_once("..") {
        Some((a, b)) => Target::Range(KeyRange::new(Key::new(a.as_bytes()), Key::new(b.as_bytes()))),
        None => Target::Key(Key::new(text.as_bytes())),
    }
}

impl Script {
    fn new() -> Script {
        Script {
            physical: 0,
            clock: Clock::new(Duration::from_millis(250)),
            state: GroupState::new(Rules::ALL),
            store: Store::default(),
            node: NodeId(0),
            group: GroupId(2),
            engine: None,
            txns: BTreeMap::new(),
            waiting: BTreeMap::new(),
            pending: Vec::new(),
            appended: VecDeque::new(),
            seq: 0,
            out: String::new(),
        }
    }

    fn say(&mut self, text: impl AsRef<str>) {
        writeln!(self.out, "{}", text.as_ref()).expect("a string grows");
    }
    fn engine(&mut self) -> &mut Engine {
        self.engine.as_mut().expect("`primary` comes first")
    }

    fn wait(&mut self, who: &str, ticket: Ticket) {
        let what = match self.engine().waits_for(ticket).expect("the ticket is out") {
            WaitFor::Applied(at) => format!("until {} is applied", show(at)),
            WaitFor::Outcome(id) => format!("for the outcome of {id}"),
            WaitFor::Clock(t) => format!("for the clock to pass {}", show(t)),
            WaitFor::Grant => "for a schema grant".into(),
            WaitFor::Lease => "for a lease".into(),
        };
        self.waiting.insert(ticket, who.into());
        self.say(format!("{who} waits {what}"));
    }
    fn woken(&mut self, tickets: Vec<Ticket>) {
        for ticket in tickets {
            if let Some(who) = self.waiting.remove(&ticket) {
                self.say(format!("{who} wakes"));
            }
        }
    }
    fn not_ready(&mut self, who: &str, why: NotReady) {
        match why {
            NotReady::NeedLease(ticket) => self.wait(who, ticket),
            NotReady::NotPrimary => self.say(format!("{who}: not the primary")),
        }
    }

    #[allow(clippy::too_many_lines, reason = "one arm for each word of the scripts")]
    fn run(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["clock", t] => self.set_clock(millis(t)),
            ["primary", node] => self.start(node.parse().expect("a node")),
            ["primary", node, "of", "the", "catalog"] => {
                self.group = GroupId::CATALOG;
                self.start(node.parse().expect("a node"));
            }
            ["lease"] => self.lease(),
            ["grant", version, "until", bound, ref rest @ ..] => self.grant(version, millis(bound), rest),
            ["begin", who, ref rest @ ..] => self.begin(who, rest),
            ["above", who, t] => {
                let t = Timestamp::from_micros(millis(t) * 1_000);
                self.txns.get_mut(who).expect("`begin` comes first").request.min_commit = t;
            }
            ["global", who, "until", t] => {
                let entry = ReadEntry { target: target("g"), columns: ColumnMask::ALL, until: Timestamp::MIN };
                let hold_until = Timestamp::from_micros(millis(t) * 1_000);
                let global = GlobalReads { entries: vec![(GroupId(8), vec![entry])], hold_until };
                self.txns.get_mut(who).expect("`begin` comes first").request.global = global;
            }
            ["at", who, t] => self.txns.get_mut(who).expect("`begin` comes first").s = Some(timestamp(t)),
            ["read", who, what] => self.read(who, what),
            ["write", who, what] => self.write(who, what),
            ["commit", who] => self.commit(who),
            ["prepare", who] => self.prepare(who, Turn::Late, true),
            ["prepare", who, "early"] => self.prepare(who, Turn::Early, true),
            ["prepare", who, "later"] => self.prepare(who, Turn::Late, false),
            ["reserve", who, what] => {
                let entry = ReadEntry { target: target(what), columns: ColumnMask::ALL, until: ReadEntry::AT_PREPARE };
                self.txns.get_mut(who).expect("`begin` comes first").request.reads.push(entry);
            }
            ["snapshot", who] => {
                let engine = self.engine.as_ref().expect("`primary` comes first");
                let Snapshot { at, settled } = engine.read_only_snapshot(&self.state, &self.txns[who].request.schema);
                self.say(format!("{}{}", show(at), if settled { ", settled" } else { "" }));
            }
            ["forward", who, "to", t] => self.forward(who, timestamp(t)),
            ["resume"] => {
                let used = self.engine().used();
                let engine = Engine::start(self.node, self.group, &self.state, Rules::ALL).resumed(used, &self.state);
                self.engine = Some(engine);
            }
            ["remember", n] => {
                let engine = self.engine.take().expect("`primary` comes first");
                self.engine = Some(engine.with_index_limit(n.parse().expect("a number")));
            }
            ["decide", who, "at", t] => self.decide(who, Some(Timestamp::from_micros(millis(t) * 1_000))),
            ["decide", who, "at", t, "twice"] => {
                let (id, at) = (self.txns[who].request.id, Some(timestamp(t)));
                let Script { engine: Some(engine), state, clock, physical, .. } = self else {
                    unreachable!("`primary` comes first")
                };
                let first = engine.decide(state, id, at, clock, *physical);
                let second = engine.decide(state, id, at, clock, *physical);
                assert_eq!((first, second), (Deciding::Log(Outcome { id, at }), Deciding::Known), "logged once");
                self.log(vec![Record::Outcome(Outcome { id, at })]);
            }
            ["decide", who, "abort"] => self.decide(who, None),
            ["replica", what] => {
                let u = self.state.replica_read(&target(what), ColumnMask::ALL, self.state.closed());
                self.say(format!("closed {}, reads at {}", show(self.state.closed()), show(u)));
            }
            ["resign"] => {
                let Script { engine: Some(engine), clock, physical, .. } = self else { unreachable!("`primary` comes first") };
                let lease = engine.give_up_lease(clock, *physical);
                self.say(format!("ceiling {}", show(lease.ceiling)));
                self.appended.push_back(Payload {
                    records: vec![Record::Lease(lease)],
                    closed: self.state.closed(),
                    ..Payload::default()
                });
                while !self.appended.is_empty() {
                    self.apply();
                }
            }
            ["restart"] => {
                let state = GroupState::decode(&self.state.encode(), Rules::ALL).expect("its own encoding");
                assert!(state == self.state, "nothing is lost by a restart");
                self.state = state;
            }
            ["round", who, "at", t] => self.round(who, Timestamp::from_micros(millis(t) * 1_000)),
            ["may", "serve"] => {
                let Script { engine: Some(engine), clock, physical, .. } = self else { unreachable!("`primary` comes first") };
                let may = engine.may_serve(clock, *physical);
                self.say(if may { "yes" } else { "no" });
            }
            ["idle"] => {
                let closed = self.closed();
                let settled = self.engine.as_ref().expect("`primary` comes first").settled_when_idle(&self.state, closed);
                self.say(settled.map_or("not now".into(), show));
            }
            ["settled"] => {
                let settled = self.engine.as_ref().expect("`primary` comes first").settled_through(&self.state);
                self.say(settled.map_or("not now".into(), show));
            }
            ["append"] => self.append(),
            ["apply"] => self.apply(),
            ["lose"] => self.lose(),
            ["give", "up", who] => {
                let ticket = *self.waiting.iter().find(|(_, waits)| *waits == who).expect("it waits").0;
                self.engine().cancel(ticket);
                assert_eq!(self.engine().waits_for(ticket), None);
            }
            ["next", "tick"] => {
                let next = self.engine().next_tick();
                self.say(next.map_or("never".into(), show));
            }
            ["collect", t] => self.store.collect(timestamp(t)),
            ["closed"] => {
                let closed = self.closed();
                self.say(show(closed));
            }
            ["watermark"] => {
                let Script { engine: Some(engine), state, clock, physical, .. } = self else {
                    unreachable!("`primary` comes first")
                };
                let f = engine.watermark(state, clock, *physical);
                self.say(show(f));
            }
            _ => panic!("unknown command: {line}"),
        }
    }

    fn set_clock(&mut self, t: u64) {
        self.physical = t * 1_000;
        let mut woken = Vec::new();
        if let Some(engine) = &mut self.engine {
            engine.tick(&self.clock, self.physical, &mut woken);
        }
        self.woken(woken);
    }
    fn start(&mut self, node: u32) {
        // A node that was not primary before has a clock of its own.
        self.clock = Clock::new(Duration::from_millis(250));
        self.node = NodeId(node);
        let engine = Engine::start(self.node, self.group, &self.state, Rules::ALL);
        let wait = engine.start_wait(self.physical);
        self.say(format!("serves in {} ms", wait.as_micros().div_ceil(1_000)));
        self.engine = Some(engine);
    }
    fn lease(&mut self) {
        let Script { engine: Some(engine), state, clock, physical, .. } = self else { unreachable!("`primary` comes first") };
        match engine.renew_lease(state, clock, *physical) {
            Some(lease) => {
                self.say(format!("ceiling {}", show(lease.ceiling)));
                self.log(vec![Record::Lease(lease)]);
            }
            None => self.say("not due"),
        }
    }
    fn grant(&mut self, version: &str, bound: u64, rest: &[&str]) {
        self.seq += u64::from(rest != ["again"]);
        let is_later = rest == ["later"];
        let changed = rest.iter().filter_map(|w| w.split_once('@'));
        let committed_at = if let ["at", t, ..] = rest { timestamp(t) } else { Timestamp::MIN };
        let number = |text: &str| text.parse::<u64>().expect("a number");
        let grant = SchemaGrant {
            version: SchemaVersion(number(version)),
            bound: Timestamp::from_micros(bound * 1_000),
            seq: self.seq,
            committed_at,
            changed: changed.map(|(d, v)| (DescriptorId(number(d) as u32), SchemaVersion(number(v)))).collect(),
            ..SchemaGrant::default()
        };
        let Script { engine: Some(engine), state, .. } = self else { unreachable!("`primary` comes first") };
        match engine.grant(state, &grant) {
            Some(grant) => {
                self.say(format!("answers {}", show(grant.bound)));
                if is_later {
                    let closed = self.state.closed();
                    return self.appended.push_back(Payload {
                        records: vec![Record::Schema(grant)],
                        closed,
                        ..Payload::default()
                    });
                }
                self.log(vec![Record::Schema(grant)]);
            }
            None => self.say("ignored"),
        }
    }
    /// Appends and applies at once.
    fn log(&mut self, records: Vec<Record>) {
        let closed = if self.engine().in_flight().next().is_none() { self.closed() } else { self.state.closed() };
        self.appended.push_back(Payload { records, closed, ..Payload::default() });
        while !self.appended.is_empty() {
            self.apply();
        }
    }

    fn begin(&mut self, who: &str, rest: &[&str]) {
        let schema = match rest {
            [version, "uses", descriptors @ ..] => SchemaUse {
                version: SchemaVersion(version[1..].parse().expect("a version, as v3")),
                descriptors: descriptors.iter().map(|d| DescriptorId(d.parse().expect("a descriptor"))).collect(),
                ..SchemaUse::default()
            },
            ["by", "catalog"] => SchemaUse { is_certified_by_catalog: true, ..SchemaUse::default() },
            _ => SchemaUse { version: self.state.grant().version, ..SchemaUse::default() },
        };
        let id = TxnId { hlc: self.clock.tick(self.physical), gateway: NodeId(9) };
        let request =
            CommitRequest { id, reads: vec![], writes: vec![], min_commit: Timestamp::MIN, schema, global: Default::default() };
        self.txns.insert(who.into(), Txn { s: None, request });
    }
    fn read(&mut self, who: &str, what: &str) {
        let target = target(what);
        let Script { engine: Some(engine), state, store, clock, physical, txns, .. } = self else {
            unreachable!("`primary` comes first")
        };
        let txn = txns.get_mut(who).expect("`begin` comes first");
        let s = *txn.s.get_or_insert_with(|| engine.fresh_snapshot(state, Timestamp::MIN, clock, *physical).at);
        match engine.check_read(state, &txn.request.schema, s) {
            SchemaCheck::Passed => {}
            SchemaCheck::Wait(ticket) => return self.wait(who, ticket),
            SchemaCheck::Changed(_) => return self.say(format!("{who}: schema changed")),
        }
        let moment = Moment { state, versions: store, clock, physical_micros: *physical };
        match engine.read_gate(&moment, &target, ColumnMask::ALL, s) {
            ReadGate::Ready => {
                txn.request.reads.push(ReadEntry { target: target.clone(), columns: ColumnMask::ALL, until: s });
                let keys = store.keys().filter(|k| target.contains(k.as_bytes()));
                let rows = keys.filter_map(|k| store.get(k, s)?.value.as_ref().map(|v| (name(k), String::from_utf8_lossy(v))));
                let rows: Vec<String> = rows.map(|(k, v)| format!("{k}={v}")).collect();
                let rows = if rows.is_empty() { "nothing".into() } else { rows.join(" ") };
                self.say(format!("{rows} at {}", show(s)));
            }
            ReadGate::Wait(ticket) => self.wait(who, ticket),
            ReadGate::TooOld => self.say(format!("{who}: read too long ago")),
            ReadGate::MoveTo(to) => self.say(format!("{who} must read at {}", show(to))),
            ReadGate::NotReady(why) => self.not_ready(who, why),
        }
    }
    fn write(&mut self, who: &str, what: &str) {
        let (key, value) = what.split_once('=').expect("key=value");
        let value = (!value.is_empty()).then(|| Bytes::copy_from_slice(value.as_bytes()));
        let write = Write { key: Key::new(key.as_bytes()), value, columns: ColumnMask::ALL };
        self.txns.get_mut(who).expect("`begin` comes first").request.writes.push(write.into());
    }
    fn commit(&mut self, who: &str) {
        let Script { engine: Some(engine), state, store, clock, physical, txns, .. } = self else {
            unreachable!("`primary` comes first")
        };
        let request = &txns[who].request;
        match engine.certify(state, store, request, clock, *physical) {
            Certified::Append { at, writes } => {
                self.pending.push(Committed { id: request.id, at, writes });
                self.say(format!("in flight at {}", show(at)));
            }
            Certified::Wait(ticket) => self.wait(who, ticket),
            Certified::Done(CommitOutcome::Committed(at)) => self.say(format!("committed at {}", show(at))),
            Certified::Done(CommitOutcome::Conflict(c)) => self.say(format!("conflict on {}: {}", name(&c.key), c.reason)),
            Certified::Done(CommitOutcome::Forgotten) => self.say("outcome unknown"),
            Certified::Refuse(ticket) => self.wait(who, ticket),
            Certified::RecheckGlobal => self.say("GLOBAL reads are not known to hold"),
            Certified::NotReady(why) => self.not_ready(who, why),
        }
    }
    fn forward(&mut self, who: &str, s: Timestamp) {
        let Script { engine: Some(engine), state, store, txns, .. } = self else { unreachable!("`primary` comes first") };
        let txn = txns.get_mut(who).expect("`begin` comes first");
        let moves = engine.move_forward(state, store, &txn.request.reads, s);
        if moves {
            txn.s = Some(s);
            txn.request.reads.iter_mut().for_each(|e| e.until = s);
        }
        self.say(if moves { "moved" } else { "stays" });
    }
    fn prepare(&mut self, who: &str, turn: Turn, is_logged: bool) {
        let Script { engine: Some(engine), state, store, clock, physical, txns, .. } = self else {
            unreachable!("`primary` comes first")
        };
        let request = &txns[who].request;
        match engine.prepare(state, store, request, turn, clock, *physical) {
            Preparation::Append { at, writes } => {
                let reserved = |e: &ReadEntry| Reserved { target: e.target.clone(), columns: e.columns };
                let reads = request.reads.iter().map(reserved).collect();
                let prepared = Prepared { id: request.id, at, participants: vec![GroupId(2), GroupId(3)], reads, writes };
                if !is_logged {
                    return self.say(format!("YES at {}, not in the log", show(at)));
                }
                engine.appended(at);
                self.say(format!("YES at {}", show(at)));
                self.log(vec![Record::Prepared(Box::new(prepared))]);
            }
            Preparation::Refuse(refused) => {
                let stale = refused.stale.iter().map(|(k, t)| format!("; {} is new as of {}", name(k), show(*t)));
                let stale: String = stale.collect();
                self.say(format!("NO: {} on {}{stale}", refused.conflict.reason, name(&refused.conflict.key)));
            }
            Preparation::Wait(ticket) => self.wait(who, ticket),
            Preparation::Known => self.say("has voted"),
            Preparation::RecheckGlobal => self.say("GLOBAL reads are not known to hold"),
            Preparation::NotReady(why) => self.not_ready(who, why),
        }
    }
    fn decide(&mut self, who: &str, at: Option<Timestamp>) {
        let Script { engine: Some(engine), state, clock, physical, txns, .. } = self else {
            unreachable!("`primary` comes first")
        };
        // The vote that it follows from came with its group's clock, unless that is a future-time
        // timestamp.
        let _ = at.map(|at| clock.observe(at, *physical));
        match engine.decide(state, txns[who].request.id, at, clock, *physical) {
            Deciding::Log(outcome) => self.log(vec![Record::Outcome(outcome)]),
            Deciding::Wait(ticket) => self.wait(who, ticket),
            Deciding::Known => self.say("is decided"),
            Deciding::NotReady(why) => self.not_ready(who, why),
        }
    }
    fn round(&mut self, who: &str, t: Timestamp) {
        let Script { engine: Some(engine), state, store, clock, physical, txns, .. } = self else {
            unreachable!("`primary` comes first")
        };
        match engine.check_read(state, &txns[who].request.schema, t) {
            SchemaCheck::Passed => {}
            SchemaCheck::Wait(ticket) => return self.wait(who, ticket),
            SchemaCheck::Changed(_) => return self.say(format!("{who}: schema changed")),
        }
        match engine.read_round(state, store, &txns[who].request.reads, t, clock, *physical) {
            ReadCheck::Passed => self.say("passed"),
            ReadCheck::Wait(ticket) => self.wait(who, ticket),
            ReadCheck::Refuse(refused) => {
                let stale = refused.stale.iter().map(|(k, t)| format!("; {} is new as of {}", name(k), show(*t)));
                let stale: String = stale.collect();
                self.say(format!("{} on {}{stale}", refused.conflict.reason, name(&refused.conflict.key)));
            }
            ReadCheck::NotReady(why) => self.not_ready(who, why),
        }
    }
    fn closed(&mut self) -> Timestamp {
        let Script { engine: Some(engine), state, clock, physical, .. } = self else { unreachable!("`primary` comes first") };
        engine.closed_target(state, clock, *physical)
    }
    fn append(&mut self) {
        let batch = std::mem::take(&mut self.pending);
        let last = batch.last().expect("something certified").at;
        self.engine().appended(last);
        let closed = self.closed();
        let Script { engine: Some(engine), state, clock, physical, .. } = self else { unreachable!("`primary` comes first") };
        let watermark = engine.watermark(state, clock, *physical);
        self.say(format!("batch of {}, closed {}", batch.len(), show(closed)));
        self.appended.push_back(Payload { closed, watermark, records: vec![Record::Batch(batch)] });
    }
    fn apply(&mut self) {
        let payload = self.appended.pop_front().expect("something appended");
        for record in &payload.records {
            if let Record::Batch(txns) = record {
                txns.iter().for_each(|txn| self.store.apply(txn));
                let at: Vec<String> = txns.iter().map(|txn| show(txn.at)).collect();
                self.say(format!("applied {}", at.join(", ")));
            }
            if let Record::Outcome(outcome) = record {
                match self.state.effect(outcome) {
                    Some(txn) => {
                        self.store.apply(&txn);
                        self.say(format!("applied {}", show(txn.at)));
                    }
                    None => self.say("nothing to apply"),
                }
            }
        }
        let index = self.state.applied().index + 1;
        self.state.apply(LogPosition { index, term: 1 }, &payload);
        self.state.invariant_tables();
        self.state.invariant_ceiling();
        let mut woken = Vec::new();
        if let Some(engine) = &mut self.engine {
            engine.applied(&self.state, &payload, &mut woken);
            engine.invariant_engine(&self.state);
        }
        self.woken(woken);
    }
    fn lose(&mut self) {
        let woken = self.engine().lost();
        self.woken(woken);
        self.pending.clear();
        self.appended.clear();
    }
}

/// Runs a script: keeps its comments and commands, and writes what they answer below them.
fn rerun(text: &str, mut run: impl FnMut(&str) -> String) -> String {
    let mut out = String::new();
    for line in text.lines() {
        if let Some(command) = line.strip_prefix("> ") {
            out += &format!("{line}\n{}", run(command));
        } else if line.is_empty() || line.starts_with('#') {
            out += &format!("{line}\n");
        }
    }
    out
}

/// Runs the scripts of a folder, each by a new `script`, and compares what they answer.
pub fn rerun_all<F: FnMut(&str) -> String>(folder: &str, script: impl Fn() -> F) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all").join(folder);
    let mut scripts: Vec<_> = std::fs::read_dir(&folder).expect("the scripts").map(|f| f.expect("a file").path()).collect();
    scripts.sort();
    assert!(scripts.len() >= 5, "scripts are missing in {}", folder.display());
    for path in scripts {
        let text = std::fs::read_to_string(&path).expect("a script");
        let now = rerun(&text, script());
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, now).expect("the script is rewritten");
        } else {
            assert_eq!(text, now, "{}; UPDATE_GOLDEN=1 rewrites it", path.display());
        }
    }
}

#[test]
fn golden_scripts_answer_as_they_say() {
    rerun_all("golden", || {
        let mut script = Script::new();
        move |command: &str| {
            script.run(command);
            std::mem::take(&mut script.out)
        }
    });
}
