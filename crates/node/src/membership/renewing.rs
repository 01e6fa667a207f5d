//! A node has its certificate renewed, long before it ends ([`meridian_pki::renewal`]).

use crate::membership::certificates::{Certificates, hosts_of, now};
use crate::membership::shared::Shared;
use crate::membership::signing;
use crate::transport::wire::{IssueCertificate, NodeRecord};
use meridian_base::{Error, Result};
use meridian_pki::directory::{NODE, Pair};
use meridian_pki::renewal::{again, due, warning};
use meridian_pki::tls::Tls;
use meridian_pki::{Moment, PrivateKey};
use std::sync::Arc;
use std::time::Duration;

/// The node looks at its clock, and at its certificate, which may have been replaced, this often.
const LOOK: Duration = Duration::from_secs(60);
/// The shortest time between two attempts: for certificates whose life is a test's.
const PAUSE_SECS: u64 = 5;

/// Keeps renewing it.
pub(crate) async fn keep(shared: Arc<Shared>, record: NodeRecord) {
    let Some(certificates) = &shared.certificates else { return };
    let Some(tls) = certificates.keys.tls() else { return };
    let mut not_before = Moment(0);
    loop {
        let current = tls.current();
        let (from, to) = (current.certificate.not_before, current.certificate.not_after);
        let at = due(from, to, serial(&current.certificate.serial)).max(not_before);
        let moment = now(&shared.runtime);
        if moment < at {
            tokio::time::sleep(Duration::from_secs(at.since(moment)).min(LOOK)).await;
            continue;
        }
        match renew(&shared, certificates, &tls, &record).await {
            Ok(()) => {
                tracing::info!("event=certificate_renewed until={}", tls.current().certificate.not_after);
                not_before = now(&shared.runtime).plus(PAUSE_SECS);
            }
            Err(e) => {
                let moment = now(&shared.runtime);
                not_before = again(to, moment, shared.runtime.random());
                match warning(from, to, moment) {
                    Some(warning) => tracing::error!("the certificate of this node is not renewed: {warning}: {e}"),
                    None => tracing::info!("the certificate of this node is not renewed yet: {e}"),
                }
            }
        }
    }
}

/// A number that stays the same for a certificate.
fn serial(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// With a new key. The id is that of the connection that asks, or of this node itself.
pub(crate) async fn renew(shared: &Arc<Shared>, certificates: &Arc<Certificates>, tls: &Tls, record: &NodeRecord) -> Result<()> {
    let told = |e: meridian_pki::Error| Error::unavailable(e.to_string());
    let key = PrivateKey::generate();
    let certify = IssueCertificate { key: key.public().map_err(told)?, hosts: hosts_of(record), token: None };
    let certified = signing::certified(shared, &certify).await?;
    let pair = Pair::new(signing::read(&certified).map_err(told)?, key).map_err(told)?;
    let _changing = certificates.changing.lock().await;
    // What cannot be used is not kept.
    tls.replace(tls.current().bundle.clone(), &pair).map_err(told)?;
    certificates.at_files(&shared.runtime, move |c| c.directory.save_pair(NODE, &pair)).await.map_err(told)
}
