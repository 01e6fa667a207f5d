//! Values from text.

use crate::types::cast::fit_modifier;
use crate::types::datetime::{interval, parse};
use crate::types::numeric::Numeric;
use crate::types::{CastContext, Datum, EvalContext, Type, array, jsonb};
use bytes::Bytes;
use meridian_base::{Error, Result};
use std::sync::Arc;

const BLANKS: [char; 6] = [' ', '\t', '\n', '\r', '\x0b', '\x0c'];

fn syntax(ty: &Type, text: &str) -> Error {
    Error::sql("22P02", format!("invalid input syntax for type {}: \"{text}\"", ty.base_name()))
}

impl Datum {
    /// Reads a value of a type from text, as a quoted literal or a text parameter is read. Applies
    /// the type's modifier as an assignment does.
    pub fn from_text(text: &str, ty: &Type, ctx: &EvalContext) -> Result<Datum> {
        Ok(match ty {
            Type::Bool => Datum::Bool(boolean(text).ok_or_else(|| syntax(ty, text))?),
            Type::Int2 => Datum::Int(integer(text, ty, i64::from(i16::MIN), i64::from(i16::MAX))?),
            Type::Int4 => Datum::Int(integer(text, ty, i64::from(i32::MIN), i64::from(i32::MAX))?),
            Type::Int8 => Datum::Int(integer(text, ty, i64::MIN, i64::MAX)?),
            Type::Oid => Datum::Int(oid(text)?),
            Type::Regclass | Type::Regtype | Type::Regproc | Type::Regnamespace => match text.trim_matches(BLANKS) {
                "-" => Datum::Int(0),
                t if !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit()) => Datum::Int(oid(t)?),
                t => Datum::Int(i64::from(ctx.system.reg_oid(ctx, ty, t)?)),
            },
            Type::Float4 => Datum::Float(f64::from(float4(text)?)),
            Type::Float8 => Datum::Float(float8(text)?),
            Type::Numeric(_) => {
                let n = Numeric::parse(text).ok_or_else(|| syntax(ty, text))??;
                return fit_modifier(Datum::Numeric(n), ty, CastContext::Assignment);
            }
            Type::Varchar(_) | Type::Char(_) | Type::Name | Type::InternalChar => {
                return fit_modifier(Datum::Text(checked(text)?.into()), ty, CastContext::Assignment);
            }
            Type::Region => Datum::Text(region(text, ctx)?.into()),
            Type::Text | Type::Unknown => Datum::Text(checked(text)?.into()),
            Type::Bytea => Datum::Bytea(Bytes::from(bytea(text)?)),
            Type::Date => Datum::Date(parse::date(text, ctx)?),
            Type::Time => Datum::Time(parse::time(text, ctx)?),
            Type::Timestamp => Datum::Timestamp(parse::timestamp(text, ctx)?),
            Type::Timestamptz => Datum::Timestamp(parse::timestamptz(text, ctx)?),
            Type::Interval => Datum::Interval(interval::parse(text)?),
            Type::Uuid => Datum::Uuid(uuid(text).ok_or_else(|| syntax(ty, text))?),
            Type::Json => {
                jsonb::validate(text)?;
                Datum::Text(text.into())
            }
            Type::Jsonb => Datum::Jsonb(Arc::new(jsonb::parse(text)?)),
            Type::Array(e) => Datum::Array(Arc::new(array::parse(text, e, ctx)?)),
            Type::Void => Datum::Text("".into()),
            Type::Record => return Err(Error::unsupported("input of anonymous composite types is not implemented")),
        })
    }
}

/// A region of the current database.
fn region<'t>(text: &'t str, ctx: &EvalContext) -> Result<&'t str> {
    let regions = ctx.catalog.regions(&ctx.database);
    let regions = regions.ok_or_else(|| {
        Error::sql("42704", "type \"crdb_internal_region\" does not exist")
            .detail(format!("Database \"{}\" has no regions.", ctx.database))
            .hint("ALTER DATABASE … SET PRIMARY REGION makes it a multi-region database.")
    })?;
    if !regions.all.iter().any(|r| r == text) {
        return Err(Error::sql("22P02", format!("invalid input value for enum crdb_internal_region: \"{text}\""))
            .hint(format!("valid regions: {}", regions.all.join(", "))));
    }
    Ok(text)
}

/// Text in the database has no zero bytes.
fn checked(text: &str) -> Result<&str> {
    if text.as_bytes().contains(&0) {
        return Err(Error::sql("22021", "invalid byte sequence for encoding \"UTF8\": 0x00"));
    }
    Ok(text)
}

/// Unique prefixes of `true`, `false`, `yes`, `no`; `on`, `off`; `1`, `0`.
fn boolean(text: &str) -> Option<bool> {
    let t = text.trim_matches(BLANKS).to_ascii_lowercase();
    match t.as_str() {
        "" => None,
        "on" | "1" => Some(true),
        "of" | "off" | "0" => Some(false),
        t if "true".starts_with(t) || "yes".starts_with(t) => Some(true),
        t if "false".starts_with(t) || "no".starts_with(t) => Some(false),
        _ => None,
    }
}

