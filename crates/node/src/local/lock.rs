//! The lock of what is read often and changed seldom.
//!
//! `parking_lot`'s [`RwLock::read`](parking_lot::RwLock::read) waits behind a writer that waits, so
//! a thread that reads twice at once (one function calls another) stops for ever when a writer
//! comes in between. This one is taken by a reader whenever readers have it. A writer waits until
//! all have let go of it; they hold it for a few lines each.

use parking_lot::{RwLockReadGuard, RwLockWriteGuard};

/// See the module's essay.
#[derive(Debug, Default)]
pub struct RwLock<T>(parking_lot::RwLock<T>);

impl<T> RwLock<T> {
    pub fn new(value: T) -> RwLock<T> {
        RwLock(parking_lot::RwLock::new(value))
    }

    /// May be called by a thread that reads already.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read_recursive()
    }

    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a lock is tested by threads")]
    fn a_thread_reads_once_more_while_another_waits_to_write() {
        let (done, is_done) = mpsc::channel();
        std::thread::spawn(move || {
            let lock = RwLock::new(1);
            std::thread::scope(|scope| {
                let outer = lock.read();
                scope.spawn(|| *lock.write() += 1);
                // The writer queues up, which nothing outside the lock shows.
                std::thread::sleep(Duration::from_millis(100));
                assert_eq!((*outer, *lock.read()), (1, 1));
                drop(outer);
            });
            done.send(*lock.read()).expect("the test waits");
        });
        assert_eq!(is_done.recv_timeout(Duration::from_secs(10)), Ok(2), "the inner read waits behind the writer");
    }
}
