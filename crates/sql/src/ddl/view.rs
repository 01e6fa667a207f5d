//! Views: the text of a query, with every table name qualified, so that it means the same under
//! every search path.

use super::Deriver;
use crate::catalog::View;
use crate::catalog::names::Name;
use crate::catalog::relation::Relation;
use crate::parse::fold;
use crate::parse::{AlterView, Kind, Statement};
use crate::plan::{PlanContext, prepare};
use crate::types::Type;
use meridian_base::{DescriptorId, Error, Result};
use sqlparser::ast::{self, CreateTableOptions, CreateView, ObjectName, Query, VisitMut, Visitor, VisitorMut};
use std::ops::ControlFlow;
use std::sync::Arc;

impl Deriver<'_> {
    pub(super) fn create_view(&mut self, create: &CreateView) -> Result<()> {
        refuse_unsupported(create)?;
        let name = Name::from_ast(&create.name)?;
        let schema = self.catalog.schema_for_new(self.names(), &name)?.id;
        self.may_create_in(schema)?;
        let existing =
            match self.catalog.find_relation(self.names(), &Name { schema: Some(self.schema_name(schema)), ..name.clone() })? {
                Some(Relation::View(v)) if create.or_replace => Some(v),
                Some(_) if create.if_not_exists => {
                    self.notice("42P07", format!("relation \"{}\" already exists, skipping", name.name));
                    return Ok(());
                }
                Some(Relation::View(_)) | Some(Relation::Table(_)) if !create.or_replace => {
                    return Err(Error::sql("42P07", format!("relation \"{}\" already exists", name.name)));
                }
                Some(_) => return Err(Error::sql("42809", format!("\"{}\" is not a view", name.name))),
                None => None,
            };
        let (query, depends_on) = self.qualified(&create.query)?;
        let columns = self.columns_of(&query, create)?;
        let id = match &existing {
            Some(old) => {
                self.must_own(old.id)?;
                check_replacement(old, &columns)?;
                old.id
            }
            None => self.new_descriptor_id(),
        };
        if depends_on.contains(&id) {
            return Err(Error::sql("42P17", format!("infinite recursion detected in rules for relation \"{}\"", name.name)));
        }
        let owner = self.names().user.clone();
        let access = existing.as_ref().map_or_else(|| self.own_access(), |v| v.access.clone());
        let comment = existing.and_then(|v| v.comment.clone());
        self.put(View { id, schema, name: name.name, query: query.to_string(), columns, depends_on, owner, comment, access });
        Ok(())
    }

    pub(super) fn alter_view(&mut self, name: &ObjectName, if_exists: bool, action: &AlterView) -> Result<()> {
        let view = match self.relation_if_exists(name, "relation", if_exists)? {
            None => return Ok(()),
            Some(Relation::View(v)) => v,
            Some(other) => return Err(super::refuse::wrong_kind(name, &other, "view")),
        };
        self.must_own(view.id)?;
        match action {
            AlterView::Rename(new) => self.rename_relation(view.id, new),
            AlterView::Owner(owner) => {
                let owner = self.named_role(owner)?;
                self.give_to(view.id, owner)
            }
        }
    }

    fn schema_name(&self, schema: DescriptorId) -> String {
        self.catalog.schema_by_id(schema).map(|s| s.name.clone()).unwrap_or_default()
    }

    /// The query with its tables' names qualified, and what it uses.
    fn qualified(&self, query: &Query) -> Result<(Query, Vec<DescriptorId>)> {
        let mut query = query.clone();
        let mut ctes = Ctes::default();
        let _ = ast::Visit::visit(&query, &mut ctes);
        let mut qualify = Qualify { deriver: self, ctes: ctes.0, used: Vec::new() };
        if let ControlFlow::Break(e) = query.visit(&mut qualify) {
            return Err(e);
        }
        let mut used = qualify.used;
        used.sort();
        used.dedup();
        Ok((query, used))
    }

    /// Names and types of a view's columns: the query's, under the names the statement gives.
    fn columns_of(&self, query: &Query, create: &CreateView) -> Result<Vec<(String, Type)>> {
        let statement = Statement {
            kind: Kind::Sql(Box::new(ast::Statement::Query(Box::new(query.clone())))),
            text: query.to_string(),
            offset: 0,
            as_of: None,
            overriding: None,
            row_locks: Default::default(),
            ignored: Vec::new(),
            truncated: Vec::new(),
        };
        let catalog = Arc::new(self.catalog.clone());
        let context = PlanContext { catalog: &catalog, names: self.names(), eval: self.context.eval };
        let prepared = prepare(&statement, &context, &[])?;
        if !prepared.params.is_empty() {
            return Err(Error::sql("42P02", "there is no parameter $1 in a view"));
        }
        if create.columns.len() > prepared.columns.len() {
            return Err(Error::sql("42601", "CREATE VIEW specifies more column names than columns"));
        }
        let mut columns = Vec::with_capacity(prepared.columns.len());
        for (i, column) in prepared.columns.into_iter().enumerate() {
            let name = create.columns.get(i).map_or(column.name, |c| fold(&c.name));
            if columns.iter().any(|(n, _)| *n == name) {
                return Err(Error::sql("42701", format!("column \"{name}\" specified more than once")));
            }
            let ty = if column.ty == Type::Unknown { Type::Text } else { column.ty };
            columns.push((name, ty));
        }
        Ok(columns)
    }
}

