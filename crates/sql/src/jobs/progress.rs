//! How a job works through the rows of a table: in transactions of bounded size, of which some
//! commit while the next one reads.
//!
//! What a transaction read is certified when it commits, so pages need not wait for each other: of
//! two that write the same key, the second to commit is refused and read again. A page that is
//! refused is read again by itself, and smaller, when no other is on its way.

use super::{JobContext, JobRecord, may_try_again, pause, step_of};
use crate::catalog::jobs;
use crate::catalog::{CatalogChange, Descriptor};
use crate::env::{Environment, Transaction};
use crate::shared::Company;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use meridian_base::{Error, GroupId, Key, KeyRange, Result};
use std::collections::BTreeMap;

/// Rows per transaction. Others change rows meanwhile: a large page is refused more often.
const BATCH_ROWS: usize = 1_024;
/// How often the task writes down how far it is: a step costs two round trips, and what is done
/// twice does no harm.
const CHECKPOINT_MICROS: u64 = 10_000_000;

/// A part of a table's primary index, in one of its groups.
pub(super) type Part = (GroupId, KeyRange);

/// How many rows the next transaction takes at most, and how often it was tried.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub batch: usize,
    pub attempt: u32,
}

/// What a transaction has read and written, before it commits.
pub(super) struct Page<'e> {
    pub rows: u64,
    /// What is left of the range that it was asked for.
    pub rest: Option<KeyRange>,
    pub commit: BoxFuture<'e, Result<()>>,
}

impl<'e> Page<'e> {
    pub fn of<T: Transaction + 'e>(mut txn: T, rows: usize, rest: Option<KeyRange>) -> Page<'e> {
        let commit = async move {
            match txn.has_writes() {
                true => txn.commit().await.map(drop),
                // That there is nothing to do is certified, too.
                false => {
                    let confirmed = txn.confirm().await;
                    txn.rollback();
                    confirmed
                }
            }
        };
        Page { rows: rows as u64, rest, commit: Box::pin(commit) }
    }

    /// There is nothing left to do in a range.
    pub fn empty() -> Page<'e> {
        Page { rows: 0, rest: None, commit: Box::pin(async { Ok(()) }) }
    }
}

/// Reads and writes all of the parts, a page at a time, from where an earlier run of the task got
/// to.
pub(super) async fn work_through<'e, E, P, F>(env: &'e E, parts: Vec<Part>, context: &'e JobContext, page: P) -> Result<()>
where
    E: Environment,
    P: Fn(Part, Size) -> F,
    F: Future<Output = Result<Page<'e>>>,
{
    let mut progress = Progress::resume(env, parts, context);
    let mut company = Company::new(env, &context.shared);
    let mut commits = FuturesUnordered::new();
    let mut number = 0u64;
    loop {
        while progress.takes_more(company.transactions_at_once(env, &context.shared)) {
            let Some(part) = progress.todo.pop() else { break };
            number += 1;
            let reading = page(part.clone(), progress.size);
            tokio::pin!(reading);
            let read = loop {
                tokio::select! {
                    biased;
                    Some((number, done)) = commits.next(), if !commits.is_empty() => progress.committed(number, done)?,
                    read = &mut reading => break read,
                }
            };
            match read {
                Ok(Page { rows, rest, commit }) => {
                    // What is at hand is read, and commits end, without any wait for long: sessions
                    // share this thread.
                    tokio::task::yield_now().await;
                    let (group, mut range) = part;
                    if let Some(rest) = rest {
                        range.end = rest.start.clone();
                        progress.todo.push((group, rest));
                    }
                    progress.on_their_way.insert(number, ((group, range), rows));
                    commits.push(async move { (number, commit.await) });
                }
                Err(e) => progress.refused(number, part, e)?,
            }
        }
        match commits.next().await {
            Some((number, done)) => progress.committed(number, done)?,
            None if progress.is_done() => return Ok(()),
            None => {
                progress.again();
                pause(env, progress.size.attempt).await;
            }
        }
        progress.write_down(env, context).await?;
    }
}

/// How far a task is.
struct Progress {
    /// What is left, worked through from the last to the first.
    todo: Vec<Part>,
    /// What was read and has not committed yet, by the order of reading, and how many rows it has.
    on_their_way: BTreeMap<u64, (Part, u64)>,
    /// What was refused, the same.
    refused: BTreeMap<u64, Part>,
    rows: u64,
    /// When it was written down.
    saved_micros: u64,
    size: Size,
}

