//! Plans of what is said about escrow columns beside their numbers: estimates, and the shares of
//! rows (`docs/design/escrow.md`, E9, E10, E12).

use super::super::access;
use super::super::node::{Estimates, KeyPart, Node, Shares};
use super::super::rel::SharesOf;
use super::scans::TableScan;
use super::{Built, Compiler};
use crate::plan::expr::{ColId, Expr};
use meridian_base::{Error, Result};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Whether a plan gives all rows between its first and its last in the order of the primary key.
fn is_dense(node: &Node) -> bool {
    let Node::Scan(s) = node else { return false };
    let is_one_range = s.places.is_empty() && s.prefix.iter().all(|part| matches!(part, KeyPart::Eq(_)));
    s.index == 0 && !s.is_point && s.filter.is_empty() && is_one_range
}

impl Compiler<'_> {
    /// Rows with estimates behind them; conditions on estimates are looked at then.
    pub(super) fn with_estimates(
        &mut self,
        of: &TableScan<'_>,
        filters: &[Expr],
        below: impl FnOnce(&mut Self, &TableScan<'_>, &[Expr]) -> Result<Built>,
    ) -> Result<Built> {
        if of.estimates.is_empty() {
            return below(self, of, filters);
        }
        let first = of.base + of.table.columns.len() as u32;
        let own = first..first + of.table.escrow.len() as u32;
        let has_estimate = |f: &&Expr| f.columns().iter().any(|c| own.contains(c));
        let (after, before): (Vec<&Expr>, Vec<&Expr>) = filters.iter().partition(has_estimate);
        let (after, before): (Vec<Expr>, Vec<Expr>) =
            (after.into_iter().cloned().collect(), before.into_iter().cloned().collect());
        let mut columns = of.columns.clone();
        columns.extend(of.table.primary().columns.iter().map(|c| c.ordinal));
        columns.sort_unstable();
        columns.dedup();
        if !after.is_empty() {
            // How many rows are enough is not known below.
            self.first = None;
        }
        let inner = TableScan { columns, estimates: Vec::new(), ..*of };
        let built = below(self, &inner, &before)?;
        let layout: Vec<ColId> = built.layout.iter().copied().chain(of.estimates.iter().map(|at| first + *at as u32)).collect();
        let estimates = Estimates {
            input: built.node.clone(),
            table: of.table.clone(),
            types: (self.tables)(of.table)?.types.clone(),
            columns: built.layout.iter().map(|c| c - of.base).collect(),
            of: of.estimates.clone(),
            filter: self.scalars(&after, &layout)?,
            is_dense: is_dense(&built.node),
        };
        let rows = (built.rows * 0.3f64.powi(after.len().min(3) as i32)).max(access::FEW);
        Ok(Built { node: Arc::new(Node::Estimates(Box::new(estimates))), layout, rows, ..built })
    }

    /// See [`Shares`].
    pub(super) fn shares(&mut self, of: &SharesOf) -> Result<Built> {
        let SharesOf { input, table, base, cols } = of;
        let keys: BTreeSet<ColId> = table.primary().columns.iter().map(|c| base + c.ordinal).collect();
        self.first = None;
        let built = self.rel(input, &keys, None)?;
        let ordinal = |c: &ColId| c.checked_sub(*base).filter(|o| (*o as usize) < table.columns.len());
        let columns: Option<Vec<u32>> = built.layout.iter().map(ordinal).collect();
        let shares = Shares {
            input: built.node.clone(),
            table: table.clone(),
            types: (self.tables)(table)?.types.clone(),
            columns: columns.ok_or_else(|| Error::internal("shares of what is no table's row"))?,
            is_dense: is_dense(&built.node),
        };
        let of_row: usize = table.escrow.iter().map(|e| e.sites.len()).sum();
        let rows = built.rows * of_row as f64;
        Ok(Built { node: Arc::new(Node::Shares(Box::new(shares))), layout: cols.clone(), rows, ..built })
    }
}
