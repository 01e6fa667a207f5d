//! Shares of escrow columns: a number that several regions change at once, each its own part
//! (`docs/design/escrow.md`; Samya, §3).
//!
//! A *site* is a group that holds a share of a row's number. Its share is ordinary keys with
//! ordinary versions, under `P`: the column's own index id and the row's primary key.
//!
//! | key | value | written by |
//! | --- | --- | --- |
//! | `P 00` | [`Share`] | transactions of one group: deltas, folds, inserted and set values |
//! | `P 01 txn` | [`Late`] | transactions over several groups |
//! | `P 02` | the site's state in rounds of `majority` (crate `escrow`) | that protocol |
//!
//! While an offer is out in such a round, a key of its own says so ([`open_key`]), in another
//! index: a new primary finds the rows whose rounds it has to end without looking at all rows.
//!
//! The number at a time is the sum of the contributions of all sites (E1): that of the [`Share`]
//! and those of the late keys that it does not contain yet ([`Sum`]). What a site may take from the
//! number, and add to it, are its *free tokens*, down and up. A delta moves a token from one pool
//! to the other by arithmetic, so no delta makes or loses one (E2), and while no site has fewer
//! than none (E3) the number stays within its bounds.

use crate::id::{NodeId, TxnId};
use crate::key::{Key, KeyRange};
use crate::time::Timestamp;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// Set in the id of an index that holds shares.
const INDEX: u32 = 1 << 31;
/// Set as well in the id of an index that says of which rows an offer is out.
const OPEN: u32 = 1 << 30;
const SHARE_TAG: u8 = 0;
const LATE_TAG: u8 = 1;
const ROUND_TAG: u8 = 2;
const TXN_BYTES: usize = 12;
/// The first byte of a value says what it is; a change of the format gets a new one.
const SHARE_FORMAT: u8 = 1;
const LATE_FORMAT: u8 = 2;
const SHARE_BYTES: usize = 1 + 2 * TXN_BYTES + 3 * 16;
const LATE_BYTES: usize = 1 + TXN_BYTES + 3 * 16;

/// The id of an escrow column's index, from a number that no other index has.
pub const fn index_id(number: u32) -> u32 {
    number | INDEX
}

/// The reverse of [`index_id`] and [`open_id`]; other indexes have their ids as numbers.
pub const fn index_number(id: u32) -> u32 {
    if id & INDEX == 0 { id } else { id & !(INDEX | OPEN) }
}

/// The id of the index that says of which of a column's rows an offer is out. The number of the
/// column's own index is below 2³⁰.
pub const fn open_id(number: u32) -> u32 {
    number | INDEX | OPEN
}

/// The key that is there while an offer of the row is out, from the key of its share.
pub fn open_key(share: &Key) -> Key {
    with_open_bit(share, true)
}

/// The reverse of [`open_key`].
pub fn share_of_open(open: &Key) -> Key {
    with_open_bit(open, false)
}

/// Which rows of a column have an offer out, from the number of the column's index.
pub fn open_range(number: u32) -> KeyRange {
    KeyRange::prefix(&open_id(number).to_be_bytes())
}

fn with_open_bit(key: &Key, is_set: bool) -> Key {
    const BIT: u8 = (OPEN >> 24) as u8;
    let mut bytes = key.as_bytes().to_vec();
    if let Some(first) = bytes.first_mut() {
        *first = if is_set { *first | BIT } else { *first & !BIT };
    }
    Key::new(&bytes)
}

/// Whether a key belongs to a share: its index is one of [`index_id`]'s.
pub fn is_key(key: &[u8]) -> bool {
    key.first().is_some_and(|first| first & 0x80 != 0)
}

/// The number of the index that a key of a share belongs to; `None`: it is no such key.
pub fn index_of(key: &Key) -> Option<u32> {
    let (id, _) = key.as_bytes().split_first_chunk::<4>()?;
    is_key(key.as_bytes()).then(|| index_number(u32::from_be_bytes(*id)))
}

/// The key of a row's share, from `P`.
pub fn share_key(row: &[u8]) -> Key {
    tagged(row, SHARE_TAG)
}

/// Everything that a site has of a row's number (E9 reads it), from the key of its share.
pub fn range(share: &Key) -> KeyRange {
    KeyRange::new(share.clone(), tagged(row_of(share), ROUND_TAG))
}

