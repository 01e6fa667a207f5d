//! What nodes say to each other: connections ([`rpc`]), who is at their other end ([`security`],
//! `admission`, [`strangers`], [`refusals`]), messages ([`wire`], `replication`), their bytes
//! (`frames`) and the memory that these take (`backlog`).

pub(crate) mod admission;
mod backlog;
pub(crate) mod frames;
pub mod refusals;
pub(crate) mod replication;
pub mod rounds;
pub mod rpc;
pub mod security;
pub mod strangers;
pub mod wire;
