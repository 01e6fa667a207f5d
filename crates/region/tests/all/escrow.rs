//! Escrow shares of one site under random histories: deltas of this group and of several, numbers
//! that are set, rows deleted and inserted, exact reads, folds, lost appends and new terms. Beside
//! them the site takes part in rounds of `majority`, which it leads or others do ([`Others`]).
//!
//! Checked at every moment of the past: the number that a reader adds up there is that of the
//! changes committed by then, whatever the order in which they came; the grants are those that were
//! given and moved, of one incarnation, and cover it and what is offered (E1 to E3, E14 to E17);
//! and no delta that was refused commits later. Tokens that a statement has reserved are there for
//! its transaction. In the end no offer is out, and rounds have made no token and lost none.

use crate::rng::Rng;
use crate::sites::{self, HERE, Others};
use crate::store::Store;
use meridian_base::escrow::{self, Bounds, Free, Late, Offer, Share, Sum};
use meridian_base::limits::TOKENS_RESERVED_MAX;
use meridian_base::record::{Committed, Outcome, Payload, Prepared, Record, Reserved, SchemaGrant};
use meridian_base::{
    Change, Clock, ColumnMask, CommitOutcome, CommitRequest, ConflictReason, GroupId, Key, LogPosition, Mutation, NodeId,
    ReadEntry, SchemaUse, Target, Timestamp, TxnId,
};
use meridian_escrow::majority::{Due, Leader, Message, Round, Rows};
use meridian_region::{
    Ballot, Certified, Deciding, Engine, GroupState, Moment, Outlook, PlantedBug, Preparation, Rules, ShareLook, SiteStep, Turn,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const BOUNDS: Bounds = Bounds { lo: 0, hi: 6 };
const ROWS: u64 = 3;
const ROUND_TRIP: Duration = Duration::from_millis(1);
/// The row that was inserted at another site.
const AWAY: u64 = 2;

type Checked = Result<(), String>;

/// What a transaction does to a row's number.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Effect {
    Add(i128),
    Set(i128),
    Delete,
    Read,
    /// It keeps what it has, under a new incarnation.
    Renew,
    /// Tokens go to another site, or come from there, or bounds change; perhaps with a delta.
    Shift(Late),
}

#[derive(Clone, Debug)]
struct Sent {
    request: CommitRequest,
    row: u64,
    effect: Effect,
    was_refused: bool,
}

struct World {
    rng: Rng,
    rules: Rules,
    term: u64,
    micros: u64,
    clock: Clock,
    state: GroupState,
    engine: Engine,
    store: Store,
    /// Certified, not appended.
    pending: Vec<Record>,
    /// Appended, not applied: a crash loses a part.
    appended: Vec<Payload>,
    sent: BTreeMap<TxnId, Sent>,
    /// What is in the log, with its timestamp.
    history: Vec<(Timestamp, TxnId)>,
    /// Rows' numbers as exact reads were told, by their own timestamps.
    told: Vec<(Timestamp, u64, Option<i128>)>,
    /// Votes of transactions over several groups, and those of the other group.
    votes: BTreeMap<TxnId, Timestamp>,
    passed: BTreeMap<&'static str, u64>,
    others: Others,
    /// The leaders of this site, and its timers.
    rows: Rows,
    /// What follows when a step is applied.
    steps: BTreeMap<TxnId, (u64, Round, Then)>,
    /// Rows' incarnations that ended with a renewal.
    renewed: Vec<(u64, TxnId)>,
    /// Transactions for which a statement has reserved tokens.
    reserved: Vec<Holding>,
}

/// Tokens are held: of a number, in a term, until a moment.
#[derive(Clone, Copy)]
struct Holding {
    id: TxnId,
    incarnation: TxnId,
    term: u64,
    until: Timestamp,
}

/// See [`World::steps`].
#[derive(Clone, Debug)]
enum Then {
    Send(Vec<(GroupId, Message)>),
    Lead(Box<Leader>),
}

fn key(row: u64) -> Key {
    let mut bytes = Vec::new();
    meridian_base::key::encode::index(&mut bytes, escrow::index_id(3));
    meridian_base::key::encode::i64(&mut bytes, row as i64);
    escrow::share_key(&bytes)
}

