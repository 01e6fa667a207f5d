//! How the sites of an escrow column share its tokens out (design: escrow, «Redistribution»; Samya,
//! §3.4 and §4).
//!
//! [`allocation`] divides the tokens that sites offer among those that want some. What a site has,
//! and that none is made or lost, crate `region` sees to; the commit of a move is that of a
//! transaction over several groups (crate `commit`).
//!
//! This crate knows nothing about SQL, logs, sockets or time.

pub mod allocation;
pub mod majority;

pub use allocation::{Site, allocate};
