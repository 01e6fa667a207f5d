//! The runtime on a real machine (`meridian_base::runtime`).
//!
//! **The data directory belongs to one process.** While a node lives it holds an exclusive `flock`
//! on a file `LOCK` in it, with its process id inside; the kernel lets go of the lock when the
//! process ends, however it ends. The file itself stays.
//!
//! **Disk.** Files are read and written at positions (`pread`, `pwrite`) and made durable by
//! `fdatasync`; a rename or a new file is durable only after an `fsync` of its folder. An error of
//! `fdatasync` is final: the kernel may have dropped the pages, so the caller must stop rather than
//! try again.

use crate::alarms::Alarms;
use crate::files;
use crate::spare_threads::SpareThreads;
use crate::threads::{ProtocolThread, raise_priority};
use meridian_base::runtime::{BoxFuture, Disk, DiskFile, Listener, Runtime, Space, Stream};
use meridian_base::{SteadyClock, workers};
use meridian_node::env::COMPUTE_THREAD;
use meridian_node::security::LOCAL;
use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::runtime::Handle;

/// The name of the lock file in a data directory.
const LOCK_FILE: &str = "LOCK";

/// The machine, seen from one data directory. Cheap to clone; the directory is let go when the last
/// clone is dropped.
#[derive(Clone)]
pub struct MachineRuntime {
    disk: MachineDisk,
    alarms: Alarms,
    spare: SpareThreads,
    protocol: Handle,
    work: Handle,
    /// Held for as long as anything runs there.
    _protocol_thread: Option<ProtocolThread>,
    steady: Arc<SteadyClock>,
}

impl MachineRuntime {
    /// Opens a data directory, making it if it is missing, and locks it. Nobody but its owner looks
    /// into it from then on. Fails with a message that names the directory, and the process that
    /// holds it if one does. Everything runs on the scheduler that this is called on.
    pub fn open(data_dir: &Path) -> io::Result<MachineRuntime> {
        workers::assert_may_wait("opening a data directory");
        fs::create_dir_all(data_dir).map_err(|e| in_path(e, "cannot create the data directory", data_dir))?;
        let root = data_dir.canonicalize().map_err(|e| in_path(e, "cannot open the data directory", data_dir))?;
        let lock = lock(&root)?;
        keep_to_owner(&root);
        let disk = MachineDisk { inner: Arc::new(DataDir { root, _lock: lock }) };
        let steady = Arc::new(SteadyClock::new(wall_micros(), monotonic_micros()));
        Ok(MachineRuntime {
            disk,
            alarms: Alarms::default(),
            spare: SpareThreads::default(),
            protocol: Handle::current(),
            work: Handle::current(),
            _protocol_thread: None,
            steady,
        })
    }
    /// The same, with connections and the consensus protocol on a thread of their own.
    pub fn with_protocol(self, thread: &ProtocolThread) -> MachineRuntime {
        MachineRuntime { protocol: thread.scheduler(), _protocol_thread: Some(thread.clone()), ..self }
    }
    /// Listens for clients, whose sockets are handed to other threads.
    #[allow(clippy::disallowed_methods, reason = "this is the runtime that others are sent to")]
    pub async fn listen_for_clients(&self, addr: &str) -> io::Result<MachineListener> {
        let addr = addr.to_string();
        let bound = self.protocol.spawn(async move { TcpListener::bind(addr).await }).await.map_err(io::Error::other)?;
        Ok(MachineListener { listener: bound? })
    }
    /// Listens for this user's processes, and root's, on this machine. The socket replaces one that
    /// an earlier process has left: the data directory is this one's.
    async fn listen_locally(&self, path: &Path) -> io::Result<LocalListener> {
        let bound = path.to_path_buf();
        let old = bound.clone();
        files::beside(move || remove_socket(&old)).await.flatten()?;
        let listener = self.protocol.spawn(async move { UnixListener::bind(bound) }).await.map_err(io::Error::other)??;
        let made = path.to_path_buf();
        files::beside(move || fs::set_permissions(made, fs::Permissions::from_mode(0o600))).await.flatten()?;
        Ok(LocalListener { listener, path: path.to_path_buf() })
    }
    /// The data directory.
    pub fn data_dir(&self) -> &Path {
        &self.disk.inner.root
    }
}

