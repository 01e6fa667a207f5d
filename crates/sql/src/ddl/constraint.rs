//! Constraints: PRIMARY KEY, UNIQUE, CHECK, FOREIGN KEY; declared with a column, with a table, or
//! added later.

use super::columns::{check_indexable, resolve_names};
use super::{Deriver, free_name};
use crate::catalog::expression::{Facts, resolve_columns};
use crate::catalog::job::Job;
use crate::catalog::names::Name;
use crate::catalog::{Check, ColumnState, FkAction, ForeignKey, Index, IndexColumn, IndexState, Table};
use crate::parse::fold;
use crate::types::Type;
use meridian_base::{DescriptorId, Error, Result};
use sqlparser::ast::{
    self, ColumnOption, ConstraintCharacteristics, ConstraintReferenceMatchKind, Expr, ForeignKeyConstraint, NullsDistinctOption,
    ReferentialAction, TableConstraint,
};

/// A constraint as it was declared.
#[derive(Clone, Debug)]
pub(super) struct Constraint {
    name: Option<String>,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Primary { columns: Vec<String>, include: Vec<String> },
    Unique { columns: Vec<String>, include: Vec<String> },
    Check { expression: Box<Expr> },
    ForeignKey { columns: Vec<String>, declaration: Box<ForeignKeyConstraint> },
}

impl Constraint {
    pub(super) fn is_primary(&self) -> bool {
        matches!(self.kind, Kind::Primary { .. })
    }
    pub(super) fn is_foreign_key(&self) -> bool {
        matches!(self.kind, Kind::ForeignKey { .. })
    }
    /// A column's constraint. The parser leaves the column list empty.
    pub(super) fn from_column(option: &ColumnOption, name: Option<String>, column: &str) -> Result<Constraint> {
        let columns = vec![column.to_string()];
        let kind = match option {
            ColumnOption::PrimaryKey(c) => {
                check_characteristics(&c.characteristics)?;
                Kind::Primary { columns, include: Vec::new() }
            }
            ColumnOption::Unique(c) => {
                check_characteristics(&c.characteristics)?;
                check_nulls(&c.nulls_distinct)?;
                Kind::Unique { columns, include: Vec::new() }
            }
            ColumnOption::Check(c) => Kind::Check { expression: c.expr.clone() },
            ColumnOption::ForeignKey(c) => Kind::ForeignKey { columns, declaration: Box::new(c.clone()) },
            other => return Err(Error::unsupported(format!("the constraint {other} is not supported"))),
        };
        Ok(Constraint { name, kind })
    }
    /// A table's constraint.
    pub(super) fn from_table(constraint: &TableConstraint) -> Result<Constraint> {
        let (name, kind) = match constraint {
            TableConstraint::PrimaryKey(c) => {
                check_characteristics(&c.characteristics)?;
                (&c.name, Kind::Primary { columns: key_columns(&c.columns)?, include: c.include.iter().map(fold).collect() })
            }
            TableConstraint::Unique(c) => {
                check_characteristics(&c.characteristics)?;
                check_nulls(&c.nulls_distinct)?;
                (&c.name, Kind::Unique { columns: key_columns(&c.columns)?, include: c.include.iter().map(fold).collect() })
            }
            TableConstraint::Check(c) => (&c.name, Kind::Check { expression: c.expr.clone() }),
            TableConstraint::ForeignKey(c) => {
                let columns = c.columns.iter().map(fold).collect();
                (&c.name, Kind::ForeignKey { columns, declaration: Box::new(c.clone()) })
            }
            TableConstraint::PrimaryKeyUsingIndex(_) | TableConstraint::UniqueUsingIndex(_) => {
                return Err(Error::unsupported("USING INDEX is not supported in constraints"));
            }
            TableConstraint::Exclude(_) => return Err(Error::unsupported("exclusion constraints are not supported")),
            other => return Err(Error::unsupported(format!("the constraint {other} is not supported"))),
        };
        Ok(Constraint { name: name.as_ref().map(fold), kind })
    }
}

