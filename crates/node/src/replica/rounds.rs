//! A primary's part in rounds of `majority` (`docs/design/majority.md`, «What the caller does»):
//! what comes goes through the site's state machine, what it writes goes into the log, and what it
//! sends leaves when that is applied.
//!
//! ```text
//!  message ──▶ Rows (leader) ──▶ sent at once
//!      └─────▶ Engine::step_round ──▶ Batch in the log ──applied──▶ Rows::stored, sent
//!  timers ───▶ Rows::due ──▶ sent, or Work::BeginRound ──▶ Engine::begin_round ──applied──▶ Rows::lead
//! ```
//!
//! All of it lives in the term, and is dropped with it: what was sent stays true, and what was not
//! sent is as good as lost. A new primary finds the rows that have an offer out by their open keys.

use crate::replica::asking::Deciders;
use crate::replica::outbox::Work;
use crate::replica::primary::Step;
use crate::replica::term::{Pending, Term};
use crate::replica::term_rounds::{Asked, RoundStep, Then};
use crate::replica::{Core, Replica, StoreVersions};
use crate::transport::rounds::{Lead, ROWS_MAX, RoundMessages};
use meridian_base::escrow::{self, Free, Share};
use meridian_base::record::Committed;
use meridian_base::{Error, GroupId, Key, Result, SchemaUse, Timestamp, TxnId};
use meridian_escrow::majority::{Due, Message, TOKENS_MAX};
use meridian_region::{Ballot, SiteStep};
use meridian_store::ScanLimits;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// How long a message waits for the step before it, or for a number that is about to be set. Its
/// sender says it again.
const STEP_PATIENCE: Duration = Duration::from_secs(1);
/// What the logs of two sites take of a round trip between their primaries, at least.
const LOGS_TAKE: Duration = Duration::from_millis(20);
/// A statement's round that does not begin, or is not heard of, is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// The sites of a row, and the catalog that says so.
#[derive(Clone, Debug)]
pub(crate) struct RowSites {
    pub sites: BTreeSet<GroupId>,
    pub schema: SchemaUse,
}

/// A statement's request for tokens. It counts among those of its row until it is dropped.
struct Asking<'a> {
    replica: &'a Replica,
    lead: &'a Lead,
    term: u64,
}

impl<'a> Asking<'a> {
    fn new(replica: &'a Replica, lead: &'a Lead) -> Result<Asking<'a>> {
        // A number has no more tokens. Another node may ask for anything.
        let is_possible = |tokens: i128| (0..=TOKENS_MAX).contains(&tokens);
        if !is_possible(lead.wanted.down) || !is_possible(lead.wanted.up) {
            return Err(Error::internal("more tokens are asked for than a number has"));
        }
        let mut core = replica.core.lock();
        let (_, term) = replica.leading(&mut core)?;
        let asked = term.rounds.asked.entry(lead.share.clone()).or_default();
        let wanted = Free { down: asked.wanted.down + lead.wanted.down, up: asked.wanted.up + lead.wanted.up };
        *asked = Asked { wanted, by: asked.by + 1, waiting: asked.waiting + usize::from(lead.is_waiting) };
        Ok(Asking { replica, lead, term: term.number })
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let mut core = self.replica.core.lock();
        let Some(term) = core.term.as_mut().filter(|term| term.number == self.term) else { return };
        let Some(asked) = term.rounds.asked.get_mut(&self.lead.share) else { return };
        let Free { down, up } = self.lead.wanted;
        let wanted = Free { down: asked.wanted.down - down, up: asked.wanted.up - up };
        *asked = Asked { wanted, by: asked.by - 1, waiting: asked.waiting - usize::from(self.lead.is_waiting) };
        if asked.by == 0 {
            term.rounds.asked.remove(&self.lead.share);
            term.rounds.waiting.remove(&self.lead.share);
        }
    }
}

impl Replica {
    /// The time of `Rows`.
    fn rounds_time(&self) -> Duration {
        self.made.elapsed()
    }

    /// How long the answer of a site takes at most: the way there and back, and as long again for a
    /// log that is written in other regions, too. A leader that waits less leaves tokens out that
    /// are needed, round for round.
    fn farthest_round_trip(&self) -> Duration {
        2 * Duration::from_micros(self.common.farthest_micros.load(Ordering::Relaxed)) + LOGS_TAKE
    }

    fn own_id(&self) -> TxnId {
        TxnId { hlc: self.common.clock.tick(self.physical()), gateway: self.node }
    }

    fn send_rounds(&self, sent: impl IntoIterator<Item = (GroupId, Key, Message)>) {
        let mut by_site: BTreeMap<GroupId, Vec<(Key, Message)>> = BTreeMap::new();
        sent.into_iter().for_each(|(to, share, message)| by_site.entry(to).or_default().push((share, message)));
        for (to, mut rows) in by_site {
            while !rows.is_empty() {
                let rest = rows.split_off(rows.len().min(ROWS_MAX));
                self.common.outbox.put(Work::Rounds { to, messages: RoundMessages { from: self.id, rows } });
                rows = rest;
            }
        }
    }

