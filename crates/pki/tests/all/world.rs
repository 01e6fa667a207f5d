//! Clusters, their certificates, and connections between them.

use meridian_base::NodeId;
use meridian_pki::authority::{BACKDATE_SECS, Hosts, NODE_LIFE_SECS};
use meridian_pki::directory::Pair;
use meridian_pki::tls::{Clock, Context, Peer, Tls, explain, name_of, reached};
use meridian_pki::verify::PeerRefusal;
use meridian_pki::{Authority, Bundle, Certificate, ClusterId, Moment, PrivateKey, Rules};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ServerConfig};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

/// When the tests begin: a day in 2027.
pub const NOW: Moment = Moment(1_800_000_000);

/// A clock that tests set.
#[derive(Clone)]
pub struct Hand(Arc<AtomicU64>);

impl Hand {
    pub fn new() -> Hand {
        Hand(Arc::new(AtomicU64::new(NOW.0)))
    }
    pub fn set(&self, to: Moment) {
        self.0.store(to.0, Ordering::SeqCst);
    }
    pub fn now(&self) -> Moment {
        Moment(self.0.load(Ordering::SeqCst))
    }
    pub fn clock(&self) -> Clock {
        let hand = self.clone();
        Arc::new(move || hand.now())
    }
}

/// A cluster: its authority, the time, and who was decommissioned.
pub struct Cluster {
    pub id: ClusterId,
    pub authority: Authority,
    pub hand: Hand,
    pub revoked: Arc<Mutex<BTreeSet<NodeId>>>,
    pub rules: Rules,
}

impl Cluster {
    pub fn new() -> Cluster {
        Cluster::with(ClusterId::random(), Rules::ALL)
    }
    pub fn with(id: ClusterId, rules: Rules) -> Cluster {
        let authority = Authority::create(id, NOW).expect("an authority");
        Cluster { id, authority, hand: Hand::new(), revoked: Arc::default(), rules }
    }
    pub fn bundle(&self) -> Bundle {
        bundle(&[&self.authority])
    }
    pub fn context(&self) -> Context {
        let revoked = self.revoked.clone();
        let is_revoked = move |node: NodeId| revoked.lock().expect("no panic").contains(&node);
        Context { cluster: self.id, clock: self.hand.clock(), revoked: Arc::new(is_revoked), rules: self.rules }
    }
    pub fn pair(&self, node: u32) -> Pair {
        node_pair(&self.authority, self.id, node, self.hand.now())
    }
    pub fn tls(&self, node: u32) -> Tls {
        Tls::new(self.context(), self.bundle(), &self.pair(node)).expect("TLS")
    }
    pub fn client(&self, role: &str) -> Pair {
        let key = PrivateKey::generate();
        let made = self.authority.sign_client(role, &key.public().expect("P-256"), self.hand.now(), 86_400).expect("signs");
        Pair::new(vec![made], key).expect("a pair")
    }
    pub fn revoke(&self, node: u32) {
        self.revoked.lock().expect("no panic").insert(NodeId(node));
    }
}

pub fn bundle(authorities: &[&Authority]) -> Bundle {
    Bundle::new(authorities.iter().map(|a| a.certificate().clone()).collect()).expect("authorities")
}

pub fn hosts() -> Hosts {
    Hosts::parse(["db.example.org", "127.0.0.1", "::1"]).expect("hosts")
}

pub fn node_pair(authority: &Authority, cluster: ClusterId, node: u32, now: Moment) -> Pair {
    let key = PrivateKey::generate();
    let public = key.public().expect("P-256");
    let made = authority.sign_node(cluster, NodeId(node), &hosts(), &public, now, NODE_LIFE_SECS).expect("signs");
    Pair::new(vec![made], key).expect("a pair")
}

/// What a client and a server say after a handshake.
pub struct Handshake {
    pub client: std::io::Result<client::TlsStream<DuplexStream>>,
    pub server: std::io::Result<server::TlsStream<DuplexStream>>,
}

pub async fn shake(client: Arc<ClientConfig>, name: ServerName<'static>, server: Arc<ServerConfig>) -> Handshake {
    let (here, there) = duplex(64 << 10);
    let (client, server) = tokio::join!(TlsConnector::from(client).connect(name, here), TlsAcceptor::from(server).accept(there));
    Handshake { client, server }
}

/// Sends a byte each way; in TLS 1.3 a client learns only then that it was refused.
pub async fn talk(mut shaken: Handshake) -> Result<Handshake, String> {
    let (client, server) = (&mut shaken.client, &mut shaken.server);
    let client = match client {
        Ok(client) => client,
        Err(e) => return Err(explain(e)),
    };
    let server = match server {
        Ok(server) => server,
        Err(e) => return Err(explain(e)),
    };
    let there = async {
        server.write_all(b"s").await?;
        server.read_u8().await
    };
    let here = async {
        client.write_all(b"c").await?;
        client.read_u8().await
    };
    let (here, there) = tokio::join!(here, there);
    assert_eq!((here.map_err(|e| explain(&e))?, there.map_err(|e| explain(&e))?), (b's', b'c'));
    Ok(shaken)
}

/// A node calls another one. Whom it has reached, and whom the other one takes it for.
pub async fn call(from: &Tls, to: &Tls, called: u32) -> Result<(NodeId, Peer), String> {
    let shaken = shake(from.current().node_client.clone(), name_of(NodeId(called)), to.current().node_server.clone()).await;
    let shaken = talk(shaken).await?;
    let (client, server) = (shaken.client.expect("talked"), shaken.server.expect("talked"));
    let there = reached(client.get_ref().1.peer_certificates()).expect("a node");
    let connection = server.get_ref().1;
    let peer = to.peer(connection.peer_certificates(), connection.alpn_protocol()).map_err(|e: PeerRefusal| e.to_string())?;
    Ok((there, peer))
}

/// The moment at which what was made at `NOW` begins.
pub fn beginning() -> Moment {
    NOW.minus(BACKDATE_SECS)
}

pub fn parse(der: &[u8]) -> Option<Certificate> {
    Certificate::parse(der).ok()
}
