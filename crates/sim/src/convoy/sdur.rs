//! S-DUR's server as a state machine: what its partition delivers and the votes that come go in;
//! votes, outcomes and broadcasts come out (Algorithms 2, 5 and 6 of the paper).
//!
//! Two lines of Algorithm 5 are printed the wrong way round and are here as the text above them has
//! it: a transaction may be passed while it has *not* reached its threshold (line 18), and may be
//! completed *from then on* (line 4).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

/// In which order a server completes transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// As they are delivered (Algorithm 2).
    Delivery,
    /// Local ones pass a pending global one until so many more have been delivered (Algorithm 5).
    Threshold(u64),
    /// Local ones at once, global ones when their outcome is delivered (Algorithm 6).
    Votes,
}

/// A transaction's part in one partition.
#[derive(Clone, Debug, Default)]
pub(super) struct Slice {
    pub reads: Vec<u32>,
    pub writes: Vec<u32>,
    /// The snapshot it was read in.
    pub snapshot: u64,
}

/// A transaction that is to be ended.
#[derive(Clone, Debug)]
pub(super) struct Transaction {
    pub number: u64,
    /// By partition.
    pub slices: BTreeMap<usize, Slice>,
}

impl Transaction {
    fn is_global(&self) -> bool {
        self.slices.len() > 1
    }
}

/// What a server does.
#[derive(Clone, Debug)]
pub(super) enum Effect {
    /// Send this partition's vote to all servers of the transaction's partitions.
    Vote { transaction: Rc<Transaction>, commit: bool },
    /// It is completed; whoever serves its client says so.
    Completed { transaction: Rc<Transaction>, commit: bool },
    /// Order the outcome in this partition.
    Broadcast { number: u64, commit: bool },
}

struct Pending {
    transaction: Rc<Transaction>,
    /// The delivery from which on nobody passes it, and it may be completed.
    threshold: u64,
}

/// The last snapshots made by transactions that read and that wrote a row.
#[derive(Clone, Copy, Default)]
struct Touched {
    read: u64,
    written: u64,
}

/// See the module.
pub(super) struct Server {
    partition: usize,
    order: Order,
    committed: BTreeMap<u32, Touched>,
    snapshot: u64,
    delivered: u64,
    pending: VecDeque<Pending>,
    votes: BTreeMap<u64, BTreeMap<usize, bool>>,
    /// Global ones; votes of other servers may still come.
    completed: BTreeSet<u64>,
}

impl Server {
    pub fn new(partition: usize, order: Order) -> Server {
        Server {
            partition,
            order,
            committed: BTreeMap::new(),
            snapshot: 0,
            delivered: 0,
            pending: VecDeque::new(),
            votes: BTreeMap::new(),
            completed: BTreeSet::new(),
        }
    }

    /// The snapshot that a read now is in.
    pub fn snapshot(&self) -> u64 {
        self.snapshot
    }

    /// A transaction is delivered.
    pub fn deliver(&mut self, transaction: &Rc<Transaction>, out: &mut Vec<Effect>) {
        self.delivered += 1;
        let commit = self.certify(transaction, out);
        if !commit {
            self.complete(transaction, false, out);
        }
        if transaction.is_global() {
            out.push(Effect::Vote { transaction: transaction.clone(), commit });
            self.vote(transaction.number, self.partition, commit, out);
        }
        self.complete_ready(out);
    }

    /// A vote has come.
    pub fn vote(&mut self, number: u64, from: usize, commit: bool, out: &mut Vec<Effect>) {
        if self.completed.contains(&number) {
            return;
        }
        // Every server of a partition says the same.
        let is_new = self.votes.entry(number).or_default().insert(from, commit).is_none();
        if self.order != Order::Votes {
            return self.complete_ready(out);
        }
        let waiting = self.pending.iter().find(|p| p.transaction.number == number);
        if is_new && waiting.is_some_and(|p| self.has_votes(&p.transaction)) {
            out.push(Effect::Broadcast { number, commit: self.outcome(number) });
        }
    }

    /// A global transaction's outcome is delivered.
    pub fn deliver_outcome(&mut self, number: u64, commit: bool, out: &mut Vec<Effect>) {
        if let Some(pending) = self.pending.iter().find(|p| p.transaction.number == number) {
            let transaction = pending.transaction.clone();
            self.complete(&transaction, commit, out);
        }
    }

