//! The whole cluster in one thread, under a simulated clock, network and disk, from one seed; and
//! the judges of what its clients saw.
//!
//! * [`world`]: clock, randomness, disk and network of a simulated machine.
//! * [`cluster`]: machines and links, and what goes wrong with them.
//! * [`sql_wire`]: how simulated clients talk to simulated nodes.
//! * [`checkers`](meridian_workload::checkers): independent judges of recorded histories.
//! * [`campaign`]: one seed from start to verdict, and many of them.
//! * [`convoy`]: protocols, without nodes around them, under one load over one network: what global
//!   transactions do to local ones.

pub mod campaign;
pub mod cluster;
pub mod convoy;
pub mod sql_wire;
pub mod world;

pub use campaign::{Options, Report, main, run_seed};
