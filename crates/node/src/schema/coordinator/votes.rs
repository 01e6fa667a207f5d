//! How long the participants of a transaction that commits with a schema step work for their votes.
//!
//! While they do, the schema leases of all groups are lowered, and a lease that ends meanwhile
//! makes everybody wait for the next one. So the bound that a step leaves them goes by the size of
//! the transaction. The step waits for that bound in any case; so it is no more than a machine
//! needs that does nothing else, and nothing is learned from a ballot that took longer: one that
//! was held up would hold up those after it.

use crate::transport::wire::Slice;
use std::time::Duration;

/// Of a write or a read, beside its bytes: what is looked up and kept for it.
const ENTRY_BYTES: usize = 100;
/// For a byte of work.
const RATE: Duration = Duration::from_nanos(40);
/// A step is not to wait for longer. As long as the largest transaction takes.
const LONGEST: Duration = Duration::from_millis(750);

/// How long these slices' participants will work.
pub(super) fn expected(slices: &[Slice]) -> Duration {
    let of_slice = |slice: &Slice| {
        let writes = slice.request.writes.iter().map(|m| m.bytes() + ENTRY_BYTES);
        writes.sum::<usize>() + slice.request.reads.len() * ENTRY_BYTES
    };
    let bytes = slices.iter().map(of_slice).sum::<usize>();
    RATE.saturating_mul(u32::try_from(bytes).unwrap_or(u32::MAX)).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_base::{Change, ColumnMask, CommitRequest, GroupId, Key, Mutation, SchemaUse, Timestamp, TxnId};

    fn slice(rows: usize) -> Slice {
        let write = |at: usize| Mutation {
            key: Key::new(&at.to_be_bytes()),
            change: Change::Put(vec![0; 42].into()),
            columns: ColumnMask::ALL,
        };
        let request = CommitRequest {
            id: TxnId::default(),
            reads: Vec::new(),
            writes: (0..rows).map(write).collect(),
            min_commit: Timestamp::MIN,
            schema: SchemaUse::default(),
            global: Default::default(),
        };
        Slice { group: GroupId(2), request, has_queued: false }
    }

    #[test]
    fn a_step_waits_by_the_size_of_its_transaction_and_no_longer_than_for_the_largest() {
        assert_eq!(expected(&[]), Duration::ZERO);
        assert_eq!(expected(&[slice(1_000)]), Duration::from_millis(6));
        assert_eq!(expected(&[slice(1_000), slice(9_000)]), Duration::from_millis(60));
        assert_eq!(expected(&[slice(200_000)]), LONGEST);
    }
}
