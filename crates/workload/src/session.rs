//! One client's life: connect, run transactions, retry what may be retried, reconnect when the node
//! is gone.
//!
//! Three things can come of a transaction, and telling them apart is what makes a workload a judge:
//!
//! * it committed;
//! * it had no effect: the server said so, or COMMIT was never sent;
//! * nobody knows: 40003, or the connection broke, or nothing came back in time, after COMMIT had
//!   been sent.
//!
//! Only 40001 and 40P01 («run it again») are retried, with jitter, and only a bounded number of
//! times. Other errors end the transaction, and the workload decides whether to go on.

use crate::client::{Client, Connector, Rows, Told, Value};
use crate::history::History;
use crate::run::Context;
use futures::future::BoxFuture;
use meridian_base::{Error, ErrorKind, Result};
use rand::Rng;
use rand::rngs::SmallRng;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// What came of a transaction.
#[derive(Debug)]
pub enum Attempted<T> {
    /// Acknowledged.
    Committed(T),
    /// It had no effect.
    Failed(Error),
    /// It may have happened. The value is what the body returned, if it got that far.
    Unknown(Error, Option<T>),
}

impl<T> Attempted<T> {
    /// The same with another value.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Attempted<U> {
        match self {
            Attempted::Committed(value) => Attempted::Committed(change(value)),
            Attempted::Failed(error) => Attempted::Failed(error),
            Attempted::Unknown(error, value) => Attempted::Unknown(error, value.map(change)),
        }
    }
}

/// What a transaction block says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing: it may write.
    Usual,
    /// That it only reads.
    ReadOnly,
    /// That it reads a moment that has passed, at which every replica can answer.
    Past,
}

impl Mode {
    fn begin(self) -> &'static str {
        match self {
            Mode::Usual => "BEGIN",
            Mode::ReadOnly => "BEGIN READ ONLY",
            Mode::Past => "BEGIN AS OF SYSTEM TIME follower_read_timestamp()",
        }
    }
}

/// How often and how fast a transaction is run again after 40001 or 40P01.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy {
    /// Attempts after the first.
    pub retries_max: u32,
    /// The wait before the first retry; doubled for each further one, each time with up to as much
    /// jitter on top.
    pub backoff: Duration,
    /// No wait is longer.
    pub backoff_max: Duration,
    /// A statement without an answer for this long counts as a lost connection.
    pub statement_timeout: Duration,
}

impl Default for RetryPolicy {
    fn default() -> RetryPolicy {
        RetryPolicy {
            retries_max: 100,
            backoff: Duration::from_millis(1),
            backoff_max: Duration::from_millis(200),
            statement_timeout: Duration::from_secs(15),
        }
    }
}

impl RetryPolicy {
    fn wait(&self, attempt: u32, rng: &mut SmallRng) -> Duration {
        let base = self.backoff.saturating_mul(1 << attempt.min(16)).min(self.backoff_max);
        base + base.mul_f64(rng.random::<f64>())
    }
}

/// Whether the connection is of no use any more: class 08, or the server is going away.
pub fn is_connection_lost(error: &Error) -> bool {
    error.sqlstate().starts_with("08") || matches!(error.sqlstate(), "57P01" | "57P02")
}

/// Whether a failed COMMIT, or a failed statement outside a transaction block, may nevertheless
/// have taken effect.
pub fn is_outcome_unknown(error: &Error) -> bool {
    error.kind() == ErrorKind::Unknown
        || is_connection_lost(error)
        || matches!(error.sqlstate(), "40003" | "57014")
        || error.sqlstate().starts_with("XX")
        || error.sqlstate().starts_with("58")
}

/// Whether running the same transaction again may succeed.
pub fn is_retryable(error: &Error) -> bool {
    error.kind() == ErrorKind::Retry || matches!(error.sqlstate(), "40001" | "40P01")
}

/// A client of one region that connects when it has to.
pub struct Session {
    connector: Arc<dyn Connector>,
    region: String,
    database: String,
    client: Option<Box<dyn Client>>,
    policy: RetryPolicy,
    /// Retries since the last [`Session::take_retries`].
    retries: u32,
    history: History,
}

impl Session {
    /// Connects lazily, at the first statement.
    pub fn new(context: &Context, region: &str, database: &str, policy: RetryPolicy) -> Session {
        Session {
            connector: context.connector.clone(),
            region: region.to_string(),
            database: database.to_string(),
            client: None,
            policy,
            retries: 0,
            history: context.history.clone(),
        }
    }

    /// How many retries there were since the last call.
    pub fn take_retries(&mut self) -> u32 {
        std::mem::take(&mut self.retries)
    }

    /// One statement outside a transaction block that only reads, or whose error the caller treats
    /// with [`is_outcome_unknown`].
    pub async fn query(&mut self, sql: &str, params: &[Value]) -> Result<Rows> {
        let limit = self.policy.statement_timeout;
        let result = bounded(limit, self.client().await?.query(sql, params)).await;
        self.judge(sql, &result);
        self.forget_if_lost(result)
    }

    /// As [`Session::query`], without parameters and without preparing.
    pub async fn execute(&mut self, sql: &str) -> Result<Rows> {
        let limit = self.policy.statement_timeout;
        let result = bounded(limit, self.client().await?.execute(sql)).await;
        self.judge(sql, &result);
        self.forget_if_lost(result)
    }

