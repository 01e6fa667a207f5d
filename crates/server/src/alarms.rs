//! Waits that end on time, for the delays that are injected between zones.
//!
//! A timer of tokio ends on a whole millisecond, the next but one at worst, which makes a hop of
//! half a millisecond four times as long. Here one thread sleeps until the earliest moment asked
//! for; the kernel wakes it within tens of microseconds. The thread starts with the first wait and
//! ends with the last [`Alarms`], so a node without injected delays has none.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;
use tokio::sync::oneshot;

/// Wakes those who wait. Cheap to clone.
#[derive(Clone, Default)]
pub struct Alarms {
    ringer: Arc<OnceLock<Ringer>>,
}

#[derive(Default)]
struct Bell {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: BinaryHeap<Reverse<Waiting>>,
    asked: u64,
    is_over: bool,
}

struct Waiting {
    at: Instant,
    /// In the order of asking.
    number: u64,
    wake: oneshot::Sender<()>,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Waiting) -> bool {
        self.number == other.number
    }
}
impl Eq for Waiting {}
impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Waiting {
    fn cmp(&self, other: &Waiting) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl Bell {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread: wakes those that are due, sleeps until the next.
    #[allow(clippy::disallowed_methods, reason = "part of the runtime that others are sent to")]
    fn ring(&self) {
        let mut state = self.lock();
        while !state.is_over {
            let now = Instant::now();
            while state.waiting.peek().is_some_and(|w| w.0.at <= now) {
                // A waiter that gave up is not woken.
                let _ = state.waiting.pop().map(|w| w.0.wake.send(()));
            }
            state = match state.waiting.peek().map(|w| w.0.at - now) {
                Some(rest) => self.changed.wait_timeout(state, rest).map_or_else(|e| e.into_inner().0, |(state, _)| state),
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
        // Dropping the senders wakes the rest.
        state.waiting.clear();
    }
}

/// Owns the thread.
struct Ringer {
    bell: Arc<Bell>,
}

impl Ringer {
    #[allow(clippy::disallowed_methods, reason = "part of the runtime that others are sent to")]
    fn start() -> Ringer {
        let bell = Arc::new(Bell::default());
        let of_thread = bell.clone();
        let thread = std::thread::Builder::new().name("alarms".into()).spawn(move || of_thread.ring());
        if let Err(e) = thread {
            tracing::error!("cannot start thread alarms: {e}");
            bell.lock().is_over = true;
        }
        Ringer { bell }
    }
}

impl Drop for Ringer {
    fn drop(&mut self) {
        self.bell.lock().is_over = true;
        self.bell.changed.notify_one();
    }
}

impl Alarms {
    /// Waits until then; not at all if that has passed.
    #[allow(clippy::disallowed_methods, reason = "part of the runtime that others are sent to")]
    pub async fn wait_until(&self, at: Instant) {
        if at <= Instant::now() {
            return;
        }
        let (wake, woken) = oneshot::channel();
        let bell = &self.ringer.get_or_init(Ringer::start).bell;
        {
            let mut state = bell.lock();
            // Without a thread the sender is dropped here.
            if !state.is_over {
                let number = state.asked;
                state.asked += 1;
                state.waiting.push(Reverse(Waiting { at, number, wake }));
            }
        }
        bell.changed.notify_one();
        if woken.await.is_err() {
            // There is no thread: later is better than never.
            tokio::time::sleep_until(at.into()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    #[allow(clippy::disallowed_methods, reason = "it measures the runtime itself")]
    async fn waits_end_in_order_and_not_before_their_time() {
        let alarms = Alarms::default();
        let start = Instant::now();
        let wait = |micros: u64| {
            let alarms = alarms.clone();
            async move {
                alarms.wait_until(start + Duration::from_micros(micros)).await;
                let took = start.elapsed();
                assert!(took >= Duration::from_micros(micros), "{took:?}");
                took
            }
        };
        let (long, short, middle) = tokio::join!(wait(9_000), wait(500), wait(4_300));
        assert!(short < middle && middle < long, "{short:?} {middle:?} {long:?}");
    }

    #[tokio::test]
    async fn whoever_gives_up_leaves_the_others_alone() {
        let alarms = Alarms::default();
        #[allow(clippy::disallowed_methods, reason = "it measures the runtime itself")]
        let now = Instant::now();
        let given_up = tokio::time::timeout(Duration::from_millis(1), alarms.wait_until(now + Duration::from_secs(60))).await;
        assert!(given_up.is_err());
        alarms.wait_until(now + Duration::from_millis(5)).await;
    }
}
