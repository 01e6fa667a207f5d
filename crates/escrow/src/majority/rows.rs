//! The rows of a site that have a leader here, or an offer out: what is in a primary's memory, and
//! when something is to be done for them (`docs/design/majority.md`, «Timers»). All of it may be
//! lost.
//!
//! Time is a duration since some moment that the caller has chosen, and never goes back.

use super::leader::Leader;
use super::message::Message;
use super::round::Round;
use meridian_base::{GroupId, Key, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The longest pause between two ballots of a row while no majority answers, without its random
/// part, which is as long at most. A site is not told when a majority can be reached again, and its
/// rounds have to end within ten seconds from then.
pub const PAUSE_MAX: Duration = Duration::from_secs(4);
/// A round trip that is not known, or that is shorter, is taken for this.
const ROUND_TRIP_MIN: Duration = Duration::from_millis(1);

/// What is to be done now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Due {
    /// To the row's other sites, and to this one.
    Send { share: Key, messages: Vec<(GroupId, Message)> },
    /// [`Leader::begin`], with this as `above`.
    Begin { share: Key, above: u64 },
}

/// See the module's essay. A row is named by the key of its share.
#[derive(Clone, Debug)]
pub struct Rows {
    rows: BTreeMap<Key, Row>,
    /// The first deadline of each row.
    deadlines: BTreeSet<(Duration, Key)>,
    random: u64,
}

#[derive(Clone, Debug)]
struct Row {
    leader: Option<Leader>,
    /// An offer is out.
    is_out: bool,
    /// See [`Leader::highest`].
    highest: u64,
    round_trip: Duration,
    /// The leader has waited long enough for offers.
    gather: Option<Duration>,
    /// The leader sends again.
    repeat: Option<Duration>,
    /// A ballot begins.
    begin: Duration,
    /// How long the next ballot is waited for, without the random part.
    pause: Duration,
}

impl Row {
    fn first(&self) -> Duration {
        [self.gather, self.repeat].into_iter().flatten().fold(self.begin, Duration::min)
    }

    fn drop_leader(&mut self) {
        (self.leader, self.gather, self.repeat) = (None, None, None);
    }
}

impl Rows {
    /// `seed`: differs from site to site, so that leaders which outbid each other do not do so for
    /// ever.
    pub fn new(seed: u64) -> Rows {
        Rows { rows: BTreeMap::new(), deadlines: BTreeSet::new(), random: seed | 1 }
    }

    /// Rows at rest take no memory.
    pub fn len(&self) -> usize {
        self.rows.len()
    }
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether a ballot of this site is under way.
    pub fn is_led(&self, share: &Key) -> bool {
        self.rows.get(share).is_some_and(|row| row.leader.is_some())
    }

    /// For the row's next ballot.
    pub fn highest(&self, share: &Key) -> u64 {
        self.rows.get(share).map_or(0, |row| row.highest)
    }

    /// A ballot's own promise is applied: the messages to send. `round_trip`: the largest to a site
    /// of the row. An earlier leader of the row is replaced.
    pub fn lead(
        &mut self,
        share: &Key,
        leader: Leader,
        round_trip: Duration,
        hlc: Timestamp,
        now: Duration,
    ) -> Vec<(GroupId, Message)> {
        let messages = leader.resend(hlc);
        let round_trip = round_trip.max(ROUND_TRIP_MIN);
        let mut row = self.take(share).unwrap_or_else(|| self.new_row(round_trip, now));
        row.round_trip = round_trip;
        row.highest = row.highest.max(leader.highest());
        row.leader = Some(leader);
        (row.gather, row.repeat) = (Some(now + round_trip * 5 / 4), Some(now + round_trip * 2));
        row.begin = now + row.pause + self.random_part(row.pause);
        self.put(share, row);
        messages
    }

