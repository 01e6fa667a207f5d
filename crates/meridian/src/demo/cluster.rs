//! All nodes of a demonstration, in this process: real files, real sockets on loopback, injected
//! distances.

use meridian_base::limits::{GC_TTL_DEFAULT, MAX_OFFSET_DEFAULT};
use meridian_base::{Error, Result};
use meridian_node::{Links, Node, Place, Security};
use meridian_pki::join::{TOKEN_LIFE_SECS, Token};
use meridian_server::pgwire::ServerOptions;
use meridian_server::{Memory, ProtocolThread, Server, ServerConfig, SessionThreads, certs_dir, first_login, local_sql_addr_in};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the cluster's shape and addresses are kept, in a directory that outlives the
/// demonstration.
const LAYOUT_FILE: &str = "demo.json";
/// Nodes hand leadership over when they stop, but all of them stop.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(8);
/// Free bytes of the disk that the cluster leaves alone: it has little data, and is often in a
/// temporary directory.
const KEPT_FREE: u64 = 128 << 20;
const ANY_PORT: &str = "127.0.0.1:0";

/// One node of the cluster to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    pub place: Place,
    pub listen: String,
    pub sql_listen: String,
}

impl Seat {
    /// Where a client of this machine connects that has no TLS, while the node runs below `dir`.
    pub fn local_sql_addr(&self, dir: &Path) -> String {
        local_sql_addr_in(&node_dir(dir, &self.place)).unwrap_or_else(|| self.sql_listen.clone())
    }
}

/// The shape of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// In the order of their regions.
    pub seats: Vec<Seat>,
    /// The nodes have run before, on these addresses.
    is_old: bool,
}

impl Layout {
    /// New nodes, on consecutive SQL ports or on any.
    pub fn new(regions: &[String], zones: usize, sql_port_base: Option<u16>) -> Layout {
        let mut ports = sql_port_base.into_iter().flat_map(|base| base..=u16::MAX);
        let mut seats = Vec::new();
        for region in regions {
            for zone in ('a'..='z').take(zones) {
                let place = Place { region: region.clone(), zone: zone.to_string() };
                let sql_listen = ports.next().map_or(ANY_PORT.to_string(), |port| format!("127.0.0.1:{port}"));
                seats.push(Seat { place, listen: ANY_PORT.into(), sql_listen });
            }
        }
        Layout { seats, is_old: false }
    }

    /// What a directory holds, if it holds a cluster: its nodes know each other by their addresses.
    pub fn load(dir: &Path) -> Result<Option<Layout>> {
        let file = dir.join(LAYOUT_FILE);
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::fatal(format!("cannot read {}: {e}", file.display()))),
        };
        let damaged = || Error::fatal(format!("{} is damaged", file.display()));
        let value: Value = serde_json::from_str(&text).map_err(|_| damaged())?;
        let seats: Option<Vec<Seat>> = value["nodes"].as_array().ok_or_else(damaged)?.iter().map(seat_of).collect();
        Ok(Some(Layout { seats: seats.ok_or_else(damaged)?, is_old: true }))
    }

    fn save(&self, dir: &Path) -> Result<()> {
        let seats: Vec<Value> = self
            .seats
            .iter()
            .map(|s| json!({"region": s.place.region, "zone": s.place.zone, "listen": s.listen, "sql_listen": s.sql_listen}))
            .collect();
        let file = dir.join(LAYOUT_FILE);
        std::fs::write(&file, format!("{:#}\n", json!({ "nodes": seats })))
            .map_err(|e| Error::fatal(format!("cannot write {}: {e}", file.display())))
    }

    /// Its regions, in order.
    pub fn regions(&self) -> Vec<String> {
        let mut regions: Vec<String> = Vec::new();
        for seat in &self.seats {
            if !regions.contains(&seat.place.region) {
                regions.push(seat.place.region.clone());
            }
        }
        regions
    }
}

fn seat_of(value: &Value) -> Option<Seat> {
    let text = |name: &str| Some(value[name].as_str()?.to_string());
    let place = Place { region: text("region")?, zone: text("zone")? };
    Some(Seat { place, listen: text("listen")?, sql_listen: text("sql_listen")? })
}

