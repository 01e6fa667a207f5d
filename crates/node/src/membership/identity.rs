//! Who a data directory belongs to: the file `node`.

use crate::local::small_file;
use meridian_base::runtime::Runtime;
use meridian_base::{Error, GroupId, NodeId, Result};
use meridian_raft::NodeLog;
use meridian_store::Store;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

const FILE: &str = "node";
/// A file that is longer is not ours.
const BYTES_MAX: u64 = 4096;
/// The version of the data directory's layout as a whole.
const FORMAT: u32 = 4;
/// Directories of this format are upgraded in place: in those of format 4 the catalog may hold a
/// cluster version, which programs from before do not look at.
const OLDEST_FORMAT: u32 = 3;

/// What the file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub cluster: u128,
    pub node: NodeId,
    /// This node founds the cluster, and the catalog's first rows may not be there yet. Nobody else
    /// ever begins a catalog: a node whose copy of it is gone would otherwise begin an empty one.
    pub is_founding: bool,
}

/// Reads the identity; `None` in an empty directory. A directory of another version is refused.
pub fn load(runtime: &Arc<dyn Runtime>) -> Result<Option<Identity>> {
    let place = runtime.disk().describe(FILE);
    let Some(text) = read(runtime)? else { return Ok(None) };
    match parse(&text) {
        Ok(identity) => Ok(Some(identity)),
        Err(Unusable::Newer(format)) => Err(Error::fatal(format!(
            "{place}: the data directory has format {format}, which is newer than this program's ({FORMAT})"
        ))
        .hint("Start the version of meridian that wrote it, or a newer one.")),
        Err(Unusable::Older(format)) => Err(Error::fatal(format!(
            "{place}: the data directory has format {format}, which this program, whose format is {FORMAT}, cannot read"
        ))
        .hint("Start the version of meridian that wrote it.")),
        Err(Unusable::Damaged(why)) => Err(Error::fatal(format!("{place} is damaged: {why}")).hint(LOST_HINT)),
    }
}

/// Whether the directory is of an older format, which is upgraded by [`save`].
pub fn is_older(runtime: &Arc<dyn Runtime>) -> Result<bool> {
    let text = read(runtime)?.unwrap_or_default();
    Ok(format_of(&text).is_some_and(|format| format < FORMAT))
}

fn read(runtime: &Arc<dyn Runtime>) -> Result<Option<String>> {
    match small_file::read(runtime, FILE, BYTES_MAX) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::fatal(format!("cannot read {}: {e}", runtime.disk().describe(FILE)))),
    }
}

pub(crate) const LOST_HINT: &str =
    "Bring the file back, or remove this node from the cluster and add it again with an empty data directory.";

/// A directory that says whose it is has had a log from the first start on. To begin an empty one
/// would be to forget what was acknowledged.
pub fn check_log(runtime: &Arc<dyn Runtime>, known: Option<&Identity>) -> Result<()> {
    if known.is_none() || NodeLog::exists(runtime)? {
        return Ok(());
    }
    let place = runtime.disk().describe("log");
    Err(Error::fatal(format!("there is no log file in {place}, although this node has run before")).hint(LOST_HINT))
}

/// A directory with data says whose it is.
pub fn check_data(runtime: &Arc<dyn Runtime>, known: Option<&Identity>, log: &NodeLog, store: &Store) -> Result<()> {
    if known.is_some() || (log.groups().is_empty() && store.groups().is_empty()) {
        return Ok(());
    }
    let place = runtime.disk().describe(FILE);
    Err(Error::fatal(format!("{place} is missing, although the data directory holds data")).hint(LOST_HINT))
}

/// A group that the node holds a replica of has left something in its log or its store.
pub fn check_holdings(runtime: &Arc<dyn Runtime>, held: BTreeSet<GroupId>, log: &NodeLog, store: &Store) -> Result<()> {
    let stored: BTreeSet<GroupId> = store.groups().into_iter().collect();
    match held.into_iter().find(|group| log.is_empty(*group) && !stored.contains(group)) {
        None => Ok(()),
        Some(group) => {
            let place = runtime.disk().describe("");
            Err(Error::fatal(format!("the replica of group {group} is gone from {place}, although this node held one"))
                .hint(LOST_HINT))
        }
    }
}

