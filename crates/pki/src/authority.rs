//! The cluster's certificate authority: makes itself, and certificates of nodes and clients.
//!
//! Serial numbers are random (RFC 5280, §4.1.2.2: at most 20 bytes, positive), so several nodes may
//! sign with one key without agreeing. Everything begins an hour before it is made and ends with
//! the authority at the latest. What was signed is verified before it is given out.

use crate::certificate::{Certificate, attributes};
use crate::der::{oid_arcs, only, tag};
use crate::error::{Error, Kind, Result};
use crate::identity::{ClusterId, Identity};
use crate::key::{PrivateKey, PublicKey};
use crate::secret;
use crate::time::Moment;
use crate::verify::{Bundle, Usage, verify};
use meridian_base::NodeId;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, DnValue, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod,
    KeyUsagePurpose, SanType, SerialNumber,
};
use std::net::IpAddr;
use std::time::Duration;

const DAY_SECS: u64 = 86_400;
/// How long an authority lives: ten years. It is replaced in between by rotation.
pub const AUTHORITY_LIFE_SECS: u64 = 3_653 * DAY_SECS;
/// How long a node's certificate lives. It is renewed at two thirds of it.
pub const NODE_LIFE_SECS: u64 = 90 * DAY_SECS;
/// How long a client's certificate lives by default.
pub const CLIENT_LIFE_SECS: u64 = 365 * DAY_SECS;
/// Certificates begin so long before they are made: the clock of the verifier may be
/// behind.
pub const BACKDATE_SECS: u64 = 3_600;
/// The longest name of a role (PostgreSQL's NAMEDATALEN, less one).
const ROLE_BYTES_MAX: usize = 63;
/// Names and addresses in one certificate.
pub const HOSTS_MAX: usize = 32;

/// What a node's certificate says besides its id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    /// Names that clients may use for it.
    pub dns_names: Vec<String>,
    /// Addresses that clients may use for it.
    pub addresses: Vec<IpAddr>,
}

impl Hosts {
    /// Of names and addresses as an operator writes them, in any order; twice is once. An error for
    /// what is neither, and for too many.
    pub fn parse<'a>(hosts: impl IntoIterator<Item = &'a str>) -> Result<Hosts> {
        let mut parsed = Hosts::default();
        for host in hosts {
            let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
            match bare.parse::<IpAddr>() {
                Ok(address) if !parsed.addresses.contains(&address) => parsed.addresses.push(address),
                Ok(_) => {}
                Err(_) if !is_dns_name(host) => {
                    return Err(Error::malformed(format!("{host:?} is neither a DNS name nor an IP address")));
                }
                Err(_) if parsed.dns_names.iter().any(|n| n == host) => {}
                Err(_) => parsed.dns_names.push(host.to_string()),
            }
        }
        match parsed.dns_names.len() + parsed.addresses.len() > HOSTS_MAX {
            true => Err(Error::malformed(format!("a certificate has at most {HOSTS_MAX} names and addresses"))),
            false => Ok(parsed),
        }
    }
}

impl Hosts {
    /// The reverse of [`Hosts::parse`].
    pub fn texts(&self) -> Vec<String> {
        self.dns_names.iter().cloned().chain(self.addresses.iter().map(IpAddr::to_string)).collect()
    }
}

/// RFC 1034, §3.5, with `_`, as `rustls` accepts them.
fn is_dns_name(name: &str) -> bool {
    !name.starts_with('.') && rustls::pki_types::DnsName::try_from(name).is_ok()
}

/// An authority with its key.
pub struct Authority {
    certificate: Certificate,
    key: PrivateKey,
}

impl Authority {
    /// A new one, which has signed itself.
    pub fn create(cluster: ClusterId, now: Moment) -> Result<Authority> {
        let key = PrivateKey::generate();
        // Two authorities of one cluster have names of their own, so that a chain says which one it
        // is of.
        let name = format!("Meridian CA {}", secret::hex(&secret::random::<4>()));
        let mut params = params(&name, now, now.plus(AUTHORITY_LIFE_SECS));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.subject_alt_names = vec![SanType::URI(text(cluster.uri())?)];
        let made = key.with_pair(|pair| params.self_signed(pair).map_err(not_signed))?;
        Authority::new(Certificate::parse(made.der())?, key)
    }

    /// From a certificate and its key, of this program or of another one. An error if they do not
    /// belong together, or if this may sign nothing.
    pub fn new(certificate: Certificate, key: PrivateKey) -> Result<Authority> {
        if !certificate.may_sign_certificates() {
            return Err(Error::new(Kind::Mismatch, "the certificate is not that of an authority"));
        }
        if !certificate.is_of_key(&key.public_info()?) {
            return Err(Error::new(Kind::Mismatch, "the private key is not that of the certificate"));
        }
        Ok(Authority { certificate, key })
    }

