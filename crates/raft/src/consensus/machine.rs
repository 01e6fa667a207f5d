//! The library's state machine, on a [`crate::StateMachine`].
//!
//! The library knows one «current snapshot» and purges its log only below that. Meridian has no
//! stored snapshots: a snapshot is a view of the store, taken when a follower needs one. So two
//! different answers are given: a *built* snapshot is a mere statement that the store is durable up
//! to a position (which lets the log be purged), and the *current* snapshot, which is sent to
//! followers, is a fresh export.

use super::{LogId, SnapshotMeta, StoredMembership, Types, members, option_to_position, to_log_id, to_position};
use crate::log::SNAPSHOT_THREAD;
use crate::machine::{AppliedEntry, SnapshotHeader, SnapshotSink, SnapshotSource, StateMachine};
use bytes::Bytes;
use futures::{Stream, StreamExt};
use meridian_base::runtime::Runtime;
use meridian_base::{Error, LogPosition, Result};
use openraft::EntryPayload;
use openraft::entry::RaftEntry;
use openraft::storage::{ApplyResponder, EntryResponder, RaftSnapshotBuilder, RaftStateMachine, Snapshot};
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use tokio::sync::oneshot;

/// A state machine is given at most so many entries, or bytes, at once.
const BATCH_ENTRIES_MAX: usize = 1_024;
const BATCH_BYTES_MAX: usize = 8 << 20;
/// A batch with more bytes is applied on a thread of its own: heartbeats must not wait for it.
const ASIDE_BYTES: usize = 1 << 20;
const APPLY_THREAD: &str = "apply";

/// What travels with a snapshot's description.
pub(crate) enum SnapshotData {
    /// To be sent.
    Source(Box<dyn SnapshotSource>),
    /// Received, to be installed.
    Sink(Box<dyn SnapshotSink>),
    /// Nothing: the statement that the log may be purged.
    Durable,
}

/// What the machine tells the rest of the replica.
#[derive(Default)]
pub(crate) struct Applied {
    state: Mutex<AppliedState>,
}

#[derive(Clone, Default)]
struct AppliedState {
    applied: LogPosition,
    durable: LogPosition,
    membership: StoredMembership,
    failure: Option<Error>,
}

impl Applied {
    pub(crate) fn position(&self) -> LogPosition {
        self.state.lock().applied
    }
    pub(crate) fn durable(&self) -> LogPosition {
        self.state.lock().durable
    }
    /// Takes note that the store is durable up to a position. Never beyond what was applied.
    pub(crate) fn set_durable(&self, position: LogPosition) {
        let mut state = self.state.lock();
        let position = position.min(state.applied);
        state.durable = state.durable.max(position);
    }
    pub(crate) fn failure(&self) -> Option<Error> {
        self.state.lock().failure.clone()
    }
}

/// See the module.
pub(crate) struct Machine {
    inner: Arc<dyn StateMachine>,
    applied: Arc<Applied>,
    runtime: Arc<dyn Runtime>,
    /// Dropped with the machine: then nothing of the library uses the state machine any more.
    _alive: oneshot::Sender<()>,
}

impl Machine {
    /// A machine that continues from what `inner` recovered, and a receiver that ends when it is
    /// dropped.
    pub(crate) fn new(
        inner: Arc<dyn StateMachine>,
        runtime: Arc<dyn Runtime>,
    ) -> Result<(Machine, Arc<Applied>, oneshot::Receiver<()>)> {
        let mut state = AppliedState::default();
        if let Some(recovered) = inner.recovered() {
            state.applied = recovered.position;
            state.durable = recovered.position;
            state.membership = members::decode_kept(&recovered.membership)?;
        }
        let applied = Arc::new(Applied { state: Mutex::new(state) });
        let (alive, ended) = oneshot::channel();
        Ok((Machine { inner, applied: applied.clone(), runtime, _alive: alive }, applied, ended))
    }

    /// Gives a batch to the state machine, then answers those who proposed it.
    async fn apply_batch(&self, batch: Batch) -> io::Result<()> {
        let Some(last) = batch.entries.last().map(|e| e.position) else { return Ok(()) };
        let entries = batch.entries;
        let applied = match batch.bytes > ASIDE_BYTES || self.inner.owes() {
            true => {
                let inner = self.inner.clone();
                self.runtime.run_io(APPLY_THREAD, move || inner.apply(entries)).await
            }
            false => self.inner.apply(entries),
        };
        if let Err(e) = applied {
            tracing::error!("applying the log failed: {e}");
            self.applied.state.lock().failure = Some(e.clone());
            return Err(io::Error::other(e));
        }
        {
            let mut state = self.applied.state.lock();
            state.applied = last;
            if let Some(membership) = batch.membership {
                state.membership = membership;
            }
        }
        for responder in batch.responders {
            responder.send(());
        }
        Ok(())
    }
}

#[derive(Default)]
struct Batch {
    entries: Vec<AppliedEntry>,
    bytes: usize,
    membership: Option<StoredMembership>,
    responders: Vec<ApplyResponder<Types>>,
}

