//! Running jobs: on the node whose session made them, and after its death on any other.
//!
//! A job runs in a task of its own, so that it outlives its session. Every step it makes carries
//! its record along, and is made only if the record still names this node and this state: so a node
//! that was taken for dead and is not changes nothing any more. All work between steps may be done
//! twice.
//!
//! An error of the job's own (a duplicate key, a row that breaks the constraint) makes it take back
//! what it did. Something that cannot be reached is waited for first, for a bounded time
//! ([`super::waits`] says what it is). Taking back needs the catalog alone, so it ends whatever
//! else is down. What only deletes keys that nobody can reach is never given up: its statement is
//! done.
//!
//! A session that pauses or cancels a job does not wait for what it is doing: the work is dropped
//! where it is. A transaction that was being committed ends by its votes, and what a cancelled job
//! wrote is unreachable.

use super::{JobContext, move_table, put_record, run_one, undo, waits};
use crate::catalog::Catalog;
use crate::catalog::job::{CANCELED, Job, JobRecord, JobState};
use crate::env::Environment;
use meridian_base::{DescriptorId, Error, ErrorKind, Result};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// How often something that cannot be reached is tried again before the job gives up. Each attempt
/// has patience of its own.
const ATTEMPTS: u32 = 8;
const ATTEMPT_PAUSE: Duration = Duration::from_secs(1);
/// How long a job waits for a group that nobody answers for, over all attempts. Longer than a
/// failover or the restart of a node takes.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often a job looks whether it was paused or cancelled.
const NOTICE_INTERVAL: Duration = Duration::from_millis(100);
/// How often a session looks for the end of a job that runs elsewhere.
const WATCH_INTERVAL: Duration = Duration::from_millis(100);

/// What a run of a job came to.
pub(crate) enum Ended {
    Succeeded,
    /// It was taken back, because of this.
    Reverted(Error),
    /// It is not to be gone on with here.
    Elsewhere,
    /// Neither done nor taken back: a later run goes on.
    Stuck(Error),
}

/// Runs a job in a task of its own, and waits until what its statement promised holds.
pub(super) async fn run_and_wait<E: Environment>(env: &E, id: DescriptorId, context: &JobContext) -> Result<()> {
    let told = start(env, id, context);
    let ended = match told {
        Some(told) => told.await.unwrap_or(Ended::Elsewhere),
        None => Ended::Elsewhere,
    };
    match ended {
        Ended::Succeeded => Ok(()),
        Ended::Reverted(e) => Err(e),
        Ended::Elsewhere => watch(env, id).await,
        Ended::Stuck(e) => Err(Error::new(ErrorKind::Statement, e.sqlstate(), e.message())
            .detail(format!("Job {} could neither end nor be taken back, and will be gone on with.", id.0))
            .hint("SHOW JOBS shows it.")),
    }
}

/// Waits for the end of a job that runs on another node.
async fn watch<E: Environment>(env: &E, id: DescriptorId) -> Result<()> {
    loop {
        let catalog = env.catalog();
        let Some(job) = catalog.job(id) else { return Ok(()) };
        match job.state {
            JobState::Succeeded => return Ok(()),
            JobState::Running if job.is_in_background() => return Ok(()),
            JobState::Failed | JobState::Canceled => return Err(failure(job)),
            JobState::Paused => {
                return Err(Error::sql("57014", format!("job {} was paused before it completed", id.0))
                    .hint(format!("RESUME JOB {} goes on with it, CANCEL JOB {} takes it back.", id.0, id.0)));
            }
            JobState::Running | JobState::Reverting => tokio::time::sleep(WATCH_INTERVAL).await,
        }
    }
}

fn failure(job: &JobRecord) -> Error {
    job.error.clone().unwrap_or_else(|| Error::sql("XX000", format!("job {} failed", job.id.0)))
}

/// `None` if the job runs here already.
pub(crate) fn start<E: Environment>(env: &E, id: DescriptorId, context: &JobContext) -> Option<oneshot::Receiver<Ended>> {
    if !context.shared.jobs.begin(id) {
        return None;
    }
    let (tell, told) = oneshot::channel();
    let (env, context) = (env.clone(), JobContext { job: Some((id, JobState::Running)), ..context.clone() });
    tokio::spawn(async move {
        run(&env, id, &context, tell).await;
        context.shared.jobs.end(id);
    });
    Some(told)
}

