//! The store against a naive model, under crashes and faults, on both backends.

mod concurrency;
mod faults;
mod model;
mod properties;
mod snapshots;
mod sweep;
