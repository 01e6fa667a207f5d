//! Values in PostgreSQL's binary format: big-endian, as the `*_send` and `*_recv` functions define
//! it. Arrays are also stored like this.

use crate::types::array::DIMENSIONS_MAX;
use crate::types::datetime::DAY;
use crate::types::jsonb;
use crate::types::numeric::Numeric;
use crate::types::{ArrayValue, Datum, Interval, Text, Type};
use bytes::Bytes;
use meridian_base::{Error, Result};
use std::sync::Arc;

fn bad(what: &str) -> Error {
    Error::sql("22P03", format!("incorrect binary data format: {what}"))
}

fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N]> {
    bytes.try_into().map_err(|_| bad(&format!("{} bytes where {N} belong", bytes.len())))
}

/// Text that a client sent: UTF-8 without zero bytes.
pub fn text(bytes: &Bytes) -> Result<Text> {
    match std::str::from_utf8(bytes) {
        Ok(s) if !s.as_bytes().contains(&0) => Ok(Text::from_stored(bytes.clone())),
        Ok(_) => Err(Error::sql("22021", "invalid byte sequence for encoding \"UTF8\": 0x00")),
        Err(e) => {
            let from = &bytes[e.valid_up_to()..];
            let shown: Vec<String> =
                from.iter().take(e.error_len().unwrap_or(from.len()).max(1)).map(|b| format!("0x{b:02x}")).collect();
            Err(Error::sql("22021", format!("invalid byte sequence for encoding \"UTF8\": {}", shown.join(" "))))
        }
    }
}

/// A cursor that never reads past the end.
struct Input<'a> {
    bytes: &'a Bytes,
    at: usize,
}

impl Input<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let end = self.at + N;
        let got = self.bytes.get(self.at..end).ok_or_else(|| bad("the value ends early"))?;
        self.at = end;
        fixed(got)
    }
    fn i16(&mut self) -> Result<i16> {
        Ok(i16::from_be_bytes(self.take()?))
    }
    fn i32(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(self.take()?))
    }
    /// A length and that many bytes; `None` for -1.
    fn field(&mut self) -> Result<Option<Bytes>> {
        let len = self.i32()?;
        if len < 0 {
            return Ok(None);
        }
        let end = self.at + len as usize;
        if end > self.bytes.len() {
            return Err(bad("the value ends early"));
        }
        let field = self.bytes.slice(self.at..end);
        self.at = end;
        Ok(Some(field))
    }
}

impl Datum {
    /// Reads a value from PostgreSQL's binary format. Never panics.
    pub fn from_binary(bytes: &Bytes, ty: &Type) -> Result<Datum> {
        Ok(match ty {
            Type::Bool => Datum::Bool(fixed::<1>(bytes)?[0] != 0),
            Type::Int2 => Datum::Int(i64::from(i16::from_be_bytes(fixed(bytes)?))),
            Type::Int4 => Datum::Int(i64::from(i32::from_be_bytes(fixed(bytes)?))),
            Type::Int8 => Datum::Int(i64::from_be_bytes(fixed(bytes)?)),
            Type::Oid | Type::Regclass | Type::Regtype | Type::Regproc | Type::Regnamespace => {
                Datum::Int(i64::from(u32::from_be_bytes(fixed(bytes)?)))
            }
            Type::Float4 => Datum::Float(f64::from(f32::from_be_bytes(fixed(bytes)?))),
            Type::Float8 => Datum::Float(f64::from_be_bytes(fixed(bytes)?)),
            Type::Numeric(_) => Datum::Numeric(numeric(bytes)?),
            Type::Text | Type::Varchar(_) | Type::Char(_) | Type::Name | Type::InternalChar | Type::Region | Type::Unknown => {
                Datum::Text(text(bytes)?)
            }
            Type::Json => {
                let t = text(bytes)?;
                jsonb::validate(t.as_str())?;
                Datum::Text(t)
            }
            Type::Jsonb => match bytes.first() {
                Some(1) => Datum::Jsonb(Arc::new(jsonb::parse(text(&bytes.slice(1..))?.as_str())?)),
                v => return Err(Error::sql("22P03", format!("unsupported jsonb version number {}", v.copied().unwrap_or(0)))),
            },
            Type::Bytea => Datum::Bytea(bytes.clone()),
            Type::Date => Datum::Date(i32::from_be_bytes(fixed(bytes)?)),
            Type::Time => {
                let t = i64::from_be_bytes(fixed(bytes)?);
                if !(0..=DAY).contains(&t) {
                    return Err(Error::sql("22008", "time out of range"));
                }
                Datum::Time(t)
            }
            Type::Timestamp | Type::Timestamptz => Datum::Timestamp(i64::from_be_bytes(fixed(bytes)?)),
            Type::Interval => {
                let mut i = Input { bytes: &Bytes::copy_from_slice(&fixed::<16>(bytes)?), at: 0 };
                let micros = i64::from_be_bytes(i.take()?);
                Datum::Interval(Interval { micros, days: i.i32()?, months: i.i32()? })
            }
            Type::Uuid => Datum::Uuid(fixed(bytes)?),
            Type::Array(e) => Datum::Array(Arc::new(array(bytes, e)?)),
            Type::Void => Datum::Text("".into()),
            Type::Record => return Err(Error::unsupported("input of anonymous composite types is not implemented")),
        })
    }

