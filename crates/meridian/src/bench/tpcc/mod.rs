//! `meridian bench tpcc`: TPC-C over a cluster of three regions that is a process of its own, so
//! that it can be killed.
//!
//! The clients work here and in turn: first while nothing happens, then with a `kill -9` of all
//! nodes at once in the middle. After each the standard's consistency conditions are checked, and
//! that every acknowledged order and payment is there.
//!
//! * [`cluster`]: the process, and its end.

mod cluster;

use super::latencies;
use crate::client::PgConnector;
use crate::demo::{Distances, REGIONS_DEFAULT};
use crate::traffic::Traffic;
use crate::workload::TpccArgs;
use clap::Args as ClapArgs;
use cluster::Cluster;
use meridian_base::{Error, Result};
use meridian_workload::tpcc::{DATABASE, TRANSACTIONS, Tpcc};
use meridian_workload::{Context, Progress, RetryPolicy, WallTimer, Workload};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// New orders of each region whose messages are counted, before the clients begin.
const COUNTED_ORDERS: u32 = 50;
/// Nobody measures how connections are made and statements are planned.
const WARM_UP: Duration = Duration::from_secs(2);
/// A client of a dead node is to notice.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(8);
/// All regions commit again within this, or the bench has failed.
const RECOVERY_PATIENCE: Duration = Duration::from_secs(90);

#[derive(ClapArgs)]
pub struct Args {
    /// Measured seconds, and as many with a crash in the middle.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(2..))]
    seconds: u32,
    /// Clients in each region.
    #[arg(long, default_value_t = 4)]
    clients: u32,
    /// Nodes in each region.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=5))]
    zones: u8,
    #[command(flatten)]
    tpcc: TpccArgs,
    /// Without the crash.
    #[arg(long)]
    calm: bool,
    /// Where the figures are written.
    #[arg(long, default_value = "bench-tpcc.csv")]
    csv: PathBuf,
}

pub async fn run(args: Args) -> Result<ExitCode> {
    let scratch = tempfile::Builder::new().prefix("meridian-bench-").tempdir();
    let scratch = scratch.map_err(|e| Error::fatal(format!("no temporary directory: {e}")))?;
    tokio::select! {
        done = bench(&args, scratch.path()) => done,
        () = crate::start::stop_signal() => Ok(ExitCode::FAILURE),
    }
}

async fn bench(args: &Args, scratch: &std::path::Path) -> Result<ExitCode> {
    let regions: Vec<String> = REGIONS_DEFAULT.split(',').map(String::from).collect();
    let distances = Distances::new(&regions, &[], Duration::ZERO).map_err(|why| Error::sql("22023", why))?;
    let config = args.tpcc.config();
    say_part!(
        "{} nodes in each of three regions, in a process of their own. Round trips, injected between them:\n{}",
        args.zones,
        distances.table(&regions)
    );
    say!(
        "TPC-C, {} warehouses per region at {} of the standard's size; 1 % of order lines and 15 % of payments concern another \
         region's; {} clients per region, {}.",
        config.warehouses_per_region,
        config.scale,
        args.clients,
        if config.wait > 0.0 { "with keying and think times" } else { "without keying and think times" }
    );
    if cfg!(debug_assertions) {
        say!("This program is not a release build (use --release): local work takes longer than it has to.");
    }
    let mut cluster = Cluster::start(scratch, args.zones).await?;
    let connector = Arc::new(PgConnector::new(cluster.addrs(&regions), "root", true));
    let bench = Bench { args, regions, connector, work: Arc::new(Tpcc::new(config)) };
    let begun = Instant::now();
    let loaded = std::sync::atomic::AtomicU64::new(0);
    let progress = |p: Progress| loaded.store(p.rows_done, std::sync::atomic::Ordering::Relaxed);
    bench.work.setup(&bench.context(1), &progress).await?;
    say!("{} rows loaded in {:.0} s\n", loaded.into_inner(), begun.elapsed().as_secs_f64());

    bench.count_messages().await?;
    let mut csv = format!("run,{}\n", latencies::CSV_HEAD);
    let mut sound = bench.turn(&mut cluster, false, &mut csv).await?;
    if !args.calm {
        sound &= bench.turn(&mut cluster, true, &mut csv).await?;
    }
    std::fs::write(&args.csv, csv).map_err(|e| Error::fatal(format!("cannot write {}: {e}", args.csv.display())))?;
    say!("The figures are in {}.", args.csv.display());
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

struct Bench<'a> {
    args: &'a Args,
    regions: Vec<String>,
    connector: Arc<PgConnector>,
    work: Arc<Tpcc>,
}

