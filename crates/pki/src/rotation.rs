//! Replacing the authority without a moment in which two nodes refuse each other.
//!
//! ```text
//! phase         who signs   who is trusted   goes on when
//! Settled       old         old              the operator asks for it
//! Introduced    old         old and new      every node trusts the new one
//! Signing       new         old and new      nothing that the old one signed is in use
//! Settled       new         new
//! ```
//!
//! Two nodes accept each other if each trusts the authority that signed the other's certificate.
//! Nobody shows a certificate of the new one before everybody trusts it, and nobody stops trusting
//! the old one before its last certificate is gone: those of nodes, those of clients as far as the
//! operator wants them to work, and join tokens, which name an authority.
//!
//! Before the new one signs, the operator may think better of it ([`Rotation::cancel`]): nothing
//! that it signed is in use.
//!
//! A node trusts no authority because some other node says so: the old one signs the new one's
//! certificate ([`Endorsed`]).
//!
//! A node that does not answer holds a rotation up; a decommissioned one is no node. When a key was
//! stolen the operator goes on without waiting ([`Rotation::force`]), and whoever was not ready has
//! to join again.

use crate::authority::Authority;
use crate::certificate::{Certificate, Fingerprint};
use crate::error::{Error, Kind, Result};
use crate::identity::{ClusterId, cluster_of};
use crate::key::public_key_of;
use crate::rules::Rules;
use crate::time::Moment;
use crate::verify::Bundle;
use meridian_base::NodeId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Where a rotation is. Kept where all nodes read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// One authority.
    Settled { authority: Fingerprint },
    /// Two, of which the old one signs.
    Introduced { old: Fingerprint, new: Fingerprint },
    /// Two, of which the new one signs.
    Signing { old: Fingerprint, new: Fingerprint },
}

/// What a node says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The authorities it trusts in new handshakes.
    pub trusts: BTreeSet<Fingerprint>,
    /// The authority that signed the certificate it shows in new handshakes.
    pub shows: Fingerprint,
}

/// What stands in the way of the next phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hindrance {
    /// There is no rotation.
    Settled,
    /// These nodes have said nothing, or nothing that is enough.
    Nodes(BTreeSet<NodeId>),
    /// Certificates of clients, or tokens, that the old authority stands for are good up to here.
    Outstanding(Moment),
}

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    phase: Phase,
    rules: Rules,
}

impl Rotation {
    /// One that has got there.
    pub fn at(phase: Phase, rules: Rules) -> Rotation {
        Rotation { phase, rules }
    }
    /// Where it is.
    pub fn phase(&self) -> Phase {
        self.phase
    }
    /// Begins one. Refused if one is under way.
    pub fn begin(&mut self, new: Fingerprint) -> Result<()> {
        match self.phase {
            Phase::Settled { authority } if authority == new => Err(Error::new(Kind::Refused, "this authority signs already")),
            Phase::Settled { authority } => {
                self.phase = Phase::Introduced { old: authority, new };
                Ok(())
            }
            _ => Err(Error::new(Kind::Refused, "a rotation of the authority is under way")),
        }
    }
    /// Who signs.
    pub fn signer(&self) -> Fingerprint {
        match self.phase {
            Phase::Settled { authority } => authority,
            Phase::Introduced { old, .. } => old,
            Phase::Signing { new, .. } => new,
        }
    }
    /// Whom everybody should trust.
    pub fn trusted(&self) -> BTreeSet<Fingerprint> {
        match self.phase {
            Phase::Settled { authority } => BTreeSet::from([authority]),
            Phase::Introduced { old, new } | Phase::Signing { old, new } => BTreeSet::from([old, new]),
        }
    }
    /// Goes on to the next phase, or says what stands in the way. `reports` has an entry for every
    /// node that was not decommissioned, `None` for one that said nothing. `outstanding` is the end
    /// of the last client's certificate or token of the old authority that is to go on working.
    pub fn advance(
        &mut self,
        reports: &BTreeMap<NodeId, Option<Report>>,
        outstanding: Moment,
        now: Moment,
    ) -> std::result::Result<Phase, Hindrance> {
        let lacking = |is_ready: &dyn Fn(&Report) -> bool| -> BTreeSet<NodeId> {
            reports.iter().filter(|(_, r)| !r.as_ref().is_some_and(is_ready)).map(|(node, _)| *node).collect()
        };
        let hindrance = match self.phase {
            Phase::Settled { .. } => Some(Hindrance::Settled),
            Phase::Introduced { .. } if !self.rules.signs_when_known() => None,
            Phase::Introduced { new, .. } => some(lacking(&|r| r.trusts.contains(&new))),
            Phase::Signing { .. } if !self.rules.removes_when_unused() => None,
            Phase::Signing { new, .. } => {
                some(lacking(&|r| r.shows == new)).or((outstanding >= now).then_some(Hindrance::Outstanding(outstanding)))
            }
        };
        match hindrance {
            Some(hindrance) => Err(hindrance),
            None => Ok(self.force()),
        }
    }
    /// Goes on without asking: for a key that is in the wrong hands.
    pub fn force(&mut self) -> Phase {
        self.phase = match self.phase {
            Phase::Introduced { old, new } => Phase::Signing { old, new },
            Phase::Signing { new, .. } => Phase::Settled { authority: new },
            settled @ Phase::Settled { .. } => settled,
        };
        self.phase
    }
    /// Takes the new authority back, which has signed nothing yet. Refused once it signs.
    pub fn cancel(&mut self) -> Result<Phase> {
        match self.phase {
            Phase::Introduced { old, .. } => self.phase = Phase::Settled { authority: old },
            Phase::Signing { .. } => return Err(Error::new(Kind::Refused, "the new authority signs already")),
            Phase::Settled { .. } => {}
        }
        Ok(self.phase)
    }
}

