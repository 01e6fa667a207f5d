//! `meridian workload`: a workload against nodes that run.

use crate::client::{Dial, Duplex, PgClient, PgConnector};
use crate::shell::target::Target;
use crate::shell::wire;
use crate::start;
use crate::traffic::Traffic;
use async_trait::async_trait;
use clap::Args as ClapArgs;
use meridian_base::{Error, Result};
use meridian_workload::bank::{self, Bank, BankConfig};
use meridian_workload::escrow::{self, Escrow, EscrowConfig};
use meridian_workload::foreign::{self, Foreign, ForeignConfig};
use meridian_workload::inserts::{self, Inserts, InsertsConfig};
use meridian_workload::localities::{self, Localities, LocalitiesConfig};
use meridian_workload::movr::{self, Movr, MovrConfig};
use meridian_workload::multi_region::{self, MultiRegion, MultiRegionConfig};
use meridian_workload::queue::{self, Queue, QueueConfig};
use meridian_workload::social::{Social, SocialConfig, Survive};
use meridian_workload::tpcc::{self, Tpcc, TpccConfig};
use meridian_workload::ycsb::{self, Mix, Reads, Table, Ycsb, YcsbConfig};
use meridian_workload::{Client, Context, Progress, WallTimer, Workload, schema};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const LINES_INTERVAL: Duration = Duration::from_secs(5);
/// The region of nodes that do not say theirs.
const SOMEWHERE: &str = "local";

#[derive(ClapArgs)]
pub struct Args {
    /// movr, bank, queue, inserts, foreign, localities, multi-region, social, tpcc or ycsb.
    workload: String,
    /// A node, as `meridian url` prints it, or postgresql://user@host:port. Repeat it for other
    /// nodes: clients spread over them, each in its node's region.
    #[arg(long = "url", required = true)]
    urls: Vec<String>,
    /// How long, as in 30s.
    #[arg(long = "for", default_value = "30s", value_parser = crate::demo::duration, value_name = "TIME")]
    work_for: Duration,
    /// Clients in each region.
    #[arg(long, default_value_t = 4)]
    clients: u32,
    /// Check at the end what must hold. The exit status is 1 if it does not.
    #[arg(long)]
    check: bool,
    /// Drop the workload's database first. A workload that is checked knows what it did itself, not
    /// what others did before.
    #[arg(long)]
    fresh: bool,
    /// All choices follow from it. Default: another one each time.
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    tpcc: TpccArgs,
    #[command(flatten)]
    ycsb: YcsbArgs,
}

/// The shape of TPC-C.
#[derive(ClapArgs, Clone, Debug)]
pub struct TpccArgs {
    /// tpcc: warehouses in each region.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    warehouses: u16,
    /// tpcc: the part of a warehouse's customers, orders and stock that is loaded; 1 is the
    /// standard's.
    #[arg(long, default_value_t = 1.0, value_parser = scale)]
    scale: f64,
    /// tpcc: keying and think times as multiples of the standard's.
    #[arg(long, default_value_t = 0.0, value_parser = wait)]
    wait: f64,
}

impl TpccArgs {
    /// The workload in this shape.
    pub fn config(&self) -> TpccConfig {
        let TpccArgs { warehouses, scale, wait } = *self;
        TpccConfig { warehouses_per_region: warehouses.into(), scale, wait, ..TpccConfig::default() }
    }
}

/// The shape of YCSB.
#[derive(ClapArgs, Clone, Debug)]
struct YcsbArgs {
    /// ycsb: a (updates half of the time), b (one update in twenty operations) or d (one insert in
    /// twenty).
    #[arg(long, default_value = "b", value_parser = mix)]
    mix: Mix,
    /// ycsb: regional, global, by_row, rehoming, computed, partitioned or duplicates; each has a
    /// table of its own.
    #[arg(long, default_value = "by_row", value_parser = table)]
    table: Table,
    /// ycsb: rows of each region.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    rows: u64,
    /// ycsb: percent of the operations on rows of the client's own region; without it, all rows are
    /// everybody's.
    #[arg(long, value_parser = clap::value_parser!(u8).range(..=100))]
    own: Option<u8>,
    /// ycsb: reads of the newest state that the nearest replica has.
    #[arg(long)]
    stale: bool,
}

impl YcsbArgs {
    fn config(&self) -> YcsbConfig {
        YcsbConfig {
            mix: self.mix,
            table: self.table,
            distribution: self.mix.distribution(),
            reads: if self.stale { Reads::Bounded } else { Reads::Latest },
            rows_per_region: self.rows,
            own_share: self.own.map(|percent| f64::from(percent) / 100.0),
            disjoint: None,
        }
    }
}

fn mix(text: &str) -> std::result::Result<Mix, String> {
    match text {
        "a" | "A" => Ok(Mix::A),
        "b" | "B" => Ok(Mix::B),
        "d" | "D" => Ok(Mix::D),
        _ => Err(format!("{text:?} is none of a, b and d")),
    }
}

fn table(text: &str) -> std::result::Result<Table, String> {
    let names = Table::ALL.map(Table::name).join(", ");
    Table::ALL.into_iter().find(|t| t.name() == text).ok_or_else(|| format!("{text:?} is none of {names}"))
}

fn scale(text: &str) -> std::result::Result<f64, String> {
    let scale = text.parse().ok().filter(|scale| *scale > 0.0 && *scale <= 1.0);
    scale.ok_or_else(|| format!("{text:?} is not a part of the standard's size, as in 0.1"))
}

fn wait(text: &str) -> std::result::Result<f64, String> {
    let wait = text.parse().ok().filter(|wait| (0.0..=100.0).contains(wait));
    wait.ok_or_else(|| format!("{text:?} is not a multiple from 0 to 100"))
}

