//! Locks the rows that a result is made of, above everything that decides which ones these are.
//!
//! What was read before a row is locked may be out of date when the lock is there: who held the row
//! has changed it, and certification would refuse the transaction. So the input is run, its rows
//! are locked, and it is run again under the locks: until all rows that it gives are locked, as
//! [`super::scan`] does with a page. Only what the last run has read counts as read. PostgreSQL
//! computes the row in question again from its newest version (`EvalPlanQual`) and leaves
//! everything else as it was; here all of a statement is of one moment.
//!
//! An input that does not say the same twice (`ORDER BY random()`), or has handed on rows already,
//! is not run again. Its rows are locked on top of what it has read, and if that has changed, the
//! transaction is refused (40001).
//!
//! # Rows that are skipped
//!
//! `SKIP LOCKED` promises of a row that it gives: it is locked, and it is as shown. It promises
//! nothing of rows that it leaves out: any of them may have been held by somebody. So if the locked
//! table is all that the input reads, only the rows that are given are certified. Otherwise the
//! workers of a job queue would read all jobs to find the first, and whoever finishes his would
//! refuse all others. What is given was right at the moment of the lock: until a row of a group was
//! locked or found busy, which its primary says, all reads count. Nothing rests on them afterwards,
//! so who wants more rows runs the input from its beginning again and passes over those that he
//! has.

use super::eval::{Frame, Row};
use super::op::{Op, State};
use super::scan::RELOCKS_MAX;
use super::{BATCH, Runtime};
use crate::env::{OnLocked, Savepoint, Transaction};
use crate::plan::node::{LockPlan, LockedPlan, Node};
use crate::types::Datum;
use meridian_base::{Error, GroupId, Key, Result};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// A row of the table with this number in the plan.
type Place = (usize, GroupId, Key);

/// The state of a [`Node::LockRows`].
pub(crate) struct LockState {
    input: Box<Op>,
    /// Rows of this run that nobody has looked at yet.
    ahead: VecDeque<Row>,
    held: BTreeSet<Place>,
    skipped: BTreeSet<Place>,
    /// The rows that were handed on are made of these.
    given: BTreeSet<Place>,
    since: Savepoint,
    /// How much was read in each group before.
    before: BTreeMap<GroupId, usize>,
    /// The groups whose primary was asked for a row.
    asked: BTreeSet<GroupId>,
    runs: u32,
    has_given: bool,
    is_over: bool,
}

/// The next rows, all locked.
pub(crate) async fn next<T: Transaction>(
    op: &mut Op,
    input: &Arc<Node>,
    plan: &LockPlan,
    rt: &mut Runtime<'_, T>,
    want: usize,
) -> Result<Option<Vec<Row>>> {
    if matches!(op.state, State::New) {
        op.state = State::Locks(Box::new(LockState {
            input: op.child(input),
            ahead: VecDeque::new(),
            held: BTreeSet::new(),
            skipped: BTreeSet::new(),
            given: BTreeSet::new(),
            since: rt.txn.savepoint(),
            before: plan.groups.iter().map(|group| (*group, rt.txn.reads_in(*group))).collect(),
            asked: BTreeSet::new(),
            runs: 1,
            has_given: false,
            is_over: false,
        }));
    }
    let (node, frame) = (input.clone(), op.frame.clone());
    let State::Locks(state) = &mut op.state else { return Ok(None) };
    if state.is_over {
        return Ok(None);
    }
    if !plan.is_repeatable || (state.has_given && !plan.reads_only_skipped) {
        return state.go_on(plan, rt, want.max(1)).await;
    }
    if state.has_given {
        // What others have read meanwhile is none of its own.
        state.before.iter_mut().for_each(|(group, before)| *before = rt.txn.reads_in(*group));
        state.start_again(&node, &frame);
        state.runs = 1;
    }
    // What was computed for others stays; what is computed here is computed again in every run.
    let kept = std::mem::take(&mut rt.shared.memo.subqueries);
    let rows = loop {
        match state.run(plan, rt, want.max(1)).await {
            Ok(Run::Again) => {}
            Ok(Run::Done(rows)) => break Ok(rows),
            Err(e) => break Err(e),
        }
        state.forget(plan, rt);
        rt.shared.forget_subqueries();
        state.start_again(&node, &frame);
        state.runs += 1;
        if state.runs > RELOCKS_MAX {
            break Err(Error::retry("could not serialize access: rows kept changing while they were being locked"));
        }
        rt.pause().await?;
    };
    rt.shared.memo.subqueries.extend(kept);
    rows
}

