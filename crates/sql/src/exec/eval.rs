//! Expressions over the rows of operators: what is at hand is computed at once, and what an
//! expression misses (a subquery's rows, a sequence's number, a long computation) is fetched.

use super::Runtime;
use super::sequence::draw;
use crate::env::Transaction;
use crate::plan::eval::{Env, Members, Memo, Missing, Stop, eval, holds, is_true};
use crate::plan::expr::Expr;
use crate::plan::node::Scalar;
use crate::types::compare::Exact;
use crate::types::{Datum, EvalContext};
use meridian_base::Result;
use std::sync::Arc;

pub(crate) use crate::plan::eval::{Kept, Row};

/// The values a correlated plan was started with.
pub(crate) type Frame = Arc<[Datum]>;

pub(crate) async fn filter<T: Transaction>(
    rows: Vec<Row>,
    conds: &[Scalar],
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Vec<Row>> {
    if conds.is_empty() {
        return Ok(rows);
    }
    let mut out = Vec::with_capacity(rows.len());
    for row in rows {
        if all_true(conds, &row, frame, rt).await? {
            out.push(row);
        }
    }
    Ok(out)
}

/// Whether all conditions hold.
pub(crate) async fn all_true<T: Transaction>(
    conds: &[Scalar],
    row: &[Datum],
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<bool> {
    rt.step().await?;
    if let Some(hold) = rt.at_hand(frame).1.hold(conds, row) {
        return Ok(hold);
    }
    for c in conds {
        if !is_true(&eval_scalar(c, row, frame, rt).await?) {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(crate) async fn eval_all<T: Transaction>(
    exprs: &[Scalar],
    row: &[Datum],
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Row> {
    rt.step().await?;
    let mut out = Vec::with_capacity(exprs.len());
    for e in exprs {
        out.push(match at_once(e, row, frame, rt) {
            Some(value) => value,
            None => eval_scalar(e, row, frame, rt).await?,
        });
    }
    Ok(out)
}

/// The value of an expression that needs nothing from the executor, or nothing that is not there
/// yet. Errors are left to [`eval_scalar`].
pub(crate) fn at_once<T: Transaction>(e: &Scalar, row: &[Datum], frame: &Frame, rt: &mut Runtime<'_, T>) -> Option<Datum> {
    rt.at_hand(frame).1.value(e, row)
}

/// What expressions over rows are computed with, as far as it is there.
pub(crate) struct AtHand<'a> {
    frame: &'a Frame,
    params: &'a [Datum],
    ctx: &'a EvalContext,
    memo: &'a mut Memo,
}

impl AtHand<'_> {
    #[inline]
    fn value(&mut self, e: &Scalar, row: &[Datum]) -> Option<Datum> {
        self.at_once(e, row, eval)
    }
    #[inline]
    fn at_once<V>(&mut self, e: &Scalar, row: &[Datum], of: impl FnOnce(&Expr, &Env) -> Result<V, Stop>) -> Option<V> {
        let found = of(&e.expr, &Env { row, args: self.frame, params: self.params, ctx: self.ctx, memo: self.memo });
        // What was drawn for it is of this row: who asks again draws again.
        if e.pending {
            self.memo.draws.clear();
        }
        found.ok()
    }
    /// Whether all conditions are true; `None`: [`all_true`] has to say.
    pub(crate) fn hold(&mut self, conds: &[Scalar], row: &[Datum]) -> Option<bool> {
        for c in conds {
            if !self.at_once(c, row, holds)? {
                return Some(false);
            }
        }
        Some(true)
    }
}

impl<T: Transaction> Runtime<'_, T> {
    /// The transaction, and beside it what is at hand.
    pub(crate) fn at_hand<'a>(&'a mut self, frame: &'a Frame) -> (&'a mut T, AtHand<'a>) {
        (self.txn, AtHand { frame, params: self.params, ctx: self.ctx.eval, memo: &mut self.shared.memo })
    }
}

/// Evaluates, finding what the expression is missing until it has everything.
pub(crate) async fn eval_scalar<T: Transaction>(
    e: &Scalar,
    row: &[Datum],
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Datum> {
    rt.step().await?;
    loop {
        let env = Env { row, args: frame, params: rt.params, ctx: rt.ctx.eval, memo: &rt.shared.memo };
        let missing = match eval(&e.expr, &env) {
            Ok(d) => {
                if e.pending {
                    rt.shared.memo.draws.clear();
                }
                rt.shared.memo.settle();
                return Ok(d);
            }
            Err(Stop::Error(e)) => {
                rt.shared.memo.draws.clear();
                rt.shared.memo.settle();
                return Err(e);
            }
            Err(Stop::Missing(m)) => m,
        };
        match missing {
            Missing::Subquery { subquery, args } => {
                // What was drawn and computed for this evaluation survives the detour.
                let memo = &mut rt.shared.memo;
                let (draws, values) = (std::mem::take(&mut memo.draws), std::mem::take(&mut memo.values));
                rt.run_subquery(&subquery, args).await?;
                (rt.shared.memo.draws, rt.shared.memo.values) = (draws, values);
            }
            Missing::Members(array) => {
                let list = array.clone();
                let members = rt.aside(move || Arc::new(Members::of_items(&list))).await?;
                rt.shared.memo.know(&array, members);
            }
            // Computed again, its arguments would be others.
            Missing::Value { .. } if e.expr.is_volatile() => rt.shared.memo.computes_aside = false,
            Missing::Value { work, args } => {
                let (again, given, ctx) = (work.clone(), args.clone(), rt.ctx.eval.clone());
                match rt.aside(move || again.run(given, &ctx)).await? {
                    Ok(value) => rt.shared.memo.values.push((work, Exact(args), value)),
                    Err(e) => {
                        rt.shared.memo.draws.clear();
                        rt.shared.memo.settle();
                        return Err(e);
                    }
                }
            }
            Missing::Sequence { slot, op, target, args, is_identity } => {
                let drawn = draw(op, target, &args, is_identity, rt).await?;
                rt.shared.memo.draws.insert(slot, drawn);
            }
        }
    }
}
