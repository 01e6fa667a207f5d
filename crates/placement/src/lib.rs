//! Where replicas go: node localities and a policy in; voters, non-voters and preferred primaries
//! out. Pure functions.
//!
//! | policy | voters | non-voters |
//! | --- | --- | --- |
//! | [`Survival::Zone`] | 3, in 3 zones of the home region | 1 in every other region of the database |
//! | [`Survival::Region`] | 5, 2 of them in the home region, at most 2 in any region | 1 in every region without a voter |
//! | [`Survival::Restricted`] | as Zone | none |
//! | the catalog | 3 in one or two regions, 5 with at most 2 per region as soon as there are 3 | 1 in every region without a voter |
//!
//! Where there are fewer regions, zones or nodes than the policy wants, it is spread over what
//! there is, and the number of voters stays odd: an even number survives no more failures than the
//! odd one below it.
//!
//! Voters are picked one after the other. Of all candidates the next one is the first by: alive; a
//! region, then a zone, with few voters so far; a replica already; the fewest replicas of other
//! groups; a hash of group and node. Since a present replica wins every tie and loses only to a
//! better spread or to a live node in its stead, the result is *stable*: a node that joins or
//! leaves moves only what it must. New replicas go to the nodes of a zone that have the fewest, and
//! among equals rendezvous hashing spreads the groups. Primaries are wished for in the same order,
//! by the groups that a node leads; [`should_hand_over`] says when a present primary gives way to a
//! node that leads fewer.
//!
//! How well a node is ([`Health`]) is the caller's judgement: a node that restarts is silent, not
//! dead, and declaring it dead moves its replicas.
//!
//! This crate knows nothing about how replicas are moved, and never looks at what a group contains.

use meridian_base::{GroupId, NodeId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// How well a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Health {
    /// It answers: it may get replicas, and lead.
    Live,
    /// It is about to be stopped, or does not answer and may be restarting: it keeps its replicas,
    /// gets no new ones but those of groups that begin ([`found`]), and is not wished for as a
    /// primary.
    Resting,
    /// It has been silent for too long, or is being decommissioned: its replicas go wherever there
    /// is a place for them, and stay where there is none.
    Leaving,
}

/// A node as placement sees it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Node {
    pub id: NodeId,
    pub region: String,
    /// Zones of two regions are different zones, whatever their names.
    pub zone: String,
    pub health: Health,
    pub load: Load,
}

/// What a node has to do, other groups than the one to be placed included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Load {
    /// Replicas on the node.
    pub replicas: u32,
    /// Groups that it leads, without the catalog's.
    pub leads: u32,
}

/// A primary hands a group over to an equally good node that leads at least this many fewer. With
/// 1, two nodes would hand a group back and forth.
const LEADS_APART: u32 = 2;

/// Whether a primary on a node that leads `mine` groups should hand one of them over to a node that
/// leads `theirs`.
pub fn should_hand_over(mine: u32, theirs: u32) -> bool {
    mine >= theirs.saturating_add(LEADS_APART)
}

/// What must survive (`ALTER DATABASE … SURVIVE … FAILURE`), or that data must stay at home
/// (`PLACEMENT RESTRICTED`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Survival {
    Zone,
    Region,
    /// Zone survival without non-voters outside the home region.
    Restricted,
}

impl Survival {
    /// What `SHOW SURVIVAL GOAL` calls it.
    pub fn as_str(self) -> &'static str {
        match self {
            Survival::Zone | Survival::Restricted => "zone",
            Survival::Region => "region",
        }
    }
}

/// The placement policy of a group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Policy {
    pub group: GroupId,
    pub home: String,
    /// The database's regions, the home region included.
    pub regions: BTreeSet<String>,
    pub survival: Survival,
    /// Where the primary goes if the home region is lost; with [`Survival::Region`] it has two
    /// voters too.
    pub secondary: Option<String>,
}

