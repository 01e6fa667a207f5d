//! Files for what statements have no room for in memory, in a folder of the data directory.
//!
//! A file is made when something is written to it, and goes with its handle. Those of a process
//! that was killed go when the next one starts.

use crate::membership::shared::Shared;
use meridian_base::runtime::{DiskFile, Runtime};
use meridian_base::{Error, Result};
use meridian_sql::temporary::Temporary;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

const FOLDER: &str = "temporary";

/// Removes what an earlier process has left.
pub(crate) fn remove_all(runtime: &Arc<dyn Runtime>) {
    let disk = runtime.disk();
    let removed = disk.list(FOLDER).and_then(|names| names.iter().try_for_each(|name| disk.remove(&path(name))));
    if let Err(e) = removed {
        tracing::warn!("temporary files of an earlier process stay in {}: {e}", disk.describe(FOLDER));
    }
}

fn path(name: &str) -> String {
    format!("{FOLDER}/{name}")
}

pub(crate) struct TemporaryFile {
    shared: Arc<Shared>,
    path: String,
    file: OnceLock<Box<dyn DiskFile>>,
}

impl TemporaryFile {
    /// No other of this process has its name.
    pub fn new(shared: Arc<Shared>) -> TemporaryFile {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("{:016x}", NEXT.fetch_add(1, Ordering::Relaxed));
        TemporaryFile { shared, path: path(&name), file: OnceLock::new() }
    }

    fn open(&self) -> io::Result<&dyn DiskFile> {
        if self.file.get().is_none() {
            let file = self.shared.runtime.disk().open(&self.path, true)?;
            file.set_len(0)?;
            let _ = self.file.set(file);
        }
        Ok(&**self.file.get().expect("just opened"))
    }

    fn failed(&self, doing: &str, e: io::Error) -> Error {
        let place = self.shared.runtime.disk().describe(&self.path);
        let is_full = matches!(e.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        let code = if is_full { "53100" } else { "58030" };
        Error::sql(code, format!("could not {doing} temporary file {place}: {e}"))
    }
}

impl Temporary for TemporaryFile {
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        if !self.shared.groups.common.room.admits(data.len() as u64) {
            return Err(Error::sql("53100", "could not write a temporary file: the disk is full")
                .hint("Make room on that node's disk, or let the statement read fewer rows at a time."));
        }
        let written = self.open().and_then(|file| file.write_at(offset, data));
        written.map_err(|e| self.failed("write", e))
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let read = self.open().and_then(|file| file.read_at(offset, buf)).map_err(|e| self.failed("read", e))?;
        match read == buf.len() {
            true => Ok(()),
            false => Err(self.failed("read", io::ErrorKind::UnexpectedEof.into())),
        }
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let Some(file) = self.file.take() else { return };
        let (runtime, path) = (self.shared.runtime.clone(), std::mem::take(&mut self.path));
        // To give a large file's room back takes the disk a while.
        let remove = async move {
            drop(file);
            if let Err(e) = runtime.disk().remove(&path) {
                tracing::warn!("temporary file {} stays: {e}", runtime.disk().describe(&path));
            }
        };
        self.shared.runtime.spawn_io("remove-temporary", Box::pin(remove));
    }
}