impl Progress {
    fn resume<E: Environment>(env: &E, mut all: Vec<Part>, context: &JobContext) -> Progress {
        let catalog = env.catalog();
        let job: Option<&JobRecord> = context.job.and_then(|(id, _)| catalog.job(id));
        let checkpoint = job.and_then(|job| job.checkpoint.as_ref().and_then(|c| split(c)).map(|(g, k)| (g, k, job.rows)));
        let mut rows = 0;
        if let Some((group, from, so_far)) = checkpoint
            && let Some(at) = all.iter().position(|(g, range)| *g == group && from >= range.start && from < range.end)
        {
            all.truncate(at + 1);
            all[at].1.start = from;
            rows = so_far;
        }
        Progress {
            todo: all,
            on_their_way: BTreeMap::new(),
            refused: BTreeMap::new(),
            rows,
            saved_micros: env.now_micros(),
            size: Size { batch: BATCH_ROWS, attempt: 0 },
        }
    }

    fn is_done(&self) -> bool {
        self.todo.is_empty() && self.on_their_way.is_empty() && self.refused.is_empty()
    }

    /// Whether another page may be read: fewer than `at_once` pages are being committed. After a
    /// refusal the limit is one page, until a page has committed.
    fn takes_more(&self, at_once: usize) -> bool {
        let most = if self.size.attempt == 0 { at_once } else { 1 };
        self.refused.is_empty() && self.on_their_way.len() < most && !self.todo.is_empty()
    }

    fn committed(&mut self, number: u64, done: Result<()>) -> Result<()> {
        let Some((part, rows)) = self.on_their_way.remove(&number) else {
            return Err(Error::internal("a page was committed twice"));
        };
        match done {
            Ok(()) => {
                self.rows += rows;
                if self.refused.is_empty() {
                    self.size = Size { batch: (self.size.batch * 2).min(BATCH_ROWS), attempt: 0 };
                }
                Ok(())
            }
            Err(e) => self.refused(number, part, e),
        }
    }

    /// A page was not done, for a reason that may be gone the next time.
    fn refused(&mut self, number: u64, part: Part, e: Error) -> Result<()> {
        if !may_try_again(&e, self.size.attempt) {
            return Err(e);
        }
        self.refused.insert(number, part);
        Ok(())
    }

    /// Takes up what was refused. A writer of one of its rows is less likely to meet a smaller
    /// page.
    fn again(&mut self) {
        self.size = Size { batch: (self.size.batch / 2).max(1), attempt: self.size.attempt + 1 };
        self.todo.extend(std::mem::take(&mut self.refused).into_values().rev());
    }

    /// Now and then, the first part that is not done.
    async fn write_down<E: Environment>(&mut self, env: &E, context: &JobContext) -> Result<()> {
        if env.now_micros().saturating_sub(self.saved_micros) <= CHECKPOINT_MICROS || !self.refused.is_empty() {
            return Ok(());
        }
        let first = self.on_their_way.values().next().map(|(part, _)| part).or(self.todo.last());
        if let Some((group, range)) = first {
            checkpoint(env, context, *group, &range.start, self.rows).await?;
        }
        self.saved_micros = env.now_micros();
        Ok(())
    }
}

/// A checkpoint: the group, and the key in it.
fn joined(group: GroupId, key: &Key) -> Vec<u8> {
    [&group.0.to_be_bytes()[..], key.as_bytes()].concat()
}
fn split(checkpoint: &[u8]) -> Option<(GroupId, Key)> {
    let (group, key) = checkpoint.split_first_chunk::<4>()?;
    Some((GroupId(u32::from_be_bytes(*group)), Key::new(key)))
}

