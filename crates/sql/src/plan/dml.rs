//! Binds `INSERT`, `UPDATE` and `DELETE`.

use super::bind_from::FromItem;
use super::binder::OutCol;
use super::binder::{Binder, Scope, ScopeCol, Typed};
use super::rel::{Conflict, ConflictUpdate, Dml, DmlKind, Rel};
use super::syntax::{row_items, unnest};
use super::table::TablePlan;
use crate::catalog::ColumnState;
use crate::catalog::names::Name;
use crate::catalog::privileges::Privileges;
use crate::catalog::relation::{Relation, TableRef};
use crate::env::{Locking, OnLocked};
use crate::parse::Overriding;
use crate::parse::fold;
use crate::plan::expr::{ColId, Expr, shift_slots};
use crate::types::numeric::Numeric;
use crate::types::{CastContext, Datum, Type};
use meridian_base::{Error, Result};
use sqlparser::ast::{self, Expr as Ast, Spanned};
use std::ops::Range;
use std::sync::Arc;

impl Binder<'_> {
    pub(crate) fn dml(&mut self, s: &ast::Statement) -> Result<(Rel, Vec<OutCol>)> {
        self.writes = true;
        match s {
            ast::Statement::Insert(i) => self.insert(i, None),
            ast::Statement::Update(u) => self.update(u),
            ast::Statement::Delete(d) => self.delete(d),
            _ => Err(Error::unsupported("this statement is not supported here")),
        }
    }

    /// The table that a statement changes. `wanted`: what one needs to be told more of a view than
    /// that one may not.
    fn target(&mut self, name: &ast::ObjectName, wanted: Privileges) -> Result<TableRef> {
        let parsed = Name::from_ast(name)?;
        let found = self.relation_named(&parsed).map_err(|e| self.at(e, name.span()))?;
        match found {
            Relation::View(view) => {
                let catalog = self.ctx.catalog;
                catalog.check(&catalog.authority_of(self.ctx.names), view.id, wanted)?;
                Err(Error::sql("55000", format!("cannot change view \"{parsed}\""))
                    .hint("Views are read-only: change the tables behind it."))
            }
            _ => self.ctx.catalog.table(self.ctx.names, &parsed).map_err(|e| self.at(e, name.span())),
        }
    }

    pub(crate) fn insert(&mut self, i: &ast::Insert, overriding: Option<Overriding>) -> Result<(Rel, Vec<OutCol>)> {
        self.writes = true;
        let ast::TableObject::TableName(name) = &i.table else {
            return Err(Error::unsupported("INSERT INTO FUNCTION is not supported"));
        };
        if i.or.is_some() || i.ignore || i.overwrite || !i.assignments.is_empty() {
            return Err(Error::sql("42601", "syntax error in INSERT"));
        }
        let table = self.target(name, Privileges::INSERT)?;
        let alias = i.table_alias.as_ref().map_or_else(|| table.name.clone(), |a| fold(&a.alias));
        self.need(table.id, Privileges::INSERT);
        let plan = self.table_plan(&table)?;
        let (rel, mut cols) = self.table(table.clone(), &alias, Locking::None);
        let base = base_of(&rel);
        // The row is not read from the table.
        cols.iter_mut().for_each(|c| c.estimate = None);
        let mut targets = Vec::new();
        for c in &i.columns {
            let column = Name::from_ast(c)?.name;
            let (ordinal, _) = self.column_of(&table, &column, c.span())?;
            if targets.contains(&ordinal) {
                return Err(self.at(Error::sql("42701", format!("column \"{column}\" specified more than once")), c.span()));
            }
            targets.push(ordinal);
        }
        let explicit = !targets.is_empty();
        if !explicit {
            targets = table.public_columns().map(|(o, _)| o).collect();
        }
        let (mut input, mut targets) = self.insert_source(i, &plan, targets, explicit)?;
        let said = targets.clone();
        let infers = infers(&table, &targets);
        self.check_identity(&table, &mut input, &targets, &plan, overriding)?;
        self.add_defaults(&mut input, &mut targets, &plan);
        let conflict = match &i.on {
            _ if i.replace_into && i.on.is_some() => return Err(Error::sql("42601", "syntax error at or near \"ON\"")),
            None if i.replace_into => {
                self.need(table.id, Privileges::SELECT.with(Privileges::UPDATE));
                self.upsert(&plan, explicit.then_some(&said), base)
            }
            None => None,
            Some(ast::OnInsert::OnConflict(c)) => Some(self.conflict(c, &plan, &cols, &alias, base)?),
            Some(_) => return Err(Error::sql("42601", "syntax error at or near \"DUPLICATE\"")),
        };
        let changes = matches!(&conflict, Some(Conflict { update: Some(_), .. }));
        let keys = Arc::new(self.foreign_keys(&plan, changes)?);
        let returning = self.returning(i.returning.as_deref(), cols, &[], vec![alias])?;
        self.finish(
            Dml { table: plan, keys, input, kind: DmlKind::Insert { targets, conflict, infers }, base, returning: Vec::new() },
            returning,
        )
    }

    /// `INSERT INTO t (columns) VALUES ($1, …)`.
    pub(crate) fn insert_params(&mut self, table: &TableRef, ordinals: &[u32]) -> Result<(Rel, Vec<OutCol>)> {
        self.writes = true;
        let plan = self.table_plan(table)?;
        let base = self.fresh_many(table.columns.len());
        self.params = ordinals.iter().map(|o| Some(table.columns[*o as usize].ty.clone())).collect();
        let cols: Vec<ColId> = ordinals.iter().map(|_| self.fresh()).collect();
        let row = (0..ordinals.len() as u32).map(Expr::Param).collect();
        let mut input = Rel::Values { cols, rows: vec![row] };
        let infers = infers(table, ordinals);
        let mut targets = ordinals.to_vec();
        self.add_defaults(&mut input, &mut targets, &plan);
        let keys = Arc::new(self.foreign_keys(&plan, false)?);
        let kind = DmlKind::Insert { targets, conflict: None, infers };
        self.finish(Dml { table: plan, keys, input, kind, base, returning: Vec::new() }, Vec::new())
    }

    fn insert_source(
        &mut self,
        i: &ast::Insert,
        plan: &TablePlan,
        mut targets: Vec<u32>,
        explicit: bool,
    ) -> Result<(Rel, Vec<u32>)> {
        let Some(source) = &i.source else {
            return Ok((Rel::one_row(), Vec::new()));
        };
        if let ast::SetExpr::Values(v) = &*source.body
            && source.with.is_none()
            && source.order_by.is_none()
            && source.limit_clause.is_none()
        {
            let width = v.rows.first().map_or(0, |r| r.content.len());
            let extra = v.rows.first().and_then(|r| r.content.get(targets.len()));
            self.check_width(width, &mut targets, explicit, extra.map_or_else(|| source.span(), |e| e.span()))?;
            let mut rows = Vec::with_capacity(v.rows.len());
            for row in v.rows.iter().map(|r| &r.content) {
                if row.len() != width {
                    return Err(self.at(Error::sql("42601", "VALUES lists must all be the same length"), source.span()));
                }
                let value = |(e, o): (&Ast, &u32)| self.assigned(e, plan, *o);
                rows.push(row.iter().zip(&targets).map(value).collect::<Result<Vec<_>>>()?);
            }
            let cols = targets.iter().map(|_| self.fresh()).collect();
            return Ok((Rel::Values { cols, rows }, targets));
        }
        self.expected = targets.iter().map(|o| plan.table.columns[*o as usize].ty.clone()).collect();
        let (rel, out) = self.query(source)?;
        self.expected.clear();
        self.check_width(out.len(), &mut targets, explicit, source.span())?;
        let mut exprs = Vec::new();
        for (c, o) in out.iter().zip(&targets) {
            let value = super::bind_query::literal_of(&rel, c, &self.literals);
            let value = value.unwrap_or_else(|| Typed::new(Expr::Column(c.id), c.ty.clone()));
            let e = self.assign(value, plan, *o)?;
            exprs.push((self.fresh(), e));
        }
        Ok((Rel::Project { input: Box::new(rel), exprs }, targets))
    }

    fn check_width(&self, width: usize, targets: &mut Vec<u32>, explicit: bool, span: sqlparser::tokenizer::Span) -> Result<()> {
        if width > targets.len() {
            return Err(self.at(Error::sql("42601", "INSERT has more expressions than target columns"), span));
        }
        if width < targets.len() && explicit {
            return Err(self.at(Error::sql("42601", "INSERT has more target columns than expressions"), span));
        }
        targets.truncate(width);
        Ok(())
    }

    /// A value for a column; `DEFAULT` is the column's default.
    fn assigned(&mut self, e: &Ast, plan: &TablePlan, ordinal: u32) -> Result<Expr> {
        if is_default(e) {
            return Ok(plan.defaults[ordinal as usize].clone().unwrap_or(Expr::NULL));
        }
        let column = &plan.table.columns[ordinal as usize];
        if column.generated.is_some() {
            return Err(generated_always(&column.name, "insert a non-DEFAULT value into"));
        }
        let t = self.expr(e)?;
        self.assign(t, plan, ordinal).map_err(|err| self.at(err, e.span()))
    }
    /// Converts a value to a column's type, or 42804.
    fn assign(&mut self, t: Typed, plan: &TablePlan, ordinal: u32) -> Result<Expr> {
        let column = &plan.table.columns[ordinal as usize];
        let from = t.ty.clone();
        self.coerce(t, &column.ty, CastContext::Assignment).map_err(|e| match e.sqlstate() {
            "42846" => {
                let message = format!(
                    "column \"{}\" is of type {} but expression is of type {}",
                    column.name,
                    column.ty.base_name(),
                    from.base_name()
                );
                Error::sql("42804", message).hint("You will need to rewrite or cast the expression.")
            }
            _ => e,
        })
    }

    /// Values given for identity columns: refused for `GENERATED ALWAYS`, or replaced, as
    /// `OVERRIDING` says.
    fn check_identity(
        &mut self,
        table: &TableRef,
        input: &mut Rel,
        targets: &[u32],
        plan: &TablePlan,
        overriding: Option<Overriding>,
    ) -> Result<()> {
        let identity = |o: &u32| table.columns[*o as usize].identity.as_ref();
        if overriding == Some(Overriding::SystemValue) {
            return Ok(());
        }
        for at in 0..targets.len() {
            let Some(id) = identity(&targets[at]) else { continue };
            let default = plan.defaults[targets[at] as usize].as_ref();
            let given = match input {
                Rel::Values { rows, .. } => rows.iter().any(|r| Some(&r[at]) != default),
                _ => true,
            };
            if overriding == Some(Overriding::UserValue) {
                if let Rel::Values { rows, .. } = input {
                    let d = plan.defaults[targets[at] as usize].clone().unwrap_or(Expr::NULL);
                    rows.iter_mut().for_each(|r| r[at] = d.clone());
                }
            } else if given && id.always {
                let name = &table.columns[targets[at] as usize].name;
                return Err(Error::sql("428C9", format!("cannot insert a non-DEFAULT value into column \"{name}\""))
                    .detail(format!("Column \"{name}\" is an identity column defined as GENERATED ALWAYS."))
                    .hint("Use OVERRIDING SYSTEM VALUE to override."));
            }
        }
        Ok(())
    }

    /// Columns that are not given get their defaults.
    fn add_defaults(&mut self, input: &mut Rel, targets: &mut Vec<u32>, plan: &TablePlan) {
        let missing: Vec<(u32, Expr)> = (plan.table.written_columns())
            .filter(|(o, _)| !targets.contains(o))
            .filter_map(|(o, _)| plan.defaults[o as usize].clone().map(|e| (o, e)))
            .collect();
        if missing.is_empty() {
            return;
        }
        if let Rel::Values { cols, rows } = input {
            for (o, e) in missing {
                cols.push(self.fresh());
                rows.iter_mut().for_each(|r| r.push(e.clone()));
                targets.push(o);
            }
            return;
        }
        let mut exprs: Vec<(ColId, Expr)> = input.cols().into_iter().map(|c| (c, Expr::Column(c))).collect();
        for (o, e) in missing {
            exprs.push((self.fresh(), e));
            targets.push(o);
        }
        let source = std::mem::replace(input, Rel::one_row());
        *input = Rel::Project { input: Box::new(source), exprs };
    }

    fn conflict(
        &mut self,
        c: &ast::OnConflict,
        plan: &TablePlan,
        cols: &[ScopeCol],
        alias: &str,
        base: ColId,
    ) -> Result<Conflict> {
        let table = &plan.table;
        if c.conflict_target.is_some() {
            self.need(table.id, Privileges::SELECT);
        }
        if matches!(c.action, ast::OnConflictAction::DoUpdate(_)) {
            self.need(table.id, Privileges::UPDATE);
        }
        let arbiters = match &c.conflict_target {
            None => Vec::new(),
            Some(ast::ConflictTarget::OnConstraint(name)) => {
                let name = Name::from_ast(name)?.name;
                let at = table
                    .indexes
                    .iter()
                    .position(|i| i.name == name && i.unique && i.state == crate::catalog::IndexState::Public);
                vec![at.ok_or_else(|| {
                    Error::sql("42704", format!("constraint \"{name}\" for table \"{}\" does not exist", table.name))
                })?]
            }
            Some(ast::ConflictTarget::Columns(names)) => {
                let mut wanted = Vec::new();
                for n in names {
                    wanted.push(self.column_of(table, &fold(n), n.span)?.0);
                }
                wanted.sort_unstable();
                wanted.dedup();
                // One that is being built does not know every row yet.
                let found: Vec<usize> = (0..table.indexes.len()).filter(|i| table.indexes[*i].is_key(&wanted)).collect();
                if found.is_empty() {
                    let message = "there is no unique or exclusion constraint matching the ON CONFLICT specification";
                    return Err(Error::sql("42P10", message));
                }
                found
            }
        };
        let ast::OnConflictAction::DoUpdate(update) = &c.action else {
            return Ok(Conflict { arbiters, update: None });
        };
        if arbiters.is_empty() {
            return Err(Error::sql("42601", "ON CONFLICT DO UPDATE requires inference specification or constraint name")
                .hint("For example, ON CONFLICT (column_name)."));
        }
        let excluded = self.fresh_many(table.columns.len());
        let mut all = cols.to_vec();
        all.extend(cols.iter().map(|c| ScopeCol {
            table: "excluded".into(),
            // The row is the statement's own.
            origin: None,
            id: excluded + (c.id - base),
            qualified_only: true,
            estimate: None,
            ..c.clone()
        }));
        let scope = Scope {
            cols: all,
            tables: vec![alias.to_string(), "excluded".into()],
            no_aggregates: Some("ON CONFLICT"),
            ..Scope::default()
        };
        let ((mut set, filter), _) = self.in_scope(scope, |b| {
            let mut set = b.assignments(&update.assignments, plan)?;
            add_on_updates(&mut set, plan, base);
            let filter = update.selection.as_ref().map(|e| b.condition(e, "WHERE")).transpose()?;
            Ok((set, filter))
        })?;
        let deltas = deltas(table, base, &mut set);
        Ok(Conflict { arbiters, update: Some(ConflictUpdate { excluded, set, deltas, filter }) })
    }

    /// What an `UPSERT` does with a row whose primary key is there: it gets the values that are
    /// given. Without a list, every column does.
    fn upsert(&mut self, plan: &TablePlan, given: Option<&Vec<u32>>, base: ColId) -> Option<Conflict> {
        let table = &plan.table;
        let given = given.cloned().unwrap_or_else(|| table.public_columns().map(|(o, _)| o).collect());
        if crate::catalog::is_implicit_primary(table, table.primary()) {
            return None;
        }
        let excluded = self.fresh_many(table.columns.len());
        let is_key = |o: u32| table.primary().columns.iter().any(|c| c.ordinal == o);
        let is_set = |o: &&u32| !is_key(**o) && table.columns[**o as usize].generated.is_none();
        let mut set: Vec<(u32, Expr)> = given.iter().filter(is_set).map(|o| (*o, Expr::Column(excluded + o))).collect();
        let update = (!set.is_empty()).then(|| {
            add_on_updates(&mut set, plan, base);
            ConflictUpdate { excluded, set, deltas: Vec::new(), filter: None }
        });
        Some(Conflict { arbiters: vec![0], update })
    }

    fn assignments(&mut self, list: &[ast::Assignment], plan: &TablePlan) -> Result<Vec<(u32, Expr)>> {
        let mut set: Vec<(u32, Expr)> = Vec::new();
        for a in list {
            match &a.target {
                ast::AssignmentTarget::ColumnName(name) => {
                    let e = self.assignment(name, plan, &mut set)?;
                    let value = self.set_value(&a.value, plan, e)?;
                    set.push((e, value));
                }
                ast::AssignmentTarget::Tuple(names) => {
                    let ordinals = names.iter().map(|n| self.assignment(n, plan, &mut set)).collect::<Result<Vec<_>>>()?;
                    let count = |n: usize| match n == ordinals.len() {
                        true => Ok(()),
                        false => Err(Error::sql("42601", "number of columns does not match number of values")),
                    };
                    if let Some(values) = row_items(&a.value)? {
                        count(values.len())?;
                        for (o, v) in ordinals.into_iter().zip(values) {
                            let value = self.set_value(v, plan, o)?;
                            set.push((o, value));
                        }
                        continue;
                    }
                    match unnest(&a.value) {
                        Ast::Subquery(q) => {
                            let (rel, out) = self.subquery(q)?;
                            count(out.len())?;
                            for (o, c) in ordinals.into_iter().zip(out) {
                                // Each column is a subquery of its own over the same relation.
                                let one = Rel::Project { input: Box::new(rel.clone()), exprs: vec![(c.id, Expr::Column(c.id))] };
                                let e = self.make_subquery(crate::plan::expr::SubqueryKind::Scalar, one);
                                let value = self.assign(Typed::new(e, c.ty), plan, o)?;
                                set.push((o, value));
                            }
                        }
                        _ => {
                            return Err(Error::unsupported(
                                "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression",
                            ));
                        }
                    }
                }
            }
        }
        Ok(set)
    }
    fn assignment(&mut self, name: &ast::ObjectName, plan: &TablePlan, set: &mut [(u32, Expr)]) -> Result<u32> {
        let column = Name::from_ast(name)?.name;
        let (ordinal, _) = self.column_of(&plan.table, &column, name.span())?;
        if set.iter().any(|s| s.0 == ordinal) {
            return Err(self.at(Error::sql("42601", format!("multiple assignments to same column \"{column}\"")), name.span()));
        }
        Ok(ordinal)
    }
    fn set_value(&mut self, e: &Ast, plan: &TablePlan, ordinal: u32) -> Result<Expr> {
        let column = &plan.table.columns[ordinal as usize];
        if !is_default(e) {
            if column.generated.is_some() {
                return Err(generated_always(&column.name, "update"));
            }
            if column.identity.as_ref().is_some_and(|i| i.always) {
                return Err(Error::sql("428C9", format!("column \"{}\" can only be updated to DEFAULT", column.name))
                    .detail(format!("Column \"{}\" is an identity column defined as GENERATED ALWAYS.", column.name)));
            }
        }
        self.assigned(e, plan, ordinal)
    }

    fn column_of<'t>(
        &self,
        table: &'t TableRef,
        name: &str,
        span: sqlparser::tokenizer::Span,
    ) -> Result<(u32, &'t crate::catalog::Column)> {
        let found = table.column(name).filter(|(_, c)| c.state != ColumnState::Dropped);
        found.ok_or_else(|| {
            let message = format!("column \"{name}\" of relation \"{}\" does not exist", table.name);
            self.at(Error::sql("42703", message), span)
        })
    }

    fn update(&mut self, u: &ast::Update) -> Result<(Rel, Vec<OutCol>)> {
        if !u.table.joins.is_empty() || !u.order_by.is_empty() || u.limit.is_some() || u.or.is_some() {
            return Err(Error::sql("42601", "syntax error in UPDATE"));
        }
        let ast::TableFactor::Table { name, alias, .. } = &u.table.relation else {
            return Err(Error::sql("42601", "syntax error in UPDATE"));
        };
        let from = match &u.from {
            None => &[],
            Some(ast::UpdateTableFromKind::AfterSet(f) | ast::UpdateTableFromKind::BeforeSet(f)) => f.as_slice(),
        };
        let mut t = self.change_target(name, alias.as_ref(), from, u.selection.as_ref(), Privileges::UPDATE)?;
        let plan = t.plan.clone();
        let scope = Scope { cols: t.all_cols(), tables: t.tables.clone(), no_aggregates: Some("UPDATE"), ..Scope::default() };
        let (mut set, _) = self.in_scope(scope, |b| b.assignments(&u.assignments, &plan))?;
        add_on_updates(&mut set, &plan, t.base);
        if !may_change_keys(&plan.table, &set) {
            keep_keys(&mut t.input, t.base);
        }
        let deltas = deltas(&plan.table, t.base, &mut set);
        self.change(t, DmlKind::Update { set, deltas }, u.returning.as_deref())
    }

    fn delete(&mut self, d: &ast::Delete) -> Result<(Rel, Vec<OutCol>)> {
        let (ast::FromTable::WithFromKeyword(tables) | ast::FromTable::WithoutKeyword(tables)) = &d.from;
        let [ast::TableWithJoins { relation: ast::TableFactor::Table { name, alias, .. }, joins }] = tables.as_slice() else {
            return Err(Error::sql("42601", "syntax error in DELETE"));
        };
        if !joins.is_empty() || !d.tables.is_empty() || !d.order_by.is_empty() || d.limit.is_some() {
            return Err(Error::sql("42601", "syntax error in DELETE"));
        }
        let using = d.using.as_deref().unwrap_or_default();
        let t = self.change_target(name, alias.as_ref(), using, d.selection.as_ref(), Privileges::DELETE)?;
        self.change(t, DmlKind::Delete, d.returning.as_deref())
    }

    fn change_target(
        &mut self,
        name: &ast::ObjectName,
        alias: Option<&ast::TableAlias>,
        from: &[ast::TableWithJoins],
        selection: Option<&Ast>,
        change: Privileges,
    ) -> Result<Target> {
        let table = self.target(name, change)?;
        self.need(table.id, change);
        let alias = alias.map_or_else(|| table.name.clone(), |a| fold(&a.name));
        let plan = self.table_plan(&table)?;
        let (rel, cols) = self.table(table, &alias, Locking::Exclusive(OnLocked::Wait));
        let base = base_of(&rel);
        let (mut input, mut from_cols, mut tables) = (rel, Vec::new(), vec![alias.clone()]);
        if !from.is_empty() {
            let FromItem { rel: other, cols, tables: names } = self.from(from, &Vec::new())?;
            if names.contains(&alias) {
                return Err(Error::sql("42712", format!("table name \"{alias}\" specified more than once")));
            }
            input =
                Rel::Join { kind: super::rel::JoinKind::Inner, left: Box::new(input), right: Box::new(other), on: Vec::new() };
            (from_cols, tables) = (cols, tables.into_iter().chain(names).collect());
        }
        let mut target = Target { plan, cols, from_cols, tables, input, base };
        if let Some(e) = selection {
            let scope = Scope {
                cols: target.all_cols(),
                tables: target.tables.clone(),
                no_aggregates: Some("WHERE"),
                ..Scope::default()
            };
            let (cond, _) = self.in_scope(scope, |b| b.condition(e, "WHERE"))?;
            let mut conds = Vec::new();
            cond.conjuncts(&mut conds);
            target.input = target.input.filtered(conds);
        }
        Ok(target)
    }

    fn change(&mut self, t: Target, kind: DmlKind, returning: Option<&[ast::SelectItem]>) -> Result<(Rel, Vec<OutCol>)> {
        let keys = Arc::new(self.foreign_keys(&t.plan, true)?);
        let returning = self.returning(returning, t.cols, &t.from_cols, t.tables)?;
        // Rows that a condition on others leaves out are not locked.
        let input = super::locks::lock_rows(t.input);
        let dml = Dml { table: t.plan, keys, input, kind, base: t.base, returning: Vec::new() };
        self.finish(dml, returning)
    }

    fn returning(
        &mut self,
        items: Option<&[ast::SelectItem]>,
        mut cols: Vec<ScopeCol>,
        more: &[ScopeCol],
        tables: Vec<String>,
    ) -> Result<Vec<(Typed, String, Option<(meridian_base::DescriptorId, u32)>)>> {
        let Some(items) = items else { return Ok(Vec::new()) };
        let is_all = |i: &ast::SelectItem| matches!(i, ast::SelectItem::Wildcard(_) | ast::SelectItem::QualifiedWildcard(..));
        if items.iter().any(is_all)
            && let Some((table, _)) = cols.first().and_then(|c| c.origin)
        {
            self.need(table, Privileges::SELECT);
        }
        cols.extend_from_slice(more);
        let origins = cols.clone();
        let scope = Scope { cols, tables, no_aggregates: Some("RETURNING"), ..Scope::default() };
        let (items, _) = self.in_scope(scope, |b| b.select_items(items, &[]))?;
        let origin = |t: &Typed| match t.expr {
            Expr::Column(c) => origins.iter().find(|o| o.id == c).and_then(|o| o.origin),
            _ => None,
        };
        Ok(items.into_iter().map(|(t, n)| (t.clone(), n, origin(&t))).collect())
    }

    fn finish(
        &mut self,
        mut dml: Dml,
        returning: Vec<(Typed, String, Option<(meridian_base::DescriptorId, u32)>)>,
    ) -> Result<(Rel, Vec<OutCol>)> {
        self.groups.extend(dml.table.table.groups());
        let mut out = Vec::new();
        for (t, name, origin) in returning {
            let id = self.fresh();
            out.push(OutCol { id, name, ty: t.ty, origin });
            dml.returning.push((id, t.expr));
        }
        let cols = out.iter().map(|c| c.id).collect();
        Ok((Rel::Dml { dml: Arc::new(dml), cols }, out))
    }
}