/// Writes the identity, durably and all at once.
pub async fn save(runtime: &Arc<dyn Runtime>, identity: Identity) -> Result<()> {
    let failed = |e: io::Error| Error::fatal(format!("cannot write {}: {e}", runtime.disk().describe(FILE)));
    small_file::write(runtime, FILE, text(identity, FORMAT)).await.map_err(failed)
}

const CHECKSUM: &str = "checksum ";
const FOUNDING: &str = "founding\n";

/// With a checksum of the lines before it: another id is another node's.
fn text(identity: Identity, format: u32) -> String {
    let lines =
        format!("meridian data directory\nformat {format}\ncluster {:032x}\nnode {}\n", identity.cluster, identity.node.0);
    let lines = if identity.is_founding { lines + FOUNDING } else { lines };
    let checksum = crc32c::crc32c(lines.as_bytes());
    format!("{lines}{CHECKSUM}{checksum:08x}\n")
}

#[derive(Debug, PartialEq)]
enum Unusable {
    Newer(u32),
    Older(u32),
    Damaged(&'static str),
}

fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|l| l.strip_prefix(name)).map(str::trim)
}

fn format_of(text: &str) -> Option<u32> {
    field(text, "format ").and_then(|v| v.parse().ok())
}

fn parse(text: &str) -> std::result::Result<Identity, Unusable> {
    use Unusable::Damaged;
    let field = |name: &str| field(text, name);
    let format = format_of(text).ok_or(Damaged("it does not name a format"))?;
    if format > FORMAT {
        return Err(Unusable::Newer(format));
    }
    if format < OLDEST_FORMAT {
        return Err(Unusable::Older(format));
    }
    let (lines, checksum) =
        text.rsplit_once(CHECKSUM).ok_or(Damaged("its checksum is missing (or it was written before there was one)"))?;
    if u32::from_str_radix(checksum.trim(), 16).ok() != Some(crc32c::crc32c(lines.as_bytes())) {
        return Err(Damaged("it is not what was written"));
    }
    let cluster = field("cluster ").and_then(|v| u128::from_str_radix(v, 16).ok()).ok_or(Damaged("it has no cluster id"))?;
    let node = field("node ").and_then(|v| v.parse().ok()).ok_or(Damaged("it has no node id"))?;
    Ok(Identity { cluster, node: NodeId(node), is_founding: lines.ends_with(FOUNDING) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Format 3 is upgraded in place.
    #[test]
    fn files_of_earlier_programs_are_read() {
        let known = Identity { cluster: 0xfeed, node: NodeId(3), is_founding: false };
        let founder = Identity { node: NodeId(1), is_founding: true, ..known };
        for (file, identity, format) in [
            (include_str!("../../tests/fixtures/files/node-3"), known, 3),
            (include_str!("../../tests/fixtures/files/node"), known, 4),
            (include_str!("../../tests/fixtures/files/node-founding"), founder, 4),
        ] {
            assert_eq!(parse(file), Ok(identity));
            assert_eq!(text(identity, format), file);
        }
    }

    #[test]
    fn an_identity_is_read_back_and_bad_files_are_told_apart() {
        let identity = Identity { cluster: 255, node: NodeId(3), is_founding: false };
        let founder = Identity { is_founding: true, ..identity };
        assert_eq!(parse(&text(founder, FORMAT)), Ok(founder));
        assert_eq!(parse(&text(identity, OLDEST_FORMAT)), Ok(identity));
        assert_eq!(parse(&text(identity, FORMAT + 1)), Err(Unusable::Newer(FORMAT + 1)));
        assert_eq!(parse(&text(identity, OLDEST_FORMAT - 1)), Err(Unusable::Older(OLDEST_FORMAT - 1)));
        let text = text(identity, FORMAT);
        assert_eq!(parse(&text), Ok(identity));
        assert!(parse("hello").is_err() && parse("").is_err());
        for at in 0..text.len() {
            for bit in 0..7 {
                let mut bytes = text.clone().into_bytes();
                bytes[at] ^= 1 << bit;
                let read = parse(&String::from_utf8_lossy(&bytes));
                // Space around the checksum says nothing.
                assert!(read.is_err() || read == Ok(identity), "{:?}", String::from_utf8_lossy(&bytes));
            }
        }
    }
}
