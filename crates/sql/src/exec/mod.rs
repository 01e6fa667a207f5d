//! Runs plans.
//!
//! Operators are pulled: [`op::Op::next`] gives the next rows, and its caller says how many are
//! still wanted, so that a scan below a `LIMIT` reads no more than that, and what is certified
//! later is no more than that either. An operator holds no reference to its plan or its
//! transaction, so that a portal can keep one between two `Execute` messages.

mod aggregate;
mod ahead;
mod api;
pub(crate) mod batch;
mod build;
mod cascade;
mod coming;
mod compared;
mod distinct;
mod dml;
pub(crate) mod entries;
mod escrow;
mod eval;
mod explain;
mod fast;
mod first;
mod gradual;
pub(crate) mod groups;
mod infer;
mod join;
mod key_parts;
mod lock_rows;
pub(crate) mod memory;
mod numbers;
mod op;
mod pace;
mod pages;
mod parents;
mod prefetch;
mod regions;
mod scan;
mod sequence;
mod sets;
mod sieve;
mod skip;
mod sort;
mod spill;
mod subquery;
#[cfg(test)]
mod tests;
mod window;
mod write;

pub use api::*;
pub use build::IndexEntries;
pub(crate) use build::is_built_by_replicas;
pub use entries::{Entry, split_entry};
pub use pace::Pace;
pub(crate) use write::contains_nulls;

use crate::env::Transaction;
use crate::plan::eval::Memo;
use crate::plan::expr::Expr;
use crate::plan::node::Scalar;
use crate::plan::{Plan, Prepared, TablePlan, Tag};
use crate::types::compare::Exact;
use crate::types::{Datum, Type};
use eval::{Kept, Row};
use memory::Taken;
use meridian_base::{Error, Result, migration};
use op::Op;
use spill::list::List;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Rows handled at a time.
pub(crate) const BATCH: usize = 256;
/// A batch of computed rows ends early when its values have this many bytes.
pub(crate) const BATCH_BYTES: usize = 1 << 20;
/// A statement yields to the other sessions of its thread after this many microseconds.
const TURN_MICROS: u64 = 500;
/// And after so many looks at the clock, whatever it says: a simulated one stands still while
/// something is computed.
const LOOKS: u32 = 64;
/// A statement that has used so much goes on where it keeps no other session waiting.
const LONG_MICROS: u64 = 5_000;

/// What operators share while a statement runs.
pub(crate) struct Runtime<'r, T> {
    pub(crate) txn: &'r mut T,
    pub(crate) ctx: &'r ExecContext<'r>,
    pub(crate) params: &'r [Datum],
    pub(crate) shared: &'r mut Shared,
}

/// What outlives a fetch.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) memo: Memo,
    pub(crate) work_tables: BTreeMap<u32, Arc<Kept>>,
    ctes: HashMap<(u32, Exact), Arc<List>>,
    /// Bytes that operators hold.
    pub(crate) memory: usize,
    /// Bytes of results that are kept for whoever asks again.
    pub(crate) lasting: usize,
    /// What was taken for them from all statements' memory.
    taken: Taken,
    /// Rows and microseconds by node, for `EXPLAIN ANALYZE`.
    pub(crate) stats: Option<BTreeMap<usize, Stat>>,
    /// Rows changed by DML.
    pub(crate) changed: u64,
    /// Counts towards the next look at the clock, and the looks since this statement's turn began.
    steps: u32,
    looks: u32,
    /// When its turn began; 0 before the first look.
    since: u64,
    /// The last look.
    looked: u64,
    /// How long its turns took, waits included.
    used: u64,
}

