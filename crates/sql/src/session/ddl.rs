//! Schema changes, alone and in transaction blocks.
//!
//! Alone, a schema change is a step of its own (`jobs`). In a block it is derived on the
//! block's catalog: the one the block began with and what the block changed so far. `COMMIT`
//! commits all of it as one step.
//!
//! Rows of tables that the block itself created or truncated are seen by nobody else before
//! `COMMIT`. As long as its statements touch no others, each writes them ahead of it, in a
//! transaction of its own: a load of any size fits into a block. Before the first row is written,
//! the ids of the indexes are reserved ([`jobs::Hold`]), by a step that changes nothing else,
//! except that it makes the groups that these tables are the first to need. `COMMIT` ends the
//! reservation in the step that names the ids. In a block that is rolled back the reservation ends
//! by itself, and the rows lie under ids that are never used again: every node removes them as it
//! does the rows of dropped tables.
//!
//! From the first statement on that touches a table of others, or writes after a SAVEPOINT, before
//! or after the schema changes, the block is a transaction like any other
//! ([`Block::is_mixed`](super::transaction::Block)), and commits together with the step: both at
//! one timestamp, or neither.

mod rebase;

use super::run::interruptible;
use super::{Output, Session};
use crate::catalog::hba::Rules;
use crate::catalog::job::Job;
use crate::catalog::names::Names;
use crate::catalog::{Catalog, CatalogChange, Descriptor};
use crate::ddl::{self, Ddl, DdlContext};
use crate::env::{Environment, Transaction};
use crate::jobs::{self, Committed, JobContext, Step};
use crate::parse::{Kind, Password, RoleStatement, Statement, without_passwords};
use crate::plan::Prepared;
use crate::shared::retry::Attempts;
use crate::types::EvalContext;
use meridian_base::{DescriptorId, Error, ErrorKind, Result};
use meridian_pki::scram::Verifier;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The schema changes of an open block.
#[derive(Clone)]
pub(super) struct DdlBlock {
    /// What they are derived from.
    base: Arc<Catalog>,
    /// `base` with the changes.
    pub catalog: Arc<Catalog>,
    change: CatalogChange,
    jobs: Vec<Job>,
    /// Tables created or truncated here.
    private: BTreeSet<DescriptorId>,
    /// To derive all of it again if another change comes first.
    statements: Vec<Arc<Said>>,
    /// Private tables with rows.
    filled: BTreeSet<DescriptorId>,
    /// Nobody else can draw the ids that `change` uses.
    ids_reserved: bool,
    /// The smallest of them.
    first_id: u32,
    /// Keeps what is written under them from being removed.
    hold: Option<Arc<jobs::Hold>>,
    /// Statements that wrote rows of tables which this block has created or changed.
    writes: u32,
}

/// A statement of a block, with what its meaning depends on beside the catalog: `SET ROLE` and `SET
/// search_path` after it change nothing about it.
struct Said {
    statement: Arc<Statement>,
    /// It loads rows into this table, which gets new indexes for them.
    loads: Option<DescriptorId>,
    names: Names,
    eval: EvalContext,
    tag: &'static str,
}

