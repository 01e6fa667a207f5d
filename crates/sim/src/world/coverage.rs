//! How often each fault and rare path happened. A campaign that promises one fails when it never
//! did.

use parking_lot::Mutex;
use std::collections::BTreeMap;

/// Counts by name.
#[derive(Default)]
pub struct Coverage(Mutex<BTreeMap<&'static str, u64>>);

impl Coverage {
    /// It happened once more.
    pub fn hit(&self, what: &'static str) {
        self.add(what, 1);
    }
    /// It happened so often.
    pub fn add(&self, what: &'static str, count: u64) {
        *self.0.lock().entry(what).or_default() += count;
    }
    /// All counts.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        self.0.lock().iter().map(|(what, count)| (what.to_string(), *count)).collect()
    }
}
