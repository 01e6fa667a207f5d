//! A session: what a connection is to the database.
//!
//! ```text
//! Query  ──▶ simple ─┐                                   ┌─ control: BEGIN, SAVEPOINT, SET, PREPARE, …
//! Parse  ──▶ parse   ├─▶ statement ─▶ plan (plan cache) ─┼─ exec::run in the transaction
//! Bind   ──▶ bind    │                                   ├─ DDL on the block's catalog
//! Execute──▶ execute ┘                                   └─ COPY
//!                         answers ─▶ Output (buffered until it may be sent)
//! ```
//!
//! **Transactions.** A statement outside a block runs in an implicit transaction: one per query string in the simple protocol,
//! one per `Sync` in the extended one (PostgreSQL manual, 55.2.2.1 and 55.2.3). All isolation levels are accepted and all run as
//! serializable.
//!
//! **Retries.** When certification fails and nothing of the transaction has reached the client, the session runs it again by
//! itself ([`Output::rewind`]). Otherwise the client gets 40001.
//!
//! This module knows nothing about sockets or the framing of the wire protocol.

mod output;
mod setting_defs;
mod settings;
mod shared;

pub use crate::types::Format;
pub use output::{BoxFuture, CopyInput, Formats, Mark, Notice, Output, ResultColumn};
pub use shared::{CancelHandle, Interrupt, Shared};

use crate::env::{Environment, SessionRow};
use bytes::Bytes;
use meridian_base::{Error, Result, SessionId};
use shared::Activity;
use std::sync::Arc;
use std::time::Duration;

/// How a session starts.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// Unique at this node.
    pub id: SessionId,
    pub user: String,
    pub database: String,
    pub application_name: String,
    /// Settings from the startup message.
    pub settings: Vec<(String, String)>,
}

/// Where a session is with respect to transaction blocks (the status byte of `ReadyForQuery`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionStatus {
    Idle,
    InTransaction,
    Failed,
}

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

/// The result of one statement, as text: for tests and internal use.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct StatementResult {
    pub columns: Vec<String>,
    /// `None` is NULL.
    pub rows: Vec<Vec<Option<String>>>,
    /// The command tag: `SELECT 1`, `INSERT 0 3`.
    pub tag: String,
}

/// One client's session on one node.
pub struct Session<E: Environment> {
    env: E,
    options: SessionOptions,
    shared: Arc<Shared>,
    activity: Arc<Activity>,
    cancel: CancelHandle,
}

impl<E: Environment> Session<E> {
    /// Opens a session. 3D000 if there is no such database.
    pub fn new(env: E, options: SessionOptions, shared: Arc<Shared>) -> Result<Session<E>> {
        let catalog = env.catalog();
        if !catalog.by_name.contains_key(&(crate::catalog::ROOT, options.database.clone())) {
            return Err(Error::sql("3D000", format!("database \"{}\" does not exist", options.database)));
        }
        let cancel = CancelHandle::default();
        let activity = Activity::new(SessionRow {
            session: options.id,
            user: options.user.clone(),
            database: options.database.clone(),
            application: options.application_name.clone(),
            state: "idle",
            query: String::new(),
        });
        shared.register(options.id, activity.clone(), cancel.clone());
        Ok(Session { env, options, shared, activity, cancel })
    }
    /// Its identity at this node.
    pub fn id(&self) -> SessionId {
        self.options.id
    }
    /// Interrupts this session from another task.
    pub fn cancel_handle(&self) -> CancelHandle {
        self.cancel.clone()
    }
    /// The settings that clients are told at the start and whenever they change (`ParameterStatus`).
    pub fn reported_settings(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }
    /// For `ReadyForQuery`.
    pub fn transaction_status(&self) -> TransactionStatus {
        TransactionStatus::Idle
    }
    /// How long the client may stay silent now (`idle_in_transaction_session_timeout`, `idle_session_timeout`), and the error that
    /// ends the session then.
    pub fn idle_timeout(&self) -> Option<(Duration, Error)> {
        None
    }

    /// A query string of the simple protocol. Everything, errors included, goes to `out`; the caller sends `ReadyForQuery`.
    /// The error, if there was one, is returned as well.
    pub async fn simple(&mut self, text: &str, out: &mut dyn Output) -> Result<()> {
        let _ = text;
        let error = Error::unsupported("no statement can run yet");
        out.error(&error);
        Err(error)
    }
    /// Runs a query string and returns what came, as text. Stops at the first error, as the simple protocol does.
    pub async fn query_text(&mut self, sql: &str) -> Result<Vec<StatementResult>> {
        let _ = sql;
        Err(Error::unsupported("no statement can run yet"))
    }

    /// `Parse`. `types`: OIDs of the parameters, 0 where the server is to find out.
    ///
    /// After an error of this or another method of the extended protocol the caller reports it, skips to the next `Sync`, and
    /// calls [`Session::sync`]; the session's own state has already changed accordingly.
    pub async fn parse(&mut self, name: &str, text: &str, types: &[u32], out: &mut dyn Output) -> Result<()> {
        let _ = (name, text, types, out);
        Err(Error::unsupported("no statement can run yet"))
    }
    /// `Bind`.
    pub async fn bind(&mut self, portal: &str, statement: &str, arguments: BindArguments, out: &mut dyn Output) -> Result<()> {
        let _ = (portal, statement, arguments, out);
        Err(Error::unsupported("no statement can run yet"))
    }
    /// `Describe` of a statement.
    pub async fn describe_statement(&mut self, name: &str, out: &mut dyn Output) -> Result<()> {
        let _ = (name, out);
        Err(Error::unsupported("no statement can run yet"))
    }
    /// `Describe` of a portal.
    pub async fn describe_portal(&mut self, name: &str, out: &mut dyn Output) -> Result<()> {
        let _ = (name, out);
        Err(Error::unsupported("no statement can run yet"))
    }
    /// `Execute`. `max_rows`: 0 for all. `last`: the caller knows that `Sync` comes next, so that a query can run as a read-only
    /// transaction.
    pub async fn execute(&mut self, portal: &str, max_rows: u64, last: bool, out: &mut dyn Output) -> Result<()> {
        let _ = (portal, max_rows, last, out);
        Err(Error::unsupported("no statement can run yet"))
    }
    /// `Close` of a statement. Not an error if there is none.
    pub fn close_statement(&mut self, name: &str, out: &mut dyn Output) -> Result<()> {
        let _ = name;
        out.close_complete();
        Ok(())
    }
    /// `Close` of a portal. Not an error if there is none.
    pub fn close_portal(&mut self, name: &str, out: &mut dyn Output) -> Result<()> {
        let _ = name;
        out.close_complete();
        Ok(())
    }
    /// `Sync`: ends the implicit transaction. An error has been written to `out`, in the place of what it makes untrue if that
    /// was not sent yet. The caller sends `ReadyForQuery`.
    pub async fn sync(&mut self, out: &mut dyn Output) {
        let _ = out;
    }
}

impl<E: Environment> Drop for Session<E> {
    fn drop(&mut self) {
        self.shared.unregister(self.options.id);
    }
}
