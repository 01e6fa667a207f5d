//! Places for those who have not said who they are yet.
//!
//! An honest peer is through in milliseconds. So where the places run out, the one that has
//! waited longest gives way, first of all of the address that has most of its share: whoever opens
//! connections and says nothing keeps nobody out.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::Notify;

/// The strangers of a port.
#[derive(Clone, Default)]
pub struct Strangers(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    next: u64,
    /// In the order in which they came.
    all: VecDeque<Stranger>,
    given_way: u64,
}

struct Stranger {
    number: u64,
    host: String,
    given_way: Arc<Notify>,
}

/// A place, until it is dropped.
pub struct Place {
    number: u64,
    strangers: Strangers,
    /// Told when the stranger is to go.
    pub given_way: Arc<Notify>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.strangers.0.lock().all.retain(|s| s.number != self.number);
    }
}

/// The host of `host:port`.
pub fn host_of(addr: &str) -> String {
    addr.rsplit_once(':').map_or(addr, |(host, _)| host).to_string()
}

impl Strangers {
    /// A place for somebody at a host, among at most `most` places, of which `most_of_one` are one
    /// host's.
    pub fn enter(&self, host: &str, most: usize, most_of_one: usize) -> Place {
        let mut inner = self.0.lock();
        let of_one = if most_of_one < most { inner.all.iter().filter(|s| s.host == host).count() } else { 0 };
        let leaves = match of_one >= most_of_one {
            true => inner.all.iter().position(|s| s.host == host),
            false => (inner.all.len() >= most).then_some(0),
        };
        if let Some(oldest) = leaves.and_then(|at| inner.all.remove(at)) {
            oldest.given_way.notify_one();
            inner.given_way += 1;
        }
        let (number, given_way) = (inner.next, Arc::new(Notify::new()));
        inner.next += 1;
        inner.all.push_back(Stranger { number, host: host.to_string(), given_way: given_way.clone() });
        Place { number, strangers: self.clone(), given_way }
    }

    /// How many places are taken.
    pub fn len(&self) -> usize {
        self.0.lock().all.len()
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// How many had to go so far.
    pub fn given_way(&self) -> u64 {
        self.0.lock().given_way
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_oldest_gives_way_and_that_of_another_host_does_not() {
        let strangers = Strangers::default();
        let enter = |host: &str| strangers.enter(host, 40, 10);
        let other = enter("other");
        let mut places: Vec<Place> = (0..15).map(|_| enter("one")).collect();
        for place in &places[..5] {
            place.given_way.notified().await;
        }
        assert_eq!((strangers.given_way(), strangers.len()), (5, 11));
        places.clear();
        drop(other);
        assert!(strangers.is_empty());
        let places: Vec<Place> = (0..49).map(|host| enter(&host.to_string())).collect();
        assert_eq!((strangers.given_way(), strangers.len()), (14, 40));
        drop(places);
    }
}