    fn slice<'t>(&self, transaction: &'t Transaction) -> &'t Slice {
        &transaction.slices[&self.partition]
    }

    fn certify(&mut self, transaction: &Rc<Transaction>, out: &mut Vec<Effect>) -> bool {
        if self.conflicts_with_committed(transaction) {
            return false;
        }
        let pending = Pending { transaction: transaction.clone(), threshold: self.threshold() };
        match (self.order, transaction.is_global()) {
            (Order::Threshold(_), false) => match self.place(transaction) {
                Some(place) => self.pending.insert(place, pending),
                None => return false,
            },
            (Order::Votes, is_global) => {
                if self.pending.iter().any(|p| self.disturb(transaction, &p.transaction)) {
                    return false;
                }
                match is_global {
                    true => self.pending.push_back(pending),
                    false => self.complete(transaction, true, out),
                }
            }
            _ => {
                if self.pending.iter().any(|p| !self.passes(transaction, &p.transaction)) {
                    return false;
                }
                self.pending.push_back(pending);
            }
        }
        true
    }

    fn threshold(&self) -> u64 {
        match self.order {
            Order::Threshold(k) => self.delivered + k,
            _ => self.delivered,
        }
    }

    fn conflicts_with_committed(&self, transaction: &Transaction) -> bool {
        let slice = self.slice(transaction);
        let touched = |row: &u32| self.committed.get(row).copied().unwrap_or_default();
        slice.reads.iter().any(|row| touched(row).written > slice.snapshot)
            || transaction.is_global() && slice.writes.iter().any(|row| touched(row).read > slice.snapshot)
    }

    /// The paper's `ctest`.
    fn passes(&self, transaction: &Transaction, other: &Transaction) -> bool {
        let (mine, theirs) = (self.slice(transaction), self.slice(other));
        !meet(&mine.reads, &theirs.writes) && (!transaction.is_global() || !meet(&mine.writes, &theirs.reads))
    }

    /// Whether two may not end in either order.
    fn disturb(&self, transaction: &Transaction, other: &Transaction) -> bool {
        let (mine, theirs) = (self.slice(transaction), self.slice(other));
        meet(&mine.reads, &theirs.writes) || meet(&mine.writes, &theirs.reads)
    }

    /// The foremost place among the pending ones at which a local transaction may end (Algorithm 5,
    /// lines 15 to 21).
    fn place(&self, transaction: &Transaction) -> Option<usize> {
        let may_pass = |p: &Pending| {
            p.transaction.is_global() && self.delivered <= p.threshold && !self.disturb(transaction, &p.transaction)
        };
        let place = self.pending.len() - self.pending.iter().rev().take_while(|p| may_pass(p)).count();
        let reads = &self.slice(transaction).reads;
        let is_stale = self.pending.iter().take(place).any(|p| meet(&self.slice(&p.transaction).writes, reads));
        (!is_stale).then_some(place)
    }

    fn has_votes(&self, transaction: &Transaction) -> bool {
        let votes = self.votes.get(&transaction.number);
        transaction.slices.keys().all(|p| votes.is_some_and(|votes| votes.contains_key(p)))
    }

    fn outcome(&self, number: u64) -> bool {
        self.votes.get(&number).is_some_and(|votes| votes.values().all(|commit| *commit))
    }

    /// Completes from the head of the queue on, as far as it goes.
    fn complete_ready(&mut self, out: &mut Vec<Effect>) {
        if self.order == Order::Votes {
            return;
        }
        while let Some(head) = self.pending.front() {
            let is_global = head.transaction.is_global();
            if is_global && (self.delivered < head.threshold || !self.has_votes(&head.transaction)) {
                return;
            }
            let transaction = head.transaction.clone();
            let commit = !is_global || self.outcome(transaction.number);
            self.complete(&transaction, commit, out);
        }
    }

    fn complete(&mut self, transaction: &Rc<Transaction>, commit: bool, out: &mut Vec<Effect>) {
        self.pending.retain(|p| p.transaction.number != transaction.number);
        if transaction.is_global() {
            self.votes.remove(&transaction.number);
            self.completed.insert(transaction.number);
        }
        if commit {
            self.snapshot += 1;
            let slice = &transaction.slices[&self.partition];
            slice.reads.iter().for_each(|row| self.committed.entry(*row).or_default().read = self.snapshot);
            slice.writes.iter().for_each(|row| self.committed.entry(*row).or_default().written = self.snapshot);
        }
        out.push(Effect::Completed { transaction: transaction.clone(), commit });
    }
}

