//! `CREATE TABLE`.

use super::constraint::Constraint;
use super::{Deriver, free_name};
use crate::catalog::declared::declared;
use crate::catalog::expression::{Facts, default_text, resolve_columns};
use crate::catalog::names::Name;
use crate::catalog::privileges::Privileges;
use crate::catalog::{self, Column, ColumnState, Database, Identity, Table};
use crate::parse::{Kind, Locality, fold, parse_one_statement};
use crate::types::Type;
use meridian_base::{DescriptorId, Error, Result};
use sqlparser::ast::{
    self, ColumnDef, ColumnOption, CreateTableLikeDefaults, CreateTableLikeKind, CreateTableOptions, GeneratedAs,
    GeneratedExpressionMode, SequenceOptions, SqlOption,
};
use std::sync::OnceLock;

/// The hidden row id of a table without a primary key.
pub const ROW_ID: &str = "rowid";

impl Deriver<'_> {
    /// Whether it was created, and was not there before.
    pub(super) fn create_table(&mut self, create: &ast::CreateTable, locality: Option<&Locality>) -> Result<bool> {
        refuse_unsupported(create)?;
        match &create.table_options {
            CreateTableOptions::None => {}
            CreateTableOptions::With(options) | CreateTableOptions::Options(options) => self.table_parameters(options)?,
            _ => return Err(Error::unsupported("these table options are not supported")),
        }
        let name = Name::from_ast(&create.name)?;
        let schema = self.catalog.schema_for_new(self.names(), &name)?.id;
        self.may_create_in(schema)?;
        if self.catalog.is_relation_name_taken(schema, &name.name) {
            let message = format!("relation \"{}\" already exists", name.name);
            if !create.if_not_exists {
                return Err(Error::sql("42P07", message));
            }
            self.notice("42P07", format!("{message}, skipping"));
            return Ok(false);
        }
        let database = self.database_of(schema)?;
        let homes = self.homes(&database, locality)?;
        let id = self.new_descriptor_id();
        let mut table = Table {
            id,
            schema,
            name: name.name,
            homes,
            moving: None,
            locality: catalog::Locality::RegionalByTable,
            columns: Vec::new(),
            indexes: Vec::new(),
            checks: Vec::new(),
            foreign_keys: Vec::new(),
            infers_region_by: None,
            referenced_by: Vec::new(),
            owner: self.names().user.clone(),
            comment: None,
            escrow: Vec::new(),
            shadows: Vec::new(),
            access: self.own_access(),
        };
        self.private.push(id);
        self.copy_like(&mut table, create.like.as_ref())?;
        let mut constraints = Vec::new();
        for definition in &create.columns {
            self.add_column(&mut table, definition, &mut constraints)?;
        }
        table.locality = self.settled_locality(&mut table, locality)?;
        for constraint in &create.constraints {
            constraints.push(Constraint::from_table(constraint)?);
        }
        self.add_primary(&mut table, &constraints)?;
        // Foreign keys last: one that refers to its own table needs the unique constraints there.
        constraints.sort_by_key(Constraint::is_foreign_key);
        for constraint in constraints.iter().filter(|c| !c.is_primary()) {
            self.add_constraint(&mut table, constraint, true)?;
        }
        if let CreateTableOptions::With(options) | CreateTableOptions::Options(options) = &create.table_options {
            super::locality::set_inference(&mut table, options)?;
        }
        self.check_generated(&table)?;
        self.make_escrow(&mut table, &database)?;
        self.put(table);
        self.check_expressions(id)?;
        Ok(true)
    }

    pub(super) fn database_of(&self, schema: DescriptorId) -> Result<Database> {
        let schema = self.catalog.schema_by_id(schema).ok_or_else(|| Error::internal("a relation without a schema"))?;
        let database = self.catalog.database_by_id(schema.database);
        database.cloned().ok_or_else(|| Error::internal("a schema without a database"))
    }

    fn copy_like(&mut self, table: &mut Table, like: Option<&CreateTableLikeKind>) -> Result<()> {
        let Some(CreateTableLikeKind::Parenthesized(like) | CreateTableLikeKind::Plain(like)) = like else { return Ok(()) };
        let source = self.table(&like.name)?;
        self.catalog.check(&self.who, source.id, Privileges::SELECT)?;
        let with_defaults = like.defaults == Some(CreateTableLikeDefaults::Including);
        for (_, column) in source.public_columns() {
            table.columns.push(Column {
                default: column.default.clone().filter(|_| with_defaults),
                generated: None,
                on_update: None,
                identity: None,
                missing: None,
                comment: None,
                ..column.clone()
            });
        }
        Ok(())
    }

    /// Appends a column; its constraints go to `constraints`, to be added when all columns are
    /// known.
    pub(super) fn add_column(
        &mut self,
        table: &mut Table,
        definition: &ColumnDef,
        constraints: &mut Vec<Constraint>,
    ) -> Result<u32> {
        let name = fold(&definition.name);
        let ordinal = table.columns.len() as u32;
        check_new_column(table, &name)?;
        let declared = declared(&definition.data_type)?;
        if declared.ty == Type::Region && !self.database_of(table.schema)?.is_multi_region {
            return Err(Error::sql("42704", "type \"crdb_internal_region\" does not exist")
                .detail("The database has no regions.")
                .hint("ALTER DATABASE … SET PRIMARY REGION makes it a multi-region database."));
        }
        table.columns.push(Column {
            name: name.clone(),
            ty: declared.ty.clone(),
            not_null: declared.is_serial,
            default: None,
            generated: None,
            on_update: None,
            identity: None,
            missing: None,
            is_hidden: false,
            state: ColumnState::Public,
            comment: None,
        });
        if declared.is_serial {
            let sequence = self.owned_sequence(table, ordinal, &[])?;
            table.columns[ordinal as usize].default = Some(nextval(sequence));
        }
        let mut said_null = false;
        for option in &definition.options {
            let column = &mut table.columns[ordinal as usize];
            let constraint_name = option.name.as_ref().map(fold);
            match &option.option {
                ColumnOption::Null => said_null = true,
                ColumnOption::NotNull => column.not_null = true,
                ColumnOption::Default(e) => {
                    if declared.is_serial || column.default.is_some() {
                        return Err(multiple("default values", table, &name));
                    }
                    let ty = column.ty.clone();
                    let names = self.names();
                    let text = default_text(e, &ty, &|n| self.catalog.relation(names, n))?;
                    table.columns[ordinal as usize].default = Some(text);
                }
                ColumnOption::Generated { generated_as, sequence_options, generation_expr, generation_expr_mode, .. } => {
                    match generation_expr {
                        Some(e) => column.generated = Some(generated_text(e, *generation_expr_mode)?),
                        None => self.add_identity(table, ordinal, generated_as, sequence_options.as_deref().unwrap_or(&[]))?,
                    }
                }
                ColumnOption::Collation(name) if is_default_collation(name) => {}
                ColumnOption::PrimaryKey(_) | ColumnOption::Unique(_) | ColumnOption::Check(_) | ColumnOption::ForeignKey(_) => {
                    constraints.push(Constraint::from_column(&option.option, constraint_name, &name)?);
                }
                ColumnOption::Invisible => column.is_hidden = true,
                ColumnOption::DialectSpecific(words) if super::escrow::is_said(words) => {
                    table.escrow.push(super::escrow::declared(ordinal))
                }
                ColumnOption::OnUpdate(e) => {
                    column.on_update = Some(on_update_text(e)?);
                }
                other => return Err(Error::unsupported(format!("the column option {other} is not supported"))),
            }
        }
        let column = &table.columns[ordinal as usize];
        if said_null && column.not_null {
            return Err(Error::sql(
                "42601",
                format!("conflicting NULL/NOT NULL declarations for column \"{name}\" of table \"{}\"", table.name),
            ));
        }
        let sources = [column.default.is_some(), column.generated.is_some(), column.identity.is_some()];
        if sources.iter().filter(|s| **s).count() > 1 {
            return Err(Error::sql(
                "42601",
                format!("both default and generation expression specified for column \"{name}\" of table \"{}\"", table.name),
            ));
        }
        check_on_update(column)?;
        Ok(ordinal)
    }

    /// `GENERATED … AS IDENTITY`.
    pub(super) fn add_identity(
        &mut self,
        table: &mut Table,
        ordinal: u32,
        kind: &GeneratedAs,
        options: &[SequenceOptions],
    ) -> Result<()> {
        let column = &table.columns[ordinal as usize];
        if !matches!(column.ty, Type::Int2 | Type::Int4 | Type::Int8) {
            return Err(Error::sql("22023", "identity column type must be smallint, integer, or bigint"));
        }
        if column.identity.is_some() {
            return Err(Error::sql(
                "42601",
                format!("multiple identity specifications for column \"{}\" of table \"{}\"", column.name, table.name),
            ));
        }
        let sequence = self.owned_sequence(table, ordinal, options)?;
        let column = &mut table.columns[ordinal as usize];
        column.identity = Some(Identity { sequence, always: matches!(kind, GeneratedAs::Always) });
        column.not_null = true;
        Ok(())
    }

    /// The primary index: the declared key, or a hidden row id.
    fn add_primary(&mut self, table: &mut Table, constraints: &[Constraint]) -> Result<()> {
        let mut declared = constraints.iter().filter(|c| c.is_primary());
        let first = declared.next();
        if declared.next().is_some() {
            return Err(Error::sql("42P16", format!("multiple primary keys for table \"{}\" are not allowed", table.name)));
        }
        match first {
            Some(primary) => self.add_constraint(table, primary, true),
            None => {
                let ordinal = add_row_id(table);
                let id = self.new_id();
                table.indexes.insert(0, super::constraint::row_id_index(id, ordinal, &table.name));
                Ok(())
            }
        }
    }

    /// PostgreSQL's storage parameters describe pages and vacuuming, which do not exist here:
    /// accepted with a notice, since tools send them.
    pub(super) fn table_parameters(&mut self, options: &[SqlOption]) -> Result<()> {
        for option in options {
            let (name, value) = match option {
                SqlOption::KeyValue { key, value } => (fold(key), value.to_string()),
                SqlOption::Ident(name) => (fold(name), String::new()),
                other => return Err(Error::unsupported(format!("the table option {other} is not supported"))),
            };
            if name == super::locality::INFERENCE {
                continue;
            }
            let is_known = ["autovacuum_", "toast", "vacuum_"].iter().any(|of| name.starts_with(of))
                || matches!(
                    name.as_str(),
                    "fillfactor" | "parallel_workers" | "log_autovacuum_min_duration" | "user_catalog_table"
                );
            if !is_known {
                return Err(Error::sql("22023", format!("unrecognized parameter \"{name}\"")));
            }
            self.ignore_parameter(&name, &value);
        }
        Ok(())
    }
    /// A notice, unless the value is what holds anyway.
    pub(super) fn ignore_parameter(&mut self, name: &str, value: &str) {
        if !(name.eq_ignore_ascii_case("fillfactor") && value == "100") {
            self.notice("01000", format!("parameter \"{name}\" is ignored: rows and indexes are not kept in pages"));
        }
    }

    /// Generated columns may use every column but generated ones (PostgreSQL manual 5.3).
    pub(super) fn check_generated(&self, table: &Table) -> Result<()> {
        for column in table.columns.iter().filter(|c| c.state == ColumnState::Public) {
            let Some(text) = &column.generated else { continue };
            let facts = Facts::of(&crate::catalog::expression::parse_expression(text)?);
            for used in resolve_columns(&facts, &table.columns, &table.name)? {
                let used = &table.columns[used as usize];
                if used.generated.is_some() {
                    return Err(Error::sql(
                        "42P16",
                        format!("cannot use generated column \"{}\" in column generation expression", used.name),
                    )
                    .detail("A generated column cannot reference another generated column."));
                }
            }
        }
        Ok(())
    }
}

