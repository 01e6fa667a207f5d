//! `kill -9`, again and again, sometimes with the loss of the disk, under the bank, inserts and
//! escrow workloads: nothing acknowledged is lost, and as long as two of three zones live,
//! everything is served.
//!
//! `MERIDIAN_KILLS` says how often (a campaign: 200), `MERIDIAN_DISK_LOSS_EVERY` how many of these
//! are one in which the node's disk is lost too (0: none is), `MERIDIAN_KILL_SEED` whom and when. A
//! node that lost its disk starts with the same command, and the next kill waits until the new node
//! stands for the old one: no group could bear the loss of two disks of three.

use crate::client::PgConnector;
use crate::cluster;
use crate::process::{Node, Spec};
use meridian_workload::bank::{Bank, BankConfig};
use meridian_workload::escrow::{Escrow, EscrowConfig};
use meridian_workload::inserts::{Inserts, InsertsConfig};
use meridian_workload::{Context, Outcome, RetryPolicy, WallTimer, Worker, Workload};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;

const KILLS_DEFAULT: u64 = 5;
const DISK_LOSS_EVERY_DEFAULT: u64 = 4;
const BANK_WORKERS: u32 = 6;
const INSERT_WORKERS: u32 = 3;
const ESCROW_WORKERS: u32 = 3;
const REGION: &str = "eu";
const ZONES: [&str; 3] = ["a", "b", "c"];
/// What is promised is 3 s. Tests share their machine with other tests, and
/// are built without optimization; the gaps themselves are printed.
const GAP_MAX: Duration = Duration::from_secs(10);
/// A machine that runs nobody for so long, since it has no memory left for instance, is told apart
/// from a cluster that is silent.
const PAUSE_MIN: Duration = Duration::from_secs(1);

pub fn number_from_env(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}

/// A small generator: which node, how long it stays down. Not the clock's business, so that a
/// campaign can be repeated.
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
    async fn start(dir: &Path) -> Zones {
        let specs = cluster::specs(dir, ZONES.len());
        let nodes = cluster::start_all(&specs).await.into_iter().map(Some).collect();
        Zones { specs, nodes }
    }
    fn sql_addrs(&self) -> Vec<String> {
        self.specs.iter().map(|s| s.sql_listen.clone()).collect()
    }
    fn node(&self, at: usize) -> &Node {
        self.nodes[at].as_ref().expect("it runs")
    }
    fn kill(&mut self, at: usize) {
        self.nodes[at].take().expect("it runs").kill();
    }
    async fn restart(&mut self, at: usize) {
        self.nodes[at] = Some(self.specs[at].start().await);
    }
    /// Everybody at once.
    async fn restart_all(&mut self) {
        self.nodes = cluster::start_all(&self.specs).await.into_iter().map(Some).collect();
    }
    /// Kills a node and takes its disk away. Who it was.
    fn kill_with_disk(&mut self, at: usize) -> String {
        let id = cluster::id(self.node(at));
        self.kill(at);
        std::fs::remove_dir_all(&self.specs[at].dir).expect("a directory");
        id
    }
    /// Waits until a node that was started with an empty disk stands for the one that it had been.
    async fn replaced(&self, at: usize, lost: &str) {
        let new = self.node(at);
        assert!(cluster::id(new) != lost, "an empty disk is a new node");
        cluster::until("the lost node to go", async || cluster::state(new, lost) == "decommissioned").await;
        cluster::settled(&[new, self.node((at + 1) % 3), self.node((at + 2) % 3)]).await;
    }
}

