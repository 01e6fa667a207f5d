//! Handshakes: who may talk to whom.
//!
//! [`Tls`] holds what a process needs for both kinds of connections, made from its files, and
//! replaces it as a whole. A new handshake takes [`Tls::current`]; a handshake that has
//! begun, and a connection, keep what they began with.
//!
//! * **Between nodes** ([`Configs::node_server`], [`Configs::node_client`]): TLS 1.3. The caller
//!   says whom it calls ([`name_of`]), and no other certificate is accepted. The one that is
//!   called learns from [`Tls::peer`] who it is: a node, a role, or somebody without a certificate,
//!   who may join and nothing else. What the connection is for is in its protocol (ALPN, RFC 7301),
//!   so that a message of one kind is never read as one of the other.
//! * **Of clients** ([`Configs::sql_server`]): TLS 1.2 or 1.3, with a certificate if the client has
//!   one. A node's certificate is no login.
//!
//! No session is resumed: a ticket would carry a peer past everything that is checked here.
//!
//! A node that is decommissioned is refused in handshakes at once ([`Revocations`]). Connections
//! that are open are the caller's: it asks [`Tls::still_admits`] of each when the set changes.

mod client;
mod verifiers;

pub use client::{SslMode, client_config, operator_config};
pub(crate) use verifiers::{Signatures, signatures};

use crate::certificate::Certificate;
use crate::der::{Reader, only, tag};
use crate::directory::Pair;
use crate::error::{Error, Kind, Result};
use crate::identity::{ClusterId, Identity};
use crate::rotation::Report;
use crate::rules::Rules;
use crate::time::Moment;
use crate::verify::{Bundle, PeerRefusal, Usage, verify};
use meridian_base::NodeId;
use parking_lot::RwLock;
use rustls::pki_types::{CertificateDer, DnsName, ServerName, UnixTime};
use rustls::server::{NoServerSessionStorage, ServerSessionMemoryCache};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, ServerConfig};
use std::fmt;
use std::sync::Arc;
use verifiers::{ClientVerifier, NodeVerifier};

/// The protocol of connections between nodes.
pub const NODE_PROTOCOL: &[u8] = b"meridian-node/1";
/// The protocol of connections of processes that want to become nodes.
pub const JOIN_PROTOCOL: &[u8] = b"meridian-join/1";
/// The protocol of SQL clients (PostgreSQL 17 manual, «Protocol Flow», SSL).
pub const SQL_PROTOCOL: &[u8] = b"postgresql";

/// Tells the time: seconds since 1970.
pub type Clock = Arc<dyn Fn() -> Moment + Send + Sync>;

/// Which nodes were decommissioned. Asked in every handshake, so it has to answer from memory.
pub trait Revocations: Send + Sync {
    /// Whether this node's certificates are good no more.
    fn is_revoked(&self, node: NodeId) -> bool;
}

impl<F: Fn(NodeId) -> bool + Send + Sync> Revocations for F {
    fn is_revoked(&self, node: NodeId) -> bool {
        self(node)
    }
}

/// What does not change while a process runs.
#[derive(Clone)]
pub struct Context {
    /// The cluster that it is of.
    pub cluster: ClusterId,
    /// The time.
    pub clock: Clock,
    /// The nodes that were decommissioned.
    pub revoked: Arc<dyn Revocations>,
    /// None in production.
    pub rules: Rules,
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Context({})", self.cluster)
    }
}

impl Context {
    fn now(&self) -> Moment {
        (self.clock)()
    }
    fn refuse_revoked(&self, node: NodeId) -> std::result::Result<(), PeerRefusal> {
        match self.revoked.is_revoked(node) && self.rules.revokes() {
            true => Err(PeerRefusal::Revoked(node)),
            false => Ok(()),
        }
    }
}

/// `rustls` asks for the time as well.
struct Time(Clock);

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Time")
    }
}

impl rustls::time_provider::TimeProvider for Time {
    fn current_time(&self) -> Option<UnixTime> {
        Some((self.0)().unix())
    }
}

