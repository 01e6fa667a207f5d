//! `meridian demo`: a cluster of several regions in one process, movr on it (or a quota that all
//! regions use, [`quota`]), and what its clients see.
//!
//! Everything is real but the distances: every node has its own log and store on disk and talks to
//! the others over sockets on loopback; what crosses regions or zones is held back by its sender
//! for half the round trip ([`distance`]). Clients connect to their own region's nodes over
//! PostgreSQL's protocol.
//!
//! Who watches what: on a terminal the table is redrawn until every region has numbers, then comes
//! a shell, while the clients go on; with `--no-shell` or `--for` the table is all there is. SQL
//! piped in is run against the first region, and then only its results are on standard output.

mod cluster;
mod distance;
mod quota;

use crate::client::PgConnector;
use crate::live::Live;
use crate::shell::target::Target;
use crate::shell::{Extra, Shell};
use crate::start;
use crate::traffic::Traffic;
use crate::url::{escaped_addr, url};
use clap::Args as ClapArgs;
pub use cluster::{Cluster, Layout};
pub use distance::{Distances, REGIONS_DEFAULT, Sides, duration};
use meridian_base::{Error, Result};
use meridian_workload::escrow;
use meridian_workload::movr::{self, Movr, MovrConfig};
use meridian_workload::{Context, WallTimer, Workload};
use parking_lot::Mutex;
use std::hash::{BuildHasher, RandomState};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// How often lines are printed where nothing can be redrawn.
const LINES_INTERVAL: Duration = Duration::from_secs(5);
const REDRAW_INTERVAL: Duration = Duration::from_secs(1);
/// The shell does not wait longer for every region's first numbers.
const FIRST_ROWS_PATIENCE: Duration = Duration::from_secs(10);
/// The exit status of a script that did not come to its end, as shells have it for SIGINT.
const INTERRUPTED: u8 = 130;
/// The rows to begin with are the same in every demonstration.
const LOAD_SEED: u64 = 1;

#[derive(ClapArgs)]
pub struct Args {
    /// The regions; the first one is primary, and the shell connects to it.
    #[arg(long, value_delimiter = ',', default_value = distance::REGIONS_DEFAULT)]
    regions: Vec<String>,
    /// Zones (and so nodes) per region.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=5))]
    zones: u8,
    /// Round trips between regions, as in us-east1-europe-west2=120ms,…; each message is held back
    /// for half of it; at most 400ms. What is not given is as in Table 1 of CockroachDB's
    /// multi-region paper, or 100ms.
    #[arg(long, value_delimiter = ',')]
    rtt: Vec<String>,
    /// Round trip between two zones of a region (each message is held back for half of it; at most
    /// 50ms).
    #[arg(long, default_value = "1ms", value_parser = duration)]
    zone_rtt: Duration,
    /// Keep the nodes' files here, and go on with what is there. Default: a temporary directory.
    #[arg(long)]
    data_dir: Option<PathBuf>,
    /// End after this time of work, as in 30s; without a shell, unless SQL is piped in.
    #[arg(long = "for", value_parser = duration, value_name = "TIME")]
    work_for: Option<Duration>,
    /// Only the table; until Ctrl-C or --for.
    #[arg(long)]
    no_shell: bool,
    /// Only the cluster and the shell.
    #[arg(long)]
    no_workload: bool,
    /// In place of movr: a quota, which clients of all regions take from and give back to, and what
    /// each region has of it.
    #[arg(long, conflicts_with = "no_workload")]
    quota: bool,
    /// Clients in each region.
    #[arg(long, default_value_t = 2)]
    clients: u32,
    /// How long a client rests between two operations.
    #[arg(long, default_value = "10ms", value_parser = duration)]
    think_time: Duration,
    /// Consecutive ports for clients, from this one on. Default: any that are free.
    #[arg(long)]
    sql_port_base: Option<u16>,
}

