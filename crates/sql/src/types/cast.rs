//! Conversions between types, and in which contexts they happen by themselves (PostgreSQL manual,
//! `CREATE CAST` and 10.2–10.4).
//!
//! The table of casts is `pg_cast`'s; besides, every type converts to a string type in an
//! assignment and from one explicitly, through its text form.

use super::datetime::{self, DAY};
use super::jsonb::Json;
use super::numeric::Numeric;
use super::{ArrayValue, Category, Datum, EvalContext, Interval, Text, Type};
use bytes::Bytes;
use meridian_base::{Error, Result};
use std::sync::Arc;

/// Where a conversion is wanted; each context allows what the ones before it allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CastContext {
    /// An argument of an operator or function.
    Implicit,
    /// A value for a column.
    Assignment,
    /// `CAST(x AS t)`, `x::t`.
    Explicit,
}

/// The weakest context in which one type becomes another.
fn needed(from: &Type, to: &Type) -> Option<CastContext> {
    use CastContext::{Assignment, Explicit, Implicit};
    use Type::*;
    if from.same_base(to) || *from == Unknown {
        return Some(Implicit);
    }
    let listed = match (from, to) {
        (Int2, Int4 | Int8 | Float4 | Float8 | Numeric(_)) => Implicit,
        (Int4, Int8 | Float4 | Float8 | Numeric(_)) => Implicit,
        (Int8, Float4 | Float8 | Numeric(_)) => Implicit,
        (Numeric(_), Float4 | Float8) => Implicit,
        (Float4, Float8) => Implicit,
        (Int4 | Int8, Int2) | (Int8, Int4) => Assignment,
        (Float4 | Float8, Int2 | Int4 | Int8 | Numeric(_)) | (Float8, Float4) => Assignment,
        (Numeric(_), Int2 | Int4 | Int8) => Assignment,
        (Int4, Bool) | (Bool, Int4) => Explicit,
        (Int2 | Int4 | Int8, t) if t.is_oid_like() => Implicit,
        (f, Int8) if f.is_oid_like() => Implicit,
        (f, Int4) if f.is_oid_like() => Assignment,
        (Oid, t) if t.is_oid_like() => Implicit,
        (f, Oid) if f.is_oid_like() => Implicit,
        (Text | Varchar(_), Regclass) => Implicit,
        (Text, Varchar(_) | Char(_)) | (Varchar(_), Text | Char(_)) => Implicit,
        (Char(_), Text | Varchar(_)) => Implicit,
        (Name, Text) => Implicit,
        (Text | Varchar(_) | Char(_), Name) => Implicit,
        (Name, Varchar(_) | Char(_)) => Assignment,
        (InternalChar, Text) => Implicit,
        (InternalChar, Varchar(_) | Char(_)) | (Text | Varchar(_) | Char(_), InternalChar) => Assignment,
        (Int4, InternalChar) | (InternalChar, Int4) => Explicit,
        (Date, Timestamp | Timestamptz) => Implicit,
        (Timestamp, Timestamptz) => Implicit,
        (Timestamp | Timestamptz, Date | Time) | (Timestamptz, Timestamp) => Assignment,
        (Time, Interval) => Implicit,
        (Interval, Time) => Assignment,
        (Json, Jsonb) | (Jsonb, Json) => Assignment,
        // PostgreSQL wants an explicit cast; CockroachDB's schemas compute regions by expressions
        // of type text.
        (Text | Varchar(_), Region) => Assignment,
        (Jsonb, Bool | Int2 | Int4 | Int8 | Float4 | Float8 | Numeric(_)) => Explicit,
        (Array(f), Array(t)) => return needed(f, t),
        (Record | Void, _) | (_, Record | Void | Unknown) => {
            return (*from == Record && to.category() == Category::String).then_some(Assignment);
        }
        (_, t) if t.category() == Category::String => Assignment,
        (f, _) if f.category() == Category::String => Explicit,
        _ => return None,
    };
    Some(listed)
}

/// Whether a value of one type may become another in a context. `Unknown` may become anything.
pub fn can_cast(from: &Type, to: &Type, context: CastContext) -> bool {
    needed(from, to).is_some_and(|n| n <= context)
}

/// Whether a conversion's result depends on its value alone, and not on the time zone, the catalog
/// or the clock.
pub fn is_immutable_cast(from: &Type, to: &Type) -> bool {
    use Type::*;
    fn reads_context(t: &Type) -> bool {
        matches!(t, Timestamptz | Date | Timestamp | Time | Regclass | Regproc | Regtype | Regnamespace | Record)
    }
    let (from, to) = match (from, to) {
        (Array(f), Array(t)) => (&**f, &**t),
        (Array(f), t) => (&**f, t),
        (f, Array(t)) => (f, &**t),
        both => both,
    };
    let is_textual = |t: &Type| *t == Unknown || t.category() == Category::String;
    from == to
        || !(reads_context(from) || reads_context(to))
        || (!is_textual(from) && !is_textual(to) && *from != Timestamptz && *to != Timestamptz)
}

