//! What a site does with messages: the table of `docs/design/majority.md`.

use super::message::{Kind, Message};
use super::round::Round;
use super::rules::Rules;
use super::value::{Accepted, Ballot, Kept, TOKENS_MAX, Value, Wants};
use meridian_base::escrow::{Free, Late};
use meridian_base::{GroupId, Timestamp, TxnId};
use std::collections::BTreeMap;

/// What the caller knows of the row at the moment of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Here {
    /// That of the site's share; `None`: it has no share.
    pub incarnation: Option<TxnId>,
    /// Without a share: incarnations whose ids began at or below it are over. The timestamp of the
    /// tombstone that DELETE left, or `Timestamp::MIN`.
    pub over: Timestamp,
    /// The share's free tokens: what is applied, less what is in flight and takes (E6). An offer
    /// that is out is still in it.
    pub free: Free,
    /// Free tokens that the site expects to need itself within the next two round trips.
    pub keep: Free,
    /// What it wants (E14).
    pub wants: Wants,
    /// Whether a new offer may go out. Not while SET or DELETE waits here (E20), and not at a site
    /// that is closing.
    pub may_offer: bool,
    /// The site's clock. It has passed the message's already (E15).
    pub now: Timestamp,
}

/// A change of grants that belongs to a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    pub grant: Late,
    /// The timestamp of the transaction that writes it is above this (E15).
    pub above: Timestamp,
}

/// What is written in one transaction of the site's group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The next value of `P 02`.
    pub round: Round,
    /// Added to the share's grants. What the offer held back covers it.
    pub granted: Option<Granted>,
}

/// What a step does: first the write, and once that is durable the messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    pub write: Option<Write>,
    pub send: Vec<(GroupId, Message)>,
}

/// Where a message's incarnation stands here.
enum Standing {
    /// It is the row's.
    Current(Round),
    /// The row has another one, or none.
    Over,
    /// The message is of an incarnation that this site will have when its SET is applied.
    Ahead,
}

/// A site's part in the rounds of all rows. It holds no state of its own: that is in [`Round`]s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    id: GroupId,
    rules: Rules,
}

impl Site {
    pub fn new(id: GroupId, rules: Rules) -> Site {
        Site { id, rules }
    }

    pub(super) fn id(&self) -> GroupId {
        self.id
    }
    pub(super) fn rules(&self) -> Rules {
        self.rules
    }

    /// Tokens that an offer holds back, and that no delta may take (E17). `share`: the incarnation
    /// of the share, if there is one.
    pub fn held(&self, stored: Option<&Round>, share: Option<TxnId>) -> Free {
        let offer = stored.filter(|round| Some(round.incarnation) == share).and_then(|round| round.offer);
        offer.filter(|_| self.rules.holds_offers()).unwrap_or_default()
    }

    /// Whether an offer is out: the site ends the round by itself if no other site does.
    pub fn is_out(&self, stored: Option<&Round>, share: Option<TxnId>) -> bool {
        // A site without a share may be granted tokens, too.
        stored.is_some_and(|round| round.offer.is_some() && share.is_none_or(|share| share == round.incarnation))
    }

    /// Whether a transaction that begins a new incarnation may be prepared here (E20). One that
    /// keeps the grants has to ask; SET and DELETE write them anew, and need not.
    pub fn may_set(&self, stored: Option<&Round>, share: Option<TxnId>) -> bool {
        !self.is_out(stored, share) || !self.rules.sets_await_offers()
    }

    /// What the site does with a message. Messages of its own [`super::Leader`] come here, too, as
    /// those of any other site; what only a leader understands does nothing.
    pub fn step(&self, stored: Option<&Round>, here: &Here, from: GroupId, message: &Message) -> Step {
        let is_for_leader =
            matches!(message.kind, Kind::Promise { .. } | Kind::Accepted { .. } | Kind::Outbid { .. } | Kind::Over);
        if is_for_leader || !message.is_sound(from) {
            return Step::default();
        }
        let mut round = match self.standing(stored, here, message.incarnation) {
            Standing::Current(round) => round,
            Standing::Ahead => return Step::default(),
            Standing::Over => {
                let over = Message { hlc: here.now, kind: Kind::Over, ..message.clone() };
                return Step { write: None, send: vec![(from, over)] };
            }
        };
        if !message.is_near(round.instance, round.promised.number) {
            return Step::default();
        }
        round.saw(from, message.instance);
        let mut turn = Turn { site: self, here, from, round, write: false, granted: None, send: Vec::new() };
        turn.receive(message);
        turn.end()
    }

