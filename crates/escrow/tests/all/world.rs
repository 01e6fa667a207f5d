//! A row, its sites, and a network of which nothing is promised. The sites are the real
//! [`Site`]s and [`Leader`]s; around them is as much of a store as they need: a share, a round,
//! and transactions that set, delete, insert and renew the row over all sites.
//!
//! A site's write is atomic. A crash loses what is in memory: the leader, and messages that were
//! not sent yet. A leader may also live on beside its successor.

use crate::histories::Plan;
use meridian_base::escrow::{Bounds, Free, Share};
use meridian_base::{GroupId, NodeId, Timestamp, TxnId};
use meridian_escrow::majority::{Ballot, End, Here, Kind, Leader, Message, Round, Site, Step, Value, Want, Wants, Write};
use std::collections::{BTreeMap, BTreeSet};

/// Messages on their way; above it some are lost.
const NET_MAX: usize = 80;
pub const BOUNDS_LO: i128 = 0;

pub type Checked = Result<(), String>;

/// Numbers that look random.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }
    /// Below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n
    }
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
    fn tokens(&mut self, n: usize) -> Free {
        Free { down: self.below(n) as i128, up: self.below(n) as i128 }
    }
}

/// A site: what is durable, and what is not.
pub struct Node {
    pub site: Site,
    pub id: GroupId,
    pub round: Option<Round>,
    pub share: Option<Share>,
    /// The timestamp of the tombstone.
    over: Timestamp,
    /// Durable, too: a successor starts above it.
    clock: u64,
    /// SET, DELETE or a renewal is prepared here.
    is_prepared: bool,
    pub is_down: bool,
    pub leader: Option<Leader>,
    /// That of a primary that does not know yet that it has a successor.
    zombie: Option<Leader>,
    highest: u64,
}

impl Node {
    fn incarnation(&self) -> Option<TxnId> {
        self.share.map(|share| share.incarnation)
    }
    pub fn is_out(&self) -> bool {
        self.site.is_out(self.round.as_ref(), self.incarnation())
    }
    fn tick(&mut self) -> Timestamp {
        self.clock += 1;
        Timestamp(self.clock)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Set(i128),
    Delete,
    /// A new incarnation with the same shares: how sites are added.
    Renew,
}

/// A transaction over all sites.
#[derive(Clone, Debug)]
struct Txn {
    id: TxnId,
    change: Change,
    left: Vec<usize>,
    commits: Option<Timestamp>,
}

/// What must hold is checked against this.
#[derive(Default)]
struct Record {
    /// Who has accepted which value, by incarnation, instance and ballot.
    accepted: BTreeMap<(TxnId, u64, Ballot), (Value, BTreeSet<GroupId>)>,
    chosen: BTreeMap<(TxnId, u64), Value>,
    applied: BTreeMap<(TxnId, u64, GroupId), Free>,
    /// Deltas of the number since it was inserted or set, in the order of the sites' events.
    deltas: Vec<(Timestamp, i128)>,
    began: i128,
    over: BTreeSet<TxnId>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub decided: u64,
    pub applied: u64,
    pub ballots: u64,
    pub deltas: u64,
    pub changes: u64,
    pub caught_up: u64,
}

pub struct World {
    pub plan: Plan,
    pub random: Random,
    pub nodes: Vec<Node>,
    pub net: Vec<(GroupId, GroupId, Message)>,
    /// The sites of each incarnation.
    sites: BTreeMap<TxnId, BTreeSet<GroupId>>,
    txn: Option<Txn>,
    hi: i128,
    record: Record,
    pub counts: Counts,
    pub trace: Option<Vec<String>>,
}

fn id_of(n: usize) -> GroupId {
    GroupId(n as u32 + 2)
}
fn index_of(id: GroupId) -> usize {
    id.0 as usize - 2
}

impl World {
    pub fn new(plan: Plan, seed: u64) -> World {
        let mut random = Random::new(seed);
        let hi = 2 + random.below(12) as i128;
        let first = TxnId { hlc: Timestamp(1), gateway: NodeId(1) };
        let node = |n| Node {
            site: Site::new(id_of(n), plan.rules),
            id: id_of(n),
            round: None,
            share: None,
            over: Timestamp::MIN,
            clock: 10 + n as u64,
            is_prepared: false,
            is_down: false,
            leader: None,
            zombie: None,
            highest: 0,
        };
        let mut nodes: Vec<Node> = (0..plan.sites).map(node).collect();
        let value = random.below(hi as usize + 1) as i128;
        nodes[0].share = Some(Share::begin(first, value, Bounds { lo: BOUNDS_LO, hi }));
        // Some start with a part of the tokens.
        for n in 1..nodes.len() - plan.grows {
            let home = nodes[0].share.expect("the home has a share");
            if random.one_in(2) {
                let Free { down, up } = home.free();
                let part = Free { down: random.below(down as usize + 1) as i128, up: random.below(up as usize + 1) as i128 };
                nodes[n].share = Some(Share { down: part.down, up: part.up, ..Share::empty(first) });
                nodes[0].share = Some(Share { down: home.down - part.down, up: home.up - part.up, ..home });
            }
        }
        let sites = (0..plan.sites - plan.grows).map(id_of).collect();
        World {
            plan,
            random,
            nodes,
            net: Vec::new(),
            sites: BTreeMap::from([(first, sites)]),
            txn: None,
            hi,
            record: Record { began: value, ..Record::default() },
            counts: Counts::default(),
            trace: None,
        }
    }

