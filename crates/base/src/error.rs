//! The one error type. Its kind says what follows; its SQLSTATE is what a client sees.

use crate::GroupId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// `Result` with [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What the receiver of an error does about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ErrorKind {
    /// The statement or transaction is wrong as it stands; trying again gives the same answer.
    Statement,
    /// Certification failed or a queue gave up: the same transaction may succeed if it runs again.
    Retry,
    /// The node asked is not ready, or did not answer: ask another one, or the same one later.
    Unavailable,
    /// The outcome is unknown (SQLSTATE 40003): it may have committed.
    Unknown,
    /// This node must stop: its disk or its invariants are broken.
    Fatal,
    /// The node asked is not the group's primary: ask the one that is.
    NotPrimary,
}

/// An operating error. Programmer errors panic instead.
///
/// `message` says what was wrong, `detail` with which value, `hint` what to do.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Error(Box<Inner>);

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Inner {
    kind: ErrorKind,
    sqlstate: [u8; 5],
    message: String,
    detail: Option<String>,
    hint: Option<String>,
    context: Option<String>,
    /// Byte offset into the statement, from 1 on, if the error has a place.
    position: Option<u32>,
    table: Option<String>,
    column: Option<String>,
    constraint: Option<String>,
}

const TOO_LARGE: &str = "transaction too large";

impl Error {
    /// An error of a kind with a five-character SQLSTATE (PostgreSQL manual, appendix A).
    pub fn new(kind: ErrorKind, sqlstate: &str, message: impl Into<String>) -> Error {
        let sqlstate: [u8; 5] = sqlstate.as_bytes().try_into().expect("an SQLSTATE has five characters");
        Error(Box::new(Inner {
            kind,
            sqlstate,
            message: message.into(),
            detail: None,
            hint: None,
            context: None,
            position: None,
            table: None,
            column: None,
            constraint: None,
        }))
    }
    /// The statement is wrong: `kind = Statement`.
    pub fn sql(sqlstate: &str, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Statement, sqlstate, message)
    }
    /// 40001: certification failed; running the transaction again may succeed.
    pub fn retry(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Retry, "40001", message)
    }
    /// 57P03: this node cannot serve the request now; another one, or a later attempt, may.
    pub fn unavailable(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Unavailable, "57P03", message)
    }
    /// 57P03: the node asked is not the group's primary. A client sees it when the primary could
    /// not be found for too long.
    pub fn not_primary(group: GroupId) -> Error {
        Error::new(ErrorKind::NotPrimary, "57P03", format!("the primary of group {group} is not known or cannot be reached"))
    }
    /// 40003: the outcome of a commit is unknown.
    pub fn unknown_outcome(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Unknown, "40003", message)
    }
    /// 0A000: understood, but not supported (yet).
    pub fn unsupported(message: impl Into<String>) -> Error {
        Error::sql("0A000", message)
    }
    /// 53200: what a transaction writes is more than it may.
    pub fn too_large(detail: impl Into<String>) -> Error {
        Error::sql("53200", TOO_LARGE).detail(detail)
    }
    /// XX000: an invariant that a caller relied on does not hold.
    pub fn internal(message: impl Into<String>) -> Error {
        Error::sql("XX000", message)
    }
    /// 58030 and the node stops: the disk does not do what it promised.
    pub fn fatal(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Fatal, "58030", message)
    }

    /// Adds the value that was wrong.
    pub fn detail(mut self, detail: impl Into<String>) -> Error {
        self.0.detail = Some(detail.into());
        self
    }
    /// Adds what to do about it.
    pub fn hint(mut self, hint: impl Into<String>) -> Error {
        self.0.hint = Some(hint.into());
        self
    }
    /// Adds what was being done: of data that are not part of the statement, where they are.
    pub fn context(mut self, context: impl Into<String>) -> Error {
        self.0.context = Some(context.into());
        self
    }
    /// Adds the byte offset in the statement, from 1 on.
    pub fn at(mut self, position: u32) -> Error {
        self.0.position = Some(position);
        self
    }
    /// Names the table the error is about.
    pub fn table(mut self, table: impl Into<String>) -> Error {
        self.0.table = Some(table.into());
        self
    }
    /// Names the column the error is about.
    pub fn column(mut self, column: impl Into<String>) -> Error {
        self.0.column = Some(column.into());
        self
    }
    /// Names the constraint the error is about.
    pub fn constraint(mut self, constraint: impl Into<String>) -> Error {
        self.0.constraint = Some(constraint.into());
        self
    }

    /// What follows from the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }
    /// The five-character SQLSTATE.
    pub fn sqlstate(&self) -> &str {
        std::str::from_utf8(&self.0.sqlstate).expect("an SQLSTATE is ASCII")
    }
    /// What was wrong.
    pub fn message(&self) -> &str {
        &self.0.message
    }
    /// With which value.
    pub fn get_detail(&self) -> Option<&str> {
        self.0.detail.as_deref()
    }
    /// What to do.
    pub fn get_hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }
    /// What was being done.
    pub fn get_context(&self) -> Option<&str> {
        self.0.context.as_deref()
    }
    /// Where in the statement, from 1 on.
    pub fn get_position(&self) -> Option<u32> {
        self.0.position
    }
    /// The table it is about.
    pub fn get_table(&self) -> Option<&str> {
        self.0.table.as_deref()
    }
    /// The column it is about.
    pub fn get_column(&self) -> Option<&str> {
        self.0.column.as_deref()
    }
    /// The constraint it is about.
    pub fn get_constraint(&self) -> Option<&str> {
        self.0.constraint.as_deref()
    }
    /// Whether another node, or the same one later, may do what this one did not.
    pub fn is_unavailable(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Unavailable | ErrorKind::NotPrimary)
    }
    /// Whether a transaction wrote more than it may.
    pub fn is_too_large(&self) -> bool {
        self.message() == TOO_LARGE
    }
    /// Whether running the transaction again may help.
    pub fn is_retry(&self) -> bool {
        self.0.kind == ErrorKind::Retry
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.0.message, self.sqlstate())?;
        if let Some(d) = &self.0.detail {
            write!(f, " ({d})")?;
        }
        Ok(())
    }
}
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl std::error::Error for Error {}
