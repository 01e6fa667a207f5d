//! DDL: a statement and a catalog to a change and the work that follows it.
//!
//! [`derive`] is pure. What it returns is one [`CatalogChange`], to be committed as one step, and
//! the [`Job`]s that bring the database to where the statement promised it: building an index,
//! validating a constraint, deleting what nobody can reach any more. A new index starts as
//! `DeleteOnly` and a new constraint as not validated; the jobs take the further steps
//! (`crate::jobs`). In a table nobody else can see yet ([`DdlContext::private`]) everything is
//! finished at once.
//!
//! Inside, a statement works on a [`Deriver`]: a copy of the catalog that its own changes are
//! applied to as it goes, so that the second action of an `ALTER TABLE` sees what the first one
//! did.

mod access;
mod alter;
mod columns;
mod comment;
mod constraint;
mod database;
mod drop;
mod escrow;
mod grants;
mod index;
mod locality;
mod refuse;
mod regions;
mod roles;
mod sequence;
mod table;
mod view;

use crate::catalog::job::Job;
use crate::catalog::names::{Name, Names};
use crate::catalog::relation::TableRef;
use crate::catalog::{Authority, Catalog, CatalogChange, ColumnState, Descriptor, Table};
use crate::env::NodeLocality;
use crate::parse::fold;
use crate::parse::{IndexName, Kind, NewRegions, Statement};
use crate::plan::{PlanContext, TablePlan};
use crate::types::zone::Zone;
use crate::types::{DateOrder, EvalContext, Style};
use meridian_base::{DescriptorId, Error, Result};
use sqlparser::ast::{self, ObjectName, ObjectType};
use std::collections::BTreeSet;
use std::sync::Arc;

pub(crate) use access::trusts_strangers;
pub(crate) use constraint::{constraint_exists, replace_primary};
pub(crate) use regions::with_groups;

/// What a statement means besides its text and the catalog.
#[derive(Clone, Debug)]
pub struct DdlContext<'a> {
    pub names: &'a Names,
    /// Where a database without `PRIMARY REGION` lives.
    pub gateway_region: &'a str,
    /// What region names are checked against.
    pub nodes: &'a [NodeLocality],
    /// Tables created or truncated in the open transaction block: they are empty to everybody, so
    /// indexes and constraints on them need no job.
    pub private: &'a BTreeSet<DescriptorId>,
    /// What the open transaction block will do when its change is committed.
    pub jobs: &'a [Job],
    /// For reading literals, and for what `now()` is when a column is added with it as default.
    pub eval: &'a EvalContext,
}

/// What a DDL statement does.
#[derive(Clone, Debug, Default)]
pub struct Ddl {
    /// The command tag.
    pub tag: &'static str,
    pub notices: Vec<Notice>,
    /// Empty if there is nothing to do (`IF NOT EXISTS`).
    pub change: CatalogChange,
    /// In order; each starts when the one before is done.
    pub jobs: Vec<Job>,
    /// Tables that nobody else sees until the change commits: created or truncated by it.
    pub private: Vec<DescriptorId>,
}

/// A NOTICE or WARNING for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub severity: &'static str,
    pub sqlstate: &'static str,
    pub message: String,
}

/// Whether a statement is one that [`derive`] handles, or refuses with a reason.
pub fn is_ddl(statement: &Statement) -> bool {
    match &statement.kind {
        Kind::CreateTable { table, .. } => table.query.is_none(),
        Kind::CreateDatabase { .. } | Kind::AlterDatabase { .. } => true,
        Kind::SetLocality { .. } | Kind::SetOnUpdate { .. } | Kind::SetVisible { .. } | Kind::SetEscrow { .. } => true,
        Kind::SplitColumn { .. } => true,
        Kind::AlterSequence { .. } | Kind::AlterView { .. } | Kind::Role(_) | Kind::AlterSystem { .. } => true,
        Kind::CreateIndex(_) | Kind::AlterIndex { .. } | Kind::DropIndexes { .. } => true,
        Kind::Sql(sql) => is_ddl_ast(sql),
        _ => false,
    }
}

fn is_ddl_ast(statement: &ast::Statement) -> bool {
    use ast::Statement as S;
    matches!(
        statement,
        S::CreateTable(ast::CreateTable { query: None, .. })
            | S::CreateDatabase { .. }
            | S::CreateSchema { .. }
            | S::CreateView(_)
            | S::CreateSequence { .. }
            | S::CreateExtension(_)
            | S::DropExtension(_)
            | S::CreateType { .. }
            | S::CreateFunction(_)
            | S::CreateTrigger(_)
            | S::AlterTable(_)
            | S::AlterView { .. }
            | S::AlterSchema(_)
            | S::Drop { .. }
            | S::DropFunction(_)
            | S::DropTrigger(_)
            | S::Truncate(_)
            | S::Comment { .. }
    )
}

