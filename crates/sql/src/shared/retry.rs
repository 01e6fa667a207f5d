//! How often, and after which pause, the session tries again by itself.

use super::CancelHandle;
use meridian_base::{Error, ErrorKind, Result, limits};
use std::time::Duration;
use tokio::time::Instant;

/// How long unavailability is waited for, from the beginning of the attempt that met it: more than
/// a failover takes (lease and election together).
const UNAVAILABLE_MAX: Duration = Duration::from_secs(10);
/// For how long work is tried again however often it was refused: a node may need as long to hear
/// of a new schema.
const REFUSED_MIN: Duration = Duration::from_secs(3);
/// And for how long at most, unless the work itself takes that long: whoever is refused again and
/// again because of a transaction in doubt, a second or more each time, is told.
const REFUSED_MAX: Duration = Duration::from_secs(20);
/// Work that takes longer is tried again so often.
const RETRIES_MIN: u32 = 3;
/// The first pause; each further one is twice as long, and all are drawn at random up to that.
const PAUSE_FIRST: Duration = Duration::from_micros(200);
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// The attempts of one piece of work.
#[derive(Debug)]
pub(crate) struct Attempts {
    retries: u32,
    began: Instant,
    /// When the present one began.
    this_began: Instant,
    /// When the first one began that met unavailability.
    unavailable_since: Option<Instant>,
}

impl Default for Attempts {
    fn default() -> Attempts {
        let now = Instant::now();
        Attempts { retries: 0, began: now, this_began: now, unavailable_since: None }
    }
}

impl Attempts {
    /// How many attempts came before: `TxnOptions::attempt`.
    pub fn count(&self) -> u32 {
        self.retries
    }
    /// Whether an error calls for another attempt, by its kind and by what was tried so far.
    pub fn allow(&mut self, error: &Error) -> bool {
        match error.kind() {
            ErrorKind::Retry => {
                self.retries += 1;
                let elapsed = self.began.elapsed();
                let may = self.retries <= limits::RETRIES_MAX && (elapsed < REFUSED_MAX || self.retries <= RETRIES_MIN);
                may || elapsed < REFUSED_MIN
            }
            ErrorKind::Unavailable | ErrorKind::NotPrimary => {
                self.retries += 1;
                self.unavailable_since.get_or_insert(self.this_began).elapsed() < UNAVAILABLE_MAX
            }
            _ => false,
        }
    }
    /// Waits before the next attempt. Ends early, with the error, if the statement is to end.
    pub async fn pause(&mut self, random: u64, cancel: &CancelHandle) -> Result<()> {
        let doublings = self.retries.saturating_sub(1).min(16);
        let longest = (PAUSE_FIRST * (1 << doublings)).min(PAUSE_MAX).as_micros() as u64;
        let pause = Duration::from_micros(1 + random % longest);
        let paused = tokio::select! {
            _ = tokio::time::sleep(pause) => Ok(()),
            error = cancel.interrupted() => Err(error),
        };
        self.this_began = Instant::now();
        paused
    }
}

/// An error as the client gets it when nobody tries again: retries end as 40001 with a hint,
/// whatever SQLSTATE the layer below chose.
pub(crate) fn final_error(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Retry if error.get_hint().is_none() => error.hint("The transaction might succeed if retried."),
        _ => error,
    }
}
