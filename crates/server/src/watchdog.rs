//! Tells of threads that do not come back: who computes for long on the thread of a scheduler holds
//! up everybody who shares it.
//!
//! Each thread is asked to answer every tenth of a second. One that has not for a quarter of a
//! second is named in the log, and once more when it has come back, with how much of the time it
//! has computed: the rest it waited for a core, or for a disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

const PERIOD: Duration = Duration::from_millis(100);
const LATE: Duration = Duration::from_millis(250);

/// Ends the watch when it is dropped.
pub(crate) struct Watch {
    _watched: Sender<()>,
}

/// Watches schedulers of one thread each, by the names of these.
#[allow(clippy::disallowed_methods, reason = "part of the runtime that others are sent to")]
pub(crate) fn watch(threads: Vec<(String, Handle)>) -> Watch {
    let (watched, ended) = mpsc::channel::<()>();
    let run = move || {
        let mut threads: Vec<_> = threads.into_iter().map(|(name, scheduler)| (scheduler, Answers::new(name))).collect();
        while ended.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
            for (scheduler, answers) in &mut threads {
                if let Some(asked) = answers.look(Instant::now(), |line| tracing::warn!("{line}")) {
                    scheduler.spawn(async move { asked.answer(computed_micros()) });
                }
            }
        }
    };
    if let Err(e) = std::thread::Builder::new().name("watchdog".into()).spawn(run) {
        tracing::error!("cannot start thread watchdog: {e}");
    }
    Watch { _watched: watched }
}

/// What a thread answers to.
#[derive(Clone)]
struct Asked {
    /// How long the thread had computed when it answered, in microseconds and one more; 0: it has
    /// not answered yet.
    computed: Arc<AtomicU64>,
}

impl Asked {
    fn answer(&self, computed: u64) {
        self.computed.store(computed + 1, Ordering::Release);
    }
}

/// The answers of one thread.
struct Answers {
    name: String,
    /// The last question, and when it was asked.
    last: Option<(Asked, Instant)>,
    /// How long the thread had computed when it answered the question before.
    before: u64,
    /// Whether the log says that the last one is late.
    is_told: bool,
}

impl Answers {
    fn new(name: String) -> Answers {
        Answers { name, last: None, before: 0, is_told: false }
    }

    /// Says what is to be said of the last question, and gives the next one if that was answered.
    fn look(&mut self, now: Instant, mut say: impl FnMut(String)) -> Option<Asked> {
        if let Some((asked, at)) = &self.last {
            let late = now.saturating_duration_since(*at);
            let Some(computed) = asked.computed.load(Ordering::Acquire).checked_sub(1) else {
                if late >= LATE && !self.is_told {
                    self.is_told = true;
                    say(format!("thread {} has not come back for {} ms: others wait for it", self.name, late.as_millis()));
                }
                return None;
            };
            if std::mem::take(&mut self.is_told) {
                let busy = computed.saturating_sub(self.before) / 1_000;
                say(format!("thread {} came back within {} ms; it computed for {busy} ms", self.name, late.as_millis()));
            }
            self.before = computed;
        }
        let asked = Asked { computed: Arc::default() };
        self.last = Some((asked.clone(), now));
        Some(asked)
    }
}

/// How long the calling thread has computed. (`clock_gettime(3)`, `CLOCK_THREAD_CPUTIME_ID`.)
fn computed_micros() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is there for the call, which writes nothing else.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    if status == 0 { time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1_000 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a moment to count from")]
    fn who_does_not_answer_is_named_once_and_when_it_has_come_back() {
        let start = Instant::now();
        let after = |millis| start + Duration::from_millis(millis);
        let mut answers = Answers::new("sessions-0".into());
        let mut said = Vec::new();
        let mut look = |millis, said: &mut Vec<String>| answers.look(after(millis), |line| said.push(line));
        look(0, &mut said).expect("a first question").answer(1_000);
        let second = look(100, &mut said).expect("the first one is answered");
        for millis in [200, 300] {
            assert!(look(millis, &mut said).is_none());
        }
        assert_eq!(said, Vec::<String>::new(), "200 ms are not late");
        for millis in [350, 450, 900] {
            assert!(look(millis, &mut said).is_none(), "nothing more is asked meanwhile");
        }
        second.answer(701_000);
        look(1_000, &mut said).expect("the second one is answered").answer(701_500);
        look(1_100, &mut said).expect("all is well");
        let late = "thread sessions-0 has not come back for 250 ms: others wait for it";
        let back = "thread sessions-0 came back within 900 ms; it computed for 700 ms";
        assert_eq!(said, [late, back]);
    }

    #[test]
    fn a_thread_says_how_long_it_has_computed() {
        let before = computed_micros();
        let mut sum = 0u64;
        while computed_micros() < before + 2_000 {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(sum > 0);
    }
}
