//! Rows as they are stored and travel in log frames.

use super::{Datum, EvalContext, Format, Type};
use bytes::{BufMut, Bytes, BytesMut};
use meridian_base::Result;

/// Encodes a row; `values[i]` is the column of ordinal `i`, of type `types[i]`. Values at the end that are left out are
/// «missing» (a column added later).
pub fn encode_row(types: &[Type], values: &[Datum]) -> Bytes {
    let _ = (types, values);
    Bytes::new()
}

/// A stored row, read in place. Cheap to make: the columns are found through an offset table.
#[derive(Clone, Debug)]
pub struct RowView {
    bytes: Bytes,
}

impl RowView {
    /// Checks the header; damaged rows are an error, never a panic.
    pub fn new(bytes: Bytes) -> Result<RowView> {
        Ok(RowView { bytes })
    }
    /// How many columns the table had when the row was written. Columns at and after it are missing: take the column's
    /// `missing` value.
    pub fn column_count(&self) -> usize {
        0
    }
    /// Whether the column is stored here at all.
    pub fn is_missing(&self, ordinal: usize) -> bool {
        ordinal >= self.column_count()
    }
    /// Whether the column is stored as `NULL`. A missing column is not.
    pub fn is_null(&self, ordinal: usize) -> bool {
        let _ = ordinal;
        false
    }
    /// The value; text and bytea share the row's buffer. A missing column reads as `NULL`.
    pub fn datum(&self, ordinal: usize, ty: &Type) -> Result<Datum> {
        let _ = (ordinal, ty);
        Ok(Datum::Null)
    }
    /// Appends a field of a DataRow message straight from the stored bytes.
    pub fn write_field(&self, ordinal: usize, ty: &Type, format: Format, ctx: &EvalContext, out: &mut BytesMut) -> Result<()> {
        let _ = (ordinal, ty, format, ctx);
        out.put_i32(-1);
        Ok(())
    }
    /// The stored bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}
