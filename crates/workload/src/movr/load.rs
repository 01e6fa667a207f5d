//! The rows to begin with, in INSERTs of many rows.
//!
//! The rows follow from the seed, and an INSERT whose rows are there already counts as done, so a
//! load that was interrupted can be run again.

use super::{MovrConfig, names};
use crate::client::Value;
use crate::run::{Context, Progress};
use crate::schema;
use meridian_base::Result;
use rand::Rng;
use rand::rngs::SmallRng;
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows per INSERT: large enough that a round trip does not show, small enough for a moving
/// progress bar.
const BATCH: usize = 200;

/// One INSERT's target and the text of its rows.
struct Table {
    name: &'static str,
    columns: &'static str,
    rows: Vec<String>,
}

/// Loads all regions at once, each one's tables through its own node.
pub(super) async fn load(context: &Context, config: &MovrConfig, progress: &(dyn Fn(Progress) + Send + Sync)) -> Result<()> {
    let regions = context.connector.regions();
    let loads: Vec<(&String, Vec<Table>)> = regions
        .iter()
        .enumerate()
        .map(|(index, region)| {
            let mut rng = context.rng(0x10AD + index as u64);
            let mut tables = generate(&names::cities(&regions, region), config, &mut rng);
            // Everybody's, so they are loaded once.
            tables.retain(|t| index == 0 || t.name != "promo_codes");
            (region, tables)
        })
        .collect();
    let rows_total = loads.iter().flat_map(|(_, tables)| tables).map(|t| t.rows.len() as u64).sum();
    let rows_done = AtomicU64::new(0);
    let each = loads.into_iter().map(|(region, tables)| {
        let rows_done = &rows_done;
        async move {
            let mut session = context.session(region, super::DATABASE);
            for table in tables {
                for batch in table.rows.chunks(BATCH) {
                    let insert = format!("INSERT INTO {} ({}) VALUES {}", table.name, table.columns, batch.join(", "));
                    schema::run(&mut session, &insert).await?;
                    let rows_done = rows_done.fetch_add(batch.len() as u64, Ordering::Relaxed) + batch.len() as u64;
                    progress(Progress { rows_done, rows_total });
                }
            }
            Ok(())
        }
    });
    futures::future::try_join_all(each).await.map(drop)
}

/// All rows of one region: parents before children.
fn generate(cities: &[String], config: &MovrConfig, rng: &mut SmallRng) -> Vec<Table> {
    let city = |n: u32| &cities[n as usize % cities.len()];
    let users: Vec<(&String, String)> = (0..config.users_per_region).map(|n| (city(n), names::uuid(rng))).collect();
    let vehicles: Vec<(&String, String)> = (0..config.vehicles_per_region).map(|n| (city(n), names::uuid(rng))).collect();
    let neighbour = |of: &str, rng: &mut SmallRng| {
        let same: Vec<&String> = users.iter().filter(|(c, _)| *c == of).map(|(_, id)| id).collect();
        // With fewer users than cities a city may have none; its rows then do without.
        (!same.is_empty()).then(|| same[rng.random_range(0..same.len())].clone())
    };

    let user_rows = users.iter().map(|(city, id)| {
        let (name, address, card) = (names::person(rng), names::address(rng), names::credit_card(rng));
        row(&[city.as_str().into(), id.as_str().into(), name.into(), address.into(), card.into()])
    });
    let user_rows: Vec<String> = user_rows.collect();

    let mut vehicle_rows = Vec::new();
    let mut in_service: Vec<(&String, &String)> = Vec::new();
    for (city, id) in &vehicles {
        let Some(owner) = neighbour(city, rng) else { continue };
        let kind = names::vehicle_type(rng);
        let ext = format!("{{\"color\": \"{}\"}}", ["red", "green", "blue", "black"][rng.random_range(0..4)]);
        in_service.push((city, id));
        let place = names::address(rng);
        let values: [Value; 7] =
            [city.as_str().into(), id.as_str().into(), kind.into(), owner.into(), "available".into(), place.into(), ext.into()];
        vehicle_rows.push(row(&values));
    }

    let mut ride_rows = Vec::new();
    for n in 0..config.rides_per_region as usize {
        let Some((city, vehicle)) = in_service.get(n % in_service.len().max(1)) else { break };
        let Some(rider) = neighbour(city, rng) else { continue };
        let (day, hour, minute) = (rng.random_range(1..=28), rng.random_range(0..23), rng.random_range(0..60));
        let revenue = f64::from(rng.random_range(100..5_000)) / 100.0;
        let values: [Value; 8] = [
            city.as_str().into(),
            names::uuid(rng).into(),
            rider.into(),
            vehicle.as_str().into(),
            names::address(rng).into(),
            names::address(rng).into(),
            format!("2026-01-{day:02} {hour:02}:{minute:02}:00").into(),
            format!("2026-01-{day:02} {:02}:{minute:02}:30", hour + 1).into(),
        ];
        let mut text = row(&values);
        text.pop();
        ride_rows.push(format!("{text}, {revenue:.2})"));
    }

    let promo_rows = (0..config.promo_codes_per_region).map(|n| {
        let (percent, days) = (rng.random_range(1..=9) * 5, rng.random_range(10..=28));
        let values: [Value; 4] = [
            promo_code(n).into(),
            format!("{percent} % off").into(),
            format!("2036-01-{days} 00:00:00").into(),
            format!("{{\"type\": \"percent_discount\", \"value\": \"{percent}%\"}}").into(),
        ];
        row(&values)
    });
    vec![
        Table { name: "promo_codes", columns: "code, description, expiration_time, rules", rows: promo_rows.collect() },
        Table { name: "users", columns: "city, id, name, address, credit_card", rows: user_rows },
        Table { name: "vehicles", columns: "city, id, type, owner_id, status, current_location, ext", rows: vehicle_rows },
        Table {
            name: "rides",
            columns: "city, id, rider_id, vehicle_id, start_address, end_address, start_time, end_time, revenue",
            rows: ride_rows,
        },
    ]
}

/// The `n`th promo code.
pub(super) fn promo_code(n: u32) -> String {
    format!("ride_{n:04}")
}

fn row(values: &[Value]) -> String {
    let values: Vec<String> = values.iter().map(Value::literal).collect();
    format!("({})", values.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    fn rows(config: &MovrConfig, seed: u64) -> Vec<(&'static str, Vec<String>)> {
        let cities = ["tokyo".to_string(), "osaka".to_string()];
        let tables = generate(&cities, config, &mut SmallRng::seed_from_u64(seed));
        tables.into_iter().map(|t| (t.name, t.rows)).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_rows() {
        let config = MovrConfig::default();
        assert_eq!(rows(&config, 1), rows(&config, 1));
        assert_ne!(rows(&config, 1), rows(&config, 2));
    }

    #[test]
    fn as_many_rows_as_asked_for() {
        let config = MovrConfig::default();
        let counts: Vec<usize> = rows(&config, 1).iter().map(|(_, rows)| rows.len()).collect();
        let asked = [config.promo_codes_per_region, config.users_per_region, config.vehicles_per_region, config.rides_per_region];
        assert_eq!(counts, asked.map(|n| n as usize));
    }

    #[test]
    fn a_tiny_shape_gives_no_row_without_its_parent() {
        let config = MovrConfig { users_per_region: 1, vehicles_per_region: 4, ..MovrConfig::default() };
        let all = rows(&config, 3);
        assert_eq!(all[2].1.len(), 2, "only the vehicles of the one user's city: {:?}", all[2].1);
    }
}
