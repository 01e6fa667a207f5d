//! What clients do: look at vehicles, ride, register, use promo codes.

use super::{MovrConfig, load, names};
use crate::client::Value;
use crate::run::{Context, Worker};
use crate::session::{Attempted, Session, Statements};
use crate::stats::StatsKey;
use meridian_base::{Error, Result};
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::BTreeMap;

/// Vehicles shown at once.
const BROWSE_LIMIT: i64 = 25;
/// Rides one client has open at most, per region; beyond it, it ends one before it starts another.
const OPEN_RIDES_MAX: usize = 5;
/// Users a client knows of, per region.
const USERS_KNOWN_MAX: usize = 50;

/// A ride that this client started and has not ended.
#[derive(Clone, Debug)]
struct Ride {
    city: String,
    id: String,
    vehicle: String,
}

/// What a client knows of one region.
#[derive(Default)]
struct Known {
    /// City and id.
    users: Vec<(String, String)>,
    rides: Vec<Ride>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    BrowseVehicles,
    StartRide,
    UpdateLocation,
    EndRide,
    RegisterUser,
    UsePromoCode,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Operation::BrowseVehicles => "browse vehicles",
            Operation::StartRide => "start ride",
            Operation::UpdateLocation => "update location",
            Operation::EndRide => "end ride",
            Operation::RegisterUser => "register user",
            Operation::UsePromoCode => "use promo code",
        }
    }

    /// Mostly browsing, as riders do.
    fn draw(rng: &mut SmallRng) -> Operation {
        match rng.random_range(0..100) {
            0..=49 => Operation::BrowseVehicles,
            50..=61 => Operation::StartRide,
            62..=81 => Operation::UpdateLocation,
            82..=93 => Operation::EndRide,
            94..=96 => Operation::RegisterUser,
            _ => Operation::UsePromoCode,
        }
    }
}

/// One client at work.
pub(super) struct Client<'r> {
    context: &'r Context,
    config: &'r MovrConfig,
    worker: Worker,
    session: Session,
    rng: SmallRng,
    regions: Vec<String>,
    known: BTreeMap<String, Known>,
}

