//! A statement's tree to a plan that runs.
//!
//! ```text
//! AST ──bind──▶ Rel over ColIds ──optimize──▶ Rel ──compile──▶ Node over slots
//! ```
//!
//! * `binder`, `bind_expr`, `bind_call`, `bind_escrow`, `bind_query`, `bind_with`, `bind_from`,
//!   `dml`: names, types and parameters; what is wrong with a statement is found here, with
//!   PostgreSQL's codes and words.
//! * `table`: what a writer needs to know about a table.
//! * `optimize`: conditions move down, inner joins are ordered.
//! * `access`: which part of which index.
//! * `estimate`: how many rows that gives, and what it costs, where there are statistics.
//! * `physical`: operators over rows; a column becomes a slot.

mod access;
mod api;
mod bind_call;
mod bind_escrow;
mod bind_expr;
mod bind_from;
mod bind_query;
mod bind_table;
mod bind_times;
mod bind_with;
mod binder;
mod dml;
mod equals;
mod estimate;
pub(crate) mod eval;
pub(crate) mod expr;
mod fast;
mod grouped;
mod join_order;
pub(crate) mod limits;
mod locks;
pub(crate) mod node;
mod optimize;
mod path;
mod physical;
mod postpone;
mod recursion;
pub(crate) mod rel;
mod scalars;
mod syntax;
mod table;
mod united;
mod unnest;

pub use api::*;
pub(crate) use fast::{FastKind, FastPlan};
pub(crate) use table::ForeignKeys;
pub use table::TablePlan;

use crate::catalog::privileges::Privileges;
use crate::catalog::relation::TableRef;
use crate::parse::{Kind, Statement, ast};
use crate::types::{Datum, Type};
use binder::{Binder, OutCol, Scope};
use meridian_base::{Error, Result};
use node::Node;
use rel::Rel;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How a statement runs.
pub(crate) enum Plan {
    /// A point statement, run by one function.
    Fast(FastPlan),
    General(Arc<Node>),
    Explain {
        inner: Box<Prepared>,
        shown: Shown,
    },
}

/// What `EXPLAIN` shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    /// The statement is run, and measured.
    pub(crate) analyze: bool,
    /// How many rows are expected.
    pub(crate) costs: bool,
    /// How long each operator took.
    pub(crate) timing: bool,
    /// How long the statement took.
    pub(crate) summary: bool,
}

/// Whether a statement is one that [`prepare`] takes: queries, DML, `EXPLAIN` of them. Everything
/// else is DDL or the session's.
pub fn is_plannable(statement: &Statement) -> bool {
    use ast::Statement as S;
    match &statement.kind {
        Kind::Sql(s) => matches!(**s, S::Query(_) | S::Insert(_) | S::Update(_) | S::Delete(_) | S::Merge(_) | S::Explain { .. }),
        _ => false,
    }
}

/// What a statement has to cost before it is planned for its values, each time.
const DEAR_MICROS: f64 = 5_000.0;

/// Binds and plans a statement. `param_types`: what the client declared; `None`, or too few, are
/// inferred.
pub fn prepare(statement: &Statement, ctx: &PlanContext, param_types: &[Option<Type>]) -> Result<Prepared> {
    let Kind::Sql(sql) = &statement.kind else {
        return Err(Error::unsupported("this statement cannot be planned"));
    };
    if let ast::Statement::Explain { statement: inner, analyze, options, .. } = &**sql {
        return explain(&statement.inner((**inner).clone()), *analyze, options.as_deref().unwrap_or_default(), ctx, param_types);
    }
    prepare_for(statement, ctx, param_types, &[])
}

