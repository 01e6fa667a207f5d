//! Counting the rows of a table as they are read, in bounded memory.
//!
//! Every row counts for the number of rows, of NULLs, of bytes and of distinct values (HyperLogLog,
//! Flajolet et al. 2007, over the stored bytes). Common values and histograms come from a sample:
//! the rows whose key has one of the smallest hashes, which are a random choice however the rows
//! are ordered, and the same one however often they are read.

use crate::plan::TablePlan;
use crate::statistics::{ColumnStatistics, TableStatistics, key_of};
use crate::types::{Datum, RowView, Type, keys};
use bytes::Bytes;
use meridian_base::{Result, Timestamp};
use std::collections::{BTreeMap, BinaryHeap};

/// Rows in a sample: those of PostgreSQL at its default target (300 for each of 100 bounds).
const SAMPLE_ROWS: usize = 30_000;
/// Bytes of a sample; one with wide rows has fewer.
const SAMPLE_BYTES: usize = 16 << 20;
/// A wider row is counted and not sampled.
const ROW_BYTES: usize = 64 << 10;
const COMMON_MAX: usize = 100;
const BUCKETS: usize = 100;
/// So many times more frequent than the average is a common value,
const COMMON_TIMES: f64 = 1.25;
/// and so many standard deviations (of Poisson's distribution) where that is known from a sample.
const SPREADS: f64 = 6.0;
/// A bound is cut after so many bytes; a longer value is not among the common ones.
const VALUE_BYTES: usize = 64;
/// What a table's values take in the catalog, over all columns. Columns behind it have numbers
/// only.
const VALUES_BYTES: usize = 256 << 10;
/// Rows between two chances for other sessions.
const TURN_ROWS: usize = 500;

/// See the module's essay.
pub(super) struct Collector {
    rows: u64,
    columns: Vec<Counts>,
    sample: BinaryHeap<Sampled>,
    sample_bytes: usize,
    /// No hash from here on is in the sample.
    limit: u64,
}

struct Counts {
    ordinal: u32,
    nulls: u64,
    bytes: u64,
    distinct: Distinct,
}

/// Ordered by the hash.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Sampled {
    hash: u64,
    row: Bytes,
}

impl Collector {
    pub(super) fn new(ordinals: &[u32]) -> Collector {
        let counts = |o: &u32| Counts { ordinal: *o, nulls: 0, bytes: 0, distinct: Distinct::default() };
        let columns = ordinals.iter().map(counts).collect();
        Collector { rows: 0, columns, sample: BinaryHeap::new(), sample_bytes: 0, limit: u64::MAX }
    }

    /// `missing`: by ordinal, what rows have in columns that were added after them.
    pub(super) fn add(&mut self, key: &[u8], row: &[u8], missing: &[Datum]) -> Result<()> {
        self.rows += 1;
        let view = RowView::new(row)?;
        for c in &mut self.columns {
            let o = c.ordinal as usize;
            match view.stored(o)? {
                Some(bytes) => {
                    c.bytes += bytes.len() as u64;
                    c.distinct.add(hash(bytes));
                }
                None if view.is_missing(o) && !missing[o].is_null() => c.distinct.add(0),
                None => c.nulls += 1,
            }
        }
        let hash = hash(key);
        if hash >= self.limit || row.len() > ROW_BYTES {
            return Ok(());
        }
        self.sample.push(Sampled { hash, row: Bytes::copy_from_slice(row) });
        self.sample_bytes += row.len();
        while self.sample.len() > SAMPLE_ROWS || self.sample_bytes > SAMPLE_BYTES {
            let Some(largest) = self.sample.pop() else { break };
            self.sample_bytes -= largest.row.len();
            self.limit = largest.hash;
        }
        Ok(())
    }