/// Derives a statement's change and jobs. The errors are the statement's.
pub fn derive(statement: &Statement, catalog: &Catalog, context: &DdlContext) -> Result<Ddl> {
    let mut d = Deriver::new(catalog, context);
    let tag = match &statement.kind {
        Kind::Sql(sql) => d.statement(sql)?,
        Kind::CreateTable { table, locality, indexes } => {
            if d.create_table(table, locality.as_ref())? {
                indexes.iter().try_for_each(|index| d.create_index(index))?;
            }
            "CREATE TABLE"
        }
        Kind::CreateDatabase { name, if_not_exists, owner, regions } => {
            d.create_database(name, owner.as_deref(), regions, *if_not_exists)?;
            "CREATE DATABASE"
        }
        Kind::AlterDatabase { name, action } => {
            d.alter_database(name, action)?;
            "ALTER DATABASE"
        }
        Kind::SetLocality { table, if_exists, locality } => {
            d.set_locality(table, *if_exists, locality)?;
            "ALTER TABLE"
        }
        Kind::SetOnUpdate { table, if_exists, column, expression } => {
            d.set_on_update(table, *if_exists, column, expression.as_deref())?;
            "ALTER TABLE"
        }
        Kind::SetEscrow { table, if_exists, column, settings } => {
            d.set_escrow(table, *if_exists, column, settings)?;
            "ALTER TABLE"
        }
        Kind::SplitColumn { table, if_exists, column, is_split } => {
            d.split_column(table, *if_exists, column, *is_split)?;
            "ALTER TABLE"
        }
        Kind::SetVisible { table, if_exists, column, is_visible } => {
            d.set_visible(table, *if_exists, column, *is_visible)?;
            "ALTER TABLE"
        }
        Kind::CreateIndex(index) => {
            d.create_index(index)?;
            "CREATE INDEX"
        }
        Kind::AlterIndex { index, if_exists, action } => {
            d.alter_index(index, *if_exists, action)?;
            "ALTER INDEX"
        }
        Kind::DropIndexes { indexes, if_exists, cascade, .. } => {
            indexes.iter().try_for_each(|index| d.drop_index(index, *if_exists, *cascade))?;
            "DROP INDEX"
        }
        Kind::AlterSequence { name, if_exists, action } => {
            d.alter_sequence(name, *if_exists, action)?;
            "ALTER SEQUENCE"
        }
        Kind::AlterView { name, if_exists, action } => {
            d.alter_view(name, *if_exists, action)?;
            "ALTER VIEW"
        }
        Kind::Role(statement) => d.role_statement(statement)?,
        Kind::AlterSystem { name, value } => {
            d.alter_system(name, value.as_deref())?;
            "ALTER SYSTEM"
        }
        _ => return Err(Error::internal("not a schema change")),
    };
    for descriptor in &mut d.change.put {
        if let Descriptor::Table(table) = descriptor {
            if !context.private.contains(&table.id) && !d.private.contains(&table.id) {
                escrow::follow_checks(table, catalog, context.jobs, &mut d.jobs)?;
            }
            escrow::check(table)?;
            if let Some(before) = catalog.table_by_id(table.id) {
                escrow::check_sites(&before, table)?;
            }
        }
    }
    let moves = |job: &Job| matches!(job, Job::LowerBounds { .. } | Job::RaiseBounds { .. });
    if context.jobs.iter().any(moves) && !d.jobs.iter().all(moves) {
        return Err(Error::unsupported(
            "the bounds of an escrow column change in a transaction block without other work on tables",
        ));
    }
    Ok(Ddl { tag, notices: d.notices, change: d.change, jobs: d.jobs, private: d.private })
}

/// Gives a table without rows new indexes, which nobody else knows before the change commits.
pub(crate) fn renew_indexes(table: DescriptorId, catalog: &Catalog, context: &DdlContext) -> Result<Ddl> {
    let mut d = Deriver::new(catalog, context);
    d.truncate_table(table, false)?;
    Ok(Ddl { tag: "", notices: d.notices, change: d.change, jobs: d.jobs, private: d.private })
}

/// A statement being derived: the catalog with the statement's changes so far, and what they are.
struct Deriver<'a> {
    context: &'a DdlContext<'a>,
    /// What the user may do.
    who: Authority,
    catalog: Catalog,
    change: CatalogChange,
    notices: Vec<Notice>,
    jobs: Vec<Job>,
    private: Vec<DescriptorId>,
    /// Columns that `ALTER TABLE` adds and a job has to fill.
    filling: Vec<u32>,
}