    fn say(&mut self, text: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(text());
        }
    }

    fn here(&mut self, n: usize) -> Here {
        let may_offer = !self.nodes[n].is_prepared && (self.txn.is_none() || self.random.one_in(2));
        let keep = self.random.tokens(4);
        let mut want = || Want { tokens: self.random.below(6) as i128, is_waiting: self.random.one_in(2) };
        let wants = Wants { down: want(), up: want() };
        let node = &self.nodes[n];
        let free = node.share.map(|share| share.free()).unwrap_or_default();
        Here { incarnation: node.incarnation(), over: node.over, free, keep, wants, may_offer, now: Timestamp(node.clock) }
    }

    // --- events

    /// One event.
    pub fn step(&mut self) -> Checked {
        let n = self.random.below(self.nodes.len());
        match self.random.below(100) {
            0..50 if !self.net.is_empty() => self.deliver_some()?,
            50..70 => self.delta(n)?,
            70..78 => self.begin(n)?,
            78..84 => self.poke(n),
            84..87 => self.crash(n),
            87..88 => self.nodes[n].is_down ^= true,
            88..93 if self.plan.changes => self.change(n)?,
            93..95 => {
                self.nodes[n].clock += self.random.below(30) as u64;
            }
            _ => {}
        }
        Ok(())
    }

    fn deliver_some(&mut self) -> Checked {
        let at = self.random.below(self.net.len());
        if self.random.one_in(8) {
            self.net.swap_remove(at);
            return Ok(());
        }
        let (to, from, message) = match self.random.one_in(5) {
            true => self.net[at].clone(),
            false => self.net.swap_remove(at),
        };
        self.deliver(to, from, &message)
    }

    pub fn deliver(&mut self, to: GroupId, from: GroupId, message: &Message) -> Checked {
        let n = index_of(to);
        if self.nodes[n].is_down {
            return Ok(());
        }
        self.say(|| format!("{to} gets of {from}: {message:?}"));
        let now = Timestamp(self.nodes[n].clock);
        let mut sent = Vec::new();
        let node = &mut self.nodes[n];
        for leader in [&mut node.leader, &mut node.zombie].into_iter().flatten().filter(|leader| leader.end().is_none()) {
            sent.extend(leader.receive(from, message, now));
            node.highest = node.highest.max(leader.highest());
            self.counts.decided += u64::from(matches!(leader.end(), Some(End::Decided(_))));
        }
        self.send(to, sent);
        let here = self.here(n);
        let node = &self.nodes[n];
        let Step { write, send } = node.site.step(node.round.as_ref(), &here, from, message);
        if let Some(write) = write {
            self.counts.caught_up += u64::from(matches!(message.kind, Kind::Behind { .. }));
            self.write(n, write)?;
        }
        // A crash between the write and the messages.
        if self.random.one_in(40) && self.plan.faults {
            self.crash(n);
        } else {
            self.send(to, send);
        }
        Ok(())
    }

