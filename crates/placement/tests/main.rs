//! What every placement must satisfy, over random clusters, and the examples a newcomer looks for
//! first.

use meridian_base::{GroupId, NodeId};
use meridian_placement::{Health, Load, Node, Placement, Policy, Survival, found, place, place_catalog, should_hand_over};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn node(id: u32, region: &str, zone: &str) -> Node {
    Node { id: NodeId(id), region: region.into(), zone: zone.into(), health: Health::Live, load: Load::default() }
}

/// Three regions of three zones: nodes 1–3 in `us`, 4–6 in `eu`, 7–9 in `as`.
fn nine() -> Vec<Node> {
    let place = |i: u32| (["us", "eu", "as"][i as usize / 3], ["a", "b", "c"][i as usize % 3]);
    (0..9).map(|i| node(i + 1, place(i).0, place(i).1)).collect()
}

fn policy(home: &str, survival: Survival) -> Policy {
    let regions = ["us", "eu", "as"].map(String::from).into();
    Policy { group: GroupId(100), home: home.into(), regions, survival, secondary: None }
}

fn health(live: bool) -> Health {
    if live { Health::Live } else { Health::Leaving }
}

fn is_live(node: &Node) -> bool {
    node.health == Health::Live
}

fn region_of(nodes: &[Node], id: NodeId) -> &str {
    &nodes.iter().find(|n| n.id == id).expect("a known node").region
}

fn per_region<'a>(nodes: &'a [Node], ids: &[NodeId]) -> BTreeMap<&'a str, usize> {
    let mut count = BTreeMap::new();
    for id in ids {
        *count.entry(region_of(nodes, *id)).or_default() += 1;
    }
    count
}

#[test]
fn zone_survival_votes_at_home_and_listens_everywhere() {
    let nodes = nine();
    let p = place(&nodes, &policy("eu", Survival::Zone), &Placement::default());
    assert_eq!(p.voters, [4, 5, 6].map(NodeId));
    assert_eq!(per_region(&nodes, &p.non_voters), BTreeMap::from([("as", 1), ("us", 1)]));
    assert_eq!(p.primaries.iter().collect::<BTreeSet<_>>(), p.voters.iter().collect());
}

#[test]
fn restricted_data_stays_at_home() {
    let p = place(&nine(), &policy("eu", Survival::Restricted), &Placement::default());
    assert_eq!((p.voters, p.non_voters), ([4, 5, 6].map(NodeId).to_vec(), vec![]));
}

#[test]
fn region_survival_votes_in_every_region_and_is_led_from_home() {
    let nodes = nine();
    let p = place(&nodes, &policy("as", Survival::Region), &Placement::default());
    let count = per_region(&nodes, &p.voters);
    assert_eq!((p.voters.len(), count["as"], count.values().max()), (5, 2, Some(&2)));
    assert_eq!(p.non_voters, []);
    assert!(p.primaries[..2].iter().all(|id| region_of(&nodes, *id) == "as"));
}

#[test]
fn the_catalog_spreads_as_regions_come() {
    let all = nine();
    let mut p = Placement::default();
    for (nodes, voters, most) in [(1, 1, 1), (2, 1, 1), (3, 3, 3), (6, 3, 2), (9, 5, 2)] {
        let nodes = &all[..nodes];
        p = place_catalog(nodes, &p);
        let count = per_region(nodes, &p.voters);
        assert_eq!((p.voters.len(), count.values().max()), (voters, Some(&most)), "{nodes:?}");
    }
}

#[test]
fn a_dead_voter_is_replaced_where_that_is_possible_and_kept_where_not() {
    let mut nodes = nine();
    let before = place(&nodes, &policy("eu", Survival::Zone), &Placement::default());
    nodes[3].health = Health::Leaving;
    let alone = place(&nodes, &policy("eu", Survival::Zone), &before);
    assert_eq!(alone.voters, before.voters);
    assert!(!alone.primaries.contains(&NodeId(4)));
    nodes.push(node(10, "eu", "b"));
    let helped = place(&nodes, &policy("eu", Survival::Zone), &alone);
    assert_eq!(helped.voters, [5, 6, 10].map(NodeId));
    nodes[3].health = Health::Live;
    let back = place(&nodes, &policy("eu", Survival::Zone), &helped);
    assert_eq!(back.voters.len(), 3);
    assert!(back.voters.contains(&NodeId(4)), "a third zone is better than a second voter in one");
}

