//! The library's calls to peers, over a [`Transport`].

use super::lease::Lease;
use super::machine::SnapshotData;
use super::message::{self, Request, Response};
use super::{CommittedLeaderId, LogId, Types, Vote};
use crate::log::SNAPSHOT_THREAD;
use crate::machine::SnapshotSource;
use crate::{Message, Transport};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, FuturesOrdered};
use futures::{FutureExt, Stream, StreamExt};
use meridian_base::runtime::Runtime;
use meridian_base::{Error, GroupId, NodeId, Result, limits};
use openraft::EmptyNode;
use openraft::errors::{NetworkError, RPCError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::{RPCOption, RaftNetworkFactory, RaftNetworkV2};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, StreamAppendResult, TransferLeaderRequest,
    TransferLeaderResponse, VoteRequest, VoteResponse,
};
use openraft::storage::Snapshot;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Tells the voters in force: one set, or two during a change.
pub(crate) type Configs = Box<dyn Fn() -> Vec<BTreeSet<u32>> + Send + Sync>;

/// Messages with entries that one peer has not answered.
const PIPELINE_MAX: usize = 64;
/// The time between two of them while the first is not answered.
const PIPELINE_PACE: Duration = Duration::from_millis(5);
/// A chunk of a snapshot is sent again so often before the whole snapshot is given up.
const CHUNK_TRIES: u32 = 5;

/// What all connections of a replica share.
pub(crate) struct Network {
    pub group: GroupId,
    pub transport: Arc<dyn Transport>,
    pub timeout: Duration,
    pub runtime: Arc<dyn Runtime>,
    pub heartbeat: Duration,
    pub lease: Lease,
    /// When each peer last accepted a message of the leader, and of which term.
    pub accepted: Mutex<BTreeMap<u32, (u64, Instant)>>,
    /// Set once the library runs; there are no acknowledgements before.
    pub configs: OnceLock<Configs>,
    /// Numbers snapshot transmissions of this process; starts at a random number so that restarts
    /// differ.
    pub snapshots: AtomicU64,
}

impl Network {
    /// Calls a peer.
    pub(crate) async fn call(&self, to: u32, bytes: Bytes) -> Result<Response> {
        let patience = self.patience(bytes.len());
        self.call_within(to, Message { bytes, is_ordered: false }, patience).await
    }

    async fn call_within(&self, to: u32, message: Message, patience: Duration) -> Result<Response> {
        let call = self.transport.call(NodeId(to), self.group, message);
        let answer = tokio::time::timeout(patience, call)
            .await
            .map_err(|_| Error::unavailable(format!("{} did not answer within {patience:?}", NodeId(to))))??;
        message::decode_response(answer)
    }

    /// The timeout of a call that sends this many bytes, those of the calls before it included.
    fn patience(&self, bytes: usize) -> Duration {
        self.timeout + limits::arrival(bytes)
    }
}

/// Makes [`Peer`]s.
pub(crate) struct Peers(pub Arc<Network>);

impl RaftNetworkFactory<Types> for Peers {
    type Network = Peer;
    async fn new_client(&mut self, target: u32, _node: &EmptyNode) -> Peer {
        Peer { network: self.0.clone(), to: target }
    }
}

/// The way to one peer.
pub(crate) struct Peer {
    network: Arc<Network>,
    to: u32,
}

fn unreachable(e: &Error) -> Unreachable<Types> {
    Unreachable::new(e)
}

fn unexpected() -> RPCError<Types> {
    RPCError::Network(NetworkError::new(&Error::internal("a peer answered something else than what was asked")))
}

impl Peer {
    #[cfg(test)]
    pub(crate) fn new(network: Arc<Network>, to: u32) -> Peer {
        Peer { network, to }
    }

