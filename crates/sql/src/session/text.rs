//! Results as text: for tests, the simulator and internal use.

use super::{CopyInput, Format, Formats, Mark, Notice, Output, OutputColumn};
use crate::types::Type;
use bytes::BytesMut;
use meridian_base::runtime::BoxFuture;
use meridian_base::{Error, Result};

/// The result of one statement, as text.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct StatementResult {
    pub columns: Vec<String>,
    /// `None` is NULL.
    pub rows: Vec<Vec<Option<String>>>,
    /// The command tag: `SELECT 1`, `INSERT 0 3`.
    pub tag: String,
    /// What was said besides, before the tag.
    pub notices: Vec<Notice>,
}

/// Keeps what it is told. Nothing is ever sent, so everything can be taken back.
#[derive(Default)]
pub(super) struct Collector {
    pub(super) results: Vec<StatementResult>,
    open: Option<StatementResult>,
    row: BytesMut,
    fields: usize,
}

impl Collector {
    fn open(&mut self) -> &mut StatementResult {
        self.open.get_or_insert_default()
    }
}

/// Reads the fields of an encoded row.
fn fields(mut row: &[u8], count: usize) -> Vec<Option<String>> {
    let mut fields = Vec::with_capacity(count);
    while let Some((length, rest)) = row.split_first_chunk::<4>() {
        row = rest;
        let field = usize::try_from(i32::from_be_bytes(*length)).ok().and_then(|n| row.split_at_checked(n));
        fields.push(field.map(|(bytes, rest)| {
            row = rest;
            String::from_utf8_lossy(bytes).into_owned()
        }));
    }
    debug_assert_eq!(fields.len(), count);
    fields
}

impl Output for Collector {
    fn row_description(&mut self, columns: &[OutputColumn], _: &Formats) {
        self.open().columns = columns.iter().map(|c| c.name.clone()).collect();
    }
    fn no_data(&mut self) {}
    fn parameter_description(&mut self, _: &[Type]) {}
    fn begin_row(&mut self, fields: usize) -> &mut BytesMut {
        self.row.clear();
        self.fields = fields;
        &mut self.row
    }
    fn end_row(&mut self) {
        let row = fields(&self.row, self.fields);
        self.open().rows.push(row);
    }
    fn cancel_row(&mut self) {}
    fn command_complete(&mut self, tag: &str) {
        let mut result = self.open.take().unwrap_or_default();
        result.tag = tag.to_string();
        self.results.push(result);
    }
    fn empty_query(&mut self) {}
    fn portal_suspended(&mut self) {}
    fn parse_complete(&mut self) {}
    fn bind_complete(&mut self) {}
    fn close_complete(&mut self) {}
    fn error(&mut self, _: &Error) {
        self.results.extend(self.open.take().filter(|open| !open.rows.is_empty()));
    }
    fn notice(&mut self, notice: &Notice) {
        self.open().notices.push(notice.clone());
    }
    fn parameter_status(&mut self, _: &str, _: &str) {}
    fn copy_in(&mut self, _: Format, _: usize) {}
    fn read_copy(&mut self) -> BoxFuture<'_, Result<CopyInput>> {
        Box::pin(async { Ok(CopyInput::Fail("COPY FROM STDIN needs a connection".to_string())) })
    }
    fn copy_out(&mut self, _: Format, _: usize) {}
    fn copy_data(&mut self, bytes: &[u8]) {
        let line = String::from_utf8_lossy(bytes).trim_end_matches('\n').to_string();
        self.open().rows.push(vec![Some(line)]);
    }
    fn copy_done(&mut self) {}
    fn mark(&self) -> Mark {
        // Results are whole statements and the rows of the open one.
        Mark { flushes: self.open.as_ref().map_or(0, |o| o.rows.len() as u64 + 1), length: self.results.len() }
    }
    fn rewind(&mut self, to: Mark) -> bool {
        self.results.truncate(to.length);
        match to.flushes {
            0 => self.open = None,
            n => self.open().rows.truncate(n as usize - 1),
        }
        true
    }
    fn buffered(&self) -> usize {
        0
    }
    fn flush(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(()) })
    }
}
