//! Window functions (PostgreSQL manual, 9.22): each call sorts its input into partitions and looks
//! at a frame of rows around each. Where rows come in the order of the windows, they are looked at
//! one by one, or partition by partition (`in_order`).

pub(super) mod in_order;
mod top;

use super::Runtime;
use super::eval::{Frame, Row, all_true, eval_all, eval_scalar};
use super::op::collect;
use super::sort::{compare_keys, sort_by, sort_key};
use crate::env::Transaction;
use crate::plan::eval::bulk::Bulk;
use crate::plan::node::{BoundPlan, Node, Scalar, WindowPlan};
use crate::plan::rel::WindowFunction;
use crate::types::Datum;
use crate::types::functions::{Accumulator, Aggregate};
use meridian_base::{Error, Result};
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

/// The input's rows, each with the results of the calls behind it; in the order of the last call.
/// `most`: rows whose first result is above it may be left out.
pub(crate) async fn rows<T: Transaction>(
    input: &Arc<Node>,
    calls: &[WindowPlan],
    most: Option<&Scalar>,
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Vec<Row>> {
    let first = match most_of(most, frame, rt).await? {
        Some(most) => top::rows(input, calls, most, frame, rt).await?,
        None => None,
    };
    let mut rows = match first {
        Some(rows) => rows,
        None => collect(input, frame, rt).await?,
    };
    for call in calls {
        rows = one_call(rows, call, frame, rt).await?;
    }
    Ok(rows)
}

/// The number that a first result may not be above; `None`: it is none that says so.
async fn most_of<T: Transaction>(most: Option<&Scalar>, frame: &Frame, rt: &mut Runtime<'_, T>) -> Result<Option<i64>> {
    let Some(most) = most else { return Ok(None) };
    Ok(match eval_scalar(most, &[], frame, rt).await? {
        Datum::Int(most) => Some(most),
        _ => None,
    })
}

struct Keyed {
    partition: Row,
    order: Row,
    row: Row,
}

async fn one_call<T: Transaction>(rows: Vec<Row>, call: &WindowPlan, frame: &Frame, rt: &mut Runtime<'_, T>) -> Result<Vec<Row>> {
    let mut keyed = Vec::with_capacity(rows.len());
    let mut key_bytes = 0;
    for row in rows {
        rt.step().await?;
        let partition = eval_all(&call.partition, &row, frame, rt).await?;
        let order = sort_key(&call.order, &row, frame, rt).await?;
        key_bytes += rt.keep_key(&partition, &call.partition)?;
        key_bytes += rt.keep_key(&order, call.order.iter().map(|k| &k.expr))?;
        keyed.push(Keyed { partition, order, row });
    }
    let by_place =
        |a: &Keyed, b: &Keyed| a.partition.cmp(&b.partition).then_with(|| compare_keys(&a.order, &b.order, &call.order));
    let mut keyed = sort_by(keyed, by_place, rt).await?;
    let mut start = 0;
    while start < keyed.len() {
        let mut same = 1;
        while keyed.get(start + same).is_some_and(|k| k.partition == keyed[start].partition) {
            same += 1;
            rt.step().await?;
        }
        let results = partition(&keyed[start..start + same], call, frame, rt).await?;
        for (k, r) in keyed[start..start + same].iter_mut().zip(results) {
            k.row.push(r);
            rt.step().await?;
        }
        start += same;
        rt.step().await?;
    }
    let mut rows = Vec::with_capacity(keyed.len());
    for k in keyed {
        rows.push(k.row);
        rt.step().await?;
    }
    rt.shared.memory = rt.shared.memory.saturating_sub(key_bytes);
    Ok(rows)
}

/// One partition of a call.
struct Partition<'p> {
    call: &'p WindowPlan,
    /// In their order.
    rows: &'p [Keyed],
    /// The call's arguments, by row; `None`: its `FILTER` keeps the row out.
    args: Bulk<Vec<Option<Row>>>,
    /// The first peer of each row.
    first: Vec<usize>,
    /// One past the last peer of each row.
    last: Vec<usize>,
    /// The values of correlated columns.
    outer: &'p Frame,
}

