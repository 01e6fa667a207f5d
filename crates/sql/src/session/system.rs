//! What expressions and system tables may ask of a session.

use super::judges::Judges;
use super::settings::Settings;
use crate::catalog::authority::denied;
use crate::catalog::ids::CONTROL_NODES;
use crate::catalog::names::Names;
use crate::catalog::sequences::Sequences;
use crate::catalog::system::{Setting, SystemContext};
use crate::catalog::{Authority, Catalog};
use crate::env::{Environment, GroupRow, NodeLocality, PodHostRow, SessionRow, TransactionRow};
use crate::exec::{ExecContext, ExecOptions, Interrupt, MEMORY_BYTES_MAX, Pace};
use crate::shared::{CancelHandle, Shared};
use crate::temporary::Temporary;
use crate::types::{EvalContext, System, Type};
use futures::future::BoxFuture;
use meridian_base::{DescriptorId, Error, Result, SessionId};
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The part of a session that expressions share with it: its settings and its environment.
pub(super) struct SessionSystem<E> {
    env: E,
    shared: Arc<Shared>,
    node: u32,
    session: SessionId,
    cancel: CancelHandle,
    settings: Mutex<Settings>,
    login_role: DescriptorId,
    database: String,
    /// The id of the role that acts.
    acting: AtomicU64,
}

impl<E: Environment> SessionSystem<E> {
    pub fn new(
        env: E,
        shared: Arc<Shared>,
        session: SessionId,
        cancel: CancelHandle,
        settings: Settings,
        database: &str,
    ) -> Self {
        let node = env.locality().node.0;
        let login_role = settings.now().acting.session;
        let acting = AtomicU64::new(u64::from(login_role.0));
        let database = database.to_string();
        SessionSystem { env, shared, node, session, cancel, settings: Mutex::new(settings), login_role, database, acting }
    }
    /// The role that has logged in.
    pub fn login_role(&self) -> DescriptorId {
        self.login_role
    }
    pub fn database(&self) -> &str {
        &self.database
    }
    /// Who acts from now on.
    pub fn set_acting(&self, role: DescriptorId, is_superuser: bool) {
        self.acting.store(u64::from(role.0), Ordering::Relaxed);
        let shown = if is_superuser { "on" } else { "off" };
        self.settings().set_fixed("is_superuser", shown);
    }
    fn authority(&self) -> Authority {
        let role = DescriptorId(self.acting.load(Ordering::Relaxed) as u32);
        self.env.catalog().authority(role, "")
    }
    /// The names of who has logged in and of who acts.
    fn users(&self) -> (String, String) {
        let catalog = self.env.catalog();
        let acting = DescriptorId(self.acting.load(Ordering::Relaxed) as u32);
        (catalog.role_name(self.login_role).to_string(), catalog.role_name(acting).to_string())
    }
    /// Never held across an await.
    pub fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock()
    }
}

impl<E: Environment> System for SessionSystem<E> {
    fn random(&self) -> u64 {
        self.env.random()
    }
    fn now_micros(&self) -> u64 {
        self.env.now_micros()
    }
    fn setting(&self, name: &str) -> Option<String> {
        // These follow the transaction, and every one runs alike.
        if name.eq_ignore_ascii_case("transaction_isolation") {
            return Some("serializable".to_string());
        }
        self.settings().show(name).ok()
    }
    fn set_setting(&self, name: &str, value: &str, local: bool) -> Result<String> {
        match name.to_ascii_lowercase().as_str() {
            "role" => self.set_role(&Judges::only(self.env.catalog()), Some(value).filter(|v| *v != "none"), local)?,
            "session_authorization" => {
                self.set_session_authorization(&Judges::only(self.env.catalog()), Some(value), local)?;
            }
            _ => return self.settings().set(name, Some(value), local),
        }
        self.settings().show(name)
    }
    fn unique_rowid(&self) -> i64 {
        self.shared.unique_rowid(self.node, self.env.now_micros())
    }
    fn interrupted(&self) -> Result<()> {
        self.cancel.check_at(self.env.now_micros())
    }
    fn backend_pid(&self) -> i32 {
        crate::env::pid(self.session)
    }
    fn stop_backend(&self, pid: i32, ends: bool) -> Result<bool> {
        let found = self.shared.sessions().into_iter().find(|s| crate::env::pid(s.session) == pid);
        if let Some(session) = found {
            super::privileges::may_stop(&self.env.catalog(), &self.authority(), session.role, ends)?;
        }
        let stopped = self.shared.stop(pid, ends);
        if stopped == Some(true) {
            let (user, acting) = self.users();
            tracing::info!(event = "session_stopped", user, acting, pid, "a session was told to end");
        }
        Ok(stopped.is_some())
    }
    fn reload(&self) -> Result<bool> {
        if !self.authority().has(CONTROL_NODES) {
            return Err(denied("function", "pg_reload_conf"));
        }
        let (user, acting) = self.users();
        tracing::info!(event = "reload_asked", user, acting, "pg_reload_conf()");
        self.env.reload();
        Ok(true)
    }
    fn reg_name(&self, ctx: &EvalContext, ty: &Type, oid: u32) -> Option<String> {
        crate::catalog::system::functions::reg_name(ctx, ty, oid)
    }
    fn reg_oid(&self, ctx: &EvalContext, ty: &Type, name: &str) -> Result<u32> {
        crate::catalog::system::functions::reg_oid(ctx, ty, name)
    }
}

