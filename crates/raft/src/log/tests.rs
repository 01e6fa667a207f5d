//! The log against crashes, damage and failing disks.

use super::*;
use crate::testing::{FileDisk, MemoryDisk, TestRuntime};
use bytes::Bytes;
use meridian_base::runtime::Disk;
use meridian_base::{ErrorKind, NodeId, workers};
use proptest::prelude::*;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::time::Duration;

const G: GroupId = GroupId(7);

fn options() -> LogOptions {
    LogOptions {
        segment_bytes: 4_096,
        prepare_bytes: 1_024,
        cache_bytes_per_group: 300,
        spare_segments_max: 1,
        segments_wanted_max: 3,
    }
}

fn entry(index: u64, term: u64, bytes: usize) -> LogEntry {
    let body = Bytes::from(format!("{index}@{term}:").into_bytes().repeat(bytes / 4 + 1));
    LogEntry { position: LogPosition { index, term }, kind: EntryKind::Payload, body }
}

async fn open<D: Disk + Clone>(disk: &D) -> Result<NodeLog> {
    NodeLog::open(Arc::new(TestRuntime::new(disk.clone(), 1)), options()).await
}

/// Appends and waits until it is durable.
async fn append(group: &GroupHandle, entries: Vec<LogEntry>) -> Result<()> {
    let (send, receive) = oneshot::channel();
    group.append(entries, move |r| drop(send.send(r)));
    receive.await.expect("the writer answers")
}

async fn all(group: &GroupHandle) -> Vec<LogEntry> {
    let (purged, last) = group.bounds();
    group.read(purged.index + 1, last.index + 1, usize::MAX).await.unwrap()
}

fn has_segment(disk: &dyn Disk, number: u64) -> bool {
    disk.list(segment::FOLDER).unwrap().iter().any(|name| segment::parse_segment_name(name) == Some(number))
}

#[tokio::test(start_paused = true)]
async fn what_is_written_is_there_after_a_restart() {
    let disk = MemoryDisk::default();
    let log = open(&disk).await.unwrap();
    let (a, b) = (log.group(G), log.group(GroupId(3)));
    let vote = Vote { term: 2, node: NodeId(4), committed: true };
    a.save_vote(vote).await.unwrap();
    append(&a, (1..=30).map(|i| entry(i, 1, 200)).collect()).await.unwrap();
    append(&b, vec![entry(1, 1, 0)]).await.unwrap();
    a.truncate(20);
    a.purge(LogPosition { index: 5, term: 1 });
    append(&a, vec![entry(21, 2, 10)]).await.unwrap();
    let before = all(&a).await;
    assert_eq!(before.len(), 16);
    drop((a, b, log));

    let log = open(&disk.reboot()).await.unwrap();
    assert_eq!(log.groups(), [GroupId(3), G]);
    let a = log.group(G);
    assert_eq!(a.vote(), Some(vote));
    assert_eq!(a.bounds(), (LogPosition { index: 5, term: 1 }, LogPosition { index: 21, term: 2 }));
    assert_eq!(all(&a).await, before);
    assert_eq!(log.group(GroupId(3)).bounds().1.index, 1);
}

#[tokio::test(start_paused = true)]
async fn a_group_that_was_forgotten_keeps_its_vote_and_begins_anew() {
    let disk = MemoryDisk::default();
    let log = open(&disk).await.unwrap();
    let a = log.group(G);
    let vote = Vote { term: 2, node: NodeId(4), committed: true };
    a.save_vote(vote).await.unwrap();
    append(&a, (1..=60).map(|i| entry(i, 1, 200)).collect()).await.unwrap();
    a.purge(LogPosition { index: 50, term: 1 });
    log.forget(G).await.unwrap();
    assert_eq!((a.bounds(), a.vote()), (Default::default(), Some(vote)));
    drop((a, log));

    let log = open(&disk).await.unwrap();
    let a = log.group(G);
    assert_eq!((a.bounds(), a.vote()), (Default::default(), Some(vote)));
    // What it kept alive is free, and the second life is not mistaken for the first one.
    append(&a, (1..=70).map(|i| entry(i, 3, 200)).collect()).await.unwrap();
    a.purge(LogPosition { index: 65, term: 3 });
    append(&a, vec![entry(71, 3, 200)]).await.unwrap();
    assert!(log.status().segments <= 3, "{:?}", log.status());
    drop((a, log));

    let log = open(&disk).await.unwrap();
    let a = log.group(G);
    assert_eq!((a.bounds().0, a.bounds().1), (LogPosition { index: 65, term: 3 }, LogPosition { index: 71, term: 3 }));
    assert_eq!(all(&a).await, (66..=71).map(|i| entry(i, 3, 200)).collect::<Vec<_>>());
}

