//! Binds scalar expressions.

use super::binder::{Binder, Typed};
use super::rel::{Cte, Rel};
use super::syntax::row_items;
use super::syntax::unnest;
use crate::catalog::system::FUNCTIONS;
use crate::plan::expr::*;
use crate::types::cast::select_common_type;
use crate::types::functions::{self};
use crate::types::{CastContext, Datum, Type};
use meridian_base::{Error, Result};
use sqlparser::ast::{self, BinaryOperator, Expr as Ast, Spanned, UnaryOperator, Value};
use std::sync::Arc;

impl Binder<'_> {
    /// Binds an expression.
    pub(crate) fn expr(&mut self, e: &Ast) -> Result<Typed> {
        let t = self.deeper(|b| b.expr_inner(e))?;
        let span = match e {
            Ast::Value(v) => v.span,
            Ast::Identifier(i) => i.span,
            Ast::CompoundIdentifier(parts) => parts[0].span,
            _ => t.span,
        };
        Ok(Typed { expr: self.fold(t.expr), ty: t.ty, span, is_literal: t.is_literal })
    }
    /// Binds an expression and converts it.
    pub(crate) fn expr_as(&mut self, e: &Ast, to: &Type, context: CastContext) -> Result<Expr> {
        let t = self.expr(e)?;
        self.coerce(t, to, context).map_err(|err| self.at(err, e.span()))
    }
    /// Binds a condition: `WHERE`, `ON`, `HAVING`, an operand of `AND`.
    pub(crate) fn condition(&mut self, e: &Ast, what: &str) -> Result<Expr> {
        let t = self.expr(e)?;
        if t.ty != Type::Bool && t.ty != Type::Unknown {
            let message = format!("argument of {what} must be type boolean, not type {}", t.ty.base_name());
            return Err(self.at(Error::sql("42804", message), e.span()));
        }
        self.coerce(t, &Type::Bool, CastContext::Implicit).map_err(|err| self.at(err, e.span()))
    }

    fn expr_inner(&mut self, e: &Ast) -> Result<Typed> {
        match e {
            // Reserved words of PostgreSQL's that the parser takes for columns.
            Ast::Identifier(i) if i.quote_style.is_none() && i.value.eq_ignore_ascii_case("current_schema") => {
                self.call_typed("current_schema", Vec::new())
            }
            Ast::Identifier(i) if i.quote_style.is_none() && i.value.eq_ignore_ascii_case("current_role") => {
                self.call_typed("current_role", Vec::new())
            }
            Ast::Identifier(i) => self.column(std::slice::from_ref(i)),
            Ast::CompoundIdentifier(parts) => self.column(parts),
            Ast::Nested(e) => self.expr_inner(e),
            Ast::Value(v) => self.value(&v.value).map_err(|err| self.at(err, v.span)),
            Ast::TypedString(t) => {
                let ty = self.data_type(&t.data_type)?;
                let text = self.value(&t.value.value)?;
                let expr = self.coerce(text, &ty, CastContext::Explicit).map_err(|err| self.at(err, t.value.span))?;
                Ok(Typed::new(expr, ty))
            }
            Ast::Interval(i) => self.interval(i),
            Ast::BinaryOp { left, op, right } => self.binary(left, op, right),
            Ast::UnaryOp { op, expr } => self.unary(*op, expr),
            Ast::IsNull(_)
            | Ast::IsNotNull(_)
            | Ast::IsTrue(_)
            | Ast::IsNotTrue(_)
            | Ast::IsFalse(_)
            | Ast::IsNotFalse(_)
            | Ast::IsUnknown(_)
            | Ast::IsNotUnknown(_)
            | Ast::IsDistinctFrom(..)
            | Ast::IsNotDistinctFrom(..)
            | Ast::Between { .. } => self.test(e),
            Ast::InList { expr, list, negated } => self.in_list(expr, list, *negated),
            Ast::InSubquery { expr, subquery, negated } => {
                let e = self.quantified_subquery(expr, "=", subquery, Quantifier::Any)?;
                Ok(boolean(if *negated { not(e) } else { e }))
            }
            Ast::AnyOp { left, compare_op, right, .. } => self.quantified(left, compare_op, right, false),
            Ast::AllOp { left, compare_op, right } => self.quantified(left, compare_op, right, true),
            Ast::Exists { subquery, negated } => {
                let (rel, _) = self.subquery(subquery)?;
                let e = self.make_subquery(SubqueryKind::Exists, rel);
                Ok(boolean(if *negated { not(e) } else { e }))
            }
            Ast::Subquery(q) => {
                let (rel, mut cols) = self.subquery(q)?;
                if cols.len() != 1 {
                    return Err(self.at(Error::sql("42601", "subquery must return only one column"), e.span()));
                }
                let ty = cols.remove(0).ty;
                Ok(Typed::new(self.make_subquery(SubqueryKind::Scalar, rel), ty))
            }
            Ast::Like { negated, any: false, expr, pattern, escape_char } => {
                self.like("~~", *negated, expr, pattern, escape_char.as_deref())
            }
            Ast::ILike { negated, any: false, expr, pattern, escape_char } => {
                self.like("~~*", *negated, expr, pattern, escape_char.as_deref())
            }
            Ast::SimilarTo { .. }
            | Ast::AtTimeZone { .. }
            | Ast::Extract { .. }
            | Ast::Ceil { field: ast::CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime), .. }
            | Ast::Floor { field: ast::CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime), .. }
            | Ast::Position { .. }
            | Ast::Substring { .. }
            | Ast::Trim { .. }
            | Ast::Overlay { .. } => self.spelled_call(e),
            Ast::Cast { format: Some(_), .. } => Err(self.at(Error::unsupported("CAST … FORMAT is not supported"), e.span())),
            Ast::Cast { kind: ast::CastKind::Cast | ast::CastKind::DoubleColon, expr, data_type, .. } => {
                self.cast(expr, data_type)
            }
            Ast::Case { operand, conditions, else_result, .. } => self
                .without_sets("set-returning functions are not allowed in CASE", |b| {
                    b.case(operand.as_deref(), conditions, else_result.as_deref())
                }),
            Ast::Function(f) => self.function(f),
            Ast::Array(a) => self.array(&a.elem),
            Ast::Tuple(items) => {
                let items = items.iter().map(|i| self.expr(i).and_then(|t| self.settle(t)).map(|t| (None, t.ty, t.expr)));
                Ok(Typed::new(Expr::row(items.collect::<Result<_>>()?), Type::Record))
            }
            Ast::CompoundFieldAccess { root, access_chain } => self.access(root, access_chain),
            Ast::Collate { expr, collation } => self.collate(expr, collation),
            other => {
                Err(self
                    .at(Error::unsupported(format!("expression not supported: {}", shorten(&other.to_string()))), other.span()))
            }
        }
    }

    /// `IS …` and `BETWEEN`.
    fn test(&mut self, e: &Ast) -> Result<Typed> {
        match e {
            Ast::IsNull(x) => Ok(boolean(Expr::IsNull(Box::new(self.any_value(x)?)))),
            Ast::IsNotNull(x) => {
                let t = self.expr(x)?;
                let t = self.settle(t)?;
                Ok(boolean(if t.ty == Type::Record { row_is_not_null(t.expr) } else { not(Expr::IsNull(Box::new(t.expr))) }))
            }
            Ast::IsTrue(x) => Ok(boolean(Expr::IsBool(Box::new(self.condition(x, "IS TRUE")?), true))),
            Ast::IsNotTrue(x) => Ok(boolean(not(Expr::IsBool(Box::new(self.condition(x, "IS NOT TRUE")?), true)))),
            Ast::IsFalse(x) => Ok(boolean(Expr::IsBool(Box::new(self.condition(x, "IS FALSE")?), false))),
            Ast::IsNotFalse(x) => Ok(boolean(not(Expr::IsBool(Box::new(self.condition(x, "IS NOT FALSE")?), false)))),
            Ast::IsUnknown(x) => Ok(boolean(Expr::IsNull(Box::new(self.condition(x, "IS UNKNOWN")?)))),
            Ast::IsNotUnknown(x) => Ok(boolean(not(Expr::IsNull(Box::new(self.condition(x, "IS NOT UNKNOWN")?))))),
            Ast::IsDistinctFrom(a, b) => self.distinct(a, b).map(boolean),
            Ast::IsNotDistinctFrom(a, b) => self.distinct(a, b).map(|e| boolean(not(e))),
            Ast::Between { expr, negated: is_not, low, high } => {
                let mut between = |low: &Ast, high: &Ast| {
                    Ok(Expr::And(vec![self.comparison(expr, ">=", low)?, self.comparison(expr, "<=", high)?]))
                };
                let is_between = match symmetric(low) {
                    None => between(low, high)?,
                    Some(low) => Expr::Or(vec![between(low, high)?, between(high, low)?]),
                };
                Ok(boolean(if *is_not { negated(is_between) } else { is_between }))
            }
            other => unreachable!("no test: {other}"),
        }
    }

    /// Functions whose calls have a syntax of their own.
    fn spelled_call(&mut self, e: &Ast) -> Result<Typed> {
        match e {
            Ast::SimilarTo { negated, expr, pattern, escape_char } => {
                let mut args = vec![self.expr(pattern)?];
                if let Some(e) = escape_char {
                    args.push(self.expr(e)?);
                }
                let pattern = self.call_typed("similar_to_escape", args)?;
                let left = self.expr(expr)?;
                let matched = self.operator_typed("~", left, pattern, expr)?;
                Ok(boolean(if *negated { not(matched.expr) } else { matched.expr }))
            }
            Ast::AtTimeZone { timestamp, time_zone } => self.call("timezone", &[time_zone, timestamp]),
            Ast::Extract { field, expr, .. } => {
                let field =
                    Typed::new(Expr::Const(Datum::Text(field.to_string().to_lowercase().trim_matches('\'').into())), Type::Text);
                let value = self.expr(expr)?;
                self.call_typed("extract", vec![field, value])
            }
            Ast::Ceil { expr, field: ast::CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime) } => {
                self.call("ceil", &[expr])
            }
            Ast::Floor { expr, field: ast::CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime) } => {
                self.call("floor", &[expr])
            }
            Ast::Position { expr, r#in } => self.call("strpos", &[r#in, expr]),
            Ast::Substring { expr, substring_from, substring_for, .. } => {
                let mut args = vec![self.expr(expr)?];
                args.push(match substring_from {
                    Some(from) => self.expr(from)?,
                    None => Typed::new(Expr::Const(Datum::Int(1)), Type::Int4),
                });
                if let Some(n) = substring_for {
                    args.push(self.expr(n)?);
                }
                self.call_typed("substring", args)
            }
            Ast::Trim { trim_where, trim_what, expr, trim_characters } => {
                let name = match trim_where {
                    Some(ast::TrimWhereField::Leading) => "ltrim",
                    Some(ast::TrimWhereField::Trailing) => "rtrim",
                    _ => "btrim",
                };
                let what = trim_what.as_deref().or_else(|| trim_characters.as_ref().and_then(|c| c.first()));
                match what {
                    Some(what) => self.call(name, &[expr, what]),
                    None => self.call(name, &[expr]),
                }
            }
            Ast::Overlay { expr, overlay_what, overlay_from, overlay_for } => match overlay_for {
                Some(n) => self.call("overlay", &[expr, overlay_what, overlay_from, n]),
                None => self.call("overlay", &[expr, overlay_what, overlay_from]),
            },
            other => unreachable!("no call: {other}"),
        }
    }

    fn cast(&mut self, expr: &Ast, data_type: &ast::DataType) -> Result<Typed> {
        let ty = self.data_type(data_type)?;
        if let Ast::Array(a) = unnest(expr)
            && !a.elem.is_empty()
            && ty.element().is_some()
        {
            return self.array_cast(&a.elem, &ty);
        }
        let inner = self.expr(expr)?;
        let cast = self.coerce(inner, &ty, CastContext::Explicit).map_err(|err| self.at(err, expr.span()))?;
        Ok(Typed::new(cast, ty))
    }

    fn collate(&mut self, expr: &Ast, collation: &ast::ObjectName) -> Result<Typed> {
        let name = collation.0.last().and_then(|p| p.as_ident()).map(|i| i.value.as_str()).unwrap_or("");
        if !["default", "c", "posix", "ucs_basic", "c.utf-8", "c.utf8"].iter().any(|c| name.eq_ignore_ascii_case(c)) {
            return Err(Error::sql("42704", format!("collation \"{name}\" for encoding \"UTF8\" does not exist"))
                .hint("Text is ordered by its bytes: the collation \"C\"."));
        }
        let t = self.expr(expr)?;
        self.settle(t)
    }

    /// Binds where any type will do.
    fn any_value(&mut self, e: &Ast) -> Result<Expr> {
        let t = self.expr(e)?;
        Ok(self.settle(t)?.expr)
    }

    pub(crate) fn data_type(&mut self, ty: &ast::DataType) -> Result<Type> {
        crate::catalog::declared::type_from_ast(ty)
    }

    fn value(&mut self, v: &Value) -> Result<Typed> {
        let text = |s: &str| Ok(Typed::new(Expr::Const(Datum::Text(s.into())), Type::Unknown));
        match v {
            Value::Number(n, _) => self.number(n),
            Value::SingleQuotedString(s)
            | Value::EscapedStringLiteral(s)
            | Value::UnicodeStringLiteral(s)
            | Value::NationalStringLiteral(s) => text(s),
            Value::DollarQuotedString(s) => text(&s.value),
            Value::Boolean(b) => Ok(boolean(Expr::Const(Datum::Bool(*b)))),
            Value::Null => Ok(Typed::new(Expr::NULL, Type::Unknown)),
            Value::Placeholder(p) => match p.strip_prefix('$').and_then(|n| n.parse().ok()) {
                Some(n) => self.param(n),
                None => Err(Error::sql("42601", format!("syntax error at or near \"{p}\""))),
            },
            Value::HexStringLiteral(_) | Value::SingleQuotedByteStringLiteral(_) => {
                Err(Error::unsupported("bit strings are not supported"))
            }
            _ => Err(Error::sql("42601", "syntax error in a literal")),
        }
    }

    fn number(&mut self, n: &str) -> Result<Typed> {
        if let Ok(v) = n.parse::<i64>() {
            let ty = if i32::try_from(v).is_ok() { Type::Int4 } else { Type::Int8 };
            return Ok(Typed::new(Expr::Const(Datum::Int(v)), ty));
        }
        let ty = Type::Numeric(None);
        Ok(Typed::new(Expr::Const(Datum::from_text(n, &ty, self.ctx.eval)?), ty))
    }

    /// `INTERVAL '…'`, with fields or without.
    fn interval(&mut self, i: &ast::Interval) -> Result<Typed> {
        let value = self.expr(&i.value)?;
        let Expr::Const(Datum::Text(t)) = &value.expr else {
            return Err(Error::sql("42601", "an INTERVAL literal needs a string"));
        };
        let mut text = t.as_str().to_string();
        if let Some(field) = &i.leading_field
            && text.trim().parse::<f64>().is_ok()
        {
            // `INTERVAL '1' DAY`.
            let unit = i.last_field.as_ref().unwrap_or(field);
            text = format!("{} {}", text.trim(), unit.to_string().to_lowercase());
        }
        if let (Some(ast::DateTimeField::Minute), Some(ast::DateTimeField::Second)) = (&i.leading_field, &i.last_field) {
            text = minutes_first(text);
        }
        let ty = Type::Interval;
        let mut datum = Datum::from_text(&text, &ty, self.ctx.eval).map_err(|e| self.at(e, i.value.span()))?;
        if let (Datum::Interval(v), Some(last)) = (&mut datum, i.last_field.as_ref().or(i.leading_field.as_ref())) {
            *v = v.cut_below(&last.to_string().to_ascii_lowercase(), i.fractional_seconds_precision.or(i.leading_precision));
        }
        Ok(Typed::new(Expr::Const(datum), ty))
    }

    fn unary(&mut self, op: UnaryOperator, e: &Ast) -> Result<Typed> {
        let name = match op {
            UnaryOperator::Not => {
                return Ok(boolean(negated(self.condition(e, "NOT")?)));
            }
            UnaryOperator::Plus => "+",
            UnaryOperator::Minus => {
                // The most negative integer has no positive one: the sign belongs to the literal.
                if let Some((is_negative, n)) = signed(e) {
                    let sign = if is_negative { "" } else { "-" };
                    return self.number(&format!("{sign}{n}"));
                }
                if let Some(power) = of_negative(e) {
                    return self.expr(&power);
                }
                "-"
            }
            UnaryOperator::BitwiseNot => "~",
            UnaryOperator::PGAbs => "@",
            UnaryOperator::PGSquareRoot => "|/",
            UnaryOperator::PGCubeRoot => "||/",
            _ => return Err(Error::unsupported(format!("operator {op} is not supported"))),
        };
        let arg = self.expr(e)?;
        let f = FUNCTIONS.resolve_operator(name, std::slice::from_ref(&arg.ty))?;
        self.apply(f, vec![arg])
    }

    fn binary(&mut self, left: &Ast, op: &BinaryOperator, right: &Ast) -> Result<Typed> {
        if matches!(op, BinaryOperator::And | BinaryOperator::Or) {
            return self.chain(left, op, right);
        }
        let name = operator_name(op)?;
        if let Some(cmp) = Cmp::from_name(&name)
            && let (Some(a), Some(b)) = (fields(left), fields(right))
        {
            return self.compare_rows(&a, cmp, &b, left).map(boolean);
        }
        if let (Some(_), Ast::Subquery(q)) = (fields(left), unnest(right)) {
            return self.quantified_subquery(left, &name, q, Quantifier::Sole).map(boolean);
        }
        let (l, r) = (self.expr(left)?, self.expr(right)?);
        self.operator_typed(&name, l, r, left)
    }

    /// `AND` and `OR` chains are flat, however long.
    fn chain(&mut self, left: &Ast, op: &BinaryOperator, right: &Ast) -> Result<Typed> {
        let word = if *op == BinaryOperator::And { "AND" } else { "OR" };
        let mut rest = vec![right];
        let mut at = left;
        while let Ast::BinaryOp { left, op: o, right } = at
            && o == op
        {
            rest.push(right);
            at = left;
        }
        rest.push(at);
        let items = rest.into_iter().rev().map(|e| self.condition(e, word)).collect::<Result<Vec<_>>>()?;
        Ok(boolean(settled_chain(items, word == "AND")))
    }

    pub(crate) fn operator_typed(&mut self, name: &str, l: Typed, r: Typed, left: &Ast) -> Result<Typed> {
        let f = FUNCTIONS.resolve_operator(name, &[l.ty.clone(), r.ty.clone()]).map_err(|e| self.at_operator(e, left))?;
        self.apply(f, vec![l, r]).map_err(|e| self.at_operator(e, left))
    }

    fn comparison(&mut self, left: &Ast, op: &str, right: &Ast) -> Result<Expr> {
        let (l, r) = (self.expr(left)?, self.expr(right)?);
        Ok(self.operator_typed(op, l, r, left)?.expr)
    }

    /// Casts the arguments and makes the call; comparisons of one type become [`Expr::Compare`].
    pub(crate) fn apply(&mut self, f: functions::Function, args: Vec<Typed>) -> Result<Typed> {
        let ty = f.result.clone();
        let cast: Vec<Expr> = (args.into_iter().zip(&f.args))
            .map(|(a, to)| if is_pseudo(to) { Ok(self.settle(a)?.expr) } else { self.coerce(a, to, CastContext::Implicit) })
            .collect::<Result<_>>()?;
        let cast: Vec<Expr> = match &*f.args {
            // As a text it has no blanks at its end, which do not count.
            [from @ Type::Char(_), Type::Char(_)] if Cmp::from_name(f.name).is_some() => {
                let text = |e| self.convert(e, from.clone(), &Type::Text, CastContext::Implicit);
                cast.into_iter().map(text).collect::<Result<_>>()?
            }
            _ => cast,
        };
        if let Some(cmp) = plain_comparison(&f) {
            let mut cast = cast.into_iter();
            let (Some(a), Some(b)) = (cast.next(), cast.next()) else {
                return Err(Error::internal("a comparison has two sides"));
            };
            return Ok(boolean(Expr::compare(cmp, a, b)));
        }
        if let Some(compared) = self.compared_times(&f, &cast)? {
            return Ok(boolean(compared));
        }
        Ok(Typed::new(Expr::Call(Arc::new(f), cast), ty))
    }

    /// An operand of a comparison, as it is compared: blanks at the end of a `char(n)` do not
    /// count, and as a text it has none.
    fn compared(&mut self, operand: Typed, ty: &Type) -> Result<Expr> {
        let e = self.coerce(operand, ty, CastContext::Implicit)?;
        match ty {
            Type::Char(_) => self.convert(e, ty.clone(), &Type::Text, CastContext::Implicit),
            Type::Array(of) if matches!(**of, Type::Char(_)) => {
                self.convert(e, ty.clone(), &Type::Text.array_of(), CastContext::Implicit)
            }
            _ => Ok(e),
        }
    }

    /// How two types meet in an operator: the operator, and what each side is cast to. Sides that
    /// are compared as they are go through [`Binder::compared`].
    pub(super) fn meets(&mut self, op: &str, left: &Type, right: &Type) -> Result<(Meets, Type, Type)> {
        let f = FUNCTIONS.resolve_operator(op, &[left.clone(), right.clone()])?;
        if f.result != Type::Bool {
            return Err(Error::sql("42809", "op ANY/ALL (array) requires operator to yield boolean"));
        }
        let (l, r) = (f.args[0].clone(), f.args[1].clone());
        Ok((plain_comparison(&f).map_or_else(|| Meets::Call(Arc::new(f)), Meets::Compare), l, r))
    }

    fn distinct(&mut self, a: &Ast, b: &Ast) -> Result<Expr> {
        if let (Some(left), Some(right)) = (fields(a), fields(b)) {
            if left.len() != right.len() {
                return Err(Error::sql("42601", "unequal number of entries in row expressions"));
            }
            let each = left.into_iter().zip(right).map(|(l, r)| self.distinct(l, r));
            return Ok(Expr::Or(each.collect::<Result<_>>()?));
        }
        let (l, r) = (self.expr(a)?, self.expr(b)?);
        let (_, lt, rt) = self.meets("=", &l.ty, &r.ty).map_err(|e| self.at_operator(e, a))?;
        // Dates and times of different types have operators of their own, which convert the smaller
        // one.
        let larger = [Type::Timestamptz, Type::Timestamp].into_iter().find(|t| lt != rt && (lt == *t || rt == *t));
        let (lt, rt) = larger.map_or((lt, rt), |t| (t.clone(), t));
        // As a text it has no blanks at its end, which do not count.
        let (lt, rt) = if matches!((&lt, &rt), (Type::Char(_), Type::Char(_))) { (Type::Text, Type::Text) } else { (lt, rt) };
        let l = self.coerce(l, &lt, CastContext::Implicit)?;
        let r = self.coerce(r, &rt, CastContext::Implicit)?;
        Ok(Expr::Distinct(Box::new((l, r))))
    }

    /// `(a, b) < (c, d)`: element by element, as PostgreSQL's manual 9.24.5 has it.
    fn compare_rows(&mut self, a: &[&Ast], cmp: Cmp, b: &[&Ast], left: &Ast) -> Result<Expr> {
        if a.len() != b.len() {
            return Err(self.at_operator(Error::sql("42601", "unequal number of entries in row expressions"), left));
        }
        let mut pairs = Vec::new();
        for (x, y) in a.iter().zip(b) {
            pairs.push((x, y));
        }
        match cmp {
            Cmp::Eq => Ok(Expr::And(pairs.iter().map(|(x, y)| self.comparison(x, "=", y)).collect::<Result<_>>()?)),
            Cmp::Ne => Ok(Expr::Or(pairs.iter().map(|(x, y)| self.comparison(x, "<>", y)).collect::<Result<_>>()?)),
            _ => {
                // a < c OR (a = c AND b < d): the last element decides with the operator itself.
                let strict = if matches!(cmp, Cmp::Lt | Cmp::Le) { "<" } else { ">" };
                let (last, init) = pairs.split_last().ok_or_else(|| Error::sql("0A000", "cannot compare rows of zero length"))?;
                let mut e = self.comparison(last.0, cmp.name(), last.1)?;
                for (x, y) in init.iter().rev() {
                    let before = self.comparison(x, strict, y)?;
                    let equal = self.comparison(x, "=", y)?;
                    e = Expr::Or(vec![before, Expr::And(vec![equal, e])]);
                }
                Ok(e)
            }
        }
    }

    fn in_list(&mut self, expr: &Ast, list: &[Ast], negated: bool) -> Result<Typed> {
        if let Some(row) = fields(expr) {
            let mut any = Vec::new();
            for item in list {
                let Some(other) = fields(item) else {
                    return Err(Error::sql("42601", "unequal number of entries in row expressions"));
                };
                any.push(self.compare_rows(&row, Cmp::Eq, &other, expr)?);
            }
            return Ok(boolean(if negated { not(Expr::Or(any)) } else { Expr::Or(any) }));
        }
        let left = self.expr(expr)?;
        let items: Vec<Typed> = list.iter().map(|i| self.expr(i)).collect::<Result<_>>()?;
        // PostgreSQL resolves a common type first, and compares one by one if there is none.
        let types: Vec<Type> = std::iter::once(&left.ty).chain(items.iter().map(|i| &i.ty)).cloned().collect();
        if let Ok(common) = select_common_type(&types, "IN")
            && let Ok((Meets::Compare(_), lt, rt)) = self.meets("=", &common, &common)
            && lt == rt
        {
            let left = self.compared(left, &lt)?;
            let span = expr.span();
            let mut coerced = Vec::with_capacity(items.len());
            for (item, ast) in items.into_iter().zip(list) {
                coerced.push(self.compared(item, &lt).map_err(|e| self.at(self.at(e, ast.span()), span))?);
            }
            let e = Expr::In(Box::new(left), coerced);
            return Ok(boolean(if negated { not(e) } else { e }));
        }
        let mut any = Vec::new();
        for item in items {
            any.push(self.operator_typed("=", left.clone(), item, expr)?.expr);
        }
        Ok(boolean(if negated { not(Expr::Or(any)) } else { Expr::Or(any) }))
    }

    fn quantified(&mut self, left: &Ast, op: &BinaryOperator, right: &Ast, all: bool) -> Result<Typed> {
        let name = operator_name(op)?;
        if let Ast::Subquery(q) = unnest(right) {
            let quantifier = if all { Quantifier::All } else { Quantifier::Any };
            return self.quantified_subquery(left, &name, q, quantifier).map(boolean);
        }
        let l = self.expr(left)?;
        let mut array = self.expr(right)?;
        if array.ty == Type::Unknown {
            let element = if l.ty == Type::Unknown { Type::Text } else { l.ty.without_modifier() };
            let ty = element.array_of();
            let expr = self.coerce(array, &ty, CastContext::Implicit).map_err(|e| self.at(e, right.span()))?;
            array = Typed::new(expr, ty);
        }
        let Some(element) = array.ty.element().cloned() else {
            return Err(self.at(Error::sql("42809", "op ANY/ALL (array) requires array on right side"), right.span()));
        };
        let (meets, lt, rt) = self.meets(&name, &l.ty, &element).map_err(|e| self.at_operator(e, left))?;
        let (left, array) = match &meets {
            Meets::Compare(_) => (self.compared(l, &lt)?, self.compared(array, &rt.array_of())?),
            _ => (self.coerce(l, &lt, CastContext::Implicit)?, self.coerce(array, &rt.array_of(), CastContext::Implicit)?),
        };
        Ok(boolean(Expr::Quantified(Box::new(Quantified { left, meets, array, all }))))
    }

    fn quantified_subquery(&mut self, left: &Ast, op: &str, q: &ast::Query, quantifier: Quantifier) -> Result<Expr> {
        let (rel, cols) = self.subquery(q)?;
        let lefts: Vec<Typed> = match fields(left) {
            Some(items) => items.iter().map(|i| self.expr(i)).collect::<Result<_>>()?,
            None => vec![self.expr(left)?],
        };
        if lefts.len() != cols.len() {
            let what = if lefts.len() < cols.len() { "many" } else { "few" };
            return Err(self.at(Error::sql("42601", format!("subquery has too {what} columns")), q.span()));
        }
        let cmp = match (lefts.len(), Cmp::from_name(op)) {
            (0, _) => return Err(Error::sql("42601", "subquery has too few columns")),
            (1, _) => None,
            (_, Some(cmp)) => Some(cmp),
            (_, None) => {
                let unknown = format!("could not determine interpretation of row comparison operator {op}");
                return Err(self.at_operator(Error::unsupported(unknown), left));
            }
        };
        let first = if cmp.is_some() { "=" } else { op };
        let strict = match cmp {
            Some(Cmp::Lt | Cmp::Le) => Some("<"),
            Some(Cmp::Gt | Cmp::Ge) => Some(">"),
            _ => None,
        };
        let (mut left_exprs, mut casts, mut how, mut ordered) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut element = None;
        for (l, c) in lefts.into_iter().zip(&cols) {
            let (meets, lt, rt) = self.meets(first, &l.ty, &c.ty).map_err(|e| self.at_operator(e, left))?;
            if let Some(strict) = strict {
                ordered.push(self.meets(strict, &lt, &rt).map_err(|e| self.at_operator(e, left))?.0);
            }
            let right = Typed::new(Expr::Column(c.id), c.ty.clone());
            if first == "="
                && strict.is_none()
                && let Some((l, right, ty)) = self.as_same_times(&l, &right)?
            {
                left_exprs.push(l);
                casts.push((self.fresh(), right));
                how.push(Meets::Compare(Cmp::Eq));
                element = Some(ty);
                continue;
            }
            let (l, right) = match &meets {
                Meets::Compare(_) => (self.compared(l, &lt)?, self.compared(right, &rt)?),
                _ => (self.coerce(l, &lt, CastContext::Implicit)?, self.coerce(right, &rt, CastContext::Implicit)?),
            };
            left_exprs.push(l);
            casts.push((self.fresh(), right));
            how.push(meets);
            element = Some(rt);
        }
        let meets = match cmp {
            Some(cmp) => Meets::Row(Arc::new(RowMeets { cmp, equal: how, strict: ordered })),
            None => how.remove(0),
        };
        let rel = Rel::Project { input: Box::new(rel), exprs: casts };
        // Rows that the subquery locks are chosen by it alone: once they are, an index finds those
        // of their keys.
        let is_scalar = |ty: &Type| ty.element().is_none() && !matches!(ty, Type::Char(_) | Type::Record);
        if quantifier == Quantifier::Any
            && matches!(meets, Meets::Compare(Cmp::Eq))
            && matches!(left_exprs[..], [Expr::Column(_)])
            && super::unnest::is_locked(&rel)
            && rel.free_columns().is_empty()
            && let Some(element) = element.filter(is_scalar)
            && let Some(left) = left_exprs.pop()
        {
            let array = self.make_subquery(SubqueryKind::Array(element), rel);
            return Ok(Expr::Quantified(Box::new(Quantified { left, meets, array, all: false })));
        }
        let rel = self.claimed_once(rel);
        Ok(self.make_subquery(SubqueryKind::Quantified { left: left_exprs, meets, quantifier }, rel))
    }

    /// Rows that are locked where they are read are read once: as those of a common table
    /// expression, with which a join may look for others.
    fn claimed_once(&mut self, rel: Rel) -> Rel {
        if !super::unnest::is_locked(&rel) || !rel.free_columns().is_empty() || matches!(rel, Rel::Cte { .. }) {
            return rel;
        }
        let cols = rel.cols().iter().map(|_| self.fresh()).collect();
        let cte = Cte { id: self.slot(), name: "any_subquery".into(), body: rel, step: None, is_materialized: true };
        Rel::Cte { cte: Arc::new(cte), cols }
    }

    pub(crate) fn make_subquery(&mut self, kind: SubqueryKind, rel: Rel) -> Expr {
        Expr::Subquery(Box::new(Subquery { slot: self.slot(), kind, body: SubqueryBody::Logical(Arc::new(rel)) }))
    }

    fn like(&mut self, op: &str, negated: bool, e: &Ast, pattern: &Ast, escape: Option<&Ast>) -> Result<Typed> {
        let l = self.expr(e)?;
        let mut p = self.expr(pattern)?;
        if let Some(escape) = escape {
            let escape = self.expr(escape)?;
            p = self.call_typed("like_escape", vec![p, escape])?;
        }
        let matched = self.operator_typed(op, l, p, e)?;
        Ok(boolean(if negated { not(matched.expr) } else { matched.expr }))
    }

    fn case(&mut self, operand: Option<&Ast>, conditions: &[ast::CaseWhen], otherwise: Option<&Ast>) -> Result<Typed> {
        let mut whens = Vec::new();
        for w in conditions {
            let cond = match operand {
                Some(o) => self.comparison(o, "=", &w.condition)?,
                None => self.condition(&w.condition, "CASE/WHEN")?,
            };
            whens.push((cond, self.expr(&w.result)?));
        }
        let otherwise = otherwise.map(|e| self.expr(e)).transpose()?;
        let types: Vec<Type> = otherwise.iter().chain(whens.iter().map(|w| &w.1)).map(|t| t.ty.clone()).collect();
        let ty = select_common_type(&types, "CASE")?;
        let whens =
            whens.into_iter().map(|(c, r)| Ok((c, self.coerce(r, &ty, CastContext::Implicit)?))).collect::<Result<Vec<_>>>()?;
        let otherwise = otherwise.map(|e| self.coerce(e, &ty, CastContext::Implicit)).transpose()?.map(Box::new);
        Ok(Typed::new(case(whens, otherwise), ty))
    }

    fn array(&mut self, items: &[Ast]) -> Result<Typed> {
        let items: Vec<Typed> = items.iter().map(|i| self.expr(i)).collect::<Result<_>>()?;
        if items.is_empty() {
            // Its type comes from a cast around it; without one PostgreSQL refuses, and text is
            // what a cast converts from.
            return Ok(Typed::new(Expr::Const(Datum::Text("{}".into())), Type::Unknown));
        }
        let types: Vec<Type> = items.iter().map(|i| i.ty.clone()).collect();
        let ty = select_common_type(&types, "ARRAY")?;
        let items = items.into_iter().map(|i| self.coerce(i, &ty, CastContext::Implicit)).collect::<Result<_>>()?;
        let element = ty.element().cloned().unwrap_or_else(|| ty.clone());
        Ok(Typed::new(Expr::Array(element, items), ty.array_of()))
    }

    /// `ARRAY[…]` under a cast: each element is cast, as if it stood alone.
    fn array_cast(&mut self, items: &[Ast], ty: &Type) -> Result<Typed> {
        let element = ty.element().expect("the type of an array");
        let is_nested = items.iter().any(|i| matches!(unnest(i), Ast::Array(_)));
        let mut cast = Vec::with_capacity(items.len());
        for item in items {
            let value = match unnest(item) {
                Ast::Array(a) if !a.elem.is_empty() => self.array_cast(&a.elem, ty)?,
                _ => self.expr(item)?,
            };
            let to = if is_nested || value.ty.element().is_some() { ty } else { element };
            cast.push(self.coerce(value, to, CastContext::Explicit).map_err(|err| self.at(err, item.span()))?);
        }
        Ok(Typed::new(Expr::Array(element.clone(), cast), ty.clone()))
    }

    fn access(&mut self, root: &Ast, chain: &[ast::AccessExpr]) -> Result<Typed> {
        let mut value = self.expr(root)?;
        let mut indexes = Vec::new();
        for (i, step) in chain.iter().enumerate() {
            match step {
                ast::AccessExpr::Subscript(ast::Subscript::Index { index }) => {
                    if value.ty == Type::Jsonb {
                        let key = self.expr(index)?;
                        if !matches!(key.ty, Type::Int2 | Type::Int4 | Type::Text | Type::Varchar(_) | Type::Unknown) {
                            let e = Error::sql("42804", format!("subscript type {} is not supported", key.ty.base_name()));
                            let e = e.hint("jsonb subscript must be coercible to either integer or text.");
                            return Err(self.at(e, index.span()));
                        }
                        // A number in a text is a place in an array, as in a path.
                        let key = self.coerce(key, &Type::Text, CastContext::Explicit)?;
                        let step = Typed::new(Expr::Array(Type::Text, vec![key]), Type::Text.array_of());
                        value = self.operator_typed("#>", value, step, root)?;
                        continue;
                    }
                    indexes.push(self.expr_as(index, &Type::Int4, CastContext::Assignment)?);
                }
                ast::AccessExpr::Subscript(ast::Subscript::Slice { lower_bound, upper_bound, stride: None })
                    if i + 1 == chain.len() =>
                {
                    let l = lower_bound.as_ref().map(|e| self.expr_as(e, &Type::Int4, CastContext::Assignment)).transpose()?;
                    let u = upper_bound.as_ref().map(|e| self.expr_as(e, &Type::Int4, CastContext::Assignment)).transpose()?;
                    self.element_of(&value)?;
                    return Ok(Typed::new(Expr::Slice(Box::new(value.expr), l.map(Box::new), u.map(Box::new)), value.ty));
                }
                ast::AccessExpr::Dot(Ast::Identifier(field)) if indexes.is_empty() => value = self.field(root, value, field)?,
                _ => return Err(self.at(Error::unsupported("this subscript is not supported"), root.span())),
            }
        }
        if indexes.is_empty() {
            return Ok(value);
        }
        let element = self.element_of(&value)?;
        Ok(Typed::new(Expr::Subscript(Box::new(value.expr), indexes), element))
    }
    fn element_of(&self, array: &Typed) -> Result<Type> {
        let message = || format!("cannot subscript type {} because it does not support subscripting", array.ty.base_name());
        array.ty.element().cloned().ok_or_else(|| Error::sql("42804", message()))
    }
    /// `(row).field`, where the row is a relation's.
    fn field(&mut self, root: &Ast, value: Typed, field: &ast::Ident) -> Result<Typed> {
        if let Ast::Identifier(table) = unnest(root) {
            return self.column(&[table.clone(), field.clone()]);
        }
        let message =
            format!("column notation .{} applied to type {}, which is not a composite type", field.value, value.ty.base_name());
        Err(self.at(Error::sql("42809", message), field.span))
    }
}

