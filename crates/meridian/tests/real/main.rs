//! The real binary as real processes: what it refuses, how it stops, what its shell's exit status
//! says, and what `kill -9` may not lose.
//!
//! Everything listens on loopback, on ports the system picks, and every process ends with the test
//! that started it.
//!
//! And, since it has the whole before it: who may depend on whom, and whether the documents are
//! true.

mod benches;
#[path = "../../src/client.rs"]
#[allow(dead_code)]
mod client;
mod cluster;
mod conversions;
mod dependencies;
mod directories;
mod documents;
mod full_disk;
mod identity;
mod in_doubt;
mod index_builds;
mod kills;
mod large;
mod planted;
mod pods;
mod process;
mod refusals;
mod results;
mod rotation;
mod secure;
mod senders;
mod several_threads;
mod shell;
mod stalls;
mod strangers;
mod temporary;
