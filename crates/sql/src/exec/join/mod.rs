//! Joins.
//!
//! * Hash join: the right side in memory by its key, the left side streams. Of a semi-join, only
//!   the keys of the right side, each once.
//! * Loop join: the right side again for each left row, with a frame made of it (LATERAL, lookups
//!   through an index), or from memory if it depends on nothing. Lookups of single keys are made
//!   for a whole batch of left rows at once: one round trip if the group is far away.

mod parts;

use super::batch::{self, Partners};
use super::eval::{Frame, Kept, Row, all_true, eval_all};
use super::groups::{self, Groups};
use super::key_parts::point_key;
use super::op::{Op, State, collect};
use super::{BATCH, Runtime, scan, size_of_row};
use crate::env::Transaction;
use crate::plan::eval::bulk::Bulk;
use crate::plan::expr::Expr;
use crate::plan::node::{KeyPart, Node, Scalar, Scan};
use crate::plan::rel::JoinKind;
use crate::types::Datum;
use meridian_base::{Error, Key, Result};
use parts::{Parts, Right};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

/// If no more than this part of the left rows is expected to have a partner, the others are left
/// out where they are read.
const PARTNERED_MAX: f64 = 0.8;

/// The state of a join.
pub(crate) struct JoinState {
    left: Op,
    left_done: bool,
    /// Left rows that are still to be joined, with the frames of a right side that depends on them.
    coming: VecDeque<(Row, Option<Frame>)>,
    /// What lookups found for them, if the right side is one.
    found: Option<std::vec::IntoIter<Option<Row>>>,
    /// The left row that is being joined.
    current: Option<Current>,
    /// Joined rows not yet handed on: one batch at most.
    out: VecDeque<Row>,
    /// The right side, if it is kept; whether each of its rows found a partner.
    right: Option<Arc<Kept>>,
    matched: Vec<bool>,
    /// Of a full or a right join: how many rows of the right side were asked whether they did.
    asked: usize,
    table: Table,
    pair: Pair,
    /// The right side has no room in memory.
    parts: Option<Box<Parts>>,
}

/// What the conditions of a join read of a pair of rows: nothing else is copied of the pairs that
/// do not match, which may be most.
struct Pair {
    left: Vec<usize>,
    /// Places in the right row.
    right: Vec<usize>,
    /// Where the left row ends.
    width: usize,
    row: Row,
}

impl Pair {
    fn of(on: &[Scalar], widths: (usize, usize)) -> Pair {
        let slots = on.iter().map(|condition| condition.expr.slots_with_subqueries()).collect::<Option<Vec<_>>>();
        let slots: BTreeSet<usize> = match slots {
            Some(slots) => slots.into_iter().flatten().map(|slot| slot as usize).collect(),
            // A subquery that is planned when it runs may read any.
            None => (0..widths.0 + widths.1).collect(),
        };
        let (left, right): (Vec<usize>, Vec<usize>) = slots.into_iter().partition(|slot| *slot < widths.0);
        let right = right.into_iter().map(|slot| slot - widths.0).collect();
        Pair { left, right, width: widths.0, row: vec![Datum::Null; widths.0 + widths.1] }
    }
    fn set_left(&mut self, left: &[Datum]) {
        for slot in &self.left {
            self.row[*slot].clone_from(&left[*slot]);
        }
    }
    fn set_right(&mut self, right: &[Datum]) {
        for slot in &self.right {
            self.row[self.width + *slot].clone_from(&right[*slot]);
        }
    }
}

/// A left row, and where its partners come from.
struct Current {
    left: Row,
    /// It has found one.
    any: bool,
    from: From,
}

enum From {
    /// The rows of a key: the next one.
    Chain(Option<usize>),
    /// All rows of the right side, from this one on.
    All(usize),
    /// Rows that depend on the left row.
    Own(Own),
}

/// The rows of a right side that depends on the left row.
struct Own {
    ready: std::vec::IntoIter<Row>,
    /// What has more.
    more: Option<Box<Op>>,
    /// What its operators hold.
    bytes: usize,
}

