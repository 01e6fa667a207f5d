//! The list of shared tuples: one ordered lock-free skip list in coherent memory.
//!
//! *Level 0 decides.* A tuple is in the list if it is reached there; one comparison links it, one
//! sets the mark that removes it (Harris), and every walk that passes a marked node unlinks it. So
//! the list is whole after a crash at any step.
//!
//! *Towers are hints.* A word of a higher level names a node and its generation. It may be missing
//! or old: a node is used as a shortcut only if its generation is the hint's, it is not marked, and
//! its key is where it should be. A crash in between costs speed, and nothing else. So nothing has
//! to be unlinked above level 0 before a node may be used again.
//!
//! ```text
//! level 0   offset of the next node; bit 0: this node is removed
//! above     line of a node 38, its generation 26; 0: none
//! ```
//!
//! An operation runs inside of an epoch ([`crate::Epochs`]): a node that it may meet at level 0 is
//! not used again meanwhile (C5). The generation of a node that a hint names is loaded *after* its
//! level-0 word: a new use of the block stores the generation first.

use crate::error::Damaged;
use crate::layout::header;
use crate::memory::{LINE, Memory};
use crate::segment::Segment;
use crate::tuple::{LEVELS, Node};
use bytes::Bytes;

const MARK: u64 = 1;
const HINT_LINE: u64 = (1 << 38) - 1;

/// Restarts of a search with hints; after that it goes along level 0 only.
const RESTARTS_MAX: u8 = 8;

fn hint<M: Memory>(segment: &Segment<M>, node: Node) -> u64 {
    (node.0 / LINE) | u64::from(node.generation(segment)) << 38
}

/// A place in the list: its beginning, or a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Before {
    Head,
    Node(Node),
}

impl Before {
    fn word(self, level: u8) -> u64 {
        match self {
            Before::Head => header::INDEX + 8 * u64::from(level),
            Before::Node(node) => node.tower(level),
        }
    }
}

/// Where a key is, or would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Found {
    before: Before,
    /// The first node at or behind the key.
    pub next: Option<Node>,
    /// `next` has the key.
    pub is_equal: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum FindAt {
    Hint,
    /// A hint leads to this node: look at its level-0 word.
    Lower {
        node: Node,
        hint: u64,
    },
    /// Then at its key, and at its generation after that.
    Key {
        node: Node,
        hint: u64,
        is_removed: bool,
    },
    /// This hint is of no use any more.
    Drop {
        hint: u64,
    },
    First,
    /// At this node, which `before` leads to.
    Node(Node),
    Unlink {
        node: Node,
        next: u64,
    },
}

/// A search for a key. Unlinks the removed nodes that it passes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Find {
    key: Bytes,
    before: Before,
    before_key: Bytes,
    level: u8,
    restarts: u8,
    /// By level, from 1 on: where a new node would come, and the hint that is there.
    way: Vec<(u8, Before, u64)>,
    at: FindAt,
}

impl Find {
    /// Of this key.
    pub fn new(key: Bytes) -> Find {
        let (before, before_key, level) = (Before::Head, Bytes::new(), LEVELS - 1);
        Find { key, before, before_key, level, restarts: 0, way: Vec::new(), at: FindAt::Hint }
    }

    fn restart(&mut self) {
        let restarts = self.restarts.saturating_add(1);
        let is_plain = restarts >= RESTARTS_MAX;
        *self = Find { restarts, ..Find::new(std::mem::take(&mut self.key)) };
        if is_plain {
            self.at = FindAt::First;
        }
    }

    fn down(&mut self, hint: u64) {
        self.way.push((self.level, self.before, hint));
        self.level -= 1;
        self.at = if self.level == 0 { FindAt::First } else { FindAt::Hint };
    }

