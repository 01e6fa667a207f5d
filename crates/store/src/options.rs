//! What a store is opened with.

use crate::memory::MemoryDisk;
use meridian_base::limits;
use std::path::PathBuf;

/// Where a node's versions are kept.
#[derive(Clone, Debug)]
pub enum Backend {
    /// A folder on disk. It is created if it is missing.
    Fjall {
        /// The folder; nothing else may live in it.
        path: PathBuf,
    },
    /// Memory that outlives the store object: the simulator's disk.
    Memory(MemoryDisk),
}

/// Budgets of one store. They are shared by all its groups.
#[derive(Clone, Debug)]
pub struct Options {
    /// Versions applied and not yet flushed. At half of it
    /// [`GroupStore::wants_flush`](crate::GroupStore::wants_flush) turns true, at all of it
    /// [`Store::over_budget`](crate::Store::over_budget) does and commits wait.
    pub dirty_bytes_max: usize,
    /// Rows kept in memory only because they may be read again.
    pub cache_bytes_max: usize,
    /// Blocks of the disk backend kept in memory.
    pub block_cache_bytes_max: usize,
    /// A flush of at least this many rows writes sorted files directly instead of going through the
    /// backend's journal.
    pub ingest_rows_min: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            dirty_bytes_max: limits::DIRTY_BYTES_MAX,
            cache_bytes_max: 256 << 20,
            block_cache_bytes_max: 64 << 20,
            ingest_rows_min: 4_096,
        }
    }
}
