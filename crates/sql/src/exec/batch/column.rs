//! Columns of a batch: a typed vector, and which of its values are `NULL`.

use crate::types::compare::compare_floats;
use crate::types::numeric::Numeric;
use crate::types::{Datum, Text};
use bytes::Bytes;
use std::cmp::Ordering;
use std::ops::Deref;

/// Values of one representation. Rows that are not selected, and those that are `NULL`, have any.
#[derive(Debug)]
pub(super) enum Values<'p> {
    Bool(Vec<bool>),
    Int(Vec<i64>),
    Float(Vec<f64>),
    Date(Vec<i32>),
    Timestamp(Vec<i64>),
    /// Mantissas of decimals of one scale.
    Short(Vec<i64>, u16),
    Wide(Vec<i128>, u16),
    Numeric(Vec<Numeric>),
    /// Places in the page, or in the plan.
    Text(Vec<&'p [u8]>),
    Other(Vec<Datum>),
}

/// A value for each row of a batch, or one for all of them.
#[derive(Debug)]
pub(super) struct Column<'p> {
    pub(super) values: Values<'p>,
    /// Empty if none is `NULL`.
    pub(super) nulls: Vec<bool>,
    /// 0 if one value stands for all rows.
    mask: usize,
}

impl<'p> Column<'p> {
    pub(super) fn new(values: Values<'p>, nulls: Vec<bool>) -> Column<'p> {
        Column { values, nulls, mask: usize::MAX }
    }
    /// One value for all rows.
    pub(super) fn of_value(value: &'p Datum) -> Column<'p> {
        let values = match value {
            Datum::Bool(v) => Values::Bool(vec![*v]),
            Datum::Int(v) => Values::Int(vec![*v]),
            Datum::Float(v) => Values::Float(vec![*v]),
            Datum::Date(v) => Values::Date(vec![*v]),
            Datum::Timestamp(v) => Values::Timestamp(vec![*v]),
            Datum::Numeric(Numeric::Small { mantissa, scale }) => match i64::try_from(*mantissa) {
                Ok(mantissa) => Values::Short(vec![mantissa], *scale),
                Err(_) => Values::Wide(vec![*mantissa], *scale),
            },
            Datum::Numeric(v) => Values::Numeric(vec![v.clone()]),
            Datum::Text(v) => Values::Text(vec![v.as_bytes()]),
            v => Values::Other(vec![v.clone()]),
        };
        let nulls = if value.is_null() { vec![true] } else { Vec::new() };
        Column { values, nulls, mask: 0 }
    }
    /// Of computed values, in the representation of the first one that is not `NULL`, if they all
    /// have that.
    pub(super) fn of_datums(values: Vec<Datum>) -> Column<'p> {
        let nulls: Vec<bool> = match values.iter().any(Datum::is_null) {
            true => values.iter().map(Datum::is_null).collect(),
            false => Vec::new(),
        };
        macro_rules! typed {
            ($of:ident, $empty:expr) => {
                values
                    .iter()
                    .map(|v| match v {
                        Datum::Null => Some($empty),
                        Datum::$of(v) => Some(Clone::clone(v)),
                        _ => None,
                    })
                    .collect::<Option<Vec<_>>>()
                    .map(Values::$of)
            };
        }
        let typed = match values.iter().find(|v| !v.is_null()) {
            Some(Datum::Bool(_)) => typed!(Bool, false),
            Some(Datum::Int(_)) => typed!(Int, 0),
            Some(Datum::Float(_)) => typed!(Float, 0.0),
            Some(Datum::Date(_)) => typed!(Date, 0),
            Some(Datum::Timestamp(_)) => typed!(Timestamp, 0),
            Some(Datum::Numeric(_)) => typed!(Numeric, Numeric::ZERO),
            _ => None,
        };
        let values = match typed {
            Some(Values::Numeric(values)) => of_numerics(values, &nulls),
            Some(typed) => typed,
            None => Values::Other(values),
        };
        Column::new(values, nulls)
    }

    /// Where the value of a row is.
    #[inline]
    pub(super) fn at(&self, row: usize) -> usize {
        row & self.mask
    }
    #[inline]
    pub(super) fn is_null(&self, row: usize) -> bool {
        !self.nulls.is_empty() && self.nulls[self.at(row)]
    }
    /// The value as a condition; `None`: it is unknown.
    #[inline]
    pub(super) fn truth(&self, row: usize) -> Option<bool> {
        match &self.values {
            _ if self.is_null(row) => None,
            Values::Bool(v) => Some(v[self.at(row)]),
            Values::Other(v) => match v[self.at(row)] {
                Datum::Bool(v) => Some(v),
                _ => None,
            },
            _ => None,
        }
    }
    /// The decimal of a row, if it is one.
    pub(super) fn numeric(&self, row: usize) -> Option<Numeric> {
        let at = self.at(row);
        match &self.values {
            Values::Short(v, scale) => Some(Numeric::Small { mantissa: i128::from(v[at]), scale: *scale }),
            Values::Wide(v, scale) => Some(Numeric::Small { mantissa: v[at], scale: *scale }),
            Values::Numeric(v) => Some(v[at].clone()),
            _ => None,
        }
    }
    pub(super) fn datum(&self, row: usize) -> Datum {
        if self.is_null(row) {
            return Datum::Null;
        }
        let at = self.at(row);
        match &self.values {
            Values::Bool(v) => Datum::Bool(v[at]),
            Values::Int(v) => Datum::Int(v[at]),
            Values::Float(v) => Datum::Float(v[at]),
            Values::Date(v) => Datum::Date(v[at]),
            Values::Timestamp(v) => Datum::Timestamp(v[at]),
            Values::Short(v, scale) => Datum::Numeric(Numeric::Small { mantissa: i128::from(v[at]), scale: *scale }),
            Values::Wide(v, scale) => Datum::Numeric(Numeric::Small { mantissa: v[at], scale: *scale }),
            Values::Numeric(v) => Datum::Numeric(v[at].clone()),
            Values::Text(v) => Datum::Text(Text::from_stored(Bytes::copy_from_slice(v[at]))),
            Values::Other(v) => v[at].clone(),
        }
    }
    /// How a row's value compares with another value, as [`Datum::cmp`] says.
    #[inline]
    pub(super) fn compare(&self, row: usize, other: &Datum) -> Ordering {
        if !self.is_null(row) {
            let at = self.at(row);
            match (&self.values, other) {
                (Values::Int(v), Datum::Int(o)) => return v[at].cmp(o),
                (Values::Text(v), Datum::Text(o)) => return v[at].cmp(o.as_bytes()),
                (Values::Short(v, s), Datum::Numeric(Numeric::Small { mantissa, scale })) if s == scale => {
                    return i128::from(v[at]).cmp(mantissa);
                }
                (Values::Date(v), Datum::Date(o)) => return v[at].cmp(o),
                (Values::Timestamp(v), Datum::Timestamp(o)) => return v[at].cmp(o),
                (Values::Float(v), Datum::Float(o)) => return compare_floats(v[at], *o),
                _ => {}
            }
        }
        self.datum(row).cmp(other)
    }
}

/// Decimals as mantissas, if they have one scale.
fn of_numerics<'p>(values: Vec<Numeric>, nulls: &[bool]) -> Values<'p> {
    let is_null = |at: usize| nulls.get(at).copied().unwrap_or_default();
    let mut some = values.iter().enumerate().filter(|(at, _)| !is_null(*at)).map(|(_, v)| v);
    let Some(Numeric::Small { scale: one, .. }) = some.next() else { return Values::Numeric(values) };
    if !some.all(|v| matches!(v, Numeric::Small { scale, .. } if scale == one)) {
        return Values::Numeric(values);
    }
    let one = *one;
    let mantissa = |(at, v): (usize, &Numeric)| match v {
        Numeric::Small { mantissa, .. } if !is_null(at) => *mantissa,
        _ => 0,
    };
    let wide: Vec<i128> = values.iter().enumerate().map(mantissa).collect();
    match wide.iter().map(|m| i64::try_from(*m).ok()).collect::<Option<Vec<i64>>>() {
        Some(short) => Values::Short(short, one),
        None => Values::Wide(wide, one),
    }
}

/// A column of a batch, or one computed from it.
pub(super) enum Held<'a, 'p> {
    Own(Column<'p>),
    Of(&'a Column<'p>),
}

impl<'p> Deref for Held<'_, 'p> {
    type Target = Column<'p>;
    fn deref(&self) -> &Column<'p> {
        match self {
            Held::Own(column) => column,
            Held::Of(column) => column,
        }
    }
}

/// The rows at which a column has `NULL`, for all rows of a batch.
pub(super) fn of_all(column: &Column, rows: usize) -> Vec<bool> {
    if column.nulls.is_empty() { Vec::new() } else { (0..rows).map(|row| column.is_null(row)).collect() }
}

/// The rows at which one of two columns has `NULL`.
pub(super) fn nulls_of(a: &Column, b: &Column, rows: usize) -> Vec<bool> {
    match (a.nulls.is_empty(), b.nulls.is_empty()) {
        (true, true) => Vec::new(),
        (false, true) => of_all(a, rows),
        (true, false) => of_all(b, rows),
        (false, false) => (0..rows).map(|row| a.is_null(row) || b.is_null(row)).collect(),
    }
}
