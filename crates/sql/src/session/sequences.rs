//! `nextval` and its relatives for one session.
//!
//! The counter is a row in the sequence's group: the number drawn last and whether any was drawn. A node draws a block at a
//! time and hands it out from memory, so that `nextval` is seldom a transaction; a block that a stopped node still held is a gap,
//! as with PostgreSQL's `CACHE`.

use super::shared::Shared;
use crate::catalog::Sequence;
use crate::catalog::sequences::Sequences;
use crate::env::{Environment, Locking, OnLocked, Transaction, TxnOptions};
use async_trait::async_trait;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use meridian_base::key::encode;
use meridian_base::{ColumnMask, DescriptorId, Error, Key, Result, SessionId, Write, limits};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Numbers a node draws at a time.
const BLOCK: i64 = 32;

/// What a node has drawn and not handed out yet, by sequence and counter.
#[derive(Default)]
pub(super) struct DrawnBlocks(Mutex<BTreeMap<(DescriptorId, u32), Drawn>>);

struct Drawn {
    next: i64,
    left: i64,
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
struct Counter {
    last: i64,
    is_called: bool,
}

impl<E: Environment> SessionSequences<E> {
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
    /// Takes a number from the node's block.
    fn take(&self, sequence: &Sequence) -> Option<i64> {
        let mut blocks = self.shared.sequences.0.lock();
        let drawn = blocks.get_mut(&(sequence.id, sequence.index_id))?;
        if drawn.left == 0 {
            return None;
        }
        let value = drawn.next;
        drawn.left -= 1;
        drawn.next = value.wrapping_add(sequence.increment);
        Some(value)
    }
    /// Changes the counter in a transaction of its own.
    async fn change<R: Send>(
        &self,
        sequence: &Sequence,
        change: impl Fn(Option<Counter>) -> Result<(Counter, R)> + Send,
    ) -> Result<R> {
        let mut key = Vec::with_capacity(4);
        encode::index(&mut key, sequence.index_id);
        let key = Key::from(key);
        for attempt in 0..=limits::RETRIES_MAX {
            let catalog = self.env.catalog();
            let mut txn = self.env.begin(TxnOptions {
                session: self.session,
                read_only: false,
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
            let once = async {
                let stored = txn.get(sequence.group, &key, ColumnMask::ALL, Locking::Exclusive(OnLocked::Wait)).await?;
                let (counter, result) = change(stored.map(Counter::read).transpose()?)?;
                let write = Write { key: key.clone(), value: Some(counter.stored()), columns: ColumnMask::ALL };
                txn.write(sequence.group, write)?;
                txn.commit().await?;
                Ok::<R, Error>(result)
            };
            match once.await {
                Err(e) if e.is_retry() || e.is_unavailable() => {
                    let longest = 100u64 << attempt.min(9);
                    tokio::time::sleep(Duration::from_micros(1 + self.env.random() % longest)).await;
                }
                done => return done,
            }
        }
        Err(Error::retry(format!("could not draw from sequence \"{}\": others came first, again and again", sequence.name)))
    }
}

impl Counter {
    fn stored(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(9);
        bytes.put_i64(self.last);
        bytes.put_u8(self.is_called as u8);
        bytes.freeze()
    }
    fn read(mut stored: Bytes) -> Result<Counter> {
        if stored.len() != 9 {
            return Err(Error::sql("XX001", "the stored counter of a sequence is damaged"));
        }
        Ok(Counter { last: stored.get_i64(), is_called: stored.get_u8() != 0 })
    }
}

/// The number after the counter and how many may be drawn at once; 2200H at the end of the sequence.
fn next_block(sequence: &Sequence, counter: Option<Counter>) -> Result<(i64, i64)> {
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
    Ok((first, room.clamp(1, i128::from(BLOCK)) as i64))
}

#[async_trait]
impl<E: Environment> Sequences for SessionSequences<E> {
    async fn nextval(&self, sequence: &Sequence) -> Result<i64> {
        let value = match self.take(sequence) {
            Some(value) => value,
            None => {
                let (first, count) = self
                    .change(sequence, |counter| {
                        let (first, count) = next_block(sequence, counter)?;
                        let last = first + (count - 1) * sequence.increment;
                        Ok((Counter { last, is_called: true }, (first, count)))
                    })
                    .await?;
                let rest = Drawn { next: first.wrapping_add(sequence.increment), left: count - 1 };
                self.shared.sequences.0.lock().insert((sequence.id, sequence.index_id), rest);
                first
            }
        };
        self.remember(sequence.id, value);
        Ok(value)
    }
    async fn setval(&self, sequence: &Sequence, value: i64, is_called: bool) -> Result<i64> {
        if value < sequence.min || value > sequence.max {
            let (name, min, max) = (&sequence.name, sequence.min, sequence.max);
            let message = format!("setval: value {value} is out of bounds for sequence \"{name}\" ({min}..{max})");
            return Err(Error::sql("22003", message));
        }
        self.change(sequence, |_| Ok((Counter { last: value, is_called }, ()))).await?;
        self.shared.sequences.0.lock().remove(&(sequence.id, sequence.index_id));
        if is_called {
            self.remember(sequence.id, value);
        }
        Ok(value)
    }
    fn currval(&self, sequence: DescriptorId) -> Result<i64> {
        let name = match self.env.catalog().sequence_by_id(sequence) {
            Some(s) => s.name.clone(),
            None => sequence.to_string(),
        };
        let missing = || Error::sql("55000", format!("currval of sequence \"{name}\" is not yet defined in this session"));
        self.drawn.lock().current.get(&sequence).copied().ok_or_else(missing)
    }
    fn lastval(&self) -> Result<i64> {
        let drawn = self.drawn.lock();
        let last = drawn.last.and_then(|id| drawn.current.get(&id).copied());
        last.ok_or_else(|| Error::sql("55000", "lastval is not yet defined in this session"))
    }
}
