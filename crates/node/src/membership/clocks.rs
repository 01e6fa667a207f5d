//! This node's physical clock: compared with the other nodes', and with what groups on this node
//! were promised.
//!
//! A timestamp once promised is never taken back: nothing is issued below a group's ceiling or
//! closed timestamp, whatever became of the clock that promised it. So a clock that is wrong must
//! be noticed before anything is promised by it:
//!
//! * while the node runs, a step of the wall clock is not followed
//!   ([`meridian_base::SteadyClock`]), and the node stops ([`stop_at_step`]);
//! * when the node starts, it compares its clock with the other nodes' before any of its replicas
//!   leads ([`compare`]);
//! * and all the time, a node whose clock is too far from a majority of the others' stops itself
//!   ([`stop_if_off`]), and so does one that started while its wall clock was ahead, as soon as the
//!   others agree with the wall clock alone.
//!
//! What remains is a node without others, or cut off from them, that starts with a clock that is
//! ahead; and all nodes of a cluster being wrong alike, since they share a machine. Set right, such
//! a clock is *behind* what was promised. A wait for that is normal after a restart, up to
//! [`BEHIND_MAX`]. Beyond that the node says so, to its log, to `meridian node status` and to
//! clients, and an operator may move the clocks of all nodes ahead to where the promises end
//! ([`accept`]), by the same amount on every node. From there they go at half speed until the wall
//! clocks have caught up. Nothing else changes: timestamps go on above everything that was issued,
//! reads at the present see what was acknowledged, and nodes' clocks agree with each other as well
//! as before. It rests on no clock: what other primaries might still do under leases of before has
//! ended in real time ([`meridian_raft::Group::lease_until`]), since a leader is elected only when
//! promises to the one before it have run out.

use crate::local::small_file;
use crate::membership::offsets::Against;
use crate::membership::shared::Shared;
use crate::replica::errors::{behind_error, in_words};
use crate::transport::rpc::Rpc;
use crate::transport::wire::{ClockReport, NodeStatus, Request, Response};
use meridian_base::limits::BEHIND_MAX;
use meridian_base::runtime::Runtime;
use meridian_base::{Error, NodeId, Result, SteadyClock, Timestamp};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long a node that starts waits for others to compare its clock with. When none of them
/// answers it goes on without: a region that is cut off must be able to start.
pub(crate) const COMPARE_MAX: Duration = Duration::from_secs(3);
pub(crate) const COMPARE_CALL: Duration = Duration::from_millis(1_000);
const COMPARE_PAUSE: Duration = Duration::from_millis(100);
/// A node looks this often whether its clock has stepped.
const STEP_INTERVAL: Duration = Duration::from_millis(500);
/// A clock that is behind is spoken of this often.
const BEHIND_NOTICE: Duration = Duration::from_secs(30);
/// Where it is written that an operator has moved the clock ahead.
const FILE: &str = "clock";
const FILE_BYTES_MAX: u64 = 256;

/// How far two clocks may be apart before that is a reason to stop.
fn apart_max(shared: &Shared) -> Duration {
    shared.clock.max_offset() * 8 / 10
}

fn differs(off: usize, of: usize, bound: Duration) -> Error {
    Error::fatal(format!(
        "this node's clock differs from {off} of {of} nodes' by more than {} ms; synchronise it and start again",
        bound.as_millis()
    ))
}

/// A node whose clock is too far from a majority of its peers', or was set ahead, stops itself. A
/// node that is behind what it has promised promises nothing meanwhile, and an operator may be
/// about to move its clock to where he has moved theirs.
pub(crate) fn stop_if_off(shared: &Shared) {
    if shared.groups.clock_behind().is_some() {
        return;
    }
    let bound = apart_max(shared);
    let (measured, off) = shared.clocks.judge(bound, Against::OwnClock);
    let was_set_right = is_wall_right(shared, bound);
    if was_set_right || measured >= 2 && off * 2 > measured {
        shared.fail(differs(off, measured, bound));
    }
}

/// Stops the node when its clock has stepped ahead, also while it waits to join a cluster. The
/// clock does not follow the step, so it stays behind the other nodes' clocks, and they refuse each
/// other's messages.
pub(crate) async fn stop_at_step(shared: Arc<Shared>) {
    loop {
        // A reading finds the step. A node that waits may have nothing else that reads its clock.
        shared.runtime.physical_micros();
        if let Some(by) = shared.runtime.steady_clock().stepped() {
            let e = Error::fatal(format!(
                "the clock of this machine jumped ahead by {} ms: this node stops before it uses such a time",
                by.as_millis()
            ))
            .detail("Its clock differs from what monotonic time says, by more than max_offset.")
            .hint("Start it again when the clock is right. If it was set right just now, start it at once.");
            return shared.fail(e);
        }
        tokio::time::sleep(STEP_INTERVAL).await;
    }
}