/// Where a group's replicas are.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Placement {
    /// Sorted. They vote on log entries.
    pub voters: Vec<NodeId>,
    /// Sorted. They receive the log asynchronously.
    pub non_voters: Vec<NodeId>,
    /// Live voters, those in the home region first, best first: leadership is transferred to the
    /// first that is up to date.
    pub primaries: Vec<NodeId>,
}

/// Voters of a group that survives the loss of one zone, or of one region.
const VOTERS_ZONE: usize = 3;
const VOTERS_REGION: usize = 5;
/// Voters that one region may hold of [`VOTERS_REGION`], so that losing it leaves a majority.
const VOTERS_PER_REGION: usize = 2;

/// Places a group's replicas, keeping what `current` has wherever that is as good.
pub fn place(nodes: &[Node], policy: &Policy, current: &Placement) -> Placement {
    let nodes = of_database(nodes, policy);
    let has_one = |n: &Node| current.voters.contains(&n.id) || current.non_voters.contains(&n.id);
    let candidates = nodes.filter(|n| n.health == Health::Live || has_one(n));
    pick(Picker::new(policy.group, candidates, current), policy)
}

/// The voters with which a new group begins. Where the live nodes are too few, resting ones are
/// among them: what the group acknowledges in its first moments has to survive, too.
pub fn found(nodes: &[Node], policy: &Policy) -> Placement {
    let candidates = of_database(nodes, policy).filter(|n| n.health != Health::Leaving);
    let none = Placement::default();
    pick(Picker { prefers_live: true, ..Picker::new(policy.group, candidates, &none) }, policy)
}

fn of_database<'a>(nodes: &'a [Node], policy: &'a Policy) -> impl Iterator<Item = &'a Node> {
    nodes.iter().filter(|n| policy.regions.contains(&n.region) || n.region == policy.home)
}

fn pick(mut picker: Picker, policy: &Policy) -> Placement {
    match policy.survival {
        Survival::Zone | Survival::Restricted => picker.pick(VOTERS_ZONE, |n, _| n.region == policy.home),
        Survival::Region => {
            // Any region can take the place of a node that leaves; it keeps its own only if none
            // does.
            let stays = |n: &Node| n.health != Health::Leaving;
            picker.pick(VOTERS_PER_REGION, |n, _| n.region == policy.home && stays(n));
            if let Some(secondary) = policy.secondary.as_ref().filter(|s| **s != policy.home) {
                let with_secondary = picker.voters.len() + VOTERS_PER_REGION;
                picker.pick(with_secondary, |n, _| n.region == *secondary && stays(n));
            }
            picker.pick(VOTERS_REGION, |n, in_region| in_region < VOTERS_PER_REGION && stays(n));
            picker.pick(VOTERS_REGION, |_, in_region| in_region < VOTERS_PER_REGION);
        }
    }
    let non_voters = match policy.survival {
        Survival::Restricted => Vec::new(),
        Survival::Zone | Survival::Region => picker.non_voters(),
    };
    picker.finish(non_voters, Some(&policy.home), policy.secondary.as_deref())
}

/// Places the catalog, which has no home: over zones in one region, over regions as soon as there
/// are three.
pub fn place_catalog(nodes: &[Node], current: &Placement) -> Placement {
    let has_one = |n: &Node| current.voters.contains(&n.id) || current.non_voters.contains(&n.id);
    let candidates = nodes.iter().filter(|n| n.health == Health::Live || has_one(n));
    let mut picker = Picker::new(GroupId::CATALOG, candidates, current);
    match picker.regions() {
        0 | 1 => picker.pick(VOTERS_ZONE, |_, _| true),
        2 => picker.pick(VOTERS_ZONE, |_, in_region| in_region < VOTERS_PER_REGION),
        _ => picker.pick(VOTERS_REGION, |_, in_region| in_region < VOTERS_PER_REGION),
    }
    let non_voters = picker.non_voters();
    picker.finish(non_voters, None, None)
}