    #[cfg(test)]
    pub(crate) fn pipeline<'s>(
        &'s self,
        input: impl Stream<Item = AppendEntriesRequest<Types>> + Send + Unpin + 'static,
    ) -> Answers<'s> {
        Pipeline::new(self, input).answers().boxed()
    }

    async fn call(&self, message: Bytes) -> Result<Response, RPCError<Types>> {
        self.network.call(self.to, message).await.map_err(|e| RPCError::Unreachable(unreachable(&e)))
    }

    /// Sends entries, or none, and takes note of the answer for the lease.
    ///
    /// The library drops a heartbeat's call at its own time limit, one heartbeat; the answer may
    /// still come, and the peer has kept its promise all the while. On a machine without time to
    /// spare that is every answer, and without them an idle leader would have no lease, and nobody
    /// a reason to elect another one. So heartbeats are sent by tasks of their own, which hear the
    /// answers; and where the library would take the silence for a lost quorum, and refuse to
    /// append, it is told that the peer is there when an answer to something sent earlier has come
    /// meanwhile. All that follows in the library from such an answer is that the leader appends,
    /// and votes for nobody, for a little longer: what a follower has of the log it is told by
    /// other messages.
    pub(crate) fn append(&self, request: AppendEntriesRequest<Types>) -> BoxFuture<'static, Result<Response>> {
        let message = Message { bytes: message::encode_append(&request), is_ordered: false };
        let patience = self.network.patience(message.bytes.len());
        self.send_append(&request, message, patience)
    }

    fn send_append(
        &self,
        request: &AppendEntriesRequest<Types>,
        message: Message,
        patience: Duration,
    ) -> BoxFuture<'static, Result<Response>> {
        let term = request.vote.leader_id.term;
        let sending = self.deliver_append(term, message, patience);
        match request.entries.is_empty() {
            true => self.heartbeat(term, tokio::spawn(sending)).boxed(),
            false => sending.boxed(),
        }
    }

    fn heartbeat(
        &self,
        term: u64,
        mut sending: JoinHandle<Result<Response>>,
    ) -> impl Future<Output = Result<Response>> + Send + 'static {
        let (network, to, began) = (self.network.clone(), self.to, Instant::now());
        // Before the library's patience ends.
        let patience = network.heartbeat * 3 / 4;
        async move {
            let ended = |e| Err(Error::internal(format!("a heartbeat's task ended: {e}")));
            if let Ok(answer) = tokio::time::timeout(patience, &mut sending).await {
                return answer.unwrap_or_else(ended);
            }
            let accepted = network.accepted.lock().get(&to).copied();
            match accepted {
                Some((of, at)) if of == term && at >= began => Ok(Response::Append(AppendEntriesResponse::Success)),
                _ => sending.await.unwrap_or_else(ended),
            }
        }
    }

    fn deliver_append(
        &self,
        term: u64,
        message: Message,
        patience: Duration,
    ) -> impl Future<Output = Result<Response>> + Send + 'static {
        let (network, to, sent) = (self.network.clone(), self.to, Instant::now());
        async move {
            let response = network.call_within(to, message, patience).await?;
            // Any answer but a higher vote means that the peer accepts this leader, and renewed its
            // promise to it.
            if matches!(&response, Response::Append(answer) if !matches!(answer, AppendEntriesResponse::HigherVote(_)))
                && let Some(configs) = network.configs.get()
            {
                network.lease.acknowledged(term, to, sent, &configs());
                network.accepted.lock().insert(to, (term, Instant::now()));
            }
            Ok(response)
        }
    }

    async fn ask_vote(&self, request: Request) -> Result<VoteResponse<Types>, RPCError<Types>> {
        match self.call(message::encode_request(&request)).await? {
            Response::Vote(response) => Ok(response),
            _ => Err(unexpected()),
        }
    }

    /// Sends one part of a snapshot, again if necessary: the receiver ignores a repetition.
    pub(crate) async fn send_part(&self, request: &Request) -> Result<Response> {
        let message = message::encode_request(request);
        let mut tries = 1;
        loop {
            match self.network.call(self.to, message.clone()).await {
                Err(_) if tries < CHUNK_TRIES => tries += 1,
                result => return result,
            }
        }
    }

    async fn send_snapshot(
        &self,
        vote: Vote,
        meta: super::SnapshotMeta,
        mut source: Box<dyn SnapshotSource>,
    ) -> Result<SnapshotResponse<Types>, StreamingError<Types>> {
        let fail = |e: Error| StreamingError::Unreachable(unreachable(&e));
        let id = self.network.snapshots.fetch_add(1, Ordering::Relaxed);
        match self.send_part(&Request::SnapshotBegin { id, vote, meta }).await.map_err(fail)? {
            Response::Snapshot(refused) => return Ok(refused),
            Response::Chunk => {}
            _ => return Err(fail(Error::internal("unexpected answer to a snapshot"))),
        }
        let mut number = 0;
        loop {
            let (next, rest) = self.network.runtime.run_io(SNAPSHOT_THREAD, move || (source.next_chunk(), source)).await;
            source = rest;
            let Some(data) = next.map_err(fail)? else { break };
            self.send_part(&Request::SnapshotChunk { id, number, data }).await.map_err(fail)?;
            number += 1;
        }
        match self.send_part(&Request::SnapshotEnd { id, chunks: number }).await.map_err(fail)? {
            Response::Snapshot(response) => Ok(response),
            _ => Err(fail(Error::internal("unexpected answer to a snapshot"))),
        }
    }
}

