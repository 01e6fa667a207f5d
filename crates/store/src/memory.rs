//! The simulator's disk.

/// A disk in memory. Clones are the same disk; it outlives the stores opened on it.
#[derive(Clone, Debug, Default)]
pub struct MemoryDisk {}

impl MemoryDisk {
    /// An empty disk.
    pub fn new() -> MemoryDisk {
        MemoryDisk::default()
    }
    /// The node that used this disk died: what was written and not yet made durable is undone, except the first
    /// `writes_kept` writes, which happened to reach the platter. Stores opened before can no longer use the disk.
    pub fn crash(&self, _writes_kept: usize) {
        todo!()
    }
    /// The write after the next `writes` ones fails, and every one after it, until [`MemoryDisk::heal`]: a full disk.
    pub fn fail_writes_after(&self, _writes: u64) {
        todo!()
    }
    /// Every read fails until [`MemoryDisk::heal`]: a damaged block.
    pub fn fail_reads(&self) {
        todo!()
    }
    /// Ends the faults.
    pub fn heal(&self) {
        todo!()
    }
}
