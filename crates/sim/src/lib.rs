//! The whole cluster in one thread, under a simulated clock, network and disk, from one seed.

pub mod checkers;
