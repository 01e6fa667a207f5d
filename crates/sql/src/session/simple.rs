//! The simple protocol: a query string at a time.

use super::aside::is_large;
use super::load::Again;
use super::run::{Fetching, TagText, interruptible};
use super::{Formats, Mark, Output, Session};
use crate::ddl;
use crate::env::{Environment, Transaction};
use crate::parse::{self, Kind, Piece, Statement, ast};
use crate::plan;
use crate::shared::retry::{Attempts, final_error};
use crate::shared::shown;
use crate::types::Datum;
use futures::FutureExt;
use meridian_base::turn::Turn;
use meridian_base::{Error, Result};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// How a statement's answer looks.
#[derive(Clone, Copy)]
pub(super) struct Manner<'a> {
    /// Whether the row description comes with the rows (simple protocol) or was asked for before.
    pub describes: bool,
    pub formats: &'a Formats,
    /// The statement is the whole of its implicit transaction.
    pub is_whole: bool,
}

/// A place to run again from.
#[derive(Clone, Copy)]
struct Restart {
    index: usize,
    mark: Mark,
    side_effects: u64,
}

/// Presses the stop button when `statement_timeout` has passed.
pub(super) struct Timer(Option<(tokio::task::JoinHandle<()>, super::CancelHandle)>);

impl Timer {
    /// `now_micros` by the clock that computations ask, which may keep this timer's task from
    /// running.
    pub fn start(timeout: Option<Duration>, cancel: &super::CancelHandle, now_micros: u64) -> Timer {
        Timer(timeout.map(|timeout| {
            cancel.set_deadline(now_micros.saturating_add(timeout.as_micros() as u64));
            let timed = cancel.clone();
            let task = tokio::spawn(async move {
                tokio::time::sleep(timeout).await;
                timed.time_out();
            });
            (task, cancel.clone())
        }))
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if let Some((task, cancel)) = &self.0 {
            task.abort();
            cancel.set_deadline(u64::MAX);
        }
    }
}

impl<E: Environment> Session<E> {
    /// A query string of the simple protocol. Everything, errors included, goes to `out`; the
    /// caller sends `ReadyForQuery`. The error, if there was one, is returned as well.
    pub async fn simple(&mut self, text: &str, out: &mut dyn Output) -> Result<()> {
        self.start_request(text);
        // A simple query ends the unnamed statement and portal (PostgreSQL manual, 55.2.3).
        self.forget_unnamed();
        let timeout = self.setting(|v| v.statement_timeout);
        let timer = Timer::start(timeout, &self.cancel, self.env.now_micros());
        let result = self.query_string(text, out).await;
        drop(timer);
        if let Err(e) = &result {
            out.error(e);
        }
        self.report_settings(out);
        self.end_request();
        result
    }
    /// A request from the client begins.
    pub(super) fn start_request(&mut self, text: &str) {
        self.start_shown(&shown(text));
    }
    /// The same for a text as others see it.
    pub(super) fn start_shown(&mut self, shown: &str) {
        self.refresh();
        self.cancel.rearm();
        self.attempt = 0;
        self.activity.running(shown);
    }
    /// It is answered.
    pub(super) fn end_request(&mut self) {
        self.activity.resting(match &self.block {
            None => "idle",
            Some(block) if block.failed => "idle in transaction (aborted)",
            Some(_) => "idle in transaction",
        });
    }

    /// What is planned from here on rests on a catalog that is known to be the present one. A block
    /// keeps the one it began with.
    pub(super) async fn catch_up(&mut self) -> Result<()> {
        let is_settled = self.block.as_ref().is_some_and(|b| b.failed || b.catalog.is_some() || b.past.is_some());
        if is_settled { Ok(()) } else { interruptible(&self.cancel, self.env.catch_up()).await }
    }

