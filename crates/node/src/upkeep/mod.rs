//! What is done to the replicas on this node beside the log.

pub(crate) mod sweep;
