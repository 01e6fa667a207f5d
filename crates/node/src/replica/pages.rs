//! Pages of a scan: how long they may be, and what they answer for.

use meridian_base::KeyRange;
use meridian_store::ScanLimits;

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
