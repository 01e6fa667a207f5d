//! What a gateway remembers of its sessions for a moment, for their next attempt at the same work.

use meridian_base::SessionId;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// A client that comes later than this tries something else.
pub(crate) const REMEMBERED: Duration = Duration::from_secs(5);

/// A value for each session that has one. Sessions end without saying so: when there are `MAX` of
/// them, the old ones go.
pub(crate) struct Lately<T, const MAX: usize>(Mutex<BTreeMap<SessionId, (T, Instant)>>);

impl<T, const MAX: usize> Default for Lately<T, MAX> {
    fn default() -> Lately<T, MAX> {
        Lately(Mutex::default())
    }
}

impl<T, const MAX: usize> Lately<T, MAX> {
    pub fn keep(&self, session: SessionId, value: T) {
        let now = Instant::now();
        let mut kept = self.0.lock();
        if kept.len() >= MAX {
            kept.retain(|_, (_, at)| now - *at < REMEMBERED);
        }
        kept.insert(session, (value, now));
    }

    /// The value, which is forgotten.
    pub fn take(&self, session: SessionId) -> Option<T> {
        let mut kept = self.0.lock();
        if kept.is_empty() {
            return None;
        }
        kept.remove(&session).filter(|(_, at)| at.elapsed() < REMEMBERED).map(|(value, _)| value)
    }

    /// The value, which stays.
    pub fn get(&self, session: SessionId) -> Option<T>
    where
        T: Copy,
    {
        self.0.lock().get(&session).filter(|(_, at)| at.elapsed() < REMEMBERED).map(|(value, _)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn values_are_remembered_for_a_while_and_not_too_many() {
        let (lately, session) = (Lately::<u32, 2>::default(), SessionId(3));
        assert_eq!(lately.take(session), None);
        lately.keep(session, 7);
        assert_eq!((lately.get(SessionId(4)), lately.get(session)), (None, Some(7)));
        assert_eq!((lately.take(session), lately.take(session)), (Some(7), None));
        lately.keep(session, 8);
        lately.keep(SessionId(4), 9);
        tokio::time::advance(REMEMBERED * 2).await;
        assert_eq!((lately.get(session), lately.take(SessionId(4))), (None, None));
        lately.keep(SessionId(4), 9);
        lately.keep(SessionId(5), 10);
        assert_eq!(lately.0.lock().len(), 2, "the old one is gone");
    }
}
