//! Planning a statement through the cache and running it in the open transaction.

use super::output::Output;
use super::settings::Values;
use super::system::{StatementSystem, refuse_in_read_only};
use super::{Formats, Session};
use crate::catalog::Catalog;
use crate::env::{Environment, Transaction, TxnOptions};
use crate::exec::{Affected, ExecOptions, Execution, Fetched, Nowhere, RowSink};
use crate::parse::Statement;
use crate::plan::{self, PlanContext, Prepared, Tag};
use crate::shared::plans::{Plan, PlanKey};
use crate::types::{Datum, EvalContext, RowView, Type};
use meridian_base::runtime::BoxFuture;
use meridian_base::{Error, ErrorKind, Result, Timestamp, limits};
use std::fmt::Write as _;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

/// What a transaction that may still fail tells its client is held back until it has committed;
/// more bytes than this and the statement fails instead.
pub(super) const HELD_BYTES_MAX: usize = limits::TXN_BYTES_MAX;

/// 53200: more than [`HELD_BYTES_MAX`].
pub(super) fn too_much_held() -> Error {
    let message = format!("the result of the statement is larger than the {} MiB that can be held back", HELD_BYTES_MAX >> 20);
    let hint = "A result that rests on writes, on several statements, or on rows of another region, is held back until it is \
                certified. Return fewer rows, use a transaction block, or read the past (AS OF SYSTEM TIME).";
    Error::sql("53200", message).hint(hint)
}

/// What is fetched of a statement's rows, and how.
#[derive(Clone, Copy)]
pub(super) struct Fetching<'a> {
    pub prepared: &'a Arc<Prepared>,
    /// `None`: all that are left.
    pub max_rows: Option<u64>,
    pub formats: &'a Formats,
    /// The statement is the whole transaction and neither writes nor locks.
    pub read_only: bool,
    /// When the statement started.
    pub now: u64,
}

impl<E: Environment> Session<E> {
    /// The plan of a statement, from the cache or made now. `text` and `types` are its key.
    pub(super) async fn plan(&mut self, statement: &Arc<Statement>, text: &str, types: &[u32]) -> Result<Plan> {
        let catalog = self.catalog();
        self.plan_in(&catalog, statement, text, types).await
    }
    /// The same in some catalog.
    pub(super) async fn plan_in(
        &mut self,
        catalog: &Arc<Catalog>,
        statement: &Arc<Statement>,
        text: &str,
        types: &[u32],
    ) -> Result<Plan> {
        // A plan does not say of which time it reads.
        let is_for_once = statement.as_of.is_some() || self.block.as_ref().is_some_and(|b| b.ddl.is_some());
        let key = PlanKey { text: text.to_string(), types: types.to_vec(), scope: self.scope };
        if !is_for_once && let Some(plan) = self.shared.plans.get(&key, catalog) {
            return Ok(plan);
        }
        let declared = declared_types(types)?;
        let prepared = self.prepare_aside(statement, catalog, &declared).await?;
        if prepared.has_choices() {
            self.shared.changes.ask(catalog, &prepared.descriptors);
        }
        let plan = Plan::new(Arc::new(prepared), catalog, &self.names);
        if !is_for_once {
            self.shared.plans.put(key, &plan);
        }
        Ok(plan)
    }
    /// Called before a statement runs: refuses what the block may not do.
    /// `false`: the block's catalog has changed, plan again.
    pub(super) async fn admit(&mut self, prepared: &Prepared) -> Result<bool> {
        self.refuse_write(prepared)?;
        let has_changes = self.block.as_ref().is_some_and(|b| b.ddl.is_some());
        if has_changes && !(prepared.groups.is_empty() && prepared.read_only) {
            return self.admit_to_ddl_block(prepared).await;
        }
        Ok(true)
    }
    /// Makes a plan that is not kept.
    pub(super) fn prepare(&mut self, statement: &Statement, catalog: &Arc<Catalog>, types: &[Option<Type>]) -> Result<Prepared> {
        self.eval.catalog = catalog.clone();
        let context = PlanContext { catalog, names: &self.names, eval: &self.eval };
        plan::prepare(statement, &context, types)
    }

