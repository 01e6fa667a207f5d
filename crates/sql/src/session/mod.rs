//! A session: what a connection is to the database.
//!
//! ```text
//! Query  ──▶ simple ─┐                                   ┌─ control: BEGIN, SAVEPOINT, SET, PREPARE, …
//! Parse  ──▶ parse   ├─▶ statement ─▶ plan (plan cache) ─┼─ exec in the transaction
//! Bind   ──▶ bind    │                                   ├─ DDL on the block's catalog
//! Execute──▶ execute ┘                                   └─ COPY
//!                         answers ─▶ Output (buffered until it may be sent)
//! ```
//!
//! **Transactions.** A statement outside a block runs in an implicit transaction: one per query
//! string in the simple protocol, one per `Sync` in the extended one (PostgreSQL manual, 55.2.2.1
//! and 55.2.3). All isolation levels are accepted and all run as serializable. A schema change in a
//! query string without `BEGIN` ends the implicit transaction before it and is one by itself.
//!
//! **Retries.** When certification fails and nothing of the transaction has reached the client, the
//! session runs it again by itself ([`Output::rewind`]). That is possible for an implicit
//! transaction, for a block that began in the same query string, and for the first statement of any
//! block. Otherwise the client gets 40001. Unavailability is met in the same way, for a bounded
//! time, so that a failover shows as a pause.
//!
//! **Errors.** What an implicit transaction tells is held back until it has committed, and taken
//! back when it fails, whatever the error is ([`Session::fail`]): an error is all that its client
//! hears. A result that is certified as it is read (one group, at its primary) may be sent while it
//! is made; any other one has a byte limit (53200). A `Flush` certifies what was read, and sends
//! the rest as what it is, the beginning of a transaction that is still open.
//!
//! **Schema changes in a block** are derived on a catalog of the block's own and committed as one
//! step by `COMMIT` ([`ddl`]).
//!
//! This module knows nothing about sockets or the framing of the wire protocol.

mod acting;
mod analyze;
mod as_of;
mod aside;
mod client;
mod control;
mod copy;
mod copy_format;
mod create_as;
mod cursor;
mod ddl;
mod extended;
mod jobs;
mod judges;
mod load;
mod output;
mod privileges;
mod run;
mod setting_defs;
mod settings;
mod simple;
mod statistics;
mod system;
#[cfg(test)]
mod tests;
mod text;
mod transaction;

pub use crate::env::pid;
pub use crate::plan::OutputColumn;
pub use crate::shared::{CancelHandle, Shared};
pub use crate::types::Format;
pub use client::{Answer, ClientSession, SessionFactory};
pub use extended::BindArguments;
pub use jobs::adopt;
pub use output::{CopyInput, Formats, Mark, Notice, Output};
pub use statistics::{Attention, keep_up};
pub use text::StatementResult;

use crate::catalog::names::Names;
use crate::catalog::{Catalog, Role};
use crate::env::{Encryption, Environment, SessionRow};
use crate::shared::Activity;
use crate::shared::SessionSequences;
use crate::shared::plans::Scope;
use crate::types::EvalContext;
use extended::{Named, Portal};
use meridian_base::{DescriptorId, Error, Result, SchemaVersion, SessionId};
use privileges::Authorities;
use settings::{Acting, Settings};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use system::SessionSystem;
use transaction::{Block, Uncertified};

/// How a session starts.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// Unique at this node.
    pub id: SessionId,
    /// The role that has logged in.
    pub user: String,
    /// The same by its id, if the client has proved to be it: the name alone may be another's now.
    pub role: Option<DescriptorId>,
    pub database: String,
    pub application_name: String,
    /// Settings from the startup message.
    pub settings: Vec<(String, String)>,
    /// What its connection is protected with.
    pub encryption: Option<Encryption>,
}

impl SessionOptions {
    fn find_role<'a>(&self, catalog: &'a Catalog) -> Option<&'a Role> {
        match self.role {
            Some(id) => catalog.role_by_id(id),
            None => catalog.find_role(&self.user),
        }
    }
}

/// Where a session is with respect to transaction blocks (the status byte of `ReadyForQuery`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionStatus {
    Idle,
    InTransaction,
    Failed,
}

