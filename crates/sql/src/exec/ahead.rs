//! Rows that an `INSERT` puts into indexes which nobody else knows yet, in transactions that commit
//! ahead of its own: a load of any size (`session::load`).

use super::dml::insert_all;
use super::eval::Row;
use super::write::Changes;
use super::{Runtime, cascade};
use crate::env::Transaction;
use crate::plan::node::DmlPlan;
use futures::stream::{FuturesUnordered, StreamExt};
use meridian_base::Result;
use meridian_base::runtime::BoxFuture;

/// Rows of one transaction.
const ROWS: usize = 1_000;

/// So many commit at once: other sessions go on beside them.
const AT_ONCE: usize = 4;

/// The transactions on their way.
#[derive(Default)]
pub(super) struct Ahead {
    committing: FuturesUnordered<BoxFuture<'static, Result<()>>>,
}

impl Ahead {
    /// Inserts rows.
    pub async fn insert<T: Transaction>(
        &mut self,
        plan: &DmlPlan,
        mut rows: Vec<Row>,
        random: &[u32],
        rt: &mut Runtime<'_, T>,
    ) -> Result<()> {
        while !rows.is_empty() {
            let rest = rows.split_off(rows.len().min(ROWS));
            let mut txn = rt.txn.beside();
            let mut inner = Runtime { txn: &mut txn, ctx: rt.ctx, params: rt.params, shared: &mut *rt.shared };
            let mut changes = Changes::default();
            insert_all(plan, rows, random, &mut changes, &mut inner).await?;
            cascade::check(&plan.table, &plan.keys, changes, &mut inner).await?;
            self.committing.push(Box::pin(async move { txn.commit().await.map(drop) }));
            self.commit_down_to(AT_ONCE - 1).await?;
            rows = rest;
        }
        Ok(())
    }
    /// Waits until at most `most` are on their way.
    pub async fn commit_down_to(&mut self, most: usize) -> Result<()> {
        while self.committing.len() > most {
            self.committing.next().await.unwrap_or(Ok(()))?;
        }
        Ok(())
    }
}
