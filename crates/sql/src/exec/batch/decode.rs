//! Columns from the bytes of stored rows.

use super::Failed;
use super::column::{Column, Held, Values};
use super::page::Page;
use crate::exec::entries::column_of;
use crate::plan::node::Scan;
use crate::types::row::{int, short_numeric};
use crate::types::{Datum, RowView, Type};
use std::cell::OnceCell;
use std::ops::Range;

/// Some rows of a page.
pub(super) struct Batch<'p> {
    pub(super) scan: &'p Scan,
    pub(super) views: Vec<RowView<&'p [u8]>>,
    pub(super) rows: usize,
    /// Those that the conditions so far let through, in order. A column is decoded for them.
    pub(super) selected: Vec<u32>,
    columns: Vec<OnceCell<Column<'p>>>,
}

impl<'p> Batch<'p> {
    pub(super) fn new(scan: &'p Scan, page: &'p Page, rows: Range<usize>) -> Result<Batch<'p>, Failed> {
        let mut views = Vec::new();
        if !scan.columns.is_empty() {
            views.reserve(rows.len());
            for row in rows.clone() {
                views.push(RowView::new(page.row(row))?);
            }
        }
        let columns = scan.columns.iter().map(|_| OnceCell::new()).collect();
        let rows = rows.len();
        Ok(Batch { scan, views, rows, selected: (0..rows as u32).collect(), columns })
    }

    /// A column of the scan's output.
    pub(super) fn slot(&self, at: usize) -> Result<Held<'_, 'p>, Failed> {
        let cell = self.columns.get(at).ok_or(Failed)?;
        if let Some(column) = cell.get() {
            return Ok(Held::Of(column));
        }
        let column = self.decode(self.scan.columns[at] as usize)?;
        Ok(Held::Of(cell.get_or_init(|| column)))
    }

    fn decode(&self, ordinal: usize) -> Result<Column<'p>, Failed> {
        let ty = &self.scan.types[ordinal];
        // Columns that were added later have values of the catalog.
        if self.selected.iter().any(|row| self.views[*row as usize].is_missing(ordinal)) {
            return self.values(ordinal);
        }
        match ty {
            Type::Int2 | Type::Int4 | Type::Int8 => self.typed(ordinal, |stored| int(stored).ok(), Values::Int),
            Type::Timestamp | Type::Timestamptz => self.typed(ordinal, |stored| int(stored).ok(), Values::Timestamp),
            Type::Date => self.typed(ordinal, |stored| Some(i32::from_be_bytes(stored.try_into().ok()?)), Values::Date),
            Type::Float8 => self.typed(ordinal, |stored| Some(f64::from_be_bytes(stored.try_into().ok()?)), Values::Float),
            Type::Bool => self.typed(ordinal, |stored| Some(<[u8; 1]>::try_from(stored).ok()? != [0]), Values::Bool),
            Type::Text | Type::Varchar(_) | Type::Char(_) | Type::Name | Type::Region => {
                // Debug builds check stored text when they make a value of it.
                let is_text = |stored: &[u8]| !cfg!(debug_assertions) || std::str::from_utf8(stored).is_ok();
                self.typed(ordinal, |stored| is_text(stored).then_some(stored), Values::Text)
            }
            Type::Numeric(_) => {
                let mut of_all = None;
                let short = |stored: &[u8]| {
                    let (mantissa, scale) = short_numeric(stored)?;
                    (*of_all.get_or_insert(scale) == scale).then_some(mantissa)
                };
                match self.typed(ordinal, short, |values| Values::Short(values, 0)) {
                    Ok(Column { values: Values::Short(values, _), nulls, .. }) => {
                        Ok(Column::new(Values::Short(values, of_all.unwrap_or(0)), nulls))
                    }
                    _ => self.values(ordinal),
                }
            }
            _ => self.values(ordinal),
        }
    }

    fn typed<V: Clone + Default>(
        &self,
        ordinal: usize,
        mut value: impl FnMut(&'p [u8]) -> Option<V>,
        of: impl FnOnce(Vec<V>) -> Values<'p>,
    ) -> Result<Column<'p>, Failed> {
        let (mut values, mut nulls) = (vec![V::default(); self.rows], Vec::new());
        for row in &self.selected {
            let row = *row as usize;
            match self.views[row].stored_part(ordinal)? {
                Some(stored) => values[row] = value(stored).ok_or(Failed)?,
                None => {
                    if nulls.is_empty() {
                        nulls = vec![false; self.rows];
                    }
                    nulls[row] = true;
                }
            }
        }
        Ok(Column::new(of(values), nulls))
    }

    /// Of any type.
    fn values(&self, ordinal: usize) -> Result<Column<'p>, Failed> {
        let mut values = vec![Datum::Null; self.rows];
        for row in &self.selected {
            let row = *row as usize;
            values[row] = column_of(&self.views[row], ordinal, &self.scan.types, &self.scan.missing)?;
        }
        Ok(Column::of_datums(values))
    }
}
