//! How much a transaction may write.
//!
//! | it writes | bound |
//! | --- | --- |
//! | a row, or an index entry | [`limits::ROW_BYTES_MAX`] |
//! | in several groups, or reads in others | [`limits::TXN_BYTES_MAX`]: a slice is one record |
//! | in one group | [`limits::LARGE_TXN_BYTES_MAX`]: the log has it in parts ([`meridian_base::parts`]) |
//!
//! What is written is in memory at the gateway until the commit, then at the primary and at every
//! replica. So what all large transactions of a node keep is bounded, too.

use super::Txn;
use crate::gateway::Gateway;
use crate::membership::space::disk_full;
use meridian_base::{Error, GroupId, Result, limits};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What a write takes beside its key and its value.
const WRITE_BYTES: usize = 32;
/// The next rows of a load of several groups have room above this.
const SEVERAL_NEAR_MAX: usize = limits::TXN_BYTES_MAX / 4 * 3;
/// Room is taken by so much at a time.
const STEP_BYTES: usize = 16 << 20;

/// A part of [`limits::LARGE_TXNS_BYTES_MAX`]; it is given back when this is dropped.
pub(crate) struct Room {
    gateway: Arc<Gateway>,
    bytes: usize,
}

impl Room {
    /// Takes more. Whether there was as much.
    fn grow(&mut self, bytes: usize) -> bool {
        let add = |taken: usize| (taken + bytes <= limits::LARGE_TXNS_BYTES_MAX).then_some(taken + bytes);
        let is_there = self.gateway.large.fetch_update(Ordering::AcqRel, Ordering::Acquire, add).is_ok();
        self.bytes += if is_there { bytes } else { 0 };
        is_there
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.gateway.large.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

/// 53200.
fn too_large(bytes_max: usize, why: &str) -> Error {
    Error::too_large(format!("{why} exceed {} MiB.", bytes_max >> 20)).hint("Split the work into several transactions.")
}

impl Txn {
    /// Counts a write of `bytes` bytes in a group. An error (53200, 53100) if it is too much.
    pub(super) fn grow(&mut self, group: GroupId, bytes: usize) -> Result<()> {
        if bytes > limits::ROW_BYTES_MAX {
            return Err(too_large(limits::ROW_BYTES_MAX, "The bytes of one row"));
        }
        self.bytes += bytes + WRITE_BYTES;
        if self.bytes <= limits::TXN_BYTES_MAX {
            return Ok(());
        }
        if self.parts.iter().any(|part| part.group != group && part.takes_part()) {
            return Err(over_groups());
        }
        let bytes_max = match self.gateway.shared.groups.common.may_write_parts() {
            true => limits::LARGE_TXN_BYTES_MAX,
            false => limits::TXN_BYTES_MAX,
        };
        if self.bytes > bytes_max {
            return Err(too_large(bytes_max, "Its writes"));
        }
        self.keep_large()
    }

    /// Whether it has written most of what it may in several groups, or as much in one as a load
    /// keeps in memory.
    pub(super) fn nears_bytes_max(&self) -> bool {
        let is_in_one = self.parts.iter().filter(|part| part.takes_part()).count() <= 1;
        let bytes_max = if is_in_one { self.gateway.shared.groups.common.large_from.load_bytes } else { SEVERAL_NEAR_MAX };
        self.bytes > bytes_max
    }

    fn keep_large(&mut self) -> Result<()> {
        let gateway = &self.gateway;
        let room = self.room.get_or_insert_with(|| Room { gateway: gateway.clone(), bytes: 0 });
        if self.bytes <= room.bytes {
            return Ok(());
        }
        // In the log, in what is flushed of it, and in a compaction.
        if !gateway.shared.groups.common.room.admits(3 * self.bytes as u64) {
            return Err(disk_full("The disk of this node has no room for a transaction of this size."));
        }
        if room.grow(STEP_BYTES) {
            return Ok(());
        }
        Err(Error::sql("53200", "too many large transactions at once")
            .detail(format!("What they write takes {} MiB on this node.", limits::LARGE_TXNS_BYTES_MAX >> 20))
            .hint("Run the transaction again later, or split the work into several."))
    }

    /// Whether its slice goes to the primary in pieces.
    pub(super) fn is_brought(&self) -> bool {
        let common = &self.gateway.shared.groups.common;
        common.may_write_parts() && self.bytes > common.large_from.slice_bytes
    }

    /// Whether what it writes is too much for one record of one of several groups.
    pub(super) fn is_over_groups(&self) -> bool {
        self.bytes > limits::TXN_BYTES_MAX
    }
}

/// 53200.
pub(super) fn over_groups() -> Error {
    too_large(limits::TXN_BYTES_MAX, "The writes of a transaction that reads or writes rows of several regions, or homes,")
}
