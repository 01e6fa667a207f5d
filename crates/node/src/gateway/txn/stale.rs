//! Which sessions have just been refused because they read at a replica that was behind.
//!
//! The server retries a transaction by itself while nothing has reached the client, and reads at
//! the primaries from its third attempt on. A client that retries by itself starts a new
//! transaction, which would be refused for the same reason for ever; so the refusals of a session
//! are remembered for a moment, and count as attempts (design: transactions, «adaptive fresh
//! reads»). A block that is refused even at the primary goes back to the replica: with a round trip
//! for every statement it takes so long that it would be refused again and again.

use meridian_base::SessionId;
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
pub(crate) struct Refusals(Mutex<BTreeMap<SessionId, (u32, Instant)>>);

impl Refusals {
    /// The session was refused, after so many attempts before that one. (That one may have waited
    /// for longer than anything is remembered here.)
    pub fn note(&self, session: SessionId, attempts: u32) {
        let now = Instant::now();
        let mut refusals = self.0.lock();
        if refusals.len() >= SESSIONS_MAX {
            refusals.retain(|_, (_, at)| now - *at < REMEMBERED);
        }
        refusals.insert(session, (attempts + 1, now));
    }
    /// It committed, or was refused where it had read what is newest.
    pub fn forget(&self, session: SessionId) {
        let mut refusals = self.0.lock();
        if !refusals.is_empty() {
            refusals.remove(&session);
        }
    }
    /// How often lately, without a commit since.
    pub fn count(&self, session: SessionId) -> u32 {
        let refusals = self.0.lock();
        match refusals.get(&session) {
            Some((count, at)) if at.elapsed() < REMEMBERED => *count,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
