//! The task beside a replica whose node is a host of a pod: it makes segments, joins them, and does
//! what time makes happen in them. Steps that lack slots wait here.

use crate::local::metrics::Counter;
use crate::replica::pod::host::{Host, Line};
use crate::replica::pod::leader::{Leader, Silent};
use crate::replica::pod::member::Member;
use crate::replica::pod::slots::SlotSet;
use crate::replica::pod::{Outlet, Pod, SIZES, clock_of};
use crate::replica::term::{Ended, Term};
use crate::replica::term_rounds::TermRounds;
use crate::replica::{Core, Replica};
use meridian_base::{Error, GroupId, Result, Timestamp};
use meridian_commit::Participant;
use meridian_pod::{Damaged, HostFigures, Phase, Purpose, Segment, SharedMemory};
use meridian_region::{Engine, GroupState};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How often shared memory is looked at: rings by L, slots by all.
const LOOK: Duration = Duration::from_millis(1);
/// How often a host that is in no segment looks for one.
const FIND: Duration = Duration::from_millis(25);
/// How long a step waits for slots. The gateway asks again.
const SLOTS_WAIT: Duration = Duration::from_secs(2);
/// Before it gives leadership away, L waits this long for the other hosts to stop.
const CLOSING: Duration = Duration::from_secs(2);
/// What is taken off an echoed lease, of a thousand: clocks differ in speed.
const SPEED: u128 = 10;

/// A step's slots, as soon as it has them: kept until this is dropped.
pub(crate) struct SlotsKept<'a> {
    replica: &'a Replica,
    term: u64,
    number: u64,
}

impl Drop for SlotsKept<'_> {
    fn drop(&mut self) {
        let mut core = self.replica.core.lock();
        let term = core.term.as_mut().filter(|term| term.number == self.term);
        if let Some(member) = term.and_then(|term| term.outlet.member_mut()) {
            member.end_wait(self.number);
        }
    }
}

/// The hosts of a group's pod, at one moment.
pub(crate) struct PodHosts {
    pub group: GroupId,
    /// The pod's name.
    pub pod: String,
    pub generation: u64,
    pub hosts: Vec<HostFigures>,
}

/// What the task has while its replica is in no term.
#[derive(Default)]
struct Outside {
    line: Option<Line>,
    /// The last term for which there was a segment here, or none could be had.
    done: u64,
}

impl Replica {
    /// Whether a pod can have this group: not the catalog's or one of GLOBAL tables, whose clocks
    /// are not the node's.
    pub(crate) fn may_have_pod(&self) -> bool {
        self.id != meridian_base::GroupId::CATALOG && !self.is_global
    }

    /// The pod that this replica is in.
    pub(crate) fn pod(&self) -> Option<&Arc<Pod>> {
        self.common.pod.get().filter(|_| self.may_have_pod())
    }

    /// The slots that a step needs; `None` where there is no pod.
    pub(crate) fn slots(&self, of: impl FnOnce() -> SlotSet) -> Option<SlotSet> {
        self.pod().map(|_| of())
    }