impl World {
    fn new(seed: u64, rules: Rules) -> World {
        let state = GroupState::new(rules);
        let engine = Engine::start(NodeId(1), GroupId(2), &state, rules).folding_from(1);
        let mut world = World {
            rng: Rng::new(seed),
            rules,
            term: 1,
            micros: 1_000_000,
            clock: Clock::new(Duration::from_millis(250)),
            state,
            engine,
            store: Store::default(),
            pending: Vec::new(),
            appended: Vec::new(),
            sent: BTreeMap::new(),
            history: Vec::new(),
            told: Vec::new(),
            votes: BTreeMap::new(),
            passed: BTreeMap::new(),
            others: Others::new(ROWS),
            rows: Rows::new(seed),
            steps: BTreeMap::new(),
            renewed: Vec::new(),
            reserved: Vec::new(),
        };
        world.lease();
        for row in 0..AWAY {
            world.begin(row, Effect::Set(3));
        }
        let id = world.new_id();
        world.others.insert(AWAY, Share::begin(id, 3, BOUNDS));
        world
    }

    fn count(&mut self, what: &'static str) {
        *self.passed.entry(what).or_default() += 1;
    }

    fn lease(&mut self) {
        self.micros += self.engine.start_wait(self.micros).as_micros() as u64;
        let lease = self.engine.renew_lease(&self.state, &self.clock, self.micros);
        let grant = SchemaGrant { bound: Timestamp::MAX, seq: 1, ..SchemaGrant::default() };
        let records = lease.map(Record::Lease).into_iter().chain([Record::Schema(grant)]).collect();
        self.append(records);
        self.apply_all();
    }

    /// Hands everything certified to the log.
    fn append(&mut self, mut records: Vec<Record>) {
        self.engine.appended(Timestamp::MAX.prev().min(self.engine.used()));
        records.append(&mut self.pending);
        let closed = self.engine.closed_target(&self.state, &self.clock, self.micros);
        let watermark = self.engine.watermark(&self.state, &self.clock, self.micros);
        self.appended.push(Payload { closed, watermark, records });
    }

    fn apply(&mut self) {
        if self.appended.is_empty() {
            return;
        }
        let payload = self.appended.remove(0);
        for record in &payload.records {
            match record {
                Record::Batch(txns) => {
                    for txn in txns {
                        self.store.apply(txn);
                        self.history.push((txn.at, txn.id));
                    }
                }
                Record::Outcome(outcome) => {
                    if let Some(txn) = self.state.effect(outcome) {
                        self.store.apply(&txn);
                        self.history.push((txn.at, txn.id));
                    }
                }
                _ => {}
            }
            let index = self.state.applied().index + 1;
            let one = Payload { records: vec![record.clone()], ..Payload::default() };
            self.state.apply(LogPosition { index, term: self.term }, &one);
        }
        let index = self.state.applied().index + 1;
        let rest = Payload { records: Vec::new(), ..payload.clone() };
        self.state.apply(LogPosition { index, term: self.term }, &rest);
        self.engine.applied(&self.state, &payload, &mut Vec::new());
        self.engine.invariant_engine(&self.state);
        for record in &payload.records {
            match record {
                Record::Batch(txns) => txns.iter().for_each(|txn| self.follow(txn.id, txn.at)),
                Record::Outcome(Outcome { id, at: Some(at) }) => self.follow(*id, *at),
                _ => {}
            }
        }
    }

    /// What follows a transaction that is applied.
    fn follow(&mut self, id: TxnId, at: Timestamp) {
        match self.sent.get(&id).map(|sent| (sent.row, sent.effect)) {
            Some((row, Effect::Set(_))) => {
                self.others.set(row, Some(id), at);
                self.rows.forget(&key(row));
            }
            Some((row, Effect::Renew)) => {
                assert_eq!(self.round(row, at), None, "a renewed row has no round yet");
                self.renewed.extend(self.others.renew(row, id).map(|before| (row, before)));
                self.rows.forget(&key(row));
                self.count("renewed");
            }
            Some((row, Effect::Delete)) => {
                assert_eq!(self.round(row, at), None, "a deleted row leaves no round");
                self.others.set(row, None, at);
                self.rows.forget(&key(row));
            }
            _ => {}
        }
        let Some((row, round, then)) = self.steps.remove(&id) else { return };
        if let Some(Effect::Shift(Late { incarnation, down, up, .. })) = self.sent.get(&id).map(|sent| sent.effect) {
            self.others.note_moved(row, incarnation, Free { down, up });
        }
        self.arm(row, Some(&round));
        let now = self.clock.now(self.micros);
        let messages = match then {
            Then::Send(messages) => messages,
            Then::Lead(leader) => self.rows.lead(&key(row), *leader, ROUND_TRIP, now, self.time()),
        };
        self.others.send(row, HERE, messages, &mut self.rng);
    }

    fn time(&self) -> Duration {
        Duration::from_micros(self.micros)
    }

    /// What is applied of a row's round is told to the timers.
    fn arm(&mut self, row: u64, round: Option<&Round>) {
        let is_out = self.engine.open_round(&self.store, &key(row)).is_some();
        self.rows.stored(&key(row), round, is_out, ROUND_TRIP, self.time());
    }

