//! Rounds of `majority` in one term: leaders, steps on their way through the log, and statements
//! that wait.

use meridian_base::escrow::Free;
use meridian_base::{GroupId, Key, Timestamp};
use meridian_escrow::majority::{Leader, Message, Round, Rows, Want};
use meridian_region::Outlook;
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::oneshot;

/// What a term has of rounds.
pub(crate) struct TermRounds {
    pub rows: Rows,
    /// Steps on their way to the log, by their timestamps.
    pub steps: BTreeMap<Timestamp, RoundStep>,
    /// What statements of the region wait for.
    pub asked: BTreeMap<Key, Asked>,
    /// Whom to tell that a round has ended here.
    pub waiting: BTreeMap<Key, Vec<oneshot::Sender<()>>>,
    /// Indexes of columns whose open keys have been read.
    pub looked_at: BTreeSet<u32>,
}

impl TermRounds {
    /// `seed`: see [`Rows::new`].
    pub fn new(seed: u64) -> TermRounds {
        TermRounds {
            rows: Rows::new(seed),
            steps: BTreeMap::new(),
            asked: BTreeMap::new(),
            waiting: BTreeMap::new(),
            looked_at: BTreeSet::new(),
        }
    }

    pub fn outlook(&self, share: &Key, of_site: Outlook) -> Outlook {
        let Some(asked) = self.asked.get(share) else { return of_site };
        // Where statements wait, nothing is kept back: they get it.
        let pool = |tokens: i128, keep: i128, want: Want| match tokens > 0 {
            true => (0, Want { tokens: tokens.max(want.tokens), is_waiting: asked.waiting == 1 && asked.by == 1 }),
            false => (keep, want),
        };
        let mut outlook = of_site;
        (outlook.keep.down, outlook.wants.down) = pool(asked.wanted.down, of_site.keep.down, of_site.wants.down);
        (outlook.keep.up, outlook.wants.up) = pool(asked.wanted.up, of_site.keep.up, of_site.wants.up);
        outlook
    }
}

/// A step that was certified.
pub(crate) struct RoundStep {
    pub share: Key,
    pub round: Round,
    pub then: Then,
}

/// What follows when it is applied.
pub(crate) enum Then {
    Send(Vec<(GroupId, Message)>),
    Lead(Box<Leader>),
}

/// What is asked for a row.
#[derive(Default)]
pub(crate) struct Asked {
    pub wanted: Free,
    pub by: usize,
    /// Those to whom a part is of no use.
    pub waiting: usize,
}
