//! Values in PostgreSQL's text and binary formats (manual, chapter 8 and 55.2).

use super::{Datum, EvalContext, Type};
use bytes::{BufMut, Bytes, BytesMut};
use meridian_base::{Error, Result};

/// How a field travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Format {
    #[default]
    Text,
    Binary,
}

impl Datum {
    /// Reads a value of a type from text, as a quoted literal or a text parameter is read. Applies the type's modifier as an
    /// assignment does.
    pub fn from_text(text: &str, ty: &Type, ctx: &EvalContext) -> Result<Datum> {
        let _ = (text, ty, ctx);
        Err(Error::internal("not yet"))
    }
    /// Appends the text form. `NULL` appends nothing.
    pub fn write_text(&self, ty: &Type, ctx: &EvalContext, out: &mut Vec<u8>) {
        let _ = (ty, ctx, out);
    }
    /// The text form as a string.
    pub fn to_text(&self, ty: &Type, ctx: &EvalContext) -> String {
        let mut out = Vec::new();
        self.write_text(ty, ctx, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }
    /// Reads a value from PostgreSQL's binary format. Never panics.
    pub fn from_binary(bytes: &Bytes, ty: &Type) -> Result<Datum> {
        let _ = (bytes, ty);
        Err(Error::internal("not yet"))
    }
    /// Appends PostgreSQL's binary format.
    pub fn write_binary(&self, ty: &Type, out: &mut Vec<u8>) {
        let _ = (ty, out);
    }
    /// Appends a field of a DataRow message: length and bytes, or -1 for `NULL`.
    pub fn write_field(&self, ty: &Type, format: Format, ctx: &EvalContext, out: &mut BytesMut) {
        let _ = (ty, format, ctx);
        out.put_i32(-1);
    }
}