/// The default of a column that draws from a sequence.
pub(super) fn nextval(sequence: DescriptorId) -> String {
    format!("nextval({})", crate::catalog::expression::pinned(crate::catalog::system::oid(sequence)))
}

/// Adds the hidden row id; its ordinal.
fn add_row_id(table: &mut Table) -> u32 {
    let taken = |name: &str| table.columns.iter().any(|c| c.name == name);
    let name = if taken(ROW_ID) { free_name(ROW_ID, "", "", taken) } else { ROW_ID.to_string() };
    table.columns.push(Column {
        name,
        ty: Type::Int8,
        not_null: true,
        default: Some(catalog::ROW_ID_DEFAULT.into()),
        generated: None,
        on_update: None,
        identity: None,
        missing: None,
        is_hidden: true,
        state: ColumnState::Public,
        comment: None,
    });
    table.columns.len() as u32 - 1
}

pub(super) fn check_new_column(table: &Table, name: &str) -> Result<()> {
    if matches!(name, "tableoid" | "xmin" | "cmin" | "xmax" | "cmax" | "ctid") {
        return Err(Error::sql("42701", format!("column name \"{name}\" conflicts with a system column name")));
    }
    if table.written_columns().any(|(_, c)| c.name == name) {
        // PostgreSQL's texts for CREATE TABLE and for ALTER TABLE.
        return Err(Error::sql(
            "42701",
            match table.indexes.is_empty() {
                true => format!("column \"{name}\" specified more than once"),
                false => format!("column \"{name}\" of relation \"{}\" already exists", table.name),
            },
        ));
    }
    // PostgreSQL's limit; rows count their columns in 16 bits.
    if table.columns.len() >= 1600 {
        return Err(Error::sql("54011", "tables can have at most 1600 columns"));
    }
    Ok(())
}

