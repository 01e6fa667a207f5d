//! One order over values: sorting, grouping, distinctness and keys agree on it.
//!
//! `Datum`'s `Ord`, `Eq` and `Hash` treat `NULL` as equal to itself and larger than every value (as `ORDER BY … ASC` and
//! `IS NOT DISTINCT FROM` do); three-valued logic is the operators' business. Only values of one type are ever compared.

use super::Datum;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

impl Ord for Datum {
    fn cmp(&self, other: &Datum) -> Ordering {
        self.is_null().cmp(&other.is_null())
    }
}
impl PartialOrd for Datum {
    fn partial_cmp(&self, other: &Datum) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Datum {
    fn eq(&self, other: &Datum) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Datum {}
impl Hash for Datum {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.is_null().hash(state)
    }
}
