//! A workload at work: its clients in every region, and the table that follows them.

use crate::live::Live;
use meridian_base::{Error, Result};
use meridian_workload::{Context, Worker, Workload};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

const TICK: Duration = Duration::from_secs(1);
/// A client ends after its operation; one that waits for a dead node gives up in less than this.
const STOP_PATIENCE: Duration = Duration::from_secs(20);

/// Running clients.
pub struct Traffic {
    context: Context,
    workers: Vec<JoinHandle<Result<()>>>,
    live: Arc<Mutex<Live>>,
    ticker: JoinHandle<()>,
}

impl Traffic {
    /// Starts `clients` clients in every region.
    pub fn start(workload: &Arc<dyn Workload>, context: &Context, clients: u32) -> Traffic {
        let regions = context.connector.regions();
        let live = Arc::new(Mutex::new(Live::new(context.stats.clone(), regions.clone())));
        let mut workers = Vec::new();
        for region in (0..clients).flat_map(|_| &regions) {
            let worker = Worker { id: workers.len() as u32, region: region.clone() };
            let (workload, context) = (workload.clone(), context.clone());
            workers.push(tokio::spawn(async move { workload.worker(&context, worker).await }));
        }
        let ticking = live.clone();
        let ticker = tokio::spawn(async move {
            loop {
                tokio::time::sleep(TICK).await;
                ticking.lock().tick();
            }
        });
        Traffic { context: context.clone(), workers, live, ticker }
    }

    /// The table behind it.
    pub fn live(&self) -> Arc<Mutex<Live>> {
        self.live.clone()
    }

    /// Waits for a client that cannot go on; for ever if none does.
    pub async fn failed(&mut self) -> Error {
        loop {
            if let Some(at) = self.workers.iter().position(JoinHandle::is_finished) {
                match self.workers.swap_remove(at).await {
                    Ok(Ok(())) => {}
                    Ok(Err(e)) => return e,
                    Err(e) => return Error::internal(format!("a client panicked: {e}")),
                }
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Lets every client finish what it does.
    pub async fn stop(self) -> Result<()> {
        self.context.stop.stop();
        let ends = tokio::time::timeout(STOP_PATIENCE, futures::future::join_all(self.workers)).await;
        self.ticker.abort();
        self.live.lock().tick();
        for end in ends.map_err(|_| Error::unavailable("clients do not end"))? {
            end.map_err(|e| Error::internal(format!("a client panicked: {e}")))??;
        }
        Ok(())
    }
}
