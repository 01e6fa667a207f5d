//! What connections between nodes keep in memory, bounded for each connection and for all of a
//! node's together.
//!
//! Bytes are kept in three places. *Outgoing* frames wait until their receiver reads them.
//! *Requests in hand* have been read and are not answered yet. A *large frame* is incomplete while
//! it arrives. A bound per connection alone is not enough: it must allow the largest message, and a
//! thousand connections of that size are more than a machine has. A bound per node alone lets one
//! peer that reads nothing take everything. So an [`Account`] has both, and leaves each connection
//! a share ([`limits::RPC_SHARE_BYTES`]) that the others cannot take: heartbeats and votes are
//! small, and pass.

use bytes::Bytes;
use meridian_base::{GroupId, limits};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{Notify, Semaphore, SemaphorePermit, mpsc};
use tokio::time::Instant;

/// The memory that a frame is made in, at least.
pub(crate) const FRAME_CAPACITY: usize = 256;
/// What memory a frame takes beside that: its place in the queue, and what the allocator adds.
const FRAME_OVERHEAD: usize = 96;
/// What memory a request takes beside its bytes while it is answered: its task.
pub(crate) const REQUEST_OVERHEAD: usize = 16 << 10;
/// Permits of [`Memory::arriving`] stand for this many bytes.
const PERMIT_BYTES: usize = 1024;

/// The bytes of all connections of a node.
pub(crate) struct Memory {
    outgoing: Arc<AtomicUsize>,
    in_hand: Arc<AtomicUsize>,
    /// Room for large frames that arrive.
    arriving: Semaphore,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory {
            outgoing: Arc::default(),
            in_hand: Arc::default(),
            arriving: Semaphore::new(limits::RPC_NODE_BYTES_MAX / PERMIT_BYTES),
        }
    }
}

impl Memory {
    /// The queue of frames to one connection.
    pub(crate) fn backlog(&self) -> (Backlog, mpsc::Receiver<Outgoing>, Arc<Account>) {
        let (frames, outgoing) = mpsc::channel(limits::RPC_QUEUE_FRAMES_MAX);
        let account = Arc::new(Account::new(limits::RPC_QUEUE_BYTES_MAX, self.outgoing.clone()));
        (Backlog { frames, account: account.clone() }, outgoing, account)
    }
    /// The requests of one connection.
    pub(crate) fn requests(&self) -> Arc<Account> {
        Arc::new(Account::new(limits::RPC_IN_HAND_BYTES_MAX, self.in_hand.clone()))
    }
    /// Waits until a frame of `len` bytes may be read into memory; the room is taken until the
    /// permit is dropped. `None`: the frame is small enough to need none.
    pub(crate) async fn room_for(&self, len: usize) -> Option<SemaphorePermit<'_>> {
        if len <= limits::RPC_SHARE_BYTES {
            return None;
        }
        let permits = u32::try_from(len.div_ceil(PERMIT_BYTES)).expect("a frame is far below 4 TiB");
        Some(self.arriving.acquire_many(permits).await.expect("the semaphore is never closed"))
    }
}

/// Bytes of one connection, counted among those of the node. What is left when the connection ends
/// is taken off the node's.
pub(crate) struct Account {
    own: AtomicUsize,
    own_max: usize,
    node: Arc<AtomicUsize>,
    drained: Notify,
}

impl Account {
    fn new(own_max: usize, node: Arc<AtomicUsize>) -> Account {
        Account { own: AtomicUsize::new(0), own_max, node, drained: Notify::new() }
    }
    pub(crate) fn add(&self, bytes: usize) {
        self.own.fetch_add(bytes, Ordering::AcqRel);
        self.node.fetch_add(bytes, Ordering::AcqRel);
    }
    pub(crate) fn subtract(&self, bytes: usize) {
        let own = self.own.fetch_sub(bytes, Ordering::AcqRel);
        assert!(own >= bytes, "{bytes} bytes leave a connection that has {own}");
        self.node.fetch_sub(bytes, Ordering::AcqRel);
        self.drained.notify_waiters();
    }
    /// Whether this connection has its fill, or the node has and this connection more than its
    /// share.
    pub(crate) fn is_full(&self) -> bool {
        let own = self.own.load(Ordering::Acquire);
        own >= self.own_max || (own >= limits::RPC_SHARE_BYTES && self.node.load(Ordering::Acquire) >= limits::RPC_NODE_BYTES_MAX)
    }
    /// Whether this connection has twice its fill.
    fn overflows(&self) -> bool {
        self.own.load(Ordering::Acquire) >= 2 * self.own_max
    }
    /// Waits until this connection has less than twice its fill.
    pub(crate) async fn until_it_fits(&self) {
        self.until(|| !self.overflows()).await;
    }
    /// A connection waits for its own bytes to leave: below its share it is never full, whatever
    /// others have.
    async fn until(&self, enough: impl Fn() -> bool) {
        loop {
            let drained = self.drained.notified();
            tokio::pin!(drained);
            drained.as_mut().enable();
            if enough() {
                return;
            }
            drained.await;
        }
    }
    /// Tells those who wait to look again.
    pub(crate) fn wake(&self) {
        self.drained.notify_waiters();
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.node.fetch_sub(*self.own.get_mut(), Ordering::AcqRel);
    }
}

