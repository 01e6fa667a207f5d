//! The convoy: what global transactions do to local ones (S-DUR, §4.3 and §5.3 to 5.5).
//!
//! Two partitions are at home in two regions. Most transactions update two rows of one partition; a
//! share of them, the *global* ones, update a row of each. S-DUR's replicas end transactions in the
//! order in which their partition delivers them, so a local transaction delivered behind a global
//! one waits for votes from the other region, and hardly any global transactions are needed to make
//! nearly every local one slow: that is the convoy. The paper's own remedies and this database's
//! protocol are run against it under the same load over the same simulated network.
//!
//! Everything is an event at a point in simulated time; processors cost nothing, and nothing fails.
//! What differs between two systems is therefore only the protocol.
//!
//! * [`network`]: machines, distances, and what it takes to order an entry among three of them.
//! * [`load`]: arrivals, the transactions, and what is measured.
//! * [`sdur`]: S-DUR's server as a state machine: Algorithms 2, 5 and 6.
//! * [`baseline`]: six of them, and their clients.
//! * [`primary`]: the crates `region` and `commit` as a node drives them.
//! * [`meridian`]: two of them, gateways and clients.

mod baseline;
mod load;
mod meridian;
mod network;
mod primary;
mod sdur;

pub use load::Measured;

use std::time::Duration;

/// Where the machines of a partition are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// A majority in the partition's own region («WAN 1», `SURVIVE ZONE FAILURE`).
    Zone,
    /// One in each of three regions («WAN 2», `SURVIVE REGION FAILURE`).
    Region,
}

/// Who is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// S-DUR as in its §3: completed in the order of delivery (Algorithm 2).
    InOrder,
    /// The same; a global transaction is held back at home for the delay to the other partition
    /// (Algorithm 4).
    Delayed,
    /// Local transactions may pass a pending global one until so many others have been delivered
    /// (Algorithm 5).
    Threshold(u64),
    /// Local transactions pass all pending global ones; outcomes of these are ordered too
    /// (Algorithm 6).
    Votes,
    /// This database.
    Meridian,
}

/// One experiment.
#[derive(Clone, Debug)]
pub struct Config {
    pub placement: Placement,
    /// Share of transactions that are global.
    pub global_share: f64,
    /// Arrivals per second and partition. The loop is open: all systems get the same load.
    pub rate: f64,
    /// How long arrivals are measured, after a second that is not.
    pub time: Duration,
    /// Rows of each partition; the paper has a million.
    pub rows: u32,
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            placement: Placement::Zone,
            global_share: 0.01,
            rate: 1_000.0,
            time: Duration::from_secs(10),
            rows: 1_000_000,
            seed: 1,
        }
    }
}

/// Runs one system through one experiment. The same for the same seed.
pub fn run(system: System, config: &Config) -> Measured {
    use sdur::Order;
    match system {
        System::InOrder => baseline::run(Order::Delivery, false, config),
        System::Delayed => baseline::run(Order::Delivery, true, config),
        System::Threshold(k) => baseline::run(Order::Threshold(k), false, config),
        System::Votes => baseline::run(Order::Votes, false, config),
        System::Meridian => meridian::run(config),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(placement: Placement, global_share: f64) -> Config {
        Config { placement, global_share, rate: 300.0, time: Duration::from_secs(3), ..Config::default() }
    }

    fn local_p99(system: System, placement: Placement, global_share: f64) -> f64 {
        let measured = run(system, &short(placement, global_share));
        assert!(measured.local.count() > 500, "{system:?}: {} local transactions", measured.local.count());
        assert!(measured.aborted * 50 < measured.ended(), "{system:?}: {} aborts", measured.aborted);
        assert_eq!(measured.unfinished, 0, "{system:?}");
        measured.local.quantile(0.99).expect("counted").as_secs_f64() * 1e3
    }

    #[test]
    fn one_global_transaction_in_ten_makes_a_convoy_in_order_and_none_with_votes_or_here() {
        for (system, least, most) in [
            (System::InOrder, 5.0, f64::MAX),
            (System::Delayed, 3.0, f64::MAX),
            (System::Votes, 0.9, 1.3),
            (System::Meridian, 0.9, 1.3),
        ] {
            let ratio = local_p99(system, Placement::Zone, 0.1) / local_p99(system, Placement::Zone, 0.0);
            assert!((least..=most).contains(&ratio), "{system:?}: {ratio:.2} x");
        }
    }

    #[test]
    fn where_every_transaction_crosses_regions_a_convoy_hardly_shows() {
        let ratio = local_p99(System::InOrder, Placement::Region, 0.1) / local_p99(System::InOrder, Placement::Region, 0.0);
        assert!((0.95..1.4).contains(&ratio), "{ratio:.2} x");
    }

    #[test]
    fn a_global_transaction_here_takes_one_round_trip_and_local_work() {
        let measured = run(System::Meridian, &short(Placement::Zone, 0.1));
        let p50 = measured.global.quantile(0.5).expect("counted").as_secs_f64() * 1e3;
        let local = measured.local.quantile(0.5).expect("counted").as_secs_f64() * 1e3;
        assert!((90.0..=90.0 + 2.0 * local).contains(&p50), "{p50:.1} ms, a local one {local:.1} ms");
    }

    #[test]
    fn a_threshold_lets_local_transactions_pass_and_makes_global_ones_wait() {
        let of = |k| run(System::Threshold(k), &short(Placement::Zone, 0.1));
        let (few, many) = (of(1), of(60));
        assert!(many.local.quantile(0.5) < few.local.quantile(0.5));
        assert!(many.global.quantile(0.5) > few.global.quantile(0.5));
    }

    #[test]
    fn the_same_seed_gives_the_same_figures() {
        for system in [System::InOrder, System::Threshold(20), System::Votes, System::Meridian] {
            let (once, again) = (run(system, &short(Placement::Zone, 0.5)), run(system, &short(Placement::Zone, 0.5)));
            assert!(once == again, "{system:?}");
        }
    }
}