/// Picks one replica after the other.
struct Picker<'a> {
    group: GroupId,
    /// Those that may have a replica. Sorted by id.
    candidates: BTreeMap<NodeId, &'a Node>,
    current: &'a Placement,
    /// A node that rests is taken only where there is no live one.
    prefers_live: bool,
    voters: Vec<&'a Node>,
}

impl<'a> Picker<'a> {
    fn new(group: GroupId, candidates: impl Iterator<Item = &'a Node>, current: &'a Placement) -> Picker<'a> {
        let candidates = candidates.map(|n| (n.id, n)).collect();
        Picker { group, candidates, current, prefers_live: false, voters: Vec::new() }
    }

    fn regions(&self) -> usize {
        self.candidates.values().map(|n| &n.region).collect::<BTreeSet<_>>().len()
    }
    fn voters_in(&self, region: &str) -> usize {
        self.voters.iter().filter(|v| v.region == region).count()
    }

    /// Picks voters until there are `count` or no candidate is left that `may` (told how many its
    /// region has) be one.
    fn pick(&mut self, count: usize, may: impl Fn(&Node, usize) -> bool) {
        while self.voters.len() < count {
            let free = self.candidates.values().filter(|n| !self.voters.iter().any(|v| v.id == n.id));
            let allowed = free.filter(|n| may(n, self.voters_in(&n.region)));
            let Some(best) = allowed.copied().min_by_key(|n| self.rank(n)) else { return };
            self.voters.push(best);
        }
    }

    /// Smaller is better. A non-voter that becomes a voter has the data already: better than a node
    /// that has nothing.
    fn rank(&self, n: &Node) -> (bool, usize, usize, u8, u32, u64) {
        let in_zone = self.voters.iter().filter(|v| v.region == n.region && v.zone == n.zone).count();
        let has = match n.id {
            id if self.current.voters.contains(&id) => 0,
            id if self.current.non_voters.contains(&id) => 1,
            _ => 2,
        };
        let is_second_choice = n.health == Health::Leaving || self.prefers_live && n.health == Health::Resting;
        (is_second_choice, self.voters_in(&n.region), in_zone, has, n.load.replicas, self.hash(n.id))
    }

    /// One replica in every region that has no voter.
    fn non_voters(&self) -> Vec<NodeId> {
        let mut best: BTreeMap<&str, &Node> = BTreeMap::new();
        let has_none = |n: &Node| !self.current.non_voters.contains(&n.id);
        let rank = |n: &Node| (n.health == Health::Leaving, has_none(n), n.load.replicas, self.hash(n.id));
        for n in self.candidates.values().filter(|n| self.voters_in(&n.region) == 0) {
            let place = best.entry(&n.region).or_insert(n);
            if rank(n) < rank(place) {
                *place = n;
            }
        }
        best.values().map(|n| n.id).collect()
    }

    fn finish(mut self, mut non_voters: Vec<NodeId>, home: Option<&str>, secondary: Option<&str>) -> Placement {
        if self.voters.len().is_multiple_of(2) {
            self.voters.pop();
        }
        let mut primaries: Vec<&Node> = self.voters.iter().copied().filter(|v| v.health == Health::Live).collect();
        let is_elsewhere = |n: &Node, region: Option<&str>| region.is_some_and(|region| n.region != region);
        primaries.sort_by_key(|n| (is_elsewhere(n, home), is_elsewhere(n, secondary), n.load.leads, self.hash(n.id)));
        let mut voters: Vec<NodeId> = self.voters.iter().map(|v| v.id).collect();
        voters.sort();
        non_voters.sort();
        Placement { voters, non_voters, primaries: primaries.into_iter().map(|n| n.id).collect() }
    }

    /// Rendezvous hashing: every group has its own order of the nodes.
    fn hash(&self, node: NodeId) -> u64 {
        mix(mix(u64::from(self.group.0)) ^ mix(u64::from(node.0)))
    }
}

/// The finalizer of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
/// generators).
fn mix(z: u64) -> u64 {
    let z = z.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
