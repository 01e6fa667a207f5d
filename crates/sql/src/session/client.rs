//! Sessions as objects, for the protocols: these need not know what a session runs on.
//!
//! Everything below a session is generic over its [`Environment`]. It is compiled in the crate that
//! turns a session into one of these objects, and in no other one.

use super::text::Collector;
use super::{BindArguments, CancelHandle, Output, Session, SessionOptions, Shared, StatementResult, TransactionStatus};
use crate::catalog::{Catalog, CatalogChange, Descriptor};
use crate::env::Environment;
use meridian_base::runtime::BoxFuture;
use meridian_base::{Error, Result, limits};
use std::sync::Arc;
use std::time::Duration;

/// What is done when the call returns, as a rule, or what is left of it: to make a future and to
/// free it takes as long as a short message does.
pub enum Answer<'a, T> {
    /// It is done.
    Now(T),
    /// It has to wait for something.
    Later(BoxFuture<'a, T>),
}

/// A session, as the messages of its client drive it. Each method is that of [`Session`].
#[allow(missing_docs)]
pub trait ClientSession: Send {
    fn cancel_handle(&self) -> CancelHandle;
    fn reported_settings(&self) -> Vec<(&'static str, String)>;
    fn transaction_status(&self) -> TransactionStatus;
    fn idle_timeout(&self) -> Option<(Duration, Error)>;
    fn simple<'a>(&'a mut self, text: &'a str, out: &'a mut dyn Output) -> BoxFuture<'a, Result<()>>;
    fn parse<'a>(
        &'a mut self,
        name: &'a str,
        text: &'a str,
        types: &'a [u32],
        out: &'a mut dyn Output,
    ) -> BoxFuture<'a, Result<()>>;
    fn bind<'a>(
        &'a mut self,
        portal: &'a str,
        statement: &'a str,
        arguments: BindArguments,
        out: &'a mut dyn Output,
    ) -> Answer<'a, Result<()>>;
    fn describe_statement(&mut self, name: &str, out: &mut dyn Output) -> Result<()>;
    fn describe_portal(&mut self, name: &str, out: &mut dyn Output) -> Result<()>;
    fn execute<'a>(
        &'a mut self,
        portal: &'a str,
        max_rows: u64,
        last: bool,
        out: &'a mut dyn Output,
    ) -> BoxFuture<'a, Result<()>>;
    fn close_statement(&mut self, name: &str, out: &mut dyn Output) -> Result<()>;
    fn close_portal(&mut self, name: &str, out: &mut dyn Output) -> Result<()>;
    fn may_send(&self, out: &dyn Output) -> Result<bool>;
    fn before_flush<'a>(&'a mut self, out: &'a mut dyn Output) -> BoxFuture<'a, Result<()>>;
    fn sync<'a>(&'a mut self, out: &'a mut dyn Output) -> Answer<'a, ()>;
    fn fail(&mut self, error: &Error, out: &mut dyn Output);
    fn end(&mut self, error: &Error, out: &mut dyn Output);
}

impl dyn ClientSession {
    /// Runs a query string and returns what came, as text. Stops at the first error, as the simple
    /// protocol does.
    pub async fn query_text(&mut self, sql: &str) -> Result<Vec<StatementResult>> {
        let (results, ended) = self.query_told(sql).await;
        ended.map(|()| results)
    }
    /// The same. With an error it also returns what came before it, as a client of the simple
    /// protocol would have seen it; a result without a tag belongs to a statement that had not
    /// ended.
    pub async fn query_told(&mut self, sql: &str) -> (Vec<StatementResult>, Result<()>) {
        let mut collector = Collector::default();
        let ended = self.simple(sql, &mut collector).await;
        (collector.results, ended)
    }
}

