//! Tokens as text.
//!
//! `mj1.` and 108 characters: 81 bytes in base64 for URLs (RFC 4648, §5).
//!
//! ```text
//! bytes   what
//!  0..8   id
//!  8..40  secret
//! 40..45  end, in seconds since 1970, big-endian
//! 45..77  SHA-256 of the authority's certificate
//! 77..81  the first bytes of SHA-256 of `mj1.` and all that is before: tells a token that was
//!         cut or mistyped, and protects against nothing else
//! ```

use crate::certificate::Fingerprint;
use crate::secret::{Secret, hex, random, sha256};
use crate::time::Moment;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use std::fmt;
use zeroize::Zeroizing;

/// How long a token is good by default: an hour.
pub const TOKEN_LIFE_SECS: u64 = 3_600;
const PREFIX: &str = "mj1.";
const BYTES: usize = 81;
const CHARS: usize = BYTES / 3 * 4;
/// The latest end that fits.
const END_MAX: u64 = (1 << 40) - 1;

/// The name of a token, which is no secret.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TokenId(pub [u8; 8]);

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}
impl fmt::Debug for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text is no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenError {
    /// It does not begin as one.
    Other,
    /// It begins as one, of a version that this program does not know.
    Version,
    /// Characters are missing at its end, or there are too many.
    Length { is: usize },
    /// One of its characters is wrong.
    Mistyped,
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenError::Other => write!(f, "this is no join token: it does not begin with {PREFIX}"),
            TokenError::Version => write!(f, "this join token is of a version that this program does not know"),
            TokenError::Length { is } => {
                let what = if *is < PREFIX.len() + CHARS { "was cut" } else { "is too long" };
                write!(f, "the join token {what}: it has {is} characters instead of {}", PREFIX.len() + CHARS)
            }
            TokenError::Mistyped => write!(f, "the join token was mistyped: its check does not fit"),
        }
    }
}

impl std::error::Error for TokenError {}

/// A join token. Not printed; its text is made by [`Token::reveal`] only.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    /// What the cluster knows it by.
    pub id: TokenId,
    /// What the joiner proves to know.
    pub secret: Secret,
    /// Good up to here, by the cluster's clocks.
    pub expires: Moment,
    /// The authority that the joiner believes.
    pub authority: Fingerprint,
}

impl Token {
    /// A new one.
    pub fn create(authority: Fingerprint, expires: Moment) -> Token {
        Token { id: TokenId(random()), secret: Secret::random(), expires: Moment(expires.0.min(END_MAX)), authority }
    }
    /// The text that an operator carries to the new node.
    pub fn reveal(&self) -> Zeroizing<String> {
        let mut bytes = Zeroizing::new([0; BYTES]);
        bytes[..8].copy_from_slice(&self.id.0);
        bytes[8..40].copy_from_slice(self.secret.expose());
        bytes[40..45].copy_from_slice(&self.expires.0.min(END_MAX).to_be_bytes()[3..]);
        bytes[45..77].copy_from_slice(&self.authority.0);
        let check = check(&bytes[..77]);
        bytes[77..].copy_from_slice(&check);
        let mut text = Zeroizing::new(String::with_capacity(PREFIX.len() + CHARS));
        text.push_str(PREFIX);
        URL_SAFE_NO_PAD.encode_string(bytes.as_ref(), &mut text);
        text
    }
    /// Reads such a text; white space around it is left out.
    pub fn parse(text: &str) -> Result<Token, TokenError> {
        let text = text.trim();
        let Some(body) = text.strip_prefix(PREFIX) else {
            let is_of_us = text.strip_prefix("mj").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
            return Err(if is_of_us { TokenError::Version } else { TokenError::Other });
        };
        if body.len() != CHARS {
            return Err(TokenError::Length { is: text.chars().count() });
        }
        let bytes = Zeroizing::new(URL_SAFE_NO_PAD.decode(body).map_err(|_| TokenError::Mistyped)?);
        if bytes.len() != BYTES || bytes[77..] != check(&bytes[..77]) {
            return Err(TokenError::Mistyped);
        }
        let part = |from: usize| <[u8; 32]>::try_from(&bytes[from..from + 32]).expect("32 bytes");
        let mut end = [0; 8];
        end[3..].copy_from_slice(&bytes[40..45]);
        Ok(Token {
            id: TokenId(bytes[..8].try_into().expect("8 bytes")),
            secret: Secret::new(part(8)),
            expires: Moment(u64::from_be_bytes(end)),
            authority: Fingerprint(part(45)),
        })
    }
}

fn check(bytes: &[u8]) -> [u8; 4] {
    let hashed = Zeroizing::new([PREFIX.as_bytes(), bytes].concat());
    sha256(&hashed)[..4].try_into().expect("4 bytes")
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({}, until {})", self.id, self.expires)
    }
}
