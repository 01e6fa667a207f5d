//! The timers of rows: by hand, and over a network that loses most messages for a while. Nothing
//! but timers begins a ballot there, and in the end no offer is out and no row takes memory.

use crate::world::Random;
use meridian_base::escrow::{Bounds, Free, Share};
use meridian_base::{GroupId, Key, NodeId, Timestamp, TxnId};
use meridian_escrow::majority::{
    Due, Here, Kind, Leader, Message, PAUSE_MAX, Round, Rows, Rules, Site, Step, Want, Wants, Write,
};
use std::collections::BTreeSet;
use std::time::Duration;

const ROUND_TRIP: Duration = Duration::from_millis(100);
const TXN: TxnId = TxnId { hlc: Timestamp(1), gateway: NodeId(1) };

fn share() -> Key {
    Key::new(b"a")
}
fn sites(of: u32) -> BTreeSet<GroupId> {
    (2..2 + of).map(GroupId).collect()
}
fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}
fn here(share: Option<Share>, hlc: Timestamp) -> Here {
    let free = share.map(|share| share.free()).unwrap_or_default();
    let wants = Wants { down: Want::default(), up: Want { tokens: 1, is_waiting: true } };
    Here { incarnation: Some(TXN), over: Timestamp::MIN, free, keep: Free::default(), wants, may_offer: true, now: hlc }
}
fn leader(of: u32) -> (Leader, Round) {
    let site = Site::new(GroupId(2), Rules::ALL);
    let begun = Leader::begin(&site, None, &here(None, Timestamp(5)), TXN, &sites(of), 0).expect("a ballot begins");
    (begun.leader, begun.write.round)
}
fn asked(due: &[Due]) -> bool {
    matches!(due, [Due::Send { messages, .. }] if messages.iter().all(|(_, m)| matches!(m.kind, Kind::Ask { .. })))
}

#[test]
fn a_leader_waits_then_repeats_and_begins_again_ever_later() {
    let mut rows = Rows::new(7);
    let (leader, round) = leader(3);
    assert_eq!(rows.next(), None);
    rows.stored(&share(), Some(&round), true, ROUND_TRIP, ms(0));
    let sent = rows.lead(&share(), leader, ROUND_TRIP, Timestamp(6), ms(0));
    assert_eq!(sent.iter().map(|(to, _)| to.0).collect::<Vec<_>>(), [3, 4]);
    assert!(rows.is_led(&share()));
    // No site has answered: the time for offers is over, and there is no majority of them.
    assert_eq!(rows.next(), Some(ms(125)));
    assert_eq!(rows.due(Timestamp(6), ms(125)), []);
    assert_eq!(rows.next(), Some(ms(200)));
    assert!(asked(&rows.due(Timestamp(6), ms(200))));
    let mut ballots = Vec::new();
    while ballots.len() < 12 {
        let now = rows.next().expect("an offer is out");
        let begins = |due: &Due| matches!(due, Due::Begin { above: 1, .. });
        if rows.due(Timestamp(6), now).iter().any(begins) {
            ballots.push(now);
        }
    }
    assert!((ms(400)..=ms(800)).contains(&ballots[0]), "{ballots:?}");
    for pair in ballots.windows(2) {
        assert!(pair[1] - pair[0] <= PAUSE_MAX * 2, "{ballots:?}");
    }
    assert!(ballots[11] - ballots[10] >= PAUSE_MAX, "{ballots:?}");
}

#[test]
fn what_is_over_takes_no_memory() {
    let mut rows = Rows::new(7);
    let (leader, round) = leader(3);
    // A row that is loaded without an offer out.
    rows.stored(&share(), Some(&Round::new(TXN)), false, ROUND_TRIP, ms(0));
    assert!(rows.is_empty());
    // The next instance has begun, so the leader is dropped.
    rows.lead(&share(), leader.clone(), ROUND_TRIP, Timestamp(6), ms(0));
    rows.stored(&share(), Some(&round), true, ROUND_TRIP, ms(1));
    assert!(rows.is_led(&share()));
    rows.stored(&share(), Some(&Round { instance: 1, ..Round::new(TXN) }), false, ROUND_TRIP, ms(2));
    assert_eq!((rows.len(), rows.next()), (0, None));
    // The number is set.
    rows.lead(&share(), leader, ROUND_TRIP, Timestamp(6), ms(3));
    rows.forget(&share());
    assert_eq!((rows.len(), rows.next(), rows.highest(&share())), (0, None, 0));
}

/// A site, its store, and its timers.
struct Node {
    site: Site,
    id: GroupId,
    round: Option<Round>,
    share: Share,
    rows: Rows,
}

struct World {
    nodes: Vec<Node>,
    /// When it comes, whom to, whom from.
    net: Vec<(Duration, GroupId, GroupId, Message)>,
    now: Duration,
    random: Random,
    ballots: u64,
    decided: u64,
}

impl World {
    fn new(of: u32, seed: u64) -> World {
        let mut random = Random::new(seed);
        let node = |id: GroupId| Node {
            site: Site::new(id, Rules::ALL),
            id,
            round: None,
            share: match id {
                GroupId(2) => Share::begin(TXN, 3, Bounds { lo: 0, hi: 9 }),
                _ => Share::empty(TXN),
            },
            rows: Rows::new(random.below(1 << 30) as u64),
        };
        let nodes = sites(of).into_iter().map(node).collect();
        World { nodes, net: Vec::new(), now: Duration::ZERO, random: Random::new(seed + 1), ballots: 0, decided: 0 }
    }