/// Microseconds since 1970, as the machine's clock shows it; 0 before.
#[allow(clippy::disallowed_methods, reason = "this is the runtime that others are sent to")]
pub fn wall_micros() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    // A clock before 1970 is a broken clock; the node's own clock only moves forward and peers will
    // refuse it.
    since.map_or(0, |d| d.as_micros() as u64)
}

/// Goes on while the machine is suspended, as the wall clock does: waking up is no step.
fn monotonic_micros() -> u64 {
    #[cfg(target_os = "linux")]
    const CLOCK: libc::clockid_t = libc::CLOCK_BOOTTIME;
    #[cfg(not(target_os = "linux"))]
    const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is valid for writing for the length of the call.
    let failed = unsafe { libc::clock_gettime(CLOCK, &mut now) };
    assert_eq!(failed, 0, "every system that this program runs on has this clock");
    now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1_000
}

/// Takes the lock of a data directory.
fn lock(root: &Path) -> io::Result<File> {
    let path = root.join(LOCK_FILE);
    let mut file = (OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path))
        .map_err(|e| in_path(e, "cannot open the lock file", &path))?;
    // SAFETY: the descriptor is open for the length of the call; flock touches no memory.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
        let e = io::Error::last_os_error();
        if e.kind() != io::ErrorKind::WouldBlock {
            return Err(in_path(e, "cannot lock the data directory", root));
        }
        let mut holder = String::new();
        let _ = file.read_to_string(&mut holder);
        let holder = match holder.trim() {
            "" => "another process".to_string(),
            pid => format!("process {pid}"),
        };
        let message = format!("the data directory {} is in use by {holder}", root.display());
        return Err(io::Error::new(io::ErrorKind::AddrInUse, message));
    }
    file.set_len(0)?;
    write!(file, "{}", std::process::id())?;
    Ok(file)
}

fn in_path(e: io::Error, what: &str, path: &Path) -> io::Error {
    io::Error::new(e.kind(), format!("{what} {}: {e}", path.display()))
}

impl Runtime for MachineRuntime {
    fn wall_micros(&self) -> u64 {
        wall_micros()
    }
    fn monotonic_micros(&self) -> u64 {
        monotonic_micros()
    }
    fn steady_clock(&self) -> &SteadyClock {
        &self.steady
    }
    #[allow(clippy::disallowed_methods, reason = "this is the runtime that others are sent to")]
    fn random(&self) -> u64 {
        rand::random()
    }
    fn listen<'a>(&'a self, addr: &'a str) -> BoxFuture<'a, io::Result<Box<dyn Listener>>> {
        Box::pin(async move {
            let listener: Box<dyn Listener> = match addr.strip_prefix(LOCAL) {
                Some(path) => Box::new(self.listen_locally(Path::new(path)).await?),
                None => Box::new(self.listen_for_clients(addr).await?),
            };
            Ok(listener)
        })
    }
    #[allow(clippy::disallowed_methods, reason = "this is the runtime that others are sent to")]
    fn connect<'a>(&'a self, addr: &'a str) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            // Whoever needs the connection first may run on a scheduler that ends before it.
            if let Some(path) = addr.strip_prefix(LOCAL) {
                let path = path.to_string();
                let stream = self.protocol.spawn(async move { UnixStream::connect(path).await }).await;
                let stream: Box<dyn Stream> = Box::new(stream.map_err(io::Error::other)??);
                return Ok(stream);
            }
            let addr = addr.to_string();
            let stream = self.protocol.spawn(async move { TcpStream::connect(addr).await }).await.map_err(io::Error::other)??;
            prepare(&stream)?;
            let stream: Box<dyn Stream> = Box::new(stream);
            Ok(stream)
        })
    }
    fn delay_until(&self, at: tokio::time::Instant) -> BoxFuture<'_, ()> {
        Box::pin(self.alarms.wait_until(at.into_std()))
    }
    fn protocol_scheduler(&self) -> Handle {
        self.protocol.clone()
    }
    fn work_scheduler(&self) -> Handle {
        self.work.clone()
    }
    fn disk(&self) -> &dyn Disk {
        &self.disk
    }
    #[allow(clippy::disallowed_methods, reason = "this is the runtime that others are sent to")]
    fn spawn_io(&self, name: &'static str, future: BoxFuture<'static, ()>) {
        // For the timers inside the future.
        let handle = self.protocol.clone();
        if name == COMPUTE_THREAD {
            if let Err(e) = self.spare.run(name, &handle, future) {
                cannot_start(name, &e);
            }
            return;
        }
        let thread = std::thread::Builder::new().name(name.to_string());
        // Whoever waits for the log waits for this thread.
        let is_urgent = name == meridian_base::runtime::LOG_THREAD;
        let run = move || {
            if is_urgent {
                raise_priority();
            }
            handle.block_on(future);
        };
        if let Err(e) = thread.spawn(run) {
            cannot_start(name, &e);
        }
    }
}

