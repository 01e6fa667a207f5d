//! The six tables, and where their rows live.

use super::names;
use crate::client::Value;
use crate::run::Context;
use crate::schema;
use meridian_base::Result;

/// Creates the database and its tables.
pub(super) async fn create(context: &Context) -> Result<()> {
    schema::create_database(context, super::DATABASE).await?;
    let regions = context.connector.regions();
    let homes = if context.connector.knows_regions() { Homes::of(&regions) } else { Homes::none() };
    schema::run_block(&mut context.session(&regions[0], super::DATABASE), &statements(&homes)).await
}

/// What a database with regions is told besides the columns.
pub(super) struct Homes {
    /// A column that follows from the city, in front of the key.
    region: String,
    by_row: &'static str,
    global: &'static str,
}

impl Homes {
    /// In a database without regions.
    pub(super) fn none() -> Homes {
        Homes { region: String::new(), by_row: "", global: "" }
    }
    /// A row lives where its city is; whoever knows the city knows the region, so no lookup by key
    /// and no insert asks anywhere else.
    pub(super) fn of(regions: &[String]) -> Homes {
        let text = |s: &str| Value::from(s).literal();
        let of_region = |region: &String| {
            let cities: Vec<String> = names::cities(regions, region).iter().map(|c| text(c)).collect();
            format!("WHEN city IN ({}) THEN {}", cities.join(", "), text(region))
        };
        let cases: Vec<String> = regions.iter().map(of_region).collect();
        let region = format!("crdb_region crdb_internal_region NOT NULL AS (CASE {} END) STORED,", cases.join(" "));
        Homes { region, by_row: " LOCALITY REGIONAL BY ROW", global: " LOCALITY GLOBAL" }
    }
}

/// The statements. Every key but a promo code's starts with the city, so that a city's rows lie
/// together.
pub(super) fn statements(homes: &Homes) -> Vec<String> {
    let Homes { region, by_row, global } = homes;
    vec![
        format!(
            "CREATE TABLE users (
                city TEXT NOT NULL, id UUID NOT NULL, name TEXT NOT NULL, address TEXT, credit_card TEXT,
                {region} PRIMARY KEY (city, id)){by_row}"
        ),
        format!(
            "CREATE TABLE vehicles (
                city TEXT NOT NULL, id UUID NOT NULL, type TEXT NOT NULL, owner_id UUID NOT NULL,
                creation_time TIMESTAMP NOT NULL DEFAULT now(), status TEXT NOT NULL, current_location TEXT, ext JSONB,
                {region} PRIMARY KEY (city, id),
                FOREIGN KEY (city, owner_id) REFERENCES users (city, id)){by_row}"
        ),
        "CREATE INDEX vehicles_city_status ON vehicles (city, status)".to_string(),
        format!(
            "CREATE TABLE rides (
                city TEXT NOT NULL, id UUID NOT NULL, rider_id UUID NOT NULL, vehicle_id UUID NOT NULL,
                start_address TEXT, end_address TEXT, start_time TIMESTAMP NOT NULL DEFAULT now(), end_time TIMESTAMP,
                revenue NUMERIC(10,2),
                {region} PRIMARY KEY (city, id),
                FOREIGN KEY (city, rider_id) REFERENCES users (city, id),
                FOREIGN KEY (city, vehicle_id) REFERENCES vehicles (city, id)){by_row}"
        ),
        format!(
            "CREATE TABLE vehicle_location_histories (
                city TEXT NOT NULL, ride_id UUID NOT NULL, seen_at TIMESTAMP NOT NULL, latitude FLOAT8, longitude FLOAT8,
                {region} PRIMARY KEY (city, ride_id, seen_at),
                FOREIGN KEY (city, ride_id) REFERENCES rides (city, id)){by_row}"
        ),
        format!(
            "CREATE TABLE promo_codes (
                code TEXT PRIMARY KEY, description TEXT, creation_time TIMESTAMP NOT NULL DEFAULT now(),
                expiration_time TIMESTAMP, rules JSONB){global}"
        ),
        format!(
            "CREATE TABLE user_promo_codes (
                city TEXT NOT NULL, user_id UUID NOT NULL, code TEXT NOT NULL, used_at TIMESTAMP NOT NULL DEFAULT now(),
                usage_count INT8 NOT NULL,
                {region} PRIMARY KEY (city, user_id, code),
                FOREIGN KEY (city, user_id) REFERENCES users (city, id)){by_row}"
        ),
    ]
}
