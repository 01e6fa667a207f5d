//! The side of a connection that was called: who is let in, and how questions are answered.

use super::{CONNECT_TIMEOUT, Claim, Handler, IDLE_MAX, Me, Place, Rpc, STRANGER_FRAME_MAX};
use super::{read_body, read_message, strange_program, write_message, write_plain};
use crate::transport::backlog::{Backlog, Outgoing, REQUEST_OVERHEAD};
use crate::transport::frames::{self, ANSWER, CALL, take_header, write_loop};
use crate::transport::security::{Accepted, Caller};
use crate::transport::wire::{Hello, PROTOCOL, Request, Response, Welcome};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use meridian_base::runtime::{Listener, Stream};
use meridian_base::version::{ClusterVersion, Versions, refused_version};
use meridian_base::{Error, NodeId, envelope, limits};
use meridian_pki::join::{Binding, MESSAGE_BYTES_MAX};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio::time::Instant;

impl Rpc {
    /// Accepts connections until the listener fails.
    pub async fn serve(self: Arc<Self>, listener: Box<dyn Listener>, handler: Arc<dyn Handler>) {
        self.accept_all(listener, handler, false).await;
    }

    /// The same for a socket that only this machine's operators can open.
    pub async fn serve_local(self: Arc<Self>, listener: Box<dyn Listener>, handler: Arc<dyn Handler>) {
        self.accept_all(listener, handler, true).await;
    }

    async fn accept_all(self: Arc<Self>, mut listener: Box<dyn Listener>, handler: Arc<dyn Handler>, is_local: bool) {
        loop {
            match listener.accept().await {
                Ok((stream, from)) => {
                    let arrival = self.clone().arrived(stream, from, handler.clone(), is_local);
                    if let Some(arrival) = arrival {
                        self.tasks.spawn_protocol(arrival);
                    }
                }
                Err(e) => {
                    tracing::warn!("accepting connections from other nodes failed: {e}");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    /// Serves a connection; `None`: there is no place for it.
    fn arrived(
        self: Arc<Self>,
        stream: Box<dyn Stream>,
        from: String,
        handler: Arc<dyn Handler>,
        is_local: bool,
    ) -> Option<BoxFuture<'static, ()>> {
        // A peer with a certificate is given a place when it has shown it.
        let keys = self.protection.keys().filter(|_| !is_local).cloned();
        let place = match &keys {
            Some(_) => None,
            None => Some(self.place_for(&from)?),
        };
        let handshake = keys.as_ref().map(|keys| keys.admission.enter(&from));
        let served = async move {
            let ended = match (keys, handshake) {
                (Some(keys), Some(handshake)) => {
                    let accepted = tokio::select! {
                        biased;
                        accepted = tokio::time::timeout(CONNECT_TIMEOUT, keys.accept(stream)) => {
                            accepted.unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "no handshake")))
                        }
                        () = handshake.given_way.notified() => {
                            Err(io::Error::new(io::ErrorKind::TimedOut, "too many handshakes at once"))
                        }
                    };
                    match accepted {
                        Ok(Accepted::Joiner(stream, binding)) => {
                            // Held meanwhile: whoever has no certificate is one of those.
                            let answered = answer_joiner(stream, from.clone(), binding, &*handler).await;
                            drop(handshake);
                            answered
                        }
                        Ok(Accepted::Peer(stream, caller)) => {
                            drop(handshake);
                            let Some(_place) = self.place_for(&from) else { return };
                            self.clone().serve_connection(stream, handler, Some(caller)).await
                        }
                        Err(e) => Err(e),
                    }
                }
                _ => {
                    let _place = place;
                    let caller = is_local.then_some(Caller::Local);
                    self.clone().serve_connection(stream, handler, caller).await
                }
            };
            match ended {
                Err(e) if e.kind() == io::ErrorKind::PermissionDenied => self.say_refused(&from, &e),
                Err(e) => tracing::debug!("connection from {from} ended: {e}"),
                Ok(()) => {}
            }
        };
        Some(served.boxed())
    }

    fn place_for(&self, from: &str) -> Option<OwnedSemaphorePermit> {
        let place = self.places.clone().try_acquire_owned().ok();
        if place.is_none() {
            self.say_refused(from, &format!("there are {} connections already", limits::RPC_CONNECTIONS_MAX));
        }
        place
    }

    pub(crate) fn say_refused(&self, from: &str, why: &impl std::fmt::Display) {
        if let Some(more_before) = self.refused.note(from) {
            tracing::warn!(event = "peer_refused", more_before, "refused a node at {from}: {why}");
        }
    }

