//! `nextval` and its relatives for one session.
//!
//! The counter is a row in the sequence's group: the number drawn last and whether any was drawn. A
//! node draws a block at a time and hands it out from memory, so that `nextval` is seldom a
//! transaction; a block that a stopped node still held is a gap, as with PostgreSQL's `CACHE`.
//!
//! A block that is used up within a moment is followed by one of twice its size, so that a bulk
//! load draws seldom and a sequence that is seldom used leaves small gaps. Of the sessions of a
//! node that find no block, one draws and the others wait for it.
//!
//! A block is handed out only while the sequence is what it was when the block was drawn:
//!
//! * **`ALTER SEQUENCE`**, also one by another node: every `nextval` looks at the newest catalog,
//!   even in a block that reads an older one, and only when that is known to be up to date
//!   ([`Environment::catch_up`]). A block drawn under another definition is not handed out.
//! * **`RESTART`, `TRUNCATE … RESTART IDENTITY`**: the counter has a new key, and blocks are kept
//!   by that.
//! * **`setval`** is answered when every node in reach has forgotten its block
//!   ([`Environment::forget_drawn`]). One that was out of reach, or suspended, hands nothing out
//!   that it drew before ([`Environment::lapses`]). A node that reaches a primary all the while,
//!   and is out of reach only for the one that runs `setval`, goes on with its block.
//!
//! What is left of such a block is given back if the counter still stands at its end, so that
//! `ALTER SEQUENCE` leaves no gap where one node draws.

use super::Shared;
use super::retry::Attempts;
use crate::catalog::relation::SequenceRef;
use crate::catalog::sequences::Sequences;
use crate::catalog::{Catalog, Sequence};
use crate::env::{Environment, Locking, OnLocked, Transaction, TxnOptions};
use crate::exec::memory::MemoryPool;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures::future::BoxFuture;
use meridian_base::key::encode;
use meridian_base::{ColumnMask, DescriptorId, Error, Key, Result, SessionId, Write};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Numbers a node draws at a time, at first.
const BLOCK: i64 = 32;
/// And at most.
const BLOCK_MAX: i64 = 4_096;
/// A block that lasts no longer than this is too small; one that lasts ten times as long is too
/// large.
const BLOCK_LASTS: Duration = Duration::from_millis(250);

/// What a node has drawn and not handed out yet, by sequence and counter.
#[derive(Default)]
pub(crate) struct DrawnBlocks(Mutex<Blocks>);

#[derive(Default)]
struct Blocks {
    drawn: BTreeMap<(DescriptorId, u32), Drawn>,
    /// Held by whoever draws a block.
    drawing: BTreeMap<(DescriptorId, u32), Arc<tokio::sync::Mutex<()>>>,
    /// How often something was forgotten: a block that was being drawn meanwhile may be older than
    /// that.
    forgets: u64,
}

struct Drawn {
    next: i64,
    left: i64,
    /// What the sequence was.
    shape: Shape,
    /// The draw's number in the counter.
    draw: u64,
    /// How many numbers it had.
    size: i64,
    /// When it was drawn.
    at_micros: u64,
    /// [`Environment::lapses`] then.
    lapses: u64,
}

impl Drawn {
    /// How many numbers the next block is to have.
    fn next_size(&self, now_micros: u64) -> i64 {
        let lasted = Duration::from_micros(now_micros.saturating_sub(self.at_micros));
        match self.left {
            0 if lasted < BLOCK_LASTS => (self.size * 2).min(BLOCK_MAX),
            _ if lasted < BLOCK_LASTS * 10 => self.size,
            _ => BLOCK,
        }
    }
}

/// What of a sequence decides which numbers come.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Shape {
    increment: i64,
    min: i64,
    max: i64,
    cycle: bool,
}

impl Shape {
    fn of(sequence: &Sequence) -> Shape {
        Shape { increment: sequence.increment, min: sequence.min, max: sequence.max, cycle: sequence.cycle }
    }
}

