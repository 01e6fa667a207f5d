//! Plans of `INSERT`, `UPDATE` and `DELETE`.

use super::super::node::{ConflictPlan, DmlPlan, DmlPlanKind, Node, Scan, UpsertPlan};
use super::super::rel::*;
use super::super::table::TablePlan;
use super::{Built, Compiler, with_columns};
use crate::plan::expr::*;
use meridian_base::Result;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Compiler<'_> {
    pub(super) fn dml(&mut self, dml: &Arc<Dml>, cols: &[ColId]) -> Result<Built> {
        let width = dml.table.types.len() as u32;
        let target: Vec<ColId> = (dml.base..dml.base + width).collect();
        let (input, row): (Arc<Node>, Vec<ColId>) = match &dml.kind {
            DmlKind::Insert { .. } => (self.whole(&dml.input)?.0, target.clone()),
            _ => {
                let mut need = with_columns(&BTreeSet::new(), dml.exprs().into_iter());
                need.extend(&target);
                let before = (self.written.replace(dml.base), self.blind.clone());
                self.blind.extend(unasked(dml));
                let b = self.rel(&dml.input, &need, None)?;
                (self.written, self.blind) = before;
                let rest = b.layout.iter().copied().filter(|c| !target.contains(c));
                let row: Vec<ColId> = target.iter().copied().chain(rest).collect();
                (self.exactly(b, &row)?, row)
            }
        };
        let kind = match &dml.kind {
            DmlKind::Insert { targets, conflict, infers } => {
                let conflict = match conflict {
                    None => None,
                    Some(c) => {
                        let update = match &c.update {
                            None => None,
                            Some(u) => {
                                let both: Vec<ColId> = target.iter().copied().chain(u.excluded..u.excluded + width).collect();
                                let mut all = |of: &[(u32, Expr)]| {
                                    of.iter().map(|(o, e)| Ok((*o, self.scalar(e, &both)?))).collect::<Result<Vec<_>>>()
                                };
                                let (set, deltas) = (all(&u.set)?, all(&u.deltas)?);
                                let filter = u.filter.as_ref().map(|e| self.scalar(e, &both)).transpose()?;
                                let unasked = unasked(dml);
                                let escrow = dml.table.table.escrow.iter().map(|e| e.ordinal);
                                let numbers = escrow.filter(|o| !unasked.contains(&(dml.base + o))).collect();
                                Some(UpsertPlan { set, deltas, filter, numbers })
                            }
                        };
                        Some(ConflictPlan { arbiters: c.arbiters.clone(), update })
                    }
                };
                let random = random_columns(&dml.input, targets);
                DmlPlanKind::Insert { targets: targets.clone(), conflict, random, infers: *infers }
            }
            DmlKind::Update { set, deltas } => {
                let mut all =
                    |of: &[(u32, Expr)]| of.iter().map(|(o, e)| Ok((*o, self.scalar(e, &row)?))).collect::<Result<Vec<_>>>();
                let (set, deltas) = (all(set)?, all(deltas)?);
                let is_blind = set.is_empty() && dml.returning.is_empty() && !deltas.is_empty() && is_point(&dml.table, &input);
                DmlPlanKind::Update { set, deltas, is_blind }
            }
            DmlKind::Delete => DmlPlanKind::Delete,
        };
        let returning = dml.returning.iter().map(|(_, e)| self.scalar(e, &row)).collect::<Result<_>>()?;
        let plan = DmlPlan { table: dml.table.clone(), keys: dml.keys.clone(), input, kind, returning };
        Ok(Built::plain(Node::Dml(Box::new(plan)), cols.to_vec(), 1.0))
    }
}

/// The escrow columns of a table that is changed whose numbers nobody asks for: the statement
/// computes nothing from them, and the row stays where it is.
fn unasked(dml: &Dml) -> Vec<ColId> {
    let table = &dml.table.table;
    let asked = with_columns(&BTreeSet::new(), dml.exprs().into_iter());
    let moves = match &dml.kind {
        DmlKind::Update { set, .. } => table.primary().columns.iter().any(|c| set.iter().any(|(o, _)| *o == c.ordinal)),
        DmlKind::Insert { .. } | DmlKind::Delete => false,
    };
    let columns = table.escrow.iter().map(|e| dml.base + e.ordinal);
    columns.filter(|c| !moves && !asked.contains(c)).collect()
}

/// Whether the input is one row by its primary key, and nothing else is asked of the row.
fn is_point(table: &TablePlan, input: &Node) -> bool {
    let is_settled = table.on_updates.is_empty() && table.filling.is_empty() && table.generated.is_empty();
    // Whose region the row must have is asked of the row, unless its key says it.
    let needs_region = |scan: &Scan| scan.regions.as_ref().is_some_and(|r| !r.is_computed);
    is_settled && super::super::fast::point(input).is_some_and(|scan| !needs_region(scan))
}

/// The targets whose values are all fresh random UUIDs.
fn random_columns(input: &Rel, targets: &[u32]) -> Vec<u32> {
    let is_random = |e: &Expr| matches!(e, Expr::Call(f, _) if f.name == "gen_random_uuid");
    let all_random = |at: usize| match input {
        Rel::Values { rows, .. } => rows.iter().all(|r| is_random(&r[at])),
        Rel::Project { exprs, .. } => exprs.get(at).is_some_and(|(_, e)| is_random(e)),
        _ => false,
    };
    targets.iter().enumerate().filter(|(at, _)| all_random(*at)).map(|(_, o)| *o).collect()
}
