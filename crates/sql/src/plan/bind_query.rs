//! Binds queries.

use super::bind_call::SETS_HINT;
use super::bind_call::sort_key;
use super::bind_from::FromItem;
use super::bind_with::{read_before, reads_what_is_changed};
use super::binder::OutCol;
use super::binder::{Binder, Scope, ScopeCol, Typed};
use super::locks::{self, Locks, clause, not_united};
use super::rel::*;
use super::syntax::unnest;
use crate::catalog::names::Name;
use crate::parse::fold;
use crate::plan::expr::*;
use crate::types::cast::select_common_type;
use crate::types::{CastContext, Type};
use meridian_base::{DescriptorId, Error, Result};
use sqlparser::ast::{self, Expr as Ast, Spanned};
use std::collections::BTreeSet;

impl Binder<'_> {
    /// A subquery in an expression: names of the enclosing scopes are in sight.
    pub(crate) fn subquery(&mut self, q: &ast::Query) -> Result<(Rel, Vec<OutCol>)> {
        self.query(q)
    }

    /// A query. The relation's layout is exactly the result's columns.
    pub(crate) fn query(&mut self, q: &ast::Query) -> Result<(Rel, Vec<OutCol>)> {
        self.deeper(|b| {
            let ctes = b.ctes.len();
            let r = b.query_inner(q);
            b.ctes.truncate(ctes);
            r
        })
    }

    fn query_inner(&mut self, q: &ast::Query) -> Result<(Rel, Vec<OutCol>)> {
        let expected = std::mem::take(&mut self.expected);
        let (changing, reading) = self.with(q.with.as_ref())?;
        if q.fetch.as_ref().is_some_and(|f| f.with_ties || f.percent) {
            return Err(Error::unsupported("FETCH … WITH TIES is not supported"));
        }
        said_once(q)?;
        let locks = self.locks(&q.locks)?;
        let empty = Vec::new();
        let order = match &q.order_by {
            None => &empty,
            Some(ast::OrderBy { kind: ast::OrderByKind::Expressions(keys), .. }) => keys,
            Some(_) => return Err(Error::sql("42601", "syntax error at or near \"ALL\"")),
        };
        self.expected = expected;
        let (mut rel, cols) = match &*q.body {
            ast::SetExpr::Select(s) => self.select(s, order, &locks)?,
            body => {
                let (rel, cols) = match (body, locks.first()) {
                    (_, None) => self.set_expr(body)?,
                    // They are those of the query in parentheses.
                    (ast::SetExpr::Query(inner), _) => {
                        let locks = inner.locks.iter().chain(&q.locks).cloned().collect();
                        self.query(&ast::Query { locks, ..(**inner).clone() })?
                    }
                    (ast::SetExpr::Table(t), _) => {
                        let (rel, cols) = self.whole_table(t, &locks, body.span())?;
                        (locks::lock_rows(rel), cols)
                    }
                    (ast::SetExpr::SetOperation { .. }, Some(lock)) => return Err(not_united(lock.locking)),
                    (_, Some(lock)) => {
                        return Err(Error::unsupported(format!("{} cannot be applied to VALUES", clause(lock.locking))));
                    }
                };
                let keys = order.iter().map(|k| self.output_key(k, &cols)).collect::<Result<Vec<_>>>()?;
                let rel = if keys.is_empty() { rel } else { Rel::Sort { input: Box::new(rel), keys } };
                (locks::above_sort(rel), cols)
            }
        };
        let (limit, offset) = self.limits(q)?;
        if limit.is_some() || offset.is_some() {
            locks::limit(&mut rel);
            rel = Rel::Limit { input: Box::new(rel), limit, offset };
        }
        let layout: Vec<ColId> = cols.iter().map(|c| c.id).collect();
        if rel.cols() != layout {
            rel = Rel::Project { input: Box::new(rel), exprs: layout.iter().map(|c| (*c, Expr::Column(*c))).collect() };
        }
        if !changing.is_empty() {
            if self.depth > 1 {
                return Err(Error::unsupported("WITH clause containing a data-modifying statement must be at the top level"));
            }
            let mut ctes = read_before(&reading, &changing, &rel);
            reads_what_is_changed(&ctes, &changing, &rel)?;
            ctes.extend(changing);
            rel = Rel::First { ctes, input: Box::new(rel) };
        }
        Ok((rel, cols))
    }

    fn limits(&mut self, q: &ast::Query) -> Result<(Option<Expr>, Option<Expr>)> {
        let (mut limit, mut offset) = match &q.limit_clause {
            None => (None, None),
            Some(ast::LimitClause::LimitOffset { limit, offset, .. }) => (limit.as_ref(), offset.as_ref().map(|o| &o.value)),
            Some(ast::LimitClause::OffsetCommaLimit { offset, limit }) => (Some(limit), Some(offset)),
        };
        let one = Ast::Value(ast::Value::Number("1".into(), false).into());
        if let Some(f) = &q.fetch {
            limit = Some(f.quantity.as_ref().unwrap_or(&one));
        }
        // Nothing of the query itself is in sight of its limit.
        let bind = |e: &mut Option<&Ast>, b: &mut Self| match e.take() {
            None => Ok(None),
            Some(Ast::Value(ast::ValueWithSpan { value: ast::Value::Null, .. })) => Ok(None),
            Some(e) => b.expr_as(e, &Type::Int8, CastContext::Assignment).map(Some),
        };
        Ok((bind(&mut limit, self)?, bind(&mut offset, self)?))
    }

    pub(super) fn set_expr(&mut self, e: &ast::SetExpr) -> Result<(Rel, Vec<OutCol>)> {
        self.deeper(|b| match e {
            ast::SetExpr::Select(s) => b.select(s, &[], &Vec::new()),
            ast::SetExpr::Query(q) => b.query(q),
            ast::SetExpr::Values(v) => b.values(v),
            ast::SetExpr::SetOperation { left, op, set_quantifier, right } => b.set_operation(left, *op, *set_quantifier, right),
            ast::SetExpr::Table(t) => b.whole_table(t, &Vec::new(), e.span()),
            ast::SetExpr::Insert(s) | ast::SetExpr::Update(s) | ast::SetExpr::Delete(s) => b.dml(s),
            ast::SetExpr::Merge(_) => Err(Error::unsupported("MERGE is not supported")),
        })
    }

    /// `TABLE name`.
    fn whole_table(&mut self, t: &ast::Table, locks: &Locks, span: sqlparser::tokenizer::Span) -> Result<(Rel, Vec<OutCol>)> {
        let parts = t.schema_name.iter().chain(&t.table_name).map(|n| ast::ObjectNamePart::Identifier(ast::Ident::new(n)));
        let name = Name::from_ast(&ast::ObjectName(parts.collect()))?;
        self.refuse_other_locks(locks, std::slice::from_ref(&name.name))?;
        let (rel, cols) = self.relation(&name, None, locks, span)?;
        let out = cols.into_iter().filter(|c| !c.hidden);
        Ok((rel, out.map(|c| OutCol { id: c.id, name: c.name, ty: c.ty, origin: c.origin }).collect()))
    }

    fn set_operation(
        &mut self,
        left: &ast::SetExpr,
        op: ast::SetOperator,
        quantifier: ast::SetQuantifier,
        right: &ast::SetExpr,
    ) -> Result<(Rel, Vec<OutCol>)> {
        let (op, name) = match op {
            ast::SetOperator::Union => (SetOp::Union, "UNION"),
            ast::SetOperator::Intersect => (SetOp::Intersect, "INTERSECT"),
            ast::SetOperator::Except | ast::SetOperator::Minus => (SetOp::Except, "EXCEPT"),
        };
        let all = match quantifier {
            ast::SetQuantifier::All => true,
            ast::SetQuantifier::Distinct | ast::SetQuantifier::None => false,
            _ => return Err(Error::sql("42601", "syntax error at or near \"BY\"")),
        };
        for side in [left, right] {
            if let ast::SetExpr::Query(q) = side
                && let Some(lock) = self.locks(&q.locks)?.first()
            {
                return Err(not_united(lock.locking));
            }
        }
        let expected = self.expected.clone();
        let (l, lcols) = self.set_expr(left)?;
        self.expected = if expected.is_empty() { lcols.iter().map(|c| c.ty.clone()).collect() } else { expected };
        let (r, rcols) = self.set_expr(right)?;
        self.expected.clear();
        self.unite(op, name, all, (l, lcols), (r, rcols))
    }

    fn unite(
        &mut self,
        op: SetOp,
        name: &str,
        all: bool,
        l: (Rel, Vec<OutCol>),
        r: (Rel, Vec<OutCol>),
    ) -> Result<(Rel, Vec<OutCol>)> {
        let ((left, lcols), (right, rcols)) = (l, r);
        if lcols.len() != rcols.len() {
            return Err(Error::sql("42601", format!("each {name} query must have the same number of columns")));
        }
        let mut types = Vec::new();
        for (a, b) in lcols.iter().zip(&rcols) {
            let own = |rel: &Rel, c: &OutCol| literal_of(rel, c, &self.literals).map_or_else(|| c.ty.clone(), |l| l.ty);
            types.push(select_common_type(&[own(&left, a), own(&right, b)], name)?);
        }
        // Rows are compared as they are, unless all of both sides are wanted. Blanks at the end of
        // a `bpchar` do not count, and it has none as a text.
        let compares = !all || op != SetOp::Union;
        let compared = |ty: &Type| if compares && *ty == Type::Char(0) { Type::Text } else { ty.clone() };
        let compared: Vec<Type> = types.iter().map(compared).collect();
        let left = self.cast_cols(left, &lcols, &compared)?;
        let right = self.cast_cols(right, &rcols, &compared)?;
        let base = self.fresh_many(types.len());
        let cols: Vec<ColId> = (0..types.len() as u32).map(|i| base + i).collect();
        let out = lcols.into_iter().zip(types).zip(&cols).map(|((c, ty), id)| OutCol { id: *id, name: c.name, ty, origin: None });
        let out = out.collect();
        Ok((Rel::SetOp { op, all, left: Box::new(left), right: Box::new(right), cols }, out))
    }
    /// Exactly these columns, converted.
    pub(crate) fn cast_cols(&mut self, rel: Rel, cols: &[OutCol], to: &[Type]) -> Result<Rel> {
        let mut exprs = Vec::new();
        for (c, ty) in cols.iter().zip(to) {
            let value = literal_of(&rel, c, &self.literals).unwrap_or_else(|| Typed::new(Expr::Column(c.id), c.ty.clone()));
            let e = self.coerce(value, ty, CastContext::Implicit)?;
            exprs.push((self.fresh(), e));
        }
        Ok(Rel::Project { input: Box::new(rel), exprs })
    }

    fn values(&mut self, v: &ast::Values) -> Result<(Rel, Vec<OutCol>)> {
        self.expected.clear();
        let rows: Vec<Vec<Typed>> =
            v.rows.iter().map(|r| r.iter().map(|e| self.expr(e)).collect::<Result<_>>()).collect::<Result<_>>()?;
        let width = rows.first().map_or(0, Vec::len);
        if rows.iter().any(|r| r.len() != width) {
            return Err(Error::sql("42601", "VALUES lists must all be the same length"));
        }
        let mut types = Vec::new();
        for i in 0..width {
            let column: Vec<Type> = rows.iter().map(|r| r[i].ty.clone()).collect();
            types.push(select_common_type(&column, "VALUES")?);
        }
        let mut out_rows = Vec::with_capacity(rows.len());
        for row in rows {
            let row = row.into_iter().zip(&types).map(|(e, ty)| self.coerce(e, ty, CastContext::Implicit));
            out_rows.push(row.collect::<Result<Vec<_>>>()?);
        }
        let base = self.fresh_many(width);
        let cols: Vec<ColId> = (0..width as u32).map(|i| base + i).collect();
        let out = types.into_iter().enumerate();
        let out = out.map(|(i, ty)| OutCol { id: base + i as u32, name: format!("column{}", i + 1), ty, origin: None }).collect();
        Ok((Rel::Values { cols, rows: out_rows }, out))
    }

    fn select(&mut self, s: &ast::Select, order: &[ast::OrderByExpr], locks: &Locks) -> Result<(Rel, Vec<OutCol>)> {
        if s.into.is_some() {
            return Err(Error::unsupported("SELECT INTO is not supported").hint("Use CREATE TABLE and INSERT … SELECT."));
        }
        let expected = std::mem::take(&mut self.expected);
        let FromItem { rel: from, cols, tables } = self.from(&s.from, locks)?;
        self.refuse_other_locks(locks, &tables)?;
        let mut scope = Scope { cols, tables, ..Scope::default() };
        for w in &s.named_window {
            let spec = match &w.1 {
                ast::NamedWindowExpr::WindowSpec(spec) => spec.clone(),
                ast::NamedWindowExpr::NamedWindow(_) => return Err(Error::unsupported("WINDOW a AS b is not supported")),
            };
            let name = fold(&w.0);
            if scope.named_windows.iter().any(|(other, _)| *other == name) {
                return Err(Error::sql("42P20", format!("window \"{name}\" is already defined")));
            }
            scope.named_windows.push((name, spec));
        }
        let from_cols: BTreeSet<ColId> = scope.cols.iter().flat_map(|c| [Some(c.id), c.estimate]).flatten().collect();
        let ((rel, out), _) = self.in_scope(scope, |b| b.select_body(s, order, from, &from_cols, locks, &expected))?;
        Ok((if locks.is_empty() { rel } else { locks::lock_rows(rel) }, out))
    }

    fn select_body(
        &mut self,
        s: &ast::Select,
        order: &[ast::OrderByExpr],
        from: Rel,
        from_cols: &BTreeSet<ColId>,
        locks: &Locks,
        expected: &[Type],
    ) -> Result<(Rel, Vec<OutCol>)> {
        self.scope().no_aggregates = Some("WHERE");
        let mut rel = from;
        filled(&rel, &mut self.scope().filled);
        if let Some(e) = &s.selection {
            let cond = self.condition(e, "WHERE")?;
            let mut conds = Vec::new();
            cond.conjuncts(&mut conds);
            rel = rel.filtered(conds);
        }
        self.scope().no_aggregates = None;
        (self.scope().allow_sets, self.scope().allow_windows) = (true, true);
        let mut items = self.select_items(&s.projection, expected)?;
        (self.scope().allow_sets, self.scope().allow_windows) = (false, false);
        // GROUP BY may name output columns, so the select list is bound first.
        self.scope().no_aggregates = Some("GROUP BY");
        let (mut keys, grouped) = self.group_keys(&s.group_by, &items)?;
        self.scope().no_aggregates = None;
        let mut having = s.having.as_ref().map(|e| self.condition(e, "HAVING")).transpose()?;
        self.scope().allow_windows = true;
        let distinct = match &s.distinct {
            Some(ast::Distinct::Distinct) => Some(None),
            Some(ast::Distinct::On(on)) => {
                let on = on.iter().map(|e| self.order_expr(e, &items, "DISTINCT ON")).collect::<Result<Vec<_>>>()?;
                Some(Some(on))
            }
            Some(ast::Distinct::All) | None => None,
        };
        let mut sort = Vec::new();
        for k in order {
            sort.push(sort_key(self.order_expr(&k.expr, &items, "ORDER BY")?, &k.options)?);
        }
        self.scope().allow_windows = false;
        let (aggs, mut windows, mut sets) = {
            let scope = self.scope();
            (std::mem::take(&mut scope.aggs), std::mem::take(&mut scope.windows), std::mem::take(&mut scope.sets))
        };
        let marks = std::mem::take(&mut self.scope().marks);
        for (table, mark) in &marks {
            let own = self.scope().cols.iter().filter(|c| c.table == *table).map(|c| c.id).collect();
            mark_rows(&mut rel, &own, *mark);
        }
        let from_cols: &BTreeSet<ColId> = &from_cols.iter().copied().chain(marks.iter().map(|(_, mark)| *mark)).collect();
        let has_set = |e: &Expr| e.columns().iter().any(|c| sets.iter().any(|(id, _, _)| id == c));
        if keys.iter().any(|(_, e)| has_set(e)) {
            return Err(Error::unsupported("set-returning functions in GROUP BY are not supported").hint(SETS_HINT));
        }
        // PostgreSQL makes the rows of sets that no key of the order needs after DISTINCT ON.
        if !sets.is_empty() && !sort.is_empty() && matches!(distinct, Some(Some(_))) && !sort.iter().any(|k| has_set(&k.expr)) {
            let message = "set-returning functions in the select list of SELECT DISTINCT ON … ORDER BY are not supported";
            return Err(Error::unsupported(message).hint(SETS_HINT));
        }
        let is_grouped = grouped || !aggs.is_empty() || having.is_some();
        if is_grouped {
            if let Some(lock) = locks.first() {
                return Err(locks::not_allowed(lock.locking, clause_of_groups(grouped, having.is_some())));
            }
            let written = self.add_dependent_keys(&mut keys);
            let names = self.scope().cols.clone();
            let check = |e: &mut Expr| regroup(e, &keys, from_cols, &names);
            for (item, _) in &mut items {
                check(&mut item.expr).map_err(|e| self.at(e, item.span))?;
            }
            sort.iter_mut().try_for_each(|k| check(&mut k.expr))?;
            having.iter_mut().try_for_each(&check)?;
            for (_, w, _) in &mut windows {
                w.args.iter_mut().chain(&mut w.partition).chain(w.filter.as_mut()).try_for_each(&check)?;
                w.order.iter_mut().try_for_each(|k| check(&mut k.expr))?;
            }
            sets.iter_mut().flat_map(|(_, _, args)| args).try_for_each(&check)?;
            // Of the keys that were not written, those that nothing asks for would only be read.
            let of_windows = windows.iter().flat_map(|(_, w, _)| w.exprs());
            let of_rows = items.iter().map(|(item, _)| &item.expr).chain(sort.iter().map(|k| &k.expr)).chain(&having);
            let of_sets = sets.iter().flat_map(|(_, _, args)| args);
            let above = of_rows.chain(distinct.iter().flatten().flatten()).chain(of_windows).chain(of_sets);
            retain_used(&mut keys, written, above);
            let aggs = aggs.into_iter().map(|(id, call, _)| (id, call)).collect();
            rel = Rel::Aggregate { input: Box::new(rel), keys, aggs };
            if let Some(h) = having {
                let mut conds = Vec::new();
                h.conjuncts(&mut conds);
                rel = rel.filtered(conds);
            }
        }
        if let Some(lock) = locks.first() {
            let with = match (&distinct, windows.is_empty(), sets.is_empty()) {
                (Some(_), ..) => Some("DISTINCT clause"),
                (None, false, _) => Some("window functions"),
                (None, true, false) => Some("set-returning functions in the target list"),
                (None, true, true) => None,
            };
            if let Some(with) = with {
                return Err(locks::not_allowed(lock.locking, with));
            }
        }
        if !windows.is_empty() {
            rel = Rel::Window { input: Box::new(rel), calls: windows.into_iter().map(|(id, c, _)| (id, c)).collect() };
        }
        if !sets.is_empty() {
            rel = Rel::ProjectSet { input: Box::new(rel), calls: sets };
        }
        self.output(rel, items, sort, distinct)
    }

    /// Projects the select list, and orders by what need not be in it.
    fn output(
        &mut self,
        rel: Rel,
        items: Vec<(Typed, String)>,
        mut sort: Vec<SortKey>,
        distinct: Option<Option<Vec<Expr>>>,
    ) -> Result<(Rel, Vec<OutCol>)> {
        let (mut exprs, mut out): (Vec<(ColId, Expr)>, Vec<OutCol>) = (Vec::new(), Vec::new());
        let own: BTreeSet<ColId> = rel.cols().into_iter().collect();
        for (item, name) in items {
            let origin = match &item.expr {
                Expr::Column(c) => self.scopes.last().and_then(|s| s.cols.iter().find(|x| x.id == *c)).and_then(|x| x.origin),
                _ => None,
            };
            // An unchanged column keeps its name, once; one of an outer query is another column
            // here, which an outer join may fill with NULL.
            let id = match &item.expr {
                Expr::Column(c) if own.contains(c) && !exprs.iter().any(|(id, _)| id == c) => *c,
                _ => self.fresh(),
            };
            if item.is_literal {
                self.literals.insert(id);
            }
            exprs.push((id, item.expr));
            out.push(OutCol { id, name, ty: item.ty, origin });
        }
        let find = |e: &Expr, exprs: &[(ColId, Expr)]| exprs.iter().find(|(_, x)| x == e).map(|(id, _)| Expr::Column(*id));
        let visible = exprs.len();
        let mut on = None;
        for e in distinct.iter().flatten().flatten() {
            let c = find(e, &exprs).unwrap_or_else(|| {
                let id = self.fresh();
                exprs.push((id, e.clone()));
                Expr::Column(id)
            });
            on.get_or_insert_with(Vec::new).push(c);
        }
        for k in &mut sort {
            k.expr = match find(&k.expr, &exprs) {
                Some(c) => c,
                None if matches!(distinct, Some(None)) => {
                    return Err(Error::sql("42P10", "for SELECT DISTINCT, ORDER BY expressions must appear in select list"));
                }
                None => {
                    let id = self.fresh();
                    exprs.push((id, std::mem::replace(&mut k.expr, Expr::NULL)));
                    Expr::Column(id)
                }
            };
        }
        let mut rel = Rel::Project { input: Box::new(rel), exprs };
        debug_assert!(visible <= rel.cols().len());
        match distinct {
            Some(None) => rel = Rel::Distinct { input: Box::new(rel), on: None },
            Some(Some(_)) => {
                let on = on.unwrap_or_default();
                // The rows of a group must meet: sort by the ON expressions first, unless ORDER BY
                // does.
                let leading: Vec<&Expr> = sort.iter().take(on.len()).map(|k| &k.expr).collect();
                let leads = |e: &Expr| leading.contains(&e);
                let are_those = leading.iter().all(|l| on.contains(l)) && on.iter().all(leads);
                if !sort.is_empty() && !are_those && sort.len() >= on.len() {
                    return Err(Error::sql("42P10", "SELECT DISTINCT ON expressions must match initial ORDER BY expressions"));
                }
                let missing = on.iter().filter(|e| !leads(e));
                let extra = missing.map(|e| SortKey { expr: e.clone(), descending: false, nulls_first: false });
                let extra: Vec<SortKey> = extra.collect();
                sort.extend(extra);
                rel = Rel::Distinct {
                    input: Box::new(Rel::Sort { input: Box::new(rel), keys: std::mem::take(&mut sort) }),
                    on: Some(on),
                };
            }
            None => {}
        }
        if !sort.is_empty() {
            rel = Rel::Sort { input: Box::new(rel), keys: sort };
        }
        Ok((rel, out))
    }

    fn item(&mut self, e: &Ast, expected: Option<&Type>) -> Result<Typed> {
        let t = self.expr(e)?;
        match (expected, &t.expr) {
            (Some(ty), Expr::Param(_)) if t.ty == Type::Unknown => {
                let (span, ty) = (t.span, ty.without_modifier_for_param());
                Ok(Typed { expr: self.coerce(t, &ty, CastContext::Implicit)?, ty, span, is_literal: false })
            }
            _ => self.settle(t),
        }
    }

    /// The select list (or `RETURNING`), wildcards expanded: expressions with the names of their
    /// columns.
    pub(crate) fn select_items(&mut self, items: &[ast::SelectItem], expected: &[Type]) -> Result<Vec<(Typed, String)>> {
        let mut out = Vec::new();
        for item in items {
            match item {
                ast::SelectItem::UnnamedExpr(e) => {
                    let t = self.item(e, expected.get(out.len()))?;
                    out.push((t, output_name(e)));
                }
                ast::SelectItem::ExprWithAlias { expr, alias } => {
                    let t = self.item(expr, expected.get(out.len()))?;
                    out.push((t, fold(alias)));
                }
                ast::SelectItem::Wildcard(_) => {
                    let scope = self.scope();
                    if scope.tables.is_empty() {
                        return Err(Error::sql("42601", "SELECT * with no tables specified is not valid"));
                    }
                    let cols = scope.cols.iter().filter(|c| !c.hidden && !c.qualified_only);
                    out.extend(cols.map(|c| (Typed::new(Expr::Column(c.id), c.ty.clone()), c.name.clone())));
                }
                ast::SelectItem::QualifiedWildcard(ast::SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                    let name = Name::from_ast(name)?.name;
                    let Some(scope) = self.scopes.iter().rev().find(|s| s.tables.contains(&name)) else {
                        return Err(Error::sql("42P01", format!("missing FROM-clause entry for table \"{name}\"")));
                    };
                    let cols = scope.cols.iter().filter(|c| c.table == name && !c.hidden);
                    out.extend(cols.map(|c| (Typed::new(Expr::Column(c.id), c.ty.clone()), c.name.clone())));
                }
                other => return Err(Error::unsupported(format!("select item not supported: {other}"))),
            }
        }
        if out.len() > 1664 {
            return Err(Error::sql("54011", "target lists can have at most 1664 entries"));
        }
        Ok(out)
    }

    fn group_keys(&mut self, group: &ast::GroupByExpr, items: &[(Typed, String)]) -> Result<(Vec<(ColId, Expr)>, bool)> {
        let ast::GroupByExpr::Expressions(exprs, modifiers) = group else {
            return Err(Error::unsupported("GROUP BY ALL is not supported"));
        };
        if !modifiers.is_empty() {
            return Err(Error::unsupported("GROUP BY … WITH is not supported"));
        }
        let mut keys: Vec<(ColId, Expr)> = Vec::new();
        for e in exprs {
            if matches!(e, Ast::GroupingSets(_) | Ast::Cube(_) | Ast::Rollup(_)) {
                return Err(Error::unsupported("GROUPING SETS, CUBE and ROLLUP are not supported"));
            }
            let list = match unnest(e) {
                Ast::Tuple(list) => list.iter().collect(),
                e => vec![e],
            };
            for e in list {
                let expr = self.order_expr(e, items, "GROUP BY")?;
                self.refuse_grouped_results(&expr)?;
                let own = self.scopes.last().expect("a select has a scope");
                let id = match &expr {
                    Expr::Column(c) if own.cols.iter().any(|own| own.id == *c) => *c,
                    _ => self.fresh(),
                };
                if !keys.iter().any(|k| k.0 == id) {
                    keys.push((id, expr));
                }
            }
        }
        Ok((keys, !exprs.is_empty()))
    }

    /// An output column that `GROUP BY` names is computed before there are groups. The error points
    /// at the call in that column, as PostgreSQL's does.
    fn refuse_grouped_results(&self, key: &Expr) -> Result<()> {
        let scope = self.scopes.last().expect("a select has a scope");
        let used = key.columns();
        let Some((id, span)) = scope.calls_at.iter().find(|(id, _)| used.contains(id)) else { return Ok(()) };
        let error = match scope.aggs.iter().any(|(agg, ..)| agg == id) {
            true => Error::sql("42803", "aggregate functions are not allowed in GROUP BY"),
            false => Error::sql("42P20", "window functions are not allowed in GROUP BY"),
        };
        Err(self.at(error, *span))
    }

    /// Columns of a table whose primary key is grouped by depend on it: they are keys too. How many
    /// keys there were before.
    fn add_dependent_keys(&mut self, keys: &mut Vec<(ColId, Expr)>) -> usize {
        let scope = self.scopes.last().expect("a select has a scope");
        let mut tables: Vec<(&str, DescriptorId)> = Vec::new();
        for c in &scope.cols {
            if let Some((id, _)) = c.origin
                && !tables.contains(&(&c.table, id))
            {
                tables.push((&c.table, id));
            }
        }
        let mut more = Vec::new();
        for (alias, id) in tables {
            let Some(table) = self.ctx.catalog.table_by_id(id) else { continue };
            let of = |ordinal: u32| scope.cols.iter().find(|c| c.table == alias && c.origin == Some((id, ordinal)));
            let covered =
                |ordinal: u32| of(ordinal).is_some_and(|c| keys.iter().any(|k| matches!(k.1, Expr::Column(k) if k == c.id)));
            if table.primary().columns.iter().all(|c| covered(c.ordinal)) {
                let cols = scope.cols.iter().filter(|c| c.table == alias && !keys.iter().any(|k| k.0 == c.id));
                more.extend(cols.map(|c| (c.id, Expr::Column(c.id))));
            }
        }
        let written = keys.len();
        keys.extend(more);
        written
    }

    /// An expression of `ORDER BY`, `GROUP BY` or `DISTINCT ON`: a position, an output column's
    /// name, or any expression. In `GROUP BY` an input column wins over an output column.
    fn order_expr(&mut self, e: &Ast, items: &[(Typed, String)], clause: &str) -> Result<Expr> {
        match unnest(e) {
            Ast::Value(ast::ValueWithSpan { value: ast::Value::Number(n, _), span }) => {
                let item = n.parse::<usize>().ok().and_then(|n| items.get(n.checked_sub(1)?));
                let missing = || Error::sql("42P10", format!("{clause} position {n} is not in select list"));
                return item.map(|i| i.0.expr.clone()).ok_or_else(|| self.at(missing(), *span));
            }
            Ast::Value(ast::ValueWithSpan { value: ast::Value::SingleQuotedString(_) | ast::Value::Null, span }) => {
                return Err(self.at(Error::sql("42601", format!("non-integer constant in {clause}")), *span));
            }
            Ast::Identifier(i) => {
                let name = fold(i);
                let is_input = clause == "GROUP BY" && self.scopes.last().is_some_and(|s| s.cols.iter().any(|c| c.name == name));
                let mut named = items.iter().filter(|(_, n)| *n == name);
                if !is_input && let Some((t, _)) = named.next() {
                    if named.any(|(other, _)| other.expr != t.expr) {
                        return Err(self.at(Error::sql("42702", format!("{clause} \"{name}\" is ambiguous")), i.span));
                    }
                    return Ok(t.expr.clone());
                }
            }
            _ => {}
        }
        let t = self.expr(e)?;
        Ok(self.settle(t)?.expr)
    }

    /// A key of `ORDER BY` over a set operation or `VALUES`: only output columns.
    fn output_key(&mut self, k: &ast::OrderByExpr, cols: &[OutCol]) -> Result<SortKey> {
        let found = match unnest(&k.expr) {
            Ast::Value(ast::ValueWithSpan { value: ast::Value::Number(n, _), .. }) => {
                n.parse::<usize>().ok().and_then(|n| cols.get(n.checked_sub(1)?))
            }
            Ast::Identifier(i) => cols.iter().find(|c| c.name == fold(i)),
            _ => {
                return Err(Error::unsupported("invalid UNION/INTERSECT/EXCEPT ORDER BY clause")
                    .detail("Only result column names can be used, not expressions or functions.")
                    .hint("Add the expression/function to every SELECT, or move the UNION into a FROM clause."));
            }
        };
        match found {
            Some(c) => sort_key(Expr::Column(c.id), &k.options),
            None => Err(self.at(Error::sql("42703", format!("column \"{}\" does not exist", k.expr)), k.expr.span())),
        }
    }
}