/// The version that clients are told: the PostgreSQL release whose dialect and catalogs are
/// followed.
const SERVER_VERSION: &str = concat!("15.0 (Meridian ", env!("CARGO_PKG_VERSION"), ")");

/// One client's session on one node.
pub struct Session<E: Environment> {
    env: E,
    options: SessionOptions,
    shared: Arc<Shared>,
    activity: Arc<Activity>,
    cancel: CancelHandle,
    /// Settings, and the impure part of expressions.
    system: Arc<SessionSystem<E>>,
    sequences: SessionSequences<E>,
    /// What follows from the settings: kept until they change ([`Session::refresh`]).
    names: Names,
    /// The role that has logged in.
    login_role: DescriptorId,
    /// Who acts, and the version of the catalog that `names` has it from; `None`: a block's own.
    acting: Option<(Acting, Option<SchemaVersion>)>,
    authorities: Authorities,
    scope: Scope,
    eval: EvalContext,
    seen_generation: u64,
    /// Up to which generation the client was told of its settings.
    told_generation: u64,
    /// The reported settings as the client knows them.
    reported: Vec<(&'static str, String)>,
    /// The open transaction, implicit ones included.
    block: Option<Block<E::Txn>>,
    /// How many attempts came before the one that runs now.
    attempt: u32,
    /// Counts what cannot be taken back or done twice: a transaction is not run again across it.
    side_effects: u64,
    /// Where the output of the present statement begins.
    statement_start: Mark,
    /// What the client is told before it is certified, and takes back if it turns out to be untrue.
    uncertified: Uncertified,
    statements: BTreeMap<String, Arc<Named>>,
    /// Portals and cursors: one namespace. In boxes, since the map makes room for several.
    portals: BTreeMap<String, Box<Portal>>,
    /// How many there have been.
    portals_made: u64,
}

impl<E: Environment> Session<E> {
    /// Opens a session of a client that has proved who it is. 3D000 if there is no such database:
    /// that is said by a catalog which is known to be the present one. Where a database is known,
    /// statements ask for that themselves, if they need it: the past can be read while no primary
    /// is in reach.
    pub async fn open(env: E, options: SessionOptions, shared: Arc<Shared>) -> Result<Session<E>> {
        let catalog = env.catalog();
        if catalog.find_database(&options.database).is_none() || options.find_role(&catalog).is_none() {
            env.catch_up().await?;
        }
        let session = Session::new(env, options, shared)?;
        session.check_login()?;
        Ok(session)
    }
    /// The same by the catalog that is known.
    pub fn new(env: E, options: SessionOptions, shared: Arc<Shared>) -> Result<Session<E>> {
        let catalog = env.catalog();
        catalog.database(&options.database)?;
        let missing = || Error::sql("28000", format!("role \"{}\" does not exist", options.user));
        let login_role = options.find_role(&catalog).ok_or_else(missing)?.id;
        let fixed = [
            ("server_version", SERVER_VERSION.to_string()),
            ("session_authorization", options.user.clone()),
            ("application_name", options.application_name.clone()),
        ];
        let (roles, set): (Vec<_>, Vec<_>) =
            options.settings.iter().cloned().partition(|(name, _)| name.eq_ignore_ascii_case("role"));
        let settings = Settings::new(login_role, &fixed, &set)?;
        let application = settings.show("application_name")?;
        let cancel = CancelHandle::default();
        let activity = Activity::new(SessionRow {
            session: options.id,
            role: login_role,
            database: options.database.clone(),
            application,
            state: "idle",
            query: String::new(),
            encryption: options.encryption.clone(),
            is_hidden: false,
        });
        shared.register(options.id, activity.clone(), cancel.clone());
        let system =
            Arc::new(SessionSystem::new(env.clone(), shared.clone(), options.id, cancel.clone(), settings, &options.database));
        let names = Names { role: login_role, session_role: login_role, ..Names::new(&options.database, &options.user) };
        let eval = EvalContext {
            catalog,
            user: options.user.as_str().into(),
            session_user: options.user.as_str().into(),
            role: login_role,
            session_role: login_role,
            database: options.database.as_str().into(),
            gateway_region: env.locality().region.as_str().into(),
            system: system.clone(),
            ..EvalContext::default()
        };
        let scope = shared.plans.scope(&names, "", eval.style.date_order);
        let mut session = Session {
            sequences: SessionSequences::new(env.clone(), options.id, shared.clone()),
            env,
            options,
            shared,
            activity,
            cancel,
            system,
            names,
            login_role,
            acting: None,
            authorities: Authorities::default(),
            scope,
            eval,
            seen_generation: u64::MAX,
            told_generation: u64::MAX,
            reported: Vec::new(),
            block: None,
            attempt: 0,
            side_effects: 0,
            statement_start: Mark::default(),
            uncertified: Uncertified::default(),
            statements: BTreeMap::new(),
            portals: BTreeMap::new(),
            portals_made: 0,
        };
        if let Some((_, role)) = roles.last().filter(|(_, role)| !role.eq_ignore_ascii_case("none")) {
            session.set_role(Some(role), false)?;
        }
        session.refresh();
        session.reported = session.reported_settings();
        Ok(session)
    }
    /// Its identity at this node.
    pub fn id(&self) -> SessionId {
        self.options.id
    }
    /// Interrupts this session from another task.
    pub fn cancel_handle(&self) -> CancelHandle {
        self.cancel.clone()
    }
    /// The settings that clients are told at the start and whenever they change
    /// (`ParameterStatus`).
    pub fn reported_settings(&self) -> Vec<(&'static str, String)> {
        let settings = self.system.settings();
        (setting_defs::DEFINITIONS.iter().filter(|d| d.is_reported))
            .map(|d| (d.name, settings.show(d.key()).unwrap_or_default()))
            .collect()
    }
    /// For `ReadyForQuery`.
    pub fn transaction_status(&self) -> TransactionStatus {
        match &self.block {
            Some(block) if block.failed => TransactionStatus::Failed,
            Some(block) if block.explicit => TransactionStatus::InTransaction,
            _ => TransactionStatus::Idle,
        }
    }
    /// How long the client may stay silent now (`idle_in_transaction_session_timeout`,
    /// `idle_session_timeout`), and the error that ends the session then.
    pub fn idle_timeout(&self) -> Option<(Duration, Error)> {
        let settings = self.system.settings();
        let values = settings.now();
        if self.block.is_some() {
            let error = || Error::sql("25P03", "terminating connection due to idle-in-transaction timeout");
            values.idle_in_transaction_timeout.map(|t| (t, error()))
        } else {
            let error = || Error::sql("57P05", "terminating connection due to idle-session timeout");
            values.idle_session_timeout.map(|t| (t, error()))
        }
    }