    /// Runs a plan in the open transaction (opening an implicit one), its rows going to `out`.
    pub(super) async fn run_plan(&mut self, fetch: Fetching<'_>, params: &[Datum], out: &mut dyn Output) -> Result<Affected> {
        let execution = Execution::new(fetch.prepared.clone(), params.to_vec());
        match self.fetch(&mut Some(execution), fetch, Some(out)).await? {
            Fetched::Done(affected) => Ok(affected),
            Fetched::Suspended { rows } => Ok(Affected { rows }),
        }
    }
    /// Fetches rows of a statement, starting it or going on with it. Without an output they are
    /// passed over.
    pub(super) async fn fetch(
        &mut self,
        execution: &mut Option<Execution>,
        Fetching { prepared, max_rows, formats, read_only, now }: Fetching<'_>,
        out: Option<&mut dyn Output>,
    ) -> Result<Fetched> {
        let block = self.block(now);
        // What is fetched in parts is read in the block's transaction.
        block.is_mixed |= block.ddl.is_some() && max_rows.is_some() && !prepared.groups.is_empty();
        let is_alone = block.runs_ahead() && !prepared.groups.is_empty();
        self.refuse_write(prepared)?;
        let catalog = self.catalog();
        let rests_on = self.check_privileges(prepared, &catalog)?;
        self.eval.catalog = catalog.clone();
        // What is held back: everything of an implicit transaction that could still fail.
        let is_explicit = self.block.as_ref().is_some_and(|b| b.explicit);
        let reads_past = self.block.as_ref().is_some_and(|b| b.past.is_some());
        let is_speculative = !is_explicit && !reads_past && (!read_only || self.env.is_far(&prepared.groups));
        let block = self.begun(read_only, is_speculative);
        block.statements += 1;
        block.has_touched_rows |= !is_alone && !prepared.groups.is_empty();
        let mut alone = is_alone.then(|| self.transaction_of_its_own(&catalog));
        let round_trips_max = self.setting(|v| v.round_trips_max);
        let options = self.exec_options();
        let execution = execution.as_mut().expect("an execution");
        let block = self.block.as_mut().expect("an open transaction");
        let system = StatementSystem { env: &self.env, system: &*self.system, catalog: &catalog, names: &self.names };
        let context = system.exec(&self.eval, self.cancel.button(), &self.sequences, options);
        let mut rows = out.map(|out| Rows { out, formats, eval: &self.eval, is_speculative });
        let sink: &mut dyn RowSink = match &mut rows {
            Some(rows) => rows,
            None => &mut Nowhere,
        };
        let txn = match &mut alone {
            Some(txn) => txn,
            None => block.txn.as_mut().expect("a transaction below"),
        };
        txn.uses(&prepared.descriptors);
        txn.uses(&rests_on);
        let before = txn.round_trips().0;
        // Kilobytes of state, which stay where they are.
        let fetched = {
            let fetching = pin!(execution.fetch(txn, &context, max_rows, sink));
            interruptible(&self.cancel, fetching).await
        };
        let fetched = match fetched {
            Ok(fetched) => fetched,
            Err(e) => return Err(interruptible(&self.cancel, async { Ok(confirmed(e, txn).await) }).await.unwrap_or_else(|e| e)),
        };
        check_round_trips(before, txn, round_trips_max)?;
        if let (Some(table), Fetched::Done(affected)) = (prepared.changes, &fetched) {
            self.shared.changes.add(table, affected.rows);
        }
        let Some(txn) = alone else { return Ok(fetched) };
        if matches!(fetched, Fetched::Suspended { .. }) {
            let message = "a query that runs ahead of a transaction with schema changes cannot be fetched in parts";
            return Err(Error::unsupported(message));
        }
        Box::pin(commit(&self.cancel, txn)).await.map(|_| fetched)
    }
    /// How statements run now.
    pub(super) fn exec_options(&self) -> ExecOptions {
        let reads_past = self.block.as_ref().is_some_and(|b| b.past.is_some());
        let loads = self.block.as_ref().and_then(|b| b.loads);
        self.setting(|v| ExecOptions {
            is_home_enforced: v.enforce_home_region,
            is_near_first: v.is_near_first,
            reads_past,
            attempt: self.attempt,
            temporary_bytes_max: v.temporary_bytes_max,
            work_mem: v.work_mem,
            loads,
        })
    }
    /// A setting's present value. The lock is not held when it returns: two in one expression would
    /// wait for each other.
    pub(super) fn setting<T>(&self, of: impl FnOnce(&Values) -> T) -> T {
        of(self.system.settings().now())
    }
    /// A transaction for one statement of a block with schema changes.
    pub(super) fn transaction_of_its_own(&self, catalog: &Catalog) -> E::Txn {
        self.env.begin(TxnOptions {
            session: self.options.id,
            read_only: false,
            schema: catalog.seen,
            schema_committed_at: catalog.seen_at,
            lock_timeout: self.setting(|v| v.lock_timeout),
            deadlock_timeout: self.setting(|v| v.deadlock_timeout),
            attempt: self.attempt,
            as_of: None,
            is_held_back: false,
            is_block: false,
        })
    }
    fn refuse_write(&self, prepared: &Prepared) -> Result<()> {
        let is_read_only = self.block.as_ref().is_some_and(|b| b.read_only);
        if !is_read_only || prepared.read_only {
            return Ok(());
        }
        let what = match prepared.tag {
            Tag::Insert => "INSERT",
            Tag::Update => "UPDATE",
            Tag::Delete => "DELETE",
            Tag::Merge => "MERGE",
            Tag::Select => "SELECT FOR UPDATE or nextval()",
            Tag::Explain => "EXPLAIN ANALYZE",
        };
        refuse_in_read_only(true, what)
    }
}

