//! The memory that the statements of a node hold together.
//!
//! Each statement may hold so much ([`super::MEMORY_BYTES_MAX`]), but not all of them at once. They
//! take what they hold from a pool, in large pieces. When little is left there, operators that can
//! do with less write to temporary files earlier; when nothing is left, who asks for more fails.

use meridian_base::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A pool's default.
pub const POOL_BYTES: usize = 1 << 30;

/// A statement holds so much without asking: small ones never wait for large ones, nor fail because
/// of them.
const FREE: usize = 1 << 20;
/// What is taken, and given back, at once.
const PIECE: usize = 1 << 20;
/// A statement gives back what it holds no more if that is more than this.
const SPARE: usize = 4 * PIECE;
/// A statement may well hold so much however little is left.
const SHARE_MIN: usize = 4 << 20;

/// What all statements of a node may hold.
#[derive(Debug)]
pub struct MemoryPool {
    most: usize,
    taken: AtomicUsize,
    /// Statements that have taken something.
    holders: AtomicUsize,
}

impl Default for MemoryPool {
    fn default() -> MemoryPool {
        MemoryPool::of(POOL_BYTES)
    }
}

impl MemoryPool {
    /// One of so many bytes.
    pub fn of(most: usize) -> MemoryPool {
        MemoryPool { most, taken: AtomicUsize::new(0), holders: AtomicUsize::new(0) }
    }

    /// What statements have taken.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// What a statement should hold at most, if it has the choice: anything, until little is left.
    pub(super) fn share(&self) -> usize {
        if self.taken() <= self.most / 4 * 3 {
            return usize::MAX;
        }
        let holders = self.holders.load(Ordering::Relaxed).max(1);
        (self.most / 2 / holders).max(SHARE_MIN)
    }

    fn take(&self, bytes: usize) -> Result<()> {
        let before = self.taken.fetch_add(bytes, Ordering::Relaxed);
        if before + bytes <= self.most {
            return Ok(());
        }
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
        let detail = format!("The statements of this node would hold more than {} MiB together.", self.most >> 20);
        let hint = "Run fewer large statements at once, or give the node more memory for statements.";
        Err(Error::sql("53200", "out of memory").detail(detail).hint(hint))
    }
}

/// What a statement has taken from a pool; it goes back with the statement.
#[derive(Debug, Default)]
pub(crate) struct Taken(Option<(Arc<MemoryPool>, usize)>);

impl Taken {
    /// A statement holds so much now.
    #[inline]
    pub(super) fn cover(&mut self, held: usize, pool: &Arc<MemoryPool>) -> Result<()> {
        let taken = self.0.as_ref().map_or(0, |(_, taken)| *taken);
        if held <= taken + FREE && taken <= held.saturating_add(SPARE) {
            return Ok(());
        }
        self.adjust(held.saturating_sub(FREE).next_multiple_of(PIECE), pool)
    }

    fn adjust(&mut self, wanted: usize, pool: &Arc<MemoryPool>) -> Result<()> {
        let (pool, taken) = self.0.get_or_insert_with(|| {
            pool.holders.fetch_add(1, Ordering::Relaxed);
            (pool.clone(), 0)
        });
        match wanted.checked_sub(*taken) {
            Some(more) => pool.take(more)?,
            None => drop(pool.taken.fetch_sub(*taken - wanted, Ordering::Relaxed)),
        }
        *taken = wanted;
        Ok(())
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some((pool, taken)) = &self.0 {
            pool.taken.fetch_sub(*taken, Ordering::Relaxed);
            pool.holders.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_take_what_they_hold_and_give_it_back() {
        let pool = Arc::new(MemoryPool::of(64 << 20));
        let (mut a, mut b) = (Taken::default(), Taken::default());
        a.cover(FREE, &pool).unwrap();
        assert_eq!(pool.taken(), 0, "a small statement takes nothing");
        a.cover(FREE + 1, &pool).unwrap();
        assert_eq!(pool.taken(), PIECE);
        a.cover(FREE + (40 << 20), &pool).unwrap();
        assert_eq!((pool.taken(), pool.share()), (40 << 20, usize::MAX));
        b.cover(FREE + (20 << 20), &pool).unwrap();
        assert_eq!((pool.taken(), pool.share()), (60 << 20, 16 << 20), "half of it for each half");
        let error = b.cover(FREE + (24 << 20) + 1, &pool).unwrap_err();
        assert_eq!((error.sqlstate(), pool.taken()), ("53200", 60 << 20));
        a.cover(39 << 20, &pool).unwrap();
        assert_eq!(pool.taken(), 60 << 20, "a little is kept for what comes next");
        a.cover(2 << 20, &pool).unwrap();
        assert_eq!(pool.taken(), 21 << 20);
        drop(b);
        assert_eq!(pool.taken(), PIECE);
        drop(a);
        assert_eq!(pool.taken(), 0);
    }
}
