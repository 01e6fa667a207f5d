//! Tasks that migrate to another scheduler while they compute for long.
//!
//! A task that computes keeps those waiting that share its thread. It gives the thread away now and
//! then ([`turn`](crate::turn)), but not within one step, which may take as long as a function
//! takes for one row; and every task that computes takes its turn before one that has just been
//! woken. On threads of its own it competes by the operating system's scheduling, which takes a
//! core away from it at any moment.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use tokio::runtime::Handle;

tokio::task_local! {
    /// Whether the task wants to be among those that compute for long.
    static IS_LONG: Arc<AtomicBool>;
}

/// The calling task computes for long from here on: it migrates the next time it waits.
pub fn computes_long() {
    want(true);
}

/// The calling task only waits, or computes briefly, from here on.
pub fn computes_briefly() {
    want(false);
}

/// Nothing happens in a task that cannot migrate.
fn want(long: bool) {
    let _ = IS_LONG.try_with(|is_long| is_long.store(long, Ordering::Relaxed));
}

/// Runs a task to its end: on the first scheduler, and while it computes for long on the other one.
pub fn spawn(on: [Handle; 2], task: impl Future<Output = ()> + Send + 'static) {
    let is_long = Arc::new(AtomicBool::new(false));
    let task = Box::pin(IS_LONG.scope(is_long.clone(), task));
    Migrating { task, is_long, on }.place(false);
}

struct Migrating {
    task: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_long: Arc<AtomicBool>,
    on: [Handle; 2],
}

impl Migrating {
    /// Goes on with the task on one of the schedulers.
    fn place(mut self, long: bool) {
        let scheduler = self.on[usize::from(long)].clone();
        scheduler.spawn(async move {
            let is_over = std::future::poll_fn(|context| match self.task.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(true),
                // Polled at once where it goes on, it misses nothing that it waits for.
                Poll::Pending if self.is_long.load(Ordering::Relaxed) != long => Poll::Ready(false),
                Poll::Pending => Poll::Pending,
            });
            if !is_over.await {
                self.place(!long);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::runtime::{Builder, Runtime};

    fn scheduler(name: &str) -> Runtime {
        Builder::new_multi_thread().worker_threads(1).thread_name(name).enable_all().build().expect("a scheduler")
    }

    fn here() -> String {
        std::thread::current().name().unwrap_or_default().to_string()
    }

    #[test]
    fn a_task_is_where_it_said_it_wants_to_be_when_it_has_waited() {
        let (brief, long) = (scheduler("brief"), scheduler("long"));
        let (tell, told) = std::sync::mpsc::channel();
        spawn([brief.handle().clone(), long.handle().clone()], async move {
            let mut seen = vec![here()];
            computes_long();
            seen.push(here());
            tokio::task::yield_now().await;
            seen.push(here());
            // A timer that was begun on one of them ends on the other.
            let timer = tokio::time::sleep(Duration::from_millis(5));
            tokio::pin!(timer);
            tokio::select! {
                biased;
                () = &mut timer => {}
                () = tokio::task::yield_now() => {}
            }
            computes_briefly();
            timer.await;
            seen.push(here());
            tokio::task::yield_now().await;
            seen.push(here());
            tell.send(seen).expect("the test waits");
        });
        let seen = told.recv_timeout(Duration::from_secs(20)).expect("the task ends");
        assert_eq!(seen, ["brief", "brief", "long", "brief", "brief"]);
    }

    #[test]
    fn who_cannot_migrate_stays() {
        computes_long();
        computes_briefly();
    }
}