pub(crate) fn boolean(expr: Expr) -> Typed {
    Typed::new(expr, Type::Bool)
}

pub(crate) fn not(e: Expr) -> Expr {
    match e {
        Expr::Not(inner) => *inner,
        Expr::Compare(cmp, sides) => Expr::Compare(cmp.negated(), sides),
        e => Expr::Not(Box::new(e)),
    }
}

/// The same of an `AND` and an `OR` of a few: what each says of a column can be looked up.
fn negated(e: Expr) -> Expr {
    match e {
        Expr::Or(items) if items.len() <= SHORT_LIST_MAX => Expr::And(items.into_iter().map(negated).collect()),
        Expr::And(items) if items.len() <= SHORT_LIST_MAX => Expr::Or(items.into_iter().map(negated).collect()),
        e => not(e),
    }
}

/// A `CASE` without the branches that are never taken.
fn case(whens: Vec<(Expr, Expr)>, mut otherwise: Option<Box<Expr>>) -> Expr {
    let mut kept = Vec::new();
    for (when, then) in whens {
        match when {
            Expr::Const(Datum::Bool(true)) => {
                otherwise = Some(Box::new(then));
                break;
            }
            Expr::Const(Datum::Bool(false) | Datum::Null) => {}
            when => kept.push((when, then)),
        }
    }
    match kept.is_empty() {
        true => otherwise.map_or(Expr::NULL, |e| *e),
        false => Expr::Case(kept, otherwise),
    }
}

