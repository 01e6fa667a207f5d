//! The bytes in the spaces and in the records.
//!
//! ```text
//! current   key                                  → at u64 | columns u64 | kind u8 | value
//! history   escaped key | inverted at u64 (BE)   → until u64 | columns u64 | kind u8 | value
//! ```
//!
//! Integers in values are little-endian; `kind` is 1 for a row and 0 for a tombstone. Escaping
//! keeps the order of keys and makes no escaped key the start of another, so that a key's versions
//! stand together, newest first.
//!
//! `until` is the timestamp at which a newer version took over. It makes garbage recognizable from
//! the entry alone, which is what a compaction filter sees. It may be later than the truth (a
//! version that arrived late stands between the two) but never earlier, and that is harmless: the
//! entry is kept longer, and a reader that meets it as the newest one at or below its timestamp
//! finds the one in between first.

use crate::backend::Space;
use crate::version::Version;
use bytes::{Buf, Bytes};
use meridian_base::envelope;
use meridian_base::error::{Error, Result};
use meridian_base::id::{GroupId, LogPosition};
use meridian_base::key::{decode, encode};
use meridian_base::time::Timestamp;
use meridian_base::txn::ColumnMask;
use serde::{Deserialize, Serialize};

/// The version of everything described here, of the records and of the names of spaces.
pub(crate) const FORMAT: u32 = 1;

const HEADER: usize = 17;
const ROW: u8 = 1;
const TOMBSTONE: u8 = 0;

/// The value of a version, for either space: `stamp` is its timestamp in `current` and its `until`
/// in `history`.
fn put_value(out: &mut Vec<u8>, stamp: Timestamp, version: &Version) {
    out.clear();
    out.extend_from_slice(&stamp.0.to_le_bytes());
    out.extend_from_slice(&version.columns.0.to_le_bytes());
    match &version.value {
        Some(value) => {
            out.push(ROW);
            out.extend_from_slice(value);
        }
        None => out.push(TOMBSTONE),
    }
}

/// Writes the value of an entry of `current`.
pub(crate) fn put_current(out: &mut Vec<u8>, version: &Version) {
    put_value(out, version.at, version);
}

/// Writes the value of an entry of `history`.
pub(crate) fn put_history(out: &mut Vec<u8>, version: &Version, until: Timestamp) {
    put_value(out, until, version);
}

fn value(mut raw: Bytes) -> Option<(Timestamp, ColumnMask, Option<Bytes>)> {
    if raw.len() < HEADER {
        return None;
    }
    let stamp = Timestamp(raw.get_u64_le());
    let columns = ColumnMask(raw.get_u64_le());
    match raw.get_u8() {
        ROW => Some((stamp, columns, Some(raw))),
        TOMBSTONE if raw.is_empty() => Some((stamp, columns, None)),
        _ => None,
    }
}

/// Reads the value of an entry of `current`.
pub(crate) fn current(raw: Bytes) -> Option<Version> {
    let (at, columns, value) = value(raw)?;
    Some(Version { at, columns, value })
}

/// Reads the value of an entry of `history` whose key says `at`: the version and its `until`.
pub(crate) fn history(at: Timestamp, raw: Bytes) -> Option<(Version, Timestamp)> {
    let (until, columns, value) = value(raw)?;
    Some((Version { at, columns, value }, until))
}

/// The timestamp of an entry of `current`, without the rest.
pub(crate) fn current_at(raw: &[u8]) -> Option<Timestamp> {
    Some(Timestamp(u64::from_le_bytes(raw.first_chunk::<8>().copied()?)))
}

/// The timestamp and the row in an entry of `current`; `None` for a tombstone, or what cannot be
/// read.
pub(crate) fn current_row(raw: &[u8]) -> Option<(Timestamp, &[u8])> {
    let (header, row) = raw.split_at_checked(HEADER)?;
    (header[HEADER - 1] == ROW).then_some((current_at(header)?, row))
}

/// Writes the key of a version in `history`. Larger timestamps sort first.
pub(crate) fn put_history_key(out: &mut Vec<u8>, key: &[u8], at: Timestamp) {
    out.clear();
    encode::bytes(out, key);
    out.extend_from_slice(&(!at.0).to_be_bytes());
}

/// The key of a version in `history`.
pub(crate) fn history_key(key: &[u8], at: Timestamp) -> Vec<u8> {
    let mut out = Vec::with_capacity(key.len() + 12);
    put_history_key(&mut out, key, at);
    out
}

/// Reads a key of `history`.
pub(crate) fn split_history_key(mut raw: &[u8]) -> Option<(Vec<u8>, Timestamp)> {
    if decode::is_null(&mut raw, false)? {
        return None;
    }
    let key = decode::bytes(&mut raw, false)?;
    let at = !u64::from_be_bytes(raw.try_into().ok()?);
    Some((key, Timestamp(at)))
}

/// What may be collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Collectable {
    /// From `history`: what a newer version replaced at or before this.
    pub replaced: Timestamp,
    /// From `current`: tombstones at or before this.
    ///
    /// Invariant: at most `replaced`, so what a tombstone covers in `history` is garbage as well;
    /// readers do not take an entry whose `until` has passed, so it does not come back to life. And
    /// below every version that a replay of the log may still bring: one that is older than the
    /// tombstone would find nothing newer and take the tombstone's place.
    pub tombstones: Timestamp,
}

impl Collectable {
    /// Nothing.
    pub const NOTHING: Collectable = Collectable { replaced: Timestamp::MIN, tombstones: Timestamp::MIN };

