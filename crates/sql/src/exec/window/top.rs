//! The first rows of each partition, where no others are asked for.

use super::super::Runtime;
use super::super::eval::{Frame, Row, eval_all};
use super::super::op::Op;
use super::super::sort::{compare_keys, sort_by, sort_key};
use crate::env::Transaction;
use crate::plan::eval::bulk::Bulk;
use crate::plan::node::{Node, WindowPlan};
use crate::plan::rel::WindowFunction;
use meridian_base::Result;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Of more rows than these, to put each in its place takes longer than to sort them all.
const MOST: i64 = 64;

/// A row, when it came, and what is accounted for it.
struct Kept {
    came: u64,
    bytes: usize,
    order: Row,
    row: Row,
}

/// The rows whose number or rank in their partition is `most` at most, in the order in which they
/// came. `None`: they are too many, or another function is asked for.
pub(super) async fn rows<T: Transaction>(
    input: &Arc<Node>,
    calls: &[WindowPlan],
    most: i64,
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Option<Vec<Row>>> {
    let [call] = calls else { return Ok(None) };
    let is_rank = matches!(call.function, WindowFunction::Rank);
    if most > MOST || !is_rank && !matches!(call.function, WindowFunction::RowNumber) {
        return Ok(None);
    }
    let most = usize::try_from(most).unwrap_or(0);
    let mut partitions: Bulk<BTreeMap<Row, Vec<Kept>>> = Bulk::default();
    let mut came = 0;
    let mut op = Op::new(input, frame);
    while let Some(rows) = op.next(rt, usize::MAX).await? {
        for row in rows {
            rt.step().await?;
            came += 1;
            let partition = eval_all(&call.partition, &row, frame, rt).await?;
            let order = sort_key(&call.order, &row, frame, rt).await?;
            let first = match partitions.get_mut(&partition) {
                Some(first) => first,
                None => {
                    rt.keep(std::slice::from_ref(&partition))?;
                    partitions.entry(partition).or_default()
                }
            };
            // Behind those that are alike: they came before it.
            let at = first.partition_point(|k| compare_keys(&k.order, &order, &call.order).is_le());
            let is_last = |at: usize| at > 0 && compare_keys(&first[at - 1].order, &order, &call.order).is_eq();
            if at >= most && !(is_rank && most > 0 && is_last(at)) {
                continue;
            }
            let bytes = rt.keep(std::slice::from_ref(&row))? + rt.keep_key(&order, call.order.iter().map(|k| &k.expr))?;
            first.insert(at, Kept { came, bytes, order, row });
            // With a rank, those that are alike at the end stay.
            let mut end = most;
            while is_rank && end < first.len() && compare_keys(&first[end].order, &first[most - 1].order, &call.order).is_eq() {
                end += 1;
            }
            let beyond: usize = first.drain(end.min(first.len())..).map(|kept| kept.bytes).sum();
            rt.shared.memory = rt.shared.memory.saturating_sub(beyond);
        }
    }
    let mut kept: Vec<(u64, Row)> = Vec::new();
    for (_, first) in partitions.take() {
        rt.step().await?;
        kept.extend(first.into_iter().map(|kept| (kept.came, kept.row)));
    }
    kept = sort_by(kept, |a, b| a.0.cmp(&b.0), rt).await?;
    Ok(Some(kept.into_iter().map(|(_, row)| row).collect()))
}
