//! Both sides of the exchange.

use super::stored::{Binding, Refusal, StoredToken, Use, prove};
use super::token::{Token, TokenId};
use crate::authority::{HOSTS_MAX, Hosts};
use crate::certificate::{Certificate, Fingerprint};
use crate::directory::Pair;
use crate::error::{Error, Result};
use crate::identity::{ClusterId, Identity};
use crate::key::{PrivateKey, PublicKey};
use crate::rules::Rules;
use crate::time::Moment;
use crate::tls::{Clock, JOIN_PROTOCOL, Signatures, signatures};
use crate::verify::{Bundle, PeerRefusal, Usage, verify};
use meridian_base::{NodeId, envelope};
use rustls::ClientConfig;
use rustls::client::danger::{ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// The longest message of either side: eight authorities of other programs fit. The caller reads no
/// more than that.
pub const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// What a joiner says of itself.
const ABOUT_BYTES_MAX: usize = 4 << 10;
/// All that a joiner is ever told when it is refused.
pub const REFUSED: &str = "this token does not let you in: ask for a new one, and see the log of the node that was asked";

/// What a joiner sends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// Which token.
    pub token: TokenId,
    /// The key that is to be certified.
    pub key: PublicKey,
    /// The names and addresses that are to be in the certificate, as text.
    pub hosts: Vec<String>,
    /// What the caller has to say: who it is and where, in its own encoding.
    pub about: Vec<u8>,
    /// That whoever asks knows the secret: see the module.
    pub proof: [u8; 32],
    /// That it has the private key: a signature of the binding and of what is asked for.
    pub possession: Vec<u8>,
}

impl Ask {
    fn asked(&self, has_key: bool) -> Vec<u8> {
        let key = if has_key { self.key.bytes() } else { &[] };
        envelope::encode(&(self.token, key, &self.hosts, &self.about))
    }
    /// What the proof is about.
    pub(super) fn proven(&self, rules: Rules) -> Vec<u8> {
        self.asked(rules.binds_proofs_to_keys())
    }
    fn signed(&self, binding: &Binding) -> Vec<u8> {
        [b"meridian join possession".as_slice(), &binding.0, &self.asked(true)].concat()
    }
    pub(super) fn has_key(&self, binding: &Binding) -> bool {
        self.key.has_signed(&self.signed(binding), &self.possession)
    }
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// Welcome.
    Granted(Granted),
    /// No; always with the same words.
    Refused(String),
    /// The cluster cannot take a node in now. Says nothing about the token: ask again.
    NotNow,
}

/// What makes a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    /// Its certificate, as DER, and those between it and the authority.
    pub chain: Vec<Vec<u8>>,
    /// The authorities that it trusts, as DER.
    pub authorities: Vec<Vec<u8>>,
    /// What the caller has to say: the cluster's nodes and their addresses, in its own encoding.
    pub about: Vec<u8>,
}

/// What a joiner has become.
#[derive(Clone, Debug)]
pub struct Membership {
    pub cluster: ClusterId,
    pub node: NodeId,
    pub pair: Pair,
    pub bundle: Bundle,
    /// [`Granted::about`].
    pub about: Vec<u8>,
}

/// Why a process has not become a node: for its operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JoinFailure {
    /// The process that answers is not of the cluster that the token is of. Nothing was sent.
    NotTheCluster(PeerRefusal),
    /// The cluster does not want it.
    Refused,
    /// The answer is not what it should be.
    BadAnswer(String),
}

impl fmt::Display for JoinFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JoinFailure::NotTheCluster(why) => {
                write!(f, "whoever answers there is not of the cluster that made the join token, and was told nothing: {why}")
            }
            JoinFailure::Refused => write!(f, "{REFUSED}"),
            JoinFailure::BadAnswer(why) => write!(f, "the answer to the request to join cannot be used: {why}"),
        }
    }
}

impl std::error::Error for JoinFailure {}

/// What a joiner's caller does next.
#[derive(Debug)]
pub enum JoinerAction {
    /// Sends this, and waits for the answer.
    Send(Vec<u8>),
    /// Stores this durably; it is a node now.
    Store(Box<Membership>),
    /// Closes, and connects again later with a new [`Joiner`] of the same key.
    Retry,
    /// Closes, and tells the operator.
    Fail(JoinFailure),
}

#[derive(Debug)]
enum JoinerState {
    Fresh,
    Asked(ClusterId),
    Over,
}

/// The side without a certificate, for one connection. The same key is used until there is an
/// answer: make it durable before the first attempt.
#[derive(Debug)]
pub struct Joiner {
    token: Token,
    key: PrivateKey,
    hosts: Vec<String>,
    about: Vec<u8>,
    state: JoinerState,
    rules: Rules,
}

