//! SCRAM-SHA-256 verifiers (RFC 5802, RFC 7677), as PostgreSQL stores them:
//! `SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>`.
//!
//! A verifier is no password: who reads it cannot log in with it, but can try passwords at leisure.
//!
//! A user that is not there is answered as one that is: with a salt that stays the same for a name,
//! made from a secret of the cluster, so that it looks alike at every node and cannot be told from
//! a real one ([`Verifier::mock`]). No password fits it.

use crate::error::{Error, Result};
use crate::rules::Rules;
use crate::secret::{self, Secret, hmac, same, sha256};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::pbkdf2;
use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroU32;
use zeroize::Zeroizing;

/// As in PostgreSQL 15.
pub const ITERATIONS: u32 = 4_096;
/// As in PostgreSQL: `SCRAM_DEFAULT_SALT_LEN`.
pub const SALT_BYTES: usize = 16;
/// The most that is taken from elsewhere (`pg_dumpall`): each check of a password takes that long.
pub const ITERATIONS_MAX: u32 = 1_000_000;
const SALT_BYTES_MAX: usize = 64;
const PREFIX: &str = "SCRAM-SHA-256$";

/// What a server keeps of a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Verifier {
    /// PBKDF2's.
    pub iterations: u32,
    /// Told to everybody who asks.
    pub salt: Vec<u8>,
    /// `H(ClientKey)`.
    pub stored_key: Secret,
    /// `HMAC(SaltedPassword, "Server Key")`.
    pub server_key: Secret,
}

impl Verifier {
    /// Of a password, with a new salt.
    pub fn new(password: &str) -> Verifier {
        Verifier::with_salt(password, secret::random::<SALT_BYTES>().to_vec(), ITERATIONS)
    }
    /// Of a password, a salt, and 1 to [`ITERATIONS_MAX`] iterations.
    pub fn with_salt(password: &str, salt: Vec<u8>, iterations: u32) -> Verifier {
        let iterations = iterations.clamp(1, ITERATIONS_MAX);
        let rounds = NonZeroU32::new(iterations).expect("at least 1");
        let mut salted = Zeroizing::new([0; 32]);
        let password = normalized(password);
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, rounds, &salt, password.as_bytes(), salted.as_mut());
        let client_key = Zeroizing::new(hmac(salted.as_ref(), &[b"Client Key"]));
        let stored_key = Secret::new(sha256(client_key.as_ref()));
        let server_key = Secret::new(hmac(salted.as_ref(), &[b"Server Key"]));
        Verifier { iterations, salt, stored_key, server_key }
    }
    /// What is answered for a user that is not there. `secret` is the cluster's and never changes,
    /// as the salts of users do not.
    pub fn mock(cluster: &Secret, user: &str, rules: Rules) -> Verifier {
        let part = |what: &[u8]| hmac(cluster.expose(), &[what, user.as_bytes()]);
        let mut salt = part(b"meridian scram salt\0")[..SALT_BYTES].to_vec();
        if !rules.mock_salts_repeat() {
            salt = secret::random::<SALT_BYTES>().to_vec();
        }
        let (stored_key, server_key) =
            (Secret::new(part(b"meridian scram stored\0")), Secret::new(part(b"meridian scram server\0")));
        Verifier { iterations: ITERATIONS, salt, stored_key, server_key }
    }
    /// Whether a text is meant as a verifier rather than as a password.
    pub fn is_one(text: &str) -> bool {
        Verifier::parse(text).is_ok()
    }
    /// Reads what [`Verifier::to_text`] or PostgreSQL wrote.
    pub fn parse(text: &str) -> Result<Verifier> {
        parse(text).ok_or_else(|| Error::malformed("it is no SCRAM-SHA-256 verifier"))
    }
    /// As PostgreSQL stores it. It is to be kept from other users.
    pub fn to_text(&self) -> Zeroizing<String> {
        let base64 = |bytes: &[u8]| STANDARD.encode(bytes);
        let (stored, server) = (base64(self.stored_key.expose()), base64(self.server_key.expose()));
        Zeroizing::new(format!("{PREFIX}{}:{}${stored}:{server}", self.iterations, base64(&self.salt)))
    }
    /// Whether a password is the right one. It takes as long for a wrong one.
    pub fn fits(&self, password: &str) -> bool {
        let other = Verifier::with_salt(password, self.salt.clone(), self.iterations);
        let (stored, server) = (other.stored_key == self.stored_key, other.server_key == self.server_key);
        stored & server
    }
    /// Whether a client's proof is right, and the server's signature to answer with (RFC 5802, §3).
    pub fn prove(&self, auth_message: &[u8], proof: &[u8; 32]) -> Option<[u8; 32]> {
        let signature = hmac(self.stored_key.expose(), &[auth_message]);
        let mut client_key = Zeroizing::new([0; 32]);
        for (key, (a, b)) in client_key.iter_mut().zip(proof.iter().zip(&signature)) {
            *key = a ^ b;
        }
        let is_right = same(&sha256(client_key.as_ref()), self.stored_key.expose());
        let answer = hmac(self.server_key.expose(), &[auth_message]);
        is_right.then_some(answer)
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Verifier({} iterations)", self.iterations)
    }
}

fn parse(text: &str) -> Option<Verifier> {
    let (parameters, keys) = text.strip_prefix(PREFIX)?.split_once('$')?;
    let ((iterations, salt), (stored, server)) = (parameters.split_once(':')?, keys.split_once(':')?);
    let number: u32 = iterations.parse().ok().filter(|n| (1..=ITERATIONS_MAX).contains(n))?;
    if number.to_string() != iterations {
        return None;
    }
    let key = |text: &str| {
        let bytes = Zeroizing::new(STANDARD.decode(text).ok()?);
        Some(Secret::new(bytes.as_slice().try_into().ok()?))
    };
    let salt = STANDARD.decode(salt).ok().filter(|salt| (1..=SALT_BYTES_MAX).contains(&salt.len()))?;
    Some(Verifier { iterations: number, salt, stored_key: key(stored)?, server_key: key(server)? })
}

/// SASLprep (RFC 4013). A password that it forbids is taken as it is, as PostgreSQL does.
fn normalized(password: &str) -> Cow<'_, str> {
    match stringprep::saslprep(password) {
        Ok(prepared) if !prepared.is_empty() => prepared,
        _ => Cow::Borrowed(password),
    }
}