/// The same for values of the parameters, which the plan takes for constants: it is right for these
/// alone.
pub(crate) fn prepare_for<'a>(
    statement: &'a Statement,
    ctx: &PlanContext<'a>,
    param_types: &[Option<Type>],
    values: &'a [Datum],
) -> Result<Prepared> {
    let Kind::Sql(sql) = &statement.kind else {
        return Err(Error::unsupported("this statement cannot be planned"));
    };
    let mut b = Binder::new(*ctx, &statement.text, param_types);
    b.values = values;
    b.row_locks = statement.row_locks;
    let (tag, (rel, out)) = match &**sql {
        ast::Statement::Query(q) => {
            let tag = match &*q.body {
                ast::SetExpr::Insert(_) => Tag::Insert,
                ast::SetExpr::Update(_) => Tag::Update,
                ast::SetExpr::Delete(_) => Tag::Delete,
                _ => Tag::Select,
            };
            (tag, b.query(q)?)
        }
        ast::Statement::Insert(i) => (Tag::Insert, b.insert(i, statement.overriding)?),
        s @ ast::Statement::Update(_) => (Tag::Update, b.dml(s)?),
        s @ ast::Statement::Delete(_) => (Tag::Delete, b.dml(s)?),
        ast::Statement::Merge(_) => return Err(Error::unsupported("MERGE is not supported").hint("Use INSERT … ON CONFLICT.")),
        other => return Err(Error::unsupported(format!("this statement is not supported: {}", first_words(&other.to_string())))),
    };
    finish(b, tag, rel, out)
}

/// An `INSERT` of rows of values for these columns, `$1` for the first: what `COPY FROM` runs
/// through [`crate::exec::insert_rows`].
pub fn prepare_insert(table: &TableRef, ordinals: &[u32], ctx: &PlanContext) -> Result<Prepared> {
    let mut b = Binder::new(*ctx, "", &[]);
    b.need(table.id, Privileges::INSERT);
    let (rel, out) = b.insert_params(table, ordinals)?;
    finish(b, Tag::Insert, rel, out)
}

/// Evaluates a constant expression, such as the value of `SET` or a parameter of `EXECUTE`, as a
/// type.
pub fn evaluate(e: &ast::Expr, ty: &Type, ctx: &PlanContext) -> Result<Datum> {
    let mut b = Binder::new(*ctx, "", &[]);
    b.scopes.push(Scope { no_aggregates: Some("EXECUTE parameters"), ..Scope::default() });
    let expr = b.expr_as(e, ty, crate::types::CastContext::Assignment)?;
    crate::plan::eval::eval_constant(&expr, ctx.eval)
}

/// The value of a default, if it is the same in every row of a statement.
pub fn stable_default(text: &str, ty: &Type, ctx: &PlanContext) -> Result<Option<Datum>> {
    let mut b = Binder::new(*ctx, "", &[]);
    let expr = b.expr_as(&crate::parse::parse_expression(text)?, ty, crate::types::CastContext::Assignment)?;
    match expr.is_volatile() || expr.needs_executor() {
        true => Ok(None),
        false => crate::plan::eval::eval_constant(&expr, ctx.eval).map(Some),
    }
}

/// Checks that an expression over a table's columns binds, and tells its type: for defaults,
/// checks, generated columns and predicates in DDL.
pub fn check_expression(e: &ast::Expr, table: Option<&TableRef>, ctx: &PlanContext) -> Result<Type> {
    let mut b = Binder::new(*ctx, "", &[]);
    let mut scope = Scope { no_aggregates: Some("this expression"), ..Scope::default() };
    if let Some(t) = table {
        (_, scope.cols) = b.table(t.clone(), &t.name, crate::env::Locking::None);
        // What a table says of its own rows is said of what they store.
        scope.cols.iter_mut().for_each(|c| c.estimate = None);
        scope.tables.push(t.name.clone());
    }
    let (t, _) = b.in_scope(scope, |b| b.expr(e))?;
    Ok(t.ty)
}

/// The names and types of a query's columns, and the descriptors it depends on: for `CREATE VIEW`.
pub fn describe_query(q: &ast::Query, ctx: &PlanContext) -> Result<(Vec<(String, Type)>, Vec<meridian_base::DescriptorId>)> {
    let mut b = Binder::new(*ctx, "", &[]);
    let (_, out) = b.query(q)?;
    Ok((out.into_iter().map(|c| (c.name, c.ty)).collect(), b.descriptors.into_iter().collect()))
}