/// The fields of a row that is written out, if they can be told one by one.
fn fields(e: &Ast) -> Option<Vec<&Ast>> {
    row_items(e).ok().flatten().filter(|items| !items.is_empty())
}

/// A row is not null if none of its fields is, so one with some `NULL`s is neither null nor not
/// null (PostgreSQL manual, 9.2).
fn row_is_not_null(row: Expr) -> Expr {
    fn body(_: &functions::Call<'_>, args: &[Datum]) -> Result<Datum> {
        Ok(Datum::Bool(match &args[0] {
            Datum::Record(r) => !r.values.iter().any(Datum::is_null),
            other => !other.is_null(),
        }))
    }
    if let Expr::Row(_, fields) = row {
        return Expr::And(fields.into_iter().map(|f| not(Expr::IsNull(Box::new(f)))).collect());
    }
    let f = functions::Function {
        name: "row_is_not_null",
        body,
        args: vec![Type::Record],
        result: Type::Bool,
        strict: false,
        volatility: functions::Volatility::Immutable,
        dear_above: i64::MAX,
    };
    Expr::Call(Arc::new(f), vec![row])
}

/// The first bound of `BETWEEN SYMMETRIC`, which `parse::rewrite` writes as `BETWEEN NOT NOT`.
fn symmetric(low: &Ast) -> Option<&Ast> {
    match low {
        Ast::UnaryOp { op: ast::UnaryOperator::Not, expr } => match &**expr {
            Ast::UnaryOp { op: ast::UnaryOperator::Not, expr } => Some(expr),
            _ => None,
        },
        _ => None,
    }
}

