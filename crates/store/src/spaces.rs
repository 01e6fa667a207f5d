//! Versions in a group's spaces: [`crate::codec`] over [`crate::backend`].

use crate::backend::{RawRange, Space, Spaces, View};
use crate::codec;
use crate::version::Version;
use bytes::Bytes;
use meridian_base::error::{Error, Result};
use meridian_base::time::Timestamp;
use std::ops::{Bound, ControlFlow};

fn malformed(spaces: &dyn Spaces) -> Error {
    codec::damaged(&spaces.describe(), "an entry that cannot be read")
}

/// The newest version of a key.
pub(crate) fn current(spaces: &dyn Spaces, key: &[u8]) -> Result<Option<Version>> {
    match spaces.get(Space::Current, key)? {
        Some(raw) => codec::current(raw).map(Some).ok_or_else(|| malformed(spaces)),
        None => Ok(None),
    }
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
    if bad { Err(malformed(spaces)) } else { Ok(()) }
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