/// How far the first life was purged is said again at the beginning of every segment, and after
/// every start: not once that life is over.
#[tokio::test(start_paused = true)]
async fn what_was_purged_in_a_first_life_takes_nothing_from_the_second() {
    for is_restarted in [false, true] {
        let disk = MemoryDisk::default();
        let mut log = open(&disk).await.unwrap();
        let a = log.group(G);
        append(&a, (1..=60).map(|i| entry(i, 1, 200)).collect()).await.unwrap();
        a.purge(LogPosition { index: 50, term: 1 });
        log.forget(G).await.unwrap();
        drop(a);
        if is_restarted {
            log = open(&disk).await.unwrap();
        }
        let first = log.status().segments as u64;
        let a = log.group(G);
        let mut written = Vec::new();
        while written.len() < 40 {
            let next = entry(written.len() as u64 + 1, 3, 200);
            append(&a, vec![next.clone()]).await.unwrap();
            written.push(next);
        }
        assert!(log.status().segments as u64 > first, "the test shows nothing");
        assert_eq!(all(&open(&disk.reboot()).await.unwrap().group(G)).await, written, "restarted: {is_restarted}");
        // Nor does what the first life kept alive stay.
        a.purge(LogPosition { index: 39, term: 3 });
        append(&a, vec![entry(41, 3, 0)]).await.unwrap();
        assert!(log.status().segments <= 2, "{:?}, restarted: {is_restarted}", log.status());
    }
}