    /// The state with which a message of an incarnation is answered.
    fn standing(&self, stored: Option<&Round>, here: &Here, asked: TxnId) -> Standing {
        let stored_of = |of: TxnId| stored.filter(|r| r.incarnation == of).cloned().unwrap_or_else(|| Round::new(of));
        if !self.rules.compares_incarnations() {
            return Standing::Current(stored_of(here.incarnation.unwrap_or(asked)));
        }
        match here.incarnation {
            Some(own) if own == asked => Standing::Current(stored_of(own)),
            Some(own) if asked < own => Standing::Over,
            Some(_) => Standing::Ahead,
            // Without a share, what the site has answered before tells.
            None if asked.hlc <= here.over || stored.is_some_and(|round| round.incarnation > asked) => Standing::Over,
            None => Standing::Current(stored_of(asked)),
        }
    }

    /// The first half of [`super::Leader::begin`]: the site's own promise.
    pub(super) fn promise_own(&self, stored: Option<&Round>, here: &Here, incarnation: TxnId, above: u64) -> Option<OwnPromise> {
        assert!(here.incarnation.is_none_or(|own| own == incarnation), "a site leads rounds of its own share");
        let Standing::Current(before) = self.standing(stored, here, incarnation) else { return None };
        let mut round = before.clone();
        round.promised = Ballot { number: round.promised.number.max(above) + 1, site: self.id };
        self.make_offer(&mut round, here);
        if round.offer.is_none() && round.accepted.is_none() {
            return None;
        }
        if !self.rules.holds_out() && before.offer.is_some() && before.accepted.is_none() {
            round.offer = None;
        }
        let leads = round.clone();
        if !self.rules.writes_ballots() {
            round.promised = before.promised;
        }
        Some(OwnPromise { write: Write { round, granted: None }, leads })
    }

    /// An offer goes out, unless one is out or none may. With a value accepted it would be of no
    /// use: the leader adopts that value or a later one, and it has no part for this site.
    fn make_offer(&self, round: &mut Round, here: &Here) {
        let is_new = round.offer.is_none() && round.accepted.is_none() && here.may_offer;
        if is_new || (round.offer.is_some() && !self.rules.offers_once()) {
            let above = |free: i128, keep: i128| (free - keep).clamp(0, TOKENS_MAX);
            round.offer = Some(Free { down: above(here.free.down, here.keep.down), up: above(here.free.up, here.keep.up) });
        }
    }
}

/// See [`super::Leader::begin`].
pub(super) struct OwnPromise {
    pub write: Write,
    /// The state in which the leader begins: the one that is written.
    pub leads: Round,
}

/// One step.
struct Turn<'a> {
    site: &'a Site,
    here: &'a Here,
    from: GroupId,
    round: Round,
    write: bool,
    granted: Option<Granted>,
    send: Vec<(GroupId, Message)>,
}

