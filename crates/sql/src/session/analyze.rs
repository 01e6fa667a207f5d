//! `ANALYZE`, and the part of `VACUUM` that is one: see [`crate::analyze`].
//!
//! It is no part of a transaction: in a block, or after other statements of a query string, it
//! counts what is committed, and keeps what it has found whatever becomes of them.

use super::Session;
use super::output::Output;
use super::run::interruptible;
use crate::analyze::{self, Pace};
use crate::catalog::names::Name;
use crate::catalog::relation::{Relation, TableRef};
use crate::env::Environment;
use crate::parse::Analyze;
use crate::plan::{PlanContext, TablePlan};
use meridian_base::{Error, Result};

impl<E: Environment> Session<E> {
    /// `verb`: what was asked for, `vacuum` or `analyze`.
    pub(super) async fn run_analyze(&mut self, what: &Analyze, verb: &str, out: &mut dyn Output) -> Result<()> {
        if self.block.as_ref().is_some_and(|b| b.ddl.is_some()) {
            return Err(Error::unsupported("ANALYZE in a transaction block with schema changes is not supported")
                .hint("Run it when the block has committed."));
        }
        if self.block.as_ref().is_some_and(|b| !b.explicit && b.statements == 0) {
            self.commit_block().await?;
        }
        // A table that somebody has just made is not to be missed.
        interruptible(&self.cancel, self.env.catch_up()).await?;
        for (table, ordinals) in self.to_analyze(what, verb, out)? {
            let catalog = self.env.catalog();
            // It was dropped meanwhile.
            let Some(table) = catalog.table_by_id(table.id) else { continue };
            let schema = catalog.schema_by_id(table.schema).map_or_else(String::new, |s| format!("{}.", s.name));
            if what.is_verbose {
                self.notice(out, "INFO", "00000", format!("analyzing \"{schema}{}\"", table.name));
            }
            let plan = TablePlan::new(&table, PlanContext { catalog: &catalog, names: &self.names, eval: &self.eval })?;
            let (env, id) = (&self.env, self.options.id);
            let work = async {
                let found = analyze::read(env, &plan, &ordinals, id, Pace::Full).await?;
                let rows = found.rows;
                analyze::keep(env, &[(table.id, found)]).await?;
                Ok(rows)
            };
            let rows = interruptible(&self.cancel, work).await?;
            if what.is_verbose {
                self.notice(out, "INFO", "00000", format!("\"{}\": scanned {rows} rows", table.name));
            }
        }
        Ok(())
    }

    /// The tables that are named, or all of the database, with the ordinals of their columns.
    pub(super) fn to_analyze(&self, what: &Analyze, verb: &str, out: &mut dyn Output) -> Result<Vec<(TableRef, Vec<u32>)>> {
        let catalog = self.env.catalog();
        let who = catalog.authority_of(&self.names);
        let database = catalog.database(&self.names.database)?.id;
        let may = |t: &TableRef| catalog.owns(&who, t.id) || catalog.owns(&who, database);
        let may_system = catalog.owns(&who, database);
        if what.tables.is_empty() {
            let is_here = |t: &TableRef| catalog.schema_by_id(t.schema).is_some_and(|s| s.database == database);
            let tables = catalog.descriptors.values().filter_map(TableRef::new).filter(is_here).filter(|t| may(t));
            return Ok(tables.map(|t| (t.clone(), analyze::ordinals(&t))).collect());
        }
        let mut tables = Vec::with_capacity(what.tables.len());
        for (name, columns) in &what.tables {
            let table = match catalog.relation(&self.names, &Name::from_ast(name)?)? {
                Relation::Table(table) if may(&table) => table,
                Relation::Table(table) => {
                    let message = format!("skipping \"{}\" --- only table or database owner can {verb} it", table.name);
                    self.notice(out, "WARNING", "01000", message);
                    continue;
                }
                // Their rows are computed.
                Relation::System(_) if may_system => continue,
                Relation::System(table) => {
                    let message = format!("skipping \"{}\" --- only superuser or database owner can {verb} it", table.name);
                    self.notice(out, "WARNING", "01000", message);
                    continue;
                }
                // As PostgreSQL: a warning, and the others are analyzed.
                Relation::View(view) => {
                    let message = format!("skipping \"{}\" --- cannot {verb} non-tables or special system tables", view.name);
                    self.notice(out, "WARNING", "01000", message);
                    continue;
                }
                _ => {
                    let message = format!("skipping \"{name}\" --- cannot {verb} non-tables or special system tables");
                    self.notice(out, "WARNING", "01000", message);
                    continue;
                }
            };
            let mut ordinals = Vec::with_capacity(columns.len());
            for column in columns {
                let Some((ordinal, _)) = table.live_columns().find(|(_, c)| c.name == *column) else {
                    let message = format!("column \"{column}\" of relation \"{}\" does not exist", table.name);
                    return Err(Error::sql("42703", message));
                };
                if ordinals.contains(&ordinal) {
                    let message = format!("column \"{column}\" of relation \"{}\" appears more than once", table.name);
                    return Err(Error::sql("42701", message));
                }
                ordinals.push(ordinal);
            }
            if columns.is_empty() {
                ordinals = analyze::ordinals(&table);
            }
            tables.push((table, ordinals));
        }
        Ok(tables)
    }
}
