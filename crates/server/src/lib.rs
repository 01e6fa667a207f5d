//! What joins a node to the machine it runs on: the real clock, disk and sockets, and PostgreSQL's
//! wire protocol.
//!
//! * [`machine`]: the runtime of `base` on this machine: tokio's sockets, a data directory held by
//!   one process, the operating system's clock and randomness.
//! * [`assembly`]: a node and its SQL server, started and stopped together.
//! * [`first_login`]: the password of `root` that a new cluster begins with.
//! * `open_files`: how many files the process may have open, and how many of those clients take.
//! * [`threads`]: what clients' sessions run on.
//! * [`pgwire`]: PostgreSQL's frontend/backend protocol over any stream, for sessions over any
//!   environment.
//!
//! This crate knows nothing about SQL beyond a session's interface, nor about replication.

mod alarms;
pub mod assembly;
mod files;
pub mod first_login;
pub mod machine;
mod machine_memory;
pub mod open_files;
pub mod pgwire;
mod spare_threads;
pub mod threads;
mod watchdog;

pub use assembly::{Memory, PodPlace, Server, ServerConfig, certs_dir, local_addr, local_sql_addr_in, sql_addr_in};
pub use machine::{MachineRuntime, wall_micros};
pub use threads::{ProtocolThread, SessionThreads, background_scheduler};
