//! Rounds of redistribution that this gateway leads, one at a time for each row (design: escrow,
//! «Triggers»).
//!
//! A statement that finds too few tokens waits for the round that is under way, and looks again.
//! After a round that brought nothing the row has a pause, which doubles with each such round.

use meridian_base::Key;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;

const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Rows whose rounds are remembered; above it those that are not under way are forgotten.
const ROWS_MAX: usize = 4_096;

/// See the module's essay.
#[derive(Default)]
pub(crate) struct Rounds(Mutex<BTreeMap<Key, Arc<tokio::sync::Mutex<Row>>>>);

/// What is known of a row's last rounds.
#[derive(Default)]
pub(crate) struct Row {
    /// Fruitless: not again before this, and how long the next pause is.
    pause: Option<(Instant, Duration)>,
}

/// A turn: the only round of the row that this gateway leads.
pub(crate) struct Turn(OwnedMutexGuard<Row>);

impl Rounds {
    /// Waits for the rounds of this row before it.
    pub async fn enter(&self, share: &Key) -> Turn {
        Turn(self.row(share).lock_owned().await)
    }
    /// A turn, if the row has no round.
    pub fn try_enter(&self, share: &Key) -> Option<Turn> {
        self.row(share).try_lock_owned().ok().map(Turn)
    }

    fn row(&self, share: &Key) -> Arc<tokio::sync::Mutex<Row>> {
        let mut rows = self.0.lock();
        if rows.len() >= ROWS_MAX {
            rows.retain(|_, row| Arc::strong_count(row) > 1);
        }
        rows.entry(share.clone()).or_default().clone()
    }
}

impl Turn {
    /// Whether the last rounds have brought nothing, just now.
    pub fn rests(&self) -> bool {
        self.0.pause.is_some_and(|(until, _)| Instant::now() < until)
    }

    /// Whether this round has brought tokens.
    pub fn end(mut self, has_brought: bool) {
        self.0.pause = match (has_brought, self.0.pause) {
            (true, _) => None,
            (false, None) => Some((Instant::now() + PAUSE_MIN, PAUSE_MIN)),
            (false, Some((_, last))) => {
                let pause = (last * 2).min(PAUSE_MAX);
                Some((Instant::now() + pause, pause))
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_row_has_one_round_at_a_time_and_rests_after_fruitless_ones() {
        let rounds = Arc::new(Rounds::default());
        let (row, other) = (Key::new(b"a"), Key::new(b"b"));
        let first = rounds.enter(&row).await;
        let waiting = tokio::spawn({
            let (rounds, row) = (rounds.clone(), row.clone());
            async move { rounds.enter(&row).await }
        });
        rounds.enter(&other).await.end(true);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        first.end(false);
        let second = waiting.await.expect("it has its turn");
        assert!(second.rests());
        tokio::time::advance(PAUSE_MIN).await;
        assert!(!second.rests());
        second.end(false);
        let third = rounds.enter(&row).await;
        tokio::time::advance(PAUSE_MIN).await;
        assert!(third.rests(), "twice as long");
        third.end(true);
        assert!(!rounds.enter(&row).await.rests());
    }
}
