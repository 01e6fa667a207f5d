//! Limits: how far they let what is below them read.

use super::super::access;
use super::super::node::{Most, Node, Scalar};
use super::super::rel::Rel;
use super::{Built, Compiler};
use crate::plan::expr::{ColId, Expr};
use crate::types::Datum;
use meridian_base::Result;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Compiler<'_> {
    pub(super) fn limit(
        &mut self,
        input: &Rel,
        limit: Option<&Expr>,
        offset: Option<&Expr>,
        need: &BTreeSet<ColId>,
    ) -> Result<Built> {
        self.first = access::first_rows(limit, offset);
        // Which rows they are does not depend on what is done with them.
        let b = self.rel(input, need, None)?;
        self.first = None;
        let limit_out = limit.map(|e| self.scalar(e, &[])).transpose()?;
        let offset = offset.map(|e| self.scalar(e, &[])).transpose()?;
        let rows = match limit.and_then(Expr::as_const) {
            Some(Datum::Int(n)) => b.rows.min(*n as f64),
            _ => b.rows.min(100.0),
        };
        let input = match &limit_out {
            Some(limit) if is_repeatable(limit) && offset.iter().all(is_repeatable) => {
                sorted_to(b.node.clone(), Most { limit: limit.clone(), offset: offset.clone() })
            }
            _ => b.node.clone(),
        };
        Ok(Built { node: Arc::new(Node::Limit { input, limit: limit_out, offset }), rows, ..b })
    }
}

/// Whether it may be computed twice. The rows of a subquery are kept.
fn is_repeatable(s: &Scalar) -> bool {
    !s.expr.is_volatile()
}

/// A plan of which no more than the first rows are used: a sort at its top keeps no others.
fn sorted_to(node: Arc<Node>, first: Most) -> Arc<Node> {
    match &*node {
        Node::Sort { input, keys, sorted, is_gradual, .. } => {
            let (input, keys) = (input.clone(), keys.clone());
            Arc::new(Node::Sort { input, keys, sorted: *sorted, is_gradual: *is_gradual, most: Some(first) })
        }
        Node::Project { input, exprs } => {
            let below = sorted_to(input.clone(), first);
            match Arc::ptr_eq(&below, input) {
                true => node,
                false => Arc::new(Node::Project { input: below, exprs: exprs.clone() }),
            }
        }
        // Rows behind them take the places of those that are skipped.
        Node::LockRows { input, plan } if !plan.skips() => {
            Arc::new(Node::LockRows { input: sorted_to(input.clone(), first), plan: plan.clone() })
        }
        _ => node,
    }
}
