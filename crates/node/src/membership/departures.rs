//! The groups that this node has left: the file `departures` ([`crate::membership::departure`] says
//! what it is for).

use crate::local::small_file;
use crate::membership::identity::LOST_HINT;
use meridian_base::runtime::Runtime;
use meridian_base::{Error, GroupId, Result};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

const FILE: &str = "departures";

const HEADER: &str = "meridian departures, format 1";

/// A file that is longer is not ours: a line for every group a node ever held.
const BYTES_MAX: u64 = 16 << 20;

/// One departure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Departure {
    /// The last entry of the log that was deleted.
    pub last: u64,
    /// The group took this node in again.
    pub is_back: bool,
}

/// What this node knows of groups it left.
#[derive(Default)]
pub(crate) struct Departures {
    known: Mutex<BTreeMap<GroupId, Departure>>,
    /// Groups whose replica is about to go: it does not listen.
    pub going: Mutex<BTreeSet<GroupId>>,
    /// Serializes writes of the file.
    writing: tokio::sync::Mutex<()>,
}

impl Departures {
    /// Reads the file. One that cannot be read is refused: forgetting a departure could give a
    /// group two leaders.
    pub fn load(runtime: &Arc<dyn Runtime>) -> Result<Departures> {
        let place = runtime.disk().describe(FILE);
        let known = match small_file::read(runtime, FILE, BYTES_MAX) {
            Ok(text) => parse(&text).ok_or_else(|| small_file::unreadable(&place, &text, HEADER, LOST_HINT))?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(e) => return Err(Error::fatal(format!("cannot read {place}: {e}"))),
        };
        Ok(Departures { known: Mutex::new(known), ..Departures::default() })
    }

    /// Whether it ever left the group: then it founds it no more.
    pub fn ever_left(&self, group: GroupId) -> bool {
        self.known.lock().contains_key(&group)
    }

    /// Groups that it left and has not been taken into again.
    pub fn left(&self) -> BTreeSet<GroupId> {
        self.known.lock().iter().filter(|(_, d)| !d.is_back).map(|(group, _)| *group).collect()
    }

    pub fn get(&self, group: GroupId) -> Option<Departure> {
        self.known.lock().get(&group).copied()
    }

    /// Writes the file first: what this process goes by is what a restart finds. A node that took
    /// part in a group again while its file says that it left would delete the replica at its next
    /// start.
    pub async fn set(&self, runtime: &Arc<dyn Runtime>, group: GroupId, departure: Departure) -> Result<()> {
        let _writing = self.writing.lock().await;
        let mut known = self.known.lock().clone();
        known.insert(group, departure);
        let failed = |e: io::Error| Error::fatal(format!("cannot write {}: {e}", runtime.disk().describe(FILE)));
        small_file::write(runtime, FILE, format(&known)).await.map_err(failed)?;
        *self.known.lock() = known;
        Ok(())
    }
}

fn format(known: &BTreeMap<GroupId, Departure>) -> String {
    let lines = known.iter().map(|(g, d)| format!("{} {} {}\n", g.0, d.last, if d.is_back { "back" } else { "left" }));
    format!("{HEADER}\n{}", lines.collect::<String>())
}

/// `None` if anything is not as it was written.
fn parse(text: &str) -> Option<BTreeMap<GroupId, Departure>> {
    let lines = text.strip_prefix(HEADER)?.strip_prefix('\n')?;
    let of_line = |line: &str| {
        let mut words = line.split(' ');
        let (group, last) = (GroupId(words.next()?.parse().ok()?), words.next()?.parse().ok()?);
        let is_back = match words.next()? {
            "back" => true,
            "left" => false,
            _ => return None,
        };
        words.next().is_none().then_some((group, Departure { last, is_back }))
    };
    lines.lines().map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn files_of_earlier_programs_are_read() {
        let file = include_str!("../../tests/fixtures/files/departures");
        let back = Departure { last: 0, is_back: true };
        let known = BTreeMap::from([(GroupId(9), back), (GroupId(107), Departure { last: 12, is_back: false })]);
        assert_eq!(format(&known), file);
        assert_eq!(parse(file), Some(known));
    }

    #[test]
    fn what_was_written_is_read_back_and_damage_is_noticed() {
        let known = BTreeMap::from([
            (GroupId(107), Departure { last: 12, is_back: false }),
            (GroupId(9), Departure { last: 0, is_back: true }),
        ]);
        let text = format(&known);
        assert_eq!(parse(&text), Some(known));
        for bad in [text.replace("left", "lost"), text.replace("107", "x"), text.replace("12", "12 3"), "12 3 left\n".into()] {
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
