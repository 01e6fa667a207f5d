//! Tests of the crate from outside: see the list in `docs/design/pod.md`.

mod coherence;
mod explorer;
mod index;
mod processes;
mod rings;
mod words;
