//! The cluster's authority is replaced ([`meridian_pki::rotation`]).
//!
//! The phase is a row of the catalog. An operator has it changed ([`rotate`]): the node asked makes
//! the new authority, or asks all members how far they are. Each node follows the row by itself
//! ([`keep`]): what it trusts and shows goes into its files first, then into new handshakes, and
//! then it says so. Every step may be repeated, after a crash as well.

use crate::catalog::steps::Job;
use crate::membership::ask::Ask;
use crate::membership::certificates::{Certificates, now, unusable};
use crate::membership::founding::{JOIN_CALL, Notice};
use crate::membership::renewing::renew;
use crate::membership::shared::Shared;
use crate::replica::Replica;
use crate::transport::wire::{KeepRotation, NodeRecord, Request, Response, RotationStatus, RotationStep, Standing};
use meridian_base::version::ClusterVersion;
use meridian_base::{Error, GroupId, NodeId, Result};
use meridian_pki::authority::CLIENT_LIFE_SECS;
use meridian_pki::directory::{Directory, NODE, Pair};
use meridian_pki::rotation::{Endorsed, Hindrance, Phase, Report, Rotation, StoredRotation};
use meridian_pki::tls::Tls;
use meridian_pki::{Authority, ClusterId, Fingerprint, Identity, Moment, PrivateKey};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How long the catalog's primary is looked for.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a node may take to say whom it trusts.
const REPORT_CALL: Duration = Duration::from_secs(3);
/// A node that could not follow tries again after this.
const AGAIN: Duration = Duration::from_secs(1);

fn refused(why: impl Into<String>) -> Error {
    Error::sql("55000", why)
}

fn secured(shared: &Shared) -> Result<(&Arc<Certificates>, Arc<Tls>)> {
    let certificates = shared.certificates.as_ref();
    let found = certificates.and_then(|c| Some((c, c.keys.tls()?)));
    found.ok_or_else(|| refused("a cluster that was started with --insecure has no authority"))
}

/// Whom this node trusts, and whose certificate it shows.
pub(crate) fn report(shared: &Shared) -> Result<Report> {
    secured(shared)?.1.report().map_err(unusable)
}

/// What an operator asks for. `is_forced`: without waiting for nodes that are not ready.
pub(crate) async fn rotate(shared: &Arc<Shared>, step: RotationStep, is_forced: bool) -> Result<RotationStatus> {
    secured(shared)?;
    let stored = shared.catalog.rotation();
    let phase = stored.as_ref().map(|s| s.phase);
    let status = RotationStatus { reports: reports(shared).await, stored };
    let none = || refused("no rotation of the authority is under way").hint("`meridian cert rotate-ca begin` begins one.");
    match (step, phase, &status.stored) {
        (RotationStep::Look, ..) => return Ok(status),
        (RotationStep::Begin, Some(Phase::Introduced { .. }), _) => return Ok(status),
        (RotationStep::Begin, Some(Phase::Signing { .. }), _) => {
            return Err(refused("a rotation of the authority is under way: the new one signs already")
                .hint("`meridian cert rotate-ca finish` ends it."));
        }
        (RotationStep::Begin, None | Some(Phase::Settled { .. }), _) => begin(shared, status.stored.as_ref()).await?,
        (RotationStep::Sign, Some(Phase::Signing { .. }), _) => return Ok(status),
        (RotationStep::Finish, Some(Phase::Introduced { .. }), _) => {
            return Err(refused("the new authority does not sign yet").hint("`meridian cert rotate-ca sign` comes first."));
        }
        (RotationStep::Sign, Some(Phase::Introduced { .. }), Some(stored))
        | (RotationStep::Finish, Some(Phase::Signing { .. }), Some(stored)) => {
            advance(shared, stored, &status, is_forced).await?
        }
        (RotationStep::Finish, Some(Phase::Settled { authority }), Some(stored)) if authority == stored.new_authority() => {
            return Ok(status);
        }
        (RotationStep::Cancel, Some(Phase::Settled { authority }), Some(stored)) if authority == stored.endorsed.old() => {
            return Ok(status);
        }
        (RotationStep::Cancel, Some(Phase::Introduced { .. } | Phase::Signing { .. }), Some(stored)) => {
            cancel(shared, stored).await?
        }
        (RotationStep::Sign | RotationStep::Finish | RotationStep::Cancel, ..) => return Err(none()),
    }
    Ok(RotationStatus { stored: shared.catalog.rotation(), reports: status.reports })
}

