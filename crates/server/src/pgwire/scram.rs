//! SCRAM-SHA-256 and SCRAM-SHA-256-PLUS at the server (RFC 5802, RFC 7677; PostgreSQL manual,
//! 55.3): a state machine without a socket.
//!
//! A user that is not there is answered from [`Verifier::mock`], with the same work and the same
//! messages, up to the last one.

use super::frontend::violation;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use meridian_base::{Error, Result};
use meridian_pki::scram::Verifier;

pub const PLAIN: &str = "SCRAM-SHA-256";
pub const PLUS: &str = "SCRAM-SHA-256-PLUS";

/// What was said so far.
pub struct Exchange {
    verifier: Verifier,
    /// No password fits: the user is not there, or has none.
    is_mock: bool,
    /// `c=` of the last message.
    binding: String,
    nonce: String,
    /// The client's first message without its head, and the server's.
    said: String,
}

/// The data of the channel, if there is some to bind to.
type EndPoint<'a> = Option<&'a [u8]>;

impl Exchange {
    /// Reads the first message, and answers it.
    pub fn begin(
        mechanism: &str,
        first: &[u8],
        end_point: EndPoint<'_>,
        verifier: Verifier,
        is_mock: bool,
        own_nonce: &str,
    ) -> Result<(Exchange, String)> {
        let first = std::str::from_utf8(first).map_err(|_| malformed("the message is no text"))?;
        let mut parts = first.splitn(3, ',');
        let (Some(flag), Some(identity), Some(bare)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(malformed("the message is too short"));
        };
        let head = format!("{flag},{identity},");
        let is_plus = mechanism == PLUS;
        let bound: &[u8] = match (flag, is_plus, end_point) {
            ("n", false, _) => &[],
            // A client that could bind the channel was told that the server cannot.
            ("y", false, Some(_)) => {
                return Err(Error::sql("28000", "SCRAM channel binding negotiation error").detail(
                    "The client supports SCRAM channel binding but thinks the server does not. However, this server does \
                     support channel binding.",
                ));
            }
            ("y", false, None) => &[],
            ("p=tls-server-end-point", true, Some(end_point)) => end_point,
            (flag, true, Some(_)) if flag.starts_with("p=") => {
                return Err(violation(format!("unsupported SCRAM channel-binding type \"{}\"", printable(&flag[2..]))));
            }
            ("n" | "y", true, _) => {
                return Err(malformed(
                    "The client selected SCRAM-SHA-256-PLUS, but the SCRAM message does not include channel \
                                      binding data.",
                ));
            }
            _ => {
                return Err(malformed(
                    "The client selected SCRAM-SHA-256 without channel binding, but the SCRAM message \
                                       includes channel binding data.",
                ));
            }
        };
        if !identity.is_empty() {
            return Err(Error::unsupported("client uses authorization identity, but it is not supported"));
        }
        if bare.starts_with("m=") {
            return Err(Error::unsupported("client requires an unsupported SCRAM extension"));
        }
        let mut fields = bare.split(',');
        // The name is that of the startup message, whatever is said here.
        let (name, nonce) = (fields.next().and_then(|f| f.strip_prefix("n=")), fields.next().and_then(|f| f.strip_prefix("r=")));
        let (Some(_), Some(nonce)) = (name, nonce) else { return Err(malformed("an attribute is missing")) };
        if nonce.is_empty() || !nonce.bytes().all(|b| (0x21..=0x7e).contains(&b)) {
            return Err(malformed("non-printable characters in SCRAM nonce"));
        }
        let nonce = format!("{nonce}{own_nonce}");
        let answer = format!("r={nonce},s={},i={}", STANDARD.encode(&verifier.salt), verifier.iterations);
        let binding = STANDARD.encode([head.as_bytes(), bound].concat());
        let said = format!("{bare},{answer}");
        Ok((Exchange { verifier, is_mock, binding, nonce, said }, answer))
    }
    /// Reads the last message. `Ok(None)`: the proof is wrong.
    pub fn finish(&self, last: &[u8]) -> Result<Option<String>> {
        let last = std::str::from_utf8(last).map_err(|_| malformed("the message is no text"))?;
        let (without_proof, proof) = last.rsplit_once(",p=").ok_or_else(|| malformed("there is no proof"))?;
        let mut fields = without_proof.split(',');
        let (binding, nonce) =
            (fields.next().and_then(|f| f.strip_prefix("c=")), fields.next().and_then(|f| f.strip_prefix("r=")));
        let (Some(binding), Some(nonce)) = (binding, nonce) else { return Err(malformed("an attribute is missing")) };
        if binding != self.binding {
            return Err(Error::sql("28000", "SCRAM channel binding check failed"));
        }
        if nonce != self.nonce {
            return Err(violation("invalid SCRAM response").detail("Nonce does not match."));
        }
        let proof = STANDARD.decode(proof).ok().and_then(|p| <[u8; 32]>::try_from(p).ok());
        let proof = proof.ok_or_else(|| malformed("Malformed proof in client-final-message."))?;
        let message = format!("{},{without_proof}", self.said);
        let signature = self.verifier.prove(message.as_bytes(), &proof);
        Ok(signature.filter(|_| !self.is_mock).map(|s| format!("v={}", STANDARD.encode(s))))
    }
}

