//! Columns as index keys: bytes that compare as the values do, and are equal exactly if the values
//! are.
//!
//! Every column starts with a marker (`base::key`); `NULL`'s marker sorts on the side that the
//! index wants. Values that are equal but look different (`1.0` and `1.00`, `1 day` and `24:00:00`)
//! have one key, so a key gives back *a* value equal to the one that was stored; where its looks
//! matter ([`keeps_looks`] is false) it has to be read from the row.
//!
//! * numbers: sign class, decimal exponent, digits in pairs; the whole inverted if negative;
//! * intervals: the sum that their order looks at;
//! * arrays: each element behind a marker, an end marker, the shape;
//! * `jsonb`: kind, size, contents; a document that is an empty array is of a kind before all
//!   others.

use super::compare::trim_blanks;
use super::jsonb::Json;
use super::numeric::Numeric;
use super::{ArrayValue, Datum, Interval, Text, Type};
use bytes::Bytes;
use meridian_base::key::{decode, encode};
use meridian_base::{Error, Result};
use std::sync::Arc;

/// `NULL` where it sorts after every value, before direction.
const NULL_LAST: u8 = 0xFE;
/// `NULL` where it sorts before every value, before direction.
const NULL_FIRST: u8 = 0x00;
const VALUE: u8 = 0x01;

/// Whether a value comes back from its key looking as it was stored.
pub fn keeps_looks(ty: &Type) -> bool {
    match ty {
        Type::Numeric(_) | Type::Interval | Type::Jsonb | Type::Float4 | Type::Float8 | Type::Char(0) => false,
        Type::Array(e) => keeps_looks(e),
        _ => true,
    }
}

/// Whether equal values of a type are the same to every function.
pub fn is_exact(ty: &Type) -> bool {
    keeps_looks(ty) && !matches!(ty, Type::Char(_))
}

/// Whether the type has an order, and so may be indexed, sorted and grouped by.
pub fn has_order(ty: &Type) -> bool {
    match ty {
        Type::Json | Type::Void => false,
        Type::Array(e) => has_order(e),
        _ => true,
    }
}

/// Appends a column to a key. 54000 is the caller's to raise when the whole key gets too long;
/// 42883 if the type has no order.
pub fn encode_key_column(out: &mut Vec<u8>, value: &Datum, ty: &Type, descending: bool, nulls_first: bool) -> Result<()> {
    let from = out.len();
    if value.is_null() {
        out.push(if nulls_first == descending { NULL_LAST } else { NULL_FIRST });
    } else {
        encode_value(out, value, ty)?;
    }
    if descending {
        encode::invert(out, from);
    }
    Ok(())
}

fn encode_value(out: &mut Vec<u8>, value: &Datum, ty: &Type) -> Result<()> {
    match value {
        Datum::Null => encode::null(out),
        Datum::Bool(v) => encode::bool(out, *v),
        Datum::Int(v) | Datum::Time(v) | Datum::Timestamp(v) => encode::i64(out, *v),
        Datum::Date(v) => encode::i64(out, i64::from(*v)),
        Datum::Float(v) => encode::f64(out, *v),
        Datum::Numeric(v) => encode_numeric(out, v),
        Datum::Text(_) if *ty == Type::Json => {
            return Err(Error::sql("42883", "could not identify an ordering operator for type json"));
        }
        Datum::Text(v) if matches!(ty, Type::Char(_)) => encode::bytes(out, trim_blanks(v.as_bytes())),
        Datum::Text(v) => encode::bytes(out, v.as_bytes()),
        Datum::Bytea(v) => encode::bytes(out, v),
        Datum::Uuid(v) => encode::fixed(out, v),
        Datum::Interval(v) => {
            let ordered = (v.order() as u128) ^ (1 << 127);
            encode::fixed(out, &ordered.to_be_bytes());
        }
        Datum::Array(v) => {
            out.push(VALUE);
            for item in &v.items {
                encode_value(out, item, &v.element)?;
            }
            out.push(0);
            out.push(v.dims.len() as u8);
            for (len, lower) in &v.dims {
                encode::i64(out, *len as i64);
                encode::i64(out, i64::from(*lower));
            }
        }
        Datum::Jsonb(v) => {
            out.push(VALUE);
            match &**v {
                Json::Array(items) if items.is_empty() => out.push(0),
                v => encode_json(out, v),
            }
        }
        Datum::Record(_) => return Err(Error::sql("42883", "could not identify an ordering operator for type record")),
    }
    Ok(())
}