    /// A message about a row has come: what its leader sends, at once. The site takes its step with
    /// the message as well.
    pub fn receive(
        &mut self,
        share: &Key,
        from: GroupId,
        message: &Message,
        hlc: Timestamp,
        now: Duration,
    ) -> Vec<(GroupId, Message)> {
        if !self.is_led(share) {
            return Vec::new();
        }
        let Some(mut row) = self.take(share) else { return Vec::new() };
        let mut sent = Vec::new();
        if let Some(leader) = &mut row.leader {
            sent = leader.receive(from, message, hlc);
            row.highest = row.highest.max(leader.highest());
            if leader.end().is_some() {
                row.drop_leader();
                row.begin = now + row.pause + self.random_part(row.pause);
            }
        }
        self.put(share, row);
        sent
    }

    /// What the site stores of a row's round is this now, or was found to be when the row was
    /// loaded; `None`: nothing, or it is of another incarnation than the share. `is_out`: see
    /// [`super::Site::is_out`].
    pub fn stored(&mut self, share: &Key, round: Option<&Round>, is_out: bool, round_trip: Duration, now: Duration) {
        if !is_out && !self.rows.contains_key(share) {
            return;
        }
        let mut row = self.take(share).unwrap_or_else(|| self.new_row(round_trip.max(ROUND_TRIP_MIN), now));
        let is_over = row.leader.as_ref().is_some_and(|leader| round.is_none_or(|round| !leader.is_current(round)));
        if is_over {
            row.drop_leader();
        }
        if row.is_out && !is_out {
            // The round is over: a majority has answered.
            row.pause = row.round_trip * 4;
        }
        row.is_out = is_out;
        self.put(share, row);
    }

    /// The number was set, or the row deleted.
    pub fn forget(&mut self, share: &Key) {
        self.take(share);
    }

    /// When [`Rows::due`] has something to do.
    pub fn next(&self) -> Option<Duration> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// What is to be done by now.
    pub fn due(&mut self, hlc: Timestamp, now: Duration) -> Vec<Due> {
        let mut due = Vec::new();
        while let Some((_, share)) = self.deadlines.first().filter(|(at, _)| *at <= now).cloned() {
            let Some(mut row) = self.take(&share) else { break };
            let mut messages = Vec::new();
            if let Some(leader) = &mut row.leader {
                if row.repeat.is_some_and(|at| at <= now) {
                    messages = leader.resend(hlc);
                    row.repeat = Some(now + row.round_trip * 2);
                }
                if row.gather.is_some_and(|at| at <= now) {
                    messages.extend(leader.enough(hlc));
                    row.gather = None;
                }
            }
            if !messages.is_empty() {
                due.push(Due::Send { share: share.clone(), messages });
            }
            if row.begin <= now {
                due.push(Due::Begin { share: share.clone(), above: row.highest });
                row.pause = (row.pause * 2).min(PAUSE_MAX);
                row.begin = now + row.pause + self.random_part(row.pause);
            }
            self.put(&share, row);
        }
        due
    }

    fn new_row(&mut self, round_trip: Duration, now: Duration) -> Row {
        let pause = round_trip * 4;
        let begin = now + pause + self.random_part(pause);
        Row { leader: None, is_out: false, highest: 0, round_trip, gather: None, repeat: None, begin, pause }
    }

    /// Up to as much again.
    fn random_part(&mut self, of: Duration) -> Duration {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        of.mul_f64((self.random >> 40) as f64 / (1u64 << 24) as f64)
    }

    fn take(&mut self, share: &Key) -> Option<Row> {
        let row = self.rows.remove(share)?;
        self.deadlines.remove(&(row.first(), share.clone()));
        Some(row)
    }

    /// Unless nothing is to be done for it.
    fn put(&mut self, share: &Key, row: Row) {
        if row.leader.is_some() || row.is_out {
            self.deadlines.insert((row.first(), share.clone()));
            self.rows.insert(share.clone(), row);
        }
    }
}
