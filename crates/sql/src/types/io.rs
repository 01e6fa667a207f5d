//! Values in PostgreSQL's text and binary formats (manual, chapter 8 and 55.2).

mod binary;
mod float;
mod input;

pub use float::{write_f32, write_f64};

use super::datetime::{self, interval};
use super::{Datum, EvalContext, RecordValue, Type};
use bytes::{BufMut, BytesMut};

/// How a field travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Format {
    #[default]
    Text,
    Binary,
}

impl Datum {
    /// Appends the text form. `NULL` appends nothing.
    pub fn write_text(&self, ty: &Type, ctx: &EvalContext, out: &mut Vec<u8>) {
        match self {
            Datum::Null => {}
            Datum::Bool(v) => out.push(if *v { b't' } else { b'f' }),
            Datum::Int(v) => match ty {
                Type::Regclass | Type::Regtype | Type::Regproc | Type::Regnamespace => write_reg(*v, ty, ctx, out),
                _ => write_int(*v, out),
            },
            Datum::Float(v) if *ty == Type::Float4 => write_f32(*v as f32, ctx.style.extra_float_digits, out),
            Datum::Float(v) => write_f64(*v, ctx.style.extra_float_digits, out),
            Datum::Numeric(v) => out.extend_from_slice(v.to_string().as_bytes()),
            Datum::Text(v) => out.extend_from_slice(v.as_bytes()),
            Datum::Bytea(v) => write_bytea(v, ctx.style.bytea_escape, out),
            Datum::Uuid(v) => write_uuid(v, out),
            Datum::Jsonb(v) => v.write(out),
            Datum::Array(v) => v.write(ctx, out),
            Datum::Record(v) => write_record(v, ctx, out),
            Datum::Date(v) => with_string(out, |s| datetime::write_date(s, *v)),
            Datum::Time(v) => with_string(out, |s| datetime::write_time(s, *v)),
            Datum::Timestamp(v) if *ty == Type::Timestamptz => {
                with_string(out, |s| datetime::write_timestamptz(s, *v, &ctx.zone))
            }
            Datum::Timestamp(v) => with_string(out, |s| datetime::write_timestamp(s, *v)),
            Datum::Interval(v) => with_string(out, |s| interval::write(s, v)),
        }
    }
    /// The text form as a string.
    pub fn to_text(&self, ty: &Type, ctx: &EvalContext) -> String {
        let mut out = Vec::new();
        self.write_text(ty, ctx, &mut out);
        String::from_utf8(out).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
    }
    /// Appends a field of a DataRow message: length and bytes, or -1 for `NULL`.
    pub fn write_field(&self, ty: &Type, format: Format, ctx: &EvalContext, out: &mut BytesMut) {
        match self {
            Datum::Null => out.put_i32(-1),
            Datum::Int(v) if format == Format::Text && !ty.is_oid_like() => write_int_field(*v, out),
            Datum::Text(v) if *ty != Type::InternalChar => {
                out.put_i32(v.as_bytes().len() as i32);
                out.put_slice(v.as_bytes());
            }
            _ => {
                let mut field = Vec::with_capacity(32);
                match format {
                    Format::Text => self.write_text(ty, ctx, &mut field),
                    Format::Binary => self.write_binary(ty, &mut field),
                }
                out.put_i32(field.len() as i32);
                out.put_slice(&field);
            }
        }
    }
}

fn with_string(out: &mut Vec<u8>, f: impl FnOnce(&mut String)) {
    let mut s = String::with_capacity(32);
    f(&mut s);
    out.extend_from_slice(s.as_bytes());
}

/// Decimal digits of an integer, written from the end of a buffer.
fn int_digits(v: i64, buffer: &mut [u8; 20]) -> &[u8] {
    let mut at = buffer.len();
    let mut rest = v.unsigned_abs();
    loop {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if v < 0 {
        at -= 1;
        buffer[at] = b'-';
    }
    &buffer[at..]
}

/// Appends an integer.
pub fn write_int(v: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(int_digits(v, &mut [0; 20]));
}

/// Appends an integer as a text field.
pub fn write_int_field(v: i64, out: &mut BytesMut) {
    let mut buffer = [0; 20];
    let digits = int_digits(v, &mut buffer);
    out.put_i32(digits.len() as i32);
    out.put_slice(digits);
}

fn write_reg(v: i64, ty: &Type, ctx: &EvalContext, out: &mut Vec<u8>) {
    if v == 0 {
        out.push(b'-');
        return;
    }
    match ctx.system.reg_name(ctx, ty, v as u32) {
        Some(name) => out.extend_from_slice(name.as_bytes()),
        None => write_int(v, out),
    }
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends lower-case hexadecimal digits.
pub fn write_hex(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(bytes.len() * 2);
    for b in bytes {
        out.push(HEX[usize::from(b >> 4)]);
        out.push(HEX[usize::from(b & 15)]);
    }
}

/// Appends a bytea: `\x…`, or in the old escape format.
pub fn write_bytea(bytes: &[u8], escape: bool, out: &mut Vec<u8>) {
    if !escape {
        out.extend_from_slice(b"\\x");
        return write_hex(bytes, out);
    }
    for b in bytes {
        match b {
            b'\\' => out.extend_from_slice(b"\\\\"),
            0x20..=0x7E => out.push(*b),
            b => out.extend_from_slice(format!("\\{b:03o}").as_bytes()),
        }
    }
}

/// Appends a UUID.
pub fn write_uuid(v: &[u8; 16], out: &mut Vec<u8>) {
    for (i, part) in [&v[..4], &v[4..6], &v[6..8], &v[8..10], &v[10..]].into_iter().enumerate() {
        if i > 0 {
            out.push(b'-');
        }
        write_hex(part, out);
    }
}

/// Appends `(1,"a b",)`.
fn write_record(v: &RecordValue, ctx: &EvalContext, out: &mut Vec<u8>) {
    out.push(b'(');
    for (i, (value, ty)) in v.values.iter().zip(v.types.iter()).enumerate() {
        if i > 0 {
            out.push(b',');
        }
        if value.is_null() {
            continue;
        }
        let start = out.len();
        value.write_text(ty, ctx, out);
        let special = |b: &u8| matches!(b, b'"' | b'\\' | b'(' | b')' | b',') || b.is_ascii_whitespace() || *b == 0x0b;
        if out.len() == start || out[start..].iter().any(special) {
            let raw = out.split_off(start);
            out.push(b'"');
            for b in raw {
                if matches!(b, b'"' | b'\\') {
                    out.push(b);
                }
                out.push(b);
            }
            out.push(b'"');
        }
    }
    out.push(b')');
}