impl DdlBlock {
    pub fn new(base: Arc<Catalog>) -> DdlBlock {
        DdlBlock {
            catalog: base.clone(),
            first_id: base.next_id,
            hold: None,
            base,
            change: CatalogChange::default(),
            jobs: Vec::new(),
            private: BTreeSet::new(),
            statements: Vec::new(),
            filled: BTreeSet::new(),
            ids_reserved: false,
            writes: 0,
        }
    }
    /// The catalog without the changes.
    pub fn base(&self) -> &Arc<Catalog> {
        &self.base
    }
    fn is_empty(&self) -> bool {
        self.change.is_empty() && self.jobs.is_empty()
    }
    fn add(&mut self, said: Arc<Said>, derived: Ddl) {
        let next_id = self.catalog.next_id;
        self.catalog = Arc::new(self.catalog.with(&derived.change));
        self.ids_reserved &= self.catalog.next_id == next_id;
        for id in derived.change.delete {
            self.change.put.retain(|d| d.id() != id);
            self.private.remove(&id);
            self.change.delete.push(id);
        }
        for descriptor in derived.change.put {
            self.change.put.retain(|d| d.id() != descriptor.id());
            self.change.put.push(descriptor);
        }
        self.change.next_id = self.catalog.next_id;
        self.jobs.extend(derived.jobs);
        self.filled.retain(|id| !derived.private.contains(id));
        self.private.extend(derived.private);
        self.statements.push(said);
    }
    /// Their texts.
    fn text(&self) -> String {
        let texts: Vec<&str> = self.statements.iter().map(|s| s.statement.text.as_str()).collect();
        texts.join("; ")
    }
    /// Whether a statement touches no table that others can see.
    fn is_private(&self, prepared: &Prepared) -> bool {
        let is_table = |id: &DescriptorId| matches!(self.catalog.descriptors.get(id).map(|d| &**d), Some(Descriptor::Table(_)));
        prepared.descriptors.iter().all(|id| self.private.contains(id) || !is_table(id))
    }
    /// Whether a statement touches something that this block has created or changed.
    fn concerns(&self, prepared: &Prepared) -> bool {
        let is_put = |id: &DescriptorId| self.change.put.iter().any(|d| d.id() == *id);
        prepared.descriptors.iter().any(|id| self.private.contains(id) || is_put(id))
    }
    /// Whether this block has made a sequence.
    fn has_new_sequence(&self) -> bool {
        let is_new = |d: &Descriptor| matches!(d, Descriptor::Sequence(_)) && !self.base.descriptors.contains_key(&d.id());
        self.change.put.iter().any(is_new)
    }
    /// Groups that do not exist before this block's tables need them, such as that of a database's
    /// first GLOBAL table.
    fn new_groups(&self) -> impl Iterator<Item = &Descriptor> {
        let is_new = |d: &&Descriptor| matches!(d, Descriptor::Group(_)) && !self.base.descriptors.contains_key(&d.id());
        self.change.put.iter().filter(is_new)
    }
    fn note_write(&mut self, prepared: &Prepared) {
        self.writes += 1;
        self.filled.extend(prepared.descriptors.iter().filter(|id| self.private.contains(*id)));
    }
}

