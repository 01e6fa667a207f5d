//! Rows of keys for which there was no room when they came.

use super::{Sorter, is_short};
use crate::env::Transaction;
use crate::exec::Runtime;
use crate::exec::eval::Row;
use crate::exec::sort::Way;
use meridian_base::Result;

/// Where rows go whose key is new, once memory is short: they are put in the order of their keys.
pub(in crate::exec) struct Beyond {
    keys: usize,
    sorter: Option<Sorter>,
    /// There is no such place: all keys are held.
    is_never: bool,
}

impl Beyond {
    /// `keys`: how many values a key has.
    pub(in crate::exec) fn new(keys: usize) -> Beyond {
        Beyond { keys, sorter: None, is_never: keys == 0 }
    }
    /// Whether rows of a key that the operator does not hold yet are written here.
    pub(in crate::exec) fn takes_new<T: Transaction>(&mut self, rt: &Runtime<'_, T>) -> bool {
        if self.sorter.is_none() && !self.is_never && is_short(rt) {
            self.sorter = Sorter::on_disk(vec![Way::PLAIN; self.keys].into(), rt);
            self.is_never = self.sorter.is_none();
        }
        self.sorter.is_some()
    }
    pub(in crate::exec) fn push<T: Transaction>(&mut self, key: Row, row: Row, rt: &mut Runtime<'_, T>) -> Result<()> {
        let bytes = rt.keep(std::slice::from_ref(&key))? + rt.keep(std::slice::from_ref(&row))?;
        if let Some(sorter) = &mut self.sorter {
            sorter.push(key, row, bytes);
        }
        Ok(())
    }
    /// Between batches of rows.
    pub(in crate::exec) async fn trim<T: Transaction>(&mut self, rt: &mut Runtime<'_, T>) -> Result<()> {
        match &mut self.sorter {
            Some(sorter) => sorter.trim(rt).await,
            None => Ok(()),
        }
    }
    pub(in crate::exec) fn into_sorter(self) -> Option<Sorter> {
        self.sorter
    }
}
