//! Which groups this node holds a replica of: the file `groups`.
//!
//! A replica's files say what it holds, and a replica without files says nothing: it would look
//! like one that is new. But a voter that has lost its log must not vote, and a founder that has
//! lost it must not found its group again: what it acknowledged would be forgotten. So the groups
//! are written down here as well, beside the files that say what is in them. A group that is listed
//! and has left no trace in log and store was lost, and the node refuses to start.
//!
//! A founder's group is listed when the group's first entry is durable and before the replica runs;
//! any other soon after its first entry. A group that the node leaves in good order is struck off
//! (see [`crate::membership::departure`]).

use crate::local::small_file;
use crate::membership::identity::LOST_HINT;
use meridian_base::runtime::Runtime;
use meridian_base::{Error, GroupId, Result};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

const FILE: &str = "groups";
const HEADER: &str = "meridian groups, format 1";
/// A file that is longer is not ours.
const BYTES_MAX: u64 = 16 << 20;

/// See the module.
#[derive(Default)]
pub(crate) struct Holdings {
    known: Mutex<BTreeSet<GroupId>>,
    /// Serializes writes of the file.
    writing: tokio::sync::Mutex<()>,
}

impl Holdings {
    /// Reads the file. A directory from before there was one has none, and gets one as its replicas
    /// run.
    pub fn load(runtime: &Arc<dyn Runtime>) -> Result<Holdings> {
        let place = runtime.disk().describe(FILE);
        let known = match small_file::read(runtime, FILE, BYTES_MAX) {
            Ok(text) => parse(&text).ok_or_else(|| small_file::unreadable(&place, &text, HEADER, LOST_HINT))?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => BTreeSet::new(),
            Err(e) => return Err(Error::fatal(format!("cannot read {place}: {e}"))),
        };
        Ok(Holdings { known: Mutex::new(known), ..Holdings::default() })
    }

    pub fn all(&self) -> BTreeSet<GroupId> {
        self.known.lock().clone()
    }

    pub fn has(&self, group: GroupId) -> bool {
        self.known.lock().contains(&group)
    }

    /// Lists groups; durable when this returns.
    pub async fn add(&self, runtime: &Arc<dyn Runtime>, groups: impl IntoIterator<Item = GroupId>) -> Result<()> {
        let groups: BTreeSet<GroupId> = groups.into_iter().collect();
        self.change(runtime, |known| known.extend(&groups)).await
    }

    /// Strikes a group off.
    pub async fn remove(&self, runtime: &Arc<dyn Runtime>, group: GroupId) -> Result<()> {
        self.change(runtime, |known| {
            known.remove(&group);
        })
        .await
    }

    async fn change(&self, runtime: &Arc<dyn Runtime>, change: impl FnOnce(&mut BTreeSet<GroupId>)) -> Result<()> {
        let _writing = self.writing.lock().await;
        let mut next = self.all();
        change(&mut next);
        if next == *self.known.lock() {
            return Ok(());
        }
        let failed = |e: io::Error| Error::fatal(format!("cannot write {}: {e}", runtime.disk().describe(FILE)));
        small_file::write(runtime, FILE, format(&next)).await.map_err(failed)?;
        *self.known.lock() = next;
        Ok(())
    }
}

fn format(known: &BTreeSet<GroupId>) -> String {
    let lines: String = known.iter().map(|g| format!("{}\n", g.0)).collect();
    let text = format!("{HEADER}\n{lines}");
    format!("{text}checksum {:08x}\n", crc32c::crc32c(text.as_bytes()))
}

/// `None` if anything is not as it was written.
fn parse(text: &str) -> Option<BTreeSet<GroupId>> {
    let (lines, checksum) = text.rsplit_once("checksum ")?;
    if u32::from_str_radix(checksum.trim(), 16).ok()? != crc32c::crc32c(lines.as_bytes()) {
        return None;
    }
    let lines = lines.strip_prefix(HEADER)?.strip_prefix('\n')?;
    lines.lines().map(|line| Some(GroupId(line.parse().ok()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn files_of_earlier_programs_are_read() {
        let file = include_str!("../../tests/fixtures/files/groups");
        let known = BTreeSet::from([GroupId(1), GroupId(107)]);
        assert_eq!(format(&known), file);
        assert_eq!(parse(file), Some(known));
    }

    #[test]
    fn what_was_written_is_read_back_and_damage_is_noticed() {
        let known = BTreeSet::from([GroupId(1), GroupId(107)]);
        let text = format(&known);
        assert_eq!(parse(&text), Some(known));
        for bad in [text.replace("107", "108"), text.replace("\n1\n", "\n"), String::new()] {
            assert_eq!(parse(&bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics_the_parser(text: String) {
            let _ = parse(&text);
            let _ = parse(&format!("{HEADER}\n{text}"));
        }
    }
}
