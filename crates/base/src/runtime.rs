//! The only door to clocks, randomness, the network and the disk.
//!
//! In the server it opens to the machine; in the simulator to a simulated one, from one seed. Tasks
//! and timers are tokio's in both (the simulator runs tokio on simulated time), so `tokio::spawn`
//! and `tokio::time` may be used directly; `std::time`, `std::thread`, `std::fs`, `std::net`,
//! `tokio::net`, `tokio::fs` and `rand`'s global generators may not.

use crate::SteadyClock;
use std::future::Future;
use std::io;
use std::pin::Pin;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// A future behind a pointer.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The name of the thread that writes a node's log. All that commits waits for it: a runtime gives
/// it a higher priority than others, where it can.
pub const LOG_THREAD: &str = "log";

/// Everything a node may ask of the world. A node holds it as `Arc<dyn Runtime>`, because code that
/// is generic over the runtime is compiled once more for each kind of runtime.
pub trait Runtime: Send + Sync + 'static {
    /// Microseconds since 1970, as this node's clock shows it: the wall clock's time, less its
    /// steps (see [`SteadyClock`]).
    fn physical_micros(&self) -> u64 {
        self.steady_clock().read(|| self.wall_micros(), || self.monotonic_micros())
    }
    /// Microseconds since 1970, as the machine's clock shows it. It may be set at any time: use
    /// [`Runtime::physical_micros`].
    fn wall_micros(&self) -> u64;
    /// Microseconds of a clock that nobody can set, since any moment.
    fn monotonic_micros(&self) -> u64;
    /// What makes the physical clock of the two; one for each process.
    fn steady_clock(&self) -> &SteadyClock;
    /// A random number. Deterministic in the simulator.
    fn random(&self) -> u64;
    /// Listens on `host:port`; port 0 picks one.
    fn listen<'a>(&'a self, addr: &'a str) -> BoxFuture<'a, io::Result<Box<dyn Listener>>>;
    /// Connects to `host:port`.
    fn connect<'a>(&'a self, addr: &'a str) -> BoxFuture<'a, io::Result<Box<dyn Stream>>>;
    /// Waits to a finer grain than tokio's timers, which round up to a millisecond: for delays that
    /// are injected between zones, and only there.
    fn delay_until(&self, at: Instant) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep_until(at))
    }
    /// Where what keeps the cluster together runs: connections between nodes, the consensus
    /// protocol, heartbeats and leases. Nothing that computes for long or blocks runs there. The
    /// server gives it a thread of its own.
    fn protocol_scheduler(&self) -> Handle {
        Handle::current()
    }
    /// Where everything else runs that a node does in the background.
    fn work_scheduler(&self) -> Handle {
        Handle::current()
    }
    /// The node's data directory.
    fn disk(&self) -> &dyn Disk;
    /// Runs a future whose steps block on the disk. The server gives it a thread of its own; the
    /// simulator a task.
    fn spawn_io(&self, name: &'static str, future: BoxFuture<'static, ()>);
}

impl dyn Runtime {
    /// Waits for work that blocks on the disk, and is done where that is allowed.
    pub async fn run_io<T: Send + 'static>(&self, name: &'static str, work: impl FnOnce() -> T + Send + 'static) -> T {
        self.run_io_steps(name, async move { work() }).await
    }

    /// Runs a future whose steps block on the disk, where that is allowed, and waits for it. When
    /// the caller is dropped, the future is dropped at its next `await`.
    pub async fn run_io_steps<T: Send + 'static>(&self, name: &'static str, work: impl Future<Output = T> + Send + 'static) -> T {
        let (mut tell, told) = oneshot::channel();
        let run = async move {
            tokio::select! {
                biased;
                () = tell.closed() => {}
                done = work => drop(tell.send(done)),
            }
        };
        self.spawn_io(name, Box::pin(run));
        told.await.expect("work on the disk gives errors and does not panic")
    }
}

/// A connection.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Stream for S {}

/// A listening socket.
pub trait Listener: Send + 'static {
    /// The next connection and the peer's address.
    fn accept(&mut self) -> BoxFuture<'_, io::Result<(Box<dyn Stream>, String)>>;
    /// The address that others connect to.
    fn local_addr(&self) -> io::Result<String>;
}

/// How much a disk holds, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    pub total: u64,
    /// Left for this process.
    pub free: u64,
}

/// The files of one data directory. Paths are relative to it, with `/` between parts.
pub trait Disk: Send + Sync + 'static {
    /// Opens for reading and writing; with `create`, makes the file (and its folder) if it is
    /// missing.
    fn open(&self, path: &str, create: bool) -> io::Result<Box<dyn DiskFile>>;
    /// Names (not paths) of the files in a folder, sorted; empty if there is no such folder.
    fn list(&self, folder: &str) -> io::Result<Vec<String>>;
    fn remove(&self, path: &str) -> io::Result<()>;
    /// Replaces `to` atomically and makes the change durable, the folder included.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Makes the creation and removal of a folder's files durable.
    fn sync_folder(&self, folder: &str) -> io::Result<()>;
    /// How a message to an operator names this file.
    fn describe(&self, path: &str) -> String;
    /// The room on the disk that the directory is on.
    fn space(&self) -> io::Result<Space>;
}

/// One open file. Positional, so a reader never disturbs a writer.
pub trait DiskFile: Send + Sync + 'static {
    /// Reads up to `buf.len()` bytes at `offset`; fewer at the end of the file.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize>;
    /// Writes all of `data` at `offset`, growing the file. Volatile until [`DiskFile::sync`].
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()>;
    fn len(&self) -> io::Result<u64>;
    /// Cuts or zero-extends.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Makes the file at least as long, with all of its room on the disk taken. After an error it
    /// may have got a part of that.
    fn allocate(&self, len: u64) -> io::Result<()>;
    /// Makes everything written so far durable (`fdatasync`). The call blocks its thread in the
    /// server and takes simulated time in the simulator.
    fn sync(&self) -> BoxFuture<'_, io::Result<()>>;
    #[allow(missing_docs)]
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}
