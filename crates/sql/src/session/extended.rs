//! The extended protocol: prepared statements and portals (PostgreSQL manual, 55.2.3).
//!
//! After an error the caller reports it, skips to the next `Sync` and calls [`Session::sync`]; the
//! session's own state has already changed accordingly.

use super::aside;
use super::load::Again;
use super::run::{Fetching, HELD_BYTES_MAX, TagText, declared_types, too_much_held};
use super::simple::{Manner, Timer, in_characters};
use super::{Format, Formats, Output, OutputColumn, Session};
use crate::catalog::Catalog;
use crate::env::Environment;
use crate::exec::{Execution, Fetched};
use crate::parse::{self, Kind, Statement};
use crate::plan;
use crate::shared::plans::Plan;
use crate::shared::retry::Attempts;
use crate::shared::shown;
use crate::types::{Datum, EvalContext, Type};
use bytes::Bytes;
use meridian_base::{Error, Result};
use std::sync::Arc;

/// The arguments of a portal, as they arrive.
#[derive(Clone, Debug, Default)]
pub struct BindArguments {
    /// Formats of the arguments.
    pub formats: Formats,
    /// `None` is NULL.
    pub values: Vec<Option<Bytes>>,
    /// Formats the client wants the result columns in.
    pub result_formats: Formats,
}

impl BindArguments {
    fn bytes(&self) -> usize {
        self.values.iter().flatten().map(Bytes::len).sum()
    }
}

/// A prepared statement.
pub(super) struct Named {
    pub statement: Arc<Statement>,
    /// Its text as others see it while it runs.
    pub shown: Arc<str>,
    /// Declared parameter types, by OID.
    pub declared: Vec<u32>,
    /// `None`: it is not planned but run as it is.
    pub plan: Option<Plan>,
}

impl Named {
    pub fn new(statement: Arc<Statement>, declared: Vec<u32>, plan: Option<Plan>) -> Named {
        let shown = shown(&statement.text).into();
        Named { statement, shown, declared, plan }
    }
    pub fn params(&self) -> &[Type] {
        self.plan.as_ref().map_or(&[], |p| &p.prepared.params)
    }
}

/// A statement with its arguments, and how far it has run; a cursor is one too.
pub(super) struct Portal {
    pub named: Arc<Named>,
    pub params: Vec<Datum>,
    pub formats: Formats,
    pub state: PortalState,
    pub place: Place,
    /// Its number among the portals of the session: `ROLLBACK TO` ends those made since.
    pub number: u64,
}

/// Where a cursor stands.
#[derive(Clone, Copy, Default)]
pub(super) struct Place {
    /// How many rows it has passed.
    pub rows: u64,
    /// It is behind the last row.
    pub is_after_last: bool,
}

#[allow(
    clippy::large_enum_variant,
    reason = "a portal is one of a few per session, and a box would be an allocation per execution"
)]
pub(super) enum PortalState {
    Ready,
    Running(Execution),
    Done,
    /// An error ended it; PostgreSQL does not run such a portal again.
    Failed,
}

/// Whether a statement says of which time it reads: its plan is looked at when that is known, and
/// not by the present catalog.
fn reads_past(named: &Named) -> bool {
    named.statement.as_of.is_some()
}

impl<E: Environment> Session<E> {
    /// `Parse`. `types`: OIDs of the parameters, 0 where the server is to find out.
    pub async fn parse(&mut self, name: &str, text: &str, types: &[u32], out: &mut dyn Output) -> Result<()> {
        self.start_request(text);
        let caught_up = self.catch_up_for(text).await;
        self.answer(caught_up, out)?;
        let result = self.make_named(name, text, types).await;
        self.answer(result, out)?;
        out.parse_complete();
        Ok(())
    }
    async fn make_named(&mut self, name: &str, text: &str, types: &[u32]) -> Result<()> {
        let statement = Arc::new(self.parse_one(text).await.map_err(|e| in_characters(e, text, 0))?);
        if !matches!(&statement.kind, Kind::Empty) && !super::simple::may_run_in_failed_block(&statement.kind) {
            self.refuse_if_failed()?;
        }
        if !name.is_empty() && self.statements.contains_key(name) {
            return Err(Error::sql("42P05", format!("prepared statement \"{name}\" already exists")));
        }
        let offset = statement.offset as usize;
        let named = self.named(statement, types).await.map_err(|e| in_characters(e, text, offset))?;
        let before = self.statements.insert(name.to_string(), Arc::new(named));
        self.uncertified.note_statement(name, before);
        Ok(())
    }
    /// Plans a statement that will be run by name.
    pub(super) async fn named(&mut self, statement: Arc<Statement>, types: &[u32]) -> Result<Named> {
        let plan = match plan::is_plannable(&statement) {
            true => {
                let catalog = self.catalog_of(&statement).await?;
                Some(self.plan_in(&catalog, &statement, &statement.text, types).await?)
            }
            false => None,
        };
        Ok(Named::new(statement, types.to_vec(), plan))
    }
    /// An error does to the transaction what errors do.
    fn answer<T>(&mut self, result: Result<T>, out: &mut dyn Output) -> Result<T> {
        if let Err(e) = &result {
            self.fail(e, out);
        }
        result
    }
    pub(super) fn find_statement(&self, name: &str) -> Result<Arc<Named>> {
        let missing = || match name {
            "" => Error::sql("26000", "unnamed prepared statement does not exist"),
            name => Error::sql("26000", format!("prepared statement \"{name}\" does not exist")),
        };
        self.statements.get(name).cloned().ok_or_else(missing)
    }