fn finish(mut b: Binder, tag: Tag, rel: Rel, out: Vec<OutCol>) -> Result<Prepared> {
    let params = b.param_types()?;
    let mut known = std::mem::take(&mut b.known);
    known.follow(&rel);
    let rel = optimize::optimize(rel, &known);
    let mut changes = None;
    rel.visit(&mut |r| {
        if let (Rel::Dml { dml, .. }, None) = (r, changes) {
            changes = Some(dml.table.table().id);
        }
    });
    let layout: Vec<expr::ColId> = out.iter().map(|c| c.id).collect();
    let mut plans: BTreeMap<meridian_base::DescriptorId, Arc<TablePlan>> = BTreeMap::new();
    let (node, cost) = {
        let b = &mut b;
        physical::compile(&rel, &layout, &known, &mut |t: &TableRef| {
            if let Some(p) = plans.get(&t.id) {
                return Ok(p.clone());
            }
            let plan = b.table_plan(t)?;
            plans.insert(t.id, plan.clone());
            Ok(plan)
        })?
    };
    let is_of_lists = params.iter().any(|ty| ty.element().is_some());
    let plan = match fast::recognise(&node) {
        Some(fast) => Plan::Fast(fast),
        None => Plan::General(node),
    };
    Ok(Prepared {
        params,
        columns: out.into_iter().map(|c| OutputColumn { name: c.name, ty: c.ty, origin: c.origin }).collect(),
        tag,
        descriptors: b.descriptors.into_iter().collect(),
        needs: b.needs,
        permit: Permit::default(),
        groups: b.groups.into_iter().collect(),
        read_only: !b.writes,
        changes,
        cacheable: b.cacheable,
        is_of_values: known.is_of_values() && cost > DEAR_MICROS,
        is_of_lists,
        plan,
    })
}

fn explain(
    inner: &Statement,
    analyze: bool,
    options: &[ast::UtilityOption],
    ctx: &PlanContext,
    param_types: &[Option<Type>],
) -> Result<Prepared> {
    let mut shown = Shown { analyze, costs: true, timing: true, summary: true };
    let mut is_timed = false;
    for o in options {
        let on = o
            .arg
            .as_ref()
            .is_none_or(|a| !matches!(a.to_string().to_lowercase().as_str(), "false" | "off" | "0" | "'off'" | "'false'"));
        match o.name.value.to_lowercase().as_str() {
            "analyze" => shown.analyze = on,
            "costs" => shown.costs = on,
            "timing" => (shown.timing, is_timed) = (on, on),
            "summary" => shown.summary = on,
            "verbose" | "settings" | "buffers" | "wal" => {}
            "format" if o.arg.as_ref().is_some_and(|a| a.to_string().eq_ignore_ascii_case("text")) => {}
            "format" => return Err(Error::unsupported("EXPLAIN is only written as text")),
            other => return Err(Error::sql("42601", format!("unrecognized EXPLAIN option \"{other}\""))),
        }
    }
    if is_timed && !shown.analyze {
        return Err(Error::sql("22023", "EXPLAIN option TIMING requires ANALYZE"));
    }
    let prepared = prepare(inner, ctx, param_types)?;
    Ok(Prepared {
        params: prepared.params.clone(),
        columns: vec![OutputColumn { name: "QUERY PLAN".into(), ty: Type::Text, origin: None }],
        tag: Tag::Explain,
        descriptors: prepared.descriptors.clone(),
        needs: prepared.needs.clone(),
        permit: Permit::default(),
        groups: prepared.groups.clone(),
        read_only: !shown.analyze || prepared.read_only,
        changes: None,
        cacheable: false,
        is_of_values: false,
        is_of_lists: false,
        plan: Plan::Explain { inner: Box::new(prepared), shown },
    })
}

fn first_words(text: &str) -> String {
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}
