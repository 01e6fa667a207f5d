//! What a client sends: framing and fields.
//!
//! A message is a type byte, a length that counts itself, and a body. A reader of a body never goes
//! beyond it; a body that ends early, has bytes left over, or text that is not UTF-8 is a protocol
//! violation (08P01) or an encoding error (22021).

use bytes::{Buf, Bytes, BytesMut};
use meridian_base::{Error, Result};
use meridian_sql::session::{BindArguments, Format, Formats};

/// The largest message: more than a transaction may hold could not be used.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// `PG_MAX_AUTH_TOKEN`-like bound on what comes before authentication (PostgreSQL:
/// `MAX_STARTUP_PACKET_LENGTH`).
const STARTUP_BYTES_MAX: usize = 10_000;

/// A message of a session.
#[derive(Debug)]
pub enum Message {
    Query(Bytes),
    Parse { name: Bytes, query: Bytes, types: Vec<u32> },
    Bind { portal: Bytes, statement: Bytes, arguments: BindArguments },
    Describe { what: Target, name: Bytes },
    Execute { portal: Bytes, max_rows: u64 },
    Close { what: Target, name: Bytes },
    Flush,
    Sync,
    CopyData(Bytes),
    CopyDone,
    CopyFail(String),
    Terminate,
}

/// What `Describe` and `Close` are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Statement,
    Portal,
}

/// A message before the session begins.
#[derive(Debug)]
pub enum First {
    Ssl,
    GssEncryption,
    Cancel { pid: i32, key: Bytes },
    Startup { major: u16, minor: u16, parameters: Vec<(String, String)> },
}

/// 08P01.
pub fn violation(message: impl Into<String>) -> Error {
    Error::sql("08P01", message)
}

/// Text of a name or a query.
pub fn text(bytes: &Bytes) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|e| {
        let bad = bytes.get(e.valid_up_to()).copied().unwrap_or_default();
        Error::sql("22021", format!("invalid byte sequence for encoding \"UTF8\": 0x{bad:02x}"))
    })
}

/// Reads the fields of one body.
struct Body(Bytes);

impl Body {
    fn short() -> Error {
        violation("insufficient data left in message")
    }
    fn u8(&mut self) -> Result<u8> {
        self.0.try_get_u8().map_err(|_| Body::short())
    }
    fn u16(&mut self) -> Result<u16> {
        self.0.try_get_u16().map_err(|_| Body::short())
    }
    fn i32(&mut self) -> Result<i32> {
        self.0.try_get_i32().map_err(|_| Body::short())
    }
    fn take(&mut self, n: usize) -> Result<Bytes> {
        if n > self.0.len() {
            return Err(Body::short());
        }
        Ok(self.0.split_to(n))
    }
    fn string(&mut self) -> Result<Bytes> {
        let end = self.0.iter().position(|b| *b == 0).ok_or_else(|| violation("invalid string in message"))?;
        let string = self.0.split_to(end);
        self.0.advance(1);
        Ok(string)
    }
    fn end(self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(violation("invalid message format")) }
    }
    fn formats(&mut self) -> Result<Formats> {
        let count = self.u16()?;
        let one = |code: u16| match code {
            0 => Ok(Format::Text),
            1 => Ok(Format::Binary),
            other => Err(Error::sql("22023", format!("unsupported format code: {other}"))),
        };
        Ok(match count {
            0 => Formats::AllText,
            1 => match one(self.u16()?)? {
                Format::Text => Formats::AllText,
                Format::Binary => Formats::AllBinary,
            },
            count => {
                let mut each = Vec::with_capacity(usize::from(count).min(self.0.len() / 2));
                for _ in 0..count {
                    each.push(one(self.u16()?)?);
                }
                Formats::Each(each)
            }
        })
    }
}

/// The largest message of a login.
const LOGIN_BYTES_MAX: usize = 4_096;

/// Takes the next whole message of a login, `p`; `None` if more must be read first.
pub fn login(input: &mut BytesMut) -> Result<Option<Bytes>> {
    let Some(head) = input.first_chunk::<5>() else { return Ok(None) };
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
    if head[0] != b'p' {
        return Err(violation(format!("expected password response, got message type {}", head[0])));
    }
    if !(4..=LOGIN_BYTES_MAX).contains(&length) {
        return Err(violation("invalid message length"));
    }
    if input.len() <= length {
        return Ok(None);
    }
    let mut frame = input.split_to(length + 1).freeze();
    frame.advance(5);
    Ok(Some(frame))
}

