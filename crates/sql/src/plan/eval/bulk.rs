//! Collections that may hold millions of rows.

use std::ops::{Deref, DerefMut};

/// So many items are given back at once.
const AT_ONCE: usize = 1_024;

/// A collection whose items are given back in pieces, between which other sessions have the thread:
/// a million rows take longer to be given back than others can wait. It is so however a statement
/// ends.
#[derive(Default)]
pub(crate) struct Bulk<C: Collection>(C);

pub(crate) trait Collection: Default + IntoIterator<IntoIter: ExactSizeIterator + Send + 'static> {}

impl<C: Default + IntoIterator<IntoIter: ExactSizeIterator + Send + 'static>> Collection for C {}

impl<C: Collection> Bulk<C> {
    /// The collection, for who uses its items up one after the other.
    pub(crate) fn take(mut self) -> C {
        std::mem::take(&mut self.0)
    }
}

impl<C: Collection> From<C> for Bulk<C> {
    fn from(items: C) -> Bulk<C> {
        Bulk(items)
    }
}

impl<C: Collection> Deref for Bulk<C> {
    type Target = C;
    fn deref(&self) -> &C {
        &self.0
    }
}

impl<C: Collection> DerefMut for Bulk<C> {
    fn deref_mut(&mut self) -> &mut C {
        &mut self.0
    }
}

impl<C: Collection> Drop for Bulk<C> {
    fn drop(&mut self) {
        let mut items = std::mem::take(&mut self.0).into_iter();
        if items.len() > AT_ONCE
            && let Ok(scheduler) = tokio::runtime::Handle::try_current()
        {
            scheduler.spawn(async move {
                while items.len() > 0 {
                    items.by_ref().take(AT_ONCE).for_each(drop);
                    tokio::task::yield_now().await;
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[tokio::test]
    async fn large_collections_are_given_back_in_pieces() {
        let item = Arc::new(());
        let of = |count| Bulk::from(vec![item.clone(); count]);
        drop(of(AT_ONCE));
        assert_eq!(Arc::strong_count(&item), 1, "a small one at once");
        drop(of(3 * AT_ONCE));
        let mut left = Vec::new();
        while Arc::strong_count(&item) > 1 {
            left.push(Arc::strong_count(&item) - 1);
            tokio::task::yield_now().await;
        }
        assert_eq!(left, [3 * AT_ONCE, 2 * AT_ONCE, AT_ONCE], "a large one while others have their turn");
    }
}
