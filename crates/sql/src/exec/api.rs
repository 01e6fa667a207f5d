//! What a session gives a running statement, and what it gets from it.

use super::memory::MemoryPool;
use super::pace::Pace;
use crate::catalog::sequences::Sequences;
use crate::catalog::system::SystemContext;
use crate::catalog::{Catalog, Descriptor, Group, GroupKind};
use crate::env::Locking;
use crate::types::{Datum, EvalContext, RowView, Type};
use futures::future::BoxFuture;
use meridian_base::{DescriptorId, Error, GroupId, Result};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// What surrounds the run of one statement.
pub struct ExecContext<'a> {
    /// What functions see: time, settings, user, random numbers.
    pub eval: &'a EvalContext,
    /// The catalog the statement was planned with.
    pub catalog: &'a Arc<Catalog>,
    /// Looked at between batches.
    pub interrupt: &'a Interrupt,
    /// Where `nextval` and its relatives go.
    pub sequences: &'a dyn Sequences,
    /// What the rows of system tables are computed from.
    pub system: &'a dyn SystemContext,
    /// Bytes that sorts, hash tables and materialised results of one statement may hold; above it,
    /// 53200, or a temporary file.
    pub memory_bytes_max: usize,
    /// What all statements of the node may hold together.
    pub pool: &'a Arc<MemoryPool>,
    pub options: ExecOptions,
    /// How often it looks at the clock.
    pub pace: Pace,
}

/// What a session says about how its statements run.
#[derive(Clone, Copy, Debug)]
pub struct ExecOptions {
    /// `enforce_home_region`.
    pub is_home_enforced: bool,
    /// `locality_optimized_partitioned_index_scan`.
    pub is_near_first: bool,
    /// The transaction reads the past, which every replica has.
    pub reads_past: bool,
    /// How often the transaction was refused before.
    pub attempt: u32,
    /// `temp_file_limit`, in bytes.
    pub temporary_bytes_max: Option<u64>,
    /// `work_mem`, in bytes: operators that can do with less begin to once half of it is held.
    pub work_mem: usize,
    /// An `INSERT` into this table commits its rows ahead of its transaction.
    pub loads: Option<DescriptorId>,
}

impl Default for ExecOptions {
    fn default() -> ExecOptions {
        ExecOptions {
            is_home_enforced: false,
            is_near_first: true,
            reads_past: false,
            attempt: 0,
            temporary_bytes_max: None,
            work_mem: MEMORY_BYTES_MAX,
            loads: None,
        }
    }
}

impl ExecContext<'_> {
    /// Before reading: 42898 if one of the groups is homed in another region than the gateway's,
    /// and the session wants to stay there. GLOBAL rows are at home everywhere, for those who do
    /// not lock them.
    pub(crate) fn stay_home(&self, groups: impl Iterator<Item = GroupId>, locking: Locking) -> Result<()> {
        let here = &*self.eval.gateway_region;
        self.stay(groups, |g| {
            (g.kind == GroupKind::Global && locking == Locking::None) || (self.options.reads_past && g.has_replica_in(here))
        })
    }

    /// The same before writing: GLOBAL rows are written in the primary region.
    pub(crate) fn write_at_home(&self, group: GroupId) -> Result<()> {
        self.stay(std::iter::once(group), |_| false)
    }

    fn stay(&self, groups: impl Iterator<Item = GroupId>, is_here: impl Fn(&Group) -> bool) -> Result<()> {
        if !self.options.is_home_enforced {
            return Ok(());
        }
        let home = |id: GroupId| match self.catalog.descriptors.get(&DescriptorId(id.0)).map(|d| &**d) {
            Some(Descriptor::Group(g)) if !is_here(g) => Some(g.home.as_str()),
            _ => None,
        };
        let here = &*self.eval.gateway_region;
        let elsewhere: BTreeSet<&str> = groups.filter_map(home).filter(|h| *h != here).collect();
        let refused = || Error::sql("42898", "query is not running in its home region");
        match elsewhere.iter().collect::<Vec<_>>()[..] {
            [] => Ok(()),
            [there] => Err(refused()
                .detail(format!("It would read or write rows of region \"{there}\"; the gateway is in \"{here}\"."))
                .hint(format!(
                    "Run it from region \"{there}\", say which region's rows are meant, or SET enforce_home_region = off."
                ))),
            [..] => {
                let regions: Vec<String> = elsewhere.iter().map(|r| format!("\"{r}\"")).collect();
                Err(refused()
                    .detail(format!("It would look for rows in regions {}; the gateway is in \"{here}\".", regions.join(", ")))
                    .hint("Say which region's rows are meant, run it where they are at home, or SET enforce_home_region = off."))
            }
        }
    }
}

