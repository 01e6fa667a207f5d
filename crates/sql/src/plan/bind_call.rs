//! Binds calls: scalar functions, aggregates, window functions, set-returning functions in select
//! lists, sequences.

use super::binder::{Binder, Scope, Typed};
use super::rel::{AggCall, Bound, Frame, SortKey, WindowCall, WindowFunction};
use super::syntax::{arguments, function_name, is_star};
use crate::catalog::names::Name;
use crate::catalog::system::FUNCTIONS;
use crate::parse::fold;
use crate::plan::expr::*;
use crate::types::cast::select_common_type;
use crate::types::functions::{self, FunctionKind};
use crate::types::{CastContext, Datum, Type};
use meridian_base::{Error, Result};
use sqlparser::ast::{self, Expr as Ast, FunctionArguments, Spanned};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Binder<'_> {
    /// A call by name with unbound arguments.
    pub(crate) fn call(&mut self, name: &str, args: &[&Ast]) -> Result<Typed> {
        let args = args.iter().map(|a| self.expr(a)).collect::<Result<_>>()?;
        self.call_typed(name, args)
    }
    /// A call by name with bound arguments.
    pub(crate) fn call_typed(&mut self, name: &str, args: Vec<Typed>) -> Result<Typed> {
        let types: Vec<Type> = args.iter().map(|a| a.ty.clone()).collect();
        let f = FUNCTIONS.resolve_function(name, &types)?;
        self.apply(f, args)
    }

    pub(crate) fn function(&mut self, f: &ast::Function) -> Result<Typed> {
        let span = f.span();
        self.function_inner(f).map_err(|e| self.at(e, span))
    }

    fn function_inner(&mut self, f: &ast::Function) -> Result<Typed> {
        let name = function_name(&f.name)?;
        let list = match &f.args {
            FunctionArguments::None => return self.bare_function(&name),
            FunctionArguments::Subquery(q) if name == "array" => {
                let (rel, cols) = self.subquery(q)?;
                let [col] = cols.as_slice() else { return Err(Error::sql("42601", "subquery must return only one column")) };
                let element = col.ty.element().cloned().unwrap_or_else(|| col.ty.clone());
                return Ok(Typed::new(self.make_subquery(SubqueryKind::Array(element.clone()), rel), element.array_of()));
            }
            FunctionArguments::Subquery(_) => return Err(Error::sql("42601", "syntax error in the arguments")),
            FunctionArguments::List(list) => list,
        };
        let said = list.clauses.iter().find_map(|c| match c {
            ast::FunctionArgumentClause::IgnoreOrRespectNulls(nulls) => Some(nulls),
            _ => None,
        });
        if let Some(nulls) = f.null_treatment.as_ref().or(said) {
            return Err(Error::unsupported(format!("{nulls} is not supported")));
        }
        let args = arguments(list)?;
        if f.over.is_some() {
            return self.window_call(f, &name, list, &args);
        }
        match name.as_str() {
            "coalesce" | "greatest" | "least" => return self.variadic(&name, &args),
            "nullif" => return self.nullif(&args),
            "row" => {
                let items = args.iter().map(|a| self.expr(a).and_then(|t| self.settle(t)).map(|t| (None, t.ty, t.expr)));
                return Ok(Typed::new(Expr::row(items.collect::<Result<_>>()?), Type::Record));
            }
            "escrow_estimate" => return self.escrow_estimate(&args),
            "nextval" | "currval" | "lastval" | "setval" => return self.sequence_call(&name, &args),
            _ => {}
        }
        const WINDOW_FUNCTIONS: [&str; 11] = [
            "row_number",
            "rank",
            "dense_rank",
            "percent_rank",
            "cume_dist",
            "ntile",
            "lag",
            "lead",
            "first_value",
            "last_value",
            "nth_value",
        ];
        if WINDOW_FUNCTIONS.contains(&name.as_str()) {
            return Err(Error::sql("42809", format!("window function {name} requires an OVER clause")));
        }
        match kind(&name) {
            Some(FunctionKind::Aggregate) => self.aggregate(f, &name, list, &args),
            Some(FunctionKind::Set) => self.set_returning(&name, &args),
            _ => {
                if list.duplicate_treatment.is_some() || f.filter.is_some() || !list.clauses.is_empty() {
                    let what = if f.filter.is_some() { "FILTER" } else { "DISTINCT" };
                    return Err(Error::sql("42809", format!("{what} specified, but {name} is not an aggregate function")));
                }
                if let [arg] = args.as_slice()
                    && FUNCTIONS.kind_of(&name).is_none()
                    && let Some(ty) = Type::from_name(&name)
                {
                    // `float8(x)`: a cast written as a call.
                    let t = self.expr(arg)?;
                    return Ok(Typed::new(self.coerce(t, &ty, CastContext::Explicit)?, ty));
                }
                let args: Vec<Typed> = args.iter().map(|a| self.expr(a)).collect::<Result<_>>()?;
                if let ("pg_typeof", [Typed { ty: ty @ Type::Unknown, .. }]) = (name.as_str(), args.as_slice()) {
                    // Nothing gives a literal a type here, nor a parameter, which is refused in the
                    // end.
                    return Ok(Typed::new(Expr::Const(Datum::Int(i64::from(ty.oid()))), Type::Regtype));
                }
                self.call_typed(&name, args)
            }
        }
    }

    /// `CURRENT_DATE` and the like.
    fn bare_function(&mut self, name: &str) -> Result<Typed> {
        let (function, cast) = match name {
            "current_timestamp" => ("now", None),
            "current_date" => ("now", Some(Type::Date)),
            "current_time" | "localtime" => ("now", Some(Type::Time)),
            "localtimestamp" => ("now", Some(Type::Timestamp)),
            "user" | "current_role" => ("current_user", None),
            "current_catalog" => ("current_database", None),
            name => (name, None),
        };
        let t = self.call_typed(function, Vec::new())?;
        match cast {
            Some(ty) => Ok(Typed::new(self.coerce(t, &ty, CastContext::Explicit)?, ty)),
            None => Ok(t),
        }
    }

    fn variadic(&mut self, name: &str, args: &[&Ast]) -> Result<Typed> {
        let bind = |b: &mut Self| args.iter().map(|a| b.expr(a)).collect::<Result<Vec<_>>>();
        let items = match name {
            "coalesce" => self.without_sets("set-returning functions are not allowed in COALESCE", bind)?,
            _ => bind(self)?,
        };
        let types: Vec<Type> = items.iter().map(|i| i.ty.clone()).collect();
        let ty = select_common_type(&types, &name.to_uppercase())?;
        let items = items.into_iter().map(|i| self.coerce(i, &ty, CastContext::Implicit)).collect::<Result<_>>()?;
        let e = if name == "coalesce" { Expr::Coalesce(items) } else { Expr::Extreme(name == "greatest", items) };
        Ok(Typed::new(e, ty))
    }

    fn nullif(&mut self, args: &[&Ast]) -> Result<Typed> {
        let [a, b] = args else { return Err(Error::sql("42601", "NULLIF takes two arguments")) };
        let (l, r) = (self.expr(a)?, self.expr(b)?);
        // As the comparison takes it: of `NULLIF(3, 2.5)` the three is numeric.
        let (_, ty, _) = self.meets("=", &l.ty, &r.ty).map_err(|e| self.at_operator(e, a))?;
        let equal = self.operator_typed("=", l.clone(), r, a)?;
        let ty = if l.ty.same_base(&ty) { l.ty.clone() } else { ty };
        let l = self.coerce(l, &ty, CastContext::Implicit)?;
        Ok(Typed::new(Expr::Case(vec![(equal.expr, Expr::NULL)], Some(Box::new(l))), ty))
    }

    fn sequence_call(&mut self, name: &str, args: &[&Ast]) -> Result<Typed> {
        let (op, wanted) = match name {
            "nextval" => (SequenceOp::Next, 1..=1),
            "currval" => (SequenceOp::Current, 1..=1),
            "lastval" => (SequenceOp::Last, 0..=0),
            _ => (SequenceOp::Set, 2..=3),
        };
        if !wanted.contains(&args.len()) {
            return Err(Error::sql("42883", format!("function {name} with {} arguments does not exist", args.len())));
        }
        let target = match args.first() {
            None => SequenceTarget::None,
            Some(a) => {
                let t = self.expr(a)?;
                match &t.expr {
                    Expr::Const(Datum::Text(text)) if matches!(t.ty, Type::Unknown | Type::Text) => {
                        let found = Name::parse(text.as_str()).and_then(|n| self.sequence_named(&n));
                        let sequence = found.map_err(|e| self.at(e, t.span))?;
                        self.descriptors.insert(sequence.id);
                        SequenceTarget::Known(sequence.id)
                    }
                    _ => SequenceTarget::Computed(self.coerce(t, &Type::Regclass, CastContext::Explicit)?),
                }
            }
        };
        let mut rest = Vec::new();
        for (a, ty) in args.iter().skip(1).zip([Type::Int8, Type::Bool]) {
            rest.push(self.expr_as(a, &ty, CastContext::Implicit)?);
        }
        self.cacheable &= !matches!(target, SequenceTarget::Computed(_));
        self.writes |= matches!(op, SequenceOp::Next | SequenceOp::Set);
        let call = SequenceCall { slot: self.slot(), op, target, args: rest, is_identity: false };
        Ok(Typed::new(Expr::Sequence(Box::new(call)), Type::Int8))
    }

    fn aggregate(&mut self, f: &ast::Function, name: &str, list: &ast::FunctionArgumentList, args: &[&Ast]) -> Result<Typed> {
        if self.scopes.is_empty() {
            return Err(Error::sql("42803", "aggregate functions are not allowed in this context"));
        }
        let star = is_star(list);
        if name != "count" && star {
            return Err(Error::sql("42809", format!("{name}(*) must be used to call a parameterless aggregate function")));
        }
        if !f.within_group.is_empty() {
            return Err(Error::unsupported("ordered-set aggregates are not supported"));
        }
        // Nothing inside an aggregate's arguments may be an aggregate.
        let saved = self.scope().no_aggregates.replace("aggregate function calls");
        let bound = self.without_sets("aggregate function calls cannot contain set-returning function calls", |b| {
            let windows = Error::sql("42803", "aggregate function calls cannot contain window function calls");
            let args: Vec<Typed> = b.without_windows(windows, |b| args.iter().map(|a| b.expr(a)).collect::<Result<_>>())?;
            let windows = Error::sql("42P20", "window functions are not allowed in FILTER");
            let filter = b.without_windows(windows, |b| f.filter.as_ref().map(|e| b.condition(e, "FILTER")).transpose())?;
            let mut order = Vec::new();
            for clause in &list.clauses {
                match clause {
                    ast::FunctionArgumentClause::OrderBy(keys) => {
                        for k in keys {
                            order.push(b.sort_key(k)?);
                        }
                    }
                    _ => return Err(Error::unsupported("this clause of an aggregate is not supported")),
                }
            }
            Ok((args, filter, order))
        });
        self.scope().no_aggregates = saved;
        let (args, filter, order) = bound.map_err(|e: Error| match e.message() {
            "aggregate functions are not allowed in aggregate function calls" => {
                let nested = Error::sql("42803", "aggregate function calls cannot be nested");
                match e.get_position() {
                    Some(p) => nested.at(p),
                    None => nested,
                }
            }
            _ => e,
        })?;
        let (aggregate, args) = self.resolve_aggregate(name, args)?;
        let distinct = list.duplicate_treatment == Some(ast::DuplicateTreatment::Distinct);
        let ty = aggregate.result.clone();
        let call = AggCall { aggregate: Arc::new(aggregate), args, distinct, filter, order };
        let level = self.level_of(&call);
        if let Some(clause) = self.scopes[level].no_aggregates {
            return Err(Error::sql("42803", format!("aggregate functions are not allowed in {clause}")));
        }
        if let Some((id, _, _)) = self.scopes[level].aggs.iter().find(|(_, c, _)| c.is_one_value_with(&call)) {
            return Ok(Typed::new(Expr::Column(*id), ty));
        }
        let id = self.fresh();
        self.scopes[level].aggs.push((id, call, ty.clone()));
        self.scopes[level].calls_at.push((id, f.span()));
        Ok(Typed::new(Expr::Column(id), ty))
    }

    /// The query that an aggregate belongs to: the innermost one that has a column of its
    /// arguments; if they have none, the one it stands in (PostgreSQL manual, 4.2.7).
    fn level_of(&self, call: &AggCall) -> usize {
        let used: BTreeSet<ColId> = call.exprs().into_iter().flat_map(Expr::columns).collect();
        let has_some = |s: &Scope| s.cols.iter().any(|c| used.contains(&c.id) || c.estimate.is_some_and(|e| used.contains(&e)));
        self.scopes.iter().rposition(has_some).unwrap_or(self.scopes.len() - 1)
    }

    fn resolve_aggregate(&mut self, name: &str, args: Vec<Typed>) -> Result<(functions::Aggregate, Vec<Expr>)> {
        let types: Vec<Type> = args.iter().map(|a| a.ty.clone()).collect();
        let aggregate = FUNCTIONS.resolve_aggregate(name, &types)?;
        let args = (args.into_iter().zip(aggregate.args.clone()))
            .map(
                |(a, to)| if to == Type::Unknown { Ok(self.settle(a)?.expr) } else { self.coerce(a, &to, CastContext::Implicit) },
            )
            .collect::<Result<_>>()?;
        Ok((aggregate, args))
    }

    fn set_returning(&mut self, name: &str, args: &[&Ast]) -> Result<Typed> {
        if !self.scopes.last().is_some_and(|s| s.allow_sets) {
            return Err(Error::sql("0A000", "set-returning functions are not allowed here"));
        }
        if let Some(message) = self.scope().no_sets {
            return Err(Error::unsupported(message).hint(SETS_HINT));
        }
        let args: Vec<Typed> = args.iter().map(|a| self.expr(a)).collect::<Result<_>>()?;
        let (f, args) = self.resolve_set(name, args)?;
        let ty = match f.columns.as_slice() {
            [(_, ty)] => ty.clone(),
            _ => Type::Record,
        };
        let id = self.fresh();
        self.scope().sets.push((id, f, args));
        Ok(Typed::new(Expr::Column(id), ty))
    }
    pub(crate) fn resolve_set(&mut self, name: &str, args: Vec<Typed>) -> Result<(functions::SetFunction, Vec<Expr>)> {
        let types: Vec<Type> = args.iter().map(|a| a.ty.clone()).collect();
        let f = FUNCTIONS.resolve_set_function(name, &types)?;
        let args = (args.into_iter().zip(f.args.clone()))
            .map(
                |(a, to)| if to == Type::Unknown { Ok(self.settle(a)?.expr) } else { self.coerce(a, &to, CastContext::Implicit) },
            )
            .collect::<Result<_>>()?;
        Ok((f, args))
    }

    fn window_call(&mut self, f: &ast::Function, name: &str, list: &ast::FunctionArgumentList, args: &[&Ast]) -> Result<Typed> {
        if let Some(refusal) = self.scopes.last().and_then(|s| s.no_windows.clone()) {
            return Err(refusal);
        }
        if !self.scopes.last().is_some_and(|s| s.allow_windows) {
            return Err(Error::sql("42P20", "window functions are not allowed here"));
        }
        if list.duplicate_treatment == Some(ast::DuplicateTreatment::Distinct) {
            return Err(Error::unsupported("DISTINCT is not implemented for window functions"));
        }
        let (mut args, filter) = self.without_sets("window function calls cannot contain set-returning function calls", |b| {
            b.without_windows(Error::sql("42P20", "window function calls cannot be nested"), |b| {
                let args: Vec<Typed> = args.iter().map(|a| b.expr(a)).collect::<Result<_>>()?;
                Ok((args, f.filter.as_ref().map(|e| b.condition(e, "FILTER")).transpose()?))
            })
        })?;
        let ranking = |f| Ok::<_, Error>((f, Type::Int8, Vec::new()));
        let (function, ty, args) = match (name, args.len()) {
            ("row_number", 0) => ranking(WindowFunction::RowNumber)?,
            ("rank", 0) => ranking(WindowFunction::Rank)?,
            ("dense_rank", 0) => ranking(WindowFunction::DenseRank)?,
            ("percent_rank", 0) => (WindowFunction::PercentRank, Type::Float8, Vec::new()),
            ("cume_dist", 0) => (WindowFunction::CumeDist, Type::Float8, Vec::new()),
            ("ntile", 1) => {
                let n = self.coerce(args.remove(0), &Type::Int4, CastContext::Implicit)?;
                (WindowFunction::Ntile, Type::Int4, vec![n])
            }
            ("lag" | "lead", 1..=3) => {
                let value = args.remove(0);
                let value = self.settle(value)?;
                // The value and what stands for a missing one have a type in common.
                let types: Vec<Type> = std::iter::once(&value.ty).chain(args.get(1).map(|a| &a.ty)).cloned().collect();
                let ty = select_common_type(&types, "function arguments")?;
                let mut exprs = vec![self.coerce(value, &ty, CastContext::Implicit)?];
                for (a, to) in args.into_iter().zip([Type::Int4, ty.clone()]) {
                    exprs.push(self.coerce(a, &to, CastContext::Implicit)?);
                }
                (if name == "lag" { WindowFunction::Lag } else { WindowFunction::Lead }, ty, exprs)
            }
            ("first_value" | "last_value", 1) => {
                let value = args.remove(0);
                let value = self.settle(value)?;
                let f = if name == "first_value" { WindowFunction::FirstValue } else { WindowFunction::LastValue };
                (f, value.ty, vec![value.expr])
            }
            ("nth_value", 2) => {
                let n = args.remove(1);
                let n = self.coerce(n, &Type::Int4, CastContext::Implicit)?;
                let value = args.remove(0);
                let value = self.settle(value)?;
                (WindowFunction::NthValue, value.ty, vec![value.expr, n])
            }
            _ => {
                let (aggregate, args) = self.resolve_aggregate(name, args)?;
                let ty = aggregate.result.clone();
                (WindowFunction::Aggregate(Arc::new(aggregate)), ty, args)
            }
        };
        let over = f.over.as_ref().expect("a window call has OVER");
        let spec = self.window_spec(over)?;
        let (partition, order) =
            self.without_sets("set-returning functions in the definition of a window are not supported", |b| {
                b.without_windows(Error::sql("42P20", "window functions are not allowed in window definitions"), |b| {
                    let partition = spec.partition_by.iter().map(|e| Ok(b.expr(e)?.expr)).collect::<Result<Vec<_>>>()?;
                    Ok((partition, spec.order_by.iter().map(|k| b.sort_key(k)).collect::<Result<Vec<_>>>()?))
                })
            })?;
        let frame = self.frame(spec.window_frame.as_ref(), !order.is_empty())?;
        let id = self.fresh();
        let call = WindowCall { function, args, filter, partition, order, frame };
        self.scope().windows.push((id, call, ty.clone()));
        self.scope().calls_at.push((id, f.span()));
        Ok(Typed::new(Expr::Column(id), ty))
    }

    fn window_spec(&mut self, over: &ast::WindowType) -> Result<ast::WindowSpec> {
        let find = |b: &Self, name: &ast::Ident| {
            let name = fold(name);
            let scope = b.scopes.last().expect("a window call is in a scope");
            (scope.named_windows.iter().find(|(n, _)| *n == name).map(|(_, s)| s.clone()))
                .ok_or_else(|| Error::sql("42704", format!("window \"{name}\" does not exist")))
        };
        match over {
            ast::WindowType::NamedWindow(name) => find(self, name),
            ast::WindowType::WindowSpec(spec) => match &spec.window_name {
                None => Ok(spec.clone()),
                Some(name) => {
                    let mut base = find(self, name)?;
                    let name = fold(name);
                    if !spec.partition_by.is_empty() {
                        return Err(Error::sql("42P20", format!("cannot override PARTITION BY clause of window \"{name}\"")));
                    }
                    if !spec.order_by.is_empty() && !base.order_by.is_empty() {
                        return Err(Error::sql("42P20", format!("cannot override ORDER BY clause of window \"{name}\"")));
                    }
                    if base.window_frame.is_some() {
                        let message = format!("cannot copy window \"{name}\" because it has a frame clause");
                        return Err(Error::sql("42P20", message).hint("Omit the parentheses in this OVER clause."));
                    }
                    if !spec.order_by.is_empty() {
                        base.order_by = spec.order_by.clone();
                    }
                    base.window_frame = spec.window_frame.clone();
                    Ok(base)
                }
            },
        }
    }

    fn frame(&mut self, frame: Option<&ast::WindowFrame>, ordered: bool) -> Result<Frame> {
        let Some(f) = frame else {
            let end = if ordered { Bound::CurrentRow } else { Bound::UnboundedFollowing };
            return Ok(Frame { rows: false, start: Bound::UnboundedPreceding, end });
        };
        let rows = match f.units {
            ast::WindowFrameUnits::Rows => true,
            ast::WindowFrameUnits::Range => false,
            ast::WindowFrameUnits::Groups => return Err(Error::unsupported("GROUPS frames are not supported")),
        };
        let has_offset = |b: &ast::WindowFrameBound| {
            matches!(b, ast::WindowFrameBound::Preceding(Some(_)) | ast::WindowFrameBound::Following(Some(_)))
        };
        if !rows && (has_offset(&f.start_bound) || f.end_bound.as_ref().is_some_and(has_offset)) {
            return Err(Error::unsupported("RANGE frames with an offset are not supported"));
        }
        let start = self.bound(&f.start_bound)?;
        let end = f.end_bound.as_ref().map_or(Ok(Bound::CurrentRow), |b| self.bound(b))?;
        let refused = match (&start, &end) {
            (Bound::UnboundedFollowing, _) => Some("frame start cannot be UNBOUNDED FOLLOWING"),
            (_, Bound::UnboundedPreceding) => Some("frame end cannot be UNBOUNDED PRECEDING"),
            (Bound::CurrentRow, Bound::Preceding(_)) => Some("frame starting from current row cannot have preceding rows"),
            (Bound::Following(_), Bound::CurrentRow | Bound::Preceding(_)) => {
                Some("frame starting from following row cannot end with preceding or current row")
            }
            _ => None,
        };
        if let Some(message) = refused {
            return Err(Error::sql("42P20", message));
        }
        Ok(Frame { rows, start, end })
    }
    fn bound(&mut self, b: &ast::WindowFrameBound) -> Result<Bound> {
        Ok(match b {
            ast::WindowFrameBound::CurrentRow => Bound::CurrentRow,
            ast::WindowFrameBound::Preceding(None) => Bound::UnboundedPreceding,
            ast::WindowFrameBound::Following(None) => Bound::UnboundedFollowing,
            ast::WindowFrameBound::Preceding(Some(e)) => Bound::Preceding(self.expr_as(e, &Type::Int8, CastContext::Implicit)?),
            ast::WindowFrameBound::Following(Some(e)) => Bound::Following(self.expr_as(e, &Type::Int8, CastContext::Implicit)?),
        })
    }

    /// A key of `ORDER BY` inside a call.
    pub(crate) fn sort_key(&mut self, k: &ast::OrderByExpr) -> Result<SortKey> {
        let t = self.expr(&k.expr)?;
        let t = self.settle(t)?;
        // Of lengths that differ, blanks at the end do not count.
        let expr = if t.ty == Type::Char(0) { self.coerce(t, &Type::Text, CastContext::Implicit)? } else { t.expr };
        sort_key(expr, &k.options)
    }
}

/// With the options of `ORDER BY`: `NULL`s are last ascending and first descending unless said
/// otherwise.
pub(crate) fn sort_key(expr: Expr, options: &ast::OrderByOptions) -> Result<SortKey> {
    let descending = match &options.sort {
        None | Some(ast::OrderBySort::Asc) => false,
        Some(ast::OrderBySort::Desc) => true,
        Some(ast::OrderBySort::Using(op)) => match op.to_string().as_str() {
            "<" => false,
            ">" => true,
            op => return Err(Error::sql("42809", format!("operator {op} is not a valid ordering operator"))),
        },
    };
    Ok(SortKey { expr, descending, nulls_first: options.nulls_first.unwrap_or(descending) })
}

/// The registry's kind of a function, window functions and syntax excluded.
pub(crate) fn kind(name: &str) -> Option<FunctionKind> {
    FUNCTIONS.kind_of(name)
}

pub(crate) const SETS_HINT: &str = "You might be able to move the set-returning function into a LATERAL FROM item.";
