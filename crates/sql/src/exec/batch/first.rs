//! The first rows of an order over a scan, or all of them.
//!
//! Once enough rows are held, the key of the last of them bounds the keys of those that come: of a
//! row that is not below it nothing but its key is decoded.

use super::column::{Column, Held};
use super::decode::Batch;
use super::kernel::Kernel;
use super::scan::{self, Scanning, Sink};
use crate::env::Transaction;
use crate::exec::Runtime;
use crate::exec::eval::{Frame, Row};
use crate::exec::first::{First, Sorted};
use crate::exec::sort::{compare, sort_key};
use crate::plan::node::{Node, Scalar, Scan, SortPlan};
use crate::types::Datum;
use meridian_base::Result;
use std::cmp::Ordering;
use std::sync::Arc;

/// The scan below an order, if the two run in batches.
pub(crate) fn below<'n>(input: &'n Node, keys: &'n [SortPlan]) -> Option<&'n Arc<Scan>> {
    scan::below(input, keys.iter().map(|k| &k.expr))
}

/// The first `most` rows of the order; of equal keys, those that the scan has first. `None`: this
/// does not run in batches.
pub(crate) async fn rows<T: Transaction>(
    input: &Arc<Node>,
    keys: &[SortPlan],
    most: usize,
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Option<Sorted>> {
    let Some(s) = below(input, keys) else { return Ok(None) };
    if scan::is_off() {
        return Ok(None);
    }
    let mut first = First::new(keys, most);
    Scanning { s, frame }.run(input, &mut first, rt).await?;
    first.finish(rt).await.map(Some)
}

/// Whether a row's key is below the bound.
fn is_below(columns: &[Held], row: usize, bound: &[Datum], keys: &[SortPlan]) -> bool {
    let each = columns.iter().zip(bound).zip(keys);
    let each = each.map(|((column, bound), k)| compare_in_order(column, row, bound, k));
    each.fold(Ordering::Equal, Ordering::then).is_lt()
}

/// How a row's value compares with another one in an order, as [`compare`] says.
fn compare_in_order(column: &Column, row: usize, bound: &Datum, k: &SortPlan) -> Ordering {
    match column.is_null(row) || bound.is_null() {
        true => compare(&column.datum(row), bound, k.descending, k.nulls_first),
        false if k.descending => column.compare(row, bound).reverse(),
        false => column.compare(row, bound),
    }
}

impl<T: Transaction> Sink<T> for First<'_> {
    type Program = Vec<Kernel>;

    fn program(&self, of: impl Fn(&Scalar) -> Kernel) -> Vec<Kernel> {
        self.keys.iter().map(|k| of(&k.expr)).collect()
    }

    fn has_rows(program: &Vec<Kernel>) -> bool {
        program.iter().any(Kernel::has_rows)
    }

    fn take_batch<'p>(
        &mut self,
        program: &'p Vec<Kernel>,
        batch: &Batch<'p>,
        of: &Scanning,
        rt: &mut Runtime<'_, T>,
    ) -> Result<Option<()>> {
        let given = of.given(rt);
        let columns: Result<Vec<_>, _> = program.iter().map(|kernel| kernel.compute(batch, &batch.selected, given)).collect();
        let Ok(columns) = columns else { return Ok(None) };
        for row in &batch.selected {
            let row = *row as usize;
            if self.bound.as_ref().is_none_or(|bound| is_below(&columns, row, bound, self.keys)) {
                let key = columns.iter().map(|column| column.datum(row)).collect();
                self.push(key, batch.row(row)?, rt)?;
            }
        }
        Ok(Some(()))
    }

    async fn take_row(&mut self, row: Row, of: &Scanning<'_>, rt: &mut Runtime<'_, T>) -> Result<()> {
        let key = sort_key(self.keys, &row, of.frame, rt).await?;
        self.push(key, row, rt)
    }

    async fn rest(&mut self, rt: &mut Runtime<'_, T>) -> Result<()> {
        self.trim(rt).await
    }
}
