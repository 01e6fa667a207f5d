//! Groups that leave: when their tables, regions or databases are dropped.
//!
//! A group that voted in a transaction owes its vote, and the outcome, to the other participants
//! until each of them has the outcome in its own log: who asks and is answered by nobody is in
//! doubt for ever, with its rows. So a group is not deleted when nothing is homed there any more,
//! but *leaves*: it keeps its replicas and answers, and nobody plans with it. It goes when every
//! other group has said, once, that it
//!
//! 1. certifies with the version of the catalog in which the group leaves, or a later one; and
//! 2. has nothing prepared that names the group, nothing certified that is on its way into the log,
//!    and nothing committed that some participant has not acknowledged.
//!
//! Said once, that stays true. Who would name the group planned with an older version of a table
//! that has changed since, so its slice is refused wherever it comes late, by whichever primary:
//! the grant of the version is in the log (counterexample 19). A transaction that commits together
//! with a schema step is not certified by the grant; there the catalog, which votes last, answers
//! for the version: it refuses, and a NO is all that such a participant needs. A late copy of a
//! Prepare is no exception: it is refused, or forgotten (counterexample 5). A late `VoteRequest`
//! comes from a participant that is prepared, and there is none; from a gateway it may come for as
//! long as that has patience, less than [`limits::WATERMARK_LAG`], which is how long a group leaves
//! at least. So the group's outcomes outlive everybody who may ask.
//!
//! Groups that leave do not wait for each other: a transaction among them alone matters to nobody
//! but its gateway. Nor is the group itself asked, which may have no primary any more: what it has
//! prepared binds nobody else.

use super::{JobContext, step_of};
use crate::catalog::CatalogChange;
use crate::env::Environment;
use crate::show::progress::{confirms, others, since, still_leaving};
use meridian_base::{DescriptorId, GroupId, Result, limits};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

/// How often every group is asked, which may be for days.
const POLL: Duration = Duration::from_secs(2);

/// Deletes the groups as soon as no other group needs them.
pub(super) async fn remove<E: Environment>(env: &E, groups: &[GroupId], context: &JobContext) -> Result<()> {
    let earliest = Instant::now() + limits::WATERMARK_LAG;
    let mut confirmed = BTreeSet::new();
    loop {
        tokio::time::sleep(POLL).await;
        let rows = env.groups().await?;
        let catalog = env.catalog();
        let leaving = still_leaving(&catalog, groups);
        let since = since(&catalog, &leaving);
        confirmed.extend(rows.iter().filter(|row| confirms(row, &leaving, since)).map(|row| row.group));
        let is_needed = others(&catalog).any(|group| !confirmed.contains(&group));
        if leaving.is_empty() || (!is_needed && Instant::now() >= earliest) {
            break;
        }
    }
    step_of(env, context, 1, &|catalog| {
        let delete: Vec<DescriptorId> = still_leaving(catalog, groups).into_iter().map(|g| DescriptorId(g.0)).collect();
        let change = CatalogChange { delete, next_id: catalog.next_id, ..CatalogChange::default() };
        (!change.is_empty()).then_some(change)
    })
    .await
}
