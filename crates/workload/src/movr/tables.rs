//! The six tables, once per region.

use crate::run::Context;
use crate::schema;
use meridian_base::Result;

/// Creates the database, a schema per region, and the tables homed in that region.
pub(super) async fn create(context: &Context) -> Result<()> {
    schema::create_database(context, super::DATABASE).await?;
    let regions = context.connector.regions();
    let of_region = |region: &String| statements(&schema::schema_of(region), &schema::locality(&*context.connector, region));
    let all: Vec<String> = regions.iter().flat_map(of_region).collect();
    schema::run_block(&mut context.session(&regions[0], super::DATABASE), &all).await
}

/// The statements for one region. Every key starts with the city, so that a city's rows lie together.
pub(super) fn statements(schema: &str, home: &str) -> Vec<String> {
    vec![
        format!("CREATE SCHEMA {schema}"),
        format!(
            "CREATE TABLE {schema}.users (
                city TEXT NOT NULL, id UUID NOT NULL, name TEXT NOT NULL, address TEXT, credit_card TEXT,
                PRIMARY KEY (city, id)){home}"
        ),
        format!(
            "CREATE TABLE {schema}.vehicles (
                city TEXT NOT NULL, id UUID NOT NULL, type TEXT NOT NULL, owner_id UUID NOT NULL,
                creation_time TIMESTAMP NOT NULL DEFAULT now(), status TEXT NOT NULL, current_location TEXT, ext JSONB,
                PRIMARY KEY (city, id),
                FOREIGN KEY (city, owner_id) REFERENCES {schema}.users (city, id)){home}"
        ),
        format!("CREATE INDEX vehicles_city_status ON {schema}.vehicles (city, status)"),
        format!(
            "CREATE TABLE {schema}.rides (
                city TEXT NOT NULL, id UUID NOT NULL, rider_id UUID NOT NULL, vehicle_id UUID NOT NULL,
                start_address TEXT, end_address TEXT, start_time TIMESTAMP NOT NULL DEFAULT now(), end_time TIMESTAMP,
                revenue NUMERIC(10,2),
                PRIMARY KEY (city, id),
                FOREIGN KEY (city, rider_id) REFERENCES {schema}.users (city, id),
                FOREIGN KEY (city, vehicle_id) REFERENCES {schema}.vehicles (city, id)){home}"
        ),
        format!(
            "CREATE TABLE {schema}.vehicle_location_histories (
                city TEXT NOT NULL, ride_id UUID NOT NULL, seen_at TIMESTAMP NOT NULL, latitude FLOAT8, longitude FLOAT8,
                PRIMARY KEY (city, ride_id, seen_at),
                FOREIGN KEY (city, ride_id) REFERENCES {schema}.rides (city, id)){home}"
        ),
        format!(
            "CREATE TABLE {schema}.promo_codes (
                code TEXT PRIMARY KEY, description TEXT, creation_time TIMESTAMP NOT NULL DEFAULT now(),
                expiration_time TIMESTAMP, rules JSONB){home}"
        ),
        format!(
            "CREATE TABLE {schema}.user_promo_codes (
                city TEXT NOT NULL, user_id UUID NOT NULL, code TEXT NOT NULL, used_at TIMESTAMP NOT NULL DEFAULT now(),
                usage_count INT8 NOT NULL,
                PRIMARY KEY (city, user_id, code),
                FOREIGN KEY (city, user_id) REFERENCES {schema}.users (city, id)){home}"
        ),
    ]
}