/// A row that may be a partner.
enum Candidate {
    Kept {
        at: usize,
        /// It is known to be one.
        matches: bool,
    },
    Own(Row),
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
    /// The first row of a key.
    fn first(&self, key: &Row) -> Option<usize> {
        self.ends.get(key).map(|(first, _)| *first)
    }
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
    if let Some(mut parts) = state.parts.take() {
        let before = parts.bytes();
        let rows = parts.next(state, node, &frame, rt, want).await?;
        rt.note_disk(&op.node, parts.bytes() - before);
        state.parts = Some(parts);
        return Ok(rows);
    }
    loop {
        join(state, node, &frame, rt, want.clamp(1, BATCH)).await?;
        if !state.out.is_empty() {
            return Ok(Some(state.out.drain(..).collect()));
        }
        if state.left_done {
            return Ok(None);
        }
        match state.left.next(rt, want).await? {
            Some(rows) => take(state, node, rows, &frame, rt).await?,
            None => state.left_done = true,
        }
    }
}

async fn open<T: Transaction>(op: &Op, node: &Node, frame: &Frame, rt: &mut Runtime<'_, T>) -> Result<JoinState> {
    let (left, right, keys, on, widths) = match node {
        Node::HashJoin { left, right, right_keys, on, widths, .. } => (left, Some(right), Some(right_keys), on, widths),
        Node::LoopJoin { left, right, args, on, widths, .. } => (left, args.is_empty().then_some(right), None, on, widths),
        _ => return Err(Error::internal("not a join")),
    };
    let mut state = JoinState {
        left: *op.child(left),
        left_done: false,
        coming: VecDeque::new(),
        found: None,
        current: None,
        out: VecDeque::new(),
        right: None,
        matched: Vec::new(),
        asked: 0,
        table: Table::default(),
        pair: Pair::of(on, *widths),
        parts: None,
    };
    hand_on(op, node, &mut state.left);
    let Some(right) = right else { return Ok(state) };
    let Some(keys) = keys else {
        let rows = Kept::from(collect(right, frame, rt).await?);
        state.matched = vec![false; rows.len()];
        state.right = Some(Arc::new(rows));
        return Ok(state);
    };
    let beyond = match is_any_enough(node) {
        true => keep_keys(&mut state, right, keys, frame, rt).await?,
        false => keep_rows(&mut state, node, right, keys, frame, rt).await?,
    };
    if beyond.is_none() {
        state.left.partners.extend(partners(node, &state.table, rt).await?.map(Arc::new));
    }
    if let Some(beyond) = beyond {
        let parts = beyond.read_left(&mut state, node, frame, rt).await?;
        rt.note_disk(&op.node, parts.bytes());
        state.parts = Some(Box::new(parts));
    }
    Ok(state)
}
/// What joins above know of the partners of this one's rows is about the left side's, if it says so
/// of columns of that side: of a left row that is left out no joined row is missed, unless a row of
/// the right side is looked at by itself.
fn hand_on(op: &Op, node: &Node, left: &mut Op) {
    let (Node::HashJoin { kind, widths, .. } | Node::LoopJoin { kind, widths, .. }) = node else { return };
    if !kind.keeps_right() {
        let of_left = op.partners.iter().filter(|p| p.slots().iter().all(|slot| *slot < widths.0));
        left.partners.extend(of_left.cloned());
    }
}

/// The keys of the right side, if left rows without a partner are dropped and there may be many.
#[allow(clippy::disallowed_methods, reason = "the order in which bits are set means nothing")]
async fn partners<T: Transaction>(node: &Node, table: &Table, rt: &mut Runtime<'_, T>) -> Result<Option<Partners>> {
    let Node::HashJoin { kind, left, left_keys, estimate, .. } = node else { return Ok(None) };
    if !kind.drops_left() {
        return Ok(None);
    }
    let slots: Option<Vec<usize>> =
        left_keys.iter().map(|key| if let Expr::Slot(slot) = key.expr { Some(slot as usize) } else { None }).collect();
    let (Some(slots), Some(scan)) = (slots, scan_below(left)) else { return Ok(None) };
    let is_worth_it = estimate.zip(scan.estimate).is_some_and(|(joined, read)| joined < read * PARTNERED_MAX);
    if scan.statistics.is_none() || !is_worth_it || table.ends.len() > batch::PARTNERS_MAX {
        return Ok(None);
    }
    let mut partners = Partners::with_room(slots, table.ends.len());
    for key in table.ends.keys() {
        rt.step().await?;
        partners.add(key);
    }
    Ok(Some(partners))
}

