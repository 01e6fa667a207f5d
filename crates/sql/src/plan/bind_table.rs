//! Binds what a table's descriptor holds as text, and the foreign keys around it.

use super::binder::{Binder, Scope};
use super::node::Scalar;
use super::rel::Rel;
use super::table::{Filling, ForeignKeys, Mirror, TablePlan};
use crate::catalog::relation::TableRef;
use crate::catalog::{Column, ColumnState, Descriptor, FkAction, MoveState};
use crate::env::Locking;
use crate::plan::expr::Expr;
use crate::types::functions::text::quote_ident as quote;
use crate::types::{CastContext, Datum, Type};
use meridian_base::{DescriptorId, Error, Result};
use std::sync::Arc;

impl Binder<'_> {
    /// Binds what a table's descriptor holds as text.
    pub(crate) fn table_plan(&mut self, table: &TableRef) -> Result<Arc<TablePlan>> {
        let scopes = std::mem::take(&mut self.scopes);
        let (cols, depth) = (self.next_col, self.depth);
        // What a table says of its own rows, it reads for nobody.
        let needs = std::mem::take(&mut self.needs);
        let plan = self.table_plan_inner(table);
        self.needs = needs;
        (self.scopes, self.next_col, self.depth) = (scopes, cols.max(self.next_col), depth);
        plan.map(Arc::new)
    }

    fn table_plan_inner(&mut self, table: &TableRef) -> Result<TablePlan> {
        let (rel, _) = self.table(table.clone(), &table.name, Locking::None);
        let Rel::Table { base, .. } = rel else { unreachable!("made as a table") };
        // What the table holds as text may be about columns that are only being added.
        let cols = self.scope_of(table, table.written_columns(), &table.name, base);
        let scope =
            Scope { cols, tables: vec![table.name.clone()], no_aggregates: Some("check constraints"), ..Scope::default() };
        let types: Vec<Type> = table.columns.iter().map(|c| c.ty.clone()).collect();
        let (plan, _) = self.in_scope(scope, |b| {
            let mut checks = Vec::new();
            for c in &table.checks {
                let ast = crate::parse::parse_expression(&c.expression)?;
                checks.push((c.name.clone(), b.condition(&ast, "CHECK")?));
            }
            b.scope().no_aggregates = Some("column generation expressions");
            let (mut generated, mut defaults, mut missing) = (Vec::new(), Vec::new(), Vec::new());
            let mut on_updates = Vec::new();
            for (o, c) in table.columns.iter().enumerate() {
                let live = c.state != ColumnState::Dropped;
                if let (true, Some(text)) = (live, &c.generated) {
                    let ast = crate::parse::parse_expression(text)?;
                    generated.push((o as u32, b.expr_as(&ast, &c.ty, CastContext::Assignment)?));
                }
                if let (true, Some(text)) = (live, &c.on_update) {
                    let ast = crate::parse::parse_expression(&on_update(c, text))?;
                    on_updates.push((o as u32, b.expr_as(&ast, &c.ty, CastContext::Assignment)?));
                }
                defaults.push(if live { b.default_of(table, o as u32)? } else { None });
                // The type of a dropped column may be gone too.
                missing.push(match &c.missing {
                    Some(text) if live => Datum::from_text(text, &c.ty, b.ctx.eval)?,
                    _ => Datum::Null,
                });
            }
            b.scope().no_aggregates = Some("index predicates");
            let mut predicates = Vec::new();
            for i in &table.indexes {
                predicates.push(match &i.predicate {
                    Some(text) => Some(b.condition(&crate::parse::parse_expression(text)?, "WHERE")?),
                    None => None,
                });
            }
            let (table, types) = (table.clone(), types.clone());
            let filling = Vec::new();
            Ok(TablePlan { table, types, missing, checks, generated, on_updates, predicates, defaults, filling, mirror: None })
        })?;
        let mut plan = plan.over_ordinals(base);
        plan.filling = filling_of(&plan);
        plan.mirror = mirror_of(&plan);
        Ok(plan)
    }

    /// The default of a column, converted to its type.
    pub(crate) fn default_of(&mut self, table: &TableRef, ordinal: u32) -> Result<Option<Expr>> {
        let column = &table.columns[ordinal as usize];
        if let Some(identity) = &column.identity {
            use crate::plan::expr::{SequenceCall, SequenceOp, SequenceTarget};
            self.descriptors.insert(identity.sequence);
            let target = SequenceTarget::Known(identity.sequence);
            let call = SequenceCall { slot: self.slot(), op: SequenceOp::Next, target, args: Vec::new(), is_identity: true };
            let drawn = super::binder::Typed::new(Expr::Sequence(Box::new(call)), Type::Int8);
            return self.coerce(drawn, &column.ty, CastContext::Assignment).map(Some);
        }
        let Some(text) = &column.default else { return Ok(None) };
        let ast = crate::parse::parse_expression(text)?;
        let scopes = std::mem::take(&mut self.scopes);
        let bound = self.expr_as(&ast, &column.ty, CastContext::Assignment);
        self.scopes = scopes;
        bound.map(Some)
    }

    /// Everything that writing a table may look at through foreign keys, following cascades.
    pub(crate) fn foreign_keys(&mut self, plan: &Arc<TablePlan>, updates_or_deletes: bool) -> Result<ForeignKeys> {
        let mut keys = ForeignKeys::default();
        let mut todo = vec![(plan.clone(), updates_or_deletes)];
        keys.tables.insert(plan.table.id, plan.clone());
        while let Some((plan, changes)) = todo.pop() {
            let id = plan.table.id;
            if !keys.parents.contains_key(&id) {
                let mut parents = Vec::new();
                for fk in &plan.table.foreign_keys {
                    let parent = self.plan_of(fk.parent, &mut keys)?;
                    let index = unique_index(&parent.table, &fk.parent_columns)?;
                    parents.push((fk.clone(), parent, index));
                }
                keys.parents.insert(id, parents);
            }
            if changes && !keys.children.contains_key(&id) {
                let mut children = Vec::new();
                for (child, constraint) in &plan.table.referenced_by {
                    let child = self.plan_of(*child, &mut keys)?;
                    let Some(fk) = child.table.foreign_keys.iter().find(|f| f.id == *constraint).cloned() else { continue };
                    let acts = |a| !matches!(a, FkAction::NoAction | FkAction::Restrict);
                    if acts(fk.on_delete) || acts(fk.on_update) {
                        todo.push((child.clone(), true));
                    }
                    children.push((child, fk));
                }
                keys.children.insert(id, children);
            }
        }
        Ok(keys)
    }

    fn plan_of(&mut self, id: DescriptorId, keys: &mut ForeignKeys) -> Result<Arc<TablePlan>> {
        if let Some(plan) = keys.tables.get(&id) {
            return Ok(plan.clone());
        }
        let table =
            self.ctx.catalog.table_by_id(id).ok_or_else(|| Error::internal("a foreign key names a table that is gone"))?;
        let plan = self.table_plan(&table)?;
        keys.tables.insert(id, plan.clone());
        Ok(plan)
    }
}

