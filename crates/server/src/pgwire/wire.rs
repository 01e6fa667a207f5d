//! What the server sends, and the stream itself.
//!
//! Answers are appended to one buffer and sent when the caller says so. Rows are written in place:
//! the session appends fields to the buffer and only the length is filled in afterwards.

use super::frontend::{self, Message};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use meridian_base::runtime::BoxFuture;
use meridian_base::{Error, Result};
use meridian_sql::catalog::system;
use meridian_sql::session::{CopyInput, Format, Formats, Mark, Notice, Output, OutputColumn};
use meridian_sql::types::Type;
use parking_lot::Mutex;
use pgwire::messages::copy::{CopyDone, CopyInResponse, CopyOutResponse};
use pgwire::messages::data::{NoData, ParameterDescription};
use pgwire::messages::extendedquery::{BindComplete, CloseComplete, ParseComplete, PortalSuspended};
use pgwire::messages::response::{EmptyQueryResponse, ErrorResponse, NoticeResponse, ReadyForQuery, TransactionStatus};
use pgwire::messages::startup::ParameterStatus;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};

/// Bytes that are read ahead while a statement runs. When this is full, reading stops, and a
/// disconnection is noticed only after the statement.
const AHEAD_BYTES_MAX: usize = 64 << 10;
/// Buffers larger than this are given back when they are empty: what an idle connection holds is
/// bounded.
const IDLE_BYTES_MAX: usize = 16 << 10;
/// Read at a time while a client sends the data of a `COPY`.
const COPY_BYTES: usize = 128 << 10;