/// Whether all others agree with this machine's wall clock, and none with the clock of this node:
/// it started while the wall clock was ahead, and that was set right since. To start again is all
/// it needs; of two nodes, only this one knows that.
fn is_wall_right(shared: &Shared, bound: Duration) -> bool {
    let (measured, off) = shared.clocks.judge(bound, Against::OwnClock);
    measured > 0 && off == measured && shared.clocks.judge(bound, Against::WallClock).1 == 0
}

/// Before anything is promised by this clock, it is compared with the other nodes'.
pub(crate) async fn compare(shared: Arc<Shared>) {
    let deadline = Instant::now() + COMPARE_MAX;
    loop {
        let others = shared.rpc.known();
        futures::future::join_all(others.iter().map(|node| ask(&shared, *node))).await;
        let bound = apart_max(&shared);
        let (measured, off) = shared.clocks.judge(bound, Against::OwnClock);
        if off * 2 > measured {
            // With one other node nobody knows which of the two is right; the one that serves
            // already goes on. Unless it knows better: there is time for it to ask this one, and to
            // make way (`is_wall_right`).
            if Instant::now() >= deadline {
                return shared.fail(differs(off, measured, bound));
            }
        } else if measured * 2 >= others.len() || Instant::now() >= deadline {
            if measured == 0 && !others.is_empty() {
                tracing::warn!("no other node answers: this node's clock is taken to be right");
            }
            shared.clocks.compared.send_replace(true);
            return;
        }
        tokio::time::sleep(COMPARE_PAUSE).await;
    }
}

/// Asks a node what its clock shows. Unlike any other question it is answered to clocks that
/// differ.
pub(crate) async fn ask(shared: &Arc<Shared>, node: NodeId) {
    let sent = Instant::now();
    if let Ok(Response::Clock(report)) = shared.rpc.call(node, Request::Clock, COMPARE_CALL).await {
        shared.clocks.measure(&shared.runtime, node, report.physical_micros, sent);
    }
}

// --- behind what was promised

impl Shared {
    /// What this node's clock shows, for who takes that for the present. A machine that was
    /// suspended finds its clock where it was, until it leaps; the node's does not follow, and is
    /// behind everybody's until the node stops.
    pub(crate) fn present(&self) -> Result<Timestamp> {
        let now = Timestamp::from_micros(self.runtime.physical_micros());
        match self.groups.common.has_clock_stepped() {
            false => Ok(now),
            true => Err(Error::unavailable("the clock of this machine jumped ahead: this node stops")),
        }
    }
}

/// Says now and then that the clock is behind. Gives what clients are told.
pub(crate) fn say_behind(shared: &Shared) -> Option<Error> {
    let (group, by) = shared.groups.clock_behind()?;
    let e = behind_error(group, by);
    let mut said = shared.clocks.said.lock();
    if said.is_none_or(|at| at.elapsed() >= BEHIND_NOTICE) {
        *said = Some(Instant::now());
        tracing::error!("{} (hint: {})", e.message(), e.get_hint().unwrap_or_default());
    }
    Some(e)
}

/// What this node's clock shows, for others and for operators.
pub(crate) fn report(shared: &Shared) -> ClockReport {
    let physical_micros = shared.runtime.physical_micros();
    let behind = shared.groups.clock_behind().map(|(group, by)| (group, by.as_micros() as u64));
    let ahead_of_wall_micros = shared.runtime.steady_clock().behind().as_micros() as u64;
    ClockReport { physical_micros, behind, ahead_of_wall_micros }
}

/// The reports of all nodes in a cluster's status.
pub(crate) async fn add_reports(shared: &Arc<Shared>, status: &mut [NodeStatus]) {
    let asked = status.iter_mut().filter(|n| n.is_live).map(|n| async move {
        n.clock = match n.node.id == shared.me() {
            true => Some(report(shared)),
            false => match shared.rpc.call(n.node.id, Request::Clock, COMPARE_CALL).await {
                Ok(Response::Clock(report)) => Some(report),
                _ => None,
            },
        };
    });
    futures::future::join_all(asked).await;
}

/// Moves this node's clock ahead, because an operator says so: no farther than what was promised
/// here, since whoever can send a message can say so.
pub(crate) async fn advance(shared: &Shared, by: Duration) -> Result<()> {
    let Some((group, behind)) = shared.groups.clock_behind() else {
        return Err(Error::sql("55000", "the clock of this node is not behind anything that was promised here"));
    };
    if by > behind + BEHIND_MAX {
        return Err(Error::sql("22023", format!("the clock of this node is only {} behind group {group}", in_words(behind))));
    }
    let (runtime, clock) = (&shared.runtime, shared.runtime.steady_clock());
    let steady = runtime.physical_micros() + by.as_micros() as u64;
    // First to the disk: a process that is restarted goes on from there.
    let reading = Reading { wall: runtime.wall_micros(), steady };
    small_file::write(runtime, FILE, reading.text())
        .await
        .map_err(|e| Error::unavailable(format!("the clock is not moved: {e}")))?;
    clock.advance(by);
    shared.clocks.moved();
    tracing::warn!("an operator moved this node's clock ahead by {}, to where the promise of group {group} ends", in_words(by));
    Ok(())
}

