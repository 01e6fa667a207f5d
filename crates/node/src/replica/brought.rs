//! Slices of large transactions on their way to this node's primaries.
//!
//! A frame between nodes, and what a connection may keep in memory, is bounded. The slice of a
//! large transaction comes in pieces, in any order and each perhaps twice, and waits here for the
//! request that certifies it. It is nothing until then: a gateway that is lost, or finds another
//! primary, brings it again there, and what is left here is forgotten after [`KEPT_FOR`].

use meridian_base::{CommitRequest, Error, Mutation, ReadEntry, Result, TxnId, limits};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long after its first piece a slice is kept.
pub(crate) const KEPT_FOR: Duration = Duration::from_secs(60);
/// What a read entry takes in memory, about.
const READ_BYTES: usize = 96;

/// A part of a slice.
#[derive(Clone, Debug, Default)]
pub(crate) struct Piece {
    pub reads: Vec<ReadEntry>,
    pub writes: Vec<Mutation>,
}

impl Piece {
    fn bytes(&self) -> usize {
        self.reads.len() * READ_BYTES + self.writes.iter().map(|write| write.bytes() + size_of::<Mutation>()).sum::<usize>()
    }
}

/// Cuts reads and writes into pieces of about so many bytes.
pub(crate) fn pieces(request: &CommitRequest, bytes_max: usize) -> Vec<Piece> {
    let mut pieces = vec![Piece::default()];
    let mut bytes = 0;
    let mut next = |pieces: &mut Vec<Piece>, more: usize| {
        if bytes >= bytes_max {
            pieces.push(Piece::default());
            bytes = 0;
        }
        bytes += more;
    };
    for read in &request.reads {
        next(&mut pieces, READ_BYTES);
        pieces.last_mut().expect("there is one").reads.push(read.clone());
    }
    for write in &request.writes {
        next(&mut pieces, write.bytes() + size_of::<Mutation>());
        pieces.last_mut().expect("there is one").writes.push(write.clone());
    }
    pieces
}

/// See the module's essay.
#[derive(Default)]
pub(crate) struct Brought {
    slices: Mutex<BTreeMap<TxnId, Slice>>,
}

struct Slice {
    /// By the node's clock, in microseconds.
    since: u64,
    bytes: usize,
    pieces: BTreeMap<u32, Piece>,
}

impl Brought {
    /// Forgets what came [`KEPT_FOR`] before this time by the node's clock, in microseconds.
    pub fn forget_old(&self, now: u64) {
        self.slices.lock().retain(|_, slice| now.saturating_sub(slice.since) < KEPT_FOR.as_micros() as u64);
    }

    /// Keeps a piece that comes at this time. 53200 if too much waits here. Whether it is the first
    /// of its slice: then the caller has [`Brought::forget_old`] called later.
    pub fn keep(&self, now: u64, id: TxnId, number: u32, piece: Piece) -> Result<bool> {
        self.forget_old(now);
        let mut slices = self.slices.lock();
        let bytes = piece.bytes();
        if slices.values().map(|slice| slice.bytes).sum::<usize>() + bytes > limits::LARGE_TXNS_BYTES_MAX {
            return Err(Error::sql("53200", "too many large transactions at once")
                .detail("The node that leads the rows has no room for another one.")
                .hint("Run the transaction again later, or split the work into several."));
        }
        let is_new = !slices.contains_key(&id);
        let slice = slices.entry(id).or_insert(Slice { since: now, bytes: 0, pieces: BTreeMap::new() });
        if slice.pieces.insert(number, piece).is_none() {
            slice.bytes += bytes;
        }
        Ok(is_new)
    }

    /// The request with what was brought for it. An error if a piece is missing: then it has to be
    /// brought again, all of it.
    pub fn whole(&self, mut request: CommitRequest, pieces: u32) -> Result<CommitRequest> {
        let slice = self.slices.lock().remove(&request.id);
        let slice = slice.filter(|slice| slice.pieces.keys().copied().eq(0..pieces));
        let slice = slice.ok_or_else(|| Error::unavailable("a piece of the transaction is missing here"))?;
        for (_, piece) in slice.pieces {
            request.reads.extend(piece.reads);
            request.writes.extend(piece.writes);
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_base::{Change, ColumnMask, GlobalReads, Key, NodeId, SchemaUse, Target, Timestamp};

    fn request(writes: usize) -> CommitRequest {
        let key = |n: usize| Key::new(&(n as u32).to_be_bytes());
        let read = |n| ReadEntry { target: Target::Key(key(n)), columns: ColumnMask::ALL, until: Timestamp(n as u64) };
        let put = |n| Mutation { key: key(n), change: Change::Put(vec![7; 100_000].into()), columns: ColumnMask::ALL };
        CommitRequest {
            id: TxnId { hlc: Timestamp(9), gateway: NodeId(2) },
            reads: (0..3).map(read).collect(),
            writes: (0..writes).map(put).collect(),
            min_commit: Timestamp(5),
            schema: SchemaUse::default(),
            global: GlobalReads::default(),
        }
    }

    #[test]
    fn a_slice_is_put_together_from_its_pieces() {
        let whole = request(100);
        let head = CommitRequest { reads: Vec::new(), writes: Vec::new(), ..whole.clone() };
        let cut = pieces(&whole, limits::PART_BYTES);
        assert!(cut.len() > 2, "{}", cut.len());
        let brought = Brought::default();
        let count = cut.len() as u32;
        for number in (0..count).rev().chain([0]) {
            brought.keep(5, whole.id, number, cut[number as usize].clone()).unwrap();
        }
        assert_eq!(brought.whole(head.clone(), count).unwrap(), whole);
        assert!(brought.whole(head.clone(), count).unwrap_err().is_unavailable(), "it was taken");
        brought.keep(5, whole.id, 1, cut[1].clone()).unwrap();
        assert!(brought.whole(head, count).unwrap_err().is_unavailable(), "the first piece is missing");
    }

    #[test]
    fn what_nobody_asks_for_is_forgotten() {
        let (request, brought) = (request(1), Brought::default());
        brought.keep(5, request.id, 0, pieces(&request, 1).swap_remove(0)).unwrap();
        let other = TxnId { hlc: Timestamp(1), ..request.id };
        brought.forget_old(4 + KEPT_FOR.as_micros() as u64);
        assert!(!brought.keep(5, request.id, 0, pieces(&request, 1).swap_remove(0)).unwrap(), "it is there still");
        assert!(brought.keep(5 + KEPT_FOR.as_micros() as u64, other, 0, Piece::default()).unwrap());
        assert!(brought.whole(request, 1).unwrap_err().is_unavailable());
    }

    #[test]
    fn too_much_is_refused() {
        let piece = || Piece { writes: request(1_000).writes, reads: Vec::new() };
        let brought = Brought::default();
        let id = |n: u64| TxnId { hlc: Timestamp(n), gateway: NodeId(2) };
        let kept = (0..20).take_while(|n| brought.keep(5, id(*n), 0, piece()).is_ok()).count();
        assert_eq!(kept, limits::LARGE_TXNS_BYTES_MAX / piece().bytes());
        assert_eq!(brought.keep(5, id(99), 0, piece()).unwrap_err().sqlstate(), "53200");
    }
}
