//! Room on the disk: what is kept free, and who may use it.
//!
//! A full disk must not stop a node: somebody has to read, and to delete what fills it. So a node
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
//! Leadership moves away from a node without room ([`crate::membership::members`]), so as long as a quorum has
//! room, writes go on there. A follower goes on with its reserve; when that is used up its log
//! waits (`raft::NodeLog::waits_for_room`), and the others go on without it.

use crate::membership::shared::{Route, Shared};
use crate::replica::Replica;
use meridian_base::runtime::{Runtime, Space};
use meridian_base::{Error, GroupId, NodeId};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// How often a node looks at its disk.
const INTERVAL: Duration = Duration::from_millis(250);
/// How often while its log waits for room, or while there is little left: what is accepted between
/// two looks has to fit into what is kept.
const HASTE: Duration = Duration::from_millis(50);
const RESERVE_FILE: &str = "reserve";
/// The reserve is given back in so many parts.
const PARTS: u64 = 4;
/// The free space that is kept, unless an option says otherwise: so much, and no more than a tenth
/// of the disk.
const KEPT_BYTES: u64 = 1 << 30;
const KEPT_SHARE: u64 = 10;

/// More than the records and lists of files that one round of garbage collection writes.
const COLLECTION_BYTES: u64 = 4 << 20;

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
    left: Mutex<Left>,
    free: AtomicU64,
    kept: AtomicU64,
    /// Groups that this node leads and that take no writes.
    groups: Mutex<BTreeMap<GroupId, Left>>,
    /// One of them, or of those that others lead.
    any: AtomicBool,
    /// A flush was due and did not fit.
    owes_flush: AtomicBool,
}

impl Room {
    pub fn left(&self) -> Left {
        *self.left.lock()
    }
    /// What pings say.
    pub fn groups(&self) -> Vec<(GroupId, Left)> {
        self.groups.lock().iter().map(|(group, left)| (*group, *left)).collect()
    }
    /// Whether the disk has room for `bytes` beyond the space kept for the node's own work.
    pub fn admits(&self, runtime: &dyn Runtime, bytes: u64) -> bool {
        let kept = self.kept.load(Ordering::Relaxed);
        runtime.disk().space().map_or(true, |space| space.free >= kept.saturating_add(bytes))
    }
    /// Somebody said that a group takes no writes.
    pub fn heard_of_one(&self) {
        self.any.store(true, Ordering::Release);
    }
    /// Free bytes, as last seen, and how many are kept.
    pub fn bytes(&self) -> (u64, u64) {
        (self.free.load(Ordering::Relaxed), self.kept.load(Ordering::Relaxed))
    }
}