impl Shared {
    /// Results of subqueries do not count any more.
    pub(crate) fn forget_subqueries(&mut self) {
        self.memo.subqueries.clear();
        self.memo.size = 0;
        self.lasting -= std::mem::take(&mut self.memo.bytes);
    }
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Stat {
    pub(crate) rows: u64,
    pub(crate) micros: u64,
    pub(crate) loops: u64,
    /// Bytes in temporary files.
    pub(crate) disk: u64,
    /// How many pieces of it were read at once.
    pub(crate) pieces: u64,
}

impl<T: Transaction> Runtime<'_, T> {
    /// Ends an interrupted statement, and lets the other sessions of the thread have it if this one
    /// has had it for long: a statement over data that is at hand never waits for anything.
    pub(crate) async fn pause(&mut self) -> Result<()> {
        self.ctx.interrupt.check()?;
        let shared = &mut *self.shared;
        shared.looks += 1;
        let now = self.ctx.system.now_micros();
        if shared.since == 0 {
            (shared.since, shared.looked) = (now, now);
        }
        let steps = std::mem::take(&mut shared.steps);
        if steps > 0 {
            self.ctx.pace.took(steps, now.saturating_sub(shared.looked));
        }
        shared.looked = now;
        // A clock that was set back says nothing.
        let is_over = now.checked_sub(shared.since).is_none_or(|had| had >= TURN_MICROS);
        if is_over || shared.looks >= LOOKS {
            shared.used += now.saturating_sub(shared.since);
            if shared.used >= LONG_MICROS {
                migration::computes_long();
            }
            tokio::task::yield_now().await;
            shared.looks = 0;
            shared.since = self.ctx.system.now_micros();
            shared.looked = shared.since;
            self.ctx.interrupt.check()?;
        }
        Ok(())
    }
    /// For every small step of what may be many: now and then a [`Runtime::pause`].
    #[inline]
    pub(crate) async fn step(&mut self) -> Result<()> {
        self.shared.steps += 1;
        if self.shared.steps >= self.ctx.pace.steps() { self.pause().await } else { Ok(()) }
    }
    /// Computes for long where it keeps no other session waiting.
    async fn aside<V: Send + 'static>(&mut self, work: impl FnOnce() -> V + Send + 'static) -> Result<V> {
        let (done, result) = tokio::sync::oneshot::channel();
        self.ctx.system.compute(Box::new(move || drop(done.send(work())))).await;
        result.await.map_err(|_| Error::internal("a computation was lost"))
    }
    /// For `EXPLAIN ANALYZE`: an operator has worked since `start`. `is_new`: for the first time,
    /// or again from its beginning.
    fn note(&mut self, node: &Arc<crate::plan::node::Node>, start: u64, is_new: bool, rows: usize) {
        let micros = self.ctx.system.now_micros().saturating_sub(start);
        if let Some(stats) = &mut self.shared.stats {
            let stat = stats.entry(Arc::as_ptr(node) as usize).or_default();
            stat.micros += micros;
            stat.loops += u64::from(is_new);
            stat.rows += rows as u64;
        }
    }
    /// For `EXPLAIN ANALYZE`: an operator has written `bytes` to temporary files.
    fn note_disk(&mut self, node: &Arc<crate::plan::node::Node>, bytes: u64) {
        if let Some(stats) = &mut self.shared.stats {
            stats.entry(Arc::as_ptr(node) as usize).or_default().disk += bytes;
        }
    }
    /// For `EXPLAIN ANALYZE`: so many pieces of a scan are read at once.
    fn note_pieces(&mut self, node: &Arc<crate::plan::node::Node>, pieces: usize) {
        if let Some(stats) = &mut self.shared.stats {
            stats.entry(Arc::as_ptr(node) as usize).or_default().pieces = pieces as u64;
        }
    }
    /// What the statement holds.
    fn held(&self) -> usize {
        self.shared.memory + self.shared.lasting
    }
    /// Accounts for rows that are kept: for so many bytes, or 53200.
    pub(crate) fn keep(&mut self, rows: &[Row]) -> Result<usize> {
        let bytes: usize = rows.iter().map(|row| size_of_row(row)).sum();
        self.hold(bytes)?;
        Ok(bytes)
    }
    /// The same for a single value.
    pub(crate) fn keep_value(&mut self, value: &Datum) -> Result<()> {
        self.hold(size(value))
    }
    /// Accounts for a key that is kept beside its row: the values that were computed for it. A
    /// column's value shares the row's.
    pub(crate) fn keep_key<'s>(&mut self, key: &[Datum], exprs: impl IntoIterator<Item = &'s Scalar>) -> Result<usize> {
        let is_computed = |e: &Scalar| !matches!(e.expr, Expr::Slot(_) | Expr::Arg(_) | Expr::Const(_) | Expr::Param(_));
        let bytes = key.iter().zip(exprs).filter(|(_, e)| is_computed(e)).map(|(value, _)| size(value)).sum();
        self.hold(bytes)?;
        Ok(bytes)
    }
    /// What the statement may hold before operators that can do with less begin to.
    fn most(&self) -> usize {
        self.ctx.memory_bytes_max.min(self.ctx.options.work_mem).min(self.ctx.pool.share())
    }
    /// What one of the pieces takes in memory in which a statement does its work that has no room
    /// for all of it: an eighth of what it may hold; and more where `work_mem` is so small that it
    /// would be busy with the disk alone.
    fn piece(&self) -> usize {
        (self.most() / 8).max(self.ctx.memory_bytes_max / 64)
    }
    /// Accounts for so many bytes, or 53200.
    fn hold(&mut self, bytes: usize) -> Result<()> {
        self.shared.memory += bytes;
        let held = self.held();
        self.shared.taken.cover(held, self.ctx.pool)?;
        if held > self.ctx.memory_bytes_max {
            return Err(Error::sql("53200", "out of memory")
                .detail(format!("The statement would hold more than {} MiB at once.", self.ctx.memory_bytes_max >> 20))
                .hint("Read fewer rows at a time, or let an index give the order."));
        }
        Ok(())
    }
}