fn out_of_range(ty: &Type) -> Error {
    Error::sql("22003", format!("{} out of range", ty.base_name()))
}

/// Converts a value, the target's modifier included (`varchar(3)`: an assignment of a longer text
/// is 22001, an explicit cast cuts). 42846 if there is no such conversion.
pub fn cast(value: Datum, from: &Type, to: &Type, context: CastContext, ctx: &EvalContext) -> Result<Datum> {
    if value.is_null() {
        return Ok(Datum::Null);
    }
    if from.same_base(to) {
        return fit_modifier(value, to, context);
    }
    if !can_cast(from, to, context) {
        return Err(Error::sql("42846", format!("cannot cast type {} to {}", from.base_name(), to.base_name())));
    }
    let converted = convert(value, from, to, context, ctx)?;
    fit_modifier(converted, to, context)
}

fn convert(value: Datum, from: &Type, to: &Type, context: CastContext, ctx: &EvalContext) -> Result<Datum> {
    match to {
        Type::Int2 | Type::Int4 | Type::Int8 => to_integer(&value, from, to, ctx),
        t if t.is_oid_like() => match &value {
            Datum::Int(v) if (0..=i64::from(u32::MAX)).contains(v) => Ok(value),
            Datum::Int(v) if *from != Type::Int8 => Ok(Datum::Int(i64::from(*v as u32))),
            Datum::Int(_) => Err(Error::sql("22003", "OID out of range")),
            v => Datum::from_text(&v.to_text(from, ctx), to, ctx),
        },
        Type::Float4 | Type::Float8 | Type::Numeric(_) => to_fractional(value, from, to, ctx),
        Type::Bool => match &value {
            Datum::Int(v) => Ok(Datum::Bool(*v != 0)),
            Datum::Jsonb(j) => match **j {
                Json::Bool(b) => Ok(Datum::Bool(b)),
                ref other => Err(json_scalar_error(other, to)),
            },
            v => from_text_form(v, from, to, ctx),
        },
        Type::InternalChar if *from == Type::Int4 => match value {
            Datum::Int(v) if (0..128).contains(&v) => {
                Ok(Datum::text(if v == 0 { String::new() } else { char::from(v as u8).to_string() }))
            }
            _ => Err(Error::sql("22003", "\"char\" out of range")),
        },
        Type::Text | Type::Varchar(_) | Type::Char(_) | Type::Name | Type::InternalChar => to_string_type(value, from, ctx),
        Type::Date | Type::Time | Type::Timestamp | Type::Timestamptz | Type::Interval => to_datetime(value, from, to, ctx),
        Type::Jsonb => match &value {
            Datum::Text(t) => Ok(Datum::Jsonb(Arc::new(super::jsonb::parse(t.as_str())?))),
            v => from_text_form(v, from, to, ctx),
        },
        Type::Json => match &value {
            Datum::Jsonb(j) => Ok(Datum::text(j.to_text())),
            v => from_text_form(v, from, to, ctx),
        },
        Type::Array(element) => match &value {
            Datum::Array(a) => {
                let items = a.items.iter().map(|i| cast(i.clone(), &a.element, element, context, ctx)).collect::<Result<_>>()?;
                Ok(Datum::Array(Arc::new(ArrayValue { element: element.without_modifier(), dims: a.dims.clone(), items })))
            }
            v => from_text_form(v, from, to, ctx),
        },
        _ => from_text_form(&value, from, to, ctx),
    }
}

/// Through the text form, without the modifier: that is applied according to the context.
fn from_text_form(value: &Datum, from: &Type, to: &Type, ctx: &EvalContext) -> Result<Datum> {
    let bare = to.without_modifier();
    match value {
        Datum::Text(t) => Datum::from_text(t.as_str(), &bare, ctx),
        v => Datum::from_text(&v.to_text(from, ctx), &bare, ctx),
    }
}

fn json_scalar_error(j: &Json, to: &Type) -> Error {
    let kind = match j {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(_) => "numeric",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    };
    Error::sql("22023", format!("cannot cast jsonb {kind} to type {}", to.base_name()))
}

/// Bounds of an integer type.
pub fn integer_range(ty: &Type) -> (i64, i64) {
    match ty {
        Type::Int2 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        Type::Int4 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    }
}

