//! How long a task may have its thread.

use crate::migration;
use std::time::Duration;
use tokio::time::Instant;

const TURN_MAX: Duration = Duration::from_millis(1);
/// A task that has had so many turns without having waited computes for long.
const BRIEF_TURNS: u32 = 5;

/// The time that a task has had a thread which others run on, too. What it needs may always be at
/// hand, so that it never waits for anything.
#[derive(Debug)]
pub struct Turn {
    since: Instant,
    looks: u32,
    /// One step in so many looks at the clock.
    every: u32,
    /// How often the thread was given away since the task has waited.
    given: u32,
}

impl Turn {
    /// A turn that begins now. One step in `every` looks at the clock.
    pub fn of_steps(every: u32) -> Turn {
        Turn { since: Instant::now(), looks: 0, every, given: 0 }
    }

    /// The task has waited for something: its turn begins now.
    pub fn begin(&mut self) {
        (self.since, self.given) = (Instant::now(), 0);
    }

    /// For each step: gives the thread away if it was had for more than a millisecond; to whom
    /// that happens again and again, [`migrates`](migration).
    pub async fn step(&mut self) {
        self.looks = self.looks.wrapping_add(1);
        if self.looks.is_multiple_of(self.every) && self.since.elapsed() > TURN_MAX {
            self.given += 1;
            if self.given >= BRIEF_TURNS {
                migration::computes_long();
            }
            tokio::task::yield_now().await;
            self.since = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::Poll;

    /// Whether a step gives the thread away.
    async fn passes(turn: &mut Turn) -> bool {
        let mut step = pin!(turn.step());
        let mut has_waited = false;
        std::future::poll_fn(|context| match step.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(has_waited),
            Poll::Pending => {
                has_waited = true;
                Poll::Pending
            }
        })
        .await
    }

    #[tokio::test(start_paused = true)]
    async fn a_thread_is_given_away_once_it_was_had_for_a_millisecond() {
        let mut turn = Turn::of_steps(2);
        tokio::time::advance(Duration::from_micros(900)).await;
        assert!(!passes(&mut turn).await && !passes(&mut turn).await, "not for long enough");
        tokio::time::advance(Duration::from_micros(200)).await;
        assert!(!passes(&mut turn).await, "the first of two steps");
        assert!(passes(&mut turn).await);
        assert!(!passes(&mut turn).await && !passes(&mut turn).await, "a new turn");
        tokio::time::advance(Duration::from_micros(1_100)).await;
        turn.begin();
        assert!(!passes(&mut turn).await && !passes(&mut turn).await, "it has waited");
    }

    #[test]
    fn who_has_many_turns_without_waiting_migrates() {
        let scheduler = |name: &str| {
            let mut one = tokio::runtime::Builder::new_multi_thread();
            one.worker_threads(1).thread_name(name).enable_all().build().expect("a scheduler")
        };
        let (brief, long) = (scheduler("brief"), scheduler("long"));
        for (waits, expected) in [(false, "long"), (true, "brief")] {
            let (tell, told) = std::sync::mpsc::channel();
            migration::spawn([brief.handle().clone(), long.handle().clone()], async move {
                let mut turn = Turn::of_steps(1);
                for _ in 0..=BRIEF_TURNS {
                    let since = Instant::now();
                    while since.elapsed() <= TURN_MAX {}
                    turn.step().await;
                    if waits {
                        turn.begin();
                    }
                }
                tell.send(std::thread::current().name().map(str::to_string)).expect("the test waits");
            });
            let ended = told.recv_timeout(Duration::from_secs(20)).expect("it ends");
            assert_eq!(ended.as_deref(), Some(expected));
        }
    }
}
