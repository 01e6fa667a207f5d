//! Counting connections, routing cancel requests, and ending them.

use super::clients::{Guesses, Security};
use super::wire::same_key;
use bytes::Bytes;
use meridian_base::SessionId;
use meridian_node::refusals::Refusals;
use meridian_node::strangers::{Place, Strangers};
use meridian_sql::session::{self, CancelHandle, SessionFactory, Shared};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How a server behaves.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// More clients than this get 53300.
    pub max_connections: usize,
    /// How long a client may take to say who it is (PostgreSQL: `authentication_timeout`).
    pub startup_timeout: Duration,
    /// What clients have to prove, and TLS.
    pub security: Security,
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions { max_connections: 1_000, startup_timeout: Duration::from_secs(60), security: Security::default() }
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
    /// Clients that have not proved who they are.
    strangers: Strangers,
    /// When it was last said that one of them had to go.
    said: Mutex<Option<Instant>>,
    guesses: Guesses,
    refusals: Refusals,
    /// See [`super::login`]: until the cluster has one.
    own_secret: [u8; 32],
}

/// So many connections more than `max_connections` may be open: of clients that have not said who
/// they are.
const STARTING_MAX: usize = 100;
/// How often it is said that one of these had to go.
const SAID_EVERY: Duration = Duration::from_secs(10);

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

impl PgServer {
    /// A server of a node's sessions. `shared` is the node's, so that all its sessions share plans.
    pub fn new(sessions: Arc<dyn SessionFactory>, shared: Arc<Shared>, options: ServerOptions) -> PgServer {
        let (phase, _) = watch::channel(Phase::Serving);
        PgServer(Arc::new(Inner {
            sessions,
            shared,
            options,
            phase,
            seats: Mutex::default(),
            strangers: Strangers::default(),
            said: Mutex::default(),
            guesses: Guesses::default(),
            refusals: Refusals::default(),
            own_secret: meridian_pki::secret::random(),
        }))
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
        let deadline = Instant::now() + at_most;
        while self.connections() > 0 && Instant::now() < deadline {
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
    pub(super) fn refusals(&self) -> &Refusals {
        &self.0.refusals
    }
    pub(super) fn guesses(&self) -> &Guesses {
        &self.0.guesses
    }
    pub(super) fn own_secret(&self) -> &[u8; 32] {
        &self.0.own_secret
    }
    pub(super) fn options(&self) -> &ServerOptions {
        &self.0.options
    }
    pub(super) fn phase(&self) -> Phase {
        *self.0.phase.borrow()
    }
    /// Follows [`PgServer::phase`].
    pub(super) fn watch_phase(&self) -> watch::Receiver<Phase> {
        self.0.phase.subscribe()
    }
    /// A place for a client until it has proved who it is. Where there are too many, the one that
    /// has waited longest has to go.
    pub(super) fn enter(&self, peer: &str) -> Place {
        let most = self.0.options.max_connections + STARTING_MAX - self.connections();
        let before = self.0.strangers.given_way();
        let place = self.0.strangers.enter(peer, most, usize::MAX);
        if self.0.strangers.given_way() > before {
            let mut said = self.0.said.lock();
            if said.is_none_or(|at| at.elapsed() >= SAID_EVERY) {
                *said = Some(Instant::now());
                tracing::warn!(
                    "more than {most} connections have not said who they are: those that have waited longest are ended; \
                     the last one came from {peer}"
                );
            }
        }
        place
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
    /// A cancel request. Its sender does not learn whether it had an effect.
    pub(super) fn cancel(&self, pid: i32, key: &Bytes) {
        let seats = self.0.seats.lock();
        let found = seats.taken.iter().find(|(id, _)| session::pid(**id) == pid);
        if let Some((_, Some((expected, cancel)))) = found
            && same_key(expected, key)
        {
            cancel.cancel();
        }
    }
    /// Waits for a phase, or one after it.
    pub(super) fn reaches(&self, last: Phase) -> impl Future<Output = ()> + use<> {
        let mut phase = self.0.phase.subscribe();
        async move {
            if phase.wait_for(|p| *p >= last).await.is_err() {
                std::future::pending().await
            }
        }
    }
}
