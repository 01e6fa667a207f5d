//! Blocks for tuples and bodies.
//!
//! Memory is given out in *chunks*. A chunk belongs to one host: one comparison on its entry in the
//! table takes it. Inside of it, only that host allocates, from lists in its own memory; so a crash
//! leaves nothing half done there. Blocks of a chunk have one size, a power of two of lines.
//!
//! ```text
//! entry   state 8, host 8, lines 16, version 16, zeros 16 | returned: line of a block 38, zeros 10, version 16
//! ```
//!
//! A block that is not needed any more is *retired* by the host that took it out of use, and free
//! when every host has passed the epoch (C5, [`crate::Epochs`]). If the chunk is another host's,
//! the block goes back through the list of the entry; its first word is the link.
//!
//! *A dead host's chunks* have blocks that live on, and others that the host had in its lists:
//! which are which is not known. They belong to nobody until no tuple and no body is in them any
//! more ([`Orphans`]): then the chunk as a whole is free. Its version grows, so that a block which
//! another host returns late is dropped.
//!
//! A chunk of bodies that the dead host may have been writing stays in quarantine beyond that,
//! until the lines of its machine's cache cannot come back (C7). Hosts of one machine share a
//! coherent memory and need none.

use crate::error::Damaged;
use crate::memory::{LINE, Memory};
use crate::rules::Rules;
use crate::segment::Segment;
use crate::tuple::{BODY, BodyWord, Node, PENDING};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What blocks are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Area {
    /// Tuples: coherent memory.
    Nodes,
    /// Bodies: bulk memory.
    Bodies,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Free,
    Owned,
    Freeing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Entry {
    state: State,
    host: u8,
    lines: u16,
    version: u16,
}

impl Entry {
    fn word(self) -> u64 {
        self.state as u64 | u64::from(self.host) << 8 | u64::from(self.lines) << 16 | u64::from(self.version) << 32
    }
    fn from_word(word: u64) -> Result<Entry, Damaged> {
        let state = match word as u8 {
            0 => State::Free,
            1 => State::Owned,
            2 => State::Freeing,
            other => return Err(Damaged(format!("a chunk in state {other}"))),
        };
        let entry = Entry { state, host: (word >> 8) as u8, lines: (word >> 16) as u16, version: (word >> 32) as u16 };
        match state == State::Owned && !entry.lines.is_power_of_two() {
            true => Err(Damaged(format!("a chunk with blocks of {} lines", entry.lines))),
            false => Ok(entry),
        }
    }
    fn returned(self, line: u64) -> u64 {
        line | u64::from(self.version) << 48
    }
}

const RETURNED: u64 = 8;
const LINE_BITS: u64 = (1 << 38) - 1;

/// The lines of the blocks that hold this many bytes.
pub fn lines_of(bytes: u64) -> u16 {
    u16::try_from(bytes.div_ceil(LINE).max(1).next_power_of_two()).unwrap_or(u16::MAX)
}

/// A block that waits for its epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Retired {
    at: u64,
    epoch: u64,
    version: u16,
}

/// A host's lists of blocks, under its own lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Allocator {
    host: u8,
    rules: Rules,
    free: BTreeMap<(Area, u16), Vec<u64>>,
    /// Chunks of this host: the lines of their blocks, and their version.
    owned: BTreeMap<u32, (u16, u16)>,
    retired: VecDeque<Retired>,
    /// A block on its way back to another host: the list's head as it was seen.
    returning: Option<(Retired, u64)>,
}

impl Allocator {
    /// Of a host that has just joined: it owns nothing.
    pub fn new(host: u8, rules: Rules) -> Allocator {
        let (free, owned) = (BTreeMap::new(), BTreeMap::new());
        Allocator { host, rules, free, owned, retired: VecDeque::new(), returning: None }
    }

    /// A block of so many lines ([`lines_of`]), from the host's own list; `None`: run a [`Refill`].
    pub fn allocate(&mut self, area: Area, lines: u16) -> Option<u64> {
        self.free.get_mut(&(area, lines))?.pop()
    }