    /// What is due now at this site.
    fn tick(&mut self) -> Checked {
        for share in self.engine.take_open() {
            let row = (0..ROWS).find(|row| key(*row) == share).expect("one of the rows");
            let round = self.round(row, Timestamp::MAX);
            self.arm(row, round.as_ref());
        }
        for due in self.rows.due(self.clock.now(self.micros), self.time()) {
            let row_of = |share: &Key| (0..ROWS).find(|row| key(*row) == *share).expect("one of the rows");
            match due {
                Due::Send { share, messages } => self.others.send(row_of(&share), HERE, messages, &mut self.rng),
                Due::Begin { share, .. } => self.begin_round(row_of(&share))?,
            }
        }
        Ok(())
    }

    fn apply_all(&mut self) {
        while !self.appended.is_empty() {
            self.apply();
        }
    }

    fn new_id(&mut self) -> TxnId {
        TxnId { hlc: self.clock.tick(self.micros), gateway: NodeId(9) }
    }

    fn begin(&mut self, row: u64, effect: Effect) -> TxnId {
        let id = self.new_id();
        let range = Target::Range(escrow::range(&key(row)));
        let exact = ReadEntry { target: range, columns: ColumnMask::ALL, until: ReadEntry::AT_PREPARE };
        let (reads, change) = match effect {
            Effect::Add(delta) => (vec![], Some(Change::Add(delta))),
            Effect::Set(value) => (vec![exact], Some(Change::Put(Share::begin(id, value, BOUNDS).encode()))),
            Effect::Delete => (vec![exact], Some(Change::Delete)),
            Effect::Read => (vec![exact], None),
            Effect::Renew => (vec![exact], Some(Change::Renew { is_there: row != AWAY })),
            Effect::Shift(late) => (vec![], Some(Change::Shift(Box::new(late)))),
        };
        let writes = change.map(|change| Mutation { key: key(row), change, columns: ColumnMask::ALL }).into_iter().collect();
        let schema = SchemaUse { version: self.state.grant().version, ..SchemaUse::default() };
        let request = CommitRequest { id, reads, writes, min_commit: Timestamp::MIN, schema, global: Default::default() };
        self.sent.insert(id, Sent { request, row, effect, was_refused: false });
        id
    }

    /// Sends a transaction of this group, perhaps again.
    fn certify(&mut self, id: TxnId) -> Checked {
        let sent = self.sent[&id].clone();
        match self.engine.certify(&self.state, &self.store, &sent.request, &self.clock, self.micros) {
            Certified::Append { at, writes } => {
                if sent.was_refused {
                    return Err(format!("{id} was refused, and is certified now"));
                }
                self.pending.push(Record::Batch(vec![Committed { id, at, writes }]));
                self.count("certified");
            }
            Certified::Refuse(_) => self.pending.push(Record::Refused(id)),
            Certified::Done(CommitOutcome::Conflict(c)) => {
                self.count(if c.reason == ConflictReason::Short { "short" } else { "conflict" });
                self.sent.get_mut(&id).expect("sent").was_refused = true;
            }
            _ => self.engine.give_up_claim(id, &mut Vec::new()),
        }
        Ok(())
    }

    /// A statement reserves the tokens of a delta that commits later.
    fn reserve(&mut self, id: TxnId, row: u64, delta: i128) {
        let late = Late::delta(TxnId::default(), delta);
        let until = self.clock.now(self.micros).plus(TOKENS_RESERVED_MAX);
        let look = self.engine.reserve_tokens(&self.store, (id, &key(row), &late), &self.clock, self.micros);
        if let ShareLook::Offer(Some(Offer { incarnation, free, .. })) = look
            && free.allow(&late)
        {
            self.reserved.push(Holding { id, incarnation, term: self.term, until });
            self.count("reserved");
        }
    }

    /// It commits, or is rolled back. Where nothing has ended the reservation, it is covered.
    fn use_reserved(&mut self) -> Checked {
        if self.reserved.is_empty() {
            return Ok(());
        }
        let at = self.rng.below(self.reserved.len() as u64) as usize;
        let Holding { id, incarnation, term, until } = self.reserved.swap_remove(at);
        if self.rng.one_in(4) {
            self.engine.release_tokens(id);
            return Ok(());
        }
        let look = self.engine.share(&self.store, &key(self.sent[&id].row), &self.clock, self.micros);
        let is_same = matches!(look, ShareLook::Offer(Some(offer)) if offer.incarnation == incarnation);
        let is_held = is_same && term == self.term && self.clock.now(self.micros) < until;
        let short = self.passed.get("short").copied();
        self.certify(id)?;
        match is_held && self.passed.get("short").copied() != short {
            true => Err(format!("{id} finds too few of the tokens that are held for it")),
            false => Ok(()),
        }
    }

