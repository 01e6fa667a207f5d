//! Rows as they are stored and travel in log frames.
//!
//! ```text
//! version u8 │ flags u8 │ columns u16 │ null bitmap │ end offset of every column (u16, or u32 if flag 1) │ values
//! ```
//!
//! Everything is big-endian. A value's bytes are PostgreSQL's binary format wherever that is also
//! the cheapest to read, so a binary result column is a copy, and a text column of a text type too:
//! integers and times have their fixed width, text and bytea are as they are, arrays are in array
//! format. `numeric` is a kind, a scale and a minimal two's-complement mantissa; `jsonb` is its
//! canonical text. A column at or beyond the count was added after the row was written and is
//! *missing*.

use super::io::{write_bytea, write_int_field, write_uuid};
use super::numeric::Numeric;
use super::{Datum, EvalContext, Format, Interval, Text, Type, datetime, jsonb};
use bytes::{BufMut, Bytes, BytesMut};
use meridian_base::{Error, Result};
use std::sync::Arc;

const VERSION: u8 = 1;
/// Offsets are 4 bytes wide.
const FLAG_WIDE: u8 = 1;
const HEADER: usize = 4;

const NUMERIC_FINITE: u8 = 0;
const NUMERIC_NAN: u8 = 1;
const NUMERIC_PLUS_INFINITY: u8 = 2;
const NUMERIC_MINUS_INFINITY: u8 = 3;

/// Encodes a row; `values[i]` is the column of ordinal `i`, of type `types[i]`. Values at the end
/// that are left out are «missing» (a column added later).
pub fn encode_row(types: &[Type], values: &[Datum]) -> Bytes {
    assert!(values.len() <= types.len() && values.len() <= usize::from(u16::MAX), "a row fits its table");
    let data: usize = values.iter().map(size_hint).sum();
    let narrow = HEADER + values.len().div_ceil(8) + values.len() * 2 + data;
    if narrow <= usize::from(u16::MAX)
        && let Some(row) = encode_with(types, values, narrow, false)
    {
        return row;
    }
    encode_with(types, values, narrow + values.len() * 2, true).expect("4-byte offsets reach everywhere")
}

/// An upper bound for scalars, a guess for documents and arrays.
fn size_hint(v: &Datum) -> usize {
    match v {
        Datum::Null => 0,
        Datum::Text(t) => t.as_bytes().len(),
        Datum::Bytea(b) => b.len(),
        Datum::Interval(_) | Datum::Uuid(_) => 16,
        Datum::Numeric(_) => 19,
        Datum::Array(a) => 32 + a.items.len() * 16,
        Datum::Jsonb(_) | Datum::Record(_) => 128,
        _ => 8,
    }
}

fn encode_with(types: &[Type], values: &[Datum], capacity: usize, wide: bool) -> Option<Bytes> {
    let width = if wide { 4 } else { 2 };
    let bitmap = HEADER;
    let offsets = bitmap + values.len().div_ceil(8);
    let data = offsets + values.len() * width;
    let mut out = Vec::with_capacity(capacity);
    out.extend_from_slice(&[VERSION, if wide { FLAG_WIDE } else { 0 }]);
    out.extend_from_slice(&(values.len() as u16).to_be_bytes());
    out.resize(data, 0);
    for (i, (value, ty)) in values.iter().zip(types).enumerate() {
        if value.is_null() {
            out[bitmap + i / 8] |= 1 << (i % 8);
        } else {
            store(value, ty, &mut out);
        }
        let end = out.len() - data;
        let at = offsets + i * width;
        if wide {
            out[at..at + 4].copy_from_slice(&u32::try_from(end).ok()?.to_be_bytes());
        } else {
            out[at..at + 2].copy_from_slice(&u16::try_from(end).ok()?.to_be_bytes());
        }
    }
    Some(Bytes::from(out))
}

fn store(value: &Datum, ty: &Type, out: &mut Vec<u8>) {
    match value {
        Datum::Numeric(n) => match n.to_parts() {
            Some((mantissa, scale)) => {
                out.push(NUMERIC_FINITE);
                out.extend_from_slice(&scale.to_be_bytes());
                out.extend_from_slice(&mantissa);
            }
            None => out.push(match n {
                Numeric::PosInfinity => NUMERIC_PLUS_INFINITY,
                Numeric::NegInfinity => NUMERIC_MINUS_INFINITY,
                _ => NUMERIC_NAN,
            }),
        },
        Datum::Jsonb(v) => v.write(out),
        Datum::Text(v) => out.extend_from_slice(v.as_bytes()),
        v => v.write_binary(ty, out),
    }
}

/// The bytes of a stored row.
pub trait Stored: AsRef<[u8]> {
    /// Some of them, to keep.
    fn part(&self, place: std::ops::Range<usize>) -> Bytes;
}

impl Stored for Bytes {
    /// Shares the row's buffer.
    fn part(&self, place: std::ops::Range<usize>) -> Bytes {
        self.slice(place)
    }
}

