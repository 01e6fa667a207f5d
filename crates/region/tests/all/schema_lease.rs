//! The catalog and its groups under lost, late, repeated and reordered messages, skewed clocks,
//! crashes of the coordinator and changes of primary. The groups are real engines; the checker only
//! looks at what they committed:
//!
//! * no transaction that planned with an old version commits above the step that replaced it
//!   (counterexamples 19, 32), none with a new version below it (31);
//! * after a DDL is acknowledged, nothing that planned before it commits;
//! * when messages arrive again, steps end and everybody can commit.

use crate::rng::Rng;
use bytes::Bytes;
use meridian_base::record::{Committed, Payload, Record, SchemaGrant};
use meridian_base::{
    Clock, ColumnMask, CommitRequest, DescriptorId, GroupId, Key, KeyRange, LogPosition, NodeId, SchemaUse, SchemaVersion,
    Target, Timestamp, TxnId, Write,
};
use meridian_region::schema_lease::{Action, Delays, Granted, SchemaLeases};
use meridian_region::{Certified, Engine, GroupState, Moment, PlantedBug, ReadGate, Rules, SchemaCheck, Versions};
use std::collections::BTreeMap;
use std::time::Duration;

const MAX_OFFSET: Duration = Duration::from_millis(250);
const DELAYS: Delays =
    Delays { round_trip: Duration::from_millis(100), commit: Duration::from_millis(50), max_offset: MAX_OFFSET };
const TABLE: DescriptorId = DescriptorId(7);

/// Nobody reads here; the store is never asked.
struct NoVersions;
impl Versions for NoVersions {
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

struct Primary {
    state: GroupState,
    engine: Engine,
    clock: Clock,
    /// Against true time, in microseconds; within half of `MAX_OFFSET`.
    skew: i64,
    /// Grants in the log and not applied yet.
    appended: Vec<SchemaGrant>,
    /// Grants that are applied: the catalog has no answer, since reads may be planned with a
    /// version before.
    unanswered: Vec<(u64, Timestamp)>,
}

impl Primary {
    fn new(group: GroupId, rng: &mut Rng, rules: Rules) -> Primary {
        let state = GroupState::new(rules);
        let engine = Engine::start(NodeId(1), group, &state, rules);
        Primary { state, engine, clock: Clock::new(MAX_OFFSET), skew: skew(rng), appended: Vec::new(), unanswered: Vec::new() }
    }
    fn physical(&self, now: u64) -> u64 {
        now.saturating_add_signed(self.skew)
    }
    /// The answers to the catalog that may leave.
    fn answers(&mut self, now: u64) -> Vec<(u64, Timestamp)> {
        let now = self.clock.now(self.physical(now));
        if self.engine.lease_before().is_some_and(|until| now <= until) {
            return Vec::new();
        }
        self.engine.end_lease_before();
        std::mem::take(&mut self.unanswered)
    }
    fn apply(&mut self, record: Record) {
        let payload = Payload { records: vec![record], ..Payload::default() };
        let position = LogPosition { index: self.state.applied().index + 1, term: 1 };
        assert!(self.state.apply(position, &payload));
        self.engine.applied(&self.state, &payload, &mut Vec::new());
    }
}

fn skew(rng: &mut Rng) -> i64 {
    rng.below(250_000) as i64 - 125_000
}

#[derive(Clone)]
enum Message {
    ToGroup(GroupId, SchemaGrant),
    ToCatalog(GroupId, u64, Timestamp),
}

/// The catalog's log: what survives its coordinator.
#[derive(Default)]
struct Catalog {
    current: SchemaGrant,
    rows: BTreeMap<GroupId, Granted>,
    steps: Vec<(SchemaVersion, Timestamp)>,
    acknowledged: SchemaVersion,
}

struct World {
    rng: Rng,
    now: u64,
    rules: Rules,
    catalog: Catalog,
    coordinator: SchemaLeases,
    /// Catalog transactions that were started.
    transactions: Vec<Action>,
    network: Vec<Message>,
    groups: BTreeMap<GroupId, Primary>,
    committed: Vec<(SchemaVersion, Timestamp)>,
    /// Whether the group had a newer version than the one that was read with.
    reads: Vec<(SchemaVersion, Timestamp, bool)>,
    reliable: bool,
}

type Checked = Result<(), String>;

impl World {
    fn new(seed: u64, rules: Rules) -> World {
        let mut rng = Rng::new(seed);
        let groups: BTreeMap<_, _> = (2..5).map(GroupId).map(|g| (g, Primary::new(g, &mut rng, rules))).collect();
        let mut catalog = Catalog::default();
        catalog.current.version = SchemaVersion(1);
        catalog.rows = groups.keys().map(|g| (*g, Granted::default())).collect();
        catalog.acknowledged = SchemaVersion(1);
        let coordinator = SchemaLeases::new(catalog.current.clone(), catalog.rows.clone(), DELAYS).with_rules(rules);
        let (transactions, network, committed, reads) = Default::default();
        let now = 1_000_000_000;
        World { rng, now, rules, catalog, coordinator, transactions, network, groups, committed, reads, reliable: false }
    }