/// Takes assignments out that add to an escrow column what no column of the row says: `x = x + 3`.
fn deltas(table: &TableRef, base: ColId, set: &mut Vec<(u32, Expr)>) -> Vec<(u32, Expr)> {
    if table.escrow.is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    set.retain(|(ordinal, e)| {
        let row = base..base + table.columns.len() as u32;
        let ty = &table.columns[*ordinal as usize].ty;
        let of = table.escrow_column(*ordinal).filter(|column| !column.in_rows);
        let delta = of.and_then(|_| delta(e, base + ordinal, row, ty));
        let is_one = delta.is_some();
        found.extend(delta.map(|delta| (*ordinal, delta)));
        !is_one
    });
    found
}

/// What an expression adds to a column of this type.
fn delta(e: &Expr, column: ColId, row: Range<ColId>, ty: &Type) -> Option<Expr> {
    let is_it = |e: &Expr| matches!(widened(e, ty), Expr::Column(c) if *c == column);
    let is_apart = |e: &Expr| !e.columns().iter().any(|c| row.contains(c)) && !e.needs_executor() && !e.is_volatile();
    let Expr::Call(function, args) = assigned(e, ty) else { return None };
    let [left, right] = &args[..] else { return None };
    match function.name {
        "+" if is_it(left) && is_apart(right) => Some(right.clone()),
        "+" if is_it(right) && is_apart(left) => Some(left.clone()),
        "-" if is_it(left) && is_apart(right) => {
            let zero = match function.args.first() {
                Some(Type::Numeric(_)) => Datum::Numeric(Numeric::from_digits("0", false, 0)?),
                _ => Datum::Int(0),
            };
            Some(Expr::Call(function.clone(), vec![Expr::Const(zero), right.clone()]))
        }
        _ => None,
    }
}

