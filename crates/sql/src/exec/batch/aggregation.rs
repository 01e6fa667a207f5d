//! Aggregation over a scan.

use super::Failed;
use super::column::Held;
use super::decode::Batch;
use super::groups::{Groups, hash_of, hashes_of};
use super::kernel::{Given, Kernel};
use super::scan::{self, Scanning, Sink};
use super::states::{Refused, States};
use crate::env::Transaction;
use crate::exec::Runtime;
use crate::exec::eval::{Frame, Row, all_true, eval_all};
use crate::exec::sort::sort_by;
use crate::exec::spill::Sorter;
use crate::exec::spill::beyond::Beyond;
use crate::plan::eval::bulk::Bulk;
use crate::plan::node::{AggPlan, Node, Scalar, Scan};
use crate::types::Datum;
use meridian_base::Result;
use std::sync::Arc;

/// The scan below an aggregation, if the two run in batches.
pub(crate) fn below<'n>(input: &'n Node, keys: &'n [Scalar], aggs: &'n [AggPlan]) -> Option<&'n Arc<Scan>> {
    let of_aggs = aggs.iter().flat_map(|a| a.args.iter().chain(&a.filter));
    let suits = aggs.iter().all(|a| !a.distinct && a.order.is_empty());
    if suits { scan::below(input, keys.iter().chain(of_aggs)) } else { None }
}

/// A row per group: keys, then results; and the rows of the groups for which there was no room.
/// `None`: this does not run in batches.
pub(crate) async fn rows<T: Transaction>(
    input: &Arc<Node>,
    keys: &[Scalar],
    aggs: &[AggPlan],
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Option<(Vec<Row>, Option<Sorter>)>> {
    let Some(grouped) = grouped(input, keys, aggs, Beyond::new(keys.len()), frame, rt).await? else { return Ok(None) };
    grouped.finish(rt).await.map(Some)
}

/// The keys that rows have, each once, in the order in which they came; and those for which there
/// was no room. `None`: this does not run in batches.
pub(crate) async fn distinct<T: Transaction>(
    input: &Arc<Node>,
    keys: &[Scalar],
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Option<(Bulk<Vec<Row>>, Option<Sorter>)>> {
    let grouped = grouped(input, keys, &[], Beyond::new(keys.len()), frame, rt).await?;
    Ok(grouped.map(|grouped| (grouped.groups.keys, grouped.beyond.into_sorter())))
}

async fn grouped<'a, T: Transaction>(
    input: &Arc<Node>,
    keys: &'a [Scalar],
    aggs: &'a [AggPlan],
    beyond: Beyond,
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Option<Grouped<'a>>> {
    let Some(s) = below(input, keys, aggs) else { return Ok(None) };
    if scan::is_off() {
        return Ok(None);
    }
    let states = aggs.iter().map(|a| States::of(&a.aggregate)).collect();
    let mut grouped = Grouped { keys, aggs, groups: Groups::default(), states, beyond };
    if keys.is_empty() {
        grouped.add(0, Vec::new());
    }
    Scanning { s, frame }.run(input, &mut grouped, rt).await?;
    Ok(Some(grouped))
}

/// The groups so far.
struct Grouped<'a> {
    keys: &'a [Scalar],
    aggs: &'a [AggPlan],
    groups: Groups,
    /// Of each aggregate.
    states: Vec<States>,
    /// Rows of groups that are not among them.
    beyond: Beyond,
}

/// Instead of the number of a group: that of a row whose group is not held.
const BEYOND: u32 = u32::MAX;

struct Program {
    keys: Vec<Kernel>,
    /// The condition and the arguments of each aggregate.
    aggs: Vec<(Option<Kernel>, Vec<Kernel>)>,
}

/// The rows that an aggregate's own condition selects (all, if it has none), and its arguments.
type Args<'a, 'p> = (Option<Vec<u32>>, Vec<Held<'a, 'p>>);

impl Program {
    /// Keys and arguments for the selected rows.
    fn compute<'a, 'p>(&'p self, batch: &'a Batch<'p>, given: Given) -> Result<(Vec<Held<'a, 'p>>, Vec<Args<'a, 'p>>), Failed> {
        let all = |kernels: &'p [Kernel], selected: &[u32]| {
            kernels.iter().map(|kernel| kernel.compute(batch, selected, given)).collect::<Result<Vec<_>, Failed>>()
        };
        let keys = all(&self.keys, &batch.selected)?;
        let mut args = Vec::with_capacity(self.aggs.len());
        for (filter, kernels) in &self.aggs {
            let some = filter.as_ref().map(|filter| filter.narrow(batch, &batch.selected, given)).transpose()?;
            let computed = all(kernels, some.as_deref().unwrap_or(&batch.selected))?;
            args.push((some, computed));
        }
        Ok((keys, args))
    }
}

