//! What the catalog knows of a job: enough to go on with it on another node.

use meridian_base::{DescriptorId, Error, GroupId, NodeId};
use serde::{Deserialize, Serialize};

/// A schema change whose work is not done with its first step. It is written by that step, and
/// changed by every further one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobRecord {
    pub id: DescriptorId,
    /// What is done, in order.
    pub tasks: Vec<Job>,
    /// How many of them are.
    pub done: u32,
    pub state: JobState,
    /// The node that runs it; another one takes it over if that one is silent for too long.
    pub node: NodeId,
    pub statement: String,
    /// On whose behalf, as its statement would have been read.
    pub database: DescriptorId,
    pub user: String,
    pub search_path: Vec<String>,
    pub time_zone: String,
    /// Microseconds since 1970.
    pub created: u64,
    pub ended: Option<u64>,
    /// Why it is being taken back, or was.
    pub error: Option<Error>,
    /// Where the present task goes on: a key of what it works through.
    pub checkpoint: Option<Vec<u8>>,
    /// How many rows the present task had worked through there.
    pub rows: u64,
    /// Whose job it is. `None` in the records of versions before: whoever has the name `user`.
    #[serde(default)]
    pub maker: Option<DescriptorId>,
}

/// Work after a change: a task of a job (`crate::jobs`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Job {
    /// Takes an index from `DeleteOnly` over `WriteOnly` and its backfill to `Public`. Fails with
    /// 23505 and removes it.
    BuildIndex { table: DescriptorId, index: u32 },
    /// The same for a primary key, which then replaces the table's primary index.
    BuildPrimary { table: DescriptorId, index: u32 },
    /// Looks for a row that breaks a CHECK; marks it validated, or fails with 23514 and removes it.
    /// `keep`: it was there before the statement and stays, whatever comes out.
    ValidateCheck { table: DescriptorId, check: DescriptorId, keep: bool },
    /// The same for a check `column IS NOT NULL`, which then becomes the column's NOT NULL (23502).
    /// A column added by the same statement goes with the check if it fails.
    ValidateNotNull { table: DescriptorId, check: DescriptorId, ordinal: u32, added_column: bool },
    /// Looks for a row without its parent; marks the constraint validated, or fails with 23503 and
    /// removes it.
    ValidateForeignKey { table: DescriptorId, constraint: DescriptorId, keep: bool },
    /// Takes a table to the homes of another locality, where its indexes have these ids: they tell
    /// this move from the table's others. A column added for it goes with the change if it fails.
    Move { table: DescriptorId, indexes: Vec<u32>, added_column: Option<u32> },
    /// Nothing: earlier versions deleted the keys of dropped indexes so, row by row.
    Discard { group: GroupId, indexes: Vec<u32> },
    /// Takes a region that is marked as being dropped from its database, or fails with 2BP01 if
    /// rows are homed there, and takes the mark back.
    DropRegion { database: DescriptorId, region: String },
    /// Watches the replicas of a database's groups until they are where they belong, however long
    /// that takes. Cannot fail.
    AwaitPlacement { database: DescriptorId },
    /// Takes columns from `Filling` to `Filled`: computes their values in every row that has none.
    /// Fails with an expression's error, or 23502.
    FillColumns { table: DescriptorId, ordinals: Vec<u32> },
    /// Shows columns that are filled and whose constraints hold. If anything before it failed, they
    /// go.
    ShowColumns { table: DescriptorId, ordinals: Vec<u32> },
    /// Keeps columns that the statement added and everybody sees. If anything before it failed they
    /// go, unless somebody has built on them meanwhile.
    KeepColumns { table: DescriptorId, ordinals: Vec<u32> },
    /// Deletes groups that are leaving, when no other group has anything prepared or unsettled that
    /// names them, however long that takes. Cannot fail.
    RemoveGroups { groups: Vec<GroupId> },
    /// Reserves ids, from the first one up to and without the second: a transaction block has
    /// written rows under them, and will commit the tables or not at all.
    Hold { first: u32, end: u32 },
    /// Takes the tokens of each number to bounds that are those of before and the new ones, both;
    /// then the new ones hold alone. Fails with 23514 if a number is outside, and takes the bounds
    /// back.
    LowerBounds { table: DescriptorId, index: u32 },
    /// Takes the tokens of each number to the bounds of its column. Where an earlier task failed,
    /// or this one is cancelled, it does the same.
    RaiseBounds { table: DescriptorId, index: u32 },
    /// Makes a column an escrow column: its numbers get shares. Fails with 23514 if a number is
    /// outside of its bounds, and leaves the column as it was. `checks`: constraints of the same
    /// statement, which are validated by that, or removed.
    Split { table: DescriptorId, index: u32, checks: Vec<DescriptorId> },
    /// The opposite: the rows get the numbers of an escrow column.
    Join { table: DescriptorId, index: u32 },
    /// Ends what rounds of `majority` have left of an escrow column, which has another protocol by
    /// now: its sites and its bounds may change from then on.
    EndRounds { table: DescriptorId, index: u32 },
}

/// `group 7`, or `groups 7, 8`.
pub fn listed(groups: &[GroupId]) -> String {
    let names: Vec<String> = groups.iter().map(ToString::to_string).collect();
    format!("group{} {}", if names.len() == 1 { "" } else { "s" }, names.join(", "))
}

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobState {
    Running,
    /// Until `RESUME JOB`.
    Paused,
    /// It failed or was cancelled: what it did is being taken back.
    Reverting,
    Succeeded,
    Failed,
    Canceled,
}

impl JobState {
    /// What `SHOW JOBS` calls it.
    pub fn as_str(self) -> &'static str {
        match self {
            JobState::Running => "running",
            JobState::Paused => "paused",
            JobState::Reverting => "reverting",
            JobState::Succeeded => "succeeded",
            JobState::Failed => "failed",
            JobState::Canceled => "canceled",
        }
    }
    /// Nothing will happen to it any more.
    pub fn has_ended(self) -> bool {
        matches!(self, JobState::Succeeded | JobState::Failed | JobState::Canceled)
    }
}

/// The error of a job that was cancelled.
pub(crate) const CANCELED: &str = "57014";

impl JobRecord {
    /// What is left only removes what nobody can reach, watches replicas that move by themselves,
    /// or belongs to an open transaction block: the statement is done.
    pub fn is_in_background(&self) -> bool {
        let is_left_over = |task: &Job| {
            matches!(task, Job::Discard { .. } | Job::AwaitPlacement { .. } | Job::RemoveGroups { .. } | Job::Hold { .. })
        };
        self.tasks.iter().skip(self.done as usize).all(is_left_over)
    }
    /// What it does now, or would; `None` if there is nothing left to do.
    pub fn present_task(&self) -> Option<&Job> {
        self.tasks.get(self.done as usize)
    }
    /// The present task is done.
    pub(crate) fn end_task(&mut self, now: u64) {
        self.done += 1;
        (self.checkpoint, self.rows) = (None, 0);
        if self.done as usize >= self.tasks.len() {
            self.end(JobState::Succeeded, now);
        }
    }
    pub(crate) fn end(&mut self, state: JobState, now: u64) {
        (self.state, self.ended) = (state, Some(now));
    }
}
