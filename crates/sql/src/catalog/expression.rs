//! Expressions that the catalog keeps: defaults, checks, generated columns.
//!
//! They are kept as SQL text, normalised a little so that psql shows what PostgreSQL shows: a
//! string literal default carries its type. A sequence is named by its oid
//! (`nextval('16500'::regclass)`), so that renaming it changes nothing; `pg_get_expr` shows its
//! name.

use crate::catalog::names::Name;
use crate::catalog::relation::Relation;
use crate::catalog::{Column, ColumnState};
use crate::parse::fold;
use crate::types::Type;
use crate::types::functions::text::needs_quotes;
use meridian_base::{Error, Result};
use sqlparser::ast::{self, Expr, Visit, VisitMut, Visitor, VisitorMut};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Parses an expression that the catalog keeps.
pub fn parse_expression(text: &str) -> Result<Expr> {
    crate::parse::parse_expression(text).map_err(|e| Error::internal(format!("stored expression \"{text}\": {}", e.message())))
}

/// An expression as `CHECK (…)` and `GENERATED … AS (…)` show it: in parentheses if it is more than
/// a name or a call.
pub fn constraint_text(expression: &str) -> String {
    match parse_expression(expression) {
        Ok(Expr::Nested(_) | Expr::Identifier(_) | Expr::Function(_)) | Err(_) => expression.to_string(),
        Ok(_) => format!("({expression})"),
    }
}

/// What of an expression matters to who keeps it.
#[derive(Default)]
pub(crate) struct Facts {
    /// Names used as columns, in order of first use.
    pub columns: Vec<String>,
    has_subquery: bool,
    has_parameter: bool,
    /// It names a relation, a type or a function by `regclass` and its kin, which the name may
    /// cease to be.
    names_object: bool,
}

impl Visitor for Facts {
    type Break = ();
    fn pre_visit_expr(&mut self, e: &Expr) -> ControlFlow<()> {
        match e {
            Expr::Identifier(i) if !is_niladic(i) => self.column(fold(i)),
            Expr::CompoundIdentifier(parts) => {
                if let Some(last) = parts.last() {
                    self.column(fold(last));
                }
            }
            Expr::Cast { data_type, .. } | Expr::TypedString(ast::TypedString { data_type, .. })
                if data_type.to_string().to_ascii_lowercase().starts_with("reg") =>
            {
                self.names_object = true;
            }
            Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => self.has_subquery = true,
            Expr::Value(v) if matches!(v.value, ast::Value::Placeholder(_)) => self.has_parameter = true,
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl Facts {
    pub(crate) fn of(e: &Expr) -> Facts {
        let mut facts = Facts::default();
        let _ = e.visit(&mut facts);
        facts
    }
    fn column(&mut self, name: String) {
        if !self.columns.contains(&name) {
            self.columns.push(name);
        }
    }
    /// The same where what the name means would have to stay what it is.
    pub(crate) fn check_lasting(&self, what: &str) -> Result<()> {
        if self.names_object {
            return Err(Error::unsupported(format!("cannot name a database object in {what}")));
        }
        self.check(what)
    }
    /// `what`: «DEFAULT expressions», «check constraints», …
    pub(crate) fn check(&self, what: &str) -> Result<()> {
        if self.has_subquery {
            return Err(Error::unsupported(format!("cannot use subquery in {what}")));
        }
        if self.has_parameter {
            return Err(Error::sql("42P02", format!("there is no parameter $1 in {what}")));
        }
        Ok(())
    }
}

/// The names that an expression uses as columns.
pub fn columns_named(e: &Expr) -> Vec<String> {
    Facts::of(e).columns
}

/// Names without parentheses that are functions, where the parser leaves them as identifiers.
fn is_niladic(i: &ast::Ident) -> bool {
    i.quote_style.is_none()
        && matches!(
            i.value.to_ascii_lowercase().as_str(),
            "current_date"
                | "current_time"
                | "current_timestamp"
                | "localtime"
                | "localtimestamp"
                | "current_user"
                | "current_role"
                | "session_user"
                | "user"
                | "current_catalog"
                | "current_schema"
        )
}

/// Checks that every column an expression names exists. Returns their ordinals.
pub(crate) fn resolve_columns(facts: &Facts, columns: &[Column], own: &str) -> Result<BTreeSet<u32>> {
    let is_live = |c: &Column| c.state != ColumnState::Dropped && !c.state.is_being_added();
    let live = |name: &String| columns.iter().position(|c| c.name == *name && is_live(c));
    let missing = |name: &String| Error::sql("42703", format!("column \"{name}\" does not exist")).table(own);
    facts.columns.iter().map(|name| live(name).map(|i| i as u32).ok_or_else(|| missing(name))).collect()
}

/// The text of a default, after the checks that need no types.
pub(crate) fn default_text(e: &Expr, ty: &Type, find: &dyn Fn(&Name) -> Result<Relation>) -> Result<String> {
    let facts = Facts::of(e);
    facts.check("DEFAULT expression")?;
    if !facts.columns.is_empty() {
        return Err(Error::unsupported("cannot use column reference in DEFAULT expression"));
    }
    let mut e = e.clone();
    pin_sequences(&mut e, find)?;
    let text = match &e {
        Expr::Value(v) => match &v.value {
            ast::Value::SingleQuotedString(_) => format!("{e}::{}", ty.name()),
            _ => e.to_string(),
        },
        _ => e.to_string(),
    };
    Ok(text)
}

/// Replaces the names of sequences by their oids.
fn pin_sequences(e: &mut Expr, find: &dyn Fn(&Name) -> Result<Relation>) -> Result<()> {
    struct Pin<'f>(&'f dyn Fn(&Name) -> Result<Relation>);
    impl VisitorMut for Pin<'_> {
        type Break = Error;
        fn pre_visit_expr(&mut self, e: &mut Expr) -> ControlFlow<Error> {
            if let Expr::Function(f) = e
                && f.name.0.last().and_then(|p| p.as_ident()).is_some_and(|i| fold(i) == "nextval")
                && let ast::FunctionArguments::List(list) = &mut f.args
                && let [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(argument))] = &mut list.args[..]
                && let Some(text) = literal_text(argument)
            {
                match Name::parse(&text).and_then(|name| (self.0)(&name)) {
                    Ok(relation) => match parse_expression(&pinned(relation.oid())) {
                        Ok(pinned) => *argument = pinned,
                        Err(e) => return ControlFlow::Break(e),
                    },
                    Err(e) => return ControlFlow::Break(e),
                }
            }
            ControlFlow::Continue(())
        }
    }
    match VisitMut::visit(e, &mut Pin(find)) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(e) => Err(e),
    }
}