impl<'a> Deriver<'a> {
    fn new(catalog: &Catalog, context: &'a DdlContext<'a>) -> Deriver<'a> {
        let change = CatalogChange { next_id: catalog.next_id, ..CatalogChange::default() };
        Deriver {
            who: catalog.authority_of(context.names),
            context,
            catalog: catalog.clone(),
            change,
            notices: Vec::new(),
            jobs: Vec::new(),
            private: Vec::new(),
            filling: Vec::new(),
        }
    }

    fn statement(&mut self, statement: &ast::Statement) -> Result<&'static str> {
        use ast::Statement as S;
        Ok(match statement {
            S::CreateTable(table) => {
                self.create_table(table, None)?;
                "CREATE TABLE"
            }
            S::CreateDatabase { db_name, if_not_exists, .. } => {
                let name = Name::from_ast(db_name)?;
                self.create_database(&name.name, None, &NewRegions::default(), *if_not_exists)?;
                "CREATE DATABASE"
            }
            S::CreateSchema { schema_name, if_not_exists, .. } => {
                self.create_schema(schema_name, *if_not_exists)?;
                "CREATE SCHEMA"
            }
            S::CreateView(view) => {
                self.create_view(view)?;
                "CREATE VIEW"
            }
            S::CreateSequence { .. } => {
                self.create_sequence(statement)?;
                "CREATE SEQUENCE"
            }
            S::AlterTable(alter) => {
                self.alter_table(alter)?;
                "ALTER TABLE"
            }
            S::AlterSchema(alter) => {
                self.alter_schema(alter)?;
                "ALTER SCHEMA"
            }
            S::Drop { purge: true, .. } | S::Drop { temporary: true, .. } | S::Drop { table: Some(_), .. } => {
                return Err(Error::unsupported("a clause of this DROP is not supported"));
            }
            S::Drop { object_type, if_exists, names, cascade, .. } => self.drop(*object_type, names, *if_exists, *cascade)?,
            S::Truncate(truncate) => {
                self.truncate(truncate)?;
                "TRUNCATE TABLE"
            }
            S::Comment { object_type, object_name, comment, if_exists } => {
                self.comment(*object_type, object_name, comment.as_deref(), *if_exists)?;
                "COMMENT"
            }
            S::CreateExtension(e) => {
                return Err(Error::unsupported(format!("extension \"{}\" is not available", fold(&e.name)))
                    .hint("Meridian has no extensions; gen_random_uuid() is built in."));
            }
            S::DropExtension(_) => return Err(Error::unsupported("extensions are not supported")),
            S::CreateType { .. } => return Err(Error::unsupported("user-defined types are not supported yet")),
            S::CreateFunction(_) | S::DropFunction(_) => {
                return Err(Error::unsupported("user-defined functions are not supported"));
            }
            S::CreateTrigger(_) | S::DropTrigger(_) => return Err(Error::unsupported("triggers are not supported")),
            _ => return Err(Error::unsupported("this schema change is not supported yet")),
        })
    }

    fn drop(&mut self, kind: ObjectType, names: &[ObjectName], if_exists: bool, cascade: bool) -> Result<&'static str> {
        if kind == ObjectType::Table && names.len() > 1 {
            self.untie(names)?;
        }
        for name in names {
            match kind {
                ObjectType::Table => self.drop_table(name, if_exists, cascade)?,
                ObjectType::View => self.drop_view(name, if_exists, cascade)?,
                ObjectType::Index => {
                    let index = IndexName { table: None, name: name.clone() };
                    self.drop_index(&index, if_exists, cascade)?;
                }
                ObjectType::Sequence => self.drop_sequence(name, if_exists, cascade)?,
                ObjectType::Schema => self.drop_schema(name, if_exists, cascade)?,
                ObjectType::Database => self.drop_database(name, if_exists)?,
                other => return Err(Error::unsupported(format!("DROP {other} is not supported"))),
            }
        }
        Ok(match kind {
            ObjectType::Table => "DROP TABLE",
            ObjectType::View => "DROP VIEW",
            ObjectType::Index => "DROP INDEX",
            ObjectType::Sequence => "DROP SEQUENCE",
            ObjectType::Schema => "DROP SCHEMA",
            _ => "DROP DATABASE",
        })
    }

    // The catalog under construction.

    fn names(&self) -> &'a Names {
        self.context.names
    }
    fn new_id(&mut self) -> u32 {
        let id = self.change.next_id;
        self.change.next_id += 1;
        id
    }
    fn new_descriptor_id(&mut self) -> DescriptorId {
        DescriptorId(self.new_id())
    }
    /// Adds or replaces a descriptor, in the change and in this statement's view.
    fn put(&mut self, descriptor: impl Into<Descriptor>) {
        let mut descriptor = descriptor.into();
        if let Descriptor::Table(Table { escrow, shadows, columns, .. }) = &mut descriptor {
            escrow.retain(|e| columns[e.ordinal as usize].state != ColumnState::Dropped);
            shadows.retain(|s| columns[s.column.ordinal as usize].state != ColumnState::Dropped);
        }
        let version = self.catalog.version;
        self.catalog.put(descriptor.clone(), version);
        let id = descriptor.id();
        match self.change.put.iter_mut().find(|d| d.id() == id) {
            Some(place) => *place = descriptor,
            None => self.change.put.push(descriptor),
        }
    }
    fn delete(&mut self, id: DescriptorId) {
        let version = self.catalog.version;
        self.catalog.remove(id, version);
        self.change.put.retain(|d| d.id() != id);
        self.change.delete.push(id);
        if let Some(statistics) = self.catalog.statistics_id(id) {
            self.delete(statistics);
        }
    }
    fn notice(&mut self, sqlstate: &'static str, message: String) {
        self.notices.push(Notice { severity: "NOTICE", sqlstate, message });
    }
    fn warning(&mut self, sqlstate: &'static str, message: String) {
        self.notices.push(Notice { severity: "WARNING", sqlstate, message });
    }
    /// The table as this statement has it now.
    fn table(&self, name: &ObjectName) -> Result<TableRef> {
        self.catalog.table(self.names(), &Name::from_ast(name)?)
    }
    /// The same, which has to be the user's own.
    fn own_table(&self, name: &ObjectName) -> Result<TableRef> {
        let table = self.table(name)?;
        self.must_own(table.id)?;
        Ok(table)
    }
    fn table_by_id(&self, id: DescriptorId) -> Result<Table> {
        let table = self.catalog.table_by_id(id).ok_or_else(|| Error::internal("a table of this statement is gone"))?;
        Ok((*table).clone())
    }
    /// Binds everything a table holds as text, so that an expression of the wrong type fails now
    /// and not at the first INSERT.
    fn check_expressions(&self, table: DescriptorId) -> Result<()> {
        let catalog = Arc::new(self.catalog.clone());
        let Some(table) = catalog.table_by_id(table) else { return Ok(()) };
        let plan_by = |eval| TablePlan::new(&table, PlanContext { catalog: &catalog, names: self.names(), eval });
        let elsewhere = somewhere_else(self.context.eval);
        plan_by(self.context.eval)?.check_immutable(|| plan_by(&elsewhere))
    }
    /// Whether a table is empty and unseen, so that nothing about it needs a job.
    fn is_private(&self, table: DescriptorId) -> bool {
        self.context.private.contains(&table) || self.private.contains(&table)
    }
}

