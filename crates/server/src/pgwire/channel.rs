//! What a connection begins with where TLS is offered: requests for encryption, or a handshake
//! right away. Nothing is read ahead: what follows an answer is the handshake's, or the startup
//! message.

use super::frontend::violation;
use meridian_base::{Error, Result};
use meridian_pki::tls::{self, Configs, SQL_PROTOCOL, Tls};
use meridian_sql::env::Encryption;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ProtocolVersion;
use tokio_rustls::server::TlsStream;

/// The first byte of a TLS handshake.
const HANDSHAKE: u8 = 0x16;
const SSL_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;

/// A stream with bytes in front that were read already.
pub struct Prefixed<S> {
    prefix: Vec<u8>,
    at: usize,
    stream: S,
}

impl<S> Prefixed<S> {
    fn new(prefix: Vec<u8>, stream: S) -> Prefixed<S> {
        Prefixed { prefix, at: 0, stream }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Prefixed<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.at < this.prefix.len() {
            let take = (this.prefix.len() - this.at).min(into.remaining());
            into.put_slice(&this.prefix[this.at..this.at + take]);
            this.at += take;
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut this.stream).poll_read(cx, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Prefixed<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// A connection after that.
pub enum Channel<S> {
    Plain(Prefixed<S>),
    Tls {
        stream: Box<TlsStream<Prefixed<S>>>,
        /// The client's role is that of the certificate that it has shown.
        encryption: Encryption,
        /// What its handshake used.
        configs: Arc<Configs>,
    },
    /// The client left.
    Gone,
}

/// Answers requests for encryption, and does the handshake. The error is for the operator: whoever
/// cannot do a handshake cannot be told.
pub async fn open<S: AsyncRead + AsyncWrite + Unpin + Send>(mut stream: S, tls: &Tls) -> Result<Channel<S>> {
    let mut asked_gss = false;
    loop {
        let mut head = [0; 8];
        if read_exact(&mut stream, &mut head[..1]).await.is_none() {
            return Ok(Channel::Gone);
        }
        if head[0] == HANDSHAKE {
            return handshake(Prefixed::new(vec![HANDSHAKE], stream), tls, true).await;
        }
        if read_exact(&mut stream, &mut head[1..]).await.is_none() {
            return Ok(Channel::Gone);
        }
        let number = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        match (number(0), number(4)) {
            (8, SSL_REQUEST) => {
                answer(&mut stream, b"S").await?;
                return handshake(Prefixed::new(Vec::new(), stream), tls, false).await;
            }
            (8, GSS_REQUEST) if !asked_gss => {
                asked_gss = true;
                answer(&mut stream, b"N").await?;
            }
            (8, GSS_REQUEST) => return Err(violation("encryption was asked for twice")),
            _ => return Ok(Channel::Plain(Prefixed::new(head.to_vec(), stream))),
        }
    }
}

async fn read_exact<S: AsyncRead + Unpin>(stream: &mut S, into: &mut [u8]) -> Option<()> {
    stream.read_exact(into).await.ok().map(|_| ())
}

async fn answer<S: AsyncWrite + Unpin>(stream: &mut S, byte: &[u8; 1]) -> Result<()> {
    let sent = async {
        stream.write_all(byte).await?;
        stream.flush().await
    };
    sent.await.map_err(|e| Error::sql("08006", e.to_string()))
}

async fn handshake<S: AsyncRead + AsyncWrite + Unpin + Send>(
    stream: Prefixed<S>,
    tls: &Tls,
    is_direct: bool,
) -> Result<Channel<S>> {
    let configs = tls.current();
    let accepted = TlsAcceptor::from(configs.sql_server.clone()).accept(stream).await;
    let stream = accepted.map_err(|e| Error::sql("08P01", format!("TLS handshake failed: {}", tls::explain(&e))))?;
    let session = stream.get_ref().1;
    if is_direct && session.alpn_protocol() != Some(SQL_PROTOCOL) {
        return Err(violation("received direct SSL connection request without ALPN protocol negotiation extension"));
    }
    let client = tls.client(session.peer_certificates()).map_err(|e| Error::sql("28000", e.to_string()))?;
    let version = match session.protocol_version() {
        Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
        _ => "TLSv1.2",
    };
    let suite = session.negotiated_cipher_suite().map(|suite| suite.suite().as_str().unwrap_or_default()).unwrap_or_default();
    let bits = if suite.contains("AES_128") { 128 } else { 256 };
    let encryption = Encryption { version: version.to_string(), cipher: cipher_name(suite), bits, client };
    Ok(Channel::Tls { stream: Box::new(stream), encryption, configs })
}

/// OpenSSL's name of a cipher suite, which is what PostgreSQL shows.
fn cipher_name(suite: &str) -> String {
    match suite.strip_prefix("TLS13_") {
        Some(rest) => format!("TLS_{rest}"),
        None => {
            let name = suite.trim_start_matches("TLS_").replace("_WITH_", "-").replace("AES_", "AES").replace('_', "-");
            name.replace("POLY1305-SHA256", "POLY1305")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::cipher_name;

    #[test]
    fn ciphers_are_called_as_openssl_does() {
        for (suite, name) in [
            ("TLS13_AES_256_GCM_SHA384", "TLS_AES_256_GCM_SHA384"),
            ("TLS13_CHACHA20_POLY1305_SHA256", "TLS_CHACHA20_POLY1305_SHA256"),
            ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"),
            ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
            ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ] {
            assert_eq!(cipher_name(suite), name);
        }
    }
}
