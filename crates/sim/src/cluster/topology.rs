//! Regions, zones, nodes, and the delays between them.

use rand::Rng;
use rand::rngs::SmallRng;
use std::time::Duration;

/// The regions that a cluster of so many regions has, in this order.
const REGIONS: [&str; 5] = ["us-east1", "europe-west2", "asia-northeast1", "us-west1", "australia-southeast1"];
/// Round trips between them, in milliseconds (Table 1 of the CockroachDB multi-region paper).
const ROUND_TRIPS_MS: [[u64; 5]; 5] =
    [[0, 87, 155, 63, 198], [87, 0, 222, 132, 274], [155, 222, 0, 90, 113], [63, 132, 90, 0, 156], [198, 274, 113, 156, 0]];

/// One node of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSpec {
    /// The machine's name, and the host part of its addresses.
    pub name: String,
    pub region: String,
    pub zone: String,
    /// The nodes that found the cluster together; any other one joins them.
    pub founders: Vec<String>,
}

/// A cluster's shape.
#[derive(Clone, Debug)]
pub struct Topology {
    pub regions: Vec<String>,
    /// Of every region.
    pub zones: Vec<usize>,
    pub nodes: Vec<NodeSpec>,
    /// How much longer than its usual delay a message may take.
    pub jitter: f64,
}

impl Topology {
    /// So many regions with so many zones each, one node per zone.
    pub fn new(regions: usize, zones: usize, jitter: f64) -> Topology {
        Topology::of(&vec![zones; regions], jitter)
    }

    /// A region for every number, with so many zones.
    pub fn of(zones: &[usize], jitter: f64) -> Topology {
        assert!((1..=REGIONS.len()).contains(&zones.len()) && zones.iter().all(|z| *z > 0));
        let regions: Vec<String> = REGIONS[..zones.len()].iter().map(|r| r.to_string()).collect();
        let of_region = |(region, zones): (_, usize)| (0..zones).map(move |zone| (region, zone));
        let places = regions.iter().zip(zones.iter().copied()).flat_map(of_region);
        let founders: Vec<String> = (1..=zones.iter().sum()).map(|n: usize| format!("n{n}")).collect();
        let nodes = places.enumerate().map(|(index, (region, zone))| NodeSpec {
            name: format!("n{}", index + 1),
            region: region.clone(),
            zone: format!("{region}-{}", (b'a' + zone as u8) as char),
            founders: founders.clone(),
        });
        Topology { nodes: nodes.collect(), regions, zones: zones.to_vec(), jitter }
    }

    /// The same with one zone in the last region, whose rows have one voter then.
    pub fn with_a_small_region(self) -> Topology {
        let mut zones = self.zones;
        *zones.last_mut().expect("a region") = 1;
        Topology::of(&zones, self.jitter)
    }

    /// The region of a node.
    pub fn region_of(&self, node: &str) -> String {
        self.nodes.iter().find(|n| n.name == node).expect("a node of the cluster").region.clone()
    }
    /// How many zones a region has.
    pub fn zones_in(&self, region: &str) -> usize {
        self.zones[self.regions.iter().position(|r| r == region).expect("a region of the cluster")]
    }
    /// How many the region of a node has.
    pub fn zones_beside(&self, node: &str) -> usize {
        self.zones_in(&self.region_of(node))
    }
    /// As in `3x1`, or `3+3+1` where regions differ.
    pub fn shape(&self) -> String {
        match self.zones.iter().all(|z| *z == self.zones[0]) {
            true => format!("{}x{}", self.regions.len(), self.zones[0]),
            false => self.zones.iter().map(usize::to_string).collect::<Vec<_>>().join("+"),
        }
    }

    /// A shape drawn from the seed: mostly one region of three zones, where elections happen,
    /// sometimes all nine nodes.
    pub fn draw(rng: &mut SmallRng) -> Topology {
        let (regions, zones) = match rng.random_range(0..20) {
            0..=1 => (1, 1),
            2..=12 => (1, 3),
            13..=15 => (2, 3),
            16..=17 => (3, 1),
            _ => (3, 3),
        };
        Topology::new(regions, zones, rng.random_range(0.0..2.0))
    }

    /// The names of the nodes of each region.
    pub fn nodes_by_region(&self) -> Vec<(String, Vec<String>)> {
        let of = |region: &String| self.nodes.iter().filter(|n| n.region == *region).map(|n| n.name.clone()).collect();
        self.regions.iter().map(|region| (region.clone(), of(region))).collect()
    }

    /// The usual one-way delay between two regions.
    pub fn delay(&self, a: &str, b: &str) -> Duration {
        let index = |region: &str| REGIONS.iter().position(|r| *r == region).expect("a region of the cluster");
        // One millisecond is the simulator's tick, and about what lies between two zones.
        Duration::from_millis((ROUND_TRIPS_MS[index(a)][index(b)] / 2).max(1))
    }
}
