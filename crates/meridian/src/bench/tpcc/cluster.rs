//! A whole cluster as one process that can be killed: `meridian demo` without clients, on a
//! directory that stays.

use crate::bench::child::{self, Server};
use crate::client::PgClient;
use crate::demo::Layout;
use meridian_base::{Error, Result};
use meridian_workload::schema;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tokio::time::Instant;

const READY_PATIENCE: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(100);

pub(super) struct Cluster {
    dir: PathBuf,
    log: PathBuf,
    zones: u8,
    /// `None` between a crash and the next start.
    process: Option<Server>,
    layout: Layout,
}

impl Cluster {
    pub async fn start(scratch: &Path, zones: u8) -> Result<Cluster> {
        let (dir, log) = (scratch.join("nodes"), scratch.join("nodes.log"));
        std::fs::create_dir_all(&dir).map_err(|e| Error::fatal(format!("cannot make {}: {e}", dir.display())))?;
        let mut process = spawn(&dir, &log, zones)?;
        // The addresses are written down when all nodes have started.
        let begun = Instant::now();
        let layout = loop {
            if let Some(layout) = Layout::load(&dir)? {
                break layout;
            }
            wait(&mut process, &log, begun).await?;
        };
        let mut cluster = Cluster { dir, log, zones, process: Some(process), layout };
        cluster.await_connections(begun).await?;
        Ok(cluster)
    }

    /// Where clients of each region connect.
    pub fn addrs(&self, regions: &[String]) -> Vec<(String, Vec<String>)> {
        let of = |region: &String| {
            let seats = self.layout.seats.iter().filter(|seat| seat.place.region == *region);
            seats.map(|seat| seat.local_sql_addr(&self.dir)).collect()
        };
        regions.iter().map(|region| (region.clone(), of(region))).collect()
    }

    /// Ends all nodes at once, as a loss of power would.
    pub fn kill(&mut self) -> Result<()> {
        self.process.take().map_or(Ok(()), Server::kill)
    }

    /// Starts them again on what they left.
    pub async fn restart(&mut self) -> Result<()> {
        let begun = Instant::now();
        self.process = Some(spawn(&self.dir, &self.log, self.zones)?);
        self.await_connections(begun).await
    }

    /// An error if they have ended by themselves.
    pub fn check(&mut self) -> Result<()> {
        self.process.as_mut().map_or(Ok(()), |process| process.check(&self.log))
    }

    async fn await_connections(&mut self, begun: Instant) -> Result<()> {
        for seat in &self.layout.seats {
            while PgClient::connect(&seat.local_sql_addr(&self.dir), "root", schema::DATABASE_DEFAULT).await.is_err() {
                if let Some(process) = &mut self.process {
                    wait(process, &self.log, begun).await?;
                }
            }
        }
        Ok(())
    }
}

fn spawn(dir: &Path, log: &Path, zones: u8) -> Result<Server> {
    let program = std::env::current_exe().map_err(|e| Error::fatal(format!("cannot find this program: {e}")))?;
    let mut command = Command::new(program);
    command.args(["demo", "--no-workload", "--no-shell", "--zones", &zones.to_string(), "--data-dir"]).arg(dir);
    Server::start("a cluster", command, log)
}

async fn wait(process: &mut Server, log: &Path, begun: Instant) -> Result<()> {
    process.check(log)?;
    if begun.elapsed() > READY_PATIENCE {
        return Err(Error::unavailable("the cluster does not serve").detail(child::tail(log)));
    }
    tokio::time::sleep(POLL).await;
    Ok(())
}