impl Deriver<'_> {
    /// Adds a constraint to a table under construction, or to one that exists (`validate`: with the
    /// jobs it needs).
    pub(super) fn add_constraint(&mut self, table: &mut Table, constraint: &Constraint, validate: bool) -> Result<()> {
        let name = constraint.name.as_deref();
        match &constraint.kind {
            Kind::Primary { columns, include } => self.add_primary_key(table, name, columns, include),
            Kind::Unique { columns, include } => self.add_unique(table, name, columns, include),
            Kind::Check { expression } => self.add_check(table, name, expression, validate),
            Kind::ForeignKey { columns, declaration } => self.add_foreign_key(table, name, columns, declaration, validate),
        }
    }

    fn add_primary_key(&mut self, table: &mut Table, name: Option<&str>, columns: &[String], include: &[String]) -> Result<()> {
        let is_new = table.indexes.is_empty();
        if !is_new && !crate::catalog::is_implicit_primary(table, table.primary()) {
            return Err(Error::sql("42P16", format!("multiple primary keys for table \"{}\" are not allowed", table.name)));
        }
        let columns = index_columns(table, columns)?;
        // Everything is stored with the primary key anyway.
        resolve_names(table, include)?;
        let name = self.index_constraint_name(table, name, &[], "pkey")?;
        let mut index = Index { holds_rows: true, ..constraint_index(self.new_id(), name, columns, Vec::new()) };
        if is_new || self.is_private(table.id) {
            mark_not_null(table, &index);
            table.indexes.push(index);
            if !is_new {
                let last = table.indexes.len() - 1;
                replace_primary(table, last);
            }
            return Ok(());
        }
        if table.indexes.len() > 1 {
            // Entries of the other indexes end with the primary key, so each of them would have to
            // be built again.
            return Err(Error::unsupported("adding a primary key to a table that has other indexes is not supported yet")
                .hint("Drop the other indexes, add the primary key, and create them again."));
        }
        super::columns::refuse_filling(table)?;
        for c in &index.columns {
            self.require_not_null(table, c.ordinal, false)?;
        }
        index.state = IndexState::DeleteOnly;
        self.jobs.push(Job::BuildPrimary { table: table.id, index: index.id });
        table.indexes.push(index);
        Ok(())
    }

    fn add_unique(&mut self, table: &mut Table, name: Option<&str>, columns: &[String], include: &[String]) -> Result<()> {
        let keys = index_columns(table, columns)?;
        let stored = resolve_names(table, include)?;
        let is_same = |i: &Index| i.is_constraint && i.columns == keys && i.stored == stored;
        if name.is_none() && self.is_private(table.id) && table.indexes.iter().any(is_same) {
            // Declared twice: PostgreSQL keeps one index.
            return Ok(());
        }
        let names: Vec<&str> = columns.iter().map(String::as_str).collect();
        let name = self.index_constraint_name(table, name, &names, "key")?;
        let index = constraint_index(self.new_id(), name, keys, stored);
        self.attach_index(table, index)
    }

    /// Adds an index: public at once if nobody can have seen the table, else to be built.
    pub(super) fn attach_index(&mut self, table: &mut Table, mut index: Index) -> Result<()> {
        super::refuse::refuse_in_change(table)?;
        if !self.is_private(table.id) {
            index.state = IndexState::DeleteOnly;
            self.jobs.push(Job::BuildIndex { table: table.id, index: index.id });
        }
        table.indexes.push(index);
        Ok(())
    }

    /// The name of the index of a constraint, which is a relation of the table's schema.
    fn index_constraint_name(&self, table: &Table, name: Option<&str>, columns: &[&str], label: &str) -> Result<String> {
        self.may_create_in(table.schema)?;
        let mine = |n: &str| table.indexes.iter().any(|i| i.name == n && !crate::catalog::is_implicit_primary(table, i));
        let taken = |n: &str| n == table.name || mine(n) || self.catalog.is_relation_name_taken(table.schema, n);
        match name {
            Some(name) if taken(name) => Err(Error::sql("42P07", format!("relation \"{name}\" already exists"))),
            Some(name) if constraint_exists(table, name) => Err(duplicate_constraint(table, name)),
            Some(name) => Ok(name.to_string()),
            None => Ok(free_name(&table.name, &columns.join("_"), label, |n| taken(n) || constraint_exists(table, n))),
        }
    }

    fn add_check(&mut self, table: &mut Table, name: Option<&str>, expression: &Expr, validate: bool) -> Result<()> {
        let facts = Facts::of(expression);
        facts.check_lasting("check constraint")?;
        resolve_columns(&facts, &table.columns, &table.name)?;
        let column = match &facts.columns[..] {
            [one] => one.as_str(),
            _ => "",
        };
        let name = self.constraint_name(table, name, column, "check")?;
        let id = self.new_descriptor_id();
        let validated = self.is_private(table.id);
        table.checks.push(Check { id, name, expression: expression.to_string(), validated });
        if validate && !validated {
            self.jobs.push(Job::ValidateCheck { table: table.id, check: id, keep: false });
        }
        Ok(())
    }

    /// Makes a column NOT NULL, by way of a check that is validated first.
    pub(super) fn require_not_null(&mut self, table: &mut Table, ordinal: u32, added_column: bool) -> Result<()> {
        let column = &mut table.columns[ordinal as usize];
        if column.not_null {
            return Ok(());
        }
        if self.is_private(table.id) {
            column.not_null = true;
            return Ok(());
        }
        let expression = format!("{} IS NOT NULL", crate::catalog::expression::quoted_ident(&column.name));
        let column = column.name.clone();
        let name = self.constraint_name(table, None, &column, "not_null")?;
        let check = self.new_descriptor_id();
        table.checks.push(Check { id: check, name, expression, validated: false });
        self.jobs.push(Job::ValidateNotNull { table: table.id, check, ordinal, added_column });
        Ok(())
    }

    fn constraint_name(&self, table: &Table, name: Option<&str>, column: &str, label: &str) -> Result<String> {
        match name {
            Some(name) if constraint_exists(table, name) => Err(duplicate_constraint(table, name)),
            Some(name) => Ok(name.to_string()),
            None => Ok(free_name(&table.name, column, label, |n| constraint_exists(table, n))),
        }
    }

    fn add_foreign_key(
        &mut self,
        table: &mut Table,
        name: Option<&str>,
        columns: &[String],
        declaration: &ForeignKeyConstraint,
        validate: bool,
    ) -> Result<()> {
        check_characteristics(&declaration.characteristics)?;
        let ordinals = resolve_names(table, columns)?;
        let parent_name = Name::from_ast(&declaration.foreign_table)?;
        let is_self = self.is_self_reference(table, &parent_name)?;
        let mut parent = if is_self { table.clone() } else { (*self.catalog.table(self.names(), &parent_name)?).clone() };
        if !is_self {
            self.may_refer_to(&parent)?;
        }
        let parent_columns = self.referred_columns(&parent, &declaration.referred_columns)?;
        let joined = columns.join("_");
        let name = self.constraint_name(table, name, &joined, "fkey")?;
        check_key_types(table, &name, &ordinals, &parent, &parent_columns)?;
        let id = self.new_descriptor_id();
        // If its key is built by the same block, and that fails, this is taken back with it.
        let validated = self.is_private(table.id) && parent.indexes.iter().any(|i| i.is_key(&parent_columns));
        let action = |a: &Option<ReferentialAction>| match a {
            None | Some(ReferentialAction::NoAction) => FkAction::NoAction,
            Some(ReferentialAction::Restrict) => FkAction::Restrict,
            Some(ReferentialAction::Cascade) => FkAction::Cascade,
            Some(ReferentialAction::SetNull) => FkAction::SetNull,
            Some(ReferentialAction::SetDefault) => FkAction::SetDefault,
        };
        table.foreign_keys.push(ForeignKey {
            id,
            name,
            columns: ordinals,
            parent: parent.id,
            parent_columns,
            on_delete: action(&declaration.on_delete),
            on_update: action(&declaration.on_update),
            match_full: match &declaration.match_kind {
                Some(ConstraintReferenceMatchKind::Full) => true,
                Some(ConstraintReferenceMatchKind::Partial) => {
                    return Err(Error::unsupported("MATCH PARTIAL not yet implemented"));
                }
                _ => false,
            },
            validated,
        });
        if is_self {
            table.referenced_by.push((table.id, id));
        } else {
            parent.referenced_by.push((table.id, id));
            self.put(parent);
        }
        if validate && !validated {
            self.jobs.push(Job::ValidateForeignKey { table: table.id, constraint: id, keep: false });
        }
        Ok(())
    }

    /// The parent's columns of a foreign key, which a unique constraint must cover exactly.
    fn referred_columns(&self, parent: &Table, names: &[ast::Ident]) -> Result<Vec<u32>> {
        if names.is_empty() {
            if crate::catalog::is_implicit_primary(parent, parent.primary()) {
                return Err(Error::sql("42704", format!("there is no primary key for referenced table \"{}\"", parent.name)));
            }
            return Ok(parent.primary().columns.iter().map(|c| c.ordinal).collect());
        }
        let mut ordinals = Vec::with_capacity(names.len());
        for name in names.iter().map(fold) {
            let (ordinal, _) = parent.column(&name).ok_or_else(|| {
                Error::sql("42703", format!("column \"{name}\" referenced in foreign key constraint does not exist"))
            })?;
            ordinals.push(ordinal);
        }
        // One that another statement is building may come to nothing.
        let is_built = |i: &Index| i.is_key(&ordinals) || (i.will_be_key(&ordinals) && self.builds(parent.id, i.id));
        match parent.indexes.iter().any(is_built) {
            true => Ok(ordinals),
            false => Err(Error::sql(
                "42830",
                format!("there is no unique constraint matching given keys for referenced table \"{}\"", parent.name),
            )),
        }
    }
    /// Whether an index is built when the open transaction block commits.
    fn builds(&self, of: DescriptorId, id: u32) -> bool {
        let is_it = |j: &Job| match j {
            Job::BuildIndex { table, index } | Job::BuildPrimary { table, index } => (*table, *index) == (of, id),
            _ => false,
        };
        self.context.jobs.iter().chain(&self.jobs).any(is_it)
    }

    fn is_self_reference(&self, table: &Table, parent: &Name) -> Result<bool> {
        if parent.name != table.name {
            return Ok(false);
        }
        let schema = match &parent.schema {
            Some(schema) => self.catalog.schema(self.names(), schema)?.id,
            None => match self.catalog.find_relation(self.names(), parent)?.and_then(|r| r.descriptor()) {
                // Found under that name: it is this table if it is in the catalog already.
                Some(id) => return Ok(id == table.id || !self.catalog.descriptors.contains_key(&table.id)),
                None => table.schema,
            },
        };
        Ok(schema == table.schema)
    }
}