/// Reads a column back and moves `input` behind it. `char(n)` comes back padded.
pub fn decode_key_column(input: &mut &[u8], ty: &Type, descending: bool, nulls_first: bool) -> Result<Datum> {
    let marker = input.first().map(|b| if descending { !b } else { *b }).ok_or_else(damaged)?;
    let null = if nulls_first == descending { NULL_LAST } else { NULL_FIRST };
    if marker == null {
        *input = &input[1..];
        return Ok(Datum::Null);
    }
    decode_value(input, ty, descending).ok_or_else(damaged)
}

fn damaged() -> Error {
    Error::sql("XX001", "an index key is damaged")
}

fn byte(input: &mut &[u8], descending: bool) -> Option<u8> {
    let (first, rest) = input.split_first()?;
    *input = rest;
    Some(if descending { !first } else { *first })
}

/// A value behind its `VALUE` marker.
fn decode_value(input: &mut &[u8], ty: &Type, d: bool) -> Option<Datum> {
    if byte(input, d)? != VALUE {
        return None;
    }
    Some(match ty {
        Type::Bool => Datum::Bool(decode::bool(input, d)?),
        Type::Int2 | Type::Int4 | Type::Int8 => Datum::Int(decode::i64(input, d)?),
        t if t.is_oid_like() => Datum::Int(decode::i64(input, d)?),
        Type::Float4 | Type::Float8 => Datum::Float(decode::f64(input, d)?),
        Type::Numeric(_) => Datum::Numeric(decode_numeric(input, d)?),
        Type::Char(n) => {
            let mut s = String::from_utf8(decode::bytes(input, d)?).ok()?;
            let missing = (*n as usize).saturating_sub(s.chars().count());
            s.extend(std::iter::repeat_n(' ', missing));
            Datum::text(s)
        }
        Type::Text | Type::Varchar(_) | Type::Name | Type::InternalChar | Type::Region | Type::Unknown => {
            let bytes = decode::bytes(input, d)?;
            std::str::from_utf8(&bytes).ok()?;
            Datum::Text(Text::from_stored(Bytes::from(bytes)))
        }
        Type::Bytea => Datum::Bytea(Bytes::from(decode::bytes(input, d)?)),
        Type::Date => Datum::Date(i32::try_from(decode::i64(input, d)?).ok()?),
        Type::Time => Datum::Time(decode::i64(input, d)?),
        Type::Timestamp | Type::Timestamptz => Datum::Timestamp(decode::i64(input, d)?),
        Type::Interval => Datum::Interval(interval_of(decode::fixed(input, 16, d)?)?),
        Type::Uuid => Datum::Uuid(decode::fixed(input, 16, d)?.try_into().ok()?),
        Type::Array(e) => Datum::Array(Arc::new(decode_array(input, e, d)?)),
        Type::Jsonb => Datum::Jsonb(Arc::new(decode_json(input, d, 0)?)),
        _ => return None,
    })
}

/// The canonical interval of an order: days and time.
fn interval_of(bytes: Vec<u8>) -> Option<Interval> {
    let ordered = u128::from_be_bytes(bytes.try_into().ok()?) ^ (1 << 127);
    let (total, day) = (ordered as i128, i128::from(super::datetime::DAY));
    let days = total / day;
    let micros = i64::try_from(total % day).ok()?;
    match i32::try_from(days) {
        Ok(days) => Some(Interval { months: 0, days, micros }),
        Err(_) => Some(Interval { months: i32::try_from(days / 30).ok()?, days: (days % 30) as i32, micros }),
    }
}

const MINUS_INFINITY: u8 = 1;
const NEGATIVE: u8 = 2;
const ZERO: u8 = 3;
const POSITIVE: u8 = 4;
const PLUS_INFINITY: u8 = 5;
const NAN: u8 = 6;

fn encode_numeric(out: &mut Vec<u8>, n: &Numeric) {
    out.push(VALUE);
    let Some((digits, negative, scale)) = n.to_digits() else {
        out.push(match n {
            Numeric::PosInfinity => PLUS_INFINITY,
            Numeric::NegInfinity => MINUS_INFINITY,
            _ => NAN,
        });
        return;
    };
    if digits.is_empty() {
        out.push(ZERO);
        return;
    }
    out.push(if negative { NEGATIVE } else { POSITIVE });
    let from = out.len();
    // The value is 0.d₁d₂d₃… × 10^exponent.
    let exponent = digits.len() as i32 - i32::from(scale);
    out.extend_from_slice(&((exponent as u32) ^ (1 << 31)).to_be_bytes());
    for pair in digits.trim_end_matches('0').as_bytes().chunks(2) {
        // 1 to 100, so that the end marker 0 sorts first.
        out.push((pair[0] - b'0') * 10 + pair.get(1).map_or(0, |b| b - b'0') + 1);
    }
    out.push(0);
    if negative {
        encode::invert(out, from);
    }
}

