//! The node's log: all groups in one sequence of segment files.

use meridian_base::runtime::Runtime;
use meridian_base::{Error, GroupId, Result};
use std::sync::Arc;
use tokio::sync::watch;

/// How a node's log is laid out.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// The size of a segment file; [`meridian_base::limits::LOG_SEGMENT_BYTES`] unless a test wants small ones.
    pub segment_bytes: u64,
    /// Recent entries that a group keeps in memory for its followers; older ones are read back from the files.
    pub cache_bytes_per_group: usize,
    /// Emptied segments kept for reuse; more are removed.
    pub spare_segments_max: usize,
}

impl Default for LogOptions {
    fn default() -> LogOptions {
        LogOptions {
            segment_bytes: meridian_base::limits::LOG_SEGMENT_BYTES,
            cache_bytes_per_group: 16 << 20,
            spare_segments_max: 2,
        }
    }
}

/// Numbers about a node's log, for metrics and tests. Counters start at zero when the log is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LogStatus {
    /// Segment files in use, the one being written included.
    pub segments: usize,
    /// Emptied segment files kept for reuse.
    pub spare_segments: usize,
    /// Bytes of frames written.
    pub bytes_written: u64,
    /// Frames written.
    pub frames_written: u64,
    /// `fdatasync` calls that completed.
    pub syncs: u64,
}

/// The log of all groups of a node, in the folder `log/` of its disk. Cheap to clone.
pub struct NodeLog<R: Runtime> {
    shared: Arc<R>,
}

impl<R: Runtime> Clone for NodeLog<R> {
    fn clone(&self) -> Self {
        NodeLog { shared: self.shared.clone() }
    }
}

impl<R: Runtime> NodeLog<R> {
    /// Opens the log, or makes an empty one. Reads and verifies every segment. What was being written when the node stopped
    /// (never acknowledged) is cut off, with a warning that names file and offset; damage before that, and a format newer than
    /// this program's, are refused with an [`meridian_base::ErrorKind::Fatal`] that names file and offset.
    pub async fn open(_runtime: R, _options: LogOptions) -> Result<NodeLog<R>> {
        unimplemented!()
    }
    /// Groups that have anything in this log, in order.
    pub fn groups(&self) -> Vec<GroupId> {
        unimplemented!()
    }
    /// Numbers for metrics and tests.
    pub fn status(&self) -> LogStatus {
        unimplemented!()
    }
    /// The error that ended writing, once there is one: a failed write or sync. From then on nothing is acknowledged; the node
    /// should stop. A failed `fdatasync` is never tried again, since the kernel may have dropped the dirty pages.
    pub fn failure(&self) -> watch::Receiver<Option<Error>> {
        unimplemented!()
    }
    /// Waits until all groups' queued frames are durable, then stops the writer. Later appends fail.
    pub async fn close(&self) {
        unimplemented!()
    }
}