/// Whether a table has a constraint of a name.
pub(crate) fn constraint_exists(table: &Table, name: &str) -> bool {
    table.checks.iter().any(|c| c.name == name)
        || table.foreign_keys.iter().any(|f| f.name == name)
        || table.indexes.iter().any(|i| i.is_constraint && i.name == name && !crate::catalog::is_implicit_primary(table, i))
}

fn duplicate_constraint(table: &Table, name: &str) -> Error {
    Error::sql("42710", format!("constraint \"{name}\" for relation \"{}\" already exists", table.name))
}

/// The columns of a PRIMARY KEY or UNIQUE list, by name.
fn key_columns(columns: &[ast::IndexColumn]) -> Result<Vec<String>> {
    columns
        .iter()
        .map(|c| match &c.column.expr {
            Expr::Identifier(name) => Ok(fold(name)),
            other => Err(Error::sql("42601", format!("a key is made of columns, not of expressions such as {other}"))),
        })
        .collect()
}

fn index_columns(table: &Table, names: &[String]) -> Result<Vec<IndexColumn>> {
    let ordinals = resolve_names(table, names)?;
    ordinals.iter().try_for_each(|o| check_indexable(&table.columns[*o as usize].ty))?;
    Ok(ordinals.into_iter().map(|ordinal| IndexColumn { ordinal, descending: false, nulls_first: false }).collect())
}

