//! Rows in memory, in pieces.

use crate::exec::BATCH;
use crate::exec::sort::Keyed;
use crate::plan::eval::bulk::Bulk;

/// So many rows are in a piece: more than are given back at once.
const PIECE: usize = 16 * BATCH;

/// Rows in the order in which they came. One block of memory for millions of them would be copied
/// as it grows, for longer than other sessions can wait.
#[derive(Default)]
pub(super) struct Pieces(Vec<Bulk<Vec<Keyed>>>);

impl Pieces {
    pub(super) fn push(&mut self, row: Keyed) {
        match self.0.last_mut().filter(|last| last.len() < PIECE) {
            Some(last) => last.push(row),
            None => self.0.push(vec![row].into()),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Some of the rows from a place on, at most a batch; none at the end.
    pub(super) fn batch(&self, from: usize) -> &[Keyed] {
        let Some(piece) = self.0.get(from / PIECE) else { return &[] };
        let from = from % PIECE;
        &piece[from..piece.len().min(from + BATCH)]
    }
}

impl IntoIterator for Pieces {
    type Item = Vec<Keyed>;
    type IntoIter = std::iter::Map<std::vec::IntoIter<Bulk<Vec<Keyed>>>, fn(Bulk<Vec<Keyed>>) -> Vec<Keyed>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter().map(Bulk::take)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::sort::Way;
    use crate::types::Datum;

    #[test]
    fn rows_come_in_batches_and_in_their_order() {
        const ROWS: usize = 2 * PIECE + 5;
        let mut pieces = Pieces::default();
        assert!(pieces.is_empty() && pieces.batch(0).is_empty());
        (0..ROWS).for_each(|n| pieces.push(Keyed::new(vec![Datum::Int(n as i64)], Vec::new(), &[Way::PLAIN])));
        let mut read = Vec::new();
        loop {
            let batch = pieces.batch(read.len());
            if batch.is_empty() {
                break;
            }
            assert!(batch.len() <= BATCH);
            read.extend(batch.iter().map(|row| row.key.clone()));
        }
        let all: Vec<_> = (0..ROWS).map(|n| vec![Datum::Int(n as i64)]).collect();
        assert!(read == all);
        assert!(pieces.into_iter().flatten().map(|row| row.key).eq(all));
    }
}