async fn run<E: Environment>(env: &E, id: DescriptorId, context: &JobContext, tell: oneshot::Sender<Ended>) {
    let mut tell = Some(tell);
    let mut say = |ended| {
        if let Some(tell) = tell.take() {
            let _ = tell.send(ended);
        }
    };
    let me = env.locality().node;
    let mut attempts = 0;
    // Since when the present task has failed, attempt after attempt.
    let mut failing = None;
    loop {
        let catalog = env.catalog();
        let Some(job) = catalog.job(id).filter(|job| job.node == me) else { return say(Ended::Elsewhere) };
        let outcome = match job.state {
            JobState::Running => {
                if job.is_in_background() {
                    say(Ended::Succeeded);
                }
                match job.present_task() {
                    // What is cast to a region is judged by the database as it is now.
                    Some(task) => unless_stopped(env, job, attempt(env, job, task, &context.now(&catalog), failing)).await,
                    None => return say(Ended::Succeeded),
                }
            }
            JobState::Reverting => revert(env, job, context).await,
            JobState::Succeeded => return say(Ended::Succeeded),
            JobState::Failed | JobState::Canceled => return say(Ended::Reverted(failure(job))),
            JobState::Paused => return say(Ended::Elsewhere),
        };
        let Err(e) = outcome else {
            (attempts, failing) = (0, None);
            continue;
        };
        let is_changed = env.catalog().job(id).is_none_or(|now| now.node != me || now.state != job.state);
        if is_changed {
            continue;
        }
        attempts += 1;
        let since = *failing.get_or_insert_with(Instant::now);
        // A group that is lost, too: nobody waits for it there, but a job does.
        let is_lost = e.sqlstate() == "57P03";
        let may_pass = e.is_unavailable() || e.is_retry() || e.kind() == ErrorKind::Unknown || is_lost;
        if may_pass && attempts < ATTEMPTS && since.elapsed() < PATIENCE {
            tracing::info!(error = %e, job = id.0, "a job tries again");
            tokio::time::sleep(ATTEMPT_PAUSE).await;
        } else if job.state == JobState::Reverting || job.is_in_background() || is_made(&env.catalog(), job) {
            tracing::warn!(error = %e, job = id.0, "a job cannot go on yet");
            return say(Ended::Stuck(e));
        } else if let Err(e) = give_up(env, id, e).await {
            return say(Ended::Stuck(e));
        }
    }
}

/// Does the present task, when what it needs is there. A move makes every writer of its table need
/// the new homes, so those have to answer before it begins; other tasks find out by themselves.
async fn attempt<E: Environment>(
    env: &E,
    job: &JobRecord,
    task: &Job,
    context: &JobContext,
    failing: Option<Instant>,
) -> Result<()> {
    if failing.is_some() || matches!(task, Job::Move { .. }) {
        waits::until_ready(env, job, task, failing.unwrap_or_else(Instant::now) + PATIENCE).await?;
    }
    run_one(env, task, context).await
}

/// Works on a job until a session pauses or cancels it, or another node takes it over.
async fn unless_stopped<E: Environment>(env: &E, job: &JobRecord, work: impl Future<Output = Result<()>>) -> Result<()> {
    let is_stopped = || {
        let catalog = env.catalog();
        let now = catalog.job(job.id);
        // The work's own last step ends the job, and is waited for.
        now.is_some_and(|now| now.node != job.node || matches!(now.state, JobState::Paused | JobState::Reverting))
    };
    let stopped = async {
        while !is_stopped() {
            tokio::time::sleep(NOTICE_INTERVAL).await;
        }
    };
    tokio::select! {
        biased;
        done = work => done,
        () = stopped => Err(Error::sql("57014", format!("job {} was stopped", job.id.0))),
    }
}

/// From here on the job is taken back.
async fn give_up<E: Environment>(env: &E, id: DescriptorId, why: Error) -> Result<()> {
    let me = env.locality().node;
    let why = match why.kind() {
        // The change is committed: «retry» would be a lie to the client, who would make it again.
        ErrorKind::Retry => Error::sql(why.sqlstate(), why.message())
            .hint("The schema change was taken back because its rows kept changing. Try again when there is less traffic."),
        // So would «unknown»: what a transaction of the job came to does not matter any more.
        ErrorKind::Unavailable | ErrorKind::NotPrimary | ErrorKind::Unknown => Error::sql("57P03", why.message())
            .hint("The schema change was taken back because not everything that it needs answers. SHOW RANGES tells more."),
        ErrorKind::Statement | ErrorKind::Fatal => why,
    };
    put_record(env, id, |job| {
        let goes_on = job.node == me && job.state == JobState::Running;
        // Taking back begins anew.
        let (error, checkpoint) = (Some(why.clone()), None);
        goes_on.then(|| JobRecord { state: JobState::Reverting, error, checkpoint, rows: 0, ..job.clone() })
    })
    .await
}

async fn revert<E: Environment>(env: &E, job: &JobRecord, context: &JobContext) -> Result<()> {
    let context = JobContext { job: Some((job.id, JobState::Reverting)), ..context.clone() };
    for task in &job.tasks {
        undo(env, task, &context).await?;
    }
    let now = env.now_micros();
    let is_canceled = job.error.as_ref().is_some_and(|e| e.sqlstate() == CANCELED);
    let state = if is_canceled { JobState::Canceled } else { JobState::Failed };
    let me = env.locality().node;
    put_record(env, job.id, |job| {
        let mut job = Some(job.clone()).filter(|job| job.node == me && job.state == JobState::Reverting)?;
        job.end(state, now);
        Some(job)
    })
    .await
}

/// Whether a change of locality has come so far that there is nothing to take back.
pub(crate) fn is_made(catalog: &Catalog, job: &JobRecord) -> bool {
    match job.present_task() {
        Some(Job::Move { table, indexes, .. }) => move_table::is_exchanged(catalog, *table, indexes),
        _ => false,
    }
}
