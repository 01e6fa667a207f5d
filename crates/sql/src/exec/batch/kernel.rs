//! Expressions over columns.
//!
//! A kernel computes a column for the selected rows of a batch. `AND` and `OR` compute each operand
//! for the rows that the ones before it left undecided. What no kernel computes goes row by row
//! through [`eval`].

use super::Failed;
use super::arithmetic::{self, Op};
use super::column::{Column, Held, Values, nulls_of, of_all};
use super::decode::Batch;
use crate::plan::eval::{Env, Memo, eval};
use crate::plan::expr::{Cmp, Expr};
use crate::types::cast::integer_range;
use crate::types::compare::compare_floats;
use crate::types::functions::Function;
use crate::types::{Datum, EvalContext, Type};
use std::cmp::Ordering;

/// What expressions are computed with, besides their row.
#[derive(Clone, Copy)]
pub(super) struct Given<'a> {
    pub(super) args: &'a [Datum],
    pub(super) params: &'a [Datum],
    pub(super) ctx: &'a EvalContext,
    pub(super) memo: &'a Memo,
}

/// A compiled expression.
pub(super) enum Kernel {
    Value(Datum),
    Slot(usize),
    Compare(Cmp, Box<(Kernel, Kernel)>),
    /// `AND` (false decides) and `OR` (true decides).
    Junction(Vec<Kernel>, bool),
    Not(Box<Kernel>),
    IsNull(Box<Kernel>),
    IsBool(Box<Kernel>, bool),
    /// In a list of values.
    In(Box<Kernel>, Vec<Datum>),
    /// With the bounds of the result.
    Int(Op, Box<(Kernel, Kernel)>, (i64, i64)),
    Float(Op, Box<(Kernel, Kernel)>),
    Decimal(Op, Box<(Kernel, Kernel)>),
    /// An integer as `numeric`.
    ToDecimal(Box<Kernel>),
    /// Row by row, and the slots that it reads.
    Rows(Box<Expr>, Vec<usize>),
}

impl Kernel {
    /// `args`, `params`: what the expression's plan was started with.
    pub(super) fn of(e: &Expr, args: &[Datum], params: &[Datum]) -> Kernel {
        let of = |e: &Expr| Kernel::of(e, args, params);
        let value = |e: &Expr| match of(e) {
            Kernel::Value(value) => Some(value),
            _ => None,
        };
        let known = match e {
            Expr::Const(value) => Some(Kernel::Value(value.clone())),
            Expr::Param(at) => params.get(*at as usize).cloned().map(Kernel::Value),
            Expr::Arg(at) => args.get(*at as usize).cloned().map(Kernel::Value),
            Expr::Slot(at) => Some(Kernel::Slot(*at as usize)),
            Expr::Compare(cmp, pair) => Some(Kernel::Compare(*cmp, Box::new((of(&pair.0), of(&pair.1))))),
            Expr::And(items) => Some(Kernel::Junction(items.iter().map(of).collect(), false)),
            Expr::Or(items) => Some(Kernel::Junction(items.iter().map(of).collect(), true)),
            Expr::Not(e) => Some(Kernel::Not(Box::new(of(e)))),
            Expr::IsNull(e) => Some(Kernel::IsNull(Box::new(of(e)))),
            Expr::IsBool(e, wanted) => Some(Kernel::IsBool(Box::new(of(e)), *wanted)),
            Expr::In(left, list) if !list.is_empty() => {
                list.iter().map(value).collect::<Option<Vec<_>>>().map(|list| Kernel::In(Box::new(of(left)), list))
            }
            Expr::Call(function, operands) => match operands.as_slice() {
                [a, b] => Kernel::operator(function, || Box::new((of(a), of(b)))),
                _ => None,
            },
            Expr::Cast(cast) => match (&cast.from, &cast.to) {
                (from, Type::Numeric(None)) if is_int(from) => Some(Kernel::ToDecimal(Box::new(of(&cast.expr)))),
                (Type::Int2 | Type::Int4, Type::Int8) | (Type::Int2, Type::Int4) => Some(of(&cast.expr)),
                _ => None,
            },
            _ => None,
        };
        known.unwrap_or_else(|| {
            let mut slots: Vec<usize> = e.slots().into_iter().map(|slot| slot as usize).collect();
            slots.sort_unstable();
            slots.dedup();
            Kernel::Rows(Box::new(e.clone()), slots)
        })
    }

