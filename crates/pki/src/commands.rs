//! What `meridian cert` does: an operator's own certificates, made where the cluster is not.
//!
//! `create-ca` makes a directory with an authority; `create-node` and `create-client` make a
//! certificate in another directory, with the authority's certificate and without its key. That
//! directory is what a node is given as `--certs-dir`. The authority's key stays where it is.

use crate::authority::{Authority, Hosts};
use crate::certificate::{Certificate, Fingerprint};
use crate::directory::{AUTHORITIES, AUTHORITY_KEY, Directory, NEXT_AUTHORITY_KEY, NODE, Pair, client_name};
use crate::error::{Error, Kind, Result};
use crate::identity::{ClusterId, Identity, cluster_of};
use crate::key::PrivateKey;
use crate::renewal;
use crate::time::Moment;
use crate::verify::{Usage, verify};
use meridian_base::NodeId;
use std::path::Path;

/// `meridian cert create-ca`: a new authority of a new cluster. Refused if there is one.
pub fn create_ca(path: &Path, now: Moment) -> Result<Fingerprint> {
    create_ca_of(path, ClusterId::random(), now)
}

/// The same for a cluster that is there already, and had none.
pub fn create_ca_of(path: &Path, cluster: ClusterId, now: Moment) -> Result<Fingerprint> {
    let directory = Directory::create(path)?;
    let authority = Authority::create(cluster, now)?;
    directory.found(&authority)?;
    Ok(authority.certificate().fingerprint())
}

/// `meridian cert create-node`: a pair for a node, in the directory `into`. `cluster` is needed for
/// an authority of other programs only, whose certificate does not name it.
pub fn create_node(
    path: &Path,
    into: &Path,
    node: NodeId,
    hosts: &Hosts,
    cluster: Option<ClusterId>,
    now: Moment,
    life_secs: u64,
) -> Result<Certificate> {
    let authority = Directory::at(path).authority()?;
    let cluster = match (cluster_of(authority.certificate()), cluster) {
        (Some(named), Some(asked)) if named != asked => {
            return Err(Error::new(Kind::Mismatch, format!("the authority is that of cluster {named}, not of {asked}")));
        }
        (Some(cluster), _) | (None, Some(cluster)) => cluster,
        (None, None) => return Err(Error::new(Kind::Absent, "the authority's certificate names no cluster: say which one")),
    };
    let key = PrivateKey::generate();
    let made = authority.sign_node(cluster, node, hosts, &key.public()?, now, life_secs)?;
    place(path, into, NODE, Pair::new(vec![made.clone()], key)?)?;
    Ok(made)
}

/// `meridian cert create-client`: a pair for a role, in the directory `into`.
pub fn create_client(path: &Path, into: &Path, role: &str, now: Moment, life_secs: u64) -> Result<Certificate> {
    let name = client_name(role)?;
    let authority = Directory::at(path).authority()?;
    let key = PrivateKey::generate();
    let made = authority.sign_client(role, &key.public()?, now, life_secs)?;
    place(path, into, &name, Pair::new(vec![made.clone()], key)?)?;
    Ok(made)
}

/// Puts a pair into a directory, with the authorities it is verified by.
fn place(path: &Path, into: &Path, name: &str, pair: Pair) -> Result<()> {
    let (from, into) = (Directory::at(path), Directory::create(into)?);
    if from.path() != into.path() {
        let mut bundle = from.bundle()?;
        if into.has(AUTHORITIES) {
            into.bundle()?.authorities().iter().try_for_each(|a| bundle.add(a.clone()))?;
        }
        into.save_bundle(&bundle)?;
    }
    into.save_pair(name, &pair)
}

/// A line of `meridian cert list`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name of the file.
    pub file: String,
    /// Whose it is.
    pub holder: String,
    /// Of the certificate.
    pub fingerprint: Option<Fingerprint>,
    /// Valid up to here.
    pub not_after: Option<Moment>,
    /// Whether its key is there.
    pub has_key: bool,
    /// What is wrong with it, or will be soon.
    pub problem: Option<String>,
}