impl Turn<'_> {
    fn end(self) -> Step {
        let write = self.write.then_some(Write { round: self.round, granted: self.granted });
        Step { write, send: self.send }
    }

    fn reply(&mut self, kind: Kind) {
        let message = Message { incarnation: self.round.incarnation, instance: self.round.instance, hlc: self.here.now, kind };
        self.send.push((self.from, message));
    }

    fn receive(&mut self, message: &Message) {
        match &message.kind {
            Kind::Behind { part, kept } => self.catch_up(message.instance, part.as_ref(), kept),
            Kind::Decided { value } if !self.site.rules.compares_instances() && self.round.offer.is_some() => {
                self.decided(value, message.instance);
            }
            Kind::Ask { .. } | Kind::Accept { .. } | Kind::Fetch if message.instance < self.round.instance => {
                self.tell_what_was_missed(message.instance);
            }
            Kind::Ask { .. } | Kind::Accept { .. } | Kind::Decided { .. } if message.instance > self.round.instance => {
                self.reply(Kind::Fetch);
            }
            // What is left is of this instance; a decision of one that is over changes nothing.
            Kind::Ask { ballot } => self.ask(*ballot),
            Kind::Accept { ballot, value } => self.accept(*ballot, value),
            Kind::Decided { value } if message.instance == self.round.instance => self.decided(value, message.instance),
            _ => {}
        }
    }

    fn ask(&mut self, ballot: Ballot) {
        if ballot < self.round.promised && self.site.rules.keeps_promises() {
            return self.reply(Kind::Outbid { ballot, promised: self.round.promised });
        }
        if ballot > self.round.promised {
            self.round.promised = ballot;
            self.site.make_offer(&mut self.round, self.here);
            self.write = true;
        }
        let (offer, accepted) = (self.round.offer, self.round.accepted.clone());
        self.reply(Kind::Promise { ballot, offer, wants: self.here.wants, accepted });
    }

    fn accept(&mut self, ballot: Ballot, value: &Value) {
        if ballot < self.round.promised && self.site.rules.keeps_promises() {
            return self.reply(Kind::Outbid { ballot, promised: self.round.promised });
        }
        if self.round.accepted.as_ref().is_none_or(|accepted| accepted.ballot != ballot) {
            self.round.promised = ballot;
            self.round.accepted = Some(Accepted { ballot, value: value.clone() });
            self.write = true;
        }
        self.reply(Kind::Accepted { ballot });
    }

    /// What the instance has decided (E18): the change of grants, the next instance and the end of
    /// the offer are one write, with what is kept for the others.
    fn decided(&mut self, value: &Value, instance: u64) {
        self.apply(value.kept(self.site.id, instance), value.parts.get(&self.site.id).map(|part| part.granted));
        let next = self.round.instance.max(instance) + 1;
        self.round.go_to(next);
        if self.site.rules.keeps_decisions() {
            let others = value.parts.keys().filter(|site| **site != self.site.id);
            let others = others.filter_map(|site| Some((*site, value.kept(*site, instance)?)));
            self.round.kept.extend(others);
        }
    }

    fn apply(&mut self, part: Option<Kept>, granted: Option<Free>) {
        self.write = true;
        let Some(mut part) = part else { return };
        if let Some(granted) = granted.filter(|_| !self.site.rules.adds_to_grants()) {
            let free = self.here.free;
            part.change = Free { down: granted.down - free.down, up: granted.up - free.up };
        }
        self.granted = Some(Granted { grant: part.grant(self.round.incarnation), above: part.hlc });
    }

    /// The sender is in an instance that is over here (E19).
    fn tell_what_was_missed(&mut self, instance: u64) {
        let part = self.round.kept.get(&self.from).copied().filter(|kept| kept.instance >= instance);
        let mut kept = self.round.kept.clone();
        kept.remove(&self.from);
        self.reply(Kind::Behind { part, kept });
    }

    /// The site has missed the rounds from its own up to the sender's. It has part in one of them
    /// at most: a site makes no offer in a round before the round before it is over there.
    fn catch_up(&mut self, instance: u64, part: Option<&Kept>, kept: &BTreeMap<GroupId, Kept>) {
        // A site has no part in a round beyond its own.
        let is_possible = part.is_none_or(|part| part.instance <= self.round.instance);
        if instance <= self.round.instance || !is_possible {
            return;
        }
        // A part in a round before this site's has been applied already: the answer is late.
        self.apply(part.filter(|part| part.instance == self.round.instance).copied(), None);
        self.round.go_to(instance);
        if !self.site.rules.adopts() {
            return;
        }
        // The sender knows of all rounds below its own, so what it keeps for a site is as new as
        // what is kept here, or newer.
        self.round.kept.extend(kept.iter().filter(|(site, _)| **site != self.site.id));
    }
}
