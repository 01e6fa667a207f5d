//! Memory of one process. The mapping of a file does the same with words that lie elsewhere, so the
//! functions on slices of words are here for both.

use super::Memory;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// Memory of one process, coherent everywhere.
#[derive(Debug)]
pub struct Heap {
    words: Vec<AtomicU64>,
}

impl Heap {
    /// Zeros.
    ///
    /// # Panics
    ///
    /// If `len` is no multiple of 8.
    pub fn new(len: u64) -> Heap {
        assert!(len.is_multiple_of(8), "memory consists of words");
        Heap { words: (0..len / 8).map(|_| AtomicU64::new(0)).collect() }
    }
}

impl Clone for Heap {
    /// A copy of what it holds now.
    fn clone(&self) -> Heap {
        Heap { words: self.words.iter().map(|word| AtomicU64::new(word.load(SeqCst))).collect() }
    }
}

/// The index of the word at an offset.
fn index(at: u64) -> usize {
    assert!(at.is_multiple_of(8), "a word lies at a multiple of 8, not at {at}");
    usize::try_from(at / 8).expect("offsets fit the address space")
}

/// Reads the bytes of a block. Word by word, so that a wrong reader reads wrong bytes and not
/// undefined ones.
pub(super) fn read(words: &[AtomicU64], at: u64, into: &mut [u8]) {
    let first = index(at);
    for (i, chunk) in into.chunks_mut(8).enumerate() {
        chunk.copy_from_slice(&words[first + i].load(Relaxed).to_le_bytes()[..chunk.len()]);
    }
}

/// The reverse of [`read`].
pub(super) fn write(words: &[AtomicU64], at: u64, from: &[u8]) {
    let first = index(at);
    for (i, chunk) in from.chunks(8).enumerate() {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        words[first + i].store(u64::from_le_bytes(word), Relaxed);
    }
}

/// [`Memory`] for a type whose words are all coherent.
macro_rules! coherent_memory {
    ($memory:ty) => {
        impl Memory for $memory {
            fn len(&self) -> u64 {
                self.words().len() as u64 * 8
            }
            fn is_lost(&self) -> bool {
                self.has_fault()
            }
            fn load(&self, at: u64) -> u64 {
                self.words()[index(at)].load(SeqCst)
            }
            fn store(&self, at: u64, value: u64) {
                self.words()[index(at)].store(value, SeqCst);
            }
            fn compare_exchange(&self, at: u64, expected: u64, new: u64) -> Result<(), u64> {
                self.words()[index(at)].compare_exchange(expected, new, SeqCst, SeqCst).map(|_| ())
            }
            fn fetch_max(&self, at: u64, value: u64) -> u64 {
                self.words()[index(at)].fetch_max(value, SeqCst)
            }
            fn fetch_add(&self, at: u64, value: u64) -> u64 {
                self.words()[index(at)].fetch_add(value, SeqCst)
            }
            fn fetch_or(&self, at: u64, bits: u64) -> u64 {
                self.words()[index(at)].fetch_or(bits, SeqCst)
            }
            fn swap(&self, at: u64, value: u64) -> u64 {
                self.words()[index(at)].swap(value, SeqCst)
            }
            fn read(&self, at: u64, into: &mut [u8]) {
                read(self.words(), at, into);
            }
            fn write(&self, at: u64, from: &[u8]) {
                write(self.words(), at, from);
            }
            fn flush(&self, _at: u64, _len: u64) {}
            fn invalidate(&self, _at: u64, _len: u64) {}
        }
    };
}

coherent_memory!(Heap);
coherent_memory!(super::Mapping);

impl Heap {
    fn words(&self) -> &[AtomicU64] {
        &self.words
    }
    /// The process's own memory does not vanish.
    fn has_fault(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_a_block_are_padded_with_zeros() {
        let memory = Heap::new(64);
        memory.store(8, u64::MAX);
        memory.write(0, b"twelve bytes");
        let mut back = [0; 12];
        memory.read(0, &mut back);
        assert_eq!(&back, b"twelve bytes");
        assert_eq!(memory.load(8) >> 32, 0, "behind the end are zeros");
    }

    #[test]
    fn operations_on_words() {
        let memory = Heap::new(64);
        memory.store(8, 5);
        assert_eq!(memory.compare_exchange(8, 4, 6), Err(5));
        assert_eq!(memory.compare_exchange(8, 5, 6), Ok(()));
        assert_eq!(memory.fetch_max(8, 3), 6);
        assert_eq!(memory.fetch_max(8, 9), 6);
        assert_eq!(memory.swap(8, 6), 9);
        assert_eq!(memory.fetch_or(8, 1), 6);
        assert_eq!(memory.fetch_add(8, u64::MAX - 5), 7);
        assert_eq!(memory.load(8), 1);
        let copy = memory.clone();
        memory.store(8, 2);
        assert_eq!(copy.load(8), 1);
    }
}