/// The expression as it is bound: to stay where it is, a row has to say where that is.
fn on_update(column: &Column, text: &str) -> String {
    match column.ty == Type::Region && text.eq_ignore_ascii_case("rehome_row()") {
        true => format!("rehome_row({})", quote(&column.name)),
        false => text.to_string(),
    }
}

fn filling_of(plan: &TablePlan) -> Vec<Filling> {
    let scalar = |expr: &Expr| Scalar { pending: expr.needs_executor(), expr: expr.clone() };
    let is_filling = |o: &u32| plan.table.columns[*o as usize].state == ColumnState::Filling;
    let of = |ordinal: u32| {
        let stored = scalar(plan.defaults[ordinal as usize].as_ref()?);
        let on_update = plan.on_updates.iter().find(|(o, _)| *o == ordinal).map(|(_, e)| scalar(e));
        Some(Filling { ordinal, updated: on_update.unwrap_or_else(|| stored.clone()), stored })
    };
    (0..plan.types.len() as u32).filter(is_filling).filter_map(of).collect()
}

fn mirror_of(plan: &TablePlan) -> Option<Mirror> {
    let inserts = plan.table.moving.as_ref()?.state != MoveState::DeleteOnly;
    let table = TableRef::new(&Arc::new(Descriptor::Table(plan.table.elsewhere()?)))?;
    Some(Mirror { plan: Arc::new(TablePlan { table, ..plan.clone() }), inserts })
}

/// The position of the unique index over exactly these columns; 55006 while it is being built.
fn unique_index(table: &TableRef, columns: &[u32]) -> Result<usize> {
    if let Some(at) = table.indexes.iter().position(|i| i.is_key(columns)) {
        return Ok(at);
    }
    let name = &table.name;
    Err(match table.indexes.iter().find(|i| i.will_be_key(columns)) {
        Some(index) => {
            Error::sql("55006", format!("index \"{}\", which a foreign key to \"{name}\" needs, is being built", index.name))
        }
        None => {
            let message = format!("there is no unique constraint matching given keys for referenced table \"{name}\"");
            Error::sql("42830", message)
        }
    })
}

impl TablePlan {
    /// Binds a table's texts: for backfills and validations, which read and write rows without a
    /// statement.
    pub fn new(table: &TableRef, ctx: super::PlanContext) -> Result<Arc<TablePlan>> {
        Binder::new(ctx, "", &[]).table_plan(table)
    }
}
