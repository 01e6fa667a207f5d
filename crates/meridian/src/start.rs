//! `meridian start`: one node, until it is told to stop.

use clap::Args as ClapArgs;
use meridian_base as base;
use meridian_node::{FOUNDING_PAUSE, Place, Security};
use meridian_pki::join::Token;
use meridian_server::pgwire::ServerOptions;
use meridian_server::{Memory, PodPlace, ProtocolThread, Server, ServerConfig, SessionThreads, certs_dir};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

#[derive(ClapArgs)]
pub struct Args {
    /// Where this node is: region=…,zone=…
    #[arg(long, default_value = "region=local,zone=a", value_parser = parse_locality)]
    locality: Place,
    /// The node's files. Made if missing; belongs to one process.
    #[arg(long, default_value = "meridian-data")]
    data_dir: PathBuf,
    /// Where other nodes connect.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:26357")]
    listen: String,
    /// The address that other nodes are told to connect to, if it is another one than --listen: in
    /// a container, behind address translation, or with --listen 0.0.0.0:PORT.
    #[arg(long, value_name = "HOST:PORT", value_parser = host_and_port)]
    advertise: Option<String>,
    /// Where clients connect.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:26257")]
    sql_listen: String,
    /// The address that clients are told, if it is another one than --sql-listen.
    #[arg(long, value_name = "HOST:PORT", value_parser = host_and_port)]
    sql_advertise: Option<String>,
    /// Nodes of the cluster, as they --advertise or --listen. A new node joins the cluster of any
    /// of them, with the token in --join-token-file. Without --join it founds a cluster by itself.
    /// With --insecure it joins without a token, or founds a cluster with those that it names as
    /// soon as all of them are up; the same list for all nodes is best.
    #[arg(long, value_delimiter = ',', value_parser = host_and_port)]
    join: Vec<String>,
    /// A file with the token that this new node joins with: the output of `meridian token create`.
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    join_token_file: Option<PathBuf>,
    /// The directory of this node's certificates. Default: `certs` in the data directory.
    #[arg(long, value_name = "DIR", conflicts_with = "insecure")]
    certs_dir: Option<PathBuf>,
    /// Starts without certificates. Every process that can connect may do everything, so addresses
    /// that other machines can reach are refused.
    #[arg(long)]
    insecure: bool,
    /// For how many seconds this node keeps versions that were replaced: how far AS OF SYSTEM TIME
    /// reaches back.
    #[arg(long, default_value_t = base::limits::GC_TTL_DEFAULT.as_secs(), value_parser = clap::value_parser!(u64).range(1..))]
    gc_ttl: u64,
    /// How many MiB of the disk's free space writes leave alone: below that they are refused, while
    /// reads and deletions go on. Room for what was accepted and is not in its place yet, up to
    /// twice the memory for writes, is set aside beside it. As long as nothing is said, 1024, or a
    /// tenth of a small disk.
    #[arg(long, value_name = "MIB")]
    keep_free: Option<u64>,
    /// Makes this node a host of a pod: nodes of one zone that share memory and divide the keys of
    /// a group among them. All of them run on one machine. Experimental.
    #[arg(long, value_name = "NAME", requires = "pod_memory")]
    pod: Option<String>,
    /// Where the pod's memory is: files whose names begin with this path, the same for all of its
    /// hosts, and best on a file system in memory.
    #[arg(long, value_name = "FILE", requires = "pod")]
    pod_memory: Option<PathBuf>,
    /// How many MiB the statements of this node may hold together: what sorts, joins, groups and
    /// the like keep of rows. When it is nearly full they write to temporary files earlier; when it
    /// is full, who needs more fails (53200). As long as nothing is said, a quarter of the
    /// machine's memory.
    #[arg(long, value_name = "MIB", value_parser = at_least_one)]
    statement_memory: Option<usize>,
    /// How many MiB of rows and of blocks of its files the node keeps in memory, half of it each,
    /// because they may be read again. As long as nothing is said, a quarter of the machine's
    /// memory.
    #[arg(long, value_name = "MIB", value_parser = at_least_one)]
    cache: Option<usize>,
    /// Most clients at once.
    #[arg(long, default_value_t = ServerOptions::default().max_connections, value_parser = at_least_one)]
    max_connections: usize,
}

/// `region=eu,zone=a`.
pub fn parse_locality(text: &str) -> Result<Place, String> {
    let mut place = Place::default();
    for part in text.split(',') {
        match part.split_once('=') {
            Some(("region", v)) if !v.is_empty() => place.region = v.into(),
            Some(("zone", v)) if !v.is_empty() => place.zone = v.into(),
            _ => return Err(format!("expected region=NAME,zone=NAME, found {part:?}")),
        }
    }
    match (place.region.is_empty(), place.zone.is_empty()) {
        (true, _) => Err("the region is missing: region=NAME,zone=NAME".into()),
        (_, true) => Err("the zone is missing: region=NAME,zone=NAME".into()),
        _ => Ok(place),
    }
}

