//! The catalog's side of the schema lease.
//!
//! Every group holds a lease on the catalog's version: «up to `B` the catalog is at `v`». Under it,
//! gateways plan and primaries certify without asking the catalog. The price is paid by DDL: a step
//! that makes `v + 1` must commit above every `B` that any group may still be using with `v`. This
//! module is the state machine that grants the leases and walks a step through:
//!
//! ```text
//!  begin ─▶ Asking ─▶ WaitingOut ─▶ Lowering ─▶ Committing ─▶ Spreading ─▶ acknowledged
//!           who is     silent ones    all others   above all     (v+1, B')
//!           there?     until B +      lower B to   these B       to all; who does not
//!                      max_offset     just enough                answer is waited out
//! ```
//!
//! Groups that were heard of a moment ago are not asked. Only `Lowering` and `Committing` hold
//! renewals back; the lowered bound leaves the groups as long as these are expected to take
//! ([`Delays::until_spread`]), so nobody stalls. A group that falls silent during `Lowering` sends
//! the step back to `WaitingOut`, and the others are renewed. The step's transaction logs the
//! grants of its own version, so that they leave as soon as it has committed.
//!
//! A group gets more time only when it has answered the last grant, and the step's question. One
//! whose primary is gone is sent the newest version with the bound that it has already; so it is
//! waited out once, however many steps follow, and one that was founded and never answered, not at
//! all.
//!
//! Versions that nobody plans with are none of this module's business: a step that changes only
//! records of jobs lowers nothing, and no group hears of it (`Catalog::seen`). So the versions here
//! have gaps.
//!
//! Two things make it safe, whatever is lost, late or repeated, and whoever dies:
//!
//! * A grant is logged in the catalog before it is sent, so `bound_in_use` never underestimates: it
//!   is the largest bound logged, until the group has answered *the last* grant logged.
//! * The step's transaction reads every group's row and finds the `seq`s it counted on, and a
//!   grant's transaction reads the catalog's version and finds the one it grants: certification in
//!   the catalog's group orders the two (counterexample 32). A new coordinator therefore needs to
//!   know nothing about its predecessor's step; it renews, and thereby ends it.
//!
//! The group's side is [`crate::Engine::grant`] (lower, but never below what was issued, read or
//! promised) and [`crate::GroupState`] (a smaller `seq` is ignored).

use crate::rules::Rules;
use meridian_base::limits::SCHEMA_LEASE;
use meridian_base::record::SchemaGrant;
use meridian_base::{DescriptorId, GroupId, SchemaVersion, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How often an unanswered grant, or a step's unanswered question, is sent again.
const RESEND_AFTER: Duration = Duration::from_millis(500);
/// The least time a group is given to answer before it counts as silent.
const PATIENCE_MIN: Duration = Duration::from_millis(1_000);
/// Changed descriptors that a grant names. A transaction planned before the oldest of them plans
/// again.
const CHANGES_MAX: usize = 256;

/// What the catalog's log says about one group's lease: a row of the catalog, written before the
/// grant is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Granted {
    /// The last grant logged.
    pub seq: u64,
    /// The largest bound logged that the group has not answered as lowered.
    pub bound: Timestamp,
}

/// What the caller does next. Actions of one call are done in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Write this row in a catalog transaction that reads the catalog's version and finds
    /// `grant.version`. When it has committed, call [`SchemaLeases::logged`]; if it failed,
    /// [`SchemaLeases::log_failed`].
    Log { group: GroupId, row: Granted, grant: SchemaGrant },
    /// Send the grant to the group's primary (again, if it was sent before); its answer goes to
    /// [`SchemaLeases::answered`].
    Send { group: GroupId, grant: SchemaGrant },
    /// Commit the step's catalog transaction above `above` (its `min_commit`). It reads the rows of
    /// *all* groups, as a range, finds these `seq`s, and writes these rows; then
    /// [`SchemaLeases::step_committed`], else [`SchemaLeases::step_abandoned`].
    Commit { above: Timestamp, seqs: BTreeMap<GroupId, u64>, rows: BTreeMap<GroupId, Granted> },
    /// No group can use the old version any more: acknowledge the DDL.
    Acknowledge { version: SchemaVersion },
}

