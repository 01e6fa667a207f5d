//! `kill -9`, again and again, under the bank workload: nothing acknowledged is lost, and as long as two of three zones live,
//! everything is served.
//!
//! `MERIDIAN_KILLS` says how often (a campaign: 50), `MERIDIAN_KILL_SEED` whom and when.

use crate::client::PgConnector;
use crate::process::{Node, Spec};
use meridian_workload::bank::{Bank, BankConfig};
use meridian_workload::{Context, Outcome, RetryPolicy, WallTimer, Worker, Workload};
use std::sync::Arc;
use std::time::Duration;

const KILLS_DEFAULT: u64 = 5;
const WORKERS: u32 = 6;
const REGION: &str = "eu";
/// What is promised is 3 s (design: replication). Tests share their machine with other tests, and are built without
/// optimization; the gaps themselves are printed.
const GAP_MAX: Duration = Duration::from_secs(10);

fn number_from_env(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}

/// A small generator: which node, how long it stays down. Not the clock's business, so that a campaign can be repeated.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Three zones of a region, a process each.
struct Zones {
    specs: Vec<Spec>,
    nodes: Vec<Option<Node>>,
}

impl Zones {
    async fn start(dir: &std::path::Path) -> Zones {
        let mut zones = Zones { specs: Vec::new(), nodes: Vec::new() };
        for zone in ["a", "b", "c"] {
            let mut spec = Spec::alone(&dir.join(zone));
            spec.locality = format!("region={REGION},zone={zone}");
            spec.join = zones.nodes.iter().flatten().map(|n| n.addr.clone()).collect();
            let node = spec.start().await;
            // Others know it by these.
            (spec.listen, spec.sql_listen) = (node.addr.clone(), node.sql_addr.clone());
            zones.specs.push(spec);
            zones.nodes.push(Some(node));
        }
        zones
    }
    fn sql_addrs(&self) -> Vec<String> {
        self.specs.iter().map(|s| s.sql_listen.clone()).collect()
    }
    fn kill(&mut self, at: usize) {
        self.nodes[at].take().expect("it runs").kill();
    }
    async fn restart(&mut self, at: usize) {
        self.nodes[at] = Some(self.specs[at].start().await);
    }
}

/// The longest time in `from..to` (microseconds) in which nothing was acknowledged.
fn longest_gap(context: &Context, from: u64, to: u64) -> Duration {
    let records = context.history.records();
    let mut times: Vec<u64> = records
        .iter()
        .filter(|r| r.outcome == Outcome::Committed)
        .filter_map(|r| r.completed)
        .filter(|t| (from..to).contains(t))
        .collect();
    times.extend([from, to]);
    times.sort_unstable();
    Duration::from_micros(times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_9_loses_nothing_and_two_of_three_zones_go_on() {
    let kills = number_from_env("MERIDIAN_KILLS", KILLS_DEFAULT);
    let mut draw = Draw(number_from_env("MERIDIAN_KILL_SEED", 1));
    let dir = tempfile::tempdir().expect("a directory");
    let mut zones = Zones::start(dir.path()).await;
    let connector = PgConnector::new(vec![(REGION.to_string(), zones.sql_addrs())], "root", true);
    let mut context = Context::new(Arc::new(connector), Arc::new(WallTimer::start()), draw.below(1 << 30));
    // A client of a dead node is to notice and go to another one, not to wait.
    context.retry = RetryPolicy { statement_timeout: Duration::from_secs(5), ..RetryPolicy::default() };

    let bank = Arc::new(Bank::new(BankConfig { think_time: Duration::from_millis(2), ..BankConfig::default() }));
    bank.setup(&context, &|_| ()).await.expect("three nodes take tables and rows");
    let workers: Vec<_> = (0..WORKERS)
        .map(|id| {
            let (bank, context) = (bank.clone(), context.clone());
            tokio::spawn(async move { bank.worker(&context, Worker { id, region: REGION.into() }).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(1)).await;

    let mut gaps = Vec::new();
    for n in 0..kills {
        let victim = draw.below(3) as usize;
        let killed_at = context.timer.now_micros();
        zones.kill(victim);
        // Sometimes it comes back before the others notice, sometimes they have to go on without it.
        tokio::time::sleep(Duration::from_millis(200 + draw.below(4_000))).await;
        zones.restart(victim).await;
        tokio::time::sleep(Duration::from_millis(500 + draw.below(1_500))).await;
        let gap = longest_gap(&context, killed_at, context.timer.now_micros());
        println!("kill {} of {kills}: zone {}, longest silence {} ms", n + 1, ["a", "b", "c"][victim], gap.as_millis());
        gaps.push(gap);
    }

    // The power fails: everybody at once.
    (0..3).for_each(|at| zones.kill(at));
    let (a, b, c) = (zones.specs[0].start(), zones.specs[1].start(), zones.specs[2].start());
    let (a, b, c) = tokio::join!(a, b, c);
    zones.nodes = vec![Some(a), Some(b), Some(c)];
    let (before, deadline) = (bank.acknowledged(), tokio::time::Instant::now() + Duration::from_secs(30));
    while bank.acknowledged() == before {
        assert!(tokio::time::Instant::now() < deadline, "nothing is served after all three came back");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    context.stop.stop();
    for worker in workers {
        worker.await.expect("a worker does not panic").expect("a worker can go on");
    }
    let verdict = context.verdict(&*bank).await.expect("the bank can be read");
    assert!(verdict.is_ok(), "{:#?}", verdict.violations);
    gaps.sort_unstable();
    println!(
        "{kills} kills, {} acknowledged transfers, {} facts checked; longest silence: median {} ms, most {} ms",
        bank.acknowledged(),
        verdict.examined,
        gaps.get(gaps.len() / 2).map_or(0, Duration::as_millis),
        gaps.last().map_or(0, Duration::as_millis)
    );
    assert!(bank.acknowledged() > kills, "hardly anything happened");
    assert!(gaps.iter().all(|gap| *gap < GAP_MAX), "silent for too long: {gaps:?}");
}
