//! Runtimes for this crate's tests: a disk in memory that can lose what was not synced, and real
//! files.

use meridian_base::runtime::{BoxFuture, Disk, DiskFile, Listener, Runtime, Space, Stream};
use meridian_base::workers;
use parking_lot::Mutex;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// A disk persists a sector as a whole or not at all.
const SECTOR: usize = 512;

#[derive(Clone, Default)]
pub(crate) struct MemoryDisk(Arc<MemoryState>);

#[derive(Default)]
struct MemoryState {
    files: Mutex<BTreeMap<String, Arc<Mutex<FileState>>>>,
    /// Bytes the disk holds; 0: no limit.
    capacity: AtomicU64,
    sync_fails: AtomicBool,
    write_fails: AtomicBool,
}

#[derive(Clone, Default)]
struct FileState {
    current: Vec<u8>,
    durable: Vec<u8>,
}

pub(crate) struct MemoryFile {
    disk: MemoryDisk,
    state: Arc<Mutex<FileState>>,
}

impl MemoryDisk {
    /// What a machine finds after its power failed: of every sector written since the last sync,
    /// the old or the new content.
    pub(crate) fn crash(&self, rng: &mut SmallRng) -> MemoryDisk {
        let lose_everything = rng.random_bool(0.3);
        let files = self.0.files.lock();
        let files = files.iter().map(|(name, file)| {
            let file = file.lock();
            let mut data = file.durable.clone();
            data.resize(data.len().max(file.current.len()), 0);
            for (at, new) in file.current.chunks(SECTOR).enumerate() {
                if !lose_everything && rng.random_bool(0.5) {
                    data[at * SECTOR..at * SECTOR + new.len()].copy_from_slice(new);
                }
            }
            (name.clone(), Arc::new(Mutex::new(FileState { current: data.clone(), durable: data })))
        });
        MemoryDisk(Arc::new(MemoryState { files: Mutex::new(files.collect()), ..MemoryState::default() }))
    }
    /// What a restarted process finds: everything written.
    pub(crate) fn reboot(&self) -> MemoryDisk {
        let files = self.0.files.lock();
        let files = files.iter().map(|(name, file)| (name.clone(), Arc::new(Mutex::new(file.lock().clone()))));
        MemoryDisk(Arc::new(MemoryState { files: Mutex::new(files.collect()), ..MemoryState::default() }))
    }
    pub(crate) fn set_capacity(&self, bytes: u64) {
        self.0.capacity.store(bytes, Ordering::Relaxed);
    }
    pub(crate) fn fail_syncs(&self) {
        self.0.sync_fails.store(true, Ordering::Relaxed);
    }
    pub(crate) fn fail_writes(&self) {
        self.0.write_fails.store(true, Ordering::Relaxed);
    }
    /// Handles to this disk, open files included.
    pub(crate) fn users(&self) -> usize {
        Arc::strong_count(&self.0)
    }
    pub(crate) fn bytes(&self) -> u64 {
        self.0.files.lock().values().map(|f| f.lock().current.len() as u64).sum()
    }
    /// Changes a file behind everybody's back.
    pub(crate) fn edit(&self, path: &str, edit: impl FnOnce(&mut Vec<u8>)) {
        let files = self.0.files.lock();
        let mut file = files[path].lock();
        edit(&mut file.current);
        file.durable = file.current.clone();
    }
}

impl Disk for MemoryDisk {
    fn open(&self, path: &str, create: bool) -> io::Result<Box<dyn DiskFile>> {
        let mut files = self.0.files.lock();
        if !files.contains_key(path) {
            if !create {
                return Err(io::ErrorKind::NotFound.into());
            }
            files.insert(path.into(), Arc::default());
        }
        Ok(Box::new(MemoryFile { disk: self.clone(), state: files[path].clone() }))
    }
    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let prefix = format!("{folder}/");
        // In no order that anybody may rely on.
        Ok(self.0.files.lock().keys().rev().filter_map(|k| k.strip_prefix(&prefix)).map(str::to_string).collect())
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        self.0.files.lock().remove(path).map(drop).ok_or(io::ErrorKind::NotFound.into())
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = self.0.files.lock();
        let file = files.remove(from).ok_or(io::Error::from(io::ErrorKind::NotFound))?;
        files.insert(to.into(), file);
        Ok(())
    }
    fn sync_folder(&self, _folder: &str) -> io::Result<()> {
        Ok(())
    }
    fn describe(&self, path: &str) -> String {
        format!("memory/{path}")
    }
    fn space(&self) -> io::Result<Space> {
        let total = match self.0.capacity.load(Ordering::Relaxed) {
            0 => u64::MAX,
            capacity => capacity,
        };
        Ok(Space { total, free: total.saturating_sub(self.bytes()) })
    }
}