    fn time(&self) -> Timestamp {
        Timestamp::from_micros(self.now)
    }

    fn take(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Send { group, grant } => self.network.push(Message::ToGroup(group, grant)),
                Action::Acknowledge { version } => self.catalog.acknowledged = version,
                transaction => self.transactions.push(transaction),
            }
        }
    }

    /// Runs a catalog transaction: certified against the catalog's rows, then durable; the
    /// coordinator hears of it if it lives.
    fn run_transaction(&mut self, transaction: Action, heard: bool) -> Checked {
        let now = self.time();
        let mut actions = Vec::new();
        match transaction {
            Action::Log { group, row, grant } => {
                let passes = self.catalog.current.version == grant.version && self.catalog.rows[&group].seq + 1 == row.seq;
                if passes {
                    self.catalog.rows.insert(group, row);
                }
                match passes {
                    true if heard => self.coordinator.logged(group, row.seq, now, &mut actions),
                    false if heard => self.coordinator.log_failed(group, row.seq),
                    _ => {}
                }
            }
            Action::Commit { above, seqs, rows } => {
                let passes = seqs.iter().all(|(g, seq)| self.catalog.rows[g].seq == *seq);
                if !passes {
                    if heard {
                        self.coordinator.step_abandoned(now, &mut actions);
                    }
                } else {
                    let at = above.next().max(now);
                    // Steps that nobody sees come in between.
                    let version = SchemaVersion(self.catalog.current.version.0 + 1 + self.rng.below(2));
                    self.catalog.steps.push((version, at));
                    self.catalog.current.version = version;
                    self.catalog.current.committed_at = at;
                    self.catalog.current.changed.push((TABLE, version));
                    self.catalog.rows.extend(rows);
                    self.check_step(version, at)?;
                    if heard {
                        self.coordinator.step_committed(version, at, now, &mut actions);
                    }
                }
            }
            Action::Send { .. } | Action::Acknowledge { .. } => unreachable!("not transactions"),
        }
        self.take(actions);
        Ok(())
    }

    fn check_step(&self, version: SchemaVersion, at: Timestamp) -> Checked {
        if let Some((v, p)) = self.committed.iter().find(|(v, p)| *v < version && *p > at) {
            return Err(format!("{v:?} committed at {p}, above the step to {version:?} at {at}"));
        }
        match self.reads.iter().find(|(v, p, _)| *v < version && *p >= at) {
            Some((v, p, _)) => Err(format!("{v:?} was read at {p}, above the step to {version:?} at {at}")),
            None => Ok(()),
        }
    }

    fn deliver(&mut self, message: Message) {
        match message {
            Message::ToGroup(group, grant) => {
                let primary = self.groups.get_mut(&group).expect("a known group");
                let known = primary.state.grant();
                match primary.engine.grant(&primary.state, &grant) {
                    Some(grant) => primary.appended.push(grant),
                    None if known.seq == grant.seq => primary.unanswered.push((known.seq, known.bound)),
                    None => {}
                }
                self.answer(group);
            }
            Message::ToCatalog(group, seq, bound) => {
                let mut actions = Vec::new();
                self.coordinator.answered(group, seq, bound, self.time(), &mut actions);
                self.take(actions);
            }
        }
    }

    fn apply_grants(&mut self, group: GroupId) {
        let primary = self.groups.get_mut(&group).expect("a known group");
        for grant in std::mem::take(&mut primary.appended) {
            let (seq, bound) = (grant.seq, grant.bound);
            primary.apply(Record::Schema(grant));
            primary.unanswered.push((seq, bound));
        }
        self.answer(group);
    }

    fn answer(&mut self, group: GroupId) {
        let answers = self.groups.get_mut(&group).expect("a known group").answers(self.now);
        self.network.extend(answers.into_iter().map(|(seq, bound)| Message::ToCatalog(group, seq, bound)));
    }

    fn pass_time(&mut self, micros: u64) {
        self.now += micros;
        let mut actions = Vec::new();
        self.coordinator.tick(self.time(), &mut actions);
        self.take(actions);
        let now = self.now;
        for primary in self.groups.values_mut() {
            let physical = primary.physical(now);
            if let Some(lease) = primary.engine.renew_lease(&primary.state, &primary.clock, physical) {
                primary.apply(Record::Lease(lease));
            }
        }
        [2, 3, 4].map(GroupId).into_iter().for_each(|group| self.answer(group));
    }

    /// A gateway commits with a version that it has cached: the newest, or an older one.
    fn commit(&mut self, group: GroupId, version: SchemaVersion) -> Result<bool, String> {
        let primary = self.groups.get_mut(&group).expect("a known group");
        let physical = primary.physical(self.now);
        let id = TxnId { hlc: primary.clock.tick(physical), gateway: NodeId(9) };
        let write = Write { key: Key::new(b"k"), value: None, columns: ColumnMask::ALL };
        let request = CommitRequest {
            id,
            reads: vec![],
            writes: vec![write.into()],
            min_commit: Timestamp::MIN,
            schema: SchemaUse { version, descriptors: vec![TABLE], ..SchemaUse::default() },
            global: Default::default(),
        };
        let answer = primary.engine.certify(&primary.state, &NoVersions, &request, &primary.clock, physical);
        let Certified::Append { at, writes } = answer else { return Ok(false) };
        primary.apply(Record::Batch(vec![Committed { id, at, writes }]));
        self.committed.push((version, at));
        if version < self.catalog.acknowledged {
            return Err(format!("{version:?} commits after {:?} was acknowledged", self.catalog.acknowledged));
        }
        for (v, step) in &self.catalog.steps {
            if (*v > version && at > *step) || (*v <= version && at <= *step) {
                return Err(format!("{version:?} committed at {at}; the step to {v:?} was at {step}"));
            }
        }
        Ok(true)
    }

    /// A gateway reads with a version that it has cached, at the primary's clock.
    fn read(&mut self, group: GroupId, version: SchemaVersion) -> Checked {
        let primary = self.groups.get_mut(&group).expect("a known group");
        let physical = primary.physical(self.now);
        let s = primary.clock.tick(physical);
        let schema = SchemaUse { version, descriptors: vec![TABLE], ..SchemaUse::default() };
        if primary.engine.check_read(&primary.state, &schema, s) != SchemaCheck::Passed {
            return Ok(());
        }
        let moment = Moment { state: &primary.state, versions: &NoVersions, clock: &primary.clock, physical_micros: physical };
        let target = Target::Key(Key::new(b"other"));
        if primary.engine.read_gate(&moment, &target, ColumnMask::ALL, s) != ReadGate::Ready {
            return Ok(());
        }
        if version < self.catalog.acknowledged {
            return Err(format!("{version:?} is read after {:?} was acknowledged", self.catalog.acknowledged));
        }
        self.reads.push((version, s, version < primary.state.grant().version));
        for (v, step) in &self.catalog.steps {
            if (*v > version && s >= *step) || (*v <= version && s < *step) {
                return Err(format!("{version:?} is read at {s}; the step to {v:?} was at {step}"));
            }
        }
        Ok(())
    }

    fn crash_coordinator(&mut self) -> Checked {
        // What it had appended is in its successor's log, or lost.
        for transaction in std::mem::take(&mut self.transactions) {
            if self.rng.one_in(2) {
                self.run_transaction(transaction, false)?;
            }
        }
        let current = self.catalog.current.clone();
        self.coordinator = SchemaLeases::new(current, self.catalog.rows.clone(), DELAYS).with_rules(self.rules);
        Ok(())
    }

    fn change_primary(&mut self, group: GroupId) {
        let keep = self.rng.one_in(2);
        let skew = skew(&mut self.rng);
        let rules = self.rules;
        let primary = self.groups.get_mut(&group).expect("a known group");
        primary.engine.lost();
        for grant in std::mem::take(&mut primary.appended) {
            if keep {
                primary.apply(Record::Schema(grant));
            }
        }
        primary.skew = skew;
        primary.clock = Clock::new(MAX_OFFSET);
        primary.engine = Engine::start(NodeId(1), group, &primary.state, rules);
    }

    fn step(&mut self) -> Checked {
        let group = GroupId(2 + self.rng.below(3) as u32);
        match self.rng.below(40) {
            0..4 => {
                let micros = self.rng.below(300_000);
                self.pass_time(micros);
            }
            4 if self.rng.one_in(6) => {
                let micros = self.rng.below(25_000_000);
                self.pass_time(micros);
            }
            5..17 if !self.network.is_empty() => {
                let i = self.rng.below(self.network.len() as u64) as usize;
                let message = match !self.reliable && self.rng.one_in(4) {
                    true => self.network[i].clone(),
                    false => self.network.swap_remove(i),
                };
                if self.reliable || !self.rng.one_in(8) {
                    self.deliver(message);
                }
            }
            17..23 if !self.transactions.is_empty() => {
                let i = self.rng.below(self.transactions.len() as u64) as usize;
                let transaction = self.transactions.swap_remove(i);
                self.run_transaction(transaction, true)?;
            }
            23..29 => self.apply_grants(group),
            29..37 => {
                let back = self.rng.below(3);
                let version = SchemaVersion(self.catalog.current.version.0.saturating_sub(back).max(1));
                match self.rng.one_in(2) {
                    true => drop(self.commit(group, version)?),
                    false => self.read(group, version)?,
                }
            }
            37 => {
                let mut actions = Vec::new();
                // Who was heard of may be gone by now.
                for group in [2, 3, 4].map(GroupId) {
                    if self.rng.one_in(2) {
                        self.coordinator.heard(group, self.time());
                    }
                }
                let certifying = self.rng.one_in(2).then(|| Duration::from_millis(self.rng.below(400)));
                self.coordinator.begin_step(vec![TABLE], certifying, self.time(), &mut actions);
                self.take(actions);
            }
            38 if !self.reliable && self.rng.one_in(8) => self.crash_coordinator()?,
            39 if !self.reliable && self.rng.one_in(8) => self.change_primary(group),
            _ => {}
        }
        Ok(())
    }

    /// Some time in which nothing is lost.
    fn let_all_arrive(&mut self) -> Checked {
        self.pass_time(50_000);
        for transaction in std::mem::take(&mut self.transactions) {
            self.run_transaction(transaction, true)?;
        }
        for message in std::mem::take(&mut self.network) {
            self.deliver(message);
        }
        for group in [2, 3, 4].map(GroupId) {
            self.apply_grants(group);
        }
        Ok(())
    }

    /// Messages arrive again: within the leases' length everything is settled.
    fn settle(&mut self) -> Checked {
        self.reliable = true;
        for _ in 0..2_000 {
            self.let_all_arrive()?;
        }
        if self.coordinator.in_step() {
            return Err("a step never ends".into());
        }
        for group in [2, 3, 4].map(GroupId) {
            if !self.commit(group, self.catalog.current.version)? {
                return Err(format!("{group} cannot commit"));
            }
        }
        Ok(())
    }
}