    // --- rounds

    fn outlook(&mut self) -> Outlook {
        Outlook { keep: sites::tokens(&mut self.rng, 2), wants: sites::wants(&mut self.rng), is_closing: self.rng.one_in(20) }
    }

    fn round(&self, row: u64, at: Timestamp) -> Option<Round> {
        Round::decode(self.store.get(&escrow::round_key(&key(row)), at)?.value.as_ref()?)
    }

    /// A new primary finds the rows with an offer out by their open keys.
    fn check_open(&self) -> Checked {
        for row in 0..ROWS {
            let is_open = self.store.get(&escrow::open_key(&key(row)), Timestamp::MAX).is_some_and(|v| v.value.is_some());
            let round = self.round(row, Timestamp::MAX);
            if is_open != round.as_ref().is_some_and(|round| round.offer.is_some()) {
                return Err(format!("row {row} is said to have an offer out: {is_open}, and has {round:?}"));
            }
        }
        Ok(())
    }

    /// A message comes to some site.
    fn deliver(&mut self, (row, to, from): (u64, GroupId, GroupId), message: &Message) -> Checked {
        // Clocks follow messages.
        self.clock.advance_to(message.hlc);
        let now = self.clock.tick(self.micros);
        if to != HERE {
            return self.others.receive((row, to, from), message, now, &mut self.rng);
        }
        let time = self.time();
        let sent = self.rows.receive(&key(row), from, message, now, time);
        self.others.proposed(row, &sent)?;
        self.others.send(row, HERE, sent, &mut self.rng);
        let (id, outlook) = (self.new_id(), self.outlook());
        let moment = Moment { state: &self.state, versions: &self.store, clock: &self.clock, physical_micros: self.micros };
        let step = self.engine.step_round(&moment, id, &key(row), outlook, (from, message));
        match step {
            SiteStep::Append { at, writes, round, then } => return self.step_taken(id, at, row, writes, round, Then::Send(then)),
            SiteStep::Done(sent) => self.others.send(row, HERE, sent, &mut self.rng),
            SiteStep::Wait(_) => self.count("waited"),
            SiteStep::Dropped => self.count("dropped"),
            SiteStep::NotReady(_) => {}
        }
        Ok(())
    }

    fn begin_round(&mut self, row: u64) -> Checked {
        let (id, outlook, known) = (self.new_id(), self.outlook(), self.others.incarnation(row));
        let above = self.rows.highest(&key(row));
        let (sites, schema) = (sites::all(), SchemaUse { version: self.state.grant().version, ..SchemaUse::default() });
        let ballot = Ballot { incarnation: known, sites: &sites, schema: &schema, above };
        let moment = Moment { state: &self.state, versions: &self.store, clock: &self.clock, physical_micros: self.micros };
        let step = self.engine.begin_round(&moment, id, &key(row), outlook, ballot);
        match step {
            SiteStep::Append { at, writes, round, then } => self.step_taken(id, at, row, writes, round, Then::Lead(then)),
            _ => Ok(()),
        }
    }

    fn step_taken(
        &mut self,
        id: TxnId,
        at: Timestamp,
        row: u64,
        writes: Vec<meridian_base::Write>,
        round: Round,
        then: Then,
    ) -> Checked {
        // One step at a time, so the one before is applied.
        let before = self.round(row, Timestamp::MAX).filter(|before| before.incarnation == round.incarnation);
        let ended = before.map_or(0, |before| before.instance)..round.instance;
        let of = round.incarnation;
        let decided = ended.filter_map(|t| Some((self.others.decided.get(&(row, of, t))?, t)));
        let parts: Vec<_> = decided.filter_map(|(value, t)| value.kept(HERE, t)).collect();
        if parts.len() > 1 {
            return Err(format!("{HERE} has part in several rounds of row {row}"));
        }
        if let Some(part) = parts.first() {
            if at <= part.hlc {
                return Err(format!("E15: {HERE} uses at {at} what was given at {}", part.hlc));
            }
            let effect = Effect::Shift(Late::grant(of, part.change.down, part.change.up));
            let request = CommitRequest {
                id,
                reads: vec![],
                writes: vec![],
                min_commit: Timestamp::MIN,
                schema: SchemaUse::default(),
                global: Default::default(),
            };
            self.sent.insert(id, Sent { request, row, effect, was_refused: false });
            self.count("granted");
        }
        self.count("steps");
        self.pending.push(Record::Batch(vec![Committed { id, at, writes }]));
        self.steps.insert(id, (row, round, then));
        Ok(())
    }

    fn poke(&mut self, row: u64) {
        let now = self.clock.now(self.micros);
        self.others.poke(row, now, &mut self.rng);
    }