impl DrawnBlocks {
    /// The next number of a block, if the sequence is still what it was.
    fn take(&self, sequence: &Sequence, lapses: u64) -> Option<i64> {
        let mut blocks = self.0.lock();
        let drawn = blocks.drawn.get_mut(&(sequence.id, sequence.index_id))?;
        if drawn.left == 0 || drawn.shape != Shape::of(sequence) || drawn.lapses != lapses {
            return None;
        }
        let value = drawn.next;
        drawn.left -= 1;
        drawn.next = value.wrapping_add(sequence.increment);
        Some(value)
    }
    /// A counter without what is left of the block that was drawn last, if that is here.
    fn without_rest(&self, sequence: &Sequence, counter: Counter) -> Counter {
        counter.without(self.0.lock().drawn.get(&(sequence.id, sequence.index_id)))
    }
    /// The holder of this may draw. A counter that is gone is not drawn from.
    fn drawing(&self, sequence: &Sequence) -> Arc<tokio::sync::Mutex<()>> {
        let mut blocks = self.0.lock();
        blocks.drawing.retain(|(id, index), _| *id != sequence.id || *index == sequence.index_id);
        blocks.drawing.entry((sequence.id, sequence.index_id)).or_default().clone()
    }
    /// A new block is about to be drawn: what is left of the one before, and how often something
    /// was forgotten.
    fn take_rest(&self, sequence: &Sequence) -> (Option<Drawn>, u64) {
        let mut blocks = self.0.lock();
        (blocks.drawn.remove(&(sequence.id, sequence.index_id)), blocks.forgets)
    }
    /// Keeps a block, unless something was forgotten while it was drawn.
    fn keep(&self, sequence: &Sequence, drawn: Drawn, forgets: u64) {
        let mut blocks = self.0.lock();
        if blocks.forgets == forgets {
            blocks.drawn.retain(|(id, index), _| *id != sequence.id || *index == sequence.index_id);
            blocks.drawn.insert((sequence.id, sequence.index_id), drawn);
        }
    }
    /// Forgets what was drawn of a sequence.
    pub(crate) fn forget(&self, sequence: DescriptorId) {
        let mut blocks = self.0.lock();
        blocks.drawn.retain(|(id, _), _| *id != sequence);
        blocks.drawing.retain(|(id, _), _| *id != sequence);
        blocks.forgets += 1;
    }
}

/// See the module's essay.
pub(crate) struct SessionSequences<E> {
    env: E,
    session: SessionId,
    shared: Arc<Shared>,
    drawn: Mutex<SessionDraws>,
}

#[derive(Default)]
struct SessionDraws {
    current: BTreeMap<DescriptorId, i64>,
    last: Option<DescriptorId>,
}

/// The counter as it is stored.
#[derive(Clone, Copy)]
struct Counter {
    last: i64,
    is_called: bool,
    /// Names the block that was drawn last; 0 after `setval`.
    draw: u64,
}

