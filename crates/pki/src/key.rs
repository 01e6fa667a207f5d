//! Keys. New ones are on the curve P-256 (FIPS 186-5), which every client's library knows.

use crate::error::{Error, Kind, Result};
use crate::pem;
use rcgen::{PKCS_ECDSA_P256_SHA256, PublicKeyData, SigningKey};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, UnparsedPublicKey};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use zeroize::{Zeroize, Zeroizing};

/// How a key is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Pkcs8,
    Pkcs1,
    Sec1,
}

/// A private key: on P-256 if it was made here, of any kind that `rustls` signs with if it comes
/// from a file. Not printed; overwritten when it is dropped.
#[derive(Clone)]
pub struct PrivateKey {
    form: Form,
    der: Zeroizing<Vec<u8>>,
}

impl PrivateKey {
    /// A new key on P-256.
    pub fn generate() -> PrivateKey {
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &SystemRandom::new());
        let made = made.expect("the system gives random bytes");
        PrivateKey { form: Form::Pkcs8, der: Zeroizing::new(made.as_ref().to_vec()) }
    }
    /// Reads the one private key of a text.
    pub fn from_pem(text: &[u8]) -> Result<PrivateKey> {
        let form = |label: &str| match label {
            "PRIVATE KEY" => Some(Form::Pkcs8),
            "RSA PRIVATE KEY" => Some(Form::Pkcs1),
            "EC PRIVATE KEY" => Some(Form::Sec1),
            _ => None,
        };
        let blocks = pem::read(text)?;
        if blocks.iter().any(|b| b.label == "ENCRYPTED PRIVATE KEY") {
            return Err(Error::malformed("the key is encrypted, and nobody is there to be asked for its password"));
        }
        let mut keys = blocks.into_iter().filter_map(|b| Some(PrivateKey { form: form(&b.label)?, der: b.der }));
        let key = match (keys.next(), keys.next()) {
            (Some(key), None) => key,
            (None, _) => return Err(Error::malformed("it contains no private key")),
            (Some(_), Some(_)) => return Err(Error::malformed("it contains more than one private key")),
        };
        key.signer()?;
        Ok(key)
    }
    /// As a text. It is secret.
    pub fn to_pem(&self) -> Zeroizing<String> {
        let label = match self.form {
            Form::Pkcs8 => "PRIVATE KEY",
            Form::Pkcs1 => "RSA PRIVATE KEY",
            Form::Sec1 => "EC PRIVATE KEY",
        };
        pem::write(label, &self.der)
    }
    fn rustls(&self) -> PrivateKeyDer<'_> {
        match self.form {
            Form::Pkcs8 => PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.der.as_slice())),
            Form::Pkcs1 => PrivateKeyDer::from(PrivatePkcs1KeyDer::from(self.der.as_slice())),
            Form::Sec1 => PrivateKeyDer::from(PrivateSec1KeyDer::from(self.der.as_slice())),
        }
    }
    /// For handshakes.
    pub(crate) fn signer(&self) -> Result<Arc<dyn rustls::sign::SigningKey>> {
        rustls::crypto::ring::sign::any_supported_type(&self.rustls())
            .map_err(|_| Error::malformed("the private key is damaged or of a kind that is not supported"))
    }
    /// For signing certificates.
    pub(crate) fn with_pair<T>(&self, work: impl FnOnce(&rcgen::KeyPair) -> Result<T>) -> Result<T> {
        let refused =
            |_| Error::malformed("this private key cannot sign certificates (PKCS #8 with P-256, P-384, Ed25519 or RSA)");
        let mut pair = rcgen::KeyPair::try_from(&self.rustls()).map_err(refused)?;
        let done = work(&pair);
        pair.zeroize();
        done
    }
    /// The public key as SubjectPublicKeyInfo.
    pub(crate) fn public_info(&self) -> Result<Vec<u8>> {
        let info = self.signer()?.public_key().map(|info| info.as_ref().to_vec());
        info.ok_or_else(|| Error::malformed("the private key does not tell its public key"))
    }
    /// The public key of a key that was made here; an error for other kinds.
    pub fn public(&self) -> Result<PublicKey> {
        self.with_pair(|pair| match pair.is_compatible(&PKCS_ECDSA_P256_SHA256) {
            true => Ok(PublicKey(pair.public_key_raw().to_vec())),
            false => Err(Error::new(Kind::Mismatch, "only a key on P-256 can be certified by the cluster")),
        })
    }
    /// Signs a message (ECDSA with SHA-256 for a key that was made here).
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>> {
        self.with_pair(|pair| pair.sign(message).map_err(|_| Error::malformed("the private key does not sign")))
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey(…)")
    }
}

/// A public key on P-256: an uncompressed point (SEC 1, §2.3.3), 65 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicKey(pub(crate) Vec<u8>);

impl PublicKey {
    /// Whether this key signed a message. `false` for everything that is no point of the curve.
    pub fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        self.0.len() == 65 && UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, &self.0).verify(message, signature).is_ok()
    }
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The SubjectPublicKeyInfo of a point of P-256, up to the point (RFC 5480, §2).
const P256_INFO: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03,
    0x01, 0x07, 0x03, 0x42, 0x00,
];

/// Reads a SubjectPublicKeyInfo; `None` for keys of other kinds.
pub(crate) fn public_key_of(info: &[u8]) -> Option<PublicKey> {
    info.strip_prefix(&P256_INFO).filter(|point| point.len() == 65).map(|point| PublicKey(point.to_vec()))
}

impl PublicKeyData for PublicKey {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }
    fn algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
        &PKCS_ECDSA_P256_SHA256
    }
}
