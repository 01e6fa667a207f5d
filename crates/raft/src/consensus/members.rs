//! The members of a group as bytes: the body of a log entry that changes them, and what a state
//! machine keeps with its state.
//!
//! ```text
//! members = count of configurations | (count | node*)* | count | node*
//! kept    = 0 | members               the members are not known yet
//!         | 1 | term | index | members    since this entry, which is counted from 0
//! ```
//!
//! All numbers are varints (postcard). There are two configurations while voters change, and one
//! otherwise; the nodes at the end are all members, those that do not vote included. Both are
//! envelopes, so fields can be added at the end.

use super::{LogId, Membership, StoredMembership, to_log_id};
use crate::machine::MembershipBlob;
use bytes::Bytes;
use meridian_base::{Error, LogPosition, Result, envelope};
use openraft::EmptyNode;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

type Nodes = BTreeSet<u32>;

#[derive(Debug, Serialize, Deserialize)]
struct Members {
    configurations: Vec<Nodes>,
    all: Nodes,
}

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    /// Term and index of the entry.
    since: Option<(u64, u64)>,
    configurations: Vec<Nodes>,
    all: Nodes,
}

fn parts(membership: &Membership) -> (Vec<Nodes>, Nodes) {
    (membership.get_joint_config().clone(), membership.nodes().map(|(id, _)| *id).collect())
}

/// `None` if a voter is no member, or a configuration is empty.
fn membership(configurations: Vec<Nodes>, all: Nodes) -> Option<Membership> {
    if configurations.is_empty() && all.is_empty() {
        return Some(Membership::default());
    }
    let nodes = all.into_iter().map(|id| (id, EmptyNode::new()));
    Membership::new(configurations, nodes.collect::<std::collections::BTreeMap<_, _>>()).ok()
}

/// The body of a log entry.
pub(crate) fn encode(of: &Membership) -> Bytes {
    let (configurations, all) = parts(of);
    Bytes::from(envelope::encode(&Members { configurations, all }))
}

/// Reads it.
pub(crate) fn decode(body: &[u8]) -> Result<Membership> {
    let read = envelope::decode(body).ok().and_then(|m: Members| membership(m.configurations, m.all));
    read.ok_or_else(|| Error::fatal("malformed log entry: membership"))
}

/// What is kept with a state.
pub(crate) fn encode_kept(of: &StoredMembership) -> MembershipBlob {
    let (configurations, all) = parts(of.membership());
    let since = of.log_id().as_ref().map(|id: &LogId| (id.leader_id.term, id.index));
    MembershipBlob(Bytes::from(envelope::encode(&Kept { since, configurations, all })))
}

/// Reads it.
pub(crate) fn decode_kept(blob: &MembershipBlob) -> Result<StoredMembership> {
    let read = envelope::decode(&blob.0).ok().and_then(|kept: Kept| {
        let since = match kept.since {
            Some((term, index)) => Some(to_log_id(LogPosition { index: index.checked_add(1)?, term })?),
            None => None,
        };
        Some(StoredMembership::new(since, membership(kept.configurations, kept.all)?))
    });
    read.ok_or_else(|| Error::fatal("the membership stored with a group's state is malformed"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stored(configurations: Vec<Nodes>, others: Nodes, since: Option<(u64, u64)>) -> StoredMembership {
        let all = configurations.iter().flatten().chain(&others).copied().collect();
        let since = since.and_then(|(index, term)| to_log_id(LogPosition { index, term }));
        StoredMembership::new(since, membership(configurations, all).unwrap_or_default())
    }

    proptest! {
        /// Directories hold what the library's own types were encoded as.
        #[test]
        fn the_bytes_are_those_of_earlier_programs(
            configurations in prop::collection::vec(prop::collection::btree_set(any::<u32>(), 1..5), 0..3),
            others in prop::collection::btree_set(any::<u32>(), 0..4),
            since: Option<(u64, u64)>,
        ) {
            let kept = stored(configurations, others, since);
            let bytes = encode_kept(&kept);
            prop_assert_eq!(&bytes.0[..], &postcard::to_stdvec(&kept).unwrap()[..]);
            prop_assert_eq!(decode_kept(&bytes).unwrap(), kept.clone());
            let body = encode(kept.membership());
            prop_assert_eq!(&body[..], &postcard::to_stdvec(kept.membership()).unwrap()[..]);
            prop_assert_eq!(&decode(&body).unwrap(), kept.membership());
        }
        #[test]
        fn no_bytes_panic_the_decoders(bytes: Vec<u8>) {
            let _ = decode(&bytes);
            let _ = decode_kept(&MembershipBlob(Bytes::from(bytes)));
        }
    }

    #[test]
    fn what_was_written_is_read() {
        let mut fixtures = meridian_fixtures::Fixtures::open(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/members.txt"));
        fixtures.value::<Members>("members");
        fixtures.value::<Kept>("kept");
        fixtures.finish();
    }
}
