//! The library's log storage, on the node's log.

use super::{Entry, LeaderId, LogId, Types, from_log_entry, option_to_position, to_log_entry, to_log_id, to_position};
use crate::log::{GroupHandle, Vote};
use futures::{Stream, StreamExt, TryStreamExt};
use meridian_base::NodeId;
use openraft::storage::{IOFlushed, LogState, RaftLogReader, RaftLogStorage};
use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};

/// Entries and bytes read at once to be applied, so that a long backlog is applied piecemeal.
const READ_ENTRIES: u64 = 1_024;
const READ_BYTES: usize = 8 << 20;

/// The log of one group.
#[derive(Clone)]
pub(crate) struct Storage {
    pub handle: GroupHandle,
    /// Most payload bytes in one message to a follower.
    pub message_bytes_max: usize,
}

impl Storage {
    async fn read(&self, start: u64, end: u64, bytes_max: usize) -> io::Result<Vec<Entry>> {
        let entries = self.handle.read(start + 1, end.saturating_add(1), bytes_max).await.map_err(io::Error::other)?;
        entries.into_iter().map(|e| from_log_entry(e).map_err(io::Error::other)).collect()
    }
}

fn bounds(range: impl RangeBounds<u64>) -> (u64, u64) {
    let start = match range.start_bound() {
        Bound::Included(i) => *i,
        Bound::Excluded(i) => *i + 1,
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(i) => *i + 1,
        Bound::Excluded(i) => *i,
        Bound::Unbounded => u64::MAX,
    };
    (start, end)
}

impl RaftLogReader<Types> for Storage {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + Send>(&mut self, range: RB) -> io::Result<Vec<Entry>> {
        let (start, end) = bounds(range);
        self.read(start, end, usize::MAX).await
    }

    /// For a follower: the entries from `start` on, or none where that one was purged.
    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> io::Result<Vec<Entry>> {
        let entries = self.read(start, end, self.message_bytes_max).await?;
        Ok(if entries.first().is_some_and(|first| first.log_id.index == start) { entries } else { Vec::new() })
    }

    async fn entries_stream<RB>(&mut self, range: RB) -> impl Stream<Item = io::Result<Entry>> + Send
    where
        RB: RangeBounds<u64> + Clone + Debug + Send,
    {
        let (next, end) = bounds(range);
        let chunks = futures::stream::try_unfold((self.clone(), next), move |(storage, next)| async move {
            if next >= end {
                return Ok(None);
            }
            let entries = storage.read(next, end.min(next + READ_ENTRIES), READ_BYTES).await?;
            if entries.is_empty() {
                return Err(io::Error::other(format!("log entry {} is missing", next + 1)));
            }
            let next = next + entries.len() as u64;
            Ok(Some((futures::stream::iter(entries.into_iter().map(Ok)), (storage, next))))
        });
        chunks.try_flatten().boxed()
    }

    async fn read_vote(&mut self) -> io::Result<Option<super::Vote>> {
        Ok(self
            .handle
            .vote()
            .map(|v| super::Vote { leader_id: LeaderId { term: v.term, voted_for: v.node.0 }, committed: v.committed }))
    }
}

impl RaftLogStorage<Types> for Storage {
    type LogReader = Storage;

    async fn get_log_state(&mut self) -> io::Result<LogState<Types>> {
        let (purged, last) = self.handle.bounds();
        Ok(LogState { last_purged_log_id: to_log_id(purged), last_log_id: to_log_id(last) })
    }

    async fn get_log_reader(&mut self) -> Storage {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &super::Vote) -> io::Result<()> {
        let vote = Vote { term: vote.leader_id.term, node: NodeId(vote.leader_id.voted_for), committed: vote.committed };
        self.handle.save_vote(vote).await.map_err(io::Error::other)
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<Types>) -> io::Result<()>
    where
        I: IntoIterator<Item = Entry> + Send,
        I::IntoIter: Send,
    {
        let entries = entries.into_iter().map(|e| to_log_entry(&e)).collect();
        self.handle.append(entries, move |result| callback.io_completed(result.map_err(io::Error::other)));
        Ok(())
    }

    async fn truncate_after(&mut self, last: Option<LogId>) -> io::Result<()> {
        self.handle.truncate(option_to_position(last.as_ref()).index);
        Ok(())
    }

    async fn purge(&mut self, upto: LogId) -> io::Result<()> {
        self.handle.purge(to_position(&upto));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{EntryKind, LogEntry, LogOptions, NodeLog};
    use crate::testing::{MemoryDisk, TestRuntime};
    use bytes::Bytes;
    use meridian_base::{GroupId, LogPosition};
    use std::sync::Arc;

    /// A missing entry is an error. The state machine must not take it for the end of the log.
    #[tokio::test(start_paused = true)]
    async fn a_missing_entry_is_an_error() {
        let runtime = Arc::new(TestRuntime::new(MemoryDisk::default(), 1));
        let log = NodeLog::open(runtime, LogOptions::default()).await.unwrap();
        let mut storage = Storage { handle: log.group(GroupId(5)), message_bytes_max: 1_000 };
        let entry = |index| LogEntry { position: LogPosition { index, term: 1 }, kind: EntryKind::Blank, body: Bytes::new() };
        storage.handle.append((1..=3).map(entry).collect(), drop);
        let read: Vec<_> = storage.entries_stream(0..5).await.map(|e| e.map(|e| e.log_id.index)).collect().await;
        assert!(matches!(read[..], [Ok(0), Ok(1), Ok(2), Err(_)]), "{read:?}");
        let read: Vec<_> = storage.entries_stream(1..3).await.map(|e| e.map(|e| e.log_id.index)).collect().await;
        assert!(matches!(read[..], [Ok(1), Ok(2)]), "{read:?}");
    }
}
