//! The bytes of a [`Round`]. Big-endian; a format byte first, which no other value of a share's
//! keys begins with.
//!
//! ```text
//! round    = 3 | incarnation 12 | instance u64 | promised | flags u8 | offer? | accepted? | count u8 | kept*
//! flags      1: an offer is there · 2: an accepted value is there
//! offer    = tokens
//! accepted = ballot | hlc u64 | count u8 | (site u32 | offered tokens | granted tokens)*
//! kept     = site u32 | instance u64 | hlc u64 | change tokens
//! ballot   = number u64 | site u32
//! tokens   = down i128 | up i128
//! ```
//!
//! Sites ascend. There are at most [`ESCROW_SITES_MAX`] of them, so a round has less than 9 KiB.

use super::round::Round;
use super::value::{Accepted, Ballot, Kept, Part, Value};
use bytes::Bytes;
use meridian_base::escrow::Free;
use meridian_base::limits::ESCROW_SITES_MAX;
use meridian_base::{GroupId, NodeId, Timestamp, TxnId};
use std::collections::BTreeMap;

/// Formats 1 and 2 are those of shares and late keys.
const ROUND_FORMAT: u8 = 3;
const HAS_OFFER: u8 = 1;
const HAS_ACCEPTED: u8 = 2;

impl Round {
    pub fn encode(&self) -> Bytes {
        let mut out = Writer(vec![ROUND_FORMAT]);
        out.u64(self.incarnation.hlc.0);
        out.u32(self.incarnation.gateway.0);
        out.u64(self.instance);
        out.ballot(self.promised);
        let accepted = if self.accepted.is_some() { HAS_ACCEPTED } else { 0 };
        out.0.push(if self.offer.is_some() { HAS_OFFER } else { 0 } | accepted);
        if let Some(offer) = self.offer {
            out.tokens(offer);
        }
        if let Some(accepted) = &self.accepted {
            out.ballot(accepted.ballot);
            out.u64(accepted.value.hlc.0);
            out.sites(&accepted.value.parts, |out, part| {
                out.tokens(part.offered);
                out.tokens(part.granted);
            });
        }
        out.sites(&self.kept, |out, kept| {
            out.u64(kept.instance);
            out.u64(kept.hlc.0);
            out.tokens(kept.change);
        });
        out.0.into()
    }

