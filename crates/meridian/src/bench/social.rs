//! `meridian bench social`: S-DUR's social network (§5.6) over a cluster of three regions in this
//! process, its database surviving the loss of a zone, then of a region; and what timelines cost
//! those who write (§5.7).
//!
//! The paper's Figure 8 is a plot; what its text says of it is printed beside.

use super::cluster::{Running, Shape, with_cluster, write};
use super::latencies::{self, Measured};
use crate::demo::REGIONS_DEFAULT;
use crate::traffic::Traffic;
use clap::Args as ClapArgs;
use meridian_base::Result;
use meridian_workload::social::{OPERATIONS, Social, SocialConfig, Survive, Timelines};
use meridian_workload::{Locality, Workload};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Nobody measures how connections are made and statements are planned.
const WARM_UP: Duration = Duration::from_secs(2);
/// More than timelines of the past lie back.
const SETTLE: Duration = Duration::from_secs(2);

#[derive(ClapArgs)]
pub struct Args {
    /// Measured seconds of each of a placement's turns: timelines of the past, of the present, and
    /// none.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Clients in each region.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    clients: u32,
    /// Users in each region. The paper has 100,000.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(i64).range(100..))]
    users: i64,
    /// Where the figures are written.
    #[arg(long, default_value = "bench-social.csv")]
    csv: PathBuf,
}

/// What §5.6 says of Figure 8.
fn paper(survive: Survive) -> &'static str {
    match survive {
        Survive::Zone => {
            "Figure 8, WAN 1, S-DUR with votes broadcast by S-DUR in order: local posts 88 % faster, local follows 85 %, global follows less \
             than 5 % slower; timelines as fast either way, on snapshots up to a second old."
        }
        Survive::Region => {
            "Figure 8, WAN 2: votes broadcast: local posts and follows fastest, global follows slower; a threshold of 60: local ones 40 % \
             faster, global follows 7 % slower; timelines as in WAN 1."
        }
    }
}

pub async fn run(args: Args) -> Result<ExitCode> {
    with_cluster(Shape::of(REGIONS_DEFAULT), |running| Box::pin(bench(args, running))).await
}

async fn bench(args: Args, running: &Running) -> Result<ExitCode> {
    say!(
        "{} users per region; {} clients per region: 85 % timelines, 7.5 % posts, 7.5 % follows, half of them of another region's user.\n\
         A timeline of the past reads AS OF SYSTEM TIME follower_read_timestamp(), at this region's replicas, and is never certified, as the \
         paper's; one of the present is strictly serializable: read at the same replicas and confirmed in one round.",
        args.users,
        args.clients
    );
    let bench = Bench { args: &args, running };
    let mut csv = format!("run,{}\n", latencies::CSV_HEAD);
    let mut sound = true;
    for survive in [Survive::Zone, Survive::Region] {
        sound &= bench.placement(survive, &mut csv).await?;
    }
    write(&args.csv, &csv)?;
    say!("The figures are in {}.", args.csv.display());
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

struct Bench<'a> {
    args: &'a Args,
    running: &'a Running,
}

impl Bench<'_> {
    /// One placement: timelines of the past, of the present, and clients that rest as long as one
    /// of the past takes.
    async fn placement(&self, survive: Survive, csv: &mut String) -> Result<bool> {
        let work = |timelines| {
            let config = SocialConfig { users_per_region: self.args.users, survive, timelines, ..SocialConfig::default() };
            Arc::new(Social::new(config))
        };
        let context = self.running.context(1);
        let past = work(Timelines::Past);
        past.setup(&context, &|_| {}).await?;
        // They read what was there a while ago.
        tokio::time::sleep(SETTLE).await;
        say!("\nSURVIVE {} FAILURE", if survive == Survive::Zone { "ZONE" } else { "REGION" });
        let (with, time) = self.turn(&past, 2).await?;
        say!("{}", latencies::table(&self.running.regions, &OPERATIONS, &with, time));
        say!("{}\n", paper(survive));
        let fresh = work(Timelines::Fresh);
        let (present, present_time) = self.turn(&fresh, 3).await?;
        let timelines = |measured: &Measured| latencies::sum(measured, |key| key.operation == OPERATIONS[0]).latency;
        let of = |measured: &Measured| {
            let latency = timelines(measured);
            format!("{}/{}", latencies::millis(&latency, 0.5), latencies::millis(&latency, 0.99))
        };
        say!("Timelines, p50/p99 ms: of the past {}, of the present {}", of(&with), of(&present));
        let resting = work(Timelines::Rest(timelines(&with).mean()));
        let (without, resting_time) = self.turn(&resting, 4).await?;
        say!("{}", cost(&with, &without));
        let name = survive.database();
        *csv += &latencies::csv(&format!("{name} past,"), &with, time);
        *csv += &latencies::csv(&format!("{name} present,"), &present, present_time);
        *csv += &latencies::csv(&format!("{name} resting,"), &without, resting_time);
        let mut sound = true;
        for work in [&past, &fresh, &resting] {
            let verdict = work.check(&context).await?;
            verdict.violations.iter().for_each(|violation| say!("VIOLATED: {violation}"));
            sound &= verdict.is_ok();
        }
        say!("followers and followed agree, acknowledged follows and posts are there: {}", if sound { "yes" } else { "NO" });
        Ok(sound)
    }

    async fn turn(&self, work: &Arc<Social>, seed: u64) -> Result<(Measured, Duration)> {
        let context = self.running.context(seed);
        let dynamic: Arc<dyn Workload> = work.clone();
        let mut traffic = Traffic::start(&dynamic, &context, self.args.clients);
        self.running.work(&mut traffic, WARM_UP).await?;
        traffic.live().lock().forget();
        self.running.work(&mut traffic, Duration::from_secs(self.args.seconds.into())).await?;
        let live = traffic.live();
        live.lock().tick();
        let measured = live.lock().whole();
        traffic.stop().await?;
        Ok(measured)
    }
}

/// The latencies of those who write, with timelines beside them and with clients that rest instead.
fn cost(with: &Measured, without: &Measured) -> String {
    let mut out = format!(
        "What timelines cost those who write (the paper's §5.7: nothing, with votes broadcast)\n{:<16}{:>24}  {:>24}\n",
        "p50/p99 ms", "with timelines", "with rests as long"
    );
    let kinds = [(OPERATIONS[1], Locality::Own, "post"), (OPERATIONS[2], Locality::Own, "local follow")];
    for (operation, locality, name) in kinds.into_iter().chain([(OPERATIONS[2], Locality::Other, "global follow")]) {
        let cell = |measured: &Measured| {
            let stats = latencies::sum(measured, |key| key.operation == operation && key.locality == locality);
            format!("{}/{}", latencies::millis(&stats.latency, 0.5), latencies::millis(&stats.latency, 0.99))
        };
        out += &format!("{name:<16}{:>24}  {:>24}\n", cell(with), cell(without));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_workload::stats::StatsKey;

    #[test]
    fn the_cost_of_timelines_stands_beside_its_absence() {
        let measured = |millis: u64| {
            let mut measured = Measured::new();
            let key = StatsKey { region: "us".into(), operation: "follow", locality: Locality::Other };
            measured.entry(key).or_default().latency.record(Duration::from_millis(millis));
            measured
        };
        let text = cost(&measured(160), &measured(150));
        let has = |words: &[&str]| text.lines().any(|line| line.split_whitespace().eq(words.iter().copied()));
        assert!(has(&["global", "follow", "160/160", "150/150"]), "{text}");
        assert!(has(&["post", "-/-", "-/-"]), "{text}");
    }
}
