//! Frames on a stream between two nodes: how they are written, and read again.
//!
//! ```text
//! frame = len u32 | kind u8 | call u64 | clock u64 | body      len counts what follows it
//! part  = len u32 | PART u8 | total u32 | bytes                the next bytes of a frame's kind, call, clock and body
//! ```
//!
//! A heartbeat must not wait until a transaction of 16 MiB has passed a slow link: its group would
//! elect another leader, which would send the same again. So a large frame is written in
//! [parts](limits::RPC_PART_BYTES), one large frame at a time, and small frames pass between two
//! parts. Ordered messages of a group's log keep their order: one that comes after a large one
//! waits in the same line.

use crate::transport::backlog::{Account, Memory, Outgoing};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use meridian_base::runtime::Runtime;
use meridian_base::{Timestamp, limits};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{SemaphorePermit, mpsc};
use tokio::time::Instant;

pub(crate) const CALL: u8 = 1;
pub(crate) const ANSWER: u8 = 2;
const PART: u8 = 3;
/// Kind, call and clock.
const HEADER: usize = 17;
/// Length, kind and total.
const PART_HEADER: usize = 9;
/// The length of a part without bytes.
const PART_LEN_MIN: usize = PART_HEADER - 4;

/// Small frames that are written at once, before the next part of a large one.
const BATCH_BYTES: usize = 1 << 20;
/// What takes the system more than a moment.
const LARGE: usize = 256 << 10;
/// What the system takes of a connection's bytes before the peer has them.
const SYSTEM_BUFFER: usize = 4 << 20;
/// A large frame arrives within this, or its connection ends.
pub(crate) const LARGE_FRAME_MAX: Duration = limits::arrival(limits::RPC_FRAME_BYTES_MAX);

/// A frame around a body that `encode` writes.
pub(crate) fn frame<E>(
    kind: u8,
    call: u64,
    clock: Timestamp,
    capacity: usize,
    encode: impl FnOnce(&mut bytes::buf::Writer<BytesMut>) -> Result<(), E>,
) -> Result<Bytes, E> {
    let mut frame = BytesMut::with_capacity(capacity);
    frame.put_u32(0);
    frame.put_u8(kind);
    frame.put_u64(call);
    frame.put_u64(clock.0);
    let mut writer = frame.writer();
    encode(&mut writer)?;
    let mut frame = writer.into_inner();
    let len = frame.len() - 4;
    frame[..4].copy_from_slice(&u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes());
    Ok(frame.freeze())
}

/// Takes a frame's kind, call and clock off its front.
pub(crate) fn take_header(frame: &mut Bytes) -> (u8, u64, Timestamp) {
    (frame.get_u8(), frame.get_u64(), Timestamp(frame.get_u64()))
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Reads frames.
pub(crate) struct Reader<'m, S> {
    stream: S,
    buffer: BytesMut,
    memory: &'m Memory,
    /// When something came last.
    heard: Option<&'m Mutex<Instant>>,
    large: Option<Large<'m>>,
}

/// A frame of which some parts are here.
struct Large<'m> {
    bytes: BytesMut,
    total: usize,
    /// It holds room that others wait for.
    _room: Option<SemaphorePermit<'m>>,
    deadline: Instant,
}

impl<'m, S: AsyncRead + Unpin> Reader<'m, S> {
    pub(crate) fn new(stream: S, memory: &'m Memory, heard: Option<&'m Mutex<Instant>>) -> Self {
        Reader { stream, buffer: BytesMut::new(), memory, heard, large: None }
    }