/// The columns of a FROM clause that its outer joins may fill with NULL.
fn filled(from: &Rel, into: &mut BTreeSet<ColId>) {
    match from {
        Rel::Join { kind, left, right, .. } => {
            if matches!(kind, JoinKind::Full) {
                into.extend(left.cols());
            }
            if matches!(kind, JoinKind::Left | JoinKind::Full) {
                into.extend(right.cols());
            }
            filled(left, into);
            filled(right, into);
        }
        Rel::Filter { input, .. } | Rel::Project { input, .. } => filled(input, into),
        _ => {}
    }
}

/// Adds a column to the relation of a FROM clause that has these columns: it is true in each of its
/// rows.
fn mark_rows(rel: &mut Rel, own: &BTreeSet<ColId>, mark: ColId) {
    let is_within = rel.cols().iter().all(|c| own.contains(c));
    let has_some = |rel: &Rel| rel.cols().iter().any(|c| own.contains(c));
    match rel {
        Rel::Join { left, right, .. } if !is_within => {
            let side = if has_some(left) { left } else { right };
            return mark_rows(side, own, mark);
        }
        Rel::Filter { input, .. } if !is_within => return mark_rows(input, own, mark),
        // What USING has merged.
        Rel::Project { input, exprs } if !is_within && has_some(input) => {
            exprs.push((mark, Expr::Column(mark)));
            return mark_rows(input, own, mark);
        }
        _ => {}
    }
    let exprs = rel.cols().into_iter().map(|c| (c, Expr::Column(c))).chain([(mark, Expr::TRUE)]).collect();
    let input = Box::new(std::mem::replace(rel, Rel::one_row()));
    *rel = Rel::Project { input, exprs };
}

