//! What can be wrong, by what follows from it.

use std::fmt;

/// What follows from an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file or a directory cannot be read or written.
    File,
    /// Something that was looked for is not there.
    Absent,
    /// A file of keys can be read by others than its owner.
    Permissions,
    /// Bytes are not what they should be: cut, garbage, or of a kind that this program cannot use.
    Malformed,
    /// Two things do not belong together: a key and a certificate, a certificate and an authority.
    Mismatch,
    /// Not valid any more, or not yet.
    Expired,
    /// The operator asked for something that is not done, such as writing over a key.
    Refused,
}

/// An error: one sentence for the operator, which names the file if there is one. It contains no
/// secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: Kind,
    message: String,
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of a kind.
    pub fn new(kind: Kind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into() }
    }
    pub(crate) fn malformed(message: impl Into<String>) -> Error {
        Error::new(Kind::Malformed, message)
    }
    /// What follows.
    pub fn kind(&self) -> Kind {
        self.kind
    }
    /// The sentence.
    pub fn message(&self) -> &str {
        &self.message
    }
    /// The same error, with its place named before it.
    pub fn at(self, place: impl fmt::Display) -> Error {
        Error { kind: self.kind, message: format!("{place}: {}", self.message) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
