//! A cluster in the simulator: machines, the links between them, and what happens to both.
//!
//! * [`topology`]: regions, zones, nodes, and the delays between them.
//! * [`machines`]: starting, killing and restarting processes; cutting and mending links.
//! * [`faults`]: what goes wrong when, drawn from the seed.
//! * [`software`]: what runs on a machine: a Meridian node, or something small to test the
//!   simulator with.

pub mod faults;
pub mod machines;
pub mod meridian;
pub mod software;
pub mod topology;

#[cfg(test)]
mod tests;

pub use faults::{Deaf, Death, FaultPlan, Faults, RareFaults, Strike};
pub use machines::Machines;
pub use software::{Software, Started};
pub use topology::{NodeSpec, Topology};
