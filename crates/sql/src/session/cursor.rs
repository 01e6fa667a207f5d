//! Prepared statements and cursors by SQL statements: `EXECUTE`, `DEALLOCATE`, `DECLARE`, `FETCH`,
//! `MOVE`, `CLOSE`.

use super::extended::{Named, Place, Portal, PortalState};
use super::load::Again;
use super::run::Fetching;
use super::run::TagText;
use super::simple::Manner;
use super::{Formats, Output, OutputColumn, Session};
use crate::env::Environment;
use crate::exec::{Execution, Fetched, RowSink};
use crate::parse::ast::{self, CloseCursor, Expr, Ident};
use crate::parse::fold;
use crate::parse::{Fetch, FetchTarget, Statement, parse_one_statement};
use crate::plan::Tag;
use crate::types::cast::{can_cast, cast};
use crate::types::{CastContext, Datum, RowView, Type};
use meridian_base::runtime::BoxFuture;
use meridian_base::{Error, Result};
use std::sync::Arc;

impl<E: Environment> Session<E> {
    /// `EXECUTE name (…)`.
    pub(super) async fn execute_named(
        &mut self,
        name: &str,
        parameters: &[Expr],
        manner: Manner<'_>,
        now: u64,
        out: &mut dyn Output,
    ) -> Result<()> {
        self.block(now);
        let statement = self.find_statement(name)?.statement.clone();
        self.read_as_of(&statement, now).await?;
        let mut named = self.find_current(name).await?;
        let types = named.params().to_vec();
        if types.len() != parameters.len() {
            return Err(Error::sql("42601", format!("wrong number of parameters for prepared statement \"{name}\""))
                .detail(format!("Expected {} parameters but got {}.", types.len(), parameters.len())));
        }
        let mut params = Vec::with_capacity(types.len());
        for (i, (expr, ty)) in parameters.iter().zip(&types).enumerate() {
            params.push(self.evaluate(i + 1, expr, ty, now).await?);
        }
        let Some(plan) = &named.plan else {
            let statement = named.statement.clone();
            return self.run_statement(&statement, manner, out).await;
        };
        if !self.admit(&plan.prepared.clone()).await? {
            named = self.find_current(name).await?;
        }
        let prepared = named.plan.as_ref().expect("planned").prepared.clone();
        let prepared = self.for_values(&statement, prepared, &params).await?;
        self.run_query(Again::WithParams(&statement), &prepared, &params, manner, now, out).await
    }
    /// The value of an expression without variables, as that parameter.
    async fn evaluate(&mut self, number: usize, expr: &Expr, ty: &Type, now: u64) -> Result<Datum> {
        let statement = parse_one_statement(&format!("SELECT {expr}"))?;
        let catalog = self.catalog();
        let prepared = Arc::new(self.prepare(&statement, &catalog, &[])?);
        self.admit(&prepared).await?;
        let from = prepared.columns[0].ty.clone();
        let is_untyped = is_untyped(expr);
        if !is_untyped && !can_cast(&from, ty, CastContext::Assignment) {
            let (from, to) = (from.base_name(), ty.base_name());
            let message = format!("parameter ${number} of type {from} cannot be coerced to the expected type {to}");
            return Err(Error::sql("42804", message).hint("You will need to rewrite or cast the expression."));
        }
        self.eval.catalog = catalog.clone();
        self.block(now);
        let block = self.begun(false, false);
        block.has_touched_rows |= !prepared.groups.is_empty();
        let system =
            super::system::StatementSystem { env: &self.env, system: &*self.system, catalog: &catalog, names: &self.names };
        let context = system.exec(&self.eval, self.cancel.button(), &self.sequences, self.exec_options());
        let txn = self.block.as_mut().and_then(|b| b.txn.as_mut()).expect("a transaction below");
        let mut one = OneValue(None);
        crate::exec::run(&prepared, &[], txn, &context, &mut one).await?;
        match one.0.unwrap_or(Datum::Null) {
            Datum::Text(text) if is_untyped => Datum::from_text(text.as_str(), ty, &self.eval),
            value => cast(value, &from, ty, CastContext::Assignment, &self.eval),
        }
    }
    /// `DEALLOCATE name`, `DEALLOCATE ALL`.
    pub(super) fn deallocate(&mut self, name: &Ident) -> Result<&'static str> {
        if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("all") {
            self.statements.clear();
            return Ok("DEALLOCATE ALL");
        }
        let name = fold(name);
        match self.statements.remove(&name) {
            Some(_) => Ok("DEALLOCATE"),
            None => Err(Error::sql("26000", format!("prepared statement \"{name}\" does not exist"))),
        }
    }

    /// `DECLARE name CURSOR FOR query`.
    pub(super) fn declare_cursors(&mut self, statement: &Statement, declarations: &[ast::Declare]) -> Result<()> {
        if declarations.iter().any(|d| d.hold == Some(true)) {
            return Err(Error::unsupported("cursors WITH HOLD are not supported").hint("Fetch before the transaction ends."));
        }
        if !self.block.as_ref().is_some_and(|b| b.explicit) {
            return Err(Error::sql("25P01", "DECLARE CURSOR can only be used in transaction blocks"));
        }
        for declaration in declarations {
            let (Some(query), [name]) = (&declaration.for_query, &declaration.names[..]) else {
                return Err(Error::sql("42601", "syntax error in DECLARE"));
            };
            if declaration.scroll == Some(true) {
                return Err(Error::unsupported("SCROLL cursors are not supported"));
            }
            let name = fold(name);
            if self.portals.contains_key(&name) {
                return Err(Error::sql("42P03", format!("cursor \"{name}\" already exists")));
            }
            let query = Arc::new(statement.inner(ast::Statement::Query(query.clone())));
            let catalog = self.catalog();
            let prepared = Arc::new(self.prepare(&query, &catalog, &[])?);
            self.check_privileges(&prepared, &catalog)?;
            let execution = Execution::new(prepared.clone(), Vec::new());
            let plan = crate::shared::plans::Plan::new(prepared, &catalog, &self.names);
            let named = Arc::new(Named::new(query, Vec::new(), Some(plan)));
            let formats = if declaration.binary == Some(true) { Formats::AllBinary } else { Formats::AllText };
            self.add_portal(&name, named, Vec::new(), formats, PortalState::Running(execution));
        }
        Ok(())
    }
    /// `FETCH` and `MOVE`.
    pub(super) async fn fetch_cursor(&mut self, fetch: &Fetch, manner: Manner<'_>, now: u64, out: &mut dyn Output) -> Result<()> {
        let name = &fetch.cursor;
        let Some(mut portal) = self.portals.remove(name) else {
            return Err(Error::sql("34000", format!("cursor \"{name}\" does not exist")));
        };
        if matches!(portal.state, PortalState::Failed) {
            self.portals.insert(name.clone(), portal);
            return Err(Error::sql("55000", format!("portal \"{name}\" cannot be run")));
        }
        if manner.describes && !fetch.is_move {
            let prepared = &portal.named.plan.as_ref().expect("a planned query").prepared;
            out.row_description(&prepared.columns, &portal.formats);
        }
        let moved = match steps(fetch, portal.place) {
            Ok(steps) => self.step(&mut portal, steps, fetch.is_move, now, out).await,
            Err(e) => Err(e),
        };
        if moved.is_err() {
            portal.state = PortalState::Failed;
        }
        self.portals.insert(name.clone(), portal);
        let word = if fetch.is_move { "MOVE" } else { "FETCH" };
        out.command_complete(&TagText::new(Tag::Select, moved?).as_str().replace("SELECT", word));
        Ok(())
    }
    /// Moves a cursor; how many rows it has fetched.
    async fn step(&mut self, portal: &mut Portal, steps: Steps, is_move: bool, now: u64, out: &mut dyn Output) -> Result<u64> {
        if steps.pass > 0 {
            self.forward(portal, Some(steps.pass), now, None).await?;
        }
        match steps.fetch {
            Some(0) => Ok(steps.stays_on),
            fetch if is_move => self.forward(portal, fetch, now, None).await,
            fetch => self.forward(portal, fetch, now, Some(out)).await,
        }
    }
    /// Runs a cursor on by so many rows, or to its end; how many there were.
    async fn forward(&mut self, portal: &mut Portal, limit: Option<u64>, now: u64, out: Option<&mut dyn Output>) -> Result<u64> {
        let prepared = portal.named.plan.as_ref().expect("a planned query").prepared.clone();
        let mut rows = 0;
        if let PortalState::Running(execution) = std::mem::replace(&mut portal.state, PortalState::Done) {
            let mut execution = Some(execution);
            let fetch = Fetching { prepared: &prepared, max_rows: limit, formats: &portal.formats, read_only: false, now };
            match self.fetch(&mut execution, fetch, out).await? {
                Fetched::Done(affected) => rows = affected.rows,
                Fetched::Suspended { rows: sent } => {
                    rows = sent;
                    portal.state = PortalState::Running(execution.expect("still there"));
                }
            }
        }
        portal.place.rows += rows;
        portal.place.is_after_last |= limit.is_none_or(|limit| rows < limit);
        Ok(rows)
    }
    /// The columns of a cursor; empty if there is none.
    pub(super) fn cursor_columns(&self, name: &str) -> Vec<OutputColumn> {
        self.portals.get(name).map_or_else(Vec::new, |portal| self.columns_of(&portal.named))
    }
    /// `CLOSE`.
    pub(super) fn close_cursor(&mut self, cursor: &CloseCursor) -> Result<()> {
        match cursor {
            CloseCursor::All => self.portals.clear(),
            CloseCursor::Specific { name } => {
                let name = fold(name);
                if self.portals.remove(&name).is_none() {
                    return Err(Error::sql("34000", format!("cursor \"{name}\" does not exist")));
                }
            }
        }
        Ok(())
    }
}

