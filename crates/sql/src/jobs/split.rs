//! A column becomes an escrow column, or ceases to be one, while its table is used
//! (`docs/design/escrow.md`, «On and off»).
//!
//! The column goes from state to state, each a step that is committed when no transaction uses the
//! version before the last one any more. Both ways begin in whatever state the column is, so that
//! another node can go on with them, and each is what takes the other one back.

use super::rows::work_on;
use super::validate::violated;
use super::{JobContext, step, step_of, table_step};
use crate::catalog::Table;
use crate::catalog::escrow::Shadow;
use crate::catalog::relation::TableRef;
use crate::env::Environment;
use crate::exec::RowWork;
use meridian_base::{DescriptorId, Error, Result};

/// On what occasion.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum As {
    /// The present task of the job, which is done with the last step.
    Task,
    /// What takes another task back. Where that one got to among the rows has no part in it.
    Undo,
}

impl As {
    fn context_of_pages(self, context: &JobContext) -> JobContext {
        match self {
            As::Task => context.clone(),
            As::Undo => JobContext { job: None, ..context.clone() },
        }
    }
}

/// Gives the numbers of a column shares, which validates constraints of it.
pub(super) async fn split<E: Environment>(
    env: &E,
    table: DescriptorId,
    index: u32,
    checks: &[DescriptorId],
    of: As,
    context: &JobContext,
) -> Result<()> {
    step(env, context, table, |t| shadows(t, index).for_each(|shadow| shadow.is_written = true)).await?;
    let has_shadow = |t: &TableRef| t.shadows.iter().any(|s| s.column.index == index);
    if let Some(source) = env.catalog().table_by_id(table).filter(has_shadow) {
        let split = work_on(env, &source, RowWork::Split { index }, &of.context_of_pages(context)).await;
        split.map_err(|e| by_some_row(e, &source.name))?;
        step(env, context, table, |t| {
            let Some(at) = t.shadows.iter().position(|s| s.column.index == index) else { return };
            let mut column = t.shadows.remove(at).column;
            column.in_rows = true;
            t.escrow.push(column);
            t.checks.iter_mut().filter(|check| checks.contains(&check.id)).for_each(|check| check.validated = true);
        })
        .await?;
    }
    end(env, context, of, table, |t| {
        t.escrow.iter_mut().filter(|column| column.index == index).for_each(|column| column.in_rows = false);
    })
    .await
}

/// Gives the rows the numbers of a column, which then has no shares; constraints of it go with
/// them.
pub(super) async fn join<E: Environment>(
    env: &E,
    table: DescriptorId,
    index: u32,
    checks: &[DescriptorId],
    of: As,
    context: &JobContext,
) -> Result<()> {
    step(env, context, table, |t| {
        t.escrow.iter_mut().filter(|column| column.index == index).for_each(|column| column.in_rows = true);
    })
    .await?;
    let has_column = |t: &TableRef| t.escrow.iter().any(|column| column.index == index);
    if let Some(source) = env.catalog().table_by_id(table).filter(has_column) {
        work_on(env, &source, RowWork::Store { index }, &of.context_of_pages(context)).await?;
        step(env, context, table, |t| {
            let Some(at) = t.escrow.iter().position(|column| column.index == index) else { return };
            let mut column = t.escrow.remove(at);
            column.in_rows = false;
            t.shadows.push(Shadow { column, is_written: true });
        })
        .await?;
    }
    end(env, context, of, table, |t| {
        t.shadows.retain(|shadow| shadow.column.index != index);
        t.checks.retain(|check| !checks.contains(&check.id));
    })
    .await
}

/// The last step.
async fn end<E: Environment>(
    env: &E,
    context: &JobContext,
    of: As,
    table: DescriptorId,
    change: impl Fn(&mut Table) + Send + Sync,
) -> Result<()> {
    step_of(env, context, usize::from(of == As::Task), &|catalog| table_step(catalog, table, &change)).await
}

fn shadows(table: &mut Table, index: u32) -> impl Iterator<Item = &mut Shadow> {
    table.shadows.iter_mut().filter(move |shadow| shadow.column.index == index)
}

/// A row that is there breaks a constraint, and nobody writes a new one.
fn by_some_row(e: Error, table: &str) -> Error {
    match e.get_constraint().filter(|_| e.sqlstate() == "23514") {
        Some(check) => violated(check, table),
        None => e,
    }
}