    /// The same for a text, unless it needs no catalog, or not the present one: that is looked into
    /// only if there is something to wait for.
    pub(super) async fn catch_up_for(&mut self, text: &str) -> Result<()> {
        if ends_block(text) {
            return Ok(());
        }
        match self.catch_up().now_or_never() {
            Some(done) => done,
            None if super::as_of::says_so(text) || needs_no_catalog(text) => Ok(()),
            None => self.catch_up().await,
        }
    }

    async fn query_string(&mut self, text: &str, out: &mut dyn Output) -> Result<()> {
        self.statement_start = out.mark();
        if let Err(e) = self.catch_up_for(text).await {
            self.fail(&e, out);
            return Err(e);
        }
        let statements = match self.statements_of(text).await {
            Ok(statements) => statements,
            Err(e) => {
                self.fail(&e, out);
                return Err(in_characters(e, text, 0));
            }
        };
        let result = self.run_all(text, &statements, out).await;
        if is_large(text) {
            self.drop_aside(statements);
        }
        result
    }

    /// Runs the statements of a query string.
    async fn run_all(&mut self, text: &str, statements: &[Simple], out: &mut dyn Output) -> Result<()> {
        if statements.is_empty() {
            self.cancel.check()?;
            out.empty_query();
            return Ok(());
        }
        let is_single = statements.len() == 1;
        let mut attempts = Attempts::default();
        // Where the open transaction began, if it began in this string.
        let mut restart = None;
        let mut index = 0;
        // None of them may have to wait for anything.
        let mut turn = Turn::of_steps(1);
        loop {
            turn.step().await;
            let here = Restart { index, mark: out.mark(), side_effects: self.side_effects };
            self.statement_start = here.mark;
            if self.block.is_none() {
                restart = Some(here);
            }
            let first_in_block = self.block.as_ref().is_some_and(|b| b.statements == 0 && b.ddl.is_none());
            let result = match statements.get(index) {
                Some(statement) => {
                    let manner = Manner { describes: true, formats: &Formats::AllText, is_whole: is_single };
                    match statement.parsed_now(text) {
                        Some(Ok(now)) => self.run_statement(&Arc::new(now), manner, out).await,
                        Some(Err(e)) => Err(e),
                        None => self.run_simple(statement, manner, out).await,
                    }
                }
                None if self.block.as_ref().is_some_and(|b| !b.explicit) => self.commit_block().await,
                None => return Ok(()),
            };
            let Err(error) = result else {
                index += 1;
                if index > statements.len() {
                    return Ok(());
                }
                continue;
            };
            let from = restart.or(first_in_block.then_some(here)).filter(|r| r.side_effects == self.side_effects);
            match self.run_again(error, from.map(|r| r.mark), restart.is_none(), &mut attempts, out).await {
                Ok(()) => index = from.map_or(0, |r| r.index),
                Err(e) => {
                    return Err(in_characters(e, text, statements.get(index).map_or(0, Simple::offset)));
                }
            }
        }
    }
    /// After an error: takes everything back to where the transaction (or, with `keep_block`, its
    /// first statement) began and waits, if the work can and should be done again. Otherwise the
    /// transaction fails, and this is the error for the client.
    pub(super) async fn run_again(
        &mut self,
        error: Error,
        from: Option<Mark>,
        keep_block: bool,
        attempts: &mut Attempts,
        out: &mut dyn Output,
    ) -> Result<()> {
        let again = from.is_some_and(|_| attempts.allow(&error)) && from.is_some_and(|mark| out.rewind(mark));
        if !again {
            self.fail(&error, out);
            return Err(final_error(error));
        }
        match &mut self.block {
            Some(block) if keep_block => {
                if let Some(txn) = block.txn.take() {
                    txn.rollback();
                }
                block.catalog = None;
                block.statements = 0;
                block.has_touched_rows = false;
            }
            _ => self.roll_back(),
        }
        self.attempt = attempts.count();
        if let Err(e) = attempts.pause(self.env.random(), &self.cancel).await {
            self.fail(&e, out);
            return Err(e);
        }
        Ok(())
    }

