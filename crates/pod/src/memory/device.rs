//! A device of shared memory (DAX) whose bulk is not coherent between machines.
//!
//! A line leaves the cache by `clflush`, which writes it back if it is dirty, and a fence waits for
//! that. So flush and invalidation are the same instructions.
#![allow(unsafe_code)]

use super::{LINE, Mapping, Memory};
use std::io;

/// A mapping whose lines are flushed and invalidated by instructions of the processor.
#[derive(Debug)]
pub struct Device {
    mapping: Mapping,
}

impl Device {
    /// Of what is mapped.
    ///
    /// # Errors
    ///
    /// If this program has no such instructions for the processor.
    pub fn new(mapping: Mapping) -> io::Result<Device> {
        match cfg!(target_arch = "x86_64") {
            true => Ok(Device { mapping }),
            false => Err(io::Error::new(io::ErrorKind::Unsupported, "shared devices need an x86-64 processor")),
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn write_back(&self, at: u64, len: u64) {
        use std::arch::x86_64::{_mm_clflush, _mm_mfence};
        let words = self.mapping.words();
        for line in (at - at % LINE..at + len).step_by(LINE as usize) {
            let word: *const _ = &words[(line / 8) as usize];
            // SAFETY: the address is that of a word of the mapping. The instruction changes no
            // memory, only where it is.
            unsafe { _mm_clflush(word.cast()) };
        }
        // SAFETY: every x86-64 processor has the instruction.
        unsafe { _mm_mfence() };
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn write_back(&self, _at: u64, _len: u64) {
        unreachable!("no device is made on this processor");
    }
}

impl Memory for Device {
    fn len(&self) -> u64 {
        self.mapping.len()
    }
    fn is_lost(&self) -> bool {
        self.mapping.is_lost()
    }
    fn load(&self, at: u64) -> u64 {
        self.mapping.load(at)
    }
    fn store(&self, at: u64, value: u64) {
        self.mapping.store(at, value);
    }
    fn compare_exchange(&self, at: u64, expected: u64, new: u64) -> Result<(), u64> {
        self.mapping.compare_exchange(at, expected, new)
    }
    fn fetch_max(&self, at: u64, value: u64) -> u64 {
        self.mapping.fetch_max(at, value)
    }
    fn fetch_add(&self, at: u64, value: u64) -> u64 {
        self.mapping.fetch_add(at, value)
    }
    fn fetch_or(&self, at: u64, bits: u64) -> u64 {
        self.mapping.fetch_or(at, bits)
    }
    fn swap(&self, at: u64, value: u64) -> u64 {
        self.mapping.swap(at, value)
    }
    fn read(&self, at: u64, into: &mut [u8]) {
        self.mapping.read(at, into);
    }
    fn write(&self, at: u64, from: &[u8]) {
        self.mapping.write(at, from);
    }
    fn flush(&self, at: u64, len: u64) {
        self.write_back(at, len);
    }
    fn invalidate(&self, at: u64, len: u64) {
        self.write_back(at, len);
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri maps no files and flushes no lines")]
    fn what_was_flushed_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("memory");
        let device = Device::new(Mapping::create(&path, 4096).unwrap()).unwrap();
        device.write(120, b"over the end of a line");
        device.flush(120, 22);
        let mut back = [0; 22];
        Mapping::open(&path).unwrap().read(120, &mut back);
        assert_eq!(&back, b"over the end of a line");
        device.invalidate(120, 22);
        device.read(120, &mut back);
        assert_eq!(&back, b"over the end of a line");
        device.flush(4088, 8);
    }
}
