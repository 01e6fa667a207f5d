//! The protocol `majority`: Avantan[(n+1)/2] as pure state machines (`docs/design/escrow.md`, E14,
//! E15, E17 to E20; Samya, §4.3.1).
//!
//! # The protocol in a page
//!
//! Sites of a row share its tokens out in *rounds*, one after the other. A round is an instance `t`
//! of Paxos whose value is made of parts: each site that answers a leader adds an *offer*, tokens
//! that it gives away, and the leader divides them all. A majority of the sites decides; the others
//! have no part in the round and learn of it later.
//!
//! A naive version lets a site take its offer back when the leader is silent. But the leader may
//! have had a majority, and then another site spends what this one takes back (counterexample 33).
//! So an offer is *held*, durably, until the site knows what `t` decided. A silent leader is
//! replaced by any site, with a higher ballot and the same offers; the new one finds the value if
//! there may be one, since any two majorities share a site.
//!
//! A site may miss a decision in which it has a part. Each site that has applied the decision keeps
//! that part for it (counterexample 36). A site that learns that it has no part in a round takes
//! over the parts that its informant keeps for others, since it answers for these rounds from then
//! on (counterexample 80).
//!
//! # What is here
//!
//! * [`Site`]: what a site does with messages; the table of `docs/design/majority.md`, which also
//!   says what the caller has to do.
//! * [`Leader`]: what the leader of a ballot does.
//! * [`Rows`]: which rows have a leader or an offer out, and when something is to be done for them.
//! * [`Round`]: what a site stores, the value of the key `P 02`.
//! * [`PlantedBug`]: broken rules, for the tests to find.
//!
//! # How it is tested
//!
//! `tests/all`: the state table cell by cell (`states`); random histories of three and five sites
//! with lost, repeated and late messages, crashes, deltas and numbers that are set (`histories`);
//! the same with each rule broken (`bugs`).

mod codec;
mod leader;
mod message;
mod round;
mod rows;
mod rules;
mod site;
mod value;

pub use leader::{Beginning, End, Leader};
pub use message::{Kind, Message};
pub use round::Round;
pub use rows::{Due, PAUSE_MAX, Rows};
pub use rules::{PlantedBug, Rules};
pub use site::{Granted, Here, Site, Step, Write};
pub use value::{Accepted, Ballot, Kept, Part, TOKENS_MAX, Value, Want, Wants};
