//! Real handshakes over pipes, files in directories that vanish, and every byte turned over.

mod world;

mod bugs;
mod certificates;
mod directories;
mod formats;
mod handshakes;
mod joining;
mod rotating;
mod scram;
