//! The client's side of PostgreSQL's protocol, as far as a shell needs it: simple queries, COPY,
//! cancel (PostgreSQL manual, chapter 55).
//!
//! Workloads use a driver; a shell shows what drivers hide: command tags, column types, notices,
//! and whether a transaction is open.

use super::secure::{Login, Shaken, end_point_of, shake_hands};
use super::target::Target;
use crate::client::Duplex;
use meridian_base::{Error, ErrorKind, Result};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpStream, UnixStream};

const PROTOCOL_3_0: u32 = 196_608;
const CANCEL_REQUEST: u32 = 80_877_102;
/// A longer message is taken for garbage: something else listens there.
const MESSAGE_BYTES_MAX: usize = 1 << 30;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub type_oid: u32,
}

/// An error or a notice, field by field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report(BTreeMap<u8, String>);

impl Report {
    fn field(&self, code: u8) -> Option<&str> {
        self.0.get(&code).map(String::as_str)
    }
    pub fn severity(&self) -> &str {
        self.field(b'S').unwrap_or("ERROR")
    }
    pub fn sqlstate(&self) -> &str {
        self.field(b'C').unwrap_or("XX000")
    }
    pub fn message(&self) -> &str {
        self.field(b'M').unwrap_or_default()
    }
    pub fn detail(&self) -> Option<&str> {
        self.field(b'D')
    }
    pub fn hint(&self) -> Option<&str> {
        self.field(b'H')
    }
    pub fn context(&self) -> Option<&str> {
        self.field(b'W')
    }
    /// In characters from 1 on.
    pub fn position(&self) -> Option<usize> {
        self.field(b'P').and_then(|p| p.parse().ok())
    }
}

/// What the server says while a query runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Columns(Vec<Column>),
    Row(Vec<Option<String>>),
    /// A statement is done; its command tag.
    Complete(String),
    /// The query had no statement.
    Empty,
    Failed(Report),
    Notice(Report),
    /// The server waits for rows.
    CopyIn,
    CopyData(Vec<u8>),
    /// Everything is answered.
    Ready,
}

/// Whether a transaction block is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    None,
    Open,
    Failed,
}

/// What a cancel request needs.
#[derive(Clone, Debug)]
pub struct CancelKey {
    target: Target,
    /// Process id and secret, as the server sent them.
    key: Vec<u8>,
}

/// By TCP or a Unix socket.
type Socket = Box<dyn Duplex>;

/// A session on a server.
pub struct Connection {
    stream: BufReader<Socket>,
    target: Target,
    key: Vec<u8>,
    block: Block,
    parameters: BTreeMap<String, String>,
}

impl Connection {
    /// Connects and says who it is.
    pub async fn open(target: &Target) -> Result<Connection> {
        let opened = async {
            let (stream, end_point) = connect(target).await?;
            let stream = BufReader::new(stream);
            let (own, key) = (target.clone(), Vec::new());
            let mut connection = Connection { stream, target: own, key, block: Block::None, parameters: BTreeMap::new() };
            connection.start(target, Login::new(target, end_point)).await?;
            Ok(connection)
        };
        match tokio::time::timeout(CONNECT_TIMEOUT, opened).await {
            Ok(result) => result,
            Err(_) => Err(unreachable(&target.addr(), format!("no answer within {} s", CONNECT_TIMEOUT.as_secs()))),
        }
    }

    async fn start(&mut self, target: &Target, mut login: Login) -> Result<()> {
        let mut startup = PROTOCOL_3_0.to_be_bytes().to_vec();
        let parameters = [
            ("user", &*target.user),
            ("database", &*target.database),
            ("application_name", "meridian sql"),
            ("client_encoding", "UTF8"),
        ];
        for (name, value) in parameters {
            push_string(&mut startup, name);
            push_string(&mut startup, value);
        }
        startup.push(0);
        let mut message = (startup.len() as u32 + 4).to_be_bytes().to_vec();
        message.append(&mut startup);
        self.write(&message).await?;
        loop {
            let (tag, body) = self.read().await?;
            if tag == b'R' {
                if let Some(answer) = login.answer(&body)? {
                    self.write(&framed(b'p', &answer)).await?;
                }
                continue;
            }
            let event = self.understand(tag, &body).ok_or_else(makes_no_sense)?;
            match event {
                Some(Event::Ready) => return Ok(()),
                Some(Event::Failed(report)) => {
                    let mut error = Error::new(ErrorKind::Unavailable, "08004", report.message());
                    if let Some(hint) = report.hint() {
                        error = error.hint(hint);
                    }
                    return Err(error);
                }
                _ => {}
            }
        }
    }

