//! Columns as index keys: bytes that compare as the values do.

use super::{Datum, Type};
use meridian_base::{Error, Result};

/// Appends a column to a key. 54000 is the caller's to raise when the whole key gets too long; 42883 if the type has no order.
pub fn encode_key_column(out: &mut Vec<u8>, value: &Datum, ty: &Type, descending: bool, nulls_first: bool) -> Result<()> {
    let _ = (out, value, ty, descending, nulls_first);
    Ok(())
}

/// Reads a column back and moves `input` behind it. `char(n)` comes back padded; numerics come back with the scale they had.
pub fn decode_key_column(input: &mut &[u8], ty: &Type, descending: bool, nulls_first: bool) -> Result<Datum> {
    let _ = (input, ty, descending, nulls_first);
    Err(Error::internal("not yet"))
}
