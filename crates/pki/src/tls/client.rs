//! What our own clients use: `meridian sql`, workloads and the bench on the port for SQL, and an
//! operator's commands on the port for nodes.

use super::verifiers::NodeVerifier;
use super::{Clock, Context, NODE_PROTOCOL, SQL_PROTOCOL, Signatures, Time};
use crate::directory::Pair;
use crate::error::{Error, Kind, Result};
use crate::rules::Rules;
use crate::tls::verifiers::signatures;
use crate::verify::{Bundle, PeerRefusal, Usage, verify_with};
use rustls::ClientConfig;
use rustls::client::danger::{ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use std::fmt;
use std::sync::Arc;
use webpki::EndEntityCert;

/// How much a client wants to know of its server: libpq's `sslmode`, those of it that use TLS for
/// certain. (`disable`, `allow` and `prefer` are about whether to use TLS at all.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SslMode {
    /// Nothing: it is encrypted, for whoever answers.
    Require,
    /// It has a certificate of the cluster's authority.
    VerifyCa,
    /// And that is for the host that was connected to.
    VerifyFull,
}

#[derive(Debug)]
struct HostVerifier {
    mode: SslMode,
    /// Empty only with [`SslMode::Require`].
    bundle: Bundle,
    clock: ClockBox,
    signatures: Signatures,
}

struct ClockBox(Clock);

impl fmt::Debug for ClockBox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

impl ServerCertVerifier for HostVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        if self.mode != SslMode::Require {
            let now = (self.clock.0)();
            verify_with(end_entity, intermediates, &self.bundle, Usage::Server, now, Rules::ALL)?;
        }
        if self.mode == SslMode::VerifyFull {
            let parsed = EndEntityCert::try_from(end_entity).map_err(|_| PeerRefusal::Malformed)?;
            parsed.verify_is_valid_for_subject_name(server_name).map_err(|_| PeerRefusal::WrongName)?;
        }
        Ok(ServerCertVerified::assertion())
    }
    signatures!();
}

/// A client of the SQL port. The bundle may be left out with [`SslMode::Require`] only; with it,
/// that mode verifies as [`SslMode::VerifyCa`], as libpq does.
pub fn client_config(mode: SslMode, bundle: Option<Bundle>, pair: Option<&Pair>, clock: Clock) -> Result<ClientConfig> {
    let (mode, bundle) = match (mode, bundle) {
        (SslMode::Require, None) => (mode, Bundle::default()),
        (SslMode::Require, Some(bundle)) => (SslMode::VerifyCa, bundle),
        (_, Some(bundle)) => (mode, bundle),
        (_, None) => return Err(Error::new(Kind::Absent, "there is no authority to verify the server by")),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_details(provider, Arc::new(Time(clock.clone())))
        .with_protocol_versions(rustls::ALL_VERSIONS)
        .map_err(|e| Error::malformed(format!("TLS cannot be set up: {e}")))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(HostVerifier {
            mode,
            bundle,
            clock: ClockBox(clock),
            signatures: Signatures::default(),
        }));
    let mut config = match pair {
        None => builder.with_no_client_auth(),
        Some(pair) => {
            let chain = pair.chain().iter().map(|c| c.der().clone()).collect();
            let key = Arc::new(CertifiedKey::new(chain, pair.key().signer()?));
            builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(key)))
        }
    };
    config.alpn_protocols = vec![SQL_PROTOCOL.to_vec()];
    config.resumption = rustls::client::Resumption::disabled();
    Ok(config)
}

/// An operator's command on the port for nodes, with the certificate of a role. The nodes of the
/// context's cluster are believed, and nobody else.
pub fn operator_config(context: Context, bundle: Bundle, pair: &Pair) -> Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let time = Arc::new(Time(context.clock.clone()));
    let chain = pair.chain().iter().map(|c| c.der().clone()).collect();
    let key = Arc::new(CertifiedKey::new(chain, pair.key().signer()?));
    let mut config = ClientConfig::builder_with_details(provider, time)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|e| Error::malformed(format!("TLS cannot be set up: {e}")))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(NodeVerifier { context, bundle, signatures: Signatures::default() }))
        .with_client_cert_resolver(Arc::new(SingleCertAndKey::from(key)));
    config.alpn_protocols = vec![NODE_PROTOCOL.to_vec()];
    config.enable_sni = false;
    config.resumption = rustls::client::Resumption::disabled();
    Ok(config)
}
