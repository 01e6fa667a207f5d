//! What the leader of a ballot does. All of it may be lost: any site takes over with a higher
//! ballot.

use super::message::{Kind, Message};
use super::round::Round;
use super::rules::Rules;
use super::site::{Here, OwnPromise, Site, Write};
use super::value::{Accepted, Ballot, Offered, Value};
use meridian_base::limits::ESCROW_SITES_MAX;
use meridian_base::{GroupId, Timestamp, TxnId};
use std::collections::{BTreeMap, BTreeSet};

/// How a leader has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Its value is decided; it may be one that it has adopted from an earlier leader.
    Decided(Value),
    /// So many sites have promised a higher ballot that no majority is left.
    Outbid,
    /// The instance is over: the leader's site has missed its decision.
    Behind,
    /// The incarnation is over at a site.
    Over,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// Answers come in. `is_enough`: those of a majority do.
    Asking {
        answers: BTreeMap<GroupId, Answer>,
        is_enough: bool,
    },
    Accepting {
        value: Value,
        accepted: BTreeSet<GroupId>,
    },
    Ended(End),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Answer {
    offered: Option<Offered>,
    accepted: Option<Accepted>,
}

/// One ballot of one instance. It lives in the memory of the site's primary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leader {
    rules: Rules,
    incarnation: TxnId,
    instance: u64,
    ballot: Ballot,
    /// All sites of the row, this one included. The same at every site.
    sites: BTreeSet<GroupId>,
    /// Those that have promised a higher ballot.
    outbid: BTreeSet<GroupId>,
    /// The highest number of a ballot that was heard of.
    highest: u64,
    phase: Phase,
}

/// A ballot that begins: the write is durable before the messages of [`Leader::resend`] leave.
#[derive(Clone, Debug)]
pub struct Beginning {
    pub write: Write,
    pub leader: Leader,
}

impl Leader {
    /// The site begins a ballot in its current instance: to get tokens, or because an offer has
    /// been out for too long. An offer that is out stays as it is (E17). `None`: no ballot may
    /// begin, because no offer may go out, or because the incarnation is over.
    ///
    /// The write holds the site's own promise. It is durable before any of the leader's messages
    /// leave, else a leader that is restarted could use the ballot for another value.
    ///
    /// `incarnation`: that of the site's share, or without one that of the row. `sites`: all sites
    /// of the row. `above`: the highest number of a ballot that is known ([`Leader::highest`]), or
    /// 0.
    pub fn begin(
        site: &Site,
        stored: Option<&Round>,
        here: &Here,
        incarnation: TxnId,
        sites: &BTreeSet<GroupId>,
        above: u64,
    ) -> Option<Beginning> {
        assert!(sites.contains(&site.id()) && sites.len() <= ESCROW_SITES_MAX, "a leader is one of the row's sites");
        let OwnPromise { write, leads } = site.promise_own(stored, here, incarnation, above)?;
        let offered = leads.offer.map(|offer| Offered { offer, wants: here.wants, hlc: here.now });
        let own = Answer { offered, accepted: leads.accepted };
        let leader = Leader {
            rules: site.rules(),
            incarnation,
            instance: leads.instance,
            ballot: leads.promised,
            sites: sites.clone(),
            outbid: BTreeSet::new(),
            highest: leads.promised.number,
            phase: Phase::Asking { answers: BTreeMap::from([(site.id(), own)]), is_enough: false },
        };
        Some(Beginning { write, leader })
    }

    /// `None`: it goes on.
    pub fn end(&self) -> Option<&End> {
        match &self.phase {
            Phase::Ended(end) => Some(end),
            _ => None,
        }
    }

    /// For the next ballot of the site.
    pub fn highest(&self) -> u64 {
        self.highest
    }

    /// Whether its instance is still that of its site. A leader of another one is dropped.
    pub fn is_current(&self, stored: &Round) -> bool {
        (stored.incarnation, stored.instance) == (self.incarnation, self.instance)
    }

    /// What has not been answered, for the first time or again. The site's own messages go through
    /// [`Site::step`] like those of any other site.
    pub fn resend(&self, now: Timestamp) -> Vec<(GroupId, Message)> {
        let (silent, kind): (Vec<GroupId>, Kind) = match &self.phase {
            Phase::Asking { answers, .. } => {
                let silent = self.sites.iter().filter(|site| !answers.contains_key(site));
                (silent.copied().collect(), Kind::Ask { ballot: self.ballot })
            }
            Phase::Accepting { value, accepted } => {
                let silent = self.sites.difference(accepted);
                (silent.copied().collect(), Kind::Accept { ballot: self.ballot, value: value.clone() })
            }
            Phase::Ended(End::Decided(value)) => (self.sites.iter().copied().collect(), Kind::Decided { value: value.clone() }),
            Phase::Ended(_) => return Vec::new(),
        };
        let message = Message { incarnation: self.incarnation, instance: self.instance, hlc: now, kind };
        silent.into_iter().filter(|site| !self.outbid.contains(site)).map(|site| (site, message.clone())).collect()
    }

