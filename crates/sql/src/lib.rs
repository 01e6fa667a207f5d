//! SQL: PostgreSQL's dialect, from text to rows.
//!
//! ```text
//! text ──parse──▶ AST ──bind──▶ bound statement ──plan──▶ physical plan ──exec──▶ rows
//!                          ▲                                     │
//!                       catalog                        env::Transaction (node)
//! ```
//!
//! Modules, each of which knows those above it in this list alone:
//!
//! * [`types`]: types and values; their text, binary, row and key formats; casts, operators and
//!   functions.
//! * [`parse`]: text to AST: sqlparser, wrapped, with the statements it does not know.
//! * [`statistics`]: what is known about the rows of tables.
//! * [`catalog`]: descriptors, the immutable [`catalog::Catalog`], names, the system tables of
//!   `pg_catalog`; with [`rows`], what the rest of the database tells of itself.
//! * [`env`](mod@env): the two traits through which this crate sees the rest of the database.
//! * [`show`]: the rows of `SHOW` statements.
//! * [`plan`]: AST to a bound statement to a physical plan; the enum plans of point statements;
//!   expressions and their evaluation.
//! * [`exec`]: runs a plan against a transaction.
//! * `shared`: what the sessions of one node share: plans, blocks of sequences, running jobs.
//! * [`ddl`]: a schema change, derived from one version of the catalog.
//! * [`jobs`]: the part of a schema change that takes time.
//! * `analyze`: reads a table and counts.
//! * [`session`]: what a connection is: transaction state, settings, prepared statements, portals.
//!
//! This crate knows nothing about groups' logs, certification, sockets or the wire protocol's
//! framing, and never reads a clock.

mod analyze;
pub mod catalog;
pub mod ddl;
pub mod env;
pub mod exec;
pub mod jobs;
pub mod parse;
pub mod plan;
pub mod rows;
pub mod session;
mod shared;
pub mod show;
pub mod statistics;
pub mod temporary;
#[doc(hidden)]
pub mod testing;
pub mod types;