/// Whether a string literal of an expression is this text.
pub fn has_literal(text: &str, wanted: &str) -> Result<bool> {
    struct Find<'a>(&'a str);
    impl Visitor for Find<'_> {
        type Break = ();
        fn pre_visit_expr(&mut self, e: &Expr) -> ControlFlow<()> {
            match literal_text(e).is_some_and(|found| found == self.0) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
    }
    Ok(parse_expression(text)?.visit(&mut Find(wanted)).is_break())
}

/// A string literal, with or without `::regclass` behind it.
fn literal_text(e: &Expr) -> Option<String> {
    match e {
        Expr::Value(v) => match &v.value {
            ast::Value::SingleQuotedString(s) => Some(s.clone()),
            _ => None,
        },
        Expr::Cast { expr, data_type: ast::DataType::Regclass | ast::DataType::Text, .. } => literal_text(expr),
        Expr::Nested(e) => literal_text(e),
        _ => None,
    }
}

/// How a relation is named in a stored expression.
pub(crate) fn pinned(oid: u32) -> String {
    format!("'{oid}'::regclass")
}

/// What every stored expression contains that names a relation: the part of [`pinned`] before the
/// type, which is shown in either case.
pub(crate) fn pin_mark(oid: u32) -> String {
    format!("'{oid}'::")
}

/// A stored expression after a column was renamed.
pub(crate) fn rename_column(text: &str, from: &str, to: &str) -> Result<String> {
    struct Rename<'n>(&'n str, ast::Ident);
    impl VisitorMut for Rename<'_> {
        type Break = ();
        fn pre_visit_expr(&mut self, e: &mut Expr) -> ControlFlow<()> {
            match e {
                Expr::Identifier(i) if fold(i) == self.0 => *i = self.1.clone(),
                Expr::CompoundIdentifier(parts) => {
                    if let Some(last) = parts.last_mut()
                        && fold(last) == self.0
                    {
                        *last = self.1.clone();
                    }
                }
                _ => {}
            }
            ControlFlow::Continue(())
        }
    }
    let mut e = parse_expression(text)?;
    let _ = VisitMut::visit(&mut e, &mut Rename(from, quoted_ident(to)));
    Ok(e.to_string())
}

/// An identifier, quoted if it must be.
pub(crate) fn quoted_ident(name: &str) -> ast::Ident {
    if needs_quotes(name) { ast::Ident::with_quote('"', name) } else { ast::Ident::new(name) }
}
