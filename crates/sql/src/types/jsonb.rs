//! JSON documents as `jsonb` holds them.
use super::numeric::Numeric;

/// A JSON value. Numbers are exact; an object's keys are unique and in `jsonb`'s order (length, then bytes).
#[derive(Clone, Debug)]
pub enum Json {
    Null,
    Bool(bool),
    Number(Numeric),
    String(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}