/// 42601 if a query in parentheses has a clause that is said again behind them.
fn said_once(q: &ast::Query) -> Result<()> {
    let ast::SetExpr::Query(inner) = &*q.body else { return Ok(()) };
    let limits = |q: &ast::Query| match &q.limit_clause {
        None => (q.fetch.is_some(), false),
        Some(ast::LimitClause::LimitOffset { limit, offset, .. }) => (limit.is_some() || q.fetch.is_some(), offset.is_some()),
        Some(ast::LimitClause::OffsetCommaLimit { .. }) => (true, true),
    };
    let (outer, inside) = (limits(q), limits(inner));
    let clauses = [
        ("ORDER BY", q.order_by.is_some() && inner.order_by.is_some()),
        ("OFFSET", outer.1 && inside.1),
        ("LIMIT", outer.0 && inside.0),
        ("WITH", q.with.is_some() && inner.with.is_some()),
    ];
    match clauses.into_iter().find(|(_, twice)| *twice) {
        Some((clause, _)) => Err(Error::sql("42601", format!("multiple {clause} clauses not allowed"))),
        None => Ok(()),
    }
}

/// The literal without a type that a column of a query shows in every row: a `UNION` or an `INSERT`
/// gives it its type.
pub(crate) fn literal_of(rel: &Rel, column: &OutCol, literals: &BTreeSet<ColId>) -> Option<Typed> {
    fn constant<'r>(rel: &'r Rel, id: ColId, literals: &BTreeSet<ColId>) -> Option<&'r Expr> {
        match rel {
            Rel::Filter { input, .. } | Rel::Sort { input, .. } | Rel::Limit { input, .. } => constant(input, id, literals),
            Rel::Project { input, exprs } => match &exprs.iter().find(|(c, _)| *c == id)?.1 {
                Expr::Column(c) => constant(input, *c, literals),
                e @ Expr::Const(_) if literals.contains(&id) => Some(e),
                _ => None,
            },
            _ => None,
        }
    }
    constant(rel, column.id, literals).map(|e| Typed::new(e.clone(), Type::Unknown))
}