/// Without its disk thread a node can do nothing, and it has promised nothing yet.
fn cannot_start(name: &str, e: &io::Error) -> ! {
    tracing::error!("cannot start thread {name}: {e}");
    std::process::abort();
}

/// What the system takes of a stream's bytes before it sends them (`TCP_NOTSENT_LOWAT`, tcp(7)).
/// What was written is in nobody's hands any more: a heartbeat that comes after it waits for all of
/// it, on a slow link for longer than a lease.
#[cfg(target_os = "linux")]
const UNSENT_BYTES_MAX: u32 = 128 << 10;

/// Every message is written whole, and sent at once.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    #[cfg(target_os = "linux")]
    socket2::SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_BYTES_MAX)?;
    Ok(())
}

/// A listening TCP socket.
pub struct MachineListener {
    listener: TcpListener,
}

impl MachineListener {
    /// The next connection, as the socket that it is, and the peer's address.
    pub async fn accept_socket(&self) -> io::Result<(TcpStream, String)> {
        let (stream, peer) = self.listener.accept().await?;
        prepare(&stream)?;
        Ok((stream, peer.to_string()))
    }
}

impl Listener for MachineListener {
    fn accept(&mut self) -> BoxFuture<'_, io::Result<(Box<dyn Stream>, String)>> {
        Box::pin(async {
            let (stream, peer) = self.accept_socket().await?;
            let stream: Box<dyn Stream> = Box::new(stream);
            Ok((stream, peer))
        })
    }
    fn local_addr(&self) -> io::Result<String> {
        Ok(self.listener.local_addr()?.to_string())
    }
}

/// A listening socket of this machine.
struct LocalListener {
    listener: UnixListener,
    path: PathBuf,
}

impl Listener for LocalListener {
    fn accept(&mut self) -> BoxFuture<'_, io::Result<(Box<dyn Stream>, String)>> {
        Box::pin(async {
            loop {
                let (stream, _) = self.listener.accept().await?;
                // SAFETY: it reads a number of this process.
                let own = unsafe { libc::geteuid() };
                match stream.peer_cred() {
                    Ok(peer) if peer.uid() == own || peer.uid() == 0 => {
                        let stream: Box<dyn Stream> = Box::new(stream);
                        return Ok((stream, format!("{LOCAL}uid={}", peer.uid())));
                    }
                    Ok(peer) => tracing::warn!("refused user {} at {}", peer.uid(), self.path.display()),
                    Err(e) => tracing::warn!("refused somebody at {}: {e}", self.path.display()),
                }
            }
        })
    }
    fn local_addr(&self) -> io::Result<String> {
        Ok(format!("{LOCAL}{}", self.path.display()))
    }
}

/// The files of one data directory.
#[derive(Clone)]
pub struct MachineDisk {
    inner: Arc<DataDir>,
}