impl Bench<'_> {
    fn context(&self, seed: u64) -> Context {
        let mut context = Context::new(self.connector.clone(), Arc::new(WallTimer::start()), seed);
        context.retry = RetryPolicy { statement_timeout: STATEMENT_TIMEOUT, ..RetryPolicy::default() };
        context
    }

    /// Messages to other regions that new orders of local warehouses send, which read the GLOBAL
    /// catalogue of items.
    async fn count_messages(&self) -> Result<()> {
        let context = self.context(4);
        // What is planned and learned once is not theirs.
        for region in &self.regions {
            self.work.local_orders(&context, region, 1).await?;
        }
        for region in &self.regions {
            let before = metric(&context, region, "txn.regions.messages").await?;
            self.work.local_orders(&context, region, COUNTED_ORDERS).await?;
            let sent = metric(&context, region, "txn.regions.messages").await? - before;
            say!("{region}: {COUNTED_ORDERS} new orders of local warehouses sent {sent} messages to other regions");
        }
        say!();
        Ok(())
    }

    /// Works for the time, with or without a crash in the middle; whether the checks passed.
    async fn turn(&self, cluster: &mut Cluster, crash: bool, csv: &mut String) -> Result<bool> {
        let context = self.context(if crash { 3 } else { 2 });
        let dynamic: Arc<dyn Workload> = self.work.clone();
        let mut traffic = Traffic::start(&dynamic, &context, self.args.clients);
        let time = Duration::from_secs(self.args.seconds.into());
        work(&mut traffic, cluster, WARM_UP).await?;
        traffic.live().lock().forget();
        match crash {
            false => work(&mut traffic, cluster, time).await?,
            true => {
                work(&mut traffic, cluster, time / 2).await?;
                self.crash(&mut traffic, cluster).await?;
                work(&mut traffic, cluster, time / 2).await?;
            }
        }
        let live = traffic.live();
        live.lock().tick();
        let (measured, time) = live.lock().whole();
        traffic.stop().await?;
        say!("{}", if crash { "with a crash of all nodes in the middle" } else { "undisturbed" });
        say!("{}", latencies::table(&self.regions, &TRANSACTIONS, &measured, time));
        *csv += &latencies::csv(if crash { "crash," } else { "calm," }, &measured, time);
        self.check(&context).await
    }

    async fn crash(&self, traffic: &mut Traffic, cluster: &mut Cluster) -> Result<()> {
        let live = traffic.live();
        cluster.kill()?;
        let killed = Instant::now();
        cluster.restart().await?;
        say!("all nodes killed at once; they serve connections again after {:.1} s", killed.elapsed().as_secs_f64());
        let committed = |region: &String| {
            let (measured, _) = live.lock().whole();
            latencies::sum(&measured, |key| key.region == *region).latency.count()
        };
        live.lock().tick();
        let before: Vec<u64> = self.regions.iter().map(committed).collect();
        while !self.regions.iter().zip(&before).all(|(region, before)| committed(region) > *before) {
            if killed.elapsed() > RECOVERY_PATIENCE {
                return Err(Error::unavailable("a region does not commit again after the crash"));
            }
            work(traffic, cluster, Duration::from_millis(250)).await?;
        }
        say!("clients of every region commit again after at most {:.1} s\n", killed.elapsed().as_secs_f64());
        Ok(())
    }

    async fn check(&self, context: &Context) -> Result<bool> {
        let verdict = self.work.check(context).await?;
        for violation in &verdict.violations {
            say!("VIOLATED: {violation}");
        }
        say!(
            "consistency conditions 1 to 4, acknowledged orders and payments: {} facts checked, {} violated\n",
            verdict.examined,
            verdict.violations.len()
        );
        Ok(verdict.is_ok())
    }
}

/// One of `SHOW METRICS` at the region's first node.
async fn metric(context: &Context, region: &str, name: &str) -> Result<i64> {
    let rows = context.session(region, DATABASE).execute("SHOW METRICS").await?;
    for row in 0..rows.rows.len() {
        if rows.text(row, 0)? == name {
            return rows.int(row, 1);
        }
    }
    Err(Error::internal(format!("there is no metric \"{name}\"")))
}

async fn work(traffic: &mut Traffic, cluster: &mut Cluster, time: Duration) -> Result<()> {
    tokio::select! {
        () = tokio::time::sleep(time) => cluster.check(),
        e = traffic.failed() => Err(e),
    }
}