impl Batch {
    fn push(&mut self, (entry, responder): EntryResponder<Types>) {
        let id: LogId = entry.log_id();
        let (payload, membership) = match entry.payload {
            EntryPayload::Normal(payload) => (payload.0, None),
            EntryPayload::Blank => (Bytes::new(), None),
            EntryPayload::Membership(m) => {
                let stored = StoredMembership::new(Some(id), m);
                let blob = members::encode_kept(&stored);
                self.membership = Some(stored);
                (Bytes::new(), Some(blob))
            }
        };
        self.bytes += payload.len();
        self.entries.push(AppliedEntry { position: to_position(&id), payload, membership });
        self.responders.extend(responder);
    }
}

impl RaftStateMachine<Types> for Machine {
    type SnapshotData = SnapshotData;
    type SnapshotBuilder = DurableMark;

    async fn applied_state(&mut self) -> io::Result<(Option<LogId>, StoredMembership)> {
        let state = self.applied.state.lock();
        Ok((to_log_id(state.applied), state.membership.clone()))
    }

    async fn apply<S>(&mut self, mut entries: S) -> io::Result<()>
    where
        S: Stream<Item = io::Result<EntryResponder<Types>>> + Unpin + Send,
    {
        let mut batch = Batch::default();
        while let Some(entry) = entries.next().await {
            batch.push(entry?);
            if batch.entries.len() >= BATCH_ENTRIES_MAX || batch.bytes >= BATCH_BYTES_MAX {
                self.apply_batch(std::mem::take(&mut batch)).await?;
                tokio::task::yield_now().await;
            }
        }
        self.apply_batch(batch).await
    }

    async fn get_snapshot_builder(&mut self) -> DurableMark {
        DurableMark { applied: self.applied.clone() }
    }

    async fn install_snapshot(&mut self, meta: &SnapshotMeta, snapshot: SnapshotData) -> io::Result<()> {
        let SnapshotData::Sink(sink) = snapshot else {
            return Err(io::Error::other("only a received snapshot can be installed"));
        };
        if let Err(e) = self.runtime.run_io(SNAPSHOT_THREAD, move || sink.finish()).await {
            tracing::error!("installing a snapshot failed: {e}");
            self.applied.state.lock().failure = Some(e.clone());
            return Err(io::Error::other(e));
        }
        let mut state = self.applied.state.lock();
        state.applied = option_to_position(meta.last_log_id.as_ref());
        state.durable = state.applied;
        state.membership = meta.last_membership.clone();
        Ok(())
    }

    async fn get_current_snapshot(
        &mut self,
    ) -> io::Result<Option<Snapshot<super::CommittedLeaderId, u32, openraft::EmptyNode, SnapshotData>>> {
        let state = self.applied.state.lock().clone();
        if state.applied.index == 0 {
            return Ok(None);
        }
        // What was applied is flushed first. Nothing is applied meanwhile: the library waits for
        // this.
        let inner = self.inner.clone();
        let source = self.runtime.run_io(SNAPSHOT_THREAD, move || inner.export()).await.map_err(io::Error::other)?;
        let header = source.header();
        assert!(header.position <= state.applied, "a snapshot shows no more than was applied");
        assert!(header.position >= state.durable, "the log is there from where a snapshot ends");
        let meta = snapshot_meta(&header).map_err(io::Error::other)?;
        Ok(Some(Snapshot { meta, snapshot: SnapshotData::Source(source) }))
    }
}

/// The library's description of a snapshot.
pub(crate) fn snapshot_meta(header: &SnapshotHeader) -> Result<SnapshotMeta> {
    let last_membership = members::decode_kept(&header.membership)?;
    Ok(SnapshotMeta { last_log_id: to_log_id(header.position), last_membership })
}

/// «Builds» the snapshot that allows the log to be purged.
pub(crate) struct DurableMark {
    applied: Arc<Applied>,
}

impl RaftSnapshotBuilder<Types> for DurableMark {
    type SnapshotData = SnapshotData;

    async fn build_snapshot(&mut self) -> io::Result<Snapshot<super::CommittedLeaderId, u32, openraft::EmptyNode, SnapshotData>> {
        let state = self.applied.state.lock().clone();
        let meta = SnapshotMeta { last_log_id: to_log_id(state.durable), last_membership: state.membership };
        Ok(Snapshot { meta, snapshot: SnapshotData::Durable })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the store is durable up to, never beyond what was applied, and never less than before.
    #[test]
    fn durable_follows_the_store_and_not_ahead_of_what_was_applied() {
        let applied = Applied::default();
        let at = |index| LogPosition { index, term: 1 };
        applied.state.lock().applied = at(10);
        for (told, durable) in [(4, 4), (2, 4), (12, 10), (0, 10)] {
            applied.set_durable(at(told));
            assert_eq!(applied.durable(), at(durable), "told {told}");
        }
    }
}
