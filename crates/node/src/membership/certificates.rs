//! The certificates of this node: how it comes to them, and which of other nodes' are good no more.
//!
//! `docs/design/security.md` says who has what. In short: the founder makes the cluster's authority
//! and signs itself; others join with a token ([`crate::membership::joining`]), or were given their
//! certificate by the operator.

use crate::membership::identity::Identity;
use crate::transport::security::Keys;
use crate::transport::wire::NodeRecord;
use meridian_base::runtime::Runtime;
use meridian_base::{Error, NodeId, Result};
use meridian_pki::authority::Hosts;
use meridian_pki::directory::{AUTHORITIES, AUTHORITY_KEY, Directory, NODE, Pair, client_name};
use meridian_pki::join::Token;
use meridian_pki::tls::Tls;
use meridian_pki::{Authority, ClusterId, Moment, PrivateKey, Rules, authority, identity};
use std::path::PathBuf;
use std::sync::Arc;

/// How a node of a secure cluster is started.
#[derive(Clone)]
pub struct Security {
    /// Its certificate directory.
    pub certs: PathBuf,
    /// What it joins with, while its data directory is empty.
    pub token: Option<Token>,
    /// None in production.
    pub rules: Rules,
    /// How long its certificates are good that it signs as the authority.
    pub life_secs: u64,
}

impl Security {
    /// With the files in this directory.
    pub fn new(certs: impl Into<PathBuf>) -> Security {
        Security { certs: certs.into(), token: None, rules: Rules::ALL, life_secs: authority::NODE_LIFE_SECS }
    }
}

/// See the module.
pub(crate) struct Certificates {
    pub directory: Directory,
    pub keys: Arc<Keys>,
    pub token: Option<Token>,
    pub life_secs: u64,
    /// Held while its files are changed.
    pub changing: tokio::sync::Mutex<()>,
}

/// What an error of a certificate directory means for a node that starts.
pub(crate) fn unusable(e: meridian_pki::Error) -> Error {
    Error::fatal(e.to_string())
}

/// The time, as certificates know it.
pub(crate) fn now(runtime: &Arc<dyn Runtime>) -> Moment {
    Moment::from_micros(runtime.physical_micros())
}

/// The names that clients call a node by, as far as it knows them itself.
pub(crate) fn hosts_of(record: &NodeRecord) -> Vec<String> {
    let mut hosts: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(String::from).into();
    for addr in [&record.addr, &record.sql_addr] {
        let host = addr.rsplit_once(':').map_or(addr.as_str(), |(host, _)| host).trim_matches(['[', ']']);
        let is_unspecified = host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_unspecified());
        if !is_unspecified && Hosts::parse([host]).is_ok() && !hosts.iter().any(|h| h == host) {
            hosts.push(host.to_string());
        }
    }
    hosts
}

impl Certificates {
    pub(crate) fn new(security: &Security) -> Certificates {
        Certificates {
            directory: Directory::at(&security.certs),
            keys: Keys::new(security.rules),
            token: security.token.clone(),
            life_secs: security.life_secs,
            changing: Default::default(),
        }
    }

    /// Whether this node makes certificates.
    pub(crate) async fn signs(self: &Arc<Self>, runtime: &Arc<dyn Runtime>) -> bool {
        self.at_files(runtime, Certificates::has_authority).await
    }

    /// The same, where a disk may be waited for.
    pub(crate) fn has_authority(&self) -> bool {
        self.directory.has(AUTHORITY_KEY)
    }

    /// Whom the certificate in the directory names; `None`: there is none.
    pub(crate) fn named(&self) -> Result<Option<(ClusterId, NodeId)>> {
        if !self.directory.has(&format!("{NODE}.crt")) {
            return Ok(None);
        }
        let pair = self.directory.pair(NODE).map_err(unusable)?;
        match identity::Identity::of(pair.certificate()) {
            Some(identity::Identity::Node { cluster, node }) => Ok(Some((cluster, node))),
            _ => Err(Error::fatal(format!("the certificate in {} is not that of a node", self.directory.path().display()))),
        }
    }

