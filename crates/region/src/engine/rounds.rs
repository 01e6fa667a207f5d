//! A site's part in rounds of the protocol `majority` (`docs/design/escrow.md`, E14, E15, E17 to
//! E20; what it writes and when is in `docs/design/majority.md`, «What the caller does»).
//!
//! The rules of the rounds are [`Site`]'s. Here a step of it finds what is applied, and becomes one
//! transaction of the group: certified in the turn in which the free tokens were read, so that no
//! delta comes between. The next step of the row begins when that is applied.

use super::{Engine, NotReady, SchemaCheck};
use crate::moment::Moment;
use crate::shares::stored_round;
use crate::versions::Versions;
use crate::waits::{Ticket, WaitFor};
use meridian_base::escrow::{self, Free};
use meridian_base::{Change, ColumnMask, GroupId, Key, Mutation, SchemaUse, Target, Timestamp, TxnId, Write};
use meridian_escrow::majority::{self, Here, Leader, Message, Round, Site, Want, Wants};
use std::collections::BTreeSet;

/// What a site expects of a row, which only its caller knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outlook {
    /// See [`Here::keep`].
    pub keep: Free,
    /// See [`Here::wants`].
    pub wants: Wants,
    /// The site is about to go: it makes no offers.
    pub is_closing: bool,
}

/// What [`Engine::begin_round`] begins.
#[derive(Clone, Copy, Debug)]
pub struct Ballot<'a> {
    /// Where the site has no share, that of the row's other shares.
    pub incarnation: Option<TxnId>,
    /// All sites of the row.
    pub sites: &'a BTreeSet<GroupId>,
    /// The catalog that says so.
    pub schema: &'a SchemaUse,
    /// A ballot that the new one is above.
    pub above: u64,
}

/// The answer to [`Engine::step_round`] and [`Engine::begin_round`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SiteStep<T> {
    /// Append `Committed` with the id, as after [`Engine::certify`]. `then` may be used, and its
    /// messages leave, when that is applied; if it is lost they never do. `round`: what is stored
    /// then.
    Append { at: Timestamp, writes: Vec<Write>, round: Round, then: T },
    /// There is nothing to write.
    Done(T),
    /// The step before it is on its way, or the share is about to be written otherwise: ask again
    /// when the ticket wakes.
    Wait(Ticket),
    /// As if the message had been lost: a prepared transaction is in the way, the message is from
    /// too far ahead or from too long ago, or no ballot may begin.
    Dropped,
    /// As in `Certified::NotReady`.
    NotReady(NotReady),
}

/// Why no step begins.
enum NotNow {
    Wait(Ticket),
    NotReady(NotReady),
}

impl<T> From<NotNow> for SiteStep<T> {
    fn from(why: NotNow) -> SiteStep<T> {
        match why {
            NotNow::Wait(ticket) => SiteStep::Wait(ticket),
            NotNow::NotReady(why) => SiteStep::NotReady(why),
        }
    }
}

/// What a step begins with.
struct Found {
    stored: Option<Round>,
    here: Here,
}

type Sent = Vec<(GroupId, Message)>;

impl Engine {
    /// What the site does with a message about a row, named by its share's key. `id`: of the
    /// transaction that this may become, with the primary as its gateway.
    pub fn step_round(
        &mut self,
        moment: &Moment<'_>,
        id: TxnId,
        share: &Key,
        outlook: Outlook,
        (from, message): (GroupId, &Message),
    ) -> SiteStep<Sent> {
        let (versions, now) = (&moment.versions, moment.now());
        // E15; and below the threshold the tombstone may be gone that tells that its incarnation is
        // over.
        if message.hlc > now || message.hlc <= versions.gc_threshold() || self.is_being_set(share) {
            return SiteStep::Dropped;
        }
        let Found { stored, here } = match self.find_round(versions, share, outlook, now) {
            Ok(found) => found,
            Err(why) => return why.into(),
        };
        let step = self.site().step(stored.as_ref(), &here, from, message);
        match step.write {
            None => SiteStep::Done(step.send),
            Some(write) => self.write_step(moment, id, share, (stored, write), step.send),
        }
    }

    /// The site begins a ballot: [`Leader::begin`]. None begins by a catalog that is used no more,
    /// so that a job that ends all rounds finds them.
    pub fn begin_round(
        &mut self,
        moment: &Moment<'_>,
        id: TxnId,
        share: &Key,
        outlook: Outlook,
        ballot: Ballot<'_>,
    ) -> SiteStep<Box<Leader>> {
        let Ballot { incarnation, sites, schema, above } = ballot;
        match self.check_read(moment.state, schema, moment.now()) {
            SchemaCheck::Passed => {}
            SchemaCheck::Wait(ticket) => return SiteStep::Wait(ticket),
            SchemaCheck::Changed(_) => return SiteStep::Dropped,
        }
        let Found { stored, here } = match self.find_round(&moment.versions, share, outlook, moment.now()) {
            Ok(found) => found,
            Err(why) => return why.into(),
        };
        let Some(incarnation) = here.incarnation.or(incarnation) else { return SiteStep::Dropped };
        let begun = Leader::begin(&self.site(), stored.as_ref(), &here, incarnation, sites, above);
        let Some(begun) = begun else { return SiteStep::Dropped };
        self.write_step(moment, id, share, (stored, begun.write), Box::new(begun.leader))
    }