#[test]
fn a_group_that_survives_a_region_leaves_a_node_for_any_region() {
    // One node in two of the regions, two in the third: whoever leaves, live nodes are a majority
    // by themselves.
    let all = [(1, "us", "a"), (2, "us", "b"), (3, "eu", "a"), (4, "eu", "b"), (5, "as", "a"), (6, "as", "b")];
    let nodes: Vec<Node> = all.into_iter().map(|(id, region, zone)| node(id, region, zone)).collect();
    let region = policy("us", Survival::Region);
    let before = place(&nodes, &region, &Placement::default());
    for leaves in before.voters.clone() {
        let mut now = nodes.clone();
        now.iter_mut().filter(|n| n.id == leaves).for_each(|n| n.health = Health::Leaving);
        let after = place(&now, &region, &before);
        assert!(!after.voters.contains(&leaves) && after.voters.len() == 5, "{leaves}: {after:?}");
    }
    // With nobody to take its place, it stays.
    let three = [node(1, "us", "a"), node(2, "eu", "a"), node(3, "as", "a")];
    let before = place(&three, &region, &Placement::default());
    let mut now = three.to_vec();
    now[0].health = Health::Leaving;
    assert_eq!(place(&now, &region, &before).voters, before.voters);
}

#[test]
fn a_node_that_rests_keeps_its_replicas_gets_none_and_does_not_lead() {
    let mut nodes = nine();
    nodes.push(node(10, "eu", "b"));
    let zone = policy("eu", Survival::Zone);
    let before = place(&nodes, &zone, &Placement::default());
    let rests = before.voters[0];
    nodes.iter_mut().filter(|n| n.id == rests).for_each(|n| n.health = Health::Resting);
    let after = place(&nodes, &zone, &before);
    assert_eq!(after.voters, before.voters);
    assert!(!after.primaries.contains(&rests) && after.primaries.len() == 2);
    let fresh = place(&nodes, &zone, &Placement::default());
    assert!(!fresh.voters.contains(&rests));
}

/// With one voter, its disk would be all that holds what is acknowledged.
#[test]
fn a_group_that_begins_has_all_its_voters_while_nodes_rest() {
    let mut nodes = nine();
    let zone = policy("eu", Survival::Zone);
    nodes[3].health = Health::Resting;
    assert_eq!(place(&nodes, &zone, &Placement::default()).voters.len(), 1, "no new replica goes to a node that rests");
    let p = found(&nodes, &zone);
    assert_eq!(p.voters, [4, 5, 6].map(NodeId));
    assert_eq!(p.primaries.iter().collect::<BTreeSet<_>>(), [NodeId(5), NodeId(6)].iter().collect());
    assert_eq!(place(&nodes, &zone, &p).voters, p.voters, "and it stays so");
    // A live node in the zone of another voter is better than one that rests in a zone of its own.
    nodes.push(node(10, "eu", "b"));
    assert_eq!(found(&nodes, &zone).voters, [5, 6, 10].map(NodeId));
    nodes.pop();
    // Those that leave are no choice.
    nodes[3].health = Health::Leaving;
    assert_eq!(found(&nodes, &zone).voters.len(), 1);
    nodes[4].health = Health::Resting;
    nodes[5].health = Health::Resting;
    assert_eq!(found(&nodes, &zone).primaries, []);
    assert_eq!(found(&nine(), &zone), place(&nine(), &zone, &Placement::default()));
}

#[test]
fn the_secondary_region_has_two_voters_and_leads_after_home() {
    let nodes = nine();
    for secondary in ["us", "eu"] {
        let policy = Policy { secondary: Some(secondary.into()), ..policy("as", Survival::Region) };
        let p = place(&nodes, &policy, &Placement::default());
        let count = per_region(&nodes, &p.voters);
        assert_eq!((p.voters.len(), count["as"], count[secondary]), (5, 2, 2));
        let regions: Vec<&str> = p.primaries.iter().map(|id| region_of(&nodes, *id)).collect();
        assert_eq!(&regions[..4], ["as", "as", secondary, secondary]);
    }
}

/// Six nodes in three zones of one region.
fn six() -> Vec<Node> {
    (0..6).map(|i| node(i + 1, "us", ["a", "b", "c"][i as usize % 3])).collect()
}

/// Adds to the load of the nodes what the group gives them to do. Returns the node that leads it.
fn add_load(nodes: &mut [Node], placement: &Placement) -> NodeId {
    let leads = placement.primaries[0];
    for n in nodes.iter_mut() {
        n.load.replicas += u32::from(placement.voters.contains(&n.id));
        n.load.leads += u32::from(n.id == leads);
    }
    leads
}

