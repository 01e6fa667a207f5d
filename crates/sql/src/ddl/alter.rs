//! `ALTER TABLE`.

use super::Deriver;
use super::columns::{named_column, refuse_being_added};
use super::constraint::Constraint;
use super::table::{check_on_update, on_update_text};
use crate::catalog::expression::{Facts, default_text, rename_column};
use crate::catalog::job::Job;
use crate::catalog::names::Name;
use crate::catalog::relation::Relation;
use crate::catalog::{ColumnState, Table, is_implicit_primary};
use crate::parse::fold;
use crate::plan::PlanContext;
use crate::types::{Datum, EvalContext, Style, Type};
use meridian_base::{DescriptorId, Error, Result};
use sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation, ColumnDef, DataType, DropBehavior, Expr, Ident, ObjectName,
    RenameTableNameKind,
};
use std::sync::Arc;

impl Deriver<'_> {
    pub(super) fn alter_table(&mut self, alter: &AlterTable) -> Result<()> {
        // PostgreSQL lets ALTER TABLE rename and give away every kind of relation.
        let Some(relation) = self.relation_if_exists(&alter.name, "relation", alter.if_exists)? else { return Ok(()) };
        self.must_own_relation(&relation)?;
        let id = match relation {
            Relation::Table(table) => table.id,
            Relation::System(t) => {
                return Err(Error::sql("42501", format!("permission denied: \"{}\" is a system catalog", t.name)));
            }
            other => return self.alter_other(&other, &alter.operations),
        };
        let columns_before = self.table_by_id(id)?.columns.len();
        for operation in &alter.operations {
            let table = self.table_by_id(id)?;
            super::refuse::refuse_in_change(&table)?;
            self.alter_once(table, operation)?;
        }
        let table = self.table_by_id(id)?;
        self.check_generated(&table)?;
        self.hide_filling(table);
        self.split_added(id)?;
        self.keep_columns(&self.table_by_id(id)?, columns_before);
        self.check_expressions(id)
    }

    /// Columns that are seen at once are taken back too, if what else the statement does fails.
    fn keep_columns(&mut self, table: &Table, columns_before: usize) {
        let added = (columns_before..table.columns.len()).filter(|at| table.columns[*at].state == ColumnState::Public);
        let ordinals: Vec<u32> = added.map(|at| at as u32).collect();
        if !ordinals.is_empty() && !self.jobs.is_empty() {
            self.jobs.push(Job::KeepColumns { table: table.id, ordinals });
        }
    }

    /// The actions of one statement see the columns that it adds. Everybody else will when their
    /// rows have them.
    fn hide_filling(&mut self, mut table: Table) {
        let mut ordinals = std::mem::take(&mut self.filling);
        ordinals.retain(|o| table.columns[*o as usize].state == ColumnState::Public);
        if ordinals.is_empty() {
            return;
        }
        let id = table.id;
        ordinals.iter().for_each(|o| table.columns[*o as usize].state = ColumnState::Filling);
        // What the other actions build and validate needs the values.
        self.jobs.insert(0, Job::FillColumns { table: id, ordinals: ordinals.clone() });
        self.jobs.push(Job::ShowColumns { table: id, ordinals });
        self.put(table);
    }

    fn alter_other(&mut self, relation: &Relation, operations: &[AlterTableOperation]) -> Result<()> {
        for operation in operations {
            match (operation, relation) {
                (AlterTableOperation::RenameTable { table_name }, Relation::Index(table, id)) => {
                    self.may_create_in(table.schema)?;
                    self.rename_index(table.id, *id, &new_name(table_name)?)?;
                }
                (AlterTableOperation::RenameTable { table_name }, other) => {
                    let id = other.descriptor().ok_or_else(|| Error::internal("a relation without a descriptor"))?;
                    self.rename_relation(id, &new_name(table_name)?)?;
                }
                (AlterTableOperation::OwnerTo { new_owner }, Relation::View(v)) => {
                    let owner = self.owner(new_owner)?;
                    self.give_to(v.id, owner)?;
                }
                (AlterTableOperation::OwnerTo { new_owner }, Relation::Sequence(s)) => {
                    let owner = self.owner(new_owner)?;
                    self.give_to(s.id, owner)?;
                }
                _ => return Err(Error::sql("42809", format!("ALTER action is not supported for {}s", relation.kind()))),
            }
        }
        Ok(())
    }

    fn alter_once(&mut self, mut table: Table, operation: &AlterTableOperation) -> Result<()> {
        use AlterTableOperation as Op;
        match operation {
            Op::AddColumn { column_def, if_not_exists, .. } => return self.alter_add_column(table, column_def, *if_not_exists),
            Op::DropColumn { column_names, if_exists, drop_behavior, .. } => {
                for name in column_names {
                    let table = self.table_by_id(table.id)?;
                    self.drop_column(table, &fold(name), *if_exists, is_cascade(drop_behavior))?;
                }
                return Ok(());
            }
            Op::RenameColumn { old_column_name, new_column_name } => {
                return self.rename_column(table, &fold(old_column_name), &fold(new_column_name));
            }
            Op::RenameTable { table_name } => return self.rename_relation(table.id, &new_name(table_name)?),
            Op::RenameConstraint { old_name, new_name } => {
                return self.rename_constraint(table, &fold(old_name), &fold(new_name));
            }
            Op::AlterColumn { column_name, op } => self.alter_column(&mut table, column_name, op)?,
            Op::AddConstraint { constraint, not_valid } => {
                let constraint = Constraint::from_table(constraint)?;
                self.add_constraint(&mut table, &constraint, !not_valid)?;
                // A foreign key changes its parent as well, and a self-reference is in `table`
                // already.
            }
            Op::DropConstraint { name, if_exists, drop_behavior } => {
                return self.drop_constraint(table, &fold(name), *if_exists, is_cascade(drop_behavior));
            }
            Op::ValidateConstraint { name } => self.validate_constraint(&table, &fold(name))?,
            Op::OwnerTo { new_owner } => {
                let owner = self.owner(new_owner)?;
                return self.give_to(table.id, owner);
            }
            Op::SetOptionsParens { options } => {
                self.table_parameters(options)?;
                super::locality::set_inference(&mut table, options)?;
            }
            // Settings of mechanisms that do not exist here, in the state they already have.
            Op::DisableRowLevelSecurity | Op::NoForceRowLevelSecurity | Op::SetLogged => {}
            other => return Err(Error::unsupported(format!("ALTER TABLE … {other} is not supported"))),
        }
        self.put(table);
        Ok(())
    }

    fn alter_add_column(&mut self, mut table: Table, definition: &ColumnDef, if_not_exists: bool) -> Result<()> {
        let name = fold(&definition.name);
        if if_not_exists && table.column(&name).is_some() {
            self.notice("42701", format!("column \"{name}\" of relation \"{}\" already exists, skipping", table.name));
            return Ok(());
        }
        let mut constraints = Vec::new();
        let ordinal = self.add_column(&mut table, definition, &mut constraints)?;
        if !self.is_private(table.id) {
            self.fill_existing_rows(&mut table, ordinal, constraints.iter().any(Constraint::is_primary))?;
        }
        for constraint in &constraints {
            self.add_constraint(&mut table, constraint, true)?;
        }
        self.put(table);
        Ok(())
    }

    /// What rows that are there already have in a new column. The default, if it is the same for
    /// all of them, without touching them (PostgreSQL manual, ALTER TABLE, notes); else a job
    /// writes them.
    fn fill_existing_rows(&mut self, table: &mut Table, ordinal: u32, is_key: bool) -> Result<()> {
        let column = &table.columns[ordinal as usize];
        let value = match &column.default {
            _ if column.generated.is_some() || column.identity.is_some() => None,
            None => Some(Datum::Null),
            Some(text) => {
                let catalog = Arc::new(self.catalog.clone());
                let context = PlanContext { catalog: &catalog, names: self.names(), eval: self.context.eval };
                crate::plan::stable_default(text, &column.ty, &context)?
            }
        };
        let column = &mut table.columns[ordinal as usize];
        let Some(value) = value else {
            column.not_null |= is_key;
            self.refuse_new_primary(table)?;
            self.filling.push(ordinal);
            return Ok(());
        };
        if !value.is_null() {
            // It will be read by sessions that write values in another way.
            let plain = EvalContext { style: Style::default(), ..self.context.eval.clone() };
            column.missing = Some(value.to_text(&column.ty, &plain));
        }
        if column.not_null && column.missing.is_none() {
            column.not_null = false;
            self.require_not_null(table, ordinal, true)?;
        }
        Ok(())
    }

    /// 55000 for a table that an earlier statement is giving another primary key: its rows are
    /// being copied as they are.
    fn refuse_new_primary(&self, table: &Table) -> Result<()> {
        let is_own = |id: u32| self.jobs.iter().any(|j| matches!(j, Job::BuildPrimary { index, .. } if *index == id));
        let Some(index) = table.indexes.iter().skip(1).find(|i| i.holds_rows && !is_own(i.id)) else { return Ok(()) };
        Err(Error::sql("55000", format!("primary key \"{}\" of table \"{}\" is being built", index.name, table.name))
            .hint("Add the column when that is done."))
    }

    fn drop_column(&mut self, mut table: Table, name: &str, if_exists: bool, cascade: bool) -> Result<()> {
        refuse_being_added(&table, name)?;
        let Some((ordinal, _)) = table.column(name) else {
            let message = format!("column \"{name}\" of relation \"{}\" does not exist", table.name);
            if !if_exists {
                return Err(Error::sql("42703", message));
            }
            self.notice("00000", format!("{message}, skipping"));
            return Ok(());
        };
        let views = self.views_over(table.id);
        if !cascade {
            let mut dependents: Vec<String> =
                views.iter().map(|(_, v)| format!("view {v} depends on table {}", table.name)).collect();
            for (_, column) in table.written_columns() {
                if let Some(text) = &column.generated
                    && uses(text, name)?
                {
                    dependents.push(format!(
                        "column {} of table {} depends on column {name} of table {}",
                        column.name, table.name, table.name
                    ));
                }
            }
            super::refuse::refuse_dependents(&format!("column {name} of table {}", table.name), dependents)?;
        }
        if table.primary().columns.iter().any(|c| c.ordinal == ordinal) {
            return Err(Error::unsupported(format!("dropping column \"{name}\" of the primary key is not supported yet"))
                .hint("Create a new table with another primary key and copy the rows."));
        }
        super::locality::refuse_region_column(&table, ordinal, "drop")?;
        for (view, _) in views {
            self.cascades_to(view);
            self.drop_view_by_id(view, true)?;
        }
        // Constraints and indexes over the column vanish with it, as in PostgreSQL.
        let of_column = |columns: &[u32]| columns.contains(&ordinal);
        for fk in table.foreign_keys.clone().iter().filter(|f| of_column(&f.columns)) {
            table.foreign_keys.retain(|f| f.id != fk.id);
            let own = table.id;
            super::constraint::forget_reference(&mut table, own, fk.id);
            self.detach(&table, fk)?;
        }
        let mut checks = Vec::new();
        for check in std::mem::take(&mut table.checks) {
            if !uses(&check.expression, name)? {
                checks.push(check);
            }
        }
        table.checks = checks;
        for at in 0..table.columns.len() {
            if let Some(text) = &table.columns[at].generated
                && uses(text, name)?
            {
                super::locality::refuse_region_column(&table, at as u32, "drop")?;
                table.columns[at].state = ColumnState::Dropped;
            }
        }
        let column = &mut table.columns[ordinal as usize];
        column.state = ColumnState::Dropped;
        column.default = None;
        let indexes: Vec<u32> = table
            .indexes
            .iter()
            .filter(|i| i.columns.iter().any(|c| c.ordinal == ordinal) || (i.stored.contains(&ordinal) && !i.holds_rows))
            .map(|i| i.id)
            .collect();
        self.put(table.clone());
        for index in indexes {
            let table = self.table_by_id(table.id)?;
            self.remove_index(table, index, cascade)?;
        }
        for sequence in self.sequences_of(table.id, Some(ordinal)) {
            self.drop_sequence_by_id(sequence.id, true)?;
        }
        Ok(())
    }

    fn rename_column(&mut self, mut table: Table, from: &str, to: &str) -> Result<()> {
        refuse_being_added(&table, from)?;
        let Some((ordinal, column)) = table.column(from) else {
            return Err(Error::sql("42703", format!("column \"{from}\" does not exist")));
        };
        if column.is_row_id() && is_implicit_primary(&table, table.primary()) {
            return Err(Error::unsupported("the row id of a table without a primary key cannot be renamed"));
        }
        super::table::check_new_column(&table, to)?;
        if let Some((_, view)) = self.views_over(table.id).first() {
            return Err(Error::unsupported("renaming a column of a table that views use is not supported yet")
                .detail(format!("View \"{view}\" uses table \"{}\".", table.name)));
        }
        for check in &mut table.checks {
            check.expression = rename_column(&check.expression, from, to)?;
        }
        for column in &mut table.columns {
            if let Some(text) = &column.generated {
                column.generated = Some(rename_column(text, from, to)?);
            }
        }
        table.columns[ordinal as usize].name = to.to_string();
        self.put(table);
        Ok(())
    }

    /// Renames a table, view or sequence.
    pub(super) fn rename_relation(&mut self, id: DescriptorId, new: &str) -> Result<()> {
        let Some(mut d) = self.catalog.descriptors.get(&id).map(|d| (**d).clone()) else {
            return Err(Error::internal("a relation of this statement is gone"));
        };
        self.may_create_in(d.parent())?;
        if self.catalog.is_relation_name_taken(d.parent(), new) {
            return Err(Error::sql("42P07", format!("relation \"{new}\" already exists")));
        }
        if let Some((_, view)) = self.views_over(id).first() {
            return Err(Error::unsupported("renaming a relation that views use is not supported yet")
                .detail(format!("View \"{view}\" uses \"{}\".", d.name().unwrap_or_default())));
        }
        let new = new.to_string();
        match &mut d {
            crate::catalog::Descriptor::Table(x) => x.name = new,
            crate::catalog::Descriptor::View(x) => x.name = new,
            crate::catalog::Descriptor::Sequence(x) => x.name = new,
            _ => return Err(Error::internal("only relations are renamed here")),
        }
        self.put(d);
        Ok(())
    }

    fn rename_constraint(&mut self, mut table: Table, from: &str, to: &str) -> Result<()> {
        if super::constraint::constraint_exists(&table, to) {
            return Err(Error::sql("42710", format!("constraint \"{to}\" for relation \"{}\" already exists", table.name)));
        }
        if let Some(id) = super::index::index_named(&table, from).filter(|i| i.is_constraint).map(|i| i.id) {
            return self.rename_index(table.id, id, to);
        }
        if let Some(check) = table.checks.iter_mut().find(|c| c.name == from) {
            check.name = to.to_string();
        } else if let Some(fk) = table.foreign_keys.iter_mut().find(|f| f.name == from) {
            fk.name = to.to_string();
        } else {
            return Err(no_constraint(&table, from));
        }
        self.put(table);
        Ok(())
    }

    /// `ALTER COLUMN column SET ON UPDATE expression`, or `DROP ON UPDATE`.
    pub(super) fn set_on_update(
        &mut self,
        table: &ObjectName,
        if_exists: bool,
        column: &str,
        expression: Option<&Expr>,
    ) -> Result<()> {
        let Some(table) = self.table_if_exists(table, if_exists)? else { return Ok(()) };
        self.must_own(table.id)?;
        super::refuse::refuse_in_change(&table)?;
        let mut table = (*table).clone();
        let (ordinal, _) = named_column(&table, column)?;
        table.columns[ordinal as usize].on_update = expression.map(on_update_text).transpose()?;
        check_on_update(&table.columns[ordinal as usize])?;
        let id = table.id;
        self.put(table);
        self.check_expressions(id)
    }

    /// `ALTER COLUMN column SET [NOT] VISIBLE`.
    pub(super) fn set_visible(&mut self, table: &ObjectName, if_exists: bool, column: &str, is_visible: bool) -> Result<()> {
        let Some(table) = self.table_if_exists(table, if_exists)? else { return Ok(()) };
        self.must_own(table.id)?;
        let mut table = (*table).clone();
        let (ordinal, _) = named_column(&table, column)?;
        let had_key = !is_implicit_primary(&table, table.primary());
        table.columns[ordinal as usize].is_hidden = !is_visible;
        if had_key && is_implicit_primary(&table, table.primary()) {
            return Err(Error::unsupported(format!("column \"{column}\" cannot be made not visible"))
                .detail("It would be taken for the row id of a table without a primary key."));
        }
        self.put(table);
        Ok(())
    }

    fn alter_column(&mut self, table: &mut Table, name: &Ident, operation: &AlterColumnOperation) -> Result<()> {
        let name = fold(name);
        let (ordinal, column) = named_column(table, &name)?;
        let has_source = if column.identity.is_some() {
            Some("an identity column")
        } else if column.generated.is_some() {
            Some("a generated column")
        } else {
            None
        };
        match operation {
            AlterColumnOperation::SetDefault { value } => {
                if let Some(what) = has_source {
                    return Err(Error::sql("42601", format!("column \"{name}\" of relation \"{}\" is {what}", table.name)));
                }
                let names = self.names();
                let text = default_text(value, &column.ty.clone(), &|n| self.catalog.relation(names, n))?;
                table.columns[ordinal as usize].default = Some(text);
            }
            AlterColumnOperation::DropDefault => {
                if let Some(what) = has_source {
                    return Err(Error::sql("42601", format!("column \"{name}\" of relation \"{}\" is {what}", table.name)));
                }
                table.columns[ordinal as usize].default = None;
            }
            AlterColumnOperation::SetNotNull => self.require_not_null(table, ordinal, false)?,
            AlterColumnOperation::DropNotNull => {
                super::locality::refuse_region_column(table, ordinal, "drop NOT NULL of")?;
                if table.indexes.iter().any(|i| i.holds_rows && i.columns.iter().any(|c| c.ordinal == ordinal)) {
                    return Err(Error::sql("42P16", format!("column \"{name}\" is in a primary key")));
                }
                if column.identity.is_some() {
                    return Err(Error::sql(
                        "42601",
                        format!("column \"{name}\" of relation \"{}\" is an identity column", table.name),
                    ));
                }
                table.columns[ordinal as usize].not_null = false;
            }
            AlterColumnOperation::SetDataType { data_type, using, .. } => {
                self.alter_type(table, ordinal, data_type, using.as_ref())?;
            }
            AlterColumnOperation::AddGenerated { generated_as, sequence_options } => {
                if !column.not_null {
                    return Err(Error::sql(
                        "55000",
                        format!(
                            "column \"{name}\" of relation \"{}\" must be declared NOT NULL before identity can be added",
                            table.name
                        ),
                    ));
                }
                if column.default.is_some() {
                    return Err(Error::sql(
                        "55000",
                        format!("column \"{name}\" of relation \"{}\" already has a default value", table.name),
                    ));
                }
                let kind = generated_as.unwrap_or(sqlparser::ast::GeneratedAs::Always);
                self.add_identity(table, ordinal, &kind, sequence_options.as_deref().unwrap_or(&[]))?;
            }
        }
        Ok(())
    }

    /// Only changes that leave every stored value as it is (PostgreSQL skips the rewrite for the
    /// same ones).
    fn alter_type(&mut self, table: &mut Table, ordinal: u32, data_type: &DataType, using: Option<&Expr>) -> Result<()> {
        let new = crate::catalog::declared::type_from_ast(data_type)?;
        super::locality::refuse_region_column(table, ordinal, "change the type of")?;
        let column = &mut table.columns[ordinal as usize];
        if using.is_some_and(|e| !matches!(e, Expr::Identifier(i) if fold(i) == column.name)) && !self.is_private(table.id) {
            return Err(rewrite_needed(&column.ty, &new));
        }
        let widens = |a: Option<u32>, b: Option<u32>| match (a, b) {
            (_, None) => true,
            (Some(a), Some(b)) => a <= b,
            (None, Some(_)) => false,
        };
        let keeps_stored_form = match (&column.ty, &new) {
            (a, b) if a == b => true,
            (Type::Varchar(_), Type::Text) | (Type::Text, Type::Varchar(None)) => true,
            (Type::Varchar(a), Type::Varchar(b)) => widens(*a, *b),
            (Type::Numeric(_), Type::Numeric(None)) => true,
            (Type::Numeric(Some((p, s))), Type::Numeric(Some((q, t)))) => s == t && p <= q,
            _ => false,
        };
        if !keeps_stored_form && !self.is_private(table.id) {
            return Err(rewrite_needed(&column.ty, &new));
        }
        column.ty = new;
        Ok(())
    }

    fn drop_constraint(&mut self, mut table: Table, name: &str, if_exists: bool, cascade: bool) -> Result<()> {
        if let Some(at) = table.checks.iter().position(|c| c.name == name) {
            table.checks.remove(at);
        } else if let Some(at) = table.foreign_keys.iter().position(|f| f.name == name) {
            let fk = table.foreign_keys.remove(at);
            let own = table.id;
            super::constraint::forget_reference(&mut table, own, fk.id);
            self.detach(&table, &fk)?;
        } else if let Some(index) = super::index::index_named(&table, name).filter(|i| i.is_constraint) {
            if index.id == table.primary().id {
                return Err(Error::unsupported("dropping a primary key is not supported yet")
                    .hint("Create a new table without it, or with another one, and copy the rows."));
            }
            let id = index.id;
            return self.remove_index(table, id, cascade);
        } else if if_exists {
            self.notice("00000", format!("constraint \"{name}\" of relation \"{}\" does not exist, skipping", table.name));
            return Ok(());
        } else {
            return Err(no_constraint(&table, name));
        }
        self.put(table);
        Ok(())
    }

    fn validate_constraint(&mut self, table: &Table, name: &str) -> Result<()> {
        if let Some(check) = table.checks.iter().find(|c| c.name == name) {
            if !check.validated {
                self.jobs.push(Job::ValidateCheck { table: table.id, check: check.id, keep: true });
            }
        } else if let Some(fk) = table.foreign_keys.iter().find(|f| f.name == name) {
            if !fk.validated {
                self.jobs.push(Job::ValidateForeignKey { table: table.id, constraint: fk.id, keep: true });
            }
        } else if super::index::index_named(table, name).is_some_and(|i| i.is_constraint) {
            return Err(Error::sql(
                "42809",
                format!("constraint \"{name}\" of relation \"{}\" is not a foreign key or check constraint", table.name),
            ));
        } else {
            return Err(no_constraint(table, name));
        }
        Ok(())
    }
}

fn new_name(name: &RenameTableNameKind) -> Result<String> {
    let (RenameTableNameKind::As(name) | RenameTableNameKind::To(name)) = name;
    let name = Name::from_ast(name)?;
    if name.schema.is_some() {
        return Err(Error::sql("42601", "the new name cannot be qualified with a schema"));
    }
    Ok(name.name)
}

fn is_cascade(behavior: &Option<DropBehavior>) -> bool {
    *behavior == Some(DropBehavior::Cascade)
}

fn uses(expression: &str, column: &str) -> Result<bool> {
    Ok(Facts::of(&crate::catalog::expression::parse_expression(expression)?).columns.iter().any(|c| c == column))
}

fn no_constraint(table: &Table, name: &str) -> Error {
    Error::sql("42704", format!("constraint \"{name}\" of relation \"{}\" does not exist", table.name))
}

fn rewrite_needed(from: &Type, to: &Type) -> Error {
    Error::unsupported(format!("changing a column from type {} to type {} is not supported yet", from.name(), to.name()))
        .detail("Every stored row would have to be written again.")
        .hint("Add a column of the new type, fill it with UPDATE, drop the old column and rename the new one.")
}
