//! Tests of the types: golden tables, also judged by a real PostgreSQL, and properties.

mod eval;
mod formats;
mod golden;
mod properties;
