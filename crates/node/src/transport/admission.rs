//! How much work strangers make: handshakes in progress, and attempts to join.
//!
//! A handshake of somebody who means well takes a few milliseconds. So when there are too many, the
//! oldest one gives way, first of all of the address that has most of its share: whoever opens
//! connections and says nothing takes no place for long, and nobody else's.

use crate::local::lock::RwLock;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
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
    handshakes: Arc<Mutex<Handshakes>>,
    joins: Mutex<Joins>,
    /// Handshakes that gave way, for tests.
    given_way: RwLock<u64>,
}

#[derive(Default)]
struct Handshakes {
    next: u64,
    /// In the order in which they began.
    all: VecDeque<Handshake>,
}

struct Handshake {
    number: u64,
    host: String,
    given_way: Arc<Notify>,
}

/// A place for a handshake, until it is dropped.
pub(crate) struct Place {
    number: u64,
    handshakes: Arc<Mutex<Handshakes>>,
    /// Told when the handshake is to end.
    pub given_way: Arc<Notify>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.handshakes.lock().all.retain(|h| h.number != self.number);
    }
}

/// The host of `host:port`.
fn host_of(addr: &str) -> String {
    addr.rsplit_once(':').map_or(addr, |(host, _)| host).to_string()
}

impl Admission {
    /// A place for a handshake with somebody at an address.
    pub(crate) fn enter(&self, addr: &str) -> Place {
        let host = host_of(addr);
        let mut handshakes = self.handshakes.lock();
        let of_one = handshakes.all.iter().filter(|h| h.host == host).count();
        let leaves = match of_one >= HANDSHAKES_OF_ONE_MAX {
            true => handshakes.all.iter().position(|h| h.host == host),
            false => (handshakes.all.len() >= HANDSHAKES_MAX).then_some(0),
        };
        if let Some(oldest) = leaves.and_then(|at| handshakes.all.remove(at)) {
            oldest.given_way.notify_one();
            *self.given_way.write() += 1;
        }
        let (number, given_way) = (handshakes.next, Arc::new(Notify::new()));
        handshakes.next += 1;
        handshakes.all.push_back(Handshake { number, host, given_way: given_way.clone() });
        Place { number, handshakes: self.handshakes.clone(), given_way }
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

    #[tokio::test]
    async fn the_oldest_handshake_gives_way_and_that_of_another_address_does_not() {
        let admission = Admission::default();
        let other = admission.enter("other:1");
        let mut places: Vec<Place> = (0..HANDSHAKES_OF_ONE_MAX + 5).map(|port| admission.enter(&format!("one:{port}"))).collect();
        for place in &places[..5] {
            place.given_way.notified().await;
        }
        assert_eq!(*admission.given_way.read(), 5);
        assert_eq!(admission.handshakes.lock().all.len(), HANDSHAKES_OF_ONE_MAX + 1);
        places.clear();
        drop(other);
        assert!(admission.handshakes.lock().all.is_empty());
        let places: Vec<Place> = (0..HANDSHAKES_MAX + 9).map(|host| admission.enter(&format!("host{host}:1"))).collect();
        assert_eq!((*admission.given_way.read(), admission.handshakes.lock().all.len()), (14, HANDSHAKES_MAX));
        drop(places);
    }
}
