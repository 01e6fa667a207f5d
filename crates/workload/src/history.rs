//! What clients did and saw, in the one form that all checkers judge: a line of JSON per
//! transaction.
//!
//! A history is what clients *observed*: the times are those at which a client sent its first
//! statement and learned the outcome. A transaction whose outcome the client never learned is kept,
//! as [`Outcome::Unknown`]: it may have happened at any time after its start, or never.

use meridian_base::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::sync::{Arc, Mutex};

/// What became of a transaction, as far as its client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Acknowledged.
    Committed,
    /// Refused, or never sent: it had no effect.
    Aborted,
    /// The client cannot know (40003, or the connection was lost after COMMIT was sent).
    Unknown,
}

/// One read or write inside a transaction, with what was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// Adds a value to the end of a key's list. A history adds no value to a key twice.
    Append { key: i64, value: i64 },
    /// A key's whole list; a key without a row has an empty one.
    ReadList { key: i64, values: Vec<i64> },
    /// The lists of all keys in `from..to` that have a row: a predicate read. The keys that are
    /// missing were seen as missing.
    ReadRange { from: i64, to: i64, lists: BTreeMap<i64, Vec<i64>> },
    /// Removes a key, whose list was this one. Nothing is appended to it afterwards.
    Delete { key: i64, values: Vec<i64> },
    /// Stands first: all that follows was read as of a moment of the past.
    Past,
    /// Sets a register.
    Write { key: i64, value: i64 },
    /// Reads a register; `None` before the first write.
    Read { key: i64, value: Option<i64> },
    /// Sets a register if it has the expected value; `swapped` says whether it had.
    CompareAndSet { key: i64, expected: i64, new: i64, swapped: bool },
    /// Moves money between accounts.
    Transfer { id: i64, from: i64, to: i64, amount: i64 },
    /// All balances in one snapshot.
    ReadBalances { balances: BTreeMap<i64, i64> },
}

/// One transaction of one client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The client. One client does one thing at a time.
    pub client: u32,
    /// When its first statement was sent, in the timer's microseconds.
    pub invoked: u64,
    /// When the outcome was learned; `None` if it never was.
    pub completed: Option<u64>,
    pub outcome: Outcome,
    /// In the order in which they ran.
    pub ops: Vec<Op>,
}

/// The records of a run, shared by its clients.
#[derive(Clone, Debug, Default)]
pub struct History(Arc<Mutex<Observed>>);

#[derive(Debug, Default)]
struct Observed {
    records: Vec<Record>,
    untrue: Vec<String>,
}

impl History {
    /// Empty.
    pub fn new() -> History {
        History::default()
    }
    /// Adds a finished transaction.
    pub fn push(&self, record: Record) {
        self.0.lock().expect("no panic while recording").records.push(record);
    }
    /// Everything recorded so far, in the order of recording.
    pub fn records(&self) -> Vec<Record> {
        self.0.lock().expect("no panic while recording").records.clone()
    }
    /// A client was told something that nobody stands for: a violation, whatever the workload.
    pub fn note_untrue(&self, what: String) {
        self.0.lock().expect("no panic while recording").untrue.push(what);
    }
    /// What clients were told and nobody stands for.
    pub fn untrue(&self) -> Vec<String> {
        self.0.lock().expect("no panic while recording").untrue.clone()
    }
}

/// Writes one line of JSON per record.
pub fn write_lines(records: &[Record], out: &mut impl Write) -> std::io::Result<()> {
    for record in records {
        serde_json::to_writer(&mut *out, record)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Reads what [`write_lines`] wrote; empty lines are skipped, a bad one is named.
pub fn read_lines(input: impl BufRead) -> Result<Vec<Record>> {
    let mut records = Vec::new();
    for (number, line) in input.lines().enumerate() {
        let bad = |e: &dyn std::fmt::Display| {
            Error::sql("22023", format!("line {} is not a record of a history", number + 1)).detail(e.to_string())
        };
        let line = line.map_err(|e| bad(&e))?;
        if !line.trim().is_empty() {
            records.push(serde_json::from_str(&line).map_err(|e| bad(&e))?);
        }
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn example() -> Vec<Record> {
        vec![
            Record {
                client: 1,
                invoked: 10,
                completed: Some(20),
                outcome: Outcome::Committed,
                ops: vec![
                    Op::Append { key: 1, value: 7 },
                    Op::ReadRange { from: 0, to: 9, lists: BTreeMap::from([(1, vec![7])]) },
                ],
            },
            Record {
                client: 2,
                invoked: 11,
                completed: None,
                outcome: Outcome::Unknown,
                ops: vec![Op::Read { key: 3, value: None }],
            },
        ]
    }

    #[test]
    fn lines_are_read_back_as_written() {
        let mut text = Vec::new();
        write_lines(&example(), &mut text).expect("writing to memory");
        assert_eq!(read_lines(&text[..]).expect("valid"), example());
    }

    #[test]
    fn a_damaged_line_is_named() {
        let error = read_lines(&b"\n{\"client\":1}\n"[..]).expect_err("damaged");
        assert!(error.message().contains("line 2"), "{error}");
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read_lines(&bytes[..]);
        }
    }
}