    /// Reads what a peer says of itself, and answers whether its calls are. Returns that, and what
    /// this node said of itself.
    async fn welcome(self: &Arc<Self>, stream: &mut Box<dyn Stream>, caller: Option<&Caller>) -> io::Result<(Hello, Me)> {
        let greeting: Bytes = match tokio::time::timeout(CONNECT_TIMEOUT, read_body(stream)).await {
            Ok(greeting) => greeting?,
            Err(_) => return Err(io::Error::new(io::ErrorKind::TimedOut, "no greeting")),
        };
        // The version comes first, whatever follows it in another one.
        let (protocol, _) = postcard::take_from_bytes::<u32>(&greeting).map_err(io::Error::other)?;
        if protocol != PROTOCOL {
            let why = format!("protocol version {protocol} between nodes is not this node's ({PROTOCOL})");
            write_plain(stream, &Welcome::Refused(why.clone())).await?;
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        let hello: Hello = envelope::decode(&greeting).map_err(io::Error::other)?;
        let me = self.me.read().clone();
        if hello.cluster != 0 && me.cluster == 0 {
            let claim = Claim { cluster: hello.cluster, by: hello.node, addr: hello.addr.clone(), as_node: hello.to };
            *self.claimed.lock() = Some((Instant::now(), claim));
        }
        if let Some(why) = caller.and_then(|caller| misnamed(&hello, caller, &me)) {
            write_plain(stream, &Welcome::Refused(why.clone())).await?;
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        if let Some(why) = refuse(&hello, &me, self.versions, ClusterVersion(self.cluster_version.load(Ordering::Acquire))) {
            write_plain(stream, &Welcome::Refused(why.clone())).await?;
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        if hello.node != NodeId(0) && self.is_revoked(hello.node) {
            write_plain(stream, &Welcome::Revoked).await?;
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{} was decommissioned", hello.node)));
        }
        if hello.to != NodeId(0) && hello.to != me.node {
            write_plain(stream, &Welcome::Elsewhere(me.node)).await?;
            return Err(io::Error::new(io::ErrorKind::NotConnected, format!("{} asks for node {} here", hello.node, hello.to)));
        }
        let (region, zone) = (me.place.region.clone(), me.place.zone.clone());
        let welcome = Welcome::Accepted { node: me.node, region, zone, versions: self.versions };
        write_plain(stream, &welcome).await?;
        if me.cluster != 0 && hello.cluster == me.cluster && self.is_elsewhere(hello.node, &hello.addr) {
            let (rpc, node, addr) = (self.clone(), hello.node, hello.addr.clone());
            self.tasks.spawn_protocol(async move { rpc.find(node, &addr).await });
        }
        Ok((hello, me))
    }

    /// `caller`: who it is, if that is known already. Its messages have to say the same.
    async fn serve_connection(
        self: Arc<Self>,
        mut stream: Box<dyn Stream>,
        handler: Arc<dyn Handler>,
        caller: Option<Caller>,
    ) -> io::Result<()> {
        let (hello, me) = self.welcome(&mut stream, caller.as_ref()).await?;
        let there = Place { region: hello.region, zone: hello.zone };
        let delay = self.delay_to(&me.place, &there);
        let passes = self.passage(me.place, there);
        let (read, write) = tokio::io::split(stream);
        let (out, outgoing, account) = self.memory.backlog();
        self.tasks.spawn_protocol(write_loop(self.runtime.clone(), write, outgoing, account, None, passes));
        let mut frames = frames::Reader::new(read, &self.memory, None);
        let caller = caller.unwrap_or(if hello.node == NodeId(0) { Caller::Stranger } else { Caller::Node(hello.node) });
        let served = Served::new(&self, hello.node);
        if hello.node != NodeId(0) && self.is_revoked(hello.node) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{} was decommissioned", hello.node)));
        }
        let answering_now = Arc::new(AtomicUsize::new(0));
        let in_hand = self.memory.requests();
        loop {
            // No more questions are read from a peer that does not read its answers, or has asked
            // too much at once.
            out.until_room().await;
            in_hand.until_it_fits().await;
            let next = tokio::select! {
                biased;
                () = served.ended.notified() => break,
                // Of a machine that is gone nothing ends a connection.
                next = tokio::time::timeout(IDLE_MAX, frames.next()) => next,
            };
            let Ok(frame) = next else { break };
            let Some(mut frame) = frame? else { break };
            let bytes = frame.len() + REQUEST_OVERHEAD;
            let (kind, call, hlc) = take_header(&mut frame);
            if kind != CALL {
                return Err(io::Error::new(io::ErrorKind::InvalidData, format!("unexpected frame of kind {kind}")));
            }
            if caller.node() == NodeId(0) && bytes > STRANGER_FRAME_MAX {
                return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a frame of {bytes} bytes from a stranger")));
            }
            let (rpc, handler, out, from) = (self.clone(), handler.clone(), out.clone(), caller.clone());
            let followed = self.clock.observe(hlc, self.runtime.physical_micros());
            let request = match envelope::decode::<Request>(&frame) {
                Ok(request) => request,
                Err(e) => {
                    let e = Error::internal(format!("malformed message from another node: {e}"));
                    rpc.answer(&out, call, Response::Error(e), delay);
                    continue;
                }
            };
            if let Err(e) = followed
                && !request.needs_no_clock()
            {
                let e = Error::unavailable(format!(
                    "the clock of {from} is {} ms ahead of this node's, more than max_offset",
                    e.ahead_by.as_millis()
                ));
                rpc.say_refused(&from.to_string(), &e);
                rpc.answer(&out, call, Response::Error(e), delay);
                continue;
            }
            let (is_ordered, is_protocol) = (request.order().is_some(), request.is_of_protocol());
            let most = if is_protocol { limits::RPC_PROTOCOL_CALLS_MAX } else { limits::RPC_CALLS_MAX };
            if answering_now.fetch_add(1, Ordering::AcqRel) >= most {
                answering_now.fetch_sub(1, Ordering::AcqRel);
                let e = Error::unavailable("too many calls on one connection wait for their answers");
                rpc.answer(&out, call, Response::Error(e), delay);
                continue;
            }
            if !is_protocol && in_hand.is_full() {
                answering_now.fetch_sub(1, Ordering::AcqRel);
                let e = Error::unavailable("the calls that wait for their answers take too much memory");
                rpc.answer(&out, call, Response::Error(e), delay);
                continue;
            }
            in_hand.add(bytes);
            let (answering_now, in_hand) = (answering_now.clone(), in_hand.clone());
            let answering = async move {
                let response = handler.handle(from, request).await;
                rpc.answer(&out, call, response, delay);
                in_hand.subtract(bytes);
                answering_now.fetch_sub(1, Ordering::AcqRel);
            };
            if !is_ordered {
                match is_protocol {
                    true => self.tasks.spawn_protocol(answering),
                    false => self.tasks.spawn(answering),
                }
                continue;
            }
            // Messages of a group's log are handed on in their order: begun here, where they arrive
            // one after the other.
            let mut answering = answering.boxed();
            if !tokio::task::unconstrained(async { futures::poll!(&mut answering).is_ready() }).await {
                self.tasks.spawn_protocol(answering);
            }
        }
        Ok(())
    }

    /// An answer that finds no room is dropped: the peer that asked has not read the ones before
    /// it.
    fn answer(&self, out: &Backlog, call: u64, response: Response, delay: Duration) {
        let frame = self.frame(ANSWER, call, &response).or_else(|e| self.frame(ANSWER, call, &Response::Error(e)));
        if let Ok(frame) = frame {
            let at = (!delay.is_zero()).then(|| Instant::now() + delay);
            out.send(Outgoing { at, frame, order: None });
        }
    }
}

/// A connection that another process has opened, for as long as it is served.
struct Served {
    rpc: Arc<Rpc>,
    number: u64,
    ended: Arc<Notify>,
}

impl Served {
    fn new(rpc: &Arc<Rpc>, node: NodeId) -> Served {
        let number = rpc.next_served.fetch_add(1, Ordering::Relaxed);
        let ended = Arc::new(Notify::new());
        rpc.served.lock().insert(number, (node, ended.clone()));
        Served { rpc: rpc.clone(), number, ended }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.rpc.served.lock().remove(&self.number);
    }
}

/// A process that wants to become a node has this long to say so, and to read the answer.
const JOINER_TIMEOUT: Duration = Duration::from_secs(5);

/// Answers a process without a certificate: one message each way.
async fn answer_joiner(mut stream: Box<dyn Stream>, addr: String, binding: Binding, handler: &dyn Handler) -> io::Result<()> {
    let ask = match tokio::time::timeout(JOINER_TIMEOUT, read_message(&mut stream, MESSAGE_BYTES_MAX)).await {
        Ok(ask) => ask?,
        Err(_) => return Err(io::Error::new(io::ErrorKind::TimedOut, "it does not say what it wants")),
    };
    let answer = handler.join(addr, binding, ask.to_vec()).await;
    let answering = async {
        write_message(&mut stream, &answer).await?;
        stream.shutdown().await
    };
    tokio::time::timeout(JOINER_TIMEOUT, answering).await.map_err(io::Error::other)?
}

/// Why a peer is not who it says it is; `None`: it is.
fn misnamed(hello: &Hello, caller: &Caller, me: &Me) -> Option<String> {
    if hello.node != caller.node() {
        return Some(format!("{caller} says that it is node {}", hello.node));
    }
    let is_of_cluster = match caller {
        // A process that founds a cluster with a certificate that it was given is of none yet.
        Caller::Node(_) => hello.cluster == me.cluster || me.cluster == 0,
        Caller::Role(_) | Caller::Local | Caller::Stranger => hello.cluster == 0 || hello.cluster == me.cluster,
    };
    (!is_of_cluster).then(|| format!("{caller} says that it is of cluster {:032x}", hello.cluster))
}

fn refuse(hello: &Hello, me: &Me, versions: Versions, cluster: ClusterVersion) -> Option<String> {
    if !hello.versions.meet(&versions) {
        return Some(strange_program(hello.versions, versions));
    }
    if hello.cluster != 0 && me.cluster == hello.cluster && hello.versions.newest < cluster {
        return Some(refused_version(hello.versions, cluster).message().to_string());
    }
    if hello.cluster != 0 && me.cluster != 0 && hello.cluster != me.cluster {
        return Some(format!(
            "wrong cluster: {} belongs to cluster {:032x}, this node to {:032x}",
            hello.node, hello.cluster, me.cluster
        ));
    }
    None
}