enum Run {
    /// Rows were locked that were not before.
    Again,
    Done(Option<Vec<Row>>),
}

impl LockState {
    fn start_again(&mut self, input: &Arc<Node>, frame: &Frame) {
        *self.input = Op::new(input, frame);
        self.ahead.clear();
    }

    /// A run from the beginning, as far as `want` rows: all of them are locked when it ends. The
    /// first of them, if they were before.
    async fn run<T: Transaction>(&mut self, plan: &LockPlan, rt: &mut Runtime<'_, T>, want: usize) -> Result<Run> {
        let (mut out, mut found, mut is_new) = (Vec::new(), 0, false);
        let mut given = BTreeSet::new();
        while found < want && (is_new || plan.reads_only_skipped || out.len() < BATCH) {
            let Some(rows) = self.some(rt, want - found).await? else {
                self.is_over = !is_new;
                break;
            };
            let places = places_of(plan, &rows)?;
            if places.iter().any(|row| !self.missing(row).is_empty()) {
                // Nothing rests on what this run has read, so no wait can make it stale.
                is_new = true;
                out.clear();
                self.forget(plan, rt);
                self.lock(plan, &places, rt).await?;
            }
            for (row, places) in rows.into_iter().zip(places) {
                let is_given = plan.reads_only_skipped && places.iter().all(|place| self.given.contains(place));
                if is_given || places.iter().any(|place| self.skipped.contains(place)) {
                    continue;
                }
                found += 1;
                if !is_new {
                    given.extend(places);
                    out.push(row);
                }
            }
        }
        if is_new {
            return Ok(Run::Again);
        }
        self.has_given = true;
        self.certify_only(&given, plan, rt).await?;
        self.given.extend(given);
        if found >= want || self.is_over {
            self.let_go(rt);
        }
        Ok(Run::Done((!out.is_empty()).then_some(out)))
    }

    /// The next rows of an input that is not run again.
    async fn go_on<T: Transaction>(&mut self, plan: &LockPlan, rt: &mut Runtime<'_, T>, want: usize) -> Result<Option<Vec<Row>>> {
        let mut out = Vec::new();
        while out.is_empty() {
            let Some(rows) = self.some(rt, want).await? else {
                self.is_over = true;
                self.let_go(rt);
                return Ok(None);
            };
            let places = places_of(plan, &rows)?;
            if self.lock(plan, &places, rt).await? {
                return Err(Error::retry("could not serialize access: a row is gone that was to be locked"));
            }
            for (row, places) in rows.into_iter().zip(places) {
                if !places.iter().any(|place| self.skipped.contains(place)) {
                    self.given.extend(places);
                    out.push(row);
                }
            }
        }
        Ok(Some(out))
    }

    /// So many rows of the input at most.
    async fn some<T: Transaction>(&mut self, rt: &mut Runtime<'_, T>, most: usize) -> Result<Option<Vec<Row>>> {
        if self.ahead.is_empty() {
            match self.input.next(rt, most).await? {
                Some(rows) => self.ahead = rows.into(),
                None => return Ok(None),
            }
        }
        let most = most.min(BATCH).min(self.ahead.len());
        Ok(Some(self.ahead.drain(..most).collect()))
    }