    /// Its certificate.
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }
    /// Its key.
    pub fn key(&self) -> &PrivateKey {
        &self.key
    }

    /// A node's certificate, for servers and clients, good for `life_secs` from `now` on.
    pub fn sign_node(
        &self,
        cluster: ClusterId,
        node: NodeId,
        hosts: &Hosts,
        key: &PublicKey,
        now: Moment,
        life_secs: u64,
    ) -> Result<Certificate> {
        if node.0 == 0 {
            return Err(Error::new(Kind::Refused, "node 0 is nobody"));
        }
        let mut params = params(&format!("node {}", node.0), now, self.end(now, life_secs)?);
        params.subject_alt_names = vec![SanType::URI(text(cluster.node_uri(node))?)];
        for name in &hosts.dns_names {
            params.subject_alt_names.push(SanType::DnsName(text(name.clone())?));
        }
        params.subject_alt_names.extend(hosts.addresses.iter().copied().map(SanType::IpAddress));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let made = self.sign(params, key, &[Usage::Server, Usage::Client], now)?;
        let is_right = Identity::of(&made) == Some(Identity::Node { cluster, node });
        assert!(is_right, "a node's certificate names it: {made:?}");
        Ok(made)
    }

    /// A client's certificate: its common name is the role's.
    pub fn sign_client(&self, role: &str, key: &PublicKey, now: Moment, life_secs: u64) -> Result<Certificate> {
        if role.is_empty() || role.len() > ROLE_BYTES_MAX || role.chars().any(char::is_control) {
            return Err(Error::new(Kind::Refused, format!("{role:?} is no name of a role (1 to {ROLE_BYTES_MAX} bytes)")));
        }
        let mut params = params(role, now, self.end(now, life_secs)?);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let made = self.sign(params, key, &[Usage::Client], now)?;
        assert_eq!(Identity::of(&made), Some(Identity::Role(role.to_string())), "a client's certificate names its role");
        Ok(made)
    }

    fn end(&self, now: Moment, life_secs: u64) -> Result<Moment> {
        match now > self.certificate.not_after {
            true => Err(Error::new(Kind::Expired, format!("the authority has expired on {}", self.certificate.not_after))),
            false => Ok(now.plus(life_secs).min(self.certificate.not_after)),
        }
    }

    fn sign(&self, mut params: CertificateParams, key: &PublicKey, usages: &[Usage], now: Moment) -> Result<Certificate> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = self.certificate.key_id.is_some();
        // A verifier compares the issuer's name byte by byte.
        let mut issuer = CertificateParams::default();
        issuer.distinguished_name = name_of(&self.certificate)?;
        issuer.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        if let Some(id) = &self.certificate.key_id {
            issuer.key_identifier_method = KeyIdMethod::PreSpecified(id.clone());
        }
        let made = self.key.with_pair(|pair| {
            let issuer = Issuer::from_params(&issuer, pair);
            params.signed_by(key, &issuer).map_err(not_signed)
        })?;
        let made = Certificate::parse(made.der())?;
        if made.issuer != self.certificate.subject {
            return Err(unusual_name());
        }
        let bundle = Bundle::new(vec![self.certificate.clone()])?;
        for usage in usages {
            verify(made.der(), &[], &bundle, *usage, now)
                .map_err(|e| Error::new(Kind::Mismatch, format!("the authority's signature is not accepted: {e}")))?;
        }
        Ok(made)
    }
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Authority({:?})", self.certificate)
    }
}

fn not_signed(e: rcgen::Error) -> Error {
    Error::malformed(format!("the certificate cannot be made: {e}"))
}

fn unusual_name() -> Error {
    Error::new(Kind::Refused, "the authority's name has parts that this program cannot write: sign with the program that made it")
}

fn text<T: TryFrom<String>>(text: String) -> Result<T> {
    let shown = text.clone();
    T::try_from(text).map_err(|_| Error::malformed(format!("{shown:?} cannot stand in a certificate")))
}

fn params(common_name: &str, now: Moment, end: Moment) -> CertificateParams {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let at = |moment: Moment| epoch + Duration::from_secs(moment.0);
    let mut serial = secret::random::<16>();
    // Positive, and as long as it looks.
    serial[0] = serial[0] & 0x7f | 0x40;
    let mut params = CertificateParams::default();
    params.not_before = at(now.minus(BACKDATE_SECS));
    params.not_after = at(end);
    params.serial_number = Some(SerialNumber::from_slice(&serial));
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params
}

/// The name of an authority, as it is written again below what it signs.
fn name_of(authority: &Certificate) -> Result<DistinguishedName> {
    let contents = only(&authority.subject, tag::SEQUENCE).ok_or_else(unusual_name)?;
    let mut name = DistinguishedName::new();
    for (id, value) in attributes(contents).ok_or_else(unusual_name)? {
        let text = std::str::from_utf8(value.contents).map_err(|_| unusual_name())?;
        let value = match value.tag {
            tag::UTF8 => DnValue::Utf8String(text.to_string()),
            tag::PRINTABLE => DnValue::PrintableString(text.try_into().map_err(|_| unusual_name())?),
            tag::IA5 => DnValue::Ia5String(text.try_into().map_err(|_| unusual_name())?),
            _ => return Err(unusual_name()),
        };
        name.push(DnType::from_oid(&oid_arcs(id).ok_or_else(unusual_name)?), value);
    }
    Ok(name)
}