impl<'r> Client<'r> {
    pub(super) fn new(context: &'r Context, config: &'r MovrConfig, worker: Worker) -> Client<'r> {
        Client {
            context,
            config,
            session: context.session(&worker.region, super::DATABASE),
            rng: context.rng(u64::from(worker.id) + 1),
            regions: context.connector.regions(),
            known: BTreeMap::new(),
            worker,
        }
    }

    pub(super) async fn run(mut self) -> Result<()> {
        while !self.context.stop.is_stopped() {
            let (region, locality) =
                crate::run::pick_region(&self.regions, &self.worker.region, self.config.other_region_share, &mut self.rng);
            let region = region.to_string();
            let drawn = Operation::draw(&mut self.rng);
            let operation = self.possible(drawn, &region);
            let started = self.context.timer.now_micros();
            let attempted = self.perform(operation, &region).await;
            let key = StatsKey { region: self.worker.region.clone(), operation: operation.name(), locality };
            crate::run::account(self.context, &mut self.session, &key, started, &attempted).await?;
            if !self.config.think_time.is_zero() {
                tokio::time::sleep(self.config.think_time).await;
            }
        }
        Ok(())
    }

    /// The drawn operation, or the one that has to come before it.
    fn possible(&self, drawn: Operation, region: &str) -> Operation {
        let open = self.known.get(region).map_or(0, |k| k.rides.len());
        let users = self.known.get(region).map_or(0, |k| k.users.len());
        match drawn {
            Operation::StartRide | Operation::UsePromoCode if users == 0 => Operation::RegisterUser,
            Operation::StartRide if open >= OPEN_RIDES_MAX => Operation::EndRide,
            Operation::UpdateLocation | Operation::EndRide if open == 0 => Operation::BrowseVehicles,
            other => other,
        }
    }

    async fn perform(&mut self, operation: Operation, region: &str) -> Attempted<()> {
        match operation {
            Operation::BrowseVehicles => self.browse(region).await,
            Operation::StartRide => self.start_ride(region).await,
            Operation::UpdateLocation => self.update_location(region).await,
            Operation::EndRide => self.end_ride(region).await,
            Operation::RegisterUser => self.register(region).await,
            Operation::UsePromoCode => self.use_promo_code(region).await,
        }
    }

    async fn browse(&mut self, region: &str) -> Attempted<()> {
        let city = self.city(region);
        let sql = format!(
            "SELECT id, type, status, current_location FROM vehicles WHERE city = $1 AND status = $2 LIMIT {BROWSE_LIMIT}"
        );
        let read = self.session.single(&mut self.rng, &sql, &[city.into(), "available".into()]).await;
        read.map(|_| ())
    }

    async fn register(&mut self, region: &str) -> Attempted<()> {
        let city = self.city(region);
        let id = names::uuid(&mut self.rng);
        let (name, address) = (names::person(&mut self.rng), names::address(&mut self.rng));
        let card = names::credit_card(&mut self.rng);
        let sql = "INSERT INTO users (city, id, name, address, credit_card) VALUES ($1, $2, $3, $4, $5)";
        let params: [Value; 5] = [city.as_str().into(), id.as_str().into(), name.into(), address.into(), card.into()];
        let attempted = self.session.single(&mut self.rng, sql, &params).await;
        if matches!(attempted, Attempted::Committed(_)) {
            let users = &mut self.known(region).users;
            if users.len() == USERS_KNOWN_MAX {
                users.remove(0);
            }
            users.push((city, id));
        }
        attempted.map(|_| ())
    }

    async fn start_ride(&mut self, region: &str) -> Attempted<()> {
        let (city, rider) = self.user(region);
        let ride = Ride { city, id: names::uuid(&mut self.rng), vehicle: String::new() };
        let plan = StartRide { rider, address: names::address(&mut self.rng), choice: self.rng.random(), ride };
        let attempted = self
            .session
            .transaction(&mut self.rng, |statements| {
                let plan = plan.clone();
                Box::pin(async move { plan.run(statements).await })
            })
            .await;
        match attempted {
            Attempted::Committed(Started::Ride(ride)) => {
                self.known(region).rides.push(ride);
                Attempted::Committed(())
            }
            Attempted::Committed(Started::NoVehicle) => Attempted::Committed(()),
            Attempted::Committed(Started::NoUser(rider)) => {
                Attempted::Failed(Error::internal("a user who registered is gone").detail(rider))
            }
            other => other.map(|_| ()),
        }
    }

    async fn update_location(&mut self, region: &str) -> Attempted<()> {
        let ride = self.ride(region);
        let (latitude, longitude) = (self.rng.random_range(-90.0..90.0), self.rng.random_range(-180.0..180.0));
        let sql = "INSERT INTO vehicle_location_histories (city, ride_id, seen_at, latitude, longitude) \
             VALUES ($1, $2, now(), $3, $4) ON CONFLICT (city, ride_id, seen_at) DO NOTHING";
        let params: [Value; 4] = [ride.city.into(), ride.id.into(), latitude.into(), longitude.into()];
        let inserted = self.session.single(&mut self.rng, sql, &params).await;
        inserted.map(|_| ())
    }

    async fn end_ride(&mut self, region: &str) -> Attempted<()> {
        let ride = self.ride(region);
        let address = names::address(&mut self.rng);
        let revenue = format!("{}.{:02}", self.rng.random_range(1..50), self.rng.random_range(0..100));
        let attempted = self
            .session
            .transaction(&mut self.rng, |statements| {
                let ride = ride.clone();
                let (address, revenue) = (address.clone(), revenue.clone());
                Box::pin(async move { end_ride(statements, &ride, &address, &revenue).await })
            })
            .await;
        // With an unknown outcome the ride may still be open, and ending it again is harmless.
        if matches!(attempted, Attempted::Committed(())) {
            self.known(region).rides.retain(|r| r.id != ride.id);
        }
        attempted
    }

    async fn use_promo_code(&mut self, region: &str) -> Attempted<()> {
        let (city, user) = self.user(region);
        let code = load::promo_code(self.rng.random_range(0..self.config.promo_codes_per_region));
        let sql = "INSERT INTO user_promo_codes (city, user_id, code, usage_count) VALUES ($1, $2, $3, 1) \
             ON CONFLICT (city, user_id, code) DO UPDATE SET usage_count = user_promo_codes.usage_count + 1, used_at = now()";
        let used = self.session.single(&mut self.rng, sql, &[city.into(), user.into(), code.into()]).await;
        used.map(|_| ())
    }

    fn known(&mut self, region: &str) -> &mut Known {
        self.known.entry(region.to_string()).or_default()
    }
    fn city(&mut self, region: &str) -> String {
        let cities = names::cities(&self.regions, region);
        cities[self.rng.random_range(0..cities.len())].clone()
    }
    /// `possible` has made sure that there is one.
    fn user(&mut self, region: &str) -> (String, String) {
        let users = &self.known[region].users;
        users[self.rng.random_range(0..users.len())].clone()
    }
    /// `possible` has made sure that there is one.
    fn ride(&mut self, region: &str) -> Ride {
        let rides = &self.known[region].rides;
        rides[self.rng.random_range(0..rides.len())].clone()
    }
}