    /// Sends statements; events follow until [`Event::Ready`].
    pub async fn send_query(&mut self, sql: &str) -> Result<()> {
        let mut body = Vec::with_capacity(sql.len() + 1);
        push_string(&mut body, sql);
        self.write(&framed(b'Q', &body)).await
    }
    /// Rows for a COPY that waits for them.
    pub async fn send_copy_data(&mut self, bytes: &[u8]) -> Result<()> {
        self.write(&framed(b'd', bytes)).await
    }
    /// No more rows.
    pub async fn send_copy_done(&mut self) -> Result<()> {
        self.write(&framed(b'c', &[])).await
    }
    /// Says goodbye.
    pub async fn close(mut self) {
        // The server notices a closed socket as well.
        let _ = self.write(&framed(b'X', &[])).await;
    }
    pub fn block(&self) -> Block {
        self.block
    }
    /// What the server said about itself, e.g. `server_version`.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }
    pub fn cancel_key(&self) -> CancelKey {
        CancelKey { target: self.target.clone(), key: self.key.clone() }
    }

    /// The next thing the server says.
    pub async fn next(&mut self) -> Result<Event> {
        loop {
            let (tag, body) = self.read().await?;
            if let Some(event) = self.understand(tag, &body).ok_or_else(makes_no_sense)? {
                return Ok(event);
            }
        }
    }

    /// `None`: malformed. `Some(None)`: nothing to tell.
    fn understand(&mut self, tag: u8, body: &[u8]) -> Option<Option<Event>> {
        let mut body = Body(body);
        Some(Some(match tag {
            b'T' => Event::Columns(columns(&mut body)?),
            b'D' => Event::Row(row(&mut body)?),
            b'C' => Event::Complete(body.string()?),
            b'I' => Event::Empty,
            b'E' => Event::Failed(report(&mut body)?),
            b'N' => Event::Notice(report(&mut body)?),
            b'G' => Event::CopyIn,
            b'd' => Event::CopyData(body.0.to_vec()),
            b'Z' => {
                self.block = match body.0.first()? {
                    b'T' => Block::Open,
                    b'E' => Block::Failed,
                    _ => Block::None,
                };
                Event::Ready
            }
            b'K' => {
                self.key = body.0.to_vec();
                return Some(None);
            }
            b'S' => {
                let (name, value) = (body.string()?, body.string()?);
                self.parameters.insert(name, value);
                return Some(None);
            }
            _ => return Some(None),
        }))
    }

    async fn read(&mut self) -> Result<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        self.stream.read_exact(&mut head).await.map_err(|e| lost(&e.to_string()))?;
        let len = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        if !(4..=MESSAGE_BYTES_MAX).contains(&len) {
            return Err(lost("what answers there does not speak PostgreSQL's protocol"));
        }
        let mut body = vec![0; len - 4];
        self.stream.read_exact(&mut body).await.map_err(|e| lost(&e.to_string()))?;
        Ok((head[0], body))
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.get_mut().write_all(bytes).await.map_err(|e| lost(&e.to_string()))
    }
}

impl CancelKey {
    /// Asks the server to end what the session runs. The answer, if any, comes to the session.
    pub async fn cancel(&self) -> Result<()> {
        let (mut stream, _) = connect(&self.target).await?;
        let mut message = (8 + self.key.len() as u32).to_be_bytes().to_vec();
        message.extend(CANCEL_REQUEST.to_be_bytes());
        message.extend(&self.key);
        stream.write_all(&message).await.map_err(|e| lost(&e.to_string()))?;
        // The server closes the connection when it has acted.
        let _ = tokio::time::timeout(CONNECT_TIMEOUT, stream.read(&mut [0])).await;
        Ok(())
    }
}