struct DataDir {
    root: PathBuf,
    /// Held, not read: closing it lets the directory go.
    _lock: File,
}

impl MachineDisk {
    /// The path of a file, which must lie inside the directory.
    fn path(&self, relative: &str) -> io::Result<PathBuf> {
        let inside = Path::new(relative).components().all(|c| matches!(c, Component::Normal(_)));
        match inside {
            true => Ok(self.inner.root.join(relative)),
            false => Err(io::Error::new(io::ErrorKind::InvalidInput, format!("not a path inside a data directory: {relative}"))),
        }
    }
    fn folder(&self, relative: &str) -> io::Result<PathBuf> {
        if relative.is_empty() { Ok(self.inner.root.clone()) } else { self.path(relative) }
    }
}

/// Removes a socket that an earlier process has left. A file of another kind stays, as an error.
fn remove_socket(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => fs::remove_file(path),
        Ok(_) => Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{} is no socket", path.display()))),
        Err(_) => Ok(()),
    }
}

fn sync_dir(path: &Path) -> io::Result<()> {
    workers::assert_may_wait("the sync of a folder");
    File::open(path)?.sync_all()
}

/// Rows and verifiers of passwords are in a data directory. Where it is somebody else's, such as a
/// volume that is shared with a group, its rights are not this process's to change.
fn keep_to_owner(data_dir: &Path) {
    let kept = fs::metadata(data_dir).and_then(|found| match found.permissions().mode() {
        mode if mode & 0o077 == 0 => Ok(()),
        mode => fs::set_permissions(data_dir, fs::Permissions::from_mode(mode & 0o700)),
    });
    if let Err(e) = kept {
        tracing::warn!("other users of this machine may read {}: {e}", data_dir.display());
    }
}

impl MachineDisk {
    fn open_file(&self, path: &str, create: bool) -> io::Result<MachineFile> {
        let full = self.path(path)?;
        if create && let Some(folder) = full.parent() {
            fs::create_dir_all(folder)?;
        }
        let file = OpenOptions::new().read(true).write(true).create(create).truncate(false).open(&full);
        Ok(MachineFile { file: file.map_err(|e| in_path(e, "cannot open", &full))? })
    }
}