async fn reports(shared: &Arc<Shared>) -> Vec<(NodeId, Option<Report>)> {
    let nodes = shared.catalog.nodes().into_iter().filter(|n| n.standing != Standing::Decommissioned);
    let asked = nodes.map(|n| async move {
        if n.id == shared.me() {
            return (n.id, report(shared).ok());
        }
        match shared.rpc.call(n.id, Request::Authorities, REPORT_CALL).await {
            Ok(Response::Authorities(report)) => (n.id, Some(report)),
            _ => (n.id, None),
        }
    });
    futures::future::join_all(asked).await
}

/// Makes a new authority here. Its key is in the files before another node hears of it.
async fn begin(shared: &Arc<Shared>, before: Option<&StoredRotation>) -> Result<()> {
    let (certificates, _) = secured(shared)?;
    if shared.catalog.cluster_version() < ClusterVersion::ESCROW {
        return Err(refused("a rotation of the authority needs every node's program to be of this version"));
    }
    if !certificates.signs(&shared.runtime).await {
        return Err(refused("this node does not have the authority's key")
            .hint("Ask the node that has ca.key: by default the one that founded the cluster."));
    }
    let _changing = certificates.changing.lock().await;
    let (cluster, known, now) = (ClusterId(shared.rpc.cluster()), before.cloned(), now(&shared.runtime));
    let introducing = certificates.at_files(&shared.runtime, move |c| introduced(c, cluster, known.as_ref(), now));
    let endorsed = introducing.await.map_err(unusable)?;
    let (old, new) = (endorsed.old(), endorsed.new_authority());
    let phase = Phase::Introduced { old, new };
    let next = StoredRotation { phase, endorsed, signer: shared.me(), is_forced: false };
    keep_row(shared, before.map(|b| b.phase), next).await
}

/// The new authority that is in the files. One that was made before, and that nobody has heard of,
/// is taken.
fn introduced(
    certificates: &Certificates,
    cluster: ClusterId,
    before: Option<&StoredRotation>,
    now: Moment,
) -> meridian_pki::Result<Endorsed> {
    let directory = &certificates.directory;
    let old = directory.authority()?;
    // One whose certificate is not there, after a crash, is of no use; one that was taken back is
    // not used again.
    let found = directory.next_authority().unwrap_or_default();
    let found = found.filter(|next| before.is_none_or(|b| b.new_authority() != next.certificate().fingerprint()));
    let next = match found {
        Some(next) => next,
        None => {
            directory.forget_next()?;
            let next = Authority::create(cluster, now)?;
            directory.introduce(&next)?;
            next
        }
    };
    Endorsed::new(&old, next.certificate())
}

async fn advance(shared: &Arc<Shared>, stored: &StoredRotation, status: &RotationStatus, is_forced: bool) -> Result<()> {
    let (certificates, _) = secured(shared)?;
    let mut rotation = Rotation::at(stored.phase, certificates.keys.rules);
    let reports: BTreeMap<NodeId, Option<Report>> = status.reports.iter().cloned().collect();
    // A token of the old authority is worth nothing once nodes show certificates of the new one,
    // and which clients have certificates is for the operator to know.
    let outstanding = Moment(0);
    let (phase, is_forced) = match rotation.advance(&reports, outstanding, now(&shared.runtime)) {
        Ok(phase) => (phase, false),
        Err(_) if is_forced => (rotation.force(), true),
        Err(Hindrance::Nodes(nodes)) => return Err(waits_for(&nodes.into_iter().collect::<Vec<_>>())),
        Err(Hindrance::Settled | Hindrance::Outstanding(_)) => return Ok(()),
    };
    let is_forced = is_forced || stored.is_forced;
    keep_row(shared, Some(stored.phase), StoredRotation { phase, is_forced, ..stored.clone() }).await
}

/// What hinders the next phase. 55006, since it goes by: an operator's command asks again.
fn waits_for(nodes: &[NodeId]) -> Error {
    let names: Vec<String> = nodes.iter().map(|n| format!("node {n}")).collect();
    Error::sql("55006", format!("the authority cannot be replaced yet: {} is not ready", names.join(", "))).hint(
        "Start a node that is down, or decommission it. --force goes on without: such a node needs another certificate then.",
    )
}