    fn round_event(&mut self, row: u64) -> Checked {
        self.tick()?;
        match self.rng.below(12) {
            0..8 if !self.others.net.is_empty() => {
                let at = self.rng.below(self.others.net.len() as u64) as usize;
                if self.rng.one_in(10) {
                    self.others.net.swap_remove(at);
                    return Ok(());
                }
                let (row, to, from, message) = match self.rng.one_in(6) {
                    true => self.others.net[at].clone(),
                    false => self.others.net.swap_remove(at),
                };
                self.deliver((row, to, from), &message)?;
            }
            8 => self.begin_round(row)?,
            9 => {
                let known = self.engine_incarnation(row);
                let now = self.clock.tick(self.micros);
                self.others.begin(row, known, now, &mut self.rng);
            }
            10 => self.others.spend(row, &mut self.rng),
            _ => self.poke(row),
        }
        Ok(())
    }

    /// That of the share here.
    fn engine_incarnation(&self, row: u64) -> Option<TxnId> {
        self.grants(row, Timestamp::MAX).map(|(incarnation, ..)| incarnation)
    }

    /// Everything ends: no message is lost any more.
    fn settle(&mut self) -> Checked {
        self.append(Vec::new());
        self.apply_all();
        while self.state.prepared().next().is_some() {
            self.decide();
            self.append(Vec::new());
            self.apply_all();
        }
        for _ in 0..60 {
            // Nothing but timers begins a ballot here, once the rows are touched.
            let next = self.rows.next().map_or(0, |next| next.as_micros() as u64);
            self.micros = next.max(self.micros + 400);
            self.lease_again();
            for row in 0..ROWS {
                self.engine.share(&self.store, &key(row), &self.clock, self.micros);
                self.poke(row);
                self.tick()?;
                if self.others.is_out(row) && self.rng.one_in(3) {
                    let (known, now) = (self.engine_incarnation(row), self.clock.tick(self.micros));
                    self.others.begin(row, known, now, &mut self.rng);
                }
                self.append(Vec::new());
                self.apply_all();
                while let Some((row, to, from, message)) = self.others.net.pop() {
                    self.deliver((row, to, from), &message)?;
                    self.append(Vec::new());
                    self.apply_all();
                }
            }
        }
        if !self.rows.is_empty() {
            return Err(format!("rows at rest have timers: {:?}", self.rows));
        }
        for row in 0..ROWS {
            if self.engine.open_round(&self.store, &key(row)).is_some() || self.others.is_out(row) {
                return Err(format!("an offer of row {row} stays out"));
            }
            let Some(of) = self.others.incarnation(row) else { continue };
            self.check_moved(row, of)?;
        }
        self.renewed.iter().try_for_each(|(row, before)| self.check_moved(*row, *before))?;
        // Nothing is in the way of a renewal, whatever numbers were set while offers were out.
        for row in 0..ROWS {
            if self.grants(row, Timestamp::MAX).is_none() {
                continue;
            }
            let id = self.begin(row, Effect::Renew);
            self.prepare(id);
            if !self.votes.contains_key(&id) {
                return Err(format!("row {row} is at rest, and a renewal is refused"));
            }
        }
        Ok(())
    }

    /// E2, of an incarnation that nothing is under way in.
    fn check_moved(&self, row: u64, of: TxnId) -> Checked {
        match self.others.moved.get(&(row, of)).copied().unwrap_or_default() {
            moved if moved == Free::default() => Ok(()),
            moved => Err(format!("E2: rounds have changed the grants of row {row} by {moved:?}")),
        }
    }

    fn lease_again(&mut self) {
        if let Some(lease) = self.engine.renew_lease(&self.state, &self.clock, self.micros) {
            self.append(vec![Record::Lease(lease)]);
            self.apply_all();
        }
    }

    /// Prepares a transaction of which this group has one part.
    fn prepare(&mut self, id: TxnId) {
        let request = self.sent[&id].request.clone();
        let answer = self.engine.prepare(&self.state, &self.store, &request, Turn::Late, &self.clock, self.micros);
        match answer {
            Preparation::Append { at, writes } => {
                let reads = request.reads.iter().map(|e| Reserved { target: e.target.clone(), columns: e.columns }).collect();
                let participants = vec![GroupId(2), GroupId(3)];
                self.pending.push(Record::Prepared(Box::new(Prepared { id, at, participants, reads, writes })));
                self.votes.insert(id, at);
                self.count("prepared");
            }
            Preparation::Refuse(_) => {
                self.engine.give_up_claim(id, &mut Vec::new());
                self.pending.push(Record::Refused(id));
            }
            _ => self.engine.give_up_claim(id, &mut Vec::new()),
        }
    }

