//! `SHOW JOBS`: the schema changes that are under way, with what they do and what they wait for,
//! and those that ended lately.

use super::progress::{fraction, waits_for};
use crate::catalog::Catalog;
use crate::catalog::ids::{CONTROL_JOBS, MONITOR};
use crate::catalog::job::JobRecord;
use crate::catalog::system::SystemContext;
use crate::rows::StepRow;
use crate::types::context::EPOCH_2000_UNIX_MICROS;
use crate::types::{Datum, Type};
use meridian_base::{DescriptorId, Error, GroupId, Result};

/// The columns of the result: CockroachDB's, as far as they mean something here.
pub(super) fn columns() -> Vec<(&'static str, Type)> {
    vec![
        ("job_id", Type::Int8),
        ("job_type", Type::Text),
        ("description", Type::Text),
        ("user_name", Type::Text),
        ("status", Type::Text),
        ("running_status", Type::Text),
        ("created", Type::Timestamptz),
        ("finished", Type::Timestamptz),
        ("fraction_completed", Type::Float8),
        ("error", Type::Text),
        ("coordinator_id", Type::Int8),
    ]
}

/// `only`: of that number, or 42704.
pub(super) async fn rows(context: &dyn SystemContext, only: Option<u32>) -> Result<Vec<Vec<Datum>>> {
    let catalog = context.catalog();
    let groups = context.groups().await?;
    let nodes = context.nodes();
    let step = groups.iter().find_map(|group| group.step.as_ref()).map(|step| step_row(catalog, step));
    if let Some(id) = only
        && catalog.job(DescriptorId(id)).is_none()
    {
        return Err(Error::sql("42704", format!("job with ID {id} does not exist")).hint("SHOW JOBS lists them."));
    }
    let step = step.filter(|_| only.is_none());
    let who = context.newest().authority_of(context.names());
    let sees_all = who.has(MONITOR) || who.has(CONTROL_JOBS);
    let is_own = |job: &JobRecord| catalog.maker(job).is_some_and(|maker| who.has(maker));
    let step = step.filter(|_| sees_all);
    let jobs =
        catalog.jobs().filter(|job| sees_all || is_own(job)).filter(|job| only.is_none_or(|id| job.id.0 == id)).map(|job| {
            let waits = waits_for(catalog, job, &groups, &nodes);
            row(catalog, job, waits, fraction(catalog, job, &groups))
        });
    Ok(step.into_iter().chain(jobs).collect())
}

/// A step that waits belongs to a job, or to a statement that is no job yet: nobody but the
/// catalog's primary knows of it.
fn step_row(catalog: &Catalog, step: &StepRow) -> Vec<Datum> {
    let name = |id: &GroupId| match catalog.group_by_id(*id) {
        Some(group) => format!("{id} in region \"{}\"", group.home),
        None => id.to_string(),
    };
    let groups: Vec<String> = step.groups.iter().map(name).collect();
    let waits = format!(
        "waits for the schema leases of groups {}, whose primaries do not answer, to run out: at most {:.0} s more",
        groups.join(", "),
        step.left.as_secs_f64().ceil()
    );
    let mut row = vec![Datum::Null; columns().len()];
    row[1] = Datum::text("SCHEMA CHANGE");
    row[2] = Datum::text("the step of a schema change");
    row[4] = Datum::text("running");
    row[5] = Datum::text(waits);
    row
}

fn row(catalog: &Catalog, job: &JobRecord, waits_for: Option<String>, fraction: f64) -> Vec<Datum> {
    let time = |unix_micros: u64| Datum::Timestamp(unix_micros as i64 - EPOCH_2000_UNIX_MICROS);
    let task = job.present_task().filter(|_| !job.state.has_ended());
    let mut running = task.map(|task| task.describe(catalog));
    if let Some(running) = &mut running {
        if job.rows > 0 {
            running.push_str(&format!(", {} rows", job.rows));
        }
        if let Some(what) = waits_for {
            running.push_str(&format!("; waits for {what}"));
        }
    }
    vec![
        Datum::Int(job.id.0.into()),
        Datum::text("SCHEMA CHANGE"),
        Datum::text(job.statement.as_str()),
        Datum::text(job.user.as_str()),
        Datum::text(job.state.as_str()),
        running.map_or(Datum::Null, Datum::text),
        time(job.created),
        job.ended.map_or(Datum::Null, time),
        Datum::Float(fraction),
        job.error.as_ref().map_or(Datum::Null, |e| Datum::text(e.message())),
        Datum::Int(job.node.0.into()),
    ]
}
