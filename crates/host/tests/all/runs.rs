//! Runs without a planted bug, of many seeds.

use crate::clients::{BALANCE, Kind};
use crate::simulation::{Options, Pod};
use meridian_workload::checkers::{Promise, balances, list_append};
use meridian_workload::history::{Op, Outcome};

/// What is wrong with a run, if anything is.
pub fn wrong(options: Options, seed: u64) -> Option<String> {
    let mut pod = Pod::new(options, seed);
    if let Err(what) = pod.run() {
        return Some(what);
    }
    let all = i64::from(options.keys) * BALANCE;
    let anomalies = match options.kind {
        Kind::Lists => list_append::check(&pod.history, &Promise::Strict),
        Kind::Bank => {
            // A sum is over all accounts.
            let is_whole = |op: &Op| matches!(op, Op::ReadBalances { balances } if balances.len() == usize::from(options.keys));
            pod.history.retain(|record| record.ops.iter().all(is_whole));
            balances::check(&pod.history, all)
        }
    };
    if let Some(anomaly) = anomalies.first() {
        return Some(format!("{:?}: {}", anomaly.kind, anomaly.description));
    }
    pod.compare().err()
}

fn seeds() -> u64 {
    std::env::var("MERIDIAN_POD_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(150)
}

fn all_are_right(kind: Kind) {
    for seed in 0..seeds() {
        let hosts = 2 + (seed % 3) as u8;
        let options = Options { hosts, kills: (seed % 4) as u32, ..Options::new(kind) };
        if let Some(what) = wrong(options, seed) {
            panic!("seed {seed}: {what}");
        }
    }
}

#[test]
fn lists_are_strictly_serializable() {
    all_are_right(Kind::Lists);
}

#[test]
fn no_money_is_made_or_lost() {
    all_are_right(Kind::Bank);
}

/// The runs are about what they should be about.
#[test]
fn runs_move_tuples_and_kill_hosts() {
    let (mut committed, mut aborted, mut moved_in, mut moved_out) = (0, 0, 0, 0);
    for seed in 0..20 {
        let mut pod = Pod::new(Options::new(Kind::Lists), seed);
        pod.run().unwrap();
        committed += pod.history.iter().filter(|record| record.outcome == Outcome::Committed).count();
        aborted += pod.history.iter().filter(|record| record.outcome == Outcome::Aborted).count();
        for host in pod.hosts.iter().flatten() {
            moved_in += host.counts().moved_in;
            moved_out += host.counts().moved_out;
        }
    }
    println!("{committed} committed, {aborted} aborted, {moved_in} in, {moved_out} out");
    assert!(committed > 600 && aborted < committed && moved_in > 200 && moved_out > 100);
}