    /// Appends PostgreSQL's binary format. `NULL` appends nothing.
    pub fn write_binary(&self, ty: &Type, out: &mut Vec<u8>) {
        match self {
            Datum::Null => {}
            Datum::Bool(v) => out.push(u8::from(*v)),
            Datum::Int(v) => match ty {
                Type::Int2 => out.extend_from_slice(&(*v as i16).to_be_bytes()),
                Type::Int8 => out.extend_from_slice(&v.to_be_bytes()),
                _ => out.extend_from_slice(&(*v as i32).to_be_bytes()),
            },
            Datum::Float(v) if *ty == Type::Float4 => out.extend_from_slice(&(*v as f32).to_be_bytes()),
            Datum::Float(v) => out.extend_from_slice(&v.to_be_bytes()),
            Datum::Numeric(v) => write_numeric(v, out),
            Datum::Text(v) if *ty == Type::InternalChar => out.push(v.as_bytes().first().copied().unwrap_or(0)),
            Datum::Text(v) => out.extend_from_slice(v.as_bytes()),
            Datum::Bytea(v) => out.extend_from_slice(v),
            Datum::Date(v) => out.extend_from_slice(&v.to_be_bytes()),
            Datum::Time(v) | Datum::Timestamp(v) => out.extend_from_slice(&v.to_be_bytes()),
            Datum::Interval(v) => {
                out.extend_from_slice(&v.micros.to_be_bytes());
                out.extend_from_slice(&v.days.to_be_bytes());
                out.extend_from_slice(&v.months.to_be_bytes());
            }
            Datum::Uuid(v) => out.extend_from_slice(v),
            Datum::Jsonb(v) => {
                out.push(1);
                v.write(out);
            }
            Datum::Array(v) => match ty {
                Type::Array(element) => write_array(v, element, out),
                _ => write_array(v, &v.element, out),
            },
            Datum::Record(v) => {
                out.extend_from_slice(&(v.values.len() as i32).to_be_bytes());
                for (value, ty) in v.values.iter().zip(v.types.iter()) {
                    out.extend_from_slice(&ty.oid().to_be_bytes());
                    write_nested(value, ty, out);
                }
            }
        }
    }
}

/// A length and the value, or -1.
fn write_nested(value: &Datum, ty: &Type, out: &mut Vec<u8>) {
    if value.is_null() {
        out.extend_from_slice(&(-1i32).to_be_bytes());
        return;
    }
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    value.write_binary(ty, out);
    let len = (out.len() - at - 4) as i32;
    out[at..at + 4].copy_from_slice(&len.to_be_bytes());
}

fn write_array(v: &ArrayValue, element: &Type, out: &mut Vec<u8>) {
    let has_null = v.items.iter().any(Datum::is_null);
    out.extend_from_slice(&(v.dims.len() as i32).to_be_bytes());
    out.extend_from_slice(&i32::from(has_null).to_be_bytes());
    out.extend_from_slice(&element.oid().to_be_bytes());
    for (len, lower) in &v.dims {
        out.extend_from_slice(&(*len as i32).to_be_bytes());
        out.extend_from_slice(&lower.to_be_bytes());
    }
    for item in &v.items {
        write_nested(item, element, out);
    }
}

fn array(bytes: &Bytes, element: &Type) -> Result<ArrayValue> {
    let mut i = Input { bytes, at: 0 };
    let ndim = i.i32()?;
    if !(0..=DIMENSIONS_MAX as i32).contains(&ndim) {
        return Err(Error::sql("54000", format!("number of array dimensions ({ndim}) exceeds the maximum allowed (6)")));
    }
    i.i32()?;
    let oid = u32::from_be_bytes(i.take()?);
    if oid != element.oid() {
        return Err(Error::sql(
            "42804",
            format!("binary data has array element type {oid} instead of expected {}", element.oid()),
        ));
    }
    let mut dims = Vec::with_capacity(ndim as usize);
    let mut total = 1usize;
    for _ in 0..ndim {
        let (len, lower) = (i.i32()?, i.i32()?);
        // Every item takes 4 bytes at least, so a total beyond the input is a lie.
        let len = usize::try_from(len).map_err(|_| bad("a negative array length"))?;
        total = total.checked_mul(len).filter(|t| *t <= bytes.len()).ok_or_else(|| bad("an array longer than its data"))?;
        if i64::from(lower) + len as i64 > i64::from(i32::MAX) {
            return Err(bad("array bounds out of range"));
        }
        dims.push((len, lower));
    }
    if ndim == 0 || total == 0 {
        return Ok(ArrayValue::new(element.clone(), Vec::new()));
    }
    let mut items = Vec::with_capacity(total);
    for _ in 0..total {
        items.push(match i.field()? {
            None => Datum::Null,
            Some(b) => Datum::from_binary(&b, element)?,
        });
    }
    if i.at != bytes.len() {
        return Err(bad("bytes behind the array"));
    }
    Ok(ArrayValue { element: element.clone(), dims, items })
}

