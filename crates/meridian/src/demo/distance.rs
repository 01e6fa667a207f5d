//! How far apart regions are: round trips, as data and from the command line.

use meridian_node::{Between, Links, Place};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Regions and round trips in milliseconds of Table 1 of «Enabling the Next Generation of
/// Multi-Region Applications with CockroachDB» (SIGMOD 2022).
const MEASURED: [(&str, &str, u64); 10] = [
    ("us-east1", "us-west1", 63),
    ("us-east1", "europe-west2", 87),
    ("us-east1", "asia-northeast1", 155),
    ("us-east1", "australia-southeast1", 198),
    ("us-west1", "europe-west2", 132),
    ("us-west1", "asia-northeast1", 90),
    ("us-west1", "australia-southeast1", 156),
    ("europe-west2", "asia-northeast1", 222),
    ("europe-west2", "australia-southeast1", 274),
    ("asia-northeast1", "australia-southeast1", 113),
];

/// The regions of §7.2 of the same paper.
pub const REGIONS_DEFAULT: &str = "us-east1,europe-west2,asia-northeast1";

/// Between regions that neither the table nor the command line knows.
const ROUND_TRIP_DEFAULT: Duration = Duration::from_millis(100);

/// A vote must be back before an election's time is over (half a second), and while a group moves,
/// its voters are in two regions.
const ROUND_TRIP_MAX: Duration = Duration::from_millis(400);
/// Heartbeats between the voters of a region follow each other in 100 ms.
const ZONE_ROUND_TRIP_MAX: Duration = Duration::from_millis(50);

fn at_most(max: Duration, time: Duration, what: &str) -> Result<Duration, String> {
    if time > max {
        return Err(format!(
            "the round trip {what} is at most {} ms: elections could not be held over longer ones",
            max.as_millis()
        ));
    }
    Ok(time)
}

/// Round trips between the regions of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distances {
    /// By the two names in order.
    between: BTreeMap<(String, String), Duration>,
    zones: Duration,
}

fn pair(a: &str, b: &str) -> (String, String) {
    if a <= b { (a.to_string(), b.to_string()) } else { (b.to_string(), a.to_string()) }
}

impl Distances {
    /// Between `regions`, as measured, unless `changes` (`a-b=120ms,…`) say otherwise; `zones` is
    /// the round trip between two zones of a region.
    pub fn new(regions: &[String], changes: &[String], zones: Duration) -> Result<Distances, String> {
        let mut between: BTreeMap<_, _> =
            MEASURED.iter().map(|(a, b, millis)| (pair(a, b), Duration::from_millis(*millis))).collect();
        for change in changes {
            let wrong =
                || format!("{change:?} is not a round trip between two of the regions, as in us-east1-europe-west2=120ms");
            let (names, time) = change.split_once('=').ok_or_else(wrong)?;
            // Names have dashes themselves.
            let ends = names.match_indices('-').map(|(at, _)| (&names[..at], &names[at + 1..]));
            let known = |name: &str| regions.iter().any(|r| r == name);
            let (a, b) = ends.into_iter().find(|(a, b)| known(a) && known(b) && a != b).ok_or_else(wrong)?;
            let round_trip = at_most(ROUND_TRIP_MAX, duration(time)?, &format!("between {a} and {b}"))?;
            between.insert(pair(a, b), round_trip);
        }
        let zones = at_most(ZONE_ROUND_TRIP_MAX, zones, "between two zones")?;
        Ok(Distances { between, zones })
    }

    /// The round trip between two regions, or two zones of one.
    pub fn round_trip(&self, from: &Place, to: &Place) -> Duration {
        if from.region == to.region {
            return if from.zone == to.zone { Duration::ZERO } else { self.zones };
        }
        self.between.get(&pair(&from.region, &to.region)).copied().unwrap_or(ROUND_TRIP_DEFAULT)
    }

    /// What nodes delay their messages by: half the round trip each way.
    pub fn links(&self) -> Links {
        self.links_between(Arc::default())
    }

    /// The same, and nothing passes between regions of different sides.
    pub fn links_between(&self, sides: Arc<Sides>) -> Links {
        Arc::new(Ways { distances: self.clone(), sides })
    }

    /// The round trips between `regions`, as a small table.
    pub fn table(&self, regions: &[String]) -> String {
        let place = |region: &String| Place { region: region.clone(), zone: String::new() };
        let width = regions.iter().map(String::len).max().unwrap_or(0);
        let mut out = String::new();
        for (n, a) in regions.iter().enumerate() {
            for b in &regions[n + 1..] {
                let millis = self.round_trip(&place(a), &place(b)).as_secs_f64() * 1000.0;
                out += &format!("  {a:width$}  {b:width$}  {millis:>6.1} ms\n");
            }
        }
        out
    }
}

/// On which side of a partition each region is; where nothing is said, on side 0.
#[derive(Default)]
pub struct Sides(RwLock<BTreeMap<String, usize>>);