    /// The next step: one load, or one comparison.
    ///
    /// # Errors
    ///
    /// If shared memory holds what no host writes.
    pub fn step<M: Memory>(&mut self, segment: &Segment<M>) -> Result<Option<Found>, Damaged> {
        let memory = segment.memory();
        match self.at {
            FindAt::Hint => {
                let hint = memory.load(self.before.word(self.level));
                if hint == 0 {
                    self.down(hint);
                } else {
                    let node = Node(segment.layout().node((hint & HINT_LINE) * LINE)?);
                    self.at = FindAt::Lower { node, hint };
                }
            }
            FindAt::Lower { node, hint } => {
                let is_removed = memory.load(node.tower(0)) & MARK != 0;
                self.at = FindAt::Key { node, hint, is_removed };
            }
            FindAt::Key { node, hint: word, is_removed } => {
                // A block that is being written for its next use may have no key: then its
                // generation has changed already.
                let key = node.key(segment);
                let is_old = is_removed || hint(segment, node) != word;
                match key {
                    _ if is_old => self.at = FindAt::Drop { hint: word },
                    Err(damaged) => return Err(damaged),
                    Ok(key) if key < self.key && (self.before == Before::Head || key > self.before_key) => {
                        (self.before, self.before_key, self.at) = (Before::Node(node), key, FindAt::Hint);
                    }
                    Ok(_) => self.down(word),
                }
            }
            FindAt::Drop { hint } => {
                // Whether another host was faster does not matter: it is a hint.
                let _ = memory.compare_exchange(self.before.word(self.level), hint, 0);
                self.down(0);
            }
            FindAt::First => {
                let word = memory.load(self.before.word(0));
                if word & MARK != 0 {
                    self.restart();
                } else if word == 0 {
                    return Ok(Some(Found { before: self.before, next: None, is_equal: false }));
                } else {
                    self.at = FindAt::Node(Node(segment.layout().node(word)?));
                }
            }
            FindAt::Node(node) => {
                let word = memory.load(node.tower(0));
                if word & MARK != 0 {
                    self.at = FindAt::Unlink { node, next: word & !MARK };
                    return Ok(None);
                }
                let key = node.key(segment)?;
                if key >= self.key {
                    return Ok(Some(Found { before: self.before, next: Some(node), is_equal: key == self.key }));
                }
                (self.before, self.before_key) = (Before::Node(node), key);
                match word {
                    0 => return Ok(Some(Found { before: self.before, next: None, is_equal: false })),
                    next => self.at = FindAt::Node(Node(segment.layout().node(next)?)),
                }
            }
            FindAt::Unlink { node, next } => match memory.compare_exchange(self.before.word(0), node.0, next) {
                Err(_) => self.restart(),
                Ok(()) if next == 0 => return Ok(Some(Found { before: self.before, next: None, is_equal: false })),
                Ok(()) => self.at = FindAt::Node(Node(segment.layout().node(next)?)),
            },
        }
        Ok(None)
    }
}

/// What a step of an insertion has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Inserted {
    /// The next step.
    More,
    /// The node is in the list, for everyone to see; more steps make hints to it.
    Linked,
    /// Another node has the key; the new one was seen by nobody.
    Exists(Node),
    /// The hints are made, too.
    Done,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum InsertAt {
    Find(Find),
    Point(Found),
    Link(Found),
    Tower(usize),
    Hint(usize),
}

/// The insertion of a node that its maker has written and nobody knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Insert {
    node: Node,
    key: Bytes,
    height: u8,
    way: Vec<(u8, Before, u64)>,
    at: InsertAt,
}

impl Insert {
    /// Of a node with this key and height.
    pub fn new(node: Node, key: Bytes, height: u8) -> Insert {
        let at = InsertAt::Find(Find::new(key.clone()));
        Insert { node, key, height, way: Vec::new(), at }
    }

