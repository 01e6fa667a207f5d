//! Whether invariants that take time are looked at.
//!
//! An assertion that costs nothing is always on. One that walks through a structure is a function
//! whose name begins with `invariant_`. The tests of a crate call its own. In a node they run after
//! every log entry and every tick once [`look`] was called.

use std::sync::atomic::{AtomicBool, Ordering};

static LOOKED_AT: AtomicBool = AtomicBool::new(false);

/// From now on, in this process.
pub fn look() {
    LOOKED_AT.store(true, Ordering::Relaxed);
}

/// Whether `invariant_*` functions are to be run.
pub fn are_looked_at() -> bool {
    LOOKED_AT.load(Ordering::Relaxed)
}
