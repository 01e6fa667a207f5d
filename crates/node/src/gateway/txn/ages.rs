//! How old the work of a session is that is being tried again. Of a circle of waits the youngest
//! gives way; if it came back as a newcomer it would be the youngest again, and might be for ever.

use meridian_base::{SessionId, Timestamp};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// A client that comes later than this tries something else.
const REMEMBERED: Duration = Duration::from_secs(5);
/// Sessions end without saying so; the old ones go when there are so many.
const SESSIONS_MAX: usize = 4_096;

/// See the module's essay.
#[derive(Default)]
pub(crate) struct Ages(Mutex<BTreeMap<SessionId, (Timestamp, Instant)>>);

impl Ages {
    /// An attempt failed that may be made again.
    pub fn keep(&self, session: SessionId, since: Timestamp) {
        let now = Instant::now();
        let mut ages = self.0.lock();
        if ages.len() >= SESSIONS_MAX {
            ages.retain(|_, (_, at)| now - *at < REMEMBERED);
        }
        ages.insert(session, (since, now));
    }

    /// The next attempt begins: when the first one did, if that failed not long ago.
    pub fn take(&self, session: SessionId) -> Option<Timestamp> {
        let mut ages = self.0.lock();
        if ages.is_empty() {
            return None;
        }
        ages.remove(&session).filter(|(_, at)| at.elapsed() < REMEMBERED).map(|(since, _)| since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_tries_again_soon_is_as_old_as_before() {
        let (ages, session) = (Ages::default(), SessionId(3));
        assert_eq!(ages.take(session), None);
        ages.keep(session, Timestamp(7));
        assert_eq!((ages.take(SessionId(4)), ages.take(session), ages.take(session)), (None, Some(Timestamp(7)), None));
        ages.keep(session, Timestamp(7));
        tokio::time::advance(REMEMBERED * 2).await;
        assert_eq!(ages.take(session), None);
    }
}
