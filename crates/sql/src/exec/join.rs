//! Joins.
//!
//! * Hash join: the right side in memory by its key, the left side streams.
//! * Loop join: the right side again for each left row, with a frame made of it (LATERAL, lookups
//!   through an index), or from memory if it depends on nothing. Lookups of single keys are made
//!   for a whole batch of left rows at once: one round trip if the group is far away.

use super::bulk::Bulk;
use super::groups::{self, Groups};
use super::op::{Frame, Kept, Op, Row, State, all_true, collect, eval_all};
use super::{BATCH, Runtime, scan};
use crate::env::Transaction;
use crate::plan::physical::{KeyPart, Node, Scalar, Scan};
use crate::plan::rel::JoinKind;
use crate::types::Datum;
use meridian_base::{Error, Key, Result};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

/// The state of a join.
pub(crate) struct JoinState {
    left: Op,
    left_done: bool,
    /// Joined rows not yet handed on.
    out: VecDeque<Row>,
    /// The right side, if it is kept; whether each of its rows found a partner.
    right: Option<Arc<Kept>>,
    matched: Vec<bool>,
    table: Table,
}

/// The rows of the right side by their key.
#[derive(Default)]
struct Table {
    /// The first and the last row of each key. Only looked up in: its order means nothing.
    ends: Bulk<HashMap<Row, (usize, usize)>>,
    /// For each row the next one of the same key.
    next: Vec<Option<usize>>,
}

impl Table {
    /// Room for so many rows: to grow step by step would move all of them at once, again and again.
    fn with_capacity(rows: usize) -> Table {
        Table { ends: HashMap::with_capacity(rows).into(), next: Vec::with_capacity(rows) }
    }
    /// Adds the next row; one without a key has no partner.
    fn add(&mut self, key: Option<Row>) {
        let row = self.next.len();
        self.next.push(None);
        let Some(key) = key else { return };
        match self.ends.entry(key) {
            Entry::Vacant(place) => {
                place.insert((row, row));
            }
            Entry::Occupied(mut place) => {
                let last = std::mem::replace(&mut place.get_mut().1, row);
                self.next[last] = Some(row);
            }
        }
    }
    /// The rows of a key, in their order.
    fn rows(&self, key: &Row) -> impl Iterator<Item = usize> {
        std::iter::successors(self.ends.get(key).map(|(first, _)| *first), |row| self.next[*row])
    }
}

struct Join<'p> {
    kind: JoinKind,
    on: &'p [Scalar],
    widths: (usize, usize),
}

pub(crate) async fn next<T: Transaction>(
    op: &mut Op,
    node: &Node,
    rt: &mut Runtime<'_, T>,
    want: usize,
) -> Result<Option<Vec<Row>>> {
    let frame = op.frame.clone();
    if matches!(op.state, State::New) {
        op.state = State::Join(Box::new(open(op, node, &frame, rt).await?));
    }
    let State::Join(state) = &mut op.state else { return Ok(None) };
    loop {
        if !state.out.is_empty() {
            let take = state.out.len().min(BATCH);
            return Ok(Some(state.out.drain(..take).collect()));
        }
        if state.left_done {
            return Ok(None);
        }
        match state.left.next(rt, want).await? {
            Some(rows) => step(state, node, rows, &frame, rt).await?,
            None => {
                state.left_done = true;
                finish(state, node, rt).await?;
            }
        }
    }
}

async fn open<T: Transaction>(op: &Op, node: &Node, frame: &Frame, rt: &mut Runtime<'_, T>) -> Result<JoinState> {
    let (left, right, keys) = match node {
        Node::HashJoin { left, right, right_keys, .. } => (left, Some(right), Some(right_keys)),
        Node::LoopJoin { left, right, args, .. } => (left, args.is_empty().then_some(right), None),
        _ => return Err(Error::internal("not a join")),
    };
    let mut state = JoinState {
        left: *op.child(left),
        left_done: false,
        out: VecDeque::new(),
        right: None,
        matched: Vec::new(),
        table: Table::default(),
    };
    if let Some(right) = right {
        let rows = Kept::from(collect(right, frame, rt).await?);
        state.matched = vec![false; rows.len()];
        if let Some(keys) = keys {
            state.table = Table::with_capacity(rows.len());
            for row in rows.iter() {
                rt.step().await?;
                let key = eval_all(keys, row, frame, rt).await?;
                // NULL equals nothing.
                state.table.add((!key.iter().any(Datum::is_null)).then_some(key));
            }
        }
        state.right = Some(Arc::new(rows));
    }
    Ok(state)
}

