//! How a process becomes a member, or founds a cluster with others, and gets its certificate.

use super::NodeRecord;
use meridian_base::NodeId;
use meridian_base::version::Versions;
use meridian_pki::PublicKey;
use meridian_pki::join::TokenId;
use serde::{Deserialize, Serialize};

/// See [`Request::Redeem`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redemption {
    pub token: TokenId,
    pub key: PublicKey,
    /// What the new node says of itself; its id is 0.
    pub record: NodeRecord,
    pub versions: Versions,
}

/// See [`Request::IssueCertificate`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueCertificate {
    pub key: PublicKey,
    /// Names and addresses that clients call the node by.
    pub hosts: Vec<String>,
    /// `None`: the sender has a certificate, and wants another one.
    pub token: Option<TokenId>,
}

/// A certificate, and those between it and the authority; as DER.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issued {
    pub chain: Vec<Vec<u8>>,
}

/// A join token as text. Not printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenText(pub String);

impl std::fmt::Debug for TokenText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TokenText(…)")
    }
}

/// A new member's identity, and where to find the others.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Joined {
    pub cluster: u128,
    pub node: NodeId,
    pub nodes: Vec<NodeRecord>,
}

/// A process without an identity (see [`crate::membership::founding`]).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Newcomer {
    /// Where it listens.
    pub addr: String,
    /// Drawn at random, once for an empty directory.
    pub token: u128,
}

/// What a process without an identity asks another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ask {
    Who,
    /// The sender asks for a promise: the receiver founds no cluster, and helps no other process to
    /// found one, until this candidacy of the sender's is over.
    Pledge {
        candidacy: u64,
    },
    /// Whether a candidacy of the receiver's is over, so that nothing can come of it any more.
    IsOver {
        candidacy: u64,
    },
}

/// The answer to [`Ask`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mustered {
    /// The receiver is a member of this cluster.
    Member {
        cluster: u128,
        node: NodeId,
    },
    /// It has no identity either.
    Newcomer(Newcomer),
    Pledged,
    /// It does not pledge itself.
    Refused {
        why: String,
    },
    Over(bool),
}
