//! How much work strangers make on the port for nodes: handshakes in progress, where the oldest one
//! gives way ([`super::strangers`]), and attempts to join.

use crate::transport::strangers::{Place, Strangers, host_of};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// Handshakes in progress: each takes some 50 KiB.
const HANDSHAKES_MAX: usize = 512;
/// Those of one address: the nodes of one machine, or behind one address translation.
const HANDSHAKES_OF_ONE_MAX: usize = 128;
/// Attempts to join that are answered at once, of one address and of all.
const JOINS_OF_ONE: Rate = Rate { burst: 10, each: Duration::from_secs(1) };
const JOINS: Rate = Rate { burst: 50, each: Duration::from_millis(100) };
/// Addresses whose attempts are counted; when there are more, the count of all is what bounds them.
const ADDRESSES_MAX: usize = 1_024;

/// See the module.
#[derive(Default)]
pub(crate) struct Admission {
    handshakes: Strangers,
    joins: Mutex<Joins>,
}

impl Admission {
    /// A place for a handshake with a process at an address.
    pub(crate) fn enter(&self, addr: &str) -> Place {
        self.handshakes.enter(&host_of(addr), HANDSHAKES_MAX, HANDSHAKES_OF_ONE_MAX)
    }

    /// Whether an attempt to join is answered now.
    pub(crate) fn may_join(&self, addr: &str) -> bool {
        let (host, now) = (host_of(addr), Instant::now());
        let mut joins = self.joins.lock();
        if !joins.of_one.contains_key(&host) && joins.of_one.len() >= ADDRESSES_MAX {
            joins.of_one.retain(|_, count| !count.is_full(JOINS_OF_ONE, now));
        }
        let has_room = joins.of_one.len() < ADDRESSES_MAX;
        let of_one = match has_room || joins.of_one.contains_key(&host) {
            true => joins.of_one.entry(host).or_default().take(JOINS_OF_ONE, now),
            false => true,
        };
        of_one && joins.all.take(JOINS, now)
    }
}

/// So many at once, and one more after each such time.
#[derive(Clone, Copy)]
struct Rate {
    burst: u32,
    each: Duration,
}

#[derive(Default)]
struct Joins {
    all: Count,
    of_one: BTreeMap<String, Count>,
}

/// When as many as the rate allows will be free again.
#[derive(Default)]
struct Count {
    free_at: Option<Instant>,
}

impl Count {
    fn take(&mut self, rate: Rate, now: Instant) -> bool {
        let free_at = self.free_at.map_or(now, |at| at.max(now));
        let is_free = free_at + rate.each <= now + rate.each * rate.burst;
        if is_free {
            self.free_at = Some(free_at + rate.each);
        }
        is_free
    }
    fn is_full(&self, _: Rate, now: Instant) -> bool {
        self.free_at.is_none_or(|at| at <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn attempts_to_join_are_counted_for_each_address() {
        let admission = Admission::default();
        let answered = |host: &str| (0..20).filter(|port| admission.may_join(&format!("{host}:{port}"))).count();
        assert_eq!((answered("a"), answered("b"), answered("a")), (10, 10, 0));
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(answered("a"), 3);
        // All together as well, however many addresses there are.
        let many: usize = (0..2_000).filter(|i| admission.may_join(&format!("host{i}:1"))).count();
        assert_eq!(many, 47);
        assert!(admission.joins.lock().of_one.len() <= ADDRESSES_MAX);
    }
}