async fn step<T: Transaction>(
    state: &mut JoinState,
    node: &Node,
    rows: Vec<Row>,
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<()> {
    match node {
        Node::HashJoin { kind, left_keys, on, widths, .. } => {
            let join = Join { kind: *kind, on, widths: *widths };
            let right = state.right.clone().unwrap_or_default();
            for row in rows {
                rt.step().await?;
                let key = eval_all(left_keys, &row, frame, rt).await?;
                // No key of the table has a NULL.
                let pairs = state.table.rows(&key).map(|i| (Some(i), &right[i]));
                join.row(row, pairs, &mut state.out, &mut state.matched, frame, rt).await?;
            }
            Ok(())
        }
        Node::LoopJoin { kind, right, args, on, widths, .. } => {
            let join = Join { kind: *kind, on, widths: *widths };
            if let Some(all) = state.right.clone() {
                for row in rows {
                    join.row(
                        row,
                        all.iter().enumerate().map(|(i, r)| (Some(i), r)),
                        &mut state.out,
                        &mut state.matched,
                        frame,
                        rt,
                    )
                    .await?;
                    rt.pause().await?;
                }
                return Ok(());
            }
            let mut frames: Vec<Frame> = Vec::with_capacity(rows.len());
            for row in rows.iter() {
                frames.push(eval_all(args, row, frame, rt).await?.into());
            }
            let mut found = match &**right {
                Node::Scan(s) if is_single_point(s) => {
                    let start = rt.shared.stats.is_some().then(|| rt.ctx.system.now_micros());
                    let found = lookups(s, &frames, rt).await?;
                    if let Some(start) = start {
                        rt.note(right, start, true, found.iter().flatten().count());
                    }
                    Some(found.into_iter())
                }
                _ => None,
            };
            for (row, inner) in rows.into_iter().zip(&frames) {
                let matches = match &mut found {
                    Some(f) => f.next().flatten().into_iter().collect(),
                    None => {
                        let mut op = Op::new(right, inner);
                        let mut matches = Vec::new();
                        // One is enough for who only asks whether there is one.
                        let is_any_enough = kind.is_test() && on.is_empty();
                        while let Some(more) = op.next(rt, if is_any_enough { 1 } else { BATCH }).await? {
                            matches.extend(more);
                            if is_any_enough {
                                break;
                            }
                        }
                        matches
                    }
                };
                join.row(row, matches.iter().map(|r| (None, r)), &mut state.out, &mut state.matched, frame, rt).await?;
            }
            Ok(())
        }
        _ => Err(Error::internal("not a join")),
    }
}

/// Right rows of a full join that found no partner.
async fn finish<T: Transaction>(state: &mut JoinState, node: &Node, rt: &mut Runtime<'_, T>) -> Result<()> {
    let (Node::HashJoin { kind: JoinKind::Full, widths, .. } | Node::LoopJoin { kind: JoinKind::Full, widths, .. }) = node else {
        return Ok(());
    };
    let Some(right) = &state.right else { return Ok(()) };
    for (row, matched) in right.iter().zip(&state.matched) {
        rt.step().await?;
        if !matched {
            state.out.push_back(std::iter::repeat_n(Datum::Null, widths.0).chain(row.iter().cloned()).collect());
        }
    }
    Ok(())
}

impl Join<'_> {
    async fn row<'m, T: Transaction>(
        &self,
        mut left: Row,
        mut candidates: impl Iterator<Item = (Option<usize>, &'m Row)> + Send,
        out: &mut VecDeque<Row>,
        matched: &mut [bool],
        frame: &Frame,
        rt: &mut Runtime<'_, T>,
    ) -> Result<()> {
        let mut coming = candidates.next();
        let is_any_enough = self.kind.is_test() && self.on.is_empty();
        let mut any = is_any_enough && coming.is_some();
        while !is_any_enough && let Some((i, right)) = coming {
            rt.step().await?;
            coming = candidates.next();
            // An inner join does not need the left row after its last candidate.
            let is_over = self.kind == JoinKind::Inner && coming.is_none();
            let mut row = Vec::with_capacity(self.widths.0 + self.widths.1);
            match is_over {
                true => row.append(&mut left),
                false => row.extend(left.iter().cloned()),
            }
            row.extend(right.iter().cloned());
            if all_true(self.on, &row, frame, rt).await? {
                any = true;
                if self.kind.is_test() {
                    break;
                }
                if let Some(m) = i.and_then(|i| matched.get_mut(i)) {
                    *m = true;
                }
                out.push_back(row);
            }
        }
        if self.kind.is_test() {
            if any == (self.kind == JoinKind::Semi) {
                out.push_back(left);
            }
        } else if !any && self.kind != JoinKind::Inner {
            let mut row = left;
            row.extend(std::iter::repeat_n(Datum::Null, self.widths.1));
            out.push_back(row);
        }
        Ok(())
    }
}

fn is_single_point(s: &Scan) -> bool {
    s.is_point && s.places.is_empty() && s.prefix.iter().all(|p| matches!(p, KeyPart::Eq(e) if !e.pending))
}

/// One row or none for each frame, all keys asked for together.
async fn lookups<T: Transaction>(s: &Scan, frames: &[Frame], rt: &mut Runtime<'_, T>) -> Result<Vec<Option<Row>>> {
    // By the groups to look in, which may depend on the row.
    let mut wanted: BTreeMap<Groups, Vec<Key>> = BTreeMap::new();
    let mut of = Vec::with_capacity(frames.len());
    let mut seen = BTreeMap::new();
    for f in frames {
        let Some(key) = scan::point_key(s, &[], f, rt).await? else {
            of.push(None);
            continue;
        };
        let place = (groups::of_scan(s, f, rt).await?, key);
        if !seen.contains_key(&place) {
            wanted.entry(place.0.clone()).or_default().push(place.1.clone());
            seen.insert(place.clone(), None);
        }
        of.push(Some(place));
    }
    for (groups, keys) in wanted {
        for (key, row) in keys.iter().zip(scan::points(s, &groups, &keys, rt).await?) {
            seen.insert((groups.clone(), key.clone()), row);
        }
    }
    let mut out = Vec::with_capacity(frames.len());
    for (place, f) in of.into_iter().zip(frames) {
        let row = place.and_then(|place| seen.get(&place).cloned().flatten());
        out.push(match row {
            Some(row) if all_true(&s.filter, &row, f, rt).await? => Some(row),
            _ => None,
        });
    }
    Ok(out)
}
