//! What nodes say to each other.
//!
//! A connection starts with [`Hello`] and [`Welcome`]; then frames go both ways, each with the
//! sender's clock:
//!
//! ```text
//! frame = len u32 | kind u8 | call u64 | hlc u64 | body (an envelope)
//! ```
//!
//! The protocol has a version from the first day; nodes of another one are refused by name. A tag
//! that is unknown is an error for that call, never for the connection.

mod authority;
mod joining;
mod nodes;
mod reads;
mod transactions;

pub use authority::{KeepRotation, RotationStatus, RotationStep};
pub use joining::{Ask, IssueCertificate, Issued, Joined, Mustered, Newcomer, Redemption, TokenText};
pub use nodes::{ClockReport, GroupStatus, NodeRecord, NodeStatus, Ping, Silence, Standing, StepWait};
pub use reads::{Found, GlobalView, ReadAnswer, ReadOp, ReadResult, ReplicaAnswer, ReplicaView, View, WireBusy, WireLocking};
pub use transactions::{Knowledge, Known, PreparedTransaction, Said};

use crate::transport::rounds::{Lead, RoundMessages};
use bytes::Bytes;
use meridian_base::escrow::Offer;
use meridian_base::record::{Build, SchemaGrant};
use meridian_base::version::{ClusterVersion, Versions};
use meridian_base::{
    BallotMessage, CommitOutcome, CommitRequest, Conflict, DescriptorId, Error, Fresh, GroupId, Key, Mutation, NodeId, ReadEntry,
    Refusal, SchemaUse, SchemaVersion, Timestamp, TxnId, envelope,
};
use meridian_pki::join::{StoredToken, TokenId};
use meridian_pki::seal::Seal;
use meridian_region::Owner;
use meridian_sql::catalog::CatalogChange;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The version of this protocol.
pub const PROTOCOL: u32 = 6;

/// The first message of the side that connects.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hello {
    pub protocol: u32,
    /// 0: not a member yet (joining, or asking for the status).
    pub cluster: u128,
    pub node: NodeId,
    pub region: String,
    pub zone: String,
    /// Whom the sender takes the receiver for; 0: any node that listens there. No node answers for
    /// another: the node that had an address may be gone, and another one be there.
    pub to: NodeId,
    /// Where the sender listens, if it is a member.
    pub addr: String,
    /// What the sender's program understands.
    #[serde(default)]
    pub versions: Versions,
}

/// The answer to [`Hello`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Welcome {
    Accepted {
        node: NodeId,
        region: String,
        zone: String,
        /// What the receiver's program understands.
        #[serde(default)]
        versions: Versions,
    },
    /// Another cluster, another protocol, other cluster versions.
    Refused(String),
    /// The receiver is not [`Hello::to`] but this node; 0: no member of a cluster yet.
    Elsewhere(NodeId),
    /// The sender was decommissioned. With certificates it is told so in the handshake before.
    Revoked,
}