    /// A block that nobody else has seen is free at once. A body's was flushed (C6).
    pub fn give_back<M: Memory>(&mut self, segment: &Segment<M>, at: u64) {
        let chunk = segment.layout().chunk_of(at).expect("a block lies in a chunk");
        let (lines, _) = *self.owned.get(&chunk).expect("a block that nobody has seen is one's own");
        self.free.entry((area_of(segment, chunk), lines)).or_default().push(at);
    }

    /// Takes a block out of use: it is unlinked, and operations in progress may be reading it (two
    /// steps).
    ///
    /// # Errors
    ///
    /// If the chunk's entry is damaged.
    pub fn retire<M: Memory>(&mut self, segment: &Segment<M>, at: u64) -> Result<(), Damaged> {
        let chunk = segment.layout().chunk_of(at).ok_or_else(|| Damaged(format!("{at:#x} is no block")))?;
        let entry = Entry::from_word(segment.memory().load(segment.layout().chunk_entry(chunk)))?;
        self.retired.push_back(Retired { at, epoch: segment.epoch(), version: entry.version });
        Ok(())
    }

    /// Frees the oldest retired block, if every host has passed its epoch. Whether there may be
    /// more to do. A step at a time for a block of another host; for an own one, those of
    /// [`Segment::may_reuse`].
    ///
    /// # Errors
    ///
    /// If shared memory holds what no host writes.
    pub fn reclaim<M: Memory>(&mut self, segment: &Segment<M>) -> Result<bool, Damaged> {
        if let Some((block, head)) = self.returning.take() {
            return self.give_to_owner(segment, block, head);
        }
        let Some(block) = self.retired.front().copied() else { return Ok(false) };
        if !segment.may_reuse(block.epoch, self.rules)? {
            return Ok(false);
        }
        self.retired.pop_front();
        let chunk = segment.layout().chunk_of(block.at).expect("it was checked when it was retired");
        match self.owned.get(&chunk) {
            // It may have been another host's when the block was retired, which died since: then
            // the chunk was free as a whole, and this block with it.
            Some((_, version)) if *version != block.version => {}
            Some((lines, _)) => self.free.entry((area_of(segment, chunk), *lines)).or_default().push(block.at),
            None => self.look_at_owner(segment, block, chunk),
        }
        Ok(true)
    }

    fn look_at_owner<M: Memory>(&mut self, segment: &Segment<M>, block: Retired, chunk: u32) {
        let head = segment.memory().load(segment.layout().chunk_entry(chunk) + RETURNED);
        if (head >> 48) as u16 == block.version {
            self.returning = Some((block, head));
        }
    }

    fn give_to_owner<M: Memory>(&mut self, segment: &Segment<M>, block: Retired, head: u64) -> Result<bool, Damaged> {
        let chunk = segment.layout().chunk_of(block.at).expect("it was checked when it was retired");
        let memory = segment.memory();
        memory.write(block.at, &(head & LINE_BITS).to_le_bytes());
        memory.flush(block.at, 8);
        let mine = (block.at / LINE) | u64::from(block.version) << 48;
        if memory.compare_exchange(segment.layout().chunk_entry(chunk) + RETURNED, head, mine).is_err() {
            self.look_at_owner(segment, block, chunk);
        }
        Ok(true)
    }

    /// Blocks that it has, by what they are for.
    pub fn free_blocks(&self, area: Area) -> usize {
        self.free.iter().filter(|((of, _), _)| *of == area).map(|(_, blocks)| blocks.len()).sum()
    }

    fn take_list<M: Memory>(&mut self, segment: &Segment<M>, chunk: u32, head: u64) -> Result<bool, Damaged> {
        let (lines, _) = self.owned[&chunk];
        let blocks = segment.layout().sizes().chunk / (LINE * u64::from(lines));
        let mut line = head & LINE_BITS;
        for _ in 0..blocks {
            if line == 0 {
                break;
            }
            let at = line * LINE;
            if segment.layout().chunk_of(at) != Some(chunk) {
                return Err(Damaged(format!("{at:#x} was returned to chunk {chunk}")));
            }
            let mut link = [0; 8];
            segment.memory().invalidate(at, 8);
            segment.memory().read(at, &mut link);
            self.free.entry((area_of(segment, chunk), lines)).or_default().push(at);
            line = u64::from_le_bytes(link);
        }
        Ok(head & LINE_BITS != 0)
    }

