//! How a process without a certificate becomes a node: a token, and an exchange of two messages.
//!
//! An operator has a token made (`meridian token create`) and gives it to the new node. The token
//! has an id, a secret, an end, and the fingerprint of the cluster's authority. The cluster keeps
//! what is needed to check a proof of the secret ([`StoredToken`]), and not the secret.
//!
//! ```text
//!   joiner                                              a node
//!     | -- TLS 1.3 handshake, no client certificate ---> |
//!     | <-- certificate, authority --------------------- |
//!   the authority has the token's fingerprint and signed the certificate; else: stop
//!     | -- Ask: token id, public key, proof -----------> |
//!     |                               the proof is right, the token is good and not used;
//!     |                               registers a node, marks the token as used: one step
//!     | <-- Granted: certificate, authorities ---------- |
//!   the certificate is of this key and of this cluster; stores it
//! ```
//!
//! **The proof** is made as in SCRAM (RFC 5802, §3), with a secret that needs no stretching:
//!
//! ```text
//! ClientKey = HMAC(secret, "meridian join client key")
//! StoredKey = SHA-256(ClientKey)
//! proof     = ClientKey xor HMAC(StoredKey, "meridian join proof" + binding + what is asked for)
//! ```
//!
//! So neither the secret nor anything that could replace it crosses the network or lies in the
//! catalog: who reads `StoredKey` cannot make a proof, and who sees a proof cannot use it again,
//! since `binding` is the connection's (keying material exporter, RFC 8446, §7.5) and the key and
//! the names that are asked for are part of it. A node that takes part in the exchange, and reads
//! the catalog, learns `ClientKey`; it is a member, and the token is used up by then.
//!
//! **Once.** A token is good for one public key. A process that asks again with the same key,
//! because the answer was lost, gets the same node id.
//!
//! **Refusals** are one message, whatever the reason; the operator of the cluster reads the reason
//! in the log ([`Refusal`]).
//!
//! [`Joiner`] and [`Host`] are state machines: bytes, certificates and times come in, and actions
//! come out. Framing, timeouts and the catalog are their callers'.

mod exchange;
mod stored;
mod token;

pub use exchange::{
    Admission, Answer, Ask, Granted, Host, HostAction, JoinFailure, Joiner, JoinerAction, MESSAGE_BYTES_MAX, Membership, REFUSED,
};
pub use stored::{Binding, Refusal, StoredToken, Use, Used};
pub use token::{TOKEN_LIFE_SECS, Token, TokenError, TokenId};
