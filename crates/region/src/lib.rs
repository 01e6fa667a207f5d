//! The transaction engine of a replica group: what a group's log determines ([`state`]), and what its primary adds to it in
//! memory ([`engine`]). Pure: no task, no clock, no socket; time and the store come in as arguments.

pub mod bugs;
pub mod conflict_index;
pub mod engine;
pub mod queue;
pub mod schema_lease;
pub mod state;
pub mod versions;
pub mod waits;

pub use bugs::{PlantedBug, PlantedBugs};
pub use engine::{Certified, Engine, NotReady, ReadGate, SchemaCheck, Snapshot};
pub use queue::{Ended, Ending, Enqueued, IfBusy, Mode, Owner, Place, Queues};
pub use schema_lease::{Action, Delays, Granted, SchemaLeases};
pub use state::GroupState;
pub use versions::Versions;
pub use waits::{Ticket, WaitFor};