    /// A statement by itself is an implicit transaction: what it told before the server's error is
    /// untrue. (Of a string of several statements the first may have committed; a connection that
    /// broke has told the beginning of what is true.)
    fn judge(&self, sql: &str, result: &Result<Rows>) {
        let (Err(error), Some(client)) = (result, &self.client) else { return };
        let is_one = !sql.trim_end_matches([';', ' ', '\n']).contains(';');
        let Told { rows, tags } = client.told_before_error();
        if is_one && !is_connection_lost(error) && rows + tags > 0 {
            let code = error.sqlstate();
            self.history.note_untrue(format!("{rows} rows and {tags} command tags came before the error {code} of: {sql}"));
        }
    }

    /// One statement outside a block, run again on 40001 and 40P01.
    pub async fn single(&mut self, rng: &mut SmallRng, sql: &str, params: &[Value]) -> Attempted<Rows> {
        for attempt in 0.. {
            if let Err(error) = self.client().await {
                return Attempted::Failed(error);
            }
            match self.query(sql, params).await {
                Ok(rows) => return Attempted::Committed(rows),
                Err(error) if is_retryable(&error) && attempt < self.policy.retries_max => {
                    self.retries += 1;
                    tokio::time::sleep(self.policy.wait(attempt, rng)).await;
                }
                Err(error) if is_outcome_unknown(&error) => return Attempted::Unknown(error, None),
                Err(error) => return Attempted::Failed(error),
            }
        }
        unreachable!("the loop ends by returning")
    }

    /// Runs `body` between BEGIN and COMMIT, again and again while the server says that it may
    /// succeed.
    ///
    /// The body must not keep state from one call to the next: each call is a new transaction.
    pub async fn transaction<T, F>(&mut self, rng: &mut SmallRng, body: F) -> Attempted<T>
    where
        F: for<'c> FnMut(&'c mut Statements<'_>) -> BoxFuture<'c, Result<T>>,
    {
        self.transaction_in(Mode::Usual, rng, body).await
    }

    /// As [`Session::transaction`], in a mode.
    pub async fn transaction_in<T, F>(&mut self, mode: Mode, rng: &mut SmallRng, mut body: F) -> Attempted<T>
    where
        F: for<'c> FnMut(&'c mut Statements<'_>) -> BoxFuture<'c, Result<T>>,
    {
        for attempt in 0.. {
            let error = match self.attempt(mode, &mut body).await {
                Attempted::Failed(error) if is_retryable(&error) && attempt < self.policy.retries_max => error,
                other => return other,
            };
            debug_assert!(is_retryable(&error));
            self.retries += 1;
            tokio::time::sleep(self.policy.wait(attempt, rng)).await;
        }
        unreachable!("the loop ends by returning")
    }

    async fn attempt<T, F>(&mut self, mode: Mode, body: &mut F) -> Attempted<T>
    where
        F: for<'c> FnMut(&'c mut Statements<'_>) -> BoxFuture<'c, Result<T>>,
    {
        let limit = self.policy.statement_timeout;
        if let Err(error) = self.execute(mode.begin()).await {
            return Attempted::Failed(error);
        }
        let client = self.client.as_mut().expect("BEGIN went through it").as_mut();
        match body(&mut Statements { client, limit }).await {
            Err(error) => {
                self.roll_back(&error).await;
                Attempted::Failed(error)
            }
            Ok(value) => match self.execute("COMMIT").await {
                Ok(_) => Attempted::Committed(value),
                Err(error) if is_outcome_unknown(&error) => Attempted::Unknown(error, Some(value)),
                Err(error) => {
                    self.roll_back(&error).await;
                    Attempted::Failed(error)
                }
            },
        }
    }

    /// Ends an open transaction after an error. A connection on which even that fails is not used
    /// again.
    async fn roll_back(&mut self, error: &Error) {
        if is_connection_lost(error) || self.execute("ROLLBACK").await.is_err() {
            self.client = None;
        }
    }

    async fn client(&mut self) -> Result<&mut dyn Client> {
        if self.client.is_none() {
            let opened = bounded(self.policy.statement_timeout, self.connector.connect(&self.region, &self.database));
            self.client = Some(opened.await?);
        }
        Ok(self.client.as_mut().expect("just opened").as_mut())
    }

    fn forget_if_lost<T>(&mut self, result: Result<T>) -> Result<T> {
        if result.as_ref().is_err_and(is_connection_lost) {
            self.client = None;
        }
        result
    }
}

/// The statements of one open transaction.
pub struct Statements<'s> {
    client: &'s mut dyn Client,
    limit: Duration,
}

impl Statements<'_> {
    /// Runs one statement.
    pub async fn query(&mut self, sql: &str, params: &[Value]) -> Result<Rows> {
        bounded(self.limit, self.client.query(sql, params)).await
    }
    /// Runs one statement without parameters and without preparing it.
    pub async fn execute(&mut self, sql: &str) -> Result<Rows> {
        bounded(self.limit, self.client.execute(sql)).await
    }
}

/// Silence for too long is a lost connection: 08006, so that it is dropped and, after COMMIT,
/// counts as unknown.
async fn bounded<T>(limit: Duration, answer: impl Future<Output = Result<T>>) -> Result<T> {
    match timeout(limit, answer).await {
        Ok(result) => result,
        Err(_) => {
            let message = format!("no answer within {} ms", limit.as_millis());
            Err(Error::new(ErrorKind::Unavailable, "08006", message))
        }
    }
}