fn meet(some: &[u32], others: &[u32]) -> bool {
    some.iter().any(|row| others.contains(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transaction(number: u64, partitions: &[usize], rows: &[u32]) -> Rc<Transaction> {
        let slice = Slice { reads: rows.to_vec(), writes: rows.to_vec(), snapshot: 0 };
        Rc::new(Transaction { number, slices: partitions.iter().map(|p| (*p, slice.clone())).collect() })
    }

    /// What is completed, in order.
    fn completed(out: &[Effect]) -> Vec<(u64, bool)> {
        let one = |effect: &Effect| match effect {
            Effect::Completed { transaction, commit } => Some((transaction.number, *commit)),
            _ => None,
        };
        out.iter().filter_map(one).collect()
    }

    #[test]
    fn in_order_of_delivery_a_local_transaction_waits_for_the_votes_of_a_global_one() {
        let mut server = Server::new(0, Order::Delivery);
        let mut out = Vec::new();
        server.deliver(&transaction(1, &[0, 1], &[10]), &mut out);
        server.deliver(&transaction(2, &[0], &[20]), &mut out);
        assert_eq!(completed(&out), []);
        server.vote(1, 1, true, &mut out);
        assert_eq!(completed(&out), [(1, true), (2, true)]);
        assert_eq!(server.snapshot(), 2);
    }

    #[test]
    fn a_no_of_another_partition_aborts() {
        for order in [Order::Delivery, Order::Threshold(0)] {
            let mut server = Server::new(0, order);
            let mut out = Vec::new();
            // The vote may be there before the transaction.
            server.vote(1, 1, false, &mut out);
            server.deliver(&transaction(1, &[0, 1], &[10]), &mut out);
            assert_eq!(completed(&out), [(1, false)], "{order:?}");
            assert_eq!(server.snapshot(), 0);
        }
    }

    #[test]
    fn up_to_its_threshold_a_global_transaction_is_passed_and_not_completed() {
        let mut server = Server::new(0, Order::Threshold(2));
        let mut out = Vec::new();
        server.deliver(&transaction(1, &[0, 1], &[10]), &mut out);
        server.vote(1, 1, true, &mut out);
        server.deliver(&transaction(2, &[0], &[20]), &mut out);
        assert_eq!(completed(&out), [(2, true)], "it passed, and the global one waits though it has all votes");
        server.deliver(&transaction(3, &[0], &[30]), &mut out);
        assert_eq!(completed(&out), [(2, true), (3, true), (1, true)]);
    }

    #[test]
    fn behind_the_threshold_nobody_passes() {
        let mut server = Server::new(0, Order::Threshold(1));
        let mut out = Vec::new();
        server.deliver(&transaction(1, &[0, 1], &[10]), &mut out);
        server.deliver(&transaction(2, &[0], &[20]), &mut out);
        server.deliver(&transaction(3, &[0], &[30]), &mut out);
        assert_eq!(completed(&out), [(2, true)]);
        server.vote(1, 1, true, &mut out);
        assert_eq!(completed(&out), [(2, true), (1, true), (3, true)]);
    }

    #[test]
    fn who_conflicts_with_a_pending_global_transaction_aborts() {
        for order in [Order::Delivery, Order::Threshold(5), Order::Votes] {
            let mut server = Server::new(0, order);
            let mut out = Vec::new();
            server.deliver(&transaction(1, &[0, 1], &[10]), &mut out);
            server.deliver(&transaction(2, &[0], &[10]), &mut out);
            assert_eq!(completed(&out), [(2, false)], "{order:?}");
        }
    }

    #[test]
    fn a_stale_snapshot_aborts() {
        let mut server = Server::new(0, Order::Delivery);
        let mut out = Vec::new();
        server.deliver(&transaction(1, &[0], &[10]), &mut out);
        server.deliver(&transaction(2, &[0], &[10]), &mut out);
        assert_eq!(completed(&out), [(1, true), (2, false)]);
    }

    #[test]
    fn with_ordered_outcomes_local_transactions_complete_at_once() {
        let mut server = Server::new(0, Order::Votes);
        let mut out = Vec::new();
        server.deliver(&transaction(1, &[0, 1], &[10]), &mut out);
        server.deliver(&transaction(2, &[0], &[20]), &mut out);
        assert_eq!(completed(&out), [(2, true)]);
        server.vote(1, 1, true, &mut out);
        server.vote(1, 1, true, &mut out);
        let broadcasts = out.iter().filter(|e| matches!(e, Effect::Broadcast { number: 1, commit: true })).count();
        assert_eq!(broadcasts, 1);
        assert_eq!(completed(&out), [(2, true)], "not before the outcome is delivered");
        server.deliver_outcome(1, true, &mut out);
        assert_eq!(completed(&out), [(2, true), (1, true)]);
    }
}