fn run(seed: u64, rules: Rules) -> Result<World, String> {
    let mut world = World::new(seed, rules);
    for _ in 0..3_000 {
        world.step()?;
    }
    world.settle()?;
    Ok(world)
}

#[test]
fn no_transaction_commits_with_an_old_schema_above_the_step_that_replaced_it() {
    let (mut steps, mut commits, mut old, mut before) = (0, 0, 0, 0);
    for seed in 0..120 {
        let world = run(seed, Rules::ALL).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        steps += world.catalog.steps.len();
        commits += world.committed.len();
        let newest = world.catalog.current.version;
        old += world.committed.iter().filter(|(v, _)| *v < newest).count();
        before += world.reads.iter().filter(|(_, _, is_before)| *is_before).count();
    }
    // What the test promises to try.
    assert!(steps > 200 && commits > 4_000 && old > 500, "{steps} steps, {commits} commits, {old} before a later step");
    assert!(before > 10, "{before} reads with a version before the group's");
}

/// A question that met a group between two primaries is no reason to wait until its lease has run
/// out.
#[test]
fn a_step_asks_again_whom_its_question_did_not_reach() -> Checked {
    let mut world = World::new(1, Rules::ALL);
    world.settle()?;
    let began = world.now;
    let mut actions = Vec::new();
    assert!(world.coordinator.begin_step(vec![TABLE], None, world.time(), &mut actions));
    world.take(actions);
    world.network.clear();
    while world.coordinator.in_step() {
        world.let_all_arrive()?;
        assert!(world.now - began < 5_000_000, "the step waits for whom nobody asks");
    }
    Ok(())
}

