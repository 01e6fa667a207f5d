//! Rounds of redistribution that this gateway leads, one at a time for each row (design: escrow,
//! «Triggers»).
//!
//! A statement that finds too few tokens waits for the round that is under way, and looks again.
//! After a round that brought nothing the row has a pause, which doubles with each such round.

use meridian_base::Key;
use meridian_base::escrow::Free;
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
pub(crate) struct Rounds(Mutex<BTreeMap<Key, Arc<Row>>>);

#[derive(Default)]
struct Row {
    last: Arc<tokio::sync::Mutex<Last>>,
    /// What those want who have a turn or wait for one.
    wanted: Mutex<Free>,
}

/// What is known of a row's last rounds.
#[derive(Default)]
struct Last {
    /// Fruitless: not again before this, and how long the next pause is.
    pause: Option<(Instant, Duration)>,
}

/// A turn: the only round of the row that this gateway leads.
pub(crate) struct Turn {
    last: OwnedMutexGuard<Last>,
    waiting: Waiting,
}

/// Somebody who wants tokens, for as long as that is so.
struct Waiting {
    row: Arc<Row>,
    wanted: Free,
}

impl Waiting {
    fn new(row: &Arc<Row>, wanted: Free) -> Waiting {
        let mut all = row.wanted.lock();
        *all = Free { down: all.down + wanted.down, up: all.up + wanted.up };
        drop(all);
        Waiting { row: row.clone(), wanted }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut all = self.row.wanted.lock();
        *all = Free { down: all.down - self.wanted.down, up: all.up - self.wanted.up };
    }
}

impl Rounds {
    /// Waits for the rounds of this row before it.
    pub async fn enter(&self, share: &Key, wanted: Free) -> Turn {
        let row = self.row(share);
        let waiting = Waiting::new(&row, wanted);
        Turn { last: row.last.clone().lock_owned().await, waiting }
    }
    /// A turn, if the row has no round.
    pub fn try_enter(&self, share: &Key) -> Option<Turn> {
        let row = self.row(share);
        let last = row.last.clone().try_lock_owned().ok()?;
        Some(Turn { last, waiting: Waiting::new(&row, Free::default()) })
    }

    fn row(&self, share: &Key) -> Arc<Row> {
        let mut rows = self.0.lock();
        if rows.len() >= ROWS_MAX {
            rows.retain(|_, row| Arc::strong_count(row) > 1);
        }
        rows.entry(share.clone()).or_default().clone()
    }
}

impl Turn {
    /// What all want who wait for this round, its leader included: one round is to bring it.
    pub fn wanted(&self) -> Free {
        *self.waiting.row.wanted.lock()
    }

    /// Whether the last rounds have brought nothing, just now.
    pub fn rests(&self) -> bool {
        self.last.pause.is_some_and(|(until, _)| Instant::now() < until)
    }

    /// Whether this round has brought tokens.
    pub fn end(mut self, has_brought: bool) {
        self.last.pause = match (has_brought, self.last.pause) {
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
        let first = rounds.enter(&row, Free::default()).await;
        let waiting = tokio::spawn({
            let (rounds, row) = (rounds.clone(), row.clone());
            async move { rounds.enter(&row, Free { down: 0, up: 3 }).await }
        });
        rounds.enter(&other, Free::default()).await.end(true);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        assert_eq!(first.wanted(), Free { down: 0, up: 3 }, "of those who wait, too");
        first.end(false);
        let second = waiting.await.expect("it has its turn");
        assert!(second.rests());
        tokio::time::advance(PAUSE_MIN).await;
        assert!(!second.rests());
        second.end(false);
        let third = rounds.enter(&row, Free::default()).await;
        tokio::time::advance(PAUSE_MIN).await;
        assert!(third.rests(), "twice as long");
        third.end(true);
        assert!(!rounds.enter(&row, Free::default()).await.rests());
    }
}
