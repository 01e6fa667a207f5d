//! Tasks, timers and random numbers for the consensus library: tokio's, except for two things.
//!
//! * Random numbers come from a seed that is drawn from [`meridian_base::runtime::Runtime::random`]
//!   when a group starts and that every task it spawns inherits, so a simulated cluster elects the
//!   same leaders in every run.
//! * A very short sleep is a yield. The library waits one microsecond to gather completions of log
//!   writes, and tokio's timer would make a millisecond of it, on every second write.

use openraft::async_runtime::AsyncRuntime;
use openraft::impls::TokioRuntime;
use openraft::{OptionalSend, TokioInstant};
use openraft_rt::deterministic_rng::DeterministicRng;
use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

type Inner = DeterministicRng<TokioRuntime>;

/// The longest sleep that becomes a yield: the library's one microsecond, with some room.
const YIELD_MAX: Duration = Duration::from_micros(2);
/// So many yields at one instant are enough. On simulated time the clock stands still while tasks
/// run, so a loop that sleeps until a deadline (the library's ticks) would never get there by
/// yielding.
const YIELDS_PER_INSTANT_MAX: u32 = 64;

thread_local! {
    static YIELDS: Cell<(Option<TokioInstant>, u32)> = const { Cell::new((None, 0)) };
}

/// Whether a short sleep may be a yield now.
fn may_yield(now: TokioInstant) -> bool {
    let (last, count) = YIELDS.get();
    let count = if last == Some(now) { count + 1 } else { 1 };
    YIELDS.set((Some(now), count));
    count <= YIELDS_PER_INSTANT_MAX
}

/// See the module.
#[derive(Debug)]
pub(crate) struct TokioSeeded(Inner);

impl TokioSeeded {
    /// Runs a future, and what it spawns, with random numbers from this seed.
    pub(crate) fn scope<F: Future>(seed: u64, future: F) -> impl Future<Output = F::Output> {
        Inner::scope(seed, future)
    }
}

/// A sleep, or a yield.
pub(crate) enum Sleep {
    Timer(Pin<Box<tokio::time::Sleep>>),
    Yield,
    Done,
}

impl Sleep {
    fn new(duration: Duration) -> Sleep {
        let short = duration <= YIELD_MAX && may_yield(<TokioInstant as openraft::Instant>::now());
        if short { Sleep::Yield } else { Sleep::Timer(Box::pin(tokio::time::sleep(duration))) }
    }
}

impl Future for Sleep {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match &mut *self {
            Sleep::Timer(timer) => timer.as_mut().poll(cx),
            Sleep::Yield => {
                *self = Sleep::Done;
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Sleep::Done => Poll::Ready(()),
        }
    }
}

impl AsyncRuntime for TokioSeeded {
    type JoinError = <Inner as AsyncRuntime>::JoinError;
    type JoinHandle<T: OptionalSend + 'static> = <Inner as AsyncRuntime>::JoinHandle<T>;
    type Sleep = Sleep;
    type Instant = TokioInstant;
    type TimeoutError = <Inner as AsyncRuntime>::TimeoutError;
    type Timeout<R, T: Future<Output = R> + OptionalSend> = <Inner as AsyncRuntime>::Timeout<R, T>;
    type ThreadLocalRng = <Inner as AsyncRuntime>::ThreadLocalRng;
    type Mpsc = <Inner as AsyncRuntime>::Mpsc;
    type Watch = <Inner as AsyncRuntime>::Watch;
    type Oneshot = <Inner as AsyncRuntime>::Oneshot;
    type Mutex<T: OptionalSend + 'static> = <Inner as AsyncRuntime>::Mutex<T>;

    fn spawn<T>(future: T) -> Self::JoinHandle<T::Output>
    where
        T: Future + OptionalSend + 'static,
        T::Output: OptionalSend + 'static,
    {
        Inner::spawn(future)
    }
    fn sleep(duration: Duration) -> Sleep {
        Sleep::new(duration)
    }
    fn sleep_until(deadline: TokioInstant) -> Sleep {
        let now = <TokioInstant as openraft::Instant>::now();
        Sleep::new(if deadline > now { deadline - now } else { Duration::ZERO })
    }
    fn timeout<R, F: Future<Output = R> + OptionalSend>(duration: Duration, future: F) -> Self::Timeout<R, F> {
        Inner::timeout(duration, future)
    }
    fn timeout_at<R, F: Future<Output = R> + OptionalSend>(deadline: TokioInstant, future: F) -> Self::Timeout<R, F> {
        Inner::timeout_at(deadline, future)
    }
    fn is_panic(join_error: &Self::JoinError) -> bool {
        Inner::is_panic(join_error)
    }
    fn thread_rng() -> Self::ThreadLocalRng {
        Inner::thread_rng()
    }
    fn new(threads: usize) -> TokioSeeded {
        TokioSeeded(Inner::new(threads))
    }
    fn block_on<F, T>(&mut self, future: F) -> T
    where
        F: Future<Output = T>,
    {
        self.0.block_on(future)
    }
}
