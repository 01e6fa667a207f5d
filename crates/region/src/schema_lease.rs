//! The catalog's side of the schema lease and its DDL steps (design: replication, «The catalog and the schema lease»).

use meridian_base::record::SchemaGrant;
use meridian_base::{DescriptorId, GroupId, SchemaVersion, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// What the catalog's log says about one group's lease: a row of the catalog, written before the grant is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    /// The last grant logged.
    pub seq: u64,
    /// The largest bound logged that the group has not answered as lowered.
    pub bound: Timestamp,
}

/// What the caller does next. Actions of one call are done in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Write this row to the catalog's log; when it is durable, call [`SchemaLeases::logged`].
    Log { group: GroupId, row: Granted, grant: SchemaGrant },
    /// Send the grant to the group's primary (again, if it was sent before); its answer goes to [`SchemaLeases::answered`].
    Send { group: GroupId, grant: SchemaGrant },
    /// Commit the step's catalog transaction at a timestamp above `above`. The transaction must read every group's row and
    /// find the `seq`s listed here: certification then makes sure that nobody has granted anything meanwhile.
    Commit { above: Timestamp, seqs: BTreeMap<GroupId, u64> },
    /// No group can use the old version any more: acknowledge the DDL.
    Acknowledge { version: SchemaVersion },
}

/// The numbers a step needs to know.
#[derive(Clone, Copy, Debug)]
pub struct Delays {
    /// The largest round trip to a region.
    pub round_trip: Duration,
    pub max_offset: Duration,
}

/// The state machine of the catalog's primary.
#[derive(Clone, Debug)]
pub struct SchemaLeases {
    granted: BTreeMap<GroupId, Granted>,
    delays: Delays,
}

impl SchemaLeases {
    /// From what the catalog's log says, at the start of a term of its primary: the present version (as a grant whose bound
    /// and seq are ignored) and every group's row.
    pub fn new(current: SchemaGrant, rows: BTreeMap<GroupId, Granted>, delays: Delays) -> SchemaLeases {
        let _ = current;
        SchemaLeases { granted: rows, delays }
    }
    /// A group was created: it is granted its first lease at the next [`SchemaLeases::tick`].
    pub fn add_group(&mut self, group: GroupId) {
        let _ = (group, &self.granted, self.delays);
        todo!()
    }
    /// A group is gone.
    pub fn remove_group(&mut self, group: GroupId) {
        let _ = group;
        todo!()
    }
    /// Time has passed: renewals, repeated messages, a step that waited long enough. Called a few times a second.
    pub fn tick(&mut self, now: Timestamp, actions: &mut Vec<Action>) {
        let _ = (now, actions);
        todo!()
    }
    /// The row of an [`Action::Log`] is durable.
    pub fn logged(&mut self, group: GroupId, seq: u64, now: Timestamp, actions: &mut Vec<Action>) {
        let _ = (group, seq, now, actions);
        todo!()
    }
    /// A group answered: this grant is durable in its log, with this bound (which may be above the one asked for).
    pub fn answered(&mut self, group: GroupId, seq: u64, bound: Timestamp, now: Timestamp, actions: &mut Vec<Action>) {
        let _ = (group, seq, bound, now, actions);
        todo!()
    }
    /// Starts a DDL step that changes these descriptors. `false` if one is under way already.
    pub fn begin_step(&mut self, changes: Vec<DescriptorId>, now: Timestamp, actions: &mut Vec<Action>) -> bool {
        let _ = (changes, now, actions);
        todo!()
    }
    /// The step's transaction has committed.
    pub fn step_committed(&mut self, at: Timestamp, now: Timestamp, actions: &mut Vec<Action>) {
        let _ = (at, now, actions);
        todo!()
    }
    /// The step's transaction failed or was cancelled: renewals go on with the old version.
    pub fn step_abandoned(&mut self, now: Timestamp, actions: &mut Vec<Action>) {
        let _ = (now, actions);
        todo!()
    }
}
