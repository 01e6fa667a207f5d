//! How far the other nodes' clocks are from this one's, as messages there and back can tell.

use crate::membership::peers::LIVENESS_TIMEOUT;
use meridian_base::NodeId;
use meridian_base::runtime::Runtime;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// What is known of the other nodes' clocks.
pub(crate) struct Clocks {
    measured: Mutex<BTreeMap<NodeId, Measured>>,
    /// This node's clock was compared with others, or there is none to compare with.
    pub compared: watch::Sender<bool>,
    pub said: Mutex<Option<Instant>>,
    /// What was measured before this says nothing of the clocks.
    valid_from: Mutex<Option<Instant>>,
}

/// How long after this node's clock was moved, by an operator, all others' may not be moved yet.
const MOVING_MAX: Duration = Duration::from_secs(10);

impl Default for Clocks {
    fn default() -> Clocks {
        Clocks {
            measured: Mutex::default(),
            compared: watch::Sender::new(false),
            said: Mutex::default(),
            valid_from: Mutex::default(),
        }
    }
}

#[derive(Clone, Copy)]
struct Measured {
    at: Instant,
    /// The other clock minus this node's, and how well that is known.
    offset_micros: i64,
    round_trip: Duration,
    /// How far this machine's wall clock was behind this node's clock then. That changes: a clock
    /// that is ahead goes slower.
    wall_behind_micros: i64,
}

/// What another node's clock is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Against {
    /// What this node uses.
    OwnClock,
    /// What this machine shows.
    WallClock,
}

impl Measured {
    /// Whether it is surely farther than `bound` from a clock here.
    fn is_off(&self, bound: Duration, against: Against) -> bool {
        let offset_micros = match against {
            Against::OwnClock => self.offset_micros,
            Against::WallClock => self.offset_micros + self.wall_behind_micros,
        };
        let surely = offset_micros.unsigned_abs().saturating_sub(self.round_trip.as_micros() as u64 / 2);
        surely > bound.as_micros() as u64
    }
}

impl Clocks {
    /// Until this is true no replica on this node leads.
    pub fn watch_compared(&self) -> watch::Receiver<bool> {
        self.compared.subscribe()
    }

    /// A node said what its clock shows, between `sent` and now. Gives the difference.
    pub fn measure(&self, runtime: &Arc<dyn Runtime>, node: NodeId, physical_micros: u64, sent: Instant) -> i64 {
        let round_trip = sent.elapsed();
        let half = round_trip.as_micros() as i64 / 2;
        let offset_micros = physical_micros as i64 + half - runtime.physical_micros() as i64;
        let wall_behind_micros = runtime.steady_clock().behind().as_micros() as i64;
        let measured = Measured { at: Instant::now(), offset_micros, round_trip, wall_behind_micros };
        self.measured.lock().insert(node, measured);
        offset_micros
    }

    /// An operator moves the clocks of all nodes, and has moved this one.
    pub fn moved(&self) {
        *self.valid_from.lock() = Some(Instant::now() + MOVING_MAX);
    }

    /// How many clocks were measured lately, and how many of them differ too much from one here.
    pub fn judge(&self, bound: Duration, against: Against) -> (usize, usize) {
        let (measured, valid_from) = (self.measured.lock(), *self.valid_from.lock());
        let is_valid = |m: &&Measured| m.at.elapsed() < LIVENESS_TIMEOUT && valid_from.is_none_or(|from| m.at >= from);
        let recent = measured.values().filter(is_valid);
        recent.fold((0, 0), |(all, off), m| (all + 1, off + usize::from(m.is_off(bound, against))))
    }
}
