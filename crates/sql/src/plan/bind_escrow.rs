//! Binds what is said about escrow columns beside their numbers: `escrow_estimate(column)` and
//! `[SHOW ESCROW FOR TABLE …]` (`docs/design/escrow.md`, E12).

use super::binder::{Binder, Scope, ScopeCol, Typed};
use super::rel::{Rel, SharesOf, SortKey};
use crate::catalog::names::Name;
use crate::env::Locking;
use crate::parse::ShowEscrow;
use crate::plan::expr::{ColId, Expr};
use crate::types::Type;
use meridian_base::{Error, Result};
use sqlparser::ast::{self, Expr as Ast};

/// The columns behind those of the primary key.
const COLUMNS: [(&str, Type); 5] = [
    ("column_name", Type::Text),
    ("region", Type::Text),
    ("part", Type::Numeric(None)),
    ("can_take", Type::Numeric(None)),
    ("can_add", Type::Numeric(None)),
];

impl Binder<'_> {
    /// `escrow_estimate(column)`: a column of its own beside the table's. 42809 if the argument is
    /// no escrow column; 0A000 if the column's table is not read where the call stands.
    pub(crate) fn escrow_estimate(&mut self, args: &[&Ast]) -> Result<Typed> {
        let [arg] = args else {
            return Err(Error::sql("42883", format!("function escrow_estimate with {} arguments does not exist", args.len())));
        };
        let Typed { expr: Expr::Column(id), ty, .. } = self.expr(arg)? else {
            return Err(Error::sql("42809", "the argument of escrow_estimate must be an escrow column"));
        };
        let found = self.scopes.iter().rev().flat_map(|s| &s.cols).find(|c| c.id == id);
        let (estimate, origin) = found.map_or((None, None), |c| (c.estimate, c.origin));
        if let Some(estimate) = estimate {
            return Ok(Typed::new(Expr::Column(estimate), ty));
        }
        let table = origin.and_then(|(table, _)| self.ctx.catalog.table_by_id(table));
        let name = found.map(|c| c.name.clone()).unwrap_or_default();
        match (table, origin) {
            (Some(table), Some((_, ordinal))) if table.escrow_column(ordinal).is_some() => {
                Err(Error::unsupported(format!("escrow_estimate of column \"{name}\" is not supported here"))
                    .hint("Call it in a query whose FROM names the table itself."))
            }
            _ => Err(Error::sql("42809", format!("column \"{name}\" is not an escrow column"))),
        }
    }

    /// `[SHOW ESCROW …]`: a row for each row of the table, escrow column and site, in the order of
    /// the primary key.
    pub(crate) fn shown_escrow(&mut self, of: &ShowEscrow, shown: &ast::Ident, alias: &str) -> Result<(Rel, Vec<ScopeCol>)> {
        let name = Name::from_ast(&of.table)?;
        let table = self.ctx.catalog.table(self.ctx.names, &name).map_err(|e| self.at(e, shown.span))?;
        if table.escrow.is_empty() {
            let e = Error::sql("42809", format!("table \"{}\" has no escrow columns", table.name));
            return Err(self.at(e, shown.span));
        }
        let (rel, cols) = self.table(table.clone(), &table.name, Locking::None);
        let Rel::Table { base, .. } = rel else { return Err(Error::internal("a table that is none")) };
        let keys: Vec<u32> = table.primary().columns.iter().map(|c| c.ordinal).collect();
        let conds = of.row.as_ref().map(|row| self.row_of(&table.name, row, &keys, &cols, base, shown)).transpose()?;
        let order = |c: &crate::catalog::IndexColumn| SortKey {
            expr: Expr::Column(base + c.ordinal),
            descending: c.descending,
            nulls_first: c.nulls_first,
        };
        let sorted = Rel::Sort {
            input: Box::new(rel.filtered(conds.unwrap_or_default())),
            keys: table.primary().columns.iter().map(order).collect(),
        };
        let made = self.fresh_many(COLUMNS.len());
        let key = |o: &u32| cols.iter().position(|c| c.id == base + o);
        let places: Option<Vec<usize>> = keys.iter().map(key).collect();
        let places = places.ok_or_else(|| Error::internal("a primary key with a column that is not there"))?;
        let key = |at: usize| ScopeCol { table: alias.to_string(), schema: None, hidden: false, ..cols[at].clone() };
        let mut out: Vec<ScopeCol> = places.into_iter().map(key).collect();
        out.extend(COLUMNS.iter().zip(made..).map(|((name, ty), id)| ScopeCol {
            table: alias.to_string(),
            schema: None,
            name: name.to_string(),
            id,
            ty: ty.clone(),
            qualified_only: false,
            hidden: false,
            origin: None,
            estimate: None,
        }));
        let cols = out.iter().map(|c| c.id).collect();
        Ok((Rel::Shares(Box::new(SharesOf { input: sorted, table, base, cols })), out))
    }

    /// The conditions of `FOR ROW`.
    fn row_of(
        &mut self,
        table: &str,
        row: &[Ast],
        keys: &[u32],
        cols: &[ScopeCol],
        base: ColId,
        shown: &ast::Ident,
    ) -> Result<Vec<Expr>> {
        if row.len() != keys.len() {
            let e = Error::sql("42601", format!("FOR ROW has the wrong number of values for table \"{table}\"")).detail(format!(
                "Its primary key has {}, FOR ROW has {}.",
                keys.len(),
                row.len()
            ));
            return Err(self.at(e, shown.span));
        }
        // The values see no columns, and their text is not the statement's.
        let (scopes, text) = (std::mem::take(&mut self.scopes), std::mem::take(&mut self.text));
        let scope = Scope { no_aggregates: Some("FOR ROW"), ..Scope::default() };
        let bound = self.in_scope(scope, |b| {
            let one = |(value, ordinal): (&Ast, &u32)| {
                let ty = cols.iter().find(|c| c.id == base + ordinal).map_or(Type::Unknown, |c| c.ty.clone());
                let column = Typed::new(Expr::Column(base + ordinal), ty);
                let value_ = b.expr(value)?;
                b.operator_typed("=", column, value_, value).map(|cond| cond.expr)
            };
            row.iter().zip(keys).map(one).collect::<Result<Vec<Expr>>>()
        });
        (self.scopes, self.text) = (scopes, text);
        bound.map(|(conds, _)| conds).map_err(|e| self.at(e, shown.span))
    }
}
