//! A file that several processes of one machine map.
//!
//! The size is fixed when the file is created, its blocks are allocated then, and a program that
//! opens it checks the size first. If somebody cuts the file later, the process goes on with empty
//! pages, and [`Memory::is_lost`](super::Memory::is_lost) says so.
#![allow(unsafe_code)]

mod faults;

use faults::Guard;
use memmap2::{MmapOptions, MmapRaw};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::AtomicU64;

/// A mapped file, shared with every process that maps the same one.
#[derive(Debug)]
pub struct Mapping {
    // Before the mapping: it has to be dropped first.
    guard: Guard,
    file: File,
    map: MmapRaw,
}

impl Mapping {
    /// Makes a file of this many bytes, all zero, for its owner alone, and maps it.
    ///
    /// # Errors
    ///
    /// If the file exists, if `len` is 0 or no multiple of 8, or if there is no room for it.
    pub fn create(path: &Path, len: u64) -> io::Result<Mapping> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path)?;
        let signed = libc::off_t::try_from(len).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        // SAFETY: the descriptor belongs to `file`, which lives during the call; the call changes
        // nothing but that file.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, signed) } {
            0 => Mapping::of(file),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Maps a file that exists, as long as it is now.
    ///
    /// # Errors
    ///
    /// If it cannot be opened, is empty, or if its length is no multiple of 8.
    pub fn open(path: &Path) -> io::Result<Mapping> {
        Mapping::of(OpenOptions::new().read(true).write(true).open(path)?)
    }

    fn of(file: File) -> io::Result<Mapping> {
        let len = file.metadata()?.len();
        if len == 0 || !len.is_multiple_of(8) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a file of {len} bytes is no shared memory")));
        }
        let len = usize::try_from(len).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
        let map = MmapOptions::new().len(len).map_raw(&file)?;
        let guard = Guard::new(map.as_ptr() as usize, map.len())?;
        Ok(Mapping { guard, file, map })
    }

    pub(super) fn has_fault(&self) -> bool {
        self.guard.is_lost()
    }

    /// Whether the file is still at least as long as it was when it was mapped. Asks the system:
    /// for a look from time to time, before an access finds out.
    pub fn is_whole(&self) -> bool {
        self.file.metadata().is_ok_and(|now| now.len() >= self.map.len() as u64)
    }

    pub(super) fn words(&self) -> &[AtomicU64] {
        words_of(&self.map)
    }
}

fn words_of(map: &MmapRaw) -> &[AtomicU64] {
    // SAFETY: the mapping is `len` bytes of readable and writable memory that live as long as
    // `map`, and it begins at a page, so at a multiple of 8. `AtomicU64` has the layout of `u64`,
    // for which all bit patterns are valid. Nothing in this process makes a reference to these
    // bytes of another kind, and other processes change them by whole words only: their program is
    // this one. A file that somebody else writes to holds wrong words, not invalid ones.
    unsafe { std::slice::from_raw_parts(map.as_mut_ptr().cast::<AtomicU64>(), map.len() / 8) }
}

#[cfg(test)]
mod tests {
    use super::super::Memory;
    use super::*;
    use std::sync::atomic::Ordering::{Relaxed, SeqCst};

    /// Without a file, so that Miri can look at it.
    #[test]
    fn words_of_a_mapping_are_read_and_written_by_several_threads() {
        let map = MmapRaw::from(MmapOptions::new().len(4096).map_anon().unwrap());
        let words = words_of(&map);
        assert_eq!((words.len(), words[511].load(SeqCst)), (512, 0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                words[511].store(7, Relaxed);
                words[0].store(1, SeqCst);
            });
            while words_of(&map)[0].load(SeqCst) == 0 {
                std::thread::yield_now();
            }
            assert_eq!(words_of(&map)[511].load(Relaxed), 7);
        });
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri maps no files")]
    fn two_mappings_of_a_file_are_one_memory() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("memory");
        let first = Mapping::create(&path, 4096).unwrap();
        let second = Mapping::open(&path).unwrap();
        first.store(8, 7);
        assert_eq!(second.compare_exchange(8, 7, 9), Ok(()));
        first.write(64, b"hello");
        let mut back = [0; 5];
        second.read(64, &mut back);
        assert_eq!((first.load(8), &back), (9, b"hello"));
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri maps no files")]
    fn a_file_is_made_once_and_its_length_is_checked() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("memory");
        let mapping = Mapping::create(&path, 8192).unwrap();
        assert_eq!(Mapping::create(&path, 8192).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert!(mapping.is_whole());
        mapping.store(8184, 7);
        mapping.store(0, 5);
        File::options().write(true).open(&path).unwrap().set_len(4096).unwrap();
        assert!(!mapping.is_whole());
        assert_eq!((mapping.load(0), mapping.is_lost()), (5, false), "this page is there");
        assert_eq!((mapping.load(8184), mapping.is_lost()), (0, true), "this one is not");
        mapping.store(8184, 7);
        assert_eq!(mapping.load(8184), 7);
        for len in [0, 4095] {
            File::options().write(true).open(&path).unwrap().set_len(len).unwrap();
            assert_eq!(Mapping::open(&path).unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
    }
}
