//! Who signs certificates: the nodes that have the authority's key. Others pass requests on to
//! them.

use crate::membership::certificates::{Certificates, now};
use crate::membership::shared::Shared;
use crate::membership::tokens;
use crate::transport::wire::{IssueCertificate, Issued, Request, Response, Standing};
use meridian_base::{Error, NodeId, Result};
use meridian_pki::Certificate;
use meridian_pki::authority::Hosts;
use meridian_pki::identity::cluster_of;
use meridian_pki::rotation::Phase;
use meridian_pki::{ClusterId, Fingerprint};
use std::sync::Arc;
use std::time::Duration;

const CALL: Duration = Duration::from_secs(3);

fn certificates(shared: &Shared) -> Result<&Arc<Certificates>> {
    shared.certificates.as_ref().ok_or_else(|| Error::unavailable("this cluster has no certificates"))
}

/// A certificate, of this node or of the first other one that signs.
pub(crate) async fn certified(shared: &Arc<Shared>, certify: &IssueCertificate) -> Result<Issued> {
    let mut last = Error::unavailable("no node with the authority's key is known");
    if certificates(shared)?.signs(&shared.runtime).await {
        match sign(shared, shared.me(), certify).await {
            Ok(certified) => return Ok(certified),
            Err(e) => last = e,
        }
    }
    let nodes = shared.catalog.nodes();
    for node in nodes.iter().filter(|n| n.id != shared.me() && n.standing != Standing::Decommissioned) {
        match shared.rpc.call(node.id, Request::IssueCertificate(certify.clone()), CALL).await {
            Ok(Response::Issued(certified)) => return Ok(certified),
            Ok(_) => {}
            Err(e) => last = e,
        }
    }
    Err(last)
}

/// What a node with the authority's key answers a member. Whose certificate it is comes from the
/// connection, or from the catalog, and not from what is asked.
pub(crate) async fn sign(shared: &Arc<Shared>, from: NodeId, certify: &IssueCertificate) -> Result<Issued> {
    let certificates = certificates(shared)?;
    if !certificates.signs(&shared.runtime).await {
        return Err(Error::unavailable("this node does not have the authority's key"));
    }
    let node = match certify.token {
        None => from,
        Some(id) => {
            let used = tokens::find(shared, id).await?.and_then(|token| token.used);
            let used = used.filter(|used| used.key == Fingerprint::of(certify.key.bytes()));
            used.ok_or_else(|| Error::unavailable(format!("join token {id} has not made a node with this key")))?.node
        }
    };
    let nodes = shared.catalog.nodes();
    if nodes.iter().any(|n| n.id == node && n.standing == Standing::Decommissioned) || node == NodeId(0) {
        return Err(Error::unavailable(format!("{node} is no member")));
    }
    let (of_node, certify) = (shared.clone(), certify.clone());
    let signing = certificates.at_files(&shared.runtime, move |c| signed(&of_node, c, node, &certify));
    let certified = signing.await.map_err(|e| Error::unavailable(e.to_string()))?;
    tracing::info!("event=certificate_signed node={} for={from}", node.0);
    Ok(certified)
}

/// A certificate for a node, made with the key in the files.
fn signed(
    shared: &Shared,
    certificates: &Certificates,
    node: NodeId,
    certify: &IssueCertificate,
) -> meridian_pki::Result<Issued> {
    let authority = certificates.directory.authority()?;
    // Another node may have the new one's key, or this one be about to take it.
    if let Some(Phase::Signing { new, .. }) = shared.catalog.rotation().map(|r| r.phase)
        && new != authority.certificate().fingerprint()
    {
        return Err(meridian_pki::Error::new(meridian_pki::Kind::Refused, "the authority that this node has is being replaced"));
    }
    let cluster = cluster_of(authority.certificate()).unwrap_or(ClusterId(shared.rpc.cluster()));
    let hosts = Hosts::parse(certify.hosts.iter().map(String::as_str))?;
    let made = authority.sign_node(cluster, node, &hosts, &certify.key, now(&shared.runtime), certificates.life_secs)?;
    Ok(Issued { chain: vec![made.der().to_vec()] })
}

/// Reads what was signed. Whom this node trusts is its own matter, and not the signer's.
pub(crate) fn read(certified: &Issued) -> meridian_pki::Result<Vec<Certificate>> {
    certified.chain.iter().map(|der| Certificate::parse(der)).collect()
}