/// Logs and delivers everything at once, to all groups but one that does not answer.
struct Direct {
    coordinator: SchemaLeases,
    version: u64,
    acknowledged: Option<SchemaVersion>,
    /// The group that may not answer does.
    all_answer: bool,
}

impl Direct {
    const SILENT: GroupId = GroupId(3);

    fn take(&mut self, mut actions: Vec<Action>, now: Timestamp) {
        while !actions.is_empty() {
            let mut more = Vec::new();
            for action in actions {
                match action {
                    Action::Log { group, row, .. } => self.coordinator.logged(group, row.seq, now, &mut more),
                    Action::Send { group, .. } if group == Self::SILENT && !self.all_answer => {}
                    Action::Send { group, grant } => self.coordinator.answered(group, grant.seq, grant.bound, now, &mut more),
                    Action::Commit { above, .. } => {
                        self.version += 1;
                        self.coordinator.step_committed(SchemaVersion(self.version), above.next().max(now), now, &mut more);
                    }
                    Action::Acknowledge { version } => self.acknowledged = Some(version),
                }
            }
            actions = more;
        }
    }

    /// How long a step takes.
    fn step(&mut self, now: &mut u64) -> Duration {
        let (start, mut actions) = (*now, Vec::new());
        self.acknowledged = None;
        assert!(self.coordinator.begin_step(vec![TABLE], None, Timestamp::from_micros(*now), &mut actions));
        self.take(actions, Timestamp::from_micros(*now));
        while self.acknowledged.is_none() {
            self.pass(now, 100);
            assert!(*now - start < 200_000_000, "the step never ends");
        }
        Duration::from_micros(*now - start)
    }

