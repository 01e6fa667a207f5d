//! What a transaction engine may ask of a replica's store.

use bytes::Bytes;
use meridian_base::{ColumnMask, Error, Key, KeyRange, Target, Timestamp};
use meridian_region::{Rules, Versions};
use meridian_store::{GroupStore, ScanLimits};
use std::cell::RefCell;

/// A store that fails answers so that nothing passes, and the failure is kept.
pub(crate) struct StoreVersions<'a> {
    store: &'a GroupStore,
    rules: Rules,
    pub failure: RefCell<Option<Error>>,
}

impl<'a> StoreVersions<'a> {
    pub fn new(store: &'a GroupStore, rules: Rules) -> StoreVersions<'a> {
        StoreVersions { store, rules, failure: RefCell::new(None) }
    }
}

impl Versions for StoreVersions<'_> {
    fn newest(&self, key: &Key) -> Option<Timestamp> {
        self.store
            .newest(key.as_bytes())
            .unwrap_or_else(|e| {
                *self.failure.borrow_mut() = Some(e);
                None
            })
            .map(|v| v.at)
    }
    fn changed_after(&self, target: &Target, columns: ColumnMask, after: Timestamp) -> Option<(Key, Timestamp)> {
        let after = match self.rules.refuses_below_gc() {
            // Against what is left (counterexample 11).
            false => after.max(self.store.gc_threshold()),
            true => after,
        };
        match self.store.changed_after(target, columns, after) {
            Ok(found) => found,
            Err(e) => {
                // Below the garbage-collection threshold the engine has said no already; anything
                // else is a broken store.
                *self.failure.borrow_mut() = Some(e);
                Some((target.start().clone(), Timestamp::MAX))
            }
        }
    }
    fn newest_values(&self, range: &KeyRange) -> Vec<(Key, Bytes)> {
        let mut values = Vec::new();
        let mut left = Some(range.clone());
        while let Some(range) = left.take() {
            match self.store.scan(&range, Timestamp::MAX, false, ScanLimits::default()) {
                Ok(page) => {
                    values.extend(page.rows.into_iter().filter_map(|(key, version)| Some((key, version.value?))));
                    left = page.rest;
                }
                Err(e) => *self.failure.borrow_mut() = Some(e),
            }
        }
        values
    }
    fn gc_threshold(&self) -> Timestamp {
        self.store.gc_threshold()
    }
}