/// A question to a node.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Request {
    /// A message of the consensus protocol, opaque here.
    Raft {
        group: GroupId,
        message: Bytes,
        is_ordered: bool,
    },
    /// Reads at a group's primary.
    Read {
        group: GroupId,
        view: View,
        ops: Vec<ReadOp>,
    },
    /// Reads at the replica on the node asked, at its closed timestamp.
    ReadReplica {
        group: GroupId,
        view: ReplicaView,
        ops: Vec<ReadOp>,
    },
    /// Reads at the replica on the node asked, at a moment of the past.
    ReadPast {
        group: GroupId,
        at: Timestamp,
        /// How long it may take until the replica has got there.
        patience: Duration,
        ops: Vec<ReadOp>,
    },
    /// Reads of GLOBAL rows at the replica on the node asked, at present time.
    ReadGlobal {
        group: GroupId,
        view: GlobalView,
        /// How long it may take until the replica has got there.
        patience: Duration,
        ops: Vec<ReadOp>,
    },
    /// Up to when what was read of GLOBAL rows holds, at least `needed`, at the replica on the node
    /// asked.
    Holds {
        group: GroupId,
        entries: Vec<ReadEntry>,
        needed: Timestamp,
        patience: Duration,
    },
    /// How far the replicas on the node asked can serve everything.
    Settled(Vec<GroupId>),
    /// From a group's primary to the nodes that hold a replica: what it promises, while its log has
    /// nothing to say.
    Closed(Vec<ClosedPromise>),
    /// A transaction's slice to certify and commit.
    Commit {
        group: GroupId,
        /// Whose queue entries end with it.
        owner: Owner,
        request: CommitRequest,
    },
    /// Part of a read-only round: whether all of this is still the newest at the group's primary,
    /// whose clock is then above `at`.
    Check {
        group: GroupId,
        entries: Vec<ReadEntry>,
        schema: SchemaUse,
        at: Timestamp,
    },
    /// A message of the commit over several groups, for a group's primary, or for a gateway.
    Ballot {
        group: Option<GroupId>,
        message: BallotMessage,
    },
    /// The transaction is over without a commit: leave the wait queues.
    Release {
        group: GroupId,
        owner: Owner,
    },
    /// A new node asks for its identity, or a member registers its addresses.
    Join {
        /// 0: new. Said here, since the node that is asked passes it on to the catalog's primary,
        /// and the sender is not the node then.
        node: NodeId,
        /// Of a new node: drawn at random and kept in its directory before it asks. A node that
        /// asks again with it gets the same identity.
        token: u128,
        addr: String,
        sql_addr: String,
        region: String,
        zone: String,
        /// By a node that took the receiver for the catalog's primary. It goes no further: two
        /// nodes that take each other for it would pass it to and fro for ever.
        is_passed_on: bool,
        /// What the program of the node understands.
        #[serde(default)]
        versions: Versions,
    },
    /// From a process without an identity to the process that listens at an address that it was
    /// told.
    Muster {
        from: Newcomer,
        ask: Ask,
    },
    /// From an operator to a process without an identity: found a cluster.
    Init,
    Ping(Ping),
    /// A step of a schema change, for the catalog's primary. See [`crate::schema::coordinator`].
    ChangeCatalog {
        /// Drawn once by the gateway: the step is sent again under the same one until what became
        /// of it is known.
        id: TxnId,
        base: SchemaVersion,
        change: CatalogChange,
        /// What a transaction that commits with it did elsewhere.
        with: Vec<Slice>,
        /// An earlier copy may have been taken.
        is_again: bool,
    },
    /// From the catalog's primary to every live node: answer when you plan with this version.
    AwaitVersion {
        version: SchemaVersion,
    },
    /// From the catalog's primary to a group's: log this grant, answer when it is durable.
    Grant {
        group: GroupId,
        grant: SchemaGrant,
    },
    /// What `meridian node status` shows.
    Status,
    /// What is prepared at the groups that the node asked leads.
    Transactions,
    /// The groups that the node asked leads, with their replicas.
    Groups,
    /// From a node that holds a replica to the group's primary: am I a member?
    IsMember {
        group: GroupId,
    },
    /// What the operator wants of a node, for the catalog's primary.
    Stand {
        node: NodeId,
        standing: Standing,
        /// As with `Join`.
        is_passed_on: bool,
    },
    /// A YES to a reserving read, with what was read at its timestamp. A node that does not know
    /// this message refuses it, and the gateway runs its statement again.
    Reserved {
        id: TxnId,
        from: GroupId,
        at: Timestamp,
        found: Found,
    },
    /// For a group's primary: everybody that the waiter waits for there, directly or through
    /// others.
    AheadOf {
        group: GroupId,
        waiter: Owner,
    },
    /// For a gateway: which of these transactions of its sessions wait in queues, and where.
    WaitsOf(Vec<Owner>),
    /// What the node's clock shows. Asked and answered whatever the other one's clock is.
    Clock,
    /// From an operator: the clock of the node asked was ahead once, and may be moved there again.
    AdvanceClock {
        by: Duration,
    },
    /// For a gateway: forget the numbers drawn of a sequence (`setval`).
    ForgetDrawn {
        sequence: DescriptorId,
    },
    /// For a group's primary: leave the queues of these keys; the transaction goes on.
    ReleaseKeys {
        group: GroupId,
        owner: Owner,
        keys: Vec<Key>,
    },
    /// For a node that the sender does not reach, while the receiver does
    /// ([`crate::membership::reach`]).
    Relay {
        to: NodeId,
        /// How long the sender waits.
        patience: Duration,
        request: Passed,
        /// Who the sender is, for the receiver.
        #[serde(default)]
        seal: Option<Seal>,
    },
    /// The same, passed on.
    Relayed {
        from: NodeId,
        request: Passed,
        #[serde(default)]
        seal: Option<Seal>,
    },
    /// What the groups that the node asked leads know of a transaction, and whether it counts the
    /// transaction's votes.
    Knows(TxnId),
    /// For a group's primary, from an operator: what is prepared and in doubt ends so.
    EndInDoubt {
        group: GroupId,
        id: TxnId,
        at: Option<Timestamp>,
    },
    /// Which formats may be written, and what each node's program understands, as the node asked
    /// knows it.
    Versions,
    /// For a site's primary: which tokens of an escrow share are free. From
    /// `ClusterVersion::ESCROW` on.
    Share {
        group: GroupId,
        key: Key,
    },
    /// For a site's primary: messages of rounds of `majority`. From `ClusterVersion::ESCROW` on.
    Rounds {
        group: GroupId,
        messages: RoundMessages,
    },
    /// For the primary of a gateway's own site: tokens are wanted there. From
    /// `ClusterVersion::ESCROW` on.
    Lead {
        group: GroupId,
        lead: Lead,
        /// How long the sender waits.
        patience: Duration,
    },
    /// From an operator: make a join token that is good for so long.
    CreateToken {
        life_secs: u64,
    },
    /// For the catalog's primary: a token that a node has made.
    KeepToken(StoredToken),
    /// For the catalog's primary: what it has of a token.
    FindToken(TokenId),
    /// For the catalog's primary, from the node that has checked the proof: a process with a token
    /// becomes a node.
    Redeem(Box<Redemption>),
    /// For a node that has the authority's key: a certificate for the sender, or for the node that
    /// a token has made.
    IssueCertificate(IssueCertificate),
    /// Which authorities the node asked trusts, and which one has signed what it shows.
    Authorities,
    /// From an operator: the next step of a rotation of the authority.
    Rotate {
        step: RotationStep,
        /// Without waiting for nodes that are not ready.
        is_forced: bool,
    },
    /// For the catalog's primary: how far a rotation is.
    KeepRotation(Box<KeepRotation>),
    /// For a group's primary: have all replicas fill a new index. From `ClusterVersion::ESCROW` on.
    Build {
        group: GroupId,
        build: Build,
    },
    /// How far a build is at the replica on the node asked.
    BuildState {
        group: GroupId,
        index: u32,
        at: Timestamp,
        /// The entry of the log that asks for it.
        entry: u64,
        /// Whether the index has changed since is asked, up to this time.
        through: Option<Timestamp>,
    },
    /// For a group's primary: a piece of a large transaction's slice ([`Request::CommitBrought`]).
    /// From `ClusterVersion::ESCROW` on.
    Bring {
        id: TxnId,
        /// Counted from 0.
        number: u32,
        reads: Vec<ReadEntry>,
        writes: Vec<Mutation>,
    },
    /// [`Request::Commit`] of a slice whose reads and writes were brought before, in so many
    /// pieces. From `ClusterVersion::ESCROW` on.
    CommitBrought {
        group: GroupId,
        owner: Owner,
        request: CommitRequest,
        pieces: u32,
    },
}

