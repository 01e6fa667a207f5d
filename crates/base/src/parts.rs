//! A transaction of one group that is too large for one entry of the log.
//!
//! The primary certifies it as any other. Its writes then go into as many entries as they need, one
//! [`Part`] after the other ([`Cutter`]), with nothing certified later between them. A replica
//! keeps the parts, and applies the transaction, whole, with the last ([`Gatherer`]). So the log
//! commits it with one entry, the last: if the term ends before that, no later term can append what
//! is missing, and the parts are nothing. Until then the promises of the entries
//! ([`crate::record::Payload::closed`]) stay below its timestamp, as for everything that is
//! certified and not in the log, so no reader looks where it will be.
//!
//! A replica does not flush while it has gathered parts (its flushed state has no place for them):
//! it begins again before the first one. They are entries of one stretch of the log, so that is
//! soon over.

use crate::error::{Error, Result};
use crate::id::TxnId;
use crate::limits;
use crate::record::{Committed, Part, Payload, Record, write_bytes};
use crate::time::Timestamp;
use crate::txn::Write;
use std::vec::IntoIter;

/// From which size on a transaction is treated as a large one. The simulator has small ones treated
/// so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LargeFrom {
    /// A transaction with more bytes of writes goes into the log in parts of about this size.
    pub part_bytes: usize,
    /// A slice with more bytes is sent to a primary on another node in pieces of `part_bytes`.
    pub slice_bytes: usize,
    /// Of a transaction with more writes the conflict index has only the stretches of their keys.
    pub writes: usize,
    /// A load into a table without rows that has written more bytes goes on ahead of its
    /// transaction ([`limits::LOAD_BYTES_MAX`]).
    pub load_bytes: usize,
}

impl Default for LargeFrom {
    fn default() -> LargeFrom {
        LargeFrom {
            part_bytes: limits::PART_BYTES,
            slice_bytes: limits::TXN_BYTES_MAX,
            writes: limits::WRITES_INDEXED_MAX,
            load_bytes: limits::LOAD_BYTES_MAX,
        }
    }
}

impl LargeFrom {
    /// Every transaction with more than one write.
    pub const TWO_WRITES: LargeFrom = LargeFrom { part_bytes: 1, slice_bytes: 1, writes: 1, load_bytes: 1 };
}

/// Cuts a transaction into parts.
#[derive(Debug)]
pub struct Cutter {
    id: TxnId,
    at: Timestamp,
    number: u32,
    left: IntoIter<Write>,
}

impl Cutter {
    pub fn new(txn: Committed) -> Cutter {
        Cutter { id: txn.id, at: txn.at, number: 0, left: txn.writes.into_iter() }
    }

    /// The commit timestamp.
    pub fn at(&self) -> Timestamp {
        self.at
    }

    /// The next part: at least one write, and further ones up to about `bytes_max` bytes. The
    /// caller stops at the part that is the last.
    pub fn cut(&mut self, bytes_max: usize) -> Part {
        let mut writes = Vec::new();
        let mut bytes = 0;
        while bytes < bytes_max
            && let Some(write) = self.left.next()
        {
            bytes += write_bytes(&write);
            writes.push(write);
        }
        let part = Part { id: self.id, at: self.at, number: self.number, is_last: self.left.len() == 0, writes };
        self.number += 1;
        part
    }
}

/// Whether a transaction has more than one write and more than `bytes_max` bytes, and so goes into
/// the log in parts.
pub fn is_large(txn: &Committed, bytes_max: usize) -> bool {
    let mut bytes = 0;
    txn.writes.len() > 1
        && txn.writes.iter().any(|write| {
            bytes += write_bytes(write);
            bytes > bytes_max
        })
}

/// Puts the parts together again.
#[derive(Debug, Default)]
pub struct Gatherer {
    gathered: Option<Gathered>,
}

#[derive(Debug)]
struct Gathered {
    /// The log's term that the parts are of.
    term: u64,
    id: TxnId,
    at: Timestamp,
    /// The number of the next part.
    next: u32,
    writes: Vec<Write>,
}

impl Gatherer {
    /// Whether parts wait for others.
    pub fn is_amid(&self) -> bool {
        self.gathered.is_some()
    }

    /// An entry of this term is next. What an earlier term has begun will not go on.
    pub fn enter(&mut self, term: u64) {
        if self.gathered.as_ref().is_some_and(|gathered| gathered.term < term) {
            self.gathered = None;
        }
    }

    /// Takes the parts out of an entry's payload; in the place of a last one comes the whole
    /// transaction. An error if a part comes without those before it: then the log is damaged.
    pub fn take(&mut self, term: u64, payload: &mut Payload) -> Result<()> {
        if !payload.records.iter().any(|record| matches!(record, Record::Part(_))) {
            return Ok(());
        }
        let mut records = Vec::with_capacity(payload.records.len());
        for record in std::mem::take(&mut payload.records) {
            match record {
                Record::Part(part) => records.extend(self.add(term, part)?.map(|txn| Record::Batch(vec![txn]))),
                other => records.push(other),
            }
        }
        payload.records = records;
        Ok(())
    }