/// The same for all rows whose shares lie between two of them, both included.
pub fn ranges(first: &Key, last: &Key) -> KeyRange {
    KeyRange::new(first.clone(), tagged(row_of(last), ROUND_TAG))
}

/// The key of the share that a key of it belongs to, by what it holds.
pub fn share_of(key: &Key, value: &[u8]) -> Key {
    Late::of(key, value).map_or_else(|| key.clone(), |(share, ..)| share)
}

/// The key of what a transaction over several groups adds to a share.
pub fn late_key(share: &Key, id: TxnId) -> Key {
    let row = row_of(share);
    let mut key = Vec::with_capacity(row.len() + 1 + TXN_BYTES);
    key.extend_from_slice(row);
    key.push(LATE_TAG);
    put_txn(&mut key, id);
    Key::new(&key)
}

/// The key of what a site stores of a row's rounds of `majority`, from the key of its share. No
/// exact read or number that is set has it in its range.
pub fn round_key(share: &Key) -> Key {
    tagged(row_of(share), ROUND_TAG)
}

/// The reverse of [`round_key`].
pub fn share_of_round(round: &Key) -> Key {
    share_key(row_of(round))
}

/// Whether a key of a share is a [`round_key`], by what it holds.
pub fn is_round(key: &Key, value: &[u8]) -> bool {
    let has_tag = key.as_bytes().last() == Some(&ROUND_TAG);
    has_tag && Share::decode(value).is_none() && Late::of(key, value).is_none()
}

fn tagged(row: &[u8], tag: u8) -> Key {
    let mut key = Vec::with_capacity(row.len() + 1);
    key.extend_from_slice(row);
    key.push(tag);
    Key::new(&key)
}

fn row_of(share: &Key) -> &[u8] {
    share.as_bytes().split_last().map_or(&[], |(_, row)| row)
}

/// What a site has of a row's number (`docs/design/escrow.md`, «Shares»).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Who inserted the row or set the number: shares and late keys of another one count nothing
    /// together.
    pub incarnation: TxnId,
    /// Late keys of transactions at or below it are in `contribution` and the grants already.
    pub floor: TxnId,
    /// The site's part of the number. 128 bits: a region that only adds and one that only takes
    /// drift apart.
    pub contribution: i128,
    /// How far below zero the contribution may go.
    pub down: i128,
    /// How far up the contribution may go.
    pub up: i128,
}

impl Share {
    /// The share of the site where a row is inserted, or its number set: all tokens are there.
    pub fn begin(incarnation: TxnId, value: i128, bounds: Bounds) -> Share {
        Share { contribution: value, down: -bounds.lo, up: bounds.hi, ..Share::empty(incarnation) }
    }
    /// The share of any other site.
    pub fn empty(incarnation: TxnId) -> Share {
        Share { incarnation, floor: TxnId::default(), contribution: 0, down: 0, up: 0 }
    }
    /// E3: neither pool is overdrawn.
    pub fn is_covered(&self) -> bool {
        let Free { down, up } = self.free();
        down >= 0 && up >= 0
    }
    /// Its free tokens.
    pub fn free(&self) -> Free {
        Free { down: self.down + self.contribution, up: self.up - self.contribution }
    }
    /// The share with a late key in it, whose transaction is not noted.
    pub fn plus(self, late: &Late) -> Share {
        Share { contribution: self.contribution + late.contribution, down: self.down + late.down, up: self.up + late.up, ..self }
    }

    /// What a reader sees of a site's share, with the late keys that it does not contain yet, from
    /// the versions in the site's [`range`], in their order. `None`: the site has no share.
    pub fn seen<'a>(versions: impl IntoIterator<Item = (&'a Key, &'a [u8])>) -> Option<Share> {
        let mut seen: Option<Share> = None;
        for (key, value) in versions {
            if let Some(share) = Share::decode(value) {
                seen = Some(share);
            } else if let (Some(share), Some((_, id, late))) = (&mut seen, Late::of(key, value))
                && late.incarnation == share.incarnation
                && id > share.floor
            {
                *share = share.plus(&late);
            }
        }
        seen
    }

    pub fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(SHARE_BYTES);
        out.push(SHARE_FORMAT);
        put_txn(&mut out, self.incarnation);
        put_txn(&mut out, self.floor);
        put_numbers(&mut out, [self.contribution, self.down, self.up]);
        out.into()
    }
    /// `None`: it is none.
    pub fn decode(bytes: &[u8]) -> Option<Share> {
        let (format, mut rest) = bytes.split_first().filter(|(_, rest)| rest.len() + 1 == SHARE_BYTES)?;
        if *format != SHARE_FORMAT {
            return None;
        }
        let (incarnation, floor) = (take_txn(&mut rest)?, take_txn(&mut rest)?);
        let [contribution, down, up] = take_numbers(rest)?;
        Some(Share { incarnation, floor, contribution, down, up })
    }
}