const SIGN_NEGATIVE: u16 = 0x4000;
const SIGN_NAN: u16 = 0xC000;
const SIGN_PLUS_INFINITY: u16 = 0xD000;
const SIGN_MINUS_INFINITY: u16 = 0xF000;

fn write_numeric(v: &Numeric, out: &mut Vec<u8>) {
    let header = |out: &mut Vec<u8>, ndigits: i16, weight: i16, sign: u16, scale: u16| {
        out.extend_from_slice(&ndigits.to_be_bytes());
        out.extend_from_slice(&weight.to_be_bytes());
        out.extend_from_slice(&sign.to_be_bytes());
        out.extend_from_slice(&scale.to_be_bytes());
    };
    let Some((digits, negative, scale)) = v.to_digits() else {
        let (sign, scale) = match v {
            Numeric::NaN => (SIGN_NAN, 0),
            Numeric::PosInfinity => (SIGN_PLUS_INFINITY, 0x20),
            _ => (SIGN_MINUS_INFINITY, 0x20),
        };
        return header(out, 0, 0, sign, scale);
    };
    if digits.is_empty() {
        return header(out, 0, 0, 0, scale);
    }
    // Pad on both sides so that groups of four line up with the decimal point.
    let right = (4 - usize::from(scale) % 4) % 4;
    let total = digits.len() + right;
    let left = (4 - total % 4) % 4;
    let mut padded = vec![b'0'; left];
    padded.extend_from_slice(digits.as_bytes());
    padded.resize(padded.len() + right, b'0');
    let mut groups: Vec<i16> = padded.chunks(4).map(|g| g.iter().fold(0, |v, b| v * 10 + i16::from(b - b'0'))).collect();
    let fraction_groups = (usize::from(scale) + right) / 4;
    let weight = groups.len() as i64 - fraction_groups as i64 - 1;
    while groups.last() == Some(&0) {
        groups.pop();
    }
    header(out, groups.len() as i16, weight as i16, if negative { SIGN_NEGATIVE } else { 0 }, scale);
    for g in groups {
        out.extend_from_slice(&g.to_be_bytes());
    }
}

fn numeric(bytes: &Bytes) -> Result<Numeric> {
    let mut i = Input { bytes, at: 0 };
    let (ndigits, weight) = (i.i16()?, i.i16()?);
    let (sign, scale) = (i.i16()? as u16, i.i16()? as u16);
    match sign {
        SIGN_NAN => return Ok(Numeric::NaN),
        SIGN_PLUS_INFINITY => return Ok(Numeric::PosInfinity),
        SIGN_MINUS_INFINITY => return Ok(Numeric::NegInfinity),
        0 | SIGN_NEGATIVE => {}
        _ => return Err(Error::sql("22P03", "invalid sign in external \"numeric\" value")),
    }
    if scale > 0x3FFF {
        return Err(Error::sql("22P03", "invalid scale in external \"numeric\" value"));
    }
    let ndigits = usize::try_from(ndigits).map_err(|_| Error::sql("22P03", "invalid length in external \"numeric\" value"))?;
    if bytes.len() != 8 + ndigits * 2 {
        return Err(Error::sql("22P03", "invalid length in external \"numeric\" value"));
    }
    let mut digits = String::with_capacity(ndigits * 4);
    for _ in 0..ndigits {
        let d = i.i16()?;
        if !(0..10_000).contains(&d) {
            return Err(Error::sql("22P03", "invalid digit in external \"numeric\" value"));
        }
        digits.push_str(&format!("{d:04}"));
    }
    // The digits stand for `digits × 10^(4·(weight + 1 − ndigits))`; shift them to the scale,
    // cutting what it does not show.
    let shift = 4 * (i64::from(weight) + 1 - ndigits as i64) + i64::from(scale);
    if shift >= 0 {
        if !digits.is_empty() {
            digits.extend(std::iter::repeat_n('0', shift as usize));
        }
    } else {
        digits.truncate(digits.len().saturating_sub(shift.unsigned_abs() as usize));
    }
    Numeric::from_digits(digits.trim_start_matches('0'), sign == SIGN_NEGATIVE, scale)
        .ok_or_else(|| Error::sql("22P03", "invalid digit in external \"numeric\" value"))
}