/// Rewrites an expression over the groups: what equals a key is the key; any other input column is
/// 42803.
fn regroup(e: &mut Expr, keys: &[(ColId, Expr)], from: &BTreeSet<ColId>, names: &[ScopeCol]) -> Result<()> {
    if let Some((id, _)) = keys.iter().find(|(_, k)| !matches!(k, Expr::Const(_)) && *k == *e) {
        *e = Expr::Column(*id);
        return Ok(());
    }
    let ungrouped = |c: ColId| from.contains(&c) && !keys.iter().any(|k| k.0 == c);
    let name_of = |c: ColId| {
        names
            .iter()
            .find(|n| n.id == c || n.estimate == Some(c))
            .map_or_else(String::new, |n| if n.table.is_empty() { n.name.clone() } else { format!("{}.{}", n.table, n.name) })
    };
    match e {
        Expr::Column(c) if ungrouped(*c) => {
            let message = "must appear in the GROUP BY clause or be used in an aggregate function";
            return Err(Error::sql("42803", format!("column \"{}\" {message}", name_of(*c))));
        }
        Expr::Subquery(s) => {
            if let SubqueryBody::Logical(rel) = &s.body
                && let Some(c) = rel.free_columns().into_iter().find(|c| ungrouped(*c))
            {
                return Err(Error::sql("42803", format!("subquery uses ungrouped column \"{}\" from outer query", name_of(c))));
            }
        }
        _ => {}
    }
    e.children_mut().into_iter().try_for_each(|c| regroup(c, keys, from, names))
}

