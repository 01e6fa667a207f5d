//! Calls for the coordinator of schema steps ([`crate::schema::coordinator`]), while it runs on
//! this node.

use crate::catalog::rows::NodeRow;
use crate::transport::wire::{Changed, KeepRotation, Redemption, Slice, Standing, StepWait};
use meridian_base::{Error, GroupId, NodeId, Result, SchemaVersion, Timestamp, TxnId};
use meridian_pki::join::{Refusal, StoredToken, TokenId};
use meridian_sql::catalog::CatalogChange;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

/// Where calls for the coordinator wait, while there is one here; and what it waits for itself.
pub(crate) struct Inbox {
    calls: Mutex<std::result::Result<mpsc::Sender<Job>, Elsewhere>>,
    waits: Mutex<Option<StepWait>>,
}

/// What callers are told where there is no coordinator.
pub(crate) type Elsewhere = Box<dyn Fn() -> Error + Send>;

pub(crate) fn elsewhere() -> Elsewhere {
    Box::new(|| Error::not_primary(GroupId::CATALOG))
}

impl Default for Inbox {
    fn default() -> Inbox {
        Inbox { calls: Mutex::new(Err(elsewhere())), waits: Mutex::default() }
    }
}

/// What a gateway asks for: see [`crate::transport::wire::Request::ChangeCatalog`].
pub(crate) struct StepCall {
    pub id: TxnId,
    /// The gateway that asks.
    pub from: NodeId,
    pub base: SchemaVersion,
    pub change: CatalogChange,
    /// A transaction that commits with it.
    pub with: Vec<Slice>,
    pub is_again: bool,
}

pub(crate) enum Job {
    Change {
        call: StepCall,
        reply: Reply,
    },
    /// A new node (id 0) with its token, or a node that says where it is.
    Register {
        row: NodeRow,
        token: u128,
        reply: oneshot::Sender<Result<NodeId>>,
    },
    /// What the operator wants of a node.
    Stand {
        node: NodeId,
        standing: Standing,
        reply: oneshot::Sender<Result<()>>,
    },
    /// A join token that a node has made.
    KeepToken {
        token: StoredToken,
        reply: oneshot::Sender<Result<()>>,
    },
    FindToken {
        token: TokenId,
        reply: oneshot::Sender<Result<Option<StoredToken>>>,
    },
    /// A process with a token becomes a node.
    Redeem {
        redemption: Box<Redemption>,
        reply: oneshot::Sender<Result<std::result::Result<NodeId, Refusal>>>,
    },
    /// The next state of a rotation of the authority.
    KeepRotation {
        keep: Box<KeepRotation>,
        reply: oneshot::Sender<Result<()>>,
    },
    Answered {
        group: GroupId,
        seq: u64,
        bound: Timestamp,
    },
}

pub(crate) type Reply = oneshot::Sender<Result<Changed>>;

impl Inbox {
    /// Asks for a step. `NotPrimary`: no coordinator here has taken it.
    pub(crate) async fn change(&self, call: StepCall) -> Result<Changed> {
        let (reply, answered) = oneshot::channel();
        if !self.send(Job::Change { call, reply })? {
            return Ok(Changed::NotTaken);
        }
        answered.await.unwrap_or(Ok(Changed::Unknown))
    }

    pub(crate) async fn ask<T>(&self, job: impl FnOnce(oneshot::Sender<Result<T>>) -> Job) -> Result<T> {
        let (tx, rx) = oneshot::channel();
        if !self.send(job(tx))? {
            return Err(Error::unavailable("the catalog's primary has too much to do"));
        }
        rx.await.unwrap_or_else(|_| Err(Error::not_primary(GroupId::CATALOG)))
    }

    /// From now on a coordinator takes the calls here.
    pub(crate) fn open(&self, calls: mpsc::Sender<Job>) {
        *self.calls.lock() = Ok(calls);
    }

    /// From now on callers are told this.
    pub(crate) fn refuse(&self, refusal: Elsewhere) {
        *self.calls.lock() = Err(refusal);
    }

    /// What the step under way waits for.
    pub(crate) fn set_waits(&self, waits: Option<StepWait>) {
        *self.waits.lock() = waits;
    }

    /// Whose schema leases the step under way waits out.
    pub(crate) fn waits(&self) -> Option<StepWait> {
        self.waits.lock().clone()
    }

    /// `false`: more wait than may.
    fn send(&self, job: Job) -> Result<bool> {
        let calls = self.calls.lock();
        match calls.as_ref().map_err(|refusal| refusal())?.try_send(job) {
            Ok(()) => Ok(true),
            Err(mpsc::error::TrySendError::Full(_)) => Ok(false),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(Error::not_primary(GroupId::CATALOG)),
        }
    }
}