fn constraint_index(id: u32, name: String, columns: Vec<IndexColumn>, stored: Vec<u32>) -> Index {
    Index {
        id,
        name,
        columns,
        unique: true,
        stored,
        holds_rows: false,
        is_constraint: true,
        predicate: None,
        is_hidden: false,
        state: IndexState::Public,
        comment: None,
    }
}

/// The primary index of a table without a primary key.
pub(super) fn row_id_index(id: u32, ordinal: u32, table: &str) -> Index {
    let columns = vec![IndexColumn { ordinal, descending: false, nulls_first: false }];
    Index { holds_rows: true, ..constraint_index(id, super::object_name(table, "", "pkey"), columns, Vec::new()) }
}

/// Makes an index the primary one; the row id that the old one was over goes with it.
pub(crate) fn replace_primary(table: &mut Table, at: usize) {
    let new = table.indexes.remove(at);
    let old = std::mem::replace(&mut table.indexes[0], new);
    for c in old.columns {
        let is_used = table.indexes.iter().any(|i| i.columns.iter().any(|k| k.ordinal == c.ordinal));
        let column = &mut table.columns[c.ordinal as usize];
        if column.is_row_id() && !is_used {
            column.state = ColumnState::Dropped;
        }
    }
}

fn mark_not_null(table: &mut Table, index: &Index) {
    for c in &index.columns {
        table.columns[c.ordinal as usize].not_null = true;
    }
}