/// What the rows of system tables are computed from, during one statement.
pub(super) struct StatementSystem<'a, E> {
    pub env: &'a E,
    pub system: &'a SessionSystem<E>,
    pub catalog: &'a Arc<Catalog>,
    pub names: &'a Names,
}

impl<E: Environment> StatementSystem<'_, E> {
    /// What a plan is run with.
    pub fn exec<'s>(
        &'s self,
        eval: &'s EvalContext,
        interrupt: &'s Interrupt,
        sequences: &'s dyn Sequences,
        options: ExecOptions,
    ) -> ExecContext<'s> {
        let (catalog, pace, memory_bytes_max) = (self.catalog, Pace::default(), MEMORY_BYTES_MAX.max(options.work_mem));
        let pool = &self.system.shared.memory;
        ExecContext { eval, catalog, interrupt, sequences, system: self, memory_bytes_max, pool, options, pace }
    }
}

impl<E: Environment> SystemContext for StatementSystem<'_, E> {
    fn catalog(&self) -> &Arc<Catalog> {
        self.catalog
    }
    fn names(&self) -> &Names {
        self.names
    }
    fn newest(&self) -> Arc<Catalog> {
        self.env.catalog()
    }
    fn node(&self) -> NodeLocality {
        self.env.locality()
    }
    fn nodes(&self) -> Vec<NodeLocality> {
        self.env.nodes()
    }
    fn now_micros(&self) -> u64 {
        self.env.now_micros()
    }
    fn sessions(&self) -> Vec<SessionRow> {
        let who = self.env.catalog().authority_of(self.names);
        let mut sessions = self.env.sessions();
        for session in &mut sessions {
            if !super::privileges::sees_activity(&who, session.role) {
                session.is_hidden = true;
                session.query = "<insufficient privilege>".into();
                session.state = "";
                session.application = String::new();
            }
        }
        sessions
    }
    fn settings(&self) -> Vec<Setting> {
        self.system.settings().all()
    }
    fn groups(&self) -> BoxFuture<'_, Result<Vec<GroupRow>>> {
        Box::pin(self.env.groups())
    }
    fn transactions(&self) -> BoxFuture<'_, Result<Vec<TransactionRow>>> {
        Box::pin(self.env.transactions())
    }
    fn pods(&self) -> Result<Vec<PodHostRow>> {
        self.env.pods()
    }
    fn metrics(&self) -> Vec<(String, u64)> {
        self.env.metrics()
    }
    fn compute(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'_, ()> {
        Box::pin(self.env.compute(work))
    }
    fn temporary(&self) -> Option<Arc<dyn Temporary>> {
        self.env.temporary()
    }
}

/// Refuses with 25006 what a read-only transaction may not do.
pub(super) fn refuse_in_read_only(is_read_only: bool, what: &str) -> Result<()> {
    match is_read_only {
        true => Err(Error::sql("25006", format!("cannot execute {what} in a read-only transaction"))),
        false => Ok(()),
    }
}
