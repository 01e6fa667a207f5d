//! Tests of the commit protocol that need more than one module: one binary, one file per subject.

mod model;
mod states;
mod store;
mod world;
