//! What several statements refuse.

use crate::catalog::Table;
use crate::catalog::names::Name;
use crate::catalog::relation::Relation;
use meridian_base::{Error, Result};
use sqlparser::ast::ObjectName;

/// 55000 for a table whose locality is changing.
pub(super) fn refuse_in_change(table: &Table) -> Result<()> {
    if let Some(ordinal) = table.splitting() {
        let column = &table.columns[ordinal as usize].name;
        let message =
            format!("column \"{column}\" of table \"{}\" is becoming an escrow column, or ceases to be one", table.name);
        return Err(Error::sql("55006", message).hint("SHOW JOBS shows the statement that does it."));
    }
    if table.moving.is_none() {
        return Ok(());
    }
    Err(Error::sql("55000", format!("the locality of table \"{}\" is being changed", table.name))
        .hint("Try again when that is done."))
}

/// 2BP01 if anything depends on what is to be dropped.
pub(super) fn refuse_dependents(what: &str, dependents: Vec<String>) -> Result<()> {
    if dependents.is_empty() {
        return Ok(());
    }
    Err(Error::sql("2BP01", format!("cannot drop {what} because other objects depend on it"))
        .detail(dependents.join("\n"))
        .hint("Use DROP ... CASCADE to drop the dependent objects too."))
}

/// 42809 for a relation of another kind, with PostgreSQL's hint.
pub(super) fn wrong_kind(name: &ObjectName, found: &Relation, wanted: &str) -> Error {
    if let Relation::System(t) = found {
        return Error::sql("42501", format!("permission denied: \"{}\" is a system catalog", t.name));
    }
    let name = Name::from_ast(name).map(|n| n.name).unwrap_or_default();
    let article = if wanted == "index" { "an" } else { "a" };
    let found_kind = found.kind();
    let found_article = if found_kind == "index" { "an" } else { "a" };
    Error::sql("42809", format!("\"{name}\" is not {article} {wanted}"))
        .hint(format!("Use DROP {} to remove {found_article} {found_kind}.", found_kind.to_uppercase()))
}