impl<E: Environment> SessionSequences<E> {
    /// What the statements of the node hold.
    pub(crate) fn memory(&self) -> &Arc<MemoryPool> {
        &self.shared.memory
    }
    pub fn new(env: E, session: SessionId, shared: Arc<Shared>) -> SessionSequences<E> {
        SessionSequences { env, session, shared, drawn: Mutex::default() }
    }
    /// `DISCARD SEQUENCES`.
    pub fn forget(&self) {
        *self.drawn.lock() = SessionDraws::default();
    }
    fn remember(&self, sequence: DescriptorId, value: i64) {
        let mut drawn = self.drawn.lock();
        drawn.current.insert(sequence, value);
        drawn.last = Some(sequence);
    }
    /// The sequence as it is now, whatever a transaction block takes it for: it is no part of
    /// transactions (PostgreSQL manual, 9.17). One that the block itself has made or changed is as
    /// the block has it.
    async fn newest(&self, sequence: &SequenceRef, catalog: &Catalog) -> Result<SequenceRef> {
        self.env.catch_up().await?;
        let newest = self.env.catalog();
        let changed_in = |c: &Catalog| c.changed_in.get(&sequence.id).copied();
        if changed_in(&newest) <= changed_in(catalog) {
            return Ok(sequence.clone());
        }
        let gone = || Error::sql("42P01", format!("relation \"{}\" does not exist", sequence.name));
        newest.sequence_by_id(sequence.id).ok_or_else(gone)
    }
    fn begin(&self, sequence: &Sequence, read_only: bool, attempt: u32) -> (E::Txn, Key) {
        let mut key = Vec::with_capacity(4);
        encode::index(&mut key, sequence.index_id);
        let catalog = self.env.catalog();
        let mut txn = self.env.begin(TxnOptions {
            session: self.session,
            read_only,
            schema: catalog.seen,
            schema_committed_at: catalog.seen_at,
            lock_timeout: None,
            deadlock_timeout: None,
            attempt,
            as_of: None,
            is_held_back: true,
            is_block: false,
        });
        txn.uses(&[sequence.id]);
        (txn, Key::from(key))
    }
    /// Reads the counter in a transaction of its own.
    async fn read(&self, sequence: &Sequence) -> Result<Option<Counter>> {
        let mut attempts = Attempts::default();
        loop {
            let (mut txn, key) = self.begin(sequence, true, attempts.count());
            let once = async {
                let stored = txn.get(sequence.group, &key, ColumnMask::ALL, Locking::None).await?;
                txn.commit().await?;
                stored.map(Counter::read).transpose()
            };
            match once.await {
                Err(e) if attempts.allow(&e) => tokio::time::sleep(Duration::from_millis(1)).await,
                done => return done,
            }
        }
    }
    /// Changes the counter in a transaction of its own.
    async fn change<R: Send>(
        &self,
        sequence: &Sequence,
        change: impl Fn(Option<Counter>) -> Result<(Counter, R)> + Send,
    ) -> Result<R> {
        let mut attempts = Attempts::default();
        loop {
            let attempt = attempts.count();
            let (mut txn, key) = self.begin(sequence, false, attempt);
            let once = async {
                let stored = txn.get(sequence.group, &key, ColumnMask::ALL, Locking::Exclusive(OnLocked::Wait)).await?;
                let (counter, result) = change(stored.map(Counter::read).transpose()?)?;
                let write = Write { key: key.clone(), value: Some(counter.stored()), columns: ColumnMask::ALL };
                txn.write(sequence.group, write)?;
                txn.commit().await?;
                Ok::<R, Error>(result)
            };
            match once.await {
                Err(e) if attempts.allow(&e) => {
                    let longest = 100u64 << attempt.min(9);
                    tokio::time::sleep(Duration::from_micros(1 + self.env.random() % longest)).await;
                }
                Err(e) if e.is_retry() => {
                    let message =
                        format!("could not draw from sequence \"{}\": others came first, again and again", sequence.name);
                    return Err(Error::retry(message));
                }
                done => return done,
            }
        }
    }
}

impl<E: Environment> SessionSequences<E> {
    /// Draws a block. Gives its first number and keeps the others.
    async fn draw(&self, sequence: &Sequence) -> Result<i64> {
        let blocks = &self.shared.sequences;
        let (rest, forgets) = blocks.take_rest(sequence);
        let (at_micros, lapses) = (self.env.now_micros(), self.env.lapses());
        let size = rest.as_ref().map_or(BLOCK, |rest| rest.next_size(at_micros));
        let draw = self.env.random() | 1;
        let (first, count) = self
            .change(sequence, |counter| {
                let (first, count) = next_block(sequence, counter.map(|c| c.without(rest.as_ref())), size)?;
                let last = first + (count - 1) * sequence.increment;
                Ok((Counter { last, is_called: true, draw }, (first, count)))
            })
            .await?;
        let next = first.wrapping_add(sequence.increment);
        let shape = Shape::of(sequence);
        blocks.keep(sequence, Drawn { next, left: count - 1, shape, draw, size, at_micros, lapses }, forgets);
        Ok(first)
    }
}

