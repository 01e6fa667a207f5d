//! SQL: PostgreSQL's dialect, from text to rows.
//!
//! ```text
//! text ──parse──▶ AST ──bind──▶ bound statement ──plan──▶ physical plan ──exec──▶ rows
//!                          ▲                                     │
//!                       catalog                        env::Transaction (node)
//! ```
//!
//! * [`types`]: types and values; their text, binary, row and key formats; casts, operators and
//!   functions.
//! * [`catalog`]: descriptors, the immutable [`catalog::Catalog`], DDL, the system tables of
//!   `pg_catalog`.
//! * [`parse`]: text to AST: sqlparser, wrapped, with the statements it does not know.
//! * [`plan`]: AST to a bound statement to a physical plan; the enum plans of point statements.
//! * [`exec`]: runs a plan against a transaction.
//! * [`session`]: what a connection is: transaction state, settings, prepared statements, portals,
//!   retries, the plan cache.
//! * [`statistics`]: what `ANALYZE` finds out about the rows of tables.
//! * [`env`]: the two traits through which this crate sees the rest of the database.
//!
//! This crate knows nothing about groups' logs, certification, sockets or the wire protocol's
//! framing, and never reads a clock.

pub mod catalog;
pub mod env;
pub mod exec;
pub mod parse;
pub mod plan;
pub mod session;
pub mod statistics;
#[doc(hidden)]
pub mod testing;
pub mod types;