impl<T: Transaction> Sink<T> for Grouped<'_> {
    type Program = Program;

    fn program(&self, of: impl Fn(&Scalar) -> Kernel) -> Program {
        let all = |list: &[Scalar]| list.iter().map(&of).collect::<Vec<_>>();
        let aggs = self.aggs.iter().map(|a| (a.filter.as_ref().map(&of), all(&a.args))).collect();
        Program { keys: all(self.keys), aggs }
    }

    fn has_rows(program: &Program) -> bool {
        let of_aggs = program.aggs.iter().flat_map(|(filter, args)| filter.iter().chain(args));
        program.keys.iter().chain(of_aggs).any(Kernel::has_rows)
    }

    fn take_batch<'p>(
        &mut self,
        program: &'p Program,
        batch: &Batch<'p>,
        of: &Scanning,
        rt: &mut Runtime<'_, T>,
    ) -> Result<Option<()>> {
        let Ok((keys, args)) = program.compute(batch, of.given(rt)) else { return Ok(None) };
        let (of_rows, has_others) = self.groups_of(&keys, batch, rt)?;
        let held = |rows: &[u32]| rows.iter().copied().filter(|row| of_rows[*row as usize] != BEYOND).collect::<Vec<_>>();
        // Of what the aggregates refuse, the first row's error is raised.
        let mut refused: Option<Refused> = None;
        for (states, (selected, args)) in self.states.iter_mut().zip(&args) {
            let selected = selected.as_deref().unwrap_or(&batch.selected);
            let some = has_others.then(|| held(selected));
            let selected = some.as_deref().unwrap_or(selected);
            if let Err((row, e)) = states.add_all(&of_rows, selected, args, rt.ctx.eval)
                && refused.as_ref().is_none_or(|(first, _)| row < *first)
            {
                refused = Some((row, e));
            }
        }
        match refused {
            Some((_, e)) => Err(e),
            None => self.hold_grown(rt).map(Some),
        }
    }

    async fn take_row(&mut self, row: Row, of: &Scanning<'_>, rt: &mut Runtime<'_, T>) -> Result<()> {
        let key = eval_all(self.keys, &row, of.frame, rt).await?;
        let hash = hash_of(&key);
        let group = match self.groups.find(hash, |of_group| of_group == key.as_slice()) {
            Some(group) => group,
            None if self.beyond.takes_new(rt) => return self.beyond.push(key, row, rt),
            None => {
                rt.keep(std::slice::from_ref(&key))?;
                self.add(hash, key)
            }
        };
        for (a, states) in self.aggs.iter().zip(&mut self.states) {
            if all_true(a.filter.as_slice(), &row, of.frame, rt).await? {
                let args = eval_all(&a.args, &row, of.frame, rt).await?;
                states.add(group, &args, rt.ctx.eval)?;
            }
        }
        self.hold_grown(rt)
    }

    async fn rest(&mut self, rt: &mut Runtime<'_, T>) -> Result<()> {
        self.beyond.trim(rt).await
    }
}

impl Grouped<'_> {
    /// Accounts for what aggregates keep of the values.
    fn hold_grown<T: Transaction>(&mut self, rt: &mut Runtime<'_, T>) -> Result<()> {
        let grown = self.states.iter_mut().map(States::grown).sum();
        if grown > 0 { rt.hold(grown) } else { Ok(()) }
    }
    fn add(&mut self, hash: u64, key: Row) -> u32 {
        self.states.iter_mut().zip(self.aggs).for_each(|(states, a)| states.start(&a.aggregate));
        self.groups.add(hash, key)
    }

    /// The number of each selected row's group, and whether there are rows whose group is not held.
    fn groups_of<T: Transaction>(
        &mut self,
        keys: &[Held<'_, '_>],
        batch: &Batch<'_>,
        rt: &mut Runtime<'_, T>,
    ) -> Result<(Vec<u32>, bool)> {
        let mut of_rows = vec![0; batch.rows];
        if keys.is_empty() {
            return Ok((of_rows, false));
        }
        let mut has_others = false;
        let hashes = hashes_of(keys, &batch.selected, batch.rows);
        for row in &batch.selected {
            let row = *row as usize;
            let is = |of_group: &[Datum]| keys.iter().zip(of_group).all(|(key, value)| key.compare(row, value).is_eq());
            of_rows[row] = match self.groups.find(hashes[row], is) {
                Some(group) => group,
                None => {
                    let key: Row = keys.iter().map(|key| key.datum(row)).collect();
                    if self.beyond.takes_new(rt) {
                        has_others = true;
                        self.beyond.push(key, batch.row(row)?, rt)?;
                        BEYOND
                    } else {
                        rt.keep(std::slice::from_ref(&key))?;
                        self.add(hashes[row], key)
                    }
                }
            };
        }
        Ok((of_rows, has_others))
    }

    /// The groups in the order of their keys, and the rows of others.
    async fn finish<T: Transaction>(self, rt: &mut Runtime<'_, T>) -> Result<(Vec<Row>, Option<Sorter>)> {
        let Grouped { mut groups, states, aggs, beyond, .. } = self;
        let numbers: Vec<usize> = (0..groups.keys.len()).collect();
        let keys = &groups.keys;
        let numbers = match numbers.len() {
            1 => numbers,
            _ => sort_by(numbers, |a, b| keys[*a].cmp(&keys[*b]), rt).await?,
        };
        let mut out = Vec::with_capacity(numbers.len());
        for group in numbers {
            rt.step().await?;
            let mut row = std::mem::take(&mut groups.keys[group]);
            for (a, states) in aggs.iter().zip(&states) {
                row.push(states.finish(group, &a.aggregate, rt.ctx.eval)?);
            }
            out.push(row);
        }
        Ok((out, beyond.into_sorter()))
    }
}
