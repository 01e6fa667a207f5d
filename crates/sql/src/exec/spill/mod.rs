//! All rows in an order, of which a temporary file has those for which there is no room in memory:
//! sorted runs, and their merge.
//!
//! ```text
//! run    block, block, …
//! block  checksum u64 | rows
//! row    its key | its columns
//! ```
//!
//! Where the blocks of a run are is kept in memory. A run is sorted, written and read where a
//! statement may compute for long and block on the disk; the rows of one block of each run are in
//! memory while they are merged.

pub(super) mod beyond;
mod codec;
pub(super) mod list;
mod pieces;

use super::sort::{Keyed, Way, compare_keys};
use super::{BATCH, MEMORY_BYTES_MAX, Row, Runtime};
use crate::env::Transaction;
use crate::plan::eval::bulk::Bulk;
use crate::temporary::Temporary;
use codec::Codec;
use meridian_base::{Error, Result};
use pieces::Pieces;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// A block is full once it has so many bytes, if a statement may hold the usual number of them;
/// otherwise this part of what it may hold. One block of each run is in memory.
const BLOCK_MAX: usize = 128 << 10;
const BLOCK_PART: usize = MEMORY_BYTES_MAX / BLOCK_MAX;
/// A run has so many blocks at least, if they are smaller than [`BLOCK_MAX`].
const BLOCKS_MIN: usize = 128;
/// What the rows of a block take in memory, by its bytes, about.
const DECODED: usize = 3;
const CHECKSUM: usize = 8;

/// A run is written when its rows take so much; or as much as a piece, once half of what a
/// statement may hold is held.
const RUN_BYTES: usize = 128 << 20;

/// Whether half of what a statement should hold is held: operators that can do with less begin to.
pub(super) fn is_short<T: Transaction>(rt: &Runtime<'_, T>) -> bool {
    rt.held() > rt.most() / 2
}

/// Puts rows in an order; equal ones stay as they came.
pub(super) struct Sorter {
    ways: Arc<[Way]>,
    /// Those that are in memory.
    kept: Pieces,
    /// What is accounted for them.
    bytes: usize,
    runs: Option<Runs>,
}

impl Sorter {
    pub(super) fn new(ways: Arc<[Way]>) -> Sorter {
        Sorter { ways, kept: Pieces::default(), bytes: 0, runs: None }
    }

    /// One that certainly has a temporary file; `None`: there are none here.
    pub(super) fn on_disk<T: Transaction>(ways: Arc<[Way]>, rt: &Runtime<'_, T>) -> Option<Sorter> {
        let runs = Runs::new(ways.clone(), rt)?;
        Some(Sorter { runs: Some(runs), ..Sorter::new(ways) })
    }

    /// Takes a row with its key, for which so many bytes are accounted.
    pub(super) fn push(&mut self, key: Row, row: Row, bytes: usize) {
        self.bytes += bytes;
        self.kept.push(Keyed::new(key, row, &self.ways));
    }

    /// Takes rows that were kept elsewhere, for which so many bytes are accounted.
    pub(super) fn take(&mut self, rows: Vec<Keyed>, bytes: usize) {
        self.bytes += bytes;
        rows.into_iter().for_each(|row| self.kept.push(row));
    }

    /// Writes a run, if what is in memory takes much of it.
    pub(super) async fn trim<T: Transaction>(&mut self, rt: &mut Runtime<'_, T>) -> Result<()> {
        if self.bytes <= RUN_BYTES && !(is_short(rt) && self.bytes > rt.piece()) {
            return Ok(());
        }
        if self.runs.is_none() {
            self.runs = Runs::new(self.ways.clone(), rt);
        }
        if let Some(runs) = &mut self.runs {
            runs.add(std::mem::take(&mut self.kept), rt).await?;
            rt.shared.memory -= std::mem::take(&mut self.bytes);
        }
        Ok(())
    }

