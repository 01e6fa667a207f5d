//! Accepting connections, counting them, routing cancel requests, and ending them.

use super::connection;
use super::wire::same_key;
use crate::machine::MachineListener;
use crate::threads::SessionThreads;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use meridian_base::{Error, SessionId};
use meridian_sql::session::{self, CancelHandle, SessionFactory, Shared, TransactionStatus};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

/// Clients that are told at once that the node is starting; more wait for their turn.
const EARLY_MAX: usize = 100;
/// How long such a client may take to say who it is.
const EARLY_PATIENCE: Duration = Duration::from_secs(5);

/// Does some work, and meanwhile answers clients that come too early with what hinders it, or
/// 57P03.
pub async fn refuse_while<T>(
    listener: &MachineListener,
    hindrance: &watch::Receiver<Option<Error>>,
    work: impl Future<Output = T>,
) -> T {
    let mut work = std::pin::pin!(work);
    let mut early = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            Some(_) = early.next(), if !early.is_empty() => {}
            accepted = listener.accept_socket(), if early.len() < EARLY_MAX => match accepted {
                Ok((stream, peer)) => {
                    let starting = || Error::sql("57P03", "the database system is starting up");
                    let why = hindrance.borrow().clone().unwrap_or_else(starting);
                    let told = async move { connection::refuse_early(stream, &peer, why).await };
                    early.push(tokio::time::timeout(EARLY_PATIENCE, told));
                }
                Err(e) => {
                    tracing::warn!("cannot accept a client: {e}");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            },
        }
    }
}

/// How a server behaves.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// More clients than this get 53300.
    pub max_connections: usize,
    /// How long a client may take to say who it is (PostgreSQL: `authentication_timeout`).
    pub startup_timeout: Duration,
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions { max_connections: 1_000, startup_timeout: Duration::from_secs(60) }
    }
}

/// How far the end of a server has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Serving,
    /// No new clients; sessions end when they are outside a transaction block.
    Draining,
    /// All sessions end.
    Ending,
}

/// The SQL server of one node. Cheap to clone.
#[derive(Clone)]
pub struct PgServer(Arc<Inner>);

struct Inner {
    sessions: Arc<dyn SessionFactory>,
    shared: Arc<Shared>,
    options: ServerOptions,
    phase: watch::Sender<Phase>,
    seats: Mutex<Seats>,
    /// As many as there are open sockets, and one.
    sockets: Arc<()>,
}

/// So many sockets more than `max_connections` may be open: of clients that have not said who they
/// are, or are being refused.
const STARTING_MAX: usize = 100;

#[derive(Default)]
struct Seats {
    last_id: u64,
    /// Clients that said who they are.
    taken: BTreeMap<SessionId, Option<(Bytes, CancelHandle)>>,
}

/// A client's place among `max_connections`; given back when dropped.
pub struct Seat<'a> {
    server: &'a PgServer,
    id: SessionId,
}

impl Seat<'_> {
    /// The session's identity.
    pub fn id(&self) -> SessionId {
        self.id
    }
    /// Makes the session reachable by cancel requests.
    pub fn register(&self, key: Bytes, cancel: CancelHandle) {
        self.server.0.seats.lock().taken.insert(self.id, Some((key, cancel)));
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.server.0.seats.lock().taken.remove(&self.id);
    }
}

/// Ends when the server takes no new clients any more.
async fn stops_serving(phase: &mut watch::Receiver<Phase>) {
    let _ = phase.wait_for(|p| *p != Phase::Serving).await;
}

impl PgServer {
    /// A server of a node's sessions. `shared` is the node's, so that all its sessions share plans.
    pub fn new(sessions: Arc<dyn SessionFactory>, shared: Arc<Shared>, options: ServerOptions) -> PgServer {
        let (phase, _) = watch::channel(Phase::Serving);
        PgServer(Arc::new(Inner { sessions, shared, options, phase, seats: Mutex::default(), sockets: Arc::default() }))
    }
    /// Accepts clients until [`PgServer::shutdown`], and serves them on `threads`.
    pub async fn serve(&self, listener: MachineListener, threads: SessionThreads) {
        let mut phase = self.0.phase.subscribe();
        loop {
            tokio::select! {
                accepted = listener.accept_socket() => match accepted.and_then(|(stream, peer)| Ok((stream.into_std()?, peer))) {
                    Ok((stream, peer)) => {
                        let (server, socket) = (self.clone(), self.0.sockets.clone());
                        if Arc::strong_count(&socket) > self.0.options.max_connections + STARTING_MAX + 1 {
                            tracing::debug!("connection from {peer} refused: too many are open");
                            continue;
                        }
                        threads.serve(stream, move |stream| async move {
                            server.serve_stream(stream, &peer).await;
                            drop(socket);
                        });
                    }
                    // Out of descriptors, or the client left already: neither is a reason to stop.
                    Err(e) => {
                        tracing::warn!("cannot accept a client: {e}");
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                },
                () = stops_serving(&mut phase) => return,
            }
        }
    }
    /// Serves one client over a stream, to its end.
    pub async fn serve_stream<S: AsyncRead + AsyncWrite + Unpin + Send>(&self, stream: S, peer: &str) {
        connection::run(self, stream, peer).await;
    }
    /// Ends the server: no new clients; sessions outside a transaction block end with 57P01 at
    /// once, the others when their block ends, and all after `grace`.
    pub async fn shutdown(&self, grace: Duration) {
        self.0.phase.send_replace(Phase::Draining);
        self.wait_empty(grace).await;
        self.0.phase.send_replace(Phase::Ending);
        for (_, cancel) in self.0.seats.lock().taken.values().flatten() {
            cancel.terminate();
        }
        /// How long the last words may take.
        const LAST_WORDS: Duration = Duration::from_secs(1);
        self.wait_empty(LAST_WORDS).await;
    }
    async fn wait_empty(&self, at_most: Duration) {
        let deadline = tokio::time::Instant::now() + at_most;
        while self.connections() > 0 && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    /// How many clients are connected.
    pub fn connections(&self) -> usize {
        self.0.seats.lock().taken.len()
    }
    pub(super) fn sessions(&self) -> &dyn SessionFactory {
        &*self.0.sessions
    }
    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.0.shared
    }
    pub(super) fn options(&self) -> &ServerOptions {
        &self.0.options
    }
    pub(super) fn phase(&self) -> Phase {
        *self.0.phase.borrow()
    }
    pub(super) fn take_seat(&self) -> Option<Seat<'_>> {
        let mut seats = self.0.seats.lock();
        if seats.taken.len() >= self.0.options.max_connections {
            return None;
        }
        seats.last_id += 1;
        let id = SessionId(seats.last_id);
        seats.taken.insert(id, None);
        Some(Seat { server: self, id })
    }
    /// A cancel request. Whoever sends it learns nothing of what came of it.
    pub(super) fn cancel(&self, pid: i32, key: &Bytes) {
        let seats = self.0.seats.lock();
        let found = seats.taken.iter().find(|(id, _)| session::pid(**id) == pid);
        if let Some((_, Some((expected, cancel)))) = found
            && same_key(expected, key)
        {
            cancel.cancel();
        }
    }
    /// Ends when a session in this state is to end.
    pub(super) async fn wait_to_end(&self, status: TransactionStatus) {
        let last = if status == TransactionStatus::Idle { Phase::Draining } else { Phase::Ending };
        let mut phase = self.0.phase.subscribe();
        if phase.wait_for(|p| *p >= last).await.is_err() {
            std::future::pending().await
        }
    }
}