    /// Waits until this host has the slots.
    pub(crate) async fn await_slots(&self, needs: SlotSet) -> Result<SlotsKept<'_>> {
        let deadline = Instant::now() + SLOTS_WAIT;
        let kept = {
            let mut core = self.core.lock();
            let term = core.term.as_mut().ok_or_else(|| Error::not_primary(self.id))?;
            let number = term.outlet.member_mut().map_or(0, |member| member.wait(needs));
            SlotsKept { replica: self, term: term.number, number }
        };
        self.common.metrics.add(Counter::PodWaits);
        loop {
            tokio::time::sleep(LOOK).await;
            let core = self.core.lock();
            match core.term.as_ref().filter(|term| term.number == kept.term) {
                None => return Err(Error::not_primary(self.id)),
                Some(term) if term.outlet.member().is_none_or(|member| member.has_all(&needs)) => break,
                Some(_) if Instant::now() >= deadline => {
                    return Err(Error::unavailable(format!("the hosts of the pod of group {} are too busy", self.id))
                        .detail("Another host has held the rows for too long."));
                }
                Some(_) => {}
            }
        }
        Ok(kept)
    }

    /// Whether this host of a pod may still answer: its lease and its generation go on.
    pub(crate) fn host_lease_holds(&self) -> bool {
        let core = self.core.lock();
        let Some(Term { outlet: Outlet::Ring(host), engine, clock, .. }) = &core.term else { return false };
        engine.may_serve(clock, self.physical())
            && host.line.lease.may_serve(self.common.runtime.monotonic_micros())
            && !host.line.segment.is_over()
            && !host.member.is_lost()
            && self.common.runtime.steady_clock().stepped().is_none()
    }

    /// Whether the memory of the pod is gone: what was drawn from its clock is made up.
    pub(crate) fn is_memory_lost(&self) -> bool {
        let core = self.core.lock();
        core.term.as_ref().and_then(|term| term.outlet.member()).is_some_and(Member::is_lost)
    }

    /// What others drew: nothing is told to a client that the node's clock has not reached.
    pub(crate) fn observe_pod(&self, at: Timestamp) {
        if self.pod().is_some() {
            self.common.clock.advance_to(at);
        }
    }

    /// See the module.
    pub(crate) async fn run_pod(self: Arc<Self>, pod: Arc<Pod>) {
        let mut outside = Outside::default();
        while !self.is_retired() {
            let (is_leading, is_beside_leader) = {
                let core = self.core.lock();
                let outlet = core.term.as_ref().map(|term| &term.outlet);
                (matches!(outlet, Some(Outlet::Led(_))), matches!(outlet, Some(Outlet::Ring(_))))
            };
            if is_leading {
                for silent in self.tend_hosts() {
                    self.look_after(&pod, silent).await;
                }
            } else if is_beside_leader {
                self.tick_host();
            } else if self.is_serving() {
                outside.line = None;
                self.make_segment(&pod, &mut outside).await;
            } else if outside.line.is_some() {
                self.go_on_joining(&mut outside);
            } else {
                self.find_segment(&pod, &mut outside).await;
                if outside.line.is_none() {
                    tokio::time::sleep(FIND).await;
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn segment_name(&self, term: u64) -> String {
        format!(".g{}.{term}", self.id.0)
    }

    // --- the leader

    /// L makes the segment of its term.
    async fn make_segment(&self, pod: &Arc<Pod>, outside: &mut Outside) {
        let Some(term) = self.serving_term().filter(|term| *term != outside.done) else { return };
        outside.done = term;
        let purpose = Purpose { generation: term, group: self.id, term };
        let (door, name, prefix) = (pod.door.clone(), self.segment_name(term), format!(".g{}.", self.id.0));
        let making = self.common.runtime.run_io("make-segment", move || {
            door.remove_others(&prefix, &name)?;
            let memory = door.create(&name, meridian_pod::Layout::new(SIZES).map_err(std::io::Error::other)?.len())?;
            Segment::create(memory, SIZES, purpose).map_err(std::io::Error::other)
        });
        let segment = match making.await {
            Ok(segment) => segment,
            Err(e) => {
                tracing::warn!("{}: there is no pod in term {term}: {e}", self.id);
                return;
            }
        };
        loop {
            {
                let mut core = self.core.lock();
                let Core { state, term: Some(leading), .. } = &mut *core else { return };
                if leading.number != term || !self.is_serving() {
                    return;
                }
                if !leading.engine.is_preparing() {
                    match self.lead_segment(state, leading, segment.clone()) {
                        Ok(()) => tracing::info!("{}: a pod begins with term {term}: {}", self.id, pod.name),
                        Err(e) => {
                            segment.end();
                            tracing::warn!("{}: there is no pod in term {term}: {e}", self.id);
                        }
                    }
                    return;
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn lead_segment(&self, state: &GroupState, term: &mut Term, segment: Segment<SharedMemory>) -> Result<()> {
        let leader = Leader::new(segment.clone(), self.node, state)?;
        let clock = clock_of(&segment, self.clock.max_offset());
        clock.advance_to(self.clock.now(self.physical()));
        segment.raise_given(state.applied().index);
        segment.raise_acked(state.newest());
        // Before other hosts write, nobody reads without asking the engine.
        self.fast.unsettle();
        term.engine.lead_pod(state, &clock);
        term.clock = clock;
        *self.pod_segment.lock() = Some(segment);
        term.outlet = Outlet::Led(Box::new(leader));
        Ok(())
    }

    /// What is in the rings goes to the log; hosts come and go.
    fn tend_hosts(&self) -> Vec<Silent> {
        let mut core = self.core.lock();
        match self.tend(&mut core) {
            Ok(silent) => silent,
            Err(e) => {
                self.end_term(&mut core, &e);
                Vec::new()
            }
        }
    }

    fn tend(&self, core: &mut Core) -> std::result::Result<Vec<Silent>, Ended> {
        let Core { state, term: Some(term), .. } = &mut *core else { return Ok(Vec::new()) };
        let Term { outlet: Outlet::Led(leader), engine, queues, clock, payloads, .. } = term else { return Ok(Vec::new()) };
        if leader.member.segment.is_over() && !leader.is_closing {
            return Err(Ended::because("the generation is over"));
        }
        let given = leader.member.given;
        if !leader.has_taken() {
            leader.take()?;
        }
        let locks = (&*queues, clock.now(self.physical()));
        let silent = leader.tend(state, engine, locks, || self.lease_left(), *payloads)?;
        self.common.metrics.add_many(Counter::PodSlotsGiven, leader.member.given - given);
        self.pump(core);
        Ok(silent)
    }

    /// Microseconds of L's lease that hosts may use.
    fn lease_left(&self) -> u32 {
        let now = Instant::now();
        let left = match self.lease_holds() {
            true => self.raft().lease_until().map_or(Duration::ZERO, |until| until.saturating_duration_since(now)),
            false => Duration::ZERO,
        };
        u32::try_from(left.as_micros() * (1_000 - SPEED) / 1_000).unwrap_or(u32::MAX)
    }

    async fn look_after(&self, pod: &Arc<Pod>, silent: Silent) {
        let (door, node) = (pod.door.clone(), silent.state.node);
        let ended = self.common.runtime.run_io("look-after-host", move || {
            if silent.is_hung && !door.has_ended(node)? {
                tracing::warn!("node {node} has not moved for long: its process is ended");
                door.kill(node)?;
            }
            door.has_ended(node)
        });
        match ended.await {
            Ok(true) => {}
            Ok(false) => return,
            Err(e) => {
                tracing::warn!("{}: whether node {node} has ended cannot be found out: {e}", self.id);
                return;
            }
        }
        let mut core = self.core.lock();
        if let Some(Term { outlet: Outlet::Led(leader), .. }) = &mut core.term {
            match leader.fence(silent) {
                Ok(()) => self.common.metrics.add(Counter::PodTakeovers),
                Err(e) => self.end_term(&mut core, &e),
            }
        }
    }

    /// Leadership is about to be given away: the other hosts stop, and what is in their rings goes
    /// into the log. Whether they have stopped.
    pub(crate) async fn close_pod(&self) -> bool {
        let deadline = Instant::now() + CLOSING;
        loop {
            {
                let mut core = self.core.lock();
                let Some(Term { outlet: Outlet::Led(leader), .. }) = &mut core.term else { return true };
                leader.is_closing = true;
                leader.member.segment.end();
                match leader.is_alone() {
                    Ok(true) => return true,
                    Ok(false) if Instant::now() < deadline => {}
                    Ok(false) | Err(_) => return false,
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    // --- other hosts

    /// Looks for the segment of the term in which another replica leads.
    async fn find_segment(&self, pod: &Arc<Pod>, outside: &mut Outside) {
        let role = self.raft().role();
        let Some(leader) = role.leader.filter(|leader| *leader != self.node && !role.is_leader) else { return };
        let (door, name) = (pod.door.clone(), self.segment_name(role.term));
        let opening = self.common.runtime.run_io("open-segment", move || {
            let memory = door.open(&name).ok()?;
            Segment::open(memory).ok()
        });
        let Some(segment) = opening.await else { return };
        let purpose = segment.purpose();
        if (purpose.group, purpose.term) != (self.id, role.term) || segment.is_over() {
            return;
        }
        match Line::join(&segment, self.node, self.common.runtime.random()) {
            Ok(line) => outside.line = line,
            Err(e) => tracing::warn!("{}: node {} cannot join {leader}'s pod: {e}", self.id, self.node),
        }
    }

    /// A host that has joined begins to serve when L has admitted it, and it has applied what L had
    /// by then.
    fn go_on_joining(&self, outside: &mut Outside) {
        let Some(line) = &mut outside.line else { return };
        line.beat(self.common.runtime.monotonic_micros());
        let role = self.raft().role();
        let purpose = line.segment.purpose();
        let is_of_term = !role.is_leader && role.term == purpose.term;
        match line.phase() {
            Ok(Phase::Joining) if is_of_term && !line.segment.is_over() => return,
            Ok(Phase::Live) if is_of_term && !line.segment.is_over() => {}
            _ => {
                outside.line = None;
                return;
            }
        }
        let mut core = self.core.lock();
        let has_applied = core.state.applied().index >= line.segment.given();
        if core.term.is_some() || !has_applied || !line.lease.may_serve(self.common.runtime.monotonic_micros()) {
            return;
        }
        let Some(line) = outside.line.take() else { return };
        if let Err(e) = self.begin_host(&mut core, line, purpose.term) {
            tracing::warn!("{}: node {} is no host: {e}", self.id, self.node);
        }
    }

    fn begin_host(&self, core: &mut Core, line: Line, number: u64) -> std::result::Result<(), Damaged> {
        let clock = clock_of(&line.segment, self.clock.max_offset());
        let engine = Engine::start(self.node, self.id, &core.state, self.common.rules).join_pod(&core.state, &clock);
        let now = Timestamp::from_micros(self.physical());
        let participant = Participant::start(self.id, &core.state, now, self.common.ballot_rules);
        let outlet = Outlet::Ring(Box::new(Host::new(line)?));
        core.term = Some(Term::new(number, (engine, clock), outlet, participant, TermRounds::new(0), self.fast.clone()));
        tracing::info!("{}: node {} is a host of the pod in term {number}", self.id, self.node);
        Ok(())
    }

    fn tick_host(&self) {
        let mut core = self.core.lock();
        if let Err(e) = self.try_tick_host(&mut core) {
            self.end_term(&mut core, &e);
        }
    }

    fn try_tick_host(&self, core: &mut Core) -> std::result::Result<(), Ended> {
        let Core { state, term: Some(term), .. } = &mut *core else { return Ok(()) };
        let (physical, now) = (self.physical(), self.common.runtime.monotonic_micros());
        let is_idle = !term.has_certified();
        let Term { outlet: Outlet::Ring(host), engine, queues, clock, .. } = term else { return Ok(()) };
        if host.line.segment.is_over() || host.line.phase()? != Phase::Live {
            return Err(Ended::because("the generation is over, or this host is not in it any more"));
        }
        let given = host.member.given;
        host.tick(state, engine, queues, clock, (physical, now), is_idle)?;
        self.common.metrics.add_many(Counter::PodSlotsGiven, host.member.given - given);
        if !host.line.lease.may_serve(now) {
            return Err(Ended::because("its lease in the pod has run out"));
        }
        self.pump(core);
        Ok(())
    }

    /// Another replica can lead from here on.
    pub(crate) fn end_generation(&self) {
        if let Some(segment) = &*self.pod_segment.lock() {
            segment.end();
        }
    }

    /// What the payload makes visible is acknowledged from here on, by any host (P3). Messages that
    /// tell of it move others' clocks there.
    pub(crate) fn raise_acked(&self, term: &Term, newest: Timestamp) {
        if let Some(member) = term.outlet.member() {
            member.segment.raise_acked(newest);
            self.common.clock.advance_to(newest);
        }
    }

    /// Before a step: the hosts' clock is where the messages of other groups have moved the node's,
    /// and what L has lowered is obeyed.
    pub(crate) fn follow_node(&self, state: &GroupState, term: &mut Term) {
        if term.clock.is_shared() {
            term.clock.advance_to(self.common.clock.now(self.physical()));
            term.look_at_schema_bound(state);
        }
    }

    /// Whether the fast path's bits say that this replica answers plain reads and commits.
    pub(crate) fn serves(&self) -> bool {
        self.fast.is_serving() || self.fast.is_beside_leader()
    }

    /// Slots that this host has of the group's pod, and how many hosts serve, if this one leads.
    pub(crate) fn pod_figures(&self) -> Option<(usize, usize)> {
        let core = self.core.lock();
        let outlet = &core.term.as_ref()?.outlet;
        let hosts = if let Outlet::Led(leader) = outlet { leader.live() } else { 0 };
        Some((outlet.member()?.len(), hosts))
    }

    /// The hosts of this group's pod, if this node is one of them.
    ///
    /// # Errors
    ///
    /// If the pod's memory is damaged.
    pub(crate) fn pod_hosts(&self) -> Result<Option<PodHosts>> {
        let segment = {
            let core = self.core.lock();
            core.term.as_ref().and_then(|term| term.outlet.member()).map(|member| member.segment.clone())
        };
        let (Some(pod), Some(segment)) = (self.pod(), segment) else { return Ok(None) };
        let hosts = segment.figures().map_err(|e| Error::unavailable(e.to_string()))?;
        Ok(Some(PodHosts { group: self.id, pod: pod.name.clone(), generation: segment.purpose().term, hosts }))
    }

    /// What has been read by others of the term's timestamps, for a schema grant.
    pub(crate) fn used_by_pod(&self, term: &mut Term) {
        if let Outlet::Led(leader) = &term.outlet {
            let last = leader.member.segment.last_drawn();
            term.engine.used_by_others(last);
        }
    }
}