async fn cancel(shared: &Arc<Shared>, stored: &StoredRotation) -> Result<()> {
    let (certificates, _) = secured(shared)?;
    let phase = Rotation::at(stored.phase, certificates.keys.rules).cancel();
    let phase = phase.map_err(|e| refused(e.message()).hint("`meridian cert rotate-ca finish` ends the rotation."))?;
    keep_row(shared, Some(stored.phase), StoredRotation { phase, ..stored.clone() }).await
}

/// Has the catalog's primary write the row, and waits until this node knows it.
async fn keep_row(shared: &Arc<Shared>, expected: Option<Phase>, next: StoredRotation) -> Result<()> {
    let mut changed = shared.catalog.watch();
    let keep = KeepRotation { expected, next };
    shared.call_primary(GroupId::CATALOG, PATIENCE, &keep).await?;
    let applied = async { while shared.catalog.rotation().as_ref() != Some(&keep.next) && changed.changed().await.is_ok() {} };
    // Whoever asks sees the phase of before then, and asks again.
    let _ = tokio::time::timeout(PATIENCE, applied).await;
    tracing::info!("event=authority_rotation phase={} forced={}", name_of(keep.next.phase), keep.next.is_forced);
    Ok(())
}

fn name_of(phase: Phase) -> &'static str {
    match phase {
        Phase::Settled { .. } => "settled",
        Phase::Introduced { .. } => "introduced",
        Phase::Signing { .. } => "signing",
    }
}

impl Ask for KeepRotation {
    type Answer = ();
    const TIMEOUT: Duration = JOIN_CALL;
    fn request(&self) -> Request {
        Request::KeepRotation(Box::new(self.clone()))
    }
    fn answer(response: Response) -> Option<()> {
        matches!(response, Response::Done).then_some(())
    }
    async fn here(&self, shared: &Arc<Shared>, _: &Arc<Replica>) -> Result<()> {
        keep_here(shared, self.clone()).await
    }
}

/// The answer of the catalog's primary. It believes nobody that an authority is the next one but
/// the one that signs.
pub(crate) async fn keep_here(shared: &Arc<Shared>, keep: KeepRotation) -> Result<()> {
    if matches!(keep.next.phase, Phase::Introduced { .. }) {
        let bundle = secured(shared)?.1.current().bundle.clone();
        let named = keep.next.endorsed.certificate(&bundle, ClusterId(shared.rpc.cluster()));
        named.map_err(|e| refused(e.to_string()))?;
    }
    shared.steps.ask(|reply| Job::KeepRotation { keep: Box::new(keep), reply }).await
}