/// What the file says: two clocks at one moment, in microseconds.
#[derive(Debug, PartialEq, Eq)]
struct Reading {
    wall: u64,
    steady: u64,
}

impl Reading {
    fn text(&self) -> String {
        format!("wall {}\nsteady {}\n", self.wall, self.steady)
    }

    fn parse(text: &str) -> Option<Reading> {
        let number = |name: &str| text.lines().find_map(|l| l.strip_prefix(name)?.trim().parse::<u64>().ok());
        Some(Reading { wall: number("wall ")?, steady: number("steady ")? })
    }
}

/// Where an operator has moved the clock ahead, a process that is restarted goes on. To be called
/// before the clock is used.
pub(crate) fn continue_accepted(runtime: &Arc<dyn Runtime>) {
    let Ok(text) = small_file::read(runtime, FILE, FILE_BYTES_MAX) else { return };
    let Some(Reading { wall, steady }) = Reading::parse(&text) else {
        tracing::warn!("the file {FILE} of the data directory is damaged: the clock starts where the wall clock is");
        return;
    };
    let now = runtime.wall_micros();
    let ahead = Duration::from_micros(SteadyClock::continued(wall, steady, now).saturating_sub(now));
    if !ahead.is_zero() {
        tracing::warn!("this node's clock goes on {} ahead of the wall clock, as an operator has accepted", in_words(ahead));
        runtime.steady_clock().advance(ahead);
    }
}

/// What [`accept`] did, node by node.
pub struct Accepted {
    pub by: Duration,
    pub moved: Vec<NodeId>,
    /// Their clocks are there already.
    pub kept: Vec<NodeId>,
    /// They did not answer, or refused.
    pub failed: Vec<(NodeId, Error)>,
}

/// Moves the clocks of all nodes of a cluster ahead to where the promises end, by the same amount.
/// For command lines, which ask node by node, and are members of nothing.
pub(crate) async fn accept(rpc: &Arc<Rpc>, nodes: &[NodeStatus]) -> Result<Accepted> {
    let patience = Duration::from_secs(5);
    let asked = nodes.iter().map(|n| async move {
        let answer = rpc.call_addr(&n.node.addr, Request::Clock, patience).await;
        (n, answer)
    });
    let (mut reports, mut failed) = (Vec::new(), Vec::new());
    for (n, answer) in futures::future::join_all(asked).await {
        match answer {
            Ok(Response::Clock(report)) => reports.push((n, report)),
            Ok(_) => failed.push((n.node.id, Error::internal("a node gave an answer of another kind"))),
            Err(e) => failed.push((n.node.id, e)),
        }
    }
    let promised = |r: &ClockReport| r.physical_micros + r.behind.map_or(0, |(_, by)| by);
    let Some((_, group, to)) =
        reports.iter().filter_map(|(n, r)| Some((n.node.id, r.behind?.0, promised(r)))).max_by_key(|(_, _, to)| *to)
    else {
        return Err(Error::sql("55000", "no node's clock is behind anything that was promised"));
    };
    let short = |r: &ClockReport| Duration::from_micros(to.saturating_sub(r.physical_micros));
    let (kept, moving): (Vec<_>, Vec<_>) = reports.into_iter().partition(|(_, r)| short(r) <= BEHIND_MAX && r.behind.is_none());
    if let Some((n, _)) = moving.iter().find(|(_, r)| r.behind.is_none()) {
        return Err(Error::sql(
            "55000",
            format!("the clock of node {} is not behind anything that was promised there", n.node.id),
        )
        .detail(format!("Only some of the clocks were ahead. To move these again would cut them off from node {}.", n.node.id))
        .hint(format!("Group {group} serves again by itself when the clock gets to what it was promised.")));
    }
    let by = moving.iter().map(|(_, r)| short(r)).max().unwrap_or_default() + Duration::from_millis(1);
    // At once: until all have moved, they differ.
    let asked = moving.iter().map(|(n, _)| async move {
        let answer = rpc.call_addr(&n.node.addr, Request::AdvanceClock { by }, patience).await;
        (n.node.id, answer)
    });
    let mut moved = Vec::new();
    for (id, answer) in futures::future::join_all(asked).await {
        match answer {
            Ok(_) => moved.push(id),
            Err(e) => failed.push((id, e)),
        }
    }
    Ok(Accepted { by, moved, kept: kept.iter().map(|(n, _)| n.node.id).collect(), failed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_earlier_programs_are_read() {
        let file = include_str!("../../tests/fixtures/files/clock");
        let reading = Reading { wall: 1_700_000_000_000_000, steady: 1_700_000_000_250_000 };
        assert_eq!(reading.text(), file);
        assert_eq!(Reading::parse(file), Some(reading));
        assert_eq!(Reading::parse("wall 1\n"), None);
    }
}