/// Everything a start needs, so that a retry is the same start again.
#[derive(Clone)]
struct StartRide {
    ride: Ride,
    rider: String,
    address: String,
    choice: u32,
}

/// What came of it. Only a commit says that what the transaction read is true: rows of other
/// regions are read at a replica, which may be behind.
enum Started {
    Ride(Ride),
    /// None was free: an answer, and nothing to remember.
    NoVehicle,
    /// Somebody who registered is gone.
    NoUser(String),
}

impl StartRide {
    async fn run(self, statements: &mut Statements<'_>) -> Result<Started> {
        let StartRide { ride: Ride { city, id, .. }, rider, address, choice } = self;
        let sql = "SELECT name FROM users WHERE city = $1 AND id = $2";
        let user = statements.query(sql, &[city.as_str().into(), rider.as_str().into()]).await?;
        if user.rows.is_empty() {
            return Ok(Started::NoUser(rider));
        }
        let sql = "SELECT id FROM vehicles WHERE city = $1 AND status = $2 LIMIT 10";
        let free = statements.query(sql, &[city.as_str().into(), "available".into()]).await?;
        if free.rows.is_empty() {
            return Ok(Started::NoVehicle);
        }
        let vehicle = free.text(choice as usize % free.rows.len(), 0)?.to_string();
        let sql = "INSERT INTO rides (city, id, rider_id, vehicle_id, start_address, start_time) \
             VALUES ($1, $2, $3, $4, $5, now())";
        let params: [Value; 5] =
            [city.as_str().into(), id.as_str().into(), rider.into(), vehicle.as_str().into(), address.into()];
        statements.query(sql, &params).await?;
        let sql = "UPDATE vehicles SET status = $3 WHERE city = $1 AND id = $2";
        let params: [Value; 3] = [city.as_str().into(), vehicle.as_str().into(), "in_use".into()];
        statements.query(sql, &params).await?;
        Ok(Started::Ride(Ride { city, id, vehicle }))
    }
}

/// Closes a ride and frees its vehicle; a ride that is closed already is left as it is, since its
/// vehicle may have another.
async fn end_ride(statements: &mut Statements<'_>, ride: &Ride, address: &str, revenue: &str) -> Result<()> {
    let sql = "UPDATE rides SET end_address = $3, end_time = now(), revenue = $4 \
         WHERE city = $1 AND id = $2 AND end_time IS NULL";
    let params: [Value; 4] = [ride.city.as_str().into(), ride.id.as_str().into(), address.into(), revenue.into()];
    if statements.query(sql, &params).await?.affected == 0 {
        return Ok(());
    }
    let sql = "UPDATE vehicles SET status = $3, current_location = $4 WHERE city = $1 AND id = $2";
    let params: [Value; 4] = [ride.city.as_str().into(), ride.vehicle.as_str().into(), "available".into(), address.into()];
    statements.query(sql, &params).await?;
    Ok(())
}