fn host_and_port(text: &str) -> Result<String, String> {
    match text.rsplit_once(':').map(|(host, port)| (host, port.parse::<u16>())) {
        Some((host, Ok(_))) if !host.is_empty() => Ok(text.to_string()),
        _ => Err(format!("expected HOST:PORT, found {text:?}")),
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| "expected a number above 0".to_string())
}

pub async fn run(args: Args) -> base::Result<ExitCode> {
    crate::log::to_stderr("info");
    let data_dir = args.data_dir.clone();
    let security = match args.insecure {
        true => None,
        false => Some(security(&args)?),
    };
    let config = ServerConfig {
        place: args.locality,
        data_dir: args.data_dir,
        listen: args.listen,
        sql_listen: args.sql_listen,
        advertise: args.advertise,
        sql_advertise: args.sql_advertise,
        join: args.join,
        founding_pause: FOUNDING_PAUSE,
        security,
        pod: args.pod.zip(args.pod_memory).map(|(name, memory)| PodPlace { name, memory }),
        links: None,
        max_offset: base::limits::MAX_OFFSET_DEFAULT,
        gc_ttl: Duration::from_secs(args.gc_ttl),
        pg: ServerOptions { max_connections: args.max_connections, ..ServerOptions::default() },
        threads: SessionThreads::start()?,
        protocol: ProtocolThread::start()?,
        kept_free: args.keep_free.map(|mib| mib.saturating_mul(1 << 20)),
        memory: Memory::Server,
        statement_memory: args.statement_memory.map(|mib| mib.saturating_mul(1 << 20)),
        cache: args.cache.map(|mib| mib.saturating_mul(1 << 20)),
    };
    let place = config.place.clone();
    let is_secure = config.security.is_some();
    let stop = stop_signal();
    let server = tokio::select! {
        started = Server::start(config) => started?,
        () = stop => return Ok(ExitCode::SUCCESS),
    };
    say!("node {} of region {}, zone {}", server.id(), place.region, place.zone);
    say!("data      {}", data_dir.display());
    say!("nodes     {}", server.addr());
    say!("clients   postgresql://root@{}/defaultdb", server.sql_addr());
    if is_secure {
        say!("login     meridian url --data-dir {}", data_dir.display());
    }
    tokio::select! {
        e = server.failed() => Err(e),
        () = reload(&server) => unreachable!("it waits for ever"),
        () = stop_signal() => {
            say!("stopping: sessions finish, leadership is handed over");
            // A second signal ends the wait: what was acknowledged is durable either way.
            tokio::select! {
                () = server.shutdown() => say!("stopped"),
                () = stop_signal() => say!("stopped at once"),
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// What a secure node is started with.
fn security(args: &Args) -> base::Result<Security> {
    let mut security = Security::new(args.certs_dir.clone().unwrap_or_else(|| certs_dir(&args.data_dir)));
    if let Some(file) = &args.join_token_file {
        let place = file.display();
        let text = std::fs::read_to_string(file).map_err(|e| base::Error::fatal(format!("cannot read {place}: {e}")))?;
        let token = Token::parse(&text).map_err(|e| base::Error::fatal(format!("{place}: {e}")))?;
        if args.join.is_empty() {
            return Err(base::Error::fatal("--join-token-file needs --join: which node is to be asked"));
        }
        security.token = Some(token);
    }
    Ok(security)
}

/// SIGTERM or SIGINT.
pub async fn stop_signal() {
    tokio::select! {
        () = terminate() => {}
        () = interrupt() => {}
    }
}

/// SIGHUP: takes the certificates that are in their directory now.
async fn reload(server: &Server) {
    let Ok(mut signals) = signal(SignalKind::hangup()) else { return std::future::pending().await };
    while signals.recv().await.is_some() {
        match server.node().reload_certificates() {
            Ok(()) => tracing::info!("event=certificates_reloaded"),
            Err(e) => tracing::error!("the certificates were not reloaded: {}", e.message()),
        }
    }
    std::future::pending().await
}

/// SIGTERM.
pub async fn terminate() {
    arrival(SignalKind::terminate()).await;
}

/// SIGINT: Ctrl-C.
pub async fn interrupt() {
    arrival(SignalKind::interrupt()).await;
}

async fn arrival(kind: SignalKind) {
    match signal(kind) {
        Ok(mut signal) => _ = signal.recv().await,
        // Without a handler the signal ends the process.
        Err(_) => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::parse_locality;

    #[test]
    fn localities_name_a_region_and_a_zone() {
        let place = parse_locality("region=eu,zone=a").unwrap();
        assert_eq!((place.region.as_str(), place.zone.as_str()), ("eu", "a"));
        for bad in ["", "eu", "region=eu", "zone=a", "region=,zone=a", "region=eu,zone=a,host=x"] {
            assert!(parse_locality(bad).is_err(), "{bad}");
        }
    }
}