    /// `Bind`.
    pub async fn bind(&mut self, portal: &str, statement: &str, arguments: BindArguments, out: &mut dyn Output) -> Result<()> {
        let result = self.make_portal(portal, statement, arguments).await;
        self.answer(result, out)?;
        out.bind_complete();
        Ok(())
    }
    /// The same, if nothing has to be waited for: the plan fits, and the arguments are short.
    pub fn bind_at_once(
        &mut self,
        portal: &str,
        statement: &str,
        arguments: &mut BindArguments,
        out: &mut dyn Output,
    ) -> Option<Result<()>> {
        let made = self.make_portal_at_once(portal, statement, arguments).transpose()?;
        Some(self.answer(made, out).map(|()| out.bind_complete()))
    }
    fn make_portal_at_once(&mut self, name: &str, statement: &str, arguments: &mut BindArguments) -> Result<Option<()>> {
        let named = self.statement_for(name, statement)?;
        let catalog = self.catalog();
        let is_other = |p: &Plan, catalog: &Arc<Catalog>| !reads_past(&named) && !p.is_of(catalog, &self.names);
        if aside::is_long(arguments.bytes()) || named.plan.as_ref().is_some_and(|p| is_other(p, &catalog)) {
            return Ok(None);
        }
        check_arguments(statement, &named, arguments)?;
        let params = values_of(arguments, named.params(), &self.eval)?;
        self.put_portal(name, named, params, std::mem::take(&mut arguments.result_formats)).map(Some)
    }
    async fn make_portal(&mut self, name: &str, statement: &str, arguments: BindArguments) -> Result<()> {
        let named = self.statement_for(name, statement)?;
        let named = if reads_past(&named) { named } else { self.current(statement, named).await? };
        check_arguments(statement, &named, &arguments)?;
        let params = self.arguments(&named, &arguments).await?;
        self.put_portal(name, named, params, arguments.result_formats)
    }
    /// The statement of a new portal.
    fn statement_for(&mut self, name: &str, statement: &str) -> Result<Arc<Named>> {
        self.refresh();
        let named = self.find_statement(statement)?;
        if !super::simple::may_run_in_failed_block(&named.statement.kind) {
            self.refuse_if_failed()?;
        }
        if !name.is_empty() && self.portals.contains_key(name) {
            return Err(Error::sql("42P03", format!("cursor \"{name}\" already exists")));
        }
        Ok(named)
    }
    fn put_portal(&mut self, name: &str, named: Arc<Named>, params: Vec<Datum>, formats: Formats) -> Result<()> {
        if let Formats::Each(each) = &formats {
            let columns = self.columns_of(&named).len();
            if each.len() != columns {
                let message = format!("bind message has {} result formats but query has {columns} columns", each.len());
                return Err(Error::sql("08P01", message));
            }
        }
        self.add_portal(name, named, params, formats, PortalState::Ready);
        Ok(())
    }
    /// A prepared statement with a plan that fits the catalog and the search path as they are now.
    async fn current(&mut self, name: &str, named: Arc<Named>) -> Result<Arc<Named>> {
        let Some(plan) = &named.plan else { return Ok(named) };
        if plan.is_of(&self.catalog(), &self.names) {
            return Ok(named);
        }
        let again = self.named(named.statement.clone(), &named.declared).await?;
        let new = again.plan.as_ref().expect("still plannable");
        let same = |a: &[OutputColumn], b: &[OutputColumn]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.ty == b.ty && a.name == b.name)
        };
        if !same(&plan.prepared.columns, &new.prepared.columns) || plan.prepared.params != new.prepared.params {
            return Err(Error::unsupported("cached plan must not change result type"));
        }
        let again = Arc::new(again);
        if let Some(place) = self.statements.get_mut(name)
            && Arc::ptr_eq(place, &named)
        {
            *place = again.clone();
        }
        Ok(again)
    }
    async fn arguments(&mut self, named: &Named, arguments: &BindArguments) -> Result<Vec<Datum>> {
        let types = named.params();
        if !aside::is_long(arguments.bytes()) {
            return values_of(arguments, types, &self.eval);
        }
        let (arguments, types, eval) = (arguments.clone(), types.to_vec(), self.eval.clone());
        self.aside(move || values_of(&arguments, &types, &eval)).await
    }

    /// `Describe` of a statement.
    pub fn describe_statement(&mut self, name: &str, out: &mut dyn Output) -> Result<()> {
        let named = self.find_statement(name);
        let named = self.answer(named, out)?;
        out.parameter_description(named.params());
        self.describe_columns(&named, &Formats::AllText, out);
        Ok(())
    }
    /// `Describe` of a portal.
    pub fn describe_portal(&mut self, name: &str, out: &mut dyn Output) -> Result<()> {
        let Some(portal) = self.portals.get(name) else {
            return self.answer(Err(no_portal(name)), out);
        };
        let (named, formats) = (portal.named.clone(), portal.formats.clone());
        self.describe_columns(&named, &formats, out);
        Ok(())
    }
    fn describe_columns(&self, named: &Named, formats: &Formats, out: &mut dyn Output) {
        match &named.plan {
            Some(plan) if plan.prepared.returns_rows() => out.row_description(&plan.prepared.columns, formats),
            Some(_) => out.no_data(),
            None => match self.control_columns(&named.statement.kind) {
                columns if columns.is_empty() => out.no_data(),
                columns => out.row_description(&columns, formats),
            },
        }
    }
    pub(super) fn columns_of(&self, named: &Named) -> Vec<OutputColumn> {
        match &named.plan {
            Some(plan) => plan.prepared.columns.clone(),
            None => self.control_columns(&named.statement.kind),
        }
    }

    /// `Execute`. `max_rows`: 0 for all. `last`: the caller knows that `Sync` comes next, so that
    /// an implicit transaction can be committed, and if need be run again, here.
    pub async fn execute(&mut self, portal: &str, max_rows: u64, last: bool, out: &mut dyn Output) -> Result<()> {
        let Some(mut open) = self.portals.remove(portal) else {
            return self.answer(Err(no_portal(portal)), out);
        };
        self.start_shown(&open.named.shown.clone());
        let timeout = self.setting(|v| v.statement_timeout);
        let timer = timeout.map(|t| Timer::start(Some(t), &self.cancel, self.env.now_micros()));
        let result = self.execute_portal(&mut open, max_rows, last, out).await;
        drop(timer);
        // A transaction that ended took its portals along.
        if self.block.is_some() {
            self.portals.insert(portal.to_string(), open);
        }
        result
    }
    async fn execute_portal(&mut self, portal: &mut Portal, max_rows: u64, last: bool, out: &mut dyn Output) -> Result<()> {
        let start = out.mark();
        self.statement_start = start;
        let begins_transaction = self.block.is_none();
        let is_first = self.block.as_ref().is_none_or(|b| b.statements == 0 && b.ddl.is_none());
        let is_fresh = matches!(portal.state, PortalState::Ready);
        let side_effects = self.side_effects;
        let mut attempts = Attempts::default();
        loop {
            let mut result = self.run_portal(portal, max_rows, last && begins_transaction, out).await;
            if result.is_ok() && self.has_uncertified(out) && out.buffered() > HELD_BYTES_MAX {
                result = Err(too_much_held());
            }
            if result.is_ok() && last && self.block.as_ref().is_some_and(|b| !b.explicit) {
                result = self.commit_block().await;
            }
            let Err(error) = result else { return Ok(()) };
            let from = (is_first && is_fresh && side_effects == self.side_effects).then_some(start);
            if let Err(e) = self.run_again(error, from, !begins_transaction, &mut attempts, out).await {
                let text = portal.named.statement.text.clone();
                return Err(in_characters(e, &text, 0));
            }
            portal.state = PortalState::Ready;
        }
    }
    async fn run_portal(&mut self, portal: &mut Portal, max_rows: u64, is_whole: bool, out: &mut dyn Output) -> Result<()> {
        let Some(plan) = &portal.named.plan else {
            let statement = portal.named.statement.clone();
            if matches!(portal.state, PortalState::Done) {
                return Err(Error::sql("55000", "portal cannot be run again"));
            }
            portal.state = PortalState::Done;
            let manner = Manner { describes: false, formats: &portal.formats, is_whole };
            return self.run_statement(&statement, manner, out).await;
        };
        let (plan, prepared) = (plan.clone(), plan.prepared.clone());
        self.cancel.check()?;
        self.refuse_if_failed()?;
        if matches!(portal.state, PortalState::Ready) {
            self.say_ignored(&portal.named.statement, out);
        }
        let now = self.start_statement();
        self.block(now);
        let mut execution = match std::mem::replace(&mut portal.state, PortalState::Done) {
            PortalState::Running(execution) => Some(execution),
            PortalState::Failed => return Err(Error::sql("55000", "portal cannot be run")),
            PortalState::Done => {
                out.command_complete(TagText::new(prepared.tag, 0).as_str());
                return Ok(());
            }
            PortalState::Ready => {
                let statement = portal.named.statement.clone();
                self.read_as_of(&statement, now).await?;
                if !plan.is_of(&self.catalog(), &self.names) {
                    Box::pin(self.plan_portal_again(portal)).await?;
                }
                let prepared = portal.named.plan.as_ref().expect("planned").prepared.clone();
                let prepared = self.for_values(&statement, prepared, &portal.params).await?;
                Some(Execution::new(prepared, portal.params.clone()))
            }
        };
        let prepared = portal.named.plan.as_ref().expect("planned").prepared.clone();
        let read_only = prepared.read_only && is_whole;
        let max_rows = (max_rows > 0).then_some(max_rows);
        let fetch = Fetching { prepared: &prepared, max_rows, formats: &portal.formats, read_only, now };
        let fetched = match self.fetch(&mut execution, fetch, Some(&mut *out)).await {
            Err(e) if e.is_too_large() => {
                let (statement, params) = (portal.named.statement.clone(), portal.params.clone());
                let again = Again::WithParams(&statement);
                Fetched::Done(Box::pin(self.insert_as_load(e, again, &prepared, &params, out)).await?)
            }
            fetched => fetched?,
        };
        match fetched {
            Fetched::Done(affected) => out.command_complete(TagText::new(prepared.tag, affected.rows).as_str()),
            Fetched::Suspended { .. } => {
                portal.state = PortalState::Running(execution.expect("still there"));
                out.portal_suspended();
            }
        }
        Ok(())
    }
    async fn plan_portal_again(&mut self, portal: &mut Portal) -> Result<()> {
        portal.named = self.current("", portal.named.clone()).await?;
        let prepared = portal.named.plan.as_ref().expect("planned").prepared.clone();
        if !self.admit(&prepared).await? {
            portal.named = self.current("", portal.named.clone()).await?;
        }
        Ok(())
    }

    /// `Close` of a statement. Not an error if there is none.
    pub fn close_statement(&mut self, name: &str, out: &mut dyn Output) -> Result<()> {
        if let Some(closed) = self.statements.remove(name) {
            self.uncertified.note_statement(name, Some(closed));
        }
        out.close_complete();
        Ok(())
    }
    /// `Close` of a portal. Not an error if there is none.
    pub fn close_portal(&mut self, name: &str, out: &mut dyn Output) -> Result<()> {
        self.portals.remove(name);
        out.close_complete();
        Ok(())
    }
    /// `Sync`: ends the implicit transaction. An error has been written to `out`, in the place of
    /// what it makes untrue if that was not sent yet. The caller sends `ReadyForQuery`.
    pub async fn sync(&mut self, out: &mut dyn Output) {
        if self.has_implicit_block()
            && let Err(error) = self.commit_block().await
        {
            self.fail(&error, out);
            out.error(&crate::shared::retry::final_error(error));
        }
        self.synced(out);
    }
    /// The same, if there is nothing to commit; `false`: there is.
    pub fn sync_at_once(&mut self, out: &mut dyn Output) -> bool {
        let is_over = !self.has_implicit_block();
        if is_over {
            self.synced(out);
        }
        is_over
    }
    fn has_implicit_block(&self) -> bool {
        self.block.as_ref().is_some_and(|b| !b.explicit)
    }
    fn synced(&mut self, out: &mut dyn Output) {
        if self.block.is_none() {
            self.portals.clear();
        }
        self.report_settings(out);
        self.end_request();
    }
    pub(super) fn add_portal(&mut self, name: &str, named: Arc<Named>, params: Vec<Datum>, formats: Formats, state: PortalState) {
        self.portals_made += 1;
        let portal = Portal { named, params, formats, state, place: Place::default(), number: self.portals_made };
        match self.portals.get_mut(name) {
            Some(place) => **place = portal,
            None => {
                self.portals.insert(name.to_string(), Box::new(portal));
            }
        }
    }
    /// A transaction ended: so do its portals and cursors.
    pub(super) fn end_portals(&mut self) {
        self.portals.clear();
    }
    pub(super) fn forget_unnamed(&mut self) {
        if !self.statements.is_empty() {
            self.statements.remove("");
        }
        if !self.portals.is_empty() {
            self.portals.remove("");
        }
    }
    /// The columns of a prepared statement, for `EXECUTE`.
    pub(super) fn named_columns(&self, name: &str) -> Vec<OutputColumn> {
        self.statements.get(name).map_or_else(Vec::new, |named| self.columns_of(named))
    }
    /// `PREPARE`.
    pub(super) async fn prepare_named(&mut self, name: &str, types: &[parse::ast::DataType], statement: Statement) -> Result<()> {
        if self.statements.contains_key(name) {
            return Err(Error::sql("42P05", format!("prepared statement \"{name}\" already exists")));
        }
        let oids = types.iter().map(|t| Ok(crate::catalog::declared::type_from_ast(t)?.oid())).collect::<Result<Vec<u32>>>()?;
        let declared = declared_types(&oids)?;
        let catalog = self.catalog_of(&statement).await?;
        let prepared = self.prepare(&statement, &catalog, &declared)?;
        let plan = Plan::new(Arc::new(prepared), &catalog, &self.names);
        let named = Named::new(Arc::new(statement), oids, Some(plan));
        self.statements.insert(name.to_string(), Arc::new(named));
        Ok(())
    }
    /// The statement of that name, planned for the catalog as it is, for `EXECUTE`.
    pub(super) async fn find_current(&mut self, name: &str) -> Result<Arc<Named>> {
        let named = self.find_statement(name)?;
        self.current(name, named).await
    }
}

