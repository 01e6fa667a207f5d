//! A statement's text tree to a plan that runs.

mod api;

pub use api::*;

use crate::catalog::lookup::TableRef;
use crate::parse::Statement;
use crate::types::Type;
use meridian_base::{Error, Result};

/// How a statement runs.
pub(crate) enum Plan {}

/// Whether a statement is one that [`prepare`] takes: queries, DML, `EXPLAIN` of them. Everything else is DDL or the session's.
pub fn is_plannable(statement: &Statement) -> bool {
    use crate::parse::{Kind, ast::Statement as S};
    match &statement.kind {
        Kind::Sql(s) => matches!(**s, S::Query(_) | S::Insert(_) | S::Update(_) | S::Delete(_) | S::Merge(_) | S::Explain { .. }),
        _ => false,
    }
}

/// Binds and plans a statement. `param_types`: what the client declared; `None`, or too few, are inferred.
pub fn prepare(statement: &Statement, ctx: &PlanContext, param_types: &[Option<Type>]) -> Result<Prepared> {
    let _ = (statement, ctx, param_types);
    Err(Error::internal("planning is not linked in yet"))
}

/// An `INSERT` of rows of values for these columns, `$1` for the first: what `COPY FROM` runs through
/// [`crate::exec::insert_rows`].
pub fn prepare_insert(table: &TableRef, ordinals: &[u32], ctx: &PlanContext) -> Result<Prepared> {
    let _ = (table, ordinals, ctx);
    Err(Error::internal("planning is not linked in yet"))
}