    /// Parses a query string, unless the plan cache knows it.
    async fn statements_of(&mut self, text: &str) -> Result<Vec<Simple>> {
        let bare = text.trim_end_matches([';', ' ', '\n', '\r', '\t']);
        if !is_large(text)
            && let Some(cached) = self.cached(bare)
        {
            return Ok(vec![cached]);
        }
        let parsed = self.parse_text(text).await?;
        let simple = |piece| match piece {
            Piece::Parsed(statement) => Simple::Parsed(Arc::from(statement)),
            Piece::Checked(place) => Simple::Later(place),
        };
        Ok(parsed.into_iter().map(simple).collect())
    }
    /// The plan of a statement without literals in the cache, with the literals as parameters.
    fn cached(&mut self, text: &str) -> Option<Simple> {
        if self.block.as_ref().is_some_and(|b| b.ddl.is_some()) {
            return None;
        }
        let print = parse::fingerprint(text)?;
        let catalog = self.catalog();
        let types = literal_types(&print);
        let key = crate::shared::plans::PlanKey { text: print.text, types, scope: self.scope };
        let plan = self.shared.plans.get(&key, &catalog).filter(|plan| !plan.prepared.is_of_values)?;
        let params = self.literals(&print.literals, &plan.prepared)?;
        Some(Simple::Cached { text: text.to_string(), plan, params })
    }
    /// The values of literals; `None` if one is not valid for its type (then the statement itself
    /// is planned and says so).
    fn literals(&self, literals: &[parse::Literal], prepared: &plan::Prepared) -> Option<Vec<Datum>> {
        if literals.len() != prepared.params.len() {
            return None;
        }
        (literals.iter().zip(&prepared.params)).map(|(l, ty)| Datum::from_text(&l.text, ty, &self.eval).ok()).collect()
    }

    async fn run_simple(&mut self, simple: &Simple, manner: Manner<'_>, out: &mut dyn Output) -> Result<()> {
        let (plan, params) = match simple {
            // On the heap: what every kind of statement takes would make the future of those with a
            // plan larger.
            Simple::Parsed(statement) => return self.run_statement(statement, manner, out).await,
            Simple::Cached { plan, params, .. } => (plan, params),
            Simple::Later(_) => return Err(Error::internal("a statement was not parsed")),
        };
        self.cancel.check()?;
        self.refuse_if_failed()?;
        let now = self.start_statement();
        if self.block(now).read_only {
            self.read_as_of_default(now).await?;
        }
        if let Simple::Cached { text, .. } = simple
            && !plan.is_of(&self.catalog(), &self.names)
        {
            let statement = Arc::new(parse::parse_one_statement(text)?);
            return self.run_statement(&statement, manner, out).await;
        }
        let Simple::Cached { text, .. } = simple else { return Err(Error::internal("a plan without a text")) };
        self.run_query(Again::Literally(text), &plan.prepared, params, manner, now, out).await
    }
    /// Runs a plan and sends its answer.
    pub(super) async fn run_query(
        &mut self,
        again: Again<'_>,
        prepared: &Arc<plan::Prepared>,
        params: &[Datum],
        manner: Manner<'_>,
        now: u64,
        out: &mut dyn Output,
    ) -> Result<()> {
        if manner.describes && prepared.returns_rows() {
            out.row_description(&prepared.columns, manner.formats);
        }
        let is_alone = self.block.as_ref().is_none_or(|b| !b.explicit && b.statements == 0);
        let read_only = prepared.read_only && manner.is_whole && is_alone;
        let fetch = Fetching { prepared, max_rows: None, formats: manner.formats, read_only, now };
        let affected = match self.run_plan(fetch, params, out).await {
            Err(e) if e.is_too_large() => Box::pin(self.insert_as_load(e, again, prepared, params, out)).await?,
            affected => affected?,
        };
        out.command_complete(TagText::new(prepared.tag, affected.rows).as_str());
        Ok(())
    }

