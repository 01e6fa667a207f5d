//! Who is compared: choices of the protocol, and where the tables are at home.

use meridian_node::{CommitProtocol, PrepareOrder, Protocol};
use meridian_workload::multi_region::Homes;

/// One of those compared.
#[derive(Clone, Debug)]
pub(super) struct Side {
    pub name: &'static str,
    pub protocol: Protocol,
    pub homes: Homes,
    /// The server repeats what fails; see `MultiRegionConfig::is_one_string`.
    pub retries: bool,
}

const DESIGN: Protocol = Protocol {
    commit: CommitProtocol::Decentralised,
    order: PrepareOrder::Delayed,
    learns_from_refusals: true,
    reads_fresh_after_aborts: true,
};

const fn side(name: &'static str, protocol: Protocol) -> Side {
    Side { name, protocol, homes: Homes::Each, retries: false }
}

const fn repeating(name: &'static str, learns_from_refusals: bool, reads_fresh_after_aborts: bool) -> Side {
    let protocol = Protocol { learns_from_refusals, reads_fresh_after_aborts, ..DESIGN };
    Side { name, protocol, homes: Homes::Each, retries: true }
}

/// The design and the two other shapes of a geo-distributed database. The first is what the others
/// are held against.
pub(super) const BASELINES: [Side; 3] = [
    side("Meridian", DESIGN),
    side("coordinator", Protocol { commit: CommitProtocol::Coordinator, order: PrepareOrder::First, ..DESIGN }),
    Side {
        homes: Homes::First,
        ..side("single primary", Protocol { commit: CommitProtocol::Forwarding, order: PrepareOrder::First, ..DESIGN })
    },
];

/// When the initiator's own participant certifies.
pub(super) const ORDERS: [Side; 3] = [
    side("delayed", DESIGN),
    side("first", Protocol { order: PrepareOrder::First, ..DESIGN }),
    side("last", Protocol { order: PrepareOrder::Last, ..DESIGN }),
];

/// What an abort teaches the next attempt.
pub(super) const RETRIES: [Side; 4] = [
    repeating("both", true, true),
    repeating("without what a NO tells", false, true),
    repeating("without fresh reads after two aborts", true, false),
    repeating("neither", false, false),
];

/// What the names mean.
pub(super) fn explain() {
    say!(
        "Meridian: speculative reads at replicas, decentralised commit.\n\
         coordinator: reads of rows homed elsewhere at their primary; two-phase commit by the gateway: votes to it, then the \
         decision to everybody, the client acknowledged once the decision is durable in its region.\n\
         single primary: all tables are at home in the first region, and every statement from elsewhere goes there; reads of \
         read-only transactions too, since a replica's answer would not be strictly serializable. Its latencies are of clients elsewhere."
    );
}