    /// The caller has waited long enough for offers: those of a majority do, as soon as they are
    /// here.
    pub fn enough(&mut self, now: Timestamp) -> Vec<(GroupId, Message)> {
        if let Phase::Asking { is_enough, .. } = &mut self.phase {
            *is_enough = true;
        }
        self.propose(now)
    }

    /// A message to this site; what is none for a leader, or for another ballot, does nothing.
    pub fn receive(&mut self, from: GroupId, message: &Message, now: Timestamp) -> Vec<(GroupId, Message)> {
        let is_ours = message.incarnation == self.incarnation || !self.rules.compares_incarnations();
        let is_heard = self.sites.contains(&from)
            && message.is_sound(from)
            && message.is_near(self.instance, self.highest)
            && message.is_of(&self.sites);
        if !is_ours || !is_heard || self.end().is_some() {
            return Vec::new();
        }
        match &message.kind {
            Kind::Over => self.phase = Phase::Ended(End::Over),
            Kind::Behind { .. } if message.instance > self.instance => self.phase = Phase::Ended(End::Behind),
            _ if message.instance != self.instance => {}
            Kind::Promise { ballot, offer, wants, accepted } if *ballot == self.ballot => {
                if let Phase::Asking { answers, .. } = &mut self.phase {
                    let offered = offer.map(|offer| Offered { offer, wants: *wants, hlc: message.hlc });
                    answers.entry(from).or_insert(Answer { offered, accepted: accepted.clone() });
                    return self.propose(now);
                }
            }
            Kind::Accepted { ballot } if *ballot == self.ballot => {
                if let Phase::Accepting { accepted, .. } = &mut self.phase {
                    accepted.insert(from);
                    return self.decide(now);
                }
            }
            Kind::Outbid { ballot, promised } if *ballot == self.ballot => {
                self.outbid.insert(from);
                self.highest = self.highest.max(promised.number);
                if !self.is_majority(self.sites.len() - self.outbid.len()) {
                    self.phase = Phase::Ended(End::Outbid);
                }
            }
            _ => {}
        }
        Vec::new()
    }

    fn is_majority(&self, sites: usize) -> bool {
        sites * 2 > self.sites.len()
    }

    /// Phase 2 begins if the answers allow it: those of a majority in any case, and of all other
    /// sites too unless the caller has waited enough. The highest accepted value is taken over;
    /// another one may have been decided already (Paxos).
    fn propose(&mut self, now: Timestamp) -> Vec<(GroupId, Message)> {
        let Phase::Asking { answers, is_enough } = &self.phase else { return Vec::new() };
        if !self.is_majority(answers.len()) {
            return Vec::new();
        }
        let accepted = answers.values().filter_map(|answer| answer.accepted.as_ref());
        let adopted = accepted.max_by_key(|accepted| accepted.ballot).filter(|_| self.rules.prefers_accepted());
        let value = match adopted {
            Some(accepted) => accepted.value.clone(),
            // Those who are outbid give no answer.
            None if *is_enough || answers.len() + self.outbid.len() >= self.sites.len() => {
                let offers = answers.iter().filter_map(|(site, answer)| Some((*site, answer.offered?)));
                let mut value = Value::divide(&offers.collect());
                if !self.rules.carries_credit_time() {
                    value.hlc = Timestamp::MIN;
                }
                value
            }
            None => return Vec::new(),
        };
        self.phase = Phase::Accepting { value, accepted: BTreeSet::new() };
        self.resend(now)
    }

    fn decide(&mut self, now: Timestamp) -> Vec<(GroupId, Message)> {
        let Phase::Accepting { value, accepted } = &self.phase else { return Vec::new() };
        let is_half = !self.rules.majority_decides() && accepted.len() * 2 >= self.sites.len() - 1;
        if !self.is_majority(accepted.len()) && !is_half {
            return Vec::new();
        }
        self.phase = Phase::Ended(End::Decided(value.clone()));
        self.outbid.clear();
        self.resend(now)
    }
}