    /// Brings everything that follows from the settings up to date, if they changed. Called before
    /// each statement, since the one before it in a query string may have changed them.
    pub(super) fn refresh(&mut self) {
        let is_another = self.follow_role();
        let settings = self.system.settings();
        if !is_another && settings.generation() == self.seen_generation {
            return;
        }
        self.seen_generation = settings.generation();
        let values = settings.now().clone();
        drop(settings);
        if self.names.search_path[..] != values.search_path[..] || self.eval.search_path.is_empty() {
            self.names.search_path = values.search_path.to_vec();
        }
        self.eval.search_path = self.names.effective_path().map(str::to_string).collect();
        self.eval.zone = values.zone.clone();
        self.eval.style = values.style;
        self.scope = self.shared.plans.scope(&self.names, values.zone.name(), values.style.date_order);
    }
    /// Tells the client of settings that changed.
    fn report_settings(&mut self, out: &mut dyn Output) {
        let generation = self.system.settings().generation();
        if generation == self.told_generation {
            return;
        }
        self.told_generation = generation;
        self.refresh();
        let now = self.reported_settings();
        for ((name, old), (_, new)) in self.reported.iter().zip(&now) {
            if old != new {
                out.parameter_status(name, new);
                if *name == "application_name" {
                    self.activity.set_application(new);
                }
            }
        }
        self.reported = now;
    }
    /// Sends a notice, if the client wants to hear of its kind.
    fn notice(&self, out: &mut dyn Output, severity: &'static str, sqlstate: &'static str, message: impl Into<String>) {
        if settings::severity_rank(severity) >= self.setting(|v| v.notice_rank) {
            out.notice(&Notice { severity, sqlstate, message: message.into(), detail: None, hint: None });
        }
    }
}

impl<E: Environment> Drop for Session<E> {
    fn drop(&mut self) {
        self.shared.unregister(self.options.id);
    }
}
