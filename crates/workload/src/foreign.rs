//! Foreign keys: children are inserted while their parents are deleted and come back.
//!
//! No child without its parent, in any snapshot and at the end; and what was acknowledged is there.

use crate::run::{Context, Progress, Verdict, Worker, Workload};
use crate::schema;
use crate::session::{Attempted, Session, Statements};
use crate::stats::StatsKey;
use async_trait::async_trait;
use meridian_base::Result;
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// The database it works in.
pub const DATABASE: &str = "families";

/// The shape of the families.
#[derive(Clone, Debug)]
pub struct ForeignConfig {
    pub parents: i64,
    /// The parents are rows of a GLOBAL table.
    pub has_global_parents: bool,
    /// Pause between two operations of a worker.
    pub think_time: Duration,
    /// Some transactions stay open for up to this long before they commit.
    pub pause_max: Duration,
}

impl Default for ForeignConfig {
    fn default() -> ForeignConfig {
        ForeignConfig { parents: 5, has_global_parents: false, think_time: Duration::ZERO, pause_max: Duration::ZERO }
    }
}

/// The workload.
pub struct Foreign {
    config: ForeignConfig,
    next_child: AtomicI64,
    orphans_seen: Mutex<Vec<String>>,
}

/// What one snapshot shows.
#[derive(Debug, Default)]
struct Families {
    parents: BTreeSet<i64>,
    /// Child and parent.
    children: Vec<(i64, i64)>,
}

impl Families {
    fn orphans(&self) -> Vec<(i64, i64)> {
        self.children.iter().copied().filter(|(_, parent)| !self.parents.contains(parent)).collect()
    }
}

impl Foreign {
    /// Families that nobody has touched yet.
    pub fn new(config: ForeignConfig) -> Foreign {
        assert!(config.parents > 0);
        Foreign { config, next_child: AtomicI64::new(1), orphans_seen: Mutex::default() }
    }

    async fn operation(&self, session: &mut Session, rng: &mut SmallRng) -> (&'static str, Attempted<()>) {
        let parent = rng.random_range(0..self.config.parents);
        match rng.random_range(0..10) {
            0..=3 => {
                let child = self.next_child.fetch_add(1, Ordering::Relaxed);
                let sql = "INSERT INTO children (id, parent_id) VALUES ($1, $2)";
                let mut pause = crate::run::draw_pause(self.config.pause_max, rng);
                let inserted = match pause.is_zero() {
                    true => session.single(rng, sql, &[child.into(), parent.into()]).await.map(|_| ()),
                    false => {
                        session.transaction(rng, |s| Box::pin(insert_slowly(s, child, parent, std::mem::take(&mut pause)))).await
                    }
                };
                ("insert child", expecting("23503", inserted))
            }
            4..=5 => {
                let sql = "INSERT INTO parents (id) VALUES ($1)";
                ("insert parent", expecting("23505", session.single(rng, sql, &[parent.into()]).await))
            }
            6 => {
                let sql = "DELETE FROM parents WHERE id = $1";
                ("delete parent", expecting("23503", session.single(rng, sql, &[parent.into()]).await))
            }
            7..=8 => {
                let tried = session.transaction(rng, |s| Box::pin(delete_family(s, parent))).await;
                ("delete family", expecting("23503", tried))
            }
            _ => {
                let tried = session.transaction(rng, |s| Box::pin(read_families(s))).await;
                if let Attempted::Committed(families) = &tried
                    && !families.orphans().is_empty()
                {
                    let mut seen = self.orphans_seen.lock().expect("no panic while noting");
                    seen.push(format!("a snapshot has children without parents: {:?}", families.orphans()));
                }
                ("snapshot", expecting("", tried))
            }
        }
    }
}

async fn insert_slowly(statements: &mut Statements<'_>, child: i64, parent: i64, pause: Duration) -> Result<()> {
    let sql = "INSERT INTO children (id, parent_id) VALUES ($1, $2)";
    statements.query(sql, &[child.into(), parent.into()]).await?;
    tokio::time::sleep(pause).await;
    Ok(())
}