    /// The other group has voted, in time or late, and the outcome comes here.
    fn decide(&mut self) {
        let prepared: Vec<TxnId> = self.state.prepared().map(|p| p.id).collect();
        if prepared.is_empty() {
            return;
        }
        let id = prepared[self.rng.below(prepared.len() as u64) as usize];
        let vote = self.state.prepared().find(|p| p.id == id).expect("prepared").at;
        let now = self.clock.now(self.micros);
        let later = Timestamp(vote.0 + self.rng.below(now.0.saturating_sub(vote.0).max(1)));
        let (row, effect) = (self.sent[&id].row, self.sent[&id].effect);
        let commits = !self.rng.one_in(4) && (effect != Effect::Renew || self.others.may_renew(row));
        let at = commits.then_some(later);
        if let Deciding::Log(outcome) = self.engine.decide(&self.state, id, at, &self.clock, self.micros) {
            if let (Some(at), Effect::Read) = (at, self.sent[&id].effect) {
                // What it is told is read at its own vote, and holds until its timestamp.
                let row = self.sent[&id].row;
                self.told.push((at, row, self.sum(row, vote)));
            }
            if effect == Effect::Renew {
                self.others.vote(row, commits);
            }
            self.pending.push(Record::Outcome(Outcome { id: outcome.id, at: outcome.at }));
            self.count(if at.is_some() { "committed" } else { "aborted" });
        }
    }

    fn fold(&mut self, row: u64) {
        let id = self.new_id();
        if let Some((at, writes)) = self.engine.fold(&self.state, id, &key(row), &self.clock, self.micros) {
            self.pending.push(Record::Batch(vec![Committed { id, at, writes }]));
            self.count("folded");
        }
    }

    /// The primary is lost, with some of what it has appended.
    fn crash(&mut self) {
        self.pending.clear();
        let kept = self.rng.below(self.appended.len() as u64 + 1) as usize;
        self.appended.truncate(kept);
        self.apply_all();
        self.term += 1;
        self.rows = Rows::new(self.rng.below(1 << 30));
        self.steps.clear();
        self.engine = Engine::start(NodeId(1), GroupId(2), &self.state, self.rules).folding_from(1);
        self.lease();
        self.count("terms");
    }

    /// What a reader adds up.
    fn sum(&self, row: u64, at: Timestamp) -> Option<i128> {
        let range = escrow::range(&key(row));
        let keys = self.store.keys().filter(|k| range.contains(k.as_bytes()));
        let seen: Vec<_> = keys.filter_map(|k| Some((k, self.store.get(k, at)?.value.clone()?))).collect();
        let mut sum = Sum::default();
        sum.add_site(seen.iter().map(|(k, v)| (*k, &v[..])));
        sum.value
    }

    /// The incarnation of the row's share, and its grants, down and up, as a reader adds them up.
    fn grants(&self, row: u64, at: Timestamp) -> Option<(TxnId, i128, i128)> {
        let share = Share::decode(self.store.get(&key(row), at)?.value.as_ref()?)?;
        let range = escrow::range(&key(row));
        let keys = self.store.keys().filter(|k| range.contains(k.as_bytes()));
        let lates = keys.filter_map(|k| Late::of(k, self.store.get(k, at)?.value.as_ref()?));
        let counted = lates.filter(|(_, id, late)| *id > share.floor && late.incarnation == share.incarnation);
        let (down, up) = counted.fold((share.down, share.up), |(down, up), (.., late)| (down + late.down, up + late.up));
        Some((share.incarnation, down, up))
    }

    /// What is offered in a round of a row's number.
    fn offer(&self, row: u64, incarnation: TxnId, at: Timestamp) -> Option<Free> {
        self.round(row, at).filter(|round| round.incarnation == incarnation)?.offer
    }

