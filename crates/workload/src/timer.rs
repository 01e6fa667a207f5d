//! Time for workloads.
//!
//! Sleeping is `tokio::time`, which the simulator controls. The times recorded in histories come
//! from a [`Timer`], because every simulated host has a tokio clock of its own, and the checkers
//! need one order over all clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::time::Instant;

/// One clock for all clients of a run, in microseconds. It never goes back, and if one call
/// returned before another was made, in whichever task, the second returns at least as much as the
/// first.
pub trait Timer: Send + Sync {
    /// Microseconds since some fixed point before the run.
    fn now_micros(&self) -> u64;
}

/// The machine's monotonic clock, for runs against real processes.
#[derive(Clone, Copy, Debug)]
pub struct WallTimer {
    start: Instant,
}

impl WallTimer {
    /// Starts at 0 now.
    pub fn start() -> WallTimer {
        WallTimer { start: Instant::now() }
    }
}

impl Timer for WallTimer {
    fn now_micros(&self) -> u64 {
        self.start.elapsed().as_micros() as u64
    }
}

/// A shared «finish what you are doing and return».
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Not stopped yet.
    pub fn new() -> Stop {
        Stop::default()
    }
    /// Asks everybody to finish.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Release);
    }
    /// Whether somebody asked.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
