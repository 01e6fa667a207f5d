//! What replicas want done outside their lock: messages of the commit protocol to send, slices to
//! certify, outcomes to log. `crate::gateway::work` does it.

use crate::transport::rounds::RoundMessages;
use meridian_base::{BallotMessage, GroupId, Key, NodeId, Peer, Target, Timestamp, TxnId, limits};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::mpsc;

/// Something to do for a group that this node leads.
#[derive(Debug)]
pub(crate) enum Work {
    Send {
        to: Peer,
        message: BallotMessage,
    },
    /// Tell a gateway of a YES to its reserving read, with what is reserved.
    TellReserved {
        group: GroupId,
        node: NodeId,
        id: TxnId,
        at: Timestamp,
        targets: Vec<Target>,
    },
    /// Messages about rounds of `majority`, for another site or for this one.
    Rounds {
        to: GroupId,
        messages: RoundMessages,
    },
    /// A row's offer has been out for too long: its site begins a ballot.
    BeginRound {
        group: GroupId,
        share: Key,
    },
    /// Certify a transaction's slice and vote.
    Certify {
        group: GroupId,
        id: TxnId,
    },
    /// All votes are known.
    Decide {
        group: GroupId,
        id: TxnId,
        at: Option<Timestamp>,
    },
}

/// Where replicas put it, under their lock.
///
/// Slices to certify and outcomes to log are as many as the transactions that a group has in hand.
/// Messages are dropped above [`limits::OUTBOX_MESSAGES_MAX`].
pub(crate) struct Outbox {
    work: mpsc::UnboundedSender<Work>,
    /// Messages that wait or are on their way.
    messages: Arc<AtomicUsize>,
}

/// A message on its way.
pub(crate) struct OnItsWay(Arc<AtomicUsize>);

impl Drop for OnItsWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Outbox {
    pub fn new() -> (Arc<Outbox>, mpsc::UnboundedReceiver<Work>) {
        let (work, received) = mpsc::unbounded_channel();
        (Arc::new(Outbox { work, messages: Arc::default() }), received)
    }
    pub fn put(&self, work: Work) {
        let is_message = matches!(work, Work::Send { .. } | Work::TellReserved { .. } | Work::Rounds { .. });
        if is_message && self.messages.fetch_add(1, Ordering::AcqRel) >= limits::OUTBOX_MESSAGES_MAX {
            self.messages.fetch_sub(1, Ordering::AcqRel);
            return;
        }
        // The receiver lives as long as the node.
        let _ = self.work.send(work);
    }

    /// A message that was put here is on its way until this is dropped.
    pub fn on_its_way(&self) -> OnItsWay {
        OnItsWay(self.messages.clone())
    }
}