    /// All rows in their order.
    pub(super) async fn finish<T: Transaction>(self, rt: &mut Runtime<'_, T>) -> Result<Merge> {
        let Sorter { ways, mut kept, bytes, mut runs } = self;
        if let Some(runs) = &mut runs
            && !kept.is_empty()
        {
            // The room is for those who come after.
            runs.add(std::mem::take(&mut kept), rt).await?;
            rt.shared.memory -= bytes;
        }
        let mut last = Vec::new();
        for mut rows in kept {
            rows.sort_by(|a, b| a.compare(b, &ways));
            last.push(Front { rows: VecDeque::from(rows).into(), blocks: VecDeque::new() });
            rt.pause().await?;
        }
        let mut merge = Merge { source: None, ways, fronts: Vec::new(), heap: Vec::new(), bytes: 0 };
        let mut fronts = Vec::new();
        if let Some(Runs { ways, file, codec, runs, end, block }) = runs {
            rt.hold(runs.len() * block * DECODED)?;
            fronts.extend(runs.into_iter().map(|blocks| Front { rows: Bulk::default(), blocks }));
            (merge.source, merge.bytes) = (Some(Source { file, codec: Arc::new(codec), ways }), end);
        }
        // Behind what is equal in a run.
        fronts.append(&mut last);
        for mut front in fronts {
            front.refill(merge.source.as_ref(), rt).await?;
            if !front.rows.is_empty() {
                merge.fronts.push(front);
            }
        }
        merge.heap = merge.fronts.iter().enumerate().filter_map(|(at, front)| front.place(at)).collect();
        (0..merge.heap.len() / 2).rev().for_each(|at| merge.sink(at));
        Ok(merge)
    }
}

/// Sorted runs in a temporary file.
struct Runs {
    ways: Arc<[Way]>,
    file: Arc<dyn Temporary>,
    codec: Codec,
    /// In the order in which their rows came.
    runs: Vec<VecDeque<Block>>,
    /// The length of the file.
    end: u64,
    /// Bytes of a block.
    block: usize,
}

/// Where a block is.
#[derive(Clone, Copy)]
struct Block {
    at: u64,
    len: usize,
}

impl Runs {
    /// `None`: there are no temporary files here.
    fn new<T: Transaction>(ways: Arc<[Way]>, rt: &Runtime<'_, T>) -> Option<Runs> {
        let file = rt.ctx.system.temporary()?;
        let block = (rt.most() / BLOCK_PART).max(rt.piece() / BLOCKS_MIN).min(BLOCK_MAX);
        Some(Runs { ways, file, codec: Codec::default(), runs: Vec::new(), end: 0, block })
    }

    /// Sorts rows, and writes them as the next run.
    async fn add<T: Transaction>(&mut self, rows: Pieces, rt: &mut Runtime<'_, T>) -> Result<()> {
        let most = rt.ctx.options.temporary_bytes_max.unwrap_or(u64::MAX);
        let codec = std::mem::take(&mut self.codec);
        let mut writer = Writer { file: self.file.clone(), codec, end: self.end, block: self.block, most };
        let ways = self.ways.clone();
        let work = move || {
            let mut rows: Vec<Keyed> = rows.into_iter().flatten().collect();
            rows.sort_by(|a, b| a.compare(b, &ways));
            let run = writer.write(rows);
            (writer, run)
        };
        let (writer, run) = rt.aside(work).await?;
        (self.codec, self.end) = (writer.codec, writer.end);
        self.runs.push(run?);
        Ok(())
    }
}

/// What a run is written with.
struct Writer {
    file: Arc<dyn Temporary>,
    codec: Codec,
    /// Where the next block goes.
    end: u64,
    block: usize,
    /// Bytes that the file may have.
    most: u64,
}