impl Counter {
    fn stored(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(17);
        bytes.put_i64(self.last);
        bytes.put_u8(self.is_called as u8);
        bytes.put_u64(self.draw);
        bytes.freeze()
    }
    fn read(mut stored: Bytes) -> Result<Counter> {
        // Counters used to end before the number of the draw.
        if stored.len() != 9 && stored.len() != 17 {
            return Err(Error::sql("XX001", "the stored counter of a sequence is damaged"));
        }
        let (last, is_called) = (stored.get_i64(), stored.get_u8() != 0);
        Ok(Counter { last, is_called, draw: stored.try_get_u64().unwrap_or(0) })
    }
    /// The same without what is left of the last block, if this is it.
    fn without(self, rest: Option<&Drawn>) -> Counter {
        match rest {
            Some(rest) if rest.draw == self.draw && self.draw != 0 => {
                Counter { last: rest.next.wrapping_sub(rest.shape.increment), ..self }
            }
            _ => self,
        }
    }
}

/// The number after the counter and how many may be drawn at once, of `size`; 2200H at the end of
/// the sequence.
fn next_block(sequence: &Sequence, counter: Option<Counter>, size: i64) -> Result<(i64, i64)> {
    let exhausted = || {
        let (which, bound) = if sequence.increment > 0 { ("maximum", sequence.max) } else { ("minimum", sequence.min) };
        Error::sql("2200H", format!("nextval: reached {which} value of sequence \"{}\" ({bound})", sequence.name))
    };
    let fits = |value: i64| value >= sequence.min && value <= sequence.max;
    let first = match counter {
        None => sequence.restart,
        Some(c) if !c.is_called => c.last,
        Some(c) => match c.last.checked_add(sequence.increment).filter(|v| fits(*v)) {
            Some(next) => next,
            None if sequence.cycle => {
                if sequence.increment > 0 {
                    sequence.min
                } else {
                    sequence.max
                }
            }
            None => return Err(exhausted()),
        },
    };
    let end = if sequence.increment > 0 { sequence.max } else { sequence.min };
    let room = (i128::from(end) - i128::from(first)) / i128::from(sequence.increment) + 1;
    Ok((first, room.clamp(1, i128::from(size)) as i64))
}

impl<E: Environment> SessionSequences<E> {
    async fn draw_next(&self, sequence: &SequenceRef, catalog: &Catalog) -> Result<i64> {
        let sequence = &*self.newest(sequence, catalog).await?;
        let blocks = &self.shared.sequences;
        let value = match blocks.take(sequence, self.env.lapses()) {
            Some(value) => value,
            None => {
                let drawing = blocks.drawing(sequence);
                let _drawing = drawing.lock().await;
                match blocks.take(sequence, self.env.lapses()) {
                    Some(value) => value,
                    None => self.draw(sequence).await?,
                }
            }
        };
        self.remember(sequence.id, value);
        Ok(value)
    }
    async fn set(&self, sequence: &SequenceRef, catalog: &Catalog, value: i64, is_called: bool) -> Result<i64> {
        let sequence = &*self.newest(sequence, catalog).await?;
        if value < sequence.min || value > sequence.max {
            let (name, min, max) = (&sequence.name, sequence.min, sequence.max);
            let message = format!("setval: value {value} is out of bounds for sequence \"{name}\" ({min}..{max})");
            return Err(Error::sql("22003", message));
        }
        self.change(sequence, |_| Ok((Counter { last: value, is_called, draw: 0 }, ()))).await?;
        self.shared.sequences.forget(sequence.id);
        self.env.forget_drawn(sequence.id).await?;
        if is_called {
            self.remember(sequence.id, value);
        }
        Ok(value)
    }
    async fn read_state(&self, sequence: &SequenceRef, catalog: &Catalog) -> Result<(i64, bool)> {
        let sequence = &*self.newest(sequence, catalog).await?;
        let counter = self.read(sequence).await?.map(|counter| self.shared.sequences.without_rest(sequence, counter));
        Ok(counter.map_or((sequence.restart, false), |counter| (counter.last, counter.is_called)))
    }
}

