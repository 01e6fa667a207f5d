//! What a run is promised, and so what a checker looks for.
//!
//! Circumstances may leave something open: the order in real time of GLOBAL rows is promised for
//! clocks within `max_offset` of each other, and for no others. A checker is told of it *before* it
//! looks. No finding is dropped afterwards: a filter over findings once hid lost writes, and those
//! of keys that had nothing to do with clocks. The tests of the checkers list which classes each
//! promise leaves open, and plant every class under every promise.

use crate::{Op, Record};
use std::ops::Range;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Promise {
    /// Strict serializability.
    #[default]
    Strict,
    /// Strict serializability of transactions that touch none of these keys; serializability of the
    /// others. Nothing acknowledged may be lost in either case.
    OrderOpen { keys: Range<i64> },
}

impl Promise {
    /// Whether a transaction's place in real time is left open.
    pub(super) fn leaves_open(&self, record: &Record) -> bool {
        match self {
            Promise::Strict => false,
            Promise::OrderOpen { keys } => record.ops.iter().any(|op| touches(op, keys)),
        }
    }

    /// Whether the order of what happens to a key is left open in real time.
    pub(super) fn leaves_key_open(&self, key: i64) -> bool {
        match self {
            Promise::Strict => false,
            Promise::OrderOpen { keys } => keys.contains(&key),
        }
    }
}

fn touches(op: &Op, keys: &Range<i64>) -> bool {
    match op {
        Op::Append { key, .. }
        | Op::ReadList { key, .. }
        | Op::Delete { key, .. }
        | Op::Write { key, .. }
        | Op::Read { key, .. }
        | Op::CompareAndSet { key, .. } => keys.contains(key),
        Op::ReadRange { from, to, .. } => *from < keys.end && keys.start < *to,
        Op::Past | Op::Transfer { .. } | Op::ReadBalances { .. } => false,
    }
}