    /// The next frame; `None` at a clean end. Lengths out of bounds end the connection, and so does
    /// a large frame that takes longer than [`LARGE_FRAME_MAX`] to arrive.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            if let Some(frame) = self.take_frame()? {
                if frame[0] != PART {
                    return Ok(Some(frame));
                }
                if let Some(whole) = self.take_part(frame).await? {
                    return Ok(Some(whole));
                }
                continue;
            }
            let read = self.stream.read_buf(&mut self.buffer);
            let read = match &self.large {
                Some(large) => tokio::time::timeout_at(large.deadline, read).await?,
                None => read.await,
            };
            if read? == 0 {
                return match self.buffer.is_empty() && self.large.is_none() {
                    true => Ok(None),
                    false => Err(io::ErrorKind::UnexpectedEof.into()),
                };
            }
            if let Some(heard) = self.heard {
                let mut heard = heard.lock();
                *heard = Instant::now().max(*heard);
            }
        }
    }

    /// What stands between two lengths, once it is all here.
    fn take_frame(&mut self) -> io::Result<Option<Bytes>> {
        let Some(len) = self.buffer.first_chunk::<4>().map(|len| u32::from_be_bytes(*len) as usize) else {
            self.buffer.reserve(16 << 10);
            return Ok(None);
        };
        // A frame that is larger comes in parts.
        if !(PART_LEN_MIN..=PART_HEADER + limits::RPC_PART_BYTES).contains(&len) {
            return Err(invalid(format!("frame of {len} bytes")));
        }
        if self.buffer.len() < 4 + len {
            self.buffer.reserve(4 + len - self.buffer.len());
            return Ok(None);
        }
        self.buffer.advance(4);
        let frame = self.buffer.split_to(len).freeze();
        match frame[0] != PART && len < HEADER {
            true => Err(invalid(format!("frame of {len} bytes"))),
            false => Ok(Some(frame)),
        }
    }

    /// Adds a part to the frame that it belongs to; gives the frame with its last part.
    async fn take_part(&mut self, mut part: Bytes) -> io::Result<Option<Bytes>> {
        part.advance(1);
        let total = part.get_u32() as usize;
        if self.large.is_none() {
            if !(HEADER..=limits::RPC_FRAME_BYTES_MAX).contains(&total) {
                return Err(invalid(format!("frame of {total} bytes")));
            }
            let room = self.memory.room_for(total).await;
            let deadline = Instant::now() + LARGE_FRAME_MAX;
            self.large = Some(Large { bytes: BytesMut::with_capacity(total), total, _room: room, deadline });
        }
        let large = self.large.as_mut().expect("made above");
        if total != large.total || part.is_empty() || large.bytes.len() + part.len() > total {
            return Err(invalid("a part that does not belong to its frame".into()));
        }
        large.bytes.extend_from_slice(&part);
        match large.bytes.len() == total {
            true => Ok(self.large.take().map(|large| large.bytes.freeze())),
            false => Ok(None),
        }
    }
}

/// Frames that wait to be written, in two lines.
#[derive(Default)]
struct Lines {
    small: VecDeque<Outgoing>,
    /// Large frames, and what must not overtake them.
    large: VecDeque<Outgoing>,
    /// How much of the first large frame is written, its length left out.
    written: usize,
}

impl Lines {
    fn push(&mut self, frame: Outgoing) {
        let follows = |first: &Outgoing| frame.order.is_some() && first.order == frame.order;
        match is_large(&frame) || self.large.iter().any(follows) {
            true => self.large.push_back(frame),
            false => self.small.push_back(frame),
        }
    }

    /// When the next frame is due, if there is one; `None` in it: at once.
    fn due(&self) -> Option<Option<Instant>> {
        [self.small.front(), self.large.front()].into_iter().flatten().map(|frame| frame.at).min()
    }

