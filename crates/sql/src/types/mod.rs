//! Types and values.
//!
//! A [`Datum`] does not carry its type: every place that holds one knows it (a column, a bound
//! expression, a parameter). Several types share a representation (`int2`, `int4`, `int8` and `oid`
//! are `Datum::Int`).
//!
//! * [`typeinfo`]: oids, names, categories, modifiers. [`context`]: what evaluation may ask of the
//!   session.
//! * [`io`]: PostgreSQL's text and binary formats. [`compare`]: one order for sorting, grouping and
//!   keys.
//! * [`row`]: rows as they are stored. [`keys`]: columns as index keys.
//! * [`cast`]: conversions and their contexts. [`functions`]: operators and functions, and which of
//!   them a call means.
//! * [`numeric`], [`datetime`], [`zone`], [`jsonb`], [`array`]: what the larger types are made of.

pub mod array;
pub mod cast;
pub mod compare;
pub mod context;
pub mod datetime;
pub mod functions;
pub mod io;
pub(crate) mod json_text;
pub mod jsonb;
pub mod keys;
pub mod numeric;
pub mod row;
#[cfg(test)]
mod tests;
pub mod typeinfo;
pub mod zone;

pub use cast::CastContext;
pub use context::{CatalogView, DateOrder, EvalContext, Regions, Style, System};
pub use io::Format;
pub use row::{RowView, Stored, encode_row};
pub use typeinfo::Category;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A SQL type.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Type {
    Bool,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    /// Precision and scale, if declared.
    Numeric(Option<(u16, i16)>),
    Text,
    /// Length in characters, if declared.
    Varchar(Option<u32>),
    /// `char(n)`: blank-padded. `Char(0)` is `bpchar`, without a length.
    Char(u32),
    /// PostgreSQL's internal `name` (63 bytes), in system tables.
    Name,
    /// PostgreSQL's internal one-byte `"char"`, in system tables.
    InternalChar,
    Bytea,
    Date,
    Time,
    Timestamp,
    Timestamptz,
    Interval,
    Uuid,
    Json,
    Jsonb,
    Oid,
    Regclass,
    Regtype,
    Regproc,
    Regnamespace,
    /// `crdb_internal_region`: the regions of the database, an enum of CockroachDB's. Its values
    /// are stored as their names.
    Region,
    Array(Box<Type>),
    /// A literal or parameter whose type is not known yet.
    Unknown,
    Void,
    /// An anonymous row.
    Record,
}

/// A value, or `NULL`.
#[derive(Clone, Debug)]
pub enum Datum {
    Null,
    Bool(bool),
    /// `int2`, `int4`, `int8`, `oid`, `reg*`.
    Int(i64),
    /// `float4` (rounded to it) and `float8`.
    Float(f64),
    Numeric(numeric::Numeric),
    /// `text`, `varchar`, `char`, `name`, `"char"`, `unknown`, `crdb_internal_region`, `json` (as
    /// it was written). UTF-8.
    Text(Text),
    Bytea(Bytes),
    /// Days since 2000-01-01.
    Date(i32),
    /// Microseconds since midnight.
    Time(i64),
    /// Microseconds since 2000-01-01 00:00, without and with time zone (then UTC).
    Timestamp(i64),
    Interval(Interval),
    Uuid([u8; 16]),
    Jsonb(Arc<jsonb::Json>),
    Array(Arc<ArrayValue>),
    Record(Arc<RecordValue>),
}

/// UTF-8 text that shares the buffer it was read from.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(Bytes);

impl Text {
    /// From bytes already known to be UTF-8 (a stored row); checked in debug builds only.
    pub fn from_stored(bytes: Bytes) -> Text {
        debug_assert!(std::str::from_utf8(&bytes).is_ok());
        Text(bytes)
    }
    pub fn as_str(&self) -> &str {
        // Stored text was checked when it entered the database, but a damaged row must not become
        // undefined behaviour.
        std::str::from_utf8(&self.0).unwrap_or("\u{FFFD}")
    }
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}
impl From<&str> for Text {
    fn from(s: &str) -> Text {
        Text(Bytes::copy_from_slice(s.as_bytes()))
    }
}
impl From<String> for Text {
    fn from(s: String) -> Text {
        Text(Bytes::from(s))
    }
}
impl std::fmt::Debug for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

/// PostgreSQL's interval: the three parts do not convert into each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Interval {
    pub months: i32,
    pub days: i32,
    pub micros: i64,
}

/// An array: its shape and its elements in row-major order.
#[derive(Clone, Debug)]
pub struct ArrayValue {
    /// The type of the elements.
    pub element: Type,
    /// Length and lower bound of each dimension; empty for the empty array.
    pub dims: Vec<(usize, i32)>,
    pub items: Vec<Datum>,
}

/// An anonymous row. It knows its types, because nothing around it does.
#[derive(Clone, Debug)]
pub struct RecordValue {
    /// `f1`, `f2`, … unless the row comes from a table or subquery.
    pub names: Arc<[String]>,
    pub types: Arc<[Type]>,
    pub values: Vec<Datum>,
}

/// What computations take for long with: so many bytes, or so many items of arrays and documents.
const LARGE_BYTES: usize = 256 << 10;
const LARGE_ITEMS: usize = 16 << 10;

impl Datum {
    /// Whether computing from it may take for long: see `session::aside`.
    pub(crate) fn is_large(&self) -> bool {
        match self {
            Datum::Text(t) => t.as_bytes().len() > LARGE_BYTES,
            Datum::Bytea(b) => b.len() > LARGE_BYTES,
            Datum::Array(a) => a.items.len() > LARGE_ITEMS,
            Datum::Jsonb(j) => j.has_more_than(LARGE_ITEMS),
            Datum::Numeric(n) => n.is_large(),
            _ => false,
        }
    }
    pub fn is_null(&self) -> bool {
        matches!(self, Datum::Null)
    }
    /// A text value.
    pub fn text(s: impl Into<Text>) -> Datum {
        Datum::Text(s.into())
    }
    /// The value of a condition: `NULL` is not true.
    pub fn is_true(&self) -> bool {
        matches!(self, Datum::Bool(true))
    }
}