#[test]
fn five_databases_use_six_nodes_evenly() {
    let mut nodes = six();
    let mut leaders = Vec::new();
    for group in 0..5 {
        let policy = Policy { group: GroupId(100 + group), ..policy("us", Survival::Zone) };
        let placement = place(&nodes, &policy, &Placement::default());
        leaders.push(add_load(&mut nodes, &placement));
    }
    let replicas: Vec<u32> = nodes.iter().map(|n| n.load.replicas).collect();
    assert_eq!((replicas.iter().min(), replicas.iter().max(), replicas.iter().sum()), (Some(&2), Some(&3), 15));
    let distinct: BTreeSet<_> = leaders.iter().collect();
    assert_eq!(distinct.len(), 5, "every node leads one at most: {leaders:?}");
}

#[test]
fn nodes_without_a_load_are_used_by_hash() {
    let nodes = six();
    let mut used = BTreeMap::<NodeId, u32>::new();
    for group in 0..100 {
        let policy = Policy { group: GroupId(100 + group), ..policy("us", Survival::Zone) };
        let placement = place(&nodes, &policy, &Placement::default());
        placement.voters.iter().for_each(|id| *used.entry(*id).or_default() += 1);
    }
    assert!(used.len() == 6 && used.values().all(|n| (30..=70).contains(n)), "{used:?}");
}

#[test]
fn a_load_that_changes_moves_no_replica() {
    let mut nodes = six();
    let zone = policy("us", Survival::Zone);
    let before = place(&nodes, &zone, &Placement::default());
    nodes.iter_mut().filter(|n| before.voters.contains(&n.id)).for_each(|n| n.load = Load { replicas: 50, leads: 20 });
    assert_eq!(place(&nodes, &zone, &before).voters, before.voters);
}

#[test]
fn nodes_hand_groups_over_until_they_lead_as_many_as_the_others() {
    // Every node knows the others' numbers as of the round before, and hands over one group in a
    // round.
    for mut leads in [vec![9, 0, 0], vec![4, 4, 1], vec![1, 0, 0], vec![5, 5, 0, 0, 0]] {
        let total: u32 = leads.iter().sum();
        for round in 0.. {
            let known = leads.clone();
            let mut is_over = true;
            for me in 0..known.len() {
                let least = (0..known.len()).min_by_key(|n| known[*n]).expect("a node");
                if should_hand_over(known[me], known[least]) {
                    (leads[me], leads[least], is_over) = (leads[me] - 1, leads[least] + 1, false);
                }
            }
            if is_over {
                break;
            }
            assert!(round < 20, "no end: {leads:?}");
        }
        assert_eq!(leads.iter().sum::<u32>(), total);
        assert!(leads.iter().max().expect("one") - leads.iter().min().expect("one") <= 1, "{leads:?}");
    }
}

prop_compose! {
    fn cluster()(
        spec in prop::collection::vec((0..4usize, 0..4usize, prop::bool::weighted(0.85), 0..5u32), 1..16)
    ) -> Vec<Node> {
        spec.into_iter().zip(1..).map(|((region, zone, live, load), id)| {
            let load = Load { replicas: load, leads: load / 2 };
            Node { health: health(live), load, ..node(id, ["us", "eu", "as", "af"][region], ["a", "b", "c", "d"][zone]) }
        }).collect()
    }
}
fn survival() -> impl Strategy<Value = Survival> {
    prop_oneof![Just(Survival::Zone), Just(Survival::Region), Just(Survival::Restricted)]
}

