//! The threads that clients' sessions run on: one per core, each with a scheduler of its own.
//!
//! Between two messages of its client a session works for a few microseconds. A scheduler over all
//! cores has one worker that learns from the kernel which clients have sent something; it wakes the
//! others, which take sessions from it, and that waking and taking costs as much as the statements
//! do. Here a session stays on the thread that its socket is registered with, and nothing is handed
//! over. What nodes do in the background is fewer and longer tasks, which wake each other; they
//! share one scheduler, [`background_scheduler`]. What other nodes count on in time has a
//! thread of its own, [`ProtocolThread`].
//!
//! A statement that has computed for some milliseconds migrates, with its session, to threads that
//! no session waits on, until the session waits for its client again.

use crate::watchdog::{Watch, watch};
use meridian_base::{Error, Result, migration, workers};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;

/// The stack of a session's thread. Planning may use 640 KiB of it (`plan::stack`). Running a plan
/// takes several times as much: with 2 MiB, 110 joins overflowed. Pages that are never touched take
/// no memory.
const STACK_BYTES: usize = 32 << 20;

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// How many threads a process that serves clients gives to everything else: with more of them than
/// that, what a commit has to go through wakes one after the other.
fn background_workers() -> usize {
    (cores() / 2).max(1)
}

/// The scheduler of a process's background: few workers if the process serves clients, else one per
/// core. The thread that blocks on it is no worker, so it may open a node's files.
pub fn background_scheduler(serves_clients: bool) -> io::Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    if serves_clients {
        builder.worker_threads(background_workers());
    }
    builder.on_thread_start(workers::declare).enable_all().build()
}

/// The threads. Cheap to clone; they end when the last clone has been dropped and the last session
/// has ended. All nodes of a process may share them.
#[derive(Clone)]
pub struct SessionThreads(Arc<Threads>);

struct Threads {
    each: Vec<Thread>,
    /// What computes for long. `None`: it ends.
    long: Option<Runtime>,
    _watch: Watch,
}

impl Drop for Threads {
    fn drop(&mut self) {
        // The last session may end on one of its own threads.
        if let Some(long) = self.long.take() {
            long.shutdown_background();
        }
    }
}

struct Thread {
    scheduler: Handle,
    /// How many sessions run here.
    sessions: Arc<AtomicUsize>,
    /// Ends the thread when dropped.
    _alive: oneshot::Sender<()>,
}

impl SessionThreads {
    /// Starts two threads per core: one for sessions, one for what computes for long.
    pub fn start() -> Result<SessionThreads> {
        let failed = |e: io::Error| Error::fatal(format!("cannot start the threads of sessions: {e}"));
        let each: io::Result<Vec<Thread>> = (0..cores()).map(Thread::start).collect();
        let each = each.map_err(failed)?;
        let mut long = Builder::new_multi_thread();
        long.worker_threads(cores()).thread_name("long").thread_stack_size(STACK_BYTES);
        let long = long.on_thread_start(workers::declare).enable_all().build().map_err(failed)?;
        let watched = each.iter().enumerate().map(|(number, thread)| (name_of(number), thread.scheduler.clone()));
        let watch = watch(watched.collect());
        Ok(SessionThreads(Arc::new(Threads { each, long: Some(long), _watch: watch })))
    }

    /// Serves a client on the thread that has the fewest, to its end. `register` makes the client's
    /// socket one of that thread's scheduler.
    pub(crate) fn serve<S: Send, F: Future<Output = ()> + Send + 'static>(
        &self,
        register: impl FnOnce() -> io::Result<S> + Send + 'static,
        serving: impl FnOnce(S) -> F + Send + 'static,
    ) {
        let thread = self.0.each.iter().min_by_key(|t| t.sessions.load(Ordering::Relaxed)).expect("a machine has a core");
        let place = Place::take(&thread.sessions, self.clone());
        let long = self.0.long.as_ref().expect("it is there until the last clone is gone").handle().clone();
        migration::spawn([thread.scheduler.clone(), long], async move {
            let _place = place;
            match register() {
                Ok(stream) => serving(stream).await,
                Err(e) => tracing::warn!("cannot serve a client: {e}"),
            }
        });
    }
}

fn name_of(number: usize) -> String {
    format!("sessions-{number}")
}

impl Thread {
    #[allow(clippy::disallowed_methods, reason = "part of the runtime that others are sent to")]
    fn start(number: usize) -> io::Result<Thread> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let scheduler = runtime.handle().clone();
        let (alive, ended) = oneshot::channel();
        let thread = std::thread::Builder::new().name(name_of(number)).stack_size(STACK_BYTES);
        thread.spawn(move || {
            workers::declare();
            runtime.block_on(until_dropped(ended));
        })?;
        Ok(Thread { scheduler, sessions: Arc::default(), _alive: alive })
    }
}

/// How often a scheduler's own timer ends.
const TICK: Duration = Duration::from_secs(1);

/// Waits until the other end of a channel, by which nothing is ever sent, is gone. A timer is
/// always running meanwhile: one that would end before all others wakes its own scheduler by a
/// write to a file, and each commit begins one of several seconds.
async fn until_dropped(mut ended: oneshot::Receiver<()>) {
    while tokio::time::timeout(TICK, &mut ended).await.is_err() {}
}

/// The thread of what keeps the cluster together: connections between nodes, the consensus
/// protocol, heartbeats, leases. Nothing else runs there, so that no statement, however long it
/// computes, delays a heartbeat; and where the system allows it the thread goes before others when
/// there are more of them than cores. Cheap to clone; it ends with the last clone. All nodes of a
/// process may share it.
#[derive(Clone)]
pub struct ProtocolThread(Arc<(Handle, oneshot::Sender<()>, Watch)>);

