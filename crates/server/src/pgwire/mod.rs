//! PostgreSQL's frontend/backend protocol (manual, chapter 55), versions 3.0 and 3.2.
//!
//! ```text
//! stream ──▶ frontend: whole messages ──▶ connection: which call of the session ──▶ sql::session::Session
//!    ▲                                                                                    │
//!    └────────── wire: one buffer, sent at Sync, Flush, ReadyForQuery or when full ◀── Output ┘
//! ```
//!
//! * [`frontend`] cuts the stream into messages and reads them. It is our own, because the message
//!   types' own decoders take a message for well-formed: they panic on one that ends early and
//!   replace text that is not UTF-8.
//! * [`wire`] writes answers, with `pgwire`'s message types for all that is not a row.
//! * [`startup`] is everything before the first `ReadyForQuery`.
//! * [`connection`] is the loop after it.
//! * [`refuse_while`] answers clients of a node that has not come up.
//! * [`accept`] accepts connections.
//! * [`server`] counts them, routes cancel requests and ends them.
//!
//! **Who is who.** [`login`] has a client prove it, by the cluster's rules; [`channel`] is TLS, and
//! [`scram`] the exchange about a password. Without rules ([`LoginMode::Trust`]) whoever names a
//! role is it, and without certificates requests for TLS are answered «no», as those for GSS
//! encryption always are.
//!
//! Works over any stream and for sessions over any environment, so all of it is tested in memory.

mod accept;
mod channel;
mod clients;
mod connection;
mod frontend;
mod login;
mod scram;
mod server;
mod startup;
mod wire;

pub use accept::refuse_while;
pub use clients::{LoginMode, Security};
pub use login::prepare;
pub use server::{PgServer, ServerOptions};