/// A segment that has votes alone is freed in its turn, also by a process that did not write it:
/// the files stay without a gap.
#[tokio::test(start_paused = true)]
async fn segments_of_votes_alone_are_freed_in_their_turn() {
    for is_restarted in [false, true] {
        let disk = MemoryDisk::default();
        let mut log = open(&disk).await.unwrap();
        let mut term = 0;
        while !has_segment(&disk, 4) {
            term += 1;
            log.group(G).save_vote(Vote { term, node: NodeId(1), committed: false }).await.unwrap();
            // Nothing is freed while this is kept.
            if term == 1 {
                append(&log.group(GroupId(3)), vec![entry(1, 1, 10)]).await.unwrap();
            }
        }
        assert!(has_segment(&disk, 1));
        if is_restarted {
            log = open(&disk).await.unwrap();
        }
        let group = log.group(GroupId(3));
        append(&group, (2..=60).map(|i| entry(i, 1, 200)).collect()).await.unwrap();
        group.purge(LogPosition { index: 60, term: 1 });
        append(&group, vec![entry(61, 1, 10)]).await.unwrap();
        assert!(log.status().segments <= 2, "{:?}", log.status());
        let log = open(&disk.reboot()).await.unwrap();
        assert_eq!(log.group(G).vote().unwrap().term, term);
        assert_eq!(all(&log.group(GroupId(3))).await, [entry(61, 1, 10)]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_truncated_entry_does_not_come_back() {
    let disk = MemoryDisk::default();
    let log = open(&disk).await.unwrap();
    let group = log.group(G);
    append(&group, (1..=30).map(|i| entry(i, 1, 20)).collect()).await.unwrap();
    group.truncate(20);
    append(&log.group(GroupId(3)), vec![entry(1, 1, 0)]).await.unwrap();
    let restarted = open(&disk.reboot()).await.unwrap();
    assert_eq!(restarted.group(G).bounds().1, LogPosition { index: 20, term: 1 });
}

/// A whole entry at the place of another one, as a disk leaves it that wrote somewhere else:
/// noticed, and never given out.
#[tokio::test(start_paused = true)]
async fn an_entry_is_read_from_its_place_or_not_at_all() {
    let disk = MemoryDisk::default();
    let log = open(&disk).await.unwrap();
    let (a, b) = (log.group(G), log.group(GroupId(3)));
    for i in 1..=20 {
        append(&a, vec![entry(i, 1, 200)]).await.unwrap();
        append(&b, vec![entry(i, 1, 200)]).await.unwrap();
    }
    assert!(has_segment(&disk, 2));
    let body = entry(2, 1, 200).body;
    let size = frame::frame_bytes(body.len());
    let frames = |path: &str| {
        let mut found = Vec::new();
        disk.edit(path, |bytes| {
            let mut at = FIRST_FRAME as usize;
            while let Some(frame) = frame::decode(&bytes[at..]) {
                if let frame::Content::Entry { position, .. } = frame.content
                    && frame.bytes == size
                {
                    found.push((at, frame.group, position.index, bytes[at..at + size].to_vec()));
                }
                at += frame.bytes;
            }
        });
        found
    };
    let (first, second) = (segment_path(1), segment_path(2));
    let here = frames(&first);
    let (at, group, index, whole) = here[here.len() / 2].clone();
    let beside = here.iter().find(|f| f.1 == group && f.2 != index).expect("another entry").3.clone();
    let of_other = here.iter().find(|f| f.1 != group && f.2 == index).expect("another group's").3.clone();
    let mut of_file = Vec::new();
    let position = LogPosition { index, term: 1 };
    frame::encode(
        &mut of_file,
        2,
        0,
        group,
        frame::Content::Entry {
            kind: EntryKind::Payload,
            position,
            body: &whole[frame::FRAME_HEADER_BYTES..][..entry(index, 1, 200).body.len()],
        },
    );
    assert!(!frames(&second).is_empty());
    let handle = log.group(group);
    let read = || handle.read(index, index + 1, usize::MAX);
    assert_eq!(read().await.unwrap(), [entry(index, 1, 200)]);
    for (what, other) in [("another entry", beside), ("another group's", of_other), ("another file's", of_file)] {
        disk.edit(&first, |bytes| bytes[at..at + size].copy_from_slice(&other));
        let error = read().await.expect_err(what);
        assert!(error.message().contains("is damaged at offset"), "{what}: {error}");
    }
}

/// The protocol's thread sends what it reads back to followers that are behind, and must not wait
/// for a disk itself.
#[test]
#[allow(clippy::disallowed_methods, reason = "it is about threads")]
fn entries_that_left_memory_are_read_by_another_thread() {
    let worker = std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let with_threads = TestRuntime { threads: true, ..TestRuntime::new(MemoryDisk::default(), 1) };
            let log = NodeLog::open(Arc::new(with_threads), options()).await.unwrap();
            let group = log.group(G);
            append(&group, (1..=20).map(|i| entry(i, 1, 100)).collect()).await.unwrap();
            let found = group.group.entries.lock().read(1, 21, usize::MAX);
            assert!(found.iter().any(|f| !f.is_in_memory()) && found.iter().any(Found::is_in_memory));
            workers::declare();
            assert_eq!(all(&group).await, (1..=20).map(|i| entry(i, 1, 100)).collect::<Vec<_>>());
        });
    });
    worker.join().expect("nothing is read on the worker");
}

/// The files of entries that are purged while they are read may be another segment's by then.
#[tokio::test(start_paused = true)]
async fn a_read_ends_at_an_entry_that_is_purged_meanwhile() {
    let log = open(&MemoryDisk::default()).await.unwrap();
    let group = log.group(G);
    let mut last = 0;
    let mut more = async |entries| {
        for _ in 0..entries {
            last += 1;
            append(&group, vec![entry(last, 1, 200)]).await.unwrap();
        }
        last
    };
    more(30).await;
    let found = group.group.entries.lock().read(1, 31, usize::MAX);
    let loaded = |found: &[Found]| log.shared.load(&group.group, found.to_vec());
    assert_eq!(loaded(&found).unwrap().len(), 30);
    group.purge(LogPosition { index: 25, term: 1 });
    let end = more(30).await;
    assert!(log.status().segments < 5, "files were freed: {:?}", log.status());
    assert_eq!(loaded(&found).unwrap(), [], "the first of them is gone");
    assert_eq!(loaded(&found[25..]).unwrap().len(), 5, "these are there");
    // What is there and cannot be read is damage.
    group.purge(LogPosition { index: end - 1, term: 1 });
    let here = group.group.entries.lock().read(end, end + 1, usize::MAX);
    log.shared.segments.lock().clear();
    let lost =
        here.into_iter().map(|_| Found::OnDisk(LogPosition { index: end, term: 1 }, Place { segment: 1, offset: 0, bytes: 8 }));
    assert_eq!(loaded(&lost.collect::<Vec<_>>()).unwrap_err().kind(), ErrorKind::Fatal);
}