/// The scan that a join's left rows come from.
fn scan_below(node: &Node) -> Option<&Scan> {
    match node {
        Node::Scan(s) => Some(s),
        Node::HashJoin { left, .. } | Node::LoopJoin { left, .. } => scan_below(left),
        _ => None,
    }
}

/// Keeps the keys of the right side, each once: the join asks which there are, and nothing else of
/// the rows. Gives all of them if there is no room.
async fn keep_keys<T: Transaction>(
    state: &mut JoinState,
    right: &Arc<Node>,
    keys: &[Scalar],
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Option<Right>> {
    state.right = Some(Arc::default());
    if let Some((mut found, others)) = batch::distinct_keys(right, keys, frame, rt).await? {
        if let Some(others) = others {
            return Right::of_keys(found.take(), others, rt).await.map(Some);
        }
        state.table = Table::with_capacity(found.len());
        for key in found.drain(..) {
            rt.step().await?;
            state.table.add((!key.iter().any(Datum::is_null)).then_some(key));
        }
        return Ok(None);
    }
    let mut op = Op::new(right, frame);
    let mut beyond: Option<Right> = None;
    while let Some(rows) = op.next(rt, usize::MAX).await? {
        for row in rows {
            rt.step().await?;
            let key = eval_all(keys, &row, frame, rt).await?;
            if key.iter().any(Datum::is_null) || state.table.first(&key).is_some() {
                continue;
            }
            let bytes = rt.keep(std::slice::from_ref(&key))?;
            match &mut beyond {
                Some(beyond) => beyond.push(&key.clone(), key, bytes, JoinKind::Semi, rt).await?,
                None => state.table.add(Some(key)),
            }
        }
        if beyond.is_none()
            && let Some(mut right) = Right::begin(rt)
        {
            for (key, _) in std::mem::take(&mut state.table).ends.take() {
                rt.step().await?;
                let bytes = size_of_row(&key);
                right.push(&key.clone(), key, bytes, JoinKind::Semi, rt).await?;
            }
            beyond = Some(right);
        }
    }
    Ok(beyond)
}

/// Keeps the rows of the right side. Gives all of them if there is no room.
async fn keep_rows<T: Transaction>(
    state: &mut JoinState,
    node: &Node,
    right: &Arc<Node>,
    keys: &[Scalar],
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Option<Right>> {
    let (Node::HashJoin { kind, .. } | Node::LoopJoin { kind, .. }) = node else { return Err(Error::internal("not a join")) };
    let mut op = Op::new(right, frame);
    let mut rows = Kept::default();
    let mut beyond: Option<Right> = None;
    while let Some(next) = op.next(rt, usize::MAX).await? {
        for row in next {
            rt.step().await?;
            let bytes = rt.keep(std::slice::from_ref(&row))?;
            match &mut beyond {
                Some(beyond) => {
                    let key = eval_all(keys, &row, frame, rt).await?;
                    beyond.push(&key, row, bytes, *kind, rt).await?;
                }
                None => rows.push(row),
            }
        }
        if beyond.is_none()
            && let Some(mut right) = Right::begin(rt)
        {
            for row in std::mem::take(&mut rows).take() {
                rt.step().await?;
                let bytes = size_of_row(&row);
                let key = eval_all(keys, &row, frame, rt).await?;
                right.push(&key, row, bytes, *kind, rt).await?;
            }
            beyond = Some(right);
        }
    }
    if beyond.is_some() {
        return Ok(beyond);
    }
    state.matched = vec![false; rows.len()];
    state.table = Table::with_capacity(rows.len());
    for row in rows.iter() {
        rt.step().await?;
        let key = eval_all(keys, row, frame, rt).await?;
        rt.keep_key(&key, keys)?;
        // NULL equals nothing.
        state.table.add((!key.iter().any(Datum::is_null)).then_some(key));
    }
    state.right = Some(Arc::new(rows));
    Ok(None)
}

/// Whether the join only asks whether a left row has a partner, and any row of its key is one.
fn is_any_enough(node: &Node) -> bool {
    match node {
        Node::HashJoin { kind, on, .. } | Node::LoopJoin { kind, on, .. } => kind.is_test() && on.is_empty(),
        _ => false,
    }
}

/// Takes a batch of left rows.
async fn take<T: Transaction>(
    state: &mut JoinState,
    node: &Node,
    rows: Vec<Row>,
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<()> {
    if let Node::HashJoin { kind, left_keys, .. } = node
        && is_any_enough(node)
    {
        for left in rows {
            let key = eval_all(left_keys, &left, frame, rt).await?;
            if state.table.first(&key).is_some() == (*kind == JoinKind::Semi) {
                state.out.push_back(left);
            }
        }
        return Ok(());
    }
    let Node::LoopJoin { right, args, .. } = node else {
        state.coming.extend(rows.into_iter().map(|row| (row, None)));
        return Ok(());
    };
    if state.right.is_some() {
        state.coming.extend(rows.into_iter().map(|row| (row, None)));
        return Ok(());
    }
    let mut frames: Vec<Frame> = Vec::with_capacity(rows.len());
    for row in rows.iter() {
        frames.push(eval_all(args, row, frame, rt).await?.into());
    }
    if let Node::Scan(s) = &**right
        && is_single_point(s)
    {
        let start = rt.shared.stats.is_some().then(|| rt.ctx.system.now_micros());
        let found = lookups(s, &frames, rt).await?;
        if let Some(start) = start {
            rt.note(right, start, true, found.iter().flatten().count());
        }
        state.found = Some(found.into_iter());
    }
    state.coming.extend(rows.into_iter().zip(frames.into_iter().map(Some)));
    Ok(())
}

/// Joins the left rows that are here until enough rows are ready.
async fn join<T: Transaction>(
    state: &mut JoinState,
    node: &Node,
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
    enough: usize,
) -> Result<()> {
    let (Node::HashJoin { kind, on, widths, .. } | Node::LoopJoin { kind, on, widths, .. }) = node else {
        return Err(Error::internal("not a join"));
    };
    let kept = state.right.clone().unwrap_or_default();
    let is_any_enough = is_any_enough(node);
    while state.out.len() < enough {
        rt.step().await?;
        if state.current.is_none() {
            let Some((left, own)) = state.coming.pop_front() else { break };
            let from = match (node, own) {
                (Node::HashJoin { left_keys, .. }, _) => {
                    // No key of the table has a NULL.
                    From::Chain(state.table.first(&eval_all(left_keys, &left, frame, rt).await?))
                }
                (Node::LoopJoin { right, .. }, Some(own)) => match &mut state.found {
                    Some(found) => From::Own(Own::of(found.next().flatten().into_iter().collect(), None)),
                    None => From::Own(Own::of(Vec::new(), Some(Box::new(Op::new(right, &own))))),
                },
                _ => From::All(0),
            };
            if !matches!(from, From::Own(_)) {
                state.pair.set_left(&left);
            }
            state.current = Some(Current { left, any: false, from });
        }
        let Some(current) = &mut state.current else { break };
        let candidate = match &mut current.from {
            From::Chain(next) => {
                let rest = || {
                    let row = *next;
                    *next = row.and_then(|row| state.table.next[row]);
                    row
                };
                candidate(rest, &kept, on, &mut state.pair, frame, rt).await?
            }
            From::All(next) => {
                let rest = || {
                    *next += 1;
                    (*next <= kept.len()).then(|| *next - 1)
                };
                candidate(rest, &kept, on, &mut state.pair, frame, rt).await?
            }
            From::Own(own) => {
                let want = if is_any_enough { 1 } else { BATCH };
                own.next(rt, want).await?.map(Candidate::Own)
            }
        };
        let is_last = match candidate {
            None => true,
            Some(_) if is_any_enough => {
                current.any = true;
                true
            }
            Some(candidate) => {
                let mut row = Vec::with_capacity(widths.0 + widths.1);
                // An inner join does not need the left row after its last candidate.
                match *kind == JoinKind::Inner && current.from.is_at_end(&kept) {
                    true => row.append(&mut current.left),
                    false => row.extend(current.left.iter().cloned()),
                }
                let (place, matches) = match candidate {
                    Candidate::Kept { at, matches } => {
                        row.extend(kept[at].iter().cloned());
                        (Some(at), matches)
                    }
                    Candidate::Own(mut own) => {
                        row.append(&mut own);
                        (None, false)
                    }
                };
                if matches || all_true(on, &row, frame, rt).await? {
                    current.any = true;
                    if let Some(matched) = place.and_then(|i| state.matched.get_mut(i)) {
                        *matched = true;
                    }
                    if !kind.is_test() {
                        state.out.push_back(row);
                    }
                }
                (kind.is_test() && current.any) || current.from.is_at_end(&kept)
            }
        };
        if is_last && let Some(Current { mut left, any, from }) = state.current.take() {
            if let From::Own(own) = from {
                rt.shared.memory = rt.shared.memory.saturating_sub(own.bytes);
            }
            if kind.is_test() {
                if any == (*kind == JoinKind::Semi) {
                    state.out.push_back(left);
                }
            } else if !any && !kind.drops_left() {
                left.extend(std::iter::repeat_n(Datum::Null, widths.1));
                state.out.push_back(left);
            }
        }
    }
    if kind.keeps_right() && state.left_done {
        lone_rows(state, &kept, *widths, rt, enough).await?;
    }
    Ok(())
}

/// Of a full or a right join: the right rows that found no partner.
async fn lone_rows<T: Transaction>(
    state: &mut JoinState,
    kept: &Kept,
    widths: (usize, usize),
    rt: &mut Runtime<'_, T>,
    enough: usize,
) -> Result<()> {
    while state.out.len() < enough && state.asked < kept.len() {
        rt.step().await?;
        let (row, matched) = (&kept[state.asked], state.matched[state.asked]);
        state.asked += 1;
        if !matched {
            state.out.push_back(std::iter::repeat_n(Datum::Null, widths.0).chain(row.iter().cloned()).collect());
        }
    }
    Ok(())
}

/// The first of the rest of the right rows that matches, or may.
async fn candidate<T: Transaction>(
    mut rest: impl FnMut() -> Option<usize>,
    kept: &Kept,
    on: &[Scalar],
    pair: &mut Pair,
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Option<Candidate>> {
    while let Some(at) = rest() {
        if on.is_empty() {
            return Ok(Some(Candidate::Kept { at, matches: true }));
        }
        rt.step().await?;
        pair.set_right(&kept[at]);
        match rt.at_hand(frame).1.hold(on, &pair.row) {
            Some(false) => {}
            holds => return Ok(Some(Candidate::Kept { at, matches: holds.is_some() })),
        }
    }
    Ok(None)
}

impl Own {
    fn of(ready: Vec<Row>, more: Option<Box<Op>>) -> Own {
        Own { ready: ready.into_iter(), more, bytes: 0 }
    }
    /// The next row. So many are asked for at a time.
    async fn next<T: Transaction>(&mut self, rt: &mut Runtime<'_, T>, want: usize) -> Result<Option<Row>> {
        loop {
            if let Some(row) = self.ready.next() {
                return Ok(Some(row));
            }
            let Some(op) = &mut self.more else { return Ok(None) };
            let before = rt.shared.memory;
            let rows = op.next(rt, want).await?;
            self.bytes = (self.bytes + rt.shared.memory).saturating_sub(before);
            match rows {
                Some(rows) => self.ready = rows.into_iter(),
                None => self.more = None,
            }
        }
    }
}

impl From {
    /// Whether it is known that no row comes any more.
    fn is_at_end(&self, kept: &Kept) -> bool {
        match self {
            From::Chain(next) => next.is_none(),
            From::All(next) => *next >= kept.len(),
            From::Own(own) => own.ready.as_slice().is_empty() && own.more.is_none(),
        }
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
        let Some(key) = point_key(s, &[], f, rt).await? else {
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
