//! How a process with a token and an empty directory becomes a node of a secure cluster:
//! [`meridian_pki::join`] over a connection.

use crate::catalog::rows::NodeRow;
use crate::membership::address_book;
use crate::membership::certificates::{Certificates, hosts_of, now, unusable};
use crate::membership::founding::{Hindrance, JOIN_CALL, Notice, starting};
use crate::membership::identity::{self, Identity};
use crate::membership::shared::Shared;
use crate::transport::rpc::{CONNECT_TIMEOUT, read_message, write_message};
use crate::transport::security::clock_of;
use crate::transport::wire::{NodeRecord, Request, Response};
use meridian_base::{Error, ErrorKind, NodeId, Result, envelope};
use meridian_pki::join::{Binding, JoinFailure, Joiner, JoinerAction, MESSAGE_BYTES_MAX, Membership, Token};
use meridian_pki::tls::{self, name_of};
use meridian_pki::{Directory, PrivateKey};
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsConnector;

/// How long a process waits before it asks again.
const PAUSE: Duration = Duration::from_millis(300);
const SPREAD_MILLIS: u64 = 700;

/// A process that joins a secure cluster.
pub(crate) struct Joining<'a> {
    pub shared: &'a Arc<Shared>,
    pub certificates: &'a Arc<Certificates>,
    /// Addresses of members.
    pub others: Vec<String>,
    pub record: &'a NodeRecord,
    pub hindrance: &'a Hindrance,
}

/// What one attempt has come to.
enum Attempt {
    Joined(Box<Membership>),
    /// For this reason not now.
    Later(String),
    Never(Error),
}

/// What the files of a node say that is to join.
enum Stood {
    /// A process that ended after it had got its certificate, and before it had written down who it
    /// is.
    Joined(Identity),
    /// The operator has made a certificate for it.
    Certified(Identity),
    /// It is to ask for one, with this key.
    New(PrivateKey),
}

fn standing(certificates: &Certificates) -> Result<Stood> {
    let directory = Directory::create(certificates.directory.path()).map_err(unusable)?;
    let named = certificates.named()?;
    let identity = named.map(|(cluster, node)| Identity { cluster: cluster.0, node, is_founding: false });
    match identity {
        Some(identity) if directory.has_joined() => Ok(Stood::Joined(identity)),
        Some(identity) => Ok(Stood::Certified(identity)),
        None if certificates.token.is_none() => Err(no_token()),
        None => Ok(Stood::New(directory.joining_key().map_err(unusable)?)),
    }
}

