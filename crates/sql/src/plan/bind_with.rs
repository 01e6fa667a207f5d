//! Binds `WITH`: common table expressions, the recursive ones and those that change something
//! among them.

use super::binder::OutCol;
use super::binder::{Binder, CteBinding, CteKind};
use super::rel::*;
use crate::parse::fold;
use crate::types::Type;
use crate::types::cast::select_common_type;
use meridian_base::{DescriptorId, Error, Result};
use sqlparser::ast;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Binder<'_> {
    /// Binds the common table expressions of a query. Returns those that change something, and
    /// those that only read.
    pub(super) fn with(&mut self, with: Option<&ast::With>) -> Result<(Vec<Rel>, Vec<Rel>)> {
        let (mut changing, mut reading) = (Vec::new(), Vec::new());
        let tables = with.map_or(&[][..], |with| &with.cte_tables);
        for (i, cte) in tables.iter().enumerate() {
            let name = fold(&cte.alias.name);
            if tables[..i].iter().any(|other| fold(&other.alias.name) == name) {
                return Err(Error::sql("42712", format!("WITH query name \"{name}\" specified more than once")));
            }
            self.cte(cte, with.is_some_and(|with| with.recursive))?;
            if let Some(cte) = self.last_cte() {
                if cte.changes() { changing.push(cte) } else { reading.push(cte) }
            }
        }
        Ok((changing, reading))
    }

    fn cte(&mut self, cte: &ast::Cte, recursive: bool) -> Result<()> {
        let name = fold(&cte.alias.name);
        let renames: Vec<String> = cte.alias.columns.iter().map(|c| fold(&c.name)).collect();
        let id = self.slot();
        let is_materialized = matches!(cte.materialized, Some(ast::CteAsMaterialized::Materialized));
        let (bound, cols) = if recursive && mentions(&cte.query, &name) {
            self.recursive_cte(cte, &name, &renames, id)?
        } else {
            let (body, cols) = self.query(&cte.query)?;
            let cols = renamed(cols, &renames, &name)?;
            let bound = Cte { id, name: name.clone(), body, step: None, is_materialized };
            (bound, cols.into_iter().map(|c| (c.name, c.ty)).collect())
        };
        self.ctes.push(CteBinding { name, cols, kind: CteKind::Bound(Arc::new(bound)) });
        Ok(())
    }

    /// The common table expression bound last.
    fn last_cte(&mut self) -> Option<Rel> {
        let CteKind::Bound(cte) = self.ctes.last()?.kind.clone() else { return None };
        let cols = cte.body.cols().iter().map(|_| self.fresh()).collect();
        Some(Rel::Cte { cte, cols })
    }

    fn recursive_cte(&mut self, cte: &ast::Cte, name: &str, renames: &[String], id: u32) -> Result<(Cte, Vec<(String, Type)>)> {
        let malformed = || {
            Error::sql(
                "42P19",
                format!("recursive query \"{name}\" does not have the form non-recursive-term UNION [ALL] recursive-term"),
            )
        };
        let ast::SetExpr::SetOperation { left, op: ast::SetOperator::Union, set_quantifier, right } = &*cte.query.body else {
            return Err(malformed());
        };
        if cte.query.with.is_some() || cte.query.order_by.is_some() || cte.query.limit_clause.is_some() {
            return Err(Error::unsupported("ORDER BY or LIMIT in a recursive query is not implemented"));
        }
        let (body, cols) = self.set_expr(left)?;
        let mut settled = Vec::new();
        for c in renamed(cols, renames, name)? {
            settled.push(c);
        }
        let cols: Vec<(String, Type)> = settled.iter().map(|c| (c.name.clone(), c.ty.clone())).collect();
        let mark = self.ctes.len();
        self.ctes.push(CteBinding { name: name.to_string(), cols: cols.clone(), kind: CteKind::Work(id) });
        let step = self.set_expr(right);
        self.ctes.truncate(mark);
        let (step, step_cols) = step?;
        super::recursion::check(&step, id, name)?;
        if step_cols.len() != cols.len() {
            return Err(Error::sql("42601", "each UNION query must have the same number of columns"));
        }
        for (i, (a, b)) in cols.iter().zip(&step_cols).enumerate() {
            let common = select_common_type(&[a.1.clone(), b.ty.clone()], "UNION")?;
            if common != a.1 {
                let message = format!(
                    "recursive query \"{name}\" column {} has type {} in non-recursive term but type {} overall",
                    i + 1,
                    a.1.name(),
                    common.name()
                );
                return Err(Error::sql("42804", message).hint("Cast the output of the non-recursive term to the correct type."));
            }
        }
        let types: Vec<Type> = cols.iter().map(|c| c.1.clone()).collect();
        let step = self.cast_cols(step, &step_cols, &types)?;
        let distinct = *set_quantifier != ast::SetQuantifier::All;
        Ok((Cte { id, name: name.to_string(), body, step: Some((step, distinct)), is_materialized: true }, cols))
    }
}