macro_rules! into_descriptor {
    ($($kind:ident),*) => { $(
        impl From<crate::catalog::$kind> for Descriptor {
            fn from(d: crate::catalog::$kind) -> Descriptor {
                Descriptor::$kind(d)
            }
        }
    )* };
}
into_descriptor!(Database, Schema, Table, View, Sequence, Role);

/// A session that reads a literal otherwise, if any does.
fn somewhere_else(eval: &EvalContext) -> EvalContext {
    const TWO_DAYS_MICROS: i64 = 2 * 86_400_000_000;
    // No zone that has a name lies as far from Greenwich by as many seconds.
    let zone = Zone::fixed(-(13 * 3600 + 17));
    let date_order = if eval.style.date_order == DateOrder::Dmy { DateOrder::Mdy } else { DateOrder::Dmy };
    let style = Style { date_order, ..eval.style };
    EvalContext { zone, txn_time: eval.txn_time.saturating_add(TWO_DAYS_MICROS), style, ..eval.clone() }
}

/// A name made of parts and a label, at most 63 bytes, cut fairly: PostgreSQL's `makeObjectName`.
fn object_name(first: &str, second: &str, label: &str) -> String {
    let overhead = label.len() + 1 + usize::from(!second.is_empty());
    let room = 63usize.saturating_sub(overhead);
    let (mut a, mut b) = (first.len(), second.len());
    while a + b > room {
        if a > b { a -= 1 } else { b -= 1 }
    }
    let cut = |s: &str, mut n: usize| {
        while !s.is_char_boundary(n) {
            n -= 1;
        }
        s[..n].to_string()
    };
    let mut name = cut(first, a);
    for part in [cut(second, b), label.to_string()] {
        if !part.is_empty() {
            name.push('_');
            name.push_str(&part);
        }
    }
    name
}

/// The first of `name`, `name1`, `name2`, … that is not taken.
fn free_name(first: &str, second: &str, label: &str, taken: impl Fn(&str) -> bool) -> String {
    let name = object_name(first, second, label);
    if !taken(&name) {
        return name;
    }
    let numbered = |n: u32| object_name(first, second, &format!("{label}{n}"));
    (1..).map(numbered).find(|name| !taken(name)).expect("there are more numbers than names")
}

#[cfg(test)]
mod tests;
