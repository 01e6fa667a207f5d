//! Schema steps, on the primary of the catalog's group.

pub(crate) mod coordinator;
mod turns;