/// In PostgreSQL all parts of a statement see the state before it. Here the changes come one after
/// the other before the query. So those common table expressions come first that only read, if they
/// read what is changed and somebody names them.
pub(super) fn read_before(reading: &[Rel], changing: &[Rel], rel: &Rel) -> Vec<Rel> {
    let mut changed = BTreeSet::new();
    let mut named = BTreeSet::new();
    for part in changing.iter().chain([rel]) {
        part.visit(&mut |r| match r {
            Rel::Dml { dml, .. } => changed.extend(dml.changes()),
            Rel::Cte { cte, .. } => drop(named.insert(cte.id)),
            _ => {}
        });
    }
    let is_before = |cte: &&Rel| {
        let mut reads = false;
        cte.visit(&mut |r| reads |= matches!(r, Rel::Table { table, .. } if changed.contains(&table.id)));
        reads && cte.cte_id().is_some_and(|id| named.contains(&id))
    };
    reading.iter().filter(is_before).cloned().collect()
}

/// 0A000 if anything that comes later reads what is changed by then.
pub(super) fn reads_what_is_changed(before: &[Rel], changing: &[Rel], rel: &Rel) -> Result<()> {
    let mut changed = BTreeSet::new();
    let done: BTreeSet<u32> = before.iter().chain(changing).filter_map(Rel::cte_id).collect();
    for part in changing {
        // What it is made of: it is a table expression itself.
        part.inputs().into_iter().try_for_each(|input| unread(input, &changed, &done))?;
        part.visit(&mut |r| {
            if let Rel::Dml { dml, .. } = r {
                changed.extend(dml.changes());
            }
        });
    }
    unread(rel, &changed, &done)
}

/// 0A000 if a part of a statement reads one of the tables that others have changed by then. The
/// common table expressions in `done` have their rows already.
fn unread(rel: &Rel, changed: &BTreeSet<DescriptorId>, done: &BTreeSet<u32>) -> Result<()> {
    let mut read = None;
    rel.visit_but(&mut done.clone(), &mut |r| match r {
        Rel::Table { table, .. } if changed.contains(&table.id) => read = Some(table.name.clone()),
        _ => {}
    });
    match read {
        Some(table) => {
            Err(Error::unsupported(format!("a statement cannot yet read table \"{table}\", which its WITH clause changes"))
                .hint("Use RETURNING, a WITH query that only reads the table, or two statements."))
        }
        None => Ok(()),
    }
}

/// Whether a query's text names a table anywhere: only then is `WITH RECURSIVE` recursive.
fn mentions(q: &ast::Query, name: &str) -> bool {
    let mut found = false;
    let _ = ast::visit_relations(q, |r| {
        found |= r.0.len() == 1 && r.0[0].as_ident().is_some_and(|i| fold(i) == name);
        std::ops::ControlFlow::<()>::Continue(())
    });
    found
}

pub(super) fn renamed(mut cols: Vec<OutCol>, names: &[String], table: &str) -> Result<Vec<OutCol>> {
    if names.len() > cols.len() {
        let message =
            format!("WITH query \"{table}\" has {} columns available but {} columns specified", cols.len(), names.len());
        return Err(Error::sql("42P10", message));
    }
    for (c, n) in cols.iter_mut().zip(names) {
        c.name.clone_from(n);
    }
    Ok(cols)
}
