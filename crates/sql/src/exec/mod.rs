//! Runs plans.

mod api;

pub use api::*;

use crate::env::Transaction;
use crate::plan::Prepared;
use crate::types::Datum;
use meridian_base::{Error, Result};
use std::sync::Arc;

/// Runs a statement to its end. `params` are of the types [`Prepared::params`].
pub async fn run<T: Transaction>(
    prepared: &Arc<Prepared>,
    params: &[Datum],
    txn: &mut T,
    ctx: &ExecContext<'_>,
    sink: &mut dyn RowSink,
) -> Result<Affected> {
    let mut execution = Execution::new(prepared.clone(), params.to_vec());
    match execution.fetch(txn, ctx, None, sink).await? {
        Fetched::Done(affected) => Ok(affected),
        Fetched::Suspended { .. } => unreachable!("a fetch without limit is not suspended"),
    }
}

/// Inserts many rows through a plan of [`crate::plan::prepare_insert`]; returns how many.
pub async fn insert_rows<T: Transaction>(
    prepared: &Arc<Prepared>,
    rows: Vec<Vec<Datum>>,
    txn: &mut T,
    ctx: &ExecContext<'_>,
) -> Result<u64> {
    let _ = (prepared, rows, txn, ctx);
    Err(Error::internal("execution is not linked in yet"))
}

/// A statement being run: a portal or a cursor holds one and fetches from it.
pub struct Execution {
    prepared: Arc<Prepared>,
    params: Vec<Datum>,
}

impl Execution {
    /// Ready to start; nothing is read yet.
    pub fn new(prepared: Arc<Prepared>, params: Vec<Datum>) -> Execution {
        Execution { prepared, params }
    }
    /// Sends up to `max_rows` rows (all, if `None`) to the sink. DML always runs to its end first.
    pub async fn fetch<T: Transaction>(
        &mut self,
        txn: &mut T,
        ctx: &ExecContext<'_>,
        max_rows: Option<u64>,
        sink: &mut dyn RowSink,
    ) -> Result<Fetched> {
        let _ = (&self.prepared, &self.params, txn, ctx, max_rows, sink);
        Err(Error::internal("execution is not linked in yet"))
    }
}
