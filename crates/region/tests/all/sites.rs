//! The other sites of escrow rows in rounds of `majority`, as small as they can be: what a site
//! stores, without a log around it. Messages may be lost, repeated and late.

use crate::rng::Rng;
use meridian_base::escrow::{Free, Share};
use meridian_base::{GroupId, Timestamp, TxnId};
use meridian_escrow::majority::{Here, Kind, Leader, Message, Round, Rules, Site, Value, Want, Wants, Write};
use std::collections::{BTreeMap, BTreeSet};

/// The site under test.
pub const HERE: GroupId = GroupId(2);
const OTHERS: [GroupId; 2] = [GroupId(3), GroupId(4)];
const NET_MAX: usize = 40;

/// All sites of a row.
pub fn all() -> BTreeSet<GroupId> {
    OTHERS.into_iter().chain([HERE]).collect()
}

pub fn tokens(rng: &mut Rng, n: u64) -> Free {
    Free { down: i128::from(rng.below(n)), up: i128::from(rng.below(n)) }
}

pub fn wants(rng: &mut Rng) -> Wants {
    let mut want = || Want { tokens: i128::from(rng.below(4)), is_waiting: rng.one_in(2) };
    Wants { down: want(), up: want() }
}

/// One row at one site.
struct Other {
    site: Site,
    round: Option<Round>,
    share: Option<Share>,
    over: Timestamp,
    leader: Option<Leader>,
    highest: u64,
}

pub struct Others {
    rows: BTreeMap<(u64, GroupId), Other>,
    /// Row, to, from.
    pub net: Vec<(u64, GroupId, GroupId, Message)>,
    pub decided: BTreeMap<(u64, TxnId, u64), Value>,
    /// Rows of which a renewal is prepared: until its outcome nothing happens to their rounds.
    voted: BTreeSet<u64>,
    /// How rounds have changed the grants of a row's number, added up over all sites.
    pub moved: BTreeMap<(u64, TxnId), Free>,
}

impl Others {
    pub fn new(rows: u64) -> Others {
        let site = |row: u64, id: GroupId| {
            let site = Site::new(id, Rules::ALL);
            ((row, id), Other { site, round: None, share: None, over: Timestamp::MIN, leader: None, highest: 0 })
        };
        let rows = (0..rows).flat_map(|row| OTHERS.map(|id| site(row, id))).collect();
        Others { rows, net: Vec::new(), decided: BTreeMap::new(), voted: BTreeSet::new(), moved: BTreeMap::new() }
    }

    /// The first of them has all tokens of a row.
    pub fn insert(&mut self, row: u64, share: Share) {
        self.rows.get_mut(&(row, OTHERS[0])).expect("there").share = Some(share);
    }

    /// The number is set here, or the row deleted.
    pub fn set(&mut self, row: u64, incarnation: Option<TxnId>, at: Timestamp) {
        for id in OTHERS {
            let other = self.rows.get_mut(&(row, id)).expect("there");
            (other.share, other.leader) = (incarnation.map(Share::empty), None);
            if incarnation.is_none() {
                (other.over, other.round) = (at, None);
            }
        }
    }

    /// Whether all of them would prepare a renewal of the row (E20).
    pub fn may_renew(&self, row: u64) -> bool {
        self.incarnation(row).is_some() && !self.is_out(row)
    }

    /// A renewal has their votes, or it has aborted.
    pub fn vote(&mut self, row: u64, is_yes: bool) {
        match is_yes {
            true => self.voted.insert(row),
            false => self.voted.remove(&row),
        };
    }

    /// The row gets another incarnation, and each site keeps what it has. That of before.
    pub fn renew(&mut self, row: u64, incarnation: TxnId) -> Option<TxnId> {
        self.voted.remove(&row);
        let before = self.incarnation(row);
        for id in OTHERS {
            let other = self.rows.get_mut(&(row, id)).expect("there");
            let is = other.share.unwrap_or(Share::empty(incarnation));
            (other.share, other.round, other.leader) = (Some(Share { incarnation, ..is }), None, None);
        }
        before
    }

    /// What a site without a share asks another for.
    pub fn incarnation(&self, row: u64) -> Option<TxnId> {
        OTHERS.iter().find_map(|id| Some(self.rows[&(row, *id)].share?.incarnation))
    }

    pub fn is_out(&self, row: u64) -> bool {
        let of_row = OTHERS.iter().map(|id| &self.rows[&(row, *id)]);
        let mut out = of_row.filter(|o| o.site.is_out(o.round.as_ref(), o.share.map(|s| s.incarnation)));
        out.next().is_some()
    }

    pub fn send(&mut self, row: u64, from: GroupId, messages: Vec<(GroupId, Message)>, rng: &mut Rng) {
        for (to, message) in messages {
            if self.net.len() >= NET_MAX {
                let at = rng.below(self.net.len() as u64) as usize;
                self.net.swap_remove(at);
            }
            self.net.push((row, to, from, message));
        }
    }