async fn delete_family(statements: &mut Statements<'_>, parent: i64) -> Result<()> {
    statements.query("DELETE FROM children WHERE parent_id = $1", &[parent.into()]).await?;
    statements.query("DELETE FROM parents WHERE id = $1", &[parent.into()]).await?;
    Ok(())
}

async fn read_families(statements: &mut Statements<'_>) -> Result<Families> {
    let parents = statements.query("SELECT id FROM parents", &[]).await?;
    let children = statements.query("SELECT id, parent_id FROM children", &[]).await?;
    Ok(Families {
        parents: (0..parents.rows.len()).map(|r| parents.int(r, 0)).collect::<Result<_>>()?,
        children: (0..children.rows.len()).map(|r| Ok((children.int(r, 0)?, children.int(r, 1)?))).collect::<Result<_>>()?,
    })
}

/// An error that the operation invites is an answer like any other.
fn expecting<T>(sqlstate: &str, attempted: Attempted<T>) -> Attempted<()> {
    match attempted {
        Attempted::Failed(error) if error.sqlstate() == sqlstate => Attempted::Committed(()),
        other => other.map(|_| ()),
    }
}

#[async_trait]
impl Workload for Foreign {
    fn name(&self) -> &'static str {
        "foreign"
    }

    async fn setup(&self, context: &Context, progress: &(dyn Fn(Progress) + Send + Sync)) -> Result<()> {
        schema::create_database(context, DATABASE).await?;
        let home = &context.connector.regions()[0];
        let locality = schema::locality(&*context.connector, home);
        let of_parents = match self.config.has_global_parents {
            true => schema::global(&*context.connector),
            false => locality.clone(),
        };
        let tables = [
            format!("CREATE TABLE parents (id INT8 PRIMARY KEY){of_parents}"),
            format!("CREATE TABLE children (id INT8 PRIMARY KEY, parent_id INT8 NOT NULL REFERENCES parents (id)){locality}"),
            "CREATE INDEX children_parent_id ON children (parent_id)".to_string(),
        ];
        schema::run_all(&mut context.session(home, DATABASE), &tables).await?;
        progress(Progress { rows_done: 1, rows_total: 1 });
        Ok(())
    }

    async fn worker(&self, context: &Context, worker: Worker) -> Result<()> {
        let mut rng = context.rng(u64::from(worker.id) + 1);
        let mut session = context.session(&worker.region, DATABASE);
        let locality = crate::run::locality_of(&context.connector.regions()[0], &worker.region);
        while !context.stop.is_stopped() {
            let started = context.timer.now_micros();
            let (operation, attempted) = self.operation(&mut session, &mut rng).await;
            let key = StatsKey { region: worker.region.clone(), operation, locality };
            crate::run::account(context, &mut session, &key, started, &attempted).await?;
            if !self.config.think_time.is_zero() {
                tokio::time::sleep(self.config.think_time).await;
            }
        }
        Ok(())
    }

    async fn check(&self, context: &Context) -> Result<Verdict> {
        let mut session = context.session(&context.connector.regions()[0], DATABASE);
        let families = crate::run::until_answered(context, &mut session, |s| Box::pin(read_families(s))).await?;
        let mut verdict = Verdict::default();
        verdict.violations.append(&mut self.orphans_seen.lock().expect("no panic while noting"));
        let orphans = families.orphans();
        verdict.expect(orphans.is_empty(), || format!("children without parents at the end: {orphans:?}"));
        verdict.examined += families.children.len() as u64;
        Ok(verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_orphan_is_a_child_whose_parent_is_not_there() {
        let families = Families { parents: BTreeSet::from([1]), children: vec![(10, 1), (11, 2)] };
        assert_eq!(families.orphans(), vec![(11, 2)]);
    }
}