/// The delays that a step reckons with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delays {
    /// The largest round trip to a region.
    pub round_trip: Duration,
    /// A write to the catalog.
    pub commit: Duration,
    pub max_offset: Duration,
}

impl Delays {
    /// From the decision to lower the leases until the groups hear of the step's version: the log
    /// of the lowered grants, these and their answers, the step, its grants, and half a round trip
    /// for what else there is to do. If a transaction commits with the step, its votes come on top:
    /// their messages, their durability, and the work of certifying it.
    fn until_spread(&self, certifying: Option<Duration>) -> Duration {
        let steps = 2 + u32::from(certifying.is_some());
        (self.round_trip + self.commit) * steps + certifying.unwrap_or_default()
    }
}

/// The state machine of the catalog's primary. See the module's essay.
#[derive(Clone, Debug)]
pub struct SchemaLeases {
    /// The present version, with the changes that led to it. `bound` and `seq` are unused.
    current: SchemaGrant,
    groups: BTreeMap<GroupId, Group>,
    /// The bounds that groups may be using with versions before the one that this term began with.
    inherited: BTreeMap<GroupId, Timestamp>,
    step: Option<Step>,
    delays: Delays,
    rules: Rules,
}

#[derive(Clone, Debug, Default)]
struct Group {
    row: Granted,
    /// A row on its way into the log.
    logging: Option<(Granted, SchemaGrant)>,
    /// The grant of `row`, if this coordinator logged it.
    last: Option<SchemaGrant>,
    last_sent: Timestamp,
    /// The answer to the grant of `row`.
    answered: Option<Timestamp>,
    /// When any answer came last.
    heard: Timestamp,
}

impl Group {
    /// The largest bound that the group may be using.
    fn bound_in_use(&self) -> Timestamp {
        self.answered.unwrap_or(self.row.bound)
    }
    /// The grant is in the catalog's log, and on its way.
    fn granted(&mut self, row: Granted, grant: SchemaGrant, now: Timestamp) {
        *self = Group { row, last: Some(grant), last_sent: now, heard: self.heard, ..Group::default() };
    }
    /// What is logged for a grant up to `bound`, and the bound it gets: who has not answered the
    /// last one gets no more time.
    fn next_row(&self, bound: Timestamp) -> (Granted, Timestamp) {
        let bound = if self.answered.is_some() { bound } else { bound.min(self.row.bound) };
        (Granted { seq: self.row.seq + 1, bound: self.bound_in_use().max(bound) }, bound)
    }
    fn has_answered(&self, version: SchemaVersion) -> bool {
        self.answered.is_some() && self.last.as_ref().is_some_and(|grant| grant.version >= version)
    }
}

#[derive(Clone, Debug)]
struct Step {
    changes: Vec<DescriptorId>,
    phase: Phase,
    since: Timestamp,
    /// Groups that are waited out: not renewed until the step is over.
    silent: BTreeSet<GroupId>,
    /// The grants that lower the others' bounds.
    lowering: BTreeMap<GroupId, u64>,
    /// Of the transaction that commits with it: see [`SchemaLeases::begin_step`].
    certifying: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Asking,
    WaitingOut,
    Lowering,
    /// What is granted with it: each group's row, and the bound.
    Committing {
        grants: BTreeMap<GroupId, (Granted, Timestamp)>,
    },
    /// Committed; these bounds may still be in use with the old version.
    Spreading {
        old: BTreeMap<GroupId, Timestamp>,
    },
}

impl SchemaLeases {
    /// At the start of a term of the catalog's primary, from what the catalog's rows say: the
    /// present version (as a grant whose bound and seq are ignored) and every group's row.
    pub fn new(current: SchemaGrant, rows: BTreeMap<GroupId, Granted>, delays: Delays) -> SchemaLeases {
        let inherited = rows.iter().map(|(group, row)| (*group, row.bound)).collect();
        let groups = rows.into_iter().map(|(group, row)| (group, Group { row, ..Group::default() })).collect();
        SchemaLeases { current, groups, inherited, step: None, delays, rules: Rules::ALL }
    }
    /// The same with a planted bug.
    pub fn with_rules(self, rules: Rules) -> SchemaLeases {
        SchemaLeases { rules, ..self }
    }