    /// The next step.
    ///
    /// # Errors
    ///
    /// If shared memory holds what no host writes.
    pub fn step<M: Memory>(&mut self, segment: &Segment<M>) -> Result<Inserted, Damaged> {
        match &mut self.at {
            InsertAt::Find(find) => {
                let Some(found) = find.step(segment)? else { return Ok(Inserted::More) };
                if let Some(there) = found.next.filter(|_| found.is_equal) {
                    return Ok(Inserted::Exists(there));
                }
                let height = self.height;
                self.way = find.way.iter().copied().filter(|(level, ..)| *level < height).collect();
                self.at = InsertAt::Point(found);
            }
            InsertAt::Point(found) => {
                let found = *found;
                segment.memory().store(self.node.tower(0), found.next.map_or(0, |next| next.0));
                self.at = InsertAt::Link(found);
            }
            InsertAt::Link(found) => {
                let expected = found.next.map_or(0, |next| next.0);
                if segment.memory().compare_exchange(found.before.word(0), expected, self.node.0).is_ok() {
                    self.at = InsertAt::Tower(0);
                    return Ok(Inserted::Linked);
                }
                self.at = InsertAt::Find(Find::new(self.key.clone()));
            }
            InsertAt::Tower(i) => {
                let i = *i;
                let Some((level, _, expected)) = self.way.get(i) else { return Ok(Inserted::Done) };
                segment.memory().store(self.node.tower(*level), *expected);
                self.at = InsertAt::Hint(i);
            }
            InsertAt::Hint(i) => {
                let (level, before, expected) = self.way[*i];
                // If the hint has changed meanwhile, the node has none to it at this level.
                let _ = segment.memory().compare_exchange(before.word(level), expected, hint(segment, self.node));
                self.at = InsertAt::Tower(*i + 1);
            }
        }
        Ok(Inserted::More)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum RemoveAt {
    Look,
    Mark(u64),
    Unlink(Find),
}

/// The removal of a node whose lock says that it is dead. It may be begun again, by any host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Remove {
    node: Node,
    at: RemoveAt,
}

impl Remove {
    /// Of this node.
    pub fn new(node: Node) -> Remove {
        Remove { node, at: RemoveAt::Look }
    }

    /// The next step. True: no operation that begins now can meet the node, which may be retired.
    ///
    /// # Errors
    ///
    /// If shared memory holds what no host writes.
    pub fn step<M: Memory>(&mut self, segment: &Segment<M>) -> Result<bool, Damaged> {
        let key = |node: Node| node.key(segment);
        match &mut self.at {
            RemoveAt::Look => {
                let word = segment.memory().load(self.node.tower(0));
                self.at = match word & MARK {
                    0 => RemoveAt::Mark(word),
                    _ => RemoveAt::Unlink(Find::new(key(self.node)?)),
                };
            }
            RemoveAt::Mark(word) => {
                let marked = segment.memory().compare_exchange(self.node.tower(0), *word, *word | MARK);
                self.at = match marked {
                    Ok(()) => RemoveAt::Unlink(Find::new(key(self.node)?)),
                    Err(_) => RemoveAt::Look,
                };
            }
            RemoveAt::Unlink(find) => return Ok(find.step(segment)?.is_some()),
        }
        Ok(false)
    }
}

/// A walk along the tuples of a range, in order (`docs/design/pod.md`). A tuple that is there
/// during the whole walk is met.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Walk {
    end: Bytes,
    at: WalkAt,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum WalkAt {
    Find(Find),
    Node(Node),
    Over,
}

/// What a step of a walk has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Walked {
    /// The next step.
    More,
    /// This tuple is next; go on.
    Tuple(Node),
    /// That was all.
    Over,
}

impl Walk {
    /// From `begin` to before `end`.
    pub fn new(begin: Bytes, end: Bytes) -> Walk {
        Walk { end, at: WalkAt::Find(Find::new(begin)) }
    }

    /// The next step.
    ///
    /// # Errors
    ///
    /// If shared memory holds what no host writes.
    pub fn step<M: Memory>(&mut self, segment: &Segment<M>) -> Result<Walked, Damaged> {
        match &mut self.at {
            WalkAt::Find(find) => {
                let Some(found) = find.step(segment)? else { return Ok(Walked::More) };
                self.at = found.next.map_or(WalkAt::Over, WalkAt::Node);
                Ok(Walked::More)
            }
            WalkAt::Node(node) => {
                let node = *node;
                let (word, key) = (segment.memory().load(node.tower(0)), node.key(segment)?);
                if key >= self.end {
                    self.at = WalkAt::Over;
                    return Ok(Walked::Over);
                }
                self.at = match word & !MARK {
                    // Behind a removed node the list goes on as it was when that was removed: what
                    // was linked since is found from the node's key again.
                    _ if word & MARK != 0 => WalkAt::Find(Find::new(key)),
                    0 => WalkAt::Over,
                    next => WalkAt::Node(Node(segment.layout().node(next)?)),
                };
                Ok(if word & MARK != 0 { Walked::More } else { Walked::Tuple(node) })
            }
            WalkAt::Over => Ok(Walked::Over),
        }
    }
}