/// Of any value.
const INLINE: usize = std::mem::size_of::<Datum>();

/// What is accounted for a row.
fn size_of_row(row: &[Datum]) -> usize {
    size_of::<Row>() + row.iter().map(size).sum::<usize>()
}

pub(crate) fn size(d: &Datum) -> usize {
    INLINE
        + match d {
            Datum::Text(t) => t.as_bytes().len(),
            Datum::Bytea(b) => b.len(),
            Datum::Array(a) => a.items.iter().map(size).sum(),
            Datum::Record(r) => r.values.iter().map(size).sum(),
            Datum::Jsonb(j) => j.heap_bytes(),
            Datum::Numeric(n) => n.heap_bytes(),
            _ => 0,
        }
}

/// Runs a statement to its end. `params` are of the types [`Prepared::params`].
pub async fn run<T: Transaction>(
    prepared: &Arc<Prepared>,
    params: &[Datum],
    txn: &mut T,
    ctx: &ExecContext<'_>,
    sink: &mut dyn RowSink,
) -> Result<Affected> {
    if let Plan::Fast(fast) = &prepared.plan {
        txn.uses(&prepared.descriptors);
        return fast::run(fast, params, txn, ctx, sink).await;
    }
    let mut execution = Execution::new(prepared.clone(), params.to_vec());
    match execution.fetch(txn, ctx, None, sink).await? {
        Fetched::Done(affected) => Ok(affected),
        Fetched::Suspended { .. } => Err(Error::internal("a fetch without limit was suspended")),
    }
}

/// Inserts many rows through a plan of [`crate::plan::prepare_insert`]; returns how many.
pub async fn insert_rows<T: Transaction>(
    prepared: &Arc<Prepared>,
    rows: Vec<Vec<Datum>>,
    txn: &mut T,
    ctx: &ExecContext<'_>,
) -> Result<u64> {
    use crate::plan::node::Node;
    txn.uses(&prepared.descriptors);
    let node = match &prepared.plan {
        Plan::General(node) => node,
        Plan::Fast(fast) => &fast.node,
        Plan::Explain { .. } => return Err(Error::internal("not a plan of an INSERT")),
    };
    let Node::Dml(dml) = &**node else { return Err(Error::internal("not a plan of an INSERT")) };
    let mut shared = Shared::default();
    dml::insert_params(dml, rows, &mut Runtime { txn, ctx, params: &[], shared: &mut shared }).await
}

/// What a job does with rows that are there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RowWork<'a> {
    /// Gives them the values of these columns, which are being added.
    Fill { ordinals: &'a [u32] },
    /// Takes their tokens to the bounds of an escrow column, named by its index.
    Settle { index: u32 },
    /// Writes their shares where they have none yet, of a column that becomes an escrow column.
    Split { index: u32 },
    /// Writes the numbers of a column that ceases to be an escrow column into them.
    Store { index: u32 },
}

/// Works on rows in a transaction. `to_write`: changes of their numbers by others wait.
pub(crate) async fn work_on_rows<T: Transaction>(
    plan: &TablePlan,
    work: RowWork<'_>,
    rows: &[Vec<Datum>],
    to_write: bool,
    txn: &mut T,
    ctx: &ExecContext<'_>,
) -> Result<()> {
    let mut shared = Shared::default();
    let mut rt = Runtime { txn, ctx, params: &[], shared: &mut shared };
    match work {
        RowWork::Fill { .. } => {
            for row in rows {
                rt.pause().await?;
                write::fill(plan, row, &mut rt).await?;
            }
            Ok(())
        }
        RowWork::Settle { index } => escrow::settle(plan, index, rows, to_write, &mut rt).await,
        RowWork::Split { index } => escrow::split::split(plan, index, rows, &mut rt).await,
        RowWork::Store { index } => escrow::split::store(plan, index, rows, to_write, &mut rt).await,
    }
}

