//! The loop of one connection.

use super::channel::{self, Channel};
use super::clients::Client;
use super::frontend::{self, Malformed, Message, Target, text};
use super::login;
use super::server::{PgServer, Phase};
use super::startup;
use super::wire::{Watch, Wire};
use meridian_base::runtime::BoxFuture;
use meridian_base::turn::Turn;
use meridian_base::{Error, Result, migration};
use meridian_node::strangers::Place;
use meridian_sql::catalog::hba::Way;
use meridian_sql::session::{Answer, CancelHandle, ClientSession, Output, TransactionStatus};
use pgwire::messages::response::TransactionStatus as WireStatus;
use std::pin::{Pin, pin};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

/// Serves one connection from its first byte to its end.
pub async fn run<S: AsyncRead + AsyncWrite + Unpin + Send>(server: &PgServer, stream: S, mut client: Client) {
    let startup = Startup { deadline: Instant::now() + server.options().startup_timeout, place: server.enter(&client.peer) };
    let tls = match (&server.options().security.tls, &client.way) {
        (Some(tls), Way::Host { .. }) => tls.clone(),
        _ => return serve(server, Wire::new(stream), &client, startup).await,
    };
    match startup.within(Box::pin(channel::open(stream, &tls))).await {
        Some(Ok(Channel::Plain(stream))) => Box::pin(serve(server, Wire::new(stream), &client, startup)).await,
        Some(Ok(Channel::Tls { stream, encryption, configs })) => {
            if let Way::Host { is_tls, .. } = &mut client.way {
                *is_tls = true;
            }
            client.encryption = Some(encryption);
            client.end_point.clone_from(&configs.end_point);
            Box::pin(serve(server, Wire::new(*stream), &client, startup)).await;
        }
        Some(Ok(Channel::Gone)) => {}
        Some(Err(e)) => say_refused(server, &client.peer, &e),
        None => say_silent(server, &client.peer),
    }
}

/// A client that has sent something else than PostgreSQL's protocol begins with.
fn say_refused(server: &PgServer, peer: &str, error: &Error) {
    if let Some(more_before) = server.refusals().note(peer) {
        let (sqlstate, reason) = (error.sqlstate(), error.message());
        tracing::warn!(event = "client_refused", peer, sqlstate, reason, more_before, "a client was refused");
    }
}
fn say_silent(server: &PgServer, peer: &str) {
    say_refused(server, peer, &Error::sql("08006", "it did not say in time who it is"));
}

/// What bounds a client that has not proved who it is.
struct Startup {
    deadline: Instant,
    place: Place,
}

impl Startup {
    /// `None`: it has taken too long, or had to give way to others.
    async fn within<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = tokio::time::timeout_at(self.deadline, work) => done.ok(),
            () = self.place.given_way.notified() => None,
        }
    }
}

/// How long a client that is refused may take to read why.
const REFUSAL_MAX: Duration = Duration::from_secs(5);

/// The same from the startup message on. Until the client has proved who it is, it has a bounded
/// time, and no place among the clients.
async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send>(
    server: &PgServer,
    mut wire: Wire<S>,
    client: &Client,
    startup: Startup,
) {
    let peer = client.peer.as_str();
    let begun = async {
        let request = startup::request(&mut wire, |pid, key| server.cancel(pid, key)).await;
        let begun = request.and_then(|request| request.map(|request| startup::begin(&mut wire, request)).transpose());
        let Some(begun) = begun.inspect_err(|e| say_refused(server, peer, e))? else { return Ok(None) };
        let proof = login::authenticate(&mut wire, server, client, &begun.user, &begun.database).await?;
        Ok(Some((begun.of(proof.role), proof)))
    };
    let (request, proof) = match startup.within(begun).await {
        Some(Ok(Some(request))) => request,
        Some(Ok(None)) => return,
        None => return say_silent(server, peer),
        Some(Err(error)) => return refuse(&mut wire, peer, &error).await,
    };
    let (user, database) = (request.user.clone(), request.database.clone());
    let Some(seat) = server.take_seat() else {
        let error = Error::sql("53300", "sorry, too many clients already");
        proof.failed(&user, &database, client, &error);
        return refuse(&mut wire, peer, &error).await;
    };
    drop(startup);
    let opened = async {
        match server.phase() {
            Phase::Serving => startup::open(&mut wire, server, request, client, seat.id()).await,
            _ => Err(Error::sql("57P03", "the database system is shutting down")),
        }
    };
    let (session, key) = match opened.await {
        Ok(opened) => opened,
        Err(error) => {
            proof.failed(&user, &database, client, &error);
            return refuse(&mut wire, peer, &error).await;
        }
    };
    proof.succeeded(&user, &database, client);
    seat.register(key, session.cancel_handle());
    if wire.send().await.is_err() {
        return;
    }
    let (watch, cancel) = (wire.watch(), session.cancel_handle());
    let ends = Ends::new(server, &cancel);
    let mut connection = Connection { wire, session, watch, cancel, ends, skipping: false, turn: Turn::of_steps(LOOK_EVERY) };
    if let Err(error) = connection.serve().await {
        connection.session.end(&error, &mut connection.wire);
        connection.wire.fatal(&error);
        let _ = connection.wire.send().await;
    }
    connection.wire.close().await;
}