/// What new handshakes use.
#[derive(Debug)]
pub struct Configs {
    /// For connections that other nodes, joiners and operators open.
    pub node_server: Arc<ServerConfig>,
    /// For connections to other nodes.
    pub node_client: Arc<ClientConfig>,
    /// For connections of SQL clients.
    pub sql_server: Arc<ServerConfig>,
    /// What SCRAM binds to (`tls-server-end-point`); `None`: the certificate has none.
    pub end_point: Option<Vec<u8>>,
    /// This node.
    pub node: NodeId,
    /// Its certificate.
    pub certificate: Certificate,
    /// That, with those between it and the authority, and its key.
    pub(crate) pair: Pair,
    /// Whom it trusts.
    pub bundle: Bundle,
}

/// See the module.
pub struct Tls {
    context: Context,
    current: RwLock<Arc<Configs>>,
}

impl Tls {
    /// With the certificates that a process has. An error if its own would be refused by the other
    /// nodes: not of this cluster, not valid now, or not signed by an authority in the bundle.
    pub fn new(context: Context, bundle: Bundle, node: &Pair) -> Result<Tls> {
        let configs = configs(&context, bundle, node)?;
        Ok(Tls { context, current: RwLock::new(Arc::new(configs)) })
    }
    /// For new handshakes from now on. After an error everything is as before.
    pub fn replace(&self, bundle: Bundle, node: &Pair) -> Result<()> {
        let configs = configs(&self.context, bundle, node)?;
        let before = self.current.read().node;
        if configs.node != before {
            let why = format!("the new certificate is that of node {}, and this is node {}", configs.node.0, before.0);
            return Err(Error::new(Kind::Mismatch, why));
        }
        *self.current.write() = Arc::new(configs);
        Ok(())
    }
    /// What a handshake that begins now uses.
    pub fn current(&self) -> Arc<Configs> {
        self.current.read().clone()
    }
    /// Who is at the other end of a connection that a server of this process has accepted on the
    /// port for nodes: what `peer_certificates()` and `alpn_protocol()` say after the handshake.
    pub fn peer(
        &self,
        certificates: Option<&[CertificateDer<'_>]>,
        protocol: Option<&[u8]>,
    ) -> std::result::Result<Peer, PeerRefusal> {
        let Some(first) = certificates.and_then(|c| c.first()) else {
            return match protocol == Some(JOIN_PROTOCOL) {
                true => Ok(Peer::Joiner),
                false => Err(PeerRefusal::Nobody),
            };
        };
        let read = Certificate::parse(first).map_err(|_| PeerRefusal::Malformed)?;
        match Identity::of(&read) {
            _ if protocol != Some(NODE_PROTOCOL) => Err(PeerRefusal::WrongUsage),
            Some(Identity::Node { .. }) => {
                let node = crate::verify::node_of(&read, self.context.cluster, self.context.rules)?;
                self.context.refuse_revoked(node)?;
                Ok(Peer::Node(node))
            }
            Some(Identity::Role(role)) => Ok(Peer::Role(role)),
            None => Err(PeerRefusal::Nobody),
        }
    }
    /// The role of a SQL client's certificate; `None`: it has shown none.
    pub fn client(&self, certificates: Option<&[CertificateDer<'_>]>) -> std::result::Result<Option<String>, PeerRefusal> {
        let Some(first) = certificates.and_then(|c| c.first()) else { return Ok(None) };
        verifiers::role_of(&Certificate::parse(first).map_err(|_| PeerRefusal::Malformed)?, self.context.rules).map(Some)
    }
    /// The cluster that it is of.
    pub fn cluster(&self) -> ClusterId {
        self.context.cluster
    }
    /// Whom it trusts, and whose certificate it shows. An error if its authority is not in its own
    /// bundle, which [`Tls::new`] refuses.
    pub fn report(&self) -> Result<Report> {
        let current = self.current();
        let last = current.pair.chain().last().expect("a pair has a certificate");
        let authorities = current.bundle.authorities();
        let shows = authorities.iter().find(|a| a.subject == last.issuer);
        let shows = shows.ok_or_else(|| Error::new(Kind::Absent, "this node's certificate has no authority"))?.fingerprint();
        Ok(Report { trusts: authorities.iter().map(Certificate::fingerprint).collect(), shows })
    }
    pub(crate) fn now(&self) -> Moment {
        self.context.now()
    }
    /// The node whose verified certificate this is, if it may take part.
    pub(crate) fn admitted(&self, certificate: &Certificate) -> std::result::Result<NodeId, PeerRefusal> {
        let node = crate::verify::node_of(certificate, self.context.cluster, self.context.rules)?;
        self.context.refuse_revoked(node)?;
        Ok(node)
    }
    /// Whether a peer that was admitted would be admitted now.
    pub fn still_admits(&self, peer: &Peer) -> bool {
        match peer {
            Peer::Node(node) => self.context.refuse_revoked(*node).is_ok(),
            Peer::Role(_) | Peer::Joiner => true,
        }
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tls({}, node {})", self.context.cluster, self.current().node.0)
    }
}

/// Who is at the other end of a connection on the port for nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// This node, whatever its messages say.
    Node(NodeId),
    /// A command of an operator, with a client's certificate.
    Role(String),
    /// Nobody yet: it may join.
    Joiner,
}

/// Whom a caller means, as the handshake's server name: it is not sent, and no address is looked up
/// for it. 0: any node of the cluster.
pub fn name_of(node: NodeId) -> ServerName<'static> {
    let name = DnsName::try_from(format!("n{}.meridian.invalid", node.0));
    ServerName::DnsName(name.expect("a name in the right form"))
}

