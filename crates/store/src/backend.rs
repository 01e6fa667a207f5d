//! What the store asks of whatever keeps its bytes: two ordered spaces per group and a few records.
//!
//! The interface knows nothing about versions; [`crate::codec`] gives the bytes their meaning. Two
//! implementations: [`crate::fjall`] on disk and [`crate::memory`] in the simulator. A third (the
//! design names redb) would be one more file.

use crate::codec::{self, Collectable};
use bytes::Bytes;
use meridian_base::error::{Error, Result};
use meridian_base::id::GroupId;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// The two ordered spaces of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Space {
    /// Key → newest version.
    Current,
    /// (Key, timestamp descending) → older version.
    History,
}

/// A pair of spaces. A group has one pair that counts, named by its record; an import fills another
/// one beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SpacesId {
    pub group: GroupId,
    pub incarnation: u64,
}

impl fmt::Display for SpacesId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.group, self.incarnation)
    }
}

/// Keys from `low` to `high`, as bytes of a space.
pub(crate) type RawRange<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// Sees a key and a value; decides whether to go on.
pub(crate) type Visit<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>;

/// A node's database.
pub(crate) trait Disk: Send + Sync {
    /// All records.
    fn records(&self) -> Result<BTreeMap<Vec<u8>, Bytes>>;
    /// Puts (`Some`) and removes (`None`) records, atomically. When it returns, they *and
    /// everything written to any space before* are durable.
    fn put_records(&self, changes: &[(Vec<u8>, Option<Vec<u8>>)]) -> Result<()>;
    /// The pairs of spaces that exist, in order.
    fn list_spaces(&self) -> Result<Vec<SpacesId>>;
    /// Whether both of a pair exist.
    fn has_spaces(&self, id: SpacesId) -> bool;
    /// Opens a pair, or creates it empty.
    fn open_spaces(&self, id: SpacesId) -> Result<Arc<dyn Spaces>>;
    /// Removes a pair. Handles to it may go on reading.
    fn drop_spaces(&self, id: SpacesId) -> Result<()>;
    /// From now on this may go from a group's spaces.
    fn collect(&self, group: GroupId, what: Collectable) -> Result<()>;
}

/// A pair of spaces.
pub(crate) trait Spaces: Send + Sync {
    /// One value.
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>>;
    /// The present content of both spaces, unchanged by later writes.
    fn view(&self) -> Box<dyn View>;
    /// Writes what `fill` puts, about `rows` of it, with keys ascending within each space.
    ///
    /// A reader that finds a key's new value in [`Space::Current`] finds what `fill` put into
    /// [`Space::History`] before that, too. Durable only with the next [`Disk::put_records`]; a
    /// crash before may keep any part of it. Readable when it returns.
    fn write(&self, rows: usize, fill: &mut dyn FnMut(&mut dyn Sink) -> Result<()>) -> Result<()>;
    /// Removes all entries of these ranges (the first key, and the first behind it), which nobody
    /// reads or writes any more. A crash may bring some of them back.
    ///
    /// Without room on the disk only what costs none goes. Whether all of it is gone.
    fn erase(&self, space: Space, ranges: &[(Vec<u8>, Vec<u8>)], has_room: bool) -> Result<bool>;
    /// How a message to an operator names this place.
    fn describe(&self) -> String;
    /// The error for an entry that was read and cannot be decoded.
    fn malformed(&self) -> Error {
        codec::damaged(&self.describe(), "an entry that cannot be read")
    }
}

/// A moment of a pair of spaces.
pub(crate) trait View: Send {
    /// Visits a range in order, or in reverse order.
    fn scan(&self, space: Space, range: RawRange<'_>, reverse: bool, visit: Visit<'_>) -> Result<()>;
}

/// Takes what is written.
pub(crate) trait Sink {
    fn put(&mut self, space: Space, key: &[u8], value: &[u8]) -> Result<()>;
}
