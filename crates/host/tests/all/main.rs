//! Tests of whole pods: hosts, their shared memory, their log, their clients.

mod clients;
mod planted;
mod runs;
mod simulation;
