//! Tests of the crate from outside: see the list in `docs/design/pod.md`.

mod bank;
mod blocks;
mod coherence;
mod explorer;
mod index;
mod inserts;
mod processes;
mod rings;
mod threads;
mod words;