fn to_integer(value: &Datum, from: &Type, to: &Type, ctx: &EvalContext) -> Result<Datum> {
    let (min, max) = integer_range(to);
    let bounded = |v: i64| if (min..=max).contains(&v) { Ok(Datum::Int(v)) } else { Err(out_of_range(to)) };
    let of_numeric = |n: &Numeric| {
        if !n.is_finite() {
            let what = if n.is_nan() { "NaN" } else { "infinity" };
            return Err(Error::sql("0A000", format!("cannot convert {what} to {}", to.base_name())));
        }
        n.to_i64().ok_or_else(|| out_of_range(to)).and_then(bounded)
    };
    match value {
        Datum::Int(v) if from.is_oid_like() && *to == Type::Int4 => Ok(Datum::Int(i64::from(*v as i32))),
        Datum::Int(v) => bounded(*v),
        Datum::Bool(v) => Ok(Datum::Int(i64::from(*v))),
        Datum::Float(v) => {
            let r = v.round_ties_even();
            // i64::MAX is not a double; the next one up is 2^63 and out.
            if r.is_nan() || r < min as f64 || r > max as f64 || r >= 9_223_372_036_854_775_808.0 {
                return Err(out_of_range(to));
            }
            bounded(r as i64)
        }
        Datum::Numeric(n) => of_numeric(n),
        Datum::Jsonb(j) => match &**j {
            Json::Number(n) => of_numeric(n),
            other => Err(json_scalar_error(other, to)),
        },
        Datum::Text(t) if *from == Type::InternalChar => Ok(Datum::Int(t.as_bytes().first().map_or(0, |b| i64::from(*b as i8)))),
        v => from_text_form(v, from, to, ctx),
    }
}

fn to_fractional(value: Datum, from: &Type, to: &Type, ctx: &EvalContext) -> Result<Datum> {
    let of_numeric = |n: &Numeric| match to {
        Type::Numeric(_) => Ok(Datum::Numeric(n.clone())),
        Type::Float4 => Datum::from_text(&n.to_string(), to, ctx),
        _ => {
            let v = n.to_f64();
            if n.is_finite() && (v.is_infinite() || (v == 0.0 && !n.is_zero())) {
                return Err(Error::sql("22003", format!("\"{n}\" is out of range for type double precision")));
            }
            Ok(Datum::Float(v))
        }
    };
    match (&value, to) {
        (Datum::Int(v), Type::Numeric(_)) => Ok(Datum::Numeric(Numeric::from(*v))),
        (Datum::Int(v), Type::Float4) => Ok(Datum::Float(f64::from(*v as f32))),
        (Datum::Int(v), _) => Ok(Datum::Float(*v as f64)),
        (Datum::Float(v), Type::Numeric(_)) => {
            Ok(Datum::Numeric(Numeric::from_f64(*v, if *from == Type::Float4 { 6 } else { 15 })))
        }
        (Datum::Float(v), Type::Float4) => {
            let narrow = *v as f32;
            if narrow.is_infinite() && v.is_finite() {
                return Err(Error::sql("22003", "value out of range: overflow"));
            }
            if narrow == 0.0 && *v != 0.0 {
                return Err(Error::sql("22003", "value out of range: underflow"));
            }
            Ok(Datum::Float(f64::from(narrow)))
        }
        (Datum::Float(_), _) => Ok(value),
        (Datum::Numeric(n), _) => of_numeric(n),
        (Datum::Jsonb(j), _) => match &**j {
            Json::Number(n) => of_numeric(n),
            other => Err(json_scalar_error(other, to)),
        },
        (v, _) => from_text_form(v, from, to, ctx),
    }
}

/// To a string type; its length is applied afterwards. Blanks at the end of a `char(n)` do not
/// count.
fn to_string_type(value: Datum, from: &Type, ctx: &EvalContext) -> Result<Datum> {
    Ok(match (value, from) {
        (Datum::Text(t), Type::Char(_)) => Datum::text(t.as_str().trim_end_matches(' ')),
        (Datum::Text(t), _) => Datum::Text(t),
        (Datum::Bool(v), _) => Datum::text(if v { "true" } else { "false" }),
        (v, _) => Datum::text(v.to_text(from, ctx)),
    })
}

fn to_datetime(value: Datum, from: &Type, to: &Type, ctx: &EvalContext) -> Result<Datum> {
    Ok(match (&value, to) {
        (Datum::Date(d), Type::Timestamp) => Datum::Timestamp(datetime::date_to_timestamp(*d)?),
        (Datum::Date(d), Type::Timestamptz) => Datum::Timestamp(datetime::to_utc(datetime::date_to_timestamp(*d)?, &ctx.zone)?),
        (Datum::Timestamp(t), _) => {
            let local = if *from == Type::Timestamptz { datetime::to_local(*t, &ctx.zone) } else { *t };
            match to {
                Type::Timestamp => Datum::Timestamp(local),
                Type::Timestamptz => Datum::Timestamp(datetime::to_utc(*t, &ctx.zone)?),
                Type::Date => Datum::Date(datetime::timestamp_to_date(local)),
                // An infinity has no time of day.
                _ if datetime::is_infinite(*t) => Datum::Null,
                _ => Datum::Time(datetime::split(local).1),
            }
        }
        (Datum::Time(t), Type::Interval) => Datum::Interval(Interval { months: 0, days: 0, micros: *t }),
        (Datum::Interval(i), Type::Time) => Datum::Time(i.micros.rem_euclid(DAY)),
        (v, _) => from_text_form(v, from, to, ctx)?,
    })
}

