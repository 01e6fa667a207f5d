//! Whose schema step is next. A gateway whose step came too late derives it again from what came
//! first, and has to hear of that before it can: gateways near the coordinator would always be
//! faster. So a gateway that was refused has the next turn, for a while.

use meridian_base::NodeId;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// Gateways that were refused, in the order in which they were.
#[derive(Default)]
pub(crate) struct Turns {
    line: VecDeque<NodeId>,
    /// How long the first of them is waited for.
    until: Option<Instant>,
}

impl Turns {
    pub(crate) fn refused(&mut self, gateway: NodeId) {
        if !self.line.contains(&gateway) {
            self.line.push_back(gateway);
        }
    }

    /// A step of this gateway has begun.
    pub(crate) fn taken(&mut self, gateway: NodeId) {
        if self.line.front() == Some(&gateway) {
            self.line.pop_front();
            self.until = None;
        }
    }

    /// Which of those that wait is next, by its place among them. A gateway whose turn it is may
    /// take so long to come.
    pub(crate) fn next(
        &mut self,
        waiting: impl Iterator<Item = NodeId> + Clone,
        now: Instant,
        patience: Duration,
    ) -> Option<usize> {
        while let Some(first) = self.line.front() {
            if let Some(at) = waiting.clone().position(|gateway| gateway == *first) {
                return Some(at);
            }
            if now < *self.until.get_or_insert(now + patience) {
                return None;
            }
            self.line.pop_front();
            self.until = None;
        }
        waiting.clone().next().map(|_| 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: NodeId = NodeId(1);
    const B: NodeId = NodeId(2);
    const PATIENCE: Duration = Duration::from_millis(100);

    #[test]
    fn who_was_refused_is_next_unless_it_stays_away() {
        let now = Instant::now();
        let mut turns = Turns::default();
        let next = |turns: &mut Turns, waiting: &[NodeId], millis| {
            turns.next(waiting.iter().copied(), now + Duration::from_millis(millis), PATIENCE)
        };
        assert_eq!(next(&mut turns, &[], 0), None);
        assert_eq!(next(&mut turns, &[A, B], 0), Some(0));
        turns.refused(B);
        turns.refused(A);
        turns.refused(B);
        assert_eq!(next(&mut turns, &[A], 0), None);
        assert_eq!(next(&mut turns, &[A, B], 50), Some(1));
        turns.taken(B);
        assert_eq!(next(&mut turns, &[B], 60), None);
        assert_eq!(next(&mut turns, &[B], 160), Some(0));
        assert!(turns.line.is_empty());
    }
}
