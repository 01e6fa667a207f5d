//! A bank over two processes: both move money between shared accounts, one of them leads the log.
//! The second is killed again and again, repaired, and started again. Every transaction of the log
//! must have read what those before it have written, and in the end the words say what the log
//! says. `threads` does the same with threads of one process.

use bytes::{Buf, Bytes};
use meridian_base::{ColumnMask, GroupId, LogPosition, NodeId, Timestamp, TxnId};
use meridian_pod::memory::Memory;
use meridian_pod::{
    Allocator, Area, Body, BodyRead, BodyWord, BodyWrite, Commit, Entry, Epochs, FeedReader, FeedRecord, FeedWriter, Insert,
    Inserted, Item, Logged, NewTuple, NoRoom, Node, Orphans, Phase, Progress, Purpose, Read, Reading, Reference, Refill, Repair,
    Repaired, RingWriter, Rings, Rules, Segment, SharedRead, SharedWrite, Sizes, Slot, Walk, Walked, lines_of, node_bytes,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const FILE: &str = "MERIDIAN_POD_BANK_FILE";
pub const ACCOUNTS: u8 = 6;
pub const FIRST: u64 = 1000;
pub const BUGS: Rules = Rules::ALL;
const SIZES: Sizes = Sizes { hosts: 2, ring: 8192, feed: 8192, descriptors: 2, chunk: 4096, node_chunks: 2, body_chunks: 12 };

/// What a host does when it has to wait.
pub type Idle<'a, M> = &'a mut dyn FnMut(&mut Worker<M>);

pub struct Worker<M> {
    segment: Segment<M>,
    host: u8,
    ring: RingWriter,
    reader: FeedReader,
    epochs: Epochs,
    allocator: Allocator,
    /// The last own entry that the feed has.
    fed: Option<u64>,
    random: u64,
    pub conflicts: u64,
}

impl<M: Memory + Clone> Worker<M> {
    pub fn new(segment: Segment<M>, host: u8, random: u64) -> Worker<M> {
        let ring = RingWriter::new(&segment, host, BUGS);
        let (reader, epochs) = (FeedReader::new(&segment, host), Epochs::new(host));
        let allocator = Allocator::new(host, BUGS);
        Worker { segment, host, ring, reader, epochs, allocator, fed: None, random, conflicts: 0 }
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % below
    }

    pub fn follow(&mut self) {
        while let Some((record, end)) = self.reader.next(&self.segment).unwrap() {
            for item in &record.items {
                let Item::Entry(reference) = item else { continue };
                assert_eq!(self.segment.entry(reference.place).unwrap().ordered_at(), Some(reference.at));
                if reference.place.host == self.host {
                    self.ring.fed(reference.place, end);
                    self.fed = Some(reference.place.begin);
                }
            }
            self.reader.passed(&self.segment);
        }
    }

    /// Says how far this host is, and gets blocks back.
    pub fn tidy(&mut self) {
        self.epochs.announce(&self.segment);
        self.segment.advance_epoch().unwrap();
        while self.allocator.reclaim(&self.segment).unwrap() {}
    }

    fn block(&mut self, idle: Idle<M>) -> u64 {
        loop {
            let lines = lines_of(meridian_pod::body_bytes(8));
            if let Some(at) = self.allocator.allocate(Area::Bodies, lines) {
                return at;
            }
            self.refill(idle);
        }
    }

    /// Has so many blocks for bodies. Who waits for them *inside* of an epoch waits for ever, if
    /// all others do so too.
    pub fn reserve(&mut self, blocks: usize, idle: Idle<M>) {
        while self.allocator.free_blocks(Area::Bodies) < blocks {
            self.refill(idle);
        }
    }

    fn refill(&mut self, idle: Idle<M>) {
        let lines = lines_of(meridian_pod::body_bytes(8));
        let mut refill = Refill::new(&self.segment, &self.allocator, Area::Bodies, lines);
        let has_more = loop {
            if let Some(has_more) = refill.step(&self.segment, &mut self.allocator).unwrap() {
                break has_more;
            }
        };
        if !has_more {
            idle(self);
            self.tidy();
        }
    }

    /// The balance at a snapshot, and the word it was read by; `None`: the snapshot is too old.
    pub fn read(&mut self, node: Node, s: Timestamp, idle: Idle<M>) -> Option<(u64, BodyWord)> {
        let mut read = Read::new(node, s, BUGS);
        loop {
            match read.step(&self.segment).unwrap() {
                Reading::More => {}
                Reading::Wait(_) => {
                    idle(self);
                    read = Read::new(node, s, BUGS);
                }
                Reading::Newer(_) => return None,
                Reading::Gone => unreachable!("nothing moves out"),
                Reading::Version { body, .. } => {
                    let mut bytes = BodyRead::new(self.host, node, body, BUGS);
                    loop {
                        if let Some(bytes) = bytes.step(&self.segment).unwrap() {
                            return Some((bytes.unwrap().get_u64_le(), body));
                        }
                    }
                }
            }
        }
    }

    /// Moves some money between two accounts, or fails.
    pub fn transfer(&mut self, id: TxnId, idle: Idle<M>) {
        let epoch = self.epochs.enter(&self.segment);
        let from = self.draw(ACCOUNTS.into()) as u8;
        let to = (from + 1 + self.draw(u64::from(ACCOUNTS) - 1) as u8) % ACCOUNTS;
        // It looks at one more, which it does not write.
        let witness = (1..).map(|more| (to + more) % ACCOUNTS).find(|other| *other != from).unwrap();
        let s = self.segment.last_drawn();
        self.move_money([from, to, witness], s, id, idle);
        self.epochs.leave(epoch);
        self.tidy();
    }

    fn move_money(&mut self, accounts: [u8; 3], s: Timestamp, id: TxnId, idle: Idle<M>) {
        let nodes = accounts.map(|account| self.segment.find(&vec![account].into()).unwrap().unwrap());
        let mut before = vec![];
        for node in nodes {
            let Some(read) = self.read(node, s, idle) else { return self.conflicts += 1 };
            before.push(read);
        }
        let amount = self.draw(50).min(before[0].0);
        let after = [before[0].0 - amount, before[1].0 + amount];
        let (mut writes, mut blocks) = (vec![], vec![]);
        for (node, balance) in nodes.into_iter().zip(after) {
            let at = self.block(idle);
            blocks.push(at);
            let mut write = BodyWrite::new(at, balance.to_le_bytes().to_vec().into(), BUGS);
            let body = loop {
                if let Some(body) = write.step(&self.segment) {
                    break body;
                }
            };
            writes.push(SharedWrite { node, body, columns: ColumnMask::ALL, is_new: false });
        }
        let reads = nodes.map(|node| SharedRead { node, until: s, columns: ColumnMask::ALL }).to_vec();
        let mut record = accounts.to_vec();
        [before[0].0, after[0], before[1].0, after[1], before[2].0, before[2].0]
            .iter()
            .for_each(|balance| record.extend(balance.to_le_bytes()));
        if self.commit(Commit::new(self.host, vec![0], writes, reads, BUGS), id, record.into(), idle) {
            for (_, word) in &before[..2] {
                let Body::At(at) = word.body else { unreachable!("every account has a body") };
                self.allocator.retire(&self.segment, at).unwrap();
            }
        } else {
            blocks.into_iter().for_each(|at| self.allocator.give_back(&self.segment, at));
            self.conflicts += 1;
        }
    }

    fn commit(&mut self, mut commit: Commit, id: TxnId, record: Bytes, idle: Idle<M>) -> bool {
        let mut begin = None;
        loop {
            match commit.step(&self.segment).unwrap() {
                Progress::More => {}
                Progress::Busy(claim) => {
                    while !self.segment.has_ended(claim).unwrap() {
                        idle(self);
                    }
                }
                Progress::Certify => commit.drawn(self.segment.tick(0)),
                Progress::Valid => {
                    let logged = Logged { id, at: commit.p().unwrap(), slots: vec![Slot(0)], body: record.clone() };
                    let entry = Entry::Transaction(logged);
                    let place = loop {
                        match self.ring.write(&self.segment, &entry) {
                            Ok(place) => break place,
                            Err(NoRoom::Ever) => unreachable!("records are small"),
                            Err(NoRoom::Now) => {
                                idle(self);
                                self.ring.reclaim(&self.segment).unwrap();
                            }
                        }
                    };
                    begin = Some(place.begin);
                    commit.written(place);
                }
                Progress::Push => {
                    self.ring.publish(&self.segment);
                    commit.pushed();
                }
                Progress::InFlight => {
                    while self.fed != begin {
                        idle(self);
                    }
                    commit.durable();
                }
                Progress::Conflict(_) => return false,
                Progress::Finished => return true,
                other => unreachable!("{other:?}"),
            }
        }
    }
}

#[test]
#[ignore = "the second process of the other test"]
fn second_host() {
    let Ok(file) = std::env::var(FILE) else { return };
    let segment = Segment::open_file(Path::new(&file)).unwrap();
    assert_eq!(segment.join(NodeId(std::process::id())).unwrap(), Some(1));
    while segment.host(1).unwrap().phase != Phase::Live {
        std::thread::yield_now();
    }
    let mut worker = Worker::new(segment, 1, u64::from(std::process::id()));
    let gateway = NodeId(std::process::id());
    for n in 1.. {
        worker.transfer(TxnId { hlc: Timestamp(n), gateway }, &mut |worker: &mut Worker<_>| {
            worker.follow();
            worker.tidy();
            std::thread::yield_now();
        });
    }
}

struct Host(Child);

impl Host {
    fn start(path: &Path) -> Host {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["bank::second_host", "--exact", "--ignored", "--nocapture"])
            .env(FILE, path)
            .stdout(Stdio::null())
            .spawn();
        Host(child.unwrap())
    }
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

/// L.
pub struct Leader {
    pub rings: Rings,
    feed: FeedWriter,
    /// Accounts with balances before and after, by timestamp.
    log: BTreeMap<Timestamp, [(u8, u64, u64); 3]>,
    /// By host: how many, and where the last record lies.
    pub taken: Vec<(u64, Option<u64>)>,
}

impl Leader {
    pub fn new<M: Memory>(segment: &Segment<M>) -> Leader {
        let taken = vec![(0, None); segment.hosts().into()];
        Leader { rings: Rings::new(segment, BUGS), feed: FeedWriter::new(), log: BTreeMap::new(), taken }
    }

    pub fn lead<M: Memory>(&mut self, segment: &Segment<M>) {
        for host in 0..segment.hosts() {
            let entries = self.rings.take(segment, host, 1000).unwrap();
            if entries.is_empty() {
                continue;
            }
            self.rings.taken(segment, host);
            let mut items = vec![];
            for (place, entry) in &entries {
                let Entry::Transaction(logged) = entry else { unreachable!("only transactions are pushed") };
                let mut body = logged.body.clone();
                let accounts = [body.get_u8(), body.get_u8(), body.get_u8()];
                let changes = accounts.map(|account| (account, body.get_u64_le(), body.get_u64_le()));
                assert!(self.log.insert(logged.at, changes).is_none(), "a timestamp is drawn once");
                let taken = &mut self.taken[usize::from(host)];
                *taken = (taken.0 + 1, Some(place.begin));
                let reference = Reference { place: *place, id: logged.id, at: logged.at, slots: logged.slots.clone() };
                items.push(Item::Entry(reference));
            }
            self.rings.durable(segment, entries.iter().map(|(_, entry)| entry));
            let log = LogPosition { index: self.log.len() as u64, term: 1 };
            let record = FeedRecord { log, closed: Timestamp::MIN, watermark: Timestamp::MIN, items };
            while self.feed.publish(segment, &record) == Err(NoRoom::Now) {
                self.feed.reclaim(segment).unwrap();
                std::thread::yield_now();
            }
        }
    }

    fn repair<M: Memory>(&mut self, segment: &Segment<M>) {
        self.rings.fence(segment, 1).unwrap();
        let mut repair = Repair::new(1, 0, BUGS);
        loop {
            match repair.step(segment).unwrap() {
                Repaired::More => {}
                Repaired::Done => break,
                Repaired::Unlink(_) => unreachable!("nothing moves out"),
                Repaired::Wait { position, .. } => {
                    while self.taken[1].1 != Some(position) {
                        self.lead(segment);
                    }
                    repair.durable();
                }
            }
        }
        self.lead(segment);
        assert!(self.rings.seal(segment, 1).unwrap());
    }

    /// What the accounts hold, from the log. Every transaction must have seen what came before it.
    pub fn balances(&self) -> [u64; ACCOUNTS as usize] {
        let mut balances = [FIRST; ACCOUNTS as usize];
        for (at, changes) in &self.log {
            for (account, before, after) in changes {
                let balance = &mut balances[usize::from(*account)];
                assert_eq!(*balance, *before, "the transaction at {} has seen another balance of {account}", at.0);
                *balance = *after;
            }
        }
        balances
    }
}

pub fn make_accounts<M: Memory + Clone>(worker: &mut Worker<M>) {
    let segment = worker.segment.clone();
    let lines = lines_of(node_bytes(1, 1));
    for account in 0..ACCOUNTS {
        let at = worker.block(&mut |_| unreachable!("there are blocks"));
        let mut write = BodyWrite::new(at, FIRST.to_le_bytes().to_vec().into(), BUGS);
        assert_eq!(write.step(&segment), None);
        let tuple = NewTuple {
            key: vec![account].into(),
            slot: Slot(0),
            newest: Timestamp::MIN,
            columns: ColumnMask::ALL,
            body: write.step(&segment).unwrap(),
            written_at: 0,
            lock: None,
            pending: None,
        };
        let block = loop {
            if let Some(block) = worker.allocator.allocate(Area::Nodes, lines) {
                break block;
            }
            let mut refill = Refill::new(&segment, &worker.allocator, Area::Nodes, lines);
            while refill.step(&segment, &mut worker.allocator).unwrap() != Some(true) {}
        };
        let node = tuple.write(&segment, block, 1);
        let mut insert = Insert::new(node, tuple.key, 1);
        while insert.step(&segment).unwrap() != Inserted::Done {}
    }
}

/// Frees the dead host's chunks that nothing lies in any more.
fn sweep<M: Memory + Clone>(worker: &mut Worker<M>, orphans: &mut Orphans) -> usize {
    let segment = worker.segment.clone();
    let epoch = worker.epochs.enter(&segment);
    orphans.begin();
    let mut walk = Walk::new(Bytes::new(), vec![ACCOUNTS].into());
    loop {
        match walk.step(&segment).unwrap() {
            Walked::More => {}
            Walked::Tuple(node) => orphans.meets(&segment, node).unwrap(),
            Walked::Over => break,
        }
    }
    orphans.end(&segment).unwrap();
    worker.epochs.leave(epoch);
    worker.tidy();
    worker.tidy();
    std::iter::from_fn(|| orphans.free_one(&segment, true).unwrap()).count()
}

#[test]
#[cfg_attr(miri, ignore = "Miri starts no processes and maps no files")]
fn no_money_is_lost_when_a_host_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memory");
    let purpose = Purpose { generation: 1, group: GroupId(2), term: 1 };
    let segment = Segment::create_file(&path, SIZES, purpose).unwrap();
    let mut leader = Leader::new(&segment);
    assert_eq!(segment.join(NodeId(1)).unwrap(), Some(0));
    assert!(leader.rings.admit(&segment, 0).unwrap());
    let mut worker = Worker::new(segment.clone(), 0, 7);
    make_accounts(&mut worker);
    let (mut freed, mut n) = (0, 0);
    for round in 0..12_u64 {
        let mut child = Host::start(&path);
        while !leader.rings.admit(&segment, 1).unwrap() {
            assert!(child.0.try_wait().unwrap().is_none(), "the second host ended by itself");
            worker.follow();
            worker.tidy();
            std::thread::yield_now();
        }
        let until = leader.taken[1].0 + 1 + round * 23 % 150;
        while leader.taken[1].0 < until {
            assert!(child.0.try_wait().unwrap().is_none(), "the second host ended by itself");
            n += 1;
            let id = TxnId { hlc: Timestamp(n), gateway: NodeId(1) };
            worker.transfer(id, &mut |worker: &mut Worker<_>| {
                leader.lead(&segment);
                worker.follow();
                worker.tidy();
                std::thread::yield_now();
            });
        }
        child.kill();
        leader.repair(&segment);
        worker.follow();
        let balances = leader.balances();
        assert_eq!(balances.iter().sum::<u64>(), u64::from(ACCOUNTS) * FIRST);
        for account in 0..ACCOUNTS {
            let node = segment.find(&vec![account].into()).unwrap().unwrap();
            let read = worker.read(node, Timestamp::MAX, &mut |_| panic!("a lock has stayed"));
            assert_eq!(read.map(|(balance, _)| balance), Some(balances[usize::from(account)]), "account {account}");
        }
        // Its bodies are overwritten by those of host 0; then its chunks are of no use.
        let mut orphans = Orphans::new(1, BUGS);
        for _ in 0..100 {
            n += 1;
            let id = TxnId { hlc: Timestamp(n), gateway: NodeId(1) };
            worker.transfer(id, &mut |worker: &mut Worker<_>| {
                leader.lead(&segment);
                worker.follow();
                worker.tidy();
            });
        }
        freed += sweep(&mut worker, &mut orphans);
        assert!(leader.rings.release(&segment, 1).unwrap());
    }
    assert!(freed >= 6, "a dead host's chunks come back: {freed}");
    assert!(leader.taken.iter().all(|(taken, _)| *taken > 100), "{:?}", leader.taken);
}