fn kept(options: RoomOptions, space: Space) -> u64 {
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

/// Looks at the disk for as long as the node runs.
pub(crate) async fn keep(shared: Arc<Shared>, options: RoomOptions) {
    let mut log_waits = shared.log.waits_for_room();
    loop {
        let waits = *log_waits.borrow_and_update();
        let is_near = look(&shared, options, waits).unwrap_or_else(|e| {
            tracing::warn!("the room on the disk is not known: {e}");
            false
        });
        let pause = if waits || is_near { HASTE } else { INTERVAL };
        tokio::select! {
            biased;
            changed = log_waits.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Gives whether there is so little left that writes may soon be refused.
fn look(shared: &Shared, options: RoomOptions, log_waits: bool) -> io::Result<bool> {
    let room = &shared.room;
    let space = shared.runtime.disk().space()?;
    let kept = kept(options, space);
    let file = shared.runtime.disk().open(RESERVE_FILE, true)?;
    let wanted = options.reserve_bytes.min(space.total / 16);
    let mut has = file.len()?;
    let needed = kept.saturating_add(owed(shared));
    // Some more than what ends it, so that it does not begin again at once.
    let enough = needed.saturating_add(kept / 4);
    let part = (wanted / PARTS).max(1);
    if has > 0 && (log_waits || space.free < part) {
        has = has.saturating_sub(part);
        file.set_len(has)?;
    } else if has < wanted && space.free >= enough.saturating_add(wanted - has) {
        // Others may have been quicker.
        has = if file.allocate(wanted).is_ok() { wanted } else { file.set_len(has).map(|()| has)? };
    } else if has > wanted {
        file.set_len(wanted)?;
        has = wanted;
    }
    let before = room.left();
    // Deletions are written as well: what memory takes of them has to get to the disk one day.
    let is_stuck = log_waits || (shared.store.over_budget() && !fits(shared));
    let left = match before {
        _ if is_stuck || (has == 0 && space.free < part) => Left::Nothing,
        _ if has < wanted || space.free < needed => Left::Reserve,
        Left::Plenty => Left::Plenty,
        _ if space.free >= enough => Left::Plenty,
        _ => Left::Reserve,
    };
    let now = shared.runtime.disk().space()?.free;
    room.free.store(now, Ordering::Relaxed);
    room.kept.store(kept, Ordering::Relaxed);
    if left != before {
        *room.left.lock() = left;
        let place = shared.runtime.disk().describe("");
        match left {
            Left::Plenty => tracing::info!("the disk of {place} has room again ({} MiB): writes go on", now >> 20),
            _ => tracing::warn!("the disk of {place} is full ({} MiB are left): writes are refused", now >> 20),
        }
    }
    if room.owes_flush.load(Ordering::Acquire) && fits(shared) {
        shared.flusher.notify_one();
    }
    let led = shared.all_replicas().into_iter().filter(|r| r.is_serving());
    let groups: BTreeMap<_, _> =
        led.map(|r| (r.id, left_for(shared, &r, left))).filter(|(_, left)| *left > Left::Plenty).collect();
    let elsewhere = shared.peers.read().values().any(|p| !p.full.is_empty());
    room.any.store(!groups.is_empty() || elsewhere, Ordering::Release);
    *room.groups.lock() = groups;
    Ok(space.free < enough.saturating_add(4 * kept))
}

/// What was accepted and is still to be written: twice what is to be flushed (it goes through a
/// journal), and what is on its way to the log.
fn owed(shared: &Shared) -> u64 {
    (2 * shared.store.dirty_bytes() + shared.log.queued_bytes()) as u64
}

/// How much is left for a group that this node leads. The catalog is small, and dropping a table
/// has to go on.
fn left_for(shared: &Shared, replica: &Replica, own: Left) -> Left {
    if replica.id == GroupId::CATALOG {
        return Left::Plenty;
    }
    let voters = replica.raft().members().voters;
    let full = |n: &NodeId| shared.left_at(*n) > Left::Plenty;
    let others = voters.iter().filter(|n| **n != shared.me());
    let with_room = others.clone().filter(|n| shared.is_live(**n) && !full(n)).count() + 1;
    match others.clone().any(full) && with_room * 2 <= voters.len() {
        true => own.max(Left::Reserve),
        false => own,
    }
}

/// Whether the store may write what memory holds. A background write that is refused in the middle
/// leaves the backend unusable until the process starts again, so none is begun that may not fit.
pub(crate) fn may_flush(shared: &Shared) -> bool {
    let may = fits(shared);
    shared.room.owes_flush.store(!may, Ordering::Release);
    may
}

/// Whether there is room for the few bytes that garbage collection writes before it frees some.
pub(crate) fn may_collect(shared: &Shared) -> bool {
    shared.runtime.disk().space().is_ok_and(|space| space.free >= COLLECTION_BYTES)
}

/// Whether what is to be flushed fits on the disk.
pub(crate) fn fits(shared: &Shared) -> bool {
    let Ok(space) = shared.runtime.disk().space() else { return true };
    let kept = shared.room.kept.load(Ordering::Relaxed);
    space.free >= (kept / 2).max(owed(shared))
}

impl Shared {
    /// How much room a node's disk has, as far as it said.
    pub(crate) fn left_at(&self, node: NodeId) -> Left {
        match node == self.me() {
            true => self.room.left(),
            false => self.peers.read().get(&node).map_or(Left::Plenty, |p| p.left),
        }
    }

    /// Refuses a transaction's writes to a group without room: all of them, or those that add
    /// something.
    pub(crate) fn check_room(&self, group: GroupId, adds: bool) -> Result<(), Error> {
        if !self.room.any.load(Ordering::Acquire) {
            return Ok(());
        }
        let (left, node) = match self.route(group, 0) {
            Some(Route::Local(_)) => (self.room.groups.lock().get(&group).copied(), self.me()),
            Some(Route::Remote(node)) => (self.peers.read().get(&node).and_then(|p| p.full.get(&group).copied()), node),
            None => return Ok(()),
        };
        match left.unwrap_or_default() {
            Left::Nothing => {}
            Left::Reserve if adds => {}
            _ => return Ok(()),
        }
        let mut detail = format!("Group {group}, which node {node} is the primary of, takes no writes for want of room.");
        if node == self.me() {
            let (free, kept) = self.room.bytes();
            detail += &format!(
                " The disk here has {} MiB left; {} MiB are kept free, and {} MiB are set aside for what was accepted.",
                free >> 20,
                kept >> 20,
                owed(self) >> 20
            );
        }
        Err(Error::sql("53100", "could not write: the disk is full").detail(detail).hint(
            "Make room on that node's disk: writes then go on by themselves. Meanwhile TRUNCATE and DROP TABLE do; what they free \
             is given back when --gc-ttl has passed. So does DELETE, which needs room itself first.",
        ))
    }
}