impl Sides {
    /// From now on.
    pub fn set(&self, sides: BTreeMap<String, usize>) {
        *self.0.write() = sides;
    }

    fn of(&self, region: &str) -> usize {
        self.0.read().get(region).copied().unwrap_or(0)
    }
}

struct Ways {
    distances: Distances,
    sides: Arc<Sides>,
}

impl Between for Ways {
    fn delay(&self, from: &Place, to: &Place) -> Duration {
        self.distances.round_trip(from, to) / 2
    }
    fn is_cut(&self, from: &Place, to: &Place) -> bool {
        self.sides.of(&from.region) != self.sides.of(&to.region)
    }
}

/// `500us`, `120ms`, `30s`, `5m`, or seconds without a unit.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a time, as in 120ms, 30s or 5m");
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let number: f64 = number.trim().parse().map_err(|_| wrong())?;
    let seconds = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" | "" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regions() -> Vec<String> {
        REGIONS_DEFAULT.split(',').map(String::from).collect()
    }
    fn millis(distances: &Distances, a: &str, b: &str) -> u128 {
        let place = |text: &str| {
            let (region, zone) = text.split_once('/').unwrap_or((text, "a"));
            Place { region: region.into(), zone: zone.into() }
        };
        let there = distances.round_trip(&place(a), &place(b));
        assert_eq!(there, distances.round_trip(&place(b), &place(a)));
        there.as_millis()
    }

    #[test]
    fn the_paper_and_the_command_line_say_how_far() {
        let changes = ["us-east1-europe-west2=120ms".to_string(), "asia-northeast1-us-east1=0.2s".to_string()];
        let distances = Distances::new(&regions(), &changes, Duration::from_millis(1)).expect("valid");
        assert_eq!(millis(&distances, "europe-west2", "us-east1"), 120);
        assert_eq!(millis(&distances, "us-east1", "asia-northeast1"), 200);
        assert_eq!(millis(&distances, "europe-west2", "asia-northeast1"), 222);
        assert_eq!(millis(&distances, "mars", "us-east1"), 100);
        assert_eq!(millis(&distances, "us-east1/a", "us-east1/b"), 1);
        assert_eq!(millis(&distances, "us-east1/a", "us-east1/a"), 0);
    }

    #[test]
    fn a_link_takes_half_the_round_trip() {
        let links = Distances::new(&regions(), &[], Duration::from_millis(1)).expect("valid").links();
        let place = |region: &str, zone: &str| Place { region: region.into(), zone: zone.into() };
        assert_eq!(links.delay(&place("us-east1", "a"), &place("asia-northeast1", "b")), Duration::from_micros(77_500));
        assert_eq!(links.delay(&place("us-east1", "a"), &place("us-east1", "b")), Duration::from_micros(500));
    }

    #[test]
    fn regions_of_different_sides_are_cut_off_until_they_are_not() {
        let sides: Arc<Sides> = Arc::default();
        let distances = Distances::new(&regions(), &[], Duration::from_millis(1)).expect("valid");
        let links = distances.links_between(sides.clone());
        let place = |region: &str| Place { region: region.into(), zone: "a".into() };
        let is_cut = |a: &str, b: &str| links.is_cut(&place(a), &place(b));
        assert!(!is_cut("us-east1", "europe-west2"));
        sides.set(BTreeMap::from([("europe-west2".to_string(), 1)]));
        assert!(is_cut("us-east1", "europe-west2") && is_cut("europe-west2", "us-east1"));
        assert!(!is_cut("us-east1", "asia-northeast1") && !is_cut("europe-west2", "europe-west2"));
        sides.set(BTreeMap::new());
        assert!(!is_cut("us-east1", "europe-west2"));
    }

    #[test]
    fn every_pair_of_the_paper_is_there_once() {
        let pairs: std::collections::BTreeSet<_> = MEASURED.iter().map(|(a, b, _)| pair(a, b)).collect();
        let names: std::collections::BTreeSet<_> = MEASURED.iter().flat_map(|(a, b, _)| [a, b]).collect();
        assert_eq!((pairs.len(), names.len()), (10, 5));
    }

    #[test]
    fn what_is_no_round_trip_is_refused() {
        for wrong in
            ["us-east1-europe-west2", "us-east1=5ms", "us-east1-us-east1=5ms", "us-east1-mars=5ms", "us-east1-europe-west2=5x"]
        {
            assert!(Distances::new(&regions(), &[wrong.to_string()], Duration::ZERO).is_err(), "{wrong}");
        }
        let far = ["us-east1-europe-west2=401ms".to_string()];
        assert!(Distances::new(&regions(), &far, Duration::ZERO).is_err_and(|e| e.contains("at most 400 ms")));
        assert!(Distances::new(&regions(), &[], Duration::from_millis(51)).is_err_and(|e| e.contains("at most 50 ms")));
        assert!(["", "ms", "-5s", "1e999s", "5 parsec"].iter().all(|t| duration(t).is_err()));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("500us"), Ok(Duration::from_micros(500)));
    }
}
