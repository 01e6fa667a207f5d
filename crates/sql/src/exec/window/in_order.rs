//! Window functions over rows that come in the order of the window. The first results need the
//! first rows alone, and memory is needed for one partition, or for the rows that are alike.

use super::super::coming::Coming;
use super::super::eval::{Frame, Row, all_true, eval_all};
use super::super::op::Op;
use super::super::sort::sort_key;
use super::super::{BATCH, Runtime};
use super::{Keyed, most_of, partition};
use crate::env::Transaction;
use crate::plan::eval::bulk::Bulk;
use crate::plan::node::{Scalar, WindowPlan};
use crate::plan::rel::WindowFunction;
use crate::types::functions::Accumulator;
use crate::types::{Datum, EvalContext};
use meridian_base::{Error, Result};
use std::collections::VecDeque;

/// Calls over one window, and the rows that come in its order.
pub(crate) struct InOrder {
    input: Coming,
    /// Rows whose results are not all known: of one partition, or alike in the order.
    open: Bulk<Vec<Keyed>>,
    /// What is accounted for them.
    bytes: usize,
    /// Rows with their results.
    ready: Bulk<VecDeque<Row>>,
    /// Rows with a first result above it are left out.
    most: Option<i64>,
    running: Option<Running>,
}

/// What is known of the rows before, of a window that has no partitions.
struct Running {
    /// How many there were.
    count: i64,
    /// How many there were before those that are like the last one.
    before: i64,
    /// How many there were that differ from each other in the order.
    different: i64,
    order: Option<Row>,
    /// Whether a result needs all rows that are alike.
    needs_peers: bool,
    calls: Vec<Past>,
}

/// What a call keeps of the rows before.
enum Past {
    Nothing,
    Aggregate(Box<dyn Accumulator>),
    First(Option<Datum>),
    Lag(VecDeque<Datum>),
}

impl WindowPlan {
    /// Whether its result for a row is known when the row and those that are alike have come.
    pub(crate) fn runs(&self) -> bool {
        use crate::plan::node::BoundPlan::*;
        let is_of_past = matches!((&self.start, &self.end), (UnboundedPreceding, CurrentRow));
        // Without an order all rows are alike.
        let needs_all = !self.rows && self.order.is_empty();
        match self.function {
            WindowFunction::RowNumber | WindowFunction::Rank | WindowFunction::DenseRank => true,
            WindowFunction::Lag => self.lag().is_some(),
            WindowFunction::FirstValue => {
                matches!((&self.start, &self.end), (UnboundedPreceding, CurrentRow | UnboundedFollowing))
            }
            WindowFunction::LastValue | WindowFunction::Aggregate(_) => is_of_past && !needs_all,
            _ => false,
        }
    }
    /// How many rows back `lag` looks, if it is always as many.
    fn lag(&self) -> Option<usize> {
        match self.args.get(1).map(|offset| &offset.expr) {
            None => Some(1),
            Some(crate::plan::expr::Expr::Const(Datum::Int(n))) => usize::try_from(*n).ok().filter(|n| *n <= BATCH),
            Some(_) => None,
        }
    }
    fn needs_peers(&self) -> bool {
        !self.rows && matches!(self.function, WindowFunction::LastValue | WindowFunction::Aggregate(_))
    }
}

impl InOrder {
    /// `most`: rows whose first result is above it may be left out.
    pub(crate) async fn open<T: Transaction>(
        input: Op,
        calls: &[WindowPlan],
        most: Option<&Scalar>,
        frame: &Frame,
        rt: &mut Runtime<'_, T>,
    ) -> Result<InOrder> {
        // Partitions are looked at one by one.
        let is_partitioned = calls.iter().any(|call| !call.partition.is_empty());
        let past = |call: &WindowPlan| match &call.function {
            WindowFunction::Aggregate(a) => Past::Aggregate(a.start()),
            WindowFunction::FirstValue => Past::First(None),
            WindowFunction::Lag => Past::Lag(VecDeque::new()),
            _ => Past::Nothing,
        };
        let running = (!is_partitioned).then(|| Running {
            count: 0,
            before: 0,
            different: 0,
            order: None,
            needs_peers: calls.iter().any(WindowPlan::needs_peers),
            calls: calls.iter().map(past).collect(),
        });
        let (open, ready) = Default::default();
        let most = most_of(most, frame, rt).await?;
        Ok(InOrder { input: Coming::new(input), open, bytes: 0, ready, most, running })
    }

