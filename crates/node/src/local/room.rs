//! Room on the disk: what is kept free, and who may use it.
//!
//! A full disk must not stop a node: clients have to read, and to delete what fills it. So a node
//! keeps room for its own work, in two parts. *Free space* that it only watches, and that nodes on
//! one machine may share, is for what was accepted already (a flush writes everything once more,
//! and so do compactions), for deletions, and for what the protocols log. A *reserve*, a file whose
//! blocks are taken, is for the case that other programs fill the disk: it gives its blocks back
//! bit by bit when the log needs them or there is next to nothing left, and takes them again when
//! there is room.
//!
//! | left | what goes on |
//! | --- | --- |
//! | [`Left::Plenty`] | everything |
//! | [`Left::Reserve`] | reads, transactions that only delete, schema changes, outcomes, leases, votes |
//! | [`Left::Nothing`] | the same without the deletions |
//!
//! A write is refused (53100) by the *gateway*, before anything of it is sent: so there is never a
//! doubt about what became of it. It knows from the group's primary, which says in its pings
//! whether it, or too many of the voters, have no room. A primary refuses nothing: what comes
//! within the second that the news takes has its place in the free space.
//!
//! Leadership moves away from a node without room ([`crate::membership::placement`]), so as long as
//! a quorum has room, writes go on there. A follower goes on with its reserve; when that is used up
//! its log waits (`raft::NodeLog::waits_for_room`), and the others go on without it.

use meridian_base::GroupId;
use meridian_base::runtime::{Runtime, Space};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub(crate) const RESERVE_FILE: &str = "reserve";
/// The reserve is given back in so many parts.
pub(crate) const PARTS: u64 = 4;
/// The free space that is kept, unless an option says otherwise: so much, and no more than a tenth
/// of the disk.
const KEPT_BYTES: u64 = 1 << 30;
const KEPT_SHARE: u64 = 10;

/// How much room a node keeps for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoomOptions {
    /// The file whose blocks are taken; at most a sixteenth of the disk.
    pub reserve_bytes: u64,
    /// Free space below which writes are refused. `None`: 1 GiB, or a tenth of a disk that is
    /// smaller than ten times that.
    pub kept_bytes: Option<u64>,
}

impl Default for RoomOptions {
    fn default() -> RoomOptions {
        RoomOptions { reserve_bytes: 32 << 20, kept_bytes: None }
    }
}

/// How much is left for transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Left {
    #[default]
    Plenty,
    Reserve,
    Nothing,
}

/// See the module's essay.
#[derive(Default)]
pub(crate) struct Room {
    pub left: Mutex<Left>,
    /// Free bytes, one more than that; 0 before the first look.
    free: AtomicU64,
    pub kept: AtomicU64,
    /// Groups that this node leads and that take no writes.
    pub groups: Mutex<BTreeMap<GroupId, Left>>,
    /// One of them, or of those that others lead.
    pub any: AtomicBool,
    /// A flush was due and did not fit.
    pub owes_flush: AtomicBool,
}

impl Room {
    pub fn left(&self) -> Left {
        *self.left.lock()
    }
    /// What pings say.
    pub fn groups(&self) -> Vec<(GroupId, Left)> {
        self.groups.lock().iter().map(|(group, left)| (*group, *left)).collect()
    }
    /// Whether the disk had room for `bytes` beyond the space kept for the node's own work when it
    /// was looked at last.
    pub fn admits(&self, bytes: u64) -> bool {
        let kept = self.kept.load(Ordering::Relaxed);
        self.seen().is_none_or(|free| free >= kept.saturating_add(bytes))
    }
    /// Notes how many bytes of the disk are free.
    pub fn saw(&self, free: u64) {
        self.free.store(free.saturating_add(1), Ordering::Relaxed);
    }
    /// Free bytes, as last seen.
    pub fn seen(&self) -> Option<u64> {
        self.free.load(Ordering::Relaxed).checked_sub(1)
    }
    /// Another node, or this one, has found that a group takes no writes.
    pub fn heard_of_one(&self) {
        self.any.store(true, Ordering::Release);
    }
    /// Free bytes, as last seen, and how many are kept.
    pub fn bytes(&self) -> (u64, u64) {
        (self.seen().unwrap_or_default(), self.kept.load(Ordering::Relaxed))
    }
}

pub(crate) fn kept(options: RoomOptions, space: Space) -> u64 {
    options.kept_bytes.unwrap_or(KEPT_BYTES.min(space.total / KEPT_SHARE))
}

/// Gives the reserve back if the disk has nothing else: a store that is opened may have to write.
pub(crate) fn before_start(runtime: &Arc<dyn Runtime>, options: RoomOptions) {
    let disk = runtime.disk();
    let is_full = disk.space().is_ok_and(|space| space.free < options.reserve_bytes);
    if is_full && let Ok(file) = disk.open(RESERVE_FILE, false) {
        // If it fails, so does what needs the room.
        let _ = file.set_len(0);
    }
}