/// The mechanism and the first message of a client of SASL.
pub fn sasl_initial(body: Bytes) -> Result<(Bytes, Bytes)> {
    let mut body = Body(body);
    let mechanism = body.string()?;
    let data = match body.i32()? {
        -1 => Bytes::new(),
        length => body.take(usize::try_from(length).map_err(|_| Body::short())?)?,
    };
    body.end()?;
    Ok((mechanism, data))
}

/// Whether the next message is a whole `Sync`.
pub fn next_is_sync(input: &BytesMut) -> bool {
    input.starts_with(b"S\0\0\0\x04")
}

/// A whole message whose body is wrong: the stream itself is in step.
#[derive(Debug)]
pub struct Malformed {
    pub error: Error,
    /// Of the extended protocol: everything up to the next `Sync` is ignored.
    pub is_extended: bool,
}

/// Takes the next whole message; `None` if more must be read first. After an error of the frame
/// itself the stream cannot be followed any more.
pub fn next(input: &mut BytesMut) -> Result<Option<Result<Message, Malformed>>> {
    let Some(head) = input.first_chunk::<5>() else { return Ok(None) };
    let (kind, length) = (head[0], i32::from_be_bytes([head[1], head[2], head[3], head[4]]));
    if !b"QPBDECHSdcfXpF".contains(&kind) {
        return Err(violation(format!("invalid frontend message type {kind}")));
    }
    let length = match usize::try_from(length) {
        Ok(length) if length >= 4 => length,
        _ => return Err(violation("invalid message length")),
    };
    if length > MESSAGE_BYTES_MAX {
        return Err(Error::sql("54000", format!("a message is longer than {} MiB", MESSAGE_BYTES_MAX >> 20)));
    }
    if input.len() <= length {
        // What is missing is known: one allocation for it.
        input.reserve(length + 1 - input.len());
        return Ok(None);
    }
    let mut frame = input.split_to(length + 1).freeze();
    frame.advance(5);
    let is_extended = b"PBDECHS".contains(&kind);
    Ok(Some(read(kind, Body(frame)).map_err(|error| Malformed { error, is_extended })))
}

/// The data of a whole `CopyData` at the beginning of the input, and how long the message is.
pub fn copy_data(input: &[u8]) -> Option<(&[u8], usize)> {
    let (head, rest) = input.split_first_chunk::<5>()?;
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
    // What is not as it should be is for `next` to refuse.
    (head[0] == b'd' && (4..=MESSAGE_BYTES_MAX).contains(&length)).then_some(())?;
    Some((rest.get(..length - 4)?, length + 1))
}

fn read(kind: u8, mut body: Body) -> Result<Message> {
    let message = match kind {
        b'Q' => Message::Query(body.string()?),
        b'P' => {
            let (name, query, count) = (body.string()?, body.string()?, body.u16()?);
            let mut types = Vec::with_capacity(usize::from(count).min(body.0.len() / 4));
            for _ in 0..count {
                types.push(body.i32()? as u32);
            }
            Message::Parse { name, query, types }
        }
        b'B' => {
            let (portal, statement, formats) = (body.string()?, body.string()?, body.formats()?);
            let count = body.u16()?;
            let mut values = Vec::with_capacity(usize::from(count).min(body.0.len() / 4));
            for _ in 0..count {
                values.push(match body.i32()? {
                    -1 => None,
                    n => Some(body.take(usize::try_from(n).map_err(|_| Body::short())?)?),
                });
            }
            let result_formats = body.formats()?;
            Message::Bind { portal, statement, arguments: BindArguments { formats, values, result_formats } }
        }
        b'D' | b'C' => {
            let what = match body.u8()? {
                b'S' => Target::Statement,
                b'P' => Target::Portal,
                other => return Err(violation(format!("invalid DESCRIBE or CLOSE message subtype {other}"))),
            };
            let name = body.string()?;
            if kind == b'D' { Message::Describe { what, name } } else { Message::Close { what, name } }
        }
        b'E' => {
            let portal = body.string()?;
            // Zero and below: no limit.
            Message::Execute { portal, max_rows: u64::try_from(body.i32()?).unwrap_or(0) }
        }
        b'H' => Message::Flush,
        b'S' => Message::Sync,
        b'd' => return Ok(Message::CopyData(body.0)),
        b'c' => Message::CopyDone,
        b'f' => Message::CopyFail(String::from_utf8_lossy(&body.string()?).into_owned()),
        b'X' => Message::Terminate,
        b'F' => return Err(Error::unsupported("the function call protocol is not supported").hint("Use SELECT.")),
        _ => return Err(violation("unexpected authentication message")),
    };
    body.end()?;
    Ok(message)
}