/// 42899 if a statement takes more round trips between regions than the session allows.
pub(super) fn check_round_trips<T: Transaction>(before: u32, txn: &T, max: Option<u32>) -> Result<()> {
    let Some(max) = max else { return Ok(()) };
    let (made, to_commit) = txn.round_trips();
    let takes = made - before + to_commit;
    if takes <= max {
        return Ok(());
    }
    Err(Error::sql("42899", "the statement takes too many round trips between regions")
        .detail(format!("It takes {takes}, its commit included; max_cross_region_round_trips is {max}."))
        .hint("EXPLAIN shows which operators leave the region."))
}

/// An error that may be told: what it rests on was true, or the error is another one.
pub(super) async fn confirmed<T: Transaction>(error: Error, txn: &mut T) -> Error {
    match error.kind() {
        ErrorKind::Statement => txn.confirm().await.err().unwrap_or(error),
        _ => error,
    }
}

/// Runs until done or until the session's stop button is pressed.
pub(super) async fn interruptible<T>(cancel: &super::CancelHandle, work: impl Future<Output = Result<T>> + Send) -> Result<T> {
    tokio::select! {
        biased;
        result = work => result,
        error = cancel.interrupted() => Err(error),
    }
}

/// Commits. If the session's stop button is pressed meanwhile, the commit goes on by itself, since
/// it may be certified already, and its outcome is unknown; what has written nothing has no
/// outcome.
pub(super) async fn commit<T: Transaction + 'static>(cancel: &super::CancelHandle, txn: T) -> Result<Option<Timestamp>> {
    let has_writes = txn.has_writes();
    let mut committing = Box::pin(txn.commit());
    let reason = tokio::select! {
        biased;
        done = &mut committing => return done,
        reason = cancel.interrupted() => reason,
    };
    if !has_writes {
        return Err(reason);
    }
    tokio::spawn(async move { drop(committing.await) });
    Err(Error::unknown_outcome("the outcome of the commit is unknown")
        .detail(format!("While it was under way: {}.", reason.message()))
        .hint("Look at the data before running the transaction again."))
}

/// The types that the client declared for parameters, by OID.
pub(super) fn declared_types(oids: &[u32]) -> Result<Vec<Option<Type>>> {
    let of = |oid: &u32| match oid {
        0 | 705 => Ok(None),
        oid => Type::from_oid(*oid)
            .map(Some)
            .ok_or_else(|| Error::sql("42704", format!("type with OID {oid} does not exist or is not supported"))),
    };
    oids.iter().map(of).collect()
}

/// Encodes rows into the buffer of an output.
struct Rows<'a> {
    out: &'a mut dyn Output,
    formats: &'a Formats,
    eval: &'a EvalContext,
    is_speculative: bool,
}

impl RowSink for Rows<'_> {
    fn row(&mut self, row: &[Datum], types: &[Type]) -> Result<()> {
        let buffer = self.out.begin_row(row.len());
        for (i, (datum, ty)) in row.iter().zip(types).enumerate() {
            datum.write_field(ty, self.formats.of(i), self.eval, buffer);
        }
        self.out.end_row();
        Ok(())
    }
    fn stored(&mut self, row: &RowView, fields: &[(u32, Type)]) -> Result<()> {
        let buffer = self.out.begin_row(fields.len());
        for (i, (ordinal, ty)) in fields.iter().enumerate() {
            if let Err(e) = row.write_field(*ordinal as usize, ty, self.formats.of(i), self.eval, buffer) {
                self.out.cancel_row();
                return Err(e);
            }
        }
        self.out.end_row();
        Ok(())
    }
    fn is_full(&self) -> bool {
        self.out.buffered() > if self.is_speculative { HELD_BYTES_MAX } else { limits::RESULT_BUFFER_BYTES }
    }
    fn drain(&mut self) -> BoxFuture<'_, Result<()>> {
        if self.is_speculative {
            return Box::pin(async { Err(too_much_held()) });
        }
        self.out.flush()
    }
}

/// A command tag, without an allocation.
pub(super) struct TagText {
    bytes: [u8; 40],
    len: usize,
}

impl TagText {
    pub fn new(tag: Tag, rows: u64) -> TagText {
        let mut text = TagText { bytes: [0; 40], len: 0 };
        // The longest is «INSERT 0 18446744073709551615».
        let word = match tag {
            Tag::Select => "SELECT ",
            Tag::Insert => "INSERT 0 ",
            Tag::Update => "UPDATE ",
            Tag::Delete => "DELETE ",
            Tag::Merge => "MERGE ",
            Tag::Explain => "EXPLAIN",
        };
        let _ = match (tag, rows) {
            (Tag::Explain, _) => text.write_str(word),
            // Most statements are about one row.
            (_, 1) => text.write_str(word).and_then(|()| text.write_str("1")),
            _ => write!(text, "{word}{rows}"),
        };
        text
    }
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).expect("written as text")
    }
}

impl std::fmt::Write for TagText {
    fn write_str(&mut self, s: &str) -> std::fmt::Result {
        let end = self.len + s.len();
        self.bytes.get_mut(self.len..end).ok_or(std::fmt::Error)?.copy_from_slice(s.as_bytes());
        self.len = end;
        Ok(())
    }
}
