//! Streams over turmoil's network, which can be reset from outside.
//!
//! turmoil does not send lost segments again: a stream over a link that dropped one would hang for
//! ever. Real streams survive short trouble and are reset after long trouble. So trouble that a
//! stream survives is simulated by holding messages back, and where messages are dropped, the
//! driver resets the streams between the two machines when the link is whole again.

use super::host::Host;
use super::trace::hash_of;
use meridian_base::runtime::{BoxFuture, Listener, Stream};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// All open streams of a world.
#[derive(Default)]
pub struct Streams {
    open: Mutex<Vec<Weak<Control>>>,
    /// Ways that carry a bounded number of bytes in a second. The others carry any number.
    narrow: Mutex<BTreeMap<(IpAddr, IpAddr), Narrow>>,
}

/// A way from one machine to another one that all streams share.
struct Narrow {
    bytes_per_second: u64,
    /// Until then, in the world's microseconds, it carries what was written already.
    busy_until: u64,
}

/// What a narrow way takes at once.
const NARROW_BYTES: usize = 16 << 10;

/// How a stream is reached from outside.
struct Control {
    ends: (IpAddr, IpAddr),
    state: Mutex<ControlState>,
}

#[derive(Default)]
struct ControlState {
    is_reset: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Streams {
    fn register(&self, ends: (IpAddr, IpAddr)) -> Arc<Control> {
        let control = Arc::new(Control { ends, state: Mutex::default() });
        let mut all = self.open.lock();
        if all.len() == all.capacity() {
            all.retain(|c| c.strong_count() > 0);
        }
        all.push(Arc::downgrade(&control));
        control
    }
    /// From now on so many bytes pass from one machine to another in a second; `None`: any number.
    pub fn set_speed(&self, from: IpAddr, to: IpAddr, bytes_per_second: Option<u64>) {
        let mut narrow = self.narrow.lock();
        match bytes_per_second {
            Some(bytes_per_second) => {
                narrow.insert((from, to), Narrow { bytes_per_second, busy_until: 0 });
            }
            None => drop(narrow.remove(&(from, to))),
        }
    }
    /// Books the way for up to `wanted` bytes: how many, and how long it takes until they may be
    /// written. Streams get their turns in the order in which they ask.
    fn book(&self, ends: (IpAddr, IpAddr), wanted: usize, now: u64) -> (usize, Duration) {
        let mut narrow = self.narrow.lock();
        let Some(way) = narrow.get_mut(&ends) else { return (wanted, Duration::ZERO) };
        let count = wanted.min(NARROW_BYTES);
        let begins = way.busy_until.max(now);
        way.busy_until = begins + count as u64 * 1_000_000 / way.bytes_per_second;
        (count, Duration::from_micros(begins - now))
    }
    /// Resets every stream between two machines; returns how many ends that were.
    pub fn reset_between(&self, a: IpAddr, b: IpAddr) -> usize {
        let all: Vec<Arc<Control>> = self.open.lock().iter().filter_map(Weak::upgrade).collect();
        let hit = all.iter().filter(|c| c.ends == (a, b) || c.ends == (b, a));
        hit.map(|control| {
            let mut state = control.state.lock();
            state.is_reset = true;
            let wakers = [state.reader.take(), state.writer.take()];
            drop(state);
            wakers.into_iter().flatten().for_each(Waker::wake);
        })
        .count()
    }
}

/// A stream between two simulated machines.
pub struct SimStream {
    stream: turmoil::net::TcpStream,
    host: Arc<Host>,
    control: Arc<Control>,
    /// So many bytes have their turn on a narrow way, after a pause.
    booked: Option<(usize, Option<Pin<Box<Sleep>>>)>,
}

impl SimStream {
    fn new(stream: turmoil::net::TcpStream, host: Arc<Host>) -> io::Result<SimStream> {
        let control = host.world.net.register((stream.local_addr()?.ip(), stream.peer_addr()?.ip()));
        Ok(SimStream { stream, host, control, booked: None })
    }
    /// Whether the stream is dead, and if it is not, who is to be woken when it dies.
    fn check(&self, cx: &Context<'_>, reading: bool) -> Option<io::Error> {
        let mut state = self.control.state.lock();
        if state.is_reset {
            return Some(io::Error::new(io::ErrorKind::ConnectionReset, "connection reset"));
        }
        let place = if reading { &mut state.reader } else { &mut state.writer };
        *place = Some(cx.waker().clone());
        None
    }
}

impl AsyncRead for SimStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if let Some(error) = self.check(cx, true) {
            return Poll::Ready(Err(error));
        }
        if self.host.is_doomed() || self.host.is_suspended(cx.waker()) {
            return Poll::Pending;
        }
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for SimStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if let Some(error) = self.check(cx, false) {
            return Poll::Ready(Err(error));
        }
        if self.host.is_suspended(cx.waker()) || self.host.operate() {
            return Poll::Pending;
        }
        let (count, pause) = self.booked.take().unwrap_or_else(|| {
            let world = &self.host.world;
            let (count, wait) = world.net.book(self.control.ends, buf.len(), world.micros());
            (count, (!wait.is_zero()).then(|| Box::pin(tokio::time::sleep(wait))))
        });
        if let Some(mut pause) = pause
            && pause.as_mut().poll(cx).is_pending()
        {
            self.booked = Some((count, Some(pause)));
            return Poll::Pending;
        }
        let count = count.min(buf.len());
        let written = Pin::new(&mut self.stream).poll_write(cx, &buf[..count]);
        if let Poll::Ready(Ok(count)) = &written {
            self.host.event("send", hash_of(&buf[..*count]));
        }
        written
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.host.is_doomed() {
            return Poll::Pending;
        }
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// A listening socket of a simulated machine.
pub struct SimListener {
    listener: turmoil::net::TcpListener,
    host: Arc<Host>,
}

impl SimListener {
    /// The next connection and the peer's address.
    pub async fn accept_stream(&self) -> io::Result<(SimStream, String)> {
        let (stream, peer) = self.listener.accept().await?;
        self.host.awake().await;
        if self.host.is_doomed() {
            std::future::pending::<()>().await;
        }
        Ok((SimStream::new(stream, self.host.clone())?, peer.to_string()))
    }
}

impl Listener for SimListener {
    fn accept(&mut self) -> BoxFuture<'_, io::Result<(Box<dyn Stream>, String)>> {
        Box::pin(async {
            let (stream, peer) = self.accept_stream().await?;
            let stream: Box<dyn Stream> = Box::new(stream);
            Ok((stream, peer))
        })
    }
    fn local_addr(&self) -> io::Result<String> {
        Ok(format!("{}:{}", self.host.name, self.listener.local_addr()?.port()))
    }
}