pub async fn run(args: Args) -> Result<ExitCode> {
    crate::log::to_stderr("error");
    let temporary = match args.data_dir {
        Some(_) => None,
        None => Some(tempfile::Builder::new().prefix("meridian-demo-").tempdir().map_err(no_directory)?),
    };
    let dir = temporary.as_ref().map_or_else(|| args.data_dir.clone().unwrap_or_default(), |t| t.path().to_path_buf());
    std::fs::create_dir_all(&dir).map_err(no_directory)?;

    let mut demo = Demo::new(args);
    let is_typing = demo.is_typing.clone();
    let mut cluster = Cluster::default();
    let ended = tokio::select! {
        ended = demo.drive(&mut cluster, &dir) => ended,
        () = stopped(&is_typing) => {
            demo.tell("\nending\n");
            Ok(if demo.manner == Manner::Script { INTERRUPTED } else { 0 })
        }
    };
    demo.end_traffic().await;
    cluster.shutdown().await;
    if let Some(temporary) = temporary {
        // Threads of stopped nodes may still let go of files.
        let _ = temporary.close();
    }
    ended.map(ExitCode::from)
}

fn no_directory(e: std::io::Error) -> Error {
    Error::fatal(format!("no directory for the nodes' files: {e}"))
}

/// SIGTERM, or SIGINT while nobody types: there it means the statement, or the line.
async fn stopped(is_typing: &AtomicBool) {
    let typed = async {
        loop {
            start::interrupt().await;
            if !is_typing.load(Ordering::Acquire) {
                return;
            }
        }
    };
    tokio::select! {
        () = start::terminate() => {}
        () = typed => {}
    }
}

/// How the demonstration is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// Somebody types.
    Shell,
    /// SQL comes from a pipe.
    Script,
    /// The table is all there is.
    Table,
}

struct Demo {
    /// With what its clients log in.
    login: Login,
    args: Args,
    manner: Manner,
    is_typing: Arc<AtomicBool>,
    began: Instant,
    traffic: Option<(Context, Traffic)>,
    workload: Option<Arc<dyn Workload>>,
    /// What each region has of the quota.
    shares: Option<quota::Shares>,
}

impl Demo {
    fn new(args: Args) -> Demo {
        let manner = match std::io::stdin().is_terminal() {
            _ if args.no_shell => Manner::Table,
            false => Manner::Script,
            true if args.work_for.is_some() => Manner::Table,
            true => Manner::Shell,
        };
        let (is_typing, began) = (Arc::default(), Instant::now());
        Demo { login: (None, None), args, manner, is_typing, began, traffic: None, workload: None, shares: None }
    }

    /// What the demonstration itself has to say. A script's standard output holds its results and
    /// nothing else.
    fn tell(&self, text: &str) {
        match self.manner {
            Manner::Script => {
                // The demonstration goes on when its reader has left.
                let _ = std::io::stderr().lock().write_all(text.as_bytes());
            }
            _ => say_part!("{text}"),
        }
    }

    fn is_redrawing(&self) -> bool {
        self.manner != Manner::Script && std::io::stdout().is_terminal()
    }

    fn since_start(&self) -> String {
        format!("{:>5.1} s", self.began.elapsed().as_secs_f64())
    }

    /// Everything from the first node to the last row. The exit status.
    async fn drive(&mut self, cluster: &mut Cluster, dir: &Path) -> Result<u8> {
        let layout = self.layout(dir)?;
        let regions = layout.regions();
        let wrong = |why| Error::sql("22023", why);
        let distances = Distances::new(&regions, &self.args.rtt, self.args.zone_rtt).map_err(wrong)?;
        self.tell(&format!(
            "{} nodes: {} in each of {}\n",
            layout.seats.len(),
            layout.seats.len() / regions.len(),
            regions.join(", ")
        ));
        self.tell(&format!("Round trips, injected between the nodes:\n{}", distances.table(&regions)));
        cluster.start(layout, &distances.links(), dir).await?;
        self.tell(&format!("{}  {} nodes serve, data in {}\n", self.since_start(), cluster.len(), dir.display()));

        self.login = cluster.login(dir)?;
        let (addrs, local) = (cluster.sql_addrs(&regions), cluster.local_sql_addrs(&regions));
        let database = match (self.args.no_workload, self.args.quota) {
            (true, _) => "defaultdb",
            (false, true) => escrow::DATABASE,
            (false, false) => movr::DATABASE,
        };
        let connector = Arc::new(PgConnector::new(local.clone(), "root", true));
        let urls = urls(&addrs, database, &self.login);
        tokio::select! {
            ended = self.work(connector, &local, &urls, database) => ended,
            e = cluster.failed() => Err(e),
        }
    }