/// Writes down how far the task is. It also finds out whether the job is to be gone on with.
async fn checkpoint<E: Environment>(env: &E, context: &JobContext, group: GroupId, key: &Key, rows: u64) -> Result<()> {
    let Some((id, state)) = context.job else { return Ok(()) };
    let me = env.locality().node;
    step_of(env, context, 0, &|catalog| {
        let job = jobs::mine(catalog, id, me, state).ok()?;
        let job = JobRecord { checkpoint: Some(joined(group, key)), rows, ..job.clone() };
        Some(CatalogChange { put: vec![Descriptor::Job(job)], next_id: catalog.next_id, ..CatalogChange::default() })
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Session, SessionOptions};
    use crate::testing::MemEnvironment;
    use meridian_base::SessionId;
    use parking_lot::Mutex;
    use std::collections::BTreeSet;
    use std::sync::Arc;
    use std::time::Duration;

    fn key(n: u16) -> Key {
        Key::new(&n.to_be_bytes())
    }
    fn number(key: &Key) -> u16 {
        u16::from_be_bytes(key.as_bytes().try_into().expect("two bytes"))
    }

    /// Rows of two groups; some pages are refused while they are read and some when they commit, a
    /// few of them often.
    #[tokio::test(start_paused = true)]
    async fn every_row_is_done_whatever_is_refused() {
        let env = MemEnvironment::new(&["eu"]);
        let options =
            SessionOptions { id: SessionId(1), user: "root".into(), database: "postgres".into(), ..SessionOptions::default() };
        let context = Session::new(env.clone(), options, env.shared()).expect("a session").job_context("");
        let ranges = [2, 3].map(|g| (GroupId(g), KeyRange::new(key(0), key(20_000))));
        let done: Arc<Mutex<BTreeSet<(GroupId, u16)>>> = Arc::default();
        let (calls, most) = (Mutex::new((0u32, 0u32)), Arc::new(Mutex::new((0, 0))));
        let page = |(group, range): Part, size: Size| {
            let call = {
                let mut calls = calls.lock();
                calls.0 += 1;
                calls.0
            };
            let (done, most) = (done.clone(), most.clone());
            async move {
                tokio::time::sleep(Duration::from_millis(1)).await;
                if call.is_multiple_of(7) {
                    return Err(Error::retry("refused while it is read"));
                }
                let (from, to) = (number(&range.start), number(&range.end));
                let last = to.min(from + size.batch as u16);
                let rest = (last < to).then(|| KeyRange::new(key(last), range.end.clone()));
                let commit = Box::pin(async move {
                    {
                        let mut most = most.lock();
                        most.0 += 1;
                        most.1 = most.1.max(most.0);
                    }
                    tokio::time::sleep(Duration::from_millis(u64::from(call % 5) * 3)).await;
                    most.lock().0 -= 1;
                    if call.is_multiple_of(5) {
                        return Err(Error::retry("refused when it commits"));
                    }
                    done.lock().extend((from..last).map(|n| (group, n)));
                    Ok(())
                });
                Ok(Page { rows: u64::from(last - from), rest, commit })
            }
        };
        work_through(&env, ranges.to_vec(), &context, page).await.expect("all of it");
        assert_eq!(done.lock().len(), 40_000);
        assert!(most.lock().1 > 1 && most.lock().1 <= 8, "{:?}", most.lock());
    }

    #[test]
    fn what_was_refused_is_taken_up_in_the_order_of_reading() {
        let mut progress = Progress {
            todo: vec![(GroupId(2), KeyRange::new(key(0), key(9))), (GroupId(3), KeyRange::new(key(5), key(9)))],
            on_their_way: BTreeMap::new(),
            refused: BTreeMap::new(),
            rows: 0,
            saved_micros: 0,
            size: Size { batch: 1_024, attempt: 0 },
        };
        let part = |g, from: u16| (GroupId(g), KeyRange::new(key(from), key(from + 1)));
        for (number, of) in [(1, part(4, 8)), (2, part(3, 1)), (3, part(3, 3))] {
            progress.on_their_way.insert(number, (of, 1));
        }
        assert!(progress.takes_more(4));
        for number in [3, 1, 2] {
            progress.committed(number, Err(Error::retry("refused"))).expect("another attempt");
        }
        assert!(!progress.takes_more(4), "what was refused comes first");
        progress.again();
        let order: Vec<_> = progress.todo.iter().rev().map(|(g, range)| (g.0, number(&range.start))).collect();
        assert_eq!(order, [(4, 8), (3, 1), (3, 3), (3, 5), (2, 0)]);
        assert_eq!((progress.size.batch, progress.size.attempt), (512, 1));
        let fatal = progress.refused(9, part(2, 0), Error::sql("23505", "a duplicate")).expect_err("it ends the job");
        assert_eq!(fatal.sqlstate(), "23505");
    }
}