fn check(nodes: &[Node], policy: Option<&Policy>, current: &Placement, p: &Placement) -> Result<(), TestCaseError> {
    let had: BTreeSet<_> = current.voters.iter().chain(&current.non_voters).collect();
    let by_id: BTreeMap<_, _> = nodes.iter().map(|n| (n.id, n)).collect();
    let all: Vec<_> = p.voters.iter().chain(&p.non_voters).collect();
    prop_assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "one replica per node");
    prop_assert!(p.voters.is_sorted() && p.non_voters.is_sorted());
    prop_assert!(p.voters.is_empty() || p.voters.len() % 2 == 1);
    prop_assert!(all.iter().all(|id| is_live(by_id[id]) || had.contains(id)), "a dead node got a replica");
    let live: BTreeSet<_> = p.voters.iter().filter(|id| is_live(by_id[id])).collect();
    prop_assert_eq!(p.primaries.iter().collect::<BTreeSet<_>>(), live);
    let regional = policy.is_none_or(|p| p.survival == Survival::Region);
    let regions: BTreeSet<_> = nodes.iter().filter(|n| is_live(n)).map(|n| &n.region).collect();
    let most = per_region(nodes, &p.voters).values().copied().max().unwrap_or(0);
    if regional && (policy.is_some() || regions.len() >= 2) {
        prop_assert!(most <= 2, "{} voters in a region", most);
    }
    let Some(policy) = policy else { return Ok(()) };
    prop_assert!(all.iter().all(|id| policy.regions.contains(&by_id[id].region)));
    if policy.survival != Survival::Region {
        prop_assert!(p.voters.iter().all(|id| by_id[id].region == policy.home));
        let at_home: Vec<_> = nodes.iter().filter(|n| n.region == policy.home && is_live(n)).collect();
        let zones: BTreeSet<_> = at_home.iter().map(|n| &n.zone).collect();
        let used: BTreeSet<_> = p.voters.iter().filter(|id| is_live(by_id[id])).map(|id| &by_id[id].zone).collect();
        let (live_voters, spread) = (live_count(p, &by_id), used.len());
        prop_assert_eq!(spread, zones.len().min(live_voters), "live voters are in as many zones as there are");
        prop_assert!(live_voters >= at_home.len().min(3).saturating_sub(usize::from(at_home.len() == 2)));
    }
    let covered: BTreeSet<_> = all.iter().map(|id| &by_id[id].region).collect();
    let reachable = nodes.iter().filter(|n| is_live(n) && policy.regions.contains(&n.region)).map(|n| &n.region);
    if policy.survival == Survival::Restricted {
        prop_assert!(p.non_voters.is_empty());
    } else {
        let missing: Vec<_> = reachable.filter(|r| !covered.contains(r) && **r != policy.home).collect();
        prop_assert!(missing.len() <= 1, "regions without a replica: {:?}", missing);
    }
    Ok(())
}

fn live_count(p: &Placement, by_id: &BTreeMap<NodeId, &Node>) -> usize {
    p.voters.iter().filter(|id| is_live(by_id[id])).count()
}

fn added(before: &Placement, after: &Placement) -> usize {
    after.voters.iter().filter(|id| !before.voters.contains(id)).count()
}

proptest! {
    #[test]
    fn every_placement_keeps_its_policy(nodes in cluster(), survival in survival(), alive: u16) {
        let policy = Policy { regions: ["us", "eu", "as", "af"].map(String::from).into(), ..policy("us", survival) };
        let empty = Placement::default();
        let first = place(&nodes, &policy, &empty);
        check(&nodes, Some(&policy), &empty, &first)?;
        let catalog = place_catalog(&nodes, &empty);
        check(&nodes, None, &empty, &catalog)?;
        prop_assert_eq!(&place(&nodes, &policy, &first), &first, "placing again moves nothing");
        prop_assert_eq!(&place_catalog(&nodes, &catalog), &catalog);
        // Some nodes die, some come back.
        let mut later = nodes.clone();
        for (i, n) in later.iter_mut().enumerate() { n.health = health(alive >> i & 1 == 1); }
        check(&later, Some(&policy), &first, &place(&later, &policy, &first))?;
        check(&later, None, &catalog, &place_catalog(&later, &catalog))?;
    }

    #[test]
    fn the_order_of_the_nodes_does_not_matter(nodes in cluster(), survival in survival()) {
        let policy = policy("us", survival);
        let reversed: Vec<_> = nodes.iter().rev().cloned().collect();
        let empty = Placement::default();
        prop_assert_eq!(place(&nodes, &policy, &empty), place(&reversed, &policy, &empty));
    }

    #[test]
    fn one_node_that_joins_or_leaves_moves_at_most_one_voter_per_region_it_shifts(nodes in cluster(), leaves: prop::sample::Index) {
        let nodes: Vec<_> = nodes.into_iter().map(|n| Node { health: Health::Live, ..n }).collect();
        let mut fewer = nodes.clone();
        fewer.remove(leaves.index(nodes.len()));
        let zone = policy("us", Survival::Zone);
        let with_all = place(&nodes, &zone, &Placement::default());
        let without = place(&fewer, &zone, &with_all);
        prop_assert!(added(&with_all, &without) <= 1);
        let again = place(&nodes, &zone, &without);
        // One voter becomes three when the third node joins.
        let grown = again.voters.len() - without.voters.len().min(again.voters.len());
        prop_assert!(added(&without, &again) <= grown.max(1));
    }
}
