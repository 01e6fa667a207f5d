//! Verifying a certificate against the authorities of a cluster.
//!
//! The path is `webpki`'s (RFC 5280, §6). Around it: authorities have to be valid themselves, which
//! `webpki` does not ask of a trust anchor; a key has to be for signing handshakes; and clocks may
//! differ.

use crate::certificate::{Certificate, Fingerprint};
use crate::error::{Error, Kind, Result};
use crate::identity::{ClusterId, Identity};
use crate::pem;
use crate::rules::Rules;
use crate::time::Moment;
use meridian_base::NodeId;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{CertificateDer, TrustAnchor};
use std::fmt;
use webpki::{EndEntityCert, KeyUsage};

/// A certificate is good for so long before its beginning and after its end. Nodes whose clocks are
/// further apart than half a second do not work together anyway; this is for clients and joiners.
pub const CLOCK_TOLERANCE_SECS: u64 = 300;
/// Authorities in a bundle: a rotation needs two.
pub const AUTHORITIES_MAX: usize = 8;

/// What a certificate is shown for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// By a server, to its client.
    Server,
    /// By a client, to its server.
    Client,
}

/// The authorities that a process trusts: one, or several while they are rotated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bundle {
    authorities: Vec<Certificate>,
    anchors: Vec<TrustAnchor<'static>>,
}

impl Bundle {
    /// Of these, each once. An error if one of them is no authority, or if there are none.
    pub fn new(authorities: Vec<Certificate>) -> Result<Bundle> {
        let mut bundle = Bundle::default();
        for authority in authorities {
            bundle.add(authority)?;
        }
        match bundle.authorities.is_empty() {
            true => Err(Error::new(Kind::Absent, "there is no authority")),
            false => Ok(bundle),
        }
    }
    /// Reads all certificates of a text.
    pub fn from_pem(text: &[u8]) -> Result<Bundle> {
        Bundle::new(read_certificates(text)?)
    }
    /// As a text.
    pub fn to_pem(&self) -> String {
        write_certificates(&self.authorities)
    }
    /// The authorities, in their order.
    pub fn authorities(&self) -> &[Certificate] {
        &self.authorities
    }
    /// Whether an authority is in it.
    pub fn contains(&self, authority: Fingerprint) -> bool {
        self.authorities.iter().any(|a| a.fingerprint() == authority)
    }
    /// Trusts one more. Twice is once.
    pub fn add(&mut self, authority: Certificate) -> Result<()> {
        if !authority.may_sign_certificates() {
            return Err(Error::new(Kind::Mismatch, "one of the authorities is a certificate that may sign nothing"));
        }
        if self.contains(authority.fingerprint()) {
            return Ok(());
        }
        if self.authorities.len() == AUTHORITIES_MAX {
            return Err(Error::new(Kind::Refused, format!("more than {AUTHORITIES_MAX} authorities")));
        }
        let anchor = webpki::anchor_from_trusted_cert(authority.der())
            .map_err(|e| Error::malformed(format!("an authority's certificate cannot be used: {e}")))?
            .to_owned();
        self.authorities.push(authority);
        self.anchors.push(anchor);
        Ok(())
    }
    /// Trusts one less. The last one stays.
    pub fn remove(&mut self, authority: Fingerprint) -> Result<()> {
        let Some(at) = self.authorities.iter().position(|a| a.fingerprint() == authority) else { return Ok(()) };
        if self.authorities.len() == 1 {
            return Err(Error::new(Kind::Refused, "the last authority cannot be taken out"));
        }
        self.authorities.remove(at);
        self.anchors.remove(at);
        Ok(())
    }
    /// The authority that a certificate names as its own, if it is in the bundle and has signed it.
    pub fn issuer_of(&self, certificate: &Certificate) -> Option<&Certificate> {
        let named = self.authorities.iter().filter(|a| a.subject == certificate.issuer);
        named.into_iter().find(|a| {
            let alone = Bundle::new(vec![(*a).clone()]);
            // Whether it signed it, whatever the time is: at a moment at which both are valid.
            let at = certificate.not_before.max(a.not_before);
            let usage = if certificate.is_for_clients() { Usage::Client } else { Usage::Server };
            alone.is_ok_and(|alone| verify(certificate.der(), &[], &alone, usage, at).is_ok())
        })
    }
}

