//! How the sites of an escrow column share its tokens out (`docs/design/escrow.md`,
//! «Redistribution»; Samya, §3.4 and §4).
//!
//! * [`allocation`] divides the tokens that sites offer among those that want some.
//! * [`majority`] is the protocol in which a majority of the sites agrees on such a division, and
//!   each site learns what it gives and gets. A site stores its part of it; crate `region` sees to
//!   what a site has, and that it is covered.
//!
//! With the other protocol, `any`, the commit of a move is that of a transaction over several
//! groups (crate `commit`).
//!
//! This crate knows nothing about SQL, logs, sockets or time.

pub mod allocation;
pub mod majority;

pub use allocation::{Site, allocate};
