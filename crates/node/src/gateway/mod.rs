//! What a node does for the sessions of its clients: transactions ([`txn`]), and the node as SQL
//! sees it ([`env`]).
//!
//! ```text
//! sql::Session ──Environment──▶ env ──▶ txn ──▶ a replica here, or a call of another node
//! ```

pub(crate) mod builds;
pub(crate) mod certify;
pub(crate) mod delivery;
pub mod env;
pub(crate) mod foresight;
pub(crate) mod global;
pub(crate) mod in_doubt;
pub(crate) mod majority;
pub(crate) mod rounds;
pub(crate) mod temporary;
pub mod txn;
pub(crate) mod work;

use crate::local::lock::RwLock;
use crate::membership::shared::Shared;
use meridian_base::{DescriptorId, SessionId};
use meridian_sql::env::SessionRow;
use parking_lot::Mutex;
use rounds::Rounds;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;
use tokio::sync::Semaphore;
use txn::ages::Ages;
use txn::deadlock::Waiting;
use txn::overlay::Overlay;
use txn::protocol::Choice;
use txn::reserving::Scripts;
use txn::stale::Refusals;
use txn::{Ballots, Protocol, Tally};

/// What the transactions of a node's sessions share.
pub(crate) struct Gateway {
    pub shared: Arc<Shared>,
    /// What is newer than the replicas in this region.
    pub overlay: Overlay,
    /// Sessions that were refused because a replica was behind.
    pub refusals: Refusals,
    /// How old the work is that sessions try again.
    pub ages: Ages,
    /// Where its transactions wait for rows while they hold others elsewhere.
    pub waiting: Waiting,
    /// What sessions read in attempts whose round failed.
    pub scripts: Scripts,
    /// Rounds of redistribution of escrow columns.
    pub rounds: Rounds,
    /// Transactions of this gateway that wait for votes.
    pub ballots: Ballots,
    /// How its transactions read and commit over several regions.
    protocol: Choice,
    /// What it counts of transactions that touched other regions.
    pub tally: Mutex<Tally>,
    /// What its large transactions keep, in bytes.
    pub large: AtomicUsize,
    /// A permit for each thread that computes for a session ([`env`]). The others wait in line.
    pub computing: Arc<Semaphore>,
    /// The sessions of this node, kept by `server`.
    pub sessions: RwLock<Option<Arc<dyn Sessions>>>,
}

/// The registry of this node's client sessions.
pub trait Sessions: Send + Sync + 'static {
    fn list(&self) -> Vec<SessionRow>;
    fn cancel(&self, session: SessionId) -> bool;
    /// Forgets the numbers drawn of a sequence.
    fn forget_drawn(&self, sequence: DescriptorId);
}

/// How long a read looks for a primary, or a replica, that answers before the statement fails with
/// 57P03.
pub(crate) const READ_PATIENCE: Duration = Duration::from_secs(10);
/// How long a read in the past, or of GLOBAL rows, waits for a primary: it gets there by itself,
/// unless something prepared waits for another region.
pub(crate) const PRIMARY_PATIENCE: Duration = Duration::from_secs(3);

/// How many threads at most compute for sessions at the same time: each request needs a thread of
/// its own, and a thousand clients may send large texts.
const COMPUTING_MAX: usize = 4;

impl Gateway {
    pub fn new(shared: Arc<Shared>) -> Arc<Gateway> {
        Arc::new(Gateway {
            shared,
            overlay: Default::default(),
            refusals: Default::default(),
            ages: Default::default(),
            waiting: Default::default(),
            scripts: Default::default(),
            rounds: Default::default(),
            ballots: Default::default(),
            protocol: Default::default(),
            tally: Default::default(),
            large: AtomicUsize::new(0),
            computing: Arc::new(Semaphore::new(COMPUTING_MAX)),
            sessions: RwLock::new(None),
        })
    }

    /// How transactions that begin now read and commit over several regions.
    pub fn protocol(&self) -> Protocol {
        self.protocol.get()
    }

    /// Chooses that: see [`crate::Node::use_protocol`].
    pub fn use_protocol(&self, protocol: Protocol) {
        self.protocol.set(protocol);
    }

    /// What this gateway counted since the last call, of transactions that touched other regions.
    pub fn take_tally(&self) -> Tally {
        std::mem::take(&mut *self.tally.lock())
    }
}
