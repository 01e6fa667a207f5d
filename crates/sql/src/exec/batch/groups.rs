//! The groups of an aggregation: a hash table of their keys.
//!
//! Open addressing with linear probing and a fixed seed. The table is in parts, by the upper bits
//! of the hash, so that no growth of one takes long.

use super::column::{Column, Held, Values};
use crate::plan::eval::Row;
use crate::plan::eval::bulk::Bulk;
use crate::types::Datum;
use crate::types::numeric::Numeric;
use std::hash::{DefaultHasher, Hash, Hasher};

const PARTS: usize = 64;
const SLOTS_MIN: usize = 8;
const EMPTY: u32 = u32::MAX;

/// Keys, numbered in the order in which they came.
#[derive(Default)]
pub(super) struct Groups {
    pub(super) keys: Bulk<Vec<Row>>,
    hashes: Vec<u64>,
    parts: Vec<Part>,
}

/// Numbers of keys, by hash.
#[derive(Clone, Default)]
struct Part {
    slots: Vec<u32>,
    used: usize,
}

impl Groups {
    /// The number of the key with this hash that `is` knows.
    pub(super) fn find(&self, hash: u64, is: impl Fn(&[Datum]) -> bool) -> Option<u32> {
        let slots = &self.parts.get(part_of(hash))?.slots;
        let mask = slots.len().checked_sub(1)?;
        let mut at = hash as usize & mask;
        loop {
            let number = slots[at];
            if number == EMPTY {
                return None;
            }
            if self.hashes[number as usize] == hash && is(&self.keys[number as usize]) {
                return Some(number);
            }
            at = (at + 1) & mask;
        }
    }
    /// Adds a key that is not there; its number.
    pub(super) fn add(&mut self, hash: u64, key: Row) -> u32 {
        let number = self.keys.len() as u32;
        self.keys.push(key);
        self.hashes.push(hash);
        if self.parts.is_empty() {
            self.parts = vec![Part::default(); PARTS];
        }
        let part = &mut self.parts[part_of(hash)];
        if (part.used + 1) * 4 > part.slots.len() * 3 {
            let wider = vec![EMPTY; (part.slots.len() * 2).max(SLOTS_MIN)];
            for number in std::mem::replace(&mut part.slots, wider).into_iter().filter(|number| *number != EMPTY) {
                place(&mut part.slots, self.hashes[number as usize], number);
            }
        }
        place(&mut part.slots, hash, number);
        part.used += 1;
        number
    }
}

fn part_of(hash: u64) -> usize {
    (hash >> 58) as usize
}

fn place(slots: &mut [u32], hash: u64, number: u32) {
    let mask = slots.len() - 1;
    let mut at = hash as usize & mask;
    while slots[at] != EMPTY {
        at = (at + 1) & mask;
    }
    slots[at] = number;
}

/// Of a key that is a row.
pub(super) fn hash_of(key: &[Datum]) -> u64 {
    key.iter().fold(0, |hash, value| mix(hash, hash_of_datum(value)))
}

/// Of the keys of the selected rows; for equal values the same as [`hash_of`].
pub(super) fn hashes_of(keys: &[Held<'_, '_>], selected: &[u32], rows: usize) -> Vec<u64> {
    let mut out = vec![0; rows];
    for key in keys {
        for row in selected {
            let hash = &mut out[*row as usize];
            *hash = mix(*hash, hash_of_value(key, *row as usize));
        }
    }
    out
}

/// Halves of a product, folded.
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ 0x9e37_79b9_7f4a_7c15) * u128::from(b ^ 0xd1b5_4a32_d192_ed03);
    (product as u64) ^ ((product >> 64) as u64)
}

const OF_NULL: u64 = 0x6e75_6c6c;

fn hash_of_value(column: &Column, row: usize) -> u64 {
    if column.is_null(row) {
        return OF_NULL;
    }
    let at = column.at(row);
    match &column.values {
        Values::Bool(v) => u64::from(v[at]),
        Values::Int(v) | Values::Timestamp(v) => v[at] as u64,
        Values::Date(v) => i64::from(v[at]) as u64,
        Values::Float(v) => hash_of_float(v[at]),
        Values::Short(v, scale) => hash_of_decimal(i128::from(v[at]), *scale),
        Values::Wide(v, scale) => hash_of_decimal(v[at], *scale),
        Values::Text(v) => hash_of_bytes(v[at]),
        Values::Numeric(_) | Values::Other(_) => hash_of_datum(&column.datum(row)),
    }
}

fn hash_of_datum(value: &Datum) -> u64 {
    match value {
        Datum::Null => OF_NULL,
        Datum::Bool(v) => u64::from(*v),
        Datum::Int(v) | Datum::Timestamp(v) => *v as u64,
        Datum::Date(v) => i64::from(*v) as u64,
        Datum::Float(v) => hash_of_float(*v),
        Datum::Numeric(Numeric::Small { mantissa, scale }) => hash_of_decimal(*mantissa, *scale),
        Datum::Text(v) => hash_of_bytes(v.as_bytes()),
        value => {
            let mut hasher = DefaultHasher::new();
            value.hash(&mut hasher);
            hasher.finish()
        }
    }
}

fn hash_of_float(v: f64) -> u64 {
    // −0 + 0 is 0.
    if v.is_nan() { f64::NAN.to_bits() } else { (v + 0.0).to_bits() }
}

/// Equal decimals of different scales have the same: trailing zeros after the point do not count.
fn hash_of_decimal(mut mantissa: i128, mut scale: u16) -> u64 {
    while scale > 0 && mantissa % 10 == 0 {
        (mantissa, scale) = (mantissa / 10, scale - 1);
    }
    mix(mix(mantissa as u64, (mantissa >> 64) as u64), u64::from(scale))
}

fn hash_of_bytes(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let hash = words.iter().fold(bytes.len() as u64, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    let rest = rest.iter().fold(0, |word, byte| (word << 8) | u64::from(*byte));
    mix(hash, rest)
}
