//! What a node has by itself: its lock, tasks, counters and small files, the room on its disk, how
//! its times relate, and which old versions its transactions may still read.

pub(crate) mod lifecycle;
pub(crate) mod lock;
pub mod metrics;
pub(crate) mod protected;
pub mod room;
pub(crate) mod small_file;
pub(crate) mod tasks;
pub(crate) mod timing;
