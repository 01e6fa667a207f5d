//! Waiting for what a job's task needs.

use crate::catalog::job::{Job, JobRecord};
use crate::env::Environment;
use crate::show::progress::{missing, needed};
use meridian_base::{Error, Result};
use std::time::Duration;
use tokio::time::Instant;

const POLL: Duration = Duration::from_millis(500);

/// Waits until what a task needs answers, and no longer than until `deadline`: then 57P03.
pub(super) async fn until_ready<E: Environment>(env: &E, job: &JobRecord, task: &Job, deadline: Instant) -> Result<()> {
    loop {
        let groups = env.groups().await?;
        let catalog = env.catalog();
        let Some(what) = missing(&catalog, &needed(&catalog, task), &groups) else { return Ok(()) };
        if Instant::now() >= deadline {
            return Err(Error::sql("57P03", format!("job {} waited too long for {what}", job.id.0)));
        }
        tokio::time::sleep(POLL).await;
    }
}