/// The running nodes.
pub struct Cluster {
    servers: Vec<(Place, Server)>,
    max_offset: Duration,
    /// Whether the nodes of a new cluster have certificates; those of an old one go on as they
    /// were.
    is_secure: bool,
    /// What the sessions and the protocols of all nodes run on, from the start on.
    threads: Option<(SessionThreads, ProtocolThread)>,
}

impl Default for Cluster {
    fn default() -> Cluster {
        Cluster { is_secure: true, ..Cluster::new(MAX_OFFSET_DEFAULT) }
    }
}

impl Cluster {
    /// None yet, and without certificates. `max_offset`: by how much they assume their clocks to
    /// differ at most.
    pub fn new(max_offset: Duration) -> Cluster {
        Cluster { servers: Vec::new(), max_offset, is_secure: false, threads: None }
    }

    /// Starts every node. The first one founds the cluster; the others join it together, those of
    /// its own region first, so that the catalog is spread over that region's zones from the
    /// beginning. Nodes that ran before start together, since they need each other.
    pub async fn start(&mut self, mut layout: Layout, links: &Links, dir: &Path) -> Result<()> {
        if layout.is_old {
            let everybody: Vec<String> = layout.seats.iter().map(|s| s.listen.clone()).collect();
            return self.start_together(&layout.seats, &everybody, links, dir).await;
        }
        let (founder, others) = layout.seats.split_first().expect("a cluster has a node");
        self.start_together(std::slice::from_ref(founder), &[], links, dir).await?;
        let join = vec![self.servers[0].1.addr().to_string()];
        let home = &founder.place.region;
        let (near, far): (Vec<Seat>, Vec<Seat>) = others.iter().cloned().partition(|s| s.place.region == *home);
        self.start_together(&near, &join, links, dir).await?;
        self.start_together(&far, &join, links, dir).await?;
        for seat in &mut layout.seats {
            let (_, server) = self.servers.iter().find(|(place, _)| *place == seat.place).expect("every node was started");
            (seat.listen, seat.sql_listen) = (server.addr().to_string(), server.sql_addr().to_string());
        }
        layout.save(dir)
    }

