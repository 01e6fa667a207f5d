//! Stored rows, copied out of the store as they are.

use crate::env::RowVisitor;
use crate::exec::BATCH_BYTES;
use crate::exec::sieve::Turn;
use meridian_base::Error;
use std::ops::ControlFlow;

/// The bytes of some rows.
#[derive(Default)]
pub(super) struct Page {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    pub(super) rows: usize,
    /// The conditions of the scan hold for all of them.
    pub(super) is_filtered: bool,
}

impl Page {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.rows = 0;
        self.is_filtered = false;
    }
    pub(super) fn said_to_match(self, is_filtered: bool) -> Page {
        Page { is_filtered, ..self }
    }
    /// Whether it has so many bytes that it should end.
    pub(super) fn is_full(&self, most: usize) -> bool {
        self.bytes.len() >= most
    }
    pub(super) fn row(&self, row: usize) -> &[u8] {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[row]]
    }
    /// Takes a row; of one whose columns nobody uses, only that it is there.
    pub(super) fn push(&mut self, value: &[u8], keeps_bytes: bool) {
        if keeps_bytes {
            self.bytes.extend_from_slice(value);
            self.ends.push(self.bytes.len());
        }
        self.rows += 1;
    }
}

/// Fills a page where the rows are stored.
pub(super) struct Filler<'a> {
    pub(super) page: &'a mut Page,
    pub(super) keeps_bytes: bool,
    pub(super) turn: Turn<'a>,
    /// Why it ended.
    pub(super) error: Option<Error>,
}

impl RowVisitor for Filler<'_> {
    fn row(&mut self, _: &dyn AsRef<[u8]>, value: &[u8]) -> ControlFlow<()> {
        self.page.push(value, self.keeps_bytes);
        if self.page.is_full(BATCH_BYTES) {
            return ControlFlow::Break(());
        }
        match self.turn.is_over() {
            Ok(false) => ControlFlow::Continue(()),
            Ok(true) => ControlFlow::Break(()),
            Err(e) => {
                self.error = Some(e);
                ControlFlow::Break(())
            }
        }
    }
    fn is_brief(&self) -> bool {
        true
    }
    fn restart(&mut self) {
        self.page.clear();
        self.turn.restart();
    }
}
