//! Which sessions have just been refused because they read at a replica that was behind.
//!
//! The server retries a transaction by itself while nothing has reached the client, and reads at
//! the primaries from its third attempt on. A client that retries by itself starts a new
//! transaction, which would be refused for the same reason for ever; so the refusals of a session
//! are remembered for a moment, and count as attempts. A block that is refused even at the primary
//! goes back to the replica: with a round trip for every statement it takes so long that it would
//! be refused again and again.

use crate::gateway::txn::lately::Lately;
use meridian_base::SessionId;

/// Sessions that are remembered.
const SESSIONS_MAX: usize = 4_096;

/// See the module's essay.
#[derive(Default)]
pub(crate) struct Refusals(Lately<u32, SESSIONS_MAX>);

impl Refusals {
    /// The session was refused, after so many attempts before that one. (That one may have waited
    /// for longer than anything is remembered here.)
    pub fn note(&self, session: SessionId, attempts: u32) {
        self.0.keep(session, attempts + 1);
    }
    /// It committed, or was refused where it had read what is newest.
    pub fn forget(&self, session: SessionId) {
        self.0.take(session);
    }
    /// How often lately, without a commit since.
    pub fn count(&self, session: SessionId) -> u32 {
        self.0.get(session).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::txn::lately::REMEMBERED;

    #[tokio::test(start_paused = true)]
    async fn refusals_count_until_a_commit_or_for_a_while() {
        let (refusals, session) = (Refusals::default(), SessionId(3));
        refusals.note(session, 0);
        refusals.note(session, 1);
        assert_eq!((refusals.count(session), refusals.count(SessionId(4))), (2, 0));
        refusals.forget(session);
        assert_eq!(refusals.count(session), 0);
        refusals.note(session, 0);
        tokio::time::advance(REMEMBERED * 2).await;
        assert_eq!(refusals.count(session), 0);
    }
}
