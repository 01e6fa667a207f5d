//! Identities. Each is its own type so that a log index cannot be passed where a node is meant.

use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $repr:ty, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        pub struct $name(pub $repr);
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

id!(
    /// One process of the cluster, for as long as its data directory lives. Given out by the
    /// catalog, from 1 on.
    NodeId, u32, "n"
);
id!(
    /// A replica group: one replicated log and the MVCC state it builds. [`GroupId::CATALOG`] is
    /// the catalog's.
    GroupId, u32, "g"
);
id!(
    /// A descriptor of the catalog: a database, schema, table, type. Never reused.
    DescriptorId, u32, "d"
);
id!(
    /// A client session at one gateway. Unique within the life of the gateway's process.
    SessionId, u64, "s"
);

impl GroupId {
    /// The group that holds the descriptors, the nodes and the groups themselves.
    pub const CATALOG: GroupId = GroupId(1);
}

/// A place in a group's log. Ordered by index; the term tells two entries at one index apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct LogPosition {
    /// From 1 on; 0 means «before the first entry».
    pub index: u64,
    /// The term of the leader that appended the entry.
    pub term: u64,
}

impl fmt::Display for LogPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.index, self.term)
    }
}
impl fmt::Debug for LogPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A transaction's identity. It starts with its gateway's clock, so that ids never repeat across
/// restarts of the gateway (its clock only moves forward) and so that a watermark can say «every id
/// at or below me is settled».
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct TxnId {
    /// The gateway's clock when the commit was sent. Unique at that gateway: one clock never issues
    /// a timestamp twice.
    pub hlc: Timestamp,
    /// The gateway.
    pub gateway: NodeId,
}

impl fmt::Display for TxnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t{}.{}", self.hlc.0, self.gateway.0)
    }
}
impl fmt::Debug for TxnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
