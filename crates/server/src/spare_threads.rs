//! Threads for work that is short and comes often: a statement that goes on in temporary files
//! reads thousands of blocks, and each is read where it may wait for the disk. To start a thread
//! takes longer than that.
//!
//! A thread that is done waits for more work, for [`KEPT_FOR`]. There are as many as there is work
//! at the same time, which those bound who bring it.

use meridian_base::runtime::BoxFuture;
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use tokio::runtime::Handle;

/// How long a thread waits for work.
const KEPT_FOR: Duration = Duration::from_secs(10);

type Work = BoxFuture<'static, ()>;

/// See the module's essay.
#[derive(Clone, Default)]
pub(crate) struct SpareThreads {
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Default)]
struct Waiting {
    /// The last to come is the first to go on: the others end if there is less work.
    threads: Vec<(u64, Sender<Work>)>,
    /// The number of the next thread.
    next: u64,
}

impl SpareThreads {
    /// Runs a future whose steps may wait for the disk. An error if no thread can be started.
    #[allow(clippy::disallowed_methods, reason = "a part of the runtime that others are sent to")]
    pub fn run(&self, name: &str, scheduler: &Handle, mut work: Work) -> io::Result<()> {
        loop {
            let Some((_, thread)) = self.waiting.lock().threads.pop() else { break };
            match thread.send(work) {
                Ok(()) => return Ok(()),
                // It has just ended.
                Err(unsent) => work = unsent.0,
            }
        }
        let number = {
            let mut waiting = self.waiting.lock();
            waiting.next += 1;
            waiting.next
        };
        let (spare, scheduler) = (self.clone(), scheduler.clone());
        let (send, receive) = channel();
        let run = move || {
            let mut next = Some(work);
            while let Some(work) = next {
                scheduler.block_on(work);
                spare.waiting.lock().threads.push((number, send.clone()));
                next = spare.wait(number, &receive);
            }
        };
        std::thread::Builder::new().name(name.to_string()).spawn(run).map(drop)
    }

    /// The next work of a thread that waits; `None`: there was none for long.
    fn wait(&self, number: u64, work: &Receiver<Work>) -> Option<Work> {
        match work.recv_timeout(KEPT_FOR) {
            Ok(work) => Some(work),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                let mut waiting = self.waiting.lock();
                let at = waiting.threads.iter().position(|(of, _)| *of == number);
                match at {
                    Some(at) => {
                        waiting.threads.remove(at);
                        None
                    }
                    // Somebody has just taken it, and sends.
                    None => {
                        drop(waiting);
                        work.recv().ok()
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::mpsc;
    use std::thread::{self, ThreadId};

    fn run(spare: &SpareThreads, work: impl FnOnce() + Send + 'static) {
        spare.run("spare", &Handle::current(), Box::pin(async move { work() })).expect("a thread");
    }

    #[tokio::test]
    async fn work_that_follows_work_is_done_by_the_same_thread() {
        let spare = SpareThreads::default();
        let mut threads: BTreeSet<String> = BTreeSet::new();
        for _ in 0..20 {
            let (tell, told) = mpsc::channel::<ThreadId>();
            run(&spare, move || tell.send(thread::current().id()).expect("somebody listens"));
            threads.insert(format!("{:?}", told.recv().expect("an answer")));
            while spare.waiting.lock().threads.is_empty() {
                thread::yield_now();
            }
        }
        assert_eq!(threads.len(), 1, "{threads:?}");
    }

    #[tokio::test]
    async fn work_at_the_same_time_has_threads_of_its_own() {
        let spare = SpareThreads::default();
        let all = Arc::new(std::sync::Barrier::new(4));
        for _ in 0..3 {
            let all = all.clone();
            run(&spare, move || {
                all.wait();
            });
        }
        all.wait();
    }
}
