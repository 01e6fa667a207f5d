//! Bytes that nobody may see.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// 256 secret bits. They are not printed, and are overwritten when they are dropped.
#[derive(Clone)]
pub struct Secret(Zeroizing<[u8; 32]>);

impl Secret {
    /// These bytes.
    pub fn new(bytes: [u8; 32]) -> Secret {
        Secret(Zeroizing::new(bytes))
    }
    /// New ones, from the system's generator.
    pub fn random() -> Secret {
        Secret(Zeroizing::new(random()))
    }
    /// The bytes, for computing with them.
    pub fn expose(&self) -> &[u8; 32] {
        &self.0
    }
}

impl PartialEq for Secret {
    /// In constant time.
    fn eq(&self, other: &Secret) -> bool {
        same(self.expose(), other.expose())
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// A new password: 144 random bits, as 24 characters that need no quoting in a URL.
pub fn password() -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::with_capacity(24));
    URL_SAFE_NO_PAD.encode_string(Zeroizing::new(random::<18>()).as_ref(), &mut text);
    text
}

/// Whether two strings of bytes are the same, in a time that depends on their lengths only.
pub fn same(a: &[u8], b: &[u8]) -> bool {
    a.ct_eq(b).into()
}

/// Random bytes for keys, tokens, salts and serial numbers, from the system's generator. Panics if
/// the system has none, since nothing safe can be done then.
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).expect("the system gives random bytes");
    bytes
}

/// SHA-256.
pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// HMAC-SHA-256 of the parts, one after the other (RFC 2104).
pub(crate) fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, key);
    let mut context = ring::hmac::Context::with_key(&key);
    parts.iter().for_each(|part| context.update(part));
    context.sign().as_ref().try_into().expect("HMAC-SHA-256 has 32 bytes")
}

/// Bytes as text.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_printed() {
        let secret = Secret::new([0xab; 32]);
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        assert!(secret == Secret::new([0xab; 32]) && secret != Secret::random());
    }

    #[test]
    fn hmac_is_that_of_rfc_4231() {
        let mac = hmac(b"Jefe", &[b"what do ya want ", b"for nothing?"]);
        assert_eq!(hex(&mac), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }
}