    /// Takes the certificate from the directory: this process is that node. An error if it is
    /// another one's, or cannot be used.
    pub(crate) fn install(&self, runtime: &Arc<dyn Runtime>, identity: Identity) -> Result<()> {
        let place = self.directory.path().display();
        let Some((cluster, node)) = self.named()? else {
            return Err(Error::fatal(format!("there is no certificate for this node in {place}")).hint(
                "A data directory that was made with --insecure is started so, or made secure by `meridian cert upgrade`.",
            ));
        };
        if (cluster.0, node) != (identity.cluster, identity.node) {
            return Err(Error::fatal(format!(
                "the certificate in {place} is that of node {} of cluster {cluster}, and the data directory that of node {} of \
                 cluster {:032x}",
                node.0, identity.node.0, identity.cluster
            )));
        }
        let (bundle, pair) = (self.directory.bundle().map_err(unusable)?, self.directory.pair(NODE).map_err(unusable)?);
        let tls = Tls::new(self.keys.context(identity.cluster, runtime), bundle, &pair).map_err(|e| {
            unusable(e)
                .hint("`meridian cert create-node`, with the authority's directory, makes another certificate for this node.")
        })?;
        self.keys.set(Arc::new(tls));
        Ok(())
    }

    /// Does what reads or changes its files, where a disk may be waited for.
    pub(crate) async fn at_files<T: Send + 'static>(
        self: &Arc<Self>,
        runtime: &Arc<dyn Runtime>,
        work: impl FnOnce(&Certificates) -> T + Send + 'static,
    ) -> T {
        let certificates = self.clone();
        runtime.run_io("certificates", move || work(&certificates)).await
    }

    /// [`Certificates::install`], for a worker.
    pub(crate) async fn installed(self: &Arc<Self>, runtime: &Arc<dyn Runtime>, identity: Identity) -> Result<()> {
        let of_node = runtime.clone();
        self.at_files(runtime, move |c| c.install(&of_node, identity)).await
    }

    /// Takes what is in the directory from now on. After an error everything is as before.
    pub(crate) fn reload(&self) -> meridian_pki::Result<()> {
        let Some(tls) = self.keys.tls() else { return Ok(()) };
        tls.replace(self.directory.bundle()?, &self.directory.pair(NODE)?)
    }

    /// Makes what a new cluster begins with: an authority, unless there is one, this node's
    /// certificate, and one for the operator's commands.
    pub(crate) fn found(&self, runtime: &Arc<dyn Runtime>, record: &NodeRecord) -> Result<Identity> {
        let now = now(runtime);
        let directory = Directory::create(self.directory.path()).map_err(unusable)?;
        if let Some((cluster, node)) = self.named()? {
            if node != NodeId(1) {
                return Err(Error::fatal(format!(
                    "the certificate in {} is that of node {}: the node that founds a cluster is node 1",
                    directory.path().display(),
                    node.0
                )));
            }
            return Ok(Identity { cluster: cluster.0, node, is_founding: true });
        }
        if !directory.has(AUTHORITY_KEY) {
            if directory.has(AUTHORITIES) {
                let place = directory.path().display();
                return Err(Error::fatal(format!(
                    "{place} has an authority, and neither its key nor a certificate for this node"
                )));
            }
            let made = Authority::create(ClusterId::random(), now).map_err(unusable)?;
            directory.found(&made).map_err(unusable)?;
        }
        let authority = directory.authority().map_err(unusable)?;
        let Some(cluster) = identity::cluster_of(authority.certificate()) else {
            return Err(Error::fatal("the authority's certificate names no cluster")
                .hint("Make node.crt by `meridian cert create-node`."));
        };
        let made = || -> meridian_pki::Result<()> {
            let key = PrivateKey::generate();
            let role = authority.sign_client(OPERATOR, &key.public()?, now, authority::CLIENT_LIFE_SECS)?;
            directory.save_pair(&client_name(OPERATOR)?, &Pair::new(vec![role], key)?)?;
            let (key, hosts) = (PrivateKey::generate(), hosts_of(record));
            let hosts = Hosts::parse(hosts.iter().map(String::as_str))?;
            let node = authority.sign_node(cluster, NodeId(1), &hosts, &key.public()?, now, self.life_secs)?;
            directory.save_pair(NODE, &Pair::new(vec![node], key)?)
        };
        made().map_err(unusable)?;
        Ok(Identity { cluster: cluster.0, node: NodeId(1), is_founding: true })
    }
}

/// The role of the operator's certificate that a founder makes.
const OPERATOR: &str = "root";