    fn send_round(&self, share: &Key, sent: Vec<(GroupId, Message)>) {
        self.send_rounds(sent.into_iter().map(|(to, message)| (to, share.clone(), message)));
    }

    /// Messages of another site, or of this one to itself; all of them are about sites of their
    /// rows.
    pub(crate) async fn hear_rounds(&self, messages: RoundMessages) {
        let from = messages.from;
        let heard = messages.rows.into_iter().map(|(share, message)| self.hear_round(from, share, message));
        futures::future::join_all(heard).await;
    }

    async fn hear_round(&self, from: GroupId, share: Key, message: Message) {
        if self.clock.observe(message.hlc, self.physical()).is_err() {
            return;
        }
        {
            let mut core = self.core.lock();
            let Ok((_, term)) = self.leading(&mut core) else { return };
            if term.engine.is_being_set(&share) {
                return;
            }
            let sent = term.rounds.rows.receive(&share, from, &message, self.hybrid_now(), self.rounds_time());
            self.send_round(&share, sent);
        }
        tracing::debug!("{}: {from} says of {share:?}: {:?}", self.id, message.kind);
        let stepped = self.until_ready(STEP_PATIENCE, |core| {
            let id = self.own_id();
            self.leading(core)?;
            let step = self.ask_term(core, |Deciders { engine, rounds, .. }, now| {
                if now.clock.is_shared() {
                    now.clock.advance_to(message.hlc);
                }
                let outlook = rounds.outlook(&share, engine.outlook(&share));
                engine.step_round(now, id, &share, outlook, (from, &message))
            })?;
            self.take_step(core, id, &share, step, Then::Send)
        });
        match stepped.await {
            Ok(Some(Then::Send(sent))) => self.send_round(&share, sent),
            Ok(_) => {}
            Err(e) => tracing::debug!("{}: a message of {from} about a round is lost: {e}", self.id),
        }
    }

    /// The site begins a ballot, if it may. `incarnation`: see [`Lead`].
    pub(crate) async fn begin_round(&self, share: &Key, incarnation: Option<TxnId>, of_row: &RowSites) -> Result<()> {
        let RowSites { sites, schema } = of_row;
        if !sites.contains(&self.id) {
            return Ok(());
        }
        let begun = self.until_ready(STEP_PATIENCE, |core| {
            let id = self.own_id();
            self.leading(core)?;
            let step = self.ask_term(core, |Deciders { engine, rounds, .. }, now| {
                let outlook = rounds.outlook(share, engine.outlook(share));
                let known = incarnation.or_else(|| engine.open_round(&now.versions, share).map(|round| round.incarnation));
                let ballot = Ballot { incarnation: known, sites, schema, above: rounds.rows.highest(share) };
                engine.begin_round(now, id, share, outlook, ballot)
            })?;
            self.take_step(core, id, share, step, Then::Lead)
        });
        begun.await.map(drop)
    }

    /// What is to be written goes to the log. `Some`: there is nothing to write, and this follows
    /// at once.
    fn take_step<T>(
        &self,
        core: &mut Core,
        id: TxnId,
        share: &Key,
        step: SiteStep<T>,
        then: impl Fn(T) -> Then,
    ) -> Result<Step<Option<Then>>> {
        match step {
            SiteStep::Append { at, writes, round, then: next } => {
                let (_, term) = self.leading(core)?;
                term.rounds.steps.insert(at, RoundStep { share: share.clone(), round, then: then(next) });
                term.pending.push(Pending::Committed(Committed { id, at, writes }));
                self.pump(core);
                Ok(Step::Ready(None))
            }
            SiteStep::Done(next) => Ok(Step::Ready(Some(then(next)))),
            SiteStep::Dropped => Ok(Step::Ready(None)),
            SiteStep::Wait(ticket) => self.wait(core, ticket),
            SiteStep::NotReady(why) => self.not_ready(core, why),
        }
    }

    /// A transaction is applied: a step's messages leave; a number that was set has no rounds of
    /// before.
    pub(crate) fn round_applied(&self, term: &mut Term, txn: &Committed) {
        let (time, round_trip) = (self.rounds_time(), self.farthest_round_trip());
        let rounds = &mut term.rounds;
        if let Some(RoundStep { share, round, then }) = rounds.steps.remove(&txn.at) {
            rounds.rows.stored(&share, Some(&round), round.offer.is_some(), round_trip, time);
            let sent = match then {
                Then::Send(sent) => sent,
                Then::Lead(leader) => rounds.rows.lead(&share, *leader, round_trip, self.hybrid_now(), time),
            };
            self.send_round(&share, sent);
            if round.offer.is_none() {
                let waiting = rounds.waiting.remove(&share).unwrap_or_default();
                for waiting in waiting {
                    let _ = waiting.send(());
                }
            }
            return;
        }
        if rounds.rows.is_empty() {
            return;
        }
        for write in txn.writes.iter().filter(|w| escrow::is_key(w.key.as_bytes())) {
            // A share's incarnation is the transaction that set its number.
            let begins = |share: Share| share.incarnation == txn.id;
            if write.value.as_ref().is_none_or(|value| Share::decode(value).is_some_and(begins)) {
                rounds.rows.forget(&write.key);
            }
        }
    }