fn check_key_types(table: &Table, name: &str, ordinals: &[u32], parent: &Table, parent_columns: &[u32]) -> Result<()> {
    if ordinals.len() != parent_columns.len() {
        return Err(Error::sql("42830", "number of referencing and referenced columns for foreign key disagree"));
    }
    for (own, theirs) in ordinals.iter().zip(parent_columns) {
        let (own, theirs) = (&table.columns[*own as usize], &parent.columns[*theirs as usize]);
        let is_int = |t: &Type| matches!(t, Type::Int2 | Type::Int4 | Type::Int8);
        let comparable = own.ty.same_base(&theirs.ty)
            || (is_int(&own.ty) && is_int(&theirs.ty))
            || (own.ty.is_string() && theirs.ty.is_string());
        if !comparable {
            let detail = format!(
                "Key columns \"{}\" and \"{}\" are of incompatible types: {} and {}.",
                own.name,
                theirs.name,
                own.ty.base_name(),
                theirs.ty.base_name()
            );
            return Err(Error::sql("42804", format!("foreign key constraint \"{name}\" cannot be implemented")).detail(detail));
        }
        let is_blank_padded = |t: &Type| matches!(t, Type::Char(_));
        if own.ty != theirs.ty && (is_blank_padded(&own.ty) || is_blank_padded(&theirs.ty)) {
            let detail = format!(
                "Columns \"{}\" and \"{}\" are of types {} and {}.",
                own.name,
                theirs.name,
                own.ty.name(),
                theirs.ty.name()
            );
            let what = "foreign keys between char(n) and a string type of another length are not supported";
            return Err(Error::unsupported(what).detail(detail).hint("Give both columns one type."));
        }
    }
    Ok(())
}

fn check_characteristics(c: &Option<ConstraintCharacteristics>) -> Result<()> {
    match c {
        Some(c) if c.deferrable == Some(true) || c.initially == Some(ast::DeferrableInitial::Deferred) => {
            Err(Error::unsupported("deferrable constraints are not supported yet"))
        }
        Some(c) if c.enforced == Some(false) => Err(Error::unsupported("NOT ENFORCED constraints are not supported")),
        _ => Ok(()),
    }
}

fn check_nulls(n: &NullsDistinctOption) -> Result<()> {
    match n {
        NullsDistinctOption::NotDistinct => Err(Error::unsupported("NULLS NOT DISTINCT is not supported yet")),
        _ => Ok(()),
    }
}

/// Removes a foreign key's mark at its parent.
pub(super) fn forget_reference(parent: &mut Table, table: DescriptorId, constraint: DescriptorId) {
    parent.referenced_by.retain(|r| *r != (table, constraint));
}