type Answers<'s> = BoxStream<'s, Result<StreamAppendResult<Types>, RPCError<Types>>>;

/// Messages with entries on their way to a peer.
///
/// One at a time would let a peer in another region hear of the log once in a round trip: a record
/// would reach it, or the news that it is committed, up to a round trip late. So more are sent
/// before the answer to the first is there, not closer together than [`PIPELINE_PACE`]: a peer that
/// answers faster than that gets what has come together in the meantime in one message, as if there
/// were no pipeline.
struct Pipeline<'s, S> {
    peer: &'s Peer,
    input: S,
    in_flight: FuturesOrdered<BoxFuture<'static, Sent>>,
    /// Their bytes: an answer is worth waiting for until they can all have arrived.
    bytes_in_flight: usize,
    last_sent: Instant,
    is_over: bool,
}

/// A message and what became of it.
struct Sent {
    /// No other one was under way before it.
    is_first: bool,
    bytes: usize,
    prev: Option<LogId>,
    last: Option<LogId>,
    answer: Result<Response>,
}

impl<'s, S> Pipeline<'s, S>
where
    S: Stream<Item = AppendEntriesRequest<Types>> + Send + Unpin + 'static,
{
    fn new(peer: &'s Peer, input: S) -> Self {
        Pipeline { peer, input, in_flight: FuturesOrdered::new(), bytes_in_flight: 0, last_sent: Instant::now(), is_over: false }
    }

    fn answers(self) -> impl Stream<Item = Result<StreamAppendResult<Types>, RPCError<Types>>> + Send + 's {
        futures::stream::unfold(self, |mut pipeline| async move { Some((pipeline.next().await?, pipeline)) })
    }

    /// The next answer, in the order of the messages; sends while it waits.
    async fn next(&mut self) -> Option<Result<StreamAppendResult<Types>, RPCError<Types>>> {
        loop {
            let under_way = self.in_flight.len();
            let not_before = (under_way > 0).then(|| self.last_sent + PIPELINE_PACE);
            let input = &mut self.input;
            let request = async {
                if let Some(at) = not_before {
                    tokio::time::sleep_until(at).await;
                }
                input.next().await
            };
            tokio::select! {
                biased;
                Some(sent) = self.in_flight.next(), if under_way > 0 => return Some(self.answered(sent)),
                request = request, if !self.is_over && under_way < PIPELINE_MAX => match request {
                    Some(request) => self.send(request),
                    None => self.is_over = true,
                },
                else => return None,
            }
        }
    }

    fn send(&mut self, request: AppendEntriesRequest<Types>) {
        self.last_sent = Instant::now();
        let is_first = self.in_flight.is_empty();
        let prev = request.prev_log_id;
        let last = request.entries.last().map(|e| e.log_id).or(prev);
        // A heartbeat is alone in its stream, and follows on what the peer is known to have.
        let is_ordered = !(is_first && request.entries.is_empty());
        let message = Message { bytes: message::encode_append(&request), is_ordered };
        let bytes = message.bytes.len();
        self.bytes_in_flight += bytes;
        let patience = self.peer.network.patience(self.bytes_in_flight);
        let sending = self.peer.send_append(&request, message, patience);
        self.in_flight.push_back(async move { Sent { is_first, bytes, prev, last, answer: sending.await } }.boxed());
    }

    /// What the library is told. Nothing follows what is not a full success.
    fn answered(&mut self, sent: Sent) -> Result<StreamAppendResult<Types>, RPCError<Types>> {
        self.bytes_in_flight -= sent.bytes;
        let result = match sent.answer {
            Ok(Response::Append(AppendEntriesResponse::Conflict)) if !sent.is_first => {
                // The one before it was lost, or overtaken. That is no word about the peer's log.
                Err(RPCError::Network(NetworkError::new(&Error::unavailable("a message arrived before its predecessor"))))
            }
            // Nothing is before the first entry: no log disagrees with that.
            Ok(Response::Append(AppendEntriesResponse::Conflict)) if sent.prev.is_none() => Err(unexpected()),
            Ok(Response::Append(answer)) => Ok(answer.into_stream_result(sent.prev, sent.last)),
            Ok(_) => Err(unexpected()),
            Err(e) => Err(RPCError::Unreachable(unreachable(&e))),
        };
        if !matches!(&result, Ok(Ok(matching)) if *matching == sent.last) {
            self.is_over = true;
            (self.in_flight, self.bytes_in_flight) = (FuturesOrdered::new(), 0);
        }
        result
    }
}

