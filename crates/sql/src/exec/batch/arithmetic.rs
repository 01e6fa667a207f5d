//! Arithmetic on columns. A result that its type does not hold, or a division by zero, fails the
//! whole column: the rows tell which of them is to blame.

use super::Failed;
use super::column::{Column, Values, nulls_of};
use crate::types::numeric::{Numeric, SCALE_MAX};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
}

impl Op {
    pub(super) fn from_name(name: &str) -> Option<Op> {
        Some(match name {
            "+" => Op::Add,
            "-" => Op::Sub,
            "*" => Op::Mul,
            "/" => Op::Div,
            "%" => Op::Rem,
            _ => return None,
        })
    }
}

/// The largest power of ten that an `i64` holds.
pub(super) const SHORT_SCALES: u16 = 18;

/// A power of ten, up to [`SHORT_SCALES`].
pub(super) fn power(scale: u16) -> i64 {
    10i64.pow(u32::from(scale))
}

/// Fills a vector at the selected rows; the second part of what `value` says is whether it failed.
fn fill<V: Clone + Default>(selected: &[u32], rows: usize, mut value: impl FnMut(usize) -> (V, bool)) -> Option<Vec<V>> {
    let (mut out, mut failed) = (vec![V::default(); rows], false);
    for row in selected {
        let (value, fails) = value(*row as usize);
        failed |= fails;
        out[*row as usize] = value;
    }
    (!failed).then_some(out)
}

/// Integers; the result is within `bounds`.
pub(super) fn ints(
    op: Op,
    a: &Column,
    b: &Column,
    selected: &[u32],
    rows: usize,
    (min, max): (i64, i64),
) -> Result<Column<'static>, Failed> {
    let (Values::Int(x), Values::Int(y)) = (&a.values, &b.values) else { return Err(Failed) };
    let nulls = nulls_of(a, b, rows);
    let bounded = |(v, overflows): (i64, bool)| (v, overflows || v < min || v > max);
    let is_null = |row: usize| !nulls.is_empty() && nulls[row];
    let values = match op {
        Op::Add => fill(selected, rows, |row| bounded(x[a.at(row)].overflowing_add(y[b.at(row)]))),
        Op::Sub => fill(selected, rows, |row| bounded(x[a.at(row)].overflowing_sub(y[b.at(row)]))),
        Op::Mul => fill(selected, rows, |row| bounded(x[a.at(row)].overflowing_mul(y[b.at(row)]))),
        Op::Div => fill(selected, rows, |row| match y[b.at(row)] {
            0 => (0, !is_null(row)),
            y => bounded(x[a.at(row)].overflowing_div(y)),
        }),
        Op::Rem => fill(selected, rows, |row| match y[b.at(row)] {
            0 => (0, !is_null(row)),
            // The most negative number modulo −1 is 0, not an overflow.
            y => (x[a.at(row)].wrapping_rem(y), false),
        }),
    };
    Ok(Column::new(Values::Int(values.ok_or(Failed)?), nulls))
}

/// Floats: finite operands have a finite result, and only zeros have a zero product or quotient.
pub(super) fn floats(op: Op, a: &Column, b: &Column, selected: &[u32], rows: usize) -> Result<Column<'static>, Failed> {
    let (Values::Float(x), Values::Float(y)) = (&a.values, &b.values) else { return Err(Failed) };
    let nulls = nulls_of(a, b, rows);
    let is_null = |row: usize| !nulls.is_empty() && nulls[row];
    let values = fill(selected, rows, |row| {
        let (x, y) = (x[a.at(row)], y[b.at(row)]);
        let (value, may_be_zero, is_undefined) = match op {
            Op::Add => (x + y, true, false),
            Op::Sub => (x - y, true, false),
            Op::Mul => (x * y, x == 0.0 || y == 0.0, false),
            Op::Div => (x / y, x == 0.0 || y.is_infinite(), y == 0.0 && !x.is_nan()),
            Op::Rem => (0.0, true, true),
        };
        let overflows = value.is_infinite() && !x.is_infinite() && !y.is_infinite();
        let underflows = value == 0.0 && !may_be_zero;
        (value, (overflows || underflows || is_undefined) && !is_null(row))
    });
    Ok(Column::new(Values::Float(values.ok_or(Failed)?), nulls))
}