/// `meridian cert list`: what is in a directory, and what is wrong with it.
pub fn list(path: &Path, now: Moment) -> Result<Vec<Entry>> {
    let directory = Directory::at(path);
    let mut entries = Vec::new();
    for name in directory.names()? {
        match name.strip_suffix(".crt") {
            Some("ca") => entries.extend(list_authorities(&directory, now)),
            Some(stem) => entries.push(list_pair(&directory, stem, now)),
            None => {}
        }
    }
    Ok(entries)
}

fn broken(file: &str, e: &Error) -> Entry {
    let problem = Some(e.to_string());
    Entry { file: file.to_string(), holder: String::new(), fingerprint: None, not_after: None, has_key: false, problem }
}

fn list_authorities(directory: &Directory, now: Moment) -> Vec<Entry> {
    let bundle = match directory.bundle() {
        Ok(bundle) => bundle,
        Err(e) => return vec![broken(AUTHORITIES, &e)],
    };
    let signs = match directory.has(AUTHORITY_KEY) {
        true => Some(directory.authority()),
        false => None,
    };
    let mut entries: Vec<Entry> = Vec::new();
    for authority in bundle.authorities() {
        let has_key = signs.iter().flatten().any(|s| s.certificate() == authority);
        let holder = match cluster_of(authority) {
            Some(cluster) => format!("authority of cluster {cluster}"),
            None => format!("authority {:?}", authority.common_name.as_deref().unwrap_or_default()),
        };
        entries.push(Entry {
            file: AUTHORITIES.to_string(),
            holder,
            fingerprint: Some(authority.fingerprint()),
            not_after: Some(authority.not_after),
            has_key,
            problem: renewal::warning(authority.not_before, authority.not_after, now),
        });
    }
    if let Some(Err(e)) = signs {
        entries.push(broken(AUTHORITY_KEY, &e));
    }
    if directory.has(NEXT_AUTHORITY_KEY) {
        let problem = Error::new(Kind::Refused, "a rotation of the authority is under way");
        entries.push(broken(NEXT_AUTHORITY_KEY, &problem));
    }
    entries
}

fn list_pair(directory: &Directory, stem: &str, now: Moment) -> Entry {
    let file = format!("{stem}.crt");
    let chain = match directory.chain(stem) {
        Ok(chain) => chain,
        Err(e) => return broken(&file, &e),
    };
    let certificate = &chain[0];
    let identity = Identity::of(certificate);
    let usage = if stem == NODE { Usage::Server } else { Usage::Client };
    let between: Vec<_> = chain[1..].iter().map(|c| c.der().clone()).collect();
    let verified = || {
        let bundle = directory.bundle().map_err(|e| e.to_string())?;
        verify(certificate.der(), &between, &bundle, usage, now).map_err(|e| e.to_string())
    };
    let is_named_so = match &identity {
        Some(Identity::Node { .. }) => stem == NODE,
        Some(Identity::Role(role)) => client_name(role).is_ok_and(|name| name == stem),
        None => false,
    };
    let problem = match (verified(), directory.pair(stem)) {
        (Err(e), _) => Some(e),
        (Ok(_), Err(e)) if e.kind() != Kind::Absent => Some(e.to_string()),
        (Ok(_), Err(_)) => Some("its key is not here".to_string()),
        (Ok(_), Ok(_)) if !is_named_so => Some("the file is not named as its certificate says".to_string()),
        (Ok(_), Ok(_)) => renewal::warning(certificate.not_before, certificate.not_after, now),
    };
    Entry {
        holder: identity.map_or("nobody".to_string(), |i| i.to_string()),
        fingerprint: Some(certificate.fingerprint()),
        not_after: Some(certificate.not_after),
        has_key: directory.pair(stem).is_ok(),
        problem,
        file,
    }
}
