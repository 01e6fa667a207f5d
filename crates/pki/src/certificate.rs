//! What a certificate says (RFC 5280, §4).
//!
//! Reading one verifies nothing: chains, signatures and times are `webpki`'s ([`crate::verify`]).
//! This reads what `webpki` does not give out: names, times, whose key it is.

use crate::der::{Element, Reader, each, only, tag};
use crate::error::{Error, Result};
use crate::secret::{hex, sha256};
use crate::time::Moment;
use rustls::pki_types::CertificateDer;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;

/// SHA-256 of a certificate's DER: the name of one certificate and no other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Fingerprint(pub [u8; 32]);

impl Fingerprint {
    /// That of a certificate's DER.
    pub fn of(der: &[u8]) -> Fingerprint {
        Fingerprint(sha256(der))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}
impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Longer certificates are not read. Those of this crate have less than 1 KiB.
pub const BYTES_MAX: usize = 64 << 10;

mod oid {
    pub const COMMON_NAME: &[u8] = &[0x55, 4, 3];
    pub const SUBJECT_KEY_ID: &[u8] = &[0x55, 29, 14];
    pub const KEY_USAGE: &[u8] = &[0x55, 29, 15];
    pub const ALTERNATIVE_NAMES: &[u8] = &[0x55, 29, 17];
    pub const BASIC_CONSTRAINTS: &[u8] = &[0x55, 29, 19];
    pub const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 29, 37];
    pub const SERVER_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 1];
    pub const CLIENT_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 2];
}

/// A certificate that can be read; nothing of it is verified.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificate {
    pub(crate) der: CertificateDer<'static>,
    /// Big-endian, as in the certificate.
    pub serial: Vec<u8>,
    /// The name of its authority, as DER.
    pub(crate) issuer: Vec<u8>,
    /// Its own name, as DER.
    pub(crate) subject: Vec<u8>,
    /// The common name in `subject`, if there is exactly one and it is text without NUL.
    pub common_name: Option<String>,
    /// Valid from here on.
    pub not_before: Moment,
    /// Valid up to here, inclusive.
    pub not_after: Moment,
    /// The SubjectPublicKeyInfo, as DER.
    pub(crate) public_key: Vec<u8>,
    /// The AlgorithmIdentifier of its signature, as DER, without tag and length.
    pub(crate) signature_algorithm: Vec<u8>,
    pub(crate) key_id: Option<Vec<u8>>,
    /// Whether it may sign others.
    pub is_authority: bool,
    /// Key usages as bits, the first one (digitalSignature) highest; `None`: not restricted.
    key_usage: Option<u8>,
    /// For servers, for clients; `None`: not restricted.
    extended_usage: Option<(bool, bool)>,
    /// DNS names that it is for.
    pub dns_names: Vec<String>,
    /// Addresses that it is for.
    pub addresses: Vec<IpAddr>,
    /// URIs that it is for.
    pub uris: Vec<String>,
}

impl Certificate {
    /// Reads one. An error for anything that is not exactly one certificate of version 3 with
    /// extensions that can be read.
    pub fn parse(der: &[u8]) -> Result<Certificate> {
        let refused = || Error::malformed("it is no certificate that can be read");
        if der.len() > BYTES_MAX {
            return Err(Error::malformed(format!("a certificate of {} bytes; at most {BYTES_MAX} are read", der.len())));
        }
        parse(der).ok_or_else(refused)
    }
    /// Its bytes.
    pub fn der(&self) -> &CertificateDer<'static> {
        &self.der
    }
    /// SHA-256 of its bytes.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.der)
    }
    /// Whether its key may sign handshakes.
    pub fn may_sign_handshakes(&self) -> bool {
        self.key_usage.is_none_or(|bits| bits & 0x80 != 0)
    }
    /// Whether its key may sign certificates.
    pub fn may_sign_certificates(&self) -> bool {
        self.is_authority && self.key_usage.is_none_or(|bits| bits & 0x04 != 0)
    }
    /// Whether a server may use it.
    pub fn is_for_servers(&self) -> bool {
        self.extended_usage.is_none_or(|(server, _)| server)
    }
    /// Whether a client may use it.
    pub fn is_for_clients(&self) -> bool {
        self.extended_usage.is_none_or(|(_, client)| client)
    }
    /// Whether the key that it certifies is this one, given as SubjectPublicKeyInfo.
    pub fn is_of_key(&self, public_key: &[u8]) -> bool {
        self.public_key == public_key
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Certificate({:?}, {:?}, {})", self.common_name, self.uris, self.fingerprint())
    }
}