    fn hlc(&self) -> Timestamp {
        Timestamp::from_micros(1 + self.now.as_micros() as u64)
    }

    fn send(&mut self, from: GroupId, messages: Vec<(GroupId, Message)>, is_lossy: bool) {
        for (to, message) in messages {
            if to != from && is_lossy && !self.random.one_in(4) {
                continue;
            }
            let way = if to == from { 0 } else { 20 + self.random.below(30) as u64 };
            self.net.push((self.now + ms(way), to, from, message));
        }
    }

    fn write(&mut self, n: usize, write: Write) {
        let now = self.now;
        let node = &mut self.nodes[n];
        if let Some(granted) = write.granted {
            node.share = node.share.plus(&granted.grant);
            self.decided += 1;
        }
        node.round = Some(write.round);
        let is_out = node.site.is_out(node.round.as_ref(), Some(TXN));
        node.rows.stored(&share(), node.round.as_ref(), is_out, ROUND_TRIP, now);
        assert!(node.share.is_covered());
    }

    fn begin(&mut self, n: usize, above: u64, is_lossy: bool) {
        let (hlc, of) = (self.hlc(), self.nodes.len() as u32);
        let node = &self.nodes[n];
        let here = here(Some(node.share), hlc);
        let begun = Leader::begin(&node.site, node.round.as_ref(), &here, TXN, &sites(of), above);
        let Some(begun) = begun else { return };
        self.ballots += 1;
        let id = node.id;
        self.write(n, begun.write);
        let sent = self.nodes[n].rows.lead(&share(), begun.leader, ROUND_TRIP, hlc, self.now);
        self.send(id, sent, is_lossy);
    }

    fn deliver(&mut self, (_, to, from, message): (Duration, GroupId, GroupId, Message), is_lossy: bool) {
        let (hlc, now) = (self.hlc(), self.now);
        let n = to.0 as usize - 2;
        let node = &mut self.nodes[n];
        let sent = node.rows.receive(&share(), from, &message, hlc, now);
        let Step { write, send } = node.site.step(node.round.as_ref(), &here(Some(node.share), hlc), from, &message);
        if let Some(write) = write {
            self.write(n, write);
        }
        self.send(to, sent, is_lossy);
        self.send(to, send, is_lossy);
    }

    /// The next thing that happens, if it does by then.
    fn step(&mut self, until: Duration, is_lossy: bool) -> bool {
        let first = self.net.iter().map(|(at, ..)| *at).min();
        let timer = self.nodes.iter().filter_map(|node| node.rows.next()).min();
        let Some(at) = first.into_iter().chain(timer).min().filter(|at| *at <= until) else { return false };
        self.now = self.now.max(at);
        if let Some(place) = self.net.iter().position(|(at, ..)| *at <= self.now) {
            let message = self.net.swap_remove(place);
            self.deliver(message, is_lossy);
            return true;
        }
        let (hlc, now) = (self.hlc(), self.now);
        for n in 0..self.nodes.len() {
            for due in self.nodes[n].rows.due(hlc, now) {
                match due {
                    Due::Send { messages, .. } => self.send(self.nodes[n].id, messages, is_lossy),
                    Due::Begin { above, .. } => self.begin(n, above, is_lossy),
                }
            }
        }
        true
    }
}

#[test]
fn timers_alone_bring_every_offer_home() {
    let (mut ballots, mut decided, mut longest) = (0, 0, Duration::ZERO);
    for seed in 0..2_000 {
        let of = [2, 3, 5][seed as usize % 3];
        let mut world = World::new(of, seed);
        for n in 0..of as usize {
            if n == 0 || world.random.one_in(2) {
                world.begin(n, 0, true);
            }
        }
        while world.step(ms(3_000), true) {}
        let calm = world.now.max(ms(3_000));
        world.now = calm;
        // A primary that has failed over reads its rounds again.
        if world.random.one_in(2) {
            let n = world.random.below(of as usize);
            let (now, seed) = (world.now, world.random.below(1 << 30) as u64);
            let node = &mut world.nodes[n];
            node.rows = Rows::new(seed);
            let is_out = node.site.is_out(node.round.as_ref(), Some(TXN));
            node.rows.stored(&share(), node.round.as_ref(), is_out, ROUND_TRIP, now);
        }
        let mut steps = 0;
        while world.step(Duration::MAX, false) {
            steps += 1;
            assert!(steps < 20_000, "seed {seed}: leaders outbid each other for ever");
        }
        for node in &world.nodes {
            assert!(!node.site.is_out(node.round.as_ref(), Some(TXN)), "seed {seed}: an offer stays out at {}", node.id);
            assert!(node.rows.is_empty(), "seed {seed}: {} is at rest, and remembers a row", node.id);
        }
        let sum = world.nodes.iter().fold((0, 0), |(down, up), n| (down + n.share.down, up + n.share.up));
        assert_eq!(sum, (0, 9), "seed {seed}: E2");
        (ballots, decided) = (ballots + world.ballots, decided + world.decided);
        longest = longest.max(world.now - calm);
    }
    assert!(decided > 3_000 && ballots > 4_000, "little happens: {ballots} ballots, {decided} decisions applied");
    assert!(longest < Duration::from_secs(120), "a round takes {longest:?} in a calm network");
}