impl<E: Environment> ClientSession for Session<E> {
    fn cancel_handle(&self) -> CancelHandle {
        Session::cancel_handle(self)
    }
    fn reported_settings(&self) -> Vec<(&'static str, String)> {
        Session::reported_settings(self)
    }
    fn transaction_status(&self) -> TransactionStatus {
        Session::transaction_status(self)
    }
    fn idle_timeout(&self) -> Option<(Duration, Error)> {
        Session::idle_timeout(self)
    }
    fn simple<'a>(&'a mut self, text: &'a str, out: &'a mut dyn Output) -> BoxFuture<'a, Result<()>> {
        Box::pin(Session::simple(self, text, out))
    }
    fn parse<'a>(
        &'a mut self,
        name: &'a str,
        text: &'a str,
        types: &'a [u32],
        out: &'a mut dyn Output,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(Session::parse(self, name, text, types, out))
    }
    fn bind<'a>(
        &'a mut self,
        portal: &'a str,
        statement: &'a str,
        mut arguments: BindArguments,
        out: &'a mut dyn Output,
    ) -> Answer<'a, Result<()>> {
        match Session::bind_at_once(self, portal, statement, &mut arguments, out) {
            Some(done) => Answer::Now(done),
            None => Answer::Later(Box::pin(Session::bind(self, portal, statement, arguments, out))),
        }
    }
    fn describe_statement(&mut self, name: &str, out: &mut dyn Output) -> Result<()> {
        Session::describe_statement(self, name, out)
    }
    fn describe_portal(&mut self, name: &str, out: &mut dyn Output) -> Result<()> {
        Session::describe_portal(self, name, out)
    }
    fn execute<'a>(
        &'a mut self,
        portal: &'a str,
        max_rows: u64,
        last: bool,
        out: &'a mut dyn Output,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(Session::execute(self, portal, max_rows, last, out))
    }
    fn close_statement(&mut self, name: &str, out: &mut dyn Output) -> Result<()> {
        Session::close_statement(self, name, out)
    }
    fn close_portal(&mut self, name: &str, out: &mut dyn Output) -> Result<()> {
        Session::close_portal(self, name, out)
    }
    fn may_send(&self, out: &dyn Output) -> Result<bool> {
        Session::may_send(self, out)
    }
    fn before_flush<'a>(&'a mut self, out: &'a mut dyn Output) -> BoxFuture<'a, Result<()>> {
        Box::pin(Session::before_flush(self, out))
    }
    fn sync<'a>(&'a mut self, out: &'a mut dyn Output) -> Answer<'a, ()> {
        match Session::sync_at_once(self, out) {
            true => Answer::Now(()),
            false => Answer::Later(Box::pin(Session::sync(self, out))),
        }
    }
    fn fail(&mut self, error: &Error, out: &mut dyn Output) {
        Session::fail(self, error, out);
    }
    fn end(&mut self, error: &Error, out: &mut dyn Output) {
        Session::end(self, error, out);
    }
}

impl<E: Environment> Session<E> {
    /// See [`ClientSession`].
    pub async fn query_text(&mut self, sql: &str) -> Result<Vec<StatementResult>> {
        let session: &mut dyn ClientSession = self;
        session.query_text(sql).await
    }
}

/// What opens the sessions of a node's clients.
pub trait SessionFactory: Send + Sync + 'static {
    /// See [`Session::open`].
    fn open(&self, options: SessionOptions, shared: Arc<Shared>) -> BoxFuture<'_, Result<Box<dyn ClientSession>>>;
    /// A random number.
    fn random(&self) -> u64;
    /// The newest catalog that the node knows: roles, and the rules of login.
    fn login_catalog(&self) -> Arc<Catalog>;
    /// [`Environment::catch_up`].
    fn login_catch_up(&self) -> BoxFuture<'_, Result<()>>;
    /// [`Environment::now_micros`].
    fn login_now_micros(&self) -> u64;
    /// Stores what the answers for users that are not there are made of, unless there is some.
    fn store_mock_secret(&self, secret: Vec<u8>) -> BoxFuture<'_, Result<()>>;
}

impl<E: Environment> SessionFactory for E {
    fn open(&self, options: SessionOptions, shared: Arc<Shared>) -> BoxFuture<'_, Result<Box<dyn ClientSession>>> {
        Box::pin(async move {
            let session: Box<dyn ClientSession> = Box::new(Session::open(self.clone(), options, shared).await?);
            Ok(session)
        })
    }
    fn random(&self) -> u64 {
        Environment::random(self)
    }
    fn login_catalog(&self) -> Arc<Catalog> {
        self.catalog()
    }
    fn login_catch_up(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.catch_up())
    }
    fn login_now_micros(&self) -> u64 {
        self.now_micros()
    }
    fn store_mock_secret(&self, secret: Vec<u8>) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            for _ in 0..limits::RETRIES_MAX {
                let catalog = self.catalog();
                let mut rules = catalog.login_rules().cloned().unwrap_or_default();
                if !rules.mock_secret.is_empty() {
                    return Ok(());
                }
                rules.mock_secret.clone_from(&secret);
                let put = vec![Descriptor::LoginRules(rules)];
                let change = CatalogChange { put, next_id: catalog.next_id, ..CatalogChange::default() };
                match self.change_catalog(catalog.version, change).await {
                    Err(e) if e.is_retry() => {}
                    done => return done.map(drop),
                }
            }
            Err(Error::retry("other schema changes came first, again and again"))
        })
    }
}
