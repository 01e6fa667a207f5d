//! Transactions that commit ahead of a statement's own: what it inserts into indexes which nobody
//! else knows yet, in a load of any size (`session::load`).

use crate::env::Transaction;
use futures::stream::{FuturesUnordered, StreamExt};
use meridian_base::Result;
use meridian_base::runtime::BoxFuture;

/// Rows of one transaction.
pub(super) const ROWS: usize = 1_000;
/// So many commit at once: other sessions go on beside them.
const AT_ONCE: usize = 4;

/// The transactions on their way.
#[derive(Default)]
pub(super) struct Ahead {
    committing: FuturesUnordered<BoxFuture<'static, Result<()>>>,
}

impl Ahead {
    /// Commits one more, when there are few enough of them.
    pub async fn commit<T: Transaction>(&mut self, txn: T) -> Result<()> {
        self.committing.push(Box::pin(async move { txn.commit().await.map(drop) }));
        self.commit_down_to(AT_ONCE - 1).await
    }
    /// Waits for all.
    pub async fn end(mut self) -> Result<()> {
        self.commit_down_to(0).await
    }
    async fn commit_down_to(&mut self, most: usize) -> Result<()> {
        while self.committing.len() > most {
            self.committing.next().await.unwrap_or(Ok(()))?;
        }
        Ok(())
    }
}
