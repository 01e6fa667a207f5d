//! The commit of transactions over several groups: decentralised two-phase commit and its recovery,
//! as pure state machines (SunStorm §4.4; S-DUR
//! §3.4).
//!
//! # The protocol in a page
//!
//! A transaction has read and written rows of several groups. Each group's primary can say whether
//! its own slice is still right, and nobody else can; so each *votes*, and the transaction commits
//! if all say YES.
//!
//! ```text
//!            Prepare (its own slice)           Yes(p), to every other participant and to the gateway
//!  gateway ───────────────────────▶ group A ───────────────────────▶ group B, gateway
//!      └──────────────────────────▶ group B ───────────────────────▶ group A, gateway
//!                                  certify, reserve, log               all votes: outcome
//! ```
//!
//! There is no coordinator whose log decides. **The outcome is a function of the votes and of
//! nothing else**: all YES is a commit at the largest of their timestamps, any NO an abort. A node
//! that holds all votes knows the outcome: the gateway tells its client one round trip after
//! COMMIT, and every participant ends by itself. What makes that safe is that *a vote is durable
//! before it is sent, and never changes* (T4): then two nodes that have all votes have the same
//! ones.
//!
//! A participant that misses a vote, because a message or a gateway was lost, asks for it; who is
//! asked and has no record of the transaction writes down a NO first. So every prepared transaction
//! ends as soon as its participants can be reached, whatever became of the gateway.
//!
//! # What is remembered, and for how long
//!
//! A group that answered «I have no record: NO» for a transaction that others committed would tear
//! it apart. So a commit stays in the log's tables until every participant has the outcome in its
//! own log and says so (`OutcomeAck`), and a Prepare may come late: so also until its id is at or
//! below the watermark `F`, from where on it is not taken for new. An abort needs no
//! acknowledgement: there is a NO behind it, which is said for ever (as a record, then as
//! «forgotten»).
//!
//! # What is here
//!
//! * [`Participant`]: what a group's primary does, for one term; the table of
//!   `docs/design/transaction-states.md`.
//! * [`Coordination`]: what the gateway does, for one transaction.
//! * [`Rules`]: the rules, which the model breaks one at a time to see that it finds each.
//!
//! Messages and time come in; [`Action`]s come out: messages to send, records to log, and requests
//! to the transaction engine. What the log says is asked of a [`meridian_base::Ledger`]; what a
//! slice conflicts with is asked of nobody here. This crate knows nothing about keys, rows, Raft or
//! sockets, and holds nothing that may not be lost: a new term starts from the ledger.
//!
//! # How it is tested
//!
//! `tests/all`: the state table cell by cell (`states`), and a model that explores every order of
//! messages, losses, repetitions, crashes and changes of primary of small systems, running these
//! very functions and the tables and reservations of crate `region` (`model`).

mod coordination;
mod participant;
mod rules;

pub use coordination::{Coordination, Verdict};
pub use participant::{Action, Participant};
pub use rules::{PlantedBug, Rules};