pub(super) fn check_on_update(column: &Column) -> Result<()> {
    if column.on_update.is_some() && (column.generated.is_some() || column.identity.is_some()) {
        return Err(Error::sql("42P16", format!("generated column \"{}\" cannot have an ON UPDATE expression", column.name)));
    }
    Ok(())
}

pub(super) fn on_update_text(e: &ast::Expr) -> Result<String> {
    let facts = Facts::of(e);
    facts.check("ON UPDATE expression")?;
    if !facts.columns.is_empty() {
        return Err(Error::unsupported("cannot use column reference in ON UPDATE expression"));
    }
    Ok(e.to_string())
}

fn generated_text(e: &ast::Expr, mode: Option<GeneratedExpressionMode>) -> Result<String> {
    if mode != Some(GeneratedExpressionMode::Stored) {
        return Err(Error::unsupported("virtual generated columns are not supported").hint("Add STORED."));
    }
    Facts::of(e).check_lasting("column generation expression")?;
    Ok(e.to_string())
}

fn multiple(what: &str, table: &Table, column: &str) -> Error {
    Error::sql("42601", format!("multiple {what} specified for column \"{column}\" of table \"{}\"", table.name))
}

/// Text compares by bytes, which is PostgreSQL's `C` collation.
pub(super) fn is_default_collation(name: &ast::ObjectName) -> bool {
    Name::from_ast(name)
        .is_ok_and(|n| matches!(n.name.to_ascii_lowercase().as_str(), "default" | "c" | "posix" | "c.utf8" | "ucs_basic"))
}

