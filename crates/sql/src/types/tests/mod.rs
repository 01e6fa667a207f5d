//! Tests of the types: golden tables, also judged by a real PostgreSQL, and properties.

mod eval;
mod golden;
mod properties;