fn is_whole(ty: &Type) -> bool {
    matches!(ty, Type::Int2 | Type::Int4 | Type::Int8)
}

/// Without the cast to the column's type, which the bounds of the column stand for. One that rounds
/// to a whole number stays: how it rounds depends on the sum.
fn assigned<'e>(e: &'e Expr, ty: &Type) -> &'e Expr {
    match e {
        Expr::Cast(c) if c.to == *ty && (is_whole(&c.from) || matches!((&c.from, ty), (Type::Numeric(_), Type::Numeric(_)))) => {
            &c.expr
        }
        _ => e,
    }
}

/// A column without the cast to a wider type.
fn widened<'e>(e: &'e Expr, ty: &Type) -> &'e Expr {
    match e {
        Expr::Cast(c) if c.from == *ty && (is_whole(&c.to) || matches!((ty, &c.to), (Type::Numeric(_), Type::Numeric(None)))) => {
            &c.expr
        }
        _ => e,
    }
}

/// The table an `UPDATE` or `DELETE` changes, and what it is joined with.
struct Target {
    plan: Arc<TablePlan>,
    cols: Vec<ScopeCol>,
    from_cols: Vec<ScopeCol>,
    tables: Vec<String>,
    input: Rel,
    base: ColId,
}

impl Target {
    fn all_cols(&self) -> Vec<ScopeCol> {
        self.cols.iter().chain(&self.from_cols).cloned().collect()
    }
}