impl ProtocolThread {
    /// Starts the thread.
    #[allow(clippy::disallowed_methods, reason = "part of the runtime that others are sent to")]
    pub fn start() -> Result<ProtocolThread> {
        let failed = |e: io::Error| Error::fatal(format!("cannot start the thread of the protocols: {e}"));
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let scheduler = runtime.handle().clone();
        let (alive, ended) = oneshot::channel();
        let thread = std::thread::Builder::new().name("protocol".to_string());
        let run = move || {
            raise_priority();
            workers::declare();
            runtime.block_on(until_dropped(ended));
        };
        thread.spawn(run).map_err(failed)?;
        let watch = watch(vec![("protocol".to_string(), scheduler.clone())]);
        Ok(ProtocolThread(Arc::new((scheduler, alive, watch))))
    }

    pub(crate) fn scheduler(&self) -> Handle {
        self.0.0.clone()
    }
}

/// How much sooner than others the calling thread is to run; as `nice` counts.
const PRIORITY: libc::c_int = -10;

/// Lets the calling thread go before others, where that is allowed; elsewhere it goes with them.
pub(crate) fn raise_priority() {
    // On Linux the priority is a thread's, elsewhere the whole process's.
    #[cfg(target_os = "linux")]
    // SAFETY: the call touches no memory.
    unsafe {
        let now = libc::getpriority(libc::PRIO_PROCESS, 0);
        let _ = libc::setpriority(libc::PRIO_PROCESS, 0, now + PRIORITY);
    }
}

/// One session's place on a thread, which stays as long as it is taken.
struct Place {
    sessions: Arc<AtomicUsize>,
    _threads: SessionThreads,
}

impl Place {
    fn take(sessions: &Arc<AtomicUsize>, threads: SessionThreads) -> Place {
        sessions.fetch_add(1, Ordering::Relaxed);
        Place { sessions: sessions.clone(), _threads: threads }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.sessions.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::io::Read;
    use std::net::TcpStream;
    use tokio::io::AsyncWriteExt;

    /// A disk that is slow would hold up what such a thread does for others.
    #[test]
    fn no_thread_of_a_scheduler_may_wait_for_a_disk() {
        let background = background_scheduler(true).unwrap();
        let (protocol, sessions) = (ProtocolThread::start().unwrap(), SessionThreads::start().unwrap());
        let schedulers = sessions.0.each.iter().map(|thread| thread.scheduler.clone());
        for scheduler in schedulers.chain([background.handle().clone(), protocol.scheduler()]) {
            let may_wait = scheduler.spawn(async { workers::may_wait() });
            assert!(!background.block_on(may_wait).unwrap());
        }
        assert!(background.block_on(async { workers::may_wait() }), "the thread that blocks on it is none");
    }

    #[test]
    fn a_session_leaves_its_thread_while_it_computes_for_long() {
        let (threads, (tell, told)) = (SessionThreads::start().unwrap(), std::sync::mpsc::channel());
        let here = || std::thread::current().name().unwrap_or_default().to_string();
        let register = || Ok(());
        threads.serve(register, move |()| async move {
            let mut seen = vec![here()];
            migration::computes_long();
            tokio::task::yield_now().await;
            seen.push(here());
            migration::computes_briefly();
            tokio::task::yield_now().await;
            seen.push(here());
            migration::computes_long();
            tokio::task::yield_now().await;
            tell.send(seen).unwrap();
        });
        let seen = told.recv_timeout(Duration::from_secs(20)).expect("the session ends");
        assert!(seen[0].starts_with("sessions-") && seen[0] == seen[2] && seen[1] == "long", "{seen:?}");
        // What is left of the session ends, maybe as the last, on a thread that ends with it.
        drop(threads);
    }

    #[tokio::test]
    #[allow(clippy::disallowed_methods, reason = "sockets of the machine are what is tested")]
    async fn every_session_has_the_thread_with_the_fewest_and_gives_its_place_back() {
        let threads = SessionThreads::start().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let connect = || {
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (served, _) = listener.accept().unwrap();
            served.set_nonblocking(true).unwrap();
            (client, served)
        };
        let (mut clients, mut ends) = (Vec::new(), Vec::new());
        for _ in 0..2 * threads.0.each.len() {
            let (client, served) = connect();
            let (end, ended) = oneshot::channel::<()>();
            let register = || tokio::net::TcpStream::from_std(served);
            threads.serve(register, |mut stream| async move {
                let name = std::thread::current().name().unwrap_or_default().to_string();
                stream.write_all(name.as_bytes()).await.unwrap();
                let _ = ended.await;
            });
            clients.push(client);
            ends.push(end);
        }
        assert!(threads.0.each.iter().all(|t| t.sessions.load(Ordering::Relaxed) == 2));
        // A server that takes no more clients lets its threads go; those that are served stay.
        let counts: Vec<_> = threads.0.each.iter().map(|t| t.sessions.clone()).collect();
        let started = threads.0.each.len();
        drop(threads);
        drop(ends);
        let mut names: BTreeMap<String, usize> = BTreeMap::new();
        for client in &mut clients {
            let mut name = String::new();
            client.read_to_string(&mut name).unwrap();
            *names.entry(name).or_default() += 1;
        }
        assert_eq!(names.len(), started);
        assert!(names.iter().all(|(name, sessions)| name.starts_with("sessions-") && *sessions == 2), "{names:?}");
        // A socket is closed before its place is given back.
        while counts.iter().any(|sessions| sessions.load(Ordering::Relaxed) > 0) {
            tokio::task::yield_now().await;
        }
    }
}
