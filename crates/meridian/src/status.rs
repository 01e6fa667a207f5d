//! `meridian node`: the cluster as one of its nodes sees it, and what an operator wants of a node.

use clap::Subcommand;
use meridian_base::runtime::Runtime;
use meridian_base::{Error, ErrorKind, GroupId, NodeId, Result};
use meridian_node::security::Protection;
use meridian_node::wire::{NodeStatus, RotationStep, Standing};
use meridian_node::{Way, accept_clock_at, init_at, rotate_at, stand_at, status_of, versions_of};
use meridian_pki::Moment;
use meridian_pki::directory::{Directory, client_name};
use meridian_pki::identity::cluster_of;
use meridian_pki::tls::{Context, operator_config};
use meridian_server::{MachineRuntime, local_addr};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How often a command that waits looks again.
const POLL: Duration = Duration::from_millis(500);

#[derive(Subcommand)]
pub enum Command {
    /// A line per node: where it is, whether it answers, what is wanted of it, how far it is, which
    /// groups it leads.
    Status {
        #[command(flatten)]
        asked: Asked,
    },
    /// Moves the primaries away from a node that is about to be stopped. It keeps its replicas, and
    /// is itself again when it starts.
    Drain {
        #[command(flatten)]
        about: About,
    },
    /// Moves everything away from a node that is to leave the cluster for ever, and waits until it
    /// holds nothing. It may be stopped then; its process stops by itself.
    Decommission {
        #[command(flatten)]
        about: About,
    },
    /// Takes back a drain, or a decommission that has not ended.
    Recommission {
        #[command(flatten)]
        about: About,
    },
}

/// Which node is asked, and as whom.
#[derive(clap::Args)]
pub struct Asked {
    /// A node to ask, as it --listen. Default: the node of this machine whose --data-dir is given
    /// or stands in this directory, else the one at 127.0.0.1:26357.
    #[arg(long, value_name = "HOST:PORT")]
    node: Option<String>,
    /// The data directory of a node that runs on this machine as this user: it is asked over a
    /// socket in there, as root.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["node", "certs_dir"])]
    data_dir: Option<PathBuf>,
    /// A directory with the certificate of a role: what is asked for is asked for as that role.
    #[arg(long, value_name = "DIR")]
    certs_dir: Option<PathBuf>,
    /// The role.
    #[arg(long, default_value = "root", requires = "certs_dir")]
    user: String,
}

const NODE_DEFAULT: &str = "127.0.0.1:26357";
const DATA_DIR_DEFAULT: &str = "meridian-data";

impl Asked {
    fn addr(&self) -> String {
        let local = |dir: &Path| local_addr(dir);
        let is_there = |dir: &&Path| dir.join("node.sock").exists();
        let default = || Some(Path::new(DATA_DIR_DEFAULT)).filter(is_there).filter(|_| self.certs_dir.is_none()).map(local);
        let data_dir = self.data_dir.as_deref().map(local);
        self.node.clone().or(data_dir).or_else(default).unwrap_or_else(|| NODE_DEFAULT.to_string())
    }

    /// The way there. The directory is the command's for the moment.
    pub(crate) fn way(&self) -> Result<(tempfile::TempDir, Way)> {
        let (scratch, runtime) = scratch()?;
        let runtime: Arc<dyn Runtime> = runtime;
        let protection = match &self.certs_dir {
            None => Protection::None,
            Some(dir) => as_role(dir, &self.user, &runtime).map_err(|e| Error::fatal(e.to_string()))?,
        };
        Ok((scratch, Way { runtime, protection, addr: self.addr() }))
    }
}

/// With the certificate of a role.
fn as_role(dir: &Path, role: &str, runtime: &Arc<dyn Runtime>) -> meridian_pki::Result<Protection> {
    let directory = Directory::at(dir);
    let (bundle, pair) = (directory.bundle()?, directory.pair(&client_name(role)?)?);
    let clock = runtime.clone();
    let cluster = bundle.authorities().iter().find_map(cluster_of);
    let cluster = cluster.ok_or_else(|| {
        meridian_pki::Error::new(meridian_pki::Kind::Absent, format!("no authority in {} names a cluster", dir.display()))
    })?;
    let context = Context {
        cluster,
        clock: Arc::new(move || Moment::from_micros(clock.physical_micros())),
        revoked: Arc::new(|_: NodeId| false),
        rules: Default::default(),
    };
    Ok(Protection::Operator(Arc::new(operator_config(context, bundle, &pair)?)))
}

#[derive(clap::Args)]
pub struct About {
    /// The node's number, as `meridian node status` shows it.
    id: String,
    #[command(flatten)]
    asked: Asked,
    /// How long to wait, in seconds. What was begun goes on by itself.
    #[arg(long, default_value_t = 300)]
    timeout: u64,
}

impl About {
    fn id(&self) -> Result<NodeId> {
        let digits = self.id.strip_prefix('n').unwrap_or(&self.id);
        digits.parse().map(NodeId).map_err(|_| {
            Error::fatal(format!("\"{}\" is no node", self.id))
                .hint("Name a node by its number, as `meridian node status` shows it.")
        })
    }
}

