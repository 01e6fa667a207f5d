//! Rounds of redistribution that this gateway leads, one at a time for each row
//! (`docs/design/escrow.md`, «Redistribution»).
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
/// After a round ahead of need that moved nothing.
const PAUSE_AHEAD: Duration = Duration::from_secs(5);
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
    fruitless: Option<Fruitless>,
    /// Rounds ahead of need: not again before this.
    ahead: Option<Instant>,
}

/// A round that brought nothing.
#[derive(Clone, Copy)]
struct Fruitless {
    /// Not again before this, and how long the pause is.
    until: Instant,
    pause: Duration,
    /// What it was to bring. Who wants less may get it.
    wanted: Free,
}

/// A turn: the only round of the row that this gateway leads.
pub(crate) struct Turn {
    last: OwnedMutexGuard<Last>,
    waiting: Waiting,
}

/// A statement that wants tokens, for as long as that is so.
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

    /// Whether the last rounds have brought nothing, just now, and were to bring no more than this
    /// one is.
    pub fn rests(&self) -> bool {
        let wanted = self.waiting.wanted;
        let is_as_much = |last: &Fruitless| {
            let at_least = |of: fn(&Free) -> i128| of(&last.wanted) > 0 && of(&wanted) >= of(&last.wanted);
            at_least(|free| free.down) || at_least(|free| free.up)
        };
        self.last.fruitless.as_ref().is_some_and(|last| Instant::now() < last.until && is_as_much(last))
    }

    /// Whether a round ahead of need has to wait, which nobody waits for.
    pub fn rests_ahead(&self) -> bool {
        let now = Instant::now();
        self.last.ahead.is_some_and(|until| now < until) || self.last.fruitless.is_some_and(|last| now < last.until)
    }

    /// Whether this round has brought tokens.
    pub fn end(mut self, has_brought: bool) {
        let wanted = self.waiting.wanted;
        self.last.fruitless = match (has_brought, self.last.fruitless) {
            (true, _) => None,
            (false, None) => Some(Fruitless { until: Instant::now() + PAUSE_MIN, pause: PAUSE_MIN, wanted }),
            (false, Some(last)) => {
                let pause = (last.pause * 2).min(PAUSE_MAX);
                Some(Fruitless { until: Instant::now() + pause, pause, wanted })
            }
        };
    }

    /// The same of a round ahead of need: what it did not bring, a statement may still get.
    pub fn end_ahead(mut self, has_brought: bool) {
        self.last.ahead = (!has_brought).then(|| Instant::now() + PAUSE_AHEAD);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: Free = Free { down: 0, up: 3 };

    #[tokio::test(start_paused = true)]
    async fn a_row_has_one_round_at_a_time_and_rests_after_fruitless_ones() {
        let rounds = Arc::new(Rounds::default());
        let (row, other) = (Key::new(b"a"), Key::new(b"b"));
        let first = rounds.enter(&row, WANTED).await;
        let waiting = tokio::spawn({
            let (rounds, row) = (rounds.clone(), row.clone());
            async move { rounds.enter(&row, WANTED).await }
        });
        rounds.enter(&other, Free::default()).await.end(true);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        assert_eq!(first.wanted(), Free { down: 0, up: 6 }, "of those who wait, too");
        first.end(false);
        let second = waiting.await.expect("it has its turn");
        assert!(second.rests());
        tokio::time::advance(PAUSE_MIN).await;
        assert!(!second.rests());
        second.end(false);
        let third = rounds.enter(&row, WANTED).await;
        tokio::time::advance(PAUSE_MIN).await;
        assert!(third.rests(), "twice as long");
        drop(third);
        for (down, up, rests) in [(0, 2, false), (0, 5, true), (9, 0, false), (9, 3, true)] {
            assert_eq!(rounds.enter(&row, Free { down, up }).await.rests(), rests, "{down} {up}");
        }
        let third = rounds.try_enter(&row).expect("nobody has a turn");
        assert!(third.rests_ahead() && !third.rests());
        third.end_ahead(false);
        let third = rounds.enter(&row, WANTED).await;
        third.end(true);
        assert!(!rounds.enter(&row, WANTED).await.rests());
    }
}