impl Joiner {
    /// Nothing was sent yet.
    pub fn new(token: Token, key: PrivateKey, hosts: Vec<String>, about: Vec<u8>, rules: Rules) -> Joiner {
        Joiner { token, key, hosts, about, state: JoinerState::Fresh, rules }
    }
    /// For its handshake, which fails with anybody else than the cluster of the token.
    pub fn config(&self, clock: Clock) -> Result<ClientConfig> {
        let verifier = JoinVerifier {
            authority: self.token.authority,
            clock: ClockBox(clock),
            signatures: Signatures::default(),
            rules: self.rules,
        };
        let mut config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|e| Error::malformed(format!("TLS cannot be set up: {e}")))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        config.alpn_protocols = vec![JOIN_PROTOCOL.to_vec()];
        config.enable_sni = false;
        config.resumption = rustls::client::Resumption::disabled();
        Ok(config)
    }
    /// The handshake is complete: the certificates that were shown, and the connection's binding.
    /// Looks at them again, whatever the configuration of the handshake was: nothing that depends
    /// on the secret is made before.
    pub fn connected(&mut self, shown: &[CertificateDer<'_>], binding: &Binding, now: Moment) -> JoinerAction {
        assert!(matches!(self.state, JoinerState::Fresh), "a joiner is for one connection");
        self.state = JoinerState::Over;
        let cluster = match of_the_cluster(shown, self.token.authority, now, self.rules) {
            Ok(cluster) => cluster,
            Err(why) => return JoinerAction::Fail(JoinFailure::NotTheCluster(why)),
        };
        match self.ask(binding) {
            Ok(bytes) => {
                self.state = JoinerState::Asked(cluster);
                JoinerAction::Send(bytes)
            }
            Err(e) => JoinerAction::Fail(JoinFailure::BadAnswer(e.to_string())),
        }
    }
    fn ask(&self, binding: &Binding) -> Result<Vec<u8>> {
        let (hosts, about) = (self.hosts.clone(), self.about.clone());
        let mut ask = Ask { token: self.token.id, key: self.key.public()?, hosts, about, proof: [0; 32], possession: Vec::new() };
        ask.proof = prove(&self.token, binding, &ask.proven(self.rules), self.rules);
        ask.possession = self.key.sign(&ask.signed(binding))?;
        Ok(envelope::encode(&ask))
    }
    /// The answer.
    pub fn received(&mut self, bytes: &[u8], now: Moment) -> JoinerAction {
        let JoinerState::Asked(cluster) = std::mem::replace(&mut self.state, JoinerState::Over) else {
            return JoinerAction::Fail(JoinFailure::BadAnswer("nothing was asked".into()));
        };
        match decode::<Answer>(bytes) {
            Some(Answer::Granted(granted)) => match self.membership(cluster, granted, now) {
                Ok(membership) => JoinerAction::Store(Box::new(membership)),
                Err(why) => JoinerAction::Fail(JoinFailure::BadAnswer(why)),
            },
            Some(Answer::Refused(_)) => JoinerAction::Fail(JoinFailure::Refused),
            Some(Answer::NotNow) => JoinerAction::Retry,
            None => JoinerAction::Fail(JoinFailure::BadAnswer("it cannot be read".into())),
        }
    }
    fn membership(&self, ours: ClusterId, granted: Granted, now: Moment) -> std::result::Result<Membership, String> {
        let read = |all: &[Vec<u8>]| all.iter().map(|der| Certificate::parse(der)).collect::<Result<Vec<_>>>();
        let text = |e: Error| e.to_string();
        let bundle = Bundle::new(read(&granted.authorities).map_err(text)?).map_err(text)?;
        let pair = Pair::new(read(&granted.chain).map_err(text)?, self.key.clone()).map_err(text)?;
        let between: Vec<_> = pair.chain()[1..].iter().map(|c| c.der().clone()).collect();
        for usage in [Usage::Server, Usage::Client] {
            verify(pair.certificate().der(), &between, &bundle, usage, now).map_err(|e| e.to_string())?;
        }
        match Identity::of(pair.certificate()) {
            Some(Identity::Node { cluster, node }) if cluster == ours => {
                Ok(Membership { cluster, node, pair, bundle, about: granted.about })
            }
            _ => Err("the certificate is not that of a node of this cluster".into()),
        }
    }
}

fn decode<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> Option<T> {
    (bytes.len() <= MESSAGE_BYTES_MAX).then(|| envelope::decode(bytes).ok()).flatten()
}

