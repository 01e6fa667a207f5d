//! Segments for this crate's own tests.

use crate::layout::{Layout, Sizes};
use crate::memory::Heap;
use crate::segment::{Purpose, Segment};
use meridian_base::GroupId;

/// A small segment of two hosts.
pub(crate) fn heap() -> Segment<Heap> {
    heap_of(Sizes::SMALL)
}

/// A segment of these sizes.
pub(crate) fn heap_of(sizes: Sizes) -> Segment<Heap> {
    let len = Layout::new(sizes).expect("sizes of a test").len();
    let purpose = Purpose { generation: 1, group: GroupId(2), term: 3 };
    Segment::create(Heap::new(len), sizes, purpose).expect("memory of that length")
}
