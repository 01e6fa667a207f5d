//! The node looks at the room on its disk ([`crate::local::room`]), and says what that means for
//! the groups that it leads.

use crate::local::room::{Left, PARTS, RESERVE_FILE, RoomOptions, kept};
use crate::membership::shared::Shared;
use crate::replica::Replica;
use crate::replica::groups::Route;
use meridian_base::{Error, GroupId, NodeId};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often a node looks at its disk.
const INTERVAL: Duration = Duration::from_millis(250);

/// How often while its log waits for room, or while there is little left: what is accepted between
/// two looks has to fit into what is kept.
const HASTE: Duration = Duration::from_millis(50);

/// More than the records and lists of files that one round of garbage collection writes.
const COLLECTION_BYTES: u64 = 4 << 20;

/// Looks at the disk for as long as the node runs.
pub(crate) async fn keep(shared: Arc<Shared>, options: RoomOptions) {
    let mut log_waits = shared.groups.common.log.waits_for_room();
    loop {
        let waits = *log_waits.borrow_and_update();
        let of_node = shared.clone();
        let looked = shared.runtime.run_io("look-at-space", move || look(&of_node, options, waits)).await;
        let is_near = looked.unwrap_or_else(|e| {
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
    let room = &shared.groups.common.room;
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
    let is_stuck = log_waits || (shared.groups.common.store.over_budget() && !fits(shared));
    let left = match before {
        _ if is_stuck || (has == 0 && space.free < part) => Left::Nothing,
        _ if has < wanted || space.free < needed => Left::Reserve,
        Left::Plenty => Left::Plenty,
        _ if space.free >= enough => Left::Plenty,
        _ => Left::Reserve,
    };
    let now = shared.runtime.disk().space()?.free;
    room.saw(now);
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
        shared.groups.common.flusher.notify_one();
    }
    let led = shared.groups.all().into_iter().filter(|r| r.is_serving());
    let groups: BTreeMap<_, _> =
        led.map(|r| (r.id, left_for(shared, &r, left))).filter(|(_, left)| *left > Left::Plenty).collect();
    let elsewhere = shared.peers.all.read().values().any(|p| !p.full.is_empty());
    room.any.store(!groups.is_empty() || elsewhere, Ordering::Release);
    *room.groups.lock() = groups;
    Ok(space.free < enough.saturating_add(4 * kept))
}

/// What was accepted and is still to be written: twice what is to be flushed (it goes through a
/// journal), and what is on its way to the log.
fn owed(shared: &Shared) -> u64 {
    (2 * shared.groups.common.store.dirty_bytes() + shared.groups.common.log.queued_bytes()) as u64
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
    let with_room = others.clone().filter(|n| shared.peers.is_live(**n) && !full(n)).count() + 1;
    match others.clone().any(full) && with_room * 2 <= voters.len() {
        true => own.max(Left::Reserve),
        false => own,
    }
}

/// Whether the store may write what memory holds. A background write that is refused in the middle
/// leaves the backend unusable until the process starts again, so none is begun that may not fit.
pub(crate) fn may_flush(shared: &Shared) -> bool {
    let may = fits(shared);
    shared.groups.common.room.owes_flush.store(!may, Ordering::Release);
    may
}

/// Whether there is room for the few bytes that garbage collection writes before it frees some.
pub(crate) fn may_collect(shared: &Shared) -> bool {
    shared.runtime.disk().space().is_ok_and(|space| space.free >= COLLECTION_BYTES)
}

/// Whether what is to be flushed fits on the disk.
pub(crate) fn fits(shared: &Shared) -> bool {
    shared.runtime.disk().space().map_or(true, |space| fits_into(shared, space.free))
}

/// The same by the last look at the disk, a quarter of a second ago, for a worker.
pub(crate) fn seems_to_fit(shared: &Shared) -> bool {
    shared.groups.common.room.seen().is_none_or(|free| fits_into(shared, free))
}

fn fits_into(shared: &Shared, free: u64) -> bool {
    let kept = shared.groups.common.room.kept.load(Ordering::Relaxed);
    free >= (kept / 2).max(owed(shared))
}

impl Shared {
    /// How much room a node's disk has, as far as it said.
    pub(crate) fn left_at(&self, node: NodeId) -> Left {
        match node == self.me() {
            true => self.groups.common.room.left(),
            false => self.peers.all.read().get(&node).map_or(Left::Plenty, |p| p.left),
        }
    }

    /// Refuses a transaction's writes to a group without room: all of them, or those that add
    /// something.
    pub(crate) fn check_room(&self, group: GroupId, adds: bool) -> Result<(), Error> {
        if !self.groups.common.room.any.load(Ordering::Acquire) {
            return Ok(());
        }
        let (left, node) = match self.groups.route(group, 0) {
            Some(Route::Local(_)) => (self.groups.common.room.groups.lock().get(&group).copied(), self.me()),
            Some(Route::Remote(node)) => (self.peers.all.read().get(&node).and_then(|p| p.full.get(&group).copied()), node),
            None => return Ok(()),
        };
        match left.unwrap_or_default() {
            Left::Nothing => {}
            Left::Reserve if adds => {}
            _ => return Ok(()),
        }
        let mut detail = format!("Group {group}, which node {node} is the primary of, takes no writes for want of room.");
        if node == self.me() {
            let (free, kept) = self.groups.common.room.bytes();
            detail += &format!(
                " The disk here has {} MiB left; {} MiB are kept free, and {} MiB are set aside for what was accepted.",
                free >> 20,
                kept >> 20,
                owed(self) >> 20
            );
        }
        Err(disk_full(detail))
    }
}

/// 53100.
pub(crate) fn disk_full(detail: impl Into<String>) -> Error {
    Error::sql("53100", "could not write: the disk is full").detail(detail).hint(
        "Make room on that node's disk: writes then go on by themselves. Meanwhile TRUNCATE and DROP TABLE do; what they free \
         is given back when --gc-ttl has passed. So does DELETE, which needs room itself first.",
    )
}
