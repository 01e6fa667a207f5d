//! What a workload needs from a database: statements with parameters in, rows or an SQLSTATE out.
//!
//! Transactions are plain SQL (`BEGIN`, `COMMIT`, `ROLLBACK`), as for any client. The traits are
//! object-safe, so one workload runs unchanged over the PostgreSQL protocol, inside the simulator,
//! and inside the demo's process.

use async_trait::async_trait;
use meridian_base::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A parameter or a column of a row. Drivers map every type they meet to the nearest of these.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Value {
    Null,
    Bool(bool),
    /// Every integer type.
    Int(i64),
    /// Every floating-point type.
    Float(f64),
    /// Everything else, in PostgreSQL's text format.
    Text(String),
}

impl Value {
    /// The value as an SQL literal, for statements built as text (multi-row loads, drivers without
    /// parameters).
    pub fn literal(&self) -> String {
        match self {
            Value::Null => "NULL".to_string(),
            Value::Bool(b) => b.to_string(),
            Value::Int(i) => i.to_string(),
            Value::Float(f) => format!("{f:?}"),
            Value::Text(t) => format!("'{}'", t.replace('\'', "''")),
        }
    }
    /// As an integer; a text that spells one counts, since simple-protocol drivers see text only.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Value::Int(i) => Some(*i),
            Value::Text(t) => t.parse().ok(),
            _ => None,
        }
    }
    /// As text, if it is text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(t) => Some(t),
            _ => None,
        }
    }
    /// Whether it is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("NULL"),
            Value::Bool(b) => write!(f, "{}", if *b { "t" } else { "f" }),
            Value::Int(i) => write!(f, "{i}"),
            Value::Float(x) => write!(f, "{x}"),
            Value::Text(t) => f.write_str(t),
        }
    }
}
impl From<i64> for Value {
    fn from(i: i64) -> Value {
        Value::Int(i)
    }
}
impl From<&str> for Value {
    fn from(t: &str) -> Value {
        Value::Text(t.to_string())
    }
}
impl From<String> for Value {
    fn from(t: String) -> Value {
        Value::Text(t)
    }
}
impl From<f64> for Value {
    fn from(f: f64) -> Value {
        Value::Float(f)
    }
}
impl From<bool> for Value {
    fn from(b: bool) -> Value {
        Value::Bool(b)
    }
}

/// What a statement gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rows {
    /// The rows, if the statement returns rows.
    pub rows: Vec<Vec<Value>>,
    /// The number in the command tag: rows inserted, updated, deleted or selected.
    pub affected: u64,
}

impl Rows {
    /// The integer in one column of one row; an error that names the place if there is none. A
    /// missing row is worth another attempt.
    pub fn int(&self, row: usize, column: usize) -> Result<i64> {
        let value = self.cell(row, column)?;
        value.as_int().ok_or_else(|| unexpected(row, column, "an integer", value))
    }
    /// The text in one column of one row.
    pub fn text(&self, row: usize, column: usize) -> Result<&str> {
        let value = self.cell(row, column)?;
        value.as_text().ok_or_else(|| unexpected(row, column, "text", value))
    }
    fn cell(&self, row: usize, column: usize) -> Result<&Value> {
        // What an open transaction reads is speculative until it commits: it may not have heard of
        // the row, and then it would not commit either.
        let cells = self.rows.get(row).ok_or_else(|| Error::retry(format!("the result has no row {row}")))?;
        cells.get(column).ok_or_else(|| Error::internal(format!("the result has no column {column}")))
    }
}

fn unexpected(row: usize, column: usize, wanted: &str, got: &Value) -> Error {
    Error::internal(format!("row {row}, column {column} is not {wanted}")).detail(got.to_string())
}

/// What a client was told by a statement before the error that it ended with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    pub rows: u64,
    /// Command tags: `SELECT 1`, `DELETE 0`.
    pub tags: u64,
}

/// One connection. After an error with SQLSTATE class 08 or 57P01 it is dead and is dropped by its
/// user.
#[async_trait]
pub trait Client: Send {
    /// Runs one statement; parameters are `$1`, `$2`, …. The driver may prepare and cache it by its
    /// text.
    async fn query(&mut self, sql: &str, params: &[Value]) -> Result<Rows>;

    /// Runs one statement without parameters that is sent once and not worth preparing: DDL,
    /// transaction control, loads.
    async fn execute(&mut self, sql: &str) -> Result<Rows>;

    /// What the statement that failed last had told before its error. A client that shows rows as
    /// they come has shown these.
    fn told_before_error(&self) -> Told;
}

/// Opens connections.
#[async_trait]
pub trait Connector: Send + Sync {
    /// The regions one can connect to; the first one is where databases are created.
    fn regions(&self) -> Vec<String>;

    /// Whether the database understands regions and localities. A plain PostgreSQL, run as a
    /// control, does not.
    fn knows_regions(&self) -> bool {
        true
    }

    /// Whether databases are created to survive the loss of a region.
    fn survives_region(&self) -> bool {
        false
    }

    /// Connects to some living node of a region. Repeated calls try the region's nodes in turn, so
    /// that a client whose node died finds another one by connecting again.
    async fn connect(&self, region: &str, database: &str) -> Result<Box<dyn Client>>;
}