impl Stored for &[u8] {
    fn part(&self, place: std::ops::Range<usize>) -> Bytes {
        Bytes::copy_from_slice(&self[place])
    }
}

/// A stored row, read in place. Cheap to make: the columns are found through an offset table.
#[derive(Clone, Debug)]
pub struct RowView<B = Bytes> {
    bytes: B,
    columns: usize,
    /// Of an offset, in bytes.
    width: usize,
    offsets: usize,
    data: usize,
}

fn damaged() -> Error {
    Error::sql("XX001", "a stored row is damaged")
}

impl<B: Stored> RowView<B> {
    /// Checks the header; damaged rows are an error, never a panic.
    pub fn new(bytes: B) -> Result<RowView<B>> {
        let [VERSION, flags, high, low, ..] = *bytes.as_ref() else { return Err(damaged()) };
        let columns = usize::from(u16::from_be_bytes([high, low]));
        let width = if flags & FLAG_WIDE != 0 { 4 } else { 2 };
        let offsets = HEADER + columns.div_ceil(8);
        let data = offsets + columns * width;
        if data > bytes.as_ref().len() {
            return Err(damaged());
        }
        Ok(RowView { bytes, columns, width, offsets, data })
    }
    /// How many columns the table had when the row was written. Columns at and after it are
    /// missing: take the column's `missing` value.
    pub fn column_count(&self) -> usize {
        self.columns
    }
    /// Whether the column was added after the row was written.
    pub fn is_missing(&self, ordinal: usize) -> bool {
        ordinal >= self.columns
    }
    /// Whether the column is stored as `NULL`. A missing column is not.
    pub fn is_null(&self, ordinal: usize) -> bool {
        ordinal < self.columns && self.bytes.as_ref()[HEADER + ordinal / 8] & (1 << (ordinal % 8)) != 0
    }
    fn end_offset(&self, ordinal: usize) -> usize {
        let bytes = self.bytes.as_ref();
        let at = self.offsets + ordinal * self.width;
        match self.width {
            4 => u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]) as usize,
            _ => usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]])),
        }
    }
    /// Where the column's bytes are; `None` if it is `NULL` or missing.
    fn place(&self, ordinal: usize) -> Result<Option<std::ops::Range<usize>>> {
        if ordinal >= self.columns || self.is_null(ordinal) {
            return Ok(None);
        }
        let start = if ordinal == 0 { 0 } else { self.end_offset(ordinal - 1) };
        let end = self.end_offset(ordinal);
        if start > end || self.data + end > self.bytes.as_ref().len() {
            return Err(damaged());
        }
        Ok(Some(self.data + start..self.data + end))
    }
    /// The stored bytes of a column; `None` if it is `NULL` or missing.
    pub fn stored(&self, ordinal: usize) -> Result<Option<&[u8]>> {
        Ok(self.place(ordinal)?.map(|place| &self.bytes.as_ref()[place]))
    }
    /// The value; text and bytea share the row's buffer, if it can be shared. A missing column
    /// reads as `NULL`.
    pub fn datum(&self, ordinal: usize, ty: &Type) -> Result<Datum> {
        match self.place(ordinal)? {
            None => Ok(Datum::Null),
            Some(place) => load(&self.bytes, place, ty),
        }
    }
    /// Appends a field of a DataRow message straight from the stored bytes. A missing column is
    /// sent as `NULL`.
    pub fn write_field(&self, ordinal: usize, ty: &Type, format: Format, ctx: &EvalContext, out: &mut BytesMut) -> Result<()> {
        let Some(place) = self.place(ordinal)? else {
            out.put_i32(-1);
            return Ok(());
        };
        let stored = &self.bytes.as_ref()[place.clone()];
        match (ty, format) {
            (Type::Int2 | Type::Int4 | Type::Int8, Format::Text) => {
                write_int_field(int(stored)?, out);
                return Ok(());
            }
            (Type::Text | Type::Varchar(_) | Type::Char(_) | Type::Name | Type::Region | Type::Json | Type::Unknown, _) => {}
            (Type::Jsonb | Type::InternalChar, Format::Text) => {}
            (Type::Numeric(_) | Type::Jsonb | Type::InternalChar, Format::Binary) => {
                load(&self.bytes, place, ty)?.write_field(ty, format, ctx, out);
                return Ok(());
            }
            (_, Format::Binary) => {}
            (Type::Bytea, Format::Text) => return write_with(out, |field| write_bytea(stored, ctx.style.bytea_escape, field)),
            (Type::Uuid, Format::Text) => {
                let v = stored.try_into().map_err(|_| damaged())?;
                return write_with(out, |field| write_uuid(v, field));
            }
            (Type::Timestamptz, Format::Text) => {
                let t = int(stored)?;
                return write_string(out, |s| datetime::write_timestamptz(s, t, &ctx.zone));
            }
            (Type::Timestamp, Format::Text) => {
                let t = int(stored)?;
                return write_string(out, |s| datetime::write_timestamp(s, t));
            }
            _ => {
                load(&self.bytes, place, ty)?.write_field(ty, format, ctx, out);
                return Ok(());
            }
        }
        out.put_i32(stored.len() as i32);
        out.put_slice(stored);
        Ok(())
    }
    /// The stored bytes.
    pub fn bytes(&self) -> &B {
        &self.bytes
    }
}