    /// A group was created; it is granted its first lease by the next [`SchemaLeases::tick`]. Its
    /// row is part of the transaction that created it (`Granted::default()`), so that a step under
    /// way finds it.
    pub fn add_group(&mut self, group: GroupId) {
        self.groups.entry(group).or_default();
    }
    /// A group is gone, and its row with it.
    pub fn remove_group(&mut self, group: GroupId) {
        self.groups.remove(&group);
    }
    /// The round trips have changed.
    pub fn set_delays(&mut self, delays: Delays) {
        self.delays = delays;
    }
    /// The present version, as it is granted.
    pub fn current(&self) -> &SchemaGrant {
        &self.current
    }
    /// Whether a step is under way.
    pub fn in_step(&self) -> bool {
        self.step.is_some()
    }

    /// Whether no group can use a version before the one that this term began with any more: what
    /// is to be known before a step that an earlier coordinator committed is acknowledged.
    pub fn has_taken_over(&mut self, now: Timestamp) -> bool {
        let (groups, max_offset) = (&self.groups, self.delays.max_offset);
        let version = self.current.version;
        self.inherited.retain(|group, bound| {
            let is_heard = groups.get(group).is_none_or(|state| state.has_answered(version));
            !is_heard && now <= bound.plus(max_offset)
        });
        self.inherited.is_empty()
    }

    /// The groups that do not answer and whose leases the step under way waits out, with the latest
    /// end of these leases. A group is listed only after it had time to answer, and only until its
    /// lease has ended.
    pub fn waits_out(&self, now: Timestamp) -> Option<(Vec<GroupId>, Timestamp)> {
        let step = self.step.as_ref()?;
        let mut waited: BTreeMap<GroupId, Timestamp> = match &step.phase {
            Phase::WaitingOut => {
                let known = step.silent.iter().filter_map(|g| Some((*g, self.groups.get(g)?)));
                known.map(|(g, state)| (g, state.bound_in_use())).collect()
            }
            Phase::Spreading { .. } if now < step.since.plus(self.patience()) => return None,
            Phase::Spreading { old } => {
                let is_silent = |g: &GroupId| self.groups.get(g).is_some_and(|group| !group.has_answered(self.current.version));
                old.iter().filter(|(g, _)| is_silent(g)).map(|(g, bound)| (*g, *bound)).collect()
            }
            Phase::Asking | Phase::Lowering | Phase::Committing { .. } => return None,
        };
        waited.retain(|_, bound| !self.expired(*bound, now));
        let until = waited.values().max().copied()?;
        Some((waited.into_keys().collect(), until))
    }

    /// Time has passed: renewals, repeated messages, a step that waited long enough. Called a few
    /// times a second.
    pub fn tick(&mut self, now: Timestamp, actions: &mut Vec<Action>) {
        self.advance(now, actions);
        for group in self.groups.keys().copied().collect::<Vec<_>>() {
            self.renew(group, now, actions);
            self.resend(group, now, actions);
        }
    }

    /// The row of an [`Action::Log`] is durable: the grant may be sent.
    pub fn logged(&mut self, group: GroupId, seq: u64, now: Timestamp, actions: &mut Vec<Action>) {
        let Some(state) = self.groups.get_mut(&group) else { return };
        let Some((row, grant)) = state.logging.take_if(|(row, _)| row.seq == seq) else { return };
        state.granted(row, grant.clone(), now);
        actions.push(Action::Send { group, grant });
        self.advance(now, actions);
    }

    /// The row of an [`Action::Log`] could not be written: it is tried again by a later tick.
    pub fn log_failed(&mut self, group: GroupId, seq: u64) {
        if let Some(state) = self.groups.get_mut(&group) {
            state.logging.take_if(|(row, _)| row.seq == seq);
        }
    }