    /// Every moment of the past.
    fn check(&self) -> Checked {
        let mut history = self.history.clone();
        history.sort();
        let mut values: BTreeMap<u64, Option<i128>> = BTreeMap::new();
        let mut grants: BTreeMap<u64, (TxnId, i128, i128)> = BTreeMap::new();
        let mut told = self.told.clone();
        told.sort();
        let mut told = told.into_iter().peekable();
        let mut counted = BTreeSet::new();
        for (at, id) in history {
            while let Some((when, row, value)) = told.next_if(|(when, ..)| *when < at) {
                let is = values.get(&row).copied().flatten();
                if is != value {
                    return Err(format!("row {row} is {is:?} at {when}, and a reader was told {value:?}"));
                }
            }
            if !counted.insert(id) {
                return Err(format!("{id} commits twice"));
            }
            let Some(sent) = self.sent.get(&id) else { continue };
            let value = values.entry(sent.row).or_default();
            *value = match (sent.effect, *value) {
                (Effect::Add(_), None) => return Err(format!("{id} changes row {}, which is not there", sent.row)),
                (Effect::Add(delta), Some(value)) => Some(value + delta),
                (Effect::Set(value), _) => Some(value),
                (Effect::Delete, _) => None,
                (Effect::Shift(late), Some(value)) => Some(value + late.contribution),
                // Its first tokens here.
                (Effect::Shift(late), None) if sent.row == AWAY => Some(late.contribution),
                // A site without a share gets one.
                (Effect::Renew, None) => Some(0),
                (Effect::Read | Effect::Renew | Effect::Shift(_), value) => value,
            };
            match sent.effect {
                Effect::Set(_) => drop(grants.insert(sent.row, (id, -BOUNDS.lo, BOUNDS.hi))),
                Effect::Delete => drop(grants.remove(&sent.row)),
                Effect::Renew => {
                    let (down, up) = grants.get(&sent.row).map_or((0, 0), |(_, down, up)| (*down, *up));
                    grants.insert(sent.row, (id, down, up));
                }
                Effect::Shift(Late { incarnation, down, up, .. }) => {
                    let of_row = grants.entry(sent.row).or_insert((incarnation, 0, 0));
                    if of_row.0 != incarnation {
                        return Err(format!("{id} moves tokens of {incarnation} to {}", of_row.0));
                    }
                    *of_row = (incarnation, of_row.1 + down, of_row.2 + up);
                }
                Effect::Add(_) | Effect::Read => {}
            }
            let (is, seen) = (grants.get(&sent.row).copied(), self.grants(sent.row, at));
            if is != seen {
                return Err(format!("row {} has {is:?} granted at {at}, and a reader adds up {seen:?}", sent.row));
            }
            if let (Some((_, down, up)), Some(value)) = (is, self.sum(sent.row, at))
                && (down + value < 0 || up - value < 0)
            {
                return Err(format!("row {} is {value}, and {down} and {up} are granted at {at}", sent.row));
            }
            if let (Some((incarnation, down, up)), Some(value)) = (is, self.sum(sent.row, at))
                && let Some(Free { down: d, up: u }) = self.offer(sent.row, incarnation, at)
                && (down + value < d || up - value < u)
            {
                return Err(format!("row {} is {value} of {down} and {up}, and {d} and {u} are offered at {at}", sent.row));
            }
            for (row, value) in &values {
                let seen = self.sum(*row, at);
                if seen != *value {
                    return Err(format!("row {row} is {value:?} at {at}, and a reader adds up {seen:?}"));
                }
            }
        }
        Ok(())
    }

    fn step(&mut self) -> Checked {
        self.micros += self.rng.below(400);
        if self.rng.one_in(60) {
            // Ids of long ago are below the watermark.
            self.micros += 31_000_000;
        }
        if self.rng.one_in(100) {
            let micros = self.micros;
            self.micros = micros + 1;
            self.apply_all();
            let _ = self
                .engine
                .renew_lease(&self.state, &self.clock, self.micros)
                .map(|lease| self.append(vec![Record::Lease(lease)]));
            self.apply_all();
        }
        let row = self.rng.below(ROWS);
        match self.rng.below(24) {
            0..4 => {
                let delta = [-3, -2, -1, 1, 2, 3][self.rng.below(6) as usize];
                let id = self.begin(row, Effect::Add(delta));
                match self.rng.one_in(4) {
                    true => self.reserve(id, row, delta),
                    false => self.certify(id)?,
                }
            }
            4 => {
                let newest = self.grants(row, Timestamp::MAX).map(|(incarnation, ..)| incarnation);
                let sets =
                    self.sent.iter().filter(|(_, s)| s.row == row && matches!(s.effect, Effect::Set(_))).map(|(id, _)| *id);
                let any = sets.max();
                let by = [-2, -1, 1, 2][self.rng.below(4) as usize];
                let (down, up) = if self.rng.one_in(2) { (by, 0) } else { (0, by) };
                // Whoever gives tokens has a share of the row; the others may have had one of an
                // older row.
                let incarnation = newest.and(if self.rng.one_in(4) { any } else { newest });
                if let Some(incarnation) = incarnation {
                    let contribution = if self.rng.one_in(3) { [-1, 1][self.rng.below(2) as usize] } else { 0 };
                    let id = self.begin(row, Effect::Shift(Late { contribution, ..Late::grant(incarnation, down, up) }));
                    match self.rng.one_in(2) {
                        true => self.certify(id)?,
                        false => self.prepare(id),
                    }
                }
            }
            5..7 => {
                let delta = [-3, -2, -1, 1, 2, 3][self.rng.below(6) as usize];
                let id = self.begin(row, Effect::Add(delta));
                self.prepare(id);
            }
            7 => {
                let value = self.rng.below(7) as i128;
                let effect = [Effect::Set(value), Effect::Read, Effect::Delete, Effect::Set(value)][self.rng.below(4) as usize];
                let id = self.begin(row, effect);
                match effect != Effect::Read && self.rng.one_in(2) {
                    true => self.certify(id)?,
                    false => self.prepare(id),
                }
            }
            8 => {
                // A copy of an old message.
                let ids: Vec<TxnId> = self.sent.keys().rev().take(12).copied().collect();
                let id = ids[self.rng.below(ids.len() as u64) as usize];
                if !self.votes.contains_key(&id)
                    && self.state.prepared().all(|p| p.id != id)
                    && !matches!(self.sent[&id].effect, Effect::Read | Effect::Shift(_))
                {
                    self.certify(id)?;
                }
            }
            9..11 => self.decide(),
            12 if !self.rng.one_in(4) => {
                let id = self.begin(row, Effect::Renew);
                self.prepare(id);
            }
            11 => self.fold(row),
            12 => self.append(Vec::new()),
            13 | 14 => self.apply(),
            16.. if self.rng.one_in(6) => self.use_reserved()?,
            16.. => self.round_event(row)?,
            _ if self.rng.one_in(8) => self.crash(),
            _ => self.append(Vec::new()),
        }
        if self.rules.are_all_kept() {
            self.engine.invariant_engine(&self.state);
        }
        Ok(())
    }
}

