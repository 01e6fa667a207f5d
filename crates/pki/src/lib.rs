//! Certificates, tokens and password verifiers: who is who in a cluster, and how it is shown.
//!
//! **One authority.** A cluster has a certificate authority of its own ([`authority`]), made when
//! it is founded. It signs a certificate for each node, which names the cluster and the node id in
//! a URI ([`identity`]), and certificates for clients, whose common name is a role. Names and
//! addresses in a node's certificate are for clients that verify them; nodes do not look at them,
//! since a node may move and its id may not.
//!
//! **Two kinds of connections** ([`tls`]). Nodes talk TLS 1.3 to each other, with certificates on
//! both sides, and the peer *is* the node id of its certificate. Clients talk TLS 1.2 or 1.3, with
//! a certificate if they have one. Every handshake is a full one: no session is resumed, so a
//! certificate that is revoked, or whose authority was taken out, opens nothing any more.
//! Certificates are replaced under a running process ([`tls::Tls::replace`]).
//!
//! **Joining** ([`join`]). A new node has no certificate and knows no authority. It is given a
//! token: a secret and the fingerprint of the authority. It sends nothing that depends on the
//! secret until whoever answers has shown a certificate of that authority, and then a proof that is
//! of use on this connection only.
//!
//! **Time** is the caller's ([`Moment`]). Certificates begin an hour before they are made and hold
//! a few minutes longer than they say, because clocks differ ([`verify::CLOCK_TOLERANCE_SECS`]).
//!
//! **Secrets** ([`secret`]) are not printed, are overwritten when they are dropped, and are
//! compared in constant time.
//!
//! The essays of the modules say the rest; `docs/design/security.md` says what it protects against,
//! and how nodes use it. [`rules`] names those that tests break one at a time.
//!
//! This crate opens files of one directory ([`directory`]) and draws random bytes from the system
//! ([`secret::random`]). It opens no socket, reads no clock, starts no thread, and knows nothing of
//! the catalog, of SQL or of how messages between nodes are framed.

pub mod authority;
pub mod certificate;
pub mod commands;
mod der;
pub mod directory;
mod error;
pub mod identity;
pub mod join;
pub mod key;
mod pem;
pub mod renewal;
pub mod rotation;
pub mod rules;
pub mod scram;
pub mod seal;
pub mod secret;
mod time;
pub mod tls;
pub mod verify;

pub use authority::Authority;
pub use certificate::{Certificate, Fingerprint};
pub use directory::Directory;
pub use error::{Error, Kind, Result};
pub use identity::{ClusterId, Identity};
pub use key::{PrivateKey, PublicKey};
pub use rules::{PlantedBug, Rules};
pub use time::Moment;
pub use verify::Bundle;
