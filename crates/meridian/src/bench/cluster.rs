//! The cluster of a bench: a node in each zone of some regions, in this process and on a directory
//! that goes with it.

use crate::client::PgConnector;
use crate::demo::{Cluster, Distances, Layout, Sides};
use crate::traffic::Traffic;
use futures::future::BoxFuture;
use meridian_base::limits::MAX_OFFSET_DEFAULT;
use meridian_base::{Error, Result};
use meridian_workload::{Context, WallTimer, schema};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

const ZONES_APART: Duration = Duration::from_millis(1);

/// What there is to be.
pub struct Shape {
    pub regions: Vec<String>,
    /// In each region; a node in each, 1 ms apart.
    pub zones: usize,
    /// Round trips between regions that are not those of the demonstration, as in `a-b=120ms`.
    pub round_trips: Vec<String>,
    /// By how much nodes assume their clocks to differ at most.
    pub max_offset: Duration,
}

impl Shape {
    /// Of regions with commas between them, and the default bound on clocks.
    pub fn of(regions: &str) -> Shape {
        Shape {
            regions: regions.split(',').map(String::from).collect(),
            zones: 1,
            round_trips: Vec::new(),
            max_offset: MAX_OFFSET_DEFAULT,
        }
    }
}

/// The cluster while it runs.
pub struct Running {
    pub cluster: Cluster,
    pub connector: Arc<PgConnector>,
    pub distances: Distances,
    /// Regions of different sides do not reach each other.
    pub sides: Arc<Sides>,
    pub regions: Vec<String>,
}

/// Starts a cluster, lets somebody work with it, and stops it, also when a signal ends the work.
pub async fn with_cluster(
    shape: Shape,
    work: impl for<'r> FnOnce(&'r Running) -> BoxFuture<'r, Result<ExitCode>>,
) -> Result<ExitCode> {
    let scratch = tempfile::Builder::new().prefix("meridian-bench-").tempdir();
    let scratch = scratch.map_err(|e| Error::fatal(format!("no temporary directory: {e}")))?;
    let distances = Distances::new(&shape.regions, &shape.round_trips, ZONES_APART);
    let distances = distances.map_err(|why| Error::sql("22023", why))?;
    let mut running = Running {
        cluster: Cluster::new(shape.max_offset),
        connector: Arc::new(PgConnector::new(Vec::new(), "root", true)),
        distances,
        sides: Arc::default(),
        regions: shape.regions,
    };
    let started = tokio::select! {
        started = running.start(shape.zones, scratch.path()) => started.map(|()| true),
        () = crate::start::stop_signal() => Ok(false),
    };
    let done = match started {
        Ok(true) => tokio::select! {
            done = work(&running) => done,
            () = crate::start::stop_signal() => Ok(ExitCode::FAILURE),
        },
        Ok(false) => Ok(ExitCode::FAILURE),
        Err(e) => Err(e),
    };
    running.cluster.shutdown().await;
    done
}

impl Running {
    async fn start(&mut self, zones: usize, scratch: &Path) -> Result<()> {
        let nodes = if zones == 1 { "A node".to_string() } else { format!("{zones} nodes") };
        say_part!(
            "{nodes} in each of {} regions, in this process. Round trips, injected between them:\n{}",
            self.regions.len(),
            self.distances.table(&self.regions)
        );
        if cfg!(debug_assertions) {
            say!("This program is not a release build (use --release): local work takes longer than it has to.");
        }
        self.cluster
            .start(Layout::new(&self.regions, zones, None), &self.distances.links_between(self.sides.clone()), scratch)
            .await?;
        self.connector = Arc::new(PgConnector::new(self.cluster.local_sql_addrs(&self.regions), "root", true));
        Ok(())
    }

    /// What clients of one turn share.
    pub fn context(&self, seed: u64) -> Context {
        Context::new(self.connector.clone(), Arc::new(WallTimer::start()), seed)
    }

    /// What a node of each region has counted since it began (`SHOW METRICS`), added up.
    pub async fn metrics(&self, context: &Context) -> Result<BTreeMap<String, u64>> {
        let mut sums = BTreeMap::new();
        for region in &self.regions {
            let rows = context.session(region, schema::DATABASE_DEFAULT).execute("SHOW METRICS").await?;
            for row in 0..rows.rows.len() {
                let count = u64::try_from(rows.int(row, 1)?).unwrap_or(0);
                *sums.entry(rows.text(row, 0)?.to_string()).or_default() += count;
            }
        }
        Ok(sums)
    }

    /// Lets clients work for a time.
    pub async fn work(&self, traffic: &mut Traffic, time: Duration) -> Result<()> {
        tokio::select! {
            () = tokio::time::sleep(time) => Ok(()),
            e = traffic.failed() => Err(e),
            e = self.cluster.failed() => Err(e),
        }
    }
}

/// Transactions that were committed after waiting for another region, of what [`Running::metrics`]
/// says.
pub fn over_regions(counted: &BTreeMap<String, u64>) -> u64 {
    let waited = |name: &str| name.starts_with("txn.regions.committed.") && !name.ends_with("round_trips_0");
    counted.iter().filter(|(name, _)| waited(name)).map(|(_, count)| count).sum()
}

/// Writes what a bench found.
pub fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(|e| Error::fatal(format!("cannot write {}: {e}", path.display())))
}