impl RaftNetworkV2<Types> for Peer {
    type SnapshotData = SnapshotData;

    /// The library's own time limit (one heartbeat) is for groups without distance; ours is
    /// [`crate::GroupOptions::rpc_timeout`].
    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<Types>,
        _option: RPCOption,
    ) -> Result<AppendEntriesResponse<Types>, RPCError<Types>> {
        match self.append(request).await.map_err(|e| RPCError::Unreachable(unreachable(&e)))? {
            Response::Append(response) => Ok(response),
            _ => Err(unexpected()),
        }
    }

    fn stream_append<'s, S>(&'s mut self, input: S, _option: RPCOption) -> BoxFuture<'s, Result<Answers<'s>, RPCError<Types>>>
    where
        S: Stream<Item = AppendEntriesRequest<Types>> + Send + Unpin + 'static,
    {
        Box::pin(async move { Ok(Pipeline::new(self, input).answers().boxed()) })
    }

    async fn vote(&mut self, request: VoteRequest<Types>, _option: RPCOption) -> Result<VoteResponse<Types>, RPCError<Types>> {
        self.ask_vote(Request::Vote(request)).await
    }

    async fn pre_vote(
        &mut self,
        request: VoteRequest<Types>,
        _option: RPCOption,
    ) -> Result<VoteResponse<Types>, RPCError<Types>> {
        self.ask_vote(Request::PreVote(request)).await
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Snapshot<CommittedLeaderId, u32, EmptyNode, SnapshotData>,
        cancel: impl Future<Output = ReplicationClosed> + Send + 'static,
        _option: RPCOption,
    ) -> Result<SnapshotResponse<Types>, StreamingError<Types>> {
        let SnapshotData::Source(source) = snapshot.snapshot else {
            return Err(StreamingError::Unreachable(unreachable(&Error::internal("only an exported snapshot can be sent"))));
        };
        let send = self.send_snapshot(vote, snapshot.meta, source).fuse();
        let cancel = cancel.fuse();
        futures::pin_mut!(send, cancel);
        futures::select_biased! {
            closed = cancel => Err(StreamingError::Closed(closed)),
            result = send => result,
        }
    }

    async fn transfer_leader(
        &mut self,
        request: TransferLeaderRequest<Types>,
        _option: RPCOption,
    ) -> Result<TransferLeaderResponse<Types>, RPCError<Types>> {
        match self.call(message::encode_request(&Request::Transfer(request))).await? {
            Response::Transfer(response) => Ok(response),
            _ => Err(unexpected()),
        }
    }
}