impl Node {
    /// Whether it is removed from the list, or about to be unlinked (one step).
    pub fn is_removed<M: Memory>(self, segment: &Segment<M>) -> bool {
        segment.memory().load(self.tower(0)) & MARK != 0
    }
}

impl<M: Memory> Segment<M> {
    /// The tuple with a key: all steps of a [`Find`].
    ///
    /// # Errors
    ///
    /// If shared memory holds what no host writes.
    pub fn find(&self, key: &Bytes) -> Result<Option<Node>, Damaged> {
        let mut find = Find::new(key.clone());
        loop {
            if let Some(found) = find.step(self)? {
                return Ok(found.next.filter(|_| found.is_equal));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Sizes;
    use crate::memory::Heap;
    use crate::slots::Slot;
    use crate::testing::heap_of;
    use crate::tuple::{Body, NewTuple, height_of};
    use meridian_base::{ColumnMask, Timestamp};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    // Miri is slow: it gets a small memory and few operations.
    const SIZES: Sizes = Sizes { chunk: if cfg!(miri) { 1 << 13 } else { 1 << 16 }, ..Sizes::SMALL };
    const OPERATIONS: usize = if cfg!(miri) { 10 } else { 300 };

    fn tuple(key: u16) -> NewTuple {
        NewTuple {
            key: key.to_be_bytes().to_vec().into(),
            slot: Slot(0),
            newest: Timestamp(1),
            columns: ColumnMask::ALL,
            body: Body::Absent,
            written_at: 0,
            lock: None,
            pending: None,
        }
    }

    fn insert(segment: &Segment<Heap>, at: u64, key: u16, height: u8) -> Option<Node> {
        let tuple = tuple(key);
        let node = tuple.write(segment, at, height);
        let mut insert = Insert::new(node, tuple.key, height);
        loop {
            match insert.step(segment).unwrap() {
                Inserted::Exists(_) => return None,
                Inserted::Done => return Some(node),
                Inserted::More | Inserted::Linked => {}
            }
        }
    }

    fn walk(segment: &Segment<Heap>, from: u16, to: u16) -> Vec<Node> {
        let mut walk = Walk::new(from.to_be_bytes().to_vec().into(), to.to_be_bytes().to_vec().into());
        let mut nodes = Vec::new();
        loop {
            match walk.step(segment).unwrap() {
                Walked::Tuple(node) => nodes.push(node),
                Walked::Over => return nodes,
                Walked::More => {}
            }
        }
    }

    proptest! {
        /// One host: the list is a map. Blocks of removed nodes are used again at once, so that old
        /// hints lead to them.
        #[test]
        fn the_list_is_an_ordered_map(operations in prop::collection::vec((0_u16..60, any::<u64>(), any::<bool>()), 1..OPERATIONS)) {
            let segment = heap_of(SIZES);
            let mut model = BTreeMap::new();
            let mut free: Vec<u64> = (0..SIZES.chunk / 256).map(|i| segment.layout().chunk(0) + 256 * i).collect();
            for (key, random, is_insert) in operations {
                if is_insert {
                    let at = free.pop().unwrap();
                    match insert(&segment, at, key, height_of(random)) {
                        Some(node) => prop_assert_eq!(model.insert(key, node), None),
                        None => free.push(at),
                    }
                } else if let Some(node) = model.remove(&key) {
                    let mut remove = Remove::new(node);
                    while !remove.step(&segment).unwrap() {}
                    free.push(node.0);
                }
                let found = segment.find(&Bytes::copy_from_slice(&key.to_be_bytes())).unwrap();
                prop_assert_eq!(found, model.get(&key).copied());
                prop_assert_eq!(walk(&segment, 10, 50), model.range(10..50).map(|(_, node)| *node).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "a list of 200 tuples takes too long")]
    fn hints_shorten_the_way() {
        let segment = heap_of(SIZES);
        let mut random = 7_u64;
        for i in 0..200_u16 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            insert(&segment, segment.layout().chunk(0) + 256 * u64::from(i), i.wrapping_mul(77) % 200, height_of(random >> 20));
        }
        let mut find = Find::new(199_u16.to_be_bytes().to_vec().into());
        let steps = (1..).find(|_| find.step(&segment).unwrap().is_some()).unwrap();
        assert!(steps < 100, "{steps} steps to the last of 200");
    }
}
