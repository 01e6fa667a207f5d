//! What the hosts of a pod share, behind one trait.
//!
//! Everything above this module sees memory as *words* and *blocks*.
//!
//! * A word is 8 bytes at a multiple of 8. It is read and changed by single atomic operations. The
//!   memory keeps words coherent between hosts (PASHA, §2.1: the small part of CXL memory that
//!   hardware keeps coherent).
//! * A block is bytes that one host writes while no other host may read them. A host makes a block
//!   visible by [`Memory::flush`] and a change of a word; a reader sees the word and then calls
//!   [`Memory::invalidate`] before it reads the block. Plain memory is coherent everywhere and does
//!   nothing in both (`docs/design/pod.md`).
//!
//! | memory | for |
//! | --- | --- |
//! | [`Heap`] | tests and simulators: all hosts in one process |
//! | [`Mapping`] | processes of one machine that map one file |
//! | [`Device`] | machines that share a device; bodies and rings are flushed |
//! | [`Incoherent`] | a simulated device: a cache per host, which prefetches and writes back at any time |
//!
//! Operations on words are sequentially consistent. The proofs and the explorer count steps in one
//! order that all hosts agree on, and several rules depend on a store of one host before its load
//! of another word (P7 before P8, for example).

mod device;
mod heap;
mod incoherent;
mod mapping;

pub use device::Device;
pub use heap::Heap;
pub use incoherent::{Incoherent, View};
pub use mapping::Mapping;

use std::rc::Rc;
use std::sync::Arc;

/// Bytes in a line: the unit in which caches move memory.
pub const LINE: u64 = 64;

/// Memory that several hosts share. Offsets are in bytes from its beginning.
///
/// # Panics
///
/// All functions panic if an offset is outside of the memory or no multiple of 8. Offsets that come
/// out of shared memory are checked by [`crate::Layout`] before they are used.
pub trait Memory {
    /// Its size in bytes.
    fn len(&self) -> u64;

    /// Whether it has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a part of it has vanished. What was read since may be made up: the reader looks here
    /// *afterwards*, before anything rests on it.
    fn is_lost(&self) -> bool {
        false
    }

    /// Reads a word.
    fn load(&self, at: u64) -> u64;

    /// Writes a word.
    fn store(&self, at: u64, value: u64);

    /// Writes a word if it holds `expected`. The error is what it holds instead.
    fn compare_exchange(&self, at: u64, expected: u64, new: u64) -> Result<(), u64>;

    /// Raises a word to `value`, if it is below. Returns what it held before.
    fn fetch_max(&self, at: u64, value: u64) -> u64;

    /// Adds to a word, and wraps around. Returns what it held before.
    fn fetch_add(&self, at: u64, value: u64) -> u64;

    /// Sets bits of a word. Returns what it held before.
    fn fetch_or(&self, at: u64, bits: u64) -> u64;

    /// Writes a word and returns what it held before.
    fn swap(&self, at: u64, value: u64) -> u64;

    /// Reads the bytes of a block.
    fn read(&self, at: u64, into: &mut [u8]);

    /// Writes the bytes of a block. The bytes behind the end, up to the next multiple of 8, become
    /// zero.
    fn write(&self, at: u64, from: &[u8]);

    /// Makes what this host wrote to a block visible to the other hosts. It ends when that is done.
    fn flush(&self, at: u64, len: u64);

    /// Forgets what this host has cached of a block, so that its next read sees the memory. A line
    /// that this host has written and not flushed is written back.
    fn invalidate(&self, at: u64, len: u64);
}

macro_rules! forward {
    ($pointer:ident) => {
        impl<M: Memory + ?Sized> Memory for $pointer<M> {
            fn len(&self) -> u64 {
                (**self).len()
            }
            fn is_lost(&self) -> bool {
                (**self).is_lost()
            }
            fn load(&self, at: u64) -> u64 {
                (**self).load(at)
            }
            fn store(&self, at: u64, value: u64) {
                (**self).store(at, value);
            }
            fn compare_exchange(&self, at: u64, expected: u64, new: u64) -> Result<(), u64> {
                (**self).compare_exchange(at, expected, new)
            }
            fn fetch_max(&self, at: u64, value: u64) -> u64 {
                (**self).fetch_max(at, value)
            }
            fn fetch_add(&self, at: u64, value: u64) -> u64 {
                (**self).fetch_add(at, value)
            }
            fn fetch_or(&self, at: u64, bits: u64) -> u64 {
                (**self).fetch_or(at, bits)
            }
            fn swap(&self, at: u64, value: u64) -> u64 {
                (**self).swap(at, value)
            }
            fn read(&self, at: u64, into: &mut [u8]) {
                (**self).read(at, into);
            }
            fn write(&self, at: u64, from: &[u8]) {
                (**self).write(at, from);
            }
            fn flush(&self, at: u64, len: u64) {
                (**self).flush(at, len);
            }
            fn invalidate(&self, at: u64, len: u64) {
                (**self).invalidate(at, len);
            }
        }
    };
}

forward!(Arc);
forward!(Rc);