    /// A group answered: this grant is durable in its log, with this bound (which may be above the
    /// one asked for).
    pub fn answered(&mut self, group: GroupId, seq: u64, bound: Timestamp, now: Timestamp, actions: &mut Vec<Action>) {
        let Some(state) = self.groups.get_mut(&group) else { return };
        state.heard = now;
        // A row on its way may already be durable and its grant known to nobody but the log: the
        // answer is about an older one, but still about the last one that was sent.
        if seq == state.row.seq {
            state.answered = Some(bound);
        }
        self.advance(now, actions);
        self.renew(group, now, actions);
    }

    /// A group's primary was heard of just now, by other ways than its answers.
    pub fn heard(&mut self, group: GroupId, now: Timestamp) {
        if let Some(state) = self.groups.get_mut(&group) {
            state.heard = now;
        }
    }

    /// Starts a DDL step that changes these descriptors. `false` if one is under way already. If a
    /// transaction commits with it, `certifying` is how long its participants are expected to work
    /// for their votes.
    pub fn begin_step(
        &mut self,
        changes: Vec<DescriptorId>,
        certifying: Option<Duration>,
        now: Timestamp,
        actions: &mut Vec<Action>,
    ) -> bool {
        if self.step.is_some() {
            return false;
        }
        let (silent, lowering) = (BTreeSet::new(), BTreeMap::new());
        self.step = Some(Step { changes, phase: Phase::Asking, since: now, silent, lowering, certifying });
        for (group, state) in &mut self.groups {
            if let Some(grant) = state.last.as_ref().filter(|_| state.heard < now) {
                state.last_sent = now;
                actions.push(Action::Send { group: *group, grant: grant.clone() });
            }
        }
        self.advance(now, actions);
        true
    }

    /// The step's transaction has committed, and made this version: it goes to everybody.
    pub fn step_committed(&mut self, version: SchemaVersion, at: Timestamp, now: Timestamp, actions: &mut Vec<Action>) {
        let Some(step) = &mut self.step else { return };
        let Phase::Committing { grants } = &mut step.phase else { return };
        let grants = std::mem::take(grants);
        let old = self.groups.iter().map(|(group, state)| (*group, state.bound_in_use())).collect();
        let current = &mut self.current;
        *current = SchemaGrant { version, committed_at: at, ..std::mem::take(current) };
        current.changed.extend(step.changes.iter().map(|d| (*d, version)));
        while current.changed.len() > CHANGES_MAX {
            let (_, dropped) = current.changed.remove(0);
            current.complete_from = current.complete_from.max(dropped);
        }
        step.phase = Phase::Spreading { old };
        step.since = now;
        for (group, (row, bound)) in grants {
            let Some(state) = self.groups.get_mut(&group) else { continue };
            let grant = SchemaGrant { bound, seq: row.seq, ..self.current.clone() };
            state.granted(row, grant.clone(), now);
            actions.push(Action::Send { group, grant });
        }
        self.advance(now, actions);
    }

    /// The step's transaction failed, or the DDL was cancelled: renewals go on with the old
    /// version. Once the transaction has committed there is nothing to abandon.
    pub fn step_abandoned(&mut self, now: Timestamp, actions: &mut Vec<Action>) {
        if self.step.as_ref().is_some_and(|step| !matches!(step.phase, Phase::Spreading { .. })) {
            self.step = None;
            self.tick(now, actions);
        }
    }
}

impl SchemaLeases {
    fn patience(&self) -> Duration {
        PATIENCE_MIN.max(self.delays.round_trip * 4)
    }
    fn expired(&self, bound: Timestamp, now: Timestamp) -> bool {
        now > bound.plus(self.delays.max_offset)
    }

    /// Logs a grant of the present version, unless one is on its way.
    fn log(&mut self, group: GroupId, bound: Timestamp, actions: &mut Vec<Action>) {
        let state = self.groups.get_mut(&group).expect("a known group");
        if state.logging.is_some() {
            return;
        }
        let (row, bound) = state.next_row(bound);
        let grant = SchemaGrant { bound, seq: row.seq, ..self.current.clone() };
        state.logging = Some((row, grant.clone()));
        actions.push(Action::Log { group, row, grant });
    }

