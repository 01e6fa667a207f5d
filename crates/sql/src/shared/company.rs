//! How much of a bulk load or an index build is under way at once.

use super::Shared;
use crate::env::Environment;

/// The number of transactions that commit while the next one is made. With more of them, other
/// sessions wait several times as long for the disk and the log.
const IN_COMPANY: usize = 4;
/// The same while no other session sends requests.
const ALONE: usize = 8;

/// The other sessions count as idle when none has sent a request for this long.
const LULL_MICROS: u64 = 1_000_000;
const LOOK_MICROS: u64 = 100_000;

/// Whether other sessions do something beside a long piece of work. Only a single node knows of all
/// sessions that it keeps waiting: several nodes always count as company.
pub(crate) struct Company {
    requests: (usize, u64),
    looked_micros: u64,
    quiet_since_micros: u64,
}

impl Company {
    pub fn new<E: Environment>(env: &E, shared: &Shared) -> Company {
        let now = env.now_micros();
        Company { requests: shared.requests(), looked_micros: now, quiet_since_micros: now }
    }

    /// How many transactions may be under way now.
    pub fn transactions_at_once<E: Environment>(&mut self, env: &E, shared: &Shared) -> usize {
        let now = env.now_micros();
        if now.saturating_sub(self.looked_micros) >= LOOK_MICROS {
            self.look(now, shared.requests(), env.nodes().len());
        }
        if self.is_alone(now) { ALONE } else { IN_COMPANY }
    }

    fn look(&mut self, now_micros: u64, requests: (usize, u64), nodes: usize) {
        self.looked_micros = now_micros;
        if requests != self.requests || nodes > 1 {
            self.requests = requests;
            self.quiet_since_micros = now_micros;
        }
    }

    fn is_alone(&self, now_micros: u64) -> bool {
        now_micros.saturating_sub(self.quiet_since_micros) >= LULL_MICROS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_nothing_for_a_second_is_no_company() {
        let mut company = Company { requests: (2, 7), looked_micros: 0, quiet_since_micros: 0 };
        let at = |ms: u64| ms * 1_000;
        company.look(at(900), (2, 7), 1);
        assert!(!company.is_alone(at(999)));
        assert!(company.is_alone(at(1_000)));
        // A request, a session that ends, and a second node.
        for (begin, requests, nodes) in [(1_100, (2, 8), 1), (3_000, (1, 8), 1), (5_000, (1, 8), 2)] {
            company.look(at(begin), requests, nodes);
            assert!(!company.is_alone(at(begin + 999)));
            company.look(at(begin + 100), requests, 1);
            assert!(company.is_alone(at(begin + 1_100)));
        }
    }
}
