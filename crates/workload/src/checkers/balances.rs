//! Snapshots of accounts: transfers move money, they do not make it.

use super::anomaly::{Anomaly, Kind};
use crate::{Op, Outcome, Record};

/// Judges every snapshot of a history: its sum must be `sum`.
pub fn check(records: &[Record], sum: i64) -> Vec<Anomaly> {
    let mut anomalies = Vec::new();
    for (index, record) in records.iter().enumerate().filter(|(_, r)| r.outcome == Outcome::Committed) {
        for op in &record.ops {
            if let Op::ReadBalances { balances } = op {
                let found: i64 = balances.values().sum();
                if found != sum {
                    let description = format!("the snapshot of record {index} sums to {found}, not {sum}: {balances:?}");
                    anomalies.push(Anomaly { kind: Kind::WrongSum, records: vec![index], description });
                }
            }
        }
    }
    anomalies
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(balances: &[i64], outcome: Outcome) -> Record {
        let balances = (0..).zip(balances.iter().copied()).collect();
        Record { client: 0, invoked: 0, completed: Some(1), outcome, ops: vec![Op::ReadBalances { balances }] }
    }

    #[test]
    fn a_committed_snapshot_with_another_sum_is_found() {
        let history =
            [snapshot(&[10, 20], Outcome::Committed), snapshot(&[5, 24], Outcome::Committed), snapshot(&[1], Outcome::Aborted)];
        let anomalies = check(&history, 30);
        assert_eq!(anomalies.len(), 1);
        assert_eq!((anomalies[0].kind, &anomalies[0].records[..]), (Kind::WrongSum, &[1][..]));
    }
}