pub async fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Status { asked } => show(&asked).await,
        Command::Drain { about } => {
            let id = about.id()?;
            stand(&about, id, Standing::Draining).await?;
            Ok(exit_code(wait(&about, "leads", |node| node.leads.clone(), &mut None).await?))
        }
        Command::Decommission { about } => {
            let id = about.id()?;
            stand(&about, id, Standing::Decommissioning).await?;
            // Every node holds a replica of the catalog for as long as it is a member.
            let holds = |node: &NodeStatus| node.holds.iter().copied().filter(|g| *g != GroupId::CATALOG).collect();
            let end = Instant::now() + Duration::from_secs(about.timeout);
            let (mut said, mut why) = (None, None);
            while wait(&about, "holds", holds, &mut said).await? {
                match stand(&about, id, Standing::Decommissioned).await {
                    Ok(()) => {
                        say!("node {id} holds nothing any more and is no member of the cluster");
                        say_what_is_left(&status(&about.asked).await?, id);
                        return Ok(ExitCode::SUCCESS);
                    }
                    // Some group still counts on it, or cannot be asked at the moment.
                    Err(e) if e.sqlstate() == "55000" && Instant::now() < end => {
                        say(e.message().to_string(), &mut why);
                        tokio::time::sleep(POLL).await;
                    }
                    Err(e) => return Err(e),
                }
            }
            Ok(ExitCode::FAILURE)
        }
        Command::Recommission { about } => {
            let id = about.id()?;
            stand(&about, id, Standing::Active).await?;
            say!("node {id} takes part again");
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// A cluster of fewer than three nodes does not survive the loss of one. `left` is the node that
/// was decommissioned just now; `nodes` may still list it as a member.
fn say_what_is_left(nodes: &[NodeStatus], left: NodeId) {
    let is_gone = |n: &&NodeStatus| matches!(n.node.standing, Standing::Decommissioned | Standing::Lost);
    let members = nodes.iter().filter(|n| n.node.id != left && !is_gone(n));
    if members.count() < 3 {
        say!(
            "The catalog has one voter now, as in every cluster of fewer than three nodes: add a node to survive the loss of one."
        );
    }
}

/// `meridian init`.
pub async fn init(asked: Asked) -> Result<ExitCode> {
    let (_scratch, way) = asked.way()?;
    init_at(&way).await?;
    say!("the node at {} has founded a cluster; the others join it", way.addr);
    Ok(ExitCode::SUCCESS)
}

/// Asking needs a runtime, and a runtime a directory; an empty one for the moment.
fn scratch() -> Result<(tempfile::TempDir, Arc<MachineRuntime>)> {
    let scratch = tempfile::tempdir().map_err(|e| Error::fatal(format!("no temporary directory: {e}")))?;
    let runtime = MachineRuntime::open(scratch.path()).map_err(|e| Error::fatal(e.to_string()))?;
    Ok((scratch, Arc::new(runtime)))
}

async fn status(asked: &Asked) -> Result<Vec<NodeStatus>> {
    let (_scratch, way) = asked.way()?;
    status_of(&way).await
}

/// Has the catalog say what the operator wants of a node. While the catalog elects a primary this
/// is tried again.
async fn stand(about: &About, id: NodeId, standing: Standing) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(about.timeout);
    loop {
        let (_scratch, way) = about.asked.way()?;
        match stand_at(&way, id, standing).await {
            Err(e) if e.kind() == ErrorKind::NotPrimary && Instant::now() < end => {
                tokio::time::sleep(POLL).await;
            }
            done => return done,
        }
    }
}

/// Whether every group that a live node holds a replica of has a primary, as far as the node asked
/// knows. What a node holds that does not answer is told by the primaries of its groups.
fn all_are_led(nodes: &[NodeStatus]) -> bool {
    let led: BTreeSet<GroupId> = nodes.iter().flat_map(|n| n.leads.iter().copied()).collect();
    nodes.iter().filter(|n| n.is_live).flat_map(|n| &n.holds).all(|group| led.contains(group))
}

/// `meridian debug accept-clock`.
pub async fn accept_clock(asked: &Asked) -> Result<ExitCode> {
    let (_scratch, way) = asked.way()?;
    let done = accept_clock_at(&way).await?;
    done.moved.iter().for_each(|id| say!("node {id}: its clock was moved ahead by {} s", done.by.as_secs()));
    done.kept.iter().for_each(|id| say!("node {id}: its clock is there already"));
    for (id, e) in &done.failed {
        eprintln!("node {id}: not moved: {}", e.message());
    }
    if !done.failed.is_empty() {
        eprintln!("  hint: Their clocks differ from the others' now. Run this again when they answer.");
    }
    Ok(exit_code(done.failed.is_empty()))
}

