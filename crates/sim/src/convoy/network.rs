//! Machines, distances and time.
//!
//! The regions and round trips are S-DUR's §5.1. Messages between two machines take half a round
//! trip and a little chance, and arrive in the order in which they were sent.

use super::Placement;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};

/// Simulated time in microseconds.
pub(super) type Micros = u64;

/// The two partitions; and a partition's machines, of which the first orders its entries and serves
/// its clients.
pub(super) const PARTITIONS: usize = 2;
pub(super) const REPLICAS: usize = 3;
/// Of them that make an entry durable.
const MAJORITY: usize = 2;

/// One way between two machines of a region, or a client and its machine.
const NEAR: Micros = 1_000;
/// Mean of what chance adds to every message.
const CHANCE: f64 = 300.0;
/// A machine writes an entry to its disk.
const SYNC: Micros = 2_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Region {
    Ireland,
    Virginia,
    Oregon,
}

/// One way between two regions.
fn one_way(a: Region, b: Region) -> Micros {
    use Region::{Ireland, Oregon, Virginia};
    match (a.min(b), a.max(b)) {
        (Virginia, Oregon) => 50_000,
        (Ireland, Virginia) => 45_000,
        (Ireland, Oregon) => 85_000,
        _ => NEAR,
    }
}

/// A machine: a partition's, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Machine {
    pub partition: usize,
    pub replica: usize,
}

impl Machine {
    /// The one that orders a partition's entries.
    pub fn first(partition: usize) -> Machine {
        Machine { partition, replica: 0 }
    }
}

/// Where a partition's machines are.
fn regions_of(placement: Placement, partition: usize) -> [Region; REPLICAS] {
    use Region::{Ireland, Oregon, Virginia};
    match (placement, partition) {
        (Placement::Zone, 0) => [Ireland, Ireland, Virginia],
        (Placement::Zone, _) => [Virginia, Virginia, Ireland],
        (Placement::Region, 0) => [Ireland, Virginia, Oregon],
        (Placement::Region, _) => [Virginia, Ireland, Oregon],
    }
}

/// An event in the queue; the earliest first, and of two at once the one that was scheduled first.
struct Scheduled<E> {
    at: Micros,
    number: u64,
    event: E,
}

impl<E> Ord for Scheduled<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}
impl<E> PartialOrd for Scheduled<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<E> PartialEq for Scheduled<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl<E> Eq for Scheduled<E> {}

/// The queue of events, and the distances.
pub(super) struct Network<E> {
    now: Micros,
    scheduled: u64,
    queue: BinaryHeap<Reverse<Scheduled<E>>>,
    regions: [[Region; REPLICAS]; PARTITIONS],
    /// When the last message of a link arrives.
    links: BTreeMap<(Machine, Machine), Micros>,
    rng: SmallRng,
}

impl<E> Network<E> {
    pub fn new(placement: Placement, seed: u64) -> Network<E> {
        Network {
            now: 0,
            scheduled: 0,
            queue: BinaryHeap::new(),
            regions: [regions_of(placement, 0), regions_of(placement, 1)],
            links: BTreeMap::new(),
            rng: SmallRng::seed_from_u64(seed),
        }
    }

    pub fn now(&self) -> Micros {
        self.now
    }

    /// The next event, and it is its time.
    pub fn next(&mut self) -> Option<E> {
        let Reverse(next) = self.queue.pop()?;
        self.now = next.at;
        Some(next.event)
    }

    pub fn at(&mut self, at: Micros, event: E) {
        self.scheduled += 1;
        self.queue.push(Reverse(Scheduled { at: at.max(self.now), number: self.scheduled, event }));
    }

    fn chance(&mut self) -> Micros {
        (-self.rng.random::<f64>().max(1e-9).ln() * CHANCE) as Micros
    }

    fn region(&self, machine: Machine) -> Region {
        self.regions[machine.partition][machine.replica]
    }