/// What a transaction adds to a site's share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Late {
    /// That of the share; of a grant, that of the shares that the tokens come from (E15).
    pub incarnation: TxnId,
    pub contribution: i128,
    pub down: i128,
    pub up: i128,
}

impl Late {
    /// A change of grants (E14): the number stays.
    pub fn grant(incarnation: TxnId, down: i128, up: i128) -> Late {
        Late { incarnation, contribution: 0, down, up }
    }
    /// What the bounds of a row add to its grants when they change (E13).
    pub fn rebound(incarnation: TxnId, before: Bounds, after: Bounds) -> Late {
        Late::grant(incarnation, before.lo - after.lo, after.hi - before.hi)
    }
    /// A delta: it moves no grant.
    pub fn delta(incarnation: TxnId, delta: i128) -> Late {
        Late { incarnation, contribution: delta, down: 0, up: 0 }
    }
    /// Whether it changes the grants of its share.
    pub fn has_grants(&self) -> bool {
        self.down != 0 || self.up != 0
    }
    /// Both, as one of the same incarnation.
    pub fn plus(self, other: &Late) -> Late {
        Late {
            contribution: self.contribution + other.contribution,
            down: self.down + other.down,
            up: self.up + other.up,
            ..self
        }
    }
    /// What it takes of the two pools of free tokens, down and up; negative numbers are credits.
    pub fn takes(&self) -> (i128, i128) {
        (-(self.down + self.contribution), -(self.up - self.contribution))
    }

    pub fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(LATE_BYTES);
        out.push(LATE_FORMAT);
        put_txn(&mut out, self.incarnation);
        put_numbers(&mut out, [self.contribution, self.down, self.up]);
        out.into()
    }
    /// `None`: it is none.
    pub fn decode(bytes: &[u8]) -> Option<Late> {
        let (format, mut rest) = bytes.split_first().filter(|(_, rest)| rest.len() + 1 == LATE_BYTES)?;
        if *format != LATE_FORMAT {
            return None;
        }
        let incarnation = take_txn(&mut rest)?;
        let [contribution, down, up] = take_numbers(rest)?;
        Some(Late { incarnation, contribution, down, up })
    }
    /// A key with its value as one of a share's, with the share's key and the transaction; `None`
    /// if it is another kind of key.
    pub fn of(key: &Key, value: &[u8]) -> Option<(Key, TxnId, Late)> {
        let late = Late::decode(value).filter(|_| is_key(key.as_bytes()))?;
        let (row, mut txn) = key.as_bytes().split_at_checked(key.as_bytes().len().checked_sub(TXN_BYTES + 1)?)?;
        let (tag, rest) = txn.split_first()?;
        txn = rest;
        (*tag == LATE_TAG).then_some(())?;
        Some((share_key(row), take_txn(&mut txn)?, late))
    }
}

/// Between what a number stays, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub lo: i128,
    pub hi: i128,
}

impl Bounds {
    pub fn width(&self) -> i128 {
        self.hi - self.lo
    }
    pub fn contain(&self, value: i128) -> bool {
        self.lo <= value && value <= self.hi
    }
}

/// Free tokens of a share: how far its number may go from here, by deltas of this site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Free {
    pub down: i128,
    pub up: i128,
}

impl Free {
    pub fn cover(&self, delta: i128) -> bool {
        -delta <= self.down && delta <= self.up
    }
    /// Whether they are enough for a change of the share.
    pub fn allow(&self, late: &Late) -> bool {
        let (down, up) = late.takes();
        down <= self.down && up <= self.up
    }
    /// What is left after a change of the share.
    pub fn after(&self, late: &Late) -> Free {
        let (down, up) = late.takes();
        Free { down: self.down - down, up: self.up - up }
    }
}

/// What a site has to give to a round of redistribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    pub incarnation: TxnId,
    pub free: Free,
    /// How many tokens of each pool it is forecast to need.
    pub wanted: Free,
}

