//! What command lines ask of a node: they are members of no cluster.
//!
//! These functions return boxed futures, as [`crate::Node`] does. A crate that awaits an `async fn`
//! compiles its body once more.

use crate::membership::clocks::{self, Accepted};
use crate::transport::rpc::Rpc;
use crate::transport::wire::{ClusterVersions, NodeStatus, Request, Response, Standing};
use futures::FutureExt;
use futures::future::BoxFuture;
use meridian_base::runtime::Runtime;
use meridian_base::version::Versions;
use meridian_base::{Clock, Error, GroupId, NodeId, Result};
use std::sync::Arc;
use std::time::Duration;

/// How long a command may take.
const CALL: Duration = Duration::from_secs(30);
/// How long the answer to a question may take.
const LOOK: Duration = Duration::from_secs(5);

/// Asks a node of any cluster for its cluster's status.
pub fn status_of(runtime: Arc<dyn Runtime>, addr: &str) -> BoxFuture<'_, Result<Vec<NodeStatus>>> {
    async move {
        match stranger(runtime).call_addr(addr, Request::Status, LOOK).await? {
            Response::Status(nodes) => Ok(nodes),
            _ => Err(another_kind()),
        }
    }
    .boxed()
}

/// Asks a node which formats its cluster may write, and what the members' programs understand.
pub fn versions_of(runtime: Arc<dyn Runtime>, addr: &str) -> BoxFuture<'_, Result<ClusterVersions>> {
    async move {
        match stranger(runtime).call_addr(addr, Request::Versions, LOOK).await? {
            Response::Versions(versions) => Ok(versions),
            _ => Err(another_kind()),
        }
    }
    .boxed()
}

/// Asks a node of a cluster to write down what the operator wants of one of its nodes.
pub fn stand_at(runtime: Arc<dyn Runtime>, addr: &str, node: NodeId, standing: Standing) -> BoxFuture<'_, Result<()>> {
    command(runtime, addr, Request::Stand { node, standing, is_passed_on: false })
}

/// Has a process that waits for others found a cluster without those that do not answer. 55000 if
/// there is a cluster.
pub fn init_at(runtime: Arc<dyn Runtime>, addr: &str) -> BoxFuture<'_, Result<()>> {
    command(runtime, addr, Request::Init)
}

/// Moves the clocks of a cluster ahead to where its groups' promises end (see
/// [`crate::membership::clocks`]). Asks a node for the others.
pub fn accept_clock_at(runtime: Arc<dyn Runtime>, addr: &str) -> BoxFuture<'_, Result<Accepted>> {
    async move {
        let nodes = status_of(runtime.clone(), addr).await?;
        clocks::accept(&stranger(runtime), &nodes).await
    }
    .boxed()
}

fn command(runtime: Arc<dyn Runtime>, addr: &str, request: Request) -> BoxFuture<'_, Result<()>> {
    async move {
        match stranger(runtime).call_addr(addr, request, CALL).await? {
            Response::Done => Ok(()),
            Response::NotPrimary { .. } => Err(Error::not_primary(GroupId::CATALOG)),
            _ => Err(another_kind()),
        }
    }
    .boxed()
}

fn another_kind() -> Error {
    Error::internal("a node gave an answer of another kind")
}

/// A client of the node port that belongs to no cluster and accepts any clock.
fn stranger(runtime: Arc<dyn Runtime>) -> Arc<Rpc> {
    const ANY: Duration = Duration::from_secs(100 * 365 * 86_400);
    Rpc::new(runtime, Arc::new(Clock::new(ANY)), Versions::OWN, None, None)
}