    /// Time passes for rounds.
    pub(crate) fn tick_rounds(&self, core: &mut Core) {
        self.find_loaded(core);
        let Core { term: Some(term), .. } = core else { return };
        let mut sent = Vec::new();
        for due in term.rounds.rows.due(self.hybrid_now(), self.rounds_time()) {
            match due {
                Due::Send { share, .. } if term.engine.is_being_set(&share) => {}
                Due::Send { share, messages } => sent.extend(messages.into_iter().map(|(to, m)| (to, share.clone(), m))),
                Due::Begin { share, .. } => self.common.outbox.put(Work::BeginRound { group: self.id, share }),
            }
        }
        self.send_rounds(sent);
    }

    /// Arms the timers of rows that were read and have an offer out.
    fn find_loaded(&self, core: &mut Core) {
        let Core { term: Some(Term { engine, rounds, .. }), .. } = core else { return };
        let versions = StoreVersions::new(&self.store, self.common.rules);
        for share in engine.take_open() {
            if let Some(round) = engine.open_round(&versions, &share) {
                rounds.rows.stored(&share, Some(&round), true, self.farthest_round_trip(), self.rounds_time());
            }
        }
    }

    /// Finds the rows of a column that have an offer out, once in a term.
    pub(crate) async fn find_open(&self, index: u32) -> Result<()> {
        let Some(number) = self.serving_term() else { return Ok(()) };
        let is_new = |core: &Core| core.term.as_ref().is_some_and(|t| t.number == number && !t.rounds.looked_at.contains(&index));
        if !is_new(&self.core.lock()) {
            return Ok(());
        }
        let mut left = Some(escrow::open_range(index));
        while let Some(range) = left.take() {
            let page = self.store.scan(&range, Timestamp::MAX, false, ScanLimits { rows: ROWS_MAX, ..ScanLimits::default() })?;
            for (open, version) in page.rows {
                if version.value.is_some() {
                    self.share(&escrow::share_of_open(&open)).await?;
                }
            }
            self.find_loaded(&mut self.core.lock());
            left = page.rest;
            tokio::task::yield_now().await;
        }
        if let Some(term) = self.core.lock().term.as_mut().filter(|term| term.number == number) {
            term.rounds.looked_at.insert(index);
        }
        Ok(())
    }

    /// The row's column is gone.
    pub(crate) fn forget_round(&self, share: &Key) {
        if let Some(term) = &mut self.core.lock().term {
            term.rounds.rows.forget(share);
        }
    }

    /// How many rows have an offer out here, or a leader.
    pub(crate) fn rows_in_rounds(&self) -> usize {
        self.core.lock().term.as_ref().map_or(0, |term| term.rounds.rows.len())
    }

    /// Leads rounds of a row until the site has what is wanted; `false`: they did not bring it.
    pub(crate) async fn lead_rounds(&self, lead: &Lead, of_row: &RowSites, patience: Duration) -> Result<bool> {
        let deadline = Instant::now() + patience;
        let _asking = Asking::new(self, lead)?;
        let has_enough = |free: Free| {
            let is_there = |wanted: i128, free: i128| wanted <= 0 || free >= wanted;
            is_there(lead.wanted.down, free.down) && is_there(lead.wanted.up, free.up)
        };
        let mut began = false;
        loop {
            let (is_led, ended) = {
                let mut core = self.core.lock();
                let (_, term) = self.leading(&mut core)?;
                let (tx, ended) = oneshot::channel();
                let waiting = term.rounds.waiting.entry(lead.share.clone()).or_default();
                waiting.retain(|other| !other.is_closed());
                waiting.push(tx);
                (term.rounds.rows.is_led(&lead.share), ended)
            };
            if !is_led {
                self.begin_round(&lead.share, lead.incarnation, of_row).await?;
                began = true;
            }
            let look = deadline.min(Instant::now() + LOOK_AGAIN.max(self.farthest_round_trip() * 4));
            let has_ended = matches!(tokio::time::timeout_at(look, ended).await, Ok(Ok(())));
            if self.free(&lead.share).is_some_and(has_enough) {
                return Ok(true);
            }
            // A round that was under way before this request came does not count.
            tracing::debug!(
                "{}: {:?} has {:?} and lacks some of {:?}; led: {is_led}, begun: {began}, ended: {has_ended}",
                self.id,
                lead.share,
                self.free(&lead.share),
                lead.wanted
            );
            if (has_ended && began) || Instant::now() >= deadline {
                return Ok(false);
            }
        }
    }
}