    fn operator(f: &Function, operands: impl FnOnce() -> Box<(Kernel, Kernel)>) -> Option<Kernel> {
        let op = Op::from_name(f.name)?;
        match f.args.as_slice() {
            [a, b] if is_int(a) && is_int(b) && is_int(&f.result) => Some(Kernel::Int(op, operands(), integer_range(&f.result))),
            [Type::Float8, Type::Float8] if f.result == Type::Float8 && op != Op::Rem => Some(Kernel::Float(op, operands())),
            // The scale of a quotient depends on its operands.
            [Type::Numeric(_), Type::Numeric(_)] if matches!(f.result, Type::Numeric(_)) && !matches!(op, Op::Div | Op::Rem) => {
                Some(Kernel::Decimal(op, operands()))
            }
            _ => None,
        }
    }

    /// Whether some of it goes row by row.
    pub(super) fn has_rows(&self) -> bool {
        match self {
            Kernel::Value(_) | Kernel::Slot(_) => false,
            Kernel::Rows(..) => true,
            Kernel::Compare(_, pair) | Kernel::Int(_, pair, _) | Kernel::Float(_, pair) | Kernel::Decimal(_, pair) => {
                pair.0.has_rows() || pair.1.has_rows()
            }
            Kernel::Junction(items, _) => items.iter().any(Kernel::has_rows),
            Kernel::Not(e) | Kernel::IsNull(e) | Kernel::IsBool(e, _) | Kernel::In(e, _) | Kernel::ToDecimal(e) => e.has_rows(),
        }
    }

    /// The values for these rows of the batch; of the others the column has any.
    pub(super) fn compute<'a, 'p>(
        &'p self,
        batch: &'a Batch<'p>,
        selected: &[u32],
        given: Given,
    ) -> Result<Held<'a, 'p>, Failed> {
        let pair = |pair: &'p (Kernel, Kernel)| {
            Ok::<_, Failed>((pair.0.compute(batch, selected, given)?, pair.1.compute(batch, selected, given)?))
        };
        let one = |e: &'p Kernel| e.compute(batch, selected, given);
        Ok(Held::Own(match self {
            Kernel::Value(value) => Column::of_value(value),
            Kernel::Slot(at) => return batch.slot(*at),
            Kernel::Compare(cmp, operands) => {
                let (a, b) = pair(operands)?;
                compare(*cmp, &a, &b, selected, batch.rows)
            }
            Kernel::Junction(items, decisive) => junction(items, *decisive, batch, selected, given)?,
            Kernel::Not(e) => {
                let e = one(e)?;
                of_truths(selected, batch.rows, |row| e.truth(row).map(|truth| !truth))
            }
            Kernel::IsBool(e, wanted) => {
                let e = one(e)?;
                of_truths(selected, batch.rows, |row| Some(e.truth(row) == Some(*wanted)))
            }
            Kernel::IsNull(e) => {
                let e = one(e)?;
                // A row is NULL if all its fields are.
                if matches!(&e.values, Values::Other(v) if v.iter().any(|v| matches!(v, Datum::Record(_)))) {
                    return Err(Failed);
                }
                of_truths(selected, batch.rows, |row| Some(e.is_null(row)))
            }
            Kernel::In(left, list) => {
                let left = one(left)?;
                let has_null = list.iter().any(Datum::is_null);
                let is_there = |row| list.iter().any(|item| !item.is_null() && left.compare(row, item).is_eq());
                of_truths(selected, batch.rows, |row| match () {
                    () if left.is_null(row) => None,
                    () if is_there(row) => Some(true),
                    () => (!has_null).then_some(false),
                })
            }
            Kernel::Int(op, operands, bounds) => {
                let (a, b) = pair(operands)?;
                arithmetic::ints(*op, &a, &b, selected, batch.rows, *bounds)?
            }
            Kernel::Float(op, operands) => {
                let (a, b) = pair(operands)?;
                arithmetic::floats(*op, &a, &b, selected, batch.rows)?
            }
            Kernel::Decimal(op, operands) => {
                let (a, b) = pair(operands)?;
                arithmetic::decimals(*op, &a, &b, selected, batch.rows)?
            }
            Kernel::ToDecimal(e) => {
                let e = one(e)?;
                let Values::Int(values) = &e.values else { return Err(Failed) };
                let all = (0..batch.rows).map(|row| values[e.at(row)]).collect();
                Column::new(Values::Short(all, 0), of_all(&e, batch.rows))
            }
            Kernel::Rows(e, slots) => {
                let columns = slots.iter().map(|slot| batch.slot(*slot)).collect::<Result<Vec<_>, _>>()?;
                let width = slots.last().map_or(0, |last| last + 1);
                let (mut row, mut values) = (vec![Datum::Null; width], vec![Datum::Null; batch.rows]);
                for at in selected {
                    for (slot, column) in slots.iter().zip(&columns) {
                        row[*slot] = column.datum(*at as usize);
                    }
                    let Given { args, params, ctx, memo } = given;
                    values[*at as usize] = eval(e, &Env { row: &row, args, params, ctx, memo }).map_err(|_| Failed)?;
                }
                Column::of_datums(values)
            }
        }))
    }
}