/// A stream with its buffers.
pub struct Wire<S> {
    reader: Arc<Mutex<Ahead<S>>>,
    writer: WriteHalf<S>,
    pub input: BytesMut,
    output: BytesMut,
    /// Messages on their way to the client. [`Output::rewind`] leaves them alone.
    sending: BytesMut,
    /// How many bytes of `sending` are written.
    sent: usize,
    flushes: u64,
    row_start: usize,
    /// The stream failed, or cannot be followed: nothing more can be said.
    pub is_broken: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Wire<S> {
    pub fn new(stream: S) -> Wire<S> {
        let (half, writer) = tokio::io::split(stream);
        let reader = Arc::new(Mutex::new(Ahead { half, bytes: BytesMut::new(), is_awaited: false, is_over: false }));
        Wire {
            reader,
            writer,
            input: BytesMut::new(),
            output: BytesMut::new(),
            sending: BytesMut::new(),
            sent: 0,
            flushes: 0,
            row_start: 0,
            is_broken: false,
        }
    }
    /// Appends a message. One that cannot be encoded (too long for its kind) breaks the stream
    /// rather than be left out.
    pub fn put(&mut self, message: &impl pgwire::messages::Message) {
        if message.encode(&mut self.output).is_err() {
            self.is_broken = true;
        }
    }
    pub fn put_byte(&mut self, byte: u8) {
        self.output.put_u8(byte);
    }
    /// Reads more input. `false` at its end.
    pub async fn fill(&mut self) -> io::Result<bool> {
        if self.input.is_empty() && self.input.capacity() > IDLE_BYTES_MAX {
            self.input = BytesMut::new();
        }
        self.fill_more(4 << 10).await
    }
    /// The same, with room for so much at least.
    async fn fill_more(&mut self, room: usize) -> io::Result<bool> {
        self.input.reserve(room);
        let awaiting = Awaiting::new(&self.reader);
        std::future::poll_fn(|cx| awaiting.0.lock().poll(cx, &mut self.input)).await
    }
    /// Adds the data of the messages that have come behind this one: clients send a row at a time.
    fn copy_data_behind(&mut self, first: Bytes) -> Bytes {
        let mut all: Option<BytesMut> = None;
        while let Some((next, length)) = frontend::copy_data(&self.input) {
            all.get_or_insert_with(|| BytesMut::from(&first[..])).extend_from_slice(next);
            self.input.advance(length);
        }
        all.map_or(first, BytesMut::freeze)
    }
    /// Watches for the end of the stream while nobody reads it.
    pub fn watch(&self) -> Watch<S> {
        Watch(self.reader.clone())
    }
    /// Sends what is buffered.
    pub async fn send(&mut self) -> io::Result<()> {
        if self.output.is_empty() && self.sending.is_empty() {
            return Ok(());
        }
        loop {
            // A statement's end may drop this future anywhere: what is written is counted at once,
            // and the next call goes on behind it.
            while self.sent < self.sending.len() {
                match self.writer.write(&self.sending[self.sent..]).await? {
                    0 => return Err(io::ErrorKind::WriteZero.into()),
                    n => self.sent += n,
                }
            }
            self.writer.flush().await?;
            self.sent = 0;
            if self.sending.capacity() > IDLE_BYTES_MAX {
                self.sending = BytesMut::new();
            } else {
                self.sending.clear();
            }
            if self.output.is_empty() {
                return Ok(());
            }
            self.flushes += 1;
            std::mem::swap(&mut self.sending, &mut self.output);
        }
    }
    pub async fn close(&mut self) {
        let _ = self.writer.shutdown().await;
    }
    pub fn ready(&mut self, status: TransactionStatus) {
        self.put(&ReadyForQuery::new(status));
    }
    /// An error that ends the connection.
    pub fn fatal(&mut self, error: &Error) {
        self.put(&ErrorResponse::new(error_fields("FATAL", error)));
    }
    fn cstring(&mut self, s: &str) {
        // A name with a zero byte cannot exist in PostgreSQL and would end the string early.
        match s.bytes().any(|b| b == 0) {
            true => self.output.extend(s.bytes().filter(|b| *b != 0)),
            false => self.output.extend_from_slice(s.as_bytes()),
        }
        self.output.put_u8(0);
    }
    /// Fills in the length of the message that began at `start`.
    fn finish(&mut self, start: usize) {
        let length = (self.output.len() - start - 1) as i32;
        self.output[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
    }
    fn begin(&mut self, kind: u8) -> usize {
        let start = self.output.len();
        self.output.put_u8(kind);
        self.output.put_i32(0);
        start
    }
}

/// The reading half of a stream, and what was read of it before somebody wanted it.
struct Ahead<S> {
    half: ReadHalf<S>,
    bytes: BytesMut,
    /// Somebody waits for input.
    is_awaited: bool,
    /// The stream is at its end, or broken.
    is_over: bool,
}

impl<S: AsyncRead> Ahead<S> {
    /// Appends input; `false` at the end of the stream.
    fn poll(&mut self, cx: &mut Context<'_>, input: &mut BytesMut) -> Poll<io::Result<bool>> {
        if !self.bytes.is_empty() {
            input.extend_from_slice(&self.bytes);
            self.bytes = BytesMut::new();
            return Poll::Ready(Ok(true));
        }
        if self.is_over {
            return Poll::Ready(Ok(false));
        }
        let read = std::pin::pin!(self.half.read_buf(input)).poll(cx);
        read.map(|read| read.map(|bytes| bytes > 0))
    }

    /// Reads ahead; ready at the end of the stream.
    fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while !self.is_over {
            // Whoever waits for input sees the end by itself; and no client makes the server
            // remember more than this.
            if self.is_awaited || self.bytes.len() >= AHEAD_BYTES_MAX {
                return Poll::Pending;
            }
            self.bytes.reserve(4 << 10);
            match std::pin::pin!(self.half.read_buf(&mut self.bytes)).poll(cx) {
                Poll::Ready(Ok(bytes)) => self.is_over = bytes == 0,
                Poll::Ready(Err(_)) => self.is_over = true,
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(())
    }
}

/// While it lives, somebody waits for input.
struct Awaiting<'a, S>(&'a Mutex<Ahead<S>>);

impl<'a, S> Awaiting<'a, S> {
    fn new(reader: &'a Mutex<Ahead<S>>) -> Awaiting<'a, S> {
        reader.lock().is_awaited = true;
        Awaiting(reader)
    }
}

impl<S> Drop for Awaiting<'_, S> {
    fn drop(&mut self) {
        self.0.lock().is_awaited = false;
    }
}

/// See [`Wire::watch`].
pub struct Watch<S>(Arc<Mutex<Ahead<S>>>);

impl<S: AsyncRead> Watch<S> {
    /// Ends when the client has gone. Polled by the task that reads the stream, after whatever else
    /// that does.
    pub async fn gone(&self) {
        std::future::poll_fn(|cx| self.0.lock().poll_over(cx)).await;
    }
}

fn lost(e: io::Error) -> Error {
    Error::sql("08006", format!("connection to client lost: {e}"))
}

fn clean(s: &str) -> String {
    s.replace('\0', "\u{FFFD}")
}

/// The fields of an error (manual, 55.8).
pub fn error_fields(severity: &str, error: &Error) -> Vec<(u8, String)> {
    let mut fields = vec![
        (b'S', severity.to_string()),
        (b'V', severity.to_string()),
        (b'C', error.sqlstate().to_string()),
        (b'M', clean(error.message())),
    ];
    let optional = [
        (b'D', error.get_detail()),
        (b'H', error.get_hint()),
        (b'W', error.get_context()),
        (b't', error.get_table()),
        (b'c', error.get_column()),
        (b'n', error.get_constraint()),
    ];
    fields.extend(optional.into_iter().filter_map(|(code, text)| Some((code, clean(text?)))));
    if let Some(position) = error.get_position() {
        fields.push((b'P', position.to_string()));
    }
    fields
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Output for Wire<S> {
    fn row_description(&mut self, columns: &[OutputColumn], formats: &Formats) {
        let start = self.begin(b'T');
        self.output.put_i16(columns.len() as i16);
        for (i, column) in columns.iter().enumerate() {
            self.cstring(&column.name);
            let (table, ordinal) = column.origin.map_or((0, 0), |(t, o)| (system::oid(t), o as i16 + 1));
            self.output.put_u32(table);
            self.output.put_i16(ordinal);
            self.output.put_u32(column.ty.oid());
            self.output.put_i16(column.ty.typlen());
            self.output.put_i32(column.ty.typmod());
            self.output.put_i16((formats.of(i) == Format::Binary) as i16);
        }
        self.finish(start);
    }
    fn no_data(&mut self) {
        self.put(&NoData::new());
    }
    fn parameter_description(&mut self, types: &[Type]) {
        self.put(&ParameterDescription::new(types.iter().map(Type::oid).collect()));
    }
    fn begin_row(&mut self, fields: usize) -> &mut BytesMut {
        self.row_start = self.begin(b'D');
        self.output.put_i16(fields as i16);
        &mut self.output
    }
    fn end_row(&mut self) {
        self.finish(self.row_start);
    }
    fn cancel_row(&mut self) {
        self.output.truncate(self.row_start);
    }
    fn command_complete(&mut self, tag: &str) {
        let start = self.begin(b'C');
        self.cstring(tag);
        self.finish(start);
    }
    fn empty_query(&mut self) {
        self.put(&EmptyQueryResponse::new());
    }
    fn portal_suspended(&mut self) {
        self.put(&PortalSuspended::new());
    }
    fn parse_complete(&mut self) {
        self.put(&ParseComplete::new());
    }
    fn bind_complete(&mut self) {
        self.put(&BindComplete::new());
    }
    fn close_complete(&mut self) {
        self.put(&CloseComplete::new());
    }
    fn error(&mut self, error: &Error) {
        self.put(&ErrorResponse::new(error_fields("ERROR", error)));
    }
    fn notice(&mut self, notice: &Notice) {
        let mut fields = vec![
            (b'S', notice.severity.to_string()),
            (b'V', notice.severity.to_string()),
            (b'C', notice.sqlstate.to_string()),
            (b'M', clean(&notice.message)),
        ];
        fields.extend(notice.detail.as_deref().map(|d| (b'D', clean(d))));
        fields.extend(notice.hint.as_deref().map(|h| (b'H', clean(h))));
        self.put(&NoticeResponse::new(fields));
    }
    fn parameter_status(&mut self, name: &str, value: &str) {
        self.put(&ParameterStatus::new(name.to_string(), clean(value)));
    }
    fn copy_in(&mut self, format: Format, columns: usize) {
        let code = (format == Format::Binary) as i16;
        self.put(&CopyInResponse::new(code as i8, columns as i16, vec![code; columns]));
    }
    fn read_copy(&mut self) -> BoxFuture<'_, Result<CopyInput>> {
        Box::pin(async move {
            self.send().await.map_err(lost)?;
            loop {
                let message = match frontend::next(&mut self.input) {
                    Ok(Some(message)) => message.map_err(|m| m.error)?,
                    Ok(None) => {
                        if !self.fill_more(COPY_BYTES).await.map_err(lost)? {
                            self.is_broken = true;
                            return Err(Error::sql("08006", "unexpected EOF on client connection with an open COPY"));
                        }
                        continue;
                    }
                    Err(e) => {
                        self.is_broken = true;
                        return Err(e);
                    }
                };
                return match message {
                    Message::CopyData(data) => Ok(CopyInput::Data(self.copy_data_behind(data))),
                    Message::CopyDone => Ok(CopyInput::Done),
                    Message::CopyFail(reason) => Ok(CopyInput::Fail(reason)),
                    // Allowed, and without meaning here (manual, 55.2.6).
                    Message::Flush | Message::Sync => continue,
                    Message::Terminate => {
                        self.is_broken = true;
                        Err(Error::sql("08006", "the client ended the session during COPY"))
                    }
                    _ => Err(frontend::violation("unexpected message during COPY from stdin")),
                };
            }
        })
    }
    fn copy_out(&mut self, format: Format, columns: usize) {
        let code = (format == Format::Binary) as i16;
        self.put(&CopyOutResponse::new(code as i8, columns as i16, vec![code; columns]));
    }
    fn copy_data(&mut self, bytes: &[u8]) {
        let start = self.begin(b'd');
        self.output.extend_from_slice(bytes);
        self.finish(start);
    }
    fn copy_done(&mut self) {
        self.put(&CopyDone::new());
    }
    fn mark(&self) -> Mark {
        Mark { flushes: self.flushes, length: self.output.len() }
    }
    fn rewind(&mut self, to: Mark) -> bool {
        if to.flushes != self.flushes {
            // All that is left came after it.
            self.output.clear();
            return false;
        }
        self.output.truncate(to.length);
        true
    }
    fn buffered(&self) -> usize {
        self.output.len()
    }
    fn flush(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let sent = self.send().await;
            self.is_broken |= sent.is_err();
            sent.map_err(lost)
        })
    }
}

