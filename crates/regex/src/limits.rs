//! The bounds of what a pattern may cost, each with its reason. What exceeds one of them is refused
//! as too complex.

/// Parentheses within parentheses: parser and compiler recurse by them, on stacks of 2 MiB that
/// have other users.
pub const NESTING: u32 = 250;
/// Nodes of a pattern; each has about 40 bytes.
pub const NODES: usize = 200_000;
/// States of the automaton: a step over a character may look at all of them.
pub const STATES: usize = 100_000;
/// Sets of characters times the pieces into which they cut the alphabet: the work of telling the
/// pieces apart.
pub const SET_PIECES: usize = 50_000_000;
/// What the deterministic automata of one expression may keep, in bytes; then they forget and begin
/// again.
pub const CACHE_BYTES: usize = 8 << 20;
/// A repetition count (PostgreSQL's `RE_DUP_MAX`).
pub const REPETITIONS: u32 = 255;
/// Steps between two calls of a search's check.
pub const STEPS_PER_CHECK: u32 = 4096;
/// Lookarounds times bytes of a text, up to which their answers are remembered, position by
/// position (two bits each).
pub const REMEMBERED_LOOKS: usize = 256 << 20;
/// Parts within parts of an expression with back references: dividing a match among them recurses.
pub const PARTS_DEEP: u32 = 1000;
