//! What the rest of the database tells of itself: nodes, sessions, groups, transactions. System
//! tables and `SHOW` statements give it to clients.

use meridian_base::{DescriptorId, GroupId, NodeId, SchemaVersion, SessionId};

/// See [`crate::env::Environment::locality`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeLocality {
    pub node: NodeId,
    pub region: String,
    pub zone: String,
    /// Where clients connect: `host:port`.
    pub sql_addr: String,
    pub is_live: bool,
}

/// See [`crate::env::Environment::sessions`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    pub session: SessionId,
    /// Who has logged in.
    pub role: DescriptorId,
    pub database: String,
    pub application: String,
    pub state: &'static str,
    pub query: String,
    /// `None`: the connection is not encrypted.
    pub encryption: Option<Encryption>,
    /// Who asks may not see what the session does.
    pub is_hidden: bool,
}

/// What a client's connection is protected with, in OpenSSL's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encryption {
    /// `TLSv1.3`.
    pub version: String,
    /// `TLS_AES_256_GCM_SHA384`.
    pub cipher: String,
    /// How long its key is.
    pub bits: u32,
    /// The role of the client's certificate.
    pub client: Option<String>,
}

/// A transaction that is prepared at a group. See [`crate::env::Environment::transactions`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionRow {
    pub id: String,
    pub gateway: NodeId,
    pub group: String,
    pub age_micros: u64,
    pub participants: Vec<String>,
    /// Whose votes are missing.
    pub waits_for: Vec<String>,
    /// Why they are, for each; or what else it waits for.
    pub why: Vec<String>,
}

/// A host of a pod. See [`crate::env::Environment::pods`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodHostRow {
    /// The pod's name.
    pub pod: String,
    pub group: String,
    /// Of the shared memory: the term of the group's leader.
    pub generation: u64,
    /// Its number in the pod.
    pub host: u8,
    pub node: NodeId,
    /// Whether it leads the group's log.
    pub leads: bool,
    pub state: &'static str,
    /// How many of the 1,024 slots of keys it serves, and how many of these another host asks for.
    pub slots: u16,
    pub asked_for: u16,
    /// What it has committed and the log does not have yet.
    pub ring_bytes: u64,
}

/// A group and its replicas. See [`crate::env::Environment::groups`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRow {
    pub group: GroupId,
    /// `None` while no primary answers for it.
    pub primary: Option<NodeId>,
    pub voters: Vec<NodeId>,
    pub non_voters: Vec<NodeId>,
    /// What keeps the replicas from being where they belong, if they are not.
    pub waits_for: Option<String>,
    /// The version of the catalog that the group certifies with.
    pub certifies_with: SchemaVersion,
    /// The groups that something names which is prepared here, or has committed here and is not
    /// acknowledged by all.
    pub names: Vec<GroupId>,
    /// Of the catalog's group: the schema step under way waits for the schema leases of groups that
    /// do not answer.
    pub step: Option<StepRow>,
}

/// What a schema step waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepRow {
    pub groups: Vec<GroupId>,
    /// Until their leases have run out.
    pub left: std::time::Duration,
}

/// The number that clients know a session by: positive, as PostgreSQL's process ids are.
pub fn pid(session: SessionId) -> i32 {
    (session.0 & 0x7FFF_FFFF) as i32
}