fn integer(text: &str, ty: &Type, min: i64, max: i64) -> Result<i64> {
    let t = text.trim_matches(BLANKS);
    let digits = t.strip_prefix(['-', '+']).unwrap_or(t);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(syntax(ty, text));
    }
    match t.parse::<i64>() {
        Ok(v) if (min..=max).contains(&v) => Ok(v),
        _ => Err(Error::sql("22003", format!("value \"{text}\" is out of range for type {}", ty.base_name()))),
    }
}

fn oid(text: &str) -> Result<i64> {
    let t = text.trim_matches(BLANKS);
    let digits = t.strip_prefix(['-', '+']).unwrap_or(t);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(syntax(&Type::Oid, text));
    }
    match t.parse::<i64>() {
        // Negative numbers wrap, as in PostgreSQL.
        Ok(v) if (i64::from(i32::MIN)..=i64::from(u32::MAX)).contains(&v) => Ok(i64::from(v as u32)),
        _ => Err(Error::sql("22003", format!("value \"{text}\" is out of range for type oid"))),
    }
}

/// What Rust's parser takes and C's does not, or the other way round, is settled here: letters only
/// in `e`, `inf`, `infinity`, `nan`.
fn float_text<'a>(text: &'a str, ty: &Type) -> Result<&'a str> {
    let t = text.trim_matches(BLANKS);
    if t.is_empty() { Err(syntax(ty, text)) } else { Ok(t) }
}

fn has_nonzero_digit(t: &str) -> bool {
    t.split(['e', 'E']).next().is_some_and(|m| m.bytes().any(|b| (b'1'..=b'9').contains(&b)))
}

/// Reads a `double precision`.
pub fn float8(text: &str) -> Result<f64> {
    let t = float_text(text, &Type::Float8)?;
    let v: f64 = t.parse().map_err(|_| syntax(&Type::Float8, text))?;
    let digits = t.bytes().any(|b| b.is_ascii_digit());
    if digits && (v.is_infinite() || v == 0.0 && has_nonzero_digit(t)) {
        return Err(Error::sql("22003", format!("\"{text}\" is out of range for type double precision")));
    }
    Ok(v)
}

fn float4(text: &str) -> Result<f32> {
    let t = float_text(text, &Type::Float4)?;
    let v: f32 = t.parse().map_err(|_| syntax(&Type::Float4, text))?;
    let digits = t.bytes().any(|b| b.is_ascii_digit());
    if digits && (v.is_infinite() || v == 0.0 && has_nonzero_digit(t)) {
        return Err(Error::sql("22003", format!("\"{text}\" is out of range for type real")));
    }
    Ok(v)
}

/// Hexadecimal digits, blanks between bytes allowed.
pub fn hex(text: &str) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 2);
    let mut high = None;
    for c in text.chars() {
        if high.is_none() && matches!(c, ' ' | '\t' | '\n' | '\r') {
            continue;
        }
        let d = c.to_digit(16).ok_or_else(|| Error::sql("22023", format!("invalid hexadecimal digit: \"{c}\"")))?;
        match high.take() {
            None => high = Some(d),
            Some(h) => out.push((h * 16 + d) as u8),
        }
    }
    if high.is_some() {
        return Err(Error::sql("22023", "invalid hexadecimal data: odd number of digits"));
    }
    Ok(out)
}

/// Reads a bytea in hex or escape format.
pub fn bytea(text: &str) -> Result<Vec<u8>> {
    if let Some(digits) = text.strip_prefix("\\x") {
        return hex(digits);
    }
    let bad = || Error::sql("22P02", "invalid input syntax for type bytea");
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((b, tail)) = rest.split_first() {
        rest = tail;
        if *b != b'\\' {
            out.push(*b);
            continue;
        }
        match rest {
            [b'\\', tail @ ..] => {
                out.push(b'\\');
                rest = tail;
            }
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', tail @ ..] => {
                out.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
                rest = tail;
            }
            _ => return Err(bad()),
        }
    }
    Ok(out)
}

/// 32 hexadecimal digits, hyphens after any group of four, braces around it.
pub fn uuid(text: &str) -> Option<[u8; 16]> {
    let t = match text.strip_prefix('{') {
        Some(inner) => inner.strip_suffix('}')?,
        None => text,
    };
    let mut out = [0; 16];
    let mut count = 0;
    let mut last_hyphen = false;
    for b in t.bytes() {
        if b == b'-' {
            if count == 0 || count % 4 != 0 || count == 32 || last_hyphen {
                return None;
            }
            last_hyphen = true;
            continue;
        }
        last_hyphen = false;
        let d = (b as char).to_digit(16)? as u8;
        let slot = out.get_mut(count / 2)?;
        *slot = *slot << 4 | d;
        count += 1;
    }
    (count == 32).then_some(out)
}