/// Default for [`ExecContext::memory_bytes_max`].
pub const MEMORY_BYTES_MAX: usize = 256 << 20;

/// A statement's stop button, shared with those who may press it.
#[derive(Debug, Default)]
pub struct Interrupt(AtomicU8);

impl Interrupt {
    const CANCELLED: u8 = 1;
    const TIMED_OUT: u8 = 2;
    const TERMINATED: u8 = 3;

    /// `pg_cancel_backend`, or a cancel request: 57014.
    pub fn cancel(&self) {
        self.0.store(Self::CANCELLED, Ordering::Release);
    }
    /// `statement_timeout`: 57014.
    pub fn time_out(&self) {
        self.0.store(Self::TIMED_OUT, Ordering::Release);
    }
    /// The node shuts down, or an administrator ends the session: 57P01.
    pub fn terminate(&self) {
        self.0.store(Self::TERMINATED, Ordering::Release);
    }
    /// Before the next statement.
    pub fn reset(&self) {
        self.0.store(0, Ordering::Release);
    }
    /// The error that ends the statement, if the button was pressed.
    pub fn check(&self) -> Result<()> {
        match self.0.load(Ordering::Acquire) {
            0 => Ok(()),
            Self::CANCELLED => Err(Error::sql("57014", "canceling statement due to user request")),
            Self::TIMED_OUT => Err(Error::sql("57014", "canceling statement due to statement timeout")),
            _ => Err(Error::sql("57P01", "terminating connection due to administrator command")),
        }
    }
}

/// Where result rows go. Not async by itself: the executor asks [`RowSink::is_full`] between rows
/// and then awaits [`RowSink::drain`], so that a row costs no future.
pub trait RowSink: Send {
    /// A row of datums, one per output column.
    fn row(&mut self, row: &[Datum], types: &[Type]) -> Result<()>;
    /// A row still as it was stored: which of its columns to show, in order.
    fn stored(&mut self, row: &RowView, fields: &[(u32, Type)]) -> Result<()>;
    /// Whether to wait for [`RowSink::drain`] before the next row.
    fn is_full(&self) -> bool;
    /// Waits until there is room.
    fn drain(&mut self) -> BoxFuture<'_, Result<()>>;
}

/// Takes rows and forgets them.
pub(crate) struct Nowhere;

impl RowSink for Nowhere {
    fn row(&mut self, _: &[Datum], _: &[Type]) -> Result<()> {
        Ok(())
    }
    fn stored(&mut self, _: &RowView, _: &[(u32, Type)]) -> Result<()> {
        Ok(())
    }
    fn is_full(&self) -> bool {
        false
    }
    fn drain(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// What came of a statement, for its command tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Affected {
    /// Rows returned by a query, or changed by DML.
    pub rows: u64,
}

/// What became of a fetch from an open [`super::Execution`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// The row limit was reached and there may be more (`PortalSuspended`).
    Suspended { rows: u64 },
    /// The statement is complete. `rows`: of this fetch, or changed by DML.
    Done(Affected),
}