/// The reverse of [`name_of`].
fn called(name: &ServerName<'_>) -> Option<NodeId> {
    let ServerName::DnsName(name) = name else { return None };
    let id = name.as_ref().strip_prefix('n')?.strip_suffix(".meridian.invalid")?.parse().ok()?;
    Some(NodeId(id))
}

/// The node that a caller has reached, from `peer_certificates()` after the handshake.
pub fn reached(certificates: Option<&[CertificateDer<'_>]>) -> Option<NodeId> {
    match Identity::of(&Certificate::parse(certificates?.first()?).ok()?)? {
        Identity::Node { node, .. } => Some(node),
        Identity::Role(_) => None,
    }
}

/// Whether the other side has ended the connection because this node was decommissioned.
pub fn is_told_revoked(error: &std::io::Error) -> bool {
    let inner = error.get_ref().and_then(|e| e.downcast_ref::<rustls::Error>());
    matches!(inner, Some(rustls::Error::AlertReceived(rustls::AlertDescription::CertificateRevoked)))
}

/// Why a handshake has failed, as a sentence for the operator.
pub fn explain(error: &std::io::Error) -> String {
    let inner = error.get_ref().and_then(|e| e.downcast_ref::<rustls::Error>());
    inner.map_or_else(|| error.to_string(), verifiers::sentence)
}

fn configs(context: &Context, bundle: Bundle, pair: &Pair) -> Result<Configs> {
    let (certificate, now) = (pair.certificate(), context.now());
    let between: Vec<CertificateDer<'_>> = pair.chain()[1..].iter().map(|c| c.der().clone()).collect();
    let refused = |e: PeerRefusal| Error::new(Kind::Mismatch, format!("this node's certificate cannot be used: {e}"));
    for usage in [Usage::Server, Usage::Client] {
        verify(certificate.der(), &between, &bundle, usage, now).map_err(refused)?;
    }
    let node = crate::verify::node_of(certificate, context.cluster, context.rules).map_err(refused)?;
    let key = Arc::new(CertifiedKey::new(shown(&bundle, pair), pair.key().signer()?));
    let verifier = Arc::new(NodeVerifier { context: context.clone(), bundle: bundle.clone(), signatures: Signatures::default() });
    let wrong = |e: rustls::Error| Error::malformed(format!("TLS cannot be set up: {e}"));
    let provider = || Arc::new(rustls::crypto::ring::default_provider());
    let time = || Arc::new(Time(context.clock.clone()));
    let resolver = Arc::new(rustls::sign::SingleCertAndKey::from(key.clone()));

    let only_13: &[&rustls::SupportedProtocolVersion] = &[&rustls::version::TLS13];
    let mut node_server = ServerConfig::builder_with_details(provider(), time())
        .with_protocol_versions(only_13)
        .map_err(wrong)?
        .with_client_cert_verifier(verifier.clone())
        .with_cert_resolver(resolver.clone());
    node_server.alpn_protocols = vec![NODE_PROTOCOL.to_vec(), JOIN_PROTOCOL.to_vec()];
    never_resume(&mut node_server, context.rules);

    let mut node_client = ClientConfig::builder_with_details(provider(), time())
        .with_protocol_versions(only_13)
        .map_err(wrong)?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_client_cert_resolver(resolver.clone());
    node_client.alpn_protocols = vec![NODE_PROTOCOL.to_vec()];
    node_client.enable_sni = false;
    if context.rules.resumes_no_sessions() {
        node_client.resumption = rustls::client::Resumption::disabled();
    }

    let mut sql_server = ServerConfig::builder_with_details(provider(), time())
        .with_protocol_versions(rustls::ALL_VERSIONS)
        .map_err(wrong)?
        .with_client_cert_verifier(Arc::new(ClientVerifier::new(context.clone(), bundle.clone())))
        .with_cert_resolver(resolver);
    sql_server.alpn_protocols = vec![SQL_PROTOCOL.to_vec()];
    never_resume(&mut sql_server, context.rules);

    Ok(Configs {
        node_server: Arc::new(node_server),
        node_client: Arc::new(node_client),
        sql_server: Arc::new(sql_server),
        end_point: end_point(certificate),
        node,
        certificate: certificate.clone(),
        pair: pair.clone(),
        bundle,
    })
}

/// What a node shows: its certificate, those between, and the authority, which a joiner looks for.
fn shown(bundle: &Bundle, pair: &Pair) -> Vec<CertificateDer<'static>> {
    let mut chain: Vec<CertificateDer<'static>> = pair.chain().iter().map(|c| c.der().clone()).collect();
    let last = pair.chain().last().expect("a pair has a certificate");
    let authority = bundle.authorities().iter().find(|a| a.subject == last.issuer);
    chain.extend(authority.map(|a| a.der().clone()).filter(|der| !chain.contains(der)));
    chain
}