/// The names of a query's common table expressions. One that is also a table's name keeps its
/// meaning everywhere in the query, which is coarse but never wrong by itself: such a name is left
/// as it is.
#[derive(Default)]
struct Ctes(Vec<String>);

impl Visitor for Ctes {
    type Break = ();
    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        if let Some(with) = &query.with {
            self.0.extend(with.cte_tables.iter().map(|c| fold(&c.alias.name)));
        }
        ControlFlow::Continue(())
    }
}

struct Qualify<'d, 'c> {
    deriver: &'d Deriver<'c>,
    ctes: Vec<String>,
    used: Vec<DescriptorId>,
}

impl VisitorMut for Qualify<'_, '_> {
    type Break = Error;
    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<Error> {
        match self.qualify(relation) {
            Ok(()) => ControlFlow::Continue(()),
            Err(e) => ControlFlow::Break(e),
        }
    }
}

impl Qualify<'_, '_> {
    fn qualify(&mut self, relation: &mut ObjectName) -> Result<()> {
        let name = Name::from_ast(relation)?;
        if name.schema.is_none() && self.ctes.contains(&name.name) {
            return Ok(());
        }
        let Some(found) = self.deriver.catalog.find_relation(self.deriver.names(), &name)? else {
            // Set-returning functions in FROM are relations to the parser; the planner reports what
            // is neither.
            return Ok(());
        };
        let schema = match (&found, found.descriptor()) {
            (Relation::System(t), _) => t.schema.to_string(),
            (_, Some(id)) => {
                self.used.push(id);
                let parent = self.deriver.catalog.descriptors.get(&id).map(|d| d.parent());
                parent.map(|p| self.deriver.schema_name(p)).unwrap_or_default()
            }
            _ => return Ok(()),
        };
        *relation = ObjectName::from(vec![
            crate::catalog::expression::quoted_ident(&schema),
            crate::catalog::expression::quoted_ident(&name.name),
        ]);
        Ok(())
    }
}

/// `OR REPLACE` may only add columns at the end (PostgreSQL manual, CREATE VIEW).
fn check_replacement(old: &View, new: &[(String, Type)]) -> Result<()> {
    if new.len() < old.columns.len() {
        return Err(Error::sql("42P16", "cannot drop columns from view"));
    }
    for ((old_name, old_type), (name, ty)) in old.columns.iter().zip(new) {
        if old_name != name {
            return Err(Error::sql("42P16", format!("cannot change name of view column \"{old_name}\" to \"{name}\""))
                .hint("Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead."));
        }
        if old_type != ty {
            return Err(Error::sql(
                "42P16",
                format!("cannot change data type of view column \"{name}\" from {} to {}", old_type.name(), ty.name()),
            ));
        }
    }
    Ok(())
}

fn refuse_unsupported(create: &CreateView) -> Result<()> {
    if create.materialized {
        return Err(Error::unsupported("materialized views are not supported yet"));
    }
    if create.temporary {
        return Err(Error::unsupported("temporary views are not supported yet"));
    }
    if create.or_alter || create.secure || create.to.is_some() || create.options != CreateTableOptions::None {
        return Err(Error::unsupported("this form of CREATE VIEW is not supported"));
    }
    Ok(())
}