impl DiskFile for MemoryFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        workers::assert_may_wait("reading a file");
        let state = self.state.lock();
        let from = state.current.get(offset as usize..).unwrap_or_default();
        let n = from.len().min(buf.len());
        buf[..n].copy_from_slice(&from[..n]);
        Ok(n)
    }
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if self.disk.0.write_fails.load(Ordering::Relaxed) {
            return Err(io::Error::other("the disk is broken"));
        }
        let end = offset as usize + data.len();
        let capacity = self.disk.0.capacity.load(Ordering::Relaxed);
        let grows = end.saturating_sub(self.state.lock().current.len()) as u64;
        if capacity > 0 && grows > 0 && self.disk.bytes() + grows > capacity {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let mut state = self.state.lock();
        if state.current.len() < end {
            state.current.resize(end, 0);
        }
        state.current[offset as usize..end].copy_from_slice(data);
        Ok(())
    }
    fn len(&self) -> io::Result<u64> {
        Ok(self.state.lock().current.len() as u64)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.state.lock().current.resize(len as usize, 0);
        Ok(())
    }
    fn allocate(&self, len: u64) -> io::Result<()> {
        if len > self.len()? { self.set_len(len) } else { Ok(()) }
    }
    fn sync(&self) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            if self.disk.0.sync_fails.load(Ordering::Relaxed) {
                // As some file systems say it: what was about to be written has no room, and may be
                // lost.
                return Err(io::ErrorKind::StorageFull.into());
            }
            let mut state = self.state.lock();
            state.durable = state.current.clone();
            Ok(())
        })
    }
}

/// Real files below a folder.
#[derive(Clone)]
pub(crate) struct FileDisk(pub Arc<PathBuf>);

pub(crate) struct RealFile(std::fs::File);

impl FileDisk {
    fn path(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }
}

impl Disk for FileDisk {
    fn open(&self, path: &str, create: bool) -> io::Result<Box<dyn DiskFile>> {
        let path = self.path(path);
        if create {
            std::fs::create_dir_all(path.parent().expect("a file has a folder"))?;
        }
        let file = std::fs::OpenOptions::new().read(true).write(true).create(create).truncate(false).open(path)?;
        Ok(Box::new(RealFile(file)))
    }
    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let mut names = vec![];
        match std::fs::read_dir(self.path(folder)) {
            Ok(entries) => {
                for entry in entries {
                    names.push(entry?.file_name().to_string_lossy().into_owned());
                }
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
        names.sort();
        Ok(names)
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        std::fs::remove_file(self.path(path))
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path(from), self.path(to))?;
        std::fs::File::open(self.path(to).parent().expect("a file has a folder"))?.sync_all()
    }
    fn sync_folder(&self, folder: &str) -> io::Result<()> {
        std::fs::File::open(self.path(folder))?.sync_all()
    }
    fn describe(&self, path: &str) -> String {
        self.path(path).display().to_string()
    }
    fn space(&self) -> io::Result<Space> {
        Ok(Space { total: u64::MAX, free: u64::MAX })
    }
}

impl DiskFile for RealFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        FileExt::read_at(&self.0, buf, offset)
    }
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write_all_at(data, offset)
    }
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }
    fn allocate(&self, len: u64) -> io::Result<()> {
        if len > self.len()? { self.set_len(len) } else { Ok(()) }
    }
    fn sync(&self) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(async { self.0.sync_data() })
    }
}

/// A runtime around one of the disks. It has no network.
pub(crate) struct TestRuntime {
    pub disk: Box<dyn Disk>,
    pub rng: Mutex<SmallRng>,
    /// Blocking work gets a thread, as in the server; else a task, as in the simulator.
    pub threads: bool,
}

impl TestRuntime {
    pub(crate) fn new(disk: impl Disk, seed: u64) -> TestRuntime {
        TestRuntime { disk: Box::new(disk), rng: Mutex::new(SmallRng::seed_from_u64(seed)), threads: false }
    }
}

impl Runtime for TestRuntime {
    fn physical_micros(&self) -> u64 {
        1
    }
    fn wall_micros(&self) -> u64 {
        1
    }
    fn monotonic_micros(&self) -> u64 {
        1
    }
    fn steady_clock(&self) -> &meridian_base::SteadyClock {
        unreachable!("the log asks for no time")
    }
    fn random(&self) -> u64 {
        self.rng.lock().random()
    }
    fn listen<'a>(&'a self, _addr: &'a str) -> BoxFuture<'a, io::Result<Box<dyn Listener>>> {
        Box::pin(async { Err(io::ErrorKind::Unsupported.into()) })
    }
    fn connect<'a>(&'a self, _addr: &'a str) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        Box::pin(async { Err(io::ErrorKind::Unsupported.into()) })
    }
    fn disk(&self) -> &dyn Disk {
        &*self.disk
    }
    #[allow(clippy::disallowed_methods)] // This is an implementation of the runtime.
    fn spawn_io(&self, name: &'static str, future: BoxFuture<'static, ()>) {
        if self.threads {
            let handle = tokio::runtime::Handle::current();
            let thread = std::thread::Builder::new().name(name.into());
            thread.spawn(move || handle.block_on(future)).expect("a thread for the log");
        } else {
            tokio::spawn(future);
        }
    }
}