impl<E: Environment> Sequences for SessionSequences<E> {
    fn nextval<'a>(&'a self, sequence: &'a SequenceRef, catalog: &'a Catalog) -> BoxFuture<'a, Result<i64>> {
        Box::pin(self.draw_next(sequence, catalog))
    }
    fn setval<'a>(
        &'a self,
        sequence: &'a SequenceRef,
        catalog: &'a Catalog,
        value: i64,
        is_called: bool,
    ) -> BoxFuture<'a, Result<i64>> {
        Box::pin(self.set(sequence, catalog, value, is_called))
    }
    fn currval(&self, sequence: DescriptorId) -> Result<i64> {
        let name = match self.env.catalog().sequence_by_id(sequence) {
            Some(s) => s.name.clone(),
            None => sequence.to_string(),
        };
        let missing = || Error::sql("55000", format!("currval of sequence \"{name}\" is not yet defined in this session"));
        self.drawn.lock().current.get(&sequence).copied().ok_or_else(missing)
    }
    fn lastval(&self) -> Result<(DescriptorId, i64)> {
        let drawn = self.drawn.lock();
        let last = drawn.last.and_then(|id| Some((id, *drawn.current.get(&id)?)));
        last.ok_or_else(|| Error::sql("55000", "lastval is not yet defined in this session"))
    }
    fn state<'a>(&'a self, sequence: &'a SequenceRef, catalog: &'a Catalog) -> BoxFuture<'a, Result<(i64, bool)>> {
        Box::pin(self.read_state(sequence, catalog))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Session, SessionOptions};
    use crate::testing::MemEnvironment;

    #[test]
    fn blocks_grow_with_demand_and_shrink_without() {
        let block = |size, left| {
            let shape = Shape { increment: 1, min: 1, max: i64::MAX, cycle: false };
            Drawn { next: 1, left, shape, draw: 1, size, at_micros: 1_000_000, lapses: 0 }
        };
        for (size, left, lasted_millis, next) in [
            (BLOCK, 0, 10, 2 * BLOCK),
            (BLOCK_MAX, 0, 10, BLOCK_MAX),
            // Its sequence was altered.
            (BLOCK, 5, 10, BLOCK),
            (256, 0, 1_000, 256),
            (256, 0, 10_000, BLOCK),
        ] {
            assert_eq!(block(size, left).next_size(1_000_000 + lasted_millis * 1_000), next, "{size}, {left}, {lasted_millis}");
        }
    }

    #[tokio::test]
    async fn who_finds_no_block_while_another_session_draws_waits_for_that_one() {
        let env = MemEnvironment::new(&["us-east1"]);
        let options = SessionOptions { id: SessionId(1), user: "root".into(), database: "postgres".into(), ..Default::default() };
        let mut s = Session::new(env.clone(), options, env.shared()).unwrap();
        s.query_text("CREATE SEQUENCE s").await.unwrap();
        let catalog = env.catalog();
        let sequence = catalog.descriptors.keys().find_map(|id| catalog.sequence_by_id(*id)).expect("just made");
        let shared = env.shared();
        let sequences = SessionSequences::new(env.clone(), SessionId(2), shared.clone());
        for n in 1..=BLOCK {
            assert_eq!(sequences.nextval(&sequence, &catalog).await.unwrap(), n);
        }
        let drawing = shared.sequences.drawing(&sequence);
        let held = drawing.lock().await;
        let mut waits = sequences.nextval(&sequence, &catalog);
        assert!(futures::poll!(&mut waits).is_pending());
        assert_eq!(sequences.draw(&sequence).await.unwrap(), BLOCK + 1);
        drop(held);
        assert_eq!(waits.await.unwrap(), BLOCK + 2, "from the same block");
    }
}