    fn carve<M: Memory>(&mut self, segment: &Segment<M>, chunk: u32, Entry { lines, version, .. }: Entry) {
        let (begin, size) = (segment.layout().chunk(chunk), LINE * u64::from(lines));
        self.owned.insert(chunk, (lines, version));
        let blocks = (0..segment.layout().sizes().chunk / size).rev().map(|i| begin + i * size);
        self.free.entry((area_of(segment, chunk), lines)).or_default().extend(blocks);
    }
}

fn area_of<M: Memory>(segment: &Segment<M>, chunk: u32) -> Area {
    if chunk < segment.layout().sizes().node_chunks { Area::Nodes } else { Area::Bodies }
}

/// Looks for more blocks of a size: those that were returned, then a free chunk.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Refill {
    area: Area,
    lines: u16,
    /// Chunks of the host whose returned blocks are to be looked at.
    returned: Vec<u32>,
    chunk: u32,
    free: Option<Entry>,
}

impl Refill {
    /// For this allocator.
    pub fn new<M: Memory>(segment: &Segment<M>, allocator: &Allocator, area: Area, lines: u16) -> Refill {
        let of_size =
            |(chunk, (size, _)): (&u32, &(u16, u16))| (*size == lines && area_of(segment, *chunk) == area).then_some(*chunk);
        let first = if area == Area::Nodes { 0 } else { segment.layout().sizes().node_chunks };
        let returned = allocator.owned.iter().filter_map(of_size).collect();
        Refill { area, lines, returned, chunk: first, free: None }
    }

    /// The next step. The answer, once it is known: whether the allocator has more now.
    ///
    /// # Errors
    ///
    /// If shared memory holds what no host writes.
    pub fn step<M: Memory>(&mut self, segment: &Segment<M>, allocator: &mut Allocator) -> Result<Option<bool>, Damaged> {
        let memory = segment.memory();
        if let Some(chunk) = self.returned.pop() {
            let (lines, version) = allocator.owned[&chunk];
            let entry = Entry { state: State::Owned, host: allocator.host, lines, version };
            let head = memory.swap(segment.layout().chunk_entry(chunk) + RETURNED, entry.returned(0));
            return Ok(allocator.take_list(segment, chunk, head)?.then_some(true));
        }
        let ends = match self.area {
            Area::Nodes => segment.layout().sizes().node_chunks,
            Area::Bodies => segment.layout().chunks(),
        };
        if self.chunk == ends || LINE * u64::from(self.lines) > segment.layout().sizes().chunk {
            return Ok(Some(false));
        }
        let place = segment.layout().chunk_entry(self.chunk);
        if let Some(free) = self.free.take() {
            let entry = Entry { state: State::Owned, host: allocator.host, lines: self.lines, ..free };
            // Nothing of this version was returned: its list is empty.
            if memory.compare_exchange(place, free.word(), entry.word()).is_ok() {
                allocator.carve(segment, self.chunk, entry);
                return Ok(Some(true));
            }
            self.chunk += 1;
            return Ok(None);
        }
        let entry = Entry::from_word(memory.load(place))?;
        match entry.state {
            State::Free => self.free = Some(entry),
            State::Owned | State::Freeing => self.chunk += 1,
        }
        Ok(None)
    }
}

/// The chunks of a dead host. L looks from time to time which of them are of no use any more; its
/// descriptors are repaired before.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Orphans {
    host: u8,
    rules: Rules,
    /// Chunks of nodes and bodies that somebody may use.
    used: BTreeSet<u32>,
    /// Nothing of them was in use in this epoch.
    unused: BTreeMap<u32, u64>,
}