    /// `None`: it is none.
    pub fn decode(bytes: &[u8]) -> Option<Round> {
        let mut from = Reader(bytes);
        if from.u8()? != ROUND_FORMAT {
            return None;
        }
        let incarnation = TxnId { hlc: Timestamp(from.u64()?), gateway: NodeId(from.u32()?) };
        let (instance, promised, flags) = (from.u64()?, from.ballot()?, from.u8()?);
        if flags & !(HAS_OFFER | HAS_ACCEPTED) != 0 {
            return None;
        }
        let offer = if flags & HAS_OFFER != 0 { Some(from.tokens()?) } else { None };
        let accepted = if flags & HAS_ACCEPTED != 0 { Some(from.accepted()?) } else { None };
        let kept =
            from.sites(|from| Some(Kept { instance: from.u64()?, hlc: Timestamp(from.u64()?), change: from.tokens()? }))?;
        from.0.is_empty().then_some(Round { incarnation, instance, promised, offer, accepted, kept })
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn u32(&mut self, n: u32) {
        self.0.extend_from_slice(&n.to_be_bytes());
    }
    fn u64(&mut self, n: u64) {
        self.0.extend_from_slice(&n.to_be_bytes());
    }
    fn ballot(&mut self, ballot: Ballot) {
        self.u64(ballot.number);
        self.u32(ballot.site.0);
    }
    fn tokens(&mut self, tokens: Free) {
        self.0.extend_from_slice(&tokens.down.to_be_bytes());
        self.0.extend_from_slice(&tokens.up.to_be_bytes());
    }
    fn sites<T>(&mut self, of: &BTreeMap<GroupId, T>, each: impl Fn(&mut Writer, &T)) {
        assert!(of.len() <= ESCROW_SITES_MAX, "a row has at most {ESCROW_SITES_MAX} sites");
        self.0.push(of.len() as u8);
        for (site, one) in of {
            self.u32(site.0);
            each(self, one);
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (chunk, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*chunk)
    }
    fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }
    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }
    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }
    fn ballot(&mut self) -> Option<Ballot> {
        Some(Ballot { number: self.u64()?, site: GroupId(self.u32()?) })
    }
    fn tokens(&mut self) -> Option<Free> {
        let (down, up) = (self.take()?, self.take()?);
        Some(Free { down: i128::from_be_bytes(down), up: i128::from_be_bytes(up) })
    }
    fn accepted(&mut self) -> Option<Accepted> {
        let (ballot, hlc) = (self.ballot()?, Timestamp(self.u64()?));
        let parts = self.sites(|from| Some(Part { offered: from.tokens()?, granted: from.tokens()? }))?;
        Some(Accepted { ballot, value: Value { hlc, parts } })
    }
    /// Sites that ascend, so that each value has one encoding.
    fn sites<T>(&mut self, each: impl Fn(&mut Self) -> Option<T>) -> Option<BTreeMap<GroupId, T>> {
        let count = usize::from(self.u8()?);
        if count > ESCROW_SITES_MAX {
            return None;
        }
        let mut sites = BTreeMap::new();
        for _ in 0..count {
            let site = GroupId(self.u32()?);
            let ascends = sites.last_key_value().is_none_or(|(last, _)| *last < site);
            sites.insert(site, each(self).filter(|_| ascends)?);
        }
        Some(sites)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_base::escrow::{Bounds, Late, Share};
    use proptest::prelude::*;

    fn txn() -> impl Strategy<Value = TxnId> {
        (any::<u64>(), any::<u32>()).prop_map(|(hlc, gateway)| TxnId { hlc: Timestamp(hlc), gateway: NodeId(gateway) })
    }
    fn tokens() -> impl Strategy<Value = Free> {
        (any::<i128>(), any::<i128>()).prop_map(|(down, up)| Free { down, up })
    }
    fn ballot() -> impl Strategy<Value = Ballot> {
        (any::<u64>(), any::<u32>()).prop_map(|(number, site)| Ballot { number, site: GroupId(site) })
    }
    fn sites<T: std::fmt::Debug>(of: impl Strategy<Value = T>) -> impl Strategy<Value = BTreeMap<GroupId, T>> {
        prop::collection::btree_map(any::<u32>().prop_map(GroupId), of, 0..ESCROW_SITES_MAX)
    }
    fn accepted() -> impl Strategy<Value = Accepted> {
        let parts = sites((tokens(), tokens()).prop_map(|(offered, granted)| Part { offered, granted }));
        (ballot(), any::<u64>(), parts)
            .prop_map(|(ballot, hlc, parts)| Accepted { ballot, value: Value { hlc: Timestamp(hlc), parts } })
    }
    fn round() -> impl Strategy<Value = Round> {
        let kept = (any::<u64>(), any::<u64>(), tokens());
        let kept = sites(kept.prop_map(|(instance, hlc, change)| Kept { instance, hlc: Timestamp(hlc), change }));
        let fields = (txn(), any::<u64>(), ballot(), prop::option::of(tokens()), prop::option::of(accepted()), kept);
        fields.prop_map(|(incarnation, instance, promised, offer, accepted, kept)| Round {
            incarnation,
            instance,
            promised,
            offer,
            accepted,
            kept,
        })
    }

    proptest! {
        #[test]
        fn a_round_is_read_back_and_no_part_of_it_is(round in round(), cut: prop::sample::Index) {
            let bytes = round.encode();
            prop_assert!(bytes.len() < 9 << 10);
            prop_assert_eq!(Round::decode(&bytes), Some(round));
            prop_assert_eq!(Round::decode(&bytes[..cut.index(bytes.len())]), None);
            prop_assert_eq!(Round::decode(&[&bytes[..], &[0]].concat()), None);
        }

        /// Any bytes, and a round with a few bytes changed: what is read has one encoding.
        #[test]
        fn no_bytes_panic_the_decoder(
            round in round(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
            mut noise: Vec<u8>,
        ) {
            let mut bytes = round.encode().to_vec();
            for (at, to) in changes {
                let at = at.index(bytes.len());
                bytes[at] = to;
            }
            if let Some(first) = noise.first_mut() { *first = ROUND_FORMAT; }
            for bytes in [bytes, noise] {
                if let Some(read) = Round::decode(&bytes) {
                    prop_assert_eq!(&read.encode()[..], &bytes[..]);
                }
            }
        }
    }

    #[test]
    fn no_other_value_of_a_share_is_a_round() {
        let id = TxnId { hlc: Timestamp(7), gateway: NodeId(1) };
        let (share, late) = (Share::begin(id, 3, Bounds { lo: 0, hi: 5 }), Late::delta(id, 1));
        assert_eq!((Round::decode(&share.encode()), Round::decode(&late.encode()), Round::decode(&[])), (None, None, None));
        let bytes = Round::new(id).encode();
        assert_eq!((Share::decode(&bytes), Late::decode(&bytes)), (None, None));
        // More sites than a row has.
        let mut many = bytes.to_vec();
        *many.last_mut().expect("a round has bytes") = ESCROW_SITES_MAX as u8 + 1;
        many.resize(many.len() + (ESCROW_SITES_MAX + 1) * 52, 0);
        assert_eq!(Round::decode(&many), None);
    }
}