/// A frame that waits to be written, not before a moment.
pub(crate) struct Outgoing {
    pub(crate) at: Option<Instant>,
    pub(crate) frame: Bytes,
    /// It must not overtake others of the same group's log.
    pub(crate) order: Option<GroupId>,
}

/// Frames that wait to be written to one connection, bounded by their bytes.
#[derive(Clone)]
pub(crate) struct Backlog {
    frames: mpsc::Sender<Outgoing>,
    account: Arc<Account>,
}

impl Outgoing {
    /// The memory that it takes.
    pub(crate) fn cost(&self) -> usize {
        self.frame.len().max(FRAME_CAPACITY) + FRAME_OVERHEAD
    }
}

impl Backlog {
    /// `false`: too much waits already, and the frame is dropped.
    pub(crate) fn send(&self, outgoing: Outgoing) -> bool {
        if self.account.is_full() {
            return false;
        }
        let bytes = outgoing.cost();
        self.account.add(bytes);
        match self.frames.try_send(outgoing) {
            Ok(()) => true,
            // A closed writer means a closed connection; its reader fails everything that waits.
            Err(mpsc::error::TrySendError::Closed(_)) => true,
            Err(mpsc::error::TrySendError::Full(_)) => {
                self.account.subtract(bytes);
                false
            }
        }
    }
    /// Waits until there is room, or the writer has ended.
    pub(crate) async fn until_room(&self) {
        self.account.until(|| !self.account.is_full() || self.frames.is_closed()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARE: usize = limits::RPC_SHARE_BYTES;

    #[test]
    fn a_connection_is_full_by_its_own_bytes_or_by_the_nodes_above_its_share() {
        let memory = Memory::default();
        let (one, other) = (memory.requests(), memory.requests());
        one.add(limits::RPC_IN_HAND_BYTES_MAX - 1);
        assert!(!one.is_full());
        one.add(1);
        assert!(one.is_full() && !other.is_full());
        let rest: Vec<_> = (0..limits::RPC_NODE_BYTES_MAX / limits::RPC_IN_HAND_BYTES_MAX).map(|_| memory.requests()).collect();
        for account in &rest {
            account.add(limits::RPC_IN_HAND_BYTES_MAX);
        }
        other.add(SHARE - 1);
        assert!(!other.is_full(), "its share is its own");
        other.add(1);
        assert!(other.is_full(), "beyond it, the node is full");
        drop(rest);
        assert!(!other.is_full(), "what connections had is free when they end");
        other.subtract(SHARE);
    }

    #[test]
    fn frames_that_nobody_reads_are_bounded_over_all_connections() {
        let memory = Memory::default();
        let frame = Bytes::from(vec![0; 1 << 20]);
        let all: Vec<_> = (0..2_000).map(|_| memory.backlog()).collect();
        let mut taken = 0;
        for _ in 0..4 {
            for (backlog, ..) in &all {
                taken += usize::from(backlog.send(Outgoing { at: None, frame: frame.clone(), order: None }));
            }
        }
        let most = limits::RPC_NODE_BYTES_MAX + all.len() * (SHARE + frame.len());
        assert!(taken * frame.len() <= most, "{taken} frames");
        assert!(taken >= all.len(), "every connection may send a frame");
        assert!(taken < all.len() + 200, "{taken} frames of a connection's own share are not many");
    }

    #[tokio::test]
    async fn large_frames_arrive_in_bounded_memory() {
        let memory = Memory::default();
        assert!(memory.room_for(SHARE).await.is_none());
        let mut held = Vec::new();
        for _ in 0..limits::RPC_NODE_BYTES_MAX / limits::RPC_FRAME_BYTES_MAX {
            held.push(memory.room_for(limits::RPC_FRAME_BYTES_MAX).await.expect("room that is held"));
        }
        let next = memory.room_for(limits::RPC_FRAME_BYTES_MAX);
        tokio::pin!(next);
        assert!(futures::poll!(&mut next).is_pending());
        held.pop();
        assert!(next.await.is_some());
    }
}