    /// What has to be locked for a row; nothing, if it is left out.
    fn missing<'p>(&self, places: &'p [Place]) -> Vec<&'p Place> {
        match places.iter().any(|place| self.skipped.contains(place)) {
            true => Vec::new(),
            false => places.iter().filter(|place| !self.held.contains(*place)).collect(),
        }
    }

    /// Locks what is missing for some rows, in their order. Whether one of the rows to be locked is
    /// not there.
    async fn lock<T: Transaction>(&mut self, plan: &LockPlan, rows: &[Vec<Place>], rt: &mut Runtime<'_, T>) -> Result<bool> {
        let mut is_gone = false;
        for (at, table) in plan.tables.iter().enumerate() {
            let mut wanted: BTreeMap<GroupId, Vec<Key>> = BTreeMap::new();
            let mut seen = BTreeSet::new();
            // Who leaves out a row because of one of its tables need not lock those of the others.
            for place in rows.iter().flat_map(|row| self.missing(row)).filter(|place| place.0 == at) {
                if seen.insert(place.clone()) {
                    wanted.entry(place.1).or_default().push(place.2.clone());
                }
            }
            // Where no entries are taken, the commit certifies what was read.
            let (asked, others): (Vec<_>, Vec<_>) =
                wanted.into_iter().partition(|(group, _)| rt.txn.takes_entries(*group, table.locking));
            for (group, keys) in others {
                self.held.extend(keys.into_iter().map(|key| (at, group, key)));
            }
            let found = self.read(asked.clone(), plan, at, rt).await?;
            for ((group, keys), values) in asked.into_iter().zip(found) {
                self.asked.insert(group);
                for (key, value) in keys.into_iter().zip(values) {
                    match (value, table.locking.if_busy()) {
                        (None, Some(OnLocked::Skip)) => self.skipped.insert((at, group, key)),
                        (value, _) => {
                            is_gone |= value.is_none();
                            self.held.insert((at, group, key))
                        }
                    };
                }
            }
        }
        Ok(is_gone)
    }

    /// Rows of a table, locked as it says.
    async fn read<T: Transaction>(
        &self,
        reads: Vec<(GroupId, Vec<Key>)>,
        plan: &LockPlan,
        at: usize,
        rt: &mut Runtime<'_, T>,
    ) -> Result<Vec<Vec<Option<bytes::Bytes>>>> {
        let table = &plan.tables[at];
        rt.ctx.stay_home(reads.iter().map(|(group, _)| *group), table.locking)?;
        match reads.as_slice() {
            [] => Ok(Vec::new()),
            [(group, keys)] => Ok(vec![rt.txn.get_many(*group, keys, table.mask, table.locking).await?]),
            _ => rt.txn.get_each(reads, table.mask, table.locking).await,
        }
    }

    /// Forgets what this run has read.
    fn forget<T: Transaction>(&self, plan: &LockPlan, rt: &mut Runtime<'_, T>) {
        for group in &plan.groups {
            rt.txn.forget_reads(*group, self.before[group]..usize::MAX);
        }
    }

    /// Lets go what was locked in an earlier run and is not in the result.
    fn let_go<T: Transaction>(&mut self, rt: &mut Runtime<'_, T>) {
        let mut others: BTreeMap<GroupId, Vec<Key>> = BTreeMap::new();
        for place in self.held.difference(&self.given) {
            others.entry(place.1).or_default().push(place.2.clone());
        }
        self.held.retain(|place| self.given.contains(place));
        // The same row may be held for another table of the query.
        let kept: BTreeSet<(GroupId, &Key)> = self.held.iter().map(|(_, group, key)| (*group, key)).collect();
        for (group, keys) in &mut others {
            keys.retain(|key| !kept.contains(&(*group, key)));
            rt.txn.leave_queues_of(*group, keys, self.since);
        }
    }

    /// Lets nothing count as read but these rows, which are given, where others are skipped. They
    /// are read once more for that, before what led to them is forgotten: if they are not what they
    /// were, the transaction is refused.
    async fn certify_only<T: Transaction>(
        &mut self,
        rows: &BTreeSet<Place>,
        plan: &LockPlan,
        rt: &mut Runtime<'_, T>,
    ) -> Result<()> {
        if !plan.reads_only_skipped {
            return Ok(());
        }
        let ends: Vec<(GroupId, usize)> = self.asked.iter().map(|group| (*group, rt.txn.reads_in(*group))).collect();
        let mut given: BTreeMap<GroupId, Vec<Key>> = BTreeMap::new();
        for (_, group, key) in rows {
            given.entry(*group).or_default().push(key.clone());
        }
        let found = self.read(given.into_iter().collect(), plan, 0, rt).await?;
        if found.iter().flatten().any(Option::is_none) {
            return Err(Error::retry("could not serialize access: a row is gone that was locked"));
        }
        for (group, end) in ends {
            rt.txn.forget_reads(group, self.before[&group]..end);
        }
        Ok(())
    }
}

/// The locked rows that each row is made of.
fn places_of(plan: &LockPlan, rows: &[Row]) -> Result<Vec<Vec<Place>>> {
    let place = |(at, table): (usize, &LockedPlan), row: &Row| {
        let mut found = vec![Datum::Null; table.plan.types.len()];
        for (ordinal, slot) in &table.place {
            found[*ordinal as usize] = row[*slot].clone();
        }
        Ok::<_, Error>((at, table.plan.group_of(&found)?, table.plan.primary_key(&found)?))
    };
    rows.iter().map(|row| plan.tables.iter().enumerate().map(|table| place(table, row)).collect()).collect()
}