    /// What a message takes; nothing on one machine.
    fn delay(&mut self, from: Machine, to: Machine) -> Micros {
        if from == to {
            return 0;
        }
        one_way(self.region(from), self.region(to)) + self.chance()
    }

    /// The delay between two machines that everybody knows.
    pub fn usual_delay(&self, from: Machine, to: Machine) -> Micros {
        if from == to { 0 } else { one_way(self.region(from), self.region(to)) }
    }

    /// Sends a message.
    pub fn send(&mut self, from: Machine, to: Machine, event: E) {
        let arrives = self.now + self.delay(from, to);
        let last = self.links.entry((from, to)).or_default();
        *last = arrives.max(*last);
        let arrives = *last;
        self.at(arrives, event);
    }

    /// To or from a client beside its machine.
    pub fn send_to_client(&mut self, event: E) {
        let arrives = self.now + NEAR + self.chance();
        self.at(arrives, event);
    }

    /// The machine of a partition that clients of another one read at: in their region.
    pub fn replica_near(&self, client: usize, partition: usize) -> Machine {
        let home = self.region(Machine::first(client));
        let near = (0..REPLICAS).find(|r| self.regions[partition][*r] == home);
        Machine { partition, replica: near.expect("a replica in each of the two regions") }
    }
}

/// A partition's order of entries: one of its machines proposes, a majority of them writes it down.
#[derive(Default)]
pub(super) struct Log {
    written: [Micros; REPLICAS],
    heard: [[Micros; REPLICAS]; REPLICAS],
    delivered: [Micros; REPLICAS],
}

impl Log {
    /// Proposes an entry now; when each machine has heard of a majority that wrote it. In the order
    /// of proposals.
    pub fn append<E>(&mut self, partition: usize, network: &mut Network<E>) -> [Micros; REPLICAS] {
        let machine = |replica| Machine { partition, replica };
        for writer in 0..REPLICAS {
            let written = network.now + network.delay(machine(0), machine(writer)) + SYNC;
            self.written[writer] = self.written[writer].max(written);
            for reader in 0..REPLICAS {
                let heard = self.written[writer] + network.delay(machine(writer), machine(reader));
                self.heard[writer][reader] = self.heard[writer][reader].max(heard);
            }
        }
        for reader in 0..REPLICAS {
            let mut heard: Vec<Micros> = (0..REPLICAS).map(|writer| self.heard[writer][reader]).collect();
            heard.sort_unstable();
            self.delivered[reader] = self.delivered[reader].max(heard[MAJORITY - 1]);
        }
        self.delivered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_a_link_keep_their_order() {
        let mut network: Network<u32> = Network::new(Placement::Zone, 3);
        (0..200).for_each(|n| network.send(Machine::first(0), Machine::first(1), n));
        let arrived: Vec<u32> = std::iter::from_fn(|| network.next()).collect();
        assert_eq!(arrived, (0..200).collect::<Vec<u32>>());
        assert!((45_000..60_000).contains(&network.now()), "{}", network.now());
    }

    #[test]
    fn an_entry_takes_a_majority() {
        let ordered = |placement| {
            let mut network: Network<()> = Network::new(placement, 3);
            Log::default().append(0, &mut network)[0] / 1_000
        };
        // A sync and a round trip inside the region; to Virginia and back.
        assert!((4..8).contains(&ordered(Placement::Zone)), "{}", ordered(Placement::Zone));
        assert!((92..97).contains(&ordered(Placement::Region)), "{}", ordered(Placement::Region));
    }

    #[test]
    fn both_regions_have_a_replica_of_both_partitions() {
        for placement in [Placement::Zone, Placement::Region] {
            let network: Network<()> = Network::new(placement, 3);
            for (client, partition) in [(0, 1), (1, 0)] {
                let near = network.replica_near(client, partition);
                assert_eq!(network.region(near), network.region(Machine::first(client)));
            }
        }
    }
}
