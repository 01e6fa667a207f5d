//! The states of an aggregate, one for each group.

use super::column::{Held, Values};
use crate::plan::eval::bulk::Bulk;
use crate::types::functions::{Accumulator, Aggregate, IntSum, NumericSum};
use crate::types::numeric::Numeric;
use crate::types::{Datum, EvalContext, Type};
use meridian_base::{Error, Result};

pub(super) enum States {
    /// `count`: rows whose argument is not `NULL`, or all.
    Count(Bulk<Vec<i64>>),
    /// `sum` and `avg`, with the number of values.
    Ints(Bulk<Vec<(i128, i64)>>),
    Decimals(Bulk<Vec<(Numeric, i64)>>),
    /// `min`, and `max` (true).
    Extreme(Bulk<Vec<Datum>>, bool),
    /// Others, and by how many bytes what they keep of values has grown since somebody asked.
    Any(Bulk<Vec<Box<dyn Accumulator>>>, usize),
}

/// A row that an aggregate refused, by its place in the batch.
pub(super) type Refused = (u32, Error);

impl States {
    pub(super) fn of(a: &Aggregate) -> States {
        match (a.name, a.args.as_slice()) {
            ("count", [] | [_]) => States::Count(Bulk::default()),
            ("sum" | "avg", [Type::Int2 | Type::Int4 | Type::Int8]) => States::Ints(Bulk::default()),
            ("sum" | "avg", [Type::Numeric(_)]) => States::Decimals(Bulk::default()),
            ("min" | "max", [_]) => States::Extreme(Bulk::default(), a.name == "max"),
            _ => States::Any(Bulk::default(), 0),
        }
    }
    /// For a new group.
    pub(super) fn start(&mut self, a: &Aggregate) {
        match self {
            States::Count(counts) => counts.push(0),
            States::Ints(sums) => sums.push((0, 0)),
            States::Decimals(sums) => sums.push((Numeric::ZERO, 0)),
            States::Extreme(best, _) => best.push(Datum::Null),
            States::Any(states, _) => states.push(a.start()),
        }
    }
    /// Adds one row's arguments to a group.
    pub(super) fn add(&mut self, group: u32, args: &[Datum], ctx: &EvalContext) -> Result<()> {
        let at = group as usize;
        match (self, args) {
            (States::Count(counts), args) => counts[at] += i64::from(!args.iter().any(Datum::is_null)),
            (States::Ints(sums), [Datum::Int(v)]) => add_int(&mut sums[at], *v),
            (States::Decimals(sums), [Datum::Numeric(v)]) => add_numeric(&mut sums[at], v)?,
            (States::Ints(_) | States::Decimals(_), _) => {}
            (States::Extreme(best, max), [v]) => {
                if !v.is_null() && (best[at].is_null() || is_better(v.cmp(&best[at]), *max)) {
                    best[at] = v.clone();
                }
            }
            (States::Extreme(..), _) => {}
            (States::Any(states, grown), args) => {
                let before = states[at].held();
                states[at].add(ctx, args)?;
                *grown += states[at].held().saturating_sub(before);
            }
        }
        Ok(())
    }
    /// Adds the selected rows' arguments to their groups, up to the first row that is refused.
    pub(super) fn add_all(
        &mut self,
        groups: &[u32],
        selected: &[u32],
        args: &[Held<'_, '_>],
        ctx: &EvalContext,
    ) -> Result<(), Refused> {
        let group = |row: u32| groups[row as usize] as usize;
        match (self, args) {
            (States::Count(counts), []) => selected.iter().for_each(|row| counts[group(*row)] += 1),
            (States::Count(counts), [arg]) => {
                selected.iter().for_each(|row| counts[group(*row)] += i64::from(!arg.is_null(*row as usize)));
            }
            (States::Ints(sums), [arg]) if matches!(arg.values, Values::Int(_)) => {
                let Values::Int(values) = &arg.values else { return Ok(()) };
                let given = selected.iter().filter(|row| !arg.is_null(**row as usize));
                given.for_each(|row| add_int(&mut sums[group(*row)], values[arg.at(*row as usize)]));
            }
            (States::Decimals(sums), [arg]) if matches!(arg.values, Values::Short(..)) => {
                let Values::Short(values, scale) = &arg.values else { return Ok(()) };
                for row in selected.iter().filter(|row| !arg.is_null(**row as usize)) {
                    let (value, sum) = (i128::from(values[arg.at(*row as usize)]), &mut sums[group(*row)]);
                    if let Numeric::Small { mantissa, scale: of_sum } = &mut sum.0
                        && of_sum == scale
                        && let Some(total) = mantissa.checked_add(value)
                    {
                        *mantissa = total;
                        sum.1 += 1;
                    } else {
                        add_numeric(sum, &Numeric::Small { mantissa: value, scale: *scale }).map_err(|e| (*row, e))?;
                    }
                }
            }
            (States::Extreme(best, max), [arg]) => {
                for row in selected.iter().filter(|row| !arg.is_null(**row as usize)) {
                    let best = &mut best[group(*row)];
                    if best.is_null() || is_better(arg.compare(*row as usize, best), *max) {
                        *best = arg.datum(*row as usize);
                    }
                }
            }
            (this, args) => {
                let mut values = Vec::with_capacity(args.len());
                for row in selected {
                    values.clear();
                    values.extend(args.iter().map(|arg| arg.datum(*row as usize)));
                    this.add(groups[*row as usize], &values, ctx).map_err(|e| (*row, e))?;
                }
            }
        }
        Ok(())
    }
    /// By how many bytes it has grown since the last call, besides what each group takes.
    pub(super) fn grown(&mut self) -> usize {
        match self {
            States::Any(_, grown) => std::mem::take(grown),
            _ => 0,
        }
    }
    /// The result of a group.
    pub(super) fn finish(&self, group: usize, a: &Aggregate, ctx: &EvalContext) -> Result<Datum> {
        match self {
            States::Count(counts) => Ok(Datum::Int(counts[group])),
            States::Ints(sums) => {
                let mut state = IntSum::of(a);
                (state.sum, state.count) = sums[group];
                state.finish(ctx)
            }
            States::Decimals(sums) => {
                let mut state = NumericSum::of(a);
                (state.sum, state.count) = sums[group].clone();
                state.finish(ctx)
            }
            States::Extreme(best, _) => Ok(best[group].clone()),
            States::Any(states, _) => states[group].finish(ctx),
        }
    }
}

fn add_int((sum, count): &mut (i128, i64), v: i64) {
    *sum += i128::from(v);
    *count += 1;
}

fn add_numeric((sum, count): &mut (Numeric, i64), v: &Numeric) -> Result<()> {
    *sum = sum.add(v)?;
    *count += 1;
    Ok(())
}

fn is_better(order: std::cmp::Ordering, max: bool) -> bool {
    if max { order.is_ge() } else { order.is_le() }
}