/// A statement being run: a portal or a cursor holds one and fetches from it.
pub struct Execution {
    prepared: Arc<Prepared>,
    params: Vec<Datum>,
    /// Of operators; a point statement has none.
    running: Option<Box<Running>>,
    is_done: bool,
}

struct Running {
    shared: Shared,
    op: Option<Op>,
    /// Rows computed and not yet sent.
    ahead: std::collections::VecDeque<Row>,
}

impl Running {
    fn new() -> Box<Running> {
        let shared = Shared { memo: Memo::of_execution(), ..Shared::default() };
        Box::new(Running { shared, op: None, ahead: Default::default() })
    }
}

impl Execution {
    /// Ready to start; nothing is read yet.
    pub fn new(prepared: Arc<Prepared>, params: Vec<Datum>) -> Execution {
        Execution { prepared, params, running: None, is_done: false }
    }
    /// The statement.
    pub fn prepared(&self) -> &Arc<Prepared> {
        &self.prepared
    }
    /// Counts rows and time by node from here on.
    fn measure(&mut self) {
        self.running.get_or_insert_with(Running::new).shared.stats = Some(BTreeMap::new());
    }
    fn measured(&mut self) -> BTreeMap<usize, Stat> {
        self.running.as_mut().and_then(|running| running.shared.stats.take()).unwrap_or_default()
    }
    /// Sends up to `max_rows` rows (all, if `None`) to the sink. DML always runs to its end first.
    pub async fn fetch<T: Transaction>(
        &mut self,
        txn: &mut T,
        ctx: &ExecContext<'_>,
        max_rows: Option<u64>,
        sink: &mut dyn RowSink,
    ) -> Result<Fetched> {
        txn.uses(&self.prepared.descriptors);
        if let (Plan::Fast(fast), None, false, None | Some(2..)) = (&self.prepared.plan, &self.running, self.is_done, max_rows) {
            // One row at most: nothing is left to fetch.
            self.is_done = true;
            return fast::run(fast, &self.params, txn, ctx, sink).await.map(Fetched::Done);
        }
        let prepared = self.prepared.clone();
        let types: Vec<Type> = prepared.columns.iter().map(|c| c.ty.clone()).collect();
        let max = max_rows.unwrap_or(u64::MAX);
        let mut sent = 0u64;
        loop {
            let running = self.running.get_or_insert_with(Running::new);
            while let Some(row) = running.ahead.front() {
                if sent == max {
                    return Ok(Fetched::Suspended { rows: sent });
                }
                if prepared.returns_rows() {
                    sink.row(row, &types)?;
                }
                running.ahead.pop_front();
                sent += 1;
                if sink.is_full() {
                    sink.drain().await?;
                }
            }
            if self.is_done {
                let is_change = matches!(prepared.tag, Tag::Insert | Tag::Update | Tag::Delete | Tag::Merge);
                let rows = if is_change { running.shared.changed } else { sent };
                return Ok(Fetched::Done(Affected { rows }));
            }
            if sent == max && max > 0 {
                // Whether there is more is not known; PostgreSQL, too, suspends a portal at its
                // limit.
                return Ok(Fetched::Suspended { rows: sent });
            }
            let want = usize::try_from(max - sent).unwrap_or(usize::MAX);
            // On the heap, once for a batch: the state of all operators would make that of a point
            // statement larger.
            self.is_done = Box::pin(running.produce(&prepared, &self.params, txn, ctx, want)).await?;
        }
    }
}

impl Running {
    /// Computes more rows; `true` after the last.
    async fn produce<T: Transaction>(
        &mut self,
        prepared: &Prepared,
        params: &[Datum],
        txn: &mut T,
        ctx: &ExecContext<'_>,
        want: usize,
    ) -> Result<bool> {
        ctx.interrupt.check()?;
        let node = match &prepared.plan {
            Plan::General(node) => node.clone(),
            Plan::Fast(fast) => fast.node.clone(),
            Plan::Explain { inner, shown } => {
                let lines = explain::explain(inner, *shown, params, txn, ctx).await?;
                self.ahead.extend(lines.into_iter().map(|l| vec![Datum::Text(l.into())]));
                return Ok(true);
            }
        };
        let op = self.op.get_or_insert_with(|| Op::new(&node, &Arc::from([])));
        let mut rt = Runtime { txn, ctx, params, shared: &mut self.shared };
        let rows = op.next(&mut rt, want).await?;
        let is_done = rows.is_none();
        self.ahead.extend(rows.unwrap_or_default());
        Ok(is_done)
    }
}
