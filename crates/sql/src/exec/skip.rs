//! The rows that an `OFFSET` skips. The operator that reads them may leave them out without
//! decoding them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many of the next rows are skipped. A limit shares it with what is below it: a row is left
/// out by one of them, and counted once.
#[derive(Clone, Debug, Default)]
pub(super) struct Skip(Option<Arc<AtomicU64>>);

impl Skip {
    pub(super) fn new(rows: u64) -> Skip {
        Skip((rows > 0).then(|| Arc::new(AtomicU64::new(rows))))
    }

    pub(super) fn left(&self) -> u64 {
        self.0.as_ref().map_or(0, |left| left.load(Ordering::Relaxed))
    }

    /// So many were left out.
    pub(super) fn pass(&self, rows: u64) {
        if let Some(left) = &self.0 {
            left.store(left.load(Ordering::Relaxed).saturating_sub(rows), Ordering::Relaxed);
        }
    }

    /// How many of the next `rows` are to be left out, which counts them.
    pub(super) fn take(&self, rows: usize) -> usize {
        let skipped = usize::try_from(self.left()).unwrap_or(usize::MAX).min(rows);
        self.pass(skipped as u64);
        skipped
    }
}
