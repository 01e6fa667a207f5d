//! Window functions over rows that come in the order of their windows: whoever needs the first
//! results alone reads no more than the first rows, and nobody keeps all of them.

use super::super::eval::{Frame, Row, all_true, eval_all};
use super::super::op::Op;
use super::super::sort::sort_key;
use super::super::{BATCH, Runtime};
use super::{Keyed, most_of, partition};
use crate::env::Transaction;
use crate::plan::node::{Scalar, WindowPlan};
use crate::plan::rel::WindowFunction;
use crate::types::Datum;
use crate::types::functions::Accumulator;
use meridian_base::{Error, Result};
use std::collections::VecDeque;

/// How many rows are asked for at first: a few may be enough.
const ROWS_FIRST: usize = 64;

/// Calls over one window, and the rows that come in its order.
pub(crate) struct InOrder {
    input: Op,
    /// How many rows are asked for next; none at the end.
    ask: Option<usize>,
    /// Rows of the input that were not looked at.
    rows: VecDeque<Row>,
    /// Rows whose results are not all known: of one partition, or alike in the order.
    open: Vec<Keyed>,
    /// What is accounted for them.
    bytes: usize,
    /// Rows with their results.
    ready: VecDeque<Row>,
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
    /// `is_partitioned`: the window has partitions, which are looked at one by one.
    pub(crate) fn new(input: Op, calls: &[WindowPlan], is_partitioned: bool) -> InOrder {
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
        let (rows, open, ready) = Default::default();
        InOrder { input, ask: Some(ROWS_FIRST), rows, open, bytes: 0, ready, most: None, running }
    }

    /// The next rows, `want` at most and one at least; `None` at the end.
    pub(crate) async fn next<T: Transaction>(
        &mut self,
        calls: &[WindowPlan],
        most: Option<&Scalar>,
        frame: &Frame,
        rt: &mut Runtime<'_, T>,
        want: usize,
    ) -> Result<Option<Vec<Row>>> {
        if self.ask == Some(ROWS_FIRST) {
            self.most = most_of(most, frame, rt).await?;
        }
        let want = want.clamp(1, BATCH);
        while self.ready.len() < want {
            let Some(row) = self.rows.pop_front() else {
                let Some(ask) = self.ask else { break };
                let rows = self.input.next(rt, ask).await?;
                self.ask = rows.is_some().then_some((ask * 2).min(BATCH));
                self.rows = rows.unwrap_or_default().into();
                if self.ask.is_none() {
                    self.close(calls, frame, rt).await?;
                }
                continue;
            };
            rt.step().await?;
            if !self.take(row, calls, frame, rt).await? {
                self.ask = None;
                self.rows.clear();
                self.close(calls, frame, rt).await?;
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
                for call in if open.is_empty() { &[] } else { calls } {
                    let results = partition(&open, call, frame, rt).await?;
                    open.iter_mut().zip(results).for_each(|(k, result)| k.row.push(result));
                }
            }
        }
        self.ready.extend(open.into_iter().map(|k| k.row));
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
            let mut args = Vec::with_capacity(open.len());
            for k in open.iter() {
                rt.step().await?;
                let counts = all_true(call.filter.as_slice(), &k.row, frame, rt).await?;
                args.push(if counts { Some(eval_all(&call.args, &k.row, frame, rt).await?) } else { None });
            }
            let value = |args: &Option<Row>| args.as_ref().and_then(|a| a.first().cloned()).unwrap_or(Datum::Null);
            let last = args.last().map_or(Datum::Null, value);
            let results: Vec<Datum> = match (&call.function, &mut self.calls[at]) {
                (WindowFunction::RowNumber, _) => (1..=open.len() as i64).map(|n| Datum::Int(first + n)).collect(),
                (WindowFunction::Rank, _) => vec![Datum::Int(self.before + 1); open.len()],
                (WindowFunction::DenseRank, _) => vec![Datum::Int(self.different); open.len()],
                (WindowFunction::FirstValue, Past::First(known)) => {
                    let of_first = known.get_or_insert_with(|| args.first().map_or(Datum::Null, value));
                    vec![of_first.clone(); open.len()]
                }
                (WindowFunction::LastValue, _) if call.rows => args.iter().map(value).collect(),
                (WindowFunction::LastValue, _) => vec![last; open.len()],
                (WindowFunction::Lag, Past::Lag(past)) => {
                    let back = call.lag().unwrap_or(1);
                    let mut out = Vec::with_capacity(open.len());
                    for args in &args {
                        past.push_back(value(args));
                        let default = || args.as_ref().and_then(|a| a.get(2).cloned()).unwrap_or(Datum::Null);
                        out.push(if past.len() > back { past[past.len() - 1 - back].clone() } else { default() });
                        while past.len() > back {
                            past.pop_front();
                        }
                    }
                    out
                }
                (WindowFunction::Aggregate(_), Past::Aggregate(state)) => {
                    let mut out = Vec::with_capacity(open.len());
                    for args in &args {
                        rt.step().await?;
                        if let Some(args) = args {
                            state.add(rt.ctx.eval, args)?;
                        }
                        if call.rows {
                            out.push(state.finish(rt.ctx.eval)?);
                        }
                    }
                    if !call.rows {
                        out = vec![state.finish(rt.ctx.eval)?; open.len()];
                    }
                    out
                }
                _ => return Err(Error::internal("this window function needs rows to come")),
            };
            open.iter_mut().zip(results).for_each(|(k, result)| k.row.push(result));
        }
        Ok(())
    }
}