    fn pass(&mut self, now: &mut u64, millis: u64) {
        *now += millis * 1_000;
        let mut actions = Vec::new();
        self.coordinator.tick(Timestamp::from_micros(*now), &mut actions);
        self.take(actions, Timestamp::from_micros(*now));
    }
}

#[test]
fn a_group_that_does_not_answer_is_waited_out_once_and_one_that_never_did_not_at_all() {
    let mut now = 1_000_000_000;
    let current = SchemaGrant { version: SchemaVersion(1), ..SchemaGrant::default() };
    for (bound, first) in [(now + 60_000_000, 60..63), (0, 0..1)] {
        let known = Granted { seq: u64::from(bound > 0), bound: Timestamp::from_micros(bound) };
        let rows = [(GroupId(2), Granted::default()), (Direct::SILENT, known)].into();
        let coordinator = SchemaLeases::new(current.clone(), rows, DELAYS);
        let mut direct = Direct { coordinator, version: 1, acknowledged: None, all_answer: false };
        direct.pass(&mut now, 100);
        let took = direct.step(&mut now);
        assert!(first.contains(&took.as_secs()), "{took:?}");
        for _ in 0..3 {
            // Renewals go on meanwhile, for those who answer.
            (0..700).for_each(|_| direct.pass(&mut now, 100));
            let took = direct.step(&mut now);
            assert!(took < Duration::from_secs(1), "{took:?}");
        }
        assert_eq!(direct.version, 5);
    }
}

/// Its last grant was answered: that gives it no time beyond the step that waits for it.
#[test]
fn a_group_that_answered_and_fell_silent_is_waited_out_once() {
    let mut now = 1_000_000_000;
    let current = SchemaGrant { version: SchemaVersion(1), ..SchemaGrant::default() };
    let rows = [GroupId(2), Direct::SILENT].map(|g| (g, Granted::default())).into();
    let coordinator = SchemaLeases::new(current, rows, DELAYS);
    let mut direct = Direct { coordinator, version: 1, acknowledged: None, all_answer: true };
    (0..100).for_each(|_| direct.pass(&mut now, 100));
    direct.all_answer = false;
    let took = direct.step(&mut now);
    assert!((30..63).contains(&took.as_secs()), "{took:?}");
    for _ in 0..3 {
        let took = direct.step(&mut now);
        assert!(took < Duration::from_secs(1), "{took:?}");
    }
    // It comes back, has its lease again, and is lost again.
    direct.all_answer = true;
    (0..700).for_each(|_| direct.pass(&mut now, 100));
    assert!(direct.step(&mut now) < Duration::from_secs(1));
    direct.all_answer = false;
    let took = direct.step(&mut now);
    assert!((30..63).contains(&took.as_secs()), "{took:?}");
}

