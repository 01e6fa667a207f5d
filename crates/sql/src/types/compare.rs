//! One order over values: sorting, grouping, distinctness and keys agree on it.
//!
//! `Datum`'s `Ord`, `Eq` and `Hash` treat `NULL` as equal to itself and larger than every value (as
//! `ORDER BY … ASC` and `IS NOT DISTINCT FROM` do); three-valued logic is the operators' business.
//! Only values of one type are ever compared; text compares as bytes (collation `C`). `char(n)`
//! values of different lengths compare through [`trim_blanks`].

use super::{ArrayValue, Datum};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// PostgreSQL's order of floats: NaN equals itself and is the largest, −0 equals 0.
pub fn compare_floats(a: f64, b: f64) -> Ordering {
    match (a.is_nan(), b.is_nan()) {
        (false, false) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
        (x, y) => x.cmp(&y),
    }
}

/// What of a `char(n)` counts in comparisons.
pub fn trim_blanks(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|b| *b != b' ').map_or(0, |i| i + 1);
    &bytes[..end]
}

fn compare_arrays(a: &ArrayValue, b: &ArrayValue) -> Ordering {
    a.items.cmp(&b.items).then_with(|| a.dims.len().cmp(&b.dims.len())).then_with(|| a.dims.cmp(&b.dims))
}

/// Which representation it is: only to have a total order when a caller mixes types.
fn rank(d: &Datum) -> u8 {
    match d {
        Datum::Bool(_) => 0,
        Datum::Int(_) => 1,
        Datum::Float(_) => 2,
        Datum::Numeric(_) => 3,
        Datum::Text(_) => 4,
        Datum::Bytea(_) => 5,
        Datum::Date(_) => 6,
        Datum::Time(_) => 7,
        Datum::Timestamp(_) => 8,
        Datum::Interval(_) => 9,
        Datum::Uuid(_) => 10,
        Datum::Jsonb(_) => 11,
        Datum::Array(_) => 12,
        Datum::Record(_) => 13,
        Datum::Null => 255,
    }
}

impl Ord for Datum {
    fn cmp(&self, other: &Datum) -> Ordering {
        match (self, other) {
            (Datum::Bool(a), Datum::Bool(b)) => a.cmp(b),
            (Datum::Int(a), Datum::Int(b)) => a.cmp(b),
            (Datum::Float(a), Datum::Float(b)) => compare_floats(*a, *b),
            (Datum::Numeric(a), Datum::Numeric(b)) => a.cmp(b),
            (Datum::Text(a), Datum::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Datum::Bytea(a), Datum::Bytea(b)) => a.cmp(b),
            (Datum::Date(a), Datum::Date(b)) => a.cmp(b),
            (Datum::Time(a), Datum::Time(b)) | (Datum::Timestamp(a), Datum::Timestamp(b)) => a.cmp(b),
            (Datum::Interval(a), Datum::Interval(b)) => a.order().cmp(&b.order()),
            (Datum::Uuid(a), Datum::Uuid(b)) => a.cmp(b),
            (Datum::Jsonb(a), Datum::Jsonb(b)) => a.cmp_documents(b),
            (Datum::Array(a), Datum::Array(b)) => compare_arrays(a, b),
            (Datum::Record(a), Datum::Record(b)) => a.values.cmp(&b.values),
            (a, b) => rank(a).cmp(&rank(b)),
        }
    }
}
impl PartialOrd for Datum {
    fn partial_cmp(&self, other: &Datum) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Datum {
    /// Whether nobody can tell the two apart: equal, and written the same (`1.0` and `1.00` are
    /// equal, and two constants).
    pub(crate) fn is_identical(&self, other: &Datum) -> bool {
        match (self, other) {
            (Datum::Float(a), Datum::Float(b)) => a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()),
            (Datum::Numeric(a), Datum::Numeric(b)) => a.is_identical(b),
            (Datum::Interval(a), Datum::Interval(b)) => a == b,
            (Datum::Jsonb(a), Datum::Jsonb(b)) => a.is_identical(b),
            (Datum::Array(a), Datum::Array(b)) => a.element == b.element && a.dims == b.dims && are_identical(&a.items, &b.items),
            (Datum::Record(a), Datum::Record(b)) => {
                a.names == b.names && a.types == b.types && are_identical(&a.values, &b.values)
            }
            (a, b) => a == b,
        }
    }
}

/// [`Datum::is_identical`] of lists.
fn are_identical(a: &[Datum], b: &[Datum]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_identical(b))
}

/// Values as a key that keeps apart what `=` takes for the same: `1.5` and `1.50`, 0 and −0, a day
/// and 24 hours.
#[derive(Clone, Debug)]
pub(crate) struct Exact(pub(crate) Vec<Datum>);

impl PartialEq for Exact {
    fn eq(&self, other: &Exact) -> bool {
        are_identical(&self.0, &other.0)
    }
}
impl Eq for Exact {}
impl Hash for Exact {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Identical values are equal ones.
        self.0.hash(state);
    }
}

impl PartialEq for Datum {
    fn eq(&self, other: &Datum) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Datum {}

impl Hash for Datum {
    fn hash<H: Hasher>(&self, state: &mut H) {
        rank(self).hash(state);
        match self {
            Datum::Null => {}
            Datum::Bool(v) => v.hash(state),
            Datum::Int(v) | Datum::Time(v) | Datum::Timestamp(v) => v.hash(state),
            Datum::Float(v) if v.is_nan() => f64::NAN.to_bits().hash(state),
            // −0 + 0 is 0.
            Datum::Float(v) => (v + 0.0).to_bits().hash(state),
            Datum::Numeric(v) => v.hash(state),
            Datum::Text(v) => v.as_bytes().hash(state),
            Datum::Bytea(v) => v.hash(state),
            Datum::Date(v) => v.hash(state),
            Datum::Interval(v) => v.order().hash(state),
            Datum::Uuid(v) => v.hash(state),
            Datum::Jsonb(v) => v.hash(state),
            Datum::Array(v) => v.items.hash(state),
            Datum::Record(v) => v.values.hash(state),
        }
    }
}
