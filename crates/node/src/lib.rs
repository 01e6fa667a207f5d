//! A node joins the protocols: SQL above, replica groups below.
//!
//! ```text
//! sql::Session ──Environment──▶ gateway (read entries, write buffer) ──▶ replica::primary (certify, queues)
//!                                 │                  │ other node: transport          │
//!                                 ▼                  ▼                                ▼
//!                              catalog ◀──hook── replica (log → state, store) ◀── raft, region, store
//!                                 ▲                  ▲
//!                               schema (its steps)  membership (pings, placement)
//! ```
//!
//! Each directory is a room with one subject, and a room knows only those that come earlier here. A
//! test compares the imports with the table in `ARCHITECTURE.md`
//! (`crates/base/tests/all/rooms.rs`).
//!
//! * `local`: what a node has by itself: its lifecycle, tasks, counters, the room on its disk.
//! * `transport`: what nodes say to each other ([`rpc`], [`wire`]).
//! * [`catalog`]: the catalog's rows and versions, as this node knows them.
//! * [`replica`]: the log applied to state and store; the life of a term; what a group's primary
//!   does for gateways ([`primary`]); where the groups' primaries are.
//! * `membership`: who this node is, who else is there, and which groups have replicas here. Its
//!   `shared` joins what the rooms before it have to offer.
//! * `gateway`: a transaction at its gateway ([`txn`]), and the node as SQL sees it ([`env`]).
//! * `schema`: schema steps, on the primary of the catalog's group.
//! * `upkeep`: flushing and garbage collection.
//! * `answers`: what a node answers others; `senders`: who may ask what. `operator`: what command
//!   lines ask. [`node`]: start and stop. `times`: how all times relate.
//!
//! A session's call reaches the engine of a local primary directly, on the session's task, under
//! one short lock; reads of a settled snapshot take no lock at all.

mod answers;
pub mod catalog;
mod gateway;
mod local;
mod membership;
pub mod node;
mod operator;
pub mod replica;
mod schema;
mod senders;
mod times;
mod transport;
mod upkeep;

pub use gateway::{env, txn};
pub use local::{metrics, room};
pub use replica::pod::PodConfig;
pub use replica::primary;
pub use transport::{refusals, rpc, security, strangers, wire};

pub use env::Env;
pub use gateway::Sessions;
pub use local::timing::Timing;
pub use membership::certificates::Security;
pub use membership::clocks::Accepted;
pub use membership::founding::FOUNDING_PAUSE;
pub use membership::peers::DEAD_AFTER_DEFAULT;
pub use node::{Node, NodeConfig, cannot_listen};
pub use operator::{Way, accept_clock_at, create_token, init_at, rotate_at, stand_at, status_of, versions_of};
pub use room::RoomOptions;
pub use rpc::{Between, Echoes, Links, Place};
pub use txn::{Attempts, CommitProtocol, PrepareOrder, Protocol, Tally};