impl Disk for MachineDisk {
    fn open(&self, path: &str, create: bool) -> io::Result<Box<dyn DiskFile>> {
        workers::assert_may_wait("opening a file");
        Ok(Box::new(self.open_file(path, create)?))
    }
    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        workers::assert_may_wait("listing a folder");
        let entries = match fs::read_dir(self.folder(folder)?) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(e),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_file() && entry.file_name() != LOCK_FILE {
                names.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        names.sort();
        Ok(names)
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        workers::assert_may_wait("removing a file");
        fs::remove_file(self.path(path)?)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        workers::assert_may_wait("renaming a file");
        let (from, to) = (self.path(from)?, self.path(to)?);
        fs::rename(&from, &to)?;
        for folder in [to.parent(), from.parent()].into_iter().flatten() {
            sync_dir(folder)?;
        }
        Ok(())
    }
    fn sync_folder(&self, folder: &str) -> io::Result<()> {
        // A folder is itself an entry of the one above it.
        let full = self.folder(folder)?;
        sync_dir(&full)?;
        match full.parent().filter(|_| !folder.is_empty()) {
            Some(parent) => sync_dir(parent),
            None => Ok(()),
        }
    }
    fn describe(&self, path: &str) -> String {
        self.inner.root.join(path).display().to_string()
    }
    fn space(&self) -> io::Result<Space> {
        workers::assert_may_wait("looking at a disk's room");
        let path = CString::new(self.inner.root.as_os_str().as_bytes()).map_err(io::Error::other)?;
        let mut found = MaybeUninit::<libc::statvfs>::uninit();
        // SAFETY: the path ends with a zero byte, and the buffer has the size of what is written to
        // it.
        if unsafe { libc::statvfs(path.as_ptr(), found.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call has filled it.
        let found = unsafe { found.assume_init() };
        // Some blocks are kept for the superuser: `bavail` leaves them out.
        Ok(Space { total: found.f_blocks * found.f_frsize, free: found.f_bavail * found.f_frsize })
    }
}

/// An open file.
pub struct MachineFile {
    file: File,
}

impl DiskFile for MachineFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        workers::assert_may_wait("reading a file");
        let mut read = 0;
        while read < buf.len() {
            match self.file.read_at(&mut buf[read..], offset + read as u64) {
                Ok(0) => break,
                Ok(n) => read += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(read)
    }
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        workers::assert_may_wait("writing a file");
        self.file.write_all_at(data, offset)
    }
    fn len(&self) -> io::Result<u64> {
        workers::assert_may_wait("looking at a file");
        Ok(self.file.metadata()?.len())
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        workers::assert_may_wait("resizing a file");
        self.file.set_len(len)
    }
    fn allocate(&self, len: u64) -> io::Result<()> {
        workers::assert_may_wait("taking room for a file");
        let len = libc::off_t::try_from(len).map_err(io::Error::other)?;
        // SAFETY: the descriptor is open for the length of the call, which touches no memory.
        match unsafe { libc::posix_fallocate(self.file.as_raw_fd(), 0, len) } {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
    fn sync(&self) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(async {
            workers::assert_may_wait("the sync of a file");
            self.file.sync_data()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_second_holder_of_a_directory_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let first = MachineRuntime::open(dir.path()).unwrap();
        let refused = MachineRuntime::open(dir.path()).map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains(&first.data_dir().display().to_string()), "{refused}");
        assert!(refused.contains(&format!("process {}", std::process::id())), "{refused}");
        drop(first);
        MachineRuntime::open(dir.path()).unwrap();
    }

    #[tokio::test]
    async fn a_data_directory_is_its_owners_alone() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["new", "old"] {
            let path = dir.path().join(name);
            if name == "old" {
                fs::create_dir(&path).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(0o775)).unwrap();
            }
            MachineRuntime::open(&path).unwrap();
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700, "{name}");
        }
    }

    #[tokio::test]
    async fn files_are_positional_and_stay_inside_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let runtime = MachineRuntime::open(dir.path()).unwrap();
        let disk = runtime.disk();
        let file = disk.open("log/a", true).unwrap();
        file.write_at(3, b"xyz").unwrap();
        let mut buf = [9; 8];
        assert_eq!(file.read_at(1, &mut buf).unwrap(), 5);
        assert_eq!(buf[..5], [0, 0, b'x', b'y', b'z']);
        disk.rename("log/a", "log/b").unwrap();
        assert_eq!(disk.list("log").unwrap(), ["b"]);
        assert_eq!(disk.list("").unwrap(), [""; 0]);
        assert!(disk.open("log/a", false).is_err());
        assert!(disk.open("../outside", true).is_err());
        disk.sync_folder("log").unwrap();
    }

    #[tokio::test]
    async fn a_file_takes_room_before_it_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let runtime = MachineRuntime::open(dir.path()).unwrap();
        let disk = &runtime.disk;
        let space = disk.space().unwrap();
        assert!(space.free > 0 && space.free <= space.total, "{space:?}");
        let file = disk.open_file("a", true).unwrap();
        file.allocate(1 << 20).unwrap();
        assert_eq!(file.len().unwrap(), 1 << 20);
        let taken = std::os::unix::fs::MetadataExt::blocks(&file.file.metadata().unwrap()) * 512;
        assert!(taken >= 1 << 20, "{taken} bytes");
        assert!(file.allocate(space.total * 2).is_err());
    }

    #[tokio::test]
    async fn an_io_thread_may_use_timers() {
        let dir = tempfile::tempdir().unwrap();
        let runtime = MachineRuntime::open(dir.path()).unwrap();
        let (done, wait) = tokio::sync::oneshot::channel();
        let work = async move {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            done.send(std::thread::current().name().map(str::to_string)).ok();
        };
        runtime.spawn_io("test", Box::pin(work));
        assert_eq!(wait.await.unwrap().as_deref(), Some("test"));
    }
}
