//! A pod in a node: two or more *hosts*, nodes of one zone with a replica of the same group, share
//! memory and divide the group's keys ([docs/design/pod.md]).
//!
//! | part | |
//! | --- | --- |
//! | `slots.rs` | which slots a request needs |
//! | `member.rs` | which ones a host has, and how they change hands |
//! | `leader.rs` | what the log's leader (L) does: rings, leases, hosts that join and die |
//! | `host.rs` | what another host does: its ring, its lease |
//!
//! `crate::replica::pods` has the task that runs both beside the replica, and what requests wait
//! for.
//!
//! Both kinds of host have a term (`crate::replica::term`), with an engine; they differ in where
//! what is certified goes ([`Outlet`]). No request goes to another host: slots go to the host
//! whose clients need them. What concerns several groups, escrow shares, schema grants and promises
//! is L's alone.
//!
//! [docs/design/pod.md]: ../../../../../docs/design/pod.md

pub(crate) mod host;
pub(crate) mod leader;
pub(crate) mod member;
pub(crate) mod slots;

use crate::replica::pod::host::Host;
use crate::replica::pod::leader::Leader;
use crate::replica::pod::member::Member;
use meridian_base::{Clock, NodeId, Result};
use meridian_pod::{Door, Presence, Segment, SegmentClock, SharedMemory, Sizes};
use std::sync::Arc;
use std::time::Duration;

/// What a segment of this size has room for: rings alone are used so far.
pub(crate) const SIZES: Sizes =
    Sizes { hosts: 16, ring: 4 << 20, feed: 4096, descriptors: 1, chunk: 4096, node_chunks: 1, body_chunks: 1 };

/// A node is a host of a pod.
pub struct PodConfig {
    /// For people.
    pub name: String,
    pub door: Arc<dyn Door>,
}

/// The node's pod while it runs.
pub(crate) struct Pod {
    pub name: String,
    pub door: Arc<dyn Door>,
    _presence: Box<dyn Presence>,
}

impl Pod {
    /// # Errors
    ///
    /// If another process is there for the node.
    pub fn enter(config: PodConfig, node: NodeId) -> Result<Pod> {
        let presence = config.door.enter(node).map_err(|e| {
            meridian_base::Error::fatal(format!("node {node} cannot be a host of pod {}: {e}", config.name))
                .hint("--pod-memory names a file that is on this machine and that only hosts of this pod use.")
        })?;
        Ok(Pod { name: config.name, door: config.door, _presence: presence })
    }
}

/// Where what an engine certifies goes.
pub(crate) enum Outlet {
    /// Into the log, which this replica leads. There is no pod.
    Log,
    /// Into the log, with what other hosts have in their rings.
    Led(Box<Leader>),
    /// Into this host's ring: another replica leads.
    Ring(Box<Host>),
}

impl Outlet {
    pub fn member(&self) -> Option<&Member> {
        match self {
            Outlet::Log => None,
            Outlet::Led(leader) => Some(&leader.member),
            Outlet::Ring(host) => Some(&host.member),
        }
    }

    pub fn member_mut(&mut self) -> Option<&mut Member> {
        match self {
            Outlet::Log => None,
            Outlet::Led(leader) => Some(&mut leader.member),
            Outlet::Ring(host) => Some(&mut host.member),
        }
    }
}

/// The clock of all hosts.
pub(crate) fn clock_of(segment: &Segment<SharedMemory>, max_offset: Duration) -> Arc<Clock> {
    Arc::new(Clock::shared(Arc::new(SegmentClock(segment.clone())), max_offset))
}