impl Request {
    /// Whether it keeps the cluster together, in time, and is answered without computing or
    /// blocking for long.
    pub(crate) fn is_of_protocol(&self) -> bool {
        match self {
            Request::Raft { .. } | Request::Ping(_) | Request::Closed(_) | Request::Clock => true,
            Request::Relay { request, .. } | Request::Relayed { request, .. } => request.is_of_protocol,
            _ => false,
        }
    }

    /// The group whose ordered messages it must not overtake
    /// ([`meridian_raft::Message::is_ordered`]).
    pub(crate) fn order(&self) -> Option<GroupId> {
        match self {
            Request::Raft { group, is_ordered: true, .. } => Some(*group),
            Request::Relay { request, .. } | Request::Relayed { request, .. } => request.order,
            _ => None,
        }
    }

    /// Whether it is answered whatever the clocks show: it is about clocks that differ, or asks who
    /// is there. A process that took the refusal of a member for silence might found a second
    /// cluster.
    pub(crate) fn needs_no_clock(&self) -> bool {
        matches!(self, Request::Clock | Request::AdvanceClock { .. } | Request::Muster { ask: Ask::Who, .. })
    }

    /// Whether a transaction sends it, or the vote on one. The rest is what keeps the cluster
    /// together.
    pub(crate) fn is_of_transaction(&self) -> bool {
        match self {
            Request::Read { .. }
            | Request::ReadReplica { .. }
            | Request::ReadPast { .. }
            | Request::ReadGlobal { .. }
            | Request::Holds { .. }
            | Request::Settled(_)
            | Request::Commit { .. }
            | Request::Bring { .. }
            | Request::CommitBrought { .. }
            | Request::Check { .. }
            | Request::Ballot { .. }
            | Request::Reserved { .. }
            | Request::Release { .. }
            | Request::AheadOf { .. }
            | Request::ForgetDrawn { .. }
            | Request::ReleaseKeys { .. }
            | Request::Share { .. }
            | Request::Rounds { .. }
            | Request::Lead { .. }
            | Request::WaitsOf(_) => true,
            Request::Relay { request, .. } | Request::Relayed { request, .. } => request.is_of_transaction,
            Request::Raft { .. }
            | Request::Closed(_)
            | Request::Join { .. }
            | Request::Muster { .. }
            | Request::Init
            | Request::Ping(_)
            | Request::ChangeCatalog { .. }
            | Request::AwaitVersion { .. }
            | Request::Grant { .. }
            | Request::Status
            | Request::Transactions
            | Request::Groups
            | Request::IsMember { .. }
            | Request::Clock
            | Request::Versions
            | Request::AdvanceClock { .. }
            | Request::Knows(_)
            | Request::EndInDoubt { .. }
            | Request::CreateToken { .. }
            | Request::KeepToken(_)
            | Request::FindToken(_)
            | Request::Redeem(_)
            | Request::IssueCertificate(_)
            | Request::Authorities
            | Request::Rotate { .. }
            | Request::KeepRotation(_)
            | Request::Build { .. }
            | Request::BuildState { .. }
            | Request::Stand { .. } => false,
        }
    }