/// What was handed over before is durable, what comes after is refused, and the log ends.
#[tokio::test(start_paused = true)]
async fn closing_waits_for_what_came_before_it() {
    let disk = MemoryDisk::default();
    let log = open(&disk).await.unwrap();
    let group = log.group(G);
    let before = append(&group, (1..=3).map(|i| entry(i, 1, 10)).collect());
    let (before, (), after) = futures::join!(before, log.close(), append(&group, vec![entry(4, 1, 10)]));
    before.unwrap();
    assert_eq!(after.unwrap_err().message(), "the log is closed");
    assert_eq!(log.queued_bytes(), 0);
    let restarted = open(&disk.reboot()).await.unwrap();
    assert_eq!(restarted.group(G).bounds().1.index, 3);
}

/// Whatever was handed over when the disk broke, and later, is answered: in the same batch, behind
/// it, and where a new segment was to be made.
#[tokio::test(start_paused = true)]
async fn everybody_hears_of_a_disk_that_broke() {
    for already in 0..=20 {
        let disk = MemoryDisk::default();
        let log = open(&disk).await.unwrap();
        let group = log.group(G);
        for i in 1..=already {
            append(&group, vec![entry(i, 1, 200)]).await.unwrap();
        }
        disk.fail_syncs();
        let several = (1..=40).map(|i| append(&group, vec![entry(already + i, 1, 200)]));
        let several: Vec<_> = several.collect();
        for answer in futures::future::join_all(several).await {
            assert_eq!(answer.unwrap_err().kind(), ErrorKind::Fatal, "{already}");
        }
        assert!(append(&group, vec![entry(already + 41, 1, 200)]).await.is_err());
        assert_eq!(log.queued_bytes(), 0, "{already}");
    }
}

#[tokio::test(start_paused = true)]
async fn many_appends_share_a_sync() {
    let log = open(&MemoryDisk::default()).await.unwrap();
    let group = log.group(G);
    let waits: Vec<_> = (1..=20)
        .map(|i| {
            let (send, receive) = oneshot::channel();
            group.append(vec![entry(i, 1, 1)], move |r| drop(send.send(r)));
            receive
        })
        .collect();
    for wait in waits {
        wait.await.unwrap().unwrap();
    }
    let status = log.status();
    assert_eq!(status.frames_written, 20);
    assert!(status.syncs <= 2, "{status:?}");
    assert_eq!(status.queued_bytes, 0);
}

#[tokio::test(start_paused = true)]
async fn purged_segments_are_recycled_and_their_old_frames_ignored() {
    let disk = MemoryDisk::default();
    let log = open(&disk).await.unwrap();
    let group = log.group(G);
    let mut index = 0;
    for round in 0..40 {
        let entries = (0..10).map(|_| {
            index += 1;
            entry(index, 1, 100)
        });
        append(&group, entries.collect()).await.unwrap();
        group.purge(LogPosition { index: index - 3, term: 1 });
        let status = log.status();
        let files = disk.list(segment::FOLDER).unwrap().len();
        assert_eq!(status.segments + status.spare_segments, files, "{status:?}");
        if round % 7 == 3 {
            assert!(log.status().segments <= 3, "{:?}", log.status());
            let rebooted = disk.reboot();
            let restarted = open(&rebooted).await.unwrap();
            let status = restarted.status();
            let files = rebooted.list(segment::FOLDER).unwrap().len();
            assert_eq!(status.segments + status.spare_segments, files, "spare files are found again");
            let restarted = restarted.group(G);
            assert_eq!(restarted.bounds().1.index, index);
            let read = restarted.read(index - 2, index + 1, usize::MAX).await.unwrap();
            assert_eq!(read, group.read(index - 2, index + 1, usize::MAX).await.unwrap());
        }
    }
    assert!(disk.bytes() < 5 * 4_096 + 2_048, "{}", disk.bytes());
}

#[tokio::test(start_paused = true)]
async fn an_idle_group_is_asked_to_purge_when_the_log_grows_long() {
    let log = open(&MemoryDisk::default()).await.unwrap();
    let (idle, busy) = (log.group(G), log.group(GroupId(8)));
    append(&idle, vec![entry(1, 1, 50), entry(2, 1, 50)]).await.unwrap();
    for i in 1..=100 {
        append(&busy, vec![entry(i, 1, 200)]).await.unwrap();
        busy.purge(LogPosition { index: i, term: 1 });
        if log.status().segments <= options().segments_wanted_max {
            assert_eq!(*idle.purge_wanted().borrow(), 0, "there is room");
        }
    }
    assert!(log.status().segments > 3);
    assert_eq!(*idle.purge_wanted().borrow(), 2);
    idle.purge(LogPosition { index: 2, term: 1 });
    append(&busy, vec![entry(101, 1, 200)]).await.unwrap();
    assert!(log.status().segments <= 2, "{:?}", log.status());
}

