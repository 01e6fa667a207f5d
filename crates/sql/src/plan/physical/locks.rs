//! Plans that lock rows: in the scan that reads them, or above everything that decides which rows
//! are in the result.

use super::super::locks::check_nullable;
use super::super::node::{KeyPart, LockPlan, LockedPlan, Node};
use super::super::rel::{LockedTable, Rel};
use super::{Built, Compiler, Wish};
use crate::env::{Locking, OnLocked};
use crate::plan::expr::{ColId, Expr};
use meridian_base::{ColumnMask, Error, Result};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Compiler<'_> {
    /// A scan that reads one table and gives its rows as they are wanted locks them itself. In
    /// front of a join or a sort it would lock what is not in the result, or is not wanted yet.
    pub(super) fn lock_rows(
        &mut self,
        input: &Rel,
        of: &[LockedTable],
        is_limited: bool,
        need: &BTreeSet<ColId>,
        wish: Wish,
    ) -> Result<Built> {
        check_nullable(input, of, false)?;
        if let ([table], true) = (of, is_alone(input)) {
            let (cost, first) = (self.cost, self.first);
            let built = self.rel(input, need, wish)?;
            if !is_limited || locks_as_wanted(&built.node, table) {
                return Ok(built);
            }
            (self.cost, self.first) = (cost, first);
        }
        let unlocked = unlocked(input, of);
        let mut below = need.clone();
        of.iter().for_each(|t| below.extend(t.places()));
        let built = self.rel(&unlocked, &below, wish)?;
        let (mut tables, mut groups, mut is_repeatable) = (0, BTreeSet::new(), true);
        let mut used = need.clone();
        unlocked.visit(&mut |r| {
            used.extend(r.exprs().iter().flat_map(|e| e.columns()));
            match r {
                Rel::Table { table, locking, .. } => {
                    tables += 1;
                    groups.extend(table.groups());
                    is_repeatable &= *locking == Locking::None;
                }
                // What is computed once for the whole statement is not computed again.
                Rel::Cte { .. } | Rel::WorkTable { .. } | Rel::Dml { .. } | Rel::First { .. } => is_repeatable = false,
                _ => {}
            }
            let says_it_once = |e: &&Expr| e.is_volatile() || e.any(&|e| matches!(e, Expr::Sequence(_)));
            is_repeatable &= !r.exprs().iter().any(says_it_once);
        });
        let locked = |t: &LockedTable, c: &mut Self| {
            let place = t.places().into_iter().map(|id| {
                let slot = built.layout.iter().position(|l| *l == id);
                let slot = slot.ok_or_else(|| Error::internal("the key of a locked row does not come with it"))?;
                Ok((id - t.base, slot))
            });
            let own = used.iter().filter(|id| (t.base..t.base + t.table.columns.len() as u32).contains(id));
            let whole = (c.written == Some(t.base)).then_some(ColumnMask::ALL);
            Ok::<_, Error>(LockedPlan {
                place: place.collect::<Result<_>>()?,
                plan: (c.tables)(&t.table)?,
                alias: t.alias.clone(),
                locking: t.locking,
                mask: whole.unwrap_or_else(|| own.fold(ColumnMask::EXISTENCE, |mask, id| mask | ColumnMask::column(id - t.base))),
            })
        };
        let locked = of.iter().map(|t| locked(t, self)).collect::<Result<Vec<_>>>()?;
        let mut plan =
            LockPlan { tables: locked, groups: groups.into_iter().collect(), is_repeatable, reads_only_skipped: false };
        plan.reads_only_skipped = is_repeatable && tables == 1 && is_alone(input) && plan.skips();
        Ok(Built { node: Arc::new(Node::LockRows { input: built.node.clone(), plan: Box::new(plan) }), ..built })
    }
}

/// Whether it is a table's rows, without others.
fn is_alone(rel: &Rel) -> bool {
    match rel {
        Rel::Table { .. } => true,
        Rel::Filter { input, .. } | Rel::Project { input, .. } | Rel::Sort { input, .. } => is_alone(input),
        _ => false,
    }
}

/// Whether a plan locks no more rows than are taken from it. A scan of one group that waits for
/// rows locks what matches. One that skips rows has to lock a page before it knows which of them it
/// gives, as has one that reads several groups ahead.
fn locks_as_wanted(node: &Node, of: &LockedTable) -> bool {
    match node {
        Node::Project { input, .. } => locks_as_wanted(input, of),
        Node::Scan(s) => {
            let is_one = s.is_point && s.places.is_empty() && s.prefix.iter().all(|p| matches!(p, KeyPart::Eq(_)));
            let is_in_turn = of.table.group_count() == 1 || (s.filter.is_empty() && !s.is_merged);
            is_one || (is_in_turn && of.locking.if_busy() != Some(OnLocked::Skip))
        }
        _ => false,
    }
}

/// The same rows, not locked.
fn unlocked(rel: &Rel, of: &[LockedTable]) -> Rel {
    fn unlock(rel: &mut Rel, of: &[LockedTable]) {
        if let Rel::Table { base, locking, .. } = rel
            && of.iter().any(|t| t.base == *base)
        {
            *locking = Locking::None;
        }
        rel.inputs_mut().into_iter().for_each(|input| unlock(input, of));
    }
    let mut rel = rel.clone();
    unlock(&mut rel, of);
    rel
}