/// A new authority, with the word of the old one that it is to follow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endorsed {
    /// Who says so.
    old: Fingerprint,
    /// The new one's certificate, as DER.
    certificate: Vec<u8>,
    signature: Vec<u8>,
}

fn endorsement(old: Fingerprint, certificate: &[u8]) -> Vec<u8> {
    [b"meridian next authority".as_slice(), &old.0, certificate].concat()
}

impl Endorsed {
    /// By the old authority. An error if its key is not on P-256.
    pub fn new(old: &Authority, next: &Certificate) -> Result<Endorsed> {
        old.key().public()?;
        let (print, certificate) = (old.certificate().fingerprint(), next.der().to_vec());
        let signature = old.key().sign(&endorsement(print, &certificate))?;
        Ok(Endorsed { old: print, certificate, signature })
    }
    /// The authority that speaks for it.
    pub fn old(&self) -> Fingerprint {
        self.old
    }
    /// The authority that it is about.
    pub fn new_authority(&self) -> Fingerprint {
        Fingerprint::of(&self.certificate)
    }
    /// The new authority's certificate. An error if no authority in the bundle has signed this, or
    /// if it is another cluster's.
    pub fn certificate(&self, bundle: &Bundle, cluster: ClusterId) -> Result<Certificate> {
        let old = bundle.authorities().iter().find(|a| a.fingerprint() == self.old);
        let key = old.and_then(|old| public_key_of(&old.public_key));
        let is_signed = key.is_some_and(|key| key.has_signed(&endorsement(self.old, &self.certificate), &self.signature));
        if !is_signed {
            return Err(Error::new(Kind::Mismatch, "the authority of this cluster has not named the new one"));
        }
        let certificate = Certificate::parse(&self.certificate)?;
        match certificate.may_sign_certificates() && cluster_of(&certificate) == Some(cluster) {
            true => Ok(certificate),
            false => Err(Error::new(Kind::Mismatch, "the new authority is not one of this cluster")),
        }
    }
}

/// A rotation as the cluster keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredRotation {
    pub phase: Phase,
    pub endorsed: Endorsed,
    /// The node that has the new authority's key.
    pub signer: NodeId,
    /// An operator did not wait for every node: what the old authority signed may be in the wrong
    /// hands.
    pub is_forced: bool,
}

impl StoredRotation {
    /// The new authority.
    pub fn new_authority(&self) -> Fingerprint {
        self.endorsed.new_authority()
    }
    /// Whether it is not over.
    pub fn is_under_way(&self) -> bool {
        !matches!(self.phase, Phase::Settled { .. })
    }
    /// Whether this may come after what is stored: a rotation begins where none is under way, with
    /// the authority that signs, and goes forward from there.
    pub fn may_follow(&self, before: Option<&StoredRotation>) -> bool {
        let (from, to) = (self.endorsed.old(), self.endorsed.new_authority());
        let begins = self.phase == Phase::Introduced { old: from, new: to } && from != to;
        let Some(before) = before else { return begins };
        let is_same = (&self.endorsed, self.signer) == (&before.endorsed, before.signer);
        let mut next = Rotation::at(before.phase, Rules::ALL);
        match before.phase {
            Phase::Settled { authority } => begins && from == authority,
            _ => is_same && (next.cancel() == Ok(self.phase) || Rotation::at(before.phase, Rules::ALL).force() == self.phase),
        }
    }
}

fn some(lacking: BTreeSet<NodeId>) -> Option<Hindrance> {
    (!lacking.is_empty()).then_some(Hindrance::Nodes(lacking))
}
