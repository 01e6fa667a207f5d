//! Limits of binding and planning: the stack of the thread, and whether the session still waits for
//! the plan.
//!
//! How much stack a recursion has used is measured as PostgreSQL's `check_stack_depth` does it, by
//! the distance of two addresses. The parser bounds the depth of what it accepts; what a level
//! costs afterwards differs between builds and kinds of statements, so the recursions of binding
//! and planning measure it. (Execution cannot: it may continue on another thread. It takes several
//! times as much, so the threads of sessions have a larger stack: `server::threads`.)
//!
//! A large statement is planned on a thread of its own. When its session does not wait any more,
//! because of a cancel, a timeout or its own end, planning ends at the next level of a recursion,
//! or the next turn of a loop over all relations.

use meridian_base::{Error, Result};
use std::cell::RefCell;
use std::sync::Weak;

/// What one recursion may use of a worker's stack (2 MiB), leaving room for what calls it and for
/// what it calls.
const STACK_BYTES_MAX: usize = 640 << 10;

thread_local! {
    /// A reference that dies when the session that asked for this thread's work stops waiting.
    /// `None`: the work is done on the session's own thread.
    static WAITING: RefCell<Option<Weak<()>>> = const { RefCell::new(None) };
}

/// Where the stack is now.
#[inline(never)]
pub(crate) fn mark() -> usize {
    let here = 0u8;
    std::ptr::addr_of!(here) as usize
}

/// 54001 if too much of the stack was used since the mark; 57014 if the session that asked for this
/// thread's work has stopped waiting.
pub(crate) fn check(base: usize) -> Result<()> {
    if mark().abs_diff(base) > STACK_BYTES_MAX {
        return Err(crate::parse::too_deep());
    }
    if is_abandoned() { Err(Error::sql("57014", "canceling statement due to user request")) } else { Ok(()) }
}

/// Whether the session that asked for this thread's work has stopped waiting. The result of the
/// work is dropped then.
pub(crate) fn is_abandoned() -> bool {
    WAITING.with_borrow(|waiting| waiting.as_ref().is_some_and(|w| w.strong_count() == 0))
}

/// Does work for a session. The session waits as long as `waiting` lives.
pub(crate) fn while_waited_for<R>(waiting: Weak<()>, work: impl FnOnce() -> R) -> R {
    /// Forgets the session, also after a panic.
    struct Forget;
    impl Drop for Forget {
        fn drop(&mut self) {
            WAITING.set(None);
        }
    }
    WAITING.set(Some(waiting));
    let _forget = Forget;
    work()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn work_that_nobody_waits_for_ends() {
        let waiting = Arc::new(());
        while_waited_for(Arc::downgrade(&waiting), || {
            assert!(check(mark()).is_ok());
            drop(waiting);
            assert_eq!(check(mark()).unwrap_err().sqlstate(), "57014");
        });
        assert!(check(mark()).is_ok(), "the next work of the thread is somebody else's");
    }
}
