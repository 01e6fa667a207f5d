//! What computes for long without waiting for anything, on a thread of its own: the other sessions
//! of this thread go on meanwhile.

use super::run::interruptible;
use super::{Environment, Session};
use crate::catalog::Catalog;
use crate::parse::{self, Piece, Statement};
use crate::plan::{self, PlanContext, Prepared, limits};
use crate::types::{Datum, Type};
use meridian_base::Result;
use std::sync::Arc;

/// Texts of more bytes are parsed and planned on another thread. Parsing 16 KiB takes some
/// milliseconds.
const LARGE_TEXT_BYTES: usize = 16 << 10;

/// Whether a text is parsed and planned aside.
pub(super) fn is_large(text: &str) -> bool {
    text.len() > LARGE_TEXT_BYTES
}

/// Arguments of more bytes are read on another thread.
const LARGE_ARGUMENTS_BYTES: usize = 64 << 10;

/// Arrays of more elements than these are planned for.
const LIST_LONG: usize = 100;

/// Whether arguments are read on another thread; `bytes`: of all of them.
pub(super) fn is_long(bytes: usize) -> bool {
    bytes > LARGE_ARGUMENTS_BYTES
}

impl<E: Environment> Session<E> {
    /// Runs work on a thread of its own. It ends early if the session does not wait any more.
    pub(super) async fn aside<R: Send + 'static>(&mut self, work: impl FnOnce() -> Result<R> + Send + 'static) -> Result<R> {
        let waiting = Arc::new(());
        let of_thread = Arc::downgrade(&waiting);
        let result = interruptible(&self.cancel, self.env.compute(move || limits::while_waited_for(of_thread, work))).await;
        drop(waiting);
        result
    }

    /// Parses a query string.
    pub(super) async fn parse_text(&mut self, text: &str) -> Result<Vec<Piece>> {
        if !is_large(text) {
            return parse::parse_string(text);
        }
        let text = text.to_string();
        self.aside(move || parse::parse_string(&text)).await
    }

    /// Parses the text of exactly one statement.
    pub(super) async fn parse_one(&mut self, text: &str) -> Result<Statement> {
        if !is_large(text) {
            return parse::parse_one_statement(text);
        }
        let text = text.to_string();
        self.aside(move || parse::parse_one_statement(&text)).await
    }

    /// Plans a statement.
    pub(super) async fn prepare_aside(
        &mut self,
        statement: &Arc<Statement>,
        catalog: &Arc<Catalog>,
        types: &[Option<Type>],
    ) -> Result<Prepared> {
        if !is_large(&statement.text) {
            return self.prepare(statement, catalog, types);
        }
        self.eval.catalog = catalog.clone();
        let (statement, catalog, types) = (statement.clone(), catalog.clone(), types.to_vec());
        let (names, eval) = (self.names.clone(), self.eval.clone());
        let work = move || {
            let context = PlanContext { catalog: &catalog, names: &names, eval: &eval };
            plan::prepare(&statement, &context, &types)
        };
        self.aside(work).await
    }

    /// The plan for the values of its parameters, if another one may be better for them than the
    /// one that is kept.
    pub(super) async fn for_values(
        &mut self,
        statement: &Arc<Statement>,
        kept: Arc<Prepared>,
        params: &[Datum],
    ) -> Result<Arc<Prepared>> {
        let is_long = |d: &Datum| matches!(d, Datum::Array(a) if a.items.len() > LIST_LONG);
        let may_be_better = kept.is_of_values || kept.is_of_lists && params.iter().any(is_long);
        if !may_be_better {
            return Ok(kept);
        }
        let catalog = self.catalog();
        self.eval.catalog = catalog.clone();
        let types: Vec<Option<Type>> = kept.params.iter().cloned().map(Some).collect();
        let planned = if is_large(&statement.text) || params.iter().any(Datum::is_large) {
            let (statement, names, eval, params) = (statement.clone(), self.names.clone(), self.eval.clone(), params.to_vec());
            let work = move || {
                let context = PlanContext { catalog: &catalog, names: &names, eval: &eval };
                plan::prepare_for(&statement, &context, &types, &params)
            };
            self.aside(move || Ok(work())).await?
        } else {
            let context = PlanContext { catalog: &catalog, names: &self.names, eval: &self.eval };
            plan::prepare_for(statement, &context, &types, params)
        };
        Ok(match planned {
            // It reads and writes the same.
            Ok(of_values) if of_values.descriptors == kept.descriptors && of_values.groups == kept.groups => Arc::new(of_values),
            _ => kept,
        })
    }

    /// Frees a value that has a part for each word of a large text. The session does not wait for
    /// that.
    pub(super) fn drop_aside(&self, what: impl Send + 'static) {
        let env = self.env.clone();
        drop(tokio::spawn(async move { env.compute(move || drop(what)).await }));
    }
}
