//! Readers, the applier and the flusher at once, with a cache too small to hold anything: every
//! read must see one moment.

use crate::model::*;
use bytes::Bytes;
use meridian_base::key::{Key, KeyRange, Target};
use meridian_base::time::Timestamp;
use meridian_base::txn::ColumnMask;
use meridian_store::{GroupStore, Options, ScanLimits};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const ACCOUNTS: u64 = 600;
/// The writer goes on until the readers have read this often, and gives up after so many transfers.
const ROUNDS_MIN: u64 = 60;
const TRANSFERS_MIN: u64 = 2_000;
const TRANSFERS_MAX: u64 = 2_000_000;
const OPENING: i64 = 1_000;

fn account(i: u64) -> Key {
    Key::new(&[&[0, 0, 0, 1], &i.to_be_bytes()[..]].concat())
}

fn balance(group: &GroupStore, i: u64, at: Timestamp) -> i64 {
    let version = group.get(account(i).as_bytes(), at).unwrap().expect("an account exists");
    std::str::from_utf8(&version.value.unwrap()).unwrap().parse().unwrap()
}

/// Moves 1 from one account to another, so that the sum stays what it was at every timestamp.
fn transfers(group: &GroupStore, rounds: &AtomicU64) {
    let opening = (0..ACCOUNTS).map(|i| put(account(i), &OPENING.to_string())).collect();
    group.apply(at(1), &[txn(10, opening)]).unwrap();
    let mut balances = vec![OPENING; ACCOUNTS as usize];
    for n in 1..=TRANSFERS_MAX {
        if n > TRANSFERS_MIN && rounds.load(Ordering::Relaxed) >= ROUNDS_MIN {
            break;
        }
        let (from, to) = (n * 7 % ACCOUNTS, (n * 13 + 1) % ACCOUNTS);
        if from != to {
            balances[from as usize] -= 1;
            balances[to as usize] += 1;
            let writes = [from, to].map(|i| put(account(i), &balances[i as usize].to_string())).to_vec();
            group.apply(at(1 + n), &[txn(10 + n, writes)]).unwrap();
        }
        if n % 10 == 0 {
            group.cut(Bytes::new());
        }
    }
}

fn read_once(group: &GroupStore, round: u64) {
    let now = group.applied_ts();
    let mut sum = 0;
    let mut rest = Some(KeyRange::prefix(&[0, 0, 0, 1]));
    while let Some(range) = rest {
        let page = group.scan(&range, now, round % 2 == 1, ScanLimits { rows: 70, bytes: 1 << 20 }).unwrap();
        sum += page
            .rows
            .iter()
            .map(|(_, v)| std::str::from_utf8(v.value.as_ref().unwrap()).unwrap().parse::<i64>().unwrap())
            .sum::<i64>();
        rest = page.rest;
    }
    assert_eq!(sum, OPENING * ACCOUNTS as i64, "a scan as of {now} mixes moments");
    // Point reads of one account at one timestamp agree, however it moves between memory and disk
    // meanwhile.
    let i = round * 31 % ACCOUNTS;
    let first = balance(group, i, now);
    for _ in 0..20 {
        assert_eq!(balance(group, i, now), first);
    }
    let newest = group.newest(account(i).as_bytes()).unwrap().unwrap();
    if newest.at > now {
        let changed = group.changed_after(&Target::Key(account(i)), ColumnMask::ALL, now).unwrap();
        assert!(changed.is_some(), "a version above {now} was missed");
    }
}

fn run(place: Place) {
    let (_store, group) = place.open(&Options { cache_bytes_max: 0, ingest_rows_min: 15, ..Options::default() });
    let (done, rounds) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !done.load(Ordering::Acquire) {
                group.flush_step().unwrap();
            }
        });
        for reader in 0..2 {
            let (group, done, rounds) = (&group, &done, &rounds);
            threads.spawn(move || {
                let mut round = reader;
                while !done.load(Ordering::Acquire) {
                    if group.applied_ts() > Timestamp::MIN {
                        read_once(group, round);
                        rounds.fetch_add(1, Ordering::Relaxed);
                    }
                    round += 1;
                }
            });
        }
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| transfers(&group, &rounds)));
        done.store(true, Ordering::Release);
        result.unwrap();
    });
    assert!(rounds.load(Ordering::Relaxed) >= ROUNDS_MIN, "the readers must have run beside the writer");
    read_once(&group, 0);
    group.cut(Bytes::new());
    group.flush_step().unwrap();
    read_once(&group, 1);
    assert_eq!(group.dirty_bytes(), 0);
}

#[test]
fn reads_beside_writes_and_flushes_see_one_moment_in_memory() {
    run(Place::memory());
}

#[test]
fn reads_beside_writes_and_flushes_see_one_moment_on_disk() {
    run(Place::fjall());
}
