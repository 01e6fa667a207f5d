//! Who a certificate says that its holder is.
//!
//! A node's certificate has one URI, `meridian://<cluster>/node/<id>`, among its alternative names
//! (RFC 5280, §4.2.1.6). An authority has `meridian://<cluster>`, so that who makes certificates
//! from its files knows the cluster. A client's certificate has none, and its common name is the
//! name of a role, as in PostgreSQL (manual, «Certificate Authentication»).
//!
//! A URI is good in one spelling only: what was read is written again and compared. A certificate
//! with a URI of this scheme that is not understood, or with two of them, is nobody's.

use crate::certificate::Certificate;
use meridian_base::NodeId;
use serde::{Deserialize, Serialize};
use std::fmt;

const SCHEME: &str = "meridian://";

/// A cluster: a random number that is drawn when its authority is made. Never 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ClusterId(pub u128);

impl ClusterId {
    /// A new one.
    pub fn random() -> ClusterId {
        ClusterId(u128::from_be_bytes(crate::secret::random()).max(1))
    }
    /// The URI of its authority.
    pub fn uri(self) -> String {
        format!("{SCHEME}{self}")
    }
    /// The URI of one of its nodes.
    pub fn node_uri(self, node: NodeId) -> String {
        format!("{SCHEME}{self}/node/{}", node.0)
    }
    /// As [`ClusterId`] is shown: 32 hexadecimal digits in lower case.
    pub fn parse(text: &str) -> Option<ClusterId> {
        let id = ClusterId(u128::from_str_radix(text, 16).ok()?);
        (id.0 != 0 && id.to_string() == text).then_some(id)
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}
impl fmt::Debug for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The holder of a certificate that is no authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// A node of a cluster.
    Node { cluster: ClusterId, node: NodeId },
    /// A client, by its common name.
    Role(String),
}

impl Identity {
    /// Whose certificate this is; `None`: nobody's. The certificate must have been verified.
    pub fn of(certificate: &Certificate) -> Option<Identity> {
        let mut ours = certificate.uris.iter().filter(|uri| uri.starts_with(SCHEME));
        match (ours.next(), ours.next()) {
            (None, _) => certificate.common_name.clone().filter(|name| !name.is_empty()).map(Identity::Role),
            (Some(uri), None) => node_of(uri),
            (Some(_), Some(_)) => None,
        }
    }
}

fn node_of(uri: &str) -> Option<Identity> {
    let (cluster, id) = uri.strip_prefix(SCHEME)?.split_once("/node/")?;
    let (cluster, node) = (ClusterId::parse(cluster)?, NodeId(id.parse().ok()?));
    (node.0 != 0 && cluster.node_uri(node) == uri).then_some(Identity::Node { cluster, node })
}

/// The cluster that an authority is of; `None`: its certificate does not say, as one that was made
/// by other programs.
pub fn cluster_of(authority: &Certificate) -> Option<ClusterId> {
    let mut ours = authority.uris.iter().filter(|uri| uri.starts_with(SCHEME));
    match (ours.next(), ours.next()) {
        (Some(uri), None) => ClusterId::parse(uri.strip_prefix(SCHEME)?),
        _ => None,
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Identity::Node { cluster, node } => write!(f, "node {} of cluster {cluster}", node.0),
            Identity::Role(name) => write!(f, "role {name:?}"),
        }
    }
}