/// What the deltas of a site needed of each pool since some moment: how far they took the number
/// down and up from where it was then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    pub down: i128,
    pub up: i128,
    net: i128,
}

impl Demand {
    /// Another delta.
    pub fn add(&mut self, delta: i128) {
        self.net += delta;
        (self.down, self.up) = (self.down.max(-self.net), self.up.max(self.net));
    }
    /// The tokens of the two pools.
    pub fn tokens(&self) -> Free {
        Free { down: self.down, up: self.up }
    }
    /// Both, one after the other.
    pub fn then(self, later: &Demand) -> Demand {
        let down = self.down.max(later.down - self.net);
        Demand { down, up: self.up.max(later.up + self.net), net: self.net + later.net }
    }
}

/// Adds up what sites have of one row, from the versions that a reader sees in each site's
/// [`range`] (E1, E9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// `None`: no site has a share, so there is no row.
    pub value: Option<i128>,
    /// The grants of all sites, which tell the row's bounds (E2).
    down: i128,
    up: i128,
}

impl Sum {
    /// One site's keys and values, in their order.
    pub fn add_site<'a>(&mut self, versions: impl IntoIterator<Item = (&'a Key, &'a [u8])>) {
        if let Some(share) = Share::seen(versions) {
            self.value = Some(self.value.unwrap_or(0) + share.contribution);
            self.down += share.down;
            self.up += share.up;
        }
    }

    /// With what a transaction itself adds, of a row that is there.
    pub fn plus(self, own: &Late) -> Sum {
        let value = self.value.map(|value| value + own.contribution);
        Sum { value, down: self.down + own.down, up: self.up + own.up }
    }

    /// Between what the number stays, of a row that is there.
    pub fn bounds(&self) -> Bounds {
        Bounds { lo: -self.down, hi: self.up }
    }
}

fn put_txn(out: &mut Vec<u8>, id: TxnId) {
    out.extend_from_slice(&id.hlc.0.to_be_bytes());
    out.extend_from_slice(&id.gateway.0.to_be_bytes());
}

fn take_txn(from: &mut &[u8]) -> Option<TxnId> {
    let (hlc, rest) = from.split_first_chunk::<8>()?;
    let (gateway, rest) = rest.split_first_chunk::<4>()?;
    *from = rest;
    Some(TxnId { hlc: Timestamp(u64::from_be_bytes(*hlc)), gateway: NodeId(u32::from_be_bytes(*gateway)) })
}

fn put_numbers(out: &mut Vec<u8>, numbers: [i128; 3]) {
    numbers.iter().for_each(|n| out.extend_from_slice(&n.to_be_bytes()));
}

