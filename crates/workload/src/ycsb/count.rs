//! The round trips to other regions that single operations take, counted by the database.

use super::choose::Chooser;
use super::{Operation, Ycsb};
use crate::client::Rows;
use crate::run::Context;
use crate::session::Attempted;
use crate::stats::Locality;
use meridian_base::{Error, Result};

/// Other clients' numbers are lower.
const CLIENT: u32 = 1_000_000;
/// Rows of the wanted kind are drawn, not looked for.
const DRAWS_MAX: u32 = 10_000;

impl Ycsb {
    /// The round trips between regions of `samples` operations of a client in `region`, one after
    /// the other: those that `EXPLAIN ANALYZE` has counted, the commit's included. `locality`: of
    /// the rows that are touched, as far as there are such. Nobody else should be at work.
    pub async fn count_round_trips(
        &self,
        context: &Context,
        region: &str,
        operation: Operation,
        locality: Locality,
        samples: u32,
    ) -> Result<Vec<u32>> {
        let at = context.connector.regions().iter().position(|r| r == region).unwrap_or(0);
        let mut client = self.client(context, CLIENT + at as u32, region);
        let mut chooser = Chooser::new(self.config.distribution);
        let mut counts = Vec::new();
        for _ in 0..samples {
            let key = if operation == Operation::Insert {
                client.new_row()
            } else {
                let mut draw = || self.row(client.own, client.id, &mut chooser, &mut client.rng);
                match (0..DRAWS_MAX).map(|_| draw()).find(|key| self.locality(*key, client.own) == locality) {
                    Some(key) => key,
                    None => break,
                }
            };
            let write = self.lock().write(client.id);
            let (statements, values): (Vec<String>, usize) = match operation {
                Operation::Read => (vec![client.statements.read(key, self.config.reads.clause())], 0),
                Operation::Update => (client.statements.update(key, 0).collect(), 1),
                Operation::Insert => (client.statements.insert(key).collect(), super::FIELDS),
            };
            // From the last one on: `$1` is a part of `$10`.
            let with_values = |sql: String| {
                let sql = (0..values)
                    .rev()
                    .fold(sql, |sql, n| sql.replace(&format!("${}", n + 2), &format!("'{}'", write.value(key, n))));
                format!("EXPLAIN ANALYZE {}", sql.replace("$1", &format!("'{key}'")))
            };
            let explains: Vec<String> = statements.into_iter().map(with_values).collect();
            let attempted = client.session.explained(&mut client.rng, explains).await;
            let inserted = (operation == Operation::Insert).then_some(key);
            let outcome = match attempted {
                Attempted::Committed(count) => {
                    counts.push(count);
                    Attempted::Committed(())
                }
                other => other.map(drop),
            };
            self.lock().wrote(write, inserted, &outcome);
            if let Attempted::Failed(e) | Attempted::Unknown(e, _) = outcome {
                return Err(e);
            }
        }
        Ok(counts)
    }
}

impl crate::session::Session {
    /// The round trips of a statement, or of several as one transaction, whose last one counts what
    /// all have taken.
    async fn explained(&mut self, rng: &mut rand::rngs::SmallRng, statements: Vec<String>) -> Attempted<u32> {
        let counted = |rows: &Rows| counted(rows).ok_or_else(|| Error::internal("EXPLAIN ANALYZE has counted no round trips"));
        if let [sql] = statements.as_slice() {
            return match self.single(rng, sql, &[]).await {
                Attempted::Committed(rows) => match counted(&rows) {
                    Ok(count) => Attempted::Committed(count),
                    Err(e) => Attempted::Unknown(e, None),
                },
                Attempted::Failed(e) => Attempted::Failed(e),
                Attempted::Unknown(e, _) => Attempted::Unknown(e, None),
            };
        }
        self.transaction(rng, |transaction| {
            let statements = statements.clone();
            Box::pin(async move {
                let mut count = 0;
                for sql in &statements {
                    count = counted(&transaction.execute(sql).await?)?;
                }
                Ok(count)
            })
        })
        .await
    }
}

/// The sum in `Round Trips Between Regions: 0, to commit 1`; none are counted where there is one
/// region.
fn counted(rows: &Rows) -> Option<u32> {
    let lines = rows.rows.iter().filter_map(|row| row.first()?.as_text());
    let line = lines.filter_map(|line| line.trim().strip_prefix("Round Trips Between Regions: ")).next_back()?;
    let (made, to_commit) = line.split_once(", to commit ")?;
    Some(made.parse::<u32>().ok()? + to_commit.parse::<u32>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_parts_are_counted() {
        let rows = |lines: &[&str]| Rows { rows: lines.iter().map(|l| vec![(*l).into()]).collect(), affected: 0 };
        assert_eq!(
            counted(&rows(&["Point Lookup", "Round Trips Between Regions: 1, to commit 2", "Execution Time: 3 ms"])),
            Some(3)
        );
        assert_eq!(counted(&rows(&["Predicted Round Trips Between Regions: 1"])), None);
        assert_eq!(counted(&rows(&["Round Trips Between Regions: x, to commit 2"])), None);
    }
}
