//! What can be wrong with a segment.

use std::fmt;
use std::io;

/// Shared memory holds something that no host writes: the generation is over
/// (`docs/design/pod.md`). The text says where and what, for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged(pub String);

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shared memory is damaged: {}", self.0)
    }
}
impl std::error::Error for Damaged {}

/// Why a segment cannot be made or opened.
#[derive(Debug)]
pub enum OpenError {
    /// The file could not be created, opened or mapped.
    Io(io::Error),
    /// Sizes that no segment has.
    Sizes(String),
    /// No segment, or one whose creation has not ended.
    NotASegment,
    /// A segment of another format; this program knows [`crate::segment::FORMAT`].
    Format(u32),
    /// The header's checksum is wrong, or the header contradicts itself or the file's size.
    Damaged(Damaged),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Io(error) => write!(f, "shared memory: {error}"),
            OpenError::Sizes(what) => write!(f, "a segment cannot have these sizes: {what}"),
            OpenError::NotASegment => write!(f, "this is no segment of a pod"),
            OpenError::Format(found) => write!(f, "a segment of format {found}; this program knows {}", crate::segment::FORMAT),
            OpenError::Damaged(damaged) => damaged.fmt(f),
        }
    }
}
impl std::error::Error for OpenError {}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> OpenError {
        OpenError::Io(error)
    }
}
impl From<Damaged> for OpenError {
    fn from(damaged: Damaged) -> OpenError {
        OpenError::Damaged(damaged)
    }
}
