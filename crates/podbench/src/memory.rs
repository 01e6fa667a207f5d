//! Shared memory that counts what hosts do with it, and what that costs on a CXL device.
//!
//! Words are coherent: a host's cache keeps a line until another host writes to it. So an operation
//! on a word is a *transfer* of its line if the host's cache does not have it, for a store if any
//! other has. Blocks are not coherent: a flush moves the lines that were written, a read after an
//! invalidation those that are read.

use meridian_pod::memory::{Heap, LINE, Memory};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU16, AtomicU64, AtomicUsize};

/// What was done, since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    /// On words.
    pub words: u64,
    /// Of them, those that moved a line.
    pub transfers: u64,
    pub flushes: u64,
    /// Lines that were flushed, or read after an invalidation.
    pub lines: u64,
    /// Invalidations of blocks.
    pub invalidations: u64,
}

impl Operations {
    /// What came since `earlier`.
    pub fn since(self, earlier: Operations) -> Operations {
        Operations {
            words: self.words - earlier.words,
            transfers: self.transfers - earlier.transfers,
            flushes: self.flushes - earlier.flushes,
            lines: self.lines - earlier.lines,
            invalidations: self.invalidations - earlier.invalidations,
        }
    }
    /// Both.
    pub fn and(self, other: Operations) -> Operations {
        Operations {
            words: self.words + other.words,
            transfers: self.transfers + other.transfers,
            flushes: self.flushes + other.flushes,
            lines: self.lines + other.lines,
            invalidations: self.invalidations + other.invalidations,
        }
    }
}

/// See the module. All hosts are in one thread; [`Counted::acts`] says which one acts.
#[derive(Debug)]
pub struct Counted {
    heap: Heap,
    /// Hosts that have a coherent line in their caches.
    cached: Vec<AtomicU16>,
    host: AtomicUsize,
    counts: [AtomicU64; 5],
}

impl Counted {
    /// Zeros; the first `coherent` bytes are.
    pub fn new(len: u64, coherent: u64) -> Counted {
        let lines = (coherent / LINE) as usize + 1;
        Counted {
            heap: Heap::new(len),
            cached: (0..lines).map(|_| AtomicU16::new(0)).collect(),
            host: AtomicUsize::new(0),
            counts: Default::default(),
        }
    }

    /// What follows is done by this host.
    pub fn acts(&self, host: u8) {
        self.host.store(host.into(), Relaxed);
    }

    /// What was done so far, by all.
    pub fn operations(&self) -> Operations {
        let [words, transfers, flushes, lines, invalidations] = [0, 1, 2, 3, 4].map(|i| self.counts[i].load(Relaxed));
        Operations { words, transfers, flushes, lines, invalidations }
    }

    fn count(&self, what: usize, by: u64) {
        self.counts[what].store(self.counts[what].load(Relaxed) + by, Relaxed);
    }

    fn word(&self, at: u64, writes: bool) {
        self.count(0, 1);
        let Some(cached) = self.cached.get((at / LINE) as usize) else { return };
        let mine = 1 << self.host.load(Relaxed);
        let before = cached.load(Relaxed);
        let is_there = if writes { before == mine } else { before & mine != 0 };
        if !is_there {
            self.count(1, 1);
        }
        cached.store(if writes { mine } else { before | mine }, Relaxed);
    }
}

impl Memory for Counted {
    fn len(&self) -> u64 {
        self.heap.len()
    }
    fn load(&self, at: u64) -> u64 {
        self.word(at, false);
        self.heap.load(at)
    }
    fn store(&self, at: u64, value: u64) {
        self.word(at, true);
        self.heap.store(at, value);
    }
    fn compare_exchange(&self, at: u64, expected: u64, new: u64) -> Result<(), u64> {
        self.word(at, true);
        self.heap.compare_exchange(at, expected, new)
    }
    fn fetch_max(&self, at: u64, value: u64) -> u64 {
        self.word(at, true);
        self.heap.fetch_max(at, value)
    }
    fn fetch_add(&self, at: u64, value: u64) -> u64 {
        self.word(at, true);
        self.heap.fetch_add(at, value)
    }
    fn fetch_or(&self, at: u64, bits: u64) -> u64 {
        self.word(at, true);
        self.heap.fetch_or(at, bits)
    }
    fn swap(&self, at: u64, value: u64) -> u64 {
        self.word(at, true);
        self.heap.swap(at, value)
    }
    fn read(&self, at: u64, into: &mut [u8]) {
        self.heap.read(at, into);
    }
    fn write(&self, at: u64, from: &[u8]) {
        self.heap.write(at, from);
    }
    fn flush(&self, at: u64, len: u64) {
        self.count(2, 1);
        self.count(3, lines(at, len));
    }
    fn invalidate(&self, at: u64, len: u64) {
        self.count(4, 1);
        self.count(3, lines(at, len));
    }
}

fn lines(at: u64, len: u64) -> u64 {
    (at + len).div_ceil(LINE) - at / LINE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_moves_when_another_host_has_written_it() {
        let memory = Counted::new(1024, 512);
        memory.acts(0);
        memory.store(0, 1);
        memory.store(8, 1);
        memory.load(0);
        assert_eq!((memory.operations().words, memory.operations().transfers), (3, 1));
        memory.acts(1);
        memory.load(0);
        memory.load(8);
        assert_eq!(memory.operations().transfers, 2);
        memory.acts(0);
        memory.load(0);
        assert_eq!(memory.operations().transfers, 2, "both have it");
        memory.store(0, 2);
        memory.acts(1);
        memory.load(0);
        assert_eq!(memory.operations().transfers, 4);
        memory.flush(600, 100);
        assert_eq!((memory.operations().flushes, memory.operations().lines), (1, 2));
    }
}