/// Reads all certificates of a text; an error if there are none.
pub fn read_certificates(text: &[u8]) -> Result<Vec<Certificate>> {
    let blocks = pem::read(text)?.into_iter().filter(|b| b.label == "CERTIFICATE" || b.label == "TRUSTED CERTIFICATE");
    let read: Vec<Certificate> = blocks.map(|b| Certificate::parse(&b.der)).collect::<Result<_>>()?;
    match read.is_empty() {
        true => Err(Error::malformed("it contains no certificate")),
        false => Ok(read),
    }
}

pub(crate) fn write_certificates(certificates: &[Certificate]) -> String {
    certificates.iter().map(|c| pem::write("CERTIFICATE", c.der()).to_string()).collect()
}

/// Why a peer's certificate is not accepted. For the operator: the peer gets an alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerRefusal {
    /// It cannot be read.
    Malformed,
    /// No authority of this cluster has signed it, directly or not.
    Untrusted,
    /// It was valid until then.
    Expired(Moment),
    /// It will be valid from then on. One of the clocks is wrong.
    NotYetValid(Moment),
    /// The authority that has signed it has expired.
    AuthorityExpired(Moment),
    /// It is not for servers, or not for clients, or an authority itself.
    WrongUsage,
    /// It is for other names than the one that was connected to.
    WrongName,
    /// It says nothing about who its holder is.
    Nobody,
    /// It is a client's, where a node's is needed.
    NoNode,
    /// It is a node's, where a client's is needed.
    NoClient,
    /// It is another cluster's.
    OtherCluster(ClusterId),
    /// It is another node's than the one that was called.
    OtherNode { called: NodeId, answers: NodeId },
    /// Its node was decommissioned.
    Revoked(NodeId),
    /// No certificate that was shown is the authority that the token names.
    OtherAuthority,
    /// A request in the name of this node, passed on by another one, was not sealed by it, or not
    /// now.
    Unsealed(NodeId),
}

impl fmt::Display for PeerRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeerRefusal::Malformed => write!(f, "the certificate cannot be read"),
            PeerRefusal::Untrusted => write!(f, "the certificate is not signed by an authority of this cluster"),
            PeerRefusal::Expired(at) => write!(f, "the certificate has expired on {at}"),
            PeerRefusal::NotYetValid(at) => write!(f, "the certificate is not valid before {at}: is a clock wrong?"),
            PeerRefusal::AuthorityExpired(at) => write!(f, "the certificate's authority has expired on {at}"),
            PeerRefusal::WrongUsage => write!(f, "the certificate is not for this use"),
            PeerRefusal::WrongName => write!(f, "the certificate is not for the host that was connected to"),
            PeerRefusal::Nobody => write!(f, "the certificate names neither a node nor a role"),
            PeerRefusal::NoNode => write!(f, "the certificate is a client's and not a node's"),
            PeerRefusal::NoClient => write!(f, "the certificate is a node's and not a client's"),
            PeerRefusal::OtherCluster(id) => write!(f, "the certificate is of another cluster ({id})"),
            PeerRefusal::OtherNode { called, answers } => {
                write!(f, "node {} was called, and the certificate is that of node {}", called.0, answers.0)
            }
            PeerRefusal::Revoked(node) => write!(f, "the certificate is that of node {}, which was decommissioned", node.0),
            PeerRefusal::OtherAuthority => write!(f, "the authority is not the one that the token names"),
            PeerRefusal::Unsealed(node) => write!(f, "a request that was passed on is not one of node {}", node.0),
        }
    }
}

impl std::error::Error for PeerRefusal {}

/// The signatures that are accepted in certificates and handshakes.
pub(crate) fn algorithms() -> WebPkiSupportedAlgorithms {
    rustls::crypto::ring::default_provider().signature_verification_algorithms
}

/// Whether a certificate was signed by an authority of the bundle, is valid now, and may be used
/// so. Says nothing about whose it is.
pub fn verify(
    certificate: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
    bundle: &Bundle,
    usage: Usage,
    now: Moment,
) -> std::result::Result<Certificate, PeerRefusal> {
    verify_with(certificate, intermediates, bundle, usage, now, Rules::ALL)
}