/// Whether a node of the cluster with this authority has shown these certificates; which cluster.
fn of_the_cluster(
    shown: &[CertificateDer<'_>],
    authority: Fingerprint,
    now: Moment,
    rules: Rules,
) -> std::result::Result<ClusterId, PeerRefusal> {
    let (first, others) = shown.split_first().ok_or(PeerRefusal::Nobody)?;
    let skips = !rules.joiners_verify();
    let is_named = |der: &CertificateDer<'_>| Fingerprint::of(der) == authority || skips;
    let root = others.iter().find(|der| is_named(der)).ok_or(PeerRefusal::OtherAuthority)?;
    let root = Certificate::parse(root).map_err(|_| PeerRefusal::Malformed)?;
    let bundle = Bundle::new(vec![root]).map_err(|_| PeerRefusal::OtherAuthority)?;
    let certificate = verify(first, others, &bundle, Usage::Server, now)?;
    match Identity::of(&certificate) {
        Some(Identity::Node { cluster, .. }) => Ok(cluster),
        Some(Identity::Role(_)) => Err(PeerRefusal::NoNode),
        None => Err(PeerRefusal::Nobody),
    }
}

struct ClockBox(Clock);

impl fmt::Debug for ClockBox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

#[derive(Debug)]
struct JoinVerifier {
    authority: Fingerprint,
    clock: ClockBox,
    signatures: Signatures,
    rules: Rules,
}

impl ServerCertVerifier for JoinVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        let shown = [std::slice::from_ref(end_entity), intermediates].concat();
        of_the_cluster(&shown, self.authority, (self.clock.0)(), self.rules)?;
        Ok(ServerCertVerified::assertion())
    }
    signatures!();
}

/// A process whose proof is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission {
    /// The token that is used up by it.
    pub token: TokenId,
    /// A new node, or one that asks again.
    pub is_use: Use,
    /// The key to certify.
    pub key: PublicKey,
    /// The names and addresses to certify.
    pub hosts: Hosts,
    /// [`Ask::about`].
    pub about: Vec<u8>,
}

/// What the caller of [`Host`] does next.
#[derive(Debug)]
pub enum HostAction {
    /// Looks for this token in a copy of the catalog that is known to be the newest, and calls
    /// [`Host::found`].
    LookUp(TokenId),
    /// Registers a node and marks the token as used in one step ([`StoredToken::redeem`]), has its
    /// certificate signed, and calls [`Host::granted`], or [`Host::refused`].
    Register(Box<Admission>),
    /// Sends this and closes. The reason, if there is one, is for the log.
    Send(Vec<u8>, Option<Refusal>),
}

#[derive(Debug)]
enum HostState {
    Fresh,
    LooksUp(Box<(Ask, Hosts)>),
    Registers,
    Over,
}

/// The side that lets a process in, for one connection.
#[derive(Debug)]
pub struct Host {
    binding: Binding,
    state: HostState,
    rules: Rules,
}

impl Host {
    /// For a connection with this binding.
    pub fn new(binding: Binding, rules: Rules) -> Host {
        Host { binding, state: HostState::Fresh, rules }
    }
    /// The first and only message of the joiner.
    pub fn received(&mut self, bytes: &[u8]) -> HostAction {
        assert!(matches!(self.state, HostState::Fresh), "a joiner sends one message");
        let read = decode::<Ask>(bytes).filter(|ask| ask.hosts.len() <= HOSTS_MAX && ask.about.len() <= ABOUT_BYTES_MAX);
        let Some(ask) = read else { return self.refused(Refusal::Malformed) };
        let Ok(hosts) = Hosts::parse(ask.hosts.iter().map(String::as_str)) else { return self.refused(Refusal::Malformed) };
        let token = ask.token;
        self.state = HostState::LooksUp(Box::new((ask, hosts)));
        HostAction::LookUp(token)
    }
    /// What the catalog has of the token.
    pub fn found(&mut self, stored: Option<&StoredToken>, now: Moment) -> HostAction {
        let HostState::LooksUp(asked) = std::mem::replace(&mut self.state, HostState::Registers) else {
            panic!("a token was found that was not looked for");
        };
        let (ask, hosts) = *asked;
        match StoredToken::judge(stored, &ask, &self.binding, now, self.rules) {
            Err(why) => self.refused(why),
            Ok(is_use) => {
                HostAction::Register(Box::new(Admission { token: ask.token, is_use, key: ask.key, hosts, about: ask.about }))
            }
        }
    }
    /// The node is registered, and has a certificate.
    pub fn granted(&mut self, chain: &[Certificate], bundle: &Bundle, about: Vec<u8>) -> HostAction {
        assert!(matches!(self.state, HostState::Registers), "nobody is let in without a proof");
        let der = |all: &[Certificate]| all.iter().map(|c| c.der().to_vec()).collect();
        self.answer(&Answer::Granted(Granted { chain: der(chain), authorities: der(bundle.authorities()), about }), None)
    }
    /// It is not let in.
    pub fn refused(&mut self, why: Refusal) -> HostAction {
        let said = match self.rules.hides_refusals() {
            false => why.to_string(),
            true => REFUSED.to_string(),
        };
        self.answer(&Answer::Refused(said), Some(why))
    }
    /// The catalog, or whoever signs, does not answer.
    pub fn not_now(&mut self) -> HostAction {
        self.answer(&Answer::NotNow, None)
    }
    fn answer(&mut self, answer: &Answer, why: Option<Refusal>) -> HostAction {
        self.state = HostState::Over;
        HostAction::Send(envelope::encode(answer), why)
    }
}
