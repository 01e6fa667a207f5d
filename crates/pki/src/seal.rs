//! Requests that a third node passes on: who has sent them.
//!
//! A connection tells who is at its other end, and a node that passes a request on is not who has
//! sent it. So the sender signs the request, with the receiver's id and the time, and shows its
//! certificate; the receiver verifies both. Within [`SEAL_SECS_MAX`] whoever has seen a sealed
//! request can send it to the same receiver once more: what nodes ask of each other may arrive
//! twice in any case.
//!
//! Only keys on P-256 sign, which are those that this program makes.

use crate::certificate::Certificate;
use crate::error::Result;
use crate::key::{PublicKey, public_key_of};
use crate::time::Moment;
use crate::tls::Tls;
use crate::verify::{PeerRefusal, Usage, verify};
use meridian_base::{NodeId, envelope};
use rustls::pki_types::CertificateDer;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A sealed request is good for so long: more than its sender waits for an answer, and clocks
/// differ.
pub const SEAL_SECS_MAX: u64 = 120;
const CHAIN_MAX: usize = 8;

/// Who has sent a request, and that it did.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    /// The sender's certificate and those between it and the authority, as DER.
    chain: Vec<Vec<u8>>,
    /// When it was sent, by the sender's clock.
    at: Moment,
    signature: Vec<u8>,
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Seal({})", self.at)
    }
}

fn signed(to: NodeId, at: Moment, request: &[u8]) -> Vec<u8> {
    [b"meridian relayed request".as_slice(), &envelope::encode(&(to, at, request))].concat()
}

impl Tls {
    /// Seals a request for a node.
    pub fn seal(&self, to: NodeId, request: &[u8]) -> Result<Seal> {
        let (current, at) = (self.current(), self.now());
        let chain = current.pair.chain().iter().map(|c| c.der().to_vec()).collect();
        Ok(Seal { chain, at, signature: current.pair.key().sign(&signed(to, at, request))? })
    }

    /// Who has sealed a request that has come to this node.
    pub fn sealed_by(&self, seal: &Seal, request: &[u8]) -> std::result::Result<NodeId, PeerRefusal> {
        let (current, now) = (self.current(), self.now());
        let (first, between) = seal.chain.split_first().filter(|(_, rest)| rest.len() < CHAIN_MAX).ok_or(PeerRefusal::Nobody)?;
        let between: Vec<CertificateDer<'_>> = between.iter().map(|der| CertificateDer::from(der.as_slice())).collect();
        let certificate = verify(&CertificateDer::from(first.as_slice()), &between, &current.bundle, Usage::Client, now)?;
        let node = self.admitted(&certificate)?;
        let is_timely = now.since(seal.at).max(seal.at.since(now)) <= SEAL_SECS_MAX;
        let is_signed =
            key_of(&certificate).is_some_and(|key| key.has_signed(&signed(current.node, seal.at, request), &seal.signature));
        match is_timely && is_signed {
            true => Ok(node),
            false => Err(PeerRefusal::Unsealed(node)),
        }
    }
}

fn key_of(certificate: &Certificate) -> Option<PublicKey> {
    public_key_of(&certificate.public_key)
}
