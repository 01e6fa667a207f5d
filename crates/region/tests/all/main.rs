//! Tests of the region crate that need more than one module: one binary, one file per subject.

mod escrow;
mod formats;
mod golden;
mod golden_leases;
mod rng;
mod schema_lease;
mod serializability;
mod several;
mod sites;
mod states;
mod store;