impl<E: Environment> Session<E> {
    pub(crate) fn job_context(&self, statement: &str) -> JobContext {
        JobContext {
            session: self.options.id,
            names: self.names.clone(),
            eval: self.eval.clone(),
            shared: self.shared.clone(),
            statement: statement.to_string(),
            job: None,
            has_begun: Arc::default(),
        }
    }
    /// The statement with a verifier in the place of the password that it has in clear text, if it
    /// has one: nothing that is kept of it has the password.
    async fn sealed(&mut self, statement: &Arc<Statement>) -> Result<Option<Arc<Statement>>> {
        let Kind::Role(of_role) = &statement.kind else { return Ok(None) };
        let (RoleStatement::Create { options, .. } | RoleStatement::Alter { options, .. }) = &**of_role else { return Ok(None) };
        let Some(Password::Text(password)) = options.password.clone().filter(|p| *p != Password::Text(String::new())) else {
            return Ok(None);
        };
        let is_md5 = password.len() == 35 && password.starts_with("md5");
        if is_md5 && password[3..].bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(
                Error::unsupported("MD5 passwords are not supported").hint("Give the password, or a SCRAM-SHA-256 verifier.")
            );
        }
        let verifier = self.env.compute(move || match Verifier::is_one(&password) {
            true => password,
            false => Verifier::new(&password).to_text().to_string(),
        });
        let password = Some(Password::Verifier(verifier.await));
        let mut sealed = of_role.clone();
        if let RoleStatement::Create { options, .. } | RoleStatement::Alter { options, .. } = &mut *sealed {
            options.password = password;
        }
        let text = without_passwords(&statement.text).into_owned();
        Ok(Some(Arc::new(Statement { kind: Kind::Role(sealed), text, ..(**statement).clone() })))
    }
    /// Runs a schema change. Returns its command tag.
    pub(super) async fn run_ddl(&mut self, statement: &Arc<Statement>, out: &mut dyn Output) -> Result<&'static str> {
        self.refuse_if_read_only("a schema change")?;
        if matches!(statement.kind, Kind::AlterSystem { .. }) {
            self.refuse_in_block("ALTER SYSTEM")?;
        }
        let sealed = self.sealed(statement).await?;
        let statement = sealed.as_ref().unwrap_or(statement);
        let tag = self.change_schema(statement, out).await?;
        // What a block does is done when it commits.
        if !self.block.as_ref().is_some_and(|b| b.explicit) {
            log_event(statement, &self.eval, tag);
        }
        if let Kind::AlterSystem { name, value: Some(text) } = &statement.kind
            && name == "hba_rules"
        {
            let trusting = Rules::parse(text)?.0.into_iter().filter_map(|rule| Some((rule.line, rule.trusted_strangers()?)));
            for (line, from) in trusting {
                tracing::warn!(event = "logins_without_proof", line, from, "{}", ddl::trusts_strangers(line, &from));
            }
        }
        Ok(tag)
    }
    async fn change_schema(&mut self, statement: &Arc<Statement>, out: &mut dyn Output) -> Result<&'static str> {
        if self.block.as_ref().is_some_and(|b| b.explicit) {
            return self.run_ddl_in_block(statement, out).await;
        }
        self.commit_block().await?;
        let context = self.job_context(&statement.text);
        let mut attempts = Attempts::default();
        loop {
            let done = tokio::select! {
                biased;
                done = jobs::execute(&self.env, statement, &context) => done,
                reason = self.cancel.interrupted() => Err(stopped(reason, context.has_begun.load(Ordering::Relaxed))),
            };
            match done {
                Ok(done) => {
                    for n in &done.notices {
                        self.notice(out, n.severity, n.sqlstate, n.message.clone());
                    }
                    return Ok(done.tag);
                }
                Err(e) if attempts.allow(&e) => attempts.pause(self.env.random(), &self.cancel).await?,
                Err(e) => return Err(e),
            }
        }
    }
    async fn run_ddl_in_block(&mut self, statement: &Arc<Statement>, out: &mut dyn Output) -> Result<&'static str> {
        match &statement.kind {
            Kind::CreateDatabase { .. } => self.refuse_in_block("CREATE DATABASE")?,
            Kind::AlterDatabase { action, .. } if action.is_about_regions() => {
                self.refuse_in_block("ALTER DATABASE with a change of regions")?;
            }
            Kind::DropIndexes { is_concurrent: true, .. } => self.refuse_in_block("DROP INDEX CONCURRENTLY")?,
            Kind::CreateIndex(index) if index.create.concurrently => self.refuse_in_block("CREATE INDEX CONCURRENTLY")?,
            _ => {}
        }
        if let Kind::Sql(sql) = &statement.kind
            && let crate::parse::ast::Statement::Drop { object_type: crate::parse::ast::ObjectType::Database, .. } = &**sql
        {
            self.refuse_in_block("DROP DATABASE")?;
        }
        let block = self.block.as_mut().expect("an open block");
        block.is_mixed |= block.has_touched_rows;
        if !block.is_mixed
            && let Some(txn) = block.txn.take()
        {
            // It read system tables at most, and those of the catalog as it was.
            txn.rollback();
        }
        let env = &self.env;
        let changes = match &block.ddl {
            Some(changes) => changes.clone(),
            None => DdlBlock::new(block.catalog.get_or_insert_with(|| env.catalog()).clone()),
        };
        block.statements += 1;
        let (changes, tag, notices) = self.changed_by(statement, changes).await?;
        let block = self.block.as_mut().expect("an open block");
        block.catalog = Some(changes.catalog.clone());
        block.ddl = Some(changes);
        for n in notices {
            self.notice(out, n.severity, n.sqlstate, n.message);
        }
        Ok(tag)
    }
    /// A block's changes with those of one more statement.
    ///
    /// Rows that are written already stay under the ids that they have, so the changes can only be
    /// moved to a newer catalog, and others draw ids there as well. The statement's own are drawn
    /// from the newest catalog, and reserved before anybody else can draw them.
    async fn changed_by(
        &mut self,
        statement: &Arc<Statement>,
        mut changes: DdlBlock,
    ) -> Result<(DdlBlock, &'static str, Vec<ddl::Notice>)> {
        let mut attempts = Attempts::default();
        loop {
            if changes.writes > 0 {
                let newest = self.env.catalog();
                if newest.version != changes.base.version {
                    changes = rebase::rebase(changes, newest)?;
                }
            }
            let (names, eval) = (self.names.clone(), self.eval.clone());
            let mut said = Said { statement: statement.clone(), loads: None, names, eval, tag: "" };
            let derived = self.derive(&said, &changes)?;
            let (tag, notices) = (derived.tag, derived.notices.clone());
            said.tag = tag;
            let mut after = changes.clone();
            after.add(Arc::new(said), derived);
            if after.writes == 0 || after.ids_reserved {
                return Ok((after, tag, notices));
            }
            match self.reserve(&mut after).await {
                Ok(()) => return Ok((after, tag, notices)),
                Err(e) if attempts.allow(&e) => attempts.pause(self.env.random(), &self.cancel).await?,
                Err(e) => return Err(e),
            }
        }
    }
    fn derive(&self, said: &Said, changes: &DdlBlock) -> Result<Ddl> {
        let (nodes, locality) = (self.env.nodes(), self.env.locality());
        let empty = changes.private.difference(&changes.filled).copied().collect();
        let context = DdlContext {
            names: &said.names,
            gateway_region: &locality.region,
            nodes: &nodes,
            private: &empty,
            jobs: &changes.jobs,
            eval: &said.eval.with_catalog(changes.catalog.clone()),
        };
        let derived = match said.loads {
            Some(table) => ddl::renew_indexes(table, &changes.catalog, &context)?,
            None => ddl::derive(&said.statement, &changes.catalog, &context)?,
        };
        let has_escrow = |d: &Descriptor| matches!(d, Descriptor::Table(t) if t.with_shares().next().is_some());
        if derived.change.put.iter().any(has_escrow) && !self.env.knows_escrow() {
            return Err(Error::unsupported("escrow columns are not known to every node yet")
                .hint("Run a newer program on all nodes; meridian node status shows which version the cluster is at."));
        }
        jobs::check_known(&self.env, &derived.change)?;
        Ok(derived)
    }
    /// A block's changes with new, empty indexes for a table that a statement loads rows into.
    pub(super) fn renew_indexes(&self, mut changes: DdlBlock, table: DescriptorId, statement: &Statement) -> Result<DdlBlock> {
        let (names, eval) = (self.names.clone(), self.eval.clone());
        let said = Said { statement: Arc::new(statement.clone()), loads: Some(table), names, eval, tag: "" };
        let derived = self.derive(&said, &changes)?;
        changes.add(Arc::new(said), derived);
        Ok(changes)
    }
    /// Derives the changes of a block again from the newest catalog.
    fn derive_again(&self, old: &DdlBlock) -> Result<DdlBlock> {
        let mut changes = DdlBlock::new(self.env.catalog());
        for said in &old.statements {
            let derived = self.derive(said, &changes)?;
            changes.add(said.clone(), derived);
        }
        Ok(changes)
    }

    /// Called before a statement of a block with schema changes runs: decides whether it runs in
    /// the block's transaction, and reserves ids before it may write. `false`: the plan was made on
    /// a catalog that is no longer the block's; make it again.
    pub(super) async fn admit_to_ddl_block(&mut self, prepared: &Prepared) -> Result<bool> {
        let block = self.block.as_mut().expect("an open block");
        let Some(changes) = &mut block.ddl else { return Ok(true) };
        // What was written ahead could not be taken back to a savepoint.
        let is_to_be_undone = !block.savepoints.is_empty() && !prepared.read_only;
        if !block.is_mixed && !prepared.groups.is_empty() && (is_to_be_undone || !changes.is_private(prepared)) {
            block.is_mixed = true;
            // It has not touched rows: they were written ahead, if there are any, and it is to see
            // them.
            if let Some(txn) = block.txn.take() {
                txn.rollback();
            }
        }
        // Any statement that is not read-only may draw from a new sequence, and its values are rows
        // as well.
        let writes = !prepared.read_only && (changes.concerns(prepared) || changes.has_new_sequence());
        let needs_group = prepared.groups.iter().any(|g| changes.new_groups().any(|d| d.id().0 == g.0));
        if !needs_group && (!writes || changes.ids_reserved) {
            if writes {
                changes.note_write(prepared);
            }
            return Ok(true);
        }
        let mut changes = changes.clone();
        let mut attempts = Attempts::default();
        loop {
            match self.reserve(&mut changes).await {
                Ok(()) => break,
                Err(e) if attempts.allow(&e) => {
                    attempts.pause(self.env.random(), &self.cancel).await?;
                    changes = self.made_anew(changes)?;
                }
                Err(e) => return Err(e),
            }
        }
        if writes {
            changes.note_write(prepared);
        }
        let block = self.block.as_mut().expect("an open block");
        block.catalog = Some(changes.catalog.clone());
        block.ddl = Some(changes);
        Ok(false)
    }

    /// A step that reserves the ids that the changes draw, makes the groups that they are the first
    /// to need, and changes nothing else. Of kind `Retry`, another change came first.
    async fn reserve(&mut self, changes: &mut DdlBlock) -> Result<()> {
        let mut step = CatalogChange {
            put: changes.new_groups().cloned().collect(),
            next_id: changes.catalog.next_id,
            ..CatalogChange::default()
        };
        let ids = (changes.first_id, step.next_id);
        let context = self.job_context(&changes.text());
        let hold = changes.hold.get_or_insert_with(|| {
            step.next_id += 1;
            jobs::Hold::new(DescriptorId(ids.1), &self.shared)
        });
        step.put.push(hold.record(&self.env, &changes.base, ids, &context)?);
        let base = match interruptible(&self.cancel, self.env.change_catalog(changes.base.version, step)).await {
            // Whether ids were reserved makes no difference to anybody.
            Err(e) if e.kind() == ErrorKind::Unknown => return Err(Error::unavailable(e.message().to_string())),
            stepped => stepped?,
        };
        let is_made = |d: &Descriptor| matches!(d, Descriptor::Group(_)) && base.descriptors.contains_key(&d.id());
        changes.change.put.retain(|d| !is_made(d));
        changes.catalog = Arc::new(base.with(&changes.change));
        changes.base = base;
        changes.ids_reserved = true;
        Ok(())
    }

    /// Another change came first.
    fn made_anew(&self, changes: DdlBlock) -> Result<DdlBlock> {
        match changes.writes {
            0 => self.derive_again(&changes),
            _ => rebase::rebase(changes, self.env.catalog()),
        }
    }

    /// Commits a block's schema changes as one step, together with its transaction if it is a mixed
    /// one.
    pub(super) async fn commit_ddl(&mut self, mut changes: DdlBlock, mut txn: Option<E::Txn>) -> Result<()> {
        if changes.is_empty() {
            return match txn {
                Some(txn) => txn.commit().await.map(drop),
                None => Ok(()),
            };
        }
        let context = self.job_context(&changes.text());
        let mut attempts = Attempts::default();
        loop {
            let mut change = changes.change.clone();
            change.delete.extend(changes.hold.as_ref().map(|hold| hold.id()));
            let step = Step {
                base: changes.base.clone(),
                change,
                jobs: changes.jobs.clone(),
                is_one_of_many: txn.is_some() || changes.writes > 0 || changes.statements.len() > 1,
            };
            let stale = match jobs::commit(&self.env, step, txn.as_mut(), &context).await {
                Ok(Committed::Done { .. }) => {
                    changes.statements.iter().for_each(|said| log_event(&said.statement, &said.eval, said.tag));
                    return Ok(());
                }
                Ok(Committed::Stale(e)) if attempts.allow(&e) => e,
                Ok(Committed::Stale(e)) | Err(e) => return Err(e),
            };
            tracing::debug!("the schema changes are made again: {stale}");
            attempts.pause(self.env.random(), &self.cancel).await?;
            changes = self.made_anew(changes)?;
        }
    }
}

/// Logs what an operator may ask about later, with the user who has logged in and the role that
/// acts.
pub(super) fn log_event(statement: &Statement, by: &EvalContext, tag: &str) {
    let Some(event) = statement.event() else { return };
    let (user, acting) = (&*by.session_user, &*by.user);
    let text = crate::shared::shown(&statement.text);
    tracing::info!(event, user, acting, statement = &*text, "{tag}");
}

/// What the client hears that stops waiting for a schema change. Once its first step was sent, the
/// outcome is unknown: the change goes on without its session.
pub(super) fn stopped(reason: Error, has_begun: bool) -> Error {
    let error = match has_begun {
        true => Error::unknown_outcome("the outcome of the schema change is unknown")
            .detail(format!("While it was under way: {}.", reason.message())),
        false => reason,
    };
    error.hint(
        "The schema change may go on without its session: look at the schema. What has to touch rows is in SHOW JOBS, and \
         CANCEL JOB takes it back.",
    )
}