/// The name PostgreSQL gives an output column without alias (`FigureColname`).
pub(crate) fn output_name(e: &Ast) -> String {
    figure(e).unwrap_or_else(|| "?column?".to_string())
}

/// A name that is better than that of a type: a column's or a function's, whatever it is cast to.
fn named(e: &Ast) -> Option<String> {
    match e {
        Ast::Cast { expr, .. } | Ast::Nested(expr) => named(expr),
        Ast::TypedString(_) | Ast::Interval(_) | Ast::Value(_) => None,
        Ast::Case { else_result, .. } => else_result.as_deref().and_then(named),
        other => figure(other),
    }
}

fn figure(e: &Ast) -> Option<String> {
    Some(match e {
        Ast::Identifier(i) => fold(i),
        Ast::CompoundIdentifier(parts) => fold(parts.last()?),
        Ast::Nested(e) | Ast::Collate { expr: e, .. } => return figure(e),
        Ast::Function(f) => fold(f.name.0.last()?.as_ident()?),
        Ast::Cast { expr, data_type, .. } => {
            return named(expr).or_else(|| {
                crate::catalog::declared::type_from_ast(data_type).ok().map(|t| t.element().unwrap_or(&t).internal_name())
            });
        }
        Ast::TypedString(t) => crate::catalog::declared::type_from_ast(&t.data_type).ok()?.internal_name(),
        Ast::Value(ast::ValueWithSpan { value: ast::Value::Boolean(_), .. }) => "bool".into(),
        Ast::Interval(_) => "interval".into(),
        Ast::Case { else_result, .. } => else_result.as_deref().and_then(named).unwrap_or_else(|| "case".into()),
        Ast::Array(_) => "array".into(),
        Ast::Exists { negated: false, .. } => "exists".into(),
        Ast::Extract { .. } => "extract".into(),
        Ast::Substring { shorthand: true, .. } => "substr".into(),
        Ast::Substring { .. } => "substring".into(),
        Ast::Position { .. } => "position".into(),
        Ast::Overlay { .. } => "overlay".into(),
        Ast::Ceil { .. } => "ceil".into(),
        Ast::Floor { .. } => "floor".into(),
        Ast::AtTimeZone { .. } => "timezone".into(),
        Ast::Trim { trim_where, .. } => match trim_where {
            Some(ast::TrimWhereField::Leading) => "ltrim".into(),
            Some(ast::TrimWhereField::Trailing) => "rtrim".into(),
            _ => "btrim".into(),
        },
        Ast::Tuple(_) => "row".into(),
        Ast::CompoundFieldAccess { root, access_chain } => match access_chain.last() {
            Some(ast::AccessExpr::Dot(Ast::Identifier(i))) => fold(i),
            _ => return figure(root),
        },
        Ast::Subquery(q) => match &*q.body {
            ast::SetExpr::Select(s) => match s.projection.first()? {
                ast::SelectItem::UnnamedExpr(e) => output_name(e),
                ast::SelectItem::ExprWithAlias { alias, .. } => fold(alias),
                _ => return None,
            },
            _ => return None,
        },
        _ => return None,
    })
}

/// Leaves the first keys, and of the others those that expressions use.
fn retain_used<'e>(keys: &mut Vec<(ColId, Expr)>, first: usize, exprs: impl Iterator<Item = &'e Expr>) {
    if keys.len() > first {
        let used: BTreeSet<ColId> = exprs.flat_map(Expr::columns).collect();
        let others = keys.split_off(first);
        keys.extend(others.into_iter().filter(|(id, _)| used.contains(id)));
    }
}

/// What makes groups of a query's rows.
fn clause_of_groups(has_keys: bool, has_having: bool) -> &'static str {
    match (has_keys, has_having) {
        (true, _) => "GROUP BY clause",
        (false, true) => "HAVING clause",
        (false, false) => "aggregate functions",
    }
}
