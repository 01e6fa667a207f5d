//! Scans in batches of typed columns, for operators that take all rows of one: an aggregation or
//! the keys of a semi-join ([`aggregation`]), and an order ([`first`]).
//!
//! Rows are copied out of the store as they are ([`page`]), column after column is decoded from
//! their bytes ([`decode`]), first those of the conditions, the others for the rows that match
//! ([`scan`]). Expressions are computed by kernels ([`kernel`]), and what none computes row by row.
//! Rows find their groups in one hash table ([`groups`]), and a loop for each aggregate adds their
//! values ([`states`]).
//!
//! A kernel that fails says nothing: its batch is done again row by row with
//! [`crate::plan::eval::eval`], so that the error raised is that of the first row that has one.

mod aggregation;
mod ahead;
mod arithmetic;
mod column;
mod decode;
mod first;
mod groups;
mod kernel;
mod page;
mod partners;
mod scan;
mod states;
#[cfg(test)]
mod tests;

use meridian_base::Error;
use std::cell::Cell;

pub(super) use aggregation::{below as scan_below_aggregation, distinct as distinct_keys, rows as aggregate};
pub(super) use ahead::Ahead;
pub(super) use first::{below as scan_below_order, rows as first_rows};
pub(super) use partners::{KEYS_MAX as PARTNERS_MAX, Partners};

thread_local! {
    static ROWS_OF_TEST: Cell<Option<usize>> = const { Cell::new(None) };
}

/// For tests: runs statements of this thread in batches of so many rows, or without batches (0).
pub(crate) fn use_batches_of(rows: Option<usize>) {
    ROWS_OF_TEST.set(rows);
}

/// A kernel failed, or has no way to compute something.
#[derive(Debug)]
struct Failed;

impl From<Error> for Failed {
    fn from(_: Error) -> Failed {
        Failed
    }
}