/// A step over real delays: how long it takes until the groups hear of its version, and whether
/// they can commit all the while.
#[test]
fn a_step_takes_two_round_trips_and_two_commits_and_nobody_stalls() {
    let (hop, commit) = (DELAYS.round_trip / 2, DELAYS.commit);
    let large = Duration::from_millis(300);
    for (certifying, is_heard) in [(None, true), (Some(Duration::ZERO), true), (Some(large), true), (None, false)] {
        let certifies = certifying.unwrap_or_default();
        let groups = [GroupId(2), GroupId(3)];
        let current = SchemaGrant { version: SchemaVersion(1), ..SchemaGrant::default() };
        let rows = groups.map(|g| (g, Granted::default())).into();
        let mut coordinator = SchemaLeases::new(current, rows, DELAYS);
        let start = Duration::from_secs(1_000);
        let time = |at: Duration| Timestamp::from_micros(at.as_micros() as u64);
        // What happens when, in order; the bounds that the groups have; when the step is over.
        let mut due: BTreeMap<(Duration, u32), Arrival> = BTreeMap::new();
        let mut bounds = BTreeMap::new();
        let (mut number, mut began, mut acknowledged) = (0, None, None);
        let mut now = start;
        while acknowledged.is_none() {
            let mut actions = Vec::new();
            coordinator.tick(time(now), &mut actions);
            if now - start == Duration::from_secs(2) {
                began = Some(now);
                if is_heard {
                    groups.iter().for_each(|g| coordinator.heard(*g, time(now)));
                }
                assert!(coordinator.begin_step(vec![TABLE], certifying, time(now), &mut actions));
            }
            while let Some(first) = due.first_entry().filter(|e| e.key().0 <= now) {
                match first.remove() {
                    Arrival::Done(Action::Log { group, row, .. }) => coordinator.logged(group, row.seq, time(now), &mut actions),
                    Arrival::Done(Action::Commit { above, .. }) => {
                        coordinator.step_committed(SchemaVersion(2), above.next(), time(now), &mut actions);
                    }
                    Arrival::Done(_) => unreachable!("only transactions take their time"),
                    Arrival::Grant(group, grant) => {
                        bounds.insert(group, grant.bound);
                        due.insert((now + hop, number), Arrival::Answer(group, grant));
                        number += 1;
                    }
                    Arrival::Answer(group, grant) => {
                        coordinator.answered(group, grant.seq, grant.bound, time(now), &mut actions);
                    }
                }
            }
            for action in actions {
                let (after, arrival) = match action {
                    Action::Send { group, grant } => (hop, Arrival::Grant(group, grant)),
                    Action::Acknowledge { .. } => {
                        acknowledged = Some(now);
                        continue;
                    }
                    // The catalog votes when it has heard of the others.
                    Action::Commit { .. } if certifying.is_some() => {
                        (DELAYS.round_trip + commit * 2 + certifies, Arrival::Done(action))
                    }
                    transaction => (commit, Arrival::Done(transaction)),
                };
                due.insert((now + after, number), arrival);
                number += 1;
            }
            assert!(now - start < Duration::from_secs(1) || bounds.values().all(|bound| *bound > time(now)), "a group stalls");
            now += Duration::from_millis(5);
        }
        let took = acknowledged.zip(began).map(|(end, start)| end - start).unwrap_or_default();
        let votes = u32::from(certifying.is_some());
        let trips = 2 + votes + u32::from(!is_heard);
        let expected = DELAYS.round_trip * trips + commit * (2 + votes) + certifies;
        assert!(took <= expected + Duration::from_millis(30), "{took:?} for {expected:?}");
    }
}

enum Arrival {
    /// A transaction of the catalog.
    Done(Action),
    Grant(GroupId, SchemaGrant),
    Answer(GroupId, SchemaGrant),
}

#[test]
fn planted_bugs_of_the_schema_lease_are_found() {
    use PlantedBug::{CommitBelowSchemaStep, SchemaLeaseByBoundOnly, SchemaRegrantByDelayedMessage, StepNotTiedToGrants};
    for bug in [SchemaLeaseByBoundOnly, SchemaRegrantByDelayedMessage, StepNotTiedToGrants, CommitBelowSchemaStep] {
        let found = (0..300).find(|seed| run(*seed, Rules::without(bug)).is_err());
        assert!(found.is_some(), "{} was not found", bug.name());
    }
}
