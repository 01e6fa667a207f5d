//! What runs on a machine.

use super::topology::NodeSpec;
use crate::sql_wire::{self, Gateway};
use crate::world::SimRuntime;
use futures::future::{BoxFuture, LocalBoxFuture};
use meridian_base::{Error, Result};
use std::sync::Arc;
use std::time::Duration;

/// The error of a process that ended because it was told to.
pub const STOPPED: &str = "stopped as it was told";
/// What the error of a process says that is no member of the cluster any more.
pub const RETIRED: &str = "was decommissioned";
const SHUTDOWN_MAX: Duration = Duration::from_secs(10);

/// A process that has come up.
pub struct Started<G> {
    /// What clients connect to.
    pub gateway: Arc<G>,
    /// Resolves if the process cannot go on.
    pub failure: BoxFuture<'static, Error>,
}

/// A program that is started on every machine.
pub trait Software: 'static {
    type Gateway: Gateway;
    /// Starts the program with the machine's disk as it is.
    fn start(&self, runtime: SimRuntime, spec: NodeSpec) -> LocalBoxFuture<'static, Result<Started<Self::Gateway>>>;
    /// The machine lost power: whatever state the program keeps outside the simulated files loses
    /// what was not durable.
    fn lose_power(&self, spec: &NodeSpec, keep: u64);
    /// The machine's process died, but the machine did not.
    fn process_died(&self, spec: &NodeSpec);
    /// There is no room (or again room) for state kept outside the simulated files.
    fn set_full(&self, spec: &NodeSpec, full: bool);
    /// Bits of the rows that are kept outside the simulated files have changed.
    fn rot(&self, spec: &NodeSpec);
    /// The machine has an empty disk.
    fn replace_disk(&self, spec: &NodeSpec);
    /// What is durable now of the state outside the simulated files is what a disk that lies will
    /// have in the end.
    fn remember_disk(&self, spec: &NodeSpec);
    /// It has that and nothing else now.
    fn recall_disk(&self, spec: &NodeSpec);
    /// What an operator does, at another machine, to take a node out of the cluster in good order.
    /// Ends when it is no member any more; its process ends by itself then, with an error that says
    /// [`RETIRED`].
    fn retire(&self, operator: SimRuntime, spec: NodeSpec, others: Vec<NodeSpec>) -> LocalBoxFuture<'static, ()>;
    /// Whether the process on a machine, which has come up, serves as the primary of anything:
    /// faults may be aimed at those.
    fn is_primary(&self, spec: &NodeSpec) -> bool;
    /// Whether everything that counts on the disk of a machine, which has come up, is on other
    /// machines too: it may be lost.
    fn is_spared(&self, spec: &NodeSpec) -> bool;
}

/// A process's life: up, serving clients, until it fails. Returns why it ended.
pub async fn run(software: Arc<impl Software>, runtime: SimRuntime, spec: NodeSpec) -> Error {
    let started = match software.start(runtime.clone(), spec).await {
        Ok(started) => started,
        Err(error) => return error,
    };
    runtime.host().mark_started();
    let host = runtime.host().clone();
    tokio::select! {
        biased;
        error = started.failure => error,
        () = host.told_to_stop() => {
            // Whoever told it has no patience without end.
            let _ = tokio::time::timeout(SHUTDOWN_MAX, started.gateway.shut_down()).await;
            Error::unavailable(STOPPED)
        }
        served = sql_wire::serve(runtime, started.gateway.clone()) => match served {
            Ok(()) => Error::internal("the listener ended"),
            Err(e) => Error::fatal(format!("cannot serve clients: {e}")),
        },
    }
}