fn decode_numeric(input: &mut &[u8], d: bool) -> Option<Numeric> {
    let class = byte(input, d)?;
    let negative = match class {
        MINUS_INFINITY => return Some(Numeric::NegInfinity),
        PLUS_INFINITY => return Some(Numeric::PosInfinity),
        NAN => return Some(Numeric::NaN),
        ZERO => return Some(Numeric::ZERO),
        NEGATIVE => true,
        POSITIVE => false,
        _ => return None,
    };
    let flip = d != negative;
    let mut exponent = [0; 4];
    for b in &mut exponent {
        *b = byte(input, flip)?;
    }
    let exponent = (u32::from_be_bytes(exponent) ^ (1 << 31)) as i32;
    let mut digits = String::new();
    loop {
        match byte(input, flip)? {
            0 => break,
            pair @ 1..=100 => digits.push_str(&format!("{:02}", pair - 1)),
            _ => return None,
        }
    }
    if digits.is_empty() || !(-200_000..=200_000).contains(&exponent) {
        return None;
    }
    let trimmed = digits.trim_end_matches('0').len().max(1);
    digits.truncate(trimmed);
    let scale = digits.len() as i64 - i64::from(exponent);
    if scale < 0 {
        digits.extend(std::iter::repeat_n('0', scale.unsigned_abs() as usize));
    }
    let scale = u16::try_from(scale.max(0)).ok()?;
    Numeric::from_digits(digits.trim_start_matches('0'), negative, scale)
}

fn decode_array(input: &mut &[u8], element: &Type, d: bool) -> Option<ArrayValue> {
    let mut items = Vec::new();
    loop {
        match input.first().map(|b| if d { !b } else { *b })? {
            0 => break,
            NULL_LAST => {
                byte(input, d)?;
                items.push(Datum::Null);
            }
            _ => items.push(decode_value(input, element, d)?),
        }
    }
    byte(input, d)?;
    let ndim = byte(input, d)?;
    let mut dims = Vec::new();
    let mut total = 1usize;
    for _ in 0..ndim {
        decode::is_null(input, d)?;
        let len = usize::try_from(decode::i64(input, d)?).ok()?;
        decode::is_null(input, d)?;
        dims.push((len, i32::try_from(decode::i64(input, d)?).ok()?));
        total = total.checked_mul(len)?;
    }
    if (if dims.is_empty() { 0 } else { total }) != items.len() {
        return None;
    }
    Some(ArrayValue { element: element.clone(), dims, items })
}

fn encode_json(out: &mut Vec<u8>, v: &Json) {
    match v {
        Json::Null => out.push(1),
        Json::String(s) => {
            out.push(2);
            encode::bytes(out, s.as_bytes());
        }
        Json::Number(n) => {
            out.push(3);
            encode_numeric(out, n);
        }
        Json::Bool(b) => {
            out.push(4);
            encode::bool(out, *b);
        }
        Json::Array(items) => {
            out.push(5);
            out.extend_from_slice(&(items.len() as u32).to_be_bytes());
            for item in items {
                encode_json(out, item);
            }
        }
        Json::Object(pairs) => {
            out.push(6);
            out.extend_from_slice(&(pairs.len() as u32).to_be_bytes());
            for (k, item) in pairs {
                encode::bytes(out, k.as_bytes());
                encode_json(out, item);
            }
        }
    }
}

/// Deepest document that a key is read back from.
const DEPTH_MAX: usize = 512;

fn decode_json(input: &mut &[u8], d: bool, depth: usize) -> Option<Json> {
    if depth > DEPTH_MAX {
        return None;
    }
    let kind = byte(input, d)?;
    let text = |input: &mut &[u8]| -> Option<String> {
        decode::is_null(input, d)?;
        String::from_utf8(decode::bytes(input, d)?).ok()
    };
    let count = |input: &mut &[u8]| -> Option<u32> {
        let mut n = [0; 4];
        for b in &mut n {
            *b = byte(input, d)?;
        }
        Some(u32::from_be_bytes(n))
    };
    Some(match kind {
        0 => Json::Array(Vec::new()),
        1 => Json::Null,
        2 => Json::String(text(input)?),
        3 => {
            byte(input, d)?;
            Json::Number(decode_numeric(input, d)?)
        }
        4 => {
            decode::is_null(input, d)?;
            Json::Bool(decode::bool(input, d)?)
        }
        5 => {
            let mut items = Vec::new();
            for _ in 0..count(input)? {
                items.push(decode_json(input, d, depth + 1)?);
            }
            Json::Array(items)
        }
        6 => {
            let mut pairs = Vec::new();
            for _ in 0..count(input)? {
                pairs.push((text(input)?, decode_json(input, d, depth + 1)?));
            }
            Json::object(pairs)
        }
        _ => return None,
    })
}
