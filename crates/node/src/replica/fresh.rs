//! What a gateway is told whose reads were out of date.

use crate::replica::Replica;
use meridian_base::{Fresh, ReadEntry, Result, limits};

impl Replica {
    /// The newest versions of what was read and has changed since, for the retry of a gateway that
    /// reads at a replica.
    pub(crate) fn out_of_date(&self, reads: &[ReadEntry]) -> Result<Vec<Fresh>> {
        let mut fresh: Vec<Fresh> = Vec::new();
        for entry in reads.iter().filter(|e| e.until >= self.store.gc_threshold()) {
            if fresh.len() >= limits::FRESH_MAX {
                break;
            }
            let Some((key, _)) = self.store.changed_after(&entry.target, entry.columns, entry.until)? else { continue };
            let Some(newest) = self.store.newest(key.as_bytes())? else { continue };
            fresh.push(Fresh { key, value: newest.value, version: newest.at, until: newest.at });
        }
        Ok(fresh)
    }
}