    /// Takes what is due: small frames, and one part of a large one. Gives what the frames cost
    /// that are whole now.
    fn fill(&mut self, buffer: &mut BytesMut, now: Instant) -> usize {
        let mut cost = 0;
        let is_due = |frame: &Outgoing| frame.at.is_none_or(|at| at <= now);
        while buffer.len() < BATCH_BYTES && self.small.front().is_some_and(is_due) {
            let frame = self.small.pop_front().expect("the front");
            buffer.extend_from_slice(&frame.frame);
            cost += frame.cost();
        }
        let Some(frame) = self.large.front().filter(|frame| is_due(frame)) else { return cost };
        if is_large(frame) {
            let whole = &frame.frame[4..];
            let part = &whole[self.written..whole.len().min(self.written + limits::RPC_PART_BYTES)];
            buffer.put_u32((PART_LEN_MIN + part.len()) as u32);
            buffer.put_u8(PART);
            buffer.put_u32(whole.len() as u32);
            buffer.extend_from_slice(part);
            self.written += part.len();
            if self.written < whole.len() {
                return cost;
            }
            self.written = 0;
        } else {
            buffer.extend_from_slice(&frame.frame);
        }
        cost + self.large.pop_front().expect("the front").cost()
    }
}

fn is_large(frame: &Outgoing) -> bool {
    frame.frame.len() > limits::RPC_PART_BYTES
}

/// Writes frames, each not before its time, as many at once as are due. When `is_open` says no,
/// this frame and all later ones are dropped without an error, as by a network that is cut.
pub(crate) async fn write_loop(
    runtime: Arc<dyn Runtime>,
    mut stream: impl AsyncWrite + Unpin,
    mut outgoing: mpsc::Receiver<Outgoing>,
    account: Arc<Account>,
    heard: Option<Arc<Mutex<Instant>>>,
    is_open: impl Fn() -> bool,
) {
    let mut has_lost = false;
    let mut lines = Lines::default();
    let mut buffer = BytesMut::new();
    loop {
        if lines.due().is_none() {
            match outgoing.recv().await {
                Some(frame) => lines.push(frame),
                None => break,
            }
        }
        while let Ok(frame) = outgoing.try_recv() {
            lines.push(frame);
        }
        if let Some(Some(at)) = lines.due() {
            runtime.delay_until(at).await;
        }
        let cost = lines.fill(&mut buffer, Instant::now());
        has_lost |= !is_open();
        let sent = match &heard {
            _ if has_lost => Ok(()),
            Some(heard) if buffer.len() >= LARGE || !lines.large.is_empty() => write_large(&mut stream, &buffer, heard).await,
            _ => stream.write_all(&buffer).await,
        };
        if sent.is_err() || stream.flush().await.is_err() {
            break;
        }
        account.subtract(cost);
        buffer.clear();
    }
    // Tasks that wait for room look again, and see that the writer has ended.
    drop(outgoing);
    account.wake();
    let _ = stream.shutdown().await;
}

