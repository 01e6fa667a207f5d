//! Whether invariants that take time are looked at.
//!
//! An assertion that costs nothing is always on. One that walks through a structure is a function whose name begins with
//! `invariant_`. These run after every event, such as a log entry that was applied, wherever this module says so: in builds
//! with debug assertions, and in every simulation.

use std::sync::atomic::{AtomicBool, Ordering};

static LOOKED_AT: AtomicBool = AtomicBool::new(cfg!(debug_assertions));

/// From now on, in this process.
pub fn look() {
    LOOKED_AT.store(true, Ordering::Relaxed);
}

/// Whether `invariant_*` functions are to be run.
pub fn are_looked_at() -> bool {
    LOOKED_AT.load(Ordering::Relaxed)
}