/// Decimals, in the narrowest width that holds all results.
pub(super) fn decimals(op: Op, a: &Column, b: &Column, selected: &[u32], rows: usize) -> Result<Column<'static>, Failed> {
    let nulls = nulls_of(a, b, rows);
    let values = short(op, a, b, selected, rows)
        .or_else(|| wide(op, a, b, selected, rows))
        .map_or_else(|| any(op, a, b, selected, rows, &nulls), Ok)?;
    Ok(Column::new(values, nulls))
}

/// What both mantissas are multiplied with, and the scale of the result.
fn scales(op: Op, s: u16, t: u16) -> Option<(i64, i64, u16)> {
    if op == Op::Mul {
        let scale = s.checked_add(t).filter(|scale| *scale <= SCALE_MAX)?;
        return Some((1, 1, scale));
    }
    (s.abs_diff(t) <= SHORT_SCALES).then(|| (power(t.saturating_sub(s)), power(s.saturating_sub(t)), s.max(t)))
}

/// In 64 bits.
fn short(op: Op, a: &Column, b: &Column, selected: &[u32], rows: usize) -> Option<Values<'static>> {
    let (Values::Short(x, s), Values::Short(y, t)) = (&a.values, &b.values) else { return None };
    let (p, q, scale) = scales(op, *s, *t)?;
    let both = |row: usize| {
        let ((x, fails), (y, also)) = (x[a.at(row)].overflowing_mul(p), y[b.at(row)].overflowing_mul(q));
        (x, y, fails || also)
    };
    let values = match op {
        Op::Mul => fill(selected, rows, |row| x[a.at(row)].overflowing_mul(y[b.at(row)])),
        Op::Add => fill(selected, rows, |row| {
            let (x, y, fails) = both(row);
            let (sum, overflows) = x.overflowing_add(y);
            (sum, fails || overflows)
        }),
        Op::Sub => fill(selected, rows, |row| {
            let (x, y, fails) = both(row);
            let (difference, overflows) = x.overflowing_sub(y);
            (difference, fails || overflows)
        }),
        Op::Div | Op::Rem => None,
    };
    values.map(|values| Values::Short(values, scale))
}

/// In 128 bits.
fn wide(op: Op, a: &Column, b: &Column, selected: &[u32], rows: usize) -> Option<Values<'static>> {
    fn mantissas<'c>(column: &'c Column) -> Option<(Box<dyn Fn(usize) -> i128 + 'c>, u16)> {
        match &column.values {
            Values::Short(v, scale) => Some((Box::new(|row| i128::from(v[column.at(row)])), *scale)),
            Values::Wide(v, scale) => Some((Box::new(|row| v[column.at(row)]), *scale)),
            _ => None,
        }
    }
    let ((x, s), (y, t)) = (mantissas(a)?, mantissas(b)?);
    let (p, q, scale) = scales(op, s, t)?;
    let values = fill(selected, rows, |row| {
        let ((x, fails), (y, also)) = (x(row).overflowing_mul(i128::from(p)), y(row).overflowing_mul(i128::from(q)));
        let (value, overflows) = match op {
            Op::Mul => x.overflowing_mul(y),
            Op::Add => x.overflowing_add(y),
            _ => x.overflowing_sub(y),
        };
        (value, fails || also || overflows)
    });
    values.map(|values| Values::Wide(values, scale))
}

/// Decimals of any scale, and the special values. Large ones are the rows' business: they may take
/// long.
fn any(op: Op, a: &Column, b: &Column, selected: &[u32], rows: usize, nulls: &[bool]) -> Result<Values<'static>, Failed> {
    let mut values = vec![Numeric::ZERO; rows];
    for row in selected {
        let row = *row as usize;
        if !nulls.is_empty() && nulls[row] {
            continue;
        }
        let (x, y) = (a.numeric(row).ok_or(Failed)?, b.numeric(row).ok_or(Failed)?);
        if matches!(x, Numeric::Big(_)) || matches!(y, Numeric::Big(_)) {
            return Err(Failed);
        }
        values[row] = match op {
            Op::Add => x.add(&y)?,
            Op::Sub => x.sub(&y)?,
            _ => x.mul(&y)?,
        };
    }
    Ok(Values::Numeric(values))
}
