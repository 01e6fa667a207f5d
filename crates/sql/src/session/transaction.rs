//! Transaction blocks: `BEGIN` to `COMMIT`, savepoints, and what a failed statement does to them
//! (PostgreSQL manual, 13.2, and the reference pages of the statements).

use super::as_of::Past;
use super::ddl::DdlBlock;
use super::extended::Named;
use super::output::Mark;
use super::run::interruptible;
use super::settings::SavedSettings;
use super::system::refuse_in_read_only;
use super::{Output, Session};
use crate::catalog::Catalog;
use crate::env::{Environment, Savepoint, Transaction, TxnOptions};
use crate::parse::{AsOfSystemTime, TransactionModes};
use crate::types::context::EPOCH_2000_UNIX_MICROS;
use meridian_base::{DescriptorId, Error, ErrorKind, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An open transaction.
pub(super) struct Block<T> {
    /// Begun by `BEGIN`, not by a statement of its own.
    pub explicit: bool,
    /// A statement failed: nothing but the end, or a savepoint, is accepted.
    pub failed: bool,
    /// The transaction below cannot go on, not even from a savepoint.
    is_dead: bool,
    /// Declared, or the only statement is a query.
    pub read_only: bool,
    /// Whether the transaction below began like that.
    is_below_read_only: bool,
    deferrable: bool,
    /// Its client has said `READ WRITE`.
    pub(super) is_to_write: bool,
    /// Begun at the first statement that needs it.
    pub txn: Option<T>,
    /// The catalog it works with, from its first statement on.
    pub catalog: Option<Arc<Catalog>>,
    /// It reads the past.
    pub past: Option<Past>,
    /// `now()`: microseconds since 1970.
    pub started_micros: u64,
    /// Queries and changes it ran; the modes are fixed from the first one on.
    pub statements: u32,
    /// Whether the transaction below read or wrote rows of tables, as opposed to system tables.
    pub has_touched_rows: bool,
    /// It changes the schema and also touches tables that others can see: both commit together (see
    /// [`super::ddl`]).
    pub is_mixed: bool,
    /// What its statement inserts into this table is committed ahead of it (see [`super::load`]).
    pub loads: Option<DescriptorId>,
    pub(super) savepoints: Vec<OpenSavepoint>,
    /// Its schema changes.
    pub ddl: Option<DdlBlock>,
}

/// What the open implicit transaction has told its client so far. It becomes true when the
/// transaction commits, and is taken back when it fails ([`Session::fail`]): rows and command tags
/// that come before an error count as true.
#[derive(Default)]
pub(super) struct Uncertified {
    /// Where that begins; `None` while no implicit transaction is open.
    from: Option<Mark>,
    /// What names stood for then, of those that `Parse` and `Close` messages have changed since.
    /// Their answers are taken back as well, so these messages must have had no effect.
    statements: BTreeMap<String, Option<Arc<Named>>>,
}

impl Uncertified {
    /// A name of a prepared statement gets another meaning.
    pub fn note_statement(&mut self, name: &str, before: Option<Arc<Named>>) {
        if self.from.is_some() {
            // A name may change its meaning with every message of a long pipeline.
            if !self.statements.contains_key(name) {
                self.statements.insert(name.to_string(), before);
            }
        }
    }
    /// The client has all of it: `Flush`.
    fn sent(&mut self) {
        self.statements.clear();
    }
}

pub(super) struct OpenSavepoint {
    name: String,
    /// `None`: the transaction below had not begun.
    place: Option<Savepoint>,
    settings: SavedSettings,
    ddl: Option<DdlBlock>,
    read_only: bool,
    /// How many portals the session had had.
    portals_made: u64,
}

impl<T: Transaction> Block<T> {
    /// Whether a statement that touches rows runs in a transaction of its own, ahead of `COMMIT`
    /// (see [`super::ddl`]).
    pub fn runs_ahead(&self) -> bool {
        self.ddl.is_some() && !self.is_mixed
    }
    fn new(explicit: bool, started_micros: u64) -> Block<T> {
        Block {
            explicit,
            failed: false,
            is_dead: false,
            read_only: false,
            is_below_read_only: false,
            deferrable: false,
            is_to_write: false,
            txn: None,
            catalog: None,
            past: None,
            started_micros,
            statements: 0,
            has_touched_rows: false,
            is_mixed: false,
            loads: None,
            savepoints: Vec::new(),
            ddl: None,
        }
    }
    fn apply_modes(&mut self, modes: &TransactionModes) -> Result<()> {
        if modes.read_only == Some(false) {
            match &self.past {
                Some(past) if past.clause.is_some() => return Err(super::as_of::refuse_read_write()),
                // The session's default is for transactions that are read-only.
                _ => self.past = None,
            }
        }
        self.is_to_write = modes.read_only.map_or(self.is_to_write, |read_only| !read_only);
        self.read_only = modes.read_only.unwrap_or(self.read_only);
        self.deferrable = modes.deferrable.unwrap_or(self.deferrable);
        Ok(())
    }
}

/// 25P02.
pub(super) fn aborted() -> Error {
    Error::sql("25P02", "current transaction is aborted, commands ignored until end of transaction block")
}

impl<E: Environment> Session<E> {
    /// The open transaction; an implicit one is opened if there is none.
    pub(super) fn block(&mut self, now_micros: u64) -> &mut Block<E::Txn> {
        if self.block.is_none() {
            let mut block = Block::new(false, now_micros);
            block.read_only = self.setting(|v| v.default_read_only);
            self.block = Some(block);
            self.uncertified = Uncertified { from: Some(self.statement_start), statements: BTreeMap::new() };
        }
        self.block.as_mut().expect("just opened")
    }
    /// The same with a transaction below it, and the catalog it works with.
    pub(super) fn begun(&mut self, read_only_statement: bool, is_held_back: bool) -> &mut Block<E::Txn> {
        let catalog = self.catalog();
        let (lock_timeout, deadlock_timeout) = {
            let settings = self.system.settings();
            (settings.now().lock_timeout, settings.now().deadlock_timeout)
        };
        let (session, attempt) = (self.options.id, self.attempt);
        let block = self.block.as_mut().expect("an open transaction");
        if block.txn.is_none() {
            block.is_below_read_only = block.read_only || read_only_statement;
            block.txn = Some(self.env.begin(TxnOptions {
                session,
                read_only: block.is_below_read_only,
                schema: catalog.seen,
                schema_committed_at: catalog.seen_at,
                lock_timeout,
                deadlock_timeout,
                attempt,
                as_of: block.past.as_ref().map(|past| past.as_of),
                is_held_back,
                is_block: block.explicit,
            }));
        }
        block
    }
    /// The catalog of the open transaction, or the newest one.
    pub(super) fn catalog(&mut self) -> Arc<Catalog> {
        match &mut self.block {
            Some(Block { past: Some(past), .. }) => past.catalog.clone(),
            Some(block) => block.catalog.get_or_insert_with(|| self.env.catalog()).clone(),
            None => self.env.catalog(),
        }
    }
    /// A new statement: fixes its times, reading the clock once, and the settings that decide what
    /// it means.
    pub(super) fn start_statement(&mut self) -> u64 {
        self.refresh();
        let now = self.env.now_micros();
        self.eval.statement_time = now as i64 - EPOCH_2000_UNIX_MICROS;
        let started = self.block.as_ref().map_or(now, |b| b.started_micros);
        self.eval.txn_time = started as i64 - EPOCH_2000_UNIX_MICROS;
        now
    }

    /// `BEGIN`.
    pub(super) fn begin(&mut self, modes: &TransactionModes, now: u64, out: &mut dyn Output) -> Result<()> {
        let already = self.block.as_ref().is_some_and(|b| b.explicit);
        if already {
            self.notice(out, "WARNING", "25001", "there is already a transaction in progress");
        }
        self.block(now);
        // What a block tells is known to be speculative until its `COMMIT`.
        self.uncertified = Uncertified::default();
        let block = self.block(now);
        block.explicit = true;
        if already && block.statements > 0 {
            return Ok(());
        }
        block.apply_modes(modes)
    }
    /// `SET TRANSACTION`.
    pub(super) fn set_transaction(&mut self, modes: &TransactionModes, out: &mut dyn Output) -> Result<()> {
        let Some(block) = self.block.as_mut().filter(|b| b.explicit) else {
            self.notice(out, "WARNING", "25P01", "SET TRANSACTION can only be used in transaction blocks");
            return Ok(());
        };
        if block.statements > 0 {
            if modes.isolation.is_some_and(|level| level != "serializable") {
                return Err(Error::sql("25001", "SET TRANSACTION ISOLATION LEVEL must be called before any query"));
            }
            if modes.read_only == Some(false) && block.read_only {
                return Err(Error::sql("25001", "transaction read-write mode must be set before any query"));
            }
        }
        block.apply_modes(modes)
    }
    /// `COMMIT`. Returns the command tag: a failed block is rolled back, and says so.
    pub(super) async fn commit(&mut self, chain: bool, out: &mut dyn Output) -> Result<&'static str> {
        let Some(block) = &self.block else {
            if chain {
                return Err(Error::sql("25P01", "COMMIT AND CHAIN can only be used in transaction blocks"));
            }
            self.notice(out, "WARNING", "25P01", "there is no transaction in progress");
            return Ok("COMMIT");
        };
        if !block.explicit {
            self.notice(out, "WARNING", "25P01", "there is no transaction in progress");
        }
        let next = chain.then(|| self.characteristics());
        let failed = block.failed;
        if failed {
            self.roll_back();
        } else {
            self.commit_block().await?;
        }
        self.chain(next).await?;
        Ok(if failed { "ROLLBACK" } else { "COMMIT" })
    }
    /// `ROLLBACK`.
    pub(super) async fn rollback(&mut self, chain: bool, out: &mut dyn Output) -> Result<()> {
        if !self.block.as_ref().is_some_and(|b| b.explicit) {
            if chain {
                return Err(Error::sql("25P01", "ROLLBACK AND CHAIN can only be used in transaction blocks"));
            }
            self.notice(out, "WARNING", "25P01", "there is no transaction in progress");
            // What the statements before it have told stays told.
            self.confirm_block().await?;
        }
        let next = chain.then(|| self.characteristics());
        self.roll_back();
        self.chain(next).await
    }
    /// What the next transaction of a chain has from this one: its modes, and which past it reads.
    fn characteristics(&self) -> (TransactionModes, Option<AsOfSystemTime>) {
        let Some(block) = &self.block else { return Default::default() };
        let modes = TransactionModes { isolation: None, read_only: Some(block.read_only), deferrable: Some(block.deferrable) };
        (modes, block.past.as_ref().and_then(|past| past.clause.clone()))
    }
    /// Begins the next transaction of a chain, as a `BEGIN` that says the same would.
    async fn chain(&mut self, next: Option<(TransactionModes, Option<AsOfSystemTime>)>) -> Result<()> {
        let Some((modes, clause)) = next else { return Ok(()) };
        let now = self.env.now_micros();
        let mut block = Block::new(true, now);
        block.apply_modes(&modes)?;
        if let Some(clause) = clause {
            block.past = Some(self.past_of(&clause, now).await?);
        }
        self.block = Some(block);
        Ok(())
    }

    /// Commits the open transaction, whatever it consists of. Afterwards there is none, even after
    /// an error.
    pub(super) async fn commit_block(&mut self) -> Result<()> {
        let Some(mut block) = self.block.take() else { return Ok(()) };
        let result = match (block.txn.take(), block.ddl.take()) {
            // One that is not mixed has read system tables at most.
            (txn, Some(ddl)) => {
                let cancel = self.cancel.clone();
                tokio::select! {
                    biased;
                    done = self.commit_ddl(ddl, txn.filter(|_| block.is_mixed)) => done,
                    reason = cancel.interrupted() => Err(super::ddl::stopped(reason, true)),
                }
            }
            (Some(txn), None) => super::run::commit(&self.cancel, txn).await.map(drop),
            (None, None) => Ok(()),
        };
        match &result {
            Ok(()) => {
                self.uncertified = Uncertified::default();
                self.system.settings().commit();
            }
            // What it has told is taken back by `fail`.
            Err(_) => self.system.settings().rollback(),
        }
        self.end_portals();
        result
    }
    /// Certifies what the open transaction has read so far.
    async fn confirm_block(&mut self) -> Result<()> {
        let Some(txn) = self.block.as_mut().and_then(|b| b.txn.as_mut()) else { return Ok(()) };
        interruptible(&self.cancel, txn.confirm()).await
    }
    /// Whether there is output that the open implicit transaction may have to take back.
    pub(super) fn has_uncertified(&self, out: &dyn Output) -> bool {
        self.uncertified.from.is_some_and(|from| out.mark() != from)
    }
    /// Whether what is buffered may be sent before the client asks for it. 53200 if it may not, and
    /// is too much to keep.
    pub fn may_send(&self, out: &dyn Output) -> Result<bool> {
        match self.has_uncertified(out) {
            false => Ok(true),
            true if out.buffered() > super::run::HELD_BYTES_MAX => Err(super::run::too_much_held()),
            true => Ok(false),
        }
    }
    /// `Flush`: what an implicit transaction has told so far is about to be sent, and cannot be
    /// taken back afterwards. What it has read is certified before that; its writes are its
    /// client's own, who knows that it has not sent `Sync` yet.
    pub async fn before_flush(&mut self, out: &mut dyn Output) -> Result<()> {
        if self.has_uncertified(out)
            && let Err(e) = self.confirm_block().await
        {
            self.fail(&e, out);
            return Err(crate::shared::retry::final_error(e));
        }
        self.uncertified.sent();
        Ok(())
    }
    /// The connection ends, whatever the reason: the open transaction comes to nothing, and so does
    /// what it has told.
    pub fn end(&mut self, error: &Error, out: &mut dyn Output) {
        self.fail(error, out);
        self.roll_back();
    }
    /// Forgets the open transaction.
    pub(super) fn roll_back(&mut self) {
        if let Some(mut block) = self.block.take()
            && let Some(txn) = block.txn.take()
        {
            txn.rollback();
        }
        self.uncertified = Uncertified::default();
        self.system.settings().rollback();
        self.end_portals();
    }
    /// A statement, or a message of the extended protocol, failed: what becomes of the transaction.
    /// Everything that an implicit one has told is taken back, except for what was sent: a result
    /// that was certified while it was read, or what a `Flush` asked for.
    pub fn fail(&mut self, error: &Error, out: &mut dyn Output) {
        let untrue = std::mem::take(&mut self.uncertified);
        if let Some(from) = untrue.from {
            out.rewind(from);
            for (name, before) in untrue.statements {
                match before {
                    Some(named) => self.statements.insert(name, named),
                    None => self.statements.remove(&name),
                };
            }
        }
        match &mut self.block {
            Some(block) if block.explicit => {
                block.failed = true;
                let over = matches!(error.kind(), ErrorKind::Retry | ErrorKind::Unknown | ErrorKind::Fatal);
                block.is_dead |= over;
                if block.is_dead || block.savepoints.is_empty() {
                    block.is_dead = true;
                    if let Some(txn) = block.txn.take() {
                        txn.rollback();
                    }
                }
            }
            Some(_) => self.roll_back(),
            None => {}
        }
    }
    /// Refuses a statement that is not allowed in a failed block.
    pub(super) fn refuse_if_failed(&self) -> Result<()> {
        match &self.block {
            Some(block) if block.failed => Err(aborted()),
            _ => Ok(()),
        }
    }
    /// Refuses what changes something in a read-only transaction.
    pub(super) fn refuse_if_read_only(&self, what: &str) -> Result<()> {
        let default = || self.setting(|v| v.default_read_only);
        refuse_in_read_only(self.block.as_ref().map_or_else(default, |b| b.read_only), what)
    }
    /// Refuses what PostgreSQL refuses inside a block.
    pub(super) fn refuse_in_block(&self, what: &str) -> Result<()> {
        match &self.block {
            Some(block) if block.explicit => Err(Error::sql("25001", format!("{what} cannot run inside a transaction block"))),
            _ => Ok(()),
        }
    }

    /// `SAVEPOINT`.
    pub(super) fn savepoint(&mut self, name: &str) -> Result<()> {
        let settings = self.system.settings().save();
        let portals_made = self.portals_made;
        let block = self.explicit_block("SAVEPOINT")?;
        let place = block.txn.as_mut().map(|txn| txn.savepoint());
        let ddl = block.ddl.clone();
        let read_only = block.read_only;
        block.savepoints.push(OpenSavepoint { name: name.to_string(), place, settings, ddl, read_only, portals_made });
        Ok(())
    }
    /// `RELEASE SAVEPOINT`: forgets it and those after it.
    pub(super) fn release(&mut self, name: &str) -> Result<()> {
        let block = self.explicit_block("RELEASE SAVEPOINT")?;
        let at = block.find(name)?;
        block.savepoints.truncate(at);
        Ok(())
    }
    /// `ROLLBACK TO SAVEPOINT`: the savepoint itself stays.
    pub(super) fn rollback_to(&mut self, name: &str) -> Result<()> {
        let block = self.explicit_block("ROLLBACK TO SAVEPOINT")?;
        let at = block.find(name)?;
        if block.is_dead {
            let hint = "Roll the whole transaction back and run it again.";
            return Err(Error::sql("40001", "the transaction cannot go on from a savepoint").hint(hint));
        }
        block.savepoints.truncate(at + 1);
        let savepoint = &block.savepoints[at];
        match (block.txn.as_mut(), savepoint.place) {
            (Some(txn), Some(place)) => txn.rollback_to(place),
            // What was read stays read; writes since then are all its writes.
            (Some(txn), None) => txn.rollback_to(Savepoint::default()),
            (None, _) => {}
        }
        // A transaction below that began to read only cannot begin to write.
        block.read_only = savepoint.read_only || (block.txn.is_some() && block.is_below_read_only);
        let undone = std::mem::replace(&mut block.ddl, savepoint.ddl.clone());
        block.catalog = match (&block.ddl, undone) {
            (Some(ddl), _) => Some(ddl.catalog.clone()),
            (None, _) if block.txn.is_none() => None,
            (None, Some(undone)) => Some(undone.base().clone()),
            (None, None) => block.catalog.take(),
        };
        block.failed = false;
        let (saved, portals_made) = (savepoint.settings.clone(), savepoint.portals_made);
        self.system.settings().restore(&saved);
        self.portals.retain(|_, portal| portal.number <= portals_made);
        Ok(())
    }
    fn explicit_block(&mut self, what: &str) -> Result<&mut Block<E::Txn>> {
        match &mut self.block {
            Some(block) if block.explicit => Ok(block),
            _ => Err(Error::sql("25P01", format!("{what} can only be used in transaction blocks"))),
        }
    }
}

impl<T> Block<T> {
    /// The newest savepoint of a name.
    fn find(&self, name: &str) -> Result<usize> {
        let missing = || Error::sql("3B001", format!("savepoint \"{name}\" does not exist"));
        self.savepoints.iter().rposition(|s| s.name == name).ok_or_else(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_name_stood_for_is_kept_once_however_often_it_changes() {
        let named = || {
            let statement = Arc::new(crate::parse::parse_one_statement("SELECT 1").unwrap());
            Arc::new(Named::new(statement, Vec::new(), None))
        };
        let first = named();
        let mut told = Uncertified { from: Some(Mark::default()), ..Uncertified::default() };
        told.note_statement("", Some(first.clone()));
        for _ in 0..1_000 {
            told.note_statement("", Some(named()));
        }
        told.note_statement("new", None);
        assert_eq!(told.statements.len(), 2);
        assert!(told.statements[""].as_ref().is_some_and(|kept| Arc::ptr_eq(kept, &first)));
    }
}