    fn send(&mut self, from: GroupId, messages: Vec<(GroupId, Message)>) {
        for (to, message) in messages {
            if self.net.len() >= NET_MAX {
                let at = self.random.below(self.net.len());
                self.net.swap_remove(at);
            }
            self.net.push((to, from, message));
        }
    }

    /// A site's transaction.
    fn write(&mut self, n: usize, write: Write) -> Checked {
        let node = &mut self.nodes[n];
        let before = node.round.take().filter(|round| round.incarnation == write.round.incarnation);
        let was_in = before.as_ref().map_or(0, |round| round.instance);
        write.round.invariant(node.id);
        node.round = Some(write.round);
        if let Some(granted) = write.granted {
            let grant = granted.grant;
            let share = node.share.unwrap_or_else(|| Share::empty(grant.incarnation));
            if share.incarnation == grant.incarnation {
                node.share = Some(Share { down: share.down + grant.down, up: share.up + grant.up, ..share });
            }
            node.clock = node.clock.max(granted.above.0) + 1;
        }
        let (id, round) = (node.id, node.round.clone().expect("written above"));
        self.say(|| format!("{id} writes {round:?} {:?}", write.granted));
        self.record_write(id, was_in, &round, write.granted.map(|g| Free { down: g.grant.down, up: g.grant.up }))?;
        let node = &mut self.nodes[n];
        for leader in [&mut node.leader, &mut node.zombie] {
            if leader.as_ref().is_some_and(|leader| leader.end().is_some() || !leader.is_current(&round)) {
                *leader = None;
            }
        }
        self.check_site(n)
    }

    /// Coverage of a delta at a primary (E6).
    fn delta(&mut self, n: usize) -> Checked {
        let delta = [-2, -1, 1, 2][self.random.below(4)];
        let node = &mut self.nodes[n];
        let Some(share) = node.share.filter(|_| !node.is_prepared && !node.is_down) else { return Ok(()) };
        let (free, held) = (share.free(), node.site.held(node.round.as_ref(), Some(share.incarnation)));
        if !(Free { down: free.down - held.down, up: free.up - held.up }).cover(delta) {
            return Ok(());
        }
        node.share = Some(Share { contribution: share.contribution + delta, ..share });
        let at = node.tick();
        self.record.deltas.push((at, delta));
        self.counts.deltas += 1;
        self.say(|| format!("{} adds {delta} at {at}", id_of(n)));
        self.check_site(n)
    }

    pub fn begin(&mut self, n: usize) -> Checked {
        let known = self.nodes.iter().find_map(Node::incarnation);
        let here = self.here(n);
        let node = &self.nodes[n];
        let Some(incarnation) = here.incarnation.or(known).filter(|_| !node.is_down) else { return Ok(()) };
        let sites = self.sites_of(incarnation);
        if !sites.contains(&node.id) {
            return Ok(());
        }
        let begun = Leader::begin(&node.site, node.round.as_ref(), &here, incarnation, &sites, node.highest);
        let Some(begun) = begun else { return Ok(()) };
        self.counts.ballots += 1;
        self.say(|| format!("{} begins {:?}", id_of(n), begun.leader));
        self.write(n, begun.write)?;
        if !self.plan.faults || !self.random.one_in(20) {
            let sent = begun.leader.resend(here.now);
            self.nodes[n].leader = Some(begun.leader);
            self.send(id_of(n), sent);
        }
        Ok(())
    }

    /// The leader's timers.
    pub fn poke(&mut self, n: usize) {
        let node = &mut self.nodes[n];
        let now = Timestamp(node.clock);
        let mut sent = Vec::new();
        for leader in [&mut node.leader, &mut node.zombie].into_iter().flatten().filter(|_| !node.is_down) {
            sent.extend(leader.resend(now));
            if self.random.one_in(2) || !self.plan.faults {
                sent.extend(leader.enough(now));
            }
        }
        self.send(id_of(n), sent);
    }

    fn crash(&mut self, n: usize) {
        let node = &mut self.nodes[n];
        let leader = node.leader.take();
        if self.random.one_in(3) {
            node.zombie = leader;
        }
        self.say(|| format!("{} fails over", id_of(n)));
    }

    /// All sites are those of the first incarnation.
    pub fn grow(&mut self) {
        let all: BTreeSet<GroupId> = self.nodes.iter().map(|node| node.id).collect();
        self.sites.values_mut().for_each(|sites| *sites = all.clone());
    }

