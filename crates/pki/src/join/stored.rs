//! What the cluster keeps of a token, and how it checks a proof.

use super::exchange::Ask;
use super::token::{Token, TokenId};
use crate::certificate::Fingerprint;
use crate::key::PublicKey;
use crate::rules::Rules;
use crate::secret::{Secret, hmac, same, sha256};
use crate::time::Moment;
use meridian_base::NodeId;
use serde::{Deserialize, Serialize};
use std::fmt;
use zeroize::Zeroizing;

/// What makes a proof one of this connection: 32 bytes of keying material that both ends export
/// (RFC 8446, §7.5), and nobody else knows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Binding(pub [u8; 32]);

impl Binding {
    /// The label of the export; its context is empty.
    pub const LABEL: &'static [u8] = b"EXPORTER-meridian-join";

    /// Exports it from either end of a connection whose handshake is complete.
    pub fn export<D>(connection: &rustls::ConnectionCommon<D>) -> Result<Binding, rustls::Error> {
        connection.export_keying_material([0; 32], Binding::LABEL, None).map(Binding)
    }
}

impl fmt::Debug for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Binding(…)")
    }
}

/// Who has used a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// SHA-256 of the public key.
    pub key: Fingerprint,
    /// The node that it became.
    pub node: NodeId,
    /// When.
    pub at: Moment,
}

/// A token as the catalog keeps it, without its secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredToken {
    /// Its name.
    pub id: TokenId,
    /// `StoredKey`: see the module.
    stored_key: [u8; 32],
    /// The authority that it names.
    pub authority: Fingerprint,
    /// Good up to here, by this cluster's clocks.
    pub expires: Moment,
    /// Who has used it.
    pub used: Option<Used>,
}

impl fmt::Debug for StoredToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoredToken({}, until {}, authority {}, used by {:?})", self.id, self.expires, self.authority, self.used)
    }
}

/// What a good proof is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// A new node.
    First,
    /// The node that this token has made already, whose answer was lost.
    Again(NodeId),
}

/// Why a process is not let in: for the operator of the cluster. The joiner is told one and the
/// same thing ([`super::REFUSED`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// What came cannot be read, or asks for something that no node may have.
    Malformed,
    /// There is no such token.
    Unknown(TokenId),
    /// The secret is not the token's, or what is asked for was changed on the way.
    Forged(TokenId),
    /// The process that asks does not have the private key.
    NoPossession(TokenId),
    /// The token was good up to then.
    Expired(TokenId, Moment),
    /// The token has made another node.
    Used(TokenId, NodeId),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Malformed => write!(f, "what it sent is no request to join"),
            Refusal::Unknown(id) => write!(f, "there is no join token {id}"),
            Refusal::Forged(id) => write!(f, "the proof is not that of join token {id}"),
            Refusal::NoPossession(id) => write!(f, "whoever shows join token {id} does not have the key that is to be certified"),
            Refusal::Expired(id, at) => write!(f, "join token {id} has expired on {at}"),
            Refusal::Used(id, node) => write!(f, "join token {id} was used already: it made node {}", node.0),
        }
    }
}

impl std::error::Error for Refusal {}

fn client_key(secret: &Secret) -> Zeroizing<[u8; 32]> {
    Zeroizing::new(hmac(secret.expose(), &[b"meridian join client key"]))
}

fn mask(stored_key: &[u8; 32], binding: &Binding, asked: &[u8], rules: Rules) -> [u8; 32] {
    let binding = if rules.binds_proofs_to_connections() { *binding } else { Binding([0; 32]) };
    hmac(stored_key, &[b"meridian join proof", &binding.0, asked])
}

fn xor(a: &[u8; 32], b: &[u8; 32]) -> [u8; 32] {
    std::array::from_fn(|i| a[i] ^ b[i])
}

/// The proof of a token's secret for what is asked for.
pub(super) fn prove(token: &Token, binding: &Binding, asked: &[u8], rules: Rules) -> [u8; 32] {
    let client_key = client_key(&token.secret);
    let stored_key = sha256(client_key.as_ref());
    xor(&client_key, &mask(&stored_key, binding, asked, rules))
}

impl StoredToken {
    /// What is kept of a token.
    pub fn of(token: &Token) -> StoredToken {
        let stored_key = sha256(client_key(&token.secret).as_ref());
        StoredToken { id: token.id, stored_key, authority: token.authority, expires: token.expires, used: None }
    }

    fn has_proof(&self, ask: &Ask, binding: &Binding, rules: Rules) -> bool {
        let mask = mask(&self.stored_key, binding, &ask.proven(rules), rules);
        let client_key = Zeroizing::new(xor(&ask.proof, &mask));
        same(&sha256(client_key.as_ref()), &self.stored_key)
    }

    /// Whether whoever asks may become a node: the same work for a token that there is and for one
    /// that there is not.
    pub(super) fn judge(
        stored: Option<&StoredToken>,
        ask: &Ask,
        binding: &Binding,
        now: Moment,
        rules: Rules,
    ) -> Result<Use, Refusal> {
        let nobody =
            StoredToken { id: ask.token, stored_key: [0; 32], authority: Fingerprint([0; 32]), expires: Moment(0), used: None };
        let found = stored.filter(|s| s.id == ask.token);
        let token = found.unwrap_or(&nobody);
        let (has_proof, has_key) = (token.has_proof(ask, binding, rules), ask.has_key(binding));
        match found {
            None => Err(Refusal::Unknown(ask.token)),
            Some(_) if !has_proof => Err(Refusal::Forged(ask.token)),
            Some(_) if !has_key => Err(Refusal::NoPossession(ask.token)),
            Some(token) => token.usable(&ask.key, now, rules),
        }
    }

    /// Whether this token may make a node with this key. For the step of the catalog that does so,
    /// which has to ask once more: somebody else may have been faster.
    pub fn usable(&self, key: &PublicKey, now: Moment, rules: Rules) -> Result<Use, Refusal> {
        match &self.used {
            Some(used) if used.key == Fingerprint::of(key.bytes()) => Ok(Use::Again(used.node)),
            Some(used) if rules.tokens_are_used_once() => Err(Refusal::Used(self.id, used.node)),
            _ if now > self.expires && rules.tokens_expire() => Err(Refusal::Expired(self.id, self.expires)),
            _ => Ok(Use::First),
        }
    }

    /// Marks it as used by the node that it has made; in the same step as the node is registered.
    pub fn redeem(&mut self, key: &PublicKey, node: NodeId, now: Moment, rules: Rules) -> Result<NodeId, Refusal> {
        match self.usable(key, now, rules)? {
            Use::Again(before) => Ok(before),
            Use::First => {
                self.used = Some(Used { key: Fingerprint::of(key.bytes()), node, at: now });
                Ok(node)
            }
        }
    }
}