    pub(super) async fn finish(self, plan: &TablePlan, at: Timestamp) -> Result<TableStatistics> {
        let mut out = TableStatistics { at, rows: self.rows, columns: Vec::with_capacity(self.columns.len()) };
        let sample = self.sample.into_vec();
        let is_whole = sample.len() as u64 == self.rows;
        let mut room = VALUES_BYTES;
        for c in self.columns {
            let o = c.ordinal as usize;
            let ty = &plan.types[o];
            let valued = self.rows - c.nulls;
            let mut column = ColumnStatistics {
                ordinal: c.ordinal,
                type_oid: ty.oid(),
                nulls: part(c.nulls, self.rows),
                width: if valued == 0 { 0.0 } else { c.bytes as f32 / valued as f32 },
                distinct: c.distinct.estimate().min(valued),
                ..ColumnStatistics::default()
            };
            let has_keys = keys::has_order(ty) && !matches!(ty, Type::Jsonb | Type::Record);
            if has_keys && room > 0 {
                let mut values: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
                for (i, sampled) in sample.iter().enumerate() {
                    if i % TURN_ROWS == TURN_ROWS - 1 {
                        tokio::task::yield_now().await;
                    }
                    let view = RowView::new(sampled.row.clone())?;
                    let value = if view.is_missing(o) { plan.missing[o].clone() } else { view.datum(o, ty)? };
                    if !value.is_null() {
                        *values.entry(key_of(&value, ty)?).or_default() += 1;
                    }
                }
                if is_whole {
                    column.distinct = values.len() as u64;
                }
                distribute(&mut column, values, sample.len(), is_whole);
                let common: usize = column.common.iter().map(|(v, _)| v.len() + 4).sum();
                let taken = common + column.bounds.iter().map(Vec::len).sum::<usize>();
                room = room.saturating_sub(taken);
                tokio::task::yield_now().await;
            }
            out.columns.push(column);
        }
        out.columns.sort_by_key(|c| c.ordinal);
        Ok(out)
    }
}

fn part(of: u64, all: u64) -> f32 {
    if all == 0 { 0.0 } else { (of as f64 / all as f64) as f32 }
}

/// The common values of a sample, and the bounds of the others.
fn distribute(column: &mut ColumnStatistics, mut values: BTreeMap<Vec<u8>, u32>, rows: usize, is_whole: bool) {
    let valued: u64 = values.values().map(|n| u64::from(*n)).sum();
    // Of the values that a table has, how often each is in the sample.
    let average = valued as f64 / column.distinct.max(1) as f64;
    // With few values, each of them is known.
    let are_all = values.len() <= COMMON_MAX && (is_whole || values.values().all(|n| *n > 1));
    // A value that is as frequent as others comes more often into some samples.
    let by_chance = if is_whole { 0.0 } else { average + SPREADS * average.sqrt() + 1.0 };
    let is_common = |value: &[u8], n: u32| {
        let n = f64::from(n);
        value.len() <= VALUE_BYTES && (are_all || (n > 1.0 && n > average * COMMON_TIMES && n > by_chance))
    };
    let mut common: Vec<(&Vec<u8>, u32)> = values.iter().map(|(v, n)| (v, *n)).filter(|(v, n)| is_common(v, *n)).collect();
    // Of equals, the one that is smaller.
    common.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    common.truncate(COMMON_MAX);
    column.common = common.into_iter().map(|(v, n)| (v.clone(), part(u64::from(n), rows as u64))).collect();
    for (value, _) in &column.common {
        values.remove(value);
    }
    let rest: u64 = values.values().map(|n| u64::from(*n)).sum();
    if values.len() < 2 {
        return;
    }
    let buckets = (BUCKETS as u64).min(values.len() as u64 - 1);
    let (mut seen, mut next) = (0u64, 0u64);
    for (value, n) in values {
        seen += u64::from(n);
        // The bound of bucket i is the value of row i × (rest − 1) / buckets.
        if next <= buckets && seen > next * (rest - 1) / buckets {
            let mut bound = value;
            bound.truncate(VALUE_BYTES);
            while next <= buckets && seen > next * (rest - 1) / buckets {
                column.bounds.push(bound.clone());
                next += 1;
            }
        }
    }
}

