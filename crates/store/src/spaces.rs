//! Versions in a group's spaces: [`crate::codec`] over [`crate::backend`].

use crate::backend::{RawRange, Space, Spaces, View};
use crate::codec;
use crate::version::Version;
use bytes::Bytes;
use meridian_base::error::Result;
use meridian_base::key::Key;
use meridian_base::time::Timestamp;
use std::ops::{Bound, ControlFlow};

/// The newest version of a key.
pub(crate) fn current(spaces: &dyn Spaces, key: &[u8]) -> Result<Option<Version>> {
    match spaces.get(Space::Current, key)? {
        Some(raw) => codec::current(raw).map(Some).ok_or_else(|| spaces.malformed()),
        None => Ok(None),
    }
}

/// The newest versions of the keys that follow `key` in its index: at most `rows` of them, and
/// values of at most `bytes` bytes.
pub(crate) fn current_behind(view: &dyn View, key: &[u8], rows: usize, mut bytes: usize) -> Result<Vec<(Key, Version)>> {
    let mut found = Vec::new();
    let behind: RawRange = (Bound::Excluded(key), Bound::Unbounded);
    view.scan(Space::Current, behind, false, &mut |there, raw| {
        let is_next = there.first_chunk::<4>() == key.first_chunk::<4>() && raw.len() <= bytes;
        let Some(version) = is_next.then(|| codec::current(Bytes::copy_from_slice(raw))).flatten() else {
            return ControlFlow::Break(());
        };
        bytes -= raw.len();
        found.push((Key::new(there), version));
        if found.len() < rows { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(found)
}

/// So many keys are looked up one by one rather than by a walk through the stretch of the space
/// that they lie in.
const WALK_KEYS_MIN: usize = 8;
/// A walk looks at this many entries for each key that it looks for, and at this many more, before
/// the rest is looked up.
const WALK_PER_KEY: usize = 2;
const WALK_EXTRA: usize = 16;

/// [`current`] of several keys, which are in order: the places of those that have a version, with
/// it. Keys that lie close to each other, or where nothing is, cost one walk through the space
/// together.
pub(crate) fn current_of_many(spaces: &dyn Spaces, view: &dyn View, keys: &[&[u8]]) -> Result<Vec<(usize, Version)>> {
    let mut found = Vec::new();
    // The first key that is not looked up yet.
    let mut next = 0;
    if let [first, .., last] = keys
        && keys.len() >= WALK_KEYS_MIN
    {
        let stretch: RawRange = (Bound::Included(*first), Bound::Included(*last));
        let mut looks_left = WALK_PER_KEY * keys.len() + WALK_EXTRA;
        let mut outcome = Ok(());
        let mut is_whole = true;
        view.scan(Space::Current, stretch, false, &mut |there, raw| {
            // What lies before an entry and was not met has none.
            next += keys[next..].iter().position(|key| *key >= there).unwrap_or(keys.len() - next);
            while keys.get(next).is_some_and(|key| *key == there) {
                match codec::current(Bytes::copy_from_slice(raw)) {
                    Some(version) => found.push((next, version)),
                    None => outcome = Err(spaces.malformed()),
                }
                next += 1;
            }
            looks_left -= 1;
            is_whole = looks_left > 0 && outcome.is_ok();
            if is_whole && next < keys.len() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        outcome?;
        if is_whole {
            return Ok(found);
        }
    }
    for (at, key) in keys.iter().enumerate().skip(next) {
        found.extend(current(spaces, key)?.map(|version| (at, version)));
    }
    Ok(found)
}

/// [`current`] of keys that are to be written, from the first to the last, which are in order: the
/// places of those that have a version, with it. One walk over what is there.
pub(crate) fn current_beside(
    spaces: &dyn Spaces,
    view: &dyn View,
    entries: &[(Key, Bytes)],
    first: &Key,
    last: &Key,
) -> Result<Vec<(usize, Version)>> {
    let mut found = Vec::new();
    let mut next = 0;
    let mut outcome = Ok(());
    let stretch: RawRange = (Bound::Included(first.as_bytes()), Bound::Included(last.as_bytes()));
    view.scan(Space::Current, stretch, false, &mut |there, raw| {
        while entries.get(next).is_some_and(|(key, _)| key.as_bytes() < there) {
            next += 1;
        }
        if entries.get(next).is_some_and(|(key, _)| key.as_bytes() == there) {
            match codec::current(Bytes::copy_from_slice(raw)) {
                Some(version) => found.push((next, version)),
                None => outcome = Err(spaces.malformed()),
            }
        }
        if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    outcome.map(|()| found)
}

/// Visits an inclusive range of a key's entries in `history`, newest first.
fn scan_history(
    spaces: &dyn Spaces,
    view: &dyn View,
    key: &[u8],
    newest: Timestamp,
    oldest: Timestamp,
    visit: &mut dyn FnMut(Version, Timestamp) -> ControlFlow<()>,
) -> Result<()> {
    if newest < oldest {
        return Ok(());
    }
    let (low, high) = (codec::history_key(key, newest), codec::history_key(key, oldest));
    let range: RawRange = (Bound::Included(&low), Bound::Included(&high));
    let mut bad = false;
    view.scan(Space::History, range, false, &mut |raw_key, raw| {
        let at = raw_key.last_chunk::<8>().map(|at| Timestamp(!u64::from_be_bytes(*at)));
        match at.and_then(|at| codec::history(at, Bytes::copy_from_slice(raw))) {
            Some((version, until)) => visit(version, until),
            None => {
                bad = true;
                ControlFlow::Break(())
            }
        }
    })?;
    if bad { Err(spaces.malformed()) } else { Ok(()) }
}

/// The version in `history` that a reader at `at` sees, if `current` has only a newer one.
pub(crate) fn history_at(spaces: &dyn Spaces, view: &dyn View, key: &[u8], at: Timestamp) -> Result<Option<Version>> {
    let mut found = None;
    scan_history(spaces, view, key, at, Timestamp::MIN, &mut |version, until| {
        // One whose time has passed is garbage that a removed tombstone covered.
        found = (until > at).then_some(version);
        ControlFlow::Break(())
    })?;
    Ok(found)
}

/// The newest version at or below `at`, given the newest of all.
pub(crate) fn visible(
    spaces: &dyn Spaces,
    view: &dyn View,
    key: &[u8],
    newest: Option<Version>,
    at: Timestamp,
) -> Result<Option<Version>> {
    match newest {
        None => Ok(None),
        Some(version) if version.at <= at => Ok(Some(version)),
        Some(_) => history_at(spaces, view, key, at),
    }
}

/// Every version of a key in (`above`, `below`), both excluded, newest first, `current`'s included.
pub(crate) fn between(
    spaces: &dyn Spaces,
    view: &dyn View,
    key: &[u8],
    newest: Option<Version>,
    above: Timestamp,
    below: Timestamp,
) -> Result<Vec<Version>> {
    let Some(newest) = newest else { return Ok(Vec::new()) };
    if newest.at <= above {
        return Ok(Vec::new());
    }
    let highest_in_history = newest.at.min(below).prev();
    let mut all = Vec::new();
    if newest.at < below {
        all.push(newest);
    }
    scan_history(spaces, view, key, highest_in_history, above.next(), &mut |version, _| {
        all.push(version);
        ControlFlow::Continue(())
    })?;
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryDisk;
    use crate::backend::SpacesId;
    use meridian_base::id::GroupId;
    use meridian_base::txn::ColumnMask;
    use std::sync::Arc;

    fn version(at: u64) -> Version {
        Version { at: Timestamp(at), columns: ColumnMask::ALL, value: Some(Bytes::from_static(b"value")) }
    }
    /// 40 in `current`; 30, 20 and 10 in `history`, of which 20 was replaced at 25 by what is gone.
    /// Above them 50, which a flush that broke off before it wrote `current` has left.
    fn spaces() -> Arc<dyn Spaces> {
        let spaces = MemoryDisk::new().open().open_spaces(SpacesId { group: GroupId(1), incarnation: 1 }).unwrap();
        let mut value = Vec::new();
        spaces
            .write(5, &mut |sink| {
                for (at, until) in [(50, 60), (30, 40), (20, 25), (10, 20)] {
                    codec::put_history(&mut value, &version(at), Timestamp(until));
                    sink.put(Space::History, &codec::history_key(b"k", Timestamp(at)), &value)?;
                }
                codec::put_current(&mut value, &version(40));
                sink.put(Space::Current, b"k", &value)
            })
            .unwrap();
        spaces
    }

    #[test]
    fn a_reader_sees_the_newest_version_that_was_not_replaced_by_then() {
        let spaces = spaces();
        let sees = |at: u64| {
            let newest = current(&*spaces, b"k").unwrap();
            visible(&*spaces, &*spaces.view(), b"k", newest, Timestamp(at)).unwrap().map(|v| v.at.0)
        };
        let expected = [(9, None), (10, Some(10)), (19, Some(10)), (20, Some(20)), (24, Some(20))];
        expected.into_iter().for_each(|(at, version)| assert_eq!(sees(at), version, "at {at}"));
        let expected = [(25, None), (29, None), (30, Some(30)), (39, Some(30)), (40, Some(40)), (55, Some(40))];
        expected.into_iter().for_each(|(at, version)| assert_eq!(sees(at), version, "at {at}"));
        assert_eq!(visible(&*spaces, &*spaces.view(), b"j", None, Timestamp::MAX).unwrap(), None);
    }

    #[test]
    fn between_two_timestamps_are_all_versions_but_those_at_them() {
        let spaces = spaces();
        let of = |above: u64, below: u64| {
            let newest = current(&*spaces, b"k").unwrap();
            let all = between(&*spaces, &*spaces.view(), b"k", newest, Timestamp(above), Timestamp(below)).unwrap();
            all.iter().map(|v| v.at.0).collect::<Vec<_>>()
        };
        assert_eq!(of(0, u64::MAX), [40, 30, 20, 10]);
        assert_eq!(of(10, 40), [30, 20]);
        assert_eq!(of(9, 41), [40, 30, 20, 10]);
        assert_eq!(of(19, 21), [20]);
        assert_eq!(of(38, 41), [40]);
        for (above, below) in [(10, 20), (20, 21), (30, 31), (40, 41), (41, 99), (50, u64::MAX), (30, 30), (30, 20)] {
            assert_eq!(of(above, below), [0; 0], "{above} to {below}");
        }
        assert!(between(&*spaces, &*spaces.view(), b"j", None, Timestamp::MIN, Timestamp::MAX).unwrap().is_empty());
    }
}