    /// Runs one statement of any kind and sends its answer.
    pub(super) async fn run_statement(
        &mut self,
        statement: &Arc<Statement>,
        manner: Manner<'_>,
        out: &mut dyn Output,
    ) -> Result<()> {
        self.cancel.check()?;
        if !may_run_in_failed_block(&statement.kind) {
            self.refuse_if_failed()?;
        }
        super::as_of::check_place(statement)?;
        self.say_ignored(statement, out);
        let now = self.start_statement();
        if plan::is_plannable(statement) {
            Box::pin(self.run_plannable(statement, manner, now, out)).await
        } else if ddl::is_ddl(statement) {
            self.side_effects += 1;
            let tag = Box::pin(self.run_ddl(statement, out)).await?;
            out.command_complete(tag);
            Ok(())
        } else {
            Box::pin(self.run_control(statement, manner, now, out)).await
        }
    }
    /// A notice for each name of a statement that is too long, and for each clause that means
    /// nothing here.
    pub(super) fn say_ignored(&self, statement: &Statement, out: &mut dyn Output) {
        for name in &statement.truncated {
            let message = format!("identifier \"{name}\" will be truncated to \"{}\"", parse::truncate(name.clone()));
            self.notice(out, "NOTICE", "42622", message);
        }
        for message in &statement.ignored {
            self.notice(out, "NOTICE", "01000", message.as_ref());
        }
    }
    async fn run_plannable(
        &mut self,
        statement: &Arc<Statement>,
        manner: Manner<'_>,
        now: u64,
        out: &mut dyn Output,
    ) -> Result<()> {
        // The block is opened before planning, so that plan and run see one catalog.
        self.block(now);
        self.read_as_of(statement, now).await?;
        if let Some((prepared, params)) = self.plan_without_literals(statement).await? {
            return self.run_query(Again::Literally(&statement.text), &prepared, &params, manner, now, out).await;
        }
        let catalog = self.catalog();
        let mut prepared = Arc::new(self.prepare_aside(statement, &catalog, &[]).await?);
        if !prepared.params.is_empty() {
            return Err(Error::sql("42P02", "there is no parameter $1"));
        }
        if !self.admit(&prepared).await? {
            let catalog = self.catalog();
            prepared = Arc::new(self.prepare_aside(statement, &catalog, &[]).await?);
        }
        let result = self.run_query(Again::Literally(&statement.text), &prepared, &[], manner, now, out).await;
        if is_large(&statement.text) {
            self.drop_aside(prepared);
        }
        result
    }
    /// Plans a statement with its literals as parameters, for the cache. `None` if that is not
    /// possible; the statement is planned as it is then, and its errors are those that count.
    async fn plan_without_literals(&mut self, statement: &Statement) -> Result<Option<(Arc<plan::Prepared>, Vec<Datum>)>> {
        // A plan without its time would be taken for that of another statement, and one without its
        // notices for one that has none. A large text is seldom sent twice.
        if statement.as_of.is_some()
            || !statement.ignored.is_empty()
            || !statement.truncated.is_empty()
            || is_large(&statement.text)
            || self.block.as_ref().is_some_and(|b| b.ddl.is_some())
        {
            return Ok(None);
        }
        let Some(print) = parse::fingerprint(&statement.text) else { return Ok(None) };
        let Ok(general) = parse::parse_one_statement(&print.text) else { return Ok(None) };
        let types = literal_types(&print);
        let Ok(plan) = self.plan(&Arc::new(general), &print.text, &types).await else { return Ok(None) };
        if plan.prepared.is_of_values {
            return Ok(None);
        }
        Ok(self.literals(&print.literals, &plan.prepared).map(|params| (plan.prepared, params)))
    }
}