fn parse(addr: &str) -> io::Result<(&str, u16)> {
    let parts = addr.rsplit_once(':').and_then(|(name, port)| Some((name, port.parse().ok()?)));
    parts.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, format!("{addr}: not host:port")))
}

/// Listens on a machine's port; its name is the part of the address that others use.
pub async fn listen(host: &Arc<Host>, addr: &str) -> io::Result<SimListener> {
    let (_, port) = parse(addr)?;
    let listener = turmoil::net::TcpListener::bind(("0.0.0.0", port)).await?;
    Ok(SimListener { listener, host: host.clone() })
}

/// Connects from a machine to `name:port`.
pub async fn connect(host: &Arc<Host>, addr: &str) -> io::Result<SimStream> {
    let (name, port) = parse(addr)?;
    host.awake().await;
    if host.operate() {
        std::future::pending::<()>().await;
    }
    // turmoil delivers a connection request when its target runs again; a living machine refuses at
    // once, a dead one never answers.
    let target = host.world.host(name).ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("{name}: unknown")))?;
    if !target.is_up() {
        if !target.is_powered() {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
        return Err(io::Error::new(io::ErrorKind::ConnectionRefused, format!("{addr}: connection refused")));
    }
    let stream = turmoil::net::TcpStream::connect((name, port)).await?;
    SimStream::new(stream, host.clone())
}