    /// Whether a third node may pass it on. Pings and questions about clocks measure the way
    /// itself. The consensus protocol's leases begin when a message is sent, so they bear a longer
    /// way.
    pub(crate) fn may_be_relayed(&self) -> bool {
        !matches!(
            self,
            Request::Ping(_) | Request::Clock | Request::AdvanceClock { .. } | Request::Relay { .. } | Request::Relayed { .. }
        )
    }
}

/// A request on its way through a third node, encoded: a request within a request within a request,
/// and so on, would be decoded by recursion, as deep as its sender likes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Passed {
    /// As those of the request.
    order: Option<GroupId>,
    is_of_protocol: bool,
    is_of_transaction: bool,
    request: Bytes,
}

impl Passed {
    /// Of a request that may be passed on.
    pub fn new(request: &Request) -> meridian_base::Result<Passed> {
        let encoded = envelope::encode(request);
        Ok(Passed {
            order: request.order(),
            is_of_protocol: request.is_of_protocol(),
            is_of_transaction: request.is_of_transaction(),
            request: encoded.into(),
        })
    }
    /// Its bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.request
    }
    /// The request, if it may be passed on.
    pub(crate) fn open(&self) -> meridian_base::Result<Request> {
        let request: Request =
            envelope::decode(&self.request).map_err(|e| Error::internal(format!("malformed message from another node: {e}")))?;
        match request.may_be_relayed() {
            true => Ok(request),
            false => Err(Error::unavailable("a request of this kind is not passed on")),
        }
    }
}

