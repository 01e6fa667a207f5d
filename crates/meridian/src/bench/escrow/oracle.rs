//! A central counter without delays on the same events: what is feasible, and the bound that makes
//! a share of the requests infeasible.

use super::demand::{Demand, Event, Held, What};
use std::collections::BTreeSet;

/// What the counter did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Acquisitions and releases.
    pub done: u64,
    pub rejected: u64,
    /// Releases of tokens whose acquisition was rejected.
    pub not_sent: u64,
    /// The largest number that there was.
    pub peak: i64,
}

impl Outcome {
    /// The share of the requests sent that the counter rejected.
    pub fn infeasible(&self) -> f64 {
        self.rejected as f64 / (self.done + self.rejected).max(1) as f64
    }
}

/// Runs the counter with a bound.
pub(super) fn run(demand: &Demand, limit: i64) -> Outcome {
    let mut all: Vec<(&Event, usize, usize)> = Vec::new();
    for (site, events) in demand.sites.iter().enumerate() {
        all.extend(events.iter().enumerate().map(|(at, event)| (event, site, at)));
    }
    all.sort_by_key(|(event, site, at)| (event.at, *site, *at));
    let mut number = demand.in_use();
    let mut outcome = Outcome { peak: number, ..Outcome::default() };
    let mut refused = BTreeSet::new();
    for (event, site, at) in all {
        match event.what {
            What::Read => {}
            What::Acquire if number >= limit => {
                refused.insert((site, at));
                outcome.rejected += 1;
            }
            What::Release(Held::Since(of)) if refused.contains(&(site, of)) => outcome.not_sent += 1,
            What::Acquire | What::Release(_) => {
                number += if event.what == What::Acquire { 1 } else { -1 };
                outcome.peak = outcome.peak.max(number);
                outcome.done += 1;
            }
        }
    }
    outcome
}

/// The least bound that rejects at most this share of the requests, and not less than what is in
/// use at the start. (A bound of one less rejects more, or is below that.)
pub(super) fn limit_for(demand: &Demand, share: f64) -> i64 {
    let (mut below, mut limit) = (demand.in_use() - 1, run(demand, i64::MAX).peak);
    while limit - below > 1 {
        let middle = below + (limit - below) / 2;
        if run(demand, middle).infeasible() <= share { limit = middle } else { below = middle }
    }
    limit
}

#[cfg(test)]
mod tests {
    use super::super::demand::{Load, rising_start};
    use super::super::series::synthetic;
    use super::super::sites::sites;
    use super::*;
    use std::time::Duration;

    fn demand(held: i64, sites: &[&[(u64, What)]]) -> Demand {
        let site = |events: &&[(u64, What)]| {
            events.iter().map(|(at, what)| Event { at: Duration::from_secs(*at), what: *what }).collect()
        };
        let mut demand = Demand { sites: sites.iter().map(site).collect(), held: vec![0; sites.len()] };
        demand.held[0] = held;
        demand
    }

    const TWO: [&[(u64, What)]; 2] = [
        &[(1, What::Acquire), (3, What::Acquire), (5, What::Release(Held::Since(1))), (7, What::Release(Held::Before))],
        &[(2, What::Acquire), (4, What::Read), (6, What::Release(Held::Since(0))), (8, What::Acquire)],
    ];

    #[test]
    fn a_counter_without_delays_serves_events_in_the_order_of_time() {
        let free = run(&demand(3, &TWO), i64::MAX);
        assert_eq!(free, Outcome { done: 7, rejected: 0, not_sent: 0, peak: 6 });
        // The second acquisition of the first site is refused, so its release is not sent.
        let tight = run(&demand(3, &TWO), 5);
        assert_eq!(tight, Outcome { done: 5, rejected: 1, not_sent: 1, peak: 5 });
        let full = run(&demand(3, &TWO), 3);
        assert_eq!(full, Outcome { done: 2, rejected: 3, not_sent: 2, peak: 3 });
    }

    #[test]
    fn the_bound_rejects_what_it_is_to_reject() {
        let demand = demand(3, &TWO);
        assert_eq!(limit_for(&demand, 0.0), 6);
        assert_eq!(limit_for(&demand, 0.2), 5);
        assert_eq!(limit_for(&demand, 1.0), 3, "not below what is in use");
    }

    #[test]
    fn a_tighter_bound_of_a_real_load_rejects_more() {
        let (time, bin) = (Duration::from_secs(24), Duration::from_secs(1));
        // One site: the days of several cancel each other out.
        let start = rising_start(&synthetic(), &sites(1), 720, time, bin);
        let load = Load { start, time, bin, scale: 0.2, reads: 0.0, seed: 1 };
        let demand = Demand::new(&synthetic(), &sites(1), &load);
        let mut last = i64::MAX;
        for share in [0.0, 0.01, 0.05] {
            let limit = limit_for(&demand, share);
            let outcome = run(&demand, limit);
            assert!(limit < last && limit > demand.in_use(), "{share}: {limit} of {}", demand.in_use());
            assert!(outcome.infeasible() <= share && outcome.peak <= limit);
            assert!(run(&demand, limit - 1).infeasible() > share);
            last = limit;
        }
    }
}