impl Writer {
    /// Writes rows, and says where they are.
    fn write(&mut self, rows: Vec<Keyed>) -> Result<VecDeque<Block>> {
        let mut blocks = VecDeque::new();
        let mut block = vec![0; CHECKSUM];
        let mut rows = rows.into_iter().peekable();
        while let Some(row) = rows.next() {
            self.codec.put_row(&row.key, &mut block);
            self.codec.put_row(&row.row, &mut block);
            if block.len() < self.block && rows.peek().is_some() {
                continue;
            }
            let len = block.len();
            if self.end + len as u64 > self.most {
                let message = format!("temporary file size exceeds temp_file_limit ({}kB)", self.most >> 10);
                return Err(Error::sql("53400", message));
            }
            let checksum = xxh3_64(&block[CHECKSUM..]);
            block[..CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
            self.file.write_at(self.end, &block)?;
            blocks.push_back(Block { at: self.end, len });
            self.end += len as u64;
            block.truncate(CHECKSUM);
        }
        Ok(blocks)
    }
}

/// What blocks are read with.
#[derive(Clone)]
struct Source {
    file: Arc<dyn Temporary>,
    codec: Arc<Codec>,
    ways: Arc<[Way]>,
}

impl Source {
    fn read(&self, block: Block) -> Result<VecDeque<Keyed>> {
        let mut bytes = vec![0; block.len];
        self.file.read_at(block.at, &mut bytes)?;
        let (checksum, mut left) = bytes.split_at(CHECKSUM);
        if checksum != xxh3_64(left).to_le_bytes() {
            return Err(Error::sql("XX001", "a block of a temporary file does not have the checksum it was written with"));
        }
        let mut rows = VecDeque::new();
        while !left.is_empty() {
            let key = self.codec.take_row(&mut left)?;
            rows.push_back(Keyed::new(key, self.codec.take_row(&mut left)?, &self.ways));
        }
        Ok(rows)
    }
}

/// The rows of a run that are in memory, and where the others are.
struct Front {
    rows: Bulk<VecDeque<Keyed>>,
    blocks: VecDeque<Block>,
}

/// Where the next row of a front is.
#[derive(Clone, Copy)]
struct Place {
    /// The row's.
    head: u64,
    front: usize,
}

impl Front {
    /// `None`: no row is left.
    fn place(&self, front: usize) -> Option<Place> {
        self.rows.front().map(|next| Place { head: next.head(), front })
    }

    /// Reads the next block if no row is left.
    async fn refill<T: Transaction>(&mut self, source: Option<&Source>, rt: &mut Runtime<'_, T>) -> Result<()> {
        if self.rows.is_empty()
            && let Some(source) = source
            && let Some(block) = self.blocks.pop_front()
        {
            let source = source.clone();
            self.rows = rt.aside(move || source.read(block)).await??.into();
        }
        Ok(())
    }
}

/// The merge of sorted runs.
pub(crate) struct Merge {
    /// What runs in a file are read with.
    source: Option<Source>,
    ways: Arc<[Way]>,
    /// Those that have a row. What is equal comes from earlier ones first.
    fronts: Vec<Front>,
    /// A heap: the first has the row that is next.
    heap: Vec<Place>,
    /// Bytes in the file.
    bytes: u64,
}

impl Merge {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The key of the next row.
    pub(super) fn key(&self) -> Option<&Row> {
        self.fronts[self.heap.first()?.front].rows.front().map(|next| &next.key)
    }

    /// The next row.
    pub(super) async fn pop<T: Transaction>(&mut self, rt: &mut Runtime<'_, T>) -> Result<Option<Keyed>> {
        rt.step().await?;
        let Some(first) = self.heap.first_mut() else { return Ok(None) };
        let front = &mut self.fronts[first.front];
        let next = front.rows.pop_front();
        if front.rows.is_empty() {
            front.refill(self.source.as_ref(), rt).await?;
        }
        match front.place(first.front) {
            Some(place) => *first = place,
            None => drop(self.heap.swap_remove(0)),
        }
        self.sink(0);
        Ok(next)
    }

    /// The next rows without their keys, `want` at most and one at least; `None` at the end.
    pub(super) async fn next<T: Transaction>(&mut self, rt: &mut Runtime<'_, T>, want: usize) -> Result<Option<Vec<Row>>> {
        let mut rows = Vec::new();
        while rows.len() < want.clamp(1, BATCH) {
            let Some(next) = self.pop(rt).await? else { break };
            rows.push(next.row);
        }
        Ok((!rows.is_empty()).then_some(rows))
    }

    /// Whether one place's row comes before another's.
    fn is_before(&self, a: Place, b: Place) -> bool {
        let order =
            a.head.cmp(&b.head).then_with(|| match (self.fronts[a.front].rows.front(), self.fronts[b.front].rows.front()) {
                (Some(x), Some(y)) => compare_keys(&x.key, &y.key, &self.ways),
                _ => Ordering::Equal,
            });
        order.then(a.front.cmp(&b.front)).is_lt()
    }

    /// Moves a place of the heap down to where it belongs.
    fn sink(&mut self, mut at: usize) {
        loop {
            let below = [2 * at + 1, 2 * at + 2].into_iter().filter(|below| *below < self.heap.len());
            let least = below.reduce(|a, b| if self.is_before(self.heap[b], self.heap[a]) { b } else { a });
            match least {
                Some(least) if self.is_before(self.heap[least], self.heap[at]) => {
                    self.heap.swap(at, least);
                    at = least;
                }
                _ => return,
            }
        }
    }
}