/// A statement of a query string.
enum Simple {
    Parsed(Arc<Statement>),
    /// One of very many, which is parsed when its turn comes: where it is in the string.
    Later(Range<usize>),
    /// The only one of its string, and the cache had its plan.
    Cached {
        text: String,
        plan: crate::shared::plans::Plan,
        params: Vec<Datum>,
    },
}

impl Simple {
    /// What is parsed only now.
    fn parsed_now(&self, string: &str) -> Option<Result<Statement>> {
        let Simple::Later(place) = self else { return None };
        let parsed = parse::parse_one_statement(&string[place.clone()]);
        Some(parsed.map(|statement| Statement { offset: place.start as u32, ..statement }))
    }
    fn offset(&self) -> usize {
        match self {
            Simple::Parsed(statement) => statement.offset as usize,
            Simple::Later(place) => place.start,
            Simple::Cached { .. } => 0,
        }
    }
}

/// The key's part for the types of literals.
fn literal_types(print: &parse::Fingerprint) -> Vec<u32> {
    print.param_types().iter().map(|t| t.as_ref().map_or(0, |t| t.oid())).collect()
}

/// Whether the text ends a transaction: that needs no catalog. Whether a text means the same
/// whatever the catalog has: it begins a transaction, or computes from constants. It is what
/// clients and pools ask to see whether a node is there. Anything else may name something.
fn needs_no_catalog(text: &str) -> bool {
    const WORDS: [&str; 17] = [
        "select",
        "begin",
        "start",
        "transaction",
        "read",
        "only",
        "write",
        "true",
        "false",
        "null",
        "and",
        "or",
        "not",
        "is",
        "version",
        "now",
        "current_timestamp",
    ];
    const TEXT_MAX: usize = 200;
    let text = text.trim();
    let is_known = |word: &str| WORDS.iter().any(|known| word.eq_ignore_ascii_case(known));
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut words = text.split(|c: char| !is_word(c)).filter(|w| !w.is_empty() && !w.starts_with(|c: char| c.is_ascii_digit()));
    let is_plain = text.len() <= TEXT_MAX && text.chars().all(|c| is_word(c) || " ()+-*/%=<>,.;\n".contains(c));
    is_plain && words.all(is_known)
}

fn ends_block(text: &str) -> bool {
    let word = text.trim_start().split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    ["commit", "end", "rollback", "abort"].iter().any(|end| word.eq_ignore_ascii_case(end))
}

pub(super) fn may_run_in_failed_block(kind: &Kind) -> bool {
    match kind {
        Kind::Sql(sql) => matches!(**sql, ast::Statement::Commit { .. } | ast::Statement::Rollback { .. }),
        _ => false,
    }
}

/// Turns an error's position from bytes of a statement into characters of the query string it
/// stands in.
pub(super) fn in_characters(error: Error, text: &str, offset: usize) -> Error {
    match error.get_position() {
        Some(position) if position > 0 => {
            let mut end = (offset + position as usize - 1).min(text.len());
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            error.at(text[..end].chars().count() as u32 + 1)
        }
        _ => error,
    }
}

#[cfg(test)]
mod needs_no_catalog_tests {
    use super::needs_no_catalog;

    #[test]
    fn what_names_something_waits_for_the_present_catalog() {
        for text in
            ["SELECT 1", "select 1;", "BEGIN", "START TRANSACTION READ ONLY", "SELECT 1 + 2 * (3 - 1)", "SELECT version()", ""]
        {
            assert!(needs_no_catalog(text), "{text}");
        }
        let texts = [
            "SELECT 1 FROM t",
            "SELECT * FROM t",
            "SELECT 't'::regclass",
            "SELECT f(1)",
            "TABLE t",
            "SELECT \"a\"",
            "SELECT nextval('s')",
        ];
        for text in texts {
            assert!(!needs_no_catalog(text), "{text}");
        }
    }
}