/// How a cursor gets to where it is to go.
struct Steps {
    /// Rows passed first.
    pass: u64,
    /// Rows fetched then; `None` for all.
    fetch: Option<u64>,
    /// What a `MOVE` that goes nowhere counts: whether the cursor is on a row.
    stays_on: u64,
}

/// The steps of a cursor without `SCROLL`: an error if they would lead back (PostgreSQL,
/// `DoPortalRunFetch`).
fn steps(fetch: &Fetch, at: Place) -> Result<Steps> {
    let backward = || {
        Err(Error::sql("55000", "cursor can only scan forward").hint("Declare it with SCROLL option to enable backward scan."))
    };
    let is_on_row = at.rows > 0 && !at.is_after_last;
    let is_fresh = at.rows == 0 && !at.is_after_last;
    let steps = |pass: u64, fetch: Option<u64>| Ok(Steps { pass, fetch, stays_on: 0 });
    match fetch.target {
        // The row it is on is fetched again, which is a step back; MOVE only looks.
        FetchTarget::Forward(0) | FetchTarget::Backward(0) | FetchTarget::Relative(0) => match is_on_row && !fetch.is_move {
            true => backward(),
            false => Ok(Steps { pass: 0, fetch: Some(0), stays_on: u64::from(is_on_row) }),
        },
        FetchTarget::Forward(n) | FetchTarget::Backward(n) if (n < 0) == matches!(fetch.target, FetchTarget::Backward(_)) => {
            steps(0, Some(n.unsigned_abs()))
        }
        FetchTarget::ForwardAll => steps(0, None),
        FetchTarget::Relative(n) if n > 0 => steps(n as u64 - 1, Some(1)),
        FetchTarget::Absolute(0) if is_fresh => steps(0, Some(0)),
        FetchTarget::Absolute(n) if n > 0 && (is_fresh || n as u64 > at.rows + u64::from(at.is_after_last)) => {
            steps(n as u64 - 1 - at.rows, Some(1))
        }
        _ => backward(),
    }
}

/// Whether an expression is a literal that has the type of its place.
fn is_untyped(expr: &Expr) -> bool {
    use ast::Value as V;
    match expr {
        Expr::Nested(inner) => is_untyped(inner),
        Expr::Value(v) => matches!(
            v.value,
            V::Null
                | V::SingleQuotedString(_)
                | V::EscapedStringLiteral(_)
                | V::UnicodeStringLiteral(_)
                | V::NationalStringLiteral(_)
                | V::DollarQuotedString(_)
        ),
        _ => false,
    }
}

/// Keeps the first column of the last row.
struct OneValue(Option<Datum>);

impl RowSink for OneValue {
    fn row(&mut self, row: &[Datum], _: &[Type]) -> Result<()> {
        self.0 = row.first().cloned();
        Ok(())
    }
    fn stored(&mut self, row: &RowView, fields: &[(u32, Type)]) -> Result<()> {
        self.0 = fields.first().map(|(ordinal, ty)| row.datum(*ordinal as usize, ty)).transpose()?;
        Ok(())
    }
    fn is_full(&self) -> bool {
        false
    }
    fn drain(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(()) })
    }
}
