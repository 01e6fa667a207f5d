//! `meridian demo --quota`: one number that clients of all regions take from and give back to, and
//! what each region has of it (docs/escrow.md).

use crate::client::PgConnector;
use meridian_base::Result;
use meridian_workload::escrow::DATABASE;
use meridian_workload::escrow::{Escrow, EscrowConfig};
use meridian_workload::{Context, WallTimer};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How often shares and rounds are looked at.
const INTERVAL: Duration = Duration::from_secs(1);
/// What a region has, as it was a moment ago: nobody waits for this.
const SHARES: &str = "SELECT region, part::TEXT, can_take::TEXT, can_add::TEXT FROM \
    [SHOW ESCROW FOR TABLE quotas FOR ROW (1) AS OF SYSTEM TIME follower_read_timestamp()]";
const ROUNDS: [(&str, &str); 3] =
    [("escrow.rounds", "for statements"), ("escrow.rounds.ahead", "ahead of need"), ("escrow.rounds.fruitless", "for nothing")];

/// Clients that use the quota and read it now and then.
pub fn workload(think_time: Duration) -> Escrow {
    Escrow::new(EscrowConfig {
        rows: 1,
        limit: 1_000,
        delta_max: 9,
        read_share: 0.02,
        journal_share: 0.0,
        wild_share: 0.0,
        guarded_share: 0.0,
        regions_share: 0.0,
        splits_share: 0.0,
        epoch: Some(5),
        by_majority: false,
        think_time,
    })
}

/// What each region has of the quota, looked at now and then.
#[derive(Clone)]
pub struct Shares(Arc<Mutex<String>>);

impl Shares {
    /// Begins to look, for as long as the demonstration goes on.
    pub fn watch(addrs: &[(String, Vec<String>)]) -> Shares {
        let shares = Shares(Arc::default());
        let (text, addrs) = (shares.0.clone(), addrs.to_vec());
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(INTERVAL).await;
                // A cluster that is busy, or ends, shows what it showed before.
                if let Ok(found) = look(&addrs).await {
                    *text.lock() = found;
                }
            }
        });
        shares
    }

    pub fn text(&self) -> String {
        self.0.lock().clone()
    }
}

async fn look(addrs: &[(String, Vec<String>)]) -> Result<String> {
    let session = |regions: Vec<(String, Vec<String>)>| {
        let region = regions[0].0.clone();
        Context::new(Arc::new(PgConnector::new(regions, "root", true)), Arc::new(WallTimer::start()), 1)
            .session(&region, DATABASE)
    };
    let rows = session(addrs.to_vec()).query(SHARES, &[]).await?;
    let mut text = format!("\n{:<28}{:>10}{:>12}{:>12}\n", "the quota, by region", "part", "can take", "can add");
    for row in 0..rows.rows.len() {
        let cell = |column| rows.text(row, column).unwrap_or("-").to_string();
        text += &format!("{:<28}{:>10}{:>12}{:>12}\n", cell(0), cell(1), cell(2), cell(3));
    }
    let mut rounds: BTreeMap<String, i64> = BTreeMap::new();
    for (region, nodes) in addrs {
        for node in nodes {
            let metrics = session(vec![(region.clone(), vec![node.clone()])]).query("SHOW METRICS", &[]).await?;
            for row in 0..metrics.rows.len() {
                *rounds.entry(metrics.text(row, 0)?.to_string()).or_default() += metrics.int(row, 1)?;
            }
        }
    }
    let counted = ROUNDS.map(|(name, what)| format!("{} {what}", rounds.get(name).unwrap_or(&0)));
    Ok(text + &format!("rounds that moved tokens: {}, {}; {}\n", counted[0], counted[1], counted[2]))
}