fn take_numbers(from: &[u8]) -> Option<[i128; 3]> {
    let (chunks, rest) = from.as_chunks::<16>();
    let [a, b, c] = chunks else { return None };
    rest.is_empty().then(|| [a, b, c].map(|n| i128::from_be_bytes(*n)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn txn(n: u64) -> TxnId {
        TxnId { hlc: Timestamp(n), gateway: NodeId(n as u32) }
    }
    fn row() -> Vec<u8> {
        let mut row = Vec::new();
        crate::key::encode::index(&mut row, index_id(7));
        crate::key::encode::i64(&mut row, 5);
        row
    }

    #[test]
    fn values_are_read_back_and_nothing_else_is() {
        let share = Share { floor: txn(3), ..Share::begin(txn(1), -5, Bounds { lo: i64::MIN.into(), hi: i64::MAX.into() }) };
        assert_eq!(Share::decode(&share.encode()), Some(share));
        assert_eq!(share.encode().len(), 73);
        let late = Late { incarnation: txn(1), contribution: -7, down: 2, up: i128::MAX };
        assert_eq!(Late::decode(&late.encode()), Some(late));
        for bytes in [&share.encode()[..72], &late.encode()[..60], &[], &[1; 74]] {
            assert_eq!((Share::decode(bytes), Late::decode(bytes)), (None, None), "{bytes:?}");
        }
        assert_eq!((Share::decode(&late.encode()), Late::decode(&share.encode())), (None, None));
    }

    #[test]
    fn late_keys_lie_in_the_range_of_their_share_and_name_it() {
        let share = share_key(&row());
        assert!(is_key(share.as_bytes()) && !is_key(&7u32.to_be_bytes()));
        assert_eq!((index_of(&share), index_of(&Key::new(&7u32.to_be_bytes()))), (Some(7), None));
        let late = Late::delta(txn(1), 9);
        for id in [txn(0), txn(8), TxnId { hlc: Timestamp(u64::MAX), gateway: NodeId(u32::MAX) }] {
            let key = late_key(&share, id);
            assert!(range(&share).contains(key.as_bytes()) && range(&share).contains(share.as_bytes()));
            assert_eq!(Late::of(&key, &late.encode()), Some((share.clone(), id, late)));
        }
        assert_eq!(Late::of(&share, &late.encode()), None);
        assert_eq!(Late::of(&Key::new(&[0x80]), &late.encode()), None);
        let open = open_key(&share);
        assert!(is_key(open.as_bytes()) && open_range(7).contains(open.as_bytes()) && share_of_open(&open) == share);
        assert!(is_key(round_key(&share).as_bytes()) && !range(&share).contains(round_key(&share).as_bytes()));
    }

    /// Of two incarnations only the share's counts, and of its late keys those above its floor
    /// (counterexample 97).
    #[test]
    fn a_sum_has_each_late_key_once() {
        let share = share_key(&row());
        let site = |floor, lates: &[(u64, u64, i128)]| {
            let value = Share { floor: txn(floor), ..Share::begin(txn(1), 10, Bounds { lo: 0, hi: 100 }) };
            let lates = lates.iter().map(|(id, of, n)| (late_key(&share, txn(*id)), Late::delta(txn(*of), *n).encode()));
            std::iter::once((share.clone(), value.encode())).chain(lates).collect::<Vec<_>>()
        };
        let mut sum = Sum::default();
        let mut add = |versions: Vec<(Key, Bytes)>| sum.add_site(versions.iter().map(|(k, v)| (k, &v[..])));
        add(site(4, &[(3, 1, 1), (4, 1, 2), (5, 1, 4), (6, 2, 8)]));
        add(Vec::new());
        // A site without a share has no part.
        add(vec![(late_key(&share, txn(9)), Late::delta(txn(1), 16).encode())]);
        assert_eq!(sum.value, Some(14));
        assert_eq!(Sum::default().value, None);
    }

    #[test]
    fn a_demand_is_how_far_the_number_went() {
        let of = |deltas: &[i128]| {
            deltas.iter().fold(Demand::default(), |mut demand, delta| {
                demand.add(*delta);
                demand
            })
        };
        assert_eq!(of(&[5, -3, 4, -9]).tokens(), Free { down: 3, up: 6 });
        let all = [2, -7, 3, 3, 4, -1];
        for at in 0..=all.len() {
            assert_eq!(of(&all[..at]).then(&of(&all[at..])), of(&all), "{at}");
        }
    }

    #[test]
    fn a_share_is_seen_with_its_late_keys() {
        let share = share_key(&row());
        let value = Share { floor: txn(4), ..Share::begin(txn(1), 10, Bounds { lo: 0, hi: 100 }) };
        let grant = Late::grant(txn(1), -3, 7);
        let versions = [
            (share.clone(), value.encode()),
            (late_key(&share, txn(4)), Late::delta(txn(1), 50).encode()),
            (late_key(&share, txn(5)), Late::delta(txn(1), -2).encode()),
            (late_key(&share, txn(6)), grant.encode()),
        ];
        let seen = |of: &[(Key, Bytes)]| Share::seen(of.iter().map(|(k, v)| (k, &v[..])));
        assert_eq!(seen(&versions), Some(Share { contribution: 8, down: -3, up: 107, ..value }));
        assert_eq!(seen(&versions).map(|s| s.free()), Some(Free { down: 5, up: 99 }));
        assert_eq!(seen(&versions[1..]), None);
    }

    #[test]
    fn deltas_move_tokens_and_make_none() {
        let share = Share::begin(txn(1), 3, Bounds { lo: 0, hi: 5 });
        let after = |d| share.plus(&Late::delta(txn(1), d));
        assert!(after(2).is_covered() && after(-3).is_covered() && !after(3).is_covered() && !after(-4).is_covered());
        assert_eq!(Late::delta(txn(1), 2).takes(), (-2, 2));
        assert_eq!(Late { incarnation: txn(1), contribution: 0, down: -1, up: 4 }.takes(), (1, -4));
    }
}