/// The longest time in `from..to` (microseconds) in which nothing was acknowledged.
pub fn longest_gap(context: &Context, from: u64, to: u64) -> Duration {
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

/// Measures for how long this machine runs nobody: what is silent then is not the cluster.
struct Pauses(Arc<Mutex<Duration>>);

impl Pauses {
    fn watch() -> Pauses {
        const STEP: Duration = Duration::from_millis(20);
        let longest = Arc::new(Mutex::new(Duration::ZERO));
        let watched = Arc::downgrade(&longest);
        tokio::spawn(async move {
            let mut last = Instant::now();
            while let Some(longest) = watched.upgrade() {
                tokio::time::sleep(STEP).await;
                let paused = last.elapsed().saturating_sub(STEP);
                last = Instant::now();
                let mut longest = longest.lock().expect("no panic while comparing");
                *longest = paused.max(*longest);
            }
        });
        Pauses(longest)
    }
    /// The longest pause since this was asked last.
    fn longest(&self) -> Duration {
        std::mem::take(&mut *self.0.lock().expect("no panic while comparing"))
    }
}

/// A workload and its clients.
pub struct Load {
    workload: Arc<dyn Workload>,
    pub context: Context,
    workers: Vec<JoinHandle<()>>,
}

impl Load {
    /// Loads its tables and begins, with clients at all of these nodes.
    pub async fn start(workload: Arc<dyn Workload>, sql_addrs: Vec<String>, workers: u32, seed: u64) -> Load {
        let connector = PgConnector::new(vec![(REGION.to_string(), sql_addrs)], "root", true);
        let mut context = Context::new(Arc::new(connector), Arc::new(WallTimer::start()), seed);
        // A client of a dead node is to notice and go to another one, not to wait.
        context.retry = RetryPolicy { statement_timeout: Duration::from_secs(5), ..RetryPolicy::default() };
        workload.setup(&context, &|_| ()).await.expect("the nodes take tables and rows");
        let work = |id| {
            let (workload, context) = (workload.clone(), context.clone());
            tokio::spawn(async move {
                let ended = workload.worker(&context, Worker { id, region: REGION.into() }).await;
                ended.expect("a worker can go on");
            })
        };
        let workers = (0..workers).map(work).collect();
        Load { workload, context, workers }
    }
    /// Ends the workers and judges. The number of facts that were looked at.
    pub async fn judge(self) -> u64 {
        self.context.stop.stop();
        for worker in self.workers {
            worker.await.expect("a worker does not panic");
        }
        let verdict = self.context.verdict(&*self.workload).await.expect("the tables can be read");
        assert!(verdict.is_ok(), "{}: {:#?}", self.workload.name(), verdict.violations);
        verdict.examined
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_9_and_lost_disks_lose_nothing_and_two_of_three_zones_go_on() {
    let kills = number_from_env("MERIDIAN_KILLS", KILLS_DEFAULT);
    let disk_loss_every = number_from_env("MERIDIAN_DISK_LOSS_EVERY", DISK_LOSS_EVERY_DEFAULT);
    let mut draw = Draw(number_from_env("MERIDIAN_KILL_SEED", 1));
    let dir = tempfile::tempdir().expect("a directory");
    let mut zones = Zones::start(dir.path()).await;
    // Slow enough for the books of a campaign to stay readable in one statement.
    let think_time = Duration::from_millis(2 + kills / 4);
    let bank = Arc::new(Bank::new(BankConfig { think_time, ..BankConfig::default() }));
    let inserts = Inserts::new(InsertsConfig { think_time: 2 * think_time, ..InsertsConfig::default() });
    let bank_load = Load::start(bank.clone(), zones.sql_addrs(), BANK_WORKERS, draw.below(1 << 30)).await;
    let inserts_load = Load::start(Arc::new(inserts), zones.sql_addrs(), INSERT_WORKERS, draw.below(1 << 30)).await;
    let escrow = Escrow::new(EscrowConfig { think_time: 2 * think_time, ..EscrowConfig::default() });
    let escrow_load = Load::start(Arc::new(escrow), zones.sql_addrs(), ESCROW_WORKERS, draw.below(1 << 30)).await;
    let context = bank_load.context.clone();
    tokio::time::sleep(Duration::from_secs(1)).await;

    let (mut gaps, mut disks, pauses) = (Vec::new(), 0, Pauses::watch());
    for n in 1..=kills {
        let victim = draw.below(3) as usize;
        let loses_disk = disk_loss_every > 0 && n % disk_loss_every == 0;
        let killed_at = context.timer.now_micros();
        pauses.longest();
        let lost = match loses_disk {
            true => Some(zones.kill_with_disk(victim)),
            false => {
                zones.kill(victim);
                None
            }
        };
        // Sometimes it comes back before the others notice, sometimes they have to go on without
        // it.
        tokio::time::sleep(Duration::from_millis(200 + draw.below(4_000))).await;
        zones.restart(victim).await;
        if let Some(lost) = &lost {
            zones.replaced(victim, lost).await;
            disks += 1;
        }
        tokio::time::sleep(Duration::from_millis(500 + draw.below(1_500))).await;
        let now = context.timer.now_micros();
        let (silence, pause) = (longest_gap(&context, killed_at, now), pauses.longest());
        let gap = if pause > PAUSE_MIN { silence.saturating_sub(pause) } else { silence };
        let what = if loses_disk { ", its disk is lost" } else { "" };
        let took = (now - killed_at) / 1_000;
        let (silence, pause) = (silence.as_millis(), pause.as_millis());
        println!(
            "kill {n} of {kills}: zone {}{what}; {took} ms, longest silence {silence} ms (the machine's own: {pause} ms)",
            ZONES[victim]
        );
        gaps.push(gap);
    }

    // The power fails: everybody at once. One of the disks does not survive it.
    let unlucky = draw.below(3) as usize;
    let lost = (disk_loss_every > 0).then(|| zones.kill_with_disk(unlucky));
    (0..3).filter(|at| lost.is_none() || *at != unlucky).for_each(|at| zones.kill(at));
    zones.restart_all().await;
    let (before, deadline) = (bank.acknowledged(), Instant::now() + Duration::from_secs(30));
    while bank.acknowledged() == before {
        assert!(Instant::now() < deadline, "nothing is served after all three came back");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    if let Some(lost) = lost {
        zones.replaced(unlucky, &lost).await;
        disks += 1;
    }

    let facts = bank_load.judge().await + inserts_load.judge().await + escrow_load.judge().await;
    gaps.sort_unstable();
    println!(
        "{kills} kills, {disks} lost disks, a power failure: {} acknowledged transfers, {facts} facts checked, 0 lost; longest \
         silence: median {} ms, most {} ms",
        bank.acknowledged(),
        gaps.get(gaps.len() / 2).map_or(0, Duration::as_millis),
        gaps.last().map_or(0, Duration::as_millis)
    );
    assert!(bank.acknowledged() > kills, "hardly anything happened");
    assert!(gaps.iter().all(|gap| *gap < GAP_MAX), "silent for too long: {gaps:?}");
}
