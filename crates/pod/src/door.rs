//! Where the memory of a pod comes from, and whether the processes that use it live.
//!
//! A [`FileDoor`] is that of one machine: files beside each other, and a lock for each process. The
//! kernel takes the lock away when the process ends, however it ends, and at no other time. So who
//! gets the lock of another host knows that this host will never write again: a late heartbeat
//! proves nothing (`docs/design/pod.md`).
#![allow(unsafe_code)]

use crate::memory::{Mapping, Memory};
use meridian_base::NodeId;
use std::fmt::Debug;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;

/// Memory that this process shares with others.
pub type SharedMemory = Arc<dyn Memory + Send + Sync>;

/// While it lives, this process is there.
pub trait Presence: Debug + Send + Sync {}

/// Memory by names, and the processes that use it, by their nodes.
pub trait Door: Debug + Send + Sync {
    /// Makes memory of `len` bytes, all zero.
    ///
    /// # Errors
    ///
    /// If there is some of that name, or no room.
    fn create(&self, name: &str, len: u64) -> io::Result<SharedMemory>;
    /// Takes memory that another process has made.
    ///
    /// # Errors
    ///
    /// If there is none of that name.
    fn open(&self, name: &str) -> io::Result<SharedMemory>;
    /// Removes memory whose name begins with `prefix`, except for the one called `keep`. Who has
    /// mapped it keeps it.
    ///
    /// # Errors
    ///
    /// If the folder cannot be read, or a file not be removed.
    fn remove_others(&self, prefix: &str, keep: &str) -> io::Result<()>;
    /// This process is the node's, until the result is dropped or the process ends.
    ///
    /// # Errors
    ///
    /// If another process is there for the node.
    fn enter(&self, node: NodeId) -> io::Result<Box<dyn Presence>>;
    /// Whether the process that was there for a node has ended.
    ///
    /// # Errors
    ///
    /// If that cannot be found out.
    fn has_ended(&self, node: NodeId) -> io::Result<bool>;
    /// Ends the process that is there for a node.
    ///
    /// # Errors
    ///
    /// If there is none, or if it is not this user's.
    fn kill(&self, node: NodeId) -> io::Result<()>;
}

/// Files of one machine: `path` with something appended.
#[derive(Debug)]
pub struct FileDoor {
    path: PathBuf,
}

/// The lock of a process.
#[derive(Debug)]
struct Locked {
    _file: File,
}
impl Presence for Locked {}

impl FileDoor {
    /// Of files whose names begin with this path.
    pub fn new(path: PathBuf) -> FileDoor {
        FileDoor { path }
    }

    fn named(&self, name: &str) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(name);
        path.into()
    }

    fn lock_file(&self, node: NodeId) -> io::Result<File> {
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(self.named(&format!(".n{}", node.0)))
    }
}

impl Door for FileDoor {
    fn create(&self, name: &str, len: u64) -> io::Result<SharedMemory> {
        Ok(Arc::new(Mapping::create(&self.named(name), len)?))
    }

    fn open(&self, name: &str) -> io::Result<SharedMemory> {
        Ok(Arc::new(Mapping::open(&self.named(name))?))
    }

    fn remove_others(&self, prefix: &str, keep: &str) -> io::Result<()> {
        let (begin, keep) = (self.named(prefix), self.named(keep));
        let Some(folder) = self.path.parent() else { return Ok(()) };
        for entry in folder.read_dir()? {
            let path = entry?.path();
            let is_other = path.as_os_str().as_encoded_bytes().starts_with(begin.as_os_str().as_encoded_bytes()) && path != keep;
            if is_other {
                std::fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    fn enter(&self, node: NodeId) -> io::Result<Box<dyn Presence>> {
        let mut file = self.lock_file(node)?;
        file.try_lock()?;
        file.set_len(0)?;
        file.write_all(std::process::id().to_string().as_bytes())?;
        Ok(Box::new(Locked { _file: file }))
    }

    fn has_ended(&self, node: NodeId) -> io::Result<bool> {
        // The lock is let go when the file is closed, at the end of this function.
        match self.lock_file(node)?.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(e)) => Err(e),
        }
    }

    fn kill(&self, node: NodeId) -> io::Result<()> {
        let mut text = String::new();
        self.lock_file(node)?.read_to_string(&mut text)?;
        let of_file = |_| io::Error::new(io::ErrorKind::InvalidData, format!("{text:?} is no process"));
        let process: libc::pid_t = text.trim().parse().map_err(of_file)?;
        // The file's process holds its lock, so its number is not another one's by now.
        if process <= 1 || self.has_ended(node)? {
            return Err(io::ErrorKind::NotFound.into());
        }
        // SAFETY: the call takes numbers, and changes nothing in this process's memory.
        match unsafe { libc::kill(process, libc::SIGKILL) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_there_until_its_lock_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let [door, other] = [(); 2].map(|()| FileDoor::new(folder.path().join("pod")));
        assert!(other.has_ended(NodeId(3)).unwrap());
        let there = door.enter(NodeId(3)).unwrap();
        assert!(!other.has_ended(NodeId(3)).unwrap());
        assert!(other.enter(NodeId(3)).is_err(), "a node is one process");
        assert!(other.enter(NodeId(4)).is_ok());
        drop(there);
        assert!(other.has_ended(NodeId(3)).unwrap());
        assert_eq!(other.kill(NodeId(3)).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri maps no files")]
    fn memory_has_a_name_and_is_removed_by_it() {
        let folder = tempfile::tempdir().unwrap();
        let [door, other] = [(); 2].map(|()| FileDoor::new(folder.path().join("pod")));
        let first = door.create(".g7.1", 4096).unwrap();
        first.store(8, 5);
        assert_eq!(other.open(".g7.1").unwrap().load(8), 5);
        door.create(".g8.1", 4096).unwrap();
        door.create(".g7.2", 4096).unwrap();
        door.remove_others(".g7.", ".g7.2").unwrap();
        assert!(other.open(".g7.1").is_err() && other.open(".g7.2").is_ok() && other.open(".g8.1").is_ok());
        assert_eq!(first.load(8), 5, "who has it keeps it");
    }
}
