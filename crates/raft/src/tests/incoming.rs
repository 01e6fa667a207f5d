//! A snapshot arrives in parts that may be lost, repeated and overtaken.

use super::*;
use crate::consensus::{SnapshotMeta, Vote, to_log_id};
use crate::incoming::Incoming;

#[derive(Debug)]
enum Part {
    Begin(u64),
    Chunk(u64, u32, &'static str),
    /// With the number of chunks.
    End(u64, u32),
}
use Part::*;

/// A part, and whether it is accepted.
type Line = (Part, bool);

fn run(script: Vec<Line>) -> Vec<String> {
    let recorder = Arc::new(Recorder::default());
    let machine = RecorderMachine(recorder.clone());
    let incoming = Incoming::default();
    let meta = || SnapshotMeta {
        last_log_id: to_log_id(LogPosition { index: 9, term: 2 }),
        last_membership: crate::consensus::StoredMembership::default(),
    };
    for (at, (part, is_accepted)) in script.into_iter().enumerate() {
        let shown = format!("line {at}, {part:?}");
        let accepted = match part {
            Begin(id) => incoming.begin(&machine, id, Vote::new_committed(2, 1), meta()).is_ok(),
            Chunk(id, number, text) => incoming.chunk(id, number, Bytes::from(text)).is_ok(),
            End(id, chunks) => match incoming.end(id, chunks) {
                Err(_) => false,
                Ok((vote, snapshot)) => {
                    assert_eq!(vote, Vote::new_committed(2, 1));
                    let crate::consensus::machine::SnapshotData::Sink(sink) = snapshot.snapshot else { panic!("a sink") };
                    sink.finish().unwrap();
                    true
                }
            },
        };
        assert_eq!(accepted, is_accepted, "{shown}");
    }
    texts(&recorder)
}

#[test]
fn a_snapshot_is_taken_whole_and_once() {
    let whole = run(vec![
        (Chunk(1, 0, "early"), false),
        (Begin(1), true),
        (Begin(1), true),
        (Chunk(1, 0, "a"), true),
        (Chunk(1, 0, "again"), true),
        (Chunk(1, 2, "overtaken"), false),
        (End(1, 2), false),
        (Chunk(2, 1, "of another transmission"), false),
        (Chunk(1, 1, "b"), true),
        (End(2, 2), false),
        (End(1, 3), false),
        (End(1, 2), true),
        (End(1, 2), false),
        (Chunk(1, 2, "late"), false),
    ]);
    assert_eq!(whole, ["a", "b"]);
    // A repetition of the beginning, when something was taken already, is the sender's second try: it sends everything again.
    assert_eq!(run(vec![(Begin(1), true), (Chunk(1, 0, "a"), true), (Begin(1), true), (End(1, 0), true)]), [""; 0]);
    // A new transmission replaces an unfinished one, of which nothing counts any more.
    let newer = run(vec![
        (Begin(1), true),
        (Chunk(1, 0, "old"), true),
        (Begin(2), true),
        (Chunk(1, 1, "old"), false),
        (End(1, 1), false),
        (Chunk(2, 0, "new"), true),
        (End(2, 1), true),
    ]);
    assert_eq!(newer, ["new"]);
}
