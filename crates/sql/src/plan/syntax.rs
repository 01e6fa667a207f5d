//! Readings of sqlparser's tree that several binders share.

use crate::catalog::names::Name;
use meridian_base::{Error, Result};
use sqlparser::ast::{self, Expr as Ast, FunctionArg, FunctionArgExpr};

pub(crate) fn unnest(mut e: &Ast) -> &Ast {
    while let Ast::Nested(inner) = e {
        e = inner;
    }
    e
}

/// The fields of `ROW(…)` or `(…, …)`.
pub(crate) fn row_items(e: &Ast) -> Result<Option<Vec<&Ast>>> {
    match unnest(e) {
        Ast::Tuple(items) => Ok(Some(items.iter().collect())),
        Ast::Function(f) => match (&f.args, f.name.0.as_slice()) {
            (ast::FunctionArguments::List(list), [name])
                if name.as_ident().is_some_and(|n| n.quote_style.is_none() && n.value.eq_ignore_ascii_case("row")) =>
            {
                arguments(list).map(Some)
            }
            _ => Ok(None),
        },
        _ => Ok(None),
    }
}

/// A function's name without `pg_catalog.`.
pub(crate) fn function_name(name: &ast::ObjectName) -> Result<String> {
    let name = Name::from_ast(name)?;
    match name.schema.as_deref() {
        None | Some("pg_catalog") => Ok(name.name),
        Some(s @ ("information_schema" | "crdb_internal")) => Ok(format!("{s}.{}", name.name)),
        Some(s) => Err(Error::sql("42883", format!("function {s}.{} does not exist", name.name))
            .hint("No function matches the given name and argument types. You might need to add explicit type casts.")),
    }
}

pub(super) fn is_star(list: &ast::FunctionArgumentList) -> bool {
    matches!(list.args.as_slice(), [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)])
}

/// Positional arguments; `*` alone is no argument.
pub(crate) fn arguments(list: &ast::FunctionArgumentList) -> Result<Vec<&Ast>> {
    if is_star(list) {
        return Ok(Vec::new());
    }
    list.args.iter().map(argument).collect()
}

pub(crate) fn argument(a: &FunctionArg) -> Result<&Ast> {
    match a {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => Ok(e),
        FunctionArg::Named { .. } | FunctionArg::ExprNamed { .. } => Err(Error::unsupported("named arguments are not supported")),
        _ => Err(Error::sql("42601", "syntax error at or near \"*\"")),
    }
}