#[tokio::test(start_paused = true)]
async fn a_flipped_byte_in_what_was_durable_is_refused_by_file_and_offset() {
    let disk = MemoryDisk::default();
    let log = open(&disk).await.unwrap();
    let group = log.group(G);
    for i in 1..=30 {
        append(&group, vec![entry(i, 1, 200)]).await.unwrap();
    }
    log.close().await;
    let first = segment_path(1);
    let last = segment_path(log.status().segments as u64);
    assert_ne!(first, last);
    // In an old segment, in the last one, and in its very last entry: closing in good order vouches
    // for that.
    let (mut at_end, body) = (0, entry(30, 1, 200).body);
    disk.edit(&last, |bytes| at_end = bytes.windows(body.len()).position(|part| part == body).expect("the last entry"));
    for (path, at) in [(&first, 70), (&first, 1_000), (&last, 80), (&last, at_end + 20)] {
        let damaged = disk.reboot();
        damaged.edit(path, |bytes| bytes[at] ^= 0x40);
        let error = open(&damaged).await.err().expect("damage is refused");
        assert_eq!(error.kind(), ErrorKind::Fatal);
        assert!(error.message().contains(path.as_str()) && error.message().contains("offset"), "{error}");
    }
    // Untouched, it opens.
    assert_eq!(open(&disk.reboot()).await.unwrap().group(G).bounds().1.index, 30);
}

#[tokio::test(start_paused = true)]
async fn a_missing_segment_is_refused() {
    let disk = MemoryDisk::default();
    let log = open(&disk).await.unwrap();
    let group = log.group(G);
    for i in 1..=60 {
        append(&group, vec![entry(i, 1, 200)]).await.unwrap();
    }
    let (middle, first) = (disk.reboot(), disk.reboot());
    middle.remove(&segment_path(2)).unwrap();
    let error = open(&middle).await.err().unwrap();
    assert!(error.message().contains("0002.log is missing"), "{error}");
    first.remove(&segment_path(1)).unwrap();
    let error = open(&first).await.err().unwrap();
    assert!(error.message().contains("gap"), "{error}");
}

/// Of a batch that was never acknowledged the disk kept everything but the first frame. What is
/// written next has the size of that frame: at its place it would be followed by the rest, which
/// nobody may take for part of the log.
#[tokio::test(start_paused = true)]
async fn the_rest_of_a_torn_batch_never_follows_what_is_written_later() {
    let disk = MemoryDisk::default();
    let log = open(&disk).await.unwrap();
    append(&log.group(G), vec![entry(1, 1, 100)]).await.unwrap();
    let (path, mut before) = (segment_path(1), Vec::new());
    disk.edit(&path, |bytes| before.clone_from(bytes));
    append(&log.group(G), (2..=5).map(|i| entry(i, 1, 100)).collect()).await.unwrap();
    let torn = disk.reboot();
    torn.edit(&path, |bytes| {
        let start = (0..bytes.len()).find(|i| bytes.get(*i) != before.get(*i)).expect("the batch") / 8 * 8;
        bytes[start..start + frame::frame_bytes(entry(2, 1, 100).body.len())].fill(0);
    });
    let log = open(&torn).await.unwrap();
    assert_eq!(log.group(G).bounds().1.index, 1, "the batch was not acknowledged");
    append(&log.group(G), vec![entry(2, 2, 100)]).await.unwrap();
    let restarted = open(&torn.reboot()).await.unwrap().group(G);
    assert_eq!(all(&restarted).await, [entry(1, 1, 100), entry(2, 2, 100)]);
    // More than is kept in memory: it is read from where it was written.
    append(&log.group(G), vec![entry(3, 2, 200), entry(4, 2, 200)]).await.unwrap();
    assert_eq!(all(&log.group(G)).await, [entry(1, 1, 100), entry(2, 2, 100), entry(3, 2, 200), entry(4, 2, 200)]);
    log.group(G).truncate(2);
    append(&log.group(GroupId(3)), vec![entry(1, 2, 0)]).await.unwrap();
    let log = open(&torn.reboot()).await.unwrap();
    assert_eq!(all(&log.group(G)).await, [entry(1, 1, 100), entry(2, 2, 100)]);
}

