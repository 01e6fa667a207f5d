//! Entries of a new index, as versions at one timestamp of the past, beside what writers have done
//! to it since.
//!
//! The log has none of them. Who computes them from other rows can do that again, and writing a
//! version twice is harmless: so what a crash leaves of an ingestion is written over by the next
//! one. It is durable with the next flush ([`GroupStore::flush_step`]).
//!
//! # What a key may have already
//!
//! - *Nothing*, or an older version: the entry becomes the newest in `current`.
//! - *Something newer*, in `current`: the entry goes into `history`.
//! - *Something newer in the row table alone*: the entry becomes the newest in `current`, where the
//!   flush of the newer one finds it, as it finds any version that was replaced.
//! - *Something older in the row table*: the entry takes its place there too, since a row of the
//!   table has all versions between its newest and its oldest.

use crate::group::{GroupStore, LOCK_ROWS, RowWriter};
use crate::spaces;
use crate::version::Version;
use bytes::Bytes;
use meridian_base::error::{Error, Result};
use meridian_base::key::Key;
use meridian_base::time::Timestamp;
use meridian_base::txn::ColumnMask;

impl GroupStore {
    /// Which content this is: another one after each import.
    pub fn incarnation(&self) -> u64 {
        self.flushing.lock().incarnation
    }

    /// Adds entries of one index, in ascending order of their keys, as versions at `at`. `false` if
    /// one of these keys has another value at `at`, which stays; keys that have a newer version are
    /// not looked at.
    ///
    /// The caller promises that everything that the log has at or below `at` is applied, and that
    /// nobody reads the index yet, nor before all of its entries are there. An error of kind
    /// `Unavailable` if the content is not that of `incarnation` any more. Waits for a flush under
    /// way; blocks on the disk, but neither readers nor the applier. Below
    /// [`GroupStore::gc_threshold`]: an error (72000).
    pub fn ingest(&self, incarnation: u64, at: Timestamp, entries: &[(Key, Bytes)]) -> Result<bool> {
        let mut flushing = self.flushing.lock();
        self.check_not_retired(&flushing)?;
        if flushing.incarnation != incarnation {
            return Err(Error::unavailable(format!("the content of group {} was replaced", self.id())));
        }
        self.check_readable(at)?;
        let (Some((first, _)), Some((last, _))) = (entries.first(), entries.last()) else { return Ok(true) };
        debug_assert!(entries.is_sorted_by(|a, b| a.0 < b.0), "keys ascend");
        let spaces = {
            let mut inner = self.inner.write();
            inner.table.expect(first.as_bytes(), at);
            inner.spaces.clone()
        };
        self.raise_bound(&mut flushing, at)?;
        let there = spaces::current_beside(&*spaces, &*spaces.view(), entries, first, last)?;
        let mut is_alone = true;
        spaces.write(entries.len(), &mut |sink| {
            let mut out = RowWriter { sink, key: Vec::new(), value: Vec::new() };
            let mut there = there.iter().peekable();
            for (place, (key, value)) in entries.iter().enumerate() {
                let entry = version(at, value);
                let before = there.next_if(|(of, _)| *of == place).map(|(_, version)| version);
                match before {
                    Some(same) if same.at == at => is_alone &= same.value == entry.value,
                    Some(newer) if newer.at > at => out.history(key.as_bytes(), &entry, newer.at)?,
                    older => {
                        if let Some(older) = older {
                            out.history(key.as_bytes(), older, at)?;
                        }
                        out.current(key.as_bytes(), &entry)?;
                    }
                }
            }
            Ok(())
        })?;
        // A reader that looked into the spaces before must not take what it found for the newest.
        self.inner.write().table.epoch += 1;
        for entries in entries.chunks(LOCK_ROWS) {
            self.inner.write().table.insert_between(entries, at, &self.shared.totals);
        }
        Ok(is_alone)
    }
}

fn version(at: Timestamp, value: &Bytes) -> Version {
    Version { at, columns: ColumnMask::ALL, value: Some(value.clone()) }
}