pub(super) fn no_portal(name: &str) -> Error {
    Error::sql("34000", format!("portal \"{name}\" does not exist"))
}

/// As many arguments, and formats of them, as the statement has parameters.
fn check_arguments(statement: &str, named: &Named, arguments: &BindArguments) -> Result<()> {
    let (needed, given) = (named.params().len(), arguments.values.len());
    if needed != given {
        let message =
            format!("bind message supplies {given} parameters, but prepared statement \"{statement}\" requires {needed}");
        return Err(Error::sql("08P01", message));
    }
    if let Formats::Each(each) = &arguments.formats
        && each.len() != given
    {
        let message = format!("bind message has {} parameter formats but {given} parameters", each.len());
        return Err(Error::sql("08P01", message));
    }
    Ok(())
}

/// Reads the arguments of a portal.
fn values_of(arguments: &BindArguments, types: &[Type], eval: &EvalContext) -> Result<Vec<Datum>> {
    let value = |(i, (value, ty)): (usize, (&Option<Bytes>, &Type))| match value {
        None => Ok(Datum::Null),
        Some(bytes) => argument(bytes, ty, arguments.formats.of(i), eval),
    };
    arguments.values.iter().zip(types).enumerate().map(value).collect()
}

/// Reads one argument.
fn argument(bytes: &Bytes, ty: &Type, format: Format, eval: &EvalContext) -> Result<Datum> {
    match format {
        // Whether a name is one of the database's regions, its bytes do not tell.
        Format::Binary if *ty != Type::Region => Datum::from_binary(bytes, ty),
        Format::Binary | Format::Text => match std::str::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => Datum::from_text(text, ty, eval),
            _ => Err(Error::sql("22021", "invalid byte sequence for encoding \"UTF8\" in a parameter")),
        },
    }
}