/// The answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Response {
    Raft(Bytes),
    Read(ReadAnswer),
    ReadReplica(ReplicaAnswer),
    ReadPast(Vec<ReadResult>),
    Holds(std::result::Result<Timestamp, Conflict>),
    /// In the order of the question; the node may hold none.
    Settled(Vec<Option<Timestamp>>),
    /// With a conflict, the newest versions of what was out of date.
    Commit(CommitOutcome, Vec<Fresh>),
    Checked(std::result::Result<(), (Conflict, Vec<Fresh>)>),
    Done,
    Joined(Joined),
    Mustered(Mustered),
    Pong(Ping),
    CatalogChanged(Changed),
    Granted {
        bound: Timestamp,
    },
    Status(Vec<NodeStatus>),
    Transactions(Vec<PreparedTransaction>),
    Groups(Vec<GroupStatus>),
    IsMember(bool),
    /// Not the primary; perhaps this one is.
    NotPrimary {
        hint: Option<NodeId>,
    },
    Error(Error),
    Owners(Vec<Owner>),
    WaitsOf(Vec<(Owner, Vec<GroupId>)>),
    Clock(ClockReport),
    Knows(Knowledge),
    /// What a transaction that was in doubt has ended as.
    Ended(Said),
    Versions(ClusterVersions),
    Share {
        /// `None`: the site has no share of the row.
        offer: Option<Offer>,
        /// Everything that the site has acknowledged is at or below it.
        now: Timestamp,
    },
    /// Whether the site has what was wanted.
    Led(bool),
    NewToken(TokenText),
    Token(Option<StoredToken>),
    Redeemed(std::result::Result<NodeId, meridian_pki::join::Refusal>),
    Issued(Issued),
    Authorities(meridian_pki::rotation::Report),
    Rotation(RotationStatus),
    /// Which time the rows are of that an index is filled from, and which entry of the log asks for
    /// it.
    Building {
        at: Timestamp,
        entry: u64,
    },
    BuildState(BuildState),
}

/// See [`Request::BuildState`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildState {
    /// The replica has the entry of the log, and the index.
    pub is_paid: bool,
    /// No two rows had the same entry; `None`: not known here.
    pub is_unique: Option<bool>,
    /// The index has not changed since, up to the time asked for; `None`: not known yet.
    pub is_as_built: Option<bool>,
    /// The group's replicas, as the one asked knows them.
    pub members: Vec<NodeId>,
}

/// What `meridian node status` says of versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterVersions {
    pub cluster: ClusterVersion,
    /// The members.
    pub nodes: Vec<(NodeId, Versions)>,
}

/// A transaction's slice for one group, on its way to the coordinator of a schema change that
/// commits with it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Slice {
    pub group: GroupId,
    /// Its id is the coordinator's to give.
    pub request: CommitRequest,
    /// See [`meridian_base::Prepare::has_queued`].
    pub has_queued: bool,
}

/// What became of a step of a schema change.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Changed {
    /// Committed at this timestamp.
    Done { version: SchemaVersion, at: Timestamp },
    /// Another step made the version after its base: it has not happened and never will.
    Stale,
    /// The transaction that was to commit with it was refused by these groups. It never will
    /// happen.
    Refused(Vec<(GroupId, Refusal)>),
    /// It was not taken, and may be asked for again.
    NotTaken,
    /// It was taken and may have committed: a gateway that asks again is told.
    Unknown,
    /// It may have committed, so long ago that nobody remembers.
    Forgotten,
}

/// «No version will appear at or below `closed` that is not in the log by entry `index`, except
/// those of transactions prepared by then».
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosedPromise {
    pub group: GroupId,
    pub closed: Timestamp,
    pub index: u64,
}