async fn partition<T: Transaction>(
    rows: &[Keyed],
    call: &WindowPlan,
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Vec<Datum>> {
    let n = rows.len();
    let peer = |a: usize, b: usize| compare_keys(&rows[a].order, &rows[b].order, &call.order) == Ordering::Equal;
    // The first and one past the last peer of each row.
    let (mut first, mut last) = (vec![0; n], vec![n; n]);
    for i in 1..n {
        rt.step().await?;
        first[i] = if peer(i - 1, i) { first[i - 1] } else { i };
    }
    for i in (0..n.saturating_sub(1)).rev() {
        rt.step().await?;
        last[i] = if peer(i, i + 1) { last[i + 1] } else { i + 1 };
    }
    let mut args = Bulk::from(Vec::with_capacity(n));
    for r in rows {
        rt.step().await?;
        let counts = all_true(call.filter.as_slice(), &r.row, frame, rt).await?;
        args.push(if counts { Some(eval_all(&call.args, &r.row, frame, rt).await?) } else { None });
    }
    let partition = Partition { call, rows, args, first, last, outer: frame };
    let Partition { args, first, last, .. } = &partition;
    let given = |i: usize, a: usize| args[i].as_ref().and_then(|row| row.get(a));
    let arg = |i: usize, a: usize| given(i, a).cloned().unwrap_or(Datum::Null);
    let count = |i: usize| Datum::Int(i as i64);
    let mut out = Vec::with_capacity(n);
    let mut dense = 0i64;
    let mut running = None;
    for i in 0..n {
        rt.step().await?;
        dense += (first[i] == i) as i64;
        out.push(match &call.function {
            WindowFunction::RowNumber => count(i + 1),
            WindowFunction::Rank => count(first[i] + 1),
            WindowFunction::DenseRank => Datum::Int(dense),
            WindowFunction::PercentRank => Datum::Float(if n > 1 { first[i] as f64 / (n - 1) as f64 } else { 0.0 }),
            WindowFunction::CumeDist => Datum::Float(last[i] as f64 / n as f64),
            WindowFunction::Ntile => match arg(i, 0) {
                Datum::Int(k) if k > 0 => Datum::Int(bucket(i as i64, n as i64, k)),
                Datum::Null => Datum::Null,
                _ => return Err(Error::sql("22014", "argument of ntile must be greater than zero")),
            },
            WindowFunction::Lag | WindowFunction::Lead => {
                let offset = match given(i, 1) {
                    None => 1,
                    Some(Datum::Int(o)) => *o,
                    Some(_) => {
                        out.push(Datum::Null);
                        continue;
                    }
                };
                let at = i as i64 + if matches!(call.function, WindowFunction::Lag) { -offset } else { offset };
                match usize::try_from(at) {
                    Ok(at) if at < n => arg(at, 0),
                    _ => arg(i, 2),
                }
            }
            _ => {
                let frame = partition.frame(i, rt).await?;
                partition.framed(frame, i, &mut running, rt).await?
            }
        });
    }
    Ok(out)
}

/// The bucket of row `i` of `n` in `k` buckets whose sizes differ by one at most, larger ones
/// first.
fn bucket(i: i64, n: i64, k: i64) -> i64 {
    let (size, larger) = (n / k, n % k);
    let border = larger * (size + 1);
    if i < border { i / (size + 1) + 1 } else { larger + (i - border) / size.max(1) + 1 }
}

impl Partition<'_> {
    /// The frame of a row: its first row, and one past its last one.
    async fn frame<T: Transaction>(&self, i: usize, rt: &mut Runtime<'_, T>) -> Result<Range<usize>> {
        let Partition { call, rows, first, last, outer, .. } = self;
        let n = rows.len();
        let mut offsets = [0i64; 2];
        for (o, b) in offsets.iter_mut().zip([&call.start, &call.end]) {
            if let BoundPlan::Preceding(e) | BoundPlan::Following(e) = b {
                match eval_scalar(e, &rows[i].row, outer, rt).await? {
                    Datum::Int(v) if v >= 0 => *o = v,
                    Datum::Null => return Err(Error::sql("22004", "frame offset must not be null")),
                    _ => return Err(Error::sql("22013", "frame offset must not be negative")),
                }
            }
        }
        let clamp = |v: i64| v.clamp(0, n as i64) as usize;
        let at = i as i64;
        let from = match &call.start {
            BoundPlan::UnboundedPreceding => 0,
            BoundPlan::CurrentRow => {
                if call.rows {
                    i
                } else {
                    first[i]
                }
            }
            BoundPlan::Preceding(_) => clamp(at.saturating_sub(offsets[0])),
            BoundPlan::Following(_) => clamp(at.saturating_add(offsets[0])),
            BoundPlan::UnboundedFollowing => n,
        };
        let to = match &call.end {
            BoundPlan::UnboundedFollowing => n,
            BoundPlan::CurrentRow => {
                if call.rows {
                    i + 1
                } else {
                    last[i]
                }
            }
            BoundPlan::Preceding(_) => clamp(at.saturating_sub(offsets[1]).saturating_add(1)),
            BoundPlan::Following(_) => clamp(at.saturating_add(offsets[1]).saturating_add(1)),
            BoundPlan::UnboundedPreceding => 0,
        };
        Ok(from..to.max(from))
    }

    /// What the call says of a row with this frame.
    async fn framed<T: Transaction>(
        &self,
        Range { start: from, end: to }: Range<usize>,
        i: usize,
        running: &mut Option<Running>,
        rt: &mut Runtime<'_, T>,
    ) -> Result<Datum> {
        let Partition { call, args, .. } = self;
        let given = |at: usize, a: usize| args[at].as_ref().and_then(|row| row.get(a)).unwrap_or(&Datum::Null);
        let value = |at: usize| if from <= at && at < to { given(at, 0).clone() } else { Datum::Null };
        match &call.function {
            WindowFunction::FirstValue => Ok(value(from)),
            WindowFunction::LastValue => Ok(if to > from { value(to - 1) } else { Datum::Null }),
            WindowFunction::NthValue => match given(i, 1) {
                Datum::Int(k) if *k > 0 => Ok(value(from.saturating_add(*k as usize - 1))),
                Datum::Null => Ok(Datum::Null),
                _ => Err(Error::sql("22016", "argument of nth_value must be greater than zero")),
            },
            WindowFunction::Aggregate(a) => self.aggregate(a, from..to, running, rt).await,
            _ => Err(Error::internal("this window function has no frame")),
        }
    }

    /// An aggregate over this frame. It goes on from the last row's, if the frame only moves on,
    /// and the aggregate can take back the rows that leave it.
    async fn aggregate<T: Transaction>(
        &self,
        a: &Aggregate,
        frame: Range<usize>,
        running: &mut Option<Running>,
        rt: &mut Runtime<'_, T>,
    ) -> Result<Datum> {
        let last = match running.take() {
            Some(last) => self.leave(last, &frame, rt).await?,
            None => None,
        };
        let mut at = match last {
            Some(last) => last,
            None => Running { frame: frame.start..frame.start, state: a.start(), result: None },
        };
        for row in at.frame.end..frame.end {
            rt.step().await?;
            if let Some(args) = &self.args[row] {
                at.state.add(rt.ctx.eval, args)?;
                at.result = None;
            }
        }
        at.frame = frame;
        let result = match at.result.take() {
            Some(same) => same,
            None => {
                let result = at.state.finish(rt.ctx.eval)?;
                rt.keep_value(&result)?;
                result
            }
        };
        at.result = Some(result.clone());
        *running = Some(at);
        Ok(result)
    }

    /// Takes the rows before `frame` out of an aggregate. `None`: it has to begin anew.
    async fn leave<T: Transaction>(
        &self,
        mut last: Running,
        frame: &Range<usize>,
        rt: &mut Runtime<'_, T>,
    ) -> Result<Option<Running>> {
        let moves_on = last.frame.start <= frame.start && last.frame.end <= frame.end;
        // A frame that leaves most of its rows is added up sooner.
        if !moves_on || frame.start - last.frame.start > frame.len() {
            return Ok(None);
        }
        for row in last.frame.start..frame.start.min(last.frame.end) {
            rt.step().await?;
            if let Some(args) = &self.args[row] {
                last.result = None;
                if !last.state.remove(args)? {
                    return Ok(None);
                }
            }
        }
        last.frame = frame.start..last.frame.end.max(frame.start);
        Ok(Some(last))
    }
}

/// An aggregate over the frame of the last row.
struct Running {
    frame: Range<usize>,
    state: Box<dyn Accumulator>,
    /// Unless the frame has changed since.
    result: Option<Datum>,
}
