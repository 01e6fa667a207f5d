//! Binds the items of `FROM`: tables, views, subqueries, functions, joins.

use super::NeedOn;
use super::binder::OutCol;
use super::binder::{Behalf, Binder, CteKind, Scope, ScopeCol, Typed};
use super::locks::{self, Locks, locking_of};
use super::rel::*;
use super::syntax::{argument, function_name};
use crate::catalog::names::Name;
use crate::catalog::privileges::Privileges;
use crate::catalog::relation::{Relation, TableRef, ViewRef};
use crate::catalog::system::FUNCTIONS;
use crate::catalog::{Column, Descriptor, GroupKind};
use crate::env::Locking;
use crate::parse::fold;
use crate::plan::expr::*;
use crate::show::{Computed, Show};
use crate::types::Type;
use crate::types::functions::FunctionKind;
use meridian_base::{DescriptorId, Error, GroupId, Result};
use sqlparser::ast::{self, Expr as Ast, Spanned};
use std::sync::Arc;

/// What an item of a `FROM` list, or several of them, are.
pub(crate) struct FromItem {
    pub(crate) rel: Rel,
    /// The columns in sight.
    pub(crate) cols: Vec<ScopeCol>,
    /// The names of the relations.
    pub(crate) tables: Vec<String>,
}

impl FromItem {
    /// 42712 if one of its names is among these.
    fn refuse_second_names(&self, tables: &[String]) -> Result<()> {
        match self.tables.iter().find(|name| tables.contains(name)) {
            Some(name) => Err(Error::sql("42712", format!("table name \"{name}\" specified more than once"))),
            None => Ok(()),
        }
    }
}