/// The smallest frame, as the last one that a file has room for, proves as well as any other that
/// what is damaged before it was durable.
#[tokio::test(start_paused = true)]
async fn damage_is_noticed_by_a_frame_at_the_very_end_of_a_file() {
    let disk = MemoryDisk::default();
    let log = open(&disk).await.unwrap();
    append(&log.group(G), vec![entry(1, 1, 100)]).await.unwrap();
    for is_later in [false, true] {
        let damaged = disk.reboot();
        damaged.edit(&segment_path(1), |bytes| {
            let at = bytes.len() - frame::FRAME_HEADER_BYTES;
            let batch = if is_later { at as u64 } else { FIRST_FRAME };
            let mut last = Vec::new();
            frame::encode(&mut last, 1, batch, G, frame::Content::Truncate { after: 0 });
            bytes[at..].copy_from_slice(&last);
        });
        assert_eq!(open(&damaged).await.is_err(), is_later);
    }
}

/// Each of them is whole; only its name is another one's.
#[tokio::test(start_paused = true)]
async fn a_segment_under_the_name_of_another_one_is_refused() {
    let disk = MemoryDisk::default();
    let log = open(&disk).await.unwrap();
    let group = log.group(G);
    for i in 1..=60 {
        append(&group, vec![entry(i, 1, 200)]).await.unwrap();
    }
    let (mut first, mut second) = (Vec::new(), Vec::new());
    disk.edit(&segment_path(1), |bytes| first.clone_from(bytes));
    disk.edit(&segment_path(2), |bytes| second.clone_from(bytes));
    for (path, other) in [(segment_path(1), second), (segment_path(2), first)] {
        let mixed = disk.reboot();
        mixed.edit(&path, |bytes| *bytes = other);
        let error = open(&mixed).await.err().expect("a segment of another number");
        assert_eq!(error.kind(), ErrorKind::Fatal);
        assert!(error.message().contains(path.as_str()), "{error}");
    }
}

/// The machine stopped between making a segment and its first batch, or in the middle of that
/// batch: what survived repeats not all votes. Segments that have them may go only when it does.
#[tokio::test(start_paused = true)]
async fn a_vote_outlives_its_segment_when_the_next_one_began_with_a_crash() {
    let disk = MemoryDisk::default();
    let log = open(&disk).await.unwrap();
    let vote = Vote { term: 7, node: NodeId(2), committed: true };
    for id in [GroupId(1), GroupId(2)] {
        log.group(id).save_vote(vote).await.unwrap();
    }
    let group = log.group(G);
    let mut last = 0;
    while !has_segment(&disk, 2) {
        last += 1;
        append(&group, vec![entry(last, 1, 200)]).await.unwrap();
    }
    let one_vote = frame::frame_bytes(1);
    for survived in [0, one_vote, 2 * one_vote] {
        let crashed = disk.reboot();
        crashed.edit(&segment_path(2), |bytes| bytes[FIRST_FRAME as usize + survived..].fill(0));
        let log = open(&crashed).await.unwrap();
        let group = log.group(G);
        let (_, end) = group.bounds();
        append(&group, vec![entry(end.index + 1, 1, 10)]).await.unwrap();
        group.purge(end);
        append(&group, vec![entry(end.index + 2, 1, 10)]).await.unwrap();
        assert!(!has_segment(&crashed, 1), "{survived}: the test shows nothing");
        let log = open(&crashed.reboot()).await.unwrap();
        for id in [GroupId(1), GroupId(2)] {
            assert_eq!(log.group(id).vote(), Some(vote), "{survived}: {id}");
        }
    }
}

