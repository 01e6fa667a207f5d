//! One side's turn: its clients work, and what they saw is taken.

use super::Cell;
use super::sides::Side;
use crate::bench::cluster::Running;
use crate::traffic::Traffic;
use meridian_base::{Error, Result};
use meridian_node::Place;
use meridian_node::Tally;
use meridian_workload::Workload;
use meridian_workload::multi_region::{Homes, Measured, MultiRegion, MultiRegionConfig, Route};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Nobody measures how connections are made and statements are planned.
const WARM_UP: Duration = Duration::from_secs(1);
/// Decisions and acknowledgements may be on their way when the clients have ended.
const COOL_DOWN: Duration = Duration::from_millis(500);

/// The cluster and how it is worked.
pub(super) struct Bench<'c> {
    pub running: &'c Running,
    pub rows: i64,
    pub clients: u32,
    pub checks: bool,
}

/// What came of a turn.
#[derive(Clone, Default)]
pub(super) struct Run {
    pub time: Duration,
    pub routes: BTreeMap<Route, Measured>,
    /// Of transactions that touched other regions.
    pub tally: Tally,
}

impl Run {
    /// What satisfies a condition.
    pub fn of(&self, which: impl Fn(&Route) -> bool) -> Measured {
        let mut sum = Measured::default();
        self.routes.iter().filter(|(route, _)| which(route)).for_each(|(_, measured)| sum.merge(measured));
        sum
    }
    fn per_second(&self, which: impl Fn(&Route) -> bool) -> f64 {
        self.of(which).committed() as f64 / self.time.as_secs_f64().max(1e-3)
    }
    /// Commits per second.
    pub fn throughput(&self) -> f64 {
        self.per_second(|_| true)
    }
    /// Those of the region whose clients get least done.
    pub fn throughput_least(&self, regions: usize) -> f64 {
        (0..regions).map(|own| self.per_second(|route| route.own == own)).fold(f64::INFINITY, f64::min)
    }
    pub fn abort_share(&self) -> f64 {
        self.of(|_| true).abort_share().unwrap_or(0.0)
    }
    /// Adds another turn of the same side.
    pub fn merge(&mut self, other: &Run) {
        self.time += other.time;
        self.tally.add(&other.tally);
        for (route, measured) in &other.routes {
            self.routes.entry(route.clone()).or_default().merge(measured);
        }
    }
}

impl Bench<'_> {
    fn config(&self, homes: Homes) -> MultiRegionConfig {
        MultiRegionConfig { rows_per_region: self.rows, hot_rows_per_region: 1, homes, ..MultiRegionConfig::default() }
    }

    pub async fn load(&self, homes: Homes) -> Result<()> {
        let started = Instant::now();
        MultiRegion::new(self.config(homes)).setup(&self.running.context(1), &|_| {}).await?;
        say!("{}: loaded in {:.1} s", homes.database(), started.elapsed().as_secs_f64());
        Ok(())
    }

    /// Lets one side work.
    pub async fn turn(&self, side: &Side, cell: Cell, time: Duration, seed: u64) -> Result<Run> {
        self.running.cluster.nodes().for_each(|node| node.use_protocol(side.protocol));
        let config = MultiRegionConfig {
            hot_rows_per_region: cell.hot,
            mix: cell.mix,
            several_regions_share: f64::from(cell.share) / 100.0,
            is_one_string: side.retries,
            ..self.config(side.homes)
        };
        let work = Arc::new(MultiRegion::new(config));
        let context = self.running.context(seed);
        if self.checks {
            work.setup(&context, &|_| {}).await?;
        }
        let dynamic: Arc<dyn Workload> = work.clone();
        let mut traffic = Traffic::start(&dynamic, &context, self.clients);
        self.running.work(&mut traffic, WARM_UP).await?;
        work.take_measured();
        self.take_tally();
        let started = Instant::now();
        self.running.work(&mut traffic, time).await?;
        let run = Run { time: started.elapsed(), routes: work.take_measured(), tally: self.take_tally() };
        traffic.stop().await?;
        tokio::time::sleep(COOL_DOWN).await;
        if self.checks {
            let verdict = work.check(&context).await?;
            if let Some(violation) = verdict.violations.first() {
                return Err(Error::internal(format!("{}: {violation}", side.name)));
            }
        }
        Ok(run)
    }

    fn take_tally(&self) -> Tally {
        let mut sum = Tally::default();
        self.running.cluster.nodes().for_each(|node| sum.add(&node.take_tally()));
        sum
    }

    /// The round trip from a client to the farthest primary that its transaction needs.
    pub fn farthest(&self, homes: Homes, route: &Route) -> Duration {
        let place = |at: usize| Place { region: self.running.regions[at].clone(), zone: "a".to_string() };
        let to = |at: usize| self.running.distances.round_trip(&place(route.own), &place(at));
        match homes {
            Homes::First => to(0),
            Homes::Each => route.others.iter().map(|at| to(*at)).max().unwrap_or_default(),
        }
    }
}
