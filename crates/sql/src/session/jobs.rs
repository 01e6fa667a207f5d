//! Jobs of other nodes, and what a client may do to a job: the part that needs a session, since a
//! job goes on in the settings that its statement had.

use super::{Session, SessionOptions, Shared};
use crate::catalog::ids::ROOT_ID;
use crate::catalog::job::{CANCELED, Job, JobRecord, JobState};
use crate::catalog::names::Names;
use crate::env::Environment;
use crate::jobs::{JobContext, end_hold, is_made, put_record, start};
use crate::parse::Control;
use meridian_base::{DescriptorId, Error, Result, SessionId};
use std::sync::Arc;
use std::time::Duration;

/// How often a node looks for jobs that no node runs.
const ADOPT_INTERVAL: Duration = Duration::from_secs(2);

/// Runs for as long as the node does: takes over the jobs of nodes that are silent, and goes on
/// with this node's own after a restart.
pub async fn adopt<E: Environment>(env: E, shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(ADOPT_INTERVAL).await;
        let me = env.locality().node;
        let catalog = env.catalog();
        let waiting = catalog.jobs().filter(|j| matches!(j.state, JobState::Running | JobState::Reverting));
        let waiting: Vec<JobRecord> = waiting.filter(|j| !shared.jobs.has(j)).cloned().collect();
        if waiting.is_empty() {
            continue;
        }
        let nodes = env.nodes();
        for job in waiting {
            let is_live = nodes.iter().any(|n| n.node == job.node && n.is_live);
            if job.node != me && is_live {
                continue;
            }
            if let Err(e) = take_over(&env, &job, &shared).await {
                tracing::info!(error = %e, job = job.id.0, "a job is not gone on with here yet");
            }
        }
    }
}

pub(crate) async fn take_over<E: Environment>(env: &E, job: &JobRecord, shared: &Arc<Shared>) -> Result<()> {
    let me = env.locality().node;
    if let Some(Job::Hold { .. }) = job.present_task() {
        return end_hold(env, job).await;
    }
    if job.node != me {
        let (before, state) = (job.node, job.state);
        put_record(env, job.id, |job| (job.node == before && job.state == state).then(|| JobRecord { node: me, ..job.clone() }))
            .await?;
    }
    let context = context_of(env, job, shared)?;
    tracing::info!(job = job.id.0, "going on with a job");
    drop(start(env, job.id, &context));
    Ok(())
}

/// The context that the job's statement had.
fn context_of<E: Environment>(env: &E, job: &JobRecord, shared: &Arc<Shared>) -> Result<JobContext> {
    let catalog = env.catalog();
    // A database that is gone has taken with it whatever the job works on: any other will do to
    // find that out.
    let database = catalog.database_by_id(job.database).or_else(|| catalog.databases().next());
    let database = database.ok_or_else(|| Error::internal("a cluster without a database"))?.name.clone();
    let options = SessionOptions {
        id: SessionId::default(),
        // What the job does was allowed to the role that made it, which may be gone.
        user: catalog.role_name(ROOT_ID),
        database: database.clone(),
        application_name: "job".to_string(),
        settings: vec![("TimeZone".to_string(), job.time_zone.clone())],
        ..SessionOptions::default()
    };
    let session = Session::new(env.clone(), options, shared.clone())?;
    let names = Names { search_path: job.search_path.clone(), ..Names::new(&database, &job.user) };
    Ok(JobContext { names, ..session.job_context(&job.statement) })
}

fn in_background(job: &JobRecord, verb: &str) -> Error {
    let refused = Error::sql("55000", format!("job {} cannot be {verb}", job.id.0));
    match job.present_task() {
        Some(Job::AwaitPlacement { .. }) => refused
            .detail("Its change is made, and the replicas follow it by themselves.")
            .hint("Make the opposite change to move them back."),
        Some(Job::RemoveGroups { .. }) => refused.detail("Its change is made, and the groups hold nothing any more."),
        _ => refused.detail("It only deletes what nobody can reach any more."),
    }
}

fn made(job: &JobRecord) -> Error {
    Error::sql("55000", format!("job {} cannot be canceled", job.id.0))
        .detail("The rows are in their new homes already, and it only forgets the old ones.")
        .hint("Change the locality again when it is done. RESUME JOB goes on with a job that is paused.")
}

fn only_watches(job: &JobRecord) -> bool {
    matches!(job.present_task(), Some(Job::AwaitPlacement { .. }))
}

/// `PAUSE JOB`, `RESUME JOB`, `CANCEL JOB`. Waits until it is written, not until the job has
/// noticed.
pub async fn control<E: Environment>(env: &E, id: DescriptorId, what: Control, shared: &Arc<Shared>) -> Result<()> {
    let me = env.locality().node;
    let catalog = env.catalog();
    let Some(job) = catalog.job(id) else {
        return Err(Error::sql("42704", format!("job with ID {} does not exist", id.0)).hint("SHOW JOBS lists them."));
    };
    let refused = |verb: &str| Error::sql("55000", format!("job {} is {} and cannot be {verb}", id.0, job.state.as_str()));
    match (what, job.state) {
        (Control::Pause, JobState::Paused) | (Control::Resume, JobState::Running) => return Ok(()),
        (Control::Pause, JobState::Running) if only_watches(job) => return Err(in_background(job, "paused")),
        (Control::Pause, JobState::Running) | (Control::Resume, JobState::Paused) => {}
        (Control::Cancel, JobState::Running | JobState::Paused) if job.is_in_background() => {
            return Err(in_background(job, "canceled"));
        }
        (Control::Cancel, JobState::Running | JobState::Paused) if is_made(&catalog, job) => return Err(made(job)),
        (Control::Cancel, JobState::Running | JobState::Paused) => {}
        (Control::Pause, _) => return Err(refused("paused")),
        (Control::Resume, _) => return Err(refused("resumed")),
        (Control::Cancel, _) => return Err(refused("canceled")),
    }
    let before = job.state;
    put_record(env, id, |job| {
        let is_late = |job: &JobRecord| job.is_in_background() || is_made(&env.catalog(), job);
        let may = |job: &JobRecord| job.state == before && (what != Control::Cancel || !is_late(job));
        let job = Some(job.clone()).filter(may)?;
        let canceled = || Error::sql(CANCELED, "job canceled by user");
        Some(match what {
            Control::Pause => JobRecord { state: JobState::Paused, ..job },
            Control::Resume => JobRecord { state: JobState::Running, node: me, ..job },
            // No node runs a job that is paused: this node takes it back.
            Control::Cancel if before == JobState::Paused => {
                JobRecord { state: JobState::Reverting, node: me, error: Some(canceled()), ..job }
            }
            Control::Cancel => JobRecord { state: JobState::Reverting, error: Some(canceled()), ..job },
        })
    })
    .await?;
    let catalog = env.catalog();
    if what == Control::Cancel
        && let Some(job) = catalog.job(id).filter(|job| job.state == before)
    {
        // It came so far meanwhile.
        return Err(if is_made(&catalog, job) { made(job) } else { in_background(job, "canceled") });
    }
    if let Some(job) = catalog.job(id)
        && job.node == me
        && matches!(job.state, JobState::Running | JobState::Reverting)
    {
        drop(start(env, id, &context_of(env, job, shared)?));
    }
    Ok(())
}
