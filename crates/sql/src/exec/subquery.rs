//! Subqueries in expressions: operators that run while an expression is computed.

use super::eval::{Frame, Kept};
use super::op::Op;
use super::{BATCH, Runtime};
use crate::env::Transaction;
use crate::plan::eval::Rows;
use crate::plan::expr::{Quantifier, Subquery, SubqueryBody, SubqueryKind};
use crate::types::Datum;
use crate::types::compare::Exact;
use meridian_base::{Error, Result};
use std::sync::Arc;

/// How many results of correlated subqueries are kept.
const MEMO_MAX: usize = 10_000;
/// So many rows of a correlated subquery under `IN`, `ANY` or `ALL` are read at first: often one of
/// them decides.
const FIRST_ROWS: usize = 32;

impl<T: Transaction> Runtime<'_, T> {
    /// Finds the rows of a subquery for these arguments.
    pub(super) async fn run_subquery(&mut self, s: &Subquery, args: Vec<Datum>) -> Result<()> {
        let SubqueryBody::Physical(plan) = &s.body else { return Err(Error::internal("a subquery was not planned")) };
        let frame: Frame = args.clone().into();
        let enough = match s.kind {
            SubqueryKind::Exists => 1,
            SubqueryKind::Scalar | SubqueryKind::Quantified { quantifier: Quantifier::Sole, .. } => 2,
            SubqueryKind::Quantified { .. } if plan.is_plain && !args.is_empty() && !self.has_part(s, &args) => FIRST_ROWS,
            _ => usize::MAX,
        };
        let mut is_part = matches!(s.kind, SubqueryKind::Quantified { .. }) && enough == FIRST_ROWS;
        let mut op = Op::new(&plan.node, &frame);
        let mut rows = Kept::default();
        let (before, mut bytes) = (self.shared.memory, 0);
        while rows.len() < enough {
            match op.next(self, enough - rows.len()).await? {
                Some(more) => {
                    bytes += self.keep(&more)?;
                    rows.extend(more);
                }
                None => {
                    is_part = false;
                    break;
                }
            }
        }
        drop(op);
        // What its operators held is gone.
        self.shared.memory = before;
        let rows = Arc::new(Rows::new(rows, is_part));
        if rows.rows.len() > 4 * BATCH {
            let (made, kind) = (rows.clone(), s.kind.clone());
            self.aside(move || made.prepare(&kind)).await?;
        }
        if self.shared.memo.size >= MEMO_MAX {
            self.shared.forget_subqueries();
        }
        self.shared.lasting += bytes;
        let memo = &mut self.shared.memo;
        memo.size += 1;
        memo.bytes += bytes;
        memo.subqueries.insert((s.slot, Exact(args)), rows);
        Ok(())
    }

    /// Whether the first rows are there, and do not suffice.
    fn has_part(&self, s: &Subquery, args: &[Datum]) -> bool {
        let key = (s.slot, Exact(args.to_vec()));
        self.shared.memo.subqueries.get(&key).is_some_and(|rows| rows.is_part)
    }
}