fn refuse_unsupported(create: &ast::CreateTable) -> Result<()> {
    let refusals = [
        (create.temporary, "temporary tables are not supported yet"),
        (create.unlogged, "unlogged tables are not supported: every table is replicated through its log"),
        (create.inherits.is_some(), "table inheritance is not supported"),
        (create.partition_of.is_some() || create.partition_by.is_some(), "table partitioning is not supported"),
        (create.external || create.or_replace || create.clone.is_some(), "this form of CREATE TABLE is not supported"),
        (create.on_commit.is_some(), "ON COMMIT is for temporary tables, which are not supported yet"),
        (create.query.is_some(), "CREATE TABLE AS is not supported here"),
    ];
    if let Some((_, message)) = refusals.into_iter().find(|(refused, _)| *refused) {
        return Err(Error::unsupported(message));
    }
    // The parser reads other databases' clauses as well: all but these are as in a plain statement.
    let known = ast::CreateTable {
        name: create.name.clone(),
        columns: create.columns.clone(),
        constraints: create.constraints.clone(),
        if_not_exists: create.if_not_exists,
        table_options: create.table_options.clone(),
        like: create.like.clone(),
        ..plain()?.clone()
    };
    match known == *create {
        true => Ok(()),
        false => Err(Error::unsupported("a clause of this CREATE TABLE is not supported")),
    }
}

/// A `CREATE TABLE` without any clause, as the parser has it.
fn plain() -> Result<&'static ast::CreateTable> {
    static PLAIN: OnceLock<Option<ast::CreateTable>> = OnceLock::new();
    let read = || match parse_one_statement("CREATE TABLE t (a INT)").ok()?.kind {
        Kind::CreateTable { table, .. } => Some(*table),
        _ => None,
    };
    PLAIN.get_or_init(read).as_ref().ok_or_else(|| Error::internal("a plain CREATE TABLE cannot be read"))
}