    /// The next rows, `want` at most and one at least; `None` at the end.
    pub(crate) async fn next<T: Transaction>(
        &mut self,
        calls: &[WindowPlan],
        frame: &Frame,
        rt: &mut Runtime<'_, T>,
        want: usize,
    ) -> Result<Option<Vec<Row>>> {
        let want = want.clamp(1, BATCH);
        while self.ready.len() < want {
            let Some(row) = self.input.next(rt).await? else {
                if self.open.is_empty() {
                    break;
                }
                self.close(calls, frame, rt).await?;
                continue;
            };
            if !self.take(row, calls, frame, rt).await? {
                self.input.end();
            }
        }
        let take = self.ready.len().min(want);
        Ok((take > 0).then(|| self.ready.drain(..take).collect()))
    }

    /// Takes the next row; `false`: no row from here on is asked for.
    async fn take<T: Transaction>(
        &mut self,
        row: Row,
        calls: &[WindowPlan],
        frame: &Frame,
        rt: &mut Runtime<'_, T>,
    ) -> Result<bool> {
        let Some(call) = calls.first() else { return Err(Error::internal("a window without calls")) };
        let order = sort_key(&call.order, &row, frame, rt).await?;
        let partition = match self.running {
            Some(_) => Row::new(),
            None => eval_all(&call.partition, &row, frame, rt).await?,
        };
        let is_next = match &self.running {
            Some(running) => running.needs_peers && self.open.last().is_some_and(|last| last.order != order),
            None => self.open.last().is_some_and(|last| last.partition != partition),
        };
        if is_next {
            self.close(calls, frame, rt).await?;
        }
        if let Some(running) = &mut self.running {
            if running.order.as_ref() != Some(&order) {
                running.before = running.count;
                running.different += 1;
                running.order = Some(order.clone());
            }
            // Rows that wait are like this one, and have results of it.
            let is_beyond = |most| running.next_number(call).is_some_and(|number| number > most);
            if self.open.is_empty() && self.most.is_some_and(is_beyond) {
                return Ok(false);
            }
            running.count += 1;
        } else if calls.len() == 1
            && matches!(call.function, WindowFunction::RowNumber)
            && self.most.is_some_and(|most| self.open.len() as i64 >= most.max(0))
            && !self.open.is_empty()
        {
            // The others of this partition have higher numbers.
            return Ok(true);
        }
        self.bytes += rt.keep(std::slice::from_ref(&row))?;
        self.bytes += rt.keep_key(&order, call.order.iter().map(|k| &k.expr))?;
        self.open.push(Keyed { partition, order, row });
        if self.running.as_ref().is_some_and(|running| !running.needs_peers) {
            self.close(calls, frame, rt).await?;
        }
        Ok(true)
    }

    /// Computes the results of the rows that have waited for others.
    async fn close<T: Transaction>(&mut self, calls: &[WindowPlan], frame: &Frame, rt: &mut Runtime<'_, T>) -> Result<()> {
        let mut open = std::mem::take(&mut self.open);
        match &mut self.running {
            Some(running) => running.results(&mut open, calls, frame, rt).await?,
            None => {
                for call in calls {
                    let results = partition(&open, call, frame, rt).await?;
                    for (k, result) in open.iter_mut().zip(results) {
                        rt.step().await?;
                        k.row.push(result);
                    }
                }
            }
        }
        for k in open.take() {
            rt.step().await?;
            self.ready.push_back(k.row);
        }
        rt.shared.memory = rt.shared.memory.saturating_sub(std::mem::take(&mut self.bytes));
        Ok(())
    }
}