fn run(seed: u64, rules: Rules) -> Result<World, String> {
    let mut world = World::new(seed, rules);
    for _ in 0..600 {
        world.step()?;
        world.check_open()?;
    }
    world.settle()?;
    world.check_open()?;
    world.check().map(|()| world)
}

#[test]
fn the_number_is_that_of_the_changes_committed_at_every_moment() {
    let mut passed: BTreeMap<&'static str, u64> = BTreeMap::new();
    for seed in 0..1_000 {
        let world = run(seed, Rules::ALL).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        world.passed.iter().for_each(|(what, n)| *passed.entry(what).or_default() += n);
    }
    for what in
        ["certified", "short", "prepared", "committed", "aborted", "folded", "terms", "steps", "granted", "reserved", "renewed"]
    {
        assert!(passed.get(what).is_some_and(|n| *n >= 300), "{what} hardly happens: {passed:?}");
    }
}

#[test]
fn each_rule_that_is_left_out_is_missed() {
    for bug in PlantedBug::ALL.into_iter().filter(|bug| bug.is_of_shares()) {
        let found = (0..400).find_map(|seed| {
            let run = std::panic::catch_unwind(|| run(seed, Rules::without(bug)).err());
            run.unwrap_or(Some("a panic".into())).map(|e| (seed, e))
        });
        let (seed, e) = found.unwrap_or_else(|| panic!("{} is not missed", bug.name()));
        println!("{}: seed {seed}: {e}", bug.name());
    }
}

/// A transaction on more shares than are held otherwise, and one on the first of those that come
/// after.
#[test]
fn all_shares_of_a_transaction_are_held_together() {
    let shares = meridian_base::limits::SHARES_HELD_MAX as u64 + 1;
    let mut world = World::new(1, Rules::ALL);
    let change = |world: &mut World, rows: std::ops::Range<u64>, change: &dyn Fn(TxnId) -> Change| {
        let id = world.new_id();
        let write = |row| Mutation { key: key(row), change: change(id), columns: ColumnMask::ALL };
        let schema = SchemaUse { version: world.state.grant().version, ..SchemaUse::default() };
        let (reads, writes, global) = (Vec::new(), rows.map(write).collect(), Default::default());
        let request = CommitRequest { id, reads, writes, min_commit: Timestamp::MIN, schema, global };
        world.sent.insert(id, Sent { request, row: 0, effect: Effect::Read, was_refused: false });
        world.certify(id).expect("nothing is wrong");
        world.append(Vec::new());
        world.apply_all();
        id
    };
    let set = change(&mut world, 0..shares, &|id| Change::Put(Share::begin(id, 3, BOUNDS).encode()));
    change(&mut world, 0..shares, &|_| Change::Add(1));
    for row in 0..shares - 2 {
        let _ = world.engine.share(&world.store, &key(row), &world.clock, world.micros);
    }
    change(&mut world, shares - 2..shares, &|_| Change::Add(1));
    change(&mut world, 0..shares, &|_| Change::Shift(Box::new(Late::grant(set, 0, 5))));
    let sums = [0, shares - 3, shares - 2, shares - 1].map(|row| world.sum(row, Timestamp::MAX));
    assert_eq!(sums, [Some(4), Some(4), Some(5), Some(5)]);
    assert_eq!(world.grants(0, Timestamp::MAX), Some((set, -BOUNDS.lo, BOUNDS.hi + 5)));
}
