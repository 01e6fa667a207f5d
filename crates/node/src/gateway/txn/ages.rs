//! How old the work of a session is that is being tried again. Of a circle of waits the youngest
//! gives way; if it came back as a newcomer it would be the youngest again, and might be for ever.

use crate::gateway::txn::lately::Lately;
use meridian_base::{SessionId, Timestamp};

/// Sessions that are remembered.
const SESSIONS_MAX: usize = 4_096;

/// See the module's essay.
#[derive(Default)]
pub(crate) struct Ages(Lately<Timestamp, SESSIONS_MAX>);

impl Ages {
    /// An attempt failed that may be made again.
    pub fn keep(&self, session: SessionId, since: Timestamp) {
        self.0.keep(session, since);
    }

    /// The next attempt begins: when the first one did, if that failed not long ago.
    pub fn take(&self, session: SessionId) -> Option<Timestamp> {
        self.0.take(session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::txn::lately::REMEMBERED;

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
