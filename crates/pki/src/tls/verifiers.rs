//! What `rustls` asks about the certificate of a peer.

use super::{Context, called};
use crate::certificate::Certificate;
use crate::identity::Identity;
use crate::rules::Rules;
use crate::time::Moment;
use crate::verify::{Bundle, PeerRefusal, Usage, algorithms, node_of, verify_with};
use meridian_base::NodeId;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, OtherError, SignatureScheme};
use std::sync::Arc;

impl From<PeerRefusal> for rustls::Error {
    /// The peer is sent the alert that there is for it (RFC 8446, §6.2), so that a node learns that
    /// its certificate has expired, or that it was decommissioned. [`super::explain`] reads the
    /// error.
    fn from(refusal: PeerRefusal) -> rustls::Error {
        // `rustls` wants to know when it was looked at as well; nobody reads it.
        let time = Moment(0).unix();
        rustls::Error::InvalidCertificate(match refusal {
            PeerRefusal::Malformed => CertificateError::BadEncoding,
            PeerRefusal::Untrusted => CertificateError::UnknownIssuer,
            PeerRefusal::Expired(at) => CertificateError::ExpiredContext { time, not_after: at.unix() },
            PeerRefusal::NotYetValid(at) => CertificateError::NotValidYetContext { time, not_before: at.unix() },
            PeerRefusal::Revoked(_) => CertificateError::Revoked,
            other => CertificateError::Other(OtherError(Arc::new(other))),
        })
    }
}

/// The reverse, as far as it goes: a sentence.
pub(super) fn sentence(error: &rustls::Error) -> String {
    use rustls::AlertDescription as Alert;
    let rustls::Error::InvalidCertificate(why) = error else {
        let said = match error {
            rustls::Error::AlertReceived(Alert::CertificateExpired) => "that this process's certificate has expired",
            rustls::Error::AlertReceived(Alert::CertificateRevoked) => "that this node was decommissioned",
            rustls::Error::AlertReceived(Alert::UnknownCA) => "that it does not know the authority of this process's certificate",
            rustls::Error::AlertReceived(_) => "no more than that it refuses this process's certificate, or its version of TLS",
            other => return other.to_string(),
        };
        return format!("the other side says {said}");
    };
    match why {
        CertificateError::BadEncoding => PeerRefusal::Malformed.to_string(),
        CertificateError::UnknownIssuer => PeerRefusal::Untrusted.to_string(),
        CertificateError::ExpiredContext { not_after, .. } => PeerRefusal::Expired(Moment(not_after.as_secs())).to_string(),
        CertificateError::NotValidYetContext { not_before, .. } => {
            PeerRefusal::NotYetValid(Moment(not_before.as_secs())).to_string()
        }
        CertificateError::Revoked => "the certificate is that of a node that was decommissioned".to_string(),
        CertificateError::Other(OtherError(other)) => other.to_string(),
        other => other.to_string(),
    }
}

/// The signatures of handshakes.
#[derive(Debug)]
pub(crate) struct Signatures(WebPkiSupportedAlgorithms);

impl Default for Signatures {
    fn default() -> Signatures {
        Signatures(algorithms())
    }
}

/// The methods of both traits that are the same everywhere.
macro_rules! signatures {
    () => {
        fn verify_tls12_signature(
            &self,
            message: &[u8],
            cert: &rustls::pki_types::CertificateDer<'_>,
            dss: &rustls::DigitallySignedStruct,
        ) -> std::result::Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
            self.signatures.tls12(message, cert, dss)
        }
        fn verify_tls13_signature(
            &self,
            message: &[u8],
            cert: &rustls::pki_types::CertificateDer<'_>,
            dss: &rustls::DigitallySignedStruct,
        ) -> std::result::Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
            self.signatures.tls13(message, cert, dss)
        }
        fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
            self.signatures.schemes()
        }
    };
}
pub(crate) use signatures;

impl Signatures {
    pub(crate) fn tls12(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0)
    }
    pub(crate) fn tls13(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0)
    }
    pub(crate) fn schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

/// Between nodes, on both sides.
#[derive(Debug)]
pub(super) struct NodeVerifier {
    pub context: Context,
    pub bundle: Bundle,
    pub signatures: Signatures,
}

impl NodeVerifier {
    fn verified(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        usage: Usage,
    ) -> Result<Certificate, PeerRefusal> {
        verify_with(certificate, between, &self.bundle, usage, self.context.now(), self.context.rules)
    }
}

impl ServerCertVerifier for NodeVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let certificate = self.verified(end_entity, intermediates, Usage::Server)?;
        let answers = node_of(&certificate, self.context.cluster, self.context.rules)?;
        self.context.refuse_revoked(answers)?;
        // Only names of nodes are called by this configuration.
        let called = called(server_name).ok_or(PeerRefusal::WrongName)?;
        let is_meant = called == NodeId(0) || called == answers || !self.context.rules.compares_who_answers();
        match is_meant {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(PeerRefusal::OtherNode { called, answers }.into()),
        }
    }
    signatures!();
}

impl ClientCertVerifier for NodeVerifier {
    /// Joiners have none.
    fn client_auth_mandatory(&self) -> bool {
        false
    }
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        // Every certificate of a process that connects here is meant for here.
        &[]
    }
    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let certificate = self.verified(end_entity, intermediates, Usage::Client)?;
        match node_of(&certificate, self.context.cluster, self.context.rules) {
            Ok(node) => self.context.refuse_revoked(node)?,
            // An operator's command.
            Err(PeerRefusal::NoNode) => {}
            Err(other) => return Err(other.into()),
        }
        Ok(ClientCertVerified::assertion())
    }
    signatures!();
}

/// The certificates of SQL clients.
#[derive(Debug)]
pub(super) struct ClientVerifier {
    context: Context,
    bundle: Bundle,
    hints: Vec<DistinguishedName>,
    signatures: Signatures,
}

impl ClientVerifier {
    pub(super) fn new(context: Context, bundle: Bundle) -> ClientVerifier {
        // A client with several certificates chooses by them.
        let hints = bundle.authorities().iter().map(|a| DistinguishedName::from(a.subject.clone())).collect();
        ClientVerifier { context, bundle, hints, signatures: Signatures::default() }
    }
}

/// The role that a certificate is a login of.
pub(super) fn role_of(certificate: &Certificate, rules: Rules) -> Result<String, PeerRefusal> {
    match Identity::of(certificate) {
        Some(Identity::Role(role)) => Ok(role),
        Some(Identity::Node { node, .. }) if !rules.tells_nodes_from_roles() => Ok(format!("node {}", node.0)),
        Some(Identity::Node { .. }) => Err(PeerRefusal::NoClient),
        None => Err(PeerRefusal::Nobody),
    }
}

impl ClientCertVerifier for ClientVerifier {
    fn client_auth_mandatory(&self) -> bool {
        false
    }
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.hints
    }
    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let rules = self.context.rules;
        let certificate = verify_with(end_entity, intermediates, &self.bundle, Usage::Client, self.context.now(), rules)?;
        role_of(&certificate, rules)?;
        Ok(ClientCertVerified::assertion())
    }
    signatures!();
}