fn malformed(detail: &str) -> Error {
    violation("malformed SCRAM message").detail(detail)
}

fn printable(text: &str) -> String {
    text.chars().filter(|c| c.is_ascii_graphic()).take(32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn verifier() -> Verifier {
        // RFC 7677, §3.
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        Verifier::with_salt("pencil", salt, 4096)
    }

    #[test]
    fn the_exchange_of_the_rfc() {
        let (exchange, answer) = Exchange::begin(
            PLAIN,
            b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
            None,
            verifier(),
            false,
            "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
        )
        .unwrap();
        assert_eq!(answer, "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096");
        let last = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        let signed = exchange.finish(last.as_bytes()).unwrap();
        assert_eq!(signed.as_deref(), Some("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="));
        let wrong = last.replace("p=dHzb", "p=eHzb");
        assert_eq!(exchange.finish(wrong.as_bytes()).unwrap(), None);
        let bound = last.replace("c=biws", "c=eSws");
        assert_eq!(exchange.finish(bound.as_bytes()).unwrap_err().sqlstate(), "28000");
    }

    #[test]
    fn channel_binding_cannot_be_taken_away() {
        let begin =
            |mechanism, first: &[u8], end_point| Exchange::begin(mechanism, first, end_point, verifier(), false, "x").err();
        assert_eq!(begin(PLAIN, b"y,,n=,r=a", Some(&b"hash"[..])).unwrap().sqlstate(), "28000");
        assert!(begin(PLAIN, b"y,,n=,r=a", None).is_none());
        assert!(begin(PLUS, b"p=tls-server-end-point,,n=,r=a", Some(&b"hash"[..])).is_none());
        for first in [&b"n,,n=,r=a"[..], b"p=tls-unique,,n=,r=a", b"y,,n=,r=a"] {
            assert_eq!(begin(PLUS, first, Some(&b"hash"[..])).unwrap().sqlstate(), "08P01");
        }
        assert_eq!(begin(PLAIN, b"p=tls-server-end-point,,n=,r=a", Some(&b"hash"[..])).unwrap().sqlstate(), "08P01");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(first in proptest::collection::vec(any::<u8>(), 0..80), last: Vec<u8>, is_plus: bool) {
            let mechanism = if is_plus { PLUS } else { PLAIN };
            let cheap = Verifier::with_salt("x", vec![1], 1);
            if let Ok((exchange, _)) = Exchange::begin(mechanism, &first, Some(b"h"), cheap.clone(), false, "n") {
                let _ = exchange.finish(&last);
            }
            let (exchange, _) = Exchange::begin(PLAIN, b"n,,n=,r=a", None, cheap, false, "n").unwrap();
            prop_assert!(!matches!(exchange.finish(&last), Ok(Some(_))));
        }
    }
}
