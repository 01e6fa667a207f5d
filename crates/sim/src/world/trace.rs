//! Everything that happens, folded into one number.
//!
//! Two runs of one seed must give the same number; where they do not, the printed traces show the
//! first difference.

use parking_lot::Mutex;

/// The events of a run.
#[derive(Default)]
pub struct Trace {
    state: Mutex<State>,
    print: bool,
}

struct State {
    hash: u64,
    events: u64,
}

impl Default for State {
    fn default() -> State {
        State { hash: FNV_OFFSET, events: 0 }
    }
}

/// The constants of FNV-1a: a hash whose result does not depend on the platform or a random key.
const FNV_OFFSET: u64 = 0xCBF2_9CE4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01B3;

fn fold(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME))
}

/// A hash of some bytes, for events about them.
pub fn hash_of(bytes: &[u8]) -> u64 {
    fold(FNV_OFFSET, bytes)
}

impl Trace {
    /// With `print`, every event goes to standard error too.
    pub fn new(print: bool) -> Trace {
        Trace { state: Mutex::default(), print }
    }
    /// Notes an event: when, where, what, and a number that tells it from others of its kind.
    pub fn event(&self, micros: u64, host: &str, what: &str, number: u64) {
        let mut state = self.state.lock();
        let mut hash = fold(state.hash, &micros.to_le_bytes());
        hash = fold(hash, host.as_bytes());
        hash = fold(hash, what.as_bytes());
        state.hash = fold(hash, &number.to_le_bytes());
        state.events += 1;
        if self.print {
            eprintln!("{:>10}.{:03} {host} {what} {number:x}", micros / 1_000, micros % 1_000);
        }
    }
    /// The hash, and how many events went into it.
    pub fn sum(&self) -> (u64, u64) {
        let state = self.state.lock();
        (state.hash, state.events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_content_of_events_matter() {
        let sum = |events: &[(u64, &str)]| {
            let trace = Trace::new(false);
            events.iter().for_each(|(time, what)| trace.event(*time, "n1", what, 0));
            trace.sum()
        };
        assert_eq!(sum(&[(1, "a"), (2, "b")]), sum(&[(1, "a"), (2, "b")]));
        assert_ne!(sum(&[(1, "a"), (2, "b")]), sum(&[(2, "b"), (1, "a")]));
        assert_ne!(sum(&[(1, "a")]), sum(&[(1, "b")]));
    }
}
