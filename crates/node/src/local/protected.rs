//! Protected timestamps: versions that open transactions may still read are kept.
//!
//! A node notes the moments that its transactions read, and tells the oldest with every ping;
//! everybody's garbage collection reckons the age of versions from the oldest that it knows of. A
//! transaction that is over at once needs none of this: versions are kept for `gc.ttl` anyway. So
//! only blocks, readers of the past and statements of many pages are noted.
//!
//! It is a service, not a promise: news of a transaction travel with pings, and nothing is kept for
//! longer than [`limits::PROTECTED_FOR_MAX`](meridian_base::limits::PROTECTED_FOR_MAX). A read
//! below what was kept is refused by the store (72000), never answered wrongly.

use meridian_base::Timestamp;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The moments that this node's transactions read, each with how many do.
#[derive(Default)]
pub(crate) struct Protected(Mutex<BTreeMap<Timestamp, usize>>);

impl Protected {
    /// Until the guard is dropped.
    pub fn protect(self: &Arc<Self>, at: Timestamp) -> Guard {
        *self.0.lock().entry(at).or_default() += 1;
        Guard { of: self.clone(), at }
    }
    /// `MAX` if there is none.
    pub fn oldest(&self) -> Timestamp {
        self.0.lock().first_key_value().map_or(Timestamp::MAX, |(at, _)| *at)
    }
}

/// Ends with the transaction.
pub(crate) struct Guard {
    of: Arc<Protected>,
    at: Timestamp,
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut all = self.of.0.lock();
        let count = all.get_mut(&self.at).expect("a guard that is alive is counted");
        *count -= 1;
        if *count == 0 {
            all.remove(&self.at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_moment_is_protected_until_the_last_of_its_transactions_ends() {
        let protected = Arc::new(Protected::default());
        assert_eq!(protected.oldest(), Timestamp::MAX);
        let (first, second, newer) =
            (protected.protect(Timestamp(5)), protected.protect(Timestamp(5)), protected.protect(Timestamp(9)));
        drop(first);
        assert_eq!(protected.oldest(), Timestamp(5));
        drop(second);
        assert_eq!(protected.oldest(), Timestamp(9));
        drop(newer);
        assert_eq!(protected.oldest(), Timestamp::MAX);
    }
}
