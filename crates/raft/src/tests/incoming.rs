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
    // A repetition of the beginning, when something was taken already, is the sender's second try:
    // it sends everything again.
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

/// A store that refuses what the script says.
#[derive(Default)]
struct Refusing {
    imports: AtomicU64,
    chunks: Arc<AtomicU64>,
}

struct RefusingSink(Arc<AtomicU64>);

impl StateMachine for Refusing {
    fn recovered(&self) -> Option<Recovered> {
        None
    }
    fn apply(&self, _batch: Vec<AppliedEntry>) -> Result<()> {
        Ok(())
    }
    fn export(&self) -> Result<Box<dyn SnapshotSource>> {
        Err(Error::unavailable("nothing to export"))
    }
    fn import(&self, _header: SnapshotHeader) -> Result<Box<dyn SnapshotSink>> {
        refuse(&self.imports).map(|()| Box::new(RefusingSink(self.chunks.clone())) as Box<dyn SnapshotSink>)
    }
}

impl SnapshotSink for RefusingSink {
    fn write(&mut self, _chunk: Bytes) -> Result<()> {
        refuse(&self.0)
    }
    fn finish(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

fn refuse(left: &AtomicU64) -> Result<()> {
    match left.load(Ordering::Relaxed) {
        0 => Ok(()),
        _ => {
            left.fetch_sub(1, Ordering::Relaxed);
            Err(Error::unavailable("no room"))
        }
    }
}

/// Whatever the store has taken of a snapshot that it then refused is gone: the sender begins
/// again.
#[test]
fn a_snapshot_that_the_store_refused_a_part_of_is_not_gone_on_with() {
    let machine = Refusing::default();
    let incoming = Incoming::default();
    let begin = |id| {
        let meta = SnapshotMeta { last_log_id: None, last_membership: crate::consensus::StoredMembership::default() };
        incoming.begin(&machine, id, Vote::new_committed(2, 1), meta).is_ok()
    };
    assert!(begin(1) && incoming.chunk(1, 0, Bytes::from("a")).is_ok());
    machine.chunks.store(1, Ordering::Relaxed);
    assert!(incoming.chunk(1, 1, Bytes::from("b")).is_err());
    assert!(incoming.chunk(1, 1, Bytes::from("b")).is_err() && incoming.end(1, 1).is_err());
    // The next one takes the place of an unfinished one before the store is asked: it may need its
    // room.
    assert!(begin(2));
    machine.imports.store(1, Ordering::Relaxed);
    assert!(!begin(3));
    assert!(incoming.end(2, 0).is_err());
}