/// Follows the rotations of the cluster.
pub(crate) async fn keep(shared: Arc<Shared>, record: NodeRecord) {
    let Some(certificates) = &shared.certificates else { return };
    let mut changed = shared.catalog.watch();
    let (mut notice, mut done) = (Notice::default(), None);
    loop {
        changed.borrow_and_update();
        let stored = shared.catalog.rotation().filter(|stored| done.as_ref() != Some(stored));
        let followed = match &stored {
            Some(stored) => follow(&shared, certificates, &record, stored).await,
            None => Ok(()),
        };
        match followed {
            Ok(()) => {
                done = stored.or(done);
                if changed.changed().await.is_err() {
                    return;
                }
            }
            Err(e) => {
                notice.say(format!("this node does not follow the rotation of the authority yet: {e}"));
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
}

/// Does what a phase wants of a node, as far as it is not done.
async fn follow(
    shared: &Arc<Shared>,
    certificates: &Arc<Certificates>,
    record: &NodeRecord,
    stored: &StoredRotation,
) -> Result<()> {
    let told = |e: meridian_pki::Error| Error::unavailable(e.to_string());
    let (tls, changing) = (secured(shared)?.1, certificates.changing.lock().await);
    let (wanted, new) = (Rotation::at(stored.phase, certificates.keys.rules), stored.new_authority());
    let was = tls.report().map_err(told)?;
    if !stored.is_under_way() && ![stored.endorsed.old(), new].contains(&was.shows) {
        // The operator has brought another one since.
        return Ok(());
    }
    if wanted.trusted().contains(&new) && !was.trusts.contains(&new) {
        let (cluster, stored) = (ClusterId(shared.rpc.cluster()), stored.clone());
        certificates.at_files(&shared.runtime, move |c| trust(c, cluster, &stored)).await.map_err(told)?;
        tracing::info!("event=authority_trusted authority={new}");
    }
    let (now, signer, of_node, known) = (now(&shared.runtime), wanted.signer(), tls.clone(), stored.clone());
    let changing_keys = certificates.at_files(&shared.runtime, move |c| change_keys(c, &of_node, signer, &known, now));
    changing_keys.await.map_err(told)?;
    drop(changing);
    if !matches!(stored.phase, Phase::Introduced { .. }) && tls.report().map_err(told)?.shows != wanted.signer() {
        renew(shared, certificates, &tls, record).await?;
        if tls.report().map_err(told)?.shows != wanted.signer() {
            return Err(Error::unavailable("the node that signs still does so with the other authority"));
        }
        tracing::info!("event=certificate_renewed authority={} until={}", wanted.signer(), tls.current().certificate.not_after);
    }
    let _changing = certificates.changing.lock().await;
    for gone in [stored.endorsed.old(), new].into_iter().filter(|a| !wanted.trusted().contains(a)) {
        let of_node = tls.clone();
        if certificates.at_files(&shared.runtime, move |c| distrust(c, &of_node, gone)).await.map_err(told)? {
            tracing::info!("event=authority_distrusted authority={gone}");
            if stored.is_forced {
                // A thief of the old key may have opened some.
                shared.rpc.end_connections();
            }
        }
    }
    Ok(())
}

/// Trusts the new authority: in the files, and then in new handshakes.
fn trust(certificates: &Certificates, cluster: ClusterId, stored: &StoredRotation) -> meridian_pki::Result<()> {
    let mut bundle = certificates.directory.bundle()?;
    bundle.add(stored.endorsed.certificate(&bundle, cluster)?)?;
    certificates.directory.save_bundle(&bundle)?;
    certificates.reload()
}

/// Trusts an authority no more. Whether it did.
fn distrust(certificates: &Certificates, tls: &Tls, gone: Fingerprint) -> meridian_pki::Result<bool> {
    let mut bundle = certificates.directory.bundle()?;
    if !bundle.contains(gone) && !tls.report()?.trusts.contains(&gone) {
        return Ok(false);
    }
    bundle.remove(gone)?;
    certificates.directory.save_bundle(&bundle)?;
    certificates.reload()?;
    Ok(true)
}

/// Where the new authority's key is: has it sign when its time has come, and the certificates of
/// clients that are in the same directory signed anew; or forgets it when it was taken back.
fn change_keys(
    certificates: &Certificates,
    tls: &Tls,
    signer: Fingerprint,
    stored: &StoredRotation,
    now: Moment,
) -> meridian_pki::Result<()> {
    let (directory, new) = (&certificates.directory, stored.new_authority());
    // A key that a crash has left without its certificate is no authority's.
    let next = directory.next_authority().unwrap_or_default().map(|next| next.certificate().fingerprint());
    match next == Some(new) {
        true if signer == new => directory.promote()?,
        true if !stored.is_under_way() => directory.forget_next()?,
        _ => {}
    }
    if signer == new && certificates.has_authority() {
        let authority = directory.authority()?;
        if authority.certificate().fingerprint() == new && tls.report()?.trusts.contains(&new) {
            return sign_clients(directory, &authority, now);
        }
    }
    Ok(())
}

/// Signs the certificates of clients anew that another authority has signed.
fn sign_clients(directory: &Directory, authority: &Authority, now: Moment) -> meridian_pki::Result<()> {
    let bundle = directory.bundle()?;
    for file in directory.names()? {
        let Some(name) = file.strip_suffix(".crt").filter(|name| *name != NODE && *name != "ca") else { continue };
        let Ok(pair) = directory.pair(name) else { continue };
        let Some(Identity::Role(role)) = Identity::of(pair.certificate()) else { continue };
        if bundle.issuer_of(pair.certificate()) == Some(authority.certificate()) {
            continue;
        }
        let key = PrivateKey::generate();
        let made = authority.sign_client(&role, &key.public()?, now, CLIENT_LIFE_SECS)?;
        directory.save_pair(name, &Pair::new(vec![made], key)?)?;
    }
    Ok(())
}
