//! Two processes on one file. The test runs itself again as the second host, and kills it.

use bytes::Bytes;
use meridian_base::{GroupId, LogPosition, NodeId, Timestamp, TxnId};
use meridian_pod::memory::Mapping;
use meridian_pod::{
    Entry, FeedReader, FeedRecord, FeedWriter, Item, Logged, NoRoom, Phase, Purpose, Reference, RingWriter, Rings, Rules,
    Segment, Sizes, Slot,
};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

type Shared = Segment<Arc<Mapping>>;

/// What tells a process that it is the second host.
const FILE: &str = "MERIDIAN_POD_TEST_FILE";

const SIZES: Sizes = Sizes { ring: 8192, feed: 8192, ..Sizes::SMALL };

/// The transaction that host 1 pushes as its `n`th: each has another length, and its bytes tell
/// whether it is whole.
fn transaction(n: u64) -> Entry {
    let body: Vec<u8> = (0..n * 37 % 900).map(|i| (n * 31 + i) as u8).collect();
    let id = TxnId { hlc: Timestamp(n), gateway: NodeId(2) };
    Entry::Transaction(Logged { id, at: Timestamp(n * 10), slots: vec![Slot((n % 1024) as u16)], body: Bytes::from(body) })
}

/// Takes from the feed whatever is there; whether its own entries are what it pushed is the second
/// host's affair as well.
fn follow(segment: &Shared, reader: &mut FeedReader, ring: &mut RingWriter) {
    while let Some((record, end)) = reader.next(segment).unwrap() {
        for item in &record.items {
            let Item::Entry(reference) = item else { continue };
            assert_eq!(segment.entry(reference.place).unwrap(), transaction(reference.at.0 / 10), "it is there still");
            if reference.place.host == 1 {
                ring.fed(reference.place, end);
            }
        }
        reader.passed(segment);
    }
}

/// The second host: pushes until it is killed. It publishes at every third entry only, so that most
/// kills find something behind the tail.
#[test]
#[ignore = "the second process of the other test"]
fn second_host() {
    let Ok(file) = std::env::var(FILE) else { return };
    let segment = Segment::open_file(Path::new(&file)).unwrap();
    assert_eq!(segment.join(NodeId(2)).unwrap(), Some(1));
    while segment.host(1).unwrap().phase != Phase::Live {
        std::thread::yield_now();
    }
    let mut ring = RingWriter::new(&segment, 1, Rules::ALL);
    let mut reader = FeedReader::new(&segment, 1);
    for n in 1.. {
        let entry = transaction(n);
        while ring.write(&segment, &entry) == Err(NoRoom::Now) {
            ring.publish(&segment);
            follow(&segment, &mut reader, &mut ring);
            ring.reclaim(&segment).unwrap();
            std::thread::yield_now();
        }
        if n % 3 == 0 {
            ring.publish(&segment);
        }
    }
}

/// A process that does not outlive the test.
struct Host(Child);

impl Host {
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // It may have been killed already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(path: &Path) -> Host {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["processes::second_host", "--exact", "--ignored", "--nocapture"])
        .env(FILE, path)
        .stdout(Stdio::null())
        .spawn();
    Host(child.unwrap())
}

/// L, with host 1's process killed after it has taken `until` entries. Gives how many it took.
fn run(path: &Path, until: u64) -> u64 {
    let purpose = Purpose { generation: until, group: GroupId(2), term: 1 };
    let segment = Segment::create_file(path, SIZES, purpose).unwrap();
    let mut rings = Rings::new(&segment, Rules::ALL);
    assert_eq!(segment.join(NodeId(1)).unwrap(), Some(0));
    assert!(rings.admit(&segment, 0).unwrap());
    let (mut own, mut reader) = (RingWriter::new(&segment, 0, Rules::ALL), FeedReader::new(&segment, 0));
    let mut feed = FeedWriter::new();
    let mut child = start(path);
    while !rings.admit(&segment, 1).unwrap() {
        assert!(child.0.try_wait().unwrap().is_none(), "the second host ended by itself");
        std::thread::yield_now();
    }
    let (mut took, mut is_dead) = (0, false);
    loop {
        let entries = rings.take(&segment, 1, 2000).unwrap();
        rings.taken(&segment, 1);
        if entries.is_empty() && is_dead {
            break;
        }
        let mut items = Vec::new();
        for (place, entry) in &entries {
            took += 1;
            assert_eq!(*entry, transaction(took), "what lies before the tail is whole, and in order");
            let logged = entry.logged().unwrap();
            items.push(Item::Entry(Reference { place: *place, id: logged.id, at: logged.at, slots: logged.slots.clone() }));
        }
        rings.durable(&segment, entries.iter().map(|(_, entry)| entry));
        let record =
            FeedRecord { log: LogPosition { index: took, term: 1 }, closed: Timestamp::MIN, watermark: Timestamp::MIN, items };
        while feed.publish(&segment, &record) == Err(NoRoom::Now) {
            follow(&segment, &mut reader, &mut own);
            feed.reclaim(&segment).unwrap();
        }
        follow(&segment, &mut reader, &mut own);
        if !is_dead && took >= until {
            child.kill();
            rings.fence(&segment, 1).unwrap();
            is_dead = true;
        }
    }
    assert!(rings.seal(&segment, 1).unwrap());
    assert_eq!(segment.acked(), Timestamp(took * 10));
    took
}

#[test]
#[cfg_attr(miri, ignore = "Miri starts no processes and maps no files")]
fn what_a_killed_host_has_published_is_read_and_the_rest_is_not() {
    let directory = tempfile::tempdir().unwrap();
    for until in [1, 2, 7, 50, 400, 2000] {
        let took = run(&directory.path().join(format!("{until}")), until);
        assert!(took >= until);
        assert!(took.is_multiple_of(3) || took > 3, "it publishes whole groups, or what it has when the ring is full");
    }
}

/// A page that is not there reads as zeros: nothing that rests on them may get into the log.
#[test]
#[cfg_attr(miri, ignore = "Miri maps no files")]
fn nothing_is_taken_from_memory_that_was_cut() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memory");
    let purpose = Purpose { generation: 1, group: GroupId(2), term: 1 };
    let segment = Segment::create_file(&path, SIZES, purpose).unwrap();
    let mut rings = Rings::new(&segment, Rules::ALL);
    assert_eq!(segment.join(NodeId(1)).unwrap(), Some(0));
    assert!(rings.admit(&segment, 0).unwrap());
    let mut ring = RingWriter::new(&segment, 0, Rules::ALL);
    ring.push(&segment, &transaction(1)).unwrap();
    assert_eq!(rings.clone().take(&segment, 0, u64::MAX).unwrap().len(), 1);
    std::fs::File::options().write(true).open(&path).unwrap().set_len(4096).unwrap();
    assert!(rings.take(&segment, 0, u64::MAX).is_err());
    assert!(segment.is_over());
}
