//! Tests of the protocol `majority` that need more than one module: one binary, one file per
//! subject.

mod bugs;
mod formats;
mod histories;
mod leaders;
mod rows;
mod states;
mod world;
