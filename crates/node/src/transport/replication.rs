//! How replicas of a group reach each other: messages of the consensus protocol as calls between
//! nodes. At the other end `answers.rs` hands them to the replica.

use crate::transport::frames::LARGE_FRAME_MAX;
use crate::transport::rpc::Rpc;
use crate::transport::wire::{Request, Response};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use meridian_base::{Error, GroupId, NodeId, Result};
use meridian_raft as raft;
use std::sync::Arc;

/// See the module.
pub(crate) struct Replication(pub Arc<Rpc>);

impl raft::Transport for Replication {
    fn call(&self, to: NodeId, group: GroupId, message: raft::Message) -> BoxFuture<'static, Result<Bytes>> {
        let rpc = self.0.clone();
        let request = Request::Raft { group, message: message.bytes, is_ordered: message.is_ordered };
        async move {
            // The replica's own patience ends first.
            match rpc.call(to, request, LARGE_FRAME_MAX).await? {
                Response::Raft(answer) => Ok(answer),
                _ => Err(Error::internal("a node gave an answer of another kind")),
            }
        }
        .boxed()
    }
}
