//! movr: the ride-sharing application of CockroachDB's multi-region paper (§1.1, §7.5.1).
//!
//! People in a city rent its vehicles. A city belongs to a region, and so do the rows of everybody
//! in it: the tables are `REGIONAL BY ROW`, with a region that is computed from the city, and
//! `promo_codes`, which everybody reads, is `GLOBAL`. A transaction touches one region's rows. Most
//! clients work on their own region's rows; a share of the operations goes to another region's,
//! which is what makes the difference between the two latencies visible.
//!
//! * [`tables`]: the statements that create the tables.
//! * [`names`]: cities, people, streets, from a seed.
//! * [`load`]: the rows to begin with.
//! * [`work`]: what clients do.
//! * [`check`]: what must hold at the end.

mod check;
mod load;
mod names;
mod tables;
mod work;

use crate::run::{Context, Progress, Verdict, Worker, Workload};
use async_trait::async_trait;
use meridian_base::Result;
use std::time::Duration;

/// The database's name.
pub const DATABASE: &str = "movr";

/// The shape of the application.
#[derive(Clone, Debug)]
pub struct MovrConfig {
    pub users_per_region: u32,
    pub vehicles_per_region: u32,
    /// Finished rides to begin with.
    pub rides_per_region: u32,
    pub promo_codes_per_region: u32,
    /// Share of operations on another region's rows.
    pub other_region_share: f64,
    /// Pause between two operations of a worker.
    pub think_time: Duration,
}

impl Default for MovrConfig {
    fn default() -> MovrConfig {
        MovrConfig {
            users_per_region: 300,
            vehicles_per_region: 100,
            rides_per_region: 600,
            promo_codes_per_region: 50,
            other_region_share: 0.1,
            think_time: Duration::ZERO,
        }
    }
}

/// The workload.
pub struct Movr {
    config: MovrConfig,
}

impl Movr {
    /// Of this shape.
    pub fn new(config: MovrConfig) -> Movr {
        assert!(config.users_per_region > 0 && config.vehicles_per_region > 0 && config.promo_codes_per_region > 0);
        Movr { config }
    }
}

#[async_trait]
impl Workload for Movr {
    fn name(&self) -> &'static str {
        "movr"
    }

    async fn setup(&self, context: &Context, progress: &(dyn Fn(Progress) + Send + Sync)) -> Result<()> {
        tables::create(context).await?;
        load::load(context, &self.config, progress).await
    }

    async fn worker(&self, context: &Context, worker: Worker) -> Result<()> {
        work::Client::new(context, &self.config, worker).run().await
    }

    async fn check(&self, context: &Context) -> Result<Verdict> {
        let mut verdict = Verdict::default();
        for region in context.connector.regions() {
            check::check_region(context, &region, &mut verdict).await?;
        }
        Ok(verdict)
    }
}