/// The way to a server, and what a login binds to there. A client is not part of a cluster, so it
/// is not part of a simulated one either.
#[allow(clippy::disallowed_methods)]
pub async fn connect(target: &Target) -> Result<(Socket, Option<Vec<u8>>)> {
    let addr = target.addr();
    if let Some(file) = target.socket() {
        return Ok((Box::new(UnixStream::connect(file).await.map_err(|e| unreachable(&addr, e))?), None));
    }
    let stream = TcpStream::connect(&addr).await.map_err(|e| unreachable(&addr, e))?;
    stream.set_nodelay(true).map_err(|e| unreachable(&addr, e))?;
    match shake_hands(target, stream).await? {
        Shaken::Tls(stream) => {
            let (end_point, socket): (_, Socket) = (end_point_of(&stream), stream);
            Ok((socket, end_point))
        }
        Shaken::Plain(stream) => Ok((Box::new(stream), None)),
    }
}

fn makes_no_sense() -> Error {
    lost("the server sent a message that makes no sense")
}

fn unreachable(addr: &str, why: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Unavailable, "08001", format!("cannot connect to {addr}: {why}")).hint("Is a node running there?")
}

fn lost(why: &str) -> Error {
    Error::new(ErrorKind::Unavailable, "08006", "the connection to the server is lost").detail(why)
}

fn framed(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(body.len() + 5);
    message.push(tag);
    message.extend((body.len() as u32 + 4).to_be_bytes());
    message.extend(body);
    message
}

fn push_string(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().filter(|b| *b != 0));
    out.push(0);
}

/// The rest of a message.
struct Body<'a>(&'a [u8]);

impl<'a> Body<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(n)?;
        self.0 = tail;
        Some(head)
    }
    fn int16(&mut self) -> Option<i16> {
        self.take(2).map(|b| i16::from_be_bytes([b[0], b[1]]))
    }
    fn int32(&mut self) -> Option<i32> {
        self.take(4).map(|b| i32::from_be_bytes([b[0], b[1], b[2], b[3]]))
    }
    fn string(&mut self) -> Option<String> {
        let end = self.0.iter().position(|b| *b == 0)?;
        let text = String::from_utf8_lossy(self.take(end)?).into_owned();
        self.take(1)?;
        Some(text)
    }
}

fn columns(body: &mut Body<'_>) -> Option<Vec<Column>> {
    let count = body.int16()?;
    (0..count)
        .map(|_| {
            let name = body.string()?;
            body.take(6)?;
            let type_oid = body.int32()? as u32;
            body.take(8)?;
            Some(Column { name, type_oid })
        })
        .collect()
}

fn row(body: &mut Body<'_>) -> Option<Vec<Option<String>>> {
    let count = body.int16()?;
    (0..count)
        .map(|_| match body.int32()? {
            ..0 => Some(None),
            len => body.take(len as usize).map(|bytes| Some(String::from_utf8_lossy(bytes).into_owned())),
        })
        .collect()
}

fn report(body: &mut Body<'_>) -> Option<Report> {
    let mut fields = BTreeMap::new();
    loop {
        match body.take(1)?[0] {
            0 => return Some(Report(fields)),
            code => fields.insert(code, body.string()?),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_truncated_message_is_refused_at_every_length() {
        let mut whole = 1i16.to_be_bytes().to_vec();
        push_string(&mut whole, "id");
        whole.extend([0, 0, 0, 0, 0, 1, 0, 0, 0, 23, 0, 4, 0xff, 0xff, 0xff, 0xff, 0, 0]);
        assert_eq!(columns(&mut Body(&whole)), Some(vec![Column { name: "id".into(), type_oid: 23 }]));
        for len in 0..whole.len() {
            assert_eq!(columns(&mut Body(&whole[..len])), None, "{len}");
        }
    }

    #[test]
    fn null_and_empty_are_told_apart() {
        let whole = [0, 3, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 1, b'x'];
        assert_eq!(row(&mut Body(&whole)), Some(vec![None, Some(String::new()), Some("x".into())]));
        assert_eq!(row(&mut Body(&whole[..14])), None);
    }

    #[test]
    fn reports_are_read_field_by_field() {
        let report = report(&mut Body(b"SERROR\0C42P01\0Mno table\0P15\0\0")).expect("well formed");
        assert_eq!((report.severity(), report.sqlstate(), report.message()), ("ERROR", "42P01", "no table"));
        assert_eq!((report.position(), report.hint()), (Some(15), None));
    }
}
