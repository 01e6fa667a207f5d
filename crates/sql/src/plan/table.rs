//! What writing a table takes: its checks, generated columns, partial-index predicates and foreign
//! keys, bound to ordinals.

use super::node::Scalar;
use crate::catalog::ForeignKey;
use crate::catalog::relation::TableRef;
use crate::plan::expr::Expr;
use crate::types::{Datum, Type};
use meridian_base::{DescriptorId, Error, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A table as writers see it. Expressions read a row by ordinal ([`Expr::Slot`]).
#[derive(Clone, Debug)]
pub struct TablePlan {
    pub(crate) table: TableRef,
    /// By ordinal.
    pub(crate) types: Vec<Type>,
    /// By ordinal: the value of rows stored before the column was added.
    pub(crate) missing: Vec<Datum>,
    pub(crate) checks: Vec<(String, Expr)>,
    pub(crate) generated: Vec<(u32, Expr)>,
    /// What columns get when their row is updated and no value is given for them.
    pub(crate) on_updates: Vec<(u32, Expr)>,
    /// By position of the index.
    pub(crate) predicates: Vec<Option<Expr>>,
    /// By ordinal: what a column that is not given gets. `None`: `NULL`.
    pub(crate) defaults: Vec<Option<Expr>>,
    /// While columns are being filled ([`ColumnState::Filling`]): those that are not computed from
    /// their row.
    pub(crate) filling: Vec<Filling>,
    /// While the table's locality changes.
    pub(crate) mirror: Option<Mirror>,
}

/// What a column that is being filled gets.
#[derive(Clone, Debug)]
pub(crate) struct Filling {
    pub(crate) ordinal: u32,
    /// In a row that was there before: its default.
    pub(crate) stored: Scalar,
    /// In a row that is updated: what its `ON UPDATE` says, or else a new default. Nobody has seen
    /// the value it replaces.
    pub(crate) updated: Scalar,
}

/// The other homes of a table, where its writers write as well.
#[derive(Clone, Debug)]
pub(crate) struct Mirror {
    pub(crate) plan: Arc<TablePlan>,
    /// Whether inserts and updates reach it, or deletes only.
    pub(crate) inserts: bool,
}

/// Foreign keys around a table that is written, with the tables at their other ends.
#[derive(Debug, Default)]
pub(crate) struct ForeignKeys {
    /// Of the table itself: the constraint, the parent, and the position of the parent's index on
    /// the referenced columns.
    pub(crate) parents: BTreeMap<DescriptorId, Vec<(ForeignKey, Arc<TablePlan>, usize)>>,
    /// Of other tables (or the same): the child, and the constraint.
    pub(crate) children: BTreeMap<DescriptorId, Vec<(Arc<TablePlan>, ForeignKey)>>,
    /// Every table above, and the written one.
    pub(crate) tables: BTreeMap<DescriptorId, Arc<TablePlan>>,
}

impl TablePlan {
    /// 23502, of a row that is not known.
    pub(crate) fn null_in(&self, ordinal: u32) -> Error {
        let (column, relation) = (&self.table.columns[ordinal as usize].name, &self.table.name);
        let message = format!("null value in column \"{column}\" of relation \"{relation}\" violates not-null constraint");
        Error::sql("23502", message).table(relation).column(column)
    }
    /// Refuses generated columns whose value depends on more than their row (PostgreSQL manual,
    /// 5.3): every session computes them, and finds rows by them. `elsewhere` is the plan as a
    /// session in other circumstances makes it, whose literals must be the same.
    pub fn check_immutable(&self, elsewhere: impl FnOnce() -> Result<Arc<TablePlan>>) -> Result<()> {
        let refuse = |ordinal: u32| {
            let message = "generation expression is not immutable";
            Error::sql("42P17", message).column(&self.table.columns[ordinal as usize].name).table(&self.table.name)
        };
        if let Some((ordinal, _)) = self.generated.iter().find(|(_, e)| !e.is_immutable()) {
            let hint = "It must not depend on the session, the time or other tables.";
            return Err(refuse(*ordinal).hint(hint));
        }
        let Some((first, _)) = self.generated.first() else { return Ok(()) };
        let hint = "Write dates and times in ISO 8601, and timestamptz with its time zone.";
        let other = elsewhere().map_err(|_| refuse(*first).hint(hint))?;
        let differs = |((_, a), (_, b)): &(&(u32, Expr), &(u32, Expr))| a != b;
        match self.generated.iter().zip(&other.generated).find(differs) {
            Some(((ordinal, _), _)) => Err(refuse(*ordinal).hint(hint)),
            None => Ok(()),
        }
    }
    pub fn table(&self) -> &TableRef {
        &self.table
    }
    /// The table in its other homes, while its locality changes.
    pub(crate) fn mirror(&self) -> Option<&TablePlan> {
        self.mirror.as_ref().map(|m| &*m.plan)
    }
    pub(super) fn over_ordinals(mut self, base: u32) -> TablePlan {
        let slots = |e: &mut Expr| e.substitute(&|c| c.checked_sub(base).map(Expr::Slot));
        self.checks.iter_mut().for_each(|(_, e)| slots(e));
        self.generated.iter_mut().chain(&mut self.on_updates).for_each(|(_, e)| slots(e));
        self.predicates.iter_mut().flatten().for_each(slots);
        self
    }
}
