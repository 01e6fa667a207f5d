//! Where a session's answers go: a connection, or a collector for tests and internal use.
//!
//! The session decides *what* is said and in which order; an [`Output`] decides how it looks on the
//! wire. Everything said goes into a buffer first. That buffer is what makes automatic retries
//! possible: as long as nothing of it has been sent, the session can [rewind](Output::rewind) it to
//! a [mark](Output::mark) and run the same work again without the client noticing.

use crate::plan::OutputColumn;
use crate::types::{Format, Type};
use bytes::{Bytes, BytesMut};
use meridian_base::runtime::BoxFuture;
use meridian_base::{Error, Result};

/// The formats of a row's fields.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Formats {
    #[default]
    AllText,
    AllBinary,
    Each(Vec<Format>),
}

impl Formats {
    /// The format of a field.
    pub fn of(&self, field: usize) -> Format {
        match self {
            Formats::AllText => Format::Text,
            Formats::AllBinary => Format::Binary,
            Formats::Each(each) => each.get(field).copied().unwrap_or_default(),
        }
    }
}

/// A message beside the result (`NOTICE`, `WARNING`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// `WARNING`, `NOTICE`, `INFO`, `LOG`, `DEBUG`.
    pub severity: &'static str,
    pub sqlstate: &'static str,
    pub message: String,
    pub detail: Option<String>,
    pub hint: Option<String>,
}

/// What a client sends during `COPY … FROM STDIN`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyInput {
    /// The next bytes; their boundaries mean nothing.
    Data(Bytes),
    Done,
    /// The client gave up, with its reason.
    Fail(String),
}

/// A place in the buffer of an [`Output`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Mark {
    /// How often the buffer had been sent when the mark was made.
    pub flushes: u64,
    /// The length of the buffer then.
    pub length: usize,
}

/// What a session tells its client.
pub trait Output: Send {
    /// The shape of the rows that follow.
    fn row_description(&mut self, columns: &[OutputColumn], formats: &Formats);
    /// The statement described returns no rows.
    fn no_data(&mut self);
    /// The types of the parameters of the statement described.
    fn parameter_description(&mut self, types: &[Type]);
    /// Starts a row of so many fields; append each as an `i32` length (−1: NULL) and its bytes,
    /// then call [`Output::end_row`].
    fn begin_row(&mut self, fields: usize) -> &mut BytesMut;
    /// Ends the row begun last.
    fn end_row(&mut self);
    /// Takes back the row begun last: it could not be written.
    fn cancel_row(&mut self);
    /// A statement is done.
    fn command_complete(&mut self, tag: &str);
    /// The query string was empty.
    fn empty_query(&mut self);
    /// The portal has more rows.
    fn portal_suspended(&mut self);
    fn parse_complete(&mut self);
    fn bind_complete(&mut self);
    fn close_complete(&mut self);
    /// A statement failed.
    fn error(&mut self, error: &Error);
    fn notice(&mut self, notice: &Notice);
    /// A setting that clients follow has a new value.
    fn parameter_status(&mut self, name: &str, value: &str);
    /// Invites the client to send the data of a `COPY … FROM STDIN`.
    fn copy_in(&mut self, format: Format, columns: usize);
    /// The next piece of what the client sends after [`Output::copy_in`]; sends first what is
    /// buffered.
    fn read_copy(&mut self) -> BoxFuture<'_, Result<CopyInput>>;
    /// Announces the data of a `COPY … TO STDOUT`.
    fn copy_out(&mut self, format: Format, columns: usize);
    /// A piece of `COPY … TO STDOUT`.
    fn copy_data(&mut self, bytes: &[u8]);
    /// The end of the data of a `COPY … TO STDOUT`.
    fn copy_done(&mut self);
    /// The current end of the buffer.
    fn mark(&self) -> Mark;
    /// Forgets everything since the mark that was not sent yet. `false` if some of it was: the
    /// client has seen that.
    fn rewind(&mut self, to: Mark) -> bool;
    /// How many bytes are buffered.
    fn buffered(&self) -> usize;
    /// Sends what is buffered, waiting for the socket.
    fn flush(&mut self) -> BoxFuture<'_, Result<()>>;
}