fn exit_code(is_done: bool) -> ExitCode {
    if is_done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Says it, unless it was said last.
fn say(line: String, said: &mut Option<String>) {
    if said.as_ref() != Some(&line) {
        say!("{line}");
        *said = Some(line);
    }
}

/// Waits until nothing is left of what a node has. Says what is, whenever that changes, and gives
/// up in the end. Whether nothing is.
async fn wait(about: &About, verb: &str, left: impl Fn(&NodeStatus) -> Vec<GroupId>, said: &mut Option<String>) -> Result<bool> {
    let id = about.id()?;
    let end = Instant::now() + Duration::from_secs(about.timeout);
    loop {
        let nodes = status(&about.asked).await?;
        let node = nodes.iter().find(|n| n.node.id == id);
        let groups = node.map(&left).unwrap_or_default();
        let is_told = node.is_none_or(|n| n.is_live) || all_are_led(&nodes);
        if groups.is_empty() && is_told {
            say(format!("node {id} {verb} nothing"), said);
            return Ok(true);
        }
        if groups.is_empty() {
            say(format!("node {id} does not answer, and not every group has a primary that could tell what it {verb}"), said);
        } else {
            let waits_for = |group: &GroupId| node.and_then(|n| n.waits_for.get(group));
            let why = |group: &GroupId| waits_for(group).map_or(String::new(), |why| format!(" ({why})"));
            let names: Vec<String> = groups.iter().map(|group| format!("{group}{}", why(group))).collect();
            say(format!("node {id} still {verb} {}", names.join(" ")), said);
        }
        if Instant::now() > end {
            eprintln!("meridian: gave up after {} s", about.timeout);
            eprintln!("  hint: SHOW RANGES says what each group waits for; the move goes on by itself.");
            return Ok(false);
        }
        tokio::time::sleep(POLL).await;
    }
}

async fn show(asked: &Asked) -> Result<ExitCode> {
    let nodes = status(asked).await?;
    let mut lines = vec![
        ["node", "region", "zone", "nodes", "clients", "live", "state", "round trip", "clock", "replicas", "leads"]
            .map(String::from),
    ];
    for n in &nodes {
        let leads: Vec<String> = n.leads.iter().map(ToString::to_string).collect();
        let is_gone = matches!(n.node.standing, Standing::Decommissioned | Standing::Lost);
        lines.push([
            n.node.id.to_string(),
            n.node.region.clone(),
            n.node.zone.clone(),
            n.node.addr.clone(),
            n.node.sql_addr.clone(),
            if n.is_live { "yes".into() } else { "no".into() },
            if n.is_dead && !is_gone { "dead".into() } else { n.node.standing.as_str().into() },
            format!("{:.1} ms", n.round_trip_micros as f64 / 1000.0),
            format!("{:+.1} ms", n.clock_offset_micros as f64 / 1000.0),
            n.holds.len().to_string(),
            leads.join(" "),
        ]);
    }
    let widths: Vec<usize> = (0..lines[0].len()).map(|c| lines.iter().map(|l| l[c].len()).max().unwrap_or(0)).collect();
    for line in lines {
        let cells: Vec<String> = line.iter().zip(&widths).map(|(cell, w)| format!("{cell:w$}")).collect();
        say!("{}", cells.join("  ").trim_end());
    }
    for n in &nodes {
        let Some(clock) = n.clock else { continue };
        let id = n.node.id;
        if let Some((group, by)) = clock.behind {
            say!(
                "{id}: its clock is {} s behind the last promise of group {group}: if it is right now, meridian debug accept-clock",
                by / 1_000_000
            );
        }
        if clock.ahead_of_wall_micros > 0 {
            say!("{id}: its clock is {} s ahead of the machine's and goes slowly", clock.ahead_of_wall_micros / 1_000_000);
        }
    }
    if let Err(e) = show_versions(asked).await {
        say!("cluster version unknown: {e}");
    }
    show_rotation(asked).await;
    let is_well = |n: &NodeStatus| n.is_live || n.node.standing == Standing::Decommissioned;
    Ok(exit_code(nodes.iter().all(is_well)))
}

/// A rotation of the authority that is under way. A cluster without certificates has none.
async fn show_rotation(asked: &Asked) {
    let Ok((_scratch, way)) = asked.way() else { return };
    let Ok(status) = rotate_at(&way, RotationStep::Look, false).await else { return };
    for stored in status.stored.iter().filter(|stored| stored.is_under_way()) {
        say!("{}", crate::rotate::sentence(stored));
        status.behind().iter().for_each(|node| say!("{node}: the rotation of the authority waits for it"));
    }
}

/// The cluster version, and the nodes whose programs keep it from being raised.
async fn show_versions(asked: &Asked) -> Result<()> {
    let (_scratch, way) = asked.way()?;
    let versions = versions_of(&way).await?;
    say!("cluster version {}", versions.cluster);
    let newest = versions.nodes.iter().map(|(_, of_node)| of_node.newest).max();
    for (id, of_node) in versions.nodes {
        if newest > Some(versions.cluster) && of_node.newest == versions.cluster {
            say!(
                "{id}: its program understands cluster versions {of_node}: the next one waits for a newer program there, or until the node is decommissioned"
            );
        }
    }
    Ok(())
}
