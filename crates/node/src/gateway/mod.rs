//! What a node does for the sessions of its clients: transactions, and the node as SQL sees it.

pub(crate) mod delivery;
pub mod env;
pub(crate) mod global;
pub(crate) mod in_doubt;
pub mod txn;