impl<'b> RowView<&'b [u8]> {
    /// As [`RowView::stored`], for as long as the row's bytes are there.
    pub(crate) fn stored_part(&self, ordinal: usize) -> Result<Option<&'b [u8]>> {
        Ok(self.place(ordinal)?.map(|place| &self.bytes[place]))
    }
}

fn write_with(out: &mut BytesMut, f: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
    let mut field = Vec::with_capacity(40);
    f(&mut field);
    out.put_i32(field.len() as i32);
    out.put_slice(&field);
    Ok(())
}

fn write_string(out: &mut BytesMut, f: impl FnOnce(&mut String)) -> Result<()> {
    let mut field = String::with_capacity(40);
    f(&mut field);
    out.put_i32(field.len() as i32);
    out.put_slice(field.as_bytes());
    Ok(())
}

fn fixed<const N: usize>(stored: &[u8]) -> Result<[u8; N]> {
    stored.try_into().map_err(|_| damaged())
}

/// A decimal whose mantissa has 64 bits at most, and its scale; `None`: it is another one.
pub(crate) fn short_numeric(stored: &[u8]) -> Option<(i64, u16)> {
    let [NUMERIC_FINITE, a, b, mantissa @ ..] = stored else { return None };
    if mantissa.len() > 8 {
        return None;
    }
    let is_negative = mantissa.first().is_some_and(|byte| byte & 0x80 != 0);
    let extended = if is_negative { -1i64 } else { 0 };
    let value = mantissa.iter().fold(extended, |value, byte| (value << 8) | i64::from(*byte));
    Some((value, u16::from_be_bytes([*a, *b])))
}

/// A signed integer of any stored width: a column that became wider still reads.
pub(crate) fn int(stored: &[u8]) -> Result<i64> {
    Ok(match stored.len() {
        4 => i64::from(i32::from_be_bytes(stored.try_into().map_err(|_| damaged())?)),
        8 => i64::from_be_bytes(stored.try_into().map_err(|_| damaged())?),
        2 => i64::from(i16::from_be_bytes(stored.try_into().map_err(|_| damaged())?)),
        _ => return Err(damaged()),
    })
}

fn load<B: Stored>(row: &B, place: std::ops::Range<usize>, ty: &Type) -> Result<Datum> {
    let stored = &row.as_ref()[place.clone()];
    Ok(match ty {
        Type::Int2 | Type::Int4 | Type::Int8 => Datum::Int(int(stored)?),
        Type::Text
        | Type::Varchar(_)
        | Type::Char(_)
        | Type::Name
        | Type::InternalChar
        | Type::Region
        | Type::Json
        | Type::Unknown => {
            // Debug builds check stored text when they make it, so bytes that may be damaged are
            // checked here.
            if cfg!(debug_assertions) && std::str::from_utf8(stored).is_err() {
                return Err(damaged());
            }
            Datum::Text(Text::from_stored(row.part(place)))
        }
        Type::Bytea => Datum::Bytea(row.part(place)),
        Type::Numeric(_) => Datum::Numeric(match stored {
            [NUMERIC_FINITE, a, b, mantissa @ ..] => Numeric::from_parts(mantissa, u16::from_be_bytes([*a, *b])),
            [NUMERIC_NAN] => Numeric::NaN,
            [NUMERIC_PLUS_INFINITY] => Numeric::PosInfinity,
            [NUMERIC_MINUS_INFINITY] => Numeric::NegInfinity,
            _ => return Err(damaged()),
        }),
        Type::Jsonb => {
            let text = std::str::from_utf8(stored).map_err(|_| damaged())?;
            Datum::Jsonb(Arc::new(jsonb::parse(text).map_err(|_| damaged())?))
        }
        Type::Interval => match *stored {
            [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] => Datum::Interval(Interval {
                micros: i64::from_be_bytes([a, b, c, d, e, f, g, h]),
                days: i32::from_be_bytes([i, j, k, l]),
                months: i32::from_be_bytes([m, n, o, p]),
            }),
            _ => return Err(damaged()),
        },
        Type::Timestamp | Type::Timestamptz => Datum::Timestamp(int(stored)?),
        Type::Bool => Datum::Bool(fixed::<1>(stored)? != [0]),
        Type::Date => Datum::Date(i32::from_be_bytes(fixed(stored)?)),
        Type::Float8 => Datum::Float(f64::from_be_bytes(fixed(stored)?)),
        Type::Uuid => Datum::Uuid(fixed(stored)?),
        _ => Datum::from_binary(&row.part(place), ty).map_err(|_| damaged())?,
    })
}