    /// What the site expects of a row, without statements that wait here: it keeps what deltas
    /// needed in the last moment, but no more than half of what it has, and wants what is forecast
    /// beyond that. It is never about to go.
    pub fn outlook(&self, share: &Key) -> Outlook {
        let ((lately, forecast), free) = (self.shares.outlook(share), self.free(share).unwrap_or_default());
        let keep = Free { down: lately.down.clamp(0, free.down.max(0) / 2), up: lately.up.clamp(0, free.up.max(0) / 2) };
        let want = |forecast: i128, keep: i128| Want { tokens: (forecast - keep).max(0), is_waiting: false };
        let wants = Wants { down: want(forecast.down, keep.down), up: want(forecast.up, keep.up) };
        Outlook { keep, wants, is_closing: false }
    }

    /// Whether a prepared transaction sets the number, or deletes the row. Until that is decided,
    /// the site sends nothing about its rounds: elsewhere it may be decided long ago, so that
    /// nothing is left there that tells that the incarnation is over.
    pub fn is_being_set(&self, share: &Key) -> bool {
        self.held_writer(&Target::Key(share.clone()), ColumnMask::ALL, Timestamp::MAX).is_some()
    }

    /// What this site has stored of a row's round, if an offer of it is out there: some site has to
    /// end it.
    pub fn open_round<V: Versions>(&self, versions: &V, share: &Key) -> Option<Round> {
        let (incarnation, round) = match self.shares.in_round(share) {
            Some((incarnation, _, round)) => (Some(incarnation), round.cloned()),
            // The row may have been deleted elsewhere.
            None => {
                let over = versions.newest(share).unwrap_or(Timestamp::MIN);
                (None, stored_round(versions, share).filter(|round| round.incarnation.hlc > over))
            }
        };
        round.filter(|round| self.site().is_out(Some(round), incarnation))
    }

    /// Rows that were read from the store and may have an offer out, since this was last asked for:
    /// [`Engine::open_round`] says whether, and [`majority::Rows::stored`] arms their timers. A new
    /// primary finds all others by their open keys ([`escrow::open_key`]).
    pub fn take_open(&mut self) -> BTreeSet<Key> {
        self.shares.take_open()
    }

    fn site(&self) -> Site {
        Site::new(self.group, majority::Rules::ALL)
    }

    fn find_round<V: Versions>(&mut self, versions: &V, share: &Key, outlook: Outlook, now: Timestamp) -> Result<Found, NotNow> {
        self.ready(now).map_err(NotNow::NotReady)?;
        let step = Target::Key(escrow::round_key(share));
        let in_flight = self.index.last_in_flight(&step, ColumnMask::ALL, Timestamp::MAX);
        self.shares.make_room(1);
        if let Some(at) = in_flight.or(self.hold_share(versions, share).err()) {
            return Err(NotNow::Wait(self.waits.issue(WaitFor::Applied(at))));
        }
        let (incarnation, free, stored) = match self.shares.in_round(share) {
            Some((incarnation, free, round)) => (Some(incarnation), free, round.cloned()),
            None => (None, Free::default(), stored_round(versions, share)),
        };
        // E20. Without a share there is nothing to wait for.
        let set = [Mutation { key: share.clone(), change: Change::Delete, columns: ColumnMask::ALL }];
        let may_offer = !outlook.is_closing && self.disturbed(TxnId::default(), &set).is_none();
        let over = if incarnation.is_some() { Timestamp::MIN } else { versions.newest(share).unwrap_or(Timestamp::MIN) };
        let Outlook { keep, wants, .. } = outlook;
        Ok(Found { stored, here: Here { incarnation, over, free, keep, wants, may_offer, now } })
    }

    fn write_step<T>(
        &mut self,
        moment: &Moment<'_>,
        id: TxnId,
        share: &Key,
        (before, write): (Option<Round>, majority::Write),
        then: T,
    ) -> SiteStep<T> {
        let granted = write.granted;
        if granted.is_some_and(|granted| !self.shares.covers_grant(share, &granted.grant)) {
            return SiteStep::Dropped;
        }
        let above = granted.map_or(Timestamp::MIN, |granted| granted.above);
        let drawn = self.draw_own(moment.state, id, share, above, moment.clock, moment.physical_micros);
        let Some(at) = drawn else { return SiteStep::Dropped };
        let writes = self.shares.step(share, before.as_ref(), &write);
        self.push(id, at, &writes);
        SiteStep::Append { at, writes, round: write.round, then }
    }
}
