//! A replica as its group's log sees it: entries to apply, snapshots to send and to take.

use super::builds::Builds;
use super::{Flushed, Replica, decode_flushed};
use bytes::Bytes;
use meridian_base::parts::Gatherer;
use meridian_base::{Error, LogPosition, Result, envelope};
use meridian_raft as raft;
use meridian_raft::{AppliedEntry, Recovered, SnapshotHeader, SnapshotSink, SnapshotSource};
use meridian_store::{Export, Import};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

/// The replica has the log's side of the group, so this one must not hold the replica.
pub(super) struct Machine(pub Weak<Replica>);

impl Machine {
    fn replica(&self) -> Result<Arc<Replica>> {
        self.0.upgrade().ok_or_else(|| Error::unavailable("the replica is not on this node any more"))
    }
}

impl raft::StateMachine for Machine {
    fn recovered(&self) -> Option<Recovered> {
        let replica = self.replica().ok()?;
        let (position, _) = replica.store.recovered()?;
        if position == LogPosition::default() {
            // Flushed before the first entry came: there is nothing, and no membership.
            return None;
        }
        let membership = replica.core.lock().membership.clone();
        Some(Recovered { position, membership })
    }
    fn apply(&self, batch: Vec<AppliedEntry>) -> Result<()> {
        let replica = self.replica()?;
        replica.apply_entries(batch).inspect_err(|e| replica.fail(e.clone()))
    }
    fn owes(&self) -> bool {
        self.replica().is_ok_and(|replica| replica.applying.lock().is_amid())
    }
    fn export(&self) -> Result<Box<dyn SnapshotSource>> {
        let replica = self.replica()?;
        replica.flush_all()?;
        let export = replica.store.export()?;
        let flushed: Flushed = envelope::decode(export.state()).map_err(|e| Error::fatal(format!("flushed state: {e}")))?;
        let header = SnapshotHeader { position: export.position(), membership: flushed.membership };
        Ok(Box::new(Source { header, export }))
    }
    fn import(&self, _header: SnapshotHeader) -> Result<Box<dyn SnapshotSink>> {
        let replica = self.replica()?;
        replica.check_room_for_snapshot(replica.snapshot_bytes.load(Ordering::Relaxed))?;
        let import = replica.store.import()?;
        Ok(Box::new(Sink { replica, import, bytes: 0 }))
    }
}

struct Source {
    header: SnapshotHeader,
    export: Export,
}
impl SnapshotSource for Source {
    fn header(&self) -> SnapshotHeader {
        self.header.clone()
    }
    fn next_chunk(&mut self) -> Result<Option<Bytes>> {
        self.export.next().transpose()
    }
}

struct Sink {
    replica: Arc<Replica>,
    import: Import,
    /// Taken so far.
    bytes: u64,
}
impl SnapshotSink for Sink {
    fn write(&mut self, chunk: Bytes) -> Result<()> {
        self.bytes += chunk.len() as u64;
        self.replica
            .check_room_for_snapshot(chunk.len() as u64)
            .inspect_err(|_| self.replica.snapshot_bytes.store(self.bytes, Ordering::Relaxed))?;
        self.import.chunk(&chunk)
    }
    fn finish(self: Box<Self>) -> Result<()> {
        let mut gatherer = self.replica.applying.lock();
        *gatherer = Gatherer::default();
        let (_, blob) = self.import.finish()?;
        {
            let mut core = self.replica.core.lock();
            // It comes from a later term's leader, perhaps before the news of that. The engine's
            // state is not this one.
            self.replica.end_term(&mut core, &"a snapshot of a later one");
            let (state, membership, owed) = decode_flushed(&blob, self.replica.common.rules)?;
            (core.state, core.membership, core.builds) = (state, membership, Builds::new(owed));
            self.replica.common.builder.notify_one();
        }
        if let Some(hook) = &self.replica.hook {
            hook.replaced(&self.replica.store).inspect_err(|e| self.replica.fail(e.clone()))?;
        }
        Ok(())
    }
}

impl Replica {
    /// Returns an error if the disk has no room for the next `bytes` of a snapshot. The part that
    /// has arrived is then dropped, and the leader sends the snapshot again later.
    fn check_room_for_snapshot(&self, bytes: u64) -> Result<()> {
        if self.common.room.admits(bytes) {
            return Ok(());
        }
        tracing::warn!("the disk has no room for a snapshot of group {}: it is waited for", self.id);
        Err(Error::unavailable(format!("the disk of node {} has no room for a snapshot of group {}", self.node, self.id)))
    }
}
