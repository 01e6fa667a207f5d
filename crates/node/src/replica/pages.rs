//! Pages of a scan: how long they may be, what they answer for, and who reads them.

use crate::replica::Replica;
use crate::transport::wire::View;
use meridian_base::{ColumnMask, Error, KeyRange, Result, Target, Timestamp};
use meridian_sql::env::{SharedPage, SharedScan};
use meridian_store::ScanLimits;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The limits of a page that may have this many rows, or as many as any page.
pub(crate) fn page_limits(rows: Option<usize>) -> ScanLimits {
    let most = ScanLimits::default();
    ScanLimits { rows: rows.map_or(most.rows, |rows| rows.clamp(1, most.rows)), ..most }
}

/// The part of a range that a page has answered for.
pub(crate) fn covered(range: &KeyRange, rest: Option<&KeyRange>, reverse: bool) -> KeyRange {
    match rest {
        None => range.clone(),
        Some(rest) if reverse => KeyRange::new(rest.end.clone(), range.end.clone()),
        Some(rest) => KeyRange::new(range.start.clone(), rest.start.clone()),
    }
}

/// A snapshot of this replica that any thread may read.
struct Snapshot {
    replica: Arc<Replica>,
    at: Timestamp,
    /// The term of this group in which it was asked for: in another one it says nothing.
    term: u64,
}

impl Replica {
    /// A range of this group as of the transaction's snapshot, for several threads. `None`: it can
    /// only be read page by page. A host of a pod asks for the keys of each page.
    pub(crate) async fn share_scan(
        self: &Arc<Self>,
        view: &mut View,
        range: &KeyRange,
        columns: ColumnMask,
    ) -> Result<Option<Arc<dyn SharedScan>>> {
        let Some(term) = self.serving_term().filter(|_| self.pod().is_none()) else { return Ok(None) };
        let at = self.snapshot_of(view, &Target::Range(range.clone()), columns).await?;
        Ok(Some(Arc::new(Snapshot { replica: self.clone(), at, term })))
    }
}

impl SharedScan for Snapshot {
    fn page(&self, part: &KeyRange, rows: usize, row: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<SharedPage> {
        let mut newest = Timestamp::MIN;
        let rest = self.replica.store.visit(part, self.at, false, page_limits(Some(rows)), true, &mut |_, written, value| {
            newest = newest.max(written);
            row(value)
        })?;
        if self.replica.serving_term() != Some(self.term) {
            return Err(Error::unavailable("the group's primary has changed while it was read"));
        }
        self.replica.check_lease()?;
        Ok(SharedPage { rest, newest })
    }
}
