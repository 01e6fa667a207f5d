//! Threads that must not wait for a disk.
//!
//! A worker of an async scheduler runs many tasks by turns. While one of them waits for a disk, all
//! of them do: answers, heartbeats, and the renewal of leases, for as long as the disk takes. Work
//! with a disk belongs to [`run_io`](crate::runtime::Runtime) and `spawn_io`, which have threads of
//! their own.
//!
//! The program that starts a scheduler declares its workers. Each operation of the server's
//! [`Disk`](crate::runtime::Disk) calls [`assert_may_wait`]; with debug assertions, as in all
//! tests, that panics on a worker. Reads of rows are the exception: the store reads its tables by
//! itself, on the thread of the session or of the primary that asks.

use std::cell::Cell;

thread_local! {
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

/// The calling thread is a worker of an async scheduler from here on.
pub fn declare() {
    IS_WORKER.set(true);
}

/// Whether the calling thread may wait for a disk.
pub fn may_wait() -> bool {
    !IS_WORKER.get()
}

/// Panics on a worker, in programs with debug assertions.
#[inline]
#[track_caller]
pub fn assert_may_wait(what: &str) {
    debug_assert!(may_wait(), "{what} would wait for a disk on a worker of an async scheduler");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "it is about threads")]
    fn a_worker_must_not_wait_and_other_threads_may() {
        assert_may_wait("a sync");
        let worker = std::thread::spawn(|| {
            declare();
            assert!(!may_wait());
            assert_may_wait("a sync");
        });
        let panic = worker.join().expect_err("a worker does not wait");
        assert!(panic.downcast_ref::<String>().is_some_and(|text| text.starts_with("a sync would wait")));
        assert!(may_wait());
    }
}
