//! Accepting connections.

use super::clients::Client;
use super::connection;
use super::server::{PgServer, Phase};
use crate::machine::MachineListener;
use crate::threads::SessionThreads;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use meridian_base::Error;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

/// Clients that are told at once that the node is starting; more wait for their turn.
const EARLY_MAX: usize = 100;
/// How long such a client may take to say who it is.
const EARLY_PATIENCE: Duration = Duration::from_secs(5);

/// Does some work, and meanwhile answers clients that come too early with what hinders it, or
/// 57P03.
pub async fn refuse_while<T>(
    listener: &MachineListener,
    hindrance: &watch::Receiver<Option<Error>>,
    work: impl Future<Output = T>,
) -> T {
    let mut work = std::pin::pin!(work);
    let mut early = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            Some(_) = early.next(), if !early.is_empty() => {}
            accepted = listener.accept_socket(), if early.len() < EARLY_MAX => match accepted {
                Ok((stream, peer)) => {
                    let starting = || Error::sql("57P03", "the database system is starting up");
                    let why = hindrance.borrow().clone().unwrap_or_else(starting);
                    let told = async move { connection::refuse_early(stream, &peer, why).await };
                    early.push(tokio::time::timeout(EARLY_PATIENCE, told));
                }
                Err(e) => {
                    tracing::warn!("cannot accept a client: {e}");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            },
        }
    }
}

/// Ends when the server takes no new clients any more.
async fn stops_serving(phase: &mut watch::Receiver<Phase>) {
    let _ = phase.wait_for(|p| *p != Phase::Serving).await;
}

impl PgServer {
    /// Accepts clients until [`PgServer::shutdown`], and serves them on `threads`.
    pub async fn serve(&self, listener: MachineListener, threads: SessionThreads) {
        let mut phase = self.watch_phase();
        loop {
            tokio::select! {
                accepted = listener.accept_socket() => match accepted.and_then(|(stream, peer)| Ok((stream.into_std()?, peer))) {
                    Ok((stream, peer)) => {
                        let server = self.clone();
                        let register = || tokio::net::TcpStream::from_std(stream);
                        threads.serve(register, move |stream| async move { server.serve_stream(stream, &peer).await });
                    }
                    // Out of descriptors, or the client left already: neither is a reason to stop.
                    Err(e) => {
                        tracing::warn!("cannot accept a client: {e}");
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                },
                () = stops_serving(&mut phase) => return,
            }
        }
    }

    /// Serves one client over a stream, to its end.
    pub async fn serve_stream<S: AsyncRead + AsyncWrite + Unpin + Send>(&self, stream: S, peer: &str) {
        connection::run(self, stream, Client::of(peer, false)).await;
    }

    /// Accepts clients of this machine by a Unix socket, in a file that PostgreSQL's tools look for
    /// (`.s.PGSQL.<port>` in a directory), until [`PgServer::shutdown`], and serves them on
    /// `threads`.
    pub async fn serve_unix(&self, listener: tokio::net::UnixListener, threads: SessionThreads) {
        let mut phase = self.watch_phase();
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted.and_then(|(s, _)| Ok((s.peer_cred()?.uid(), s.into_std()?))) {
                    Ok((uid, stream)) => {
                        let server = self.clone();
                        let register = || tokio::net::UnixStream::from_std(stream);
                        threads.serve(register, move |stream| async move {
                            connection::run(&server, stream, Client::local(uid)).await;
                        });
                    }
                    Err(e) => {
                        tracing::warn!("cannot accept a client: {e}");
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                },
                () = stops_serving(&mut phase) => return,
            }
        }
    }
}
