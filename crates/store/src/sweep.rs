//! Removing whole indexes that nobody can reach any more: dropped ones, those of truncated tables,
//! what a build or a transaction that failed has left.
//!
//! The caller marks, which is to say that it knows what can be reached; the store looks at what is
//! there and removes the rest. So nothing has to be remembered between the drop and the sweep, and
//! nothing is left over by a node that was down meanwhile, or got its rows by a snapshot.
//!
//! Nothing of it is logged. A replay may bring versions of such an index back; the next sweep
//! removes them again.

use crate::backend::{Space, Spaces, View};
use crate::codec;
use crate::group::GroupStore;
use meridian_base::error::Result;
use meridian_base::key::{KeyRange, encode};
use meridian_base::time::Timestamp;
use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// Ids between two dead indexes that are asked about one by one.
const GAP_MAX: u32 = 1_000;

/// What a sweep found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Swept {
    /// These indexes had keys, and have none any more.
    All(BTreeSet<u32>),
    /// Something is still to be done: call again after a while.
    Some,
}

impl GroupStore {
    /// Removes the keys of all indexes that are not `reached`.
    ///
    /// The caller promises that nobody reads such an index at or after `since`, now or later, and
    /// that no log entry has a version of one above `since`. `has_room`: the disk takes what
    /// removing keys one by one needs; otherwise only files go that have nothing else in them.
    /// Nothing is done twice for one `since`. Blocks on the disk, but neither readers nor the
    /// applier. One caller at a time.
    pub fn sweep(&self, since: Timestamp, reached: &dyn Fn(u32) -> bool, has_room: bool) -> Result<Swept> {
        // What is not flushed would come after the sweep. Without room it may stay so for long.
        let is_flushed = self.oldest_unflushed() > since;
        // What is below may still be read.
        if self.gc_threshold() < since || (has_room && !is_flushed) {
            return Ok(Swept::Some);
        }
        if *self.swept.lock() >= since {
            return Ok(Swept::All(BTreeSet::new()));
        }
        let (spaces, _) = self.spaces_and_epoch();
        let mut found = BTreeSet::new();
        let mut is_done = is_flushed;
        for space in [Space::History, Space::Current] {
            let dead: BTreeSet<u32> = indexes(&*spaces, space)?.into_iter().filter(|index| !reached(*index)).collect();
            let ranges = ranges(space, &dead, reached);
            is_done &= ranges.is_empty() || spaces.erase(space, &ranges, has_room)?;
            found.extend(dead);
        }
        if !is_done {
            return Ok(Swept::Some);
        }
        // An import may have brought other spaces meanwhile.
        let inner = self.inner.read();
        if Arc::ptr_eq(&inner.spaces, &spaces) {
            *self.swept.lock() = since;
        }
        Ok(Swept::All(found))
    }
}

/// The indexes that have keys in a space.
fn indexes(spaces: &dyn Spaces, space: Space) -> Result<BTreeSet<u32>> {
    let view = spaces.view();
    let mut found = BTreeSet::new();
    let mut from = Vec::new();
    while let Some(index) = first_index(spaces, &*view, space, &from)? {
        found.insert(index);
        from = raw_range(space, index).1;
    }
    Ok(found)
}

/// The index of the first key at or after some bytes.
fn first_index(spaces: &dyn Spaces, view: &dyn View, space: Space, from: &[u8]) -> Result<Option<u32>> {
    let mut first = Ok(None);
    view.scan(space, (Bound::Included(from), Bound::Unbounded), false, &mut |raw, _| {
        let index = match space {
            Space::Current => raw.first_chunk().copied(),
            Space::History => codec::split_history_key(raw).and_then(|(key, _)| key.first_chunk().copied()),
        };
        first = index.map(|index| Some(u32::from_be_bytes(index))).ok_or_else(|| spaces.malformed());
        ControlFlow::Break(())
    })?;
    first
}

/// The keys of dead indexes. Neighbours are one range, if nothing between them can be reached: each
/// range costs a list of files.
fn ranges(space: Space, dead: &BTreeSet<u32>, reached: &dyn Fn(u32) -> bool) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut ranges: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    let mut last = None;
    for index in dead {
        let (start, end) = raw_range(space, *index);
        let is_next = last.is_some_and(|last| *index - last <= GAP_MAX && !(last..*index).any(reached));
        match ranges.last_mut() {
            Some(range) if is_next => range.1 = end,
            _ => ranges.push((start, end)),
        }
        last = Some(*index);
    }
    ranges
}

/// All keys of an index, as bytes of a space: the first that it may have, and the first behind it.
fn raw_range(space: Space, index: u32) -> (Vec<u8>, Vec<u8>) {
    let mut prefix = Vec::new();
    encode::index(&mut prefix, index);
    let range = KeyRange::prefix(&prefix);
    let raw = |key: &[u8]| match space {
        Space::Current => key.to_vec(),
        Space::History => {
            let mut raw = Vec::new();
            encode::bytes(&mut raw, key);
            raw
        }
    };
    (raw(range.start.as_bytes()), raw(range.end.as_bytes()))
}