    fn sites_of(&self, incarnation: TxnId) -> BTreeSet<GroupId> {
        self.sites.get(&incarnation).cloned().unwrap_or_default()
    }

    // --- SET, DELETE, INSERT, renewals

    fn now(&self) -> u64 {
        self.nodes.iter().map(|node| node.clock).max().unwrap_or_default()
    }

    pub fn change(&mut self, n: usize) -> Checked {
        if self.txn.is_some() {
            return self.advance(n);
        }
        let id = TxnId { hlc: Timestamp(self.now() + 1), gateway: NodeId(1) };
        if self.nodes[0].share.is_none() {
            return self.insert(id);
        }
        let change = match self.random.below(4) {
            0 => Change::Delete,
            1 => Change::Set(self.random.below(self.hi as usize + 1) as i128),
            _ => Change::Renew,
        };
        self.txn = Some(Txn { id, change, left: (0..self.nodes.len()).collect(), commits: None });
        Ok(())
    }

    /// Prepares at a site, or applies the outcome at one.
    pub fn advance(&mut self, n: usize) -> Checked {
        let Some(mut txn) = self.txn.take() else { return Ok(()) };
        let Some(at) = txn.left.iter().position(|left| *left == n) else {
            self.txn = Some(txn);
            return Ok(());
        };
        txn.left.swap_remove(at);
        if let Some(at) = txn.commits {
            self.apply_change(n, &txn, at);
        } else {
            let node = &mut self.nodes[n];
            let may = node.site.may_set(node.round.as_ref(), node.incarnation())
                || (self.plan.sets_over_offers && txn.change != Change::Renew);
            if node.is_down || !may {
                self.nodes.iter_mut().for_each(|node| node.is_prepared = false);
                return Ok(());
            }
            node.is_prepared = true;
            if txn.left.is_empty() {
                self.commit(&mut txn)?;
            }
        }
        if !txn.left.is_empty() {
            self.txn = Some(txn);
        }
        Ok(())
    }

    /// Sites that are there vote, or learn what was decided.
    pub fn learn_outcomes(&mut self) -> Checked {
        for n in (0..self.nodes.len()).chain(0..self.nodes.len()) {
            if !self.nodes[n].is_down {
                self.advance(n)?;
            }
        }
        Ok(())
    }

    fn commit(&mut self, txn: &mut Txn) -> Checked {
        let at = Timestamp(self.now() + 1);
        self.say(|| format!("{:?} commits at {at}", txn.change));
        (txn.commits, txn.left) = (Some(at), (0..self.nodes.len()).collect());
        self.counts.changes += 1;
        if self.plan.is_strict && !self.plan.sets_over_offers {
            self.check_tokens()?;
        }
        self.check_history()?;
        let before = self.nodes.iter().find_map(Node::incarnation).expect("a row is there");
        self.record.over.insert(before);
        match txn.change {
            Change::Set(value) => self.begin_history(value),
            Change::Renew | Change::Delete => {}
        }
        // Renewing a row adds the sites that are missing.
        self.sites.insert(txn.id, self.nodes.iter().map(|node| node.id).collect());
        Ok(())
    }

    fn apply_change(&mut self, n: usize, txn: &Txn, at: Timestamp) {
        let bounds = Bounds { lo: BOUNDS_LO, hi: self.hi };
        let node = &mut self.nodes[n];
        node.is_prepared = false;
        node.clock = node.clock.max(at.0);
        node.leader = None;
        node.share = match txn.change {
            Change::Set(value) if n == 0 => Some(Share::begin(txn.id, value, bounds)),
            Change::Set(_) => Some(Share::empty(txn.id)),
            Change::Renew => Some(Share { incarnation: txn.id, ..node.share.unwrap_or(Share::empty(txn.id)) }),
            Change::Delete => {
                (node.over, node.round) = (at, None);
                None
            }
        };
    }