    fn decide(&mut self, row: u64, incarnation: TxnId, instance: u64, value: &Value) -> Result<(), String> {
        let decided = self.decided.entry((row, incarnation, instance)).or_insert_with(|| value.clone());
        if decided == value { Ok(()) } else { Err(format!("two values are decided in instance {instance} of row {row}")) }
    }

    /// What a leader sends says what it has decided.
    pub fn proposed(&mut self, row: u64, sent: &[(GroupId, Message)]) -> Result<(), String> {
        let Some((_, message)) = sent.first() else { return Ok(()) };
        let Kind::Decided { value } = &message.kind else { return Ok(()) };
        self.decide(row, message.incarnation, message.instance, value)
    }

    pub fn note_moved(&mut self, row: u64, incarnation: TxnId, change: Free) {
        let moved = self.moved.entry((row, incarnation)).or_default();
        *moved = Free { down: moved.down + change.down, up: moved.up + change.up };
    }

    fn here(other: &Other, now: Timestamp, rng: &mut Rng) -> Here {
        let free = other.share.map(|share| share.free()).unwrap_or_default();
        let incarnation = other.share.map(|share| share.incarnation);
        Here { incarnation, over: other.over, free, keep: tokens(rng, 2), wants: wants(rng), may_offer: true, now }
    }

    pub fn receive(
        &mut self,
        (row, to, from): (u64, GroupId, GroupId),
        message: &Message,
        now: Timestamp,
        rng: &mut Rng,
    ) -> Result<(), String> {
        if self.voted.contains(&row) {
            return Ok(());
        }
        let other = self.rows.get_mut(&(row, to)).expect("there");
        let mut sent = Vec::new();
        if let Some(mut leader) = other.leader.take() {
            sent = leader.receive(from, message, now);
            other.highest = other.highest.max(leader.highest());
            if leader.end().is_none() {
                other.leader = Some(leader);
            }
            self.proposed(row, &sent)?;
        }
        self.send(row, to, sent, rng);
        let other = self.rows.get_mut(&(row, to)).expect("there");
        let here = Others::here(other, now, rng);
        let step = other.site.step(other.round.as_ref(), &here, from, message);
        if let Some(write) = step.write {
            self.write(row, to, write);
        }
        self.send(row, to, step.send, rng);
        Ok(())
    }

    fn write(&mut self, row: u64, id: GroupId, write: Write) {
        let other = self.rows.get_mut(&(row, id)).expect("there");
        if other.leader.as_ref().is_some_and(|leader| !leader.is_current(&write.round)) {
            other.leader = None;
        }
        let incarnation = write.round.incarnation;
        other.round = Some(write.round);
        if let Some(granted) = write.granted {
            other.share = Some(other.share.unwrap_or(Share::empty(incarnation)).plus(&granted.grant));
            assert!(other.share.is_some_and(|share| share.is_covered()), "E3: {id} has {:?}", other.share);
            self.note_moved(row, incarnation, Free { down: granted.grant.down, up: granted.grant.up });
        }
    }

    /// One of the other sites begins a ballot.
    pub fn begin(&mut self, row: u64, known: Option<TxnId>, now: Timestamp, rng: &mut Rng) {
        let id = OTHERS[rng.below(2) as usize];
        if self.voted.contains(&row) {
            return;
        }
        let other = self.rows.get_mut(&(row, id)).expect("there");
        let here = Others::here(other, now, rng);
        let Some(incarnation) = here.incarnation.or(known) else { return };
        let begun = Leader::begin(&other.site, other.round.as_ref(), &here, incarnation, &all(), other.highest);
        let Some(begun) = begun else { return };
        self.write(row, id, begun.write);
        let sent = begun.leader.resend(now);
        self.rows.get_mut(&(row, id)).expect("there").leader = Some(begun.leader);
        self.send(row, id, sent, rng);
    }

    /// The timers of leaders there.
    pub fn poke(&mut self, row: u64, now: Timestamp, rng: &mut Rng) {
        if self.voted.contains(&row) {
            return;
        }
        for id in OTHERS {
            let Some(leader) = &mut self.rows.get_mut(&(row, id)).expect("there").leader else { continue };
            let mut sent = leader.resend(now);
            sent.extend(leader.enough(now));
            self.send(row, id, sent, rng);
        }
    }

    /// A delta at one of them.
    pub fn spend(&mut self, row: u64, rng: &mut Rng) {
        let id = OTHERS[rng.below(2) as usize];
        let delta = [-2, -1, 1, 2][rng.below(4) as usize];
        let other = self.rows.get_mut(&(row, id)).expect("there");
        let Some(share) = &mut other.share else { return };
        let (free, held) = (share.free(), other.site.held(other.round.as_ref(), Some(share.incarnation)));
        if (Free { down: free.down - held.down, up: free.up - held.up }).cover(delta) {
            share.contribution += delta;
        }
    }
}
