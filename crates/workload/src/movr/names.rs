//! Names, streets and places, from a seed: the same seed gives the same people.

use rand::Rng;
use rand::rngs::SmallRng;

const FIRST: [&str; 24] = [
    "Ada", "Amara", "Arjun", "Chloe", "Daniel", "Elena", "Farid", "Grace", "Hiro", "Ines", "Jonas", "Keiko", "Lars", "Mei",
    "Nadia", "Omar", "Priya", "Quinn", "Rosa", "Samir", "Tove", "Uma", "Viktor", "Yuki",
];
const LAST: [&str; 20] = [
    "Abe", "Baker", "Costa", "Dubois", "Evans", "Fischer", "Garcia", "Haddad", "Ito", "Jensen", "Kim", "Lopez", "Moreau",
    "Novak", "Okafor", "Patel", "Rossi", "Sato", "Tanaka", "Weber",
];
const STREETS: [&str; 12] =
    ["Canal", "Church", "Garden", "Harbour", "High", "King", "Lake", "Market", "Mill", "Park", "River", "Station"];
const TYPES: [&str; 3] = ["bike", "scooter", "skateboard"];
/// Three cities for the regions one meets most; others get numbered districts.
const CITIES: [(&str, [&str; 3]); 7] = [
    ("us-east", ["new york", "boston", "washington dc"]),
    ("us-central", ["chicago", "kansas city", "omaha"]),
    ("us-west", ["seattle", "san francisco", "los angeles"]),
    ("europe", ["amsterdam", "paris", "rome"]),
    ("asia-northeast", ["tokyo", "osaka", "sapporo"]),
    ("asia", ["singapore", "mumbai", "hong kong"]),
    ("australia", ["sydney", "melbourne", "perth"]),
];

/// The cities of a region. No two regions share one: the region is part of the name unless the
/// plain one can be given out.
pub(super) fn cities(regions: &[String], region: &str) -> Vec<String> {
    let known = |r: &str| CITIES.iter().position(|(prefix, _)| r.starts_with(prefix));
    let Some(index) = known(region) else {
        return (1..=3).map(|n| format!("{region} district {n}")).collect();
    };
    let first = regions.iter().find(|r| known(r) == Some(index)).is_none_or(|r| r == region);
    let name = |city: &str| if first { city.to_string() } else { format!("{city} ({region})") };
    CITIES[index].1.iter().map(|city| name(city)).collect()
}

pub(super) fn person(rng: &mut SmallRng) -> String {
    format!("{} {}", pick(rng, &FIRST), pick(rng, &LAST))
}

pub(super) fn address(rng: &mut SmallRng) -> String {
    format!("{} {} Street", rng.random_range(1..200), pick(rng, &STREETS))
}

pub(super) fn credit_card(rng: &mut SmallRng) -> String {
    format!("{:010}", rng.random_range(0..10_000_000_000u64))
}

pub(super) fn vehicle_type(rng: &mut SmallRng) -> &'static str {
    pick(rng, &TYPES)
}

/// A random (version 4) UUID.
pub(super) fn uuid(rng: &mut SmallRng) -> String {
    let bits = (rng.random::<u128>() & !(0xF000 << 64 | 0xC000 << 48)) | 0x4000 << 64 | 0x8000 << 48;
    let hex = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

fn pick<'a>(rng: &mut SmallRng, from: &[&'a str]) -> &'a str {
    from[rng.random_range(0..from.len())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use std::collections::BTreeSet;

    #[test]
    fn regions_share_no_city() {
        let regions: Vec<String> =
            ["us-east1", "us-east4", "europe-west2", "asia-northeast1", "asia-south1", "here"].map(String::from).to_vec();
        let all: Vec<String> = regions.iter().flat_map(|r| cities(&regions, r)).collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 3 * regions.len(), "{all:?}");
        assert_eq!(cities(&regions, "us-east1")[0], "new york");
    }

    #[test]
    fn a_uuid_has_version_4_and_the_standard_variant() {
        let mut rng = SmallRng::seed_from_u64(1);
        for _ in 0..100 {
            let id = uuid(&mut rng);
            assert_eq!(id.len(), 36);
            assert_eq!(id.as_bytes()[14], b'4', "{id}");
            assert!(matches!(id.as_bytes()[19], b'8' | b'9' | b'a' | b'b'), "{id}");
        }
    }
}
