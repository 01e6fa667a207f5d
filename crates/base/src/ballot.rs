//! What the participants of a transaction over several groups, and its gateway, say to each other,
//! and what a group's log says about such a transaction.
//!
//! The protocol is crate `commit`; certification and the log's tables are crate `region`. They
//! share these words and never see each other.

use crate::id::{GroupId, NodeId, TxnId};
use crate::key::Key;
use crate::time::Timestamp;
use crate::txn::{CommitRequest, Conflict};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Asks a group for its vote. Sent by the gateway, the same to every participant except for the
/// slice and the hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepare {
    /// Every participant, the receiver included; ascending. The order is the same in every copy.
    pub participants: Vec<GroupId>,
    /// The receiver's slice. It may have no writes: a participant that was only read votes like the
    /// others.
    pub slice: CommitRequest,
    /// How long the receiver waits before it certifies: zero, or at the initiator's own group the
    /// largest one-way delay to the others (S-DUR §4.4), so that reservations at home are held for
    /// one one-way delay instead of two.
    pub hold: Duration,
    /// The transaction has waited its turn for rows of this group. One that has not is refused
    /// where others have queued for what it writes: what is read at a replica and committed from
    /// afar must not overtake them for ever.
    pub has_queued: bool,
    /// The transaction has been refused before. It waits for the outcomes of prepared transactions
    /// that have not been refused. Those wait for no outcome, so no circle of waits forms, and a
    /// transaction that has waited does not lose its turn to one that never waits.
    pub is_late: bool,
    /// The receiver certifies when every other participant has voted YES, and refuses when it would
    /// have to vote before that. It is the catalog: its descriptors are never in doubt because of a
    /// participant that cannot be reached.
    pub is_last: bool,
}

impl Prepare {
    /// Whose it is.
    pub fn id(&self) -> TxnId {
        self.slice.id
    }
}

/// A group's vote. It is durable before it is sent, and never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Vote {
    /// Prepared at this timestamp: the transaction commits at the largest of all votes', if all are
    /// YES.
    Yes(Timestamp),
    /// It aborts.
    No(Refusal),
    /// The id is at or below the group's durable watermark and the group has no record of it. To
    /// another participant it is a NO: it can only be asking if this group never voted YES, or if
    /// the transaction aborted. To the gateway it says nothing: everybody may have committed and
    /// forgotten long ago (40003).
    Forgotten,
}

/// Why a group votes NO, and what would have passed.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Refusal {
    /// `None` if it was not certification that failed: another participant voted NO or was tired of
    /// waiting for this vote, or the reason was lost with the primary that knew it.
    pub conflict: Option<Conflict>,
    /// The newest versions of what failed, for the retry. To the gateway only.
    pub fresh: Vec<Fresh>,
}

/// A key's newest version at its primary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fresh {
    pub key: Key,
    /// `None`: there is no such row.
    pub value: Option<Bytes>,
    /// When it was written; `Timestamp::MIN` if it never was.
    pub version: Timestamp,
    /// The `until` of a read entry that rests on this.
    pub until: Timestamp,
}

/// Who takes part in a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Peer {
    /// A participant: whoever is its primary now.
    Group(GroupId),
    /// The gateway: the node in the transaction's id.
    Gateway(NodeId),
}

/// A message of the commit protocol. Every one may be lost, repeated, late and out of order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BallotMessage {
    /// From the gateway to a participant.
    Prepare(Box<Prepare>),
    /// From a participant to the others and to the gateway.
    Vote { id: TxnId, from: GroupId, vote: Vote },
    /// «Vote, or refuse»: from a participant that misses this vote, or from a gateway that has
    /// waited long enough. A group that has no record of the transaction refuses it (S-DUR §3.4).
    VoteRequest { id: TxnId, from: Peer },
    /// The sender has the outcome, a commit, in its log and will not ask for votes again. `reply`:
    /// it misses the receiver's own.
    OutcomeAck { id: TxnId, from: GroupId, reply: bool },
}

impl BallotMessage {
    /// The transaction it is about.
    pub fn id(&self) -> TxnId {
        match self {
            BallotMessage::Prepare(prepare) => prepare.id(),
            BallotMessage::Vote { id, .. } | BallotMessage::VoteRequest { id, .. } | BallotMessage::OutcomeAck { id, .. } => *id,
        }
    }
}

/// What a group's log says about a transaction over several groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// Nothing, and the id is above the watermark.
    Unknown,
    /// It voted YES at this timestamp and holds its reservations.
    Prepared(Timestamp),
    /// It voted NO.
    Refused,
    /// It voted YES at `vote` and has the outcome: committed at `at`, or aborted. `vote <= at`.
    Decided { vote: Timestamp, at: Option<Timestamp> },
    /// Nothing, and the id is at or below the watermark.
    Forgotten,
}

/// The tables of a group's log, as the commit protocol asks them. Kept by `region::GroupState`: the
/// log as far as it is applied.
pub trait Ledger {
    /// What the log says about a transaction.
    fn standing(&self, id: TxnId) -> Standing;
    /// The design's `F`, durable: ids at or below it are not new.
    fn watermark(&self) -> Timestamp;
    /// The participants of a transaction that is prepared, or that has committed and is not
    /// settled; else empty.
    fn participants(&self, id: TxnId) -> &[GroupId];
    /// Every transaction that [`Ledger::participants`] answers for, ascending.
    fn unsettled(&self) -> Vec<TxnId>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_panic_the_decoder(mut bytes: Vec<u8>, tag in 0u8..5) {
            if let Some(first) = bytes.first_mut() { *first = tag; }
            let _ = postcard::from_bytes::<BallotMessage>(&bytes);
        }
        #[test]
        fn a_message_is_read_back(hlc: u64, gateway: u32, at: u64, fresh: Option<Vec<u8>>, reply: bool) {
            let id = TxnId { hlc: Timestamp(hlc), gateway: NodeId(gateway) };
            let fresh = Fresh { key: Key::new(b"k"), value: fresh.map(Bytes::from), version: Timestamp(at), until: Timestamp(at) };
            let refusal = Refusal { conflict: None, fresh: vec![fresh] };
            let messages = [
                BallotMessage::Vote { id, from: GroupId(2), vote: Vote::Yes(Timestamp(at)) },
                BallotMessage::Vote { id, from: GroupId(2), vote: Vote::No(refusal) },
                BallotMessage::Vote { id, from: GroupId(2), vote: Vote::Forgotten },
                BallotMessage::VoteRequest { id, from: Peer::Gateway(NodeId(gateway)) },
                BallotMessage::OutcomeAck { id, from: GroupId(3), reply },
            ];
            for message in messages {
                let bytes = postcard::to_stdvec(&message).unwrap();
                prop_assert_eq!(postcard::from_bytes::<BallotMessage>(&bytes).unwrap(), message);
            }
        }
    }
}