/// Tells a client that the node cannot serve it yet.
pub async fn refuse_early<S: AsyncRead + AsyncWrite + Unpin + Send>(stream: S, peer: &str, why: Error) {
    let mut wire = Wire::new(stream);
    if let Ok(Some(_)) = startup::request(&mut wire, |_, _| ()).await {
        refuse(&mut wire, peer, &why).await;
    }
}

async fn refuse<S: AsyncRead + AsyncWrite + Unpin + Send>(wire: &mut Wire<S>, peer: &str, error: &Error) {
    tracing::debug!("connection from {peer} refused: {error}");
    wire.fatal(error);
    let told = async {
        let _ = wire.send().await;
        wire.close().await;
    };
    let _ = tokio::time::timeout(REFUSAL_MAX, told).await;
}

struct Connection<S> {
    wire: Wire<S>,
    session: Box<dyn ClientSession>,
    watch: Watch<S>,
    cancel: CancelHandle,
    ends: Ends,
    /// An error of the extended protocol: everything up to `Sync` is ignored.
    skipping: bool,
    /// Messages that are there and answered at once may be many.
    turn: Turn,
}

/// Answers of more bytes are sent before the client asks for them.
const SENT_BYTES: usize = 64 << 10;
/// How often the connection looks at the clock, in messages.
const LOOK_EVERY: u32 = 8;

/// What ends a session that waits for its client. Each waits from its first use to the end of the
/// connection: to begin anew after every message takes as long as to read it.
struct Ends {
    terminated: BoxFuture<'static, ()>,
    /// Sessions outside of transactions are to end.
    draining: BoxFuture<'static, ()>,
    ending: BoxFuture<'static, ()>,
}

impl Ends {
    fn new(server: &PgServer, cancel: &CancelHandle) -> Ends {
        let cancel = cancel.clone();
        Ends {
            terminated: Box::pin(async move { cancel.terminated().await }),
            draining: Box::pin(server.reaches(Phase::Draining)),
            ending: Box::pin(server.reaches(Phase::Ending)),
        }
    }
    /// Waits until a session in this state is to end.
    async fn next(&mut self, status: TransactionStatus) {
        let phase = if status == TransactionStatus::Idle { &mut self.draining } else { &mut self.ending };
        tokio::select! {
            biased;
            () = phase => {}
            () = &mut self.terminated => {}
        }
    }
}

