//! The first rows of an order, or all of them.

use super::eval::Row;
use super::sort::{Keyed, Way, compare_keys, sort_by};
use super::spill::{Merge, Sorter, is_short};
use super::{BATCH, Runtime};
use crate::env::Transaction;
use crate::plan::node::SortPlan;
use meridian_base::Result;

/// The first rows of what came so far, and up to as many others; or all of them.
pub(super) struct First<'a> {
    pub(super) keys: &'a [SortPlan],
    most: usize,
    /// In the order in which they came since they were sorted last.
    kept: Vec<Keyed>,
    /// The key that rows must be below; `None`: too few have come.
    pub(super) bound: Option<Row>,
    /// What is accounted for the rows and for the keys of `kept`.
    row_bytes: usize,
    key_bytes: usize,
    /// Has the rows, if all are wanted, or too many.
    all: Option<Sorter>,
}

/// Rows in their order.
pub(super) enum Sorted {
    Rows(Vec<Row>),
    Merge(Box<Merge>),
}

impl<'a> First<'a> {
    pub(super) fn new(keys: &'a [SortPlan], most: usize) -> First<'a> {
        let all = (most == usize::MAX).then(|| Sorter::new(keys.iter().map(Way::from).collect()));
        First { keys, most, kept: Vec::new(), bound: None, row_bytes: 0, key_bytes: 0, all }
    }

    /// Takes a row with its key.
    pub(super) fn push<T: Transaction>(&mut self, key: Row, row: Row, rt: &mut Runtime<'_, T>) -> Result<()> {
        if self.bound.as_ref().is_none_or(|bound| compare_keys(&key, bound, self.keys).is_lt()) {
            let key_bytes = rt.keep_key(&key, self.keys.iter().map(|k| &k.expr))?;
            let row_bytes = rt.keep(std::slice::from_ref(&row))?;
            match &mut self.all {
                Some(all) => all.push(key, row, key_bytes + row_bytes),
                None => {
                    self.key_bytes += key_bytes;
                    self.row_bytes += row_bytes;
                    self.kept.push(Keyed::new(key, row, self.keys));
                }
            }
        }
        Ok(())
    }

    /// Lets go of rows that are not among the first, if there are many; or of memory, if all are.
    pub(super) async fn trim<T: Transaction>(&mut self, rt: &mut Runtime<'_, T>) -> Result<()> {
        if self.all.is_none() && is_short(rt) && self.row_bytes + self.key_bytes > rt.piece() {
            // They are too many. The bound stays.
            self.all = Sorter::on_disk(self.keys.iter().map(Way::from).collect(), rt);
            if let Some(all) = &mut self.all {
                let bytes = std::mem::take(&mut self.row_bytes) + std::mem::take(&mut self.key_bytes);
                all.take(std::mem::take(&mut self.kept), bytes);
            }
        }
        if let Some(all) = &mut self.all {
            return all.trim(rt).await;
        }
        if self.kept.len() >= self.most.saturating_mul(2).max(self.most.saturating_add(BATCH / 2)) {
            self.cut(rt).await?;
        }
        Ok(())
    }

    async fn cut<T: Transaction>(&mut self, rt: &mut Runtime<'_, T>) -> Result<()> {
        let keys = self.keys;
        self.kept = sort_by(std::mem::take(&mut self.kept), |a, b| a.compare(b, keys), rt).await?;
        let beyond = self.kept.len() > self.most;
        self.kept.truncate(self.most);
        if beyond {
            rt.shared.memory -= std::mem::take(&mut self.row_bytes) + std::mem::take(&mut self.key_bytes);
            for kept in &self.kept {
                rt.step().await?;
                self.key_bytes += rt.keep_key(&kept.key, keys.iter().map(|k| &k.expr))?;
                self.row_bytes += rt.keep(std::slice::from_ref(&kept.row))?;
            }
        }
        self.bound = self.kept.last().filter(|_| self.kept.len() == self.most).map(|kept| kept.key.clone());
        Ok(())
    }

    pub(super) async fn finish<T: Transaction>(mut self, rt: &mut Runtime<'_, T>) -> Result<Sorted> {
        if let Some(all) = self.all {
            return Ok(Sorted::Merge(Box::new(all.finish(rt).await?)));
        }
        self.cut(rt).await?;
        let mut rows = Vec::with_capacity(self.kept.len());
        for kept in self.kept {
            rt.step().await?;
            rows.push(kept.row);
        }
        rt.shared.memory -= self.key_bytes;
        Ok(Sorted::Rows(rows))
    }
}