    fn renew(&mut self, group: GroupId, now: Timestamp, actions: &mut Vec<Action>) {
        if self.renewal_due(group, now) {
            self.log(group, now.plus(SCHEMA_LEASE), actions);
        }
    }

    /// Whether the group's lease is to be renewed now. A step holds renewals back only while it
    /// lowers and commits; whom it waits out is not renewed until it is over.
    fn renewal_due(&self, group: GroupId, now: Timestamp) -> bool {
        let state = &self.groups[&group];
        let asked = state.last.as_ref().map_or(Timestamp::MIN, |grant| grant.bound);
        let old_version = state.last.as_ref().is_none_or(|grant| grant.version < self.current.version);
        let due = old_version || (state.answered.is_some() && asked.since(now) < SCHEMA_LEASE / 2);
        let held = match &self.step {
            _ if !self.rules.ties_steps_to_grants() => false,
            None => false,
            Some(step) => match step.phase {
                Phase::Lowering | Phase::Committing { .. } => true,
                Phase::Asking | Phase::WaitingOut => step.silent.contains(&group),
                Phase::Spreading { .. } => false,
            },
        };
        due && !held
    }

    fn resend(&mut self, group: GroupId, now: Timestamp, actions: &mut Vec<Action>) {
        let state = self.groups.get_mut(&group).expect("a known group");
        // A step's question may have been lost, or have met a group between two primaries: unasked,
        // it would be waited out for nothing.
        let is_asked = |step: &Step| matches!(step.phase, Phase::Asking | Phase::WaitingOut) && state.heard < step.since;
        let is_due = state.answered.is_none() || self.step.as_ref().is_some_and(is_asked);
        let Some(grant) = state.last.as_ref().filter(|_| is_due) else { return };
        if now >= state.last_sent.plus(RESEND_AFTER) {
            state.last_sent = now;
            actions.push(Action::Send { group, grant: grant.clone() });
        }
    }

    /// Moves the step on as far as it can go.
    fn advance(&mut self, now: Timestamp, actions: &mut Vec<Action>) {
        while let Some(step) = self.step.take() {
            let before = step.phase.clone();
            self.step = self.advance_once(step, now, actions);
            if self.step.as_ref().is_none_or(|step| step.phase == before) {
                return;
            }
        }
    }

    fn advance_once(&mut self, mut step: Step, now: Timestamp, actions: &mut Vec<Action>) -> Option<Step> {
        let late = now >= step.since.plus(self.patience());
        match &step.phase {
            Phase::Asking => {
                let unheard: BTreeSet<GroupId> = self.select(|g| g.row.seq > 0 && g.heard < step.since);
                // Who has no time left need not be asked.
                if late || unheard.iter().all(|g| self.expired(self.groups[g].bound_in_use(), now)) {
                    step.silent = unheard;
                    step.phase = Phase::WaitingOut;
                }
            }
            Phase::WaitingOut => {
                // Who answers after all takes part again; who was renewed in the meantime must be
                // known to have it.
                step.silent.retain(|g| self.groups.get(g).is_some_and(|group| group.heard < step.since));
                let gone = |g: &GroupId| self.expired(self.groups[g].bound_in_use(), now);
                let settled = self.groups.values().all(|group| group.logging.is_none());
                if settled && step.silent.iter().all(gone) {
                    step.phase = Phase::Lowering;
                    step.since = now;
                    let lowered = now.plus(self.delays.until_spread(step.certifying));
                    step.lowering.clear();
                    for group in self.takes_part(&step) {
                        step.lowering.insert(group, self.groups[&group].row.seq + 1);
                        self.log(group, lowered.min(self.groups[&group].bound_in_use()), actions);
                    }
                }
            }
            Phase::Lowering => {
                let missing: BTreeSet<GroupId> =
                    self.select_by(|g, state| step.lowering.get(&g).is_some_and(|seq| !self.has_lowered(state, *seq)));
                if missing.is_empty() {
                    let above = self.groups.values().map(Group::bound_in_use).max().unwrap_or(Timestamp::MIN);
                    let mut seqs: BTreeMap<_, _> = self.groups.iter().map(|(g, state)| (*g, state.row.seq)).collect();
                    if !self.rules.ties_steps_to_grants() {
                        seqs.clear();
                    }
                    let next = |(g, state): (&GroupId, &Group)| {
                        // Who was waited out is not to be waited out by the next step again.
                        let is_silent = step.silent.contains(g);
                        let bound = if is_silent { state.bound_in_use() } else { now.plus(SCHEMA_LEASE) };
                        (*g, state.next_row(bound))
                    };
                    let grants: BTreeMap<_, _> = self.groups.iter().map(next).collect();
                    let rows = grants.iter().map(|(g, (row, _))| (*g, *row)).collect();
                    step.phase = Phase::Committing { grants };
                    actions.push(Action::Commit { above, seqs, rows });
                } else if late {
                    step.silent.extend(missing);
                    step.phase = Phase::WaitingOut;
                    step.since = now;
                }
            }
            Phase::Committing { .. } => {}
            Phase::Spreading { old } => {
                let version = self.current.version;
                let done = |(g, bound): (&GroupId, &Timestamp)| match self.groups.get(g) {
                    Some(state) => state.has_answered(version) || self.expired(*bound, now),
                    None => true,
                };
                if old.iter().all(done) {
                    actions.push(Action::Acknowledge { version });
                    return None;
                }
            }
        }
        Some(step)
    }

