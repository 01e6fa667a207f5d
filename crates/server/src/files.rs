//! Files of a data directory that are no part of the node's log and store: each function waits for
//! the disk, and says so to [`workers`]. With `machine.rs` this is the only file of the crate that
//! opens files (`crates/base/tests/all/habits.rs`).

use meridian_base::workers;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Runs work that waits for the disk on a thread of its own, before there is a
/// [`Runtime`](meridian_base::runtime::Runtime) to ask. What the work makes for the caller's
/// scheduler, it makes there.
#[allow(clippy::disallowed_methods, reason = "there is no runtime yet")]
pub(crate) async fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    let (tell, told) = tokio::sync::oneshot::channel();
    let scheduler = tokio::runtime::Handle::current();
    let thread = std::thread::Builder::new().name("data-directory".to_string());
    thread.spawn(move || {
        let _entered = scheduler.enter();
        // Nothing waits for it when the caller was dropped.
        let _ = tell.send(work());
    })?;
    told.await.map_err(io::Error::other)
}

pub(crate) fn exists(path: &Path) -> bool {
    workers::assert_may_wait("looking for a file");
    path.exists()
}

/// A file's text, without the blanks around it; `None`: it cannot be read.
pub(crate) fn text(path: &Path) -> Option<String> {
    workers::assert_may_wait("reading a file");
    fs::read_to_string(path).ok().map(|text| text.trim().to_string())
}

/// Replaces a file by a line of text.
pub(crate) fn write_line(path: &Path, line: &str) -> io::Result<()> {
    workers::assert_may_wait("writing a file");
    let failed = |e: io::Error| io::Error::new(e.kind(), format!("cannot write {}: {e}", path.display()));
    fs::write(path, format!("{line}\n")).map_err(failed)
}

/// Removes a file, if it is there.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    workers::assert_may_wait("removing a file");
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// The path without links and from the root; as it is, where there is no such directory.
pub(crate) fn from_root(dir: &Path) -> PathBuf {
    workers::assert_may_wait("resolving a path");
    dir.canonicalize().unwrap_or_else(|_| dir.to_path_buf())
}