/// Takes the next whole message before the session; `None` if more must be read first.
pub fn first(input: &mut BytesMut) -> Result<Option<First>> {
    const CANCEL: i32 = 80_877_102;
    const SSL: i32 = 80_877_103;
    const GSS: i32 = 80_877_104;
    let Some(head) = input.first_chunk::<4>() else { return Ok(None) };
    let length = match usize::try_from(i32::from_be_bytes(*head)) {
        Ok(length) if (8..=STARTUP_BYTES_MAX).contains(&length) => length,
        _ => return Err(violation("invalid length of startup packet")),
    };
    if input.len() < length {
        return Ok(None);
    }
    let mut body = Body(input.split_to(length).freeze());
    body.0.advance(4);
    match body.i32()? {
        SSL => Ok(Some(First::Ssl)),
        GSS => Ok(Some(First::GssEncryption)),
        CANCEL => Ok(Some(First::Cancel { pid: body.i32()?, key: body.0 })),
        version => {
            let (major, minor) = ((version >> 16) as u16, version as u16);
            let mut parameters = Vec::new();
            // The list ends with an empty name. Only 3.x is known to look like this.
            if major == 3 {
                loop {
                    let name = body.string()?;
                    if name.is_empty() {
                        break;
                    }
                    let value = body.string()?;
                    parameters.push((text(&name)?.to_string(), text(&value)?.to_string()));
                }
            }
            Ok(Some(First::Startup { major, minor, parameters }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_message_is_taken_when_it_is_whole() {
        let whole = b"Q\0\0\0\x0dSELECT 1\0S\0\0\0\x04";
        let mut input = BytesMut::new();
        for b in &whole[..13] {
            input.extend_from_slice(&[*b]);
            assert!(next(&mut input).unwrap().is_none());
        }
        input.extend_from_slice(&whole[13..]);
        assert!(matches!(next(&mut input).unwrap(), Some(Ok(Message::Query(q))) if q[..] == *b"SELECT 1"));
        assert!(next_is_sync(&input));
        assert!(matches!(next(&mut input).unwrap(), Some(Ok(Message::Sync))));
        assert!(input.is_empty());
    }

    #[test]
    fn bodies_that_end_early_or_late_are_refused() {
        for bad in [&b"B\0\0\0\x06\0\0"[..], b"Q\0\0\0\x05x", b"S\0\0\0\x05x", b"E\0\0\0\x06\0\0", b"D\0\0\0\x06X\0"] {
            let error = next(&mut BytesMut::from(bad)).unwrap().unwrap().unwrap_err();
            assert_eq!(error.error.sqlstate(), "08P01", "{bad:?}");
        }
        for bad in [&b"S\0\0\0\x03"[..], b"S\xff\xff\xff\xff", b"?\0\0\0\x04"] {
            assert_eq!(next(&mut BytesMut::from(bad)).unwrap_err().sqlstate(), "08P01", "{bad:?}");
        }
        assert_eq!(next(&mut BytesMut::from(&b"Q\x7f\0\0\0"[..])).unwrap_err().sqlstate(), "54000");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(kind in proptest::option::of(proptest::sample::select(&b"QPBDECHSdcfXpF"[..])), body in proptest::collection::vec(any::<u8>(), 0..64)) {
            let mut input = BytesMut::new();
            if let Some(kind) = kind {
                input.extend_from_slice(&[kind]);
                input.extend_from_slice(&(body.len() as i32 + 4).to_be_bytes());
            }
            input.extend_from_slice(&body);
            let mut startup = input.clone();
            while let Ok(Some(_)) = next(&mut input) {}
            while let Ok(Some(_)) = first(&mut startup) {}
            let mut framed = BytesMut::new();
            framed.extend_from_slice(&(body.len() as i32 + 4).to_be_bytes());
            framed.extend_from_slice(&body);
            while let Ok(Some(_)) = first(&mut framed) {}
        }
    }
}
