//! When a certificate is renewed: functions of times alone.
//!
//! At two thirds of its life, earlier by a random part of a twentieth, so that nodes that were
//! started together do not ask together. A third of the life is left for what stands in the way:
//! a node that is refused, or finds no signer, tries again after a twentieth of what is left.

use crate::time::Moment;

/// The longest pause between two attempts.
const RETRY_SECS_MAX: u64 = 6 * 3_600;
/// The shortest one.
const RETRY_SECS_MIN: u64 = 10;

/// When to ask for a new certificate. `random` is any number; it stays the same for one
/// certificate, as its serial number does.
pub fn due(not_before: Moment, not_after: Moment, random: u64) -> Moment {
    let life = not_after.since(not_before);
    let early = random % (life / 20 + 1);
    not_before.plus(life - life / 3).minus(early)
}

/// When to ask again after an attempt that failed.
pub fn again(not_after: Moment, now: Moment, random: u64) -> Moment {
    let pause = (not_after.since(now) / 20).clamp(RETRY_SECS_MIN, RETRY_SECS_MAX);
    now.plus(pause - random % (pause / 4 + 1))
}

/// What an operator should know about a certificate: it has expired, is not valid yet, or should
/// have been renewed some time ago.
pub fn warning(not_before: Moment, not_after: Moment, now: Moment) -> Option<String> {
    let left = not_after.since(now);
    if now > not_after {
        Some(format!("it has expired on {not_after}"))
    } else if now < not_before {
        Some(format!("it is not valid before {not_before}"))
    } else if left < not_after.since(not_before) / 6 {
        Some(format!("it expires on {not_after}, in {} hours", left / 3_600))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_two_thirds_and_spread() {
        let (from, to) = (Moment(1_000_000), Moment(1_000_000 + 60_000));
        assert_eq!(due(from, to, 0), Moment(1_040_000));
        assert_eq!(due(from, to, 3_000), Moment(1_037_000));
        assert_eq!(due(from, to, 3_001), Moment(1_040_000));
        // Ends and beginnings that make no sense are due at once.
        assert_eq!(due(to, from, 7), to);
        assert!(due(Moment(0), Moment(u64::MAX), u64::MAX) <= Moment(u64::MAX));
    }

    #[test]
    fn attempts_come_faster_towards_the_end() {
        let end = Moment(10_000_000);
        let mut now = Moment(0);
        let mut attempts = 0;
        while now < end {
            let next = again(end, now, attempts);
            assert!(next > now && next.since(now) <= RETRY_SECS_MAX);
            (now, attempts) = (next, attempts + 1);
        }
        assert!((400..2_000).contains(&attempts), "{attempts}");
    }

    #[test]
    fn warnings() {
        let (from, to) = (Moment(100), Moment(700));
        assert_eq!(warning(from, to, Moment(600)), None);
        for (now, part) in [(99, "not valid before"), (601, "expires on"), (701, "has expired")] {
            assert!(warning(from, to, Moment(now)).is_some_and(|w| w.contains(part)));
        }
    }
}