/// A key for `CancelRequest`, compared without telling how much of it was right.
pub fn same_key(a: &Bytes, b: &Bytes) -> bool {
    a.len() == b.len() && a.iter().zip(b.iter()).fold(0, |d, (x, y)| d | (x ^ y)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Statements end while their rows are being sent, at any byte of them: what the client gets is
    /// whole messages in order all the same.
    #[tokio::test(start_paused = true)]
    async fn a_statement_that_ends_while_its_rows_are_sent_leaves_whole_messages() {
        let (ours, mut theirs) = tokio::io::duplex(100);
        let mut wire = Wire::new(ours);
        let reading = tokio::spawn(async move {
            let mut all = Vec::new();
            let mut part = [0; 37];
            loop {
                tokio::time::sleep(Duration::from_millis(1)).await;
                match theirs.read(&mut part).await.expect("a stream in memory") {
                    0 => return all,
                    n => all.extend_from_slice(&part[..n]),
                }
            }
        });
        let mut interrupted = 0;
        for statement in 0..50u32 {
            let mark = wire.mark();
            for row in 0..20u32 {
                wire.begin_row(1).put_slice(&[0, 0, 0, 8]);
                wire.output.put_u32(statement);
                wire.output.put_u32(row);
                wire.end_row();
            }
            if tokio::time::timeout(Duration::from_millis(u64::from(statement % 13)), wire.send()).await.is_err() {
                interrupted += 1;
                // Rows that wait behind those of the statement before are taken back.
                wire.rewind(mark);
                wire.command_complete("interrupted");
            }
        }
        assert!(interrupted > 20, "{interrupted} statements were interrupted");
        wire.send().await.unwrap();
        wire.close().await;
        drop(wire);
        let all = reading.await.unwrap();
        let (mut rest, mut last, mut ended) = (&all[..], None, 0);
        while !rest.is_empty() {
            let length = u32::from_be_bytes(rest[1..5].try_into().unwrap()) as usize;
            let body = &rest[5..1 + length];
            match rest[0] {
                b'D' => {
                    let number = |at: usize| u32::from_be_bytes(body[at..at + 4].try_into().unwrap());
                    let row = (number(6), number(10));
                    assert!(last < Some(row), "{row:?} follows {last:?}");
                    last = Some(row);
                }
                b'C' => {
                    assert_eq!(body, b"interrupted\0");
                    ended += 1;
                }
                other => panic!("a message {other} that was not sent"),
            }
            rest = &rest[1 + length..];
        }
        assert_eq!(ended, interrupted);
    }
}