impl Binder<'_> {
    /// The `FROM` list: everything joined.
    pub(crate) fn from(&mut self, from: &[ast::TableWithJoins], locks: &Locks) -> Result<FromItem> {
        let (mut rel, mut cols, mut tables) = (None, Vec::new(), Vec::new());
        for item in from {
            // Items to the left are in sight of LATERAL ones.
            let sight = Scope { cols: cols.clone(), tables: tables.clone(), no_aggregates: Some("FROM"), ..Scope::default() };
            let (item, _) = self.in_scope(sight, |b| b.joined(item, locks))?;
            item.refuse_second_names(&tables)?;
            cols.extend(item.cols);
            tables.extend(item.tables);
            let right = item.rel;
            rel = Some(match rel {
                None => right,
                Some(left) => Rel::Join { kind: JoinKind::Inner, left: Box::new(left), right: Box::new(right), on: Vec::new() },
            });
        }
        Ok(FromItem { rel: rel.unwrap_or_else(Rel::one_row), cols, tables })
    }

    pub(crate) fn joined(&mut self, item: &ast::TableWithJoins, locks: &Locks) -> Result<FromItem> {
        let mut left = self.table_factor(&item.relation, locks)?;
        for j in &item.joins {
            use ast::JoinOperator as J;
            // Rows of the right side that have no partner are there too, and depend on none.
            let sight = match &j.join_operator {
                J::Right(_) | J::RightOuter(_) | J::FullOuter(_) => Scope { no_aggregates: Some("FROM"), ..Scope::default() },
                _ => {
                    let (cols, tables) = (left.cols.clone(), left.tables.clone());
                    Scope { cols, tables, no_aggregates: Some("FROM"), ..Scope::default() }
                }
            };
            let (right, _) = self.in_scope(sight, |b| b.table_factor(&j.relation, locks))?;
            right.refuse_second_names(&left.tables)?;
            left = self.join(left, right, &j.join_operator)?;
        }
        Ok(left)
    }

    fn join(&mut self, left: FromItem, right: FromItem, op: &ast::JoinOperator) -> Result<FromItem> {
        use ast::JoinOperator as J;
        #[derive(PartialEq)]
        enum Side {
            Inner,
            Left,
            Right,
            Full,
        }
        let (side, constraint) = match op {
            J::Join(c) | J::Inner(c) | J::CrossJoin(c) => (Side::Inner, c),
            J::Left(c) | J::LeftOuter(c) => (Side::Left, c),
            J::Right(c) | J::RightOuter(c) => (Side::Right, c),
            J::FullOuter(c) => (Side::Full, c),
            _ => return Err(Error::unsupported("this kind of join is not supported")),
        };
        if side != Side::Inner && matches!(constraint, ast::JoinConstraint::None) {
            return Err(Error::sql("42601", "an outer join needs ON, USING or NATURAL"));
        }
        let using: Option<Vec<String>> = match constraint {
            ast::JoinConstraint::Using(names) => Some(names.iter().map(|n| Ok(Name::from_ast(n)?.name)).collect::<Result<_>>()?),
            ast::JoinConstraint::Natural => {
                let mut common: Vec<String> = Vec::new();
                for c in left.cols.iter().filter(|c| !c.qualified_only && !c.hidden) {
                    if right.cols.iter().any(|r| r.name == c.name && !r.qualified_only && !r.hidden) {
                        common.push(c.name.clone());
                    }
                }
                Some(common)
            }
            _ => None,
        };
        let (mut on, mut merged, mut computed) = (Vec::new(), Vec::new(), Vec::new());
        let (mut lcols, mut rcols) = (left.cols, right.cols);
        let tables: Vec<String> = left.tables.into_iter().chain(right.tables).collect();
        for name in using.iter().flatten() {
            let l = pick(&lcols, name, "left")?.clone();
            let r = pick(&rcols, name, "right")?.clone();
            let (lt, rt) = (Typed::new(Expr::Column(l.id), l.ty.clone()), Typed::new(Expr::Column(r.id), r.ty.clone()));
            on.push(self.operator_typed("=", lt, rt, &Ast::Value(ast::Value::Null.into()))?.expr);
            let id = match side {
                Side::Inner | Side::Left => l.id,
                Side::Right => r.id,
                Side::Full => {
                    let id = self.fresh();
                    computed.push((id, Expr::Coalesce(vec![Expr::Column(l.id), Expr::Column(r.id)])));
                    id
                }
            };
            merged.push(ScopeCol {
                table: String::new(),
                schema: None,
                id,
                qualified_only: false,
                estimate: None,
                ..if side == Side::Right { r } else { l }
            });
            for c in lcols.iter_mut().chain(&mut rcols).filter(|c| c.name == *name) {
                c.qualified_only = true;
            }
        }
        let mut cols = merged;
        cols.extend(lcols);
        cols.extend(rcols);
        if let ast::JoinConstraint::On(e) = constraint {
            let no_aggregates = Some("JOIN conditions");
            let scope = Scope { cols: cols.clone(), tables: tables.clone(), no_aggregates, ..Scope::default() };
            let (cond, _) = self.in_scope(scope, |b| b.condition(e, "JOIN/ON"))?;
            cond.conjuncts(&mut on);
        }
        let (left, right) = (Box::new(left.rel), Box::new(right.rel));
        let rel = match side {
            Side::Inner => Rel::Join { kind: JoinKind::Inner, left, right, on },
            Side::Left => Rel::Join { kind: JoinKind::Left, left, right, on },
            Side::Right => Rel::Join { kind: JoinKind::Left, left: right, right: left, on },
            Side::Full => Rel::Join { kind: JoinKind::Full, left, right, on },
        };
        if computed.is_empty() {
            return Ok(FromItem { rel, cols, tables });
        }
        let mut exprs: Vec<(ColId, Expr)> = rel.cols().into_iter().map(|c| (c, Expr::Column(c))).collect();
        exprs.extend(computed);
        Ok(FromItem { rel: Rel::Project { input: Box::new(rel), exprs }, cols, tables })
    }

    fn table_factor(&mut self, f: &ast::TableFactor, locks: &Locks) -> Result<FromItem> {
        match f {
            ast::TableFactor::Table { with_hints, .. } if !with_hints.is_empty() => {
                Err(Error::sql("42601", format!("table hints are not supported: WITH ({})", with_hints[0])))
            }
            ast::TableFactor::Table { name, alias, args: None, sample: None, with_ordinality: false, .. } => {
                if let [ast::ObjectNamePart::Identifier(shown)] = &name.0[..]
                    && shown.quote_style == Some(crate::parse::SHOWN)
                {
                    return self.shown(shown, alias.as_ref());
                }
                let name_ = Name::from_ast(name)?;
                let alias_name = alias.as_ref().map(|a| fold(&a.name));
                let (rel, mut cols) = self.relation(&name_, alias_name.as_deref(), locks, name.span())?;
                rename_columns(&mut cols, alias.as_ref())?;
                Ok(FromItem { rel, cols, tables: vec![alias_name.unwrap_or(name_.name)] })
            }
            ast::TableFactor::Table { name, alias, args: Some(args), with_ordinality, .. } => {
                let args = args.args.iter().map(argument).collect::<Result<Vec<_>>>()?;
                self.table_function(&function_name(name)?, &args, alias.as_ref(), *with_ordinality, locks)
            }
            ast::TableFactor::Function { name, args, alias, with_ordinality, .. } => {
                let args = args.iter().map(argument).collect::<Result<Vec<_>>>()?;
                self.table_function(&function_name(name)?, &args, alias.as_ref(), *with_ordinality, locks)
            }
            ast::TableFactor::UNNEST { alias, array_exprs, with_ordinality, .. } => {
                let args: Vec<&Ast> = array_exprs.iter().collect();
                self.table_function("unnest", &args, alias.as_ref(), *with_ordinality, locks)
            }
            ast::TableFactor::Derived { lateral, subquery, alias, .. } => {
                let hidden = if *lateral { None } else { self.scopes.pop() };
                let bound = self.query(subquery);
                self.scopes.extend(hidden);
                let (mut rel, out) = bound?;
                let table = alias.as_ref().map_or_else(String::new, |a| fold(&a.name));
                match locking_of(locks, &table) {
                    Locking::None => {}
                    locking => locks::lock_tables(&mut rel, locking)?,
                }
                let mut cols = scope_cols(&table, out);
                rename_columns(&mut cols, alias.as_ref())?;
                let tables = if table.is_empty() { Vec::new() } else { vec![table] };
                Ok(FromItem { rel, cols, tables })
            }
            ast::TableFactor::NestedJoin { table_with_joins, alias } => {
                let FromItem { rel, mut cols, tables } = self.joined(table_with_joins, locks)?;
                let Some(a) = alias else { return Ok(FromItem { rel, cols, tables }) };
                let name = fold(&a.name);
                cols.retain(|c| !c.qualified_only);
                cols.iter_mut().for_each(|c| c.table = name.clone());
                rename_columns(&mut cols, alias.as_ref())?;
                Ok(FromItem { rel, cols, tables: vec![name] })
            }
            ast::TableFactor::Table { .. } => Err(Error::unsupported("TABLESAMPLE is not supported")),
            other => Err(Error::unsupported(format!("this FROM item is not supported: {other}"))),
        }
    }

    /// A named relation: a common table expression, a table, a view or a system table.
    pub(crate) fn relation(
        &mut self,
        name: &Name,
        alias: Option<&str>,
        locks: &Locks,
        span: sqlparser::tokenizer::Span,
    ) -> Result<(Rel, Vec<ScopeCol>)> {
        let shown = alias.unwrap_or(&name.name).to_string();
        if name.schema.is_none()
            && let Some(cte) = self.ctes.iter().rev().find(|c| c.name == name.name).cloned()
        {
            self.refuse_lock(locks, &shown, "a WITH query")?;
            let base = self.fresh_many(cte.cols.len());
            let ids: Vec<ColId> = (0..cte.cols.len() as u32).map(|i| base + i).collect();
            let out = cte.cols.into_iter().zip(&ids).map(|((name, ty), id)| OutCol { id: *id, name, ty, origin: None }).collect();
            let rel = match cte.kind {
                CteKind::Bound(cte) => Rel::Cte { cte, cols: ids },
                CteKind::Work(id) => Rel::WorkTable { id, cols: ids },
            };
            return Ok((rel, scope_cols(&shown, out)));
        }
        let found = self.relation_named(name).map_err(|e| self.at(e, span))?;
        self.descriptors.extend(found.descriptor());
        // Who locks rows is about to change them.
        let locked = match locking_of(locks, &shown) {
            Locking::None => Privileges::NONE,
            _ => Privileges::UPDATE,
        };
        match found {
            Relation::Table(t) => {
                self.need(t.id, Privileges::SELECT.with(locked));
                Ok(self.table(t, &shown, locking_of(locks, &shown)))
            }
            Relation::View(v) => {
                self.need(v.id, Privileges::SELECT.with(locked));
                let (mut rel, cols) = self.view(&v, &shown, locked)?;
                match locking_of(locks, &shown) {
                    Locking::None => {}
                    locking => locks::lock_tables(&mut rel, locking)?,
                }
                Ok((rel, cols))
            }
            Relation::System(t) => {
                if t.is_secret() {
                    self.need_of(NeedOn::Secrets(t), Privileges::SELECT);
                }
                let schema = Some(t.schema.to_string());
                Ok(self.computed(Computed::System(t), &shown, schema))
            }
            Relation::Sequence(s) => {
                self.need(s.id, Privileges::SELECT.with(locked));
                if locking_of(locks, &shown) != Locking::None {
                    let message = format!("cannot lock rows in sequence \"{}\"", s.name);
                    return Err(Error::sql("42809", message));
                }
                let schema = self.ctx.catalog.schema_by_id(s.schema).map(|s| s.name.clone());
                Ok(self.computed(Computed::Sequence(s), &shown, schema))
            }
            Relation::Index(..) => Err(self.at(Error::sql("42809", format!("\"{name}\" is an index")), span)),
        }
    }

    fn computed(&mut self, of: Computed, alias: &str, schema: Option<String>) -> (Rel, Vec<ScopeCol>) {
        let columns = of.columns();
        let base = self.fresh_many(columns.len());
        let col = |(i, (name, ty)): (usize, &(&str, Type))| ScopeCol {
            table: alias.to_string(),
            schema: schema.clone(),
            name: name.to_string(),
            id: base + i as u32,
            ty: ty.clone(),
            qualified_only: false,
            hidden: false,
            origin: None,
            estimate: None,
        };
        let cols = columns.iter().enumerate().map(col).collect();
        (Rel::Computed { of, base }, cols)
    }

    /// `[SHOW …]`, which the parser makes a name in brackets.
    fn shown(&mut self, shown: &ast::Ident, alias: Option<&ast::TableAlias>) -> Result<FromItem> {
        let table = alias.map_or_else(|| shown.value.clone(), |a| fold(&a.name));
        if let Some(of) = crate::parse::show_escrow(&shown.value).map_err(|e| self.at(e, shown.span))? {
            let (rel, mut cols) = self.shown_escrow(&of, shown, &table)?;
            rename_columns(&mut cols, alias)?;
            return Ok(FromItem { rel, cols, tables: vec![table] });
        }
        let statement = crate::parse::parse_one_statement(&shown.value).map_err(|e| self.at(e, shown.span))?;
        let show = Show::of(&statement.kind)
            .ok_or_else(|| self.at(Error::unsupported(format!("[{}] is not supported", shown.value)), shown.span))?;
        let (rel, mut cols) = self.computed(Computed::Show(Arc::new(show)), &table, None);
        rename_columns(&mut cols, alias)?;
        Ok(FromItem { rel, cols, tables: vec![table] })
    }

    pub(crate) fn table(&mut self, t: TableRef, alias: &str, locking: Locking) -> (Rel, Vec<ScopeCol>) {
        self.descriptors.insert(t.id);
        self.groups.extend(t.groups());
        self.groups.extend(t.with_shares().flat_map(|e| e.sites.iter().copied()));
        let base = self.fresh_many(width(&t) as usize);
        let mut cols = self.scope_of(&t, t.live_columns(), alias, base);
        for (escrow, estimate) in t.escrow.iter().zip(base + t.columns.len() as u32..) {
            cols.iter_mut().filter(|c| c.id == base + escrow.ordinal).for_each(|c| c.estimate = Some(estimate));
        }
        if let Some(statistics) = self.ctx.catalog.statistics_of(t.id) {
            let is_far = self.is_far(&t);
            self.known.insert(base, t.clone(), statistics.clone(), is_far);
        }
        (Rel::Table { table: t, base, alias: alias.to_string(), locking, filters: Vec::new() }, cols)
    }

    /// Whether reading rows of a table may take a message to another region.
    fn is_far(&self, t: &TableRef) -> bool {
        let home = |g: GroupId| match self.ctx.catalog.descriptors.get(&DescriptorId(g.0)).map(|d| &**d) {
            Some(Descriptor::Group(group)) => group.kind != GroupKind::Global && group.home != *self.ctx.eval.gateway_region,
            _ => false,
        };
        t.groups().any(home)
    }

    /// Columns of a table as expressions see them; ordinal 0 is `base`.
    pub(crate) fn scope_of<'t>(
        &self,
        t: &'t TableRef,
        columns: impl Iterator<Item = (u32, &'t Column)>,
        alias: &str,
        base: ColId,
    ) -> Vec<ScopeCol> {
        let schema = self.ctx.catalog.schema_by_id(t.schema).map(|s| s.name.clone());
        let column = |(o, c): (u32, &Column)| ScopeCol {
            table: alias.to_string(),
            schema: schema.clone(),
            name: c.name.clone(),
            id: base + o,
            ty: c.ty.clone(),
            qualified_only: false,
            hidden: c.is_hidden,
            origin: Some((t.id, o)),
            estimate: None,
        };
        columns.map(column).collect()
    }

    fn view(&mut self, v: &ViewRef, alias: &str, locked: Privileges) -> Result<(Rel, Vec<ScopeCol>)> {
        let statement = crate::parse::parse_one_statement(&v.query)?;
        let crate::parse::Kind::Sql(sql) = &statement.kind else {
            return Err(Error::internal(format!("the stored query of view \"{}\" is damaged", v.name)));
        };
        let ast::Statement::Query(q) = &**sql else {
            return Err(Error::internal(format!("the stored query of view \"{}\" is damaged", v.name)));
        };
        // A view sees nothing of the query that uses it.
        let scopes = std::mem::take(&mut self.scopes);
        let ctes = std::mem::take(&mut self.ctes);
        // Its owner needs what it reads, and what is done with the rows of a view around it.
        let locked = self.behalf.map_or(locked, |outer| locked.with(outer.locked));
        let outer = self.behalf.replace(Behalf { view: v.id, locked });
        let bound = self.query(q);
        self.behalf = outer;
        (self.scopes, self.ctes) = (scopes, ctes);
        let (rel, mut out) = bound?;
        for (c, (name, _)) in out.iter_mut().zip(&v.columns) {
            c.name.clone_from(name);
            c.origin = None;
        }
        Ok((rel, scope_cols(alias, out)))
    }

    fn table_function(
        &mut self,
        name: &str,
        args: &[&Ast],
        alias: Option<&ast::TableAlias>,
        ordinality: bool,
        locks: &Locks,
    ) -> Result<FromItem> {
        let table = alias.map_or_else(|| name.to_string(), |a| fold(&a.name));
        self.refuse_lock(locks, &table, "a function")?;
        let args: Vec<Typed> = args.iter().map(|a| self.expr(a)).collect::<Result<_>>()?;
        let (rel, columns, cols) = if FUNCTIONS.kind_of(name) == Some(FunctionKind::Set) {
            let (f, args) = self.resolve_set(name, args)?;
            let mut columns = f.columns.clone();
            if ordinality {
                columns.push(("ordinality".into(), Type::Int8));
            }
            let base = self.fresh_many(columns.len());
            let cols: Vec<ColId> = (0..columns.len() as u32).map(|i| base + i).collect();
            (Rel::Function { calls: vec![(f, args)], cols: cols.clone(), ordinality }, columns, cols)
        } else {
            // A scalar function is a table of one row.
            let t = self.call_typed(name, args)?;
            let id = self.fresh();
            (Rel::Values { cols: vec![id], rows: vec![vec![t.expr]] }, vec![(name.to_string(), t.ty)], vec![id])
        };
        let single = columns.len() == 1 + ordinality as usize;
        let out = columns.into_iter().zip(cols).enumerate().map(|(i, ((n, ty), id))| {
            // The column of a scalar set takes the alias's name.
            let name = if single && i == 0 && (alias.is_some() || n == name) { table.clone() } else { n };
            OutCol { id, name, ty, origin: None }
        });
        let mut cols = scope_cols(&table, out.collect());
        rename_columns(&mut cols, alias)?;
        Ok(FromItem { rel, cols, tables: vec![table] })
    }
}