impl Response {
    /// The same of an answer: see [`Request::needs_no_clock`].
    pub(crate) fn needs_no_clock(&self) -> bool {
        matches!(self, Response::Clock(_) | Response::Mustered(Mustered::Member { .. }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::room::Left;
    use meridian_pki::PublicKey;

    #[test]
    fn what_was_written_is_read() {
        let mut fixtures = meridian_fixtures::Fixtures::open(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/messages.txt"));
        fixtures.value::<Hello>("hello");
        fixtures.kinds::<Welcome>("welcome");
        fixtures.kinds::<Request>("request");
        fixtures.kinds::<Response>("response");
        // What stands inside of these.
        fixtures.kinds::<Changed>("changed");
        fixtures.kinds::<Ask>("muster");
        fixtures.kinds::<Mustered>("mustered");
        fixtures.kinds::<Standing>("standing");
        fixtures.kinds::<Said>("said");
        fixtures.kinds::<ReadOp>("read");
        fixtures.kinds::<WireLocking>("locking");
        fixtures.kinds::<WireBusy>("busy rows");
        fixtures.kinds::<ReadResult>("read result");
        fixtures.kinds::<Found>("found");
        fixtures.kinds::<RotationStep>("step of a rotation");
        fixtures.kinds::<Left>("room");
        fixtures.value::<View>("view");
        fixtures.value::<ReplicaView>("view of a replica");
        fixtures.value::<GlobalView>("view of global rows");
        fixtures.value::<ReplicaAnswer>("answer of a replica");
        fixtures.value::<ReadAnswer>("answer of a primary");
        fixtures.value::<Redemption>("redemption");
        fixtures.value::<IssueCertificate>("issue of a certificate");
        fixtures.value::<Issued>("issued");
        fixtures.value::<BuildState>("build state");
        fixtures.value::<Passed>("passed on");
        fixtures.value::<ClusterVersions>("cluster versions");
        fixtures.value::<Slice>("slice");
        fixtures.value::<ClosedPromise>("closed");
        fixtures.value::<Joined>("joined");
        fixtures.value::<Newcomer>("newcomer");
        fixtures.value::<NodeRecord>("node record");
        fixtures.value::<Ping>("ping");
        fixtures.value::<Silence>("silence");
        fixtures.value::<PreparedTransaction>("prepared");
        fixtures.value::<Knowledge>("knowledge");
        fixtures.value::<Known>("known");
        fixtures.value::<ClockReport>("clock");
        fixtures.value::<NodeStatus>("node status");
        fixtures.value::<GroupStatus>("group status");
        fixtures.value::<StepWait>("schema step that waits");
        fixtures.value::<RotationStatus>("status of a rotation");
        fixtures.value::<KeepRotation>("rotation to keep");
        fixtures.value::<RoundMessages>("messages of rounds");
        fixtures.value::<Lead>("round to lead");
        fixtures.value::<Owner>("owner of a queue entry");
        fixtures.value::<PublicKey>("public key");
        fixtures.value::<Seal>("seal");
        fixtures.finish();
    }

    /// Each of them would be decoded within the one before it, by recursion.
    #[test]
    fn what_is_passed_on_is_no_deeper_than_one_request() {
        let mut request = Request::Status;
        for _ in 0..3_000 {
            let passed = Passed { order: None, is_of_protocol: false, is_of_transaction: false, request: Bytes::new() };
            let inner = envelope::encode(&request);
            request = Request::Relayed { from: NodeId(1), request: Passed { request: inner.into(), ..passed }, seal: None };
        }
        let frame = envelope::encode(&request);
        let Request::Relayed { request, .. } = envelope::decode(&frame).expect("decodes") else { panic!("another request") };
        assert_eq!(request.open().map(drop).unwrap_err().message(), "a request of this kind is not passed on");
        let passed = Passed::new(&Request::Status).expect("encodes").open();
        assert!(matches!(passed, Ok(Request::Status)));
    }
}