/// Counts distinct values.
struct Distinct {
    registers: Vec<u8>,
}

/// 4,096 registers: a standard error of 1.6 %.
const BITS: u32 = 12;

impl Default for Distinct {
    fn default() -> Distinct {
        Distinct { registers: vec![0; 1 << BITS] }
    }
}

impl Distinct {
    fn add(&mut self, hash: u64) {
        let register = &mut self.registers[(hash >> (64 - BITS)) as usize];
        // The position of the first one in the other bits.
        let rank = ((hash << BITS) | (1 << (BITS - 1))).leading_zeros() as u8 + 1;
        *register = (*register).max(rank);
    }
    fn estimate(&self) -> u64 {
        let m = self.registers.len() as f64;
        let sum: f64 = self.registers.iter().map(|r| 2f64.powi(-i32::from(*r))).sum();
        let raw = 0.7213 / (1.0 + 1.079 / m) * m * m / sum;
        let empty = self.registers.iter().filter(|r| **r == 0).count() as f64;
        // Few values leave registers empty, which tells more.
        let estimate = if raw <= 2.5 * m && empty > 0.0 { m * (m / empty).ln() } else { raw };
        estimate.round() as u64
    }
}

/// A hash whose bits are all as good as random. Nothing keeps it: it may be another one in the next
/// version.
fn hash(bytes: &[u8]) -> u64 {
    const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut h = (bytes.len() as u64).wrapping_mul(ODD);
    let mut chunks = bytes.chunks_exact(8);
    for chunk in chunks.by_ref() {
        let word = u64::from_le_bytes(chunk.try_into().expect("eight bytes"));
        h = mix(h ^ word);
    }
    let mut last = [0u8; 8];
    last[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    mix(h ^ u64::from_le_bytes(last))
}

/// The finalizer of SplitMix64 (Steele et al. 2014).
fn mix(h: u64) -> u64 {
    let h = h.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let h = (h ^ (h >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let h = (h ^ (h >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    h ^ (h >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinct_values_are_counted_within_a_few_percent() {
        for n in [1u64, 10, 1_000, 10_000, 300_000] {
            let mut distinct = Distinct::default();
            for i in 0..n {
                // Each twice.
                distinct.add(hash(&i.to_be_bytes()));
                distinct.add(hash(&i.to_be_bytes()));
            }
            let estimate = distinct.estimate();
            assert!(estimate.abs_diff(n) as f64 <= 0.06 * n as f64, "{n} values are counted as {estimate}");
        }
    }

    #[test]
    fn frequent_values_are_common_and_the_others_are_divided() {
        let mut values: BTreeMap<Vec<u8>, u32> = (0..1_000u32).map(|i| (i.to_be_bytes().to_vec(), 1)).collect();
        values.insert(500u32.to_be_bytes().to_vec(), 1_000);
        let mut column = ColumnStatistics { distinct: 1_000, ..ColumnStatistics::default() };
        distribute(&mut column, values, 1_999, true);
        assert_eq!(column.common.len(), 1);
        assert!((column.equal(&500u32.to_be_bytes()) - 0.5).abs() < 0.01);
        assert!((column.equal(&7u32.to_be_bytes()) - 0.0005).abs() < 0.0001);
        assert_eq!(column.bounds.len(), 101);
        assert!((column.below(&250u32.to_be_bytes(), &Type::Bytea) - 0.125).abs() < 0.01);
        assert!((column.below(&750u32.to_be_bytes(), &Type::Bytea) - 0.875).abs() < 0.01);
        assert_eq!(
            (column.below(&0u32.to_be_bytes(), &Type::Bytea), column.below(&5_000u32.to_be_bytes(), &Type::Bytea)),
            (0.0, 1.0)
        );
    }
}
