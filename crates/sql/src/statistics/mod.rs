//! What is known about the rows of tables: how many there are, and how the values of their columns
//! are distributed.
//!
//! [`crate::analyze`] reads a table and counts, [`TableStatistics`] answers the optimizer
//! (`plan::estimate`), `session::statistics` does it without being asked. Statistics are estimates
//! of a moment: what a statement answers never depends on them.
//!
//! Values are kept as their bytes in a key (`types::keys`): these compare as the values do,
//! whatever their type.

use crate::types::{Datum, Type, keys};
use meridian_base::{DescriptorId, Result, Timestamp, envelope};
use serde::{Deserialize, Serialize};

/// The format of [`StoredStatistics::body`]: [`TableStatistics`] as an envelope.
const FORMAT: u8 = 1;

/// Statistics of one table as the catalog holds them. They are deleted with their table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredStatistics {
    pub id: DescriptorId,
    pub table: DescriptorId,
    /// Of the body. One that is not known is as good as no statistics.
    pub format: u8,
    pub body: Vec<u8>,
}

/// What one reading of a table has found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TableStatistics {
    /// The moment that was read.
    pub at: Timestamp,
    pub rows: u64,
    /// By ordinal.
    pub columns: Vec<ColumnStatistics>,
}

/// The values of a column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ColumnStatistics {
    pub ordinal: u32,
    /// The column's type then: under another one the values mean something else.
    pub type_oid: u32,
    /// The part of the rows that have NULL.
    pub nulls: f32,
    /// Bytes of a stored value, on average.
    pub width: f32,
    /// How many values there are, NULL left out.
    pub distinct: u64,
    /// Values that are more frequent than others, with the part of all rows that have them; the
    /// most frequent one first.
    pub common: Vec<(Vec<u8>, f32)>,
    /// Bounds between which equal parts of the other values lie, the smallest and the largest value
    /// included.
    pub bounds: Vec<Vec<u8>>,
}

impl StoredStatistics {
    pub(crate) fn new(id: DescriptorId, table: DescriptorId, statistics: &TableStatistics) -> StoredStatistics {
        StoredStatistics { id, table, format: FORMAT, body: envelope::encode(statistics) }
    }
    /// `None` if they were written by a later version, or cannot be read.
    pub(crate) fn read(&self) -> Option<TableStatistics> {
        (self.format == FORMAT).then(|| envelope::decode(&self.body).ok()).flatten()
    }
}

impl TableStatistics {
    pub(crate) fn column(&self, ordinal: u32, ty: &Type) -> Option<&ColumnStatistics> {
        let at = self.columns.binary_search_by_key(&ordinal, |c| c.ordinal).ok()?;
        self.columns.get(at).filter(|c| c.type_oid == ty.oid())
    }
}

impl ColumnStatistics {
    /// The part of the rows whose value has these bytes.
    pub(crate) fn equal(&self, key: &[u8]) -> f64 {
        match self.common.iter().find(|(value, _)| value == key) {
            Some((_, part)) => f64::from(*part),
            None => self.of_a_rare_one(),
        }
    }
    /// The part of the rows that have one value, of which nothing is known.
    pub(crate) fn equal_to_any(&self) -> f64 {
        (1.0 - f64::from(self.nulls)).max(0.0) / (self.distinct.max(1) as f64)
    }
    fn in_common(&self) -> f64 {
        self.common.iter().map(|(_, part)| f64::from(*part)).sum()
    }
    /// The part of the rows that have neither NULL nor a common value.
    fn rest(&self) -> f64 {
        (1.0 - f64::from(self.nulls) - self.in_common()).max(0.0)
    }
    fn of_a_rare_one(&self) -> f64 {
        let rare = self.distinct.saturating_sub(self.common.len() as u64).max(1);
        let least = self.common.last().map_or(1.0, |(_, part)| f64::from(*part));
        (self.rest() / rare as f64).min(least)
    }
    /// The part of the rows whose value is below these bytes, which are a value of this type, or
    /// the beginning of one.
    pub(crate) fn below(&self, key: &[u8], ty: &Type) -> f64 {
        let common: f64 = self.common.iter().filter(|(value, _)| value.as_slice() < key).map(|(_, part)| f64::from(*part)).sum();
        common + self.rest() * self.place(key, ty)
    }
    /// Where in the histogram a value lies, from 0 to 1.
    fn place(&self, key: &[u8], ty: &Type) -> f64 {
        let buckets = self.bounds.len().saturating_sub(1);
        if buckets == 0 {
            return if self.bounds.first().is_some_and(|only| only.as_slice() < key) { 1.0 } else { 0.0 };
        }
        let after = self.bounds.partition_point(|bound| bound.as_slice() < key);
        if after == 0 {
            return 0.0;
        }
        if after > buckets {
            return 1.0;
        }
        let within = between(&self.bounds[after - 1], key, &self.bounds[after], ty);
        ((after - 1) as f64 + within) / buckets as f64
    }
    /// Whether what is known of single values makes a difference.
    pub(crate) fn knows_values(&self) -> bool {
        !self.common.is_empty() || self.bounds.len() > 1
    }
}

/// Where a value lies between two others, from 0 to 1. Of values that are no numbers the first
/// eight bytes count in which the two differ.
fn between(low: &[u8], key: &[u8], high: &[u8], ty: &Type) -> f64 {
    let same = low.iter().zip(high).take_while(|(a, b)| a == b).count();
    let number = |bytes: &[u8]| {
        number_of(bytes, ty).unwrap_or_else(|| {
            let mut eight = [0u8; 8];
            let rest = bytes.get(same..).unwrap_or_default();
            let n = rest.len().min(8);
            eight[..n].copy_from_slice(&rest[..n]);
            u64::from_be_bytes(eight) as f64
        })
    };
    let (low, key, high) = (number(low), number(key), number(high));
    let part = (key - low) / (high - low);
    if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.5 }
}

/// A value as a number. Keys of numbers are not evenly spread over their bytes.
fn number_of(mut key: &[u8], ty: &Type) -> Option<f64> {
    if !matches!(
        ty,
        Type::Int2
            | Type::Int4
            | Type::Int8
            | Type::Float4
            | Type::Float8
            | Type::Numeric(_)
            | Type::Date
            | Type::Time
            | Type::Timestamp
            | Type::Timestamptz
    ) {
        return None;
    }
    match keys::decode_key_column(&mut key, ty, false, false).ok()? {
        Datum::Int(n) | Datum::Time(n) | Datum::Timestamp(n) => Some(n as f64),
        Datum::Date(n) => Some(f64::from(n)),
        Datum::Float(n) => Some(n),
        Datum::Numeric(n) => Some(n.to_f64()),
        _ => None,
    }
}

/// A value's bytes as statistics have them.
pub(crate) fn key_of(value: &Datum, ty: &Type) -> Result<Vec<u8>> {
    let mut key = Vec::with_capacity(16);
    keys::encode_key_column(&mut key, value, ty, false, false)?;
    Ok(key)
}

#[cfg(test)]
mod tests;
