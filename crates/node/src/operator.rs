//! What command lines ask of a node: they are members of no cluster.
//!
//! These functions return boxed futures, as [`crate::Node`] does. A crate that awaits an `async fn`
//! compiles its body once more.

use crate::membership::clocks::{self, Accepted};
use crate::transport::rpc::Rpc;
use crate::transport::security::{LOCAL, Protection};
use crate::transport::wire::{ClusterVersions, NodeStatus, Request, Response, RotationStatus, RotationStep, Standing};
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
pub fn status_of(way: &Way) -> BoxFuture<'_, Result<Vec<NodeStatus>>> {
    async move {
        match way.ask(Request::Status, LOOK).await? {
            Response::Status(nodes) => Ok(nodes),
            _ => Err(another_kind()),
        }
    }
    .boxed()
}

/// Asks a node which formats its cluster may write, and what the members' programs understand.
pub fn versions_of(way: &Way) -> BoxFuture<'_, Result<ClusterVersions>> {
    async move {
        match way.ask(Request::Versions, LOOK).await? {
            Response::Versions(versions) => Ok(versions),
            _ => Err(another_kind()),
        }
    }
    .boxed()
}

/// Asks a node of a cluster to write down what the operator wants of one of its nodes.
pub fn stand_at(way: &Way, node: NodeId, standing: Standing) -> BoxFuture<'_, Result<()>> {
    command(way, Request::Stand { node, standing, is_passed_on: false })
}

/// Has a process that waits for others found a cluster without those that do not answer. 55000 if
/// there is a cluster.
pub fn init_at(way: &Way) -> BoxFuture<'_, Result<()>> {
    command(way, Request::Init)
}

/// Moves the clocks of a cluster ahead to where its groups' promises end (see
/// [`crate::membership::clocks`]). Asks a node for the others.
pub fn accept_clock_at(way: &Way) -> BoxFuture<'_, Result<Accepted>> {
    async move {
        let nodes = status_of(way).await?;
        clocks::accept(&way.rpc(), &nodes).await
    }
    .boxed()
}

fn command(way: &Way, request: Request) -> BoxFuture<'_, Result<()>> {
    async move {
        match way.ask(request, CALL).await? {
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

/// How a command reaches a node.
#[derive(Clone)]
pub struct Way {
    pub runtime: Arc<dyn Runtime>,
    pub protection: Protection,
    /// `host:port`, or `unix:PATH`.
    pub addr: String,
}

impl Way {
    /// Of a cluster without certificates, or over a socket of this machine.
    pub fn plain(runtime: Arc<dyn Runtime>, addr: &str) -> Way {
        Way { runtime, protection: Protection::None, addr: addr.to_string() }
    }
    /// A client of the node port that belongs to no cluster and accepts any clock.
    fn rpc(&self) -> Arc<Rpc> {
        const ANY: Duration = Duration::from_secs(100 * 365 * 86_400);
        let clock = Arc::new(Clock::new(ANY));
        Rpc::protected(self.runtime.clone(), clock, Versions::OWN, None, None, self.protection.clone())
    }
    async fn ask(&self, request: Request, patience: Duration) -> Result<Response> {
        let is_plain = matches!(self.protection, Protection::None) && !self.addr.starts_with(LOCAL);
        let answer = self.rpc().call_addr(&self.addr, request, patience).await;
        answer.map_err(|e| match is_plain && e.is_unavailable() && e.get_hint().is_none() {
            true => e.hint("A node of a secure cluster is asked with --data-dir, on its machine, or with --certs-dir."),
            false => e,
        })
    }
}

/// Asks a node for the next step of a rotation of the authority, or how far it is.
pub fn rotate_at(way: &Way, step: RotationStep, is_forced: bool) -> BoxFuture<'_, Result<RotationStatus>> {
    async move {
        match way.ask(Request::Rotate { step, is_forced }, CALL).await? {
            Response::Rotation(status) => Ok(status),
            Response::NotPrimary { .. } => Err(Error::not_primary(GroupId::CATALOG)),
            _ => Err(another_kind()),
        }
    }
    .boxed()
}

/// Has a node make a join token that is good for so long.
pub fn create_token(way: &Way, life_secs: u64) -> BoxFuture<'_, Result<String>> {
    async move {
        match way.ask(Request::CreateToken { life_secs }, CALL).await? {
            Response::NewToken(text) => Ok(text.0),
            Response::NotPrimary { .. } => Err(Error::not_primary(GroupId::CATALOG)),
            _ => Err(another_kind()),
        }
    }
    .boxed()
}