impl Joining<'_> {
    /// Takes as long as it takes; an error says that waiting is of no use.
    pub async fn identity(&self) -> Result<Identity> {
        let key = match self.certificates.at_files(&self.shared.runtime, standing).await? {
            Stood::Joined(identity) => return self.become_member(identity, &[]).await,
            Stood::Certified(identity) => return self.with_certificate(identity).await,
            Stood::New(key) => key,
        };
        let Some(token) = self.certificates.token.clone() else { return Err(no_token()) };
        let mut notice = Notice::default();
        loop {
            let (mut waits, mut never) = (None, None);
            for addr in &self.others {
                match self.attempt(addr, &token, &key).await {
                    Attempt::Joined(membership) => return self.joined(*membership).await,
                    Attempt::Later(why) => waits = Some(format!("{addr}: {why}")),
                    Attempt::Never(e) if e.sqlstate() == REFUSED => return Err(e),
                    Attempt::Never(e) => never = Some(e),
                }
            }
            match (waits, never) {
                (None, Some(e)) => return Err(e),
                (waits, _) => self.wait(&mut notice, &waits.unwrap_or_else(|| "--join names nobody else".into())).await,
            }
        }
    }

    async fn wait(&self, notice: &mut Notice, why: &str) {
        let waits = format!("waiting to join the cluster: {why}");
        self.hindrance.send_replace(Some(starting(&waits)));
        notice.say(waits);
        tokio::time::sleep(PAUSE + Duration::from_millis(self.shared.runtime.random() % SPREAD_MILLIS)).await;
    }

    async fn attempt(&self, addr: &str, token: &Token, key: &PrivateKey) -> Attempt {
        let runtime = &self.shared.runtime;
        let row = NodeRow { record: self.record.clone(), versions: self.shared.rpc.versions() };
        let rules = self.certificates.keys.rules;
        let mut joiner = Joiner::new(token.clone(), key.clone(), hosts_of(self.record), envelope::encode(&row), rules);
        let config = match joiner.config(clock_of(runtime)) {
            Ok(config) => config,
            Err(e) => return Attempt::Never(unusable(e)),
        };
        let connecting = async {
            let stream = runtime.connect(addr).await?;
            TlsConnector::from(Arc::new(config)).connect(name_of(NodeId(0)), stream).await
        };
        let mut stream = match tokio::time::timeout(CONNECT_TIMEOUT, connecting).await {
            Err(_) => return Attempt::Later("it does not answer".into()),
            Ok(Ok(stream)) => stream,
            // A certificate that is not of the cluster: asking again is of no use.
            Ok(Err(e)) if e.kind() == std::io::ErrorKind::InvalidData => {
                let detail = format!("{addr}: {}", tls::explain(&e));
                let text = "whoever answers there is not of the cluster that made the join token, and was told nothing";
                return Attempt::Never(Error::fatal(text).detail(detail));
            }
            Ok(Err(e)) => return Attempt::Later(e.to_string()),
        };
        let connection = stream.get_ref().1;
        let binding = match Binding::export(connection) {
            Ok(binding) => binding,
            Err(e) => return Attempt::Later(e.to_string()),
        };
        let shown = connection.peer_certificates().unwrap_or_default().to_vec();
        let ask = match joiner.connected(&shown, &binding, now(runtime)) {
            JoinerAction::Send(ask) => ask,
            other => return self.concluded(addr, other),
        };
        let exchange = async {
            write_message(&mut stream, &ask).await?;
            read_message(&mut stream, MESSAGE_BYTES_MAX).await
        };
        match tokio::time::timeout(JOIN_CALL, exchange).await {
            Err(_) => Attempt::Later("no answer in time".into()),
            Ok(Err(e)) => Attempt::Later(tls::explain(&e)),
            Ok(Ok(answer)) => self.concluded(addr, joiner.received(&answer, now(runtime))),
        }
    }

    fn concluded(&self, addr: &str, action: JoinerAction) -> Attempt {
        match action {
            JoinerAction::Store(membership) => Attempt::Joined(membership),
            JoinerAction::Retry | JoinerAction::Send(_) => {
                Attempt::Later("the cluster cannot take this node in yet; the log of that node says why".into())
            }
            JoinerAction::Fail(JoinFailure::Refused) => Attempt::Never(
                Error::new(ErrorKind::Fatal, REFUSED, format!("the node at {addr} refuses this one"))
                    .detail(JoinFailure::Refused.to_string())
                    .hint("`meridian token create` makes another token; each lets one node in."),
            ),
            JoinerAction::Fail(other) => Attempt::Never(Error::fatal(other.to_string()).detail(addr)),
        }
    }

    async fn joined(&self, membership: Membership) -> Result<Identity> {
        let Membership { bundle, pair, .. } = &membership;
        let (bundle, pair) = (bundle.clone(), pair.clone());
        let saving = self.certificates.at_files(&self.shared.runtime, move |c| {
            c.directory.save_bundle(&bundle)?;
            c.directory.save_pair(meridian_pki::directory::NODE, &pair)
        });
        saving.await.map_err(unusable)?;
        let nodes = envelope::decode::<Vec<NodeRecord>>(&membership.about).unwrap_or_default();
        let identity = Identity { cluster: membership.cluster.0, node: membership.node, is_founding: false };
        self.become_member(identity, &nodes).await
    }

    async fn become_member(&self, identity: Identity, nodes: &[NodeRecord]) -> Result<Identity> {
        self.certificates.installed(&self.shared.runtime, identity).await?;
        identity::save(&self.shared.runtime, identity).await?;
        self.certificates.at_files(&self.shared.runtime, |c| c.directory.end_joining()).await.map_err(unusable)?;
        self.shared.set_identity(identity);
        nodes.iter().for_each(|n| self.shared.rpc.learn(n));
        if !nodes.is_empty() {
            address_book::save(&self.shared.runtime, nodes).await;
        }
        Ok(identity)
    }

    /// With a certificate that the operator made, and no token.
    async fn with_certificate(&self, identity: Identity) -> Result<Identity> {
        self.certificates.installed(&self.shared.runtime, identity).await?;
        self.shared.set_identity(identity);
        let (mut notice, mut addrs) = (Notice::default(), self.others.clone());
        loop {
            let mut waits = String::from("--join names nobody else");
            for addr in &addrs.clone() {
                let NodeRecord { addr: own, sql_addr, region, zone, .. } = self.record.clone();
                let (node, versions) = (identity.node, self.shared.rpc.versions());
                let ask = Request::Join { node, token: NEW, addr: own, sql_addr, region, zone, is_passed_on: false, versions };
                match self.shared.rpc.call_addr(addr, ask, JOIN_CALL).await {
                    Ok(Response::Joined(joined)) if joined.node == node => {
                        return self.become_member(identity, &joined.nodes).await;
                    }
                    // It says where the others are: the catalog's primary is one of them.
                    Ok(Response::Joined(joined)) => {
                        waits = format!("{addr}: it is not the catalog's primary");
                        addrs.extend(joined.nodes.into_iter().map(|n| n.addr));
                        addrs.sort();
                        addrs.dedup();
                        addrs.retain(|addr| *addr != self.record.addr);
                    }
                    Ok(_) => waits = format!("{addr}: it cannot take this node in yet"),
                    Err(e) if matches!(e.kind(), ErrorKind::Fatal | ErrorKind::Statement) => return Err(e),
                    Err(e) => waits = format!("{addr}: {e}"),
                }
            }
            self.wait(&mut notice, &waits).await;
        }
    }
}

/// The SQLSTATE of a joiner that the cluster does not want.
const REFUSED: &str = "28000";
/// [`Request::Join`]'s token of a node that has its certificate from the operator and is not in the
/// catalog yet.
pub(crate) const NEW: u128 = u128::MAX;

fn no_token() -> Error {
    Error::fatal("a secure cluster is founded by one node, started without --join, and the others join it with a token").hint(
        "`meridian token create` at a node of the cluster prints one: start this node with --join ADDRESS --join-token-file FILE.",
    )
}