impl Orphans {
    /// Of this host, which is sealed and repaired.
    pub fn new(host: u8, rules: Rules) -> Orphans {
        Orphans { host, rules, used: BTreeSet::new(), unused: BTreeMap::new() }
    }

    /// A look at the whole list begins.
    pub fn begin(&mut self) {
        self.used.clear();
    }

    /// The walk has met this tuple: what it and its bodies lie in is used (two steps). Its pending
    /// body is loaded before its body, which it may become meanwhile.
    ///
    /// # Errors
    ///
    /// If the tuple is damaged.
    pub fn meets<M: Memory>(&mut self, segment: &Segment<M>, node: Node) -> Result<(), Damaged> {
        let pending = match node.load(segment, PENDING) {
            0 => None,
            line => Some(crate::tuple::Body::from_line(segment, line)?),
        };
        let body = BodyWord::from_word(segment, node.load(segment, BODY))?.body;
        let at = |body| match body {
            crate::tuple::Body::At(at) => Some(at),
            crate::tuple::Body::Absent => None,
        };
        let blocks = [Some(node.0), pending.and_then(at), at(body)];
        self.used.extend(blocks.into_iter().flatten().filter_map(|at| segment.layout().chunk_of(at)));
        Ok(())
    }

    /// The walk is over: the host's chunks that it has not met wait for their epoch.
    ///
    /// # Errors
    ///
    /// If the table is damaged.
    pub fn end<M: Memory>(&mut self, segment: &Segment<M>) -> Result<(), Damaged> {
        let epoch = segment.epoch();
        for chunk in 0..segment.layout().chunks() {
            let entry = Entry::from_word(segment.memory().load(segment.layout().chunk_entry(chunk)))?;
            if entry.state == State::Owned && entry.host == self.host && !self.used.contains(&chunk) {
                self.unused.entry(chunk).or_insert(epoch);
            }
        }
        Ok(())
    }