fn base_of(rel: &Rel) -> ColId {
    match rel {
        Rel::Table { base, .. } => *base,
        _ => unreachable!("the target of a change is a table"),
    }
}

/// Whether an update may give a row other keys: those of unique indexes, which rows of other tables
/// may refer to, and its region.
fn may_change_keys(table: &TableRef, set: &[(u32, Expr)]) -> bool {
    let is_generated = |o: u32| table.columns[o as usize].generated.is_some();
    let keys = table.indexes.iter().filter(|i| i.unique).flat_map(|i| &i.columns).map(|c| c.ordinal);
    keys.chain(table.region_column()).any(|o| is_generated(o) || set.iter().any(|(to, _)| *to == o))
}

/// A transaction that only needs the changed table's rows to keep their keys need not wait for
/// this.
fn keep_keys(rel: &mut Rel, of: ColId) {
    match rel {
        Rel::Table { base, locking, .. } if *base == of => {
            if let Locking::Exclusive(on) = *locking {
                *locking = Locking::KeyKept(on);
            }
        }
        Rel::Filter { input, .. } | Rel::Project { input, .. } => keep_keys(input, of),
        Rel::Join { left, right, .. } => {
            keep_keys(left, of);
            keep_keys(right, of);
        }
        _ => {}
    }
}

/// Whether rows of these columns go where their parents are.
fn infers(table: &TableRef, targets: &[u32]) -> bool {
    table.infers_region_by.is_some() && table.region_column().is_some_and(|o| !targets.contains(&o))
}

/// Columns that are not assigned to get what their `ON UPDATE` says.
fn add_on_updates(set: &mut Vec<(u32, Expr)>, plan: &TablePlan, base: ColId) {
    for (ordinal, e) in &plan.on_updates {
        if !set.iter().any(|(o, _)| o == ordinal) {
            let mut e = e.clone();
            shift_slots(&mut e, base);
            set.push((*ordinal, e));
        }
    }
}

fn is_default(e: &Ast) -> bool {
    matches!(e, Ast::Identifier(i) if i.quote_style.is_none() && i.value.eq_ignore_ascii_case("default"))
}

fn generated_always(column: &str, what: &str) -> Error {
    let message = match what {
        "update" => format!("column \"{column}\" can only be updated to DEFAULT"),
        what => format!("cannot {what} column \"{column}\""),
    };
    Error::sql("428C9", message).detail(format!("Column \"{column}\" is a generated column."))
}