/// Writes what takes long. Answers may be late meanwhile; that the peer takes the parts says that
/// it is there. What the system has taken may be on its way for a while, at
/// [`limits::LINK_BYTES_PER_SECOND_MIN`]. Small frames do not count: the system takes these for a
/// peer that is gone, too.
async fn write_large(stream: &mut (impl AsyncWrite + Unpin), mut bytes: &[u8], heard: &Mutex<Instant>) -> io::Result<()> {
    while !bytes.is_empty() {
        let part = bytes.len().min(LARGE);
        stream.write_all(&bytes[..part]).await?;
        bytes = &bytes[part..];
        *heard.lock() = Instant::now() + limits::arrival(SYSTEM_BUFFER);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_base::GroupId;

    fn outgoing(call: u64, body: usize, order: Option<GroupId>) -> Outgoing {
        let frame = frame::<()>(CALL, call, Timestamp(7), 64, |out| {
            out.get_mut().resize(4 + HEADER + body, call as u8);
            Ok(())
        });
        Outgoing { at: None, frame: frame.expect("it encodes"), order }
    }

    /// The bytes of a call, and of the first parts of a large one.
    #[test]
    fn frames_are_written_as_ever() {
        let whole = outgoing(0x0102_0304_0506_0708, 3, None).frame;
        assert_eq!(whole[..], *b"\0\0\0\x14\x01\x01\x02\x03\x04\x05\x06\x07\x08\0\0\0\0\0\0\0\x07\x08\x08\x08");
        let mut lines = Lines::default();
        let large = outgoing(9, 2 * limits::RPC_PART_BYTES, None);
        let total = (large.frame.len() - 4) as u32;
        lines.push(large);
        let first = written(lines).remove(0);
        let part = limits::RPC_PART_BYTES as u32;
        let head = [&(part + 5).to_be_bytes()[..], &[3], &total.to_be_bytes(), &[1, 0, 0, 0, 0, 0, 0, 0, 9]].concat();
        assert_eq!(first[..head.len()], head);
    }

    /// What the lines write in one step after the other.
    fn written(mut lines: Lines) -> Vec<BytesMut> {
        let mut steps = Vec::new();
        while lines.due().is_some() {
            let mut buffer = BytesMut::new();
            lines.fill(&mut buffer, Instant::now());
            steps.push(buffer);
        }
        steps
    }

    /// The calls of the frames, and the lengths of their bodies, in the order in which they are
    /// complete.
    async fn read(bytes: &[u8]) -> io::Result<Vec<(u64, usize)>> {
        let memory = Memory::default();
        let mut reader = Reader::new(bytes, &memory, None);
        let mut calls = Vec::new();
        while let Some(mut frame) = reader.next().await? {
            let (kind, call, clock) = take_header(&mut frame);
            assert_eq!((kind, clock), (CALL, Timestamp(7)));
            assert!(frame.iter().all(|byte| *byte == call as u8), "the bytes of frame {call}");
            calls.push((call, frame.len()));
        }
        Ok(calls)
    }

    #[tokio::test]
    async fn small_frames_pass_large_ones_but_for_those_of_their_group_that_are_ordered() {
        const LARGE_BODY: usize = 10 * limits::RPC_PART_BYTES;
        let (one, other) = (Some(GroupId(1)), Some(GroupId(2)));
        let mut lines = Lines::default();
        for frame in [
            outgoing(1, LARGE_BODY, one),
            outgoing(2, 10, one),
            outgoing(3, 10, other),
            outgoing(4, 10, None),
            outgoing(5, LARGE_BODY, None),
            outgoing(6, 10, one),
        ] {
            lines.push(frame);
        }
        let steps = written(lines);
        assert!(steps.iter().all(|step| step.len() <= limits::RPC_PART_BYTES + 200), "one part in a step");
        let all: Vec<u8> = steps.concat();
        let calls = read(&all).await.expect("they are read");
        assert_eq!(calls.iter().map(|(call, _)| *call).collect::<Vec<_>>(), [3, 4, 1, 2, 5, 6]);
        assert!(calls.iter().all(|(call, len)| *len == if matches!(call, 1 | 5) { LARGE_BODY } else { 10 }));
    }

    #[tokio::test]
    async fn what_is_no_frame_ends_the_connection() {
        let part = |total: u32, bytes: usize| {
            let mut part = BytesMut::new();
            part.put_u32((PART_LEN_MIN + bytes) as u32);
            part.put_u8(PART);
            part.put_u32(total);
            part.put_bytes(0, bytes);
            part.to_vec()
        };
        let too_long = (limits::RPC_FRAME_BYTES_MAX + 1) as u32;
        for (what, bytes) in [
            ("a length beyond a part's", u32::MAX.to_be_bytes().to_vec()),
            ("a frame without a header", [&5_u32.to_be_bytes()[..], &[CALL; 5]].concat()),
            ("a frame beyond the limit", part(too_long, 10)),
            ("a part that is too long", part(100, 101)),
            ("a part without bytes", part(100, 0)),
            ("parts of two frames", [part(100, 10), part(200, 10)].concat()),
            ("an end in the middle", part(100, 10)),
        ] {
            assert!(read(&bytes).await.is_err(), "{what}");
        }
    }
}
