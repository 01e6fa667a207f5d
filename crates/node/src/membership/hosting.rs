//! How a member lets a process with a token in: [`meridian_pki::join`] from the other side.

use crate::catalog::rows::NodeRow;
use crate::membership::certificates::now;
use crate::membership::shared::Shared;
use crate::membership::{signing, tokens};
use crate::transport::wire::{IssueCertificate, NodeRecord, Redemption, Standing};
use meridian_base::{Error, NodeId, Result, envelope};
use meridian_pki::join::{Admission, Binding, Host, HostAction, Refusal, Use};
use std::sync::Arc;

/// Answers the message of a process without a certificate. `check` says what is wrong with what a
/// node says of itself.
pub(crate) async fn answer(
    shared: &Arc<Shared>,
    addr: &str,
    binding: Binding,
    ask: &[u8],
    check: impl Fn(&NodeRecord) -> Result<()>,
) -> Vec<u8> {
    let Some(certificates) = &shared.certificates else { return Vec::new() };
    let mut host = Host::new(binding, certificates.keys.rules);
    if !shared.life.is_open() || !certificates.keys.admission.may_join(addr) {
        return sent(addr, host.not_now());
    }
    let mut action = host.received(ask);
    loop {
        action = match action {
            HostAction::LookUp(token) => match tokens::find(shared, token).await {
                Ok(found) => host.found(found.as_ref(), now(&shared.runtime)),
                Err(e) => {
                    tracing::info!("a process at {addr} wants to join: {e}");
                    host.not_now()
                }
            },
            HostAction::Register(admission) => match let_in(shared, *admission, &check).await {
                Ok(Ok((chain, bundle, about))) => host.granted(&chain, &bundle, about),
                Ok(Err(why)) => host.refused(why),
                Err(e) => {
                    tracing::warn!("a process at {addr} with a join token cannot be let in now: {e}");
                    host.not_now()
                }
            },
            done => return sent(addr, done),
        };
    }
}

fn sent(addr: &str, action: HostAction) -> Vec<u8> {
    let HostAction::Send(bytes, why) = action else { return Vec::new() };
    if let Some(why) = why {
        tracing::warn!("event=join_refused addr={addr}: {why}");
    }
    bytes
}

type LetIn = (Vec<meridian_pki::Certificate>, meridian_pki::Bundle, Vec<u8>);

async fn let_in(
    shared: &Arc<Shared>,
    admission: Admission,
    check: &impl Fn(&NodeRecord) -> Result<()>,
) -> Result<std::result::Result<LetIn, Refusal>> {
    let Ok(NodeRow { record, versions }) = envelope::decode::<NodeRow>(&admission.about) else {
        return Ok(Err(Refusal::Malformed));
    };
    let record = NodeRecord { id: NodeId(0), standing: Standing::Active, ..record };
    if let (Use::First, Err(e)) = (admission.is_use, check(&record)) {
        tracing::warn!("a process with join token {} says of itself what cannot be: {e}", admission.token);
        return Ok(Err(Refusal::Malformed));
    }
    let redemption = Redemption { token: admission.token, key: admission.key.clone(), record, versions };
    let node = match tokens::redeem(shared, redemption).await? {
        Ok(node) => node,
        Err(why) => return Ok(Err(why)),
    };
    let hosts = admission.hosts.texts();
    let certified =
        signing::certified(shared, &IssueCertificate { key: admission.key, hosts, token: Some(admission.token) }).await?;
    let chain = signing::read(&certified).map_err(|e| Error::unavailable(e.to_string()))?;
    let tls = shared.certificates.as_ref().and_then(|c| c.keys.tls());
    let bundle = tls.ok_or_else(|| Error::unavailable("this node has no certificate yet"))?.current().bundle.clone();
    tracing::info!("event=node_joined node={} token={}", node.0, admission.token);
    Ok(Ok((chain, bundle, envelope::encode(&shared.catalog.nodes()))))
}