pub(crate) fn scope_cols(table: &str, out: Vec<OutCol>) -> Vec<ScopeCol> {
    let col = |c: OutCol| ScopeCol {
        table: table.to_string(),
        schema: None,
        name: c.name,
        id: c.id,
        ty: c.ty,
        qualified_only: false,
        hidden: false,
        origin: c.origin,
        estimate: None,
    };
    out.into_iter().map(col).collect()
}

fn rename_columns(cols: &mut [ScopeCol], alias: Option<&ast::TableAlias>) -> Result<()> {
    let Some(alias) = alias else { return Ok(()) };
    let visible = cols.iter_mut().filter(|c| !c.hidden);
    let mut left = alias.columns.len();
    for (c, new) in visible.zip(&alias.columns) {
        c.name = fold(&new.name);
        left -= 1;
    }
    if left > 0 {
        let (have, want) = (alias.columns.len() - left, alias.columns.len());
        let message = format!("table \"{}\" has {have} columns available but {want} columns specified", fold(&alias.name));
        return Err(Error::sql("42P10", message));
    }
    Ok(())
}

fn pick<'c>(cols: &'c [ScopeCol], name: &str, side: &str) -> Result<&'c ScopeCol> {
    let mut found = cols.iter().filter(|c| c.name == name && !c.qualified_only);
    match (found.next(), found.next()) {
        (Some(c), None) => Ok(c),
        (Some(_), Some(_)) => {
            Err(Error::sql("42702", format!("common column name \"{name}\" appears more than once in {side} table")))
        }
        _ => Err(Error::sql("42703", format!("column \"{name}\" specified in USING clause does not exist in {side} table"))),
    }
}
