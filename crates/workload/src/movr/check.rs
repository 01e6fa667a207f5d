//! What must hold when everybody has gone home.

use super::names;
use crate::client::{Rows, Value};
use crate::run::{Context, Verdict};
use crate::session::Statements;
use meridian_base::Result;
use std::collections::{BTreeMap, BTreeSet};

/// A city and an id.
type RowId = (String, String);

/// One snapshot of a region, as far as the invariants go.
#[derive(Default)]
struct Region {
    users: BTreeSet<RowId>,
    /// Owner, and whether it is in use.
    vehicles: BTreeMap<RowId, (String, bool)>,
    /// Rider, vehicle, and whether it is open.
    rides: BTreeMap<RowId, (String, String, bool)>,
    /// Rides that have locations.
    located: BTreeSet<RowId>,
    /// Users of promo codes.
    promoted: BTreeSet<RowId>,
}

/// Reads one region in one transaction and judges it.
pub(super) async fn check_region(context: &Context, region: &str, verdict: &mut Verdict) -> Result<()> {
    let cities = names::cities(&context.connector.regions(), region);
    let mut session = context.session(region, super::DATABASE);
    let state = crate::run::until_answered(context, &mut session, |statements| {
        let cities = cities.clone();
        Box::pin(async move { read(statements, &cities).await })
    })
    .await?;
    judge(region, &state, verdict);
    Ok(())
}

async fn read(statements: &mut Statements<'_>, cities: &[String]) -> Result<Region> {
    let cities: Vec<String> = cities.iter().map(|c| Value::from(c.as_str()).literal()).collect();
    let here = format!("city IN ({})", cities.join(", "));
    let mut region = Region::default();
    let rows = statements.query(&format!("SELECT city, id FROM users WHERE {here}"), &[]).await?;
    region.users = ids(&rows)?;
    let rows = statements.query(&format!("SELECT city, id, owner_id, status FROM vehicles WHERE {here}"), &[]).await?;
    for row in 0..rows.rows.len() {
        let in_use = rows.text(row, 3)? == "in_use";
        region.vehicles.insert(id(&rows, row)?, (rows.text(row, 2)?.to_string(), in_use));
    }
    let sql = format!("SELECT city, id, rider_id, vehicle_id FROM rides WHERE {here}");
    let rows = statements.query(&sql, &[]).await?;
    let open = statements.query(&format!("SELECT city, id FROM rides WHERE {here} AND end_time IS NULL"), &[]).await?;
    let open = ids(&open)?;
    for row in 0..rows.rows.len() {
        let ride = id(&rows, row)?;
        let is_open = open.contains(&ride);
        region.rides.insert(ride, (rows.text(row, 2)?.to_string(), rows.text(row, 3)?.to_string(), is_open));
    }
    let sql = format!("SELECT city, ride_id FROM vehicle_location_histories WHERE {here}");
    region.located = ids(&statements.query(&sql, &[]).await?)?;
    let sql = format!("SELECT city, user_id FROM user_promo_codes WHERE {here}");
    region.promoted = ids(&statements.query(&sql, &[]).await?)?;
    Ok(region)
}

fn id(rows: &Rows, row: usize) -> Result<RowId> {
    Ok((rows.text(row, 0)?.to_string(), rows.text(row, 1)?.to_string()))
}

fn ids(rows: &Rows) -> Result<BTreeSet<RowId>> {
    (0..rows.rows.len()).map(|row| id(rows, row)).collect()
}

fn judge(name: &str, region: &Region, verdict: &mut Verdict) {
    let mut open: BTreeMap<RowId, u32> = BTreeMap::new();
    for ((city, ride), (rider, vehicle, is_open)) in &region.rides {
        let of_city = |id: &String| (city.clone(), id.clone());
        let has_rider = region.users.contains(&of_city(rider));
        verdict.expect(has_rider, || format!("{name}: ride {ride} in {city} has no rider {rider}"));
        let has_vehicle = region.vehicles.contains_key(&of_city(vehicle));
        verdict.expect(has_vehicle, || format!("{name}: ride {ride} in {city} has no vehicle {vehicle}"));
        if *is_open {
            *open.entry(of_city(vehicle)).or_default() += 1;
        }
    }
    for ((city, vehicle), (owner, in_use)) in &region.vehicles {
        let has_owner = region.users.contains(&(city.clone(), owner.clone()));
        verdict.expect(has_owner, || format!("{name}: vehicle {vehicle} in {city} has no owner {owner}"));
        let rides = open.get(&(city.clone(), vehicle.clone())).copied().unwrap_or(0);
        verdict.expect(rides == u32::from(*in_use), || {
            let status = if *in_use { "in use" } else { "available" };
            format!("{name}: vehicle {vehicle} in {city} is {status} and has {rides} open rides")
        });
    }
    for (city, ride) in &region.located {
        let exists = region.rides.contains_key(&(city.clone(), ride.clone()));
        verdict.expect(exists, || format!("{name}: locations in {city} of ride {ride}, which does not exist"));
    }
    for (city, user) in &region.promoted {
        let exists = region.users.contains(&(city.clone(), user.clone()));
        verdict.expect(exists, || format!("{name}: a promo code in {city} of user {user}, who does not exist"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str) -> RowId {
        ("rome".to_string(), id.to_string())
    }

    fn healthy() -> Region {
        let mut region = Region::default();
        region.users.insert(row("u"));
        region.vehicles.insert(row("v"), ("u".to_string(), true));
        region.vehicles.insert(row("w"), ("u".to_string(), false));
        region.rides.insert(row("r"), ("u".to_string(), "v".to_string(), true));
        region.rides.insert(row("s"), ("u".to_string(), "w".to_string(), false));
        region.located.insert(row("r"));
        region.promoted.insert(row("u"));
        region
    }

    fn violations(change: impl FnOnce(&mut Region)) -> usize {
        let mut region = healthy();
        change(&mut region);
        let mut verdict = Verdict::default();
        judge("here", &region, &mut verdict);
        verdict.violations.len()
    }

    #[test]
    fn a_healthy_region_passes_and_every_damage_is_found() {
        assert_eq!(violations(|_| ()), 0);
        let second = |r: &mut Region| _ = r.rides.insert(row("t"), ("u".to_string(), "v".to_string(), true));
        assert_eq!(violations(second), 1, "two open rides");
        assert_eq!(violations(|r| r.vehicles.get_mut(&row("v")).expect("there").1 = false), 1, "available on a ride");
        assert_eq!(violations(|r| r.vehicles.get_mut(&row("w")).expect("there").1 = true), 1, "in use by nobody");
        assert_eq!(violations(|r| r.rides.get_mut(&row("s")).expect("there").0 = "x".to_string()), 1, "no rider");
        assert_eq!(violations(|r| _ = r.vehicles.remove(&row("w"))), 1, "no vehicle");
        assert_eq!(violations(|r| r.vehicles.get_mut(&row("w")).expect("there").0 = "x".to_string()), 1, "no owner");
        assert_eq!(violations(|r| _ = r.located.insert(row("x"))), 1, "location of nothing");
        assert_eq!(violations(|r| _ = r.promoted.insert(row("x"))), 1, "promo code of nobody");
    }
}