    /// Whether an entry with this value may go.
    pub fn contains(self, space: Space, value: &[u8]) -> bool {
        let Some(stamp) = current_at(value) else { return false };
        match space {
            Space::History => stamp <= self.replaced,
            Space::Current => stamp <= self.tombstones && value.get(HEADER - 1) == Some(&TOMBSTONE),
        }
    }
}

/// A group's record: what its spaces contain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GroupRecord {
    /// Which pair of spaces counts.
    pub incarnation: u64,
    /// Everything up to here is in them.
    pub position: LogPosition,
    /// The newest commit timestamp up to there.
    pub newest: Timestamp,
    /// The replica state as of there.
    pub state: Bytes,
}

/// The kinds of records, by the first byte of their names.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RecordKind {
    /// A [`GroupRecord`].
    Group,
    /// A timestamp: no version above it is in the spaces. Written before a flush, so that it holds
    /// in the middle of one.
    Bound,
    /// A timestamp: the threshold of garbage collection.
    Threshold,
}

impl RecordKind {
    /// All kinds: what a group leaves in the records.
    pub const ALL: [RecordKind; 3] = [RecordKind::Group, RecordKind::Bound, RecordKind::Threshold];
}

/// A record's name.
pub(crate) fn record_name(kind: RecordKind, group: GroupId) -> Vec<u8> {
    let mut name = vec![match kind {
        RecordKind::Group => b'g',
        RecordKind::Bound => b'b',
        RecordKind::Threshold => b't',
    }];
    name.extend_from_slice(&group.0.to_be_bytes());
    name
}

/// The group that a [`RecordKind::Group`] record's name is about.
pub(crate) fn record_group(name: &[u8]) -> Option<GroupId> {
    let id = name.strip_prefix(b"g")?;
    Some(GroupId(u32::from_be_bytes(id.try_into().ok()?)))
}

/// A record's content.
pub(crate) fn put_record<T: Serialize>(content: &T) -> Vec<u8> {
    envelope::encode(content)
}

/// Reads a record's content.
pub(crate) fn record<'a, T: Deserialize<'a>>(raw: &'a [u8], place: impl Fn() -> String) -> Result<T> {
    envelope::decode(raw).map_err(|_| damaged(&place(), "a record that cannot be read"))
}

/// The error for bytes that are not what was written.
pub(crate) fn damaged(place: &str, what: &str) -> Error {
    Error::fatal(format!("the store in {place} is damaged: {what}"))
        .hint("Remove this node from the cluster, and add it again with an empty data directory.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_fixtures::Fixtures;
    use proptest::prelude::*;

    #[test]
    fn what_was_written_is_read() {
        let mut fixtures = Fixtures::open(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/store.txt"));
        let unread = || "no version".to_string();
        let put = Version { at: Timestamp(7), columns: ColumnMask(5), value: Some(Bytes::from_static(b"value")) };
        for (what, version) in [("row", put.clone()), ("tombstone", Version { value: None, ..put })] {
            let (mut newest, mut older) = (Vec::new(), Vec::new());
            put_current(&mut newest, &version);
            put_history(&mut older, &version, Timestamp(9));
            fixtures.bytes(&format!("newest {what}"), &newest, |bytes| {
                let (read, mut again) = (current(Bytes::copy_from_slice(bytes)).ok_or_else(unread)?, Vec::new());
                put_current(&mut again, &read);
                Ok((format!("{read:?}"), again))
            });
            fixtures.bytes(&format!("older {what}"), &older, |bytes| {
                let (read, until) = history(version.at, Bytes::copy_from_slice(bytes)).ok_or_else(unread)?;
                let mut again = Vec::new();
                put_history(&mut again, &read, until);
                Ok((format!("{read:?} until {until}"), again))
            });
        }
        fixtures.bytes("key of an older version", &history_key(b"a\0b", Timestamp(7)), |bytes| {
            let (key, at) = split_history_key(bytes).ok_or_else(unread)?;
            Ok((format!("{key:?} at {at}"), history_key(&key, at)))
        });
        fixtures.value::<GroupRecord>("group");
        fixtures.finish();
    }

    proptest! {
        #[test]
        fn versions_read_back(at: u64, until: u64, columns: u64, value: Option<Vec<u8>>) {
            let v = Version { at: Timestamp(at), columns: ColumnMask(columns), value: value.map(Bytes::from) };
            let mut raw = Vec::new();
            put_current(&mut raw, &v);
            prop_assert_eq!(current(Bytes::from(raw.clone())), Some(v.clone()));
            put_history(&mut raw, &v, Timestamp(until));
            prop_assert_eq!(history(v.at, Bytes::from(raw)), Some((v, Timestamp(until))));
        }
        #[test]
        fn history_keys_sort_by_key_and_then_newest_first(a: Vec<u8>, s: u64, b: Vec<u8>, t: u64) {
            let (x, y) = (history_key(&a, Timestamp(s)), history_key(&b, Timestamp(t)));
            prop_assert_eq!(x.cmp(&y), (&a, std::cmp::Reverse(s)).cmp(&(&b, std::cmp::Reverse(t))));
            prop_assert_eq!(split_history_key(&x), Some((a, Timestamp(s))));
        }
        #[test]
        fn no_bytes_panic_a_decoder(raw: Vec<u8>, at: u64) {
            let _ = current(Bytes::from(raw.clone()));
            let _ = history(Timestamp(at), Bytes::from(raw.clone()));
            let _ = current_at(&raw);
            let _ = split_history_key(&raw);
            let all = Collectable { replaced: Timestamp(at), tombstones: Timestamp(at) };
            let _ = all.contains(Space::Current, &raw);
            let _ = all.contains(Space::History, &raw);
            let _ = record_group(&raw);
            let _ = record::<GroupRecord>(&raw, || "here".into());
        }
    }
}