fn is_int(ty: &Type) -> bool {
    matches!(ty, Type::Int2 | Type::Int4 | Type::Int8)
}

fn of_truths(selected: &[u32], rows: usize, truth: impl Fn(usize) -> Option<bool>) -> Column<'static> {
    let (mut values, mut nulls) = (vec![false; rows], Vec::new());
    for row in selected {
        let row = *row as usize;
        match truth(row) {
            Some(truth) => values[row] = truth,
            None => {
                if nulls.is_empty() {
                    nulls = vec![false; rows];
                }
                nulls[row] = true;
            }
        }
    }
    Column::new(Values::Bool(values), nulls)
}

fn junction<'p>(
    items: &'p [Kernel],
    decisive: bool,
    batch: &Batch<'p>,
    selected: &[u32],
    given: Given,
) -> Result<Column<'static>, Failed> {
    let (mut values, mut nulls) = (vec![!decisive; batch.rows], vec![false; batch.rows]);
    let mut undecided = selected.to_vec();
    for item in items {
        if undecided.is_empty() {
            break;
        }
        let column = item.compute(batch, &undecided, given)?;
        undecided.retain(|row| {
            let row = *row as usize;
            match column.truth(row) {
                Some(truth) if truth == decisive => {
                    (values[row], nulls[row]) = (decisive, false);
                    false
                }
                Some(_) => true,
                None => {
                    nulls[row] = true;
                    true
                }
            }
        });
    }
    Ok(Column::new(Values::Bool(values), nulls))
}

fn compare(cmp: Cmp, a: &Column, b: &Column, selected: &[u32], rows: usize) -> Column<'static> {
    let values = match (&a.values, &b.values) {
        (Values::Int(x), Values::Int(y)) | (Values::Timestamp(x), Values::Timestamp(y)) => {
            tests(cmp, selected, rows, |row| x[a.at(row)].cmp(&y[b.at(row)]))
        }
        (Values::Date(x), Values::Date(y)) => tests(cmp, selected, rows, |row| x[a.at(row)].cmp(&y[b.at(row)])),
        (Values::Float(x), Values::Float(y)) => tests(cmp, selected, rows, |row| compare_floats(x[a.at(row)], y[b.at(row)])),
        (Values::Text(x), Values::Text(y)) => tests(cmp, selected, rows, |row| x[a.at(row)].cmp(y[b.at(row)])),
        (Values::Short(x, s), Values::Short(y, t)) if s == t => tests(cmp, selected, rows, |row| x[a.at(row)].cmp(&y[b.at(row)])),
        (Values::Short(x, s), Values::Short(y, t)) if s.abs_diff(*t) <= arithmetic::SHORT_SCALES => {
            // Below 2^63 × 10^18 each.
            let (p, q) = (arithmetic::power(t.saturating_sub(*s)), arithmetic::power(s.saturating_sub(*t)));
            let of = |v: i64, power: i64| i128::from(v) * i128::from(power);
            tests(cmp, selected, rows, |row| of(x[a.at(row)], p).cmp(&of(y[b.at(row)], q)))
        }
        _ => tests(cmp, selected, rows, |row| match a.is_null(row) || b.is_null(row) {
            true => Ordering::Equal,
            false => a.compare(row, &b.datum(row)),
        }),
    };
    Column::new(Values::Bool(values), nulls_of(a, b, rows))
}

/// A loop for each operator.
fn tests(cmp: Cmp, selected: &[u32], rows: usize, order: impl Fn(usize) -> Ordering) -> Vec<bool> {
    let mut out = vec![false; rows];
    macro_rules! each {
        ($test:ident) => {
            for row in selected {
                out[*row as usize] = order(*row as usize).$test();
            }
        };
    }
    match cmp {
        Cmp::Eq => each!(is_eq),
        Cmp::Ne => each!(is_ne),
        Cmp::Lt => each!(is_lt),
        Cmp::Le => each!(is_le),
        Cmp::Gt => each!(is_gt),
        Cmp::Ge => each!(is_ge),
    }
    out
}