/// Applies a type's modifier to a value of that type: precision and scale, length.
pub fn fit_modifier(value: Datum, ty: &Type, context: CastContext) -> Result<Datum> {
    match (ty, value) {
        (Type::Numeric(Some((p, s))), Datum::Numeric(n)) => Ok(Datum::Numeric(n.with_precision(*p, *s)?)),
        (Type::Varchar(Some(n)), Datum::Text(t)) => Ok(Datum::Text(fit_length(t, *n as usize, ty, context)?)),
        (Type::Char(n), Datum::Text(t)) if *n > 0 => {
            let t = fit_length(t, *n as usize, ty, context)?;
            let missing = (*n as usize).saturating_sub(t.as_str().chars().count());
            if missing == 0 {
                return Ok(Datum::Text(t));
            }
            let mut padded = Vec::with_capacity(t.as_bytes().len() + missing);
            padded.extend_from_slice(t.as_bytes());
            padded.resize(padded.len() + missing, b' ');
            Ok(Datum::Text(Text::from_stored(Bytes::from(padded))))
        }
        (Type::Name, Datum::Text(t)) => Ok(Datum::Text(cut_bytes(t, 63))),
        (Type::InternalChar, Datum::Text(t)) => {
            let first = t.as_str().chars().next().map_or(0, char::len_utf8);
            Ok(Datum::Text(cut_bytes(t, first)))
        }
        (Type::Array(e), Datum::Array(a)) if e.typmod() >= 0 => {
            let items = a.items.iter().map(|i| fit_modifier(i.clone(), e, context)).collect::<Result<_>>()?;
            Ok(Datum::Array(Arc::new(ArrayValue { element: e.without_modifier(), dims: a.dims.clone(), items })))
        }
        (_, v) => Ok(v),
    }
}

/// At most `max` bytes, cut between characters.
fn cut_bytes(t: Text, max: usize) -> Text {
    let s = t.as_str();
    if s.len() <= max {
        return t;
    }
    let end = (0..=max).rev().find(|i| s.is_char_boundary(*i)).unwrap_or(0);
    Text::from(&s[..end])
}

fn fit_length(t: Text, max: usize, ty: &Type, context: CastContext) -> Result<Text> {
    if t.as_bytes().len() <= max {
        return Ok(t);
    }
    let s = t.as_str();
    let Some((end, _)) = s.char_indices().nth(max) else { return Ok(t) };
    // Blanks beyond the length are dropped silently (SQL standard).
    if context != CastContext::Explicit && s[end..].contains(|c| c != ' ') {
        let name = if matches!(ty, Type::Char(_)) { "character" } else { "character varying" };
        return Err(Error::sql("22001", format!("value too long for type {name}({max})")));
    }
    Ok(Text::from_stored(Bytes::copy_from_slice(&s.as_bytes()[..end])))
}

/// The type that several expressions resolve to: `UNION`, `CASE`, `VALUES`, `ARRAY`, `COALESCE`,
/// `IN` (manual, 10.5). 42804 with `what` in its message («UNION types text and integer cannot be
/// matched»). All unknown: text.
pub fn select_common_type(types: &[Type], what: &str) -> Result<Type> {
    let mut known = types.iter().filter(|t| **t != Type::Unknown);
    let Some(first) = known.next() else { return Ok(Type::Text) };
    if types.iter().all(|t| t == first) {
        return Ok(first.clone());
    }
    let mut chosen = first.without_modifier();
    for t in known {
        let t = t.without_modifier();
        if t == chosen {
            continue;
        }
        if t.category() != chosen.category() {
            let message = format!("{what} types {} and {} cannot be matched", chosen.base_name(), t.base_name());
            return Err(Error::sql("42804", message));
        }
        // The first preferred type wins; else the one that the others convert to.
        if !chosen.is_preferred() && can_cast(&chosen, &t, CastContext::Implicit) && !can_cast(&t, &chosen, CastContext::Implicit)
        {
            chosen = t;
        }
    }
    for t in types {
        if !can_cast(t, &chosen, CastContext::Implicit) {
            let message = format!("{what} could not convert type {} to {}", t.base_name(), chosen.base_name());
            return Err(Error::sql("42846", message));
        }
    }
    Ok(chosen)
}