    fn layout(&self, dir: &Path) -> Result<Layout> {
        let mut named = self.args.regions.clone();
        named.sort();
        named.dedup();
        if named.len() != self.args.regions.len() || named.iter().any(String::is_empty) {
            return Err(Error::sql("22023", "every region needs a name of its own"));
        }
        let Some(old) = Layout::load(dir)? else {
            let nodes = self.args.regions.len() * usize::from(self.args.zones);
            if let Some(base) = self.args.sql_port_base
                && usize::from(base) + nodes > usize::from(u16::MAX) + 1
            {
                return Err(Error::sql("22023", format!("{nodes} nodes from port {base} on are more than there are ports")));
            }
            return Ok(Layout::new(&self.args.regions, self.args.zones.into(), self.args.sql_port_base));
        };
        let is_default = self.args.regions.join(",") == distance::REGIONS_DEFAULT;
        if !is_default && old.regions() != self.args.regions {
            return Err(Error::sql("22023", format!("{} holds a cluster of {}", dir.display(), old.regions().join(", ")))
                .hint("Leave --regions out, or choose another --data-dir."));
        }
        Ok(old)
    }

    /// `local`: where this process's clients connect; `urls`: what others are told.
    async fn work(
        &mut self,
        connector: Arc<PgConnector>,
        local: &[(String, Vec<String>)],
        urls: &str,
        database: &str,
    ) -> Result<u8> {
        if !self.args.no_workload {
            self.load(connector).await?;
        }
        if self.args.quota {
            self.shares = Some(quota::Shares::watch(local));
        }
        self.tell(urls);
        let deadline = self.args.work_for.map(|time| Instant::now() + time);
        match self.manner {
            Manner::Table => self.watch(deadline).await?,
            Manner::Shell | Manner::Script => {
                self.await_first_rows().await?;
                let ended = self.shell(&local[0].1[0], database).await?;
                if let (Manner::Script, Some(_)) = (self.manner, deadline) {
                    self.watch(deadline).await?;
                }
                if ended != 0 {
                    return Ok(ended);
                }
            }
        }
        self.judge().await
    }

    fn workload(&self) -> Arc<dyn Workload> {
        match self.args.quota {
            true => Arc::new(quota::workload(self.args.think_time)),
            false => Arc::new(Movr::new(MovrConfig { think_time: self.args.think_time, ..MovrConfig::default() })),
        }
    }

    /// Creates the workload's tables, loads them, and starts its clients.
    async fn load(&mut self, connector: Arc<PgConnector>) -> Result<()> {
        let workload = self.workload();
        let timer = Arc::new(WallTimer::start());
        let loading = Context::new(connector.clone(), timer.clone(), LOAD_SEED);
        let is_redrawing = self.is_redrawing();
        self.tell(&format!("{}  creating {}'s tables in every region\n", self.since_start(), workload.name()));
        let progress = |p: meridian_workload::Progress| {
            if is_redrawing {
                say_part!("\r         loading {} of {} rows", p.rows_done, p.rows_total);
            }
        };
        workload.setup(&loading, &progress).await?;
        let (clear, clients) = (if is_redrawing { "\r\x1b[K" } else { "" }, self.args.clients);
        self.tell(&format!("{clear}{}  loaded; {clients} clients begin in each region\n", self.since_start()));
        // Another demonstration on the same directory makes other choices.
        let working = Context::new(connector, timer, RandomState::new().hash_one(std::process::id()));
        let traffic = Traffic::start(&workload, &working, self.args.clients);
        self.traffic = Some((working, traffic));
        self.workload = Some(workload);
        Ok(())
    }

    /// Shows the table until the deadline.
    async fn watch(&mut self, deadline: Option<Instant>) -> Result<()> {
        let is_redrawing = self.is_redrawing();
        let mut drawn = 0;
        loop {
            let pause = if is_redrawing { REDRAW_INTERVAL } else { LINES_INTERVAL };
            let wake = deadline.map_or(Instant::now() + pause, |d| d.min(Instant::now() + pause));
            self.rest_until(wake).await?;
            if deadline.is_some_and(|d| Instant::now() >= d) {
                self.tell(&erase(drawn));
                return Ok(());
            }
            drawn = self.draw(drawn);
        }
    }

    /// Shows the table until every region has numbers in it.
    async fn await_first_rows(&mut self) -> Result<()> {
        let Some((_, traffic)) = &self.traffic else { return Ok(()) };
        let live = traffic.live();
        let patience = Instant::now() + FIRST_ROWS_PATIENCE;
        while !live.lock().has_all_regions() && Instant::now() < patience {
            self.rest_until(Instant::now() + Duration::from_millis(50)).await?;
        }
        self.tell(&self.table(&live));
        self.tell(&format!("\\{} shows this table again.\n\n", self.name()));
        Ok(())
    }

