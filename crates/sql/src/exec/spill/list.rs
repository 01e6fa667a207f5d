//! Rows in the order in which they came, read any number of times.

use super::{Block, Codec, Keyed, Pieces, Runs, Sorter, Source};
use crate::env::Transaction;
use crate::exec::eval::Row;
use crate::exec::{BATCH, Runtime};
use crate::plan::eval::bulk::Bulk;
use meridian_base::Result;
use std::collections::VecDeque;
use std::sync::Arc;

/// Takes rows for a list. Those that are alike in the order of a sort stay as they came; without
/// keys all are.
pub(in crate::exec) struct Listing(Sorter);

/// All rows; a temporary file has those for which there was no room.
#[derive(Default)]
pub(in crate::exec) struct List {
    blocks: Vec<Block>,
    source: Option<Source>,
    /// Behind those of the blocks.
    last: Pieces,
    /// Bytes in the file.
    bytes: u64,
}

/// How far a list has been read.
#[derive(Default)]
pub(crate) struct Place {
    blocks: usize,
    /// What is left of the last block.
    rows: Bulk<VecDeque<Keyed>>,
    last: usize,
}

impl Listing {
    pub(in crate::exec) fn new() -> Listing {
        Listing(Sorter::new(Arc::new([])))
    }

    /// Takes the next rows, and accounts for them.
    pub(in crate::exec) async fn extend<T: Transaction>(&mut self, rows: Vec<Row>, rt: &mut Runtime<'_, T>) -> Result<()> {
        for row in rows {
            rt.step().await?;
            let bytes = rt.keep(std::slice::from_ref(&row))?;
            self.0.push(Row::new(), row, bytes);
        }
        self.0.trim(rt).await
    }

    /// All of them.
    pub(in crate::exec) fn finish(self) -> List {
        let Sorter { kept: last, runs, .. } = self.0;
        let Some(Runs { ways, file, codec, runs, end, .. }) = runs else { return List { last, ..List::default() } };
        let source = Some(Source { file, codec: Arc::<Codec>::new(codec), ways });
        List { blocks: runs.into_iter().flatten().collect(), source, last, bytes: end }
    }
}

impl List {
    pub(in crate::exec) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The next rows from a place on, which moves behind them; `None` at the end.
    pub(in crate::exec) async fn next<T: Transaction>(
        &self,
        place: &mut Place,
        rt: &mut Runtime<'_, T>,
    ) -> Result<Option<Vec<Row>>> {
        if place.rows.is_empty()
            && let (Some(source), Some(block)) = (&self.source, self.blocks.get(place.blocks))
        {
            let (source, block) = (source.clone(), *block);
            place.rows = rt.aside(move || source.read(block)).await??.into();
            place.blocks += 1;
        }
        if !place.rows.is_empty() {
            let take = place.rows.len().min(BATCH);
            return Ok(Some(place.rows.drain(..take).map(|next| next.row).collect()));
        }
        let rows: Vec<Row> = self.last.batch(place.last).iter().map(|next| next.row.clone()).collect();
        place.last += rows.len();
        Ok((!rows.is_empty()).then_some(rows))
    }
}