/// Everything that is appended once the disk is full waits, and is durable when there is room
/// again: in the segment, at its end, and where a new one is made.
#[tokio::test(start_paused = true)]
async fn a_full_disk_makes_the_log_wait_and_loses_nothing() {
    for room in [0, 200, 500, 900, 1_100, 2_000, 3_000, 4_500] {
        let disk = MemoryDisk::default();
        let log = open(&disk).await.unwrap();
        let group = log.group(G);
        append(&group, (1..=10).map(|i| entry(i, 1, 200)).collect()).await.unwrap();
        disk.set_capacity(disk.bytes() + room);
        let acknowledged = Arc::new(AtomicU64::new(10));
        for i in 11..=60 {
            let acknowledged = acknowledged.clone();
            group.append(vec![entry(i, 1, 200)], move |durable| {
                durable.unwrap();
                assert_eq!(acknowledged.fetch_add(1, Ordering::Relaxed) + 1, i, "in order");
            });
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
        let before = acknowledged.load(Ordering::Relaxed);
        assert!(before < 60 && *log.waits_for_room().borrow() && log.failure().borrow().is_none(), "{room}");
        // Dying here loses nothing that was acknowledged.
        let restarted = open(&disk.reboot()).await.unwrap().group(G);
        assert!(restarted.bounds().1.index >= before, "{room}");
        disk.set_capacity(0);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(acknowledged.load(Ordering::Relaxed), 60, "{room}");
        assert!(!*log.waits_for_room().borrow());
        let restarted = open(&disk.reboot()).await.unwrap().group(G);
        assert_eq!(all(&restarted).await, (1..=60).map(|i| entry(i, 1, 200)).collect::<Vec<_>>(), "{room}");
    }
}

/// What is written ahead of the log's end, so that syncs are quick, needs room that the log may
/// need.
#[tokio::test(start_paused = true)]
async fn the_last_room_of_a_disk_is_used_for_entries() {
    let disk = MemoryDisk::default();
    let log = open(&disk).await.unwrap();
    let group = log.group(G);
    append(&group, vec![entry(1, 1, 10)]).await.unwrap();
    let capacity = disk.bytes() + 500;
    disk.set_capacity(capacity);
    for i in 2..=60 {
        group.append(vec![entry(i, 1, 10)], |durable| durable.unwrap());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(*log.waits_for_room().borrow());
    let left = capacity - disk.bytes();
    assert!(left < frame::frame_bytes(entry(9, 1, 10).body.len()) as u64, "{left} bytes are left");
}

#[tokio::test(start_paused = true)]
async fn closing_does_not_wait_for_room() {
    let disk = MemoryDisk::default();
    let log = open(&disk).await.unwrap();
    let group = log.group(G);
    append(&group, vec![entry(1, 1, 10)]).await.unwrap();
    disk.set_capacity(disk.bytes());
    let waits = append(&group, (2..60).map(|i| entry(i, 1, 200)).collect());
    let (error, ()) = futures::join!(waits, async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        log.close().await;
    });
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Fatal);
    assert!(error.message().contains("memory/log/"), "{error}");
    assert!(error.get_hint().unwrap().contains("full"), "{error}");
    let restarted = open(&disk.reboot()).await.unwrap().group(G);
    assert!(restarted.bounds().1.index >= 1);
}

#[tokio::test(start_paused = true)]
async fn a_failed_sync_is_final() {
    let disk = MemoryDisk::default();
    let log = open(&disk).await.unwrap();
    let group = log.group(G);
    disk.fail_syncs();
    assert!(append(&group, vec![entry(1, 1, 1)]).await.is_err());
    assert!(log.failure().borrow().is_some());
    assert!(group.save_vote(Vote { term: 1, node: NodeId(1), committed: false }).await.is_err());
}

/// Room may come back; what a broken disk did with a write nobody knows, nor what became of a sync
/// that had no room.
#[tokio::test(start_paused = true)]
async fn only_a_write_that_has_no_room_is_tried_again() {
    for breaks in [MemoryDisk::fail_writes, MemoryDisk::fail_syncs] {
        let disk = MemoryDisk::default();
        let log = open(&disk).await.unwrap();
        let group = log.group(G);
        append(&group, vec![entry(1, 1, 1)]).await.unwrap();
        breaks(&disk);
        let answer = tokio::time::timeout(Duration::from_secs(60), append(&group, vec![entry(2, 1, 1)])).await;
        assert!(answer.expect("an answer").is_err());
        assert!(log.failure().borrow().is_some());
    }
}

#[tokio::test]
async fn real_files_hold_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let disk = FileDisk(Arc::new(folder.path().to_path_buf()));
    let runtime = TestRuntime { threads: true, ..TestRuntime::new(disk.clone(), 1) };
    let log = NodeLog::open(Arc::new(runtime), options()).await.unwrap();
    let group = log.group(G);
    for i in 1..=100 {
        append(&group, vec![entry(i, 1, 100)]).await.unwrap();
        if i > 20 {
            group.purge(LogPosition { index: i - 20, term: 1 });
        }
    }
    let before = all(&group).await;
    log.close().await;
    let log = open(&disk).await.unwrap();
    assert_eq!(all(&log.group(G)).await, before);
    let path = folder.path().join(segment_path(2));
    assert!(!path.exists(), "old segments are freed");
}