    /// Sleeps, unless a client cannot go on.
    async fn rest_until(&mut self, wake: Instant) -> Result<()> {
        match &mut self.traffic {
            None => tokio::time::sleep_until(wake).await,
            Some((_, traffic)) => tokio::select! {
                () = tokio::time::sleep_until(wake) => {}
                e = traffic.failed() => return Err(e),
            },
        }
        Ok(())
    }

    fn name(&self) -> &'static str {
        if self.args.quota { "quota" } else { "movr" }
    }

    fn table(&self, live: &Mutex<Live>) -> String {
        live.lock().table() + &self.shares.as_ref().map_or(String::new(), quota::Shares::text)
    }

    /// Prints the table over the one before; how many lines it has.
    fn draw(&self, drawn: usize) -> usize {
        let Some((_, traffic)) = &self.traffic else { return 0 };
        let live = traffic.live();
        if !self.is_redrawing() {
            let shares = self.shares.as_ref().map_or(String::new(), quota::Shares::text);
            self.tell(&(live.lock().lines() + &shares));
            return 0;
        }
        let table = self.table(&live);
        self.tell(&format!("{}{table}", erase(drawn)));
        table.lines().count()
    }

    /// A shell on one node, while the clients go on. Its exit status.
    async fn shell(&mut self, addr: &str, database: &str) -> Result<u8> {
        let target = Target::parse(&format!("postgresql://root@{}/{database}", escaped_addr(addr)))?;
        let extras = self.traffic.iter().map(|(_, traffic)| {
            let (live, shares) = (traffic.live(), self.shares.clone());
            let table = move || live.lock().table() + &shares.as_ref().map_or(String::new(), quota::Shares::text);
            Extra { name: self.name(), help: "what the clients see", run: Box::new(table) }
        });
        let shell = Shell::connect(target, extras.collect()).await?;
        self.is_typing.store(self.manner == Manner::Shell, Ordering::Release);
        let ended = match &mut self.traffic {
            None => shell.run_stdin().await,
            Some((_, traffic)) => tokio::select! {
                ended = shell.run_stdin() => ended,
                e = traffic.failed() => return Err(e),
            },
        };
        self.is_typing.store(false, Ordering::Release);
        Ok(ended.exit_status())
    }

    /// Ends the work, shows all of it, and checks what must hold.
    async fn judge(&mut self) -> Result<u8> {
        let Some((context, traffic)) = self.traffic.take() else { return Ok(0) };
        let live = traffic.live();
        traffic.stop().await?;
        self.tell(&format!("\n{}", live.lock().summary()));
        let Some(workload) = self.workload.take() else { return Ok(0) };
        let verdict = workload.check(&context).await?;
        for violation in &verdict.violations {
            self.tell(&format!("VIOLATED: {violation}\n"));
        }
        let (name, violated) = (workload.name(), verdict.violations.len());
        self.tell(&format!("\nchecked {} facts about {name}'s rows: {violated} violated\n", verdict.examined));
        Ok(u8::from(!verdict.is_ok()))
    }

    /// The summary of work that was interrupted.
    async fn end_traffic(&mut self) {
        let Some((_, traffic)) = self.traffic.take() else { return };
        let live = traffic.live();
        // How it ends matters no more: the demonstration is over, and said why.
        let _ = traffic.stop().await;
        self.tell(&format!("\n{}", live.lock().summary()));
    }
}

/// Moves a terminal's cursor over what was drawn and clears it.
fn erase(lines: usize) -> String {
    if lines == 0 { String::new() } else { format!("\x1b[{lines}A\x1b[J") }
}

/// The password of root, and the authorities to verify nodes by.
type Login = (Option<String>, Option<PathBuf>);

fn urls(addrs: &[(String, Vec<String>)], database: &str, (password, authorities): &Login) -> String {
    let mut out = String::from("\nConnect with any PostgreSQL client:\n");
    for (region, nodes) in addrs {
        let urls = nodes.iter().map(|addr| url(addr, database, password.as_deref(), authorities.as_deref()));
        out += &format!("  {region}\n{}", urls.map(|url| format!("    {url}\n")).collect::<String>());
    }
    out + "\n"
}