pub(crate) fn verify_with(
    certificate: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
    bundle: &Bundle,
    usage: Usage,
    now: Moment,
    rules: Rules,
) -> std::result::Result<Certificate, PeerRefusal> {
    let read = Certificate::parse(certificate).map_err(|_| PeerRefusal::Malformed)?;
    let end_entity = EndEntityCert::try_from(certificate).map_err(|_| PeerRefusal::Malformed)?;
    let path = |anchors: &[TrustAnchor<'static>], at: Moment| -> std::result::Result<(), webpki::Error> {
        let eku = match usage {
            Usage::Server => KeyUsage::server_auth(),
            Usage::Client => KeyUsage::client_auth(),
        };
        end_entity.verify_for_usage(algorithms().all, anchors, intermediates, at.unix(), eku, None, None).map(drop)
    };
    let tolerant = |anchors: &[TrustAnchor<'static>]| match path(anchors, now) {
        Err(webpki::Error::CertExpired { not_after, .. }) if !rules.certificates_expire() => {
            path(anchors, Moment(not_after.as_secs()))
        }
        Err(webpki::Error::CertExpired { .. }) => path(anchors, now.minus(CLOCK_TOLERANCE_SECS)),
        Err(webpki::Error::CertNotValidYet { .. }) => path(anchors, now.plus(CLOCK_TOLERANCE_SECS)),
        other => other,
    };
    let is_valid =
        |a: &Certificate| now.plus(CLOCK_TOLERANCE_SECS) >= a.not_before && now.minus(CLOCK_TOLERANCE_SECS) <= a.not_after;
    let both = || bundle.authorities.iter().zip(&bundle.anchors);
    let valid: Vec<TrustAnchor<'static>> = both().filter(|(a, _)| is_valid(a)).map(|(_, anchor)| anchor.clone()).collect();
    if let Err(e) = tolerant(&valid) {
        let invalid: Vec<_> = both().filter(|(a, _)| !is_valid(a)).collect();
        let expired = invalid.iter().find(|(_, anchor)| tolerant(std::slice::from_ref(*anchor)).is_ok());
        return Err(match expired {
            Some((authority, _)) if now < authority.not_before => PeerRefusal::NotYetValid(authority.not_before),
            Some((authority, _)) => PeerRefusal::AuthorityExpired(authority.not_after),
            None => refusal(e),
        });
    }
    match read.may_sign_handshakes() {
        true => Ok(read),
        false => Err(PeerRefusal::WrongUsage),
    }
}

fn refusal(e: webpki::Error) -> PeerRefusal {
    match e {
        webpki::Error::CertExpired { not_after, .. } => PeerRefusal::Expired(Moment(not_after.as_secs())),
        webpki::Error::CertNotValidYet { not_before, .. } => PeerRefusal::NotYetValid(Moment(not_before.as_secs())),
        webpki::Error::RequiredEkuNotFoundContext(_)
        | webpki::Error::CaUsedAsEndEntity
        | webpki::Error::EndEntityUsedAsCa
        | webpki::Error::PathLenConstraintViolated
        | webpki::Error::EmptyEkuExtension => PeerRefusal::WrongUsage,
        webpki::Error::BadDer
        | webpki::Error::BadDerTime
        | webpki::Error::ExtensionValueInvalid
        | webpki::Error::MalformedExtensions
        | webpki::Error::TrailingData(_) => PeerRefusal::Malformed,
        _ => PeerRefusal::Untrusted,
    }
}

/// Whose certificate it is, if it is a node's of this cluster.
pub(crate) fn node_of(certificate: &Certificate, ours: ClusterId, rules: Rules) -> std::result::Result<NodeId, PeerRefusal> {
    match Identity::of(certificate) {
        Some(Identity::Node { cluster, .. }) if cluster != ours && rules.compares_clusters() => {
            Err(PeerRefusal::OtherCluster(cluster))
        }
        Some(Identity::Node { node, .. }) => Ok(node),
        Some(Identity::Role(_)) => Err(PeerRefusal::NoNode),
        None => Err(PeerRefusal::Nobody),
    }
}