    fn add(&mut self, term: u64, part: Part) -> Result<Option<Committed>> {
        let Part { id, at, number, is_last, writes } = part;
        let mut gathered = match self.gathered.take() {
            // The same term may begin again after parts that were dropped on their way.
            _ if number == 0 => Gathered { term, id, at, next: 0, writes: Vec::new() },
            Some(gathered) if gathered.term == term && gathered.id == id && gathered.next == number => gathered,
            _ => return Err(Error::fatal(format!("the log has part {number} of transaction {id} without those before it"))),
        };
        match gathered.writes.is_empty() {
            true => gathered.writes = writes,
            false => gathered.writes.extend(writes),
        }
        gathered.next += 1;
        if is_last {
            return Ok(Some(Committed { id, at: gathered.at, writes: gathered.writes }));
        }
        self.gathered = Some(gathered);
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::NodeId;
    use crate::key::Key;
    use crate::txn::ColumnMask;
    use bytes::Bytes;
    use proptest::prelude::*;

    fn id(hlc: u64) -> TxnId {
        TxnId { hlc: Timestamp(hlc), gateway: NodeId(1) }
    }

    fn txn(hlc: u64, lengths: &[usize]) -> Committed {
        let write = |(n, len): (usize, &usize)| Write {
            key: Key::new(&(n as u32).to_be_bytes()),
            value: (*len > 0).then(|| Bytes::from(vec![n as u8; *len])),
            columns: ColumnMask::ALL,
        };
        Committed { id: id(hlc), at: Timestamp(hlc + 1), writes: lengths.iter().enumerate().map(write).collect() }
    }

    fn parts(txn: Committed, bytes_max: usize) -> Vec<Part> {
        let mut cutter = Cutter::new(txn);
        let mut parts = Vec::new();
        while parts.last().is_none_or(|part: &Part| !part.is_last) {
            parts.push(cutter.cut(bytes_max));
        }
        parts
    }

    fn payload(part: Part) -> Payload {
        let lease = Record::Refused(part.id);
        Payload { records: vec![lease.clone(), Record::Part(part), lease], ..Payload::default() }
    }

    proptest! {
        #[test]
        fn what_was_cut_is_gathered(lengths in prop::collection::vec(0..100usize, 1..40), bytes_max in 1..400usize, fresh: bool) {
            let whole = txn(7, &lengths);
            let mut gatherer = Gatherer::default();
            if !fresh {
                // Of an earlier term, or of this one before it began again.
                gatherer.add(3, Part { is_last: false, ..parts(txn(5, &[9, 9, 9]), 1).swap_remove(0) }).unwrap();
            }
            let cut = parts(whole.clone(), bytes_max);
            prop_assert!(cut.iter().all(|part| !part.writes.is_empty()), "every part has a write");
            let is_full = |part: &Part| part.writes.iter().map(write_bytes).sum::<usize>() >= bytes_max;
            prop_assert!(cut.iter().all(|part| part.is_last || is_full(part)));
            prop_assert!(cut.len() == 1 || is_large(&whole, bytes_max));
            let last = cut.len() - 1;
            for (number, part) in cut.into_iter().enumerate() {
                let mut payload = payload(part);
                gatherer.enter(3);
                gatherer.take(3, &mut payload).unwrap();
                prop_assert_eq!(gatherer.is_amid(), number < last);
                prop_assert_eq!(payload.records.len(), if number == last { 3 } else { 2 });
                if number == last {
                    prop_assert_eq!(&payload.records[1], &Record::Batch(vec![whole.clone()]));
                }
            }
        }
    }

    #[test]
    fn what_a_term_has_begun_ends_with_it() {
        let mut cut = parts(txn(7, &[1, 1, 1]), 1).into_iter();
        let mut gatherer = Gatherer::default();
        gatherer.enter(2);
        gatherer.take(2, &mut payload(cut.next().unwrap())).unwrap();
        gatherer.enter(2);
        assert!(gatherer.is_amid(), "the term goes on");
        gatherer.enter(3);
        assert!(!gatherer.is_amid());
        let e = gatherer.take(3, &mut payload(cut.next().unwrap())).unwrap_err();
        assert!(e.message().contains("without those before it"), "{e}");
    }

    #[test]
    fn a_part_that_is_missing_is_noticed() {
        let all = || parts(txn(7, &[1, 1, 1]), 1);
        let other = parts(txn(8, &[1, 1, 1]), 1);
        for wrong in [all().swap_remove(2), all().swap_remove(2), other[1].clone()] {
            let mut gatherer = Gatherer::default();
            gatherer.take(2, &mut payload(all().swap_remove(0))).unwrap();
            gatherer.take(2, &mut payload(wrong)).unwrap_err();
            assert!(!gatherer.is_amid());
        }
    }
}
