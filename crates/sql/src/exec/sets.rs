//! Set-returning functions, in FROM and in select lists: rows as they are asked for.
//!
//! Several functions go side by side; those that end before the longest give `NULL`.

use super::eval::{Frame, Row, eval_all};
use super::op::{Op, State};
use super::{BATCH, BATCH_BYTES, Runtime, size};
use crate::env::Transaction;
use crate::plan::eval::are_large;
use crate::plan::node::{Node, Scalar};
use crate::types::functions::{SetFunction, SetRows};
use crate::types::{Datum, RecordValue};
use meridian_base::{Error, Result};
use parking_lot::Mutex;
use std::sync::Arc;

type Calls = [(SetFunction, Vec<Scalar>)];

/// The state of the operator.
pub(crate) struct SetState {
    /// What gives the arguments; `None`: they are constants.
    input: Option<Box<Op>>,
    coming: std::vec::IntoIter<Row>,
    /// The row that the functions are called for, and what they have left.
    current: Option<(Row, Running)>,
    /// How many rows there were.
    number: i64,
}

/// Functions that were called.
struct Running {
    /// `None`: at its end. (Never locked: only a mutex can be shared.)
    functions: Vec<Option<Mutex<SetRows>>>,
    /// What is accounted for rows that were computed beforehand.
    bytes: usize,
}

pub(crate) async fn next<T: Transaction>(
    op: &mut Op,
    node: &Node,
    rt: &mut Runtime<'_, T>,
    want: usize,
) -> Result<Option<Vec<Row>>> {
    let frame = op.frame.clone();
    let (input, calls, ordinality) = match node {
        Node::ProjectSet { input, calls } => (Some(input), calls, false),
        Node::Function { calls, ordinality } => (None, calls, *ordinality),
        _ => return Err(Error::internal("not a set-returning function")),
    };
    if matches!(op.state, State::New) {
        let current = match input {
            Some(_) => None,
            None => Some((Row::new(), start(calls, &[], &frame, rt).await?)),
        };
        let input = input.map(|input| op.child(input));
        op.state = State::Sets(Box::new(SetState { input, coming: Vec::new().into_iter(), current, number: 0 }));
    }
    let State::Sets(state) = &mut op.state else { return Ok(None) };
    let enough = want.clamp(1, BATCH);
    let (mut out, mut bytes) = (Vec::new(), 0);
    while out.len() < enough && bytes < BATCH_BYTES {
        rt.step().await?;
        let Some((row, running)) = &mut state.current else {
            let Some(input) = &mut state.input else { break };
            match state.coming.next() {
                Some(row) => {
                    let running = start(calls, &row, &frame, rt).await?;
                    state.current = Some((row, running));
                }
                None => match input.next(rt, want).await? {
                    Some(rows) => state.coming = rows.into_iter(),
                    None => break,
                },
            }
            continue;
        };
        let Some(values) = running.next(calls)? else {
            rt.shared.memory -= running.bytes;
            state.current = None;
            continue;
        };
        state.number += 1;
        let made: Row = match input {
            Some(_) => row.iter().cloned().chain(one_value_each(calls, values)).collect(),
            None if ordinality => values.into_iter().chain([Datum::Int(state.number)]).collect(),
            None => values,
        };
        bytes += made.iter().map(size).sum::<usize>();
        out.push(made);
    }
    Ok((!out.is_empty()).then_some(out))
}

/// Calls the functions. What has large arguments is computed where it keeps nobody waiting.
async fn start<T: Transaction>(calls: &Calls, row: &[Datum], frame: &Frame, rt: &mut Runtime<'_, T>) -> Result<Running> {
    let mut running = Running { functions: Vec::with_capacity(calls.len()), bytes: 0 };
    for (f, args) in calls {
        let args = eval_all(args, row, frame, rt).await?;
        let rows = match are_large(&args) {
            true => {
                let (f, ctx) = (f.clone(), rt.ctx.eval.clone());
                let rows = rt.aside(move || f.call(&ctx, &args)?.collect::<Result<Vec<Row>>>()).await??;
                running.bytes += rt.keep(&rows)?;
                Box::new(rows.into_iter().map(Ok)) as SetRows
            }
            false => f.call(rt.ctx.eval, &args)?,
        };
        running.functions.push(Some(Mutex::new(rows)));
    }
    Ok(running)
}

impl Running {
    /// The values of the next row; `None` when all functions are at their ends.
    fn next(&mut self, calls: &Calls) -> Result<Option<Row>> {
        let mut values = Row::new();
        let mut any = false;
        for (function, (f, _)) in self.functions.iter_mut().zip(calls) {
            match function.as_mut().and_then(|rows| rows.get_mut().next()).transpose()? {
                Some(row) => {
                    any = true;
                    values.extend(row);
                }
                None => {
                    *function = None;
                    values.extend(f.columns.iter().map(|_| Datum::Null));
                }
            }
        }
        Ok(any.then_some(values))
    }
}

/// In a select list a function of several columns gives rows: one value.
fn one_value_each(calls: &[(SetFunction, Vec<Scalar>)], row: Row) -> Row {
    if calls.iter().all(|(f, _)| f.columns.len() == 1) {
        return row;
    }
    let mut row = row.into_iter();
    let one = |(f, _): &(SetFunction, Vec<Scalar>)| {
        let mut values: Row = row.by_ref().take(f.columns.len()).collect();
        match values.as_slice() {
            [_] => values.remove(0),
            // After the last of its rows, beside the longer ones of another call.
            all if all.iter().all(Datum::is_null) => Datum::Null,
            _ => {
                let (names, types): (Vec<_>, Vec<_>) = f.columns.iter().cloned().unzip();
                Datum::Record(Arc::new(RecordValue { names: names.into(), types: types.into(), values }))
            }
        }
    };
    calls.iter().map(one).collect()
}
