//! Comparisons of dates and times of different types, so that an index on one side is of use.
//!
//! PostgreSQL has operators for them that convert the smaller type: a `date` is midnight in the
//! session's zone, a `timestamp` is meant there. An index of a column gives its values in their own
//! order, so the other side has to be of the column's type.

use super::bind_expr::boolean;
use super::binder::{Binder, Typed};
use super::expr::{Cmp, Expr};
use crate::catalog::system::FUNCTIONS;
use crate::types::functions::Function;
use crate::types::{CastContext, Datum, Interval, Type};
use meridian_base::Result;

/// Zones are less than so many days from each other.
const DAYS_BETWEEN_ZONES: i32 = 2;

/// A `date` is converted to a `timestamp`, and both to a `timestamptz`.
fn rank(ty: &Type) -> Option<u8> {
    match ty {
        Type::Date => Some(0),
        Type::Timestamp => Some(1),
        Type::Timestamptz => Some(2),
        _ => None,
    }
}

impl Binder<'_> {
    /// A comparison of these types, if there is more to be said of it than its operator does.
    pub(super) fn compared_times(&mut self, f: &Function, args: &[Expr]) -> Result<Option<Expr>> {
        let (Some(cmp), [a_type, b_type], [a, b]) = (Cmp::from_name(f.name), f.args.as_slice(), args) else { return Ok(None) };
        let (Some(a_rank), Some(b_rank)) = (rank(a_type), rank(b_type)) else { return Ok(None) };
        if a_rank == b_rank {
            return Ok(None);
        }
        let ((small, small_type), (large, large_type), cmp) = match a_rank < b_rank {
            true => ((a, a_type), (b, b_type), cmp),
            false => ((b, b_type), (a, a_type), cmp.flip()),
        };
        let is_fixed = |e: &Expr| {
            let is_later = |e: &Expr| matches!(e, Expr::Param(_) | Expr::Column(_) | Expr::Slot(_) | Expr::Arg(_));
            !e.any(&is_later) && !e.is_volatile() && !e.needs_executor()
        };
        if is_fixed(small) {
            // What the operator does, once. One that fails is left to it: it knows such values.
            let converted = self.convert(small.clone(), small_type.clone(), large_type, CastContext::Implicit)?;
            let is_done = !matches!(small, Expr::Const(_)) || !converted.is_foldable() || matches!(converted, Expr::Const(_));
            return Ok(is_done.then(|| Expr::compare(cmp, converted, large.clone())));
        }
        if cmp == Cmp::Eq && is_of_columns(small) && is_of_columns(large) {
            return self.equal_times(f, args, (small, small_type), (large, large_type)).map(Some);
        }
        if !matches!(small, Expr::Column(_)) || !is_fixed(large) {
            return Ok(None);
        }
        let near = self.convert(large.clone(), large_type.clone(), small_type, CastContext::Explicit)?;
        if (small_type, large_type) == (&Type::Date, &Type::Timestamp) && matches!(near, Expr::Const(_)) {
            let midnight = self.convert(near.clone(), Type::Date, &Type::Timestamp, CastContext::Implicit)?;
            let same = match cmp {
                _ if midnight == *large => Some(cmp),
                // Of the day itself, midnight alone is before it.
                Cmp::Lt | Cmp::Le => Some(Cmp::Le),
                Cmp::Gt | Cmp::Ge => Some(Cmp::Gt),
                _ => None,
            };
            if let Some(cmp) = same.filter(|_| matches!(midnight, Expr::Const(_))) {
                return Ok(Some(Expr::compare(cmp, small.clone(), near)));
            }
        }
        // The column is converted, so bounds of its own type are only known to some days.
        let mut all = vec![Expr::Call(std::sync::Arc::new(f.clone()), args.to_vec())];
        for (of, days) in [([Cmp::Ge, Cmp::Gt], -DAYS_BETWEEN_ZONES), ([Cmp::Le, Cmp::Lt], DAYS_BETWEEN_ZONES)] {
            if cmp != Cmp::Eq && !of.contains(&cmp) {
                continue;
            }
            let by = match small_type {
                Type::Date => Typed::new(Expr::Const(Datum::Int(days.into())), Type::Int4),
                _ => Typed::new(Expr::Const(Datum::Interval(Interval { months: 0, days, micros: 0 })), Type::Interval),
            };
            let add = FUNCTIONS.resolve_operator("+", &[small_type.clone(), by.ty.clone()])?;
            let bound = self.apply(add, vec![Typed::new(near.clone(), small_type.clone()), by])?.expr;
            let bound = self.fold(bound);
            if matches!(large, Expr::Const(_)) && bound.is_foldable() && !matches!(bound, Expr::Const(_)) {
                // It cannot be computed.
                return Ok(None);
            }
            all.push(Expr::compare(of[0], small.clone(), bound));
        }
        Ok((all.len() > 1).then(|| boolean(Expr::And(all)).expr))
    }

    /// An equality of columns, with one of the same type, by which rows can be joined. The operator
    /// itself knows dates that are too late for a timestamp.
    fn equal_times(&mut self, f: &Function, args: &[Expr], small: (&Expr, &Type), large: (&Expr, &Type)) -> Result<Expr> {
        let converted = self.enlarged(small.0.clone(), small.1, large.1)?;
        let operator = Expr::Call(std::sync::Arc::new(f.clone()), args.to_vec());
        Ok(Expr::And(vec![operator, Expr::compare(Cmp::Eq, converted, large.0.clone())]))
    }

    /// A value of the larger type that equals those that this one equals. A date that is too late
    /// for a timestamp becomes one that no timestamp is.
    fn enlarged(&mut self, small: Expr, small_type: &Type, large_type: &Type) -> Result<Expr> {
        let converted = self.convert(small.clone(), small_type.clone(), large_type, CastContext::Implicit)?;
        if *small_type != Type::Date {
            return Ok(converted);
        }
        let date = |text: &str| Datum::from_text(text, &Type::Date, self.ctx.eval).map(Expr::Const);
        let is_early = Expr::compare(Cmp::Le, small.clone(), date(LAST_TIMESTAMP)?);
        let is_infinite = Expr::compare(Cmp::Eq, small.clone(), date("infinity")?);
        let is_null = Expr::IsNull(Box::new(small));
        let others = Box::new(Expr::Const(Datum::Timestamp(NO_TIMESTAMP)));
        Ok(Expr::Case(vec![(Expr::Or(vec![is_null, is_early, is_infinite]), converted)], Some(others)))
    }

    /// Both sides of an equality of dates and times of different types, as one type. `None`: they
    /// are not.
    pub(super) fn as_same_times(&mut self, left: &Typed, right: &Typed) -> Result<Option<(Expr, Expr, Type)>> {
        let (Some(l), Some(r)) = (rank(&left.ty), rank(&right.ty)) else { return Ok(None) };
        Ok(match l.cmp(&r) {
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Less => {
                Some((self.enlarged(left.expr.clone(), &left.ty, &right.ty)?, right.expr.clone(), right.ty.clone()))
            }
            std::cmp::Ordering::Greater => {
                Some((left.expr.clone(), self.enlarged(right.expr.clone(), &right.ty, &left.ty)?, left.ty.clone()))
            }
        })
    }
}

/// Between the last timestamp and infinity.
const NO_TIMESTAMP: i64 = i64::MAX - 1;
/// The day of the last timestamp.
const LAST_TIMESTAMP: &str = "294276-12-31";

/// Whether its value is another one in each row, and nothing has to be read for it.
fn is_of_columns(e: &Expr) -> bool {
    e.any(&|e| matches!(e, Expr::Column(_))) && !e.is_volatile() && !e.needs_executor()
}