/// A function that does nothing but compare two values in the order of datums.
/// A conjunction, or a disjunction, without what is known to change nothing.
fn settled_chain(mut items: Vec<Expr>, is_and: bool) -> Expr {
    let decides = Expr::Const(Datum::Bool(!is_and));
    if items.contains(&decides) {
        return decides;
    }
    let says_nothing = Expr::Const(Datum::Bool(is_and));
    items.retain(|e| *e != says_nothing);
    match items.len() {
        0 => says_nothing,
        1 => items.remove(0),
        _ if is_and => Expr::And(items),
        _ => Expr::Or(items),
    }
}

fn plain_comparison(f: &functions::Function) -> Option<Cmp> {
    let cmp = Cmp::from_name(f.name)?;
    let [a, b] = f.args.as_slice() else { return None };
    let ordered = !matches!(a, Type::Record | Type::Json | Type::Jsonb | Type::Unknown);
    (ordered && (a.same_base(b) || share_representation(a, b))).then_some(cmp)
}

/// Types whose values are the same datums: an index on one answers for the other.
fn share_representation(a: &Type, b: &Type) -> bool {
    let int = |t: &Type| matches!(t, Type::Int2 | Type::Int4 | Type::Int8);
    let float = |t: &Type| matches!(t, Type::Float4 | Type::Float8);
    let text = |t: &Type| matches!(t, Type::Text | Type::Varchar(_) | Type::Name);
    (int(a) && int(b)) || (float(a) && float(b)) || (text(a) && text(b))
}