/// One group as it must be.
#[derive(Clone, Default, Debug)]
struct Model {
    vote: Option<Vote>,
    purged: LogPosition,
    entries: BTreeMap<u64, LogEntry>,
}

impl Model {
    fn last(&self) -> LogPosition {
        self.entries.last_key_value().map_or(self.purged, |(_, e)| e.position)
    }
}

/// Random work on three groups, cut off by a power failure at a random point, again and again.
async fn crash_and_recover(seed: u64) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut disk = MemoryDisk::default();
    let ids = [GroupId(1), GroupId(2), GroupId(9)];
    let mut models: BTreeMap<GroupId, Model> = ids.iter().map(|g| (*g, Model::default())).collect();
    let mut term = 1;
    for _life in 0..6 {
        let log = open(&disk).await.unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        for (id, model) in &models {
            let group = log.group(*id);
            let (purged, last) = group.bounds();
            assert!(last.index >= model.last().index, "seed {seed}: {id} lost acknowledged entries");
            for e in model.entries.values().filter(|e| e.position.index > purged.index) {
                let read = group.read(e.position.index, e.position.index + 1, usize::MAX).await.unwrap();
                assert_eq!(read, std::slice::from_ref(e), "seed {seed}: {id}");
            }
            if let (Some(want), Some(got)) = (model.vote, group.vote()) {
                assert!(got.term >= want.term, "seed {seed}: {id} forgot its vote");
            }
            assert!(model.vote.is_none() || group.vote().is_some(), "seed {seed}: {id} forgot its vote");
        }
        // What was found is the truth from now on: more than what was acknowledged may have
        // survived.
        for (id, model) in &mut models {
            let group = log.group(*id);
            model.purged = group.bounds().0;
            model.vote = group.vote();
            model.entries = all(&group).await.into_iter().map(|e| (e.position.index, e)).collect();
        }
        let mut pending = vec![];
        // What is certain if the machine stops now; what is asked for may come on top.
        let mut certain = models.clone();
        for _step in 0..rng.random_range(1..60) {
            let id = ids[rng.random_range(0..ids.len())];
            let (model, group) = (models.get_mut(&id).unwrap(), log.group(id));
            match rng.random_range(0..10) {
                0 => {
                    let after = rng.random_range(model.purged.index..=model.last().index);
                    group.truncate(after);
                    model.entries.split_off(&(after + 1));
                    // The truncation may survive without what follows it.
                    certain.get_mut(&id).unwrap().entries.split_off(&(after + 1));
                    term += 1;
                }
                1 => {
                    let upto = rng.random_range(model.purged.index..=model.last().index);
                    if let Some(position) = model.entries.get(&upto).map(|e| e.position) {
                        group.purge(position);
                        model.purged = position;
                        model.entries = model.entries.split_off(&(upto + 1));
                        let certain = certain.get_mut(&id).unwrap();
                        certain.entries = certain.entries.split_off(&(upto + 1));
                    }
                }
                2 => {
                    let vote = Vote { term, node: NodeId(rng.random_range(1..4)), committed: rng.random() };
                    group.save_vote(vote).await.unwrap();
                    model.vote = Some(vote);
                    certain = models.clone();
                    pending.clear();
                }
                _ => {
                    let entries: Vec<LogEntry> = (1..=rng.random_range(1..4u64))
                        .map(|i| entry(model.last().index + i, term, rng.random_range(0..400)))
                        .collect();
                    model.entries.extend(entries.iter().map(|e| (e.position.index, e.clone())));
                    let (send, receive) = oneshot::channel();
                    group.append(entries, move |r| drop(send.send(r)));
                    pending.push(receive);
                    if rng.random_bool(0.3) {
                        for p in pending.drain(..) {
                            p.await.unwrap().unwrap();
                        }
                        certain = models.clone();
                    } else if rng.random_bool(0.5) {
                        // Let the writer start, so that the power may fail in the middle of a
                        // batch.
                        tokio::task::yield_now().await;
                    }
                }
            }
        }
        disk = disk.crash(&mut rng);
        models = certain;
        drop(log);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]
    #[test]
    fn nothing_acknowledged_is_lost_in_a_power_failure(seed: u64) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(crash_and_recover(seed));
    }
}