/// A workload and the database it works in.
fn named(args: &Args) -> Result<(Arc<dyn Workload>, &'static str)> {
    Ok(match args.workload.as_str() {
        "escrow" => (Arc::new(Escrow::new(EscrowConfig::default())), escrow::DATABASE),
        "movr" => (Arc::new(Movr::new(MovrConfig::default())), movr::DATABASE),
        "bank" => (Arc::new(Bank::new(BankConfig::default())), bank::DATABASE),
        "queue" => (Arc::new(Queue::new(QueueConfig::default())), queue::DATABASE),
        "inserts" => (Arc::new(Inserts::new(InsertsConfig::default())), inserts::DATABASE),
        "foreign" => (Arc::new(Foreign::new(ForeignConfig::default())), foreign::DATABASE),
        "localities" => (Arc::new(Localities::new(LocalitiesConfig::default())), localities::DATABASE),
        "multi-region" => (Arc::new(MultiRegion::new(MultiRegionConfig::default())), multi_region::DATABASE),
        "social" => (Arc::new(Social::new(SocialConfig::default())), Survive::Zone.database()),
        "ycsb" => (Arc::new(Ycsb::new(args.ycsb.config())), ycsb::DATABASE),
        "tpcc" => (Arc::new(Tpcc::new(args.tpcc.config())), tpcc::DATABASE),
        other => {
            let names = "escrow, movr, bank, queue, inserts, foreign, localities, multi-region, social, tpcc or ycsb";
            return Err(Error::sql("22023", format!("there is no workload {other}")).hint(names));
        }
    })
}

pub async fn run(args: Args) -> Result<ExitCode> {
    crate::log::to_stderr("error");
    let (workload, database) = named(&args)?;
    let connector = Arc::new(connector(&args.urls).await?);
    let seed = args.seed.unwrap_or_else(|| RandomState::new().hash_one(std::process::id()));
    let context = Context::new(connector, Arc::new(WallTimer::start()), seed);
    if args.fresh {
        let region = &context.connector.regions()[0];
        let drop = format!("DROP DATABASE IF EXISTS {database}");
        context.session(region, schema::DATABASE_DEFAULT).execute(&drop).await?;
    }
    let is_terminal = std::io::stdout().is_terminal();
    let progress = |p: Progress| {
        if is_terminal {
            say_part!("\rloading {} of {} rows", p.rows_done, p.rows_total);
        }
    };
    workload.setup(&context, &progress).await?;
    say!(
        "{}loaded; {} clients begin in each of {}",
        if is_terminal { "\r\x1b[K" } else { "" },
        args.clients,
        context.connector.regions().join(", ")
    );

    let mut traffic = Traffic::start(&workload, &context, args.clients);
    let live = traffic.live();
    let deadline = Instant::now() + args.work_for;
    while Instant::now() < deadline {
        tokio::select! {
            () = tokio::time::sleep_until(deadline.min(Instant::now() + LINES_INTERVAL)) => say_part!("{}", live.lock().lines()),
            () = start::stop_signal() => break,
            e = traffic.failed() => return Err(e),
        }
    }
    traffic.stop().await?;
    say_part!("\n{}", live.lock().summary());
    if !args.check {
        return Ok(ExitCode::SUCCESS);
    }
    let verdict = context.verdict(&*workload).await?;
    for violation in &verdict.violations {
        say!("VIOLATED: {violation}");
    }
    say!("\nchecked {} facts: {} violated", verdict.examined, verdict.violations.len());
    Ok(if verdict.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The servers by their addresses, with what their URLs say of TLS and logins.
#[derive(Default)]
struct Targets(BTreeMap<String, Target>);

#[async_trait]
impl Dial for Targets {
    async fn dial(&self, addr: &str) -> Result<Box<dyn Duplex>> {
        let target = self.0.get(addr).ok_or_else(|| Error::internal(format!("no URL has the address {addr}")))?;
        Ok(wire::connect(target).await?.0)
    }
    fn password(&self, addr: &str) -> Option<String> {
        Some(self.0.get(addr)?.secured.password()?.0)
    }
}

/// Asks every node where it is.
async fn connector(urls: &[String]) -> Result<PgConnector> {
    let mut regions: Vec<(String, Vec<String>)> = Vec::new();
    let mut user = String::new();
    let mut knows_regions = true;
    let mut targets = Targets::default();
    for url in urls {
        let target = Target::parse(url)?;
        user.clone_from(&target.user);
        let region = match region_of(&target).await? {
            Some(region) => region,
            None => {
                knows_regions = false;
                SOMEWHERE.to_string()
            }
        };
        match regions.iter_mut().find(|(known, _)| *known == region) {
            Some((_, nodes)) => nodes.push(target.addr()),
            None => regions.push((region, vec![target.addr()])),
        }
        targets.0.insert(target.addr(), target);
    }
    Ok(PgConnector::new(regions, &user, knows_regions).dialing(Arc::new(targets)))
}

/// The region a node says it is in. A plain PostgreSQL does not know what it is asked.
async fn region_of(target: &Target) -> Result<Option<String>> {
    let addr = target.addr();
    let dial = Targets(BTreeMap::from([(addr.clone(), target.clone())]));
    let mut client = PgClient::dial(&addr, &target.user, schema::DATABASE_DEFAULT, &dial).await?;
    let locality = match client.execute("SHOW LOCALITY").await {
        Ok(rows) => rows.text(0, 0)?.to_string(),
        Err(e) if e.sqlstate() == "42704" => return Ok(None),
        Err(e) => return Err(e),
    };
    let region = locality.split(',').find_map(|part| part.strip_prefix("region="));
    region.map(|r| Some(r.to_string())).ok_or_else(|| Error::internal(format!("a node's locality has no region: {locality}")))
}
