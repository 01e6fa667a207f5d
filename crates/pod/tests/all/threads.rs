//! The bank of `bank` over threads of one process and memory of the heap, so that Miri can look at
//! all that hosts do side by side: locks, bodies, rings, feed, blocks, epochs.
//!
//! Threads tell each other nothing but by that memory, until all have ended.

use crate::bank::{ACCOUNTS, FIRST, Leader, Worker, make_accounts};
use meridian_base::{GroupId, NodeId, Timestamp, TxnId};
use meridian_pod::memory::Heap;
use meridian_pod::{Layout, Purpose, Segment, Sizes};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};

type Shared = Segment<Arc<Heap>>;

/// So small that rings and feed go around and every block is used again: a chunk of bodies for each
/// host.
fn sizes(hosts: u8) -> Sizes {
    let body_chunks = hosts.into();
    Sizes { hosts, ring: 512, feed: 512, descriptors: 1, chunk: 512, node_chunks: 2, body_chunks }
}

fn make(hosts: u8) -> Shared {
    let sizes = sizes(hosts);
    let memory = Heap::new(Layout::new(sizes).unwrap().len());
    let purpose = Purpose { generation: 1, group: GroupId(2), term: 3 };
    Segment::create(Arc::new(memory), sizes, purpose).unwrap()
}

fn work(worker: &mut Worker<Arc<Heap>>, host: u8, transfers: u64, idle: &mut dyn FnMut(&mut Worker<Arc<Heap>>)) {
    for n in 1..=transfers {
        worker.reserve(2, idle);
        worker.transfer(TxnId { hlc: Timestamp(n), gateway: NodeId(host.into()) }, idle);
    }
}

/// A host at a thread each, the first of them L. Gives how many transactions were taken from each.
fn run(hosts: u8, transfers: u64, random: u64) -> Vec<u64> {
    let segment = make(hosts);
    let mut leader = Leader::new(&segment);
    let workers = (0..hosts).map(|host| {
        assert!(segment.join_as(host, NodeId(host.into())).unwrap());
        assert!(leader.rings.admit(&segment, host).unwrap());
        let mut worker = Worker::new(segment.clone(), host, random + u64::from(host));
        worker.reserve(1, &mut |_| unreachable!("there is a chunk for each host"));
        worker
    });
    let mut workers: Vec<_> = workers.collect();
    make_accounts(&mut workers[0]);
    let (ended, stop) = (AtomicU8::new(1), AtomicBool::new(false));
    let mut first = workers.remove(0);
    let mut lead = |worker: &mut Worker<_>| {
        leader.lead(&segment);
        worker.follow();
        worker.tidy();
        std::thread::yield_now();
    };
    std::thread::scope(|scope| {
        for (host, mut worker) in (1..).zip(workers) {
            let (ended, stop) = (&ended, &stop);
            scope.spawn(move || {
                let mut idle = |worker: &mut Worker<_>| {
                    worker.follow();
                    worker.tidy();
                    std::thread::yield_now();
                };
                work(&mut worker, host, transfers, &mut idle);
                ended.fetch_add(1, Relaxed);
                while !stop.load(Relaxed) {
                    idle(&mut worker);
                }
            });
        }
        work(&mut first, 0, transfers, &mut lead);
        while ended.load(Relaxed) < hosts {
            lead(&mut first);
        }
        stop.store(true, Relaxed);
    });
    lead(&mut first);
    let balances = leader.balances();
    assert_eq!(balances.iter().sum::<u64>(), u64::from(ACCOUNTS) * FIRST);
    for account in 0..ACCOUNTS {
        let node = segment.find(&vec![account].into()).unwrap().unwrap();
        let read = first.read(node, Timestamp::MAX, &mut |_| panic!("a lock has stayed"));
        assert_eq!(read.map(|(balance, _)| balance), Some(balances[usize::from(account)]), "account {account}");
    }
    leader.taken.into_iter().map(|(taken, _)| taken).collect()
}

#[test]
fn no_money_is_lost_between_two_threads() {
    let taken = run(2, if cfg!(miri) { 4 } else { 2000 }, 7);
    assert!(taken.iter().sum::<u64>() > 0, "{taken:?}");
}

#[test]
fn no_money_is_lost_between_three_threads() {
    let taken = run(3, if cfg!(miri) { 2 } else { 1000 }, 11);
    assert!(taken.iter().sum::<u64>() > 0, "{taken:?}");
}