/// What the loop does after a message.
enum Next {
    Message,
    End,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Connection<S> {
    /// Answers messages until the client leaves. The error ends the connection and is the last
    /// thing it hears.
    async fn serve(&mut self) -> Result<()> {
        loop {
            let Some(message) = self.next_message().await? else { return Ok(()) };
            let mut next = match message {
                Ok(message) => self.answer(message).await?,
                Err(malformed) => self.answer_malformed(malformed).await?,
            };
            if self.wire.buffered() > SENT_BYTES && matches!(next, Next::Message) {
                next = self.send_ahead().await?;
            }
            self.turn.step().await;
            if matches!(next, Next::End) || self.wire.is_broken {
                return Ok(());
            }
            if self.cancel.is_terminated() {
                return Err(Error::sql("57P01", "terminating connection due to administrator command"));
            }
        }
    }
    /// Clients may send any number of messages before they ask for the answers.
    async fn send_ahead(&mut self) -> Result<Next> {
        match self.session.may_send(&self.wire) {
            Ok(true) => self.send().await,
            Ok(false) => Ok(Next::Message),
            Err(error) => self.refuse(&error).await,
        }
    }
    /// The next message; `None` when the client is gone.
    async fn next_message(&mut self) -> Result<Option<Result<Message, Malformed>>> {
        loop {
            if let Some(message) = frontend::next(&mut self.wire.input)? {
                return Ok(Some(message));
            }
            migration::computes_briefly();
            let idle = self.session.idle_timeout();
            let status = self.session.transaction_status();
            tokio::select! {
                biased;
                filled = self.wire.fill() => match filled {
                    Ok(true) => self.turn.begin(),
                    _ => return Ok(None),
                },
                () = self.ends.next(status) => {
                    return Err(Error::sql("57P01", "terminating connection due to administrator command"));
                }
                () = sleep(idle.as_ref().map(|(t, _)| *t)) => {
                    let (_, error) = idle.expect("only an idle timeout ends this sleep");
                    return Err(error);
                }
            }
        }
    }
    async fn ready(&mut self) -> Result<Next> {
        self.wire.ready(match self.session.transaction_status() {
            TransactionStatus::Idle => WireStatus::Idle,
            TransactionStatus::InTransaction => WireStatus::Transaction,
            TransactionStatus::Failed => WireStatus::Error,
        });
        self.send().await
    }
    async fn send(&mut self) -> Result<Next> {
        match self.wire.send().await {
            Ok(()) => Ok(Next::Message),
            Err(_) => Ok(Next::End),
        }
    }
    async fn answer_malformed(&mut self, malformed: Malformed) -> Result<Next> {
        if self.skipping {
            return Ok(Next::Message);
        }
        self.session.fail(&malformed.error, &mut self.wire);
        self.wire.error(&malformed.error);
        self.skipping = malformed.is_extended;
        if self.skipping { self.send().await } else { self.ready().await }
    }
    async fn answer(&mut self, message: Message) -> Result<Next> {
        if self.skipping && !matches!(message, Message::Sync | Message::Terminate) {
            return Ok(Next::Message);
        }
        let result = match message {
            Message::Query(query) => return self.query(&query).await,
            Message::Sync => {
                self.skipping = false;
                if let Answer::Later(work) = self.session.sync(&mut self.wire) {
                    watched(&self.watch, &self.cancel, pin!(work)).await;
                }
                return self.ready().await;
            }
            Message::Flush => {
                let certified = watched(&self.watch, &self.cancel, pin!(self.session.before_flush(&mut self.wire))).await;
                return match certified {
                    Ok(()) => self.send().await,
                    Err(error) => self.refuse(&error).await,
                };
            }
            Message::Terminate => return Ok(Next::End),
            // What is left of a COPY that failed (manual, 55.2.6).
            Message::CopyData(_) | Message::CopyDone | Message::CopyFail(_) => return Ok(Next::Message),
            message => self.extended(message).await,
        };
        match result {
            Ok(()) => Ok(Next::Message),
            Err(error) => self.refuse(&error).await,
        }
    }
    /// An error of the extended protocol. A client that has only asked for a `Flush` waits for it:
    /// it is sent at once, as by PostgreSQL. What could still be taken back before it is.
    async fn refuse(&mut self, error: &Error) -> Result<Next> {
        // Messages that the session has never seen end its transaction too.
        self.session.fail(error, &mut self.wire);
        self.wire.error(error);
        self.skipping = true;
        self.send().await
    }
    async fn query(&mut self, query: &bytes::Bytes) -> Result<Next> {
        match text(query) {
            Ok(query) => {
                // The error has been written already.
                let _ = watched(&self.watch, &self.cancel, pin!(self.session.simple(query, &mut self.wire))).await;
            }
            Err(error) => {
                self.session.fail(&error, &mut self.wire);
                self.wire.error(&error);
            }
        }
        self.ready().await
    }
    async fn extended(&mut self, message: Message) -> Result<()> {
        let (session, wire) = (&mut self.session, &mut self.wire);
        match message {
            Message::Parse { name, query, types } => session.parse(text(&name)?, text(&query)?, &types, wire).await,
            Message::Bind { portal, statement, arguments } => {
                match session.bind(text(&portal)?, text(&statement)?, arguments, wire) {
                    Answer::Now(done) => done,
                    Answer::Later(work) => work.await,
                }
            }
            Message::Describe { what: Target::Statement, name } => session.describe_statement(text(&name)?, wire),
            Message::Describe { what: Target::Portal, name } => session.describe_portal(text(&name)?, wire),
            Message::Execute { portal, max_rows } => {
                let last = frontend::next_is_sync(&wire.input);
                watched(&self.watch, &self.cancel, pin!(session.execute(text(&portal)?, max_rows, last, wire))).await
            }
            Message::Close { what: Target::Statement, name } => session.close_statement(text(&name)?, wire),
            Message::Close { what: Target::Portal, name } => session.close_portal(text(&name)?, wire),
            _ => Err(frontend::violation("unexpected message")),
        }
    }
}

/// Runs a statement; if the client leaves meanwhile, the statement ends as soon as it can, and so
/// does the session: what it waits for, and the places it has in queues, are others'. The work is
/// kilobytes of state and stays where it is.
async fn watched<S: AsyncRead, T>(watch: &Watch<S>, cancel: &CancelHandle, mut work: Pin<&mut impl Future<Output = T>>) -> T {
    tokio::select! {
        biased;
        done = &mut work => return done,
        () = watch.gone() => cancel.terminate(),
    }
    work.await
}

async fn sleep(timeout: Option<std::time::Duration>) {
    match timeout {
        Some(timeout) => tokio::time::sleep(timeout).await,
        None => std::future::pending().await,
    }
}
