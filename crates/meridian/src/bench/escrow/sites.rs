//! The regions of Samya's evaluation, how far apart they are, and when their days begin.

/// The regions of §5.2, each with its offset from UTC in hours. The first one is primary.
const REGIONS: [(&str, i32); 5] =
    [("us-west1", -8), ("asia-east2", 8), ("europe-west2", 0), ("australia-southeast1", 10), ("southamerica-east1", -3)];

/// Table 5: round trips in milliseconds between two of [`REGIONS`], by their positions.
const ROUND_TRIPS: [(usize, usize, u32); 10] = [
    (0, 1, 131),
    (0, 2, 132),
    (0, 3, 161),
    (0, 4, 180),
    (1, 2, 262),
    (1, 3, 125),
    (1, 4, 302),
    (2, 3, 265),
    (2, 4, 218),
    (3, 4, 305),
];

/// Between two sites at the same place, in milliseconds.
const NEIGHBOURS: u32 = 1;

/// A site: a region of the cluster, with a node and clients of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Site {
    pub name: String,
    /// By how many hours its demand is ahead of that of UTC.
    pub shift: i32,
    /// Where it is: a position in [`REGIONS`].
    place: usize,
}

/// The five regions, and from the sixth site on further ones at the same places (§5.7), whose
/// demand is that of a day later.
pub(super) fn sites(count: usize) -> Vec<Site> {
    let site = |at: usize| {
        let (turn, place) = (at / REGIONS.len(), at % REGIONS.len());
        let (region, offset) = REGIONS[place];
        let name = if turn == 0 { region.to_string() } else { format!("{region}-{}", turn + 1) };
        Site { name, shift: offset + 24 * turn as i32, place }
    };
    (0..count).map(site).collect()
}

/// The round trips between all sites, as a cluster's shape wants them.
pub(super) fn round_trips(sites: &[Site]) -> Vec<String> {
    let mut all = Vec::new();
    for (at, a) in sites.iter().enumerate() {
        for b in &sites[at + 1..] {
            all.push(format!("{}-{}={}ms", a.name, b.name, millis(a.place, b.place)));
        }
    }
    all
}

fn millis(a: usize, b: usize) -> u32 {
    let (a, b) = (a.min(b), a.max(b));
    ROUND_TRIPS.iter().find(|(x, y, _)| (*x, *y) == (a, b)).map_or(NEIGHBOURS, |(_, _, millis)| *millis)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::Distances;
    use meridian_node::Place;
    use std::time::Duration;

    fn millis_between(count: usize, a: &str, b: &str) -> u128 {
        let sites = sites(count);
        let names: Vec<String> = sites.iter().map(|s| s.name.clone()).collect();
        let distances = Distances::new(&names, &round_trips(&sites), Duration::ZERO).expect("valid");
        let place = |region: &str| Place { region: region.into(), zone: "a".into() };
        distances.round_trip(&place(a), &place(b)).as_millis()
    }

    #[test]
    fn sites_are_as_far_apart_as_table_5_says() {
        assert_eq!(millis_between(5, "us-west1", "asia-east2"), 131);
        assert_eq!(millis_between(5, "southamerica-east1", "australia-southeast1"), 305);
        assert_eq!(ROUND_TRIPS.iter().map(|(_, _, millis)| millis).sum::<u32>(), 2_081, "the sum of the table");
    }

    #[test]
    fn further_sites_are_beside_the_first_ones_and_a_day_ahead() {
        assert_eq!(millis_between(12, "us-west1", "us-west1-2"), 1);
        assert_eq!(millis_between(12, "us-west1-3", "us-west1-2"), 1);
        assert_eq!(millis_between(12, "us-west1-2", "europe-west2-3"), 100, "the thirteenth site is not there");
        assert_eq!(millis_between(12, "us-west1-2", "asia-east2-2"), 131);
        assert_eq!(sites(7)[6], Site { name: "asia-east2-2".into(), shift: 32, place: 1 });
    }
}