fn never_resume(config: &mut ServerConfig, rules: Rules) {
    if !rules.resumes_no_sessions() {
        config.session_storage = ServerSessionMemoryCache::new(16);
        return;
    }
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
}

/// What SCRAM-SHA-256-PLUS binds to: the certificate's hash, by the function of its signature, or
/// SHA-256 if that one is MD5 or SHA-1 (RFC 5929, §4.1). `None`: the signature has no such
/// function, or another one, and there is nothing to bind to.
pub fn end_point(certificate: &Certificate) -> Option<Vec<u8>> {
    let function = hash_of(&certificate.signature_algorithm)?;
    Some(ring::digest::digest(function, certificate.der()).as_ref().to_vec())
}

fn hash_of(algorithm: &[u8]) -> Option<&'static ring::digest::Algorithm> {
    use ring::digest::{SHA256, SHA384, SHA512};
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1];
    const ECDSA_SHA2: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3];
    const ECDSA_SHA1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1];
    let mut parts = Reader::new(algorithm);
    let id = parts.expect(tag::OID)?;
    let (last, family) = id.split_last()?;
    match (family, last) {
        (RSA, 4 | 5 | 11) | (ECDSA_SHA2, 2) => Some(&SHA256),
        (RSA, 12) | (ECDSA_SHA2, 3) => Some(&SHA384),
        (RSA, 13) | (ECDSA_SHA2, 4) => Some(&SHA512),
        // RSASSA-PSS has it among its parameters (RFC 4055, §3.1); without it, it is SHA-1.
        (RSA, 10) => pss_hash(parts.expect(tag::SEQUENCE)?),
        _ if id == ECDSA_SHA1 => Some(&SHA256),
        _ => None,
    }
}

fn pss_hash(parameters: &[u8]) -> Option<&'static ring::digest::Algorithm> {
    const SHA2: &[u8] = &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2];
    let Some(hash) = Reader::new(parameters).optional(tag::explicit(0)) else { return Some(&ring::digest::SHA256) };
    let (last, family) = Reader::new(only(hash.contents, tag::SEQUENCE)?).expect(tag::OID)?.split_last()?;
    match (family, last) {
        (SHA2, 1) => Some(&ring::digest::SHA256),
        (SHA2, 2) => Some(&ring::digest::SHA384),
        (SHA2, 3) => Some(&ring::digest::SHA512),
        _ => None,
    }
}
