//! What nodes say to each other: connections ([`rpc`]), messages ([`wire`]), their bytes (`frames`)
//! and the memory that these take (`backlog`).

mod backlog;
pub(crate) mod frames;
pub mod rounds;
pub mod rpc;
pub mod wire;
