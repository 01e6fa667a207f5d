//! Tokens of escrow shares that statements hold for their transactions, before these commit
//! (`docs/design/escrow.md`, «Statements»).
//!
//! They are in a primary's memory only, and for a few seconds. Certification takes them over; where
//! they are lost, it decides whether the transaction is covered, as it would without them.

use meridian_base::escrow::Free;
use meridian_base::{Key, Timestamp, TxnId};
use std::collections::{BTreeMap, BTreeSet};

/// Transactions for which tokens are held. More are not served: they go without.
const TRANSACTIONS_MAX: usize = 10_000;

/// See the module's essay.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reserved {
    by_transaction: BTreeMap<TxnId, Held>,
    /// Of all transactions. No share without tokens is in it.
    sums: BTreeMap<Key, Free>,
    ends: BTreeSet<(Timestamp, TxnId)>,
}

#[derive(Clone, Debug)]
struct Held {
    until: Timestamp,
    tokens: BTreeMap<Key, Free>,
}

impl Reserved {
    /// What is held of a share, by all.
    pub fn sum(&self, share: &Key) -> Free {
        self.sums.get(share).copied().unwrap_or_default()
    }

    /// What is held of a share for a transaction.
    pub fn of(&self, id: TxnId, share: &Key) -> Free {
        self.by_transaction.get(&id).and_then(|held| held.tokens.get(share)).copied().unwrap_or_default()
    }

    /// Holds so much of a share for a transaction, instead of what is held of it so far, and all
    /// that is held for it until then.
    pub fn put(&mut self, id: TxnId, share: &Key, tokens: Free, until: Timestamp) {
        self.take(id, share);
        if tokens == Free::default() || !self.by_transaction.contains_key(&id) && self.by_transaction.len() >= TRANSACTIONS_MAX {
            return;
        }
        let held = self.by_transaction.entry(id).or_insert_with(|| Held { until, tokens: BTreeMap::new() });
        self.ends.remove(&(held.until, id));
        held.until = held.until.max(until);
        self.ends.insert((held.until, id));
        held.tokens.insert(share.clone(), tokens);
        let sum = self.sums.entry(share.clone()).or_default();
        *sum = Free { down: sum.down + tokens.down, up: sum.up + tokens.up };
    }

    /// Nothing of a share is held for the transaction any more.
    pub fn take(&mut self, id: TxnId, share: &Key) {
        let Some(held) = self.by_transaction.get_mut(&id) else { return };
        let Some(tokens) = held.tokens.remove(share) else { return };
        if held.tokens.is_empty() {
            self.ends.remove(&(held.until, id));
            self.by_transaction.remove(&id);
        }
        self.subtract(share, tokens);
    }

    /// Nothing is held for the transaction any more.
    pub fn remove(&mut self, id: TxnId) {
        let Some(held) = self.by_transaction.remove(&id) else { return };
        self.ends.remove(&(held.until, id));
        held.tokens.iter().for_each(|(share, tokens)| self.subtract(share, *tokens));
    }

    /// The share's number is set, or its row deleted: nothing of it is held any more.
    pub fn end(&mut self, share: &Key) {
        if !self.sums.contains_key(share) {
            return;
        }
        let ids: Vec<TxnId> =
            self.by_transaction.iter().filter(|(_, held)| held.tokens.contains_key(share)).map(|(id, _)| *id).collect();
        ids.into_iter().for_each(|id| self.take(id, share));
    }

    /// Ends what is held until `now` or less.
    pub fn expire(&mut self, now: Timestamp) {
        while let Some((_, id)) = self.ends.first().copied().filter(|(until, _)| *until <= now) {
            self.remove(id);
        }
    }

    fn subtract(&mut self, share: &Key, tokens: Free) {
        let sum = self.sums.get_mut(share).expect("what is held is in the sum");
        *sum = Free { down: sum.down - tokens.down, up: sum.up - tokens.up };
        if *sum == Free::default() {
            self.sums.remove(share);
        }
    }

    /// What holds between two events.
    pub fn invariant(&self) {
        let mut sums: BTreeMap<&Key, Free> = BTreeMap::new();
        for (share, tokens) in self.by_transaction.values().flat_map(|held| &held.tokens) {
            let sum = sums.entry(share).or_default();
            *sum = Free { down: sum.down + tokens.down, up: sum.up + tokens.up };
        }
        assert!(sums.into_iter().eq(self.sums.iter().map(|(share, sum)| (share, *sum))), "reserved tokens add up");
        assert_eq!(self.ends.len(), self.by_transaction.len(), "every reservation ends");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_base::NodeId;

    const KEYS: [&[u8]; 2] = [b"a", b"b"];

    fn id(n: u64) -> TxnId {
        TxnId { hlc: Timestamp(n), gateway: NodeId(1) }
    }
    fn up(up: i128) -> Free {
        Free { down: 0, up }
    }

    #[test]
    fn what_is_held_adds_up_and_ends() {
        let [a, b] = KEYS.map(Key::new);
        let mut reserved = Reserved::default();
        reserved.put(id(1), &a, up(3), Timestamp(10));
        reserved.put(id(2), &a, up(4), Timestamp(20));
        reserved.put(id(1), &b, Free { down: 2, up: 1 }, Timestamp(15));
        reserved.invariant();
        assert_eq!((reserved.sum(&a), reserved.of(id(1), &a)), (up(7), up(3)));
        // All that a statement says replaces what an earlier one said.
        reserved.put(id(1), &a, up(5), Timestamp(12));
        assert_eq!(reserved.sum(&a), up(9));
        reserved.expire(Timestamp(14));
        assert_eq!(reserved.sum(&a), up(9), "all that one transaction holds ends together");
        reserved.expire(Timestamp(15));
        assert_eq!((reserved.sum(&a), reserved.sum(&b)), (up(4), up(0)));
        reserved.invariant();
        reserved.put(id(3), &a, up(1), Timestamp(30));
        reserved.put(id(3), &b, up(1), Timestamp(30));
        reserved.end(&a);
        assert_eq!((reserved.sum(&a), reserved.of(id(3), &b)), (up(0), up(1)));
        reserved.take(id(3), &b);
        reserved.invariant();
        assert!(reserved.by_transaction.is_empty() && reserved.sums.is_empty());
    }

    #[test]
    fn no_more_transactions_are_served_than_fit() {
        let [a, _] = KEYS.map(Key::new);
        let mut reserved = Reserved::default();
        (0..2 * TRANSACTIONS_MAX as u64).for_each(|n| reserved.put(id(n), &a, up(1), Timestamp(n + 1)));
        assert_eq!(reserved.sum(&a), up(TRANSACTIONS_MAX as i128));
        reserved.put(id(5), &a, up(2), Timestamp(9));
        assert_eq!(reserved.sum(&a), up(TRANSACTIONS_MAX as i128 + 1), "who is served stays so");
        reserved.expire(Timestamp::MAX);
        assert_eq!(reserved.sum(&a), up(0));
        reserved.invariant();
    }
}