    /// The lowering is the last grant logged, nothing newer is on its way, and the group has
    /// answered it.
    fn has_lowered(&self, group: &Group, lowering: u64) -> bool {
        let tied = group.row.seq == lowering && group.logging.is_none();
        let tied = tied || (group.row.seq >= lowering && !self.rules.ties_steps_to_grants());
        tied && group.answered.is_some()
    }
    fn select(&self, f: impl Fn(&Group) -> bool) -> BTreeSet<GroupId> {
        self.select_by(|_, state| f(state))
    }
    fn select_by(&self, f: impl Fn(GroupId, &Group) -> bool) -> BTreeSet<GroupId> {
        self.groups.iter().filter(|(g, state)| f(**g, state)).map(|(g, _)| *g).collect()
    }
    /// The groups that a step lowers: those that hold a lease and are not waited out.
    fn takes_part(&self, step: &Step) -> Vec<GroupId> {
        self.select(|g| g.row.seq > 0).into_iter().filter(|g| !step.silent.contains(g)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: GroupId = GroupId(2);
    const B: GroupId = GroupId(3);

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_micros(millis * 1_000)
    }
    /// The coordinator of version 5, whose predecessor has granted leases until 1,000 and 2,000.
    fn successor() -> SchemaLeases {
        let delay = Duration::from_millis(10);
        let delays = Delays { round_trip: delay, commit: delay, max_offset: Duration::from_millis(250) };
        let rows = BTreeMap::from([(A, Granted { seq: 1, bound: at(1_000) }), (B, Granted { seq: 1, bound: at(2_000) })]);
        SchemaLeases::new(SchemaGrant { version: SchemaVersion(5), ..SchemaGrant::default() }, rows, delays)
    }
    /// Logs whatever is to be granted now, and gives who gets it.
    fn grant(leases: &mut SchemaLeases, now: Timestamp) -> BTreeMap<GroupId, SchemaGrant> {
        let mut actions = Vec::new();
        leases.tick(now, &mut actions);
        let mut granted = BTreeMap::new();
        for action in actions {
            if let Action::Log { group, row, grant } = action {
                leases.logged(group, row.seq, now, &mut Vec::new());
                granted.insert(group, grant);
            }
        }
        granted
    }

    /// Until then a step of an earlier coordinator is not acknowledged: somebody may be using the
    /// version before it.
    #[test]
    fn a_successor_has_taken_over_when_each_old_lease_has_ended_or_its_group_has_answered() {
        let mut leases = successor();
        for (now, has_taken_over) in [(500, false), (1_251, false), (2_250, false), (2_251, true), (500, true)] {
            assert_eq!(leases.has_taken_over(at(now)), has_taken_over, "at {now}");
        }
        // A lease ends with the clock that is farthest behind.
        let mut leases = successor();
        leases.remove_group(B);
        assert!(!leases.has_taken_over(at(1_250)));
        assert!(leases.has_taken_over(at(1_251)));
        // An answer says that the group knows the present version.
        let mut leases = successor();
        let granted = grant(&mut leases, at(500));
        for group in [A, B] {
            assert!(!leases.has_taken_over(at(500)));
            leases.answered(group, granted[&group].seq, granted[&group].bound, at(500), &mut Vec::new());
        }
        assert!(leases.has_taken_over(at(500)));
    }

    #[test]
    fn a_group_that_was_created_is_granted_a_lease_and_one_that_is_gone_is_not() {
        let mut leases = successor();
        leases.add_group(GroupId(9));
        leases.remove_group(A);
        let granted = grant(&mut leases, at(500));
        assert_eq!(granted.keys().copied().collect::<Vec<_>>(), [B, GroupId(9)]);
        assert!(granted.values().all(|grant| grant.version == SchemaVersion(5)));
    }

    #[test]
    fn one_step_at_a_time() {
        let mut leases = successor();
        assert!(!leases.in_step());
        assert!(leases.begin_step(Vec::new(), None, at(500), &mut Vec::new()));
        assert!(leases.in_step());
        assert!(!leases.begin_step(Vec::new(), None, at(500), &mut Vec::new()));
        leases.step_abandoned(at(501), &mut Vec::new());
        assert!(!leases.in_step());
    }

    #[test]
    fn a_grant_whose_row_could_not_be_written_is_logged_again() {
        let mut leases = successor();
        let logged = |leases: &mut SchemaLeases, now| {
            let mut actions = Vec::new();
            leases.tick(now, &mut actions);
            let rows = actions.iter().filter_map(|action| match action {
                Action::Log { group: A, row, .. } => Some(row.seq),
                _ => None,
            });
            rows.collect::<Vec<_>>()
        };
        let first = logged(&mut leases, at(500));
        assert_eq!(first.len(), 1);
        assert_eq!(logged(&mut leases, at(501)), [], "it is on its way");
        leases.log_failed(A, first[0] + 1);
        assert_eq!(logged(&mut leases, at(502)), [], "that was another one");
        leases.log_failed(A, first[0]);
        assert_eq!(logged(&mut leases, at(503)), first);
    }

    /// A list that was complete from a version on is not complete from an earlier one when it loses
    /// older changes.
    #[test]
    fn what_a_list_of_changes_lacks_it_lacks_for_ever() {
        let changed = vec![(DescriptorId(7), SchemaVersion(3)); CHANGES_MAX];
        let current =
            SchemaGrant { version: SchemaVersion(5), complete_from: SchemaVersion(4), changed, ..SchemaGrant::default() };
        let mut leases = SchemaLeases { groups: BTreeMap::new(), current, ..successor() };
        assert!(leases.begin_step(vec![DescriptorId(7)], None, at(500), &mut Vec::new()));
        leases.step_committed(SchemaVersion(6), at(500), at(500), &mut Vec::new());
        assert_eq!(leases.current().complete_from, SchemaVersion(4));
    }

    /// Whoever planned with a version from before the changes that a grant lists may have used what
    /// has changed since.
    #[test]
    fn a_grant_says_since_when_its_list_of_changes_is_complete() {
        let mut leases = SchemaLeases { groups: BTreeMap::new(), ..successor() };
        let first = leases.current().version.0;
        for n in 1..=CHANGES_MAX as u64 + 2 {
            assert!(leases.begin_step(vec![DescriptorId(7)], None, at(500), &mut Vec::new()));
            leases.step_committed(SchemaVersion(first + n), at(500), at(500), &mut Vec::new());
            assert!(!leases.in_step(), "nobody has to hear of it");
            let dropped = n.saturating_sub(CHANGES_MAX as u64);
            assert_eq!(leases.current().changed.len() as u64, n - dropped);
            let complete_from = if dropped == 0 { 0 } else { first + dropped };
            assert_eq!(leases.current().complete_from, SchemaVersion(complete_from), "after step {n}");
        }
    }
}
