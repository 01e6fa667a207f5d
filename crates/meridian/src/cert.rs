//! `meridian cert`: certificates that an operator makes, and what is in a directory of them.

use clap::Subcommand;
use meridian_base::runtime::Runtime;
use meridian_base::{Error, NodeId, Result};
use meridian_node::Node;
use meridian_pki::authority::{CLIENT_LIFE_SECS, Hosts, NODE_LIFE_SECS};
use meridian_pki::{ClusterId, Moment, commands};
use meridian_server::{MachineRuntime, certs_dir, first_login, wall_micros};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

#[derive(Subcommand)]
pub enum Command {
    /// Makes the authority of a new cluster: ca.crt, and ca.key, which stays where it is.
    CreateCa {
        /// Where.
        #[arg(long, value_name = "DIR")]
        certs_dir: PathBuf,
    },
    /// Makes a node's certificate, in a directory that the node is given as --certs-dir. The node
    /// that founds the cluster is node 1.
    CreateNode {
        /// The authority's directory.
        #[arg(long, value_name = "DIR")]
        certs_dir: PathBuf,
        /// Where the certificate is put, with the authority's and without its key.
        #[arg(long, value_name = "DIR")]
        into: PathBuf,
        /// The node's number.
        #[arg(long)]
        id: u32,
        /// Names and addresses that clients call it by.
        #[arg(long, value_delimiter = ',', default_value = "localhost,127.0.0.1,::1")]
        host: Vec<String>,
        /// The cluster, for an authority of other programs.
        #[arg(long)]
        cluster: Option<String>,
        /// For how many days it is good.
        #[arg(long, default_value_t = NODE_LIFE_SECS / DAY_SECS)]
        days: u64,
    },
    /// Makes the certificate of a role: for logging in, and for the operator's commands.
    CreateClient {
        /// The role.
        role: String,
        /// The authority's directory.
        #[arg(long, value_name = "DIR")]
        certs_dir: PathBuf,
        /// Where the certificate is put. Default: beside the authority's.
        #[arg(long, value_name = "DIR")]
        into: Option<PathBuf>,
        /// For how many days it is good.
        #[arg(long, default_value_t = CLIENT_LIFE_SECS / DAY_SECS)]
        days: u64,
    },
    /// Lists what is in a directory, and what is wrong with it.
    List {
        /// Which one.
        #[arg(long, value_name = "DIR", required_unless_present = "data_dir")]
        certs_dir: Option<PathBuf>,
        /// That of the node with this data directory.
        #[arg(long, value_name = "DIR", conflicts_with = "certs_dir")]
        data_dir: Option<PathBuf>,
    },
    /// Replaces the authority of a cluster that runs, in steps.
    #[command(subcommand)]
    RotateCa(crate::rotate::Command),
    /// Makes certificates for a node that was started with --insecure so far, while all nodes of
    /// its cluster are stopped. First at one node, which makes the authority; then at each other
    /// one, with the first one's directory of certificates.
    Upgrade {
        /// The node's data directory.
        #[arg(long, value_name = "DIR")]
        data_dir: PathBuf,
        /// The directory of the node that has been upgraded first, or a copy.
        #[arg(long, value_name = "DIR")]
        authority: Option<PathBuf>,
        /// Names and addresses that clients call the node by.
        #[arg(long, value_delimiter = ',', default_value = "localhost,127.0.0.1,::1")]
        host: Vec<String>,
    },
}

const DAY_SECS: u64 = 86_400;

fn told(e: meridian_pki::Error) -> Error {
    Error::fatal(e.to_string())
}

/// What the machine's clock shows.
pub(crate) fn now() -> Moment {
    Moment::from_micros(wall_micros())
}

fn hosts(texts: &[String]) -> Result<Hosts> {
    Hosts::parse(texts.iter().map(String::as_str)).map_err(told)
}