    /// The home alone. The DELETE before may not be known everywhere yet.
    fn insert(&mut self, id: TxnId) -> Checked {
        let value = self.random.below(self.hi as usize + 1) as i128;
        self.say(|| format!("INSERT {value} as {id}"));
        let home = &mut self.nodes[0];
        home.clock = home.clock.max(id.hlc.0) + 1;
        home.share = Some(Share::begin(id, value, Bounds { lo: BOUNDS_LO, hi: self.hi }));
        self.sites.insert(id, self.nodes.iter().map(|node| node.id).collect());
        self.begin_history(value);
        Ok(())
    }

    fn begin_history(&mut self, value: i128) {
        self.record.deltas.clear();
        self.record.began = value;
    }

    // --- checks

    fn record_write(&mut self, site: GroupId, was_in: u64, round: &Round, grant: Option<Free>) -> Checked {
        let of = round.incarnation;
        if let Some(accepted) = &round.accepted {
            let key = (of, round.instance, accepted.ballot);
            let (value, by) = self.record.accepted.entry(key).or_insert_with(|| (accepted.value.clone(), BTreeSet::new()));
            if *value != accepted.value {
                return Err(format!("two values of {:?} in instance {}", accepted.ballot, round.instance));
            }
            by.insert(site);
            if by.len() * 2 > self.sites[&of].len() {
                let chosen = self.record.chosen.entry((of, round.instance)).or_insert_with(|| accepted.value.clone());
                if *chosen != accepted.value {
                    return Err(format!("two values are chosen in instance {}", round.instance));
                }
            }
        }
        if let Some(change) = grant {
            self.counts.applied += 1;
            let chosen = self.record.chosen.get(&(of, was_in)).and_then(|value| value.kept(site, was_in));
            if self.plan.is_strict && chosen.is_none_or(|kept| kept.change != change) {
                return Err(format!("{site} applies {change:?} of instance {was_in}, and {chosen:?} was chosen"));
            }
            if self.record.applied.insert((of, was_in, site), change).is_some() {
                return Err(format!("{site} applies instance {was_in} twice"));
            }
        }
        Ok(())
    }

    /// E3, and what an offer holds back is there.
    fn check_site(&self, n: usize) -> Checked {
        let node = &self.nodes[n];
        let Some(share) = node.share else { return Ok(()) };
        if !share.is_covered() {
            return Err(format!("E3: {} has {:?}", node.id, share.free()));
        }
        let offer = node.round.as_ref().filter(|r| r.incarnation == share.incarnation).and_then(|r| r.offer).unwrap_or_default();
        let free = share.free();
        if self.plan.is_strict && (offer.down > free.down || offer.up > free.up) {
            return Err(format!("{} offers {offer:?} of {free:?}", node.id));
        }
        Ok(())
    }

    /// E2, when no offer is out.
    pub fn check_tokens(&self) -> Checked {
        let Some(newest) = self.nodes.iter().find_map(Node::incarnation) else { return Ok(()) };
        let shares = self.nodes.iter().filter_map(|node| node.share).filter(|share| share.incarnation == newest);
        let (down, up) = shares.fold((0, 0), |(down, up), share| (down + share.down, up + share.up));
        if (down, up) != (-BOUNDS_LO, self.hi) {
            return Err(format!("E2: grants are {down} and {up}, not {} and {}", -BOUNDS_LO, self.hi));
        }
        Ok(())
    }

    /// The number is within its bounds at every timestamp (E15).
    pub fn check_history(&mut self) -> Checked {
        let deltas = &mut self.record.deltas;
        deltas.sort_unstable_by_key(|(at, _)| *at);
        let mut value = self.record.began;
        for (i, (at, delta)) in deltas.iter().enumerate() {
            value += delta;
            let is_last = deltas.get(i + 1).is_none_or(|(next, _)| next > at);
            if is_last && !(BOUNDS_LO..=self.hi).contains(&value) {
                return Err(format!("the number is {value} at {at}"));
            }
        }
        Ok(())
    }

    /// At rest, every site has applied what was chosen and has part for it.
    pub fn check_applied(&self) -> Checked {
        if !self.plan.is_strict {
            return Ok(());
        }
        for ((of, instance), value) in &self.record.chosen {
            if self.plan.sets_over_offers && self.record.over.contains(of) {
                continue;
            }
            for site in value.parts.keys() {
                if !self.record.applied.contains_key(&(*of, *instance, *site)) {
                    return Err(format!("{site} has not applied its part of instance {instance}"));
                }
            }
        }
        Ok(())
    }
}
