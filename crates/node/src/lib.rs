//! A node joins the protocols: SQL above, replica groups below.
//!
//! ```text
//! sql::Session ──Environment──▶ env ──▶ txn (read entries, write buffer) ──▶ primary (certify, queues)
//!                                 │                  │ other node: rpc              │
//!                                 ▼                  ▼                              ▼
//!                              catalog ◀──hook── replica (log → state, store) ◀── raft, region, store
//!                                 ▲                  ▲
//!                                ddl (schema steps)  members (pings, placement)
//! ```
//!
//! * [`txn`]: a transaction at its gateway. * `ask`: a question to a group's primary, wherever it
//!   is. * [`primary`]: what a group's primary does for gateways. * [`replica`]: the log applied to
//!   state and store; the life of a term. * [`catalog`], `ddl`: the catalog's rows, its versions,
//!   schema steps.
//! * `tasks`: what runs in the background, and ends with the node. * `members`: liveness,
//!   placement, leadership. * `freshness`: whether the copy of the catalog may be planned with. *
//!   `address_book`: where the others are, before the catalog can say. * [`rpc`], [`wire`]: what
//!   nodes say to each other. * [`node`]: start and stop. * `operator`: what command lines ask.
//! * `lock`: the lock around most of what all parts share.
//! * `founding`: how a new process comes to an identity. * `identity`, `holdings`, `departure`:
//!   what its directory says of it.
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
mod times;
mod transport;
mod upkeep;

pub use gateway::{env, txn};
pub use local::{metrics, room};
pub use replica::primary;
pub use transport::{rpc, wire};

pub use env::Env;
pub use gateway::Sessions;
pub use local::timing::Timing;
pub use membership::clocks::Accepted;
pub use membership::founding::FOUNDING_PAUSE;
pub use membership::peers::DEAD_AFTER_DEFAULT;
pub use meridian_base as base;
pub use node::{Node, NodeConfig, cannot_listen};
pub use operator::{accept_clock_at, init_at, stand_at, status_of};
pub use room::RoomOptions;
pub use rpc::{Echoes, Links, Place};
pub use txn::{Attempts, CommitProtocol, PrepareOrder, Protocol, Tally};

pub use meridian_commit as commit;
/// The name of the thread that writes the log.
pub use meridian_raft::LOG_THREAD;
/// What whoever starts a node chooses: where versions are kept, how the log is laid out, and, in
/// the simulator, bugs.
pub use meridian_raft::LogOptions;
/// The engine of a group's primary: what the simulator's comparison of protocols drives without a
/// node around it.
pub use meridian_region as region;
pub use meridian_region::{PlantedBug, PlantedBugs};
/// How often the rows of tables that change are counted.
pub use meridian_sql::statistics::Attention;
/// Sessions: what `server` and `sim` run statements with.
pub use meridian_sql::{env as sql_env, session};
pub use meridian_store::{Backend, MemoryDisk, Options as StoreOptions};