impl Running {
    /// The number that a call gives the row that comes.
    fn next_number(&self, call: &WindowPlan) -> Option<i64> {
        match call.function {
            WindowFunction::RowNumber => Some(self.count + 1),
            WindowFunction::Rank => Some(self.before + 1),
            WindowFunction::DenseRank => Some(self.different),
            _ => None,
        }
    }

    /// The results of rows that are alike, or of one row: the last ones that have come.
    async fn results<T: Transaction>(
        &mut self,
        open: &mut [Keyed],
        calls: &[WindowPlan],
        frame: &Frame,
        rt: &mut Runtime<'_, T>,
    ) -> Result<()> {
        let first = self.count - open.len() as i64;
        for (at, call) in calls.iter().enumerate() {
            // Rows carry the results of the calls before this one: arguments do not see them.
            let mut args = Bulk::from(Vec::with_capacity(open.len()));
            for k in open.iter() {
                rt.step().await?;
                let counts = all_true(call.filter.as_slice(), &k.row, frame, rt).await?;
                args.push(if counts { Some(eval_all(&call.args, &k.row, frame, rt).await?) } else { None });
            }
            let past = &mut self.calls[at];
            let shared = match (&call.function, &mut *past) {
                (WindowFunction::Rank, _) => Some(Datum::Int(self.before + 1)),
                (WindowFunction::DenseRank, _) => Some(Datum::Int(self.different)),
                (WindowFunction::FirstValue, Past::First(known)) => {
                    Some(known.get_or_insert_with(|| args.first().map_or(Datum::Null, value)).clone())
                }
                (WindowFunction::LastValue, _) if !call.rows => Some(args.last().map_or(Datum::Null, value)),
                (WindowFunction::Aggregate(_), Past::Aggregate(state)) if !call.rows => {
                    for args in args.iter().flatten() {
                        rt.step().await?;
                        state.add(rt.ctx.eval, args)?;
                    }
                    Some(state.finish(rt.ctx.eval)?)
                }
                _ => None,
            };
            for (n, (k, args)) in open.iter_mut().zip(args.iter()).enumerate() {
                rt.step().await?;
                let result = match &shared {
                    Some(result) => result.clone(),
                    None => past.of_row(call, first + n as i64 + 1, args, rt.ctx.eval)?,
                };
                k.row.push(result);
            }
        }
        Ok(())
    }
}

impl Past {
    /// The result for the next row alone. `number`: its place.
    fn of_row(&mut self, call: &WindowPlan, number: i64, args: &Option<Row>, context: &EvalContext) -> Result<Datum> {
        match (&call.function, self) {
            (WindowFunction::RowNumber, _) => Ok(Datum::Int(number)),
            (WindowFunction::LastValue, _) => Ok(value(args)),
            (WindowFunction::Lag, Past::Lag(past)) => {
                let back = call.lag().unwrap_or(1);
                past.push_back(value(args));
                let default = || args.as_ref().and_then(|a| a.get(2).cloned()).unwrap_or(Datum::Null);
                let result = if past.len() > back { past[past.len() - 1 - back].clone() } else { default() };
                if past.len() > back {
                    past.pop_front();
                }
                Ok(result)
            }
            (WindowFunction::Aggregate(_), Past::Aggregate(state)) => {
                if let Some(args) = args {
                    state.add(context, args)?;
                }
                state.finish(context)
            }
            _ => Err(Error::internal("this window function needs rows to come")),
        }
    }
}

/// The first argument.
fn value(args: &Option<Row>) -> Datum {
    args.as_ref().and_then(|a| a.first().cloned()).unwrap_or(Datum::Null)
}