fn parse(der: &[u8]) -> Option<Certificate> {
    let mut outer = Reader::new(only(der, tag::SEQUENCE)?);
    let mut body = Reader::new(outer.expect(tag::SEQUENCE)?);
    let signature_algorithm = outer.expect(tag::SEQUENCE)?;
    outer.expect(tag::BIT_STRING)?;
    let version = only(body.expect(tag::explicit(0))?, tag::INTEGER)?;
    let serial = body.expect(tag::INTEGER)?;
    let inner_algorithm = body.expect(tag::SEQUENCE)?;
    let issuer = body.next().filter(|e| e.tag == tag::SEQUENCE)?;
    let mut validity = Reader::new(body.expect(tag::SEQUENCE)?);
    let (not_before, not_after) = (moment(validity.next()?)?, moment(validity.next()?)?);
    let subject = body.next().filter(|e| e.tag == tag::SEQUENCE)?;
    let public_key = body.next().filter(|e| e.tag == tag::SEQUENCE)?;
    body.optional(tag::implicit(1));
    body.optional(tag::implicit(2));
    let extensions = body.optional(tag::explicit(3));
    let is_whole = outer.is_at_end() && body.is_at_end() && validity.is_at_end();
    if !is_whole || version != [2] || serial.is_empty() || inner_algorithm != signature_algorithm {
        return None;
    }
    let mut read = Certificate {
        der: CertificateDer::from(der.to_vec()),
        serial: serial.to_vec(),
        issuer: issuer.whole.to_vec(),
        subject: subject.whole.to_vec(),
        common_name: common_name(subject.contents)?,
        not_before,
        not_after,
        public_key: public_key.whole.to_vec(),
        signature_algorithm: signature_algorithm.to_vec(),
        key_id: None,
        is_authority: false,
        key_usage: None,
        extended_usage: None,
        dns_names: Vec::new(),
        addresses: Vec::new(),
        uris: Vec::new(),
    };
    if let Some(extensions) = extensions {
        let mut seen: Vec<&[u8]> = Vec::new();
        for extension in each(only(extensions.contents, tag::SEQUENCE)?)? {
            let mut parts = Reader::new(Some(extension).filter(|e| e.tag == tag::SEQUENCE)?.contents);
            let id = parts.expect(tag::OID)?;
            parts.optional(tag::BOOLEAN);
            let value = parts.expect(tag::OCTET_STRING)?;
            // RFC 5280, §4.2: at most one of each kind.
            if !parts.is_at_end() || seen.contains(&id) {
                return None;
            }
            seen.push(id);
            read.extension(id, value)?;
        }
    }
    Some(read)
}

impl Certificate {
    fn extension(&mut self, id: &[u8], value: &[u8]) -> Option<()> {
        match id {
            oid::SUBJECT_KEY_ID => self.key_id = Some(only(value, tag::OCTET_STRING)?.to_vec()),
            oid::KEY_USAGE => {
                // The number of unused bits comes first.
                let bits = only(value, tag::BIT_STRING)?;
                self.key_usage = Some(bits.get(1).copied().unwrap_or(0));
            }
            oid::BASIC_CONSTRAINTS => {
                let mut parts = Reader::new(only(value, tag::SEQUENCE)?);
                self.is_authority = parts.optional(tag::BOOLEAN).is_some_and(|b| b.contents == [0xff]);
            }
            oid::EXTENDED_KEY_USAGE => {
                let usages = each(only(value, tag::SEQUENCE)?)?;
                let has = |id: &[u8]| usages.iter().any(|u| u.tag == tag::OID && u.contents == id);
                self.extended_usage = Some((has(oid::SERVER_AUTH), has(oid::CLIENT_AUTH)));
            }
            oid::ALTERNATIVE_NAMES => {
                for name in each(only(value, tag::SEQUENCE)?)? {
                    self.alternative_name(name)?;
                }
            }
            _ => {}
        }
        Some(())
    }

    /// RFC 5280, §4.2.1.6. Kinds that are not used here are left out.
    fn alternative_name(&mut self, name: Element<'_>) -> Option<()> {
        let text = || std::str::from_utf8(name.contents).ok().filter(|t| t.is_ascii() && !t.contains('\0')).map(String::from);
        const DNS: u8 = tag::implicit(2);
        const URI: u8 = tag::implicit(6);
        const ADDRESS: u8 = tag::implicit(7);
        match name.tag {
            DNS => self.dns_names.push(text()?),
            URI => self.uris.push(text()?),
            ADDRESS => self.addresses.push(match name.contents.len() {
                4 => IpAddr::from(<[u8; 4]>::try_from(name.contents).ok()?),
                16 => IpAddr::from(<[u8; 16]>::try_from(name.contents).ok()?),
                _ => return None,
            }),
            _ => {}
        }
        Some(())
    }
}

/// The attributes of a name: object identifier, kind of text, text. `None`: it cannot be read.
pub(crate) fn attributes(name: &[u8]) -> Option<Vec<(&[u8], Element<'_>)>> {
    let mut all = Vec::new();
    for set in each(name)? {
        for pair in each(Some(set).filter(|s| s.tag == tag::SET)?.contents)? {
            let mut parts = Reader::new(Some(pair).filter(|p| p.tag == tag::SEQUENCE)?.contents);
            let (id, value) = (parts.expect(tag::OID)?, parts.next()?);
            if !parts.is_at_end() {
                return None;
            }
            all.push((id, value));
        }
    }
    Some(all)
}

/// `None`: the name cannot be read. `Some(None)`: it has no common name that could be a role's.
fn common_name(name: &[u8]) -> Option<Option<String>> {
    let names: Vec<_> = attributes(name)?.into_iter().filter(|(id, _)| *id == oid::COMMON_NAME).collect();
    let [(_, value)] = names[..] else { return Some(None) };
    let is_text = [tag::UTF8, tag::PRINTABLE, tag::IA5].contains(&value.tag);
    let text = std::str::from_utf8(value.contents).ok().filter(|t| is_text && !t.contains('\0'));
    Some(text.map(String::from))
}

/// RFC 5280, §4.1.2.5: up to 2049 with two digits of the year, from 2050 on with four.
fn moment(time: Element<'_>) -> Option<Moment> {
    let text = std::str::from_utf8(time.contents).ok()?.strip_suffix('Z')?;
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let (year, rest) = match (time.tag, text.len()) {
        (tag::UTC_TIME, 12) => {
            let year: u64 = text[..2].parse().ok()?;
            (if year < 50 { 2000 + year } else { 1900 + year }, &text[2..])
        }
        (tag::GENERALIZED_TIME, 14) => (text[..4].parse().ok()?, &text[4..]),
        _ => return None,
    };
    let part = |n: usize| rest[2 * n..2 * n + 2].parse::<u64>().ok();
    // An authority that was made before 1970 is not worth a case of its own.
    Moment::civil(year, part(0)?, part(1)?, part(2)?, part(3)?, part(4)?)
}