    /// Frees a chunk whose epoch every host has passed. `caches_are_gone`: the dead host's machine
    /// has flushed its caches or is off; without it no chunk of bodies is freed (C7). Gives the
    /// chunk, if there was one.
    ///
    /// # Errors
    ///
    /// If the table is damaged.
    pub fn free_one<M: Memory>(&mut self, segment: &Segment<M>, caches_are_gone: bool) -> Result<Option<u32>, Damaged> {
        let caches_are_gone = caches_are_gone || !self.rules.quarantines();
        for (&chunk, &epoch) in &self.unused {
            let is_safe = caches_are_gone || area_of(segment, chunk) == Area::Nodes;
            if !is_safe || !segment.may_reuse(epoch, self.rules)? {
                continue;
            }
            let place = segment.layout().chunk_entry(chunk);
            let entry = Entry::from_word(segment.memory().load(place))?;
            let free = Entry { state: State::Free, host: 0, lines: 0, version: entry.version.wrapping_add(1) };
            segment.memory().store(place, Entry { state: State::Freeing, ..free }.word());
            segment.memory().store(place + RETURNED, free.returned(0));
            segment.memory().store(place, free.word());
            self.unused.remove(&chunk);
            return Ok(Some(chunk));
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epochs::Epochs;
    use crate::memory::Heap;
    use crate::testing::heap;
    use meridian_base::NodeId;
    use proptest::prelude::*;

    const OPERATIONS: usize = if cfg!(miri) { 40 } else { 200 };

    fn refill(segment: &Segment<Heap>, allocator: &mut Allocator, area: Area, lines: u16) -> bool {
        let mut refill = Refill::new(segment, allocator, area, lines);
        loop {
            if let Some(has_more) = refill.step(segment, allocator).unwrap() {
                return has_more;
            }
        }
    }

    fn next_epoch(segment: &Segment<Heap>) {
        for host in [0, 1] {
            Epochs::new(host).announce(segment);
        }
        segment.advance_epoch().unwrap();
        for host in [0, 1] {
            Epochs::new(host).announce(segment);
        }
    }

    fn two_hosts() -> (Segment<Heap>, [Allocator; 2]) {
        let segment = heap();
        segment.join(NodeId(1)).unwrap();
        segment.join(NodeId(2)).unwrap();
        (segment, [0, 1].map(|host| Allocator::new(host, Rules::ALL)))
    }

    proptest! {
        /// Two hosts allocate, retire each other's blocks and take theirs back: no block is given
        /// out twice, and in the end all come back.
        #[test]
        fn no_block_is_given_out_twice(operations in prop::collection::vec((0_usize..2, 0_u8..4, any::<prop::sample::Index>()), 1..OPERATIONS)) {
            let (segment, mut hosts) = two_hosts();
            let mut used = Vec::new();
            for (host, what, which) in operations {
                match what {
                    0 | 1 => {
                        let lines = 1 << (what + 1);
                        if hosts[host].allocate(Area::Bodies, lines).is_none() {
                            refill(&segment, &mut hosts[host], Area::Bodies, lines);
                        } else if let Some(at) = hosts[host].allocate(Area::Bodies, lines) {
                            let size = u64::from(lines) * LINE;
                            prop_assert!(used.iter().all(|(begin, end)| at + size <= *begin || *end <= at));
                            used.push((at, at + size));
                        }
                    }
                    2 if !used.is_empty() => {
                        let (at, _) = used.swap_remove(which.index(used.len()));
                        hosts[host].retire(&segment, at).unwrap();
                    }
                    _ => {
                        next_epoch(&segment);
                        while hosts[host].reclaim(&segment).unwrap() {}
                    }
                }
            }
        }
    }

    #[test]
    fn a_block_comes_back_to_its_owner() {
        let (segment, [mut a, mut b]) = two_hosts();
        assert!(refill(&segment, &mut a, Area::Nodes, 4));
        let all = a.free_blocks(Area::Nodes);
        let at = a.allocate(Area::Nodes, 4).unwrap();
        b.retire(&segment, at).unwrap();
        assert!(!b.reclaim(&segment).unwrap(), "it is not time");
        next_epoch(&segment);
        while b.reclaim(&segment).unwrap() {}
        assert_eq!((a.free_blocks(Area::Nodes), b.free_blocks(Area::Nodes)), (all - 1, 0));
        assert!(refill(&segment, &mut a, Area::Nodes, 4));
        assert_eq!(a.free_blocks(Area::Nodes), all);
    }

    #[test]
    fn chunks_end() {
        let (segment, [mut a, mut b]) = two_hosts();
        let claims = (0..10).filter(|_| refill(&segment, &mut a, Area::Nodes, 16)).count();
        assert_eq!(claims, 4);
        assert!(!refill(&segment, &mut b, Area::Nodes, 1));
        assert!(!refill(&segment, &mut b, Area::Bodies, 32), "no block is larger than a chunk");
        assert!(refill(&segment, &mut b, Area::Bodies, 16));
    }

    #[test]
    fn a_dead_hosts_chunks_are_free_when_nothing_is_in_them() {
        let (segment, [mut a, mut b]) = two_hosts();
        assert!(refill(&segment, &mut b, Area::Bodies, 2));
        let late = b.allocate(Area::Bodies, 2).unwrap();
        a.retire(&segment, late).unwrap();
        let mut orphans = Orphans::new(1, Rules::ALL);
        orphans.begin();
        orphans.end(&segment).unwrap();
        assert_eq!(orphans.free_one(&segment, true).unwrap(), None, "operations may be inside");
        next_epoch(&segment);
        assert_eq!(orphans.free_one(&segment, false).unwrap(), None, "its cache may write back (C7)");
        assert!(orphans.free_one(&segment, true).unwrap().is_some());
        assert!(refill(&segment, &mut a, Area::Bodies, 2), "host 0 takes the chunk");
        let mut other = Allocator::new(1, Rules::ALL);
        std::mem::swap(&mut other.retired, &mut a.retired);
        while other.reclaim(&segment).unwrap() {}
        let before = a.free_blocks(Area::Bodies);
        refill(&segment, &mut a, Area::Bodies, 2);
        assert!((a.free_blocks(Area::Bodies) - before).is_multiple_of(8), "the late block was dropped");
    }
}