fn is_pseudo(t: &Type) -> bool {
    *t == Type::Unknown
}

fn shorten(s: &str) -> String {
    s.chars().take(60).collect()
}

fn operator_name(op: &BinaryOperator) -> Result<String> {
    Ok(match op {
        BinaryOperator::PGCustomBinaryOperator(path) => path.last().cloned().unwrap_or_default(),
        BinaryOperator::Custom(name) => name.clone(),
        BinaryOperator::NotEq => "<>".into(),
        BinaryOperator::PGLikeMatch => "~~".into(),
        BinaryOperator::PGILikeMatch => "~~*".into(),
        BinaryOperator::PGNotLikeMatch => "!~~".into(),
        BinaryOperator::PGNotILikeMatch => "!~~*".into(),
        BinaryOperator::Xor | BinaryOperator::MyIntegerDivide | BinaryOperator::DuckIntegerDivide => {
            return Err(Error::sql("42601", format!("syntax error at or near \"{op}\"")));
        }
        op => op.to_string(),
    })
}

/// A number as it is written, and whether it has a sign, in parentheses or not.
fn signed(e: &Ast) -> Option<(bool, &str)> {
    match e {
        Ast::Value(ast::ValueWithSpan { value: Value::Number(n, _), .. }) => Some((false, n)),
        Ast::Nested(e) => signed(e),
        Ast::UnaryOp { op: UnaryOperator::Minus, expr } => signed(expr).map(|(is_negative, n)| (!is_negative, n)),
        _ => None,
    }
}

/// A sign belongs to what is raised to a power: `-2 ^ 2` is four. The parser takes it for the sign
/// of the power.
fn of_negative(power: &Ast) -> Option<Ast> {
    let Ast::BinaryOp { left, op: BinaryOperator::PGExp, right } = power else { return None };
    let negative = || Ast::UnaryOp { op: UnaryOperator::Minus, expr: left.clone() };
    let left = Box::new(of_negative(left).unwrap_or_else(negative));
    Some(Ast::BinaryOp { left, op: BinaryOperator::PGExp, right: right.clone() })
}

/// `MINUTE TO SECOND` takes two numbers for minutes and seconds; elsewhere they are hours and
/// minutes (PostgreSQL manual, 8.5.4).
fn minutes_first(text: String) -> String {
    let bare = text.trim();
    let (sign, digits) = match bare.strip_prefix(['-', '+']) {
        Some(rest) => bare.split_at(bare.len() - rest.len()),
        None => ("", bare),
    };
    let is_pair = digits.bytes().all(|b| b.is_ascii_digit() || b == b':') && digits.matches(':').count() == 1;
    if is_pair { format!("{sign}0:{digits}") } else { text }
}