pub async fn run(command: Command) -> Result<ExitCode> {
    let now = now();
    match command {
        Command::RotateCa(command) => return crate::rotate::run(command).await,
        Command::CreateCa { certs_dir } => {
            let fingerprint = commands::create_ca(&certs_dir, now).map_err(told)?;
            say!("{}: a new authority, {fingerprint}", certs_dir.display());
        }
        Command::CreateNode { certs_dir, into, id, host, cluster, days } => {
            let malformed = || Error::fatal("a cluster is named by 32 hexadecimal digits");
            let cluster = cluster.map(|text| ClusterId::parse(&text).ok_or_else(malformed)).transpose()?;
            let (hosts, life) = (hosts(&host)?, days.saturating_mul(DAY_SECS));
            let made = commands::create_node(&certs_dir, &into, NodeId(id), &hosts, cluster, now, life).map_err(told)?;
            say!("{}: node {id}, until {}", into.display(), made.not_after);
        }
        Command::CreateClient { role, certs_dir, into, days } => {
            let into = into.unwrap_or_else(|| certs_dir.clone());
            let life = days.saturating_mul(DAY_SECS);
            let made = commands::create_client(&certs_dir, &into, &role, now, life).map_err(told)?;
            say!("{}: role {role:?}, until {}", into.display(), made.not_after);
        }
        Command::List { certs_dir: given, data_dir } => {
            let dir = given.or_else(|| data_dir.as_deref().map(certs_dir)).expect("one of both is given");
            return list(&dir, now);
        }
        Command::Upgrade { data_dir, authority, host } => upgrade(&data_dir, authority.as_deref(), &hosts(&host)?, now)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(dir: &Path, now: Moment) -> Result<ExitCode> {
    let entries = commands::list(dir, now).map_err(told)?;
    let mut is_well = true;
    for entry in &entries {
        let until = entry.not_after.map_or(String::new(), |at| format!("until {at}"));
        let key = if entry.has_key { "with its key" } else { "" };
        let parts = [entry.file.as_str(), &entry.holder, &until, key];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        say!("{}", parts.join("  "));
        if let Some(fingerprint) = entry.fingerprint {
            say!("    {fingerprint}");
        }
        if let Some(problem) = &entry.problem {
            // An authority whose key is elsewhere is as it should be.
            is_well = false;
            say!("    {problem}");
        }
    }
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn upgrade(data_dir: &Path, authority: Option<&Path>, hosts: &Hosts, now: Moment) -> Result<()> {
    if !data_dir.exists() {
        return Err(Error::fatal(format!("{} is not there", data_dir.display())));
    }
    // Refused while a process has it.
    let runtime: Arc<dyn Runtime> = Arc::new(MachineRuntime::open(data_dir).map_err(|e| Error::fatal(e.to_string()))?);
    let Some((cluster, node)) = Node::identity_in(&runtime)? else {
        return Err(Error::fatal(format!("{} is no node's data directory yet", data_dir.display()))
            .hint("Start it without --insecure: it is secure from the first start on."));
    };
    let certs = certs_dir(data_dir);
    if certs.join("node.crt").exists() {
        return Err(Error::fatal(format!("{} has certificates already", data_dir.display())));
    }
    let from = match authority {
        Some(dir) => dir.to_path_buf(),
        None => {
            commands::create_ca_of(&certs, ClusterId(cluster), now).map_err(told)?;
            commands::create_client(&certs, &certs, "root", now, CLIENT_LIFE_SECS).map_err(told)?;
            first_login::draw(data_dir)?;
            certs.clone()
        }
    };
    let made = commands::create_node(&from, &certs, node, hosts, Some(ClusterId(cluster)), now, NODE_LIFE_SECS).map_err(told)?;
    say!("{}: node {} of cluster {cluster:032x}, until {}", certs.display(), node.0, made.not_after);
    if authority.is_none() {
        say!("upgrade the other nodes with --authority {}", certs.display());
    }
    Ok(())
}