    async fn start_together(&mut self, seats: &[Seat], join: &[String], links: &Links, dir: &Path) -> Result<()> {
        let (threads, protocol) = match &self.threads {
            Some(threads) => threads.clone(),
            None => self.threads.insert((SessionThreads::start()?, ProtocolThread::start()?)).clone(),
        };
        let mut securities = Vec::new();
        for seat in seats {
            securities.push(self.security(&node_dir(dir, &seat.place), !join.is_empty()).await?);
        }
        let starts = seats.iter().zip(securities).map(|(seat, security)| {
            let config = ServerConfig {
                place: seat.place.clone(),
                data_dir: node_dir(dir, &seat.place),
                listen: seat.listen.clone(),
                sql_listen: seat.sql_listen.clone(),
                advertise: None,
                sql_advertise: None,
                join: join.to_vec(),
                founding_pause: Duration::ZERO,
                security,
                links: Some(links.clone()),
                pod: None,
                max_offset: self.max_offset,
                gc_ttl: GC_TTL_DEFAULT,
                pg: ServerOptions::default(),
                threads: threads.clone(),
                protocol: protocol.clone(),
                kept_free: Some(KEPT_FREE),
                memory: Memory::Small,
                statement_memory: None,
                cache: None,
            };
            // On a task of its own, so that the nodes share the machine's cores.
            tokio::spawn(async move { Server::start(config).await })
        });
        let mut failure = None;
        for (seat, started) in seats.iter().zip(futures::future::join_all(starts).await) {
            match started {
                Ok(Ok(server)) => self.servers.push((seat.place.clone(), server)),
                Ok(Err(e)) => failure = failure.or(Some(e)),
                Err(e) => failure = failure.or(Some(Error::internal(format!("a node panicked at its start: {e}")))),
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// What a node is started with: a new one that joins has a token of a node that runs.
    async fn security(&self, data_dir: &Path, joins: bool) -> Result<Option<Security>> {
        let is_old = data_dir.exists();
        if !self.is_secure || (is_old && !certs_dir(data_dir).exists()) {
            return Ok(None);
        }
        let mut security = Security::new(certs_dir(data_dir));
        if joins && !is_old {
            let text = self.servers[0].1.node().create_token(TOKEN_LIFE_SECS).await?;
            security.token = Some(Token::parse(&text).map_err(|e| Error::internal(e.to_string()))?);
        }
        Ok(Some(security))
    }

    /// The password of `root` and the authorities to verify the nodes by, if there are any.
    pub fn login(&self, dir: &Path) -> Result<(Option<String>, Option<PathBuf>)> {
        let Some((founder, _)) = self.servers.first().filter(|_| self.is_secure) else { return Ok((None, None)) };
        let dirs: Vec<PathBuf> = self.servers.iter().map(|(place, _)| node_dir(dir, place)).collect();
        let passwords = dirs.iter().map(|dir| first_login::read(dir)).collect::<Result<Vec<_>>>()?;
        let authorities = certs_dir(&node_dir(dir, founder)).join("ca.crt");
        Ok((passwords.into_iter().flatten().next(), authorities.canonicalize().ok()))
    }

    /// Where clients of each region connect.
    pub fn sql_addrs(&self, regions: &[String]) -> Vec<(String, Vec<String>)> {
        self.addrs_of(regions, |server| server.sql_addr().to_string())
    }

    /// Where this process's own clients do, which have no TLS.
    pub fn local_sql_addrs(&self, regions: &[String]) -> Vec<(String, Vec<String>)> {
        self.addrs_of(regions, Server::local_sql_addr)
    }

    fn addrs_of(&self, regions: &[String], addr: impl Fn(&Server) -> String) -> Vec<(String, Vec<String>)> {
        let of = |region: &String| {
            let mut nodes: Vec<_> = self.servers.iter().filter(|(p, _)| p.region == *region).collect();
            nodes.sort_by_key(|(place, _)| place);
            nodes.into_iter().map(|(_, server)| addr(server)).collect()
        };
        regions.iter().map(|region| (region.clone(), of(region))).collect()
    }

    /// All nodes.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.servers.iter().map(|(_, server)| server.node())
    }

    /// How many run.
    pub fn len(&self) -> usize {
        self.servers.len()
    }

    /// Waits for a node that cannot go on, and says which.
    pub async fn failed(&self) -> Error {
        let waits = self.servers.iter().map(|(place, server)| {
            Box::pin(async move {
                let e = server.failed().await;
                Error::fatal(format!("the node in {}, zone {}, failed: {}", place.region, place.zone, e.message()))
            })
        });
        futures::future::select_all(waits).await.0
    }

    /// Stops all nodes.
    pub async fn shutdown(self) {
        let stops = self.servers.iter().map(|(_, server)| server.shutdown());
        // What was acknowledged is durable whether or not everybody said goodbye.
        let _ = tokio::time::timeout(SHUTDOWN_PATIENCE, futures::future::join_all(stops)).await;
    }
}

fn node_dir(dir: &Path, place: &Place) -> PathBuf {
    dir.join(format!("{}-{}", place.region, place.zone))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_is_read_back() {
        let dir = tempfile::tempdir().expect("a directory");
        assert_eq!(Layout::load(dir.path()).expect("readable"), None);
        let layout = Layout::new(&["eu".into(), "us".into()], 2, Some(26257));
        layout.save(dir.path()).expect("writable");
        let again = Layout::load(dir.path()).expect("readable").expect("there");
        assert_eq!(again.seats, layout.seats);
        assert_eq!(again.regions(), ["eu", "us"]);
        let sql: Vec<&str> = again.seats.iter().map(|s| s.sql_listen.as_str()).collect();
        assert_eq!(sql, ["127.0.0.1:26257", "127.0.0.1:26258", "127.0.0.1:26259", "127.0.0.1:26260"]);
        std::fs::write(dir.path().join(LAYOUT_FILE), "{\"nodes\": [{}]}").expect("writable");
        assert!(Layout::load(dir.path()).is_err());
    }
}
